//! A way to Postgres that loses the answer to one commit: the server has committed, and its client never hears of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Stands before a server until it is dropped.
pub struct LostAnswer {
    /// Leads to the database through it.
    pub url: String,
    is_lost: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl LostAnswer {
    /// A way to the database at `url`. It loses the answer to the first commit on a connection that was sent `statement`.
    pub async fn start(url: &str, statement: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (head, name) = url.rsplit_once('/').expect("the address names a database");
        let (user, server) = head.rsplit_once('@').expect("the address names a user");
        // What is encrypted cannot be read.
        let url = format!("{user}@{}/{name}?sslmode=disable", listener.local_addr().unwrap());
        let (server, is_lost) = (server.to_owned(), Arc::new(AtomicBool::new(false)));
        let lost = Arc::clone(&is_lost);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, lost) = (server.clone(), Arc::clone(&lost));
                tokio::spawn(async move { serve(client, &server, statement, &lost).await });
            }
        });
        Self { url, is_lost, task }
    }

    /// Whether an answer was lost.
    pub fn has_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}

impl Drop for LostAnswer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut client: TcpStream, server: &str, statement: &str, is_lost: &AtomicBool) -> Option<()> {
    let mut server = TcpStream::connect(server).await.ok()?;
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    let mut is_meant = false;
    loop {
        tokio::select! {
            count = client.read(&mut asked) => {
                let sent = &asked[..count.ok().filter(|count| *count > 0)?];
                is_meant |= contains(sent, statement);
                server.write_all(sent).await.ok()?;
                if is_meant && contains(sent, "COMMIT") && !is_lost.swap(true, Ordering::Relaxed) {
                    // It has committed by the time that it answers.
                    let _ = server.read(&mut answered).await;
                    return None;
                }
            }
            count = server.read(&mut answered) => {
                let count = count.ok().filter(|count| *count > 0)?;
                client.write_all(&answered[..count]).await.ok()?;
            }
        }
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
