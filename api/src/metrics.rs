//! Figures of this process for Prometheus, each App with its own registry.

use std::time::Duration;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use weir_shared::domain::session::SessionState;
use weir_shared::store::sessions::SessionCounts;
use weir_shared::store::work::nodes::Condition;
use weir_shared::store::work::queue_depth::QueueStats;
use weir_shared::time::Timestamp;

/// Counters of the HTTP side, and gauges read from the database when somebody asks.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    latency: HistogramVec,
    /// WebSockets open now.
    pub sockets: IntGauge,
    /// Direct scrapes waiting for their page.
    pub waiting: IntGauge,
    session_opens: IntCounterVec,
    session_open_seconds: Histogram,
    executions: IntCounterVec,
    sessions: IntGaugeVec,
    session_slots: IntGauge,
    without_browser: IntGauge,
    queued: IntGauge,
    running: IntGauge,
    jobs: IntGauge,
    oldest: IntGauge,
    webhooks_waiting: IntGauge,
    webhooks_dead: IntGauge,
}

impl Metrics {
    /// Registers every figure.
    ///
    /// # Errors
    /// When a name is not valid or taken: a mistake in this file.
    pub fn new() -> anyhow::Result<Self> {
        let registry = Registry::new();
        let gauge = |name: &str, help: &str| -> anyhow::Result<IntGauge> {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let requests = IntCounterVec::new(
            Opts::new("weir_http_requests_total", "Requests answered, by route, method and status"),
            &["route", "method", "status"],
        )?;
        let buckets =
            vec![0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];
        let latency = HistogramVec::new(
            HistogramOpts::new("weir_http_request_seconds", "Time to answer, by route").buckets(buckets.clone()),
            &["route"],
        )?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(latency.clone()))?;
        let session_opens = IntCounterVec::new(
            Opts::new("weir_session_opens_total", "Browser sessions asked for, by outcome"),
            &["outcome"],
        )?;
        let session_open_seconds = Histogram::with_opts(
            HistogramOpts::new("weir_session_open_seconds", "Time until a browser session is open").buckets(buckets),
        )?;
        let executions = IntCounterVec::new(
            Opts::new("weir_executions_total", "Code run in browser sessions, by language and outcome"),
            &["language", "outcome"],
        )?;
        let sessions = IntGaugeVec::new(Opts::new("weir_sessions", "Live browser sessions, by state"), &["state"])?;
        registry.register(Box::new(session_opens.clone()))?;
        registry.register(Box::new(session_open_seconds.clone()))?;
        registry.register(Box::new(executions.clone()))?;
        registry.register(Box::new(sessions.clone()))?;
        Ok(Self {
            sockets: gauge("weir_websockets_open", "WebSockets open now")?,
            waiting: gauge("weir_scrapes_waiting", "Direct scrapes waiting for their page")?,
            queued: gauge("weir_queue_pages_waiting", "Pages not claimed yet")?,
            running: gauge("weir_queue_pages_running", "Pages in work")?,
            jobs: gauge("weir_queue_jobs_waiting", "Jobs with pages not claimed yet")?,
            oldest: gauge("weir_queue_oldest_milliseconds", "Age of the oldest job with waiting pages")?,
            webhooks_waiting: gauge("weir_webhooks_waiting", "Webhook deliveries still to be made")?,
            webhooks_dead: gauge("weir_webhooks_dead", "Webhook deliveries given up")?,
            session_slots: gauge("weir_session_slots", "Browser sessions that live workers can hold")?,
            without_browser: gauge("weir_workers_without_browser", "Live workers that can start no browser for pages")?,
            registry,
            requests,
            latency,
            session_opens,
            session_open_seconds,
            executions,
            sessions,
        })
    }

    /// Counts an answered request.
    pub fn observe(&self, route: &str, method: &str, status: u16, took: Duration) {
        let mut digits = [0_u8; 3];
        let status = status_text(status, &mut digits);
        self.requests.with_label_values(&[route, method, status]).inc();
        self.latency.with_label_values(&[route]).observe(took.as_secs_f64());
    }

    /// Counts a browser session that was opened.
    pub fn session_opened(&self, took: Duration) {
        self.session_opens.with_label_values(&["opened"]).inc();
        self.session_open_seconds.observe(took.as_secs_f64());
    }

    /// Counts one that was not: `refused` before a worker was asked, or `failed`.
    pub fn session_not_opened(&self, outcome: &str) {
        self.session_opens.with_label_values(&[outcome]).inc();
    }

    /// Counts code that was run: `ok`, `failed`, `killed`, or `error` when it got no answer.
    pub fn executed(&self, language: &str, outcome: &str) {
        self.executions.with_label_values(&[language, outcome]).inc();
    }

    /// Takes over what the database says of browser sessions.
    pub fn set_sessions(&self, counts: &SessionCounts) {
        use SessionState::{Active, Closing, Opening};
        for (state, count) in [(Opening, counts.opening), (Active, counts.active), (Closing, counts.closing)] {
            self.sessions.with_label_values(&[state.as_str()]).set(count);
        }
        self.session_slots.set(counts.slots);
    }

    /// Takes over what live workers say of themselves.
    pub fn set_conditions(&self, conditions: &[Condition]) {
        let without = conditions.iter().filter(|one| one.browser_problem.is_some()).count();
        self.without_browser.set(i64::try_from(without).unwrap_or(i64::MAX));
    }

    /// Takes over what the database says of the queue and of webhooks.
    pub fn set_store(&self, queue: &QueueStats, webhooks: (i64, i64), now: Timestamp) {
        self.queued.set(queue.queued);
        self.running.set(queue.running);
        self.jobs.set(queue.jobs);
        self.oldest.set(queue.oldest.map_or(0, |oldest| now.ms_since(oldest)));
        self.webhooks_waiting.set(webhooks.0);
        self.webhooks_dead.set(webhooks.1);
    }

    /// The text of `GET /metrics`.
    ///
    /// # Errors
    /// When a figure cannot be written as text.
    pub fn text(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

/// A status as three digits, without an allocation.
fn status_text(status: u16, digits: &mut [u8; 3]) -> &str {
    for (i, power) in [100, 10, 1].into_iter().enumerate() {
        digits[i] = b'0' + (status / power % 10) as u8;
    }
    std::str::from_utf8(digits).unwrap_or("000")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_request_is_counted_by_route_and_status() {
        let metrics = Metrics::new().unwrap();
        metrics.observe("/v2/scrape", "POST", 408, Duration::from_millis(3));
        let text = metrics.text().unwrap();
        let line = r#"weir_http_requests_total{method="POST",route="/v2/scrape",status="408"} 1"#;
        assert!(text.contains(line), "{text}");
    }
}
