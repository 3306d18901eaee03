//! A product as the page shows it: to those who link to it (OpenGraph), or to its readers, by a price and a button to buy.

use super::stored::heading;
use super::{Page, Product, Variant, listing};
use crate::goods::{self, Asked, MAX_NAME, MAX_TEXT, Price, amount, availability};
use crate::things::{plain, text_below};
use crate::tree::{Dom, Tag};

/// What buttons say that put a product into the basket, letters only.
const BUY: [&str; 18] = [
    "addtocart",
    "addtobasket",
    "addtobag",
    "addtotrolley",
    "buynow",
    "indenwarenkorb",
    "jetztkaufen",
    "ajouteraupanier",
    "acheter",
    "añadiralcarrito",
    "añadiralacesta",
    "comprarahora",
    "aggiungialcarrello",
    "inwinkelwagen",
    "dodajdokoszyka",
    "lisääostoskoriin",
    "läggivarukorg",
    "カートに入れる",
];
/// Longest text of a button and of a price, bytes.
const MAX_LABEL: usize = 60;

/// The product that the page shows.
pub fn product(page: &Page<'_>) -> Option<Product> {
    of_graph(page).or_else(|| of_page(page))
}

/// What the page says to those who link to it.
fn of_graph(page: &Page<'_>) -> Option<Product> {
    // `og:type` alone says little: shops write it on pages of whole categories.
    let amount = page.meta(&["product:price:amount", "og:price:amount"]);
    let word = page.meta(&["product:availability", "og:availability"]);
    if amount.is_none() && word.is_none() {
        return None;
    }
    let currency = page.meta(&["product:price:currency", "og:price:currency"]);
    let read = |text: &str| {
        let currency = currency.and_then(amount::currency).or_else(|| amount::currency(text));
        Some(Price { amount: amount::read(text)?, currency, formatted: None })
    };
    let sale = page.meta(&["product:sale_price:amount"]).and_then(read);
    let full = amount.and_then(read);
    let asked = if sale.is_some() { Asked::new(sale, full) } else { Asked::new(full, None) };
    let mut images = Vec::new();
    goods::add_image(&mut images, page.meta(&["ogImage", "og:image"]), None, page.addresses);
    let variant = Variant {
        sku: page.meta(&["product:retailer_item_id"]).map(str::to_owned),
        availability: availability(word),
        price: asked.price,
        original: asked.original,
        images,
        ..Variant::default()
    };
    let text = |names: &[&str], most: usize| plain(page.meta(names)?, most);
    Some(Product {
        title: text(&["og:title", "ogTitle"], MAX_NAME).or_else(|| heading(page))?,
        brand: text(&["product:brand", "og:brand"], MAX_NAME),
        category: text(&["product:category"], MAX_NAME),
        url: page.url(),
        description: text(&["og:description", "ogDescription", "description"], MAX_TEXT),
        variants: vec![variant],
    })
}

/// What its readers see: one heading, the first price behind it, one product's button to buy.
fn of_page(page: &Page<'_>) -> Option<Product> {
    let dom = page.dom;
    let title = heading(page)?;
    let from = (0..dom.len()).find(|&i| dom.tag(i) == Tag::H1)?;
    let mut buttons = (0..dom.len()).filter(|&i| is_buy(dom, i));
    let button = buttons.next().filter(|_| buttons.next().is_none())?;
    // On a page full of goods what stands in one of their cards is not the page's.
    let is_anothers = |i: usize| page.cards() >= listing::MANY && listing::card(page, i).is_some();
    if is_anothers(button) {
        return None;
    }
    let prices = (from..dom.len()).filter(|&i| is_price(dom, i)).take(listing::MAX_PRICES);
    let price = prices.filter(|&i| !is_anothers(i)).take(50).find_map(|i| {
        let text = text_below(dom, i, 1_000).filter(|text| text.len() <= MAX_LABEL)?;
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        Some(Price {
            amount: amount::read(&text)?,
            currency: amount::currency(&text),
            formatted: (!is_number).then_some(text),
        })
    })?;
    let variant = Variant { price: Some(price), availability: availability(None), ..Variant::default() };
    Some(Product { title, brand: None, category: None, url: page.url(), description: None, variants: vec![variant] })
}

/// Whether an element is a button that buys.
fn is_buy(dom: &Dom, i: usize) -> bool {
    let label = match dom.tag(i) {
        Tag::Button => text_below(dom, i, MAX_LABEL).unwrap_or_default(),
        Tag::Input if matches!(dom.attr_named(i, "type"), Some("submit" | "button")) => {
            dom.attr_named(i, "value").unwrap_or_default().to_owned()
        }
        _ => return false,
    };
    let letters =
        |text: &str| -> String { text.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect() };
    BUY.contains(&letters(&label).as_str())
}

/// Whether an element is named as a price, and not as one that no longer holds.
pub fn is_price(dom: &Dom, i: usize) -> bool {
    let class = dom.class(i).to_ascii_lowercase();
    let former = ["old", "was", "compare", "list-price", "regular", "strike", "original", "unit-price", "shipping"];
    let is_struck = matches!(dom.tag(i), Tag::Del | Tag::S | Tag::Strike);
    dom.tag(i).is_element() && class.contains("price") && !is_struck && !former.iter().any(|word| class.contains(word))
}
