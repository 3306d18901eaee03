//! Fetches tickets only where there are some, and in one statement.
//!
//! Left alone the queue library fetches whenever it is polled, also after each acknowledgement, and in a transaction of
//! its own: three trips to the database for a statement that is whole by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use apalis_core::backend::{Backend, BackendConfig, WireFormatBackend};
use apalis_core::task::Task;
use apalis_core::worker::context::WorkerContext;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::task::AtomicWaker;
use sqlx::{PgPool, SqlitePool};
use tokio::task::JoinHandle;

type Ticket = Task<Vec<u8>>;
/// A task of its own: on SQLite it holds the one connection that the acknowledgements of this same worker wait for.
type Taking<E> = JoinHandle<Result<Vec<Ticket>, E>>;

/// The library's statements about tickets, on one of its two databases.
pub trait Tickets: Clone + Send + Sync + Unpin + 'static {
    /// The library's error there.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Takes the next ones for this worker; few, and none when others were faster.
    fn take(self, worker: WorkerContext) -> BoxFuture<'static, Result<Vec<Ticket>, Self::Error>>;

    /// Puts those back that nobody will work on.
    fn give_back(self, tickets: Vec<Ticket>, worker: WorkerContext) -> BoxFuture<'static, Result<(), Self::Error>>;
}

/// How many tickets of a queue are due and not yet fetched, as far as this worker has heard.
#[derive(Debug, Default)]
pub struct Due {
    tickets: AtomicU64,
    task: AtomicWaker,
}

impl Due {
    /// So many more.
    pub fn add(&self, tickets: u64) {
        self.tickets.fetch_add(tickets, Ordering::AcqRel);
        self.task.wake();
    }

    /// So many were counted.
    pub fn at_least(&self, tickets: u64) {
        self.tickets.fetch_max(tickets, Ordering::AcqRel);
        self.task.wake();
    }

    fn now(&self) -> u64 {
        self.tickets.load(Ordering::Acquire)
    }

    fn subtract(&self, tickets: u64) {
        let less = |due: u64| Some(due.saturating_sub(tickets));
        let _ = self.tickets.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }
}

/// A library backend whose tickets are fetched when they are due.
pub struct OnCall<B, T, E> {
    backend: B,
    tickets: T,
    due: Arc<Due>,
    /// With what was due when it began: no more can be told of by an empty fetch.
    taking: Option<(u64, Taking<E>)>,
    taken: Vec<Ticket>,
    giving_back: Option<JoinHandle<Result<(), E>>>,
}

impl<B, T: Tickets> OnCall<B, T, T::Error> {
    /// Fetches what `due` says.
    pub fn new(backend: B, tickets: T, due: Arc<Due>) -> Self {
        Self { backend, tickets, due, taking: None, taken: Vec::new(), giving_back: None }
    }
}

impl<B: Backend<Task = Ticket, Error = T::Error> + Unpin, T: Tickets> Backend for OnCall<B, T, T::Error> {
    type Task = Ticket;
    type Error = T::Error;

    fn poll_ready(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), T::Error>> {
        self.backend.poll_ready(cx, worker)
    }

    fn poll_next(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Option<Result<Ticket, T::Error>>> {
        // Before the look at what is due: no call is lost.
        self.due.task.register(cx.waker());
        loop {
            if let Some(ticket) = self.taken.pop() {
                self.due.subtract(1);
                return Poll::Ready(Some(Ok(ticket)));
            }
            let Some((due, taking)) = &mut self.taking else {
                let due = self.due.now();
                if due == 0 {
                    return Poll::Pending;
                }
                self.taking = Some((due, tokio::spawn(self.tickets.clone().take(worker.clone()))));
                continue;
            };
            let due = *due;
            let Poll::Ready(taken) = taking.poll_unpin(cx) else { return Poll::Pending };
            self.taking = None;
            match taken {
                Ok(Ok(taken)) if !taken.is_empty() => self.taken = taken,
                Ok(Ok(_)) => self.due.subtract(due),
                Ok(Err(error)) => return Poll::Ready(Some(Err(error))),
                // The runtime goes down.
                Err(_) => return Poll::Ready(None),
            }
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), T::Error>> {
        if let Some((_, taking)) = &mut self.taking {
            let Poll::Ready(taken) = taking.poll_unpin(cx) else { return Poll::Pending };
            self.taking = None;
            // What was taken by a statement that failed nobody knows; it counts as an orphan later.
            self.taken.extend(taken.into_iter().flatten().flatten());
        }
        if !self.taken.is_empty() {
            let abandoned = std::mem::take(&mut self.taken);
            self.giving_back = Some(tokio::spawn(self.tickets.clone().give_back(abandoned, worker.clone())));
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

apalis_core::delegate_config!(OnCall<B, T, E>, backend);
apalis_core::delegate_codec!(OnCall<B, T, E>, backend);

/// Tickets on SQLite.
#[derive(Clone)]
pub struct SqliteTickets {
    pub writes: SqlitePool,
    pub config: apalis_sqlite::Config,
}

impl Tickets for SqliteTickets {
    type Error = apalis_sqlite::Error;

    fn take(self, worker: WorkerContext) -> BoxFuture<'static, Result<Vec<Ticket>, Self::Error>> {
        async move { apalis_sqlite::queries::fetch_next(&self.writes, &self.config, &worker).await }.boxed()
    }

    fn give_back(self, tickets: Vec<Ticket>, worker: WorkerContext) -> BoxFuture<'static, Result<(), Self::Error>> {
        let (queue, ids) = (self.config.queue.to_string(), ids(&tickets));
        async move {
            apalis_sqlite::queries::reenqueue_abandoned(&self.writes, &queue, worker.name(), &ids).await?;
            Ok(())
        }
        .boxed()
    }
}

/// Tickets on Postgres.
#[derive(Clone)]
pub struct PostgresTickets {
    pub pool: PgPool,
    pub config: apalis_postgres::Config,
}

impl Tickets for PostgresTickets {
    type Error = apalis_postgres::Error;

    fn take(self, worker: WorkerContext) -> BoxFuture<'static, Result<Vec<Ticket>, Self::Error>> {
        async move {
            let mut connection = self.pool.acquire().await?;
            apalis_postgres::queries::fetch_next(&mut *connection, &self.config, &worker).await
        }
        .boxed()
    }

    fn give_back(self, tickets: Vec<Ticket>, worker: WorkerContext) -> BoxFuture<'static, Result<(), Self::Error>> {
        let (queue, ids) = (self.config.queue.to_string(), ids(&tickets));
        async move {
            let mut connection = self.pool.acquire().await?;
            apalis_postgres::queries::reenqueue_abandoned(&mut *connection, &queue, worker.name(), &ids).await?;
            Ok(())
        }
        .boxed()
    }
}

fn ids(tickets: &[Ticket]) -> Vec<String> {
    tickets.iter().filter_map(|ticket| ticket.task_id()).map(ToString::to_string).collect()
}
