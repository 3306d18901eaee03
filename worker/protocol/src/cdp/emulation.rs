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
