//! Documents as version 1 has them (wire 26): what was read out of a page as data stands in `extract`, too, its older name.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The document as it was stored, with `extract` where it has `json`.
pub fn shaped(document: &RawValue) -> Cow<'_, RawValue> {
    #[derive(Deserialize)]
    struct Read<'a> {
        #[serde(borrow)]
        json: Option<&'a RawValue>,
    }
    let text = document.get();
    // Most documents have none, and are not parsed for it.
    if !text.contains("\"json\":") {
        return Cow::Borrowed(document);
    }
    let Ok(Read { json: Some(data) }) = serde_json::from_str(text) else { return Cow::Borrowed(document) };
    let Some(open) = text.trim_end().strip_suffix('}') else { return Cow::Borrowed(document) };
    RawValue::from_string(format!("{open},\"extract\":{data}}}")).map_or(Cow::Borrowed(document), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_has_both_names_and_nothing_else_changes() {
        let shaped = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).expect("JSON");
            super::shaped(&raw).get().to_owned()
        };
        assert_eq!(
            shaped(r#"{"json":{"a":[1]},"metadata":{}}"#),
            r#"{"json":{"a":[1]},"metadata":{},"extract":{"a":[1]}}"#
        );
        for same in [
            r#"{"markdown":"\"json\":1","metadata":{}}"#,
            r#"{"changeTracking":{"json":{"a":1}},"metadata":{"json":"x"}}"#,
            r#"{"json":null,"metadata":{}}"#,
        ] {
            assert_eq!(shaped(same), same);
        }
    }
}
