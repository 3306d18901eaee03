//! Connections to Postgres that stay out of their pool between the statements that are asked most while somebody waits:
//! those of each page of a scrape, and those that read documents. Of a connection that comes back to it the pool asks
//! every time whether it still answers, which is 4 % of a scrape and a tenth of a status that is read.

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

/// Of a pool's connections one of so many may be kept out of it, at least one: others wait for the rest.
const SHARE: usize = 4;

/// The place of such connections, the one used last on top: its caches are warm. A clone is the same place.
#[derive(Debug, Default, Clone)]
pub struct Kept(Arc<Mutex<Vec<Lent>>>);

/// A connection while it is used. Dropped, which is where its statement failed or nobody waits for it any more, it goes
/// back to the pool, which finds out whether it can be used.
#[derive(Debug)]
pub struct Lent {
    connection: PoolConnection<Postgres>,
    taken: Instant,
    rested: Instant,
}

impl Kept {
    /// One that is kept, or another one of the pool while those are in use.
    pub async fn take(&self, pool: &PgPool) -> sqlx::Result<Lent> {
        let kept = self.lock().pop();
        if let Some(mut lent) = kept {
            if is_there(&mut lent.connection, lent.rested.elapsed()).await.is_ok() {
                return Ok(lent);
            }
            // Those that rest beside it have most likely died with it, and each would be found out by a wait of its
            // own. They do not go back: of the pool's question nobody knows when it would end.
            let others = std::mem::take(&mut *self.lock());
            for lost in others.into_iter().chain([lent]) {
                drop(lost.connection.detach());
            }
        }
        // In a box, as where a transaction begins.
        let (connection, now) = (Box::pin(pool.acquire()).await?, clock::instant());
        Ok(Lent { connection, taken: now, rested: now })
    }

    /// Keeps one whose statement was answered to the end of the answer. Others want the only one of a pool.
    pub fn keep(&self, pool: &PgPool, mut lent: Lent) {
        let most = pool.options().get_max_connections() as usize;
        if most < 2 || lent.taken.elapsed() > COMES_BACK {
            return;
        }
        lent.connection.shrink_buffers();
        lent.rested = clock::instant();
        let mut kept = self.lock();
        // Asked with the place in hand: what is put there before the pool is closed comes back with the others.
        if pool.is_closed() {
            return;
        }
        kept.push(lent);
        // The one that has rested longest goes back.
        let last = (kept.len() > (most / SHARE).max(1)).then(|| kept.remove(0));
        drop(kept);
        drop(last);
    }

    /// Gives them back to a pool that is closed.
    pub fn give_back(&self) {
        drop(std::mem::take(&mut *self.lock()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Lent>> {
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
