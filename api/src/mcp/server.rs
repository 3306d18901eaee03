//! What the protocol asks of a server: its tools, calls of them, and resources.

use std::sync::{Arc, Mutex, PoisonError};

use actix_web::web::Bytes;
use reqwest::Method;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    ErrorData, Implementation, InitializeRequestParams, ListResourceTemplatesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value};

use super::tools::{self, CREDITS, INTERACT, Outcome, PARSE, Tool};
use super::weir::{Answer, Weir};
use super::{arguments, files, resources, schema};
use crate::http::json::{self, Fault};
use crate::openapi::Described;

const INSTRUCTIONS: &str = "Reads the web: single pages (scrape), many (batch_scrape), sites (map, crawl), searches, the \
    user's files (parse), and browsers to act in (interact, browser_*). Monitors (monitor_*) look at pages again and again \
    and tell what changed. Crawls and batches run in the background: their \
    tools answer a link to a resource that is read until its status is completed, failed or cancelled.";

/// A server for one caller. It keeps nothing between requests.
#[derive(Clone)]
pub struct Server {
    pub(super) weir: Weir,
    /// The routes with what the API's document says of them.
    routes: fn() -> Vec<Described>,
    /// Files are on this machine, and its caller's to read.
    reads_files: bool,
    /// The text of a call's arguments, where they were taken out of its message.
    arguments: Arc<Mutex<Option<Bytes>>>,
}

impl Server {
    /// A server for a caller who is elsewhere: no file of this machine is touched for it.
    pub fn new(weir: Weir, routes: fn() -> Vec<Described>) -> Self {
        Self { weir, routes, reads_files: false, arguments: Arc::default() }
    }

    /// A server that its caller has started: it reads the files that the caller may read.
    pub fn of_user(weir: Weir, routes: fn() -> Vec<Described>) -> Self {
        Self { weir, routes, reads_files: true, arguments: Arc::default() }
    }

    /// The server for the one call whose arguments these are, a JSON object; its message comes without them.
    pub fn with_arguments(self, arguments: Bytes) -> Self {
        Self { arguments: Arc::new(Mutex::new(Some(arguments))), ..self }
    }

    /// What a call is given: by its message, or what was taken out of that. From here to where a route's body is made of
    /// it nothing is waited for, so that the values are freed where they were made.
    fn given(&self, request: CallToolRequestParams) -> Result<Map<String, Value>, ErrorData> {
        let taken = self.arguments.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(text) = taken else { return Ok(request.arguments.unwrap_or_default()) };
        match json::decode(&text) {
            Ok(Value::Object(given)) => Ok(given),
            Ok(_) => Err(ErrorData::invalid_params("The arguments of a call are an object.", None)),
            Err(Fault::Malformed(error)) => {
                Err(ErrorData::invalid_params(format!("The arguments cannot be read: {error}"), None))
            }
            Err(Fault::TooDense) => Err(ErrorData::invalid_params("The arguments have too many values.", None)),
        }
    }

    /// Calls a tool. What fails is told in the result, where models read it.
    async fn run(&self, tool: &Tool, mut given: Map<String, Value>) -> Result<CallToolResult, CallToolResult> {
        match tool.name {
            INTERACT => self.interact(tool, given).await,
            PARSE => self.parse(tool, given).await,
            CREDITS => {
                let by_month = given.shift_remove("view").is_some_and(|view| view == "historical");
                if by_month || given.get("byApiKey") == Some(&Value::Bool(true)) {
                    let path = "/v2/team/credit-usage/historical";
                    let answer = self.call(tool, path, parts(tool, given)?).await?;
                    return Ok(good(answer.body));
                }
                self.route(tool, Map::new()).await
            }
            _ => self.route(tool, given).await,
        }
    }

    /// The route of a tool, and its answer as the tool has it.
    async fn route(&self, tool: &Tool, given: Map<String, Value>) -> Result<CallToolResult, CallToolResult> {
        let parts = parts(tool, given)?;
        let id = parts.ids.first().cloned().unwrap_or_default();
        let Answer { mut body, .. } = self.call(tool, tool.path, parts).await?;
        let link = match tool.result {
            Outcome::Whole => None,
            Outcome::Document => {
                let document = body["data"].take();
                return Ok(good(document));
            }
            Outcome::Job(job) => resources::of_started(job, &body),
            Outcome::Documents(job) => resources::of_next(job, &id, &body),
        };
        let mut result = good(body);
        result.content.extend(link.map(ContentBlock::resource_link));
        Ok(result)
    }

    /// Goes on from a scrape; with a `url`, from one that is made first.
    async fn interact(&self, tool: &Tool, mut given: Map<String, Value>) -> Result<CallToolResult, CallToolResult> {
        let url = given.shift_remove("url").filter(|url| !url.is_null());
        let options = given.shift_remove("scrapeOptions").filter(|options| !options.is_null());
        let has_scrape = given.get("scrapeId").is_some_and(|id| !id.is_null());
        let Some(url) = url else {
            return match (has_scrape, options) {
                (true, None) => self.route(tool, given).await,
                (true, Some(_)) => {
                    Err(bad("scrapeOptions says how a page is opened: it goes with url, not with scrapeId."))
                }
                (false, _) => Err(bad("Give the scrapeId of a page that was scraped, or the url of a page to open.")),
            };
        };
        if has_scrape {
            return Err(bad("Give either scrapeId or url: the page that was scraped, or one to open."));
        }
        let scrape = tools::named("firecrawl_scrape").ok_or_else(|| bad("There is no tool to open a page with."))?;
        let mut page = match options {
            Some(Value::Object(options)) => options,
            Some(_) => return Err(bad("scrapeOptions must be an object.")),
            None => Map::new(),
        };
        page.insert("url".to_owned(), url);
        let opened = self.call(scrape, scrape.path, parts(scrape, page)?).await?;
        let id = opened.body["data"]["metadata"]["scrapeId"].clone();
        given.insert("scrapeId".to_owned(), id.clone());
        let Answer { mut body, .. } = self.call(tool, tool.path, parts(tool, given)?).await?;
        body["scrapeId"] = id;
        Ok(good(body))
    }

    /// Parses a file: one that was uploaded, one that is read here, or first one that is yet to be uploaded.
    async fn parse(&self, tool: &Tool, mut given: Map<String, Value>) -> Result<CallToolResult, CallToolResult> {
        let has_ref = given.get("uploadRef").and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
        let file = files::Named::take(&mut given).map_err(|text| bad(&text))?;
        match (file, has_ref) {
            (None, true) => self.route(tool, given).await,
            (Some(file), false) if self.reads_files => {
                let options = parts(tool, given)?.body.unwrap_or_else(|| Map::new().into());
                let answer = file.send(&self.weir, tool.path, &options).await.map_err(|text| bad(&text))?;
                if answer.is_good() { Ok(good(answer.body)) } else { Err(refused(answer)) }
            }
            (Some(file), false) => {
                let parts = arguments::Parts { ids: Vec::new(), query: Vec::new(), body: Some(file.announcement()) };
                let answer = self.call(tool, files::UPLOAD_URL, parts).await?;
                Ok(good(file.instructions(&answer.body["data"], given)))
            }
            (None, false) | (Some(_), true) => {
                Err(bad("Give the filePath of a file, or the uploadRef of one that was uploaded."))
            }
        }
    }

    async fn call(&self, tool: &Tool, path: &str, parts: arguments::Parts) -> Result<Answer, CallToolResult> {
        let ids: Vec<&str> = parts.ids.iter().map(String::as_str).collect();
        let answer =
            self.weir.call(&tool.method, path, &ids, &parts.query, parts.body).await.map_err(|text| bad(&text))?;
        if answer.is_good() { Ok(answer) } else { Err(refused(answer)) }
    }
}

/// The arguments as the tool's route wants them, or what is missing.
#[expect(clippy::result_large_err, reason = "it is the call's answer")]
fn parts(tool: &Tool, given: Map<String, Value>) -> Result<arguments::Parts, CallToolResult> {
    arguments::parts(tool, given).map_err(|text| bad(&text))
}

/// What is wrong with the params of a method that is known: the library takes those for methods that it does not know.
fn wrong_params(method: &str, params: Option<Value>) -> Option<ErrorData> {
    fn fault<T: serde::de::DeserializeOwned>(params: Value) -> Option<String> {
        serde_json::from_value::<T>(params).err().map(|error| error.to_string())
    }
    let params = params.unwrap_or_else(|| Value::Object(Map::new()));
    let fault = match method {
        "initialize" => fault::<InitializeRequestParams>(params),
        "tools/call" => fault::<CallToolRequestParams>(params),
        "resources/read" => fault::<ReadResourceRequestParams>(params),
        "tools/list" | "resources/list" | "resources/templates/list" => fault::<PaginatedRequestParams>(params),
        _ => None,
    };
    fault.map(|why| ErrorData::invalid_params(format!("The params of {method} cannot be read: {why}"), None))
}

/// A result: as values, and as the text that every client shows its model.
fn good(body: Value) -> CallToolResult {
    CallToolResult::structured(body)
}

/// A failure in words.
fn bad(text: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// A failure in the route's words, with what it says of it for programs.
fn refused(answer: Answer) -> CallToolResult {
    let mut result = bad(&words(&answer));
    result.structured_content = Some(answer.body);
    result
}

/// What an error's body says, in one text: what happened, its code, which further rules were broken, and what to do.
fn words(answer: &Answer) -> String {
    let Answer { status, body, hint } = answer;
    let mut text = body["error"].as_str().map_or_else(|| format!("Weir answered with status {status}."), str::to_owned);
    if let Some(code) = body["code"].as_str() {
        text += &format!(" ({code})");
    }
    let issues = body["details"].as_array().into_iter().flatten().filter_map(|issue| issue["message"].as_str());
    for issue in issues.filter(|issue| body["error"] != *issue).chain(hint.as_deref()) {
        text += &format!("\n{issue}");
    }
    text
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("weir", env!("CARGO_PKG_VERSION")).with_title("Weir"))
            .with_instructions(INSTRUCTIONS)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let unknown = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method.clone(), None);
        Err(wrong_params(&request.method, request.params.clone()).unwrap_or_else(unknown))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(schema::listed(self.routes).await.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::named(&request.name) else {
            return Err(ErrorData::invalid_params(format!("Unknown tool: {}", request.name), None));
        };
        let given = self.given(request)?;
        tokio::select! {
            // Nobody waits for the result any more: the request to the route is dropped.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("The call was cancelled.", None)),
            result = self.run(tool, given) => Ok(result.unwrap_or_else(|failure| failure).into()),
        }
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let unknown = |text: String| ErrorData::resource_not_found(text, Some(serde_json::json!({ "uri": uri })));
        let Some((job, id, query)) = resources::read(&uri) else {
            return Err(unknown("Resource not found".to_owned()));
        };
        let ids = [id.as_str()];
        let answer = tokio::select! {
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("The read was cancelled.", None)),
            answer = self.weir.call(&Method::GET, job.path(), &ids, &query, None) => answer,
        };
        let answer = answer.map_err(|text| ErrorData::internal_error(text, None))?;
        match answer.status {
            200 => {
                let text = ResourceContents::text(answer.body.to_string(), uri).with_mime_type("application/json");
                Ok(ReadResourceResult::new(vec![text]).into())
            }
            400..=404 => Err(unknown(words(&answer))),
            _ => Err(ErrorData::internal_error(words(&answer), Some(answer.body))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_with_params_is_said_of_methods_that_are_known() {
        for (method, params, word) in [
            ("tools/call", json!({"arguments": {}}), "name"),
            ("tools/call", json!({"name": "firecrawl_scrape", "arguments": []}), "map"),
            ("initialize", json!({"capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}), "protocolVersion"),
            ("resources/read", json!({}), "uri"),
            ("tools/list", json!({"cursor": 5}), "string"),
        ] {
            let wrong = wrong_params(method, Some(params)).map(|error| (error.code, error.message.into_owned()));
            let is_told = wrong.as_ref().is_some_and(|(code, text)| {
                *code == ErrorCode::INVALID_PARAMS && text.contains(word) && text.contains(method)
            });
            assert!(is_told, "{method}: {wrong:?}");
        }
        assert!(wrong_params("prompts/list", None).is_none());
        assert!(wrong_params("tools/call", None).is_some(), "a call without params");
    }
}
