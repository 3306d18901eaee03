//! The local web site (`tests/site/testsite.py`) as a child of the test, and its control interface.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::process::{Process, free_port};
use crate::{Caller, Truth, wait_until};

/// How a site is started.
#[derive(Default)]
pub struct SiteOptions {
    /// Further loopback addresses beside 127.0.0.1, such as 127.0.0.2.
    pub more_hosts: Vec<String>,
    /// Serve TLS with a self-signed certificate too.
    pub tls: bool,
}

/// One running site on a port of its own.
pub struct FixtureSite {
    process: Process,
    folder: PathBuf,
    control: Caller,
    port: u16,
    tls_port: Option<u16>,
}

impl FixtureSite {
    pub async fn start() -> Self {
        Self::start_with(SiteOptions::default()).await
    }

    pub async fn start_with(options: SiteOptions) -> Self {
        let folder = crate::temporary("site");
        std::fs::create_dir_all(&folder).unwrap();
        let port = free_port();
        // Started hundreds of times: without a shim in front of the interpreter, and compiled once.
        let mut command = Command::new(std::env::var("WEIR_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned()));
        let compiled = crate::binary_folder().join("testsite");
        command.env("PYTHONPATH", crate::checkout().join("tests/site")).env_remove("PYTHONDONTWRITEBYTECODE");
        command.arg("-X").arg(format!("pycache_prefix={}", compiled.display())).args(["-S", "-m", "testsite"]);
        command.args(["--port", &port.to_string(), "--host", "127.0.0.1"]);
        for host in &options.more_hosts {
            command.args(["--host", host]);
        }
        let tls_port = options.tls.then(free_port);
        if let Some(tls_port) = tls_port {
            let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
            let made = Command::new("openssl")
                .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
                .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
                .arg("-out")
                .arg(&certificate)
                .arg("-keyout")
                .arg(&key)
                .output()
                .expect("openssl runs");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            command.args(["--tls-port", &tls_port.to_string()]);
            command.arg("--tls-cert").arg(certificate).arg("--tls-key").arg(key);
        }
        let mut process = Process::start("test site", command, &folder.join("log"));
        let control = Caller::new(&format!("http://127.0.0.1:{port}"), None);
        wait_until("the test site answers", || {
            assert!(process.is_running(), "the test site ended: {}", process.tail(20));
            let control = &control;
            async move {
                let request = control.request(reqwest::Method::GET, "/_ctl/stats");
                control.try_send(request).await.ok()
            }
        })
        .await;
        Self { process, folder, control, port, tls_port }
    }

    /// Ends it before the service: pages that hang end with it, and a worker that stops does not wait for them.
    pub fn end(self) {}

    /// Absolute address of a path on 127.0.0.1.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The same path through another name or address of this machine.
    pub fn url_at(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    /// The same path over TLS with a certificate that nobody trusts.
    pub fn tls_url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.tls_port.expect("started with tls"))
    }

    /// `count` addresses `prefix0 … prefixN`.
    pub fn urls(&self, prefix: &str, count: usize) -> Vec<String> {
        (0..count).map(|n| self.url(&format!("{prefix}{n}"))).collect()
    }

    /// Requests so far for paths that begin with `prefix`, by path.
    pub async fn hits(&self, prefix: &str) -> serde_json::Map<String, Value> {
        let body = self.control.get(&format!("/_ctl/hits?prefix={prefix}")).await.ok();
        body.as_object().unwrap().clone()
    }

    /// Requests so far for paths that begin with `prefix`, together.
    pub async fn hit_count(&self, prefix: &str) -> u64 {
        self.hits(prefix).await.values().filter_map(Value::as_u64).sum()
    }

    /// When paths that begin with `prefix` were asked for, seconds, oldest first; of the site's last 1,000 requests.
    pub async fn times(&self, prefix: &str) -> Vec<f64> {
        let body = self.control.get(&format!("/_ctl/recent?prefix={prefix}")).await.ok();
        body.as_array().unwrap().iter().map(|request| request["at"].as_f64().unwrap()).collect()
    }

    /// The most requests that were open at once since the last reset.
    pub async fn most_open(&self) -> u64 {
        self.control.get("/_ctl/stats").await.ok()["max_active"].as_u64().unwrap()
    }

    /// Markers that a perfect extraction of `path` finds, and those it leaves out.
    pub async fn truth(&self, path: &str) -> Truth {
        let body = self.control.get(&format!("/_ctl/truth?path={path}")).await.ok();
        let list = |name: &str| -> Vec<String> {
            let items = body[name].as_array().unwrap_or_else(|| panic!("no truth for {path}: {body}"));
            items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
        };
        Truth { main: list("main"), boilerplate: list("boilerplate") }
    }

    /// The data that a page of `/lesson/` holds.
    pub async fn data(&self, path: &str) -> Value {
        self.control.get(&format!("/_ctl/truth?path={path}")).await.ok()
    }

    /// From now on pages below `key` are those of this version.
    pub async fn change(&self, key: &str, version: u32) {
        self.control.post(&format!("/_ctl/change/{key}?v={version}"), &json!({})).await.ok();
    }

    /// Address of the webhook receiver `name`.
    pub fn webhook_url(&self, name: &str) -> String {
        self.url(&format!("/webhook/{name}"))
    }

    /// Says how the receiver `name` behaves (keys in tests/site/README.md).
    pub async fn webhook_behaves(&self, name: &str, settings: Value) {
        let request = self.control.request(reqwest::Method::PUT, &format!("/_ctl/webhook/{name}"));
        self.control.send(request.json(&settings)).await.ok();
    }

    /// The deliveries that `name` received, in order. Each has `body` (text), `headers`, `answered`, `at`.
    pub async fn deliveries(&self, name: &str) -> Vec<Value> {
        let body = self.control.get(&format!("/_ctl/webhook/{name}")).await.ok();
        body["deliveries"].as_array().unwrap().clone()
    }

    /// The bodies of the deliveries that `name` received, parsed.
    pub async fn events(&self, name: &str) -> Vec<Value> {
        let parse = |delivery: Value| serde_json::from_str(delivery["body"].as_str().unwrap()).unwrap();
        self.deliveries(name).await.into_iter().map(parse).collect()
    }

    /// Serves a file as `/files/{name}`, and returns its address.
    pub async fn serve_file(&self, name: &str, media_type: &str, file: Vec<u8>) -> String {
        let path = format!("/_ctl/file/{name}?type={media_type}");
        let request = self.control.request(reqwest::Method::PUT, &path);
        self.control.send(request.body(file)).await.ok();
        self.url(&format!("/files/{name}"))
    }

    /// What robots.txt is answered with from now on: 200 is the file.
    pub async fn answer_robots_with(&self, status: u16) {
        self.control.post(&format!("/_ctl/robots?status={status}"), &json!({})).await.ok();
    }

    /// Forgets every count and state of the site.
    pub async fn reset(&self) {
        self.control.post("/_ctl/reset", &json!({})).await.ok();
    }
}

impl Drop for FixtureSite {
    fn drop(&mut self) {
        self.process.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
