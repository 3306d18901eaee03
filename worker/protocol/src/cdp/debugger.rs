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
