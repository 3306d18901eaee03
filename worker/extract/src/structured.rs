//! What a page says of itself as data: JSON-LD, microdata and OpenGraph. It is told to a language model before the text.

use serde_json::{Map, Value};

use super::address::Addresses;
use super::things::{items, linked};
use super::tree::Dom;

/// Most bytes of JSON that are taken, all kinds together; what comes later is left out.
const MAX_BYTES: usize = 60_000;

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
    let linked: Vec<Value> = linked::read(dom).filter(&mut fits).collect();
    if !linked.is_empty() {
        found.insert("jsonLd".to_owned(), linked.into());
    }
    let items: Vec<Value> = items::read(dom, addresses, &items::MICRODATA).into_iter().filter(&mut fits).collect();
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

#[cfg(test)]
mod tests {
    use serde_json::json;

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
