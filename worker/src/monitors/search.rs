//! A search target of a check: its queries are asked, hits that no earlier check has met are new, and those are judged.

use std::time::Duration;

use weir_shared::clock;
use weir_shared::domain::api_version::ApiVersion;
use weir_shared::domain::monitor::{JUDGEMENT, PageStatus, Progress, SearchTarget};
use weir_shared::domain::search::{self, Query, Source};
use weir_shared::guests::Urgency;
use weir_shared::ids::{JobId, PageId, TeamId};
use weir_shared::llm::Allowance;
use weir_shared::search::{Hit, SearchError};
use weir_shared::store::monitors::pages::{self as found_pages, Detail, Found};
use weir_shared::store::work::searches::{self, NewSearch};
use weir_shared::store::{StoreResult, monitors};

use super::Monitors;
use super::collect::{Held, InHand};
use crate::reader::{Hit as Shown, Reader, Verdict};

/// Bound on all queries of a target together, and on the judgement of its hits.
const SEARCH_TIME: Duration = Duration::from_secs(30);
const JUDGE_TIME: Duration = Duration::from_secs(45);
/// The check is ours for longer than both take.
const LEASE_MS: i64 = 90_000;
const _: () = assert!(SEARCH_TIME.as_millis() + JUDGE_TIME.as_millis() < LEASE_MS as u128);
const _: () = assert!(LEASE_MS < monitors::due::LONGEST_LEASE_MS);
/// Tries of a search whose backend does not answer.
const TRIES: i64 = 3;

/// What the queries found.
struct Hits {
    /// Each address once.
    hits: Vec<Hit>,
    /// How many there were, each as often as it was found: what the search costs goes by them.
    raw: usize,
    /// What the backend could not do.
    warnings: Vec<String>,
}

impl Monitors {
    /// Makes the search, and writes down what is new of it.
    pub(super) async fn search(&self, hand: &mut InHand<'_>, n: usize) -> StoreResult<Held> {
        let process = &self.context.process;
        let monitor = monitors::load_any(&process.db, hand.check.monitor_id).await?;
        let Some(monitor) = monitor else { return Ok(Held::No) };
        let Progress { target_id, search, goal, .. } = hand.targets[n].clone();
        let Some(target) = search else {
            hand.targets[n].is_over = true;
            hand.targets[n].error =
                Some("The check was begun by another release, which knew nothing of its search.".to_owned());
            return Ok(Held::Yes);
        };
        let now = process.db.now();
        let mut tx = process.db.begin().await?;
        if hand.save(&mut tx, now.plus_ms(LEASE_MS), now).await? == Held::No {
            return Ok(Held::No);
        }
        tx.commit().await?;
        let found = match self.ask(&target, monitor.team_id).await {
            Ok(found) => found,
            Err(error) => {
                let progress = &mut hand.targets[n];
                progress.tries += 1;
                let is_final = matches!(error, SearchError::NotConfigured | SearchError::NotTaken);
                if is_final || progress.tries >= TRIES {
                    progress.is_over = true;
                    progress.error = Some(error.to_string());
                }
                return Ok(Held::Yes);
            }
        };
        let addresses = hand.addresses(n, found.hits.iter().map(|hit| hit.url.as_str()));
        let known = found_pages::known(&process.db, &addresses).await?;
        let is_new: Vec<bool> = addresses.iter().map(|address| !known.contains_key(address)).collect();
        let new = found.hits.iter().zip(&is_new).filter(|(_, is_new)| **is_new).map(|(hit, _)| hit);
        let new: Vec<&Hit> = new.collect();
        let verdicts = self.judge(goal.as_deref(), &new, &monitor).await;
        let unjudged = if goal.is_some() && verdicts.is_none() { new.len() as i64 } else { 0 };
        let judged = verdicts.as_ref().map_or(0, Vec::len) as i64;

        let mut verdicts = verdicts.unwrap_or_default().into_iter();
        let mut matches = 0;
        let mut pages = Vec::with_capacity(found.hits.len());
        for (hit, is_new) in found.hits.iter().zip(&is_new) {
            let verdict = if *is_new { verdicts.next() } else { None };
            matches += i64::from(verdict.as_ref().is_some_and(|verdict| verdict.is_meaningful));
            pages.push(page(hit, &target_id, *is_new, verdict.as_ref())?);
        }
        let credits = search::price(found.raw, false) + judged * JUDGEMENT;
        let progress = &mut hand.targets[n];
        progress.is_over = true;
        progress.results = Some(pages.len() as i64);
        progress.warning = (pages.is_empty() && !found.warnings.is_empty()).then(|| found.warnings.join(" "));
        progress.matches = (judged > 0).then_some(matches);
        (progress.judged, progress.unjudged, progress.credits) = (judged, unjudged, credits);
        let mut tx = process.db.begin().await?;
        let search = NewSearch {
            id: JobId::new(),
            team: monitor.team_id,
            key: monitor.api_key_id,
            version: ApiVersion::V2,
            query: target.queries.first().map(String::as_str),
            credits,
            created_at: process.db.now(),
        };
        searches::record(&mut tx, &search).await?;
        self.write_in(tx, hand, &pages).await
    }

    /// Asks every query; of their hits the first of each come first.
    async fn ask(&self, target: &SearchTarget, team: TeamId) -> Result<Hits, SearchError> {
        let (now, deadline) = (self.context.process.db.now(), clock::deadline(SEARCH_TIME));
        let holder = (team, Urgency::Background);
        let most = usize::try_from(target.max_results).unwrap_or(1);
        let mut lists = Vec::with_capacity(target.queries.len());
        let mut warnings = Vec::new();
        for words in &target.queries {
            let query = Query {
                words: words.clone(),
                include_domains: target.include_domains.clone(),
                exclude_domains: target.exclude_domains.clone(),
                age: target.window.age(),
                ..Query::default()
            };
            let found = self.context.process.search.find(holder, &query, &[Source::Web], most, deadline, now).await?;
            for warning in found.warnings {
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
            lists.push(found.hits.into_iter().flat_map(|(_, hits)| hits).collect::<Vec<_>>().into_iter());
        }
        let mut found = Hits { hits: Vec::new(), raw: 0, warnings };
        while found.raw < most {
            let row: Vec<Hit> = lists.iter_mut().filter_map(Iterator::next).collect();
            if row.is_empty() {
                break;
            }
            for hit in row.into_iter().take(most - found.raw) {
                found.raw += 1;
                if found.hits.iter().all(|other| other.url != hit.url) {
                    found.hits.push(hit);
                }
            }
        }
        Ok(found)
    }

    /// What the language model says of new hits; `None` where nobody judges.
    async fn judge(&self, goal: Option<&str>, new: &[&Hit], monitor: &monitors::MonitorRow) -> Option<Vec<Verdict>> {
        let process = &self.context.process;
        let (goal, model) = (goal?, process.asker((monitor.team_id, Urgency::Background))?);
        // It stands still for nobody: the check is ours for no longer.
        let reader = Reader::new(Some(model), Allowance::until(clock::deadline(JUDGE_TIME)));
        let shown: Vec<Shown<'_>> =
            new.iter().map(|hit| Shown { url: &hit.url, title: &hit.title, description: &hit.text }).collect();
        let judged = reader.judge_hits(goal, &shown).await;
        process.spent(monitor.team_id, monitor.api_key_id, reader.meter.read()).await;
        judged
            .inspect_err(|error| {
                tracing::warn!(%error, monitor.id = %monitor.id, "hits of a search target are not judged");
            })
            .ok()
    }
}

/// A hit as a page of the check.
fn page(hit: &Hit, target: &str, is_new: bool, verdict: Option<&Verdict>) -> StoreResult<Found> {
    let mut detail = serde_json::json!({"metadata": {"title": hit.title, "description": hit.text, "date": hit.date}});
    if let Some(verdict) = verdict {
        detail["judgment"] = verdict.to_json();
    }
    Ok(Found {
        id: PageId::new(),
        target_id: target.to_owned(),
        url: hit.url.clone(),
        status: if is_new { PageStatus::New } else { PageStatus::Same },
        previous_scrape_id: None,
        current_scrape_id: None,
        status_code: None,
        error: None,
        detail: Detail::new(&detail)?,
    })
}
