//! A page of HTML, as it was fetched or as a browser has rendered it.

use weir_shared::domain::document::Document;
use weir_shared::domain::scrape::Format;
use weir_shared::store::work::jobs::JobSpec;

use super::attributes::{attribute_selector, attribute_values};
use super::{goods, media};
use crate::extract::{ExtractOptions, Extracted};
use crate::learn::Source;
use crate::page::draft::{Draft, Made, SiteResponse};
use crate::page::error::PageError;
use crate::page::product::Harvest;
use crate::page::task::PageTask;

/// What is to be read out of the pages of a job.
pub fn extract_options(spec: &JobSpec) -> ExtractOptions {
    let options = &spec.options;
    ExtractOptions {
        markdown: options.wants(&Format::Markdown) || options.needs_text(),
        html: options.wants(&Format::Html),
        links: options.wants(&Format::Links) || spec.crawl.is_some(),
        images: options.wants(&Format::Images),
        attributes: options.attributes().unwrap_or_default().iter().map(attribute_selector).collect(),
        media: media::is_asked_for(options),
        structured: options.needs_text(),
        product: options.wants(&Format::Product),
        menu: options.wants(&Format::Menu),
        only_main_content: options.only_main_content,
        include_tags: options.include_tags.clone(),
        exclude_tags: options.exclude_tags.clone(),
        remove_base64_images: options.remove_base64_images,
        block_ads: options.block_ads,
        site: None,
        blocks: false,
    }
}

/// Makes the document of a page. `raw` is its HTML as the site sent it, `source` the one that it was read from, where it may
/// be learned from. Computes and blocks.
///
/// # Errors
/// When the page does not offer the sound or film that is asked for, or the document cannot be written.
pub fn document(
    task: &PageTask,
    mut response: SiteResponse,
    extracted: Extracted,
    raw: &str,
    source: Option<Source>,
) -> Result<Made, PageError> {
    let options = task.options();
    let offers = media::taken(options, extracted.media)?;
    response.warnings.extend(extracted.warning);
    // What is not there now may be there the next time.
    if extracted.signals.says_nothing {
        response.sent = None;
    }
    let wants_links = options.wants(&Format::Links);
    let harvest = task.spec.crawl.is_some().then(|| Harvest {
        url: response.url.clone(),
        canonical: extracted.signals.canonical,
        links: extracted.links.clone().unwrap_or_default(),
    });
    let mut metadata = extracted.metadata;
    if extracted.repeated > 0 {
        metadata.insert("templateChars".to_owned(), extracted.repeated.into());
    }
    let document = Document {
        markdown: extracted.markdown,
        html: extracted.html,
        raw_html: options.wants(&Format::RawHtml).then(|| raw.to_owned()),
        links: extracted.links.filter(|_| wants_links),
        images: extracted.images,
        attributes: options.attributes().map(|wanted| attribute_values(wanted, extracted.attributes)),
        product: extracted.product.map(goods::product),
        menu: extracted.menu.map(goods::menu),
        audio: offers.audio,
        video: offers.video,
        metadata,
        ..Document::default()
    };
    let draft = Draft { structured: extracted.structured, harvest, source, ..Draft::new(response, document, options) };
    draft.advance(task)
}
