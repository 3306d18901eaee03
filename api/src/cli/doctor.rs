//! `weir doctor`: whether this machine has what the service needs; one line a check.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use serde_json::json;
use weir_shared::blobs::{Blobs, BlobsUrl};
use weir_shared::config::{DatabaseUrl, SandboxChoice, Settings};
use weir_shared::store::{self, Db, PoolUse, clock, nodes};

use super::output::Output;
use crate::server;

/// Least free space where data and blobs lie, bytes: below it writes fail soon.
const LEAST_FREE: u64 = 1024 * 1024 * 1024;
/// Most that the database's clock may differ from ours, milliseconds.
const CLOCK_SLACK_MS: i64 = 5_000;
/// A user without rights, for checks of what unprivileged processes may do.
const NOBODY: u32 = 65_534;
/// Names of browsers that can be used, best first.
const BROWSERS: &[&str] =
    &["chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome-stable"];
/// Where Debian keeps the headless shell, off PATH.
const BROWSER_FOLDERS: &[&str] = &["/usr/lib/chromium", "/usr/lib/chromium-browser", "/opt/chrome-headless-shell"];

/// Runs every check, whatever the others said.
pub async fn run(settings: &Settings, output: Output) -> anyhow::Result<ExitCode> {
    let database = connect(settings).await;
    let checks = [
        ("database", database.as_ref().map(|_| database_name(settings)).map_err(|e| anyhow::anyhow!("{e:#}"))),
        ("chromium", chromium(settings.browser.chromium.as_deref())),
        ("sandbox", sandbox(settings.browser.sandbox)),
        (
            "sessions",
            match &database {
                Ok(db) => sessions(db).await,
                Err(_) => Err(anyhow::anyhow!("cannot be told without the database")),
            },
        ),
        ("blobs", blobs(settings.blobs.clone()).await),
        ("disk", disk(settings)),
        (
            "clock",
            match &database {
                Ok(db) => clocks(db).await,
                Err(_) => Err(anyhow::anyhow!("cannot be compared without the database")),
            },
        ),
    ];
    let failed = checks.iter().any(|(_, outcome)| outcome.is_err());
    let rows = checks.iter().map(|(name, outcome)| {
        let (ok, text) = match outcome {
            Ok(text) => (true, text.clone()),
            Err(error) => (false, format!("{error:#}")),
        };
        let word = if ok { "ok" } else { "FAIL" };
        (json!({"check": name, "ok": ok, "detail": text}), vec![word.to_owned(), (*name).to_owned(), text])
    });
    if output.json {
        output.list(&[], rows.collect());
    } else {
        for (_, cells) in rows {
            println!("{:4}  {:9} {}", cells[0], cells[1], cells[2]);
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn connect(settings: &Settings) -> anyhow::Result<Db> {
    let db = server::connect(settings, PoolUse::Rows).await?;
    db.ping().await?;
    Ok(db)
}

/// The database without its password.
fn database_name(settings: &Settings) -> String {
    match &settings.database_url {
        DatabaseUrl::Sqlite(path) => format!("SQLite, {}", path.display()),
        DatabaseUrl::Postgres(text) => match url::Url::parse(text) {
            Ok(url) => format!("Postgres, {}{}", url.host_str().unwrap_or("local socket"), url.path()),
            Err(_) => "Postgres".to_owned(),
        },
    }
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.mode() & 0o111 != 0)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| is_program(file))
}

fn chromium(configured: Option<&Path>) -> anyhow::Result<String> {
    let found = match configured {
        Some(path) if is_program(path) => path.to_owned(),
        Some(path) => bail!("WEIR_CHROMIUM={} is not a program", path.display()),
        None => {
            let find = |name: &&str| {
                let folders = BROWSER_FOLDERS.iter().map(|folder| Path::new(folder).join(name));
                folders.into_iter().find(|file| is_program(file)).or_else(|| on_path(name))
            };
            BROWSERS.iter().find_map(find).context("none found; install chromium, or set WEIR_CHROMIUM")?
        }
    };
    let version = Command::new(&found).arg("--version").stderr(Stdio::null()).output();
    let version = version.with_context(|| format!("cannot run {}", found.display()))?;
    if !version.status.success() {
        bail!("{} --version failed: {}", found.display(), version.status);
    }
    Ok(format!("{}, {}", found.display(), String::from_utf8_lossy(&version.stdout).trim()))
}

/// Whether an unprivileged process can make namespaces of its own: Chromium's sandbox and bubblewrap need it.
fn sandbox(wanted: SandboxChoice) -> anyhow::Result<String> {
    if wanted == SandboxChoice::Off {
        return Ok("switched off by WEIR_SANDBOX=off".to_owned());
    }
    let bwrap = on_path("bwrap").context("bubblewrap (bwrap) is missing; install it, or set WEIR_SANDBOX=off")?;
    let mut probe = Command::new("unshare");
    probe.args(["-U", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
    if is_root {
        probe.uid(NOBODY).gid(NOBODY).current_dir("/");
    }
    match probe.status() {
        Ok(status) if status.success() => Ok(format!("user namespaces work, {}", bwrap.display())),
        Ok(_) => bail!("unprivileged user namespaces are forbidden here; allow them, or set WEIR_SANDBOX=off"),
        Err(error) => Err(error).context("cannot run unshare (package util-linux)"),
    }
}

/// What the live workers offer for browser sessions; one that refuses them on its machine fails the check.
async fn sessions(db: &Db) -> anyhow::Result<String> {
    let now = db.now();
    // An installation that was not started yet has no tables.
    let Ok(live) = nodes::live(db, now).await else { return Ok("no worker was started yet".to_owned()) };
    if let Some((node, why)) = live.iter().find_map(|node| Some((node, node.sessions_refused.as_ref()?))) {
        bail!("worker {} refuses them: {why}", node.name);
    }
    if live.is_empty() {
        return Ok("no worker is running".to_owned());
    }
    let counts = store::sessions::counts(db, now).await?;
    let taken = counts.opening + counts.active + counts.closing;
    // Tables of an earlier release do not have them.
    let told = nodes::box_limits(db, now).await.unwrap_or_default();
    let mut limits: Vec<String> = told.into_iter().map(|(_, limits)| limits).collect();
    limits.sort_unstable();
    limits.dedup();
    let limits = limits.join("; ");
    Ok(format!("{taken} of {} slots taken, workers: {}, limits of boxes: {limits}", counts.slots, live.len()))
}

/// Whether blobs can be written where they are to lie.
async fn blobs(url: BlobsUrl) -> anyhow::Result<String> {
    let name = url.to_string();
    tokio::task::spawn_blocking(move || Blobs::at(&url)?.check()).await??;
    Ok(format!("{name} takes them"))
}

fn disk(settings: &Settings) -> anyhow::Result<String> {
    let data = match &settings.database_url {
        DatabaseUrl::Sqlite(path) => path.parent().map(Path::to_owned),
        DatabaseUrl::Postgres(_) => None,
    };
    let blobs = match &settings.blobs {
        BlobsUrl::Folder(folder) => Some(folder.as_path()),
        BlobsUrl::Bucket { .. } => None,
    };
    let mut lines = Vec::new();
    for (name, folder) in [("data", data.as_deref()), ("blobs", blobs)] {
        let Some(folder) = folder else { continue };
        let free = free_bytes(folder)?;
        let text = format!("{name} in {}: {:.1} GiB free", folder.display(), free as f64 / LEAST_FREE as f64);
        if free < LEAST_FREE {
            bail!("{text}, at least 1 GiB is needed");
        }
        lines.push(text);
    }
    Ok(lines.join("; "))
}

/// Free space for unprivileged processes at a folder, or at the nearest one above that exists.
fn free_bytes(folder: &Path) -> anyhow::Result<u64> {
    let absolute = std::path::absolute(folder)?;
    let existing = absolute.ancestors().find(|f| f.exists()).unwrap_or(Path::new("/"));
    let output = Command::new("df").args(["-Pk", "--"]).arg(existing).output().context("cannot run df")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let kilobytes = text.lines().nth(1).and_then(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
    let kilobytes = kilobytes.with_context(|| format!("df says nothing about {}", existing.display()))?;
    Ok(kilobytes.saturating_mul(1_024))
}

async fn clocks(db: &Db) -> anyhow::Result<String> {
    let theirs = clock::database_time(db).await?;
    let difference = theirs.0 - weir_shared::clock::of_machine().0;
    if difference.abs() > CLOCK_SLACK_MS {
        bail!("the database's clock differs by {:.1} s; set the clocks", difference as f64 / 1_000.0);
    }
    Ok(format!("within {} ms of the database's", difference.abs()))
}
