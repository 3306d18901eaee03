//! `weir key …`.

use anyhow::{Context, bail};
use clap::Subcommand;
use serde_json::json;
use weir_shared::ids::KeyId;
use weir_shared::store::Db;
use weir_shared::store::accounts::keys;

use super::database::{commit, team_filter, team_named};
use super::output::{Output, or_dash};

#[derive(Subcommand)]
pub enum KeyCommand {
    /// Make a key for a team and print it, this once.
    Create {
        /// Whose key it is.
        #[arg(long)]
        team: String,
        /// What it is for, as lists show it.
        #[arg(long)]
        name: Option<String>,
    },
    /// Show keys by their first characters.
    List {
        /// Only those of this team.
        #[arg(long)]
        team: Option<String>,
    },
    /// End a key, named by its id or by itself.
    Revoke {
        /// Its id, or the whole key.
        key: String,
    },
}

/// Runs `weir key …`.
pub async fn run(command: KeyCommand, db: &Db, output: Output) -> anyhow::Result<()> {
    match command {
        KeyCommand::Create { team, name } => {
            let team = team_named(db, &team).await?;
            let mut tx = db.begin().await?;
            let made = keys::create(&mut tx, team.id, db.now()).await?;
            if let Some(name) = &name {
                keys::rename(&mut tx, made.id, Some(name)).await?;
            }
            // A key that was made and never shown would open the door for nobody knows whom.
            let is_made = || async { Ok(keys::load(db, made.id).await?.is_some()) };
            let unknown = || {
                let (team, id) = (&team.name, made.id);
                format!(
                    "whether the key was made is not known, for the answer to that was lost: if `weir key list --team {team}` \
                     shows {id}, end it by `weir key revoke {id}`, and make another one"
                )
            };
            commit(db, tx, is_made, unknown).await?;
            let json = json!({"key": made.key, "id": made.id, "team": team.name, "name": name});
            output.show(&json, || made.key.clone());
        }
        KeyCommand::List { team } => list(db, output, team.as_deref()).await?,
        KeyCommand::Revoke { key } => {
            let id = find(db, &key).await?;
            let mut tx = db.begin().await?;
            if !keys::revoke(&mut tx, id, db.now()).await? {
                bail!("there is no such key, or it is revoked already");
            }
            let is_revoked = || async { Ok(keys::load(db, id).await?.is_some_and(|key| key.revoked_at.is_some())) };
            let unknown = || {
                format!(
                    "whether the key is revoked is not known, for the answer to that was lost: `weir key list` says so of {id}, \
                     and it does no harm to revoke it once more"
                )
            };
            commit(db, tx, is_revoked, unknown).await?;
            output.show(&json!({"id": id, "revoked": true}), || format!("key {id} is revoked"));
        }
    }
    Ok(())
}

async fn find(db: &Db, key: &str) -> anyhow::Result<KeyId> {
    if let Ok(id) = key.parse() {
        return Ok(id);
    }
    let found = keys::find(db, &keys::digest(key)).await?;
    found.map(|(id, _)| id).context("there is no such key, or it is revoked already")
}

async fn list(db: &Db, output: Output, team: Option<&str>) -> anyhow::Result<()> {
    let team = team_filter(db, team).await?;
    let rows = keys::list(db, team).await?.into_iter().map(|key| {
        let revoked = key.revoked_at.map(|at| at.to_iso());
        let used = key.last_used_at.map(|at| at.to_iso());
        let json = json!({
            "id": key.id,
            "team": key.team,
            "prefix": key.prefix,
            "name": key.name,
            "createdAt": key.created_at.to_iso(),
            "lastUsedAt": used,
            "revokedAt": revoked,
        });
        let shown = format!("{}\u{2026}", key.prefix);
        let name = or_dash(key.name);
        let created = key.created_at.to_iso();
        (json, vec![key.id.to_string(), key.team, shown, name, created, or_dash(used), or_dash(revoked)])
    });
    output.list(&["ID", "TEAM", "KEY", "NAME", "CREATED", "LAST USED", "REVOKED"], rows.collect());
    Ok(())
}
