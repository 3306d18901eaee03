//! Passages of a hit's page that have to do with the query, in the place of the search engine's text: by the words they
//! share, without a model. Only pages that are at hand are looked at: those that this search has scraped, and those that
//! the cache holds. Nothing is fetched for it.

use std::time::Duration;

use futures_util::future::join_all;
use weir_extract::{ExtractOptions, PageInput};
use weir_shared::blocking;
use weir_shared::domain::cache::{self, Head};
use weir_shared::domain::scrape::ScrapeOptions;
use weir_shared::domain::search::Source;
use weir_shared::passages::{rank, split};
use weir_shared::store::contents::cache::{self as store, Found};

use super::answer::Item;
use super::asked::Asked;
use crate::app::{App, AppData};

/// Hits that are looked for in the cache, and the time that may take.
const MOST_LOOKUPS: usize = 20;
const LOOKUP_TIME: Duration = Duration::from_millis(200);
/// Bytes of a page that are looked at.
const MOST_TEXT: usize = 200_000;
/// Passages of a description, and its length in characters.
const PASSAGES: usize = 3;
const LENGTH: usize = 1_000;

/// Writes passages into the hits of web and news.
pub(super) async fn write(app: &AppData, asked: &Asked, groups: &mut [(Source, Vec<Item>)]) {
    let mut items: Vec<&mut Item> =
        groups.iter_mut().filter(|(source, _)| *source != Source::Images).flat_map(|(_, items)| items).collect();
    let mut texts: Vec<(usize, String)> = Vec::new();
    for (n, item) in items.iter().enumerate() {
        texts.extend(item.markdown().map(|text| (n, head(text).to_owned())));
    }
    if !asked.search.zero_retention {
        let missing = items.iter().enumerate().filter(|(_, item)| item.markdown().is_none()).take(MOST_LOOKUPS);
        let cached = join_all(missing.map(|(n, item)| async move { Some((n, cached(app, asked, item.url()).await?)) }));
        texts.extend(tokio::time::timeout(LOOKUP_TIME, cached).await.into_iter().flatten().flatten());
    }
    if texts.is_empty() {
        return;
    }
    let words = asked.search.query.words.clone();
    let chosen = move || -> Vec<(usize, String)> {
        texts.into_iter().filter_map(|(n, text)| Some((n, choose(&text, &words)?))).collect()
    };
    for (n, passages) in blocking::run(chosen).await.unwrap_or_default() {
        items[n].highlight(passages);
    }
}

fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_TEXT)]
}

/// The markdown of a page, of what is kept of it for requests without options.
async fn cached(app: &App, asked: &Asked, url: &str) -> Option<String> {
    if app.settings.cache_size == 0 {
        return None;
    }
    let lookup = cache::lookup(url, &ScrapeOptions::default(), asked.caller.team_id(), app.db.now())?;
    let found = store::find(&app.db, &lookup).await.ok()?;
    let found = found.into_iter().find(|found| found.head.status == 200 && is_page(&found.head))?;
    let found = found.bring(&app.blobs).await.ok()?;
    blocking::run(move || text_of(&found)).await.ok()?
}

fn is_page(found: &Head) -> bool {
    let said = found.content_type.as_deref().unwrap_or("text/html").to_ascii_lowercase();
    said.starts_with("text/html") || said.starts_with("application/xhtml+xml")
}

/// The main text of a page of HTML. Computes.
fn text_of(found: &Found) -> Option<String> {
    let [body, dom, ..] = found.unpack().ok()?.into_parts();
    let (rendered, charset) = (dom.is_some(), found.head.charset.as_deref());
    let bytes = dom.or(body)?;
    let html = weir_extract::charset::decode(&bytes, if rendered { Some("utf-8") } else { charset });
    let wanted =
        ExtractOptions { markdown: true, only_main_content: true, block_ads: true, ..ExtractOptions::default() };
    let page = PageInput { url: &found.head.url, html: &html, rendered };
    let markdown = weir_extract::extract(&page, &wanted).markdown?;
    Some(head(&markdown).to_owned())
}

/// The passages that share most with the query, in the page's order; `None`: none shares a word.
fn choose(text: &str, words: &str) -> Option<String> {
    let passages = split(text);
    let mut best: Vec<usize> = rank(&passages, words).into_iter().take(PASSAGES).collect();
    best.sort_unstable();
    let mut out = String::new();
    for n in best {
        let room = LENGTH.saturating_sub(out.chars().count());
        if room == 0 {
            break;
        }
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        out.extend(passages[n].chars().take(room));
    }
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_about_the_query_are_chosen_in_their_order() {
        let page = "# Shop\n\nWe sell shoes.\n\nThe warranty lasts seven years.\n\nContact us.\n\nWarranties are free.";
        let chosen = choose(page, "warranty");
        assert_eq!(chosen.as_deref(), Some("The warranty lasts seven years.\n\nWarranties are free."));
        assert_eq!(choose(page, "bicycle"), None);
        assert!(choose(&"warranty ".repeat(1_000), "warranty").is_some_and(|text| text.chars().count() <= LENGTH));
    }
}
