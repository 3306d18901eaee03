//! Rules for whole pages.

use super::*;

fn page(html: &str, options: &ExtractOptions) -> Extracted {
    let url = url::Url::parse("https://x.test/d/page").expect("a URL");
    extract(&PageInput { url: &url, html, rendered: false }, options)
}

fn main_content() -> ExtractOptions {
    ExtractOptions {
        markdown: true,
        only_main_content: true,
        remove_base64_images: true,
        block_ads: true,
        ..ExtractOptions::default()
    }
}

fn main_markdown(html: &str) -> String {
    page(html, &main_content()).markdown.expect("markdown was asked for")
}

const PROSE: &str =
    "The harbour was quiet in the morning, and the boats came back before noon with little to show for it. ";

#[test]
fn what_surrounds_the_content_is_left_out() {
    let html = format!(
        "<header><a href=/>Brand</a><nav>NAVIGATION</nav></header><div class=breadcrumb><a href=/>CRUMB</a></div>\
         <main><h1>Title</h1><p>{0}</p><p>{0}</p></main><aside>SIDE</aside><footer>FOOT</footer>\
         <div id=cookie-banner>COOKIE</div><div class='ad slot'>ADVERT</div>",
        PROSE.repeat(4)
    );
    let markdown = main_markdown(&html);
    assert!(markdown.starts_with("# Title\n\nThe harbour"), "{markdown}");
    for word in ["NAVIGATION", "CRUMB", "SIDE", "FOOT", "COOKIE", "ADVERT", "Brand"] {
        assert!(!markdown.contains(word), "{word} in {markdown}");
    }
}

#[test]
fn a_class_name_alone_does_not_condemn_the_content() {
    let html =
        format!("<div class='sidebar widget'><h1>Title</h1><p>{}</p></div><footer>FOOT</footer>", PROSE.repeat(5));
    let markdown = main_markdown(&html);
    assert!(markdown.contains("# Title") && markdown.contains("harbour") && !markdown.contains("FOOT"));
}

#[test]
fn a_list_of_all_pages_goes_from_the_column_beside_a_page() {
    let links: String = (0..60).map(|n| format!("<li><a href=/{n}>A page of the manual, number {n}</a>")).collect();
    let text = format!("<main><h1>Title</h1><p>{}</p></main>", PROSE.repeat(10));
    for (begin, end) in [("<aside><nav>", "</nav></aside>"), ("<nav class='sidebar devhelp'>", "</nav>")] {
        let markdown = main_markdown(&format!("{begin}<ul>{links}</ul>{end}{text}"));
        assert!(markdown.starts_with("# Title\n\nThe harbour") && !markdown.contains("number 9"), "{markdown}");
        let markdown = main_markdown(&format!("{begin}<ul>{links}</ul>{end}<h1>Title</h1>"));
        assert!(markdown.contains("number 9"), "it is what the page is for: {markdown}");
    }
}

#[test]
fn header_and_footer_of_an_article_belong_to_it() {
    let html = format!(
        "<article><header><h1>Title</h1><p>By Jo</p></header><p>{}</p><footer>Source note</footer></article>",
        PROSE.repeat(5)
    );
    let markdown = main_markdown(&html);
    assert!(markdown.contains("By Jo") && markdown.contains("Source note"), "{markdown}");
}

#[test]
fn cards_with_an_unlucky_class_stay() {
    let cards: String = (0..12).map(|n| format!("<div class='promo related-item'><h2><a href=/p{n}>Post {n}</a></h2><p>Teaser number {n} here.</p></div>")).collect();
    let markdown = main_markdown(&format!("<h1>All posts</h1>{cards}"));
    assert!(markdown.contains("[Post 11](https://x.test/p11)") && markdown.contains("Teaser number 3"), "{markdown}");
}

#[test]
fn a_page_of_nothing_but_navigation_is_given_whole() {
    let markdown = main_markdown("<nav><a href=/a>One</a> <a href=/b>Two</a></nav>");
    assert!(markdown.contains("[One](https://x.test/a)"), "{markdown}");
}

#[test]
fn ads_and_banners_go_from_the_whole_page_too_if_asked() {
    let html = "<h1>T</h1><p>kept text</p><div id=onetrust-banner-sdk class=cookie-consent>BANNER</div><div class=adsbygoogle>ADVERT</div>";
    let options = ExtractOptions { only_main_content: false, ..main_content() };
    let markdown = page(html, &options).markdown.expect("asked for");
    assert!(
        markdown.contains("kept text") && !markdown.contains("BANNER") && !markdown.contains("ADVERT"),
        "{markdown}"
    );
    let markdown = page(html, &ExtractOptions { block_ads: false, ..options }).markdown.expect("asked for");
    assert!(markdown.contains("BANNER") && markdown.contains("ADVERT"));
}

#[test]
fn banners_of_makers_of_consent_tools_go() {
    for name in ["id=klaro", "class=osano-cm-dialog", "id=trustarc-banner-overlay"] {
        let html = format!("<h1>T</h1><p>kept text</p><div {name}><p>BANNER</p></div>");
        let markdown = main_markdown(&html);
        assert!(markdown.contains("kept text") && !markdown.contains("BANNER"), "{name}: {markdown}");
    }
}

#[test]
fn selectors_choose_and_exclude() {
    let html =
        "<nav><p class=x>in nav</p></nav><main><p>main</p><p class=x>chosen <b>bold</b> <i class=y>not</i></p></main>";
    let options = ExtractOptions {
        include_tags: vec![".x".to_owned(), "b".to_owned()],
        exclude_tags: vec![".y".to_owned()],
        html: true,
        ..main_content()
    };
    let out = page(html, &options);
    assert_eq!(out.markdown.as_deref(), Some("in nav\n\nchosen **bold**\n"));
    assert!(out.html.expect("asked for").contains("<p class=\"x\">in nav</p><p class=\"x\">chosen <b>bold</b> </p>"));
}

#[test]
fn content_in_data_is_used_when_the_page_shows_none() {
    let body = PROSE.repeat(3);
    let html = format!(
        r#"<body><h1>T</h1><script type="application/ld+json">{{"@type":"Article","articleBody":"{body}"}}</script>"#
    );
    assert!(main_markdown(&html).contains("harbour"));
}

#[test]
fn only_what_is_asked_for_is_made() {
    let out = page("<p>x</p>", &ExtractOptions { links: true, ..ExtractOptions::default() });
    assert!(out.markdown.is_none() && out.html.is_none() && out.images.is_none() && out.links.is_some());
}

#[test]
fn signals_describe_the_page() {
    let html = "<link rel=canonical href=/c><meta http-equiv=refresh content='0; url=/next'><div id=root></div><script>start(document.body)</script>";
    let signals = page(html, &main_content()).signals;
    assert!(signals.looks_script_rendered);
    assert_eq!(signals.script_bytes, 20);
    assert_eq!(signals.text_chars, 0);
    assert_eq!(signals.canonical.map(String::from).as_deref(), Some("https://x.test/c"));
    assert_eq!(signals.meta_refresh.map(|(s, u)| (s, String::from(u))), Some((0, "https://x.test/next".to_owned())));
}

#[test]
fn a_cut_page_says_so_and_keeps_its_beginning() {
    let html = format!("<h1>Begin</h1>{}", "<i></i>x".repeat(700_000));
    let out = page(&html, &main_content());
    assert!(out.warning.is_some());
    assert!(out.markdown.expect("asked for").starts_with("# Begin"));
}

#[test]
fn a_page_without_text_says_so() {
    let url = url::Url::parse("https://x.test/").expect("a URL");
    let told = |html: &str, rendered: bool, options: &ExtractOptions| {
        extract(&PageInput { url: &url, html, rendered }, options).warning.unwrap_or_default()
    };
    let shell = "<title>App</title><div id=root></div><script>fail()</script>";
    assert!(told(shell, true, &main_content()).contains("empty after rendering"));
    let waits = "<div id=root> Loading \u{2026} </div><script>fail()</script>";
    assert!(told(waits, true, &main_content()).contains("empty after rendering"));
    let html = ExtractOptions { html: true, ..ExtractOptions::default() };
    assert!(told(shell, true, &html).contains("empty after rendering"));
    assert!(told("", false, &main_content()).contains("The page is empty"));
    let chosen = ExtractOptions { include_tags: vec!["article".to_owned()], ..main_content() };
    assert!(told("<p>Words", false, &chosen).contains("includeTags"));
    // What shows something says nothing of the kind, and neither does one of whom no text was asked.
    for (html, options) in [
        ("<div id=root><p>Words</div><script>x()</script>", &main_content()),
        ("<img src=/a.png alt=''>", &main_content()),
        ("<img src=/a.png>", &html),
        ("<article>Words</article>", &chosen),
        ("<p>Loading bays of the harbour", &main_content()),
        (shell, &ExtractOptions { links: true, ..ExtractOptions::default() }),
    ] {
        assert_eq!(told(html, true, options), "", "{html}");
    }
}

#[test]
fn no_input_makes_it_panic() {
    let all = ExtractOptions { html: true, links: true, images: true, ..main_content() };
    for html in [
        "",
        "\0",
        "<",
        "</",
        "<!",
        "<!--",
        "<!doctype",
        "<table><tr><td colspan=-1 rowspan=x>",
        "<ul><ol><li value=99999999999999999999>x",
        "<a href='http://[::1'>x</a>",
        "<base href='::::'><a href=x>y</a>",
        "<svg><foreignObject><p>x",
        "<math><annotation encoding=tex>x",
        "<pre>",
        "<pre>```</pre>",
        "<img src>",
        "<img srcset=', ,'>",
        "<select><option>x<table>",
        "<template><div>",
        "<frameset><frame>",
        "<p>\u{fffd}\u{200f}\u{1f469}\u{200d}\u{1f469}",
        "<td>x<li>y<dt>z<summary>q",
        "<h1><h2><h3>",
        "<sup></sup><sub>x",
        "<q><b><a href=x><div>y",
    ] {
        let _ = page(html, &all);
        let _ = page(html, &ExtractOptions { only_main_content: false, remove_base64_images: false, ..all.clone() });
    }
}

#[test]
fn a_long_footer_of_the_page_goes_and_its_notes_stay() {
    let prose = PROSE.repeat(8);
    let page = |foot: &str| main_markdown(&format!("<div><h1>Title</h1><p>{prose}</p></div><footer>{foot}</footer>"));
    let long = "We serve Elsewhere, Anywhere and Nowhere. ".repeat(60);
    assert!(!page(&format!("<p>{long}</p>")).contains("Elsewhere"));
    assert!(page(&format!("<div class=footnotes><p>1. {long}</p></div>")).contains("Elsewhere"));
    let only = main_markdown(&format!("<h1>Title</h1><footer><p>{long}</p></footer>"));
    assert!(only.contains("Elsewhere"), "nothing else is on the page: {only}");
}

#[test]
fn short_posts_of_a_thread_stay_beside_a_long_one() {
    let url = url::Url::parse("https://x.test/thread/1").expect("a URL");
    let post = |n: u32, text: &str| format!("<div class='post p{n}' id=p{n}><b>Ann</b><p>{text}</p></div>");
    let html = format!(
        "<div id=top>STRIP</div><div>{}{}{}</div>",
        post(1, "Who sails?"),
        post(2, &PROSE.repeat(40)),
        post(3, "I do.")
    );
    let read = |url: &url::Url| {
        extract(&PageInput { url, html: &html, rendered: false }, &main_content()).markdown.expect("asked for")
    };
    let markdown = read(&url);
    assert!(["Who sails?", "I do.", "harbour"].iter().all(|text| markdown.contains(text)), "{markdown}");
    assert!(!markdown.contains("STRIP"));
    let other = read(&url::Url::parse("https://x.test/news/1").expect("a URL"));
    assert!(!other.contains("Who sails?"), "elsewhere what is small beside the content goes: {other}");
}

#[test]
fn comments_that_are_the_page_stay_whole() {
    let answers: String = (0..6)
        .map(|n| format!("<li><ol class=comments><li><p>Answer {n}. {}</p></li></ol></li>", PROSE.repeat(3)))
        .collect();
    let head = "<h1><a href=//y.test/>A link to talk about</a></h1>";
    let markdown = main_markdown(&format!("{head}<ol class=comments>{answers}</ol>"));
    assert!(markdown.contains("Answer 0") && markdown.contains("Answer 5"), "{markdown}");
    let article = PROSE.repeat(30);
    let markdown = main_markdown(&format!("<h1>T</h1><p>{article}</p><ol class=comments>{answers}</ol>"));
    assert!(!markdown.contains("Answer 5"), "{markdown}");
}

#[test]
fn a_dialog_about_cookies_goes_whatever_its_length() {
    let cookies = "We and our partners use cookies to measure what you read. ".repeat(30);
    for dialog in ["id=onetrust-consent-sdk", "class=fides-overlay", "class='cli-modal settings'"] {
        let list: String = (0..8).map(|n| format!("<li><a href=/p{n}>Story number {n} of the day</a></li>")).collect();
        let html = format!("<main><h1>Stories</h1><ul>{list}</ul></main><div {dialog}><p>{cookies}</p></div>");
        let markdown = main_markdown(&html);
        assert!(markdown.contains("Story number 7") && !markdown.contains("partners"), "{dialog}: {markdown}");
    }
    let about = format!("<article><h1>Cookies</h1><p>{cookies}</p></article>");
    assert!(main_markdown(&about).contains("partners"), "an article about them stays");
}

#[test]
fn what_narrows_a_list_down_goes_from_it() {
    let cards: String = (0..20)
        .map(|n| format!("<div class=card><a href=/p{n}>Lamp number {n}</a> of brass and glass</div>"))
        .collect();
    let facets = "<div class='list-filters'><label><input type=checkbox> FACET</label></div>";
    let about = "<div class='basic-filters'><h5>What FILTERS are for</h5><p>They keep dust out of the water.</p></div>";
    let markdown = main_markdown(&format!("<main><h1>Lamps</h1>{facets}{cards}{about}</main>"));
    assert!(markdown.contains("Lamp number 19") && !markdown.contains("FACET"), "{markdown}");
    assert!(markdown.contains("dust out of the water"), "words about filters are no choice: {markdown}");
}

#[test]
fn buttons_by_name_go_and_longer_words_stay() {
    let row = "<table><tr><td><a class=btn href=/a>AI</a><td>12</table>";
    let html = format!(
        "<h1>T</h1><p>{}</p><a class='btn btn-primary' href=/b>Get started</a>\
         <a class=btn href=/c>Read the report on harbours of the north</a><h2><a class=btn href=/d>Part</a></h2>{row}",
        PROSE.repeat(20)
    );
    let markdown = main_markdown(&html);
    assert!(!markdown.contains("Get started"), "{markdown}");
    assert!(["report on harbours", "Part", "AI"].iter().all(|kept| markdown.contains(kept)), "{markdown}");
}

#[test]
fn the_box_about_the_author_goes_from_an_article_and_names_stay_in_a_list() {
    let prose = PROSE.repeat(30);
    let markdown = main_markdown(&format!("<h1>T</h1><p>{prose}</p><div class=author-box>Jo writes of boats.</div>"));
    assert!(markdown.contains("harbour") && !markdown.contains("Jo writes"), "{markdown}");
    let posts: String = (0..8)
        .map(|n| {
            format!(
                "<section><h2>Post {n}</h2><p>{}</p><div class=author>By Writer {n}</div></section>",
                PROSE.repeat(2)
            )
        })
        .collect();
    let markdown = main_markdown(&format!("<h1>Posts</h1>{posts}"));
    assert!(markdown.contains("By Writer 7"), "{markdown}");
}

#[test]
fn a_list_of_what_is_called_related_stays_where_it_is_the_page() {
    let related =
        |n: u32| format!("<div class=recirc-list id=r{n}><a href=/r{n}>Recipe number {n} for a cold evening</a></div>");
    let list: String = (0..12).map(related).collect();
    let head = "<meta property=og:type content=article><h1>Dinners</h1>";
    let markdown = main_markdown(&format!("{head}<p>All of them.</p>{list}"));
    assert!(markdown.contains("Recipe number 11"), "{markdown}");
    let markdown = main_markdown(&format!("{head}<p>{}</p>{list}", PROSE.repeat(30)));
    assert!(!markdown.contains("Recipe number 11"), "below an article they are not it: {markdown}");
}

fn discussion_markdown(html: &str) -> String {
    let url = url::Url::parse("https://x.test/forum/threads/boats.1/").expect("a URL");
    extract(&PageInput { url: &url, html, rendered: false }, &main_content()).markdown.expect("markdown was asked for")
}

#[test]
fn what_a_forum_says_of_writers_and_to_guests_goes() {
    let post = |n: usize| {
        format!(
            "<article class=message><h4>Ada {n}</h4><h5 class=message-userTitle>MEMBER</h5><div class=body><p>{}</p></div>\
             <aside class=message-signature>SIGNED with many words of wisdom that stand below each post anew.</aside></article>",
            PROSE.repeat(3)
        )
    };
    let posts: String = (0..6).map(post).collect();
    let around = "<div class='alert alert-warning alert-dismissible'>REGISTER to take part in this.</div>\
         <form id=post-form><h2>Your ANSWER</h2><p>Write it here.</p><textarea></textarea></form>\
         <div class=js-post-comments><p>REMARK on the question.</p></div>";
    let markdown = discussion_markdown(&format!("<h1>Boats</h1><div>{posts}{around}</div>"));
    assert!(markdown.contains("Ada 5") && markdown.contains("The harbour"), "{markdown}");
    for word in ["MEMBER", "SIGNED", "REGISTER", "ANSWER", "REMARK"] {
        assert!(!markdown.contains(word), "{word} in {markdown}");
    }
    // Elsewhere the same names may be the page's own.
    let markdown =
        main_markdown(&format!("<h1>Boats</h1><p>{}</p><div class=alert-warning>REEFS ahead.</div>", PROSE.repeat(9)));
    assert!(markdown.contains("REEFS"), "{markdown}");
}

#[test]
fn a_long_header_of_menus_goes_and_one_that_is_the_page_stays() {
    let menu: String = (0..80).map(|n| format!("<li><a href=/{n}>Shelf number {n}</a></li>")).collect();
    let markdown =
        main_markdown(&format!("<header><ul>{menu}</ul></header><div><h1>Boats</h1><p>{}</p></div>", PROSE.repeat(14)));
    assert!(markdown.starts_with("# Boats") && !markdown.contains("Shelf"), "{markdown}");
    let markdown = main_markdown(&format!("<header><ul>{menu}</ul></header><div><h1>Boats</h1></div>"));
    assert!(markdown.contains("Shelf number 9"), "{markdown}");
}

#[test]
fn what_a_cell_says_to_readers_of_screens_is_the_sign_that_others_see() {
    let markdown = main_markdown(&format!(
        "<h1>Boats</h1><p>{}</p><table><tr><th>Floats<span class=sr-only>UNSEEN</span><td><i class=mark></i><span class=sr-only>Yes</span>\
         <tr><th>Flies<td><span class=sr-only>No</span></table>",
        PROSE.repeat(9)
    ));
    assert!(markdown.contains("| Yes |") && markdown.contains("| No |") && !markdown.contains("UNSEEN"), "{markdown}");
}

#[test]
fn a_form_for_the_readers_address_goes_and_the_page_of_one_stays() {
    let form = "<form><h3>CALL me</h3><p>By checking this box you say that we may send you letters, and that you have read how we \
         keep what you write here.</p><input type=email><input type=tel></form>";
    let page =
        |times: usize| main_markdown(&format!("<main><h1>Boats</h1><p>{}</p>{form}</main>", PROSE.repeat(times)));
    assert!(!page(14).contains("CALL"));
    assert!(page(2).contains("CALL"));
}

#[test]
fn notices_fine_print_and_dialogs_beside_the_page_go() {
    let page = format!(
        "<div class=announcement-bar>SHIPPING is free</div><main><h1>Boats</h1><p>{}</p><p class=disclaimer>TERMS apply</p></main>\
         <div><div class=modal aria-hidden=true>A CLOSED dialog</div></div><div class=modal-box><h2>Sizes</h2><p>A DIALOG about the sizes of boats and of their sails and oars.</p></div>",
        PROSE.repeat(9)
    );
    let markdown = main_markdown(&page);
    for word in ["SHIPPING", "TERMS", "DIALOG", "CLOSED"] {
        assert!(!markdown.contains(word), "{word} in {markdown}");
    }
    let markdown =
        main_markdown("<h1>Terms</h1><div class=disclaimer><p>These TERMS apply to all that we do.</p></div>");
    assert!(markdown.contains("TERMS"), "it is the page: {markdown}");
}

#[test]
fn what_is_named_as_hidden_goes_unless_it_is_much_or_one_click_away() {
    let page = |hidden: &str| main_markdown(&format!("<main><h1>Boats</h1><p>{}</p>{hidden}</main>", PROSE.repeat(6)));
    assert!(!page("<div class='row hide'><p>UNSEEN words.</p></div>").contains("UNSEEN"));
    assert!(page("<div class='hidden md:block'><p>SEEN words.</p></div>").contains("SEEN"));
    assert!(page(&format!("<div class=hide><p>SHOWN by a script. {}</p></div>", PROSE.repeat(3))).contains("SHOWN"));
    let more = "<div class=hide><p>OPENED by a click, and long enough to be worth one of its reader.</p></div><button>See more</button>";
    assert!(page(more).contains("OPENED"));
}

#[test]
fn other_goods_go_from_the_page_of_a_product_whatever_they_cost() {
    let goods: String = (0..9)
        .map(|n| format!("<li><a href=/{n}>Pot {n}</a> <b>from € {n}9.90, with the lid and a cloth of linen</b></li>"))
        .collect();
    let page = |data: &str| {
        let text = "It boils a litre in four minutes and keeps it warm. ".repeat(12);
        main_markdown(&format!(
            "{data}<h1>Kettle</h1><p>{text}</p><section class=up-sells><h2>Wanted with it</h2><ul>{goods}</ul></section>"
        ))
    };
    let data = r#"<script type="application/ld+json">{"@type": "Product", "name": "Kettle"}</script>"#;
    assert!(!page(data).contains("Pot 3"));
    assert!(page("").contains("Pot 3"), "a list of goods may be called so");
}

#[test]
fn a_page_of_nothing_but_its_foot_has_no_main_content_and_says_so() {
    let links: String = (0..12).map(|n| format!("<li><a href=/{n}>Help with matter {n}</a></li>")).collect();
    let foot = format!("<footer><h5>Help</h5><ul>{links}</ul></footer>");
    for beside in ["", "<header><nav><a href=/>Home</a></nav></header>", "<div id=app>Loading…</div>"] {
        let out = page(&format!("{beside}{foot}"), &main_content());
        assert_eq!(out.markdown.as_deref().map(str::trim), Some(""), "{beside}");
        assert!(out.warning.is_some_and(|told| told.contains("onlyMainContent")), "{beside}");
        let whole = page(&format!("{beside}{foot}"), &ExtractOptions { only_main_content: false, ..main_content() });
        assert!(whole.markdown.is_some_and(|text| text.contains("matter 9")), "{beside}");
    }
    let markdown = main_markdown(&format!("<p>They land at noon.</p>{foot}"));
    assert_eq!(markdown, "They land at noon.\n");
    // What a head says is all that this page has.
    let markdown = main_markdown(&format!("<header><h1>Soon</h1><p>We open in May.</p></header>{foot}"));
    assert!(markdown.contains("open in May"), "{markdown}");
}

#[test]
fn dialogs_that_say_they_are_closed_go_up_to_four_tenths_of_the_page() {
    let text = format!("<main><h1>Kettle</h1><p>{}</p>BOX</main>", PROSE.repeat(8));
    let report = "<p>What is wrong with this offer? It is not what it says, or it may not be sold here.</p>".repeat(4);
    for (goes, dialog) in [
        (true, "<div role=dialog aria-hidden=true>REPORT</div>"),
        (true, "<dialog>REPORT</dialog>"),
        (false, "<div role=dialog aria-hidden=false>REPORT</div>"),
        (false, "<dialog open>REPORT</dialog>"),
        (false, "<div role=dialog aria-hidden=true class=measurements-modal>REPORT</div>"),
    ] {
        let markdown = main_markdown(&text.replace("BOX", &dialog.replace("REPORT", &report)));
        assert_eq!(!markdown.contains("What is wrong"), goes, "{dialog}");
    }
}

#[test]
fn the_foot_of_an_article_by_name_goes_and_that_of_a_short_page_stays() {
    let foot = "<div class=article-footer><p>Help improve this manual.</p></div>";
    let markdown = main_markdown(&format!("<main><h1>Boats</h1><p>{}</p>{foot}</main>", PROSE.repeat(8)));
    assert!(markdown.contains("harbour") && !markdown.contains("Help improve"), "{markdown}");
    assert!(main_markdown(&format!("<main><h1>Boats</h1><p>Of wood.</p>{foot}</main>")).contains("Help improve"));
}

#[test]
fn what_a_reader_sees_without_a_click_that_costs_is_read() {
    let url = url::Url::parse("https://x.test/d/page").expect("a URL");
    let read = |html: &str, rendered: bool| {
        let html = format!("<main><h1>Boats</h1><p>{}</p>{html}</main>", PROSE.repeat(8));
        let input = PageInput { url: &url, html: &html, rendered };
        extract(&input, &main_content()).markdown.expect("markdown was asked for")
    };
    let rest = "They are built of oak and larch, and the oldest of them has been at sea for ninety years.";
    let lazy: String = (0..9).map(|n| format!("<li>Boat number {n} of the harbour</li>")).collect();
    // In the page as it was sent, and as a browser has made it.
    for (sent, shown, html) in [
        (true, true, format!("<details><summary>How they are built</summary><p>{rest}</p></details>")),
        (true, true, format!("<div hidden=until-found>{rest}</div>")),
        (true, true, format!("<div style='content-visibility:auto'>{rest}</div>")),
        (true, true, format!("<div style='max-height:3em;overflow:hidden'>{rest}</div><button>Show more</button>")),
        (true, true, format!("<p>Of wood.<span style='display:none'> {rest}</span></p><button>Show more</button>")),
        (true, true, format!("<div class=tab-pane style='display:none'><p>{rest}</p></div>")),
        (true, true, format!("<h3>How are they built?</h3><div hidden><p>{rest}</p></div>")),
        // The rest of a list that a script shows as the reader goes down.
        (true, true, format!("<ul>{lazy}<li hidden>{rest}</li></ul><button>Show all</button>")),
        // Sent for readers without scripts alone; a browser has the list itself.
        (true, false, format!("<ul></ul><noscript><ul>{lazy}<li>{rest}</li></ul></noscript>")),
        // Neither is on the page: one is a form of what a script may add, the other was never sent.
        (false, false, format!("<template><p>{rest}</p></template>")),
        (false, false, "<ul><li>Boat number 1</li></ul><button>Load more</button>".to_owned()),
        (false, false, format!("<div style='display:none'><p>{rest}</p></div>")),
    ] {
        assert_eq!(read(&html, false).contains("oak and larch"), sent, "as sent: {html}");
        assert_eq!(read(&html, true).contains("oak and larch"), shown, "rendered: {html}");
    }
}

#[test]
fn a_heading_stays_whatever_its_words_are_elsewhere() {
    let headings = [
        ("gpt-partitions", "GPT partitions"),
        ("sharing-data", "Sharing data"),
        ("Login_ads", "Login &amp; <i>ads</i>"),
    ];
    let sections = headings.map(|(id, text)| format!("<h2 id={id}>{text}</h2><p>{}</p>", PROSE.repeat(2))).concat();
    let html = format!("<h1>Disks</h1>{sections}<div id=ads>BUY boats</div>");
    for only_main_content in [true, false] {
        let options = ExtractOptions { only_main_content, ..main_content() };
        let markdown = page(&html, &options).markdown.expect("markdown was asked for");
        for heading in ["## GPT partitions", "## Sharing data", "## Login & *ads*"] {
            assert!(markdown.contains(heading), "{heading}: {markdown}");
        }
        assert!(!markdown.contains("BUY"), "{markdown}");
    }
}

#[test]
fn a_section_stays_that_is_called_by_its_heading_as_those_beside_it_are() {
    let section = |id: &str, heading: &str| {
        format!("<section id={id}><h2>{heading}</h2><p>{} of {id}</p></section>", PROSE.repeat(3))
    };
    let manual = ["Keys", "Reports", "Ads", "Limits"];
    let read = |sections: &str| main_markdown(&format!("<h1>The interface</h1><p>{PROSE}</p>{sections}"));
    for numbers in [false, true] {
        let named = manual.iter().enumerate().map(|(n, heading)| {
            let number = if numbers { format!("{}. ", n + 1) } else { String::new() };
            section(&heading.to_lowercase(), &format!("{number}{heading}"))
        });
        let markdown = read(&named.collect::<String>());
        assert!(markdown.contains("Ads") && markdown.contains("of ads"), "{markdown}");
    }
    // Beside what is not called like that it is what its name says.
    for id in ["a", "b", ""] {
        let others = manual.map(|heading| section(if heading == "Ads" { "ads" } else { id }, heading)).concat();
        assert!(!read(&others).contains("of ads"), "{id}");
    }
}

#[test]
fn a_post_stays_whatever_it_is_about() {
    let post = |n: usize, terms: &str| {
        format!("<li class='post type-post status-publish hentry {terms}'><h2>Post {n}</h2><p>{PROSE}</p></li>")
    };
    let posts: String =
        (0..6).map(|n| post(n, if n == 3 { "category-advertising tag-meta-ads" } else { "category-boats" })).collect();
    assert!(main_markdown(&format!("<h1>News</h1><ul>{posts}</ul>")).contains("Post 3"));
}
