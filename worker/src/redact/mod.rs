//! `redactPII`: data of persons goes out of every text that is delivered (wire 3.2).
//!
//! What has a form is found by [`patterns`]; names and places of persons only a language model can tell. Where there is
//! none, the page fails if the caller has named them, else they stay and the caller is told so, as of pictures.

pub mod patterns;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use regex::Regex;
use serde_json::{Map, Value};
use weir_shared::domain::document::Document;
use weir_shared::domain::scrape::{Entity, Redaction, ReplaceStyle};

use patterns::Search;

/// Most bytes of a text that are looked for as they stand.
const MAX_NAME: usize = 200;

/// What to take out, and how.
pub struct Redactor<'a> {
    redaction: &'a Redaction,
    entities: Vec<Entity>,
    country: Option<phonenumber::country::Id>,
    /// Names and places, as they stand in the texts.
    names: Option<Regex>,
    kinds: BTreeMap<String, Entity>,
}

impl<'a> Redactor<'a> {
    /// `country`: where numbers without one are called from, ISO 3166 alpha-2. `names`: what a model has found.
    ///
    /// # Errors
    /// When there are more names than can be looked for.
    pub fn new(
        redaction: &'a Redaction,
        country: Option<&str>,
        names: Vec<(String, Entity)>,
    ) -> Result<Self, regex::Error> {
        let kinds: BTreeMap<String, Entity> = names
            .into_iter()
            .map(|(name, entity)| (words(&name), entity))
            .filter(|(name, _)| name.chars().count() > 1 && name.len() <= MAX_NAME)
            .collect();
        // The longest first, so that no name hides behind a part of it.
        let mut list: Vec<&String> = kinds.keys().collect();
        list.sort_by_key(|name| std::cmp::Reverse(name.len()));
        let alternatives: Vec<String> = list.into_iter().map(|name| as_pattern(name)).collect();
        let names = if alternatives.is_empty() { None } else { Some(Regex::new(&alternatives.join("|"))?) };
        let country = country.and_then(|code| code.parse().ok());
        Ok(Self { redaction, entities: redaction.entities(), country, names, kinds })
    }

    /// Takes the data out of all texts of a document. Computes.
    pub fn redact(&self, document: &Document) -> serde_json::Result<Document> {
        let mut value = serde_json::to_value(document)?;
        if let Value::Object(fields) = &mut value {
            for (name, field) in
                fields.iter_mut().filter(|(name, _)| !matches!(name.as_str(), "screenshot" | "warning"))
            {
                self.redact_value(field, matches!(name.as_str(), "html" | "rawHtml"));
            }
        }
        serde_json::from_value(value)
    }

    fn redact_value(&self, value: &mut Value, is_html: bool) {
        let mut open = vec![(value, is_html)];
        while let Some((value, is_html)) = open.pop() {
            match value {
                Value::String(text) if !text.starts_with("data:") => {
                    let redacted = match self.text(text, is_html) {
                        Cow::Owned(redacted) => redacted,
                        Cow::Borrowed(_) => continue,
                    };
                    *text = redacted;
                }
                Value::Array(list) => open.extend(list.iter_mut().map(|value| (value, is_html))),
                Value::Object(map) => {
                    self.redact_names(map);
                    open.extend(map.iter_mut().map(|(name, value)| (value, is_html || name == "html")));
                }
                _ => {}
            }
        }
    }

    /// What scripts answer may have an address for a name. Names that become the same are told apart by a number.
    fn redact_names(&self, map: &mut Map<String, Value>) {
        if map.keys().all(|name| matches!(self.text(name, false), Cow::Borrowed(_))) {
            return;
        }
        // Of each name the number that is tried next: all of very many may become the same.
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for (name, value) in std::mem::take(map) {
            let name = self.text(&name, false).into_owned();
            let mut unique = name.clone();
            while map.contains_key(&unique) {
                let number = numbers.entry(name.clone()).or_insert(1);
                *number += 1;
                unique = format!("{name} ({number})");
            }
            map.insert(unique, value);
        }
    }

    /// One text without the data.
    pub fn text<'t>(&self, text: &'t str, is_html: bool) -> Cow<'t, str> {
        let is_loose = self.redaction.is_aggressive();
        let search = Search { entities: &self.entities, is_loose, country: self.country };
        let found = patterns::find(text, search);
        let found = found.into_iter().map(|(range, entity)| (range, Some(entity)));
        let text = self.replace(text, found.collect(), is_html);
        let Some(names) = &self.names else { return text };
        let found = names.find_iter(&text).map(|m| (m.range(), self.kinds.get(&words(&unescape(m.as_str()))).copied()));
        let found: Vec<_> = found.collect();
        if found.is_empty() {
            return text;
        }
        Cow::Owned(self.replace(&text, found, is_html).into_owned())
    }

    fn replace<'t>(
        &self,
        text: &'t str,
        found: Vec<(std::ops::Range<usize>, Option<Entity>)>,
        is_html: bool,
    ) -> Cow<'t, str> {
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for (range, entity) in found {
            out.push_str(&text[at..range.start]);
            match self.redaction.replace_style {
                ReplaceStyle::Tag => {
                    let name = entity.unwrap_or(Entity::Person).as_str();
                    // In HTML the marks would be an element's, and not be seen.
                    out.push_str(&if is_html { format!("&lt;{name}&gt;") } else { format!("<{name}>") });
                }
                ReplaceStyle::Mask => out.extend(text[range.clone()].chars().map(|_| '*')),
                ReplaceStyle::Remove => {}
            }
            at = range.end;
        }
        out.push_str(&text[at..]);
        Cow::Owned(out)
    }

    /// All texts of a document without marks, for a model to look through; each line once.
    pub fn texts(document: &Document) -> String {
        let mut seen = std::collections::HashSet::new();
        let mut out = String::new();
        let mut add = |text: &str| {
            for line in text.lines().map(str::trim).filter(|line| line.chars().any(char::is_alphabetic)) {
                if seen.insert(line.to_owned()) {
                    out.push_str(line);
                    out.push('\n');
                }
            }
        };
        let Ok(value) = serde_json::to_value(document) else { return out };
        let mut open = vec![(&value, false)];
        while let Some((value, is_html)) = open.pop() {
            match value {
                Value::String(text) if is_html => add(&unescape(&without_tags(text))),
                Value::String(text) if !text.starts_with("data:") => add(text),
                Value::Array(list) => open.extend(list.iter().map(|value| (value, is_html))),
                Value::Object(map) => {
                    let is_text = |name: &str| !matches!(name, "screenshot" | "warning" | "links" | "images");
                    let fields = map.iter().filter(|(name, _)| is_text(name));
                    open.extend(fields.map(|(name, v)| (v, is_html || matches!(name.as_str(), "html" | "rawHtml"))));
                }
                _ => {}
            }
        }
        out
    }
}

/// A name with single spaces.
fn words(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A name as it may stand in markdown or HTML: spaces of any kind and number, marks escaped.
fn as_pattern(name: &str) -> String {
    let of_char = |c: char| match c {
        ' ' => r"(?:\s|&nbsp;)+".to_owned(),
        '\'' | '’' => "(?:'|’|&#39;|&#x27;|&apos;|&rsquo;)".to_owned(),
        '&' => "&(?:amp;)?".to_owned(),
        c => regex::escape(c.encode_utf8(&mut [0; 4])),
    };
    let edge = |c: Option<char>| if c.is_some_and(char::is_alphanumeric) { r"\b" } else { "" };
    let body: String = name.chars().map(of_char).collect();
    format!("{}{body}{}", edge(name.chars().next()), edge(name.chars().next_back()))
}

fn unescape(text: &str) -> String {
    let mut out = text.to_owned();
    for (from, to) in [
        ("&nbsp;", " "),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&apos;", "'"),
        ("&rsquo;", "’"),
        ("&quot;", "\""),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ] {
        if out.contains('&') {
            out = out.replace(from, to);
        }
    }
    out
}

fn without_tags(html: &str) -> String {
    let mut out = String::with_capacity(html.len() / 2);
    let mut is_tag = false;
    for c in html.chars() {
        match c {
            '<' => {
                is_tag = true;
                out.push('\n');
            }
            '>' => is_tag = false,
            c if !is_tag => out.push(c),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use weir_shared::domain::scrape::RedactMode;

    use super::*;

    fn redaction(replace_style: ReplaceStyle) -> Redaction {
        Redaction { mode: RedactMode::Fast, entities: Vec::new(), replace_style }
    }

    #[test]
    fn each_style_replaces_in_its_way() {
        let text = "Ask a@b.example or +49 30 901820.";
        for (style, expected) in [
            (ReplaceStyle::Tag, "Ask <EMAIL> or <PHONE>."),
            (ReplaceStyle::Mask, "Ask *********** or *************."),
            (ReplaceStyle::Remove, "Ask  or ."),
        ] {
            let redaction = redaction(style);
            assert_eq!(Redactor::new(&redaction, None, Vec::new()).expect("no names").text(text, false), expected);
        }
    }

    #[test]
    fn very_many_names_that_become_the_same_are_told_apart_in_time() {
        let redaction = redaction(ReplaceStyle::Tag);
        let redactor = Redactor::new(&redaction, None, Vec::new()).expect("no names");
        let mut map: Map<String, Value> = (0..20_000).map(|n| (format!("a{n}@b.example"), n.into())).collect();
        let begun = weir_shared::clock::Stopwatch::start();
        redactor.redact_names(&mut map);
        assert_eq!((map.len(), &map["<EMAIL>"], &map["<EMAIL> (20000)"]), (20_000, &json!(0), &json!(19_999)));
        // To try all numbers for each takes minutes.
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
    }

    #[test]
    fn every_text_of_a_document_is_redacted_and_names_too() {
        let redaction = Redaction { mode: RedactMode::Accurate, ..redaction(ReplaceStyle::Tag) };
        let names = vec![
            ("Ann O'Hara".to_owned(), Entity::Person),
            ("Ann".to_owned(), Entity::Person),
            ("1 High St".to_owned(), Entity::Location),
        ];
        let document = Document {
            markdown: Some("Ann  O’Hara, 1 High St; Annex; ann; a@b.example".to_owned()),
            html: Some("<p title=\"a@b.example\">Ann&nbsp;O&#39;Hara</p>".to_owned()),
            links: Some(vec!["mailto:a@b.example".to_owned(), "http://x.test/".to_owned()]),
            json: Some(
                json!({"who": {"name": "Ann", "mail": ["a@b.example", 5]}, "by": {"a@b.example": 1, "c@d.example": 2}}),
            ),
            screenshot: Some("data:image/png;base64,a@b.example".to_owned()),
            metadata: json!({"author": "Ann", "n": 1}).as_object().cloned().unwrap_or_default(),
            ..Document::default()
        };
        let names: Vec<(String, Entity)> =
            names.into_iter().chain([("Ann O’Hara".to_owned(), Entity::Person)]).collect();
        let redacted =
            Redactor::new(&redaction, None, names).expect("few names").redact(&document).expect("a document");
        assert_eq!(redacted.markdown.as_deref(), Some("<PERSON>, <LOCATION>; Annex; ann; <EMAIL>"));
        assert_eq!(redacted.html.as_deref(), Some("<p title=\"&lt;EMAIL&gt;\">&lt;PERSON&gt;</p>"));
        assert_eq!(redacted.links, Some(vec!["mailto:<EMAIL>".to_owned(), "http://x.test/".to_owned()]));
        assert_eq!(
            redacted.json,
            Some(json!({"who": {"name": "<PERSON>", "mail": ["<EMAIL>", 5]}, "by": {"<EMAIL>": 1, "<EMAIL> (2)": 2}}))
        );
        assert_eq!(
            (redacted.screenshot, &redacted.metadata["author"]),
            (document.screenshot.clone(), &json!("<PERSON>"))
        );
        let texts = Redactor::texts(&document);
        assert!(texts.contains("Ann O'Hara\n") && !texts.contains("title=") && !texts.contains("base64"), "{texts}");
    }
}
