//! Teams: tenants with their limits. Everything a caller owns belongs to one.

use std::collections::BTreeMap;

use crate::ids::TeamId;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

use super::team_lock;

/// Name of the team that callers without a key belong to (`WEIR_AUTH=open`) and that owns the first key.
pub const DEFAULT_TEAM: &str = "default";

/// A team as stored. `None` in a limit means the installation's setting.
#[derive(Debug, Clone, PartialEq)]
pub struct TeamRow {
    pub id: TeamId,
    pub name: String,
    /// Pages in work at once over all workers.
    pub concurrency: Option<i64>,
    /// Browser sessions at once.
    pub sessions: Option<i64>,
    /// Pages that may wait at once over all of its jobs.
    pub queue: Option<i64>,
    /// Whether it has a webhook secret of its own; the secret itself stays in the row.
    pub has_webhook_secret: bool,
    pub zero_data_retention: bool,
    /// Requests a minute by bucket; buckets that are missing have the installation's number.
    pub rates: BTreeMap<String, u32>,
    pub created_at: Timestamp,
    /// An operator has removed it: nothing of it is begun any more, and all that was its own goes.
    pub removed_at: Option<Timestamp>,
}

pub(super) type Columns =
    (TeamId, String, Option<i64>, Option<i64>, Option<i64>, bool, bool, Option<String>, Timestamp, Option<Timestamp>);

/// The column list of [`Columns`] for a team aliased `t`, in a macro so that each statement stays one literal.
macro_rules! team_columns {
    () => {
        "t.id, t.name, t.concurrency, t.sessions, t.queue_limit, t.webhook_secret IS NOT NULL, t.zero_data_retention, t.rates, \
         t.created_at, t.removed_at"
    };
}
pub(super) use team_columns;

pub(super) fn row(c: Columns) -> StoreResult<TeamRow> {
    Ok(TeamRow {
        id: c.0,
        name: c.1,
        concurrency: c.2,
        sessions: c.3,
        queue: c.4,
        has_webhook_secret: c.5,
        zero_data_retention: c.6,
        rates: c.7.as_deref().map(serde_json::from_str).transpose()?.unwrap_or_default(),
        created_at: c.8,
        removed_at: c.9,
    })
}

/// Makes a team.
///
/// # Errors
/// [`crate::store::StoreError::Conflict`] when the name is taken.
pub async fn insert(tx: &mut Tx, name: &str, now: Timestamp) -> StoreResult<TeamId> {
    const SQL: &str = "INSERT INTO team (id, name, created_at) VALUES ($1, $2, $3)";
    let id = TeamId::new();
    on_db!(tx, |conn| sqlx::query(SQL).bind(id).bind(name).bind(now).execute(conn).await?.rows_affected());
    Ok(id)
}

/// The default team, made when it is missing. Safe against others that do the same.
pub async fn ensure_default(tx: &mut Tx, now: Timestamp) -> StoreResult<TeamId> {
    const INSERT: &str = "INSERT INTO team (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING";
    const SELECT: &str = "SELECT id FROM team WHERE name = $1";
    let id = TeamId::new();
    on_db!(tx, |conn| {
        sqlx::query(INSERT).bind(id).bind(DEFAULT_TEAM).bind(now).execute(conn).await?.rows_affected()
    });
    let found: (TeamId,) = on_db!(tx, |conn| sqlx::query_as(SELECT).bind(DEFAULT_TEAM).fetch_one(conn).await?);
    Ok(found.0)
}

/// The id of the default team. It asks for columns that a database of every release has: commands look with it whether there is
/// anything in a database whose shape they leave alone.
pub async fn default_id(db: &Db) -> StoreResult<Option<TeamId>> {
    const SQL: &str = "SELECT id FROM team WHERE name = $1";
    let found: Option<(TeamId,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(DEFAULT_TEAM).fetch_optional(pool).await?);
    Ok(found.map(|row| row.0))
}

/// The team of this name.
pub async fn by_name(db: &Db, name: &str) -> StoreResult<Option<TeamRow>> {
    const SQL: &str = concat!("SELECT ", team_columns!(), " FROM team t WHERE t.name = $1");
    let found: Option<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(name).fetch_optional(pool).await?);
    found.map(row).transpose()
}

/// The team with this id.
pub async fn by_id(db: &Db, id: TeamId) -> StoreResult<Option<TeamRow>> {
    const SQL: &str = concat!("SELECT ", team_columns!(), " FROM team t WHERE t.id = $1");
    let found: Option<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?);
    found.map(row).transpose()
}

/// Every team, by name.
pub async fn list(db: &Db) -> StoreResult<Vec<TeamRow>> {
    const SQL: &str = concat!("SELECT ", team_columns!(), " FROM team t ORDER BY t.name");
    let rows: Vec<Columns> = on_pool!(db, |pool| sqlx::query_as(SQL).fetch_all(pool).await?);
    rows.into_iter().map(row).collect()
}

/// What is changed of a team: `None` leaves a field as it is, `Some(None)` gives it back to the installation's setting.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TeamChange {
    pub concurrency: Option<Option<i64>>,
    pub sessions: Option<Option<i64>>,
    pub queue: Option<Option<i64>>,
    pub webhook_secret: Option<Option<String>>,
    pub zero_data_retention: Option<bool>,
    /// The team's own rates as a whole.
    pub rates: Option<BTreeMap<String, u32>>,
}

/// Changes a team by its id. `false`: there is none, or it is removed.
pub async fn update(tx: &mut Tx, id: TeamId, new: &TeamChange) -> StoreResult<bool> {
    const SQL: &str = "UPDATE team SET concurrency = CASE WHEN $2 THEN $3 ELSE concurrency END, \
        sessions = CASE WHEN $4 THEN $5 ELSE sessions END, queue_limit = CASE WHEN $6 THEN $7 ELSE queue_limit END, \
        webhook_secret = CASE WHEN $8 THEN $9 ELSE webhook_secret END, \
        zero_data_retention = COALESCE($10, zero_data_retention), rates = CASE WHEN $11 THEN $12 ELSE rates END \
        WHERE id = $1 AND removed_at IS NULL";
    team_lock::lock(tx, id).await?;
    let rates = new.rates.as_ref().filter(|rates| !rates.is_empty()).map(serde_json::to_string).transpose()?;
    let done = on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(id)
            .bind(new.concurrency.is_some())
            .bind(new.concurrency.flatten())
            .bind(new.sessions.is_some())
            .bind(new.sessions.flatten())
            .bind(new.queue.is_some())
            .bind(new.queue.flatten())
            .bind(new.webhook_secret.is_some())
            .bind(new.webhook_secret.clone().flatten())
            .bind(new.zero_data_retention)
            .bind(new.rates.is_some())
            .bind(rates)
            .execute(conn)
            .await?
            .rows_affected()
    });
    Ok(done == 1)
}

/// What each team was granted and has used.
pub async fn accounts(db: &Db) -> StoreResult<BTreeMap<TeamId, (i64, i64)>> {
    const SQL: &str = "SELECT id, credits_granted, credits_used FROM team";
    let rows: Vec<(TeamId, i64, i64)> = on_pool!(db, |pool| sqlx::query_as(SQL).fetch_all(pool).await?);
    Ok(rows.into_iter().map(|(id, granted, used)| (id, (granted, used))).collect())
}

/// The secret that signs the team's webhooks, `Some(None)`: the installation's setting. `None`: the team is removed, and its
/// receivers are told nothing more.
pub async fn webhook_secret(db: &Db, id: TeamId) -> StoreResult<Option<Option<String>>> {
    const SQL: &str = "SELECT webhook_secret FROM team WHERE id = $1 AND removed_at IS NULL";
    let found: Option<(Option<String>,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?);
    Ok(found.map(|row| row.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::store::{StoreError, testing};

    #[tokio::test]
    async fn a_team_is_found_by_name_and_id_and_listed() {
        for db in testing::databases().await {
            let mut tx = db.begin().await.unwrap();
            let id = insert(&mut tx, "acme", Timestamp(5)).await.unwrap();
            tx.commit().await.unwrap();
            let team = by_name(&db, "acme").await.unwrap().unwrap();
            assert_eq!((team.id, team.created_at, team.rates.len()), (id, Timestamp(5), 0));
            assert_eq!(by_id(&db, id).await.unwrap(), Some(team.clone()));
            assert_eq!(list(&db).await.unwrap(), vec![team]);
            assert_eq!(by_name(&db, "nobody").await.unwrap(), None);
            assert_eq!(by_id(&db, TeamId::new()).await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn a_name_is_taken_once() {
        for db in testing::databases().await {
            let mut tx = db.begin().await.unwrap();
            insert(&mut tx, "acme", Timestamp(1)).await.unwrap();
            let second = insert(&mut tx, "acme", Timestamp(2)).await;
            assert!(matches!(second, Err(StoreError::Conflict(_))));
        }
    }

    #[tokio::test]
    async fn the_default_team_is_made_once() {
        for db in testing::databases().await {
            let mut tx = db.begin().await.unwrap();
            let first = ensure_default(&mut tx, Timestamp(1)).await.unwrap();
            assert_eq!(ensure_default(&mut tx, Timestamp(2)).await.unwrap(), first);
            tx.commit().await.unwrap();
            assert_eq!(by_name(&db, DEFAULT_TEAM).await.unwrap().unwrap().id, first);
        }
    }

    #[tokio::test]
    async fn a_change_touches_only_what_it_names_and_gives_back() {
        for db in testing::databases().await {
            let id = testing::team(&db, "acme").await;
            let set = TeamChange {
                concurrency: Some(Some(7)),
                queue: Some(Some(70)),
                webhook_secret: Some(Some("s3".to_owned())),
                zero_data_retention: Some(true),
                rates: Some([("map".to_owned(), 4)].into()),
                ..TeamChange::default()
            };
            let mut tx = db.begin().await.unwrap();
            assert!(update(&mut tx, id, &set).await.unwrap());
            assert!(!update(&mut tx, TeamId::new(), &set).await.unwrap());
            tx.commit().await.unwrap();
            let team = by_id(&db, id).await.unwrap().unwrap();
            assert_eq!((team.concurrency, team.sessions, team.queue), (Some(7), None, Some(70)));
            assert!(team.has_webhook_secret && team.zero_data_retention && team.rates["map"] == 4);
            let back = TeamChange {
                concurrency: Some(None),
                webhook_secret: Some(None),
                rates: Some(BTreeMap::new()),
                ..TeamChange::default()
            };
            let mut tx = db.begin().await.unwrap();
            assert!(update(&mut tx, id, &back).await.unwrap());
            tx.commit().await.unwrap();
            let team = by_id(&db, id).await.unwrap().unwrap();
            assert_eq!((team.concurrency, team.queue, team.has_webhook_secret), (None, Some(70), false));
            assert!(team.zero_data_retention && team.rates.is_empty());
            assert_eq!(accounts(&db).await.unwrap()[&id], (0, 0));
        }
    }
}
