//! The end of a page's attempt: result, counts, credits, webhooks and the next tickets in one transaction, for many
//! pages at once.
//!
//! Every page is fenced by its epoch: an attempt that another claim, a cancel or a replay has overtaken changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::job::{JobStatus, WebhookEvent};
use crate::domain::webhook::WebhookSpec;
use crate::ids::{DeliveryId, JobId, PageId, TeamId};
use crate::store::signals::Signal;
use crate::store::{Db, StoreError, StoreResult, Tx, cancel, frontier, snapshots};
use crate::time::Timestamp;
use crate::{on_db, queue};

use super::end::{Finished, Outcome, Report};
use super::fast;
use super::results::{self, Results, write_results};
use super::rows::SITEMAP_IDX;

/// Counts to add to a job.
#[derive(Default)]
struct Delta {
    completed: i64,
    failed: i64,
    queued: i64,
    credits: i64,
    pages: Vec<PageId>,
    /// Page rows that came or went.
    total: i64,
    hidden: i64,
}

/// Writes the ends of many attempts in one transaction. Pages of one group should be of few teams.
pub async fn finish(db: &Db, group: &[Finished], now: Timestamp) -> StoreResult<Report> {
    if let [end] = group
        && let Some(report) = fast::finish(db, end, now).await?
    {
        return Ok(report);
    }
    let mut tx = db.begin().await?;
    let report = finish_many(&mut tx, group, now).await?;
    tx.commit().await?;
    Ok(report)
}

/// The same in a transaction that does more.
pub async fn finish_many(tx: &mut Tx, group: &[Finished], now: Timestamp) -> StoreResult<Report> {
    let mut teams: Vec<TeamId> = group.iter().map(|f| f.page.team_id).collect();
    teams.sort_unstable();
    teams.dedup();

    let moved = move_pages(tx, group, &teams, now).await?;
    teams.retain(|team| moved.iter().any(|page| page.starved && page.team_id == *team));
    let starved = teams;
    let replayed: Vec<PageId> = moved.iter().filter(|page| page.replays > 0).map(|page| page.id).collect();
    let billed = billed_before(tx, &replayed).await?;
    let written = moved.into_iter().map(|page| page.id).collect();
    let mut report = Report { written, ended: Vec::new() };
    let mut live: Vec<&Finished> = group.iter().filter(|f| report.written.contains(&f.page.id)).collect();
    write_attempts(tx, &live, now).await?;
    let settled = frontier::settle(tx, &live, now).await?;

    let mut retries: BTreeMap<TeamId, i64> = BTreeMap::new();
    let mut deltas: BTreeMap<JobId, Delta> = BTreeMap::new();
    for end in &live {
        let delta = deltas.entry(end.page.job_id).or_default();
        if settled.dropped.contains(&end.page.id) {
            delta.total -= 1;
            continue;
        }
        match &end.outcome {
            Outcome::Done { credits, .. } | Outcome::Crawled { credits, .. } => {
                delta.completed += 1;
                delta.credits += if billed.contains(&end.page.id) { 0 } else { *credits };
                delta.pages.push(end.page.id);
            }
            Outcome::Failed { credits, .. } => {
                delta.failed += 1;
                delta.credits += if billed.contains(&end.page.id) { 0 } else { *credits };
                // That a page failed is told once.
                if !replayed.contains(&end.page.id) {
                    delta.pages.push(end.page.id);
                }
            }
            // Nothing but a dropped one: its crawl is gone.
            Outcome::Blocked { .. } | Outcome::SitemapsRead { .. } => {}
            Outcome::Retry { run_at, .. } | Outcome::Postponed { run_at } => {
                delta.queued += 1;
                let pause = retries.entry(end.page.team_id).or_insert(0);
                *pause = (*pause).max(run_at.ms_since(now));
            }
            Outcome::Lost { .. } | Outcome::GivenBack => {
                delta.queued += 1;
                retries.entry(end.page.team_id).or_insert(0);
            }
        }
    }

    for (job, growth) in &settled.jobs {
        let delta = deltas.entry(*job).or_default();
        delta.total += growth.pages;
        delta.queued += growth.pages;
        delta.hidden += growth.hidden;
    }
    live.retain(|end| !settled.dropped.contains(&end.page.id));

    let mut first_seq: BTreeMap<JobId, i64> = BTreeMap::new();
    let mut grown: BTreeMap<TeamId, usize> = BTreeMap::new();
    for (job, delta) in &deltas {
        let growth = settled.jobs.get(job).filter(|growth| growth.was_idle);
        let pages = growth.map_or(0, |growth| growth.pages);
        let after = add_counts(tx, *job, delta, pages, now).await?;
        first_seq.insert(*job, after.completed - delta.completed + 1);
        if after.grown > 0 {
            *grown.entry(after.team).or_insert(0) += usize::try_from(after.grown).unwrap_or(0);
        }
        let webhook: Option<WebhookSpec> = after.webhook.as_deref().map(serde_json::from_str).transpose()?;
        // Nothing of an ended job is left to end, so it ended with these pages.
        let ended = matches!(after.status, JobStatus::Completed | JobStatus::Failed);
        if ended {
            report.ended.push(*job);
        }
        if let Some(spec) = webhook {
            queue_events(tx, &after, *job, &spec, delta, ended, now).await?;
        }
    }

    // In the order of their keys over all parts.
    let mut cached = results::cached_rows(&live).into_iter();
    for part in parts(&live) {
        let cached = cached.by_ref().take(part.len()).collect();
        write_results(tx, Results::of(part, &mut first_seq, cached), now).await?;
    }
    for end in &live {
        if let Some(snapshot) = end.outcome.document().and_then(|(document, _)| document.snapshot.as_ref()) {
            snapshots::put(tx, end.page.team_id, snapshot).await?;
        }
    }

    for team in &starved {
        const SQL: &str = "UPDATE team SET starved = FALSE WHERE id = $1";
        on_db!(tx, |conn| sqlx::query(SQL).bind(*team).execute(conn).await?.rows_affected());
        // Others wait for the place that a page has just left, also when that page itself is put off for long.
        match retries.get(team) {
            Some(pause) if *pause > 0 => queue::lane_ticket(tx, *team, Duration::ZERO).await?,
            Some(_) => {}
            None => {
                retries.insert(*team, 0);
            }
        }
    }
    for (team, pause) in retries {
        queue::lane_ticket(tx, team, Duration::from_millis(pause.max(0) as u64)).await?;
    }
    for (team, pages) in grown {
        queue::page_tickets(tx, team, pages).await?;
    }
    Ok(report)
}

/// Parts of a few sizes: each number of rows is a statement of its own, and those of these sizes stay prepared.
fn parts<T>(mut rest: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = [16, 8, 4, 2, 1].into_iter().find(|size| *size <= rest.len())?;
        let part;
        (part, rest) = rest.split_at(size);
        Some(part)
    })
}

/// A page that an attempt has moved.
#[derive(sqlx::FromRow)]
struct Moved {
    id: PageId,
    team_id: TeamId,
    /// How often it was replayed.
    replays: i64,
    /// A claim of its team was cut short by a limit.
    starved: bool,
}

/// The fenced step: locks the teams, and only attempts that are still the page's current ones move it. Returns those.
async fn move_pages(tx: &mut Tx, group: &[Finished], teams: &[TeamId], now: Timestamp) -> StoreResult<Vec<Moved>> {
    // Postgres plans a join anew each time, for it must not keep to one that it has made for a small table.
    if matches!(tx, Tx::Postgres(_)) {
        return move_part(tx, group, teams, now, group.len() <= 4).await;
    }
    let mut moved = Vec::with_capacity(group.len());
    for part in parts(group) {
        moved.append(&mut move_part(tx, part, teams, now, true).await?);
    }
    Ok(moved)
}

async fn move_part(
    tx: &mut Tx,
    group: &[Finished],
    teams: &[TeamId],
    now: Timestamp,
    is_kept: bool,
) -> StoreResult<Vec<Moved>> {
    let locks = matches!(tx, Tx::Postgres(_));
    Ok(on_db!(tx, |conn| {
        let mut update = sqlx::QueryBuilder::new(
            "WITH ended (id, epoch, state, run_at, finished_at, tried, claimed, code, error) AS (VALUES ",
        );
        for (i, end) in group.iter().enumerate() {
            let (state, run_at, tried, unclaimed, code, error) = match &end.outcome {
                Outcome::Done { .. } => ("done", None, 0, 0, None, None),
                Outcome::Failed { error, .. } if end.page.idx == SITEMAP_IDX => {
                    ("cancelled", None, 1, 0, None, Some(error.as_str()))
                }
                Outcome::Failed { code, error, .. } => ("failed", None, 1, 0, Some(*code), Some(error.as_str())),
                Outcome::Retry { run_at, .. } => ("queued", Some(*run_at), 1, 0, None, None),
                Outcome::Lost { .. } => ("queued", None, 0, 0, None, None),
                Outcome::GivenBack => ("queued", None, 0, 1, None, None),
                Outcome::Postponed { run_at } => ("queued", Some(*run_at), 0, 1, None, None),
                Outcome::Crawled { .. } => ("done", None, 0, 0, None, None),
                Outcome::Blocked { .. } | Outcome::SitemapsRead { .. } => ("cancelled", None, 0, 0, None, None),
            };
            let finished = (state != "queued").then_some(now);
            let code = code.map(|c| c.code().unwrap_or("UNKNOWN_ERROR"));
            update.push(if i == 0 { "(CAST(" } else { ", (CAST(" }).push_bind(end.page.id);
            update.push(" AS TEXT), CAST(").push_bind(end.page.epoch);
            update.push(" AS BIGINT), CAST(").push_bind(state);
            update.push(" AS TEXT), CAST(").push_bind(run_at);
            update.push(" AS BIGINT), CAST(").push_bind(finished);
            update.push(" AS BIGINT), CAST(").push_bind(tried);
            update.push(" AS BIGINT), CAST(").push_bind(unclaimed);
            update.push(" AS BIGINT), CAST(").push_bind(code);
            update.push(" AS TEXT), CAST(").push_bind(error);
            update.push(" AS TEXT))");
        }
        // SQLite holds the whole file already. A page is moved after its team is locked: it is joined to the lock.
        if locks {
            update.push("), held AS (SELECT id, starved FROM team WHERE id IN (");
            let mut ids = update.separated(", ");
            for team in teams {
                ids.push_bind(*team);
            }
            update.push(") ORDER BY id FOR NO KEY UPDATE");
        }
        update.push(
            ") UPDATE page SET state = ended.state, run_at = COALESCE(ended.run_at, page.run_at), \
             finished_at = ended.finished_at, owner = NULL, tries = page.tries + ended.tried, \
             claims = page.claims - ended.claimed, error_code = ended.code, error = ended.error FROM ended",
        );
        update.push(if locks { ", held" } else { "" });
        update.push(" WHERE page.id = ended.id AND page.epoch = ended.epoch AND page.state || '' = 'running'");
        update.push(if locks { " AND held.id = page.team_id" } else { "" });
        update.push(" RETURNING page.id, page.team_id, page.replays, ");
        update.push(if locks { "held.starved" } else { "(SELECT starved FROM team WHERE id = team_id) AS starved" });
        update.build_query_as().persistent(is_kept).fetch_all(conn).await?
    }))
}

/// Which of these pages have an entry in the ledger already: what they are billed is in their job's count too.
async fn billed_before(tx: &mut Tx, pages: &[PageId]) -> StoreResult<Vec<PageId>> {
    const SQL: &str = "SELECT COUNT(*) FROM credit_entry WHERE key = $1";
    let mut billed = Vec::new();
    for page in pages {
        let key = format!("page:{page}");
        let found: (i64,) = on_db!(tx, |conn| sqlx::query_as(SQL).bind(key).fetch_one(conn).await?);
        if found.0 > 0 {
            billed.push(*page);
        }
    }
    Ok(billed)
}

/// The history of tries that did not work.
async fn write_attempts(tx: &mut Tx, ends: &[&Finished], now: Timestamp) -> StoreResult<()> {
    const SQL: &str = "INSERT INTO page_attempt (page_id, epoch, job_id, worker, started_at, ended_at, code, error) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (page_id, epoch) DO NOTHING";
    for end in ends {
        let (code, error) = match &end.outcome {
            Outcome::Failed { code, error, .. } | Outcome::Retry { code, error, .. } => (code.code(), error.as_str()),
            Outcome::Lost { reason } => (None, *reason),
            _ => continue,
        };
        on_db!(tx, |conn| {
            sqlx::query(SQL)
                .bind(end.page.id)
                .bind(end.page.epoch)
                .bind(end.page.job_id)
                .bind(end.page.owner)
                .bind(end.page.started_at)
                .bind(now)
                .bind(code)
                .bind(error)
                .execute(conn)
                .await?
                .rows_affected()
        });
    }
    Ok(())
}

/// A job after its counts were changed.
struct After {
    team: TeamId,
    status: JobStatus,
    total: i64,
    completed: i64,
    /// Page rows that came and that nobody is on the way to.
    grown: i64,
    webhook: Option<String>,
}

/// A job ends with its last page. A batch completes even when every page failed: the failures are in its errors. A
/// crawl fails when it has nothing but failures: its start page could not be read. A scrape or map is its one page.
///
/// Postgres tells whoever waits in the same statement: the page's name where somebody waits for one page, the job's
/// otherwise.
async fn add_counts(tx: &mut Tx, job: JobId, delta: &Delta, grown: i64, now: Timestamp) -> StoreResult<After> {
    // A page that comes back to an ended (cancelled) job is not waiting any more; see `drop_late`.
    macro_rules! update {
        ($more:literal) => {
            concat!(
                "UPDATE job SET completed = completed + $2, failed = failed + $3, queued = queued + $4, \
                 due_at = CASE WHEN $4 > 0 THEN 0 ELSE due_at END, credits_used = credits_used + $5, total = total + $7, hidden = hidden - $8, \
                 status = CASE WHEN status <> 'scraping' OR completed + failed + $2 + $3 < total + $7 THEN status \
                     WHEN kind IN ('scrape', 'crawl', 'map') AND failed + $3 > 0 AND completed + $2 = 0 THEN 'failed' \
                     ELSE 'completed' END, \
                 finished_at = CASE WHEN status <> 'scraping' OR completed + failed + $2 + $3 < total + $7 \
                     THEN finished_at ELSE $6 END \
                 WHERE id = $1 RETURNING team_id, status, total, completed, webhook",
                $more
            )
        };
    }
    type Row = (TeamId, String, i64, i64, Option<String>);
    macro_rules! bound {
        ($sql:expr) => {
            sqlx::query_as($sql)
                .bind(job)
                .bind(delta.completed)
                .bind(delta.failed)
                .bind(delta.queued)
                .bind(delta.credits)
                .bind(now)
                .bind(delta.total)
                .bind(delta.hidden)
        };
    }
    tx.tell(Signal::End);
    let row: Row = match tx {
        Tx::Sqlite(tx) => bound!(update!("")).fetch_one(&mut **tx).await?,
        Tx::Postgres(tx) => {
            const SQL: &str =
                update!(", pg_notify('weir_done', CASE rank WHEN 0 THEN COALESCE($9, '') ELSE 'j:' || id END)");
            let page = delta.pages.first().map(|page| format!("p:{page}"));
            bound!(SQL).bind(page).fetch_one(&mut **tx).await?
        }
    };
    let mut after = After {
        team: row.0,
        status: row.1.parse().map_err(StoreError::Corrupt)?,
        total: row.2,
        completed: row.3,
        grown,
        webhook: row.4,
    };
    if delta.queued > 0 && after.status != JobStatus::Scraping {
        drop_late(tx, job, delta.queued, now).await?;
        after.total -= delta.queued;
    }
    Ok(after)
}

/// So many pages that came back to a job that had ended meanwhile are cancelled like those that were waiting then. When
/// those are not all marked yet, it does not matter which ones are now.
async fn drop_late(tx: &mut Tx, job: JobId, count: i64, now: Timestamp) -> StoreResult<()> {
    const JOB: &str = "UPDATE job SET total = total - $2, queued = 0, hidden = (SELECT COUNT(*) FROM page \
        WHERE job_id = $1 AND idx < 0 AND state = 'running') WHERE id = $1";
    cancel::drop_waiting(tx, job, now, count).await?;
    on_db!(tx, |conn| sqlx::query(JOB).bind(job).bind(count).execute(conn).await?.rows_affected());
    Ok(())
}

async fn queue_events(
    tx: &mut Tx,
    after: &After,
    job: JobId,
    spec: &WebhookSpec,
    delta: &Delta,
    ended: bool,
    now: Timestamp,
) -> StoreResult<()> {
    let mut events: Vec<(Option<PageId>, WebhookEvent)> = Vec::new();
    if spec.wants(WebhookEvent::Page) {
        events.extend(delta.pages.iter().map(|page| (Some(*page), WebhookEvent::Page)));
    }
    let end = if after.status == JobStatus::Failed { WebhookEvent::Failed } else { WebhookEvent::Completed };
    if ended && spec.wants(end) && !was_told(tx, job, end).await? {
        events.push((None, end));
    }
    if events.is_empty() {
        return Ok(());
    }
    for part in parts(&events) {
        on_db!(tx, |conn| {
            let mut insert = sqlx::QueryBuilder::new(
                "INSERT INTO webhook_delivery \
                 (id, team_id, job_id, page_id, event, stage, state, next_at, created_at) ",
            );
            insert.push_values(part, |mut values, (page, event)| {
                values
                    .push_bind(DeliveryId::new())
                    .push_bind(after.team)
                    .push_bind(job)
                    .push_bind(*page)
                    .push_bind(event.as_str())
                    .push_bind(event.stage())
                    .push("'waiting'")
                    .push_bind(now)
                    .push_bind(now);
            });
            insert.build().execute(conn).await?.rows_affected()
        });
    }
    queue::webhook_ticket(tx, job, Duration::ZERO).await
}

/// Whether an end of this kind was told of before: the job has then run again for pages that were replayed.
async fn was_told(tx: &mut Tx, job: JobId, end: WebhookEvent) -> StoreResult<bool> {
    const SQL: &str = "SELECT COUNT(*) FROM webhook_delivery WHERE job_id = $1 AND stage = $2 AND event = $3";
    let found: (i64,) = on_db!(tx, |conn| {
        sqlx::query_as(SQL).bind(job).bind(end.stage()).bind(end.as_str()).fetch_one(conn).await?
    });
    Ok(found.0 > 0)
}
