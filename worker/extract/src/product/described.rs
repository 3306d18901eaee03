//! A product in the terms of schema.org: `Product`, `ProductGroup`, and their offers.

use super::{MAX_OPTIONS, MAX_VARIANTS, Page, Product, Variant, folded, listing};
use crate::goods::{self, Availability, MAX_NAME, MAX_TEXT, availability};
use crate::things::{Thing, Things, is_a, term};

const PRODUCTS: [&str; 8] =
    ["Product", "ProductGroup", "ProductModel", "IndividualProduct", "SomeProducts", "Vehicle", "Car", "Book"];
/// Properties that tell variants apart.
const OPTIONS: [&str; 5] = ["color", "size", "material", "pattern", "suggestedAge"];

/// The page's product among the described things.
pub fn product(page: &Page<'_>, things: &Things<'_>) -> Option<Product> {
    let all: Vec<&Thing> = things.top().into_iter().filter(|thing| is_product(things, thing)).collect();
    let address = |thing: &&Thing| {
        let said = ["url", "@id"].iter().find_map(|name| things.text(thing, name, 4_000));
        said.and_then(|url| goods::web_address(&url, page.addresses))
    };
    let name = |thing: &&Thing| things.text(thing, "name", MAX_NAME).unwrap_or_default();
    let groups: Vec<&Thing> = all.iter().copied().filter(|thing| is_a(thing, &["ProductGroup"])).collect();
    let group = page.own(groups, address, name);
    if let Some(group) = group {
        return whole(page, things, group, &of_group(things, group, &all));
    }
    if let Some(model) = same_model(things, &all) {
        return whole(page, things, all[0], &all).map(|product| Product { title: model, ..product });
    }
    let thing = page.own(all, address, name)?;
    if listing::is_list(page, things, thing) {
        return None;
    }
    whole(page, things, thing, &[])
}

/// Books and cars are things for sale only where they are offered.
fn is_product(things: &Things<'_>, thing: &Thing) -> bool {
    let is_sold = || things_of(things, thing, "offers") > 0;
    is_a(thing, &PRODUCTS[..5]) || is_a(thing, &PRODUCTS[5..]) && is_sold()
}

fn things_of(things: &Things<'_>, thing: &Thing, name: &str) -> usize {
    things.values(thing, name).len()
}

/// The variants of a group: those it names, and those that name it.
fn of_group<'a>(things: &Things<'a>, group: &'a Thing, all: &[&'a Thing]) -> Vec<&'a Thing> {
    let mut found = things.things(group, "hasVariant");
    let names_it = |thing: &&'a Thing| things.things(thing, "isVariantOf").iter().any(|of| std::ptr::eq(*of, group));
    for variant in all.iter().copied().filter(names_it) {
        if !found.iter().any(|known| std::ptr::eq(*known, variant)) {
            found.push(variant);
        }
    }
    found
}

/// The name of the group that all things say they are variants of, where none of them is the group.
fn same_model(things: &Things<'_>, all: &[&Thing]) -> Option<String> {
    if all.len() < 2 {
        return None;
    }
    let model = |thing: &&Thing| {
        let group = things.things(thing, "isVariantOf");
        let id = group.first().and_then(|group| things.text(group, "productGroupID", MAX_NAME));
        let id = id.or_else(|| things.text(thing, "inProductGroupWithID", MAX_NAME))?;
        let name = group.first().and_then(|group| things.text(group, "name", MAX_NAME));
        Some((id, name.or_else(|| things.text(thing, "name", MAX_NAME))?))
    };
    let mut models = all.iter().map(model);
    let (id, name) = models.next()??;
    models.all(|other| other.is_some_and(|(other, _)| other == id)).then_some(name)
}

/// A product with its variants; `forms`: the things that are its variants, if it has some.
fn whole<'a>(page: &Page<'_>, things: &Things<'a>, thing: &'a Thing, forms: &[&'a Thing]) -> Option<Product> {
    let text = |name: &str, most: usize| things.text(thing, name, most);
    let title = text("name", MAX_NAME)?;
    let mut variants: Vec<Variant> = Vec::new();
    if forms.is_empty() {
        variants = offered(page, things, thing, true);
    }
    for form in forms {
        if variants.len() >= MAX_VARIANTS {
            break;
        }
        for mut variant in offered(page, things, form, false) {
            let name = variant.title.take().or_else(|| things.text(form, "name", MAX_NAME));
            variant.title = name.filter(|name| folded(name) != folded(&title));
            variants.push(variant);
        }
    }
    variants.truncate(MAX_VARIANTS);
    let url = text("url", 4_000).and_then(|url| goods::web_address(&url, page.addresses));
    Some(Product {
        brand: text("brand", MAX_NAME).or_else(|| text("manufacturer", MAX_NAME)),
        category: text("category", MAX_NAME),
        url: url.filter(|url| forms.is_empty() || !page.is_here(url)).unwrap_or_else(|| page.url()),
        description: text("description", MAX_TEXT),
        title,
        variants,
    })
}

/// The variants that a thing's offers make. `is_whole`: the thing is the product itself and not one of its forms.
fn offered<'a>(page: &Page<'_>, things: &Things<'a>, thing: &'a Thing, is_whole: bool) -> Vec<Variant> {
    let own = Variant {
        id: ["productID", "identifier"].iter().find_map(|name| things.text(thing, name, MAX_NAME)),
        sku: things.text(thing, "sku", MAX_NAME),
        values: options(things, thing, !is_whole),
        images: goods::images(things, thing, page.addresses),
        ..Variant::default()
    };
    let mut offers: Vec<(&'a Thing, Option<&'a Thing>)> = Vec::new();
    for offer in things.things(thing, "offers") {
        let inner = things.things(offer, "offers");
        if inner.is_empty() {
            offers.push((offer, None));
        }
        offers.extend(inner.into_iter().map(|inner| (inner, Some(offer))));
    }
    if offers.is_empty() {
        // Nothing says that it can be bought.
        return vec![Variant { availability: Availability::default(), ..own }];
    }
    let is_only = offers.len() == 1;
    offers.truncate(MAX_VARIANTS);
    let variant = |(offer, around): (&'a Thing, Option<&'a Thing>)| {
        let item = things.things(offer, "itemOffered").first().copied();
        let said = |name: &str| {
            let of_offer = things.text(offer, name, MAX_NAME);
            of_offer.or_else(|| item.and_then(|item| things.text(item, name, MAX_NAME)))
        };
        let asked = goods::asked(things, offer, around);
        let word = [Some(offer), around].into_iter().flatten().find_map(|of| things.text(of, "availability", MAX_NAME));
        let mut values = own.values.clone();
        let of_item = item.map(|item| options(things, item, true)).unwrap_or_default();
        for (name, value) in options(things, offer, true).into_iter().chain(of_item) {
            if values.len() < MAX_OPTIONS && !values.iter().any(|(known, _)| *known == name) {
                values.push((name, value));
            }
        }
        let mut images = item.map(|item| goods::images(things, item, page.addresses)).unwrap_or_default();
        if images.is_empty() {
            images = goods::images(things, offer, page.addresses);
        }
        Variant {
            id: said("productID").or_else(|| own.id.clone().filter(|_| is_only)),
            sku: said("sku").or_else(|| own.sku.clone().filter(|_| is_only)),
            title: said("name").filter(|_| !is_only || !is_whole),
            values,
            price: asked.price,
            original: asked.original,
            availability: availability(word.as_deref()),
            images: if images.is_empty() { own.images.clone() } else { images },
        }
    };
    offers.into_iter().map(variant).collect()
}

/// What tells a thing from its like. `is_form`: its further properties do as well; of a whole product they are data sheets.
fn options<'a>(things: &Things<'a>, thing: &'a Thing, is_form: bool) -> Vec<(String, String)> {
    let named = OPTIONS.iter().filter_map(|name| Some(((*name).to_owned(), things.text(thing, name, MAX_NAME)?)));
    let further = things.things(thing, "additionalProperty").into_iter().filter(|_| is_form).filter_map(|property| {
        let name = things.text(property, "name", MAX_NAME)?;
        Some((term(&name).to_owned(), things.text(property, "value", MAX_NAME)?))
    });
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, value) in named.chain(further).take(MAX_OPTIONS) {
        if !found.iter().any(|(known, _)| *known == name) {
            found.push((name, value));
        }
    }
    found
}
