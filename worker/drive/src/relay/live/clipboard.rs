//! Copying what is selected on the page. No IO.
//!
//! The selection is read after every input before the copy and before any input behind it, as in a browser at hand:
//! select all, copy, cut and type may follow each other faster than a page answers.

use std::collections::VecDeque;

use super::input::Order;

/// An expression for what is selected. A password is not told.
pub const SELECTED: &str = "(() => { const a = document.activeElement; \
    return a && typeof a.selectionStart === 'number' && a.type !== 'password' \
        ? a.value.slice(a.selectionStart, a.selectionEnd) : String(getSelection()); })()";

/// Orders that wait for a copy; further ones are dropped.
const HELD: usize = 512;

/// Orders of viewers, each with the viewer's number, the oldest first.
pub type Held = VecDeque<(u64, Order)>;

/// The copy at work, if there is one.
#[derive(Default)]
pub struct Clipboard {
    copying: Option<Copying>,
}

struct Copying {
    viewer: u64,
    is_asked: bool,
    /// Orders of viewers that came while the copy was under way.
    held: Held,
}

impl Clipboard {
    /// A copy is at work: input and further copies wait for it.
    pub fn is_busy(&self) -> bool {
        self.copying.is_some()
    }

    /// Begins a copy for a viewer.
    pub fn begin(&mut self, viewer: u64) {
        self.copying = Some(Copying { viewer, is_asked: false, held: Held::new() });
    }

    /// Keeps an order until the copy at work has ended. Beyond a bound, and where that does no harm, it is dropped.
    pub fn hold(&mut self, viewer: u64, order: Order) {
        if let Some(copying) = &mut self.copying
            && copying.held.len() < HELD
            && !order.is_passing()
        {
            copying.held.push_back((viewer, order));
        }
    }

    /// The viewer for whom the selection is to be read now: nothing of the `inputs` before the copy is on its way any
    /// more. Told once for each copy.
    pub fn ask(&mut self, inputs: usize) -> Option<u64> {
        let copying = self.copying.as_mut().filter(|copying| inputs == 0 && !copying.is_asked)?;
        copying.is_asked = true;
        Some(copying.viewer)
    }

    /// Ends the copy; what waited for it.
    pub fn end(&mut self) -> Held {
        self.copying.take().map(|copying| copying.held).unwrap_or_default()
    }

    /// Has the rest of what waited for the last copy wait for the one at work. Leaves it where there is none.
    pub fn hold_rest(&mut self, rest: &mut Held) {
        if let Some(copying) = &mut self.copying {
            copying.held.append(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Order {
        Order::Text { text: text.to_owned() }
    }

    #[test]
    fn a_copy_waits_for_what_was_typed_before_and_holds_what_comes_after() {
        let mut clipboard = Clipboard::default();
        clipboard.begin(7);
        assert_eq!(clipboard.ask(2), None, "inputs are on their way");
        assert_eq!(clipboard.ask(0), Some(7));
        assert_eq!(clipboard.ask(0), None, "asked once");
        clipboard.hold(7, text("a"));
        clipboard.hold(8, Order::Copy);
        clipboard.hold(7, text("b"));
        let mut rest = clipboard.end();
        assert!(!clipboard.is_busy());
        assert_eq!(rest.pop_front(), Some((7, text("a"))));
        assert_eq!(rest.pop_front(), Some((8, Order::Copy)));
        clipboard.begin(8);
        clipboard.hold_rest(&mut rest);
        assert!(rest.is_empty());
        assert_eq!(clipboard.end(), [(7, text("b"))]);
    }

    #[test]
    fn what_waits_for_a_copy_is_bounded() {
        let mut clipboard = Clipboard::default();
        clipboard.begin(1);
        for _ in 0..2 * HELD {
            clipboard.hold(1, text("x"));
        }
        assert_eq!(clipboard.end().len(), HELD);
    }
}
