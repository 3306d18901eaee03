//! Upstream proxies of the operator (`WEIR_PROXY_BASIC`, `WEIR_PROXY_ENHANCED`): their address, and
//! how a raw connection to a target is made through one.
//!
//! A proxy's own host is configured, not asked for by a client: it is resolved without the address
//! guard. Targets are judged by the caller before anything here is called.
//!
//! The two handshakes are ours because those of hyper-util (`Tunnel`, `SocksV5`) read an answer into a buffer of their
//! own and drop what it holds beyond the answer: a target whose first bytes come in the same packet, as those of a
//! server that speaks first do, would lose them. `SocksV5` also offers a proxy no choice of how to log in.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

use super::tls;

/// Longest answer head of a proxy to `CONNECT`, bytes.
const MAX_HEAD: u64 = 16 * 1024;

/// Address of an upstream proxy: `http`, `https`, `socks5` (targets resolved here) or `socks5h`
/// (targets resolved by the proxy), with optional credentials. Prints without them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProxyUrl {
    url: Url,
}

/// A text that does not name a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a proxy is http://, https:// or socks5://, with a host, optional user:password@ and port, and no path")]
pub struct InvalidProxyUrl;

impl FromStr for ProxyUrl {
    type Err = InvalidProxyUrl;

    fn from_str(text: &str) -> Result<Self, InvalidProxyUrl> {
        let url = Url::parse(text.trim()).map_err(|_| InvalidProxyUrl)?;
        let is_known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
        let has_host = url.host_str().is_some_and(|host| !host.is_empty());
        let is_bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        if is_known && has_host && is_bare && url.port() != Some(0) { Ok(Self { url }) } else { Err(InvalidProxyUrl) }
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.url.scheme(), self.host(), self.port())
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyUrl({self})")
    }
}

impl ProxyUrl {
    /// Whether it takes connections, within `limit`. That it does its work as well only a request can tell.
    pub async fn answers(&self, limit: Duration) -> bool {
        matches!(tokio::time::timeout(limit, connect_to(self)).await, Ok(Ok(_)))
    }

    /// The whole URL, credentials included.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Host, an IPv6 literal in brackets.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    fn port(&self) -> u16 {
        self.url.port().unwrap_or(match self.url.scheme() {
            "http" => 80,
            "https" => 443,
            _ => 1080,
        })
    }

    fn is_socks(&self) -> bool {
        self.url.scheme().starts_with("socks")
    }

    fn credentials(&self) -> Option<(String, String)> {
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let user = self.url.username();
        (!user.is_empty()).then(|| (decode(user), decode(self.url.password().unwrap_or_default())))
    }

    /// Value of `Proxy-Authorization`, if there are credentials.
    pub(super) fn basic_auth(&self) -> Option<String> {
        self.credentials().map(|(user, password)| format!("Basic {}", BASE64.encode(format!("{user}:{password}"))))
    }

    /// Whether plain HTTP requests are sent to this proxy as they are, with the whole URL.
    pub(super) fn takes_requests(&self) -> bool {
        !self.is_socks()
    }
}

/// A byte stream to a target or a proxy.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection through which a target, or a proxy, is reached.
pub(super) type BoxStream = Box<dyn Stream>;

/// Connects to the proxy itself, with TLS where its scheme asks for it.
pub(super) async fn connect_to(proxy: &ProxyUrl) -> io::Result<BoxStream> {
    let host = proxy.host().trim_start_matches('[').trim_end_matches(']');
    let tcp = TcpStream::connect((host, proxy.port())).await?;
    tcp.set_nodelay(true)?;
    if proxy.url.scheme() != "https" {
        return Ok(Box::new(tcp));
    }
    let name = rustls::pki_types::ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    Ok(Box::new(TlsConnector::from(tls_config()?).connect(name, tcp).await?))
}

/// A tunnel through the proxy to `host`:`port`. `checked` is an address the guard allowed for it; a
/// `socks5` proxy is given the address, the others the name.
pub(super) async fn tunnel(proxy: &ProxyUrl, host: &str, port: u16, checked: SocketAddr) -> io::Result<BoxStream> {
    let mut stream = BufReader::new(connect_to(proxy).await?);
    if proxy.is_socks() {
        socks5(&mut stream, proxy, host, port, checked).await?;
    } else {
        http_connect(&mut stream, proxy, host, port).await?;
    }
    Ok(Box::new(stream))
}

async fn http_connect(stream: &mut BufReader<BoxStream>, proxy: &ProxyUrl, host: &str, port: u16) -> io::Result<()> {
    let auth = proxy.basic_auth().map(|value| format!("Proxy-Authorization: {value}\r\n")).unwrap_or_default();
    let head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{auth}\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.flush().await?;
    let mut head = stream.take(MAX_HEAD);
    let mut line = Vec::new();
    head.read_until(b'\n', &mut line).await?;
    let status = line.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5)).unwrap_or_default();
    if !status.starts_with(b"2") {
        return Err(io::Error::other("the proxy refused the tunnel"));
    }
    loop {
        line.clear();
        head.read_until(b'\n', &mut line).await?;
        match line.as_slice() {
            b"\r\n" | b"\n" => return Ok(()),
            [] => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => {}
        }
    }
}

/// RFC 1928 and 1929: greeting, optional password, connect.
async fn socks5<S: Stream>(
    stream: &mut S,
    proxy: &ProxyUrl,
    host: &str,
    port: u16,
    checked: SocketAddr,
) -> io::Result<()> {
    let refused = |what: &'static str| io::Error::other(what);
    let credentials = proxy.credentials();
    stream.write_all(if credentials.is_some() { &[5, 2, 0, 2] } else { &[5, 1, 0] }).await?;
    let mut method = [0; 2];
    stream.read_exact(&mut method).await?;
    match (method, credentials) {
        ([5, 0], _) => {}
        ([5, 2], Some((user, password))) => {
            let mut message = vec![1];
            for part in [user, password] {
                message.push(u8::try_from(part.len()).map_err(|_| refused("proxy credentials are too long"))?);
                message.extend_from_slice(part.as_bytes());
            }
            stream.write_all(&message).await?;
            let mut verdict = [0; 2];
            stream.read_exact(&mut verdict).await?;
            if verdict[1] != 0 {
                return Err(refused("the proxy refused the credentials"));
            }
        }
        _ => return Err(refused("the proxy offers no way to log in")),
    }
    let mut request = vec![5, 1, 0];
    match checked {
        _ if proxy.url.scheme() == "socks5h" && !host.starts_with('[') => {
            request.push(3);
            request.push(u8::try_from(host.len()).map_err(|_| refused("the host name is too long"))?);
            request.extend_from_slice(host.as_bytes());
        }
        SocketAddr::V4(address) => {
            request.push(1);
            request.extend_from_slice(&address.ip().octets());
        }
        SocketAddr::V6(address) => {
            request.push(4);
            request.extend_from_slice(&address.ip().octets());
        }
    }
    request.extend_from_slice(&port.to_be_bytes());
    stream.write_all(&request).await?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await?;
    if answer[..2] != [5, 0] {
        return Err(refused("the proxy refused the tunnel"));
    }
    let bound = match answer[3] {
        1 => 4,
        4 => 16,
        3 => usize::from(stream.read_u8().await?),
        _ => return Err(refused("the proxy sent an unknown address type")),
    };
    let mut rest = vec![0; bound + 2];
    stream.read_exact(&mut rest).await?;
    Ok(())
}

/// TLS towards `https` proxies, built once.
fn tls_config() -> io::Result<Arc<rustls::ClientConfig>> {
    static CONFIG: OnceLock<Arc<rustls::ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let config = tls::config()?;
    Ok(CONFIG.get_or_init(|| Arc::new(config)).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_urls_are_read_and_printed_without_their_secrets() {
        for (text, printed) in [
            ("http://p.test:3128", "http://p.test:3128"),
            ("http://p.test", "http://p.test:80"),
            ("https://user:s3cret@p.test/", "https://p.test:443"),
            ("socks5://u:p@127.0.0.1", "socks5://127.0.0.1:1080"),
            ("socks5h://[::1]:9", "socks5h://[::1]:9"),
        ] {
            let proxy: ProxyUrl = text.parse().unwrap();
            assert_eq!(proxy.to_string(), printed);
            assert!(!format!("{proxy:?}").contains("s3cret"));
        }
        for text in
            ["", "p.test:80", "ftp://p.test", "http://", "http://p.test/path", "http://p.test/?q", "socks4://p.test"]
        {
            assert_eq!(text.parse::<ProxyUrl>(), Err(InvalidProxyUrl), "{text}");
        }
    }

    #[test]
    fn credentials_are_decoded() {
        let proxy: ProxyUrl = "http://us%40er:p%3Aw@p.test".parse().unwrap();
        assert_eq!(proxy.basic_auth().unwrap(), format!("Basic {}", BASE64.encode("us@er:p:w")));
    }

    async fn proxy_that(script: fn(&[u8]) -> Option<Vec<u8>>) -> ProxyUrl {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut seen = vec![0; 4096];
            loop {
                let read = stream.read(&mut seen).await.unwrap();
                if read == 0 {
                    return;
                }
                match script(&seen[..read]) {
                    Some(answer) => stream.write_all(&answer).await.unwrap(),
                    None => return,
                }
            }
        });
        format!("socks5://u:p@127.0.0.1:{port}").parse().unwrap()
    }

    #[tokio::test]
    async fn socks_is_given_the_checked_address_and_the_credentials() {
        let proxy = proxy_that(|seen| match seen {
            [5, 2, 0, 2] => Some(vec![5, 2]),
            [1, 1, b'u', 1, b'p'] => Some(vec![1, 0]),
            [5, 1, 0, 1, 8, 8, 8, 8, 1, 0xbb] => Some([&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], b"early"].concat()),
            other => panic!("unexpected {other:?}"),
        })
        .await;
        let mut stream = tunnel(&proxy, "dns.test", 443, "8.8.8.8:443".parse().unwrap()).await.unwrap();
        let mut early = [0; 5];
        stream.read_exact(&mut early).await.unwrap();
        assert_eq!(&early, b"early", "bytes behind the answer belong to the tunnel");
    }

    #[tokio::test]
    async fn http_proxies_get_connect_with_credentials() {
        let proxy =
            proxy_that(|seen| {
                let head = String::from_utf8_lossy(seen);
                assert!(head.starts_with(
                    "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nProxy-Authorization: Basic dTpw\r\n"
                ));
                Some(b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\nearly".to_vec())
            })
            .await;
        let proxy: ProxyUrl = proxy.url().as_str().replace("socks5", "http").parse().unwrap();
        let mut stream = tunnel(&proxy, "a.test", 443, "8.8.8.8:443".parse().unwrap()).await.unwrap();
        let mut early = [0; 5];
        stream.read_exact(&mut early).await.unwrap();
        assert_eq!(&early, b"early");
    }

    #[tokio::test]
    async fn a_proxy_that_refuses_is_an_error() {
        let socks = proxy_that(|_| Some(vec![5, 0xff])).await;
        assert!(tunnel(&socks, "a.test", 443, "8.8.8.8:443".parse().unwrap()).await.is_err());
        let http = proxy_that(|_| Some(b"HTTP/1.1 407 No\r\n\r\n".to_vec())).await;
        let http: ProxyUrl = http.url().as_str().replace("socks5", "http").parse().unwrap();
        assert!(tunnel(&http, "a.test", 443, "8.8.8.8:443".parse().unwrap()).await.is_err());
    }
}
