//! What a page says about itself: title, language, `meta` elements, icon.

use std::collections::HashMap;
use std::sync::LazyLock;

use html5ever::local_name;
use serde_json::{Map, Value};

use super::address::Addresses;
use super::tree::{Dom, Tag};

/// Keys that only the service writes. Clients read them by names of their own making (`num_pages`, `numPages`), so no
/// spelling of them is taken from a page: see [`folded`].
const SERVICE: &[&str] = &[
    "sourceURL",
    "url",
    "statusCode",
    "error",
    "scrapeId",
    "contentType",
    "proxyUsed",
    "cacheState",
    "cachedAt",
    "creditsUsed",
    "concurrencyLimited",
    "concurrencyQueueDurationMs",
    "numPages",
    "wordCount",
    "totalPages",
    "timezone",
    "readBy",
    "templateChars",
];
/// Keys that are read from elements of the page; a `meta` of that name, in any spelling, says nothing.
const ELEMENTS: &[&str] = &["title", "language", "favicon"];
/// Most keys taken from a page.
const MAX_KEYS: usize = 300;
/// Longest value, bytes; longer ones are cut.
const MAX_VALUE: usize = 16 << 10;
/// Longest name of a key, bytes; longer ones are left out.
const MAX_NAME: usize = 200;
/// Most bytes of values taken from a page.
const MAX_BYTES: usize = 1 << 20;
/// Most values of one repeated key.
const MAX_REPEATS: usize = 200;

/// Names of `meta` elements and their well-known keys, next to which a name with a mark in it is kept too.
const KNOWN: &[(&str, &str)] = &[
    ("description", "description"),
    ("keywords", "keywords"),
    ("robots", "robots"),
    ("og:title", "ogTitle"),
    ("og:description", "ogDescription"),
    ("og:url", "ogUrl"),
    ("og:image", "ogImage"),
    ("og:audio", "ogAudio"),
    ("og:determiner", "ogDeterminer"),
    ("og:locale", "ogLocale"),
    ("og:locale:alternate", "ogLocaleAlternate"),
    ("og:site_name", "ogSiteName"),
    ("og:video", "ogVideo"),
    ("article:section", "articleSection"),
    ("article:tag", "articleTag"),
    ("article:published_time", "publishedTime"),
    ("article:modified_time", "modifiedTime"),
    ("dcterms.keywords", "dcTermsKeywords"),
    ("dc.description", "dcDescription"),
    ("dc.subject", "dcSubject"),
    ("dcterms.subject", "dcTermsSubject"),
    ("dcterms.audience", "dcTermsAudience"),
    ("dc.type", "dcType"),
    ("dcterms.type", "dcTermsType"),
    ("dc.date", "dcDate"),
    ("dc.date.created", "dcDateCreated"),
    ("dcterms.created", "dcTermsCreated"),
];

/// A name without its spelling: `num_pages`, `numPages` and `Num-Pages` are one.
fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What becomes of a `meta` element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// A well-known key, by its usual name.
    Known(&'static str),
    /// The same in another spelling (`og_title`), which some client would take for the key itself: it must have the key's
    /// form, and the spelling is not kept.
    Respelled(&'static str),
    /// Not the page's to say.
    Reserved,
    Other,
}

/// The meanings of names, whose table is made once.
fn meaning(name: &str) -> Meaning {
    static SPELLINGS: LazyLock<HashMap<String, Meaning>> = LazyLock::new(|| {
        let reserved = SERVICE.iter().chain(ELEMENTS).map(|key| (folded(key), Meaning::Reserved));
        let known = KNOWN.iter().map(|(_, key)| (folded(key), Meaning::Respelled(key)));
        known.chain(reserved).collect()
    });
    let low = name.to_ascii_lowercase();
    if let Some((_, key)) = KNOWN.iter().find(|(known, _)| *known == low) {
        return Meaning::Known(key);
    }
    SPELLINGS.get(&folded(name)).copied().unwrap_or(Meaning::Other)
}

/// Joins whitespace and cuts an over-long value.
fn tidy(value: &str) -> String {
    let value = &value[..value.floor_char_boundary(MAX_VALUE.min(value.len()))];
    let mut out = String::with_capacity(value.len());
    for word in value.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

struct Keys {
    map: Map<String, Value>,
    bytes: usize,
}

/// The icon that a `link` element names, and how good it is: an icon of the page is better than one for a phone's menu.
fn icon_of(dom: &Dom, addresses: &Addresses, link: usize) -> Option<(u8, String)> {
    let rel = dom.attr(link, &local_name!("rel")).unwrap_or("").to_ascii_lowercase();
    let rank = match rel.trim() {
        "icon" | "shortcut icon" => 2,
        "apple-touch-icon" | "apple-touch-icon-precomposed" | "mask-icon" => 1,
        r if r.split_ascii_whitespace().any(|w| w == "icon") => 2,
        _ => return None,
    };
    let url = addresses.resolve(dom.attr(link, &local_name!("href"))?)?;
    (!url.starts_with("data:")).then_some((rank, url))
}

impl Keys {
    /// Adds what a `meta` element with this content says, if it is named.
    fn add_meta(&mut self, dom: &Dom, addresses: &Addresses, meta: usize, content: &str) {
        let name = [local_name!("name"), local_name!("property"), local_name!("itemprop")];
        let name = name.iter().find_map(|n| dom.attr(meta, n)).map(str::trim);
        let Some(name) = name.filter(|name| name.len() <= MAX_NAME) else { return };
        match meaning(name) {
            Meaning::Known(key) => {
                self.add_known(key, content, addresses);
                if name.contains([':', '.']) && key != "ogLocaleAlternate" {
                    self.add(name, content);
                }
            }
            Meaning::Respelled(key) => self.add_known(key, content, addresses),
            Meaning::Reserved => {}
            Meaning::Other => self.add(name, content),
        }
    }

    /// Adds to a list, which clients expect even of one entry.
    fn push(&mut self, key: &str, value: &str) {
        let value = tidy(value);
        if value.is_empty() || self.bytes > MAX_BYTES {
            return;
        }
        self.bytes += value.len();
        let list = self.map.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list
            && list.len() < MAX_REPEATS
        {
            list.push(Value::String(value));
        }
    }

    /// Adds what a well-known key says.
    fn add_known(&mut self, key: &'static str, value: &str, addresses: &Addresses) {
        match key {
            "ogLocaleAlternate" => self.push(key, value),
            // Its value there is an address.
            "ogImage" | "ogUrl" | "ogVideo" | "ogAudio" if !value.trim().is_empty() => {
                self.add(key, addresses.resolve(value).as_deref().unwrap_or(value));
            }
            _ => self.add(key, value),
        }
    }

    /// Sets a key, or makes its value a list when the page repeats it.
    fn add(&mut self, key: &str, value: &str) {
        if key.is_empty() || key.len() > MAX_NAME || self.bytes > MAX_BYTES {
            return;
        }
        let value = tidy(value);
        if value.is_empty() {
            return;
        }
        self.bytes += value.len();
        let room = self.map.len() < MAX_KEYS;
        match self.map.get_mut(key) {
            None if room => {
                self.map.insert(key.to_owned(), Value::String(value));
            }
            None => {}
            Some(Value::Array(list))
                if list.len() < MAX_REPEATS && !list.iter().any(|v| v.as_str() == Some(&value)) =>
            {
                list.push(Value::String(value));
            }
            Some(Value::Array(_)) => {}
            Some(old) if old.as_str() != Some(&value) => *old = Value::Array(vec![old.take(), Value::String(value)]),
            Some(_) => {}
        }
    }
}

/// The page-made keys of a document's metadata.
pub fn of_page(dom: &Dom, addresses: &Addresses) -> Map<String, Value> {
    let mut keys = Keys { map: Map::new(), bytes: 0 };
    let mut icon: Option<(u8, String)> = None;
    let mut language = None;
    let mut title = None;
    for i in 0..dom.len() {
        match dom.tag(i) {
            Tag::Title if title.is_none() => {
                title = Some(tidy(&dom.text_of(i))).filter(|t| !t.is_empty());
                if let Some(t) = &title {
                    keys.add("title", t);
                }
            }
            Tag::Html if language.is_none() => {
                language = dom
                    .attr(i, &local_name!("lang"))
                    .or_else(|| dom.attr(i, &local_name!("xml:lang")))
                    .map(str::to_owned);
            }
            Tag::Link => {
                let best = icon.as_ref().map_or(0, |icon| icon.0);
                icon = icon_of(dom, addresses, i).filter(|(rank, _)| *rank > best).or(icon);
            }
            Tag::Meta => {
                let Some(content) = dom.attr(i, &local_name!("content")) else { continue };
                if language.is_none()
                    && dom
                        .attr(i, &local_name!("http-equiv"))
                        .is_some_and(|h| h.eq_ignore_ascii_case("content-language"))
                {
                    language = Some(content.to_owned());
                }
                keys.add_meta(dom, addresses, i, content);
            }
            _ => {}
        }
    }
    if !keys.map.contains_key("title")
        && let Some(og) = keys.map.get("ogTitle").cloned()
    {
        keys.map.insert("title".to_owned(), og);
    }
    // Several descriptions read as one.
    if let Some(Value::Array(list)) = keys.map.get("description") {
        let joined = list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
        keys.map.insert("description".to_owned(), Value::String(joined));
    }
    if let Some(language) = language.map(|l| tidy(&l)).filter(|l| !l.is_empty()) {
        keys.map.insert("language".to_owned(), Value::String(language));
    }
    if let Some((_, url)) = icon {
        keys.map.insert("favicon".to_owned(), Value::String(url));
    }
    keys.map
}

/// The page's own idea of its address (`link rel=canonical`).
pub fn canonical(dom: &Dom, addresses: &Addresses) -> Option<url::Url> {
    (0..dom.len())
        .filter(|&i| dom.tag(i) == Tag::Link)
        .filter(|&i| dom.attr(i, &local_name!("rel")).is_some_and(|r| r.trim().eq_ignore_ascii_case("canonical")))
        .find_map(|i| addresses.resolve(dom.attr(i, &local_name!("href"))?))
        .and_then(|u| url::Url::parse(&u).ok())
        .filter(|u| matches!(u.scheme(), "http" | "https"))
}

/// Where a `meta http-equiv=refresh` goes, and after how many seconds. A refresh without an address does
/// not count, nor one for readers without scripts: it leads away from the page to a note about them.
pub fn refresh(dom: &Dom, addresses: &Addresses) -> Option<(u32, url::Url)> {
    let content = (0..dom.len())
        .filter(|&i| dom.tag(i) == Tag::Meta)
        .filter(|&i| dom.attr(i, &local_name!("http-equiv")).is_some_and(|h| h.trim().eq_ignore_ascii_case("refresh")))
        .filter(|&i| !dom.ancestors(i).any(|above| matches!(dom.tag(above), Tag::Noscript | Tag::Template)))
        .find_map(|i| dom.attr(i, &local_name!("content")))?;
    refresh_to(content, |target| addresses.resolve(target))
}

/// The same of what it says, which a `Refresh` header says, too. `resolve` makes an address of a target.
pub fn refresh_to(content: &str, resolve: impl FnOnce(&str) -> Option<String>) -> Option<(u32, url::Url)> {
    let content = content.trim();
    let digits = content.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(content.len());
    let seconds = content[..digits].split('.').next().and_then(|s| s.parse::<u32>().ok()).unwrap_or(0);
    let rest = content[digits..].trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ';' | ','));
    let target = match rest.get(..3) {
        Some(url) if url.eq_ignore_ascii_case("url") => rest[3..].trim_start().strip_prefix('=')?.trim(),
        _ => rest,
    };
    let target = target.trim_matches(['"', '\'']).trim();
    if target.is_empty() {
        return None;
    }
    url::Url::parse(&resolve(target)?).ok().filter(|u| matches!(u.scheme(), "http" | "https")).map(|u| (seconds, u))
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;
    use serde_json::json;
    use url::Url;

    fn page(html: &str) -> (Dom, Addresses) {
        let dom = guard::parse(html).dom;
        let addresses = Addresses::of_page(&dom, &Url::parse("https://x.test/p/").expect("a URL"));
        (dom, addresses)
    }

    #[test]
    fn known_repeated_and_other_keys_are_read() {
        let (dom, addresses) = page(
            "<html lang=de><head><title> A\n b </title><meta name=Description content=d><meta property=og:locale:alternate content=fr_FR>\
             <meta property=og:image content=/i.png><meta property=article:tag content=x><meta property=article:tag content=y>\
             <meta name=theme-color content=#fff><link rel='shortcut icon' href=/f.ico>",
        );
        let m = of_page(&dom, &addresses);
        assert_eq!(m["title"], "A b");
        assert_eq!(m["description"], "d");
        assert_eq!(m["language"], "de");
        assert_eq!(m["ogLocaleAlternate"], json!(["fr_FR"]));
        assert_eq!(m["ogImage"], "https://x.test/i.png");
        assert_eq!(m["articleTag"], json!(["x", "y"]));
        assert_eq!(m["theme-color"], "#fff");
        assert_eq!(m["favicon"], "https://x.test/f.ico");
    }

    /// The ways in which a key's words are written: `numPages`, `num_pages`, `Num-Pages`, `NUM PAGES` and so on.
    fn spellings(key: &str) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut was_upper = true;
        for c in key.chars() {
            if words.is_empty() || (c.is_uppercase() && !was_upper) {
                words.push(String::new());
            }
            was_upper = c.is_uppercase();
            if let Some(word) = words.last_mut() {
                word.push(c.to_ascii_lowercase());
            }
        }
        let capital = |word: &String| word[..1].to_uppercase() + &word[1..];
        let pascal: Vec<String> = words.iter().map(capital).collect();
        let mut out = vec![key.to_owned(), pascal.concat(), words.concat(), words.concat().to_uppercase()];
        for mark in ["_", "-", " ", "."] {
            out.extend([words.join(mark), pascal.join(mark), words.join(mark).to_uppercase()]);
        }
        out
    }

    #[test]
    fn a_page_cannot_set_the_services_own_keys_in_any_spelling() {
        let names: Vec<String> = SERVICE.iter().chain(ELEMENTS).flat_map(|key| spellings(key)).collect();
        assert!(names.contains(&"num_pages".to_owned()) && names.contains(&"Source-Url".to_owned()), "{names:?}");
        for attribute in ["name", "property", "itemprop"] {
            let html: String = names.iter().map(|name| format!("<meta {attribute}='{name}' content=200>")).collect();
            let (dom, addresses) = page(&format!("{html}<meta {attribute}=ok content=1>"));
            assert_eq!(Value::Object(of_page(&dom, &addresses)), json!({"ok": "1"}));
        }
    }

    #[test]
    fn another_spelling_of_a_well_known_key_is_that_key_and_has_its_form() {
        for (_, key) in KNOWN {
            for name in spellings(key).into_iter().filter(|name| !matches!(meaning(name), Meaning::Known(_))) {
                let (dom, addresses) = page(&format!("<meta name='{name}' content=http://x.test/a>"));
                let value = json!("http://x.test/a");
                let value = if *key == "ogLocaleAlternate" { json!([value]) } else { value };
                let mut expected = json!({*key: value});
                if *key == "ogTitle" {
                    // A page without a title has this one.
                    expected["title"] = value;
                }
                assert_eq!(Value::Object(of_page(&dom, &addresses)), expected, "{name}");
            }
        }
    }

    #[test]
    fn refreshes_and_canonical_addresses_are_read() {
        let (dom, addresses) = page("<meta http-equiv=Refresh content=\"5; URL='/next'\"><link rel=canonical href=/c>");
        assert_eq!(
            refresh(&dom, &addresses).map(|(s, u)| (s, u.to_string())),
            Some((5, "https://x.test/next".to_owned()))
        );
        assert_eq!(canonical(&dom, &addresses).map(String::from).as_deref(), Some("https://x.test/c"));
        let (dom, addresses) = page("<meta http-equiv=refresh content=300>");
        assert_eq!(refresh(&dom, &addresses), None);
        // For readers without scripts the page itself is there.
        let (dom, addresses) = page(
            "<head><noscript><meta http-equiv=refresh content='0;url=/nojs'></noscript></head><body><noscript>\
             <meta http-equiv=refresh content='0;url=/nojs'></noscript><p>x",
        );
        assert_eq!(refresh(&dom, &addresses), None);
    }
}
