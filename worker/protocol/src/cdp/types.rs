use serde::{Deserialize, Serialize};
use std::fmt::Debug;
pub type JsFloat = f64;
pub type JsUInt = u32;
pub type WindowId = JsUInt;
pub type CallId = JsUInt;
#[derive(Serialize, Debug)]
pub struct MethodCall<T>
where
    T: Debug,
{
    #[serde(rename = "method")]
    method_name: &'static str,
    pub id: CallId,
    params: T,
}
impl<T> MethodCall<T>
where
    T: Debug,
{
    pub fn get_params(&self) -> &T {
        &self.params
    }
}
pub trait Method: Debug {
    const NAME: &'static str;
    type ReturnObject: serde::de::DeserializeOwned + std::fmt::Debug;
    fn to_method_call(self, call_id: CallId) -> MethodCall<Self>
    where
        Self: std::marker::Sized,
    {
        MethodCall {
            id: call_id,
            params: self,
            method_name: Self::NAME,
        }
    }
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(tag = "method")]
#[allow(clippy::large_enum_variant)]
pub enum Event {
    #[serde(rename = "Fetch.requestPaused")]
    FetchRequestPaused(super::Fetch::events::RequestPausedEvent),
    #[serde(rename = "Fetch.authRequired")]
    FetchAuthRequired(super::Fetch::events::AuthRequiredEvent),
    #[serde(rename = "Network.loadingFailed")]
    NetworkLoadingFailed(super::Network::events::LoadingFailedEvent),
    #[serde(rename = "Network.loadingFinished")]
    NetworkLoadingFinished(super::Network::events::LoadingFinishedEvent),
    #[serde(rename = "Network.responseReceived")]
    NetworkResponseReceived(super::Network::events::ResponseReceivedEvent),
    #[serde(rename = "Page.lifecycleEvent")]
    PageLifecycleEvent(super::Page::events::LifecycleEventEvent),
    #[serde(rename = "Target.attachedToTarget")]
    AttachedToTarget(super::Target::events::AttachedToTargetEvent),
    #[serde(rename = "Target.receivedMessageFromTarget")]
    ReceivedMessageFromTarget(super::Target::events::ReceivedMessageFromTargetEvent),
    #[serde(rename = "Target.targetCreated")]
    TargetCreated(super::Target::events::TargetCreatedEvent),
    #[serde(rename = "Target.targetDestroyed")]
    TargetDestroyed(super::Target::events::TargetDestroyedEvent),
    #[serde(rename = "Target.targetInfoChanged")]
    TargetInfoChanged(super::Target::events::TargetInfoChangedEvent),
    #[serde(rename = "Runtime.bindingCalled")]
    RuntimeBindingCalled(super::Runtime::events::BindingCalledEvent),
}
