//! What a worker tells Prometheus.

use std::sync::atomic::Ordering;

use prometheus::core::Collector;
use prometheus::{
    Encoder, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::relay::FIGURES;

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
    /// Scrapes that the API dispatched directly, by what became of the offer (`taken`, `refused`).
    pub direct_dispatches: IntCounterVec,
    /// Page slots in use.
    pub slots_busy: IntGauge,
    /// Webhook tries, by outcome (`delivered`, `retry`, `dead`).
    pub webhooks: IntCounterVec,
    /// What was put back by the schedule, by kind (`page`, `delivery`).
    pub replays: IntCounterVec,
    /// Pages taken back from dead workers.
    pub orphans: IntGauge,
    /// Chromium processes alive and pages open in them.
    pub browsers: IntGauge,
    pub browser_pages: IntGauge,
    /// Chromium processes that died unasked.
    pub browser_crashes: IntGauge,
    /// Starts of Chromium that have failed.
    pub browser_failed_starts: IntGauge,
    /// Pages rendered in the tab of another page of their site.
    pub browser_followers: IntGauge,
    /// Requests that the browsers' egress proxy refused.
    pub egress_denied: IntGauge,
    /// Browser sessions open, and browsers that wait started for one.
    pub sessions: IntGauge,
    pub sessions_warm: IntGauge,
    /// Sessions opened, by how their browser came: `warm`, `cold`, `profile`.
    opened: IntCounterVec,
    /// Seconds until a session was open.
    pub open_seconds: Histogram,
    /// Sessions ended, by reason.
    pub sessions_ended: IntCounterVec,
    /// Runs of code in sessions, by language and outcome (`ok`, `failed`, `killed`, `error`).
    executes: IntCounterVec,
    /// Steps of the agent.
    pub agent_steps: IntCounter,
    /// Tokens that pages and tasks have cost at the language model, by direction (`sent`, `received`).
    pub model_tokens: IntCounterVec,
    /// Extractors that a language model has written, by what came of them (`learned`, `failed`).
    pub extractors: IntCounterVec,
    /// Pages whose data an extractor has read.
    pub extracted_pages: IntCounter,
    /// Pages that were parsed once more, because an extractor came in use while they waited.
    pub second_looks: IntCounter,
    /// Profiles that could not be saved.
    pub profile_failures: IntCounter,
    /// Bytes of the profiles saved.
    pub profile_bytes: IntCounter,
    /// What the relays have done; see [`crate::relay::FIGURES`].
    relay: IntGaugeVec,
}

const SECONDS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

fn registered<C: Collector + Clone + 'static>(
    registry: &Registry,
    figure: prometheus::Result<C>,
) -> prometheus::Result<C> {
    let figure = figure?;
    registry.register(Box::new(figure.clone()))?;
    Ok(figure)
}

fn seconds(registry: &Registry, name: &str, help: &str) -> prometheus::Result<Histogram> {
    registered(registry, Histogram::with_opts(HistogramOpts::new(name, help).buckets(SECONDS.to_vec())))
}

fn counter(registry: &Registry, name: &str, help: &str) -> prometheus::Result<IntCounter> {
    registered(registry, IntCounter::new(name, help))
}

fn counters(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntCounterVec> {
    registered(registry, IntCounterVec::new(Opts::new(name, help), labels))
}

fn gauge(registry: &Registry, name: &str, help: &str) -> prometheus::Result<IntGauge> {
    registered(registry, IntGauge::new(name, help))
}

impl Metrics {
    /// Registers every figure. Fails only when a name is used twice.
    pub fn new() -> anyhow::Result<Self> {
        let registry = Registry::new();
        let to = &registry;
        Ok(Self {
            pages: counters(to, "weir_pages_total", "Pages ended, by engine and outcome", &["engine", "outcome"])?,
            page_seconds: seconds(to, "weir_page_seconds", "Seconds from claim to result of a page")?,
            commit_pages: registered(
                to,
                Histogram::with_opts(
                    HistogramOpts::new("weir_commit_pages", "Pages in one commit of results")
                        .buckets(vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]),
                ),
            )?,
            commit_seconds: seconds(to, "weir_commit_seconds", "Seconds of one commit of results")?,
            claim_seconds: seconds(to, "weir_claim_seconds", "Seconds of one claim of pages")?,
            direct_dispatches: counters(
                to,
                "weir_scrapes_handed_total",
                "Scrapes handed over by the API, taken or refused",
                &["outcome"],
            )?,
            slots_busy: gauge(to, "weir_slots_busy", "Page slots in use")?,
            webhooks: counters(to, "weir_webhook_tries_total", "Webhook tries, by outcome", &["outcome"])?,
            replays: counters(
                to,
                "weir_scheduled_replays_total",
                "Failures put back into the queue by the schedule, by kind",
                &["kind"],
            )?,
            orphans: gauge(to, "weir_orphans_rescued", "Pages taken back from dead workers by this one")?,
            browsers: gauge(to, "weir_browsers", "Chromium processes alive")?,
            browser_pages: gauge(to, "weir_browser_pages", "Pages open in the scraping pool")?,
            browser_crashes: gauge(to, "weir_browser_crashes", "Chromium processes that died unasked")?,
            browser_failed_starts: gauge(to, "weir_browser_failed_starts", "Starts of Chromium that have failed")?,
            browser_followers: gauge(
                to,
                "weir_browser_followers",
                "Pages rendered in the tab of another page of their site",
            )?,
            egress_denied: gauge(to, "weir_egress_denied", "Browser requests refused by the address rules")?,
            sessions: gauge(to, "weir_sessions", "Browser sessions open")?,
            sessions_warm: gauge(to, "weir_sessions_warm", "Browsers started ahead of a session")?,
            opened: counters(
                to,
                "weir_sessions_opened_total",
                "Sessions opened, by how their browser came",
                &["start"],
            )?,
            open_seconds: seconds(to, "weir_session_open_seconds", "Seconds until a session was open")?,
            sessions_ended: counters(to, "weir_sessions_ended_total", "Sessions ended, by reason", &["reason"])?,
            executes: counters(
                to,
                "weir_executes_total",
                "Runs of code in sessions, by language and outcome",
                &["language", "outcome"],
            )?,
            agent_steps: counter(to, "weir_agent_steps_total", "Steps that the agent took in sessions")?,
            model_tokens: counters(
                to,
                "weir_model_tokens_total",
                "Tokens that pages have cost at the language model, by direction",
                &["direction"],
            )?,
            extractors: counters(
                to,
                "weir_extractors_total",
                "Extractors that the language model has written, by what came of them",
                &["result"],
            )?,
            extracted_pages: counter(to, "weir_extracted_pages_total", "Pages whose data an extractor has read")?,
            second_looks: counter(
                to,
                "weir_extractor_second_looks_total",
                "Pages that were parsed once more, because an extractor came in use while they waited",
            )?,
            profile_failures: counter(to, "weir_profile_failures_total", "Profiles that could not be saved")?,
            profile_bytes: counter(to, "weir_profile_bytes_total", "Bytes of the profiles saved")?,
            relay: {
                let options = Opts::new("weir_relay", "What passed between clients, viewers and browsers of sessions");
                registered(to, IntGaugeVec::new(options, &["what"]))?
            },
            registry,
        })
    }

    /// Counts a session that has opened.
    pub fn session_opened(&self, is_warm: bool, has_profile: bool, seconds: f64) {
        let start = if has_profile {
            "profile"
        } else if is_warm {
            "warm"
        } else {
            "cold"
        };
        self.opened.with_label_values(&[start]).inc();
        self.open_seconds.observe(seconds);
    }

    /// Counts a run of code.
    pub fn executed(&self, language: &str, outcome: &str) {
        self.executes.with_label_values(&[language, outcome]).inc();
    }

    /// The text that Prometheus reads.
    pub fn render(&self) -> Vec<u8> {
        for (what, value) in [
            ("clients", FIGURES.clients.load(Ordering::Relaxed) as u64),
            ("viewers", FIGURES.viewers.load(Ordering::Relaxed) as u64),
            ("bytes_in", FIGURES.bytes_in.load(Ordering::Relaxed)),
            ("bytes_out", FIGURES.bytes_out.load(Ordering::Relaxed)),
            ("refused", FIGURES.refused.load(Ordering::Relaxed)),
            ("frames", FIGURES.frames.load(Ordering::Relaxed)),
            ("frames_sent", FIGURES.frames_sent.load(Ordering::Relaxed)),
        ] {
            self.relay.with_label_values(&[what]).set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            tracing::error!(%error, "cannot render the metrics");
        }
        text
    }
}
