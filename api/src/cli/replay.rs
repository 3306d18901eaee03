//! `weir jobs replay`: pages that failed for good go back into the queue, by job, team, error code or age.

use std::time::Duration;

use clap::{ArgGroup, Args};
use serde_json::json;
use weir_shared::config::parse_duration;
use weir_shared::ids::JobId;
use weir_shared::store::Db;
use weir_shared::store::pages::{self, PageRow, ReplayFilter};
use weir_shared::time::Timestamp;

use super::jobs::page_json;
use super::output::{Output, or_dash, shorten, table};
use super::team_filter;

#[derive(Args)]
#[command(group = ArgGroup::new("which").required(true).multiple(true)
    .args(["job", "team", "code", "older_than", "newer_than"]))]
pub struct ReplayArgs {
    /// Only pages of this job.
    job: Option<JobId>,
    /// Only pages of this team.
    #[arg(long)]
    team: Option<String>,
    /// Only pages that failed with this code, as in SCRAPE_TIMEOUT.
    #[arg(long)]
    code: Option<String>,
    /// Only pages that failed longer ago than this, as in 10m.
    #[arg(long, value_parser = duration)]
    older_than: Option<Duration>,
    /// Only pages that failed within this time, as in 2h.
    #[arg(long, value_parser = duration)]
    newer_than: Option<Duration>,
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    limit: i64,
    /// Show what would be replayed and change nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "allowed is a duration such as 200ms, 5s, 15m, 24h, 7d".to_owned())
}

/// Runs the command.
pub async fn run(args: ReplayArgs, db: &Db, output: Output) -> anyhow::Result<()> {
    let now = Timestamp::now();
    let ago = |pause: Duration| now.plus_ms(-(pause.as_millis() as i64));
    let filter = ReplayFilter {
        job: args.job,
        team: team_filter(db, args.team.as_deref()).await?,
        code: args.code,
        failed_before: args.older_than.map(ago),
        failed_after: args.newer_than.map(ago),
        limit: args.limit,
    };
    let found = pages::replayable(db, &filter).await?;
    if args.dry_run {
        show(output, &found);
        return Ok(());
    }
    let mut replayed = 0;
    // One transaction a page: none is held while others wait, and a stop half-way leaves nothing half done.
    for page in &found {
        let mut tx = db.begin().await?;
        if pages::replay(&mut tx, page.id, now).await? {
            replayed += 1;
        }
        tx.commit().await?;
    }
    output.show(&json!({"found": found.len(), "replayed": replayed}), || format!("pages replayed: {replayed}"));
    Ok(())
}

fn show(output: Output, found: &[PageRow]) {
    let json = json!({"found": found.len(), "replayed": 0, "pages": found.iter().map(page_json).collect::<Vec<_>>()});
    output.show(&json, || {
        let cells = |page: &PageRow| {
            let failed_at = or_dash(page.finished_at);
            vec![page.id.to_string(), or_dash(page.error_code.as_deref()), failed_at, shorten(&page.url, 60)]
        };
        let rows: Vec<Vec<String>> = found.iter().map(cells).collect();
        format!("{}pages that would be replayed: {}", table(&["PAGE", "CODE", "FAILED", "URL"], &rows), found.len())
    });
}
