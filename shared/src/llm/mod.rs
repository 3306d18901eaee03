//! The language model of the installation, behind any OpenAI-compatible chat endpoint (`WEIR_LLM_*`).
//!
//! One call asks for one JSON object that fits a schema. What comes back is data from outside: it is bounded here and
//! judged by whoever asked. The endpoint is the operator's choice, so the address guard does not apply to it.
//!
//! ```text
//! mod         what is asked, and what is made of the answer
//! dialect     what of the interface an endpoint takes
//! pace        whose turn it is, and how many are asked at a time
//! allowance   how long whoever asks may wait
//! ```

mod allowance;
mod dialect;
mod pace;

use std::borrow::Cow;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub use allowance::Allowance;
use dialect::{Dialect, is_of_format};
use pace::Pace;

use crate::config::ModelSettings;
use crate::domain::json_schema::{MAX_NESTING, depth, meant};
use crate::guests::Holder;
use crate::operator_http::{self, ReadError};
use crate::{retry_after, texts};

/// Largest answer read, bytes.
const MAX_ANSWER: usize = 1 << 20;
/// Largest refusal read, bytes.
const MAX_REFUSAL: usize = 64 << 10;
/// What a model may think before it answers, tokens, where that counts.
const THINKING: u32 = 16_000;
/// An answer that was cut off before there was an object may be so many times as long, as far as the model takes that.
const MORE: u32 = 4;
/// Bytes that count as a token where the endpoint does not count.
const BYTES_PER_TOKEN: usize = 4;
/// Most tokens that an endpoint may tell of one call; more is taken for a mistake.
const MAX_COUNT: i64 = 100_000_000;
/// Tries of one call, but for those that the endpoint refuses for the moment: one that fails, starts anew or is late gets
/// further chances. What was asked for costs its caller a page already.
const TRIES: u32 = 4;
/// Pause before the second one; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);

/// The field of an answer in which data stands that is no object.
pub const VALUE: &str = "value";

/// One thing to ask.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// What the model is to do.
    pub system: &'a str,
    /// What it is about, and what was said since: turns of `user` and `assistant`, beginning with the user's.
    pub turns: &'a [(Role, String)],
    /// A picture for the last turn, as a data URI; only for models that take pictures.
    pub picture: Option<&'a str>,
    /// Name of the schema: letters, digits and `_`.
    pub name: &'a str,
    /// JSON schema of the answer.
    pub schema: &'a Value,
    /// The endpoint is to hold the answer to the schema. Not for callers' own schemas: strict endpoints take only some.
    pub strict: bool,
    /// Longest answer, tokens.
    pub max_tokens: u32,
}

/// The schema of an object with these properties: every field is required, and no other is allowed, as strict schemas
/// want it. What may be absent is of a kind that may be null, as [`optional`] says.
pub fn strict_object(properties: Value) -> Value {
    let names: Vec<String> = properties.as_object().into_iter().flat_map(|fields| fields.keys()).cloned().collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

/// The schema of a value of the JSON type `kind`, or null.
pub fn optional(kind: &str) -> Value {
    json!({"type": [kind, "null"]})
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
}

/// Why there is no answer. The texts are for the caller of the service: no address, no key, no words of the endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("the language model did not answer in time")]
    Timeout,
    #[error("the language model could not be reached")]
    Unreachable,
    /// The endpoint answered with a status other than 2xx.
    #[error("the language model answered with status {0}")]
    Status(u16),
    #[error("the language model's answer could not be read")]
    Unreadable,
    /// The answer is not a JSON object.
    #[error("the language model did not answer with a JSON object")]
    NoJson(String),
}

/// What was spent on questions, tokens: as the endpoint counts, or by length where it does not.
#[derive(Debug, Default)]
pub struct TokenMeter {
    sent: AtomicI64,
    received: AtomicI64,
}

impl TokenMeter {
    fn add(&self, spent: Spent) {
        self.sent.fetch_add(spent.sent, Ordering::Relaxed);
        self.received.fetch_add(spent.received, Ordering::Relaxed);
    }

    /// The sums so far.
    pub fn read(&self) -> Spent {
        Spent { sent: self.sent.load(Ordering::Relaxed), received: self.received.load(Ordering::Relaxed) }
    }
}

/// Tokens of questions and of their answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    pub sent: i64,
    pub received: i64,
}

/// What a model has said.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// A JSON object.
    pub said: Value,
    /// The endpoint says nothing else than that the model was done: it was not cut off, and nothing was taken out.
    pub is_ended: bool,
}

/// The model of a process, with what is known of how fast it answers.
#[derive(Debug)]
pub struct Model {
    settings: ModelSettings,
    pace: Pace,
    /// How it wants to be asked, as far as is known.
    dialect: Mutex<Dialect>,
}

impl Model {
    pub fn new(settings: ModelSettings) -> Arc<Self> {
        let pace = Pace::new(settings.at_once);
        Arc::new(Self { settings, pace, dialect: Mutex::default() })
    }

    fn dialect(&self) -> Dialect {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is asked so from now on.
    fn learn(&self, new: Dialect) {
        let mut known = self.dialect.lock().unwrap_or_else(PoisonError::into_inner);
        let all = Dialect {
            counts_thinking: known.counts_thinking || new.counts_thinking,
            own_length: known.own_length || new.own_length,
            own_temperature: known.own_temperature || new.own_temperature,
            has_no_system: known.has_no_system || new.has_no_system,
            has_no_format: known.has_no_format || new.has_no_format,
        };
        if *known != all {
            tracing::info!(dialect = ?all, "the language model does not take all of the interface; it is asked without");
            *known = all;
        }
    }

    /// The model as this team asks it.
    pub fn asked_by(self: &Arc<Self>, holder: Holder) -> Asker {
        Asker { model: Arc::clone(self), holder }
    }
}

/// Asks the model for one team: has its turns.
#[derive(Debug, Clone)]
pub struct Asker {
    model: Arc<Model>,
    holder: Holder,
}

impl Asker {
    /// What model it is.
    pub fn settings(&self) -> &ModelSettings {
        &self.model.settings
    }

    /// Asks for a JSON object. What it costs is added to `meter`, also when it fails.
    ///
    /// # Errors
    /// As [`ModelError`] says; never later than `time` allows.
    pub async fn ask_for_json(
        &self,
        question: &Question<'_>,
        time: &Allowance,
        meter: &TokenMeter,
    ) -> Result<Value, ModelError> {
        self.ask_for_answer(question, time, meter).await.map(|answer| answer.said)
    }

    /// The same, with how the answer ended.
    ///
    /// # Errors
    /// As for [`Self::ask_for_json`].
    pub async fn ask_for_answer(
        &self,
        question: &Question<'_>,
        time: &Allowance,
        meter: &TokenMeter,
    ) -> Result<Answer, ModelError> {
        let mut most = question.max_tokens;
        loop {
            let (asked, choice) = self.ask(question, most, time, meter).await?;
            let (is_ended, is_cut_off) = (choice.is_ended(), choice.is_cut_off());
            let text = choice.into_text();
            // What it was shown as its own words is not empty, which some endpoints do not take.
            let text = if text.trim().is_empty() { "…".to_owned() } else { text };
            if let Some(said) = object_in(&text, question.schema["properties"].get(VALUE).is_some()) {
                return Ok(Answer { said: meant(question.schema, said), is_ended });
            }
            // A model that thinks has had no room left for its answer.
            let room = self.settings().context.saturating_sub(asked.len() / BYTES_PER_TOKEN);
            let more = (MORE * question.max_tokens).min(u32::try_from(room).unwrap_or(u32::MAX));
            if !is_cut_off || more <= most || self.model.dialect().own_length {
                return Err(ModelError::NoJson(text));
            }
            most = more;
        }
    }

    /// What was asked, as a text, and what was answered. An answer that says nothing is no answer.
    async fn ask(
        &self,
        question: &Question<'_>,
        most: u32,
        time: &Allowance,
        meter: &TokenMeter,
    ) -> Result<(String, Choice), ModelError> {
        let Model { settings, pace, .. } = &*self.model;
        let known = self.model.dialect();
        let mut dialect = known;
        let mut asked = body(settings, question, most, dialect).to_string();
        let mut knows_no_format = known.has_no_format;
        let mut tries = 0;
        loop {
            let turn = tokio::select! {
                biased;
                turn = pace.turn(self.holder, time) => turn?,
                () = time.over(Duration::ZERO) => return Err(ModelError::Timeout),
            };
            let answered = tokio::select! {
                biased;
                answered = post(settings, asked.clone()) => answered,
                () = time.over(Duration::ZERO) => {
                    meter.add(Spent { sent: tokens(&asked), received: 0 });
                    tries += 1;
                    if turn.late() && tries < TRIES && time.begin_anew() {
                        continue;
                    }
                    return Err(ModelError::Timeout);
                }
            };
            let said = answered.and_then(|text| {
                let answer: Option<Completion> = texts::read(&text).ok();
                let counted = answer.as_ref().and_then(Completion::spent);
                meter.add(counted.unwrap_or_else(|| Spent { sent: tokens(&asked), received: tokens(&text) }));
                answer.map_or(Err(Failure::MayPass(ModelError::Unreadable)), Completion::into_choice)
            });
            match said {
                Ok(choice) => {
                    turn.answered();
                    if dialect != known {
                        self.model.learn(Dialect { has_no_format: knows_no_format, ..dialect });
                    }
                    return Ok((asked, choice));
                }
                Err(Failure::Refused(status, why)) => {
                    // A caller's own schema may be what it does not take.
                    knows_no_format |= question.strict && is_of_format(&why);
                    dialect = dialect.after(&why).ok_or(ModelError::Status(status))?;
                    asked = body(settings, question, most, dialect).to_string();
                }
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::ForNow(status, pause)) => turn.refused(status, pause),
                Err(Failure::MayPass(error)) => {
                    drop(turn);
                    tries += 1;
                    let pause = PAUSE * 2_u32.pow(tries - 1);
                    // Nobody waits for a try that comes too late.
                    if tries == TRIES || !time.outlasts(pause) {
                        return Err(error);
                    }
                    let _standing = time.stand_still();
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

/// Tokens of a text by its length.
fn tokens(text: &str) -> i64 {
    (text.len() / BYTES_PER_TOKEN) as i64
}

fn body(model: &ModelSettings, question: &Question<'_>, most: u32, dialect: Dialect) -> Value {
    let mut system = question.system.to_owned();
    if dialect.has_no_format {
        system.push_str("\n\nAnswer with one JSON object and nothing else. Its JSON schema:\n");
        system.push_str(&question.schema.to_string());
    }
    let mut messages = Vec::with_capacity(question.turns.len() + 1);
    if !dialect.has_no_system {
        messages.push(json!({"role": "system", "content": system}));
    }
    messages.extend(question.turns.iter().enumerate().map(|(n, (role, text))| {
        let role = if *role == Role::User { "user" } else { "assistant" };
        match n == 0 && dialect.has_no_system {
            true => json!({"role": role, "content": format!("{system}\n\n{text}")}),
            false => json!({"role": role, "content": text}),
        }
    }));
    if let (Some(picture), Some(last)) = (question.picture, messages.last_mut()) {
        let picture = json!({"type": "image_url", "image_url": {"url": picture}});
        last["content"] = json!([{"type": "text", "text": last["content"].take()}, picture]);
    }
    let mut body = json!({"model": model.name, "messages": messages});
    if !dialect.own_length {
        let (name, most) =
            if dialect.counts_thinking { ("max_completion_tokens", most + THINKING) } else { ("max_tokens", most) };
        body[name] = json!(most);
    }
    if !dialect.own_temperature {
        body["temperature"] = json!(0);
    }
    if !dialect.has_no_format {
        body["response_format"] = json!({
            "type": "json_schema",
            "json_schema": {"name": question.name, "strict": question.strict, "schema": question.schema},
        });
    }
    body
}

/// Why a try failed.
enum Failure {
    /// Another one would, too.
    Final(ModelError),
    /// The endpoint does not take the question as it is, by this status, and says why.
    Refused(u16, String),
    /// Another one may go well.
    MayPass(ModelError),
    /// The endpoint has more to do than it takes, by this status, and wants to be asked after so long.
    ForNow(u16, Option<Duration>),
}

impl Failure {
    /// What a status means that says nothing of the question.
    fn of_status(status: u16) -> Self {
        let error = ModelError::Status(status);
        if matches!(status, 408 | 500..=599) { Self::MayPass(error) } else { Self::Final(error) }
    }

    /// What an error means that stands in an answer: gateways tell so of the endpoint behind them, in a body of status 200.
    fn of_error(error: &Value) -> Self {
        match error["code"].as_u64().and_then(|code| u16::try_from(code).ok()) {
            Some(status @ (429 | 503 | 529)) => Self::ForNow(status, None),
            Some(status @ 400..=599) => Self::of_status(status),
            _ => Self::MayPass(ModelError::Unreadable),
        }
    }
}

async fn post(model: &ModelSettings, body: String) -> Result<String, Failure> {
    let request = operator_http::client().post(model.url.clone()).header(CONTENT_TYPE, "application/json").body(body);
    let request = match &model.key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    let response = request.send().await.map_err(|error| {
        tracing::warn!(error = %error.without_url(), "the language model could not be reached");
        Failure::MayPass(ModelError::Unreachable)
    })?;
    let status = response.status().as_u16();
    match status {
        200..=299 => {}
        // Anthropic's word for an overload is 529.
        429 | 503 | 529 => return Err(Failure::ForNow(status, retry_after::asked(response.headers()))),
        // Some have these for a schema that they do not take, too, and for much else.
        400 | 404 | 422 | 500 | 501 => {
            let body = operator_http::read(response, MAX_REFUSAL).await.unwrap_or_default();
            let body = String::from_utf8_lossy(&body).into_owned();
            let why = words_in(&body);
            if matches!(status, 400 | 422) || is_of_format(&why) {
                tracing::warn!(status, code = code_in(&body), "the language model does not take a question");
                return Err(Failure::Refused(status, why));
            }
            tracing::warn!(status, "the language model failed");
            return Err(Failure::of_status(status));
        }
        _ => {
            tracing::warn!(status, "the language model failed");
            return Err(Failure::of_status(status));
        }
    }
    let bytes = operator_http::read(response, MAX_ANSWER).await.map_err(|error| match error {
        ReadError::TooLong => Failure::Final(ModelError::Unreadable),
        ReadError::Cut => Failure::MayPass(ModelError::Unreachable),
    })?;
    String::from_utf8(bytes).map_err(|_| Failure::Final(ModelError::Unreadable))
}

/// The sentences of a refusal that say what is not taken, with the name of the field where it stands by itself. Some repeat
/// the question beside them, which holds every name.
fn words_in(refusal: &str) -> String {
    let Ok(whole) = serde_json::from_str::<Value>(refusal) else { return refusal.to_owned() };
    let error = whole.get("error").unwrap_or(&whole);
    // As FastAPI has it: what is wrong at which place, and the input.
    let details = whole["detail"].as_array().into_iter().flatten();
    let details = details.flat_map(|detail| [&detail["loc"], &detail["msg"]]).map(Value::to_string);
    let beside = if error.is_string() { &whole["message"] } else { &Value::Null };
    let texts = [error, beside, &error["message"], &error["param"], &error["detail"]];
    let words: Vec<String> = texts.into_iter().filter_map(Value::as_str).map(str::to_owned).chain(details).collect();
    if words.is_empty() { refusal.to_owned() } else { words.join(" ") }
}

/// The word for what is wrong in a refusal; not its sentence, which may hold what was asked.
fn code_in(refusal: &str) -> String {
    let code = serde_json::from_str::<Value>(refusal).ok();
    let code = code.as_ref().and_then(|refusal| refusal["error"]["code"].as_str()).unwrap_or_default();
    let is_word = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if is_word { code.to_owned() } else { String::new() }
}

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    /// What went wrong instead of an answer.
    #[serde(default)]
    error: Value,
    /// What the call cost; whatever it is, it must not spoil the answer.
    #[serde(default)]
    usage: Value,
}

impl Completion {
    /// The endpoint's own counts; `None` where they make no sense.
    fn spent(&self) -> Option<Spent> {
        let count = |name: &str| self.usage[name].as_i64().filter(|count| (0..=MAX_COUNT).contains(count));
        Some(Spent { sent: count("prompt_tokens")?, received: count("completion_tokens")? })
    }

    /// The answer, if it says anything.
    fn into_choice(self) -> Result<Choice, Failure> {
        match self.choices.into_iter().flatten().next() {
            Some(choice) if choice.says_something() => Ok(choice),
            Some(Choice { error, .. }) if !error.is_null() => Err(Failure::of_error(&error)),
            _ => Err(Failure::of_error(&self.error)),
        }
    }
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    /// What went wrong with it.
    #[serde(default)]
    error: Value,
    /// `stop` where the model was done; whatever it is, it must not spoil the answer.
    #[serde(default)]
    finish_reason: Value,
}

#[derive(Deserialize)]
struct Message {
    content: Option<Content>,
    /// The model's words where it does not want to answer.
    #[serde(default)]
    refusal: Value,
    /// What it has thought. Some endpoints take all that a model says for that.
    #[serde(default)]
    reasoning_content: Value,
    #[serde(default)]
    reasoning: Value,
}

impl Choice {
    /// Whether there is an answer, or would be with more room.
    fn says_something(&self) -> bool {
        self.is_cut_off() || self.words().is_some()
    }

    fn is_cut_off(&self) -> bool {
        self.finish_reason == "length"
    }

    /// What the model says, or that it does not want to answer; what it has thought only where that is an object and nothing
    /// else.
    fn words(&self) -> Option<Cow<'_, str>> {
        let message = &self.message;
        let content = message.content.as_ref().map(Content::text).filter(|text| !text.trim().is_empty());
        let thought = || {
            let thought = [&message.reasoning_content, &message.reasoning].into_iter().filter_map(Value::as_str);
            thought
                .map(str::trim)
                .find(|text| serde_json::from_str::<Map<String, Value>>(text).is_ok())
                .map(Cow::Borrowed)
        };
        content.or_else(|| message.refusal.as_str().map(Cow::Borrowed)).or_else(thought)
    }

    fn into_text(self) -> String {
        self.words().map(Cow::into_owned).unwrap_or_default()
    }

    /// Whether the model was done and did answer, as far as the endpoint says.
    fn is_ended(&self) -> bool {
        (self.finish_reason.is_null() || self.finish_reason == "stop") && self.message.refusal.is_null()
    }
}

/// A text, or a list of parts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
}

impl Content {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Parts(parts) => parts.iter().filter_map(|part| part.text.as_deref()).collect(),
        }
    }
}

/// The JSON object in a text: alone, in a fence, or with words around it; of several the last one, which is what a model has
/// put right. What it has thought aloud before is none, and neither is one that is nested beyond reason. A list is the value
/// that is asked for inside an object, or stands around the one object.
fn object_in(text: &str, wraps: bool) -> Option<Value> {
    let found = texts::read::<Value>(text.trim()).ok();
    let found = found.or_else(|| {
        // Some templates begin the thought themselves, so that only its end is seen.
        let said = match text.rsplit_once("</think>") {
            Some((_, said)) => said,
            None if text.trim_start().starts_with("<think>") => return None,
            None => text,
        };
        last_in(&texts::mended(said))
    })?;
    let object = match found {
        Value::Array(list) if wraps => json!({ VALUE: list }),
        Value::Array(mut list) if list.len() == 1 => list.pop()?,
        other => other,
    };
    Some(object).filter(|value| value.is_object() && depth(value) <= MAX_NESTING)
}

/// The last object, or list of objects, among words. None where one is broken or cut off: what is whole in it, or stands
/// before it, was not the answer.
fn last_in(text: &str) -> Option<Value> {
    let mut found = None;
    let mut at = 0;
    while let Some(next) = text[at..].find(['{', '[']) {
        let start = at + next;
        let inside = text[start + 1..].trim_start();
        let begins = match text.as_bytes()[start] {
            b'{' => inside.starts_with(['"', '}']),
            _ => inside.starts_with('{'),
        };
        // Words in braces.
        if !begins {
            at = start + 1;
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let value = values.next()?.ok()?;
        at = start + values.byte_offset();
        if found.is_none() || value != json!({}) {
            found = Some(value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn an_object_is_found_among_words() {
        for text in [
            "{\"a\":1}",
            " {\"a\":1}\n",
            "```json\n{\"a\":1}\n```",
            "Sure: {\"a\":1}. Anything else?",
            "<think>{\"a\":2}? No.</think>\n{\"a\":1}",
            "It may be {\"a\":2}.\n</think>\n\n{\"a\":1}",
            "The {wanted} data [1](/x):\n```json\n{\"a\":1}\n```\nNote: {b} is empty, {} in JSON.",
            "{\"a\":2}\nWait, it is\n{\"a\":1}",
            "[{\"a\":1}]",
            "```\n[ {\"a\":1} ]\n```",
        ] {
            assert_eq!(object_in(text, false), Some(json!({"a": 1})), "{text}");
        }
        for text in [
            "",
            "[1]",
            "{",
            "}{",
            "no",
            "{\"a\":}",
            "<think>Say {\"a\":1}",
            "[{\"a\":1},{\"a\":2}]",
            "So: [{\"a\":1},{\"a\":2}]",
            "{\"a\":2}, no: {\"a\":",
            "{\"a\":{\"b\":1}",
            "{\"a\":1} </think>",
        ] {
            assert_eq!(object_in(text, false), None, "{text}");
        }
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(
            object_in(&nested(MAX_NESTING - 2), false).is_some()
                && object_in(&nested(MAX_NESTING + 1), false).is_none()
        );
        for text in ["[{\"a\":1}]", "{\"value\":[{\"a\":1}]}", "So:\n```\n[{\"a\":1}]\n```"] {
            assert_eq!(object_in(text, true), Some(json!({"value": [{"a": 1}]})), "{text}");
        }
    }

    #[test]
    fn an_answer_that_was_cut_off_or_refused_has_not_ended() {
        let is_ended = |choice: Value| serde_json::from_value::<Choice>(choice).unwrap().is_ended();
        let with = |reason: Value| json!({"message": {"content": "{}"}, "finish_reason": reason});
        for (choice, ended) in [
            (json!({"message": {"content": "{}"}}), true),
            (with(json!(null)), true),
            (with(json!("stop")), true),
            (with(json!("length")), false),
            (with(json!("content_filter")), false),
            (with(json!(7)), false),
            (json!({"message": {"content": "{}", "refusal": null}}), true),
            (json!({"message": {"content": "{}", "refusal": "I will not."}}), false),
        ] {
            assert_eq!(is_ended(choice.clone()), ended, "{choice}");
        }
    }

    #[test]
    fn an_answer_is_what_says_something() {
        let of = |body: Value| serde_json::from_value::<Completion>(body).unwrap().into_choice();
        let says =
            |message: Value, reason: &str| of(json!({"choices": [{"message": message, "finish_reason": reason}]}));
        for (message, text) in [
            (json!({"content": "{}"}), "{}"),
            (json!({"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "{}"}]}), "{}"),
            (json!({"content": [{"type": "text", "text": null}, {"type": "text", "text": "{}"}]}), "{}"),
            (json!({"content": null, "reasoning_content": " {\"a\": 1} "}), "{\"a\": 1}"),
            (json!({"content": "", "reasoning": "{\"a\": 1}"}), "{\"a\": 1}"),
            (json!({"content": "{}", "reasoning_content": "{\"a\": 1}"}), "{}"),
            (json!({"content": null, "refusal": "I will not."}), "I will not."),
        ] {
            assert_eq!(says(message.clone(), "stop").ok().map(Choice::into_text).as_deref(), Some(text), "{message}");
        }
        assert_eq!(says(json!({"content": null}), "length").ok().map(Choice::into_text).as_deref(), Some(""));
        let failure = |body: Value| match of(body) {
            Ok(_) => "none".to_owned(),
            Err(Failure::ForNow(status, None)) => format!("for now {status}"),
            Err(Failure::MayPass(error)) => format!("may pass: {error}"),
            Err(Failure::Final(error)) => format!("final: {error}"),
            Err(_) => "another".to_owned(),
        };
        let nothing = "may pass: the language model's answer could not be read";
        for (body, what) in [
            (json!({}), nothing),
            (json!({"choices": null}), nothing),
            (json!({"choices": []}), nothing),
            (json!({"choices": [{"message": {"content": " "}, "finish_reason": "stop"}]}), nothing),
            (json!({"choices": [{"message": {"content": null, "reasoning": "Hm, {\"a\": 1}?"}}]}), nothing),
            (json!({"error": "overloaded"}), nothing),
            (json!({"error": {"code": 429, "message": "slow"}}), "for now 429"),
            (json!({"error": {"code": 502}}), "may pass: the language model answered with status 502"),
            (json!({"error": {"code": 403}}), "final: the language model answered with status 403"),
            (
                json!({"choices": [{"message": {"content": ""}, "finish_reason": "error", "error": {"code": 502}}]}),
                "may pass: the language model answered with status 502",
            ),
        ] {
            assert_eq!(failure(body.clone()), what, "{body}");
        }
    }

    #[test]
    fn a_refusal_is_read_without_the_question_that_it_repeats() {
        for (refusal, words) in [
            (
                json!({"error": {"message": "No.", "param": "temperature", "input": {"role": "system"}}}),
                "No. temperature",
            ),
            (
                json!({"object": "error", "message": "System role not supported", "code": 400}),
                "System role not supported",
            ),
            (json!({"error": "model is gone"}), "model is gone"),
            (
                json!({"detail": [{"loc": ["body", "max_tokens"], "msg": "bad", "input": {"temperature": 0}}]}),
                "[\"body\",\"max_tokens\"] \"bad\"",
            ),
            (json!({"odd": 1}), "{\"odd\":1}"),
        ] {
            assert_eq!(words_in(&refusal.to_string()), words);
        }
        assert_eq!(words_in("<html>"), "<html>");
    }

    #[test]
    fn what_an_endpoint_counts_is_believed_within_reason() {
        let spent = |usage: Value| {
            let answer: Completion = serde_json::from_value(json!({"choices": [], "usage": usage})).unwrap();
            answer.spent()
        };
        assert_eq!(spent(json!({"prompt_tokens": 7, "completion_tokens": 2})), Some(Spent { sent: 7, received: 2 }));
        for odd in [
            json!(null),
            json!("7"),
            json!({}),
            json!({"prompt_tokens": -1, "completion_tokens": 2}),
            json!({"prompt_tokens": "7", "completion_tokens": 2}),
            json!({"prompt_tokens": 1e30, "completion_tokens": 2}),
        ] {
            assert_eq!(spent(odd.clone()), None, "{odd}");
        }
    }

    #[test]
    fn a_question_carries_its_schema_either_way() {
        let url = "http://x.test/v1".parse().unwrap();
        let model = ModelSettings { url, key: None, name: "m".to_owned(), images: true, context: 32_000, at_once: 2 };
        let schema = json!({"type": "object"});
        let turns = [(Role::User, "hi".to_owned()), (Role::Assistant, "{}".to_owned())];
        let turns_of = |picture| Question {
            system: "Do it.",
            turns: &turns,
            picture,
            name: "x",
            schema: &schema,
            strict: true,
            max_tokens: 9,
        };
        let question = turns_of(None);
        let strict = body(&model, &question, 9, Dialect::default());
        assert_eq!(strict["response_format"]["json_schema"]["schema"], schema);
        assert_eq!(strict["messages"][2], json!({"role": "assistant", "content": "{}"}));
        assert_eq!((&strict["max_tokens"], &strict["temperature"]), (&json!(9), &json!(0)));
        let seen = body(&model, &turns_of(Some("data:image/jpeg;base64,AA")), 9, Dialect::default());
        let parts = json!([{"type": "text", "text": "{}"},
            {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AA"}}]);
        assert_eq!(seen["messages"][2]["content"], parts);
        let dialect =
            Dialect { counts_thinking: true, own_temperature: true, has_no_format: true, ..Dialect::default() };
        let loose = body(&model, &question, 9, dialect);
        for absent in ["response_format", "max_tokens", "temperature"] {
            assert!(loose.get(absent).is_none(), "{absent}");
        }
        assert_eq!(loose["max_completion_tokens"], 9 + THINKING);
        assert!(loose["messages"][0]["content"].as_str().unwrap().contains("\"type\":\"object\""));
        let bare = body(&model, &question, 9, Dialect { own_length: true, has_no_system: true, ..dialect });
        assert!(bare.get("max_completion_tokens").is_none() && bare.get("max_tokens").is_none());
        let first = &bare["messages"][0];
        assert_eq!((&first["role"], bare["messages"].as_array().unwrap().len()), (&json!("user"), 2));
        let told = first["content"].as_str().unwrap();
        assert!(told.starts_with("Do it.") && told.ends_with("\n\nhi"), "{told}");
    }
}
