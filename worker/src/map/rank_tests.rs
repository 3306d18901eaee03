use weir_shared::clock::Stopwatch;

use super::*;

fn link(url: &str, title: Option<&str>, description: Option<&str>) -> Link {
    Link { url: url.into(), title: title.map(Into::into), description: description.map(Into::into) }
}

/// The pages of a shop for outdoor gear with a help centre, a blog and documentation: 300 in all. Half of the titles
/// are as shops write them, some pages have none.
fn site() -> Vec<Link> {
    let base = "https://www.northtrail.example";
    let mut links = vec![
        link(base, Some("Northtrail | Outdoor gear for every season"), Some("Tents, boots and packs.")),
        link(&format!("{base}/about"), Some("About us - Northtrail"), None),
        link(&format!("{base}/about/team"), Some("The people behind Northtrail"), None),
        link(&format!("{base}/careers"), Some("Jobs at Northtrail"), Some("Open positions in stores and offices.")),
        link(&format!("{base}/careers/store-manager-berlin"), Some("Store Manager (Berlin)"), None),
        link(&format!("{base}/contact"), Some("Contact"), Some("Phone, mail and chat.")),
        link(&format!("{base}/legal/privacy-policy"), None, None),
        link(&format!("{base}/legal/terms-and-conditions"), None, None),
        link(&format!("{base}/legal/imprint"), None, None),
        link(&format!("{base}/stores"), Some("Find a store near you"), None),
        link(&format!("{base}/gift-cards"), Some("Gift cards"), None),
        link(&format!("{base}/account/signup"), Some("Create an account"), None),
        link(&format!("{base}/account/login"), Some("Log in"), None),
        link(&format!("{base}/account/reset-password"), None, None),
        link(&format!("{base}/pricing"), Some("Northtrail Plus: plans and pricing"), None),
        link(
            &format!("{base}/help/returns-and-refunds"),
            Some("Returning an item"),
            Some("How to send things back and get your money."),
        ),
        link(
            &format!("{base}/help/track-your-order"),
            Some("Where is my parcel?"),
            Some("Track an order from dispatch to delivery."),
        ),
        link(&format!("{base}/help/shipping-costs"), Some("Delivery times and shipping costs"), None),
        link(&format!("{base}/help/size-guide-boots"), Some("Which boot size do I need?"), None),
        link(&format!("{base}/help/warranty"), Some("Warranty and repairs"), None),
        link(&format!("{base}/help/payment-methods"), Some("Ways to pay"), Some("Cards, invoice and instalments.")),
        link(&format!("{base}/help/cancel-order"), Some("Cancelling or changing an order"), None),
        link(&format!("{base}/docs/api/authentication"), Some("API keys and authentication | Developers"), None),
        link(&format!("{base}/docs/api/rate-limits"), Some("Rate limits | Developers"), None),
        link(&format!("{base}/docs/api/webhooks"), Some("Receiving webhooks | Developers"), None),
        link(
            &format!("{base}/docs/getting-started"),
            Some("Quickstart | Developers"),
            Some("Your first request in five minutes."),
        ),
        link(&format!("{base}/blog/how-to-waterproof-a-tent"), Some("Seam by seam: waterproofing your tent"), None),
        link(&format!("{base}/blog/best-winter-hikes-in-the-alps"), Some("Twelve winter hikes in the Alps"), None),
        link(
            &format!("{base}/blog/caring-for-down-jackets"),
            Some("Washing and storing down"),
            Some("Care for jackets and sleeping bags filled with down."),
        ),
        link(&format!("{base}/blog/packing-list-weekend"), Some("What to pack for a weekend outdoors"), None),
        link(&format!("{base}/press"), Some("Press room"), None),
        link(&format!("{base}/sustainability/recycling-programme"), Some("Bring back your old gear"), None),
        link(&format!("{base}/de/hilfe/ruecksendung"), Some("Rücksendungen und Erstattung"), None),
        link(&format!("{base}/de/zelte"), Some("Zelte für zwei bis sechs Personen"), None),
        link(
            &format!("{base}/fr/chaussures-de-randonnee"),
            Some("Chaussures de randonnée pour femmes et hommes"),
            None,
        ),
        link(&format!("{base}/ja/tento"), Some("二人用テントの選び方"), None),
        link(&format!("{base}/ru/palatki"), Some("Палатки для зимних походов"), None),
    ];
    let kinds = [
        ("tents", "Tent"),
        ("boots", "Hiking Boot"),
        ("backpacks", "Backpack"),
        ("jackets", "Jacket"),
        ("sleeping-bags", "Sleeping Bag"),
        ("stoves", "Camping Stove"),
    ];
    let names = ["Aurora", "Borealis", "Cirrus", "Drift", "Ember", "Fjord", "Glacier", "Horizon", "Isle", "Juniper"];
    for (slug, kind) in kinds {
        links.push(link(&format!("{base}/shop/{slug}"), Some(&format!("{kind}s | Northtrail")), None));
        for (n, name) in names.iter().enumerate() {
            let address = format!("{base}/shop/{slug}/{}-{}", name.to_lowercase(), n + 1);
            let title = format!("{name} {} {kind}", n + 1);
            let about = format!("The {name} for three seasons, in four colours.");
            links.push(link(&address, (n % 3 != 2).then_some(&title), (n % 2 == 0).then_some(&about)));
            links.push(link(&format!("{address}/reviews"), Some(&format!("Reviews: {title}")), None));
        }
    }
    for n in links.len()..300 {
        let topic = ["Trail notes", "Store news", "Product update", "Interview", "Photo story"][n % 5];
        links.push(link(&format!("{base}/blog/archive/2024/{n:03}"), Some(&format!("{topic} no. {n}")), None));
    }
    links
}

#[test]
fn the_wanted_page_is_among_the_first_three() {
    let site = site();
    assert_eq!(site.len(), 300);
    let queries = [
        ("pricing", "/pricing"),
        ("how much does plus cost", "/pricing"),
        ("return an item", "/help/returns-and-refunds"),
        ("refund", "/help/returns-and-refunds"),
        ("track order", "/help/track-your-order"),
        ("shipping cost", "/help/shipping-costs"),
        ("boot sizes", "/help/size-guide-boots"),
        ("warranties", "/help/warranty"),
        ("pay by invoice", "/help/payment-methods"),
        ("cancel my order", "/help/cancel-order"),
        ("api authentication", "/docs/api/authentication"),
        ("API key", "/docs/api/authentication"),
        ("webhook", "/docs/api/webhooks"),
        ("rate limit", "/docs/api/rate-limits"),
        ("getting started", "/docs/getting-started"),
        ("waterproof tent", "/blog/how-to-waterproof-a-tent"),
        ("winter hiking alps", "/blog/best-winter-hikes-in-the-alps"),
        ("wash down jacket", "/blog/caring-for-down-jackets"),
        ("privacy", "/legal/privacy-policy"),
        ("terms and conditions", "/legal/terms-and-conditions"),
        ("jobs", "/careers"),
        ("sign up", "/account/signup"),
        ("reset password", "/account/reset-password"),
        ("stores near me", "/stores"),
        ("glacier tent", "/shop/tents/glacier-7"),
        ("horizon backpack reviews", "/shop/backpacks/horizon-8/reviews"),
        ("rücksendung", "/de/hilfe/ruecksendung"),
        ("chaussure randonnee", "/fr/chaussures-de-randonnee"),
        ("テント", "/ja/tento"),
        ("зимняя палатка", "/ru/palatki"),
        ("recycle old gear", "/sustainability/recycling-programme"),
        ("packing a weekend", "/blog/packing-list-weekend"),
    ];
    let mut missed = Vec::new();
    for (words, wanted) in queries {
        let ordered = order(site.clone(), words, &[]);
        assert_eq!(ordered.len(), site.len(), "{words}: nothing is lost");
        let place = ordered.iter().position(|link| link.url.ends_with(wanted)).expect("it is there");
        if place >= 3 {
            let first: Vec<&str> = ordered.iter().take(3).map(|link| &*link.url).collect();
            missed.push(format!("{words}: place {}, first {first:?}", place + 1));
        }
    }
    assert!(missed.len() <= queries.len() - 29, "{}", missed.join("\n"));
}

#[test]
fn words_are_cut_and_compared_by_their_stems() {
    let words = |text: &str| {
        let plain = |word: Word| match word {
            Word::Plain(word) => word,
            Word::Run(run) => format!("[{run}]"),
        };
        split(text).into_iter().map(plain).collect::<Vec<_>>()
    };
    assert_eq!(words("/docs/getStarted_now-v2"), ["docs", "get", "started", "now", "v2"]);
    assert_eq!(words("Don't 二人用 x"), ["dont", "[二人用]", "x"]);
    assert_eq!(words(""), Vec::<String>::new());
    let german = Stems::new(&["de-DE".to_owned()], "");
    let terms = |word: &str| {
        let mut terms = Vec::new();
        split(word).iter().for_each(|word| german.add(word, &mut terms));
        terms
    };
    assert!(terms("Häuser").iter().any(|term| terms("Haus").contains(term)));
    assert!(terms("running").contains(&"run".to_owned()));
    assert_eq!(terms("二人用"), ["二人", "人用"]);
}

#[test]
fn odd_queries_and_sites_lose_nothing() {
    let links = vec![link("https://x.test/a", None, None), link("not a url", Some("the"), None)];
    for words in ["", "  ", "the", "!!!", "\u{0}", &"long ".repeat(500), "日"] {
        assert_eq!(order(links.clone(), words, &["zz".to_owned(), "é".to_owned()]).len(), 2, "{words}");
    }
    assert!(order(Vec::new(), "x", &[]).is_empty());
}

#[test]
fn ten_times_as_many_links_take_little_more_than_ten_times_as_long() {
    let time = |count: usize| {
        let links: Vec<Link> =
            (0..count).map(|n| link(&format!("https://x.test/kind-{}/item-{n}", n % 97), None, None)).collect();
        let started = Stopwatch::start();
        let ordered = order(links, "item 3777", &[]);
        assert_eq!(&*ordered[0].url, "https://x.test/kind-91/item-3777");
        started.elapsed()
    };
    let few = time(4_000).min(time(4_000));
    let many = time(40_000).min(time(40_000));
    // What goes through all others for each of them takes a hundred times as long.
    assert!(many < few * 40, "{few:?} for few and {many:?} for many");
}
