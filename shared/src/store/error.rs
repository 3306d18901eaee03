//! How a function of the store fails.

/// What can go wrong between us and the database. "Not found" is `Option`, not an error.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A unique key is taken.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The database is away, full, locked or broken; the same call may work later.
    #[error("the database is unavailable: {0}")]
    Unavailable(sqlx::Error),
    /// A row holds what it must not.
    #[error("corrupt row: {0}")]
    Corrupt(String),
    /// The place of the blobs does not answer; the same call may work later.
    #[error("the blobs are unavailable: {0}")]
    BlobsAway(std::io::Error),
    /// This one document cannot be read any more: its blob is gone or damaged.
    #[error("a lost document: {0}")]
    Lost(String),
}

impl StoreError {
    /// Postgres refused to wait longer for somebody else's lock; nothing of the transaction was done.
    pub fn is_lock_wait(&self) -> bool {
        const LOCK_NOT_AVAILABLE: &str = "55P03";
        let Self::Unavailable(sqlx::Error::Database(error)) = self else { return false };
        error.code().is_some_and(|code| code == LOCK_NOT_AVAILABLE)
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(e) if e.is_unique_violation() => Self::Conflict(e.message().to_owned()),
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => Self::Corrupt(error.to_string()),
            _ => Self::Unavailable(error),
        }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Corrupt(error.to_string())
    }
}

/// Result of a store function.
pub type StoreResult<T> = Result<T, StoreError>;
