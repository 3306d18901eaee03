//! What the console asks of jobs, deliveries and workers beyond what others do, on both databases.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use crate::domain::figures::Ended;
use crate::domain::job::{JobKind, WebhookEvent};
use crate::domain::node::{Load, NodeState};
use crate::domain::webhook::DeliveryState;
use crate::ids::{DeliveryId, JobId, WorkerId};
use crate::store::work::nodes::{self, NodeRow};
use crate::store::work::webhooks::{self, Attempt};
use crate::store::work::{cancel, crawls, jobs};
use crate::store::{console, testing};

#[tokio::test]
async fn a_job_that_is_let_go_is_expired_and_one_that_runs_is_not() {
    for db in testing::databases().await {
        let team = testing::team(&db, "acme").await;
        let (one, _) = testing::job(&db, team, JobKind::Batch, 1, None).await;
        let (two, _) = testing::job(&db, team, JobKind::Batch, 1, None).await;
        let now = db.now();
        let mut tx = db.begin().await.unwrap();
        assert!(!jobs::expire_now(&mut tx, one, now).await.unwrap(), "it runs");
        assert!(cancel::job(&mut tx, one, now).await.unwrap());
        assert!(jobs::expire_now(&mut tx, one, now).await.unwrap());
        assert!(!jobs::expire_now(&mut tx, one, now).await.unwrap(), "it has expired");
        tx.commit().await.unwrap();
        let rows = jobs::by_ids(&db, &[one, two, JobId::new()]).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [two, one]);
        assert_eq!(rows[1].expires_at, now);
        assert!(jobs::by_ids(&db, &[]).await.unwrap().is_empty());
        assert_eq!(jobs::origin(&db, two).await.unwrap(), Some((None, false)));
        assert_eq!(jobs::origin(&db, JobId::new()).await.unwrap(), None);
        assert_eq!(crawls::asked(&db, two).await.unwrap(), None);
    }
}

#[tokio::test]
async fn deliveries_of_a_job_are_paged_with_their_tries() {
    for db in testing::databases().await {
        let team = testing::team(&db, "acme").await;
        let (job, _) = testing::job(&db, team, JobKind::Batch, 1, None).await;
        let (other, _) = testing::job(&db, team, JobKind::Batch, 1, None).await;
        let now = db.now();
        let mut tx = db.begin().await.unwrap();
        for job in [job, job, other] {
            webhooks::queue(&mut tx, team, job, None, WebhookEvent::Started, now).await.unwrap();
        }
        let taken = webhooks::claim(&mut tx, job, now, now, 1).await.unwrap().remove(0);
        let failed = Attempt { at: now, duration_ms: 5, status: Some(500), error: Some("no".into()), next_at: None };
        webhooks::record(&mut tx, &taken, &failed, now).await.unwrap();
        tx.commit().await.unwrap();
        let first = webhooks::of_job(&db, job, None, None, 1).await.unwrap();
        let rest = webhooks::of_job(&db, job, Some(first[0].id), None, 5).await.unwrap();
        assert_eq!((first.len(), rest.len()), (1, 1));
        let dead = webhooks::of_job(&db, job, None, Some(DeliveryState::Dead), 5).await.unwrap();
        assert_eq!(dead.iter().map(|row| row.id).collect::<Vec<_>>(), [taken.id]);
        let tries = webhooks::tries(&db, &[first[0].id, rest[0].id]).await.unwrap();
        assert_eq!((tries.len(), tries[0].delivery_id, tries[0].status), (1, taken.id, Some(500)));
        assert!(webhooks::tries(&db, &[]).await.unwrap().is_empty());
        assert_eq!(webhooks::job_of(&db, taken.id).await.unwrap(), Some(job));
        assert_eq!(webhooks::job_of(&db, DeliveryId::new()).await.unwrap(), None);
    }
}

#[tokio::test]
async fn what_stands_now_is_told_by_team_and_worker_in_one_statement() {
    for db in testing::databases().await {
        let (acme, other) = (testing::team(&db, "acme").await, testing::team(&db, "other").await);
        testing::job(&db, acme, JobKind::Batch, 3, None).await;
        testing::job(&db, acme, JobKind::Batch, 2, None).await;
        testing::job(&db, other, JobKind::Batch, 1, None).await;
        let (id, now) = (WorkerId::new(), db.now());
        let node = NodeRow {
            id,
            name: "host-1".into(),
            host: "h".into(),
            pid: 1,
            address: "a:1".into(),
            state: NodeState::Live,
            slots: 16,
            session_slots: 12,
            sessions_refused: None,
            started_at: now,
            heartbeat_at: now,
        };
        let pages = BTreeMap::from([("http".to_owned(), Ended { done: 4, failed: 0 })]);
        let load = Load { version: "1".into(), busy: 2, pages, ..Load::default() };
        let mut tx = db.begin().await.unwrap();
        nodes::insert(&mut tx, &node).await.unwrap();
        nodes::heartbeat(&mut tx, id, now, Some(&load)).await.unwrap();
        tx.commit().await.unwrap();
        let lines = console::figures::now(&db).await.unwrap();
        let queue = |team: &str| lines.iter().find(|line| line.what == "queue" && line.id == team).unwrap();
        assert_eq!((queue(&acme.to_string()).count, queue(&acme.to_string()).more), (5, 2));
        assert_eq!(queue(&other.to_string()).count, 1);
        assert!(queue(&other.to_string()).at.is_some());
        let worker = lines.iter().find(|line| line.what == "node").unwrap();
        assert_eq!((worker.id.as_str(), worker.count, worker.more), (id.to_string().as_str(), 16, 12));
        assert_eq!(serde_json::from_str::<Load>(worker.load.as_deref().unwrap()).unwrap(), load);
        let stories = nodes::stories(&db).await.unwrap();
        assert_eq!((stories.len(), stories[0].load.as_ref()), (1, Some(&load)));
    }
}
