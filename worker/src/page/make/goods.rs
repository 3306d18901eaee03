//! The formats `product` and `menu`: what the extraction has found, in the document's terms.

use weir_shared::domain::goods::{
    Availability, Image, MenuIdentifiers, MenuItem, MenuMerchant, MenuProfile, MenuSection, Price, ProductProfile,
    ProductVariant, Sale,
};
use weir_shared::domain::scrape::{Format, ScrapeOptions};

use crate::extract::menu::{Dish, Menu, Section};
use crate::extract::product::{Product, Variant};
use crate::extract::{Extracted, goods};

/// Whether something that is wanted is not there, and may come with the page's scripts.
pub fn is_missing(options: &ScrapeOptions, extracted: &Extracted) -> bool {
    options.wants(&Format::Product) && extracted.product.is_none()
        || options.wants(&Format::Menu) && extracted.menu.is_none()
}

/// The document's `product`.
pub fn product(found: Product) -> ProductProfile {
    let Product { title, brand, category, url, description, variants } = found;
    ProductProfile { title, brand, category, url, description, variants: variants.into_iter().map(variant).collect() }
}

fn variant(found: Variant) -> ProductVariant {
    let images: Vec<Image> = found.images.into_iter().map(image).collect();
    let values = found.values.into_iter().map(|(name, value)| (name, value.into()));
    ProductVariant {
        id: found.id,
        sku: found.sku,
        title: found.title,
        values: Some(values.collect()).filter(|values: &serde_json::Map<_, _>| !values.is_empty()),
        price: found.price.map(price),
        sale: found.original.map(|original| Sale { original_price: price(original) }),
        availability: availability(found.availability),
        images: Some(images).filter(|images| !images.is_empty()),
    }
}

/// The document's `menu`.
pub fn menu(found: Menu) -> MenuProfile {
    let Menu { confidence, merchant, currency, sections, source_url } = found;
    let section = |(n, section): (usize, Section)| {
        let id = format!("s{}", n + 1);
        let items = section.dishes.into_iter().enumerate();
        let items = items.map(|(n, dish)| item(format!("{id}.i{}", n + 1), dish, &source_url)).collect();
        MenuSection { id, name: section.name, description: section.description, items }
    };
    MenuProfile {
        is_menu: true,
        confidence,
        merchant: MenuMerchant { name: merchant.name, kind: merchant.kind, location: merchant.location },
        currency,
        sections: sections.into_iter().enumerate().map(section).collect(),
        source_url,
    }
}

fn item(id: String, dish: Dish, source_url: &str) -> MenuItem {
    MenuItem {
        id,
        name: dish.name,
        description: dish.description,
        images: dish.images.into_iter().map(image).collect(),
        price: dish.price.map(price),
        availability: availability(dish.availability),
        dietary: dish.dietary,
        calories: dish.calories,
        option_groups: Vec::new(),
        identifiers: MenuIdentifiers { merchant_item_id: dish.id },
        url: dish.url,
        source_url: source_url.to_owned(),
    }
}

fn price(found: goods::Price) -> Price {
    Price { amount: found.amount, currency: found.currency, formatted: found.formatted }
}

fn availability(found: goods::Availability) -> Availability {
    Availability { in_stock: found.in_stock, text: found.text }
}

fn image(found: goods::Image) -> Image {
    Image { url: found.url, alt: found.alt }
}
