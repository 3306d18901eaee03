//! `POST /v2/map` (spec 4.9, wire 9): exactly the addresses that a site has, in every mode.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use weir_shared::clock::Stopwatch;
use weir_tests::{Caller, Database, FixtureSite, ServiceOptions, SiteOptions, TestService, both_databases, wait_until};

/// A service without browsers: maps need none.
async fn service(database: Database, workers: usize) -> TestService {
    let options = ServiceOptions::new(database).workers(workers);
    TestService::start_with(options.env("WEIR_PAGE_BROWSERS", "0")).await
}

/// One map's links, in order, with the site's own address left out.
struct Map {
    body: Value,
    links: Vec<String>,
}

impl Map {
    fn set(&self) -> BTreeSet<&str> {
        let set: BTreeSet<&str> = self.links.iter().map(String::as_str).collect();
        assert_eq!(set.len(), self.links.len(), "each link once");
        set
    }

    fn warning(&self) -> &str {
        self.body["warning"].as_str().unwrap_or_default()
    }

    fn title(&self, path: &str) -> Value {
        let at = self.links.iter().position(|link| link == path).unwrap_or_else(|| panic!("no {path}"));
        self.body["links"][at]["title"].clone()
    }
}

async fn map_as(caller: &Caller, site: &FixtureSite, path: &str, options: Value) -> Map {
    let mut body = json!({ "url": site.url(path) });
    for (name, value) in options.as_object().unwrap() {
        body[name] = value.clone();
    }
    let body = caller.post("/v2/map", &body).await.ok();
    assert_eq!(body["success"], true, "{body}");
    let short = |link: &Value| {
        let url = link["url"].as_str().unwrap().to_owned();
        url.strip_prefix(&site.url("")).map(str::to_owned).unwrap_or(url)
    };
    let links = body["links"].as_array().unwrap().iter().map(short).collect();
    Map { links, body }
}

async fn map(service: &TestService, site: &FixtureSite, path: &str, options: Value) -> Map {
    map_as(service.caller(), site, path, options).await
}

fn set<'a>(paths: &[&'a str]) -> BTreeSet<&'a str> {
    paths.iter().copied().collect()
}

both_databases! {
    async fn a_sitemap_index_is_found_whole_and_kept_for_its_team(database) {
        let site = FixtureSite::start().await;
        let service = service(database, 2).await;
        let kinds = ["article", "docs", "product", "listing", "table", "long"];
        let extra = ["/links", "/lang/de/1", "/lang/ja/1", "/relative", "/article/1", "/caf%C3%A9", "/files/report.pdf"];

        let all = map(&service, &site, "/", json!({ "sitemap": "only", "limit": 100_000 })).await;
        let found = all.set();
        let numbers: BTreeSet<usize> = found
            .iter()
            .filter_map(|path| {
                let (kind, number) = path.strip_prefix('/')?.split_once('/')?;
                kinds.contains(&kind).then(|| number.parse().unwrap())
            })
            .collect();
        assert_eq!(numbers, (0..10_000).collect(), "every address of the index");
        assert!(extra.iter().all(|path| found.contains(path)), "{:?}", all.warning());
        assert_eq!(found.len(), 10_000 + extra.len());
        assert_eq!((all.warning(), all.body["id"].as_str().map(str::len)), ("", Some(36)));

        // A second map uses the kept sitemaps, and `ignoreCache` asks the site again.
        let fetched = site.hit_count("/sitemap").await;
        for _ in 0..4 {
            assert_eq!(map(&service, &site, "/", json!({ "sitemap": "only", "limit": 100_000 })).await.set(), found);
        }
        assert_eq!(site.hit_count("/sitemap").await, fetched, "kept");
        map(&service, &site, "/", json!({ "sitemap": "only", "limit": 100_000, "ignoreCache": true })).await;
        assert_eq!(site.hit_count("/sitemap").await, 2 * fetched, "fetched anew");
        // What a caller's own headers brought is for that caller alone, and another team keeps its own sitemaps.
        map(&service, &site, "/", json!({ "sitemap": "only", "limit": 100_000, "headers": { "X-Own": "1" } })).await;
        assert_eq!(site.hit_count("/sitemap").await, 3 * fetched);
        let other = service.new_team("other");
        map_as(&other, &site, "/", json!({ "sitemap": "only", "limit": 10 })).await;
        assert!(site.hit_count("/sitemap").await > 3 * fetched);

        // Limits, and the same first links each time.
        let few = map(&service, &site, "/", json!({ "sitemap": "only", "limit": 50 })).await;
        assert_eq!(few.links.len(), 50);
        assert_eq!(few.set(), all.links[..50].iter().map(String::as_str).collect());
        assert_eq!(map(&service, &site, "/", json!({})).await.links.len(), 5_000);
        let credits = service.cli_json(&["credits", "show", "--team", "tests", "--json"]);
        assert_eq!(credits["used"], 9, "one credit a map: {credits}");
        let jobs = service.cli_json(&["jobs", "list", "--kind", "map", "--json"]);
        assert_eq!(jobs.as_array().map(Vec::len), Some(10), "{jobs}");
    }

    async fn a_map_survives_its_worker(database) {
        let site = FixtureSite::start().await;
        let mut service = service(database, 1).await;
        let body = json!({ "url": site.url("/slow?ms=1500&x=1"), "sitemap": "skip", "ignoreQueryParameters": false });
        let caller = service.caller().clone();
        let call = tokio::spawn(async move { caller.post("/v2/map", &body).await });
        wait_until("the page is asked for", || async { (site.hit_count("/slow").await > 0).then_some(()) }).await;
        service.restart_worker(0);
        let body = call.await.unwrap().ok();
        assert_eq!(body["links"][0]["url"], site.url("/slow?ms=1500&x=1"), "{body}");
        let credits = service.cli_json(&["credits", "show", "--team", "tests", "--json"]);
        assert_eq!(credits["used"], 1, "{credits}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sitemaps_of_every_form_give_exactly_their_addresses() {
    let site = FixtureSite::start().await;
    let service = service(Database::Sqlite, 1).await;
    let every = [
        "/m/leaf",
        "/m/cdata",
        "/m/packed",
        "/m/twice",
        "/m/text-1",
        "/m/text-2",
        "/m/item-1",
        "/m/item-2",
        "/m/entry-1",
        "/m/news",
        "/m/wide",
        "/m/cut-1",
        "/m/cut-2",
    ];
    // A file that was packed twice is unpacked once: what is in it is not read.
    let every: BTreeSet<&str> = every.into_iter().filter(|path| *path != "/m/twice").collect();
    let forms = map(&service, &site, "/maps/sitemap.xml", json!({})).await;
    assert_eq!(forms.set(), every);
    assert!(forms.warning().contains("could not be read to their end"), "{}", forms.warning());
    for (path, title) in [
        ("/m/item-1", json!("Watching whales & dolphins")),
        ("/m/entry-1", json!("Riding a bicycle")),
        ("/m/news", json!("Elections")),
        ("/m/leaf", Value::Null),
    ] {
        assert_eq!(forms.title(path), title, "{path}");
    }
    let queries = map(&service, &site, "/maps/sitemap.xml", json!({ "ignoreQueryParameters": false })).await;
    assert!(queries.links.contains(&"/m/cdata?a=1&b=2".to_owned()));
    for (words, first) in [("whale watching", "/m/item-1"), ("bicycles", "/m/entry-1"), ("bake a bread", "/m/item-2")] {
        let found = map(&service, &site, "/maps/sitemap.xml", json!({ "search": words })).await;
        assert_eq!((found.links[0].as_str(), found.set()), (first, every.clone()), "{words}");
    }

    for (path, expected, words) in [
        ("/sitemap-broken.xml", set(&["/article/1", "/article/2"]), "could not be read"),
        ("/sitemap-loop.xml", set(&[]), "No link was found"),
        (
            "/sitemap-extra.xml",
            set(&["/links", "/lang/de/1", "/lang/ja/1", "/relative", "/article/1", "/caf%C3%A9", "/files/report.pdf"]),
            "",
        ),
        ("/maps/bomb/sitemap.xml", set(&["/m/bomb"]), "could not be read"),
        ("/maps/endless/sitemap.xml", set(&[]), "more sitemaps than were read"),
    ] {
        let found = map(&service, &site, path, json!({})).await;
        assert_eq!(found.set(), expected, "{path}");
        assert!(found.warning().contains(words), "{path}: {}", found.warning());
        assert!(!words.is_empty() || found.warning().is_empty(), "{path}: {}", found.warning());
    }
    assert_eq!(map(&service, &site, "/sitemap.txt", json!({})).await.set().len(), 100);
    let wide = map(&service, &site, "/maps/wide/sitemap.xml", json!({ "limit": 100_000 })).await;
    assert_eq!(wide.set().len(), 50_000, "a file has at most 50,000 entries");
    assert!(wide.warning().contains("could not be read"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_give_their_links_in_every_scope() {
    let site = FixtureSite::start_with(SiteOptions::default()).await;
    let service = service(Database::Sqlite, 1).await;
    let own = [
        "/links",
        "/article/1",
        "/article/1/",
        "/article/2",
        "/article/3",
        "/article/4",
        "/article/5",
        "/article/6",
        "/files/report.pdf",
        "/files/image.png",
        "/files/doc.csv",
        "/ARTICLE/9",
        "/article/%31%30",
        "/caf%C3%A9",
        "/a%20b",
        "/private/secret",
        "/index.html",
        "/",
        "/article/11;jsessionid=1",
        "/article/12",
        "/article/13",
    ];
    let plain = json!({ "sitemap": "skip", "filterByPath": false });
    let links = map(&service, &site, "/links", plain.clone()).await;
    assert_eq!(links.links[..own.len()], own, "the page's own links come first");
    assert_eq!(links.title("/links"), "Links");
    assert_eq!(site.hit_count("/private").await, 0, "robots.txt keeps us from it");
    assert_eq!(site.hit_count("/sitemap").await, 0, "skipped");
    // Nothing is below /links, so without a word on it the whole site is given.
    assert!(map(&service, &site, "/links", json!({ "sitemap": "skip" })).await.warning().contains("filterByPath"));
    let narrow = map(&service, &site, "/links", json!({ "sitemap": "skip", "filterByPath": true })).await;
    assert_eq!(narrow.set(), set(&["/links"]));
    assert!(narrow.warning().contains("Only one link"));

    // Queries, other sites, subdomains.
    let queries = json!({ "sitemap": "skip", "filterByPath": false, "ignoreQueryParameters": false });
    let queries = map(&service, &site, "/links", queries).await;
    assert!(
        ["/article/1?utm_source=x", "/article/1?ref=a&page=2", "/links?b=2&a=1"]
            .iter()
            .all(|p| queries.set().contains(p))
    );
    let wide = json!({ "sitemap": "skip", "filterByPath": false, "allowExternalLinks": true });
    assert!(map(&service, &site, "/links", wide).await.set().contains("https://other.example/page"));
    for (options, wanted) in [(json!({}), true), (json!({ "includeSubdomains": false }), false)] {
        let mut body = json!({ "url": site.url_at("localhost", "/links"), "sitemap": "skip" });
        body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        let body = service.post("/v2/map", &body).await.ok();
        let urls: Vec<&str> = body["links"].as_array().unwrap().iter().map(|l| l["url"].as_str().unwrap()).collect();
        assert_eq!(urls.contains(&site.url_at("blog.localhost", "/article/7").as_str()), wanted, "{urls:?}");
        assert!(!urls.iter().any(|url| url.contains("other.example")));
    }

    // Further pages: a bounded number, and no more than are needed.
    site.reset().await;
    let trap = map(&service, &site, "/trap/0", json!({ "sitemap": "skip", "filterByPath": false })).await;
    let expected: Vec<String> = (0..=21).map(|n| format!("/trap/{n}")).collect();
    assert_eq!(trap.links, expected, "the page, twenty further ones, and where the last one leads");
    assert_eq!(site.hit_count("/trap").await, 21);
    let tree = map(&service, &site, "/crawl/", json!({ "sitemap": "skip" })).await;
    let mut expected: BTreeSet<String> = ["/crawl/".to_owned()].into();
    for a in 0..10 {
        expected.insert(format!("/crawl/{a}/"));
        expected.extend((0..10).map(|b| format!("/crawl/{a}/{b}/")));
    }
    assert_eq!(tree.set(), expected.iter().map(String::as_str).collect());
    let sitemapped = map(&service, &site, "/", json!({ "limit": 200 })).await;
    assert_eq!((sitemapped.links[0].as_str(), sitemapped.links.len()), ("/", 200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_team_has_scraped_is_known_to_it_alone() {
    let site = FixtureSite::start().await;
    let service = service(Database::Sqlite, 1).await;
    let hidden = ["/article/9001", "/docs/9002", "/status/500"];
    let urls: Vec<String> = hidden.iter().map(|path| site.url(path)).collect();
    let batch = service.post("/v2/batch/scrape", &json!({ "urls": urls })).await.id();
    wait_until("the batch ends", || async {
        let status = service.get(&format!("/v2/batch/scrape/{batch}")).await.ok();
        (status["status"] == "completed").then_some(())
    })
    .await;
    let options = json!({ "sitemap": "skip", "limit": 100_000 });
    let mine = map(&service, &site, "/small/1", options.clone()).await;
    assert!(mine.set().contains("/article/9001") && mine.set().contains("/docs/9002"), "{:?}", mine.links);
    assert!(!mine.set().contains("/status/500"), "an error is no page");
    assert!(mine.title("/article/9001").is_string());
    let without = map(&service, &site, "/small/1", json!({ "sitemap": "skip", "useIndex": false })).await;
    assert!(!without.set().contains("/article/9001"));
    let other = service.new_team("other");
    assert!(!map_as(&other, &site, "/small/1", options.clone()).await.set().contains("/article/9001"));

    // A team that keeps nothing finds nothing kept.
    service.cli(&["team", "set", "tests", "--zero-data-retention", "on"]);
    wait_until("the setting counts", || async {
        (!map(&service, &site, "/small/1", options.clone()).await.set().contains("/article/9001")).then_some(())
    })
    .await;
    site.reset().await;
    for fetched in [1, 2] {
        map(&service, &site, "/maps/sitemap.xml", json!({})).await;
        assert_eq!(site.hit_count("/maps/leaf.xml").await, fetched);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_maps_are_refused_and_failed_ones_say_why() {
    let site = FixtureSite::start().await;
    let service = service(Database::Sqlite, 1).await;
    let url = site.url("/");
    for (body, path) in [
        (json!({}), json!(["url"])),
        (json!({ "url": "ftp://example.com/" }), json!(["url"])),
        (json!({ "url": url, "limit": 0 }), json!(["limit"])),
        (json!({ "url": url, "limit": 100_001 }), json!(["limit"])),
        (json!({ "url": url, "timeout": 0 }), json!(["timeout"])),
        (json!({ "url": url, "sitemap": "all" }), json!(["sitemap"])),
        (json!({ "url": url, "search": ["a"] }), json!(["search"])),
        (json!({ "url": url, "location": { "country": "Mars" } }), json!(["location", "country"])),
        (json!({ "url": url, "surprise": 1 }), json!([])),
    ] {
        let answer = service.post("/v2/map", &body).await;
        assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{body}: {}", answer.text);
        let named = answer.body["details"].as_array().unwrap().iter().any(|issue| issue["path"] == path);
        assert!(answer.is_base_error() && named, "{body}: {}", answer.text);
    }
    let started = Stopwatch::start();
    for (body, status, code) in [
        (json!({ "url": "http://127.0.0.1:2/" }), 500, "MAP_FAILED"),
        (json!({ "url": "http://127.0.0.1:2/", "sitemap": "only" }), 500, "MAP_FAILED"),
        (json!({ "url": "http://no-such-name.invalid/" }), 200, "SCRAPE_DNS_RESOLUTION_ERROR"),
        (json!({ "url": "http://10.0.0.1/" }), 403, "unsafe_domain_blocked"),
        (
            json!({ "url": site.url("/redirect/to?url=http://10.0.0.1/"), "sitemap": "skip" }),
            403,
            "unsafe_domain_blocked",
        ),
        (json!({ "url": site.url("/hang"), "timeout": 700 }), 408, "MAP_TIMEOUT"),
    ] {
        let answer = service.post("/v2/map", &body).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{body}: {}", answer.text);
        assert!(answer.is_base_error() && !answer.error().is_empty());
    }
    // The time of a map that says none is a minute.
    assert!(started.elapsed() < Duration::from_secs(50), "{:?}", started.elapsed());
    // Where the page fails, the sitemaps may do.
    let found = map(&service, &site, "/cut/reset", json!({ "filterByPath": false, "limit": 50 })).await;
    assert!(found.links.len() == 50 && found.warning().contains("page itself could not be read"), "{}", found.body);
    // A page that is an error, a file, or empty does not make the map fail.
    for (path, words) in [("/status/404", "status 404"), ("/files/data.json", "Only one link"), ("/status/204", "")] {
        let found = map(&service, &site, path, json!({ "sitemap": "skip", "filterByPath": true })).await;
        assert!(found.warning().contains(words) && found.links.len() <= 1, "{path}: {}", found.body);
    }
    let id = map(&service, &site, "/small/1", json!({})).await.body["id"].as_str().unwrap().to_owned();
    for path in ["/v2/scrape/", "/v2/batch/scrape/", "/v2/crawl/"] {
        assert_eq!(service.get(&format!("{path}{id}")).await.status, 404, "{path}: a map is none of these");
    }
    assert_eq!(service.anonymous().post("/v2/map", &json!({ "url": url })).await.status, 401);
    assert_eq!(service.get("/v2/map").await.status, 405);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_team_pays_for_a_map_or_gets_none() {
    let site = FixtureSite::start().await;
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_CREDITS", "metered").env("WEIR_PAGE_BROWSERS", "0");
    let service = TestService::start_with(options).await;
    let body = json!({ "url": site.url("/small/1"), "sitemap": "skip" });
    let answer = service.post("/v2/map", &body).await;
    assert_eq!((answer.status, answer.code()), (402, "INSUFFICIENT_CREDITS"), "{}", answer.text);
    service.cli(&["credits", "grant", "--team", "tests", "2"]);
    // A map that fails is free.
    assert_eq!(service.post("/v2/map", &json!({ "url": "http://127.0.0.1:2/" })).await.status, 500);
    service.post("/v2/map", &body).await.ok();
    service.post("/v2/map", &body).await.ok();
    assert_eq!(service.post("/v2/map", &body).await.status, 402);
}
