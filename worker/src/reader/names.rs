//! Names and places of persons in texts, for their redaction. All of a text is read or nothing: what was not looked at may
//! hold a name.

use futures_util::future::try_join_all;
use serde_json::{Value, json};
use url::Url;
use weir_shared::domain::scrape::Entity;

use super::ask::Task;
use super::passages::{self, Excerpt};
use super::{PageText, ReadError, Reader};

/// Longest list, tokens.
const ANSWER: u32 = 4_000;
/// Most parts that a text is read in.
const PARTS: usize = 12;
/// Longest name, bytes.
const MAX_NAME: usize = 200;

impl Reader<'_> {
    /// What of `kinds` stands in the text, as it stands there.
    ///
    /// # Errors
    /// As [`ReadError`] says; also when the text is too long to be read whole.
    pub async fn names(&self, url: &Url, text: &str, kinds: &[Entity]) -> Result<Vec<(String, Entity)>, ReadError> {
        let model = self.model.as_ref().ok_or(ReadError::NotConfigured)?.settings();
        let parts = parts(text, passages::room(model.context, ANSWER));
        if parts.len() > PARTS {
            return Err(ReadError::Unusable("the page is too long to be searched for names".to_owned()));
        }
        let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let entry = json!({"type": "object", "properties": {"text": {"type": "string"},
            "kind": {"type": "string", "enum": names}}, "required": ["text", "kind"], "additionalProperties": false});
        let schema = json!({"type": "object", "properties": {"found": {"type": "array", "items": entry}},
            "required": ["found"], "additionalProperties": false});
        let schema = &schema;
        let asked = parts.into_iter().map(|part| async move {
            let task = Task {
                rules: "List what the page says of single persons. PERSON: names of natural persons, not of companies, \
                    products or fictional beings. LOCATION: postal addresses and places that tell where a person lives \
                    or is. Copy each exactly as it stands there, each form of it once.",
                wish: String::new(),
                name: "names",
                schema,
                strict: true,
                max_tokens: ANSWER,
            };
            let page = PageText { url, markdown: part, structured: None };
            let excerpt = Excerpt::new(page, usize::MAX, None);
            self.ask(page, &excerpt, &task, |said| found(&said, part, kinds)).await
        });
        Ok(try_join_all(asked).await?.into_iter().flatten().collect())
    }
}

/// Pieces that end with a line.
fn parts(text: &str, room: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while rest.len() > room {
        let end = rest.floor_char_boundary(room);
        let end = rest[..end].rfind('\n').map_or(end, |at| at + 1);
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    if !rest.trim().is_empty() {
        parts.push(rest);
    }
    parts
}

/// What of an answer stands in the text.
fn found(said: &Value, text: &str, kinds: &[Entity]) -> Result<Vec<(String, Entity)>, String> {
    let list = said["found"].as_array().ok_or("`found` is a list.")?;
    let entry = |entry: &Value| {
        let name = entry["text"].as_str()?.trim();
        let kind = kinds.iter().find(|kind| Some(kind.as_str()) == entry["kind"].as_str())?;
        let is_there = (2..=MAX_NAME).contains(&name.len()) && text.contains(name);
        is_there.then(|| (name.to_owned(), *kind))
    };
    Ok(list.iter().filter_map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_in_whole_lines_and_answers_stand_in_them() {
        let text = "one line\n".repeat(100);
        let pieces = parts(&text, 100);
        assert!(pieces.len() > 5 && pieces.iter().all(|part| part.len() <= 100 && part.ends_with('\n')));
        assert_eq!(pieces.concat(), text);
        assert!(parts("", 100).is_empty());
        let said = json!({"found": [{"text": "Ann Lee", "kind": "PERSON"}, {"text": "Nobody", "kind": "PERSON"},
            {"text": "Ann Lee", "kind": "EMAIL"}, {"text": "A", "kind": "PERSON"}, 5]});
        let kinds = [Entity::Person, Entity::Location];
        assert_eq!(found(&said, "by Ann Lee.", &kinds), Ok(vec![("Ann Lee".to_owned(), Entity::Person)]));
        assert!(found(&json!({}), "", &kinds).is_err());
    }
}
