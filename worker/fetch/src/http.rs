//! Fetches one page without a browser: redirects by hand, every hop judged, bodies bounded.
//!
//! The clients are built once and pool their connections; what belongs to one fetch (cookies,
//! credentials, deadline) lives in that fetch only. A pooled connection leads to an address that was
//! judged when it was made. Address literals skip DNS and with it the resolver, so each hop's URL is
//! checked before it is sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Request, Response, Version};
use tokio::time::Instant;
use url::Url;
use weir_shared::clock::{self, Stopwatch};
use weir_shared::domain::scrape::Certificates;
use weir_shared::domain::site_rules::SiteRules;
use weir_shared::guard::AddressGuard;
use weir_shared::retry_after;

use super::caller::CallerHeaders;
use super::content_type;
use super::cookies::Jar;
use super::decode::Collector;
use super::error::{FetchError, is_missing_close_notify, is_stale_connection};
use super::headers;
use super::resolver::{GuardedResolver, ProxiedResolver};
use super::stream::Opened;
use super::tls;
use super::trust::Untrusted;
use super::upstream::ProxyUrl;

/// Clients kept for upstream proxies; each has a pool of its own.
const MAX_PROXY_CLIENTS: usize = 64;

/// Body of a redirect read to its end so that the connection can be used again, bytes. Longer ones
/// cost less as a closed connection.
const MAX_REDIRECT_BODY: u64 = 64 * 1024;

/// Coded input undone without a pause, bytes.
const DECODE_SLICE: usize = 16 * 1024;

/// Longest head of an answer over HTTP/2, bytes, as much as browsers take. The library's own bound is 16 KiB, which policies
/// and cookies of some sites exceed; over HTTP/1 it takes more.
pub(super) const MAX_HEAD: u32 = 256 * 1024;

/// A pooled connection found closed shows it at once; a later break is the site's doing.
const STALE_WITHIN: Duration = Duration::from_secs(2);

/// Limits and habits of a fetcher.
#[derive(Debug, Clone)]
pub struct FetchConfig {
    /// Most bytes read from the wire for one body. Default 50 MiB.
    pub max_wire: usize,
    /// Most bytes of one body after its content codings are undone. Default 50 MiB.
    pub max_body: usize,
    /// Most redirects followed. Default 20.
    pub max_redirects: u32,
    /// Longest time to make one connection, TLS included. Default 10 s.
    pub connect_timeout: Duration,
    /// How long an unused connection stays open. Default 20 s.
    pub idle_timeout: Duration,
    /// Unused connections kept for one host. Default 32.
    pub idle_per_host: usize,
    /// `User-Agent` unless the caller sets one.
    pub desktop_user_agent: String,
    /// `User-Agent` of mobile fetches unless the caller sets one.
    pub mobile_user_agent: String,
}

impl Default for FetchConfig {
    fn default() -> Self {
        let chrome = |system: &str, suffix: &str| {
            format!(
                "Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 {suffix}Safari/537.36"
            )
        };
        Self {
            max_wire: 50 * 1024 * 1024,
            max_body: 50 * 1024 * 1024,
            max_redirects: 20,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(20),
            idle_per_host: 32,
            desktop_user_agent: chrome("X11; Linux x86_64", ""),
            mobile_user_agent: chrome("Linux; Android 10; K", "Mobile "),
        }
    }
}

/// What to fetch, and how.
#[derive(Debug, Clone)]
pub struct FetchRequest<'a> {
    pub url: &'a Url,
    /// The caller's own headers; they override ours where they may go.
    pub headers: &'a CallerHeaders,
    /// `Accept-Language` from the wanted location; absent: `en-US,en;q=0.9`.
    pub accept_language: Option<String>,
    /// Ask as a phone.
    pub mobile: bool,
    /// Which certificates are good enough.
    pub certificates: Certificates,
    /// End of the page's time, for the whole chain and its body.
    pub deadline: Instant,
    /// Upstream proxy to go through.
    pub proxy: Option<&'a ProxyUrl>,
    /// Sites that are not asked, redirects included.
    pub sites: &'a SiteRules,
}

/// An answer, whatever its status.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Where the chain ended, without credentials; a fragment is carried along as browsers do.
    pub url: Url,
    pub status: u16,
    /// The header as sent; of several lines all, with commas.
    pub content_type: Option<String>,
    /// The charset in it, as written, without quotes.
    pub http_charset: Option<String>,
    /// When the site wants to be asked again, if it says so.
    pub retry_after: Option<Duration>,
    /// Where the site leads readers on from here, and after how long: the `Refresh` header as sent.
    pub refresh: Option<String>,
    /// With its content codings undone.
    pub body: Bytes,
    /// A content coding broke off: `body` is the readable part.
    pub incomplete: bool,
    /// Every site of the chain that was asked over TLS has shown a certificate that verifies.
    pub is_trusted: bool,
}

impl Fetched {
    /// What the body is called: see [`content_type::media_type`].
    pub fn media_type(&self) -> Option<String> {
        content_type::media_type(self.content_type.as_deref()?)
    }
}

/// Fetches pages. A clone shares the connections.
#[derive(Clone)]
pub struct HttpFetcher {
    inner: Arc<Inner>,
}

struct Inner {
    guard: AddressGuard,
    config: FetchConfig,
    desktop: HeaderValue,
    mobile: HeaderValue,
    verified: Client,
    unverified: Client,
    untrusted: Untrusted,
    /// By proxy and whether any certificate will do.
    proxied: Mutex<HashMap<(ProxyUrl, bool), Client>>,
}

impl HttpFetcher {
    /// Builds the clients and, when the process has none yet, installs the TLS provider. Fails when
    /// the system's root certificates cannot be read or a user agent cannot be a header value.
    pub fn new(guard: AddressGuard, config: FetchConfig) -> anyhow::Result<Self> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Fails when another thread has installed it already, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let user_agent = |text: &str| HeaderValue::from_str(text).context("user agent cannot be a header value");
        let direct = |skip_tls| {
            let resolver = GuardedResolver(guard.clone());
            client_builder(&config, skip_tls)?.no_proxy().dns_resolver(resolver).build().context("HTTP client")
        };
        Ok(Self {
            inner: Arc::new(Inner {
                desktop: user_agent(&config.desktop_user_agent)?,
                mobile: user_agent(&config.mobile_user_agent)?,
                verified: direct(false)?,
                unverified: direct(true)?,
                untrusted: Untrusted::default(),
                proxied: Mutex::new(HashMap::new()),
                guard,
                config,
            }),
        })
    }

    /// Fetches a page: follows redirects, undoes content codings, keeps cookies along the chain. Any
    /// status is an answer. Fails as [`FetchError`] says; never later than the deadline.
    pub async fn fetch(&self, request: FetchRequest<'_>) -> Result<Fetched, FetchError> {
        self.fetch_with(request, &[]).await
    }

    /// The same for who has been on the site before: `cookies` were set for the address, each as a `Set-Cookie` header has it.
    pub async fn fetch_with(&self, request: FetchRequest<'_>, cookies: &[String]) -> Result<Fetched, FetchError> {
        let cookies: Vec<HeaderValue> = cookies.iter().filter_map(|cookie| cookie.parse().ok()).collect();
        let mut jar = Jar::default();
        jar.store(request.url, cookies.iter(), 0);
        match tokio::time::timeout_at(request.deadline, self.inner.follow(&request, jar)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(FetchError::Timeout),
        }
    }

    /// Whether a page at `url` may be asked for at all, before a proxy is asked for it.
    ///
    /// # Errors
    /// [`FetchError::Blocked`], [`FetchError::Dns`] and the like; no connection is made.
    pub async fn check(&self, url: &Url) -> Result<(), FetchError> {
        let guard = &self.inner.guard;
        guard.check_url(url).map_err(|error| FetchError::from_guard(error, host(url)))?;
        let target = guard.resolve(host(url), url.port_or_known_default().unwrap_or(0)).await;
        target.map(drop).map_err(|error| FetchError::from_guard(error, host(url)))
    }

    /// The same up to the head of the last answer; its body is then read piece by piece, however long it is. The
    /// deadline holds for the body too.
    pub async fn open(&self, request: FetchRequest<'_>) -> Result<Opened, FetchError> {
        match tokio::time::timeout_at(request.deadline, self.inner.arrive(&request, Jar::default())).await {
            Ok(arrived) => Opened::new(arrived?, &request),
            Err(_) => Err(FetchError::Timeout),
        }
    }
}

/// The end of a redirect chain, its body still to come.
pub(super) struct Arrived {
    pub url: Url,
    pub response: Response,
    /// See [`Fetched::is_trusted`].
    pub is_trusted: bool,
}

impl Inner {
    async fn follow(&self, request: &FetchRequest<'_>, jar: Jar) -> Result<Fetched, FetchError> {
        let arrived = self.arrive(request, jar).await?;
        self.read(arrived, request.proxy.is_some()).await
    }

    async fn arrive(&self, request: &FetchRequest<'_>, mut jar: Jar) -> Result<Arrived, FetchError> {
        let mut url = request.url.clone();
        let mut headers = self.headers(request, &url)?;
        let mut is_trusted = true;
        let mut been_at: Vec<(Url, Option<String>)> = Vec::new();
        let mut redirects = 0;
        // What the caller's address says of it goes to the whole origin while the chain is there, as in browsers.
        let home = url.origin();
        let own_credentials = take_credentials(&mut url);
        loop {
            // What a redirect's target says of itself is the site's and not the caller's.
            let of_hop = take_credentials(&mut url);
            let of_caller = own_credentials.clone().filter(|_| of_hop.is_none() && url.origin() == home);
            self.guard.check_url(&url).map_err(|error| FetchError::from_guard(error, host(&url)))?;
            if !request.sites.allows_document(&url) {
                return Err(FetchError::SiteRefused { host: host(&url).to_owned() });
            }
            if request.proxy.is_some() {
                // The proxy resolves for itself; a target that means something inner to us is refused here.
                let target = self.guard.resolve(host(&url), url.port_or_known_default().unwrap_or(0)).await;
                target.map_err(|error| FetchError::from_guard(error, host(&url)))?;
            }
            let mut hop_headers = headers.clone();
            let has_secrets = of_caller.is_some() || request.headers.has_secrets_for(&url);
            if let Some(credentials) = of_hop.or(of_caller) {
                hop_headers.entry(header::AUTHORIZATION).or_insert(credentials);
            }
            let cookie = jar.header(&url);
            if let Some(cookie) = &cookie {
                add_cookie(&mut hop_headers, cookie);
            }
            let (response, is_verified) = self.hop(request, &url, hop_headers, has_secrets).await?;
            is_trusted &= is_verified;
            if response.headers().contains_key(header::SET_COOKIE) {
                let now = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
                jar.store(
                    &url,
                    response.headers().get_all(header::SET_COOKIE).iter(),
                    now.try_into().unwrap_or(i64::MAX),
                );
            }
            let Some(next) = redirect_target(&url, &response)? else {
                return Ok(Arrived { url, response, is_trusted });
            };
            redirects += 1;
            if redirects > self.config.max_redirects {
                return Err(FetchError::TooManyRedirects { limit: self.config.max_redirects });
            }
            // The same URL with another cookie is progress: sites set one and come back.
            been_at.push((url.clone(), cookie));
            if been_at.contains(&(next.clone(), jar.header(&next))) {
                return Err(FetchError::RedirectLoop);
            }
            drain(response).await;
            if url.origin() != next.origin() {
                headers = self.headers(request, &next)?;
            }
            url = next;
        }
    }

    /// Headers for the origin of `url`.
    fn headers(&self, request: &FetchRequest<'_>, url: &Url) -> Result<HeaderMap, FetchError> {
        let user_agent = if request.mobile { &self.mobile } else { &self.desktop };
        headers::build(user_agent.clone(), request.accept_language.as_deref(), request.headers.for_url(url))
    }

    /// Sends one hop. A certificate that does not verify is found out before anything is sent, and accepted only where the
    /// request does so. With the answer, whether it came from who the URL says.
    async fn hop(
        &self,
        request: &FetchRequest<'_>,
        url: &Url,
        headers: HeaderMap,
        has_secrets: bool,
    ) -> Result<(Response, bool), FetchError> {
        let is_proxied = request.proxy.is_some();
        let accepts_any = url.scheme() == "https" && request.certificates.allow_untrusted(has_secrets);
        if accepts_any && self.untrusted.holds(url, clock::instant()) {
            let response = send(&self.client(request, true)?, url, headers, is_proxied).await?;
            return Ok((response, false));
        }
        let again = accepts_any.then(|| headers.clone());
        let error = match send(&self.client(request, false)?, url, headers, is_proxied).await {
            Ok(response) => return Ok((response, true)),
            Err(error) => error,
        };
        match (error, again) {
            (FetchError::Tls { .. }, Some(headers)) => {
                let response = send(&self.client(request, true)?, url, headers, is_proxied).await?;
                self.untrusted.note(url, clock::instant());
                Ok((response, false))
            }
            (FetchError::Tls { host, reason }, None) if request.certificates != Certificates::Trusted => {
                Err(FetchError::Untrusted { host, reason })
            }
            (error, _) => Err(error),
        }
    }

    async fn read(&self, arrived: Arrived, is_proxied: bool) -> Result<Fetched, FetchError> {
        let Arrived { url, mut response, is_trusted } = arrived;
        let status = response.status().as_u16();
        let ends_by_close = ends_by_close(&response);
        let announced = response.content_length();
        let head = std::mem::take(response.headers_mut());
        let codings = head.get_all(header::CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        let body_error = |error| FetchError::from_body(error, host(&url));
        let mut body =
            Collector::new(codings, announced, self.config.max_wire, self.config.max_body).map_err(body_error)?;
        loop {
            match response.chunk().await {
                Ok(Some(mut chunk)) => {
                    // A little input can unpack to a lot: other tasks get their turn in between.
                    while body.is_coded() && chunk.len() > DECODE_SLICE {
                        body.push(chunk.split_to(DECODE_SLICE)).map_err(body_error)?;
                        tokio::task::yield_now().await;
                    }
                    body.push(chunk).map_err(body_error)?;
                }
                Ok(None) => break,
                Err(error) if ends_by_close && is_missing_close_notify(&error) => break,
                Err(error) => {
                    return Err(FetchError::from_reqwest(&error, host(&url), url.scheme() == "https", is_proxied));
                }
            }
        }
        // HTTP/2 may end a stream early without an error; HTTP/1 has been checked by the library.
        let is_bodiless = matches!(status, 204 | 304);
        if !is_bodiless && announced.is_some_and(|length| body.wire() < length) {
            return Err(FetchError::Cut { host: host(&url).to_owned() });
        }
        let body = body.finish().map_err(body_error)?;
        let content_type = content_type::of(&head);
        Ok(Fetched {
            http_charset: content_type.as_deref().and_then(content_type::charset),
            content_type,
            retry_after: retry_after::asked(&head),
            refresh: head.get(header::REFRESH).map(text),
            url,
            status,
            body: body.bytes,
            incomplete: body.incomplete,
            is_trusted,
        })
    }

    /// The client of the request's way out. `skip_tls`: one that takes any certificate.
    fn client(&self, request: &FetchRequest<'_>, skip_tls: bool) -> Result<Client, FetchError> {
        let Some(proxy) = request.proxy else {
            return Ok(if skip_tls { &self.unverified } else { &self.verified }.clone());
        };
        let mut clients = self.proxied.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (proxy.clone(), skip_tls);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let client = self.proxy_client(proxy, skip_tls).map_err(|error| {
            tracing::error!(proxy = %proxy, %error, "no HTTP client for the upstream proxy");
            FetchError::Internal
        })?;
        if clients.len() >= MAX_PROXY_CLIENTS {
            clients.clear();
        }
        clients.insert(key, client.clone());
        Ok(client)
    }

    fn proxy_client(&self, proxy: &ProxyUrl, skip_tls: bool) -> anyhow::Result<Client> {
        let proxy_host = proxy.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let client = client_builder(&self.config, skip_tls)?
            .proxy(reqwest::Proxy::all(proxy.url().as_str())?)
            .dns_resolver(ProxiedResolver { guard: self.guard.clone(), proxy_host });
        Ok(client.build()?)
    }
}

/// What all clients have in common. Content codings are left to [`super::decode`], which counts both
/// sides of them; redirects and cookies are handled here.
fn client_builder(config: &FetchConfig, skip_tls: bool) -> anyhow::Result<reqwest::ClientBuilder> {
    let builder = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .referer(false)
        .connect_timeout(config.connect_timeout)
        .pool_idle_timeout(config.idle_timeout)
        .pool_max_idle_per_host(config.idle_per_host)
        .http1_max_headers(256)
        .http2_max_header_list_size(MAX_HEAD)
        .http1_ignore_invalid_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true);
    Ok(match skip_tls {
        true => builder.tls_danger_accept_invalid_certs(true),
        false => builder.tls_backend_preconfigured(tls::http_config().context("TLS")?),
    })
}

/// Sends one hop. A pooled connection that the site had closed meanwhile costs one more try.
async fn send(client: &Client, url: &Url, headers: HeaderMap, is_proxied: bool) -> Result<Response, FetchError> {
    let started = Stopwatch::start();
    let mut request = Request::new(Method::GET, url.clone());
    *request.headers_mut() = headers;
    let again = request.try_clone();
    let error = match client.execute(request).await {
        Ok(response) => return Ok(response),
        Err(error) => error,
    };
    let error = match again {
        Some(again) if is_stale_connection(&error) && started.elapsed() < STALE_WITHIN => {
            match client.execute(again).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            }
        }
        _ => error,
    };
    Err(FetchError::from_reqwest(&error, host(url), url.scheme() == "https", is_proxied))
}

/// Where an answer redirects to; `None` when it is the end of the chain. A `Location` that is not a URL
/// ends it too, as in browsers; one with another scheme is an error.
fn redirect_target(url: &Url, response: &Response) -> Result<Option<Url>, FetchError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(header::LOCATION) else { return Ok(None) };
    let Ok(mut next) = url.join(&String::from_utf8_lossy(location.as_bytes())) else { return Ok(None) };
    if !matches!(next.scheme(), "http" | "https") {
        return Err(FetchError::BadRedirect);
    }
    if next.fragment().is_none() {
        next.set_fragment(url.fragment());
    }
    Ok(Some(next))
}

/// Reads the short body of a redirect so that its connection goes back to the pool.
async fn drain(mut response: Response) {
    if response.content_length().is_some_and(|length| length > MAX_REDIRECT_BODY) {
        return;
    }
    let mut left = MAX_REDIRECT_BODY;
    let rest = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            left = left.saturating_sub(chunk.len() as u64);
            if left == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_millis(250), rest).await;
}

/// Takes `user:password@` out of a URL; it becomes an `Authorization` header as in browsers.
fn take_credentials(url: &mut Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let decode = |part: &str| percent_decode_str(part).collect::<Vec<u8>>();
    let mut pair = decode(url.username());
    pair.push(b':');
    pair.extend(decode(url.password().unwrap_or_default()));
    // Neither can fail for a URL that has credentials.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Adds the jar's cookies behind those the caller gave.
fn add_cookie(headers: &mut HeaderMap, cookie: &str) {
    let joined = match headers.get(header::COOKIE) {
        Some(given) => [given.as_bytes(), b"; ", cookie.as_bytes()].concat(),
        None => cookie.as_bytes().to_vec(),
    };
    if let Ok(value) = HeaderValue::from_bytes(&joined) {
        headers.insert(header::COOKIE, value);
    }
}

/// Whether the end of the connection is the only end that the body has.
pub(super) fn ends_by_close(response: &Response) -> bool {
    response.content_length().is_none()
        && !response.headers().contains_key(header::TRANSFER_ENCODING)
        && response.version() < Version::HTTP_2
}

pub(super) fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

pub(super) fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use weir_shared::error_code::ErrorCode;

    /// Answers each request by `script`, given the request's head; `None` closes without an answer.
    /// Counts connections.
    async fn site(script: fn(&str) -> Option<String>) -> (u16, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = connections.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let (mut seen, mut part) = (String::new(), [0; 4096]);
                    loop {
                        while !seen.contains("\r\n\r\n") {
                            match stream.read(&mut part).await {
                                // A TLS greeting: answer as a plain server does.
                                Ok(1..) if seen.is_empty() && part[0] == 0x16 => {
                                    return stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
                                }
                                Ok(read @ 1..) => seen.push_str(&String::from_utf8_lossy(&part[..read])),
                                _ => return,
                            }
                        }
                        let Some(answer) = script(&seen) else { return };
                        stream.write_all(answer.as_bytes()).await.unwrap();
                        if answer.contains("close") {
                            return;
                        }
                        seen.clear();
                    }
                });
            }
        });
        (port, connections)
    }

    fn ok(body: &str) -> Option<String> {
        Some(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
    }

    fn redirect(to: &str, more: &str) -> Option<String> {
        Some(format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 4\r\n{more}\r\ngone"))
    }

    fn fetcher(config: FetchConfig) -> HttpFetcher {
        let hosts = HashMap::from([
            ("a.test".to_owned(), "127.0.0.1".parse().unwrap()),
            ("b.test".to_owned(), "127.0.0.1".parse().unwrap()),
            ("inner.test".to_owned(), "10.0.0.1".parse().unwrap()),
        ]);
        HttpFetcher::new(AddressGuard::new(vec!["127.0.0.1/32".parse().unwrap()], hosts), config).unwrap()
    }

    async fn fetch_with(url: &str, headers: &[(&str, &str)], config: FetchConfig) -> Result<Fetched, FetchError> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let headers = CallerHeaders::new(Some(url), &headers);
        let url = Url::parse(url).unwrap();
        fetcher(config).fetch(request(&url, &headers)).await
    }

    fn request<'a>(url: &'a Url, headers: &'a CallerHeaders) -> FetchRequest<'a> {
        FetchRequest {
            url,
            headers,
            accept_language: None,
            mobile: false,
            certificates: Certificates::Trusted,
            deadline: clock::deadline(Duration::from_secs(30)),
            proxy: None,
            sites: SiteRules::none(),
        }
    }

    async fn fetch(url: &str) -> Result<Fetched, FetchError> {
        fetch_with(url, &[], FetchConfig::default()).await
    }

    #[tokio::test]
    async fn an_address_that_no_request_can_be_written_for_is_told_as_such() {
        let (port, _) = site(|_| redirect(&format!("/?{}", "a".repeat(70_000)), "")).await;
        for url in [format!("http://a.test:{port}/"), format!("http://a{{b}}.test:{port}/")] {
            let error = fetch(&url).await.unwrap_err();
            assert!(matches!(error, FetchError::BadAddress { .. }), "{url}: {error:?}");
            assert_eq!(error.code(), ErrorCode::Site);
            assert!(!error.is_retryable());
        }
    }

    #[tokio::test]
    async fn a_type_that_is_said_in_several_lines_is_the_last_one() {
        let (port, _) = site(|_| {
            let head = "Content-Type: text/plain; charset=latin1\r\nContent-Type: text/html; charset=utf-8\r\n\
                Content-Type: text/html";
            Some(format!("HTTP/1.1 200 OK\r\n{head}\r\nContent-Length: 0\r\n\r\n"))
        })
        .await;
        let url = Url::parse(&format!("http://a.test:{port}/")).unwrap();
        let headers = CallerHeaders::default();
        let fetcher = fetcher(FetchConfig::default());
        let fetched = fetcher.fetch(request(&url, &headers)).await.unwrap();
        assert_eq!(fetched.media_type().as_deref(), Some("text/html"));
        assert_eq!(fetched.http_charset.as_deref(), Some("utf-8"));
        let opened = fetcher.open(request(&url, &headers)).await.unwrap();
        assert_eq!(opened.media_type(), fetched.media_type());
        assert_eq!(opened.content_type, fetched.content_type);
    }

    #[tokio::test]
    async fn connections_are_used_again_across_fetches_and_redirects() {
        let (port, connections) =
            site(|head| if head.starts_with("GET /r ") { redirect("/", "") } else { ok("hello") }).await;
        let fetcher = fetcher(FetchConfig::default());
        for path in ["", "r", "r", ""] {
            let url = Url::parse(&format!("http://a.test:{port}/{path}")).unwrap();
            let fetched = fetcher.fetch(request(&url, &CallerHeaders::default())).await.unwrap();
            assert_eq!((fetched.body.as_ref(), fetched.status), (&b"hello"[..], 200));
        }
        assert_eq!(connections.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_callers_headers_stay_with_the_origin_it_named() {
        let (port, _) = site(|head| {
            let host =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
            let port = host.as_deref().and_then(|host| host.split(':').nth(1)).unwrap_or_default().to_owned();
            match head.split(' ').nth(1).unwrap() {
                "/same" => redirect("/show", ""),
                "/other" => redirect(&format!("http://b.test:{port}/show"), ""),
                "/back" => redirect(&format!("http://b.test:{port}/home"), ""),
                "/home" => redirect(&format!("http://a.test:{port}/show"), ""),
                _ => ok(head),
            }
        })
        .await;
        let given =
            [("Authorization", "s3cret"), ("Cookie", "s3cret=1"), ("X-Vault-Token", "s3cret"), ("X-Own", "s3cret")];
        let named = given.into_iter().chain([("User-Agent", "Mine/1"), ("Accept-Language", "xx")]).collect::<Vec<_>>();
        for (path, secrets) in [("same", 4), ("other", 0), ("back", 4)] {
            let url = format!("http://a.test:{port}/{path}");
            let fetched = fetch_with(&url, &named, FetchConfig::default()).await.unwrap();
            let seen = String::from_utf8_lossy(&fetched.body).into_owned();
            assert_eq!(seen.matches("s3cret").count(), secrets, "{path}: {seen}");
            assert!(seen.contains("Mine/1") && seen.contains("xx"), "{seen}");
            assert!(fetched.is_trusted, "nothing was to be verified");
        }
    }

    #[tokio::test]
    async fn user_information_becomes_a_header_and_leaves_the_url() {
        let (port, _) = site(ok).await;
        let fetched = fetch(&format!("http://al%69ce:w%3Ax@a.test:{port}/#part")).await.unwrap();
        assert!(String::from_utf8_lossy(&fetched.body).contains(&format!("Basic {}", BASE64.encode("alice:w:x"))));
        assert_eq!(fetched.url.as_str(), format!("http://a.test:{port}/#part"));
    }

    #[tokio::test]
    async fn user_information_goes_along_within_its_origin_and_nowhere_else() {
        let (port, _) = site(|head| {
            let is_known = head.contains(&format!("Basic {}", BASE64.encode("alice:pw")));
            let port =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
            let port = port.as_deref().and_then(|host| host.split(':').nth(1)).unwrap_or_default().to_owned();
            match (head.split(' ').nth(1).unwrap(), is_known) {
                ("/dir", true) => redirect("/dir/", ""),
                ("/away", true) => redirect(&format!("http://b.test:{port}/between"), ""),
                ("/between", false) => redirect(&format!("http://a.test:{port}/dir/"), ""),
                ("/out", true) => redirect(&format!("http://b.test:{port}/end"), ""),
                ("/others", true) => redirect(&format!("http://bob:other@a.test:{port}/dir/"), ""),
                (path, true) => ok(&format!("{path} knows alice")),
                (path, false) => ok(&format!("{path} knows nobody")),
            }
        })
        .await;
        for (path, expected) in [
            ("/dir", "/dir/ knows alice"),
            ("/away", "/dir/ knows alice"),
            ("/out", "/end knows nobody"),
            ("/others", "/dir/ knows nobody"),
        ] {
            let fetched = fetch(&format!("http://alice:pw@a.test:{port}{path}")).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&fetched.body), expected, "{path}");
            assert!(fetched.url.username().is_empty() && fetched.url.password().is_none(), "{}", fetched.url);
        }
    }

    #[tokio::test]
    async fn cookies_of_a_hop_go_to_the_next_hops_and_nowhere_else() {
        let (port, _) = site(|head| match (head.split(' ').nth(1).unwrap(), head.contains("cookie: gate=1")) {
            ("/gate", false) => redirect("/gate", "Set-Cookie: gate=1; HttpOnly\r\nSet-Cookie: deep=1; Path=/deep\r\n"),
            _ => ok(head),
        })
        .await;
        let fetcher = fetcher(FetchConfig::default());
        let url = Url::parse(&format!("http://a.test:{port}/gate")).unwrap();
        let fetched = fetcher.fetch(request(&url, &CallerHeaders::default())).await.unwrap();
        let seen = String::from_utf8_lossy(&fetched.body).into_owned();
        assert!(seen.contains("gate=1") && !seen.contains("deep"), "a redirect to itself with a cookie is no loop");
        let url = Url::parse(&format!("http://a.test:{port}/")).unwrap();
        let next = fetcher.fetch(request(&url, &CallerHeaders::default())).await.unwrap();
        assert!(!String::from_utf8_lossy(&next.body).contains("gate=1"));
    }

    #[tokio::test]
    async fn redirects_end_in_loops_limits_and_refusals() {
        let (port, _) = site(|head| match head.split(' ').nth(1).unwrap() {
            "/loop" => redirect("/loop2", ""),
            "/loop2" => redirect("/loop", ""),
            "/ip" => redirect("http://127.0.0.2/", ""),
            "/port" => redirect("http://127.0.0.1:6667/", ""),
            "/mapped" => redirect("http://[::ffff:10.0.0.1]/", ""),
            "/name" => redirect("http://inner.test/", ""),
            "/file" => redirect("file:///etc/passwd", ""),
            "/none" => Some("HTTP/1.1 302 Found\r\nContent-Length: 2\r\n\r\nhi".into()),
            path => redirect(&format!("{path}x"), ""),
        })
        .await;
        let at = |path: &str| format!("http://a.test:{port}/{path}");
        assert_eq!(fetch(&at("loop")).await.unwrap_err(), FetchError::RedirectLoop);
        assert_eq!(fetch(&at("more")).await.unwrap_err(), FetchError::TooManyRedirects { limit: 20 });
        for path in ["ip", "mapped", "name", "port"] {
            let error = fetch(&at(path)).await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::AddressBlocked, "{path}");
            assert!(!error.message().contains("10.0.0.1") || path == "mapped", "{}", error.message());
        }
        assert_eq!(fetch(&at("file")).await.unwrap_err(), FetchError::BadRedirect);
        let page = fetch(&at("none")).await.unwrap();
        assert_eq!((page.status, page.body.as_ref()), (302, &b"hi"[..]));
    }

    #[tokio::test]
    async fn sites_that_the_caller_has_blocked_are_refused_where_they_begin_and_where_a_redirect_leads() {
        let (port, _) =
            site(|head| if head.starts_with("GET /to ") { redirect("http://b.test/", "") } else { ok("hi") }).await;
        let sites = SiteRules { blocked: vec!["b.test".to_owned()], ..SiteRules::default() };
        let headers = CallerHeaders::default();
        for url in [format!("http://a.test:{port}/to"), format!("http://b.test:{port}/")] {
            let url = Url::parse(&url).unwrap();
            let asked = FetchRequest { sites: &sites, ..request(&url, &headers) };
            let error = fetcher(FetchConfig::default()).fetch(asked).await.unwrap_err();
            assert_eq!(
                (&error, error.code()),
                (&FetchError::SiteRefused { host: "b.test".into() }, ErrorCode::AddressBlocked)
            );
        }
    }

    /// The versions of HTTP that the next client offers within TLS.
    fn offered(listener: std::net::TcpListener) -> Vec<String> {
        let (mut tcp, _) = listener.accept().unwrap();
        let mut acceptor = rustls::server::Acceptor::default();
        let accepted = loop {
            acceptor.read_tls(&mut tcp).unwrap();
            if let Ok(Some(accepted)) = acceptor.accept() {
                break accepted;
            }
        };
        let hello = accepted.client_hello();
        hello.alpn().into_iter().flatten().map(|version| String::from_utf8_lossy(version).into_owned()).collect()
    }

    #[tokio::test]
    async fn sites_and_receivers_are_offered_both_versions_of_http() {
        let fetcher = fetcher(FetchConfig::default());
        let poster = crate::Poster::new(fetcher.inner.guard.clone()).unwrap();
        for is_post in [false, true] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("https://{}/", listener.local_addr().unwrap());
            let offered = weir_shared::blocking::run(|| offered(listener));
            if is_post {
                let (headers, body, patience) = (Vec::new(), Vec::new(), Duration::from_secs(30));
                poster.post(crate::PostRequest { url: &url, headers, body, patience }).await.unwrap_err();
            } else {
                fetcher.fetch(request(&Url::parse(&url).unwrap(), &CallerHeaders::default())).await.unwrap_err();
            }
            assert_eq!(offered.await.unwrap(), ["h2", "http/1.1"], "{is_post}");
        }
    }

    #[tokio::test]
    async fn inner_targets_are_refused_before_any_connection() {
        for url in [
            "http://127.0.0.2/",
            "http://10.0.0.1/",
            "http://inner.test/",
            "http://[::1]/",
            "http://0x7f.2/",
            "http://127.0.0.1:22/",
        ] {
            let error = fetch(url).await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::AddressBlocked, "{url}: {error:?}");
            assert!(!error.is_retryable());
        }
        assert_eq!(fetch("ftp://a.test/").await.unwrap_err(), FetchError::UnsupportedUrl);
    }

    #[tokio::test]
    async fn failures_of_a_site_have_their_own_words() {
        let (port, connections) = site(|head| match head.split(' ').nth(1).unwrap() {
            "/cut" => Some("HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nhalf".into()),
            "/garbage" => Some("this is no HTTP at all, close\r\n\r\n".into()),
            _ => None,
        })
        .await;
        let at = |path: &str| format!("http://a.test:{port}/{path}");
        assert_eq!(fetch(&at("cut")).await.unwrap_err(), FetchError::Cut { host: "a.test".into() });
        assert_eq!(fetch(&at("garbage")).await.unwrap_err(), FetchError::Protocol { host: "a.test".into() });
        let before = connections.load(Ordering::SeqCst);
        let error = fetch(&at("reset")).await.unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), (ErrorCode::Site, true), "{error:?}");
        assert_eq!(connections.load(Ordering::SeqCst), before + 2, "one more try, no more");

        let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let error = fetch(&format!("http://a.test:{unused}/")).await.unwrap_err();
        assert_eq!(error, FetchError::Connect { host: "a.test".into(), reason: "connection refused" });
        let error = fetch(&format!("https://a.test:{port}/garbage")).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Ssl, "{error:?}");
        let error = fetch("https://a..test/").await.unwrap_err();
        assert_eq!(error, FetchError::Dns { host: "a..test".into() });
    }

    #[tokio::test]
    async fn a_connection_closed_while_pooled_costs_no_failure() {
        let (port, _) = site(|_| Some("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Then: close\r\n\r\n".into())).await;
        let fetcher = fetcher(FetchConfig::default());
        let url = Url::parse(&format!("http://a.test:{port}/")).unwrap();
        for _ in 0..50 {
            fetcher.fetch(request(&url, &CallerHeaders::default())).await.unwrap();
        }
    }

    #[tokio::test]
    async fn the_deadline_holds_for_the_head_and_for_the_body() {
        let (port, _) = site(|head| match head.split(' ').nth(1).unwrap() {
            "/body" => Some("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".into()),
            _ => Some(String::new()),
        })
        .await;
        for path in ["body", "head"] {
            let url = Url::parse(&format!("http://a.test:{port}/{path}")).unwrap();
            let headers = CallerHeaders::default();
            let deadline = clock::deadline(Duration::from_millis(200));
            let fetcher = fetcher(FetchConfig::default());
            let outcome = fetcher.fetch(FetchRequest { deadline, ..request(&url, &headers) }).await;
            assert_eq!(outcome.unwrap_err(), FetchError::Timeout, "{path}");
        }
    }

    /// The client takes such heads for as long as there are any: what ends them is the deadline, and the connection with it.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_origin_that_promises_an_answer_without_end_is_left_at_the_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://a.test:{}/", listener.local_addr().unwrap().port())).unwrap();
        let left = tokio::spawn(async move {
            let (mut endless, _) = listener.accept().await.unwrap();
            // What comes before the question is no answer to it.
            let _ = endless.read(&mut [0; 1024]).await.unwrap();
            let promises = "HTTP/1.1 100 X\r\n\r\n".repeat(200);
            while endless.write_all(promises.as_bytes()).await.is_ok() {}
        });
        let headers = CallerHeaders::default();
        let deadline = clock::deadline(Duration::from_millis(200));
        let fetcher = fetcher(FetchConfig::default());
        let outcome = fetcher.fetch(FetchRequest { deadline, ..request(&url, &headers) }).await;
        assert_eq!(outcome.unwrap_err(), FetchError::Timeout);
        left.await.unwrap();
    }

    #[tokio::test]
    async fn bodies_over_a_cap_are_refused_by_word_and_by_count() {
        let (port, _) = site(|head| match head.split(' ').nth(1).unwrap() {
            "/said" => Some("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n".into()),
            _ => Some(format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", "x".repeat(5000))),
        })
        .await;
        let small = FetchConfig { max_wire: 4999, ..FetchConfig::default() };
        for path in ["said", "sent"] {
            let error = fetch_with(&format!("http://a.test:{port}/{path}"), &[], small.clone()).await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::PageTooLarge, "{path}");
        }
    }

    #[tokio::test]
    async fn a_body_that_ends_with_its_connection_is_whole() {
        let (port, _) = site(|_| Some("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwhole".into())).await;
        assert_eq!(fetch(&format!("http://a.test:{port}/")).await.unwrap().body.as_ref(), b"whole");
    }

    #[tokio::test]
    async fn an_upstream_proxy_gets_the_request_and_inner_targets_never_reach_it() {
        let (port, connections) = site(ok).await;
        let proxy: ProxyUrl = format!("http://u:p@localhost:{port}").parse().unwrap();
        let headers = CallerHeaders::default();
        let fetcher = fetcher(FetchConfig::default());
        let url = Url::parse("http://a.test/x").unwrap();
        let through = FetchRequest { proxy: Some(&proxy), ..request(&url, &headers) };
        let fetched = fetcher.fetch(through.clone()).await.unwrap();
        let seen = String::from_utf8_lossy(&fetched.body).to_lowercase();
        assert!(seen.starts_with("get http://a.test/x http/1.1"), "{seen}");
        assert!(
            seen.contains(&format!("proxy-authorization: basic {}", BASE64.encode("u:p").to_lowercase())),
            "{seen}"
        );
        for inner in ["http://10.0.0.1/", "http://inner.test/", "http://169.254.169.254/latest"] {
            let url = Url::parse(inner).unwrap();
            let error = fetcher.fetch(FetchRequest { url: &url, ..through.clone() }).await.unwrap_err();
            assert_eq!(error.code(), ErrorCode::AddressBlocked, "{inner}");
        }
        assert_eq!(connections.load(Ordering::SeqCst), 1);
    }
}
