//! A reader of plain English: no model, the same answer each time, and a warning about every word that had no effect.
//!
//! The prompt becomes a line of tokens ([`line`]). Rules take what they know out of it: first phrases with numbers
//! ([`rules`]), then topics with their yes or no, then paths and sections ([`paths`]). What is left and says something is
//! named in the warning.

mod line;
mod paths;
mod rules;

use serde_json::{Map, Value};
use url::Url;

use self::line::Line;
use super::{PromptOptions, judge};

/// Bytes of left-over words that a warning names.
const MAX_NAMED: usize = 300;

/// Reads a prompt for a crawl of `url`.
pub fn read(url: &Url, prompt: &str) -> PromptOptions {
    let mut line = Line::new(prompt);
    let mut options = Map::new();
    let mut notes = Vec::new();
    rules::read(&mut line, &mut options, &mut notes);
    paths::read(&mut line, url, &mut options, &mut notes);
    let left = left_over(&line);
    if !left.is_empty() {
        notes.push(format!("Not understood and not used: {}.", left.join(", ")));
    }
    if options.is_empty() {
        notes.insert(0, "The prompt names nothing that changes the crawl.".to_owned());
    }
    // What is written here is valid; a rule that went wrong costs its effect and is told.
    let options = judge(Value::Object(options)).unwrap_or_else(|problem| {
        notes.push(format!("The prompt asks for something that a crawl cannot do: {problem}."));
        Map::new()
    });
    PromptOptions { options, warning: (!notes.is_empty()).then(|| notes.join(" ")) }
}

/// Runs of words that no rule took, quoted; words that say nothing at their ends are left out.
fn left_over(line: &Line) -> Vec<String> {
    let mut runs: Vec<Vec<&str>> = vec![Vec::new()];
    let mut length = 0;
    for (i, token) in line.tokens().iter().enumerate() {
        let is_end = token.is_stop() || token.is_comma() || line.is_taken(i) && !token.is_filler();
        if is_end {
            runs.push(Vec::new());
        } else if let Some(run) = runs.last_mut() {
            run.push(token.text());
        }
    }
    let mut named = Vec::new();
    for run in &mut runs {
        let says_nothing = |word: &&str| line::is_filler(&word.to_lowercase());
        while run.last().is_some_and(says_nothing) {
            run.pop();
        }
        let start = run.iter().position(|word| !says_nothing(word)).unwrap_or(run.len());
        let text = run[start..].join(" ");
        if text.is_empty() {
            continue;
        }
        length += text.len();
        if length > MAX_NAMED {
            named.push("…".to_owned());
            break;
        }
        named.push(format!("\"{text}\""));
    }
    named
}

#[cfg(test)]
#[path = "english_tests.rs"]
mod tests;
