//! Trees back to text.

use super::{Element, Node};
use crate::xml;
use std::ops::Range;

/// The bindings of prefixes that a tree uses, each prefix with the namespace that it has first.
pub fn bindings(root: &Element) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |prefix: &str, namespace: &str| {
        if !prefix.is_empty() && prefix != "xml" && !found.iter().any(|(p, _)| p == prefix) {
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
    for attribute in &element.attributes {
        out.push(' ');
        push_name(out, &attribute.prefix, &attribute.name);
        out.push_str("=\"");
        xml::push_value(out, &attribute.value);
        out.push('"');
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
    fn bare(element: &Element) -> Element {
        let mut copy = element.clone();
        copy.prefix.clear();
        copy.namespace.clear();
        copy.attributes.retain(|attribute| attribute.namespace.is_empty());
        for node in &mut copy.children {
            if let Node::Element(child) = node {
                *child = bare(child);
            }
        }
        copy
    }
    let mut out = String::new();
    for node in &element.children {
        match node {
            Node::Text(text) => xml::push_text(&mut out, text),
            Node::Element(child) => write(&mut out, &bare(child), &mut Vec::new()),
        }
    }
    out
}
