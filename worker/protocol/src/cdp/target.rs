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
