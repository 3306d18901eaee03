//! Statements are put together from parts when the crate is compiled, so that each is one text that the drivers keep
//! prepared.

/// The text of several parts, each a constant: literals, constants, and words of states.
macro_rules! sql {
    ($($part:expr),+ $(,)?) => {{
        const PARTS: &[&str] = &[$($part),+];
        const LENGTH: usize = $crate::store::db::sql::length(PARTS);
        const BYTES: [u8; LENGTH] = $crate::store::db::sql::join(PARTS);
        const TEXT: &str = match ::std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("parts are texts"),
        };
        TEXT
    }};
}
pub(crate) use sql;

/// Bytes of all parts, for `sql!`.
pub(crate) const fn length(parts: &[&str]) -> usize {
    let (mut sum, mut part) = (0, 0);
    while part < parts.len() {
        sum += parts[part].len();
        part += 1;
    }
    sum
}

/// The parts one after the other, for `sql!`.
pub(crate) const fn join<const LENGTH: usize>(parts: &[&str]) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let text = parts[part].as_bytes();
        let mut byte = 0;
        while byte < text.len() {
            bytes[at] = text[byte];
            at += 1;
            byte += 1;
        }
        part += 1;
    }
    bytes
}

/// One value of each row: Postgres takes rows as arrays, one for each column, so that a statement is the same for any number
/// of them.
pub(crate) fn column<'a, R, V>(rows: &'a [R], value: impl Fn(&'a R) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}
