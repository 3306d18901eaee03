//! `weir webhooks …`: deliveries, and doing dead ones again.

use anyhow::bail;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use weir_shared::domain::webhook::DeliveryState;
use weir_shared::ids::{CheckId, DeliveryId, JobId};
use weir_shared::store::Db;
use weir_shared::store::monitors::checks;
use weir_shared::store::work::jobs;
use weir_shared::store::work::webhooks::{self, DeliveryFilter, DeliveryRow};

use super::database::team_filter;
use super::output::{Output, or_dash, shorten, table};
use super::replay::progress;

#[derive(Subcommand)]
pub enum WebhooksCommand {
    /// Show deliveries, newest first.
    Deliveries {
        /// Only those of this job, or of this check of a monitor.
        #[arg(long)]
        job: Option<JobId>,
        /// Only those of this team.
        #[arg(long)]
        team: Option<String>,
        /// Only those in this state.
        #[arg(long)]
        state: Option<StateArg>,
        /// How many at most.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=10_000))]
        limit: i64,
    },
    /// Try dead deliveries again, with the whole schedule before them.
    Replay(ReplayArgs),
}

#[derive(Clone, Copy, ValueEnum)]
pub enum StateArg {
    Waiting,
    Delivered,
    Dead,
}

impl From<StateArg> for DeliveryState {
    fn from(state: StateArg) -> Self {
        match state {
            StateArg::Waiting => Self::Waiting,
            StateArg::Delivered => Self::Delivered,
            StateArg::Dead => Self::Dead,
        }
    }
}

#[derive(Args)]
#[command(group = ArgGroup::new("which").required(true).multiple(true).args(["id", "job", "team"]))]
pub struct ReplayArgs {
    /// One delivery (the webhookId).
    #[arg(conflicts_with_all = ["job", "team"])]
    id: Option<DeliveryId>,
    /// Every dead delivery of this job.
    #[arg(long)]
    job: Option<JobId>,
    /// Every dead delivery of this team.
    #[arg(long)]
    team: Option<String>,
    /// How many at most.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    limit: i64,
    /// Show what would be replayed and change nothing.
    #[arg(long)]
    dry_run: bool,
}

const HEADINGS: [&str; 8] = ["ID", "JOB", "EVENT", "STATE", "TRIES", "STATUS", "CREATED", "ERROR"];

/// Runs `weir webhooks …`.
pub async fn run(command: WebhooksCommand, db: &Db, output: Output) -> anyhow::Result<()> {
    match command {
        WebhooksCommand::Deliveries { job, team, state, limit } => {
            let team = team_filter(db, team.as_deref()).await?;
            if let Some(job) = job {
                anyhow::ensure!(
                    jobs::load(db, job).await?.is_some() || checks::load_any(db, CheckId(job.0)).await?.is_some(),
                    "there is no job, and no check of a monitor, with the id {job}"
                );
            }
            let state = state.map(DeliveryState::from);
            let found = webhooks::deliveries(db, &DeliveryFilter { job, team, state, limit, id: None }).await?;
            let rows = found.iter().map(|delivery| (delivery_json(delivery), cells(delivery)));
            output.list(&HEADINGS, rows.collect());
            Ok(())
        }
        WebhooksCommand::Replay(args) => replay(args, db, output).await,
    }
}

fn delivery_json(delivery: &DeliveryRow) -> Value {
    json!({
        "id": delivery.id,
        "jobId": delivery.job_id,
        "pageId": delivery.page_id,
        "event": delivery.event,
        "state": delivery.state.as_str(),
        "attempts": delivery.attempt,
        "nextAt": (delivery.state == DeliveryState::Waiting).then(|| delivery.next_at.to_iso()),
        "lastStatus": delivery.last_status,
        "lastError": delivery.last_error,
        "createdAt": delivery.created_at.to_iso(),
    })
}

fn cells(delivery: &DeliveryRow) -> Vec<String> {
    vec![
        delivery.id.to_string(),
        delivery.job_id.to_string(),
        delivery.event.clone(),
        delivery.state.as_str().to_owned(),
        delivery.attempt.to_string(),
        or_dash(delivery.last_status),
        delivery.created_at.to_iso(),
        or_dash(delivery.last_error.as_deref().map(|text| shorten(text, 60))),
    ]
}

async fn replay(args: ReplayArgs, db: &Db, output: Output) -> anyhow::Result<()> {
    let team = team_filter(db, args.team.as_deref()).await?;
    let state = Some(DeliveryState::Dead);
    let filter = DeliveryFilter { id: args.id, job: args.job, team, state, limit: args.limit };
    let found = webhooks::deliveries(db, &filter).await?;
    if args.id.is_some() && found.is_empty() {
        bail!("there is no such delivery, or it is not dead");
    }
    if args.dry_run {
        let json = json!({"found": found.len(), "replayed": 0,
            "deliveries": found.iter().map(delivery_json).collect::<Vec<_>>()});
        let rows: Vec<Vec<String>> = found.iter().map(cells).collect();
        let text = || format!("{}deliveries that would be replayed: {}", table(&HEADINGS, &rows), rows.len());
        output.show(&json, text);
        return Ok(());
    }
    // Replayed in the order in which they were made, oldest first.
    let ids: Vec<DeliveryId> = found.iter().rev().map(|delivery| delivery.id).collect();
    let mut replayed = 0;
    let bar = progress(output, ids.len(), "deliveries put back")?;
    for id in bar.wrap_iter(ids.iter()) {
        let mut tx = db.begin().await?;
        if webhooks::replay(&mut tx, *id, db.now()).await? {
            replayed += 1;
        }
        tx.commit().await?;
    }
    output.show(&json!({"found": ids.len(), "replayed": replayed}), || format!("deliveries replayed: {replayed}"));
    Ok(())
}
