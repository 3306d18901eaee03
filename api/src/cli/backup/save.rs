//! Making a backup.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::json;
use weir_shared::blobs::{Blobs, Copied};
use weir_shared::blocking;
use weir_shared::config::{ApiSettings, DatabaseUrl, Settings};
use weir_shared::store::Db;
use weir_shared::store::accounts::teams;
use weir_shared::store::db::copies;
use weir_shared::texts::counted;

use super::folder::{BackupFolder, Key, Kind, Manifest};
use crate::callers::first_key;
use crate::cli::database;
use crate::cli::output::Output;

pub async fn run(root: &Path, settings: &Settings, output: Output) -> anyhow::Result<()> {
    let db = database::open(settings).await?;
    let installation = teams::default_id(&db).await?;
    let (folder, kind) = (BackupFolder::make(root)?, Kind::of(&settings.database_url));
    folder.check_is_of(installation)?;
    let (from, to) = (Blobs::at(&settings.blobs)?, folder.blobs()?);

    let (from, to, before, first) = bring(from, to, BTreeMap::new()).await.context("blobs")?;
    let taken_at = db.now().to_iso();
    if let Err(error) = copy_database(&db, &settings.database_url, folder.new_database()).await {
        // It keeps a full disk full.
        let _ = folder.forget_new_database();
        return Err(error);
    }
    let (_, to, blobs, second) = bring(from, to, before).await.context("blobs")?;
    folder.keep_database(kind)?;
    folder.keep_key(Key::Api, api_key(&settings.api)?.as_deref())?;
    folder.keep_key(Key::Internal, settings.internal_secret.as_deref())?;
    let manifest = Manifest::new(installation, kind, taken_at, blobs.len(), blobs.values().sum());
    folder.keep_manifest(&manifest)?;
    folder.forget_other_database(kind)?;
    // Only now: what an older backup needed stays until the newer one is whole.
    to.keep_only(&blobs)?;
    db.close().await;

    let copied = Copied { blobs: first.blobs + second.blobs, bytes: first.bytes + second.bytes, gone: 0 };
    let mut shown = json!(manifest);
    shown["folder"] = json!(root.display().to_string());
    shown["copied"] = json!({ "blobs": copied.blobs, "bytes": copied.bytes });
    output.show(&shown, || {
        format!(
            "{}: {}, {} of {:.1} MB; new: {}",
            root.display(),
            kind.name(),
            counted(manifest.blobs, "blob"),
            manifest.blob_bytes as f64 / 1e6,
            copied.blobs,
        )
    });
    Ok(())
}

/// Brings the blobs that there are now, beside those that `known` has. Returns what the backup is to keep.
async fn bring(
    from: Blobs,
    to: Blobs,
    known: BTreeMap<String, u64>,
) -> anyhow::Result<(Blobs, Blobs, BTreeMap<String, u64>, Copied)> {
    let work = move || {
        let (found, there) = (from.list()?, to.list()?);
        let copied = from.copy_to(&to, &found, &there)?;
        let mut all = known;
        all.extend(found);
        // What went away while it was being copied no row of the copy names.
        let there = to.list()?;
        all.retain(|key, _| there.contains_key(key));
        anyhow::Ok((from, to, all, copied))
    };
    blocking::run(work).await?
}

async fn copy_database(db: &Db, url: &DatabaseUrl, to: PathBuf) -> anyhow::Result<()> {
    match (db, url) {
        (Db::Sqlite(db), _) => copies::copy_sqlite(db, &to).await,
        (Db::Postgres(_), DatabaseUrl::Postgres(url)) => {
            let url = url.clone();
            // Its file would be open to others otherwise.
            weir_shared::private::file_options().create_new(true).open(&to)?;
            blocking::run(move || {
                copies::postgres::dump(&url, &to)?;
                anyhow::Ok(std::fs::File::open(&to)?.sync_all()?)
            })
            .await?
        }
        (Db::Postgres(_), DatabaseUrl::Sqlite(_)) => bail!("the address is SQLite's, the pool is not"),
    }
}

/// The default team's key, wherever it comes from.
fn api_key(settings: &ApiSettings) -> anyhow::Result<Option<String>> {
    match &settings.api_key {
        Some(key) => Ok(Some(key.clone())),
        None => first_key::read(&settings.api_key_file),
    }
}
