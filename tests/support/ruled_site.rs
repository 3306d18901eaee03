//! A server that answers everything by a rule of the test's own, and keeps nothing: for runs of a million requests.

use actix_web::dev::ServerHandle;
use actix_web::http::StatusCode;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};

/// Status and HTML for a path and what was sent with it.
type Rule = Box<dyn Fn(&str, &[u8]) -> (u16, String) + Send + Sync>;

/// Listens on a port of 127.0.0.1 until it is dropped.
pub struct RuledSite {
    port: u16,
    server: ServerHandle,
}

impl RuledSite {
    /// `rule` gives status and body for a path and what was sent, at the moment in which it is asked for.
    pub async fn start(rule: impl Fn(&str, &[u8]) -> (u16, String) + Send + Sync + 'static) -> Self {
        let rule: web::Data<Rule> = web::Data::new(Box::new(rule));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = HttpServer::new(move || App::new().app_data(rule.clone()).default_service(web::to(answer)))
            .workers(1)
            .disable_signals()
            .listen(listener)
            .unwrap()
            .run();
        let handle = server.handle();
        tokio::spawn(server);
        Self { port, server: handle }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

async fn answer(request: HttpRequest, body: web::Bytes, rule: web::Data<Rule>) -> HttpResponse {
    let (status, html) = (rule.get_ref())(request.path(), &body);
    HttpResponse::build(StatusCode::from_u16(status).unwrap()).content_type("text/html; charset=utf-8").body(html)
}

impl Drop for RuledSite {
    fn drop(&mut self) {
        drop(self.server.stop(false));
    }
}
