//! What a page's scripts keep as data: blocks of JSON (`__NEXT_DATA__`), and JSON that a script gives a name
//! (`window.__STATE__ = {…}`).

use html5ever::local_name;
use serde_json::Value;

use crate::tree::{Dom, Tag};

/// Most bytes of scripts read.
const MAX_BYTES: usize = 16 << 20;
/// Most values read.
const MAX_FOUND: usize = 200;
/// Most places of one script that are tried.
const MAX_TRIES: usize = 400;

/// The values, in the order of the page.
pub fn read(dom: &Dom) -> Vec<Value> {
    let mut found = Vec::new();
    let mut room = MAX_BYTES;
    for i in (0..dom.len()).filter(|&i| dom.tag(i) == Tag::Script) {
        let kind = dom.attr(i, &local_name!("type")).unwrap_or("");
        let text = dom.text_of(i);
        if kind.contains("ld+json") || text.len() > room || found.len() >= MAX_FOUND {
            continue;
        }
        room -= text.len();
        if kind.contains("json") {
            found.extend(weir_json::read::<Value>(text.trim()).ok());
        } else {
            assigned(&weir_json::mended(&text), &mut found);
        }
    }
    found
}

/// JSON behind an equals sign or a bracket, as in `x = {"a": 1}` and `init({"a": 1})`. A place inside of a value that was
/// read is not tried: what is read costs its length once.
fn assigned(text: &str, found: &mut Vec<Value>) {
    let mut at = 0;
    for _ in 0..MAX_TRIES {
        let Some(step) = text[at..].find(['=', '(']) else { return };
        at += step + 1;
        let rest = text[at..].trim_start();
        let Some(inside) = rest.strip_prefix(['{', '[']) else { continue };
        if !inside.trim_start().starts_with(['"', '{']) {
            continue;
        }
        let begin = text.len() - rest.len();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            at = begin + values.byte_offset();
            found.push(value);
            if found.len() >= MAX_FOUND {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard;

    #[test]
    fn blocks_and_named_values_are_found() {
        let page = "<script type=application/json>{\"a\": 1}</script><script>var f = {x: 1}; window.S = {\"price\": 2};\
            init( [{\"c\": \"x=({\"}]); y = {\"d\"</script><script type=application/ld+json>{\"e\": 5}</script>";
        let found: Vec<String> = read(&guard::parse(page).dom).iter().map(Value::to_string).collect();
        assert_eq!(found, [r#"{"a":1}"#, r#"{"price":2}"#, r#"[{"c":"x=({"}]"#]);
    }

    #[test]
    fn a_text_that_was_cut_within_a_character_spoils_no_value() {
        let page = r#"<script type=application/json>{"a": "x\ud83d"}</script>
            <script>window.S = {"price": "\ude00y \ud83d\ude00"}; window.T = {"c": 1}</script>"#;
        let found: Vec<String> = read(&guard::parse(page).dom).iter().map(Value::to_string).collect();
        assert_eq!(found, ["{\"a\":\"x\u{fffd}\"}", "{\"price\":\"\u{fffd}y \u{1f600}\"}", "{\"c\":1}"]);
    }

    #[test]
    fn a_script_made_to_be_read_often_is_read_little() {
        let script = format!("<script>var p = {{\"price\": 1}};{}</script>", "=[{\"a\":[".repeat(200_000));
        assert_eq!(read(&guard::parse(&script).dom).len(), 1);
    }
}
