//! `onlyCleanContent`: what still surrounds the content goes out of the markdown (spec 4.7).
//!
//! The model names the paragraphs that go by their numbers and writes none itself, so that what stays is the page's own.

use serde_json::{Value, json};

use super::ask::Task;
use super::passages::{self, Excerpt};
use super::{PageText, Read, ReadError, Reader};

/// Longest list of numbers, tokens.
const ANSWER: u32 = 4_000;
/// Most paragraphs that are numbered.
const BLOCKS: usize = 2_000;
/// Of the text, in percent, what may go: more would not be residue.
const MOST: usize = 60;
/// The warning that the markdown was left as it is.
const SKIPPED: &str = "onlyCleanContent was skipped and the markdown left as it is";

impl Reader<'_> {
    /// The markdown without residual boilerplate.
    ///
    /// # Errors
    /// As [`ReadError`] says.
    pub async fn clean(&self, page: PageText<'_>) -> Result<Read<String>, ReadError> {
        let model = self.model.as_ref().ok_or(ReadError::NotConfigured)?.settings();
        let blocks = blocks(page.markdown);
        let whole = || page.markdown.to_owned();
        let numbered: String =
            blocks.iter().enumerate().map(|(n, block)| format!("[{n}] {}\n\n", block.trim_end())).collect();
        if blocks.len() > BLOCKS || numbered.len() > passages::room(model.context, ANSWER) {
            let warning = format!("{SKIPPED}: it is longer than the language model can work on.");
            return Ok(Read { value: whole(), warning: Some(warning) });
        }
        let task = Task {
            rules: "The page's text is cut into numbered paragraphs. List the numbers of those that are no content: \
                menus, breadcrumbs, cookie notices, sign-up and share prompts, advertisements, lists of other pages, \
                footers. Keep everything else, and keep what you are not sure of.",
            wish: String::new(),
            name: "residue",
            schema: &json!({"type": "object", "properties": {"drop": {"type": "array", "items": {"type": "integer"}}},
                "required": ["drop"], "additionalProperties": false}),
            strict: true,
            max_tokens: ANSWER,
        };
        let excerpt = Excerpt::new(PageText { markdown: &numbered, structured: None, ..page }, usize::MAX, None);
        let drop = self.ask(page, &excerpt, &task, |said| numbers(&said, blocks.len())).await?;
        let gone: usize = drop.iter().map(|n| blocks[*n].len()).sum();
        if gone * 100 > page.markdown.len() * MOST {
            let warning = format!("{SKIPPED}: the language model would have left too little of it.");
            return Ok(Read { value: whole(), warning: Some(warning) });
        }
        let kept = blocks.iter().enumerate().filter(|(n, _)| !drop.contains(n)).map(|(_, block)| *block);
        let mut value: String = kept.collect();
        value.truncate(value.trim_end().len());
        if !value.is_empty() {
            value.push('\n');
        }
        Ok(Read { value, warning: None })
    }
}

/// Paragraphs with the empty lines after them; a fenced block is one.
fn blocks(markdown: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let (mut start, mut at, mut is_fenced, mut is_blank) = (0, 0, false, false);
    for line in markdown.split_inclusive('\n') {
        let text = line.trim();
        if is_blank && !text.is_empty() && !is_fenced {
            blocks.push(&markdown[start..at]);
            start = at;
        }
        if text.starts_with("```") || text.starts_with("~~~") {
            is_fenced = !is_fenced;
        }
        is_blank = text.is_empty();
        at += line.len();
    }
    if start < markdown.len() {
        blocks.push(&markdown[start..]);
    }
    blocks
}

fn numbers(said: &Value, count: usize) -> Result<Vec<usize>, String> {
    let list = said["drop"].as_array().ok_or("`drop` is a list of numbers.")?;
    let number = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n < count);
    let mut numbers: Vec<usize> = list
        .iter()
        .map(number)
        .collect::<Option<_>>()
        .ok_or_else(|| format!("Numbers go from 0 to {}.", count.saturating_sub(1)))?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_make_up_the_text_and_fences_stay_whole() {
        let text = "# A\n\nb\nc\n\n\n```\nd\n\ne\n```\n\nf\n";
        let parts = blocks(text);
        assert_eq!(parts, ["# A\n\n", "b\nc\n\n\n", "```\nd\n\ne\n```\n\n", "f\n"]);
        assert_eq!(parts.concat(), text);
        assert!(blocks("").is_empty());
    }

    #[test]
    fn only_numbers_of_paragraphs_count() {
        assert_eq!(numbers(&json!({"drop": [2, 0, 2]}), 3), Ok(vec![0, 2]));
        for bad in [json!({"drop": [3]}), json!({"drop": [-1]}), json!({"drop": ["1"]}), json!({}), json!({"drop": 1})]
        {
            assert!(numbers(&bad, 3).is_err(), "{bad}");
        }
    }
}
