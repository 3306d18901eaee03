//! Why Postgres gives no connection. A pool tries again by itself where the server has none to spare or starts up, and says in
//! the end only that it has waited. So where somebody waited in vain the server is asked by one connection outside of the pool,
//! and the log tells what it said, once a minute at most.

use std::time::Duration;

use futures_util::FutureExt as _;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool};
use tokio::sync::Notify;

/// Bound on one try.
const TRY: Duration = Duration::from_secs(5);
/// What is wrong is told this often.
const TELL: Duration = Duration::from_secs(60);

/// Somebody has waited for a connection in vain. A process has one database.
static IN_VAIN: Notify = Notify::const_new();

/// Notes that a pool gave no connection in time.
pub(super) fn noticed() {
    IN_VAIN.notify_one();
}

/// Tells why, until the pool is closed.
pub(crate) fn tell(pool: &PgPool) {
    let pool = pool.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = IN_VAIN.notified() => {}
                () = pool.close_event() => return,
            }
            let why = reason(&pool.connect_options()).await;
            tracing::error!(
                why,
                connections = pool.size(),
                idle = pool.num_idle(),
                "no connection to Postgres could be had"
            );
            tokio::select! {
                () = tokio::time::sleep(TELL) => {}
                () = pool.close_event() => return,
            }
            // What was noticed meanwhile is told already.
            let _ = IN_VAIN.notified().now_or_never();
        }
    });
}

/// What the server says to one more connection.
async fn reason(options: &PgConnectOptions) -> String {
    match tokio::time::timeout(TRY, PgConnection::connect_with(options)).await {
        Ok(Ok(connection)) => {
            let _ = tokio::time::timeout(TRY, connection.close()).await;
            "the server has one to spare: all of this process's are in use".to_owned()
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the server does not answer".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::DatabaseUrl;
    use crate::store::testing::refusing;

    #[tokio::test]
    async fn what_the_server_says_is_told() {
        let DatabaseUrl::Postgres(text) = refusing("53300").await else { unreachable!("it is Postgres's") };
        let why = reason(&text.parse().unwrap()).await;
        assert!(why.contains("refused by the test"), "{why}");
    }

    #[tokio::test]
    async fn a_pool_that_gives_none_in_time_is_noticed() {
        // Pools of other tests may hear of it first, each once.
        let again_and_again = async {
            loop {
                drop(crate::store::StoreError::from(sqlx::Error::PoolTimedOut));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let noticed = async {
            tokio::select! {
                () = IN_VAIN.notified() => {}
                () = again_and_again => {}
            }
        };
        tokio::time::timeout(Duration::from_secs(60), noticed).await.unwrap();
    }
}
