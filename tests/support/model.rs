//! A language model without a model: an OpenAI-compatible endpoint that says what the test has written, in order, and
//! keeps what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// One answer.
#[derive(Debug, Clone)]
pub enum Said {
    /// The message's text.
    Text(String),
    /// A whole body, with status 200.
    Body(String),
    Status(u16),
    /// What the endpoint does not take, in its words, with status 400.
    Refusal(&'static str),
    /// An action of the agent. `on` are words of the line of the page's tree whose reference it takes.
    Act {
        action: Value,
        on: Option<String>,
    },
    /// The connection stays open without an answer.
    Hang,
    /// It is said when all that was asked before has been answered, and after so long; nothing is done for who has gone.
    InTurn(Duration, Box<Said>),
}

impl Said {
    /// A text that is JSON.
    pub fn json(value: &Value) -> Self {
        Self::Text(value.to_string())
    }

    /// An action on the element that the page shows with these words.
    pub fn act(tool: &str, on: &str, more: Value) -> Self {
        let Self::Act { action, .. } = Self::does(tool, more) else { unreachable!() };
        Self::Act { action, on: Some(on.to_owned()) }
    }

    /// An action that needs no element.
    pub fn does(tool: &str, more: Value) -> Self {
        let mut action = json!({"thought": format!("I {tool}."), "tool": tool});
        action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Self::Act { action, on: None }
    }
}

/// The reference on the line of the last message that holds these words.
fn reference(asked: &Value, on: &str) -> String {
    let content = &asked["messages"].as_array().unwrap().last().unwrap()["content"];
    let text = content.as_str().or_else(|| content[0]["text"].as_str()).unwrap();
    let line = text.lines().find(|line| line.contains(on) && line.contains("[ref="));
    let line = line.unwrap_or_else(|| panic!("nothing says {on}: {text}"));
    line.split("[ref=").nth(1).unwrap().split(']').next().unwrap().to_owned()
}

/// What is asked for, by the name of the answer's schema; also where an endpoint is asked without one.
fn name_of(asked: &Value) -> String {
    asked["response_format"]["json_schema"]["name"].as_str().unwrap_or_default().to_owned()
}

/// Answers until it is dropped; the last answer is repeated.
pub struct ModelStandIn {
    pub url: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    task: JoinHandle<()>,
}

impl ModelStandIn {
    pub async fn start(answers: Vec<Said>) -> Self {
        let answers = Mutex::new(VecDeque::from(answers));
        Self::answering(move |_, _| {
            let mut answers = answers.lock().unwrap();
            let first = answers.pop_front().unwrap();
            if answers.is_empty() {
                answers.push_back(first.clone());
            }
            first
        })
        .await
    }

    /// Answers by the name of what is asked for, and the whole request: for questions that come in no fixed order.
    pub async fn answering(answer: impl Fn(&str, &Value) -> Said + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let (log, answer) = (Arc::clone(&asked), Arc::new(answer));
        let line = Arc::new(tokio::sync::Mutex::new(()));
        let task = tokio::spawn(async move {
            loop {
                let Ok((mut socket, _)) = listener.accept().await else { return };
                let (log, answer, line) = (Arc::clone(&log), Arc::clone(&answer), Arc::clone(&line));
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    let (head, body) = loop {
                        let mut part = [0; 16_384];
                        let Ok(count @ 1..) = socket.read(&mut part).await else { return };
                        bytes.extend_from_slice(&part[..count]);
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                        let length = head
                            .lines()
                            .find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
                        if body.len() >= length.unwrap_or(0) {
                            break (head.to_owned(), serde_json::from_str(body).unwrap_or(Value::Null));
                        }
                    };
                    log.lock().unwrap().push((head, body.clone()));
                    let mut said = answer(&name_of(&body), &body);
                    if let Said::InTurn(each, then) = said {
                        let in_turn = async {
                            let _turn = line.lock().await;
                            tokio::time::sleep(each).await;
                        };
                        tokio::select! {
                            () = in_turn => said = *then,
                            _ = socket.readable() => return,
                        }
                    }
                    let (status, body) = match said {
                        Said::InTurn(..) => unreachable!("one wait is enough"),
                        Said::Hang => return std::future::pending().await,
                        Said::Status(status) => (status, json!({"error": {"message": "no"}}).to_string()),
                        Said::Refusal(why) => {
                            (400, json!({"error": {"message": why, "code": "unsupported_value"}}).to_string())
                        }
                        Said::Body(body) => (200, body),
                        Said::Act { mut action, on } => {
                            if let Some(on) = on {
                                action["ref"] = json!(reference(&body, &on));
                            }
                            let message = json!({"role": "assistant", "content": action.to_string()});
                            (200, json!({"choices": [{"index": 0, "message": message}]}).to_string())
                        }
                        Said::Text(text) => {
                            let message = json!({"role": "assistant", "content": text});
                            (200, json!({"choices": [{"index": 0, "message": message}]}).to_string())
                        }
                    };
                    let head =
                        format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n");
                    let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
                    let _ = socket.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { url, asked, task }
    }

    /// Head and body of every request so far.
    pub fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for ModelStandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}
