//! Which keys the readers of bodies ask for, recorded while somebody wants to know: the schema of a body is learned from
//! it.

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::Value;

/// Names by the path of their object.
pub(super) type Asked = HashMap<Vec<Value>, Vec<&'static str>>;

thread_local! {
    /// What the readers of this thread have asked for since [`recording`] began; `None`: nobody wants to know.
    static ASKED: RefCell<Option<Asked>> = const { RefCell::new(None) };
}

/// Runs a reader, and tells which keys it asked for.
pub(super) fn recording<T>(read: impl FnOnce() -> T) -> (T, Asked) {
    ASKED.set(Some(Asked::new()));
    let outcome = read();
    (outcome, ASKED.take().unwrap_or_default())
}

/// Which keys of the body itself a reader asks for, in the order of the alphabet.
#[cfg(test)]
pub(super) fn fields_of<T>(read: impl FnOnce() -> T) -> std::collections::BTreeSet<&'static str> {
    recording(read).1.remove(&Vec::new()).into_iter().flatten().collect()
}

/// A reader asks for the key `name` of the object at `path`.
pub(super) fn note(path: &[Value], name: &'static str) {
    ASKED.with_borrow_mut(|asked| {
        if let Some(asked) = asked {
            let names = asked.entry(path.to_vec()).or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    });
}
