//! Maps: jobs with one page each, whose document is the answer; and what a team already knows of a site.

use serde::{Deserialize, Serialize};

use crate::blobs::Blobs;
use crate::domain::job::{JobKind, JobStatus, PageState};
use crate::domain::map::{MapOptions, site_of};
use crate::ids::{JobId, KeyId, PageId, TeamId};
use crate::store::{Db, StoreError, StoreResult, Tx};
use crate::time::Timestamp;
use crate::traces::{self, TraceParent};
use crate::{on_db, on_pool};

use super::documents;
use super::page::rows;

/// A map to be written.
pub struct NewMap<'a> {
    pub id: JobId,
    pub team: TeamId,
    pub key: Option<KeyId>,
    /// As requested.
    pub url: &'a str,
    pub options: &'a MapOptions,
    pub origin: Option<&'a str>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// How the options lie in the job's row, beside the scrape options of other kinds.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored<T> {
    map: T,
    /// Where other kinds have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace_parent: Option<TraceParent>,
}

/// Writes the job and its page, queued. Returns the page, which has a wake-up yet to come.
pub async fn insert(tx: &mut Tx, map: &NewMap<'_>) -> StoreResult<PageId> {
    const SQL: &str = sql!(
        "INSERT INTO job (id, team_id, api_key_id, kind, status, rank, options, target, origin, \
         total, queued, created_at, expires_at, site) VALUES ($1, $2, $3, $4, ",
        JobStatus::Scraping.sql(),
        ", $5, $6, $7, $8, 1, 1, $9, $10, $11)"
    );
    let options = serde_json::to_string(&Stored { map: map.options, trace_parent: traces::current() })?;
    // With zero retention nobody finds it by its site again.
    let site = site_of(map.url).filter(|_| !map.options.zero_retention);
    on_db!(tx, |conn| {
        sqlx::query(SQL)
            .bind(map.id)
            .bind(map.team)
            .bind(map.key)
            .bind(JobKind::Map.as_str())
            .bind(JobKind::Map.rank())
            .bind(options)
            .bind(map.url)
            .bind(map.origin)
            .bind(map.created_at)
            .bind(map.expires_at)
            .bind(site)
            .execute(conn)
            .await?
            .rows_affected()
    });
    let urls = [map.url.to_owned()];
    let ids = rows::insert_many(tx, map.id, map.team, 0, &urls, map.created_at).await?;
    ids.first().copied().ok_or_else(|| crate::store::StoreError::Corrupt("a map without its page".to_owned()))
}

/// The options of a map; `None`: it is gone.
pub async fn options(db: &Db, id: JobId) -> StoreResult<Option<MapOptions>> {
    const SQL: &str = "SELECT options FROM job WHERE id = $1 AND kind = 'map'";
    let found: Option<(String,)> = on_pool!(db, |pool| sqlx::query_as(SQL).bind(id).fetch_optional(pool).await?);
    let stored: Option<Stored<MapOptions>> = found.map(|row| serde_json::from_str(&row.0)).transpose()?;
    Ok(stored.map(|stored| stored.map))
}

/// A page that the team knows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KnownPage {
    pub url: String,
    pub title: Option<String>,
    pub description: Option<String>,
}

/// Pages of a site that the team's jobs have scraped, newest jobs first, at most `limit`. Titles are read for the first
/// `titled` of them.
pub async fn known_pages(db: &Db, team: TeamId, site: &str, limit: i64, titled: i64) -> StoreResult<Vec<KnownPage>> {
    const SQL: &str = sql!(
        "SELECT page.id, page.url FROM job JOIN page ON page.job_id = job.id \
         WHERE job.team_id = $1 AND job.site = $2 AND job.kind <> 'map' AND page.state = ",
        PageState::Done.sql(),
        " AND page.idx >= 0 ORDER BY job.created_at DESC, page.idx LIMIT $3"
    );
    let rows: Vec<(PageId, String)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(site).bind(limit).fetch_all(pool).await?);
    let mut known = Vec::with_capacity(rows.len());
    let titled = usize::try_from(titled).unwrap_or(0);
    let ids: Vec<PageId> = rows.iter().take(titled).map(|row| row.0).collect();
    let mut metadata = documents::metadata(db, &ids).await?;
    for (id, url) in rows {
        let page = match metadata.remove(&id) {
            // A page that answered with an error does not count as a page of the site.
            Some(found) if found.status_code.is_some_and(|status| status >= 400) => continue,
            Some(found) => KnownPage {
                url: found.url.unwrap_or(url),
                title: found.title.and_then(as_text),
                description: found.description.and_then(as_text),
            },
            None => KnownPage { url, title: None, description: None },
        };
        known.push(page);
    }
    Ok(known)
}

/// A page that repeats a tag has a list of texts.
fn as_text(value: serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Array(list) => list.into_iter().find_map(as_text),
        _ => None,
    }
}

/// The links of the team's newest finished map of a site that is not over `max_size` bytes.
pub async fn known_links(
    db: &Db,
    blobs: &Blobs,
    team: TeamId,
    site: &str,
    max_size: i64,
) -> StoreResult<Vec<KnownPage>> {
    const SQL: &str = sql!(
        "SELECT document.page_id FROM job JOIN document ON document.job_id = job.id \
         WHERE job.team_id = $1 AND job.site = $2 AND job.kind = 'map' AND job.status = ",
        JobStatus::Completed.sql(),
        " AND document.size <= $3 ORDER BY job.created_at DESC LIMIT 1"
    );
    #[derive(Deserialize)]
    struct KnownLinks {
        links: Vec<KnownPage>,
    }
    let found: Option<(PageId,)> =
        on_pool!(db, |pool| sqlx::query_as(SQL).bind(team).bind(site).bind(max_size).fetch_optional(pool).await?);
    let Some((page,)) = found else { return Ok(Vec::new()) };
    let document = match documents::by_page(db, blobs, page).await {
        Ok(Some(document)) => document,
        Ok(None) => return Ok(Vec::new()),
        // What an earlier map found is a help only: without it the map goes on.
        Err(error @ (StoreError::Lost(_) | StoreError::BlobsAway(_))) => {
            tracing::warn!(%error, page.id = %page, "an earlier map cannot be read");
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    Ok(serde_json::from_str::<KnownLinks>(document.json.get())?.links)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::job::JobStatus;
    use crate::domain::scrape_request::parse_map;
    use crate::domain::target::RequestContext;
    use crate::ids::WorkerId;
    use crate::store::testing;
    use crate::store::work::jobs;
    use crate::store::work::page::claim;
    use crate::store::work::page::end::{Finished, Outcome};
    use crate::store::work::page::finish::finish_many;
    use crate::store::work::page::rows::Claimed;

    fn blobs() -> Blobs {
        Blobs::open(&std::env::temp_dir().join(format!("weir-blobs-{}", crate::random::id()))).unwrap()
    }

    async fn new_map(db: &Db, team: TeamId, url: &str, zero_retention: bool) -> (JobId, PageId) {
        let map = parse_map(&json!({"url": url}), RequestContext { knows_host: &|_| false }).unwrap();
        let options = MapOptions { zero_retention, ..map.options };
        let (id, now) = (JobId::new(), db.now());
        let row = NewMap {
            id,
            team,
            key: None,
            url,
            options: &options,
            origin: None,
            created_at: now,
            expires_at: now.plus_ms(60_000),
        };
        let mut tx = db.begin().await.unwrap();
        let page = insert(&mut tx, &row).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(super::options(db, id).await.unwrap().unwrap(), options);
        (id, page)
    }

    async fn end(db: &Db, page: Claimed, kind: JobKind, document: Value) {
        let document = documents::encode(&document).unwrap();
        let outcome = Outcome::Done { document, credits: 1 };
        let mut tx = db.begin().await.unwrap();
        let ends = [Finished { page, kind: Some(kind), key: None, outcome }];
        finish_many(&mut tx, &ends, db.now()).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn claim_one(db: &Db, team: TeamId, page: PageId) -> Claimed {
        claim::claim_one(db, team, page, WorkerId::new(), 50, db.now()).await.unwrap().unwrap().0
    }

    #[tokio::test]
    async fn a_map_is_a_job_of_one_page_billed_once() {
        for db in testing::databases().await {
            let (blobs, team) = (blobs(), testing::team(&db, "a").await);
            let (id, page) = new_map(&db, team, "https://docs.example.com/x", false).await;
            let job = jobs::load(&db, id).await.unwrap().unwrap();
            assert_eq!((job.kind, job.status, job.total, job.queued), (JobKind::Map, JobStatus::Scraping, 1, 1));
            let claimed = claim_one(&db, team, page).await;
            let link = json!({"url": "https://docs.example.com/y", "title": "Y"});
            let answer = json!({"success": true, "links": [link]});
            end(&db, claimed.clone(), JobKind::Map, answer.clone()).await;
            end(&db, claimed, JobKind::Map, answer).await;
            let job = jobs::load(&db, id).await.unwrap().unwrap();
            assert_eq!((job.status, job.completed, job.credits_used), (JobStatus::Completed, 1, 1));

            let known = known_links(&db, &blobs, team, "example.com", 1_000).await.unwrap();
            let page = |url: &str, title: Option<&str>| KnownPage {
                url: url.to_owned(),
                title: title.map(str::to_owned),
                description: None,
            };
            assert_eq!(known, [page("https://docs.example.com/y", Some("Y"))]);
            for (team, site, size) in
                [(TeamId::new(), "example.com", 1_000), (team, "example.org", 1_000), (team, "example.com", 10)]
            {
                assert!(known_links(&db, &blobs, team, site, size).await.unwrap().is_empty());
            }
            // The row of a map is not a page of the site, and a map that is not kept is not found.
            assert!(known_pages(&db, team, "example.com", 10, 10).await.unwrap().is_empty());
            let other = testing::team(&db, "b").await;
            let (_, page) = new_map(&db, other, "https://example.com", true).await;
            end(&db, claim_one(&db, other, page).await, JobKind::Map, json!({"links": []})).await;
            assert!(known_links(&db, &blobs, other, "example.com", 1_000).await.unwrap().is_empty());
        }
    }

    #[tokio::test]
    async fn pages_of_a_teams_jobs_are_known_with_their_titles() {
        for db in testing::databases().await {
            let team = testing::team(&db, "a").await;
            // The pages of a test's jobs are at http://site.test/N.
            let (_, ids) = testing::job(&db, team, JobKind::Batch, 3, None).await;
            let mut urls = Vec::new();
            for (n, id) in ids.into_iter().enumerate() {
                let claimed = claim_one(&db, team, id).await;
                urls.push(claimed.url.clone());
                let status = if n == 1 { 404 } else { 200 };
                let metadata =
                    json!({"title": ["A", "B"], "description": "d", "statusCode": status, "url": claimed.url});
                end(&db, claimed, JobKind::Batch, json!({"metadata": metadata})).await;
            }
            let site = site_of(&urls[0]).unwrap();
            let known = known_pages(&db, team, &site, 10, 10).await.unwrap();
            let found: Vec<&str> = known.iter().map(|page| page.url.as_str()).collect();
            assert_eq!(found, [&urls[0], &urls[2]], "an error is no page");
            assert_eq!((known[0].title.as_deref(), known[0].description.as_deref()), (Some("A"), Some("d")));
            assert_eq!(known_pages(&db, team, &site, 10, 0).await.unwrap().len(), 3, "titles are not looked up");
            assert_eq!(known_pages(&db, team, &site, 1, 10).await.unwrap().len(), 1);
            assert!(known_pages(&db, TeamId::new(), &site, 10, 10).await.unwrap().is_empty());
        }
    }
}
