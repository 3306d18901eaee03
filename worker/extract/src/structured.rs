//! What a page says of itself as data: JSON-LD, microdata and OpenGraph. It is told to a language model before the text.

use html5ever::local_name;
use serde_json::{Map, Value, json};

use super::address::Addresses;
use super::tree::{Dom, Tag};

/// Most bytes of JSON that are taken, all kinds together; what comes later is left out.
const MAX_BYTES: usize = 60_000;
/// Largest script read, bytes.
const MAX_SCRIPT: usize = 1 << 20;
/// Most microdata items and properties of a page.
const MAX_ITEMS: usize = 300;
const MAX_PROPERTIES: usize = 3_000;
/// Longest value of a property, bytes.
const MAX_VALUE: usize = 4_000;

/// The page's own data; `None` when it has none.
pub fn of_page(dom: &Dom, addresses: &Addresses, metadata: &Map<String, Value>) -> Option<Value> {
    let mut room = MAX_BYTES;
    let mut fits = |value: &Value| {
        let size = value.to_string().len();
        let fits = size <= room;
        if fits {
            room -= size;
        }
        fits
    };
    let mut found = Map::new();
    let linked: Vec<Value> = linked_data(dom).filter(&mut fits).collect();
    if !linked.is_empty() {
        found.insert("jsonLd".to_owned(), linked.into());
    }
    let items: Vec<Value> = microdata(dom, addresses).into_iter().filter(&mut fits).collect();
    if !items.is_empty() {
        found.insert("microdata".to_owned(), items.into());
    }
    let is_named = |name: &str| {
        ["og:", "product:", "article:", "book:", "profile:", "music:", "video:"].iter().any(|p| name.starts_with(p))
    };
    let graph: Map<String, Value> = metadata
        .iter()
        .filter(|(name, value)| is_named(name) && fits(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !graph.is_empty() {
        found.insert("openGraph".to_owned(), graph.into());
    }
    (!found.is_empty()).then_some(Value::Object(found))
}

fn linked_data(dom: &Dom) -> impl Iterator<Item = Value> {
    let is_linked = |i: &usize| {
        dom.tag(*i) == Tag::Script && dom.attr(*i, &local_name!("type")).is_some_and(|kind| kind.contains("ld+json"))
    };
    (0..dom.len()).filter(is_linked).filter_map(|i| {
        let text = dom.text_of(i);
        if text.len() > MAX_SCRIPT { None } else { serde_json::from_str(text.trim()).ok() }
    })
}

/// One element with `itemscope`.
struct Item {
    fields: Map<String, Value>,
    /// The item it is a property of, and the names of that.
    place: Option<(usize, String)>,
}

/// The outermost items of a page: those that are not a property of another one.
fn microdata(dom: &Dom, addresses: &Addresses) -> Vec<Value> {
    let mut items: Vec<Item> = Vec::new();
    // Items around the node, with the end of each.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut properties = 0;
    for i in (0..dom.len()).filter(|&i| dom.tag(i).is_element()) {
        while open.last().is_some_and(|(_, end)| i >= *end) {
            open.pop();
        }
        let names = dom.attr_named(i, "itemprop").map(str::trim).filter(|names| !names.is_empty());
        let owner = open.last().map(|(item, _)| *item);
        if dom.attr_named(i, "itemscope").is_some() {
            if items.len() >= MAX_ITEMS {
                break;
            }
            let mut fields = Map::new();
            if let Some(kind) = dom.attr_named(i, "itemtype") {
                fields.insert("@type".to_owned(), cut(kind).into());
            }
            open.push((items.len(), dom.end(i)));
            items.push(Item { fields, place: owner.zip(names.map(str::to_owned)) });
        } else if let (Some(owner), Some(names)) = (owner, names) {
            properties += 1;
            if properties > MAX_PROPERTIES {
                break;
            }
            add(&mut items[owner].fields, names, property(dom, addresses, i).into());
        }
    }
    // Items inside come after those around them.
    let mut whole = Vec::new();
    while let Some(Item { fields, place }) = items.pop() {
        match place {
            Some((owner, names)) => add(&mut items[owner].fields, &names, Value::Object(fields)),
            None => whole.push(Value::Object(fields)),
        }
    }
    whole.reverse();
    whole
}

/// Adds a value under each of the names; a repeated one makes a list.
fn add(fields: &mut Map<String, Value>, names: &str, value: Value) {
    let most = if value.is_object() { 1 } else { 5 };
    for name in names.split_ascii_whitespace().take(most) {
        match fields.get_mut(name) {
            None => {
                fields.insert(cut(name), value.clone());
            }
            Some(Value::Array(list)) => list.push(value.clone()),
            Some(old) => *old = json!([old.take(), value.clone()]),
        }
    }
}

/// The value of a property, as its element says.
fn property(dom: &Dom, addresses: &Addresses, i: usize) -> String {
    let of = |name: &str| dom.attr_named(i, name);
    let address = |name: &str| of(name).and_then(|text| addresses.resolve(text));
    let given = match dom.tag(i) {
        Tag::A | Tag::Link | Tag::Area => address("href"),
        Tag::Img | Tag::Audio | Tag::Video | Tag::Source | Tag::Iframe | Tag::Embed | Tag::Track => address("src"),
        Tag::Time => of("datetime").map(str::to_owned),
        _ => of("value").map(str::to_owned),
    };
    let text = of("content")
        .map(str::to_owned)
        .or(given)
        .unwrap_or_else(|| dom.text_of(i).split_whitespace().collect::<Vec<_>>().join(" "));
    cut(&text)
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_VALUE)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    fn read(html: &str) -> Option<Value> {
        let dom = guard::parse(html).dom;
        let addresses = Addresses::of_page(&dom, &url::Url::parse("https://x.test/p/").expect("a URL"));
        let metadata = super::super::metadata::of_page(&dom, &addresses);
        of_page(&dom, &addresses, &metadata)
    }

    #[test]
    fn data_of_all_three_kinds_is_found() {
        let found = read(
            r#"<meta property="og:type" content="product"><meta name="x" content="y">
            <script type="application/ld+json">{"@type": "Product", "name": "A"}</script><script type="application/ld+json">{bad</script>
            <div itemscope itemtype="https://schema.org/Product"><b itemprop="name">A  b</b><a itemprop="url" href="q">x</a>
            <span itemprop="offers" itemscope><meta itemprop="price" content="5"><i itemprop="tag">1</i><i itemprop="tag">2</i></span></div>
            <p itemprop="stray">no</p>"#,
        );
        let expected = json!({
            "jsonLd": [{"@type": "Product", "name": "A"}],
            "microdata": [{"@type": "https://schema.org/Product", "name": "A b", "url": "https://x.test/p/q",
                "offers": {"price": "5", "tag": ["1", "2"]}}],
            "openGraph": {"og:type": "product"},
        });
        assert_eq!(found, Some(expected));
        assert_eq!(read("<p>nothing"), None);
    }

    #[test]
    fn what_is_too_much_is_left_out() {
        let many = "<div itemscope><b itemprop=a>x</b>".repeat(5_000);
        let long = format!("<script type='application/ld+json'>{{\"a\": \"{}\"}}</script>", "x".repeat(70_000));
        let found = read(&format!("{long}{many}")).unwrap_or_default();
        assert!(found.get("jsonLd").is_none() && found.to_string().len() < 100_000);
    }
}
