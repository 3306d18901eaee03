//! The way of a session's clients and viewers, from their libraries and pages to Chromium and back: `/cdp/{id}` and
//! `/live/{id}` (wire 8.5). The session is a stage of its own: see [`RelayStage`].

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::MaybeTlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use weir_shared::clock::{self, Stopwatch};
use weir_tests::{RelayStage, checkout, wait_until};
use weir_worker::sandbox::find_chromium;

fn script(stage: &RelayStage, name: &str, modules: PathBuf) -> tokio::process::Command {
    let mut command = tokio::process::Command::new("node");
    command
        .arg(checkout().join("tests/relay").join(name))
        .env("NODE_PATH", modules)
        .env("CDP_URL", stage.cdp_url())
        .env("LIVE_URL", stage.view_url())
        .env("CONTROL_URL", stage.control_url())
        .env("DOWNLOADS", stage.chromium.folder.join("downloads"))
        .env("CHROMIUM", find_chromium(None).unwrap().path)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

fn check(output: &std::process::Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    let closing = text.lines().rev().find(|line| line.contains(" passed, ")).expect("a closing line");
    assert!(output.status.success() && closing.ends_with(", 0 failed"), "{closing}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn playwright_and_puppeteer_drive_a_session_unmodified() {
    let Some(modules) = weir_tests::installed("relay/node_modules") else { return };
    let stage = RelayStage::start().await;
    check(&script(&stage, "suite.cjs", modules).output().await.unwrap());
    wait_until("every client is gone", || async { (stage.session.activity.clients() == 0).then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_watch_and_use_a_session_in_their_browser() {
    let Some(modules) = weir_tests::installed("relay/node_modules") else { return };
    let stage = RelayStage::start().await;
    let end = stage.chromium.folder.join("end");
    let running = script(&stage, "view.cjs", modules).env("END", &end).output();
    let ending = async {
        while !end.exists() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        stage.end("deleted");
        std::future::pending().await
    };
    let output = tokio::select! {
        output = running => output.unwrap(),
        () = ending => unreachable!(),
    };
    check(&output);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ended_session_refuses_connections_with_410_and_cuts_those_that_are_open() {
    let stage = RelayStage::start().await;
    let (mut client, _) = tokio_tungstenite::connect_async(stage.cdp_url()).await.unwrap();
    stage.end("ttl");
    let rest = tokio::time::timeout(Duration::from_secs(60), async { while let Some(Ok(_)) = client.next().await {} });
    rest.await.expect("the connection ends");
    for (url, status) in [
        (stage.cdp_url(), 410),
        (stage.cdp_url().replace("token=", "token=0"), 401),
        (stage.cdp_url().replace(&stage.id.to_string(), "unknown"), 404),
    ] {
        match tokio_tungstenite::connect_async(&url).await {
            Err(Error::Http(response)) => assert_eq!(response.status(), status, "{url}"),
            other => panic!("{url}: {:?}", other.map(|_| ())),
        }
    }
    // Nobody gets at the worker's side without the internal secret.
    let request = format!("ws://{}/sessions/{}/cdp", stage.api, stage.id).into_client_request().unwrap();
    assert!(tokio_tungstenite::connect_async(request).await.is_err());
}

type Socket = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

async fn ask(socket: &mut Socket, id: u64, session: Option<&str>, method: &str, params: Value) -> Value {
    let mut message = json!({"id": id, "method": method, "params": params});
    if let Some(session) = session {
        message["sessionId"] = json!(session);
    }
    socket.send(Message::text(message.to_string())).await.unwrap();
    loop {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        let answer: Value = serde_json::from_str(&text).unwrap();
        if answer["id"] == id {
            return answer["result"].clone();
        }
    }
}

async fn page(socket: &mut Socket, url: &str) -> String {
    let target = ask(socket, 1, None, "Target.createTarget", json!({"url": url})).await["targetId"].clone();
    let attached = ask(socket, 2, None, "Target.attachToTarget", json!({"targetId": target, "flatten": true})).await;
    attached["sessionId"].as_str().unwrap().to_owned()
}

fn p50(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Clock ticks (10 ms) that a process and its descendants have used.
fn ticks(root: u32) -> u64 {
    let mut of = std::collections::HashMap::<u32, (u32, u64)>::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 1..].split_ascii_whitespace().collect();
        let used = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        of.insert(pid, (fields[1].parse().unwrap(), used));
    }
    let is_ours = |mut pid: u32| loop {
        if pid == root {
            return true;
        }
        match of.get(&pid) {
            Some((parent, _)) if *parent > 1 => pid = *parent,
            _ => return false,
        }
    };
    of.iter().filter(|(pid, _)| is_ours(**pid)).map(|(_, (_, used))| used).sum()
}

/// Prints figures: the round trip added by the whole way, and what three viewers of a moving page cost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures; run it alone, on a quiet machine"]
async fn figures() {
    let stage = RelayStage::start().await;
    let direct = format!("ws://{}{}", stage.chromium.address, stage.chromium.path);
    let (mut near, _) = tokio_tungstenite::connect_async(direct).await.unwrap();
    let (mut far, _) = tokio_tungstenite::connect_async(stage.cdp_url()).await.unwrap();
    let near_page = page(&mut near, "about:blank").await;
    let far_page = page(&mut far, "about:blank").await;
    let (mut near_times, mut far_times) = (Vec::new(), Vec::new());
    for round in 0..3_000_u64 {
        for (socket, session, times) in
            [(&mut near, &near_page, &mut near_times), (&mut far, &far_page, &mut far_times)]
        {
            let began = Stopwatch::start();
            ask(socket, round + 10, Some(session), "Runtime.evaluate", json!({"expression": "1"})).await;
            times.push(began.elapsed());
        }
    }
    let (near_ms, far_ms) = (p50(&mut near_times), p50(&mut far_times));
    println!("round trip p50: direct {near_ms:.3} ms, whole way {far_ms:.3} ms, added {:.3} ms", far_ms - near_ms);

    let moving = "data:text/html,<body style='margin:0;background:navy'><div id=b style='width:160px;height:160px;\
        background:orange'></div><script>let n=0;(function t(){n+=3;b.style.transform='translate('+n%251100+'px,'+\
        n%25500+'px)';requestAnimationFrame(t)})()</script>";
    page(&mut far, moving).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let time = Duration::from_secs(10);
    let usage = |from: u64| (ticks(std::process::id()) - from) as f64 / 100.0 / time.as_secs_f64();
    let before = ticks(std::process::id());
    tokio::time::sleep(time).await;
    let alone = usage(before);

    let mut viewers = Vec::new();
    for url in [stage.view_url(), stage.view_url(), stage.control_url()] {
        let (address, token) = url.split_once('#').unwrap();
        let address = format!("{}/socket", address.replace("http", "ws"));
        let (mut socket, _) = tokio_tungstenite::connect_async(address).await.unwrap();
        socket.send(Message::text(token)).await.unwrap();
        viewers.push(socket);
    }
    let watch = viewers.into_iter().map(|mut socket| {
        tokio::spawn(async move {
            let (mut pictures, mut bytes) = (0_u32, 0);
            let _ = tokio::time::timeout(time, async {
                while let Some(Ok(message)) = socket.next().await {
                    if let Message::Binary(picture) = message {
                        pictures += 1;
                        bytes += picture.len();
                        socket.send(Message::text(r#"{"type":"ack"}"#)).await.unwrap();
                    }
                }
            })
            .await;
            (pictures, bytes)
        })
    });
    let before = ticks(std::process::id());
    let seen = futures_util::future::join_all(watch).await;
    let watched = usage(before);
    for viewer in seen {
        let (pictures, bytes) = viewer.unwrap();
        let rate = f64::from(pictures) / time.as_secs_f64();
        println!("viewer: {rate:.1} pictures a second, {} bytes each", bytes / pictures.max(1) as usize);
    }
    println!("cores: {watched:.2} with three viewers, {alone:.2} without; everything in this process and Chromium");
}

/// Says goodbye with a code of its own. Returns the code of the answer, and how long TCP stays after it.
async fn goodbye(mut socket: Socket) -> (Option<u16>, Duration) {
    let code = CloseCode::Library(4321);
    socket.send(Message::Close(Some(CloseFrame { code, reason: "bye".into() }))).await.unwrap();
    let listen = async {
        let mut answer = None;
        loop {
            match socket.next().await {
                Some(Ok(Message::Close(frame))) => answer = Some((frame.map(|f| f.code.into()), clock::instant())),
                Some(Ok(_)) => {}
                // Both have said goodbye: a client waits for the server to end the connection.
                Some(Err(_)) | None => break,
            }
        }
        answer.map_or((None, Duration::MAX), |(code, since)| (code, since.elapsed()))
    };
    tokio::time::timeout(Duration::from_secs(60), listen).await.expect("the connection ends")
}

/// Opens a viewer's socket and waits for its first word.
async fn viewer(url: &str) -> Socket {
    let (address, token) = url.split_once('#').unwrap();
    let (mut socket, _) =
        tokio_tungstenite::connect_async(format!("{}/socket", address.replace("http", "ws"))).await.unwrap();
    socket.send(Message::text(token)).await.unwrap();
    socket.next().await.unwrap().unwrap();
    socket
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_goodbye_is_answered_with_its_code_and_ends_the_connection_at_once() {
    let stage = RelayStage::start().await;
    let (mut clients, mut viewers, mut refused) = (Duration::MAX, Duration::MAX, Duration::MAX);
    // The server keeps what it does not end itself for half a second at least.
    let most = Duration::from_millis(300);
    // The fastest of some: the machine may be busy.
    for round in 0..25 {
        if round >= 4 && clients < most && viewers < most && refused < most {
            break;
        }
        let (mut client, _) = tokio_tungstenite::connect_async(stage.cdp_url()).await.unwrap();
        ask(&mut client, 1, None, "Browser.getVersion", json!({})).await;
        let (code, time) = goodbye(client).await;
        assert_eq!(code, Some(4321), "a CDP client");
        clients = clients.min(time);

        let (code, time) = goodbye(viewer(&stage.view_url()).await).await;
        assert_eq!(code, Some(4321), "a viewer");
        viewers = viewers.min(time);

        let began = Stopwatch::start();
        let mut stranger = viewer_without_token(&stage.view_url()).await;
        assert!(matches!(stranger.next().await, Some(Ok(Message::Close(Some(frame)))) if frame.code == 4003.into()));
        while let Some(Ok(_)) = stranger.next().await {}
        refused = refused.min(began.elapsed());
    }
    assert!(clients < most && viewers < most && refused < most, "{clients:?} {viewers:?} {refused:?}");
}

async fn viewer_without_token(url: &str) -> Socket {
    let address = url.split('#').next().unwrap().replace("http", "ws");
    let (mut socket, _) = tokio_tungstenite::connect_async(format!("{address}/socket")).await.unwrap();
    socket.send(Message::text("nobody")).await.unwrap();
    socket
}
