//! What a kind of job is. Each is declared in one file beside this one: its name, its queue, what its wake-ups carry, how
//! many of them a worker serves at once, and what it does about one.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use weir_shared::queue::Ticket;
use weir_shared::store::StoreResult;

use crate::context::WorkerContext;

/// A kind of job; a value is one wake-up of it.
pub trait Job: Sized + Send + 'static {
    /// Its name in logs.
    const NAME: &'static str;
    /// The queue of its wake-ups, of which it is the only kind.
    const QUEUE: &'static str;
    /// Wake-ups that a worker serves at once, 1 upwards.
    const AT_ONCE: usize;

    /// What a wake-up carries. `None`: it is of another kind.
    fn of(wakeup: Ticket) -> Option<Self>;

    /// Serves the wake-up. It is an invitation: there may be nothing to do.
    ///
    /// # Errors
    /// When the database could not be reached; the wake-up is delivered again.
    fn run(self, context: Arc<WorkerContext>) -> impl Future<Output = StoreResult<()>> + Send;
}

type Serve = fn(Arc<WorkerContext>, Ticket) -> Option<BoxFuture<'static, StoreResult<()>>>;

/// A kind of job for the queue's consumers, which serve all kinds alike.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    pub queue: &'static str,
    pub at_once: usize,
    serve: Serve,
}

impl Kind {
    /// The kind that `J` declares.
    pub const fn of<J: Job>() -> Self {
        fn serve<J: Job>(context: Arc<WorkerContext>, wakeup: Ticket) -> Option<BoxFuture<'static, StoreResult<()>>> {
            Some(Box::pin(J::of(wakeup)?.run(context)))
        }
        Self { name: J::NAME, queue: J::QUEUE, at_once: J::AT_ONCE, serve: serve::<J> }
    }

    /// Serves a wake-up as the queue delivers it.
    ///
    /// # Errors
    /// As for [`Job::run`].
    pub async fn serve(self, context: Arc<WorkerContext>, payload: Vec<u8>) -> StoreResult<()> {
        let wakeup = serde_json::from_slice(&payload).ok().and_then(|value| Ticket::parse(&value));
        match wakeup.and_then(|wakeup| (self.serve)(context, wakeup)) {
            Some(serving) => serving.await,
            None => {
                let (kind, bytes) = (self.name, payload.len());
                tracing::warn!(kind, bytes, "a wake-up that this version cannot read is dropped");
                Ok(())
            }
        }
    }
}
