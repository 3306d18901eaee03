//! Lists of languages and currencies that a page offers itself in: nobody reads them for their text.
//!
//! Told by what their items say: the name of a language in that language, or the sign of a currency. Tables are left alone,
//! as is what is much of the page: rates of exchange may be what it is for.

use super::measure::Measures;
use super::tree::{Dom, Tag};

/// Items of a list at least, and characters of one at most.
const LEAST: usize = 5;
const LONGEST: u32 = 48;
/// Of so many items this many may be something else: one in so many.
const OTHERS: usize = 5;
/// A list is at most this part of the page.
const MOST: f32 = 0.3;

/// Names of languages in these languages, lower case, sorted.
const LANGUAGES: &[&str] = &[
    "bahasa indonesia",
    "bahasa melayu",
    "català",
    "dansk",
    "deutsch",
    "eesti",
    "english",
    "español",
    "euskara",
    "filipino",
    "français",
    "galego",
    "hrvatski",
    "italiano",
    "latviešu",
    "lietuvių",
    "magyar",
    "nederlands",
    "norsk",
    "norsk bokmål",
    "polski",
    "português",
    "română",
    "shqip",
    "slovenčina",
    "slovenščina",
    "srpski",
    "suomi",
    "svenska",
    "tiếng việt",
    "türkçe",
    "čeština",
    "ελληνικά",
    "български",
    "русский",
    "српски",
    "українська",
    "қазақ тілі",
    "עברית",
    "اردو",
    "العربية",
    "فارسی",
    "हिन्दी",
    "বাংলা",
    "தமிழ்",
    "ไทย",
    "ქართული",
    "中文",
    "日本語",
    "简体中文",
    "繁體中文",
    "한국어",
];

/// Signs of currencies, sorted.
const CURRENCIES: &[&str] = &[
    "AED", "ALL", "AMD", "ANG", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BGN", "BHD", "BIF", "BND", "BOB",
    "BRL", "BSD", "BWP", "BZD", "CAD", "CDF", "CHF", "CLP", "CNY", "COP", "CRC", "CVE", "CZK", "DJF", "DKK", "DOP",
    "DZD", "EGP", "ETB", "EUR", "FJD", "FKP", "GBP", "GMD", "GNF", "GTQ", "GYD", "HKD", "HNL", "HUF", "IDR", "ILS",
    "INR", "ISK", "JMD", "JPY", "KES", "KGS", "KHR", "KMF", "KRW", "KWD", "KYD", "KZT", "LAK", "LBP", "LKR", "MAD",
    "MDL", "MGA", "MKD", "MMK", "MNT", "MOP", "MUR", "MVR", "MWK", "MXN", "MYR", "NGN", "NIO", "NOK", "NPR", "NZD",
    "OMR", "PEN", "PGK", "PHP", "PKR", "PLN", "PYG", "QAR", "RON", "RSD", "RUB", "RWF", "SAR", "SBD", "SEK", "SGD",
    "SHP", "SLL", "STD", "THB", "TJS", "TOP", "TRY", "TTD", "TWD", "TZS", "UAH", "UGX", "USD", "UYU", "UZS", "VND",
    "VUV", "WST", "XAF", "XCD", "XOF", "XPF", "YER", "ZAR", "ZMW",
];

/// Adds to `dropped` such lists; `total`: characters of the page.
pub fn leave_out(dom: &Dom, m: &Measures, total: u32, dropped: &mut [bool]) {
    let mut i = m.body + 1;
    while i < dom.end(m.body) {
        if dropped[i] {
            i = dom.end(i);
            continue;
        }
        if matches!(dom.tag(i), Tag::Ul | Tag::Ol | Tag::Div | Tag::Nav | Tag::Form | Tag::Menu)
            && m.text[i] as f32 <= MOST * total as f32
            && is_of_options(dom, m, i)
        {
            dropped[i] = true;
            i = dom.end(i);
            continue;
        }
        i += 1;
    }
}

fn is_of_options(dom: &Dom, m: &Measures, list: usize) -> bool {
    let items = || dom.children(list).filter(|&item| m.text[item] > 0);
    if items().nth(LEAST - 1).is_none() {
        return false;
    }
    let (mut options, mut others) = (0, 0);
    for item in items() {
        if m.text[item] <= LONGEST && is_option(&dom.text_of(item)) {
            options += 1;
        } else {
            others += 1;
            // Most lists end here, with their second item.
            if others > 1 && others * OTHERS > options + others {
                return false;
            }
        }
    }
    options >= LEAST && others * OTHERS <= options + others
}

fn is_option(text: &str) -> bool {
    let text = text.trim();
    if let Some((_, end)) = text.rsplit_once('(')
        && end.ends_with(')')
        && is_currency(end)
    {
        return true;
    }
    if is_currency(text) {
        return true;
    }
    let name = text.split(['(', '/', '–', '|']).next().unwrap_or_default().trim().to_lowercase();
    LANGUAGES.binary_search(&name.as_str()).is_ok()
}

/// Whether a text begins with the sign of a currency, and no word.
fn is_currency(text: &str) -> bool {
    text.get(..3).is_some_and(|sign| CURRENCIES.binary_search(&sign).is_ok())
        && text[3..].chars().next().is_none_or(|c| !c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    fn left(html: &str) -> String {
        let dom = guard::parse(html).dom;
        let m = Measures::of(&dom, false);
        let mut dropped = m.invisible.clone();
        leave_out(&dom, &m, m.total(), &mut dropped);
        m.text_left(&dom, &dropped)
    }

    #[test]
    fn the_tables_are_sorted() {
        assert!(LANGUAGES.is_sorted() && CURRENCIES.is_sorted());
    }

    #[test]
    fn lists_of_languages_and_currencies_go_and_others_stay() {
        let page = |list: &str| left(&format!("<p>{}</p>{list}", "It boils a litre in four minutes. ".repeat(20)));
        for list in [
            "<ul><li>English<li>Deutsch<li>Français<li>Español (México)<li>日本語</ul>",
            "<div><a>Chad (XAF CFA)</a><a>Chile (CLP $)</a><a>China (CNY ¥)</a><a>Cuba (USD $)</a><a>Cyprus (EUR €)</a></div>",
            "<ul><li><b>AED</b>: 549.56AED<li>GBP: £110<li>AUD: $232<li>KWD: 46<li>SAR: 558</ul>",
        ] {
            assert!(page(list).trim_end().ends_with("minutes."), "{list}");
        }
        for list in [
            "<ul><li>English<li>Deutsch<li>Français</ul>",
            "<ul><li>English tea<li>Deutsch<li>Français<li>Green tea<li>Black tea<li>Español</ul>",
            "<ul><li>TOP 1<li>ALL of it<li>TRYING<li>TOPS<li>ALLOW<li>A kettle</ul>",
            "<table><tr><td>EUR<td>GBP<td>USD<td>CHF<td>SEK</table>",
        ] {
            assert!(!page(list).trim_end().ends_with("minutes."), "{list}");
        }
        let rates = "<ul><li>AED: 4.1<li>GBP: 0.8<li>AUD: 1.6<li>KWD: 0.3<li>SAR: 4.2</ul>";
        assert!(left(rates).contains("AED"), "all of the page");
    }
}
