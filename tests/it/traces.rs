//! Traces by OTLP: what a collector is told of a page on its way through the processes, and what it is not.

use std::time::Duration;

use serde_json::json;
use weir_tests::{
    Collector, Database, FixtureSite, SentSpan, ServiceOptions, Taking, TestService, both_databases, finished,
    wait_until,
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A batch whose caller keeps a trace, or does not.
async fn traced_batch(service: &TestService, body: &serde_json::Value, flags: &str) -> String {
    let request = service.caller().request(reqwest::Method::POST, "/v2/batch/scrape").json(body);
    let request = request.header("traceparent", format!("00-{TRACE}-{CALLER}-{flags}"));
    service.caller().send(request).await.id()
}

fn named<'a>(spans: &'a [SentSpan], name: &str) -> Vec<&'a SentSpan> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// The spans of one page in the order of a page's life: each within the one it is below.
fn check_page(spans: &[SentSpan], page: &SentSpan, request: &SentSpan, way: &[&str]) {
    assert_eq!((&page.parent, page.service.as_str()), (&request.id, "weir-worker"));
    let below: Vec<&SentSpan> = spans.iter().filter(|span| span.parent == page.id).collect();
    for name in ["claim", "extract", "commit"].iter().chain(way) {
        let found = below.iter().find(|span| span.name == *name).unwrap_or_else(|| panic!("{name}: {below:#?}"));
        assert!(
            page.began <= found.began && found.began <= found.ended && found.ended <= page.ended,
            "{name}: {below:#?}"
        );
    }
    let at = |name: &str| below.iter().find(|span| span.name == name).unwrap().began;
    assert!(at("claim") <= at(way[0]) && at(way[0]) <= at("extract") && at("extract") <= at("commit"), "{below:#?}");
    assert_eq!(page.values["weir.page.outcome"], "done");
    assert_eq!(page.values["server.address"], "127.0.0.1");
}

both_databases! {
    async fn a_page_is_followed_from_the_request_to_its_webhook(database) {
        let (site, collector) = (FixtureSite::start().await, Collector::start(Taking::Well).await);
        let options = ServiceOptions::new(database).env("WEIR_OTLP_URL", &collector.url);
        let service = TestService::start_with(options).await;
        let urls = [site.url("/article/1?token=query-word#fragment-word"), site.url("/js/render/1"), site.url("/status/404")];
        let body = json!({
            "urls": urls,
            "headers": { "X-Mine": "header-word", "Cookie": "id=cookie-word" },
            "formats": ["markdown", "screenshot"],
            "webhook": { "url": site.webhook_url("traced"), "headers": { "Authorization": "Bearer hook-word" } },
        });
        let id = traced_batch(&service, &body, "01").await;
        finished(service.caller(), &id, Duration::from_secs(60)).await;
        let spans = wait_until("the webhooks' spans have come", || async {
            let spans = collector.spans();
            let is_told = |span: &&SentSpan| span.values.get("weir.delivery.event").is_some_and(|event| event == "completed");
            named(&spans, "webhook").iter().any(is_told).then_some(spans)
        })
        .await;
        let spans: Vec<SentSpan> = spans.into_iter().filter(|span| span.trace == TRACE).collect();

        let request = named(&spans, "POST /v2/batch/scrape")[0];
        assert_eq!((request.parent.as_str(), request.service.as_str()), (CALLER, "weir-api"));
        assert_eq!(request.values["http.response.status_code"], "200");
        let pages = named(&spans, "page");
        assert_eq!(pages.len(), 3, "{spans:#?}");
        for page in &pages {
            assert_eq!(page.values["weir.job.id"], id);
            check_page(&spans, page, request, &["render"]);
        }
        let queues = named(&spans, "queue");
        assert_eq!(queues.len(), 3);
        assert!(queues.iter().all(|queue| queue.parent == request.id && queue.ended <= pages.iter().map(|p| p.ended).max().unwrap()));
        // Started, three pages, completed; each at its first try.
        let webhooks = named(&spans, "webhook");
        assert_eq!(webhooks.len(), 5, "{webhooks:#?}");
        assert!(webhooks.iter().all(|span| span.parent == request.id && !span.is_error));

        // A page without a browser, and nobody's trace: one of its own.
        let alone = json!({ "url": site.url("/article/2?token=query-word") });
        service.post("/v2/scrape", &alone).await.ok();
        let spans = wait_until("the scrape's spans have come", || async {
            let spans = collector.spans();
            let request = named(&spans, "POST /v2/scrape").first().map(|span| span.trace.clone())?;
            let of_it: Vec<SentSpan> = spans.into_iter().filter(|span| span.trace == request).collect();
            (!named(&of_it, "page").is_empty()).then_some(of_it)
        })
        .await;
        let request = named(&spans, "POST /v2/scrape")[0];
        assert!(request.parent.is_empty() && request.trace != TRACE);
        check_page(&spans, named(&spans, "page")[0], request, &["fetch"]);

        let text = collector.text();
        for secret in ["query-word", "fragment-word", "header-word", "cookie-word", "hook-word", service.key(), "article", "Article"] {
            assert!(!text.contains(secret), "{secret} is told");
        }
        assert!(!text.contains("/metrics") && !text.contains("/readyz"), "what is asked for all the time");
    }
}

#[tokio::test]
async fn who_keeps_no_trace_is_not_given_one() {
    let (site, collector) = (FixtureSite::start().await, Collector::start(Taking::Well).await);
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_OTLP_URL", &collector.url);
    let service = TestService::start_with(options).await;
    let id = traced_batch(&service, &json!({ "urls": [site.url("/small/1")] }), "00").await;
    finished(service.caller(), &id, Duration::from_secs(60)).await;
    // What comes after it shows that the collector has everything from before.
    service.post("/v2/scrape", &json!({ "url": site.url("/small/2") })).await.ok();
    let spans = wait_until("the scrape's spans have come", || async {
        let spans = collector.spans();
        (!named(&spans, "page").is_empty() && !named(&spans, "POST /v2/scrape").is_empty()).then_some(spans)
    })
    .await;
    assert!(spans.iter().all(|span| span.trace != TRACE), "{spans:#?}");
    assert_eq!(named(&spans, "page").len(), 1, "{spans:#?}");
}

#[tokio::test]
async fn a_collector_that_is_slow_refuses_or_is_not_there_harms_nobody() {
    let site = FixtureSite::start().await;
    let (hanging, refusing) = (Collector::start(Taking::Hanging).await, Collector::start(Taking::Badly(503)).await);
    let nobody = format!("http://127.0.0.1:{}", weir_tests::free_port());
    for url in [&hanging.url, &refusing.url, &nobody] {
        let options = ServiceOptions::new(Database::Sqlite).env("WEIR_OTLP_URL", url);
        let mut service = TestService::start_with(options).await;
        let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 60) })).await.id();
        let status = finished(service.caller(), &id, Duration::from_secs(60)).await;
        assert_eq!(status["completed"], 60);
        if *url != hanging.url {
            wait_until("the log tells of it", || async {
                service.logs().contains("the collector of traces takes none").then_some(())
            })
            .await;
        }
        // In good order and in time.
        service.stop();
    }
    assert!(hanging.call_count() > 0 && refusing.call_count() > 0);
}

#[tokio::test]
async fn without_the_setting_nothing_of_a_trace_is_stored() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let id = traced_batch(&service, &json!({ "urls": [site.url("/small/1")] }), "01").await;
    finished(service.caller(), &id, Duration::from_secs(60)).await;
    assert_eq!(service.tables_with(TRACE).await.0, Vec::<String>::new());
}
