//! Which tabs there are and which one the viewers see. No IO.
//!
//! The view follows the work: a new tab is shown when it opens, and a tab whose address changes is where something
//! happens. A viewer who picked a tab stays on it until a new one opens or it closes.

use serde::Serialize;

/// Tabs told to viewers; a page can open any number.
const SHOWN: usize = 50;
/// Longest title and address told to viewers, characters: a data URL is a whole page.
const TITLE: usize = 200;
const ADDRESS: usize = 2_000;

/// A page of the browser, in whatever context it was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tab {
    pub id: String,
    pub title: String,
    pub url: String,
}

/// All tabs, oldest first.
#[derive(Debug, Default)]
pub struct Tabs {
    tabs: Vec<Tab>,
    /// Those that were shown, the current one last.
    shown: Vec<String>,
    is_picked: bool,
    /// The last change of what is shown can wait: nobody opened, closed or picked a tab.
    can_wait: bool,
}

impl Tabs {
    /// A tab appeared and is shown, unless it is one that was there before anybody watched.
    pub fn created(&mut self, id: &str, title: &str, url: &str, is_new: bool) {
        if self.tabs.iter().any(|tab| tab.id == id) {
            return;
        }
        self.tabs.push(Tab { id: id.to_owned(), title: cut(title, TITLE), url: cut(url, ADDRESS) });
        if is_new {
            self.is_picked = false;
            self.show(id);
        }
    }

    /// A tab has another title or address now. Returns whether anything that viewers see changed.
    pub fn changed(&mut self, id: &str, title: &str, url: &str) -> bool {
        let Some(tab) = self.tabs.iter_mut().find(|tab| tab.id == id) else { return false };
        let (title, url) = (cut(title, TITLE), cut(url, ADDRESS));
        let moved = tab.url != url;
        let differs = moved || tab.title != title;
        (tab.title, tab.url) = (title, url);
        if moved && !self.is_picked && self.active() != Some(id) {
            self.show(id);
            self.can_wait = true;
        }
        differs
    }

    /// A tab is gone; if it was shown, the one shown before it is again.
    pub fn destroyed(&mut self, id: &str) {
        self.tabs.retain(|tab| tab.id != id);
        let was_active = self.active() == Some(id);
        self.shown.retain(|shown| shown != id);
        if was_active {
            self.is_picked = false;
            if self.shown.is_empty()
                && let Some(last) = self.tabs.last()
            {
                self.shown.push(last.id.clone());
            }
        }
    }

    /// A viewer wants to see this one. `false`: there is none.
    pub fn pick(&mut self, id: &str) -> bool {
        let known = self.contains(id);
        if known {
            self.show(id);
            self.is_picked = true;
        }
        known
    }

    /// The browser shows this one in front.
    pub fn show(&mut self, id: &str) {
        if self.contains(id) {
            self.shown.retain(|shown| shown != id);
            self.shown.push(id.to_owned());
            self.can_wait = false;
        }
    }

    pub fn contains(&self, id: &str) -> bool {
        self.tabs.iter().any(|tab| tab.id == id)
    }

    /// The tab that viewers see.
    pub fn active(&self) -> Option<&str> {
        self.shown.last().map(String::as_str)
    }

    /// Whether the view may stay a moment longer where it is, because it only follows the work.
    pub fn can_wait(&self) -> bool {
        self.can_wait
    }

    pub fn len(&self) -> usize {
        self.tabs.len()
    }

    /// Newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &Tab> {
        self.tabs.iter().rev()
    }

    /// What viewers are told: the first tabs and always the one on show.
    pub fn told(&self, active: Option<&str>) -> Vec<&Tab> {
        let mut told: Vec<&Tab> = self.tabs.iter().take(SHOWN).collect();
        if let Some(tab) = self.tabs.iter().skip(SHOWN).find(|tab| Some(tab.id.as_str()) == active) {
            told.push(tab);
        }
        told
    }
}

fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Tabs {
        let mut tabs = Tabs::default();
        tabs.created("a", "A", "http://a/", false);
        tabs.created("b", "B", "http://b/", true);
        tabs.created("c", "C", "http://c/", true);
        tabs
    }

    #[test]
    fn a_new_tab_is_shown_and_its_end_shows_the_one_before() {
        let mut tabs = three();
        assert_eq!(tabs.active(), Some("c"));
        tabs.destroyed("c");
        assert_eq!(tabs.active(), Some("b"));
        tabs.destroyed("b");
        assert_eq!(tabs.active(), Some("a"));
        tabs.destroyed("a");
        assert_eq!(tabs.active(), None);
    }

    #[test]
    fn the_view_follows_the_work_unless_a_viewer_picked_a_tab() {
        let mut tabs = three();
        assert!(tabs.changed("a", "A", "http://a/2"));
        assert!(tabs.active() == Some("a") && tabs.can_wait());
        assert!(tabs.changed("b", "other title", "http://b/") && tabs.active() == Some("a"));
        assert!(tabs.pick("b") && !tabs.pick("nothing"));
        tabs.changed("c", "C", "http://c/2");
        assert_eq!(tabs.active(), Some("b"));
        tabs.created("d", "D", "about:blank", true);
        assert!(tabs.active() == Some("d") && !tabs.can_wait());
    }

    #[test]
    fn viewers_are_told_a_bounded_list() {
        let mut tabs = Tabs::default();
        for number in 0..200 {
            tabs.created(&number.to_string(), &"t".repeat(10_000), &format!("data:,{}", "x".repeat(10_000)), true);
        }
        let told = tabs.told(tabs.active());
        assert_eq!(told.len(), SHOWN + 1);
        assert!(told.iter().any(|tab| tab.id == "199"));
        assert!(told.iter().all(|tab| tab.title.len() <= TITLE && tab.url.len() <= ADDRESS));
    }
}
