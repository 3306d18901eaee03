//! Actions on a page (wire 3.6): every kind, their order, their results, their errors; and the session that goes on
//! where they ended.

use base64::Engine as _;
use serde_json::{Value, json};
use weir_tests::{Database, FixtureSite, ServiceOptions, TestService, ended_at};

/// The bytes of a result that is a data URI of this type.
fn file_of(uri: &Value, mime: &str) -> Vec<u8> {
    let data = uri.as_str().and_then(|uri| uri.strip_prefix(&format!("data:{mime};base64,")));
    let data = data.unwrap_or_else(|| panic!("no {mime}"));
    base64::engine::general_purpose::STANDARD.decode(data).unwrap()
}

fn script(script: &str) -> Value {
    json!({ "type": "executeJavascript", "script": script })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actions_are_done_in_order_and_give_their_results() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let scrape = async |actions: Value| {
        let body = json!({ "url": site.url("/actions"), "formats": ["markdown", "rawHtml"], "actions": actions });
        service.post("/v2/scrape", &body).await.ok()["data"].clone()
    };

    // Typing, keys and clicks are those of a person; an element that comes late is waited for.
    let document = scrape(json!([
        { "type": "scrape" },
        { "type": "click", "selector": "#name" },
        { "type": "write", "text": "Ada Löve\n" },
        { "type": "click", "selector": "#go" },
        { "type": "wait", "selector": "#late" },
        { "type": "click", "selector": "button", "all": true },
        { "type": "click", "selector": "#keys" },
        { "type": "press", "key": "a" },
        { "type": "press", "key": "Shift+Tab" },
        { "type": "scroll", "direction": "down" },
        { "type": "scroll", "selector": "#bottom" },
        { "type": "wait", "milliseconds": 60 },
        { "type": "scrape" },
    ]))
    .await;
    let text = document["markdown"].as_str().unwrap();
    for words in ["Hello Ada Löve", "a Tab", "bottom reached"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let done = &document["actions"];
    assert_eq!(done["scrapes"].as_array().unwrap().len(), 2);
    let html = |n: usize| done["scrapes"][n]["html"].as_str().unwrap();
    assert_eq!(done["scrapes"][0]["url"], site.url("/actions"));
    assert!(!html(0).contains("Hello Ada") && html(1).contains("Hello Ada"), "in the order of execution");
    assert!(html(1).contains(r#"<span id="n">1</span>"#), "each button was clicked: {}", html(1));
    for empty in ["screenshots", "javascriptReturns", "pdfs"] {
        assert_eq!(done[empty], json!([]), "{empty}");
    }

    // Scripts: the last expression, `return`, promises, top-level await, what JSON does not have.
    let document = scrape(json!([
        script("const one = 1; one + 1"),
        script("return [document.title]"),
        script("const t = await Promise.resolve('late'); return t"),
        script("fetch('/small/1').then(answer => answer.status)"),
        script("window.kept = 5; undefined"),
        script("null"), script("() => 1"), script("kept"), script("10n"),
        script("document.querySelector('#out').textContent = 'by script'"),
        { "type": "screenshot" },
        { "type": "screenshot", "full_page": true, "quality": 40 },
        { "type": "screenshot", "viewport": { "width": 640, "height": 360 } },
        { "type": "pdf" },
        { "type": "pdf", "format": "A5", "landscape": true, "scale": 0.5 },
    ]))
    .await;
    let returns: Vec<(String, Value)> = document["actions"]["javascriptReturns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|said| (said["type"].as_str().unwrap().to_owned(), said["value"].clone()))
        .collect();
    let expected = [
        ("number", json!(2)),
        ("object", json!(["Actions"])),
        ("string", json!("late")),
        ("number", json!(200)),
        ("undefined", Value::Null),
        ("object", Value::Null),
        ("function", json!("() => 1")),
        ("number", json!(5)),
        ("bigint", json!("10")),
        ("string", json!("by script")),
    ];
    assert_eq!(returns, expected.map(|(kind, value)| (kind.to_owned(), value)));
    assert!(document["markdown"].as_str().unwrap().contains("by script"), "the document comes last");
    assert!(!document["rawHtml"].as_str().unwrap().contains("by script"), "as it was served");
    let size = |png: Vec<u8>| {
        (u32::from_be_bytes(png[16..20].try_into().unwrap()), u32::from_be_bytes(png[20..24].try_into().unwrap()))
    };
    let shots = document["actions"]["screenshots"].as_array().unwrap();
    assert_eq!(shots.len(), 3);
    let window = size(file_of(&shots[0], "image/png"));
    assert!(file_of(&shots[1], "image/jpeg").starts_with(&[0xff, 0xd8]));
    assert_eq!(size(file_of(&shots[2], "image/png")), (640, 360));
    assert_ne!(window, (640, 360));
    let pdfs = document["actions"]["pdfs"].as_array().unwrap();
    assert_eq!(pdfs.len(), 2);
    assert!(pdfs.iter().all(|pdf| file_of(pdf, "application/pdf").starts_with(b"%PDF-")));

    // A click that leads elsewhere: what follows is done on the page it led to.
    let body = json!({ "url": site.url("/actions"), "formats": ["markdown", "rawHtml"], "actions": [
        script(&format!("const a = document.createElement('a'); a.id = 'away'; a.href = '{}'; a.textContent = 'away'; \
            document.body.prepend(a); undefined", site.url("/js/timer/3?delay=300"))),
        { "type": "click", "selector": "#away" }, script("location.pathname"),
    ] });
    let document = service.post("/v2/scrape", &body).await.ok()["data"].clone();
    assert_eq!(document["actions"]["javascriptReturns"][1]["value"], "/js/timer/3");
    assert_eq!(document["metadata"]["url"], site.url("/js/timer/3?delay=300"));
    assert_eq!(site.truth("/js/timer/3?delay=300").await.fault_in(document["markdown"].as_str().unwrap()), None);
    let raw = document["rawHtml"].as_str().unwrap();
    assert!(
        raw.contains("<title>JS timer 3</title>") && raw.contains("Enable scripts"),
        "of that page, as it was served"
    );

    // Without actions there is no such field.
    let plain = service.post("/v2/scrape", &json!({ "url": site.url("/small/1") })).await.ok();
    assert!(plain["data"].get("actions").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_action_that_cannot_be_done_is_named_by_its_index() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let ok = json!({ "type": "wait", "milliseconds": 1 });
    let endless = [script("for (;;) {}"), json!({ "type": "wait", "selector": "#nowhere" })];
    for (action, words) in [
        (json!({ "type": "click", "selector": "#nowhere" }), "actions[1] (click) failed: no element matches"),
        (json!({ "type": "click", "selector": "p[" }), "actions[1] (click) failed: \"p[\" is not a valid selector"),
        (json!({ "type": "scroll", "selector": "#nowhere" }), "actions[1] (scroll) failed: no element matches"),
        (json!({ "type": "press", "key": "Nope" }), "actions[1] (press) failed: there is no key"),
        (script("throw new Error('mine')"), "actions[1] (executeJavascript) failed: it failed: mine"),
        // Not every database has this one in a text, and half a character is none.
        (
            script("throw new Error('a\\0b\\ud83d')"),
            "actions[1] (executeJavascript) failed: it failed: a\u{fffd}b\u{fffd}",
        ),
        (
            script("window.ran = (window.ran || 0) + 1; JSON.parse('{')"),
            "actions[1] (executeJavascript) failed: it failed",
        ),
        (
            script("let a = []; for (let n = 0; n < 100; n++) a = [a]; a"),
            "actions[1] (executeJavascript) failed: its value is nested more than 64 levels deep",
        ),
        (script("let = ;"), "actions[1] (executeJavascript) failed: it failed"),
        (script("'x'.repeat(2e6)"), "actions[1] (executeJavascript) failed: its value is larger"),
        (endless[0].clone(), "actions[1] (executeJavascript) failed: the script did not end in time"),
        (endless[1].clone(), "actions[1] (wait) failed: no element that matches"),
    ] {
        // What does not end by itself takes all the time that a page has for its actions.
        let timeout = if endless.contains(&action) { 12_000 } else { 60_000 };
        let body = json!({ "url": site.url("/actions"), "timeout": timeout, "actions": [ok, action] });
        let answer = service.post("/v2/scrape", &body).await;
        assert_eq!((answer.status, answer.code()), (500, "SCRAPE_ACTION_ERROR"), "{action}: {}", answer.text);
        assert!(answer.is_base_error() && answer.error().starts_with(words), "{action}: {}", answer.text);
    }
    // A file cannot be acted on, and a batch's page fails by itself.
    let file = json!({ "url": site.url("/files/data.json"), "actions": [ok] });
    let answer = service.post("/v2/scrape", &file).await;
    assert_eq!((answer.status, answer.code()), (400, "SCRAPE_ACTIONS_NOT_SUPPORTED"), "{}", answer.text);
    let batch = json!({ "urls": [site.url("/actions"), site.url("/small/1")],
        "actions": [{ "type": "click", "selector": "#count" }, { "type": "click", "selector": "#count" }, script("n.textContent")] });
    let id = service.post("/v2/batch/scrape", &batch).await.id();
    let ended = ended_at(service.caller(), &format!("/v2/batch/scrape/{id}"), std::time::Duration::from_secs(60)).await;
    assert_eq!(ended["data"].as_array().unwrap().len(), 1, "{ended}");
    assert_eq!(ended["data"][0]["actions"]["javascriptReturns"][0]["value"], "2", "{ended}");
    let errors = service.get(&format!("/v2/batch/scrape/{id}/errors")).await.ok();
    assert_eq!(errors["errors"][0]["code"], "SCRAPE_ACTION_ERROR", "{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_goes_on_after_the_actions_of_its_scrape() {
    let site = FixtureSite::start().await;
    let service = TestService::start_with(ServiceOptions::new(Database::Sqlite).with_sessions()).await;
    service.takes_sessions().await;
    let body = json!({ "url": site.url("/actions"), "actions": [
        { "type": "click", "selector": "#name" }, { "type": "write", "text": "Grace" },
        { "type": "click", "selector": "#go" }, { "type": "wait", "selector": "#late" },
        { "type": "screenshot" }, { "type": "scrape" },
        script("window.kept = { by: 'script' }; localStorage.setItem('mark', 'set'); 1"),
    ] });
    let document = service.post("/v2/scrape", &body).await.ok()["data"].clone();
    assert!(document["markdown"].as_str().unwrap().contains("Hello Grace"));
    let path = format!("/v2/scrape/{}/interact", document["metadata"]["scrapeId"].as_str().unwrap());
    let look = "JSON.stringify(await page.evaluate(() => \
        [document.querySelector('#late')?.textContent, window.kept?.by, localStorage.mark, document.hasFocus()]))";
    let seen = service.post(&path, &json!({ "code": look, "timeout": 60 })).await.ok();
    // Scripts are the scrape's alone: who continues it does not run them again (wire 8.4).
    assert!(seen["result"].as_str().unwrap_or_default().starts_with(r#"["Hello Grace",null,null"#), "{seen}");
    service.delete(&path).await.ok();

    // Where only a script has led somewhere, the page is opened where the scrape ended.
    let led = json!({ "url": site.url("/article/3"), "actions": [
        script("location.href = '/article/7'; 1"), { "type": "wait", "selector": "h1" }, { "type": "wait", "milliseconds": 500 }] });
    let document = service.post("/v2/scrape", &led).await.ok()["data"].clone();
    assert!(document["metadata"]["url"].as_str().unwrap().ends_with("/article/7"), "{document}");
    let path = format!("/v2/scrape/{}/interact", document["metadata"]["scrapeId"].as_str().unwrap());
    let seen = service.post(&path, &json!({ "code": "page.url()", "timeout": 60 })).await.ok();
    assert!(seen["result"].as_str().unwrap_or_default().ends_with("/article/7"), "{seen}");
    service.delete(&path).await.ok();
}
