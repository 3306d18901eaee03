//! Bringing a backup back.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::json;
use weir_shared::blobs::Blobs;
use weir_shared::config::{DatabaseUrl, Settings};
use weir_shared::store::db::copies;
use weir_shared::store::{Db, PoolUse};
use weir_shared::texts::counted;
use weir_shared::{blocking, private};

use super::folder::{BackupFolder, Key, Kind, Manifest};
use crate::callers::first_key;
use crate::cli::output::{Output, complain};
use crate::server;

pub async fn run(root: &Path, settings: &Settings, output: Output) -> anyhow::Result<()> {
    let (folder, manifest) = BackupFolder::open(root)?;
    let kind = Kind::of(&settings.database_url);
    if manifest.database != kind {
        bail!("the backup is of {}, and DATABASE_URL is {}'s", manifest.database.name(), kind.name());
    }
    check_user(settings)?;
    check_is_empty(settings).await?;
    let api_key = api_key_to_write(&folder, settings)?;
    check_internal_secret(&folder, settings)?;

    let (from, to) = (folder.blobs()?, Blobs::at(&settings.blobs)?);
    let copied = blocking::run(move || {
        let found = from.list()?;
        from.copy_to(&to, &found, &to.list()?)
    });
    copied.await?.context("blobs")?;
    if let Some(key) = api_key {
        first_key::write(&settings.api.api_key_file, &key)?;
    }
    load_database(&settings.database_url, folder.database(kind)).await?;

    say(root, &manifest, output);
    Ok(())
}

/// Fails where root would bring what the service's user could not read: where everything is to lie in the folder of
/// somebody else.
fn check_user(settings: &Settings) -> anyhow::Result<()> {
    let DatabaseUrl::Sqlite(path) = &settings.database_url else { return Ok(()) };
    let path = std::path::absolute(path)?;
    let Some(folder) = path.ancestors().skip(1).find(|folder| folder.is_dir()) else { return Ok(()) };
    let owner = std::fs::metadata(folder)?.uid();
    if private::own_uid() == 0 && owner != 0 {
        bail!(
            "{} belongs to the user {owner}, who could not read what root brings: give the command as that user, \
             as in `setpriv --reuid {owner} --clear-groups weir restore FOLDER` or `runuser -u weir -- weir restore FOLDER`",
            folder.display()
        );
    }
    Ok(())
}

/// Fails where there is a database already: what is in it would be lost, or mixed with the backup.
async fn check_is_empty(settings: &Settings) -> anyhow::Result<()> {
    match &settings.database_url {
        DatabaseUrl::Sqlite(path) if path.exists() => bail!(
            "there is a database at {}: stop the service, and move the file away with those beside it ({0}-wal, {0}-shm)",
            path.display()
        ),
        DatabaseUrl::Sqlite(_) => Ok(()),
        DatabaseUrl::Postgres(_) => {
            let db = server::connect(settings, PoolUse::Commands).await?;
            let Db::Postgres(pool) = &db else { bail!("the address is Postgres's, the pool is not") };
            let is_empty = copies::is_empty_postgres(pool).await?;
            db.close().await;
            if !is_empty {
                bail!("the database of DATABASE_URL is not empty: name a new one, or drop it and create it again");
            }
            Ok(())
        }
    }
}

/// The default team's key, if it has to go to the key file.
fn api_key_to_write(folder: &BackupFolder, settings: &Settings) -> anyhow::Result<Option<String>> {
    let Some(saved) = folder.key(Key::Api)? else { return Ok(None) };
    if let Some(given) = &settings.api.api_key {
        if *given != saved {
            complain(format_args!(
                "WEIR_API_KEY is another key than the backup's, which stays a key of the default team as well"
            ));
        }
        return Ok(None);
    }
    let file = &settings.api.api_key_file;
    match first_key::read(file)? {
        Some(there) if there != saved => {
            bail!("{} holds another key than the backup: move it away", file.display())
        }
        _ => Ok(Some(saved)),
    }
}

/// Profiles and the addresses of sessions are made with this secret: with another one they could not be read.
fn check_internal_secret(folder: &BackupFolder, settings: &Settings) -> anyhow::Result<()> {
    match (folder.key(Key::Internal)?, &settings.internal_secret) {
        (Some(saved), Some(given)) if saved == *given => Ok(()),
        (None, None) => Ok(()),
        (Some(_), _) => bail!("set WEIR_INTERNAL_SECRET to what stands in the backup's file internal-secret"),
        (None, Some(_)) => bail!("the backup has its internal secret in its database: unset WEIR_INTERNAL_SECRET"),
    }
}

async fn load_database(url: &DatabaseUrl, from: PathBuf) -> anyhow::Result<()> {
    match url {
        DatabaseUrl::Sqlite(path) => load_sqlite(path, &from).await,
        DatabaseUrl::Postgres(url) => {
            let url = url.clone();
            blocking::run(move || copies::postgres::load(&url, &from)).await?
        }
    }
}

/// The file is there under its name when it is whole.
async fn load_sqlite(path: &Path, from: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    private::make_folder(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let beside = |tail: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(tail);
        PathBuf::from(name)
    };
    let draft = beside(".restoring");
    if let Err(error) = bring_sqlite(from, &draft).await {
        // It keeps a full disk full.
        let _ = std::fs::remove_file(&draft);
        return Err(error);
    }
    // Of a file that is gone; SQLite would take them for this one's.
    for tail in ["-wal", "-shm", "-journal"] {
        match std::fs::remove_file(beside(tail)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).context("what an older file left")?
            }
            _ => {}
        }
    }
    // Fails rather than replace one that somebody has made meanwhile.
    std::fs::hard_link(&draft, path).with_context(|| format!("cannot make {}", path.display()))?;
    std::fs::remove_file(&draft)?;
    File::open(folder)?.sync_all()?;
    Ok(())
}

async fn bring_sqlite(from: &Path, draft: &Path) -> anyhow::Result<()> {
    let mut file = private::file_options().create(true).truncate(true).open(draft)?;
    let mut saved = File::open(from).with_context(|| format!("cannot read {}", from.display()))?;
    std::io::copy(&mut saved, &mut file).with_context(|| format!("cannot write {}", draft.display()))?;
    file.sync_all()?;
    copies::check_sqlite(draft).await
}

fn say(root: &Path, manifest: &Manifest, output: Output) {
    let mut shown = json!(manifest);
    shown["folder"] = json!(root.display().to_string());
    output.show(&shown, || {
        let (kind, blobs) = (manifest.database.name(), counted(manifest.blobs, "blob"));
        format!("restored: {kind} as of {}, {blobs}; start the service", manifest.taken_at)
    });
}
