//! Web pages of other origins call the API (wire 27).

use reqwest::Method;
use serde_json::{Value, json};
use weir_tests::{Answer, Caller, Database, FixtureSite, ServiceOptions, TestService, markdown_of};

const PAGE: &str = "https://app.example.com";
/// What the official clients send beside the simple headers.
const ASKED: &str = "authorization, content-type, x-idempotency-key, x-request-id, x-origin, x-firecrawl-agent-hints";

async fn preflight(caller: &Caller, path: &str, origin: &str) -> Answer {
    let request = caller.request(Method::OPTIONS, path).header("origin", origin);
    let request = request.header("access-control-request-method", "POST");
    caller.send(request.header("access-control-request-headers", ASKED)).await
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.headers.get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn any_page_may_call_every_route_but_those_that_are_reached_without_a_key() {
    let service = TestService::start(Database::Sqlite).await;
    let stranger = Caller::new(service.base(), None);
    for (_, path) in weir_api::routes::list() {
        let without = ["/cdp/", "/live/", "/console"].iter().any(|start| path.starts_with(start));
        let path = path.replace("{id}", &uuid::Uuid::nil().to_string()).replace("{name}", "x").replace("{page}", "x");
        let answer = preflight(&stranger, &path, PAGE).await;
        if without {
            assert_eq!(header(&answer, "access-control-allow-origin"), None, "{path}");
            continue;
        }
        assert_eq!((answer.status, answer.text.as_str()), (204, ""), "{path}");
        assert_eq!(header(&answer, "access-control-allow-origin"), Some("*"), "{path}");
        assert_eq!(header(&answer, "access-control-allow-headers"), Some(ASKED), "{path}");
        assert!(header(&answer, "access-control-allow-methods").unwrap().contains("PATCH"), "{path}");
        assert_eq!(header(&answer, "access-control-allow-credentials"), None, "{path}");
    }
    // Errors are read by pages too: a wrong key, a wrong body, an unknown path.
    let wrong = Caller::new(service.base(), Some("fc-wrong"));
    let refused = wrong.send(wrong.request(Method::POST, "/v2/scrape").json(&json!({ "url": "x" }))).await;
    let invalid = service.post("/v2/scrape", &json!({ "url": 1 })).await;
    let unknown = service.get("/v2/nothing-here").await;
    for (answer, status) in [(refused, 401), (invalid, 400), (unknown, 404)] {
        assert_eq!(answer.status, status);
        assert_eq!(header(&answer, "access-control-allow-origin"), Some("*"), "{status}");
        assert_eq!(header(&answer, "access-control-expose-headers"), Some("retry-after, x-request-id"), "{status}");
    }
}

/// What a page of another origin gets of the service, in a real Chromium.
async fn as_a_page(service: &TestService, site: &FixtureSite, page: &str, target: &str) -> Value {
    let session = service.post("/v2/browser", &json!({ "ttl": 120 })).await.id();
    let code = format!(
        "await page.goto({page:?}); JSON.stringify(await page.evaluate(async ([base, key, url]) => {{ \
            const headers = {{ Authorization: `Bearer ${{key}}`, 'Content-Type': 'application/json', 'x-request-id': 'from-a-page' }}; \
            const body = JSON.stringify({{ url, maxAge: 0 }}); \
            try {{ \
                const answer = await fetch(`${{base}}/v2/scrape`, {{ method: 'POST', headers, body }}); \
                const wrong = await fetch(`${{base}}/v2/scrape`, {{ method: 'POST', headers, body: '{{}}' }}); \
                return {{ origin: location.origin, status: answer.status, id: answer.headers.get('x-request-id'), \
                    body: await answer.json(), wrong: [wrong.status, (await wrong.json()).success] }}; \
            }} catch (error) {{ return {{ origin: location.origin, failed: String(error) }}; }} \
        }}, [{:?}, {:?}, {target:?}]))",
        service.base(),
        service.key()
    );
    let ran = service
        .post(&format!("/v2/browser/{session}/execute"), &json!({ "code": code, "language": "node" }))
        .await
        .ok();
    service.delete(&format!("/v2/browser/{session}")).await.ok();
    let seen: Value =
        serde_json::from_str(ran["result"].as_str().unwrap_or_default()).unwrap_or_else(|_| panic!("{ran}"));
    assert_eq!(seen["origin"], site.url("").trim_end_matches('/'), "{seen}");
    assert_ne!(seen["origin"], service.base());
    seen
}

#[tokio::test]
async fn a_page_of_another_origin_scrapes_with_a_key_in_a_real_browser() {
    let site = FixtureSite::start().await;
    let service = TestService::start_with(ServiceOptions::new(Database::Sqlite).with_sessions()).await;
    let (page, target) = (site.url("/small/2"), site.url("/article/1"));
    let seen = as_a_page(&service, &site, &page, &target).await;
    assert_eq!((&seen["status"], &seen["id"]), (&json!(200), &json!("from-a-page")), "{seen}");
    assert_eq!(site.truth("/article/1").await.fault_in(markdown_of(&seen["body"]["data"])), None);
    assert_eq!(seen["wrong"], json!([400, false]), "errors are read by pages, too");

    // It is the answers that let the page in: without them the same browser keeps it out, before anything is scraped.
    let options = ServiceOptions::new(Database::Sqlite).with_sessions().env("WEIR_CORS_ORIGINS", "off");
    let closed = TestService::start_with(options).await;
    let before = site.hit_count("/article/1").await;
    let kept_out = as_a_page(&closed, &site, &page, &target).await;
    assert!(kept_out["failed"].as_str().is_some_and(|error| error.contains("Failed to fetch")), "{kept_out}");
    assert_eq!(site.hit_count("/article/1").await, before);
}

#[tokio::test]
async fn the_operator_narrows_whose_pages_may_call() {
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_CORS_ORIGINS", PAGE);
    let service = TestService::start_with(options).await;
    let ours = preflight(service.caller(), "/v2/scrape", PAGE).await;
    assert_eq!((ours.status, header(&ours, "access-control-allow-origin")), (204, Some(PAGE)));
    assert!(ours.headers.get_all("vary").iter().any(|value| value == "Origin"));
    let foreign = preflight(service.caller(), "/v2/scrape", "https://evil.example.com").await;
    assert_eq!((foreign.status, header(&foreign, "access-control-allow-origin")), (405, None));
}

#[tokio::test]
async fn without_keys_no_page_of_another_origin_is_let_in() {
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_AUTH", "open");
    let service = TestService::start_with(options).await;
    let answer = preflight(service.caller(), "/v2/scrape", PAGE).await;
    assert_eq!(header(&answer, "access-control-allow-origin"), None);
}
