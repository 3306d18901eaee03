//! Every statement of the hot path and of the ticks has its index: what the store asks of SQLite here is explained, and no
//! table that grows is looked through. SQLite's plans do not depend on how many rows there are, so they are the same with
//! a million in every state.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};
use sqlx::AssertSqlSafe;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use weir_shared::blobs::Blobs;
use weir_shared::config::DatabaseUrl;
use weir_shared::domain::activity::Endpoint;
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::cache::{CacheKey, Head, Lookup, Parts};
use weir_shared::domain::console::Role;
use weir_shared::domain::feedback::Subject;
use weir_shared::domain::job::{JobKind, JobStatus, PageState, WebhookEvent};
use weir_shared::domain::monitor::schedule::Timing;
use weir_shared::domain::monitor::{Billing, CheckMove, MonitorSpec, MonitorStatus, PageStatus, Target, What};
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::watch::Noise;
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{JobId, MonitorId, PageId, SessionId, TeamId, WorkerId};
use weir_shared::queue::{self, Turn};
use weir_shared::random;
use weir_shared::store::accounts::feedback::{self, NewFeedback};
use weir_shared::store::accounts::{activity, credits, keys, ledger, rates, team_lock, teams, turns};
use weir_shared::store::console::figures::Span;
use weir_shared::store::console::jobs::Filter;
use weir_shared::store::console::sign_ins::{self, SignIn};
use weir_shared::store::contents::extractors::{self, Learning, Topic};
use weir_shared::store::contents::orphans::Orphans;
use weir_shared::store::contents::snapshots::{self, Packed, Snapshot};
use weir_shared::store::contents::uploads::{self, NewUpload, Offered};
use weir_shared::store::contents::version::Version;
use weir_shared::store::contents::{cache, retention, waste};
use weir_shared::store::db::slices::Slices;
use weir_shared::store::monitors::Settings;
use weir_shared::store::monitors::checks::{self, End, Start, Step};
use weir_shared::store::monitors::pages::{Address, Detail, Found, NewPage};
use weir_shared::store::sessions::{self, profiles};
use weir_shared::store::upkeep::{attention, removal, sweep};
use weir_shared::store::work::documents::{self, Part};
use weir_shared::store::work::jobs::{self, NewJob};
use weir_shared::store::work::page::end::{Finished, Outcome};
use weir_shared::store::work::page::replay::{self, ReplayFilter};
use weir_shared::store::work::page::rows::{self, Claimed};
use weir_shared::store::work::page::scrape::{self, NewScrape};
use weir_shared::store::work::page::{claim, fast, finish, rescue};
use weir_shared::store::work::{cancel, drafts, nodes, pages, queue_depth, webhooks};
use weir_shared::store::{Db, PoolUse, console, migrate, monitors};
use weir_shared::time::Timestamp;

/// What may be looked through: tables with a row for each team, worker, host, lease or person at the console, and what a statement makes itself.
const SMALL: [&str; 24] = [
    "found",
    "team",
    "worker_node",
    "n",
    "lease",
    "turn",
    "turn_line",
    // Parts of a statement, each with a limit of its own.
    "ready",
    "woken",
    "jobs",
    "setting",
    "Workers",
    "profile_lease",
    "json_each",
    "ended",
    "begun",
    "moved",
    "used",
    "waiting",
    "w",
    "newest",
    "next",
    "console_link",
    "console_session",
];
/// Looks through an index that holds only what is under way, or all of it where all of it is asked for, now and then and
/// beside everybody else: the weighing of cache and snapshots.
const WHOLE: [&str; 17] = [
    "monitor_deleted",
    "monitor_shortens",
    "webhook_delivery_due",
    "page_running",
    "job_running",
    "job_waiting",
    "job_dropping",
    "job_to_shorten",
    "job_zero_retention",
    "browser_session_live",
    "browser_session_worker",
    "webhook_delivery_waiting",
    "webhook_delivery_dead",
    "cached_page_age",
    "page_content_use",
    "page_derived_room",
    "page_snapshot_room",
];

/// Statements as the driver logs them.
#[derive(Clone, Default)]
struct Statements(Arc<Mutex<BTreeSet<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Statements {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        #[derive(Default)]
        struct Sql {
            summary: String,
            whole: String,
        }
        impl Visit for Sql {
            fn record_str(&mut self, field: &Field, value: &str) {
                match field.name() {
                    "summary" => value.clone_into(&mut self.summary),
                    "db.statement" => value.trim().clone_into(&mut self.whole),
                    _ => {}
                }
            }
            fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
        }
        if event.metadata().target() == "sqlx::query" {
            let mut sql = Sql::default();
            event.record(&mut sql);
            let text = if sql.whole.is_empty() { sql.summary } else { sql.whole };
            self.0.lock().unwrap().insert(text);
        }
    }
}

fn new_job<'a>(team: TeamId, kind: JobKind, total: i64, options: &'a ScrapeOptions, now: Timestamp) -> NewJob<'a> {
    NewJob {
        id: JobId::new(),
        team,
        key: None,
        kind,
        options,
        target: "http://site.test/",
        origin: None,
        max_concurrency: None,
        webhook: None,
        total,
        created_at: now,
        expires_at: now.plus_ms(60_000),
    }
}

async fn batch(db: &Db, team: TeamId, count: usize, now: Timestamp) -> JobId {
    let options = ScrapeOptions::default();
    let new = new_job(team, JobKind::Batch, count as i64, &options, now);
    let urls: Vec<String> = (0..count).map(|n| format!("http://site.test/{n}")).collect();
    let mut tx = db.begin().await.unwrap();
    team_lock::lock(&mut tx, team).await.unwrap();
    credits::check_funds(&mut tx, team, 1, true).await.unwrap();
    queue_depth::team_waiting(&mut tx, team).await.unwrap();
    let key = JobId::new().to_string();
    for _ in 0..2 {
        jobs::use_idempotency_key(&mut tx, team, &key, new.id, now).await.unwrap();
    }
    jobs::insert(&mut tx, &new).await.unwrap();
    let other = new_job(team, JobKind::Batch, 1, &options, now);
    jobs::insert_all(&mut tx, &[other]).await.unwrap();
    rows::insert_of_jobs(&mut tx, team, &[(other.id, &["http://site.test/".to_owned()])], now).await.unwrap();
    rows::insert_many(&mut tx, new.id, team, 0, &urls, now).await.unwrap();
    queue::team_wakeups(&mut tx, team, count).await.unwrap();
    webhooks::queue(&mut tx, team, new.id, None, WebhookEvent::Started, now).await.unwrap();
    tx.commit().await.unwrap();
    new.id
}

fn done(page: Claimed) -> Finished {
    let text = serde_json::json!({ "markdown": "text" });
    let mut document = documents::encode(&text).unwrap();
    let body: &[u8] = b"text";
    let (url, parts) = (url::Url::parse("http://site.test/").unwrap(), [Some(body), None, None, None]);
    let head = Head {
        asked: None,
        url,
        status: 200,
        content_type: None,
        charset: None,
        timezone: None,
        is_unseen: false,
        parts: Parts::of(&parts),
    };
    let places = (vec![CacheKey(page.id.to_string())], 1_000);
    document.version = Version::pack(places, &page.url, &head, &parts).unwrap().map(Box::new);
    document.snapshot =
        Some(Box::new(Packed::new(page.id.to_string(), Timestamp(1_700_000_000_000), &Snapshot::default()).unwrap()));
    Finished { page, kind: Some(JobKind::Batch), key: None, outcome: Outcome::Done { document, credits: 1 } }
}

/// What callers, workers and ticks do.
async fn a_day(db: &Db, blobs: &Blobs) {
    let now = Timestamp(1_700_000_000_000);
    let options = ScrapeOptions::default();
    let worker = WorkerId::new();
    let mut tx = db.begin().await.unwrap();
    let team = teams::insert(&mut tx, "a", now).await.unwrap();
    keys::create(&mut tx, team, now).await.unwrap();
    tx.commit().await.unwrap();
    let _ = keys::find(db, "digest").await.unwrap();
    rates::add(db, team, "scrape", 1, 1).await.unwrap();

    let scrape = || NewScrape {
        job: new_job(team, JobKind::Scrape, 1, &options, now),
        page: PageId::new(),
        url: "http://site.test/",
        endpoint: Endpoint::Scrape,
        version: ApiVersion::V2,
    };
    let dispatched = fast::insert_claimed(db, &scrape(), worker, 50, now).await.unwrap().unwrap();
    finish::finish(db, &[done(dispatched)], now).await.unwrap();
    let direct = scrape();
    scrape::insert_scrape_alone(db, &direct, Turn::default()).await.unwrap();
    let (next, _) = fast::claim_next(db, worker, 50, now.plus_ms(1)).await.unwrap().unwrap();
    finish::finish(db, &[done(next)], now).await.unwrap();
    let other = scrape();
    scrape::insert_scrape_alone(db, &other, Turn::default()).await.unwrap();
    let (one, _) = claim::claim_one(db, team, other.page, worker, 50, now.plus_ms(1)).await.unwrap().unwrap();
    let failed = Outcome::Failed { code: ErrorCode::Site, error: "reset".to_owned(), credits: 0 };
    let end = Finished { page: one, kind: Some(JobKind::Scrape), key: None, outcome: failed };
    finish::finish(db, &[end], now).await.unwrap();

    let job = batch(db, team, 24, now).await;
    for _ in 0..2 {
        let mut tx = db.begin_relaxed().await.unwrap();
        let claim = claim::claim(&mut tx, team, worker, 8, 8, now.plus_ms(1)).await.unwrap();
        rescue::held_by(&mut tx, worker).await.unwrap();
        tx.commit().await.unwrap();
        let ends: Vec<Finished> = claim.pages.into_iter().map(done).collect();
        finish::finish(db, &ends, now).await.unwrap();
    }
    let mut tx = db.begin().await.unwrap();
    claim::claim(&mut tx, team, worker, 2, 8, now.plus_ms(1)).await.unwrap();
    rescue::rescue_orphans(&mut tx, now, 10).await.unwrap();
    claim::claim(&mut tx, team, worker, 2, 8, now.plus_ms(1)).await.unwrap();
    rescue::give_back(&mut tx, worker, now).await.unwrap();
    rescue::remind_teams(&mut tx, now.plus_ms(1)).await.unwrap();
    webhooks::remind(&mut tx, now.plus_ms(1)).await.unwrap();
    for delivery in webhooks::claim(&mut tx, job, now, now.plus_ms(1_000), 10).await.unwrap() {
        let attempt = webhooks::Attempt { at: now, duration_ms: 1, status: Some(200), error: None, next_at: None };
        webhooks::record(&mut tx, &delivery, &attempt, now).await.unwrap();
    }
    webhooks::next_due(&mut tx, job).await.unwrap();
    let url = "http://site.test/1".parse().unwrap();
    turns::begin_rest(&mut tx, team, &url, now.plus_ms(5_000)).await.unwrap();
    turns::rest_of(&mut tx, team, &url, job, Timestamp(i64::MAX), now).await.unwrap();
    nodes::heartbeat(&mut tx, worker, now, None).await.unwrap();
    nodes::bury(&mut tx, now).await.unwrap();
    profiles::free_abandoned(&mut tx).await.unwrap();
    sessions::touch(&mut tx, &[(SessionId::new(), now)]).await.unwrap();
    tx.commit().await.unwrap();
    attention::is_wanted(db, now, now).await.unwrap();
    attention::is_untidy(db, now, 86_400_000).await.unwrap();

    // Files that come apart, and what is said of results.
    let new = NewUpload { team, key: None, name: "a.pdf", content_type: None };
    let Offered::Given { id, .. } = uploads::offer(db, &new).await.unwrap() else { panic!("the first of its team") };
    uploads::find(db, id).await.unwrap();
    assert!(uploads::arrived(db, id, "blob").await.unwrap());
    let claimed = uploads::claim(db, id, db.now().plus_ms(1_000)).await.unwrap().unwrap();
    uploads::release(db, &claimed).await.unwrap();
    uploads::done(db, blobs, &claimed).await.unwrap();
    feedback::knows(db, team, Subject::Scrape, random::id()).await.unwrap();
    let said = NewFeedback { team, subject: Subject::Search, job: random::id(), rating: "good", body: None };
    let mut tx = db.begin().await.unwrap();
    feedback::note(&mut tx, &said, now).await.unwrap();
    tx.commit().await.unwrap();
    feedback::list(db, Some(team), 10).await.unwrap();

    // What is asked.
    for id in [job, direct.job.id] {
        jobs::load(db, id).await.unwrap();
        jobs::spec(db, id).await.unwrap();
        let part = Part { skip: 0, limit: 10, max_bytes: 1 << 20 };
        documents::find(db, id, part).await.unwrap().open(db, blobs).await.unwrap();
        documents::of_jobs(db, blobs, &[id], 1_000_000).await.unwrap();
        let job = jobs::load(db, id).await.unwrap().unwrap();
        documents::find_of_ended(db, &job, part).await.unwrap().open(db, blobs).await.unwrap();
        pages::failed_of(db, id, 10).await.unwrap();
        pages::failed_since(db, id, Some((now, 1)), 10).await.unwrap();
    }
    pages::load(db, direct.page).await.unwrap();
    pages::ended_among(db, &[direct.page]).await.unwrap();
    pages::open_among(db, &[direct.page]).await.unwrap();
    documents::by_page(db, blobs, direct.page).await.unwrap();
    documents::steps(db, direct.page).await.unwrap();
    documents::metadata(db, &[direct.page]).await.unwrap();
    let keys = vec![CacheKey(direct.page.to_string())];
    let lookup = Lookup { keys, from: Timestamp(0), to: now, now };
    let found = cache::find(db, &lookup).await.unwrap();
    let uses = cache::Uses::default();
    found.iter().for_each(|found| uses.note(found, now.plus_ms(9_000_000)));
    uses.tell(db).await.unwrap();
    cache::known_urls(db, team, "site.test", 10).await.unwrap();
    snapshots::get(db, team, "key").await.unwrap();
    learning(db, team).await;
    activity::page(db, team, None, Timestamp(0), None, 10).await.unwrap();
    activity::page(db, team, Some(Endpoint::Scrape), Timestamp(0), None, 10).await.unwrap();
    credits::balance(db, team).await.unwrap();
    queue_depth::queue_stats(db).await.unwrap();
    queue_depth::team_queue(db, team).await.unwrap();
    queue_depth::team_running(db, team).await.unwrap();
    webhooks::counts(db).await.unwrap();
    webhooks::worth_replaying(db, 3, now, 10).await.unwrap();
    let filter = ReplayFilter { most_replays: Some(3), background: true, limit: 10, ..ReplayFilter::default() };
    replay::replayable(db, &filter, now).await.unwrap();
    nodes::live(db, now).await.unwrap();
    sessions::end_orphans(db).await.unwrap();
    sessions::end_overdue(db, now).await.unwrap();
    sessions::by_worker(db).await.unwrap();
    sessions::counts(db, now).await.unwrap();
    queue::due(db).await.unwrap();

    console_lists(db, team, job, direct.page).await;
    monitors_day(db, team).await;

    // What ticks do.
    let mut slices = Slices::default();
    let mut tx = db.begin().await.unwrap();
    drafts::begin(&mut tx, JobId::new(), now.plus_ms(-86_400_000)).await.unwrap();
    drafts::accept(&mut tx, job, now).await.unwrap();
    cancel::job(&mut tx, job, now).await.unwrap();
    retention::shorten(&mut tx).await.unwrap();
    sessions::remove_old(&mut tx, now).await.unwrap();
    sweep::prune(&mut tx, now).await.unwrap();
    uploads::expire(&mut tx, now).await.unwrap();
    activity::forget(&mut tx, now).await.unwrap();
    tx.commit().await.unwrap();
    cancel::drop_rest(db, &mut slices, now).await.unwrap();
    retention::any(db).await.unwrap();
    retention::forget(db, blobs, direct.job.id).await.unwrap();
    sweep::prune_wakeups(db, &mut slices).await.unwrap();
    sweep::remove_drafts(db, &mut slices, now).await.unwrap();
    sweep::keep_running(db, &mut slices, now.plus_ms(40_000_000), 86_400_000).await.unwrap();
    while sweep::expire(db, &mut slices, now.plus_ms(90_000_000)).await.unwrap() > 0 {}
    ledger::merge(db, &mut slices, now.plus_ms(92 * 86_400_000)).await.unwrap();
    waste::remove_of_jobs(db, blobs, now.plus_ms(90_000_000)).await.unwrap();
    cache::evict(db, 0, now.plus_ms(1)).await.unwrap();
    let mut orphans = Orphans::default();
    for _ in 0..3 {
        orphans.remove(db, &mut slices).await.unwrap();
    }
    waste::remove(db, blobs, now.plus_ms(1)).await.unwrap();
    snapshots::weigh(db).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    queue::team_wakeup(&mut tx, team, Duration::ZERO).await.unwrap();
    tx.commit().await.unwrap();
    removal::holdings(db, team).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    assert!(removal::mark(&mut tx, team, now).await.unwrap());
    tx.commit().await.unwrap();
    removal::Removals::default().go_on(db, &mut slices, &mut orphans).await.unwrap();
}

/// What is asked and written to learn how pages are read.
async fn learning(db: &Db, team: TeamId) {
    let (topic, worker, now) = (Topic { team, site: "site.test".into(), wish: "w".into() }, WorkerId::new(), db.now());
    let mut tx = db.begin().await.unwrap();
    extractors::lock(&mut tx, &topic, now).await.unwrap();
    extractors::begin_reading(&mut tx, &topic, "p", worker, now, now.plus_ms(1)).await.unwrap();
    extractors::keep(&mut tx, &topic, "p", worker, "s", b"x").await.unwrap();
    extractors::body(&mut tx, &topic, "p").await.unwrap();
    extractors::begin_writing(&mut tx, &topic, worker, now.plus_ms(1)).await.unwrap();
    extractors::end_writing(&mut tx, &topic, worker).await.unwrap();
    extractors::set(&mut tx, &topic, &Learning::default()).await.unwrap();
    let id = extractors::insert(&mut tx, &topic, "{}", 1, now).await.unwrap();
    extractors::forget(&mut tx, &topic, &["p".to_owned()]).await.unwrap();
    extractors::leave(&mut tx, &topic, "q", worker).await.unwrap();
    tx.commit().await.unwrap();
    extractors::look(db, &topic, now).await.unwrap();
    extractors::in_use(db, &topic).await.unwrap();
    extractors::form(db, id).await.unwrap();
    extractors::count(db, id, 10, now).await.unwrap();
    extractors::take_check(db, id, 250).await.unwrap();
    extractors::take_doubt(db, id).await.unwrap();
    extractors::rewrite(db, id, 0, "{}").await.unwrap();
    extractors::strike(db, id).await.unwrap();
    extractors::acquit(db, id).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    extractors::expire(&mut tx, now).await.unwrap();
    tx.commit().await.unwrap();
}

/// What the console's pages ask.
async fn console_lists(db: &Db, team: TeamId, job: JobId, page: PageId) {
    let now = db.now();
    let any = Filter::default();
    let status = |status| Filter { status: Some(status), ..Filter::default() };
    for filter in [
        any.clone(),
        Filter { team: Some(team), kind: Some(JobKind::Crawl), since: Some(now), ..any.clone() },
        Filter { site: Some("site.test".to_owned()), ..any.clone() },
        Filter { code: Some("SCRAPE_TIMEOUT".to_owned()), ..any.clone() },
        status(JobStatus::Scraping),
        status(JobStatus::Failed),
        Filter { team: Some(team), ..status(JobStatus::Cancelled) },
        status(JobStatus::Completed),
    ] {
        console::jobs::matching(db, &filter, Some(job), 5, now).await.unwrap();
    }
    jobs::by_ids(db, &[job]).await.unwrap();
    jobs::origin(db, job).await.unwrap();
    for state in
        [None, Some(PageState::Failed), Some(PageState::Queued), Some(PageState::Running), Some(PageState::Done)]
    {
        for part in [None, Some("kettles")] {
            let wanted = console::pages::Wanted { state, part };
            console::pages::list(db, job, team, wanted, console::pages::START, 5).await.unwrap();
        }
    }
    for of in [None, Some(team)] {
        console::pages::failures(db, of, Timestamp(0), None, 5).await.unwrap();
        console::figures::read(db, Span::Minute, of, Timestamp(0), now).await.unwrap();
        sessions::list_before(db, of, None, None, 5).await.unwrap();
    }
    for row in pages::list(db, job, None, 1).await.unwrap() {
        console::history::of_address(db, &row, now).await.unwrap();
    }
    console::figures::now(db).await.unwrap();
    console::usage::by_day(db, team, Timestamp(0), now).await.unwrap();
    webhooks::of_job(db, job, None, None, 5).await.unwrap();
    sessions::live_count(db, team).await.unwrap();
    sessions::take_failure(db, team, page, now).await.unwrap();
    rates::taken(db, team, 1).await.unwrap();
    pages::attempts_of(db, page).await.unwrap();
    let who = SignIn { role: Role::Operator, team: None, key: None, console_key: None };
    let mut tx = db.begin().await.unwrap();
    sign_ins::insert(&mut tx, "session", &who, now).await.unwrap();
    sign_ins::insert_link(&mut tx, "link", Role::Reader, None, now).await.unwrap();
    sign_ins::use_link(&mut tx, "link", now).await.unwrap();
    tx.commit().await.unwrap();
    let row = sign_ins::find(db, "session", now).await.unwrap().unwrap();
    sign_ins::seen(db, "session", &row, now.plus_ms(120_000)).await.unwrap();
    sign_ins::live_among(db, &["session".to_owned()], now).await.unwrap();
}

/// Monitors: the look of every tick, what is due, a check from its claim to its removal, and what callers read.
async fn monitors_day(db: &Db, team: TeamId) {
    let now = db.now();
    let urls = vec!["http://site.test/".to_owned()];
    let what = What::Scrape { urls, options: Box::default(), noise: Noise::default() };
    let targets = vec![Target { id: "t".to_owned(), what, given: Map::new() }];
    let spec = MonitorSpec { targets, goal: None, judge: false, webhook: None, notification: None };
    let timing = Timing { cron: "*/5 * * * *".to_owned(), timezone: "UTC".to_owned(), spread_ms: 0 };
    let (id, status) = (MonitorId::new(), MonitorStatus::Active);
    let (name, retention_days, runs_a_month) = ("m", 1, 1);
    let to =
        Settings { name, status, timing: &timing, spec: &spec, retention_days, next_due_at: Some(now), runs_a_month };
    let mut tx = db.begin().await.unwrap();
    monitors::insert(&mut tx, id, team, None, &to, now).await.unwrap();
    monitors::update(&mut tx, id, &Settings { retention_days: 2, ..to }, now).await.unwrap();
    monitors::update(&mut tx, id, &to, now).await.unwrap();
    tx.commit().await.unwrap();
    assert!(monitors::due::look(db, now).await.unwrap().monitors);
    let mut tx = db.begin().await.unwrap();
    assert_eq!(monitors::due::claim(&mut tx, now, 10).await.unwrap(), 1);
    let check = checks::claim(&mut tx, now, now.plus_ms(1), 10).await.unwrap().remove(0);
    let targets = check.targets().unwrap();
    let start = Start { check: &check, targets: &targets, billing: Billing::Reserved };
    assert_eq!(checks::start(&mut tx, &[start], now, now).await.unwrap().len(), 1);
    let page = Found {
        id: PageId::new(),
        target_id: "t".to_owned(),
        url: "http://site.test/".to_owned(),
        status: PageStatus::New,
        previous_scrape_id: None,
        current_scrape_id: None,
        status_code: None,
        error: None,
        detail: Detail::new(&Map::<String, Value>::new()).unwrap(),
    };
    let step = Step { targets: &targets, summary: check.summary(), next_at: now };
    assert!(checks::save(&mut tx, &check, &step, now).await.unwrap());
    monitors::pages::known(db, &[Address::new(id, "t", "http://site.test/")]).await.unwrap();
    monitors::pages::insert(&mut tx, &[NewPage { check: &check, seq: 1, found: &page }], now).await.unwrap();
    let failed = Found { id: PageId::new(), status: PageStatus::Error, ..page };
    monitors::pages::insert(&mut tx, &[NewPage { check: &check, seq: 2, found: &failed }], now).await.unwrap();
    monitors::pages::missing(db, &check, "t", 5).await.unwrap();
    checks::put_off(&mut tx, &[&check], now).await.unwrap();
    let (by, billing, summary) = (CheckMove::Complete, Billing::Confirmed, check.summary());
    let end = End { check: &check, by, targets: &targets, summary, credits: 1, billing, error: None };
    assert_eq!(checks::finish(&mut tx, &[end], now).await.unwrap().len(), 1);
    tx.commit().await.unwrap();
    monitors::of_checks(db, std::slice::from_ref(&check)).await.unwrap();
    monitors::removal::remove(db, &mut Slices::default(), now).await.unwrap();
    monitors::list(db, team, 5, 0).await.unwrap();
    monitors::list_all(db, None, 5).await.unwrap();
    checks::list(db, id, None, 5, 0).await.unwrap();
    checks::load(db, id, check.id).await.unwrap().unwrap();
    checks::receiver(db, JobId(check.id.0)).await.unwrap();
    for status in [None, Some(PageStatus::New)] {
        monitors::pages::list(db, check.id, status, 0, 5).await.unwrap();
    }
    monitors::pages::load(db, failed.id).await.unwrap().unwrap();
    monitors::pages::failed(db, check.id).await.unwrap();
    monitors::due::set_back(db, || now).await.unwrap();
    let row = monitors::load_any(db, id).await.unwrap().unwrap();
    let mut tx = db.begin().await.unwrap();
    checks::run_now(&mut tx, &row, now).await.unwrap().unwrap();
    monitors::set_paused(&mut tx, &row, true, now).await.unwrap();
    assert!(monitors::delete(&mut tx, team, id, now).await.unwrap());
    tx.commit().await.unwrap();
    monitors::removal::forget(db, &mut Slices::default(), now.plus_ms(91 * 86_400_000)).await.unwrap();
    monitors::removal::remove(db, &mut Slices::default(), now.plus_ms(3 * 86_400_000)).await.unwrap();
    assert!(monitors::load_any(db, id).await.unwrap().is_none());
}

/// What the queue library asks by itself, as far as it names wake-ups by more than their key.
const LIBRARY: [&str; 4] = [
    "UPDATE Jobs SET status = 'Queued', lock_by = ?1 WHERE rowid IN (SELECT rowid FROM Jobs WHERE job_type = ?2 \
     AND status = 'Pending' AND lock_by IS NULL AND (run_at IS NULL OR run_at <= ?4) \
     ORDER BY priority DESC, run_at ASC, id ASC LIMIT ?3)",
    "SELECT rowid FROM Jobs WHERE job_type = ?2 AND status = 'Failed' AND attempts < max_attempts \
     AND (run_at IS NULL OR run_at <= ?4) ORDER BY priority DESC, run_at ASC, id ASC LIMIT ?3",
    "SELECT Jobs.id FROM Jobs INNER JOIN Workers ON lock_by = Workers.id WHERE (status = \"Running\" \
     OR status = \"Queued\") AND strftime('%s', 'now') - Workers.last_seen >= ?1 AND Workers.worker_type = ?2",
    "WITH j AS (SELECT value ->> 'task_id' AS task_id, value ->> 'status' AS status FROM json_each(?1)) \
     UPDATE Jobs SET status = j.status FROM j WHERE Jobs.id = j.task_id AND Jobs.lock_by = ?2",
];

#[tokio::test]
async fn no_statement_looks_through_a_table_that_grows() {
    let statements = Statements::default();
    let filter = tracing_subscriber::filter::LevelFilter::DEBUG;
    tracing::subscriber::set_global_default(
        tracing_subscriber::registry().with(statements.clone().with_filter(filter)),
    )
    .unwrap();
    let folder = std::env::temp_dir().join(format!("weir-plans-{}", random::id()));
    let db = Db::connect(&DatabaseUrl::Sqlite(folder.join("weir.db")), 2, PoolUse::Rows).await.unwrap();
    migrate(&db).await.unwrap();
    // Plans are made with what the migrations say of the wake-ups; a connection reads that when it begins.
    db.close().await;
    let db = Db::connect(&DatabaseUrl::Sqlite(folder.join("weir.db")), 2, PoolUse::Rows).await.unwrap();
    statements.0.lock().unwrap().clear();
    let blobs = Blobs::open(&folder.join("blobs")).unwrap();
    a_day(&db, &blobs).await;
    let asked = statements.0.lock().unwrap().clone();
    assert!(asked.len() > 100, "only {} statements were heard of", asked.len());

    let mut bad = Vec::new();
    let parts = asked.iter().flat_map(|sql| sql.split("; ")).map(str::trim).chain(LIBRARY);
    for sql in parts {
        let word = sql.split_whitespace().next().unwrap_or_default();
        if !matches!(word, "SELECT" | "UPDATE" | "DELETE" | "INSERT" | "WITH") {
            continue;
        }
        let mut tx = db.begin().await.unwrap();
        let plan: Vec<(i64, i64, i64, String)> = match &mut tx {
            weir_shared::store::Tx::Sqlite(tx) => {
                let explain = format!("EXPLAIN QUERY PLAN {sql}");
                sqlx::query_as(AssertSqlSafe(explain)).fetch_all(&mut **tx).await.unwrap()
            }
            weir_shared::store::Tx::Postgres(_) => continue,
        };
        for (.., step) in plan {
            let words: Vec<&str> = step.split_whitespace().collect();
            let is_allowed = |word: &&str| WHOLE.contains(word);
            let is_search_of_all = step.contains("ANY(");
            let looks_through = words.first() == Some(&"SCAN") || is_search_of_all;
            // Values, and what another step of the plan gives.
            let is_made = |of: &&str| of.starts_with(|c: char| c == '(' || c.is_ascii_digit()) || *of == "CONSTANT";
            let is_small = words.get(1).is_some_and(|of| SMALL.contains(of) || is_made(of));
            if looks_through && !is_small && !words.iter().any(is_allowed) {
                bad.push(format!("{step}\n    {sql}"));
            }
            // A wake-up is named by its key, not looked for among all that its worker has done.
            if step.contains("ticket_held (lock_by=?)") && !step.contains("COVERING") {
                bad.push(format!("{step}\n    {sql}"));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    db.close().await;
    std::fs::remove_dir_all(folder).unwrap();
}
