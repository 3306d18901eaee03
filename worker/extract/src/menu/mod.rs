//! The menu of a restaurant: the format `menu`.
//!
//! It is read from what the page says of itself for machines (JSON-LD, then microdata, RDFa, the state that its scripts
//! keep), and at last from what it shows: dishes with a name and a price under headings. The first place that tells of a
//! dish counts.

mod described;
mod shown;
mod stored;

use serde_json::{Map, Value};

use super::address::Addresses;
use super::goods::amount;
use super::goods::{Availability, Image, Price};
use super::things::{Things, items, linked, plain, state};
use super::tree::Dom;

/// Most sections, and most dishes of all sections together.
const MAX_SECTIONS: usize = 300;
const MAX_DISHES: usize = 3_000;
/// What a dish of a section without a name stands under.
const UNNAMED: &str = "Menu";

/// The menu of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Menu {
    /// How sure it is that this is a menu, 0 to 1: by the place that it was read from.
    pub confidence: f64,
    pub merchant: Merchant,
    /// ISO 4217, where the page names one currency.
    pub currency: Option<String>,
    /// Each with a dish at least.
    pub sections: Vec<Section>,
    /// The page's address.
    pub source_url: String,
}

/// Whose menu it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merchant {
    pub name: String,
    /// A type of schema.org, such as `Restaurant`.
    pub kind: Option<String>,
    /// Its address in one line.
    pub location: Option<String>,
}

/// A part of a menu.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    pub name: String,
    pub description: Option<String>,
    pub dishes: Vec<Dish>,
}

/// A dish or a drink.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dish {
    pub name: String,
    pub description: Option<String>,
    pub images: Vec<Image>,
    pub price: Option<Price>,
    pub availability: Availability,
    /// Diets that it suits, as the page names them.
    pub dietary: Vec<String>,
    /// Kilocalories.
    pub calories: Option<f64>,
    /// The merchant's own number of it.
    pub id: Option<String>,
    pub url: Option<String>,
}

/// What the readers of all places need of the page.
struct Page<'a> {
    dom: &'a Dom,
    addresses: &'a Addresses,
    metadata: &'a Map<String, Value>,
}

/// The parts of a menu as they are found, within bounds.
#[derive(Default)]
struct Found {
    merchant: Option<Merchant>,
    sections: Vec<Section>,
    dishes: usize,
}

impl Found {
    /// Adds a section with its dishes; one without any is none.
    fn add(&mut self, name: Option<String>, description: Option<String>, mut dishes: Vec<Dish>) {
        dishes.truncate(MAX_DISHES - self.dishes);
        if dishes.is_empty() || self.sections.len() >= MAX_SECTIONS {
            return;
        }
        self.dishes += dishes.len();
        self.sections.push(Section { name: name.unwrap_or_else(|| UNNAMED.to_owned()), description, dishes });
    }
}

/// The menu of a page, if it shows one. `url`: the page's address.
pub fn of_page(dom: &Dom, addresses: &Addresses, metadata: &Map<String, Value>, url: &url::Url) -> Option<Menu> {
    let page = Page { dom, addresses, metadata };
    let of_things = |roots: Vec<Value>| described::menu(&page, &Things::new(&roots));
    let sources: [(f64, &dyn Fn() -> Found); 5] = [
        (1.0, &|| of_things(linked::read(dom).collect())),
        (1.0, &|| of_things(items::read(dom, addresses, &items::MICRODATA))),
        (1.0, &|| of_things(items::read(dom, addresses, &items::RDFA))),
        (0.8, &|| stored::menu(&page, &state::read(dom))),
        (0.6, &|| shown::menu(&page)),
    ];
    // A restaurant may be described in one place, and its dishes in another one.
    let mut merchant = None;
    for (confidence, source) in sources {
        let found = source();
        merchant = merchant.or(found.merchant);
        if !found.sections.is_empty() {
            let merchant = merchant.unwrap_or_else(|| page.merchant(url));
            let currency = currency(&found.sections);
            return Some(Menu {
                confidence,
                merchant,
                currency,
                sections: found.sections,
                source_url: url.to_string(),
            });
        }
    }
    None
}

/// The currency of all prices, if it is one.
fn currency(sections: &[Section]) -> Option<String> {
    let mut all = sections.iter().flat_map(|section| &section.dishes).filter_map(|dish| dish.price.as_ref());
    let first = all.next()?.currency.clone()?;
    all.all(|price| price.currency.as_ref() == Some(&first)).then_some(first)
}

impl Page<'_> {
    /// Whose page it is, by what it calls its site and itself.
    fn merchant(&self, url: &url::Url) -> Merchant {
        let said = |name: &str| plain(self.metadata.get(name)?.as_str()?, super::goods::MAX_NAME);
        let name = ["og:site_name", "ogSiteName", "title", "og:title", "ogTitle"].iter().find_map(|name| said(name));
        Merchant { name: name.unwrap_or_else(|| url.host_str().unwrap_or_default().to_owned()), ..Merchant::default() }
    }
}

/// Kilocalories in a text such as `450 calories` or `450 kcal`.
fn calories(text: &str) -> Option<f64> {
    let folded = text.to_ascii_lowercase();
    let is_energy = folded.contains("cal") || text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    amount::read(text).filter(|calories| is_energy && *calories < 100_000.0)
}

#[cfg(test)]
mod tests;
