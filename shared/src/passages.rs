//! The passages of a text, and which of them have most to do with a question (BM25).

use crate::bm25::{self, Length};

/// Longest passage, bytes.
const PASSAGE: usize = 2_000;
/// Characters of a word that are compared: endings differ.
const STEM: usize = 7;

/// Paragraphs; long ones in pieces.
pub fn split(text: &str) -> Vec<&str> {
    let mut passages = Vec::new();
    for block in text.split("\n\n").map(|block| block.trim_matches('\n')).filter(|block| !block.trim().is_empty()) {
        let mut rest = block;
        while rest.len() > PASSAGE {
            let end = rest.floor_char_boundary(PASSAGE);
            let end = rest[..end].rfind(['\n', ' ']).map_or(end, |at| at + 1);
            passages.push(&rest[..end]);
            rest = &rest[end..];
        }
        passages.push(rest);
    }
    passages
}

/// Passages that share words with what is asked for, the best first.
pub fn rank(passages: &[&str], about: &str) -> Vec<usize> {
    if about.is_empty() {
        return Vec::new();
    }
    let length: usize = passages.iter().map(|passage| passage.len()).sum::<usize>() / 6;
    let average = length as f32 / passages.len().max(1) as f32;
    let documents: Vec<Vec<String>> = passages.iter().map(|passage| terms(passage)).collect();
    let mut found = bm25::scores(&documents, &terms(about), Length { weight: 0.75, average: average.max(1.0) });
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found.into_iter().map(|(n, _)| n).collect()
}

/// Words as they are compared.
fn terms(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2);
    words.map(|word| word.to_lowercase().chars().take(STEM).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_without_end_is_cut_between_words() {
        let text = "word ".repeat(2_000);
        let passages = split(&text);
        assert!(passages.len() > 4 && passages.iter().all(|p| p.len() <= PASSAGE && p.starts_with("word")));
        assert_eq!(split(&"ä".repeat(5_000)).concat(), "ä".repeat(5_000));
    }

    #[test]
    fn passages_that_share_words_come_first_and_others_not_at_all() {
        let passages = ["Nothing to see.", "The warranty lasts seven years.", "Warranties of two years end."];
        let order = rank(&passages, "How long does the warranty last?");
        assert!(order.first() == Some(&1) && !order.contains(&0), "{order:?}");
        assert!(rank(&passages, "").is_empty());
    }
}
