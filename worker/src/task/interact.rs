//! A browser for one action of an agent: it opens on a page that was scraped, works on what the model wants in words, and is
//! closed. What it does there is done for good, so it is never done again: when nobody knows what came of it, the model is
//! told so.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use weir_shared::clock::Stopwatch;
use weir_shared::domain::reach::Reach;
use weir_shared::domain::session::{CreateSession, EndReason, SessionKind};
use weir_shared::domain::task::StepKind;
use weir_shared::guests::Urgency;
use weir_shared::ids::SessionId;
use weir_shared::llm::{Spent, TokenMeter};
use weir_shared::store::StoreResult;
use weir_shared::store::sessions::{self, NewSession, NotPlaced};
use weir_shared::store::work::tasks::{self, NewStep, StepEnd};
use weir_shared::texts::counted;

use super::journal::{Done, Halt, Journal, Passing, Step, cut};
use super::page::Page;
use crate::agent::{Home, Keep};
use crate::sessions::Sessions;

/// How long the browser may be used, and lives at most.
const WORKING: Duration = Duration::from_secs(240);
const TTL: i64 = 300;
/// How long a browser is waited for while others have them all, and how often it is looked for.
const FREE_WAIT: Duration = Duration::from_secs(60);
const FREE_LOOK: Duration = Duration::from_secs(1);
/// What is told of the page that it ended on, and of the answer, bytes.
const SNAPSHOT: usize = 6_000;
const OUTPUT: usize = 6_000;

/// Works on `task` in a browser on `page`, and says what came of it.
pub(super) async fn run(
    journal: &Journal,
    turn: usize,
    page: &Page,
    task: &str,
    reach: &Reach,
) -> Result<String, Halt> {
    let key = format!("turn/{turn}/interact");
    let step = Step {
        key: &key,
        kind: StepKind::Interact,
        says: json!({ "url": page.asked, "page": page.id, "task": task }),
        credits: 0,
        repeats: false,
        lost: Spent::default(),
    };
    let outcome = journal.step(step, work(journal, &key, page, task, reach)).await?;
    if outcome.get("unknown").is_some() {
        let steps = kept(journal, &key).await?;
        return Ok(format!(
            "Unknown: the browser was lost while it worked on this ({steps} of its actions had begun). Some or all of it may \
             have been done. It is not done again by itself: look first, and do again only what surely was not done."
        ));
    }
    Ok(match outcome["error"].as_str() {
        Some(why) => format!("Not done: {why}"),
        None => format!(
            "{}\nThe page at the end ({}):\n{}",
            outcome["said"].as_str().unwrap_or_default(),
            outcome["url"].as_str().unwrap_or_default(),
            outcome["snapshot"].as_str().unwrap_or_default()
        ),
    })
}

/// Actions of the browser that were written down.
async fn kept(journal: &Journal, key: &str) -> Result<usize, Halt> {
    let rows = tasks::steps(&journal.context.process.db, journal.task.job).await?;
    let below = format!("{key}/");
    Ok(rows.iter().filter(|row| row.key.starts_with(&below)).count())
}

/// Closes the browser, also where the task is broken off, and be it while the browser opens.
struct Close {
    sessions: Arc<Sessions>,
    id: SessionId,
    armed: bool,
}

impl Close {
    async fn now(mut self) {
        self.armed = false;
        self.sessions.close(self.id, EndReason::Deleted).await;
    }
}

impl Drop for Close {
    fn drop(&mut self) {
        if self.armed {
            let (sessions, id) = (Arc::clone(&self.sessions), self.id);
            tokio::spawn(async move { sessions.close(id, EndReason::Deleted).await });
        }
    }
}

async fn work(journal: &Journal, key: &str, page: &Page, task: &str, reach: &Reach) -> Result<Done, Passing> {
    let failed = |why: String| Ok(Done::of(json!({ "error": why })));
    let process = &journal.context.process;
    let Some(sessions) = process.sessions() else { return failed("there is no browser here".to_owned()) };
    let Some(model) = process.asker((journal.task.team, Urgency::Background)) else {
        return failed("there is no language model".to_owned());
    };
    let id = match place_when_free(journal, page).await {
        Ok(Ok(id)) => id,
        Ok(Err(refusal)) => return failed(refused(&refusal)),
        Err(error) => return failed(format!("the database: {error}")),
    };
    let close = Close { sessions: Arc::clone(&sessions), id, armed: true };
    if let Err(error) = sessions.open(id, None).await {
        return failed(format!("the browser did not open: {error}"));
    }
    let Some(session) = sessions.find(id) else { return failed("the browser is gone".to_owned()) };
    let meter = TokenMeter::default();
    let keep = keeper(journal, key);
    let home = Home::of_task(reach);
    let came = session.prompt_within(&model, task, WORKING, (home, &meter, Some(&*keep))).await;
    close.now().await;
    let billed = match sessions::load(&process.db, id).await {
        Ok(row) => row.map_or(0, |row| row.credits),
        Err(_) => 0,
    };
    let outcome = match came {
        Some(Ok(done)) => {
            process.metrics.agent_steps.inc_by(done.steps.len() as u64);
            let steps = serde_json::to_value(&done.steps).unwrap_or_default();
            let said = match (&done.output, &done.error) {
                (Some(output), None) => format!("Done: {output}"),
                (Some(output), Some(error)) => format!("Not done. {error} {output}"),
                (None, Some(error)) => format!("Not done. {error}"),
                (None, None) => "Nothing was said.".to_owned(),
            };
            let last = steps.as_array().and_then(|steps| steps.last());
            let url = last.map_or(Value::Null, |step| step["saw"]["url"].clone());
            json!({
                "said": cut(&said, OUTPUT), "url": url, "success": done.success,
                "snapshot": cut(done.result.as_deref().unwrap_or_default(), SNAPSHOT),
                "actions": steps.as_array().into_iter().flatten().map(|step| step["action"].clone()).collect::<Vec<_>>(),
            })
        }
        Some(Err(error)) => json!({ "error": error.to_string() }),
        None => json!({ "unknown": true }),
    };
    // The tokens are in the rows of the browser's own steps.
    Ok(Done { billed, ..Done::of(outcome) })
}

/// Places a session here, as soon as there is room for it.
async fn place_when_free(journal: &Journal, page: &Page) -> StoreResult<Result<SessionId, NotPlaced>> {
    let began = Stopwatch::start();
    loop {
        match place(journal, page).await? {
            Err(NotPlaced::Full | NotPlaced::TooMany { .. } | NotPlaced::Away) if began.elapsed() < FREE_WAIT => {
                tokio::time::sleep(FREE_LOOK).await;
            }
            placed => return Ok(placed),
        }
    }
}

async fn place(journal: &Journal, page: &Page) -> StoreResult<Result<SessionId, NotPlaced>> {
    let process = &journal.context.process;
    let request = CreateSession {
        ttl: TTL,
        activity_ttl: TTL,
        stream_web_view: true,
        profile: None,
        block_ads: journal.options.block_ads,
        location: journal.options.location.clone(),
        warning: None,
    };
    let new = NewSession {
        team: journal.task.team,
        key: journal.task.key,
        kind: SessionKind::Interact,
        page: Some(page.id),
        request: &request,
        default_limit: process.settings.limits.team_sessions,
        metered: process.settings.limits.metered,
        avoid: &[],
        only: Some(journal.context.id),
    };
    let mut tx = process.db.begin().await?;
    let placed = sessions::create(&mut tx, &new, process.db.now()).await?;
    if placed.is_ok() {
        tx.commit().await?;
    }
    Ok(placed.map(|placed| placed.id))
}

fn refused(refusal: &NotPlaced) -> String {
    match refusal {
        NotPlaced::TooMany { limit } => {
            format!("the team has had its {} open for {} s", counted(*limit, "browser"), FREE_WAIT.as_secs())
        }
        NotPlaced::Short { need, left } => format!("a browser needs {}, and {left} are left", counted(*need, "credit")),
        NotPlaced::Full => format!("every browser here has been taken for {} s", FREE_WAIT.as_secs()),
        _ => "no browser can be had here".to_owned(),
    }
}

/// Writes each answer of the browser's model down before anything comes of it.
fn keeper(journal: &Journal, key: &str) -> Box<Keep> {
    let (context, task, key) = (Arc::clone(&journal.context), journal.task.clone(), key.to_owned());
    let base = journal.reserve(100);
    Box::new(move |number, said, spent| {
        let (context, task, key) = (Arc::clone(&context), task.clone(), format!("{key}/{number}"));
        async move {
            let db = &context.process.db;
            let says = json!({ "asks": "action", "about": { "step": number } }).to_string();
            let step = NewStep { key: &key, number: base + number as i64, kind: StepKind::Model, says };
            let metrics = &context.process.metrics.model_tokens;
            metrics.with_label_values(&["sent"]).inc_by(spent.sent.unsigned_abs());
            metrics.with_label_values(&["received"]).inc_by(spent.received.unsigned_abs());
            let end = StepEnd { outcome: said.to_string(), spent, ..StepEnd::default() };
            let begun = tasks::begin_step(db, &task, &step, db.now()).await;
            matches!(begun, Ok(Some(_))) && matches!(tasks::end_step(db, &task, &key, &end, db.now()).await, Ok(true))
        }
        .boxed()
    })
}
