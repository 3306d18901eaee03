use super::types::*;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
pub type ScriptId = String;
pub type RemoteObjectId = String;
pub type UnserializableValue = String;
pub type ExecutionContextId = JsUInt;
pub type TimeDelta = JsFloat;
pub type UniqueDebuggerId = String;
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum SerializationOptionsSerialization {
    Deep,
    Json,
    IdOnly,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum DeepSerializedValueType {
    Undefined,
    Null,
    String,
    Number,
    Boolean,
    Bigint,
    Regexp,
    Date,
    Symbol,
    Array,
    Object,
    Function,
    Map,
    Set,
    Weakmap,
    Weakset,
    Error,
    Proxy,
    Promise,
    Typedarray,
    Arraybuffer,
    Node,
    Window,
    Generator,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum RemoteObjectType {
    Object,
    Function,
    Undefined,
    String,
    Number,
    Boolean,
    Symbol,
    Bigint,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum RemoteObjectSubtype {
    Array,
    Null,
    Node,
    Regexp,
    Date,
    Map,
    Set,
    Weakmap,
    Weakset,
    Iterator,
    Generator,
    Error,
    Proxy,
    Promise,
    Typedarray,
    Arraybuffer,
    Dataview,
    Webassemblymemory,
    Wasmvalue,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum ObjectPreviewType {
    Object,
    Function,
    Undefined,
    String,
    Number,
    Boolean,
    Symbol,
    Bigint,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum ObjectPreviewSubtype {
    Array,
    Null,
    Node,
    Regexp,
    Date,
    Map,
    Set,
    Weakmap,
    Weakset,
    Iterator,
    Generator,
    Error,
    Proxy,
    Promise,
    Typedarray,
    Arraybuffer,
    Dataview,
    Webassemblymemory,
    Wasmvalue,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum PropertyPreviewType {
    Object,
    Function,
    Undefined,
    String,
    Number,
    Boolean,
    Symbol,
    Accessor,
    Bigint,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub enum PropertyPreviewSubtype {
    Array,
    Null,
    Node,
    Regexp,
    Date,
    Map,
    Set,
    Weakmap,
    Weakset,
    Iterator,
    Generator,
    Error,
    Proxy,
    Promise,
    Typedarray,
    Arraybuffer,
    Dataview,
    Webassemblymemory,
    Wasmvalue,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct SerializationOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<JsUInt>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DeepSerializedValue {
    #[serde(rename = "type")]
    pub Type: DeepSerializedValueType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<String>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RemoteObject {
    #[serde(rename = "type")]
    pub Type: RemoteObjectType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unserializable_value: Option<UnserializableValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<RemoteObjectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<ObjectPreview>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct CustomPreview {
    #[serde(default)]
    pub header: String,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct ObjectPreview {
    #[serde(rename = "type")]
    pub Type: ObjectPreviewType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default)]
    pub overflow: bool,
    pub properties: Vec<PropertyPreview>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<Vec<EntryPreview>>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct PropertyPreview {
    #[serde(default)]
    pub name: String,
    #[serde(rename = "type")]
    pub Type: PropertyPreviewType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct EntryPreview {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<ObjectPreview>,
    pub value: ObjectPreview,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CallArgument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unserializable_value: Option<UnserializableValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<RemoteObjectId>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ExceptionDetails {
    #[serde(default)]
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script_id: Option<ScriptId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_context_id: Option<ExecutionContextId>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CallFrame {
    pub script_id: ScriptId,
    #[serde(default)]
    pub url: String,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct StackTrace {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<StackTrace>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<StackTraceId>,
}
#[derive(Deserialize, Serialize, Debug, Clone, PartialEq)]
pub struct StackTraceId {
    #[serde(default)]
    pub id: String,
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CallFunctionOn {
    pub function_declaration: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<RemoteObjectId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<CallArgument>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub return_by_value: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_preview: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_gesture: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub await_promise: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_context_id: Option<ExecutionContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throw_on_side_effect: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique_context_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serialization_options: Option<SerializationOptions>,
}
impl Method for CallFunctionOn {
    const NAME: &'static str = "Runtime.callFunctionOn";
    type ReturnObject = CallFunctionOnReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct Disable(pub Option<Json>);
impl Method for Disable {
    const NAME: &'static str = "Runtime.disable";
    type ReturnObject = DisableReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct Enable(pub Option<Json>);
impl Method for Enable {
    const NAME: &'static str = "Runtime.enable";
    type ReturnObject = EnableReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Evaluate {
    pub expression: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_group: Option<String>,
    #[serde(
        rename = "includeCommandLineAPI",
        skip_serializing_if = "Option::is_none"
    )]
    pub include_command_line_api: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_id: Option<ExecutionContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub return_by_value: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_preview: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_gesture: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub await_promise: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throw_on_side_effect: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeDelta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_breaks: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repl_mode: Option<bool>,
    #[serde(
        rename = "allowUnsafeEvalBlockedByCSP",
        skip_serializing_if = "Option::is_none"
    )]
    pub allow_unsafe_eval_blocked_by_csp: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique_context_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serialization_options: Option<SerializationOptions>,
}
impl Method for Evaluate {
    const NAME: &'static str = "Runtime.evaluate";
    type ReturnObject = EvaluateReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseObjectGroup {
    pub object_group: String,
}
impl Method for ReleaseObjectGroup {
    const NAME: &'static str = "Runtime.releaseObjectGroup";
    type ReturnObject = ReleaseObjectGroupReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
pub struct RunIfWaitingForDebugger(pub Option<Json>);
impl Method for RunIfWaitingForDebugger {
    const NAME: &'static str = "Runtime.runIfWaitingForDebugger";
    type ReturnObject = RunIfWaitingForDebuggerReturnObject;
}
#[derive(Serialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AddBinding {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_context_id: Option<ExecutionContextId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_context_name: Option<String>,
}
impl Method for AddBinding {
    const NAME: &'static str = "Runtime.addBinding";
    type ReturnObject = AddBindingReturnObject;
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CallFunctionOnReturnObject {
    pub result: RemoteObject,
    pub exception_details: Option<ExceptionDetails>,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct DisableReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct EnableReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct EvaluateReturnObject {
    pub result: RemoteObject,
    pub exception_details: Option<ExceptionDetails>,
}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct ReleaseObjectGroupReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct RunIfWaitingForDebuggerReturnObject {}
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct AddBindingReturnObject {}
pub mod events {
    use serde::Deserialize;
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    pub struct BindingCalledEvent {
        pub params: BindingCalledEventParams,
    }
    #[derive(Deserialize, Debug, Clone, PartialEq)]
    #[serde(rename_all = "camelCase")]
    pub struct BindingCalledEventParams {
        #[serde(default)]
        pub name: String,
        #[serde(default)]
        pub payload: String,
        pub execution_context_id: super::ExecutionContextId,
    }
}
