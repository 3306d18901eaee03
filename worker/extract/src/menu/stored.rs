//! A menu in the state that a page's scripts keep: a list of sections under a name that says so, each with a name and a
//! list of dishes, each with a name, and prices among them.

use serde_json::Value;

use super::{Dish, Found, MAX_DISHES, MAX_SECTIONS, Page};
use crate::goods::{self, Availability, MAX_NAME, MAX_TEXT, price_of};
use crate::things::{Thing, plain, scalar, walk};

/// Names of a list of sections.
const SECTIONS: [&str; 6] = ["menuSections", "menuCategories", "sections", "categories", "menuGroups", "groups"];
/// Names of a section's list of dishes.
const DISHES: [&str; 5] = ["menuItems", "items", "dishes", "products", "entries"];

/// The largest menu among what scripts keep.
pub fn menu(page: &Page<'_>, stored: &[Value]) -> Found {
    let mut best = Found::default();
    walk(stored, |thing| {
        // Any shop has categories of items: the word has to be there.
        let is_menu = thing.keys().any(|name| name.to_ascii_lowercase().contains("menu"));
        for (name, inner) in thing.iter().filter(|(name, _)| name.to_ascii_lowercase().contains("menu")) {
            let lists = match inner {
                Value::Object(menu) => SECTIONS.iter().filter_map(|name| menu.get(*name)).collect(),
                Value::Array(_) if is_menu && SECTIONS.contains(&name.as_str()) => vec![inner],
                _ => Vec::new(),
            };
            for list in lists {
                let found = sections(page, list);
                if found.dishes > best.dishes {
                    best = found;
                }
            }
        }
    });
    best
}

fn sections(page: &Page<'_>, list: &Value) -> Found {
    let mut found = Found::default();
    for section in list.as_array().into_iter().flatten().take(MAX_SECTIONS).filter_map(Value::as_object) {
        let items = DISHES.iter().find_map(|name| section.get(*name)?.as_array()).map(Vec::as_slice);
        let dishes = items.unwrap_or_default().iter().take(MAX_DISHES).filter_map(|item| dish(page, item.as_object()?));
        found.add(
            said(section, &["name", "title"], MAX_NAME),
            said(section, &["description"], MAX_TEXT),
            dishes.collect(),
        );
    }
    let has_price = found.sections.iter().flat_map(|section| &section.dishes).any(|dish| dish.price.is_some());
    if has_price { found } else { Found::default() }
}

fn said(thing: &Thing, names: &[&str], most: usize) -> Option<String> {
    names.iter().find_map(|name| scalar(thing.get(*name)?, most))
}

fn dish(page: &Page<'_>, item: &Thing) -> Option<Dish> {
    let currency = ["currency", "currencyCode"].iter().find_map(|name| item.get(*name)?.as_str());
    let price = item.get("price").and_then(|price| match price {
        Value::Object(map) => {
            let currency = ["currency", "currencyCode"].iter().find_map(|name| map.get(*name)?.as_str()).or(currency);
            ["amount", "value"].iter().find_map(|name| price_of(map.get(*name)?, currency))
        }
        price => price_of(price, currency),
    });
    let mut images = Vec::new();
    for name in ["image", "imageUrl", "image_url"] {
        let image = item.get(name);
        let field = |name: &str| image.and_then(|image| image.get(name)?.as_str());
        let alt = field("alt").and_then(|text| plain(text, MAX_NAME));
        let address = image.and_then(Value::as_str).or_else(|| field("url")).or_else(|| field("src"));
        goods::add_image(&mut images, address, alt, page.addresses);
    }
    let flags = ["available", "isAvailable", "is_available", "inStock"];
    let is_there = flags.iter().find_map(|name| item.get(*name)?.as_bool()).unwrap_or(true);
    let is_sold_out =
        ["soldOut", "isSoldOut", "sold_out"].iter().any(|name| item.get(*name) == Some(&Value::Bool(true)));
    Some(Dish {
        name: said(item, &["name", "title"], MAX_NAME)?,
        description: said(item, &["description"], MAX_TEXT),
        images,
        price,
        availability: Availability { in_stock: is_there && !is_sold_out, text: None },
        calories: item.get("calories").and_then(|value| super::calories(&scalar(value, 100)?)),
        id: said(item, &["id", "itemId"], MAX_NAME),
        url: said(item, &["url"], 4_000).and_then(|url| goods::web_address(&url, page.addresses)),
        ..Dish::default()
    })
}
