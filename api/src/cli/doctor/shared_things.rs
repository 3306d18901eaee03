//! What all processes of an installation meet in: the database, blobs, clocks, each other.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use weir_shared::blobs::{Blobs, BlobsUrl};
use weir_shared::config::{DatabaseUrl, Settings};
use weir_shared::store::db::{clock, migrations};
use weir_shared::store::work::nodes;
use weir_shared::store::{self, Db, PoolUse, Refusal, StoreError};
use weir_shared::texts::counted;
use weir_shared::wake;
use weir_shared::{blocking, private};

use super::finding::{Check, Finding};
use crate::cli::database::missing_file;
use crate::server;

/// Most that the database's clock may differ from ours, milliseconds: all follow the database's, so this is only told.
const CLOCK_SLACK_MS: i64 = 5_000;

pub(super) async fn checks(settings: &Settings) -> Vec<Check> {
    if let Some(path) = missing_file(settings) {
        return vec![("database", not_made_yet(settings, path)), ("blobs", blobs(settings).await)];
    }
    let db = match connect(settings).await {
        Ok(db) => db,
        Err(error) => {
            let mend = mend_database(&settings.database_url, &error);
            let database = Finding::bad(format!("{}: {error:#}", database_name(settings)), mend);
            return vec![("database", database), ("blobs", blobs(settings).await)];
        }
    };
    let mut checks = vec![("database", shape(settings, &db).await)];
    if let Db::Postgres(postgres) = &db {
        checks.push(("listen", listen(postgres, settings).await));
    }
    checks.push(("clock", clocks(&db).await));
    checks.push(("blobs", blobs(settings).await));
    // An installation that was not started yet has no tables.
    if let Ok(live) = nodes::live(&db, db.now()).await {
        checks.push(("one store", one_store(settings, &live).await));
        // Tables of an earlier release do not have them.
        let conditions = nodes::conditions(&db, db.now()).await.unwrap_or_default();
        checks.push(("browsers", browsers(live.len(), &conditions)));
        checks.push(("sessions", sessions(&db, &live, &conditions).await));
    }
    checks
}

async fn connect(settings: &Settings) -> anyhow::Result<Db> {
    let db = server::connect(settings, PoolUse::Rows).await?;
    match &db {
        // A file that can be read may still take nothing.
        Db::Sqlite(_) => db.try_write().await.map_err(cause)?,
        Db::Postgres(_) => db.ping().await?,
    }
    Ok(db)
}

/// What is below an error of the store.
fn cause(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Unavailable(error) => error.into(),
        error => error.into(),
    }
}

/// What helps against an error of the database.
fn mend_database(url: &DatabaseUrl, error: &anyhow::Error) -> &'static str {
    let path = match url {
        DatabaseUrl::Postgres(_) => {
            return match store::postgres_code(error).as_deref() {
                None | Some("57P03") => "start it, or set DATABASE_URL to where it is",
                Some("28P01" | "28000") => "set DATABASE_URL to a role and a password that it takes",
                Some("3D000") => "make that database (createdb), or name another one in DATABASE_URL",
                Some("53300") => "raise its max_connections, or end what has taken them",
                Some(_) => "look at the server's log",
            };
        }
        DatabaseUrl::Sqlite(path) => path,
    };
    match store::why_not_written(error, path) {
        Some(Refusal::Locked) => "see which process holds it (`fuser`), and end it",
        Some(Refusal::DiskFull) => "make room on its disk",
        Some(Refusal::ReadOnlyFileSystem) => {
            "mount its file system so that it can be written, or set DATABASE_URL to another place"
        }
        Some(Refusal::Denied) => "run it as the service's user, who must own the file and its folder (`chown`)",
        None => "see that it is SQLite's and whole, else restore a backup (`weir restore`)",
    }
}

/// What a first start finds where there is no file yet. None is made: whoever asks in another folder than the service's
/// would find it there later.
fn not_made_yet(settings: &Settings, path: &Path) -> Finding {
    let name = database_name(settings);
    let folder = path.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let draft = folder.join(format!(".weir-doctor-{}", weir_shared::random::id()));
    let made = private::file_options().create_new(true).open(&draft).and_then(|_| std::fs::remove_file(&draft));
    match made {
        Ok(()) => Finding::good(format!("{name}: not there yet; `weir serve` or `weir migrate` makes it")),
        Err(error) => Finding::bad(
            format!("{name}: not there, and cannot be made: {error}"),
            "run it as the service's user, in the service's folder, or set DATABASE_URL to where it is",
        ),
    }
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

/// Whether the database has the tables of this build.
async fn shape(settings: &Settings, db: &Db) -> Finding {
    let name = database_name(settings);
    match migrations::shape(db).await {
        Ok(shape) if !shape.damaged.is_empty() => {
            let damaged = shape.damaged.join(", ");
            Finding::bad(format!("{name}: changed or broken off: {damaged}"), "restore a backup (`weir restore`)")
        }
        Ok(shape) if !shape.missing.is_empty() => {
            let count = counted(shape.missing.len(), "migration");
            Finding::good(format!("{name}; {count} to be applied by `weir migrate` or `weir serve`"))
        }
        Ok(shape) if !shape.newer.is_empty() => Finding::weak(
            format!("{name} is newer than this program: {}", shape.newer.join(", ")),
            "install the release that has these",
        ),
        Ok(_) => Finding::good(name),
        Err(error) => Finding::bad(format!("{name}: {error}"), "look at the server's log"),
    }
}

async fn listen(postgres: &store::PostgresDb, settings: &Settings) -> Finding {
    let mend = "set DATABASE_LISTEN_URL to the server itself, or have the pooler lend its connections by session";
    match wake::can_hear(&postgres.pool, settings.listen_url.as_deref()).await {
        Ok(true) => Finding::good("notifications arrive"),
        Ok(false) => Finding::bad("LISTEN hears nothing, as through a pooler: every wait is up to 1.5 s longer", mend),
        Err(error) => Finding::bad(format!("{error:#}"), mend),
    }
}

async fn clocks(db: &Db) -> Finding {
    let theirs = match clock::database_time(db).await {
        Ok(theirs) => theirs,
        Err(error) => return Finding::bad(format!("the database does not tell the time: {error}"), "see database"),
    };
    let difference = theirs.0 - weir_shared::clock::of_machine().0;
    if difference.abs() > CLOCK_SLACK_MS {
        let what = format!("the database's clock differs by {:.1} s", difference as f64 / 1_000.0);
        return Finding::bad(what, "set the clocks (chrony or systemd-timesyncd on both machines)");
    }
    Finding::good(format!("within {} ms of the database's", difference.abs()))
}

/// Whether blobs can be written where they are to lie.
async fn blobs(settings: &Settings) -> Finding {
    let (url, name) = (settings.blobs.clone(), settings.blobs.to_string());
    let tried = blocking::run(move || Blobs::at(&url)?.check()).await.map_err(anyhow::Error::from);
    match tried.flatten() {
        Ok(()) => Finding::good(format!("{name} takes them")),
        Err(error) => Finding::bad(format!("{name}: {error:#}"), mend_blobs(&settings.blobs, &error)),
    }
}

/// What helps where blobs cannot be written.
fn mend_blobs(url: &BlobsUrl, error: &anyhow::Error) -> &'static str {
    if matches!(url, BlobsUrl::Bucket { .. }) {
        return "check WEIR_BLOBS and the settings AWS_*";
    }
    match error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>()).map(std::io::Error::kind) {
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => "make room on the disk of the folder",
        Some(ErrorKind::ReadOnlyFilesystem) => {
            "mount its file system so that it can be written, or name another folder in WEIR_BLOBS"
        }
        Some(ErrorKind::PermissionDenied) => {
            "run it as the service's user, who must own the folder (`chown`), or name another one in WEIR_BLOBS"
        }
        _ => "name a folder in WEIR_BLOBS that can be made and written",
    }
}

/// Whether the live workers of other machines have their blobs where this process has them.
async fn one_store(settings: &Settings, live: &[nodes::NodeRow]) -> Finding {
    let hosts: BTreeSet<&str> = live.iter().map(|node| node.host.as_str()).collect();
    if hosts.len() < 2 || matches!(settings.blobs, BlobsUrl::Bucket { .. }) {
        return Finding::good(format!("machines with workers: {}", hosts.len()));
    }
    let (url, hosts): (_, Vec<String>) = (settings.blobs.clone(), hosts.into_iter().map(str::to_owned).collect());
    let look = move || {
        let blobs = Blobs::at(&url)?;
        anyhow::Ok(hosts.into_iter().filter(|host| !blobs.has_sign(host)).collect::<Vec<_>>())
    };
    let elsewhere = blocking::run(look).await.map_err(anyhow::Error::from).flatten().unwrap_or_default();
    let names: Vec<&str> =
        live.iter().filter(|node| elsewhere.contains(&node.host)).map(|node| node.name.as_str()).collect();
    if names.is_empty() {
        return Finding::good("workers of several machines use this folder");
    }
    Finding::bad(
        format!("workers whose blobs lie elsewhere than {}: {}", settings.blobs, names.join(", ")),
        "set WEIR_BLOBS everywhere to one bucket (s3://…) or one shared folder",
    )
}

/// Whether the live workers can start the browsers of pages; one that says it cannot fails the check.
fn browsers(live: usize, conditions: &[nodes::Condition]) -> Finding {
    if let Some((node, why)) = conditions.iter().find_map(|node| Some((node, node.browser_problem.as_ref()?))) {
        let what = format!("worker {} can start none, and pages that need one fail there: {why}", node.name);
        return Finding::bad(what, "run `weir doctor` on its machine; the worker goes on by itself once a start works");
    }
    match live {
        0 => Finding::good("no worker is running"),
        _ => Finding::good("no worker has trouble with its browsers for pages"),
    }
}

/// What the live workers offer for browser sessions; one that refuses them on its machine fails the check.
async fn sessions(db: &Db, live: &[nodes::NodeRow], conditions: &[nodes::Condition]) -> Finding {
    if let Some((node, why)) = live.iter().find_map(|node| Some((node, node.sessions_refused.as_ref()?))) {
        return Finding::bad(format!("worker {} refuses them: {why}", node.name), "run `weir doctor` on its machine");
    }
    if live.is_empty() {
        return Finding::good("no worker is running");
    }
    let Ok(counts) = store::sessions::counts(db, db.now()).await else {
        return Finding::bad("they cannot be counted", "see database");
    };
    let taken = counts.opening + counts.active + counts.closing;
    let limits: BTreeSet<&str> = conditions.iter().filter_map(|one| one.box_limits.as_deref()).collect();
    let limits = limits.into_iter().collect::<Vec<_>>().join("; ");
    Finding::good(format!(
        "{taken} of {} slots taken, workers: {}, limits of boxes: {limits}",
        counts.slots,
        live.len()
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn what_helps_is_told_by_what_is_wrong() {
        let of_system = |kind: ErrorKind| anyhow::Error::from(std::io::Error::from(kind)).context("cannot open");
        let folder = std::env::temp_dir();
        let file = DatabaseUrl::Sqlite(folder.join(format!("{}.db", weir_shared::random::id())));
        for (kind, word) in [
            (ErrorKind::StorageFull, "room"),
            (ErrorKind::PermissionDenied, "chown"),
            (ErrorKind::InvalidData, "weir restore"),
        ] {
            assert!(mend_database(&file, &of_system(kind)).contains(word), "{kind}");
        }
        let server = DatabaseUrl::Postgres("postgres://db/weir".to_owned());
        assert!(mend_database(&server, &of_system(ErrorKind::ConnectionRefused)).contains("start it"));
        let blobs = BlobsUrl::Folder(folder);
        for (kind, word) in [
            (ErrorKind::StorageFull, "room"),
            (ErrorKind::ReadOnlyFilesystem, "mount"),
            (ErrorKind::PermissionDenied, "chown"),
            (ErrorKind::NotADirectory, "WEIR_BLOBS"),
        ] {
            assert!(mend_blobs(&blobs, &of_system(kind)).contains(word), "{kind}");
        }
    }
}
