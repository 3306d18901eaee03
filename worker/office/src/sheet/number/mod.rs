//! Numbers as a sheet displays them: Excel's number formats. Colors, fillers and widths mean nothing in a table of text.
//! The two built-in dates whose order of day and month depends on the reader's country are written as ISO 8601 dates.

mod date;
mod digits;
mod parse;

pub use parse::{Format, builtin};

use digits::{fixed, general, grouped, mixed, scientific};
use parse::{Part, Section};

impl Format {
    /// A number as it is displayed.
    pub fn number(&self, value: f64, is_1904: bool) -> String {
        if !value.is_finite() {
            return String::new();
        }
        let Some((section, is_signed)) = self.section(value) else { return general(value) };
        if section.is_general {
            return general(value);
        }
        if section.is_date {
            let days = if is_1904 { value + 1462.0 } else { value };
            return date::text(section, days).unwrap_or_else(|| general(value));
        }
        section.number(value.abs(), is_signed && value < 0.0)
    }

    /// The section for a value, and whether it writes its own sign.
    fn section(&self, value: f64) -> Option<(&Section, bool)> {
        let numbers: Vec<&Section> = self.sections.iter().take(3).filter(|section| !section.is_text).collect();
        if let Some(section) = numbers.iter().find(|s| s.condition.is_some_and(|c| c.holds(value))) {
            return Some((section, true));
        }
        let plain: Vec<&&Section> = numbers.iter().filter(|s| s.condition.is_none()).collect();
        let has_conditions = plain.len() < numbers.len();
        match plain.as_slice() {
            [] => None,
            [only] => Some((only, true)),
            [positive, ..] if has_conditions || value > 0.0 => Some((positive, true)),
            [_, negative, ..] if value < 0.0 => Some((negative, false)),
            [_, _, zero, ..] => Some((zero, false)),
            [positive, ..] => Some((positive, true)),
        }
    }
}

impl Section {
    fn number(&self, value: f64, is_negative: bool) -> String {
        let mut scaled = value;
        for _ in 0..self.percents {
            scaled *= 100.0;
        }
        for _ in 0..self.thousands {
            scaled /= 1000.0;
        }
        let mut out = String::new();
        let body = if self.has_exponent {
            scientific(scaled, self.integer_digits.max(1), self.decimals, self.exponent_digits)
        } else if self.denominator_digits > 0 {
            mixed(scaled, self.denominator_digits, self.has_whole)
        } else {
            let (whole, mut fraction) = fixed(scaled, self.decimals);
            // `#` shows a digit only where it counts.
            while fraction.len() > self.decimals_needed && fraction.ends_with('0') {
                fraction.pop();
            }
            let mut whole = format!("{whole:0>width$}", width = self.integer_needed);
            if self.integer_needed == 0 && whole == "0" {
                whole.clear();
            }
            let whole = if self.is_grouped { grouped(&whole) } else { whole };
            let point = if self.has_point && (!fraction.is_empty() || self.decimals > 0) { "." } else { "" };
            let point = if fraction.is_empty() { "" } else { point };
            format!("{whole}{point}{fraction}")
        };
        if is_negative && body.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
            out.push('-');
        }
        let places = || self.parts.iter().filter_map(|p| if let Part::Number(n) = p { Some(*n) } else { None });
        // Digits around literals, as in `000-00`, are dealt out from the right.
        let is_dealt = places().count() > 1 && !self.has_point && !self.has_exponent && self.denominator_digits == 0;
        let mut rest = body.as_str();
        let mut after: usize = places().skip(1).sum();
        let mut further = places().skip(1);
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Number(_) => {
                    let count = if is_dealt { rest.len().saturating_sub(after) } else { rest.len() };
                    let (now, later) = rest.split_at(count);
                    out.push_str(now);
                    rest = later;
                    after -= further.next().unwrap_or(0).min(after);
                }
                _ => {}
            }
        }
        out.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_sheets_display_them() {
        let cases = [
            ("General", 0.1 + 0.2, "0.3"),
            ("General", 1234567.0, "1234567"),
            ("General", 1e21, "1E+21"),
            ("General", -0.5, "-0.5"),
            ("0.00", 2.675, "2.68"),
            ("0.00", -0.001, "0.00"),
            ("#,##0", 1234567.5, "1,234,568"),
            ("#,##0.00", -1234.5, "-1,234.50"),
            ("0%", 0.256, "26%"),
            ("0.0%", 0.256, "25.6%"),
            ("\"€\"#,##0.00", 99.5, "€99.50"),
            ("[$€-407] #,##0.00", 99.5, "€ 99.50"),
            ("#,##0.00\\ \"kr\";[Red]-#,##0.00\\ \"kr\"", -5.0, "-5.00 kr"),
            ("_(* #,##0.00_);_(* \\(#,##0.00\\);_(* \"-\"??_);_(@_)", -1234.5, "(1,234.50)"),
            ("_(* #,##0.00_);_(* \\(#,##0.00\\);_(* \"-\"??_);_(@_)", 0.0, "-"),
            ("0.00E+00", 12345.0, "1.23E+04"),
            ("# ?/?", 1.5, "1 1/2"),
            ("000-00", 123.0, "001-23"),
            ("00000", 42.0, "00042"),
            ("#.##", 0.5, ".5"),
            ("0.0,,\"M\"", 12_345_678.0, "12.3M"),
            ("[>100]\"big\";\"small\"", 500.0, "big"),
            ("yyyy-mm-dd", 45351.0, "2024-02-29"),
            ("dd/mm/yyyy hh:mm", 45351.75, "29/02/2024 18:00"),
            ("d mmmm yyyy", 45351.0, "29 February 2024"),
            ("ddd, mmm d", 45351.0, "Thu, Feb 29"),
            ("h:mm AM/PM", 0.75, "6:00 PM"),
            ("[h]:mm:ss", 1.5, "36:00:00"),
            ("mm:ss.0", 0.000_016_2, "00:01.4"),
            ("yyyy\"年\"m\"月\"d\"日\"", 45351.0, "2024年2月29日"),
            ("[$-409]d-mmm-yy;@", 45351.0, "29-Feb-24"),
            ("yyyy-mm-dd", 60.0, "1900-02-29"),
            ("yyyy-mm-dd", 1.0, "1900-01-01"),
        ];
        for (code, value, expected) in cases {
            assert_eq!(Format::parse(code).number(value, false), expected, "{code} of {value}");
        }
        assert_eq!(Format::parse("yyyy-mm-dd").number(0.0, true), "1904-01-01");
    }

    #[test]
    fn any_code_and_value_is_answered() {
        let codes =
            ["", ";;;", "[", "\"", "\\", "_", "*", "[$", "0E", "E+", "/", "[h", "....", "0/0", "@", "AM/PM", "[>]0"];
        for code in codes {
            for value in [0.0, -1.5, 1e300, -1e300, 1e-300, f64::NAN, f64::INFINITY, 2_958_466.0] {
                let _ = Format::parse(code).number(value, true);
            }
        }
    }
}
