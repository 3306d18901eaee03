//! A page that sells one thing: what the shop shows besides it goes.
//!
//! Shops say by linked data or `og:type` that a page is one product's. On such a page a mass of short links is a menu
//! wherever it stands, and a row of like cards with a picture and a link each shows other goods. On any other page both may
//! be what the page is for, so nothing of this is asked there. Reviews stay: they are of this product.

use html5ever::local_name;
use memchr::memmem;

use super::measure::Measures;
use super::tokens::{Cache, Hints};
use super::tree::{Dom, Tag};

/// A menu: at least this part of its text is links, 0 to 1.
const MENU_DENSITY: f32 = 0.85;
/// At least so many of them.
const MENU_LINKS: u32 = 8;
/// Of so many characters each, on average.
const MENU_WORDS: u32 = 24;
/// Cards of other goods come in rows of so many. More of them are a list, which the page is for.
const CARDS: std::ops::RangeInclusive<usize> = 3..=24;
/// Characters of one card.
const CARD: std::ops::RangeInclusive<u32> = 8..=120;
/// What is left must hold this many characters that are no links.
const LEFT: u32 = 200;

/// What buyers say: at least so many characters, and at most this part of the page.
const REVIEWS: (u32, f32) = (700, 0.45);
/// Prices that a page of several goods shows, and characters of one.
const PRICES: usize = 6;
const PRICE: u32 = 12;
/// Characters of one of several that are named one by one, and how many there are at least.
const REVIEW: u32 = 40;
const FEW_REVIEWS: usize = 3;
/// Without it the page must have this many characters that are no links.
const LEFT_OF_PRODUCT: u32 = 600;
/// The same for a page of several goods.
const LEFT_OF_LIST: u32 = 1500;

/// Whether the page says that it is one product's.
pub fn is_one_product(dom: &Dom) -> bool {
    let mut products = 0;
    for i in 0..dom.len() {
        match dom.tag(i) {
            Tag::Meta if dom.attr(i, &local_name!("property")) == Some("og:type") => {
                let kind = dom.attr(i, &local_name!("content")).unwrap_or_default();
                if matches!(kind.strip_prefix("og:").unwrap_or(kind), "product" | "product.item") {
                    return true;
                }
            }
            Tag::Script if dom.attr(i, &local_name!("type")).is_some_and(|kind| kind.contains("ld+json")) => {
                for text in (i..dom.end(i)).map(|j| dom.text(j)) {
                    if memmem::find(text.as_bytes(), b"\"ItemList\"").is_some() {
                        return false;
                    }
                    products += types(text);
                }
            }
            _ => {}
        }
    }
    (1..=2).contains(&products)
}

/// Whether the page shows what several goods cost, each in a text of its own.
pub fn shows_prices(dom: &Dom, m: &Measures, dropped: &[bool]) -> bool {
    let is_price = |text: &str| {
        let text = text.trim();
        text.starts_with(['$', '€', '£', '¥']) || text.ends_with(['€', '£', '¥'])
    };
    let (mut prices, mut i) = (0, m.body);
    while i < dom.end(m.body) && prices < PRICES {
        if dropped[i] {
            i = dom.end(i);
            continue;
        }
        let text = dom.text(i);
        prices +=
            usize::from((2..=PRICE).contains(&m.text[i]) && text.bytes().any(|b| b.is_ascii_digit()) && is_price(text));
        i += 1;
    }
    prices >= PRICES
}

/// Whether microdata say so of one element.
pub fn has_one_product(dom: &Dom) -> bool {
    let is_product = |kind: &str| kind.trim_end_matches('/').ends_with("schema.org/Product");
    (0..dom.len()).filter(|&i| dom.attr(i, &local_name!("itemtype")).is_some_and(is_product)).take(2).count() == 1
}

/// How often linked data say that something is a product.
fn types(text: &str) -> usize {
    memmem::find_iter(text.as_bytes(), b"\"@type\"")
        .filter(|at| {
            let rest = text[at + 7..].trim_start().strip_prefix(':').unwrap_or_default();
            let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '[' || c == '"');
            let rest = rest.strip_prefix("http").and_then(|r| r.split_once("schema.org/")).map_or(rest, |(_, r)| r);
            rest.starts_with("Product\"") || rest.starts_with("ProductGroup\"")
        })
        .count()
}

/// Adds to `dropped` what such a page shows besides its product.
pub fn apply(dom: &Dom, m: &Measures, dropped: &mut [bool]) {
    let page = Page::of(dom, m, dropped);
    let mut cards = Vec::new();
    let mut i = m.body + 1;
    while i < dom.end(m.body) {
        if dropped[i] {
            i = dom.end(i);
            continue;
        }
        if dom.tag(i).is_element() && !page.has_heading[i] && page.stays_without(m, i) {
            if page.is_menu(m, i) {
                dropped[i] = true;
                i = dom.end(i);
                continue;
            }
            cards.extend(other_goods(dom, m, i, dropped));
        }
        i += 1;
    }
    // Where they are most of the page, they are what it is for.
    if cards.iter().map(|&card| m.text[card]).sum::<u32>() <= page.text / 2 {
        cards.into_iter().for_each(|card| dropped[card] = true);
    }
}

/// What is counted once for the whole page.
struct Page {
    /// Per node: whether it is or holds a heading of the first rank.
    has_heading: Vec<bool>,
    /// Links per node, subtree included.
    anchors: Vec<u32>,
    /// Characters of the page.
    text: u32,
    /// Characters of the page that are no links.
    prose: u32,
}

impl Page {
    fn of(dom: &Dom, m: &Measures, dropped: &[bool]) -> Self {
        let n = dom.len();
        let (mut has_heading, mut anchors) = (vec![false; n], vec![0; n]);
        for i in (m.body + 1..dom.end(m.body)).rev() {
            anchors[i] += u32::from(dom.tag(i) == Tag::A && m.text[i] > 0);
            has_heading[i] |= dom.tag(i) == Tag::H1 && m.text[i] > 0;
            let parent = dom.parent(i);
            anchors[parent] += anchors[i];
            has_heading[parent] |= has_heading[i];
        }
        let (mut prose, mut text) = (0, 0);
        let mut i = m.body;
        while i < dom.end(m.body) {
            if dropped[i] {
                i = dom.end(i);
                continue;
            }
            if dom.tag(i) == Tag::Text {
                prose += m.text[i] - m.links[i];
                text += m.text[i];
            }
            i += 1;
        }
        Page { has_heading, anchors, prose, text }
    }

    /// Whether the page still says something without this element.
    fn stays_without(&self, m: &Measures, i: usize) -> bool {
        self.prose.saturating_sub(m.text[i] - m.links[i]) >= LEFT
    }

    fn is_menu(&self, m: &Measures, i: usize) -> bool {
        let links = self.anchors[i];
        links >= MENU_LINKS && m.link_density(i) >= MENU_DENSITY && m.links[i] <= links * MENU_WORDS
    }
}

/// Adds to `dropped` what buyers say, where the page says enough of the product itself. Without `one_product` only as a whole:
/// what a list says of each of its goods may be called so, too.
pub fn leave_out_reviews(dom: &Dom, m: &Measures, one_product: bool, dropped: &mut [bool]) {
    let page = Page::of(dom, m, dropped);
    let mut cache = Cache::default();
    let (mut reviews, mut left) = (Vec::new(), page.prose);
    // Reviews that are named one by one, without a name for all of them.
    let mut single = Vec::new();
    let mut i = m.body + 1;
    while i < dom.end(m.body) {
        if dropped[i] {
            i = dom.end(i);
            continue;
        }
        let is_large = m.text[i] >= REVIEWS.0 && m.text[i] as f32 <= REVIEWS.1 * page.text as f32;
        let names = [dom.class(i), dom.attr(i, &local_name!("id")).unwrap_or_default()];
        if is_large
            && dom.tag(i).is_element()
            && !page.has_heading[i]
            && names.iter().any(|name| cache.of(name).any(Hints::REVIEWS))
        {
            left = left.saturating_sub(m.text[i] - m.links[i]);
            reviews.push(i);
            i = dom.end(i);
            continue;
        }
        if one_product
            && (REVIEW..REVIEWS.0).contains(&m.text[i])
            && dom.tag(i).is_block()
            && !page.has_heading[i]
            && cache.of(dom.class(i)).any(Hints::REVIEWS)
        {
            single.push(i);
            i = dom.end(i);
            continue;
        }
        i += 1;
    }
    let text: u32 = single.iter().map(|&i| m.text[i]).sum();
    if single.len() >= FEW_REVIEWS && text >= REVIEWS.0 && text as f32 <= REVIEWS.1 * page.text as f32 {
        left = left.saturating_sub(single.iter().map(|&i| m.text[i] - m.links[i]).sum());
        reviews.append(&mut single);
    }
    if left >= if one_product { LEFT_OF_PRODUCT } else { LEFT_OF_LIST } {
        reviews.into_iter().for_each(|i| dropped[i] = true);
    }
}

/// The children of an element that are cards of other goods.
fn other_goods(dom: &Dom, m: &Measures, i: usize, dropped: &[bool]) -> Vec<usize> {
    let cards: Vec<usize> = dom
        .children(i)
        .filter(|&child| !dropped[child] && CARD.contains(&m.text[child]) && m.links[child] > 0 && is_card(dom, child))
        .collect();
    if CARDS.contains(&cards.len()) { cards } else { Vec::new() }
}

/// A link to another page and a picture.
fn is_card(dom: &Dom, i: usize) -> bool {
    let (mut link, mut picture) = (false, false);
    for j in i..dom.end(i) {
        match dom.tag(j) {
            Tag::A => {
                link |= dom
                    .attr(j, &local_name!("href"))
                    .is_some_and(|href| !href.starts_with('#') && !href.starts_with("javascript:"));
            }
            Tag::Img => picture = true,
            _ => {}
        }
    }
    link && picture
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    const PRODUCT: &str = r#"<script type="application/ld+json">{"@type": "Product", "name": "Kettle"}</script>"#;
    const OFFER: &str = "<h1>Kettle</h1><p>It boils a litre in four minutes and keeps it warm for an hour on its own \
        plate. The handle is of oak, the spout pours without a drop, and the lid stays shut. It comes with a cloth of \
        linen, a brush for the spout and a card on how to descale it, which is wanted twice a year.</p>";

    fn kept(page: &str) -> String {
        let dom = guard::parse(page).dom;
        let m = Measures::of(&dom, false);
        let mut dropped = m.invisible.clone();
        if is_one_product(&dom) {
            apply(&dom, &m, &mut dropped);
        }
        m.text_left(&dom, &dropped)
    }

    fn card(n: usize) -> String {
        format!("<div class=c><a href='/goods/{n}'><img src='{n}.jpg'>Another pot {n}</a> <b>€ 2{n}</b></div>")
    }

    #[test]
    fn menus_and_other_goods_go_from_the_page_of_one_product() {
        let menu: String = (0..12).map(|n| format!("<li><a href='/c/{n}'>Shelf number {n}</a></li>")).collect();
        let cards: String = (0..4).map(card).collect();
        let rest = format!("<ul>{menu}</ul><div>{cards}</div>");
        let out = kept(&format!("{PRODUCT}{OFFER}{rest}"));
        assert!(out.contains("boils a litre") && out.contains("Kettle"), "{out}");
        for gone in ["Shelf number", "Another pot"] {
            assert!(!out.contains(gone), "{gone}: {out}");
        }
        // Elsewhere both may be what the page is for.
        let out = kept(&format!("{OFFER}{rest}"));
        assert!(["Shelf number", "Another pot"].iter().all(|kept| out.contains(kept)), "{out}");
    }

    #[test]
    fn what_the_page_is_for_stays() {
        // Few cards, cards that are most of the page, pictures of the product itself, and a page of little else.
        let two: String = (0..2).map(card).collect();
        assert!(kept(&format!("{PRODUCT}{OFFER}<div>{two}</div>")).contains("Another pot 1"));
        let many: String = (0..40).map(card).collect();
        assert!(kept(&format!("{PRODUCT}{OFFER}<div>{many}</div>")).contains("Another pot 1"));
        let pictures = "<div><a href='#big'><img src=a.jpg>Front of it</a></div>".repeat(4);
        assert!(kept(&format!("{PRODUCT}{OFFER}<div>{pictures}</div>")).contains("Front of it"));
        let cards: String = (0..4).map(card).collect();
        assert!(kept(&format!("{PRODUCT}<h1>Kettle</h1><div>{cards}</div>")).contains("Another pot 1"));
    }

    #[test]
    fn a_page_of_one_product_is_told_from_a_list_of_them() {
        let is = |text: &str| is_one_product(&guard::parse(text).dom);
        assert!(is(PRODUCT));
        assert!(is("<meta property='og:type' content='product'>"));
        assert!(is("<meta property='og:type' content='og:product'>"));
        assert!(is(r#"<script type="application/ld+json">{"@type":["http://schema.org/Product"]}</script>"#));
        assert!(!is("<p>\"@type\": \"Product\"</p>"));
        assert!(!is("<meta property='og:type' content='website'>"));
        let list = r#"<script type="application/ld+json">{"@type":"ItemList","items":[{"@type":"Product"}]}</script>"#;
        assert!(!is(list));
        assert!(!is(&PRODUCT.repeat(3)));
    }

    #[test]
    fn what_buyers_say_goes_where_enough_is_said_of_the_product() {
        let reviews = format!("<div id=product-reviews>{}</div>", "<p>I like how it pours, every day.</p>".repeat(50));
        let left = |page: &str| {
            let dom = guard::parse(page).dom;
            let m = Measures::of(&dom, false);
            let mut dropped = m.invisible.clone();
            leave_out_reviews(&dom, &m, true, &mut dropped);
            (m.body..dom.len()).any(|i| dropped[i] && dom.text_of(i).contains("every day"))
        };
        assert!(left(&format!("{}{reviews}", OFFER.repeat(8))));
        assert!(!left(&format!("{OFFER}{reviews}")), "a page that lives of them keeps them");
        let single = "<div class=customer-review><p>I like how it pours, every day. It is warm for long.</p></div>";
        assert!(left(&format!("{}{}", OFFER.repeat(8), single.repeat(30))), "one by one");
        assert!(!left(&format!("{}{}", OFFER.repeat(8), single.repeat(2))), "two say what the page says");
        assert!(!left(&format!("{}<div id=reviews><p>I like it.</p></div>", OFFER.repeat(8))), "a line stays");
    }

    #[test]
    fn a_page_of_several_goods_shows_what_they_cost() {
        let shows = |html: &str| {
            let dom = guard::parse(html).dom;
            let m = Measures::of(&dom, false);
            shows_prices(&dom, &m, &m.invisible)
        };
        assert!(shows(&"<li>Pot <b>$ 12.90</b>".repeat(6)) && shows(&"<li><b>12,90 €</b>".repeat(6)));
        assert!(!shows(&"<li>Pot <b>$ 12.90</b>".repeat(5)), "a few");
        assert!(!shows(&"<li>$ 12.90 is what most of them cost</li>".repeat(9)), "prose");
        assert!(!shows(&"<li><b>$HOME</b>".repeat(9)), "no numbers");
    }

    #[test]
    fn microdata_tell_a_page_of_one_product() {
        let has = |text: &str| has_one_product(&guard::parse(text).dom);
        let item = "<div itemscope itemtype='http://schema.org/Product'><h1>Kettle</h1></div>";
        assert!(has(item) && !has(&item.repeat(2)) && !has("<div itemtype='http://schema.org/Offer'>x</div>"));
    }
}
