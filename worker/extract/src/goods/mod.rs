//! What a product and a dish have in common: prices, availability, pictures. Nothing here is made up: an amount whose
//! currency the page does not tell has none.

pub mod amount;

use serde_json::Value;

use crate::address::Addresses;
use crate::things::{Thing, Things, scalar, term};

/// Longest name or short text, bytes.
pub const MAX_NAME: usize = 500;
/// Longest description, bytes.
pub const MAX_TEXT: usize = 10_000;
/// Most pictures of one thing.
pub const MAX_IMAGES: usize = 30;

/// An amount of money.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// In the currency's main unit.
    pub amount: f64,
    /// ISO 4217, where the page says it.
    pub currency: Option<String>,
    /// As the page writes it, where that is more than the number.
    pub formatted: Option<String>,
}

/// Whether a thing can be had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Availability {
    /// It can be had now. Without any word of it: it is offered.
    pub in_stock: bool,
    /// What the page says.
    pub text: Option<String>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Absolute, of http or https.
    pub url: String,
    /// What it shows, where the page says it.
    pub alt: Option<String>,
}

/// What an offer asks, and what was asked before where it is reduced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    pub price: Option<Price>,
    pub original: Option<Price>,
}

impl Asked {
    /// A price before the sale counts where it was higher.
    pub fn new(price: Option<Price>, original: Option<Price>) -> Self {
        let now = price.as_ref().map_or(f64::INFINITY, |price| price.amount);
        Self { original: original.filter(|original| original.amount > now), price }
    }
}

/// The price that a value says: a number, or a text with one number in it.
pub fn price_of(value: &Value, currency: Option<&str>) -> Option<Price> {
    let text = scalar(value, 100)?;
    let amount = match value {
        Value::Number(number) => number.as_f64().filter(|amount| amount::is_sane(*amount))?,
        _ => amount::read(&text)?,
    };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let currency = currency.and_then(amount::currency).or_else(|| amount::currency(&text));
    Some(Price { amount, currency, formatted: (!is_number && value.is_string()).then_some(text) })
}

/// What an offer of schema.org asks. `around`: the offer it is part of.
pub fn asked<'a>(things: &Things<'a>, offer: &'a Thing, around: Option<&'a Thing>) -> Asked {
    let specifications = things.things(offer, "priceSpecification");
    let currency = [Some(offer), around]
        .into_iter()
        .flatten()
        .chain(specifications.iter().copied())
        .find_map(|thing| things.text(thing, "priceCurrency", 20));
    let currency = currency.as_deref();
    let said = |thing: &'a Thing, name: &str| things.first(thing, name, |value| price_of(value, currency));
    let is_former = |thing: &&'a Thing| {
        let kind = things.text(thing, "priceType", 100).unwrap_or_default();
        ["ListPrice", "StrikethroughPrice", "RegularPrice", "SRP", "MSRP"].contains(&term(&kind))
    };
    let (former, current): (Vec<&'a Thing>, Vec<&'a Thing>) = specifications.iter().copied().partition(is_former);
    let now = said(offer, "price").or_else(|| current.iter().find_map(|thing| said(thing, "price")));
    let original = former.iter().find_map(|thing| said(thing, "price"));
    Asked::new(now.or_else(|| range(things, offer, currency)), original)
}

/// The lowest price of a range, written as the range.
fn range<'a>(things: &Things<'a>, offer: &'a Thing, currency: Option<&str>) -> Option<Price> {
    let said = |name: &str| things.first(offer, name, |value| price_of(value, currency));
    let low = said("lowPrice")?;
    let high = said("highPrice").filter(|high| high.amount > low.amount);
    let formatted = match high {
        Some(high) => Some(format!("{}–{}", low.amount, high.amount)),
        None => low.formatted.clone(),
    };
    Some(Price { formatted, ..low })
}

/// What a word of schema.org, or of a shop, says of whether a thing can be had.
pub fn availability(word: Option<&str>) -> Availability {
    let Some(word) = word.map(str::trim).filter(|word| !word.is_empty()) else {
        return Availability { in_stock: true, text: None };
    };
    let word = if word.contains("schema.org/") || word.starts_with("schema:") { term(word) } else { word };
    let folded: String = word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let is_there = ["instock", "limitedavailability", "onlineonly", "instoreonly", "available", "lowstock"];
    let text = word[..word.floor_char_boundary(MAX_NAME)].to_owned();
    Availability { in_stock: is_there.contains(&folded.as_str()), text: Some(text) }
}

/// The pictures that a property of schema.org names, or lists.
pub fn images<'a>(things: &Things<'a>, thing: &'a Thing, addresses: &Addresses) -> Vec<Image> {
    let mut found: Vec<Image> = Vec::new();
    for value in things.values(thing, "image").iter().take(4 * MAX_IMAGES) {
        let object = value.as_object().and_then(|_| things.resolved(value));
        let said = |name: &str, most: usize| object.and_then(|object| things.text(object, name, most));
        let address = match value {
            Value::String(text) => Some(text.clone()),
            _ => ["contentUrl", "url", "@id"].iter().find_map(|name| said(name, 4_000)),
        };
        let alt = ["caption", "name"].iter().find_map(|name| said(name, MAX_NAME));
        add_image(&mut found, address.as_deref(), alt, addresses);
    }
    found
}

/// Adds a picture that is not there yet.
pub fn add_image(images: &mut Vec<Image>, address: Option<&str>, alt: Option<String>, addresses: &Addresses) {
    let Some(url) = address.and_then(|address| web_address(address, addresses)) else { return };
    if images.len() < MAX_IMAGES && !images.iter().any(|image| image.url == url) {
        images.push(Image { url, alt });
    }
}

/// An address of http or https, absolute.
pub fn web_address(reference: &str, addresses: &Addresses) -> Option<String> {
    if reference.trim().is_empty() {
        return None;
    }
    addresses.resolve(reference).filter(|url| url.starts_with("https://") || url.starts_with("http://"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_offer_says_what_it_asks_and_what_it_asked() {
        let of = |offer: Value| {
            let roots = [offer];
            let things = Things::new(&roots);
            let asked = asked(&things, roots[0].as_object().expect("an object"), None);
            let tell = |price: Option<Price>| price.map(|p| (p.amount, p.currency, p.formatted));
            (tell(asked.price), tell(asked.original))
        };
        let eur = || Some("EUR".to_owned());
        assert_eq!(of(json!({"price": "19.90", "priceCurrency": "eur"})), (Some((19.9, eur(), None)), None));
        assert_eq!(of(json!({"price": "€19,90"})), (Some((19.9, eur(), Some("€19,90".into()))), None));
        assert_eq!(of(json!({"price": 5})), (Some((5.0, None, None)), None), "no currency is made up");
        let reduced = json!({"priceSpecification": [
            {"priceType": "https://schema.org/ListPrice", "price": 30, "priceCurrency": "EUR"}, {"price": 20}]});
        assert_eq!(of(reduced), (Some((20.0, eur(), None)), Some((30.0, eur(), None))));
        let range = json!({"lowPrice": 10, "highPrice": "12.5", "priceCurrency": "EUR"});
        assert_eq!(of(range), (Some((10.0, eur(), Some("10–12.5".into()))), None));
        assert_eq!(of(json!({"price": "call us"})), (None, None));
    }

    #[test]
    fn words_of_availability() {
        for (word, in_stock, text) in [
            ("https://schema.org/InStock", true, "InStock"),
            ("http://schema.org/OutOfStock", false, "OutOfStock"),
            ("in stock", true, "in stock"),
            ("PreOrder", false, "PreOrder"),
            ("Ships in: 3 days", false, "Ships in: 3 days"),
        ] {
            assert_eq!(availability(Some(word)), Availability { in_stock, text: Some(text.to_owned()) });
        }
        assert_eq!(availability(None), Availability { in_stock: true, text: None });
    }
}
