//! `PATCH /v2/monitor/{id}` (wire 24): any field of a monitor, and whether it is paused. A check that runs goes on as it
//! began.

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use weir_shared::domain::describe::Reading;
use weir_shared::domain::scrape_request::parse_monitor_change;
use weir_shared::domain::target::{RequestContext, without_user};
use weir_shared::ids::MonitorId;
use weir_shared::store::monitors::{self, MonitorRow, Settings};

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
    let text = "Changes what the body names; null takes away goal, webhook or notification. A target with an id that the \
        monitor has goes on with that one's history, and so does one without an id that watches some of the same. Paused \
        monitors are not looked at.";
    let read = |body: &Value| parse_monitor_change(body, RequestContext::ANYWHERE).map(Reading::of);
    Operation::new(Group::Monitor, "updateMonitor", "Change a monitor", text)
        .body(
            "MonitorChange",
            read,
            vec![
                ("Another name", json!({"name": "Prices"})),
                ("Pause it", json!({"status": "paused"})),
                ("Look every hour", json!({"schedule": {"text": "hourly"}, "status": "active"})),
            ],
        )
        .answer::<Body<Monitor>>("The monitor.")
        .errors(&[403, 404])
}

/// Handles the request.
///
/// # Errors
/// As for a new monitor; 404 for one that the team does not have.
pub async fn handle(app: AppData, request: HttpRequest, id: Path<String>, payload: Payload) -> ApiResult<HttpResponse> {
    let caller = app.authorize(&request, Bucket::Status).await?;
    let id: MonitorId = extract::path_id(&id)?;
    let read = |body: &Value| app.parse(|context| parse_monitor_change(body, context));
    let (mut asked, _room) = extract::json(&app, &caller, &request, payload, read).await?;

    let mut tx = app.db.begin().await?;
    let row = monitors::lock(&mut tx, caller.team_id(), id).await?.ok_or_else(super::not_found)?;
    let mut spec = row.spec()?;
    let news = News {
        targets: asked.targets.is_some(),
        aims: asked.targets.is_some() || asked.goal.is_some() || asked.judge.is_some(),
        // What was said before holds.
        judge: asked.judge.or(Some(spec.judge)),
    };
    if let Some(mut targets) = asked.targets.take() {
        super::keep_users(&mut targets, &spec.targets);
        super::name_targets(&mut targets, &spec.targets);
        spec.targets = targets;
    }
    if let Some(goal) = asked.goal.clone() {
        // The first goal is given to be judged by; where nobody was to judge by the one before, nobody is by this.
        spec.judge = goal.is_some() && (spec.judge || spec.goal.is_none());
        spec.goal = goal;
    }
    spec.judge = asked.judge.unwrap_or(spec.judge);
    if let Some(mut webhook) = asked.webhook.clone() {
        if let (Some(webhook), Some(before)) = (&mut webhook, &spec.webhook)
            && webhook.url == without_user(&before.url)
        {
            webhook.url.clone_from(&before.url);
        }
        spec.webhook = webhook;
    }
    spec.notification = asked.notification.clone().unwrap_or(spec.notification);
    let warning = super::judge(&app, &caller, &asked, &spec, news)?;

    let now = app.db.now();
    let status = asked.status.unwrap_or(row.status);
    let timing = asked.schedule.as_ref().map_or_else(|| row.timing(), |wanted| wanted.of(id));
    let clockwork = timing.clockwork().map_err(|problem| ApiError::internal(&problem))?;
    let (mut next_due_at, runs_a_month) = Settings::due(&clockwork, status, now);
    if status == row.status && timing == row.timing() {
        // A moment that is due already stays due.
        next_due_at = row.next_due_at;
    }
    let to = Settings {
        name: asked.name.as_deref().unwrap_or(&row.name),
        status,
        timing: &timing,
        spec: &spec,
        retention_days: asked.retention_days.unwrap_or(row.retention_days),
        next_due_at,
        runs_a_month,
    };
    monitors::update(&mut tx, id, &to, now).await?;
    let is_updated = |row: MonitorRow| row.updated_at == now;
    commit(&app, tx, || async { Ok(monitors::load(&app.db, caller.team_id(), id).await?.is_some_and(is_updated)) })
        .await?;
    let row = outage::read(|| async { super::owned(&app, &caller, id).await }).await?;
    Ok(HttpResponse::Ok().json(Body { warning, ..Body::new(Monitor::of(&row)?) }))
}
