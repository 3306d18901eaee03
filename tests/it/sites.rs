//! Sites that a caller has blocked (wire 25): what it names is not asked, wherever a request leads.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{
    FixtureSite, SearchStandIn, ServiceOptions, SiteOptions, TestService, documents_at, ended_at, errors_of, finished,
    first_on,
};

const BOUND: Duration = Duration::from_secs(60);

/// Nothing of the second host's was asked for.
async fn was_left_alone(site: &FixtureSite, path: &str) {
    let stats = reqwest::get(site.url(&format!("/_ctl/hits?prefix={path}"))).await.unwrap().text().await.unwrap();
    assert!(!stats.contains(path), "{path} was asked for: {stats}");
}

first_on! {
    sqlite:

    async fn a_blocked_site_is_not_asked_by_any_way(database) {
        let two_hosts = SiteOptions { more_hosts: vec!["127.0.0.2".to_owned()], tls: false };
        let site = FixtureSite::start_with(two_hosts).await;
        let other = |path: &str| site.url(path).replace("127.0.0.1", "127.0.0.2");
        let backend = SearchStandIn::finding(vec![other("/small/76"), site.url("/small/77")]).await;
        // A page of a profile is made in the browser of a session.
        let options = ServiceOptions::new(database).with_sessions().env("WEIR_SEARCH_URL", &backend.url);
        let service = TestService::start_with(options).await;
        let lists = json!({ "mode": "manual-only", "blacklist": ["127.0.0.2"] });

        let redirect = site.url(&format!("/redirect/to?url={}", other("/small/71")));
        let script = "<h1>Words of a page</h1><p>Some more of them.</p><script>location.href='TARGET'</script>";
        let page = script.replace("TARGET", &other("/small/71"));
        let by_script = site.serve_file("leave", "text/html", page.into_bytes()).await;
        for (url, more) in [
            (other("/small/71"), json!({})),
            (redirect.clone(), json!({})),
            (redirect, json!({ "waitFor": 100 })),
            (by_script, json!({ "waitFor": 500 })),
        ] {
            let mut body = json!({ "url": url, "threatProtection": lists });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let answer = service.post("/v2/scrape", &body).await;
            assert_eq!((answer.status, answer.code()), (403, "unsafe_domain_blocked"), "{url}: {}", answer.text);
        }
        was_left_alone(&site, "/small/71").await;

        // Sockets and workers, of which the browser does not tell beforehand.
        let parts = "<h1>Words of a page</h1><p>Some more.</p><script>
            new WebSocket('SOCKET');
            new Worker(URL.createObjectURL(new Blob([`fetch('WORKER', { mode: 'no-cors' }); new WebSocket('SOCKET')`])));
            </script>";
        let parts = parts.replace("SOCKET", &other("/small/78").replace("http:", "ws:")).replace("WORKER", &other("/small/79"));
        let parts = site.serve_file("parts", "text/html", parts.into_bytes()).await;
        let mut body = json!({ "url": parts, "waitFor": 700, "threatProtection": lists });
        for more in [json!({}), json!({ "profile": { "name": "careful" } })] {
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            service.post("/v2/scrape", &body).await.ok();
            was_left_alone(&site, "/small/78").await;
            was_left_alone(&site, "/small/79").await;
        }
        service.post("/v2/scrape", &json!({ "url": parts, "waitFor": 700, "maxAge": 0 })).await.ok();
        for path in ["/small/78", "/small/79"] {
            assert_ne!(site.hit_count(path).await, 0, "without lists {path} is asked");
        }

        let allowed = json!({ "blacklist": ["127.*"], "whitelist": ["127.0.0.1"] });
        let body = json!({ "url": site.url("/small/72"), "threatProtection": allowed });
        service.post("/v2/scrape", &body).await.ok();
        let off = json!({ "url": site.url("/small/72"), "threatProtection": { "mode": "off" } });
        service.post("/v2/scrape", &off).await.ok();
        let classified = json!({ "url": site.url("/small/72"), "threatProtection": { "mode": "normal" } });
        for path in ["/v2/scrape", "/v2/map", "/v2/crawl"] {
            let answer = service.post(path, &classified).await;
            assert_eq!((answer.status, answer.code()), (403, "FORBIDDEN"), "{path}: {}", answer.text);
        }

        let urls = [site.url("/small/73"), other("/small/73")];
        let id = service.post("/v2/batch/scrape", &json!({ "urls": urls, "threatProtection": lists })).await.ok();
        let id = id["id"].as_str().unwrap().to_owned();
        finished(service.caller(), &id, BOUND).await;
        let errors = errors_of(service.caller(), &id).await;
        assert_eq!((errors.len(), &errors[0]["code"]), (1, &json!("unsafe_domain_blocked")), "{errors:?}");

        let links = format!("<h1>Links</h1><a href='{}'>a</a><a href='{}'>b</a>", other("/small/74"), site.url("/small/75"));
        let start = site.serve_file("links", "text/html", links.into_bytes()).await;
        let body = json!({ "url": start, "allowExternalLinks": true, "crawlEntireDomain": true, "sitemap": "skip",
            "maxDiscoveryDepth": 1, "threatProtection": lists });
        let id = service.post("/v2/crawl", &body).await.ok()["id"].as_str().unwrap().to_owned();
        let path = format!("/v2/crawl/{id}");
        ended_at(service.caller(), &path, BOUND).await;
        let pages: Vec<Value> = documents_at(service.caller(), &path).await.iter().map(|d| d["metadata"]["sourceURL"].clone()).collect();
        assert_eq!(pages.len(), 2, "{pages:?}");
        was_left_alone(&site, "/small/74").await;

        let body = json!({ "url": start, "allowExternalLinks": true, "sitemap": "skip", "threatProtection": lists });
        let map = service.post("/v2/map", &body).await.ok();
        assert!(!map.to_string().contains("127.0.0.2") && map.to_string().contains("/small/75"), "{map}");
        let blocked = service.post("/v2/map", &json!({ "url": other("/"), "threatProtection": lists })).await;
        assert_eq!((blocked.status, blocked.code()), (403, "unsafe_domain_blocked"), "{}", blocked.text);

        let body = json!({ "query": "x", "threatProtection": lists, "scrapeOptions": { "formats": ["markdown"] } });
        let found = service.post("/v2/search", &body).await.ok();
        let hits: Vec<&Value> = found["data"]["web"].as_array().unwrap().iter().map(|hit| &hit["url"]).collect();
        assert_eq!(hits, [&json!(site.url("/small/77"))]);
        was_left_alone(&site, "/small/76").await;
        let classified = json!({ "query": "x", "threatProtection": { "mode": "zscaler" } });
        assert_eq!(service.post("/v2/search", &classified).await.status, 403);
    }
}
