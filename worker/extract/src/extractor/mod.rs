//! Extractors: what is to be read out of the pages of one template, as data in a small form that somebody else writes.
//!
//! ```text
//! form    JSON to an [`Extractor`]: what is no such form, or could cost too much, is refused with the place
//! steps   what becomes of a text: a closed set of transformations
//! apply   an extractor on a page: values, and the marks of where they stood
//! ```
//!
//! A form holds selectors, names of transformations and short literals, and no code. Whoever wrote it, and whatever page it
//! meets, applying it takes bounded time and memory. It stands alone as the rest of the crate does.
//!
//! ```json
//! {"fields": {
//!   "name":  {"select": "h1"},
//!   "price": {"select": ".price", "steps": [{"match": "[0-9.,]+"}, {"number": ","}]},
//!   "image": {"select": "img.main", "take": {"attribute": "src"}, "steps": ["url"]},
//!   "rows":  {"each": "table.specs tr", "item": {"fields": {"label": {"select": "th"}, "value": {"select": "td"}}}}
//! }}
//! ```

mod apply;
mod form;
mod steps;
#[cfg(test)]
mod tests;

use scraper::Selector;
use serde_json::Value;

pub use self::apply::{Applied, Mark, TooMuch};
use self::steps::Step;

/// What is to be read out of pages of one template.
#[derive(Debug)]
pub struct Extractor {
    root: Node,
}

/// What values an extractor makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    Object(Vec<(String, Shape)>),
    List(Box<Shape>),
    Text,
    Number,
    Integer,
    Boolean,
    /// One of several, by a map.
    Any,
}

#[derive(Debug)]
enum Node {
    /// An object with these fields, read inside of an element, or of where the node stands.
    Object {
        within: Option<Selector>,
        fields: Vec<(String, Node)>,
    },
    /// An item for each element.
    List {
        each: Selector,
        item: Box<Node>,
    },
    Leaf(Leaf),
}

/// One value.
#[derive(Debug)]
struct Leaf {
    /// `None`: the element where the node stands.
    select: Option<Selector>,
    /// Which of the matching elements: 0 is the first one, -1 the last one.
    at: i64,
    take: Take,
    steps: Vec<Step>,
    /// Where nothing was found.
    default: Value,
}

/// What is taken of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Take {
    /// Its text with single spaces.
    Text,
    /// Its own text, without that of elements inside.
    Own,
    /// What is inside of it as cleaned HTML.
    Html,
    /// The same as markdown.
    Markdown,
    /// Whether it is there.
    Exists,
    /// An attribute, by lower-case name.
    Attribute(String),
}

impl Extractor {
    /// Reads a form.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it, and where.
    pub fn new(form: &Value) -> Result<Self, String> {
        form::read(form).map(|root| Self { root })
    }

    /// What values it makes.
    pub fn shape(&self) -> Shape {
        self.root.shape()
    }
}

impl Node {
    fn shape(&self) -> Shape {
        match self {
            Self::Object { fields, .. } => {
                Shape::Object(fields.iter().map(|(name, node)| (name.clone(), node.shape())).collect())
            }
            Self::List { item, .. } => Shape::List(Box::new(item.shape())),
            Self::Leaf(leaf) if leaf.take == Take::Exists => steps::shape(&leaf.steps, Shape::Boolean),
            Self::Leaf(leaf) => steps::shape(&leaf.steps, Shape::Text),
        }
    }
}
