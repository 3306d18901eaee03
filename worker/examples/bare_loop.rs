//! What the benchmarks compare the service with: the same fetch and extraction, or the same Chromium, in one process
//! with no service and no database around. `bare_loop http|browser AT_ONCE` reads URLs from standard input and prints
//! `{"pages": n, "seconds": s}`.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use url::Url;
use weir_allocator as _;
use weir_shared::blocking;
use weir_shared::clock::{self, Stopwatch};
use weir_shared::config::Settings;
use weir_shared::domain::scrape::Certificates;
use weir_shared::domain::site_rules::SiteRules;
use weir_worker::browser::cdp::{Cdp, EventFilter};
use weir_worker::extract::{self, ExtractOptions, PageInput};
use weir_worker::fetch::{CallerHeaders, EgressProxy, FetchConfig, FetchRequest, HttpFetcher};
use weir_worker::sandbox::{BrowserSpec, Purpose, Sandbox, SandboxConfig, SandboxMode};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let kind = std::env::args().nth(1).context("bare_loop http|browser AT_ONCE < urls")?;
    let at_once: usize = std::env::args().nth(2).context("AT_ONCE is missing")?.parse()?;
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let urls = text.lines().map(Url::parse).collect::<Result<Vec<_>, _>>()?;
    let settings = Settings::from_env()?;
    let seconds = match kind.as_str() {
        "http" => http(&settings, urls.clone(), at_once).await?,
        "browser" => browser(&settings, urls.clone(), at_once).await?,
        other => anyhow::bail!("{other}: allowed is http or browser"),
    };
    println!("{}", json!({"pages": urls.len(), "seconds": seconds}));
    Ok(())
}

async fn http(settings: &Settings, urls: Vec<Url>, at_once: usize) -> anyhow::Result<f64> {
    let fetcher = HttpFetcher::new(settings.net.guard(), FetchConfig::default())?;
    let options = ExtractOptions {
        markdown: true,
        only_main_content: true,
        remove_base64_images: true,
        block_ads: true,
        ..ExtractOptions::default()
    };
    let began = Stopwatch::start();
    let results = futures_util::stream::iter(urls).map(|url| {
        let (fetcher, options) = (fetcher.clone(), options.clone());
        async move {
            let headers = CallerHeaders::default();
            let request = FetchRequest {
                url: &url,
                headers: &headers,
                accept_language: None,
                mobile: false,
                certificates: Certificates::AnyWithoutSecrets,
                deadline: clock::deadline(Duration::from_secs(60)),
                proxy: None,
                sites: SiteRules::none(),
            };
            let fetched = fetcher.fetch(request).await.map_err(|e| anyhow::anyhow!(e.message()))?;
            let made = blocking::run(move || {
                let text = extract::charset::decode(&fetched.body, fetched.http_charset.as_deref());
                extract::extract(&PageInput { url: &fetched.url, html: &text, rendered: false }, &options).markdown
            });
            made.await?.context("no markdown")
        }
    });
    let mut results = results.buffer_unordered(at_once);
    while let Some(result) = results.next().await {
        result?;
    }
    Ok(began.elapsed().as_secs_f64())
}

async fn browser(settings: &Settings, urls: Vec<Url>, at_once: usize) -> anyhow::Result<f64> {
    let egress = EgressProxy::start(settings.net.guard(), None).await?;
    let config = SandboxConfig {
        run_dirs: vec![std::env::temp_dir().join("weir-bare-loop")],
        mode: SandboxMode::Strict,
        egress: egress.door(),
        ad_free: egress.door(),
        upstreams: Vec::new(),
        allow_ports: Vec::new(),
        chromium: settings.browser.chromium.clone(),
        program: Some(std::env::current_exe()?.parent().context("no folder")?.join("../weir-worker")),
    };
    let sandbox = Sandbox::prepare(config)?;
    let dir = sandbox.session_dir("bare")?;
    let spec = BrowserSpec {
        purpose: Purpose::Pages { has_pictures: false, own_exits: 0 },
        exit: None,
        extra_flags: Vec::new(),
    };
    let chromium = sandbox.start_browser(&dir, spec).await?;
    let cdp = Arc::new(Cdp::connect_over(chromium.connect().await?, chromium.ws_path()).await?);
    let began = Stopwatch::start();
    let results = futures_util::stream::iter(urls).map(|url| {
        let cdp = Arc::clone(&cdp);
        async move { load(&cdp, &url).await }
    });
    let mut results = results.buffer_unordered(at_once);
    while let Some(result) = results.next().await {
        result?;
    }
    let seconds = began.elapsed().as_secs_f64();
    drop(results);
    chromium.kill().await;
    dir.remove().await;
    Ok(seconds)
}

/// A context and a target of its own, navigate, wait for the load event, take the document.
async fn load(cdp: &Cdp, url: &Url) -> anyhow::Result<String> {
    let by = clock::deadline(Duration::from_secs(60));
    let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned).with_context(|| format!("no {key}"));
    let context =
        cdp.send_as::<Value>("Target.createBrowserContext", None, json!({"disposeOnDetach": true})).by(by).await?;
    let context = text(&context, "browserContextId")?;
    let target = json!({"url": "javascript:void(0)", "browserContextId": context});
    let target = text(&cdp.send_as::<Value>("Target.createTarget", None, target).by(by).await?, "targetId")?;
    let attach = json!({"targetId": target, "flatten": true});
    let session = text(&cdp.send_as::<Value>("Target.attachToTarget", None, attach).by(by).await?, "sessionId")?;
    let session = session.as_str();
    let filter: EventFilter = |method| method == "Page.loadEventFired";
    let mut events = cdp.events(session, filter);
    cdp.send_as::<Value>("Page.enable", Some(session), json!({})).by(by).await?;
    cdp.send_as::<Value>("Page.navigate", Some(session), json!({"url": url.as_str()})).by(by).await?;
    events.next().await.context("the connection ended")?;
    let take = json!({"expression": "document.documentElement.outerHTML", "returnByValue": true});
    let html = cdp.send_as::<Value>("Runtime.evaluate", Some(session), take).by(by).await?;
    cdp.send_as::<Value>("Target.disposeBrowserContext", None, json!({"browserContextId": context})).by(by).await?;
    text(&html["result"], "value")
}
