//! Digits of numbers, from the fifteen that a sheet keeps.

/// Decimal digits that count.
const PRECISION: usize = 15;

/// The digits of a number and the place of its point among them.
fn decimal(value: f64) -> (Vec<u8>, i32) {
    let text = format!("{value:.*e}", PRECISION - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    (digits, exponent.parse::<i32>().unwrap_or(0) + 1)
}

/// The whole part and so many decimals of a number that is not negative, rounded half up as people do.
pub fn fixed(value: f64, decimals: usize) -> (String, String) {
    let (mut digits, mut point) = decimal(value);
    // Zeros in front, so that what is rounded up has a place.
    while point < 1 {
        digits.insert(0, b'0');
        point += 1;
    }
    digits.insert(0, b'0');
    let point = usize::try_from(point).unwrap_or(0) + 1;
    let keep = point + decimals;
    let is_up = digits.get(keep).is_some_and(|digit| *digit >= b'5');
    digits.resize(keep, b'0');
    if is_up {
        for digit in digits.iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                break;
            }
            *digit = b'0';
        }
    }
    let text: String = digits.into_iter().map(char::from).collect();
    let (whole, fraction) = text.split_at(point);
    let whole = whole.trim_start_matches('0');
    (if whole.is_empty() { "0".to_owned() } else { whole.to_owned() }, fraction.to_owned())
}

/// A number in the format that shows what there is.
pub fn general(value: f64) -> String {
    let size = value.abs();
    if size < 1e15 && value.fract() == 0.0 {
        return format!("{value:.0}").replace("-0", if value == 0.0 { "0" } else { "-0" });
    }
    if (1e-5..1e15).contains(&size) {
        let shortest = format!("{value}");
        if shortest.len() <= PRECISION {
            return shortest;
        }
        let (whole, fraction) = fixed(size, decimals_left(size));
        let fraction = fraction.trim_end_matches('0');
        let sign = if value < 0.0 { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        return format!("{sign}{whole}{point}{fraction}");
    }
    let (digits, point) = decimal(size);
    let text: String = digits.into_iter().map(char::from).collect();
    let (first, rest) = text.split_at(1);
    let rest = rest.trim_end_matches('0');
    let sign = if value < 0.0 { "-" } else { "" };
    let dot = if rest.is_empty() { "" } else { "." };
    let exponent = point - 1;
    let direction = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}{dot}{rest}E{direction}{:02}", exponent.abs())
}

/// Decimals that count of a number of this size.
fn decimals_left(size: f64) -> usize {
    let (_, point) = decimal(size);
    usize::try_from(i32::try_from(PRECISION).unwrap_or(15) - point).unwrap_or(0)
}

/// Thousands set apart.
pub fn grouped(whole: &str) -> String {
    let mut out = String::with_capacity(whole.len() * 4 / 3);
    for (n, c) in whole.chars().enumerate() {
        if n > 0 && (whole.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// As `1.23E+04`.
pub fn scientific(value: f64, whole_digits: usize, decimals: usize, exponent_digits: usize) -> String {
    let (_, point) = decimal(value);
    let step = i32::try_from(whole_digits).unwrap_or(1);
    let mut exponent = if value == 0.0 { 0 } else { (point - 1).div_euclid(step) * step };
    let mut mantissa = fixed(value / 10f64.powi(exponent), decimals);
    if mantissa.0.len() > whole_digits {
        exponent += step;
        mantissa = fixed(value / 10f64.powi(exponent), decimals);
    }
    let (whole, fraction) = mantissa;
    let dot = if fraction.is_empty() { "" } else { "." };
    let direction = if exponent < 0 { '-' } else { '+' };
    format!("{whole}{dot}{fraction}E{direction}{:0exponent_digits$}", exponent.abs())
}

/// As `1 1/2`, with a denominator of so many digits.
pub fn mixed(value: f64, digits: usize, has_whole: bool) -> String {
    let most = 10u64.pow(u32::try_from(digits.min(4)).unwrap_or(1)) - 1;
    let whole = if has_whole { value.trunc() } else { 0.0 };
    let (numerator, denominator) = nearest(value - whole, most);
    match (whole == 0.0, numerator == 0.0) {
        (_, true) => format!("{whole:.0}"),
        (true, false) => format!("{numerator:.0}/{denominator}"),
        (false, false) if numerator == denominator as f64 => format!("{:.0}", whole + 1.0),
        (false, false) => format!("{whole:.0} {numerator:.0}/{denominator}"),
    }
}

/// The fraction nearest to a value, by its continued fraction.
fn nearest(value: f64, most: u64) -> (f64, u64) {
    let (mut before, mut now) = (0u64, 1u64);
    let mut left = value;
    let mut best = 1;
    for _ in 0..16 {
        best = now;
        let rest = left.fract();
        if rest < 1e-9 {
            break;
        }
        left = 1.0 / rest;
        let step = left.trunc();
        if step > most as f64 {
            break;
        }
        let next = (step as u64).saturating_mul(now).saturating_add(before);
        if next > most {
            break;
        }
        (before, now) = (now, next);
        best = now;
    }
    ((value * best as f64).round(), best)
}
