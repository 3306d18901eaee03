//! The relay and the live view against a real Chromium, which is not boxed here and listens on TCP.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_util::sync::CancellationToken;
use weir_shared::clock::{self, Clock};
use weir_shared::random;

use super::*;
use crate::sandbox::{ChromiumKind, find_chromium};

const LONG: Duration = Duration::from_secs(60);

/// A headless browser of this test.
pub(crate) struct Chromium {
    address: SocketAddr,
    path: String,
    folder: std::path::PathBuf,
    _process: tokio::process::Child,
}

impl Chromium {
    pub(crate) async fn start() -> Arc<Self> {
        let found = find_chromium(None).expect("a Chromium is installed");
        let folder = std::env::temp_dir().join(format!("weir-relay-test-{}", random::id()));
        std::fs::create_dir_all(folder.join("downloads")).unwrap();
        let mut command = tokio::process::Command::new(&found.path);
        if found.kind == ChromiumKind::Full {
            command.arg("--headless=new");
        }
        command
            .args(["--no-sandbox", "--remote-debugging-port=0", "--no-first-run", "--disable-gpu", "--mute-audio"])
            .arg("--window-size=1280,720")
            .arg(format!("--user-data-dir={}", folder.display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let url = loop {
            let line = timeout(LONG, lines.next_line()).await.unwrap().unwrap().expect("Chromium starts");
            if let Some((_, url)) = line.split_once("ws://") {
                break url.trim().to_owned();
            }
        };
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let (address, path) = url.split_once('/').unwrap();
        Arc::new(Self { address: address.parse().unwrap(), path: format!("/{path}"), folder, _process: process })
    }

    fn session(self: &Arc<Self>) -> Arc<SessionHandle> {
        let browser: Arc<dyn Browser> = Arc::clone(self) as _;
        let activity = Arc::new(Activity::new(Clock::system()));
        Arc::new(SessionHandle {
            live: Some(LiveView::new(Arc::clone(&browser), Arc::clone(&activity))),
            rules: Arc::new(Rules { downloads: self.folder.join("downloads"), uploads: Vec::new() }),
            browser,
            activity,
            budget: Budget::default(),
            places: Arc::new(Semaphore::new(CLIENTS)),
            ended: CancellationToken::new(),
        })
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self._process.start_kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Browser for Chromium {
    fn connect(&self) -> BoxFuture<'_, io::Result<TcpStream>> {
        async move {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        }
        .boxed()
    }

    fn ws_path(&self) -> String {
        self.path.clone()
    }
}

/// A CDP client behind the relay.
struct Client {
    socket: WebSocketStream<DuplexStream>,
    next: u64,
    events: Vec<Value>,
    relay: tokio::task::JoinHandle<RelayEnd>,
}

impl Client {
    async fn connect(session: &Arc<SessionHandle>) -> Self {
        let (near, far) = tokio::io::duplex(64 << 10);
        let upstream = Upstream::connect(session.browser.as_ref(), &session.budget).await.unwrap();
        let session = Arc::clone(session);
        let relay = tokio::spawn(async move { relay_cdp(far, upstream, Source::Client, &session).await });
        let socket = WebSocketStream::from_raw_socket(near, Role::Client, Some(pipe::config(MAX_MESSAGE))).await;
        Self { socket, next: 0, events: Vec::new(), relay }
    }

    async fn message(&mut self) -> Option<Value> {
        loop {
            match timeout(LONG, self.socket.next()).await.expect("news in time") {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// The whole answer to a command.
    async fn ask(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).await.unwrap();
        loop {
            let answer = self.message().await.expect("an answer");
            if answer["id"] == self.next {
                return answer;
            }
            self.events.push(answer);
        }
    }

    async fn result(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        let mut answer = self.ask(session, method, params).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    async fn event(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.events.iter().position(|event| event["method"] == method) {
                return self.events.remove(at);
            }
            let event = self.message().await.expect("an event");
            self.events.push(event);
        }
    }

    /// A new page and the session on it.
    async fn page(&mut self, html: &str) -> (String, String) {
        let url = format!("data:text/html;base64,{}", base64::engine::general_purpose::STANDARD.encode(html));
        let target = self.result(None, "Target.createTarget", json!({"url": url})).await["targetId"].clone();
        let session = self.result(None, "Target.attachToTarget", json!({"targetId": target, "flatten": true})).await;
        let session = session["sessionId"].as_str().unwrap().to_owned();
        // The first document of a target is an empty one.
        self.until(&session, "location.protocol === 'data:' && document.readyState === 'complete'").await;
        (target.as_str().unwrap().to_owned(), session)
    }

    async fn value(&mut self, session: &str, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true});
        self.result(Some(session), "Runtime.evaluate", params).await["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    async fn until(&mut self, session: &str, expression: &str) {
        let wait = async {
            while self.value(session, expression).await != true {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LONG, wait).await.unwrap_or_else(|_| panic!("never true: {expression}"));
    }
}

#[tokio::test]
async fn a_client_drives_the_browser_and_big_messages_pass() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let mut client = Client::connect(&session).await;
    let (_, page) = client.page("<h1>hello</h1>").await;
    assert_eq!(client.value(&page, "document.body.innerText").await, "hello");

    let answer = client.value(&page, "'x'.repeat(8 << 20)").await;
    assert_eq!(answer.as_str().unwrap().len(), 8 << 20);
    let argument = format!("'{}'.length", "y".repeat(4 << 20));
    assert_eq!(client.value(&page, &argument).await, 4 << 20);

    // Noise does not compress: a picture of some megabytes.
    let noise = "const c = document.createElement('canvas'); c.width = 1280; c.height = 1400; document.body.append(c); \
        const g = c.getContext('2d'), d = g.createImageData(1280, 1400); \
        for (let i = 0; i < d.data.length; i += 65536) crypto.getRandomValues(d.data.subarray(i, i + 65536)); \
        for (let i = 3; i < d.data.length; i += 4) d.data[i] = 255; g.putImageData(d, 0, 0); true";
    assert_eq!(client.value(&page, noise).await, true);
    let before = session.activity.last_used();
    let shot = client
        .result(
            Some(&page),
            "Page.captureScreenshot",
            json!({"captureBeyondViewport": true, "clip":
        {"x": 0, "y": 0, "width": 1280, "height": 1400, "scale": 1}}),
        )
        .await;
    assert!(shot["data"].as_str().unwrap().len() > 5 << 20, "{}", shot["data"].as_str().unwrap().len());
    assert!(session.activity.last_used().ms_since(before) > 10);
    assert_eq!(session.activity.clients(), 1);
}

#[tokio::test]
async fn closing_ends_one_client_and_neither_the_browser_nor_the_others() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let (mut first, mut second) = (Client::connect(&session).await, Client::connect(&session).await);
    let (target, page) = first.page("<p>stays</p>").await;
    let answer = first.ask(None, "Browser.close", json!({})).await;
    assert_eq!(answer["result"], json!({}));
    assert!(first.message().await.is_none());
    assert_eq!(first.relay.await.unwrap(), RelayEnd::Client);

    // Sessions are a client's own; pages are everybody's.
    let lost = second.ask(Some(&page), "Runtime.evaluate", json!({"expression": "1"})).await;
    assert!(lost["error"]["message"].as_str().unwrap().contains("Session"), "{lost}");
    let targets = second.result(None, "Target.getTargets", json!({})).await;
    assert!(targets["targetInfos"].as_array().unwrap().iter().any(|t| t["targetId"] == target));
    assert_eq!(session.activity.clients(), 1);

    session.ended.cancel();
    assert!(second.message().await.is_none());
    assert_eq!(second.relay.await.unwrap(), RelayEnd::Session);
}

#[tokio::test]
async fn refused_commands_get_an_error_and_the_connection_goes_on() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let mut client = Client::connect(&session).await;
    let (_, page) = client.page("<input type=file id=f>").await;
    std::fs::write(chromium.folder.join("downloads/mine.txt"), "x").unwrap();
    let node = client.result(Some(&page), "Runtime.evaluate", json!({"expression": "f"})).await;
    let object = &node["result"]["objectId"];
    for (method, params) in [
        ("Page.crash", json!({})),
        ("Browser.crash", json!({})),
        ("SystemInfo.getInfo", json!({})),
        ("Target.exposeDevToolsProtocol", json!({"targetId": "x"})),
        ("Page.navigate", json!({"url": "file:///etc/passwd"})),
        ("DOM.setFileInputFiles", json!({"files": ["/etc/passwd"], "objectId": object})),
        ("Target.createBrowserContext", json!({"proxyServer": "direct://"})),
    ] {
        let answer = client.ask(Some(&page), method, params).await;
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().starts_with(method), "{answer}");
        assert_eq!(answer["sessionId"], json!(page));
    }
    let own = chromium.folder.join("downloads/mine.txt");
    client.result(Some(&page), "DOM.setFileInputFiles", json!({"files": [own], "objectId": object})).await;
    assert_eq!(client.value(&page, "f.files[0].name").await, "mine.txt");

    // Binary frames end the connection, not the browser.
    client.socket.send(Message::binary(vec![0xd8, 0x5a])).await.unwrap();
    assert!(client.message().await.is_some_and(|m| m["error"].is_object()));
    assert!(client.message().await.is_none());
    Client::connect(&session).await.result(None, "Browser.getVersion", json!({})).await;
}

#[tokio::test]
async fn a_message_beyond_the_bound_ends_its_client_by_its_code_and_no_other() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let mut other = Client::connect(&session).await;
    // Said in one frame's head, and come to by two frames that are small enough.
    let half = MAX_REQUEST / 2 + 1;
    let whole = vec![(head_of_frame(0x81, MAX_REQUEST + 1), 0)];
    let halves = vec![(head_of_frame(0x01, half), half), (head_of_frame(0x80, half), half)];
    for frames in [whole, halves] {
        let (mut near, far) = tokio::io::duplex(1 << 20);
        let upstream = Upstream::connect(session.browser.as_ref(), &session.budget).await.unwrap();
        let of_relay = Arc::clone(&session);
        let relay = tokio::spawn(async move { relay_cdp(far, upstream, Source::Client, &of_relay).await });
        for (head, length) in frames {
            near.write_all(&head).await.unwrap();
            tokio::io::copy(&mut tokio::io::repeat(b'x').take(length as u64), &mut near).await.unwrap();
        }
        let mut socket = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        let end = loop {
            match timeout(LONG, socket.next()).await.expect("an end in time") {
                Some(Ok(Message::Close(end))) => break end.expect("a reason"),
                Some(Ok(_)) => {}
                ended => panic!("no goodbye: {ended:?}"),
            }
        };
        assert_eq!((u16::from(end.code), end.reason.contains("100 MiB")), (1009, true), "{end:?}");
        drop(socket);
        assert_eq!(relay.await.unwrap(), RelayEnd::Client);
    }
    other.result(None, "Browser.getVersion", json!({})).await;
}

/// The beginning of a frame whose mask changes nothing.
fn head_of_frame(first: u8, length: usize) -> Vec<u8> {
    let mut head = vec![first, 0xff];
    head.extend_from_slice(&(length as u64).to_be_bytes());
    head.extend_from_slice(&[0; 4]);
    head
}

#[tokio::test]
async fn others_have_their_turn_beside_a_crowd_of_small_messages() {
    /// Pings that have come before the first is read.
    const CROWD: usize = 50_000;
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let upstream = Upstream::connect(session.browser.as_ref(), &session.budget).await.unwrap();
    let (mut near, far) = tokio::io::duplex(2 << 20);
    // Masked pings without contents, and a command at the end.
    let command = br#"{"id":1,"method":"Browser.getVersion"}"#;
    let mut sent = [0x89, 0x80, 0, 0, 0, 0].repeat(CROWD);
    sent.extend([0x81, 0x80 | command.len() as u8, 0, 0, 0, 0]);
    sent.extend(command);
    near.write_all(&sent).await.unwrap();
    let relay = tokio::spawn(async move { relay_cdp(far, upstream, Source::Client, &session).await });
    let turns = Arc::new(AtomicUsize::new(0));
    let other = tokio::spawn({
        let turns = Arc::clone(&turns);
        async move {
            loop {
                turns.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        }
    });
    let mut answered = Vec::new();
    while !String::from_utf8_lossy(&answered).contains("protocolVersion") {
        timeout(LONG, near.read_buf(&mut answered)).await.expect("an answer in time").unwrap();
    }
    let turns = turns.load(Ordering::Relaxed);
    assert!(turns > CROWD / 1_000, "{turns} turns beside {CROWD} messages");
    other.abort();
    relay.abort();
}

#[tokio::test]
async fn downloads_land_in_the_sessions_folder() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let mut client = Client::connect(&session).await;
    let target = client.result(None, "Target.createTarget", json!({"url": "about:blank"})).await;
    let page =
        client.result(None, "Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true})).await;
    let page = page["sessionId"].as_str().unwrap().to_owned();
    let asked = json!({"behavior": "allowAndName", "downloadPath": "/tmp/elsewhere", "eventsEnabled": true});
    client.result(None, "Browser.setDownloadBehavior", asked).await;
    let click = "const a = document.createElement('a'); a.download = 'got.txt'; a.href = 'data:text/plain,content'; \
        document.body.append(a); a.click()";
    client.value(&page, click).await;
    let begun = client.event("Browser.downloadWillBegin").await;
    let file = chromium.folder.join("downloads").join(begun["params"]["guid"].as_str().unwrap());
    let wait = async {
        while std::fs::read_to_string(&file).unwrap_or_default() != "content" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, wait).await.expect("the file is there");
}

#[tokio::test]
async fn code_boxes_find_the_browser_on_their_socket_behind_the_same_filter() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let path = chromium.folder.join("cdp.sock");
    let serving = tokio::spawn(serve_cdp_socket(UnixListener::bind(&path).unwrap(), Arc::clone(&session)));

    let get = async |target: &str| {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:9222\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(LONG, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        answer
    };
    let version = get("/json/version").await;
    let body: Value = serde_json::from_str(version.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert!(body["Browser"].as_str().unwrap().contains("Chrome"), "{body}");
    let address = body["webSocketDebuggerUrl"].as_str().unwrap().to_owned();
    assert_eq!(address, format!("ws://127.0.0.1:9222{}", chromium.ws_path()));
    for refused in ["/json/list", "/json/new?about:blank", "/", "/json/close/x"] {
        assert!(get(refused).await.starts_with("HTTP/1.1 404"), "{refused}");
    }

    let idle = session.activity.idle();
    for target in [address.as_str(), "ws://127.0.0.1:9222/"] {
        let stream = UnixStream::connect(&path).await.unwrap();
        let (mut socket, _) = tokio_tungstenite::client_async(target, stream).await.unwrap();
        socket.send(Message::text(r#"{"id":1,"method":"Page.crash"}"#)).await.unwrap();
        let answer = timeout(LONG, socket.next()).await.unwrap().unwrap().unwrap();
        assert!(answer.to_text().unwrap().contains("Page.crash is not open"), "{answer}");
    }
    assert!(session.activity.idle() > idle, "what a box says by itself is no use of the session");
    session.ended.cancel();
    timeout(LONG, serving).await.unwrap().unwrap();
}

/// A viewer of the live view.
struct Viewer {
    socket: WebSocketStream<DuplexStream>,
    state: Value,
    /// The latest picture, head included.
    picture: Vec<u8>,
    pictures: usize,
    notices: Vec<Value>,
    closed: Option<u16>,
    /// Acknowledges pictures as a page does.
    prompt: bool,
}

impl Viewer {
    async fn open(session: &SessionHandle, control: bool) -> Self {
        let (near, far) = tokio::io::duplex(256 << 10);
        let view = Arc::clone(session.live.as_ref().unwrap());
        tokio::spawn(async move { live::serve_viewer(&view, far, control).await });
        let socket = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        let mut viewer = Self {
            socket,
            state: Value::Null,
            picture: Vec::new(),
            pictures: 0,
            notices: Vec::new(),
            closed: None,
            prompt: true,
        };
        let hello = viewer.socket.next().await.unwrap().unwrap();
        assert_eq!(hello, Message::text(json!({"type": "hello", "control": control}).to_string()));
        viewer
    }

    async fn send(&mut self, order: Value) {
        self.socket.send(Message::text(order.to_string())).await.unwrap();
    }

    /// Takes one message. `false`: the connection is closed.
    async fn take(&mut self) -> bool {
        match self.socket.next().await {
            Some(Ok(Message::Binary(picture))) => {
                self.picture = picture.to_vec();
                self.pictures += 1;
                if self.prompt {
                    self.send(json!({"type": "ack"})).await;
                }
            }
            Some(Ok(Message::Text(text))) => {
                let message: Value = serde_json::from_str(&text).unwrap();
                if message["type"] == "state" { self.state = message } else { self.notices.push(message) }
            }
            Some(Ok(Message::Close(frame))) => self.closed = frame.map(|f| f.code.into()),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return false,
        }
        true
    }

    async fn until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let wait = async {
            while !done(self) {
                assert!(self.take().await, "closed while waiting for {what}");
            }
        };
        let in_time = timeout(LONG, wait).await.is_ok();
        assert!(in_time, "never: {what}; {} {:?} pictures {}", self.state, self.notices, self.pictures);
    }

    /// Takes what comes for this long.
    async fn watch(&mut self, time: Duration) {
        let _ = timeout(time, async { while self.take().await {} }).await;
    }

    async fn click(&mut self, x: f64, y: f64) {
        for (event, buttons) in [("move", 0), ("down", 1), ("up", 0)] {
            self.send(json!({"type": "mouse", "event": event, "x": x, "y": y, "button": 0, "buttons": buttons,
                "clicks": if event == "move" { 0 } else { 1 }}))
                .await;
        }
    }

    async fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            let code = format!("Key{}", c.to_ascii_uppercase());
            let key_code = c.to_ascii_uppercase() as u32;
            self.send(json!({"type": "key", "event": "down", "key": c, "code": code, "keyCode": key_code, "text": c}))
                .await;
            self.send(json!({"type": "key", "event": "up", "key": c, "code": code, "keyCode": key_code})).await;
        }
    }
}

const ANIMATED: &str = "<body style='margin:0'><div id=box style='width:200px;height:200px;background:#08f'></div>\
    <script>let n = 0; (function turn() { n++; box.style.transform = `translateX(${n % 900}px) rotate(${n}deg)`; \
    requestAnimationFrame(turn); })()</script>";

#[tokio::test]
async fn three_viewers_see_one_screencast_and_a_slow_one_holds_up_nobody() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let mut client = Client::connect(&session).await;
    client.page(ANIMATED).await;
    let mut viewers =
        [Viewer::open(&session, false).await, Viewer::open(&session, false).await, Viewer::open(&session, true).await];
    let mut slow = Viewer::open(&session, false).await;
    slow.prompt = false;
    for viewer in viewers.iter_mut().chain([&mut slow]) {
        viewer.until("a picture", |v| v.pictures > 0).await;
    }
    let before: Vec<usize> = viewers.iter().map(|v| v.pictures).collect();
    let taken = FIGURES.frames.load(Ordering::Relaxed);
    let began = clock::instant();
    let time = Duration::from_secs(3);
    futures_util::future::join_all(viewers.iter_mut().chain([&mut slow]).map(|v| v.watch(time))).await;
    let seconds = began.elapsed().as_secs_f64();
    for (viewer, before) in viewers.iter().zip(&before) {
        let rate = (viewer.pictures - before) as f64 / seconds;
        assert!(rate <= 16.0, "{rate} pictures a second");
        assert_eq!(viewer.picture[0], 1);
        let size = |at: usize| u16::from_be_bytes([viewer.picture[at], viewer.picture[at + 1]]);
        assert_eq!((size(2), viewer.picture[8..10] == [0xff, 0xd8]), (1280, true));
        assert!(size(4) > 500);
    }
    // Other tests of this process may have views of their own, so this is an upper bound for theirs and ours.
    assert!(((FIGURES.frames.load(Ordering::Relaxed) - taken) as f64) < 4.0 * seconds * 14.0);
    // How many a second is the machine's: the slow one holds nobody up.
    let further = viewers.iter_mut().zip(before).map(async |(viewer, before)| {
        viewer.until("pictures that follow each other", |v| v.pictures >= before + 18).await;
    });
    futures_util::future::join_all(further).await;
    slow.until("those on the way", |v| v.pictures >= 3).await;
    slow.watch(Duration::from_millis(100)).await;
    assert_eq!(slow.pictures, 3, "three are on the way and no more");
    assert_eq!(session.live.as_ref().unwrap().stats(), live::LiveStats { viewers: 4, controllers: 1 });

    // A still page: who comes late sees the last picture at once.
    let mut late = Viewer::open(&session, false).await;
    late.until("a picture", |v| v.pictures > 0).await;
    session.live.as_ref().unwrap().end("deleted");
    late.until("the end", |v| v.closed.is_some()).await;
    assert_eq!((late.closed, &late.notices[0]["reason"]), (Some(4000), &json!("deleted")));
}

#[tokio::test]
async fn nothing_runs_while_nobody_watches() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let mut client = Client::connect(&session).await;
    let (target, page) = client.page(ANIMATED).await;
    client.result(None, "Target.detachFromTarget", json!({"sessionId": page})).await;
    let is_attached = async |client: &mut Client| {
        let targets = client.result(None, "Target.getTargets", json!({})).await;
        targets["targetInfos"].as_array().unwrap().iter().find(|t| t["targetId"] == target).unwrap()["attached"].clone()
    };
    assert_eq!(is_attached(&mut client).await, false);
    let mut viewer = Viewer::open(&session, true).await;
    viewer.until("a picture", |v| v.pictures > 0).await;
    assert_eq!(is_attached(&mut client).await, true);
    drop(viewer);
    let view = session.live.as_ref().unwrap();
    let wait = async {
        while view.stats().viewers > 0 || is_attached(&mut client).await == true {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, wait).await.expect("nothing is left of the view");

    // With the next viewer the pictures come back.
    let mut viewer = Viewer::open(&session, false).await;
    viewer.until("a picture", |v| v.pictures > 1).await;
}

#[tokio::test]
async fn input_reaches_the_page_from_viewers_with_control_only() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let mut client = Client::connect(&session).await;
    let (_, page) = client
        .page(
            "<body style='margin:0;height:5000px'><input id=i style='position:fixed;left:0;top:0;width:300px;height:40px'>\
             <button id=b style='position:fixed;left:0;top:50px;width:300px;height:40px' onclick='this.clicked=true'>x</button>\
             <div id=t style='position:fixed;left:0;top:100px;width:300px;height:100px' onclick='this.tapped=true'></div>",
        )
        .await;
    let mut reader = Viewer::open(&session, false).await;
    let mut driver = Viewer::open(&session, true).await;
    driver.until("a picture", |v| v.pictures > 0).await;

    let idle_before = session.activity.last_used();
    reader.click(20.0, 60.0).await;
    reader.send(json!({"type": "navigate", "url": "about:blank"})).await;
    driver.click(20.0, 20.0).await;
    driver.type_text("hello").await;
    client.until(&page, "i.value === 'hello'").await;
    assert!(session.activity.last_used() >= idle_before);
    driver.send(json!({"type": "key", "event": "down", "key": "Backspace", "code": "Backspace", "keyCode": 8})).await;
    driver.send(json!({"type": "compose", "text": "かん"})).await;
    driver.send(json!({"type": "text", "text": "漢字 paste"})).await;
    client.until(&page, "i.value === 'hell漢字 paste'").await;
    // What is selected comes back for the clipboard.
    driver
        .send(json!({"type": "key", "event": "down", "key": "a", "code": "KeyA", "keyCode": 65, "modifiers": 2}))
        .await;
    // Cut: the selection is read after what selected it and before what takes it away.
    driver.send(json!({"type": "copy"})).await;
    driver.send(json!({"type": "key", "event": "down", "key": "Delete", "code": "Delete", "keyCode": 46})).await;
    client.until(&page, "i.value === ''").await;
    driver.until("the clipboard", |v| v.notices.iter().any(|n| n["text"] == "hell漢字 paste")).await;
    assert_eq!(client.value(&page, "b.clicked").await, Value::Null, "the reader's click was dropped");

    driver.click(20.0, 60.0).await;
    client.until(&page, "b.clicked === true").await;
    let finger = json!([{"id": 1, "x": 50, "y": 150}]);
    driver.send(json!({"type": "touch", "event": "start", "points": finger})).await;
    driver.send(json!({"type": "touch", "event": "end", "points": []})).await;
    client.until(&page, "t.tapped === true").await;
    driver.send(json!({"type": "wheel", "x": 600, "y": 400, "dx": 0, "dy": 400})).await;
    client.until(&page, "scrollY >= 300").await;

    driver.send(json!({"type": "viewport", "width": 800, "height": 600})).await;
    client.until(&page, "innerWidth === 800").await;
    driver.send(json!({"type": "viewport"})).await;
    client.until(&page, "innerWidth === 1280").await;

    driver.send(json!({"type": "navigate", "url": "file:///etc/passwd"})).await;
    driver.until("a refusal", |v| v.notices.iter().any(|n| n["text"].as_str().unwrap().contains("Only http"))).await;
    // Nonsense and floods do no harm.
    for text in ["", "{}", "[[[", r#"{"type":"mouse","event":"down","x":"1","y":0}"#] {
        driver.socket.send(Message::text(text)).await.unwrap();
    }
    for x in 0..2_000 {
        driver.send(json!({"type": "mouse", "event": "move", "x": x % 1280, "y": 300})).await;
    }
    driver.click(20.0, 20.0).await;
    driver.send(json!({"type": "text", "text": "!"})).await;
    client.until(&page, "i.value.includes('!')").await;
}

#[tokio::test]
async fn the_view_follows_tabs_of_every_context_and_a_picked_one_stays() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let mut client = Client::connect(&session).await;
    let (first, page) = client.page("<title>first</title>").await;
    let mut viewer = Viewer::open(&session, true).await;
    let active = |v: &Viewer| v.state["active"].as_str().unwrap_or_default().to_owned();
    viewer.until("the first tab", |v| active(v) == first).await;

    let context = client.result(None, "Target.createBrowserContext", json!({})).await["browserContextId"].clone();
    let second = client
        .result(
            None,
            "Target.createTarget",
            json!({"url": "data:text/html,<title>second</title>", "browserContextId": context}),
        )
        .await["targetId"]
        .as_str()
        .unwrap()
        .to_owned();
    viewer.until("the second tab", |v| active(v) == second && v.pictures > 0).await;
    viewer.until("its title", |v| v.state["tabs"].as_array().unwrap().iter().any(|t| t["title"] == "second")).await;
    // The view follows the tab in which something happens.
    client.value(&page, "location.href = 'data:text/html,<title>moved</title>'").await;
    let refused =
        client.result(Some(&page), "Page.navigate", json!({"url": "data:text/html,<title>moved</title>"})).await;
    assert!(refused["errorText"].is_null());
    viewer.until("the first tab again", |v| active(v) == first).await;

    viewer.send(json!({"type": "tab", "id": second})).await;
    viewer.until("the picked tab", |v| active(v) == second).await;
    client.result(Some(&page), "Page.navigate", json!({"url": "data:text/html,<title>elsewhere</title>"})).await;
    viewer.until("news of the other", |v| v.state.to_string().contains("elsewhere")).await;
    assert_eq!(active(&viewer), second);
    viewer.send(json!({"type": "closeTab", "id": second})).await;
    viewer.until("the other tab", |v| active(v) == first).await;
    viewer.send(json!({"type": "newTab"})).await;
    viewer.until("a new tab", |v| active(v) != first && v.state["tabs"].as_array().unwrap().len() >= 2).await;

    // Back and forward on the tab that has a history.
    viewer.send(json!({"type": "tab", "id": first})).await;
    viewer.until("a past", |v| active(v) == first && v.state["back"] == true && v.state["forward"] == false).await;
    viewer.send(json!({"type": "back"})).await;
    viewer.until("a future", |v| v.state["forward"] == true).await;
    viewer.until("the page before", |v| v.state.to_string().contains("moved")).await;
}

#[tokio::test]
async fn dialogs_are_shown_and_answered_and_hang_nobody() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let mut client = Client::connect(&session).await;
    let (target, page) = client.page("<body>dialogs").await;
    let mut viewer = Viewer::open(&session, true).await;
    viewer.until("the tab", |v| v.state["active"] == target.as_str() && v.pictures > 0).await;

    let ask = "setTimeout(() => window.answer = prompt('your name?', 'nobody'), 0); true";
    client.value(&page, ask).await;
    viewer.until("the dialog", |v| v.state["dialog"]["kind"] == "prompt").await;
    assert_eq!(viewer.state["dialog"]["message"], "your name?");
    assert_eq!(viewer.state["dialog"]["default"], "nobody");
    viewer.send(json!({"type": "dialog", "accept": true, "text": "Ada"})).await;
    client.until(&page, "window.answer === 'Ada'").await;
    viewer.until("no dialog", |v| v.state["dialog"].is_null()).await;

    client.value(&page, "setTimeout(() => window.sure = confirm('sure?'), 0); true").await;
    viewer.until("the dialog", |v| v.state["dialog"]["kind"] == "confirm").await;
    viewer.send(json!({"type": "dialog", "accept": false})).await;
    client.until(&page, "window.sure === false").await;

    // Without anybody who could answer, a dialog goes as it would without a viewer.
    client.value(&page, "setTimeout(() => window.later = confirm('later?'), 500); true").await;
    drop(client);
    drop(viewer);
    let mut reader = Viewer::open(&session, false).await;
    reader.until("a picture", |v| v.pictures > 0).await;
    reader.watch(Duration::from_millis(1_000)).await;
    let mut client = Client::connect(&session).await;
    let attached = client.result(None, "Target.attachToTarget", json!({"targetId": target, "flatten": true})).await;
    client.until(attached["sessionId"].as_str().unwrap(), "window.later === false").await;
}

#[tokio::test]
async fn a_file_chooser_takes_the_viewers_file() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let mut client = Client::connect(&session).await;
    let (target, page) = client
        .page("<body style='margin:0'><input type=file id=f style='width:300px;height:60px' onchange='this.changed=true'>")
        .await;
    let mut viewer = Viewer::open(&session, true).await;
    viewer.until("the tab", |v| v.state["active"] == target.as_str() && v.pictures > 0).await;
    viewer.click(20.0, 20.0).await;
    viewer.until("the chooser", |v| v.state["chooser"].is_object()).await;
    assert_eq!(viewer.state["chooser"]["multiple"], false);
    let head = json!({"files": [{"name": "note.txt", "type": "text/plain", "size": 4}]}).to_string();
    let mut message = (head.len() as u32).to_be_bytes().to_vec();
    message.extend_from_slice(head.as_bytes());
    message.extend_from_slice(b"text");
    viewer.socket.send(Message::binary(message)).await.unwrap();
    client.until(&page, "f.changed === true && f.files[0].name === 'note.txt'").await;
    let text = json!({"expression": "f.files[0].text()", "awaitPromise": true, "returnByValue": true});
    assert_eq!(client.result(Some(&page), "Runtime.evaluate", text).await["result"]["value"], "text");
}

#[tokio::test]
async fn a_dead_browser_ends_clients_and_sends_viewers_away_to_try_again() {
    let chromium = Chromium::start().await;
    let session = chromium.session();
    let mut client = Client::connect(&session).await;
    let mut viewer = Viewer::open(&session, false).await;
    viewer.until("a picture", |v| v.pictures > 0).await;
    // Only this test's own process.
    let pid = rustix::process::Pid::from_raw(i32::try_from(chromium._process.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    while client.message().await.is_some() {}
    assert_eq!(client.relay.await.unwrap(), RelayEnd::Browser);
    viewer.until("the end", |v| v.closed.is_some()).await;
    assert_eq!(viewer.closed, Some(4001));
}

#[test]
fn activity_counts_from_the_last_use() {
    let clock = Clock::system();
    let activity = Activity::new(clock.clone());
    clock.advance(Duration::from_secs(300));
    assert!(activity.idle() >= Duration::from_secs(300));
    assert!(clock.now().ms_since(activity.last_used()) >= 299_000);
    activity.touch();
    assert!(activity.idle() < Duration::from_secs(30));
    assert!(clock.now().ms_since(activity.last_used()) < 30_000);
}
