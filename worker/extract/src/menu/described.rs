//! A menu in the terms of schema.org: `Menu`, `MenuSection`, `MenuItem`, and the restaurant that has it.

use super::{Dish, Found, MAX_DISHES, MAX_SECTIONS, Merchant, Page, calories};
use crate::goods::{self, MAX_NAME, MAX_TEXT, availability};
use crate::things::{Thing, Things, is_a, term};

/// Who has a menu.
const MERCHANTS: [&str; 12] = [
    "Restaurant",
    "FoodEstablishment",
    "CafeOrCoffeeShop",
    "BarOrPub",
    "FastFoodRestaurant",
    "Bakery",
    "IceCreamShop",
    "Brewery",
    "Winery",
    "Distillery",
    "Hotel",
    "LocalBusiness",
];
/// Most properties of a dish that are taken of one kind.
const MAX_LISTED: usize = 20;

/// The page's menu among the described things.
pub fn menu<'a>(page: &Page<'_>, things: &Things<'a>) -> Found {
    let mut found = Found::default();
    let top = things.top();
    let merchant = top.iter().copied().find(|thing| is_a(thing, &MERCHANTS));
    found.merchant = merchant.and_then(|thing| described(things, thing));
    let mut open: Vec<&'a Thing> = top.iter().copied().filter(|thing| is_a(thing, &["Menu", "MenuSection"])).collect();
    if let Some(merchant) = merchant {
        open.extend(["hasMenu", "menu"].iter().flat_map(|name| things.things(merchant, name)));
    }
    open.reverse();
    let mut seen: Vec<&'a Thing> = Vec::new();
    while let Some(thing) = open.pop() {
        if found.dishes >= MAX_DISHES
            || seen.len() >= 2 * MAX_SECTIONS
            || seen.iter().any(|other| std::ptr::eq(*other, thing))
        {
            continue;
        }
        seen.push(thing);
        let dishes = things.things(thing, "hasMenuItem").into_iter().filter_map(|item| dish(page, things, item));
        let name = things.text(thing, "name", MAX_NAME);
        found.add(name, things.text(thing, "description", MAX_TEXT), dishes.take(MAX_DISHES).collect());
        open.extend(things.things(thing, "hasMenuSection").into_iter().rev());
    }
    // Dishes that belong to no section.
    let loose = top.iter().filter(|thing| is_a(thing, &["MenuItem"])).filter_map(|item| dish(page, things, item));
    let loose: Vec<Dish> = loose.collect();
    if found.sections.is_empty() {
        found.add(None, None, loose);
    }
    found
}

fn described<'a>(things: &Things<'a>, thing: &'a Thing) -> Option<Merchant> {
    let kind = things.text(thing, "@type", MAX_NAME);
    let address = things.values(thing, "address").first();
    let location = address.and_then(|address| match things.resolved(address) {
        None => things.text_of(address, MAX_NAME),
        Some(parts) => {
            let names = ["streetAddress", "postalCode", "addressLocality", "addressRegion", "addressCountry"];
            let said: Vec<String> = names.iter().filter_map(|name| things.text(parts, name, MAX_NAME)).collect();
            (!said.is_empty()).then(|| said.join(", "))
        }
    });
    let name = things.text(thing, "name", MAX_NAME)?;
    Some(Merchant { name, kind: kind.map(|kind| term(&kind).to_owned()), location })
}

fn dish<'a>(page: &Page<'_>, things: &Things<'a>, item: &'a Thing) -> Option<Dish> {
    let offer = things.things(item, "offers").first().copied();
    let of_offer = |name: &str| offer.and_then(|offer| things.text(offer, name, MAX_NAME));
    let diets = things.values(item, "suitableForDiet").iter().take(MAX_LISTED);
    let energy = things.things(item, "nutrition").first().and_then(|of| things.text(of, "calories", MAX_NAME));
    let url = things.text(item, "url", 4_000).and_then(|url| goods::web_address(&url, page.addresses));
    Some(Dish {
        name: things.text(item, "name", MAX_NAME)?,
        description: things.text(item, "description", MAX_TEXT),
        images: goods::images(things, item, page.addresses),
        price: offer.and_then(|offer| goods::asked(things, offer, None).price),
        availability: availability(of_offer("availability").as_deref()),
        dietary: diets.filter_map(|diet| things.text_of(diet, MAX_NAME)).map(|diet| term(&diet).to_owned()).collect(),
        calories: energy.and_then(|text| calories(&text)),
        id: ["identifier", "sku"].iter().find_map(|name| things.text(item, name, MAX_NAME)),
        url,
    })
}
