//! Documents of text: page header first, then the text with its headings, lists and tables, then the notes, then the
//! page footer.

pub mod doc;
pub mod docx;
pub mod odt;
pub mod rtf;

use std::collections::HashSet;

/// How deep the items of one of Word's own list styles stand: 1 for `List Bullet 2`. Each of these styles has a list of
/// its own with one level, which alone would not tell that it is one below another.
pub fn depth_of_style(name: &str) -> Option<usize> {
    let name = name.trim();
    let kind = name.get(..11)?;
    let depth = ["list bullet", "list number"].iter().any(|known| kind.eq_ignore_ascii_case(known));
    let number = depth.then(|| name.get(11..)?.strip_prefix(' ')?.parse::<usize>().ok())??;
    (2..=5).contains(&number).then(|| number - 1)
}

/// The level that an item is written at: that of its list, or that of its style where the list has but one.
pub fn level_of_item(level: usize, of_style: Option<usize>) -> usize {
    if level == 0 { of_style.unwrap_or(0) } else { level }
}

/// Of the headers or footers of a document's sections, each text once.
pub fn distinct(parts: Vec<String>) -> impl Iterator<Item = String> {
    let mut seen = HashSet::new();
    parts.into_iter().filter(move |part| !part.trim().is_empty() && seen.insert(part.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_list_styles_tell_their_depth() {
        let cases = [("List Bullet 2", Some(1)), ("list number 5", Some(4)), ("List Bullet", None), ("List 2", None)];
        for (name, depth) in
            cases.into_iter().chain([("List Bullet 9", None), ("List Bulletin", None), ("日本語のスタイル", None)])
        {
            assert_eq!(depth_of_style(name), depth, "{name}");
        }
        assert_eq!((level_of_item(0, Some(2)), level_of_item(1, Some(2)), level_of_item(0, None)), (2, 1, 0));
    }
}
