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
