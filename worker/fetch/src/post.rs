//! One POST to an address that a caller named: webhook deliveries. Redirects are not followed, the answer's body is
//! not read, and the address rules hold as for pages.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::Client;
use url::Url;
use weir_shared::guard::AddressGuard;

use super::http::MAX_HEAD;
use super::resolver::GuardedResolver;
use super::tls;

/// Sends posts. A clone shares the connections.
#[derive(Clone)]
pub struct Poster {
    guard: AddressGuard,
    client: Client,
}

/// What to send.
pub struct PostRequest<'a> {
    pub url: &'a str,
    /// In this order; a later one of the same name wins.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Time for the whole exchange.
    pub patience: Duration,
}

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// Not an http or https URL.
    #[error("the address is not a valid http or https URL")]
    Url,
    /// The rules of addresses and ports refuse the receiver.
    #[error("the receiver's address or port is not allowed")]
    Blocked,
    /// No answer in time.
    #[error("the receiver did not answer within {0:?}")]
    Timeout(Duration),
    /// The connection failed or broke.
    #[error("the receiver could not be reached")]
    Connect,
}

impl Poster {
    /// Builds the client. Fails when the system's root certificates cannot be read.
    pub fn new(guard: AddressGuard) -> anyhow::Result<Self> {
        let client = Client::builder()
            .no_proxy()
            .tls_backend_preconfigured(tls::http_config().context("TLS for webhooks")?)
            .dns_resolver(GuardedResolver(guard.clone()))
            .redirect(reqwest::redirect::Policy::none())
            .user_agent("Weir-Webhook/1")
            .connect_timeout(Duration::from_secs(5))
            .pool_idle_timeout(Duration::from_secs(20))
            .http2_max_header_list_size(MAX_HEAD)
            .build()
            .context("HTTP client for webhooks")?;
        Ok(Self { guard, client })
    }

    /// Sends once. The status of the answer, whatever it is.
    pub async fn post(&self, request: PostRequest<'_>) -> Result<u16, PostError> {
        let url = Url::parse(request.url).map_err(|_| PostError::Url)?;
        self.guard.check_url(&url).map_err(|_| PostError::Blocked)?;
        let mut post = self.client.post(url).body(request.body).timeout(request.patience);
        let mut headers = reqwest::header::HeaderMap::new();
        for (name, value) in request.headers {
            // Validated when the webhook was accepted; an old row's bad header is left out.
            if let (Ok(name), Ok(value)) =
                (reqwest::header::HeaderName::try_from(name), reqwest::header::HeaderValue::try_from(value))
            {
                headers.insert(name, value);
            }
        }
        post = post.headers(headers);
        match post.send().await {
            Ok(answer) => Ok(answer.status().as_u16()),
            Err(error) if error.is_timeout() => Err(PostError::Timeout(request.patience)),
            Err(error) if blames_guard(&error) => Err(PostError::Blocked),
            Err(_) => Err(PostError::Connect),
        }
    }
}

fn blames_guard(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(current) = cause {
        if let Some(weir_shared::guard::GuardError::Blocked { .. }) = current.downcast_ref() {
            return true;
        }
        cause = current.source();
    }
    false
}
