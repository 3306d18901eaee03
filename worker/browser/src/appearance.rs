//! What makes a page appear as a request asks: the same for a page that is scraped and for the session that continues
//! it.

use headless_chrome::protocol::cdp::types::Method as _;
use headless_chrome::protocol::cdp::{Emulation, Security};
use serde_json::{Value, json};
use weir_sandbox::Version;
use weir_shared::domain::scrape::Certificates;

use super::RenderRequest;
use super::intercept::OwnHeaders;
use super::locale::Place;
use super::user_agent;

/// The window of a phone: size in CSS pixels, and pixels of the screen for each.
const PHONE: (u32, u32) = (390, 844);
pub(super) const PHONE_SCALE: f64 = 3.0;

/// The calls of a page's session, by method and parameters. They last as long as that session.
pub(super) fn settings(
    request: &RenderRequest,
    own: &OwnHeaders,
    version: &Version,
    place: Option<&Place>,
) -> Vec<(&'static str, Value)> {
    let language = own.accept_language.as_deref().or_else(|| place.map(|p| p.accept_language.as_str()));
    let language = language.unwrap_or("en-US,en");
    let name = user_agent::override_params(version, request.mobile, own.user_agent.as_deref(), language);
    let mut calls = vec![(Emulation::SetUserAgentOverride::NAME, name)];
    if let Some(place) = place {
        if let Some(locale) = &place.locale {
            calls.push((Emulation::SetLocaleOverride::NAME, json!({ "locale": locale.replace('-', "_") })));
        }
        if let Some(timezone) = place.timezone {
            calls.push((Emulation::SetTimezoneOverride::NAME, json!({ "timezoneId": timezone })));
        }
        if let Some((latitude, longitude)) = place.position {
            let position = json!({ "latitude": latitude, "longitude": longitude, "accuracy": 100 });
            calls.push((Emulation::SetGeolocationOverride::NAME, position));
        }
    }
    let window = request.screenshot.as_ref().and_then(|s| s.viewport);
    if let Some(metrics) = metrics(request.mobile, window) {
        calls.push((Emulation::SetDeviceMetricsOverride::NAME, metrics));
    }
    if request.mobile {
        let touch = json!({ "enabled": true, "maxTouchPoints": 5 });
        calls.push((Emulation::SetTouchEmulationEnabled::NAME, touch));
    }
    if request.certificates != Certificates::Trusted {
        // Each certificate that does not verify is asked about: see the interception.
        calls.push((Security::Enable::NAME, json!({})));
        calls.push((Security::SetOverrideCertificateErrors::NAME, json!({ "override": true })));
    }
    calls
}

/// What stands in for the browser's own window, of `window` CSS pixels where that is given; `None`: nothing has to.
pub(super) fn metrics(mobile: bool, window: Option<(u32, u32)>) -> Option<Value> {
    if mobile {
        let (width, height) = window.unwrap_or(PHONE);
        return Some(json!({
            "width": width, "height": height, "deviceScaleFactor": PHONE_SCALE, "mobile": true,
            "screenWidth": width, "screenHeight": height,
        }));
    }
    window.map(|(width, height)| json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false }))
}
