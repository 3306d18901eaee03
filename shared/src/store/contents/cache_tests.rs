#![allow(clippy::unwrap_used, reason = "tests")]
use serde_json::{Value, json};
use url::Url;

use super::*;
use crate::domain::job::JobKind;
use crate::fault::Fault;
use crate::ids::WorkerId;
use crate::store::contents::derived::{Derived, Piece};
use crate::store::contents::finder::Finder;
use crate::store::contents::waste;
use crate::store::db::slices::Slices;
use crate::store::testing;
use crate::store::upkeep::sweep;
use crate::store::work::documents;
use crate::store::work::page::end::{Finished, Outcome};
use crate::store::work::page::{claim, finish};

fn blobs() -> Blobs {
    Blobs::open(&std::env::temp_dir().join(format!("weir-blobs-{}", random::id()))).unwrap()
}

fn key(name: &str) -> CacheKey {
    CacheKey(name.to_owned())
}

fn any(name: &str) -> Lookup {
    Lookup { keys: vec![key(name)], from: Timestamp(0), to: Timestamp(i64::MAX), now: Timestamp(0) }
}

fn head(parts: &PartsOf<'_>) -> Head {
    let url = Url::parse("http://site.test/").unwrap();
    Head {
        asked: None,
        url,
        status: 200,
        content_type: None,
        charset: None,
        timezone: None,
        is_unseen: false,
        parts: Parts::of(parts),
    }
}

fn version(name: &str, body: &[u8]) -> Version {
    let parts: PartsOf<'_> = [Some(body), None, None, None];
    let url = format!("http://site.test/{name}");
    Version::pack((vec![key(name)], LOCKDOWN_MAX_AGE_MS), &url, &head(&parts), &parts).unwrap().unwrap()
}

/// The body that is kept under a name, unpacked.
async fn found(db: &Db, blobs: &Blobs, name: &str) -> Option<Vec<u8>> {
    let found = find(db, &any(name)).await.unwrap().into_iter().next()?;
    Some(body(found, blobs).await)
}

/// The body of what was found, unpacked.
async fn body(found: Found, blobs: &Blobs) -> Vec<u8> {
    let content = found.bring(blobs).await.unwrap().unpack().unwrap();
    content.into_parts()[0].take().unwrap()
}

/// Ends a page with this version at `at`.
async fn store(db: &Db, team: TeamId, version: Version, at: Timestamp) -> StoreResult<()> {
    store_all(db, team, (Some(version), None), at).await
}

/// Ends a page with what was made of a content, at `at`.
async fn derive(db: &Db, team: TeamId, digest: &str, made: &[(&str, Value)], at: Timestamp) {
    let pieces = made.iter().map(|(key, value)| Piece::pack((*key).to_owned(), value).unwrap().unwrap()).collect();
    let derived = Derived { digest: digest.to_owned(), pieces };
    store_all(db, team, (None, Some(derived)), at).await.unwrap();
}

async fn store_all(
    db: &Db,
    team: TeamId,
    (version, derived): (Option<Version>, Option<Derived>),
    at: Timestamp,
) -> StoreResult<()> {
    let (job, ids) = testing::job(db, team, JobKind::Scrape, 1, None).await;
    let claimed = claim::claim_one(db, team, ids[0], WorkerId::new(), 50, db.now()).await.unwrap();
    let page = claimed.unwrap().0;
    let mut document = documents::encode(&json!({})).unwrap();
    (document.version, document.derived) = (version.map(Box::new), derived.map(Box::new));
    let outcome = Outcome::Done { document, credits: 1 };
    let end = [Finished { page, kind: Some(JobKind::Scrape), key: None, outcome }];
    finish::finish(db, &end, at).await.map(|report| assert_eq!(report.ended, [job]))
}

async fn stored(db: &Db, blobs: &Blobs, team: TeamId, name: &str, body: &[u8], at: Timestamp) {
    let mut version = version(name, body);
    version.settle(db, blobs).await.unwrap();
    store(db, team, version, at).await.unwrap();
}

async fn contents(db: &Db) -> i64 {
    const SQL: &str = "SELECT COUNT(*) FROM page_content";
    let count: (i64,) = on_pool!(db, |pool| sqlx::query_as(SQL).fetch_one(pool).await.unwrap());
    count.0
}

#[tokio::test]
async fn a_page_is_found_by_its_key_and_age_until_another_takes_its_place() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        let other = testing::team(&db, "b").await;
        assert_eq!(found(&db, &blobs, "x").await, None);
        stored(&db, &blobs, team, "x", b"first", Timestamp(1_000)).await;
        stored(&db, &blobs, team, "y", b"else", Timestamp(1_500)).await;
        assert_eq!(found(&db, &blobs, "x").await.unwrap(), b"first");
        for (from, to, now, is_there) in [
            (1_000, 1_000, 0, true),
            (1_001, 9_000, 0, false),
            (0, 999, 0, false),
            (0, 9_000, 1_000 + LOCKDOWN_MAX_AGE_MS, false),
        ] {
            let lookup = Lookup { keys: vec![key("x")], from: Timestamp(from), to: Timestamp(to), now: Timestamp(now) };
            assert_eq!(find(&db, &lookup).await.unwrap().len(), usize::from(is_there), "{from} {to} {now}");
        }
        let both = Lookup { keys: vec![key("x"), key("y"), key("z")], ..any("x") };
        let times: Vec<i64> = find(&db, &both).await.unwrap().iter().map(|found| found.stored_at.0).collect();
        assert_eq!(times, [1_500, 1_000], "newest first");
        assert_eq!(known_urls(&db, team, "site.test", 10).await.unwrap(), ["http://site.test/y", "http://site.test/x"]);
        stored(&db, &blobs, other, "x", b"second", Timestamp(2_000)).await;
        assert_eq!(found(&db, &blobs, "x").await.unwrap(), b"second");
        assert_eq!(known_urls(&db, team, "site.test", 10).await.unwrap(), ["http://site.test/y"]);
        assert_eq!(known_urls(&db, other, "site.test", 10).await.unwrap(), ["http://site.test/x"]);
        assert!(known_urls(&db, team, "other.test", 10).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn what_is_equal_is_stored_once_whatever_address_it_came_from() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        stored(&db, &blobs, team, "x", b"text", Timestamp(1_000)).await;
        stored(&db, &blobs, team, "y", b"text", Timestamp(2_000)).await;
        stored(&db, &blobs, team, "x", b"text", Timestamp(3_000)).await;
        assert_eq!(contents(&db).await, 1);
        assert_eq!(find(&db, &any("x")).await.unwrap()[0].stored_at, Timestamp(3_000), "it is as new as asked for");
        assert_eq!(found(&db, &blobs, "y").await.unwrap(), b"text");
        // The same bytes in other parts are another content.
        let parts: PartsOf<'_> = [Some(b"te"), Some(b"xt"), None, None];
        let version = Version::pack((vec![key("z")], 9), "http://site.test/", &head(&parts), &parts).unwrap().unwrap();
        store(&db, team, version, Timestamp(1)).await.unwrap();
        let lookup = Lookup { now: Timestamp(1), ..any("z") };
        let found = find(&db, &lookup).await.unwrap();
        let content = found[0].unpack().unwrap();
        assert_eq!(content.into_parts(), [Some(b"te".to_vec()), Some(b"xt".to_vec()), None, None]);
        assert_eq!(contents(&db).await, 2);
        assert!(find(&db, &Lookup { now: Timestamp(10), ..any("z") }).await.unwrap().is_empty(), "its time is over");
    }
}

#[tokio::test]
async fn pages_outlive_their_jobs_and_large_ones_lie_in_blobs() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        let noise = random::bytes::<400_000>();
        stored(&db, &blobs, team, "small", b"kept", db.now()).await;
        stored(&db, &blobs, team, "large", &noise, db.now()).await;
        // The same once more has a blob for nothing.
        stored(&db, &blobs, team, "large", &noise, db.now()).await;
        assert_eq!(blobs.list().unwrap().len(), 2);
        let later = db.now().plus_ms(90_000_000);
        while sweep::expire(&db, &mut Slices::default(), later).await.unwrap() > 0 {}
        waste::remove_of_jobs(&db, &blobs, later).await.unwrap();
        assert_eq!(waste::remove(&db, &blobs, db.now()).await.unwrap(), 0, "a row may still come");
        assert_eq!(waste::remove(&db, &blobs, later).await.unwrap(), 2);
        assert_eq!(blobs.list().unwrap().len(), 1);
        assert_eq!(found(&db, &blobs, "small").await.unwrap(), b"kept");
        assert_eq!(found(&db, &blobs, "large").await.unwrap(), noise);
        // The blob goes with its content.
        assert_eq!(evict(&db, 0, later).await.unwrap(), 2);
        assert_eq!((found(&db, &blobs, "large").await, waste::remove(&db, &blobs, later).await.unwrap()), (None, 1));
        assert!(blobs.list().unwrap().is_empty());
        assert_eq!(waste::remove(&db, &blobs, later).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_blob_whose_row_never_came_does_not_stay() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        let mut version = version("large", &random::bytes::<400_000>());
        version.settle(&db, &blobs).await.unwrap();
        db.faults().arm(FaultPoint::BetweenBlobAndRow, Fault::Fail, 1);
        assert!(store(&db, team, version, db.now()).await.is_err());
        assert!(db.faults().have_happened());
        assert_eq!((found(&db, &blobs, "large").await, blobs.list().unwrap().len()), (None, 1));
        assert_eq!(waste::remove(&db, &blobs, db.now().plus_ms(waste::OWNERLESS_MS)).await.unwrap(), 1);
        assert!(blobs.list().unwrap().is_empty());
    }
}

#[tokio::test]
async fn what_was_not_used_for_longest_goes_first() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        let (now, day) = (db.now(), 86_400_000);
        for (name, at) in [("a", now.plus_ms(-3 * day)), ("b", now.plus_ms(-2 * day)), ("c", now.plus_ms(-day))] {
            stored(&db, &blobs, team, name, name.as_bytes(), at).await;
        }
        assert_eq!(evict(&db, 1 << 20, now).await.unwrap(), 0);
        // One that was read is in use; one that was read lately needs no telling.
        let uses = Uses::default();
        let read = find(&db, &any("a")).await.unwrap();
        uses.note(&read[0], now);
        uses.tell(&db).await.unwrap();
        uses.note(&find(&db, &any("a")).await.unwrap()[0], now);
        assert!(uses.0.lock().unwrap().is_empty());
        assert_eq!(evict(&db, 2 * (ROW + 100), now).await.unwrap(), 1);
        assert_eq!((found(&db, &blobs, "a").await.is_some(), found(&db, &blobs, "b").await), (true, None));
        // What is replaced is not used any more, and is the first to go.
        let later = now.plus_ms(60_000);
        stored(&db, &blobs, team, "a", b"anew", later).await;
        stored(&db, &blobs, team, "c", b"anew", later).await;
        assert_eq!(contents(&db).await, 3);
        assert_eq!(evict(&db, ROW + 100, later).await.unwrap(), 2);
        assert_eq!(found(&db, &blobs, "c").await.unwrap(), b"anew");
        let end = later.plus_ms(LOCKDOWN_MAX_AGE_MS + 1);
        assert_eq!(evict(&db, 1 << 20, end).await.unwrap(), 6, "five versions, and what two of them name");
    }
}

/// The number that was made so of a content.
async fn made(db: &Db, digest: &str, key: &str, from: Timestamp) -> Option<i64> {
    derived::get::<i64>(db, digest, key, from).await.unwrap()
}

#[tokio::test]
async fn what_was_made_of_a_content_is_kept_with_it_and_goes_with_it() {
    for db in testing::databases().await {
        let (blobs, team, now) = (blobs(), testing::team(&db, "a").await, db.now());
        let (x, y) = (version("x", b"text").digest, version("y", b"other").digest);
        derive(&db, team, &x, &[("k", json!(1))], now).await;
        assert_eq!(made(&db, &x, "k", Timestamp(0)).await, None, "there is no such content");
        stored(&db, &blobs, team, "x", b"text", now.plus_ms(-2)).await;
        stored(&db, &blobs, team, "y", b"other", now.plus_ms(-1)).await;
        derive(&db, team, &x, &[("l", json!(2)), ("k", json!(1))], now).await;
        for (digest, key, from, is_there) in
            [(&x, "k", now, true), (&x, "k", now.plus_ms(1), false), (&x, "m", now, false), (&y, "k", now, false)]
        {
            assert_eq!(made(&db, digest, key, from).await.is_some(), is_there, "{key}");
        }
        derive(&db, team, &x, &[("k", json!(3))], now.plus_ms(9)).await;
        assert_eq!(made(&db, &x, "k", now.plus_ms(9)).await, Some(3), "what was made last");
        // No more than so many of one content, and those of others stay.
        derive(&db, team, &y, &[("k", json!(4))], now).await;
        for n in 0..70_i64 {
            derive(&db, team, &x, &[(&format!("n{n}"), json!(n))], now.plus_ms(10 + n)).await;
        }
        assert_eq!(made(&db, &x, "n5", Timestamp(0)).await, None);
        assert_eq!((made(&db, &x, "n6", Timestamp(0)).await, made(&db, &y, "k", now).await), (Some(6), Some(4)));
        // They count: without them both contents would have room.
        assert_eq!(evict(&db, 3 * (ROW + 100) + 64 * 400, now).await.unwrap(), 0);
        assert_eq!(evict(&db, 3 * (ROW + 100), now).await.unwrap(), 1);
        assert_eq!((made(&db, &x, "n69", Timestamp(0)).await, made(&db, &y, "k", now).await), (None, Some(4)));
        let noise: String = (0..100).map(|_| random::hex::<16_384>()).collect();
        assert!(Piece::pack("k".to_owned(), &noise).unwrap().is_none(), "too long");
    }
}

/// Bodies that are found so, newest first, with their times.
async fn bodies(db: &Db, blobs: &Blobs, to: i64) -> Vec<(i64, String)> {
    let found = find(db, &Lookup { to: Timestamp(to), ..any("x") }).await.unwrap();
    let mut bodies = Vec::new();
    for found in found {
        bodies.push((found.stored_at.0, String::from_utf8(body(found, blobs).await).unwrap()));
    }
    bodies
}

#[tokio::test]
async fn what_a_page_was_before_is_found_by_its_age() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        for (at, body) in [(1_000, "one"), (2_000, "one"), (3_000, "two"), (4_000, "three"), (5_000, "three")] {
            stored(&db, &blobs, team, "x", body.as_bytes(), Timestamp(at)).await;
        }
        let of = |at: i64, body: &str| (at, body.to_owned());
        for (to, wanted) in [
            (999, vec![]),
            (1_000, vec![of(1_000, "one")]),
            (1_500, vec![of(1_000, "one")]),
            (2_500, vec![of(2_000, "one")]),
            (3_999, vec![of(3_000, "two"), of(2_000, "one")]),
            // It was the same then, though it was stored again since.
            (4_500, vec![of(4_000, "three"), of(3_000, "two"), of(2_000, "one")]),
            (i64::MAX, vec![of(5_000, "three")]),
        ] {
            assert_eq!(bodies(&db, &blobs, to).await, wanted, "{to}");
        }
        // A page that goes back and forth has one row for each way it was, and no page has more than so many.
        stored(&db, &blobs, team, "x", b"one", Timestamp(6_000)).await;
        stored(&db, &blobs, team, "x", b"three", Timestamp(7_000)).await;
        let again = bodies(&db, &blobs, 7_000).await;
        assert_eq!(again, [of(7_000, "three"), of(6_000, "one"), of(5_000, "three"), of(3_000, "two")]);
        let (one, two) = (version("x", b"one").digest, version("x", b"two").digest);
        for digest in [&one, &two] {
            let found = find_content(&db, &[key("x")], digest).await.unwrap().unwrap();
            assert_eq!(found.digest(), digest);
        }
        assert!(find_content(&db, &[key("y")], &one).await.unwrap().is_none());
        for n in 0..12 {
            stored(&db, &blobs, team, "x", format!("number {n}").as_bytes(), Timestamp(8_000 + n)).await;
        }
        let kept: Vec<i64> = bodies(&db, &blobs, 9_000).await.into_iter().map(|found| found.0).collect();
        assert_eq!(kept, (8_003..=8_011).rev().collect::<Vec<i64>>());
        // All of it can be walked through, and goes with its contents or when its time is over.
        let walked = |age| kept_after(&db, age, ("", ""), Some("site.test"), 50);
        assert_eq!((walked(Age::Newest).await.unwrap().len(), walked(Age::Earlier).await.unwrap().len()), (1, 8));
        evict(&db, 2 * (ROW + 100), Timestamp(8_012)).await.unwrap();
        assert_eq!(bodies(&db, &blobs, 9_000).await.len(), 2);
        evict(&db, 1 << 20, Timestamp(8_011 + LOCKDOWN_MAX_AGE_MS)).await.unwrap();
        assert!(walked(Age::Earlier).await.unwrap().is_empty() && bodies(&db, &blobs, 9_000).await.is_empty());
    }
}

#[tokio::test]
async fn a_release_that_knows_no_earlier_versions_does_not_spoil_them() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        stored(&db, &blobs, team, "x", b"one", Timestamp(1_000)).await;
        stored(&db, &blobs, team, "y", b"two", Timestamp(1_000)).await;
        const AS_BEFORE: &str = "UPDATE page_version SET stored_at = 3000, digest = \
            (SELECT digest FROM page_version WHERE key = 'y') WHERE key = 'x'";
        let mut tx = db.begin().await.unwrap();
        on_db!(&mut tx, |conn| sqlx::query(AS_BEFORE).execute(conn).await.unwrap().rows_affected());
        tx.commit().await.unwrap();
        assert_eq!(bodies(&db, &blobs, 2_000).await, [(1_000, "one".to_owned())]);
        assert_eq!(bodies(&db, &blobs, 3_000).await, [(3_000, "two".to_owned()), (1_000, "one".to_owned())]);
    }
}

#[tokio::test]
async fn a_content_that_is_not_what_its_row_says_is_lost_and_nothing_worse() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        stored(&db, &blobs, team, "x", b"some text", Timestamp(1)).await;
        for (set, digest) in [
            ("UPDATE page_content SET body = '123'", "damaged"),
            ("UPDATE page_content SET size = 9000000000000", "too long"),
            (r#"UPDATE page_version SET head = replace(head, '"body":9', '"body":18446744073709551615')"#, "longer"),
        ] {
            let mut tx = db.begin().await.unwrap();
            on_db!(&mut tx, |conn| sqlx::query(set).execute(conn).await.unwrap().rows_affected());
            tx.commit().await.unwrap();
            let found = find(&db, &any("x")).await.unwrap();
            assert!(matches!(found[0].unpack(), Err(StoreError::Lost(_))), "{digest}");
        }
        const HEAD: &str = "UPDATE page_version SET head = 'of another release'";
        let mut tx = db.begin().await.unwrap();
        on_db!(&mut tx, |conn| sqlx::query(HEAD).execute(conn).await.unwrap().rows_affected());
        tx.commit().await.unwrap();
        assert!(find(&db, &any("x")).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn what_is_read_while_others_are_dropped_is_whole_or_not_there() {
    for db in testing::databases().await {
        let (blobs, team) = (blobs(), testing::team(&db, "a").await);
        let body = |n: usize| [format!("{n} ").repeat(100).into_bytes(), random::bytes::<400_000>().to_vec()].concat();
        let mut large = Vec::new();
        for n in 0..6 {
            let body = if n % 2 == 0 { body(n) } else { format!("small {n}").into_bytes() };
            stored(&db, &blobs, team, &n.to_string(), &body, db.now().plus_ms(n as i64)).await;
            large.push(body);
        }
        let dropping = {
            let (db, blobs) = (db.clone(), blobs.clone());
            tokio::spawn(async move {
                for bound in (0..6).rev() {
                    evict(&db, bound * (ROW + 400_000), db.now()).await.unwrap();
                    waste::remove(&db, &blobs, db.now().plus_ms(1)).await.unwrap();
                }
            })
        };
        let mut reads = 0;
        while !dropping.is_finished() {
            for (n, body) in large.iter().enumerate() {
                for found in find(&db, &any(&n.to_string())).await.unwrap() {
                    match found.bring(&blobs).await.and_then(|found| found.unpack()) {
                        Ok(content) => assert_eq!(content.into_parts()[0].as_ref(), Some(body)),
                        Err(error) => assert!(matches!(error, StoreError::Lost(_)), "{error}"),
                    }
                    reads += 1;
                }
            }
        }
        dropping.await.unwrap();
        assert!(reads > 0);
        assert_eq!((contents(&db).await, blobs.list().unwrap().values().filter(|size| **size > 9_999).count()), (0, 0));
    }
}

#[tokio::test]
async fn what_the_release_before_has_kept_goes() {
    for db in testing::databases().await {
        let mut tx = db.begin().await.unwrap();
        for n in 0..1_200_i64 {
            const SQL: &str = "INSERT INTO cached_page (key, team_id, url, page_id, bytes, cached_at) \
                VALUES ($1, 't', 'u', 'p', 1, $2)";
            let key = n.to_string();
            on_db!(&mut tx, |conn| sqlx::query(SQL).bind(key).bind(n).execute(conn).await.unwrap().rows_affected());
        }
        tx.commit().await.unwrap();
        evict(&db, 1 << 20, db.now()).await.unwrap();
        const COUNT: &str = "SELECT COUNT(*) FROM cached_page";
        let left: (i64,) = on_pool!(&db, |pool| sqlx::query_as(COUNT).fetch_one(pool).await.unwrap());
        assert_eq!(left.0, 0);
    }
}

#[tokio::test]
async fn pages_that_are_looked_for_together_get_what_each_gets_alone() {
    for db in testing::databases().await {
        let (blobs, team, now) = (blobs(), testing::team(&db, "a").await, db.now());
        stored(&db, &blobs, team, "a", b"one", now).await;
        stored(&db, &blobs, team, "b", b"two", now.plus_ms(7)).await;
        let lookups = [
            any("a"),
            any("nowhere"),
            any("b"),
            Lookup { from: now.plus_ms(1), ..any("a") },
            Lookup { from: now.plus_ms(1), ..any("b") },
            Lookup { now: now.plus_ms(LOCKDOWN_MAX_AGE_MS + 3), ..any("a") },
            Lookup { keys: vec![key("b"), key("a")], ..any("a") },
        ];
        let told = |found: Vec<Found>| -> Vec<(Timestamp, String)> {
            found.into_iter().map(|found| (found.stored_at, found.digest)).collect()
        };
        let mut alone = Vec::new();
        for lookup in &lookups {
            alone.push(told(find(&db, lookup).await.unwrap()));
        }
        assert_eq!(alone.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 1, 0, 1, 0, 2]);
        let together = find_newest(&db, &lookups.iter().collect::<Vec<_>>()).await.unwrap();
        assert_eq!(together.into_iter().map(told).collect::<Vec<_>>(), alone);
        assert!(find_newest(&db, &[]).await.unwrap().is_empty());

        // Many at once, some of whom hang up while they look for others.
        let finder = std::sync::Arc::new(Finder::new(db.clone()));
        let mut tasks = Vec::new();
        for n in 0..80_usize {
            let (finder, lookup) = (std::sync::Arc::clone(&finder), lookups[n % lookups.len()].clone());
            tasks.push(tokio::spawn(async move { finder.find(lookup).await.unwrap() }));
        }
        tokio::task::yield_now().await;
        for task in tasks.iter().step_by(3) {
            task.abort();
        }
        for (n, task) in tasks.into_iter().enumerate() {
            match task.await {
                Ok(found) => assert_eq!(told(found), alone[n % lookups.len()], "{n}"),
                Err(error) => assert!(error.is_cancelled() && n.is_multiple_of(3), "{error}"),
            }
        }
    }
}
