//! The page as one compact tree, in document order.
//!
//! html5ever builds into a linked arena; [`Dom`] is that arena laid out in pre-order, so that a subtree is the index
//! range `i..end(i)` and every later stage is a loop over indices. Nothing here may recurse: depth comes from the page.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::{Attribute, LocalName, QualName, local_name, ns};

pub mod streamed;

/// No node: the end of a sibling or child chain.
const NONE: u32 = u32::MAX;

macro_rules! tags {
    ($($variant:ident = $name:tt),* $(,)?) => {
        /// What a node is: an HTML element known by name, text, or something else.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Tag {
            /// The document itself, always node 0.
            Document,
            /// Character data.
            Text,
            /// A comment, doctype or processing instruction.
            Comment,
            /// An HTML element without a meaning of its own here, custom elements among them.
            Other,
            /// An element of SVG or MathML below the `svg` or `math` element.
            Foreign,
            /// The `svg` element.
            Svg,
            /// The `math` element.
            Math,
            $(
                #[doc = concat!("`", $name, "`")]
                $variant,
            )*
        }

        impl Tag {
            fn of(name: &QualName) -> Self {
                if name.ns == ns!(html) {
                    match name.local {
                        $(local_name!($name) => Tag::$variant,)*
                        _ => Tag::Other,
                    }
                } else if name.local == local_name!("svg") {
                    Tag::Svg
                } else if name.local == local_name!("math") {
                    Tag::Math
                } else {
                    Tag::Foreign
                }
            }
        }
    };
}

tags! {
    A = "a", Abbr = "abbr", Address = "address", Area = "area", Article = "article", Aside = "aside", Audio = "audio",
    B = "b", Base = "base", Blockquote = "blockquote", Body = "body", Br = "br", Button = "button",
    Canvas = "canvas", Caption = "caption", Center = "center", Cite = "cite", Code = "code", Col = "col",
    Colgroup = "colgroup", Datalist = "datalist", Dd = "dd", Del = "del", Details = "details", Dialog = "dialog", Div = "div", Dl = "dl",
    Dt = "dt", Em = "em", Embed = "embed", Fieldset = "fieldset", Figcaption = "figcaption", Figure = "figure",
    Font = "font", Footer = "footer", Form = "form", Frame = "frame", Frameset = "frameset",
    H1 = "h1", H2 = "h2", H3 = "h3", H4 = "h4", H5 = "h5", H6 = "h6", Head = "head", Header = "header",
    Hgroup = "hgroup", Hr = "hr", Html = "html", I = "i", Iframe = "iframe", Img = "img", Input = "input", Ins = "ins",
    Kbd = "kbd", Label = "label", Legend = "legend", Li = "li", Link = "link", Main = "main", Map = "map",
    Mark = "mark", Menu = "menu", Meta = "meta", Nav = "nav", Noembed = "noembed", Noframes = "noframes", Noscript = "noscript",
    Object = "object", Ol = "ol", Optgroup = "optgroup", Option = "option", P = "p", Picture = "picture", Pre = "pre",
    Q = "q", Rp = "rp", Rt = "rt", Ruby = "ruby", S = "s", Samp = "samp", Script = "script", Search = "search",
    Section = "section", Select = "select", Small = "small", Source = "source", Span = "span", Strike = "strike",
    Strong = "strong", Style = "style", Sub = "sub", Summary = "summary", Sup = "sup", Table = "table",
    Tbody = "tbody", Td = "td", Template = "template", Textarea = "textarea", Tfoot = "tfoot", Th = "th",
    Thead = "thead", Time = "time", Title = "title", Tr = "tr", Track = "track", Tt = "tt", U = "u", Ul = "ul",
    Var = "var", Video = "video", Wbr = "wbr",
}

impl Tag {
    /// Whether the element starts a block of its own (rather than running in a line of text).
    pub fn is_block(self) -> bool {
        use Tag::*;
        matches!(
            self,
            Address
                | Article
                | Aside
                | Blockquote
                | Body
                | Caption
                | Center
                | Dd
                | Details
                | Dialog
                | Div
                | Dl
                | Dt
                | Fieldset
                | Figcaption
                | Figure
                | Footer
                | Form
                | H1
                | H2
                | H3
                | H4
                | H5
                | H6
                | Header
                | Hgroup
                | Hr
                | Html
                | Legend
                | Li
                | Main
                | Menu
                | Nav
                | Ol
                | Optgroup
                | Option
                | P
                | Pre
                | Search
                | Section
                | Summary
                | Table
                | Tbody
                | Td
                | Tfoot
                | Th
                | Thead
                | Tr
                | Ul
                | Noscript
                | Document
        )
    }

    /// Whether the text of the element is none of the page's, whatever its attributes: no browser shows it, or as a choice or
    /// a drawing only.
    pub fn is_never_shown(self) -> bool {
        use Tag::*;
        matches!(
            self,
            Style
                | Template
                | Head
                | Title
                | Svg
                | Iframe
                | Canvas
                | Audio
                | Video
                | Select
                | Datalist
                | Textarea
                | Noembed
                | Noframes
        )
    }

    /// Heading level 1 to 6.
    pub fn heading_level(self) -> Option<u8> {
        match self {
            Tag::H1 => Some(1),
            Tag::H2 => Some(2),
            Tag::H3 => Some(3),
            Tag::H4 => Some(4),
            Tag::H5 => Some(5),
            Tag::H6 => Some(6),
            _ => None,
        }
    }

    /// Whether the element is an HTML, SVG or MathML element at all.
    pub fn is_element(self) -> bool {
        !matches!(self, Tag::Document | Tag::Text | Tag::Comment)
    }
}

/// Name and attributes of an element.
#[derive(Debug)]
pub struct Element {
    /// Qualified name as parsed.
    pub name: QualName,
    /// Attributes in source order, names lower-cased, no duplicates.
    pub attrs: Vec<Attribute>,
}

#[derive(Debug)]
enum Data {
    Document,
    Element(Element),
    Text(StrTendril),
    Comment,
}

#[derive(Debug)]
struct Raw {
    parent: u32,
    first: u32,
    last: u32,
    prev: u32,
    next: u32,
    depth: u32,
    /// Root of a template's contents; `NONE` for everything else.
    contents: u32,
    /// A template whose contents are part of the page.
    is_shown: bool,
    data: Data,
}

/// The tree builder's target. Kept apart from [`Dom`]: its links make moving nodes cheap while parsing.
#[derive(Debug)]
pub struct Sink {
    nodes: RefCell<Vec<Raw>>,
    depth: Cell<u32>,
}

impl Sink {
    /// An empty document with room for about `nodes` nodes.
    pub fn with_capacity(nodes: usize) -> Self {
        let sink = Sink { nodes: RefCell::new(Vec::with_capacity(nodes)), depth: Cell::new(0) };
        sink.push(Data::Document);
        sink
    }

    /// Nodes made so far, detached ones included.
    pub fn node_count(&self) -> usize {
        self.nodes.borrow().len()
    }

    /// Depth of the element new content goes to, as last seen.
    pub fn depth(&self) -> u32 {
        self.depth.get()
    }

    /// Puts parts that the server sent after the rest where they belong.
    pub fn place_streamed(&self) {
        streamed::place(&mut self.nodes.borrow_mut());
    }

    /// Notes that an element was ended. A guess, put right by the next node that is appended.
    pub fn leave(&self) {
        self.depth.set(self.depth.get().saturating_sub(1));
    }

    fn push(&self, data: Data) -> u32 {
        let mut nodes = self.nodes.borrow_mut();
        let id = nodes.len() as u32;
        nodes.push(Raw {
            parent: NONE,
            first: NONE,
            last: NONE,
            prev: NONE,
            next: NONE,
            depth: 0,
            contents: NONE,
            is_shown: false,
            data,
        });
        id
    }

    fn detach(nodes: &mut [Raw], id: u32) {
        let (parent, prev, next) = {
            let n = &mut nodes[id as usize];
            let links = (n.parent, n.prev, n.next);
            n.parent = NONE;
            n.prev = NONE;
            n.next = NONE;
            links
        };
        if prev != NONE {
            nodes[prev as usize].next = next;
        } else if parent != NONE {
            nodes[parent as usize].first = next;
        }
        if next != NONE {
            nodes[next as usize].prev = prev;
        } else if parent != NONE {
            nodes[parent as usize].last = prev;
        }
    }

    fn link_last(nodes: &mut [Raw], parent: u32, id: u32) {
        if nodes[id as usize].parent != NONE {
            Self::detach(nodes, id);
        }
        let depth = nodes[parent as usize].depth + 1;
        let last = nodes[parent as usize].last;
        let n = &mut nodes[id as usize];
        n.parent = parent;
        n.prev = last;
        n.depth = depth;
        if last != NONE {
            nodes[last as usize].next = id;
        } else {
            nodes[parent as usize].first = id;
        }
        nodes[parent as usize].last = id;
    }

    fn link_before(nodes: &mut [Raw], sibling: u32, id: u32) {
        if nodes[id as usize].parent != NONE {
            Self::detach(nodes, id);
        }
        let (parent, prev, depth) = {
            let s = &nodes[sibling as usize];
            (s.parent, s.prev, s.depth)
        };
        let n = &mut nodes[id as usize];
        n.parent = parent;
        n.prev = prev;
        n.next = sibling;
        n.depth = depth;
        nodes[sibling as usize].prev = id;
        if prev != NONE {
            nodes[prev as usize].next = id;
        } else if parent != NONE {
            nodes[parent as usize].first = id;
        }
    }

    fn join_text(nodes: &mut [Raw], id: u32, text: &StrTendril) -> bool {
        if id != NONE
            && let Data::Text(t) = &mut nodes[id as usize].data
        {
            t.push_tendril(text);
            return true;
        }
        false
    }
}

impl TreeSink for Sink {
    type Handle = u32;
    type Output = Dom;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Dom {
        Dom::from_raw(self.nodes.into_inner())
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> u32 {
        0
    }

    fn elem_name<'a>(&'a self, target: &'a u32) -> Ref<'a, QualName> {
        Ref::map(self.nodes.borrow(), |nodes| match &nodes[*target as usize].data {
            Data::Element(e) => &e.name,
            _ => unreachable!("the tree builder asks for names of elements only"),
        })
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> u32 {
        let id = self.push(Data::Element(Element { name, attrs }));
        if flags.template {
            let contents = self.push(Data::Document);
            self.nodes.borrow_mut()[id as usize].contents = contents;
        }
        id
    }

    fn create_comment(&self, _: StrTendril) -> u32 {
        self.push(Data::Comment)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> u32 {
        self.push(Data::Comment)
    }

    fn append(&self, parent: &u32, child: NodeOrText<u32>) {
        match child {
            NodeOrText::AppendNode(id) => {
                let mut nodes = self.nodes.borrow_mut();
                Self::link_last(&mut nodes, *parent, id);
                self.depth.set(nodes[id as usize].depth);
            }
            NodeOrText::AppendText(text) => {
                {
                    let mut nodes = self.nodes.borrow_mut();
                    let last = nodes[*parent as usize].last;
                    self.depth.set(nodes[*parent as usize].depth);
                    if Self::join_text(&mut nodes, last, &text) {
                        return;
                    }
                }
                let id = self.push(Data::Text(text));
                Self::link_last(&mut self.nodes.borrow_mut(), *parent, id);
            }
        }
    }

    fn append_based_on_parent_node(&self, element: &u32, prev_element: &u32, child: NodeOrText<u32>) {
        let has_parent = self.nodes.borrow()[*element as usize].parent != NONE;
        if has_parent {
            self.append_before_sibling(element, child);
        } else {
            self.append(prev_element, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &u32) -> u32 {
        self.nodes.borrow()[*target as usize].contents
    }

    fn same_node(&self, x: &u32, y: &u32) -> bool {
        x == y
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &u32, new_node: NodeOrText<u32>) {
        if self.nodes.borrow()[*sibling as usize].parent == NONE {
            return;
        }
        match new_node {
            NodeOrText::AppendNode(id) => Self::link_before(&mut self.nodes.borrow_mut(), *sibling, id),
            NodeOrText::AppendText(text) => {
                {
                    let mut nodes = self.nodes.borrow_mut();
                    let prev = nodes[*sibling as usize].prev;
                    if Self::join_text(&mut nodes, prev, &text) {
                        return;
                    }
                }
                let id = self.push(Data::Text(text));
                Self::link_before(&mut self.nodes.borrow_mut(), *sibling, id);
            }
        }
    }

    fn add_attrs_if_missing(&self, target: &u32, attrs: Vec<Attribute>) {
        if let Data::Element(e) = &mut self.nodes.borrow_mut()[*target as usize].data {
            for attr in attrs {
                if e.attrs.len() < super::guard::MAX_ATTRIBUTES && !e.attrs.iter().any(|a| a.name == attr.name) {
                    e.attrs.push(attr);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &u32) {
        Self::detach(&mut self.nodes.borrow_mut(), *target);
    }

    fn reparent_children(&self, node: &u32, new_parent: &u32) {
        let mut nodes = self.nodes.borrow_mut();
        let mut child = nodes[*node as usize].first;
        while child != NONE {
            let next = nodes[child as usize].next;
            Self::link_last(&mut nodes, *new_parent, child);
            child = next;
        }
    }
}

/// Whether an attribute makes a template's contents part of the page.
fn is_shadow_root(attribute: &Attribute) -> bool {
    &*attribute.name.local == "shadowrootmode"
        && ["open", "closed"].iter().any(|mode| attribute.value.eq_ignore_ascii_case(mode))
}

/// A parsed page. Node 0 is the document; the descendants of node `i` are `i + 1 .. end(i)`.
#[derive(Debug)]
pub struct Dom {
    tags: Vec<Tag>,
    ends: Vec<u32>,
    parents: Vec<u32>,
    data: Vec<Data>,
}

/// Taken down here and not in the caller's code, which may be less optimized than this crate's.
impl Drop for Dom {
    fn drop(&mut self) {
        self.data.clear();
    }
}

impl Dom {
    fn from_raw(mut raw: Vec<Raw>) -> Dom {
        let n = raw.len();
        let mut dom = Dom {
            tags: Vec::with_capacity(n),
            ends: Vec::with_capacity(n),
            parents: Vec::with_capacity(n),
            data: Vec::with_capacity(n),
        };
        // (raw node, its number in the new order), from the document down to the node being visited.
        let mut open: Vec<(u32, u32)> = Vec::with_capacity(64);
        let mut at = 0u32;
        loop {
            let node = &mut raw[at as usize];
            let mut data = std::mem::replace(&mut node.data, Data::Comment);
            let tag = match &data {
                Data::Document => Tag::Document,
                Data::Element(e) => Tag::of(&e.name),
                Data::Text(_) => Tag::Text,
                Data::Comment => Tag::Comment,
            };
            if let Data::Text(t) = &mut data
                && t.is_empty()
            {
                data = Data::Comment;
            }
            let first = match (&data, node.contents) {
                // A declarative shadow root is what the reader of the page sees.
                (Data::Element(e), c) if c != NONE => {
                    if node.is_shown || e.attrs.iter().any(is_shadow_root) {
                        raw[c as usize].first
                    } else {
                        NONE
                    }
                }
                _ => node.first,
            };
            let id = dom.tags.len() as u32;
            dom.parents.push(open.last().map_or(0, |o| o.1));
            dom.tags.push(if tag == Tag::Template && first != NONE { Tag::Div } else { tag });
            dom.ends.push(id + 1);
            dom.data.push(data);
            if first != NONE {
                open.push((at, id));
                at = first;
                continue;
            }
            let mut next = raw[at as usize].next;
            if at == 0 {
                break;
            }
            while next == NONE {
                let Some((up, up_id)) = open.pop() else { break };
                dom.ends[up_id as usize] = dom.tags.len() as u32;
                if up == 0 {
                    break;
                }
                next = raw[up as usize].next;
            }
            if next == NONE {
                break;
            }
            at = next;
        }
        dom
    }

    /// Number of nodes; at least 1.
    pub fn len(&self) -> usize {
        self.tags.len()
    }

    /// What node `i` is.
    #[inline]
    pub fn tag(&self, i: usize) -> Tag {
        self.tags[i]
    }

    /// One past the last descendant of `i`.
    #[inline]
    pub fn end(&self, i: usize) -> usize {
        self.ends[i] as usize
    }

    /// The parent of `i`; the document is its own.
    #[inline]
    pub fn parent(&self, i: usize) -> usize {
        self.parents[i] as usize
    }

    /// Character data of `i`, empty unless it is text.
    #[inline]
    pub fn text(&self, i: usize) -> &str {
        match &self.data[i] {
            Data::Text(t) => t,
            _ => "",
        }
    }

    /// Name and attributes of `i` if it is an element.
    #[inline]
    pub fn element(&self, i: usize) -> Option<&Element> {
        match &self.data[i] {
            Data::Element(e) => Some(e),
            _ => None,
        }
    }

    /// Value of an attribute named by a static atom.
    #[inline]
    pub fn attr(&self, i: usize, name: &LocalName) -> Option<&str> {
        match &self.data[i] {
            Data::Element(e) => e.attrs.iter().find(|a| a.name.local == *name).map(|a| &*a.value),
            _ => None,
        }
    }

    /// Value of an attribute by lower-case name.
    pub fn attr_named(&self, i: usize, name: &str) -> Option<&str> {
        match &self.data[i] {
            Data::Element(e) => e.attrs.iter().find(|a| &*a.name.local == name).map(|a| &*a.value),
            _ => None,
        }
    }

    /// The `class` attribute, empty when there is none.
    pub fn class(&self, i: usize) -> &str {
        self.attr(i, &local_name!("class")).unwrap_or("")
    }

    /// Child nodes of `i` in order.
    pub fn children(&self, i: usize) -> Children<'_> {
        Children { dom: self, at: i + 1, end: self.end(i) }
    }

    /// Parent, grandparent and so on, the document last.
    pub fn ancestors(&self, i: usize) -> Ancestors<'_> {
        Ancestors { dom: self, at: i }
    }

    /// All text below `i`, as written.
    pub fn text_of(&self, i: usize) -> String {
        let mut out = String::new();
        for j in i..self.end(i) {
            out.push_str(self.text(j));
        }
        out
    }
}

/// Iterator over child nodes.
pub struct Children<'a> {
    dom: &'a Dom,
    at: usize,
    end: usize,
}

impl Iterator for Children<'_> {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        if self.at >= self.end {
            return None;
        }
        let here = self.at;
        self.at = self.dom.end(here);
        Some(here)
    }
}

/// Iterator over ancestors, nearest first.
pub struct Ancestors<'a> {
    dom: &'a Dom,
    at: usize,
}

impl Iterator for Ancestors<'_> {
    type Item = usize;
    fn next(&mut self) -> Option<usize> {
        if self.at == 0 {
            return None;
        }
        self.at = self.dom.parent(self.at);
        Some(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    #[test]
    fn a_subtree_is_an_index_range() {
        let dom = guard::parse("<body><div><p>a</p><p>b</p></div><span>c</span></body>").dom;
        let div = (0..dom.len()).find(|&i| dom.tag(i) == Tag::Div).expect("there is a div");
        assert_eq!(dom.text_of(div), "ab");
        assert_eq!(dom.children(div).count(), 2);
        assert!(dom.ancestors(div).any(|a| dom.tag(a) == Tag::Body));
    }

    #[test]
    fn a_declarative_shadow_root_is_part_of_the_page_and_a_template_is_not() {
        let dom =
            guard::parse("<x-a><template shadowrootmode=open><p>in</p></template></x-a><template>out</template>").dom;
        assert_eq!(dom.text_of(0), "in");
        let dom = guard::parse("<x-a><template shadowrootmode=Closed>in</template><template shadowrootmode>out").dom;
        assert_eq!(dom.text_of(0), "in");
    }
}
