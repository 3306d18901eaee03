//! Formats that look for more than text (wire 3.4): attributes, images, branding, audio, video; and files of data.

use serde_json::{Value, json};
use weir_tests::{Database, FixtureSite, TestService, markdown_of};

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
