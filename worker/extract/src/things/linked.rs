//! JSON-LD: what the scripts of type `application/ld+json` say.

use html5ever::local_name;
use serde_json::Value;

use crate::tree::{Dom, Tag};

/// Largest script read, bytes.
const MAX_SCRIPT: usize = 1 << 20;

/// What each script says, in the order of the page.
pub fn read(dom: &Dom) -> impl Iterator<Item = Value> {
    let is_linked = |i: &usize| {
        dom.tag(*i) == Tag::Script && dom.attr(*i, &local_name!("type")).is_some_and(|kind| kind.contains("ld+json"))
    };
    (0..dom.len()).filter(is_linked).filter_map(|i| {
        let text = dom.text_of(i);
        if text.len() > MAX_SCRIPT { None } else { json(&text) }
    })
}

/// JSON as pages write it: also inside comments, with line breaks in its texts, with commas before a closing bracket, with
/// halves of characters.
fn json(text: &str) -> Option<Value> {
    let text = text.trim();
    weir_json::read(text).ok().or_else(|| weir_json::read(&repaired(text)).ok())
}

fn repaired(text: &str) -> String {
    // What stands around the value marks comments and CDATA, each in several spellings.
    let text = text.split_once("CDATA[").map_or(text, |(_, inside)| inside);
    let text = text.rsplit_once("]]>").map_or(text, |(inside, _)| inside);
    let (first, last) = (text.find(['{', '[']).unwrap_or(0), text.rfind(['}', ']']).map_or(text.len(), |at| at + 1));
    let text = text.get(first..last).unwrap_or_default();
    let mut out = String::with_capacity(text.len());
    let (mut is_text, mut is_escaped) = (false, false);
    for c in text.chars() {
        if is_text {
            match c {
                '"' if !is_escaped => is_text = false,
                c if c.is_control() => {
                    out.push(' ');
                    is_escaped = false;
                    continue;
                }
                _ => {}
            }
            is_escaped = c == '\\' && !is_escaped;
            out.push(c);
            continue;
        }
        match c {
            '"' => is_text = true,
            '}' | ']' => {
                let end = out.trim_end().len();
                if out[..end].ends_with(',') {
                    out.truncate(end - 1);
                }
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard;

    #[test]
    fn scripts_are_read_as_pages_write_them() {
        let page = "<script type=application/ld+json>{\"name\": 1}</script><script>{\"name\": 2}</script>\
            <script type='application/ld+json; charset=utf-8'>/*<![CDATA[*/ [{\"name\": \"a\nb\", \"l\": [1, 2, ],},] /*]]>*/</script>\
            <script type=application/ld+json>{bad}</script>\
            <script type=application/ld+json>{\"name\": \"c\\ud83d\", \"l\": [3,]}</script>";
        let found: Vec<String> = read(&guard::parse(page).dom).map(|value| value.to_string()).collect();
        assert_eq!(found, [r#"{"name":1}"#, r#"[{"name":"a b","l":[1,2]}]"#, "{\"name\":\"c\u{fffd}\",\"l\":[3]}"]);
    }
}
