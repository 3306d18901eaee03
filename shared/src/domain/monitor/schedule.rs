//! When a monitor looks: by a cron expression of five fields or by words, in a time zone.
//!
//! Words that name no minute leave it to us: the minute, and the second in it, come from the monitor's id, so that those
//! of an installation do not all begin at once, and each keeps its own.

use chrono_tz::Tz;
use sha2::{Digest as _, Sha256};

use crate::domain::validation::Fields;
use crate::ids::MonitorId;
use crate::schedule::Schedule;
use crate::time::Timestamp;

/// Least time between two checks, milliseconds.
const LEAST_MS: i64 = 300_000;
/// Moments that are looked at for it: those of one day, if it is due every five minutes. And no later ones than this, in
/// milliseconds since 1970: four years have a leap day.
const LOOKED_AT: usize = 290;
const LOOKED_UNTIL: Timestamp = Timestamp(4 * 366 * 86_400_000);
/// What a month is for estimates, milliseconds: 30 days.
const MONTH_MS: i64 = 30 * 86_400_000;
/// Longest expression and longest words, characters.
const MAX_TEXT: i64 = 256;

/// When to look, as a caller says it.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    when: When,
    timezone: String,
}

#[derive(Debug, Clone, PartialEq)]
enum When {
    Cron(String),
    /// Every so many minutes, which divide an hour; with the minute to begin at.
    Minutes(u32, Option<u32>),
    /// Every so many hours, which divide a day.
    Hours(u32),
    /// Once a day; at this hour and minute.
    Daily(Option<(u32, u32)>),
    Weekly,
}

/// When a monitor looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    pub cron: String,
    pub timezone: String,
    /// Milliseconds after the moments of the expression.
    pub spread_ms: i64,
}

/// [`Timing`], ready to be asked.
#[derive(Debug, Clone)]
pub struct Clockwork {
    schedule: Schedule,
    zone: Tz,
    spread_ms: i64,
}

impl Wanted {
    /// Reads `schedule`: `cron` or `text`, and `timezone`.
    pub fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        let nested = fields.object("schedule")?;
        let mut schedule = nested.nulls_are_absent();
        let cron = schedule.text("cron", 1..=MAX_TEXT);
        let text = schedule.text("text", 1..=MAX_TEXT);
        let timezone = schedule.text("timezone", 1..=MAX_TEXT).unwrap_or("UTC").to_owned();
        if timezone.parse::<Tz>().is_err() {
            let message = "timezone must be a name of the IANA time zone database, such as Europe/Berlin";
            schedule.issues.rule(schedule.path_of("timezone"), message);
        }
        let when = match (cron, text) {
            (Some(cron), None) => Some(("cron", check_cron(cron))),
            (None, Some(text)) => Some(("text", read_words(text))),
            _ => None,
        };
        let when = match when {
            Some((_, Ok(when))) => Some(when),
            Some((name, Err(message))) => {
                schedule.issues.rule(schedule.path_of(name), message);
                None
            }
            None => {
                schedule.issues.rule(schedule.path_of("cron"), "schedule takes exactly one of cron and text");
                None
            }
        };
        schedule.finish();
        Some(Self { when: when?, timezone })
    }

    /// The same for one monitor.
    pub fn of(&self, id: MonitorId) -> Timing {
        let digest = Sha256::digest(id.0.as_bytes());
        let number = |at: usize, below: u32| {
            u32::from_be_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]]) % below
        };
        let minute = number(0, 60);
        let seconds_ms = i64::from(number(4, 60_000));
        let (cron, spread_ms) = match &self.when {
            When::Cron(cron) => (cron.clone(), 0),
            When::Minutes(every, None) => (every_minutes(*every, minute), seconds_ms),
            When::Minutes(every, Some(start)) => (every_minutes(*every, *start), 0),
            When::Hours(1) => (format!("{minute} * * * *"), seconds_ms),
            When::Hours(24) | When::Daily(None) => (format!("{minute} 0 * * *"), seconds_ms),
            When::Hours(every) => (format!("{minute} */{every} * * *"), seconds_ms),
            When::Daily(Some((hour, minute))) => (format!("{minute} {hour} * * *"), 0),
            When::Weekly => (format!("{minute} 0 * * 0"), seconds_ms),
        };
        Timing { cron, timezone: self.timezone.clone(), spread_ms }
    }
}

fn every_minutes(every: u32, start: u32) -> String {
    match start % every {
        0 => format!("*/{every} * * * *"),
        start => format!("{start}-59/{every} * * * *"),
    }
}

/// An expression of five fields that is not due too often.
fn check_cron(text: &str) -> Result<When, String> {
    if text.split_whitespace().count() != 5 {
        return Err("cron must have five fields: minute, hour, day of the month, month, day of the week".to_owned());
    }
    let schedule: Schedule = text.parse().map_err(|error| format!("cron is not valid: {error}"))?;
    let mut last = None;
    for _ in 0..LOOKED_AT {
        let next = schedule.next_after(last.unwrap_or(Timestamp(0))).filter(|next| *next < LOOKED_UNTIL);
        let Some(next) = next else { break };
        if last.is_some_and(|last| next.ms_since(last) < LEAST_MS) {
            return Err(TOO_OFTEN.to_owned());
        }
        last = Some(next);
    }
    Ok(When::Cron(text.split_whitespace().collect::<Vec<_>>().join(" ")))
}

const TOO_OFTEN: &str = "the shortest interval of a monitor is 5 minutes";
const UNKNOWN: &str = "text must be one of: every N minutes, every N minutes starting at :MM, hourly, every N hours, daily, \
    daily at 9:00 (9am, 5:30 PM), weekly; or give a cron expression";

fn read_words(text: &str) -> Result<When, String> {
    let lower = text.trim().to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    match words.as_slice() {
        ["hourly"] | ["every", "hour"] => Ok(When::Hours(1)),
        ["daily"] | ["every", "day"] => Ok(When::Daily(None)),
        ["weekly"] | ["every", "week"] => Ok(When::Weekly),
        ["daily", "at", time @ ..] | ["every", "day", "at", time @ ..] => {
            let time = read_time(&time.concat()).ok_or("daily at: a time such as 9:00, 9am or 5:30 PM")?;
            Ok(When::Daily(Some(time)))
        }
        ["every", "minute"] => Err(TOO_OFTEN.to_owned()),
        ["every", number, "minutes" | "minute" | "mins" | "min"] => minutes(number, None),
        ["every", number, "minutes" | "minute" | "mins" | "min", "starting", "at", start] => {
            let start = start.strip_prefix(':').and_then(|start| start.parse().ok()).filter(|start| *start < 60);
            minutes(number, Some(start.ok_or("starting at: a minute of the hour such as :05")?))
        }
        ["every", number, "hours" | "hour" | "h"] => hours(number.parse().map_err(|_| UNKNOWN)?),
        _ => Err(UNKNOWN.to_owned()),
    }
}

fn minutes(number: &str, start: Option<u32>) -> Result<When, String> {
    let every: u32 = number.parse().map_err(|_| UNKNOWN)?;
    match every {
        0..5 => Err(TOO_OFTEN.to_owned()),
        _ if every < 60 && 60 % every == 0 => Ok(When::Minutes(every, start)),
        60 if start.is_some() => Err("every 60 minutes: give a cron expression to choose the minute".to_owned()),
        _ if every.is_multiple_of(60) && start.is_none() => hours(every / 60),
        _ => Err(format!(
            "every {every} minutes does not divide an hour evenly: 5, 6, 10, 12, 15, 20 and 30 do, or whole hours; or give a \
             cron expression"
        )),
    }
}

fn hours(every: u32) -> Result<When, String> {
    match every {
        1..=24 if 24 % every == 0 => Ok(When::Hours(every)),
        _ => Err(format!("every {every} hours does not divide a day evenly: 1, 2, 3, 4, 6, 8, 12 and 24 do")),
    }
}

/// Hour and minute of `9:00`, `17:30`, `9am`, `5:30pm`.
fn read_time(text: &str) -> Option<(u32, u32)> {
    let (clock, half) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(clock), _) => (clock, Some(0)),
        (_, Some(clock)) => (clock, Some(12)),
        _ => (text, None),
    };
    let (hour, minute) = match clock.split_once(':') {
        Some((hour, minute)) if minute.len() == 2 => (hour, minute.parse().ok()?),
        Some(_) => return None,
        None => (half.map(|_| clock)?, 0),
    };
    let hour: u32 = hour.parse().ok()?;
    let hour = match half {
        Some(add) if (1..=12).contains(&hour) => hour % 12 + add,
        Some(_) => return None,
        None => hour,
    };
    (hour < 24 && minute < 60).then_some((hour, minute))
}

impl Timing {
    /// Makes it ready.
    ///
    /// # Errors
    /// When the row holds what this build cannot read.
    pub fn clockwork(&self) -> Result<Clockwork, String> {
        let zone = self.timezone.parse().map_err(|_| format!("{} is no time zone", self.timezone))?;
        Ok(Clockwork { schedule: self.cron.parse()?, zone, spread_ms: self.spread_ms })
    }
}

impl Clockwork {
    /// When it is due next, after `now`. However long nobody has looked, it is one check that is due.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let next = self.schedule.next_in(now.plus_ms(-self.spread_ms), &self.zone)?;
        Some(next.plus_ms(self.spread_ms))
    }

    /// Checks in 30 days, about.
    pub fn runs_a_month(&self, now: Timestamp) -> i64 {
        let (mut runs, mut last) = (0, now);
        while runs < LOOKED_AT as i64
            && let Some(next) = self.next_after(last).filter(|next| next.ms_since(now) <= MONTH_MS)
        {
            runs += 1;
            last = next;
        }
        let seen = last.ms_since(now);
        if runs < LOOKED_AT as i64 { runs } else { runs * MONTH_MS / seen.max(1) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::collections::HashSet;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::clock::Stopwatch;
    use crate::domain::validation::{Issues, ValidationError};

    fn read(schedule: Value) -> Result<Wanted, ValidationError> {
        let body = json!({"schedule": schedule});
        let mut issues = Issues::default();
        let mut fields = Fields::open(&body, Vec::new(), &mut issues).unwrap();
        let wanted = Wanted::read(&mut fields);
        issues.into_result()?;
        Ok(wanted.unwrap())
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::from_iso(text).unwrap()
    }

    /// The next moments of an expression in a zone.
    fn next(cron: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let timing = Timing { cron: cron.into(), timezone: zone.into(), spread_ms: 0 };
        let clockwork = timing.clockwork().unwrap();
        let mut now = at(from);
        let mut found = Vec::new();
        for _ in 0..count {
            now = clockwork.next_after(now).unwrap();
            found.push(now.to_iso().replace(":00.000Z", "Z"));
        }
        found
    }

    #[test]
    fn words_become_expressions() {
        let id = MonitorId::new();
        let of = |text: &str| read(json!({"text": text})).unwrap().of(id);
        for (text, cron) in [
            ("daily at 9:00", "0 9 * * *"),
            ("Daily at 9am", "0 9 * * *"),
            ("daily at 5:30 PM", "30 17 * * *"),
            ("daily at 12am", "0 0 * * *"),
            ("every day at 12:15 pm", "15 12 * * *"),
            ("every 15 minutes starting at :05", "5-59/15 * * * *"),
            ("every 30 minutes starting at :30", "*/30 * * * *"),
        ] {
            assert_eq!(of(text), Timing { cron: cron.into(), timezone: "UTC".into(), spread_ms: 0 }, "{text}");
        }
        for (text, period) in [
            ("every 5 minutes", 5),
            ("every 30 mins", 30),
            ("every 60 minutes", 60),
            ("hourly", 60),
            ("every 2 hours", 120),
            ("every 120 minutes", 120),
            ("every 24 hours", 1_440),
            ("daily", 1_440),
            ("weekly", 10_080),
        ] {
            let clockwork = of(text).clockwork().unwrap();
            let first = clockwork.next_after(Timestamp(0)).unwrap();
            let second = clockwork.next_after(first).unwrap();
            assert_eq!(second.ms_since(first), period * 60_000, "{text}");
            assert!(of(text).spread_ms < 60_000);
            assert_eq!(of(text), of(text), "not by chance");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (schedule, words) in [
            (json!({}), "exactly one"),
            (json!({"cron": "0 9 * * *", "text": "daily"}), "exactly one"),
            (json!({"cron": "* * * * *"}), "5 minutes"),
            (json!({"cron": "0,3 9 1 1 *"}), "5 minutes"),
            (json!({"cron": "0,59 8,9 * * *"}), "5 minutes"),
            (json!({"cron": "0,58 0,23 28,29 2 *"}), "5 minutes"),
            (json!({"cron": "0 0 9 * * *"}), "five fields"),
            (json!({"cron": "@daily"}), "five fields"),
            (json!({"cron": "61 * * * *"}), "not valid"),
            (json!({"cron": "0 0 30 2 *"}), "never due"),
            (json!({"text": "every minute"}), "5 minutes"),
            (json!({"text": "every 4 minutes"}), "5 minutes"),
            (json!({"text": "every 7 minutes"}), "evenly"),
            (json!({"text": "every 5 hours"}), "evenly"),
            (json!({"text": "every 15 minutes starting at :60"}), "minute of the hour"),
            (json!({"text": "daily at 25:00"}), "such as 9:00"),
            (json!({"text": "daily at 9"}), "such as 9:00"),
            (json!({"text": "daily at 13pm"}), "such as 9:00"),
            (json!({"text": "when it rains"}), "must be one of"),
            (json!({"text": "daily", "timezone": "Mars/Olympus"}), "IANA"),
            (json!({"text": "daily", "zone": "UTC"}), "Unrecognized"),
        ] {
            let error = read(schedule.clone()).unwrap_err();
            assert!(error.issues.iter().any(|issue| issue.message.contains(words)), "{schedule}: {:?}", error.issues);
        }
        for cron in ["*/5 * * * *", "0 9 * * MON-FRI", "  0   9 1 * *  ", "55,0 * * * *", "0,58 0,22 28,29 2 *"] {
            assert!(read(json!({"cron": cron, "timezone": "Europe/Berlin"})).is_ok(), "{cron}");
        }
    }

    #[test]
    fn hours_are_those_of_the_time_zone_through_its_changes() {
        let berlin = next("0 9 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3);
        assert_eq!(berlin, ["2026-03-28T08:00Z", "2026-03-29T07:00Z", "2026-03-30T07:00Z"]);
        let autumn = next("0 9 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z", 2);
        assert_eq!(autumn, ["2026-10-24T07:00Z", "2026-10-25T08:00Z"]);
        // 2:30 does not come on the day on which the clocks go on, and comes twice when they go back.
        let gap = next("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
        assert_eq!(gap, ["2026-03-29T01:00Z", "2026-03-30T00:30Z"]);
        let twice = next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
        assert_eq!(twice, ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]);
        // Steps go on evenly.
        let steps = next("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:20:00Z", 4);
        assert_eq!(steps, ["2026-10-25T00:30Z", "2026-10-25T01:00Z", "2026-10-25T01:30Z", "2026-10-25T02:00Z"]);
        let spring = next("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:20:00Z", 3);
        assert_eq!(spring, ["2026-03-29T00:30Z", "2026-03-29T01:00Z", "2026-03-29T01:30Z"]);
        let island = next("10 * * * *", "Australia/Lord_Howe", "2026-04-04T13:00:00Z", 4);
        assert_eq!(island, ["2026-04-04T13:10Z", "2026-04-04T14:10Z", "2026-04-04T15:40Z", "2026-04-04T16:40Z"]);
        let half = next("0 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", 1);
        assert_eq!(half, ["2026-01-01T03:30Z"]);
    }

    /// Callers wait for each other where one of these takes long, in the API and in the worker that moves monitors on.
    #[test]
    fn what_is_never_due_or_once_in_forty_years_is_known_soon() {
        let begun = Stopwatch::start();
        for _ in 0..5 {
            for cron in [
                "0 0 29 2 +1#1",
                "0 0 31 2,4,6,9,11 +0#5",
                "1 1 1 1 +1#2",
                "0 0 31 2,4,6 *",
                "0 0 31 * +0#1,1#1,2#1,3#1,4#1,5#1,6#1",
                "0 0 30W 2 *",
                ", * * * *",
            ] {
                let error = read(json!({"cron": cron})).unwrap_err();
                assert!(error.issues.iter().any(|issue| issue.message.contains("never due")), "{cron}: {error:?}");
            }
            let rare = read(json!({"cron": "0 0 29 2 +1", "timezone": "Asia/Kolkata"})).unwrap();
            let clockwork = rare.of(MonitorId::new()).clockwork().unwrap();
            let next = clockwork.next_after(at("2072-03-01T00:00:00Z")).unwrap();
            assert_eq!(next.to_iso(), "2112-02-28T18:30:00.000Z");
            assert_eq!(clockwork.runs_a_month(at("2026-01-01T00:00:00Z")), 0);
            assert!(read(json!({"cron": "0 0 29 2 *"})).is_ok());
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    #[test]
    fn monitors_made_in_an_hour_that_comes_twice_are_due_after_it_began() {
        let now = at("2026-10-25T01:05:00Z");
        for text in ["every 2 hours", "every 6 hours", "hourly", "daily", "daily at 2:30", "every 30 minutes", "weekly"]
        {
            let wanted = read(json!({"text": text, "timezone": "Europe/Berlin"})).unwrap();
            let clockwork = wanted.of(MonitorId::new()).clockwork().unwrap();
            let next = clockwork.next_after(now).unwrap();
            assert!(next > now, "{text}: {next}");
            assert!(clockwork.next_after(next).unwrap() > next, "{text}");
        }
    }

    #[test]
    fn monitors_of_an_installation_are_spread_over_their_period() {
        let wanted = read(json!({"text": "every 30 minutes"})).unwrap();
        let moments: HashSet<_> = (0..300)
            .map(|_| wanted.of(MonitorId::new()).clockwork().unwrap().next_after(at("2026-01-01T00:00:00Z")).unwrap())
            .collect();
        assert!(moments.len() > 250, "{}", moments.len());
        let minutes: HashSet<_> = moments.iter().map(|at| at.0 / 60_000 % 30).collect();
        assert!(minutes.len() > 25, "{}", minutes.len());
        // An expression is taken at its word.
        let wanted = read(json!({"cron": "0 9 * * *"})).unwrap();
        assert_eq!(wanted.of(MonitorId::new()), wanted.of(MonitorId::new()));
    }

    #[test]
    fn an_hour_of_silence_is_one_check() {
        let timing = Timing { cron: "*/5 * * * *".into(), timezone: "UTC".into(), spread_ms: 12_345 };
        let clockwork = timing.clockwork().unwrap();
        let due = clockwork.next_after(at("2026-01-01T00:00:00Z")).unwrap();
        assert_eq!(due.to_iso(), "2026-01-01T00:00:12.345Z");
        assert_eq!(clockwork.next_after(at("2026-01-01T01:02:00Z")).unwrap().to_iso(), "2026-01-01T01:05:12.345Z");
        assert_eq!(clockwork.next_after(due).unwrap().to_iso(), "2026-01-01T00:05:12.345Z");
        assert_eq!(clockwork.runs_a_month(due), 8_640);
        let daily = Timing { cron: "0 9 * * *".into(), ..timing };
        assert_eq!(daily.clockwork().unwrap().runs_a_month(due), 30);
    }
}
