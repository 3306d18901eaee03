//! Keys by their names, as the events that a keyboard makes.

use serde_json::{Value, json};

/// Name, code and key number of the keys that do not write a character.
const NAMED: &[(&str, &str, i64)] = &[
    ("Enter", "Enter", 13),
    ("Return", "Enter", 13),
    ("Tab", "Tab", 9),
    ("Escape", "Escape", 27),
    ("Esc", "Escape", 27),
    ("Backspace", "Backspace", 8),
    ("Delete", "Delete", 46),
    ("Insert", "Insert", 45),
    ("ArrowLeft", "ArrowLeft", 37),
    ("ArrowUp", "ArrowUp", 38),
    ("ArrowRight", "ArrowRight", 39),
    ("ArrowDown", "ArrowDown", 40),
    ("Left", "ArrowLeft", 37),
    ("Up", "ArrowUp", 38),
    ("Right", "ArrowRight", 39),
    ("Down", "ArrowDown", 40),
    ("Home", "Home", 36),
    ("End", "End", 35),
    ("PageUp", "PageUp", 33),
    ("PageDown", "PageDown", 34),
    ("Space", "Space", 32),
    ("Shift", "ShiftLeft", 16),
    ("Control", "ControlLeft", 17),
    ("Alt", "AltLeft", 18),
    ("Meta", "MetaLeft", 91),
    ("CapsLock", "CapsLock", 20),
];

/// Key numbers of the first and last function key.
const F1: i64 = 112;
const F_KEYS: std::ops::RangeInclusive<i64> = 1..=12;

/// Bits of the modifiers that keep a character from being written.
const SILENT: i64 = 1 | 2 | 4;

/// The two events of a key, `Control+A` and the like included; `None`: there is no such key.
pub(super) fn press(name: &str) -> Option<[Value; 2]> {
    let (mut modifiers, mut name) = (0, name.trim_matches(|c: char| c.is_whitespace() && c != ' '));
    while let Some((modifier, rest)) = name.split_once('+').filter(|(m, rest)| !m.is_empty() && !rest.is_empty()) {
        modifiers |= match modifier.trim().to_ascii_lowercase().as_str() {
            "alt" | "option" => 1,
            "control" | "ctrl" => 2,
            "meta" | "command" | "cmd" => 4,
            "shift" => 8,
            _ => return None,
        };
        name = rest;
    }
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return Some(character(letter, modifiers));
    }
    named(name.trim(), modifiers)
}

/// The two events of a character.
pub(super) fn character(letter: char, modifiers: i64) -> [Value; 2] {
    if letter == ' ' {
        return events(" ", "Space", 32, Some(" "), modifiers);
    }
    let (code, number) = match letter {
        '0'..='9' => (format!("Digit{letter}"), i64::from(u32::from(letter))),
        'a'..='z' | 'A'..='Z' => {
            let upper = letter.to_ascii_uppercase();
            (format!("Key{upper}"), i64::from(u32::from(upper)))
        }
        _ => (String::new(), 0),
    };
    let shown = if modifiers & 8 != 0 { letter.to_ascii_uppercase() } else { letter }.to_string();
    events(&shown, &code, number, Some(&shown), modifiers)
}

fn named(name: &str, modifiers: i64) -> Option<[Value; 2]> {
    if let Some((_, code, number)) = NAMED.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name)) {
        let (key, text) = match *code {
            "Enter" => ("Enter", Some("\r")),
            "Space" => (" ", Some(" ")),
            "ShiftLeft" => ("Shift", None),
            "ControlLeft" => ("Control", None),
            "AltLeft" => ("Alt", None),
            "MetaLeft" => ("Meta", None),
            code => (code, None),
        };
        return Some(events(key, code, *number, text, modifiers));
    }
    let number: i64 = name.strip_prefix(['F', 'f'])?.parse().ok().filter(|n| F_KEYS.contains(n))?;
    let name = format!("F{number}");
    Some(events(&name, &name, F1 + number - 1, None, modifiers))
}

fn events(key: &str, code: &str, number: i64, text: Option<&str>, modifiers: i64) -> [Value; 2] {
    let up = json!({
        "type": "keyUp", "key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers,
    });
    let mut down = up.clone();
    down["type"] = "rawKeyDown".into();
    if let Some(text) = text.filter(|_| modifiers & SILENT == 0) {
        down["type"] = "keyDown".into();
        down["text"] = text.into();
        down["unmodifiedText"] = text.into();
    }
    if modifiers == 2 && number == 65 {
        down["commands"] = json!(["selectAll"]);
    }
    [down, up]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_names() {
        for (name, key, code, kind) in [
            ("a", "a", "KeyA", "keyDown"),
            ("A", "A", "KeyA", "keyDown"),
            ("7", "7", "Digit7", "keyDown"),
            ("+", "+", "", "keyDown"),
            (" ", " ", "Space", "keyDown"),
            ("enter", "Enter", "Enter", "keyDown"),
            ("ArrowDown", "ArrowDown", "ArrowDown", "rawKeyDown"),
            ("Control+a", "a", "KeyA", "rawKeyDown"),
            ("Shift+Tab", "Tab", "Tab", "rawKeyDown"),
            ("F12", "F12", "F12", "rawKeyDown"),
            ("ü", "ü", "", "keyDown"),
        ] {
            let [down, up] = press(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(
                (&down["key"], &down["code"], &down["type"]),
                (&json!(key), &json!(code), &json!(kind)),
                "{name}"
            );
            assert_eq!(up["type"], "keyUp");
        }
        for name in ["Nope", "Hyper+a", "F13", "", "Control+Nope"] {
            assert!(press(name).is_none(), "{name}");
        }
    }
}
