//! What the text of a block says, apart from where it stands.

use std::hash::{DefaultHasher, Hash, Hasher};

use html5ever::local_name;

use super::super::tree::{Dom, Tag};
use super::page::Page;
use super::words::{self, TEXT_KINDS};
use super::{Block, flag, log};

/// Own facts of a block, which neighbours and boxes are made of.
#[derive(Clone, Copy, Default)]
pub struct Own {
    pub text: f32,
    pub words: f32,
    pub function: f32,
    pub density: f32,
    pub heading: f32,
}

/// What the text of a block says, apart from where it stands.
pub struct Said {
    pub own: Own,
    pub values: [f32; 13],
    pub kinds: [f32; TEXT_KINDS],
    pub bits: u32,
    pub hash: u64,
    pub in_title: f32,
    pub in_described: f32,
}

/// Reads the text of a block.
pub fn read(dom: &Dom, block: &Block, text: &str, page: &Page) -> Said {
    let mut kinds = [0f32; TEXT_KINDS];
    let (mut words, mut letters, mut bits, mut titled, mut described) = (0f32, 0f32, 0u32, 0f32, 0f32);
    let mut hasher = DefaultHasher::new();
    let mut low = String::new();
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '©' && c != '®');
        if bare.is_empty() {
            continue;
        }
        low.clear();
        low.extend(bare.chars().flat_map(char::to_lowercase));
        words += 1.0;
        letters += bare.chars().count() as f32;
        low.hash(&mut hasher);
        let found = words::of_text(&low);
        bits |= found;
        for (k, kind) in kinds.iter_mut().enumerate() {
            *kind += flag(found & 1 << k != 0);
        }
        titled += flag(page.title.contains(&low));
        described += flag(page.described.contains(&low));
    }
    let n = words.max(1.0);
    for kind in &mut kinds {
        *kind /= n;
    }
    let chars = block.text.max(1) as f32;
    let count = |is: fn(char) -> bool| text.chars().filter(|c| is(*c)).count() as f32;
    let trimmed = text.trim_end();
    let (mut links, mut outward) = (0f32, 0f32);
    for i in block.first..=block.last {
        if dom.tag(i) == Tag::A || i == block.first && dom.ancestors(i).take(6).any(|a| dom.tag(a) == Tag::A) {
            links += 1.0;
            outward += flag(dom.attr(i, &local_name!("href")).is_some_and(|h| h.starts_with("http")));
        }
    }
    let density = block.links as f32 / chars;
    Said {
        own: Own { text: chars, words, function: kinds[0] * n, density, heading: 0.0 },
        values: [
            log(chars),
            density,
            log(words),
            letters / n,
            flag(trimmed.ends_with(['.', '!', '?', ':', '。', '"', '”', '…']))
                + flag(trimmed.ends_with(['.', '!', '?', '。'])),
            count(|c| matches!(c, ',' | '.' | ';' | '，' | '。')) / n,
            count(char::is_uppercase) / chars,
            count(|c| c.is_ascii_digit()) / chars,
            count(|c| !c.is_alphanumeric() && !c.is_whitespace() && !matches!(c, ',' | '.')) / chars,
            log(links),
            flag(density > 0.95 && links <= 1.0),
            outward / links.max(1.0),
            flag(text.len() < 200 && text.contains(['$', '€', '£', '¥', '₹'])),
        ],
        kinds,
        bits,
        hash: hasher.finish(),
        in_title: titled / n,
        in_described: described / n,
    }
}
