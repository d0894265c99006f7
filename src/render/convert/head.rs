//! The head of a feed from one family to the other.

use super::neutral::DUBLIN_CORE;
use super::tree::{self, Attribute, Element};
use crate::model::{Context, Skeleton};
use crate::render::Addresses;
use crate::render::scope::ATOM;

/// The channel of an RSS skeleton.
pub fn channel(skeleton: &Skeleton) -> Element {
    let root = tree::read(&skeleton.text, &Context::default()).unwrap_or_default();
    let channel = root.elements().find(|element| element.name == "channel").cloned();
    channel.unwrap_or_default()
}

/// Who a channel names as its author.
pub fn author(channel: &Element) -> Option<String> {
    let creator = channel.find(DUBLIN_CORE, "creator");
    let editor = || channel.find(&channel.namespace, "managingEditor");
    let named = |element: &Element| Some(element.content().trim().to_owned());
    let is_said = |name: &String| !name.is_empty();
    creator.and_then(named).filter(is_said).or_else(|| editor().and_then(named).filter(is_said))
}

/// An Atom feed's own elements as those of a channel.
pub fn atom_to_rss(feed: &Element, skeleton: &Skeleton, addresses: &Addresses) -> Element {
    let mut channel = Element::new("", "channel");
    let mut push = |name: &str, text: &str| channel.push(Element::new("", name).text(text));
    let said = |name| feed.find(ATOM, name).map(|element| element.content().trim().to_owned());
    let known = Some(skeleton.title.clone()).filter(|title| !title.is_empty());
    let title = known.or_else(|| said("title")).unwrap_or_default();
    let link = skeleton.link.as_deref().unwrap_or(&addresses.upstream);
    // RSS 2.0 requires these three.
    push("title", &title);
    push("link", link);
    push("description", &said("subtitle").unwrap_or_else(|| title.clone()));
    if let Some(language) = &skeleton.context.lang {
        push("language", language);
    }
    if let Some(rights) = said("rights") {
        push("copyright", &rights);
    }
    if let Some(generator) = said("generator") {
        push("generator", &generator);
    }
    for category in feed.elements().filter(|element| element.is(ATOM, "category")) {
        if let Some(name) = category.attribute("label").or_else(|| category.attribute("term")) {
            push("category", name);
        }
    }
    if let Some(picture) = said("logo").or_else(|| said("icon")) {
        let part = |name: &str, text: &str| Element::new("", name).text(text);
        let image = Element::new("", "image").child(part("url", &picture));
        channel.push(image.child(part("title", &title)).child(part("link", link)));
    }
    push_foreign(&mut channel, feed, ATOM);
    channel
}

/// A channel's own elements as those of an Atom feed. Its id is not among them: the gateway's stands
/// in.
pub fn rss_to_atom(channel: &Element, skeleton: &Skeleton) -> Element {
    let own = channel.namespace.as_str();
    let mut feed = Element::new(ATOM, "feed");
    let mut push = |name: &str, text: &str| feed.push(Element::new(ATOM, name).text(text));
    let said = |name| {
        let found = channel.find(own, name).map(|element| element.content().trim().to_owned());
        found.filter(|text| !text.is_empty())
    };
    push("title", &skeleton.title);
    if let Some(rights) = said("copyright") {
        push("rights", &rights);
    }
    if let Some(generator) = said("generator") {
        push("generator", &generator);
    }
    let image = channel.find(own, "image").and_then(|image| image.find(own, "url"));
    if let Some(url) = image {
        push("logo", url.content().trim());
    }
    if let Some(description) = said("description") {
        feed.push(Element::new(ATOM, "subtitle").with("type", "html").text(&description));
    }
    if let Some(link) = &skeleton.link {
        feed.push(Element::new(ATOM, "link").with("rel", "alternate").with("href", link));
    }
    for category in channel.elements().filter(|element| element.is(own, "category")) {
        feed.push(Element::new(ATOM, "category").with("term", category.content().trim()));
    }
    // RFC 4287 section 4.1.1 wants an author somewhere.
    let name = author(channel).unwrap_or_else(|| skeleton.title.clone());
    let name = Element::new(ATOM, "name").text(name.trim());
    feed.push(Element::new(ATOM, "author").child(name));
    if let Some(language) = said("language").filter(|_| skeleton.context.lang.is_none()) {
        feed.attributes.push(Attribute::lang(&language));
    }
    push_foreign(&mut feed, channel, own);
    feed
}

/// Adds what belongs to neither family.
fn push_foreign(to: &mut Element, from: &Element, own: &str) {
    let is_foreign = |element: &&Element| {
        let namespace = element.namespace.as_str();
        !namespace.is_empty() && namespace != own && namespace != ATOM
    };
    for foreign in from.elements().filter(is_foreign) {
        to.push(foreign.clone());
    }
}
