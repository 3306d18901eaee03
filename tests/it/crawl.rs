//! Crawls: exactly the pages that the options ask for, once each, at the pace that was asked for (wire 5).

mod faults;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use serde_json::{Value, json};
use weir_shared::fault::{ENVIRONMENT, FaultPoint};
use weir_tests::{
    Caller, Database, FixtureSite, OwnPages, ServiceOptions, SiteOptions, TestService, both_databases, documents_at,
    ended_at, first_on, wait_until,
};

const BOUND: Duration = Duration::from_secs(120);

/// One crawl from its start to its end.
struct Crawl {
    path: String,
    status: Value,
    /// Paths with queries of the delivered pages, as asked for.
    pages: Vec<String>,
    documents: Vec<Value>,
}

impl Crawl {
    /// The delivered paths, each of which must be there once.
    fn set(&self) -> BTreeSet<&str> {
        let set: BTreeSet<&str> = self.pages.iter().map(String::as_str).collect();
        assert_eq!(set.len(), self.pages.len(), "each page once: {:?}", self.pages);
        set
    }

    fn warning(&self) -> &str {
        self.status["warning"].as_str().unwrap_or_default()
    }
}

async fn begin(service: &TestService, url: &str, options: Value) -> String {
    let mut body = json!({ "url": url, "sitemap": "skip" });
    for (name, value) in options.as_object().unwrap() {
        body[name] = value.clone();
    }
    format!("/v2/crawl/{}", service.post("/v2/crawl", &body).await.id())
}

async fn end(service: &TestService, site: &FixtureSite, path: String) -> Crawl {
    let status = ended_at(service.caller(), &path, BOUND).await;
    let documents = match status["status"] == "completed" {
        true => documents_at(service.caller(), &path).await,
        false => Vec::new(),
    };
    let port = site.url("");
    let port = port.rsplit(':').next().unwrap();
    let short = |document: &Value| {
        let url = document["metadata"]["sourceURL"].as_str().unwrap().to_owned();
        let url = url.strip_prefix(&site.url("")).map(str::to_owned).unwrap_or(url);
        url.replace(&format!(":{port}"), "")
    };
    let pages = documents.iter().map(short).collect();
    Crawl { path, status, pages, documents }
}

/// A crawl without sitemaps unless `options` say otherwise.
async fn crawl(service: &TestService, site: &FixtureSite, url: &str, options: Value) -> Crawl {
    let path = begin(service, url, options).await;
    end(service, site, path).await
}

/// A host whose first page leads to eighty others, and which asks for a second between two of them.
async fn many_pages() -> OwnPages {
    let host = OwnPages::start().await;
    host.put_file("/robots.txt", "text/plain", "User-agent: *\nCrawl-delay: 1\n");
    let links: String = (0..80).map(|n| format!("<a href=/p{n}>{n}</a> ")).collect();
    host.put("/", &links);
    for n in 0..80 {
        host.put(&format!("/p{n}"), "A page of a few words.");
    }
    host
}

/// Begins a crawl of five pages of such a host, unless `options` say otherwise.
async fn crawl_of(caller: &Caller, host: &OwnPages, options: Value) -> String {
    let mut body = json!({ "url": host.url("/"), "sitemap": "skip", "limit": 5 });
    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    format!("/v2/crawl/{}", caller.post("/v2/crawl", &body).await.id())
}

async fn few_done(service: &TestService, path: &str, least: u64) {
    wait_until("its first pages", || async {
        (service.get(path).await.ok()["completed"].as_u64()? >= least).then_some(())
    })
    .await;
}

/// The pages of the tree `/crawl/` down to `depth`, three at most.
fn tree(depth: u32) -> BTreeSet<String> {
    let mut level = vec!["/crawl/".to_owned()];
    let mut all = BTreeSet::from(["/crawl/".to_owned()]);
    for _ in 0..depth.min(3) {
        level = level.iter().flat_map(|page| (0..10).map(move |n| format!("{page}{n}/"))).collect();
        all.extend(level.iter().cloned());
    }
    all
}

fn strs(set: &BTreeSet<String>) -> BTreeSet<&str> {
    set.iter().map(String::as_str).collect()
}

first_on! {
    postgres:

    async fn a_tree_is_crawled_once_each_for_every_depth_and_limit(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).workers(3)).await;
        let whole = crawl(&service, &site, &site.url("/crawl/"), json!({ "ignoreQueryParameters": true })).await;
        assert_eq!(whole.set(), strs(&tree(3)));
        assert_eq!(whole.pages.len(), 1_111);
        for field in ["total", "completed", "creditsUsed"] {
            assert_eq!(whole.status[field], 1_111, "{field}");
        }
        let progress = &whole.status["progress"];
        assert_eq!(*progress, json!({"discovered": 1_111, "queued": 0, "running": 0, "done": 1_111, "failed": 0, "blocked": 0}));
        let hits = site.hits("/crawl/").await;
        assert_eq!(hits.len(), 1_111);
        assert!(hits.values().all(|count| *count == 1), "each page was asked for once");

        // Together, so that their pages mix over the three workers.
        let mut running = Vec::new();
        for depth in [0, 1, 2, 5] {
            for limit in [1, 10, 11, 40, 111, 112, 130] {
                let options = json!({ "ignoreQueryParameters": true, "maxDiscoveryDepth": depth, "limit": limit });
                running.push((depth, limit, begin(&service, &site.url("/crawl/"), options).await));
            }
        }
        for (depth, limit, path) in running {
            let done = end(&service, &site, path).await;
            let (there, all) = (done.set(), tree(depth));
            assert!(there.iter().all(|page| all.contains(*page)), "depth {depth}: {there:?}");
            assert_eq!(there.len(), all.len().min(limit), "depth {depth}, limit {limit}");
            assert_eq!(done.status["total"], there.len());
            assert!(there.contains("/crawl/"));
        }

        // Every page has a variant with a query, which is a page of its own unless queries are ignored.
        let variants = crawl(&service, &site, &site.url("/crawl/"), json!({ "maxDiscoveryDepth": 1 })).await;
        let first = tree(1);
        let mut expected = strs(&first);
        expected.insert("/crawl/?sort=asc");
        assert_eq!(variants.set(), expected);
    }
}

first_on! {
    sqlite:

    async fn only_the_pages_that_belong_to_a_crawl_are_fetched(database) {
        let hosts = "site.example=127.0.0.1,www.site.example=127.0.0.1,blog.site.example=127.0.0.1,\
            docs.site.example=127.0.0.1,other.example=127.0.0.1";
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).env("WEIR_ALLOW_HOSTS", hosts)).await;
        let at = |path: &str| site.url_at("site.example", path);

        // Below the start page only, and the trap has no end but depth and limit.
        let trap = crawl(&service, &site, &at("/trap/"), json!({ "limit": 25, "ignoreQueryParameters": true })).await;
        let numbers: BTreeSet<String> = (1..25).map(|n| format!("http://site.example/trap/{n}")).collect();
        let mut expected = strs(&numbers);
        expected.insert("http://site.example/trap/");
        assert_eq!(trap.set(), expected);
        let deep = crawl(&service, &site, &at("/trap/"), json!({ "maxDiscoveryDepth": 2 })).await;
        let expected: BTreeSet<&str> = ["/trap/", "/trap/1", "/trap/1?s=0", "/trap/2", "/trap/2?s=1"].into();
        assert_eq!(deep.set().iter().map(|u| u.trim_start_matches("http://site.example")).collect::<BTreeSet<_>>(), expected);

        // One text at every address, which says so: it is delivered once.
        let options = json!({ "crawlEntireDomain": true, "includePaths": ["^/dup/"], "maxDiscoveryDepth": 1 });
        site.reset().await;
        let dup = crawl(&service, &site, &at("/urls?prefix=/dup/&n=20&from=1"), options).await;
        assert_eq!(dup.pages.len(), 1, "{:?}", dup.pages);
        assert_eq!(dup.status["total"], 1);
        assert!(dup.warning().contains("includePaths"), "{}", dup.warning());
        assert_eq!(dup.status["creditsUsed"], 1);

        // A list of links of every kind. Variants are one page, files that are not documents are left out.
        let links = |mut options: Value| {
            options["maxDiscoveryDepth"] = json!(1);
            options["crawlEntireDomain"] = json!(true);
            crawl(&service, &site, site.url_at("site.example", "/links").leak(), options)
        };
        let inside: BTreeSet<&str> = [
            "/links", "/article/1", "/article/2", "/article/3", "/article/4", "/article/5", "/article/6",
            "/links?page=2", "/files/doc.csv", "/files/report.pdf", "/ARTICLE/9", "/article/%31%30", "/caf%C3%A9", "/a%20b", "/",
            "/article/11;jsessionid=1", "/links?b=2&a=1", "/article/12", "/article/13",
        ].into();
        let own = |crawl: &Crawl| -> BTreeSet<String> {
            crawl.set().iter().map(|url| url.strip_prefix("http://site.example").unwrap_or(url).to_owned()).collect()
        };
        let plain = links(json!({})).await;
        assert_eq!(own(&plain), inside.iter().map(|s| (*s).to_owned()).collect());
        let errors = service.get(&format!("{}/errors", plain.path)).await.ok();
        assert_eq!(errors["robotsBlocked"], json!([at("/private/secret")]));
        assert_eq!(errors["errors"], json!([]));
        assert_eq!((&plain.status["total"], &plain.status["progress"]["failed"]), (&json!(19), &json!(0)));
        // A PDF of three pages among them.
        assert_eq!(plain.status["creditsUsed"], 21);

        let mut wide = inside.clone();
        wide.extend(["http://blog.site.example/article/7", "http://docs.site.example/docs/8"]);
        assert_eq!(own(&links(json!({ "allowSubdomains": true })).await), wide.iter().map(|s| (*s).to_owned()).collect());

        let mut exact = inside.clone();
        exact.extend([
            "/article/1?utm_source=x", "/article/1?ref=a&page=2", "/article/1/", "/index.html", "/links?a=1&b=2",
        ]);
        let all = links(json!({ "deduplicateSimilarURLs": false })).await;
        assert_eq!(own(&all), exact.iter().map(|s| (*s).to_owned()).collect());

        let options = json!({ "includePaths": ["^/article/", "^/links$"], "excludePaths": ["/1[0-9]", "%31"] });
        let chosen: BTreeSet<String> =
            ["/links", "/article/1", "/article/2", "/article/3", "/article/4", "/article/5", "/article/6"].map(str::to_owned).into();
        let mut by_path = chosen.clone();
        by_path.extend(["/links?page=2", "/links?b=2&a=1"].map(str::to_owned));
        assert_eq!(own(&links(options).await), by_path);
        let full = json!({ "includePaths": ["example:[0-9]+/article/[1-6]$", "/links$"], "regexOnFullURL": true });
        assert_eq!(own(&links(full).await), chosen);
    }
}

first_on! {
    postgres:

    async fn robots_and_pauses_are_kept_over_all_workers(database) {
        let site = FixtureSite::start_with(SiteOptions { more_hosts: vec!["127.0.0.2".to_owned()], tls: false }).await;
        let service = TestService::start_with(ServiceOptions::new(database).workers(3)).await;

        // Crawl-delay: 2 for SlowBot, whichever worker asks; two crawls of one host share it.
        let slow = json!({ "robotsUserAgent": "SlowBot", "limit": 2, "crawlEntireDomain": true });
        let one = begin(&service, &site.url("/crawl/"), slow.clone()).await;
        let two = begin(&service, &site.url("/crawl/1/"), slow).await;
        // The caller's own delay, on another host so that nothing else counts there.
        let delayed = json!({ "delay": 0.8, "limit": 6, "maxConcurrency": 5, "ignoreRobotsTxt": true });
        let own = begin(&service, &site.url_at("127.0.0.2", "/trap/"), delayed).await;
        assert_eq!(end(&service, &site, own).await.pages.len(), 6);
        for path in [one, two] {
            assert_eq!(end(&service, &site, path).await.pages.len(), 2);
        }
        for (prefix, count, pause) in [("/crawl/", 4, 2.0), ("/trap/", 6, 0.8)] {
            let times = site.times(prefix).await;
            assert_eq!(times.len(), count, "{prefix}");
            let least = times.windows(2).map(|w| w[1] - w[0]).fold(f64::MAX, f64::min);
            // What a request takes from its worker to the site differs, by more on a busy machine: half a pause is for that.
            assert!(least > pause * 0.5, "{prefix}: {least:.3} s apart, {pause} s asked for");
            let whole = times[count - 1] - times[0];
            assert!(whole > pause * (count as f64 - 1.5), "{prefix}: {whole:.1} s for {count} pages");
            assert!(whole < pause * count as f64 * 3.0 + 3.0, "{prefix}: {whole:.1} s for {count} pages");
        }

        let bad = crawl(&service, &site, &site.url("/crawl/"), json!({ "robotsUserAgent": "BadBot" })).await;
        assert_eq!((&bad.status["status"], &bad.status["total"]), (&json!("completed"), &json!(0)));
        assert!(bad.warning().contains("robots.txt forbids the start page"), "{}", bad.status);
        let errors = service.get(&format!("{}/errors", bad.path)).await.ok();
        assert_eq!((&errors["errors"], &errors["robotsBlocked"]), (&json!([]), &json!([site.url("/crawl/")])));
        assert_eq!(bad.status["progress"]["blocked"], 1);

        let slow = json!({ "robotsUserAgent": "SlowBot", "limit": 1, "crawlEntireDomain": true });
        let slow = crawl(&service, &site, &site.url("/links"), slow).await;
        let blocked = service.get(&format!("{}/errors", slow.path)).await.ok()["robotsBlocked"].as_array().unwrap().len();
        assert!(blocked >= 8, "articles are closed to SlowBot: {blocked}");
        let free = json!({ "ignoreRobotsTxt": true, "includePaths": ["^/private/", "^/links"], "crawlEntireDomain": true, "maxDiscoveryDepth": 1 });
        let free = crawl(&service, &site, &site.url("/links"), free).await;
        assert!(free.set().contains("/private/secret"), "{:?}", free.pages);
    }
}

both_databases! {
    async fn sitemaps_are_used_as_asked(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).workers(2)).await;
        let only = json!({
            "sitemap": "only", "crawlEntireDomain": true, "limit": 50,
            "includePaths": ["^/lang/", "^/links", "^/caf", "^/relative"]
        });
        let only = crawl(&service, &site, &site.url("/crawl/"), only).await;
        assert_eq!(only.set(), ["/links?a=1&b=2", "/lang/de/1", "/lang/ja/1", "/caf%C3%A9", "/relative"].into(), "{}", only.status);

        let limited = crawl(&service, &site, &site.url("/"), json!({ "sitemap": "only", "limit": 300, "excludePaths": ["^/files/"] })).await;
        assert_eq!((limited.set().len(), &limited.status["total"]), (300, &json!(300)));

        // Beside the links: depth 0 is the start page and what the sitemaps list.
        let both = json!({ "sitemap": "include", "crawlEntireDomain": true, "maxDiscoveryDepth": 0, "includePaths": ["^/lang/", "^/crawl/$"] });
        let both = crawl(&service, &site, &site.url("/crawl/"), both).await;
        assert_eq!(both.set(), ["/crawl/", "/lang/de/1", "/lang/ja/1"].into());

        let none = json!({ "sitemap": "only", "includePaths": ["^/nowhere"] });
        let none = crawl(&service, &site, &site.url("/"), none).await;
        assert_eq!((&none.status["status"], &none.status["total"]), (&json!("completed"), &json!(0)));
        assert!(none.warning().contains("No sitemap"), "{}", none.status);
    }

    async fn redirects_lead_to_each_page_once(database) {
        let hosts = "site.example=127.0.0.1,other.example=127.0.0.1";
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).env("WEIR_ALLOW_HOSTS", hosts)).await;
        // Twenty addresses that all end at /article/1: one of them is delivered.
        let many = json!({ "crawlEntireDomain": true, "includePaths": ["^/redirect/"], "maxDiscoveryDepth": 1, "limit": 30 });
        let many = crawl(&service, &site, &site.url("/urls?prefix=/redirect/302/&n=6&from=1"), many).await;
        assert_eq!(many.pages.len(), 0, "they end outside of includePaths: {:?}", many.pages);
        let many = json!({ "crawlEntireDomain": true, "includePaths": ["^/redirect/", "^/article/1$"], "maxDiscoveryDepth": 1 });
        let many = crawl(&service, &site, &site.url("/urls?prefix=/redirect/302/&n=6&from=1"), many).await;
        assert_eq!(many.pages.len(), 1, "{:?}", many.pages);
        assert!(many.documents[0]["metadata"]["url"].as_str().unwrap().ends_with("/article/1"));
        assert_eq!(many.status["creditsUsed"], 1);

        // Duplicates do not use up the limit: the next ones take their place.
        let full = json!({ "crawlEntireDomain": true, "limit": 3, "maxDiscoveryDepth": 1, "includePaths": ["^/dup/", "^/urls"] });
        let full = crawl(&service, &site, &site.url("/urls?prefix=/dup/&n=9&from=0"), full).await;
        assert_eq!(full.pages.len(), 2, "{:?}", full.pages);

        // A start page that redirects moves the crawl, but not to another site.
        let to = |host: &str| site.url_at("site.example", &format!("/redirect/to?url={}", site.url_at(host, "/trap/1")));
        let options = json!({ "crawlEntireDomain": true, "limit": 4, "ignoreQueryParameters": true });
        let moved = crawl(&service, &site, &to("site.example"), options.clone()).await;
        assert_eq!(moved.pages.len(), 4, "{:?}", moved.pages);
        let left = crawl(&service, &site, &to("other.example"), options).await;
        assert_eq!(left.pages.len(), 1, "{:?}", left.pages);
        assert!(left.warning().contains("another site"), "{}", left.status);
    }
}

both_databases! {
    async fn what_cannot_be_crawled_is_said(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let url = site.url("/crawl/");
        for (body, status, words) in [
            (json!({}), 400, "Bad Request"),
            (json!({ "url": "ftp://x.example/" }), 400, "unsupported protocol"),
            (json!({ "url": "http://10.0.0.1/" }), 403, "address"),
            (json!({ "url": url, "limit": 0 }), 400, "at least 1"),
            (json!({ "url": url, "includePaths": ["("] }), 400, "not a valid pattern"),
            (json!({ "url": url, "prompt": "x".repeat(10_001) }), 400, "10000"),
            (json!({ "url": url, "delay": 61 }), 400, "60"),
            (json!({ "url": url, "depth": 3 }), 400, "Unrecognized key in body"),
            (json!({ "url": url, "scrapeOptions": { "timeout": 1 } }), 400, "1000"),
        ] {
            let answer = service.post("/v2/crawl", &body).await;
            assert_eq!(answer.status, status, "{body}: {}", answer.text);
            assert!(answer.is_base_error() && answer.error().contains(words), "{body}: {}", answer.text);
            assert!(status != 400 || !answer.body["details"].as_array().unwrap().is_empty(), "{}", answer.text);
        }

        // Nobody answers there: the crawl fails with the start page's error, in the shape of wire 5.3.
        let hook = json!({ "webhook": site.webhook_url("dead") });
        let dead = crawl(&service, &site, "http://127.0.0.1:2/", hook).await;
        let shape = json!({ "success": false, "status": "failed", "data": [], "completed": 0, "total": 0, "creditsUsed": 0 });
        for (name, value) in shape.as_object().unwrap() {
            assert_eq!(dead.status[name], *value, "{name} in {}", dead.status);
        }
        assert!(!dead.status["error"].as_str().unwrap().is_empty());
        let errors = service.get(&format!("{}/errors", dead.path)).await.ok();
        assert_eq!(errors["errors"][0]["url"], "http://127.0.0.1:2/");
        wait_until("crawl.failed", || async {
            site.events("dead").await.iter().any(|e| e["type"] == "crawl.failed" && e["success"] == false).then_some(())
        })
        .await;
    }

    async fn a_prompt_becomes_options_and_those_of_the_body_win(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let prompt = "Only crawl /crawl/3, at most 40 pages, and ignore the sitemap";
        let body = json!({ "url": site.url("/crawl/"), "prompt": prompt, "limit": 5, "ignoreQueryParameters": true });
        let answer = service.post("/v2/crawl", &body).await.ok();
        let read = &answer["promptGeneratedOptions"];
        assert_eq!((&read["limit"], &read["sitemap"]), (&json!(40), &json!("skip")), "{answer}");
        let used = &answer["finalCrawlerOptions"];
        assert_eq!((&used["limit"], &used["sitemap"], &used["ignoreQueryParameters"]), (&json!(5), &json!("skip"), &json!(true)));
        let done = end(&service, &site, format!("/v2/crawl/{}", answer["id"].as_str().unwrap())).await;
        assert_eq!(done.set().len(), 5);
        assert!(done.pages.iter().all(|page| page.starts_with("/crawl/3/")), "{:?}", done.pages);

        let strange = service.post("/v2/crawl", &json!({ "url": site.url("/small/1"), "prompt": "Zorp the fnord." })).await.ok();
        assert!(strange["warning"].is_string(), "what was not understood is said: {strange}");
    }

    async fn crawls_are_private_listed_while_they_run_and_can_be_cancelled(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let other = service.new_team("others");
        let scrape = json!({ "formats": ["links"], "parsers": ["pdf"], "redactPII": { "mode": "fast" }, "maxAge": 1_000,
            "threatProtection": { "blacklist": ["*.bad.example"] }, "headers": { "X-Vault-Token": "hush" } });
        let options = json!({ "delay": 1, "scrapeOptions": scrape, "maxDiscoveryDepth": 3 });
        let path = begin(&service, &site.url("/trap/"), options).await;
        let id = path.rsplit('/').next().unwrap().to_owned();

        for name in ["active", "ongoing"] {
            let list = service.get(&format!("/v2/crawl/{name}")).await.ok();
            let entry = &list["crawls"][0];
            assert_eq!((&list["success"], &entry["id"], &entry["url"]), (&json!(true), &json!(id), &json!(site.url("/trap/"))));
            assert_eq!(entry["options"]["maxDiscoveryDepth"], 3);
            let scrape = &entry["options"]["scrapeOptions"];
            assert_eq!((&scrape["formats"], &scrape["parsers"][0]["type"]), (&json!(["links"]), &json!("pdf")), "{entry}");
            assert_eq!(scrape["redactPII"]["mode"], "fast");
            assert_eq!(scrape["threatProtection"]["blacklist"], json!(["*.bad.example"]));
            assert_eq!(scrape["headers"], json!({ "X-Vault-Token": "[hidden]" }), "{entry}");
            assert!(!list.to_string().contains("hush"), "another key of the team reads a caller's secrets: {list}");
            assert!(entry["teamId"].is_string() && entry["created_at"].as_str().unwrap().ends_with('Z'), "{entry}");
            assert_eq!(other.get(&format!("/v2/crawl/{name}")).await.ok()["crawls"], json!([]));
            assert_eq!(service.anonymous().get(&format!("/v2/crawl/{name}")).await.status, 401);
        }
        for (answer, status) in [
            (other.get(&path).await, 404),
            (other.delete(&path).await, 404),
            (other.get(&format!("{path}/errors")).await, 403),
            (service.get(&format!("/v2/batch/scrape/{id}")).await, 404),
            (service.get("/v2/crawl/not-an-id").await, 400),
        ] {
            assert_eq!(answer.status, status, "{}", answer.text);
            assert!(answer.is_base_error());
        }

        wait_until("the first page", || async {
            (service.get(&path).await.ok()["completed"].as_u64()? > 0).then_some(())
        })
        .await;
        let progress = service.get(&path).await.ok()["progress"].clone();
        assert!(progress["discovered"].as_u64().unwrap() > 1 && progress["queued"].as_u64().is_some(), "{progress}");
        let watched = service.cli_json(&["jobs", "show", &id, "--json"]);
        assert!(watched["discovered"].as_u64().unwrap() > 1, "{watched}");
        assert_eq!(service.delete(&path).await.ok()["status"], "cancelled");
        let status = service.get(&path).await.ok();
        assert_eq!(status["status"], "cancelled");
        assert_eq!(service.get("/v2/crawl/active").await.ok()["crawls"], json!([]));
        wait_until("no page is left running", || async {
            let status = service.get(&path).await.ok();
            (status["total"] == status["completed"]).then_some(())
        })
        .await;
        assert_eq!(service.delete(&path).await.status, 200);
    }

    async fn a_crawl_tells_its_webhook_what_the_specification_says(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let webhook = json!({ "url": site.webhook_url("crawl"), "metadata": { "order": 7 } });
        let options = json!({ "maxDiscoveryDepth": 1, "ignoreQueryParameters": true, "webhook": webhook });
        let done = crawl(&service, &site, &site.url("/crawl/"), options).await;
        let id = done.path.rsplit('/').next().unwrap();
        let watched = service.cli_json(&["jobs", "watch", id, "--json"]);
        assert_eq!((&watched["discovered"], &watched["completed"]), (&json!(11), &json!(11)), "{watched}");
        let events = wait_until("crawl.completed", || async {
            let events = site.events("crawl").await;
            events.iter().any(|event| event["type"] == "crawl.completed").then_some(events)
        })
        .await;
        let first = events[0].as_object().unwrap();
        let mut expected = json!({ "success": true, "type": "crawl.started", "id": id, "data": [], "metadata": { "order": 7 } });
        expected["webhookId"] = first["webhookId"].clone();
        assert_eq!(json!(first), expected, "spec 6, and nothing else");
        assert!(uuid::Uuid::parse_str(first["webhookId"].as_str().unwrap()).is_ok());
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        let mut pages = BTreeSet::new();
        for event in &events {
            *kinds.entry(event["type"].as_str().unwrap()).or_default() += 1;
            pages.extend(event["data"][0]["metadata"]["scrapeId"].as_str());
        }
        assert_eq!(kinds, [("crawl.started", 1), ("crawl.page", 11), ("crawl.completed", 1)].into());
        let ids: BTreeSet<&str> = done.documents.iter().filter_map(|d| d["metadata"]["scrapeId"].as_str()).collect();
        assert_eq!(pages, ids);
        assert_eq!(events.last().unwrap()["type"], "crawl.completed");
    }

    async fn a_cancelled_crawl_gives_its_host_back_to_everybody(database) {
        let service = TestService::start(database).await;
        let other = service.new_team("others");
        // The first crawl's other pages wait for over a minute.
        let host = many_pages().await;
        let first = crawl_of(service.caller(), &host, json!({ "limit": 80 })).await;
        few_done(&service, &first, 4).await;
        service.delete(&first).await.ok();
        let second = crawl_of(&other, &host, json!({})).await;
        let done = ended_at(&other, &second, Duration::from_secs(50)).await;
        assert_eq!((&done["status"], &done["completed"]), (&json!("completed"), &json!(5)), "{done}");
    }

    async fn a_callers_delay_slows_its_own_crawl_and_no_other_of_the_host(database) {
        let service = TestService::start(database).await;
        let other = service.new_team("others");
        let host = many_pages().await;
        let first = crawl_of(service.caller(), &host, json!({ "delay": 60 })).await;
        few_done(&service, &first, 1).await;
        let second = crawl_of(&other, &host, json!({})).await;
        let done = ended_at(&other, &second, Duration::from_secs(45)).await;
        assert_eq!((&done["status"], &done["completed"]), (&json!("completed"), &json!(5)), "{done}");
        assert_eq!(service.get(&first).await.ok()["completed"], 1);
        service.delete(&first).await.ok();
    }

    async fn a_batch_does_not_stand_behind_crawls_that_wait_for_their_turn(database) {
        let service = TestService::start(database).await;
        let (host, site) = (many_pages().await, FixtureSite::start().await);
        host.put_file("/robots.txt", "text/plain", "User-agent: *\nCrawl-delay: 60\n");
        // More than a claim looks at; all but one wait.
        for _ in 0..60 {
            crawl_of(service.caller(), &host, json!({})).await;
        }
        let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/small/", 60) })).await.id();
        let done = ended_at(service.caller(), &format!("/v2/batch/scrape/{id}"), Duration::from_secs(50)).await;
        assert_eq!(done["completed"], 60, "{done}");
        for crawl in service.get("/v2/crawl/active").await.ok()["crawls"].as_array().unwrap() {
            service.delete(&format!("/v2/crawl/{}", crawl["id"].as_str().unwrap())).await.ok();
        }
    }

    async fn a_team_crawls_as_far_as_its_credits_go(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start_with(ServiceOptions::new(database).env("WEIR_CREDITS", "metered")).await;
        let refused = service.post("/v2/crawl", &json!({ "url": site.url("/crawl/") })).await;
        assert_eq!(refused.status, 402, "{}", refused.text);
        service.cli(&["credits", "grant", "--team", "tests", "7"]);
        let done = crawl(&service, &site, &site.url("/crawl/"), json!({ "limit": 50 })).await;
        assert_eq!((done.set().len(), &done.status["creditsUsed"]), (7, &json!(7)));
        assert!(done.warning().contains("7 pages"), "{}", done.status);
    }
}

#[tokio::test]
async fn a_crawl_opens_no_more_pages_at_once_than_it_may() {
    let site = FixtureSite::start().await;
    let service = TestService::start_with(ServiceOptions::new(Database::Sqlite).workers(2)).await;
    site.reset().await;
    let options =
        json!({ "crawlEntireDomain": true, "maxDiscoveryDepth": 1, "maxConcurrency": 2, "ignoreRobotsTxt": true });
    let slow = crawl(&service, &site, &site.url("/urls?prefix=/slow/&n=6&from=1"), options).await;
    assert_eq!(slow.set().len(), 7, "{:?}", slow.pages);
    assert_eq!(site.most_open().await, 2, "over both workers, and used");
}

#[tokio::test]
async fn a_site_whose_robots_txt_fails_is_closed_and_one_without_is_open() {
    let site = FixtureSite::start_with(SiteOptions { more_hosts: vec!["127.0.0.2".to_owned()], tls: false }).await;
    let service = TestService::start(Database::Sqlite).await;
    site.answer_robots_with(503).await;
    let closed = crawl(&service, &site, &site.url("/crawl/"), json!({ "limit": 3 })).await;
    assert_eq!((&closed.status["total"], &closed.status["creditsUsed"]), (&json!(0), &json!(0)), "{}", closed.status);
    assert!(closed.warning().contains("robots.txt"), "{}", closed.status);
    assert_eq!(site.hit_count("/crawl/").await, 0, "nothing but robots.txt was asked for");

    site.answer_robots_with(404).await;
    let open = json!({ "limit": 3, "crawlEntireDomain": true, "maxDiscoveryDepth": 1 });
    let open = crawl(&service, &site, &site.url_at("127.0.0.2", "/links"), open).await;
    assert_eq!(open.pages.len(), 3, "{}", open.status);
}

first_on! {
    sqlite:

    async fn a_page_with_many_links_is_entered_in_slices_and_a_killed_worker_doubles_none(database) {
        let host = OwnPages::start().await;
        host.put("/", &(0..3_000).map(|n| format!("<a href=/p{n}>{n}</a> ")).collect::<String>());
        for n in 0..3 {
            host.put(&format!("/p{n}"), "A page of a few words.");
        }
        let options = ServiceOptions::new(database).env(ENVIRONMENT, format!("{}=kill", FaultPoint::EnteredAhead.as_str()));
        let mut service = TestService::start_with(options).await;
        service.remove_env(ENVIRONMENT);
        let path = crawl_of(service.caller(), &host, json!({ "limit": 4 })).await;
        let status = service.await_worker(0, BOUND);
        assert_eq!(status.signal(), Some(9), "the worker gets between two slices: {status}");
        assert_eq!(service.get(&path).await.ok()["status"], "scraping");
        service.start_worker(0);
        let done = ended_at(service.caller(), &path, BOUND).await;
        assert_eq!((&done["status"], &done["completed"], &done["total"]), (&json!("completed"), &json!(4), &json!(4)), "{done}");
        assert_eq!(done["progress"]["discovered"], 1_004, "a thousand wait beyond the limit");
        assert!((0..3).all(|n| host.heads(&format!("/p{n}")).len() == 1), "each once");
    }

    async fn a_crawl_loses_no_page_and_waits_for_nothing_that_nobody_wants(database) {
        let hosts = "one.example=127.0.0.1,two.example=127.0.0.1";
        let service = TestService::start_with(ServiceOptions::new(database).env("WEIR_ALLOW_HOSTS", hosts)).await;
        let of = async |path: String| {
            let status = ended_at(service.caller(), &path, BOUND).await;
            let errors = service.get(&format!("{path}/errors")).await.ok();
            let documents = documents_at(service.caller(), &path).await;
            let urls = documents.iter().map(|d| d["metadata"]["sourceURL"].as_str().unwrap().to_owned());
            (status, errors["robotsBlocked"].clone(), urls.collect::<BTreeSet<String>>())
        };
        let start = async |host: &OwnPages, at: &str, options: Value| {
            let mut body = json!({ "url": host.url_at("one.example", at), "sitemap": "skip" });
            body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
            format!("/v2/crawl/{}", service.post("/v2/crawl", &body).await.id())
        };

        // A sitemap that hangs, and all pages are there.
        let slow = OwnPages::start().await;
        slow.put("/", "A page of a few words.");
        let _gate = slow.hold("/sitemap.xml");
        let full = start(&slow, "/", json!({ "sitemap": "include", "limit": 1 })).await;

        // A redirect to another origin whose robots.txt forbids the end; a start page that is a redirect to such a one.
        let shut = OwnPages::start().await;
        shut.put_file("/robots.txt", "text/plain", "User-agent: *\nDisallow: /shut");
        shut.put("/shut", "<a href=/from-shut>x</a>");
        shut.put("/open", "A page of a few words.");
        let site = OwnPages::start().await;
        site.put("/", "<a href=/to-shut>1</a> <a href=/to-open>2</a>");
        let end = shut.url_at("two.example", "/shut");
        site.redirect("/to-shut", 302, &end);
        site.redirect("/to-open", 302, &shut.url_at("two.example", "/open"));
        let external = start(&site, "/", json!({ "allowExternalLinks": true })).await;
        let moved = start(&site, "/to-shut", json!({ "allowExternalLinks": true })).await;

        // A page that calls itself another one, which is not there.
        let named = OwnPages::start().await;
        named.put("/", "<a href=/good>1</a> <a href=/missing>2</a>");
        let head = format!("<link rel=canonical href={}>", named.url_at("one.example", "/missing"));
        named.put_with("/good", 200, &format!("<html><head>{head}</head><body>A good page.</body></html>"));
        let canonical = start(&named, "/", json!({})).await;

        // A name and a password are for the site that they were given with, and shown to nobody.
        let user = OwnPages::start().await;
        user.put("/", "A page of a few words.");
        let url = user.url_at("alice:won@one.example", "/");
        let body = json!({ "url": url, "sitemap": "skip", "limit": 1 });
        let secret = format!("/v2/crawl/{}", service.post("/v2/crawl", &body).await.id());

        let (status, blocked, urls) = of(external).await;
        assert_eq!(blocked, json!([end]), "{status}");
        assert_eq!(urls, BTreeSet::from(["/", "/to-open"].map(|path| site.url_at("one.example", path))));
        let (status, blocked, urls) = of(moved).await;
        assert_eq!((status["status"].as_str(), &blocked, urls.len()), (Some("completed"), &json!([end]), 0));
        assert!(status["warning"].as_str().unwrap().contains("robots.txt forbids the page"), "{status}");
        assert!(shut.heads("/from-shut").is_empty());
        let (status, _, urls) = of(canonical).await;
        let pages = ["/", "/good", "/missing"].map(|path| named.url_at("one.example", path));
        assert_eq!(urls, BTreeSet::from(pages), "{status}");
        let (status, _, urls) = of(secret).await;
        assert_eq!(urls, BTreeSet::from([user.url_at("one.example", "/")]), "{status}");
        assert!(!status.to_string().contains("won"), "{status}");
        // A sitemap has a minute.
        let status = ended_at(service.caller(), &full, Duration::from_secs(45)).await;
        assert_eq!((&status["status"], &status["completed"]), (&json!("completed"), &json!(1)));
    }
}
