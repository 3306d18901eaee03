//! A bucket of an S3-compatible store, with blocking calls.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io::{Error, ErrorKind, Result};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore as _, ObjectStoreExt as _, PutPayload, RetryConfig};
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// One request, its body included.
const REQUEST: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(5);
/// A call with its further tries.
const CALL: Duration = Duration::from_secs(60);
/// The same for a read: somebody waits for it.
const READ: Duration = Duration::from_secs(20);
/// A list of everything, a thousand names at a time.
const LIST: Duration = Duration::from_secs(1_800);
/// Tries after the first.
const RETRIES: usize = 4;

/// Where the store's address stands; the first that is given counts.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
/// What travels in headers.
const KEY: [&str; 2] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
const TOKEN: &str = "AWS_SESSION_TOKEN";
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// The store's address, if it is not Amazon's. What is empty is not given, and blanks around a value are none of it.
///
/// # Errors
/// Where a setting is wrong: the store's client would stumble over it with the first blob. No secret is said.
pub fn endpoint(get: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Option<Url>> {
    let given = |name: &str| Some(get(name)?.trim().to_owned()).filter(|value| !value.is_empty());
    for name in KEY.into_iter().chain([TOKEN]) {
        if given(name).is_some_and(|value| !value.bytes().all(|b| b.is_ascii_graphic())) {
            bail!("{name}: allowed are ASCII characters without spaces");
        }
    }
    for name in REGIONS {
        let is_part = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if let Some(value) = given(name).filter(|value| !value.bytes().all(is_part)) {
            bail!("{name}={value}: allowed is the name of a region such as us-east-1");
        }
    }
    match KEY.map(given) {
        [Some(_), None] => bail!("{}: {} is missing", KEY[0], KEY[1]),
        [None, Some(_)] => bail!("{}: {} is missing", KEY[1], KEY[0]),
        _ => {}
    }
    let mut counts = None;
    for name in ENDPOINTS {
        let Some(text) = given(name) else { continue };
        let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url
            .with_context(|| format!("{name}={text}: allowed is an http or https URL such as http://127.0.0.1:9000"))?;
        counts = counts.or(Some(url));
    }
    Ok(counts)
}

#[derive(Clone)]
pub struct Bucket(Arc<Inner>);

struct Inner {
    store: Arc<AmazonS3>,
    name: String,
    prefix: String,
    /// Of its own, so that calls may wait wherever they are made. `None` only while this is dropped.
    runtime: Option<Runtime>,
}

impl Bucket {
    /// A handle; nothing is asked of the bucket yet.
    pub fn open(name: &str, prefix: &str) -> anyhow::Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let endpoint = endpoint(&|name| std::env::var(name).ok())?;
        let mut builder = AmazonS3Builder::new();
        for (name, value) in std::env::vars_os() {
            if let (Some(name), Some(value)) = (name.to_str(), value.to_str().map(str::trim))
                && name.starts_with("AWS_")
                && !value.is_empty()
                && let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>()
            {
                builder = builder.with_config(key, value);
            }
        }
        let options = ClientOptions::new().with_timeout(REQUEST).with_connect_timeout(CONNECT);
        builder = builder.with_bucket_name(name).with_client_options(options);
        if let Some(endpoint) = endpoint {
            // One without TLS is the operator's word, as one with it.
            let is_plain = endpoint.scheme() == "http";
            builder = builder
                .with_allow_http(is_plain)
                .with_config(AmazonS3ConfigKey::S3Endpoint, endpoint.as_str().trim_end_matches('/'));
        }
        let retry = RetryConfig { max_retries: RETRIES, retry_timeout: CALL, ..RetryConfig::default() };
        let store = builder.with_retry(retry).build().context("WEIR_BLOBS: the bucket's settings (AWS_*)")?;
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("bucket").enable_all().build()?;
        Ok(Self(Arc::new(Inner {
            store: Arc::new(store),
            name: name.to_owned(),
            prefix: prefix.to_owned(),
            runtime: Some(runtime),
        })))
    }

    pub fn put(&self, key: &str, bytes: &[u8]) -> Result<()> {
        self.put_pieces(key, vec![bytes.to_vec().into()])
    }

    /// One blob of several pieces, which are not put together here.
    pub fn put_pieces(&self, key: &str, pieces: Vec<Bytes>) -> Result<()> {
        let (path, body) = (self.path(key), PutPayload::from_iter(pieces));
        self.call(move |store| async move { store.put(&path, body).await.map(drop) })
    }

    pub fn get(&self, key: &str) -> Result<Vec<u8>> {
        let path = self.path(key);
        self.call_within(READ, move |store| async move { Ok(store.get(&path).await?.bytes().await?.to_vec()) })
    }

    pub fn remove(&self, key: &str) -> Result<()> {
        let path = self.path(key);
        self.call(move |store| async move { store.delete(&path).await })
    }

    /// Removes everything whose key begins with `prefix`, which ends with a slash.
    pub fn remove_all(&self, prefix: &str) -> Result<()> {
        let prefix = self.path(prefix);
        self.call(move |store| async move {
            let found = store.list(Some(&prefix)).map_ok(|object| object.location).boxed();
            store.delete_stream(found).try_collect::<Vec<_>>().await.map(drop)
        })
    }

    /// Every key with its size.
    pub fn list(&self) -> Result<BTreeMap<String, u64>> {
        let prefix = Path::from(self.0.prefix.as_str());
        let below = if self.0.prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        self.call_within(LIST, move |store| async move {
            let found = store.list(Some(&prefix)).map_ok(move |object| {
                let key = object.location.as_ref().strip_prefix(&below).unwrap_or_default().to_owned();
                (key, object.size)
            });
            let is_blob = |(key, _): &(String, u64)| !key.is_empty() && !key.starts_with('.');
            Ok(found.try_collect::<Vec<_>>().await?.into_iter().filter(is_blob).collect())
        })
    }

    fn path(&self, key: &str) -> Path {
        Path::from(format!("{}/{key}", self.0.prefix))
    }

    fn call<T, F>(&self, request: impl FnOnce(Arc<AmazonS3>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        self.call_within(CALL, request)
    }

    /// Runs a request on the bucket's own thread and waits for it.
    fn call_within<T, F>(&self, bound: Duration, request: impl FnOnce(Arc<AmazonS3>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let runtime = self.0.runtime.as_ref().ok_or_else(|| Error::other("the bucket is closed"))?;
        let (sender, answer) = mpsc::sync_channel(1);
        let request = request(self.0.store.clone());
        runtime.spawn(async move {
            let request = AssertUnwindSafe(tokio::time::timeout(bound, request));
            let _ = sender.send(request.catch_unwind().await);
        });
        let Ok(answered) = answer.recv().map_err(Error::other)? else {
            return Err(Error::other(format!(
                "the client of {self} broke off: a setting AWS_* may be wrong, see the log"
            )));
        };
        match answered {
            Ok(done) => done.map_err(|error| match error {
                object_store::Error::NotFound { .. } => Error::new(ErrorKind::NotFound, error),
                other => Error::other(other),
            }),
            Err(_) => Err(Error::new(ErrorKind::TimedOut, format!("{self} did not answer in {} s", bound.as_secs()))),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // An ordinary end would wait, which async threads may not.
            runtime.shutdown_background();
        }
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.0.name, self.0.prefix)
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({self})")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_store_that_could_not_be_asked_is_told_by_its_setting() {
        let read = |pairs: &[(&str, &str)]| {
            endpoint(&|name| pairs.iter().find(|(found, _)| *found == name).map(|(_, value)| (*value).to_owned()))
        };
        let key = [("AWS_ACCESS_KEY_ID", "name\n"), ("AWS_SECRET_ACCESS_KEY", " se/cr+et= ")];
        assert_eq!(read(&key).unwrap(), None);
        assert_eq!(read(&[("AWS_ENDPOINT_URL", " "), ("AWS_REGION", "")]).unwrap(), None);
        let both =
            [("AWS_ENDPOINT_URL", "http://127.0.0.1:9000"), ("AWS_ENDPOINT_URL_S3", "https://minio.internal/\n")];
        assert_eq!(read(&both).unwrap().unwrap().as_str(), "https://minio.internal/");
        for (name, value) in [
            ("AWS_ENDPOINT_URL", "localhost:9000"),
            ("AWS_ENDPOINT_URL", "minio.internal"),
            ("AWS_ENDPOINT_URL", "http://"),
            ("AWS_ENDPOINT_URL_S3", "ftp://minio.internal"),
            ("AWS_ENDPOINT", "/minio"),
            ("AWS_REGION", "us east"),
            ("AWS_ACCESS_KEY_ID", "a name"),
            ("AWS_SECRET_ACCESS_KEY", "hidden\nword"),
            ("AWS_SESSION_TOKEN", "hidden word"),
            ("AWS_SECRET_ACCESS_KEY", "hidden"),
        ] {
            let error = read(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(name) && !error.contains("hidden"), "{name}={value}: {error}");
        }
    }

    /// What no check of settings foresees.
    #[test]
    fn a_client_that_breaks_is_an_error() {
        let bucket = Bucket::open("pages", "x").unwrap();
        let broken = bucket.call(|_| async { if true { panic!("as the client does") } else { Ok(()) } });
        assert!(broken.unwrap_err().to_string().contains("s3://pages/x broke off"));
    }
}
