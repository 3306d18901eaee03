#![allow(clippy::unwrap_used, reason = "tests")]
use std::time::Duration;

use serde_json::json;

use super::sessions::{CodeOutput, Done, EXECUTE, ExecuteCode, OpenSession, PromptOutput, RunBounds, RunPrompt};
use super::*;
use crate::domain::session::Language;
use crate::ids::KeyId;

#[test]
fn a_path_names_its_session() {
    let id = SessionId::new();
    assert_eq!(EXECUTE.of(id), format!("/sessions/{id}/execute"));
    assert_eq!(relay::LiveQuery::new(true).path(id), format!("/sessions/{id}/live?control=1"));
    assert_eq!(relay::CDP.pattern(), "/sessions/{id}/cdp");
}

#[test]
fn a_status_stands_for_one_refusal() {
    for refusal in Refusal::ALL {
        assert_eq!(Refusal::of_status(refusal.status()), Some(refusal));
    }
    for status in [200, 101, 403, 500] {
        assert_eq!(Refusal::of_status(status), None);
    }
    assert_eq!(RefusalBody::text_of(br#"{"error": "why", "more": 1}"#), "why");
    assert_eq!(RefusalBody::text_of(b"<html>"), "no reason given");
}

#[test]
fn only_the_secret_itself_is_admitted() {
    let secret = Secret::new("the secret");
    assert!(secret.admits(Some(b"the secret")));
    for wrong in [None, Some(b"".as_slice()), Some(b"the secre"), Some(b"the secret ")] {
        assert!(!secret.admits(wrong));
    }
}

/// Processes of two releases talk to each other during an upgrade: this text is what earlier ones read and write.
#[test]
fn bodies_are_written_as_other_releases_read_them() {
    let (id, key) = (SessionId::new(), KeyId::new());
    let open = OpenSession { id, language: Some(Language::Node) };
    assert_eq!(serde_json::to_value(open).unwrap(), json!({"id": id, "language": "node"}));
    let bounds = RunBounds::of(Duration::from_secs(5));
    assert_eq!(bounds.answer, Duration::from_secs(9));
    let execute = ExecuteCode { code: "1".into(), language: Language::Bash, bounds };
    let text = r#"{"code":"1","language":"bash","timeout_ms":5000}"#;
    assert_eq!(serde_json::to_string(&execute).unwrap(), text);
    assert_eq!(serde_json::from_str::<ExecuteCode<'_>>(text).unwrap().bounds, bounds);
    let hurried = RunBounds { answer: Duration::from_secs(7), ..bounds };
    let written = serde_json::to_value(ExecuteCode { bounds: hurried, ..execute }).unwrap();
    assert_eq!((&written["timeout_ms"], &written["answer_in_ms"]), (&json!(5_000), &json!(7_000)));
    assert_eq!(serde_json::from_value::<ExecuteCode<'_>>(written).unwrap().bounds, hurried);
    let prompt = RunPrompt { prompt: "p".into(), bounds, key: Some(key) };
    assert_eq!(serde_json::to_value(prompt).unwrap(), json!({"prompt": "p", "timeout_ms": 5_000, "key": key}));
    assert_eq!(serde_json::to_string(&Done {}).unwrap(), "{}");
    let text = r#"{"stdout":"a","result":null,"stderr":"","exitCode":0,"killed":false,"error":null,"truncated":false}"#;
    let output: CodeOutput = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&output).unwrap(), text);
    let text = r#"{"success":true,"output":"o","result":null,"error":null,"killed":false,"steps":[{"number":1}]}"#;
    let output: PromptOutput = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&output).unwrap(), text);
}

#[test]
fn what_another_release_adds_or_leaves_out_is_borne() {
    let id = SessionId::new();
    let open: OpenSession = serde_json::from_value(json!({"id": id, "language": "cobol", "more": 1})).unwrap();
    assert_eq!((open.id, open.language), (id, None));
    let open: OpenSession = serde_json::from_value(json!({"id": id})).unwrap();
    assert_eq!(open.language, None);
    let output: CodeOutput = serde_json::from_value(json!({"exitCode": 0, "more": 1})).unwrap();
    assert_eq!((output.exit_code, output.killed, output.stdout), (Some(0), false, None));
    let prompt: RunPrompt<'static> = serde_json::from_value(json!({"prompt": "p", "timeout_ms": 1})).unwrap();
    assert_eq!((prompt.key, prompt.bounds), (None, RunBounds::of(Duration::from_millis(1))));
    let query: relay::LiveQuery = serde_json::from_value(json!({})).unwrap();
    assert!(!query.has_control());
}
