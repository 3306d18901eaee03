//! Formats that look for more than text (wire 3.4): attributes, images, branding, product, menu, audio, video; the raw
//! body; and files of data.

use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};
use weir_tests::{
    Database, FixtureSite, OwnPages, ServiceOptions, TestService, both_databases, documents_at, ended_at, markdown_of,
};

async fn scrape(service: &TestService, body: Value) -> Value {
    service.post("/v2/scrape", &body).await.ok()["data"].clone()
}

async fn serve(site: &FixtureSite, name: &str, page: &str) -> String {
    site.serve_file(name, "text/html", page.as_bytes().to_vec()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attributes_and_images_are_listed_as_the_page_has_them() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let url = serve(
        &site,
        "shop",
        "<title>Shop</title><main><h1>Shop</h1><a class=item href='/a' data-id=1>A</a><a class=item href=b>B</a>\
         <img src=/1.png srcset='/2.png 2x, /3.png 3x' data-id=' 9 '><picture><source srcset=/4.webp><img data-src=/5.png \
         src='data:image/gif;base64,AA'></picture><div style=\"background:url('/6.png')\"></div><img src=/1.png></main>\
         <nav><a class=item href='/nav'>nav</a></nav>",
    )
    .await;
    let wanted = json!([
        { "selector": "a.item", "attribute": "href" },
        { "selector": "[data-id]", "attribute": "data-id" },
        { "selector": "a[", "attribute": "href" },
        { "selector": "table", "attribute": "id" },
    ]);
    let formats = json!(["markdown", "images", { "type": "attributes", "selectors": wanted }]);
    let document = scrape(&service, json!({ "url": url, "formats": formats })).await;
    let values: Vec<&Value> = document["attributes"].as_array().unwrap().iter().map(|one| &one["values"]).collect();
    assert_eq!(values, [&json!(["/a", "b", "/nav"]), &json!(["1", " 9 "]), &json!([]), &json!([])]);
    assert_eq!(document["attributes"][1]["selector"], "[data-id]");
    assert!(document["warning"].as_str().unwrap().contains("a["), "{document}");
    let images: Vec<String> = (1..=3).map(|n| site.url(&format!("/{n}.png"))).collect();
    let more = ["/4.webp", "/5.png", "/6.png"].map(|path| site.url(path));
    assert_eq!(document["images"], json!([images, more.to_vec()].concat()));

    let document = scrape(&service, json!({ "url": url })).await;
    assert!(document.get("attributes").is_none() && document.get("images").is_none(), "only what was asked for");
    let twice = json!([{ "type": "attributes", "selectors": [] }, { "type": "attributes", "selectors": [] }]);
    let answer = service.post("/v2/scrape", &json!({ "url": url, "formats": twice })).await;
    assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn branding_is_read_from_computed_styles_whatever_the_page_does() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let document = scrape(&service, json!({ "url": site.url("/brand"), "formats": ["branding"] })).await;
    let branding = &document["branding"];
    let seen = |place: &str| branding.pointer(place).unwrap_or(&Value::Null).clone();
    for (place, value) in [
        ("/colorScheme", json!("light")),
        ("/colors/primary", json!("#E4572E")),
        ("/colors/secondary", json!("#17BEBB")),
        ("/colors/background", json!("#FFFDF7")),
        ("/colors/textPrimary", json!("#2E282A")),
        ("/typography/fontFamilies/primary", json!("Inter")),
        ("/typography/fontFamilies/heading", json!("Playfair Display")),
        ("/typography/fontStacks/heading", json!(["Playfair Display", "serif"])),
        ("/typography/fontSizes/h1", json!("48px")),
        ("/spacing/borderRadius", json!("8px")),
        ("/components/buttonPrimary/background", json!("#E4572E")),
        ("/components/buttonPrimary/textColor", json!("#FFFFFF")),
        ("/components/buttonPrimary/borderRadius", json!("8px")),
        ("/logo", json!(site.url("/files/logo.svg"))),
        ("/images/favicon", json!(site.url("/files/logo.svg"))),
    ] {
        assert_eq!(seen(place), value, "{place} in {branding}");
    }
    assert!(seen("/fonts").as_array().unwrap().contains(&json!({ "family": "Inter" })), "{branding}");
    assert_eq!(document["metadata"]["creditsUsed"], 1);
    assert!(document.get("markdown").is_none());

    let hostile = serve(
        &site,
        "hostile",
        "<body style='background:#111;color:#eee'><h1>Dark</h1><script>window.getComputedStyle=JSON.stringify=()=>{throw 1};\
         Array.prototype.map=Map.prototype.set=()=>{for(;;);};document.createTreeWalker=null;</script><p>Text of the page</p>",
    )
    .await;
    let document = scrape(&service, json!({ "url": hostile, "formats": ["branding", "markdown"] })).await;
    assert_eq!(document["branding"]["colorScheme"], "dark", "{document}");
    assert_eq!(document["branding"]["colors"]["background"], "#111111");

    let file = json!({ "url": site.url("/files/report.pdf"), "formats": ["branding", "markdown"] });
    let answer = service.post("/v2/scrape", &file).await;
    assert_eq!((answer.status, answer.code()), (500, "SCRAPE_BRANDING_NOT_SUPPORTED"), "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audio_and_video_are_what_the_page_offers() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let page = serve(
        &site,
        "player",
        "<meta property=og:video content=/embed><meta property=og:video:type content=text/html><h1>Both</h1>\
         <p>Some words of a page.</p><audio><source src=/files/audio.wav></audio><a href=/film.mp4>film</a>",
    )
    .await;
    let document = scrape(&service, json!({ "url": page, "formats": ["markdown", "audio", "video"] })).await;
    assert_eq!(document["audio"], site.url("/files/audio.wav"));
    assert_eq!(document["video"], site.url("/film.mp4"));
    assert!(markdown_of(&document).contains("Some words"));
    assert_eq!(document["metadata"]["creditsUsed"], 9);

    let scripted = serve(
        &site,
        "scripted",
        "<h1>Film</h1><p>A page with words enough to be read without a browser.</p><script>setTimeout(()=>{\
         const v=document.createElement('video');v.src='/late.webm';document.body.append(v)},50)</script>",
    )
    .await;
    let document = scrape(&service, json!({ "url": scripted, "formats": ["video"] })).await;
    assert_eq!(document["video"], site.url("/late.webm"));
    assert_eq!(document["metadata"]["creditsUsed"], 5);

    let wav = site.url("/files/audio.wav");
    let document = scrape(&service, json!({ "url": wav, "formats": ["audio"] })).await;
    assert_eq!((&document["audio"], document.get("warning")), (&json!(wav), None));
    for (path, format, code) in [
        ("/article/1", "audio", "SCRAPE_AUDIO_UNSUPPORTED_URL"),
        ("/article/1", "video", "SCRAPE_VIDEO_UNSUPPORTED_URL"),
        ("/files/audio.wav", "video", "SCRAPE_VIDEO_UNSUPPORTED_URL"),
        ("/files/report.pdf", "audio", "SCRAPE_AUDIO_UNSUPPORTED_URL"),
        ("/files/download.bin", "audio", "SCRAPE_UNSUPPORTED_FILE_ERROR"),
        ("/files/audio.wav", "markdown", "SCRAPE_UNSUPPORTED_FILE_ERROR"),
    ] {
        let answer = service.post("/v2/scrape", &json!({ "url": site.url(path), "formats": [format] })).await;
        assert_eq!((answer.status, answer.code()), (500, code), "{path} {format}: {}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_served_is_of_the_document_that_stands_there() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let raw = async |path: &str| {
        let page =
            scrape(&service, json!({ "url": site.url(path), "formats": ["html", "rawHtml"], "waitFor": 1 })).await;
        page["rawHtml"].as_str().unwrap_or_else(|| panic!("{path} has none")).to_owned()
    };
    // The one that was asked for.
    let first = raw("/js/render/7").await;
    assert!(first.contains("<title>JS render 7</title>") && first.contains("Enable scripts"), "{first}");
    // The one that its script has put in its place.
    let next = raw("/js/redirect/8").await;
    assert!(next.contains("<title>JS render 8</title>") && next.contains("Enable scripts"), "{next}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_is_a_document_too() {
    let site = FixtureSite::start().await;
    let service = TestService::start(Database::Sqlite).await;
    let formats = json!(["markdown", "html", "rawHtml", "links"]);
    let of = async |path: &str| scrape(&service, json!({ "url": site.url(path), "formats": formats })).await;
    let table = of("/files/doc.csv").await;
    assert!(markdown_of(&table).starts_with("| id | name |\n| --- | --- |\n| 0 |"), "{table}");
    assert!(
        table["html"].as_str().unwrap().contains("<td>0</td>")
            && table["rawHtml"].as_str().unwrap().starts_with("id,name\n0,")
    );
    let feed = of("/files/feed.xml").await;
    assert_eq!((&feed["metadata"]["title"], feed["links"].as_array().unwrap().len()), (&json!("Feed"), 20));
    assert!(markdown_of(&feed).starts_with("# Feed\n\n## [Item 0](<"), "{feed}");
    assert!(feed["html"].as_str().unwrap().contains("<a href=\"http"), "{feed}");
    let text = of("/files/plain.txt").await;
    assert!(
        text["html"].as_str().unwrap().contains("<pre>") && text["html"].as_str().unwrap().contains("&lt;b>not bold")
    );
    assert!(markdown_of(&text).contains("<b>not bold</b>"));
    let data = of("/files/data.json").await;
    assert!(markdown_of(&data).starts_with("```json\n{"), "{data}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_sent_as_xhtml_is_not_swallowed_by_what_is_empty_in_it() {
    let pages = OwnPages::start().await;
    let service = TestService::start_with(ServiceOptions::new(Database::Sqlite).env("WEIR_PAGE_BROWSERS", "0")).await;
    let page = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title>Of XML</title>\
        <script src='/x.js'/></head><body><p>Words of a page that is written in XML, for whoever reads it.</p>\
        <p><a href='/next'>The next one</a></p></body></html>";
    pages.put("/next", "<p>Words of the next page, which is written in HTML.</p>");
    for content_type in ["application/xhtml+xml; charset=utf-8", "text/xml"] {
        let url = pages.put_file("/", content_type, page);
        let read =
            scrape(&service, json!({ "url": url, "maxAge": 0, "formats": ["markdown", "rawHtml", "links"] })).await;
        assert!(markdown_of(&read).contains("Words of a page that is written in XML"), "{content_type}: {read}");
        assert_eq!((&read["rawHtml"], &read["links"]), (&json!(page), &json!([pages.url("/next")])), "{content_type}");
    }
    let map = service.post("/v2/map", &json!({ "url": pages.url("/"), "sitemap": "skip" })).await.ok();
    let links: Vec<&str> = map["links"].as_array().unwrap().iter().filter_map(|link| link["url"].as_str()).collect();
    assert!(links.contains(&pages.url("/next").as_str()), "{map}");
}

/// What the site says that a page of it tells.
async fn truth(site: &FixtureSite, path: &str) -> Value {
    let answer = reqwest::get(site.url(&format!("/_ctl/truth?path={path}"))).await.unwrap();
    answer.json().await.unwrap()
}

both_databases! {
    async fn products_are_read_in_every_form(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let of = async |kind: &str| {
            let url = site.url(&format!("/shop/{kind}"));
            scrape(&service, json!({ "url": url, "formats": ["product"] })).await
        };
        let truth = truth(&site, "/shop/linked").await;
        for kind in ["linked", "microdata", "rdfa", "stored", "late"] {
            let document = of(kind).await;
            let product = &document["product"];
            assert_eq!(document["metadata"]["creditsUsed"], 1);
            assert_eq!(document.get("warning"), None, "{kind}: {document}");
            assert_eq!((&product["title"], &product["brand"]), (&truth["title"], &truth["brand"]), "{kind}: {document}");
            assert_eq!(product["url"], site.url(&format!("/shop/{kind}")));
            let variants = product["variants"].as_array().unwrap();
            assert_eq!(variants.len(), 2, "{kind}: {document}");
            for (variant, expected) in variants.iter().zip(truth["variants"].as_array().unwrap()) {
                let seen = json!({
                    "sku": variant["sku"], "amount": variant["price"]["amount"], "currency": variant["price"]["currency"],
                    "inStock": variant["availability"]["inStock"], "before": variant["sale"]["originalPrice"]["amount"],
                    "size": variant["values"].as_object().unwrap().values().next().unwrap(),
                });
                assert_eq!(&seen, expected, "{kind}: {document}");
            }
        }
        let shown = of("shown").await["product"].clone();
        let price = json!({ "amount": 19.9, "currency": "EUR", "formatted": "€ 19,90" });
        let variants = json!([{ "price": price, "availability": { "inStock": true } }]);
        assert_eq!((&shown["title"], &shown["variants"]), (&truth["title"], &variants));
        for url in [site.url("/shop/several"), site.url("/article/1"), site.url("/files/doc.csv")] {
            let document = scrape(&service, json!({ "url": url, "formats": ["markdown", "product"] })).await;
            assert_eq!(document.get("product"), None, "{document}");
            assert!(document["warning"].as_str().unwrap().contains("No product was found"), "{document}");
        }
        let plain = scrape(&service, json!({ "url": site.url("/shop/linked") })).await;
        assert_eq!(plain.get("product"), None, "only what was asked for");
    }
}

both_databases! {
    async fn menus_are_read_in_every_form(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let truth = truth(&site, "/bistro/linked").await;
        for (kind, confidence) in [("linked", 1.0), ("microdata", 1.0), ("rdfa", 1.0), ("stored", 0.8), ("shown", 0.6)] {
            let url = site.url(&format!("/bistro/{kind}"));
            let document = scrape(&service, json!({ "url": url, "formats": ["menu"] })).await;
            let menu = &document["menu"];
            assert_eq!((document.get("warning"), &menu["isMenu"]), (None, &json!(true)), "{kind}: {document}");
            assert_eq!((&menu["confidence"], &menu["sourceUrl"]), (&json!(confidence), &json!(url)), "{kind}");
            assert_eq!(menu["merchant"]["name"], truth["merchant"], "{kind}");
            assert_eq!(menu["currency"], truth["currency"], "{kind}: {document}");
            let item = |item: &Value| json!({ "name": item["name"], "amount": item["price"]["amount"] });
            let section = |section: &Value| {
                let items: Vec<Value> = section["items"].as_array().unwrap().iter().map(item).collect();
                json!({ "name": section["name"], "items": items })
            };
            let sections: Vec<Value> = menu["sections"].as_array().unwrap().iter().map(section).collect();
            assert_eq!(json!(sections), truth["sections"], "{kind}: {document}");
            let last = &menu["sections"][1]["items"][1];
            assert_eq!((&last["id"], &last["sourceUrl"]), (&json!("s2.i2"), &json!(url)));
        }
        let document = scrape(&service, json!({ "url": site.url("/article/1"), "formats": ["menu"] })).await;
        assert_eq!(document.get("menu"), None);
        assert!(document["warning"].as_str().unwrap().contains("No menu was found"), "{document}");
    }
}

both_databases! {
    async fn the_raw_body_is_answered_alone_and_as_it_came(database) {
        let site = FixtureSite::start().await;
        let service = TestService::start(database).await;
        let decoded = |document: &Value| {
            base64::engine::general_purpose::STANDARD.decode(document["rawBase64"].as_str().unwrap()).unwrap()
        };
        for path in ["/article/1", "/files/image.png", "/files/download.bin", "/files/report.pdf", "/js/render/1", "/enc/gzip/1"] {
            let url = site.url(path);
            let document = scrape(&service, json!({ "url": url, "formats": ["rawBase64"] })).await;
            let expected = reqwest::get(site.url(path.replace("/enc/gzip", "/article").as_str())).await.unwrap().bytes().await;
            assert!(decoded(&document) == expected.unwrap(), "{path}");
            assert_eq!((document.get("markdown"), document.get("warning")), (None, None));
            assert_eq!(document["metadata"]["creditsUsed"], 1);
        }
        let url = site.url("/article/1");
        for body in [
            json!({ "url": url, "formats": ["rawBase64", "markdown"] }),
            json!({ "url": url, "formats": ["rawBase64"], "waitFor": 10 }),
            json!({ "url": url, "formats": ["rawBase64"], "redactPII": true }),
            json!({ "url": url, "formats": ["rawBase64"], "actions": [{ "type": "wait", "milliseconds": 10 }] }),
        ] {
            let answer = service.post("/v2/scrape", &body).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{}", answer.text);
            assert!(answer.error().contains("rawBase64"), "{}", answer.text);
        }
        // A crawl leads on from pages whatever is delivered of them.
        let body = json!({ "url": site.url("/crawl/"), "limit": 3, "scrapeOptions": { "formats": ["rawBase64"] } });
        let id = service.post("/v2/crawl", &body).await.ok()["id"].as_str().unwrap().to_owned();
        let path = format!("/v2/crawl/{id}");
        ended_at(service.caller(), &path, Duration::from_secs(60)).await;
        let documents = documents_at(service.caller(), &path).await;
        assert_eq!(documents.len(), 3, "{documents:?}");
        assert!(documents.iter().all(|document| document["rawBase64"].is_string()), "{documents:?}");
    }
}
