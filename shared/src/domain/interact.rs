//! Interaction with a scrape (spec 2.3, 4.5, 4.6; wire 8.4): the body of the call, and what of a scrape its session
//! begins with.

use serde_json::Value;

use super::scrape::ScrapeOptions;
use super::session::{
    self, ACTIVITY_TTL, CreateSession, DEFAULT_ACTIVITY_TTL, DEFAULT_EXECUTE_TIMEOUT, DEFAULT_TTL, EXECUTE_TIMEOUT,
    Language, TTL,
};
use super::validation::{Fields, Issues, Path, ValidationError, refusal};
use crate::error_code::ErrorCode;

/// Length of a prompt, characters (spec 4.5).
const PROMPT: std::ops::RangeInclusive<i64> = 1..=10_000;

/// What is to be done in the session: exactly one of the two (spec 4.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instruction {
    /// 1 to 100,000 characters. Default language: [`Language::Node`].
    Code { code: String, language: Language },
    /// A task in plain language, 1 to 10,000 characters.
    Prompt(String),
}

impl Instruction {
    /// The word for figures and logs: the language, or `prompt`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Code { language, .. } => language.as_str(),
            Self::Prompt(_) => "prompt",
        }
    }
}

/// `POST /v2/scrape/{jobId}/interact`, valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InteractRequest {
    pub instruction: Instruction,
    /// Milliseconds, 1,000 to 300,000. Default 30,000.
    pub timeout_ms: i64,
    /// The session that the first call makes; later ones use it as it is.
    pub session: CreateSession,
    /// What was given and has no effect.
    pub warning: Option<String>,
}

/// Reads the body of `POST /v2/scrape/{jobId}/interact`. It is not strict (wire 2.2), and `null` stands for absent.
///
/// # Errors
/// Every wrong field; both of `code` and `prompt`, or neither.
pub fn parse_interact(body: &Value) -> Result<InteractRequest, ValidationError> {
    let mut issues = Issues::default();
    let request = Fields::open(body, Path::new(), &mut issues).and_then(|fields| {
        let mut fields = fields.nulls_are_absent();
        let given = (fields.get("code").is_some(), fields.get("prompt").is_some());
        let language = session::read_language(&mut fields);
        let instruction = match given {
            (true, false) => session::read_code(&mut fields).map(|code| Instruction::Code { code, language }),
            (false, true) => fields.text("prompt", PROMPT).map(|text| Instruction::Prompt(text.to_owned())),
            (true, true) => {
                fields.issues.rule(Path::new(), "Only one of 'code' and 'prompt' may be provided.");
                None
            }
            (false, false) => {
                fields.issues.rule(Path::new(), "Either 'code' or 'prompt' must be provided.");
                None
            }
        };
        if let Some(Instruction::Prompt(text)) = &instruction
            && text.trim().is_empty()
        {
            fields.issues.rule(fields.path_of("prompt"), "prompt must not be blank");
        }
        let seconds = *EXECUTE_TIMEOUT.start() as f64..=*EXECUTE_TIMEOUT.end() as f64;
        let timeout = fields.number("timeout", seconds).unwrap_or(DEFAULT_EXECUTE_TIMEOUT as f64);
        let session = CreateSession {
            ttl: fields.integer("ttl", TTL).unwrap_or(DEFAULT_TTL),
            activity_ttl: fields.integer("activityTtl", ACTIVITY_TTL).unwrap_or(DEFAULT_ACTIVITY_TTL),
            stream_web_view: true,
            profile: None,
            // How it goes on follows the scrape.
            block_ads: true,
            location: None,
            warning: None,
        };
        session::read_labels(&mut fields);
        let warning = session::unknown_warning(&fields);
        Some(InteractRequest { instruction: instruction?, timeout_ms: (timeout * 1_000.0) as i64, session, warning })
    });
    issues.into_result()?;
    request.ok_or_else(|| refusal(ErrorCode::BadRequest, Path::new(), "Bad Request"))
}

/// What a scrape leaves for its session (wire 8.4): enough to come to the same page again.
#[derive(Debug, Clone, PartialEq)]
pub struct ScrapeContext {
    /// The address as it was asked for.
    pub url: String,
    /// The address that the caller named for it (`JobSpec::named`). `None`: nobody did.
    pub named: Option<String>,
    /// Where the page was in the end.
    pub final_url: String,
    pub options: ScrapeOptions,
    /// An enhanced proxy has brought the page.
    pub is_enhanced: bool,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn code_and_prompts_are_read_with_their_defaults() {
        let request = parse_interact(&json!({"code": "1"})).unwrap();
        let code = Instruction::Code { code: "1".into(), language: Language::Node };
        assert_eq!((&request.instruction, request.timeout_ms, &request.warning), (&code, 30_000, &None));
        assert_eq!((request.session.ttl, request.session.activity_ttl), (600, 300));
        let body = json!({"prompt": "ä".repeat(10_000), "code": null, "language": "node", "timeout": 1.5, "ttl": 30,
            "activityTtl": 10, "origin": "o", "integration": "cli", "colour": 1});
        let request = parse_interact(&body).unwrap();
        assert_eq!((request.instruction.word(), request.timeout_ms), ("prompt", 1_500));
        assert_eq!((request.session.ttl, request.session.activity_ttl), (30, 10));
        assert!(request.warning.unwrap().contains("colour"));
    }

    #[test]
    fn exactly_one_of_code_and_prompt_is_given() {
        for (body, words) in [
            (json!({}), "Either 'code' or 'prompt' must be provided."),
            (json!({"code": null, "prompt": null}), "Either 'code' or 'prompt' must be provided."),
            (json!({"code": "1", "prompt": "go"}), "Only one of"),
        ] {
            let error = parse_interact(&body).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadRequest);
            assert!(error.message.starts_with(words), "{}", error.message);
        }
    }

    #[test]
    fn a_wrong_field_is_named() {
        for (body, path) in [
            (json!({"code": ""}), json!(["code"])),
            (json!({"code": "x".repeat(100_001)}), json!(["code"])),
            (json!({"code": 1}), json!(["code"])),
            (json!({"prompt": ""}), json!(["prompt"])),
            (json!({"prompt": " \n"}), json!(["prompt"])),
            (json!({"prompt": "x".repeat(10_001)}), json!(["prompt"])),
            (json!({"prompt": []}), json!(["prompt"])),
            (json!({"code": "1", "language": "ruby"}), json!(["language"])),
            (json!({"code": "1", "timeout": 0.5}), json!(["timeout"])),
            (json!({"code": "1", "timeout": 301}), json!(["timeout"])),
            (json!({"code": "1", "ttl": 29}), json!(["ttl"])),
            (json!({"code": "1", "activityTtl": 9}), json!(["activityTtl"])),
            (json!([]), json!([])),
        ] {
            let error = parse_interact(&body).unwrap_err();
            assert_eq!(error.issues.iter().map(|i| json!(i.path)).collect::<Vec<_>>(), vec![path], "{body}");
        }
    }
}
