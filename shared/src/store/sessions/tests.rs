//! The life of sessions and profiles in the store, on both databases.

#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::domain::location::Location;
use crate::domain::node::{Load, NodeState};
use crate::domain::profile::ProfileUse;
use crate::domain::session::{CreateSession, EndReason, SessionKind, SessionState};
use crate::ids::{PageId, SessionId, TeamId, WorkerId};
use crate::store::accounts::{credits, teams};
use crate::store::contents::waste;
use crate::store::sessions::profiles::{self, Published, Removal};
use crate::store::testing::{databases, team};
use crate::store::upkeep::sweep;
use crate::store::work::nodes::{self, NodeRow};
use crate::store::{Db, StoreError};
use crate::time::Timestamp;
use crate::{on_db, on_pool};

fn request(ttl: i64, profile: Option<(&str, bool)>) -> CreateSession {
    let profile = profile.map(|(name, save_changes)| ProfileUse { name: name.to_owned(), save_changes });
    CreateSession {
        ttl,
        activity_ttl: 300,
        stream_web_view: true,
        profile,
        block_ads: true,
        location: None,
        warning: None,
    }
}

async fn worker(db: &Db, slots: i64, now: Timestamp) -> WorkerId {
    let id = WorkerId::new();
    let node = NodeRow {
        id,
        name: format!("host-{id}"),
        host: "h".into(),
        pid: 1,
        address: format!("{id}:1"),
        state: NodeState::Live,
        slots: 16,
        session_slots: slots,
        sessions_refused: (slots == 0).then(|| "no user namespaces".to_owned()),
        started_at: now,
        heartbeat_at: now,
    };
    let mut tx = db.begin().await.unwrap();
    nodes::insert(&mut tx, &node).await.unwrap();
    tx.commit().await.unwrap();
    id
}

/// What a test places: limit 10, no credits needed.
fn plain(team: TeamId, request: &CreateSession) -> NewSession<'_> {
    NewSession {
        team,
        key: None,
        kind: SessionKind::Browser,
        page: None,
        request,
        default_limit: 10,
        metered: false,
        avoid: &[],
        only: None,
    }
}

/// Places and commits; a refusal rolls back.
async fn try_place(db: &Db, new: &NewSession<'_>, now: Timestamp) -> Result<Placed, NotPlaced> {
    let mut tx = db.begin().await.unwrap();
    let placed = create(&mut tx, new, now).await.unwrap()?;
    tx.commit().await.unwrap();
    Ok(placed)
}

async fn place(db: &Db, team: TeamId, request: &CreateSession, now: Timestamp) -> SessionId {
    try_place(db, &plain(team, request), now).await.unwrap().id
}

async fn open(db: &Db, id: SessionId, now: Timestamp) -> bool {
    let mut tx = db.begin().await.unwrap();
    let opened = activate(&mut tx, id, Found::default(), now).await.unwrap();
    tx.commit().await.unwrap();
    opened
}

async fn close(db: &Db, id: SessionId, reason: EndReason, at: Timestamp) -> bool {
    let mut tx = db.begin().await.unwrap();
    let closing = begin_close(&mut tx, id, reason, at).await.unwrap();
    tx.commit().await.unwrap();
    closing
}

async fn end(db: &Db, id: SessionId, reason: EndReason, at: Timestamp) -> Option<Ended> {
    let mut tx = db.begin().await.unwrap();
    let ended = destroy(&mut tx, id, reason, at).await.unwrap();
    tx.commit().await.unwrap();
    ended
}

async fn used(db: &Db, team: TeamId) -> i64 {
    credits::balance(db, team).await.unwrap().unwrap().used
}

async fn ledger(db: &Db, team: TeamId) -> Vec<(String, String, i64)> {
    const SQL: &str = "SELECT key, kind, amount FROM credit_entry WHERE team_id = $1 ORDER BY key";
    let read =
        async { Ok::<_, StoreError>(on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).fetch_all(pool).await?)) };
    read.await.unwrap()
}

/// Runs one statement without parameters.
async fn run(db: &Db, sql: String) -> Result<u64, StoreError> {
    let mut tx = db.begin().await?;
    let done = on_db!(&mut tx, |conn| sqlx::query(sqlx::AssertSqlSafe(sql)).execute(conn).await?.rows_affected());
    tx.commit().await?;
    Ok(done)
}

#[tokio::test]
async fn how_a_session_goes_out_is_kept_with_what_its_worker_says_of_it() {
    for db in databases().await {
        let (team, now) = (team(&db, "a").await, db.now());
        worker(&db, 2, now).await;
        let location = Location { country: "DE".into(), languages: vec!["fr-FR".into(), "de".into()] };
        let wanted = CreateSession { block_ads: false, location: Some(location.clone()), ..request(600, None) };
        let abroad = try_place(&db, &plain(team, &wanted), now).await.unwrap().id;
        let plain = try_place(&db, &plain(team, &request(600, None)), now).await.unwrap().id;
        let row = load(&db, abroad).await.unwrap().unwrap();
        assert_eq!((row.block_ads, row.location, row.warning), (false, Some(location), None));
        let mut tx = db.begin().await.unwrap();
        let found = Found { profile: None, warning: Some("not that one") };
        assert!(activate(&mut tx, abroad, found, now).await.unwrap());
        assert!(activate(&mut tx, plain, Found::default(), now).await.unwrap());
        tx.commit().await.unwrap();
        assert_eq!(load(&db, abroad).await.unwrap().unwrap().warning.as_deref(), Some("not that one"));
        let row = load(&db, plain).await.unwrap().unwrap();
        assert_eq!((row.block_ads, row.location, row.warning), (true, None, None));
    }
}

#[tokio::test]
async fn a_session_is_placed_opened_used_closed_and_billed_once() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let now = db.now();
        let worker = worker(&db, 2, now).await;
        let request = request(600, None);
        let placed = try_place(&db, &plain(team, &request), now).await.unwrap();
        assert_eq!((placed.worker, &placed.address), (worker, &format!("{worker}:1")));
        let id = placed.id;
        let row = load(&db, id).await.unwrap().unwrap();
        assert_eq!((row.state, row.opened_at, row.credits), (SessionState::Opening, None, 20));
        assert_eq!((row.ttl_ms, row.activity_ttl_ms, row.stream_web_view), (600_000, 300_000, true));
        assert_eq!(list(&db, team, None, now).await.unwrap(), vec![], "nobody was told of it yet");
        // Its worker may have the browser already, and write down that it was used.
        let mut tx = db.begin().await.unwrap();
        assert_eq!(touch(&mut tx, &[(id, now)]).await.unwrap(), vec![id], "it is about to live");
        tx.commit().await.unwrap();

        let opened = now.plus_ms(500);
        assert!(open(&db, id, opened).await);
        assert!(!open(&db, id, opened.plus_ms(1)).await, "once");
        let row = load(&db, id).await.unwrap().unwrap();
        assert_eq!(
            (row.state, row.opened_at, row.expires_at),
            (SessionState::Active, Some(opened), opened.plus_ms(600_000))
        );
        assert!(!row.is_orphan(now) && row.is_live());

        let mut tx = db.begin().await.unwrap();
        let touched = [(id, opened.plus_ms(5_000)), (SessionId::new(), opened)];
        assert_eq!(touch(&mut tx, &touched).await.unwrap(), vec![id]);
        assert_eq!(touch(&mut tx, &[(id, opened.plus_ms(2_000))]).await.unwrap(), vec![id]);
        assert_eq!(touch(&mut tx, &[]).await.unwrap(), vec![]);
        tx.commit().await.unwrap();
        assert_eq!(load(&db, id).await.unwrap().unwrap().last_activity, opened.plus_ms(5_000), "the latest");
        assert_eq!(of_worker(&db, worker).await.unwrap().len(), 1);
        assert_eq!(by_worker(&db).await.unwrap(), vec![(worker, 1)]);

        assert!(close(&db, id, EndReason::Deleted, opened.plus_ms(61_000)).await);
        assert!(!close(&db, id, EndReason::Ttl, opened.plus_ms(62_000)).await);
        let mut tx = db.begin().await.unwrap();
        assert_eq!(touch(&mut tx, &[(id, opened)]).await.unwrap(), vec![], "it takes no more calls");
        tx.commit().await.unwrap();
        let closing = load(&db, id).await.unwrap().unwrap();
        let expected = Ended { duration_ms: 61_000, credits: 3 };
        assert_eq!((closing.state, closing.bill(now)), (SessionState::Closing, expected));
        assert_eq!(used(&db, team).await, 0, "billed when it is destroyed");

        // Closing takes time, which is not billed; whoever destroys it, and however often, the numbers stay.
        for reason in [EndReason::Crashed, EndReason::Deleted, EndReason::NotOpened] {
            assert_eq!(end(&db, id, reason, opened.plus_ms(90_000)).await, Some(expected));
        }
        let row = load(&db, id).await.unwrap().unwrap();
        assert_eq!((row.state, row.end_reason), (SessionState::Destroyed, Some(EndReason::Deleted)));
        assert_eq!((row.ended_at, row.bill(now)), (Some(opened.plus_ms(61_000)), expected));
        assert_eq!(ledger(&db, team).await, vec![(format!("session:{id}"), "browser".to_owned(), 3)]);
        assert_eq!(used(&db, team).await, 3);
        assert!(!open(&db, id, now).await && !close(&db, id, EndReason::Ttl, now).await, "nothing comes back");
        assert_eq!(of_worker(&db, worker).await.unwrap(), vec![]);
        assert_eq!(end(&db, SessionId::new(), EndReason::Deleted, now).await, None);
    }
}

#[tokio::test]
async fn a_session_that_never_opened_is_not_billed_nor_listed() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let now = db.now();
        worker(&db, 5, now).await;
        let request = request(600, Some(("p", true)));
        let never = place(&db, team, &request, now).await;
        assert_eq!(end(&db, never, EndReason::NotOpened, now).await, Some(Ended { duration_ms: 0, credits: 0 }));
        // Opened after its caller had given up.
        let late = place(&db, team, &request, now).await;
        assert!(open(&db, late, now).await);
        let ended = end(&db, late, EndReason::NotOpened, now.plus_ms(90_000)).await;
        assert_eq!(ended, Some(Ended { duration_ms: 0, credits: 0 }));
        // Closing already when its caller gave up.
        let closing = place(&db, team, &request, now).await;
        assert!(open(&db, closing, now).await && close(&db, closing, EndReason::Crashed, now).await);
        assert_eq!(end(&db, closing, EndReason::NotOpened, now).await.unwrap().credits, 0);
        assert_eq!((ledger(&db, team).await, used(&db, team).await), (vec![], 0));
        assert_eq!(list(&db, team, None, now.plus_ms(-1_000)).await.unwrap(), vec![]);
    }
}

#[tokio::test]
async fn a_team_has_its_number_of_sessions_and_no_more() {
    for db in databases().await {
        let (small, other) = (team(&db, "small").await, team(&db, "other").await);
        let mut tx = db.begin().await.unwrap();
        let change = teams::TeamChange { sessions: Some(Some(2)), ..Default::default() };
        assert!(teams::update(&mut tx, small, &change).await.unwrap());
        tx.commit().await.unwrap();
        let now = db.now();
        worker(&db, 20, now).await;
        let request = request(60, None);
        let first = place(&db, small, &request, now).await;
        let second = place(&db, small, &request, now).await;
        assert_eq!(try_place(&db, &plain(small, &request), now).await, Err(NotPlaced::TooMany { limit: 2 }));
        assert!(open(&db, first, now).await && close(&db, first, EndReason::Idle, now).await);
        assert_eq!(
            try_place(&db, &plain(small, &request), now).await,
            Err(NotPlaced::TooMany { limit: 2 }),
            "one that closes has its place still"
        );
        end(&db, first, EndReason::Idle, now).await;
        end(&db, second, EndReason::NotOpened, now).await;
        place(&db, small, &request, now).await;
        let one = NewSession { default_limit: 1, ..plain(other, &request) };
        assert!(try_place(&db, &one, now).await.is_ok(), "teams do not share a limit");
        assert_eq!(try_place(&db, &one, now).await, Err(NotPlaced::TooMany { limit: 1 }));
    }
}

#[tokio::test]
async fn a_metered_team_pays_for_the_whole_ttl_up_front_and_gets_the_rest_back() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let mut tx = db.begin().await.unwrap();
        credits::grant(&mut tx, team, 25).await.unwrap();
        tx.commit().await.unwrap();
        let now = db.now();
        worker(&db, 5, now).await;
        let request = request(600, None);
        let metered = NewSession { metered: true, ..plain(team, &request) };
        let id = try_place(&db, &metered, now).await.unwrap().id;
        assert_eq!(try_place(&db, &metered, now).await, Err(NotPlaced::Short { need: 20, left: 5 }));
        assert_eq!(credits::balance(&db, team).await.unwrap().unwrap().left(), 5);
        open(&db, id, now).await;
        // Past its ttl nobody pays.
        assert_eq!(end(&db, id, EndReason::Ttl, now.plus_ms(900_000)).await.unwrap().credits, 20);
        let balance = credits::balance(&db, team).await.unwrap().unwrap();
        assert_eq!((balance.used, balance.reserved, balance.left()), (20, 0, 5));
    }
}

#[tokio::test]
async fn a_worker_that_is_set_to_take_no_sessions_is_not_waited_for() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let now = db.now();
        let request = request(60, None);
        let new = plain(team, &request);
        let none = worker(&db, 0, now).await;
        let mut tx = db.begin().await.unwrap();
        nodes::offer_sessions(&mut tx, none, 0, None).await.unwrap();
        nodes::heartbeat(&mut tx, none, now, Some(&Load::default())).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(try_place(&db, &new, now).await, Err(NotPlaced::NotYet), "it has not said so");
        let load = Load { takes_no_sessions: true, ..Load::default() };
        let mut tx = db.begin().await.unwrap();
        nodes::heartbeat(&mut tx, none, now, Some(&load)).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(try_place(&db, &new, now).await, Err(NotPlaced::NotOffered { why: None }));
        worker(&db, 1, now).await;
        assert!(try_place(&db, &new, now).await.is_ok());
        assert_eq!(try_place(&db, &new, now).await, Err(NotPlaced::Full));
    }
}

#[tokio::test]
async fn the_worker_with_the_most_free_slots_is_taken() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let now = db.now();
        let request = request(60, None);
        let new = plain(team, &request);
        assert_eq!(try_place(&db, &new, now).await, Err(NotPlaced::NoWorker));
        let undecided = worker(&db, 0, now).await;
        let mut tx = db.begin().await.unwrap();
        nodes::offer_sessions(&mut tx, undecided, 0, None).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(try_place(&db, &new, now).await, Err(NotPlaced::NotYet), "it may still be trying its sandbox");
        let later = now.plus_ms(35_000);
        let mut tx = db.begin().await.unwrap();
        nodes::heartbeat(&mut tx, undecided, later, None).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(try_place(&db, &new, later).await, Err(NotPlaced::NotOffered { why: None }));
        let mut tx = db.begin().await.unwrap();
        let why = Some("no user namespaces".to_owned());
        nodes::offer_sessions(&mut tx, undecided, 0, why.as_deref()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(try_place(&db, &new, now).await, Err(NotPlaced::NotOffered { why }));
        let mut tx = db.begin().await.unwrap();
        nodes::declare_dead(&mut tx, undecided).await.unwrap();
        tx.commit().await.unwrap();
        let (two, three) = (worker(&db, 2, now).await, worker(&db, 3, now.plus_ms(1)).await);
        let mut chosen = Vec::new();
        for _ in 0..5 {
            chosen.push(try_place(&db, &new, now).await.unwrap().worker);
        }
        assert_eq!(chosen, [three, two, three, two, three]);
        assert_eq!(try_place(&db, &new, now).await, Err(NotPlaced::Full));
        end(&db, of_worker(&db, two).await.unwrap()[0].id, EndReason::NotOpened, now).await;
        let avoid = NewSession { avoid: &[two], ..new.clone() };
        assert_eq!(try_place(&db, &avoid, now).await, Err(NotPlaced::Away), "not the one that was unreachable");
        let mut tx = db.begin().await.unwrap();
        assert!(nodes::drain(&mut tx, &two.to_string()).await.unwrap());
        tx.commit().await.unwrap();
        assert_eq!(try_place(&db, &new, now).await, Err(NotPlaced::Full), "one that drains takes none");
        let (coming, unreachable) = (worker(&db, 0, now).await, NewSession { avoid: &[two, three], ..new.clone() });
        let mut tx = db.begin().await.unwrap();
        nodes::offer_sessions(&mut tx, coming, 0, None).await.unwrap();
        tx.commit().await.unwrap();
        for new in [&new, &unreachable] {
            assert_eq!(
                try_place(&db, new, now).await,
                Err(NotPlaced::NotYet),
                "one that has just started may have room"
            );
        }
        let mine = NewSession { only: Some(three), ..new.clone() };
        assert_eq!(try_place(&db, &mine, now).await, Err(NotPlaced::Full), "no other one will do");
        let mut tx = db.begin().await.unwrap();
        nodes::declare_dead(&mut tx, coming).await.unwrap();
        tx.commit().await.unwrap();
        let later = now.plus_ms(nodes::DEAD_MS + 2);
        assert_eq!(try_place(&db, &new, later).await, Err(NotPlaced::Away), "silent, and not declared dead");
        let mut tx = db.begin().await.unwrap();
        nodes::bury(&mut tx, later).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(try_place(&db, &new, later).await, Err(NotPlaced::NoWorker));
    }
}

#[tokio::test]
async fn placements_at_once_never_take_more_than_there_is() {
    for db in databases().await {
        let now = db.now();
        worker(&db, 2, now).await;
        worker(&db, 3, now).await;
        let teams = [team(&db, "a").await, team(&db, "b").await, team(&db, "c").await];
        let tries = (0..15).map(|n| {
            let (db, team) = (db.clone(), teams[n % 3]);
            tokio::spawn(async move {
                let request = request(60, None);
                try_place(&db, &NewSession { default_limit: 4, ..plain(team, &request) }, now).await.is_ok()
            })
        });
        let outcomes = futures_util::future::join_all(tries).await;
        assert_eq!(outcomes.into_iter().filter(|o| *o.as_ref().unwrap()).count(), 5, "as many as there are slots");
        let counts = counts(&db, now).await.unwrap();
        assert_eq!((counts.opening, counts.active, counts.closing, counts.slots), (5, 0, 0, 5));
    }
}

#[tokio::test]
async fn a_profile_has_one_saver_and_any_number_of_readers() {
    for db in databases().await {
        let (mine, theirs) = (team(&db, "mine").await, team(&db, "theirs").await);
        let now = db.now();
        worker(&db, 10, now).await;
        let (saves, reads) = (request(600, Some(("p", true))), request(600, Some(("p", false))));
        let saver = place(&db, mine, &saves, now).await;
        assert_eq!(try_place(&db, &plain(mine, &saves), now).await, Err(NotPlaced::ProfileBusy));
        let counts = counts(&db, now).await.unwrap();
        assert_eq!(counts.opening, 1, "a refusal leaves nothing");
        let reader = place(&db, mine, &reads, now).await;
        assert_eq!(load(&db, reader).await.unwrap().unwrap().profile_version, None);
        place(&db, theirs, &saves, now).await;

        assert_eq!(profiles::current(&db, mine, "p").await.unwrap(), None);
        let mut tx = db.begin().await.unwrap();
        assert_eq!(profiles::remove(&mut tx, mine, "p", now).await.unwrap(), Removal::Busy);
        assert_eq!(profiles::remove(&mut tx, mine, "q", now).await.unwrap(), Removal::Missing);
        let put = ["one", "two", "late"].map(str::to_owned);
        waste::expect(&mut tx, &put, now.plus_ms(waste::OWNERLESS_MS)).await.unwrap();
        let refused = profiles::publish(&mut tx, reader, "r", 1, now).await.unwrap();
        assert_eq!(refused, Published::Refused, "a reader saves nothing");
        let first = profiles::publish(&mut tx, saver, "one", 10, now).await.unwrap();
        assert_eq!(first, Published::Saved { version: 1 });
        let second = profiles::publish(&mut tx, saver, "two", 20, now).await.unwrap();
        assert_eq!(second, Published::Saved { version: 2 });
        tx.commit().await.unwrap();
        let current = profiles::current(&db, mine, "p").await.unwrap().unwrap();
        assert_eq!((current.version, current.blob.as_str(), current.size), (2, "two", 20));
        assert_eq!(profiles::current(&db, theirs, "p").await.unwrap(), None, "a name belongs to its team");

        end(&db, saver, EndReason::Deleted, now).await;
        let mut tx = db.begin().await.unwrap();
        let again = profiles::publish(&mut tx, saver, "two", 20, now).await.unwrap();
        assert_eq!(again, Published::Saved { version: 2 }, "the answer to its commit was lost");
        let late = profiles::publish(&mut tx, saver, "late", 1, now).await.unwrap();
        assert_eq!(late, Published::Refused, "the lease is gone with the session");
        tx.commit().await.unwrap();
        let next = place(&db, mine, &saves, now).await;
        assert_eq!(load(&db, next).await.unwrap().unwrap().profile_version, Some(2));
        let mut tx = db.begin().await.unwrap();
        assert!(activate(&mut tx, next, Found { profile: Some(3), warning: None }, now).await.unwrap());
        tx.commit().await.unwrap();
        assert_eq!(load(&db, next).await.unwrap().unwrap().profile_version, Some(3), "what it really loaded");
        end(&db, next, EndReason::Deleted, now).await;
        let mut tx = db.begin().await.unwrap();
        assert_eq!(profiles::remove(&mut tx, mine, "p", now).await.unwrap(), Removal::Removed);
        tx.commit().await.unwrap();
        assert_eq!(profiles::current(&db, mine, "p").await.unwrap(), None);
    }
}

#[tokio::test]
async fn sessions_of_a_dead_worker_end_with_its_last_sign_of_life() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let now = db.now();
        let (dies, lives) = (worker(&db, 3, now).await, worker(&db, 1, now).await);
        let saves = request(600, Some(("p", true)));
        let active = place(&db, team, &saves, now).await;
        open(&db, active, now).await;
        let opening = place(&db, team, &request(600, None), now).await;
        let other = try_place(&db, &NewSession { avoid: &[dies], ..plain(team, &saves.clone()) }, now).await;
        assert_eq!(other, Err(NotPlaced::ProfileBusy));
        let reads = request(600, Some(("p", false)));
        let other = try_place(&db, &NewSession { avoid: &[dies], ..plain(team, &reads) }, now).await.unwrap().id;
        open(&db, other, now).await;
        assert_eq!(end_orphans(&db).await.unwrap(), 0, "everybody lives");

        let heard = now.plus_ms(125_000);
        let later = heard.plus_ms(nodes::DEAD_MS + 1);
        let mut tx = db.begin().await.unwrap();
        nodes::heartbeat(&mut tx, dies, heard, None).await.unwrap();
        nodes::heartbeat(&mut tx, lives, later, None).await.unwrap();
        tx.commit().await.unwrap();
        assert!(!orphans_exist(&db, heard).await.unwrap() && orphans_exist(&db, later).await.unwrap());
        assert!(load(&db, active).await.unwrap().unwrap().is_orphan(later), "seen before it is buried");
        assert!(!load(&db, other).await.unwrap().unwrap().is_orphan(later));
        let mut tx = db.begin().await.unwrap();
        assert_eq!(nodes::bury(&mut tx, later).await.unwrap(), 1);
        tx.commit().await.unwrap();
        let row = load(&db, active).await.unwrap().unwrap();
        assert!(row.worker.is_none() && row.is_orphan(later));
        assert_eq!(end_orphans(&db).await.unwrap(), 2);
        assert!(!orphans_exist(&db, later).await.unwrap());
        assert_eq!(end_orphans(&db).await.unwrap(), 0);

        let row = load(&db, active).await.unwrap().unwrap();
        assert_eq!((row.ended_at, row.end_reason), (Some(heard), Some(EndReason::WorkerDied)));
        assert_eq!((row.duration_ms, row.credits), (Some(125_000), 5));
        assert_eq!(load(&db, opening).await.unwrap().unwrap().credits, 0);
        assert_eq!(load(&db, other).await.unwrap().unwrap().state, SessionState::Active);
        end(&db, other, EndReason::Deleted, now).await;
        assert!(try_place(&db, &plain(team, &saves), later).await.is_ok(), "slot and lease are free");
    }
}

#[tokio::test]
async fn a_dead_worker_is_remembered_while_its_sessions_are_not_ended() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let now = db.now();
        let dead = worker(&db, 1, now).await;
        let id = place(&db, team, &request(600, None), now).await;
        open(&db, id, now).await;
        let known = async || nodes::list(&db).await.unwrap().iter().any(|n| n.id == dead);
        let long_after = now.plus_ms(7_200_000);
        let mut tx = db.begin().await.unwrap();
        nodes::bury(&mut tx, long_after).await.unwrap();
        sweep::prune(&mut tx, long_after).await.unwrap();
        tx.commit().await.unwrap();
        assert!(known().await);
        end_orphans(&db).await.unwrap();
        let mut tx = db.begin().await.unwrap();
        sweep::prune(&mut tx, long_after).await.unwrap();
        tx.commit().await.unwrap();
        assert!(!known().await);
        // Its row may be gone all the same: then the session's own last activity counts.
        worker(&db, 1, now).await;
        let id = place(&db, team, &request(600, None), now).await;
        open(&db, id, now.plus_ms(1_000)).await;
        run(&db, "DELETE FROM worker_node".to_owned()).await.unwrap();
        assert_eq!(of_dead_workers(&db, 10).await.unwrap(), vec![(id, now.plus_ms(1_000))]);
    }
}

#[tokio::test]
async fn what_a_worker_forgot_is_ended_by_the_others() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let now = db.now();
        worker(&db, 5, now).await;
        let request = request(60, None);
        let opening = place(&db, team, &request, now).await;
        let active = place(&db, team, &request, now).await;
        open(&db, active, now).await;
        let closing = place(&db, team, &request, now).await;
        open(&db, closing, now).await;
        close(&db, closing, EndReason::Idle, now.plus_ms(40_000)).await;
        assert_eq!(end_overdue(&db, now.plus_ms(OPENING_MS)).await.unwrap(), 0);
        assert_eq!(end_overdue(&db, now.plus_ms(OPENING_MS + 1)).await.unwrap(), 1);
        assert_eq!(load(&db, opening).await.unwrap().unwrap().end_reason, Some(EndReason::NotOpened));
        let late = now.plus_ms(40_000 + CLOSING_MS + 1);
        assert_eq!(end_overdue(&db, late).await.unwrap(), 2);
        let row = load(&db, active).await.unwrap().unwrap();
        assert_eq!((row.end_reason, row.duration_ms, row.credits), (Some(EndReason::Ttl), Some(60_000), 2));
        let row = load(&db, closing).await.unwrap().unwrap();
        assert_eq!((row.end_reason, row.duration_ms), (Some(EndReason::Idle), Some(40_000)));
        assert_eq!(end_overdue(&db, late).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn lists_are_newest_first_by_status_and_forget_after_the_result_time() {
    for db in databases().await {
        let (mine, theirs) = (team(&db, "mine").await, team(&db, "theirs").await);
        let now = db.now();
        worker(&db, 10, now).await;
        let request = request(60, None);
        let mut ids = Vec::new();
        for n in 0..4 {
            let id = place(&db, mine, &request, now.plus_ms(n)).await;
            open(&db, id, now.plus_ms(n)).await;
            ids.push(id);
        }
        let foreign = place(&db, theirs, &request, now).await;
        open(&db, foreign, now).await;
        end(&db, ids[0], EndReason::Deleted, now.plus_ms(10_000)).await;
        end(&db, ids[1], EndReason::Deleted, now.plus_ms(20_000)).await;
        close(&db, ids[2], EndReason::Deleted, now.plus_ms(30_000)).await;
        let listed = async |status, since| -> Vec<SessionId> {
            list(&db, mine, status, since).await.unwrap().iter().map(|s| s.id).collect()
        };
        assert_eq!(listed(None, now).await, [ids[3], ids[2], ids[1], ids[0]]);
        assert_eq!(listed(Some(SessionState::Active), now).await, [ids[3]]);
        assert_eq!(listed(Some(SessionState::Destroyed), now).await, [ids[2], ids[1], ids[0]]);
        assert_eq!(listed(None, now.plus_ms(15_000)).await, [ids[3], ids[2], ids[1]]);
        let mut tx = db.begin().await.unwrap();
        assert_eq!(remove_old(&mut tx, now.plus_ms(15_000)).await.unwrap(), 1);
        assert_eq!(remove_old(&mut tx, now.plus_ms(900_000)).await.unwrap(), 1, "only what is destroyed");
        tx.commit().await.unwrap();
        assert_eq!((load(&db, ids[0]).await.unwrap(), used(&db, mine).await), (None, 4), "the ledger stays");
    }
}

#[tokio::test]
async fn deletes_at_once_bill_once_and_agree() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let now = db.now();
        worker(&db, 1, now).await;
        let id = place(&db, team, &request(600, Some(("p", true))), now).await;
        open(&db, id, now).await;
        let tries = (0..8).map(|n| {
            let db = db.clone();
            tokio::spawn(async move { end(&db, id, EndReason::Deleted, now.plus_ms(100_000 + n * 60_000)).await })
        });
        let ended: Vec<_> =
            futures_util::future::join_all(tries).await.into_iter().map(|e| e.unwrap().unwrap()).collect();
        assert!(ended.iter().all(|e| *e == ended[0]), "{ended:?}");
        assert_eq!((used(&db, team).await, ledger(&db, team).await.len()), (ended[0].credits, 1));
    }
}

#[tokio::test]
async fn the_columns_of_a_session_fit_its_state() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let now = db.now();
        worker(&db, 1, now).await;
        let id = place(&db, team, &request(60, Some(("p", true))), now).await;
        for wrong in [
            "state = 'active'",
            "state = 'closing', opened_at = 1",
            "state = 'destroyed'",
            "opened_at = 1",
            "ended_at = 1, end_reason = 'ttl'",
            "state = 'gone'",
            "kind = 'interact'",
            "profile_save = NULL",
            "profile_name = NULL, profile_save = NULL, profile_version = 1",
        ] {
            let sql = format!("UPDATE browser_session SET {wrong} WHERE id = '{id}'");
            assert!(run(&db, sql).await.is_err(), "{wrong}");
        }
        assert_eq!(
            run(&db, format!("UPDATE browser_session SET state = 'active', opened_at = 1 WHERE id = '{id}'"))
                .await
                .unwrap(),
            1
        );
    }
}

#[tokio::test]
async fn a_scrape_has_one_session_and_none_that_never_opened_counts() {
    for db in databases().await {
        let team = team(&db, "a").await;
        let now = db.now();
        worker(&db, 5, now).await;
        let request = request(600, None);
        let (page, other) = (PageId::new(), PageId::new());
        let of = |page| NewSession { kind: SessionKind::Interact, page: Some(page), ..plain(team, &request) };
        assert_eq!(of_page(&db, page).await.unwrap(), None);
        let first = try_place(&db, &of(page), now).await.unwrap().id;
        assert_eq!(try_place(&db, &of(page), now).await, Err(NotPlaced::Taken), "it is being opened");
        end(&db, first, EndReason::WorkerDied, now).await;
        assert_eq!(of_page(&db, page).await.unwrap(), None, "its worker died before it opened");
        let second = try_place(&db, &of(page), now).await.unwrap().id;
        end(&db, second, EndReason::NotOpened, now).await;
        let third = try_place(&db, &of(page), now).await.unwrap().id;
        assert!(open(&db, third, now).await);
        try_place(&db, &of(other), now).await.unwrap();
        end(&db, third, EndReason::Deleted, now.plus_ms(61_000)).await;
        let row = of_page(&db, page).await.unwrap().unwrap();
        assert_eq!((row.id, row.kind, row.page_id, row.credits), (third, SessionKind::Interact, Some(page), 3));
        assert_eq!(try_place(&db, &of(page), now).await, Err(NotPlaced::Taken), "and nothing comes after it");
        let twin = format!("UPDATE browser_session SET page_id = '{page}' WHERE page_id = '{other}'");
        assert!(run(&db, twin).await.is_err(), "the database says so too");
        assert_eq!(ledger(&db, team).await, vec![(format!("session:{third}"), "interact".to_owned(), 3)]);
    }
}

#[tokio::test]
async fn why_a_session_did_not_open_is_told_once_and_what_is_said_of_one_stays() {
    for db in databases().await {
        let (team, other) = (team(&db, "a").await, team(&db, "b").await);
        let now = db.now();
        worker(&db, 9, now).await;
        let request = request(600, None);
        let page = PageId::new();
        let of_page = NewSession { kind: SessionKind::Interact, page: Some(page), ..plain(team, &request) };
        let say = async |id, text| {
            let mut tx = db.begin().await.unwrap();
            warn(&mut tx, id, text).await.unwrap();
            tx.commit().await.unwrap();
        };
        let before = now.plus_ms(-1);
        let taken = async |team, page, since| take_failure(&db, team, page, since).await.unwrap();
        for (text, reason) in [("the page hangs", EndReason::NotOpened), ("its worker died", EndReason::WorkerDied)] {
            let never = try_place(&db, &of_page, now).await.unwrap().id;
            say(never, text).await;
            assert_eq!(taken(team, page, before).await, None, "it may open yet");
            end(&db, never, reason, now).await;
            assert_eq!(taken(other, page, before).await, None);
            assert_eq!(taken(team, PageId::new(), before).await, None);
            assert_eq!(taken(team, page, now).await, None, "too long ago");
            assert_eq!(taken(team, page, before).await.as_deref(), Some(text));
            assert_eq!(taken(team, page, before).await, None, "somebody has heard of it");
        }
        // Of one that was opened it is no failure to open.
        let opened = try_place(&db, &of_page, now).await.unwrap().id;
        assert!(open(&db, opened, now).await);
        say(opened, "One.").await;
        say(opened, "Two.").await;
        end(&db, opened, EndReason::Deleted, now).await;
        say(opened, "Said again.").await;
        assert_eq!(load(&db, opened).await.unwrap().unwrap().warning.as_deref(), Some("One. Two."));
        assert_eq!(taken(team, page, before).await, None);
        // What becomes known after its end is said as well.
        let silent = place(&db, team, &request, now).await;
        end(&db, silent, EndReason::NotOpened, now).await;
        say(silent, "Late.").await;
        assert_eq!(load(&db, silent).await.unwrap().unwrap().warning.as_deref(), Some("Late."));
    }
}

#[tokio::test]
async fn sessions_are_listed_over_teams_from_before_one_of_them() {
    for db in databases().await {
        let (acme, other, now) = (team(&db, "acme").await, team(&db, "other").await, db.now());
        worker(&db, 5, now).await;
        let mut ids = Vec::new();
        for of in [acme, other, acme] {
            let id = place(&db, of, &request(600, None), now).await;
            assert!(open(&db, id, now).await);
            ids.insert(0, id);
        }
        let unopened = place(&db, acme, &request(600, None), now).await;
        let list = async |team, status, before, limit| {
            let rows = list_before(&db, team, status, before, limit).await.unwrap();
            rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
        };
        assert_eq!(list(None, None, None, 9).await, ids);
        assert_eq!(list(None, None, None, 1).await, ids[..1]);
        assert_eq!(list(None, None, Some(ids[0]), 9).await, ids[1..]);
        assert_eq!(list(Some(other), Some(SessionState::Active), None, 9).await, [ids[1]]);
        assert!(list(None, Some(SessionState::Destroyed), None, 9).await.is_empty());
        assert_eq!(live_count(&db, acme).await.unwrap(), 3, "{unopened} holds a place, too");
    }
}
