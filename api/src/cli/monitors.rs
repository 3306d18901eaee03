//! `weir monitor …`: monitors of all teams, for operators.

use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::json;
use weir_shared::domain::monitor::{MonitorStatus, Summary};
use weir_shared::ids::MonitorId;
use weir_shared::store::monitors::checks;
use weir_shared::store::monitors::{self, MonitorRow};
use weir_shared::store::{Db, StoreResult};

use super::database::team_filter;
use super::output::{Output, or_dash, shorten};

#[derive(Subcommand)]
pub enum MonitorCommand {
    /// Show monitors, newest first.
    List {
        /// Only those of this team.
        #[arg(long)]
        team: Option<String>,
        /// How many at most.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=10_000))]
        limit: i64,
    },
    /// Have a monitor look now, beside its schedule.
    Run {
        /// Its id.
        id: MonitorId,
    },
    /// Stop looking until it is told to go on.
    Pause {
        /// Its id.
        id: MonitorId,
        /// Go on instead.
        #[arg(long)]
        resume: bool,
    },
    /// Show a monitor's checks, newest first.
    History {
        /// Its id.
        id: MonitorId,
        /// How many at most.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=10_000))]
        limit: i64,
    },
}

/// Runs `weir monitor …`.
pub async fn run(command: MonitorCommand, db: &Db, output: Output) -> anyhow::Result<()> {
    match command {
        MonitorCommand::List { team, limit } => list(db, team.as_deref(), limit, output).await,
        MonitorCommand::Run { id } => run_now(db, id, output).await,
        MonitorCommand::Pause { id, resume } => pause(db, id, !resume, output).await,
        MonitorCommand::History { id, limit } => history(db, id, limit, output).await,
    }
}

async fn named(db: &Db, id: MonitorId) -> anyhow::Result<MonitorRow> {
    monitors::load_any(db, id).await?.with_context(|| format!("there is no monitor {id}"))
}

async fn list(db: &Db, team: Option<&str>, limit: i64, output: Output) -> anyhow::Result<()> {
    let team = team_filter(db, team).await?;
    let rows = monitors::list_all(db, team, limit).await?.into_iter().map(|row| {
        let (next, last) = (row.next_due_at.map(|at| at.to_iso()), row.last_run_at.map(|at| at.to_iso()));
        let summary = row.last_summary()?;
        let json = json!({
            "id": row.id,
            "team": row.team_id,
            "name": row.name,
            "status": row.status,
            "cron": row.cron,
            "timezone": row.timezone,
            "nextRunAt": next,
            "lastRunAt": last,
            "currentCheckId": row.current_check_id,
            "lastCheckSummary": summary,
        });
        let schedule = format!("{} {}", row.cron, row.timezone);
        let cells = vec![
            row.id.to_string(),
            shorten(&row.name, 30),
            row.status.as_str().to_owned(),
            schedule,
            or_dash(next),
            or_dash(summary.map(counts)),
        ];
        Ok((json, cells))
    });
    output.list(&["ID", "NAME", "STATUS", "SCHEDULE", "NEXT", "LAST CHECK"], rows.collect::<StoreResult<_>>()?);
    Ok(())
}

/// Counts in one cell.
fn counts(summary: Summary) -> String {
    let Summary { same, changed, new, removed, error } = summary;
    format!("same {same}, changed {changed}, new {new}, removed {removed}, error {error}")
}

async fn run_now(db: &Db, id: MonitorId, output: Output) -> anyhow::Result<()> {
    let row = named(db, id).await?;
    let mut tx = db.begin().await?;
    let row = monitors::lock(&mut tx, row.team_id, id).await?.with_context(|| format!("there is no monitor {id}"))?;
    let Some(check) = checks::run_now(&mut tx, &row, db.now()).await? else {
        bail!("a check of this monitor is already running: {}", or_dash(row.current_check_id));
    };
    tx.commit().await?;
    output.show(&json!({"id": check, "monitorId": id}), || format!("check {check} waits for a worker"));
    Ok(())
}

async fn pause(db: &Db, id: MonitorId, paused: bool, output: Output) -> anyhow::Result<()> {
    let row = named(db, id).await?;
    let mut tx = db.begin().await?;
    let row = monitors::lock(&mut tx, row.team_id, id).await?.with_context(|| format!("there is no monitor {id}"))?;
    let word = if paused { MonitorStatus::Paused } else { MonitorStatus::Active };
    if !monitors::set_paused(&mut tx, &row, paused, db.now()).await? {
        bail!("the monitor is {} already", row.status.as_str());
    }
    tx.commit().await?;
    output.show(&json!({"id": id, "status": word}), || format!("monitor {id} is {}", word.as_str()));
    Ok(())
}

async fn history(db: &Db, id: MonitorId, limit: i64, output: Output) -> anyhow::Result<()> {
    let row = named(db, id).await?;
    let rows = checks::list(db, row.id, None, limit, 0).await?.into_iter().map(|check| {
        let json = json!({
            "id": check.id,
            "status": check.status,
            "trigger": check.cause,
            "scheduledFor": check.scheduled_for.map(|at| at.to_iso()),
            "startedAt": check.started_at.map(|at| at.to_iso()),
            "finishedAt": check.finished_at.map(|at| at.to_iso()),
            "credits": check.actual_credits,
            "summary": check.summary(),
            "error": check.error,
        });
        let cells = vec![
            check.created_at.to_iso(),
            check.id.to_string(),
            check.status.as_str().to_owned(),
            check.cause.as_str().to_owned(),
            counts(check.summary()),
            or_dash(check.error.as_deref().map(|text| shorten(text, 40))),
        ];
        (json, cells)
    });
    output.list(&["CREATED", "ID", "STATUS", "TRIGGER", "PAGES", "ERROR"], rows.collect());
    Ok(())
}
