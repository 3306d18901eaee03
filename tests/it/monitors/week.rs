//! Monitors on a clock that the test moves, with workers that are killed at random: every check that is due is made once,
//! says what the site showed, is billed and told of once, and the database stays as large as what is kept.
//!
//! `WEIR_TEST_WEEK=500x168` is the whole run: so many monitors, every five minutes, for so many hours, which is a million
//! checks; `500x168:40` is as much of it as goes into forty minutes, and ends in good order. Programs that were built with
//! `CARGO_PROFILE_DEV_OPT_LEVEL=2` look at the test's clock, too, and do the whole run in an hour and a half on two
//! processors, with `TMPDIR` in memory. Every test run has a short one, the long tests one of 60 monitors for two days, so
//! that checks are removed along the way.
//!
//! The clock goes four fifths of a period at once, so that no monitor is due twice between two looks. After each step the
//! test waits until everything that was due is over, and holds each check against what [`super::changing`] says that the site
//! showed while the check ran.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use weir_shared::clock::{self, Stopwatch};
use weir_shared::config::DatabaseUrl;
use weir_shared::on_pool;
use weir_shared::random;
use weir_shared::store::work::documents;
use weir_shared::store::{Db, PoolUse};
use weir_shared::time::Timestamp;
use weir_tests::{Database, MovedClock, RuledSite, TestService, first_on, long_tests, wait_until_within};

use super::changing::{self, Kind, Memory, PERIOD_MS, Shown};
use super::options;

const STEP: Duration = Duration::from_millis(PERIOD_MS as u64 * 4 / 5);
const WORKERS: usize = 3;
/// Bound on one step.
const BOUND: Duration = Duration::from_secs(180);
/// Bound on the removal of everything that is kept of a whole run.
const REMOVAL: Duration = Duration::from_secs(900);
/// A step in which nothing can go on before a dead worker's lease ends is helped on by this much.
const LEASE: Duration = Duration::from_secs(21);
const PATIENCE: Duration = Duration::from_secs(1);
/// How often in one step: with the step itself and what follows it stays below a period.
const HELPED: usize = 2;
/// Pauses between two looks at a check pass at once: so much at a time, and so often in one step.
const PAUSE: Duration = Duration::from_millis(250);
const PASSED: usize = 40;
/// When nothing was over for this long, checks are waiting for their next look.
const STILL: Duration = Duration::from_millis(50);
/// What is kept: documents for two hours, checks for a day.
const RESULT_TTL: &str = "2h";
const JOB_PERIODS: i64 = 24;
const CHECK_PERIODS: i64 = 288;
/// What is past its time may wait for this many periods until it is removed.
const SLACK: i64 = 18;
/// Tables of which nothing is left then.
const GOES: [&str; 11] = [
    "monitor_check",
    "monitor_page",
    "webhook_delivery",
    "webhook_attempt",
    "job",
    "page",
    "page_attempt",
    "document",
    "crawl",
    "crawl_url",
    "blob_waste",
];
/// Every so many monitors have a webhook.
const HOOKED: usize = 5;

/// How long a run is.
struct Plan {
    monitors: usize,
    steps: usize,
    /// It ends after this time, however many steps are left.
    time: Option<Duration>,
    /// A worker is killed in every so many steps, and nobody is there for an hour in every so many.
    kill_every: usize,
    rest_every: usize,
}

impl Plan {
    fn of(monitors: usize, hours: usize) -> Self {
        let steps = hours * 3_600_000 / STEP.as_millis() as usize;
        Self { monitors, steps, time: None, kill_every: 15, rest_every: 300 }
    }

    fn chosen() -> Self {
        let asked = std::env::var("WEIR_TEST_WEEK").ok();
        let Some(asked) = asked else {
            let short = Self { monitors: 30, steps: 6, time: None, kill_every: 2, rest_every: 5 };
            return if long_tests() { Self::of(60, 48) } else { short };
        };
        let (size, minutes) = asked.split_once(':').map_or((asked.as_str(), None), |(size, rest)| (size, Some(rest)));
        let (monitors, hours) = size.split_once('x').expect("WEIR_TEST_WEEK is like 500x168, or 500x168:40");
        let time = minutes.map(|minutes| Duration::from_secs(60 * minutes.parse::<u64>().unwrap()));
        Self { time, ..Self::of(monitors.parse().unwrap(), hours.parse().unwrap()) }
    }
}

first_on! {
    postgres:

    async fn every_due_check_is_made_once_and_right_though_workers_are_killed(database) {
        let mut week = Week::begin(database, Plan::chosen()).await;
        for step in 1..=week.plan.steps {
            week.step(step).await;
            if week.plan.time.is_some_and(|time| week.began.elapsed() > time) {
                println!("{step} of {} steps in that time", week.plan.steps);
                break;
            }
        }
        week.end().await;
    }
}

/// A monitor as the test knows it.
struct Watched {
    n: usize,
    /// When in each period it is due.
    phase_ms: i64,
    next_due: i64,
    /// When its last check ended.
    ended: i64,
    /// What it may have seen: where the site changed while a check ran, it may be one or the other until a check tells.
    memories: Vec<Memory>,
}

impl Watched {
    /// When it is due first after a moment.
    fn due_after(&self, at: i64) -> i64 {
        let next = at.div_euclid(PERIOD_MS) * PERIOD_MS + self.phase_ms;
        if next > at { next } else { next + PERIOD_MS }
    }
}

/// What a receiver was told.
#[derive(Default)]
struct Deliveries {
    /// By check and the delivery's own id: the kind of event with its page.
    by_check: HashMap<String, HashMap<String, String>>,
    /// Deliveries that came again.
    repeated: usize,
}

struct Week {
    plan: Plan,
    clock: Arc<MovedClock>,
    start: Timestamp,
    site: RuledSite,
    deliveries: Arc<Mutex<Deliveries>>,
    service: TestService,
    db: Db,
    watched: HashMap<String, Watched>,
    /// Checks that were looked at.
    seen: HashSet<String>,
    /// Ids of checks from here on may not have been looked at, and those of the step before.
    floors: [String; 2],
    /// Deliveries that are still to come, by check.
    awaited: HashMap<String, usize>,
    kills: usize,
    totals: Totals,
    began: Stopwatch,
}

#[derive(Debug, Default)]
struct Totals {
    checks: usize,
    pages: usize,
    credits: i64,
    deliveries: usize,
    repeated: usize,
    /// Checks whose receiver has heard of everything.
    told: usize,
    by_status: BTreeMap<&'static str, usize>,
    /// Moments at which nobody was there, but for the one that was made up.
    slept_through: i64,
    /// Checks that were due while the one before ran: it had begun before its workers died.
    overlaps: usize,
}

/// A check as stored.
type Check = (String, String, String, String, Option<i64>, i64, Option<i64>, Option<i64>, i64, i64);
/// A page of it.
type Page = (String, String, String, Option<i64>, Option<String>, Vec<u8>, i64);

impl Week {
    async fn begin(database: Database, plan: Plan) -> Self {
        let clock = Arc::new(MovedClock::new());
        // A period in which all pages are there; what comes then is the same in every run.
        let now = clock.now().0;
        let start = (now.div_euclid(24 * PERIOD_MS) + 1) * 24 * PERIOD_MS + 16 * PERIOD_MS;
        clock.advance(Duration::from_millis((start - now).unsigned_abs()));
        let deliveries = Arc::<Mutex<Deliveries>>::default();
        let (told, of_site) = (Arc::clone(&deliveries), Arc::clone(&clock));
        let site = RuledSite::start(move |path, body| match path {
            "/hook" => {
                keep(&told, body);
                (200, String::new())
            }
            _ => changing::answer(path, of_site.now()),
        })
        .await;
        let (name, file) = clock.setting();
        let options = options(database).workers(WORKERS).env(name, file).env("WEIR_RESULT_TTL", RESULT_TTL);
        let options = options.env("WEIR_TEAM_CONCURRENCY", "48").env("WEIR_LOG", "warn");
        let service = TestService::start_with(options).await;
        let url = service.database_url().parse::<DatabaseUrl>().unwrap();
        let db = Db::connect(&url, 2, PoolUse::Commands).await.unwrap();
        let floor = random::id().to_string();
        let mut week = Self {
            plan,
            start: clock.now(),
            clock,
            site,
            deliveries,
            service,
            db,
            watched: HashMap::new(),
            seen: HashSet::new(),
            floors: [floor.clone(), floor],
            awaited: HashMap::new(),
            kills: 0,
            totals: Totals::default(),
            began: Stopwatch::start(),
        };
        for n in 0..week.plan.monitors {
            week.watch(n).await;
        }
        week
    }

    async fn watch(&mut self, n: usize) {
        let page = self.site.url(&format!("/{n}"));
        let target = match Kind::of(n) {
            Kind::Site => json!({"type": "crawl", "url": page, "crawlOptions": {"limit": 20, "sitemap": "skip",
                "crawlEntireDomain": true}}),
            Kind::Noisy => json!({"type": "scrape", "urls": [page], "ignore": {"lines": ["^Seen at"]}}),
            _ => json!({"type": "scrape", "urls": [page]}),
        };
        let zone = ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns"][n % 4];
        let schedule = match n % 2 {
            0 => json!({"cron": "*/5 * * * *", "timezone": zone}),
            _ => json!({"text": "every 5 minutes", "timezone": zone}),
        };
        let mut body = json!({"name": format!("{n}"), "schedule": schedule, "targets": [target], "retentionDays": 1});
        if n.is_multiple_of(HOOKED) {
            body["webhook"] = json!({"url": self.site.url("/hook")});
        }
        let made = self.service.post("/v2/monitor", &body).await.ok()["data"].clone();
        let at = |field: &str| Timestamp::from_iso(made[field].as_str().unwrap()).unwrap().0;
        assert!((self.clock.now().0 - at("createdAt")).abs() < 60_000, "these programs cannot be told the time");
        let next_due = at("nextRunAt");
        let phase_ms = next_due.rem_euclid(PERIOD_MS);
        let watched = Watched { n, phase_ms, next_due, ended: 0, memories: vec![Memory::default()] };
        self.watched.insert(made["id"].as_str().unwrap().to_owned(), watched);
    }

    /// Time passes, and everything that is due happens.
    async fn step(&mut self, step: usize) {
        let is_rest = step.is_multiple_of(self.plan.rest_every);
        if is_rest {
            for n in 0..WORKERS {
                self.service.kill_worker(n);
            }
            self.clock.advance(Duration::from_secs(3_600 + 420));
            for n in 0..WORKERS {
                self.service.start_worker(n);
            }
            self.kills += WORKERS;
        } else {
            self.clock.advance(STEP);
        }
        self.floors.rotate_left(1);
        self.floors[1] = random::id().to_string();
        let mark = self.clock.now();
        let is_kill = step.is_multiple_of(self.plan.kill_every);
        if is_kill {
            self.kill(mark).await;
        }
        self.quiet(mark).await;
        self.judge(mark, is_rest).await;
        if step.is_multiple_of(25) || step == self.plan.steps {
            self.weigh(step).await;
        }
    }

    /// Kills one worker, or all, when some of what is due is over.
    async fn kill(&mut self, mark: Timestamp) {
        let due = self.watched.values().filter(|watched| watched.next_due <= mark.0).count();
        let rest = random::index(due.max(1));
        wait_until_within(BOUND, "some checks are over", || async {
            (self.open(mark).await <= rest as i64).then_some(())
        })
        .await;
        let victims = if random::index(4) == 0 { (0..WORKERS).collect() } else { vec![random::index(WORKERS)] };
        for n in victims {
            self.service.restart_worker(n);
            self.kills += 1;
        }
    }

    /// Checks that are due by then and not over.
    async fn open(&self, mark: Timestamp) -> i64 {
        const OPEN: &str = "SELECT (SELECT COUNT(*) FROM monitor WHERE next_due_at <= $1) \
            + (SELECT COUNT(*) FROM monitor_check WHERE next_at IS NOT NULL AND scheduled_for <= $1)";
        let (open,): (i64,) = on_pool!(&self.db, |pool| sqlx::query_as(OPEN).bind(mark).fetch_one(pool).await.unwrap());
        open
    }

    /// Waits until everything is over that was due by then.
    async fn quiet(&self, mark: Timestamp) {
        let until = clock::deadline(BOUND);
        let (mut best, mut since, mut helped, mut passed) = (i64::MAX, clock::instant(), 0, 0);
        loop {
            let open = self.open(mark).await;
            if open == 0 {
                return;
            }
            if open < best {
                (best, since) = (open, clock::instant());
            } else if since.elapsed() > PATIENCE && helped < HELPED {
                // A dead worker's lease has to end.
                self.clock.advance(LEASE);
                (since, helped) = (clock::instant(), helped + 1);
            } else if since.elapsed() > STILL && passed < PASSED {
                self.clock.advance(PAUSE);
                passed += 1;
            }
            assert!(clock::instant() < until, "{open} checks are not over\n{}", self.service.logs());
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Looks at every check that has ended.
    async fn judge(&mut self, mark: Timestamp, is_rest: bool) {
        const CHECKS: &str = "SELECT id, monitor_id, status, cause, scheduled_for, created_at, started_at, finished_at, \
            actual_credits, same_pages + changed_pages + new_pages + removed_pages + error_pages FROM monitor_check \
            WHERE id >= $1 AND next_at IS NULL ORDER BY scheduled_for";
        let checks: Vec<Check> =
            on_pool!(&self.db, |pool| sqlx::query_as(CHECKS).bind(&self.floors[0]).fetch_all(pool).await.unwrap());
        let new: Vec<Check> = checks.into_iter().filter(|check| self.seen.insert(check.0.clone())).collect();
        let mut pages = self.pages(&new).await;
        for check in &new {
            let found = pages.remove(&check.0).unwrap_or_default();
            self.judge_one(check, &found, is_rest);
        }
        let late: Vec<_> = self.watched.values().filter(|watched| watched.next_due <= mark.0).map(|w| w.n).collect();
        assert!(late.is_empty(), "these monitors were due and have no check: {late:?}");
        if let Some(check) = new.get(random::index(new.len().max(1))) {
            self.compare_with_answer(check).await;
        }
        self.account();
    }

    async fn pages(&self, checks: &[Check]) -> HashMap<String, Vec<Page>> {
        let mut found: HashMap<String, Vec<Page>> = HashMap::new();
        for part in checks.chunks(200) {
            let ids: Vec<String> = part.iter().map(|check| format!("'{}'", check.0)).collect();
            let sql = format!(
                "SELECT check_id, url, status, status_code, current_scrape_id, detail, detail_size FROM monitor_page \
                 WHERE check_id IN ({})",
                ids.join(", ")
            );
            let rows: Vec<Page> =
                on_pool!(&self.db, |pool| sqlx::query_as(AssertSqlSafe(sql)).fetch_all(pool).await.unwrap());
            for row in rows {
                found.entry(row.0.clone()).or_default().push(row);
            }
        }
        found
    }

    /// One check that has ended.
    fn judge_one(&mut self, check: &Check, pages: &[Page], is_rest: bool) {
        let (id, monitor, status, cause, due, created, started, finished, credits, total) = check;
        let watched = self.watched.get_mut(monitor).expect("a monitor of the test");
        assert_eq!((*due, cause.as_str()), (Some(watched.next_due), "scheduled"), "of {}: {check:?}", watched.n);
        assert!(*created >= watched.next_due, "before its time: {check:?}");
        let next = watched.due_after(*created);
        let skipped = (next - watched.next_due) / PERIOD_MS - 1;
        assert!(skipped == 0 || is_rest, "{skipped} moments of {} have no check: {check:?}", watched.n);
        self.totals.slept_through += skipped;
        watched.next_due = next;
        if status == "skipped_overlap" {
            assert!(
                watched.ended >= *created && (*total, *credits) == (0, 0),
                "nothing of {} ran then: {check:?}",
                watched.n
            );
            self.totals.overlaps += 1;
            return;
        }
        let (Some(started), Some(finished)) = (started, finished) else { panic!("it has not run: {check:?}") };
        watched.ended = *finished;

        // The site may have changed while the check ran.
        let looked = changing::period(Timestamp(*started))..=changing::period(Timestamp(*finished));
        let (mut fitting, mut why) = (Vec::new(), String::new());
        for period in looked.clone() {
            let shown = changing::shown(watched.n, period);
            for memory in &watched.memories {
                let mut memory = memory.clone();
                let told = memory.look(&shown);
                match differs(watched.n, &told, pages) {
                    None => fitting.push((memory, shown.clone(), told)),
                    Some(text) => why += &format!("\nin {period}: {text}"),
                }
            }
        }
        let Some((_, shown, told)) = fitting.first().cloned() else {
            panic!("{} {:?} in {looked:?}: {check:?}{why}", watched.n, Kind::of(watched.n))
        };
        watched.memories.clear();
        for (memory, ..) in fitting {
            if !watched.memories.contains(&memory) {
                watched.memories.push(memory);
            }
        }
        let word =
            match (told.values().all(|told| told.status == "error"), shown.values().any(|s| *s == Shown::Failure)) {
                (true, _) => "failed",
                (false, true) => "partial",
                (false, false) => "completed",
            };
        assert_eq!((status.as_str(), *total, *credits), (word, told.len() as i64, shown.len() as i64), "{check:?}");
        for told in told.values() {
            *self.totals.by_status.entry(told.status).or_default() += 1;
        }
        self.totals.checks += 1;
        self.totals.pages += told.len();
        self.totals.credits += credits;
        if watched.n.is_multiple_of(HOOKED) {
            self.awaited.insert(id.clone(), told.len() + 1);
        }
    }

    /// Webhooks of the checks that were looked at: one for each page and one for the end.
    fn account(&mut self) {
        let told = self.deliveries.lock().unwrap();
        self.awaited.retain(|check, count| {
            let got = told.by_check.get(check).map_or(0, HashMap::len);
            assert!(got <= *count, "{check} was told of too often: {:?}", told.by_check[check]);
            let is_whole = got == *count;
            if is_whole {
                let kinds: HashSet<_> = told.by_check[check].values().collect();
                assert_eq!(kinds.len(), *count, "{check}: {kinds:?}");
                self.totals.deliveries += *count;
                self.totals.told += 1;
            }
            !is_whole
        });
        self.totals.repeated = told.repeated;
    }

    /// What a caller is answered is what is stored.
    async fn compare_with_answer(&self, (id, monitor, status, ..): &Check) {
        let answer = self.service.get(&format!("/v2/monitor/{monitor}/checks/{id}")).await.ok()["data"].clone();
        assert_eq!(answer["status"], status.as_str(), "{answer}");
        let (n, pages) = (self.watched[monitor].n, answer["pages"].as_array().unwrap());
        assert_eq!(answer["summary"]["totalPages"], pages.len(), "{answer}");
        for page in pages {
            let is_changed = page["status"] == "changed";
            assert_eq!(page["diff"]["text"].is_string(), is_changed, "of {n}: {page}");
        }
    }

    /// The tables are no larger than what they keep.
    async fn weigh(&self, step: usize) {
        let pages_a_check = self.totals.pages.div_ceil(self.totals.checks.max(1)) as i64 + 1;
        let monitors = self.plan.monitors as i64;
        let (jobs, checks) = (monitors * (JOB_PERIODS + SLACK), monitors * (CHECK_PERIODS + SLACK));
        let pages = jobs * pages_a_check;
        let mut line = format!("step {step} after {:.0?}, {} kills:", self.began.elapsed(), self.kills);
        for (table, most) in [
            ("job", jobs),
            ("page", pages),
            ("page_attempt", pages),
            ("document", pages),
            ("crawl", jobs),
            ("crawl_url", pages),
            ("activity", jobs * CHECK_PERIODS),
            ("monitor_check", checks),
            ("monitor_page", checks * pages_a_check),
            ("monitor_url", monitors * 4),
            ("page_snapshot", monitors * 4),
            ("webhook_delivery", checks * pages_a_check),
            ("webhook_attempt", checks * pages_a_check),
            ("blob_waste", jobs),
            ("worker_node", self.kills as i64 + WORKERS as i64),
            ("credit_entry", i64::MAX),
        ] {
            let rows = self.rows(table).await;
            line += &format!(" {table} {rows}");
            assert!(rows <= most, "{table} has {rows} rows, more than {most}: {line}");
        }
        let size = self.size().await >> 20;
        println!("{line} | {size} MiB, simulated {:.1} h | {:?}", self.simulated_hours(), self.totals);
    }

    fn simulated_hours(&self) -> f64 {
        (self.clock.now().0 - self.start.0) as f64 / 3_600_000.0
    }

    /// What the database takes, bytes.
    async fn size(&self) -> i64 {
        let sql = match self.db {
            Db::Sqlite(_) => "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
            Db::Postgres(_) => "SELECT pg_database_size(current_database())",
        };
        on_pool!(&self.db, |pool| sqlx::query_as::<_, (i64,)>(sql).fetch_one(pool).await.unwrap()).0
    }

    async fn rows(&self, table: &str) -> i64 {
        let sql = format!("SELECT COUNT(*) FROM {table}");
        let (rows,): (i64,) =
            on_pool!(&self.db, |pool| sqlx::query_as(AssertSqlSafe(sql)).fetch_one(pool).await.unwrap());
        rows
    }

    /// What has to hold when all is over: what was billed is what was read, receivers have heard of everything, and what is
    /// past its time goes.
    async fn end(mut self) {
        for monitor in self.watched.keys() {
            let request = self.service.caller().request(Method::PATCH, &format!("/v2/monitor/{monitor}"));
            self.service.caller().send(request.json(&json!({"status": "paused"}))).await.ok();
        }
        let forever = Timestamp(i64::MAX);
        self.quiet(forever).await;
        self.judge(Timestamp(0), false).await;
        let until = clock::deadline(BOUND);
        while !self.awaited.is_empty() {
            assert!(clock::instant() < until, "deliveries do not come: {:?}", self.awaited);
            self.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.account();
        }
        let told = self
            .deliveries
            .lock()
            .unwrap()
            .by_check
            .values()
            .map(HashMap::len)
            .fold((0, 0), |all, of_check| (all.0 + 1, all.1 + of_check));
        assert_eq!(told, (self.totals.told, self.totals.deliveries), "nobody is told of anything else");
        let totals = &self.totals;
        assert!(totals.repeated <= self.kills * 40, "only what a dead worker had in hand is sent again: {totals:?}");
        let used = "SELECT credits_used FROM team WHERE name = 'tests'";
        let (used,): (i64,) = on_pool!(&self.db, |pool| sqlx::query_as(used).fetch_one(pool).await.unwrap());
        assert_eq!(used, totals.credits, "{totals:?}");

        let hours = self.simulated_hours();
        self.clock.advance(Duration::from_millis(((CHECK_PERIODS + 1) * PERIOD_MS).unsigned_abs()));
        wait_until_within(REMOVAL, "what is past its time is gone", || async {
            for table in GOES {
                if self.rows(table).await > 0 {
                    return None;
                }
            }
            Some(())
        })
        .await;
        let (monitors, took) = (self.plan.monitors, self.began.elapsed());
        println!("{monitors} monitors, {} kills, {took:.0?} for {hours:.1} h: {totals:?}", self.kills);
        self.db.close().await;
    }
}

/// Writes down what a receiver is told.
fn keep(deliveries: &Mutex<Deliveries>, body: &[u8]) {
    let event: Value = serde_json::from_slice(body).expect("a webhook is JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = format!("{} {}", text(&event["type"]), text(&event["data"][0]["url"]));
    let mut all = deliveries.lock().unwrap();
    let before = all.by_check.entry(text(&event["id"])).or_default().insert(text(&event["webhookId"]), kind);
    all.repeated += usize::from(before.is_some());
}

/// What of the pages of a check is not as it should be.
fn differs(n: usize, told: &BTreeMap<String, changing::Told>, pages: &[Page]) -> Option<String> {
    let mut left = told.clone();
    for (_, url, status, code, scrape, detail, size) in pages {
        let path = url.splitn(4, '/').nth(3).map(|path| format!("/{path}")).unwrap_or_default();
        let Some(told) = left.remove(&path) else { return Some(format!("{path} is not expected, or there twice")) };
        if told.status != status {
            return Some(format!("{path} is {status} and should be {}", told.status));
        }
        if (told.status == "error") != (*code == Some(500)) || (code.is_some() && scrape.is_none()) {
            return Some(format!("{path} has the status code {code:?}"));
        }
        let detail: Value = serde_json::from_str(documents::open(*size, detail).unwrap().get()).unwrap();
        let is_right = match &told.change {
            Some(change) => changing::is_right(&detail["diff"], n, change),
            None => detail.get("diff").is_none(),
        };
        if !is_right {
            return Some(format!("{path} should tell of {:?}: {detail}", told.change));
        }
    }
    left.into_keys().next().map(|path| format!("{path} is missing"))
}
