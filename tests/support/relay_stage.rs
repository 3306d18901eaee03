//! One session without the service around it: API routes and a worker's relay in this process, an unboxed Chromium.
//!
//! It is what the clients of a session meet on their way, and no more: no database rows, no sandbox, no code boxes.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use actix_web::{App, HttpServer, web};
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use weir_api::error::ApiResult;
use weir_api::workers::relay_target::{RelayTarget, RelayTargets};
use weir_shared::config::Settings;
use weir_shared::domain::capability::{Capability, token};
use weir_shared::ids::{SessionId, TeamId};
use weir_shared::store::{self, PoolUse};
use weir_shared::worker_api::Secret;
use weir_worker::relay::{Activity, Browser, Budget, CLIENTS, LiveView, Rules, SessionHandle, Sessions, routes};
use weir_worker::sandbox::{ChromiumKind, find_chromium};

use crate::process::signal;

/// An unboxed headless browser.
pub struct StageChromium {
    pub address: SocketAddr,
    pub path: String,
    pub folder: PathBuf,
    process: tokio::process::Child,
}

impl StageChromium {
    async fn start() -> Arc<Self> {
        let found = find_chromium(None).expect("a Chromium is installed");
        let folder = crate::temporary("stage");
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
            // What is started may be a script that starts the browser: both are of one group, and end with it.
            .process_group(0)
            .kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let read = async {
            loop {
                let line = lines.next_line().await.unwrap().expect("Chromium starts");
                if let Some((_, url)) = line.split_once("ws://") {
                    break url.trim().to_owned();
                }
            }
        };
        let url = tokio::time::timeout(Duration::from_secs(90), read).await.expect("Chromium starts in time");
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let (address, path) = url.split_once('/').unwrap();
        Arc::new(Self { address: address.parse().unwrap(), path: format!("/{path}"), folder, process })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id().unwrap()
    }

    fn end(&self) {
        if let Some(id) = self.process.id() {
            signal("KILL", &format!("-{id}"));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Drop for StageChromium {
    fn drop(&mut self) {
        self.end();
    }
}

impl Browser for StageChromium {
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

struct Only {
    id: SessionId,
    team: TeamId,
    session: Arc<SessionHandle>,
    worker: SocketAddr,
}

impl Sessions for Only {
    fn find(&self, id: SessionId) -> Option<Arc<SessionHandle>> {
        (id == self.id).then(|| Arc::clone(&self.session))
    }
}

#[async_trait]
impl RelayTargets for Only {
    async fn find(&self, id: SessionId) -> ApiResult<Option<RelayTarget>> {
        if id != self.id {
            return Ok(None);
        }
        if self.session.ended.is_cancelled() {
            return Ok(Some(RelayTarget::Destroyed));
        }
        Ok(Some(RelayTarget::Active { worker: self.worker.to_string(), is_streamed: true, team: self.team }))
    }
}

/// One session and the way to it.
pub struct RelayStage {
    pub id: SessionId,
    pub chromium: Arc<StageChromium>,
    pub session: Arc<SessionHandle>,
    /// Where the API listens.
    pub api: SocketAddr,
    secret: String,
    folder: PathBuf,
    worker: actix_web::dev::ServerHandle,
    api_server: Option<weir_api::http_server::HttpServer>,
}

impl RelayStage {
    pub async fn start() -> Self {
        let chromium = StageChromium::start().await;
        let browser: Arc<dyn Browser> = Arc::clone(&chromium) as _;
        let activity = Arc::new(Activity::new(weir_shared::clock::Clock::system()));
        let session = Arc::new(SessionHandle {
            live: Some(LiveView::new(Arc::clone(&browser), Arc::clone(&activity))),
            rules: Arc::new(Rules { downloads: chromium.folder.join("downloads"), uploads: Vec::new() }),
            browser,
            activity,
            budget: Budget::default(),
            places: Arc::new(Semaphore::new(CLIENTS)),
            ended: CancellationToken::new(),
        });
        let id = SessionId::new();
        let worker_socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let worker = worker_socket.local_addr().unwrap();
        let only = Arc::new(Only { id, team: TeamId::new(), session: Arc::clone(&session), worker });

        let folder = std::env::temp_dir().join(format!("weir-stage-api-{id}"));
        let values = [
            ("DATABASE_URL", format!("sqlite://{}/weir.db", folder.display())),
            ("WEIR_BLOBS", format!("file://{}/blobs", folder.display())),
        ];
        let find = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        let settings = Settings::from_lookup(&find).unwrap();
        let db = weir_api::server::connect(&settings, PoolUse::Rows).await.unwrap();
        store::migrate(&db).await.unwrap();
        let state = weir_api::server::build_with(settings, db, Arc::clone(&only) as _).await.unwrap();
        let secret = state.internal_secret.clone();

        let relays = web::Data::new(routes::Relays::new(only));
        let internal = web::Data::new(Secret::new(&secret));
        let worker_server = HttpServer::new(move || {
            App::new().app_data(internal.clone()).configure(|config| routes::configure(config, relays.clone()))
        })
        .workers(1)
        .on_connect(routes::remember)
        .tcp_nodelay(true)
        .disable_signals()
        .listen(worker_socket)
        .unwrap()
        .run();
        let api_socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let api = api_socket.local_addr().unwrap();
        let api_server = Some(weir_api::http_server::HttpServer::start(&state, api_socket, true).unwrap());
        let worker = worker_server.handle();
        tokio::spawn(worker_server);
        Self { id, chromium, session, api, secret, folder, worker, api_server }
    }

    fn token(&self, kind: Capability) -> String {
        token(self.secret.as_bytes(), kind, self.id)
    }

    pub fn cdp_url(&self) -> String {
        format!("ws://{}/cdp/{}?token={}", self.api, self.id, self.token(Capability::Cdp))
    }

    pub fn view_url(&self) -> String {
        format!("http://{}/live/{}#{}", self.api, self.id, self.token(Capability::View))
    }

    pub fn control_url(&self) -> String {
        format!("http://{}/live/{}#{}", self.api, self.id, self.token(Capability::Control))
    }

    /// Ends the session as its owner would.
    pub fn end(&self, reason: &str) {
        self.session.ended.cancel();
        if let Some(live) = &self.session.live {
            live.end(reason);
        }
    }
}

impl Drop for RelayStage {
    fn drop(&mut self) {
        self.session.ended.cancel();
        tokio::spawn(self.worker.stop(false));
        if let Some(mut server) = self.api_server.take() {
            tokio::spawn(async move { server.stop(Duration::ZERO).await });
        }
        // The servers' threads may know it for longer than the test lasts.
        self.chromium.end();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
