//! When something is due again and again: a cron expression, in UTC or another time zone.
//!
//! The expression is held against the days and times that clocks show, and what is found is put to a moment here: what
//! the clocks leave out and show twice is decided in one place. A search ends where the calendar has shown all that it
//! has, so that an expression costs at most some thousands of days, whatever it names.

use std::str::FromStr;

use chrono::{
    DateTime, Datelike as _, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime, Offset as _, TimeDelta, TimeZone,
    Timelike as _, Utc,
};
use croner::errors::CronError;
use croner::parser::CronParser;
use croner::{Cron, YEAR_UPPER_LIMIT};

use crate::time::Timestamp;

/// Every year of 365 days is back with the same weekdays after so many, at the latest: beside a century that has no leap
/// day. So is every part of a leap year but its February.
const COMMON_YEARS: usize = 12;
/// The same for a leap year.
const LEAP_YEARS: usize = 40;
/// Seconds of a day: clocks differ from UTC by less, and change by less at a time.
const DAY_S: i64 = 86_400;
const SECOND: TimeDelta = TimeDelta::seconds(1);

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
    /// The expression, as it was given.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The first moment after `now` that it names.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        self.next_in(now, &Utc)
    }

    /// The same where its times are those of a time zone. It lies after `now` whatever the clocks do: times that they leave
    /// out are together the first moment that there is after them, and one that they show twice is the earlier of both. An
    /// expression that names every hour goes by the time that passes instead: it has both of the latter and none of the
    /// former.
    pub fn next_in<Zone: TimeZone>(&self, now: Timestamp, zone: &Zone) -> Option<Timestamp> {
        // The expression knows whole seconds only.
        let now = now.0.div_euclid(1_000);
        let mut next = self.first_after(now, shown(zone, now)?, zone);
        // What the clocks are to show again comes before what they have not shown yet.
        if self.names_every_hour()
            && let Some(change) = next_set_back(zone, now)
        {
            let again = self.first_after(change - 1, shown(zone, change)? - SECOND, zone);
            next = next.into_iter().chain(again).min();
        }
        Some(Timestamp(next? * 1_000))
    }

    /// The first moment after `now` of the times that clocks show after `time`, in seconds.
    fn first_after<Zone: TimeZone>(&self, now: i64, mut time: NaiveDateTime, zone: &Zone) -> Option<i64> {
        loop {
            time = self.next_time(time)?;
            let moment = match zone.from_local_datetime(&time) {
                MappedLocalTime::Single(at) => at.timestamp(),
                MappedLocalTime::Ambiguous(one, other) => {
                    let (one, other) = (one.timestamp(), other.timestamp());
                    let is_second = self.names_every_hour() && one.min(other) <= now;
                    if is_second { one.max(other) } else { one.min(other) }
                }
                MappedLocalTime::None if self.names_every_hour() => continue,
                MappedLocalTime::None => first_beyond(zone, time),
            };
            if moment > now {
                return Some(moment);
            }
        }
    }

    /// The first time after `time` that it names, on clocks that nobody changes.
    fn next_time(&self, time: NaiveDateTime) -> Option<NaiveDateTime> {
        let begin = time.checked_add_signed(SECOND)?;
        let (today, first) = (begin.date(), self.time_from(NaiveTime::MIN)?);
        let rest = self.names_day(today).then(|| self.time_from(begin.time())).flatten();
        match rest {
            Some(time) => Some(today.and_time(time)),
            None => Some(self.next_day(today)?.and_time(first)),
        }
    }

    /// The first of its times of a day, from this one on.
    fn time_from(&self, from: NaiveTime) -> Option<NaiveTime> {
        let pattern = &self.0.pattern;
        for hour in (from.hour()..24).filter(|hour| is_named(pattern.hour_match(*hour))) {
            let is_first = hour == from.hour();
            let minute = if is_first { from.minute() } else { 0 };
            for minute in (minute..60).filter(|minute| is_named(pattern.minute_match(*minute))) {
                let second = if is_first && minute == from.minute() { from.second() } else { 0 };
                if let Some(second) = (second..60).find(|second| is_named(pattern.second_match(*second))) {
                    return NaiveTime::from_hms_opt(hour, minute, second);
                }
            }
        }
        None
    }

    /// The first of its days after this one. Later than it looks, the calendar has no year that it has not seen.
    fn next_day(&self, after: NaiveDate) -> Option<NaiveDate> {
        let pattern = &self.0.pattern;
        let begin = after.succ_opt()?;
        let years = (begin.year()..=YEAR_UPPER_LIMIT).filter(|year| is_named(pattern.year_match(*year)));
        for (n, year) in years.take(LEAP_YEARS + 1).enumerate() {
            let is_leap = NaiveDate::from_ymd_opt(year, 2, 29).is_some();
            for month in (1..=12).filter(|month| is_named(pattern.month_match(*month))) {
                let is_new = n <= COMMON_YEARS || (month == 2 && is_leap);
                if !is_new || (year, month) < (begin.year(), begin.month()) {
                    continue;
                }
                let mut days = (1..=31).map_while(|day| NaiveDate::from_ymd_opt(year, month, day));
                if let Some(day) = days.find(|day| *day >= begin && self.names_day(*day)) {
                    return Some(day);
                }
            }
        }
        None
    }

    fn names_day(&self, day: NaiveDate) -> bool {
        let (pattern, month) = (&self.0.pattern, day.month());
        is_named(pattern.month_match(month))
            && is_named(pattern.year_match(day.year()))
            && is_named(pattern.day_match(day.year(), month, day.day()))
    }

    /// So it says how often, not when.
    fn names_every_hour(&self) -> bool {
        self.0.pattern.hours.is_all_set()
    }
}

/// What does not exist is not named.
fn is_named(answer: Result<bool, CronError>) -> bool {
    matches!(answer, Ok(true))
}

fn in_utc(at: i64) -> Option<NaiveDateTime> {
    Some(DateTime::<Utc>::from_timestamp(at, 0)?.naive_utc())
}

/// What the clocks of a zone show at a second.
fn shown<Zone: TimeZone>(zone: &Zone, at: i64) -> Option<NaiveDateTime> {
    Some(zone.from_utc_datetime(&in_utc(at)?).naive_local())
}

/// The second in which clocks show a time or, where they leave it out, what comes after it.
fn first_beyond<Zone: TimeZone>(zone: &Zone, time: NaiveDateTime) -> i64 {
    let about = time.and_utc().timestamp();
    first_that(about - DAY_S, about + DAY_S, |at| shown(zone, at).is_some_and(|shown| shown >= time))
}

/// When the clocks of a zone are set back next, if that is in the day after `now`.
fn next_set_back<Zone: TimeZone>(zone: &Zone, now: i64) -> Option<i64> {
    let offset = |at| Some(zone.offset_from_utc_datetime(&in_utc(at)?).fix().local_minus_utc());
    let (own, end) = (offset(now)?, now + DAY_S);
    let is_set_back = |at| offset(at).is_some_and(|offset| offset < own);
    is_set_back(end).then(|| first_that(now, end, is_set_back))
}

/// The second from which on something is so, of those after `before`, in which it is not, up to `end`, in which it is.
fn first_that(before: i64, end: i64, is_so: impl Fn(i64) -> bool) -> i64 {
    let (mut before, mut end) = (before, end);
    while end - before > 1 {
        let middle = before + (end - before) / 2;
        if is_so(middle) { end = middle } else { before = middle }
    }
    end
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use chrono_tz::Tz;

    use super::*;

    const BERLIN: Tz = Tz::Europe__Berlin;
    const NEW_YORK: Tz = Tz::America__New_York;
    const SANTIAGO: Tz = Tz::America__Santiago;
    const CAIRO: Tz = Tz::Africa__Cairo;
    const LORD_HOWE: Tz = Tz::Australia__Lord_Howe;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_iso(&text.replace('Z', ":00Z")).unwrap()
    }

    /// The next two moments of an expression in a zone, to the minute.
    fn next_two(text: &str, zone: Tz, from: &str) -> [String; 2] {
        let schedule: Schedule = text.parse().unwrap();
        let first = schedule.next_in(at(from), &zone).unwrap();
        let second = schedule.next_in(first, &zone).unwrap();
        [first, second].map(|at| at.to_iso().replace(":00.000Z", "Z"))
    }

    #[test]
    fn the_next_moment_comes_after_now() {
        let next = |text: &str, now| text.parse::<Schedule>().unwrap().next_after(Timestamp(now)).unwrap().0;
        assert_eq!(next("*/15 * * * *", 0), 900_000);
        assert_eq!(next("*/15 * * * *", 899_999), 900_000);
        assert_eq!(next("*/15 * * * *", 900_000), 1_800_000);
        assert_eq!(next("30 2 * * *", 0), 9_000_000);
        assert_eq!(next("* * * * * *", 1_500), 2_000);
        for wrong in ["", "soon", "61 * * * *", "* * *", "0 0 30 2 *", ", * * * *", "0 0 , * *"] {
            assert!(wrong.parse::<Schedule>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_found_in_utc_is_what_the_parser_finds() {
        let starts =
            ["1999-12-31T23:59Z", "2026-02-28T12:34Z", "2072-03-01T00:00Z", "2089-11-30T06:00Z", "2090-10-14T00:00Z"];
        for text in [
            "*/20 5 * 1,7 1-5",
            "10 20 3,15 * * *",
            "59 59 23 31 12 *",
            "0 0 L * *",
            "0 9 15W * *",
            "0 9 1W,31W * *",
            "30 6 * * 5#3",
            "0 0 * * 5L",
            "0 0 13 * 5",
            "0 0 13 * +5",
            "0 0 29 2 *",
            // What comes once in many years, most of all where a century has no leap day.
            "0 9 13 10 +5",
            "0 0 1 1 +0",
            "0 0 L 2 +1",
            "0 0 29 2 +1",
            "0 0 29W 2 +5",
            "0 0 * 2 1#5",
            "0 0 0 1 6 * 2090-2100",
        ] {
            let schedule: Schedule = text.parse().unwrap();
            for start in starts {
                let start = at(start);
                let begin = DateTime::<Utc>::from_timestamp_millis(start.0).unwrap();
                let known = schedule.0.find_next_occurrence(&begin, false).unwrap();
                assert_eq!(schedule.next_after(start), Some(Timestamp(known.timestamp_millis())), "{text} {start}");
            }
        }
    }

    #[test]
    fn an_hour_that_clocks_show_twice_has_each_time_once() {
        // At 3:00 the clocks of Berlin go back to 2:00, which is 1:00 UTC.
        for (text, first, second) in [
            ("30 2 * * *", "2026-10-25T00:30Z", "2026-10-26T01:30Z"),
            ("*/15 2 * * *", "2026-10-25T00:30Z", "2026-10-25T00:45Z"),
            ("20 */2 * * *", "2026-10-25T03:20Z", "2026-10-25T05:20Z"),
            ("0 3 * * *", "2026-10-25T02:00Z", "2026-10-26T02:00Z"),
        ] {
            assert_eq!(next_two(text, BERLIN, "2026-10-25T00:20Z"), [first, second], "{text}");
        }
        for (text, first, second) in [
            ("30 2 * * *", "2026-10-26T01:30Z", "2026-10-27T01:30Z"),
            ("*/15 2 * * *", "2026-10-26T01:00Z", "2026-10-26T01:15Z"),
            ("20 */2 * * *", "2026-10-25T03:20Z", "2026-10-25T05:20Z"),
        ] {
            assert_eq!(next_two(text, BERLIN, "2026-10-25T01:05Z"), [first, second], "{text}");
        }
        assert_eq!(next_two("30 1 * * *", NEW_YORK, "2026-11-01T05:00Z"), ["2026-11-01T05:30Z", "2026-11-02T06:30Z"]);
        assert_eq!(next_two("30 1 * * *", NEW_YORK, "2026-11-01T06:05Z"), ["2026-11-02T06:30Z", "2026-11-03T06:30Z"]);
        // Half an hour, and an hour before midnight, which is the day before.
        assert_eq!(next_two("45 1 * * *", LORD_HOWE, "2026-04-04T14:50Z"), ["2026-04-05T15:15Z", "2026-04-06T15:15Z"]);
        assert_eq!(next_two("30 23 3 4 *", SANTIAGO, "2027-04-04T02:10Z"), ["2027-04-04T02:30Z", "2028-04-04T03:30Z"]);
    }

    #[test]
    fn every_so_many_minutes_go_on_through_an_hour_that_clocks_show_twice() {
        for text in ["*/30 * * * *", "*/30 0-23 * * *", "*/30 */1 * * *"] {
            assert_eq!(
                next_two(text, BERLIN, "2026-10-25T00:40Z"),
                ["2026-10-25T01:00Z", "2026-10-25T01:30Z"],
                "{text}"
            );
            assert_eq!(
                next_two(text, BERLIN, "2026-10-25T01:05Z"),
                ["2026-10-25T01:30Z", "2026-10-25T02:00Z"],
                "{text}"
            );
            assert_eq!(
                next_two(text, BERLIN, "2026-03-29T00:40Z"),
                ["2026-03-29T01:00Z", "2026-03-29T01:30Z"],
                "{text}"
            );
        }
        assert_eq!(next_two("10 * * * *", NEW_YORK, "2026-11-01T05:20Z"), ["2026-11-01T06:10Z", "2026-11-01T07:10Z"]);
        assert_eq!(next_two("40 * * * *", LORD_HOWE, "2026-04-04T14:50Z"), ["2026-04-04T15:10Z", "2026-04-04T16:10Z"]);
        assert_eq!(next_two("10 * * * *", CAIRO, "2026-10-29T20:30Z"), ["2026-10-29T21:10Z", "2026-10-29T22:10Z"]);
    }

    #[test]
    fn times_that_clocks_leave_out_are_the_first_moment_after_them() {
        for (text, zone, from, first, second) in [
            ("30 2 * * *", BERLIN, "2026-03-28T12:00Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"),
            ("*/15 2 * * *", BERLIN, "2026-03-28T12:00Z", "2026-03-29T01:00Z", "2026-03-30T00:00Z"),
            ("0,30 2,14 * * *", BERLIN, "2026-03-28T14:00Z", "2026-03-29T01:00Z", "2026-03-29T12:00Z"),
            ("0,30 2,3 * * *", BERLIN, "2026-03-28T12:00Z", "2026-03-29T01:00Z", "2026-03-29T01:30Z"),
            ("30 2 * * *", NEW_YORK, "2026-03-08T00:00Z", "2026-03-08T07:00Z", "2026-03-09T06:30Z"),
            ("15 2 * * *", LORD_HOWE, "2026-10-03T12:00Z", "2026-10-03T15:30Z", "2026-10-04T15:15Z"),
            ("0 0 * * *", SANTIAGO, "2026-09-05T12:00Z", "2026-09-06T04:00Z", "2026-09-07T03:00Z"),
            ("30 0 * * 5", CAIRO, "2027-04-29T12:00Z", "2027-04-29T22:00Z", "2027-05-06T21:30Z"),
            // Clocks that go on at midnight leave out nothing of these.
            ("0 9 * * *", SANTIAGO, "2026-09-05T14:00Z", "2026-09-06T12:00Z", "2026-09-07T12:00Z"),
            ("30 9 * * *", SANTIAGO, "2026-09-05T14:00Z", "2026-09-06T12:30Z", "2026-09-07T12:30Z"),
            ("0 9 * * *", CAIRO, "2027-04-29T12:00Z", "2027-04-30T06:00Z", "2027-05-01T06:00Z"),
            ("0 9 * * *", Tz::America__Havana, "2027-03-13T15:00Z", "2027-03-14T13:00Z", "2027-03-15T13:00Z"),
            ("0 9 * * *", Tz::Asia__Beirut, "2027-03-27T12:00Z", "2027-03-28T06:00Z", "2027-03-29T06:00Z"),
        ] {
            assert_eq!(next_two(text, zone, from), [first, second], "{text} {zone}");
        }
    }

    /// Minute by minute, by what clocks show.
    #[test]
    fn nothing_is_left_out_and_nothing_comes_twice_around_changes_of_clocks() {
        const EXPRESSIONS: [&str; 12] = [
            "30 2 * * *",
            "*/15 2 * * *",
            "0,30 2,14 * * *",
            "30 9 * * *",
            "*/30 0-23 * * *",
            "*/15 * * * *",
            "10 * * * *",
            "20 */2 * * *",
            "0 0 * * *",
            "5,35 23,0,1 * * *",
            "45 1 * * 0",
            "*/20 1-3 * * *",
        ];
        for (zone, change) in [
            (Tz::UTC, "2026-03-29T01:00Z"),
            (BERLIN, "2026-03-29T01:00Z"),
            (BERLIN, "2026-10-25T01:00Z"),
            (NEW_YORK, "2026-03-08T07:00Z"),
            (NEW_YORK, "2026-11-01T06:00Z"),
            (SANTIAGO, "2026-09-06T04:00Z"),
            (SANTIAGO, "2027-04-04T03:00Z"),
            (CAIRO, "2027-04-29T22:00Z"),
            (CAIRO, "2026-10-29T21:00Z"),
            (LORD_HOWE, "2026-10-03T15:30Z"),
            (LORD_HOWE, "2026-04-04T15:00Z"),
            (Tz::Antarctica__Troll, "2026-10-25T01:00Z"),
        ] {
            let change = at(change).0 / 1_000;
            let (begin, end) = (change - DAY_S, change + DAY_S);
            let clocks: Vec<_> = (begin..=end).step_by(60).map(|at| (at, shown(&zone, at).unwrap())).collect();
            let (first, last) = (clocks[0].1, clocks[clocks.len() - 1].1);
            for text in EXPRESSIONS {
                let schedule: Schedule = text.parse().unwrap();
                let is_named = |time: &NaiveDateTime| schedule.0.is_time_matching(&time.and_utc()).unwrap();
                let mut known: Vec<i64> = match schedule.names_every_hour() {
                    true => clocks.iter().filter(|(_, time)| is_named(time)).map(|(at, _)| *at).collect(),
                    false => (0..)
                        .map(|minutes| first + TimeDelta::minutes(minutes))
                        .take_while(|time| *time <= last)
                        .filter(is_named)
                        .map(|time| clocks.iter().find(|(_, shown)| *shown >= time).unwrap().0)
                        .collect(),
                };
                known.dedup();
                let next = |now: i64| schedule.next_in(Timestamp(now * 1_000 + 999), &zone).unwrap().0 / 1_000;
                let mut found = Vec::new();
                let mut last = next(begin - 1);
                while last <= end {
                    found.push(last);
                    last = next(last);
                }
                assert_eq!(found, known, "{text} {zone}");
                for now in (begin..end).step_by(2_221) {
                    let next = next(now);
                    match known.iter().find(|at| **at > now) {
                        Some(known) => assert_eq!(next, *known, "{text} {zone} after {now}"),
                        None => assert!(next > end, "{text} {zone} after {now}"),
                    }
                }
            }
        }
    }
}
