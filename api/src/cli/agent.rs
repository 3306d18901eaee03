//! `weir agent …`: what agents and extractions have done, step by step.

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::{Value, json};
use weir_shared::ids::JobId;
use weir_shared::store::Db;
use weir_shared::store::work::jobs;
use weir_shared::store::work::tasks::{self, StepRow};

use super::output::{Output, or_dash, plain, say, shorten};

#[derive(Subcommand)]
pub enum AgentCommand {
    /// Show an agent or an extraction with its steps.
    Show {
        /// Its id.
        id: JobId,
    },
}

/// Runs `weir agent …`.
pub async fn run(command: AgentCommand, db: &Db, output: Output) -> anyhow::Result<()> {
    let AgentCommand::Show { id } = command;
    let unknown = || format!("there is no agent or extraction {id}");
    let job = jobs::load(db, id).await?.with_context(unknown)?;
    let task = tasks::load(db, id).await?.with_context(unknown)?;
    let steps = tasks::steps(db, id).await?;
    let outcome = task.outcome.clone().unwrap_or_default();
    if output.json {
        let value = json!({
            "id": id, "team": job.team_id, "kind": job.kind.as_str(), "status": job.status.as_str(),
            "task": task.spec, "outcome": task.outcome, "creditsUsed": job.credits_used,
            "tokensSent": task.spent.sent, "tokensReceived": task.spent.received,
            "worker": task.owner, "createdAt": task.created_at.to_iso(), "finishedAt": job.finished_at.map(|at| at.to_iso()),
            "steps": steps.iter().map(shown).collect::<Vec<_>>(),
        });
        say(format_args!("{value}"));
        return Ok(());
    }
    say(format_args!("{} {id}: {}", job.kind.as_str(), job.status.as_str()));
    say(format_args!("asked: {}", shorten(task.spec.prompt().unwrap_or("by its schema"), 200)));
    for url in task.spec.urls() {
        say(format_args!("url: {}", plain(url)));
    }
    let (sent, received) = (task.spent.sent, task.spent.received);
    say(format_args!("credits: {}, tokens: {sent} sent, {received} received, pages: {}", job.credits_used, job.total));
    if let Some(error) = &outcome.error {
        say(format_args!("failed: {}", plain(error)));
    }
    if let Some(answer) = outcome.data.as_ref().map(Value::to_string).or(outcome.message) {
        say(format_args!("answer: {}", shorten(&answer, 500)));
    }
    let rows = steps.iter().map(|step| {
        let took = step.ended_at.map(|at| format!("{} ms", at.ms_since(step.started_at)));
        let cells = vec![
            step.number.to_string(),
            step.kind.clone(),
            step.key.clone(),
            step.state.clone(),
            or_dash(took),
            step.credits.to_string(),
            shorten(&step.says, 60),
            or_dash(step.outcome.as_deref().map(|outcome| shorten(outcome, 80))),
        ];
        (shown(step), cells)
    });
    output.list(&["STEP", "KIND", "KEY", "STATE", "TOOK", "CREDITS", "GIVEN", "CAME"], rows.collect());
    Ok(())
}

fn shown(step: &StepRow) -> Value {
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    json!({
        "number": step.number, "id": step.id, "key": step.key, "kind": step.kind, "state": step.state,
        "tries": step.tries, "says": value(&step.says), "outcome": step.outcome.as_deref().map(value),
        "tokensSent": step.sent, "tokensReceived": step.received, "credits": step.credits,
        "startedAt": step.started_at.to_iso(), "endedAt": step.ended_at.map(|at| at.to_iso()),
    })
}
