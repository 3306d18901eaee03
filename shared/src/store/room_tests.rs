//! Whether a room knows only those before it.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

/// In the order of the arrows.
const ROOMS: [&str; 8] = ["db", "accounts", "contents", "work", "sessions", "monitors", "console", "upkeep"];

/// The files below a folder, without those of tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if !path.to_str().unwrap().ends_with("tests.rs") {
            files.push(path);
        }
    }
    files
}

/// What code names right below `store`.
fn named(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for below in code.split("store::").skip(1) {
        let list = below.strip_prefix('{').and_then(|list| list.split('}').next());
        let words = list.unwrap_or(below).split(|c: char| !c.is_alphanumeric() && c != '_');
        names.extend(words.filter(|word| !word.is_empty()).take(if list.is_some() { usize::MAX } else { 1 }));
    }
    names
}

#[test]
fn a_room_knows_only_those_before_it() {
    assert_eq!(named("use crate::store::{Db, work};\ncrate::store::sessions::list()"), ["Db", "work", "sessions"]);
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    for (place, room) in ROOMS.iter().enumerate() {
        let files = files(&store.join(room));
        assert!(files.len() > 4, "{room}: {files:?}");
        for path in files {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.split("mod tests {").next().unwrap().lines();
            let code: Vec<&str> = lines.filter(|line| !line.trim_start().starts_with("//")).collect();
            for name in named(&code.join("\n")) {
                assert!(!ROOMS[place + 1..].contains(&name), "{} knows {name}", path.display());
            }
        }
    }
}
