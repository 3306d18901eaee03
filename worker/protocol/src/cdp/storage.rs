use super::Browser;
use super::Network;
use super::types::*;
use serde::{Deserialize, Serialize};
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClearDataForOrigin {
    pub origin: String,
    pub storage_Types: String,
}
impl Method for ClearDataForOrigin {
    const NAME: &'static str = "Storage.clearDataForOrigin";
    type ReturnObject = ClearDataForOriginReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SetCookies {
    pub cookies: Network::CookieParam,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_context_id: Option<Browser::BrowserContextID>,
}
impl Method for SetCookies {
    const NAME: &'static str = "Storage.setCookies";
    type ReturnObject = SetCookiesReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ClearCookies {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_context_id: Option<Browser::BrowserContextID>,
}
impl Method for ClearCookies {
    const NAME: &'static str = "Storage.clearCookies";
    type ReturnObject = ClearCookiesReturnObject;
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct ClearDataForOriginReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct SetCookiesReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct ClearCookiesReturnObject {}
