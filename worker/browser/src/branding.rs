//! Colours, fonts, logo and the like of a page at rest: `branding.js` reads them from the computed styles, in a world of its
//! own that the page's scripts do not reach.

use std::time::Duration;

use headless_chrome::protocol::cdp::types::Method as _;
use headless_chrome::protocol::cdp::{Page, Runtime};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use weir_shared::{clock, texts};

use super::cdp::Cdp;
use super::error::RenderError;

const SCRIPT: &str = include_str!("branding.js");

/// Longest run of the script, and the time that the deadline must leave for it.
const LIMIT: Duration = Duration::from_secs(5);

/// Most bytes of an answer.
const MAX_ANSWER: usize = 256 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct World {
    execution_context_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluated {
    result: Remote,
    exception_details: Option<Value>,
}

#[derive(Deserialize)]
struct Remote {
    value: Option<String>,
}

/// What the page in `frame` looks like.
pub(super) async fn read(cdp: &Cdp, session: &str, frame: &str, deadline: Instant) -> Result<Value, RenderError> {
    let by = deadline.min(clock::deadline(LIMIT));
    let params = json!({ "frameId": frame, "worldName": "branding" });
    let world = cdp.send_as::<World>(Page::CreateIsolatedWorld::NAME, Some(session), params).by(by).await?;
    let params = json!({
        "expression": SCRIPT, "contextId": world.execution_context_id, "returnByValue": true,
        "timeout": LIMIT.as_millis() as u64,
    });
    let evaluated = cdp.send_as::<Evaluated>(Runtime::Evaluate::NAME, Some(session), params).by(by).await?;
    let Some(text) = evaluated.result.value.filter(|text| text.len() <= MAX_ANSWER) else {
        return Err(RenderError::Internal(format!("the branding script failed: {:?}", evaluated.exception_details)));
    };
    texts::read(&text).map_err(|error| RenderError::Internal(format!("branding: {error}")))
}
