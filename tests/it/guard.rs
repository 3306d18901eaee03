//! What may be reached from here: only public addresses and `WEIR_ALLOW_NETS`, through every engine, redirect
//! and sub-resource, and for webhooks too. The site listens on 127.0.0.1, which is allowed, and 127.0.0.2, which is not.

use futures_util::FutureExt as _;
use serde_json::json;
use tokio::net::TcpListener;
use weir_tests::{Database, FixtureSite, OwnPages, ServiceOptions, SiteOptions, TestService, finished};

async fn narrow() -> (FixtureSite, TestService) {
    let options = SiteOptions { more_hosts: vec!["127.0.0.2".to_owned()], ..SiteOptions::default() };
    let site = FixtureSite::start_with(options).await;
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_ALLOW_NETS", "127.0.0.1/32");
    let service =
        TestService::start_with(options.env("WEIR_ALLOW_HOSTS", "inner.example=127.0.0.2,outer.example=127.0.0.1"))
            .await;
    (site, service)
}

#[tokio::test]
async fn an_inner_address_is_refused_however_it_is_written() {
    let (site, service) = narrow().await;
    service.post("/v2/scrape", &json!({ "url": site.url("/small/1") })).await.ok();
    let port = site.url("").rsplit_once(':').unwrap().1.to_owned();
    let mut faults = Vec::new();
    for url in [
        site.url_at("127.0.0.2", "/small/2"),
        format!("http://2130706434:{port}/small/2"),
        format!("http://0x7f000002:{port}/small/2"),
        format!("http://0177.0.0.2:{port}/small/2"),
        format!("http://127.2:{port}/small/2"),
        format!("http://[::ffff:127.0.0.2]:{port}/small/2"),
        format!("http://[::1]:{port}/small/2"),
        format!("http://0.0.0.0:{port}/small/2"),
        "http://10.0.0.1/".to_owned(),
        "http://172.16.3.4/".to_owned(),
        "http://192.168.1.1/".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://100.64.0.1/".to_owned(),
        "http://[fd00::1]/".to_owned(),
        "http://[fe80::1]/".to_owned(),
        "http://[64:ff9b::7f00:2]/".to_owned(),
        format!("http://inner.example:{port}/small/2"),
    ] {
        for wait in [0, 1] {
            let answer = service.post("/v2/scrape", &json!({ "url": url, "waitFor": wait, "timeout": 60_000 })).await;
            let is_told = answer.error().contains("Its operator sets WEIR_ALLOW_NETS");
            if (answer.status, answer.code()) != (403, "unsafe_domain_blocked") || !is_told {
                faults.push(format!("{url} waitFor {wait}: {} {}", answer.status, answer.text));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(site.hit_count("/small/2").await, 0, "nothing reached the inner address");
    service.post("/v2/scrape", &json!({ "url": format!("http://outer.example:{port}/small/3") })).await.ok();
}

#[tokio::test]
async fn a_redirect_to_an_inner_address_is_refused_in_both_engines() {
    let (site, service) = narrow().await;
    let inner = site.url_at("127.0.0.2", "/small/77");
    for wait in [0, 1] {
        let url = site.url(&format!("/redirect/to?url={inner}"));
        let answer = service.post("/v2/scrape", &json!({ "url": url, "waitFor": wait, "timeout": 60_000 })).await;
        assert_eq!((answer.status, answer.code()), (403, "unsafe_domain_blocked"), "waitFor {wait}: {}", answer.text);
    }
    let script = site.url("/redirect/to?url=http://169.254.169.254/latest/meta-data/");
    let answer = service.post("/v2/scrape", &json!({ "url": script })).await;
    assert_eq!(answer.code(), "unsafe_domain_blocked", "{}", answer.text);
    assert_eq!(site.hit_count("/small/77").await, 0);
}

#[tokio::test]
async fn a_page_cannot_use_the_browser_to_reach_inward() {
    let (site, service) = narrow().await;
    let inner = site.url_at("127.0.0.2", "/small/88");
    let body = json!({
        "url": site.url(&format!("/ssrf?url={inner}")), "waitFor": 800, "formats": ["markdown", "rawHtml", "screenshot"], "onlyMainContent": false,
    });
    let document = service.post("/v2/scrape", &body).await.ok();
    assert!(!document["data"].to_string().contains("LEAK Small"), "{document}");
    assert_eq!(site.hit_count("/small/88").await, 0, "no image, frame or script got through");

    // The same page may reach what is allowed, so the test would see a leak.
    let allowed = site.url("/small/99");
    let body = json!({ "url": site.url(&format!("/ssrf?url={allowed}")), "waitFor": 800, "onlyMainContent": false });
    let document = service.post("/v2/scrape", &body).await.ok();
    assert!(document["data"]["markdown"].as_str().unwrap().contains("LEAK"), "{document}");
}

#[tokio::test]
async fn a_webhook_to_an_inner_address_is_never_sent() {
    let (site, service) = narrow().await;
    let inner = site.url_at("127.0.0.2", "/webhook/inner");
    let answer = service.post("/v2/batch/scrape", &json!({ "urls": [site.url("/small/1")], "webhook": inner })).await;
    // Refused at once, or accepted and not delivered: both keep the address out of reach.
    if answer.status == 200 {
        finished(service.caller(), &answer.id(), std::time::Duration::from_secs(60)).await;
    } else {
        assert_eq!(answer.status, 400, "{}", answer.text);
    }
    let redirecting = "redirecting";
    site.webhook_behaves(redirecting, json!({ "redirect": site.url_at("127.0.0.2", "/webhook/inner") })).await;
    let body = json!({ "urls": [site.url("/small/1")], "webhook": { "url": site.webhook_url(redirecting), "events": ["completed"] } });
    service.post("/v2/batch/scrape", &body).await.id();
    weir_tests::wait_until("all attempts at the redirecting receiver", || async {
        (site.deliveries(redirecting).await.len() == 4).then_some(())
    })
    .await;
    assert_eq!(site.hit_count("/webhook/inner").await, 0);
}

#[tokio::test]
async fn a_port_that_browsers_refuse_is_asked_by_nobody() {
    // One of theirs that any user may listen on and nobody does.
    let mut found = None;
    for port in [10_080, 6_697, 6_669, 6_668, 5_061, 4_190] {
        found = found.or(TcpListener::bind(("127.0.0.1", port)).await.ok());
    }
    let listener = found.expect("a port that browsers refuse is free");
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (site, service) = narrow().await;
    let pages = OwnPages::start().await;
    let redirect = pages.redirect("/out", 302, &url);
    for (url, wait) in [(&url, 0), (&url, 1), (&redirect, 0), (&redirect, 1)] {
        let body = json!({ "url": url, "waitFor": wait, "timeout": 60_000 });
        let answer = service.post("/v2/scrape", &body).await;
        assert_eq!((answer.status, answer.code()), (403, "unsafe_domain_blocked"), "{body}: {}", answer.text);
    }
    let mapped = service.post("/v2/map", &json!({ "url": url })).await;
    assert_eq!(mapped.status, 403, "{}", mapped.text);
    let answer = service.post("/v2/batch/scrape", &json!({ "urls": [site.url("/small/1")], "webhook": url })).await;
    if answer.status == 200 {
        finished(service.caller(), &answer.id(), std::time::Duration::from_secs(60)).await;
    } else {
        assert_eq!(answer.status, 400, "{}", answer.text);
    }
    assert!(listener.accept().now_or_never().is_none(), "somebody asked");
}

#[tokio::test]
async fn by_default_nothing_inner_is_allowed() {
    let site = FixtureSite::start().await;
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_ALLOW_NETS", "");
    let service = TestService::start_with(options).await;
    let answer = service.post("/v2/scrape", &json!({ "url": site.url("/small/1") })).await;
    assert_eq!((answer.status, answer.code()), (403, "unsafe_domain_blocked"), "{}", answer.text);
}
