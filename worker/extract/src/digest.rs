//! A number for a text, to tell texts apart cheaply (FNV-1a). A page can be written so that two of its texts have the same
//! one; it loses one of them by that, and nothing of others.

/// That of no text.
pub const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// With one more byte or character.
pub fn add(digest: u64, part: impl Into<u64>) -> u64 {
    (digest ^ part.into()).wrapping_mul(0x0100_0000_01b3)
}

/// With a text's bytes but for spaces: the same words give the same, however they are set apart.
pub fn add_words(digest: u64, text: &str) -> u64 {
    text.bytes().filter(|byte| *byte > b' ').fold(digest, add)
}
