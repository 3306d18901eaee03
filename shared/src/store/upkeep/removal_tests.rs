//! A removed team: what is stopped, what goes, and that nothing of it is begun.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sqlx::AssertSqlSafe;

use super::removal::{self, Removals, Round, STRAGGLERS_MS, Stopped, TABLES};
use crate::domain::job::JobKind;
use crate::ids::{TeamId, WorkerId};
use crate::store::accounts::teams::{self, DEFAULT_TEAM, TeamChange};
use crate::store::accounts::{keys, team_lock};
use crate::store::contents::cache;
use crate::store::contents::orphans::Orphans;
use crate::store::db::slices::Slices;
use crate::store::work::page::claim;
use crate::store::work::page::end::{Finished, Outcome};
use crate::store::work::page::finish::finish_many;
use crate::store::work::page::replay::{self, Replay};
use crate::store::work::pages;
use crate::store::{Db, testing};
use crate::{on_db, on_pool, random};

/// Columns of all tables that name a team, as the database lists them.
async fn naming_teams(db: &Db) -> BTreeSet<(String, String)> {
    let sql = match db {
        Db::Sqlite(_) => {
            "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' \
             AND c.name LIKE '%team%'"
        }
        Db::Postgres(_) => {
            "SELECT table_name::text, column_name::text FROM information_schema.columns \
             WHERE table_schema = 'public' AND column_name LIKE '%team%'"
        }
    };
    let found: Vec<(String, String)> = on_pool!(db, |pool| sqlx::query_as(sql).fetch_all(pool).await.unwrap());
    found.into_iter().collect()
}

async fn run(db: &Db, sql: &str) {
    let mut tx = db.begin().await.unwrap();
    let sql = sql.to_owned();
    on_db!(&mut tx, |conn| {
        let done = sqlx::query(AssertSqlSafe(sql.clone())).execute(conn).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error}")).rows_affected()
    });
    tx.commit().await.unwrap();
}

async fn count(db: &Db, table: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) FROM {table}");
    let (count,): (i64,) = on_pool!(db, |pool| sqlx::query_as(AssertSqlSafe(sql)).fetch_one(pool).await.unwrap());
    count
}

/// A row of a team in every table, and in those below them: the table, its columns and their values.
fn rows(team: TeamId, now: i64) -> Vec<(&'static str, &'static str, String)> {
    let id = || random::id().to_string();
    let (job, page, monitor, check, delivery, session) = (id(), id(), id(), id(), id(), id());
    let later = now + 86_400_000_000;
    vec![
        (
            "job",
            "id, team_id, kind, status, rank, options, target, total, queued, created_at, expires_at, finished_at",
            format!("'{job}', '{team}', 'batch', 'completed', 1, '{{}}', 'http://a.test/', 1, 0, 1, {later}, 2"),
        ),
        (
            "page",
            "id, job_id, team_id, idx, url, state, run_at, queued_at, finished_at",
            format!("'{page}', '{job}', '{team}', 0, 'http://a.test/', 'done', 1, 1, 2"),
        ),
        ("page_attempt", "page_id, epoch, job_id, ended_at, error", format!("'{page}', 1, '{job}', 2, 'e'")),
        ("document", "job_id, seq, page_id, size, body", format!("'{job}', 0, '{page}', 1, 'x'")),
        (
            "crawl",
            "job_id, team_id, url, options, page_limit, admitted, next_seq, discovered",
            format!("'{job}', '{team}', 'http://a.test/', '{{}}', 1, 1, 1, 1"),
        ),
        ("crawl_url", "job_id, key, state, depth, seq", format!("'{job}', 'k', 'taken', 0, 0")),
        ("task", "job_id, team_id, kind, spec, created_at", format!("'{job}', '{team}', 'agent', '{{}}', 1")),
        (
            "task_step",
            "job_id, key, id, number, kind, state, says, started_at, ended_at",
            format!("'{job}', 'k', '{}', 1, 'read', 'done', '', 1, 2", id()),
        ),
        (
            "webhook_delivery",
            "id, team_id, job_id, event, stage, state, next_at, created_at",
            format!("'{delivery}', '{team}', '{job}', 'started', 0, 'delivered', 1, 1"),
        ),
        ("webhook_attempt", "delivery_id, attempt, job_id, at, duration_ms", format!("'{delivery}', 1, '{job}', 1, 1")),
        (
            "monitor",
            "id, team_id, name, status, cron, timezone, spread_ms, spec, retention_days, estimated_credits, runs_a_month, \
             created_at, updated_at",
            format!("'{monitor}', '{team}', 'm', 'paused', '0 * * * *', 'UTC', 0, '{{}}', 9, 1, 1, 1, 1"),
        ),
        (
            "monitor_check",
            "id, monitor_id, team_id, status, cause, estimated_credits, billing, targets, created_at, updated_at, expires_at",
            format!("'{check}', '{monitor}', '{team}', 'completed', 'manual', 1, 'confirmed', '[]', 1, 1, {later}"),
        ),
        (
            "monitor_page",
            "id, check_id, seq, target_id, url, status, detail, detail_size, created_at",
            format!("'{}', '{check}', 0, 't', 'http://a.test/', 'same', 'x', 1, 1", id()),
        ),
        (
            "monitor_url",
            "monitor_id, target_id, key, url, is_gone, check_id, seen_at",
            format!("'{monitor}', 't', 'k', 'http://a.test/', FALSE, '{check}', 1"),
        ),
        (
            "browser_session",
            "id, team_id, worker_id, state, kind, stream_web_view, ttl_ms, activity_ttl_ms, created_at, expires_at, \
             last_activity, ended_at, end_reason, duration_ms, credits",
            format!(
                "'{session}', '{team}', '{}', 'destroyed', 'browser', TRUE, 1, 1, 1, 1, 1, {now}, 'ttl', 0, 0",
                id()
            ),
        ),
        ("profile_lease", "team_id, name, session_id", format!("'{team}', 'p', '{session}'")),
        (
            "profile",
            "team_id, name, version, blob, size, updated_at",
            format!("'{team}', 'p', 1, 'profiles/{team}', 7, 1"),
        ),
        (
            "upload",
            "id, team_id, name, created_at, expires_at",
            format!("'{}', '{team}', 'a.pdf', {now}, {later}", id()),
        ),
        ("page_snapshot", "team_id, key, scraped_at, size, body", format!("'{team}', 'k', {now}, 5, 'x'")),
        ("sitemap", "team_id, key, size, body, expires_at", format!("'{team}', 'k', 1, 'x', {later}")),
        ("site_template", "team_id, origin, body, changed_at", format!("'{team}', 'http://a.test', 'x', {now}")),
        (
            "learning_page",
            "team_id, site, wish, page, sketch, body, size, made_at",
            format!("'{team}', 's', 'w', 'p', '', 'x', 1, {now}"),
        ),
        ("learning", "team_id, site, wish, used_at", format!("'{team}', 's', 'w', {now}")),
        (
            "extractor",
            "id, team_id, site, wish, state, epoch, body, next_check, made_at, used_at",
            format!("'{}', '{team}', 's', 'w', 'retired', 1, '{{}}', 1, {now}, {now}", id()),
        ),
        ("page_content", "digest, size, packed, used_at, blob", format!("'{team}', 1, 1, {now}, 'pages/{team}'")),
        (
            "page_version",
            "key, team_id, url, digest, head, stored_at, expires_at",
            format!("'{team}', '{team}', 'http://a.test/', '{team}', '', {now}, {later}"),
        ),
        (
            "page_earlier",
            "key, team_id, url, digest, head, stored_at, expires_at",
            format!("'{team}', '{team}', 'http://a.test/', '{team}', '', {now}, {later}"),
        ),
        ("cached_page", "key, team_id, url, page_id, bytes, cached_at", format!("'{team}', '{team}', 'u', 'p', 1, 1")),
        ("activity", "team_id, created_at, id, endpoint", format!("'{team}', {now}, 'i', 'scrape'")),
        (
            "feedback",
            "id, team_id, endpoint, job_id, rating, created_at",
            format!("'{}', '{team}', 'scrape', '{job}', 'good', 1", id()),
        ),
        ("idempotency_key", "team_id, key, created_at", format!("'{team}', 'k', {now}")),
        ("rate_window", "team_id, bucket, minute, taken", format!("'{team}', 'scrape', 1, 1")),
        ("figure", "span, team_id, at, process, body", format!("'hour', '{team}', {now}, 'p', '{{}}'")),
        (
            "credit_entry",
            "key, team_id, kind, amount, created_at",
            format!("'page:{page}', '{team}', 'scrape', 3, {now}"),
        ),
        ("credit_month", "team_id, month, api_key_id, amount", format!("'{team}', 5, '', 1")),
        ("model_month", "team_id, month, api_key_id, sent, received", format!("'{team}', 5, '', 1, 1")),
        ("api_key", "id, team_id, hash, prefix, created_at", format!("'{}', '{team}', '{team}', 'weir_', 1", id())),
        (
            "console_session",
            "id, role, team_id, created_at, seen_at, expires_at",
            format!("'{team}', 'team', '{team}', {now}, {now}, {later}"),
        ),
        ("console_link", "id, role, team_id, expires_at", format!("'{team}', 'team', '{team}', {later}")),
    ]
}

async fn fill(db: &Db, team: TeamId) -> BTreeSet<&'static str> {
    let rows = rows(team, db.now().0);
    for (table, columns, values) in &rows {
        run(db, &format!("INSERT INTO {table} ({columns}) VALUES ({values})")).await;
    }
    rows.into_iter().map(|row| row.0).collect()
}

async fn mark(db: &Db, team: TeamId) -> bool {
    let mut tx = db.begin().await.unwrap();
    let is_marked = removal::mark(&mut tx, team, db.now()).await.unwrap();
    tx.commit().await.unwrap();
    is_marked
}

#[tokio::test]
async fn every_table_that_names_a_team_is_emptied_of_it_and_of_nobody_else() {
    for db in testing::databases().await {
        let listed: BTreeSet<(String, String)> =
            TABLES.iter().map(|(table, _)| ((*table).to_owned(), "team_id".to_owned())).collect();
        assert_eq!(naming_teams(&db).await, listed, "how do the rows of a team that is removed go from there?");

        let other = testing::team(&db, "other").await;
        let tables = fill(&db, other).await;
        for (table, _) in TABLES {
            assert!(tables.contains(table), "no row was tried in {table}");
        }
        let mut others = BTreeMap::new();
        for table in tables.iter().chain(&["team"]) {
            others.insert(*table, count(&db, table).await);
        }
        let team = testing::team(&db, "acme").await;
        fill(&db, team).await;
        let has = removal::holdings(&db, team).await.unwrap();
        assert_eq!((has.keys, has.jobs, has.running, has.documents, has.monitors), (1, 1, 0, 1, 1));
        assert_eq!((has.sessions, has.profiles, has.files, has.bytes), (0, 1, 1, 1 + 5 + 7));

        assert!(mark(&db, team).await);
        let (mut removals, mut slices, mut orphans) = (Removals::default(), Slices::default(), Orphans::default());
        let round = removals.go_on(&db, &mut slices, &mut orphans).await.unwrap();
        assert!(round.rows > 20 && round.teams == 0, "{round:?}");
        // What the release before has cached goes with everybody's.
        cache::evict(&db, i64::MAX, db.now()).await.unwrap();
        others.insert("cached_page", 0);
        for (table, rows) in &others {
            let mark = i64::from(*table == "team");
            assert_eq!(count(&db, table).await, rows + mark, "{table}");
        }
        assert!(removal::left(&db, team).await.unwrap().tables.is_empty());
        let wasted = count(&db, "page_blob").await + count(&db, "blob_waste").await;
        assert_eq!(wasted, 3, "a profile, a page of the cache, and whatever the job has stored");

        // Its row stays for as long as somebody may have something of it in hand, and what comes late goes, too.
        fill_late(&db, team).await;
        assert_eq!(removals.go_on(&db, &mut slices, &mut orphans).await.unwrap(), Round { rows: 1, teams: 0 });
        fill_late(&db, team).await;
        db.clock().advance(Duration::from_millis(STRAGGLERS_MS.unsigned_abs()));
        let mut another = Removals::default();
        assert_eq!(another.go_on(&db, &mut slices, &mut orphans).await.unwrap(), Round { rows: 1, teams: 1 });
        assert_eq!(count(&db, "team").await, others["team"]);
        assert_eq!(removals.go_on(&db, &mut slices, &mut orphans).await.unwrap(), Round::default());
    }
}

/// What a process writes that had it in hand before the removal.
async fn fill_late(db: &Db, team: TeamId) {
    run(db, &format!("INSERT INTO rate_window (team_id, bucket, minute, taken) VALUES ('{team}', 'map', 1, 1)")).await;
}

#[tokio::test]
async fn what_runs_is_stopped_nothing_of_it_is_begun_and_the_name_is_free() {
    for db in testing::databases().await {
        let (team, worker) = (testing::team(&db, "acme").await, WorkerId::new());
        let mut tx = db.begin().await.unwrap();
        let key = keys::create(&mut tx, team, db.now()).await.unwrap().key;
        tx.commit().await.unwrap();
        let (_, running) = testing::job(&db, team, JobKind::Batch, 2, None).await;
        let (_, scrape) = testing::job(&db, team, JobKind::Scrape, 1, None).await;
        let (failed_job, failed) = testing::job(&db, team, JobKind::Batch, 1, None).await;
        let (page, _) = claim::claim_one(&db, team, running[0], worker, 50, db.now()).await.unwrap().unwrap();
        let (now, later) = (db.now().0, db.now().0 + 600_000);
        for sql in [
            format!("UPDATE page SET state = 'failed', finished_at = {now} WHERE id = '{}'", failed[0]),
            format!(
                "UPDATE job SET status = 'completed', finished_at = {now}, failed = 1, queued = 0 WHERE id = '{failed_job}'"
            ),
            format!(
                "INSERT INTO webhook_delivery (id, team_id, job_id, event, stage, state, next_at, created_at) \
                 VALUES ('{}', '{team}', '{failed_job}', 'completed', 2, 'waiting', {now}, {now})",
                random::id()
            ),
            format!(
                "INSERT INTO browser_session (id, team_id, worker_id, state, kind, stream_web_view, ttl_ms, activity_ttl_ms, \
                 created_at, opened_at, expires_at, last_activity, credits) VALUES ('{}', '{team}', '{}', 'active', 'browser', \
                 TRUE, 600000, 600000, {now}, {now}, {later}, {now}, 0)",
                random::id(),
                WorkerId::new()
            ),
            format!(
                "INSERT INTO monitor (id, team_id, name, status, cron, timezone, spread_ms, spec, retention_days, next_due_at, \
                 estimated_credits, runs_a_month, created_at, updated_at) VALUES ('{}', '{team}', 'm', 'active', '0 * * * *', \
                 'UTC', 0, '{{}}', 9, {later}, 1, 1, 1, 1)",
                random::id()
            ),
        ] {
            run(&db, &sql).await;
        }
        assert!(keys::find(&db, &keys::digest(&key)).await.unwrap().is_some());
        assert_eq!(teams::webhook_secret(&db, team).await.unwrap(), Some(None));

        assert!(mark(&db, team).await);
        assert!(!mark(&db, team).await, "it is removed already");
        assert_eq!(removal::once_named(&db, "acme").await.unwrap(), Some(team));
        assert_eq!(removal::once_named(&db, "acm").await.unwrap(), None);
        assert!(keys::find(&db, &keys::digest(&key)).await.unwrap().is_none());
        assert_eq!(teams::webhook_secret(&db, team).await.unwrap(), None, "receivers are told nothing more");
        let mut tx = db.begin().await.unwrap();
        assert!(team_lock::lock_to_begin(&mut tx, team).await.unwrap().is_none());
        assert!(!teams::update(&mut tx, team, &TeamChange::default()).await.unwrap());
        let claimed = claim::claim(&mut tx, team, worker, 9, 50, db.now()).await.unwrap();
        assert!(claimed.pages.is_empty() && !claimed.more && claimed.next_at.is_none(), "{claimed:?}");
        assert_eq!(replay::replay(&mut tx, failed[0], false, db.now()).await.unwrap(), Replay::NotDead);
        tx.commit().await.unwrap();
        assert!(claim::claim_one(&db, team, scrape[0], worker, 50, db.now()).await.unwrap().is_none());
        let again = testing::team(&db, "acme").await;
        assert_ne!(again, team);
        assert_eq!(teams::by_name(&db, "acme").await.unwrap().unwrap().id, again);
        let marked = teams::by_id(&db, team).await.unwrap().unwrap();
        assert!(marked.removed_at.is_some() && marked.name.starts_with("acme (removed "), "{marked:?}");

        let mut slices = Slices::default();
        let stopped = removal::stop(&db, &mut slices, team, db.now()).await.unwrap();
        assert_eq!(stopped, Stopped { jobs: 2, monitors: 1, sessions: 1, deliveries: 1 });
        // As after a kill: whoever goes on finds what is left to do.
        assert_eq!(removal::stop(&db, &mut slices, team, db.now()).await.unwrap(), Stopped::default());
        let (mut removals, mut orphans) = (Removals::default(), Orphans::default());
        removals.go_on(&db, &mut slices, &mut orphans).await.unwrap();
        let left = removal::left(&db, team).await.unwrap();
        assert_eq!((left.jobs, left.tables), (1, vec!["job"]), "a worker has a page of it");
        let end = [Finished { page, kind: None, key: None, outcome: Outcome::Lost { reason: "test" } }];
        let mut tx = db.begin().await.unwrap();
        finish_many(&mut tx, &end, db.now()).await.unwrap();
        tx.commit().await.unwrap();
        removals.go_on(&db, &mut slices, &mut orphans).await.unwrap();
        assert!(removal::left(&db, team).await.unwrap().tables.is_empty());
        assert!(pages::load(&db, running[0]).await.unwrap().is_none());

        let mut tx = db.begin().await.unwrap();
        let default = teams::ensure_default(&mut tx, db.now()).await.unwrap();
        tx.commit().await.unwrap();
        assert!(!mark(&db, default).await, "the {DEFAULT_TEAM} team stays");
    }
}
