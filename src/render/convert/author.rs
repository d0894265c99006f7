//! Who a feed names as the author of all that it has.

use super::tree::{self, Element};
use super::{atom03, head, json_feed};
use crate::model::{Context, Format, Skeleton};
use crate::render::scope::ATOM;

/// The most authors of a feed that are told.
const AUTHORS_LIMIT: usize = 16;

/// The names of a feed's authors (RFC 4287 section 4.2.1 and its like in the other formats); none
/// where it names nobody.
pub fn authors(skeleton: &Skeleton) -> Vec<String> {
    match skeleton.format {
        Format::Atom10 | Format::Opml => {
            let feed = tree::read(&skeleton.text, &Context::default());
            named(&feed.unwrap_or_default())
        }
        Format::Atom03 => named(&atom03::feed(skeleton)),
        Format::JsonFeed => named(&json_feed::people(skeleton)),
        Format::Rss20 | Format::Rss09x | Format::Rss10 | Format::Rss090 => {
            head::author(&head::channel(skeleton)).into_iter().collect()
        }
    }
}

/// The names of the authors in an element of Atom: a feed, an entry or a source.
pub fn named(element: &Element) -> Vec<String> {
    let people = element.elements().filter(|child| child.is(ATOM, "author"));
    let names = people.filter_map(|person| person.find(ATOM, "name"));
    let names = names.map(|name| name.content().trim().to_owned());
    names.filter(|name| !name.is_empty()).take(AUTHORS_LIMIT).collect()
}
