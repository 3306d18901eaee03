//! Data of persons that can be told by its form: e-mail addresses, phone numbers, numbers of accounts, secrets.
//!
//! A form alone is weak, so whatever has a check is checked: phone numbers by the numbering plans of the world, cards and
//! accounts by their check digits. What is found too much is as wrong as what is missed.

use std::ops::Range;
use std::sync::LazyLock;

use phonenumber::country;
use regex::Regex;
use weir_shared::domain::scrape::Entity;

/// Numbers of one text that are checked as phone numbers; past that the form is enough, so that no text takes long.
const MAX_CHECKS: usize = 5_000;
/// Text before a number in which a word may say that it is one to call, bytes.
const BEFORE: usize = 24;

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    pub entities: &'a [Entity],
    /// Whether what has the form counts even where its check digits are wrong.
    pub is_loose: bool,
    /// Where numbers without a country are called from.
    pub country: Option<country::Id>,
}

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a constant"));
    };
}

pattern!(
    EMAIL,
    r"(?i)\b[a-z0-9][a-z0-9._%+'-]{0,63}(?:@|&#64;|&#x40;|&commat;|%40)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,6}[a-z]{2,24}\b"
);
pattern!(
    SPELLED_EMAIL,
    r"(?i)\b[a-z0-9._%+-]{1,64}\s?[\[({]\s?at\s?[\])}]\s?[a-z0-9.-]{1,80}\s?(?:\.|[\[({]\s?dot\s?[\])}])\s?[a-z]{2,24}\b"
);
pattern!(NUMBER, r"(?:\+|\b00)?\(?\d(?:[ \u{a0}\u{2009}./()-]{0,2}\d){6,17}");
pattern!(CARD, r"\b\d(?:[ -]?\d){12,18}\b");
pattern!(IBAN, r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b");
pattern!(SSN, r"\b\d{3}-\d{2}-\d{4}\b");
pattern!(
    KEY_BLOCK,
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[A-Za-z0-9+/=\s:,-]*?-----END [A-Z ]{0,40}PRIVATE KEY-----"
);
pattern!(
    TOKEN,
    r"\b(?:AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|AIza[0-9A-Za-z_-]{35}|sk-[A-Za-z0-9_-]{20,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{36}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"
);
pattern!(
    SAID_SECRET,
    r#"(?i)\b(?:password|passwort|passwd|pwd|secret|api[ _-]?key|access[ _-]?token|auth[ _-]?token)\b["']?\s{0,3}[:=]\s{0,3}["']?([^\s"'<>&]{6,})"#
);
pattern!(IPV4, r"\b(?:\d{1,3}\.){3}\d{1,3}\b");
pattern!(IPV6, r"(?i)\b(?:[0-9a-f]{1,4}:){2,7}(?::?[0-9a-f]{1,4}){1,6}\b");
pattern!(CALL, r"(?i)(?:tel|phone|telefon|fon|fax|mobile?|mobil|cell|call|handy|whatsapp|✆|☎)[^\p{L}\d]{0,6}$");

/// The places of what is found, in order, without overlaps.
pub fn find(text: &str, search: Search<'_>) -> Vec<(Range<usize>, Entity)> {
    let mut found: Vec<(Range<usize>, Entity)> = Vec::new();
    let wants = |entity: Entity| search.entities.contains(&entity);
    // The surest kinds come first, because what one kind has taken is not looked at again.
    if wants(Entity::Secret) {
        found.extend(KEY_BLOCK.find_iter(text).map(|m| (m.range(), Entity::Secret)));
        found.extend(TOKEN.find_iter(text).map(|m| (m.range(), Entity::Secret)));
    }
    if wants(Entity::Email) {
        found.extend(EMAIL.find_iter(text).filter(|m| is_email(m.as_str())).map(|m| (m.range(), Entity::Email)));
        if search.is_loose {
            found.extend(SPELLED_EMAIL.find_iter(text).map(|m| (m.range(), Entity::Email)));
        }
    }
    if wants(Entity::Financial) {
        found.extend(IBAN.find_iter(text).filter_map(|m| iban(m.start(), m.as_str())).map(|r| (r, Entity::Financial)));
        found.extend(CARD.find_iter(text).filter(|m| is_card(m.as_str())).map(|m| (m.range(), Entity::Financial)));
        found.extend(SSN.find_iter(text).filter(|m| is_ssn(m.as_str())).map(|m| (m.range(), Entity::Financial)));
    }
    if wants(Entity::Secret) {
        let value = |c: regex::Captures<'_>| c.get(1).map(|m| (m.range(), Entity::Secret));
        found.extend(SAID_SECRET.captures_iter(text).filter_map(value));
        found.extend(IPV4.find_iter(text).filter(|m| is_ip(text, m.range())).map(|m| (m.range(), Entity::Secret)));
        let is_ipv6 = |m: &regex::Match<'_>| m.as_str().parse::<std::net::Ipv6Addr>().is_ok();
        found.extend(IPV6.find_iter(text).filter(is_ipv6).map(|m| (m.range(), Entity::Secret)));
    }
    if wants(Entity::Phone) {
        found.extend(phones(text, search).into_iter().map(|range| (range, Entity::Phone)));
    }
    without_overlaps(found)
}

fn without_overlaps(found: Vec<(Range<usize>, Entity)>) -> Vec<(Range<usize>, Entity)> {
    // The sort is stable: of two that begin together the surer one stays.
    let mut taken = std::collections::BTreeMap::<usize, (usize, Entity)>::new();
    for (range, entity) in found {
        let is_free = taken.range(..range.end).next_back().is_none_or(|(_, (end, _))| *end <= range.start);
        if is_free && !range.is_empty() {
            taken.insert(range.start, (range.end, entity));
        }
    }
    taken.into_iter().map(|(start, (end, entity))| (start..end, entity)).collect()
}

/// Files have names such as `icon@2x.png`.
fn is_email(text: &str) -> bool {
    let end = text.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    !["png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "ico", "css", "js", "mjs", "woff", "html", "htm", "php"]
        .contains(&end.as_str())
}

fn digits(text: &str) -> impl DoubleEndedIterator<Item = u32> {
    text.chars().filter_map(|c| c.to_digit(10))
}

fn is_card(text: &str) -> bool {
    let first = digits(text).next().unwrap_or(0);
    let sum: u32 =
        digits(text).rev().enumerate().map(|(i, d)| if i % 2 == 0 { d } else { d * 2 / 10 + d * 2 % 10 }).sum();
    let differ = digits(text).any(|d| d != first);
    (2..=6).contains(&first) && differ && sum.is_multiple_of(10)
}

/// What follows an account's number in capitals may look like a part of it.
fn iban(start: usize, text: &str) -> Option<Range<usize>> {
    let mut part = text;
    loop {
        if part.parse::<iban::Iban>().is_ok() || part.replace(' ', "").parse::<iban::Iban>().is_ok() {
            return Some(start..start + part.len());
        }
        part = &part[..part.rfind(' ')?];
    }
}

fn is_ssn(text: &str) -> bool {
    let (area, rest) = text.split_at(3);
    !matches!(area, "000" | "666") && !area.starts_with('9') && &rest[1..3] != "00" && &rest[4..] != "0000"
}

/// Not a version, not the host of an address, and no part of a longer row of numbers.
fn is_ip(text: &str, range: Range<usize>) -> bool {
    let (before, after) = (&text[..range.start], &text[range.end..]);
    let is_part = before.ends_with("//") || before.ends_with(['.', 'v', '/']) || before.ends_with("ersion ");
    let goes_on = after.starts_with('.') && after[1..].starts_with(|c: char| c.is_ascii_digit());
    !is_part && !goes_on && text[range].parse::<std::net::Ipv4Addr>().is_ok()
}

fn phones(text: &str, search: Search<'_>) -> Vec<Range<usize>> {
    let mut checks = 0;
    let mut found = Vec::new();
    for candidate in NUMBER.find_iter(text) {
        let before = &text[..candidate.start()];
        if before.ends_with(|c: char| {
            c.is_alphanumeric() || matches!(c, '.' | '-' | '/' | '=' | '_' | '%' | '#' | '$' | '€' | '£')
        }) {
            continue;
        }
        checks += 1;
        let window = &before[before.ceil_char_boundary(before.len().saturating_sub(BEFORE))..];
        let is_called = CALL.is_match(window);
        let mut part = candidate.as_str();
        // A year or another number may follow.
        for _ in 0..4 {
            if checks > MAX_CHECKS || is_phone(part, is_called, search) {
                found.push(candidate.start()..candidate.start() + part.len());
                break;
            }
            let Some(end) = part.rfind([' ', '\u{a0}', '/']) else { break };
            part = part[..end].trim_end();
        }
    }
    found
}

fn is_phone(text: &str, is_called: bool, search: Search<'_>) -> bool {
    let count = digits(text).count();
    if !(7..=15).contains(&count) {
        return false;
    }
    let international = match text.strip_prefix("00") {
        Some(rest) => Some(format!("+{rest}")),
        None => text.starts_with('+').then(|| text.to_owned()),
    };
    let is_valid = |text: &str, country| phonenumber::parse(country, text).is_ok_and(|number| number.is_valid());
    if let Some(number) = international {
        return search.is_loose || is_called || is_valid(&number, None);
    }
    // Without a country: a row of numbers needs more to go by than its length.
    let groups = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).count();
    let looks = groups >= 3 || text.contains('(') && groups >= 2;
    let national = is_valid(text, Some(search.country.unwrap_or(country::US)));
    (national && (looks && !is_date(text) || is_called)) || (search.is_loose && (looks && !is_date(text) || is_called))
}

/// `2024-05-17`, `17.05.2024` and times after them.
fn is_date(text: &str) -> bool {
    let groups: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).collect();
    let is_year = |part: &str| part.len() == 4 && (part.starts_with("19") || part.starts_with("20"));
    let small = |part: &str| part.len() <= 2;
    match groups.as_slice() {
        [a, b, c, ..] => (is_year(a) && small(b) && small(c)) || (small(a) && small(b) && is_year(c)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[Entity] = &[Entity::Email, Entity::Phone, Entity::Financial, Entity::Secret];

    fn found(text: &str, is_loose: bool) -> Vec<(&str, Entity)> {
        let search = Search { entities: ALL, is_loose, country: None };
        find(text, search).into_iter().map(|(range, entity)| (&text[range], entity)).collect()
    }

    #[test]
    fn what_has_a_check_is_checked() {
        for (text, part, entity) in [
            ("Write to jane.o'neil+x@mail.example.co.uk.", "jane.o'neil+x@mail.example.co.uk", Entity::Email),
            ("<a href=\"mailto:a@b.example\">", "a@b.example", Entity::Email),
            ("a&#64;b.example", "a&#64;b.example", Entity::Email),
            ("Call +49 30 901820 today", "+49 30 901820", Entity::Phone),
            ("Call +1 (212) 555-2368, 2024", "+1 (212) 555-2368", Entity::Phone),
            ("Phone: (212) 736-5000", "(212) 736-5000", Entity::Phone),
            ("tel:2127365000", "2127365000", Entity::Phone),
            ("reach 212-736-5000 now", "212-736-5000", Entity::Phone),
            ("0044 20 7946 0958", "0044 20 7946 0958", Entity::Phone),
            ("card 4111 1111 1111 1111 ok", "4111 1111 1111 1111", Entity::Financial),
            ("IBAN DE89 3704 0044 0532 0130 00 BIC", "DE89 3704 0044 0532 0130 00", Entity::Financial),
            ("GB82WEST12345698765432", "GB82WEST12345698765432", Entity::Financial),
            ("SSN 078-05-1120", "078-05-1120", Entity::Financial),
            ("key AKIAIOSFODNN7EXAMPLE end", "AKIAIOSFODNN7EXAMPLE", Entity::Secret),
            ("password: hunter22!", "hunter22!", Entity::Secret),
            ("from 203.0.113.77 at", "203.0.113.77", Entity::Secret),
            ("at 2001:db8::8a2e:370:7334 there", "2001:db8::8a2e:370:7334", Entity::Secret),
        ] {
            assert_eq!(found(text, false), [(part, entity)], "{text}");
        }
        let block = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----";
        assert_eq!(found(block, false), [(block, Entity::Secret)]);
    }

    #[test]
    fn what_only_looks_like_it_is_left_alone() {
        for text in [
            "icon@2x.png and @handle and a@b",
            "On 2024-05-17 12:30 and 17.05.2024 10",
            "Order 4111 1111 1111 1112, part 0000 0000 0000 0000",
            "DE89 3704 0044 0532 0130 02",
            "version 10.2.3.4, http://127.0.0.1:8080/, 1.2.3.4.5",
            "https://x.test/p/1234567890?id=9876543210123",
            "In 1990 1991 1992 it rained; 1,234,567 people",
            "SSN 000-12-3456 and 900-12-3456",
            "the time 12:34:56 and a :: b",
        ] {
            assert_eq!(found(text, false), [], "{text}");
        }
    }

    #[test]
    fn loosely_the_form_is_enough() {
        assert_eq!(found("jane [at] mail [dot] example", true), [("jane [at] mail [dot] example", Entity::Email)]);
        assert_eq!(found("call 555-01-99-12", true), [("555-01-99-12", Entity::Phone)]);
        assert_eq!(found("call 555-01-99-12", false), []);
    }

    #[test]
    fn only_what_is_asked_for_is_found() {
        let search = Search { entities: &[Entity::Email], is_loose: false, country: None };
        assert!(find("+49 30 901820, 4111 1111 1111 1111", search).is_empty());
        let german = Search { entities: ALL, is_loose: false, country: Some(country::DE) };
        assert_eq!(find("030 90 18 20", german).len(), 1);
        let many = "+49 30 901820 ".repeat(20_000);
        assert!(find(&many, german).len() > 10_000, "and it ends soon");
    }
}
