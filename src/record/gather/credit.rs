//! What an item of an aggregate says of the feed that it comes from: `atom:source` (RFC 4287 section
//! 4.2.11) and RSS's `source`.

use crate::model::{Format, Markup};
use crate::render::sx;

/// What is said of a feed.
#[derive(Debug, Clone, Copy)]
pub struct Credit<'a> {
    /// Its id.
    pub id: &'a str,
    /// What it is called.
    pub title: &'a str,
    /// Its address.
    pub address: &'a str,
    /// What references in its items are relative to, where they say nothing else.
    pub base: &'a str,
}

/// The entry with its source. One that names a source already keeps it, as does one in a format that
/// has no such element.
pub(super) fn credited(markup: &Markup, credit: &Credit<'_>) -> Markup {
    let mut markup = markup.clone();
    markup.context.base.get_or_insert_with(|| credit.base.to_owned());
    let names_one = markup.xml.contains("<source") || markup.xml.contains(":source");
    let (Some(inner), false) = (markup.slots.inner, names_one) else { return markup };
    let Some((before, after)) = markup.xml.split_at_checked(inner) else { return markup };
    let Credit { id, title, address, .. } = credit;
    let element = match markup.format {
        Format::Atom10 => format!(
            "<source xmlns=\"http://www.w3.org/2005/Atom\"><id>{}</id><title>{}</title>\
             <link rel=\"self\" href=\"{}\"/></source>",
            escaped(id),
            escaped(title),
            escaped(address)
        ),
        Format::Rss20 => {
            format!("<source url=\"{}\">{}</source>", escaped(address), escaped(title))
        }
        _ => return markup,
    };
    let mut slots = markup.slots.clone();
    let moved = |range: &mut std::ops::Range<usize>| {
        if range.start >= inner {
            *range = range.start + element.len()..range.end + element.len();
        }
    };
    for range in [&mut slots.id, &mut slots.id_element] {
        range.as_mut().map(moved);
    }
    Markup { xml: format!("{before}{element}{after}"), slots, ..markup }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    sx::text(&mut out, text);
    out.replace('"', "&quot;")
}
