use super::super::{guard, metadata};
use super::*;

fn read_at(address: &str, html: &str) -> Option<Product> {
    let dom = guard::parse(html).dom;
    let url = url::Url::parse(address).expect("a URL");
    let addresses = Addresses::of_page(&dom, &url);
    let metadata = metadata::of_page(&dom, &addresses);
    let canonical = metadata::canonical(&dom, &addresses);
    of_page(&dom, &addresses, &metadata, [Some(&url), canonical.as_ref()])
}

fn read(html: &str) -> Option<Product> {
    read_at("https://shop.test/p/kettle", html)
}

fn linked(json: &str) -> String {
    format!("<h1>Kettle</h1><script type='application/ld+json'>{json}</script>")
}

type Told<'a> = (Option<&'a str>, Option<f64>, Option<&'a str>, Option<f64>, bool);

/// `(sku, amount, currency, amount before, in stock)` of each variant.
fn told(product: &Product) -> Vec<Told<'_>> {
    fn tell(variant: &Variant) -> Told<'_> {
        let price = variant.price.as_ref();
        let currency = price.and_then(|price| price.currency.as_deref());
        let before = variant.original.as_ref().map(|price| price.amount);
        (variant.sku.as_deref(), price.map(|price| price.amount), currency, before, variant.availability.in_stock)
    }
    product.variants.iter().map(tell).collect()
}

#[test]
fn a_product_with_one_offer_is_one_variant() {
    let product = read(&linked(
        r#"{"@context": "https://schema.org", "@graph": [{"@type": "BreadcrumbList"}, {"@type": "Product", "name": "Kettle &amp; lid",
        "brand": {"@type": "Brand", "name": "Ada"}, "category": "Kitchen", "description": "<p>Boils.</p>", "sku": "K-1",
        "image": ["/1.jpg", {"@type": "ImageObject", "url": "2.jpg", "caption": "Side"}, "javascript:x"], "color": "red",
        "additionalProperty": [{"name": "Weight", "value": 2}],
        "offers": {"@type": "Offer", "price": "19.90", "priceCurrency": "EUR", "availability": "https://schema.org/InStock"}}]}"#,
    ))
    .expect("a product");
    let image = |url: &str, alt: Option<&str>| Image { url: url.to_owned(), alt: alt.map(str::to_owned) };
    assert_eq!(
        product,
        Product {
            title: "Kettle & lid".into(),
            brand: Some("Ada".into()),
            category: Some("Kitchen".into()),
            url: "https://shop.test/p/kettle".into(),
            description: Some("Boils.".into()),
            variants: vec![Variant {
                sku: Some("K-1".into()),
                values: vec![("color".into(), "red".into())],
                price: Some(Price { amount: 19.9, currency: Some("EUR".into()), formatted: None }),
                availability: Availability { in_stock: true, text: Some("InStock".into()) },
                images: vec![image("https://shop.test/1.jpg", None), image("https://shop.test/p/2.jpg", Some("Side"))],
                ..Variant::default()
            }],
        }
    );
}

#[test]
fn groups_offers_and_models_make_variants() {
    let group = read(&linked(
        r##"[{"@type": "ProductGroup", "@id": "#g", "name": "Kettle", "hasVariant": [
        {"@type": "Product", "name": "Kettle, small", "sku": "S", "size": "small", "offers": {"price": 10, "priceCurrency": "EUR"}},
        {"@id": "#big"}]}, {"@id": "#big", "@type": "Product", "sku": "B", "name": "Kettle", "isVariantOf": {"@id": "#g"},
        "offers": {"price": "20", "priceCurrency": "EUR", "availability": "OutOfStock"}}]"##,
    ))
    .expect("a product");
    assert_eq!(
        told(&group),
        [(Some("S"), Some(10.0), Some("EUR"), None, true), (Some("B"), Some(20.0), Some("EUR"), None, false)]
    );
    assert_eq!(group.variants[0].title.as_deref(), Some("Kettle, small"));
    assert_eq!((group.variants[1].title.as_deref(), group.title.as_str()), (None, "Kettle"));

    let offers = read(&linked(
        r#"{"@type": "Product", "name": "Kettle", "offers": {"@type": "AggregateOffer", "priceCurrency": "EUR", "lowPrice": 10,
        "offers": [{"sku": "S", "price": 10, "itemOffered": {"size": "small"}}, {"sku": "B", "price": 20}]}}"#,
    ))
    .expect("a product");
    assert_eq!(
        told(&offers),
        [(Some("S"), Some(10.0), Some("EUR"), None, true), (Some("B"), Some(20.0), Some("EUR"), None, true)]
    );
    assert_eq!(offers.variants[0].values, [("size".to_owned(), "small".to_owned())]);

    let model = |id: &str, sku: &str| {
        format!(
            r#"{{"@type": "Product", "name": "Kettle {sku}", "sku": "{sku}", "inProductGroupWithID": "{id}", "offers": {{"price": 5}}}}"#
        )
    };
    let models = read(&linked(&format!("[{}, {}]", model("7", "S"), model("7", "B")))).expect("a product");
    assert_eq!(models.variants.len(), 2);
    assert_eq!(read(&linked(&format!("[{}, {}]", model("7", "S"), model("8", "B")))), None, "two products");
}

#[test]
fn of_several_products_the_pages_own_counts() {
    let list = |urls: [&str; 2]| {
        linked(&format!(
            r#"[{{"@type": "Product", "name": "Pan", "url": "{}"}}, {{"@type": "Product", "name": "Pot", "url": "{}"}}]"#,
            urls[0], urls[1]
        ))
    };
    let own = read(&list(["/p/pan", "/p/kettle?color=red"])).expect("a product");
    assert_eq!(own.title, "Pot");
    assert_eq!(read(&list(["/p/pan", "/p/pot"])), None);
    let called = r#"[{"@type": "Product", "name": "Pan"}, {"@type": "Product", "name": "KETTLE"}]"#;
    assert_eq!(read(&linked(called)).map(|product| product.title).as_deref(), Some("KETTLE"));
    let listed = r#"{"@type": "ItemList", "itemListElement": [{"@type": "ListItem", "item": {"@type": "Product", "name": "Pan"}}]}"#;
    assert_eq!(read(&linked(listed)), None, "a list is no product");
    let related = r#"{"@type": "Product", "name": "Kettle", "isRelatedTo": {"@type": "Product", "name": "Pan"}}"#;
    assert_eq!(read(&linked(related)).map(|product| product.title).as_deref(), Some("Kettle"));
}

#[test]
fn microdata_and_rdfa_are_read_alike() {
    let microdata = r#"<div itemscope itemtype="https://schema.org/Product"><h1 itemprop="name">Kettle</h1>
        <span itemprop="brand" itemscope itemtype="https://schema.org/Brand"><b itemprop="name">Ada</b></span>
        <img itemprop="image" src="/1.jpg"><div itemprop="offers" itemscope itemtype="https://schema.org/Offer">
        <meta itemprop="priceCurrency" content="EUR"><span itemprop="price">€ 1.299,00</span>
        <link itemprop="availability" href="https://schema.org/PreOrder"></div></div>"#;
    let rdfa = microdata.replace("itemscope itemtype=\"https://schema.org/", "typeof=\"schema:");
    let rdfa = rdfa.replace("itemprop=\"", "property=\"schema:");
    for page in [microdata, &rdfa] {
        let product = read(page).expect("a product");
        assert_eq!((product.title.as_str(), product.brand.as_deref()), ("Kettle", Some("Ada")), "{page}");
        assert_eq!(told(&product), [(None, Some(1299.0), Some("EUR"), None, false)]);
        let price = product.variants[0].price.as_ref().and_then(|price| price.formatted.as_deref());
        assert_eq!(price, Some("€ 1.299,00"));
        assert_eq!(product.variants[0].availability.text.as_deref(), Some("PreOrder"));
    }
}

#[test]
fn the_state_of_shops_is_read() {
    let liquid = r#"<script>var theme = {}; theme.product = {"id": 1, "title": "Kettle", "handle": "kettle", "vendor": "Ada",
        "type": "Kitchen", "price": 1990, "price_varies": true, "options": ["Size"], "variants": [
        {"id": 11, "title": "S", "option1": "S", "sku": "K-S", "price": 1990, "compare_at_price": 2500, "available": true},
        {"id": 12, "title": "L", "option1": "L", "sku": "K-L", "price": 2990, "compare_at_price": null, "available": false}]};</script>
        <h1>Kettle</h1><meta property="og:price:amount" content="19.90"><meta property="og:price:currency" content="EUR"><meta property="og:title" content="Kettle">"#;
    let product = read(liquid).expect("a product");
    assert_eq!(
        told(&product),
        [(Some("K-S"), Some(19.9), Some("EUR"), Some(25.0), true), (Some("K-L"), Some(29.9), Some("EUR"), None, false)]
    );
    assert_eq!(product.variants[1].values, [("Size".to_owned(), "L".to_owned())]);
    assert_eq!((product.brand.as_deref(), product.variants[0].id.as_deref()), (Some("Ada"), Some("11")));

    let graph = r#"<script type="application/json" id="__NEXT_DATA__">{"props": {"product": {"title": "Kettle", "handle": "kettle",
        "variants": {"edges": [{"node": {"id": "gid://1", "title": "Red", "availableForSale": true,
        "price": {"amount": "12.5", "currencyCode": "CHF"}, "selectedOptions": [{"name": "Color", "value": "Red"}]}}]}},
        "related": [{"title": "Pan", "handle": "pan", "variants": [{"price": "1"}]}]}}</script><p>Text of it"#;
    let product = read(graph).expect("a product");
    assert_eq!((product.title.as_str(), told(&product)), ("Kettle", vec![(None, Some(12.5), Some("CHF"), None, true)]));

    let form = r#"<h1>Kettle</h1><form class="variations_form" data-product_variations='[{"attributes": {"attribute_pa_size": "s"},
        "display_price": 10, "display_regular_price": 12, "is_in_stock": true, "sku": "S", "variation_id": 5}]'></form>"#;
    let product = read(form).expect("a product");
    assert_eq!(told(&product), [(Some("S"), Some(10.0), None, Some(12.0), true)]);
    assert_eq!(product.variants[0].values, [("size".to_owned(), "s".to_owned())]);
}

#[test]
fn the_page_itself_is_the_last_to_be_asked() {
    let shown =
        r#"<h1>Kettle</h1><del class="price-old">€ 30</del><p class="price">€ 19,90</p><button>Add to cart</button>"#;
    let product = read(shown).expect("a product");
    assert_eq!((product.title.as_str(), told(&product)), ("Kettle", vec![(None, Some(19.9), Some("EUR"), None, true)]));
    let several = shown.replace("</button>", "</button><button>Add to cart</button>");
    assert_eq!(read(&several), None, "a list of goods");
    assert_eq!(read(r#"<h1>About prices</h1><p class="price">€ 19,90</p>"#), None, "nothing can be bought");
    let graph = r#"<meta property="og:type" content="product"><meta property="og:title" content="Kettle"><h1>x</h1>"#;
    assert_eq!(read(graph), None, "pages of categories say so, too");
    let graph = format!(
        r#"{graph}<meta property="product:price:amount" content="5"><meta property="product:availability" content="oos">"#
    );
    assert_eq!(told(&read(&graph).expect("a product")), [(None, Some(5.0), None, None, false)]);
    assert_eq!(read("<h1>Just text</h1><p>Nothing here."), None);
}

/// So many goods as shops list them.
fn cards(count: usize) -> String {
    let card = |n: usize| {
        format!(
            "<li class='card'><a href='/p/item-{n}'><img src='/{n}.jpg'></a><h3>Item {n}</h3><span class='price'>€ {n},90</span></li>"
        )
    };
    format!("<ul>{}</ul>", (0..count).map(card).collect::<String>())
}

fn category(json: &str, cards: &str) -> String {
    format!("<h1>Running shoes</h1><script type='application/ld+json'>{json}</script>{cards}")
}

fn at_category(html: &str) -> Option<Product> {
    read_at("https://shop.test/c/running-shoes", html)
}

#[test]
fn a_category_that_calls_itself_a_product_is_none() {
    // With all that it lists as its offers.
    let offers: Vec<String> = (0..40)
        .map(|n| format!(r#"{{"@type": "Offer", "name": "Model {n}", "url": "/p/model-{n}", "price": "{n}.90", "priceCurrency": "EUR"}}"#))
        .collect();
    let product = |offers: &str| format!(r#"{{"@type": "Product", "name": "Running shoes", "offers": {offers}}}"#);
    let listed = format!(r#"{{"@type": "AggregateOffer", "lowPrice": 1, "offers": [{}]}}"#, offers.join(","));
    assert_eq!(at_category(&category(&product(&listed), "")), None);
    assert_eq!(at_category(&category(&product(&format!("[{}]", offers.join(","))), &cards(40))), None);
    let items = listed.replace(r#""name": "Model"#, r#""itemOffered": {"@type": "Product"}, "name": "Model"#);
    assert_eq!(at_category(&category(&product(&items), &cards(40))), None);
    // With a range of prices alone.
    let range =
        r#"{"@type": "AggregateOffer", "lowPrice": 19, "highPrice": 199, "priceCurrency": "EUR", "offerCount": 40}"#;
    assert_eq!(at_category(&category(&product(range), &cards(40))), None);
    // With one of its goods described, at its own address.
    let featured =
        r#"{"@type": "Product", "name": "Pegasus", "sku": "P", "url": "/p/pegasus", "offers": {"price": 99}}"#;
    assert_eq!(at_category(&category(featured, &cards(40))), None);
    // With a word that it is a collection.
    for kind in ["CollectionPage", "SearchResultsPage"] {
        let page = format!(r#"[{{"@type": "{kind}"}}, {featured}]"#);
        assert_eq!(at_category(&category(&page, "")), None, "{kind}");
    }
}

#[test]
fn a_category_as_it_is_shown_is_no_product() {
    let one = "<button>Add to cart</button></li>";
    let shown = format!("<h1>Running shoes</h1>{}", cards(40).replacen("</li>", one, 1));
    assert_eq!(at_category(&shown), None);
    let banner = format!("<h1>Running shoes</h1>{}<aside><button>Buy now</button></aside>", cards(40));
    assert_eq!(at_category(&banner), None);
    let form =
        |sku: &str| format!(r#"<form data-product_variations='[{{"display_price": 10, "sku": "{sku}"}}]'></form>"#);
    let forms = format!("<h1>Running shoes</h1>{}{}{}", form("A"), form("B"), cards(40));
    assert_eq!(at_category(&forms), None);
}

#[test]
fn a_product_among_others_and_with_many_offers_stays_one() {
    // A range of prices, and a shelf with what else there is.
    let range =
        r#"{"@type": "AggregateOffer", "lowPrice": 19, "highPrice": 29, "priceCurrency": "EUR", "offerCount": 3}"#;
    let known = format!(r#"{{"@type": "Product", "name": "Kettle", "sku": "K", "offers": {range}}}"#);
    assert!(read(&(linked(&known) + &cards(12))).is_some());
    let unknown = format!(r#"{{"@type": "Product", "name": "Kettle", "offers": {range}}}"#);
    assert!(read(&(linked(&unknown) + &cards(4))).is_some());
    // Its forms have pages of their own.
    let forms = ["red", "blue", "green", "black"]
        .map(|colour| format!(r#"{{"@type": "Offer", "name": "{colour}", "url": "/p/kettle-{colour}", "price": 5}}"#));
    let product =
        read(&linked(&format!(r#"{{"@type": "Product", "name": "Kettle", "offers": [{}]}}"#, forms.join(","))));
    assert_eq!(product.expect("a product").variants.len(), 4);
    // Several shops sell it.
    let sellers = (0..40)
        .map(|n| format!(r#"{{"@type": "Offer", "seller": {{"name": "Shop {n}"}}, "url": "/out/{n}", "price": {n}}}"#));
    let sellers: Vec<String> = sellers.collect();
    let product =
        read(&linked(&format!(r#"{{"@type": "Product", "name": "Kettle", "offers": [{}]}}"#, sellers.join(","))));
    assert_eq!(product.expect("a product").variants.len(), 40);
    let elsewhere = sellers.join(",").replace("/out/", "https://shop").replace("\"seller\"", "\"x\"");
    assert!(read(&linked(&format!(r#"{{"@type": "Product", "name": "Kettle", "offers": [{elsewhere}]}}"#))).is_some());
    // It is only shown, with its price before the others'.
    let shown = format!("<h1>Kettle</h1><p class='price'>€ 19,90</p><button>Add to cart</button>{}", cards(12));
    assert_eq!(told(&read(&shown).expect("a product")), [(None, Some(19.9), Some("EUR"), None, true)]);
    // What describes it spells its address in another way.
    let elsewhere = r#"{"@type": "Product", "name": "Kettle, 2 l", "url": "https://www.shop.test/p/kettle/", "offers": {"price": 5}}"#;
    assert!(read(&(linked(elsewhere) + &cards(12))).is_some());
    let renamed =
        r#"{"@type": "Product", "name": "Ada Kettle", "url": "https://shop.test/item/7", "offers": {"price": 5}}"#;
    assert!(read(&(linked(renamed) + &cards(12))).is_some());
}

#[test]
fn hostile_data_is_cut() {
    let offers = r#"{"price": 1},"#.repeat(5_000);
    let page = linked(&format!(
        r#"{{"@type": "Product", "name": "{}", "offers": [{offers}{{"price": 2}}]}}"#,
        "x".repeat(5_000)
    ));
    let product = read(&page).expect("a product");
    assert_eq!((product.title.len(), product.variants.len()), (500, MAX_VARIANTS));
    let deep = linked(&format!("{}1{}", r#"{"@graph": ["#.repeat(5_000), "]}".repeat(5_000)));
    assert_eq!(read(&deep), None);
    let ring = r##"{"@id": "#a", "@type": "ProductGroup", "name": "A", "hasVariant": {"@id": "#a"}, "isVariantOf": {"@id": "#a"}}"##;
    assert!(read(&linked(ring)).is_some());
}
