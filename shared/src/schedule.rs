//! When something is due again and again: a cron expression, in UTC.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use croner::Cron;
use croner::parser::CronParser;

use crate::time::Timestamp;

/// A cron expression of five fields, or six with seconds first.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule(Cron);

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cron = CronParser::new().parse(text).map_err(|e| e.to_string())?;
        let schedule = Self(cron);
        // An expression may name a day that never comes, such as the 30th of February.
        if schedule.next_after(Timestamp(0)).is_none() {
            return Err("it is never due".to_owned());
        }
        Ok(schedule)
    }
}

impl Schedule {
    /// The first moment after `now` that it names.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        // The expression knows whole seconds only, and would carry a fraction on.
        let now = DateTime::<Utc>::from_timestamp(now.0.div_euclid(1_000), 0)?;
        let next = self.0.find_next_occurrence(&now, false).ok()?;
        Some(Timestamp(next.timestamp_millis()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_next_moment_comes_after_now() {
        let next = |text: &str, now| text.parse::<Schedule>().unwrap().next_after(Timestamp(now)).unwrap().0;
        assert_eq!(next("*/15 * * * *", 0), 900_000);
        assert_eq!(next("*/15 * * * *", 899_999), 900_000);
        assert_eq!(next("*/15 * * * *", 900_000), 1_800_000);
        assert_eq!(next("30 2 * * *", 0), 9_000_000);
        assert_eq!(next("* * * * * *", 1_500), 2_000);
        for wrong in ["", "soon", "61 * * * *", "* * *", "0 0 30 2 *"] {
            assert!(wrong.parse::<Schedule>().is_err(), "{wrong}");
        }
    }
}
