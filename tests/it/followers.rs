//! A page may get the tab of another page of its site: nothing of that one is there, and nobody else gets it.

use serde_json::{Value, json};
use weir_shared::clock::Stopwatch;
use weir_tests::{Caller, Database, OwnPages, TestService, markdown_of};

/// What a page finds when it begins, as the words `FOUND …`; then it leaves all of it to whoever comes.
const LEAVES: &str = r#"
  const found = {
    cookies: document.cookie, name: window.name, history: history.length, entries: navigation.entries().length,
    local: localStorage.length, session: sessionStorage.length, global: typeof window.left, referrer: document.referrer,
    worker: !!navigator.serviceWorker.controller, size: [innerWidth, innerHeight].join('x'), visible: document.visibilityState,
    state: history.state, type: performance.getEntriesByType('navigation')[0].type, back: navigation.canGoBack,
  };
  const settled = (async () => {
    found.databases = (await indexedDB.databases()).length;
    found.caches = (await caches.keys()).length;
    found.workers = (await navigator.serviceWorker.getRegistrations()).length;
    found.tag = await (await fetch('/cached')).text();
    root.innerHTML = '<p>FOUND ' + JSON.stringify(found) + ' END</p><p>' + 'Words of a page. '.repeat(40) + '</p>';
    document.cookie = 'left=1; max-age=9999';
    window.name = 'left'; window.left = 1;
    localStorage.setItem('left', '1'); sessionStorage.setItem('left', '1');
    history.replaceState({ left: 1 }, '');
    const open = indexedDB.open('left');
    await new Promise(done => { open.onsuccess = done; });
    await (await caches.open('left')).put('/left', new Response('left'));
    await navigator.serviceWorker.register('/worker.js');
    await navigator.serviceWorker.ready;
    document.body.append(Object.assign(document.createElement('iframe'), { src: '/frame' }));
  })();
  for (const event of ['pagehide', 'unload', 'beforeunload', 'visibilitychange']) addEventListener(event, () => {
    document.cookie = 'late=1'; localStorage.setItem('late', '1'); sessionStorage.setItem('late', '1'); window.name = 'late';
  });
  setInterval(() => { document.cookie = 'later=1'; localStorage.setItem('later', '1'); }, 1);
"#;

/// Has a browser keep the page, as a dictionary of the next one, too.
const IS_KEPT: &str = "cache-control: max-age=3600\r\nuse-as-dictionary: match=\"/page/*\"\r\n";

/// Answers every page of its site with something else.
const WORKER: &str = "addEventListener('install', () => skipWaiting());\
    addEventListener('activate', event => event.waitUntil(clients.claim()));\
    addEventListener('fetch', event => event.respondWith(new Response('<p>POISONED', \
        { headers: { 'content-type': 'text/html' } })));";

fn scripted(pages: &OwnPages, path: &str, script: &str) -> String {
    pages.put(path, &format!("<!-- {path} --><div id=root></div><script>{script}</script>"))
}

/// A page that shows `words` by script.
fn calm(pages: &OwnPages, path: &str, words: &str) -> String {
    scripted(pages, path, &format!("root.innerHTML = '<p>{words} ' + 'Words of a page. '.repeat(40)"))
}

/// The page's text, from a browser. What its site has sent is its own.
async fn rendered(caller: &Caller, url: &str, options: Value) -> String {
    let mut body = json!({ "url": url, "waitFor": 1, "formats": ["markdown", "rawHtml"] });
    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    let data = caller.post("/v2/scrape", &body).await.ok()["data"].take();
    let path = reqwest::Url::parse(url).unwrap().path().to_owned();
    let sent = data["rawHtml"].as_str().unwrap_or_default();
    assert!(sent.contains(&format!("<!-- {path} -->")), "{url} has sent {sent}");
    markdown_of(&data).to_owned()
}

async fn followers(service: &TestService) -> u64 {
    service.worker_figure(0, "weir_browser_followers").await
}

/// Renders pages of the site until one of them had the tab of another, which it has left again.
async fn warm_up(service: &TestService, pages: &OwnPages) {
    let before = followers(service).await;
    for n in 0..20 {
        let path = format!("/warm/{before}/{n}");
        let shown = rendered(service.caller(), &calm(pages, &path, "WARM"), json!({ "maxAge": 0 })).await;
        assert!(shown.contains("WARM"), "{shown}");
        if followers(service).await > before {
            return;
        }
    }
    panic!("no page of twenty had the tab of another");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_finds_nothing_of_the_one_whose_tab_it_gets() {
    let pages = OwnPages::start().await;
    let service = TestService::start(Database::Sqlite).await;
    pages.put_file("/worker.js", "text/javascript", WORKER);
    pages.put_cached("/cached", "1");
    let writes = "addEventListener('pagehide', () => { localStorage.setItem('frame', 1); document.cookie = 'frame=1'; });\
        setInterval(() => sessionStorage.setItem('frame', 1), 1)";
    scripted(&pages, "/frame", writes);
    let mut all = Vec::new();
    let mut in_used_tabs = 0;
    while in_used_tabs < 4 && all.len() < 20 {
        if !all.is_empty() {
            warm_up(&service, &pages).await;
        }
        let path = format!("/page/{}", all.len());
        let url = scripted(&pages, &path, LEAVES);
        pages.add_headers(&path, IS_KEPT);
        let before = followers(&service).await;
        let shown = rendered(service.caller(), &url, json!({ "waitFor": 300 })).await;
        in_used_tabs += followers(&service).await - before;
        let found = shown.split_once("FOUND ").and_then(|(_, rest)| rest.split_once(" END"));
        let found = found.unwrap_or_else(|| panic!("{path} shows {shown}")).0.to_owned();
        let head = pages.heads(&path).last().unwrap().replace(&path, "");
        all.push((found, head));
    }
    assert_eq!(in_used_tabs, 4, "of {} pages", all.len());
    for (n, (found, head)) in all.iter().enumerate() {
        assert_eq!(found, &all[0].0, "what page {n} finds");
        assert_eq!(head, &all[0].1, "page {n} is asked for as any other");
    }
    assert_eq!(pages.heads("/cached").len(), all.len(), "each page asks the site itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tabs_go_to_no_other_team_site_or_kind_of_page() {
    let pages = OwnPages::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let (mine, other) = (service.caller(), service.new_team("others"));
    let url = |n: usize| calm(&pages, &format!("/calm/{n}"), "CALM");
    let plain = json!({});
    let strangers = [
        (&other, url(10), plain.clone()),
        (mine, url(11).replace("127.0.0.1", "localhost"), plain.clone()),
        (mine, url(12), json!({ "headers": { "x-key": "secret" } })),
        (mine, url(13), json!({ "headers": { "cookie": "a=b" } })),
        (mine, url(14), json!({ "mobile": true })),
        (mine, url(15), json!({ "location": { "country": "DE" } })),
        (mine, url(16), json!({ "blockAds": false })),
        (mine, url(18), json!({ "actions": [{ "type": "wait", "milliseconds": 1 }] })),
        (mine, url(19) + "#place", plain.clone()),
        (mine, url(20).replace("127.0.0.1", "me:secret@127.0.0.1"), plain.clone()),
    ];
    for (caller, stranger, options) in strangers {
        warm_up(&service, &pages).await;
        let before = followers(&service).await;
        let shown = rendered(caller, &stranger, options.clone()).await;
        assert!(shown.contains("CALM"), "{stranger} {options}: {shown}");
        assert_eq!(followers(&service).await, before, "{stranger} {options}");
    }
    let private = service.new_team("private");
    service.cli(&["team", "set", "private", "--zero-data-retention", "on"]);
    let before = followers(&service).await;
    for n in 30..34 {
        rendered(&private, &url(n), plain.clone()).await;
    }
    assert_eq!(followers(&service).await, before, "of a page with zero data retention nothing stays");
}

/// What a page does after it has shown its words, and whether its tab may go on to the next one then.
const HARMS: [(&str, bool, &str); 14] = [
    ("hangs", true, "setTimeout(() => { const end = Date.now() + 20000; while (Date.now() < end); }, 4000)"),
    ("asks", true, "setTimeout(() => alert('there?'), 4000)"),
    (
        "hangs when a worker calls",
        false,
        "new Worker(URL.createObjectURL(new Blob(['setTimeout(() => postMessage(1), 250)'])))\
            .onmessage = () => { const end = Date.now() + 20000; while (Date.now() < end); }",
    ),
    ("sends a beacon", false, "navigator.sendBeacon('/beacon')"),
    ("has a request that outlives it", false, "fetch('/beacon', { keepalive: true })"),
    ("opens a window", false, "window.open('/window', 'child')"),
    (
        "has frames of its own",
        true,
        "for (const src of ['/window', 'about:blank']) \
            document.body.append(Object.assign(document.createElement('iframe'), { src }))",
    ),
    (
        "has a frame of another site",
        false,
        "document.body.append(Object.assign(document.createElement('iframe'), \
            { src: `http://localhost:${location.port}/window` }))",
    ),
    (
        "had a frame of another site",
        false,
        "const frame = Object.assign(document.createElement('iframe'), \
            { src: `http://localhost:${location.port}/window`, onload: () => frame.remove() }); \
            document.body.append(frame)",
    ),
    ("leads on", false, "if (!location.search) location.replace(location.pathname + '?next')"),
    (
        "overrides",
        true,
        "window.stop = Document.prototype.open = document.open = clearTimeout = () => { throw new Error('no'); };\
            Object.defineProperty(Storage.prototype, 'clear', { value: () => { throw new Error('no'); } })",
    ),
    (
        "stays",
        true,
        "addEventListener('beforeunload', event => { event.preventDefault(); event.returnValue = 'stay'; });\
            navigation.addEventListener('navigate', event => { if (event.cancelable) event.preventDefault(); })",
    ),
    (
        "intercepts",
        true,
        "navigation.addEventListener('navigate', event => { if (event.canIntercept) event.intercept({ \
            handler: async () => { root.innerHTML = '<p>INTERCEPTED'; } }); })",
    ),
    ("pretends", true, "setInterval(() => history.replaceState(null, '', '/calm/10'), 1)"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_page_does_the_next_one_of_its_site_is_itself() {
    let pages = OwnPages::start().await;
    let service = TestService::start(Database::Sqlite).await;
    pages.put("/window", "<p>WINDOW</p>");
    for (at, (name, may_go_on, script)) in HARMS.iter().enumerate() {
        // The page that does harm has a tab that may go on.
        warm_up(&service, &pages).await;
        let words = "root.innerHTML = '<p>HARM ' + 'Words of a page. '.repeat(40);";
        let path = format!("/harm/{at}");
        pages.put(&format!("{path}?next"), &format!("<!-- {path} --><p>HARM led on</p>"));
        let harm = scripted(&pages, &path, &format!("{words}{script}"));
        let shown = rendered(service.caller(), &harm, json!({ "waitFor": 100 })).await;
        assert!(shown.contains("HARM"), "{name}: {shown}");
        let before = followers(&service).await;
        let (began, word) = (Stopwatch::start(), format!("CALM{at}"));
        let next = rendered(service.caller(), &calm(&pages, &format!("/calm/{at}"), &word), json!({})).await;
        assert!(next.contains(&word), "after one that {name}: {next}");
        assert!(began.elapsed().as_secs() < 10, "after one that {name}: {:?}", began.elapsed());
        let after = followers(&service).await;
        assert!(*may_go_on || after == before, "the tab of one that {name} went on: {before}, {after}");
    }
}
