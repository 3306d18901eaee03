//! The default team and its key, so that a fresh installation can be used at once.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use weir_shared::config::ApiSettings;
use weir_shared::ids::TeamId;
use weir_shared::private;
use weir_shared::store::Db;
use weir_shared::store::accounts::keys::{self, Given};
use weir_shared::store::accounts::teams;

/// The default team's key at start.
#[derive(Debug, Clone)]
pub struct FirstKey {
    pub key: String,
    /// Made just now: the one time it is shown.
    pub is_new: bool,
}

/// Makes the default team and its key when they are missing. The key is `WEIR_API_KEY`, or the one in the key file,
/// or a new one, which is kept in that file with mode 0600.
///
/// # Errors
/// When the database or the key file cannot be read or written.
pub async fn ensure(db: &Db, settings: &ApiSettings) -> anyhow::Result<FirstKey> {
    let now = db.now();
    let mut tx = db.begin().await?;
    let team = teams::ensure_default(&mut tx, now).await?;
    let kept = match &settings.api_key {
        Some(key) => Some(key.clone()),
        None => read(&settings.api_key_file)?,
    };
    let mut is_added = false;
    let first = match kept {
        Some(key) => {
            match keys::ensure(&mut tx, team, &key, now).await? {
                Given::Added => is_added = true,
                Given::Usable => {}
                Given::Revoked => tracing::warn!("the default team's key was revoked and stays so"),
                Given::OtherTeams => tracing::warn!("the key given for the default team belongs to another team"),
            }
            FirstKey { key, is_new: false }
        }
        None => {
            let key = keys::create(&mut tx, team, now).await?.key;
            write(&settings.api_key_file, &key)?;
            FirstKey { key, is_new: true }
        }
    };
    tx.commit().await?;
    if is_added {
        tell_of_others(db, team).await?;
    }
    Ok(first)
}

/// Whoever gives another key because the one before is known to others must end that one, too.
async fn tell_of_others(db: &Db, team: TeamId) -> anyhow::Result<()> {
    let others =
        keys::list(db, Some(team)).await?.iter().filter(|key| key.revoked_at.is_none()).count().saturating_sub(1);
    if others > 0 {
        tracing::warn!(
            others,
            "the default team has a further key now, and its others open the door as before: `weir key list --team default` \
             shows them, `weir key revoke` ends one"
        );
    }
    Ok(())
}

/// The key in the key file, if there is one.
///
/// # Errors
/// When the file cannot be read.
pub fn read(file: &Path) -> anyhow::Result<Option<String>> {
    private::shut(file);
    match std::fs::read_to_string(file) {
        Ok(text) if !text.trim().is_empty() => Ok(Some(text.trim().to_owned())),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Err(error).with_context(|| {
            format!("cannot read {}: give it to the service's user (`chown`), or set WEIR_API_KEY", file.display())
        }),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Writes the key file.
///
/// # Errors
/// When it cannot be written.
pub fn write(file: &Path, key: &str) -> anyhow::Result<()> {
    let context = || format!("cannot write the key to {}", file.display());
    if let Some(folder) = file.parent() {
        private::make_folder(folder).with_context(context)?;
    }
    let mut handle = private::open(file).with_context(context)?;
    handle.set_len(0).with_context(context)?;
    writeln!(handle, "{key}").with_context(context)
}
