//! The `links` format: every link of the whole page, absolute, in order, without repeats.

use foldhash::{HashSet, HashSetExt as _};
use html5ever::local_name;

use super::address::Addresses;
use super::tree::{Dom, Tag};

/// Most links listed.
const MAX_LINKS: usize = 250_000;
/// Most bytes of links listed.
const MAX_BYTES: usize = 48 << 20;

/// Links of `a` and `area` elements. References within the page (`#…`, empty) and script links are left out;
/// `mailto:` and `tel:` stay.
pub fn list(dom: &Dom, addresses: &Addresses) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    let mut bytes = 0;
    for i in 0..dom.len() {
        if !matches!(dom.tag(i), Tag::A | Tag::Area) {
            continue;
        }
        let Some(href) = dom.attr(i, &local_name!("href")).map(str::trim) else { continue };
        if href.is_empty() || href.starts_with('#') {
            continue;
        }
        let Some(url) = addresses.resolve_link(href) else { continue };
        if !seen.contains(&url) {
            bytes += url.len();
            if out.len() >= MAX_LINKS || bytes > MAX_BYTES {
                break;
            }
            seen.insert(url.clone());
            out.push(url);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;
    use url::Url;

    #[test]
    fn links_are_absolute_followable_and_unique() {
        let page = "<nav><a href=/a>1</a></nav><a href='/a'>2</a><a href=#x>3</a><a href=''>4</a><a href='javascript:x()'>5</a>\
            <a href='mailto:a@b.test'>6</a><a href='data:text/html,x'>7</a><area href='b#f'><a href='?p=2'>8</a><a>9</a>";
        let dom = guard::parse(page).dom;
        let addresses = Addresses::of_page(&dom, &Url::parse("https://x.test/d/p?q").expect("a URL"));
        assert_eq!(
            list(&dom, &addresses),
            ["https://x.test/a", "mailto:a@b.test", "https://x.test/d/b#f", "https://x.test/d/p?p=2"]
        );
    }
}
