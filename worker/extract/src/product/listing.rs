//! Pages that list goods: categories, results of a search, front pages of shops. Some of them say that they are a product, so
//! that search engines show stars beside them; none of what they list is theirs.

use std::collections::HashSet;

use super::shown::is_price;
use super::{Page, folded};
use crate::goods::{self, MAX_NAME};
use crate::things::{Thing, Things, is_a};
use crate::tree::Tag;

/// Cards with goods, from which on a page may be a list of them. Pages of a product have some, too: what else there is.
pub const MANY: usize = 8;
/// Offers that lead to other pages, from which on they are other goods and not forms of one.
const MANY_OFFERS: usize = 3;
/// Prices that are looked at, levels of elements around one that are, and nodes of a card.
pub const MAX_PRICES: usize = 400;
const MAX_LEVELS: usize = 8;
const MAX_NODES: usize = 300;

/// What makes a thing for sale known wherever it is sold.
const IDENTITIES: [&str; 10] =
    ["sku", "mpn", "gtin", "gtin8", "gtin12", "gtin13", "gtin14", "isbn", "productID", "serialNumber"];

/// Whether the page says of itself that it is a collection.
pub fn is_declared(things: &Things<'_>) -> bool {
    things.top().into_iter().any(|thing| is_a(thing, &["CollectionPage", "SearchResultsPage"]))
}

/// How many goods the page shows in cards: a price with a picture or a heading, and a link to another page.
pub fn cards(page: &Page<'_>) -> usize {
    let prices = (0..page.dom.len()).filter(|&i| is_price(page.dom, i)).take(MAX_PRICES);
    prices.filter_map(|i| card(page, i)).collect::<HashSet<String>>().len()
}

/// Where the card leads to that an element stands in; `None`: it stands in none.
pub fn card(page: &Page<'_>, i: usize) -> Option<String> {
    let dom = page.dom;
    for at in std::iter::once(i).chain(dom.ancestors(i)).take(MAX_LEVELS) {
        let inside = at..dom.end(at);
        // What holds the heading of the page is the page.
        if inside.len() > MAX_NODES || inside.clone().any(|j| dom.tag(j) == Tag::H1) {
            return None;
        }
        let has_face = inside.clone().any(|j| {
            let tag = dom.tag(j);
            tag == Tag::Img || tag.heading_level().is_some()
        });
        if !has_face {
            continue;
        }
        let around = dom.ancestors(at).take(2).filter(|&j| dom.tag(j) == Tag::A);
        let links = inside.filter(|&j| dom.tag(j) == Tag::A).chain(around);
        let mut targets = links.filter_map(|j| goods::web_address(dom.attr_named(j, "href")?, page.addresses));
        if let Some(target) = targets.find(|url| !page.is_here(url)) {
            return Some(target);
        }
    }
    None
}

/// Whether a described product is a list of goods in truth: what it offers are other goods on other pages, or it has
/// nothing but a range of prices, on a page full of goods.
pub fn is_list<'a>(page: &Page<'_>, things: &Things<'a>, thing: &'a Thing) -> bool {
    let offers = things.things(thing, "offers");
    let listed: Vec<&Thing> = offers.iter().flat_map(|offer| things.things(offer, "offers")).collect();
    let is_range = offers.iter().any(|offer| is_a(offer, &["AggregateOffer"]));
    if listed.is_empty() && is_range {
        let is_known = IDENTITIES.iter().any(|name| things.text(thing, name, MAX_NAME).is_some());
        return !is_known && page.cards() >= MANY;
    }
    let all = if listed.is_empty() { offers } else { listed };
    is_of_others(page, things, thing, &all)
}

/// Whether most offers are of something else than the thing: they lead to other pages of the site, and neither their names
/// nor these pages' are the thing's. Offers of several sellers are of one thing.
fn is_of_others<'a>(page: &Page<'_>, things: &Things<'a>, thing: &'a Thing, offers: &[&'a Thing]) -> bool {
    let title = folded(&things.text(thing, "name", MAX_NAME).unwrap_or_default());
    let (mut paths, mut sellers, mut others) = (HashSet::new(), HashSet::new(), 0);
    for offer in offers {
        let item = things.things(offer, "itemOffered").first().copied();
        let said = |name: &str| {
            let of_offer = things.text(offer, name, 4_000);
            of_offer.or_else(|| item.and_then(|item| things.text(item, name, 4_000)))
        };
        sellers.extend(said("seller").or_else(|| said("offeredBy")));
        let Some(url) = said("url").and_then(|url| goods::web_address(&url, page.addresses)) else { continue };
        if page.is_here(&url) || !page.is_same_host(&url) {
            continue;
        }
        let Some(path) = path(&url) else { continue };
        let is_its = |text: &str| {
            let text = folded(text);
            !text.is_empty() && (text.contains(&title) || title.contains(&text))
        };
        let is_same = is_its(path) || said("name").is_some_and(|name| is_its(&name));
        if paths.insert(path.to_owned()) && !is_same {
            others += 1;
        }
    }
    sellers.len() < 2 && others >= MANY_OFFERS && others * 2 > offers.len()
}

/// The path of an address.
pub fn path(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let rest = rest.get(rest.find('/')?..)?;
    Some(rest[..rest.find(['?', '#']).unwrap_or(rest.len())].trim_end_matches('/'))
}
