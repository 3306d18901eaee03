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
