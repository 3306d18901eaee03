use super::super::{guard, metadata};
use super::*;

fn read(html: &str) -> Option<Menu> {
    let dom = guard::parse(html).dom;
    let url = url::Url::parse("https://bistro.test/menu").expect("a URL");
    let addresses = Addresses::of_page(&dom, &url);
    let metadata = metadata::of_page(&dom, &addresses);
    of_page(&dom, &addresses, &metadata, &url)
}

/// `section: dish amount currency, …` of each section.
fn told(menu: &Menu) -> Vec<String> {
    let dish = |dish: &Dish| {
        let price = dish.price.as_ref().map(|p| format!(" {} {}", p.amount, p.currency.as_deref().unwrap_or("?")));
        format!("{}{}", dish.name, price.unwrap_or_default())
    };
    let of = |section: &Section| {
        format!("{}: {}", section.name, section.dishes.iter().map(dish).collect::<Vec<_>>().join(", "))
    };
    menu.sections.iter().map(of).collect()
}

#[test]
fn a_restaurants_menu_is_read_with_its_sections_in_order() {
    let menu = read(
        r##"<title>Menu</title><script type="application/ld+json">{"@type": "Restaurant", "name": "Bistro",
        "address": {"streetAddress": "Main St 1", "addressLocality": "Bern"}, "hasMenu": {"@id": "#menu"}}</script>
        <script type="application/ld+json">{"@id": "#menu", "@type": "Menu", "hasMenuSection": [
        {"name": "Starters", "description": "Small", "hasMenuItem": [{"@type": "MenuItem", "name": "Soup", "description": "Of the day",
        "image": "/soup.jpg", "suitableForDiet": ["https://schema.org/VeganDiet", "GlutenFreeDiet"], "nutrition": {"calories": "250 calories"},
        "identifier": "S1", "offers": {"price": "7.50", "priceCurrency": "CHF"}}],
        "hasMenuSection": {"name": "Cold", "hasMenuItem": {"name": "Salad", "offers": {"price": 9, "priceCurrency": "CHF",
        "availability": "SoldOut"}}}}, {"name": "Empty"}, {"name": "Mains", "hasMenuItem": [{"name": "Fish"}]}]}</script>"##,
    )
    .expect("a menu");
    assert_eq!(told(&menu), ["Starters: Soup 7.5 CHF", "Cold: Salad 9 CHF", "Mains: Fish"]);
    let merchant =
        Merchant { name: "Bistro".into(), kind: Some("Restaurant".into()), location: Some("Main St 1, Bern".into()) };
    assert_eq!((&menu.merchant, menu.currency.as_deref(), menu.confidence), (&merchant, Some("CHF"), 1.0));
    let soup = &menu.sections[0].dishes[0];
    assert_eq!((soup.dietary.join(" "), soup.calories), ("VeganDiet GlutenFreeDiet".into(), Some(250.0)));
    assert_eq!((soup.id.as_deref(), soup.images[0].url.as_str()), (Some("S1"), "https://bistro.test/soup.jpg"));
    assert!(soup.availability.in_stock && !menu.sections[1].dishes[0].availability.in_stock);
}

#[test]
fn microdata_rdfa_and_state_are_read() {
    let microdata = r#"<meta property="og:site_name" content="Bistro"><div itemscope itemtype="https://schema.org/Menu">
        <div itemprop="hasMenuSection" itemscope itemtype="https://schema.org/MenuSection"><h2 itemprop="name">Mains</h2>
        <div itemprop="hasMenuItem" itemscope itemtype="https://schema.org/MenuItem"><b itemprop="name">Fish</b>
        <i itemprop="offers" itemscope itemtype="https://schema.org/Offer"><b itemprop="price">€12</b></i></div>
        <div itemprop="hasMenuItem" itemscope itemtype="https://schema.org/MenuItem"><b itemprop="name">Rice</b></div></div></div>"#;
    let rdfa = microdata.replace("itemscope itemtype=\"https://schema.org/", "typeof=\"schema:");
    let rdfa = rdfa.replace("itemprop=\"", "property=\"");
    for page in [microdata, &rdfa] {
        let menu = read(page).expect("a menu");
        assert_eq!(told(&menu), ["Mains: Fish 12 EUR, Rice"], "{page}");
        assert_eq!((menu.merchant.name.as_str(), menu.currency.as_deref()), ("Bistro", Some("EUR")));
    }
    let state = r#"<script>window.S = {"menu": {"categories": [{"name": "Mains", "items": [{"id": 7, "name": "Fish", "price": 12.5,
        "currency": "EUR", "soldOut": true}]}]}}</script><h1>Bistro</h1>"#;
    let menu = read(state).expect("a menu");
    assert_eq!((told(&menu), menu.confidence), (vec!["Mains: Fish 12.5 EUR".to_owned()], 0.8));
    assert!(!menu.sections[0].dishes[0].availability.in_stock);
    assert_eq!(menu.merchant.name, "bistro.test", "nothing else names it");
}

#[test]
fn what_a_page_shows_is_a_menu_where_dishes_have_prices() {
    let dish = |name: &str, price: &str| {
        format!(
            "<li class='menu-item'><h3>{name}</h3><p class=description>With salt</p><span class=price>{price}</span></li>"
        )
    };
    let list = |prices: [&str; 3]| {
        let dishes: String = ["Soup", "Salad", "Bread"].iter().zip(prices).map(|(n, p)| dish(n, p)).collect();
        format!("<title>Bistro</title><h2>Starters</h2><ul>{dishes}</ul>")
    };
    let menu = read(&list(["$5", "$6.50", "$7"])).expect("a menu");
    assert_eq!(told(&menu), ["Starters: Soup 5 ?, Salad 6.5 ?, Bread 7 ?"]);
    assert_eq!((menu.currency.as_deref(), menu.confidence, menu.merchant.name.as_str()), (None, 0.6, "Bistro"));
    assert_eq!(menu.sections[0].dishes[0].description.as_deref(), Some("With salt"));
    assert_eq!(read(&list(["", "soon", ""])), None, "a menu of commands");
    assert_eq!(read("<p>An article about a menu</p>"), None);
}

#[test]
fn hostile_menus_are_cut() {
    let items = r#"{"name": "x", "offers": {"price": 1}},"#.repeat(4_000);
    let page = |inside: &str| format!("<script type='application/ld+json'>{inside}</script>");
    let menu =
        read(&page(&format!(r#"{{"@type": "Menu", "hasMenuItem": [{items}{{"name": "y"}}]}}"#))).expect("a menu");
    assert!(menu.sections[0].dishes.len() <= MAX_DISHES);
    let ring = r##"{"@id": "#a", "@type": "Menu", "name": "A", "hasMenuSection": {"@id": "#a"}, "hasMenuItem": {"name": "x"}}"##;
    assert_eq!(read(&page(ring)).map(|menu| menu.sections.len()), Some(1));
}
