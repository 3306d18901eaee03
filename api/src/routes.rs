//! Every path and method, in the order of the specification; each line names the file of its operation.

use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, Resource, guard};
use weir_shared::domain::job::JobKind;
use weir_shared::error_code::ErrorCode;

use crate::endpoints::{batch_scrape, browser, crawl, interact, jobs, map, not_built, scrape, team};
use crate::error::ApiError;
use crate::{health, welcome};

/// Registers the routes.
pub fn configure(config: &mut ServiceConfig) {
    for at in routes().0 {
        config.service(at.resource);
    }
    config.default_service(web::to(not_found));
}

/// Every method and path: what tests go by, so that a new route is in them by itself.
pub fn list() -> Vec<(&'static str, String)> {
    let each = |at: At| at.methods.into_iter().map(move |method| (method, at.path.clone()));
    routes().0.into_iter().flat_map(each).collect()
}

#[rustfmt::skip]
fn routes() -> Routes {
    let mut routes = Routes(Vec::new());
    // Browser sessions (SPEC 4.1 to 4.4, CONTRACT 8): the same under both names.
    for root in ["/v2/browser", "/v2/interact"] {
        routes = routes
            .service(at(root)
                .post(browser::create::handle)
                .get(browser::list::handle)
                .delete(browser::delete::by_body))
            .service(at(&format!("{root}/profiles/{{name}}")).delete(browser::profiles::remove))
            .service(at(&format!("{root}/{{id}}"))
                .get(browser::show::handle)
                .delete(browser::delete::by_path))
            .service(at(&format!("{root}/{{id}}/execute")).post(browser::execute::handle));
    }
    routes
        // Its capabilities (CONTRACT 8.5): the DevTools protocol, and the pages that show it.
        .service(at("/cdp/{id}").get(browser::cdp::handle))
        .service(at("/cdp/{id}/").get(browser::cdp::handle))
        .service(at("/cdp/{id}/json/version").get(browser::cdp::version))
        .service(at("/cdp/{id}/json/version/").get(browser::cdp::version))
        .service(at("/live/view.js").get(browser::live::script))
        .service(at("/live/view.css").get(browser::live::style))
        .service(at("/live/{id}").get(browser::live::page))
        .service(at("/live/{id}/socket").get(browser::live::socket))
        // Scrape (CONTRACT 3) and interact (SPEC 4.5, 4.6).
        .service(at("/v2/scrape").post(scrape::run::handle))
        .service(at("/v2/scrape/{id}").get(scrape::status::handle))
        .service(at("/v2/scrape/{id}/interact")
            .post(interact::run::handle)
            .delete(interact::stop::handle))
        .service(at("/v2/parse").post(not_built::handle))
        .service(at("/v2/parse/formats").get(not_built::handle))
        // Batch scrape (SPEC 4.7, 4.8; CONTRACT 4 to 6).
        .service(at("/v2/batch/scrape").post(batch_scrape::start::handle))
        .service(at("/v2/batch/scrape/{id}").app_data(JobKind::Batch)
            .websocket(jobs::watch::handle)
            .get(jobs::status::handle)
            .delete(jobs::cancel::handle))
        .service(at("/v2/batch/scrape/{id}/errors").get(jobs::errors::handle).app_data(JobKind::Batch))
        // Map and crawl (SPEC 4.9 to 4.11).
        .service(at("/v2/map").post(map::handle))
        .service(at("/v2/crawl").post(crawl::start::handle))
        .service(at("/v2/crawl/params-preview").post(crawl::params_preview::handle))
        .service(at("/v2/crawl/active").get(crawl::active::handle))
        .service(at("/v2/crawl/ongoing").get(crawl::active::handle))
        .service(at("/v2/crawl/{id}").app_data(JobKind::Crawl)
            .websocket(jobs::watch::handle)
            .get(jobs::status::handle)
            .delete(jobs::cancel::handle))
        .service(at("/v2/crawl/{id}/errors").get(jobs::errors::handle).app_data(JobKind::Crawl))
        // Team (SPEC 4.12, 4.13, CONTRACT 10).
        .service(at("/v2/team/activity").get(team::activity::handle))
        .service(at("/v2/team/credit-usage").get(team::credit_usage::handle))
        .service(at("/v2/team/credit-usage/historical").get(team::credit_usage::historical))
        .service(at("/v2/team/token-usage").get(team::token_usage::handle))
        .service(at("/v2/team/token-usage/historical").get(team::token_usage::historical))
        .service(at("/v2/team/queue-status").get(team::concurrency::queue_status))
        .service(at("/v2/concurrency-check").get(team::concurrency::check))
        // Further groups (SPEC 1, CONTRACT 12).
        .service(at("/v2/search").post(not_built::handle))
        .service(at("/v2/extract").post(not_built::handle))
        .service(at("/v2/extract/{id}").get(not_built::handle))
        .service(at("/v2/agent").post(not_built::handle).get(not_built::handle))
        .service(at("/v2/agent/{id}").get(not_built::handle).delete(not_built::handle))
        // Beside the API (INTERFACE).
        .service(at("/healthz").get(health::alive))
        .service(at("/readyz").get(health::ready))
        .service(at("/metrics").get(health::metrics))
        .service(at("/welcome").get(welcome::page))
}

/// The routes, in order.
struct Routes(Vec<At>);

impl Routes {
    fn service(mut self, at: At) -> Self {
        self.0.push(at);
        self
    }
}

/// A path; methods that it does not have are answered 405.
fn at(path: &str) -> At {
    At {
        path: path.to_owned(),
        methods: Vec::new(),
        resource: web::resource(path).default_service(web::to(wrong_method)),
    }
}

struct At {
    path: String,
    methods: Vec<&'static str>,
    resource: Resource,
}

/// A method of [`At`] for each of HTTP's.
macro_rules! methods {
    ($($name:ident = $method:ident;)+) => {
        impl At {$(
            fn $name<F, Args>(mut self, handler: F) -> Self
            where
                F: actix_web::Handler<Args>,
                Args: actix_web::FromRequest + 'static,
                F::Output: actix_web::Responder + 'static,
            {
                self.methods.push(stringify!($method));
                self.resource = self.resource.route(web::$name().to(handler));
                self
            }
        )+}
    };
}

methods! {
    get = GET;
    post = POST;
    delete = DELETE;
}

impl At {
    /// The kind of jobs that the path serves.
    fn app_data(mut self, kind: JobKind) -> Self {
        self.resource = self.resource.app_data(kind);
        self
    }

    /// What answers a GET that asks for a WebSocket.
    fn websocket<F, Args>(mut self, handler: F) -> Self
    where
        F: actix_web::Handler<Args>,
        Args: actix_web::FromRequest + 'static,
        F::Output: actix_web::Responder + 'static,
    {
        let upgrade = web::get().guard(guard::fn_guard(jobs::watch::is_upgrade));
        self.resource = self.resource.route(upgrade.to(handler));
        self
    }
}

async fn not_found(request: HttpRequest) -> Result<&'static str, ApiError> {
    let text = format!("Cannot {} {}", request.method(), request.path());
    Err(ApiError::new(ErrorCode::NotFound, text))
}

async fn wrong_method(request: HttpRequest) -> Result<&'static str, ApiError> {
    let text = format!("{} is not allowed on {}", request.method(), request.path());
    Err(ApiError::new(ErrorCode::MethodNotAllowed, text))
}
