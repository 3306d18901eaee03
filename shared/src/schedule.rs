//! When something is due again and again: a cron expression, in UTC or another time zone.

use std::str::FromStr;

use chrono::{DateTime, Offset as _, TimeZone, Utc};
use croner::Cron;
use croner::parser::CronParser;

use crate::time::Timestamp;

/// Changes of the clocks between two moments of an expression that names no hour.
const MOST_CHANGES: u32 = 20;

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
        self.next_in(now, &Utc)
    }

    /// The same where its hours are those of a time zone. A moment that the clocks leave out comes with the first one
    /// that there is after it, and one that they show twice comes once.
    pub fn next_in<Zone: TimeZone>(&self, now: Timestamp, zone: &Zone) -> Option<Timestamp> {
        // The expression knows whole seconds only, and would carry a fraction on.
        let now = DateTime::<Utc>::from_timestamp(now.0.div_euclid(1_000), 0)?.with_timezone(zone);
        let next = self.0.find_next_occurrence(&now, false).ok()?;
        Some(Timestamp(next.timestamp_millis()))
    }

    /// The same for an expression that names no hour: it goes on evenly through an hour that the clocks show twice.
    pub fn next_evenly_in<Zone: TimeZone>(&self, now: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let offset = |at: Timestamp| {
            let at = DateTime::<Utc>::from_timestamp(at.0.div_euclid(1_000), 0)?;
            Some(zone.offset_from_utc_datetime(&at.naive_utc()).fix())
        };
        let mut now = now;
        for _ in 0..MOST_CHANGES {
            let own = offset(now)?;
            let next = self.next_in(now, &own)?;
            if offset(next)? == own {
                return Some(next);
            }
            // The clocks change in between: from their change on, by what they show then. The last second before it is
            // found by halving.
            let (mut before, mut after) = (now.0.div_euclid(1_000), next.0.div_euclid(1_000));
            while after - before > 1 {
                let middle = before + (after - before) / 2;
                if offset(Timestamp(middle * 1_000))? == own { before = middle } else { after = middle }
            }
            let shown = offset(Timestamp(after * 1_000))?;
            let next = self.next_in(Timestamp(before * 1_000), &shown)?;
            if offset(next)? == shown {
                return Some(next);
            }
            now = Timestamp(after * 1_000);
        }
        None
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
