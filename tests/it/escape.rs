//! What strangers try from inside a session, in every language and over CDP, and what must not come of it: nothing of
//! the machine, of other sessions or of inner networks is seen, and the session or the next one goes on.
//!
//! Only 127.0.0.3 is allowed, where the site listens. 127.0.0.1, where it listens too beside the service's own ports,
//! is an inner address like any other. What boxes allow in detail is tested beside them, in `worker/src/sandbox`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use weir_tests::{
    Caller, Database, FixtureSite, Machine, ProcessInfo, ServiceOptions, SiteOptions, TestService, is_root,
    wait_until_none,
};

/// What must be found nowhere: it is in another session's files, in the service's environment and on the inner page.
const OTHERS: &str = "MARK-of-another-session";
const SECRET: &str = "MARK-of-the-service";
const INNER: &str = "Small 4242";

async fn service(machine: Option<Machine>) -> (FixtureSite, TestService) {
    let site = SiteOptions { more_hosts: vec!["127.0.0.3".to_owned()], ..SiteOptions::default() };
    let site = FixtureSite::start_with(site).await;
    let options = ServiceOptions::new(Database::Sqlite)
        .with_sessions()
        .env("WEIR_ALLOW_NETS", "127.0.0.3/32")
        .env("WEIR_ALLOW_HOSTS", "inner.example=127.0.0.1,outer.example=127.0.0.3")
        .env("WEIR_INTERNAL_SECRET", format!("{SECRET}-0123456789abcdef0123456789abcdef"))
        .env("WEIR_PAGE_BROWSERS", "0");
    let service = TestService::start_with(ServiceOptions { machines: machine.into_iter().collect(), ..options }).await;
    service.takes_sessions().await;
    (site, service)
}

struct Inmate<'a> {
    caller: &'a Caller,
    path: String,
}

impl<'a> Inmate<'a> {
    async fn new(caller: &'a Caller) -> Self {
        let session = caller.post("/v2/browser", &json!({ "ttl": 300 })).await.ok();
        Self { caller, path: format!("/v2/browser/{}", session["id"].as_str().unwrap()) }
    }

    /// Runs code; whatever it says must hold no mark. Gives the answer.
    async fn try_out(&self, language: &str, code: &str, timeout: u32) -> Value {
        let body = json!({ "code": code, "language": language, "timeout": timeout });
        let answer = self.caller.post(&format!("{}/execute", self.path), &body).await.ok();
        for mark in [OTHERS, SECRET, INNER] {
            assert!(!answer.to_string().contains(mark), "{language} got at {mark}:\n{code}\n{answer}");
        }
        answer
    }

    /// Runs code that must end well, and gives its result.
    async fn run(&self, language: &str, code: &str) -> String {
        let answer = self.try_out(language, code, 60).await;
        assert_eq!(answer["exitCode"], 0, "{language}: {code}\n{answer}");
        answer["result"].as_str().unwrap_or_default().trim().to_owned()
    }

    async fn assert_well(&self, after: &str) {
        for (language, code, result) in [("node", "1 + 1", "2"), ("python", "1 + 1", "2"), ("bash", "echo 2", "2")] {
            assert_eq!(self.run(language, code).await, result, "{language} after {after}");
        }
    }

    async fn end(self) {
        self.caller.delete(&self.path).await.ok();
    }
}

/// Every way to write the inner page's address.
fn inner_addresses(site: &FixtureSite) -> Vec<String> {
    let port = site.url("").rsplit_once(':').unwrap().1.to_owned();
    let mut all: Vec<String> = [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0.0.0.0",
        "localhost",
        "inner.example",
    ]
    .iter()
    .map(|host| format!("http://{host}:{port}/small/4242"))
    .collect();
    let by_redirect = format!("/redirect/to?url=http://127.0.0.1:{port}/small/4242");
    all.push(site.url_at("127.0.0.3", &by_redirect));
    all.push(site.url_at("127.0.0.3", "/redirect/to?url=file:///etc/passwd"));
    all.extend(
        ["http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://192.168.0.1/"].map(str::to_owned),
    );
    all
}

#[tokio::test]
async fn no_code_gets_out_of_its_session() {
    let (site, service) = service(None).await;
    let caller = service.caller();
    let (inmate, other) = (Inmate::new(caller).await, Inmate::new(caller).await);
    let keep = format!("echo {OTHERS} > kept; echo {OTHERS} > /tmp/kept");
    let body = json!({ "code": keep, "language": "bash", "timeout": 60 });
    caller.post(&format!("{}/execute", other.path), &body).await.ok();

    files_environments_and_processes(&inmate).await;
    networks(&inmate, &site).await;
    the_browser(&inmate, &site).await;
    bombs_and_signals(&inmate).await;

    assert_eq!(site.hit_count("/small/4242").await, 0, "nothing reached the inner page");
    assert_eq!(inmate.run("bash", &format!("curl -sf {}", site.url_at("127.0.0.3", "/small/7"))).await.len().min(1), 1);
    inmate.assert_well("all of it").await;
    let body = json!({ "code": "cat kept", "language": "bash", "timeout": 60 });
    let kept = caller.post(&format!("{}/execute", other.path), &body).await.ok();
    assert!(kept["result"].as_str().unwrap().contains(OTHERS), "the other session has what it had: {kept}");
    inmate.end().await;
    other.end().await;
    wait_until_none("processes of a session", || {
        service.processes().into_iter().filter(ProcessInfo::is_boxed).collect()
    })
    .await;
}

async fn files_environments_and_processes(inmate: &Inmate<'_>) {
    let look = "grep -rslE 'MARK-of' / --exclude-dir=proc --exclude-dir=usr 2>/dev/null | head; \
        for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; cat $p/root/home/user/kept; ls $p/fd; done 2>/dev/null; \
        cat /etc/shadow /root/.ssh/* /proc/1/environ /home/user/../../tmp/../root/* 2>/dev/null; env; true";
    inmate.run("bash", look).await;
    let look = "const fs = require('fs'); const seen = []; \
        for (const f of ['/etc/shadow', '/root', '/proc/1/environ', '/proc/1/root/etc', '/run', '/var/lib', '/home']) { \
          try { seen.push(f + ': ' + (fs.statSync(f).isDirectory() ? fs.readdirSync(f) : fs.readFileSync(f, 'utf8'))) } \
          catch (e) { seen.push(f + ': ' + e.code) } } \
        seen.push(JSON.stringify(process.env)); seen.join('\\n')";
    let seen = inmate.run("node", look).await;
    assert!(seen.contains("/etc/shadow: ENOENT") && seen.contains("/home: user"), "{seen}");
    let look = "import os\n\
        seen = [sorted(p for p in os.listdir('/proc') if p.isdigit()), dict(os.environ)]\n\
        for n in range(1, 400):\n\
        \x20   try: seen.append(open(f'/proc/{n}/cmdline').read())\n\
        \x20   except OSError: pass\n\
        str(seen)";
    let seen = inmate.run("python", look).await;
    for word in ["weir-worker", "chromium", "postgres", "DATABASE_URL"] {
        assert!(!seen.contains(word), "{word}: {seen}");
    }
}

async fn networks(inmate: &Inmate<'_>, site: &FixtureSite) {
    let addresses = inner_addresses(site);
    let port = site.url("").rsplit_once(':').unwrap().1.to_owned();
    let list = serde_json::to_string(&addresses).unwrap();
    // Through the proxy that the environment names, and past it.
    let fetch = format!(
        "import urllib.request, socket, json\nout = []\n\
         direct = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))\n\
         for url in {list}:\n\
         \x20   for opener in (urllib.request.build_opener(), direct):\n\
         \x20       try: out.append([url, opener.open(url, timeout=5).read(300).decode()])\n\
         \x20       except Exception as e: out.append([url, 'refused: ' + str(e)[:60]])\n\
         for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET, '127.0.0.3'), (socket.AF_INET6, '::1')):\n\
         \x20   s = socket.socket(family); s.settimeout(3)\n\
         \x20   try: s.connect((host, {port})); out.append([host, 'CONNECTED'])\n\
         \x20   except OSError as e: out.append([host, 'refused'])\n\
         s = socket.create_connection(('127.0.0.1', 3128)); s.sendall(b'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n')\n\
         out.append(['CONNECT', s.recv(200).decode()])\n\
         json.dumps(out)"
    );
    let outcomes: Value = serde_json::from_str(&inmate.run("python", &fetch).await).unwrap();
    for outcome in outcomes.as_array().unwrap() {
        let (place, said) = (outcome[0].as_str().unwrap(), outcome[1].as_str().unwrap());
        assert!(said.starts_with("refused") || said.starts_with("HTTP/1.1 403"), "{place}: {said}");
    }
    for url in addresses {
        let code = format!("curl -s -L -m 5 '{url}'; curl -s -L -m 5 --noproxy '*' '{url}'; true");
        inmate.run("bash", &code).await;
    }
    let code = format!(
        "const out = []; for (const url of {list}) {{ \
           out.push(await page.goto(url, {{ timeout: 5000 }}).then(async r => (r ? r.status() : 0) + ' ' + (await page.content()).slice(0, 300), e => 'refused')); \
           out.push(await fetch(url).then(r => r.text(), e => 'refused')); }} \
         await page.goto('about:blank').catch(() => 0); out.join('\\n')",
        list = list.replace("file:///etc/passwd", "about:blank")
    );
    inmate.run("node", &code).await;
}

async fn the_browser(inmate: &Inmate<'_>, site: &FixtureSite) {
    let addresses = serde_json::to_string(&inner_addresses(site)).unwrap();
    let code = format!(
        "const s = await context.newCDPSession(page); const out = []; \
         const call = (method, params) => s.send(method, params).then(r => JSON.stringify(r), e => 'refused ' + e.message); \
         for (const url of ['file:///etc/passwd', 'view-source:file:///etc/passwd', 'chrome://version', 'chrome://settings', \
             'FILE:///etc/hosts', 'filesystem:file:///etc', 'devtools://devtools/bundled/inspector.html']) {{ \
           out.push(url + ' ' + await call('Page.navigate', {{ url }})); \
           out.push(await page.content().catch(e => '')); \
           out.push(await call('Target.createTarget', {{ url }})); }} \
         await page.goto('{here}'); await page.setContent('<input type=file id=f>'); \
         const root = await s.send('DOM.getDocument'); \
         const node = await s.send('DOM.querySelector', {{ nodeId: root.root.nodeId, selector: '#f' }}); \
         for (const file of ['/etc/passwd', '/profile/Default/Cookies', '/home/user/../../etc/passwd', '/proc/self/environ']) \
           out.push(file + ' ' + await call('DOM.setFileInputFiles', {{ nodeId: node.nodeId, files: [file] }})); \
         out.push('files ' + await page.evaluate(() => document.querySelector('#f').files.length)); \
         for (const [method, params] of [['Browser.crash', {{}}], ['Browser.crashGpuProcess', {{}}], \
             ['Browser.setDownloadBehavior', {{ behavior: 'allow', downloadPath: '/profile' }}], ['SystemInfo.getInfo', {{}}], \
             ['Target.exposeDevToolsProtocol', {{ targetId: 'x' }}], ['Page.crash', {{}}], ['Tracing.start', {{}}], \
             ['Browser.getBrowserCommandLine', {{}}]]) out.push(method + ' ' + await call(method, params)); \
         for (const url of {addresses}) out.push(await page.evaluate(u => fetch(u, {{ mode: 'no-cors' }}).then(() => 'sent', () => 'refused'), url)); \
         out.join('\\n')",
        here = site.url_at("127.0.0.3", "/small/1"),
    );
    let seen = inmate.run("node", &code).await;
    assert!(seen.contains("files 0"), "no file of the machine was chosen: {seen}");
    for leaked in ["root:x:0", "user:x:6", "127.0.0.1 localhost", "--remote-debugging-port"] {
        assert!(!seen.contains(leaked), "{leaked}: {seen}");
    }
    inmate.assert_well("the browser was asked for too much").await;
}

async fn bombs_and_signals(inmate: &Inmate<'_>) {
    let bombs: &[(&str, &str, &str)] = &[
        ("processes", "bash", "bomb() { bomb | bomb & }; bomb; sleep 30"),
        ("processes", "python", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"),
        ("memory", "python", "x = []\nwhile True: x.append(bytearray(50_000_000))"),
        ("memory", "node", "const x = []; while (true) x.push(Buffer.alloc(50_000_000, 1))"),
        ("memory in files", "bash", "head -c 2G /dev/zero > /dev/shm/bomb; head -c 2G /dev/zero > /tmp/bomb"),
        (
            "one large file",
            "bash",
            "head -c 1G /dev/zero > bomb; size=$(stat -c %s bomb); rm bomb; [ $size -le 536870912 ]",
        ),
        ("output", "bash", "yes mark"),
        ("output", "node", "while (true) console.log('x'.repeat(10_000))"),
        ("signals", "bash", "kill -9 -1; for n in $(seq 1 300); do kill -9 $n; done"),
        (
            "signals",
            "python",
            "import os, signal\nfor n in range(1, 400):\n    try: os.kill(n, signal.SIGKILL)\n    except OSError: pass",
        ),
        (
            "a loop that stops for nobody",
            "python",
            "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass",
        ),
        ("daemons", "bash", "(setsid nohup sh -c 'while :; do sleep 1; done' >/dev/null 2>&1 &); echo started"),
    ];
    for (what, language, code) in bombs {
        let answer = inmate.try_out(language, code, 3).await;
        assert!(answer.to_string().len() < 4 << 20, "{what}: the answer is bounded");
        inmate.assert_well(what).await;
    }
}

/// Names that have an allowed address at one moment, an inner one at the next, and both at times.
#[tokio::test]
async fn names_that_change_lead_to_no_inner_address() {
    const NAMES: usize = 45;
    if !is_root() {
        eprintln!("skipped: only root can give a worker a hosts file of its own");
        return;
    }
    // One port at both addresses: what answers at the outer one, and what counts connections at the inner one.
    let outer = TcpListener::bind("127.0.0.3:0").await.unwrap();
    let port = outer.local_addr().unwrap().port();
    let inner = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let reached = Arc::new(AtomicUsize::new(0));
    tokio::spawn(answer(outer, Arc::default()));
    tokio::spawn(answer(inner, Arc::clone(&reached)));

    let hosts = weir_tests::temporary("hosts");
    let change = |addresses: &[&str]| {
        let line =
            |address: &&str| (0..NAMES).map(|n| format!("{address} n{n}.changing.example\n")).collect::<String>();
        // Written in place, because the worker has this very file mounted.
        std::fs::write(&hosts, addresses.iter().map(line).collect::<String>()).unwrap();
    };
    change(&["127.0.0.3"]);
    let (_site, service) = service(Some(Machine::with_hosts(&hosts))).await;
    let inmate = Inmate::new(service.caller()).await;
    let visit = |names: Range<usize>| {
        format!(
            "const curl = url => require('child_process').execSync('curl -s -o /dev/null -w %{{http_code}} ' + url); \
             const out = []; for (let n = {}; n < {}; n++) {{ const url = `http://n${{n}}.changing.example:{port}/`; \
               out.push(await page.goto(url, {{ timeout: 30_000 }}).then(r => r.status(), () => 'refused')); \
               out.push(await page.evaluate(u => fetch(u).then(r => r.status, () => 'refused'), url)); \
               out.push(curl(url)); }} out.join(' ')",
            names.start, names.end
        )
    };
    let outcomes = |said: String| said.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
    let (seen, refused) =
        (BTreeSet::from(["200".to_owned()]), BTreeSet::from(["403".to_owned(), "refused".to_owned()]));

    assert_eq!(outcomes(inmate.run("node", &visit(0..5)).await), seen);
    change(&["127.0.0.1"]);
    // What was judged stays: the names known by now lead where they led.
    assert_eq!(outcomes(inmate.run("node", &visit(0..5)).await), seen);
    assert!(outcomes(inmate.run("node", &visit(5..10)).await).is_subset(&refused));
    change(&["127.0.0.3", "127.0.0.1"]);
    assert!(outcomes(inmate.run("node", &visit(10..15)).await).is_subset(&refused));
    let flux = async {
        loop {
            for address in ["127.0.0.3", "127.0.0.1"] {
                change(&[address]);
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        }
    };
    let script = visit(15..NAMES);
    let said = tokio::select! {
        () = flux => unreachable!(),
        said = inmate.run("node", &script) => said,
    };
    // While the file is written anew a name may have no address at all.
    let possible = BTreeSet::from(["200", "403", "502", "refused"].map(str::to_owned));
    assert!(outcomes(said.clone()).is_subset(&possible), "{said}");
    assert_eq!(reached.load(Ordering::Relaxed), 0, "connections to the inner address");
    inmate.end().await;
    std::fs::remove_file(&hosts).unwrap();
}

/// Answers every request with an empty page and counts the connections.
async fn answer(listener: TcpListener, count: Arc<AtomicUsize>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        count.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let mut head = [0; 4096];
            while stream.read(&mut head).await.is_ok_and(|n| n > 0) {
                if stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n")
                    .await
                    .is_err()
                {
                    return;
                }
            }
        });
    }
}
