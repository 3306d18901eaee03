//! Whether the page is an empty shell that a script fills in: a cheap look at what was sent.

use html5ever::local_name;

use super::measure::Measures;
use super::tree::{Dom, Tag};

/// Text outside navigation below which a page may be a shell, characters.
const LITTLE_TEXT: u32 = 200;
/// The same for a page with an empty element that frameworks mount at.
const LITTLE_TEXT_MOUNT: u32 = 400;

/// Ids that frameworks mount at.
const MOUNTS: [&str; 12] = [
    "root",
    "app",
    "__next",
    "__nuxt",
    "app-root",
    "react-root",
    "main-app",
    "__layout",
    "svelte",
    "gatsby-___gatsby",
    "___gatsby",
    "q-app",
];

/// Text of a place that is still to be filled.
fn is_placeholder(text: &str) -> bool {
    let text = text.trim().trim_end_matches(['.', '…', ' ']).to_ascii_lowercase();
    text.is_empty()
        || matches!(
            text.as_str(),
            "loading" | "please wait" | "loading app" | "loading page" | "wait" | "initializing" | "lädt"
        )
}

/// Whether the markup alone lacks the content that scripts would make.
pub fn looks_script_rendered(dom: &Dom, m: &Measures) -> bool {
    let total = m.total();
    if total > 3 * LITTLE_TEXT_MOUNT {
        return false;
    }
    let mut scripts = false;
    let mut asks_for_script = false;
    let mut empty_place = false;
    let mut empty_mount = false;
    let mut worded = false;
    let mut chrome = 0;
    let mut i = 0;
    while i < dom.len() {
        match dom.tag(i) {
            Tag::Script => {
                scripts |= runs(dom, i);
                i = dom.end(i);
                continue;
            }
            Tag::Noscript => {
                let low = dom.text_of(i).to_ascii_lowercase();
                asks_for_script |= low.contains("script")
                    && low.len() < 600
                    && (low.contains("enable") || low.contains("need") || low.contains("require"));
                i = dom.end(i);
                continue;
            }
            Tag::Nav | Tag::Footer | Tag::Header | Tag::Aside => {
                chrome += m.text[i];
                i = dom.end(i);
                continue;
            }
            Tag::P | Tag::Li | Tag::Td | Tag::H1 | Tag::H2 | Tag::Pre | Tag::Form => {
                worded |= m.text[i] > 0 || dom.tag(i) == Tag::Form
            }
            _ => {}
        }
        let container = matches!(
            dom.tag(i),
            Tag::Div | Tag::Main | Tag::Section | Tag::Article | Tag::Ul | Tag::Ol | Tag::Tbody | Tag::Table
        ) || (dom.tag(i) == Tag::Other && dom.element(i).is_some_and(|e| e.name.local.contains('-')));
        if container && !(m.invisible[i] && dom.tag(i) != Tag::Main) && m.text[i] < 24 {
            let id = dom.attr(i, &local_name!("id")).unwrap_or("");
            let custom = dom.tag(i) == Tag::Other;
            if (!id.is_empty() || custom || dom.tag(i) == Tag::Main)
                && !has_media(dom, i)
                && is_placeholder(&visible_text(dom, i))
            {
                empty_place = true;
                empty_mount |= MOUNTS.contains(&id)
                    || custom && id.is_empty() && dom.element(i).is_some_and(|e| e.name.local.ends_with("-root"));
            }
        }
        i += 1;
    }
    let content = total.saturating_sub(chrome);
    scripts
        && ((empty_mount && content < LITTLE_TEXT_MOUNT)
            || (content < LITTLE_TEXT && (empty_place || asks_for_script))
            || (content < 24 && !worded))
}

fn visible_text(dom: &Dom, i: usize) -> String {
    let mut out = String::new();
    let mut j = i;
    while j < dom.end(i) {
        if matches!(dom.tag(j), Tag::Script | Tag::Style | Tag::Noscript | Tag::Template) {
            j = dom.end(j);
            continue;
        }
        out.push_str(dom.text(j));
        j += 1;
    }
    out
}

/// Whether all that the page says is that it is not there yet.
pub fn is_only_placeholder(dom: &Dom, m: &Measures) -> bool {
    // The longest of the words that are meant is far shorter.
    (1..=40).contains(&m.total()) && is_placeholder(&shown_text(dom, m))
}

/// The text of a page without what shows nothing.
fn shown_text(dom: &Dom, m: &Measures) -> String {
    let mut out = String::new();
    let mut i = 0;
    while i < dom.len() {
        if m.invisible[i] {
            i = dom.end(i);
            continue;
        }
        out.push_str(dom.text(i));
        i += 1;
    }
    out
}

/// Whether something is shown there without text.
pub fn has_media(dom: &Dom, i: usize) -> bool {
    (i..dom.end(i)).any(|j| {
        matches!(dom.tag(j), Tag::Img | Tag::Video | Tag::Iframe | Tag::Object | Tag::Embed | Tag::Input | Tag::Canvas)
    })
}

/// Whether a script element is one that runs.
fn runs(dom: &Dom, i: usize) -> bool {
    let kind = dom.attr(i, &local_name!("type")).unwrap_or("").to_ascii_lowercase();
    let code = kind.is_empty()
        || kind == "module"
        || kind.contains("javascript")
        || kind.contains("ecmascript")
        || kind == "text/babel";
    code && (dom.attr(i, &local_name!("src")).is_some()
        || (i..dom.end(i)).map(|j| dom.text(j).len()).sum::<usize>() > 8)
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    fn looks(html: &str) -> bool {
        let dom = guard::parse(html).dom;
        looks_script_rendered(&dom, &Measures::of(&dom, false))
    }

    #[test]
    fn empty_shells_are_seen() {
        for page in [
            "<div id=root></div><script src=/app.js></script>",
            "<nav>Home About</nav><div id=content><noscript>Enable scripts</noscript></div><script>start(document)</script>",
            "<main>Loading…</main><script type=module src=x.js></script>",
            "<h1>List</h1><ul id=items></ul><script>fetch('/api/items').then(show)</script>",
            "<my-app></my-app><script src=m.js></script>",
            "<body><noscript>You need to enable JavaScript to run this app.</noscript><script src=m.js></script>",
        ] {
            assert!(looks(page), "{page}");
        }
    }

    #[test]
    fn pages_with_their_text_are_not() {
        let text = "plain words of a page that was sent whole ".repeat(12);
        for page in [
            "<h1>Small</h1><p>Just this.</p>".to_owned(),
            "<h1>Small</h1><p>Just this.</p><script src=//stats.test/t.js></script>".to_owned(),
            format!("<div id=root>{text}</div><script>window.__state={{\"a\":1}};</script>"),
            format!("<main><p>{text}</p></main><div id=modal></div><script src=x.js></script>"),
            "<div id=root></div>".to_owned(),
            "<h1>Log in</h1><form><input name=user></form><script>x.focus();</script>".to_owned(),
        ] {
            assert!(!looks(&page), "{page}");
        }
    }
}
