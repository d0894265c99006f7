//! RSS 1.0 and 0.90 (RDF) to RSS 2.0.

use super::{Target, read_entry, read_skeleton};
use crate::render::Addresses;
use tidegate_core::model::{Markup, Skeleton, Time};
use tidegate_core::xml::ns::{DC, Ns, RDF};
use tidegate_core::xml::tree::{self, Element};

/// Whether a namespace belongs to the formats that are converted here, and has no use behind.
pub fn is_own(namespace: &str) -> bool {
    namespace == RDF || is_rss(namespace)
}

/// Whether a namespace is that of RSS 1.0 or 0.90.
fn is_rss(namespace: &str) -> bool {
    matches!(Ns::of(namespace), Some(Ns::Rss10 | Ns::Rss090))
}

/// The channel of a skeleton, without its items.
pub fn channel(skeleton: &Skeleton, addresses: &Addresses) -> Element {
    let mut channel = Element::new("", "channel");
    let root = read_skeleton(skeleton);
    let old = root.elements().find(|element| element.name == "channel");
    let mut image = None;
    for child in old.into_iter().flat_map(Element::elements) {
        match child.name.as_str() {
            // Both only point to elements beside the channel.
            "image" | "textinput" | "items" if is_own(&child.namespace) => {
                image = image.or((child.name == "image").then_some(child));
            }
            _ => channel.push(converted(child)),
        }
    }
    for beside in root.elements().filter(|element| is_own(&element.namespace)) {
        match beside.name.as_str() {
            "image" => channel.push(picked(beside, "image", &["url", "title", "link"])),
            "textinput" => {
                let names = ["title", "description", "name", "link"];
                channel.push(picked(beside, "textInput", &names));
            }
            _ => {}
        }
    }
    if let Some(image) = image.filter(|image| image.find(&image.namespace, "url").is_some())
        && channel.find("", "image").is_none()
    {
        channel.push(picked(image, "image", &["url", "title", "link"]));
    }
    // RSS 2.0 requires these three.
    let link = skeleton.link.as_deref().unwrap_or(&addresses.upstream);
    for (name, value) in
        [("title", skeleton.title.as_str()), ("link", link), ("description", &skeleton.title)]
    {
        if channel.find("", name).is_none() {
            channel.push_text(name, Some(value));
        }
    }
    if channel.find("", "language").is_none()
        && let Some(language) = channel.find(DC, "language").map(Element::content)
    {
        channel.push_text("language", Some(language.trim()));
    }
    channel
}

/// An item; `None` where its markup cannot be read.
pub fn item(markup: &Markup, target: &Target<'_>) -> Option<Element> {
    let old = read_entry(markup)?;
    let mut item = Element::new(target.namespace, "item");
    item.attributes.extend(old.inherited().cloned());
    let date = markup.card.published.or(markup.card.updated);
    let has_date =
        |name| old.elements().any(|child| is_own(&child.namespace) && child.name == name);
    let is_dated = date.is_some() || has_date("pubDate");
    for child in old.elements() {
        // RSS 2.0 has `pubDate` for it; both would say the same twice.
        if child.is(DC, "date") && is_dated {
            continue;
        }
        let mut child = converted(child);
        if child.namespace.is_empty() {
            child.namespace = target.namespace.to_owned();
        }
        item.push(child);
    }
    if item.find(target.namespace, "pubDate").is_none() {
        item.push_text("pubDate", date.map(Time::rfc822));
    }
    Some(item)
}

/// An element of RSS 1.0 as one of RSS 2.0; others as they are.
fn converted(old: &Element) -> Element {
    let mut new = old.clone();
    if is_rss(&new.namespace) {
        new.namespace.clear();
        new.prefix.clear();
        new.attributes.retain(|attribute| attribute.namespace != RDF);
        if matches!(new.name.as_str(), "link" | "url") {
            let address = new.content();
            new.children = vec![tree::Node::Text(address.trim().to_owned())];
        }
    }
    new
}

/// An element with those children of the old one that are named, in that order.
fn picked(old: &Element, name: &str, children: &[&str]) -> Element {
    let mut new = Element::new("", name);
    for child in children.iter().filter_map(|child| old.find(&old.namespace, child)) {
        new.push(converted(child));
    }
    new
}
