//! Where the queue library gets wake-ups from: they are fetched only where there are some, and in one statement.
//!
//! Left alone the queue library fetches whenever it is polled, also after each acknowledgement, and opens a transaction for
//! it: three trips to the database where one statement suffices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use apalis_core::backend::{Backend, BackendConfig, WireFormatBackend};
use apalis_core::task::Task;
use apalis_core::worker::context::WorkerContext;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::task::AtomicWaker;
use sqlx::{PgPool, SqlitePool};
use tokio::task::JoinHandle;

type Wakeup = Task<Vec<u8>>;
/// A fetch under way. It is spawned as a task, because on SQLite it holds the one connection that the acknowledgements of
/// this same worker wait for: it must go on when nobody polls the worker.
type Taking<E> = JoinHandle<Result<Vec<Wakeup>, E>>;

/// The library's statements about wake-ups, on one of its two databases.
pub trait WakeupQueries: Clone + Send + Sync + Unpin + 'static {
    /// The library's error on this database.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Fetches the next wake-ups for this worker: at most one batch, and none when other workers were faster.
    fn take(self, worker: WorkerContext) -> BoxFuture<'static, Result<Vec<Wakeup>, Self::Error>>;

    /// Puts fetched wake-ups back that this worker will not serve.
    fn give_back(self, wakeups: Vec<Wakeup>, worker: WorkerContext) -> BoxFuture<'static, Result<(), Self::Error>>;
}

/// How many wake-ups of a queue are due and not yet fetched, as far as this worker has heard.
#[derive(Debug, Default)]
pub struct Due {
    wakeups: AtomicU64,
    task: AtomicWaker,
}

impl Due {
    /// Counts `wakeups` more: the worker was told of them.
    pub fn add(&self, wakeups: u64) {
        self.wakeups.fetch_add(wakeups, Ordering::AcqRel);
        self.task.wake();
    }

    /// Raises the count to `wakeups`: so many were counted in the queue.
    pub fn at_least(&self, wakeups: u64) {
        self.wakeups.fetch_max(wakeups, Ordering::AcqRel);
        self.task.wake();
    }

    fn now(&self) -> u64 {
        self.wakeups.load(Ordering::Acquire)
    }

    fn subtract(&self, wakeups: u64) {
        let less = |due: u64| Some(due.saturating_sub(wakeups));
        let _ = self.wakeups.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }
}

/// Whether the library's backend is in the middle of statements of its own: it registers the worker, keeps it alive,
/// writes acknowledgements down. Unlike a fetch these go on only while the worker is polled, and on SQLite they hold the one
/// connection that the work in hand waits for. A worker that is to stop is polled until they are done.
#[derive(Debug, Default)]
pub struct Statements {
    are_running: AtomicBool,
    task: AtomicWaker,
}

impl Statements {
    /// Resolves when none is running.
    pub async fn done(&self) {
        std::future::poll_fn(|cx| {
            self.task.register(cx.waker());
            if self.are_running.load(Ordering::Acquire) { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    fn set(&self, are_running: bool) {
        if self.are_running.swap(are_running, Ordering::AcqRel) && !are_running {
            self.task.wake();
        }
    }
}

/// A library backend whose wake-ups are fetched when they are due.
pub struct WakeupSource<B, T, E> {
    backend: B,
    statements: Arc<Statements>,
    queries: T,
    due: Arc<Due>,
    /// The fetch under way, with what was due when it began. When it comes back empty, so many are taken off the count;
    /// what was added meanwhile stays.
    taking: Option<(u64, Taking<E>)>,
    taken: Vec<Wakeup>,
    giving_back: Option<JoinHandle<Result<(), E>>>,
}

impl<B, T: WakeupQueries> WakeupSource<B, T, T::Error> {
    /// Fetches what `due` says.
    pub fn new(backend: B, queries: T, due: Arc<Due>, statements: Arc<Statements>) -> Self {
        Self { backend, statements, queries, due, taking: None, taken: Vec::new(), giving_back: None }
    }
}

impl<B: Backend<Task = Wakeup, Error = T::Error> + Unpin, T: WakeupQueries> Backend for WakeupSource<B, T, T::Error> {
    type Task = Wakeup;
    type Error = T::Error;

    fn poll_ready(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), T::Error>> {
        let ready = self.backend.poll_ready(cx, worker);
        self.statements.set(ready.is_pending());
        ready
    }

    fn poll_next(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Option<Result<Wakeup, T::Error>>> {
        // Registered before the count is read, so that what is added between the two wakes this task.
        self.due.task.register(cx.waker());
        loop {
            if let Some(wakeup) = self.taken.pop() {
                self.due.subtract(1);
                return Poll::Ready(Some(Ok(wakeup)));
            }
            let Some((due, taking)) = &mut self.taking else {
                let due = self.due.now();
                if due == 0 {
                    return Poll::Pending;
                }
                self.taking = Some((due, tokio::spawn(self.queries.clone().take(worker.clone()))));
                continue;
            };
            let due = *due;
            let Poll::Ready(taken) = taking.poll_unpin(cx) else { return Poll::Pending };
            self.taking = None;
            match taken {
                Ok(Ok(taken)) if !taken.is_empty() => self.taken = taken,
                Ok(Ok(_)) => self.due.subtract(due),
                Ok(Err(error)) => return Poll::Ready(Some(Err(error))),
                // The task was cancelled: the runtime goes down.
                Err(_) => return Poll::Ready(None),
            }
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), T::Error>> {
        if let Some((_, taking)) = &mut self.taking {
            let Poll::Ready(taken) = taking.poll_unpin(cx) else { return Poll::Pending };
            self.taking = None;
            // What a failed statement may have taken is not known here; the library finds it as an orphan later.
            self.taken.extend(taken.into_iter().flatten().flatten());
        }
        if !self.taken.is_empty() {
            let abandoned = std::mem::take(&mut self.taken);
            self.giving_back = Some(tokio::spawn(self.queries.clone().give_back(abandoned, worker.clone())));
        }
        if let Some(giving_back) = &mut self.giving_back {
            let Poll::Ready(given_back) = giving_back.poll_unpin(cx) else { return Poll::Pending };
            self.giving_back = None;
            if let Ok(Err(error)) = given_back {
                return Poll::Ready(Err(error));
            }
        }
        self.backend.poll_close(cx, worker)
    }
}

apalis_core::delegate_config!(WakeupSource<B, T, E>, backend);
apalis_core::delegate_codec!(WakeupSource<B, T, E>, backend);

/// Wake-ups on SQLite.
#[derive(Clone)]
pub struct SqliteWakeups {
    pub pool: SqlitePool,
    pub config: apalis_sqlite::Config,
}

impl WakeupQueries for SqliteWakeups {
    type Error = apalis_sqlite::Error;

    fn take(self, worker: WorkerContext) -> BoxFuture<'static, Result<Vec<Wakeup>, Self::Error>> {
        async move { apalis_sqlite::queries::fetch_next(&self.pool, &self.config, &worker).await }.boxed()
    }

    fn give_back(self, wakeups: Vec<Wakeup>, worker: WorkerContext) -> BoxFuture<'static, Result<(), Self::Error>> {
        let (queue, ids) = (self.config.queue.to_string(), ids(&wakeups));
        async move {
            apalis_sqlite::queries::reenqueue_abandoned(&self.pool, &queue, worker.name(), &ids).await?;
            Ok(())
        }
        .boxed()
    }
}

/// Wake-ups on Postgres.
#[derive(Clone)]
pub struct PostgresWakeups {
    pub pool: PgPool,
    pub config: apalis_postgres::Config,
}

impl WakeupQueries for PostgresWakeups {
    type Error = apalis_postgres::Error;

    fn take(self, worker: WorkerContext) -> BoxFuture<'static, Result<Vec<Wakeup>, Self::Error>> {
        async move {
            let mut connection = self.pool.acquire().await?;
            apalis_postgres::queries::fetch_next(&mut *connection, &self.config, &worker).await
        }
        .boxed()
    }

    fn give_back(self, wakeups: Vec<Wakeup>, worker: WorkerContext) -> BoxFuture<'static, Result<(), Self::Error>> {
        let (queue, ids) = (self.config.queue.to_string(), ids(&wakeups));
        async move {
            let mut connection = self.pool.acquire().await?;
            apalis_postgres::queries::reenqueue_abandoned(&mut *connection, &queue, worker.name(), &ids).await?;
            Ok(())
        }
        .boxed()
    }
}

fn ids(wakeups: &[Wakeup]) -> Vec<String> {
    wakeups.iter().filter_map(|wakeup| wakeup.task_id()).map(ToString::to_string).collect()
}
