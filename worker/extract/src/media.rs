//! Sounds and films that a page itself offers: its players, what it tells those who link to it, its data, its links.

use html5ever::local_name;
use serde_json::Value;

use super::address::Addresses;
use super::tree::{Dom, Tag};

/// Largest script read as data, bytes.
const MAX_SCRIPT: usize = 2 << 20;
/// Most values of a page's data that are looked at.
const MAX_VALUES: usize = 100_000;

/// Names that files of sound and of film end in.
const SOUNDS: [&str; 9] = [".mp3", ".m4a", ".aac", ".ogg", ".oga", ".opus", ".wav", ".flac", ".weba"];
const FILMS: [&str; 8] = [".mp4", ".m4v", ".webm", ".ogv", ".mov", ".mkv", ".m3u8", ".mpd"];

/// The best address of each kind, absolute, of http or https.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// A sound.
    pub audio: Option<String>,
    /// A film.
    pub video: Option<String>,
}

/// What an address of this type and path is, told by the type first.
pub fn of_address(media_type: &str, url: &url::Url) -> Offers {
    let ends = |names: &[&str]| names.iter().any(|name| url.path().to_ascii_lowercase().ends_with(name));
    let is_told = media_type.starts_with("audio/") || media_type.starts_with("video/");
    let is_untold = matches!(media_type, "" | "application/octet-stream" | "binary/octet-stream");
    let is_playlist =
        matches!(media_type, "application/vnd.apple.mpegurl" | "application/x-mpegurl" | "application/dash+xml");
    let is = |kind: &str, names: &[&str]| media_type.starts_with(kind) || is_untold && !is_told && ends(names);
    Offers {
        audio: is("audio/", &SOUNDS).then(|| url.to_string()),
        video: (is_playlist || is("video/", &FILMS)).then(|| url.to_string()),
    }
}

/// Whether a path ends as those of sounds and films do.
pub fn is_named_like_media(url: &url::Url) -> bool {
    let path = url.path().to_ascii_lowercase();
    SOUNDS.iter().chain(&FILMS).any(|name| path.ends_with(name))
}

/// How good a place is: the first of a better place wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SourceRank {
    Link,
    Data,
    Meta,
    Player,
}

/// Looks for both.
pub fn offers(dom: &Dom, addresses: &Addresses) -> Offers {
    let mut audio = Best { addresses, best: None };
    let mut video = Best { addresses, best: None };
    for i in 0..dom.len() {
        let named = |name: &str| dom.attr_named(i, name);
        match dom.tag(i) {
            Tag::Audio => audio.add(SourceRank::Player, named("src").or_else(|| named("data-src"))),
            Tag::Video => video.add(SourceRank::Player, named("src").or_else(|| named("data-src"))),
            Tag::Source => match dom.tag(dom.parent(i)) {
                Tag::Audio => audio.add(SourceRank::Player, named("src").or_else(|| named("data-src"))),
                Tag::Video => video.add(SourceRank::Player, named("src").or_else(|| named("data-src"))),
                _ => {}
            },
            Tag::Meta => {
                let key = named("property").or_else(|| named("name")).unwrap_or("");
                match key {
                    "og:audio" | "og:audio:url" | "og:audio:secure_url" => {
                        audio.add(SourceRank::Meta, named("content"))
                    }
                    // Pages with a player use it too, for an address that does not lead to a film.
                    "og:video" | "og:video:url" | "og:video:secure_url" | "twitter:player:stream" => {
                        let content = named("content").filter(|_| !is_player(dom, i));
                        video.add(SourceRank::Meta, content);
                    }
                    _ => {}
                }
            }
            Tag::A | Tag::Link => {
                let href = dom.attr(i, &local_name!("href"));
                let kind = named("type").unwrap_or("");
                let path = href.unwrap_or("").split(['?', '#']).next().unwrap_or("").to_ascii_lowercase();
                if kind.starts_with("audio/") || SOUNDS.iter().any(|name| path.ends_with(name)) {
                    audio.add(SourceRank::Link, href);
                } else if kind.starts_with("video/") || FILMS.iter().any(|name| path.ends_with(name)) {
                    video.add(SourceRank::Link, href);
                }
            }
            Tag::Script if dom.attr(i, &local_name!("type")).is_some_and(|kind| kind.contains("ld+json")) => {
                let text = dom.text_of(i);
                if text.len() <= MAX_SCRIPT
                    && let Ok(value) = weir_json::read::<Value>(text.trim())
                {
                    from_data(&value, &mut audio, &mut video);
                }
            }
            _ => {}
        }
    }
    Offers { audio: audio.best.map(|b| b.1), video: video.best.map(|b| b.1) }
}

/// Whether the `meta` elements after a film's say that it is a page.
fn is_player(dom: &Dom, at: usize) -> bool {
    let parent = dom.parent(at);
    let later = dom.children(parent).filter(|&i| i > at && dom.tag(i) == Tag::Meta).take(8);
    let kinds = later.filter(|&i| dom.attr_named(i, "property") == Some("og:video:type"));
    kinds.filter_map(|i| dom.attr_named(i, "content")).next().is_some_and(|kind| !kind.starts_with("video/"))
}

/// Addresses of contents in JSON-LD.
fn from_data(value: &Value, audio: &mut Best<'_>, video: &mut Best<'_>) {
    let mut open = vec![value];
    let mut seen = 0;
    while let Some(value) = open.pop() {
        seen += 1;
        if seen > MAX_VALUES {
            return;
        }
        match value {
            Value::Array(list) => open.extend(list.iter().rev()),
            Value::Object(map) => {
                let content = map.get("contentUrl").and_then(Value::as_str);
                let kind = match map.get("@type") {
                    Some(Value::String(kind)) => kind.as_str(),
                    Some(Value::Array(kinds)) => kinds.iter().find_map(Value::as_str).unwrap_or(""),
                    _ => "",
                };
                let coding = map.get("encodingFormat").and_then(Value::as_str).unwrap_or("");
                if kind == "AudioObject" || coding.starts_with("audio/") {
                    audio.add(SourceRank::Data, content);
                } else if kind == "VideoObject" || coding.starts_with("video/") {
                    video.add(SourceRank::Data, content);
                } else if let Some(content) = content {
                    let path = content.split(['?', '#']).next().unwrap_or("").to_ascii_lowercase();
                    if SOUNDS.iter().any(|name| path.ends_with(name)) {
                        audio.add(SourceRank::Data, Some(content));
                    } else if FILMS.iter().any(|name| path.ends_with(name)) {
                        video.add(SourceRank::Data, Some(content));
                    }
                }
                open.extend(map.values().rev().filter(|v| v.is_object() || v.is_array()));
            }
            _ => {}
        }
    }
}

struct Best<'a> {
    addresses: &'a Addresses,
    best: Option<(SourceRank, String)>,
}

impl Best<'_> {
    fn add(&mut self, place: SourceRank, source: Option<&str>) {
        let Some(source) = source.filter(|s| !s.trim().is_empty()) else { return };
        if self.best.as_ref().is_none_or(|(held, _)| place > *held)
            && let Some(url) = self.addresses.resolve(source)
            && (url.starts_with("http:") || url.starts_with("https:"))
        {
            self.best = Some((place, url));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;
    use url::Url;

    fn of(page: &str) -> (Option<String>, Option<String>) {
        let dom = guard::parse(page).dom;
        let addresses = Addresses::of_page(&dom, &Url::parse("https://x.test/p/").expect("a URL"));
        let strip = |url: Option<String>| url.map(|url| url["https://x.test/".len()..].to_owned());
        let Offers { audio, video } = offers(&dom, &addresses);
        (strip(audio), strip(video))
    }

    #[test]
    fn the_best_place_wins_and_pages_with_a_player_are_no_films() {
        let some = |text: &str| Some(text.to_owned());
        for (page, wanted) in [
            (
                "<a href=/a.mp3>x</a><meta property=og:audio content=/b><audio><source src=/c></audio>",
                (some("c"), None),
            ),
            ("<a href='/a.MP3?x'>x</a><a href=/b.mp4>y</a>", (some("a.MP3?x"), some("b.mp4"))),
            ("<video src=blob:1></video><meta property=og:video content=/v>", (None, some("v"))),
            (
                "<meta property=og:video content=/embed><meta property=og:video:type content=text/html><video data-src=/w>",
                (None, some("w")),
            ),
            ("<meta property=og:video content=/embed><meta property=og:video:type content=text/html>", (None, None)),
            (
                r#"<script type="application/ld+json">{"@graph":[{"@type":"PodcastEpisode","associatedMedia":
                {"@type":"MediaObject","contentUrl":"/e.mp3"}},{"@type":"VideoObject","contentUrl":"/f"}]}</script>"#,
                (some("e.mp3"), some("f")),
            ),
            ("<p>nothing</p>", (None, None)),
        ] {
            assert_eq!(of(page), wanted, "{page}");
        }
    }

    #[test]
    fn a_file_is_told_by_its_type_and_then_by_its_name() {
        let url = |text: &str| Url::parse(text).expect("a URL");
        assert!(of_address("audio/wav", &url("https://x.test/a")).audio.is_some());
        assert!(of_address("application/octet-stream", &url("https://x.test/a.webm?b")).video.is_some());
        assert_eq!(of_address("text/html", &url("https://x.test/a.mp4")), Offers::default());
    }
}
