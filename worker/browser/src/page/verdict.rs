//! Whether what a page has come to is a page of the site: a refusal of our own proxy, a page of the browser's and a file are
//! none. Of a file it says where it lies, and with which cookies it is asked for.

use headless_chrome::protocol::cdp::types::Method as _;
use headless_chrome::protocol::cdp::{Network, Runtime};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::Render;
use super::watch::Said;
use crate::cdp::lock;
use crate::egress;
use crate::error::{FileAt, LedFile, RenderError};
use crate::intercept::Interception;
use crate::wait::Settled;

/// How the browser shows a PDF that is announced as a page.
const PDF_AS_PAGE: &str = "<html><head></head><body>%PDF-";

/// More of a document's text than a refusal of the proxy has, and little of a page's.
const FIRST_WORDS: &str = "document.documentElement.textContent.slice(0, 500)";

impl Render<'_> {
    /// Whether what has come to rest is a page of the site.
    pub(super) async fn check(&self, settled: &Settled, interception: &Interception) -> Result<(), RenderError> {
        if settled.url.starts_with("chrome-error:") {
            if let Some(certificate) = interception.refused_certificate() {
                return Err(RenderError::Ssl(certificate));
            }
            if interception.has_refused_site() {
                return Err(RenderError::SiteRefused);
            }
            return Err(RenderError::Site("ERR_FAILED".into()));
        }
        let url = Url::parse(&settled.url).unwrap_or_else(|_| self.request.url.clone());
        // However a page came to be there, it is not answered.
        if !self.request.sites.allows_document(&url) {
            return Err(RenderError::SiteRefused);
        }
        // Over plain HTTP a refusal of the proxy is a document; the site may answer with these statuses too.
        if url.scheme() == "http"
            && settled.content_type == "text/plain"
            && matches!(settled.status, 400 | 403 | 502)
            && let Some(refusal) = egress::told(&self.first_words().await?)
        {
            return Err(refusal);
        }
        // What shows nothing and leads to a file stands for the file. A page with text ("your download begins") is the page.
        let file = if settled.blank { lock(self.led_to).file.clone() } else { None };
        if let Some(file) = file {
            return Err(RenderError::NotHtml { content_type: None, at: self.led_to(file).await? });
        }
        let kind = match settled.content_type.as_str() {
            // A PDF that calls itself a page: its source would be the text.
            "text/html" if settled.html.as_ref().is_some_and(|html| html.starts_with(PDF_AS_PAGE)) => "application/pdf",
            "text/html" | "application/xhtml+xml" => return Ok(()),
            other => other,
        };
        // The address that was asked for says more than the document's own: a name, a password.
        let at = if self.is_asked(&url) { FileAt::Asked } else { self.led_to(url).await? };
        Err(RenderError::NotHtml { content_type: Some(kind.to_owned()), at })
    }

    /// Whether a document's address is the one that was asked for, as a document has it.
    fn is_asked(&self, url: &Url) -> bool {
        let mut asked = self.request.url.clone();
        // Neither is refused for an address with a host.
        let _ = (asked.set_username(""), asked.set_password(None));
        asked == *url
    }

    /// What a document says in its first words: a refusal of the proxy has no more, and a page of the site may have any number.
    async fn first_words(&self) -> Result<String, RenderError> {
        let text = json!({ "expression": FIRST_WORDS, "returnByValue": true });
        let said = self.tab.process.cdp.send_as::<Said>(Runtime::Evaluate::NAME, Some(&self.tab.session), text);
        Ok(said.by(self.deadline).await?.result.value.unwrap_or_default())
    }

    /// A file at `url` that the page has led to, as its browser would ask for it.
    async fn led_to(&self, url: Url) -> Result<FileAt, RenderError> {
        if lock(self.led_to).is_posted || !matches!(url.scheme(), "http" | "https") {
            return Ok(FileAt::Nowhere);
        }
        // What a profile holds, or the caller has given, is not the page's to take along.
        let cookies = if self.request.in_profile {
            Vec::new()
        } else {
            let urls = json!({ "urls": [url.as_str()] });
            let cookies =
                self.tab.process.cdp.send_as::<Cookies>(Network::GetCookies::NAME, Some(&self.tab.session), urls);
            let cookies = cookies.by(self.deadline).await?.cookies.into_iter();
            cookies
                .filter(|cookie| !self.own.has_cookie(&cookie.name, &cookie.value))
                .map(Cookie::into_set_cookie)
                .collect()
        };
        Ok(FileAt::Led(Box::new(LedFile { url, cookies })))
    }
}

#[derive(Deserialize)]
struct Cookies {
    cookies: Vec<Cookie>,
}

#[derive(Deserialize)]
struct Cookie {
    name: String,
    value: String,
    secure: bool,
}

impl Cookie {
    /// As a site at its address would set it.
    fn into_set_cookie(self) -> String {
        format!("{}={}; Path=/{}", self.name, self.value, if self.secure { "; Secure" } else { "" })
    }
}
