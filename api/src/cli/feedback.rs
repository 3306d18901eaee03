//! `weir feedback …`: what callers say of their results.

use clap::Subcommand;
use serde_json::{Value, json};
use weir_shared::store::Db;
use weir_shared::store::accounts::feedback;

use super::database::team_filter;
use super::output::{Output, or_dash, shorten};

#[derive(Subcommand)]
pub enum FeedbackCommand {
    /// Show what was said, newest first. The newest 1,000 of each team are kept.
    List {
        /// Only those of this team.
        #[arg(long)]
        team: Option<String>,
        /// How many at most.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=10_000))]
        limit: i64,
    },
}

/// Runs `weir feedback …`.
pub async fn run(command: FeedbackCommand, db: &Db, output: Output) -> anyhow::Result<()> {
    let FeedbackCommand::List { team, limit } = command;
    let team = team_filter(db, team.as_deref()).await?;
    let rows = feedback::list(db, team, limit).await?.into_iter().map(|row| {
        let said: Value = row.body.as_deref().and_then(|body| serde_json::from_str(body).ok()).unwrap_or(Value::Null);
        let json = json!({
            "id": row.id,
            "team": row.team_id,
            "endpoint": row.endpoint,
            "jobId": row.job_id,
            "rating": row.rating,
            "said": said,
            "createdAt": row.created_at.to_iso(),
        });
        let text = row.body.as_deref().map(|body| shorten(body, 60));
        let cells = vec![row.created_at.to_iso(), row.endpoint, row.job_id, row.rating, or_dash(text)];
        (json, cells)
    });
    output.list(&["CREATED", "ENDPOINT", "JOB", "RATING", "SAID"], rows.collect());
    Ok(())
}
