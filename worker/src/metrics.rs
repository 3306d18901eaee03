//! What a worker tells Prometheus.

use prometheus::{Encoder, Histogram, HistogramOpts, IntCounterVec, IntGauge, Opts, Registry, TextEncoder};

/// The figures of one worker process.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Registry,
    /// Pages ended, by engine (`http`, `browser`, `none`) and outcome (`done`, `failed`, `retry`).
    pub pages: IntCounterVec,
    /// Seconds from claim to result.
    pub page_seconds: Histogram,
    /// Pages in one commit.
    pub commit_pages: Histogram,
    /// Seconds of one commit of results.
    pub commit_seconds: Histogram,
    /// Seconds of one claim.
    pub claim_seconds: Histogram,
    /// Page slots in use.
    pub slots_busy: IntGauge,
    /// Webhook tries, by outcome (`delivered`, `retry`, `dead`).
    pub webhooks: IntCounterVec,
    /// Pages taken back from dead workers.
    pub orphans: IntGauge,
    /// Chromium processes alive and pages open in them.
    pub browsers: IntGauge,
    pub browser_pages: IntGauge,
    /// Chromium processes that died unasked.
    pub browser_crashes: IntGauge,
    /// Requests that the browsers' egress proxy refused.
    pub egress_denied: IntGauge,
}

const SECONDS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

impl Metrics {
    /// Registers every figure. Fails only when a name is used twice.
    pub fn new() -> anyhow::Result<Self> {
        let registry = Registry::new();
        let seconds =
            |name: &str, help: &str| Histogram::with_opts(HistogramOpts::new(name, help).buckets(SECONDS.to_vec()));
        let metrics = Self {
            pages: IntCounterVec::new(
                Opts::new("weir_pages_total", "Pages ended, by engine and outcome"),
                &["engine", "outcome"],
            )?,
            page_seconds: seconds("weir_page_seconds", "Seconds from claim to result of a page")?,
            commit_pages: Histogram::with_opts(
                HistogramOpts::new("weir_commit_pages", "Pages in one commit of results")
                    .buckets(vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]),
            )?,
            commit_seconds: seconds("weir_commit_seconds", "Seconds of one commit of results")?,
            claim_seconds: seconds("weir_claim_seconds", "Seconds of one claim of pages")?,
            slots_busy: IntGauge::new("weir_slots_busy", "Page slots in use")?,
            webhooks: IntCounterVec::new(
                Opts::new("weir_webhook_tries_total", "Webhook tries, by outcome"),
                &["outcome"],
            )?,
            orphans: IntGauge::new("weir_orphans_rescued", "Pages taken back from dead workers by this one")?,
            browsers: IntGauge::new("weir_browsers", "Chromium processes alive")?,
            browser_pages: IntGauge::new("weir_browser_pages", "Pages open in the scraping pool")?,
            browser_crashes: IntGauge::new("weir_browser_crashes", "Chromium processes that died unasked")?,
            egress_denied: IntGauge::new("weir_egress_denied", "Browser requests refused by the address rules")?,
            registry,
        };
        let all: Vec<Box<dyn prometheus::core::Collector>> = vec![
            Box::new(metrics.pages.clone()),
            Box::new(metrics.page_seconds.clone()),
            Box::new(metrics.commit_pages.clone()),
            Box::new(metrics.commit_seconds.clone()),
            Box::new(metrics.claim_seconds.clone()),
            Box::new(metrics.slots_busy.clone()),
            Box::new(metrics.webhooks.clone()),
            Box::new(metrics.orphans.clone()),
            Box::new(metrics.browsers.clone()),
            Box::new(metrics.browser_pages.clone()),
            Box::new(metrics.browser_crashes.clone()),
            Box::new(metrics.egress_denied.clone()),
        ];
        for collector in all {
            metrics.registry.register(collector)?;
        }
        Ok(metrics)
    }

    /// The text that Prometheus reads.
    pub fn render(&self) -> Vec<u8> {
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "cannot render the metrics");
        }
        text
    }
}
