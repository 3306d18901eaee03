//! Paths, sections and kinds of files to include and to leave out.

use std::ops::Range;

use serde_json::{Map, Value, json};
use url::Url;

use super::line::{Line, is_cue, is_filler};

/// Words behind the name of a section: `blog posts`, `the careers section`.
#[rustfmt::skip]
const HEADS: &[&str] = &[
    "pages", "page", "posts", "post", "articles", "article", "section", "sections", "area", "areas", "part", "parts",
    "directory", "directories", "folder", "folders", "category", "categories", "entries", "stories", "subfolder",
    "subdirectory", "path", "paths", "content", "urls", "links", "listings",
];
/// Names of sections that stand alone.
#[rustfmt::skip]
const SECTIONS: &[&str] = &[
    "blog", "blogs", "docs", "documentation", "news", "pricing", "careers", "jobs", "faq", "faqs", "changelog",
    "forum", "forums", "press", "wiki", "tutorials", "tutorial", "guides", "guide", "api", "shop", "store", "login",
    "admin", "cart", "checkout", "account", "accounts", "tags", "archive", "archives", "authors", "terms", "privacy",
    "comments", "support", "help", "products", "events", "team", "legal", "about", "contact", "research",
    "publications", "recipes", "reviews", "category", "categories", "examples", "reference", "newsroom", "podcast",
    "webinars",
];
/// Words that stand before a section's head without naming one.
#[rustfmt::skip]
const VAGUE: &[&str] = &[
    "web", "individual", "single", "main", "landing", "new", "old", "other", "first", "last", "top", "latest",
    "recent", "next", "previous", "relevant", "important", "more", "most", "few", "many", "several", "different",
    "same", "such", "start", "home", "internal", "external", "child", "sub", "linked", "product's", "interesting",
    "useful", "certain", "specific", "particular", "matching", "broken", "unique", "actual", "real", "whole",
    "entire", "full", "long", "short",
];

/// Reads what it knows into `options` and takes it out of the line.
pub fn read(line: &mut Line, url: &Url, options: &mut Map<String, Value>, notes: &mut Vec<String>) {
    take_start(line);
    let mut items = Vec::new();
    let mut at = 0;
    while at < line.tokens().len() {
        match item(line, at, url, notes) {
            Some(item) => {
                at = item.range.end;
                line.take(item.range.clone());
                items.push(item);
            }
            None => at += 1,
        }
    }
    let (mut include, mut exclude) = (Vec::new(), Vec::new());
    for item in items {
        let only = line.form(Some(item.range.end)) == "only";
        let unwanted = !only && line.is_negative(item.range.start) == Some(true);
        let list = if unwanted { &mut exclude } else { &mut include };
        if !list.contains(&item.pattern) {
            list.push(item.pattern);
        }
        // A path beside the start page's own is reached only when the crawl may leave it.
        let is_outside = item.absolute.is_some_and(|path| !path.starts_with(url.path().trim_end_matches('/')));
        if !unwanted && is_outside {
            options.entry("crawlEntireDomain").or_insert(json!(true));
        }
    }
    for (name, list) in [("includePaths", include), ("excludePaths", exclude)] {
        if !list.is_empty() {
            options.insert(name.to_owned(), json!(list));
        }
    }
}

/// A part of the site.
struct Item {
    range: Range<usize>,
    pattern: String,
    /// Where it begins, if that is known.
    absolute: Option<String>,
}

/// `Starting at /docs` repeats the start page: it narrows nothing.
fn take_start(line: &mut Line) {
    for at in 0..line.tokens().len() {
        let (word, next) = (line.form(Some(at)).to_owned(), line.form(Some(at + 1)).to_owned());
        let is_start = matches!(word.as_str(), "start" | "starting" | "begin" | "beginning" | "starts")
            && matches!(next.as_str(), "at" | "from" | "on" | "with");
        let target = at + if line.form(Some(at + 2)) == "the" { 3 } else { 2 };
        if is_start && line.tokens().get(target).is_some_and(|token| token.is_name()) {
            line.take(at..target + 1);
        }
    }
}

fn item(line: &mut Line, at: usize, url: &Url, notes: &mut Vec<String>) -> Option<Item> {
    let token = &line.tokens()[at];
    if line.is_taken(at) {
        return None;
    }
    if token.is_name() {
        let text = token.text().to_owned();
        return named(line, at, &text, url, notes);
    }
    if !token.is_word() {
        return None;
    }
    let word = token.form();
    if is_own_host(word, url) {
        line.take(at..at + 1);
        return None;
    }
    if let Some(item) = files(line, at) {
        return Some(item);
    }
    let span = phrase(line, at)?;
    let words: Vec<&str> = line.tokens()[span.clone()].iter().map(|token| token.form()).collect();
    let is_head = |word: &str| HEADS.contains(&word);
    // In `blog posts` the last word says what they are; the words before it name the section.
    let names: Vec<&str> = words.iter().copied().filter(|word| !is_head(word)).collect();
    (!names.is_empty()).then(|| Item { range: span, pattern: section(&names), absolute: None })
}

/// The words of a section that begins at `at`: up to two names and a head, or a name that stands alone or in a list
/// before a head (`news, events and blog pages`).
fn phrase(line: &Line, at: usize) -> Option<Range<usize>> {
    let is_free = |i: usize| line.tokens().get(i).is_some_and(|token| token.is_word()) && !line.is_taken(i);
    let is_name = |i: usize| {
        let word = line.form(Some(i));
        is_free(i)
            && !VAGUE.contains(&word)
            && !is_cue(word)
            && (!is_filler(word) || SECTIONS.contains(&word))
            && !HEADS.contains(&word)
    };
    if !is_name(at) {
        return None;
    }
    let is_head = |i: usize| is_free(i) && HEADS.contains(&line.form(Some(i)));
    // "about" and "contact" are names only where a page is meant.
    let word = line.form(Some(at));
    if is_head(at + 1) {
        return Some(at..at + 2);
    }
    if is_name(at + 1) && is_head(at + 2) {
        return Some(at..at + 3);
    }
    if matches!(word, "about" | "help") {
        return None;
    }
    if SECTIONS.contains(&word) {
        return Some(at..at + 1);
    }
    // A member of a list whose last one has a head.
    let mut next = at + 1;
    while next < line.tokens().len() && next < at + 12 {
        let token = &line.tokens()[next];
        let joins = token.is_comma() || matches!(token.form(), "and" | "or");
        if !joins {
            return None;
        }
        while line
            .tokens()
            .get(next)
            .is_some_and(|token| token.is_comma() || matches!(token.form(), "and" | "or" | "the"))
        {
            next += 1;
        }
        if !is_name(next) {
            return None;
        }
        if is_head(next + 1) {
            return Some(at..at + 1);
        }
        next += 1;
    }
    None
}

/// A path, an address or a quotation.
fn named(line: &mut Line, at: usize, text: &str, url: &Url, notes: &mut Vec<String>) -> Option<Item> {
    let end = at + 1 + usize::from(HEADS.contains(&line.form(Some(at + 1))));
    let mut path = text.to_owned();
    if let Some((scheme, rest)) = text.split_once("://") {
        let (host, rest) =
            rest.split_once('/').map_or((rest, String::new()), |(host, rest)| (host, format!("/{rest}")));
        line.take(at..end);
        if !is_own_host(host, url) {
            notes.push(format!("{scheme}://{host} is another site: it was not used."));
            return None;
        }
        path = rest;
    } else if let Some((host, rest)) = text.split_once('/')
        && !host.is_empty()
        && is_own_host(host, url)
    {
        path = format!("/{rest}");
    }
    if path.trim_matches('/').is_empty() {
        line.take(at..end);
        return None;
    }
    if !path.contains('/') && !path.contains('*') {
        // A quotation without a slash names a section.
        let names: Vec<String> = path.split_whitespace().map(str::to_lowercase).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        return (names.len() <= 3).then(|| Item { range: at..end, pattern: section(&names), absolute: None });
    }
    if path.contains(char::is_whitespace) {
        return None;
    }
    let absolute = path.starts_with('/').then(|| path.trim_end_matches(['*', '/']).to_owned());
    Some(Item { range: at..end, pattern: path_pattern(&path), absolute })
}

fn is_own_host(word: &str, url: &Url) -> bool {
    let bare = |host: &str| host.trim_start_matches("www.").to_lowercase();
    let own = bare(url.host_str().unwrap_or_default());
    let word = bare(word.trim_end_matches("'s"));
    let word = word.split(':').next().unwrap_or_default();
    !own.is_empty() && word == own
}

/// `/blog`, `/docs/*`, `*.pdf`, `docs/api` as a pattern.
fn path_pattern(path: &str) -> String {
    let is_anchored = path.starts_with('/');
    let has_stars = path.contains('*');
    let is_file = path.rsplit('/').next().is_some_and(|file| file.contains('.') && !file.ends_with('.'));
    let trimmed = path.trim_end_matches('/');
    // Stars in a row are one.
    let pieces: Vec<String> = trimmed.split('*').map(regex::escape).collect();
    let mut body = String::new();
    for (n, piece) in pieces.iter().enumerate() {
        if n > 0 && !body.ends_with(".*") {
            body.push_str(".*");
        }
        body.push_str(piece);
    }
    if !is_anchored && body.starts_with(".*") {
        body = body[2..].to_owned();
    } else if !is_anchored && !body.starts_with('/') {
        body.insert(0, '/');
    }
    let start = if is_anchored { "^" } else { "" };
    let end = match (has_stars && body.ends_with(".*"), is_file) {
        (true, _) => "$",
        (false, true) => "$",
        (false, false) => "(/.*)?$",
    };
    format!("{start}{body}{end}")
}

/// A section by its name, at any depth: `/case[-_]?stud(y|ies)([./].*)?$`.
fn section(names: &[&str]) -> String {
    let known = match names {
        ["docs" | "documentation" | "doc"] => Some("(docs?|documentation)".to_owned()),
        ["faq" | "faqs"] => Some("faqs?".to_owned()),
        ["help" | "support"] => Some("(help|support)".to_owned()),
        _ => None,
    };
    let body = known.unwrap_or_else(|| {
        let mut parts: Vec<String> = names.iter().map(|name| regex::escape(name.trim_end_matches("'s"))).collect();
        if let Some(last) = parts.last_mut() {
            *last = plural(last);
        }
        parts.join("[-_]?")
    });
    format!("/{body}([./].*)?$")
}

/// Singular and plural.
fn plural(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ies") {
        return format!("{stem}(y|ies)");
    }
    if let Some(stem) = word.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        return format!("{stem}(y|ies)");
    }
    if word.ends_with("ss") || word.ends_with("us") || word.ends_with("ing") {
        return word.to_owned();
    }
    match word.strip_suffix('s') {
        Some(stem) => format!("{stem}s?"),
        None => format!("{word}s?"),
    }
}

/// Kinds of files, with the word behind them: `PDF files`.
fn files(line: &Line, at: usize) -> Option<Item> {
    let pattern = match line.form(Some(at)) {
        "pdf" | "pdfs" => r"\.pdf$",
        "image" | "images" | "pictures" | "photos" => r"\.(png|jpe?g|gif|webp|svg|avif)$",
        "video" | "videos" => r"\.(mp4|webm|mov|avi|mkv)$",
        "zip" | "zips" | "archives" => r"\.(zip|tar|gz|tgz|7z|rar)$",
        "doc" | "docx" | "word" if line.form(Some(at + 1)) == "files" => r"\.docx?$",
        "xml" => r"\.xml$",
        "csv" | "csvs" => r"\.csv$",
        "json" => r"\.json$",
        _ => return None,
    };
    let has_head =
        matches!(line.form(Some(at + 1)), "file" | "files" | "documents" | "document" | "downloads" | "links");
    // `images` of a wanted page are a part of it, not files to crawl.
    let is_meant = has_head || line.is_negative(at) == Some(true) || line.form(at.checked_sub(1)) == "only";
    is_meant.then(|| Item { range: at..at + 1 + usize::from(has_head), pattern: pattern.to_owned(), absolute: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_patterns_that_match_what_they_name() {
        for (path, pattern, yes, no) in [
            ("/blog", "^/blog(/.*)?$", "/blog/a", "/blogs"),
            ("/docs/*", "^/docs/.*$", "/docs/", "/docs"),
            ("/docs/", "^/docs(/.*)?$", "/docs", "/x/docs"),
            ("docs/api", "/docs/api(/.*)?$", "/v2/docs/api/x", "/docs/apis"),
            ("*.pdf", r"\.pdf$", "/a/b.pdf", "/a/b.pdfx"),
            ("/a/*/b", "^/a/.*/b(/.*)?$", "/a/x/b", "/a/b"),
            ("/x.html", r"^/x\.html$", "/x.html", "/xxhtml"),
            ("/a(b", r"^/a\(b(/.*)?$", "/a(b", "/ab"),
        ] {
            let made = path_pattern(path);
            assert_eq!(made, pattern);
            let compiled = regex::Regex::new(&made).expect("it compiles");
            assert!(compiled.is_match(yes) && !compiled.is_match(no), "{made}");
        }
        for (names, yes, no) in [
            (&["blog"][..], "/en/blog/a", "/myblog"),
            (&["product"], "/products", "/production"),
            (&["case", "study"], "/case-studies/x", "/cases"),
            (&["pricing"], "/pricing.html", "/pricing-old"),
            (&["documentation"], "/docs/x", "/doctors"),
        ] {
            let compiled = regex::Regex::new(&section(names)).expect("it compiles");
            assert!(compiled.is_match(yes) && !compiled.is_match(no), "{compiled}");
        }
    }
}
