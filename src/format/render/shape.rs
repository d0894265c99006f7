//! The shape that an item of a collection has on its own (FeedSync for Collections, section 2.1.7): it
//! goes with the entry that the item becomes, and comes back wherever collections are written.
//!
//! An item as JSON and one as plain XML say the same where members are elements: a list is one element
//! for each, an object stands in its element, an attribute is a member that begins with `@`. A member whose
//! name cannot be that of an element is an element `member`, which has it as `name`.

mod edit;

use super::Base;
use serde_json::{Map, Value};
use tidegate_core::model::{Family, Markup};
use tidegate_core::sync_markup::shape_element::{JSON, NAMESPACE, OF, POX, print};
use tidegate_core::xml::is_name;
use tidegate_core::xml::tree::{self, Element, Node};

/// The element of a member whose name is none in XML, and its attribute with that name.
const MEMBER: &str = "member";
const NAME: &str = "name";
/// How deep members are written as elements.
const DEPTH_LIMIT: usize = 64;

/// Reads the entry that the first item of a collection becomes. Whoever renders hands it over, since
/// reading is no part of rendering.
pub type ReadCollection = fn(&str) -> Option<Markup>;

/// The shape of an item.
#[derive(Debug, Clone)]
pub enum Shape {
    /// The members that it has as JSON, without `sync`.
    Json(Map<String, Value>),
    /// What it has as plain XML, without `sx:sync`.
    Pox(Vec<Node>),
}

impl Shape {
    /// The shape that goes with an entry, with what was edited since it was made; `None` where it has
    /// none. `base` is where its references lead.
    pub fn from_entry(markup: &Markup, base: &Base, read: ReadCollection) -> Option<Self> {
        let declares = |xml: &str| xml.contains(NAMESPACE);
        if !declares(&markup.xml) && !markup.context.namespaces.iter().any(|(_, n)| declares(n)) {
            return None;
        }
        let entry = tree::read(&markup.xml, &markup.context)?;
        let mut shapes = entry.elements().filter(|child| child.namespace == NAMESPACE);
        let shape = shapes.next()?;
        let kept = match shape.name.as_str() {
            JSON => serde_json::from_str(&shape.content()).ok().map(Self::Json)?,
            POX => Self::Pox(shape.children.clone()),
            _ => return None,
        };
        // The print is that of an entry of Atom: what stands in a feed of RSS has none.
        let family = markup.format.family();
        let is_as_made = family == Family::Atom && shape.attribute(OF) == Some(&print(&entry));
        Some(if is_as_made { kept } else { edit::edited(kept, markup, base, read) })
    }

    /// As members of an object.
    pub fn into_members(self) -> Map<String, Value> {
        match self {
            Self::Json(object) => object,
            Self::Pox(nodes) => members(&nodes),
        }
    }

    /// As elements, in no namespace where they come from JSON.
    pub fn into_nodes(self) -> Vec<Node> {
        match self {
            Self::Pox(nodes) => nodes,
            Self::Json(object) => {
                let mut nodes = Vec::new();
                for (name, value) in &object {
                    push_elements(&mut nodes, name, value, 0);
                }
                nodes
            }
        }
    }
}

fn members(nodes: &[Node]) -> Map<String, Value> {
    let mut object = Map::new();
    let elements = nodes.iter().filter_map(|node| match node {
        Node::Element(element) => Some(element),
        Node::Text(_) => None,
    });
    for element in elements {
        let value = value(element);
        let name = label(element).unwrap_or(&element.name);
        match object.get_mut(name) {
            None => {
                object.insert(name.to_owned(), value);
            }
            Some(Value::Array(list)) => list.push(value),
            Some(one) => *one = Value::Array(vec![one.take(), value]),
        }
    }
    object
}

/// Whether XML takes a member's name for an element or an attribute without prefix.
fn is_plain_name(name: &str) -> bool {
    is_name(name) && !name.contains(':') && name != "xmlns"
}

/// The name of a member that XML takes for none.
fn label(element: &Element) -> Option<&str> {
    let name = element.attribute(NAME).filter(|_| element.name == MEMBER);
    name.filter(|name| !is_plain_name(name))
}

/// A tree is no deeper than its reader lets it be.
fn value(element: &Element) -> Value {
    let is_leaf = element.elements().next().is_none();
    let is_labelled = label(element).is_some();
    let own = element.attributes.iter().filter(|attribute| attribute.prefix.is_empty());
    let own = own.filter(|attribute| !is_labelled || attribute.name != NAME);
    let mut own = own.peekable();
    if is_leaf && own.peek().is_none() {
        return element.content().into();
    }
    let mut object = members(&element.children);
    for attribute in own {
        object.insert(format!("@{}", attribute.name), attribute.value.clone().into());
    }
    if is_leaf && !element.content().trim().is_empty() {
        object.insert("#text".to_owned(), element.content().into());
    }
    Value::Object(object)
}

fn push_elements(nodes: &mut Vec<Node>, name: &str, value: &Value, depth: usize) {
    if depth >= DEPTH_LIMIT {
        return;
    }
    let mut element = if is_plain_name(name) {
        Element::new("", name)
    } else {
        Element::new("", MEMBER).with(NAME, name)
    };
    match value {
        Value::Null => return,
        Value::Array(list) => {
            for value in list.iter().filter(|value| !value.is_array()) {
                push_elements(nodes, name, value, depth + 1);
            }
            return;
        }
        Value::Object(object) => {
            for (name, value) in object {
                match (name.strip_prefix('@'), value.as_str()) {
                    (Some(name), Some(value))
                        if is_plain_name(name) && element.attribute(name).is_none() =>
                    {
                        element.set(name, value);
                    }
                    (_, Some(value)) if name == "#text" => {
                        element.children.push(Node::Text(value.to_owned()));
                    }
                    _ => push_elements(&mut element.children, name, value, depth + 1),
                }
            }
        }
        Value::String(text) => element.children.push(Node::Text(text.clone())),
        Value::Bool(_) | Value::Number(_) => element.children.push(Node::Text(value.to_string())),
    }
    nodes.push(Node::Element(element));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tidegate_core::model::Context;

    /// Names of members are somebody's text: they become markup only where XML takes them.
    #[test]
    fn any_name_of_a_member_makes_good_elements_and_comes_back() {
        let item = json!({
            "a": "1", "area_m²": "2", "a:b": "3", "b><c": ["4", "5"], "": "6", "xmlns": "7",
            "x": { "@a><y b": "v", "@xmlns": "urn:x", "@b": "w" },
            "u": { "@b": "w", "#text": "t" },
            "y²": { "@name": "n", "@c": "d", "z": "8" },
        });
        let object = item.as_object().unwrap().clone();
        let nodes = Shape::Json(object.clone()).into_nodes();
        let mut root = Element::new("", "item");
        root.children = nodes.clone();
        let mut out = String::new();
        tree::write(&mut out, &root, &mut Vec::new());
        assert!(out.contains("<member name=\"area_m²\">2</member>"), "{out}");
        let read = tidegate_core::xml::strict::Tree::read(&out).unwrap();
        assert!(read.element(1).is_some() && !out.contains("<y") && !out.contains("urn:x\""));
        let back = tree::read(&out, &Context::default()).unwrap();
        assert_eq!(back.children, nodes);
        assert_eq!(Shape::Pox(back.children).into_members(), object);
    }
}
