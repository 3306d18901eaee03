//! `weir jobs watch`: a job's progress with rate and time left, until it ends.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use weir_shared::domain::job::JobStatus;
use weir_shared::ids::JobId;
use weir_shared::store::Db;
use weir_shared::store::work::crawls::{self, CrawlCounts};
use weir_shared::store::work::jobs::{self, JobRow};

use super::output::{Output, say};
use super::rows::{crawl_text, done_text, job_json};

/// Time between two looks at the job.
const PAUSE: Duration = Duration::from_millis(250);
/// The same when the progress goes to a file.
const PLAIN_PAUSE: Duration = Duration::from_secs(2);

/// Runs the command. With `--json`, one line per change.
pub async fn run(db: &Db, output: Output, id: JobId) -> anyhow::Result<()> {
    let (mut job, mut crawl) = load(db, id).await?;
    let terminal = std::io::stderr().is_terminal() && !output.json;
    let bar = if terminal { bar(&job)? } else { ProgressBar::hidden() };
    let mut seen = None;
    loop {
        let now = (job.completed, job.failed, job.pages(), job.status, crawl.clone());
        if seen.as_ref() != Some(&now) {
            seen = Some(now);
            if output.json {
                say(format_args!("{}", job_json(&job, crawl.as_ref())));
            } else if !terminal {
                say(format_args!("{}", line(&job, crawl.as_ref())));
            }
            bar.set_length(job.pages().unsigned_abs());
            bar.set_position(job.ended().unsigned_abs());
            bar.set_message(format!(
                "{} queued, {} failed{}",
                job.waiting().queued,
                job.failed,
                crawl_text(crawl.as_ref())
            ));
        }
        if job.status != JobStatus::Scraping {
            break;
        }
        tokio::time::sleep(if terminal || output.json { PAUSE } else { PLAIN_PAUSE }).await;
        (job, crawl) = load(db, id).await?;
    }
    bar.finish();
    if terminal {
        say(format_args!("{}", line(&job, crawl.as_ref())));
    }
    Ok(())
}

async fn load(db: &Db, id: JobId) -> anyhow::Result<(JobRow, Option<CrawlCounts>)> {
    let job = jobs::load(db, id).await?.with_context(|| format!("there is no job with the id {id}"))?;
    Ok((job, crawls::counts(db, id).await?))
}

fn bar(job: &JobRow) -> anyhow::Result<ProgressBar> {
    let style = "{elapsed_precise} {wide_bar} {pos}/{len} pages, {per_sec}, {eta} left, {msg}";
    let bar = ProgressBar::new(job.pages().unsigned_abs()).with_style(ProgressStyle::with_template(style)?);
    // What was done before we looked says nothing about the rate.
    bar.set_position(job.ended().unsigned_abs());
    bar.reset_eta();
    Ok(bar)
}

fn line(job: &JobRow, crawl: Option<&CrawlCounts>) -> String {
    format!("{}: {}, {} queued{}", job.status.as_str(), done_text(job), job.waiting().queued, crawl_text(crawl))
}
