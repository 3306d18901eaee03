//! Webhook deliveries of one job: each due one is tried once, recorded, and either done, due again later, or dead.
//!
//! Redirects are not followed, the receiver has 10 s, the address rules hold as for pages. The body is built from the
//! rows at each try, so it is the same every time and stored once. Where it cannot be built now, the delivery is put off
//! and its receiver not asked; where it never can, as with a lost document, the delivery is dead. Neither touches the
//! others'.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::future::join_all;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use weir_shared::blobs::Blobs;
use weir_shared::clock::Stopwatch;
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::document_v1::shaped;
use weir_shared::domain::header_rules::may_carry;
use weir_shared::domain::job::{JobKind, WebhookEvent};
use weir_shared::domain::monitor::{CheckStatus, PageStatus};
use weir_shared::domain::target::without_user;
use weir_shared::domain::webhook::{WebhookSpec, signature};
use weir_shared::fault::FaultPoint;
use weir_shared::ids::{CheckId, DeliveryId, JobId, TeamId};
use weir_shared::queue::{self, WEBHOOK_QUEUE, Wakeup};
use weir_shared::store::accounts::teams;
use weir_shared::store::monitors::checks::{self, CheckRow};
use weir_shared::store::monitors::pages::CheckPageRow;
use weir_shared::store::work::webhooks::{self, Attempt, ClaimedDelivery};
use weir_shared::store::work::{documents, jobs, pages, tasks};
use weir_shared::store::{Db, StoreError, StoreResult, monitors};
use weir_shared::time::Timestamp;
use weir_shared::traces::{self, Side, TraceParent};

use super::job::Job;
use super::receivers::Receivers;
use crate::context::{WorkerContext, stopping};
use crate::fetch::PostRequest;

/// Jobs whose deliveries are under way at once, in all and of one team. The wake-ups that wait for that are more.
static PLACES: LazyLock<Receivers> = LazyLock::new(|| Receivers::new(64, 8));
/// How long a job's deliveries are made before other jobs of the team have their turn.
const TURN: Duration = Duration::from_secs(1);
/// Deliveries of one job under way at once.
const AT_ONCE: i64 = 16;
/// What a receiver may take (wire 7).
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a body may take to be read, and when it is looked for again.
const READING: Duration = Duration::from_secs(5);
const AGAIN_MS: i64 = 15_000;
/// A try that is not recorded by then has died with its worker: longer than reading and sending take.
const LEASE_MS: i64 = 20_000;
/// Pause between tries to record; the longest.
const RECORD_PAUSE: Duration = Duration::from_secs(2);
/// A pause up to this long is slept here instead of going through the queue, whose times are whole seconds.
const SHORT_PAUSE_MS: i64 = 1_500;

/// The job with deliveries to make.
pub struct DeliverWebhook {
    job: JobId,
}

impl Job for DeliverWebhook {
    const NAME: &'static str = "deliver_webhook";
    const QUEUE: &'static str = WEBHOOK_QUEUE;
    const AT_ONCE: usize = 512;

    fn of(wakeup: Wakeup) -> Option<Self> {
        match wakeup {
            Wakeup::Webhook { job, .. } => Some(Self { job }),
            _ => None,
        }
    }

    async fn run(self, context: Arc<WorkerContext>) -> StoreResult<()> {
        deliver(&context, self.job).await
    }
}

/// Delivers what is due, then sends a wake-up for what is due later.
async fn deliver(context: &Arc<WorkerContext>, job: JobId) -> StoreResult<()> {
    let db = &context.process.db;
    let Some(Told { team, spec, kind }) = told(db, job).await? else { return Ok(()) };
    let _place = PLACES.take(team, &spec.url, context).await?;
    let began = Stopwatch::start();
    let trace = match traces::is_on() {
        true if kind.is_none() => None,
        true => context.spec(job).await?.and_then(|spec| spec.options.trace_parent),
        false => None,
    };
    loop {
        if context.draining.is_cancelled() {
            return Err(stopping());
        }
        // A monitor may have been deleted since, or the team removed: nobody is told of it any more.
        if kind.is_none() && checks::receiver(db, job).await?.is_none() {
            return Ok(());
        }
        let Some(own) = teams::webhook_secret(db, team).await? else { return Ok(()) };
        let secret = own.or_else(|| context.process.settings.webhooks.secret.clone());
        let now = context.process.db.now();
        let mut tx = db.begin_relaxed().await?;
        if began.elapsed() > TURN {
            queue::webhook_wakeup(&mut tx, job, Duration::ZERO).await?;
            return tx.commit().await;
        }
        let lease = now.plus_ms(LEASE_MS);
        let due = webhooks::claim(&mut tx, job, now, lease, AT_ONCE).await?;
        let next = if due.is_empty() { webhooks::next_due(&mut tx, job).await? } else { None };
        if let Some(at) = next.filter(|at| at.ms_since(now) > SHORT_PAUSE_MS) {
            queue::webhook_wakeup(&mut tx, job, Duration::from_millis(at.ms_since(now) as u64)).await?;
        }
        tx.commit().await?;
        if due.is_empty() {
            match next {
                Some(at) if at.ms_since(now) <= SHORT_PAUSE_MS => {
                    let pause = Duration::from_millis(at.ms_since(now).max(5) as u64);
                    tokio::time::sleep(pause).await;
                    continue;
                }
                _ => return Ok(()),
            }
        }
        db.faults().reach(FaultPoint::BeforePost)?;
        let tries = due.iter().map(|delivery| attempt(context, kind, &spec, secret.as_deref(), delivery, trace));
        let tried: Vec<Tried> = join_all(tries).await;
        db.faults().reach(FaultPoint::AfterPost)?;
        let tried: Vec<(&ClaimedDelivery, Tried)> = due.iter().zip(tried).collect();
        if let Err(error) = record(db, &tried).await {
            tracing::warn!(%error, job.id = %job, "tries of webhooks cannot be recorded together; each is recorded alone");
            for one in &tried {
                record_alone(db, one, lease).await?;
            }
        }
    }
}

/// Whom deliveries go to.
struct Told {
    team: TeamId,
    spec: WebhookSpec,
    /// What they tell of; `None`: a check of a monitor.
    kind: Option<JobKind>,
}

/// Who is told of a job, or of a check.
async fn told(db: &Db, job: JobId) -> StoreResult<Option<Told>> {
    if let Some(row) = jobs::load(db, job).await? {
        return Ok(row.webhook.map(|spec| Told { team: row.team_id, spec, kind: Some(row.kind) }));
    }
    let check = checks::receiver(db, job).await?;
    Ok(check.map(|(team, spec)| Told { team, spec, kind: None }))
}

/// What became of a try.
enum Tried {
    /// The receiver was asked, or never can be.
    Ended(Attempt),
    /// The body cannot be made now; the delivery is due again later.
    PutOff,
}

async fn record(db: &Db, tried: &[(&ClaimedDelivery, Tried)]) -> StoreResult<()> {
    let mut tx = db.begin().await?;
    for (delivery, tried) in tried {
        match tried {
            Tried::Ended(attempt) => webhooks::record(&mut tx, delivery, attempt, db.now()).await?,
            Tried::PutOff => webhooks::put_off(&mut tx, delivery, db.now().plus_ms(AGAIN_MS)).await?,
        }
    }
    tx.commit().await
}

/// Records one try, again and again until its lease ends: what is not recorded is sent once more.
async fn record_alone(db: &Db, tried: &(&ClaimedDelivery, Tried), lease: Timestamp) -> StoreResult<()> {
    let mut pause = Duration::from_millis(100);
    loop {
        match record(db, std::slice::from_ref(tried)).await {
            Ok(()) => return Ok(()),
            Err(error) if lease <= db.now() => return Err(error),
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(RECORD_PAUSE);
    }
}

async fn attempt(
    context: &Arc<WorkerContext>,
    kind: Option<JobKind>,
    spec: &WebhookSpec,
    secret: Option<&str>,
    delivery: &ClaimedDelivery,
    trace: Option<TraceParent>,
) -> Tried {
    let mut span = traces::below(trace, "webhook", Side::Client);
    span.word("weir.job.id", delivery.job_id);
    span.word("weir.delivery.id", delivery.id);
    span.word("weir.delivery.event", delivery.event.as_str());
    span.number("weir.delivery.attempt", delivery.attempt);
    let db = (&context.process.db, &context.process.blobs);
    let body = match tokio::time::timeout(READING, body(db, kind, spec, delivery)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error @ (StoreError::Lost(_) | StoreError::Corrupt(_)))) => {
            tracing::error!(%error, delivery.id = %delivery.id, job.id = %delivery.job_id, "a webhook delivery has no body and is dead");
            context.process.metrics.webhooks.with_label_values(&["dead"]).inc();
            let error = Some(format!("the body cannot be made: {error}"));
            return Tried::Ended(Attempt {
                at: context.process.db.now(),
                duration_ms: 0,
                status: None,
                error,
                next_at: None,
            });
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, delivery.id = %delivery.id, job.id = %delivery.job_id, "a webhook delivery waits for its body");
            return Tried::PutOff;
        }
        Err(_) => {
            tracing::warn!(delivery.id = %delivery.id, job.id = %delivery.job_id, "the body of a webhook delivery is not read in time; it waits");
            return Tried::PutOff;
        }
    };
    let headers = headers_of(spec, secret, &body);
    let at = context.process.db.now();
    let sent = context.process.poster.post(PostRequest { url: &spec.url, headers, body, patience: PATIENCE }).await;
    let (status, error) = match sent {
        Ok(status) if (200..300).contains(&status) => (Some(i64::from(status)), None),
        Ok(status) => (Some(i64::from(status)), Some(format!("the receiver answered {status}"))),
        Err(error) => (None, Some(error.to_string())),
    };
    let pauses = &context.process.settings.webhooks.retries;
    let pause = usize::try_from(delivery.retry - 1).ok().and_then(|done| pauses.get(done));
    let next_at = pause.map(|pause| context.process.db.now().plus_ms(pause.as_millis() as i64));
    let outcome = match (&error, next_at) {
        (None, _) => "delivered",
        (Some(_), Some(_)) => "retry",
        (Some(_), None) => "dead",
    };
    context.process.metrics.webhooks.with_label_values(&[outcome]).inc();
    if let Some(status) = status {
        span.number("http.response.status_code", status);
    }
    if let Some(error) = &error {
        span.fail(outcome);
        tracing::info!(delivery.id = %delivery.id, job.id = %delivery.job_id, attempt = delivery.attempt, outcome, error, "a webhook delivery failed");
    }
    Tried::Ended(Attempt { at, duration_ms: context.process.db.now().ms_since(at), status, error, next_at })
}

/// The caller's headers, and what tells the receiver that the body is ours.
fn headers_of(spec: &WebhookSpec, secret: Option<&str>, body: &[u8]) -> Vec<(String, String)> {
    // Jobs of earlier builds may have others.
    let given = spec.headers.iter().filter(|(name, _)| may_carry(name));
    let mut headers: Vec<(String, String)> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
    headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    if let Some(secret) = secret {
        let signature = signature(secret, body);
        headers.push(("X-Service-Signature".to_owned(), signature.clone()));
        headers.push(("X-Firecrawl-Signature".to_owned(), signature));
    }
    headers
}

/// The body of wire 7; `data` is spliced in as stored.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    success: bool,
    #[serde(rename = "type")]
    kind: String,
    id: JobId,
    webhook_id: DeliveryId,
    data: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    metadata: &'a Map<String, Value>,
}

async fn body(
    (db, blobs): (&Db, &Blobs),
    kind: Option<JobKind>,
    spec: &WebhookSpec,
    delivery: &ClaimedDelivery,
) -> StoreResult<Vec<u8>> {
    let Some(kind) = kind else { return body_of_check(db, spec, delivery).await };
    let prefix = match kind {
        JobKind::Scrape => "scrape",
        JobKind::Batch => "batch_scrape",
        JobKind::Crawl => "crawl",
        JobKind::Map => "map",
        JobKind::Search => "search",
        JobKind::Extract => "extract",
        JobKind::Agent => "agent",
    };
    let mut data = Vec::new();
    let mut error = None;
    if kind.is_task() {
        let (told, why) = of_task(db, kind, delivery).await?;
        data.extend(told.iter().map(serde_json::value::to_raw_value).collect::<Result<Vec<_>, _>>()?);
        error = why;
    }
    match (delivery.event, delivery.page_id) {
        (WebhookEvent::Page, Some(page)) => match documents::by_page(db, blobs, page).await? {
            Some(document) if spec.version == ApiVersion::V1 => data.push(shaped(&document.json).into_owned()),
            Some(document) => data.push(document.json),
            None => {
                let row = pages::load(db, page).await?;
                let url = row.as_ref().map(|r| r.url.clone()).unwrap_or_default();
                let text = row.and_then(|r| r.error).unwrap_or_else(|| "The page failed.".to_owned());
                let metadata = json!({"metadata": {"sourceURL": url, "scrapeId": page, "error": text}});
                data.push(serde_json::value::to_raw_value(&metadata)?);
                error = Some(text);
            }
        },
        _ if kind.is_task() => {}
        (WebhookEvent::Cancelled, _) => error = Some("The job was cancelled.".to_owned()),
        (WebhookEvent::Failed, _) => {
            let first = pages::first_failure(db, delivery.job_id).await?;
            error = Some(first.unwrap_or_else(|| "The job failed.".to_owned()));
        }
        _ => {}
    }
    let body = Body {
        success: error.is_none(),
        kind: format!("{prefix}.{}", delivery.event.as_str()),
        id: delivery.job_id,
        webhook_id: delivery.id,
        data,
        error,
        metadata: &spec.metadata,
    };
    Ok(serde_json::to_vec(&body)?)
}

/// The body of an event of a monitor (wire 24).
async fn body_of_check(db: &Db, spec: &WebhookSpec, delivery: &ClaimedDelivery) -> StoreResult<Vec<u8>> {
    let lost = || StoreError::Lost("the check is gone".to_owned());
    let check = checks::load_any(db, CheckId(delivery.job_id.0)).await?.ok_or_else(lost)?;
    let (kind, success, told) = match delivery.page_id {
        Some(page) => {
            let page = monitors::pages::load(db, page).await?.ok_or_else(lost)?;
            ("monitor.page", page.status != PageStatus::Error, told_of_page(&check, &page)?)
        }
        None => {
            let summary = check.summary();
            let told = json!({"monitorId": check.monitor_id, "checkId": check.id, "status": check.status,
                "summary": {"totalPages": summary.total(), "same": summary.same, "changed": summary.changed,
                    "new": summary.new, "removed": summary.removed, "error": summary.error}});
            ("monitor.check.completed", check.status == CheckStatus::Completed, told)
        }
    };
    let body = Body {
        success,
        kind: kind.to_owned(),
        id: delivery.job_id,
        webhook_id: delivery.id,
        error: told["error"].as_str().map(str::to_owned),
        data: vec![serde_json::value::to_raw_value(&told)?],
        metadata: &spec.metadata,
    };
    Ok(serde_json::to_vec(&body)?)
}

/// What is told of a page of a check.
fn told_of_page(check: &CheckRow, page: &CheckPageRow) -> StoreResult<Value> {
    let mut told = json!({"monitorId": check.monitor_id, "checkId": check.id, "url": without_user(&page.url),
        "status": page.status, "previousScrapeId": page.previous_scrape_id, "currentScrapeId": page.current_scrape_id,
        "error": page.error});
    let detail: Value = serde_json::from_str(page.detail()?.get())?;
    if let Some(judgement) = detail.get("judgment") {
        told["isMeaningful"] = judgement["meaningful"].clone();
        told["judgment"] = judgement.clone();
    }
    if let Some(text) = detail["diff"].get("text") {
        told["diff"] = json!({ "text": text });
    }
    Ok(told)
}

/// What receivers are told of a task (wire 22, 23), and why it failed.
async fn of_task(db: &Db, kind: JobKind, delivery: &ClaimedDelivery) -> StoreResult<(Option<Value>, Option<String>)> {
    let job = jobs::load(db, delivery.job_id).await?;
    let credits = job.as_ref().map_or(0, |job| job.credits_used);
    let is_agent = kind == JobKind::Agent;
    if let (WebhookEvent::Action, Some(step)) = (delivery.event, delivery.page_id) {
        let steps = tasks::steps(db, delivery.job_id).await?;
        let Some(at) = steps.iter().position(|row| row.id == step.to_string()) else { return Ok((None, None)) };
        // What it had cost by then: the same at each try.
        let used: i64 = steps[..=at].iter().map(|row| row.credits).sum();
        let input: Value = serde_json::from_str(&steps[at].says).unwrap_or_default();
        return Ok((Some(json!({"creditsUsed": used, "action": steps[at].kind, "input": input})), None));
    }
    let outcome = tasks::load(db, delivery.job_id).await?.and_then(|task| task.outcome).unwrap_or_default();
    Ok(match delivery.event {
        WebhookEvent::Completed if is_agent => {
            let data = outcome.data.or_else(|| outcome.message.map(Value::String));
            (Some(json!({"creditsUsed": credits, "data": data})), None)
        }
        WebhookEvent::Completed => {
            let mut told = json!({"success": true, "data": outcome.data, "extractId": delivery.job_id,
                "totalUrlsScraped": outcome.pages});
            if let Some(sources) = outcome.sources {
                told["sources"] = sources;
            }
            (Some(told), None)
        }
        WebhookEvent::Failed => {
            let why = outcome.error.unwrap_or_else(|| "The job failed.".to_owned());
            (is_agent.then(|| json!({"creditsUsed": credits})), Some(why))
        }
        WebhookEvent::Cancelled => {
            (is_agent.then(|| json!({"creditsUsed": credits})), Some("The job was cancelled.".to_owned()))
        }
        _ => (None, None),
    })
}
