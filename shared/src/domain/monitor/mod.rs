//! Monitors (wire 24): what is watched, when, and how a check ends. How a body is read is in
//! [`super::scrape_request`], what counts as a change in [`super::watch`].

pub mod schedule;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::crawl::CrawlOptions;
use super::price;
use super::scrape::{ChangeTracking, Format, ScrapeOptions};
use super::search::{self, Age};
use super::states::states;
use super::watch::{Noise, Watch};
use super::webhook::WebhookSpec;
use super::words::words;
use crate::ids::{JobId, MonitorId};
use crate::time::Timestamp;

/// Pages of a crawl that names no limit, for estimates.
const GUESSED_PAGES: i64 = 100;
/// Who asks for the pages of checks, as their jobs say it. Such pages are not replayed: the check is over by then, and
/// the next one looks again.
pub const ORIGIN: &str = "weir monitor";
/// Credits of a judgement (wire 24).
pub const JUDGEMENT: i64 = 1;

states! {
    /// State of a monitor.
    MonitorStatus {
        Active = "active",
        Paused = "paused",
        /// Nobody sees it any more; its rows go in slices.
        Deleted = "deleted",
    }
    /// How a monitor goes on.
    MonitorMove {
        Pause: Active => Paused,
        Resume: Paused => Active,
        Delete: Active => Deleted,
        DeletePaused: Paused => Deleted,
    }

    /// State of a check.
    CheckStatus {
        Queued = "queued",
        Running = "running",
        Completed = "completed",
        /// Nothing of it worked.
        Failed = "failed",
        /// A part of it did not.
        Partial = "partial",
        /// It was due while another one ran.
        SkippedOverlap = "skipped_overlap",
        /// The team cannot pay.
        SkippedNoCredits = "skipped_no_credits",
    }
    /// How a check goes on.
    CheckMove {
        Start: Queued => Running,
        Skip: Queued => SkippedNoCredits,
        /// It could not begin, or its monitor was deleted.
        GiveUp: Queued => Failed,
        Complete: Running => Completed,
        Fall: Running => Failed,
        Limp: Running => Partial,
    }
}

words! {
    /// Why there is a check.
    Cause {
        Scheduled = "scheduled",
        Manual = "manual",
    }
    /// What became of a page.
    PageStatus {
        Same = "same",
        New = "new",
        Changed = "changed",
        Removed = "removed",
        Error = "error",
    }
    /// How far a check's credits are.
    Billing {
        /// Nothing was done that costs.
        NotApplicable = "not_applicable",
        /// Held back while it runs.
        Reserved = "reserved",
        /// Billed.
        Confirmed = "confirmed",
        /// Held back, and nothing came of it.
        Released = "released",
    }
    /// What a target is.
    TargetType {
        Scrape = "scrape",
        Crawl = "crawl",
        Search = "search",
    }
    /// How old a hit of a search target may be.
    Window {
        FiveMinutes = "5m",
        QuarterHour = "15m",
        Hour = "1h",
        SixHours = "6h",
        Day = "24h",
        Week = "7d",
    }
}

impl Window {
    /// The nearest age that search backends know and that is not less.
    pub const fn age(self) -> Age {
        match self {
            Self::FiveMinutes | Self::QuarterHour | Self::Hour => Age::Hour,
            Self::SixHours | Self::Day => Age::Day,
            Self::Week => Age::Week,
        }
    }
}

/// What a monitor is for, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MonitorSpec {
    pub targets: Vec<Target>,
    /// What changes are held against.
    pub goal: Option<String>,
    /// The language model judges changes, where there is one.
    pub judge: bool,
    pub webhook: Option<WebhookSpec>,
    /// As it was given: no mail is sent.
    pub notification: Option<Value>,
}

/// Something that is watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The caller's or ours; keeps its history when the monitor changes.
    pub id: String,
    #[serde(flatten)]
    pub what: What,
    /// As it was given, for answers.
    pub given: Map<String, Value>,
}

/// What a target looks at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum What {
    Scrape { urls: Vec<String>, options: Box<ScrapeOptions>, noise: Noise },
    Crawl { url: String, crawl: Box<CrawlOptions>, options: Box<ScrapeOptions>, noise: Noise, has_limit: bool },
    Search(SearchTarget),
}

/// Searches whose hits are watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchTarget {
    pub queries: Vec<String>,
    pub window: Window,
    /// Hits of all queries together.
    pub max_results: i64,
    pub include_domains: Vec<String>,
    pub exclude_domains: Vec<String>,
}

impl MonitorSpec {
    /// What changes are judged by, if they are.
    pub fn judged_by(&self) -> Option<&str> {
        self.goal.as_deref().filter(|_| self.judge)
    }

    /// Credits of one check, as far as they are known beforehand: without judgements, which only changes cost.
    pub fn estimated_credits(&self) -> i64 {
        self.targets.iter().map(Target::estimated_credits).fold(0, i64::saturating_add)
    }
}

impl Target {
    pub const fn kind(&self) -> TargetType {
        match self.what {
            What::Scrape { .. } => TargetType::Scrape,
            What::Crawl { .. } => TargetType::Crawl,
            What::Search(_) => TargetType::Search,
        }
    }

    /// Credits of one look at it, as far as they are known beforehand.
    pub fn estimated_credits(&self) -> i64 {
        match &self.what {
            What::Scrape { urls, options, .. } => price::most(options).saturating_mul(urls.len() as i64),
            What::Crawl { crawl, options, has_limit, .. } => {
                let pages = if *has_limit { crawl.limit } else { GUESSED_PAGES };
                price::most(options).saturating_mul(pages)
            }
            What::Search(target) => search::price(usize::try_from(target.max_results).unwrap_or(usize::MAX), false),
        }
    }
}

/// The options of a target's pages in a check: what was given, tracked in a history of the target's own.
pub fn tracked(
    options: &ScrapeOptions,
    monitor: MonitorId,
    target: &str,
    noise: &Noise,
    goal: Option<&str>,
) -> ScrapeOptions {
    let mut options = options.clone();
    let asked = options.change_tracking().cloned().unwrap_or_default();
    let tracking = ChangeTracking {
        // The fields alone are compared where nothing else is asked for.
        git_diff: asked.git_diff || !asked.json,
        tag: Some(format!("monitor {monitor} {target}")),
        watch: Some(Box::new(Watch { monitor, noise: noise.clone(), goal: goal.map(str::to_owned) })),
        ..asked
    };
    options.formats.retain(|format| !matches!(format, Format::ChangeTracking(_)));
    if !options.wants(&Format::Markdown) {
        options.formats.push(Format::Markdown);
    }
    options.formats.push(Format::ChangeTracking(tracking));
    options
}

/// Pages of a check by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    pub same: i64,
    pub changed: i64,
    pub new: i64,
    pub removed: i64,
    pub error: i64,
}

impl Summary {
    pub const fn total(&self) -> i64 {
        self.same + self.changed + self.new + self.removed + self.error
    }

    /// Counts a page.
    pub const fn add(&mut self, status: PageStatus) {
        match status {
            PageStatus::Same => self.same += 1,
            PageStatus::Changed => self.changed += 1,
            PageStatus::New => self.new += 1,
            PageStatus::Removed => self.removed += 1,
            PageStatus::Error => self.error += 1,
        }
    }
}

/// How far a target is in a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    pub target_id: String,
    #[serde(rename = "type")]
    pub kind: TargetType,
    /// The batch or crawl that reads its pages.
    pub job: Option<JobId>,
    /// Documents of the job that were looked at.
    #[serde(default)]
    pub documents: i64,
    /// Failed pages of the job that were looked at, and when the last of them had failed, with its place in the request.
    #[serde(default)]
    pub failures: i64,
    #[serde(default)]
    pub failed_at: Option<(Timestamp, i64)>,
    /// Pages that the site answered with a failure: what they would have led to is not known.
    #[serde(default)]
    pub unread: i64,
    /// Tries of a search that did not work.
    #[serde(default)]
    pub tries: i64,
    #[serde(default)]
    pub is_over: bool,
    /// Why nothing, or not all, came of it.
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub credits: i64,
    /// Hits of a search, and those of them that are new and meaningful.
    #[serde(default)]
    pub results: Option<i64>,
    #[serde(default)]
    pub matches: Option<i64>,
    #[serde(default)]
    pub judged: i64,
    /// What is looked for, and what changes are judged by, as it was when the check began.
    #[serde(default)]
    pub search: Option<Box<SearchTarget>>,
    #[serde(default)]
    pub goal: Option<String>,
    /// Changes, or hits of a search, that were to be judged and are not.
    #[serde(default)]
    pub unjudged: i64,
    /// Why a search may have found nothing, in the search backend's place.
    #[serde(default)]
    pub warning: Option<String>,
}

impl Progress {
    /// Targets that nothing was done about yet.
    pub fn all(targets: &[Target]) -> Vec<Self> {
        targets.iter().map(|target| Self::new(target.id.clone(), target.kind())).collect()
    }

    /// A target that nothing was done about yet.
    pub const fn new(target_id: String, kind: TargetType) -> Self {
        Self {
            target_id,
            kind,
            job: None,
            documents: 0,
            failures: 0,
            failed_at: None,
            unread: 0,
            tries: 0,
            is_over: false,
            error: None,
            credits: 0,
            results: None,
            matches: None,
            judged: 0,
            search: None,
            goal: None,
            unjudged: 0,
            warning: None,
        }
    }
}

/// How a check ends whose targets are all over.
pub fn outcome(summary: &Summary, targets: &[Progress]) -> CheckMove {
    let failed = targets.iter().filter(|target| target.error.is_some()).count();
    let is_fruitless = summary.total() == summary.error && (summary.error > 0 || failed > 0);
    if is_fruitless {
        CheckMove::Fall
    } else if summary.error > 0 || failed > 0 {
        CheckMove::Limp
    } else {
        CheckMove::Complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_fails_when_nothing_worked_and_limps_when_a_part_did_not() {
        let target = |error: Option<&str>| {
            let mut target = Progress::new("a".to_owned(), TargetType::Scrape);
            target.error = error.map(str::to_owned);
            target
        };
        let (fine, broken) = (target(None), target(Some("x")));
        let of = |same, error| Summary { same, error, ..Summary::default() };
        assert_eq!(outcome(&of(2, 0), std::slice::from_ref(&fine)), CheckMove::Complete);
        assert_eq!(outcome(&of(0, 0), std::slice::from_ref(&fine)), CheckMove::Complete);
        assert_eq!(outcome(&of(1, 1), std::slice::from_ref(&fine)), CheckMove::Limp);
        assert_eq!(outcome(&of(0, 2), std::slice::from_ref(&fine)), CheckMove::Fall);
        assert_eq!(outcome(&of(1, 0), &[fine, broken.clone()]), CheckMove::Limp);
        assert_eq!(outcome(&of(0, 0), &[broken]), CheckMove::Fall);
    }

    #[test]
    fn pages_of_a_target_are_tracked_in_a_history_of_its_own() {
        let monitor = MonitorId::new();
        let plain = tracked(&ScrapeOptions::default(), monitor, "t", &Noise::default(), None);
        let tracking = plain.change_tracking().cloned().unwrap_or_default();
        assert!(tracking.git_diff && !tracking.json && plain.wants(&Format::Markdown));
        let fields = ChangeTracking { json: true, ..ChangeTracking::default() };
        let formats = vec![Format::Markdown, Format::ChangeTracking(fields)];
        let options = ScrapeOptions { formats, ..ScrapeOptions::default() };
        let json = tracked(&options, monitor, "u", &Noise::default(), Some("prices"));
        let found = json.change_tracking().cloned().unwrap_or_default();
        assert!(!found.git_diff && found.json && found.tag != tracking.tag);
        assert_eq!(json.formats.len(), 2);
    }
}
