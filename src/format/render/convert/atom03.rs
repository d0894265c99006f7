//! Atom 0.3 to Atom 1.0 (RFC 4287).

use super::{atom_date, read_entry, read_skeleton};
use data_encoding::BASE64;
use tidegate_core::model::{Card, Markup, Skeleton, Time};
use tidegate_core::xml::ns::{ATOM, ATOM03, XHTML};
use tidegate_core::xml::tree::{self, Element, Node};

/// The feed element of a skeleton.
pub fn feed(skeleton: &Skeleton) -> Element {
    let mut feed = Element::new(ATOM, "feed");
    convert_children(&read_skeleton(skeleton), &mut feed);
    if feed.children.is_empty() {
        feed.push_text("title", Some(&skeleton.title));
    }
    feed
}

/// An entry; `None` where its markup cannot be read.
pub fn entry(markup: &Markup, seen: Option<Time>) -> Option<Element> {
    let old = read_entry(markup)?;
    let mut entry = Element::new(ATOM, "entry");
    entry.attributes.extend(old.inherited().cloned());
    convert_children(&old, &mut entry);
    entry.drop_all(ATOM, "id");
    dates(&old, &mut entry, &markup.card, seen);
    Some(entry)
}

/// Issued becomes published, modified becomes updated; created stands in for either.
fn dates(old: &Element, entry: &mut Element, card: &Card, seen: Option<Time>) {
    let written = |name| old.find(ATOM03, name).map(Element::content).unwrap_or_default();
    let (issued, modified, created) = (written("issued"), written("modified"), written("created"));
    let published = atom_date(&issued, card.published).or_else(|| atom_date(&created, None));
    let updated = atom_date(&modified, card.updated)
        .or_else(|| published.clone())
        .or_else(|| seen.map(|time| time.to_string()));
    entry.push_text("published", published);
    entry.push_text("updated", updated);
}

fn convert_children(old: &Element, new: &mut Element) {
    for child in old.elements() {
        if child.namespace != ATOM03 {
            new.push(child.clone());
            continue;
        }
        match child.name.as_str() {
            "title" | "summary" | "content" => new.push(text(child, &child.name)),
            "tagline" => new.push(text(child, "subtitle")),
            "copyright" => new.push(text(child, "rights")),
            "author" | "contributor" => new.push(person(child)),
            "generator" => new.push(generator(child)),
            "id" => new.push_text("id", Some(child.content().trim())),
            "link" => {
                new.push(Element { namespace: ATOM.to_owned(), ..child.clone().prefixed("") });
            }
            // Dates are converted by `dates`; a feed's are ours. The rest has no equivalent.
            _ => {}
        }
    }
}

fn person(old: &Element) -> Element {
    let mut person = Element::new(ATOM, &old.name);
    for (from, to) in [("name", "name"), ("url", "uri"), ("email", "email")] {
        person.push_text(to, old.find(ATOM03, from).map(|value| value.content().trim().to_owned()));
    }
    // RFC 4287 section 3.2.1 requires a name.
    if person.find(ATOM, "name").is_none() {
        person.push_text("name", Some(old.content().trim()));
    }
    person
}

fn generator(old: &Element) -> Element {
    Element::new(ATOM, "generator")
        .with_known(&[("uri", old.attribute("url")), ("version", old.attribute("version"))])
        .text(&old.content())
}

/// A content construct: `mode` and a media type become one of the types of RFC 4287 section 3.1.1.
fn text(old: &Element, name: &str) -> Element {
    let mut new = Element::new(ATOM, name);
    new.attributes.extend(old.inherited().cloned());
    let written = old.attribute("type").unwrap_or("text/plain").trim().to_ascii_lowercase();
    let media = written.split(';').next().unwrap_or_default().trim_end();
    let is_html = matches!(media, "text/html" | "application/xhtml+xml" | "html" | "xhtml");
    match old.attribute("mode").unwrap_or("xml") {
        "base64" => {
            let mut encoded = old.content();
            encoded.retain(|c| !c.is_whitespace());
            let decoded = BASE64.decode(encoded.as_bytes()).ok();
            match decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
                Some(text) if media.starts_with("text/") || is_html => typed(new, is_html, &text),
                _ if name == "content" => new.with("type", &written).text(&encoded),
                _ => typed(new, false, ""),
            }
        }
        "escaped" => typed(new, is_html, &old.content()),
        _ if media == "multipart/alternative" => {
            // The last alternative is the richest (RFC 2046 section 5.1.4).
            match old.elements().rfind(|child| child.namespace == ATOM03) {
                Some(child) if child.attribute("type") != Some("multipart/alternative") => {
                    text(child, name)
                }
                _ => typed(new, false, &old.content()),
            }
        }
        _ if old.elements().next().is_none() => typed(new, is_html, &old.content()),
        _ => {
            new.set("type", "xhtml");
            new.push(division(old));
            new
        }
    }
}

fn typed(new: Element, is_html: bool, text: &str) -> Element {
    new.with("type", if is_html { "html" } else { "text" }).text(text)
}

/// Inline markup inside the one `xhtml:div` that RFC 4287 section 3.1.1.3 requires.
fn division(old: &Element) -> Element {
    let blank = |node: &Node| matches!(node, Node::Text(text) if text.trim().is_empty());
    let mut solid = old.children.iter().filter(|node| !blank(node));
    let mut division = match (solid.next(), solid.next()) {
        (Some(Node::Element(only)), None) if only.name == "div" => only.clone(),
        _ => Element { children: old.children.clone(), ..Element::new(XHTML, "div") },
    };
    // Elements that a publisher forgot to give the namespace of XHTML get it.
    for from in [ATOM03, "", XHTML] {
        tree::move_namespace(&mut division, from, XHTML);
    }
    division
}
