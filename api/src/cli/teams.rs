//! `weir team …` and `weir credits …`.

use anyhow::bail;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use weir_shared::config::parse_rate;
use weir_shared::store::accounts::credits::{self, Balance, Grant, MOST_GRANTED};
use weir_shared::store::accounts::teams::{self, TeamChange, TeamRow};
use weir_shared::store::{Db, StoreError};
use weir_shared::time::Timestamp;

use super::database::{commit, team_named};
use super::output::{Output, or_dash};
use super::remove_team::{self, RemoveArgs};

#[derive(Subcommand)]
pub enum TeamCommand {
    /// Make a team.
    Add {
        /// What it is called.
        name: String,
    },
    /// Show every team.
    List,
    /// Change a team's limits and settings; `default` gives one back to what holds for all teams.
    Set(SetArgs),
    /// Remove a team with all that is its own: keys, jobs and results, sessions, monitors, profiles, files, usage and credits.
    Remove(RemoveArgs),
}

#[derive(Args)]
#[command(group = ArgGroup::new("change").required(true).multiple(true)
    .args(["concurrency", "sessions", "queue", "webhook_secret", "zero_data_retention", "rate"]))]
pub struct SetArgs {
    /// The team.
    name: String,
    /// Pages in work at once over all workers.
    #[arg(long, value_parser = |text: &str| own(text, 100_000))]
    concurrency: Option<Own<i64>>,
    /// Browser sessions at once.
    #[arg(long, value_parser = |text: &str| own(text, 100_000))]
    sessions: Option<Own<i64>>,
    /// Pages that may wait at once over all of the team's jobs.
    #[arg(long, value_parser = |text: &str| own(text, 100_000_000))]
    queue: Option<Own<i64>>,
    /// HMAC secret of the team's webhooks.
    #[arg(long, value_parser = own_secret)]
    webhook_secret: Option<Own<String>>,
    /// Whether the team may ask for zero data retention.
    #[arg(long)]
    zero_data_retention: Option<Switch>,
    /// Requests a minute in one bucket, as in scrape=500; may be repeated.
    #[arg(long, value_name = "BUCKET=N", value_parser = own_rate)]
    rate: Vec<(String, Own<u32>)>,
}

/// A team's own value, or that of the installation.
#[derive(Clone)]
struct Own<T>(Option<T>);

/// How a value is given back.
const DEFAULT: &str = "default";

fn own(text: &str, most: i64) -> Result<Own<i64>, String> {
    if text == DEFAULT {
        return Ok(Own(None));
    }
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.map(|number| Own(Some(number))).ok_or_else(|| format!("allowed are {DEFAULT} or a number from 1 to {most}"))
}

fn own_secret(text: &str) -> Result<Own<String>, String> {
    match text {
        "" => Err(format!("a secret has a character at least; {DEFAULT} takes the team's own away")),
        DEFAULT => Ok(Own(None)),
        secret => Ok(Own(Some(secret.to_owned()))),
    }
}

fn own_rate(text: &str) -> Result<(String, Own<u32>), String> {
    let Some(bucket) = text.strip_suffix("=default") else {
        return parse_rate(text).map(|(bucket, rate)| (bucket, Own(Some(rate))));
    };
    // The name is held against those that there are.
    parse_rate(&format!("{bucket}=1")).map(|(bucket, _)| (bucket, Own(None)))
}

fn amount(text: &str) -> Result<i64, String> {
    let number = text.parse().ok().filter(|number| *number != 0 && (-MOST_GRANTED..=MOST_GRANTED).contains(number));
    number.ok_or_else(|| format!("allowed are numbers from -{MOST_GRANTED} to {MOST_GRANTED}, other than 0"))
}

#[derive(Clone, Copy, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Subcommand)]
pub enum CreditsCommand {
    /// Grant credits; a negative number takes some back, at most what was granted.
    Grant {
        /// The team.
        #[arg(long)]
        team: String,
        /// How many.
        #[arg(allow_negative_numbers = true, value_parser = amount)]
        amount: i64,
    },
    /// Show what a team was granted, has used and holds back for running jobs.
    Show {
        /// The team.
        #[arg(long)]
        team: String,
    },
}

/// Runs `weir team …`.
pub async fn run(command: TeamCommand, db: &Db, output: Output) -> anyhow::Result<()> {
    match command {
        TeamCommand::Add { name } => add(db, output, &name).await,
        TeamCommand::List => list(db, output).await,
        TeamCommand::Set(args) => set(db, output, args).await,
        TeamCommand::Remove(args) => remove_team::run(args, db, output).await,
    }
}

async fn add(db: &Db, output: Output, name: &str) -> anyhow::Result<()> {
    if name.trim().is_empty() || name.len() > 128 {
        bail!("a team's name has 1 to 128 characters");
    }
    let mut tx = db.begin().await?;
    let id = match teams::insert(&mut tx, name, db.now()).await {
        Err(StoreError::Conflict(_)) => bail!("there is a team named {name} already"),
        other => other?,
    };
    let is_made = || async { Ok(teams::by_id(db, id).await?.is_some()) };
    let unknown = || {
        format!(
            "whether the team was made is not known, for the answer to that was lost: `weir team list` shows {id} if it was"
        )
    };
    commit(db, tx, is_made, unknown).await?;
    output.show(&json!({"id": id, "name": name}), || format!("team {name} has the id {id}"));
    Ok(())
}

fn team_json(team: &TeamRow) -> Value {
    json!({
        "id": team.id,
        "name": team.name,
        "concurrency": team.concurrency,
        "sessions": team.sessions,
        "queue": team.queue,
        "hasWebhookSecret": team.has_webhook_secret,
        "zeroDataRetention": team.zero_data_retention,
        "rates": team.rates,
        "createdAt": team.created_at.to_iso(),
        "removedAt": team.removed_at.map(Timestamp::to_iso),
    })
}

async fn list(db: &Db, output: Output) -> anyhow::Result<()> {
    let rows = teams::list(db).await?.into_iter().map(|team| {
        let rates: Vec<String> = team.rates.iter().map(|(name, n)| format!("{name}={n}")).collect();
        let cells = vec![
            team.name.clone(),
            team.id.to_string(),
            or_dash(team.concurrency),
            or_dash(team.sessions),
            or_dash(team.queue),
            if team.has_webhook_secret { "yes" } else { "-" }.to_owned(),
            if team.zero_data_retention { "on" } else { "-" }.to_owned(),
            or_dash((!rates.is_empty()).then(|| rates.join(","))),
            or_dash(team.removed_at.map(Timestamp::to_iso)),
        ];
        (team_json(&team), cells)
    });
    let headings = ["NAME", "ID", "CONCURRENCY", "SESSIONS", "QUEUE", "SECRET", "ZDR", "RATES", "REMOVED"];
    output.list(&headings, rows.collect());
    Ok(())
}

async fn set(db: &Db, output: Output, args: SetArgs) -> anyhow::Result<()> {
    let team = team_named(db, &args.name).await?;
    let mut rates = team.rates;
    for (bucket, Own(rate)) in &args.rate {
        match rate {
            Some(rate) => rates.insert(bucket.clone(), *rate),
            None => rates.remove(bucket),
        };
    }
    let change = TeamChange {
        concurrency: args.concurrency.map(|own| own.0),
        sessions: args.sessions.map(|own| own.0),
        queue: args.queue.map(|own| own.0),
        webhook_secret: args.webhook_secret.map(|own| own.0),
        zero_data_retention: args.zero_data_retention.map(|switch| matches!(switch, Switch::On)),
        rates: (!args.rate.is_empty()).then_some(rates),
    };
    let mut tx = db.begin().await?;
    if !teams::update(&mut tx, team.id, &change).await? {
        bail!("there is no team named {}", args.name);
    }
    tx.commit().await?;
    let team = team_named(db, &args.name).await?;
    output.show(&team_json(&team), || format!("team {} is changed", team.name));
    Ok(())
}

/// Runs `weir credits …`. Where they are not metered none are needed, and what was used says nothing of what is left.
pub async fn run_credits(command: CreditsCommand, db: &Db, is_metered: bool, output: Output) -> anyhow::Result<()> {
    let name = match command {
        CreditsCommand::Grant { team, amount } => {
            let row = team_named(db, &team).await?;
            let mut tx = db.begin().await?;
            let granted = match credits::grant(&mut tx, row.id, amount).await? {
                Grant::Granted(granted) => granted,
                Grant::OutOfRange { granted } => bail!(
                    "team {team} was granted {granted} in all, which can be 0 to {MOST_GRANTED}: {amount} more is out of that"
                ),
                Grant::NoTeam => bail!("there is no team named {team}"),
            };
            let unknown = || {
                format!(
                    "whether the credits were granted is not known, for the answer to that was lost: `weir credits show --team \
                     {team}` says what was granted in all, which was {} before",
                    granted - amount
                )
            };
            commit(db, tx, || credits::has_granted(db, row.id, granted), unknown).await?;
            team
        }
        CreditsCommand::Show { team } => team,
    };
    let row = team_named(db, &name).await?;
    let Some(balance) = credits::balance(db, row.id).await? else { bail!("there is no team named {name}") };
    let Balance { granted, used, reserved } = balance;
    let left = is_metered.then(|| balance.left());
    let json = json!({"team": name, "granted": granted, "used": used, "reserved": reserved, "left": left});
    output.show(&json, || {
        let left = left.map_or_else(|| "left: unlimited (WEIR_CREDITS)".to_owned(), |left| format!("left {left}"));
        format!("team {name}: granted {granted}, used {used}, reserved {reserved}, {left}")
    });
    Ok(())
}
