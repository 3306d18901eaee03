//! A page as the model reads it: its accessibility tree as text, with a reference for every element that can be used.
//!
//! ```text
//! - heading "Shop" [level=1]
//! - textbox "Search" [ref=e3]: lamp
//! - link "Next" [ref=e7] -> /list?page=2
//! ```
//!
//! The tree comes from a hostile page: depth, nodes and every text are bounded.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

/// Longest text of a page, bytes (wire 8.4 says 40,000 characters).
const MAX_TEXT: usize = 40_000;
/// Nodes looked at, and how deep.
const MAX_NODES: usize = 20_000;
const MAX_DEPTH: usize = 60;
/// Characters of one name and of one address.
const MAX_NAME: usize = 300;
const MAX_ADDRESS: usize = 150;

/// Roles that a person can use.
const USABLE: &[&str] = &[
    "link",
    "button",
    "textbox",
    "searchbox",
    "combobox",
    "listbox",
    "checkbox",
    "radio",
    "switch",
    "slider",
    "spinbutton",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "tab",
    "treeitem",
    "Date",
    "DateTime",
    "InputTime",
    "ColorWell",
    "DisclosureTriangle",
];

/// Roles that only hold others.
const TRANSPARENT: &[&str] = &[
    "none",
    "generic",
    "GenericContainer",
    "LabelText",
    "LayoutTable",
    "LayoutTableRow",
    "LayoutTableCell",
    "MenuListPopup",
];

/// The answer of `Accessibility.getFullAXTree`.
#[derive(Debug, Deserialize)]
pub(super) struct Tree {
    pub nodes: Vec<Node>,
}

impl Tree {
    /// The document's title.
    pub fn title(&self) -> String {
        let root = self.nodes.iter().find(|node| node.role() == "RootWebArea");
        root.map(|root| cut(&root.name(), MAX_NAME)).unwrap_or_default()
    }
}

/// A node of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    node_id: String,
    #[serde(default)]
    ignored: bool,
    role: Option<Word>,
    name: Option<Word>,
    value: Option<Word>,
    #[serde(default)]
    properties: Vec<Property>,
    #[serde(default)]
    child_ids: Vec<String>,
    parent_id: Option<String>,
    #[serde(rename = "backendDOMNodeId")]
    backend: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct Word {
    #[serde(default)]
    value: Value,
}

#[derive(Debug, Deserialize)]
struct Property {
    name: String,
    value: Word,
}

impl Node {
    fn role(&self) -> &str {
        self.role.as_ref().and_then(|role| role.value.as_str()).unwrap_or_default()
    }

    fn name(&self) -> String {
        self.name.as_ref().map(|name| text_of(&name.value)).unwrap_or_default()
    }

    fn property(&self, name: &str) -> Option<&Value> {
        self.properties.iter().find(|p| p.name == name).map(|p| &p.value.value)
    }

    fn is(&self, name: &str) -> bool {
        matches!(self.property(name), Some(Value::Bool(true)))
            || self.property(name).and_then(Value::as_str) == Some("true")
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => squeeze(text),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// One line, with single spaces.
fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most `most` characters, with a mark where something was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The elements that the model may name, from one document to the next.
#[derive(Debug, Default)]
pub(super) struct Refs {
    /// The document, and the numbers of its elements: the same element keeps its number.
    document: String,
    numbers: HashMap<i64, u64>,
    /// Never used twice, so that a number from an earlier document names nothing in the next.
    last: u64,
    /// The frame whose elements are being named.
    frame: String,
    /// The elements of the last snapshot, by their references.
    shown: HashMap<String, Element>,
}

/// An element that was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Element {
    /// Its number in the browser.
    pub backend: i64,
    /// The id of its frame.
    pub frame: String,
}

impl Refs {
    /// Begins a snapshot of a document.
    pub fn begin(&mut self, document: &str) {
        if self.document != document {
            document.clone_into(&mut self.document);
            self.numbers.clear();
        }
        self.shown.clear();
    }

    fn give(&mut self, backend: i64) -> String {
        let last = &mut self.last;
        let number = *self.numbers.entry(backend).or_insert_with(|| {
            *last += 1;
            *last
        });
        let name = format!("e{number}");
        self.shown.insert(name.clone(), Element { backend, frame: self.frame.clone() });
        name
    }

    /// The element that the last snapshot showed under this name, however the model writes it.
    pub fn find(&self, name: &str) -> Option<&Element> {
        let name = name.trim().trim_start_matches(['@', '[']).trim_end_matches(']');
        let name = name.strip_prefix("ref=").unwrap_or(name);
        self.shown.get(name)
    }
}

/// Writes trees into one text.
pub(super) struct Writer<'a> {
    refs: &'a mut Refs,
    /// The page's own origin, which addresses are shown without.
    origin: String,
    text: String,
    nodes: usize,
    is_cut: bool,
}

impl<'a> Writer<'a> {
    pub fn new(refs: &'a mut Refs, url: &str) -> Self {
        let origin = url::Url::parse(url).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        Self { refs, origin, text: String::new(), nodes: 0, is_cut: false }
    }

    /// Adds the tree of the document in the frame with this id; that of an inner frame, which has an address, under a
    /// heading.
    pub fn add(&mut self, tree: &Tree, frame: &str, address: Option<&str>) {
        frame.clone_into(&mut self.refs.frame);
        let depth = usize::from(address.is_some());
        if let Some(address) = address {
            let address = self.address(address);
            self.line(0, &format!("frame {address}"));
        }
        let by_id: HashMap<&str, &Node> = tree.nodes.iter().map(|node| (node.node_id.as_str(), node)).collect();
        let roots = tree.nodes.iter().filter(|node| node.parent_id.as_deref().is_none_or(|p| !by_id.contains_key(p)));
        for root in roots {
            self.node(root, &by_id, depth, 0, "");
        }
    }

    /// The text.
    pub fn finish(mut self) -> String {
        if self.is_cut {
            self.text.push_str("[cut: the page goes on; `extract` reads a part of it]\n");
        }
        self.text
    }

    fn node(&mut self, node: &Node, by_id: &HashMap<&str, &Node>, indent: usize, depth: usize, parent: &str) {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES || self.text.len() > MAX_TEXT {
            self.is_cut = true;
            return;
        }
        let role = node.role();
        if matches!(role, "InlineTextBox" | "LineBreak" | "ListMarker") {
            return;
        }
        if role == "StaticText" && !node.ignored {
            let text = node.name();
            // An element that is named by its text has said it already.
            if !text.is_empty() && !parent.contains(&text) {
                self.line(indent, &format!("text: {}", cut(&text, MAX_NAME)));
            }
            return;
        }
        let is_root = matches!(role, "RootWebArea" | "WebArea");
        let name = node.name();
        let is_usable = USABLE.contains(&role) || (node.is("focusable") && !is_root && role != "Iframe");
        let says_nothing = TRANSPARENT.contains(&role) && name.is_empty() && !is_usable;
        let children = |this: &mut Self, indent: usize, parent: &str| {
            for child in node.child_ids.iter().filter_map(|id| by_id.get(id.as_str())) {
                this.node(child, by_id, indent, depth + 1, parent);
            }
        };
        if node.ignored || is_root || says_nothing {
            return children(self, indent, if is_root { "" } else { parent });
        }
        let line = self.describe(node, role, &name, is_usable);
        self.line(indent, &line);
        // What is inside a field is its value.
        if !matches!(role, "textbox" | "searchbox" | "Date" | "DateTime" | "InputTime" | "ColorWell") {
            children(self, indent + 1, &name);
        }
    }

    fn describe(&mut self, node: &Node, role: &str, name: &str, is_usable: bool) -> String {
        let mut line = role.to_owned();
        if !name.is_empty() {
            let _ = write!(line, " \"{}\"", cut(name, MAX_NAME));
        }
        for state in ["checked", "pressed", "selected", "expanded", "disabled", "required", "readonly", "focused"] {
            match node.property(state) {
                Some(Value::Bool(true)) => _ = write!(line, " [{state}]"),
                Some(Value::Bool(false)) if state == "expanded" => line.push_str(" [collapsed]"),
                Some(Value::String(text)) if text == "true" => _ = write!(line, " [{state}]"),
                Some(Value::String(text)) if text == "mixed" => _ = write!(line, " [{state}=mixed]"),
                _ => {}
            }
        }
        if let Some(level) = node.property("level").and_then(Value::as_i64) {
            let _ = write!(line, " [level={level}]");
        }
        if is_usable && let Some(backend) = node.backend {
            let _ = write!(line, " [ref={}]", self.refs.give(backend));
        }
        if let Some(url) = node.property("url").and_then(Value::as_str) {
            let _ = write!(line, " -> {}", self.address(url));
        }
        let value = node.value.as_ref().map(|value| text_of(&value.value)).filter(|value| !value.is_empty());
        if let Some(value) = value {
            let _ = write!(line, ": {}", cut(&value, MAX_NAME));
        }
        line
    }

    fn address(&self, url: &str) -> String {
        let own = (!self.origin.is_empty()).then(|| url.strip_prefix(&self.origin)).flatten();
        cut(own.filter(|rest| rest.starts_with('/')).unwrap_or(url), MAX_ADDRESS)
    }

    fn line(&mut self, indent: usize, line: &str) {
        if self.text.len() + line.len() > MAX_TEXT {
            self.is_cut = true;
            return;
        }
        for _ in 0..indent.min(20) {
            self.text.push_str("  ");
        }
        self.text.push_str("- ");
        self.text.push_str(line);
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::json;

    use super::*;

    fn node(id: u32, role: &str, name: &str, children: &[u32]) -> Value {
        json!({"nodeId": id.to_string(), "role": {"value": role}, "name": {"value": name}, "backendDOMNodeId": id,
            "childIds": children.iter().map(u32::to_string).collect::<Vec<_>>()})
    }

    fn written(refs: &mut Refs, mut nodes: Vec<Value>) -> String {
        // As the browser does, each names its parent too.
        let children = |n: &Value| n["childIds"].as_array().unwrap().clone();
        let parents: HashMap<String, Value> = nodes
            .iter()
            .flat_map(|n| children(n).into_iter().map(|child| (child.to_string(), n["nodeId"].clone())))
            .collect();
        for n in &mut nodes {
            if let Some(parent) = parents.get(&n["nodeId"].to_string()) {
                n["parentId"] = parent.clone();
            }
        }
        let tree: Tree = serde_json::from_value(json!({ "nodes": nodes })).unwrap();
        refs.begin("doc");
        let mut writer = Writer::new(refs, "http://site.test/list");
        writer.add(&tree, "frame", None);
        writer.finish()
    }

    #[test]
    fn a_page_is_lines_with_references_for_what_can_be_used() {
        let mut link = node(5, "link", "Next  page", &[6]);
        link["properties"] = json!([{"name": "url", "value": {"value": "http://site.test/list?page=2"}}]);
        let mut box_ = node(7, "textbox", "Search", &[]);
        box_["value"] = json!({"value": "lamp"});
        box_["properties"] = json!([{"name": "required", "value": {"value": true}}]);
        let nodes = vec![
            node(1, "RootWebArea", "Shop", &[2, 3]),
            node(2, "heading", "Shop", &[8]),
            node(8, "StaticText", "Shop", &[]),
            node(3, "generic", "", &[4, 5, 7]),
            node(4, "StaticText", "Lamps", &[]),
            link,
            node(6, "StaticText", "Next page", &[]),
            box_,
        ];
        let mut refs = Refs::default();
        let text = written(&mut refs, nodes);
        let expected = "- heading \"Shop\"\n- text: Lamps\n- link \"Next page\" [ref=e1] -> /list?page=2\n\
            - textbox \"Search\" [required] [ref=e2]: lamp\n";
        assert_eq!(text, expected);
        for name in ["e1", "@e1", "[ref=e1]", "ref=e1", " e1 "] {
            assert_eq!(refs.find(name).map(|e| (e.backend, e.frame.as_str())), Some((5, "frame")), "{name}");
        }
        let found = |name| refs.find(name).map(|element| element.backend);
        assert_eq!((found("e2"), found("e3"), found("")), (Some(7), None, None));
    }

    #[test]
    fn an_element_keeps_its_number_in_its_document_and_no_number_comes_twice() {
        let mut refs = Refs::default();
        let page = |id| vec![node(1, "RootWebArea", "", &[id]), node(id, "button", "Go", &[])];
        assert!(written(&mut refs, page(4)).contains("[ref=e1]"));
        assert!(written(&mut refs, page(9)).contains("[ref=e2]"));
        assert_eq!(refs.find("e1"), None, "it is not shown any more");
        assert!(written(&mut refs, page(4)).contains("[ref=e1]"));
        refs.begin("another");
        refs.give(4);
        assert_eq!((refs.find("e1"), refs.find("e3").map(|element| element.backend)), (None, Some(4)));
    }

    #[test]
    fn a_page_without_end_is_cut() {
        let ids: Vec<u32> = (2..30_000).collect();
        let mut nodes = vec![node(1, "RootWebArea", "", &ids)];
        nodes.extend(ids.iter().map(|id| node(*id, "button", &"x".repeat(400), &[])));
        let text = written(&mut Refs::default(), nodes);
        assert!(text.len() < MAX_TEXT + 200 && text.contains("[cut: "), "{}", text.len());
        let deep: Vec<Value> = (1..5_000).map(|id| node(id, "list", "a", &[id + 1])).collect();
        assert!(written(&mut Refs::default(), deep).contains("[cut: "));
    }
}
