//! Days since the last of 1899 as dates and times.

use super::parse::{Part, Section};
use crate::properties::civil;

/// The day after 9999-12-31.
const END: f64 = 2_958_466.0;
/// Days from 1899-12-30 to 1970.
const TO_UNIX: i64 = 25_569;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A date as a section has it; `None` for numbers that do not stand for a date.
pub fn text(section: &Section, value: f64) -> Option<String> {
    if !(0.0..END).contains(&value) {
        return None;
    }
    let decimals = section
        .parts
        .iter()
        .find_map(|part| if let Part::Decimals(count) = part { Some(*count) } else { None })
        .unwrap_or(0);
    let per_second = 10f64.powi(i32::try_from(decimals).unwrap_or(0));
    let per_day = 86_400.0 * per_second;
    // What is shown is rounded as a whole, so that 59.9999 seconds are the next minute.
    let ticks = (value * per_day).round() as u64;
    let (per_second, per_day) = (per_second as u64, per_day as u64);
    let (day, of_day) = (ticks / per_day, ticks % per_day);
    let seconds = of_day / per_second;
    let (year, month, date) = calendar(day);
    let has_noon = section.parts.iter().any(|part| matches!(part, Part::Noon(_)));
    let hour = seconds / 3600;
    let shown_hour = if has_noon { (hour + 11) % 12 + 1 } else { hour };
    let mut out = String::new();
    for part in &section.parts {
        let piece = match part {
            Part::Literal(text) => text.clone(),
            Part::Number(_) => String::new(),
            Part::Noon(true) => (if hour < 12 { "AM" } else { "PM" }).to_owned(),
            Part::Noon(false) => (if hour < 12 { "A" } else { "P" }).to_owned(),
            Part::Decimals(count) => format!(".{:0count$}", of_day % per_second),
            Part::Elapsed(letter, width) => {
                let all = ticks / per_second;
                let number = match letter {
                    'h' => all / 3600,
                    'm' => all / 60,
                    _ => all,
                };
                format!("{number:0width$}", width = *width)
            }
            Part::Date(letter, count) => match (letter, count) {
                ('y', 1 | 2) => format!("{:02}", year % 100),
                ('y', _) => format!("{year:04}"),
                ('m', 3) => month_name(month).chars().take(3).collect(),
                ('m', 5) => month_name(month).chars().take(1).collect(),
                ('m', 4..) => month_name(month).to_owned(),
                ('m', width) => format!("{month:0width$}"),
                ('d', 3) => day_name(day).chars().take(3).collect(),
                ('d', 4..) => day_name(day).to_owned(),
                ('d', width) => format!("{date:0width$}"),
                ('h', width) => format!("{shown_hour:0width$}", width = (*width).min(2)),
                ('n', width) => format!("{:0width$}", seconds / 60 % 60, width = (*width).min(2)),
                (_, width) => format!("{:0width$}", seconds % 60, width = (*width).min(2)),
            },
        };
        out.push_str(&piece);
    }
    Some(out.trim().to_owned())
}

/// Year, month and day. Sheets know a 29th of February 1900, and so are a day behind before it.
fn calendar(day: u64) -> (i64, u32, u32) {
    match i64::try_from(day).unwrap_or(0) {
        60 => (1900, 2, 29),
        day if day < 60 => civil(day + 1 - TO_UNIX),
        day => civil(day - TO_UNIX),
    }
}

fn month_name(month: u32) -> &'static str {
    MONTHS.get(month as usize - 1).copied().unwrap_or_default()
}

fn day_name(day: u64) -> &'static str {
    DAYS.get(((day + 6) % 7) as usize).copied().unwrap_or_default()
}
