//! The status stream on the batch's own path (wire 6).

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use weir_shared::clock;
use weir_shared::random;
use weir_tests::{
    Database, FixtureSite, MovedClock, ServiceOptions, TestService, both_databases, finished, wait_until,
};

pub type Stream = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

/// `path` is below `/v2/`, unless it begins with a slash.
fn handshake(service: &TestService, path: &str) -> Request {
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/v2/{path}") };
    let address = format!("{}{path}", service.base().replace("http", "ws"));
    address.into_client_request().unwrap()
}

/// Connects as the Python SDK does: the key in the Authorization header.
pub async fn by_header(service: &TestService, path: &str, key: &str) -> Result<(Stream, Response), Box<Error>> {
    let mut request = handshake(service, path);
    request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    connect_async(request).await.map_err(Box::new)
}

/// Connects as the JavaScript SDK does: the key is the subprotocol.
pub async fn by_subprotocol(service: &TestService, path: &str, key: &str) -> Result<(Stream, Response), Box<Error>> {
    let mut request = handshake(service, path);
    request.headers_mut().insert("sec-websocket-protocol", key.parse().unwrap());
    connect_async(request).await.map_err(Box::new)
}

/// All frames until the close frame, and the close code.
pub async fn frames(mut stream: Stream) -> (Vec<Value>, u16) {
    let read = async {
        let mut frames = Vec::new();
        while let Some(message) = stream.next().await {
            match message.unwrap() {
                Message::Text(text) => frames.push(serde_json::from_str(text.as_str()).unwrap()),
                Message::Close(frame) => return (frames, frame.map_or(1005, |frame| frame.code.into())),
                _ => {}
            }
        }
        (frames, 1006)
    };
    tokio::time::timeout(Duration::from_secs(90), read).await.expect("the stream ends")
}

both_databases! {
    async fn every_document_arrives_once_and_the_stream_ends(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let mut urls = site.urls("/article/", 10);
        urls.extend(site.urls("/slow?ms=500&n=", 10));
        let body = json!({ "urls": urls, "maxConcurrency": 4 });
        let id = service.post("/v2/batch/scrape", &body).await.id();
        let (stream, _) = by_header(&service, &format!("batch/scrape/{id}"), service.key()).await.unwrap();
        let (frames, code) = frames(stream).await;

        assert_eq!(code, 1000);
        assert_eq!(frames[0]["type"], "catchup");
        let mut scrapes = BTreeSet::new();
        let mut add = |document: &Value| {
            let id = document["metadata"]["scrapeId"].as_str().unwrap().to_owned();
            assert!(scrapes.insert(id), "twice: {document}");
        };
        frames[0]["data"]["data"].as_array().unwrap().iter().for_each(&mut add);
        for frame in &frames[1..] {
            match frame["type"].as_str().unwrap() {
                "document" => add(&frame["data"]),
                "done" => {}
                other => panic!("{other}: {frame}"),
            }
        }
        assert_eq!(scrapes.len(), 20);
        assert_eq!(service.get(&format!("/v2/batch/scrape/{id}")).await.ok()["status"], "completed");
    }

    async fn the_key_may_be_the_subprotocol_and_is_echoed(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let id = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/article/", 3) })).await.id();
        finished(service.caller(), &id, Duration::from_secs(60)).await;
        let (stream, answer) = by_subprotocol(&service, &format!("batch/scrape/{id}"), service.key()).await.unwrap();
        assert_eq!(answer.headers()["sec-websocket-protocol"], service.key());
        let (frames, code) = frames(stream).await;
        assert_eq!(code, 1000);
        assert_eq!(frames[0]["data"]["status"], "completed");
        let in_catchup = frames[0]["data"]["data"].as_array().unwrap().len();
        let after = frames.iter().filter(|frame| frame["type"] == "document").count();
        assert_eq!(in_catchup + after, 3);
    }
}

#[tokio::test]
async fn a_stranger_is_turned_away() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let batch = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/article/", 1) })).await.id();
    let crawl = service.post("/v2/crawl", &json!({ "url": site.url("/article/1"), "sitemap": "skip" })).await.id();
    let (batch, crawl_as_batch) = (format!("batch/scrape/{batch}"), format!("batch/scrape/{crawl}"));
    let crawl = format!("crawl/{crawl}");
    let other = service.new_team("others").key.unwrap();
    let unknown = format!("crawl/{}", random::id());
    for (job, key, close, status) in [
        (&batch, "nobodys-key", 3000, 401),
        (&batch, other.as_str(), 3003, 404),
        (&crawl, "nobodys-key", 3000, 401),
        (&crawl, other.as_str(), 3003, 404),
        (&crawl_as_batch, service.key(), 1008, 404),
        (&unknown, service.key(), 1008, 404),
    ] {
        // Either the handshake is refused, or the stream is closed at once with the code of wire 6.
        match by_header(&service, job, key).await {
            Ok((stream, _)) => {
                let (seen, code) = frames(stream).await;
                assert_eq!(code, close, "{seen:?}");
                assert!(seen.iter().all(|frame| frame["type"] == "error"), "{seen:?}");
            }
            Err(refused) => match *refused {
                Error::Http(answer) => assert_eq!(answer.status(), status),
                other => panic!("{other}"),
            },
        }
    }
}

#[tokio::test]
async fn a_key_that_is_revoked_is_told_nothing_more_on_the_socket_that_it_has_opened() {
    let (clock, site) = (MovedClock::new(), FixtureSite::start().await);
    let (name, file) = clock.setting();
    let options = ServiceOptions::new(Database::Sqlite).env(name, file).env("WEIR_PAGE_BROWSERS", "0");
    let service = TestService::start_with(options).await;
    let second = service.new_key("tests");
    let keys = service.cli_json(&["key", "list", "--team", "tests", "--json"]);
    let newest = keys.as_array().unwrap().iter().filter_map(|key| key["id"].as_str()).max().unwrap();
    let body = json!({ "urls": site.urls("/slow?ms=1000&n=", 60), "maxConcurrency": 1 });
    let id = second.post("/v2/batch/scrape", &body).await.id();
    let path = format!("batch/scrape/{id}");
    let (mut stream, _) = by_subprotocol(&service, &path, second.key.as_deref().unwrap()).await.unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert!(first.to_text().unwrap().contains("catchup"), "{first}");
    service.cli(&["key", "revoke", newest]);
    // It is looked for now and then.
    clock.advance(Duration::from_secs(30));
    let (seen, code) = frames(stream).await;
    assert_eq!((code, &seen.last().unwrap()["type"]), (3000, &json!("error")), "{seen:?}");
    service.delete(&format!("/v2/{path}")).await.ok();
}

#[tokio::test]
async fn one_teams_sockets_leave_room_for_those_of_others_and_for_calls() {
    const FILES: usize = 256;
    let site = FixtureSite::start().await;
    let mut service = TestService::start(Database::Sqlite).await;
    service.kill_api();
    service.start_api_with_files(FILES as u32);
    service.ready().await;
    let other = service.new_team("others");
    let slow = json!({ "urls": site.urls("/slow?ms=2000&n=", 90), "maxConcurrency": 1 });
    let (own, theirs) = (service.post("/v2/batch/scrape", &slow).await, other.post("/v2/batch/scrape", &slow).await);
    let [own, theirs] = [own, theirs].map(|made| format!("batch/scrape/{}", made.id()));
    let watched = async |path: &str, key: &str| {
        let (mut stream, _) = by_header(&service, path, key).await.unwrap();
        let first = stream.next().await.unwrap().unwrap();
        matches!(first, Message::Text(text) if text.as_str().contains("catchup")).then_some(stream)
    };
    // Three quarters of the files are connections, an eighth of those sockets, and half of them one team's.
    let most = FILES / 4 * 3 / 8 / 2;
    let mut open = Vec::new();
    for _ in 0..most {
        open.push(watched(&own, service.key()).await.expect("the job is watched"));
    }
    let (stream, _) = by_header(&service, &own, service.key()).await.unwrap();
    // Without a word of an error: clients go on over HTTP.
    assert_eq!(frames(stream).await, (Vec::new(), 1013));
    assert_eq!(service.get(&format!("/v2/{own}")).await.ok()["status"], "scraping");
    watched(&theirs, other.key.as_deref().unwrap()).await.expect("others watch theirs");
    // A socket that ends without a goodbye makes room, too.
    open.pop();
    wait_until("there is room", || async { watched(&own, service.key()).await }).await;
    drop(open);
    for (caller, path) in [(service.caller(), own), (&other, theirs)] {
        caller.delete(&format!("/v2/{path}")).await.ok();
    }
}

both_databases! {
    async fn a_goodbye_is_answered_with_its_code_and_ends_the_connection_at_once(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let slow = json!({ "urls": site.urls("/slow?ms=40000&n=", 1) });
        let running = service.post("/v2/batch/scrape", &slow).await.id();
        let quick = service.post("/v2/batch/scrape", &json!({ "urls": site.urls("/article/", 1) })).await.id();
        finished(service.caller(), &quick, Duration::from_secs(60)).await;
        let (mut leaving, mut told) = (Duration::MAX, Duration::MAX);
        // The server keeps what it does not end itself for half a second at least.
        let most = Duration::from_millis(300);
        // The fastest of some: the machine may be busy.
        for round in 0..25 {
            if round >= 4 && leaving < most && told < most {
                break;
            }
            let (mut stream, _) = by_header(&service, &format!("batch/scrape/{running}"), service.key()).await.unwrap();
            stream.next().await.unwrap().unwrap();
            let code = CloseCode::Library(4321);
            stream.send(Message::Close(Some(CloseFrame { code, reason: "bye".into() }))).await.unwrap();
            leaving = leaving.min(rest(stream, 4321).await);
            let (stream, _) = by_header(&service, &format!("batch/scrape/{quick}"), service.key()).await.unwrap();
            told = told.min(rest(stream, 1000).await);
        }
        assert!(leaving < most && told < most, "{leaving:?} {told:?}");
    }
}

/// Reads to the end of the connection. Returns the time from the close frame, which has this code, to it.
async fn rest(mut stream: Stream, expected: u16) -> Duration {
    let read = async {
        let mut since = None;
        while let Some(Ok(message)) = stream.next().await {
            if let Message::Close(frame) = message {
                assert_eq!(frame.map(|frame| frame.code), Some(expected.into()));
                since = Some(clock::instant());
            }
        }
        since.expect("a close frame").elapsed()
    };
    tokio::time::timeout(Duration::from_secs(60), read).await.expect("the connection ends")
}
