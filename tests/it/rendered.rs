//! Pages that end otherwise than with a load event, or lead to something that is no page: what is answered is what a reader
//! would have before them, and soon.

use futures_util::future::join_all;
use serde_json::{Value, json};
use weir_tests::{Database, FixtureSite, OwnPages, TestService, wait_until};

const WORDS: &str =
    "<h1>Stays</h1><p>The words of an article that stays where it is, whatever its scripts lead to.</p>";

/// Scrapes all at once, in a browser.
async fn scrape_all(service: &TestService, pages: &[(String, Value)]) -> Vec<(u16, Value)> {
    join_all(pages.iter().map(async |(url, options)| {
        let mut body = json!({ "url": url, "timeout": 25_000, "waitFor": 1 });
        body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        let answer = service.post("/v2/scrape", &body).await;
        (answer.status, answer.body)
    }))
    .await
}

/// Every one of them must have all words.
async fn all_say(service: &TestService, pages: &[(String, Value, &str)]) {
    let asked: Vec<_> = pages.iter().map(|(url, options, _)| (url.clone(), options.clone())).collect();
    let answers = scrape_all(service, &asked).await;
    let wrong: Vec<String> = pages
        .iter()
        .zip(answers)
        .filter(|((_, _, words), (_, body))| !body["data"]["markdown"].as_str().unwrap_or_default().contains(words))
        .map(|((url, ..), (status, body))| format!("{url}: {status} {body:.400}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_answered_as_it_stands_whatever_hinders_its_end() {
    let pages = OwnPages::start().await;
    let service = TestService::start(Database::Sqlite).await;
    pages.put_file("/file.bin", "application/octet-stream", "\0\x01");
    pages.put_with("/nothing", 204, "");
    // Nobody ever answers it.
    let hung = pages.hold("/hung.js");
    let plain = json!({});
    let mut asked: Vec<(String, Value, &str)> = [
        ("/app", "location.href = 'myapp://open'"),
        ("/app-later", "setTimeout(() => location.href = 'myapp://open', 300)"),
        ("/app-loaded", "onload = () => location.href = 'intent://x#Intent;scheme=a;end'"),
        ("/mail", "location.href = 'mailto:a@b.test'"),
        ("/download", "onload = () => location.href = '/file.bin'"),
        ("/nowhere", "onload = () => location.href = '/nothing'"),
        ("/stopped", "window.stop()"),
        ("/closed", "setTimeout(() => close(), 50)"),
        ("/no-promise", "Promise = null"),
        ("/half-a-character", "document.title = '\\ud83d'; document.querySelector('p').append('\\ude00')"),
        ("/no-entries", "performance.getEntriesByType = undefined"),
    ]
    .map(|(path, script)| (pages.put(path, &format!("{WORDS}<script>{script}</script>")), plain.clone(), "stays where"))
    .into();
    for (path, named) in
        [("/named-query", "querySelector"), ("/named-root", "documentElement"), ("/named-kind", "contentType")]
    {
        asked.push((
            pages.put(path, &format!("{WORDS}<img name={named}><form name={named}></form>")),
            plain.clone(),
            "stays where",
        ));
    }
    all_say(&service, &asked).await;

    // Of a document that its site allows no scripts nothing can be waited for.
    let sandbox = "content-security-policy: default-src 'none'; sandbox\r\n";
    let (readme, data) = (
        pages.put_file("/readme", "text/plain", "# plain words"),
        pages.put_file("/data", "application/json", "{\"a\":1}"),
    );
    let article = pages.put("/article", WORDS);
    for path in ["/readme", "/data", "/article"] {
        pages.add_headers(path, sandbox);
    }
    let act = json!({ "actions": [{ "type": "click", "selector": "h1" }, { "type": "scrape" }] });
    let shown = json!({ "formats": ["markdown", "screenshot"] });
    // The whole time of a page is waited for here, most of it beside few others.
    let parsing = pages.put("/parsing", &format!("{WORDS}<script src=/hung.js></script>"));
    let short = json!({ "timeout": 16_000 });
    all_say(
        &service,
        &[
            (parsing, short, "stays where"),
            (readme, plain.clone(), "plain words"),
            (data, plain.clone(), "\"a\""),
            (article.clone(), plain, "stays where"),
            (article.clone(), shown, "stays where"),
            (article, act, "stays where"),
        ],
    )
    .await;

    // One whose connection was cut is none.
    let cut = pages.put("/cut", WORDS);
    pages.cut("/cut");
    let answer = service.post("/v2/scrape", &json!({ "url": cut, "waitFor": 1 })).await;
    assert_eq!(answer.code(), "SCRAPE_SITE_ERROR", "{}", answer.text);
    hung.open();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_script_leads_to_is_followed_and_read_as_what_it_is() {
    let pages = OwnPages::start().await;
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let end = "<h1>Arrived</h1><p>This is where the form of the page before has led its reader.</p>";
    pages.put("/end?a=b", end);
    pages.put("/end", end);
    // Nothing is waited for beyond the page's rest.
    let shown = json!({ "waitFor": 0, "formats": ["markdown", "screenshot"] });
    let form = "<input type=hidden name=a value=b>";
    let mut asked: Vec<(String, Value, &str)> = [
        ("/sent", format!("<body onload='document.forms[0].submit()'><form action=/end>{form}</form>")),
        ("/posted", format!("<body onload='document.forms[0].submit()'>Please wait<form method=post action=/end>{form}</form>")),
        ("/clicked", format!("<body onload='b.click()'>Please wait<form method=post action=/end>{form}<button id=b>Go</button></form>")),
        ("/asked", format!("<body><form action=/end>{form}</form><script>onload = () => document.forms[0].requestSubmit()</script>")),
    ]
    .map(|(path, body)| (pages.put_with(path, 200, &format!("<!DOCTYPE html><title>Bounce</title>{body}")), shown.clone(), "Arrived"))
    .into();

    pages.put_file("/data.json", "application/json", "{\"of\": \"json\"}");
    pages.put_file("/feed", "application/rss+xml", "<rss><channel><title>Of a feed</title></channel></rss>");
    pages.put_file("/table.csv", "text/csv", "of,a table\n1,2");
    pages.put_file("/shut.csv", "text/csv", "behind,the gate\n1,2");
    pages.guard("/shut.csv", "gate=open");
    let leads = |from: &str, to: &str, before: &str| {
        let script = format!("<script>{before}; location = '{to}'</script>");
        pages.put_with(from, 200, &format!("<html><body>{script}</body></html>"))
    };
    let plain = json!({});
    for (from, to, words) in [
        ("/to-json", "/data.json", "json"),
        ("/to-feed", "/feed", "Of a feed"),
        ("/to-table", "/table.csv", "a table"),
        ("/to-shut", "/shut.csv", "the gate"),
    ] {
        asked.push((leads(from, to, "document.cookie = 'gate=open'"), plain.clone(), words));
    }
    asked.push((leads("/to-pdf", &site.url("/files/report.pdf"), ""), plain.clone(), "Page 3"));
    asked.push((site.url("/files/pdf-as-html"), plain, "Page 3"));
    all_say(&service, &asked).await;
    let cookies = site.hits("/files/report.pdf").await;
    assert!(!format!("{cookies:?}").contains("gate=open"), "cookies of one origin go to no other: {cookies:?}");

    // A file that a form was sent for is asked for by nobody else.
    pages.put_file("/sent.json", "application/json", "{}");
    let sends = format!("<body onload='document.forms[0].submit()'><form method=post action=/sent.json>{form}</form>");
    let sends = pages.put_with("/to-sent", 200, &format!("<!DOCTYPE html><title>Bounce</title>{sends}"));
    let answer = service.post("/v2/scrape", &json!({ "url": sends, "waitFor": 1 })).await;
    assert_eq!(answer.code(), "SCRAPE_UNSUPPORTED_FILE_ERROR", "{}", answer.text);
    assert_eq!(pages.heads("/sent.json").len(), 1, "it is not asked for again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actions_have_their_effect_once_and_where_a_person_would_have_it() {
    let pages = OwnPages::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let value = |script: &str| json!({ "type": "executeJavascript", "script": script });
    let click = |selector: &str| json!({ "type": "click", "selector": selector });
    let scrape = async |url: &str, actions: Value| {
        let body = json!({ "url": url, "timeout": 25_000, "actions": actions });
        service.post("/v2/scrape", &body).await
    };

    // Keys go to what was clicked, under a banner too. An app's link leads nowhere, which is known at once.
    let covered = pages.put(
        "/covered",
        &format!(
            "{WORDS}<label for=in id=l>Name</label><input id=in><p><input id=two><span id=s>no field</span></p>\
             <a id=app href='myapp://open' onclick='at = performance.now()'>app</a>\
             <div style='position:fixed;inset:0;background:#0008'></div>"
        ),
    );
    let write = |text: &str| json!({ "type": "write", "text": text });
    let done = scrape(
        &covered,
        json!([
            click("#in"),
            write("one "),
            click("#two"),
            write("two"),
            click("#l"),
            write("more"),
            value("document.querySelector('#in').value + '|' + two.value"),
            click("#app"),
            value("performance.now() - at"),
        ]),
    )
    .await
    .ok();
    let returns = &done["data"]["actions"]["javascriptReturns"];
    assert_eq!(returns[0]["value"], "one more|two", "{returns}");
    assert!(returns[1]["value"].as_f64().is_some_and(|ms| ms < 4_000.0), "{returns}");

    // What an action led to and is cut off is answered as far as it came, and not waited for.
    let form = pages.put("/order", &format!("{WORDS}<form action=/cut method=post><button id=f>Send</button></form>"));
    pages.put("/cut", WORDS);
    pages.cut("/cut");
    let done = scrape(&form, json!([click("#f")])).await.ok();
    assert_eq!(done["data"]["metadata"]["url"], pages.url("/cut"), "{done}");

    // A site that hangs up is told from a page that says so, and is asked once.
    let silent = pages.hang_up("/silent");
    for options in
        [json!({ "actions": [click("p")] }), json!({ "formats": ["screenshot"] }), json!({ "formats": ["branding"] })]
    {
        let before = pages.heads("/silent").len();
        let mut body = options.clone();
        body["url"] = json!(silent);
        let answer = service.post("/v2/scrape", &body).await;
        assert_eq!(answer.code(), "SCRAPE_SITE_ERROR", "{options}: {}", answer.text);
        assert_eq!(pages.heads("/silent").len() - before, 1, "{options}");
    }

    // A browser that is lost after an action: the action may have had its effect.
    let shop = pages.put("/shop", &format!("{WORDS}<button id=b onclick=\"fetch('/bought')\">Buy</button>"));
    let hung = pages.hold("/bought");
    let buys = json!([click("#b"), { "type": "wait", "milliseconds": 20_000 }]);
    let lose = async {
        wait_until("the purchase", async || (!pages.heads("/bought").is_empty()).then_some(())).await;
        for browser in service.browsers() {
            browser.kill();
        }
    };
    let (answer, ()) = tokio::join!(scrape(&shop, buys), lose);
    assert_eq!(answer.code(), "SCRAPE_ALL_ENGINES_FAILED", "{}", answer.text);
    assert_eq!(pages.heads("/bought").len(), 1);
    hung.open();
}
