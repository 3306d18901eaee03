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
