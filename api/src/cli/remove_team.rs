//! `weir team remove`: what a team has is told and asked about, then it is gone for its callers; workers remove the rest.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::json;
use weir_shared::ids::TeamId;
use weir_shared::store::Db;
use weir_shared::store::accounts::teams::DEFAULT_TEAM;
use weir_shared::store::db::slices::Slices;
use weir_shared::store::upkeep::removal::{self, Holdings};

use super::database::team_named;
use super::output::{Output, complain, plain, say};

/// Time between two looks at what is left.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Args)]
pub struct RemoveArgs {
    /// The team.
    name: String,
    /// Do not ask for its name to be typed.
    #[arg(long)]
    yes: bool,
    /// Wait until workers have removed what was the team's, and tell how far they are.
    #[arg(long)]
    wait: bool,
}

/// Runs the command.
pub async fn run(args: RemoveArgs, db: &Db, output: Output) -> anyhow::Result<()> {
    let team = team_named(db, &args.name).await?;
    ensure!(
        team.name != DEFAULT_TEAM,
        "the team {DEFAULT_TEAM} stays: it is whoever calls without a key, and each start of the API makes it; \
         `weir key revoke` ends its keys"
    );
    let has = removal::holdings(db, team.id).await?;
    if !args.yes {
        confirm(&team.name, &has)?;
    }
    let mut tx = db.begin().await?;
    let is_marked = removal::mark(&mut tx, team.id, db.now()).await?;
    tx.commit().await?;
    ensure!(is_marked, "there is no team named {}", team.name);
    let stopped = removal::stop(db, &mut Slices::default(), team.id, db.now()).await;
    let stopped =
        stopped.context("the team is removed, but not all of it could be stopped: workers go on with that")?;
    if args.wait {
        wait(db, team.id, output).await?;
    }
    let json = json!({
        "id": team.id,
        "name": team.name,
        "had": had_json(&has),
        "stopped": {
            "jobs": stopped.jobs,
            "monitors": stopped.monitors,
            "sessions": stopped.sessions,
            "webhooks": stopped.deliveries,
        },
    });
    output.show(&json, || {
        let rest = match args.wait {
            true => "nothing is left of it but its mark, which stays for twenty minutes",
            false => "workers remove what it had: `weir team list` shows it until nothing is left",
        };
        format!(
            "team {} is removed: its keys are refused, and {} jobs, {} monitors, {} browser sessions and {} webhooks of it have \
             ended; {rest}",
            plain(&team.name),
            stopped.jobs,
            stopped.monitors,
            stopped.sessions,
            stopped.deliveries,
        )
    });
    Ok(())
}

fn had_json(has: &Holdings) -> serde_json::Value {
    json!({
        "keys": has.keys,
        "jobs": has.jobs,
        "runningJobs": has.running,
        "documents": has.documents,
        "monitors": has.monitors,
        "sessions": has.sessions,
        "profiles": has.profiles,
        "files": has.files,
        "bytes": has.bytes,
    })
}

/// What goes, in words.
fn had_text(name: &str, has: &Holdings) -> String {
    format!(
        "team {} has {} keys, {} jobs ({} of them run) with {} documents, {} monitors, {} browser sessions, {} profiles and {} \
         files that were sent; documents, tracked pages and profiles take {:.1} MiB. All of it goes for good, with its cached \
         pages, usage and credits.",
        plain(name),
        has.keys,
        has.jobs,
        has.running,
        has.documents,
        has.monitors,
        has.sessions,
        has.profiles,
        has.files,
        has.bytes as f64 / f64::from(1 << 20),
    )
}

/// Tells what goes, and wants the name typed.
fn confirm(name: &str, has: &Holdings) -> anyhow::Result<()> {
    complain(format_args!("{}", had_text(name, has)));
    complain(format_args!("Type the team's name to remove it:"));
    let mut typed = String::new();
    std::io::stdin().read_line(&mut typed).context("cannot read from standard input")?;
    match typed.trim_end_matches(['\r', '\n']) {
        typed if typed == name => Ok(()),
        "" => bail!("nothing is removed; --yes is for where nobody can type"),
        _ => bail!("that is not the team's name: nothing is removed"),
    }
}

/// Waits until workers have removed everything that an index leads to.
async fn wait(db: &Db, team: TeamId, output: Output) -> anyhow::Result<()> {
    let mut told = None;
    loop {
        let left = removal::left(db, team).await?;
        if left.tables.is_empty() {
            return Ok(());
        }
        if !output.json && told.as_ref() != Some(&left) {
            say(format_args!("{} jobs are left, and rows of {}", left.jobs, left.tables.join(", ")));
        }
        told = Some(left);
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_asked_reads_all_that_goes() {
        let has = Holdings {
            keys: 2,
            jobs: 14,
            running: 1,
            documents: 230,
            monitors: 3,
            sessions: 4,
            profiles: 5,
            files: 6,
            bytes: 3 << 19,
        };
        let text = had_text("ac\u{1b}me", &has);
        for part in
            ["ac\u{fffd}me", "2 keys", "14 jobs (1 of them run)", "230 documents", "3 monitors", "1.5 MiB", "usage"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(had_json(&has)["runningJobs"], 1);
    }
}
