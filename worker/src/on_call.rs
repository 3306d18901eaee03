//! Fetches tickets only where there are some, and in one statement.
//!
//! Left alone the queue library fetches whenever it is polled, also after each acknowledgement, and in a transaction of
//! its own: three trips to the database for a statement that is whole by itself.

use std::pin::Pin;
use std::task::{Context, Poll};

use apalis_core::backend::future::BoxSyncFuture;
use apalis_core::backend::{Backend, BackendConfig, WireFormatBackend};
use apalis_core::task::Task;
use apalis_core::worker::context::WorkerContext;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, Stream};
use sqlx::{PgPool, SqlitePool};
use tokio::sync::watch;

type Ticket = Task<Vec<u8>>;

/// The library's statements about tickets, on one of its two databases.
pub trait Tickets: Clone + Send + Sync + Unpin + 'static {
    /// The library's error there.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Takes the next ones for this worker; few, and none when others were faster.
    fn take(self, worker: WorkerContext) -> BoxFuture<'static, Result<Vec<Ticket>, Self::Error>>;

    /// Puts those back that nobody will work on.
    fn give_back(self, tickets: Vec<Ticket>, worker: WorkerContext) -> BoxFuture<'static, Result<(), Self::Error>>;
}

/// A library backend whose tickets are fetched when called for: as many as the last call said are due.
pub struct OnCall<B, T, E> {
    backend: B,
    tickets: T,
    calls: Pin<Box<dyn Stream<Item = u64> + Send + Sync>>,
    /// Tickets it may still fetch.
    due: u64,
    taking: Option<BoxSyncFuture<Result<Vec<Ticket>, E>>>,
    taken: Vec<Ticket>,
    giving_back: Option<BoxSyncFuture<Result<(), E>>>,
}

impl<B, T: Tickets> OnCall<B, T, T::Error> {
    /// `calls` says how many tickets are due.
    pub fn new(backend: B, tickets: T, calls: watch::Receiver<u64>) -> Self {
        let calls = futures_util::stream::unfold(calls, |mut calls| async move {
            calls.changed().await.ok()?;
            let due = *calls.borrow_and_update();
            Some((due, calls))
        });
        let calls = Box::pin(calls);
        Self { backend, tickets, calls, due: 0, taking: None, taken: Vec::new(), giving_back: None }
    }
}

impl<B: Backend<Task = Ticket, Error = T::Error> + Unpin, T: Tickets> Backend for OnCall<B, T, T::Error> {
    type Task = Ticket;
    type Error = T::Error;

    fn poll_ready(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), T::Error>> {
        self.backend.poll_ready(cx, worker)
    }

    fn poll_next(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Option<Result<Ticket, T::Error>>> {
        // Ends only when the source has taken our waker: no call is lost.
        while let Poll::Ready(Some(due)) = self.calls.as_mut().poll_next(cx) {
            self.due = due;
        }
        loop {
            if let Some(ticket) = self.taken.pop() {
                self.due = self.due.saturating_sub(1);
                return Poll::Ready(Some(Ok(ticket)));
            }
            let Some(taking) = &mut self.taking else {
                if self.due == 0 {
                    return Poll::Pending;
                }
                self.taking = Some(self.tickets.clone().take(worker.clone()).into());
                continue;
            };
            let Poll::Ready(taken) = taking.poll_unpin(cx) else { return Poll::Pending };
            self.taking = None;
            match taken {
                Ok(taken) if taken.is_empty() => self.due = 0,
                Ok(taken) => self.taken = taken,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), T::Error>> {
        if let Some(taking) = &mut self.taking {
            let Poll::Ready(taken) = taking.poll_unpin(cx) else { return Poll::Pending };
            self.taking = None;
            // What was taken by a statement that failed nobody knows; it counts as an orphan later.
            self.taken.extend(taken.unwrap_or_default());
        }
        if !self.taken.is_empty() {
            let abandoned = std::mem::take(&mut self.taken);
            self.giving_back = Some(self.tickets.clone().give_back(abandoned, worker.clone()).into());
        }
        if let Some(giving_back) = &mut self.giving_back {
            let Poll::Ready(given_back) = giving_back.poll_unpin(cx) else { return Poll::Pending };
            self.giving_back = None;
            if let Err(error) = given_back {
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
