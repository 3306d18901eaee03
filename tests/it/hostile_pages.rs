//! Pages that are made to harm take nothing from others, and their callers are told what happened.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use weir_tests::{Database, OwnPages, TestService, markdown_of, wait_until, wait_until_within};

/// A page that a browser has to show.
fn scripted(pages: &OwnPages, path: &str, script: &str) -> String {
    pages.put(path, &format!("<div id=root></div><script>{script}</script>"))
}

/// The browsers that render pages, without those for sessions.
fn pool(service: &TestService) -> Vec<u32> {
    let browsers = service.browsers().into_iter();
    browsers.filter(|browser| browser.command.contains("imagesEnabled=false")).map(|browser| browser.id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_takes_too_much_memory_fails_alone() {
    let pages = OwnPages::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let grows = "const all = []; setInterval(() => { for (let n = 0; n < 4; n++) {\
        const part = new Uint8Array(16 << 20); for (let at = 0; at < part.length; at += 4096) part[at] = 1;\
        all.push(part); } }, 20);";
    let hostile = json!({ "url": scripted(&pages, "/hostile", grows), "waitFor": 45_000, "timeout": 100_000 });
    // It says its words when the other one has long been ended.
    let calm = "setTimeout(() => { root.innerHTML = '<p>CALM words of a page</p>'; }, 4000);";
    let calm = json!({ "url": scripted(&pages, "/calm", calm), "waitFor": 6_000 });
    let first = scripted(&pages, "/first", "root.innerHTML = '<p>Hi'");
    service.post("/v2/scrape", &json!({ "url": first, "waitFor": 1 })).await.ok();
    let before = pool(&service);
    let (hostile, calm) = tokio::join!(service.post("/v2/scrape", &hostile), service.post("/v2/scrape", &calm));
    assert_eq!(hostile.code(), "SCRAPE_PAGE_TOO_LARGE", "{}", hostile.text);
    assert!(markdown_of(&calm.ok()["data"]).contains("CALM words"));
    assert_eq!(pool(&service), before, "the browser went on");
    assert_eq!(pages.heads("/hostile").len(), 1, "it is not tried again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_change_their_address_without_end_keep_no_other_waiting() {
    let pages = OwnPages::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let calm = scripted(&pages, "/calm", "root.innerHTML = '<p>CALM words of a page</p>'");
    let calm = json!({ "url": calm, "waitFor": 1, "maxAge": 0, "timeout": 13_000 });
    service.post("/v2/scrape", &calm).await.ok();
    let before = pool(&service);
    for (path, floods) in [
        ("/hash", "setInterval(() => { for (let n = 0; n < 500; n++) location.hash = n; }, 1)"),
        ("/pushed", "setInterval(() => { for (let n = 0; n < 2000; n++) history.pushState({}, '', '?' + n); }, 1)"),
    ] {
        let hostile = json!({ "url": scripted(&pages, path, floods), "waitFor": 15_000, "timeout": 40_000 });
        let beside = async {
            wait_until("the hostile page", async || (!pages.heads(path).is_empty()).then_some(())).await;
            for _ in 0..3 {
                let answer = service.post("/v2/scrape", &calm).await;
                assert!(markdown_of(&answer.ok()["data"]).contains("CALM words"), "{path}");
            }
        };
        // What comes of it is its own affair.
        let _ = tokio::join!(service.post("/v2/scrape", &hostile), beside);
    }
    assert_eq!(pool(&service), before, "the browser went on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_takes_browsers_down_does_so_alone_and_fails_for_good() {
    let pages = OwnPages::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let calm = "setTimeout(() => { root.innerHTML = '<p>CALM words of a page</p>'; }, 2000)";
    let calm = json!({ "url": scripted(&pages, "/calm", calm), "waitFor": 7_000, "timeout": 100_000 });
    let hostile = json!({ "url": scripted(&pages, "/hostile", ""), "waitFor": 50_000, "timeout": 150_000 });
    let calm_is_read = AtomicBool::new(false);
    let calm = async {
        let answer = service.post("/v2/scrape", &calm).await;
        calm_is_read.store(true, Ordering::Release);
        answer
    };
    // The signal stands for what the page does to its browser. From the second time on it is alone there, and so is the
    // other one in another.
    let lose = async {
        for nth in 1..=3 {
            wait_until_within(Duration::from_secs(120), "the hostile page", async || {
                let calm_is_there = nth > 1 || !pages.heads("/calm").is_empty();
                let calm_is_gone = nth == 1 || calm_is_read.load(Ordering::Acquire);
                (pages.heads("/hostile").len() == nth && calm_is_there && calm_is_gone).then_some(())
            })
            .await;
            for browser in service.browsers() {
                browser.kill();
            }
        }
    };
    let (hostile, calm, ()) = tokio::join!(service.post("/v2/scrape", &hostile), calm, lose);
    assert_eq!(hostile.code(), "SCRAPE_ALL_ENGINES_FAILED", "{}", hostile.text);
    assert!(hostile.text.contains("takes the browser down"), "{}", hostile.text);
    assert_eq!(pages.heads("/hostile").len(), 3);
    assert!(markdown_of(&calm.ok()["data"]).contains("CALM words"));
    assert_eq!(pages.heads("/calm").len(), 2, "it has lost one try beside the other");
}

/// A team's slow pages lose their browser together with those of another one. Alone they take their time, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_pages_that_are_opened_alone_keep_no_other_teams_waiting() {
    let pages = OwnPages::start().await;
    let mut service = TestService::start(Database::Sqlite).await;
    let other = service.new_team("other");
    let slow: Vec<Value> = (0..4)
        .map(|n| {
            let url = scripted(&pages, &format!("/slow/{n}"), "");
            json!({ "url": url, "waitFor": 50_000, "timeout": 150_000, "maxAge": 0 })
        })
        .collect();
    // Ready when the browser has been lost; opened once more they take a moment.
    let calm: Vec<Value> = (0..3)
        .map(|n| {
            let says = "setTimeout(() => { root.innerHTML = '<p>CALM words of a page</p>'; }, 300)";
            let url = scripted(&pages, &format!("/calm/{n}"), says);
            json!({ "url": url, "waitFor": 4_000, "timeout": 150_000, "maxAge": 0 })
        })
        .collect();
    let slow = async { join_all(slow.iter().map(|body| service.post("/v2/scrape", body))).await };
    let calm = async { join_all(calm.iter().map(|body| other.post("/v2/scrape", body))).await };
    let lose = async {
        let asked = |kind: &str| (0..4).filter(|n| !pages.heads(&format!("/{kind}/{n}")).is_empty()).count();
        wait_until("all pages", async || (asked("slow") + asked("calm") == 7).then_some(())).await;
        for browser in service.browsers() {
            browser.kill();
        }
    };
    let calm = {
        tokio::pin!(slow);
        tokio::select! {
            // Each of them waits for 50 s, beside others and alone.
            slow = &mut slow => panic!("{} slow pages were first", slow.len()),
            (calm, ()) = async { tokio::join!(calm, lose) } => calm,
        }
    };
    for page in calm {
        assert!(markdown_of(&page.ok()["data"]).contains("CALM words"));
    }
    // It would wait for its pages.
    service.kill_worker(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_stays_empty_says_so() {
    let pages = OwnPages::start().await;
    let service = TestService::start(Database::Sqlite).await;
    for (path, script) in [("/broken", "throw new Error('broken')"), ("/waits", "root.textContent = 'Loading...'")] {
        let answer = service.post("/v2/scrape", &json!({ "url": scripted(&pages, path, script) })).await.ok();
        let warning = answer["data"]["warning"].as_str().unwrap_or_default();
        assert!(warning.contains("still empty after rendering"), "{path}: {answer}");
    }
    let works = scripted(&pages, "/works", "root.innerHTML = '<p>Some words'");
    let answer = service.post("/v2/scrape", &json!({ "url": works })).await.ok();
    assert!(answer["data"]["warning"].is_null(), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_answered_under_its_own_address_whatever_its_scripts_say() {
    let (pages, home) = (OwnPages::start().await, OwnPages::start().await);
    let service = TestService::start(Database::Sqlite).await;
    let leak = home.put("/leak", "<p>Asked for in the caller's name.</p>");
    let told = |kind: &str| {
        format!(
            "({{ __proto__: null, url: '{leak}', status: 200, contentType: '{kind}', html: '<p>FORGED words</p>',\
             leaving: false, blank: false, width: 100, height: 100 }})"
        )
    };
    let words = "root.innerHTML = '<p>OWN words of the page</p>'.repeat(20);";
    let by_object = |kind: &str| {
        format!(
            "Object.defineProperty(Object.prototype, 'then', {{ configurable: true, get() {{\
             if (!Object.hasOwn(this, 'html')) return undefined;\
             delete Object.prototype.then; return done => done({}); }} }}); {words}",
            told(kind)
        )
    };
    let by_promise = format!(
        "{words} addEventListener('load', () => {{ Promise.prototype.then = function (done) {{ done({}); }}; }});",
        told("text/html")
    );
    // The function that the engine asks can be found, and not changed.
    let by_function = format!(
        "{words} const key = Object.getOwnPropertyNames(window).find(name => /^_[0-9a-f]{{16}}$/.test(name));\
         const mine = () => location.origin; window[key].quit = mine; window[key].stopped = mine;\
         root.innerHTML += '<p>CHANGED ' + (window[key].quit === mine || window[key].stopped === mine) + '</p>';"
    );
    for (path, script) in [
        ("/object", by_object("text/html")),
        ("/file", by_object("application/json")),
        ("/promise", by_promise),
        ("/function", by_function),
    ] {
        let own = scripted(&pages, path, &script);
        let url = home.redirect(path, 302, &own);
        for actions in [json!([]), json!([{ "type": "wait", "milliseconds": 100 }])] {
            let body = json!({ "url": url, "waitFor": 1, "actions": actions, "headers": { "X-Own": "s3cret" } });
            let data = service.post("/v2/scrape", &body).await.ok()["data"].clone();
            assert_eq!(data["metadata"]["url"], own, "{path} {actions}: {data}");
            let text = markdown_of(&data);
            assert!(text.contains("OWN words") && !text.contains("FORGED"), "{path} {actions}: {data}");
            assert!(path != "/function" || text.contains("CHANGED false"), "{data}");
        }
    }
    assert!(home.heads("/leak").is_empty(), "nothing is fetched by a page's word");

    // Its own address it may choose, as far as browsers let it.
    let moves = scripted(&pages, "/moves", &format!("history.pushState(null, '', '/moved?to=1#part'); {words}"));
    let answer = service.post("/v2/scrape", &json!({ "url": moves, "waitFor": 1 })).await.ok();
    assert_eq!(answer["data"]["metadata"]["url"], pages.url("/moved?to=1#part"), "{answer}");
}
