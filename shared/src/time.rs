//! Wall-clock time as the rows and the wire have it: milliseconds since 1970 UTC. What time it is, [`crate::clock`] knows.

use std::fmt;

use chrono::{DateTime, Datelike as _, Months, NaiveTime, SecondsFormat, Utc};

/// A point in time, milliseconds since 1970-01-01 UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, sqlx::Type,
)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This many milliseconds later; saturates.
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this time; 0 when it lies after.
    pub fn ms_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0).max(0)
    }

    /// The same day and time of the next calendar month, UTC; for a month's first moment, the next one's.
    pub fn plus_month(self) -> Self {
        let later = DateTime::<Utc>::from_timestamp_millis(self.0).and_then(|at| at.checked_add_months(Months::new(1)));
        later.map_or(self, |at| Self(at.timestamp_millis()))
    }

    /// The first moment of its calendar month, UTC.
    pub fn month_start(self) -> Self {
        let day = DateTime::<Utc>::from_timestamp_millis(self.0).and_then(|at| at.with_day(1));
        day.and_then(|day| day.with_time(NaiveTime::MIN).single()).map_or(self, |at| Self(at.timestamp_millis()))
    }

    /// Reads a time of ISO 8601 with its zone. `None`: it is none.
    pub fn from_iso(text: &str) -> Option<Self> {
        DateTime::parse_from_rfc3339(text.trim()).ok().map(|at| Self(at.timestamp_millis()))
    }

    /// ISO 8601 UTC with milliseconds and `Z` (wire 1).
    pub fn to_iso(self) -> String {
        DateTime::<Utc>::from_timestamp_millis(self.0)
            .unwrap_or(DateTime::<Utc>::MIN_UTC)
            .to_rfc3339_opts(SecondsFormat::Millis, true)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_iso())
    }
}
