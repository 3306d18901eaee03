#![allow(clippy::unwrap_used, reason = "tests")]
use serde_json::json;

use super::*;
use crate::domain::scrape::ScrapeOptions;
use crate::domain::task::AgentSpec;
use crate::store::accounts::model_usage;
use crate::store::testing;
use crate::store::work::page::claim;
use crate::store::work::page::end::{Finished, Outcome};
use crate::store::work::page::finish::finish_many;
use crate::store::work::{cancel, documents, pages};

async fn task(db: &Db, team: TeamId, thread: Option<(Uuid, i64)>) -> JobId {
    let (now, options) = (db.now(), ScrapeOptions::default());
    let urls = vec!["https://site.test/*".to_owned()];
    let spec = TaskSpec::Agent(AgentSpec { prompt: "find it".to_owned(), urls, ..AgentSpec::default() });
    let job = NewJob {
        id: JobId::new(),
        team,
        key: None,
        kind: JobKind::Agent,
        options: &options,
        target: "find it",
        origin: None,
        max_concurrency: None,
        webhook: None,
        total: 0,
        created_at: now,
        expires_at: now.plus_ms(86_400_000),
    };
    let mut tx = db.begin().await.unwrap();
    insert(&mut tx, &NewTask { job: &job, spec: &spec, thread }).await.unwrap();
    tx.commit().await.unwrap();
    job.id
}

async fn claimed(db: &Db, job: JobId) -> Option<ClaimedTask> {
    let mut tx = db.begin().await.unwrap();
    let claimed = claim(&mut tx, job, WorkerId::new(), db.now()).await.unwrap();
    tx.commit().await.unwrap();
    claimed
}

async fn let_go(db: &Db, task: &ClaimedTask, due_at: Timestamp) {
    let mut tx = db.begin().await.unwrap();
    release(&mut tx, task, due_at, None).await.unwrap();
    tx.commit().await.unwrap();
}

/// Wake-ups for tasks that are due.
async fn calls(db: &Db) -> i64 {
    queue::due(db).await.unwrap().into_iter().find(|(name, _)| name == queue::TASK_QUEUE).map_or(0, |(_, count)| count)
}

fn step(key: &str) -> NewStep<'_> {
    NewStep { key, number: 1, kind: StepKind::Model, says: "{}".to_owned() }
}

#[tokio::test]
async fn one_worker_at_a_time_drives_a_task_and_its_steps_are_written_and_paid_once() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let job = task(&db, team, None).await;
        assert_eq!(calls(&db).await, 1);
        let first = claimed(&db, job).await.unwrap();
        assert!(claimed(&db, job).await.is_none(), "somebody is at it");
        assert_eq!(begin_step(&db, &first, &step("a"), db.now()).await.unwrap(), Some(1));
        assert_eq!(begin_step(&db, &first, &step("a"), db.now()).await.unwrap(), Some(2), "begun again");
        let spent = Spent { sent: 5, received: 2 };
        let end = StepEnd { outcome: "{}".to_owned(), spent, credits: 4, ..StepEnd::default() };
        assert!(end_step(&db, &first, "a", &end, db.now()).await.unwrap());
        assert!(!end_step(&db, &first, "a", &end, db.now()).await.unwrap(), "once");
        // Who came meanwhile is called when it is let go.
        let_go(&db, &first, db.now().plus_ms(60_000)).await;
        assert_eq!(calls(&db).await, 2);
        let second = claimed(&db, job).await.unwrap();
        assert_eq!((second.epoch, second.spent), (2, spent));
        assert_eq!(begin_step(&db, &first, &step("b"), db.now()).await.unwrap(), None, "it was overtaken");
        assert!(is_ours(&db, &second).await.unwrap() && !is_ours(&db, &first).await.unwrap());
        let row = jobs::load(&db, job).await.unwrap().unwrap();
        assert_eq!((row.status, row.credits_used), (JobStatus::Scraping, 4));
        assert_eq!(credits::balance(&db, team).await.unwrap().unwrap().used, 4);
        let tokens: Vec<Spent> = model_usage::history(&db, team, false).await.unwrap().into_values().collect();
        assert_eq!(tokens, [spent]);

        let outcome = TaskOutcome { data: Some(json!({"found": 1})), ..TaskOutcome::default() };
        assert!(!super::end(&db, &first, &outcome).await.unwrap());
        assert!(super::end(&db, &second, &outcome).await.unwrap());
        assert_eq!(jobs::load(&db, job).await.unwrap().unwrap().status, JobStatus::Completed);
        let row = load(&db, job).await.unwrap().unwrap();
        assert_eq!((row.outcome.unwrap(), row.owner), (outcome, None));
        assert!(claimed(&db, job).await.is_none(), "it has ended");
        assert_eq!(steps(&db, job).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn the_last_page_of_a_step_calls_for_the_task_and_does_not_end_its_job() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let job = task(&db, team, None).await;
        let at_it = claimed(&db, job).await.unwrap();
        let urls = ["http://site.test/1".to_owned(), "http://site.test/2".to_owned()];
        let new = NewStep { key: "pages", number: 1, kind: StepKind::Pages, says: String::new() };
        let asked = begin_pages(&db, &at_it, new, (&urls, 1, false), |ids| json!(ids).to_string()).await.unwrap();
        let Asked::Queued(ids) = asked else { panic!("{asked:?}") };
        let_go(&db, &at_it, db.now().plus_ms(60_000)).await;
        assert_eq!(calls(&db).await, 1, "the first call alone");
        for (n, id) in ids.iter().enumerate() {
            let now = db.now();
            let page = claim::claim_one(&db, team, *id, WorkerId::new(), 50, now).await.unwrap().unwrap().0;
            let document = documents::encode(&json!({"markdown": "x"})).unwrap();
            let outcome = Outcome::Done { document, credits: 1 };
            let mut tx = db.begin().await.unwrap();
            let end = Finished { page, kind: Some(JobKind::Agent), key: None, outcome };
            finish_many(&mut tx, &[end], now).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(calls(&db).await, 1 + n as i64, "the last one calls");
        }
        let row = jobs::load(&db, job).await.unwrap().unwrap();
        assert_eq!((row.status, row.completed, row.total, row.credits_used), (JobStatus::Scraping, 2, 2, 2));
        assert_eq!(pages::list(&db, job, None, 10).await.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_cancelled_task_takes_nothing_more_and_a_dead_workers_is_called_for() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let thread = crate::random::id();
        let (job, other) = (task(&db, team, Some((thread, 1))).await, task(&db, team, Some((thread, 2))).await);
        let at_it = claimed(&db, job).await.unwrap();
        // Its worker is none that lives.
        let before = calls(&db).await;
        remind(&db, db.now(), db.now()).await.unwrap();
        assert!(calls(&db).await >= before);
        assert!(!is_ours(&db, &at_it).await.unwrap() || claimed(&db, job).await.is_some(), "it was taken back");

        let mut tx = db.begin().await.unwrap();
        assert!(cancel::job(&mut tx, other, db.now()).await.unwrap());
        tx.commit().await.unwrap();
        assert!(claimed(&db, other).await.is_none());
        let runs = super::thread(&db, team, thread, 10).await.unwrap();
        assert_eq!(runs.iter().map(|run| (run.job, run.turn)).collect::<Vec<_>>(), [(job, 1), (other, 2)]);
        let last = super::thread(&db, team, thread, 1).await.unwrap();
        assert_eq!(last.iter().map(|run| run.job).collect::<Vec<_>>(), [other]);
        assert!(super::thread(&db, testing::team(&db, "b").await, thread, 10).await.unwrap().is_empty());
        let mut tx = db.begin().await.unwrap();
        for (thread, turn, taken) in
            [(thread, 1, true), (thread, 2, true), (thread, 3, false), (crate::random::id(), 1, false)]
        {
            assert_eq!(is_taken(&mut tx, (thread, turn)).await.unwrap(), taken, "{turn}");
        }
        drop(tx);
        let listed = agents(&db, team, Timestamp(i64::MAX), 1).await.unwrap();
        assert_eq!(listed.iter().map(|run| run.job).collect::<Vec<_>>(), [other], "the newest first");
    }
}

#[tokio::test]
async fn the_pages_of_a_task_know_which_addresses_it_was_given() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let job = task(&db, team, None).await;
        let spec = jobs::spec(&db, job).await.unwrap().unwrap();
        assert_eq!(spec.named("https://site.test/x"), Some("https://site.test/*"));
        assert_eq!(spec.named("https://found.test/"), None);
    }
}

/// The end of a task's last page calls for it while it is let go: the one who comes finds it held, and then no longer held.
#[tokio::test]
async fn a_call_that_comes_while_a_task_is_let_go_is_not_lost() {
    for db in testing::databases().await {
        let team = testing::team(&db, "a").await;
        let job = task(&db, team, None).await;
        let at_it = claimed(&db, job).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        release(&mut tx, &at_it, db.now().plus_ms(60_000), None).await.unwrap();
        let called = tokio::spawn({
            let db = db.clone();
            async move { claimed(&db, job).await.is_some() }
        });
        // On SQLite it does not even begin before.
        if matches!(db, Db::Postgres(_)) {
            testing::wait_for_a_lock(&db).await;
        }
        tx.commit().await.unwrap();
        assert!(called.await.unwrap());
    }
}
