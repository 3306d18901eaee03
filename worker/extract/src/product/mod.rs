//! The product that a page offers, with its variants: the format `product`.
//!
//! It is read from what the page says of itself for machines: JSON-LD, then microdata, RDFa, the state that its scripts
//! keep, and at last the page as a reader sees it. The first place that tells of one product counts; the others only add
//! what it leaves open. A page with several products, none of which is the page's own, has none.

mod described;
mod listing;
mod shown;
mod stored;

use std::cell::OnceCell;

use serde_json::{Map, Value};

use super::address::Addresses;
use super::goods::{Availability, Image, Price};
use super::things::{Things, items, linked, state};
use super::tree::{Dom, Tag};

/// Most variants of a product.
const MAX_VARIANTS: usize = 500;
/// Most options of a variant.
const MAX_OPTIONS: usize = 20;

/// What a page offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    pub title: String,
    pub brand: Option<String>,
    pub category: Option<String>,
    /// Absolute.
    pub url: String,
    pub description: Option<String>,
    /// What can be bought of it; one where it comes in one form only.
    pub variants: Vec<Variant>,
}

/// A form in which a product can be bought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    pub id: Option<String>,
    pub sku: Option<String>,
    pub title: Option<String>,
    /// Its options, such as size and colour, by the page's names for them.
    pub values: Vec<(String, String)>,
    pub price: Option<Price>,
    /// The price before a sale.
    pub original: Option<Price>,
    pub availability: Availability,
    pub images: Vec<Image>,
}

/// What the readers of all places need of the page.
struct Page<'a> {
    dom: &'a Dom,
    addresses: &'a Addresses,
    metadata: &'a Map<String, Value>,
    /// Its address, and what it calls its address.
    urls: Vec<String>,
    /// Its headings of the first rank and its title for those who link to it.
    names: Vec<String>,
    /// Goods that it shows in cards, once they are counted.
    cards: OnceCell<usize>,
}

/// The product of a page, if there is one. `url`: the page's address; `canonical`: what the page says it is.
pub fn of_page(
    dom: &Dom,
    addresses: &Addresses,
    metadata: &Map<String, Value>,
    [url, canonical]: [Option<&url::Url>; 2],
) -> Option<Product> {
    let headings = (0..dom.len()).filter(|&i| dom.tag(i) == Tag::H1).take(5).map(|i| dom.text_of(i));
    let titles = ["og:title", "ogTitle"].iter().filter_map(|key| metadata.get(*key)?.as_str().map(str::to_owned));
    let page = Page {
        dom,
        addresses,
        metadata,
        urls: [canonical, url].into_iter().flatten().map(|url| url.as_str().to_owned()).collect(),
        names: headings.chain(titles).map(|name| folded(&name)).filter(|name| !name.is_empty()).collect(),
        cards: OnceCell::new(),
    };
    let said: Vec<Value> = linked::read(dom).collect();
    if listing::is_declared(&Things::new(&said)) {
        return None;
    }
    let of_things = |roots: Vec<Value>| described::product(&page, &Things::new(&roots));
    let sources: [&dyn Fn() -> Option<Product>; 5] = [
        &|| described::product(&page, &Things::new(&said)),
        &|| of_things(items::read(dom, addresses, &items::MICRODATA)),
        &|| of_things(items::read(dom, addresses, &items::RDFA)),
        &|| stored::product(&page, &state::read(dom)),
        &|| shown::product(&page),
    ];
    let mut found: Option<Product> = None;
    for source in sources {
        match (&mut found, source()) {
            (Some(product), Some(more)) => product.complete(more),
            (None, more) => found = more,
            _ => {}
        }
    }
    found
}

/// A name without its spelling, to be compared.
fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(500).collect()
}

impl Page<'_> {
    /// The page's own address.
    fn url(&self) -> String {
        self.urls.first().cloned().unwrap_or_default()
    }

    /// Whether an address is the page's, a variant's choice aside.
    fn is_here(&self, url: &str) -> bool {
        let path = |url: &str| {
            let end = url.find(['?', '#']).unwrap_or(url.len());
            url[..end].trim_end_matches('/').split_once("://").map(|(_, rest)| rest.to_owned())
        };
        self.urls.iter().any(|here| path(here).is_some() && path(here) == path(url))
    }

    /// Whether an address is one of the page's host, `www.` aside.
    fn is_same_host(&self, url: &str) -> bool {
        let host = |url: &str| {
            let (_, rest) = url.split_once("://")?;
            let host = rest.split(['/', '?', '#']).next()?;
            Some(host.trim_start_matches("www.").to_ascii_lowercase())
        };
        self.urls.iter().any(|here| host(here).is_some() && host(here) == host(url))
    }

    /// How many goods it shows in cards.
    fn cards(&self) -> usize {
        *self.cards.get_or_init(|| listing::cards(self))
    }

    /// Whether something that is at `url` by its own word is out of place on a page full of goods.
    fn is_listed(&self, url: Option<&str>, name: &str) -> bool {
        let Some(path) = url.and_then(listing::path) else { return false };
        let (at, name) = (|here: &String| listing::path(here) == Some(path), folded(name));
        let is_near = |own: &String| own.contains(&name) || name.contains(own.as_str());
        !self.urls.iter().any(at) && !self.names.iter().any(is_near) && self.cards() >= listing::MANY
    }

    /// Whether a name is in the page's headings.
    fn is_called(&self, name: &str) -> bool {
        let name = folded(name);
        !name.is_empty() && self.names.contains(&name)
    }

    /// What a `meta` element says.
    fn meta(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| match self.metadata.get(*name)? {
            Value::String(text) => Some(text.as_str()),
            Value::Array(list) => list.first()?.as_str(),
            _ => None,
        })
    }

    /// The one among several that is the page's: by its address, by its name, or because there is no other. Several that
    /// fit count where they have one name: then they are told twice.
    fn own<T>(
        &self,
        mut all: Vec<T>,
        address: impl Fn(&T) -> Option<String>,
        name: impl Fn(&T) -> String,
    ) -> Option<T> {
        let one_of = |fits: &dyn Fn(&T) -> bool| {
            let mut fitting = all.iter().enumerate().filter(|(_, one)| fits(one));
            let (at, first) = fitting.next()?;
            fitting.all(|(_, other)| folded(&name(other)) == folded(&name(first))).then_some(at)
        };
        let here = one_of(&|one| address(one).is_some_and(|url| self.is_here(&url)));
        let at = here.or_else(|| one_of(&|one| self.is_called(&name(one)))).or_else(|| one_of(&|_| true))?;
        let one = &all[at];
        if self.is_listed(address(one).as_deref(), &name(one)) {
            return None;
        }
        Some(all.swap_remove(at))
    }
}

impl Product {
    /// Adds what another place of the page knows of the same product.
    fn complete(&mut self, other: Self) {
        let (mine, others) = (folded(&self.title), folded(&other.title));
        if !mine.contains(&others) && !others.contains(&mine) {
            return;
        }
        self.brand = self.brand.take().or(other.brand);
        self.category = self.category.take().or(other.category);
        self.description = self.description.take().or(other.description);
        let known = self.variants.iter().chain(&other.variants).filter_map(|variant| variant.price.as_ref());
        let currency = known.clone().find_map(|price| price.currency.clone());
        let images = self.variants.iter().find_map(|variant| Some(&variant.images).filter(|list| !list.is_empty()));
        let images = images.cloned();
        let has_no_price = self.variants.iter().all(|variant| variant.price.is_none());
        let is_finer = self.variants.len() < 2 && other.variants.len() > 1;
        if is_finer || has_no_price && other.variants.iter().any(|variant| variant.price.is_some()) {
            self.variants = other.variants;
            if let (Some(images), [only]) = (images, self.variants.as_mut_slice())
                && only.images.is_empty()
            {
                only.images = images;
            }
        }
        for variant in &mut self.variants {
            for price in [&mut variant.price, &mut variant.original].into_iter().flatten() {
                price.currency = price.currency.take().or_else(|| currency.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
