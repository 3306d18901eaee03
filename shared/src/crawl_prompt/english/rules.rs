//! Phrases with numbers (depth, delay, concurrency, limit), and topics that are wanted or not (subdomains, external
//! links, sitemap, query parameters, robots.txt, duplicates, the whole site).

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::line::{Line, compile};

/// Longest pause that a crawl makes, seconds (wire 5.1).
const MAX_DELAY: f64 = 60.0;

/// Reads what it knows into `options` and takes it out of the line.
pub fn read(line: &mut Line, options: &mut Map<String, Value>, notes: &mut Vec<String>) {
    depth(line, options);
    delay(line, options, notes);
    concurrency(line, options);
    limit(line, options);
    sitemap(line, options);
    external(line, options);
    robots(line, options);
    duplicates(line, options);
    whole_site(line, options);
    topics(line, options);
}

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| compile($text));
    };
}

fn number(group: Option<&Option<String>>) -> Option<f64> {
    group?.as_deref()?.parse().ok()
}

fn depth(line: &mut Line, options: &mut Map<String, Value>) {
    pattern!(
        NAMED,
        r"(?:with |use |using |to )?(?:a )?(?:max(?:imum)? )?(?:crawl |link |discovery |crawling )?depth (?:of |to |is |at |limit )*(?:at most |up to )?(\d+)(?: (?:levels?|links?|hops?|clicks?))?"
    );
    pattern!(
        COUNTED,
        r"(?:up to |at most |only |no more than |maximum |max |not more than )?(\d+) (?:levels?|links?|hops?|clicks?|steps?)(?: (?:deep|down|away))?(?: (?:from|of) (?:the )?(?:start|home|landing|start page|home page|homepage)(?: page)?| in depth)?"
    );
    pattern!(
        NONE,
        r"(?:don't|do not|dont|without|never) (?:follow|following) (?:any |the )?links|(?:don't|do not) go (?:any )?deeper"
    );
    // `10 links` alone is a number of pages.
    pattern!(LINKS, r"\d+ links?$");
    for (_, groups) in line.take_all(&NAMED) {
        if let Some(levels) = number(groups.first()) {
            options.insert("maxDiscoveryDepth".to_owned(), json!(levels as i64));
        }
    }
    if let Some((range, groups)) = line.find(&COUNTED)
        && let Some(levels) = number(groups.first())
    {
        let words: Vec<&str> = line.tokens()[range.clone()].iter().map(|token| token.form()).collect();
        if !LINKS.is_match(&words.join(" ")) {
            line.take(range);
            options.insert("maxDiscoveryDepth".to_owned(), json!(levels as i64));
        }
    }
    if !line.take_all(&NONE).is_empty() {
        options.insert("maxDiscoveryDepth".to_owned(), json!(0));
    }
}

fn delay(line: &mut Line, options: &mut Map<String, Value>, notes: &mut Vec<String>) {
    const UNIT: &str = "(milliseconds?|ms|seconds?|secs?|sec|s|minutes?|mins?|min)";
    const BETWEEN: &str = "(?: (?:between|after|before|per|for|from)(?: (?:each|every|the|any|all|1))?(?: single)? (?:requests?|pages?|page loads?|fetch(?:es)?|other|another|visits?|calls?))*";
    static ASKED: LazyLock<Regex> = LazyLock::new(|| {
        compile(&format!(
            r"(?:(?:add|use|with|set|put) )?(?:a |the )?(?:wait|waiting|pause|pausing|sleep|delay|crawl delay)(?: for| of| to| by| is)?(?: at least| about)? (\d+(?:\.\d+)?) ?{UNIT}{BETWEEN}"
        ))
    });
    static NOUN: LazyLock<Regex> = LazyLock::new(|| {
        compile(&format!(
            r"(?:(?:add|use|with|set|put|leave|wait) )?(?:a |at least )*(\d+(?:\.\d+)?) {UNIT}(?: of)?(?: (?:delay|pause|wait|gap|apart|break))?{BETWEEN}"
        ))
    });
    pattern!(
        RATE,
        r"(?:at most |max(?:imum)? |no more than |only )?(\d+(?:\.\d+)?) (?:pages?|requests?) (?:per|a|every|each|in) (?:(\d+(?:\.\d+)?) )?(seconds?|sec|s|minutes?|min)"
    );
    pattern!(EVERY, r"(?:a |1 )?(?:page|request) every (\d+(?:\.\d+)?) (seconds?|minutes?)");
    let seconds = |unit: &str| match unit {
        unit if unit.starts_with("mil") || unit == "ms" => 0.001,
        unit if unit.starts_with("min") => 60.0,
        _ => 1.0,
    };
    let mut found = None;
    for (_, groups) in line.take_all(&RATE) {
        let (count, every) = (number(groups.first()), number(groups.get(1)).unwrap_or(1.0));
        let unit = groups.get(2).cloned().flatten().unwrap_or_default();
        found = count.filter(|count| *count > 0.0).map(|count| every * seconds(&unit) / count);
    }
    for pattern in [&*EVERY, &*ASKED, &*NOUN] {
        for (_, groups) in line.take_all(pattern) {
            let unit = groups.get(1).cloned().flatten().unwrap_or_default();
            found = number(groups.first()).map(|count| count * seconds(&unit));
        }
    }
    if let Some(delay) = found {
        if delay > MAX_DELAY {
            notes.push(format!("A delay is at most {MAX_DELAY} seconds; that is used."));
        }
        let delay = (delay.min(MAX_DELAY) * 1_000.0).round() / 1_000.0;
        options.insert("delay".to_owned(), json!(delay));
    }
}

fn concurrency(line: &mut Line, options: &mut Map<String, Value>) {
    pattern!(
        AT_ONCE,
        r"(?:at most |max(?:imum)? |up to |only |no more than )?(\d+) (?:pages? |requests? |connections? )?(?:at once|at a time|at the same time|in parallel|concurrently|simultaneously)|(\d+) (?:concurrent|parallel|simultaneous)(?: (?:requests?|pages?|connections?))?|(?:max(?:imum)? )?(?:concurrency|parallelism)(?: limit)?(?: of| to| is)? (\d+)"
    );
    for (_, groups) in line.take_all(&AT_ONCE) {
        if let Some(count) = groups.iter().find_map(|group| number(Some(group))).filter(|count| *count >= 1.0) {
            options.insert("maxConcurrency".to_owned(), json!(count as i64));
        }
    }
}

fn limit(line: &mut Line, options: &mut Map<String, Value>) {
    const PAGES: &str = "(?:web ?)?(?:pages?|urls?|results?|documents?|links?|articles?|posts?|items?|entries)";
    static STRONG: LazyLock<Regex> = LazyLock::new(|| {
        compile(&format!(
            r"(?:at most|at maximum|up to|no more than|not more than|a maximum of|maximum of|maximum|max|(?:with )?(?:a |the )?(?:page )?limit(?: is)?(?: of| to| at)?|limited to|limit (?:it|this|that|the crawl|crawl|crawling|yourself|the number of pages|results)(?: to| at)|cap(?: it| this| the crawl)?(?: at| to)|stop (?:after|at|when you have)|(fewer than|less than|under|below))(?: the)?(?: first)? (\d+)(?: {PAGES})?(?: (?:in total|total|or so|overall))?"
        ))
    });
    static PLAIN: LazyLock<Regex> = LazyLock::new(|| {
        compile(&format!(
            r"(?:only |just |the |first |about |around |exactly )*(\d+) {PAGES}(?: (?:at most|max(?:imum)?|or (?:less|fewer)|in total|total|only|is enough|are enough))?"
        ))
    });
    pattern!(FIRST, r"(?:only |just )?(?:the |my )?(?:first|top|latest|newest|last) (\d+)");
    pattern!(
        SINGLE,
        r"(?:only|just) (?:this|that|the start|the given|the home|a single|the single) ?page|(?:this|a single|the start) page only|(?:only|just) the homepage"
    );
    let mut found = None;
    for (_, groups) in line.take_all(&STRONG) {
        let below = if groups.first().is_some_and(Option::is_some) { 1.0 } else { 0.0 };
        found = number(groups.get(1)).map(|count| count - below);
    }
    for pattern in [&*PLAIN, &*FIRST] {
        for (_, groups) in line.take_all(pattern) {
            found = found.or(number(groups.first()));
        }
    }
    if !line.take_all(&SINGLE).is_empty() {
        found = Some(1.0);
    }
    if let Some(count) = found.filter(|count| *count >= 1.0) {
        options.insert("limit".to_owned(), json!(count.min(f64::from(i32::MAX)) as i64));
    }
}

fn sitemap(line: &mut Line, options: &mut Map<String, Value>) {
    const MAP: &str = r"(?:the |its |their |a |site's )*(?:xml )?(?:sitemaps?|site maps?)(?:\.xml)?";
    static ONLY: LazyLock<Regex> = LazyLock::new(|| {
        compile(&format!(
            r"(?:only|just|solely|exclusively) (?:use |using |from |on |crawl |follow |the |pages |urls |links |what is |what's |listed |in )*{MAP}|{MAP} only|nothing but {MAP}"
        ))
    });
    static ANY: LazyLock<Regex> = LazyLock::new(|| compile(MAP));
    if !line.take_all(&ONLY).is_empty() {
        options.insert("sitemap".to_owned(), json!("only"));
    }
    while let Some((range, _)) = line.find(&ANY) {
        let mode = if line.is_negative(range.start) == Some(true) { "skip" } else { "include" };
        line.take(range);
        options.entry("sitemap").or_insert(json!(mode));
    }
}

fn external(line: &mut Line, options: &mut Map<String, Value>) {
    pattern!(
        STAY,
        r"(?:stay|stays|staying|remain|remaining|keep|stick) (?:on|within|inside|in|to) (?:this|the|that|its|my|our|1) (?:same |single )?(?:site|domain|website|host)(?: only)?|(?:don't|do not|dont|never|without) leav(?:e|ing) (?:this|the|that|its) (?:site|domain|website|host)|same(?: |-)domain only"
    );
    if !line.take_all(&STAY).is_empty() {
        options.insert("allowExternalLinks".to_owned(), json!(false));
    }
}

fn robots(line: &mut Line, options: &mut Map<String, Value>) {
    pattern!(
        AGENT,
        r"(?:(?:as|use|using|with|for|set|obey|follow|and) )?(?:the |a )?(?:robots )?user(?: |-)?agent(?: string| name)?(?: of| is| to| named| called| as)? (\S+)|(?:identify|act|behave|appear|crawl|pose)(?: itself| yourself)? as (?:a |the )?(<\d+>|\S*(?:bot|crawler|spider)\S*)|pretend(?:ing)? to be (?:a |the )?(<\d+>|\S+)|rules (?:for|of) (?:a |the )?(<\d+>|\S*(?:bot|crawler|spider)\S*)"
    );
    if let Some((range, _)) = line.find(&AGENT) {
        // The name is the last token; its own spelling counts.
        let name = line.tokens()[range.end - 1].text().to_owned();
        line.take(range);
        options.insert("robotsUserAgent".to_owned(), json!(name));
    }
    pattern!(
        ROBOTS,
        r"(?:the |its |their |any |all )?(?:robots\.txt|robots txt|robots)(?: (?:files?|rules?|exclusions?|directives?))?"
    );
    while let Some((range, _)) = line.find(&ROBOTS) {
        let ignored = line.is_negative(range.start) == Some(true);
        line.take(range);
        options.insert("ignoreRobotsTxt".to_owned(), json!(ignored));
    }
}

fn duplicates(line: &mut Line, options: &mut Map<String, Value>) {
    const WHAT: &str = "(?: (?:urls?|pages?|links?|contents?|addresses))?";
    static VERB: LazyLock<Regex> = LazyLock::new(|| {
        compile(&format!(
            r"(?:de-?duplicat(?:e|ing)|dedupe)(?: (?:the|all|any))?(?: (?:similar|near-duplicate))?{WHAT}"
        ))
    });
    static NOUN: LazyLock<Regex> = LazyLock::new(|| {
        compile(&format!(
            r"(?:near-)?(?:duplicates|duplicate|duplicated|similar)(?: (?:or|and) (?:duplicates?|similar))?{WHAT}"
        ))
    });
    if let Some((range, _)) = line.find(&VERB) {
        let denied = line.is_negative(range.start) == Some(true);
        line.take(range);
        options.insert("deduplicateSimilarURLs".to_owned(), json!(!denied));
    }
    if let Some((range, _)) = line.find(&NOUN) {
        let unwanted = line.is_negative(range.start) == Some(true);
        line.take(range);
        options.insert("deduplicateSimilarURLs".to_owned(), json!(unwanted));
    }
}

fn whole_site(line: &mut Line, options: &mut Map<String, Value>) {
    pattern!(
        BELOW,
        r"(?:only |stay |stick to )?(?:pages )?(?:below|under|within|inside|beneath) (?:this|that|the start|the given|the current) (?:path|page|directory|folder|section|url)|(?:only |just )?(?:child|sub) ?-?pages(?: only)?|subpages(?: only)?|(?:don't|do not) go up"
    );
    pattern!(
        WHOLE,
        r"(?:the |this |that |its |their |my |our )?(?:entire|whole|full|complete) (?:site|website|domain|web site|host|thing)|site-?wide|(?:everything|all (?:of )?(?:the |its )?pages|every(?: single)? page|all urls|all content)(?: there is)?(?: (?:on|of|in|from|across) (?:the |this |that |my |our )?(?:site|website|domain))?"
    );
    if !line.take_all(&BELOW).is_empty() {
        options.insert("crawlEntireDomain".to_owned(), json!(false));
    }
    while let Some((range, _)) = line.find(&WHOLE) {
        let denied = line.is_negative(range.start) == Some(true);
        // `everything under /docs` is about /docs.
        let follows = line.form(Some(range.end));
        let is_narrowed =
            matches!(follows, "under" | "below" | "in" | "within" | "inside" | "about" | "from" | "related");
        line.take(range);
        if !is_narrowed {
            options.insert("crawlEntireDomain".to_owned(), json!(!denied));
        }
    }
}

/// Topics whose option is what the words say, or its opposite.
fn topics(line: &mut Line, options: &mut Map<String, Value>) {
    pattern!(SUBDOMAINS, r"(?:any |all |the |its |their |of |other )*(?:subdomains?|sub-domains?|sub domains?)");
    pattern!(
        EXTERNAL,
        r"(?:any |all |the |links (?:to|on) |to |on )*(?:(?:external|outbound|outgoing|outside|offsite|off-site|third-party|foreign) (?:links?|sites?|domains?|urls?|pages?|websites?|hosts?|resources?)|other (?:sites?|domains?|websites?|hosts?)|off-?site)"
    );
    pattern!(
        QUERY,
        r"(?:any |all |the |url |url's )*(?:query (?:parameters?|params?|strings?)|querystrings?|(?:url|tracking|utm|get) (?:parameters?|params?)|parameters in (?:the )?urls?|url queries)"
    );
    for (pattern, name, if_wanted) in [
        (&*SUBDOMAINS, "allowSubdomains", true),
        (&*EXTERNAL, "allowExternalLinks", true),
        (&*QUERY, "ignoreQueryParameters", false),
    ] {
        while let Some((range, _)) = line.find(pattern) {
            let unwanted = line.is_negative(range.start) == Some(true);
            line.take(range);
            options.insert(name.to_owned(), json!(unwanted != if_wanted));
        }
    }
}
