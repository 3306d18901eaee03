//! Pictures of a page: for the screenshot format and for actions.

use headless_chrome::protocol::cdp::types::Method as _;
use headless_chrome::protocol::cdp::{Emulation, Page, Runtime};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::appearance::{self, PHONE_SCALE};
use super::cdp::{Cdp, CdpError};
use super::{RenderRequest, ScreenshotRequest, consent};

/// Largest screenshot side and area, pixels of the image. Beyond, the compositor fails or the memory goes.
const MAX_SIDE: f64 = 16_384.0;
const MAX_AREA: f64 = 80_000_000.0;

#[derive(Deserialize)]
struct Taken {
    data: String,
}

/// A page to take pictures of.
#[derive(Clone, Copy)]
pub(super) struct Camera<'a> {
    pub cdp: &'a Cdp,
    pub session: &'a str,
    pub request: &'a RenderRequest,
    pub deadline: Instant,
}

impl Camera<'_> {
    /// A picture as base64, with its media type. `size`: of the whole document, CSS pixels.
    pub async fn take(&self, shot: &ScreenshotRequest, size: (f64, f64)) -> Result<(String, &'static str), CdpError> {
        if self.request.block_ads {
            let style = serde_json::to_string(consent::STYLE).unwrap_or_default();
            let expression = format!(
                "{{const s=document.createElement('style');s.textContent={style};document.documentElement.append(s)}}"
            );
            self.cdp.post::<Runtime::Evaluate>(Some(self.session), json!({ "expression": expression }));
        }
        let (format, mime) = if shot.quality.is_some() { ("jpeg", "image/jpeg") } else { ("png", "image/png") };
        let mut params = json!({ "format": format, "optimizeForSpeed": true });
        if let Some(quality) = shot.quality {
            params["quality"] = quality.min(100).into();
        }
        if shot.full_page {
            let scale = if self.request.mobile { PHONE_SCALE } else { 1.0 };
            let (width, height) = clip(size.0, size.1, scale);
            params["captureBeyondViewport"] = true.into();
            params["clip"] = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        }
        let taken: Taken = self.call(Page::CaptureScreenshot::NAME, params).await?;
        Ok((taken.data, mime))
    }

    /// Gives the page the window of a picture, as long as that is taken.
    pub async fn resize(&self, window: (u32, u32)) -> Result<(), CdpError> {
        let metrics = appearance::metrics(self.request.mobile, Some(window));
        self.call::<Value>(Emulation::SetDeviceMetricsOverride::NAME, metrics.unwrap_or_default()).await.map(drop)
    }

    /// Gives the page its own window back.
    pub async fn restore(&self) -> Result<(), CdpError> {
        let own = self.request.screenshot.as_ref().and_then(|shot| shot.viewport);
        let (method, params) = match appearance::metrics(self.request.mobile, own) {
            Some(metrics) => (Emulation::SetDeviceMetricsOverride::NAME, metrics),
            None => (Emulation::ClearDeviceMetricsOverride::NAME, json!({})),
        };
        self.call::<Value>(method, params).await.map(drop)
    }

    async fn call<T: serde::de::DeserializeOwned>(&self, method: &'static str, params: Value) -> Result<T, CdpError> {
        self.cdp.send_as(method, Some(self.session), params).by(self.deadline).await
    }
}

/// The part of a document that fits into one image, CSS pixels.
fn clip(width: f64, height: f64, scale: f64) -> (f64, f64) {
    let width = width.clamp(1.0, MAX_SIDE / scale);
    let height = height.clamp(1.0, MAX_SIDE / scale).min((MAX_AREA / (scale * scale) / width).max(1.0));
    (width.floor(), height.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_page_shot_is_cut_to_what_one_image_holds() {
        assert_eq!(clip(1280.0, 3000.0, 1.0), (1280.0, 3000.0));
        assert_eq!(clip(1280.0, 900_000.0, 1.0), (1280.0, 16_384.0));
        assert_eq!(clip(390.0, 900_000.0, 3.0).1, 5461.0);
        let (width, height) = clip(12_000.0, 16_000.0, 1.0);
        assert!(width * height <= MAX_AREA);
    }
}
