//! The answer of a map: its links in their order, as many as were asked for, with what the caller should know.

use weir_shared::domain::map::{Link, MapAnswer, MapOptions};
use weir_shared::store::work::documents;
use weir_shared::store::work::page::end::Encoded;

use super::error::MapError;
use super::links::LinkSet;
use super::rank;
use crate::page::cpu::blocking;
use crate::page::task::PageTask;

/// What was read of a site.
pub struct Gathered {
    pub options: MapOptions,
    pub links: LinkSet,
    /// The site's, as its page says.
    pub language: Option<String>,
    pub warnings: Vec<String>,
}

impl Gathered {
    /// The links in their order, as many as were asked for, and what the caller should know. Computes.
    pub fn ordered(self) -> (Vec<Link>, Vec<String>) {
        let Self { options, links, language, mut warnings } = self;
        let (mut links, unfiltered) = links.finish();
        if unfiltered {
            warnings.push("Nothing but the page itself lies below its path, so links of the whole site are given. Set filterByPath to true to leave them out.".to_owned());
        }
        if let Some(words) = &options.search {
            let languages = options.location.iter().flat_map(|location| location.languages.clone());
            let languages: Vec<String> = language.into_iter().chain(languages).collect();
            links = rank::order(links, words, &languages);
        }
        links.truncate(options.limit);
        if links.len() <= 1 {
            warnings.push(few(links.len()).to_owned());
        }
        (links, warnings)
    }
}

/// Orders the links and packs the answer.
///
/// # Errors
/// When it cannot be packed.
pub async fn answer(task: &PageTask, gathered: Gathered) -> Result<Encoded, MapError> {
    let job = task.page.job_id;
    let packed = blocking(task.holder(), move || {
        let (links, warnings) = gathered.ordered();
        let warning = (!warnings.is_empty()).then(|| warnings.join(" "));
        let answer = MapAnswer { success: true, id: job, links: &links, warning };
        Ok(documents::encode(&answer))
    });
    packed.await.map_err(|_| MapError::internal())?.map_err(|error| {
        tracing::error!(%error, job.id = %job, "a map cannot be written as JSON");
        MapError::internal()
    })
}

fn few(count: usize) -> &'static str {
    match count {
        0 => "No link was found. If the site has pages, try its start page, or sitemap \"include\".",
        _ => "Only one link was found. If the site has more pages, try its start page, or crawl it.",
    }
}
