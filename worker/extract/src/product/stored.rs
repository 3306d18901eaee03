//! A product in the state that a page's scripts keep, by the forms of the widespread shops: Shopify's two, WooCommerce's,
//! and an object under a name that says it is the page's product.

use serde_json::Value;

use super::{MAX_OPTIONS, MAX_VARIANTS, Page, Product, Variant};
use crate::goods::{self, Asked, Availability, MAX_NAME, MAX_TEXT, Price, amount, availability, price_of};
use crate::things::{Thing, plain, scalar, text_below, walk};

/// Names under which a page keeps its own product. Objects in lists are not under a name.
const NAMES: [&str; 8] = [
    "product",
    "productData",
    "productDetail",
    "productDetails",
    "productInfo",
    "currentProduct",
    "initialProduct",
    "pdp",
];
/// Most objects that are taken for products.
const MAX_CANDIDATES: usize = 200;

/// The page's product among what its scripts keep.
pub fn product(page: &Page<'_>, stored: &[Value]) -> Option<Product> {
    let mut found: Vec<(bool, Product)> = Vec::new();
    let mut add = |thing: &Thing, is_named: bool| {
        if found.len() < MAX_CANDIDATES
            && let Some(product) = read(page, thing, is_named)
        {
            found.push((is_named, product));
        }
    };
    walk(stored, |thing| {
        // Objects with variants are products wherever they are; they come by themselves.
        add(thing, false);
        for (_, inner) in thing.iter().filter(|(name, _)| NAMES.contains(&name.as_str())) {
            if let Value::Object(inner) = inner {
                add(inner, true);
            }
        }
    });
    let (named, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|(is_named, _)| *is_named);
    let own = |list: Vec<(bool, Product)>| {
        let list: Vec<Product> = list.into_iter().map(|(_, product)| product).collect();
        page.own(list, |product| Some(product.url.clone()).filter(|_| false), |product| product.title.clone())
    };
    let product = own(named).or_else(|| own(others));
    let of_form = form_variants(page);
    match (product, of_form.is_empty()) {
        (found, true) => found,
        (Some(found), false) => Some(Product { variants: of_form, ..found }),
        (None, false) => {
            let title = heading(page)?;
            let url = page.url();
            Some(Product { title, brand: None, category: None, url, description: None, variants: of_form })
        }
    }
}

/// The page's only heading of the first rank.
pub fn heading(page: &Page<'_>) -> Option<String> {
    let dom = page.dom;
    let mut headings = (0..dom.len()).filter(|&i| dom.tag(i) == crate::tree::Tag::H1);
    let first = headings.next().filter(|_| headings.next().is_none())?;
    text_below(dom, first, MAX_NAME)
}

/// The first of these fields that says something.
fn said(thing: &Thing, names: &[&str], most: usize) -> Option<String> {
    names.iter().find_map(|name| match thing.get(*name)? {
        Value::Object(inner) => ["name", "title"].iter().find_map(|name| scalar(inner.get(*name)?, most)),
        value => scalar(value, most),
    })
}

/// An object as a product, if it is one.
fn read(page: &Page<'_>, thing: &Thing, is_named: bool) -> Option<Product> {
    let title = said(thing, &["title", "name", "productName"], MAX_NAME)?;
    let unit = Unit::of(thing);
    let listed = entries(thing.get("variants").or_else(|| thing.get("variations")));
    let mut variants: Vec<Variant> =
        listed.iter().take(MAX_VARIANTS).filter_map(|variant| variant_of(page, thing, variant, unit, &title)).collect();
    let is_shop_form = ["vendor", "handle", "productType", "product_type"].iter().any(|name| thing.contains_key(*name));
    if variants.is_empty() && is_named {
        variants.extend(variant_of(page, thing, thing, unit, &title));
    }
    if variants.is_empty() || !is_named && !is_shop_form {
        return None;
    }
    Some(Product {
        brand: said(thing, &["vendor", "brand", "brandName", "manufacturer"], MAX_NAME),
        category: said(thing, &["productType", "product_type", "type", "category"], MAX_NAME),
        description: said(thing, &["description", "descriptionHtml", "body_html"], MAX_TEXT),
        url: page.url(),
        title,
        variants,
    })
}

/// In what an amount is told that is a whole number.
#[derive(Clone, Copy)]
enum Unit {
    Main,
    /// Shopify's own notation: hundredths.
    Hundredths,
}

impl Unit {
    fn of(thing: &Thing) -> Self {
        let is_shopify = thing.contains_key("price_varies") || thing.contains_key("compare_at_price_varies");
        if is_shopify { Self::Hundredths } else { Self::Main }
    }
}

/// The objects of a list, also of one that a graph query answers: `{nodes: […]}`, `{edges: [{node: …}]}`.
fn entries(value: Option<&Value>) -> Vec<&Thing> {
    let list = match value {
        Some(Value::Object(map)) => map.get("nodes").or_else(|| map.get("edges")),
        other => other,
    };
    let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|one| one.get("node").unwrap_or(one).as_object()).collect()
}

/// A price in any of the forms.
fn price(value: &Value, unit: Unit) -> Option<Price> {
    match value {
        Value::Object(map) => {
            let currency = ["currencyCode", "currency", "currencyISO", "currencyIso"];
            let currency = currency.iter().find_map(|name| map.get(*name)?.as_str());
            if let Some(cents) = map.get("centAmount").and_then(Value::as_f64) {
                let digits = map.get("fractionDigits").and_then(Value::as_i64).unwrap_or(2).clamp(0, 4);
                let amount = Some(cents / 10f64.powi(digits as i32)).filter(|amount| amount::is_sane(*amount))?;
                return Some(Price { amount, currency: currency.and_then(amount::currency), formatted: None });
            }
            ["amount", "value", "current", "price"].iter().find_map(|name| price_of(map.get(*name)?, currency))
        }
        Value::Number(number) if matches!(unit, Unit::Hundredths) => {
            let amount = number.as_f64().map(|cents| cents / 100.0).filter(|amount| amount::is_sane(*amount))?;
            Some(Price { amount, currency: None, formatted: None })
        }
        value => price_of(value, None),
    }
}

/// A variant; `None` when it has no price. `thing`: the product around it, or the same object.
fn variant_of(page: &Page<'_>, thing: &Thing, variant: &Thing, unit: Unit, title: &str) -> Option<Variant> {
    let of = |names: &[&str]| names.iter().find_map(|name| price(variant.get(*name)?, unit));
    let currency = ["currency", "currencyCode", "priceCurrency"];
    let currency = currency.iter().find_map(|name| variant.get(*name).or_else(|| thing.get(*name))?.as_str());
    let with_currency = |price: Price| {
        let currency = price.currency.or_else(|| currency.and_then(amount::currency));
        Price { currency, ..price }
    };
    let now = of(&["price", "priceV2", "salePrice", "currentPrice", "finalPrice"]).map(with_currency)?;
    let before =
        of(&["compare_at_price", "compareAtPrice", "compareAtPriceV2", "originalPrice", "listPrice", "oldPrice"]);
    let asked = Asked::new(Some(now), before.map(with_currency));
    let mut images = Vec::new();
    for name in ["featured_image", "image", "images", "imageUrl"] {
        let list = match variant.get(name) {
            Some(Value::Array(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        for image in list {
            let field = |names: &[&str]| names.iter().find_map(|name| image.get(*name)?.as_str());
            let alt = field(&["alt", "altText"]).and_then(|text| plain(text, MAX_NAME));
            let address = image.as_str().or_else(|| field(&["src", "url"]));
            goods::add_image(&mut images, address, alt, page.addresses);
        }
    }
    let named = said(variant, &["public_title", "title", "name"], MAX_NAME);
    Some(Variant {
        id: said(variant, &["id", "variantId", "productId"], MAX_NAME),
        sku: said(variant, &["sku"], MAX_NAME),
        title: named.filter(|name| name != title && name != "Default Title"),
        values: options(thing, variant),
        price: asked.price,
        original: asked.original,
        availability: stock(variant),
        images,
    })
}

/// The options that a variant stands for.
fn options(thing: &Thing, variant: &Thing) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let selected = variant.get("selectedOptions").or_else(|| variant.get("selected_options"));
    for option in entries(selected).into_iter().take(MAX_OPTIONS) {
        found.extend(said(option, &["name"], MAX_NAME).zip(said(option, &["value"], MAX_NAME)));
    }
    if !found.is_empty() {
        return found;
    }
    // The product names the options, each variant has its values in the same order.
    let names = thing.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (n, name) in names.iter().enumerate().take(3) {
        let name = name.get("name").unwrap_or(name);
        let value = variant.get(&format!("option{}", n + 1)).and_then(|value| scalar(value, MAX_NAME));
        let option = scalar(name, MAX_NAME).zip(value);
        found.extend(option.filter(|(name, value)| name != "Title" || value != "Default Title"));
    }
    found
}

fn stock(variant: &Thing) -> Availability {
    let flags = ["available", "availableForSale", "inStock", "in_stock", "isInStock", "is_in_stock", "isAvailable"];
    if let Some(in_stock) = flags.iter().find_map(|name| variant.get(*name)?.as_bool()) {
        return Availability { in_stock, text: None };
    }
    let word = ["availability", "stockStatus", "stock_status"].iter().find_map(|name| variant.get(*name)?.as_str());
    availability(word)
}

/// The variants of WooCommerce's form.
fn form_variants(page: &Page<'_>) -> Vec<Variant> {
    let dom = page.dom;
    let mut forms = (0..dom.len()).filter_map(|i| dom.attr_named(i, "data-product_variations"));
    // Lists of goods have a form for each.
    let stored = forms.next().filter(|first| forms.all(|other| other == *first));
    let Some(Value::Array(list)) = stored.and_then(|text| weir_json::read(text).ok()) else { return Vec::new() };
    let variant = |thing: &Thing| {
        let now = price(thing.get("display_price")?, Unit::Main);
        let before = thing.get("display_regular_price").and_then(|value| price(value, Unit::Main));
        let asked = Asked::new(now, before);
        let chosen = thing.get("attributes").and_then(Value::as_object);
        let values = chosen.into_iter().flatten().take(MAX_OPTIONS).filter_map(|(name, value)| {
            let name = name.trim_start_matches("attribute_").trim_start_matches("pa_");
            Some((name.to_owned(), scalar(value, MAX_NAME)?))
        });
        let mut images = Vec::new();
        let image = thing.get("image").and_then(Value::as_object);
        let field = |name: &str| image.and_then(|image| image.get(name)?.as_str());
        let alt = field("alt").and_then(|text| plain(text, MAX_NAME));
        goods::add_image(&mut images, field("url"), alt, page.addresses);
        Some(Variant {
            id: said(thing, &["variation_id"], MAX_NAME),
            sku: said(thing, &["sku"], MAX_NAME),
            title: None,
            values: values.collect(),
            price: asked.price,
            original: asked.original,
            availability: stock(thing),
            images,
        })
    };
    list.iter().take(MAX_VARIANTS).filter_map(|one| variant(one.as_object()?)).collect()
}
