//! `POST /mcp`: the Model Context Protocol over streamable HTTP, without sessions: each message is answered by itself, as
//! JSON, by whichever process gets it.

use std::borrow::Cow;
use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Payload};
use actix_web::{HttpRequest, HttpResponse};
use http_body_util::{BodyExt, Full};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use schemars::json_schema;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::task::AbortOnDropHandle;
use weir_shared::error_code::ErrorCode;

use crate::app::AppData;
use crate::error::{ApiError, ApiResult};
use crate::http::extract::{self, MAX_BODY};
use crate::http::json::Reader;
use crate::mcp::{Server, Weir};
use crate::openapi::{Group, MakeSchema, Operation};
use crate::routes::operations;

const JSON: &str = "application/json";
/// What the specification has every client accept. The answer is JSON whatever it says.
const ACCEPTED: &str = "application/json, text/event-stream";

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Takes one JSON-RPC message of the Model Context Protocol (streamable HTTP, without sessions) and answers it \
        as JSON. Clients of the protocol find the tools by `tools/list`; each is a route of this document, called with \
        the key of this request. What such a route refuses is a result with `isError`.";
    let message: MakeSchema = |_| {
        let fields =
            json!({"jsonrpc": {"const": "2.0"}, "id": {}, "result": {"type": "object"}, "error": {"type": "object"}});
        json_schema!({"type": "object", "required": ["jsonrpc"], "properties": fields})
    };
    let refusal: MakeSchema = |_| json_schema!({"type": "object", "additionalProperties": true});
    Operation::new(Group::Mcp, "mcp", "Send a message", text)
        .answer_with(200, "The response.", JSON, message)
        .bare_answer(202, "A notification was taken.")
        .answer_with(400, "Not a message of the protocol, or of a version that is not known here.", JSON, refusal)
        .errors(&[403, 408, 413])
}

/// Handles the request.
///
/// # Errors
/// 401 without a key, 400 for a body that is not a message, 413 and 429 for one that is too large.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.caller(&request).await?;
    let (body, _room) = extract::json_text(&app, &caller, &request, payload).await?;
    let (body, arguments) = apart(body);
    extract::check(&body, Reader::Foreign)?;
    if let Err(error) = serde_json::from_slice::<ClientJsonRpcMessage>(&body) {
        return Ok(not_a_message(&error));
    }
    let weir = Weir::within(&request).map_err(|error| ApiError::internal(&error))?;
    let mut server = Server::new(weir, operations);
    if let Some(arguments) = arguments {
        extract::check(&arguments, Reader::Ours)?;
        server = server.with_arguments(arguments);
    }
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_BODY)
            // Who may call by which name, and pages of which origins, is judged for all routes alike.
            .disable_allowed_hosts()
            .disable_allowed_origins(),
    );
    let message = message(&request, body).map_err(|error| ApiError::internal(&error))?;
    // Beside the connections that the calls of tools have. It ends with this request.
    let work = AbortOnDropHandle::new(app.runtime.spawn(async move { service.handle(message).await }));
    let (head, body) = work.await.map_err(|error| ApiError::internal(&error))?.into_parts();
    let Ok(body) = body.collect().await;
    let (status, body) = (head.status.as_u16(), body.to_bytes());
    let is_json = head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(JSON.as_bytes()));
    match StatusCode::from_u16(status) {
        Ok(status) if is_json => Ok(HttpResponse::build(status).content_type(JSON).body(body)),
        Ok(StatusCode::ACCEPTED) => Ok(HttpResponse::Accepted().finish()),
        Ok(StatusCode::BAD_REQUEST) => Err(ApiError::new(ErrorCode::Invalid, String::from_utf8_lossy(&body))),
        _ => Err(ApiError::internal(&format!("the protocol's library answered {status}"))),
    }
}

/// A call of a tool, as far as it has to be known here.
#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// Takes the arguments out of a call of a tool: they may be megabytes, the library reads what it gets twice and keeps it
/// while the route is waited for. What stays is the message with none, which the library judges; any other message stays
/// whole.
fn apart(body: Bytes) -> (Bytes, Option<Bytes>) {
    let Ok(Call { method, params }) = serde_json::from_slice::<Call>(&body) else { return (body, None) };
    let arguments = params.arguments.get();
    if method != "tools/call" || !arguments.starts_with('{') {
        return (body, None);
    }
    let arguments = body.slice_ref(arguments.as_bytes());
    let start = arguments.as_ptr().addr() - body.as_ptr().addr();
    let message = [&body[..start], b"{}", &body[start + arguments.len()..]].concat();
    (message.into(), Some(arguments))
}

/// The request as the library has it. What it may be answered with, and that a body is JSON, is not the client's to say
/// here, as on the other routes.
fn message(request: &HttpRequest, body: Bytes) -> Result<hyper::Request<Full<Bytes>>, hyper::http::Error> {
    let mut message = hyper::Request::post(request.path());
    for (name, value) in request.headers() {
        let is_ours = [ACCEPT.as_str(), CONTENT_TYPE.as_str(), HOST.as_str()].contains(&name.as_str());
        if !is_ours {
            message = message.header(name.as_str(), value.as_bytes());
        }
    }
    message.header(ACCEPT, ACCEPTED).header(CONTENT_TYPE, JSON).header(HOST, "weir").body(Full::new(body))
}

/// 400 as JSON-RPC has it.
fn not_a_message(error: &serde_json::Error) -> HttpResponse {
    let (code, text) = match error.is_data() {
        true => (-32600, "Invalid Request: not a message of the Model Context Protocol"),
        false => (-32700, "Parse error: the body is not JSON"),
    };
    HttpResponse::BadRequest().json(json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": text}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_taken_out_of_calls_alone() {
        let cut = |text: &'static str| {
            let (message, arguments) = apart(Bytes::from_static(text.as_bytes()));
            (String::from_utf8_lossy(&message).into_owned(), arguments)
        };
        let whole = r#"{"id":1,"method":"tools/call","params":{"name":"a","argu\u006dents": {"b":[{}]} ,"_meta":{}}}"#;
        let (message, arguments) = cut(whole);
        assert_eq!(message, whole.replace(r#"{"b":[{}]}"#, "{}"));
        assert_eq!(arguments.as_deref(), Some(br#"{"b":[{}]}"#.as_slice()));
        for whole in [
            "",
            "[1]",
            r#"{"method":"tools/list","params":{"arguments":{"b":1}}}"#,
            r#"{"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"method":"tools/call","params":{"arguments":[1]}}"#,
            // The library says what is wrong with it.
            r#"{"method":"tools/call","params":{"arguments":{}},"params":{"arguments":{}}}"#,
        ] {
            assert_eq!(cut(whole), (whole.to_owned(), None));
        }
    }
}
