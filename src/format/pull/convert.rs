//! An item of one family written as one of the other, by what converts feeds; and one of RSS in the
//! namespace that the elements of another document are in.

use super::splice::SpliceTarget;
use crate::parse::sse::Payload;
use crate::render::{self, Base, Neutral, collection_item::CollectionItem};
use tidegate_core::model::{Card, Context, Family, Format, Markup, Slots, Time};
use tidegate_core::xml::address;
use tidegate_core::xml::ns::ATOM;
use tidegate_core::xml::tree::{self, Element};
use url::Url;

/// What a payload says in the markup of the target; `None` where it is that already. `id` identifies
/// it and `made` is the time of its last known update.
pub(super) fn to(
    target: &SpliceTarget<'_>,
    payload: &Payload,
    id: &str,
    made: Option<Time>,
) -> Option<Payload> {
    if payload.family != target.family {
        return Some(converted(target, payload, id, made));
    }
    let is_moved = payload.family == Family::Rss && payload.namespace != target.rss;
    if is_moved { moved(target.rss, payload) } else { None }
}

/// In the other family.
fn converted(
    target: &SpliceTarget<'_>,
    payload: &Payload,
    id: &str,
    made: Option<Time>,
) -> Payload {
    let namespace = match target.family {
        Family::Atom => ATOM,
        Family::Rss => target.rss,
    };
    let written = render::Target { family: target.family, namespace };
    let markup = markup(payload);
    // Around the element: what it names itself is resolved within it, and needed no more then.
    let around = if payload.has_base { &payload.base } else { &markup.context.base };
    let around = Base::new(around.as_deref().unwrap_or_default());
    let kept = target.is_collection.then(|| CollectionItem::from_entry(&markup)).flatten();
    if let Some(CollectionItem::Pox(nodes)) = kept {
        // What came out of a collection goes into one as it came.
        let mut item = Element::new(namespace, "item");
        item.children = nodes;
        tree::move_namespace(&mut item, "", namespace);
        return rewritten(target, payload, &item, &written, &markup);
    }
    let mut element = Neutral::of(&markup, &around).element(&written, made);
    element.attributes.retain(|attribute| attribute.prefix != "xml" || attribute.name != "base");
    if target.family == Family::Rss && payload.values.title.is_none() {
        // RSS does without a title; Atom does not.
        element
            .children
            .retain(|node| !matches!(node, tree::Node::Element(e) if e.is(namespace, "title")));
    }
    let own = match (target.family, &payload.values.id) {
        // An Atom id is an IRI (RFC 4287 section 4.2.6); a guid may be any text.
        (Family::Atom, Some(id)) if address::is_address(id) => Some(id.clone()),
        (Family::Atom, _) => Some(format!("x-sync-id:{}", address::percent_encoded(id))),
        (Family::Rss, id) => id.clone(),
    };
    if let Some(own) = own {
        element.push(match target.family {
            Family::Atom => Element::new(namespace, "id").text(&own),
            Family::Rss => Element::new(namespace, "guid").with("isPermaLink", "false").text(&own),
        });
    }
    rewritten(target, payload, &element, &written, &markup)
}

fn rewritten(
    target: &SpliceTarget<'_>,
    payload: &Payload,
    element: &Element,
    written: &render::Target<'_>,
    before: &Markup,
) -> Payload {
    let markup = render::write_entry(element, written, &before.card, &before.context);
    let sync = markup.slots.inner.unwrap_or(markup.slots.attributes);
    let needs = markup.context.namespaces;
    let mut payload = payload.rewritten(
        (target.family, written.namespace),
        markup.xml,
        markup.slots.attributes,
        sync,
        needs,
    );
    payload.has_lang = element.inherited().any(|attribute| attribute.name == "lang");
    (payload.base, payload.lang) = (markup.context.base, markup.context.lang);
    payload
}

/// In another namespace of RSS, everything else as it is; `None` where it cannot be read.
fn moved(namespace: &str, payload: &Payload) -> Option<Payload> {
    let context = Context { namespaces: payload.needs.clone(), base: None, lang: None };
    let mut root = tree::read(&payload.xml, &context)?;
    tree::move_namespace(&mut root, &payload.namespace, namespace);
    let mut needs = tree::bindings(&root);
    needs.insert(0, (String::new(), namespace.to_owned()));
    let mut xml = String::new();
    tree::write(&mut xml, &root, &mut needs.clone());
    // The writer ends no tag before its end, and lets no `>` into a value.
    let end = xml.find('>')?;
    let is_empty = xml.get(..end)?.ends_with('/');
    let sync = if is_empty { end } else { end + 1 };
    if is_empty {
        xml = format!("{}></{}>", xml.get(..end - 1)?, root.name);
    }
    let (has_lang, has_base) = (payload.has_lang, payload.has_base);
    let attributes = 1 + root.name.len();
    let mut moved = payload.rewritten((Family::Rss, namespace), xml, attributes, sync, needs);
    (moved.has_lang, moved.has_base) = (has_lang, has_base);
    Some(moved)
}

/// A payload as the entry of a feed.
pub(super) fn markup(payload: &Payload) -> Markup {
    let values = &payload.values;
    let own_lang = || {
        let context = Context { namespaces: payload.needs.clone(), base: None, lang: None };
        let root = tree::read(&payload.xml, &context)?;
        root.inherited().find(|attribute| attribute.name == "lang").map(|own| own.value.clone())
    };
    let base = values.base.clone().or_else(|| payload.base.clone());
    let lang = if payload.has_lang { own_lang() } else { payload.lang.clone() };
    Markup {
        format: match payload.family {
            Family::Atom => Format::Atom10,
            Family::Rss => Format::Rss20,
        },
        xml: payload.xml.clone(),
        card: Card {
            title: values.title.clone().unwrap_or_default(),
            link: values.link.as_deref().map(|link| absolute(link, base.as_deref())),
            author: values.author.clone(),
            published: values.published,
            updated: values.date,
        },
        context: Context { namespaces: payload.needs.clone(), base, lang },
        slots: Slots::default(),
    }
}

/// A link by the base that it stands in; as it is where there is none.
fn absolute(link: &str, base: Option<&str>) -> String {
    let base = base.and_then(|base| Url::parse(base).ok());
    address::resolve(link.into(), base.as_ref()).map_or_else(String::new, Into::into)
}
