//! How pages and sessions go out and appear, in real browsers: without the hosts of ads, by the operator's proxies, from
//! every country (spec 2.5, 4.1, 4.7; wire 3.2, 8.1, 8.4).

use serde_json::{Value, json};
use weir_tests::{
    Caller, Database, ForwardProxy, OwnPages, ServiceOptions, TestService, first_on, free_port, long_tests, wait_until,
};

/// Names of this machine: one of the list of ads that Weir brings along, one of a list of the test's, and two others.
const NAMES: &str = "ads.doubleclick.net=127.0.0.1,ads.own.test=127.0.0.1,site.test=127.0.0.1,other.test=127.0.0.1";

async fn service(options: ServiceOptions) -> TestService {
    let service = TestService::start_with(options.with_sessions().env("WEIR_ALLOW_HOSTS", NAMES)).await;
    service.takes_sessions().await;
    service
}

/// A session's answer, and its address.
async fn create(caller: &Caller, body: &Value) -> (Value, String) {
    let session = caller.post("/v2/browser", body).await.ok();
    let path = format!("/v2/browser/{}", session["id"].as_str().unwrap());
    (session, path)
}

async fn execute(caller: &Caller, path: &str, language: &str, code: &str) -> Value {
    caller.post(path, &json!({ "code": code, "language": language, "timeout": 60 })).await.ok()
}

/// Runs code that must end well, and returns its result.
async fn run(caller: &Caller, path: &str, language: &str, code: &str) -> String {
    let done = execute(caller, path, language, code).await;
    assert_eq!(done["exitCode"], 0, "{code}\n{done}");
    done["result"].as_str().unwrap_or_default().trim().to_owned()
}

async fn scrape(caller: &Caller, url: &str, more: Value) -> Value {
    let mut body = json!({ "url": url, "maxAge": 0 });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    caller.post("/v2/scrape", &body).await.ok()["data"].clone()
}

fn interact_of(document: &Value) -> String {
    format!("/v2/scrape/{}/interact", document["metadata"]["scrapeId"].as_str().unwrap())
}

/// The proxy that the last request for a path came through, or "".
fn via(pages: &OwnPages, path: &str) -> String {
    let head = pages.heads(path).pop().unwrap_or_else(|| panic!("{path} was not asked for"));
    head.lines().find_map(|line| line.strip_prefix("x-via: ")).unwrap_or_default().to_owned()
}

/// A page with a script of an ad host, one of a host that only the test's list has, and one of another host.
fn page_with_ads(pages: &OwnPages, path: &str) -> String {
    let script = |host: &str, name: &str| {
        pages.put_file(name, "text/javascript", "1");
        format!("<script src=\"{}\"></script>", pages.url_at(host, name))
    };
    let scripts = [
        script("ads.doubleclick.net", &format!("{path}/ad.js")),
        script("ads.own.test", &format!("{path}/own.js")),
        script("other.test", &format!("{path}/other.js")),
    ];
    pages.put(
        path,
        &format!("<main><h1>Ads</h1><p>There is more to this page than its words.</p></main>{}", scripts.concat()),
    );
    pages.url_at("site.test", path)
}

/// How often the page's three scripts have been asked for: of the ad host, of the test's own, of the other one.
fn asked(pages: &OwnPages, path: &str) -> [usize; 3] {
    ["ad.js", "own.js", "other.js"].map(|name| pages.heads(&format!("{path}/{name}")).len())
}

const APPEARANCE: &str = "JSON.stringify(await page.evaluate(async () => [navigator.language, \
    Intl.DateTimeFormat().resolvedOptions().timeZone, await new Promise(done => \
    navigator.geolocation.getCurrentPosition(p => done(Math.round(p.coords.latitude)), e => done(e.message)))]))";

first_on! {
    postgres:

    async fn what_goes_on_from_a_scrape_follows_its_ads_its_proxies_and_its_place(database) {
        let (us, de) = (ForwardProxy::start("basic-us").await, ForwardProxy::start("basic-de").await);
        let enhanced = ForwardProxy::start("enhanced").await;
        let options = ServiceOptions::new(database);
        let options = options.env("WEIR_PROXY_BASIC", format!("us={},de={}", us.url, de.url));
        let service = service(options.env("WEIR_PROXY_ENHANCED", &enhanced.url)).await;
        let (caller, pages) = (service.caller(), OwnPages::start().await);
        page_with_ads(&pages, "/scraped");
        let url = pages.url("/scraped");
        let shy = pages.put("/shy", "<main><h1>Shy</h1><p>Only some may read this page.</p></main>");
        pages.guard("/shy", "x-via: enhanced");

        for (url, more, through, language, ads) in [
            (&url, json!({}), "basic-us", "en-US", 0),
            (&url, json!({"blockAds": false}), "basic-us", "en-US", 1),
            (&url, json!({"location": {"country": "DE"}, "proxy": "basic"}), "basic-de", "de-DE", 0),
            (&url, json!({"proxy": "enhanced", "location": {"country": "DE", "languages": ["fr"]}}), "enhanced", "fr", 0),
            // The site has refused the basic one.
            (&shy, json!({"proxy": "auto"}), "enhanced", "en-US", 0),
        ] {
            let document = scrape(caller, url, more.clone()).await;
            let page = if *url == shy { "/shy" } else { "/scraped" };
            let (before, had) = (pages.heads(page).len(), asked(&pages, "/scraped"));
            let path = interact_of(&document);
            let shown = execute(caller, &path, "node", APPEARANCE).await;
            assert!(shown["result"].as_str().is_some_and(|text| text.starts_with(&format!("[\"{language}\""))), "{more} {shown}");
            assert_eq!((pages.heads(page).len() - before, via(&pages, page).as_str()), (1, through), "{more}");
            if page == "/scraped" {
                assert_eq!(asked(&pages, "/scraped")[0] - had[0], ads, "{more}");
            }
            // Every tab and all code go the same way.
            pages.put("/later", "<p>later</p>");
            let later = pages.url_at("site.test", "/later");
            run(caller, &path, "node", &format!("await page.goto('{later}'); 1")).await;
            assert_eq!(via(&pages, "/later"), through, "{more}");
            run(caller, &path, "python", &format!("import urllib.request; urllib.request.urlopen('{later}').status")).await;
            assert_eq!((via(&pages, "/later").as_str(), pages.heads("/later").len() % 2), (through, 0), "{more}");
            caller.delete(&path).await.ok();
        }
        // What may not be reached may not be reached through a proxy either.
        let (_, path) = create(caller, &json!({})).await;
        let inner = "(await page.goto('http://10.0.0.1/')).status()";
        assert_eq!(run(caller, &format!("{path}/execute"), "node", inner).await, "403");
        assert!(us.seen().iter().all(|line| !line.contains("10.0.0.1")));
        caller.delete(&path).await.ok();
    }
}

first_on! {
    sqlite:

    async fn a_session_meets_no_ads_unless_it_asks_for_them_and_appears_where_it_wants(database) {
        let service = service(ServiceOptions::new(database).env("WEIR_WARM_BROWSERS", "1")).await;
        let (caller, pages) = (service.caller(), OwnPages::start().await);
        let url = page_with_ads(&pages, "/session");
        let visit = format!("await page.goto('{url}'); await page.textContent('h1')");

        // One browser waits started; another one has to be started.
        wait_until("a browser waits", || async {
            (service.worker_figure(0, "weir_sessions_warm ").await == 1).then_some(())
        })
        .await;
        let (plain, path) = create(caller, &json!({ "ttl": 120 })).await;
        let (second, other) = create(caller, &json!({ "blockAds": true, "location": { "country": "JP" } })).await;
        assert_eq!((plain.get("warning"), second.get("warning")), (None, None), "{plain} {second}");
        assert_eq!(run(caller, &format!("{path}/execute"), "node", &visit).await, "Ads");
        assert_eq!(asked(&pages, "/session"), [0, 1, 1]);
        let shown = run(caller, &format!("{path}/execute"), "node", APPEARANCE).await;
        assert!(shown.starts_with("[\"en-US\""), "{shown}");
        assert_eq!(run(caller, &format!("{other}/execute"), "node", &visit).await, "Ads");
        assert_eq!(asked(&pages, "/session"), [0, 2, 2]);
        // From its first tab on, in each, for every client.
        let tab = "const tab = await context.newPage(); await tab.evaluate(() => navigator.language)";
        assert_eq!(run(caller, &format!("{other}/execute"), "node", tab).await, "ja-JP");
        let path_of = |address: &str| format!("{address}/execute");
        // Where a position may be asked for: on this machine's own address, as with TLS.
        let trusted = format!("await page.goto('{}'); {APPEARANCE}", pages.url("/session"));
        let shown = run(caller, &path_of(&other), "node", &trusted).await;
        assert_eq!(shown, "[\"ja-JP\",\"Asia/Tokyo\",36]");
        // Code asks for what its author wants.
        let before = asked(&pages, "/session");
        let fetch = format!("import urllib.request; urllib.request.urlopen('{}').status",
            pages.url_at("ads.doubleclick.net", "/session/ad.js"));
        assert_eq!(run(caller, &path_of(&path), "python", &fetch).await, "200");
        assert_eq!((before[0], asked(&pages, "/session")[0]), (0, 1));

        let (_, open) = create(caller, &json!({ "blockAds": false })).await;
        assert_eq!(run(caller, &path_of(&open), "node", &visit).await, "Ads");
        assert_eq!(asked(&pages, "/session")[0], 2);
        for path in [path, other, open] {
            caller.delete(&path).await.ok();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_keeps_its_proxy_and_is_never_without_it() {
    let (us, de) = (ForwardProxy::start("us").await, ForwardProxy::start("de").await);
    let dead = || format!("http://127.0.0.1:{}", free_port());
    let options = ServiceOptions::new(Database::Sqlite);
    let options = options.env("WEIR_PROXY_BASIC", format!("us={},de={},fr={}", us.url, de.url, dead()));
    let service = service(options).await;
    let (caller, pages) = (service.caller(), OwnPages::start().await);
    let url = pages.put("/page", "<h1>Here</h1>");
    let visit = format!("const got = await page.goto('{url}'); got.status()");

    let (plain, path) = create(caller, &json!({})).await;
    assert!(plain.get("warning").is_none(), "{plain}");
    let execute_path = format!("{path}/execute");
    for _ in 0..3 {
        run(caller, &execute_path, "node", &visit.replace("const got", "var got")).await;
        assert_eq!(via(&pages, "/page"), "us", "the default country's, each time");
    }
    let (abroad, other) = create(caller, &json!({ "location": { "country": "DE" } })).await;
    assert!(abroad.get("warning").is_none(), "{abroad}");
    run(caller, &format!("{other}/execute"), "node", &visit).await;
    assert_eq!(via(&pages, "/page"), "de");
    caller.delete(&other).await.ok();
    // The country's proxy is dead: another one, and a word about it, at each call that can have one.
    let (elsewhere, other) = create(caller, &json!({ "location": { "country": "FR" }, "colour": 1 })).await;
    let warning = elsewhere["warning"].as_str().unwrap();
    assert!(warning.contains("colour") && warning.contains("No proxy in the asked country"), "{warning}");
    run(caller, &format!("{other}/execute"), "node", &visit).await;
    assert_ne!(via(&pages, "/page"), "");
    caller.delete(&other).await.ok();

    let document = scrape(caller, &url, json!({ "location": { "country": "FR" }, "proxy": "enhanced" })).await;
    let continued = execute(caller, &interact_of(&document), "node", "1").await;
    assert!(continued["warning"].as_str().unwrap().contains("WEIR_PROXY_ENHANCED"), "{continued}");
    caller.delete(&interact_of(&document)).await.ok();

    // The proxy dies: what was open goes nowhere and says why, and nothing is asked for directly.
    let scraped = interact_of(&scrape(caller, &url, json!({})).await);
    drop((us, de));
    let asked = pages.all_heads().len();
    let plain = format!("await page.goto('{url}'); await page.textContent('body')");
    let shown = run(caller, &execute_path, "node", &plain).await;
    assert_eq!(shown.lines().next(), Some("The proxy cannot be reached."), "{shown}");
    let failed = execute(caller, &execute_path, "node", "await page.goto('https://site.test:8443/')").await;
    let said = failed["error"].as_str().unwrap();
    assert!(said.contains("ERR_") && said.ends_with("never goes past it."), "{failed}");
    let own_error =
        execute(caller, &execute_path, "python", "import urllib.request; urllib.request.urlopen('http://site.test/')")
            .await;
    assert!(own_error["error"].as_str().unwrap().ends_with("never goes past it."), "{own_error}");
    for (path, body) in [("/v2/browser", json!({})), (&scraped, json!({ "code": "1" }))] {
        let refused = caller.post(path, &body).await;
        assert_eq!((refused.status, refused.headers.get("retry-after").is_some()), (503, true), "{}", refused.text);
        assert!(
            refused.is_base_error() && refused.error().starts_with("The proxies that this session"),
            "{}",
            refused.text
        );
        assert!(!refused.text.contains("127.0.0.1"), "{}", refused.text);
    }
    assert_eq!(pages.all_heads().len(), asked, "nothing is asked for past the configured proxies");
    caller.delete(&path).await.ok();
    let used = service.cli_json(&["credits", "show", "--team", "tests", "--json"])["used"].as_i64().unwrap();
    // Two scrapes, and four sessions of two credits: those that did not open cost nothing.
    assert_eq!(used, 2 + 4 * 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_s_list_of_ad_hosts_holds_for_pages_profiles_and_sessions() {
    let list = std::env::temp_dir().join(format!("weir-ads-{}.txt", free_port()));
    std::fs::write(&list, "! a list\n||own.test^$third-party\n/banner/*\n/sponsors/*$image\nshop.test##.ad\n").unwrap();
    let options = ServiceOptions::new(Database::Sqlite);
    let service = service(options.env("WEIR_AD_LISTS", list.display().to_string())).await;
    let (caller, pages) = (service.caller(), OwnPages::start().await);

    for (path, more) in [
        ("/pooled", json!({ "waitFor": 1 })),
        ("/in-profile", json!({ "waitFor": 1, "profile": { "name": "p", "saveChanges": false } })),
    ] {
        let url = page_with_ads(&pages, path);
        scrape(caller, &url, more.clone()).await;
        assert_eq!(asked(&pages, path), [1, 0, 1], "the test's list stands instead of the own one: {more}");
        let mut open = more.clone();
        open["blockAds"] = json!(false);
        scrape(caller, &url, open).await;
        assert_eq!(asked(&pages, path), [2, 1, 2], "{more}");
        // A page that lies behind such a host is reached all the same, and so is one on it.
        let counter = pages.redirect(&format!("{path}/click"), 302, &url);
        let counter = counter.replace("127.0.0.1", "ads.own.test");
        let hop = pages.redirect(&format!("{path}/hop"), 302, &counter).replace("127.0.0.1", "other.test");
        for address in [counter, hop] {
            let document = scrape(caller, &address, more.clone()).await;
            assert!(document["markdown"].as_str().unwrap().contains("There is more"), "{address}: {document}");
            let path = interact_of(&document);
            assert_eq!(run(caller, &path, "node", "await page.textContent('h1')").await, "Ads", "{address}");
            caller.delete(&path).await.ok();
        }
    }
    let url = page_with_ads(&pages, "/session");
    let (_, path) = create(caller, &json!({})).await;
    run(caller, &format!("{path}/execute"), "node", &format!("await page.goto('{url}'); 1")).await;
    assert_eq!(asked(&pages, "/session"), [1, 0, 1]);
    let blocked = format!("await page.goto('{}'); await page.textContent('body')", pages.url_at("own.test", "/"));
    let text = run(caller, &format!("{path}/execute"), "node", &blocked).await;
    assert_eq!(text.lines().next(), Some("This host is on the list of ads and trackers (blockAds)."), "{text}");
    caller.delete(&path).await.ok();

    // Rules about addresses and kinds hold for what a page asks for, and not for the page that the caller asks for.
    for path in ["/banner/1.js", "/banner/frame", "/sponsors/film"] {
        pages.put(path, "<main><h1>In a banner</h1><p>Here is something to be read.</p></main>");
    }
    let url = pages.put(
        "/rules",
        "<main><h1>Rules</h1><p>A page of some words.</p></main><script src='/banner/1.js'></script><iframe src='/banner/frame'>\
         </iframe><script>fetch('/sponsors/film')</script>",
    );
    for (open, hits) in [(false, 0), (true, 1)] {
        scrape(caller, &url, json!({ "waitFor": 300, "blockAds": !open })).await;
        for path in ["/banner/1.js", "/banner/frame"] {
            assert_eq!(pages.heads(path).len(), hits, "{path}, {open}");
        }
        assert_eq!(pages.heads("/sponsors/film").len(), hits + 1, "of no rule for this kind");
    }
    let document = scrape(caller, &pages.url("/banner/frame"), json!({ "waitFor": 1 })).await;
    assert!(document["markdown"].as_str().unwrap().contains("In a banner"), "{document}");

    // A worker does not start with a list that it cannot use.
    std::fs::write(&list, "<html>not a list</html>\n").unwrap();
    for value in [list.display().to_string(), "/no/such/list.txt".to_owned()] {
        let output = service.command("weir-worker").env("WEIR_AD_LISTS", &value).output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success() && text.contains(&format!("WEIR_AD_LISTS: {value}")), "{text}");
    }
    std::fs::remove_file(&list).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_country_has_a_time_zone_that_the_browser_takes_and_a_language() {
    let service = TestService::start_with(ServiceOptions::new(Database::Sqlite)).await;
    let (caller, pages) = (service.caller(), OwnPages::start().await);
    let url = pages.put(
        "/place",
        "<main><p id=p></p></main><script>document.getElementById('p').textContent = \
         [navigator.language, Intl.DateTimeFormat().resolvedOptions().timeZone].join(' ')</script>",
    );
    let codes: Vec<&str> = weir_shared::domain::location::countries().collect();
    assert_eq!(codes.len(), 249);
    // Each asks the browser once: all of them in the long tests, and elsewhere some, from all over the list.
    let codes: Vec<&str> = codes.into_iter().step_by(if long_tests() { 1 } else { 7 }).collect();
    let mut zones = Vec::new();
    for some in codes.chunks(8) {
        let pages = some.iter().map(|code| scrape(caller, &url, json!({"waitFor": 1, "location": {"country": code}})));
        for (code, document) in some.iter().zip(futures_util::future::join_all(pages).await) {
            let text = document["markdown"].as_str().unwrap().trim().replace("\\_", "_");
            let (language, zone) = text.split_once(' ').unwrap_or_else(|| panic!("{code}: {document}"));
            assert!(language.len() > 3 && language.ends_with(&format!("-{code}")), "{code}: {language}");
            let given = document["metadata"]["timezone"].as_str().unwrap_or_else(|| panic!("{code}: {document}"));
            assert_ne!(zone, "UTC", "{code}: {given} was not taken");
            zones.push(json!([code, given, zone]));
        }
    }
    // The browser names some zones otherwise (Asia/Calcutta): they must be the same all the year.
    let same = format!(
        "{}.filter(([, given, shown]) => {{ const at = (zone, month) => new Intl.DateTimeFormat('en', \
         {{ timeZone: zone, dateStyle: 'full', timeStyle: 'long' }}).format(Date.UTC(2026, month, 1)); \
         return [0, 3, 6, 9].some(month => at(given, month) !== at(shown, month)); }})",
        Value::from(zones)
    );
    let actions = json!([{ "type": "executeJavascript", "script": same }]);
    let judged = scrape(caller, &url, json!({ "actions": actions })).await;
    assert_eq!(judged["actions"]["javascriptReturns"][0]["value"], json!([]), "{judged}");

    for country in ["UK", "EU", "ZZ", "Germany", ""] {
        for (path, body) in [
            ("/v2/scrape", json!({ "url": url, "location": { "country": country } })),
            ("/v2/browser", json!({ "location": { "country": country } })),
        ] {
            let refused = caller.post(path, &body).await;
            assert_eq!(refused.status, 400, "{path} {country}: {}", refused.text);
            assert!(refused.text.contains("ISO 3166-1"), "{}", refused.text);
        }
    }
}
