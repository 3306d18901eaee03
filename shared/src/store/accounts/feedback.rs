//! What callers say of their results (wire 25): once for each result, and a bounded number for each team.

use uuid::Uuid;

use super::team_lock;
use crate::domain::feedback::Subject;
use crate::ids::TeamId;
use crate::store::{Db, StoreResult, Tx};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

/// Most of a team that are kept: older ones go.
pub const MOST: i64 = 1_000;

/// What is said of one result.
#[derive(Debug)]
pub struct NewFeedback<'a> {
    pub team: TeamId,
    pub subject: Subject,
    /// What the result is found by.
    pub job: Uuid,
    pub rating: &'static str,
    /// The rest of what is said, JSON; `None`: nothing of it may be kept.
    pub body: Option<&'a str>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    pub id: Uuid,
    /// Something was said of the result before; that stays.
    pub is_repeated: bool,
}

/// Whether the team had such a result, as far back as its calls are listed; see [`super::activity`].
pub async fn knows(db: &Db, team: TeamId, subject: Subject, job: Uuid) -> StoreResult<bool> {
    const LISTED: &str = "SELECT COUNT(*) FROM activity WHERE team_id = $1 AND endpoint = $2 AND id = $3";
    const PAGE: &str = "SELECT COUNT(*) FROM page WHERE id = $1 AND team_id = $2";
    let id = job.to_string();
    let listed: (i64,) = on_pool!(db, |pool| {
        sqlx::query_as(LISTED).bind(team).bind(subject.endpoint().as_str()).bind(&id).fetch_one(pool).await?
    });
    if listed.0 > 0 || !matches!(subject, Subject::Scrape | Subject::Parse) {
        return Ok(listed.0 > 0);
    }
    // A page of a batch or crawl is a scrape, too.
    let page: (i64,) = on_pool!(db, |pool| sqlx::query_as(PAGE).bind(&id).bind(team).fetch_one(pool).await?);
    Ok(page.0 > 0)
}

/// Notes what is said, unless something was said of the result before.
pub async fn note(tx: &mut Tx, new: &NewFeedback<'_>, now: Timestamp) -> StoreResult<Noted> {
    const BEFORE: &str = "SELECT id FROM feedback WHERE team_id = $1 AND job_id = $2";
    const INSERT: &str = "INSERT INTO feedback (id, team_id, endpoint, job_id, rating, body, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    const OLDEST: &str = "DELETE FROM feedback WHERE team_id = $1 AND id <= \
        (SELECT id FROM feedback WHERE team_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)";
    team_lock::lock(tx, new.team).await?;
    let job = new.job.to_string();
    let before: Option<(String,)> =
        on_db!(&mut *tx, |conn| sqlx::query_as(BEFORE).bind(new.team).bind(&job).fetch_optional(conn).await?);
    if let Some(id) = before.and_then(|(id,)| Uuid::parse_str(&id).ok()) {
        return Ok(Noted { id, is_repeated: true });
    }
    let id = crate::random::id();
    on_db!(tx, |conn| {
        sqlx::query(INSERT)
            .bind(id.to_string())
            .bind(new.team)
            .bind(new.subject.as_str())
            .bind(job)
            .bind(new.rating)
            .bind(new.body)
            .bind(now)
            .execute(&mut *conn)
            .await?;
        sqlx::query(OLDEST).bind(new.team).bind(MOST).execute(conn).await?.rows_affected()
    });
    Ok(Noted { id, is_repeated: false })
}

/// What was said, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct FeedbackRow {
    pub id: String,
    pub team_id: TeamId,
    pub endpoint: String,
    pub job_id: String,
    pub rating: String,
    pub body: Option<String>,
    pub created_at: Timestamp,
}

/// What was said, newest first; `team`: by this one.
pub async fn list(db: &Db, team: Option<TeamId>, limit: i64) -> StoreResult<Vec<FeedbackRow>> {
    const ALL: &str = "SELECT id, team_id, endpoint, job_id, rating, body, created_at FROM feedback \
        ORDER BY id DESC LIMIT $1";
    const OF_TEAM: &str = "SELECT id, team_id, endpoint, job_id, rating, body, created_at FROM feedback \
        WHERE team_id = $2 ORDER BY id DESC LIMIT $1";
    Ok(on_pool!(db, |pool| match team {
        None => sqlx::query_as(ALL).bind(limit).fetch_all(pool).await?,
        Some(team) => sqlx::query_as(OF_TEAM).bind(limit).bind(team).fetch_all(pool).await?,
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::domain::activity::Endpoint;
    use crate::domain::api_version::ApiVersion;
    use crate::domain::job::JobKind;
    use crate::store::accounts::activity::{self, Entry};
    use crate::store::testing;

    async fn say(db: &Db, team: TeamId, job: Uuid, body: Option<&str>) -> Noted {
        let new = NewFeedback { team, subject: Subject::Search, job, rating: "good", body };
        let mut tx = db.begin().await.unwrap();
        let noted = note(&mut tx, &new, db.now()).await.unwrap();
        tx.commit().await.unwrap();
        noted
    }

    #[tokio::test]
    async fn the_first_word_on_a_result_stays_and_a_team_has_so_many() {
        for db in testing::databases().await {
            let (team, other) = (testing::team(&db, "a").await, testing::team(&db, "b").await);
            let job = crate::random::id();
            let first = say(&db, team, job, Some("{}")).await;
            assert!(!first.is_repeated);
            assert_eq!(say(&db, team, job, Some("{\"note\":\"x\"}")).await, Noted { is_repeated: true, ..first });
            assert!(!say(&db, other, job, None).await.is_repeated, "another team's word");
            for _ in 0..MOST + 5 {
                say(&db, team, crate::random::id(), None).await;
            }
            let rows = list(&db, Some(team), MOST * 2).await.unwrap();
            assert_eq!(rows.len(), MOST as usize);
            assert!(rows.iter().all(|row| row.id != first.id.to_string()), "the oldest have gone");
            assert_eq!(list(&db, Some(other), 5).await.unwrap()[0].body, None);
            assert_eq!(list(&db, None, MOST * 2).await.unwrap().len(), MOST as usize + 1);
        }
    }

    #[tokio::test]
    async fn only_a_teams_own_results_are_known() {
        for db in testing::databases().await {
            let (team, other) = (testing::team(&db, "a").await, testing::team(&db, "b").await);
            let (_, pages) = testing::job(&db, team, JobKind::Batch, 1, None).await;
            let id = crate::random::id();
            let (endpoint, version) = (Endpoint::Search, ApiVersion::V2);
            let entry = Entry { id, endpoint, version, target: None, created_at: db.now() };
            let mut tx = db.begin().await.unwrap();
            activity::record(&mut tx, team, &entry).await.unwrap();
            tx.commit().await.unwrap();
            for (subject, job, whose, expected) in [
                (Subject::Search, id, team, true),
                (Subject::Search, id, other, false),
                (Subject::Map, id, team, false),
                (Subject::Scrape, pages[0].0, team, true),
                (Subject::Parse, pages[0].0, team, true),
                (Subject::Search, pages[0].0, team, false),
                (Subject::Scrape, pages[0].0, other, false),
            ] {
                assert_eq!(knows(&db, whose, subject, job).await.unwrap(), expected, "{subject:?}");
            }
        }
    }
}
