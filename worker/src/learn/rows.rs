//! Who reads pages for an extractor and who has it written, by the rows: no page is read and no extractor written twice,
//! but for what a worker had begun that died.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use weir_shared::ids::WorkerId;
use weir_shared::store::contents::extractors::{self, Learning, LearningPage, Topic};
use weir_shared::store::{Db, StoreResult, Tx};
use weir_shared::time::Timestamp;

use super::learned::Learned;
use crate::extract::Sketch;
use crate::reader::WRITTEN;

/// Pages of a template that an extractor is written from.
pub const PAGES: usize = 3;
/// Pages are of one template when they share so much of what they are built of.
const ALIKE: f32 = 0.6;
/// Pages of a site that are kept while no three are of one template.
const MOST_PAGES: usize = 12;
/// Pages until an extractor is held against the model's reading for the first time, and from then on.
const FIRST_CHECK: i64 = 50;
pub const NEXT_CHECK: i64 = 500;
/// Questions to the model that a changed template costs at most until another extractor is in use: doubts and checks that
/// fail, the pages to learn from, and the tries to write one.
const REPAIR: i64 = 10;
const _: () = assert!(extractors::DOUBTS + extractors::STRIKES + (PAGES + WRITTEN) as i64 <= REPAIR);
/// Readings in a row from which nothing was to be learned that count as an extractor that is not good.
const MISSES: i64 = 3;
/// Extractors that are written for one site a day, good or not.
const ROUNDS: i64 = 12;
const DAY_MS: i64 = 86_400_000;
/// How long nothing is learned after an extractor that was not good; each further one doubles it.
const REST_MS: i64 = 10 * 60_000;
/// How long an extractor may take to be written, milliseconds.
pub const WRITING_MS: i64 = 90_000;

/// A page that was read, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sample {
    pub url: Url,
    pub html: String,
    pub rendered: bool,
    pub data: Value,
}

/// What may be done with a page that no extractor fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// The model reads it, and it is learned from.
    Read,
    /// Others are at it.
    Wait,
    /// It was learned from before.
    Known,
    /// An extractor is to be written from these pages, by who asked.
    Write(Vec<String>),
    /// Nothing is learned until then.
    Rest(Timestamp),
}

/// Pages that are of one template: the largest group of those that were read.
fn group(pages: &[LearningPage]) -> Vec<String> {
    let sketches: Vec<(&str, Sketch)> = pages
        .iter()
        .filter(|page| page.is_read.0)
        .filter_map(|page| Some((page.page.as_str(), page.sketch.parse().ok()?)))
        .collect();
    let alike = |one: &Sketch| {
        let like = sketches.iter().filter(|(_, other)| one.likeness(other) >= ALIKE);
        like.map(|(page, _)| (*page).to_owned()).take(PAGES).collect::<Vec<_>>()
    };
    sketches.iter().map(|(_, sketch)| alike(sketch)).max_by_key(Vec::len).unwrap_or_default()
}

/// What may be done, by the rows alone.
pub fn turn(learning: &Learning, pages: &[LearningPage], page: &str, now: Timestamp) -> Turn {
    if learning.is_writing.0 {
        return Turn::Wait;
    }
    if learning.rests_until > now {
        return Turn::Rest(learning.rests_until);
    }
    let group = group(pages);
    if group.len() >= PAGES {
        return Turn::Write(group);
    }
    if pages.iter().any(|known| known.page == page) {
        return Turn::Known;
    }
    let reading = pages.iter().filter(|page| !page.is_read.0).count();
    if reading + group.len() < PAGES { Turn::Read } else { Turn::Wait }
}

/// Takes the page's turn. What it says of reading and writing is written down.
pub async fn take(db: &Db, topic: &Topic, page: &str, worker: WorkerId, reads_ms: i64) -> StoreResult<Turn> {
    let now = db.now();
    let mut tx = db.begin().await?;
    let (learning, pages) = extractors::lock(&mut tx, topic, now).await?;
    let turn = turn(&learning, &pages, page, now);
    match &turn {
        Turn::Read => {
            let read: Vec<&LearningPage> = pages.iter().filter(|page| page.is_read.0).collect();
            if read.len() >= MOST_PAGES {
                extractors::forget(&mut tx, topic, &[read[0].page.clone()]).await?;
            }
            extractors::begin_reading(&mut tx, topic, page, worker, now, now.plus_ms(reads_ms)).await?;
        }
        Turn::Write(_) => extractors::begin_writing(&mut tx, topic, worker, now.plus_ms(WRITING_MS)).await?,
        _ => {}
    }
    tx.commit().await?;
    Ok(turn)
}

/// The page was read, and there is nothing to learn from it. `is_miss`: because the reading came to nothing.
pub async fn leave(db: &Db, topic: &Topic, page: &str, worker: WorkerId, is_miss: bool) -> StoreResult<()> {
    let now = db.now();
    let mut tx = db.begin().await?;
    let (mut learning, _) = extractors::lock(&mut tx, topic, now).await?;
    extractors::leave(&mut tx, topic, page, worker).await?;
    if is_miss {
        learning.misses += 1;
        if learning.misses >= MISSES {
            learning.misses = 0;
            rest(&mut learning, now);
        }
        extractors::set(&mut tx, topic, &learning).await?;
    }
    tx.commit().await
}

/// Keeps a page that was read. With it, the pages from which an extractor is to be written now, by who asked.
pub async fn keep(
    db: &Db,
    topic: &Topic,
    page: &str,
    worker: WorkerId,
    sketch: &Sketch,
    body: &[u8],
) -> StoreResult<Option<Vec<String>>> {
    let now = db.now();
    let mut tx = db.begin().await?;
    let (mut learning, _) = extractors::lock(&mut tx, topic, now).await?;
    extractors::keep(&mut tx, topic, page, worker, &sketch.to_string(), body).await?;
    learning.misses = 0;
    extractors::set(&mut tx, topic, &learning).await?;
    let (learning, pages) = extractors::lock(&mut tx, topic, now).await?;
    let due = match turn(&learning, &pages, page, now) {
        Turn::Write(pages) => {
            extractors::begin_writing(&mut tx, topic, worker, now.plus_ms(WRITING_MS)).await?;
            Some(pages)
        }
        _ => None,
    };
    tx.commit().await?;
    Ok(due)
}

/// The pages' kept bodies.
pub async fn bodies(tx: &mut Tx, topic: &Topic, pages: &[String]) -> StoreResult<Vec<Vec<u8>>> {
    let mut bodies = Vec::new();
    for page in pages {
        bodies.extend(extractors::body(tx, topic, page).await?);
    }
    Ok(bodies)
}

/// What came of writing. `None`: no extractor that is good.
pub async fn end_writing(
    db: &Db,
    topic: &Topic,
    worker: WorkerId,
    pages: &[String],
    learned: Option<&Learned>,
) -> StoreResult<()> {
    let now = db.now();
    let mut tx = db.begin().await?;
    let (mut learning, _) = extractors::lock(&mut tx, topic, now).await?;
    if !extractors::end_writing(&mut tx, topic, worker).await? {
        return Ok(());
    }
    if now.ms_since(learning.rounds_since) >= DAY_MS {
        (learning.rounds, learning.rounds_since) = (0, now);
    }
    learning.rounds += 1;
    match learned {
        Some(learned) => {
            learning.failures = 0;
            extractors::insert(&mut tx, topic, &serde_json::to_string(learned)?, FIRST_CHECK, now).await?;
        }
        None => rest(&mut learning, now),
    }
    if learning.rounds >= ROUNDS {
        learning.rests_until = learning.rests_until.max(learning.rounds_since.plus_ms(DAY_MS));
    }
    extractors::forget(&mut tx, topic, pages).await?;
    extractors::set(&mut tx, topic, &learning).await?;
    tx.commit().await
}

/// Writing was given up before anything came of it; another worker may begin.
pub async fn give_up(db: &Db, topic: &Topic, worker: WorkerId) -> StoreResult<()> {
    let mut tx = db.begin().await?;
    extractors::lock(&mut tx, topic, db.now()).await?;
    extractors::end_writing(&mut tx, topic, worker).await?;
    tx.commit().await
}

fn rest(learning: &mut Learning, now: Timestamp) {
    learning.rests_until = now.plus_ms((REST_MS << learning.failures.clamp(0, 8)).min(DAY_MS));
    learning.failures += 1;
}

#[cfg(test)]
mod tests {
    use weir_shared::store::contents::extractors::Flag;

    use super::*;

    fn page(name: &str, sketch: &str, is_read: bool) -> LearningPage {
        LearningPage { page: name.to_owned(), sketch: sketch.to_owned(), is_read: Flag(is_read) }
    }

    #[test]
    fn three_pages_of_a_template_are_read_and_no_more() {
        let (a, b) = ("00000001000000020000000300000004", "000000050000000600000007");
        let now = Timestamp(1_000);
        let of = |pages: &[LearningPage]| turn(&Learning::default(), pages, "x", now);
        assert_eq!(of(&[]), Turn::Read);
        let reading = |count: usize| (0..count).map(|n| page(&n.to_string(), "", false)).collect::<Vec<_>>();
        assert_eq!((of(&reading(2)), of(&reading(3))), (Turn::Read, Turn::Wait));
        let read = |sketches: &[&str], more: usize| {
            let read = sketches.iter().enumerate().map(|(n, sketch)| page(&format!("r{n}"), sketch, true));
            read.chain(reading(more)).collect::<Vec<_>>()
        };
        assert_eq!((of(&read(&[a], 1)), of(&read(&[a], 2))), (Turn::Read, Turn::Wait));
        assert_eq!((of(&read(&[a, a], 0)), of(&read(&[a, a], 1))), (Turn::Read, Turn::Wait));
        assert_eq!(of(&read(&[a, b, a, b], 0)), Turn::Read, "neither has three");
        let all = ["r0", "r2", "r3"].map(str::to_owned).to_vec();
        assert_eq!(of(&read(&[a, b, a, a], 0)), Turn::Write(all));
        assert_eq!(turn(&Learning::default(), &read(&[a], 0), "r0", now), Turn::Known);
        let rests = Learning { rests_until: Timestamp(2_000), ..Learning::default() };
        assert_eq!(turn(&rests, &[], "x", now), Turn::Rest(Timestamp(2_000)));
        let writes = Learning { is_writing: Flag(true), ..Learning::default() };
        assert_eq!(turn(&writes, &[], "x", now), Turn::Wait);
    }

    #[test]
    fn what_fails_is_tried_less_and_less() {
        let mut learning = Learning::default();
        let mut rests = Vec::new();
        for _ in 0..10 {
            rest(&mut learning, Timestamp(0));
            rests.push(learning.rests_until.0 / 60_000);
        }
        assert_eq!(rests, [10, 20, 40, 80, 160, 320, 640, 1_280, 1_440, 1_440]);
    }
}
