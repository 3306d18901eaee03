//! A file that a caller sends instead of an address (wire 21).

use serde::{Deserialize, Serialize};

/// Largest file, bytes.
pub const MAX_BYTES: usize = 50 << 20;
/// What is said of a larger one.
pub const TOO_LARGE: &str = "Uploaded file exceeds maximum size of 50MB.";
/// Longest file name, characters.
pub const MAX_NAME: usize = 255;
/// Longest ending of a name that is kept when the name is cut, characters.
const MAX_ENDING: usize = 16;
/// How long a file may be sent to its address, and parsed, from when the address was given out, milliseconds.
pub const VALID_MS: i64 = 3_600_000;
/// Most addresses of a team whose files were not parsed, of those given out within [`UNPARSED_WINDOW_MS`].
pub const MOST_UNPARSED: i64 = 10;
/// A day, milliseconds.
pub const UNPARSED_WINDOW_MS: i64 = 86_400_000;

/// The file behind a page that was sent and not fetched. Its page's URL is the file's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upload {
    /// Where its bytes lie among the blobs.
    pub blob: String,
    /// As the caller calls it, without folders.
    pub name: String,
    /// The type that the caller gave.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_type: Option<String>,
}

/// A file's name without folders and control characters, cut to what is kept; `None`: nothing is left of it.
pub fn clean_name(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last.chars().filter(|c| !c.is_control()).collect();
    let clean = clean.trim();
    (!clean.is_empty() && clean != "." && clean != "..").then(|| shortened(clean))
}

/// A name of at most [`MAX_NAME`] characters that ends as it did: the ending says what the file is.
fn shortened(name: &str) -> String {
    let cut = |text: &str, most: usize| text.chars().take(most).collect::<String>();
    if name.chars().nth(MAX_NAME).is_none() {
        return name.to_owned();
    }
    match name.rsplit_once('.').map(|(stem, ending)| (stem, ending, ending.chars().count())) {
        Some((stem, ending, length)) if length <= MAX_ENDING => {
            format!("{}.{ending}", cut(stem, MAX_NAME - length - 1))
        }
        _ => cut(name, MAX_NAME).trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_folders_and_no_control_characters() {
        for (name, clean) in [
            ("a.pdf", Some("a.pdf")),
            ("C:\\docs\\a.pdf", Some("a.pdf")),
            ("../../etc/passwd", Some("passwd")),
            (" Bericht\u{0} 2.docx\n", Some("Bericht 2.docx")),
            ("", None),
            ("a/", None),
            ("..", None),
        ] {
            assert_eq!(clean_name(name).as_deref(), clean, "{name:?}");
        }
        assert_eq!(clean_name(&"x".repeat(999)).unwrap().len(), MAX_NAME);
        let long = clean_name(&format!("{}.docx", "é".repeat(300))).unwrap();
        assert!(long.chars().count() == MAX_NAME && long.ends_with("é.docx"), "{long}");
        assert_eq!(clean_name(&format!("a.{}", "b".repeat(300))).unwrap().len(), MAX_NAME);
    }
}
