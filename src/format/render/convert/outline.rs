//! Outlines of lists as entries: Atom already, but for what RFC 4287 wants of every entry.

use tidegate_core::model::{Context, Markup, Skeleton, Time};
use tidegate_core::xml::ns::ATOM;
use tidegate_core::xml::tree::{self, Element};

/// The feed element of a skeleton, without what is known of the list alone.
pub fn feed(skeleton: &Skeleton) -> Element {
    tree::read(&skeleton.text, &Context::default()).unwrap_or_default()
}

/// An outline as an entry; `None` where its markup cannot be read.
pub fn entry(markup: &Markup, seen: Option<Time>) -> Option<Element> {
    let mut entry = tree::read(&markup.xml, &markup.context)?;
    entry.children.retain(|node| !matches!(node, tree::Node::Element(e) if e.is(ATOM, "id")));
    if entry.find(ATOM, "updated").is_none()
        && let Some(seen) = seen.or(markup.card.published)
    {
        entry.push(Element::new(ATOM, "updated").text(&seen.to_string()));
    }
    Some(entry)
}
