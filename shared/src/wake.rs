//! Wake-up without polling: tells waiters at once that something was committed, and costs nothing while nothing is.
//!
//! Postgres: `LISTEN`; a notification names the page or job that ended, or a new wake-up. A connection on which nothing
//! comes may have fallen silent, so all that listen are sent a beat now and then, and one that does not hear it is left.
//! SQLite: a file beside the database that whoever commits such a thing writes to ([`signals`]). A slow tick is the
//! backstop for both.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use inotify::{Inotify, WatchDescriptor};
use sqlx::postgres::{PgConnectOptions, PgListener, PgNotification, PgPool, PgPoolOptions};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use crate::clock;
use crate::config::DatabaseUrl;
use crate::domain::job::JobStatus;
use crate::ids::{JobId, PageId};
use crate::lasting;
use crate::queue::SIGNALS;
use crate::random;
use crate::store::db::signals::{self, Signal};
use crate::store::db::{lines, shortage};
use crate::store::work::{jobs, pages};
use crate::store::{Db, PostgresDb, StoreResult};

/// Backstop: waiters look again this often even without a signal.
const TICK: Duration = Duration::from_millis(1_500);
/// The queue library's own channel on Postgres.
const NEW_WAKEUP: &str = "apalis::job::insert";
/// Where beats are heard, by every process: whoever is the first to miss something sends one for all.
const BEATS: &str = "weir_beat";
/// A connection on which nothing has come for this long asks for a beat, and has as long again for it to arrive.
const BEAT: Duration = Duration::from_secs(4);
/// Added to it by chance, up to this many milliseconds, so that the others hear the beat of the first and ask for none.
const SPREAD_MS: u64 = 800;
/// How long a connection that listens may take to come.
const LISTEN_PATIENCE: Duration = Duration::from_secs(10);
/// The least pause between two looks at one watched job.
const JOB_PAUSE: Duration = Duration::from_millis(40);

/// Handle to the signals of one process; cheap to clone.
#[derive(Clone)]
pub struct Wake {
    shared: Arc<Shared>,
}

struct Shared {
    db: Db,
    /// Counts signals; receivers see that something was committed.
    signal: watch::Sender<u64>,
    waiting: Mutex<HashMap<PageId, Vec<oneshot::Sender<()>>>>,
    /// Somebody has begun to wait for a page.
    awaited: Notify,
    /// New wake-ups by queue that were told of, until somebody takes them.
    told: Mutex<HashMap<String, u64>>,
}

impl Wake {
    /// Starts watching. Needs the database to exist. `listen`: where Postgres is listened to, if not through `db`.
    pub async fn start(url: &DatabaseUrl, listen: Option<&str>, db: &Db) -> anyhow::Result<Self> {
        Self::start_with(url, listen, db, &[Signal::End], "weir_done").await
    }

    /// The same for a worker, which hears of new wake-ups too.
    pub async fn start_for_worker(url: &DatabaseUrl, listen: Option<&str>, db: &Db) -> anyhow::Result<Self> {
        Self::start_with(url, listen, db, &SIGNALS.map(|(_, signal)| signal), NEW_WAKEUP).await
    }

    async fn start_with(
        url: &DatabaseUrl,
        listen: Option<&str>,
        db: &Db,
        wanted: &[Signal],
        channel: &'static str,
    ) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared {
            db: db.clone(),
            signal: watch::Sender::new(0),
            waiting: Mutex::default(),
            awaited: Notify::new(),
            told: Mutex::default(),
        });
        let wake = Self { shared };
        match (url, db) {
            (DatabaseUrl::Sqlite(path), _) => {
                let ((signals, watches), wake) = (signals::watch(path, wanted)?, wake.clone());
                let follow = move || {
                    if let Err(error) = wake.follow_signals(signals, &watches) {
                        tracing::error!(%error, "signals cannot be watched any more; the slow tick goes on alone");
                    }
                };
                std::thread::Builder::new().name("wake".to_owned()).spawn(follow).context("wake thread")?;
            }
            (DatabaseUrl::Postgres(_), Db::Postgres(PostgresDb { pool, .. })) => {
                let ears = Ears::open(pool.clone(), listening_pool(pool, listen)?, channel).await.context("LISTEN")?;
                lines::watch(pool);
                shortage::tell(pool);
                let (ears, woken, wake) = (Arc::new(tokio::sync::Mutex::new(ears)), wake.clone(), wake.clone());
                let follow = move || wake.clone().follow_notifications(Arc::clone(&ears));
                tokio::spawn(lasting::again_after("ears for notifications", move || woken.poke(), follow));
            }
            (DatabaseUrl::Postgres(_), Db::Sqlite(_)) => anyhow::bail!("the address is Postgres's, the pool is not"),
        }
        let resolving = wake.clone();
        tokio::spawn(lasting::again("ends of pages", move || resolving.clone().resolve_pages()));
        Ok(wake)
    }

    /// A receiver that changes at every signal.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.shared.signal.subscribe()
    }

    /// Wakes every receiver.
    fn poke(&self) {
        self.shared.signal.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// The new wake-ups by queue that were told of since the last call. There may be more: signals that come together
    /// count as one.
    pub fn take_told(&self) -> HashMap<String, u64> {
        std::mem::take(&mut *self.shared.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Begins to wait for a page's end. Call before the transaction commits that lets a worker see the page: then no
    /// end can pass unseen.
    pub fn expect(&self, page: PageId) -> ExpectedPage {
        let (sender, ended) = oneshot::channel();
        self.lock_waiting().entry(page).or_default().push(sender);
        self.shared.awaited.notify_one();
        ExpectedPage { wake: self.clone(), page, ended }
    }

    /// Waits until the job's counts or status differ from what was seen, or until `until`.
    pub async fn job_changed(&self, job: JobId, seen: (i64, i64, JobStatus), until: Instant) -> StoreResult<()> {
        let mut signal = self.subscribe();
        loop {
            let now = jobs::load(&self.shared.db, job).await?;
            if now.is_none_or(|j| (j.completed, j.failed, j.status) != seen) || clock::instant() >= until {
                return Ok(());
            }
            let tick = clock::deadline(TICK).min(until);
            let _ = tokio::time::timeout_at(tick, signal.changed()).await;
            tokio::time::sleep_until(clock::deadline(JOB_PAUSE).min(until)).await;
        }
    }

    fn lock_waiting(&self) -> std::sync::MutexGuard<'_, HashMap<PageId, Vec<oneshot::Sender<()>>>> {
        self.shared.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn release(&self, page: PageId) {
        for waiter in self.lock_waiting().remove(&page).unwrap_or_default() {
            let _ = waiter.send(());
        }
    }

    /// Asks which of the awaited pages have ended, whatever their number: once per signal on SQLite; Postgres names
    /// them, so there it is the backstop only. Sleeps while none is awaited.
    async fn resolve_pages(self) {
        let mut signal = self.subscribe();
        let is_named = matches!(self.shared.db, Db::Postgres(_));
        loop {
            while self.lock_waiting().is_empty() {
                self.shared.awaited.notified().await;
            }
            if is_named {
                tokio::time::sleep(TICK).await;
            } else {
                let _ = tokio::time::timeout(TICK, signal.changed()).await;
                signal.borrow_and_update();
            }
            let awaited: Vec<PageId> = self.lock_waiting().keys().copied().collect();
            for part in awaited.chunks(500) {
                match pages::ended_among(&self.shared.db, part).await {
                    Ok(ended) => ended.into_iter().for_each(|page| self.release(page)),
                    Err(error) => {
                        tracing::warn!(%error, "cannot look for finished pages");
                        tokio::time::sleep(Duration::from_millis(200)).await;
                    }
                }
            }
        }
    }

    /// Runs on a thread of its own.
    fn follow_signals(&self, mut signals: Inotify, watches: &HashMap<WatchDescriptor, Signal>) -> std::io::Result<()> {
        let mut buffer = [0; 4096];
        loop {
            for event in signals.read_events_blocking(&mut buffer)? {
                let signal = watches.get(&event.wd);
                if let Some((queue, _)) = SIGNALS.iter().find(|(_, of)| Some(of) == signal) {
                    self.tell_of_wakeup((*queue).to_owned());
                }
            }
            self.poke();
        }
    }

    fn tell_of_wakeup(&self, queue: String) {
        let mut told = self.shared.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *told.entry(queue).or_default() += 1;
    }

    async fn follow_notifications(self, ears: Arc<tokio::sync::Mutex<Ears>>) {
        let mut ears = ears.lock().await;
        loop {
            match ears.hear().await {
                Ok(Heard::Note(note)) => self.hear(&note),
                Ok(Heard::Beat) => {}
                // Notifications that came while the connection was gone are lost: have everybody look.
                Ok(Heard::Anew) => self.poke(),
                Err(sqlx::Error::PoolClosed) => return,
                Err(error) => {
                    tracing::warn!(%error, "listening to Postgres failed; it is tried again");
                    tokio::time::sleep(Duration::from_millis(500)).await;
                    self.poke();
                }
            }
        }
    }

    fn hear(&self, note: &PgNotification) {
        if let Some(page) = note.payload().strip_prefix("p:").and_then(|id| id.parse().ok()) {
            return self.release(page);
        }
        if note.channel() == NEW_WAKEUP
            && let Some(queue) = crate::queue::named_in(note.payload())
        {
            self.tell_of_wakeup(queue);
        }
        self.poke();
    }
}

/// Where connections that listen come from: the pool of the rows, or one of their own beside the pooler.
fn listening_pool(rows: &PgPool, listen: Option<&str>) -> anyhow::Result<PgPool> {
    let Some(text) = listen else { return Ok(rows.clone()) };
    let options: PgConnectOptions = text.parse().context("DATABASE_LISTEN_URL")?;
    // A second one takes the place of one that has fallen silent.
    let pool = PgPoolOptions::new().max_connections(2).max_lifetime(None).idle_timeout(None);
    let pool = pool.acquire_timeout(LISTEN_PATIENCE).connect_lazy_with(options.application_name("weir"));
    lines::watch(&pool);
    Ok(pool)
}

/// Whether what is sent to Postgres by the pool is heard where this process would listen. `false`: nothing came within
/// some seconds, as through a pooler that lends its connections by transaction.
///
/// # Errors
/// When the database, or where it is listened to, cannot be reached.
pub async fn can_hear(pool: &PgPool, listen: Option<&str>) -> anyhow::Result<bool> {
    let from = listening_pool(pool, listen)?;
    let ears = tokio::time::timeout(LISTEN_PATIENCE, Ears::open(pool.clone(), from, "weir_check")).await;
    let mut ears = ears.context("LISTEN is not answered")?.context("LISTEN")?;
    beat(pool).await.context("NOTIFY")?;
    Ok(matches!(tokio::time::timeout(BEAT, ears.listener.try_recv()).await, Ok(Ok(Some(_)))))
}

/// Sends a beat to all that listen.
async fn beat(pool: &PgPool) -> sqlx::Result<()> {
    sqlx::query("SELECT pg_notify($1, '')").bind(BEATS).execute(pool).await.map(drop)
}

/// What came of listening.
enum Heard {
    Note(PgNotification),
    Beat,
    /// The connection was lost and is a new one: notifications may be missing.
    Anew,
}

/// A connection that listens, with a beat that shows whether it still does.
struct Ears {
    /// Where beats are sent from.
    pool: PgPool,
    /// Where its connection comes from.
    from: PgPool,
    channel: &'static str,
    listener: PgListener,
    /// When it must have heard something.
    until: Instant,
    /// A beat is on the way.
    is_asked: bool,
}

impl Ears {
    async fn open(pool: PgPool, from: PgPool, channel: &'static str) -> sqlx::Result<Self> {
        let listener = Self::listen(&from, channel).await?;
        Ok(Self { pool, from, channel, listener, until: Self::next(), is_asked: false })
    }

    async fn listen(pool: &PgPool, channel: &str) -> sqlx::Result<PgListener> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.listen_all([channel, BEATS]).await?;
        Ok(listener)
    }

    fn next() -> Instant {
        clock::deadline(BEAT + Duration::from_millis(random::up_to(SPREAD_MS)))
    }

    /// Waits for the next notification, or for a new connection.
    async fn hear(&mut self) -> sqlx::Result<Heard> {
        loop {
            match tokio::time::timeout_at(self.until, self.listener.try_recv()).await {
                Ok(heard) => {
                    (self.until, self.is_asked) = (Self::next(), false);
                    return Ok(match heard? {
                        Some(note) if note.channel() == BEATS => Heard::Beat,
                        Some(note) => Heard::Note(note),
                        None => Heard::Anew,
                    });
                }
                Err(_) if self.is_asked => {
                    tracing::warn!("Postgres tells nothing any more; a new connection listens");
                    let fresh = tokio::time::timeout(BEAT, Self::listen(&self.from, self.channel)).await;
                    self.listener = fresh.map_err(|_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))??;
                    (self.until, self.is_asked) = (Self::next(), false);
                    return Ok(Heard::Anew);
                }
                Err(_) => {
                    // By another connection: one that cannot be had says nothing of this one.
                    let is_sent = tokio::time::timeout(BEAT, beat(&self.pool)).await.is_ok_and(|sent| sent.is_ok());
                    (self.until, self.is_asked) = (clock::deadline(BEAT), is_sent);
                }
            }
        }
    }
}

/// A page whose end somebody waits for.
pub struct ExpectedPage {
    wake: Wake,
    page: PageId,
    ended: oneshot::Receiver<()>,
}

impl ExpectedPage {
    /// Waits until the page has ended. `false`: not before `until`; the wait may go on.
    pub async fn ended(&mut self, until: Instant) -> StoreResult<bool> {
        if tokio::time::timeout_at(until, &mut self.ended).await.is_ok() {
            return Ok(true);
        }
        Ok(!pages::ended_among(&self.wake.shared.db, &[self.page]).await?.is_empty())
    }
}

impl Drop for ExpectedPage {
    fn drop(&mut self) {
        self.ended.close();
        let mut waiting = self.wake.lock_waiting();
        if let Some(senders) = waiting.get_mut(&self.page) {
            senders.retain(|sender| !sender.is_closed());
            if senders.is_empty() {
                waiting.remove(&self.page);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::clock::Stopwatch;
    use crate::store::testing::{Line, fresh_postgres};
    use crate::store::{PoolUse, migrate};

    #[tokio::test]
    async fn a_listener_that_fell_silent_is_replaced() {
        let Ok(server) = std::env::var("WEIR_TEST_POSTGRES_URL") else {
            eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
            return;
        };
        let direct = fresh_postgres(&server).await;
        let line = Line::to(&direct).await;
        let url = DatabaseUrl::Postgres(line.url.clone());
        let db = Db::connect(&url, 4, PoolUse::Rows).await.unwrap();
        migrate(&db).await.unwrap();
        let wake = Wake::start(&url, None, &db).await.unwrap();
        let speaker = sqlx::PgPool::connect(&direct).await.unwrap();
        // Told only by a notification: no page of this name is in the rows.
        let is_told = async |patience: Duration| {
            let page = PageId::new();
            let mut expected = wake.expect(page);
            let note = format!("p:{page}");
            sqlx::query("SELECT pg_notify('weir_done', $1)").bind(note).execute(&speaker).await.unwrap();
            tokio::time::timeout(patience, &mut expected.ended).await.is_ok()
        };
        assert!(is_told(Duration::from_secs(60)).await);
        line.freeze();
        let frozen = Stopwatch::start();
        while !is_told(Duration::from_millis(500)).await {
            assert!(frozen.elapsed() < Duration::from_secs(30), "nobody noticed");
        }
    }

    /// Postgres wakes all that listen for each beat.
    #[tokio::test]
    async fn processes_at_rest_send_one_beat_for_all() {
        const MANY: u32 = 6;
        let Ok(server) = std::env::var("WEIR_TEST_POSTGRES_URL") else {
            eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
            return;
        };
        let url = DatabaseUrl::Postgres(fresh_postgres(&server).await);
        let db = Db::connect(&url, 2 * MANY, PoolUse::Rows).await.unwrap();
        let Db::Postgres(PostgresDb { pool, .. }) = &db else { panic!("it is Postgres") };
        let mut listening = tokio::task::JoinSet::new();
        for _ in 0..MANY {
            let mut ears = Ears::open(pool.clone(), pool.clone(), "weir_done").await.unwrap();
            listening.spawn(async move {
                while matches!(ears.hear().await, Ok(Heard::Beat)) {}
                panic!("no connection was lost, and nobody sent anything else");
            });
        }
        let mut beats = PgListener::connect_with(pool).await.unwrap();
        beats.listen(BEATS).await.unwrap();
        // Where the machine stands still when one is due, all of them are too late to hear of it: then it is no round.
        let mut counts = Vec::new();
        while counts.len() < 8 && !counts.last().is_some_and(|count| (2..=MANY).contains(count)) {
            let mut count = 0;
            let until = clock::deadline(2 * BEAT + 2 * Duration::from_millis(SPREAD_MS));
            while tokio::time::timeout_at(until, beats.recv()).await.is_ok() {
                count += 1;
            }
            counts.push(count);
        }
        let is_one_for_all = counts.last().is_some_and(|count| (2..=MANY).contains(count));
        assert!(is_one_for_all, "{counts:?} beats in two turns of {MANY} connections each");
        assert!(listening.try_join_next().is_none());
    }

    /// A way to a server on which no notification comes through, as by a pooler that lends its connections by transaction.
    async fn deaf_line(server: &str) -> String {
        let mut url = url::Url::parse(server).unwrap();
        let target = (url.host_str().unwrap().to_owned(), url.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        url.query_pairs_mut().append_pair("sslmode", "disable");
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(target.clone()).await.unwrap();
                tokio::spawn(pass_but_notifications(near, far));
            }
        });
        url.to_string()
    }

    async fn pass_but_notifications(near: TcpStream, far: TcpStream) {
        let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.into_split(), far.into_split());
        tokio::spawn(async move { tokio::io::copy(&mut near_in, &mut far_out).await });
        let mut head = [0; 5];
        while far_in.read_exact(&mut head).await.is_ok() {
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
            let mut body = vec![0; length as usize - 4];
            if far_in.read_exact(&mut body).await.is_err() {
                return;
            }
            if head[0] != b'A' && near_out.write_all(&[&head[..], &body].concat()).await.is_err() {
                return;
            }
        }
    }

    #[tokio::test]
    async fn a_pooler_that_keeps_notifications_to_itself_is_noticed_and_gone_around() {
        let Ok(server) = std::env::var("WEIR_TEST_POSTGRES_URL") else {
            eprintln!("skipped: WEIR_TEST_POSTGRES_URL is not set");
            return;
        };
        let direct = fresh_postgres(&server).await;
        let url = DatabaseUrl::Postgres(deaf_line(&direct).await);
        let db = Db::connect(&url, 4, PoolUse::Rows).await.unwrap();
        migrate(&db).await.unwrap();
        let Db::Postgres(PostgresDb { pool, .. }) = &db else { panic!("it is Postgres") };
        assert!(!can_hear(pool, None).await.unwrap());
        assert!(can_hear(pool, Some(&direct)).await.unwrap());
        let wake = Wake::start(&url, Some(&direct), &db).await.unwrap();
        let page = PageId::new();
        let mut expected = wake.expect(page);
        sqlx::query("SELECT pg_notify('weir_done', $1)").bind(format!("p:{page}")).execute(pool).await.unwrap();
        assert!(tokio::time::timeout(Duration::from_secs(60), &mut expected.ended).await.is_ok());
    }
}
