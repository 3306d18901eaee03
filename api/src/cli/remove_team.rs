//! `weir team remove`: what a team has is told and asked about, then it is gone for its callers; workers remove the rest.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::json;
use weir_shared::ids::TeamId;
use weir_shared::store::Db;
use weir_shared::store::accounts::teams::{self, DEFAULT_TEAM};
use weir_shared::store::db::slices::Slices;
use weir_shared::store::upkeep::removal::{self, Holdings, Stopped};
use weir_shared::texts::counted;

use super::database::commit;
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
    let (team, was_removed) = find(db, &args.name).await?;
    ensure!(
        args.name != DEFAULT_TEAM,
        "the team {DEFAULT_TEAM} stays: it is whoever calls without a key, and each start of the API makes it; \
         `weir key revoke` ends its keys"
    );
    let has = removal::holdings(db, team).await?;
    if !args.yes && !was_removed {
        confirm(&args.name, &has)?;
    }
    let is_new = !was_removed && mark(db, team, &args.name).await?;
    let stopped = removal::stop(db, &mut Slices::default(), team, db.now()).await;
    let stopped =
        stopped.context("the team is removed, but not all of it could be stopped: workers go on with that")?;
    if args.wait {
        wait(db, team, output).await?;
    }
    let json = json!({
        "id": team,
        "name": args.name,
        "wasRemoved": !is_new,
        "had": had_json(&has),
        "stopped": {
            "jobs": stopped.jobs,
            "monitors": stopped.monitors,
            "sessions": stopped.sessions,
            "webhooks": stopped.deliveries,
        },
    });
    output.show(&json, || done_text(&args, is_new, &stopped));
    Ok(())
}

/// The team of this name, and whether it is removed already: whoever was not told of that, because the answer was lost, gives
/// the command once more.
async fn find(db: &Db, name: &str) -> anyhow::Result<(TeamId, bool)> {
    if let Some(team) = teams::by_name(db, name).await? {
        return Ok((team.id, team.removed_at.is_some()));
    }
    let removed = removal::once_named(db, name).await?;
    Ok((removed.with_context(|| format!("there is no team named {name}"))?, true))
}

/// Marks the team. `false`: somebody else has done so meanwhile.
async fn mark(db: &Db, team: TeamId, name: &str) -> anyhow::Result<bool> {
    let mut tx = db.begin().await?;
    if !removal::mark(&mut tx, team, db.now()).await? {
        return Ok(false);
    }
    let unknown = || {
        format!(
            "whether the team is removed is not known, for the answer to that was lost: it does no harm to give `weir team \
             remove {name}` once more"
        )
    };
    commit(db, tx, || removal::is_marked(db, team), unknown).await?;
    Ok(true)
}

/// What came of it, in words.
fn done_text(args: &RemoveArgs, is_new: bool, stopped: &Stopped) -> String {
    let rest = match args.wait {
        true => "nothing is left of it but its mark, which stays for twenty minutes",
        false => "workers remove what it had: `weir team list` shows it until nothing is left",
    };
    let already = if is_new { "" } else { " already" };
    format!(
        "team {} is removed{already}: its keys are refused; of it have ended now {}, {}, {} and {}; {rest}",
        plain(&args.name),
        counted(stopped.jobs, "job"),
        counted(stopped.monitors, "monitor"),
        counted(stopped.sessions, "browser session"),
        counted(stopped.deliveries, "webhook"),
    )
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
        "team {} has {}, {} (running: {}) with {}, {}, {}, {} and {} that {} sent; documents, tracked pages and profiles take \
         {:.1} MiB. All of it goes for good, with its cached pages, usage and credits.",
        plain(name),
        counted(has.keys, "key"),
        counted(has.jobs, "job"),
        has.running,
        counted(has.documents, "document"),
        counted(has.monitors, "monitor"),
        counted(has.sessions, "browser session"),
        counted(has.profiles, "profile"),
        counted(has.files, "file"),
        if has.files == 1 { "was" } else { "were" },
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
            say(format_args!("left: {}, and rows of {}", counted(left.jobs, "job"), left.tables.join(", ")));
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
            files: 1,
            bytes: 3 << 19,
        };
        let text = had_text("ac\u{1b}me", &has);
        for part in [
            "ac\u{fffd}me",
            "2 keys",
            "14 jobs (running: 1)",
            "230 documents",
            "3 monitors",
            "1 file that was",
            "1.5 MiB",
            "usage",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(had_json(&has)["runningJobs"], 1);
    }
}
