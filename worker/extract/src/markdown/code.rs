//! Code blocks: their text without gutters and buttons, and the language from whatever names it.

use html5ever::local_name;

use super::super::measure::is_hidden;
use super::super::tree::{Dom, Tag};

/// Class names that are languages by themselves, as highlighters write them.
const LANGUAGES: &[&str] = &[
    "asm",
    "awk",
    "bash",
    "basic",
    "bat",
    "c",
    "c++",
    "clojure",
    "cmake",
    "console",
    "cpp",
    "cs",
    "csharp",
    "css",
    "csv",
    "cuda",
    "dart",
    "diff",
    "docker",
    "dockerfile",
    "elixir",
    "elm",
    "erlang",
    "fortran",
    "fsharp",
    "go",
    "golang",
    "gradle",
    "graphql",
    "groovy",
    "haskell",
    "hcl",
    "html",
    "http",
    "ini",
    "java",
    "javascript",
    "js",
    "json",
    "json5",
    "jsx",
    "julia",
    "kotlin",
    "latex",
    "less",
    "lisp",
    "lua",
    "makefile",
    "markdown",
    "matlab",
    "md",
    "mysql",
    "nginx",
    "nim",
    "nix",
    "objectivec",
    "ocaml",
    "pascal",
    "perl",
    "php",
    "plaintext",
    "postgresql",
    "powershell",
    "proto",
    "protobuf",
    "ps1",
    "puppet",
    "py",
    "python",
    "python3",
    "r",
    "rb",
    "rs",
    "ruby",
    "rust",
    "sass",
    "scala",
    "scheme",
    "scss",
    "sh",
    "shell",
    "solidity",
    "sql",
    "svelte",
    "swift",
    "terraform",
    "tex",
    "toml",
    "ts",
    "tsx",
    "typescript",
    "vb",
    "vbnet",
    "verilog",
    "vhdl",
    "vim",
    "vue",
    "wasm",
    "xml",
    "yaml",
    "yml",
    "zig",
    "zsh",
];

/// A language word as it may stand after a fence, or `None` if it names none.
fn clean(word: &str) -> Option<String> {
    let word = word.trim().trim_matches([';', ':', '"', '\'']).to_ascii_lowercase();
    let fits = !word.is_empty()
        && word.len() <= 24
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'#' | b'-' | b'_' | b'.'));
    let empty = matches!(
        word.as_str(),
        "none" | "default" | "auto" | "nohighlight" | "text" | "source" | "notranslate" | "plain" | "plaintext"
    );
    (fits && !empty).then_some(word)
}

/// Language named by one `class` value.
fn of_class(class: &str, bare: bool) -> Option<String> {
    let mut words = class.split_ascii_whitespace().peekable();
    let mut plain = None;
    while let Some(word) = words.next() {
        let named =
            ["language-", "lang-", "highlight-source-", "sourceCode-", "brush:", "syntax-", "code-", "highlight-"]
                .iter()
                .find_map(|prefix| Some((*prefix, word.strip_prefix(prefix)?)));
        match named {
            Some(("brush:", "")) => return clean(words.peek()?),
            Some(("code-" | "syntax-" | "highlight-", rest)) if LANGUAGES.contains(&rest) => return clean(rest),
            Some(("code-" | "syntax-" | "highlight-", _)) => {}
            Some((_, rest)) => {
                // `language-js{1,3}` and `language-js:file.js` carry options.
                let rest = rest.split(['{', ':', ',']).next().unwrap_or("");
                if let Some(found) = clean(rest) {
                    return Some(found);
                }
            }
            None if bare && plain.is_none() => {
                let low = word.to_ascii_lowercase();
                if LANGUAGES.contains(&low.as_str()) {
                    plain = Some(low);
                }
            }
            None => {}
        }
    }
    plain.and_then(|p| clean(&p))
}

fn of_element(dom: &Dom, i: usize, bare: bool) -> Option<String> {
    ["data-lang", "data-language", "data-code-lang"]
        .iter()
        .find_map(|name| clean(dom.attr_named(i, name)?))
        .or_else(|| of_class(dom.class(i), bare))
}

/// The language of the code block `pre`, looked for on it, the `code` inside and the wrappers around.
pub fn language(dom: &Dom, pre: usize) -> Option<String> {
    let inner = (pre + 1..dom.end(pre)).take(8).find(|&i| dom.tag(i) == Tag::Code);
    if let Some(found) = inner.and_then(|i| of_element(dom, i, true)).or_else(|| of_element(dom, pre, true)) {
        return Some(found);
    }
    let mut below = pre;
    for up in dom.ancestors(pre).take(5) {
        // A wrapper that holds more than this block says nothing about it.
        if !matches!(
            dom.tag(up),
            Tag::Div | Tag::Figure | Tag::Td | Tag::Tr | Tag::Tbody | Tag::Table | Tag::Span | Tag::Other | Tag::Code
        ) || dom.end(up) - dom.end(below) > 40
        {
            break;
        }
        if let Some(found) = of_element(dom, up, false).or_else(|| {
            let class = dom.class(up);
            let wrapper = class
                .split_ascii_whitespace()
                .any(|w| matches!(w, "highlight" | "sourceCode" | "highlighter-rouge" | "codehilite"));
            if wrapper { of_class(class, true) } else { None }
        }) {
            return Some(found);
        }
        below = up;
    }
    None
}

/// Whether an element inside code only holds line numbers.
pub fn is_gutter(dom: &Dom, i: usize) -> bool {
    if !matches!(dom.tag(i), Tag::Td | Tag::Th | Tag::Span | Tag::Div | Tag::A | Tag::Code | Tag::I | Tag::Other) {
        return false;
    }
    let class = dom.class(i);
    let named = class.split_ascii_whitespace().any(|w| {
        matches!(
            w,
            "linenos"
                | "lineno"
                | "linenodiv"
                | "linenumber"
                | "line-number"
                | "line-numbers"
                | "line-numbers-rows"
                | "gutter"
                | "blob-num"
                | "hljs-ln-numbers"
                | "rouge-gutter"
                | "gl"
                | "ln"
                | "lnt"
                | "lntd"
                | "linenumbers"
                | "react-syntax-highlighter-line-number"
                | "crayon-nums"
                | "crayon-num"
                | "src-line-numbers"
                | "line_numbers"
                | "lineNumbers"
                | "line-num"
                | "linenum"
                | "LineNr"
        )
    });
    named
        && dom.end(i) - i < 20_000
        && (i + 1..dom.end(i)).all(|j| dom.text(j).bytes().all(|b| b.is_ascii_digit() || b.is_ascii_whitespace()))
}

/// Whether a link inside code is the number of its line: it leads to that line, as rustdoc's views of sources have it.
fn is_line_link(dom: &Dom, i: usize) -> bool {
    if dom.tag(i) != Tag::A || dom.end(i) - i > 4 {
        return false;
    }
    let text = dom.text_of(i);
    let number = text.trim();
    !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit())
        && dom.attr(i, &local_name!("href")).and_then(|h| h.strip_prefix('#')).is_some_and(|f| f.ends_with(number))
}

/// Whether `text`, that of a block of code in a table's cell, counts the lines of the block in the next cell.
pub fn counts_next(dom: &Dom, pre: usize, text: &str) -> bool {
    let Some(cell) = dom.ancestors(pre).take(4).find(|&a| dom.tag(a) == Tag::Td) else { return false };
    let Some(next) = dom.children(dom.parent(cell)).find(|&c| c > cell && dom.tag(c) == Tag::Td) else {
        return false;
    };
    let Some(code) = (next..dom.end(next)).take(16).find(|&j| dom.tag(j) == Tag::Pre) else { return false };
    let mut expected = None;
    let mut lines = 0;
    for line in text.split_ascii_whitespace() {
        let Ok(number) = line.parse::<u32>() else { return false };
        if expected.is_some_and(|n| n != number) {
            return false;
        }
        expected = number.checked_add(1);
        lines += 1;
    }
    // A last line may be numbered though it is empty.
    let of_code = dom.text_of(code).trim_end().lines().count();
    lines > 0 && lines + 1 >= of_code && lines <= of_code + 2
}

/// Whether a `div` is a block of code drawn line by line: Doxygen, SyntaxHighlighter, Crayon.
pub fn is_drawn(dom: &Dom, i: usize) -> bool {
    let holds_lines = match dom.class(i) {
        "fragment" | "crayon-pre" => true,
        "container" => dom.tag(dom.parent(i)) == Tag::Td && dom.class(dom.parent(i)) == "code",
        _ => false,
    };
    holds_lines
        && dom.children(i).filter(|&c| dom.tag(c).is_element()).take(4).all(|c| {
            dom.tag(c) == Tag::Div && dom.class(c).split_ascii_whitespace().any(|w| matches!(w, "line" | "crayon-line"))
        })
}

/// Whether a table is a file, a row a line: GitHub's gists.
pub fn is_file(dom: &Dom, table: usize) -> bool {
    dom.class(table).split_ascii_whitespace().any(|word| word == "js-file-line-container")
}

/// The text of a code block: of what is between the cells of a table nothing is the file's.
pub fn text(dom: &Dom, block: usize, dropped: &dyn Fn(usize) -> bool) -> String {
    if dom.tag(block) != Tag::Table {
        return block_text(dom, block, dropped);
    }
    let rows = (block + 1..dom.end(block)).filter(|&i| dom.tag(i) == Tag::Tr);
    let lines = rows.map(|row| {
        let cells = dom.children(row).filter(|&i| matches!(dom.tag(i), Tag::Td | Tag::Th) && !is_gutter(dom, i));
        cells.map(|cell| block_text(dom, cell, dropped)).collect::<String>()
    });
    lines.collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}

/// The text of a block: line breaks kept, gutters and buttons left out, blank lines trimmed at both ends.
fn block_text(dom: &Dom, pre: usize, dropped: &dyn Fn(usize) -> bool) -> String {
    let mut out = String::new();
    let mut line_ends: Vec<usize> = Vec::new();
    let mut i = pre + 1;
    let end = dom.end(pre);
    loop {
        while line_ends.pop_if(|e| *e <= i).is_some() {
            if !out.ends_with('\n') {
                out.push('\n');
            }
        }
        if i >= end {
            break;
        }
        match dom.tag(i) {
            Tag::Text => {
                let t = dom.text(i);
                if t.contains(['\u{a0}', '\r']) {
                    out.push_str(&t.replace("\r\n", "\n").replace('\u{a0}', " "));
                } else {
                    out.push_str(t);
                }
            }
            Tag::Br => out.push('\n'),
            Tag::Button | Tag::Script => {
                i = dom.end(i);
                continue;
            }
            tag if tag.is_never_shown() => {
                i = dom.end(i);
                continue;
            }
            tag if tag.is_element() => {
                if is_gutter(dom, i) || is_line_link(dom, i) || (dropped(i) && is_hidden(dom, i)) {
                    i = dom.end(i);
                    continue;
                }
                if tag.is_block() {
                    if !out.is_empty() && !out.ends_with('\n') {
                        out.push('\n');
                    }
                    line_ends.push(dom.end(i));
                }
            }
            _ => {}
        }
        i += 1;
    }
    let body = out.trim_end();
    let start = body.len() - body.trim_start_matches(['\n', '\r']).len();
    // Leading lines of blanks only go too, the first line's indentation stays.
    let lead = body[start..]
        .find(|c: char| !c.is_whitespace())
        .map_or(0, |n| body[start..start + n].rfind('\n').map_or(0, |p| p + 1));
    body[start + lead..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_read_from_every_form() {
        for (class, want) in [
            ("language-rust", Some("rust")),
            ("hljs python", Some("python")),
            ("brush: js; gutter: true", Some("js")),
            ("highlight-source-c++", Some("c++")),
            ("sourceCode haskell", Some("haskell")),
            ("language-none", None),
            ("wide boxed", None),
        ] {
            assert_eq!(of_class(class, true).as_deref(), want, "{class}");
        }
    }
}
