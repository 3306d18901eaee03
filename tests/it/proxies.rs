//! Proxies of the operator (spec 4.7, wire 11.3): basic, enhanced and auto, by country, for fetched and for rendered
//! pages; those that are dead rest.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;
use weir_tests::{
    Database, ForwardProxy, OwnPages, ServiceOptions, TestService, documents_at, ended_at, free_port, markdown_of,
};

async fn scrape(service: &TestService, url: &str, more: Value) -> Value {
    let mut body = json!({ "url": url, "maxAge": 0 });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    service.post("/v2/scrape", &body).await.ok()["data"].clone()
}

/// The proxy that the last request for a path came through, or "".
fn via(pages: &OwnPages, path: &str) -> String {
    let head = pages.heads(path).pop().unwrap_or_else(|| panic!("{path} was not asked for"));
    head.lines().find_map(|line| line.strip_prefix("x-via: ")).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_go_through_the_proxies_that_they_ask_for() {
    let (us, de) = (ForwardProxy::start("basic-us").await, ForwardProxy::start("basic-de").await);
    let enhanced = ForwardProxy::start("enhanced").await;
    let options = ServiceOptions::new(Database::Sqlite);
    // As many as do not fit into one message between a box and its worker, if each had two listeners.
    let basic = format!("us={0},de={1},jp={1},br={1},in={1},za={1}", us.url, de.url);
    let options = options.env("WEIR_PROXY_BASIC", basic);
    let service = TestService::start_with(options.env("WEIR_PROXY_ENHANCED", &enhanced.url)).await;
    let pages = OwnPages::start().await;
    let open = pages.put("/open", "<main><h1>Open</h1><p>Everybody may read this page.</p></main>");

    for (how, more) in [
        ("fetched", json!({})),
        ("rendered", json!({"waitFor": 1})),
        ("rendered with ads", json!({"waitFor": 1, "blockAds": false})),
    ] {
        let document = scrape(&service, &open, more).await;
        assert_eq!(via(&pages, "/open"), "basic-us", "{how}: the default country");
        assert!(markdown_of(&document).contains("Everybody"), "{how}: {document}");
        assert_eq!(
            (&document["metadata"]["proxyUsed"], &document["metadata"]["creditsUsed"]),
            (&json!("basic"), &json!(1))
        );
        assert!(document.get("warning").is_none(), "{how}: {document}");
    }
    for more in [json!({"location": {"country": "DE"}}), json!({"location": {"country": "DE"}, "waitFor": 1})] {
        scrape(&service, &open, more).await;
        assert_eq!(via(&pages, "/open"), "basic-de");
    }
    let document = scrape(&service, &open, json!({"location": {"country": "FR"}})).await;
    assert!(document["warning"].as_str().unwrap().contains("country"), "{document}");
    for more in [json!({"proxy": "enhanced"}), json!({"proxy": "stealth", "waitFor": 1})] {
        let document = scrape(&service, &open, more).await;
        assert_eq!(via(&pages, "/open"), "enhanced");
        assert_eq!(
            (&document["metadata"]["proxyUsed"], &document["metadata"]["creditsUsed"]),
            (&json!("stealth"), &json!(5))
        );
    }

    // `auto` turns to an enhanced proxy only where the site refuses, and is billed for it only then.
    let shy = pages.put("/shy", "<main><h1>Shy</h1><p>Only some may read this page.</p></main>");
    pages.guard("/shy", "x-via: enhanced");
    for more in [json!({"proxy": "auto"}), json!({"waitFor": 1})] {
        let document = scrape(&service, &shy, more).await;
        assert!(markdown_of(&document).contains("Only some"), "{document}");
        assert_eq!(
            (&document["metadata"]["proxyUsed"], &document["metadata"]["creditsUsed"]),
            (&json!("stealth"), &json!(5))
        );
    }
    let refused = scrape(&service, &shy, json!({"proxy": "basic"})).await;
    assert_eq!((&refused["metadata"]["statusCode"], &refused["metadata"]["creditsUsed"]), (&json!(403), &json!(1)));
    let asked = enhanced.seen().len();
    scrape(&service, &open, json!({"proxy": "auto"})).await;
    assert_eq!(
        (via(&pages, "/open").as_str(), enhanced.seen().len()),
        ("basic-us", asked),
        "nothing was asked in vain"
    );

    // What may not be reached may not be reached through a proxy either.
    for more in [json!({}), json!({"waitFor": 1}), json!({"proxy": "enhanced"})] {
        let mut body = json!({ "url": "http://10.0.0.1/" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(service.post("/v2/scrape", &body).await.status, 403);
    }
    assert!(us.seen().iter().chain(&de.seen()).chain(&enhanced.seen()).all(|line| !line.contains("10.0.0.1")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_proxy_rests_and_the_page_goes_on_with_another() {
    let alive = ForwardProxy::start("alive").await;
    let dead: Vec<String> = (0..2).map(|_| format!("http://127.0.0.1:{}", free_port())).collect();
    let options = ServiceOptions::new(Database::Sqlite);
    let options = options.env("WEIR_PROXY_BASIC", format!("{},{},{}", dead[0], dead[1], alive.url));
    let service = TestService::start_with(options).await;
    let pages = OwnPages::start().await;
    let url = pages.put("/page", "<main><p>Here I am, said the page to its readers.</p></main>");
    for n in 0..8 {
        // Alternately fetched and rendered.
        let document = scrape(&service, &url, json!({"waitFor": n % 2})).await;
        assert!(markdown_of(&document).contains("Here I am"), "{document}");
        assert_eq!(via(&pages, "/page"), "alive");
    }
    let only_dead = ServiceOptions::new(Database::Sqlite).env("WEIR_PAGE_BROWSERS", "0");
    let only_dead = only_dead.env("WEIR_PROXY_BASIC", &dead[0]);
    let service = TestService::start_with(only_dead).await;
    let asked = pages.heads("/page").len();
    let failed = service.post("/v2/scrape", &json!({ "url": url, "maxAge": 0 })).await;
    assert_eq!((failed.status, failed.code()), (500, "SCRAPE_SITE_ERROR"), "{}", failed.text);
    assert!(!failed.text.contains(&dead[0]), "{}", failed.text);
    assert_eq!(pages.heads("/page").len(), asked, "a page is never asked for past the configured proxies");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_proxy_takes_from_nobody_what_a_site_forbids_lists_or_links() {
    let alive = ForwardProxy::start("alive").await;
    let [us, de] = [free_port(), free_port()];
    // Whoever names no country is in the US.
    let basic = format!("us=http://127.0.0.1:{us},de=http://127.0.0.1:{de},{}", alive.url);
    let service = TestService::start_with(ServiceOptions::new(Database::Sqlite).env("WEIR_PROXY_BASIC", basic)).await;
    let pages = OwnPages::start().await;
    let page = |path: &str| pages.put(path, "<main><p>Here I am, said the page to its readers.</p></main>");
    let (open, listed) = (page("/open"), page("/listed"));
    page("/shut");
    pages.put_file("/robots.txt", "text/plain", "User-agent: *\nDisallow: /shut\n");
    let sitemap = format!(
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>{listed}</loc></url></urlset>"
    );
    pages.put_file("/sitemap.xml", "application/xml", &sitemap);
    let start =
        pages.put("/", "<main><p>Go <a href=\"/open\">in</a>, or <a href=\"/shut\">not</a>, as you like.</p></main>");

    let crawl = format!(
        "/v2/crawl/{}",
        service.post("/v2/crawl", &json!({ "url": start, "scrapeOptions": { "maxAge": 0 } })).await.id()
    );
    ended_at(service.caller(), &crawl, Duration::from_secs(120)).await;
    let documents = documents_at(service.caller(), &crawl).await;
    let found: BTreeSet<&str> = documents.iter().filter_map(|one| one["metadata"]["sourceURL"].as_str()).collect();
    assert_eq!(
        found,
        BTreeSet::from([&*start, &*open, &*listed]),
        "what robots.txt allows, by links and by the sitemap"
    );
    assert!(pages.heads("/shut").is_empty());

    let map = service.post("/v2/map", &json!({ "url": start, "location": { "country": "DE" } })).await.ok();
    for one in [&open, &listed] {
        assert!(map["links"].as_array().unwrap().iter().any(|link| link["url"] == **one), "{one}: {map}");
    }
    assert!(pages.all_heads().iter().all(|head| head.contains("x-via: alive")), "never past the proxies");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_that_hangs_up_takes_no_proxy_from_anybody() {
    let (us, other) = (ForwardProxy::start("us").await, ForwardProxy::start("other").await);
    // More than a page tries in all its attempts: while all rest, the first to have failed is chosen anyway.
    let basic = format!("us={},{}", us.url, [other.url.as_str(); 12].join(","));
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_PAGE_BROWSERS", "0").env("WEIR_PROXY_BASIC", basic);
    let service = TestService::start_with(options).await;
    let rude = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", rude.local_addr().unwrap());
    let _rude = AbortOnDropHandle::new(tokio::spawn(async move { while rude.accept().await.is_ok() {} }));
    let refused = service.post("/v2/scrape", &json!({ "url": url, "maxAge": 0 })).await;
    assert_eq!(refused.status, 500, "{}", refused.text);
    let asked = |proxy: &ForwardProxy| proxy.seen().iter().filter(|line| line.starts_with("CONNECT ")).count();
    assert!(asked(&us) > 0 && asked(&other) > 0, "each proxy is tried for the page itself");
    let pages = OwnPages::start().await;
    let open = pages.put("/open", "<main><p>Here I am, said the page to its readers.</p></main>");
    let neighbour = service.new_team("neighbours");
    neighbour.post("/v2/scrape", &json!({ "url": open, "maxAge": 0 })).await.ok();
    assert_eq!(via(&pages, "/open"), "us", "the proxy of the country is there for the others");
}
