//! The codes of number formats, like `#,##0.00;[Red]-#,##0.00`, taken apart once for all cells that have them.

/// Digits that a code may ask for; more say nothing.
const MAX_DIGITS: usize = 30;

/// A number format.
#[derive(Clone, Debug, Default)]
pub struct Format {
    pub(super) sections: Vec<Section>,
}

/// A comparison like `[>=100]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    below: bool,
    equal: bool,
    above: bool,
    than: f64,
}

impl Condition {
    pub(super) fn holds(self, value: f64) -> bool {
        (self.below && value < self.than)
            || (self.above && value > self.than)
            || (self.equal && (value - self.than).abs() < f64::EPSILON)
    }

    fn parse(text: &str) -> Option<Self> {
        let signs = text.bytes().take_while(|byte| matches!(byte, b'<' | b'>' | b'=')).count();
        let (sign, than) = text.split_at(signs);
        let than = than.trim().parse().ok()?;
        let (below, equal, above) = match sign {
            "<" => (true, false, false),
            "<=" => (true, true, false),
            ">" => (false, false, true),
            ">=" => (false, true, true),
            "=" => (false, true, false),
            "<>" => (true, false, true),
            _ => return None,
        };
        Some(Self { below, equal, above, than })
    }
}

/// One step of what is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Literal(String),
    /// So many places of digits; all of them together are the number.
    Number(usize),
    /// A letter of a date with how often it stands.
    Date(char, usize),
    /// `[h]`, `[m]`, `[s]`: more than a day, an hour, a minute.
    Elapsed(char, usize),
    /// `AM/PM` or `A/P`.
    Noon(bool),
    /// Decimals of seconds.
    Decimals(usize),
}

/// What stands between semicolons.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    pub condition: Option<Condition>,
    pub parts: Vec<Part>,
    pub is_date: bool,
    pub is_text: bool,
    pub is_general: bool,
    pub percents: u32,
    /// Commas after the last digit.
    pub thousands: u32,
    pub is_grouped: bool,
    pub has_point: bool,
    pub integer_digits: usize,
    /// Of those, the ones always shown.
    pub integer_needed: usize,
    pub decimals: usize,
    pub decimals_needed: usize,
    pub has_exponent: bool,
    pub exponent_digits: usize,
    pub denominator_digits: usize,
    pub has_whole: bool,
}

impl Format {
    /// Takes a code apart; what is not known in it is written as it stands.
    pub fn parse(code: &str) -> Self {
        Self { sections: split(code).into_iter().take(4).map(section).collect() }
    }
}

/// The sections of a code; semicolons in quotes or after a backslash are text.
fn split(code: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut from = 0;
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (at, c) in code.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '"' => is_quoted = !is_quoted,
            '\\' if !is_quoted => is_escaped = true,
            ';' if !is_quoted => {
                out.push(code.get(from..at).unwrap_or_default());
                from = at + 1;
            }
            _ => {}
        }
    }
    out.push(code.get(from..).unwrap_or_default());
    out
}

fn section(code: &str) -> Section {
    let mut out = Section::default();
    let mut rest = code;
    if code.trim().eq_ignore_ascii_case("general") || code.is_empty() {
        out.is_general = code.len() > 1;
    }
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = match c {
            '"' => {
                let (text, after) = after.split_once('"').unwrap_or((after, ""));
                out.literal(text);
                after
            }
            '\\' | '_' | '*' => {
                let shown = after.chars().next();
                if c == '\\' {
                    out.literal(&shown.map(String::from).unwrap_or_default());
                }
                after.get(shown.map_or(0, char::len_utf8)..).unwrap_or_default()
            }
            '[' => {
                let (inside, after) = after.split_once(']').unwrap_or((after, ""));
                out.bracket(inside);
                after
            }
            '0' | '#' | '?' => out.digit(c, after),
            '.' => out.point(after),
            ',' => {
                out.comma(after);
                after
            }
            '%' => {
                out.percents = (out.percents + 1).min(4);
                out.literal("%");
                after
            }
            'E' | 'e' if after.starts_with(['+', '-']) && out.integer_digits + out.decimals > 0 => out.exponent(after),
            '/' if out.integer_digits > 0 && !out.is_date => out.fraction(after),
            '@' => {
                out.is_text = true;
                after
            }
            'A' | 'a' if starts_with(rest, "am/pm") => out.noon(true, rest.get(5..)),
            'A' | 'a' if starts_with(rest, "a/p") => out.noon(false, rest.get(3..)),
            'G' | 'g' if starts_with(rest, "general") => {
                out.is_general = true;
                rest.get(7..).unwrap_or_default()
            }
            'y' | 'm' | 'd' | 'h' | 's' | 'Y' | 'M' | 'D' | 'H' | 'S' => {
                let count = rest.chars().take_while(|other| other.eq_ignore_ascii_case(&c)).count();
                out.is_date = true;
                out.parts.push(Part::Date(c.to_ascii_lowercase(), count));
                rest.get(count..).unwrap_or_default()
            }
            // A space between the whole and the numerator of a fraction.
            ' ' if out.integer_digits > 0
                && after.trim_start_matches(['?', '#', '0']).trim_start().starts_with('/') =>
            {
                out.has_whole = true;
                after
            }
            c => {
                out.literal(&String::from(c));
                after
            }
        };
    }
    // A general section with something around it is written in full.
    if out.is_general && !out.parts.is_empty() && !out.is_date {
        out.is_general = out.parts.iter().all(|part| matches!(part, Part::Literal(text) if text.trim().is_empty()));
    }
    if out.is_date {
        out.minutes();
    }
    out
}

fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

impl Section {
    /// After an `E`: a sign and the places of the exponent. Returns what follows.
    fn exponent<'a>(&mut self, after: &'a str) -> &'a str {
        self.has_exponent = true;
        let digits = after.get(1..).unwrap_or_default();
        let count = digits.bytes().take_while(|byte| matches!(byte, b'0' | b'#' | b'?')).count();
        self.exponent_digits = count.min(MAX_DIGITS);
        digits.get(count..).unwrap_or_default()
    }

    /// After the bar of a fraction: the places of its denominator. Returns what follows.
    fn fraction<'a>(&mut self, after: &'a str) -> &'a str {
        let blank = after.len() - after.trim_start().len();
        let digits = after.trim_start();
        let count = digits.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'#' | b'?')).count();
        if count == 0 {
            self.literal("/");
            return after;
        }
        self.denominator_digits = count.min(4);
        after.get(blank + count..).unwrap_or_default()
    }

    fn literal(&mut self, text: &str) {
        if let Some(Part::Literal(last)) = self.parts.last_mut() {
            last.push_str(text);
        } else {
            self.parts.push(Part::Literal(text.to_owned()));
        }
    }

    fn bracket(&mut self, inside: &str) {
        let lower = inside.to_ascii_lowercase();
        let letter = lower.chars().next();
        if let Some(letter @ ('h' | 'm' | 's')) = letter
            && lower.chars().all(|c| c == letter)
        {
            self.is_date = true;
            self.parts.push(Part::Elapsed(letter, lower.len()));
        } else if let Some(currency) = inside.strip_prefix('$') {
            self.literal(currency.split('-').next().unwrap_or_default());
        } else if let Some(condition) = Condition::parse(inside) {
            self.condition = Some(condition);
        }
    }

    /// A digit's place.
    fn digit<'c>(&mut self, c: char, after: &'c str) -> &'c str {
        if self.is_date {
            self.literal(&String::from(c));
            return after;
        }
        if let Some(Part::Number(count)) = self.parts.last_mut() {
            *count += 1;
        } else {
            self.parts.push(Part::Number(1));
        }
        if self.has_exponent {
            return after;
        }
        if self.has_point {
            if self.decimals < MAX_DIGITS {
                self.decimals += 1;
                if c == '0' {
                    self.decimals_needed = self.decimals;
                }
            }
        } else if self.integer_digits < MAX_DIGITS {
            self.integer_digits += 1;
            if c == '0' || self.integer_needed > 0 {
                self.integer_needed += 1;
            }
        }
        after
    }

    fn point<'c>(&mut self, after: &'c str) -> &'c str {
        if self.is_date {
            let count = after.bytes().take_while(|byte| *byte == b'0').count();
            if count > 0 {
                self.parts.push(Part::Decimals(count.min(6)));
                return after.get(count..).unwrap_or_default();
            }
            self.literal(".");
            return after;
        }
        self.has_point = true;
        if !matches!(self.parts.last(), Some(Part::Number(_))) {
            self.parts.push(Part::Number(0));
        }
        after
    }

    fn comma(&mut self, after: &str) {
        let is_between = after.starts_with(['0', '#', '?']);
        if self.is_date || self.integer_digits == 0 {
            self.literal(",");
        } else if is_between || after.trim_start_matches(',').starts_with(['0', '#', '?']) {
            self.is_grouped = true;
        } else {
            self.thousands = (self.thousands + 1).min(6);
        }
    }

    fn noon<'c>(&mut self, is_long: bool, after: Option<&'c str>) -> &'c str {
        self.is_date = true;
        self.parts.push(Part::Noon(is_long));
        after.unwrap_or_default()
    }

    /// `m` is minutes after hours and before seconds, else months.
    fn minutes(&mut self) {
        let letter = |part: &Part| match part {
            Part::Date(letter, _) | Part::Elapsed(letter, _) => Some(*letter),
            _ => None,
        };
        let letters: Vec<Option<char>> = self.parts.iter().map(letter).collect();
        for (at, part) in self.parts.iter_mut().enumerate() {
            let before = letters.get(..at).unwrap_or_default().iter().rev().flatten().next();
            let after = letters.get(at + 1..).unwrap_or_default().iter().flatten().next();
            if let Part::Date(letter @ 'm', 1 | 2) = part
                && (before == Some(&'h') || after == Some(&'s'))
            {
                *letter = 'n';
            }
        }
    }
}

/// The code of a format that has a number only.
pub fn builtin(id: u32) -> &'static str {
    match id {
        1 => "0",
        2 => "0.00",
        3 => "#,##0",
        4 => "#,##0.00",
        5 | 6 => "\"$\"#,##0;-\"$\"#,##0",
        7 | 8 => "\"$\"#,##0.00;-\"$\"#,##0.00",
        9 => "0%",
        10 => "0.00%",
        11 => "0.00E+00",
        12 => "# ?/?",
        13 => "# ??/??",
        // In the order of the reader's country.
        14 | 27..=31 | 36 | 50..=54 | 57 | 58 => "yyyy-mm-dd",
        15 => "d-mmm-yy",
        16 => "d-mmm",
        17 => "mmm-yy",
        18 => "h:mm AM/PM",
        19 => "h:mm:ss AM/PM",
        20 | 32 | 34 | 55 => "h:mm",
        21 | 33 | 35 | 56 => "h:mm:ss",
        22 => "yyyy-mm-dd h:mm",
        37 | 38 => "#,##0;(#,##0)",
        39 | 40 => "#,##0.00;(#,##0.00)",
        41 => "#,##0;-#,##0;\"-\"",
        42 => "\"$\"#,##0;-\"$\"#,##0;\"-\"",
        43 => "#,##0.00;-#,##0.00;\"-\"",
        44 => "\"$\"#,##0.00;-\"$\"#,##0.00;\"-\"",
        45 => "mm:ss",
        46 => "[h]:mm:ss",
        47 => "mm:ss.0",
        48 => "##0.0E+0",
        _ => "General",
    }
}
