//! Microdata and RDFa: things described by the attributes of the elements that show them.
//!
//! Both have one form: an element opens a thing, and elements below it are its properties, by their text or by an
//! attribute. Of RDFa that is its "Lite" part, which pages use for schema.org.

use serde_json::{Map, Value, json};

use super::text_below_within;
use crate::address::Addresses;
use crate::tree::{Dom, Tag};

/// Most things and properties of a page.
const MAX_ITEMS: usize = 3_000;
const MAX_PROPERTIES: usize = 30_000;
/// Longest value of a property, bytes.
const MAX_VALUE: usize = 4_000;
/// Most bytes of texts of a page that are looked through for values: elements inside of each other have the same text.
const MAX_TEXTS: usize = 16 << 20;

/// The attributes of a syntax.
pub struct Syntax {
    /// The element is a thing.
    scope: &'static str,
    kind: &'static str,
    /// Of which property of the thing around it the element is the value.
    name: &'static str,
    id: &'static str,
}

/// Microdata of HTML.
pub const MICRODATA: Syntax = Syntax { scope: "itemscope", kind: "itemtype", name: "itemprop", id: "itemid" };
/// RDFa Lite.
pub const RDFA: Syntax = Syntax { scope: "typeof", kind: "typeof", name: "property", id: "resource" };

/// One described thing.
struct Item {
    fields: Map<String, Value>,
    /// The thing it is a property of, and the names of that.
    place: Option<(usize, String)>,
}

/// The outermost things of a page: those that are not a property of another one.
pub fn read(dom: &Dom, addresses: &Addresses, syntax: &Syntax) -> Vec<Value> {
    let mut items: Vec<Item> = Vec::new();
    // Things around the node, with the end of each.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let (mut properties, mut room) = (0, MAX_TEXTS);
    for i in (0..dom.len()).filter(|&i| dom.tag(i).is_element()) {
        while open.last().is_some_and(|(_, end)| i >= *end) {
            open.pop();
        }
        let names = dom.attr_named(i, syntax.name).map(str::trim).filter(|names| !names.is_empty());
        let owner = open.last().map(|(item, _)| *item);
        if dom.attr_named(i, syntax.scope).is_some() {
            if items.len() >= MAX_ITEMS {
                break;
            }
            let mut fields = Map::new();
            for (key, attribute) in [("@type", syntax.kind), ("@id", syntax.id)] {
                if let Some(text) = dom.attr_named(i, attribute) {
                    fields.insert(key.to_owned(), cut(text).into());
                }
            }
            open.push((items.len(), dom.end(i)));
            items.push(Item { fields, place: owner.zip(names.map(str::to_owned)) });
        } else if let (Some(owner), Some(names)) = (owner, names) {
            properties += 1;
            if properties > MAX_PROPERTIES {
                break;
            }
            add(&mut items[owner].fields, names, 5, property(dom, addresses, i, &mut room).into());
        }
    }
    // Things inside come after those around them.
    let mut whole = Vec::new();
    while let Some(Item { mut fields, place }) = items.pop() {
        // They were added last first.
        for value in fields.values_mut() {
            if let Value::Array(list) = value
                && list.iter().any(Value::is_object)
            {
                list.reverse();
            }
        }
        match place {
            // A thing has one place: a copy for each further name would multiply with the depth.
            Some((owner, names)) => add(&mut items[owner].fields, &names, 1, Value::Object(fields)),
            None => whole.push(Value::Object(fields)),
        }
    }
    whole.reverse();
    whole
}

/// Adds a value under the first `most` of the names; a repeated one makes a list.
fn add(fields: &mut Map<String, Value>, names: &str, most: usize, value: Value) {
    let names: Vec<&str> = names.split_ascii_whitespace().take(most).collect();
    let copies = std::iter::repeat_n(value, names.len());
    for (name, value) in names.into_iter().zip(copies) {
        match fields.get_mut(name) {
            None => {
                fields.insert(cut(name), value);
            }
            Some(Value::Array(list)) => list.push(value),
            Some(old) => *old = json!([old.take(), value]),
        }
    }
}

/// The value of a property, as its element says.
fn property(dom: &Dom, addresses: &Addresses, i: usize, room: &mut usize) -> String {
    let of = |name: &str| dom.attr_named(i, name);
    let address = |name: &str| of(name).and_then(|text| addresses.resolve(text));
    let given = match dom.tag(i) {
        Tag::A | Tag::Link | Tag::Area => address("href"),
        Tag::Img | Tag::Audio | Tag::Video | Tag::Source | Tag::Iframe | Tag::Embed | Tag::Track => address("src"),
        Tag::Time => of("datetime").map(str::to_owned),
        _ => of("value").map(str::to_owned),
    };
    let shown = || text_below_within(dom, i, MAX_VALUE, room).unwrap_or_default();
    cut(&of("content").map(str::to_owned).or(given).unwrap_or_else(shown))
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_VALUE)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard;

    fn read_as(html: &str, syntax: &Syntax) -> Value {
        let dom = guard::parse(html).dom;
        let addresses = Addresses::of_page(&dom, &url::Url::parse("https://x.test/p/").expect("a URL"));
        read(&dom, &addresses, syntax).into()
    }

    #[test]
    fn both_syntaxes_give_the_same_things_in_their_order() {
        let microdata = r#"<div itemscope itemtype="T"><b itemprop="name">A  b</b><a itemprop="url" href="q">x</a>
            <p itemprop="offers" itemscope><meta itemprop="price" content="5"></p>
            <p itemprop="offers" itemscope><meta itemprop="price" content="6"></p></div><p itemprop="stray">no</p>"#;
        let rdfa = microdata.replace("itemprop=\"offers\" itemscope", "property=\"offers\" typeof");
        let rdfa = rdfa.replace("itemscope itemtype=", "typeof=").replace("itemprop", "property");
        let expected = json!([{"@type": "T", "name": "A b", "url": "https://x.test/p/q",
            "offers": [{"price": "5"}, {"price": "6"}]}]);
        assert_eq!(read_as(microdata, &MICRODATA), expected);
        let mut found = read_as(&rdfa, &RDFA);
        for offer in found[0]["offers"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            offer.remove("@type");
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn too_many_things_end() {
        let many = "<div itemscope itemprop=a>".repeat(5_000);
        assert!(read_as(&many, &MICRODATA).to_string().len() < 1_000_000);
    }
}
