//! The cache of pages (spec 4.7, wire 2.3, 3.2): who is answered from it, for what price, and who is not.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use serde_json::{Value, json};
use weir_shared::clock::Stopwatch;
use weir_shared::fault::ENVIRONMENT;
use weir_shared::random;
use weir_tests::{
    Caller, Database, FixtureSite, ModelStandIn, OwnPages, Said, ServiceOptions, TestService, both_databases,
    documents_at, documents_of, ended_at, files_below, finished,
};

const BOUND: Duration = Duration::from_secs(60);

async fn service(database: Database) -> TestService {
    TestService::start_with(ServiceOptions::new(database).env("WEIR_CACHE_SIZE", "100MB")).await
}

async fn scrape(caller: &Caller, body: Value) -> Value {
    caller.post("/v2/scrape", &body).await.ok()["data"].clone()
}

fn state(document: &Value) -> Option<&str> {
    document["metadata"]["cacheState"].as_str()
}

/// Head and body, which an empty line is between.
fn split(message: &[u8]) -> (String, &[u8]) {
    let end = message.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("an empty line");
    (String::from_utf8(message[..end].to_vec()).unwrap(), &message[end + 4..])
}

/// The records of an archive: their heads and their blocks, read by what their heads say of their length.
fn records(mut file: &[u8]) -> Vec<(BTreeMap<String, String>, &[u8])> {
    let mut records = Vec::new();
    while !file.is_empty() {
        let (head, rest) = split(file);
        let mut lines = head.split("\r\n");
        assert_eq!(lines.next(), Some("WARC/1.1"));
        let fields = lines.map(|line| line.split_once(": ").expect("a field"));
        let fields: BTreeMap<String, String> =
            fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert!(fields["WARC-Record-ID"].starts_with("<urn:uuid:") && fields["WARC-Date"].ends_with('Z'), "{head}");
        let (block, rest) = rest.split_at(fields["Content-Length"].parse().unwrap());
        file = rest.strip_prefix(b"\r\n\r\n").expect("two ends of lines behind a block");
        records.push((fields, block));
    }
    records
}

/// What one call has a page kept with, another is not given unasked.
#[tokio::test]
async fn what_is_kept_beside_a_page_goes_to_who_asks_for_it() {
    let site = FixtureSite::start().await;
    let service = service(Database::Sqlite).await;
    let stranger = service.new_team("stranger");
    let url = site.url("/article/11");
    let first = scrape(service.caller(), json!({ "url": url, "formats": ["screenshot", "branding"] })).await;
    assert!(first["screenshot"].is_string() && first["branding"].is_object(), "{first}");
    for caller in [service.caller(), &stranger] {
        for formats in [json!(["markdown"]), json!(["links"])] {
            let page = scrape(caller, json!({ "url": url, "formats": formats })).await;
            assert_eq!(state(&page), Some("hit"), "{page}");
            assert!(page.get("screenshot").is_none() && page.get("branding").is_none(), "{page}");
        }
        let page = scrape(caller, json!({ "url": url, "formats": ["screenshot"] })).await;
        assert_eq!((state(&page), &page["screenshot"]), (Some("hit"), &first["screenshot"]));
        assert!(page.get("branding").is_none(), "{page}");
    }
}

both_databases! {
    async fn a_page_is_asked_for_once_and_answered_to_all_who_ask_the_same(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let caller = service.caller();
        let url = site.url("/cache/a");

        let first = scrape(caller, json!({ "url": url, "formats": ["markdown", "links"] })).await;
        assert_eq!((state(&first), first["metadata"].get("cachedAt")), (Some("miss"), None), "{first}");
        let again = scrape(caller, json!({ "url": url, "formats": ["links", "markdown"], "timeout": 50_000 })).await;
        assert_eq!((state(&again), &again["markdown"]), (Some("hit"), &first["markdown"]), "{again}");
        assert!(again["metadata"]["cachedAt"].as_str().unwrap().ends_with('Z'), "{again}");
        assert_ne!(again["metadata"]["scrapeId"], first["metadata"]["scrapeId"]);
        assert_eq!(again["metadata"]["creditsUsed"], 1);
        assert_eq!(site.hit_count("/cache/a").await, 1);

        // A cached answer has an id of its own and can be read again, as any scrape.
        let id = again["metadata"]["scrapeId"].as_str().unwrap();
        assert_eq!(caller.get(&format!("/v2/scrape/{id}")).await.ok()["data"], again);
        let activity = caller.get("/v2/team/activity?endpoint=scrape").await.ok();
        assert_eq!((&activity["data"][0]["id"], activity["data"].as_array().unwrap().len()), (&json!(id), 2));
        let used = caller.get("/v2/team/credit-usage/historical").await.ok();
        assert_eq!(used["periods"][0]["creditsUsed"], 2, "{used}");

        // Another team shares it, the pages of a batch come from it, each beside pages that have to be asked for.
        let stranger = service.new_team("stranger");
        let theirs = scrape(&stranger, json!({ "url": url, "formats": ["markdown", "links"] })).await;
        assert_eq!(state(&theirs), Some("hit"));
        let batch = json!({ "urls": [url, site.url("/cache/b")], "formats": ["markdown", "links"] });
        let batch = caller.post("/v2/batch/scrape", &batch).await.id();
        let ended = finished(caller, &batch, BOUND).await;
        assert_eq!((&ended["completed"], &ended["creditsUsed"]), (&json!(2), &json!(2)));
        let documents = documents_of(caller, &batch).await;
        let mut states: Vec<_> = documents.iter().map(|d| state(d).unwrap()).collect();
        states.sort_unstable();
        assert_eq!(states, ["hit", "miss"]);
        assert_eq!((site.hit_count("/cache/a").await, site.hit_count("/cache/b").await), (1, 1));

        // Other formats are made of the same answer; another way of asking is another page.
        let html = scrape(caller, json!({ "url": url, "formats": ["html", "rawHtml"], "onlyMainContent": false })).await;
        assert_eq!(state(&html), Some("hit"));
        assert!(html["rawHtml"].as_str().unwrap().contains("fetch number 1"), "{html}");
        assert_eq!(site.hit_count("/cache/a").await, 1);
        let without_ads = json!({ "url": url, "blockAds": false });
        assert_eq!(state(&scrape(caller, without_ads).await), Some("miss"));
        // An age of 0 asks the site and renews what is kept.
        let fresh = scrape(caller, json!({ "url": url, "formats": ["markdown", "links"], "maxAge": 0 })).await;
        assert_eq!(state(&fresh), None);
        assert!(fresh["markdown"].as_str().unwrap().contains("fetch number 3"), "{fresh}");
        let renewed = scrape(caller, json!({ "url": url, "formats": ["markdown", "links"] })).await;
        assert_eq!((state(&renewed), &renewed["markdown"]), (Some("hit"), &fresh["markdown"]));

        // A map knows what the team has stored, and only that.
        let map = async |caller: &Caller| {
            let body = json!({ "url": site.url("/"), "sitemap": "skip", "filterByPath": false, "limit": 5000 });
            caller.post("/v2/map", &body).await.ok()["links"].to_string()
        };
        assert!(map(caller).await.contains("/cache/b"));
        assert!(!map(&stranger).await.contains("/cache/b"));
    }

    async fn only_the_cache_is_asked_where_the_caller_says_so(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let caller = service.caller();
        let url = site.url("/cache/only");
        let miss = async |body: Value, code: &str| {
            let answer = caller.post("/v2/scrape", &body).await;
            assert_eq!((answer.status, answer.code()), (404, code), "{}", answer.text);
            assert!(answer.is_base_error());
        };
        miss(json!({ "url": url, "minAge": 1 }), "SCRAPE_NO_CACHED_DATA").await;
        miss(json!({ "url": url, "lockdown": true }), "SCRAPE_LOCKDOWN_CACHE_MISS").await;
        assert_eq!(site.hit_count("/cache/only").await, 0, "the site was not asked");

        scrape(caller, json!({ "url": url })).await;
        let kept = scrape(caller, json!({ "url": url, "minAge": 1, "maxAge": 1 })).await;
        assert_eq!((state(&kept), &kept["metadata"]["creditsUsed"]), (Some("hit"), &json!(1)));
        miss(json!({ "url": url, "minAge": 3_600_000 }), "SCRAPE_NO_CACHED_DATA").await;
        let locked = scrape(caller, json!({ "url": url, "lockdown": true })).await;
        assert_eq!((state(&locked), &locked["metadata"]["creditsUsed"]), (Some("hit"), &json!(5)));
        miss(json!({ "url": url, "lockdown": true, "headers": { "X-A": "1" } }), "SCRAPE_LOCKDOWN_CACHE_MISS").await;

        // In a batch each page for itself: a hit costs 5, a miss 1.
        let batch = json!({ "urls": [url, site.url("/cache/none")], "lockdown": true });
        let id = caller.post("/v2/batch/scrape", &batch).await.id();
        let path = format!("/v2/batch/scrape/{id}");
        let ended = ended_at(caller, &path, BOUND).await;
        assert_eq!((&ended["completed"], &ended["creditsUsed"]), (&json!(1), &json!(6)), "{ended}");
        let errors = caller.get(&format!("{path}/errors")).await.ok();
        assert_eq!(errors["errors"][0]["code"], "SCRAPE_LOCKDOWN_CACHE_MISS");
        assert_eq!((site.hit_count("/cache/only").await, site.hit_count("/cache/none").await), (1, 0));
    }

    // The done line of the page store: fetched once, every format made of it, for scrapes, batches and crawls.
    async fn what_was_fetched_once_is_answered_in_every_format(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let caller = service.caller();
        let urls = [site.url("/article/1"), site.url("/mix/3"), site.url("/files/report.pdf"), site.url("/article/2")];
        let batch = async |options: Value| {
            let mut body = options;
            body["urls"] = json!(urls);
            body["maxAge"] = json!(600_000);
            let id = caller.post("/v2/batch/scrape", &body).await.id();
            let ended = finished(caller, &id, BOUND).await;
            assert_eq!(ended["completed"], urls.len(), "{ended}");
            documents_of(caller, &id).await
        };
        let first = batch(json!({ "formats": ["markdown"] })).await;
        assert!(first.iter().all(|document| state(document) == Some("miss")));
        let asked = site.hits("/").await;
        let formats = json!(["html", "links", "rawHtml", "images", { "type": "attributes", "selectors": [{ "selector": "a", "attribute": "href" }] }]);
        for document in batch(json!({ "formats": formats })).await {
            assert_eq!(state(&document), Some("hit"), "{}", document["metadata"]);
            assert!(document["links"].is_array() && document["rawHtml"].is_string() && document["html"].is_string());
            let one = scrape(caller, json!({ "url": document["metadata"]["sourceURL"], "formats": ["rawBase64"] })).await;
            assert!(state(&one) == Some("hit") && one["rawBase64"].is_string(), "{one}");
        }
        // The same formats are the same text, whether their site was asked or not.
        let key = |document: &Value| document["metadata"]["sourceURL"].as_str().unwrap().to_owned();
        for again in batch(json!({ "formats": ["markdown"] })).await {
            let before = first.iter().find(|before| key(before) == key(&again)).unwrap();
            assert_eq!(again["markdown"], before["markdown"]);
            let meta = |document: &Value| {
                let mut meta = document["metadata"].as_object().unwrap().clone();
                meta.retain(|name, _| !matches!(name.as_str(), "scrapeId" | "cacheState" | "cachedAt"));
                meta
            };
            assert_eq!(meta(&again), meta(before));
        }
        for url in &urls {
            let locked = scrape(caller, json!({ "url": url, "formats": ["html"], "lockdown": true })).await;
            assert_eq!((state(&locked), &locked["metadata"]["creditsUsed"]), (Some("hit"), &json!(5)));
        }
        assert_eq!(site.hits("/").await, asked, "no request to the site");
    }

    async fn a_crawl_over_a_stored_site_asks_it_for_nothing(database) {
        let site = OwnPages::start().await;
        site.put_file("/robots.txt", "text/plain", "User-agent: *\nDisallow: /shut\nCrawl-delay: 1\n");
        site.put("/", "<h1>Start</h1><p>Words of the start. <a href=/a>a</a> <a href=/b>b</a> <a href=/shut>c</a></p>");
        site.put("/a", "<p>Words of a. <a href=/gone>gone</a></p>");
        site.put("/b", "<p>Words of b. <a href=/a>a</a></p>");
        site.put("/new", "<p>Words of the new.</p>");
        site.put_with("/gone", 404, "<p>It is gone.</p>");
        let service = service(database).await;
        let caller = service.caller();
        let crawl_of = async |body: Value| {
            let id = caller.post("/v2/crawl", &body).await.id();
            let path = format!("/v2/crawl/{id}");
            let ended = ended_at(caller, &path, BOUND).await;
            let documents = documents_at(caller, &path).await;
            let pages: BTreeMap<String, Option<String>> = documents
                .iter()
                .map(|page| {
                    let url = page["metadata"]["sourceURL"].as_str().unwrap();
                    (url.replace(&site.url(""), ""), state(page).map(str::to_owned))
                })
                .collect();
            (ended, pages)
        };
        let body = |scrape: Value| json!({ "url": site.url("/"), "sitemap": "include", "scrapeOptions": scrape });
        let crawl = async |scrape: Value| crawl_of(body(scrape)).await;
        let all = |word: &str| {
            let page = |path: &str| (path.to_owned(), Some(word.to_owned()));
            BTreeMap::from([page("/"), page("/a"), page("/b"), page("/gone")])
        };
        let (ended, pages) = crawl(json!({ "formats": ["links"] })).await;
        assert_eq!(pages, all("miss"), "{ended}");
        let asked = site.all_heads();
        let began = Stopwatch::start();
        let mut stored = body(json!({ "formats": ["markdown", "rawHtml"], "maxAge": 600_000 }));
        stored["delay"] = json!(60);
        let (ended, pages) = crawl_of(stored).await;
        assert_eq!((pages, &ended["warning"]), (all("hit"), &Value::Null), "{ended}");
        assert!(ended["data"][0]["markdown"].is_string(), "{ended}");
        assert!(began.elapsed() < BOUND, "nobody waits for the turn of a site that is not asked");
        let (ended, pages) = crawl(json!({ "lockdown": true })).await;
        assert_eq!((pages, &ended["creditsUsed"]), (all("hit"), &json!(4 * 5)), "{ended}");
        assert_eq!(site.all_heads(), asked, "no request to the site, for robots.txt and sitemaps neither");

        // What is not kept is asked for, and nothing else.
        site.put("/b", "<p>Words of b. <a href=/new>new</a></p>");
        scrape(caller, json!({ "url": site.url("/b"), "maxAge": 0 })).await;
        let (ended, pages) = crawl(json!({ "formats": ["markdown"] })).await;
        assert_eq!(pages.get("/new"), Some(&Some("miss".to_owned())), "{ended}");
        assert_eq!(site.all_heads().len(), asked.len() + 2);
        let (ended, pages) = crawl(json!({ "formats": ["markdown"], "minAge": 1 })).await;
        assert!(pages.len() == 5 && pages.values().all(|state| state.as_deref() == Some("hit")), "{ended}");
        assert_eq!(site.all_heads().len(), asked.len() + 2);
        // Without an age the site is asked for all of it.
        let (ended, _) = crawl(json!({ "formats": ["links"], "maxAge": 0 })).await;
        assert!(site.all_heads().len() >= asked.len() + 2 + 5, "{ended}");
    }

    async fn a_worker_killed_between_blob_and_row_keeps_pages_as_any(database) {
        let site = FixtureSite::start().await;
        let options = ServiceOptions::new(database).env("WEIR_CACHE_SIZE", "100MB");
        let mut service = TestService::start_with(options.env(ENVIRONMENT, "between_blob_and_row=kill")).await;
        service.remove_env(ENVIRONMENT);
        // Too large for a row: it is a blob, for it does not compress.
        let noise: String = (0..48).map(|_| random::hex::<16_384>()).collect();
        let url = site.serve_file("large.txt", "text/plain", noise.clone().into_bytes()).await;
        let id = service.post("/v2/batch/scrape", &json!({ "urls": [url], "formats": ["links"] })).await.id();
        let status = service.await_worker(0, BOUND);
        assert_eq!(status.signal(), Some(9), "{status}");
        service.start_worker(0);
        assert_eq!(finished(service.caller(), &id, BOUND).await["completed"], 1);
        let asked = site.hits("/").await;
        let again = scrape(service.caller(), json!({ "url": url, "formats": ["rawHtml"] })).await;
        assert_eq!((state(&again), again["rawHtml"].as_str()), (Some("hit"), Some(noise.as_str())));
        assert_eq!(site.hits("/").await, asked);
        // Its blob may go while it is read about: then its site is asked.
        for file in files_below(&service.folder().join("blobs/versions")) {
            std::fs::remove_file(file).unwrap();
        }
        let lost = scrape(service.caller(), json!({ "url": url, "formats": ["rawHtml"] })).await;
        assert_eq!((state(&lost), lost["rawHtml"].as_str()), (Some("miss"), Some(noise.as_str())));
    }

    async fn what_is_kept_is_exported_in_the_form_of_archives(database) {
        let site = OwnPages::start().await;
        let service = service(database).await;
        let body = "<h1>Archived</h1><p>Words that are kept.\r\n\r\nWARC/1.1\r\nis no record.</p>";
        for path in ["/one", "/two"] {
            scrape(service.caller(), json!({ "url": site.put(path, body) })).await;
        }
        let gone = site.put_with("/gone", 404, "<p>It is gone.</p>");
        scrape(service.caller(), json!({ "url": gone })).await;
        let (plain, folder) = (service.folder().join("pages.warc"), service.folder().join("pages"));
        let summary = service.cli_json(&["pages", "export", "--warc", plain.to_str().unwrap(), "--json"]);
        assert_eq!(summary, json!({ "pages": 3, "lost": 0, "files": 1 }));
        let again = service.try_cli(&["pages", "export", "--warc", plain.to_str().unwrap()]);
        assert!(!again.status.success(), "what is there stays");
        service.cli(&["pages", "export", "--warc", folder.to_str().unwrap()]);
        let packed = std::fs::read(folder.join("weir-00000.warc.gz")).unwrap();
        let mut unpacked = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(packed.as_slice()), &mut unpacked).unwrap();
        for file in [std::fs::read(plain).unwrap(), unpacked] {
            let records = records(&file);
            let kinds: Vec<&str> = records.iter().map(|record| record.0["WARC-Type"].as_str()).collect();
            assert_eq!(kinds, ["warcinfo", "response", "response", "response"]);
            let named: BTreeMap<&str, &[u8]> =
                records[1..].iter().map(|(head, block)| (head["WARC-Target-URI"].as_str(), *block)).collect();
            for path in ["/one", "/two"] {
                let (http, sent) = split(named[site.url(path).as_str()]);
                assert!(http.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html"), "{http}");
                assert!(http.ends_with(&format!("\r\nContent-Length: {}", sent.len())), "{http}");
                assert!(String::from_utf8_lossy(sent).contains(body));
            }
            assert!(split(named[gone.as_str()]).0.starts_with("HTTP/1.1 404 Not Found\r\n"));
        }
        // Only what was asked for.
        let other = service.folder().join("other.warc");
        let summary = service.cli_json(&["pages", "export", "--warc", other.to_str().unwrap(), "--site", "other.test", "--json"]);
        assert_eq!(summary["pages"], 0);
    }

    async fn what_a_page_was_before_is_kept_and_archived(database) {
        let site = OwnPages::start().await;
        let service = service(database).await;
        let caller = service.caller();
        for price in ["four", "five", "five", "six"] {
            let url = site.put("/tea", &format!("<h1>Prices</h1><p>Tea costs {price} euros.</p>"));
            scrape(caller, json!({ "url": url, "maxAge": 0 })).await;
        }
        // What each was stored at, moved into the past: an hour for each version.
        let hour = 3_600_000;
        for table in ["page_version", "page_earlier"] {
            service.execute(&format!("UPDATE {table} SET since = since - 1800000, stored_at = stored_at - 1800000")).await;
        }
        let older = "(SELECT digest FROM page_earlier ORDER BY stored_at LIMIT 1)";
        service.execute(&format!("UPDATE page_earlier SET since = since - {hour}, stored_at = stored_at - {hour}")).await;
        service.execute(&format!("UPDATE page_earlier SET since = since - {hour}, stored_at = stored_at - {hour} WHERE digest = {older}")).await;
        let asked = site.all_heads().len();
        let url = site.url("/tea");
        for (min_age, price) in [(1, "six"), (hour, "five"), (2 * hour, "four")] {
            let page = scrape(caller, json!({ "url": url, "minAge": min_age })).await;
            assert_eq!(state(&page), Some("hit"));
            assert!(page["markdown"].as_str().unwrap().contains(price), "{min_age}: {page}");
        }
        let none = caller.post("/v2/scrape", &json!({ "url": url, "minAge": 3 * hour })).await;
        assert_eq!(none.code(), "SCRAPE_NO_CACHED_DATA");
        let newest = scrape(caller, json!({ "url": url })).await;
        assert!(newest["markdown"].as_str().unwrap().contains("six"), "{newest}");
        assert_eq!(site.all_heads().len(), asked);
        // Each version is a record of the archive, with its time.
        let file = service.folder().join("versions.warc");
        let summary = service.cli_json(&["pages", "export", "--warc", file.to_str().unwrap(), "--json"]);
        assert_eq!(summary["pages"], 3);
        let file = std::fs::read(file).unwrap();
        let records = records(&file);
        let times: std::collections::BTreeSet<&str> = records[1..].iter().map(|record| record.0["WARC-Date"].as_str()).collect();
        assert!(times.len() == 3 && records[1..].iter().all(|record| record.0["WARC-Target-URI"] == url), "{times:?}");
    }

    async fn what_a_model_has_said_is_kept_with_the_page(database) {
        let model = ModelStandIn::answering(|name, asked| {
            let user = asked["messages"][1]["content"].as_str().unwrap();
            let said = match name {
                "summary" => json!({ "summary": "Tea costs four euros." }),
                "data" => json!({ "price": 4 }),
                "quotations" => json!({ "passages": ["Tea costs four euros."] }),
                _ if user.contains("nonsense") => json!({ "answer": "" }),
                _ => json!({ "answer": format!("Answer to {} letters.", user.len()) }),
            };
            if !user.contains("cut") {
                return Said::json(&said);
            }
            let choice = json!({ "message": { "content": said.to_string() }, "finish_reason": "length" });
            Said::Body(json!({ "choices": [choice] }).to_string())
        })
        .await;
        let site = OwnPages::start().await;
        let options = ServiceOptions::new(database).env("WEIR_CACHE_SIZE", "100MB").env("WEIR_PAGE_BROWSERS", "0");
        let service = TestService::start_with(options.env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m")).await;
        let caller = service.caller();
        let url = site.put("/tea", "<main><h1>Prices</h1><p>Tea costs four euros.</p></main><footer>Imprint of the shop</footer>");
        let asked_of = async |caller: &Caller, formats: Value, more: Value| {
            let mut body = json!({ "url": url, "formats": formats });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let before = model.asked().len();
            let document = scrape(caller, body).await;
            (model.asked().len() - before, document)
        };
        let question = |text: &str| json!([{ "type": "question", "question": text }]);
        let schema = json!({ "type": "object", "properties": { "price": { "type": "number" } }, "required": ["price"] });
        let data = json!({ "type": "json", "schema": schema, "prompt": "the price" });
        let all = json!(["markdown", "summary", data, { "type": "highlights", "query": "tea" }]);
        let (calls, first) = asked_of(caller, all.clone(), json!({})).await;
        assert_eq!((calls, state(&first), &first["json"]), (3, Some("miss"), &json!({ "price": 4 })), "{first}");
        let (calls, again) = asked_of(caller, all.clone(), json!({})).await;
        assert_eq!((calls, state(&again)), (0, Some("hit")), "no model call and no fetch");
        for field in ["markdown", "summary", "json", "highlights"] {
            assert_eq!(again[field], first[field], "{field}");
        }
        assert_eq!(again["metadata"]["creditsUsed"], first["metadata"]["creditsUsed"], "for the price of a fresh one");
        assert_eq!(site.all_heads().len(), 1);
        // In a batch, too, and in part: what was not asked before is asked.
        let batch = json!({ "urls": [url], "formats": ["summary", data, { "type": "question", "question": "What else?" }] });
        let before = model.asked().len();
        let id = caller.post("/v2/batch/scrape", &batch).await.id();
        finished(caller, &id, BOUND).await;
        assert_eq!((model.asked().len() - before, documents_of(caller, &id).await[0]["json"].clone()), (1, json!({ "price": 4 })));
        assert_eq!(asked_of(caller, question("What else?"), json!({})).await.0, 0);
        // Another question, prompt, schema, text or team is another question.
        let other = json!([{ "type": "json", "schema": schema, "prompt": "the price of tea" }]);
        assert_eq!(asked_of(caller, other, json!({})).await.0, 1);
        assert_eq!(asked_of(caller, json!([{ "type": "json", "prompt": "the price" }]), json!({})).await.0, 1);
        assert_eq!(asked_of(caller, question("What now?"), json!({})).await.0, 1);
        assert_eq!(asked_of(caller, question("What now?"), json!({ "onlyMainContent": false })).await.0, 1);
        let stranger = service.new_team("stranger");
        let (calls, theirs) = asked_of(&stranger, question("What now?"), json!({})).await;
        assert_eq!((calls, state(&theirs)), (1, Some("hit")), "teams are walls");
        // Nothing of the request is kept in lockdown, and nothing where the caller says so; what is kept may be used.
        for more in [json!({ "lockdown": true }), json!({ "storeInCache": false })] {
            assert_eq!(asked_of(caller, question("What now?"), more.clone()).await.0, 0, "{more}");
            for _ in 0..2 {
                assert_eq!(asked_of(caller, question("A secret?"), more.clone()).await.0, 1, "{more}");
            }
        }
        // What was cut off is delivered and not kept; what was refused twice is neither.
        for _ in 0..2 {
            let (calls, cut) = asked_of(caller, question("Is it cut?"), json!({})).await;
            assert!(calls == 1 && cut["answer"].is_string(), "{cut}");
            let formats = json!(["markdown", { "type": "question", "question": "Some nonsense?" }]);
            let (calls, refused) = asked_of(caller, formats, json!({})).await;
            assert!(calls == 2 && refused.get("answer").is_none(), "{refused}");
        }
        // An answer is no older than the page may be.
        assert_eq!(asked_of(caller, question("What now?"), json!({ "maxAge": 0 })).await.0, 1);
        assert_eq!(asked_of(caller, question("What now?"), json!({})).await.0, 0, "the page is the same as before");
        service.execute("UPDATE page_derived SET made_at = made_at - 7200000").await;
        assert_eq!(asked_of(caller, question("What now?"), json!({ "maxAge": 3_600_000 })).await.0, 1);
        assert_eq!(asked_of(caller, question("What else?"), json!({})).await.0, 0);
        // A page that reads differently is asked about anew.
        site.put("/tea", "<main><h1>Prices</h1><p>Tea costs five euros.</p></main>");
        asked_of(caller, json!(["markdown"]), json!({ "maxAge": 0 })).await;
        assert_eq!(asked_of(caller, question("What now?"), json!({})).await.0, 1);
        // What is damaged is asked for again, and is not the caller's trouble.
        service.execute("UPDATE page_derived SET body = '123'").await;
        let (calls, document) = asked_of(caller, question("What now?"), json!({})).await;
        assert!(calls == 1 && document["answer"].is_string(), "{document}");
    }

    async fn a_rendered_page_is_kept_with_all_that_came(database) {
        let site = OwnPages::start().await;
        let shell = "<div id=root></div><script>root.innerHTML = '<h1>Made</h1><p>By a script, with words.</p>'</script>";
        let url = site.put("/app", shell);
        let service = service(database).await;
        let caller = service.caller();
        let shot = json!({ "type": "screenshot", "fullPage": false });
        let first = scrape(caller, json!({ "url": url, "formats": [shot, "markdown"] })).await;
        assert_eq!((state(&first), first["markdown"].as_str()), (Some("miss"), Some("# Made\n\nBy a script, with words.\n")));
        let asked = site.all_heads().len();
        for formats in [json!(["markdown", "html", "links"]), json!(["rawHtml"]), json!([shot])] {
            let again = scrape(caller, json!({ "url": url, "formats": formats })).await;
            assert_eq!(state(&again), Some("hit"), "{formats}");
            for (name, value) in again.as_object().unwrap().iter().filter(|(name, _)| first.get(name.as_str()).is_some()) {
                assert!(name == "metadata" || *value == first[name.as_str()], "{name}");
            }
            if let Some(raw) = again["rawHtml"].as_str() {
                assert!(raw.contains("<div id=root></div>"), "as the site sent it: {raw}");
            }
        }
        assert_eq!(site.all_heads().len(), asked);
        let other = json!({ "type": "screenshot", "fullPage": true });
        assert_eq!(state(&scrape(caller, json!({ "url": url, "formats": [other] })).await), Some("miss"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_a_callers_own_or_no_good_page_is_not_cached() {
    let site = FixtureSite::start().await;
    let service = service(Database::Sqlite).await;
    let caller = service.caller();
    // What keeps a page out of the cache, each asked for twice.
    let click = json!([{ "type": "wait", "milliseconds": 1 }]);
    for (path, options, shown) in [
        ("/cache/headers", json!({ "headers": { "Cookie": "a=1" } }), None),
        ("/cache/actions", json!({ "actions": click }), None),
        ("/cache/enhanced", json!({ "proxy": "enhanced" }), None),
        ("/cache/unkept", json!({ "storeInCache": false }), Some("miss")),
        ("/flaky/cache?fail=9&status=503", json!({}), Some("miss")),
    ] {
        let mut body = options;
        body["url"] = json!(site.url(path));
        for _ in 0..2 {
            assert_eq!(state(&scrape(caller, body.clone()).await), shown, "{path}");
        }
        let count = site.hit_count(path.split('?').next().unwrap()).await;
        assert!(count >= 2, "{path}: {count}");
    }
    // An address that holds a password stays with its team.
    let own = site.url("/cache/own").replace("http://", "http://ada:secret@");
    assert_eq!(state(&scrape(caller, json!({ "url": own })).await), Some("miss"));
    assert_eq!(state(&scrape(caller, json!({ "url": own })).await), Some("hit"));
    assert_eq!(state(&scrape(&service.new_team("stranger"), json!({ "url": own })).await), Some("miss"));

    // That a page is gone is kept for a while.
    for shown in ["miss", "hit"] {
        let gone = scrape(caller, json!({ "url": site.url("/status/404") })).await;
        assert_eq!((state(&gone), &gone["metadata"]["statusCode"]), (Some(shown), &json!(404)));
    }

    // Pages of a crawl are answered and kept as any.
    scrape(caller, json!({ "url": site.url("/small/1") })).await;
    let crawl = json!({ "url": site.url("/small/1"), "limit": 1, "sitemap": "skip" });
    let id = caller.post("/v2/crawl", &crawl).await.id();
    let ended = ended_at(caller, &format!("/v2/crawl/{id}"), BOUND).await;
    assert_eq!(state(&ended["data"][0]), Some("hit"), "{ended}");
    assert_eq!(site.hit_count("/small/1").await, 1);

    // Without room nothing is kept.
    let service = TestService::start_with(ServiceOptions::new(Database::Sqlite).env("WEIR_CACHE_SIZE", "0")).await;
    for _ in 0..2 {
        assert_eq!(state(&scrape(service.caller(), json!({ "url": site.url("/cache/off") })).await), None);
    }
    assert_eq!(site.hit_count("/cache/off").await, 2);
    let refused = service.post("/v2/scrape", &json!({ "url": site.url("/cache/off"), "minAge": 1 })).await;
    assert_eq!(refused.code(), "SCRAPE_NO_CACHED_DATA", "{}", refused.text);
}
