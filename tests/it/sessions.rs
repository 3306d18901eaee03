//! Browser sessions with real browsers, boxes and runners (spec 4.1 to 4.4, wire 8).

use std::time::Duration;

use serde_json::{Value, json};
use weir_shared::clock::Stopwatch;
use weir_tests::{
    Answer, Caller, Database, FixtureSite, ProcessInfo, ServiceOptions, SiteOptions, TestService, both_databases,
    long_tests, require_all, wait_until, wait_until_none,
};

/// A service whose sandbox works, without a browser that waits: the tests count processes.
async fn service(database: Database) -> TestService {
    start(ServiceOptions::new(database)).await
}

async fn start(options: ServiceOptions) -> TestService {
    // Browsers of the scraping pool would be counted among the processes of sessions.
    let service = TestService::start_with(options.with_sessions().env("WEIR_PAGE_BROWSERS", "0")).await;
    service.takes_sessions().await;
    service
}

async fn create(caller: &Caller, body: &Value) -> Value {
    caller.post("/v2/browser", body).await.ok()
}

fn id(session: &Value) -> &str {
    session["id"].as_str().unwrap()
}

async fn execute(caller: &Caller, session: &Value, language: &str, code: &str) -> Value {
    let body = json!({ "code": code, "language": language, "timeout": 60 });
    caller.post(&format!("/v2/browser/{}/execute", id(session)), &body).await.ok()
}

/// Runs code that must end well, and returns its result.
async fn run(caller: &Caller, session: &Value, language: &str, code: &str) -> String {
    let done = execute(caller, session, language, code).await;
    assert_eq!(done["exitCode"], 0, "{language}: {code}\n{done}");
    done["result"].as_str().unwrap_or_default().trim().to_owned()
}

async fn delete(caller: &Caller, session: &Value) -> Answer {
    caller.delete(&format!("/v2/browser/{}", id(session))).await
}

/// The session's row in the list.
async fn row(caller: &Caller, session: &Value) -> Value {
    let list = caller.get("/v2/browser").await.ok();
    let rows = list["sessions"].as_array().unwrap();
    rows.iter().find(|row| row["id"] == session["id"]).cloned().unwrap_or(Value::Null)
}

async fn until_destroyed(caller: &Caller, session: &Value) {
    wait_until("the session's end", || async { (row(caller, session).await["status"] == "destroyed").then_some(()) })
        .await;
}

async fn until_nothing_runs(service: &TestService) {
    wait_until_none("processes of a session", || {
        service.processes().into_iter().filter(ProcessInfo::is_boxed).collect()
    })
    .await;
}

both_databases! {
    async fn three_languages_drive_the_same_browser_and_keep_their_state(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let caller = service.caller();
        let session = create(caller, &json!({ "ttl": 120 })).await;
        assert!(session["cdpUrl"].as_str().unwrap().starts_with("ws://"));
        let open = format!("const n = 1; await page.goto('{}'); await page.title()", site.url("/actions"));
        let title = run(caller, &session, "node", &open).await;
        assert!(!title.is_empty());
        assert_eq!(run(caller, &session, "node", "const n = 41; n + 1").await, "42", "redeclared");
        assert_eq!(run(caller, &session, "node", "n").await, "41", "kept");
        let name = "await page.evaluate(() => `${navigator.userAgent} ${navigator.languages} ${navigator.webdriver}`)";
        let name = run(caller, &session, "node", name).await;
        assert!(name.contains(" Chrome/") && !name.contains("Headless") && name.ends_with("en-US,en false"), "{name}");
        let read = "t = await page.title()\nprint(t)";
        assert_eq!(run(caller, &session, "python", read).await, title, "python goes on where node stopped");
        assert_eq!(run(caller, &session, "python", "len(t)").await, title.chars().count().to_string());
        assert_eq!(run(caller, &session, "bash", "agent-browser get title").await, title);
        run(caller, &session, "bash", "echo kept > file").await;
        assert_eq!(run(caller, &session, "bash", "cat file").await, "kept");

        let failed = execute(caller, &session, "node", "throw new Error('mine')").await;
        assert_eq!((&failed["success"], &failed["killed"]), (&json!(true), &json!(false)), "{failed}");
        assert!(failed["exitCode"] != 0 && failed["stderr"].as_str().unwrap().contains("mine"), "{failed}");
        assert!(failed["error"].is_string());

        let ended = delete(caller, &session).await.ok();
        assert_eq!(ended["success"], true);
        assert!(ended["sessionDurationMs"].is_u64() && ended["creditsBilled"] == 2, "{ended}");
        let again = delete(caller, &session).await.ok();
        assert_eq!(again["creditsBilled"], ended["creditsBilled"]);
        assert_eq!(again["sessionDurationMs"], ended["sessionDurationMs"]);
        let body = json!({ "code": "1", "language": "node" });
        assert_eq!(caller.post(&format!("/v2/browser/{}/execute", id(&session)), &body).await.status, 410);
        let row = row(caller, &session).await;
        assert_eq!((&row["status"], &row["cdpUrl"]), (&json!("destroyed"), &session["cdpUrl"]));
        until_nothing_runs(&service).await;
    }

    async fn a_profile_keeps_a_login_until_the_next_session(database) {
        let site = FixtureSite::start().await;
        let service = service(database).await;
        let caller = service.caller();
        let profile = json!({ "ttl": 120, "profile": { "name": "shop" } });
        let first = create(caller, &profile).await;
        let login = format!(
            "await page.goto('{login}'); await page.fill('input[name=user]', 'alice'); \
             await page.fill('input[name=password]', 'wonderland'); \
             await Promise.all([page.waitForNavigation(), page.click('[type=submit]')]); \
             await page.evaluate(() => {{ localStorage.setItem('k', 'stored'); document.cookie = 'lasting=1; max-age=9999'; }}); \
             await page.evaluate(() => new Promise((done, failed) => {{ const r = indexedDB.open('d', 1); \
                r.onupgradeneeded = () => r.result.createObjectStore('s').put('in the database', 1); \
                r.onsuccess = done; r.onerror = failed; }})); \
             (await page.textContent('body')).slice(0, 200)",
            login = site.url("/login"),
        );
        let shown = run(caller, &first, "node", &login).await;
        assert!(shown.to_lowercase().contains("alice"), "logged in: {shown}");
        let second = caller.post("/v2/browser", &profile).await;
        assert_eq!((second.status, second.is_base_error()), (409, true), "one saver at a time: {}", second.text);
        delete(caller, &first).await.ok();

        let look = format!(
            "await page.goto('{account}'); const value = await page.evaluate(() => new Promise(done => {{ \
             const r = indexedDB.open('d', 1); r.onsuccess = () => {{ \
             if (!r.result.objectStoreNames.contains('s')) return done('nothing'); \
             const g = r.result.transaction('s').objectStore('s').get(1); g.onsuccess = () => done(g.result); }}; }})); \
             JSON.stringify([await page.evaluate(() => [localStorage.getItem('k'), document.cookie]), value, \
             (await page.textContent('body')).slice(0, 300)])",
            account = site.url("/account"),
        );
        let reader = json!({ "ttl": 120, "profile": { "name": "shop", "saveChanges": false } });
        let next = create(caller, &reader).await;
        let seen = run(caller, &next, "node", &look).await;
        for kept in ["stored", "lasting=1", "in the database"] {
            assert!(seen.contains(kept), "{kept}: {seen}");
        }
        assert!(seen.to_lowercase().contains("alice"), "the session cookie is back: {seen}");
        delete(caller, &next).await.ok();

        let stranger = service.new_team("stranger");
        let theirs = create(&stranger, &reader).await;
        let seen = run(&stranger, &theirs, "node", &look).await;
        assert!(!seen.contains("stored") && !seen.to_lowercase().contains("alice"), "a profile is its team's: {seen}");
        delete(&stranger, &theirs).await.ok();
        assert_eq!(caller.delete("/v2/browser/profiles/shop").await.ok()["success"], true);
        until_nothing_runs(&service).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_downloads_uploads_and_goes_out_in_every_language() {
    let site = FixtureSite::start_with(SiteOptions { more_hosts: vec!["127.0.0.2".to_owned()], tls: false }).await;
    let service = service(Database::Sqlite).await;
    let caller = service.caller();
    let session = create(caller, &json!({})).await;

    // All of it out of one folder, whoever asked for the last download.
    let page = format!(
        "await page.goto('{}'); await page.evaluate(() => {{ \
         document.body.innerHTML = '<input type=file id=f><a id=d download=x.bin>d</a>'; \
         document.querySelector('#d').href = URL.createObjectURL(new Blob(['bytes'])) }})",
        site.url("/small/1")
    );
    run(caller, &session, "node", &page).await;
    let node = "{ const [d] = await Promise.all([page.waitForEvent('download'), page.click('#d')]); \
         await d.saveAs('/tmp/saved/node.bin'); let read = ''; for await (const part of await d.createReadStream()) read += part; \
         const text = (name) => require('fs').readFileSync(name, 'utf8'); \
         console.log([read, text(await d.path()), text('/tmp/saved/node.bin')].join()) }";
    let python = "async with page.expect_download() as found:\n  await page.click('#d')\n\
         print(open(await (await found.value).path()).read())";
    let bash = "mkdir -p sub; cd sub; agent-browser download '#d' y.bin && agent-browser download '#d' /tmp/new/z.bin && \
         cat y.bin /tmp/new/z.bin";
    assert_eq!(run(caller, &session, "node", node).await, "bytes,bytes,bytes");
    assert_eq!(run(caller, &session, "python", python).await, "bytes");
    let said = run(caller, &session, "bash", bash).await;
    assert!(said.ends_with("bytesbytes") && said.contains("/sub/y.bin") && said.contains("/tmp/new/z.bin"), "{said}");
    assert_eq!(run(caller, &session, "node", node).await, "bytes,bytes,bytes");
    assert_eq!(run(caller, &session, "python", python).await, "bytes");

    for (folder, file) in [("~/sub", "u.txt"), ("~/sub", "../u.txt"), ("/tmp", "~/u.txt"), ("~", "u.txt")] {
        let code = format!(
            "echo hi > ~/u.txt; cp ~/u.txt ~/sub; cd {folder}; agent-browser upload '#f' {file} && \
             agent-browser eval \"document.querySelector('#f').files[0].text()\""
        );
        let said = run(caller, &session, "bash", &code).await;
        assert!(said.contains("hi\\n"), "{folder} {file}: {said}");
    }
    let refused = execute(caller, &session, "bash", "cp ~/u.txt /tmp; agent-browser upload '#f' /tmp/u.txt").await;
    let said = refused.to_string();
    assert!(refused["exitCode"] != 0 && said.contains("/home/user"), "which files can be read: {said}");

    let far = site.url_at("127.0.0.2", "/small/2");
    for (language, code) in [
        ("node", "(await fetch('FAR')).status"),
        (
            "node",
            "await new Promise((done, fail) => require('http').get('FAR', (a) => done(a.statusCode)).on('error', fail))",
        ),
        ("node", "(await page.request.get('FAR')).status()"),
        ("python", "(await context.request.get('FAR')).status"),
        (
            "node",
            "await page.route('**/*', async (route) => route.fulfill({ response: await route.fetch() })); \
             (await page.goto('FAR')).status()",
        ),
    ] {
        assert_eq!(run(caller, &session, language, &code.replace("FAR", &far)).await, "200", "{code}");
    }
    delete(caller, &session).await.ok();
}

#[tokio::test]
async fn a_timeout_kills_what_the_code_started_and_nothing_else() {
    let service = service(Database::Sqlite).await;
    let caller = service.caller();
    let session = create(caller, &json!({ "ttl": 120 })).await;
    run(caller, &session, "node", "await page.setContent('<h1>here</h1>')").await;
    let code = "trap '' TERM; (setsid sleep 300 &) ; nohup sleep 300 & while true; do :; done";
    let body = json!({ "code": code, "language": "bash", "timeout": 2 });
    let began = Stopwatch::start();
    let killed = caller.post(&format!("/v2/browser/{}/execute", id(&session)), &body).await.ok();
    // It would go on for ever.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!((&killed["killed"], &killed["success"]), (&json!(true), &json!(true)), "{killed}");
    assert!(killed["error"].is_string());
    wait_until("nothing sleeps", || async {
        (!service.processes().iter().any(|p| p.command.contains("sleep 300"))).then_some(())
    })
    .await;
    assert_eq!(run(caller, &session, "node", "await page.textContent('h1')").await, "here");
    delete(caller, &session).await.ok();
}

#[tokio::test]
async fn a_profile_that_is_too_large_to_be_saved_is_told() {
    let site = FixtureSite::start().await;
    let service = service(Database::Sqlite).await;
    let caller = service.caller();
    let body = json!({ "ttl": 300, "profile": { "name": "large" } });
    let session = create(caller, &body).await;
    let fill = "await page.evaluate(async () => {
        const done = (asked) => new Promise((yes, no) => { asked.onsuccess = () => yes(asked.result); asked.onerror = no; });
        const opening = indexedDB.open('large', 1);
        opening.onupgradeneeded = () => opening.result.createObjectStore('files');
        const base = await done(opening);
        for (let n = 0; n < 11; n += 1) {
            const file = new Blob([new Uint8Array(10 << 20)]);
            await done(base.transaction('files', 'readwrite').objectStore('files').put(file, n));
        }
    }); 'filled'";
    let fill = format!("await page.goto('{}'); {fill}", site.url("/actions"));
    assert_eq!(run(caller, &session, "node", &fill).await, "filled");
    let ended = delete(caller, &session).await.ok();
    let warning = ended["warning"].as_str().unwrap_or_default();
    assert!(warning.contains("larger than 100 MiB") && warning.contains("last version stays"), "{ended}");
    let shown = caller.get(&format!("/v2/browser/{}", id(&session))).await.ok();
    assert_eq!(shown["warning"], ended["warning"], "{shown}");
    // One that is saved is no matter to tell of.
    let session = create(caller, &body).await;
    assert_eq!(delete(caller, &session).await.ok().get("warning"), None);
}

#[tokio::test]
async fn a_crowd_of_connections_of_one_session_takes_few_descriptors_of_the_worker() {
    let service = service(Database::Sqlite).await;
    let caller = service.caller();
    let session = create(caller, &json!({ "ttl": 120 })).await;
    run(caller, &session, "python", "1").await;
    let worker = format!("/proc/{}/fd", service.worker_process(0));
    let open = || std::fs::read_dir(&worker).unwrap().count();
    let before = open();
    // Each keeps what it gets, whether it is served or refused.
    let crowd = "import socket, time
crowd = []
for port, size in ((9222, 850), (3128, 100)):
    for _ in range(size):
        one = socket.socket()
        one.settimeout(1)
        try:
            one.connect(('127.0.0.1', port))
        except OSError:
            break
        crowd.append(one)
time.sleep(2)
print(len(crowd) > 200)
for one in crowd:
    one.close()";
    let mut most = 0;
    let watch = async {
        loop {
            most = open().max(most);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let crowded = tokio::select! {
        crowded = run(caller, &session, "python", crowd) => crowded,
        () = watch => unreachable!("it has no end"),
    };
    assert_eq!(crowded, "True");
    let bound = usize::try_from(weir_shared::descriptors::PER_SESSION).unwrap();
    assert!(most > before + 100 && most < before + bound, "{most} of {before}");
    // The session serves its own code as before.
    assert_eq!(run(caller, &session, "node", "1 + 1").await, "2");
    delete(caller, &session).await.ok();
}

#[tokio::test]
async fn a_session_that_nobody_uses_ends() {
    let service = service(Database::Sqlite).await;
    let caller = service.caller();
    let session = create(caller, &json!({ "ttl": 60, "activityTtl": 10 })).await;
    let began = Stopwatch::start();
    until_destroyed(caller, &session).await;
    assert!(began.elapsed() > Duration::from_secs(8), "{:?}", began.elapsed());
    until_nothing_runs(&service).await;
}

#[tokio::test]
async fn a_dead_worker_s_sessions_end_and_free_what_they_held() {
    let mut service = start(ServiceOptions::new(Database::Sqlite).env("WEIR_TEAM_SESSIONS", "1").workers(2)).await;
    let caller = service.caller().clone();
    let profile = json!({ "ttl": 300, "profile": { "name": "shop" } });
    let session = create(&caller, &profile).await;
    assert_eq!(caller.post("/v2/browser", &json!({})).await.status, 429, "the team's only place is taken");
    for n in 0..2 {
        service.kill_worker(n);
    }
    service.start_worker(0);
    let began = Stopwatch::start();
    until_destroyed(&caller, &session).await;
    // Its own time would be over after five minutes.
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    let bill = delete(&caller, &session).await.ok();
    assert_eq!(bill["creditsBilled"], 2, "{bill}");
    let next = wait_until("a free place", || async {
        let answer = caller.post("/v2/browser", &profile).await;
        (answer.status == 200).then_some(answer.body)
    })
    .await;
    delete(&caller, &next).await.ok();
    until_nothing_runs(&service).await;
}

#[tokio::test]
async fn a_browser_that_dies_ends_its_session_and_no_other() {
    let service = service(Database::Sqlite).await;
    let caller = service.caller();
    let (one, other) = (create(caller, &json!({ "ttl": 120 })).await, create(caller, &json!({ "ttl": 120 })).await);
    run(caller, &other, "node", "await page.setContent('<h1>mine</h1>')").await;
    let crash = "const s = await browser.newBrowserCDPSession(); await s.send('Browser.crash').catch(e => e.message)";
    let refused = run(caller, &one, "node", crash).await;
    assert!(!refused.is_empty(), "the command is refused, not carried out");
    let browsers = service.browsers();
    let mine: Vec<_> = browsers.iter().filter(|p| p.is_boxed()).collect();
    assert_eq!(mine.len(), 2, "{mine:?}");
    mine[0].kill();
    wait_until("one session's end", || async {
        let (a, b) = (row(caller, &one).await, row(caller, &other).await);
        let ended = [a, b].iter().filter(|row| row["status"] == "destroyed").count();
        assert!(ended < 2, "only one");
        (ended == 1).then_some(())
    })
    .await;
    let left = if row(caller, &one).await["status"] == "destroyed" { &other } else { &one };
    assert_eq!(run(caller, left, "node", "1 + 1").await, "2");
    for session in [&one, &other] {
        assert_eq!(delete(caller, session).await.ok()["creditsBilled"], 2);
    }
    until_nothing_runs(&service).await;
}

#[tokio::test]
async fn a_stopping_worker_ends_its_sessions_in_good_order() {
    let mut service = service(Database::Sqlite).await;
    let caller = service.caller().clone();
    let profile = json!({ "ttl": 120, "profile": { "name": "kept" } });
    let session = create(&caller, &profile).await;
    let site = FixtureSite::start().await;
    let write = format!(
        "await page.goto('{}'); await page.evaluate(() => localStorage.setItem('k', 'v'))",
        site.url("/small/1")
    );
    run(&caller, &session, "node", &write).await;
    service.stop();
    assert!(service.processes().is_empty(), "{:?}", service.processes());
    service.start_api();
    service.start_worker(0);
    service.ready().await;
    let caller = service.caller().clone();
    let next = wait_until("a session", || async {
        let answer = caller.post("/v2/browser", &profile).await;
        (answer.status == 200).then_some(answer.body)
    })
    .await;
    let read =
        format!("await page.goto('{}'); await page.evaluate(() => localStorage.getItem('k'))", site.url("/small/1"));
    assert_eq!(run(&caller, &next, "node", &read).await, "v");
    delete(&caller, &next).await.ok();
}

#[tokio::test]
async fn a_killed_session_leaves_the_previous_version_of_its_profile() {
    let site = FixtureSite::start().await;
    let service = service(Database::Sqlite).await;
    let caller = service.caller();
    let profile = json!({ "ttl": 120, "profile": { "name": "shop" } });
    let note = |word: &str| {
        format!(
            "await page.goto('{}'); await page.evaluate(() => localStorage.setItem('k', '{word}'))",
            site.url("/small/1")
        )
    };
    let first = create(caller, &profile).await;
    run(caller, &first, "node", &note("first")).await;
    delete(caller, &first).await.ok();
    let second = create(caller, &profile).await;
    run(caller, &second, "node", &note("second")).await;
    let browsers = service.browsers();
    assert_eq!(browsers.len(), 1, "{browsers:?}");
    browsers[0].kill();
    until_destroyed(caller, &second).await;
    // The lease goes with the last step of the end.
    let third = wait_until("the profile's lease", || async {
        let answer = caller.post("/v2/browser", &profile).await;
        (answer.status == 200).then_some(answer.body)
    })
    .await;
    let read =
        format!("await page.goto('{}'); await page.evaluate(() => localStorage.getItem('k'))", site.url("/small/1"));
    assert_eq!(run(caller, &third, "node", &read).await, "first");
    delete(caller, &third).await.ok();
    until_nothing_runs(&service).await;
}

/// Playwright for Node and Python, Puppeteer and agent-browser, unmodified, through the public `cdpUrl`, while two people
/// watch and code runs.
#[tokio::test]
async fn clients_outside_viewers_and_code_use_a_session_at_once() {
    let Some(modules) = weir_tests::installed("relay/node_modules") else { return };
    let packages = std::env::var("WEIR_RUNNERS").unwrap_or_else(|_| "/var/cache/weir/runners".to_owned());
    let packages = std::path::PathBuf::from(packages);
    if !packages.join("python").exists() {
        assert!(!require_all(), "{} is missing: scripts/setup installs it", packages.display());
        return;
    }
    let site = FixtureSite::start().await;
    let service = service(Database::Sqlite).await;
    let caller = service.caller();
    let session = create(caller, &json!({ "ttl": 300, "streamWebView": true })).await;
    let text = |field: &str| session[field].as_str().unwrap().to_owned();
    let mut viewers = Vec::new();
    for field in ["liveViewUrl", "interactiveLiveViewUrl"] {
        let address = text(field).replacen("http", "ws", 1);
        // The secret stays in the fragment; the page says it first.
        let (path, secret) = address.split_once('#').expect("a secret");
        let (mut viewer, _) = tokio_tungstenite::connect_async(format!("{path}/socket")).await.expect("a viewer");
        let hello = tokio_tungstenite::tungstenite::Message::text(secret);
        futures_util::SinkExt::send(&mut viewer, hello).await.unwrap();
        viewers.push(tokio::spawn(async move {
            let mut pictures = 0;
            while let Some(Ok(message)) = futures_util::StreamExt::next(&mut viewer).await {
                pictures += usize::from(message.is_binary());
            }
            pictures
        }));
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    let node_path = std::env::split_paths(&search).map(|dir| dir.join("node")).find(|path| path.exists());
    let node_path = node_path.expect("node is on the PATH");
    let command = |program: &std::path::Path| {
        let mut command = tokio::process::Command::new(program);
        command
            .env("CDP_URL", text("cdpUrl"))
            .env("SITE_URL", site.url(""))
            .env("NODE_PATH", &modules)
            .env("PYTHONPATH", packages.join("python"))
            // The runners share the machine's Node.
            .env("PLAYWRIGHT_NODEJS_PATH", &node_path)
            .env("AGENT_BROWSER_SOCKET_DIR", service.folder().join("agent"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true);
        command
    };
    let scripts = weir_tests::checkout().join("tests/relay");
    // By itself: a Playwright beside it, code's own too, dismisses the dialogs it waits for.
    let node = command("node".as_ref()).arg(scripts.join("suite.cjs")).output().await;
    let python = command("python3".as_ref()).arg(scripts.join("outside.py")).output();
    let another = command("python3".as_ref()).arg(scripts.join("outside.py")).output();
    let code = async {
        for n in 0..20 {
            assert_eq!(run(caller, &session, "python", &format!("{n} + 1")).await, (n + 1).to_string());
        }
    };
    let (python, another, ()) = tokio::join!(python, another, code);
    for output in [node.unwrap(), python.unwrap(), another.unwrap()] {
        let text = String::from_utf8_lossy(&output.stdout);
        let closing = text.lines().rev().find(|line| line.contains(" passed, ")).unwrap_or_default();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && closing.ends_with(", 0 failed"), "{text}{errors}");
    }
    let agent = packages.join("node_modules/agent-browser/bin/agent-browser");
    for (words, shown) in
        [(vec!["open", &site.url("/small/5")], ""), (vec!["get", "title"], "Small 5"), (vec!["close"], "")]
    {
        let done = command(&agent).args(["--cdp", &text("cdpUrl")]).args(&words).output();
        let done = done.await.unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && said.contains(shown), "agent-browser {words:?}: {said}");
    }
    assert_eq!(run(caller, &session, "node", "1 + 1").await, "2", "a client's close is not the session's");
    delete(caller, &session).await.ok();
    for viewer in viewers {
        assert!(viewer.await.unwrap() > 0, "pictures came");
    }
    until_nothing_runs(&service).await;
}

/// Code looks for tabs that others have opened or closed, and not where nobody has said anything to the browser.
#[tokio::test]
async fn code_hears_of_each_tab_of_others_and_asks_only_when_somebody_may_have_acted() {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio_tungstenite::tungstenite::Message;

    let site = FixtureSite::start().await;
    let service = service(Database::Sqlite).await;
    let caller = service.caller();
    let session = create(caller, &json!({ "ttl": 300 })).await;
    let first = site.url("/small/1");
    run(caller, &session, "node", &format!("await page.goto('{first}')")).await;
    let where_is = |language: &str| if language == "node" { "page.url()" } else { "page.url" };
    let said = || service.worker_figure(0, "weir_relay{what=\"bytes_in\"}");
    for language in ["node", "python"] {
        // The first calls look: what came before them was said to the browser, and it may still tell of its tab.
        wait_until("a call that asks nothing, as nobody acts", || async {
            let before = said().await;
            assert_eq!(run(caller, &session, language, "20 + 1").await, "21");
            (said().await == before).then_some(())
        })
        .await;
        assert_eq!(run(caller, &session, language, where_is(language)).await, first);
    }
    for round in 0..3 {
        for (here, there) in [("node", "python"), ("python", "node")] {
            let second = site.url(&format!("/small/{}", 10 + round));
            let (open, close) = match there {
                "node" => (format!("tab = await context.newPage(); await tab.goto('{second}')"), "await tab.close()"),
                _ => (format!("tab = await context.new_page()\nawait tab.goto('{second}')"), "await tab.close()"),
            };
            run(caller, &session, here, "1").await;
            run(caller, &session, there, &open).await;
            assert_eq!(run(caller, &session, here, where_is(here)).await, second, "{here}: {there} opened a tab");
            run(caller, &session, here, "1").await;
            run(caller, &session, there, close).await;
            assert_eq!(run(caller, &session, here, where_is(here)).await, first, "{here}: {there} closed it");
        }
    }
    let address = session["cdpUrl"].as_str().unwrap();
    let (mut client, _) = tokio_tungstenite::connect_async(address).await.expect("a CDP client");
    let mut ask = async |id: u64, method: &str, params: Value| {
        let message = json!({ "id": id, "method": method, "params": params }).to_string();
        client.send(Message::text(message)).await.unwrap();
        loop {
            let answer = client.next().await.expect("the connection lives").unwrap();
            let answer: Value = serde_json::from_str(answer.to_text().unwrap()).unwrap();
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    };
    let second = site.url("/small/20");
    for round in 0..3 {
        for language in ["node", "python"] {
            run(caller, &session, language, "1").await;
            run(caller, &session, language, "1").await;
        }
        let target = ask(1000 * round + 1, "Target.createTarget", json!({ "url": second })).await;
        for language in ["node", "python"] {
            let shown = format!("await page.{}('{second}'); {}", "waitForURL", where_is(language));
            let shown = if language == "python" { shown.replace("waitForURL", "wait_for_url") } else { shown };
            assert_eq!(run(caller, &session, language, &shown).await, second, "{language}: a client opened a tab");
            run(caller, &session, language, "1").await;
            run(caller, &session, language, "1").await;
        }
        ask(1000 * round + 2, "Target.closeTarget", target.clone()).await;
        // Its answer says that the tab was told to close.
        let mut looks = 1000 * round + 3..1000 * round + 999;
        loop {
            let targets = ask(looks.next().expect("the tab closes"), "Target.getTargets", json!({})).await;
            if targets["targetInfos"].as_array().unwrap().iter().all(|info| info["targetId"] != target["targetId"]) {
                break;
            }
        }
        for language in ["node", "python"] {
            assert_eq!(run(caller, &session, language, where_is(language)).await, first, "{language}: it closed it");
        }
    }
    drop(client);
    delete(caller, &session).await.ok();
    until_nothing_runs(&service).await;
}

/// Sessions come and go, and whatever can die dies; nothing is left and every session is billed once.
mod churn {
    use super::*;

    /// Everything that boxes could leave behind on this machine: processes, directories, cgroups.
    async fn until_nothing_is_left(service: &TestService) {
        until_nothing_runs(service).await;
        wait_until_none("directories and cgroups of sessions", || {
            let run_dir = service.folder().join("tmp/weir-run");
            let workers = std::fs::read_dir(&run_dir).into_iter().flatten().flatten().filter(|e| e.path().is_dir());
            let mut left: Vec<_> = workers
                .flat_map(|worker| std::fs::read_dir(worker.path()).into_iter().flatten().flatten())
                .map(|entry| entry.path())
                // The runners' programs are the worker's own.
                .filter(|path| path.is_dir() && !path.display().to_string().ends_with("/programs"))
                .collect();
            for worker in std::fs::read_dir(&run_dir).into_iter().flatten().flatten() {
                let groups = std::fs::read_to_string(worker.path().join("cgroups")).unwrap_or_default();
                let boxes = groups.lines().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten());
                left.extend(boxes.map(|entry| entry.path()).filter(|path| path.is_dir()));
            }
            left
        })
        .await;
    }

    /// Every session of the team is destroyed and billed: 2 credits each, as none lived longer than a minute.
    async fn assert_billed_once(service: &TestService, sessions: usize) {
        let list = service.caller().get("/v2/browser").await.ok();
        let rows = list["sessions"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["status"] == "destroyed"), "{list}");
        let usage = service.cli_json(&["credits", "show", "--team", "tests", "--json"]);
        assert_eq!(usage["used"], json!(2 * sessions), "{usage}");
    }

    async fn cycles(count: usize) {
        let service = service(Database::Sqlite).await;
        let caller = service.caller();
        for n in 0..count {
            let session = create(caller, &json!({ "ttl": 120 })).await;
            if n % 4 == 0 {
                assert_eq!(run(caller, &session, "node", "1 + 1").await, "2");
            }
            delete(caller, &session).await.ok();
        }
        until_nothing_is_left(&service).await;
        assert_billed_once(&service, count).await;
    }

    async fn kills(of_programs: usize, of_workers: usize) {
        let options = ServiceOptions::new(Database::Sqlite);
        let mut service = start(options).await;
        let caller = service.caller().clone();
        for n in 0..of_programs {
            let session = create(&caller, &json!({ "ttl": 120 })).await;
            let language = if n % 4 < 2 { "node" } else { "python" };
            run(&caller, &session, language, "1 + 1").await;
            if n % 2 == 0 {
                service.browsers().first().expect("a browser").kill();
                until_destroyed(&caller, &session).await;
            } else {
                let programs = service.processes();
                let runner = programs.iter().find(|p| {
                    p.is_boxed() && p.command.contains(if language == "node" { "node.cjs" } else { "python.py" })
                });
                runner.expect("a runner").kill();
                // A call that comes before the death is noticed is told of it; the next one works.
                if execute(&caller, &session, language, "1 + 1").await["exitCode"] != 0 {
                    assert_eq!(run(&caller, &session, language, "1 + 1").await, "2", "the next call works");
                }
                delete(&caller, &session).await.ok();
            }
        }
        for _ in 0..of_workers {
            let session = create(&caller, &json!({ "ttl": 120 })).await;
            run(&caller, &session, "bash", "echo busy").await;
            service.kill_worker(0);
            service.start_worker(0);
            until_destroyed(&caller, &session).await;
            wait_until("a worker that takes sessions", || async {
                let answer = caller.post("/v2/browser", &json!({ "ttl": 120 })).await;
                if answer.status == 200 {
                    delete(&caller, &answer.body).await.ok();
                }
                (answer.status == 200).then_some(())
            })
            .await;
        }
        until_nothing_is_left(&service).await;
        assert_billed_once(&service, of_programs + 2 * of_workers).await;
    }

    #[tokio::test]
    async fn sessions_come_and_go_without_a_trace() {
        cycles(if long_tests() { 200 } else { 8 }).await;
    }

    #[tokio::test]
    async fn killed_browsers_runners_and_workers_leave_nothing() {
        if long_tests() { kills(50, 10).await } else { kills(4, 1).await }
    }
}
