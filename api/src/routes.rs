//! Every path and method, in the order of the specification; each line names the file of its operation.

use actix_web::http::header::{self, HeaderValue};
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, Resource, ResponseError, guard};
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::job::JobKind;
use weir_shared::error_code::ErrorCode;

use crate::callers::open_mode;
use crate::endpoints::jobs::Served;
use crate::endpoints::{
    agent, batch_scrape, browser, crawl, extract, feedback, interact, jobs, map, mcp, monitor, parse, scrape, search,
    team, v1,
};
use crate::error::ApiError;
use crate::openapi::{Described, Group, Operation};
use crate::{console, docs, health, welcome};

/// Where files are sent: the one path of these that wants no key, because the address that is given out has a signature.
pub const UPLOAD: &str = "/v2/parse/upload/{id}";
/// Below it lies the console.
const CONSOLE: &str = "/console";
/// The one path that is no beginning of others but by its slash.
const ENTRANCE: &str = "/";

/// What official clients call and is deliberately not offered (wire 12), with what there is instead.
const NOT_OFFERED: [(&str, &str); 2] = [
    (
        "/v2/support/ask",
        "it is not offered here. What became of a job is told in the console at /console/jobs/ID, and below the job's own path \
         by /errors",
    ),
    ("/v2/support/docs-search", "it is not offered here. The documentation of this service is at /docs"),
];

/// Registers the routes.
pub fn configure(config: &mut ServiceConfig) {
    for (root, routes) in by_root(routes()) {
        let routes = routes.into_iter().map(|at| at.answering_wrong_methods().wrap(from_fn(open_mode::keep_pages_out)));
        if root == CONSOLE {
            for resource in routes {
                config.service(resource.wrap(from_fn(console::guard)));
            }
        } else if root == ENTRANCE {
            for resource in routes {
                config.service(resource);
            }
        } else {
            config.service(routes.fold(web::scope(&root), |scope, resource| scope.service(resource)));
        }
    }
    console_pages(config);
    config.default_service(web::to(not_found));
}

/// The console's pages and files, and the public API as who is signed in calls it.
fn console_pages(config: &mut ServiceConfig) {
    let mut public = web::scope(console::public::ROOT);
    for (root, routes) in by_root(routes()) {
        // Not those of before, and not the address that is a right by itself.
        if root.starts_with("/v2/") {
            let routes = routes.into_iter().filter(|at| at.path != UPLOAD).map(At::answering_wrong_methods);
            public = public.service(routes.fold(web::scope(&root), |scope, resource| scope.service(resource)));
        }
    }
    let public = public.default_service(web::to(not_found)).wrap(from_fn(console::public::as_team));
    config.service(public.wrap(from_fn(open_mode::keep_pages_out)).wrap(from_fn(console::guard)));
    let api = web::scope("/console/api").default_service(web::to(not_found));
    config.service(api.wrap(from_fn(open_mode::keep_pages_out)).wrap(from_fn(console::guard)));
    let pages = web::scope("/console")
        .service(
            web::resource("/assets/{digest}/{path:.*}").get(console::assets::file).default_service(web::to(not_a_get)),
        )
        .service(web::resource(["", "/", "/{tail:.*}"]).get(console::assets::page).default_service(web::to(not_a_get)));
    config.service(pages.wrap(from_fn(open_mode::keep_pages_out)).wrap(from_fn(console::guard)));
}

/// The routes by how their paths begin, in order. What has parameters is compared by a pattern; a request is only compared
/// with those that begin as it does.
fn by_root(routes: Routes) -> Vec<(String, Vec<At>)> {
    let mut roots: Vec<(String, Vec<At>)> = Vec::new();
    for at in routes.0 {
        let root = root_of(&at.path);
        match roots.iter_mut().find(|(known, _)| known == root) {
            Some((_, routes)) => routes.push(at),
            None => roots.push((root.to_owned(), vec![at])),
        }
    }
    roots
}

/// How a path begins: its first name, behind a version. No root is the beginning of another one. The console's routes are
/// registered one by one, because what is not among them is the console's, too; and `/`, which would take all.
fn root_of(path: &str) -> &str {
    let mut ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
    let first = ends.next().unwrap_or(path.len());
    match &path[..first] {
        CONSOLE => CONSOLE,
        "/v1" | "/v2" => &path[..ends.next().unwrap_or(first)],
        root => root,
    }
}
/// Every method and path: what tests go by, so that a new route is in them by itself.
pub fn list() -> Vec<(&'static str, String)> {
    operations().into_iter().map(|(method, path, _)| (method, path)).collect()
}

/// Every method and path with what the API's document says of it. A route cannot be without.
pub fn operations() -> Vec<Described> {
    let each = |at: At| at.methods.into_iter().map(move |(method, doc)| (method, at.path.clone(), doc()));
    routes().0.into_iter().flat_map(each).collect()
}

const BATCHES: Served = Served::new(ApiVersion::V2, JobKind::Batch);
const CRAWLS: Served = Served::new(ApiVersion::V2, JobKind::Crawl);
const V1_BATCHES: Served = Served::new(ApiVersion::V1, JobKind::Batch);
const V1_CRAWLS: Served = Served::new(ApiVersion::V1, JobKind::Crawl);

#[rustfmt::skip]
fn routes() -> Routes {
    let mut routes = Routes(Vec::new());
    // Browser sessions (spec 4.1 to 4.4, wire 8): the same under both names.
    for root in ["/v2/browser", "/v2/interact"] {
        routes = routes
            .service(at(root)
                .post(browser::create::handle, browser::create::doc)
                .get(browser::list::handle, browser::list::doc)
                .delete(browser::delete::by_body, browser::delete::doc_by_body))
            .service(at(&format!("{root}/profiles/{{name}}")).delete(browser::profiles::remove, browser::profiles::doc))
            .service(at(&format!("{root}/{{id}}"))
                .get(browser::show::handle, browser::show::doc)
                .delete(browser::delete::by_path, browser::delete::doc_by_path))
            .service(at(&format!("{root}/{{id}}/execute")).post(browser::execute::handle, browser::execute::doc));
    }
    routes
        // Its capabilities (wire 8.5): the DevTools protocol, and the pages that show it.
        .service(at("/cdp/{id}").get(browser::cdp::handle, browser::cdp::doc))
        .service(at("/cdp/{id}/").get(browser::cdp::handle, browser::cdp::doc))
        .service(at("/cdp/{id}/json/version").get(browser::cdp::version, browser::cdp::doc_version))
        .service(at("/cdp/{id}/json/version/").get(browser::cdp::version, browser::cdp::doc_version))
        .service(at("/live/view.js").get(browser::live::script, browser::live::doc_script))
        .service(at("/live/view.css").get(browser::live::style, browser::live::doc_style))
        .service(at("/live/{id}").get(browser::live::page, browser::live::doc_page))
        .service(at("/live/{id}/socket").get(browser::live::socket, browser::live::doc_socket))
        // Scrape (wire 3) and interact (spec 4.5, 4.6).
        .service(at("/v2/scrape").post(scrape::run::handle, scrape::doc_run))
        .service(at("/v2/scrape/{id}").get(scrape::status::handle, scrape::doc_status))
        .service(at("/v2/scrape/{id}/interact")
            .post(interact::run::handle, interact::run::doc)
            .delete(interact::stop::handle, interact::stop::doc))
        .service(at("/v2/parse").post(parse::handle, parse::doc))
        .service(at("/v2/parse/formats").get(parse::formats::handle, parse::formats::doc))
        .service(at("/v2/parse/upload-url").post(parse::upload::url, parse::upload::doc_url))
        .service(at(UPLOAD).put(parse::upload::put, parse::upload::doc_put))
        // Batch scrape (spec 4.7, 4.8; wire 4 to 6).
        .service(at("/v2/batch/scrape").post(batch_scrape::start::handle, batch_scrape::start::doc))
        .service(at("/v2/batch/scrape/{id}").serves(BATCHES)
            .websocket(jobs::watch::handle)
            .get(jobs::status::handle, || jobs::status::doc(BATCHES))
            .delete(jobs::cancel::handle, || jobs::cancel::doc(BATCHES)))
        .service(at("/v2/batch/scrape/{id}/errors").serves(BATCHES)
            .get(jobs::errors::handle, || jobs::errors::doc(BATCHES)))
        // Map and crawl (spec 4.9 to 4.11).
        .service(at("/v2/map").post(map::handle, map::doc))
        .service(at("/v2/crawl").post(crawl::start::handle, crawl::start::doc))
        .service(at("/v2/crawl/params-preview").post(crawl::params_preview::handle, crawl::params_preview::doc))
        .service(at("/v2/crawl/active").get(crawl::active::handle, crawl::active::doc))
        .service(at("/v2/crawl/ongoing").get(crawl::active::handle, crawl::active::doc))
        .service(at("/v2/crawl/{id}").serves(CRAWLS)
            .websocket(jobs::watch::handle)
            .get(jobs::status::handle, || jobs::status::doc(CRAWLS))
            .delete(jobs::cancel::handle, || jobs::cancel::doc(CRAWLS)))
        .service(at("/v2/crawl/{id}/errors").serves(CRAWLS)
            .get(jobs::errors::handle, || jobs::errors::doc(CRAWLS)))
        // Search (wire 20), and what callers say of results (wire 25).
        .service(at("/v2/search").post(search::handle, search::doc))
        .service(at("/v2/search/{id}/feedback").post(feedback::of_search, feedback::doc_of_search))
        .service(at("/v2/feedback").post(feedback::handle, feedback::doc))
        // Monitors (wire 24).
        .service(at("/v2/monitor")
            .post(monitor::create::handle, monitor::create::doc)
            .get(monitor::list::handle, monitor::list::doc))
        .service(at("/v2/monitor/{id}")
            .get(monitor::show::handle, monitor::show::doc)
            .patch(monitor::update::handle, monitor::update::doc)
            .delete(monitor::delete::handle, monitor::delete::doc))
        .service(at("/v2/monitor/{id}/run").post(monitor::run::handle, monitor::run::doc))
        .service(at("/v2/monitor/{id}/checks").get(monitor::checks::handle, monitor::checks::doc))
        .service(at("/v2/monitor/{id}/checks/{check}").get(monitor::check::handle, monitor::check::doc))
        // Team (spec 4.12, 4.13, wire 10).
        .service(at("/v2/team/activity").get(team::activity::handle, team::activity::doc))
        .service(at("/v2/team/credit-usage").get(team::credit_usage::handle, team::credit_usage::doc))
        .service(at("/v2/team/credit-usage/historical").get(team::credit_usage::historical, team::credit_usage::doc_historical))
        .service(at("/v2/team/token-usage").get(team::token_usage::handle, team::token_usage::doc))
        .service(at("/v2/team/token-usage/historical").get(team::token_usage::historical, team::token_usage::doc_historical))
        .service(at("/v2/team/queue-status").get(team::concurrency::queue_status, team::concurrency::doc_queue_status))
        .service(at("/v2/concurrency-check").get(team::concurrency::check, team::concurrency::doc_check))
        .service(at("/v2/team/threat-protection")
            .get(team::threat_protection::handle, || team::threat_protection::doc("getThreatProtection", "The team's threat protection"))
            .put(team::threat_protection::handle, || team::threat_protection::doc("setThreatProtection", "Set the team's threat protection")))
        // The same as tools of the Model Context Protocol.
        .service(at("/mcp").post(mcp::handle, mcp::doc))
        // Extractions and agents (wire 22, 23).
        .service(at("/v2/extract").post(extract::start::handle, extract::start::doc))
        .service(at("/v2/extract/{id}").get(extract::status::handle, extract::status::doc))
        .service(at("/v2/agent")
            .post(agent::start::handle, agent::start::doc)
            .get(agent::list::handle, agent::list::doc))
        .service(at("/v2/agent/threads/{id}").get(agent::thread::handle, agent::thread::doc))
        .service(at("/v2/agent/{id}")
            .get(agent::status::handle, agent::status::doc)
            .delete(agent::cancel::handle, agent::cancel::doc))
        .service(at("/v2/agent/{id}/trace").get(agent::trace::handle, agent::trace::doc))
        .service(at("/v2/agent/{id}/snapshots/{page}").get(agent::snapshot::handle, agent::snapshot::doc))
        // Version 1 (wire 26).
        .service(at("/v1/scrape").post(v1::scrape::handle, v1::scrape::doc))
        .service(at("/v1/batch/scrape").post(v1::batch::handle, v1::batch::doc))
        .service(at("/v1/batch/scrape/{id}").serves(V1_BATCHES)
            .websocket(jobs::watch::handle)
            .get(jobs::status::handle, || jobs::status::doc(V1_BATCHES))
            .delete(jobs::cancel::handle, || jobs::cancel::doc(V1_BATCHES)))
        .service(at("/v1/batch/scrape/{id}/errors").serves(V1_BATCHES)
            .get(jobs::errors::handle, || jobs::errors::doc(V1_BATCHES))
            .delete(jobs::errors::handle, || jobs::errors::doc_by_delete(V1_BATCHES)))
        .service(at("/v1/crawl").post(v1::crawl::handle, v1::crawl::doc))
        .service(at("/v1/crawl/active").get(crawl::active::handle, || crawl::active::doc().group(Group::V1)))
        .service(at("/v1/crawl/ongoing").get(crawl::active::handle, || crawl::active::doc().group(Group::V1)))
        .service(at("/v1/crawl/{id}").serves(V1_CRAWLS)
            .websocket(jobs::watch::handle)
            .get(jobs::status::handle, || jobs::status::doc(V1_CRAWLS))
            .delete(jobs::cancel::handle, || jobs::cancel::doc(V1_CRAWLS)))
        .service(at("/v1/crawl/{id}/errors").serves(V1_CRAWLS)
            .get(jobs::errors::handle, || jobs::errors::doc(V1_CRAWLS))
            .delete(jobs::errors::handle, || jobs::errors::doc_by_delete(V1_CRAWLS)))
        .service(at("/v1/map").post(v1::map::handle, v1::map::doc))
        .service(at("/v1/search").post(v1::search::handle, v1::search::doc))
        .service(at("/v1/team/activity").get(team::activity::handle, || team::activity::doc().group(Group::V1)))
        .service(at("/v1/team/credit-usage").get(v1::team::credits, v1::team::doc_credits))
        .service(at("/v1/team/credit-usage/historical").get(team::credit_usage::historical, || team::credit_usage::doc_historical().group(Group::V1)))
        .service(at("/v1/team/token-usage").get(v1::team::tokens, v1::team::doc_tokens))
        .service(at("/v1/team/token-usage/historical").get(team::token_usage::historical, || team::token_usage::doc_historical().group(Group::V1)))
        .service(at("/v1/team/queue-status").get(team::concurrency::queue_status, || team::concurrency::doc_queue_status().group(Group::V1)))
        .service(at("/v1/concurrency-check").get(team::concurrency::check, || team::concurrency::doc_check().group(Group::V1)))
        .service(at("/v1/extract").post(v1::extract::handle, v1::extract::doc))
        .service(at("/v1/extract/{id}").get(extract::status::handle, || extract::status::doc().named(Group::V1, "getExtractV1")))
        .service(at("/v1/llmstxt").post(v1::llmstxt::start, v1::llmstxt::doc_start))
        .service(at("/v1/llmstxt/{id}").get(v1::llmstxt::status, v1::llmstxt::doc_status))
        // Beside the API.
        .service(at("/healthz").get(health::alive, health::doc_alive))
        .service(at("/readyz").get(health::ready, health::doc_ready))
        .service(at("/metrics").get(health::metrics, health::doc_metrics))
        .service(at("/openapi.json").get(|| docs::document(operations), docs::doc_document))
        .service(at("/docs").get(docs::page, docs::doc_page))
        .service(at("/docs/docs.js").get(docs::script, docs::doc_script))
        .service(at("/docs/docs.css").get(docs::style, docs::doc_style))
        .service(at("/welcome").get(welcome::page, welcome::doc))
        .service(at(ENTRANCE).get(welcome::entrance, welcome::doc_entrance))
        // The console.
        .service(at("/console/api/sign-in").post(console::sign_in::handle, console::sign_in::doc))
        .service(at("/console/api/sign-out").post(console::sign_in::out, console::sign_in::doc_sign_out))
        .service(at("/console/api/me").get(console::sign_in::me, console::sign_in::doc_me))
        .service(at("/console/api/overview").get(console::overview::handle, console::overview::doc))
        .service(at("/console/api/stream").get(console::stream::handle, console::stream::doc))
        .service(at("/console/api/jobs").get(console::jobs::list, console::jobs::doc_list))
        .service(at("/console/api/jobs/count").post(console::jobs::count, console::jobs::doc_count))
        .service(at("/console/api/jobs/cancel").post(console::jobs::cancel, console::jobs::doc_cancel))
        .service(at("/console/api/jobs/replay").post(console::jobs::replay, console::jobs::doc_replay))
        .service(at("/console/api/jobs/delete").post(console::jobs::delete, console::jobs::doc_delete))
        .service(at("/console/api/jobs/{id}").get(console::job::show, console::job::doc))
        .service(at("/console/api/jobs/{id}/pages").get(console::job::pages, console::job::doc_pages))
        .service(at("/console/api/jobs/{id}/webhooks").get(console::job::deliveries, console::job::doc_webhooks))
        .service(at("/console/api/jobs/{id}/webhooks/replay").post(console::job::replay, console::job::doc_replay))
        .service(at("/console/api/jobs/{id}/pages/{page}").get(console::page::show, console::page::doc))
        .service(at("/console/api/jobs/{id}/pages/{page}/replay").post(console::page::replay, console::page::doc_replay))
        .service(at("/console/api/jobs/{id}/pages/{page}/html").get(console::page::html, console::page::doc_html))
        .service(at("/console/api/jobs/{id}/pages/{page}/screenshot")
            .get(console::page::screenshot, console::page::doc_screenshot))
        .service(at("/console/api/jobs/{id}/pages/{page}/history")
            .get(console::page::history, console::page::doc_history))
        .service(at("/console/api/failures").get(console::failures::list, console::failures::doc))
        .service(at("/console/api/failures/replay").post(console::failures::replay, console::failures::doc_replay))
        .service(at("/console/api/usage").get(console::usage::handle, console::usage::doc))
        .service(at("/console/api/usage/teams").get(console::usage::of_all, console::usage::doc_teams))
        .service(at("/console/api/keys")
            .get(console::keys::list, console::keys::doc_list)
            .post(console::keys::create, console::keys::doc_create))
        .service(at("/console/api/keys/{id}")
            .patch(console::keys::rename, console::keys::doc_rename)
            .delete(console::keys::revoke, console::keys::doc_revoke))
        .service(at("/console/api/teams")
            .get(console::teams::list, console::teams::doc_list)
            .post(console::teams::create, console::teams::doc_create))
        .service(at("/console/api/teams/{id}").patch(console::teams::change, console::teams::doc_change))
        .service(at("/console/api/workers").get(console::workers::list, console::workers::doc_list))
        .service(at("/console/api/workers/{id}/drain").post(console::workers::drain, console::workers::doc_drain))
        .service(at("/console/api/sessions").get(console::browser_sessions::list, console::browser_sessions::doc))
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
    let below = match root_of(path) {
        CONSOLE | ENTRANCE => path,
        root => &path[root.len()..],
    };
    At { path: path.to_owned(), methods: Vec::new(), resource: web::resource(below) }
}

/// A route as the document has it.
type Doc = fn() -> Operation;

struct At {
    path: String,
    methods: Vec<(&'static str, Doc)>,
    resource: Resource,
}

/// A method of [`At`] for each of HTTP's.
macro_rules! methods {
    ($($name:ident = $method:ident;)+) => {
        impl At {$(
            fn $name<F, Args>(mut self, handler: F, doc: Doc) -> Self
            where
                F: actix_web::Handler<Args>,
                Args: actix_web::FromRequest + 'static,
                F::Output: actix_web::Responder + 'static,
            {
                self.methods.push((stringify!($method), doc));
                self.resource = self.resource.route(web::$name().to(handler));
                self
            }
        )+}
    };
}

methods! {
    get = GET;
    post = POST;
    put = PUT;
    patch = PATCH;
    delete = DELETE;
}

impl At {
    /// The resource; methods that it does not have are answered 405.
    fn answering_wrong_methods(self) -> Resource {
        let methods: Vec<&str> = self.methods.iter().map(|(method, _)| *method).collect();
        let mut allowed = methods.join(", ");
        if methods.contains(&"GET") {
            // `head` has it answered as one.
            allowed.push_str(", HEAD");
        }
        let wrong_method = move |request: HttpRequest| std::future::ready(wrong_method(&request, &allowed));
        self.resource.default_service(web::to(wrong_method))
    }

    /// The jobs that the path serves.
    fn serves(mut self, served: Served) -> Self {
        self.resource = self.resource.app_data(served);
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
    let mut text = format!("Cannot {} {}", request.method(), request.path());
    if let Some((_, instead)) = NOT_OFFERED.iter().find(|(path, _)| *path == request.path()) {
        text += &format!(": {instead}");
    }
    Err(ApiError::new(ErrorCode::NotFound, text))
}

async fn not_a_get(request: HttpRequest) -> HttpResponse {
    wrong_method(&request, "GET, HEAD")
}

/// 405, with the methods that there are (RFC 9110, 15.5.6).
fn wrong_method(request: &HttpRequest, allowed: &str) -> HttpResponse {
    let text = format!("{} is not allowed on {}", request.method(), request.path());
    let mut answer = ApiError::new(ErrorCode::MethodNotAllowed, text).error_response();
    if let Ok(allowed) = HeaderValue::from_str(allowed) {
        answer.headers_mut().insert(header::ALLOW, allowed);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_root_takes_what_begins_with_another() {
        let roots: Vec<String> = by_root(routes()).into_iter().map(|(root, _)| root).collect();
        for root in &roots {
            let below = format!("{root}/");
            assert!(!roots.iter().any(|other| other.starts_with(&below)), "{root} hides another: {roots:?}");
            assert!(!root.contains('{'), "{root} is compared as it stands");
        }
    }

    #[test]
    fn few_routes_stand_side_by_side() {
        let parameters = |routes: &[At]| routes.iter().filter(|at| at.path.contains('{')).count();
        for (root, routes) in by_root(routes()).into_iter().filter(|(root, _)| root != CONSOLE) {
            assert!(parameters(&routes) <= 12, "a request below {root} is compared with {}", parameters(&routes));
        }
    }
}
