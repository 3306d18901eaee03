use super::Emulation;
use super::types::*;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
pub type LoaderId = String;
pub type RequestId = String;
pub type TimeSinceEpoch = JsFloat;
pub type MonotonicTime = JsFloat;
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum ResourceType {
    Document,
    Stylesheet,
    Image,
    Media,
    Font,
    Script,
    TextTrack,
    #[serde(rename = "XHR")]
    Xhr,
    Fetch,
    Prefetch,
    EventSource,
    WebSocket,
    Manifest,
    SignedExchange,
    Ping,
    #[serde(rename = "CSPViolationReport")]
    CspViolationReport,
    Preflight,
    #[serde(rename = "FedCM")]
    FedCm,
    Other,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum ErrorReason {
    Failed,
    Aborted,
    TimedOut,
    AccessDenied,
    ConnectionClosed,
    ConnectionReset,
    ConnectionRefused,
    ConnectionAborted,
    ConnectionFailed,
    NameNotResolved,
    InternetDisconnected,
    AddressUnreachable,
    BlockedByClient,
    BlockedByResponse,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum CookieSameSite {
    Strict,
    Lax,
    None,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum CookiePriority {
    Low,
    Medium,
    High,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum CookieSourceScheme {
    Unset,
    NonSecure,
    Secure,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum ResourcePriority {
    VeryLow,
    Low,
    Medium,
    High,
    VeryHigh,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum RequestReferrerPolicy {
    #[serde(rename = "unsafe-url")]
    UnsafeUrl,
    #[serde(rename = "no-referrer-when-downgrade")]
    NoReferrerWhenDowngrade,
    #[serde(rename = "no-referrer")]
    NoReferrer,
    Origin,
    #[serde(rename = "origin-when-cross-origin")]
    OriginWhenCrossOrigin,
    #[serde(rename = "same-origin")]
    SameOrigin,
    #[serde(rename = "strict-origin")]
    StrictOrigin,
    #[serde(rename = "strict-origin-when-cross-origin")]
    StrictOriginWhenCrossOrigin,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum CertificateTransparencyCompliance {
    Unknown,
    #[serde(rename = "not-compliant")]
    NotCompliant,
    Compliant,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum BlockedReason {
    Other,
    Csp,
    #[serde(rename = "mixed-content")]
    MixedContent,
    Origin,
    Inspector,
    Integrity,
    #[serde(rename = "subresource-filter")]
    SubresourceFilter,
    #[serde(rename = "content-type")]
    ContentType,
    #[serde(rename = "coep-frame-resource-needs-coep-header")]
    CoepFrameResourceNeedsCoepHeader,
    #[serde(rename = "coop-sandboxed-iframe-cannot-navigate-to-coop-page")]
    CoopSandboxedIframeCannotNavigateToCoopPage,
    #[serde(rename = "corp-not-same-origin")]
    CorpNotSameOrigin,
    #[serde(rename = "corp-not-same-origin-after-defaulted-to-same-origin-by-coep")]
    CorpNotSameOriginAfterDefaultedToSameOriginByCoep,
    #[serde(rename = "corp-not-same-origin-after-defaulted-to-same-origin-by-dip")]
    CorpNotSameOriginAfterDefaultedToSameOriginByDip,
    #[serde(rename = "corp-not-same-site")]
    CorpNotSameSite,
    #[serde(rename = "sri-message-signature-mismatch")]
    SriMessageSignatureMismatch,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum CorsError {
    DisallowedByMode,
    InvalidResponse,
    WildcardOriginNotAllowed,
    MissingAllowOriginHeader,
    MultipleAllowOriginValues,
    InvalidAllowOriginValue,
    AllowOriginMismatch,
    InvalidAllowCredentials,
    CorsDisabledScheme,
    PreflightInvalidStatus,
    PreflightDisallowedRedirect,
    PreflightWildcardOriginNotAllowed,
    PreflightMissingAllowOriginHeader,
    PreflightMultipleAllowOriginValues,
    PreflightInvalidAllowOriginValue,
    PreflightAllowOriginMismatch,
    PreflightInvalidAllowCredentials,
    PreflightMissingAllowExternal,
    PreflightInvalidAllowExternal,
    PreflightMissingAllowPrivateNetwork,
    PreflightInvalidAllowPrivateNetwork,
    InvalidAllowMethodsPreflightResponse,
    InvalidAllowHeadersPreflightResponse,
    MethodDisallowedByPreflightResponse,
    HeaderDisallowedByPreflightResponse,
    RedirectContainsCredentials,
    InsecurePrivateNetwork,
    InvalidPrivateNetworkAccess,
    UnexpectedPrivateNetworkAccess,
    NoCorsRedirectModeNotFollow,
    PreflightMissingPrivateNetworkAccessId,
    PreflightMissingPrivateNetworkAccessName,
    PrivateNetworkAccessPermissionUnavailable,
    PrivateNetworkAccessPermissionDenied,
    LocalNetworkAccessPermissionDenied,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum ServiceWorkerResponseSource {
    #[serde(rename = "cache-storage")]
    CacheStorage,
    #[serde(rename = "http-cache")]
    HttpCache,
    #[serde(rename = "fallback-code")]
    FallbackCode,
    Network,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum TrustTokenParamsRefreshPolicy {
    UseCached,
    Refresh,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum TrustTokenOperationType {
    Issuance,
    Redemption,
    Signing,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum AlternateProtocolUsage {
    AlternativeJobWonWithoutRace,
    AlternativeJobWonRace,
    MainJobWonRace,
    MappingMissing,
    Broken,
    DnsAlpnH3JobWonWithoutRace,
    DnsAlpnH3JobWonRace,
    UnspecifiedReason,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum ServiceWorkerRouterSource {
    Network,
    Cache,
    #[serde(rename = "fetch-event")]
    FetchEvent,
    #[serde(rename = "race-network-and-fetch-handler")]
    RaceNetworkAndFetchHandler,
    #[serde(rename = "race-network-and-cache")]
    RaceNetworkAndCache,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct Headers(pub Option<Json>);
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct ResourceTiming {}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct PostDataEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    #[serde(default)]
    pub url: String,
    #[serde(default)]
    pub method: String,
    pub headers: Headers,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_data: Option<String>,
    pub referrer_policy: RequestReferrerPolicy,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_same_site: Option<bool>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct SignedCertificateTimestamp {
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub origin: String,
    #[serde(default)]
    pub timestamp: JsFloat,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct SecurityDetails {
    #[serde(default)]
    pub protocol: String,
    #[serde(default)]
    pub cipher: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    #[serde(default)]
    pub issuer: String,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct CorsErrorStatus {}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct TrustTokenParams {}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct ServiceWorkerRouterInfo {}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    #[serde(default)]
    pub url: String,
    #[serde(default)]
    pub status: JsUInt,
    pub headers: Headers,
    #[serde(default)]
    pub mime_type: String,
    #[serde(default)]
    pub charset: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct CookiePartitionKey {}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Cookie {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub value: String,
    #[serde(default)]
    pub domain: String,
    #[serde(default)]
    pub path: String,
    #[serde(default)]
    pub expires: JsFloat,
    #[serde(default)]
    pub size: JsUInt,
    #[serde(default)]
    pub secure: bool,
    #[serde(default)]
    pub session: bool,
    pub priority: CookiePriority,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<CookiePartitionKey>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CookieParam {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<TimeSinceEpoch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<CookiePriority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<CookiePartitionKey>,
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct ClearBrowserCache(pub Option<Json>);
impl Method for ClearBrowserCache {
    const NAME: &'static str = "Network.clearBrowserCache";
    type ReturnObject = ClearBrowserCacheReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeleteCookies {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<CookiePartitionKey>,
}
impl Method for DeleteCookies {
    const NAME: &'static str = "Network.deleteCookies";
    type ReturnObject = DeleteCookiesReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Enable {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_buffer_size: Option<JsUInt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_resource_buffer_size: Option<JsUInt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_post_data_size: Option<JsUInt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_direct_socket_traffic: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_durable_messages: Option<bool>,
}
impl Method for Enable {
    const NAME: &'static str = "Network.enable";
    type ReturnObject = EnableReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct GetCookies {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urls: Option<Vec<String>>,
}
impl Method for GetCookies {
    const NAME: &'static str = "Network.getCookies";
    type ReturnObject = GetCookiesReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GetResponseBody {
    pub request_id: RequestId,
}
impl Method for GetResponseBody {
    const NAME: &'static str = "Network.getResponseBody";
    type ReturnObject = GetResponseBodyReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct SetCookies {
    pub cookies: Vec<CookieParam>,
}
impl Method for SetCookies {
    const NAME: &'static str = "Network.setCookies";
    type ReturnObject = SetCookiesReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct SetExtraHTTPHeaders {
    pub headers: Headers,
}
impl Method for SetExtraHTTPHeaders {
    const NAME: &'static str = "Network.setExtraHTTPHeaders";
    type ReturnObject = SetExtraHTTPHeadersReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SetUserAgentOverride {
    pub user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept_language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent_metadata: Option<Emulation::UserAgentMetadata>,
}
impl Method for SetUserAgentOverride {
    const NAME: &'static str = "Network.setUserAgentOverride";
    type ReturnObject = SetUserAgentOverrideReturnObject;
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct ClearBrowserCacheReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct DeleteCookiesReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct EnableReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct GetCookiesReturnObject {
    pub cookies: Vec<Cookie>,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GetResponseBodyReturnObject {
    #[serde(default)]
    pub body: String,
    #[serde(default)]
    pub base_64_encoded: bool,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct SetCookiesReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct SetExtraHTTPHeadersReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct SetUserAgentOverrideReturnObject {}
pub mod events {
    use serde::Deserialize;
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    pub struct LoadingFailedEvent {
        pub params: LoadingFailedEventParams,
    }
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    #[serde(rename_all = "camelCase")]
    pub struct LoadingFailedEventParams {
        pub request_id: super::RequestId,
        pub timestamp: super::MonotonicTime,
        #[serde(rename = "type")]
        pub Type: super::ResourceType,
        #[serde(default)]
        pub error_text: String,
    }
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    pub struct LoadingFinishedEvent {
        pub params: LoadingFinishedEventParams,
    }
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    #[serde(rename_all = "camelCase")]
    pub struct LoadingFinishedEventParams {
        pub request_id: super::RequestId,
        pub timestamp: super::MonotonicTime,
    }
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    pub struct ResponseReceivedEvent {
        pub params: ResponseReceivedEventParams,
    }
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    #[serde(rename_all = "camelCase")]
    pub struct ResponseReceivedEventParams {
        pub request_id: super::RequestId,
        pub loader_id: super::LoaderId,
        pub timestamp: super::MonotonicTime,
        #[serde(rename = "type")]
        pub Type: super::ResourceType,
        pub response: super::Response,
        pub frame_id: Option<super::super::Page::FrameId>,
    }
}
