//! A small tree of elements, for the formats that are converted and not spliced.
//!
//! Names carry their namespace; declarations are made anew when a tree is written.

mod write;

use crate::model::Context;
use crate::xml;
use crate::xml::doc::{Doc, DocAttribute, DocElement, WalkStep};
use crate::xml::html::SECTION;
use crate::xml::ns::XML;
use std::borrow::Cow;

pub use write::{bindings, escaped_html, html, write, write_noting};

/// The most bytes that the elements of a tree take in memory; of further ones the text alone is kept.
pub const WEIGHT_LIMIT: usize = 64 << 20;

/// An attribute that is no namespace declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// The prefix as written, without colon; empty where there is none.
    pub prefix: String,
    /// The namespace; empty without prefix.
    pub namespace: String,
    /// The local name.
    pub name: String,
    /// The value.
    pub value: String,
}

impl Attribute {
    /// `xml:lang`.
    pub fn lang(language: &str) -> Self {
        Self::xml("lang", language)
    }

    /// `xml:base`.
    pub fn base(address: &str) -> Self {
        Self::xml("base", address)
    }

    fn xml(name: &str, value: &str) -> Self {
        Self::of("xml", XML, name, value)
    }

    /// An attribute of a namespace, with its prefix.
    pub fn of(prefix: &str, namespace: &str, name: &str, value: &str) -> Self {
        let [prefix, namespace, name, value] = [prefix, namespace, name, value].map(str::to_owned);
        Self { prefix, namespace, name, value }
    }
}

/// What an element contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// An element.
    Element(Element),
    /// Text, references resolved.
    Text(String),
}

/// An element.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Element {
    /// The prefix as written, without colon; empty where there is none.
    pub prefix: String,
    /// The namespace; empty where there is none.
    pub namespace: String,
    /// The local name.
    pub name: String,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// Its content.
    pub children: Vec<Node>,
}

impl Element {
    /// An empty element without prefix.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned(), ..Self::default() }
    }

    /// This element with an attribute without namespace.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.set(name, value);
        self
    }

    /// This element with those of these attributes that have a value.
    pub fn with_known(mut self, attributes: &[(&str, Option<&str>)]) -> Self {
        for (name, value) in attributes {
            value.iter().for_each(|value| self.set(name, value));
        }
        self
    }

    /// This element with a prefix.
    pub fn prefixed(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// This element with text behind what it contains.
    pub fn text(mut self, text: &str) -> Self {
        self.children.push(Node::Text(text.to_owned()));
        self
    }

    /// This element with `child` behind what it contains.
    pub fn child(mut self, child: Self) -> Self {
        self.push(child);
        self
    }

    /// Adds a child.
    pub fn push(&mut self, child: Self) {
        self.children.push(Node::Element(child));
    }

    /// Adds a child of its own namespace with a text, where there is one.
    pub fn push_text(&mut self, name: &str, text: Option<impl AsRef<str>>) {
        if let Some(text) = text {
            self.push(Self::new(&self.namespace, name).text(text.as_ref()));
        }
    }

    /// Adds an attribute without namespace.
    pub fn set(&mut self, name: &str, value: &str) {
        self.attributes.push(Attribute::of("", "", name, value));
    }

    /// The child elements.
    pub fn elements(&self) -> impl DoubleEndedIterator<Item = &Self> {
        self.children.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// Whether this is the element `name` of `namespace`.
    pub fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }

    /// The first child `name` of `namespace`.
    pub fn find(&self, namespace: &str, name: &str) -> Option<&Self> {
        self.elements().find(|element| element.is(namespace, name))
    }

    /// The value of an attribute without namespace, else in that of the element, where some write it.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let is_own = |namespace: &str| namespace.is_empty() || namespace == self.namespace;
        let found = self.attributes.iter().filter(|a| is_own(&a.namespace) && a.name == name);
        found
            .min_by_key(|attribute| !attribute.namespace.is_empty())
            .map(|attribute| attribute.value.as_str())
    }

    /// The same for whoever keeps it.
    pub fn value(&self, name: &str) -> Option<String> {
        self.attribute(name).map(str::to_owned)
    }

    /// Its own `xml:base` or `xml:lang`.
    pub fn own(&self, name: &str) -> Option<&str> {
        let found = self.inherited().find(|attribute| attribute.name == name);
        found.map(|attribute| attribute.value.as_str())
    }

    /// Drops the child elements `name` of `namespace`.
    pub fn drop_all(&mut self, namespace: &str, name: &str) {
        self.children
            .retain(|node| !matches!(node, Node::Element(child) if child.is(namespace, name)));
    }

    /// The text inside without the white space around it; `None` where there is none.
    pub fn words(&self) -> Option<String> {
        Some(self.content().trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// That of the first child `name` of `namespace`.
    pub fn words_of(&self, namespace: &str, name: &str) -> Option<String> {
        self.find(namespace, name)?.words()
    }

    /// All text inside.
    pub fn content(&self) -> String {
        let mut text = String::new();
        let mut pending: Vec<&Node> = self.children.iter().rev().collect();
        while let Some(node) = pending.pop() {
            match node {
                Node::Text(piece) => text.push_str(piece),
                Node::Element(element) => pending.extend(element.children.iter().rev()),
            }
        }
        text
    }

    /// What it takes in memory beside what is written of it, with the text behind it, in bytes, about.
    fn weight(&self) -> usize {
        let attributes = self.attributes.iter();
        let attributes = attributes.map(|a| size_of::<Attribute>() + a.namespace.len());
        2 * size_of::<Node>() + self.namespace.len() + attributes.sum::<usize>()
    }

    /// The attributes `xml:base` and `xml:lang`.
    pub fn inherited(&self) -> impl Iterator<Item = &Attribute> {
        self.attributes.iter().filter(|attribute| attribute.namespace == XML)
    }
}

/// Moves an element and all within it from one namespace to another, which has no prefix.
pub fn move_namespace(element: &mut Element, from: &str, to: &str) {
    each(element, &mut |element| {
        if element.namespace == from {
            element.namespace = to.to_owned();
            element.prefix.clear();
        }
    });
}

/// Gives an element and all within it that are in a namespace the same prefix.
pub fn move_prefix(element: &mut Element, namespace: &str, prefix: &str) {
    each(element, &mut |element| {
        if element.namespace == namespace {
            element.prefix = prefix.to_owned();
        }
    });
}

/// Does something with an element and all within it. A tree that was read is no deeper than a
/// [`Doc`].
fn each(element: &mut Element, change: &mut impl FnMut(&mut Element)) {
    change(element);
    for node in &mut element.children {
        if let Node::Element(child) = node {
            each(child, change);
        }
    }
}

/// Reads an element with what it inherits; `None` where the text has no whole element.
pub fn read(xml: &str, context: &Context) -> Option<Element> {
    of(Doc::read_in(xml, context)?.root()?)
}

/// Takes over an element of a document.
pub fn of(root: DocElement<'_, '_>) -> Option<Element> {
    let text = root.doc().text();
    // Open elements; none is made of those beyond the limit.
    let mut open: Vec<Option<Element>> = Vec::new();
    let mut weight = 0_usize;
    for step in root.walk() {
        match step {
            WalkStep::Open(element) => {
                let element = (weight <= WEIGHT_LIMIT).then(|| shallow(element));
                weight += element.as_ref().map_or(0, Element::weight);
                open.push(element);
            }
            WalkStep::Text(text) => add_text(&mut open, text),
            WalkStep::Close(closed) => {
                let Some(mut element) = open.pop()? else { continue };
                // An empty section is text too: what has one is written with an end tag.
                if element.children.is_empty() && xml::cut(text, closed.content()).contains(SECTION)
                {
                    element.children.push(Node::Text(String::new()));
                }
                element.children.shrink_to_fit();
                let Some(parent) = innermost(&mut open) else { return Some(element) };
                parent.push(element);
            }
        }
    }
    None
}

fn innermost(open: &mut [Option<Element>]) -> Option<&mut Element> {
    open.iter_mut().rev().find_map(Option::as_mut)
}

fn add_text(open: &mut [Option<Element>], text: Cow<'_, str>) {
    let Some(parent) = innermost(open) else { return };
    // Line ends as they are written are those of XML (section 2.11); what a reference says stays.
    let normalized = match text {
        Cow::Borrowed(text) if text.contains('\r') => {
            Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
        }
        text => text,
    };
    match parent.children.last_mut() {
        Some(Node::Text(before)) => before.push_str(&normalized),
        _ => parent.children.push(Node::Text(normalized.into_owned())),
    }
}

/// An element of a document with its attributes, without what it contains.
pub fn shallow(read: DocElement<'_, '_>) -> Element {
    let value = |attribute: DocAttribute<'_, '_>| {
        xml::plain_value(xml::cut(read.doc().text(), attribute.place())).into_owned()
    };
    let resolve = |prefix: &str| read.binding(prefix).unwrap_or_default().into_owned();
    // A prefix that nothing binds is dropped, and so is an attribute with one: what would be written must
    // be readable.
    let spelled = |prefix: &str, namespace: &str| match namespace {
        "" => String::new(),
        _ => prefix.to_owned(),
    };
    let (prefix, name) = xml::split_name(read.name());
    let mut element = Element::new(&resolve(prefix), name);
    element.prefix = spelled(prefix, &element.namespace);
    for attribute in read.attributes() {
        let (prefix, name) = xml::split_name(attribute.name());
        let namespace = if prefix.is_empty() { String::new() } else { resolve(prefix) };
        let is_same = |a: &Attribute| a.namespace == namespace && a.name == name;
        let is_unbound = !prefix.is_empty() && namespace.is_empty();
        if !is_unbound && !element.attributes.iter().any(is_same) {
            let prefix = prefix.to_owned();
            let (name, value) = (name.to_owned(), value(attribute));
            element.attributes.push(Attribute { prefix, namespace, name, value });
        }
    }
    element.attributes.shrink_to_fit();
    element
}

#[cfg(test)]
mod tests {
    use super::write::BINDING_LIMIT;
    use super::*;

    fn context(bindings: &[(&str, &str)]) -> Context {
        let own = |(p, n): &(&str, &str)| ((*p).to_owned(), (*n).to_owned());
        Context { namespaces: bindings.iter().map(own).collect(), base: None, lang: None }
    }

    #[test]
    fn a_tree_is_read_with_what_it_inherits_and_written_with_what_it_needs() {
        let xml = "<item a:k='1'><a:b xmlns:a='urn:2'><a:c/></a:b>x &amp; <![CDATA[<y>]]></item>";
        let tree = read(xml, &context(&[("", "urn:0"), ("a", "urn:1")])).unwrap();
        assert_eq!(tree.content(), "x & <y>");
        assert!(tree.find("urn:2", "b").is_some());
        let mut out = String::new();
        write(&mut out, &tree, &mut vec![(String::new(), "urn:0".to_owned())]);
        let inner = "<a:b xmlns:a=\"urn:2\"><a:c/></a:b>x &amp; &lt;y&gt;";
        assert_eq!(out, format!("<item xmlns:a=\"urn:1\" a:k=\"1\">{inner}</item>"));
        assert_eq!(bindings(&tree), [("a".to_owned(), "urn:1".to_owned())]);
    }

    #[test]
    fn a_binding_ends_with_its_element() {
        let xml =
            "<a><p:x xmlns:p='urn:1' xmlns='urn:d'/><p:x xmlns:p='urn:2'><y/></p:x><p:x/><z/></a>";
        let tree = read(xml, &context(&[("p", "urn:0")])).unwrap();
        let names: Vec<_> = tree.elements().map(|e| (e.namespace.as_str(), &*e.name)).collect();
        assert_eq!(names, [("urn:1", "x"), ("urn:2", "x"), ("urn:0", "x"), ("", "z")]);
        let mut out = String::new();
        write(&mut out, &tree, &mut bindings(&tree));
        let others = "<p:x xmlns:p=\"urn:2\"><y/></p:x><p:x xmlns:p=\"urn:0\"/>";
        assert_eq!(out, format!("<a><p:x/>{others}<z/></a>"));
    }

    #[test]
    fn unbound_prefixes_are_dropped_and_broken_text_is_no_tree() {
        let tree = read("<q:item q:a='1' a='2'/>", &Context::default()).unwrap();
        assert_eq!(tree, Element::new("", "item").with("a", "2"));
        for broken in ["", "text", "<a>", "<a></b>", "<!-- -->"] {
            assert_eq!(read(broken, &Context::default()), None, "{broken:?}");
        }
    }

    #[test]
    fn depth_is_limited() {
        let deep = |depth| format!("{}x{}", "<a>".repeat(depth), "</a>".repeat(depth));
        let limit = crate::xml::doc::DocLimits::default().depth;
        let tree = read(&deep(limit), &Context::default()).unwrap();
        let depth = std::iter::successors(Some(&tree), |at| at.elements().next()).count();
        assert_eq!((depth, tree.content().as_str()), (limit, "x"));
        assert_eq!(read(&deep(limit + 1), &Context::default()), None);
    }

    #[test]
    fn elements_are_limited_by_what_they_take() {
        // Each has its own copy of a long name.
        let (space, count) = ("n".repeat(1000), 100_000);
        let wide = format!("<a xmlns='{space}'>{}</a>", "<b>x</b>".repeat(count));
        let tree = read(&wide, &Context::default()).unwrap();
        let kept = tree.elements().count();
        assert!((50_000..count).contains(&kept), "{kept}");
        assert_eq!(tree.content().len(), count);
    }

    #[test]
    fn only_so_many_prefixes_are_bound_around_all() {
        let one = |n: usize| format!("<p{n}:x xmlns:p{n}='urn:{n}'/>");
        let all: String = (0..BINDING_LIMIT + 2).map(one).collect();
        let tree = read(&format!("<a>{all}</a>"), &Context::default()).unwrap();
        let mut scope = bindings(&tree);
        assert_eq!(scope.len(), BINDING_LIMIT);
        let mut out = String::new();
        write(&mut out, &tree, &mut scope);
        assert_eq!(out.matches("xmlns:").count(), 2, "those beyond declare themselves");
    }
}
