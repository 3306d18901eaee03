//! Rows of a list in statements of a few sizes.

/// Parts of a few sizes: each number of rows is a statement of its own, and those of these sizes stay prepared.
pub(in crate::store) fn parts<T>(mut rest: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = [16, 8, 4, 2, 1].into_iter().find(|size| *size <= rest.len())?;
        let part;
        (part, rest) = rest.split_at(size);
        Some(part)
    })
}
