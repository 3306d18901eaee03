//! What a page says of itself in more than one place: title without the site's name, author, dates, description.
//!
//! `metadata` reads the head as it is written. This fills what the head leaves open from the page's linked data, its
//! microdata and its byline, in this order; what the head says is never replaced, but for the title, of which the site's
//! name is taken off.

use html5ever::local_name;
use serde_json::{Map, Value};

use super::things::{Thing, Things, linked};
use super::tree::{Dom, Tag};

/// What stands between a title and the name of its site.
const SEPARATORS: [&str; 12] = [" | ", " - ", " – ", " — ", " · ", " • ", " :: ", " » ", " « ", " : ", " / ", " ~ "];
/// Longest name of an author, characters.
const LONGEST_NAME: usize = 120;
/// Nodes of a byline that are looked at.
const MOST_LOOKS: usize = 40;
/// Types of linked data that are written by somebody.
const WRITTEN: [&str; 6] = ["Article", "BlogPosting", "Posting", "Report", "Question", "Review"];
/// Names of `meta` elements that name the author.
const AUTHORS: [&str; 7] =
    ["article:author", "parsely-author", "sailthru.author", "dc.creator", "dcterms.creator", "byl", "citation_author"];
/// Names of `meta` elements that tell when a page was published.
const PUBLISHED: [&str; 11] = [
    "date",
    "pubdate",
    "publish-date",
    "publishdate",
    "parsely-pub-date",
    "sailthru.date",
    "dc.date.issued",
    "dcterms.date",
    "dc.date",
    "citation_publication_date",
    "datePublished",
];
/// The same of when it was changed.
const MODIFIED: [&str; 5] = ["og:updated_time", "last-modified", "dcterms.modified", "lastmod", "dateModified"];

/// Adds what the page tells elsewhere than in its head.
pub fn complete(dom: &Dom, url: &url::Url, map: &mut Map<String, Value>) {
    let linked: Vec<Value> = linked::read(dom).collect();
    let things = Things::new(&linked);
    let top = things.top();
    let written: Vec<&Thing> = top.iter().copied().filter(|thing| is_one_of(thing, &WRITTEN)).collect();
    let heading = heading(dom);
    if let Some(title) = map.get("title").and_then(Value::as_str) {
        let mut sites: Vec<String> = ["ogSiteName", "application-name", "apple-mobile-web-app-title"]
            .iter()
            .filter_map(|key| text(map, key))
            .collect();
        for thing in &top {
            if is_one_of(thing, &["WebSite", "Organization", "Corporation", "OnlineStore"]) {
                sites.extend(things.text(thing, "name", 200));
            }
            sites.extend(things.text(thing, "publisher", 200));
        }
        let short = without_site(title, heading.as_deref(), &sites, url);
        if short != title {
            map.insert("title".to_owned(), short.into());
        }
    }
    set(map, "author", |map| {
        authors(&things, &written)
            .or_else(|| AUTHORS.iter().find_map(|key| text(map, key)).filter(|name| is_name(name)))
            .or_else(|| byline(dom))
    });
    let dated = |name: &str| written.iter().find_map(|thing| things.text(thing, name, 64));
    set(map, "publishedTime", |map| {
        dated("datePublished")
            .or_else(|| PUBLISHED.iter().find_map(|key| text(map, key)))
            .filter(|date| is_date(date))
            .or_else(|| property_date(dom, "datePublished"))
            .or_else(|| shown_date(dom))
    });
    set(map, "modifiedTime", |map| {
        dated("dateModified")
            .or_else(|| MODIFIED.iter().find_map(|key| text(map, key)))
            .filter(|date| is_date(date))
            .or_else(|| property_date(dom, "dateModified"))
    });
    set(map, "description", |map| {
        let told = |thing: &&Thing| things.text(thing, "description", 2000);
        text(map, "ogDescription")
            .or_else(|| text(map, "twitter:description"))
            .or_else(|| written.iter().find_map(told))
    });
    set(map, "language", |map| text(map, "ogLocale").map(|locale| locale.replace('_', "-")));
}

/// Sets a key that is not there.
fn set(map: &mut Map<String, Value>, key: &str, make: impl FnOnce(&Map<String, Value>) -> Option<String>) {
    if map.contains_key(key) {
        return;
    }
    let value = make(map).map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "));
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        map.insert(key.to_owned(), value.into());
    }
}

/// The first value of a key.
fn text(map: &Map<String, Value>, key: &str) -> Option<String> {
    let value = match map.get(key)? {
        Value::Array(list) => list.first()?,
        value => value,
    };
    value.as_str().map(str::to_owned).filter(|text| !text.is_empty())
}

fn is_one_of(thing: &Thing, ends: &[&str]) -> bool {
    let is = |value: &Value| value.as_str().is_some_and(|kind| ends.iter().any(|end| kind.ends_with(end)));
    match thing.get("@type") {
        Some(Value::Array(list)) => list.iter().any(is),
        Some(value) => is(value),
        None => false,
    }
}

/// Letters and digits in lower case.
fn compact(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The text of the page's only first heading.
fn heading(dom: &Dom) -> Option<String> {
    let mut found = (0..dom.len()).filter(|&i| dom.tag(i) == Tag::H1);
    let first = found.next()?;
    let text = dom.text_of(first).split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty() && found.next().is_none()).then_some(text)
}

/// A title without the site's name at its end or beginning.
fn without_site<'t>(title: &'t str, heading: Option<&str>, sites: &[String], url: &url::Url) -> &'t str {
    let host = url.host_str().unwrap_or("").trim_start_matches("www.");
    let labels: Vec<String> = host.split('.').map(compact).filter(|label| label.len() > 2).collect();
    let whole_host = compact(host);
    let sites: Vec<String> = sites.iter().map(|site| compact(site)).filter(|site| !site.is_empty()).collect();
    let heading = heading.map(compact).filter(|text| text.len() > 2);
    let is_site = |part: &str| {
        let part = compact(part);
        !part.is_empty()
            && (sites.iter().any(|site| {
                *site == part
                    || part.len() > 3 && (site.contains(&part) || part.contains(site.as_str()) && site.len() > 3)
            }) || labels.iter().any(|label| *label == part || part.len() > 4 && label.contains(&part))
                || part == whole_host)
    };
    let mut title = title;
    // A title may name a section and the site.
    for _ in 0..3 {
        if heading.as_ref().is_some_and(|heading| compact(title) == *heading) {
            break;
        }
        let last = SEPARATORS.iter().filter_map(|s| title.rfind(*s).map(|at| (at, s.len()))).max();
        let first = SEPARATORS.iter().filter_map(|s| title.find(*s).map(|at| (at, s.len()))).min();
        let is_heading = |rest: &str| heading.as_ref().is_some_and(|h| *h == compact(rest));
        match (first, last) {
            (_, Some((at, _))) if is_heading(&title[..at]) => title = title[..at].trim(),
            (Some((at, wide)), _) if is_heading(&title[at + wide..]) => title = title[at + wide..].trim(),
            (_, Some((at, wide))) if is_site(&title[at + wide..]) => title = title[..at].trim(),
            (Some((at, wide)), _) if is_site(&title[..at]) => title = title[at + wide..].trim(),
            // A section between title and site: what is left begins with the heading.
            (Some((at, _)), _) if is_heading(&title[..at]) => title = title[..at].trim(),
            _ => break,
        }
    }
    title
}

/// Whether a text can be somebody's name: no address, no sentence.
fn is_name(text: &str) -> bool {
    let count = text.chars().count();
    (2..=LONGEST_NAME).contains(&count)
        && !text.contains("://")
        && !text.starts_with('@')
        && text.chars().any(char::is_alphabetic)
}

fn authors(things: &Things<'_>, written: &[&Thing]) -> Option<String> {
    for thing in written {
        let mut names: Vec<String> = Vec::new();
        for value in things.values(thing, "author").iter().take(12) {
            let name = things.text_of(value, 400).map(|name| name.trim().to_owned()).filter(|name| is_name(name));
            if let Some(name) = name
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        if !names.is_empty() {
            return Some(names.join(", "));
        }
    }
    None
}

/// Whether a text begins or ends like a date: it has a year.
fn is_date(text: &str) -> bool {
    let digits: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).collect();
    digits
        .iter()
        .any(|d| (d.len() == 4 || d.len() == 8 || d.len() == 14) && (d.starts_with("19") || d.starts_with("20")))
}

/// The date that an element with this `itemprop` tells.
fn property_date(dom: &Dom, property: &str) -> Option<String> {
    (0..dom.len())
        .filter(|&i| {
            dom.tag(i).is_element()
                && dom
                    .attr(i, &local_name!("itemprop"))
                    .is_some_and(|p| p.split_ascii_whitespace().any(|p| p == property))
        })
        .take(4)
        .find_map(|i| {
            ["content", "datetime"]
                .iter()
                .find_map(|name| dom.attr_named(i, name))
                .map(str::to_owned)
                .filter(|date| is_date(date))
        })
}

/// The date of a `time` element that stands at the article: the first one with a date in its attribute, not in a list of
/// other articles.
fn shown_date(dom: &Dom) -> Option<String> {
    let h1 = (0..dom.len()).find(|&i| dom.tag(i) == Tag::H1)?;
    // Before the heading there may be a line with the date, and hardly anything else.
    let from = h1.saturating_sub(MOST_LOOKS);
    let to = (dom.end(h1) + 2 * MOST_LOOKS).min(dom.len());
    (from..to)
        .filter(|&i| dom.tag(i) == Tag::Time)
        .find_map(|i| dom.attr(i, &local_name!("datetime")).map(str::to_owned).filter(|date| is_date(date)))
}

/// The name in the page's byline.
fn byline(dom: &Dom) -> Option<String> {
    let h1 = (0..dom.len()).find(|&i| dom.tag(i) == Tag::H1);
    let near = h1.map_or(0..0, |h1| h1.saturating_sub(2 * MOST_LOOKS)..(dom.end(h1) + 4 * MOST_LOOKS).min(dom.len()));
    let tidy = |i: usize| {
        let text = dom.text_of(i).split_whitespace().collect::<Vec<_>>().join(" ");
        let low = text.to_lowercase();
        let cut = ["written by ", "posted by ", "by ", "von ", "par ", "por ", "author: ", "by: "]
            .iter()
            .find(|w| low.starts_with(*w))
            .map_or(0, |w| w.len());
        text.get(cut..).unwrap_or("").trim().to_owned()
    };
    let is_author = |i: usize| {
        let rel = dom.attr(i, &local_name!("rel")).unwrap_or("");
        rel.split_ascii_whitespace().any(|r| r == "author") || dom.attr(i, &local_name!("itemprop")) == Some("author")
    };
    let is_named = |i: usize| {
        let class = dom.class(i).to_ascii_lowercase();
        class.split_ascii_whitespace().any(|c| {
            matches!(
                c,
                "author"
                    | "byline"
                    | "author-name"
                    | "byline-name"
                    | "byline__author"
                    | "post-author"
                    | "entry-author"
                    | "author__name"
                    | "article-author"
                    | "fn"
            )
        })
    };
    let fits = |i: usize| {
        Some(tidy(i)).filter(|name| is_name(name) && name.split(' ').count() <= 6 && !name.contains([':', '|', '•']))
    };
    near.clone()
        .filter(|&i| dom.tag(i).is_element() && is_author(i))
        .find_map(fits)
        .or_else(|| near.filter(|&i| dom.tag(i).is_element() && is_named(i)).find_map(fits))
}

#[cfg(test)]
mod tests {
    use super::super::{address::Addresses, guard, metadata};
    use super::*;

    fn about(html: &str) -> Map<String, Value> {
        let url = url::Url::parse("https://www.harbour-news.test/2024/boats").expect("a URL");
        let dom = guard::parse(html).dom;
        let mut map = metadata::of_page(&dom, &Addresses::of_page(&dom, &url));
        complete(&dom, &url, &mut map);
        map
    }

    fn title(html: &str) -> String {
        about(html)["title"].as_str().expect("a title").to_owned()
    }

    #[test]
    fn the_sites_name_is_taken_off_a_title() {
        for (html, expected) in [
            ("<title>Boats return | Harbour News</title>", "Boats return"),
            (
                "<title>Harbour News: late - Boats return</title><meta property=og:site_name content='Harbour News: late'>",
                "Boats return",
            ),
            ("<title>Boats return - A day at sea</title>", "Boats return - A day at sea"),
            ("<title>Boats return - Sea | Tides & Co</title><h1>Boats return</h1>", "Boats return"),
            ("<title>Boats - return</title><h1>Boats - return</h1>", "Boats - return"),
            ("<title>Boats return — T&amp;C</title><meta property=og:site_name content='T&amp;C'>", "Boats return"),
            ("<title>Harbour News</title>", "Harbour News"),
            (
                "<title>Boats return · Tides</title><script type=application/ld+json>{\"@type\":\"WebSite\",\"name\":\"Tides\"}</script>",
                "Boats return",
            ),
        ] {
            assert_eq!(title(html), expected, "{html}");
        }
    }

    #[test]
    fn author_and_dates_come_from_linked_data_where_the_head_is_silent() {
        let data = r#"<script type=application/ld+json>{"@graph":[{"@type":"NewsArticle","author":[{"@id":"a"},{"name":"Bo Ek"}],
            "datePublished":"2024-02-03T10:00:00Z","dateModified":"2024-03-01"},{"@id":"a","@type":"Person","name":"Al Dee"}]}</script>"#;
        let map = about(data);
        assert_eq!(map["author"], "Al Dee, Bo Ek");
        assert_eq!(
            (&map["publishedTime"], &map["modifiedTime"]),
            (&"2024-02-03T10:00:00Z".into(), &"2024-03-01".into())
        );
        let map = about(&format!(
            "{data}<meta name=author content=Head><meta property=article:published_time content=2020-01-01>"
        ));
        assert_eq!((&map["author"], &map["publishedTime"]), (&"Head".into(), &"2020-01-01".into()));
    }

    #[test]
    fn a_byline_is_read_near_the_heading_and_nowhere_else() {
        let map = about("<h1>Boats</h1><p class=byline>By Al Dee</p><time datetime=2024-05-06>6 May</time><p>Text</p>");
        assert_eq!((&map["author"], &map["publishedTime"]), (&"Al Dee".into(), &"2024-05-06".into()));
        let far = format!("<h1>Boats</h1>{}<p class=byline>By Al Dee</p>", "<p>text</p>".repeat(200));
        assert_eq!(about(&far).get("author"), None);
        assert_eq!(about("<h1>B</h1><a rel=author href=/a>https://x.test/a</a>").get("author"), None);
    }

    #[test]
    fn no_author_and_no_date_are_made_up() {
        let map = about(
            r#"<script type=application/ld+json>{"@type":"Product","name":"x","author":"y","datePublished":"2024-01-01"}</script><h1>x</h1>"#,
        );
        assert_eq!((map.get("author"), map.get("publishedTime")), (None, None));
    }
}
