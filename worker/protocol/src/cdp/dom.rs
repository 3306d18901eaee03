use super::Page;
use super::Runtime;
use super::types::*;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
pub type NodeId = JsUInt;
pub type BackendNodeId = JsUInt;
pub type Quad = Vec<JsFloat>;
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum PseudoType {
    #[serde(rename = "first-line")]
    FirstLine,
    #[serde(rename = "first-letter")]
    FirstLetter,
    Checkmark,
    Before,
    After,
    #[serde(rename = "picker-icon")]
    PickerIcon,
    #[serde(rename = "interest-hint")]
    InterestHint,
    Marker,
    Backdrop,
    Column,
    Selection,
    #[serde(rename = "search-text")]
    SearchText,
    #[serde(rename = "target-text")]
    TargetText,
    #[serde(rename = "spelling-error")]
    SpellingError,
    #[serde(rename = "grammar-error")]
    GrammarError,
    Highlight,
    #[serde(rename = "first-line-inherited")]
    FirstLineInherited,
    #[serde(rename = "scroll-marker")]
    ScrollMarker,
    #[serde(rename = "scroll-marker-group")]
    ScrollMarkerGroup,
    #[serde(rename = "scroll-button")]
    ScrollButton,
    Scrollbar,
    #[serde(rename = "scrollbar-thumb")]
    ScrollbarThumb,
    #[serde(rename = "scrollbar-button")]
    ScrollbarButton,
    #[serde(rename = "scrollbar-track")]
    ScrollbarTrack,
    #[serde(rename = "scrollbar-track-piece")]
    ScrollbarTrackPiece,
    #[serde(rename = "scrollbar-corner")]
    ScrollbarCorner,
    Resizer,
    #[serde(rename = "input-list-button")]
    InputListButton,
    #[serde(rename = "view-transition")]
    ViewTransition,
    #[serde(rename = "view-transition-group")]
    ViewTransitionGroup,
    #[serde(rename = "view-transition-image-pair")]
    ViewTransitionImagePair,
    #[serde(rename = "view-transition-group-children")]
    ViewTransitionGroupChildren,
    #[serde(rename = "view-transition-old")]
    ViewTransitionOld,
    #[serde(rename = "view-transition-new")]
    ViewTransitionNew,
    Placeholder,
    #[serde(rename = "file-selector-button")]
    FileSelectorButton,
    #[serde(rename = "details-content")]
    DetailsContent,
    Picker,
    #[serde(rename = "permission-icon")]
    PermissionIcon,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum ShadowRootType {
    #[serde(rename = "user-agent")]
    UserAgent,
    Open,
    Closed,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub enum CompatibilityMode {
    QuirksMode,
    LimitedQuirksMode,
    NoQuirksMode,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BackendNode {
    #[serde(default)]
    pub node_name: String,
    pub backend_node_id: BackendNodeId,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    pub node_id: NodeId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<NodeId>,
    pub backend_node_id: BackendNodeId,
    #[serde(default)]
    pub node_name: String,
    #[serde(default)]
    pub local_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<Node>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_id: Option<Page::FrameId>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct RGBA {
    #[serde(default)]
    pub r: JsUInt,
    #[serde(default)]
    pub g: JsUInt,
    #[serde(default)]
    pub b: JsUInt,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<JsFloat>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct BoxModel {
    pub content: Quad,
    pub padding: Quad,
    pub border: Quad,
    pub margin: Quad,
    #[serde(default)]
    pub width: JsUInt,
    #[serde(default)]
    pub height: JsUInt,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct ShapeOutsideInfo {
    pub bounds: Quad,
    #[serde(default)]
    pub shape: Vec<Json>,
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DescribeNode {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_node_id: Option<BackendNodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<Runtime::RemoteObjectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<JsUInt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pierce: Option<bool>,
}
impl Method for DescribeNode {
    const NAME: &'static str = "DOM.describeNode";
    type ReturnObject = DescribeNodeReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Focus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_node_id: Option<BackendNodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<Runtime::RemoteObjectId>,
}
impl Method for Focus {
    const NAME: &'static str = "DOM.focus";
    type ReturnObject = FocusReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GetBoxModel {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_node_id: Option<BackendNodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<Runtime::RemoteObjectId>,
}
impl Method for GetBoxModel {
    const NAME: &'static str = "DOM.getBoxModel";
    type ReturnObject = GetBoxModelReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GetContentQuads {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_node_id: Option<BackendNodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<Runtime::RemoteObjectId>,
}
impl Method for GetContentQuads {
    const NAME: &'static str = "DOM.getContentQuads";
    type ReturnObject = GetContentQuadsReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct GetDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<JsUInt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pierce: Option<bool>,
}
impl Method for GetDocument {
    const NAME: &'static str = "DOM.getDocument";
    type ReturnObject = GetDocumentReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GetSearchResults {
    pub search_id: String,
    pub from_index: JsUInt,
    pub to_index: JsUInt,
}
impl Method for GetSearchResults {
    const NAME: &'static str = "DOM.getSearchResults";
    type ReturnObject = GetSearchResultsReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct PerformSearch {
    pub query: String,
    #[serde(
        rename = "includeUserAgentShadowDOM",
        skip_serializing_if = "Option::is_none"
    )]
    pub include_user_agent_shadow_dom: Option<bool>,
}
impl Method for PerformSearch {
    const NAME: &'static str = "DOM.performSearch";
    type ReturnObject = PerformSearchReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct QuerySelector {
    pub node_id: NodeId,
    pub selector: String,
}
impl Method for QuerySelector {
    const NAME: &'static str = "DOM.querySelector";
    type ReturnObject = QuerySelectorReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct QuerySelectorAll {
    pub node_id: NodeId,
    pub selector: String,
}
impl Method for QuerySelectorAll {
    const NAME: &'static str = "DOM.querySelectorAll";
    type ReturnObject = QuerySelectorAllReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ResolveNode {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_node_id: Option<BackendNodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_context_id: Option<Runtime::ExecutionContextId>,
}
impl Method for ResolveNode {
    const NAME: &'static str = "DOM.resolveNode";
    type ReturnObject = ResolveNodeReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SetFileInputFiles {
    pub files: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_node_id: Option<BackendNodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<Runtime::RemoteObjectId>,
}
impl Method for SetFileInputFiles {
    const NAME: &'static str = "DOM.setFileInputFiles";
    type ReturnObject = SetFileInputFilesReturnObject;
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct DescribeNodeReturnObject {
    pub node: Node,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct FocusReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct GetBoxModelReturnObject {
    pub model: BoxModel,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct GetContentQuadsReturnObject {
    pub quads: Vec<Quad>,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct GetDocumentReturnObject {
    pub root: Node,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct GetSearchResultsReturnObject {
    pub node_ids: Vec<NodeId>,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PerformSearchReturnObject {
    #[serde(default)]
    pub search_id: String,
    #[serde(default)]
    pub result_count: JsUInt,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct QuerySelectorReturnObject {
    pub node_id: NodeId,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct QuerySelectorAllReturnObject {
    pub node_ids: Vec<NodeId>,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct ResolveNodeReturnObject {
    pub object: Runtime::RemoteObject,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct SetFileInputFilesReturnObject {}
