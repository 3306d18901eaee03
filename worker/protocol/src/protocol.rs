// The commands, events and types of the DevTools protocol that Weir and `headless_chrome` name, and of their fields those that
// either names: what is missing is not sent, and passed over where it is received. `/json/protocol` of a Chromium that listens
// on a port describes all of it. To use another one, write it beside its like: a command is a struct that has its domain's
// name for it in `impl Method`, and what is answered is its `ReturnObject`. `tests/it/protocol.rs` holds this file to the
// browser.
#[allow(unused)]
#[allow(non_camel_case_types)]
#[allow(non_snake_case)]
pub mod cdp {
    pub mod types {
        use serde::{Deserialize, Serialize};
        use std::fmt::Debug;
        pub type JsFloat = f64;
        pub type JsUInt = u32;
        pub type WindowId = JsUInt;
        pub type CallId = JsUInt;
        #[derive(Serialize, Debug)]
        pub struct MethodCall<T>
        where
            T: Debug,
        {
            #[serde(rename = "method")]
            method_name: &'static str,
            pub id: CallId,
            params: T,
        }
        impl<T> MethodCall<T>
        where
            T: Debug,
        {
            pub fn get_params(&self) -> &T {
                &self.params
            }
        }
        pub trait Method: Debug {
            const NAME: &'static str;
            type ReturnObject: serde::de::DeserializeOwned + std::fmt::Debug;
            fn to_method_call(self, call_id: CallId) -> MethodCall<Self>
            where
                Self: std::marker::Sized,
            {
                MethodCall {
                    id: call_id,
                    params: self,
                    method_name: Self::NAME,
                }
            }
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(tag = "method")]
        #[allow(clippy::large_enum_variant)]
        pub enum Event {
            #[serde(rename = "Fetch.requestPaused")]
            FetchRequestPaused(super::Fetch::events::RequestPausedEvent),
            #[serde(rename = "Fetch.authRequired")]
            FetchAuthRequired(super::Fetch::events::AuthRequiredEvent),
            #[serde(rename = "Network.loadingFailed")]
            NetworkLoadingFailed(super::Network::events::LoadingFailedEvent),
            #[serde(rename = "Network.loadingFinished")]
            NetworkLoadingFinished(super::Network::events::LoadingFinishedEvent),
            #[serde(rename = "Network.responseReceived")]
            NetworkResponseReceived(super::Network::events::ResponseReceivedEvent),
            #[serde(rename = "Page.lifecycleEvent")]
            PageLifecycleEvent(super::Page::events::LifecycleEventEvent),
            #[serde(rename = "Target.attachedToTarget")]
            AttachedToTarget(super::Target::events::AttachedToTargetEvent),
            #[serde(rename = "Target.receivedMessageFromTarget")]
            ReceivedMessageFromTarget(super::Target::events::ReceivedMessageFromTargetEvent),
            #[serde(rename = "Target.targetCreated")]
            TargetCreated(super::Target::events::TargetCreatedEvent),
            #[serde(rename = "Target.targetDestroyed")]
            TargetDestroyed(super::Target::events::TargetDestroyedEvent),
            #[serde(rename = "Target.targetInfoChanged")]
            TargetInfoChanged(super::Target::events::TargetInfoChangedEvent),
            #[serde(rename = "Runtime.bindingCalled")]
            RuntimeBindingCalled(super::Runtime::events::BindingCalledEvent),
        }
    }
    pub mod Browser {
        use super::Target;
        use super::types::*;
        use serde::{Deserialize, Serialize};
        use serde_json::Value as Json;
        pub type BrowserContextID = String;
        pub type WindowID = JsUInt;
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum WindowState {
            Normal,
            Minimized,
            Maximized,
            Fullscreen,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum PermissionType {
            Ar,
            AudioCapture,
            AutomaticFullscreen,
            BackgroundFetch,
            BackgroundSync,
            CameraPanTiltZoom,
            CapturedSurfaceControl,
            ClipboardReadWrite,
            ClipboardSanitizedWrite,
            DisplayCapture,
            DurableStorage,
            Geolocation,
            HandTracking,
            IdleDetection,
            KeyboardLock,
            LocalFonts,
            LocalNetworkAccess,
            Midi,
            MidiSysex,
            Nfc,
            Notifications,
            PaymentHandler,
            PeriodicBackgroundSync,
            PointerLock,
            ProtectedMediaIdentifier,
            Sensors,
            SmartCard,
            SpeakerSelection,
            StorageAccess,
            TopLevelStorageAccess,
            VideoCapture,
            Vr,
            WakeLockScreen,
            WakeLockSystem,
            WebAppInstallation,
            WebPrinting,
            WindowManagement,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum SetDownloadBehaviorBehaviorOption {
            Deny,
            Allow,
            AllowAndName,
            Default,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct Bounds {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub left: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub top: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub width: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub height: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub window_state: Option<WindowState>,
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct GrantPermissions {
            pub permissions: Vec<PermissionType>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub origin: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub browser_context_id: Option<BrowserContextID>,
        }
        impl Method for GrantPermissions {
            const NAME: &'static str = "Browser.grantPermissions";
            type ReturnObject = GrantPermissionsReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct SetDownloadBehavior {
            pub behavior: SetDownloadBehaviorBehaviorOption,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub browser_context_id: Option<BrowserContextID>,
        }
        impl Method for SetDownloadBehavior {
            const NAME: &'static str = "Browser.setDownloadBehavior";
            type ReturnObject = SetDownloadBehaviorReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Close(pub Option<Json>);
        impl Method for Close {
            const NAME: &'static str = "Browser.close";
            type ReturnObject = CloseReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct GetVersion(pub Option<Json>);
        impl Method for GetVersion {
            const NAME: &'static str = "Browser.getVersion";
            type ReturnObject = GetVersionReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct GetWindowForTarget {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub target_id: Option<Target::TargetID>,
        }
        impl Method for GetWindowForTarget {
            const NAME: &'static str = "Browser.getWindowForTarget";
            type ReturnObject = GetWindowForTargetReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct SetWindowBounds {
            pub window_id: WindowID,
            pub bounds: Bounds,
        }
        impl Method for SetWindowBounds {
            const NAME: &'static str = "Browser.setWindowBounds";
            type ReturnObject = SetWindowBoundsReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct GrantPermissionsReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetDownloadBehaviorReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct CloseReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct GetVersionReturnObject {
            #[serde(default)]
            pub product: String,
            #[serde(default)]
            pub revision: String,
            #[serde(default)]
            pub user_agent: String,
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct GetWindowForTargetReturnObject {
            pub window_id: WindowID,
            pub bounds: Bounds,
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetWindowBoundsReturnObject {}
    }
    pub mod CSS {
        use super::DOM;
        use super::types::*;
        use serde::{Deserialize, Serialize};
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct CSSComputedStyleProperty {
            #[serde(default)]
            pub name: String,
            #[serde(default)]
            pub value: String,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct ComputedStyleExtraFields {}
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct GetComputedStyleForNode {
            pub node_id: DOM::NodeId,
        }
        impl Method for GetComputedStyleForNode {
            const NAME: &'static str = "CSS.getComputedStyleForNode";
            type ReturnObject = GetComputedStyleForNodeReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct GetComputedStyleForNodeReturnObject {
            pub computed_style: Vec<CSSComputedStyleProperty>,
        }
    }
    pub mod DOM {
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
    }
    pub mod Debugger {
        use super::Runtime;
        use super::types::*;
        use serde::{Deserialize, Serialize};
        use serde_json::Value as Json;
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Disable(pub Option<Json>);
        impl Method for Disable {
            const NAME: &'static str = "Debugger.disable";
            type ReturnObject = DisableReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct Enable {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub max_scripts_cache_size: Option<JsFloat>,
        }
        impl Method for Enable {
            const NAME: &'static str = "Debugger.enable";
            type ReturnObject = EnableReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct GetScriptSource {
            pub script_id: Runtime::ScriptId,
        }
        impl Method for GetScriptSource {
            const NAME: &'static str = "Debugger.getScriptSource";
            type ReturnObject = GetScriptSourceReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct DisableReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct EnableReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct GetScriptSourceReturnObject {
            #[serde(default)]
            pub script_source: String,
        }
    }
    pub mod Emulation {
        use super::DOM;
        use super::Page;
        use super::types::*;
        use serde::{Deserialize, Serialize};
        use serde_json::Value as Json;
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum ScreenOrientationType {
            PortraitPrimary,
            PortraitSecondary,
            LandscapePrimary,
            LandscapeSecondary,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum DisplayFeatureOrientation {
            Vertical,
            Horizontal,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum DevicePostureType {
            Continuous,
            Folded,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct ScreenOrientation {
            #[serde(rename = "type")]
            pub Type: ScreenOrientationType,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct DisplayFeature {
            #[serde(default)]
            pub offset: JsUInt,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct DevicePosture {
            #[serde(rename = "type")]
            pub Type: DevicePostureType,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct UserAgentBrandVersion {
            #[serde(default)]
            pub brand: String,
            #[serde(default)]
            pub version: String,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct UserAgentMetadata {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub brands: Option<Vec<UserAgentBrandVersion>>,
            #[serde(default)]
            pub platform: String,
            #[serde(default)]
            pub architecture: String,
            #[serde(default)]
            pub model: String,
            #[serde(default)]
            pub mobile: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub bitness: Option<String>,
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct ClearDeviceMetricsOverride(pub Option<Json>);
        impl Method for ClearDeviceMetricsOverride {
            const NAME: &'static str = "Emulation.clearDeviceMetricsOverride";
            type ReturnObject = ClearDeviceMetricsOverrideReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct SetFocusEmulationEnabled {
            pub enabled: bool,
        }
        impl Method for SetFocusEmulationEnabled {
            const NAME: &'static str = "Emulation.setFocusEmulationEnabled";
            type ReturnObject = SetFocusEmulationEnabledReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct SetDefaultBackgroundColorOverride {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub color: Option<DOM::RGBA>,
        }
        impl Method for SetDefaultBackgroundColorOverride {
            const NAME: &'static str = "Emulation.setDefaultBackgroundColorOverride";
            type ReturnObject = SetDefaultBackgroundColorOverrideReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct SetDeviceMetricsOverride {
            pub width: JsUInt,
            pub height: JsUInt,
            pub device_scale_factor: JsFloat,
            pub mobile: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub scale: Option<JsFloat>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub viewport: Option<Page::Viewport>,
        }
        impl Method for SetDeviceMetricsOverride {
            const NAME: &'static str = "Emulation.setDeviceMetricsOverride";
            type ReturnObject = SetDeviceMetricsOverrideReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct SetGeolocationOverride {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub latitude: Option<JsFloat>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub longitude: Option<JsFloat>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub accuracy: Option<JsFloat>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub heading: Option<JsFloat>,
        }
        impl Method for SetGeolocationOverride {
            const NAME: &'static str = "Emulation.setGeolocationOverride";
            type ReturnObject = SetGeolocationOverrideReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct SetTouchEmulationEnabled {
            pub enabled: bool,
        }
        impl Method for SetTouchEmulationEnabled {
            const NAME: &'static str = "Emulation.setTouchEmulationEnabled";
            type ReturnObject = SetTouchEmulationEnabledReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct SetLocaleOverride {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub locale: Option<String>,
        }
        impl Method for SetLocaleOverride {
            const NAME: &'static str = "Emulation.setLocaleOverride";
            type ReturnObject = SetLocaleOverrideReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct SetTimezoneOverride {
            pub timezone_id: String,
        }
        impl Method for SetTimezoneOverride {
            const NAME: &'static str = "Emulation.setTimezoneOverride";
            type ReturnObject = SetTimezoneOverrideReturnObject;
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
            pub user_agent_metadata: Option<UserAgentMetadata>,
        }
        impl Method for SetUserAgentOverride {
            const NAME: &'static str = "Emulation.setUserAgentOverride";
            type ReturnObject = SetUserAgentOverrideReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct ClearDeviceMetricsOverrideReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetFocusEmulationEnabledReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetDefaultBackgroundColorOverrideReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetDeviceMetricsOverrideReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetGeolocationOverrideReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetTouchEmulationEnabledReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetLocaleOverrideReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetTimezoneOverrideReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetUserAgentOverrideReturnObject {}
    }
    pub mod Fetch {
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
    }
    pub mod IO {
        use super::types::*;
        use serde::{Deserialize, Serialize};
        pub type StreamHandle = String;
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Close {
            pub handle: StreamHandle,
        }
        impl Method for Close {
            const NAME: &'static str = "IO.close";
            type ReturnObject = CloseReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Read {
            pub handle: StreamHandle,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub offset: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub size: Option<JsUInt>,
        }
        impl Method for Read {
            const NAME: &'static str = "IO.read";
            type ReturnObject = ReadReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct CloseReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct ReadReturnObject {
            pub base_64_encoded: Option<bool>,
            #[serde(default)]
            pub data: String,
            #[serde(default)]
            pub eof: bool,
        }
    }
    pub mod Input {
        use super::types::*;
        use serde::{Deserialize, Serialize};
        pub type TimeSinceEpoch = JsFloat;
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum MouseButton {
            None,
            Left,
            Middle,
            Right,
            Back,
            Forward,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum DispatchKeyEventTypeOption {
            KeyDown,
            KeyUp,
            RawKeyDown,
            Char,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum DispatchMouseEventTypeOption {
            MousePressed,
            MouseReleased,
            MouseMoved,
            MouseWheel,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum DispatchMouseEventPointer_TypeOption {
            Mouse,
            Pen,
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct DispatchKeyEvent {
            #[serde(rename = "type")]
            pub Type: DispatchKeyEventTypeOption,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub modifiers: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub timestamp: Option<TimeSinceEpoch>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub text: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub unmodified_text: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub key_identifier: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub code: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub key: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub windows_virtual_key_code: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub native_virtual_key_code: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub auto_repeat: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub is_keypad: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub is_system_key: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub location: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub commands: Option<Vec<String>>,
        }
        impl Method for DispatchKeyEvent {
            const NAME: &'static str = "Input.dispatchKeyEvent";
            type ReturnObject = DispatchKeyEventReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct InsertText {
            pub text: String,
        }
        impl Method for InsertText {
            const NAME: &'static str = "Input.insertText";
            type ReturnObject = InsertTextReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct DispatchMouseEvent {
            #[serde(rename = "type")]
            pub Type: DispatchMouseEventTypeOption,
            pub x: JsFloat,
            pub y: JsFloat,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub modifiers: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub timestamp: Option<TimeSinceEpoch>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub button: Option<MouseButton>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub buttons: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub click_count: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub force: Option<JsFloat>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub tangential_pressure: Option<JsFloat>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub tilt_x: Option<JsFloat>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub tilt_y: Option<JsFloat>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub twist: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub delta_x: Option<JsFloat>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub delta_y: Option<JsFloat>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub pointer_Type: Option<DispatchMouseEventPointer_TypeOption>,
        }
        impl Method for DispatchMouseEvent {
            const NAME: &'static str = "Input.dispatchMouseEvent";
            type ReturnObject = DispatchMouseEventReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct DispatchKeyEventReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct InsertTextReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct DispatchMouseEventReturnObject {}
    }
    pub mod Inspector {
        use super::types::*;
        use serde::{Deserialize, Serialize};
        use serde_json::Value as Json;
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Disable(pub Option<Json>);
        impl Method for Disable {
            const NAME: &'static str = "Inspector.disable";
            type ReturnObject = DisableReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Enable(pub Option<Json>);
        impl Method for Enable {
            const NAME: &'static str = "Inspector.enable";
            type ReturnObject = EnableReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct DisableReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct EnableReturnObject {}
    }
    pub mod Log {
        use super::types::*;
        use serde::{Deserialize, Serialize};
        use serde_json::Value as Json;
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum ViolationSettingName {
            LongTask,
            LongLayout,
            BlockedEvent,
            BlockedParser,
            #[serde(rename = "discouragedAPIUse")]
            DiscouragedApiUse,
            Handler,
            RecurringHandler,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct ViolationSetting {
            pub name: ViolationSettingName,
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Disable(pub Option<Json>);
        impl Method for Disable {
            const NAME: &'static str = "Log.disable";
            type ReturnObject = DisableReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Enable(pub Option<Json>);
        impl Method for Enable {
            const NAME: &'static str = "Log.enable";
            type ReturnObject = EnableReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct StartViolationsReport {
            pub config: Vec<ViolationSetting>,
        }
        impl Method for StartViolationsReport {
            const NAME: &'static str = "Log.startViolationsReport";
            type ReturnObject = StartViolationsReportReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct StopViolationsReport(pub Option<Json>);
        impl Method for StopViolationsReport {
            const NAME: &'static str = "Log.stopViolationsReport";
            type ReturnObject = StopViolationsReportReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct DisableReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct EnableReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct StartViolationsReportReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct StopViolationsReportReturnObject {}
    }
    pub mod Network {
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
    }
    pub mod Page {
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
    }
    pub mod Profiler {
        use super::Runtime;
        use super::types::*;
        use serde::{Deserialize, Serialize};
        use serde_json::Value as Json;
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct CoverageRange {
            #[serde(default)]
            pub count: JsUInt,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct FunctionCoverage {
            pub ranges: Vec<CoverageRange>,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct ScriptCoverage {
            pub script_id: Runtime::ScriptId,
            #[serde(default)]
            pub url: String,
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Disable(pub Option<Json>);
        impl Method for Disable {
            const NAME: &'static str = "Profiler.disable";
            type ReturnObject = DisableReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Enable(pub Option<Json>);
        impl Method for Enable {
            const NAME: &'static str = "Profiler.enable";
            type ReturnObject = EnableReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct StartPreciseCoverage {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub call_count: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub detailed: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub allow_triggered_updates: Option<bool>,
        }
        impl Method for StartPreciseCoverage {
            const NAME: &'static str = "Profiler.startPreciseCoverage";
            type ReturnObject = StartPreciseCoverageReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct StopPreciseCoverage(pub Option<Json>);
        impl Method for StopPreciseCoverage {
            const NAME: &'static str = "Profiler.stopPreciseCoverage";
            type ReturnObject = StopPreciseCoverageReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct TakePreciseCoverage(pub Option<Json>);
        impl Method for TakePreciseCoverage {
            const NAME: &'static str = "Profiler.takePreciseCoverage";
            type ReturnObject = TakePreciseCoverageReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct DisableReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct EnableReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct StartPreciseCoverageReturnObject {
            #[serde(default)]
            pub timestamp: JsFloat,
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct StopPreciseCoverageReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct TakePreciseCoverageReturnObject {
            pub result: Vec<ScriptCoverage>,
            #[serde(default)]
            pub timestamp: JsFloat,
        }
    }
    pub mod Runtime {
        use super::types::*;
        use serde::{Deserialize, Serialize};
        use serde_json::Value as Json;
        pub type ScriptId = String;
        pub type RemoteObjectId = String;
        pub type UnserializableValue = String;
        pub type ExecutionContextId = JsUInt;
        pub type TimeDelta = JsFloat;
        pub type UniqueDebuggerId = String;
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum SerializationOptionsSerialization {
            Deep,
            Json,
            IdOnly,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum DeepSerializedValueType {
            Undefined,
            Null,
            String,
            Number,
            Boolean,
            Bigint,
            Regexp,
            Date,
            Symbol,
            Array,
            Object,
            Function,
            Map,
            Set,
            Weakmap,
            Weakset,
            Error,
            Proxy,
            Promise,
            Typedarray,
            Arraybuffer,
            Node,
            Window,
            Generator,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum RemoteObjectType {
            Object,
            Function,
            Undefined,
            String,
            Number,
            Boolean,
            Symbol,
            Bigint,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum RemoteObjectSubtype {
            Array,
            Null,
            Node,
            Regexp,
            Date,
            Map,
            Set,
            Weakmap,
            Weakset,
            Iterator,
            Generator,
            Error,
            Proxy,
            Promise,
            Typedarray,
            Arraybuffer,
            Dataview,
            Webassemblymemory,
            Wasmvalue,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum ObjectPreviewType {
            Object,
            Function,
            Undefined,
            String,
            Number,
            Boolean,
            Symbol,
            Bigint,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum ObjectPreviewSubtype {
            Array,
            Null,
            Node,
            Regexp,
            Date,
            Map,
            Set,
            Weakmap,
            Weakset,
            Iterator,
            Generator,
            Error,
            Proxy,
            Promise,
            Typedarray,
            Arraybuffer,
            Dataview,
            Webassemblymemory,
            Wasmvalue,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum PropertyPreviewType {
            Object,
            Function,
            Undefined,
            String,
            Number,
            Boolean,
            Symbol,
            Accessor,
            Bigint,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum PropertyPreviewSubtype {
            Array,
            Null,
            Node,
            Regexp,
            Date,
            Map,
            Set,
            Weakmap,
            Weakset,
            Iterator,
            Generator,
            Error,
            Proxy,
            Promise,
            Typedarray,
            Arraybuffer,
            Dataview,
            Webassemblymemory,
            Wasmvalue,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct SerializationOptions {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub max_depth: Option<JsUInt>,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct DeepSerializedValue {
            #[serde(rename = "type")]
            pub Type: DeepSerializedValueType,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub value: Option<Json>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub object_id: Option<String>,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct RemoteObject {
            #[serde(rename = "type")]
            pub Type: RemoteObjectType,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub value: Option<Json>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub unserializable_value: Option<UnserializableValue>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub description: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub object_id: Option<RemoteObjectId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub preview: Option<ObjectPreview>,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct CustomPreview {
            #[serde(default)]
            pub header: String,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct ObjectPreview {
            #[serde(rename = "type")]
            pub Type: ObjectPreviewType,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub description: Option<String>,
            #[serde(default)]
            pub overflow: bool,
            pub properties: Vec<PropertyPreview>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub entries: Option<Vec<EntryPreview>>,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct PropertyPreview {
            #[serde(default)]
            pub name: String,
            #[serde(rename = "type")]
            pub Type: PropertyPreviewType,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub value: Option<String>,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct EntryPreview {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub key: Option<ObjectPreview>,
            pub value: ObjectPreview,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct CallArgument {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub value: Option<Json>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub unserializable_value: Option<UnserializableValue>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub object_id: Option<RemoteObjectId>,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct ExceptionDetails {
            #[serde(default)]
            pub text: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub script_id: Option<ScriptId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub url: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub execution_context_id: Option<ExecutionContextId>,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct CallFrame {
            pub script_id: ScriptId,
            #[serde(default)]
            pub url: String,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct StackTrace {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub description: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub parent: Option<Box<StackTrace>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub parent_id: Option<StackTraceId>,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct StackTraceId {
            #[serde(default)]
            pub id: String,
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct CallFunctionOn {
            pub function_declaration: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub object_id: Option<RemoteObjectId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub arguments: Option<Vec<CallArgument>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub silent: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub return_by_value: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub generate_preview: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub user_gesture: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub await_promise: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub execution_context_id: Option<ExecutionContextId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub object_group: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub throw_on_side_effect: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub unique_context_id: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub serialization_options: Option<SerializationOptions>,
        }
        impl Method for CallFunctionOn {
            const NAME: &'static str = "Runtime.callFunctionOn";
            type ReturnObject = CallFunctionOnReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Disable(pub Option<Json>);
        impl Method for Disable {
            const NAME: &'static str = "Runtime.disable";
            type ReturnObject = DisableReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Enable(pub Option<Json>);
        impl Method for Enable {
            const NAME: &'static str = "Runtime.enable";
            type ReturnObject = EnableReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct Evaluate {
            pub expression: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub object_group: Option<String>,
            #[serde(
                rename = "includeCommandLineAPI",
                skip_serializing_if = "Option::is_none"
            )]
            pub include_command_line_api: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub silent: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub context_id: Option<ExecutionContextId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub return_by_value: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub generate_preview: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub user_gesture: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub await_promise: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub throw_on_side_effect: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub timeout: Option<TimeDelta>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub disable_breaks: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub repl_mode: Option<bool>,
            #[serde(
                rename = "allowUnsafeEvalBlockedByCSP",
                skip_serializing_if = "Option::is_none"
            )]
            pub allow_unsafe_eval_blocked_by_csp: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub unique_context_id: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub serialization_options: Option<SerializationOptions>,
        }
        impl Method for Evaluate {
            const NAME: &'static str = "Runtime.evaluate";
            type ReturnObject = EvaluateReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct ReleaseObjectGroup {
            pub object_group: String,
        }
        impl Method for ReleaseObjectGroup {
            const NAME: &'static str = "Runtime.releaseObjectGroup";
            type ReturnObject = ReleaseObjectGroupReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct RunIfWaitingForDebugger(pub Option<Json>);
        impl Method for RunIfWaitingForDebugger {
            const NAME: &'static str = "Runtime.runIfWaitingForDebugger";
            type ReturnObject = RunIfWaitingForDebuggerReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct AddBinding {
            pub name: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub execution_context_id: Option<ExecutionContextId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub execution_context_name: Option<String>,
        }
        impl Method for AddBinding {
            const NAME: &'static str = "Runtime.addBinding";
            type ReturnObject = AddBindingReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct CallFunctionOnReturnObject {
            pub result: RemoteObject,
            pub exception_details: Option<ExceptionDetails>,
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct DisableReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct EnableReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct EvaluateReturnObject {
            pub result: RemoteObject,
            pub exception_details: Option<ExceptionDetails>,
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct ReleaseObjectGroupReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct RunIfWaitingForDebuggerReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct AddBindingReturnObject {}
        pub mod events {
            use serde::Deserialize;
            #[derive(Deserialize, Debug, Clone, PartialEq)]
            pub struct BindingCalledEvent {
                pub params: BindingCalledEventParams,
            }
            #[derive(Deserialize, Debug, Clone, PartialEq)]
            #[serde(rename_all = "camelCase")]
            pub struct BindingCalledEventParams {
                #[serde(default)]
                pub name: String,
                #[serde(default)]
                pub payload: String,
                pub execution_context_id: super::ExecutionContextId,
            }
        }
    }
    pub mod Security {
        use super::types::*;
        use serde::{Deserialize, Serialize};
        use serde_json::Value as Json;
        pub type CertificateId = JsUInt;
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum MixedContentType {
            Blockable,
            #[serde(rename = "optionally-blockable")]
            OptionallyBlockable,
            None,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum SecurityState {
            Unknown,
            Neutral,
            Insecure,
            Secure,
            Info,
            #[serde(rename = "insecure-broken")]
            InsecureBroken,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum CertificateErrorAction {
            Continue,
            Cancel,
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct Enable(pub Option<Json>);
        impl Method for Enable {
            const NAME: &'static str = "Security.enable";
            type ReturnObject = EnableReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct HandleCertificateError {
            pub event_id: JsUInt,
            pub action: CertificateErrorAction,
        }
        impl Method for HandleCertificateError {
            const NAME: &'static str = "Security.handleCertificateError";
            type ReturnObject = HandleCertificateErrorReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct SetOverrideCertificateErrors {
            #[serde(rename = "override")]
            pub Override: bool,
        }
        impl Method for SetOverrideCertificateErrors {
            const NAME: &'static str = "Security.setOverrideCertificateErrors";
            type ReturnObject = SetOverrideCertificateErrorsReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct EnableReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct HandleCertificateErrorReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetOverrideCertificateErrorsReturnObject {}
    }
    pub mod Storage {
        use super::Browser;
        use super::Network;
        use super::types::*;
        use serde::{Deserialize, Serialize};
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct ClearDataForOrigin {
            pub origin: String,
            pub storage_Types: String,
        }
        impl Method for ClearDataForOrigin {
            const NAME: &'static str = "Storage.clearDataForOrigin";
            type ReturnObject = ClearDataForOriginReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct SetCookies {
            pub cookies: Network::CookieParam,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub browser_context_id: Option<Browser::BrowserContextID>,
        }
        impl Method for SetCookies {
            const NAME: &'static str = "Storage.setCookies";
            type ReturnObject = SetCookiesReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct ClearCookies {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub browser_context_id: Option<Browser::BrowserContextID>,
        }
        impl Method for ClearCookies {
            const NAME: &'static str = "Storage.clearCookies";
            type ReturnObject = ClearCookiesReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct ClearDataForOriginReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetCookiesReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct ClearCookiesReturnObject {}
    }
    pub mod Target {
        use super::Browser;
        use super::types::*;
        use serde::{Deserialize, Serialize};
        pub type TargetID = String;
        pub type SessionID = String;
        pub type TargetFilter = Vec<FilterEntry>;
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub enum WindowState {
            Normal,
            Minimized,
            Maximized,
            Fullscreen,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct TargetInfo {
            pub target_id: TargetID,
            #[serde(rename = "type", default)]
            pub Type: String,
            #[serde(default)]
            pub title: String,
            #[serde(default)]
            pub url: String,
            #[serde(default)]
            pub attached: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub opener_id: Option<TargetID>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub browser_context_id: Option<Browser::BrowserContextID>,
        }
        #[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
        pub struct FilterEntry {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub exclude: Option<bool>,
            #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
            pub Type: Option<String>,
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct ActivateTarget {
            pub target_id: TargetID,
        }
        impl Method for ActivateTarget {
            const NAME: &'static str = "Target.activateTarget";
            type ReturnObject = ActivateTargetReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct AttachToTarget {
            pub target_id: TargetID,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub flatten: Option<bool>,
        }
        impl Method for AttachToTarget {
            const NAME: &'static str = "Target.attachToTarget";
            type ReturnObject = AttachToTargetReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct CloseTarget {
            pub target_id: TargetID,
        }
        impl Method for CloseTarget {
            const NAME: &'static str = "Target.closeTarget";
            type ReturnObject = CloseTargetReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct CreateBrowserContext {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub dispose_on_detach: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub proxy_server: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub proxy_bypass_list: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub origins_with_universal_network_access: Option<Vec<String>>,
        }
        impl Method for CreateBrowserContext {
            const NAME: &'static str = "Target.createBrowserContext";
            type ReturnObject = CreateBrowserContextReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct CreateTarget {
            pub url: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub left: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub top: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub width: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub height: Option<JsUInt>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub window_state: Option<WindowState>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub browser_context_id: Option<Browser::BrowserContextID>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub enable_begin_frame_control: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub new_window: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub background: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub for_tab: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub hidden: Option<bool>,
        }
        impl Method for CreateTarget {
            const NAME: &'static str = "Target.createTarget";
            type ReturnObject = CreateTargetReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct DetachFromTarget {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub session_id: Option<SessionID>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub target_id: Option<TargetID>,
        }
        impl Method for DetachFromTarget {
            const NAME: &'static str = "Target.detachFromTarget";
            type ReturnObject = DetachFromTargetReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct DisposeBrowserContext {
            pub browser_context_id: Browser::BrowserContextID,
        }
        impl Method for DisposeBrowserContext {
            const NAME: &'static str = "Target.disposeBrowserContext";
            type ReturnObject = DisposeBrowserContextReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct GetTargetInfo {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub target_id: Option<TargetID>,
        }
        impl Method for GetTargetInfo {
            const NAME: &'static str = "Target.getTargetInfo";
            type ReturnObject = GetTargetInfoReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct GetTargets {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub filter: Option<TargetFilter>,
        }
        impl Method for GetTargets {
            const NAME: &'static str = "Target.getTargets";
            type ReturnObject = GetTargetsReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct SendMessageToTarget {
            pub message: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub session_id: Option<SessionID>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub target_id: Option<TargetID>,
        }
        impl Method for SendMessageToTarget {
            const NAME: &'static str = "Target.sendMessageToTarget";
            type ReturnObject = SendMessageToTargetReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct SetAutoAttach {
            pub auto_attach: bool,
            pub wait_for_debugger_on_start: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub flatten: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub filter: Option<TargetFilter>,
        }
        impl Method for SetAutoAttach {
            const NAME: &'static str = "Target.setAutoAttach";
            type ReturnObject = SetAutoAttachReturnObject;
        }
        #[derive(Serialize, Debug, Clone, PartialEq)]
        pub struct SetDiscoverTargets {
            pub discover: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            pub filter: Option<TargetFilter>,
        }
        impl Method for SetDiscoverTargets {
            const NAME: &'static str = "Target.setDiscoverTargets";
            type ReturnObject = SetDiscoverTargetsReturnObject;
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct ActivateTargetReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct AttachToTargetReturnObject {
            pub session_id: SessionID,
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct CloseTargetReturnObject {
            #[serde(default)]
            pub success: bool,
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct CreateBrowserContextReturnObject {
            pub browser_context_id: Browser::BrowserContextID,
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct CreateTargetReturnObject {
            pub target_id: TargetID,
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct DetachFromTargetReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct DisposeBrowserContextReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct GetTargetInfoReturnObject {
            pub target_info: TargetInfo,
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        #[serde(rename_all = "camelCase")]
        pub struct GetTargetsReturnObject {
            pub target_infos: Vec<TargetInfo>,
        }
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SendMessageToTargetReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetAutoAttachReturnObject {}
        #[derive(Deserialize, Debug, Clone, PartialEq)]
        pub struct SetDiscoverTargetsReturnObject {}
        pub mod events {
            use serde::Deserialize;
            #[derive(Deserialize, Debug, Clone, PartialEq)]
            pub struct AttachedToTargetEvent {
                pub params: AttachedToTargetEventParams,
            }
            #[derive(Deserialize, Debug, Clone, PartialEq)]
            #[serde(rename_all = "camelCase")]
            pub struct AttachedToTargetEventParams {
                pub session_id: super::SessionID,
                pub target_info: super::TargetInfo,
            }
            #[derive(Deserialize, Debug, Clone, PartialEq)]
            pub struct ReceivedMessageFromTargetEvent {
                pub params: ReceivedMessageFromTargetEventParams,
            }
            #[derive(Deserialize, Debug, Clone, PartialEq)]
            #[serde(rename_all = "camelCase")]
            pub struct ReceivedMessageFromTargetEventParams {
                pub session_id: super::SessionID,
                #[serde(default)]
                pub message: String,
                pub target_id: Option<super::TargetID>,
            }
            #[derive(Deserialize, Debug, Clone, PartialEq)]
            pub struct TargetCreatedEvent {
                pub params: TargetCreatedEventParams,
            }
            #[derive(Deserialize, Debug, Clone, PartialEq)]
            #[serde(rename_all = "camelCase")]
            pub struct TargetCreatedEventParams {
                pub target_info: super::TargetInfo,
            }
            #[derive(Deserialize, Debug, Clone, PartialEq)]
            pub struct TargetDestroyedEvent {
                pub params: TargetDestroyedEventParams,
            }
            #[derive(Deserialize, Debug, Clone, PartialEq)]
            #[serde(rename_all = "camelCase")]
            pub struct TargetDestroyedEventParams {
                pub target_id: super::TargetID,
            }
            #[derive(Deserialize, Debug, Clone, PartialEq)]
            pub struct TargetInfoChangedEvent {
                pub params: TargetInfoChangedEventParams,
            }
            #[derive(Deserialize, Debug, Clone, PartialEq)]
            #[serde(rename_all = "camelCase")]
            pub struct TargetInfoChangedEventParams {
                pub target_info: super::TargetInfo,
            }
        }
    }
}
