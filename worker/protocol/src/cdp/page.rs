use super::IO;
use super::Network;
use super::Runtime;
use super::types::*;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
pub type FrameId = String;
pub type ScriptIdentifier = String;
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum AdFrameType {
    None,
    Child,
    Root,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum AdFrameExplanation {
    ParentIsAd,
    CreatedByAdScript,
    MatchedBlockingRule,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum SecureContextType {
    Secure,
    SecureLocalhost,
    InsecureScheme,
    InsecureAncestor,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum CrossOriginIsolatedContextType {
    Isolated,
    NotIsolated,
    NotIsolatedFeatureDisabled,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum GatedAPIFeatures {
    SharedArrayBuffers,
    SharedArrayBuffersTransferAllowed,
    PerformanceMeasureMemory,
    PerformanceProfile,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum TransitionType {
    Link,
    Typed,
    #[serde(rename = "address_bar")]
    AddressBar,
    #[serde(rename = "auto_bookmark")]
    AutoBookmark,
    #[serde(rename = "auto_subframe")]
    AutoSubframe,
    #[serde(rename = "manual_subframe")]
    ManualSubframe,
    Generated,
    #[serde(rename = "auto_toplevel")]
    AutoToplevel,
    #[serde(rename = "form_submit")]
    FormSubmit,
    Reload,
    Keyword,
    #[serde(rename = "keyword_generated")]
    KeywordGenerated,
    Other,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum ReferrerPolicy {
    NoReferrer,
    NoReferrerWhenDowngrade,
    Origin,
    OriginWhenCrossOrigin,
    SameOrigin,
    StrictOrigin,
    StrictOriginWhenCrossOrigin,
    UnsafeUrl,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum CaptureScreenshotFormatOption {
    Jpeg,
    Png,
    Webp,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum PrintToPDFTransfer_modeOption {
    ReturnAsBase64,
    ReturnAsStream,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum StartScreencastFormatOption {
    Jpeg,
    Png,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct AdFrameStatus {}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct SecurityOriginDetails {}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Frame {
    pub id: FrameId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<FrameId>,
    pub loader_id: Network::LoaderId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default)]
    pub url: String,
    #[serde(default)]
    pub mime_type: String,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct FrameTree {
    pub frame: Frame,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_frames: Option<Vec<FrameTree>>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct Viewport {
    #[serde(default)]
    pub x: JsFloat,
    #[serde(default)]
    pub y: JsFloat,
    #[serde(default)]
    pub width: JsFloat,
    #[serde(default)]
    pub height: JsFloat,
    #[serde(default)]
    pub scale: JsFloat,
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AddScriptToEvaluateOnNewDocument {
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world_name: Option<String>,
    #[serde(
        rename = "includeCommandLineAPI",
        skip_serializing_if = "Option::is_none"
    )]
    pub include_command_line_api: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_immediately: Option<bool>,
}
impl Method for AddScriptToEvaluateOnNewDocument {
    const NAME: &'static str = "Page.addScriptToEvaluateOnNewDocument";
    type ReturnObject = AddScriptToEvaluateOnNewDocumentReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct BringToFront(pub Option<Json>);
impl Method for BringToFront {
    const NAME: &'static str = "Page.bringToFront";
    type ReturnObject = BringToFrontReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CaptureScreenshot {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<CaptureScreenshotFormatOption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<JsUInt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<Viewport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_surface: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture_beyond_viewport: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimize_for_speed: Option<bool>,
}
impl Method for CaptureScreenshot {
    const NAME: &'static str = "Page.captureScreenshot";
    type ReturnObject = CaptureScreenshotReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CreateIsolatedWorld {
    pub frame_id: FrameId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world_name: Option<String>,
}
impl Method for CreateIsolatedWorld {
    const NAME: &'static str = "Page.createIsolatedWorld";
    type ReturnObject = CreateIsolatedWorldReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct Disable(pub Option<Json>);
impl Method for Disable {
    const NAME: &'static str = "Page.disable";
    type ReturnObject = DisableReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Enable {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_file_chooser_opened_event: Option<bool>,
}
impl Method for Enable {
    const NAME: &'static str = "Page.enable";
    type ReturnObject = EnableReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct GetFrameTree(pub Option<Json>);
impl Method for GetFrameTree {
    const NAME: &'static str = "Page.getFrameTree";
    type ReturnObject = GetFrameTreeReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HandleJavaScriptDialog {
    pub accept: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_text: Option<String>,
}
impl Method for HandleJavaScriptDialog {
    const NAME: &'static str = "Page.handleJavaScriptDialog";
    type ReturnObject = HandleJavaScriptDialogReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Navigate {
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referrer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transition_Type: Option<TransitionType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_id: Option<FrameId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referrer_policy: Option<ReferrerPolicy>,
}
impl Method for Navigate {
    const NAME: &'static str = "Page.navigate";
    type ReturnObject = NavigateReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PrintToPDF {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landscape: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_header_footer: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub print_background: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<JsFloat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper_width: Option<JsFloat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper_height: Option<JsFloat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin_top: Option<JsFloat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin_bottom: Option<JsFloat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin_left: Option<JsFloat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin_right: Option<JsFloat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_ranges: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_template: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer_template: Option<String>,
    #[serde(rename = "preferCSSPageSize", skip_serializing_if = "Option::is_none")]
    pub prefer_css_page_size: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer_mode: Option<PrintToPDFTransfer_modeOption>,
    #[serde(rename = "generateTaggedPDF", skip_serializing_if = "Option::is_none")]
    pub generate_tagged_pdf: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_document_outline: Option<bool>,
}
impl Method for PrintToPDF {
    const NAME: &'static str = "Page.printToPDF";
    type ReturnObject = PrintToPDFReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Reload {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_cache: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script_to_evaluate_on_load: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loader_id: Option<Network::LoaderId>,
}
impl Method for Reload {
    const NAME: &'static str = "Page.reload";
    type ReturnObject = ReloadReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct RemoveScriptToEvaluateOnNewDocument {
    pub identifier: ScriptIdentifier,
}
impl Method for RemoveScriptToEvaluateOnNewDocument {
    const NAME: &'static str = "Page.removeScriptToEvaluateOnNewDocument";
    type ReturnObject = RemoveScriptToEvaluateOnNewDocumentReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ScreencastFrameAck {
    pub session_id: JsUInt,
}
impl Method for ScreencastFrameAck {
    const NAME: &'static str = "Page.screencastFrameAck";
    type ReturnObject = ScreencastFrameAckReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct SetLifecycleEventsEnabled {
    pub enabled: bool,
}
impl Method for SetLifecycleEventsEnabled {
    const NAME: &'static str = "Page.setLifecycleEventsEnabled";
    type ReturnObject = SetLifecycleEventsEnabledReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct StartScreencast {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<StartScreencastFormatOption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<JsUInt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_width: Option<JsUInt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_height: Option<JsUInt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_nth_frame: Option<JsUInt>,
}
impl Method for StartScreencast {
    const NAME: &'static str = "Page.startScreencast";
    type ReturnObject = StartScreencastReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct StopLoading(pub Option<Json>);
impl Method for StopLoading {
    const NAME: &'static str = "Page.stopLoading";
    type ReturnObject = StopLoadingReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct Close(pub Option<Json>);
impl Method for Close {
    const NAME: &'static str = "Page.close";
    type ReturnObject = CloseReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct StopScreencast(pub Option<Json>);
impl Method for StopScreencast {
    const NAME: &'static str = "Page.stopScreencast";
    type ReturnObject = StopScreencastReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct SetInterceptFileChooserDialog {
    pub enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<bool>,
}
impl Method for SetInterceptFileChooserDialog {
    const NAME: &'static str = "Page.setInterceptFileChooserDialog";
    type ReturnObject = SetInterceptFileChooserDialogReturnObject;
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct AddScriptToEvaluateOnNewDocumentReturnObject {
    pub identifier: ScriptIdentifier,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct BringToFrontReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct CaptureScreenshotReturnObject {
    #[serde(default)]
    pub data: String,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CreateIsolatedWorldReturnObject {
    pub execution_context_id: Runtime::ExecutionContextId,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct DisableReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct EnableReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GetFrameTreeReturnObject {
    pub frame_tree: FrameTree,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct HandleJavaScriptDialogReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NavigateReturnObject {
    pub frame_id: FrameId,
    pub loader_id: Option<Network::LoaderId>,
    pub error_text: Option<String>,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct PrintToPDFReturnObject {
    #[serde(default)]
    pub data: String,
    pub stream: Option<IO::StreamHandle>,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct ReloadReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct RemoveScriptToEvaluateOnNewDocumentReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct ScreencastFrameAckReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct SetLifecycleEventsEnabledReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct StartScreencastReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct StopLoadingReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct CloseReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct StopScreencastReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct SetInterceptFileChooserDialogReturnObject {}
pub mod events {
    use serde::Deserialize;
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    pub struct LifecycleEventEvent {
        pub params: LifecycleEventEventParams,
    }
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    #[serde(rename_all = "camelCase")]
    pub struct LifecycleEventEventParams {
        pub frame_id: super::FrameId,
        pub loader_id: super::super::Network::LoaderId,
        #[serde(default)]
        pub name: String,
        pub timestamp: super::super::Network::MonotonicTime,
    }
}
