//! The bodies of `POST /v2/monitor` and `PATCH /v2/monitor/{id}` (wire 24).

use serde_json::{Map, Value};

use super::batch::read_webhook_of;
use super::body::{Nulls, read_body};
use super::fields::{label, read_selectors};
use super::options::{default_options, read_compared_options};
use super::search::read_domains;
use super::unavailable::Unavailable;
use crate::domain::api_version::ApiVersion;
use crate::domain::crawl::{CrawlOptions, SitemapMode, scope};
use crate::domain::monitor::schedule::Wanted;
use crate::domain::monitor::{MonitorStatus, SearchTarget, Target, What, Window};
use crate::domain::scrape::{Format, ScrapeOptions};
use crate::domain::target::{self, RequestContext};
use crate::domain::validation::{Fields, Path, ValidationError};
use crate::domain::watch::Noise;
use crate::domain::webhook::WebhookSpec;

/// Longest name and target id, characters.
const MAX_NAME: i64 = 256;
const MAX_ID: i64 = 128;
/// Most targets, and addresses of all of them together.
const MAX_TARGETS: i64 = 50;
const MAX_URLS: usize = 2_000;
/// Longest goal, characters.
const MAX_GOAL: i64 = 2_000;
/// Days that checks stay.
const RETENTION_DAYS: std::ops::RangeInclusive<i64> = 1..=365;
pub const DEFAULT_RETENTION_DAYS: i64 = 30;
/// Bounds of a search target.
const MAX_QUERIES: i64 = 12;
const MAX_QUERY: i64 = 256;
const MAX_RESULTS: std::ops::RangeInclusive<i64> = 1..=50;
const DEFAULT_RESULTS: i64 = 10;
const MAX_DOMAINS: i64 = 50;
/// Bounds of noise rules.
const MAX_PATTERNS: i64 = 50;
const MAX_PATTERN: usize = 1_000;
const MAX_TEXT: i64 = 1_000;
const NUMBERS_BELOW: std::ops::RangeInclusive<f64> = 0.0..=1.0e12;
const MAX_RECIPIENTS: i64 = 25;
const EVENTS: &[&str] = &["monitor.page", "monitor.check.completed"];
const WINDOWS: &[&str] = &["5m", "15m", "1h", "6h", "24h", "7d"];
/// What answers show in the place of a secret.
pub const HIDDEN: &str = "[hidden]";

/// A monitor as it is asked for, or what is to change of one: `None` leaves as it is, or as it is by itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MonitorRequest {
    pub name: Option<String>,
    /// Only of a change.
    pub status: Option<MonitorStatus>,
    pub schedule: Option<Wanted>,
    /// Their ids are empty where the caller gives none.
    pub targets: Option<Vec<Target>>,
    /// `Some(None)`: there is to be none.
    pub goal: Option<Option<String>>,
    pub judge: Option<bool>,
    pub webhook: Option<Option<WebhookSpec>>,
    pub notification: Option<Option<Value>>,
    pub retention_days: Option<i64>,
}

impl MonitorRequest {
    /// Whether mail is asked for.
    pub fn wants_mail(&self) -> bool {
        let mail = self.notification.iter().flatten().filter_map(|notification| notification.get("email"));
        mail.filter(|mail| mail["enabled"] == Value::Bool(true)).count() > 0
    }
}

/// Reads a new monitor.
///
/// # Errors
/// Every wrong field; the first option that is not available here.
pub fn parse_monitor(body: &Value, context: RequestContext<'_>) -> Result<MonitorRequest, ValidationError> {
    read_body(ApiVersion::V2, body, Nulls::Absent, |fields, unavailable| {
        for name in ["name", "schedule", "targets"] {
            fields.required(name);
        }
        let request = read(fields, unavailable, context);
        let (judge, goal) = (request.judge, request.goal.as_ref().and_then(Option::as_ref));
        refuse_aimless_search(fields, request.targets.as_deref(), judge, goal);
        request
    })
}

/// Reads what is to change of a monitor.
///
/// # Errors
/// As [`parse_monitor`]; when nothing is to change.
pub fn parse_monitor_change(body: &Value, context: RequestContext<'_>) -> Result<MonitorRequest, ValidationError> {
    read_body(ApiVersion::V2, body, Nulls::Absent, |fields, unavailable| {
        let mut request = read(fields, unavailable, context);
        request.status = match fields.choice("status", &["active", "paused"]) {
            Some("paused") => Some(MonitorStatus::Paused),
            Some(_) => Some(MonitorStatus::Active),
            None => None,
        };
        // Of these, null takes away what there is.
        let is_null = |name: &str| body.get(name).is_some_and(Value::is_null);
        if is_null("goal") {
            request.goal = Some(None);
        }
        if is_null("webhook") {
            request.webhook = Some(None);
        }
        if is_null("notification") {
            request.notification = Some(None);
        }
        if request == MonitorRequest::default() && fields.issues.is_empty() {
            fields.issues.rule(Path::new(), "At least one field must be given");
        }
        request
    })
}

fn read(
    fields: &mut Fields<'_, '_>,
    unavailable: &mut Vec<Unavailable>,
    context: RequestContext<'_>,
) -> MonitorRequest {
    let request = MonitorRequest {
        name: fields.text("name", 1..=MAX_NAME).map(str::to_owned),
        status: None,
        schedule: Wanted::read(fields),
        targets: read_targets(fields, unavailable, context),
        goal: fields
            .text("goal", 0..=MAX_GOAL)
            .map(|goal| Some(goal.trim().to_owned()).filter(|goal| !goal.is_empty())),
        judge: fields.bool("judgeEnabled"),
        webhook: read_webhook_of(ApiVersion::V2, fields, EVENTS).map(|mut webhook| {
            for event in &mut webhook.events {
                *event = if event == EVENTS[0] { "page" } else { "completed" }.to_owned();
            }
            Some(webhook)
        }),
        notification: read_notification(fields),
        retention_days: fields.integer("retentionDays", RETENTION_DAYS),
    };
    // What answers show in the place of a header must not become the header.
    let mut headers = request.webhook.iter().flatten().flat_map(|webhook| webhook.headers.values());
    if headers.any(|value| value.contains(HIDDEN)) {
        let text = format!("{HIDDEN} stands for a value that is not shown: give the value itself");
        fields.issues.rule(fields.path_of("webhook"), text);
    }
    label(fields, "origin");
    label(fields, "integration");
    request
}

/// Hits of a search say nothing by themselves: somebody has to say what is looked for, or that nobody judges.
pub fn is_aimless(targets: &[Target], judge: Option<bool>, goal: Option<&String>) -> bool {
    goal.is_none() && judge != Some(false) && targets.iter().any(|target| matches!(target.what, What::Search(_)))
}

/// What [`is_aimless`] is refused with.
pub const AIMLESS: &str = "goal is required with a search target, unless judgeEnabled is false";

fn refuse_aimless_search(
    fields: &mut Fields<'_, '_>,
    targets: Option<&[Target]>,
    judge: Option<bool>,
    goal: Option<&String>,
) {
    if is_aimless(targets.unwrap_or_default(), judge, goal) {
        fields.issues.rule(fields.path_of("goal"), AIMLESS);
    }
}

fn read_notification(fields: &mut Fields<'_, '_>) -> Option<Option<Value>> {
    let given = fields.get("notification")?.clone();
    let nested = fields.object("notification")?;
    let mut notification = nested.nulls_are_absent();
    if let Some(email) = notification.object("email") {
        let mut email = email.nulls_are_absent();
        email.bool("enabled");
        for (i, recipient) in email.strings("recipients", MAX_RECIPIENTS).unwrap_or_default().iter().enumerate() {
            if !recipient.contains('@') || recipient.len() > 320 {
                let mut path = email.path_of("recipients");
                path.push(i.into());
                email.issues.format(path, "email", "recipients: an address of mail");
            }
        }
        email.bool("includeDiffs");
        email.finish();
    }
    notification.finish();
    Some(Some(given))
}

fn read_targets(
    fields: &mut Fields<'_, '_>,
    unavailable: &mut Vec<Unavailable>,
    context: RequestContext<'_>,
) -> Option<Vec<Target>> {
    let list = fields.array("targets", MAX_TARGETS)?;
    if list.is_empty() {
        fields.issues.out_of_range(fields.path_of("targets"), "array", 0, &(1..=MAX_TARGETS));
    }
    let mut targets: Vec<Target> = Vec::with_capacity(list.len());
    for (i, entry) in list.iter().enumerate() {
        let mut path = fields.path_of("targets");
        path.push(i.into());
        let Some(target) = read_target(entry, path.clone(), fields, unavailable, context) else { continue };
        if !target.id.is_empty() && targets.iter().any(|other| other.id == target.id) {
            path.push("id".into());
            fields.issues.rule(path, "targets must have different ids");
        }
        targets.push(target);
    }
    let urls = targets.iter().map(|target| match &target.what {
        What::Scrape { urls, .. } => urls.len(),
        _ => 0,
    });
    if urls.sum::<usize>() > MAX_URLS {
        fields.issues.rule(fields.path_of("targets"), format!("targets may have at most {MAX_URLS} urls together"));
    }
    Some(targets)
}

fn read_target(
    entry: &Value,
    path: Path,
    fields: &mut Fields<'_, '_>,
    unavailable: &mut Vec<Unavailable>,
    context: RequestContext<'_>,
) -> Option<Target> {
    let mut target = Fields::open(entry, path, fields.issues)?.nulls_are_absent();
    target.required("type");
    let kind = target.choice("type", &["scrape", "crawl", "search"]);
    let id = target.text("id", 1..=MAX_ID).unwrap_or_default().to_owned();
    let what = match kind {
        Some("crawl") => Some(read_crawl(&mut target, unavailable, context)),
        Some("search") => Some(What::Search(read_search(&mut target))),
        Some(_) => Some(read_scrape(&mut target, unavailable, context)),
        None => {
            // What a target may have, for whoever asks what it may be.
            target.ignore(&["urls", "url", "queries"]);
            None
        }
    };
    if entry.to_string().contains(HIDDEN) {
        let text = format!("{HIDDEN} stands for a value that is not shown: give the value itself");
        target.issues.rule(target.path_of("scrapeOptions"), text);
    }
    target.finish();
    let mut given: Map<String, Value> = entry.as_object()?.clone();
    given.retain(|_, value| !value.is_null());
    Some(Target { id, what: what?, given })
}

fn read_scrape(target: &mut Fields<'_, '_>, unavailable: &mut Vec<Unavailable>, context: RequestContext<'_>) -> What {
    let mut urls: Vec<String> = Vec::new();
    target.required("urls");
    if let Some(list) = target.array("urls", MAX_URLS as i64) {
        if list.is_empty() {
            target.issues.out_of_range(target.path_of("urls"), "array", 0, &(1..=MAX_URLS as i64));
        }
        for (i, entry) in list.iter().enumerate() {
            let mut path = target.path_of("urls");
            path.push(i.into());
            let url = target::read_value(entry, path, context, target.issues);
            urls.extend(url.filter(|url| !urls.contains(url)));
        }
    }
    let (options, noise) = read_page_options(target, unavailable);
    What::Scrape { urls, options: Box::new(options), noise }
}

fn read_crawl(target: &mut Fields<'_, '_>, unavailable: &mut Vec<Unavailable>, context: RequestContext<'_>) -> What {
    let url = target::read(target, "url", context).unwrap_or_default();
    let (mut crawl, mut has_limit) = (CrawlOptions::default(), false);
    if let Some(nested) = target.object("crawlOptions") {
        let mut nested = nested.nulls_are_absent();
        has_limit = nested.get("limit").is_some();
        crawl = CrawlOptions::read(ApiVersion::V2, &mut nested);
        // Names of version 1, which the documentation of monitors has.
        crawl.max_depth = nested.integer("maxDepth", 0..=i64::from(i32::MAX));
        crawl.crawl_entire_domain |= nested.bool("allowBackwardLinks").unwrap_or(false);
        if nested.bool("ignoreSitemap") == Some(true) {
            crawl.sitemap = SitemapMode::Skip;
        }
        nested.finish();
    }
    let (options, noise) = read_page_options(target, unavailable);
    What::Crawl { url, crawl: Box::new(crawl), options: Box::new(options), noise, has_limit }
}

/// The options of the pages, and which differences of theirs do not count.
fn read_page_options(target: &mut Fields<'_, '_>, unavailable: &mut Vec<Unavailable>) -> (ScrapeOptions, Noise) {
    let mut options = default_options(ApiVersion::V2);
    if let Some(nested) = target.object("scrapeOptions") {
        let mut nested = nested.nulls_are_absent();
        options = read_compared_options(ApiVersion::V2, &mut nested, unavailable);
        for (name, is_given) in [
            ("profile", options.profile.is_some()),
            ("lockdown", options.cache.lockdown),
            ("minAge", options.cache.min_age.is_some()),
            ("zeroDataRetention", options.zero_retention),
        ] {
            if is_given {
                let text = format!("{name} is not possible in a monitor, which keeps pages and asks the site anew");
                nested.issues.rule(nested.path_of(name), text);
            }
        }
        if options.wants(&Format::RawBase64) {
            nested
                .issues
                .rule(nested.path_of("formats"), "rawBase64 is not possible in a monitor, which compares texts");
        }
        nested.ignore(&["origin", "integration"]);
        nested.finish();
    }
    let noise = read_noise(target, &mut options);
    (options, noise)
}

/// `ignore` and `onlyIf`: fields of ours.
fn read_noise(target: &mut Fields<'_, '_>, options: &mut ScrapeOptions) -> Noise {
    let mut noise = Noise::default();
    if let Some(nested) = target.object("ignore") {
        let mut ignore = nested.nulls_are_absent();
        options.exclude_tags.extend(read_selectors(&mut ignore, "selectors"));
        noise.lines = read_patterns(&mut ignore);
        noise.order = ignore.bool("order").unwrap_or(false);
        noise.numbers_below = ignore.number("numbersBelow", NUMBERS_BELOW).filter(|number| *number > 0.0);
        ignore.finish();
    }
    if let Some(nested) = target.object("onlyIf") {
        let mut only = nested.nulls_are_absent();
        noise.appears = only.text("appears", 1..=MAX_TEXT).map(str::to_owned);
        noise.disappears = only.text("disappears", 1..=MAX_TEXT).map(str::to_owned);
        only.finish();
    }
    noise
}

fn read_patterns(ignore: &mut Fields<'_, '_>) -> Vec<String> {
    let list = ignore.strings("lines", MAX_PATTERNS).unwrap_or_default();
    if list.iter().any(|pattern| pattern.chars().count() > MAX_PATTERN) {
        let text = format!("lines: a pattern must be at most {MAX_PATTERN} characters");
        ignore.issues.rule(ignore.path_of("lines"), text);
    } else if let Err(problem) = scope::compile(&list) {
        ignore.issues.rule(ignore.path_of("lines"), format!("lines: not valid patterns: {problem}"));
    }
    list
}

fn read_search(target: &mut Fields<'_, '_>) -> SearchTarget {
    target.required("queries");
    let queries = target.strings("queries", MAX_QUERIES).unwrap_or_default();
    if queries.is_empty() && target.issues.is_empty() {
        target.issues.out_of_range(target.path_of("queries"), "array", 0, &(1..=MAX_QUERIES));
    }
    for (i, query) in queries.iter().enumerate() {
        let length = query.trim().chars().count() as i64;
        if !(1..=MAX_QUERY).contains(&length) {
            let mut path = target.path_of("queries");
            path.push(i.into());
            target.issues.out_of_range(path, "string", length, &(1..=MAX_QUERY));
        }
    }
    let window = target.choice("searchWindow", WINDOWS).and_then(|word| word.parse().ok()).unwrap_or(Window::Day);
    let (include_domains, exclude_domains) =
        (read_domains(target, "includeDomains"), read_domains(target, "excludeDomains"));
    for (name, list) in [("includeDomains", &include_domains), ("excludeDomains", &exclude_domains)] {
        if list.len() as i64 > MAX_DOMAINS {
            target.issues.out_of_range(target.path_of(name), "array", list.len() as i64, &(0..=MAX_DOMAINS));
        }
    }
    if !include_domains.is_empty() && !exclude_domains.is_empty() {
        let text = "includeDomains and excludeDomains cannot both be specified";
        target.issues.rule(target.path_of("includeDomains"), text);
    }
    SearchTarget {
        queries: queries.iter().map(|query| query.trim().to_owned()).collect(),
        window,
        max_results: target.integer("maxResults", MAX_RESULTS).unwrap_or(DEFAULT_RESULTS),
        include_domains,
        exclude_domains,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn target_of(target: &Value) -> Result<What, ValidationError> {
        let body = json!({"name": "n", "schedule": {"text": "hourly"}, "targets": [target]});
        parse_monitor(&body, RequestContext::ANYWHERE).map(|request| request.targets.unwrap().remove(0).what)
    }

    #[test]
    fn what_is_compared_needs_no_format_of_its_own() {
        let tracking = json!({"type": "changeTracking", "modes": ["json"], "prompt": "Extract pricing tiers."});
        let target =
            json!({"type": "scrape", "urls": ["https://a.test/"], "scrapeOptions": {"formats": [tracking.clone()]}});
        let What::Scrape { options, .. } = target_of(&target).unwrap() else { panic!("no pages") };
        assert!(options.change_tracking().is_some_and(|tracking| tracking.json && !tracking.git_diff));
        let scrape = json!({"url": "https://a.test/", "formats": [tracking]});
        let refused = super::super::parse_scrape(&scrape, RequestContext::ANYWHERE).unwrap_err();
        assert!(refused.issues[0].message.contains("requires the markdown format"), "{refused:?}");
    }

    #[test]
    fn a_crawl_has_the_names_of_version_1_too() {
        let options = json!({"maxDepth": 2, "allowBackwardLinks": true, "ignoreSitemap": true});
        let target = json!({"type": "crawl", "url": "https://a.test/", "crawlOptions": options});
        let What::Crawl { crawl, .. } = target_of(&target).unwrap() else { panic!("no crawl") };
        assert_eq!((crawl.max_depth, crawl.crawl_entire_domain), (Some(2), true));
        assert_eq!(crawl.sitemap, SitemapMode::Skip);
    }
}
