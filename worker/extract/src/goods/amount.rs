//! Amounts of money as pages write them, for machines (`1299.00`) and for people (`1.299,– €`).

/// A larger number is not taken for a price.
const MOST: f64 = 1e12;

/// Currencies that are told from a code in a text; any three letters could be a word.
const CODES: [&str; 40] = [
    "USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "NZD", "CNY", "HKD", "TWD", "KRW", "INR", "SGD", "MYR", "THB",
    "IDR", "PHP", "VND", "SEK", "NOK", "DKK", "ISK", "PLN", "CZK", "HUF", "RON", "BGN", "TRY", "RUB", "UAH", "ILS",
    "AED", "SAR", "ZAR", "EGP", "BRL", "MXN", "CLP", "COP",
];
/// Signs of one currency only; those that begin with another one stand before it. `$`, `¥` and `kr` are of several.
const SIGNS: [(&str, &str); 18] = [
    ("US$", "USD"),
    ("CA$", "CAD"),
    ("AU$", "AUD"),
    ("NZ$", "NZD"),
    ("HK$", "HKD"),
    ("NT$", "TWD"),
    ("R$", "BRL"),
    ("€", "EUR"),
    ("£", "GBP"),
    ("₹", "INR"),
    ("₽", "RUB"),
    ("₩", "KRW"),
    ("₺", "TRY"),
    ("₴", "UAH"),
    ("₪", "ILS"),
    ("₫", "VND"),
    ("zł", "PLN"),
    ("Kč", "CZK"),
];

/// Whether an amount can be a price.
pub fn is_sane(amount: f64) -> bool {
    (0.0..=MOST).contains(&amount)
}

/// The amount in a text that has exactly one number.
pub fn read(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return text.parse().ok().filter(|amount| is_sane(*amount));
    }
    let mut runs = runs(text);
    let only = runs.next().filter(|_| runs.next().is_none())?;
    number(&only).filter(|amount| is_sane(*amount))
}

/// The numbers of a text: digits with what may stand between them. A minus before one spoils it.
fn runs(text: &str) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.chars().take(200).collect();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < chars.len() && !chars[at].is_ascii_digit() {
            at += 1;
        }
        if at >= chars.len() {
            return None;
        }
        let mut run = String::new();
        if at > 0 && matches!(chars[at - 1], '-' | '−') {
            run.push('-');
        }
        while at < chars.len() {
            let digits = chars[at + 1..].iter().take_while(|c| c.is_ascii_digit()).count();
            match chars[at] {
                c if c.is_ascii_digit() => run.push(c),
                c @ ('.' | ',') if digits > 0 => run.push(c),
                '\'' | '’' | ' ' | '\u{a0}' | '\u{202f}' if digits == 3 => {}
                _ => break,
            }
            at += 1;
        }
        Some(run)
    })
}

/// One number with points and commas. The last sign that stands once is the decimal one, unless three digits follow it and
/// no other says what it is: `1.299` is a thousand, `0.299` is not.
fn number(run: &str) -> Option<f64> {
    let last = run.rfind(['.', ',']);
    let Some(last) = last else { return run.parse().ok() };
    let (whole, part) = (&run[..last], &run[last + 1..]);
    let sign = run.as_bytes()[last];
    let is_only_kind = !whole.contains(if sign == b'.' { ',' } else { '.' });
    let is_repeated = whole.as_bytes().contains(&sign);
    if is_repeated && !is_only_kind {
        return None;
    }
    let is_thousands = is_only_kind && part.len() == 3 && (is_repeated || !whole.starts_with('0') && whole.len() <= 3);
    if is_repeated && !is_thousands {
        return None;
    }
    let whole: String = whole.chars().filter(|c| !matches!(c, '.' | ',')).collect();
    let text = if is_thousands { format!("{whole}{part}") } else { format!("{whole}.{part}") };
    text.parse().ok()
}

/// The currency that a text names, by its code or by a sign that no other currency has.
pub fn currency(text: &str) -> Option<String> {
    let text = text.trim();
    if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Some(text.to_ascii_uppercase());
    }
    let mut words = text.split(|c: char| !c.is_alphabetic());
    let code = words.find_map(|word| CODES.iter().find(|code| **code == word));
    code.copied()
        .or_else(|| SIGNS.iter().find(|(sign, _)| text.contains(sign)).map(|(_, code)| *code))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_in_every_notation() {
        for (text, amount) in [
            ("1299.00", 1299.0),
            ("1.299", 1.299),
            ("$1,299.00", 1299.0),
            ("1.299,00 €", 1299.0),
            ("1.299 €", 1299.0),
            ("€ 1,5", 1.5),
            ("0,999 €", 0.999),
            ("CHF 1'299.–", 1299.0),
            ("1 299,50 kr", 1299.5),
            ("12,99€ / Stück", 12.99),
            ("₹1,23,456", 123_456.0),
            ("1,234,567 JPY", 1_234_567.0),
            ("2 for $5", f64::NAN),
            ("$5 – $7", f64::NAN),
            ("-5 €", f64::NAN),
            ("free", f64::NAN),
            ("", f64::NAN),
            ("1.2.3", f64::NAN),
            ("1.2,3.4", f64::NAN),
            ("99999999999999999 €", f64::NAN),
        ] {
            let expected = Some(amount).filter(|amount| !amount.is_nan());
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn only_what_one_currency_has_names_it() {
        for (text, code) in [
            ("eur", Some("EUR")),
            ("19.90 USD", Some("USD")),
            ("US$ 5", Some("USD")),
            ("5 €", Some("EUR")),
            ("$5", None),
            ("kr 5", None),
            ("buy FOR 5", None),
        ] {
            assert_eq!(currency(text).as_deref(), code, "{text}");
        }
    }
}
