//! The head of a feed from one family to the other.

use super::element::{Category, module};
use super::{Person, author, read_skeleton};
use crate::render::Addresses;
use tidegate_core::model::Skeleton;
use tidegate_core::xml::address::is_address;
use tidegate_core::xml::html::{plain_text, plain_text_if_html};
use tidegate_core::xml::ns::{ATOM, DC, ITUNES};
use tidegate_core::xml::tree::{Attribute, Element};

/// The channel of an RSS skeleton.
pub fn channel(skeleton: &Skeleton) -> Element {
    let root = read_skeleton(skeleton);
    let channel = root.elements().find(|element| element.name == "channel").cloned();
    channel.unwrap_or_default()
}

/// An Atom feed's own elements as those of a channel.
pub fn atom_to_rss(feed: &Element, skeleton: &Skeleton, addresses: &Addresses) -> Element {
    let mut channel = Element::new("", "channel");
    let said = |name| {
        let element = feed.find(ATOM, name)?;
        let text = element.words()?;
        let is_html = element.attribute("type").is_some_and(|kind| kind.contains("html"));
        // Where RSS has plain text.
        Some(if is_html && name != "subtitle" { plain_text(&text) } else { text })
            .filter(|text| !text.is_empty())
    };
    let known = Some(skeleton.title.clone()).filter(|title| !title.is_empty());
    let title = known.or_else(|| said("title")).unwrap_or_default();
    let link = skeleton.link.as_deref().unwrap_or(&addresses.upstream);
    // RSS 2.0 requires these three.
    channel.push_text("title", Some(&title));
    channel.push_text("link", Some(link));
    channel.push_text("description", said("subtitle").or_else(|| Some(title.clone())));
    let language = feed.own("lang").or(skeleton.context.lang.as_deref());
    channel.push_text("language", language.filter(|language| !language.is_empty()));
    channel.push_text("copyright", said("rights"));
    channel.push_text("generator", said("generator"));
    push_people(&mut channel, feed);
    for category in feed.elements().filter(|element| element.is(ATOM, "category")) {
        let mut category = Category::of_atom(category);
        category.label = category.label.filter(|label| *label != category.term);
        if !category.shown().is_empty() {
            category.push_rss(&mut channel, "");
        }
    }
    let (logo, icon) = (said("logo"), said("icon"));
    if let Some(picture) = logo.as_ref().or(icon.as_ref()) {
        let mut image = Element::new("", "image");
        for (name, text) in [("url", picture.as_str()), ("title", &title), ("link", link)] {
            image.push_text(name, Some(text));
        }
        channel.push(image);
    }
    if let (Some(_), Some(icon)) = (&logo, &icon) {
        channel.push(module("atom", ATOM, "icon", icon));
    }
    for other in feed.elements().filter(|element| is_other_link(element, skeleton)) {
        channel.push(other.clone().prefixed("atom"));
    }
    push_foreign(&mut channel, feed, ATOM);
    channel
}

/// Adds who made the feed. RSS wants electronic mail addresses in its own elements for that.
fn push_people(channel: &mut Element, feed: &Element) {
    for (kind, name) in [("author", "creator"), ("contributor", "contributor")] {
        for person in author::named(feed, kind) {
            channel.push(module("dc", DC, name, &person.name));
            let email = person.email.filter(|_| kind == "author");
            if let Some(email) = email.filter(|_| channel.find("", "managingEditor").is_none()) {
                let editor = format!("{email} ({})", person.name);
                channel.push_text("managingEditor", Some(editor));
            }
        }
    }
}

/// Whether an element is a link to something else than the feed's site.
fn is_other_link(element: &Element, skeleton: &Skeleton) -> bool {
    let address = element.attribute("href").filter(|address| is_address(address));
    let is_site = element.attribute("rel").is_none_or(|relation| relation == "alternate")
        && address == skeleton.link.as_deref();
    element.is(ATOM, "link") && address.is_some() && !is_site
}

/// A channel's own elements as those of an Atom feed. Its id is not among them: the gateway's
/// stands in.
pub fn rss_to_atom(channel: &Element, skeleton: &Skeleton) -> Element {
    let own = channel.namespace.as_str();
    let mut feed = Element::new(ATOM, "feed");
    let said = |space: &str, name| channel.words_of(space, name);
    let rights = said(own, "copyright").or_else(|| said(DC, "rights"));
    let image = channel.find(own, "image").and_then(|image| image.words_of(own, "url"));
    let cover = || channel.find(ITUNES, "image")?.value("href");
    for (name, text) in [
        ("title", Some(skeleton.title.clone())),
        ("rights", rights.as_deref().map(plain_text_if_html)),
        ("generator", said(own, "generator")),
        ("logo", image.or_else(|| said(ATOM, "logo")).or_else(cover)),
        ("icon", said(ATOM, "icon")),
    ] {
        feed.push_text(name, text);
    }
    if let Some(description) = said(own, "description").or_else(|| said(ITUNES, "summary")) {
        feed.push(Element::new(ATOM, "subtitle").with("type", "html").text(&description));
    }
    if let Some(link) = skeleton.link.as_deref().filter(|link| is_address(link)) {
        feed.push(super::element::link(ATOM, "alternate", link));
    }
    for other in channel.elements().filter(|element| is_other_link(element, skeleton)) {
        feed.push(other.clone().prefixed(""));
    }
    for category in channel.elements().filter(|element| element.is(own, "category")) {
        let category = Category::of_rss(category);
        if !category.term.is_empty() {
            feed.push(category.element(ATOM));
        }
    }
    // RFC 4287 section 4.1.1 wants an author somewhere.
    let mut authors = author::of_channel(channel);
    if authors.is_empty() {
        authors.push(Person::named(&skeleton.title));
    }
    for author in authors {
        feed.push(author.element(ATOM, "author"));
    }
    for helper in channel.elements().filter(|element| element.is(DC, "contributor")) {
        feed.push(Person::named(&helper.content()).element(ATOM, "contributor"));
    }
    let language = said(own, "language").or_else(|| said(DC, "language"));
    if let Some(language) = language.filter(|_| skeleton.context.lang.is_none()) {
        feed.attributes.push(Attribute::lang(&language));
    }
    push_foreign(&mut feed, channel, own);
    feed
}

/// Adds what belongs to neither family and was not converted.
fn push_foreign(to: &mut Element, from: &Element, own: &str) {
    let is_foreign = |element: &&Element| {
        let namespace = element.namespace.as_str();
        let is_converted = namespace == DC
            && matches!(element.name.as_str(), "creator" | "contributor" | "rights" | "language");
        !namespace.is_empty()
            && namespace != own
            && namespace != ATOM
            && !(is_converted && own != ATOM)
    };
    for foreign in from.elements().filter(is_foreign) {
        to.push(foreign.clone());
    }
}
