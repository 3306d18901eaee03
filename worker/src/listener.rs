//! The worker's private listener: health and figures, and the API's calls ([`weir_shared::worker_api`]). The API and
//! operators reach it, the world does not.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_web::{App, HttpResponse, HttpServer, web};
use anyhow::Context as _;
use weir_shared::worker_api::{MAX_CALL, Secret};

use crate::context::Process;
use crate::relay::routes::Relays;
use crate::sessions::routes::OfProcess;
use crate::{dispatch, relay, sessions};

/// How long an idle connection of the API is kept for its next scrape.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// Serves on the given socket. Returns the bound address and the running server.
pub fn start(socket: TcpListener, process: Arc<Process>) -> anyhow::Result<(SocketAddr, actix_web::dev::Server)> {
    let address = socket.local_addr().context("WEIR_WORKER_BIND")?;
    let relays = web::Data::new(Relays::new(Arc::new(OfProcess(Arc::clone(&process)))));
    let secret = web::Data::new(Secret::new(&process.secret));
    let data = web::Data::from(process);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .app_data(secret.clone())
            .app_data(web::JsonConfig::default().limit(MAX_CALL))
            .configure(|config| relay::routes::configure(config, relays.clone()))
            .configure(sessions::routes::configure)
            .configure(dispatch::routes::configure)
            .route("/healthz", web::get().to(async || HttpResponse::Ok().json(serde_json::json!({"status": "ok"}))))
            .route("/metrics", web::get().to(metrics))
            .default_service(web::to(async || {
                HttpResponse::NotFound().json(serde_json::json!({"success": false, "error": "Not found"}))
            }))
    })
    .workers(1)
    .on_connect(relay::routes::remember)
    .keep_alive(KEEP_ALIVE)
    // CDP messages are small, and their client waits for each answer: do not collect them.
    .tcp_nodelay(true)
    .disable_signals()
    .listen(socket)
    .context("WEIR_WORKER_BIND")?
    .run();
    Ok((address, server))
}

async fn metrics(process: web::Data<Process>) -> HttpResponse {
    if let Some(browsers) = &process.browsers {
        let stats = browsers.stats();
        process.metrics.browsers.set(stats.alive as i64);
        process.metrics.browser_pages.set(stats.pages as i64);
        process.metrics.browser_crashes.set(stats.crashes as i64);
        process.metrics.browser_failed_starts.set(stats.failed_launches as i64);
        process.metrics.browser_followers.set(stats.followers as i64);
    }
    let denied: u64 = [&process.egress, &process.ad_free]
        .iter()
        .map(|proxy| proxy.metrics().denied_address.load(std::sync::atomic::Ordering::Relaxed))
        .sum();
    process.metrics.egress_denied.set(denied as i64);
    if let Some(sessions) = process.sessions() {
        process.metrics.sessions.set(sessions.count() as i64);
        process.metrics.sessions_warm.set(sessions.warm_count() as i64);
    }
    HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(process.metrics.render())
}
