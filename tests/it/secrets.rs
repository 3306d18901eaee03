//! Where a caller's headers, cookies and profiles may go: to the origin that the caller named, over a connection that can
//! be trusted, and nowhere else.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{
    Caller, Database, FixtureSite, ModelStandIn, OwnPages, Said, SearchStandIn, ServiceOptions, SiteOptions,
    TestService, ended_at, temporary, wait_until,
};

const BOUND: Duration = Duration::from_secs(60);

/// In every value that must stay at home.
const SECRET: &str = "s3cret";

/// Headers that say who the caller is, known names and others, and one that does not.
fn headers() -> Value {
    json!({
        "Authorization": format!("Bearer {SECRET}"), "Cookie": format!("session={SECRET}; more={SECRET}"),
        "X-Api-Key": SECRET, "PRIVATE-TOKEN": SECRET, "X-Vault-Token": SECRET, "X-Of-My-Own": SECRET,
        "Referer": format!("http://127.0.0.1/{SECRET}"), "User-Agent": "Of The Caller/1",
    })
}

/// Two sites of one machine, on ports of their own: two origins with one host.
struct Sites {
    home: OwnPages,
    foreign: OwnPages,
}

impl Sites {
    async fn start() -> Self {
        Self { home: OwnPages::start().await, foreign: OwnPages::start().await }
    }

    /// What has gone wrong so far, if anything: secrets at the foreign site, or none at home.
    fn fault(&self, way: &str, path: &str) -> Option<String> {
        let heads = self.foreign.heads(path);
        let leaks: Vec<&String> = heads.iter().filter(|head| head.contains(SECRET)).collect();
        if heads.is_empty() {
            Some(format!("{way}: the foreign site was not asked for {path}"))
        } else if !leaks.is_empty() {
            Some(format!("{way}: {}", leaks[0]))
        } else {
            None
        }
    }
}

async fn scrape(caller: &Caller, body: &Value) -> Value {
    caller.post("/v2/scrape", body).await.body.clone()
}

fn refresh(to: &str) -> String {
    format!("<!DOCTYPE html><html><head><meta http-equiv=refresh content=\"0; url={to}\"></head><body></body></html>")
}

/// A page with text enough to need no browser.
fn text() -> String {
    format!("<h1>A page</h1>{}", "<p>Some words that make it a page of its own, and many of them.</p>".repeat(12))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callers_headers_reach_only_the_origin_it_named_whatever_a_page_does() {
    let sites = Sites::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let caller = service.caller();
    let mut faults: Vec<String> = Vec::new();
    for browser in [false, true] {
        let engine = if browser { "browser" } else { "fetch" };
        let mut ways: Vec<(String, String)> = Vec::new();
        for status in [301, 302, 303, 307, 308] {
            let end = format!("/end/{engine}/{status}");
            let to = sites.foreign.put(&end, &text());
            ways.push((sites.home.redirect(&format!("/r/{engine}/{status}"), status, &to), end));
        }
        let end = format!("/end/{engine}/refresh");
        let to = sites.foreign.put(&end, &text());
        ways.push((sites.home.put_with(&format!("/refresh/{engine}"), 200, &refresh(&to)), end));
        // A redirect has taken the headers off; the page it led to must not get them on again.
        let end = format!("/end/{engine}/refresh-after-redirect");
        sites.foreign.put(&end, &text());
        let to = sites.foreign.put_with(&format!("/between/{engine}"), 200, &refresh(&end));
        ways.push((sites.home.redirect(&format!("/r/{engine}/refresh"), 302, &to), end));
        if browser {
            let end = "/end/script".to_owned();
            let to = sites.foreign.put(&end, &text());
            ways.push((sites.home.put("/script", &format!("{}<script>location = '{to}'</script>", text())), end));
            for (name, html) in [
                ("frame", "<iframe src='URL'></iframe>"),
                ("script", "<script src='URL'></script>"),
                ("fetch", "<script>fetch('URL', {mode: 'no-cors', credentials: 'include'})</script>"),
                ("style", "<link rel=stylesheet href='URL'>"),
            ] {
                let end = format!("/end/part/{name}");
                let to = sites.foreign.put(&end, "");
                let html = format!("{}{}", text(), html.replace("URL", &to));
                // Cookies do not know ports, so what would carry them there is not asked for at all.
                sites.home.put(&format!("/part/{name}"), &html);
                let mut given = headers();
                given.as_object_mut().unwrap().remove("Cookie");
                let body = json!({ "url": sites.home.url(&format!("/part/{name}")), "headers": given, "waitFor": 200 });
                let answer = scrape(caller, &body).await;
                assert_eq!(answer["success"], true, "{answer}");
                faults.extend(sites.fault(name, &end));
                let end = format!("/end/cookie/{name}");
                let to = sites.foreign.put(&end, "");
                let html = html.replace(&sites.foreign.url(&format!("/end/part/{name}")), &to);
                let url = sites.home.put(&format!("/cookie/{name}"), &html);
                scrape(caller, &json!({ "url": url, "headers": headers(), "waitFor": 200 })).await;
                let leaks = sites.foreign.heads(&end);
                faults.extend(leaks.into_iter().filter(|head| head.contains(SECRET)).map(|h| format!("{name}: {h}")));
            }
        }
        // What the browser does not hold back.
        if browser {
            let socket = sites.foreign.put("/end/socket", "").replacen("http", "ws", 1);
            let far = sites.foreign.put("/end/worker", "");
            let worker = format!(
                "onconnect = ({{ports: [to]}}) => fetch('{far}', {{mode: 'no-cors', credentials: 'include'}})\
                .catch(() => 0).then(() => to.postMessage(1))"
            );
            sites.home.put_file("/worker.js", "text/javascript", &worker);
            for (name, script) in [
                ("socket", format!("new WebSocket('{socket}').onclose = done")),
                ("worker", "new SharedWorker('/worker.js').port.onmessage = done".to_owned()),
            ] {
                let html =
                    format!("{}<script>function done() {{ document.body.id = 'done' }} {script}</script>", text());
                let body = json!({ "url": sites.home.put(&format!("/behind/{name}"), &html), "headers": headers(),
                    "actions": [{ "type": "wait", "selector": "#done" }] });
                let answer = scrape(caller, &body).await;
                assert_eq!(answer["success"], true, "{name}: {answer}");
                let heads = sites.foreign.heads(&format!("/end/{name}"));
                faults.extend(heads.into_iter().map(|head| format!("{name}: {head}")));
            }
        }
        for (url, end) in ways {
            let mut body = json!({ "url": url, "headers": headers() });
            if browser {
                body["waitFor"] = 200.into();
            }
            let answer = scrape(caller, &body).await;
            assert_eq!(answer["success"], true, "{url}: {answer}");
            faults.extend(sites.fault(&format!("{engine} {url}"), &end));
            let first = sites.home.heads(url.strip_prefix(&sites.home.url("")).unwrap());
            assert_eq!(first[0].matches(SECRET).count(), 8, "everything goes to the origin that was named: {first:?}");
            assert!(sites.foreign.heads(&end)[0].contains("Of The Caller/1"), "a name is no secret");
        }
    }
    // A file that the browser leaves to the fetcher, and one behind an address that is named like a film.
    let file = sites.foreign.put_file("/end/file", "text/plain", "Some words");
    let url = sites.home.redirect("/file", 302, &file);
    scrape(caller, &json!({ "url": url, "headers": headers(), "waitFor": 1 })).await;
    faults.extend(sites.fault("file", "/end/file"));
    let film = sites.foreign.put_file("/end/film.mp4", "video/mp4", "film");
    let url = sites.home.redirect("/film.mp4", 302, &film);
    let answer = scrape(caller, &json!({ "url": url, "headers": headers(), "formats": ["video"] })).await;
    assert_eq!(answer["success"], true, "{answer}");
    faults.extend(sites.fault("film", "/end/film.mp4"));
    assert!(faults.is_empty(), "{} leaks:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crawls_and_maps_send_a_callers_headers_to_the_site_that_was_named_alone() {
    let sites = Sites::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let caller = service.caller();
    let mut faults: Vec<String> = Vec::new();

    let (next, far) = (sites.home.put("/next", &text()), sites.foreign.put("/end/crawl", &text()));
    let start = sites.home.put("/start", &format!("{}<a href='{next}'>1</a><a href='{far}'>2</a>", text()));
    for more in [json!({}), json!({ "waitFor": 1 })] {
        let mut options = json!({ "headers": headers() });
        options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let body = json!({ "url": start, "allowExternalLinks": true, "crawlEntireDomain": true, "ignoreRobotsTxt": true, "sitemap": "skip",
            "limit": 3, "scrapeOptions": options });
        let path = format!("/v2/crawl/{}", caller.post("/v2/crawl", &body).await.id());
        let ended = ended_at(caller, &path, BOUND).await;
        assert_eq!(ended["completed"], 3, "{ended}");
    }
    faults.extend(sites.fault("crawl", "/end/crawl"));
    assert!(sites.home.heads("/next").iter().all(|head| head.contains(SECRET)), "{:?}", sites.home.heads("/next"));

    // Sitemaps: one that robots.txt names, one that an index of the site's own names.
    let list = |url: &str| {
        format!("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>{url}</loc></url></urlset>")
    };
    let index = |url: &str| {
        format!(
            "<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><sitemap><loc>{url}</loc></sitemap></sitemapindex>"
        )
    };
    let by_robots = sites.foreign.put_file("/end/robots.xml", "text/xml", &list(&next));
    let by_index = sites.foreign.put_file("/end/index.xml", "text/xml", &list(&next));
    let own = sites.home.put_file("/index.xml", "text/xml", &index(&by_index));
    sites.home.put_file("/robots.txt", "text/plain", &format!("Sitemap: {by_robots}\nSitemap: {own}\n"));
    let map = caller.post("/v2/map", &json!({ "url": start, "headers": headers(), "ignoreCache": true })).await;
    assert_eq!(map.status, 200, "{}", map.text);
    faults.extend(sites.fault("robots.txt", "/end/robots.xml"));
    faults.extend(sites.fault("index", "/end/index.xml"));
    assert!(sites.home.heads("/index.xml")[0].contains(SECRET), "{:?}", sites.home.heads("/index.xml"));
    let robots = sites.home.heads("/robots.txt");
    assert!(
        robots.iter().all(|head| !head.contains(SECRET)),
        "what all callers share is asked for without: {robots:?}"
    );
    assert!(faults.is_empty(), "{} leaks:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_search_finds_gets_nothing_of_its_callers() {
    let sites = Sites::start().await;
    let ends = ["/end/v2", "/end/v1", "/end/extract"];
    let urls: Vec<String> = ends.iter().map(|path| sites.foreign.put(path, &text())).collect();
    let named = sites.home.put("/named", &text());
    let model = ModelStandIn::answering(|name, _| match name {
        "queries" => Said::json(&json!({ "queries": ["words"] })),
        _ => Said::json(&json!({ "words": "some" })),
    })
    .await;
    let search = SearchStandIn::finding(urls).await;
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_PAGE_BROWSERS", "0");
    let options = options.env("WEIR_LLM_URL", &model.url).env("WEIR_LLM_MODEL", "m-1");
    let service = TestService::start_with(options.env("WEIR_SEARCH_URL", &search.url)).await;
    let caller = service.caller();

    let scrape = json!({ "formats": ["markdown"], "headers": headers() });
    let body = json!({ "query": "words", "limit": 3, "scrapeOptions": scrape });
    let found = caller.post("/v2/search", &body).await.ok();
    for hit in found["data"]["web"].as_array().unwrap() {
        assert!(hit["markdown"].as_str().unwrap().contains("Some words"), "{hit}");
        assert!(hit["warning"].as_str().unwrap_or_default().contains("headers were not sent"), "{hit}");
    }
    caller.post("/v1/search", &body).await.ok();

    let schema = json!({ "type": "object", "properties": { "words": { "type": "string" } } });
    let body = json!({ "urls": [named], "prompt": "find words", "schema": schema, "enableWebSearch": true,
        "scrapeOptions": { "headers": headers() } });
    let path = format!("/v2/extract/{}", caller.post("/v2/extract", &body).await.id());
    let ended = crate::extract::ended(caller, &path).await;
    assert_eq!(ended["data"]["words"], "some", "{ended}");
    assert!(ended["warning"].as_str().unwrap_or_default().contains("without the request's headers"), "{ended}");

    let faults: Vec<String> = ends.iter().filter_map(|end| sites.fault("search", end)).collect();
    assert!(faults.is_empty(), "{} leaks:\n{}", faults.len(), faults.join("\n"));
    assert!(ends.iter().all(|end| sites.foreign.heads(end)[0].contains("Of The Caller/1")), "a name is no secret");
    assert!(sites.home.heads("/named")[0].contains(SECRET), "what is named gets them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_page_that_is_about_to_leave_for_home_gets_nothing_from_there() {
    let sites = Sites::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let caller = service.caller();
    // Who has a token may read it from anywhere.
    let prize = sites.home.put_file("/api/me", "text/plain", "What is the caller's.");
    sites.home.add_headers("/api/me", "access-control-allow-origin: *\r\n");
    let hang = sites.home.url("/hang");
    let _gate = sites.home.hold("/hang");
    let shows = "onmessage = () => document.body.insertAdjacentHTML('beforeend', '<p id=done>done</p>');";
    let steals = format!(
        "{shows} location = '{hang}'; setTimeout(() => fetch('{prize}').then(a => a.text()).catch(() => '')\
         .then(() => parent.postMessage('done', '*')), 150);"
    );
    let foreign = sites.foreign.put("/end/steals", &format!("{}<script>{steals}</script>", text()));
    sites.home.put_file("/own.js", "text/javascript", "fetch('/own/api')");
    let frame =
        format!("{}<script>{shows}</script><script src=/own.js></script><iframe src='{foreign}'></iframe>", text());
    let ways = [sites.home.put("/frame", &frame), sites.home.redirect("/away", 302, &foreign)];

    // While cookies are there, nothing else of the host is asked for at all.
    let mut given = headers();
    given.as_object_mut().unwrap().remove("Cookie");
    for (asked, way) in (1..).zip(ways) {
        let actions = json!([{ "type": "wait", "selector": "#done" }]);
        scrape(caller, &json!({ "url": way, "headers": given, "actions": actions, "timeout": 50_000 })).await;
        let heads = sites.home.heads("/api/me");
        assert!(heads.len() >= asked, "{way}: it was asked for");
        assert!(heads.iter().all(|head| !head.contains(SECRET)), "{way}: {heads:?}");
        assert!(sites.home.heads("/hang").len() >= asked, "{way}");
    }
    for own in ["/frame", "/own.js", "/own/api"] {
        assert!(sites.home.heads(own)[0].contains(SECRET), "{own}: the page's own requests have them");
    }
    assert_eq!(sites.fault("steals", "/end/steals"), None);
}

/// Everything below a folder with what its mode says of group and others.
fn open_to_others(folder: &Path) -> BTreeMap<PathBuf, u32> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        // SQLite's log may go at this moment.
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            found.extend(open_to_others(&entry.path()));
        }
        found.insert(entry.path(), about.permissions().mode() & 0o077);
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_service_writes_is_its_users_alone_whatever_the_mask() {
    // The usual one, by which what is made may be read by everybody.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let pages = OwnPages::start().await;
    // What does not compress becomes a blob.
    let noise: String = (0..40_000).map(|_| uuid::Uuid::new_v4().to_string()).collect();
    let url = pages.put("/noise", &noise);
    // A database that the service makes: the usual one of tests is a copy.
    let folder = temporary("test");
    let database = format!("sqlite://{}/own.db", folder.display());
    let options = ServiceOptions::new(Database::Sqlite).env("DATABASE_URL", database);
    let service = TestService::start_in(folder, options).await;
    let body = json!({ "urls": [url], "formats": ["rawHtml"] });
    let id = service.post("/v2/batch/scrape", &body).await.id();
    ended_at(service.caller(), &format!("/v2/batch/scrape/{id}"), BOUND).await;

    let mut found = open_to_others(service.folder());
    // Made by the tests themselves.
    let own = |path: &Path| path.extension().is_some_and(|kind| kind == "log") || path == service.folder().join("tmp");
    // What boxes run in is entered by their users, who read nothing of it: the sandbox's own tests.
    let of_boxes = service.folder().join("tmp/weir-run");
    found.retain(|path, _| !own(path) && !path.starts_with(&of_boxes));
    let is_there = |what: &str| found.keys().any(|path| path.to_str().unwrap().contains(what));
    assert!(is_there("own.db") && is_there("own.db-wal") && is_there(".zst"), "{found:?}");
    found.retain(|_, mode| *mode != 0);
    assert!(found.is_empty(), "other users of the machine may read: {found:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_continues_a_scrape_keeps_its_headers_at_home() {
    let sites = Sites::start().await;
    let service = TestService::start_with(ServiceOptions::new(Database::Sqlite).with_sessions()).await;
    service.takes_sessions().await;
    let caller = service.caller();
    let home = sites.home.put("/page", &text());
    let end = sites.foreign.put("/end/tab", &text());
    let hop = sites.home.redirect("/hop", 302, &sites.foreign.put("/end/hop", &text()));
    let scraped = scrape(caller, &json!({ "url": home, "headers": headers() })).await;
    let id = scraped["data"]["metadata"]["scrapeId"].as_str().unwrap();
    let code = format!("await page.goto('{hop}'); const tab = await context.newPage(); await tab.goto('{end}'); 7");
    let body = json!({ "code": code, "language": "node", "timeout": 60 });
    let done = caller.post(&format!("/v2/scrape/{id}/interact"), &body).await.ok();
    assert_eq!(done["result"], "7", "{done}");
    let faults: Vec<String> =
        [sites.fault("hop", "/end/hop"), sites.fault("tab", "/end/tab")].into_iter().flatten().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(sites.home.heads("/hop")[0].contains(SECRET));

    // A page of a crawl at a site that nobody named.
    let far = sites.foreign.put("/end/crawled", &text());
    let start = sites.home.put("/crawl", &format!("{}<a href='{far}'>far</a>", text()));
    let body = json!({ "url": start, "allowExternalLinks": true, "crawlEntireDomain": true, "ignoreRobotsTxt": true, "sitemap": "skip", "limit": 2,
        "scrapeOptions": { "headers": headers() } });
    let path = format!("/v2/crawl/{}", caller.post("/v2/crawl", &body).await.id());
    ended_at(caller, &path, BOUND).await;
    let documents = weir_tests::documents_at(caller, &path).await;
    let page = documents.iter().find(|d| d["metadata"]["sourceURL"] == far).unwrap();
    let id = page["metadata"]["scrapeId"].as_str().unwrap();
    let body = json!({ "code": "page.url()", "language": "node", "timeout": 60 });
    let done = caller.post(&format!("/v2/scrape/{id}/interact"), &body).await.ok();
    assert_eq!(done["result"], far, "{done}");
    assert_eq!(sites.fault("crawled", "/end/crawled"), None);
}

/// As browsers send the name and the password of [`signed`].
const BASIC: &str = "bWU6czNjcmV0";

/// An address with a name and a password.
fn signed(url: &str) -> String {
    url.replace("http://", &format!("http://me:{SECRET}@"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_and_a_password_in_an_address_are_for_its_origin_and_shown_to_nobody() {
    let (sites, hooks) = (Sites::start().await, FixtureSite::start().await);
    let options = ServiceOptions::new(Database::Sqlite).env("WEIR_PAGE_BROWSERS", "0").env("WEIR_CACHE_SIZE", "10MB");
    let service = TestService::start_with(options).await;
    let caller = service.caller();
    let Sites { home, foreign } = &sites;
    let far = foreign.put("/end/far", &text());
    home.redirect("/away", 302, &foreign.put("/end/away", &text()));
    home.put(
        "/start",
        &format!("{}<a href=/a>a</a> <a href=/away>b</a> <a href=/shut>c</a> <a href='{far}'>d</a>", text()),
    );
    home.put("/a", &text());
    let listed = home.put("/listed", &text());
    let list =
        format!("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>{listed}</loc></url></urlset>");
    let map = home.put_file("/map.xml", "application/xml", &list);
    home.put_file("/robots.txt", "text/plain", &format!("User-agent: *\nDisallow: /shut\nSitemap: {map}\n"));
    let own = ["/start", "/a", "/listed", "/map.xml", "/robots.txt"];
    for path in own {
        home.guard(path, BASIC);
    }
    // All that anybody is told.
    let mut told: Vec<String> = Vec::new();

    let hook = json!({ "url": hooks.webhook_url("told"), "events": ["page", "failed", "completed"] });
    let body = json!({ "url": signed(&home.url("/start")), "allowExternalLinks": true, "crawlEntireDomain": true,
        "limit": 20, "webhook": hook });
    let path = format!("/v2/crawl/{}", caller.post("/v2/crawl", &body).await.id());
    ended_at(caller, &path, BOUND).await;
    let documents = weir_tests::documents_at(caller, &path).await;
    let status = |url: &str| {
        let of = |document: &&Value| document["metadata"]["sourceURL"] == url;
        documents.iter().find(of).map(|document| document["metadata"]["statusCode"].clone())
    };
    for path in ["/start", "/a", "/listed"] {
        assert_eq!(status(&home.url(path)), Some(json!(200)), "{path}: {documents:?}");
    }
    assert_eq!(status(&far), Some(json!(200)));
    told.extend(documents.iter().map(Value::to_string));
    let errors = caller.get(&format!("{path}/errors")).await.ok();
    assert_eq!(errors["robotsBlocked"], json!([home.url("/shut")]), "robots.txt is read with them");

    // What they have led to is kept for nobody else.
    let stranger = service.new_team("stranger");
    let refused = scrape(&stranger, &json!({ "url": home.url("/a") })).await;
    assert_eq!(refused["data"]["metadata"]["statusCode"], 403, "{refused}");

    let map = caller.post("/v2/map", &json!({ "url": signed(&home.url("/start")) })).await.ok();
    let links: Vec<&str> = map["links"].as_array().unwrap().iter().filter_map(|link| link["url"].as_str()).collect();
    assert!(links.contains(&home.url("/a").as_str()) && links.contains(&listed.as_str()), "{map}");
    told.push(map.to_string());

    // A page that fails: nothing of it is kept.
    let body = json!({ "urls": [signed(&home.url("/dead"))], "minAge": 1, "webhook": hook });
    let id = caller.post("/v2/batch/scrape", &body).await.id();
    ended_at(caller, &format!("/v2/batch/scrape/{id}"), BOUND).await;
    let failed = weir_tests::errors_of(caller, &id).await;
    assert_eq!(failed[0]["url"], home.url("/dead"), "{failed:?}");
    wait_until("its receiver is told of it", || async {
        let told = hooks.deliveries("told").await;
        told.iter().any(|one| one.to_string().contains("/dead")).then_some(())
    })
    .await;
    told.extend(hooks.deliveries("told").await.iter().map(Value::to_string));

    // A monitor is shown without them, and what comes back as it was shown means them.
    let body = json!({ "name": "Watch", "schedule": { "cron": "0 0 1 1 *" },
        "targets": [{ "type": "scrape", "urls": [signed(&home.url("/a"))] }] });
    let monitor = caller.post("/v2/monitor", &body).await.ok()["data"].clone();
    assert_eq!(monitor["targets"][0]["urls"], json!([home.url("/a")]), "{monitor}");
    let path = format!("/v2/monitor/{}", monitor["id"].as_str().unwrap());
    let change = caller.request(reqwest::Method::PATCH, &path).json(&json!({ "targets": monitor["targets"] }));
    caller.send(change).await.ok();
    let run = caller.post(&format!("{path}/run"), &json!({})).await.ok();
    let check = format!("{path}/checks/{}", run["id"].as_str().unwrap());
    let check = wait_until("the check has ended", || async {
        let found = caller.get(&check).await.ok()["data"].clone();
        found["finishedAt"].is_string().then_some(found)
    })
    .await;
    let page = &check["pages"][0];
    assert_eq!((&page["url"], &page["statusCode"]), (&json!(home.url("/a")), &json!(200)), "{check}");
    told.push(check.to_string());
    for path in ["/v2/monitor", "/v2/team/activity"] {
        told.push(caller.get(path).await.ok().to_string());
    }

    for path in own {
        let heads = home.heads(path);
        assert_eq!(heads.iter().any(|head| !head.contains(BASIC)), path == "/a", "{path}: {heads:?}");
    }
    let leaks = foreign.all_heads().into_iter().filter(|head| head.contains(BASIC) || head.contains(SECRET));
    assert_eq!(leaks.collect::<Vec<_>>(), Vec::<String>::new());
    assert!(!foreign.heads("/end/away").is_empty() && !foreign.heads("/end/far").is_empty());
    told.push(service.logs());
    let leaks: Vec<&String> = told.iter().filter(|text| text.contains(SECRET)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_certificate_that_nobody_trusts_a_caller_sends_nothing_without_saying_so() {
    let site = FixtureSite::start_with(SiteOptions { tls: true, ..SiteOptions::default() }).await;
    let options = ServiceOptions::new(Database::Sqlite).with_sessions().env("WEIR_CACHE_SIZE", "10MB");
    let service = TestService::start_with(options).await;
    service.takes_sessions().await;
    let caller = service.caller();
    let url = site.tls_url("/headers");

    for wait in [0, 1] {
        // Without secrets of the caller any certificate is accepted, as by default.
        let plain =
            json!({ "url": url, "waitFor": wait, "formats": ["rawHtml"], "headers": { "User-Agent": "Mine/1" } });
        let answer = caller.post("/v2/scrape", &plain).await.ok();
        assert!(answer["data"]["rawHtml"].as_str().unwrap().contains("Mine/1"), "{answer}");

        let before = site.hit_count("/headers").await;
        for secret in
            [json!({ "headers": { "X-Own": SECRET } }), json!({ "headers": { "Cookie": format!("a={SECRET}") } })]
        {
            let mut body = json!({ "url": url, "waitFor": wait, "formats": ["rawHtml"] });
            body.as_object_mut().unwrap().extend(secret.as_object().unwrap().clone());
            let refused = caller.post("/v2/scrape", &body).await;
            assert_eq!((refused.status, refused.code()), (500, "SCRAPE_SSL_ERROR"), "{wait}: {}", refused.text);
            assert!(refused.text.contains("skipTlsVerification"), "{}", refused.text);
            assert_eq!(site.hit_count("/headers").await, before, "nothing was sent");
        }
        let consent = json!({ "url": url, "waitFor": wait, "formats": ["rawHtml"], "skipTlsVerification": true,
            "headers": { "X-Own": SECRET } });
        let answer = caller.post("/v2/scrape", &consent).await.ok();
        assert!(answer["data"]["rawHtml"].as_str().unwrap().contains(SECRET), "{answer}");

        // Who asks later is not answered with what may have come from anybody.
        let cached = json!({ "url": site.tls_url("/cache/page"), "waitFor": wait });
        for body in [cached.clone(), cached.clone()] {
            let answer = caller.post("/v2/scrape", &body).await.ok();
            assert_eq!(answer["data"]["metadata"]["cacheState"], "miss", "{answer}");
        }
    }

    // What the URL itself says of the caller is the caller's too.
    let named = site.tls_url("/basic").replace("https://", "https://alice:wonderland@");
    for wait in [0, 1] {
        let refused = caller.post("/v2/scrape", &json!({ "url": named, "waitFor": wait })).await;
        assert_eq!((refused.status, refused.code()), (500, "SCRAPE_SSL_ERROR"), "{}", refused.text);
    }

    let profile = json!({ "name": "mine", "saveChanges": false });
    let body = json!({ "url": url, "profile": profile });
    let refused = caller.post("/v2/scrape", &body).await;
    assert_eq!((refused.status, refused.code()), (500, "SCRAPE_SSL_ERROR"), "{}", refused.text);
    let body = json!({ "url": url, "profile": profile, "skipTlsVerification": true });
    caller.post("/v2/scrape", &body).await.ok();

    // A map has no option by which its caller could consent.
    let map = caller.post("/v2/map", &json!({ "url": site.tls_url("/"), "headers": { "X-Own": SECRET } })).await;
    assert_ne!(map.status, 200, "{}", map.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_not_sent_over_a_certificate_that_nobody_trusts() {
    let site = FixtureSite::start_with(SiteOptions { tls: true, ..SiteOptions::default() }).await;
    let service = TestService::start(Database::Sqlite).await;
    let hook = json!({ "url": site.tls_url("/webhook/far"), "headers": { "Authorization": SECRET } });
    let body = json!({ "urls": [site.url("/article/1")], "webhook": hook });
    service.post("/v2/batch/scrape", &body).await.id();
    wait_until("a delivery is given up", || async { service.logs().contains("\"dead\"").then_some(()) }).await;
    assert!(site.deliveries("far").await.is_empty());
}
