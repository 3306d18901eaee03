//! What is done on a page before it is read (wire 3.6): the actions of a request after validation.
//!
//! The wire form is parsed in [`super::scrape_request`]. What is kept of it has the same shape, so a job's options show
//! its actions as they were given.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::screenshot::Screenshot;

/// One step on the page. They are carried out in the order given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Action {
    Wait(Wait),
    /// A real click in the middle of the element that matches first, or of each that matches.
    Click {
        /// CSS selector, 1 to 1,000 characters.
        selector: String,
        all: bool,
    },
    Screenshot(Screenshot),
    /// Text into the element that has the focus.
    Write {
        /// At most 100,000 characters.
        text: String,
    },
    /// One key: a character, or a name such as `Enter`; modifiers stand before it (`Control+A`).
    Press {
        key: String,
    },
    /// By the height of what is seen.
    Scroll {
        direction: Direction,
        /// What is scrolled, if it is not the page.
        #[serde(skip_serializing_if = "Option::is_none")]
        selector: Option<String>,
    },
    /// The page's HTML as it is now.
    Scrape,
    ExecuteJavascript {
        /// At most 100,000 characters.
        script: String,
    },
    Pdf(Pdf),
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Wait {
    /// At most 60,000, with `waitFor` and every other wait.
    Time { milliseconds: u32 },
    /// Until something on the page matches.
    Element { selector: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Up,
    Down,
}

/// The page printed to a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pdf {
    pub format: Paper,
    pub landscape: bool,
    /// Of the page on the paper, 0.1 to 2.
    pub scale: f64,
}

/// A size of paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Paper {
    A0,
    A1,
    A2,
    A3,
    A4,
    A5,
    A6,
    Letter,
    Legal,
    Tabloid,
    Ledger,
}

impl Paper {
    /// Every name on the wire, with what it stands for.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("A0", Self::A0),
        ("A1", Self::A1),
        ("A2", Self::A2),
        ("A3", Self::A3),
        ("A4", Self::A4),
        ("A5", Self::A5),
        ("A6", Self::A6),
        ("Letter", Self::Letter),
        ("Legal", Self::Legal),
        ("Tabloid", Self::Tabloid),
        ("Ledger", Self::Ledger),
    ];

    /// Width and height, inches.
    pub const fn inches(self) -> (f64, f64) {
        match self {
            Self::A0 => (33.11, 46.81),
            Self::A1 => (23.39, 33.11),
            Self::A2 => (16.54, 23.39),
            Self::A3 => (11.69, 16.54),
            Self::A4 => (8.27, 11.69),
            Self::A5 => (5.83, 8.27),
            Self::A6 => (4.13, 5.83),
            Self::Letter => (8.5, 11.0),
            Self::Legal => (8.5, 14.0),
            Self::Tabloid => (11.0, 17.0),
            Self::Ledger => (17.0, 11.0),
        }
    }
}

impl Action {
    /// Its `type` on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Wait(_) => "wait",
            Self::Click { .. } => "click",
            Self::Screenshot(_) => "screenshot",
            Self::Write { .. } => "write",
            Self::Press { .. } => "press",
            Self::Scroll { .. } => "scroll",
            Self::Scrape => "scrape",
            Self::ExecuteJavascript { .. } => "executeJavascript",
            Self::Pdf(_) => "pdf",
        }
    }

    /// Whether its result shows pictures of the page.
    pub const fn shows_pictures(&self) -> bool {
        matches!(self, Self::Screenshot(_) | Self::Pdf(_))
    }

    /// Whether it is carried out again for the session that continues its scrape (wire 8.4). Pictures, files and copies of
    /// the page are not wanted again, and a script may do anything a second time.
    pub const fn is_replayed(&self) -> bool {
        !matches!(self, Self::Screenshot(_) | Self::Scrape | Self::Pdf(_) | Self::ExecuteJavascript { .. })
    }

    /// Whether it is, and may do something to the page or its site.
    pub const fn acts_again(&self) -> bool {
        self.is_replayed() && !matches!(self, Self::Wait(_))
    }

    /// Whether it may have an effect on the site that a second time would double, which a look at the page has not.
    pub const fn may_have_effect(&self) -> bool {
        !matches!(self, Self::Wait(_) | Self::Scroll { .. } | Self::Screenshot(_) | Self::Scrape | Self::Pdf(_))
    }
}

/// What actions brought, each list in the order of execution (wire 3.6). All four are there, also when empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionResults {
    /// Data URIs.
    pub screenshots: Vec<String>,
    pub scrapes: Vec<Scraped>,
    pub javascript_returns: Vec<Returned>,
    /// Data URIs.
    pub pdfs: Vec<String>,
}

/// The page in the middle of its actions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scraped {
    pub url: String,
    pub html: String,
}

/// What a script had as its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Returned {
    /// What JavaScript's `typeof` says.
    pub r#type: String,
    /// The value as JSON; what JSON does not have (functions, cycles) as text.
    pub value: serde_json::Value,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    #[test]
    fn actions_are_kept_in_the_shape_they_were_given() {
        for (action, wire) in [
            (Action::Wait(Wait::Time { milliseconds: 5 }), json!({"type": "wait", "milliseconds": 5})),
            (Action::Wait(Wait::Element { selector: "p".into() }), json!({"type": "wait", "selector": "p"})),
            (Action::Click { selector: "a".into(), all: true }, json!({"type": "click", "selector": "a", "all": true})),
            (Action::Scroll { direction: Direction::Up, selector: None }, json!({"type": "scroll", "direction": "up"})),
            (Action::Scrape, json!({"type": "scrape"})),
            (Action::ExecuteJavascript { script: "1".into() }, json!({"type": "executeJavascript", "script": "1"})),
            (
                Action::Pdf(Pdf { format: Paper::A4, landscape: true, scale: 0.5 }),
                json!({"type": "pdf", "format": "A4", "landscape": true, "scale": 0.5}),
            ),
        ] {
            assert_eq!(serde_json::to_value(&action).unwrap(), wire);
            assert_eq!(serde_json::from_value::<Action>(wire.clone()).unwrap(), action);
            assert_eq!(wire["type"], action.name());
        }
    }
}
