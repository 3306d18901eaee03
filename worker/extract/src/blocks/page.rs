//! Facts of a whole page: what it says it is, its address, how its text is made up. They tell a shop from a forum.

use std::collections::HashSet;

use html5ever::local_name;

use super::super::measure::Measures;
use super::super::tree::{Dom, Tag};
use super::flag;

/// Words of descriptions that are remembered.
const MOST_WORDS: usize = 4000;

macro_rules! names {
    ($($name:ident),* $(,)?) => {
        /// Names of the facts, in their order.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];
        /// Values of the facts, by name.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Facts { $(pub $name: f32),* }
        impl Facts {
            /// The values in their order.
            pub fn push_to(&self, out: &mut Vec<f32>) {
                $(out.push(self.$name);)*
            }
        }
    };
}

names! {
    page_text, page_links, page_paragraphs, page_items, page_cells, page_code, page_h1, page_h2, page_images,
    says_article, says_product, says_list, says_forum, says_place, says_manual, says_question,
    og_article, og_product, og_website,
    path_depth, path_root, path_words, path_digits, path_date, path_file, path_query,
    path_forum, path_product, path_list, path_manual, path_news, path_service,
    body_single, body_list, body_product, body_home,
    prices, dates, forms, main, articles, noscript,
}

/// What of a page is told once.
#[derive(Debug)]
pub struct Page {
    pub facts: Facts,
    /// Words of the title.
    pub title: HashSet<String>,
    /// Words of what the page's head and its linked data describe it by.
    pub described: HashSet<String>,
}

fn add_words(set: &mut HashSet<String>, text: &str) {
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
        if set.len() >= MOST_WORDS {
            return;
        }
        set.insert(word.to_lowercase());
    }
}

/// Values of a key in JSON text, roughly: good enough to see which of the page's words they hold.
fn values_of<'a>(json: &'a str, key: &str) -> Vec<&'a str> {
    let mut out = Vec::new();
    let mut rest = json;
    while let Some(at) = rest.find(key) {
        rest = &rest[at + key.len()..];
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start).and_then(|r| r.strip_prefix('"'));
        if let Some(value) = value {
            let mut end = 0;
            let bytes = value.as_bytes();
            while end < bytes.len() && bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            out.push(&value[..value.floor_char_boundary(end.min(value.len()))]);
        }
        if out.len() == 8 {
            break;
        }
    }
    out
}

impl Page {
    /// Looks at the whole page.
    pub fn of(dom: &Dom, m: &Measures, url: &url::Url) -> Page {
        let total = m.total().max(1) as f32;
        let mut f = Facts { page_text: total.ln(), page_links: m.link_density(m.body), ..Facts::default() };
        let (mut title, mut described) = (HashSet::new(), HashSet::new());
        for i in 0..dom.len() {
            match dom.tag(i) {
                Tag::Title if title.is_empty() => add_words(&mut title, &dom.text_of(i)),
                Tag::Meta => {
                    let name = dom.attr_named(i, "property").or_else(|| dom.attr_named(i, "name")).unwrap_or("");
                    let content = dom.attr_named(i, "content").unwrap_or("");
                    match name {
                        "og:type" => {
                            let low = content.to_ascii_lowercase();
                            f.og_article = flag(low.contains("article") || low.contains("blog"));
                            f.og_product = flag(low.contains("product"));
                            f.og_website = flag(low.contains("website"));
                        }
                        "description" | "og:description" => add_words(&mut described, content),
                        _ => {}
                    }
                }
                Tag::Script if dom.attr(i, &local_name!("type")).is_some_and(|t| t.contains("ld+json")) => {
                    let text = dom.text_of(i);
                    says(&mut f, &text);
                    for key in ["\"description\"", "\"articleBody\"", "\"text\""] {
                        for value in values_of(&text, key) {
                            add_words(&mut described, value);
                        }
                    }
                }
                Tag::P if m.text[i] > 80 => f.page_paragraphs += (m.text[i] - m.links[i]) as f32 / total,
                Tag::Li => f.page_items += m.text[i] as f32 / total,
                Tag::Td => f.page_cells += m.text[i] as f32 / total,
                Tag::Pre => f.page_code += m.text[i] as f32 / total,
                Tag::H1 => f.page_h1 += 1.0,
                Tag::H2 => f.page_h2 += 1.0,
                Tag::Img => f.page_images += 1.0,
                Tag::Time => f.dates += 1.0,
                Tag::Form => f.forms += 1.0,
                Tag::Main => f.main += m.text[i] as f32 / total,
                Tag::Article => f.articles += 1.0,
                Tag::Noscript => f.noscript += m.text[i] as f32 / total,
                Tag::Text => {
                    let text = dom.text(i);
                    if text.len() < 24 && text.contains(['$', '€', '£', '¥', '₹']) {
                        f.prices += 1.0;
                    }
                }
                _ => {}
            }
        }
        for value in [&mut f.page_h2, &mut f.page_images, &mut f.dates, &mut f.articles, &mut f.prices] {
            *value = (*value + 1.0).ln();
        }
        f.page_items = f.page_items.min(2.0);
        f.page_cells = f.page_cells.min(2.0);
        address(&mut f, url);
        let body = format!("{} {}", dom.class(m.body), dom.attr(m.body, &local_name!("id")).unwrap_or(""));
        let has = |words: &[&str]| words.iter().any(|w| body.contains(w));
        f.body_single = flag(has(&["single", "article", "post-template"]));
        f.body_list = flag(has(&["archive", "category", "collection", "listing", "catalog-category", "tax-"]));
        f.body_product = flag(has(&["product"]));
        f.body_home = flag(has(&["home", "index", "front"]));
        Page { facts: f, title, described }
    }
}

/// What linked data calls the page.
fn says(f: &mut Facts, json: &str) {
    let has = |words: &[&str]| words.iter().any(|w| json.contains(w));
    f.says_article = f.says_article.max(flag(has(&["Article\"", "BlogPosting\""])));
    f.says_product = f.says_product.max(flag(has(&["\"Product\"", "\"ProductGroup\""])));
    f.says_list = f.says_list.max(flag(has(&[
        "\"CollectionPage\"",
        "\"ItemList\"",
        "\"SearchResultsPage\"",
        "\"OfferCatalog\"",
    ])));
    f.says_forum = f.says_forum.max(flag(has(&["DiscussionForumPosting", "\"QAPage\""])));
    f.says_place = f.says_place.max(flag(has(&["LocalBusiness", "\"Service\"", "PostalAddress", "openingHours"])));
    f.says_manual = f.says_manual.max(flag(has(&["TechArticle", "APIReference", "HowTo"])));
    f.says_question = f.says_question.max(flag(has(&["FAQPage", "\"Question\""])));
}

fn address(f: &mut Facts, url: &url::Url) {
    let path = url.path().to_ascii_lowercase();
    let host = url.host_str().unwrap_or("").to_ascii_lowercase();
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    f.path_depth = parts.len() as f32;
    f.path_root = flag(parts.is_empty());
    let last = parts.last().copied().unwrap_or("");
    f.path_words = last.split(['-', '_']).count() as f32;
    f.path_digits = last.bytes().filter(u8::is_ascii_digit).count() as f32;
    f.path_date = flag(parts.iter().any(|p| {
        p.len() == 4 && (p.starts_with("19") || p.starts_with("20")) && p.bytes().all(|b| b.is_ascii_digit())
    }));
    f.path_file = flag(last.contains('.'));
    f.path_query = flag(url.query().is_some());
    let whole = format!("{host}/{path}");
    let has = |words: &[&str]| flag(words.iter().any(|w| whole.contains(w)));
    f.path_forum = has(&[
        "forum",
        "thread",
        "topic",
        "discuss",
        "community",
        "/questions/",
        "viewtopic",
        "board",
        "/comments/",
        "/t/",
        "talk",
    ]);
    f.path_product = has(&["/product", "/p/", "/dp/", "/item", "/prod/", "/course/", "/book"]);
    f.path_list = has(&[
        "/collection",
        "/categor",
        "/c/",
        "/shop",
        "/tag/",
        "/tags/",
        "/search",
        "/browse",
        "/archive",
        "/list",
        "/all",
    ]);
    f.path_manual = has(&[
        "docs",
        "/doc/",
        "/api",
        "/reference",
        "/guide",
        "/manual",
        "/learn",
        "developer",
        "/wiki",
        "/help",
        "readthedocs",
        "/tutorial",
    ]);
    f.path_news = has(&["/news", "/blog", "/article", "/story", "/stories", "/post", "/press", "news."]);
    f.path_service = has(&[
        "/service",
        "/about",
        "/pricing",
        "/contact",
        "/solution",
        "/faq",
        "/review",
        "/testimonial",
        "/team",
        "/program",
    ]);
}
