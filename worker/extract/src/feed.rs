//! RSS and Atom feeds as documents. Entities of a document type are never expanded, and everything is bounded.

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;
use url::Url;

/// Most entries of a feed.
const MAX_ENTRIES: usize = 5_000;
/// Longest text of one element, bytes; longer ones are cut.
const MAX_TEXT: usize = 256 << 10;
/// Most bytes of all texts.
const MAX_ALL: usize = 16 << 20;
/// Elements inside each other.
const MAX_DEPTH: usize = 64;

/// A feed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Feed {
    pub title: Option<String>,
    /// HTML or plain text.
    pub description: Option<String>,
    pub language: Option<String>,
    /// The site that it belongs to, absolute.
    pub link: Option<String>,
    pub entries: Vec<Entry>,
    /// There were more entries or text than are read.
    pub is_cut: bool,
}

/// One entry of a feed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub title: Option<String>,
    /// Absolute.
    pub link: Option<String>,
    /// As written.
    pub date: Option<String>,
    pub author: Option<String>,
    /// HTML or plain text; the whole content where the feed has it.
    pub text: Option<String>,
}

/// Reads a feed; `None` when the text is another kind of XML, or none. What comes before a mistake in it counts.
pub fn read(text: &str, base: &Url) -> Option<Feed> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut state =
        FeedReader { base, feed: Feed::default(), entry: None, path: Vec::new(), text: String::new(), all: 0 };
    let mut is_feed = false;
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                let name = local(start.local_name().as_ref());
                if !is_feed && state.path.is_empty() {
                    if !matches!(name.as_str(), "rss" | "feed" | "rdf") {
                        return None;
                    }
                    is_feed = true;
                }
                if state.path.len() >= MAX_DEPTH {
                    state.feed.is_cut = true;
                    break;
                }
                state.open(&name, &start);
                state.path.push(name);
            }
            Ok(Event::Empty(start)) => {
                let name = local(start.local_name().as_ref());
                state.open(&name, &start);
                state.close(&name);
            }
            Ok(Event::End(_)) => {
                if let Some(name) = state.path.pop() {
                    state.close(&name);
                }
            }
            Ok(Event::Text(text)) => state.say(&text),
            Ok(Event::CData(text)) => state.say(&text),
            Ok(Event::GeneralRef(name)) => {
                let text = entity(&name);
                state.say(&text);
            }
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(_) => {
                state.feed.is_cut = true;
                break;
            }
        }
    }
    is_feed.then_some(state.feed)
}

fn local(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn entity(name: &BytesRef<'_>) -> String {
    if let Ok(Some(c)) = name.resolve_char_ref() {
        return c.to_string();
    }
    let name: &str = name;
    quick_xml::escape::resolve_predefined_entity(name).map_or_else(|| format!("&{name};"), str::to_owned)
}

struct FeedReader<'a> {
    base: &'a Url,
    feed: Feed,
    entry: Option<Entry>,
    path: Vec<String>,
    /// Of the element that is open.
    text: String,
    all: usize,
}

impl FeedReader<'_> {
    fn say(&mut self, text: &str) {
        if self.all + text.len() > MAX_ALL || self.text.len() + text.len() > MAX_TEXT {
            self.feed.is_cut = true;
            return;
        }
        self.all += text.len();
        self.text.push_str(text);
    }

    fn absolute(&self, address: &str) -> Option<String> {
        let url = self.base.join(address.trim()).ok()?;
        matches!(url.scheme(), "http" | "https").then(|| url.to_string())
    }

    fn open(&mut self, name: &str, start: &BytesStart<'_>) {
        if matches!(name, "item" | "entry") && self.entry.is_none() {
            self.entry = Some(Entry::default());
        }
        // An author's name stands inside of it, and XHTML inside of a content: their text is collected as it comes.
        let is_inside = self.path.iter().any(|open| matches!(open.as_str(), "content" | "summary" | "author"));
        if !is_inside {
            self.text.clear();
        }
        if name == "link" {
            let attribute = |wanted: &str| {
                let found = start.html_attributes().flatten().find(|a| a.key.local_name().as_ref() == wanted)?;
                let value: &str = found.value.as_ref();
                Some(quick_xml::escape::unescape(value).map_or(value.to_owned(), |text| text.into_owned()))
            };
            let is_page = attribute("rel").is_none_or(|rel| rel == "alternate");
            if let Some(href) = attribute("href").filter(|_| is_page).and_then(|href| self.absolute(&href)) {
                let place = self.entry.as_mut().map_or(&mut self.feed.link, |entry| &mut entry.link);
                place.get_or_insert(href);
            }
        }
    }

    fn close(&mut self, name: &str) {
        if self.path.iter().any(|open| matches!(open.as_str(), "image" | "textinput" | "source")) {
            return;
        }
        if matches!(name, "item" | "entry") {
            if let Some(entry) = self.entry.take() {
                if self.feed.entries.len() < MAX_ENTRIES {
                    self.feed.entries.push(entry);
                } else {
                    self.feed.is_cut = true;
                }
            }
            return;
        }
        let text = self.text.trim();
        if text.is_empty() || self.path.iter().any(|open| matches!(open.as_str(), "content" | "summary")) {
            return;
        }
        let text = text.to_owned();
        let link = if name == "link" { self.absolute(&text) } else { None };
        let place = match (&mut self.entry, name) {
            (Some(entry), "title") => &mut entry.title,
            (Some(entry), "pubdate" | "published" | "updated" | "date") => &mut entry.date,
            (Some(entry), "author" | "creator") => &mut entry.author,
            // The whole content stands beside a summary.
            (Some(entry), "encoded" | "content") => {
                entry.text = Some(text);
                return;
            }
            (Some(entry), "description" | "summary") => &mut entry.text,
            (Some(entry), "link") => {
                entry.link = entry.link.take().or(link);
                return;
            }
            (None, "link") => {
                self.feed.link = self.feed.link.take().or(link);
                return;
            }
            (None, "title") => &mut self.feed.title,
            (None, "description" | "subtitle") => &mut self.feed.description,
            (None, "language") => &mut self.feed.language,
            _ => return,
        };
        place.get_or_insert(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(text: &str) -> Option<Feed> {
        read(text, &Url::parse("https://x.test/feed/").expect("a URL"))
    }

    #[test]
    fn rss_and_atom_are_read() {
        let rss = feed(
            "<?xml version='1.0'?><rss version='2.0'><channel><title>News &amp; more</title><link>/</link>\
             <language>en</language><image><title>no</title></image><item><title><![CDATA[One <b>]]></title><link>/a</link>\
             <pubDate>Mon</pubDate><dc:creator>Ann</dc:creator><description>short</description>\
             <content:encoded><![CDATA[<p>long</p>]]></content:encoded></item><item><guid>x</guid></item></channel></rss>",
        )
        .expect("a feed");
        assert_eq!((rss.title.as_deref(), rss.link.as_deref()), (Some("News & more"), Some("https://x.test/")));
        let [one, two] = rss.entries.as_slice() else { panic!("two entries") };
        let wanted = Entry {
            title: Some("One <b>".into()),
            link: Some("https://x.test/a".into()),
            date: Some("Mon".into()),
            author: Some("Ann".into()),
            text: Some("<p>long</p>".into()),
        };
        assert_eq!((one, two), (&wanted, &Entry::default()));
        let atom = feed(
            "<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title><link rel=self href='/f'/><link href='/s'/><entry>\
             <title>E</title><link rel='alternate' href='e?a=1&amp;b=2'/><updated>2024</updated><author><name>Bo</name>\
             </author><summary>S</summary></entry></feed>",
        )
        .expect("a feed");
        let entry = &atom.entries[0];
        assert_eq!(atom.link.as_deref(), Some("https://x.test/s"));
        assert_eq!(entry.link.as_deref(), Some("https://x.test/feed/e?a=1&b=2"));
        assert_eq!((entry.author.as_deref(), entry.text.as_deref()), (Some("Bo"), Some("S")));
    }

    #[test]
    fn other_texts_are_no_feeds_and_broken_ones_give_what_they_have() {
        for text in ["<urlset><url><loc>x</loc></url></urlset>", "plain", "", "<html><title>x</title></html>"] {
            assert_eq!(feed(text), None, "{text}");
        }
        let cut = feed("<rss><channel><title>T</title><item><title>a</title></item><item><title>b").expect("a feed");
        assert_eq!((cut.title.as_deref(), cut.entries.len()), (Some("T"), 1));
        let deep = format!("<rss>{}", "<a>".repeat(100_000));
        assert!(feed(&deep).expect("a feed").is_cut);
        let bomb = "<!DOCTYPE rss [<!ENTITY a 'x'>]><rss><channel><title>&a;&#65;</title></channel></rss>";
        assert_eq!(feed(bomb).expect("a feed").title.as_deref(), Some("&a;A"));
    }
}
