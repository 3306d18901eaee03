//! Which keys the readers of bodies ask for, recorded while somebody wants to know: the schema of a body is learned from
//! it.

use std::cell::RefCell;

use serde_json::Value;

/// Who wants to know.
struct Asked {
    /// Path of the object whose keys are recorded.
    path: Vec<Value>,
    /// `None`: no object was read there.
    names: Option<Vec<&'static str>>,
}

thread_local! {
    /// What the reader of this thread has asked for since [`recording`] began; `None`: nobody wants to know.
    static ASKED: RefCell<Option<Asked>> = const { RefCell::new(None) };
}

/// Runs a reader, and tells which keys it asked the object at `path` for; `None`: it read no object there.
pub(super) fn recording<T>(path: &[Value], read: impl FnOnce() -> T) -> (T, Option<Vec<&'static str>>) {
    ASKED.set(Some(Asked { path: path.to_vec(), names: None }));
    let outcome = read();
    (outcome, ASKED.take().and_then(|asked| asked.names))
}

/// Which keys of the body itself a reader asks for, in the order of the alphabet.
#[cfg(test)]
pub(super) fn fields_of<T>(read: impl FnOnce() -> T) -> std::collections::BTreeSet<&'static str> {
    recording(&[], read).1.into_iter().flatten().collect()
}

/// A reader asks for the key `name` of the object at `path`.
pub(super) fn note(path: &[Value], name: &'static str) {
    ASKED.with_borrow_mut(|asked| {
        if let Some(asked) = asked.as_mut().filter(|asked| asked.path == path) {
            let names = asked.names.get_or_insert_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    });
}
