//! Pages of one site, and what is left of them.

use std::sync::Arc;

use super::*;
use crate::{ExtractOptions, Extracted, PageInput, extract};

const PROMISE: &str = "<p>Our little shop by the sea has sent its lamps into the world since 1987, and every one of them is \
    wrapped by hand in paper that we make from last year's catalogues.</p>";

fn made(site: &Arc<Site>, path: &str, html: &str) -> Extracted {
    let url = url::Url::parse("https://shop.test/").and_then(|url| url.join(path)).expect("a URL");
    let options = ExtractOptions {
        markdown: true,
        only_main_content: true,
        blocks: true,
        site: Some(Arc::clone(site)),
        ..ExtractOptions::default()
    };
    extract(&PageInput { url: &url, html, rendered: false }, &options)
}

fn text(site: &Arc<Site>, path: &str, html: &str) -> String {
    made(site, path, html).markdown.expect("it was asked for")
}

/// What is known after these pages, a second each.
fn site(pages: impl IntoIterator<Item = (String, String)>) -> Arc<Site> {
    let mut site = Site::default();
    for (second, (path, html)) in pages.into_iter().enumerate() {
        let page = made(&Arc::default(), &path, &html);
        site.learn(&page.blocks.expect("it was asked for"), second as u64);
    }
    Arc::new(site)
}

/// Words of a page of its own.
fn own(n: usize) -> String {
    let words = ["brass", "linen", "oak", "glass", "copper", "paper", "cork", "slate", "wool", "horn", "clay", "ash"];
    let word = |at: usize| words[(n * 7 + at * 5) % words.len()];
    let part = |at: usize| {
        format!("Lamp {n} has a foot of {} and a shade of {}, number {at} of {}. ", word(at), word(at + n), n * 31 + at)
    };
    (0..6).map(part).collect()
}

fn lamp(n: usize, more: &str) -> (String, String) {
    let html = format!(
        "<title>Lamp {n} | Shop</title><div class=x><h1>Lamp {n}</h1><div><p>{}</p>{PROMISE}</div>{more}</div>",
        own(n)
    );
    (format!("lamps/{n}"), html)
}

#[test]
fn what_ten_pages_have_in_common_is_left_out() {
    let nine = site((0..9).map(|n| lamp(n, "")));
    let (path, page) = lamp(9, "");
    assert!(text(&nine, &path, &page).contains("wrapped by hand"), "nine pages are too few");
    let ten = site((0..10).map(|n| lamp(n, "")));
    let (path, page) = lamp(10, "");
    let out = made(&ten, &path, &page);
    let markdown = out.markdown.expect("it was asked for");
    assert!(!markdown.contains("wrapped by hand") && markdown.contains("number 5 of"), "{markdown}");
    assert!(markdown.starts_with("# Lamp 10"), "{markdown}");
    assert!((100..200).contains(&out.repeated), "{}", out.repeated);
    // Another page of the site, without it, is as it was.
    let other = format!("<title>Trip</title><h1>A trip</h1><p>{}</p>", own(77));
    assert_eq!(text(&ten, "trip", &other), text(&Arc::default(), "trip", &other));
}

#[test]
fn a_page_counts_once_however_often_it_comes() {
    // At other addresses, with another counter in its title, and as it is.
    let (_, page) = lamp(1, "");
    let often = (0..30).map(|n| (format!("lamps/1?session={n}"), page.replace("<title>", &format!("<title>({n}) "))));
    let often = site(often);
    assert_eq!(often.len(), 1);
    assert!(text(&often, "lamps/1", &page).contains("wrapped by hand"));
    // The pages of a thread repeat its first post.
    let thread = |n: usize| {
        let html = format!("<title>Wicks - page {n}</title><h1>Wicks</h1>{PROMISE}<p>{}</p>", own(n));
        (format!("thread?page={n}"), html)
    };
    let known = site((0..30).map(thread));
    assert!(known.len() < 3, "{}", known.len());
    assert!(text(&known, "thread?page=3", &thread(3).1).contains("wrapped by hand"));
}

#[test]
fn a_page_that_is_nearly_all_template_keeps_everything() {
    let town = |n: usize| {
        let html = format!("<title>Plumber {n}</title><h1>Plumber in town {n}</h1>{PROMISE}<p>Call {n}.</p>");
        (format!("town{n}"), html)
    };
    let known = site((0..20).map(town));
    assert_eq!(known.len(), 20);
    let (path, page) = town(3);
    assert_eq!(text(&known, &path, &page), text(&Arc::default(), &path, &page));
}

#[test]
fn what_is_repeated_by_right_stays() {
    let more = |n: usize| {
        format!(
            "<h2>How it is made</h2><p>Step {n} takes {} days of work in a warm and dry room by the window.</p>\
             <table><tr><td>Weight of the whole lamp in its box</td><td>{n} kg</td></tr><tr><td>Licence of the drawing \
             and of the words</td><td>Free for any use</td></tr></table>\
             <ul><li>A cloth of linen for the glass</li><li>A wick of length {n}</li></ul>\
             <pre>cargo add lamp --features all --default\n</pre><div>Material:</div><div>wood {n} of the forest</div>",
            n * 3
        )
    };
    let known = site((0..20).map(|n| lamp(n, &more(n))));
    let (path, page) = lamp(4, &more(4));
    let out = text(&known, &path, &page);
    for kept in
        ["How it is made", "Weight of the whole", "Free for any use", "A cloth of linen", "cargo add", "Material:"]
    {
        assert!(out.contains(kept), "{kept}: {out}");
    }
    assert!(!out.contains("wrapped by hand"), "{out}");
}

#[test]
fn sections_and_lists_go_as_a_whole_with_their_heading_and_pictures() {
    let more = |n: usize| {
        format!(
            "<section><h2>Why buy here</h2><ul><li>Free sending to all islands</li><li>Thirty days to change your mind</li></ul>\
             <img src=seal.png alt=Seal></section><h2>Size</h2><p>It is {n} feet high, and stands on a foot of {} inches.</p>\
             <h2>About us</h2><p>We are five people and a cat, and we answer letters within a day or two of their coming.</p>",
            n * 2
        )
    };
    let known = site((0..20).map(|n| lamp(n, &more(n))));
    let (path, page) = lamp(30, &more(30));
    let out = text(&known, &path, &page);
    for gone in ["Why buy", "Free sending", "seal.png", "About us", "five people"] {
        assert!(!out.contains(gone), "{gone}: {out}");
    }
    assert!(out.contains("## Size\n\nIt is 30 feet"), "{out}");
}

#[test]
fn a_part_of_the_site_has_a_template_of_its_own() {
    let box_ =
        "<p>Ruth writes about light from her boat, where there is little of it and none to be wasted at all.</p>";
    let post = |n: usize| {
        let html = format!("<title>Post {n}</title><h1>On light, {n}</h1><p>{}</p>{box_}", own(100 + n));
        (format!("blog/{n}"), html)
    };
    // The blog is a fourth of what is known.
    let pages = (0..60).map(|n| lamp(n, "")).chain((0..15).map(post));
    let known = site(pages);
    let (path, page) = post(50);
    let out = text(&known, &path, &page);
    assert!(!out.contains("Ruth writes") && out.contains("number 5 of"), "{out}");
}

#[test]
fn what_is_known_is_bounded_changes_and_survives() {
    let mut known = Site::default();
    let blocks = |n: usize, more: &str| {
        let (path, page) = lamp(n, more);
        made(&Arc::default(), &path, &page).blocks.expect("it was asked for")
    };
    for n in 0..500 {
        known.learn(&blocks(n, ""), n as u64 / 100);
    }
    assert_eq!(known.len(), 64, "the first pages stay for a while");
    assert!(!known.has_place(&blocks(501, ""), 5) && known.has_place(&blocks(501, ""), 100));
    // The template changes: once a minute a page takes the place of another.
    let sign =
        "<p>In winter the shop is closed on every day but Saturday, and letters take a week longer than usual.</p>";
    for n in 0..64 {
        known.learn(&blocks(1_000 + n, sign), 1_000 + 60 * n as u64);
    }
    let (path, page) = lamp(2_000, sign);
    let known = Arc::new(known);
    assert!(!text(&known, &path, &page).contains("In winter"));
    // As bytes, and with what another has learned.
    let read = Site::from_bytes(&known.to_bytes()).expect("what was written");
    assert!(known.to_bytes().len() < 4_000, "{}", known.to_bytes().len());
    let read = Arc::new(read);
    assert_eq!(text(&read, &path, &page), text(&known, &path, &page));
    let (mut one, mut other) = (Site::default(), Site::default());
    (0..8).for_each(|n| one.learn(&blocks(n, ""), 1));
    (6..14).for_each(|n| other.learn(&blocks(n, ""), 2));
    one.merge(&Site::from_bytes(&other.to_bytes()).expect("what was written"));
    assert_eq!(one.len(), 14);
    assert!(!text(&Arc::new(one), &path, &page).contains("wrapped by hand"));
}

#[test]
fn bytes_of_something_else_are_not_read() {
    let known = site((0..12).map(|n| lamp(n, "")));
    let bytes = known.to_bytes();
    for cut in 0..bytes.len() {
        let read = Site::from_bytes(&bytes[..cut]);
        assert!(read.is_none() || cut >= 2 + 12 * 28, "{cut}");
    }
    assert_eq!(Site::from_bytes(b"\x02\x00"), None);
    assert_eq!(Site::from_bytes(&[1, 65]), None);
    let mut long = vec![1, 0];
    long.resize(2 + 16 * 3_000, 0);
    assert_eq!(Site::from_bytes(&long), None);
}
