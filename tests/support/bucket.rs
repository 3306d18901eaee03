//! An S3-compatible store on this machine: moto, of the Python packages that `scripts/setup --tests` installs.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use reqwest::Method;

use crate::process::{Process, free_port};
use crate::{Caller, installed, wait_until_within};

/// One store with one bucket, in memory; it ends when this is dropped.
pub struct BucketStore {
    _process: Process,
    folder: PathBuf,
    /// `http://HOST:PORT`
    pub endpoint: String,
    control: Caller,
}

impl BucketStore {
    /// The bucket's name.
    pub const NAME: &str = "pages";

    /// Starts one that listens on `host`; `None` when it is not installed.
    pub async fn start(host: &str) -> Option<Self> {
        let python = installed("venv/bin/python")?;
        let folder = crate::temporary("bucket");
        std::fs::create_dir_all(&folder).unwrap();
        let port = free_port();
        let mut command = Command::new(python);
        command.args(["-m", "moto.server", "-H", host, "-p", &port.to_string()]);
        let mut process = Process::start("bucket store", command, &folder.join("log"));
        let endpoint = format!("http://{host}:{port}");
        let control = Caller::new(&endpoint, None);
        let bucket = format!("/{}", Self::NAME);
        wait_until_within(Duration::from_secs(60), "the bucket store answers", || {
            assert!(process.is_running(), "the bucket store ended: {}", process.tail(20));
            let (control, bucket) = (&control, &bucket);
            async move {
                let answer = control.try_send(control.request(Method::PUT, bucket)).await.ok()?;
                (answer.status == 200).then_some(())
            }
        })
        .await;
        Some(Self { _process: process, folder, endpoint, control })
    }

    /// The settings of a service that keeps its blobs here.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("WEIR_BLOBS", format!("s3://{}/weir", Self::NAME)),
            ("AWS_ENDPOINT_URL", self.endpoint.clone()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "tests".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "tests".to_owned()),
        ]
    }

    /// The keys of everything in the bucket.
    pub async fn keys(&self) -> Vec<String> {
        let path = format!("/{}?list-type=2", Self::NAME);
        let answer = self.control.send(self.control.request(Method::GET, &path)).await;
        assert_eq!(answer.status, 200);
        let parts = answer.text.split("<Key>").skip(1);
        parts.filter_map(|part| Some(part.split_once("</Key>")?.0.to_owned())).collect()
    }
}

impl Drop for BucketStore {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
