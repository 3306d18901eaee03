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
