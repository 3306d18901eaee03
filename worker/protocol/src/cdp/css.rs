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
