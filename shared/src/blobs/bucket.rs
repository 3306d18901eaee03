//! A bucket of an S3-compatible store, with blocking calls.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore as _, ObjectStoreExt as _, PutPayload, RetryConfig};
use tokio::runtime::{Builder, Runtime};

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
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(name);
        // An endpoint without TLS is the operator's word, as one with it.
        let endpoint =
            ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"].iter().find_map(|n| std::env::var(n).ok());
        let options = ClientOptions::new().with_timeout(REQUEST).with_connect_timeout(CONNECT);
        builder = builder.with_client_options(options);
        if let Some(endpoint) = endpoint {
            builder = builder.with_allow_http(endpoint.starts_with("http://")).with_endpoint(endpoint);
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
            let _ = sender.send(tokio::time::timeout(bound, request).await);
        });
        match answer.recv().map_err(Error::other)? {
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
