//! Okapi BM25: how much each of some documents has to do with a question, by the terms that they share.

use std::collections::HashMap;

/// How soon a further occurrence of a term counts for less.
const K1: f32 = 1.2;

/// How far the length of a document matters, 0 to 1, and the length that is usual, in terms.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    pub weight: f32,
    pub average: f32,
}

/// The documents that share a term with the question, with their scores, in no order. What stands twice in the question
/// counts twice.
pub fn scores<T: AsRef<str>>(documents: &[Vec<T>], question: &[T], length: Length) -> Vec<(usize, f32)> {
    let mut holders: HashMap<&str, f32> = question.iter().map(|term| (term.as_ref(), 0.0)).collect();
    let mut found = Vec::new();
    for (n, document) in documents.iter().enumerate() {
        let mut counts: HashMap<&str, f32> = HashMap::new();
        for term in document.iter().map(AsRef::as_ref).filter(|term| holders.contains_key(term)) {
            *counts.entry(term).or_default() += 1.0;
        }
        for term in counts.keys() {
            if let Some(count) = holders.get_mut(term) {
                *count += 1.0;
            }
        }
        if !counts.is_empty() {
            found.push((n, counts));
        }
    }
    let total = documents.len() as f32;
    let rarity = |term: &str| {
        let holders = holders.get(term).copied().unwrap_or_default();
        (1.0 + (total - holders + 0.5) / (holders + 0.5)).ln()
    };
    let score = |n: usize, counts: &HashMap<&str, f32>| -> f32 {
        let share = documents[n].len() as f32 / length.average;
        let damping = K1 * (1.0 - length.weight + length.weight * share);
        let of_term =
            |term: &str| counts.get(term).map_or(0.0, |count| rarity(term) * count * (K1 + 1.0) / (count + damping));
        question.iter().map(|term| of_term(term.as_ref())).sum()
    };
    found.iter().map(|(n, counts)| (*n, score(*n, counts))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(documents: &[&str], question: &str) -> Vec<(usize, f32)> {
        let terms = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let documents: Vec<_> = documents.iter().map(|text| terms(text)).collect();
        scores(&documents, &terms(question), Length { weight: 0.75, average: 4.0 })
    }

    #[test]
    fn scores_are_those_of_the_formula() {
        let found = of(&["red fox jumps high", "red hen", "blue whale swims deep"], "red fox");
        assert_eq!(found.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [0, 1]);
        // ln(1 + 1.5/2.5) for a term of two in three, ln(1 + 2.5/1.5) for one of one; the lengths are 1 and 0.5 of the average.
        let (two, one) = ((1.0_f32 + 1.5 / 2.5).ln(), (1.0_f32 + 2.5 / 1.5).ln());
        assert!((found[0].1 - (two + one)).abs() < 1e-5, "{found:?}");
        assert!((found[1].1 - two * 2.2 / (1.0 + 1.2 * 0.625)).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn a_rare_term_counts_more_than_a_common_one_and_a_second_one_less_than_the_first() {
        let found = of(&["a b c d", "a x c d", "a a c d"], "x");
        assert_eq!(found.len(), 1);
        let found = of(&["a b", "a a", "c d"], "a");
        assert!(found[1].1 > found[0].1 && found[1].1 < 2.0 * found[0].1, "{found:?}");
        assert!(of(&["a b"], "nothing").is_empty() && of(&[], "a").is_empty());
    }
}
