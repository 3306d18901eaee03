//! The worker's private listener: health and figures. The API and operators reach it, the world does not.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use actix_web::{App, HttpResponse, HttpServer, web};
use anyhow::Context as _;

use crate::context::Process;

/// Serves `/healthz` and `/metrics` on the given socket. Returns the bound address and the running server.
pub fn start(socket: TcpListener, process: Arc<Process>) -> anyhow::Result<(SocketAddr, actix_web::dev::Server)> {
    let address = socket.local_addr().context("WEIR_WORKER_BIND")?;
    let data = web::Data::from(process);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .route("/healthz", web::get().to(async || HttpResponse::Ok().json(serde_json::json!({"status": "ok"}))))
            .route("/metrics", web::get().to(metrics))
            .default_service(web::to(async || {
                HttpResponse::NotFound().json(serde_json::json!({"success": false, "error": "Not found"}))
            }))
    })
    .workers(1)
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
    }
    let denied: u64 = [&process.egress, &process.ad_free]
        .iter()
        .map(|proxy| proxy.metrics().denied_address.load(std::sync::atomic::Ordering::Relaxed))
        .sum();
    process.metrics.egress_denied.set(denied as i64);
    HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(process.metrics.render())
}
