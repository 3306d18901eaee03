//! Words for the document: what the fields of bodies mean. Names, types, bounds and defaults are not said here; they come
//! from the readers. A test wants words for every field, and a field for all words.

use serde_json::{Value, json};

/// Of a field that clients send and nothing comes of.
pub const WITHOUT_EFFECT: &str = "Accepted for the sake of clients.";

/// Words by field: `Schema.path` (one name for both versions of the API), `path`, `kind.field` for one kind of format or action, or the name alone; the first of
/// these that there are.
const FIELDS: &[(&str, &str)] = &[
    // Scrape, batch and crawl (wire 3.2).
    ("url", "Address of the page. Without a scheme, http:// is put before it."),
    ("formats", "What to answer: names, or objects with a type and its options."),
    ("onlyMainContent", "Leave navigation, ads and footers out of markdown and html."),
    (
        "siteTemplates",
        "Leave out of the main content what most pages of the site have in common, once ten of them are known.",
    ),
    ("onlyCleanContent", "Have the language model leave out of the markdown what is not content."),
    ("includeTags", "CSS selectors: keep only these elements."),
    ("excludeTags", "CSS selectors of elements to leave out."),
    ("maxAge", "Milliseconds: a cached result this young will do. 0: always fresh."),
    ("minAge", "Milliseconds: answer from the cache only, and with a result at least this old."),
    ("headers", "Further headers of the request for the page."),
    ("waitFor", "Milliseconds to wait after the page has loaded, at most half of timeout."),
    ("mobile", "Emulate a phone."),
    (
        "skipTlsVerification",
        "Accept certificates that are not trusted. Headers, cookies and profiles are sent over one only when this is given as true.",
    ),
    ("timeout", "Milliseconds for the whole page."),
    ("parsers", "How files are read. An empty list: not at all, as base64."),
    ("parsers[].type", "Which files."),
    ("parsers[].mode", "fast: the text in the file; ocr: read its pictures; auto: whichever is needed."),
    ("parsers[].maxPages", "Read at most this many pages."),
    ("parsers[].pages", "Answer pages one by one."),
    ("parsers[].blocks", "Answer what kind of text stands where, block by block."),
    ("parsers[].pageMarkdown", "Older name of `pages`."),
    ("parsers[].pageMarkers", "Mark where pages begin."),
    ("actions", "What to do on the page before it is read, in this order."),
    ("location", "Where to appear from."),
    ("location.country", "Country, ISO 3166-1 alpha-2."),
    ("location.languages", "Language tags, most wanted first."),
    ("removeBase64Images", "Put a placeholder for images that are part of the markdown."),
    ("blockAds", "Block ads and consent pop-ups."),
    ("proxy", "Which proxies to use; stealth is enhanced, auto tries basic first."),
    ("storeInCache", "The result may be kept for other calls."),
    ("fastMode", WITHOUT_EFFECT),
    ("lockdown", "Answer from the cache only, and ask nothing of the site."),
    ("profile", "Browser state that is kept under a name."),
    ("profile.name", "Its name. Sessions and scrapes of the team share what has the same name."),
    ("profile.saveChanges", "Keep what the page changes. One at a time may; another is a 409."),
    ("redactPII", "Replace personal data in the result."),
    ("redactPII.mode", "How eagerly."),
    ("redactPII.entities", "Which kinds of data."),
    ("redactPII.replaceStyle", "By what: a tag, a mask, or nothing."),
    ("zeroDataRetention", "Keep nothing of the content. The team must have it enabled."),
    ("checkPromptInjection", "Refuse pages that try to give the language model orders."),
    ("origin", "Who calls, for statistics."),
    ("integration", "The tool that calls, for statistics."),
    ("useMock", WITHOUT_EFFECT),
    ("auditMetadata", WITHOUT_EFFECT),
    (
        "threatProtection",
        "Sites that are not to be asked or answered: pages, what they load, and where they redirect to.",
    ),
    (
        "threatProtection.mode",
        "Only lists are honoured: manual-only, or off. The others classify sites and are refused.",
    ),
    ("threatProtection.riskScoreThreshold", "Belongs to modes that classify."),
    ("threatProtection.blacklist", "Sites that are blocked: names, or globs such as *.example.com."),
    ("threatProtection.whitelist", "Sites that are let through whatever the other lists say."),
    ("threatProtection.blockedTlds", "Top-level domains that are blocked, without a dot."),
    ("threatProtection.failurePolicy", "Belongs to modes that classify."),
    ("domainTools", WITHOUT_EFFECT),
    ("toolDetail", WITHOUT_EFFECT),
    // Formats (wire 3.4).
    ("formats[].type", "Which format."),
    ("prompt", "What to look for, in words."),
    ("schema", "JSON Schema of the answer."),
    ("screenshot.fullPage", "The whole page instead of the window."),
    ("full_page", "The same as fullPage, as some clients write it."),
    ("screenshot.quality", "JPEG quality; PNG without it."),
    ("screenshot.viewport", "Size of the window."),
    ("viewport.width", "CSS pixels."),
    ("viewport.height", "CSS pixels."),
    ("json.prompt", "What to look for, in words."),
    ("json.schema", "JSON Schema of the answer."),
    (
        "json.mode",
        "learn: the language model writes an extractor once for the pages of a template, which then are read without it. Needs a schema.",
    ),
    ("json.checkPromptInjection", "Refuse pages that try to give the language model orders."),
    ("changeTracking.modes", "How changes are told."),
    ("changeTracking.schema", "JSON Schema of the fields to compare."),
    ("changeTracking.prompt", "What to compare, in words."),
    ("changeTracking.tag", "Keeps a history of its own."),
    ("attributes.selectors", "Which attributes of which elements."),
    ("selectors[].selector", "CSS selector of the elements."),
    ("selectors[].attribute", "Name of the attribute."),
    ("question.question", "The question about the page."),
    ("highlights.query", "What the passages are to be about."),
    ("query.prompt", "The question about the page."),
    ("query.mode", "An answer in words, or quotes."),
    // Actions (wire 3.6).
    ("actions[].type", "What to do."),
    ("wait.milliseconds", "How long; this or selector."),
    ("wait.selector", "CSS selector of the element to wait for; this or milliseconds."),
    ("click.selector", "CSS selector of the element."),
    ("click.all", "All that match, not only the first."),
    ("write.text", "Typed into the focused element: click it first."),
    ("press.key", "Name of the key, such as Enter."),
    ("scroll.direction", "Which way."),
    ("scroll.selector", "CSS selector of what to scroll; the page without it."),
    ("executeJavascript.script", "The value of its last expression is answered."),
    ("pdf.format", "Size of the paper."),
    ("pdf.landscape", "Paper on its side."),
    ("pdf.scale", "Size of the print."),
    // Batch (wire 4.1).
    ("urls", "Addresses of the pages; duplicates are kept."),
    ("ignoreInvalidURLs", "Leave invalid addresses out, and name them, instead of refusing all."),
    ("maxConcurrency", "Pages of this job at once; the team's limit holds as well."),
    ("appendToId", "Add to this running batch instead of starting one."),
    ("webhook", "Where to tell of the job: an address, or an object."),
    ("webhook.url", "Address that the deliveries are posted to."),
    ("webhook.headers", "Headers of each delivery."),
    ("webhook.metadata", "Comes with each delivery as it is."),
    ("webhook.events", "Which events; all of them without it."),
    // Crawl (wire 5.1).
    ("CrawlRequest.url", "Where the crawl starts."),
    ("includePaths", "Regular expressions: only pages whose path one of them matches."),
    ("excludePaths", "Regular expressions of paths to leave out; they win."),
    ("maxDiscoveryDepth", "Links from the start page; 0 is that page and the sitemap's."),
    ("CrawlRequest.limit", "Pages at most."),
    ("crawlEntireDomain", "Follow links that are not below the start page's path."),
    ("allowExternalLinks", "Follow links to other sites."),
    ("MapRequest.allowExternalLinks", "Answer links to other sites too."),
    ("allowSubdomains", "Follow links to subdomains."),
    ("sitemap", "Use the site's sitemaps: not at all, beside links, or nothing else."),
    ("ignoreQueryParameters", "Addresses that differ only in their query are one."),
    ("deduplicateSimilarURLs", "Variants of an address (www, index, a slash at the end) are one."),
    ("ignoreRobotsTxt", "Do not ask robots.txt."),
    ("robotsUserAgent", "Whose rules of robots.txt to follow."),
    ("regexOnFullURL", "Match patterns against the whole address."),
    ("delay", "Seconds between pages, which then come one at a time."),
    ("CrawlRequest.prompt", "Words that are turned into options; those that are given win."),
    ("scrapeOptions", "How each page is scraped."),
    ("PreviewRequest.url", "The site."),
    ("PreviewRequest.prompt", "What to crawl, in words."),
    // Map (wire 9).
    ("MapRequest.url", "The site."),
    ("search", "Words to order the links by."),
    ("includeSubdomains", "Links to subdomains too."),
    ("ignoreCache", "Fetch sitemaps anew."),
    ("filterByPath", "Only what is below the address's path; by default as long as that leaves more than the page."),
    ("useIndex", "Pages that the team has scraped lately count too."),
    ("MapRequest.limit", "Links at most."),
    ("MapRequest.timeout", "Milliseconds for the whole map."),
    // Search (wire 20).
    ("SearchRequest.query", "What to look for, as for any search engine."),
    ("SearchRequest.limit", "Hits of each source at most."),
    ("sources", "Where to look: names, or objects with a type; the web without it."),
    ("sources[].type", "Which source. Those of other products beside one of ours are passed over."),
    ("categories", "Only hits of these kinds: names, or objects with a type."),
    ("categories[].type", "Which kind."),
    ("includeDomains", "Only hits of these hosts and what is below them; not together with excludeDomains."),
    ("excludeDomains", "No hits of these hosts and what is below them."),
    ("tbs", "Time: qdr:h, d, w, m or y; cdr:1,cd_min:MM/DD/YYYY,cd_max:MM/DD/YYYY; sbd:1 for the newest first."),
    ("SearchRequest.location", "A place in words. Answered with a warning where the backend cannot use it."),
    ("sources[].location", "A place in words. Answered with a warning where the backend cannot use it."),
    ("country", "Country of the hits, ISO 3166-1 alpha-2."),
    ("lang", "Language of the hits, ISO 639-1."),
    ("safe", "Leave out what is not for everybody; as the backend does without it."),
    ("filter", "Has no effect: duplicates are always left out."),
    ("highlights", "Descriptions are passages of pages that are at hand, chosen by the query."),
    ("SearchRequest.ignoreInvalidURLs", "Leave out hits that cannot be scraped."),
    ("SearchRequest.scrapeOptions", "How each hit is scraped, where formats are named."),
    ("SearchRequest.timeout", "Milliseconds for the search and its pages."),
    ("enterprise", "zdr or anon: keep nothing of the search. The team must have it enabled."),
    // Extract and agent (wire 22, 23).
    ("ExtractRequest.urls", "Addresses of pages; one that ends in `/*` is every page below it."),
    ("ExtractRequest.prompt", "What to read, in words."),
    ("ExtractRequest.schema", "JSON Schema that the data fits."),
    ("ExtractRequest.systemPrompt", "Words for the language model that stand beside the prompt."),
    ("ExtractRequest.allowExternalLinks", "Answered with a warning: no links to other sites are followed."),
    ("enableWebSearch", "Read what a search of the web finds, too. Without addresses this is always so."),
    ("ExtractRequest.includeSubdomains", "Globs stand for pages of subdomains too."),
    (
        "ExtractRequest.mode",
        "learn: pages of one template are read without the language model once an extractor is learned. Needs a schema.",
    ),
    ("showSources", "Answer which pages each field comes from."),
    ("ExtractRequest.limit", "Pages at most."),
    ("ExtractRequest.timeout", "Milliseconds for the whole extraction."),
    ("ExtractRequest.scrapeOptions", "How each page is scraped. Formats have no effect: the pages' text is read."),
    ("ExtractRequest.agent", WITHOUT_EFFECT),
    ("ExtractRequest.agent.model", WITHOUT_EFFECT),
    ("ExtractRequest.agent.prompt", WITHOUT_EFFECT),
    ("sessionId", WITHOUT_EFFECT),
    ("urlTrace", WITHOUT_EFFECT),
    ("AgentRequest.prompt", "What to find out or do, in words."),
    ("AgentRequest.urls", "Addresses to begin with."),
    ("AgentRequest.schema", "JSON Schema of the answer; without it the answer is in words."),
    ("maxCredits", "Credits that it may use; it ends with what it has found when these are used up."),
    ("strictConstrainToURLs", "Open nothing but `urls`; their redirects stay on their hosts."),
    ("model", "Answered again; this service has one language model."),
    ("effort", "How many steps it may take: 10, 25 or 50."),
    ("AgentRequest.mode", "Answer with data, or in words (`message`)."),
    ("threadId", "Go on from the last run of this thread."),
    ("AgentRequest.location", "Where pages see it come from."),
    ("exchange", "Belongs to another product: refused where it is enabled."),
    ("exchange.enabled", "Refused where it is true."),
    ("exchange.toolkits", "Belongs to another product."),
    ("exchange.maxCalls", "Belongs to another product."),
    ("exchange.requireApproval", WITHOUT_EFFECT),
    ("exchange.approve", WITHOUT_EFFECT),
    ("exchange.decline", WITHOUT_EFFECT),
    ("exchange.onTermsRequired", WITHOUT_EFFECT),
    // Parse (wire 21).
    ("uploadRef", "What POST /v2/parse/upload-url answered with the address that the file was sent to."),
    ("filename", "The file's name, which says what kind it is. Folders are left out."),
    ("contentType", "Its media type, where the name does not say it."),
    ("declaredSizeBytes", "How large it will be."),
    // Feedback (wire 25).
    ("rating", "How good the result was."),
    ("valuableSources", "Hits that were worth it."),
    ("valuableSources[].url", "Which."),
    ("valuableSources[].reason", "Why."),
    ("missingContent", "What was looked for and not found."),
    ("missingContent[].topic", "In a few words."),
    ("missingContent[].description", "In more words."),
    ("querySuggestions", "How it might be looked for."),
    ("endpoint", "What the result is of."),
    ("jobId", "What the result is found by: of a scrape or parse the scrapeId of its document."),
    ("issues", "Codes of what is wrong."),
    ("tags", "Codes to sort by."),
    ("note", "In words."),
    ("FeedbackRequest.url", "The page that it is about."),
    ("pageNumbers", "The pages of a file that it is about."),
    ("metadata", "Whatever belongs to it, up to 8 KB of JSON."),
    // Version 1 (wire 26).
    ("maxUrls", "Addresses in the text at most."),
    ("showFullText", "Not available: true is refused."),
    ("cache", "Sitemaps that were read lately will do."),
    ("__experimental_stream", WITHOUT_EFFECT),
    ("parsePDF", "Read PDFs as documents; false: answer them as base64."),
    ("geolocation", "Older name of `location`."),
    ("geolocation.country", "Country, ISO 3166-1 alpha-2."),
    ("geolocation.languages", "Language tags, most wanted first."),
    ("jsonOptions", "What to read out of the page. The format of this name must be asked for, and needs it."),
    ("extract", "What to read out of the page. The format of this name must be asked for, and needs it."),
    ("systemPrompt", "Words for the language model that stand before the prompt."),
    ("mode", "By a language model: there is no other way."),
    ("agent", "Not available yet: refused."),
    ("agent.model", "Which agent."),
    ("agent.prompt", "What it is to do."),
    ("changeTrackingOptions", "How changes are told, for the format changeTracking."),
    ("modes", "How changes are told."),
    ("tag", "Keeps a history of its own."),
    ("maxDepth", "Segments that a page's path may have below the start page's."),
    ("allowBackwardLinks", "Older name of `crawlEntireDomain`."),
    ("ignoreSitemap", "Do not use the site's sitemaps."),
    ("sitemapOnly", "Use the site's sitemaps and nothing else."),
    // Browser sessions and interact (wire 8).
    ("ttl", "Seconds that the session lives at most."),
    ("activityTtl", "Seconds without use after which it ends."),
    ("streamWebView", "Whether it can be watched."),
    ("recordSession", "Not available yet: true is refused."),
    ("BrowserRequest.blockAds", "Keep its browser from the hosts of ads and trackers. Executed code is not."),
    (
        "BrowserRequest.location",
        "Where its browser appears from: time zone, languages, position, and the country's proxy.",
    ),
    ("id", "The session."),
    ("code", "What to run: up to 100,000 characters."),
    ("InteractRequest.code", "What to run: up to 100,000 characters; this or prompt."),
    // Monitors (wire 24).
    ("MonitorRequest.name", "What people call it."),
    ("MonitorChange.name", "What people call it."),
    ("MonitorChange.status", "Paused monitors are not looked at."),
    ("schedule", "When to look: cron or text, exactly one of them."),
    (
        "schedule.cron",
        "Five fields: minute, hour, day of the month, month, day of the week. At most every five minutes.",
    ),
    ("schedule.text", "Words: every 30 minutes, hourly, every 6 hours, daily, daily at 9:00, weekly."),
    ("schedule.timezone", "Of the hours, by its IANA name."),
    ("targets", "What to look at."),
    ("targets[].type", "Pages, a site, or searches."),
    ("targets[].id", "What the target's history goes by; ours without it."),
    ("targets[].urls", "Addresses of the pages."),
    ("targets[].url", "Where the crawl begins."),
    ("targets[].queries", "What to search for."),
    ("targets[].crawlOptions", "As for a crawl."),
    ("crawlOptions.limit", "Pages at most."),
    ("targets[].searchWindow", "How old a hit may be."),
    ("targets[].maxResults", "Hits of all queries together."),
    ("targets[].ignore", "Differences that do not count."),
    ("ignore.selectors", "CSS selectors of elements that are not looked at."),
    ("ignore.lines", "Patterns of lines of the markdown that are not looked at."),
    ("ignore.order", "Lines may stand in another order."),
    ("ignore.numbersBelow", "Numbers may differ by less than this."),
    ("targets[].onlyIf", "The one change that counts."),
    ("onlyIf.appears", "This text is there now and was not."),
    ("onlyIf.disappears", "This text was there and is not."),
    ("goal", "What the monitor is for: changes are judged by it."),
    ("judgeEnabled", "Have the language model judge changes. Without it: where there is a goal."),
    ("retentionDays", "Days that checks stay, with what they found."),
    ("notification", "Accepted for the sake of clients: no mail is sent."),
    ("notification.email", WITHOUT_EFFECT),
    ("email.enabled", WITHOUT_EFFECT),
    ("email.recipients", WITHOUT_EFFECT),
    ("email.includeDiffs", WITHOUT_EFFECT),
    ("language", "What the code is written in."),
    ("ExecuteRequest.timeout", "Seconds for the run."),
    ("InteractRequest.timeout", "Seconds for the run."),
    ("InteractRequest.prompt", "A task for the agent; this or code."),
];

/// Parts with a schema of their own, by the field that they are in.
const PARTS: &[(&str, &str)] = &[
    ("formats", "FormatObject"),
    ("parsers", "Parser"),
    ("actions", "Action"),
    ("location", "Location"),
    ("profile", "Profile"),
    ("redactPII", "Redaction"),
    ("viewport", "Viewport"),
    ("webhook", "Webhook"),
    ("selectors", "AttributeSelector"),
    ("jsonOptions", "ExtractOptions"),
    ("extract", "ExtractOptions"),
    ("changeTrackingOptions", "ChangeTrackingOptions"),
];

/// The name of the schema of what stands in this field.
pub fn part(field: &str) -> Option<&'static str> {
    PARTS.iter().find(|(name, _)| *name == field).map(|(_, part)| *part)
}

/// What a status says.
pub const fn status(status: u16) -> &'static str {
    match status {
        400 => "The request breaks a rule; `details` says which and where.",
        401 => "No key, or an unknown one.",
        402 => "The team's credits are not enough.",
        403 => "Another team's, or an address that may not be reached.",
        404 => "Unknown, expired, or not this team's.",
        408 => "It was not done in time, or the body did not come in time.",
        409 => "Its state forbids the call.",
        410 => "The browser session has ended.",
        413 => "The body is over 10 MB.",
        429 => "Too many requests, sessions or waiting pages.",
        500 => "The page could not be scraped, or a failure of ours.",
        501 => "Not built yet.",
        502 => "The browser failed before anything was done: the same request may be sent again.",
        503 => "Something that is needed is away at the moment.",
        _ => "An error.",
    }
}

/// What a parameter of a path is.
pub fn path_parameter(name: &str) -> &'static str {
    match name {
        "id" => "The id that was answered at the start.",
        "page" => "The page's id.",
        "check" => "The check's id.",
        _ => "The profile's name.",
    }
}

/// Puts the words into a body's schema.
pub fn describe(schema: &mut Value, root: &str) {
    visit(schema, root, "", "", &mut |schema, keys| {
        if let Some(text) = keys.iter().find_map(|key| lookup(key)) {
            schema["description"] = json!(text);
        }
    });
}

fn lookup(key: &str) -> Option<&'static str> {
    FIELDS.iter().find(|(name, _)| *name == key).map(|(_, text)| *text)
}

/// Calls `each` for every field of a schema with the keys of its words.
fn visit(schema: &mut Value, root: &str, path: &str, kind: &str, each: &mut impl FnMut(&mut Value, &[String])) {
    for key in ["anyOf", "oneOf"] {
        for part in schema.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            let kind = part["properties"]["type"]["enum"][0].as_str().unwrap_or(kind).to_owned();
            visit(part, root, path, &kind, each);
        }
    }
    if let Some(items) = schema.get_mut("items") {
        visit(items, root, &format!("{path}[]"), kind, each);
    }
    for (name, part) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        // Options below `scrapeOptions` have the words of the options of a scrape.
        let path = path.strip_prefix("scrapeOptions").unwrap_or(path);
        let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let root = root.strip_suffix("V1").unwrap_or(root);
        let mut keys = vec![format!("{root}.{place}"), place.clone(), format!("{kind}.{name}")];
        let parent = path.rsplit('.').next().unwrap_or(path);
        keys.extend([format!("{parent}.{name}"), name.clone()]);
        visit(part, root, &place, kind, each);
        each(part, &keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields without words, and words without a field.
    #[test]
    fn every_field_has_words_and_all_words_have_a_field() {
        let (mut missing, mut used) = (Vec::new(), Vec::new());
        for (_, _, operation) in crate::routes::operations() {
            for body in operation.bodies() {
                visit(&mut body.schema(), body.name, "", "", &mut |_, keys| match keys
                    .iter()
                    .find(|key| lookup(key).is_some())
                {
                    Some(key) => used.push(key.clone()),
                    None => missing.push(keys[0].clone()),
                });
            }
        }
        let idle: Vec<_> = FIELDS.iter().map(|(key, _)| *key).filter(|key| !used.iter().any(|u| u == key)).collect();
        assert!(missing.is_empty(), "fields without words in this file: {missing:?}");
        assert!(idle.is_empty(), "words of fields that no reader knows: {idle:?}");
    }
}
