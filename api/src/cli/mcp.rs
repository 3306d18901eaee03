//! `weir mcp`: the tools of a Weir for programs that start their servers themselves. Standard output is the protocol's;
//! nothing else may be printed there.
//!
//! The library says nothing of a line that is no JSON, and whoever sent it would wait. So lines are looked at on their way:
//!
//! ```text
//! standard input ── listen ── JSON ──────────> library ── answer ──> standard output
//!                      └────── anything else: parse error ─────────────────┘
//! ```

use std::io;
use std::time::Duration;

use anyhow::Context;
use rmcp::ServiceExt;
use rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;
use serde::de::IgnoredAny;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream, duplex,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use weir_shared::config::McpSettings;

use super::output::complain;
use crate::mcp::{Server, Weir};
use crate::routes::operations;

/// Bytes on their way to the library, and from it.
const ON_THE_WAY: usize = 64 << 10;
/// How long the last answers may take to be written.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// What JSON-RPC answers to a line that is no JSON: nobody knows what it was an answer to.
const PARSE_ERROR: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}\n";

/// Answers until the client closes standard input.
///
/// # Errors
/// When the key cannot be sent, or the client does not speak the protocol.
pub async fn run(settings: &McpSettings) -> anyhow::Result<()> {
    let weir = Weir::at(settings)?;
    if let (None, Some(url)) = (&settings.key, weir.named()) {
        complain(format_args!("WEIR_KEY is not set: {url} is called without a key, and answers if it asks for none"));
    }
    let server = Server::of_user(weir, operations);
    let (transport, answers) = looked_at(tokio::io::stdin(), tokio::io::stdout());
    let served = async {
        let running = server.serve(transport).await.context("the client")?;
        running.waiting().await.context("the protocol")
    };
    let served = served.await;
    let _ = tokio::time::timeout(LAST_ANSWERS, answers).await;
    served.map(drop)
}

/// Both ways between a client and the library. The task ends when the library has said its last.
fn looked_at<I, O>(input: I, output: O) -> ((DuplexStream, DuplexStream), JoinHandle<io::Result<()>>)
where
    I: AsyncRead + Send + Unpin + 'static,
    O: AsyncWrite + Send + Unpin + 'static,
{
    let (to_library, heard) = duplex(ON_THE_WAY);
    let (said, from_library) = duplex(ON_THE_WAY);
    let (broken, of_broken) = mpsc::channel(1);
    tokio::spawn(listen(input, to_library, broken));
    ((heard, said), tokio::spawn(answer(from_library, output, of_broken)))
}

/// Passes on what the client says, and tells of lines that are no JSON. Of longer ones than it takes the library leaves out the
/// rest by itself.
async fn listen<I>(input: I, mut library: DuplexStream, broken: mpsc::Sender<()>) -> io::Result<()>
where
    I: AsyncRead + Unpin,
{
    let longest = u64::try_from(DEFAULT_MAX_LINE_LENGTH).unwrap_or(u64::MAX);
    let mut input = BufReader::new(input);
    let (mut line, mut begins) = (Vec::new(), true);
    loop {
        line.clear();
        (&mut input).take(longest).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(());
        }
        let ends = line.ends_with(b"\n");
        let is_whole = begins && ends;
        begins = ends;
        if is_whole && is_no_json(&line) {
            if broken.send(()).await.is_err() {
                return Ok(());
            }
        } else {
            library.write_all(&line).await?;
        }
    }
}

/// Passes on what the library says, a line at a time, and answers to lines that it was not shown.
async fn answer<O>(library: DuplexStream, mut client: O, mut broken: mpsc::Receiver<()>) -> io::Result<()>
where
    O: AsyncWrite + Unpin,
{
    let mut library = BufReader::new(library);
    let mut line = Vec::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = broken.recv() => client.write_all(PARSE_ERROR).await?,
            // What it has read of a line stays there.
            read = library.read_until(b'\n', &mut line) => {
                if read? == 0 {
                    return Ok(());
                }
                client.write_all(&line).await?;
                line.clear();
            }
        }
        client.flush().await?;
    }
}

/// Whether a line is broken; an empty one is none at all, and a mark of the byte order may stand before any.
fn is_no_json(line: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(line) else { return true };
    let text = text.trim_start_matches('\u{feff}').trim();
    !text.is_empty() && serde_json::from_str::<IgnoredAny>(text).is_err()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_no_json_is_answered_and_the_library_hears_of_all_others() {
        let (mut client, input) = duplex(1 << 20);
        let (output, answers) = duplex(1 << 20);
        let ((mut heard, mut said), written) = looked_at(input, output);
        let mut answers = BufReader::new(answers).lines();
        let whole = ["{\"id\":1}\n", "\r\n", "[1, 2]\r\n", "\u{feff}{}\n"].concat();
        for broken in [&b"{\"id\":\n"[..], b"hello\n", b"{\"a\":\"\xff\"}\n"] {
            client.write_all(broken).await.unwrap();
            assert_eq!(answers.next_line().await.unwrap().unwrap().as_bytes(), &PARSE_ERROR[..PARSE_ERROR.len() - 1]);
        }
        client.write_all(whole.as_bytes()).await.unwrap();
        drop(client);
        let mut all = String::new();
        heard.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, whole);
        said.write_all(b"{\"id\":1,\"result\":{}}\n").await.unwrap();
        drop(said);
        assert_eq!(answers.next_line().await.unwrap().unwrap(), "{\"id\":1,\"result\":{}}");
        written.await.unwrap().unwrap();
        assert_eq!(answers.next_line().await.unwrap(), None);
    }
}
