//! Everything a worker asks of the outside world over HTTP: pages fetched without a browser ([`HttpFetcher`]), posts
//! to webhooks ([`Poster`]), and the proxy that browsers and users' code are forced through ([`EgressProxy`]).
//!
//! All of them reach only what [`weir_shared::guard::AddressGuard`] allows, and connect to the very addresses it
//! judged. No other crate of the worker may open a connection to a target itself.

mod ads;
mod caller;
mod content_type;
mod cookies;
mod decode;
mod error;
mod headers;
mod http;
mod pools;
mod post;
mod proxy;
mod resolver;
mod stream;
mod tls;
mod trust;
mod upstream;

pub use self::ads::{AdHosts, AdListError};
pub use self::caller::CallerHeaders;
pub use self::content_type::media_type;
pub use self::error::FetchError;
pub use self::http::{FetchConfig, FetchRequest, Fetched, HttpFetcher};
pub use self::pools::{Chosen, ProxyKind, ProxyPools};
pub use self::post::{PostError, PostRequest, Poster};
pub use self::proxy::{EgressDoor, EgressMetrics, EgressOptions, EgressProxy, HostFilter, refusal_in};
pub use self::stream::{Decoded, Opened, gunzip};
pub use self::upstream::ProxyUrl;
