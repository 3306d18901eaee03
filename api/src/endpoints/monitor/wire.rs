//! Monitors, checks and their pages as the wire has them. Every key of the team reads them, so a caller's secrets are not
//! shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use weir_shared::domain::monitor::{
    Billing, Cause, CheckStatus, JUDGEMENT, MonitorStatus, PageStatus, Progress, Summary, TargetType,
};
use weir_shared::domain::scrape_request::HIDDEN;
use weir_shared::domain::target::without_user;
use weir_shared::domain::webhook::WebhookSpec;
use weir_shared::ids::{CheckId, JobId, MonitorId, PageId};
use weir_shared::store::StoreResult;
use weir_shared::store::monitors::MonitorRow;
use weir_shared::store::monitors::checks::CheckRow;
use weir_shared::store::monitors::pages::CheckPageRow;
use weir_shared::texts::counted;

/// What every operation answers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}Answer")]
pub(super) struct Body<T> {
    pub success: bool,
    pub data: T,
    /// What of the request has no effect here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl<T> Body<T> {
    pub fn new(data: T) -> Self {
        Self { success: true, data, warning: None }
    }
}

/// The words of a closed list.
macro_rules! words_of {
    ($name:ident) => {
        $name::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>()
    };
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Monitor {
    id: MonitorId,
    name: String,
    #[schemars(extend("enum" = words_of!(MonitorStatus)))]
    status: &'static str,
    schedule: Schedule,
    /// Null while it is paused.
    next_run_at: Option<String>,
    last_run_at: Option<String>,
    /// The check that runs.
    current_check_id: Option<CheckId>,
    /// As they were given, with their ids. Values of headers and text that actions type read `[hidden]`; addresses have no
    /// name and password.
    targets: Vec<Map<String, Value>>,
    webhook: Option<Map<String, Value>>,
    notification: Option<Value>,
    retention_days: i64,
    estimated_credits_per_month: i64,
    last_check_summary: Option<Counts>,
    goal: Option<String>,
    judge_enabled: bool,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    #[schemars(extend("format" = "date-time"))]
    updated_at: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MonitorSchedule")]
struct Schedule {
    /// Words become an expression whose minute is the monitor's own.
    cron: String,
    timezone: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MonitorSummary")]
pub(super) struct Counts {
    total_pages: i64,
    same: i64,
    changed: i64,
    new: i64,
    removed: i64,
    error: i64,
}

impl From<Summary> for Counts {
    fn from(summary: Summary) -> Self {
        let Summary { same, changed, new, removed, error } = summary;
        Self { total_pages: summary.total(), same, changed, new, removed, error }
    }
}

impl Monitor {
    pub fn of(row: &MonitorRow) -> StoreResult<Self> {
        let spec = row.spec()?;
        let summary = row.last_summary()?;
        Ok(Self {
            id: row.id,
            name: row.name.clone(),
            status: row.status.as_str(),
            schedule: Schedule { cron: row.cron.clone(), timezone: row.timezone.clone() },
            next_run_at: row.next_due_at.map(|at| at.to_iso()),
            last_run_at: row.last_run_at.map(|at| at.to_iso()),
            current_check_id: row.current_check_id,
            targets: spec.targets.into_iter().map(|target| without_secrets(target.given)).collect(),
            webhook: spec.webhook.map(webhook),
            notification: spec.notification,
            retention_days: row.retention_days,
            estimated_credits_per_month: row.estimated_credits.saturating_mul(row.runs_a_month),
            last_check_summary: summary.map(Counts::from),
            goal: spec.goal,
            judge_enabled: spec.judge,
            created_at: row.created_at.to_iso(),
            updated_at: row.updated_at.to_iso(),
        })
    }
}

/// A target without what a caller sends along, types or runs, and without names and passwords in its addresses.
fn without_secrets(mut target: Map<String, Value>) -> Map<String, Value> {
    target.get_mut("urls").and_then(Value::as_array_mut).into_iter().flatten().for_each(hide_user);
    if let Some(url) = target.get_mut("url") {
        hide_user(url);
    }
    if let Some(Value::Object(options)) = target.get_mut("scrapeOptions") {
        if let Some(Value::Object(headers)) = options.get_mut("headers") {
            headers.values_mut().for_each(|value| *value = HIDDEN.into());
        }
        for action in options.get_mut("actions").and_then(Value::as_array_mut).into_iter().flatten() {
            match action["type"].as_str() {
                Some("write") => action["text"] = HIDDEN.into(),
                Some("executeJavascript") => action["script"] = HIDDEN.into(),
                _ => {}
            }
        }
    }
    target
}

fn hide_user(value: &mut Value) {
    if let Value::String(url) = value {
        *url = without_user(url);
    }
}

fn webhook(spec: WebhookSpec) -> Map<String, Value> {
    let events = spec.events.iter().map(|event| match event.as_str() {
        "page" => "monitor.page",
        _ => "monitor.check.completed",
    });
    let headers: Map<String, Value> = spec.headers.into_keys().map(|name| (name, HIDDEN.into())).collect();
    let events: Vec<&str> = events.collect();
    let mut shown = Map::new();
    shown.insert("url".to_owned(), without_user(&spec.url).into());
    shown.insert("headers".to_owned(), headers.into());
    shown.insert("metadata".to_owned(), spec.metadata.into());
    if !events.is_empty() {
        shown.insert("events".to_owned(), json!(events));
    }
    shown
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MonitorCheck")]
pub(super) struct Check {
    id: CheckId,
    monitor_id: MonitorId,
    #[schemars(extend("enum" = words_of!(CheckStatus)))]
    status: &'static str,
    #[schemars(extend("enum" = words_of!(Cause)))]
    trigger: &'static str,
    scheduled_for: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
    estimated_credits: i64,
    /// Held back while it runs.
    reserved_credits: Option<i64>,
    /// Null until it has ended.
    actual_credits: Option<i64>,
    #[schemars(extend("enum" = words_of!(Billing)))]
    billing_status: &'static str,
    summary: Counts,
    target_results: Vec<TargetResult>,
    /// Always null: no mail is sent.
    notification_status: Option<Value>,
    error: Option<String>,
    /// What the check did without.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
    #[schemars(extend("format" = "date-time"))]
    updated_at: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MonitorTargetResult")]
struct TargetResult {
    target_id: String,
    #[schemars(extend("enum" = words_of!(TargetType)))]
    r#type: &'static str,
    /// The batch that reads the pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_jobs: Option<Vec<JobId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crawl_id: Option<JobId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search_completed: Option<bool>,
    /// Hits of a search, and those of them that are new and meaningful.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matches: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results_judged: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search_credits: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    judge_credits: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<Progress> for TargetResult {
    fn from(target: Progress) -> Self {
        let is_search = target.kind == TargetType::Search;
        let judge_credits = target.judged * JUDGEMENT;
        Self {
            target_id: target.target_id,
            r#type: target.kind.as_str(),
            expected_jobs: target.job.filter(|_| target.kind == TargetType::Scrape).map(|job| vec![job]),
            crawl_id: target.job.filter(|_| target.kind == TargetType::Crawl),
            search_completed: is_search.then_some(target.is_over && target.error.is_none()),
            result_count: target.results,
            matches: target.matches,
            results_judged: is_search.then_some(target.judged),
            search_credits: is_search.then_some(target.credits - judge_credits),
            judge_credits: is_search.then_some(judge_credits),
            error: target.error,
        }
    }
}

impl Check {
    pub fn of(row: &CheckRow) -> StoreResult<Self> {
        let targets = row.targets()?;
        let warnings = targets.iter().filter_map(|target| target.warning.clone()).chain(unjudged(&targets));
        let warning = warnings.reduce(|all, warning| format!("{all} {warning}"));
        Ok(Self {
            id: row.id,
            monitor_id: row.monitor_id,
            status: row.status.as_str(),
            trigger: row.cause.as_str(),
            scheduled_for: row.scheduled_for.map(|at| at.to_iso()),
            started_at: row.started_at.map(|at| at.to_iso()),
            finished_at: row.finished_at.map(|at| at.to_iso()),
            estimated_credits: row.estimated_credits,
            reserved_credits: (row.billing == Billing::Reserved).then_some(row.estimated_credits),
            actual_credits: row.finished_at.map(|_| row.actual_credits),
            billing_status: row.billing.as_str(),
            summary: row.summary().into(),
            target_results: targets.into_iter().map(TargetResult::from).collect(),
            notification_status: None,
            error: row.error.clone(),
            warning,
            created_at: row.created_at.to_iso(),
            updated_at: row.updated_at.to_iso(),
        })
    }
}

/// Judgements that are missing, in a sentence.
fn unjudged(targets: &[Progress]) -> Option<String> {
    let of = |is_search: bool| {
        let of = targets.iter().filter(|target| (target.kind == TargetType::Search) == is_search);
        of.map(|target| target.unjudged).sum::<i64>()
    };
    let (changes, hits) = (of(false), of(true));
    let there = [(changes, "change"), (hits, "hit")].into_iter().filter(|(count, _)| *count > 0);
    let what: Vec<String> = there.map(|(count, word)| counted(count, word)).collect();
    let were = if changes + hits == 1 { "was" } else { "were" };
    (!what.is_empty())
        .then(|| format!("{} {were} not judged: the language model did not answer as it should.", what.join(" and ")))
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "MonitorCheckPage")]
pub(super) struct CheckPage {
    id: PageId,
    target_id: String,
    url: String,
    #[schemars(extend("enum" = words_of!(PageStatus)))]
    status: &'static str,
    /// The documents of the last check and of this one, as far as there are any.
    previous_scrape_id: Option<PageId>,
    current_scrape_id: Option<PageId>,
    status_code: Option<i64>,
    error: Option<String>,
    metadata: Option<Value>,
    /// Lines and fields that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Value>,
    /// The fields as they are now.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<Value>,
    /// What the language model says of it, with the `fields` of data that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    judgment: Option<Value>,
    #[schemars(extend("format" = "date-time"))]
    created_at: String,
}

/// The larger part of a page as stored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Detail {
    metadata: Option<Value>,
    diff: Option<Value>,
    snapshot: Option<Value>,
    judgment: Option<Value>,
}

impl CheckPage {
    pub fn of(row: &CheckPageRow) -> StoreResult<Self> {
        let Detail { mut metadata, diff, snapshot, mut judgment } = serde_json::from_str(row.detail()?.get())?;
        // Earlier releases have kept them as they were asked for.
        if let Some(url) = metadata.as_mut().and_then(|metadata| metadata.get_mut("sourceURL")) {
            hide_user(url);
        }
        // The Rust client reads no check that has a judgement without it.
        if let Some(Value::Object(judgment)) = &mut judgment {
            judgment.insert("fields".to_owned(), fields_of(diff.as_ref()).into());
        }
        Ok(Self {
            id: row.id,
            target_id: row.target_id.clone(),
            url: without_user(&row.url),
            status: row.status.as_str(),
            previous_scrape_id: row.previous_scrape_id,
            current_scrape_id: row.current_scrape_id,
            status_code: row.status_code,
            error: row.error.clone(),
            metadata,
            diff,
            snapshot,
            judgment,
            created_at: row.created_at.to_iso(),
        })
    }
}

/// The fields of data that differ; none where only text does, whose lines stand under `files`.
fn fields_of(diff: Option<&Value>) -> Vec<String> {
    let fields = diff.and_then(|diff| diff["json"].as_object());
    let fields = fields.filter(|fields| !fields.get("files").is_some_and(Value::is_array));
    fields.map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn fields_that_differ_are_those_of_data() {
        let changed = json!({"previous": 4, "current": 5});
        let data = json!({"text": "+x", "json": {"files": changed, "plans[0].price": changed}});
        assert_eq!(fields_of(Some(&data)), ["files", "plans[0].price"]);
        let lines = json!({"text": "+x", "json": {"files": []}});
        assert!(fields_of(Some(&lines)).is_empty());
        assert!(fields_of(None).is_empty());
    }

    #[test]
    fn what_a_caller_sends_along_is_not_shown_to_other_keys() {
        let target = json!({"type": "scrape", "urls": ["https://x.test", "https://me:hush@x.test/a"],
            "url": "https://me:hush@x.test/", "scrapeOptions": {"headers": {"cookie": "hush"},
            "actions": [{"type": "write", "text": "hush"}, {"type": "executeJavascript", "script": "login('hush')"},
                {"type": "wait", "milliseconds": 5}]}});
        let shown = Value::Object(without_secrets(target.as_object().unwrap().clone()));
        assert!(!shown.to_string().contains("hush"), "{shown}");
        assert_eq!(shown["scrapeOptions"]["headers"], json!({"cookie": HIDDEN}));
        assert_eq!((&shown["urls"][0], &shown["urls"][1]), (&json!("https://x.test"), &json!("https://x.test/a")));
        let spec = WebhookSpec {
            url: "https://me:hush@x.test/hook".into(),
            headers: [("authorization".to_owned(), "hush".to_owned())].into(),
            metadata: Map::new(),
            events: vec!["page".into(), "completed".into()],
            version: Default::default(),
        };
        let shown = Value::Object(webhook(spec));
        assert!(!shown.to_string().contains("hush"), "{shown}");
        assert_eq!(shown["events"], json!(["monitor.page", "monitor.check.completed"]));
    }
}
