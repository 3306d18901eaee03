//! Frees pages that killed code has left blocked.
//!
//! A script without end, or a dialog that nobody answers, keeps a page from answering anybody: the next runner could not
//! even connect. Over the session's CDP socket every page is asked for an answer; in one that gives none, dialogs are
//! dismissed and the running script is terminated. A page that answers is left alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::Message;

/// Bound on the whole.
const LIMIT: Duration = Duration::from_secs(4);
/// A page that has not answered by then is blocked.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// Asks every page of the browser behind `cdp`. Failures are logged: the next runner may still get through.
pub(super) async fn pages(cdp: &Path) {
    match timeout(LIMIT, free(cdp)).await {
        Ok(Ok(0)) => {}
        Ok(Ok(freed)) => tracing::info!(pages = freed, "freed pages that killed code had left blocked"),
        Ok(Err(error)) => tracing::debug!(%error, "blocked pages could not be looked for"),
        Err(_) => tracing::debug!("looking for blocked pages took too long"),
    }
}

async fn free(cdp: &Path) -> anyhow::Result<usize> {
    let stream = UnixStream::connect(cdp).await?;
    let (mut socket, _) = tokio_tungstenite::client_async("ws://localhost/", stream).await?;
    let mut next = 0;
    let mut command = |session: Option<&str>, method: &str, params: Value| {
        next += 1;
        let mut command = json!({"id": next, "method": method, "params": params});
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        (next, Message::text(command.to_string()))
    };

    let (listing, message) = command(None, "Target.getTargets", json!({}));
    socket.send(message).await?;
    let mut attaching = Vec::new();
    // The number of a question, and the page that has yet to answer it.
    let mut asked: BTreeMap<i64, String> = BTreeMap::new();
    let mut wait = Instant::now() + LIMIT;
    while let Ok(Some(message)) = timeout_at(wait, socket.next()).await {
        let Ok(message) = serde_json::from_str::<Value>(message?.to_text().unwrap_or_default()) else { continue };
        let Some(id) = message["id"].as_i64() else { continue };
        if id == listing {
            let targets = message["result"]["targetInfos"].as_array().into_iter().flatten();
            for target in targets.filter(|target| target["type"] == "page") {
                let params = json!({"targetId": target["targetId"], "flatten": true});
                let (id, message) = command(None, "Target.attachToTarget", params);
                attaching.push(id);
                socket.send(message).await?;
            }
            wait = Instant::now() + ANSWER_WAIT;
        } else if attaching.contains(&id) {
            attaching.retain(|other| *other != id);
            if let Some(session) = message["result"]["sessionId"].as_str() {
                let (id, message) = command(Some(session), "Runtime.evaluate", json!({"expression": "1"}));
                asked.insert(id, session.to_owned());
                socket.send(message).await?;
            }
        } else {
            asked.remove(&id);
        }
        if id != listing && attaching.is_empty() && asked.is_empty() {
            break;
        }
    }
    let blocked = asked.len();
    for session in asked.values() {
        // Without the page domain a dialog cannot be answered.
        let steps = [
            ("Page.enable", json!({})),
            ("Page.handleJavaScriptDialog", json!({"accept": false})),
            ("Runtime.terminateExecution", json!({})),
        ];
        for (method, params) in steps {
            socket.send(command(Some(session), method, params).1).await?;
        }
    }
    if blocked > 0 {
        // Time for the commands to act before the connection goes.
        let settled = async {
            while !asked.is_empty() {
                let Some(Ok(message)) = socket.next().await else { return };
                let message: Value = serde_json::from_str(message.to_text().unwrap_or_default()).unwrap_or_default();
                if let Some(id) = message["id"].as_i64() {
                    asked.remove(&id);
                }
            }
        };
        let _ = timeout(ANSWER_WAIT, settled).await;
    }
    let _ = timeout(ANSWER_WAIT, socket.close(None)).await;
    Ok(blocked)
}
