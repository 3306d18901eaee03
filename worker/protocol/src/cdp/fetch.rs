use super::Network;
use super::types::*;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
pub type RequestId = String;
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum RequestStage {
    Request,
    Response,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum AuthChallengeSource {
    Server,
    Proxy,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum AuthChallengeResponseResponse {
    Default,
    CancelAuth,
    ProvideCredentials,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct RequestPattern {}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct HeaderEntry {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub value: String,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct AuthChallenge {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<AuthChallengeSource>,
    #[serde(default)]
    pub origin: String,
    #[serde(default)]
    pub scheme: String,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct AuthChallengeResponse {
    pub response: AuthChallengeResponseResponse,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct Disable(pub Option<Json>);
impl Method for Disable {
    const NAME: &'static str = "Fetch.disable";
    type ReturnObject = DisableReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Enable {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patterns: Option<Vec<RequestPattern>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle_auth_requests: Option<bool>,
}
impl Method for Enable {
    const NAME: &'static str = "Fetch.enable";
    type ReturnObject = EnableReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FailRequest {
    pub request_id: RequestId,
    pub error_reason: Network::ErrorReason,
}
impl Method for FailRequest {
    const NAME: &'static str = "Fetch.failRequest";
    type ReturnObject = FailRequestReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FulfillRequest {
    pub request_id: RequestId,
    pub response_code: JsUInt,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}
impl Method for FulfillRequest {
    const NAME: &'static str = "Fetch.fulfillRequest";
    type ReturnObject = FulfillRequestReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ContinueRequest {
    pub request_id: RequestId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<HeaderEntry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intercept_response: Option<bool>,
}
impl Method for ContinueRequest {
    const NAME: &'static str = "Fetch.continueRequest";
    type ReturnObject = ContinueRequestReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ContinueWithAuth {
    pub request_id: RequestId,
    pub auth_challenge_response: AuthChallengeResponse,
}
impl Method for ContinueWithAuth {
    const NAME: &'static str = "Fetch.continueWithAuth";
    type ReturnObject = ContinueWithAuthReturnObject;
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct DisableReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct EnableReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct FailRequestReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct FulfillRequestReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct ContinueRequestReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct ContinueWithAuthReturnObject {}
pub mod events {
    use serde::Deserialize;
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    pub struct RequestPausedEvent {
        pub params: RequestPausedEventParams,
    }
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    #[serde(rename_all = "camelCase")]
    pub struct RequestPausedEventParams {
        pub request_id: super::RequestId,
        pub request: super::super::Network::Request,
        pub frame_id: super::super::Page::FrameId,
        pub redirected_request_id: Option<super::RequestId>,
    }
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    pub struct AuthRequiredEvent {
        pub params: AuthRequiredEventParams,
    }
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    #[serde(rename_all = "camelCase")]
    pub struct AuthRequiredEventParams {
        pub request_id: super::RequestId,
        pub request: super::super::Network::Request,
        pub frame_id: super::super::Page::FrameId,
    }
}
