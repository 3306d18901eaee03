//! `redactPII` (wire 3.2): data of persons leaves every text, by its form or by a language model, or the page fails.

use serde_json::{Value, json};
use weir_tests::{Database, ModelStandIn, OwnPages, Said, ServiceOptions, TestService, markdown_of};

const PAGE: &str = r#"<main><h1>Team</h1><p>Ann O'Hara lives at 1 High Street, Ely. Write to ann@mail.example or call
    +49 30 901820.</p><p>Card 4111 1111 1111 1111, account DE89 3704 0044 0532 0130 00, key AKIAIOSFODNN7EXAMPLE.</p>
    <p><a href="mailto:ann@mail.example">Mail</a> since 2024-05-17, order 12345678.</p></main>"#;

async fn service(model: Option<&ModelStandIn>) -> TestService {
    let mut options = ServiceOptions::new(Database::Sqlite);
    options = options.env("WEIR_PAGE_BROWSERS", "0");
    if let Some(model) = model {
        options = options.env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m");
    }
    TestService::start_with(options).await
}

fn body(url: &str, redaction: Value) -> Value {
    json!({ "url": url, "formats": ["markdown", "html", "rawHtml", "links"], "redactPII": redaction, "maxAge": 0 })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_form_data_leaves_every_text() {
    let (service, pages) = (service(None).await, OwnPages::start().await);
    let url = pages.put("/team", PAGE);
    let document = service.post("/v2/scrape", &body(&url, json!({"mode": "fast"}))).await.ok()["data"].clone();
    let text = document.to_string();
    for gone in ["ann@mail.example", "901820", "4111", "DE89", "AKIA"] {
        assert!(!text.contains(gone), "{gone} is still in {text}");
    }
    for there in ["2024-05-17", "12345678", "High Street", "<EMAIL>", "<PHONE>", "<FINANCIAL>", "<SECRET>"] {
        assert!(markdown_of(&document).contains(there), "{there} is not in {}", markdown_of(&document));
    }
    assert!(document["html"].as_str().unwrap().contains("&lt;EMAIL&gt;"), "{}", document["html"]);
    assert_eq!(document["links"], json!(["mailto:<EMAIL>"]));
    assert_eq!(document["metadata"]["creditsUsed"], 5);
    let mask = json!({"mode": "fast", "entities": ["EMAIL"], "replaceStyle": "mask"});
    let document = service.post("/v2/scrape", &body(&url, mask)).await.ok()["data"].clone();
    assert!(markdown_of(&document).contains("Write to **************** or call +49 30 901820"), "{document}");
    let removed = json!({"mode": "accurate", "entities": ["PHONE"], "replaceStyle": "remove"});
    let document = service.post("/v2/scrape", &body(&url, removed)).await.ok()["data"].clone();
    assert!(!document.to_string().contains("901820"), "what has a form needs no model");
    // Names have no form. Nobody has named them here: what has a form goes, and the rest is told.
    for redaction in [json!(true), json!({"mode": "aggressive"})] {
        let document = service.post("/v2/scrape", &body(&url, redaction)).await.ok()["data"].clone();
        let text = markdown_of(&document);
        assert!(text.contains("Ann O'Hara lives at") && !text.contains("ann@mail.example"), "{text}");
        let warning = document["warning"].as_str().unwrap_or_default();
        assert!(warning.contains("redactPII") && warning.contains("PERSON, LOCATION"), "{document}");
    }
    for redaction in [json!({"entities": ["PERSON"]}), json!({"mode": "aggressive", "entities": ["EMAIL", "LOCATION"]})]
    {
        let refused = service.post("/v2/scrape", &body(&url, redaction)).await;
        assert_eq!((refused.status, refused.code()), (400, "SCRAPE_MODEL_NOT_CONFIGURED"), "{}", refused.text);
        assert!(refused.error().contains("PERSON and LOCATION") && !refused.text.contains("Ann"), "{}", refused.text);
    }
    let wrong = json!({"mode": "fast", "entities": ["LOCATION"]});
    assert_eq!(service.post("/v2/scrape", &body(&url, wrong)).await.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_told_by_a_model_and_nothing_is_delivered_when_it_fails() {
    let model = ModelStandIn::start(vec![
        Said::json(&json!({"found": [{"text": "Ann O'Hara", "kind": "PERSON"}, {"text": "1 High Street, Ely", "kind": "LOCATION"},
            {"text": "Nobody There", "kind": "PERSON"}]})),
        Said::Status(500),
    ])
    .await;
    let (service, pages) = (service(Some(&model)).await, OwnPages::start().await);
    let url = pages.put("/team", PAGE);
    let document = service.post("/v2/scrape", &body(&url, json!(true))).await.ok()["data"].clone();
    let text = document.to_string();
    for gone in ["O'Hara", "O&#39;Hara", "High Street", "ann@mail.example", "901820"] {
        assert!(!text.contains(gone), "{gone} is still in {text}");
    }
    assert!(markdown_of(&document).contains("<PERSON> lives at <LOCATION>"), "{document}");
    assert_eq!(document["metadata"]["creditsUsed"], 5);
    let failed = service.post("/v2/scrape", &body(&url, json!(true))).await;
    assert_eq!((failed.status, failed.code()), (500, "SCRAPE_MODEL_FAILED"), "{}", failed.text);
    assert!(!failed.text.contains("Ann"), "{}", failed.text);
}
