//! Monitors (wire 24): pages, crawls and searches that are looked at by a schedule. A file an operation; the shapes of
//! answers are in `wire`.

pub mod check;
pub mod checks;
pub mod create;
pub mod delete;
pub mod list;
pub mod run;
pub mod show;
pub mod update;
mod wire;

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use weir_shared::domain::monitor::{MonitorSpec, Target, What};
use weir_shared::domain::scrape::{Format, ScrapeOptions};
use weir_shared::domain::scrape_request::{AIMLESS, MonitorRequest, is_aimless};
use weir_shared::domain::target::without_user;
use weir_shared::domain::validation::{Issues, ValidationError};
use weir_shared::error_code::ErrorCode;
use weir_shared::ids::{CheckId, MonitorId};
use weir_shared::random;
use weir_shared::store::monitors::checks::{self as stored_checks, CheckRow};
use weir_shared::store::monitors::{self, MonitorRow};

use crate::app::App;
use crate::callers::auth::Caller;
use crate::error::{ApiError, ApiResult};
use crate::openapi::Operation;

/// Entries of a list when the caller does not say, and at most.
const DEFAULT_LIMIT: i64 = 25;
const MAX_LIMIT: i64 = 100;

/// The caller's monitor.
async fn owned(app: &App, caller: &Caller, id: MonitorId) -> ApiResult<MonitorRow> {
    monitors::load(&app.db, caller.team_id(), id).await?.ok_or_else(not_found)
}

/// A check of the caller's monitor.
async fn owned_check(app: &App, caller: &Caller, monitor: MonitorId, id: CheckId) -> ApiResult<CheckRow> {
    owned(app, caller, monitor).await?;
    let check = stored_checks::load(&app.db, monitor, id).await?;
    check.ok_or_else(|| ApiError::new(ErrorCode::NotFound, "Monitor check not found"))
}

/// The addresses or words that a target is about.
fn watched_by(what: &What) -> impl Iterator<Item = &str> {
    let (some, one) = match what {
        What::Scrape { urls, .. } => (urls.as_slice(), None),
        What::Crawl { url, .. } => (&[][..], Some(url.as_str())),
        What::Search(search) => (search.queries.as_slice(), None),
    };
    some.iter().map(String::as_str).chain(one)
}

fn not_found() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "Monitor not found")
}

/// Addresses are answered without their name and password, so one that comes back so, in a target that the monitor has, stands
/// for the one that it has there.
fn keep_users(targets: &mut [Target], before: &[Target]) {
    let with_user = before.iter().flat_map(|target| watched_by(&target.what)).filter_map(|given| {
        let shown = without_user(given);
        (shown != given).then_some((shown, given))
    });
    let known: HashMap<String, &str> = with_user.collect();
    let ids: HashSet<&str> = before.iter().map(|target| target.id.as_str()).chain([""]).collect();
    let keep = |url: &mut String| {
        if let Some(given) = known.get(url.as_str()) {
            (*given).clone_into(url);
        }
    };
    for target in targets.iter_mut().filter(|target| !known.is_empty() && ids.contains(target.id.as_str())) {
        match &mut target.what {
            What::Scrape { urls, .. } => urls.iter_mut().for_each(keep),
            What::Crawl { url, .. } => keep(url),
            What::Search(_) => {}
        }
    }
}

/// Gives targets without an id one: that of a target of before which watches some of the same, so that it keeps its history.
fn name_targets(targets: &mut [Target], before: &[Target]) {
    let mut taken: HashSet<String> =
        targets.iter().map(|target| target.id.clone()).filter(|id| !id.is_empty()).collect();
    let watched: Vec<(&Target, HashSet<&str>)> =
        before.iter().map(|known| (known, watched_by(&known.what).collect())).collect();
    // Those that are as they were come first: what is left may go on as one that was changed.
    for is_same in [true, false] {
        for target in targets.iter_mut().filter(|target| target.id.is_empty()) {
            let goes_on = watched.iter().find(|(known, all)| {
                let is_its_like =
                    known.kind() == target.kind() && watched_by(&target.what).any(|one| all.contains(one));
                !taken.contains(&known.id) && if is_same { known.what == target.what } else { is_its_like }
            });
            let Some((known, _)) = goes_on else { continue };
            target.id.clone_from(&known.id);
            taken.insert(known.id.clone());
        }
    }
    for target in targets {
        if target.id.is_empty() {
            target.id = random::id().to_string();
        }
        target.given.insert("id".to_owned(), target.id.clone().into());
    }
}

/// What of a monitor is said anew.
#[derive(Debug, Clone, Copy)]
struct News {
    /// What is watched. What is watched already can be changed otherwise although it cannot work any more.
    targets: bool,
    /// What is watched, or for what.
    aims: bool,
    /// Whether changes are judged, as far as it was ever said.
    judge: Option<bool>,
}

/// Refuses what can never work here, and says what has no effect.
fn judge(
    app: &App,
    caller: &Caller,
    request: &MonitorRequest,
    spec: &MonitorSpec,
    news: News,
) -> ApiResult<Option<String>> {
    if caller.team.zero_data_retention {
        let text = "A monitor keeps pages to compare them with later ones, and this team keeps nothing.";
        return Err(ApiError::new(ErrorCode::Forbidden, text));
    }
    if news.aims && is_aimless(&spec.targets, news.judge, spec.goal.as_ref()) {
        return Err(ApiError::new(ErrorCode::BadRequest, AIMLESS));
    }
    if news.targets {
        spec.targets.iter().try_for_each(|target| refuse_target(app, target))?;
    }
    let mut warnings = Vec::new();
    if request.wants_mail() {
        warnings.push("No mail is sent by this service: use a webhook.");
    }
    if spec.judged_by().is_some() && app.settings.model.is_none() {
        warnings.push("No language model is configured here (WEIR_LLM_URL), so changes are not judged.");
    }
    Ok((!warnings.is_empty()).then(|| warnings.join(" ")))
}

fn refuse_target(app: &App, target: &Target) -> ApiResult<()> {
    match &target.what {
        What::Scrape { urls, options, .. } => {
            urls.iter().try_for_each(|url| app.check_target(url))?;
            refuse_unreadable(app, options)
        }
        What::Crawl { url, options, .. } => {
            app.check_target(url)?;
            refuse_unreadable(app, options)
        }
        What::Search(_) if app.settings.search.backends.is_empty() => {
            let text = "No search backend is configured on this service (WEIR_SEARCH_URL), so a monitor cannot search.";
            Err(ApiError::new(ErrorCode::SearchNotConfigured, text))
        }
        What::Search(_) => Ok(()),
    }
}

/// Pages of which nothing could be compared: what is compared of them a language model reads, and there is none.
fn refuse_unreadable(app: &App, options: &ScrapeOptions) -> ApiResult<()> {
    let is_read = options.change_tracking().is_some_and(|tracking| tracking.json)
        || options.formats.iter().any(Format::is_read)
        || options.checks_injection();
    if is_read && app.settings.model.is_none() {
        let text = "The target's formats need a language model, and none is configured on this service (WEIR_LLM_URL).";
        return Err(ApiError::new(ErrorCode::ModelNotConfigured, text));
    }
    Ok(())
}

/// The parameters of a list.
#[derive(Debug, PartialEq, Eq)]
struct Listing {
    /// 1 to 100.
    limit: i64,
    /// How many are left out: `offset`, or `skip`.
    skip: i64,
    status: Option<String>,
}

/// Reads the parameters of a list; others are ignored. `skip` is what it calls how many are left out.
fn listing(query: &str, skip: &'static str, statuses: &[&'static str]) -> ApiResult<Listing> {
    let mut read = Listing { limit: DEFAULT_LIMIT, skip: 0, status: None };
    let mut issues = Issues::default();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let path = vec![name.as_ref().into()];
        if name == "status" {
            if statuses.contains(&value.as_ref()) {
                read.status = Some(value.into_owned());
            } else if !statuses.is_empty() {
                issues.wrong_choice(path, statuses);
            }
            continue;
        }
        let (slot, range) = match name.as_ref() {
            "limit" => (&mut read.limit, 1..=MAX_LIMIT),
            name if name == skip => (&mut read.skip, 0..=i64::from(u32::MAX)),
            _ => continue,
        };
        match value.parse::<i64>() {
            Ok(number) if range.contains(&number) => *slot = number,
            Ok(number) => issues.out_of_range(path, "number", number, &range),
            Err(_) => issues.wrong_type(path, "number", Some(&Value::String(value.into_owned()))),
        }
    }
    issues.into_result().map_err(|error: ValidationError| ApiError::from(error))?;
    Ok(read)
}

/// The same in the API's document.
fn doc_listing(operation: Operation, skip: &'static str) -> Operation {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT});
    operation
        .query("limit", limit, "Entries at most.")
        .query(skip, json!({"type": "integer", "minimum": 0, "default": 0}), "Entries to leave out at the beginning.")
        .errors(&[400])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::Map;
    use weir_shared::domain::watch::Noise;

    use super::*;

    #[test]
    fn an_address_that_comes_back_as_it_was_shown_keeps_its_password() {
        let target = |id: &str, urls: &[&str]| Target {
            id: id.to_owned(),
            what: What::Scrape {
                urls: urls.iter().map(|url| (*url).to_owned()).collect(),
                options: Box::default(),
                noise: Noise::default(),
            },
            given: Map::new(),
        };
        let before = [target("a", &["https://me:hush@x.test/1", "https://x.test/2"])];
        let shown = ["https://x.test/1", "https://x.test/2", "https://x.test/3"];
        let mut back = [target("a", &shown), target("", &shown), target("b", &shown)];
        keep_users(&mut back, &before);
        let firsts = back.each_ref().map(|target| watched_by(&target.what).next().unwrap().to_owned());
        assert_eq!(firsts, ["https://me:hush@x.test/1", "https://me:hush@x.test/1", "https://x.test/1"]);
        assert!(back.iter().all(|target| watched_by(&target.what).skip(1).eq(shown[1..].iter().copied())));
        let mut other = [target("a", &["https://you:word@x.test/1"])];
        keep_users(&mut other, &before);
        assert_eq!(watched_by(&other[0].what).next(), Some("https://you:word@x.test/1"));
    }

    #[test]
    fn parameters_of_lists_are_read_or_refused() {
        let read = |query| listing(query, "offset", &["same", "new"]);
        assert_eq!(read("").unwrap(), Listing { limit: 25, skip: 0, status: None });
        let all = Listing { limit: 100, skip: 7, status: Some("new".into()) };
        assert_eq!(read("limit=100&offset=7&status=new&skip=x&other=1").unwrap(), all);
        for wrong in ["limit=0", "limit=101", "limit=x", "offset=-1", "status=old", "status="] {
            assert_eq!(read(wrong).unwrap_err().code(), ErrorCode::BadRequest, "{wrong}");
        }
    }
}
