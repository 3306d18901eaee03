//! Content that a page carries as data in its scripts, for pages that show next to nothing without running them.

use html5ever::local_name;
use serde_json::Value;

use super::tree::{Dom, Tag};

/// Largest script read as data, bytes.
const MAX_SCRIPT: usize = 8 << 20;
/// Most text taken, bytes.
const MAX_TEXT: usize = 2 << 20;
/// Shortest string of framework state that counts as prose, bytes.
const MIN_PROSE: usize = 80;

/// Text of the page's JSON-LD or framework state as markdown paragraphs, if there is any.
pub fn content(dom: &Dom) -> Option<String> {
    let mut linked = String::new();
    let mut state = String::new();
    for i in (0..dom.len()).filter(|&i| dom.tag(i) == Tag::Script) {
        let kind = dom.attr(i, &local_name!("type")).unwrap_or("");
        if !kind.contains("json") {
            continue;
        }
        let text = dom.text_of(i);
        if text.len() > MAX_SCRIPT {
            continue;
        }
        let Ok(value) = weir_json::read::<Value>(text.trim()) else { continue };
        if kind.contains("ld+json") { from_linked_data(&value, &mut linked) } else { from_state(&value, &mut state) }
    }
    let best = if linked.len() >= state.len() { linked } else { state };
    (!best.trim().is_empty()).then_some(best)
}

fn paragraph(out: &mut String, text: &str) {
    let plain = strip_tags(text);
    let plain = plain.trim();
    if plain.is_empty() || out.len() + plain.len() > MAX_TEXT {
        return;
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(plain);
    out.push('\n');
}

/// Names, descriptions, bodies and prices of the things described.
fn from_linked_data(value: &Value, out: &mut String) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(list) => open.extend(list.iter().rev()),
            Value::Object(map) => {
                for key in
                    ["headline", "name", "description", "articleBody", "text", "reviewBody", "price", "priceCurrency"]
                {
                    match map.get(key) {
                        Some(Value::String(text)) if matches!(key, "headline") => {
                            paragraph(out, &format!("# {}", text.replace('\n', " ")));
                        }
                        Some(Value::String(text)) => paragraph(out, text),
                        Some(Value::Number(n)) => paragraph(out, &n.to_string()),
                        _ => {}
                    }
                }
                for key in ["acceptedAnswer", "offers", "review", "mainEntity", "@graph", "itemListElement", "item"] {
                    if let Some(inner) = map.get(key) {
                        open.push(inner);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Strings long enough to be prose, wherever they are.
fn from_state(value: &Value, out: &mut String) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(list) => open.extend(list.iter().rev()),
            Value::Object(map) => open.extend(map.values().rev()),
            Value::String(text)
                if text.len() >= MIN_PROSE
                    && text.split_whitespace().count() >= 10
                    && !text.trim_start().starts_with(['{', '[']) =>
            {
                paragraph(out, text);
            }
            _ => {}
        }
    }
}

/// Text of a string that may hold markup.
fn strip_tags(text: &str) -> String {
    if !text.contains('<') {
        return text.to_owned();
    }
    let dom = super::guard::parse(text).dom;
    let mut out = String::new();
    for i in 0..dom.len() {
        if dom.tag(i).is_block() && !out.is_empty() && !out.ends_with('\n') {
            out.push_str("\n\n");
        }
        if !matches!(dom.tag(dom.parent(i)), Tag::Script | Tag::Style) {
            out.push_str(dom.text(i));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    #[test]
    fn linked_data_and_state_are_read() {
        let page =
            r#"<script type="application/ld+json">{"@graph":[{"headline":"H","articleBody":"Body of it."}]}</script>"#;
        assert_eq!(content(&guard::parse(page).dom).as_deref(), Some("# H\n\nBody of it.\n"));
        let long = "several words of prose that a script would have shown on this page, if only it had been run at all";
        let page = format!(r#"<script type="application/json">{{"a":[{{"html":"<p>{long}</p>","id":"x"}}]}}</script>"#);
        assert_eq!(content(&guard::parse(&page).dom), Some(format!("{long}\n")));
    }

    #[test]
    fn scripts_that_are_not_data_give_nothing() {
        assert_eq!(
            content(&guard::parse("<script>var a = {}</script><script type=application/json>{bad</script>").dom),
            None
        );
    }
}
