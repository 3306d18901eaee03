//! A connection to Postgres that stays out of its pool between the statements that each page needs which somebody waits
//! for: of a connection that comes back to it the pool asks every time whether it still answers, and next to such a
//! statement this is 4 % of a scrape.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{Connection as _, Postgres};
use tokio::time::Instant;

use crate::clock;

/// Only a connection that has rested for so long may have died or fallen silent unseen, as in a restart of the server.
const RESTED: Duration = Duration::from_millis(500);
/// A rested connection that does not answer for this long is taken for dead, and another one used.
const PING: Duration = Duration::from_secs(2);
/// The pool replaces connections that are old, and sees them when they come back.
const COMES_BACK: Duration = Duration::from_secs(600);

/// The place of one such connection. A clone is the same place.
#[derive(Debug, Default, Clone)]
pub struct Kept(Arc<Mutex<Option<Lent>>>);

/// The connection while it is used. Dropped, which is where its statement failed or nobody waits for it any more, it goes
/// back to the pool, which finds out whether it can be used.
#[derive(Debug)]
pub struct Lent {
    connection: PoolConnection<Postgres>,
    taken: Instant,
    rested: Instant,
}

impl Kept {
    /// The one that is kept, or another one of the pool while that is in use.
    pub async fn take(&self, pool: &PgPool) -> sqlx::Result<Lent> {
        let kept = self.lock().take();
        if let Some(mut lent) = kept {
            if is_there(&mut lent.connection, lent.rested.elapsed()).await.is_ok() {
                return Ok(lent);
            }
            // Of the pool's question nobody knows when it would end.
            drop(lent.connection.detach());
        }
        let (connection, now) = (pool.acquire().await?, clock::instant());
        Ok(Lent { connection, taken: now, rested: now })
    }

    /// Keeps one whose statement was answered to the end of the answer. Others want the only one of a pool.
    pub fn keep(&self, pool: &PgPool, mut lent: Lent) {
        let is_only_one = pool.options().get_max_connections() < 2;
        if is_only_one || pool.is_closed() || lent.taken.elapsed() > COMES_BACK {
            return;
        }
        lent.connection.shrink_buffers();
        lent.rested = clock::instant();
        // A second one goes back.
        let second = self.lock().replace(lent);
        drop(second);
    }

    /// Gives it back, before the pool is closed.
    pub fn give_back(&self) {
        drop(self.lock().take());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Lent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::ops::Deref for Lent {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl std::ops::DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

/// Asks a connection that has rested whether it answers.
pub async fn is_there(connection: &mut PgConnection, rested: Duration) -> sqlx::Result<()> {
    if rested > RESTED {
        let answered = tokio::time::timeout(PING, connection.ping()).await;
        answered.map_err(|_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))??;
    }
    Ok(())
}
