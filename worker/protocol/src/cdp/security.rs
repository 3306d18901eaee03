use super::types::*;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
pub type CertificateId = JsUInt;
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum MixedContentType {
    Blockable,
    #[serde(rename = "optionally-blockable")]
    OptionallyBlockable,
    None,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum SecurityState {
    Unknown,
    Neutral,
    Insecure,
    Secure,
    Info,
    #[serde(rename = "insecure-broken")]
    InsecureBroken,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum CertificateErrorAction {
    Continue,
    Cancel,
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct Enable(pub Option<Json>);
impl Method for Enable {
    const NAME: &'static str = "Security.enable";
    type ReturnObject = EnableReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct HandleCertificateError {
    pub event_id: JsUInt,
    pub action: CertificateErrorAction,
}
impl Method for HandleCertificateError {
    const NAME: &'static str = "Security.handleCertificateError";
    type ReturnObject = HandleCertificateErrorReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct SetOverrideCertificateErrors {
    #[serde(rename = "override")]
    pub Override: bool,
}
impl Method for SetOverrideCertificateErrors {
    const NAME: &'static str = "Security.setOverrideCertificateErrors";
    type ReturnObject = SetOverrideCertificateErrorsReturnObject;
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct EnableReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct HandleCertificateErrorReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct SetOverrideCertificateErrorsReturnObject {}
