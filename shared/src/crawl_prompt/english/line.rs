//! A prompt as tokens, and as one line in a form that rules can be written for: lower case, single blanks, number words
//! as digits, paths and quotations as `<n>` by their token.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Number,
    /// A path, an address or a quotation.
    Name,
    /// The end of a sentence.
    Stop,
    Comma,
}

/// A piece of the prompt.
#[derive(Debug, Clone)]
pub struct Token {
    kind: Kind,
    /// As written; quotation marks are left out.
    text: String,
    /// As it stands in the line.
    form: String,
}

impl Token {
    /// As written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Lower case; number words as digits.
    pub fn form(&self) -> &str {
        &self.form
    }

    pub fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }

    /// A path, an address or a quotation.
    pub fn is_name(&self) -> bool {
        self.kind == Kind::Name
    }

    pub fn is_stop(&self) -> bool {
        self.kind == Kind::Stop
    }

    pub fn is_comma(&self) -> bool {
        self.kind == Kind::Comma
    }

    /// A word that says nothing about a crawl.
    pub fn is_filler(&self) -> bool {
        self.kind == Kind::Word && is_filler(&self.form)
    }
}

/// The tokens, which of them rules have taken, and the line.
pub struct Line {
    tokens: Vec<Token>,
    taken: Vec<bool>,
    line: String,
    /// Where each token stands in the line.
    places: Vec<Range<usize>>,
}

static TOKENS: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r#"(?x) (?P<url>https?://[^\s,;"'<>()]+) | (?P<quote>"[^"\n]{1,200}"|`[^`\n]{1,200}`)
        | (?P<path>[\w.*-]*/[\w./*%+~:@!$&=-]*|\*\.\w+) | (?P<number>\d[\d,]*(?:\.\d+)?k?\b)
        | (?P<word>[\p{L}_][\p{L}\p{N}_'-]*(?:\.[\p{L}\p{N}]+)*(?:'s)?) | (?P<stop>[.;!?\n]) | (?P<comma>[,:()])"#,
    )
});

/// Compiles a pattern of this reader.
pub fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("patterns of the reader are constants that a test compiles")
}

impl Line {
    /// Cuts a prompt into tokens.
    pub fn new(prompt: &str) -> Self {
        let prompt: String = prompt
            .chars()
            .map(|c| match c {
                '\u{2018}' | '\u{2019}' => '\'',
                '\u{201c}' | '\u{201d}' => '"',
                '\u{2010}'..='\u{2014}' => '-',
                c => c,
            })
            .collect();
        let mut tokens: Vec<Token> = TOKENS.captures_iter(&prompt).filter_map(|found| token(&found)).collect();
        fold_numbers(&mut tokens);
        let mut line = String::new();
        let mut places = Vec::with_capacity(tokens.len());
        for (i, token) in tokens.iter_mut().enumerate() {
            if token.kind == Kind::Name {
                token.form = format!("<{i}>");
            }
            if i > 0 {
                line.push(' ');
            }
            places.push(line.len()..line.len() + token.form.len());
            line.push_str(&token.form);
        }
        Self { taken: vec![false; tokens.len()], tokens, line, places }
    }

    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The word at a place; "" where there is none.
    pub fn form(&self, at: Option<usize>) -> &str {
        at.and_then(|at| self.tokens.get(at)).map_or("", Token::form)
    }

    pub fn is_taken(&self, at: usize) -> bool {
        self.taken[at]
    }

    /// Takes tokens out: later rules do not see them.
    pub fn take(&mut self, range: Range<usize>) {
        self.taken[range].fill(true);
    }

    /// The first place where `pattern` matches whole tokens that nobody has taken: the tokens, and what the groups
    /// caught.
    pub fn find(&self, pattern: &Regex) -> Option<(Range<usize>, Vec<Option<String>>)> {
        let mut from = 0;
        while from <= self.line.len() {
            let found = pattern.captures_at(&self.line, from)?;
            let whole = found.get(0)?;
            from = whole.start() + 1;
            while !self.line.is_char_boundary(from) {
                from += 1;
            }
            let Some(range) = self.range(whole.start()..whole.end()) else { continue };
            if self.taken[range.clone()].iter().all(|taken| !taken) {
                let groups = found.iter().skip(1).map(|group| group.map(|group| group.as_str().to_owned()));
                return Some((range, groups.collect()));
            }
        }
        None
    }

    /// Every such place, each taken in turn.
    pub fn take_all(&mut self, pattern: &Regex) -> Vec<(Range<usize>, Vec<Option<String>>)> {
        let mut all = Vec::new();
        while let Some((range, groups)) = self.find(pattern) {
            self.take(range.clone());
            all.push((range, groups));
        }
        all
    }

    /// The tokens of a piece of the line that begins and ends with whole ones.
    fn range(&self, bytes: Range<usize>) -> Option<Range<usize>> {
        let first = self.places.iter().position(|place| place.start == bytes.start)?;
        let last = self.places.iter().position(|place| place.end == bytes.end)?;
        (first <= last).then_some(first..last + 1)
    }

    /// Whether what stands at `at` is unwanted: the nearest word before it in its sentence that says yes or no. `None`:
    /// there is no such word.
    pub fn is_negative(&self, at: usize) -> Option<bool> {
        for i in (0..at).rev() {
            let token = &self.tokens[i];
            if token.is_stop() {
                return None;
            }
            if self.taken[i] && !is_verb(token.form()) {
                continue;
            }
            let word = token.form();
            let before = self.form(i.checked_sub(1));
            if word == "but" {
                return Some(matches!(before, "everything" | "all" | "anything"));
            }
            if word == "out" && before == "leave" || NO.contains(&word) {
                return Some(true);
            }
            if word == "than" && matches!(before, "other" | "rather") || word == "from" && before == "apart" {
                return Some(true);
            }
            if YES.contains(&word) {
                let further = self.form(i.checked_sub(2));
                let is_denied = |word: &str| matches!(word, "don't" | "dont" | "not" | "never" | "without" | "no");
                return Some(is_denied(before) || is_denied(further) && matches!(before, "to" | "you" | "be" | "even"));
            }
        }
        None
    }
}

/// Words that say no to what follows.
#[rustfmt::skip]
const NO: &[&str] = &[
    "no", "not", "without", "exclude", "excludes", "excluding", "excluded", "except", "excepting", "skip", "skips",
    "skipping", "ignore", "ignores", "ignoring", "avoid", "avoiding", "omit", "omitting", "disregard",
    "disregarding", "never", "don't", "dont", "drop", "dropping", "strip", "stripping", "minus", "regardless",
    "bypass", "bypassing", "override", "overriding", "neither", "nor", "remove", "removing", "despite",
];
/// Words that say yes.
#[rustfmt::skip]
const YES: &[&str] = &[
    "only", "include", "includes", "including", "crawl", "crawling", "scrape", "scraping", "get", "fetch", "follow",
    "following", "use", "using", "with", "allow", "allowing", "keep", "keeping", "respect", "respecting", "obey",
    "obeying", "honor", "honour", "visit", "visiting", "collect", "want", "need", "just", "also", "grab", "extract",
    "download", "index", "find", "focus", "plus", "everything", "take", "read", "see", "cover", "stick", "restrict",
    "limit", "consider", "considering", "add", "enable",
];

fn is_verb(word: &str) -> bool {
    NO.contains(&word) || YES.contains(&word)
}

/// Whether a word says yes or no.
pub fn is_cue(word: &str) -> bool {
    is_verb(word) || matches!(word, "but" | "leave" | "out" | "other" | "apart" | "than")
}

/// Whether a word says nothing about a crawl.
pub fn is_filler(word: &str) -> bool {
    #[rustfmt::skip]
    const FILLERS: &[&str] = &[
        "a", "about", "above", "all", "an", "and", "any", "anything", "are", "as", "at", "be", "been", "being",
        "both", "by", "can", "company", "complete", "content", "contents", "could", "crawler", "data", "do", "does",
        "each", "either", "every", "everything", "file", "files", "for", "found", "from", "full", "give", "go",
        "has", "have", "here", "hi", "hello", "how", "i", "i'd", "i'm", "if", "in", "info", "information", "inside",
        "into", "is", "it", "it's", "its", "let", "like", "link", "links", "listed", "main", "make", "me", "more",
        "my", "of", "on", "one", "or", "our", "own", "page", "pages", "please", "possible", "related", "same",
        "should", "site", "site's", "sites", "so", "some", "start", "starting", "stuff", "sure", "text", "thank",
        "thanks", "that", "the", "their", "them", "then", "there", "these", "they", "thing", "things", "this",
        "those", "through", "to", "under", "up", "url", "urls", "us", "very", "want", "was", "we", "web", "website",
        "website's", "websites", "what", "when", "where", "which", "while", "who", "will", "within", "would", "you",
        "your", "s", "t", "document", "documents", "list", "relevant", "available", "public", "section", "sections",
        "part", "parts", "domain", "contained", "containing", "home", "homepage", "too", "well", "etc", "e.g", "i.e",
        "parse", "parsing", "spider", "map", "discover", "gather", "retrieve", "return", "show", "look", "looking",
        "wish", "able", "directory", "folder", "path", "paths", "area",
    ];
    FILLERS.contains(&word) || is_cue(word)
}

fn token(found: &Captures<'_>) -> Option<Token> {
    let trim = |text: &str| text.trim_end_matches(['.', ',', ':', '!', '&', '=']).to_owned();
    if let Some(url) = found.name("url") {
        return Some(Token { kind: Kind::Name, text: trim(url.as_str()), form: String::new() });
    }
    if let Some(quote) = found.name("quote") {
        let inner = quote.as_str();
        let text = inner[1..inner.len() - 1].trim().to_owned();
        return Some(Token { kind: Kind::Name, text, form: String::new() });
    }
    if let Some(path) = found.name("path") {
        let text = trim(path.as_str());
        let kind = match text.to_lowercase().as_str() {
            "and/or" | "his/her" | "he/she" | "/" | "" => Kind::Comma,
            _ => Kind::Name,
        };
        return Some(Token { kind, form: ",".to_owned(), text });
    }
    if let Some(number) = found.name("number") {
        let text = number.as_str().to_owned();
        let plain = text.replace(',', "");
        let form = match plain.strip_suffix('k') {
            Some(thousands) => show(thousands.parse::<f64>().ok()? * 1_000.0),
            None => plain,
        };
        return Some(Token { kind: Kind::Number, text, form });
    }
    if let Some(word) = found.name("word") {
        let text = word.as_str().to_owned();
        let form = text.to_lowercase();
        return Some(Token { kind: Kind::Word, text, form });
    }
    let (kind, form) = if found.name("stop").is_some() { (Kind::Stop, ".") } else { (Kind::Comma, ",") };
    Some(Token { kind, text: form.to_owned(), form: form.to_owned() })
}

fn show(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { number.to_string() }
}

/// Number words become digits: `a hundred`, `two thousand`, `a dozen`, `half a`.
fn fold_numbers(tokens: &mut Vec<Token>) {
    let small = |word: &str| {
        #[rustfmt::skip]
        const SMALL: &[&str] = &[
            "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
            "twelve", "thirteen", "fourteen", "fifteen",
        ];
        const TENS: &[&str] = &["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
        let small = SMALL.iter().position(|known| *known == word).map(|at| at as f64);
        small.or_else(|| TENS.iter().position(|known| *known == word).map(|at| 20.0 + 10.0 * at as f64))
    };
    let large = |word: &str| match word {
        "dozen" => Some(12.0),
        "hundred" => Some(100.0),
        "thousand" => Some(1_000.0),
        _ => None,
    };
    let mut i = 0;
    while i < tokens.len() {
        let form = tokens[i].form.clone();
        let next = tokens.get(i + 1).and_then(|token| large(&token.form));
        let own = match tokens[i].kind {
            Kind::Number => form.parse().ok(),
            Kind::Word => small(&form).or_else(|| large(&form)),
            _ => None,
        };
        let is_article = matches!(form.as_str(), "a" | "an");
        let value = match (own, next) {
            (Some(count), Some(unit)) => Some((count * unit, 2)),
            (None, Some(unit)) if is_article => Some((unit, 2)),
            (Some(count), None) => Some((count, 1)),
            _ => None,
        };
        if let Some((value, used)) = value {
            let text = tokens[i..i + used].iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ");
            tokens.splice(i..i + used, [Token { kind: Kind::Number, text, form: show(value) }]);
        }
        i += 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_prompt_becomes_one_line() {
        for (prompt, line) in [
            ("Don\u{2019}t  get MORE than a hundred pages!", "don't get more than 100 pages ."),
            ("two thousand, 1,500 or 2k; 2-second", "2000 , 1500 or 2000 . 2 second"),
            ("skip /blog/*, \"my docs\" and docs/api.", "skip <1> , <3> and <5>"),
            ("robots.txt on example.com's site", "robots.txt on example.com's site"),
            ("and/or", ","),
            ("", ""),
        ] {
            assert_eq!(Line::new(prompt).line, line, "{prompt}");
        }
    }

    #[test]
    fn the_nearest_word_says_yes_or_no() {
        for (prompt, word, expected) in [
            ("skip the blog", "blog", Some(true)),
            ("crawl docs and skip news, blog", "blog", Some(true)),
            ("skip news but crawl the blog", "blog", Some(false)),
            ("do not follow the blog", "blog", Some(true)),
            ("everything but the blog", "blog", Some(true)),
            ("no news. blog", "blog", None),
            ("leave out the blog", "blog", Some(true)),
            ("anything other than the blog", "blog", Some(true)),
        ] {
            let line = Line::new(prompt);
            let at = line.tokens().iter().position(|token| token.form() == word).unwrap();
            assert_eq!(line.is_negative(at), expected, "{prompt}");
        }
    }
}
