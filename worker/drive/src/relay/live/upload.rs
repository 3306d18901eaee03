//! Giving a viewer's files to the page that asked for them, from inside the page: no file of this machine is involved.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::events::Chooser;
use super::input::File;
use crate::browser::cdp::{Cdp, CdpError};

/// A function for the input that gets the files. `false`: it takes none any more.
const SET: &str = "function(...files) { \
    if (!this.isConnected || this.type !== 'file') return false; \
    const all = new DataTransfer(); \
    for (const { name, mime, data } of files) { \
        const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0)); \
        all.items.add(new File([bytes], name, { type: mime })); \
    } \
    this.files = all.files; \
    this.dispatchEvent(new Event('input', { bubbles: true, composed: true })); \
    this.dispatchEvent(new Event('change', { bubbles: true })); \
    return true; }";

/// The input that a chooser gives files to, if it takes so many; else why not, in a sentence for the viewer.
pub fn input_of(chooser: &Chooser, files: &[File]) -> Result<i64, &'static str> {
    let Some(node) = chooser.node else {
        return Err("This page opens files in a way that works only in a browser of your own.");
    };
    if files.len() > 1 && !chooser.multiple { Err("The page takes one file only.") } else { Ok(node) }
}

/// Sets the files of an input, in a world of our own where the page has not changed what functions do. Returns whether
/// the page took them.
///
/// # Errors
/// When the browser does not answer by the deadline, or refuses: the page may be gone.
pub async fn set_files(
    cdp: &Cdp,
    chooser: &Chooser,
    node: i64,
    files: &[File],
    deadline: Instant,
) -> Result<bool, CdpError> {
    let session = Some(chooser.session.as_str());
    let call = |method: &'static str, params: Value| cdp.send_as::<Value>(method, session, params).by(deadline);
    let world = call("Page.createIsolatedWorld", json!({"frameId": chooser.frame, "worldName": "weir"})).await?;
    let context = &world["executionContextId"];
    let object = call("DOM.resolveNode", json!({"backendNodeId": node, "executionContextId": context})).await?;
    let argument = |file: &File| {
        let data = BASE64.encode(&file.bytes);
        json!({"value": {"name": file.name, "mime": file.mime, "data": data}})
    };
    let params = json!({
        "objectId": object["object"]["objectId"], "functionDeclaration": SET,
        "arguments": files.iter().map(argument).collect::<Vec<Value>>(),
        "returnByValue": true, "userGesture": true,
    });
    let answer = call("Runtime.callFunctionOn", params).await?;
    Ok(answer["result"]["value"].as_bool() == Some(true))
}
