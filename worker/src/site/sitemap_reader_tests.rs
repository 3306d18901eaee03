use std::io::Write as _;

use weir_shared::clock::Stopwatch;

use super::*;

fn list(file: &[u8]) -> (Vec<Item>, Ending) {
    let base = Url::parse("https://x.test/maps/site.xml").expect("a URL");
    let mut items = Vec::new();
    let ending = read(Box::new(Cursor::new(file.to_vec())), &base, |item| {
        items.push(item);
        ControlFlow::Continue(())
    });
    (items, ending)
}

fn urls(file: &str) -> (Vec<String>, Ending) {
    let (items, ending) = list(file.as_bytes());
    let urls = items.into_iter().map(|item| match item {
        Item::Page(entry) => entry.url.to_string(),
        Item::Sitemap(url) => format!("sitemap {url}"),
    });
    (urls.collect(), ending)
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn every_form_is_told_by_its_content() {
    for (file, expected) in [
        (
            "<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\
             <url><loc>https://x.test/1</loc><lastmod>2024-01-15</lastmod></url>\
             <url><lastmod>1</lastmod><loc>\n https://x.test/2#part \n</loc></url></urlset>",
            vec!["https://x.test/1", "https://x.test/2"],
        ),
        (
            "\u{feff} <sm:urlset xmlns:sm=\"x\"><sm:url><sm:loc>/rel?a=1&amp;b=2</sm:loc><image:image>\
             <image:loc>https://x.test/i.png</image:loc></image:image></sm:url></sm:urlset>",
            vec!["https://x.test/rel?a=1&b=2"],
        ),
        (
            "<urlset><url><loc><![CDATA[https://x.test/?a=1&b=2]]></loc></url>\
             <url><loc>https://x.test/?c=1&d=2</loc></url><url><loc>https://x.test/caf&#xe9;</loc></url></urlset>",
            vec!["https://x.test/?a=1&b=2", "https://x.test/?c=1&d=2", "https://x.test/caf%C3%A9"],
        ),
        (
            "<sitemapindex><sitemap><loc>b.xml.gz</loc><lastmod>x</lastmod></sitemap></sitemapindex>",
            vec!["sitemap https://x.test/maps/b.xml.gz"],
        ),
        (
            "<rss><channel><link>https://x.test/</link><image><url>https://x.test/i.png</url></image>\
             <item><title>A</title><link>https://x.test/a</link></item>\
             <item><guid>https://x.test/b</guid></item><item><guid isPermaLink=\"false\">7</guid></item></channel></rss>",
            vec!["https://x.test/a", "https://x.test/b"],
        ),
        (
            "<feed><link href=\"https://x.test/\"/><entry><link rel=\"edit\" href=\"/edit\"/>\
             <link rel=\"alternate\" href=\"/e?a=1&amp;b=2\"/></entry><entry><link href=\"/f\"/></entry></feed>",
            vec!["https://x.test/e?a=1&b=2", "https://x.test/f"],
        ),
        (
            "https://x.test/1\r\n  HTTPS://X.test/2  \n\nnot one\nftp://x.test/3\nhttps://x.test/4",
            vec!["https://x.test/1", "https://x.test/2", "https://x.test/4"],
        ),
        ("<urlset></urlset>", vec![]),
    ] {
        assert_eq!(urls(file), (expected.into_iter().map(str::to_owned).collect(), Ending::Whole), "{file}");
    }
}

#[test]
fn titles_come_with_feeds_and_news() {
    let file = "<rss><channel><item><title>Caf&eacute; &amp; &lt;b&gt;more</title><link>/a</link>\
        <description><![CDATA[<p>Some\n <b>bold</b> text</p>]]></description><pubDate>Mon</pubDate>\
        <media:title>no</media:title></item></channel></rss>";
    let (items, _) = list(file.as_bytes());
    let Some(Item::Page(entry)) = items.first() else { panic!("{items:?}") };
    assert_eq!(entry.title.as_deref(), Some("Caf&eacute; & more"));
    assert_eq!(entry.description.as_deref(), Some("Some bold text"));
    assert_eq!(entry.lastmod.as_deref(), Some("Mon"));
    let news = "<urlset><url><loc>/n</loc><news:news><news:title>Fresh</news:title></news:news>\
        <image:image><image:title>no</image:title></image:image></url></urlset>";
    let (items, _) = list(news.as_bytes());
    let Some(Item::Page(entry)) = items.first() else { panic!("{items:?}") };
    assert_eq!(entry.title.as_deref(), Some("Fresh"));
}

#[test]
fn a_broken_file_gives_what_was_readable() {
    for (file, expected) in [
        ("<urlset><url><loc>https://x.test/1</loc><url><loc>https://x.test/2 </loc></url", vec!["1", "2"]),
        ("<urlset><url><loc>https://x.test/1</loc></url><url><loc>https://x.test/2", vec!["1"]),
        (
            "<urlset><url><loc>https://x.test/1</lok></url><url><loc>https://x.test/2</loc></url></urlset>",
            vec!["1", "2"],
        ),
        ("<urlset></x></y><url><loc>https://x.test/1</loc></url><!-- open", vec!["1"]),
        (
            "<urlset><url><loc>https://x.test/1</loc></url><url a=<><loc>https://x.test/2</loc></url></urlset>",
            vec!["1", "2"],
        ),
    ] {
        let (found, _) = urls(file);
        let expected: Vec<String> = expected.iter().map(|n| format!("https://x.test/{n}")).collect();
        assert_eq!(found, expected, "{file}");
    }
}

#[test]
fn other_files_are_no_sitemaps() {
    for file in [
        "",
        "   ",
        "<!DOCTYPE html><html><body><a href=/1>1</a></body></html>",
        "<html><url><loc>https://x.test/1</loc></url></html>",
        "just words\nand more",
        "{\"a\": \"https://x.test/1\"}",
        "\u{0}\u{1}\u{2}",
    ] {
        assert_eq!(urls(file), (vec![], Ending::NoSitemap), "{file}");
    }
}

#[test]
fn gzip_is_undone_by_content_even_when_cut_or_doubled() {
    let file = b"<urlset><url><loc>https://x.test/1</loc></url><url><loc>https://x.test/2</loc></url></urlset>";
    for packed in [gzip(file), gzip(&gzip(file)), [gzip(file), vec![0; 600]].concat()] {
        assert_eq!(list(&packed).0.len(), 2);
    }
    let many: String = (0..2_000).map(|n| format!("<url><loc>https://x.test/{n}</loc></url>")).collect();
    let packed = gzip(format!("<urlset>{many}</urlset>").as_bytes());
    let (items, ending) = list(&packed[..packed.len() / 2]);
    assert!(items.len() > 100 && items.len() < 2_000, "{}", items.len());
    assert_eq!(ending, Ending::Cut);
}

#[test]
fn bounds_hold_against_hostile_files() {
    let started = Stopwatch::start();
    let entry = "<url><loc>https://x.test/1</loc></url>";
    let bomb = gzip(&[b"<urlset>".as_slice(), entry.as_bytes(), &vec![b' '; 80 << 20]].concat());
    assert_eq!(list(&bomb), (list(format!("<urlset>{entry}").as_bytes()).0, Ending::Cut));
    let nested = format!("<urlset>{entry}{}", "<a>".repeat(1_000_000));
    assert_eq!(urls(&nested), (vec!["https://x.test/1".to_owned()], Ending::Cut));
    let long = format!("<urlset><url><loc>https://x.test/{}</loc></url>{entry}</urlset>", "a".repeat(100_000));
    assert_eq!(urls(&long), (vec!["https://x.test/1".to_owned()], Ending::Whole));
    let many = format!("<urlset>{}</urlset>", entry.repeat(60_000));
    assert_eq!((list(many.as_bytes()).0.len(), list(many.as_bytes()).1), (MAX_ENTRIES, Ending::Cut));
    let laughs = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><urlset><url><loc>https://x.test/&b;</loc></url></urlset>";
    assert_eq!(urls(laughs).0, ["https://x.test/&b;"]);
    assert!(started.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn charsets_are_undone_and_bad_bytes_cost_no_entry() {
    let file = "<?xml version='1.0' encoding='UTF-16'?><urlset><url><loc>https://x.test/é</loc></url></urlset>";
    let utf16: Vec<u8> = [0xfeff_u16].into_iter().chain(file.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let latin =
        b"<?xml version=\"1.0\" encoding='iso-8859-1'?><urlset><url><loc>https://x.test/\xe9</loc></url></urlset>";
    for file in [utf16, latin.to_vec(), file.as_bytes().to_vec()] {
        let (items, ending) = list(&file);
        assert!(matches!(items.as_slice(), [Item::Page(e)] if e.url.as_str() == "https://x.test/%C3%A9"), "{items:?}");
        assert_eq!(ending, Ending::Whole);
    }
    let bad = b"<urlset><url><loc>https://x.test/\xff</loc></url><url><loc>https://x.test/2</loc></url></urlset>";
    assert_eq!(list(bad).0.len(), 2);
}
