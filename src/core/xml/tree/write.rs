//! Trees back to text.

use super::{Attribute, Element, Node};
use crate::xml;
use crate::xml::ns::{XHTML, XLINK, XML};
use std::ops::Range;

/// The most prefixes that are bound around a whole tree; others are declared where they are used.
pub(super) const BINDING_LIMIT: usize = 256;

/// The bindings of prefixes that a tree uses, each prefix with the namespace that it has first.
pub fn bindings(root: &Element) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |prefix: &str, namespace: &str| {
        let is_one = !prefix.is_empty() && prefix != "xml" && found.len() < BINDING_LIMIT;
        if is_one && !found.iter().any(|(p, _)| p == prefix) {
            found.push((prefix.to_owned(), namespace.to_owned()));
        }
    };
    let mut pending = vec![root];
    while let Some(element) = pending.pop() {
        add(&element.prefix, &element.namespace);
        for attribute in &element.attributes {
            add(&attribute.prefix, &attribute.namespace);
        }
        pending.extend(element.elements().rev());
    }
    found.sort();
    found
}

/// Adds an element, with the declarations that it needs beyond those in `scope`.
pub fn write(out: &mut String, element: &Element, scope: &mut Vec<(String, String)>) {
    write_noting(out, element, scope, |_| false);
}

/// Does the same and answers where the first child stands for which `noted` holds.
pub fn write_noting(
    out: &mut String,
    element: &Element,
    scope: &mut Vec<(String, String)>,
    noted: impl Fn(&Element) -> bool,
) -> Option<Range<usize>> {
    let outside = scope.len();
    let mut place = None;
    out.push('<');
    push_name(out, &element.prefix, &element.name);
    declare(out, &element.prefix, &element.namespace, scope);
    for attribute in &element.attributes {
        if !attribute.prefix.is_empty() && attribute.prefix != "xml" {
            declare(out, &attribute.prefix, &attribute.namespace, scope);
        }
    }
    for Attribute { prefix, name, value, .. } in &element.attributes {
        push_attribute(out, prefix, name, value);
    }
    if element.children.is_empty() {
        out.push_str("/>");
    } else {
        out.push('>');
        for node in &element.children {
            let start = out.len();
            match node {
                Node::Text(text) => xml::push_text(out, text),
                Node::Element(child) => {
                    write(out, child, scope);
                    if place.is_none() && noted(child) {
                        place = Some(start..out.len());
                    }
                }
            }
        }
        out.push_str("</");
        push_name(out, &element.prefix, &element.name);
        out.push('>');
    }
    scope.truncate(outside);
    place
}

fn push_name(out: &mut String, prefix: &str, name: &str) {
    if !prefix.is_empty() {
        out.push_str(prefix);
        out.push(':');
    }
    out.push_str(name);
}

fn push_attribute(out: &mut String, prefix: &str, name: &str, value: &str) {
    out.push(' ');
    push_name(out, prefix, name);
    out.push_str("=\"");
    xml::push_value(out, value);
    out.push('"');
}

fn declare(out: &mut String, prefix: &str, namespace: &str, scope: &mut Vec<(String, String)>) {
    let bound = scope.iter().rev().find(|(bound, _)| bound == prefix);
    if bound.map_or("", |(_, namespace)| namespace) == namespace {
        return;
    }
    xml::push_namespace(out, prefix, namespace);
    scope.push((prefix.to_owned(), namespace.to_owned()));
}

/// The content of an element as HTML: XHTML without its namespace.
pub fn html(element: &Element) -> String {
    let mut out = String::new();
    push_html(&mut out, element, false);
    out
}

/// The same of an element whose text is HTML itself: of elements beside that with a prefix, the text alone.
pub fn escaped_html(element: &Element) -> String {
    let mut out = String::new();
    push_html(&mut out, element, true);
    out
}

/// The elements of HTML that have no end tag (section 13.1.2).
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

fn push_html(out: &mut String, element: &Element, is_escaped: bool) {
    for node in &element.children {
        let child = match node {
            Node::Text(text) if is_escaped => {
                out.push_str(text);
                continue;
            }
            Node::Text(text) => {
                xml::push_text(out, text);
                continue;
            }
            Node::Element(child) => child,
        };
        if is_escaped && !child.prefix.is_empty() && child.namespace != XHTML {
            push_html(out, child, is_escaped);
            continue;
        }
        out.push('<');
        out.push_str(&child.name);
        for Attribute { namespace, name, value, .. } in &child.attributes {
            match namespace.as_str() {
                "" => push_attribute(out, "", name, value),
                // HTML knows both by these names.
                XLINK => push_attribute(out, "xlink", name, value),
                XML if name == "lang" && child.attribute("lang").is_none() => {
                    push_attribute(out, "", name, value);
                }
                _ => {}
            }
        }
        // HTML takes any other tag for one that is open, however it is closed.
        if VOID.iter().any(|name| name.eq_ignore_ascii_case(&child.name)) {
            out.push_str("/>");
            push_html(out, child, is_escaped);
        } else {
            out.push('>');
            push_html(out, child, is_escaped);
            out.push_str("</");
            out.push_str(&child.name);
            out.push('>');
        }
    }
}
