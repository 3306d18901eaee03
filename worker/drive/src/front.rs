//! Which tab of a browser is the one in front. The browser does not say, so its tabs are asked.

use std::cmp::Reverse;
use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use weir_shared::clock;

use crate::browser::cdp::Cdp;

/// Time for a tab to say whether it is visible.
const GLANCE: Duration = Duration::from_millis(500);
/// Tabs that are asked, all at once. More than anybody works in; a page can open any number.
const GLANCES: usize = 50;

/// A tab as it is asked.
#[derive(Debug, Clone)]
pub struct Seen {
    pub target: String,
    pub url: String,
}

/// The tabs, first of all the one that the browser shows in front, or where something was loaded last. `tabs`: in any order,
/// as the browser lists its tabs in none that says anything; what is more than [`GLANCES`] is left out.
///
/// An empty tab comes last, and so does one that does not answer.
pub async fn in_front(cdp: &Cdp, mut tabs: Vec<Seen>) -> Vec<String> {
    tabs.truncate(GLANCES);
    let glances = join_all(tabs.iter().map(|tab| glance(cdp, &tab.target))).await;
    let mut ranked: Vec<_> = tabs.into_iter().zip(glances).collect();
    ranked.sort_by_key(|(tab, glance)| Reverse(rank(&tab.url, *glance)));
    ranked.into_iter().map(|(tab, _)| tab.target).collect()
}

/// Visible before hidden, with a page before empty, then by the last beginning of a document.
fn rank(url: &str, glance: Option<(bool, f64)>) -> (bool, bool, u64) {
    let (is_visible, born) = glance.unwrap_or((false, 0.0));
    // Not below zero, and its fraction of a millisecond counts.
    (is_visible, url != "about:blank", (born * 1_000.0) as u64)
}

/// Whether a tab is visible and when its document began, milliseconds since 1970; `None`: it does not answer.
async fn glance(cdp: &Cdp, target: &str) -> Option<(bool, f64)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Attached {
        session_id: String,
    }
    let deadline = clock::deadline(GLANCE);
    let params = json!({"targetId": target, "flatten": true});
    let attached = cdp.send_as::<Attached>("Target.attachToTarget", None, params).by(deadline).await;
    let session = attached.ok()?.session_id;
    let expression = "[document.visibilityState === 'visible', performance.timeOrigin]";
    let params = json!({"expression": expression, "returnByValue": true, "timeout": GLANCE.as_millis() as u64});
    let answer = cdp.send_as::<Value>("Runtime.evaluate", Some(&session), params).by(deadline).await;
    drop(cdp.send_as::<Value>("Target.detachFromTarget", None, json!({"sessionId": session})));
    let value = answer.ok()?;
    let value = &value["result"]["value"];
    Some((value[0].as_bool()?, value[1].as_f64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_loaded_last_is_in_front_and_what_does_not_answer_is_not() {
        let order = [
            rank("http://a.test/", Some((true, 1_700_000_000_000.5))),
            rank("http://b.test/", Some((true, 1_700_000_000_000.25))),
            rank("about:blank", Some((true, 1_800_000_000_000.0))),
            rank("http://c.test/", Some((false, 1_900_000_000_000.0))),
            rank("http://d.test/", None),
            rank("about:blank", None),
        ];
        assert!(order.windows(2).all(|pair| pair[0] > pair[1]), "{order:?}");
    }
}
