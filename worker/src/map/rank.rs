//! Orders the links of a map by their relevance to some words: BM25 over address, title and description.
//!
//! Words are compared by their stems, in English and in the language of the site, without accents; writing without
//! spaces is compared in pairs of characters. Every link stays: those that match nothing follow in their old order.

use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;
use url::Url;
use weir_shared::bm25::{self, Length};

use super::links::Link;

/// How often a word of each part counts.
const TITLE: usize = 3;
const ADDRESS: usize = 2;
const DESCRIPTION: usize = 1;
/// Links whose order is refined by how many of the words they have.
const REFINED: usize = 300;
/// Words of one text that are looked at.
const MAX_WORDS: usize = 120;

/// Orders `links`. `languages` are tags such as `de-DE`, of the site and of the caller.
pub fn order(links: Vec<Link>, words: &str, languages: &[String]) -> Vec<Link> {
    let sample: String = links.iter().filter_map(|link| link.title.as_deref()).take(100).collect::<Vec<_>>().join(". ");
    let stems = Stems::new(languages, &format!("{words}. {sample}"));
    let query = query_terms(&stems, words);
    if query.is_empty() || links.is_empty() {
        return links;
    }
    let documents: Vec<Vec<String>> = links.iter().map(|link| document(&stems, link)).collect();
    let total: usize = documents.iter().map(Vec::len).sum();
    // Links of no words at all are as long as they are.
    let average = (total as f32 / documents.len() as f32).max(1.0);
    let mut scored = bm25::scores(&documents, &query, Length { weight: 0.6, average });
    let by_score = |a: &(usize, f32), b: &(usize, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    scored.sort_by(by_score);
    let wanted: HashSet<&str> = query.iter().map(String::as_str).collect();
    let refined = scored.len().min(REFINED);
    for (n, score) in &mut scored[..refined] {
        let has: HashSet<&str> =
            documents[*n].iter().map(String::as_str).filter(|term| wanted.contains(term)).collect();
        let share = has.len() as f32 / wanted.len() as f32;
        let depth = links[*n].url.matches('/').count().saturating_sub(3) as f32;
        // One link with all of the words is better than one with a single word many times; of equals, the one closer
        // to the root.
        *score *= (0.4 + 0.6 * share) / (1.0 + 0.04 * depth);
    }
    scored[..refined].sort_by(by_score);
    let mut places: Vec<usize> = scored.iter().map(|(n, _)| *n).collect();
    let matched: HashSet<usize> = places.iter().copied().collect();
    places.extend((0..links.len()).filter(|n| !matched.contains(n)));
    let mut links: Vec<Option<Link>> = links.into_iter().map(Some).collect();
    places.into_iter().filter_map(|n| links[n].take()).collect()
}

/// The words' terms, and neighbours written as one: `sign up` finds `signup`.
fn query_terms(stems: &Stems, words: &str) -> Vec<String> {
    let split = split(words);
    let mut terms = Vec::new();
    for word in &split {
        stems.add(word, &mut terms);
    }
    for pair in split.windows(2) {
        if let [Word::Plain(first), Word::Plain(second)] = pair
            && first.len() + second.len() <= 20
        {
            stems.add(&Word::Plain(format!("{first}{second}")), &mut terms);
        }
    }
    let mut seen = HashSet::new();
    terms.retain(|term| seen.insert(term.clone()));
    let content: Vec<String> = terms.iter().filter(|term| !is_filler(term)).cloned().collect();
    if content.is_empty() { terms } else { content }
}

/// Words that say nothing about what is looked for.
fn is_filler(term: &str) -> bool {
    #[rustfmt::skip]
    const FILLERS: &[&str] = &[
        "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "in", "is", "it",
        "my", "of", "on", "or", "page", "that", "the", "this", "to", "we", "what", "where", "which", "with", "you",
        "your", "der", "die", "das", "und", "le", "la", "les", "et", "el", "los", "de", "il", "y",
    ];
    FILLERS.contains(&term)
}

fn document(stems: &Stems, link: &Link) -> Vec<String> {
    let mut terms = Vec::new();
    let mut add = |text: &str, times: usize| {
        let mut own = Vec::new();
        for word in split(text).iter().take(MAX_WORDS) {
            stems.add(word, &mut own);
        }
        for _ in 0..times {
            terms.extend(own.iter().cloned());
        }
    };
    if let Ok(url) = Url::parse(&link.url) {
        let host = url.host_str().unwrap_or_default();
        // The names below the registered domain say what a part of the site is about.
        let own =
            weir_suffixes::registered_domain(host).and_then(|domain| host.strip_suffix(domain)).unwrap_or_default();
        let tail = format!("{own} {} {}", url.path(), url.query().unwrap_or_default());
        add(&percent_decode_str(&tail).decode_utf8_lossy(), ADDRESS);
    }
    add(link.title.as_deref().unwrap_or_default(), TITLE);
    add(link.description.as_deref().unwrap_or_default(), DESCRIPTION);
    terms
}

/// A piece of text that is compared as one.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    /// Lower case.
    Plain(String),
    /// Of a writing without spaces.
    Run(String),
}

/// Cuts a text into words: at blanks and marks, and inside `camelCase`.
fn split(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut run = String::new();
    let mut was_lower = false;
    let mut flush = |word: &mut String, run: &mut String| {
        if !word.is_empty() {
            words.push(Word::Plain(std::mem::take(word).to_lowercase()));
        }
        if !run.is_empty() {
            words.push(Word::Run(std::mem::take(run)));
        }
    };
    for character in text.nfc() {
        if is_unspaced(character) {
            if !word.is_empty() {
                flush(&mut word, &mut run);
            }
            run.push(character);
            was_lower = false;
        } else if character.is_alphanumeric() {
            if !run.is_empty() || was_lower && character.is_uppercase() || word.len() > 64 {
                flush(&mut word, &mut run);
            }
            word.push(character);
            was_lower = character.is_lowercase();
        } else if !is_combining_mark(character) && character != '\'' && character != '’' {
            flush(&mut word, &mut run);
            was_lower = false;
        }
    }
    flush(&mut word, &mut run);
    words
}

/// Han, kana, Hangul, Thai, Lao, Khmer and Burmese.
fn is_unspaced(character: char) -> bool {
    matches!(u32::from(character),
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x3040..=0x30ff | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x20000..=0x3134f)
}

/// The stems of words in the languages that matter.
struct Stems(Vec<Stemmer>);

impl Stems {
    /// English, the languages named, and the one that `sample` is written in.
    fn new(languages: &[String], sample: &str) -> Self {
        let mut wanted: Vec<&str> = languages.iter().filter_map(|tag| tag.get(..2)).collect();
        let detected = whichlang::detect_language(sample);
        let code = detected.three_letter_code();
        wanted.push(code);
        let mut algorithms: Vec<Algorithm> = vec![Algorithm::English];
        for algorithm in wanted.into_iter().filter_map(algorithm) {
            let is_known = algorithms.iter().any(|known| name(*known) == name(algorithm));
            if !is_known && algorithms.len() < 3 {
                algorithms.push(algorithm);
            }
        }
        Self(algorithms.into_iter().map(Stemmer::create).collect())
    }

    /// Adds the terms of a word: one a distinct stem; a run of unspaced writing gives its pairs.
    fn add(&self, word: &Word, terms: &mut Vec<String>) {
        match word {
            Word::Run(run) => {
                let characters: Vec<char> = run.chars().collect();
                match characters.as_slice() {
                    [one] => terms.push(one.to_string()),
                    many => terms.extend(many.windows(2).map(|pair| pair.iter().collect::<String>())),
                }
            }
            Word::Plain(word) => {
                let first = terms.len();
                for stemmer in &self.0 {
                    let term = plain(&stemmer.stem(word));
                    if !term.is_empty() && !terms[first..].contains(&term) {
                        terms.push(term);
                    }
                }
            }
        }
    }
}

/// Without accents.
fn plain(word: &str) -> String {
    if word.is_ascii() {
        return word.to_owned();
    }
    word.nfkd().filter(|character| !is_combining_mark(*character)).collect::<String>().replace('ß', "ss")
}

fn algorithm(tag: &str) -> Option<Algorithm> {
    Some(match tag.to_ascii_lowercase().as_str() {
        "en" | "eng" => Algorithm::English,
        "de" | "deu" => Algorithm::German,
        "fr" | "fra" => Algorithm::French,
        "es" | "spa" => Algorithm::Spanish,
        "it" | "ita" => Algorithm::Italian,
        "pt" | "por" => Algorithm::Portuguese,
        "nl" | "nld" => Algorithm::Dutch,
        "sv" | "swe" => Algorithm::Swedish,
        "da" => Algorithm::Danish,
        "no" | "nb" | "nn" => Algorithm::Norwegian,
        "fi" => Algorithm::Finnish,
        "ru" | "rus" => Algorithm::Russian,
        "ro" => Algorithm::Romanian,
        "hu" => Algorithm::Hungarian,
        "tr" | "tur" => Algorithm::Turkish,
        "el" => Algorithm::Greek,
        "ar" | "ara" => Algorithm::Arabic,
        "ta" => Algorithm::Tamil,
        _ => return None,
    })
}

/// The library's type cannot be compared.
fn name(algorithm: Algorithm) -> String {
    format!("{algorithm:?}")
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
