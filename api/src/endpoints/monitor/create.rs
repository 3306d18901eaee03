//! `POST /v2/monitor` (wire 24): something to be looked at by a schedule.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use weir_shared::domain::describe::Reading;
use weir_shared::domain::monitor::{MonitorSpec, MonitorStatus};
use weir_shared::domain::scrape_request::{DEFAULT_RETENTION_DAYS, parse_monitor};
use weir_shared::domain::target::RequestContext;
use weir_shared::ids::MonitorId;
use weir_shared::store::monitors::{self, Settings};

use super::News;
use super::wire::{Body, Monitor};
use crate::app::AppData;
use crate::callers::limits::Bucket;
use crate::endpoints::outage::{self, commit};
use crate::error::{ApiError, ApiResult};
use crate::http::extract;
use crate::openapi::{Group, Operation};

/// What the API's document says of it.
pub fn doc() -> Operation {
    let text = "Has pages, crawls or searches looked at by a schedule: five fields of cron, or words such as `every 30 \
        minutes`, in a time zone. The first check remembers what is there; later ones tell what is new, changed, removed \
        or the same. `ignore` and `onlyIf` say which differences do not count.";
    let read = |body: &Value| parse_monitor(body, RequestContext::ANYWHERE).map(Reading::of);
    let schedule = json!({"text": "every 30 minutes"});
    let least = json!({"name": "Prices", "schedule": schedule, "targets": [{"type": "scrape", "urls": ["https://example.com"]}]});
    let crawl = json!({"type": "crawl", "url": "https://example.com/docs", "crawlOptions": {"limit": 50},
        "ignore": {"lines": ["^Updated "], "order": true}});
    let search = json!({"type": "search", "queries": ["rust release"], "searchWindow": "24h", "maxResults": 10});
    let hook = json!({"url": "https://example.com/hook", "events": ["monitor.check.completed"]});
    Operation::new(Group::Monitor, "createMonitor", "Watch pages", text)
        .body(
            "MonitorRequest",
            read,
            vec![
                ("A page", least),
                (
                    "A site every morning, with a webhook",
                    json!({"name": "Docs", "schedule": {"text": "daily at 9:00", "timezone": "Europe/Berlin"},
                        "targets": [crawl], "webhook": hook, "retentionDays": 90}),
                ),
                (
                    "A search, judged",
                    json!({"name": "Releases", "schedule": {"cron": "0 */6 * * *"}, "targets": [search],
                        "goal": "New releases of the Rust compiler"}),
                ),
            ],
        )
        .answer::<Body<Monitor>>("The monitor.")
        .errors(&[403])
}

/// Handles the request.
///
/// # Errors
/// 400 for what is wrong, 403 for a team that keeps nothing, 503 for what this installation does not have.
pub async fn handle(app: AppData, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Crawl).await?;
    let read = |body: &Value| app.parse(|context| parse_monitor(body, context));
    let (mut asked, _room) = extract::json(&app, &caller, &request, payload, read).await?;
    let mut targets = asked.targets.take().unwrap_or_default();
    super::name_targets(&mut targets, &[]);
    let goal = asked.goal.clone().flatten();
    let spec = MonitorSpec {
        targets,
        judge: asked.judge.unwrap_or(goal.is_some()),
        goal,
        webhook: asked.webhook.clone().flatten(),
        notification: asked.notification.clone().flatten(),
    };
    let warning = super::judge(&app, &caller, &asked, &spec, News { targets: true, aims: true, judge: asked.judge })?;

    let (id, now) = (MonitorId::new(), app.db.now());
    // The reader has refused a body without one.
    let wanted = asked.schedule.ok_or_else(|| ApiError::internal(&"a monitor without a schedule was read"))?;
    let timing = wanted.of(id);
    let clockwork = timing.clockwork().map_err(|problem| ApiError::internal(&problem))?;
    let (next_due_at, runs_a_month) = Settings::due(&clockwork, MonitorStatus::Active, now);
    let new = Settings {
        name: asked.name.as_deref().unwrap_or_default(),
        status: MonitorStatus::Active,
        timing: &timing,
        spec: &spec,
        retention_days: asked.retention_days.unwrap_or(DEFAULT_RETENTION_DAYS),
        next_due_at,
        runs_a_month,
    };
    let mut tx = app.db.begin().await?;
    monitors::insert(&mut tx, id, caller.team_id(), caller.key, &new, now).await?;
    commit(&app, tx, || async { Ok(monitors::load(&app.db, caller.team_id(), id).await?.is_some()) }).await?;
    let row = outage::read(|| async { super::owned(&app, &caller, id).await }).await?;
    Ok(HttpResponse::Ok().json(Body { warning, ..Body::new(Monitor::of(&row)?) }))
}
