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
