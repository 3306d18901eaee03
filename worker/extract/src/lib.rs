//! From a page's HTML to markdown, cleaned HTML, links, images and metadata.
//!
//! [`parse`] reads the page once, within budgets a hostile page cannot exceed; everything else works on that tree:
//! [`Page::signals`] says whether a browser is needed, [`Page::extract`] makes what was asked for. All of it is
//! synchronous, bounded, CPU-only work for a blocking thread, and none of it panics or recurses with the page's depth.
//!
//! The crate stands alone: it knows neither the service around it nor an async runtime, a network or a database. The
//! program `weir-extract` offers it on the command line.
//!
//! ```
//! use weir_extract::{ExtractOptions, PageInput, extract};
//!
//! let url = url::Url::parse("https://example.com/news/").unwrap();
//! let input = PageInput { url: &url, html: "<h1>News</h1><p>Read <a href=more>more</a>.</p>", rendered: false };
//! let options = ExtractOptions { markdown: true, ..ExtractOptions::default() };
//! let page = extract(&input, &options);
//! assert_eq!(page.markdown.as_deref(), Some("# News\n\nRead [more](https://example.com/news/more).\n"));
//! ```
//!
//! ```text
//! charset            bytes to text
//! guard, tree        hostile markup cut down; the tree, read once
//! markup             ordinary tags and text read fast, the rest by the tokenizer
//! tree::streamed     parts that the server sent after the rest, put where they belong
//! measure, tokens    how much text stands where; what names of classes hint at
//! more               what is hidden until a reader asks for it
//! filter, scope      what is left out; where the main content is
//! options, related   lists of languages and currencies; rows of other articles
//! shop, copies       what shops show besides one product; what a page has twice
//! marks              what manuals and blogs put around their text for the reader's mouse
//! lines              lines said twice, labels of controls, long quotes of what stands above, what follows an article
//! template           what other pages of the site have, too
//! select             the caller's CSS selectors
//! markdown, clean_html, links, images, metadata, structured, media, embedded     what is made of the tree
//! signals            whether scripts make the page
//! things, goods      what the page describes as data; prices and the like
//! product, menu      the product that the page offers, the menu that it shows
//! extractor          what somebody else has named, by selectors and transformations
//! outline, sketch    a page's markup in little room; what a page is built like
//! feed               RSS and Atom, which do not go through the tree
//! ```

pub mod charset;

mod about;
mod address;
mod clean_html;
mod copies;
mod digest;
mod embedded;
pub mod extractor;
pub mod feed;
mod filter;
pub mod goods;
mod guard;
mod images;
mod lines;
mod links;
mod markdown;
mod marks;
mod markup;
mod measure;
pub mod media;
pub mod menu;
mod metadata;
mod more;
mod options;
mod outline;
pub mod product;
mod related;
mod scope;
mod select;
mod shop;
mod signals;
mod sketch;
mod structured;
pub mod template;
mod things;
mod tokens;
mod tree;

pub use metadata::refresh_to;
pub use sketch::Sketch;

use std::cell::OnceCell;
use std::sync::Arc;

use address::Addresses;
use measure::Measures;
use tree::Dom;

/// Visible text below which content hidden in scripts is looked for, characters.
const LITTLE_TEXT: u32 = 200;

/// What is said of a rendered page without text.
pub const EMPTY_RENDERED: &str = "The page is still empty after rendering: its scripts may have failed, or need longer \
    (waitFor).";

/// One fetched page.
#[derive(Clone, Copy, Debug)]
pub struct PageInput<'a> {
    /// Address after redirects: what relative references are relative to.
    pub url: &'a url::Url,
    /// Decoded text, see [`charset::decode`].
    pub html: &'a str,
    /// It came from a browser: `noscript` is then not part of the page.
    pub rendered: bool,
}

/// What to make of a page.
#[derive(Clone, Debug, Default)]
pub struct ExtractOptions {
    /// Make markdown.
    pub markdown: bool,
    /// Make cleaned HTML.
    pub html: bool,
    /// List the links.
    pub links: bool,
    /// List the images.
    pub images: bool,
    /// Values of attributes to read.
    pub attributes: Vec<AttributeSelector>,
    /// Look for a sound, a film.
    pub media: bool,
    /// Gather what the page says of itself as data.
    pub structured: bool,
    /// Look for a product.
    pub product: bool,
    /// Look for a menu.
    pub menu: bool,
    /// Leave what surrounds the main content out of markdown and HTML.
    pub only_main_content: bool,
    /// Keep only elements that match one of these CSS selectors; empty: all.
    pub include_tags: Vec<String>,
    /// Leave out elements that match one of these CSS selectors.
    pub exclude_tags: Vec<String>,
    /// Replace `data:` images in markdown by a placeholder.
    pub remove_base64_images: bool,
    /// Leave out advertisements and consent banners.
    pub block_ads: bool,
    /// What is known of the site's pages: what most of them have is left out of the main content.
    pub site: Option<Arc<template::Site>>,
    /// Say what others of the site's pages are compared with.
    pub blocks: bool,
}

impl ExtractOptions {
    /// Whether the caller has said which elements count.
    fn chooses(&self) -> bool {
        !self.include_tags.is_empty() || !self.exclude_tags.is_empty()
    }
}

/// One attribute of the elements that a CSS selector chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeSelector {
    /// One that does not parse chooses nothing, and [`Extracted::warning`] names it.
    pub selector: String,
    /// In any case.
    pub attribute: String,
}

/// What was made of a page; a field is `Some` if it was asked for.
#[derive(Clone, Debug)]
pub struct Extracted {
    /// GitHub-flavoured markdown, ending in a newline unless empty.
    pub markdown: Option<String>,
    /// A document without scripts and styles, addresses absolute.
    pub html: Option<String>,
    /// Absolute URLs of all links of the whole page, in order, without repeats.
    pub links: Option<Vec<String>>,
    /// Absolute URLs of all images of the whole page, in order, without repeats.
    pub images: Option<Vec<String>>,
    /// For each of [`ExtractOptions::attributes`], in their order, the values as written, in document order, repeats
    /// included.
    pub attributes: Vec<Vec<String>>,
    /// What the page offers, when it was looked for.
    pub media: media::Offers,
    /// What the page says about itself: strings, or arrays of strings for what is repeated. Never a key that only
    /// Weir's API writes (`statusCode`, `numPages` and the like), whatever the page calls its `meta` elements.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// JSON-LD, microdata and OpenGraph, where the page has any.
    pub structured: Option<serde_json::Value>,
    /// The product that the page offers, where it was looked for and is there.
    pub product: Option<product::Product>,
    /// The menu that the page shows, where it was looked for and is there.
    pub menu: Option<menu::Menu>,
    /// What others of the site's pages are compared with, where it was asked for and the main content was made.
    pub blocks: Option<template::Blocks>,
    /// Characters that were left out because most pages of the site have them.
    pub repeated: u32,
    /// The same as [`Page::signals`].
    pub signals: PageSignals,
    /// Something a reader of the result should know, in a sentence.
    pub warning: Option<String>,
}

/// A cheap look at a page.
#[derive(Clone, Debug)]
pub struct PageSignals {
    /// Visible text of the body, characters without whitespace.
    pub text_chars: usize,
    /// Inline script on the page, bytes.
    pub script_bytes: usize,
    /// The content is likely made by scripts and not in this HTML.
    pub looks_script_rendered: bool,
    /// There is nothing to read on it, or only the promise of something.
    pub says_nothing: bool,
    /// Seconds and target of a `meta` refresh.
    pub meta_refresh: Option<(u32, url::Url)>,
    /// The page's own idea of its address.
    pub canonical: Option<url::Url>,
}

/// A page read once. Not `Send`: make it and use it on one thread.
#[derive(Debug)]
pub struct Page {
    dom: Dom,
    measures: Measures,
    addresses: Addresses,
    url: url::Url,
    rendered: bool,
    discussion: bool,
    script_bytes: usize,
    cut: bool,
    /// What was said of it, once it was asked for.
    signals: OnceCell<PageSignals>,
}

/// Reads a page.
pub fn parse(input: &PageInput<'_>) -> Page {
    let parsed = guard::parse_as(input.html, input.rendered);
    let addresses = Addresses::of_page(&parsed.dom, input.url);
    let measures = Measures::of(&parsed.dom, input.rendered);
    let discussion = filter::is_discussion(&parsed.dom, input.url.as_str());
    Page {
        dom: parsed.dom,
        measures,
        addresses,
        url: input.url.clone(),
        rendered: input.rendered,
        discussion,
        script_bytes: parsed.script_bytes,
        cut: parsed.cut,
        signals: OnceCell::new(),
    }
}

/// Reads a page and makes what is asked for.
pub fn extract(input: &PageInput<'_>, options: &ExtractOptions) -> Extracted {
    parse(input).extract(options)
}

impl Page {
    /// Says what kind of page this is.
    pub fn signals(&self) -> &PageSignals {
        self.signals.get_or_init(|| PageSignals {
            text_chars: self.measures.total() as usize,
            script_bytes: self.script_bytes,
            looks_script_rendered: signals::looks_script_rendered(&self.dom, &self.measures),
            says_nothing: self.says_nothing(),
            meta_refresh: metadata::refresh(&self.dom, &self.addresses),
            canonical: metadata::canonical(&self.dom, &self.addresses),
        })
    }

    /// Makes what is asked for.
    pub fn extract(&self, options: &ExtractOptions) -> Extracted {
        let mut warning =
            self.cut.then(|| "The page is too large or too deeply nested; only a part of it was read.".to_owned());
        let (mut markdown, mut html, mut blocks, mut repeated) = (None, None, None, 0);
        if options.markdown || options.html {
            let mut part = self.part(options, options.only_main_content);
            if options.only_main_content
                && part.is_empty
                && self.measures.total() > 0
                && !filter::is_only_around(&self.dom, &self.measures)
            {
                part = self.part(options, false);
            }
            (blocks, repeated) = (part.blocks.take(), part.repeated);
            if options.markdown {
                let (text, full) = self.markdown(options, &part);
                if full {
                    warning.get_or_insert_with(|| "The markdown was cut at its size limit.".to_owned());
                }
                markdown = Some(text);
            }
            if options.html {
                let (text, full) = clean_html::write(&self.dom, &self.addresses, &part.dropped, &part.roots);
                if full {
                    warning.get_or_insert_with(|| "The HTML was cut at its size limit.".to_owned());
                }
                html = Some(text);
            }
        }
        let (attributes, told) = select::attributes(&self.dom, &options.attributes);
        let chosen = select::complaint(options.include_tags.iter().chain(&options.exclude_tags));
        let is_read = options.markdown || options.html;
        let emptiness = is_read.then(|| self.emptiness(options, markdown.as_deref())).flatten().map(str::to_owned);
        let told: Vec<String> = [warning, told, chosen, emptiness].into_iter().flatten().collect();
        let warning = (!told.is_empty()).then(|| told.join(" "));
        let mut metadata = metadata::of_page(&self.dom, &self.addresses);
        about::complete(&self.dom, &self.url, &mut metadata);
        let structured =
            options.structured.then(|| structured::of_page(&self.dom, &self.addresses, &metadata)).flatten();
        let signals = self.signals().clone();
        let urls = [Some(&self.url), signals.canonical.as_ref()];
        let product = options.product.then(|| product::of_page(&self.dom, &self.addresses, &metadata, urls)).flatten();
        let menu = options.menu.then(|| menu::of_page(&self.dom, &self.addresses, &metadata, &self.url)).flatten();
        Extracted {
            markdown,
            html,
            attributes,
            media: if options.media { media::offers(&self.dom, &self.addresses) } else { media::Offers::default() },
            links: options.links.then(|| links::list(&self.dom, &self.addresses)),
            images: options.images.then(|| images::list(&self.dom, &self.addresses)),
            metadata,
            structured,
            product,
            menu,
            blocks,
            repeated,
            signals,
            warning,
        }
    }

    fn says_nothing(&self) -> bool {
        match self.measures.total() {
            0 => !signals::has_media(&self.dom, 0),
            _ => self.rendered && signals::is_only_placeholder(&self.dom, &self.measures),
        }
    }

    /// Why there is nothing to read, where that is so: a page that answers well and has no text looks like one that was
    /// read well.
    fn emptiness(&self, options: &ExtractOptions, markdown: Option<&str>) -> Option<&'static str> {
        // What shows something without words is in the markdown, where that was made.
        let is_blank = markdown.map_or_else(|| !signals::has_media(&self.dom, 0), |text| text.trim().is_empty());
        let is_waiting = signals::is_only_placeholder(&self.dom, &self.measures);
        match (self.measures.total(), self.rendered) {
            (0, true) if is_blank => Some(EMPTY_RENDERED),
            (0, false) if is_blank => Some("The page is empty: what the site sent has no text."),
            (1.., true) if is_waiting => Some(EMPTY_RENDERED),
            (1.., _) if is_blank && markdown.is_some() && options.chooses() => {
                Some("Nothing of the page is left: includeTags and excludeTags leave no text of it.")
            }
            (1.., _) if is_blank && markdown.is_some() && options.only_main_content => {
                Some("The page shows nothing but its foot and menus; onlyMainContent=false gives those.")
            }
            _ => None,
        }
    }

    /// The nodes that markdown and HTML are made of.
    fn part(&self, options: &ExtractOptions, main_only: bool) -> Part {
        let (dom, m) = (&self.dom, &self.measures);
        let mut dropped = m.invisible.clone();
        let [included, excluded] = select::matches(dom, [&options.include_tags, &options.exclude_tags]);
        for i in excluded {
            dropped[i] = true;
        }
        let chosen = !options.include_tags.is_empty();
        let main_only = main_only && !chosen;
        let one_product = main_only && shop::is_one_product(dom);
        let rules = filter::Rules {
            main_only,
            ads: options.block_ads && !chosen,
            discussion: self.discussion,
            product: one_product || main_only && shop::has_one_product(dom),
        };
        let is_article = filter::apply(dom, m, rules, &mut dropped);
        let mut blocks = None;
        let mut repeated = 0;
        let roots = if chosen {
            outermost(dom, &included)
        } else {
            if main_only {
                scope::narrow(dom, m, self.discussion, &mut dropped);
                if rules.product || !self.discussion && (!is_article || shop::shows_prices(dom, m, &dropped)) {
                    shop::leave_out_reviews(dom, m, rules.product, &mut dropped);
                }
                if one_product {
                    shop::apply(dom, m, &mut dropped);
                }
                if is_article {
                    related::leave_out(dom, m, &mut dropped);
                }
                // Afterwards, as less text around a short page would let the scope close in on a part of it.
                marks::apply(dom, m, &self.addresses, &mut dropped);
                copies::leave_out(dom, m, &mut dropped);
                lines::leave_out(dom, m, self.discussion, &mut dropped);
                (blocks, repeated) = self.leave_out_template(options, &mut dropped);
            }
            vec![0]
        };
        let is_empty = !chosen && !scope::holds_text(dom, &dropped, &roots);
        Part { dropped, roots, is_empty, blocks, repeated }
    }

    /// Adds to `dropped` what most pages of the site have. Returns what others are compared with, and how many characters
    /// that was.
    fn leave_out_template(&self, options: &ExtractOptions, dropped: &mut [bool]) -> (Option<template::Blocks>, u32) {
        let known = options.site.as_deref().filter(|site| site.is_of_use());
        if !options.blocks && known.is_none() {
            return (None, 0);
        }
        let (dom, m) = (&self.dom, &self.measures);
        let runs = template::Runs::of(dom, m, dropped);
        let Some(blocks) = runs.blocks(dom, m, &self.url) else { return (None, 0) };
        let repeated = known.map_or(0, |site| template::leave_out(dom, m, (&runs, &blocks), site, dropped));
        (options.blocks.then_some(blocks), repeated)
    }

    fn markdown(&self, options: &ExtractOptions, part: &Part) -> (String, bool) {
        let job = markdown::Job {
            dom: &self.dom,
            addresses: &self.addresses,
            dropped: &part.dropped,
            remove_base64_images: options.remove_base64_images,
        };
        let (mut text, full) = markdown::convert(&job, &part.roots);
        if !self.rendered
            && self.measures.total() < LITTLE_TEXT
            && options.include_tags.is_empty()
            && let Some(found) = embedded::content(&self.dom)
            && measure::count(&found) > 2 * self.measures.total()
        {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&found);
        }
        (text, full)
    }
}

struct Part {
    dropped: Vec<bool>,
    roots: Vec<usize>,
    is_empty: bool,
    blocks: Option<template::Blocks>,
    repeated: u32,
}

/// Of nodes in document order, those not inside another of them.
fn outermost(dom: &Dom, nodes: &[usize]) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    for &i in nodes {
        if out.last().is_none_or(|&l| i >= dom.end(l)) {
            out.push(i);
        }
    }
    out
}

#[cfg(test)]
mod tests;
