//! `POST /v2/crawl/params-preview` and the `prompt` of a crawl (spec 4.10, wire 5.2), with and without a model.

use std::time::Duration;

use serde_json::{Value, json};
use weir_shared::clock;
use weir_tests::{Answer, Database, ModelStandIn, Said, ServiceOptions, TestService};

const PATH: &str = "/v2/crawl/params-preview";

async fn service(model: Option<&ModelStandIn>) -> TestService {
    let mut options = ServiceOptions::new(Database::Sqlite).workers(1).env("WEIR_PAGE_BROWSERS", "0");
    if let Some(model) = model {
        options = options.env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_KEY", "model-key").env("WEIR_LLM_MODEL", "m-1");
    }
    TestService::start_with(options).await
}

async fn preview(service: &TestService, prompt: &str) -> Answer {
    service.post(PATH, &json!({ "url": "https://example.com/docs", "prompt": prompt, "origin": "tests" })).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_model_plain_english_is_read() {
    let service = service(None).await;
    let body = preview(&service, "Only blog posts, at most 20 pages, no subdomains").await.ok();
    assert_eq!(body["success"], true);
    let blog = "/blogs?([./].*)?$";
    let expected = json!({
        "url": "https://example.com/docs", "limit": 20, "allowSubdomains": false, "includePaths": [blog]
    });
    assert_eq!(body["data"], expected);
    assert_eq!(body["warning"], Value::Null);
    let body = preview(&service, "blog posts about whales").await.ok();
    assert!(body["warning"].as_str().unwrap().contains("whales"), "{body}");

    let body = preview(&service, "wait 1.5 seconds between pages").await.ok();
    assert_eq!(body["data"]["delay"].as_i64(), Some(2), "{body}");
    assert!(body["warning"].as_str().unwrap().contains("1.5 s"), "{body}");

    for (body, status, words) in [
        (json!({ "url": "https://example.com" }), 400, "Invalid request parameters:"),
        (json!({ "prompt": "blog" }), 400, "Invalid request parameters:"),
        (json!({ "url": "https://example.com", "prompt": "x".repeat(10_001) }), 400, "Invalid request parameters:"),
        (json!({ "url": "ftp://example.com", "prompt": "blog" }), 400, "unsupported protocol"),
        (json!({ "url": "http://10.0.0.1/", "prompt": "blog" }), 403, "Its operator sets WEIR_ALLOW_NETS"),
    ] {
        let answer = service.post(PATH, &body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
        assert!(answer.is_base_error() && answer.error().contains(words), "{body}: {}", answer.text);
    }
    assert_eq!(service.anonymous().post(PATH, &json!({})).await.status, 401);
    assert_eq!(service.get(PATH).await.status, 405);
    let credits = service.cli_json(&["credits", "show", "--team", "tests", "--json"]);
    assert_eq!(credits["used"], 0, "a preview costs nothing: {credits}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_writes_the_options_and_our_code_judges_them() {
    let good = json!({"includePaths": ["^/blog"], "limit": 10, "sitemap": null, "notUnderstood": "the tone"});
    let bad = json!({"includePaths": ["(?=x)"], "limit": 10});
    let model = ModelStandIn::start(vec![
        Said::json(&good),
        // A pattern that does not compile, then a good answer in a fence.
        Said::json(&bad),
        Said::Text(format!("Sorry.\n```json\n{good}\n```")),
        Said::Text("I would rather not.".to_owned()),
        Said::json(&good),
        // An endpoint without schemas, then a busy one.
        Said::Status(400),
        Said::json(&good),
        Said::Status(503),
        Said::json(&good),
    ])
    .await;
    let service = service(Some(&model)).await;
    for round in ["at once", "repaired", "words, then repaired", "without a schema", "after a pause"] {
        let body = preview(&service, "blog").await.ok();
        assert_eq!(body["data"]["includePaths"], json!(["^/blog"]), "{round}: {body}");
        assert_eq!(body["data"]["limit"], 10, "{round}");
        assert!(body["data"].get("sitemap").is_none() && body["data"].get("notUnderstood").is_none());
        assert!(body["warning"].as_str().unwrap().contains("the tone"));
    }
    let asked = model.asked();
    assert_eq!(asked.len(), 9);
    assert!(asked[0].0.starts_with("POST /v1/chat/completions HTTP"));
    assert!(asked[0].0.contains("Bearer model-key"));
    assert_eq!((&asked[0].1["model"], &asked[0].1["temperature"]), (&json!("m-1"), &json!(0)));
    assert_eq!(asked[0].1["response_format"]["type"], "json_schema");
    let repair = asked[2].1["messages"].as_array().unwrap();
    assert_eq!(repair.len(), 4, "what it said and what was wrong");
    assert!(repair[3]["content"].as_str().unwrap().contains("look-around"), "{repair:?}");
    assert!(asked[6].1.get("response_format").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_cannot_is_told_of_in_time() {
    let huge = format!("{{\"choices\": [\"{}\"]}}", "x".repeat(2 << 20));
    for (said, words, at_least) in [
        (vec![Said::Text("no".to_owned())], "JSON object", 2),
        (vec![Said::json(&json!({"limit": 0}))], "at least 1", 2),
        (vec![Said::Status(500)], "status 500", 4),
        (vec![Said::Status(401)], "status 401", 1),
        (vec![Said::Body(huge)], "could not be read", 1),
        (vec![Said::Body("{}".to_owned())], "could not be read", 4),
    ] {
        let model = ModelStandIn::start(said.clone()).await;
        let service = service(Some(&model)).await;
        let answer = preview(&service, "blog").await;
        assert_eq!(answer.status, 400, "{said:?}: {}", answer.text.len());
        let error = answer.error();
        assert!(error.starts_with("Failed to process natural language prompt") && error.contains(words), "{error}");
        assert!(!error.contains(&model.url) && !error.contains("model-key"));
        assert_eq!(model.asked().len(), at_least);
    }
    let model = ModelStandIn::start(vec![Said::Hang]).await;
    let service = service(Some(&model)).await;
    let started = clock::instant();
    // The crawl's own prompt goes the same way; nothing is started when it cannot be read.
    let body = json!({ "url": "https://example.com", "prompt": "blog" });
    let (answer, crawl) = tokio::join!(preview(&service, "blog"), service.post("/v2/crawl", &body));
    for answer in [answer, crawl] {
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(answer.error().contains("in time"), "{}", answer.text);
    }
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
    assert_eq!(service.get("/v2/crawl/active").await.ok()["crawls"], json!([]));
}
