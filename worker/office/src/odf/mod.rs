//! What the formats of OpenDocument share: the check for encryption, styles, and text.

pub mod text;

use std::collections::HashMap;

use crate::archive::Archive;
use crate::html::Style as Look;
use crate::text::decode_xml;
use crate::word::depth_of_style;
use crate::xml::{Element, Tree};
use crate::{ConvertError, Converted, Limits, properties};

/// How many styles one may be based on, through others.
const MAX_BASES: usize = 20;
/// Longest name of a style, bytes; names are looked up for every paragraph.
const MAX_NAME: usize = 256;

/// What a package says of itself.
///
/// # Errors
/// When it is encrypted, or damaged.
pub fn open(archive: &mut Archive<'_>, limits: &Limits) -> Result<Converted, ConvertError> {
    if let Some(source) = archive.read("META-INF/manifest.xml")?.map(decode_xml)
        && source.contains("encryption-data")
    {
        return Err(ConvertError::Encrypted);
    }
    let meta = archive.read("meta.xml")?;
    Ok(properties::of_odf(meta, limits))
}

#[derive(Debug, Default)]
struct Style {
    base: Option<String>,
    display_name: String,
    outline: Option<usize>,
    master: Option<String>,
    bold: Option<bool>,
    italic: Option<bool>,
    strike: Option<bool>,
    hidden: Option<bool>,
    place: Option<String>,
    is_hidden_page: bool,
}

/// The styles of a document, and its lists'.
#[derive(Debug, Default)]
pub struct Styles {
    styles: HashMap<String, Style>,
    /// Whether each level of a list is numbered, and where it begins.
    lists: HashMap<String, Vec<(bool, u64)>>,
}

impl Styles {
    /// Adds what a part says in its styles.
    pub fn add(&mut self, tree: &Tree<'_>) {
        for group in tree.root().children().filter(|group| matches!(group.name(), "styles" | "automatic-styles")) {
            for element in group.children() {
                let Some(name) = short(element, "name") else { continue };
                match element.name() {
                    "style" => {
                        self.styles.insert(name, style(element));
                    }
                    "list-style" => {
                        self.lists.insert(name, levels(element));
                    }
                    _ => {}
                }
            }
        }
    }

    /// A style and those it is based on, nearest first.
    fn chain(&self, name: &str) -> impl Iterator<Item = &Style> {
        let first = self.styles.get(name);
        std::iter::successors(first, |style| self.styles.get(style.base.as_ref()?)).take(MAX_BASES)
    }

    /// Whether a level of a list is numbered, and where it begins.
    pub fn level(&self, list: &str, level: usize) -> (bool, u64) {
        self.lists.get(list).and_then(|levels| levels.get(level)).copied().unwrap_or((false, 1))
    }

    /// How text in a span looks within what is around it; `None` if it is hidden.
    pub fn of_text(&self, name: &str, around: &Look) -> Option<Look> {
        let pick = |what: fn(&Style) -> Option<bool>| self.chain(name).find_map(what);
        if pick(|style| style.hidden).unwrap_or(false) {
            return None;
        }
        let place = self.chain(name).find_map(|style| style.place.as_deref());
        Some(Look {
            bold: pick(|style| style.bold).unwrap_or(around.bold),
            italic: pick(|style| style.italic).unwrap_or(around.italic),
            strike: pick(|style| style.strike).unwrap_or(around.strike),
            sup: place.map_or(around.sup, |place| place == "super"),
            sub: place.map_or(around.sub, |place| place == "sub"),
            link: around.link.clone(),
        })
    }

    /// What an automatic style of a paragraph adds to a named one by hand.
    pub fn of_paragraph(&self, name: &str) -> Look {
        let own = self.styles.get(name).filter(|style| style.display_name.is_empty() && is_automatic(name));
        Look {
            bold: own.and_then(|style| style.bold).unwrap_or(false),
            italic: own.and_then(|style| style.italic).unwrap_or(false),
            strike: own.and_then(|style| style.strike).unwrap_or(false),
            ..Look::default()
        }
    }

    /// The level of headings of a style.
    pub fn heading_level(&self, name: &str) -> Option<usize> {
        let is_title = |style: &str| style.eq_ignore_ascii_case("title");
        if is_title(name) || self.chain(name).any(|s| is_title(s.base.as_deref().unwrap_or_default())) {
            return Some(1);
        }
        let by_name = |style: &str| style.strip_prefix("Heading_20_")?.parse::<usize>().ok();
        by_name(name).or_else(|| {
            self.chain(name)
                .find_map(|style| style.outline.or_else(|| by_name(style.base.as_deref().unwrap_or_default())))
        })
    }

    /// How deep items of a style stand by its name, where their list has but one level.
    pub fn item_depth(&self, name: &str) -> Option<usize> {
        let by_name = |style: &str| depth_of_style(&style.replace("_20_", " "));
        by_name(name).or_else(|| self.chain(name).find_map(|style| by_name(style.base.as_deref()?)))
    }

    /// Whether paragraphs of a style keep their spaces.
    pub fn is_code(&self, name: &str) -> bool {
        self.named(name, "preformatted_20_text")
    }

    /// Whether paragraphs of a style are quoted.
    pub fn is_quote(&self, name: &str) -> bool {
        self.named(name, "quotations") || self.named(name, "quote")
    }

    fn named(&self, name: &str, wanted: &str) -> bool {
        name.eq_ignore_ascii_case(wanted)
            || self.chain(name).any(|style| style.base.as_ref().is_some_and(|base| base.eq_ignore_ascii_case(wanted)))
    }

    /// Whether slides of a style are not shown.
    pub fn is_hidden_page(&self, name: &str) -> bool {
        self.styles.get(name).is_some_and(|style| style.is_hidden_page)
    }

    /// The master pages that styles of paragraphs begin.
    pub fn masters(&self) -> impl Iterator<Item = &str> {
        self.styles.values().filter_map(|style| style.master.as_deref())
    }
}

/// `P12` and the like, which writers make for what is done by hand.
fn is_automatic(name: &str) -> bool {
    name.strip_prefix('P').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn short(element: Element<'_>, name: &str) -> Option<String> {
    element.attr(name).filter(|name| name.len() <= MAX_NAME).map(|name| name.into_owned())
}

fn style(element: Element<'_>) -> Style {
    let text = element.child("text-properties");
    let value = |name: &str| text.and_then(|text| text.attr(name));
    Style {
        base: short(element, "parent-style-name"),
        display_name: element.attr("display-name").map(|name| name.into_owned()).unwrap_or_default(),
        outline: element.number("default-outline-level"),
        master: short(element, "master-page-name"),
        bold: value("font-weight").map(|weight| weight == "bold" || weight.parse::<u32>().is_ok_and(|w| w >= 600)),
        italic: value("font-style").map(|style| style != "normal"),
        strike: value("text-line-through-style")
            .or_else(|| value("text-line-through-type"))
            .map(|style| style != "none"),
        hidden: text.and_then(|text| text.attr("display")).map(|display| display == "none"),
        is_hidden_page: element
            .child("drawing-page-properties")
            .and_then(|page| page.attr("visibility"))
            .is_some_and(|visibility| visibility == "hidden"),
        place: value("text-position").map(|place| {
            let first = place.split_whitespace().next().unwrap_or_default();
            match first.trim_end_matches('%').parse::<i32>() {
                Ok(percent) if percent > 0 => "super".to_owned(),
                Ok(percent) if percent < 0 => "sub".to_owned(),
                _ => first.to_owned(),
            }
        }),
    }
}

fn levels(element: Element<'_>) -> Vec<(bool, u64)> {
    let mut out = Vec::new();
    for level in element.children() {
        let Some(number) = level.number::<usize>("level").filter(|number| (1..=20).contains(number)) else { continue };
        let is_numbered = level.name() == "list-level-style-number"
            && level.attr("num-format").is_some_and(|format| !format.is_empty());
        if out.len() < number {
            out.resize(number, (false, 1));
        }
        if let Some(place) = out.get_mut(number - 1) {
            *place = (is_numbered, level.number("start-value").unwrap_or(1));
        }
    }
    out
}
