//! Browser sessions (spec 2.1, 2.2, 3, 4.1 to 4.4): their life, what they cost, and the bodies that create and use
//! them.
//!
//! ```text
//! opening ──> active ──> closing ──> destroyed
//!    └───────────┴──────────┴───────────^
//! ```
//!
//! `opening` and `closing` are ours: clients know `active` and `destroyed`. A session that closes takes no more calls
//! and still holds its slot and its profile's lease, because its state may be on its way to the profile.

use serde_json::Value;

use super::location::{self, Location};
use super::profile::{self, ProfileUse};
use super::states::states;
use super::validation::{Fields, Issues, Path, ValidationError, refusal};
use super::words::words;
use crate::error_code::ErrorCode;
use crate::time::Timestamp;

states! {
    /// State of a session.
    SessionState {
        /// Placed on a worker, which starts its browser. No caller knows it yet.
        Opening = "opening",
        /// Takes calls.
        Active = "active",
        /// Takes no more calls; its browser shuts down and its profile is saved.
        Closing = "closing",
        Destroyed = "destroyed",
    }
    /// How a session goes on. Two processes may hold the same old state: the statements of `store::sessions` ask for it
    /// again.
    SessionMove {
        /// Its browser is there.
        Activate: Opening => Active,
        /// Its browser did not start, or nobody waits for it any more.
        GiveUp: Opening => Destroyed,
        /// It takes no more calls.
        BeginClose: Active => Closing,
        /// Its browser or its worker died, or its worker does not have it.
        Lose: Active => Destroyed,
        /// Its browser has ended and its profile is saved.
        Finish: Closing => Destroyed,
    }
}

words! {
    /// Why a session takes no more calls.
    EndReason {
        /// Its team asked for it.
        Deleted = "deleted",
        /// Its whole lifetime is over.
        Ttl = "ttl",
        /// Nothing used it for its inactivity time.
        Idle = "idle",
        /// Its browser ended unasked.
        Crashed = "crashed",
        /// Its worker drains.
        WorkerStopped = "worker_stopped",
        /// Its worker gave no sign of life any more.
        WorkerDied = "worker_died",
        /// It never became active: not billed.
        NotOpened = "not_opened",
    }
    /// What a session is for.
    SessionKind {
        /// Made by `POST /v2/browser`.
        Browser = "browser",
        /// Continues a scrape (spec 2.3).
        Interact = "interact",
    }
    /// What code is written in (spec 4.4).
    Language {
        Node = "node",
        Python = "python",
        Bash = "bash",
    }
}

impl SessionState {
    /// The words clients see.
    pub const SHOWN: [&str; 2] = [Self::Active.as_str(), Self::Destroyed.as_str()];

    /// The word clients see; `None`: the session is not told of yet.
    pub const fn shown(self) -> Option<&'static str> {
        match self {
            Self::Opening => None,
            Self::Active => Some(Self::Active.as_str()),
            Self::Closing | Self::Destroyed => Some(Self::Destroyed.as_str()),
        }
    }
}

/// Bounds of `ttl`, seconds (spec 4.1).
pub(super) const TTL: std::ops::RangeInclusive<i64> = 30..=3_600;
/// Seconds, as the official clients have it.
pub(super) const DEFAULT_TTL: i64 = 600;
/// Bounds of `activityTtl`, seconds (spec 4.1).
pub(super) const ACTIVITY_TTL: std::ops::RangeInclusive<i64> = 10..=3_600;
pub(super) const DEFAULT_ACTIVITY_TTL: i64 = 300;
/// Length of code, characters (spec 4.4).
const CODE: std::ops::RangeInclusive<i64> = 1..=100_000;
/// Bounds of an execution's `timeout`, seconds (spec 4.4).
pub(super) const EXECUTE_TIMEOUT: std::ops::RangeInclusive<i64> = 1..=300;
pub(super) const DEFAULT_EXECUTE_TIMEOUT: i64 = 30;
/// Longest `origin` and `integration`, characters.
const LABEL: std::ops::RangeInclusive<i64> = 0..=256;

/// Credits of a minute, and the least a session costs (wire 8.5).
const CREDITS_PER_MINUTE: i64 = 2;
const LEAST_CREDITS: i64 = 2;

/// What a session that was open for `duration_ms` costs: by the second, rounded up, at least one minute.
pub const fn credits_for(duration_ms: i64) -> i64 {
    let seconds = (if duration_ms < 0 { 0 } else { duration_ms } + 999) / 1_000;
    let credits = (seconds * CREDITS_PER_MINUTE + 59) / 60;
    if credits < LEAST_CREDITS { LEAST_CREDITS } else { credits }
}

/// What is written down when a session is destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bill {
    pub ended_at: Timestamp,
    /// From the moment it became active.
    pub duration_ms: i64,
    pub credits: i64,
}

/// The bill of a session that stopped taking calls at `at`. Nobody pays for time past the ttl, for a session that never
/// opened, or for one that was opened too late for its caller.
pub fn bill(opened_at: Option<Timestamp>, expires_at: Timestamp, at: Timestamp, reason: EndReason) -> Bill {
    match opened_at.filter(|_| reason != EndReason::NotOpened) {
        None => Bill { ended_at: at, duration_ms: 0, credits: 0 },
        Some(opened_at) => {
            let ended_at = at.min(expires_at).max(opened_at);
            let duration_ms = ended_at.ms_since(opened_at);
            Bill { ended_at, duration_ms, credits: credits_for(duration_ms) }
        }
    }
}

/// `POST /v2/browser`, valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateSession {
    /// Whole lifetime, seconds, 30 to 3,600. Default 600.
    pub ttl: i64,
    /// Inactivity before destruction, seconds, 10 to 3,600. Default 300.
    pub activity_ttl: i64,
    /// Whether the live view shows anything. Default true.
    pub stream_web_view: bool,
    pub profile: Option<ProfileUse>,
    /// Whether its browser is kept from the hosts of ads and trackers. Default true.
    pub block_ads: bool,
    /// Where it appears from; `None`: nowhere in particular.
    pub location: Option<Location>,
    /// What was asked for and is not done, for the answer; `None`: everything is done.
    pub warning: Option<String>,
}

impl CreateSession {
    /// The whole lifetime in milliseconds.
    pub const fn ttl_ms(&self) -> i64 {
        self.ttl * 1_000
    }

    /// The pause after the last activity in milliseconds.
    pub const fn activity_ttl_ms(&self) -> i64 {
        self.activity_ttl * 1_000
    }
}

/// Reads the body of `POST /v2/browser` (spec 4.1, wire 8.1). It is not strict (wire 2.2): what nobody here
/// knows is named in the warning, and `null` stands for absent.
///
/// # Errors
/// Every wrong field; or an option that is not available yet and that the caller would miss in the answer.
pub fn parse_create(body: &Value) -> Result<CreateSession, ValidationError> {
    let mut issues = Issues::default();
    let mut recording = None;
    let session = Fields::open(body, Path::new(), &mut issues).map(Fields::nulls_are_absent).map(|mut fields| {
        let ttl = fields.integer("ttl", TTL).unwrap_or(DEFAULT_TTL);
        let activity_ttl = fields.integer("activityTtl", ACTIVITY_TTL).unwrap_or(DEFAULT_ACTIVITY_TTL);
        let stream_web_view = fields.bool("streamWebView").unwrap_or(true);
        let profile = profile::read(&mut fields);
        if fields.bool("recordSession") == Some(true) {
            recording = Some(fields.path_of("recordSession"));
        }
        let block_ads = fields.bool("blockAds").unwrap_or(true);
        let location = location::read(&mut fields);
        read_labels(&mut fields);
        let warning = unknown_warning(&fields);
        CreateSession { ttl, activity_ttl, stream_web_view, profile, block_ads, location, warning }
    });
    issues.into_result()?;
    if let Some(path) = recording {
        return Err(refusal(ErrorCode::OptionNotAvailable, path, "recordSession is not available yet"));
    }
    session.ok_or_else(|| refusal(ErrorCode::BadRequest, Path::new(), "Bad Request"))
}

/// `POST /v2/browser/{id}/execute`, valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecuteRequest {
    /// 1 to 100,000 characters.
    pub code: String,
    /// Default [`Language::Node`].
    pub language: Language,
    /// Seconds, 1 to 300. Default 30.
    pub timeout: i64,
    /// As in [`CreateSession`].
    pub warning: Option<String>,
}

/// Reads the body of `POST /v2/browser/{id}/execute` (spec 4.4). It is not strict (wire 2.2), and `null` stands for absent.
///
/// # Errors
/// Every wrong field.
pub fn parse_execute(body: &Value) -> Result<ExecuteRequest, ValidationError> {
    let mut issues = Issues::default();
    let request = Fields::open(body, Path::new(), &mut issues).map(Fields::nulls_are_absent).map(|mut fields| {
        let request = ExecuteRequest {
            code: read_code(&mut fields).unwrap_or_default(),
            language: read_language(&mut fields),
            timeout: fields.integer("timeout", EXECUTE_TIMEOUT).unwrap_or(DEFAULT_EXECUTE_TIMEOUT),
            warning: None,
        };
        read_labels(&mut fields);
        ExecuteRequest { warning: unknown_warning(&fields), ..request }
    });
    issues.into_result()?;
    request.ok_or_else(|| refusal(ErrorCode::BadRequest, Path::new(), "Bad Request"))
}

/// Reads the body of `DELETE /v2/browser`: the text of `id`, which the caller turns into an id.
///
/// # Errors
/// When it is missing or no string.
pub fn parse_delete(body: &Value) -> Result<String, ValidationError> {
    let mut issues = Issues::default();
    let id = Fields::open(body, Path::new(), &mut issues).and_then(|mut fields| {
        fields.required("id")?;
        fields.string("id").map(str::to_owned)
    });
    issues.into_result()?;
    id.ok_or_else(|| refusal(ErrorCode::BadRequest, Path::new(), "Bad Request"))
}

/// Which sessions `GET /v2/browser` lists; `None`: all.
///
/// # Errors
/// When it is another word than these two (spec 4.2).
pub fn parse_status(word: Option<&str>) -> Result<Option<SessionState>, ValidationError> {
    let Some(word) = word else { return Ok(None) };
    if let Some(state) = word.parse().ok().filter(|state: &SessionState| SessionState::SHOWN.contains(&state.as_str()))
    {
        return Ok(Some(state));
    }
    let mut issues = Issues::default();
    issues.wrong_choice(vec!["status".into()], &SessionState::SHOWN);
    issues.into_result().map(|()| None)
}

pub(super) fn read_language(fields: &mut Fields<'_, '_>) -> Language {
    match fields.choice("language", &["node", "python", "bash"]) {
        Some("python") => Language::Python,
        Some("bash") => Language::Bash,
        _ => Language::Node,
    }
}

pub(super) fn read_code(fields: &mut Fields<'_, '_>) -> Option<String> {
    fields.required("code")?;
    let code = fields.string("code")?;
    let length = code.chars().count() as i64;
    if !CODE.contains(&length) {
        fields.issues.out_of_range(fields.path_of("code"), "string", length, &CODE);
    }
    Some(code.to_owned())
}

/// `origin` and `integration` come with every body (wire 1.3) and change nothing.
pub(super) fn read_labels(fields: &mut Fields<'_, '_>) {
    fields.text("origin", LABEL);
    fields.text("integration", LABEL);
}

pub(super) fn unknown_warning(fields: &Fields<'_, '_>) -> Option<String> {
    let (unknown, others) = fields.unknown();
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    (!unknown.is_empty()).then(|| format!("Unknown fields have no effect: {}{more}.", unknown.join(", ")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn paths(error: &ValidationError) -> Vec<Value> {
        error.issues.iter().map(|i| json!(i.path)).collect()
    }

    #[test]
    fn the_defaults_of_a_session() {
        let session = parse_create(&json!({})).unwrap();
        assert_eq!((session.ttl, session.activity_ttl, session.stream_web_view), (600, 300, true));
        assert_eq!((session.profile, session.location, session.warning), (None, None, None));
        assert!(session.block_ads);
    }

    #[test]
    fn every_field_of_a_session_is_read() {
        let body = json!({
            "ttl": 30, "activityTtl": 3600, "streamWebView": false, "profile": {"name": "work", "saveChanges": false},
            "recordSession": false, "blockAds": false, "location": {"country": "us"}, "origin": "x", "integration": "cli",
        });
        let session = parse_create(&body).unwrap();
        let profile = ProfileUse { name: "work".into(), save_changes: false };
        let expected = CreateSession {
            ttl: 30,
            activity_ttl: 3600,
            stream_web_view: false,
            profile: Some(profile),
            block_ads: false,
            location: Some(Location { country: "US".into(), languages: Vec::new() }),
            warning: None,
        };
        assert_eq!(session, expected);
        let session = parse_create(&json!({"profile": {"name": "p", "saveChanges": null}})).unwrap();
        assert!(session.profile.unwrap().save_changes, "the default");
        let nulls = json!({"ttl": null, "activityTtl": null, "streamWebView": null, "profile": null,
            "recordSession": null, "blockAds": null, "location": null, "origin": null, "integration": null});
        assert_eq!(parse_create(&nulls).unwrap(), parse_create(&json!({})).unwrap(), "null is absent (wire 2.2)");
        let code = parse_execute(&json!({"code": "1", "language": null, "timeout": null})).unwrap();
        assert_eq!((code.language, code.timeout), (Language::Node, DEFAULT_EXECUTE_TIMEOUT));
    }

    #[test]
    fn a_wrong_field_of_a_session_is_named() {
        for (body, path) in [
            (json!({"ttl": 29}), json!(["ttl"])),
            (json!({"ttl": 3601}), json!(["ttl"])),
            (json!({"ttl": 60.5}), json!(["ttl"])),
            (json!({"ttl": "60"}), json!(["ttl"])),
            (json!({"activityTtl": 9}), json!(["activityTtl"])),
            (json!({"activityTtl": 3601}), json!(["activityTtl"])),
            (json!({"streamWebView": "yes"}), json!(["streamWebView"])),
            (json!({"profile": "work"}), json!(["profile"])),
            (json!({"profile": {}}), json!(["profile", "name"])),
            (json!({"profile": {"name": ""}}), json!(["profile", "name"])),
            (json!({"profile": {"name": "x".repeat(129)}}), json!(["profile", "name"])),
            (json!({"profile": {"name": "a\u{0}b"}}), json!(["profile", "name"])),
            (json!({"profile": {"name": "a", "saveChanges": 1}}), json!(["profile", "saveChanges"])),
            (json!({"profile": {"name": "a", "save": true}}), json!(["profile"])),
            (json!({"recordSession": 1}), json!(["recordSession"])),
            (json!({"blockAds": "no"}), json!(["blockAds"])),
            (json!({"location": {"country": "Mars"}}), json!(["location", "country"])),
            (json!({"location": "DE"}), json!(["location"])),
            (json!({"origin": 1}), json!(["origin"])),
            (json!([]), json!([])),
        ] {
            let error = parse_create(&body).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadRequest, "{body}");
            assert_eq!(paths(&error), vec![path], "{body}");
        }
        let name = "ä".repeat(128);
        assert_eq!(parse_create(&json!({"profile": {"name": name}})).unwrap().profile.unwrap().name, name);
    }

    #[test]
    fn nothing_that_was_asked_for_is_silently_ignored() {
        let error = parse_create(&json!({"recordSession": true})).unwrap_err();
        assert_eq!((error.code, paths(&error)), (ErrorCode::OptionNotAvailable, vec![json!(["recordSession"])]));
        for (body, word) in [(json!({"proxy": "enhanced"}), "proxy"), (json!({"colour": 1, "size": 2}), "colour, size")]
        {
            let warning = parse_create(&body).unwrap().warning.unwrap();
            assert!(warning.contains(word), "{warning}");
        }
        assert!(
            parse_execute(&json!({"code": "1", "langauge": "bash"})).unwrap().warning.unwrap().contains("langauge")
        );
    }

    #[test]
    fn code_is_read_with_its_defaults_and_bounds() {
        let request = parse_execute(&json!({"code": "1"})).unwrap();
        assert_eq!((request.language, request.timeout, request.warning), (Language::Node, 30, None));
        let body = json!({"code": "ls", "language": "bash", "timeout": 300, "origin": "o"});
        assert_eq!(parse_execute(&body).unwrap().language, Language::Bash);
        assert_eq!(parse_execute(&json!({"code": "x".repeat(100_000)})).unwrap().code.len(), 100_000);
        assert_eq!(parse_execute(&json!({"code": "日".repeat(100_000)})).unwrap().code.len(), 300_000);
        for (body, path) in [
            (json!({}), json!(["code"])),
            (json!({"code": ""}), json!(["code"])),
            (json!({"code": 1}), json!(["code"])),
            (json!({"code": "x".repeat(100_001)}), json!(["code"])),
            (json!({"code": "ä".repeat(100_001)}), json!(["code"])),
            (json!({"code": "1", "language": "ruby"}), json!(["language"])),
            (json!({"code": "1", "timeout": 0}), json!(["timeout"])),
            (json!({"code": "1", "timeout": 301}), json!(["timeout"])),
            (json!({"code": "1", "timeout": 1.5}), json!(["timeout"])),
        ] {
            assert_eq!(paths(&parse_execute(&body).unwrap_err()), vec![path], "{body}");
        }
    }

    #[test]
    fn the_body_of_a_delete_names_a_session() {
        assert_eq!(parse_delete(&json!({"id": "x", "origin": "o"})).unwrap(), "x");
        for body in [json!({}), json!({"id": 1}), json!({"id": null}), json!("x")] {
            assert_eq!(parse_delete(&body).unwrap_err().code, ErrorCode::BadRequest, "{body}");
        }
    }

    #[test]
    fn a_list_is_filtered_by_what_clients_know() {
        assert_eq!(parse_status(None).unwrap(), None);
        assert_eq!(parse_status(Some("active")).unwrap(), Some(SessionState::Active));
        assert_eq!(parse_status(Some("destroyed")).unwrap(), Some(SessionState::Destroyed));
        for word in ["", "closing", "opening", "ACTIVE"] {
            assert_eq!(paths(&parse_status(Some(word)).unwrap_err()), vec![json!(["status"])], "{word}");
        }
    }

    #[test]
    fn states_move_forward_only_and_clients_see_two() {
        use SessionState::{Active, Closing, Destroyed, Opening};
        let rank = |state: SessionState| SessionState::ALL.iter().position(|known| *known == state);
        for step in SessionMove::ALL {
            assert!(rank(step.from()) < rank(step.to()), "{step:?}");
        }
        let all = [Opening, Active, Closing, Destroyed];
        assert_eq!(all.map(SessionState::shown), [None, Some("active"), Some("destroyed"), Some("destroyed")]);
    }

    #[test]
    fn a_session_costs_two_credits_a_minute_by_the_second_and_at_least_one_minute() {
        for (duration_ms, credits) in [
            (0, 2),
            (1, 2),
            (60_000, 2),
            (60_001, 3),
            (61_000, 3),
            (90_000, 3),
            (90_001, 4),
            (600_000, 20),
            (3_600_000, 120),
        ] {
            assert_eq!(credits_for(duration_ms), credits, "{duration_ms} ms");
        }
    }

    #[test]
    fn nobody_pays_past_the_ttl_or_for_what_never_opened() {
        let (opened, expires) = (Timestamp(10_000), Timestamp(610_000));
        let billed = |at: i64, reason| {
            let bill = bill(Some(opened), expires, Timestamp(at), reason);
            (bill.ended_at.0, bill.duration_ms, bill.credits)
        };
        assert_eq!(billed(100_000, EndReason::Deleted), (100_000, 90_000, 3));
        assert_eq!(billed(700_000, EndReason::Ttl), (610_000, 600_000, 20));
        assert_eq!(billed(5_000, EndReason::WorkerDied), (10_000, 0, 2), "a heartbeat older than the session");
        assert_eq!(billed(100_000, EndReason::NotOpened), (100_000, 0, 0));
        let never = bill(None, expires, Timestamp(50_000), EndReason::WorkerDied);
        assert_eq!((never.duration_ms, never.credits), (0, 0));
    }
}
