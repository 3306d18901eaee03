//! Jobs and pages as the commands about them print them.

use serde_json::{Value, json};
use weir_shared::store::work::crawls::CrawlCounts;
use weir_shared::store::work::jobs::JobRow;
use weir_shared::store::work::pages::PageRow;
use weir_shared::time::Timestamp;

/// A job as JSON, with the counts of its crawl if it is one.
pub fn job_json(job: &JobRow, crawl: Option<&CrawlCounts>) -> Value {
    let mut json = json!({
        "id": job.id,
        "teamId": job.team_id,
        "kind": job.kind.as_str(),
        "status": job.status.as_str(),
        "target": job.target,
        "total": job.pages(),
        "queued": job.waiting().queued,
        "completed": job.completed,
        "failed": job.failed,
        "creditsUsed": job.credits_used,
        "maxConcurrency": job.max_concurrency,
        "createdAt": job.created_at.to_iso(),
        "expiresAt": job.expires_at.to_iso(),
        "finishedAt": job.finished_at.map(Timestamp::to_iso),
    });
    if let Some(counts) = crawl {
        json["discovered"] = counts.discovered.into();
        json["blocked"] = counts.blocked.into();
        json["dropped"] = counts.dropped.into();
        json["warning"] = json!(counts.warning);
    }
    json
}

/// How far a job is, in the console's words: a page that failed is done, too.
pub fn done_text(job: &JobRow) -> String {
    format!("{} of {} done, {} failed", job.ended(), job.pages(), job.failed)
}

/// What a crawl's counts say in a line; nothing for other jobs.
pub fn crawl_text(crawl: Option<&CrawlCounts>) -> String {
    crawl.map_or_else(String::new, |c| {
        format!(", {} discovered, {} blocked by robots.txt, {} dropped", c.discovered, c.blocked, c.dropped)
    })
}

/// A page as JSON.
pub fn page_json(page: &PageRow) -> Value {
    json!({
        "id": page.id,
        "jobId": page.job_id,
        "url": page.url,
        "state": page.state.as_str(),
        "claims": page.claims,
        "tries": page.tries,
        "replays": page.replays,
        "queuedAt": page.queued_at.to_iso(),
        "startedAt": page.started_at.map(Timestamp::to_iso),
        "finishedAt": page.finished_at.map(Timestamp::to_iso),
        "code": page.error_code,
        "error": page.error,
    })
}
