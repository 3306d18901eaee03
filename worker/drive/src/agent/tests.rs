//! The agent's hands in a real Chromium, on the task's site and on one that is not.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::timeout;
use url::Url;

use super::act::perform;
use super::driver::{BrowserDriver, DriverError};
use super::protocol::Action;
use super::site::Home;
use crate::browser::cdp::Cdp;
use crate::exec::Free;
use crate::relay::Browser as _;
use crate::relay::tests::Chromium;

const LONG: Duration = Duration::from_secs(60);

/// Two sites on one port of 127.0.0.1, the task's, and 127.0.0.2.
struct Sites {
    port: u16,
    /// Each request: its host and its path with the query.
    heard: Arc<Mutex<Vec<String>>>,
}

impl Sites {
    async fn start() -> Self {
        let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = first.local_addr().unwrap().port();
        let second = TcpListener::bind(("127.0.0.2", port)).await.unwrap();
        let heard = Arc::default();
        for (host, listener) in [("home", first), ("foreign", second)] {
            tokio::spawn(serve(host, listener, Arc::clone(&heard)));
        }
        Self { port, heard }
    }

    fn home(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits until something was asked for so many times.
    async fn wait_for(&self, what: &str, times: usize) {
        let wait = async {
            while self.heard().iter().filter(|heard| heard.starts_with(what)).count() < times {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LONG, wait).await.unwrap_or_else(|_| panic!("nobody asked for {what}: {:?}", self.heard()));
    }
}

async fn serve(host: &'static str, listener: TcpListener, heard: Arc<Mutex<Vec<String>>>) {
    let port = listener.local_addr().unwrap().port();
    while let Ok((mut stream, _)) = listener.accept().await {
        let heard = Arc::clone(&heard);
        tokio::spawn(async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap_or(0) > 0 {}
            let head = String::from_utf8_lossy(&head).into_owned();
            let target = head.split(' ').nth(1).unwrap_or("/").to_owned();
            heard.lock().unwrap().push(format!("{host} {target}"));
            let foreign = format!("http://127.0.0.2:{port}");
            let (mut more, mut body) = (String::new(), String::new());
            match target.split('?').next().unwrap() {
                "/form" => {
                    body = format!(
                        "<title>form</title><form action=/sent><input name=name aria-label=Name><textarea aria-label=Note>\
                         </textarea></form><div contenteditable role=textbox aria-label=Rich style='height:40px'>old</div>\
                         <iframe src='{foreign}/grab'></iframe>"
                    );
                }
                // Holds the focus, takes it back again and again, and tells of all it gets.
                "/grab" => {
                    body = "<input id=i><script>
                        const tell = what => fetch('/heard?' + encodeURIComponent(what));
                        for (const type of ['keydown', 'keypress', 'beforeinput', 'input', 'keyup', 'paste'])
                          addEventListener(type, e => tell(type + (e.key || e.data)), true);
                        const grab = () => { window.focus(); i.focus(); };
                        setInterval(grab, 5);
                        addEventListener('blur', grab);
                        setInterval(() => fetch(document.hasFocus() ? '/has-focus' : '/has-none'), 50);
                        </script>"
                        .to_owned();
                }
                "/plain" => {
                    body =
                        "<title>plain</title><form action=/sent><input name=name autofocus aria-label=Name><button>Go\
                        </button></form>"
                            .to_owned();
                }
                "/hang" => body = "<title>hang</title><button onclick='for(;;);'>Hang</button>".to_owned(),
                "/stay" => {
                    body = "<title>stay</title><button>Touch</button>
                        <script>onbeforeunload = event => { event.preventDefault(); return event.returnValue = '?'; }</script>"
                        .to_owned();
                }
                "/link" => body = format!("<title>link</title><a href='{foreign}/linked'>Leave</a>"),
                "/inner" => more = "location: /plain\r\n".to_owned(),
                "/out" => more = format!("location: {foreign}/stolen?by-redirect\r\n"),
                "/hops" => more = "location: /out\r\n".to_owned(),
                "/script" => body = format!("<script>location = '{foreign}/stolen?by-script'</script>"),
                "/meta" => body = format!("<meta http-equiv=refresh content='0;url={foreign}/stolen?by-meta'>"),
                _ => {}
            }
            let status = if more.is_empty() { "200 OK" } else { "302 Found" };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/html\r\n{more}connection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all((head + &body).as_bytes()).await;
        });
    }
}

struct Desk {
    _chromium: Arc<Chromium>,
    sites: Sites,
    home: Home,
    driver: BrowserDriver,
}

impl Desk {
    async fn open() -> Self {
        let (chromium, sites) = (Chromium::start().await, Sites::start().await);
        let cdp = Cdp::connect_over(chromium.connect().await.unwrap(), &chromium.ws_path()).await.unwrap();
        let driver = BrowserDriver::open(cdp, None, Arc::new(|| Box::pin(async { 0 }))).await.unwrap();
        let home = Home::new(&Url::parse(&sites.home("/")).unwrap(), "a task that names no site");
        Self { _chromium: chromium, sites, home, driver }
    }

    async fn act(&mut self, action: Action) -> Result<String, DriverError> {
        perform(&mut self.driver, &self.home, &action).await
    }

    async fn go(&mut self, path: &str) -> Result<String, DriverError> {
        self.act(Action::Navigate { url: self.sites.home(path) }).await
    }

    /// The page's text, and the reference on the line with these words.
    async fn see(&mut self, words: &str) -> (String, String) {
        let text = self.driver.look(false).await.unwrap().snapshot;
        let line = text.lines().find(|line| line.contains(words) && line.contains("[ref="));
        let line = line.unwrap_or_else(|| panic!("nothing says {words}: {text}"));
        (line.to_owned(), line.split("[ref=").nth(1).unwrap().split(']').next().unwrap().to_owned())
    }

    async fn fill(&mut self, words: &str, text: &str, submit: bool) -> Result<String, DriverError> {
        let (_, element) = self.see(words).await;
        self.act(Action::Fill { element, text: text.to_owned(), submit }).await
    }
}

fn is_foreign<T: std::fmt::Debug>(done: &Result<T, DriverError>) -> bool {
    matches!(done, Err(DriverError::Refused(why)) if why.starts_with("Refused: this is not the task's site"))
}

#[tokio::test]
async fn a_foreign_frame_that_grabs_the_focus_gets_no_key_and_no_letter() {
    let mut desk = Desk::open().await;
    desk.go("/form").await.unwrap();
    desk.sites.wait_for("foreign /has-focus", 2).await;
    for round in 0..4 {
        for (field, text) in [("\"Name\"", "wonderland"), ("\"Note\"", "two\nlines"), ("\"Rich\"", "new words")] {
            let text = format!("{text} {round}");
            desk.fill(field, &text, false).await.unwrap();
            let (line, _) = desk.see(field).await;
            assert!(line.contains(text.lines().last().unwrap()), "{field}: {line}");
        }
        for key in ["x", "Space", "Control+a", "Control+c", "Control+v", "Tab", "Escape", "ArrowDown", "PageDown"] {
            // Done to the page's own element, or refused because the frame is known to have the focus.
            let pressed = desk.act(Action::Press { key: key.to_owned() }).await;
            assert!(pressed.is_ok() || key == "Control+v" || is_foreign(&pressed), "{key}: {pressed:?}");
        }
        desk.sites.wait_for("foreign /has-focus", 3 + 2 * round).await;
    }
    desk.fill("\"Name\"", "", false).await.unwrap();
    desk.fill("\"Name\"", "open sesame", true).await.unwrap();
    desk.sites.wait_for("home /sent?name=open+sesame", 1).await;
    let heard = desk.sites.heard();
    assert!(!heard.iter().any(|heard| heard.starts_with("foreign /heard")), "{heard:?}");
}

#[tokio::test]
async fn keys_reach_the_task_s_own_page() {
    let mut desk = Desk::open().await;
    desk.go("/plain").await.unwrap();
    desk.fill("\"Name\"", "wond", false).await.unwrap();
    for key in ["e", "r", "Space", "!", "Backspace"] {
        desk.act(Action::Press { key: key.to_owned() }).await.unwrap();
    }
    let (line, _) = desk.see("\"Name\"").await;
    assert!(line.contains("wonder") && !line.contains('!'), "{line}");
    desk.act(Action::Press { key: "Enter".to_owned() }).await.unwrap();
    desk.sites.wait_for("home /sent?name=wonder", 1).await;
}

#[tokio::test]
async fn an_address_that_leads_elsewhere_is_not_followed_there() {
    let mut desk = Desk::open().await;
    desk.go("/inner").await.unwrap();
    assert_eq!(desk.driver.look(false).await.unwrap().title, "plain");
    for path in ["/out", "/hops"] {
        let went = desk.go(path).await;
        assert!(is_foreign(&went), "{path}: {went:?}");
        let opened = desk.act(Action::NewTab { url: Some(desk.sites.home(path)) }).await;
        assert!(is_foreign(&opened), "{path} in a tab: {opened:?}");
    }
    for path in ["/script", "/meta"] {
        // The page leads on by itself, before or after it has come to rest: either is refused.
        let went = desk.go(path).await;
        assert!(is_foreign(&went) || went.is_ok(), "{path}: {went:?}");
        let kept = async {
            while went.is_ok() && desk.driver.kept_from().is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(LONG, kept).await.unwrap_or_else(|_| panic!("{path} leads nowhere"));
    }
    // A link is the page's own word, and may be followed.
    desk.go("/link").await.unwrap();
    let (_, element) = desk.see("\"Leave\"").await;
    desk.act(Action::Click { element }).await.unwrap();
    desk.sites.wait_for("foreign /linked", 1).await;
    let heard = desk.sites.heard();
    assert!(!heard.iter().any(|heard| heard.starts_with("foreign /stolen")), "{heard:?}");
}

#[tokio::test]
async fn an_address_counts_as_opened_when_the_page_has_left() {
    let mut desk = Desk::open().await;
    desk.go("/stay").await.unwrap();
    let (_, element) = desk.see("\"Touch\"").await;
    desk.act(Action::Click { element }).await.unwrap();
    let asked = desk.go("/plain").await;
    assert!(matches!(&asked, Err(DriverError::Refused(why)) if why.contains("dialog")), "{asked:?}");
    desk.act(Action::Dialog { accept: false, text: None }).await.unwrap();
    assert_eq!(desk.driver.look(false).await.unwrap().title, "stay");
    let (_, element) = desk.see("\"Touch\"").await;
    desk.act(Action::Click { element }).await.unwrap();
    desk.go("/plain").await.unwrap_err();
    desk.act(Action::Dialog { accept: true, text: None }).await.unwrap();
    let arrives = async {
        while desk.driver.look(false).await.unwrap().title != "plain" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, arrives).await.unwrap();
    // The same page once more, a place in it, and that place again are arrivals.
    for path in ["/plain", "/plain#here", "/plain#here", "/plain"] {
        let went = desk.go(path).await;
        assert!(went.is_ok(), "{path}: {went:?}");
    }
}

#[tokio::test]
async fn a_page_that_a_script_blocks_is_freed_and_the_agent_goes_on() {
    let (chromium, sites) = (Chromium::start().await, Sites::start().await);
    let connect = async || Cdp::connect_over(chromium.connect().await.unwrap(), &chromium.ws_path()).await.unwrap();
    let soon = || weir_shared::clock::deadline(LONG);
    // Attached before, as the session's own connection is.
    let watcher = connect().await;
    let targets: Value = watcher.send_as("Target.getTargets", None, json!({})).by(soon()).await.unwrap();
    let page = targets["targetInfos"].as_array().unwrap().iter().find(|info| info["type"] == "page").unwrap();
    let attach = json!({"targetId": page["targetId"], "flatten": true});
    let attached: Value = watcher.send_as("Target.attachToTarget", None, attach).by(soon()).await.unwrap();
    let session = attached["sessionId"].as_str().unwrap().to_owned();
    let freed = Arc::new(Mutex::new(0));
    let free: Free = {
        let (watcher, session, freed) = (watcher.clone(), session.clone(), Arc::clone(&freed));
        Arc::new(move || {
            *freed.lock().unwrap() += 1;
            let ended = watcher.send_as::<Value>("Runtime.terminateExecution", Some(&session), json!({}));
            Box::pin(async move { usize::from(ended.by(weir_shared::clock::deadline(LONG)).await.is_ok()) })
        })
    };
    let driver = BrowserDriver::open(connect().await, None, Arc::clone(&free)).await.unwrap();
    let home = Home::new(&Url::parse(&sites.home("/")).unwrap(), "a task that names no site");
    let mut desk = Desk { _chromium: Arc::clone(&chromium), sites, home, driver };
    desk.go("/hang").await.unwrap();
    let (_, element) = desk.see("\"Hang\"").await;
    let clicked = desk.act(Action::Click { element }).await;
    assert!(matches!(&clicked, Err(DriverError::Refused(why)) if why.contains("ran without end")), "{clicked:?}");
    assert_eq!(desk.driver.look(false).await.unwrap().title, "hang");
    desk.go("/plain").await.unwrap();
    assert_eq!((desk.driver.look(false).await.unwrap().title.as_str(), *freed.lock().unwrap()), ("plain", 1));

    // One who comes when the page is blocked already takes hold of it all the same.
    let block = json!({"expression": "for(;;);"});
    let blocked = tokio::spawn(watcher.send_as::<Value>("Runtime.evaluate", Some(&session), block).by(soon()));
    // The answer to what is sent behind it would come in a moment.
    let behind = watcher.send_as::<Value>("Runtime.evaluate", Some(&session), json!({"expression": "1"}));
    assert!(timeout(Duration::from_millis(500), behind.by(soon())).await.is_err());
    let mut late = BrowserDriver::open(connect().await, None, free).await.unwrap();
    assert_eq!(late.look(false).await.unwrap().title, "plain");
    assert!(*freed.lock().unwrap() >= 2);
    blocked.abort();
}
