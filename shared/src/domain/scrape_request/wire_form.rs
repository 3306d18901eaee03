//! Options of pages back in the form in which callers give them, for answers that repeat a request (wire 5.6). What is
//! read from it is what was read from the request.

use serde_json::{Map, Value, json};

use crate::domain::scrape::{ChangeTracking, Format, PdfParser, Query, ScrapeOptions};

/// The options as a body names them, defaults included.
pub fn wire_form(options: &ScrapeOptions) -> Value {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(options) else { return Value::Null };
    // Not a field of bodies: it notes that the other one was given.
    fields.remove("tlsConsent");
    fields.remove("traceParent");
    if options.skip_tls_verification && !options.tls_consent {
        fields.remove("skipTlsVerification");
    }
    fields.insert("formats".to_owned(), options.formats.iter().map(format).collect());
    let redaction = fields.remove("redactPii").filter(|value| !value.is_null());
    fields.extend(redaction.map(|value| ("redactPII".to_owned(), value)));
    let pdf = options.parsers.pdf.as_ref().map(pdf_parser);
    let parsers = pdf.into_iter().chain(options.parsers.image.then(|| json!("image")));
    fields.insert("parsers".to_owned(), parsers.collect());
    if fields.remove("sites").is_some() {
        let sites = &options.sites;
        let lists = json!({"blacklist": sites.blocked, "whitelist": sites.allowed, "blockedTlds": sites.blocked_tlds});
        fields.insert("threatProtection".to_owned(), lists);
    }
    fields.retain(|_, value| !value.is_null());
    Value::Object(fields)
}

/// A format: its name, or an object where it has options.
fn format(format: &Format) -> Value {
    match format {
        Format::ChangeTracking(ChangeTracking { git_diff, json, schema, prompt, tag, watch: _ }) => {
            let modes = [("git-diff", *git_diff), ("json", *json)];
            let modes: Vec<&str> = modes.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect();
            said(json!({"type": "changeTracking", "modes": modes, "schema": schema, "prompt": prompt, "tag": tag}))
        }
        Format::Query(Query { prompt, direct_quote }) => {
            let mode = if *direct_quote { "directQuote" } else { "freeform" };
            json!({"type": "query", "prompt": prompt, "mode": mode})
        }
        other => match serde_json::to_value(other).map(said) {
            Ok(Value::Object(fields)) if fields.len() > 1 => Value::Object(fields),
            _ => other.name().into(),
        },
    }
}

fn pdf_parser(parser: &PdfParser) -> Value {
    let mut fields = said(serde_json::to_value(parser).unwrap_or_default());
    if let Value::Object(fields) = &mut fields {
        fields.insert("type".to_owned(), "pdf".into());
    }
    fields
}

/// The fields that say something.
fn said(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::domain::scrape_request::parse_scrape;
    use crate::domain::target::RequestContext;

    #[test]
    fn what_was_read_is_written_so_that_it_is_read_again() {
        let read = |options: &Value| {
            let mut body = options.clone();
            body["url"] = "https://x.test/".into();
            parse_scrape(&body, RequestContext::ANYWHERE).unwrap_or_else(|error| panic!("{options}: {error:?}")).options
        };
        for options in [
            json!({}),
            json!({"formats": ["links", "product", {"type": "screenshot", "fullPage": true, "viewport": {"width": 9, "height": 9}}]}),
            json!({"formats": ["markdown", {"type": "changeTracking", "modes": ["json"], "prompt": "x", "tag": "t"}]}),
            json!({"formats": [{"type": "query", "prompt": "x", "mode": "directQuote"}, {"type": "json", "schema": {"type": "object"}},
                {"type": "attributes", "selectors": [{"selector": "a", "attribute": "href"}]}]}),
            json!({"skipTlsVerification": true}),
            json!({"skipTlsVerification": false, "headers": {"x-y": "z"}, "maxAge": 5, "minAge": 3, "storeInCache": false}),
            json!({"parsers": []}),
            json!({"parsers": [{"type": "pdf", "maxPages": 3, "mode": "fast", "pages": true}, "image"]}),
            json!({"redactPII": {"mode": "fast", "entities": ["EMAIL"], "replaceStyle": "mask"}, "location": {"country": "DE"}}),
            json!({"threatProtection": {"blacklist": ["*.x.test"], "blockedTlds": ["zip"]}, "proxy": "stealth"}),
            json!({"actions": [{"type": "wait", "milliseconds": 5}, {"type": "click", "selector": "a"}, {"type": "pdf"},
                {"type": "screenshot"}, {"type": "scroll"}, {"type": "wait", "selector": "b"}]}),
        ] {
            let first = read(&options);
            let written = wire_form(&first);
            assert_eq!(read(&written), first, "{written}");
        }
    }

    #[test]
    fn formats_without_options_are_names() {
        let options = ScrapeOptions { formats: vec![Format::Links, Format::Branding], ..ScrapeOptions::default() };
        assert_eq!(wire_form(&options)["formats"], json!(["links", "branding"]));
    }
}
