//! `weir jobs …`: what runs, how it went, and doing failed pages again.

use anyhow::bail;
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use weir_shared::config::Settings;
use weir_shared::domain::job::{JobKind, JobStatus, PageState};
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::Db;
use weir_shared::store::work::crawls;
use weir_shared::store::work::jobs::{self, JobFilter, JobRow};
use weir_shared::store::work::pages::{self, AttemptRow, PageRow};
use weir_shared::texts::counted;
use weir_shared::time::Timestamp;

use super::database::team_filter;
use super::output::{Output, or_dash, plain, shorten, table};
use super::rows::{crawl_text, done_text, job_json, page_json};
use super::{replay, watch};

/// Failed pages that `show` lists.
const FAILED_SHOWN: i64 = 100;

#[derive(Subcommand)]
pub enum JobsCommand {
    /// Show jobs, newest first.
    List {
        /// Only those of this team.
        #[arg(long)]
        team: Option<String>,
        /// Only those of this kind.
        #[arg(long)]
        kind: Option<Kind>,
        /// Only those in this state.
        #[arg(long)]
        status: Option<Status>,
        /// How many at most.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=10_000))]
        limit: i64,
    },
    /// Show a job with its failed pages, or one page with its tries.
    Show {
        /// Id of a job, or of a page (the scrapeId of a document).
        id: uuid::Uuid,
    },
    /// Follow a job with a progress bar until it ends.
    Watch {
        /// Its id.
        id: JobId,
    },
    /// Put pages that failed for good back into the queue.
    Replay(replay::ReplayArgs),
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Kind {
    Scrape,
    Batch,
    Crawl,
    Map,
    Search,
    Extract,
    Agent,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Status {
    Scraping,
    Completed,
    Failed,
    Cancelled,
}

impl From<Kind> for JobKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Scrape => Self::Scrape,
            Kind::Batch => Self::Batch,
            Kind::Crawl => Self::Crawl,
            Kind::Map => Self::Map,
            Kind::Search => Self::Search,
            Kind::Extract => Self::Extract,
            Kind::Agent => Self::Agent,
        }
    }
}

impl From<Status> for JobStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Scraping => Self::Scraping,
            Status::Completed => Self::Completed,
            Status::Failed => Self::Failed,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

/// Runs `weir jobs …`.
pub async fn run(command: JobsCommand, db: &Db, settings: &Settings, output: Output) -> anyhow::Result<()> {
    match command {
        JobsCommand::List { team, kind, status, limit } => {
            let team = team_filter(db, team.as_deref()).await?;
            let filter = JobFilter { team, kind: kind.map(Into::into), status: status.map(Into::into), limit };
            list(db, output, &filter).await
        }
        JobsCommand::Show { id } => show(db, output, id).await,
        JobsCommand::Watch { id } => watch::run(db, output, id).await,
        JobsCommand::Replay(args) => replay::run(args, db, settings.limits.metered, output).await,
    }
}

/// Fails where there is no such job.
///
/// # Errors
/// When there is none, or the database cannot be read.
pub(super) async fn check_is_there(db: &Db, id: JobId) -> anyhow::Result<()> {
    anyhow::ensure!(jobs::load(db, id).await?.is_some(), "there is no job with the id {id}");
    Ok(())
}

async fn list(db: &Db, output: Output, filter: &JobFilter) -> anyhow::Result<()> {
    let rows = jobs::list(db, filter).await?.into_iter().map(|job| {
        let cells = vec![
            job.id.to_string(),
            job.kind.as_str().to_owned(),
            job.status.as_str().to_owned(),
            format!("{}/{}", job.ended(), job.pages()),
            job.failed.to_string(),
            job.created_at.to_iso(),
            shorten(&job.target, 60),
        ];
        (job_json(&job, None), cells)
    });
    output.list(&["ID", "KIND", "STATUS", "DONE", "FAILED", "CREATED", "TARGET"], rows.collect());
    Ok(())
}

fn attempt_json(attempt: &AttemptRow) -> Value {
    json!({
        "attempt": attempt.epoch,
        "worker": attempt.worker,
        "startedAt": attempt.started_at.map(Timestamp::to_iso),
        "endedAt": attempt.ended_at.to_iso(),
        "code": attempt.code,
        "error": attempt.error,
    })
}

async fn show(db: &Db, output: Output, id: uuid::Uuid) -> anyhow::Result<()> {
    if let Some(job) = jobs::load(db, JobId(id)).await? {
        return show_job(db, output, &job).await;
    }
    match pages::load(db, PageId(id)).await? {
        Some(page) => show_page(db, output, &page).await,
        None => bail!("there is no job or page with the id {id}"),
    }
}

async fn show_job(db: &Db, output: Output, job: &JobRow) -> anyhow::Result<()> {
    let failed = pages::list(db, job.id, Some(PageState::Failed), FAILED_SHOWN).await?;
    let crawl = crawls::counts(db, job.id).await?;
    let mut json = job_json(job, crawl.as_ref());
    json["failedPages"] = failed.iter().map(page_json).collect();
    output.show(&json, || {
        let mut text = format!(
            "job {}\nkind {}, status {}\n{}, {} waiting{}, {}\nmade {}, ended {}\n",
            job.id,
            job.kind.as_str(),
            job.status.as_str(),
            done_text(job),
            job.waiting().queued,
            crawl_text(crawl.as_ref()),
            counted(job.credits_used, "credit"),
            job.created_at,
            or_dash(job.finished_at),
        );
        if !failed.is_empty() {
            let cells = |page: &PageRow| {
                let error = page.error.as_deref().map(|text| shorten(text, 80));
                vec![page.id.to_string(), or_dash(page.error_code.as_deref()), shorten(&page.url, 60), or_dash(error)]
            };
            let rows: Vec<Vec<String>> = failed.iter().map(cells).collect();
            text.push_str(&table(&["FAILED PAGE", "CODE", "URL", "ERROR"], &rows));
        }
        text.trim_end().to_owned()
    });
    Ok(())
}

async fn show_page(db: &Db, output: Output, page: &PageRow) -> anyhow::Result<()> {
    let attempts = pages::attempts_of(db, page.id).await?;
    let mut json = page_json(page);
    json["attempts"] = attempts.iter().map(attempt_json).collect();
    output.show(&json, || {
        let state = page.state.as_str();
        let mut text = format!("page {} of job {}\n{}\n", page.id, page.job_id, plain(&page.url));
        text.push_str(&format!("state {state}, {}\n", counted(page.claims, "claim")));
        if page.replays > 0 {
            text.push_str(&format!("replayed {}, last at {}\n", counted(page.replays, "time"), page.queued_at));
        }
        if let Some(error) = &page.error {
            text.push_str(&format!("{}: {}\n", or_dash(page.error_code.as_deref()), plain(error)));
        }
        if !attempts.is_empty() {
            let cells = |a: &AttemptRow| {
                vec![a.epoch.to_string(), a.ended_at.to_iso(), or_dash(a.code.as_deref()), shorten(&a.error, 100)]
            };
            let rows: Vec<Vec<String>> = attempts.iter().map(cells).collect();
            text.push_str(&table(&["TRY", "ENDED", "CODE", "ERROR"], &rows));
        }
        text.trim_end().to_owned()
    });
    Ok(())
}
