//! What pages of a site have in common, learned from those that a team has had made and left out of those to come.
//!
//! ```text
//! page ──> is its main content made, and may it be kept? ──> the site's last pages, from memory, or read once ──> extraction
//!            its blocks are added to them <── it answered well, over a certificate that verifies ──────────────────┘
//! once a minute: what was added goes into the database, together with what other workers have added
//! ```
//!
//! Each team has its own: what one has seen changes nothing for another. None of it is needed. A worker that begins again
//! has what was written up to a minute before, and a page for which it cannot be read is made without it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use url::Url;
use weir_shared::domain::cache;
use weir_shared::domain::scrape::{Format, ScrapeOptions};
use weir_shared::ids::TeamId;
use weir_shared::store::contents::site_templates;
use weir_shared::store::{Db, StoreResult};

use super::draft::SiteResponse;
use super::task::PageTask;
use crate::extract::template::{Blocks, Site};
use crate::extract::{ExtractOptions, Extracted};

/// Sites that a worker remembers.
const MOST: usize = 400;

/// Whose pages, of which site.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    team: TeamId,
    origin: String,
}

#[derive(Debug)]
struct Remembered {
    site: Arc<Site>,
    /// Something was added that the database does not know.
    is_news: bool,
    /// When it was asked for last, as a count of such moments.
    used: u64,
}

/// What a worker remembers.
#[derive(Debug, Default)]
pub struct Templates(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    sites: HashMap<Place, Remembered>,
    moments: u64,
}

impl Memory {
    fn recall(&mut self, place: &Place) -> Option<Arc<Site>> {
        self.moments += 1;
        let remembered = self.sites.get_mut(place)?;
        remembered.used = self.moments;
        Some(Arc::clone(&remembered.site))
    }

    /// Remembers what was read, unless somebody was faster. What was not used for longest is forgotten for it.
    fn remember(&mut self, place: &Place, site: Site) -> Arc<Site> {
        if let Some(site) = self.recall(place) {
            return site;
        }
        if self.sites.len() >= MOST {
            let oldest = self.sites.iter().min_by_key(|(_, remembered)| (remembered.is_news, remembered.used));
            if let Some(oldest) = oldest.map(|(place, _)| place.clone()) {
                self.sites.remove(&oldest);
            }
        }
        let site = Arc::new(site);
        let remembered = Remembered { site: Arc::clone(&site), is_news: false, used: self.moments };
        self.sites.insert(place.clone(), remembered);
        site
    }
}

impl Templates {
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn of(&self, db: &Db, place: &Place) -> StoreResult<Arc<Site>> {
        if let Some(site) = self.lock().recall(place) {
            return Ok(site);
        }
        let body = site_templates::read(db, place.team, &place.origin).await?;
        let site = body.and_then(|body| Site::from_bytes(&body)).unwrap_or_default();
        Ok(self.lock().remember(place, site))
    }

    fn learn(&self, place: &Place, page: &Blocks, now: u64) {
        let mut memory = self.lock();
        let Some(remembered) = memory.sites.get_mut(place) else { return };
        // Asked first, because others may be reading what would have to be copied.
        if remembered.site.has_place(page, now) {
            Arc::make_mut(&mut remembered.site).learn(page, now);
            remembered.is_news = true;
        }
    }

    /// Tells the database what was added, and learns from it what other workers have added.
    ///
    /// # Errors
    /// When it cannot be told; that is tried again.
    pub async fn tell(&self, db: &Db) -> StoreResult<()> {
        let is_due = |remembered: &Remembered| remembered.is_news && remembered.site.is_of_use();
        let due: Vec<Place> = {
            let memory = self.lock();
            memory.sites.iter().filter(|(_, remembered)| is_due(remembered)).map(|(place, _)| place.clone()).collect()
        };
        for place in due {
            let Some(ours) = self.take_news(&place) else { continue };
            let mut all = Site::clone(&ours);
            let add = |stored: Option<Vec<u8>>| {
                if let Some(theirs) = stored.and_then(|body| Site::from_bytes(&body)) {
                    all.merge(&theirs);
                }
                all.to_bytes()
            };
            let written = site_templates::write(db, place.team, &place.origin, db.now(), add).await;
            let mut memory = self.lock();
            let Some(remembered) = memory.sites.get_mut(&place) else { continue };
            match written {
                Ok(()) if all != *ours => Arc::make_mut(&mut remembered.site).merge(&all),
                Ok(()) => {}
                Err(error) => {
                    remembered.is_news = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn take_news(&self, place: &Place) -> Option<Arc<Site>> {
        let mut memory = self.lock();
        let remembered = memory.sites.get_mut(place)?;
        remembered.is_news = false;
        Some(Arc::clone(&remembered.site))
    }
}

/// Whether the main content of such a page is made, and made without what other pages have. What is told of changes must
/// not change with what is known of the site, and what a model is asked may be what all pages say: who sells, and where.
fn is_asked(options: &ScrapeOptions) -> bool {
    let makes_text = options.wants(&Format::Markdown) || options.wants(&Format::Html);
    let is_main = options.only_main_content && options.include_tags.is_empty();
    options.site_templates && makes_text && is_main && !options.needs_text() && options.change_tracking().is_none()
}

/// What is known of a page's site.
pub struct KnownSite {
    place: Place,
    site: Arc<Site>,
    /// Whether the page may be learned from, as far as the request for it tells.
    learns: bool,
}

impl KnownSite {
    /// Of the site of a page that ended there. `None`: nothing is asked for that needs it, nothing is kept, or it cannot be
    /// read now.
    pub async fn of(task: &PageTask, url: &Url) -> Option<Self> {
        let (process, options) = (&task.context.process, task.options());
        if !is_asked(options) || process.settings.cache_size == 0 {
            return None;
        }
        let place = Place { team: task.page.team_id, origin: url.origin().ascii_serialization() };
        let is_private = !url.username().is_empty() || url.password().is_some();
        let learns = cache::is_kept(options) && options.exclude_tags.is_empty() && !is_private;
        match process.templates.of(&process.db, &place).await {
            Ok(site) => Some(Self { place, site, learns }),
            Err(error) => {
                tracing::warn!(%error, page.id = %task.page.id, "what is known of a page's site cannot be read");
                None
            }
        }
    }

    /// Has the page made by what is known.
    pub fn apply(&self, options: &mut ExtractOptions) {
        options.site = Some(Arc::clone(&self.site));
        options.blocks = self.learns;
    }

    /// Adds the page to what is known, where its site has answered well.
    pub fn learn(&self, task: &PageTask, response: &SiteResponse, extracted: &Extracted) {
        let Some(blocks) = &extracted.blocks else { return };
        if response.status == 200 && response.is_trusted {
            let process = &task.context.process;
            process.templates.learn(&self.place, blocks, process.db.now().0.unsigned_abs() / 1_000);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_is_forgotten_first() {
        let templates = Templates::default();
        let team = TeamId::new();
        let place = |n: usize| Place { team, origin: format!("https://{n}.test") };
        for n in 0..MOST {
            templates.lock().remember(&place(n), Site::default());
        }
        assert!(templates.lock().recall(&place(0)).is_some());
        templates.lock().remember(&place(MOST), Site::default());
        let memory = templates.lock();
        assert_eq!(memory.sites.len(), MOST);
        assert!(memory.sites.contains_key(&place(0)) && !memory.sites.contains_key(&place(1)));
    }

    #[test]
    fn pages_whose_changes_are_told_are_made_without_it() {
        let with = |change: fn(&mut ScrapeOptions)| {
            let mut options = ScrapeOptions::default();
            change(&mut options);
            is_asked(&options)
        };
        assert!(with(|_| {}));
        assert!(!with(|o| o.formats.push(Format::ChangeTracking(Default::default()))));
        assert!(!with(|o| o.site_templates = false));
        assert!(!with(|o| o.only_main_content = false));
        assert!(!with(|o| o.include_tags.push("p".to_owned())));
        assert!(!with(|o| o.formats = vec![Format::Links]));
        assert!(!with(|o| o.formats.push(Format::Summary)));
    }
}
