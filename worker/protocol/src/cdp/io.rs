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
