//! A menu as a page shows it: dishes, by a class that says so, with a name and a price, under headings. Menus of commands
//! and pages have such classes too; they have no prices.

use super::{Dish, Found, MAX_DISHES, Page};
use crate::goods::{self, Availability, MAX_NAME, MAX_TEXT, Price, amount};
use crate::things::{plain, text_below};
use crate::tree::{Dom, Tag};

/// Classes of a dish, without marks.
const DISHES: [&str; 8] =
    ["menuitem", "menuitems", "dish", "dishitem", "fooditem", "menuentry", "menudish", "foodmenuitem"];
/// A page with fewer dishes that have a price is not taken for a menu.
const FEWEST: usize = 3;
/// Most nodes of one dish.
const MAX_NODES: usize = 300;

/// The menu that the page shows.
pub fn menu(page: &Page<'_>) -> Found {
    let dom = page.dom;
    let mut found = Found::default();
    let mut heading = None;
    let mut dishes: Vec<Dish> = Vec::new();
    let mut total = 0;
    let mut i = 0;
    while i < dom.len() && total < MAX_DISHES {
        if dom.tag(i).heading_level().is_some() {
            found.add(heading.take(), None, std::mem::take(&mut dishes));
            heading = text_below(dom, i, MAX_NAME);
        } else if is_dish(dom, i)
            && let Some(dish) = dish(page, i)
        {
            dishes.push(dish);
            total += 1;
            i = dom.end(i);
            continue;
        }
        i += 1;
    }
    found.add(heading, None, dishes);
    if found.dishes < FEWEST { Found::default() } else { found }
}

fn is_dish(dom: &Dom, i: usize) -> bool {
    let folded = |class: &str| -> String {
        class.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    dom.tag(i).is_element()
        && dom.end(i) - i <= MAX_NODES
        && dom.class(i).split_ascii_whitespace().take(20).any(|class| DISHES.contains(&folded(class).as_str()))
}

/// A dish: its name is a heading or something called a name, its price is called a price.
fn dish(page: &Page<'_>, at: usize) -> Option<Dish> {
    let dom = page.dom;
    let inside = || (at + 1..dom.end(at)).filter(|&i| dom.tag(i).is_element());
    let called = |words: &'static [&'static str]| {
        inside().find(|&i| {
            let class = dom.class(i).to_ascii_lowercase();
            words.iter().any(|word| class.contains(word))
        })
    };
    let heading = inside().find(|&i| dom.tag(i).heading_level().is_some());
    let name =
        heading.or_else(|| called(&["name", "title"])).or_else(|| inside().find(|&i| dom.tag(i) == Tag::Strong))?;
    let asked = text_below(dom, called(&["price", "cost"])?, 100)?;
    let is_number = asked.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let price = Price {
        amount: amount::read(&asked)?,
        currency: amount::currency(&asked),
        formatted: (!is_number).then_some(asked),
    };
    let described = called(&["desc", "ingredient"]).or_else(|| inside().find(|&i| dom.tag(i) == Tag::P && i != name));
    let described =
        described.and_then(|i| text_below(dom, i, MAX_TEXT)).filter(|text| price.formatted.as_ref() != Some(text));
    let mut images = Vec::new();
    for i in inside().filter(|&i| dom.tag(i) == Tag::Img) {
        let alt = dom.attr_named(i, "alt").and_then(|alt| plain(&alt.replace(['<', '&'], " "), MAX_NAME));
        goods::add_image(&mut images, dom.attr_named(i, "src"), alt, page.addresses);
    }
    Some(Dish {
        name: text_below(dom, name, MAX_NAME)?,
        description: described,
        images,
        price: Some(price),
        availability: Availability { in_stock: true, text: None },
        ..Dish::default()
    })
}
