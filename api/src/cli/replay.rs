//! `weir jobs replay`: pages that failed for good go back into the queue, by job, team, error code or age.

use std::io::IsTerminal as _;
use std::time::Duration;

use clap::{ArgGroup, Args};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use weir_shared::config::parse_duration;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, PageId};
use weir_shared::store::Db;
use weir_shared::store::work::page::replay::{self, Replay, ReplayFilter};
use weir_shared::store::work::pages::{self, PageRow};

use super::database::team_filter;
use super::jobs::check_is_there;
use super::output::{Output, or_dash, shorten, table};
use super::rows::page_json;

/// Pause between two looks at pages that are waited for.
const PAUSE: Duration = Duration::from_millis(300);
/// Pages asked for in one query.
const ASKED: usize = 500;

#[derive(Args)]
#[command(group = ArgGroup::new("which").required(true).multiple(true)
    .args(["job", "team", "code", "worth_it", "older_than", "newer_than"]))]
pub struct ReplayArgs {
    /// Only pages of this job.
    job: Option<JobId>,
    /// Only pages of this team.
    #[arg(long)]
    team: Option<String>,
    /// Only pages that failed with this code, as in SCRAPE_TIMEOUT; may be repeated.
    #[arg(long)]
    code: Vec<String>,
    /// Only pages that failed for a reason that may have passed: those that WEIR_REPLAY_CRON replays.
    #[arg(long, conflicts_with = "code")]
    worth_it: bool,
    /// Only pages that failed longer ago than this, as in 10m.
    #[arg(long, value_parser = duration)]
    older_than: Option<Duration>,
    /// Only pages that failed within this time, as in 2h.
    #[arg(long, value_parser = duration)]
    newer_than: Option<Duration>,
    /// How many at most, the oldest failures first.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    limit: i64,
    /// Show what would be replayed and change nothing.
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// Follow the pages until each has ended again.
    #[arg(long)]
    wait: bool,
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| "allowed is a duration such as 200ms, 5s, 15m, 24h, 7d, of 36500d at most".to_owned())
}

/// A bar on a terminal, nothing elsewhere. `what` is done, in the plural.
pub(super) fn progress(output: Output, count: usize, what: &'static str) -> anyhow::Result<ProgressBar> {
    if output.json || !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = "{elapsed_precise} {wide_bar} {pos}/{len} {msg}, {per_sec}, {eta} left";
    Ok(ProgressBar::new(count as u64).with_style(ProgressStyle::with_template(style)?).with_message(what))
}

/// Runs the command. `metered`: teams need credits for it.
pub async fn run(args: ReplayArgs, db: &Db, metered: bool, output: Output) -> anyhow::Result<()> {
    if let Some(job) = args.job {
        check_is_there(db, job).await?;
    }
    let now = db.now();
    let ago = |pause: Duration| now.plus_ms(-(pause.as_millis() as i64));
    let worth = ErrorCode::ALL.iter().filter(|code| args.worth_it && code.is_worth_replaying());
    let filter = ReplayFilter {
        job: args.job,
        team: team_filter(db, args.team.as_deref()).await?,
        codes: args.code.into_iter().chain(worth.filter_map(|code| code.code()).map(str::to_owned)).collect(),
        failed_before: args.older_than.map(ago),
        failed_after: args.newer_than.map(ago),
        limit: args.limit,
        ..ReplayFilter::default()
    };
    let found = replay::replayable(db, &filter, now).await?;
    if args.dry_run {
        show(output, &found);
        return Ok(());
    }
    let (mut replayed, mut unpaid) = (Vec::new(), 0);
    let bar = progress(output, found.len(), "pages put back")?;
    // One transaction a page: none is held while others wait, and a stop half-way leaves nothing half done.
    for page in bar.wrap_iter(found.iter()) {
        let mut tx = db.begin().await?;
        match replay::replay(&mut tx, page.id, metered, db.now()).await? {
            Replay::Queued => replayed.push(page.id),
            Replay::NoCredits => unpaid += 1,
            Replay::NotDead => {}
        }
        tx.commit().await?;
    }
    let mut json = json!({"found": found.len(), "replayed": replayed.len(), "withoutCredits": unpaid});
    let mut text = format!("pages replayed: {}", replayed.len());
    if unpaid > 0 {
        text.push_str(&format!(", left because their team has no credits: {unpaid}"));
    }
    if args.wait {
        let failed = follow(db, output, &replayed).await?;
        json["failedAgain"] = failed.into();
        text.push_str(&format!(", failed again: {failed}"));
    }
    output.show(&json, || text);
    Ok(())
}

/// Waits until the pages have ended. Returns how many failed again.
async fn follow(db: &Db, output: Output, replayed: &[PageId]) -> anyhow::Result<usize> {
    let bar = progress(output, replayed.len(), "pages ended")?;
    let mut open: Vec<PageId> = replayed.to_vec();
    loop {
        let mut still = Vec::with_capacity(open.len());
        for chunk in open.chunks(ASKED) {
            still.extend(pages::open_among(db, chunk).await?);
        }
        open = still;
        bar.set_position((replayed.len() - open.len()) as u64);
        if open.is_empty() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    bar.finish_and_clear();
    let mut failed = 0;
    for id in replayed {
        failed += usize::from(pages::load(db, *id).await?.is_some_and(|page| page.error_code.is_some()));
    }
    Ok(failed)
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
