//! Entries that stand in for bytes that are gone: a tombstone has a version, and a version has bytes.

use tidegate_core::model::{Card, Context, Family, Format, LedgerEntry, Markup, Slots};
use tidegate_core::xml::ns::ATOM;
use tidegate_core::xml::push_text;
use tidegate_format::parse::{self, Amendment};

/// An entry that says nothing.
pub(super) fn nothing(format: Format) -> Markup {
    let xml = match format {
        Format::JsonFeed => "{}",
        Format::Collection => "<item/>",
        _ if format.family() == Family::Atom => "<entry/>",
        _ => "<item/>",
    };
    let attributes = match format {
        Format::JsonFeed => 0,
        _ => xml.len() - "/>".len(),
    };
    let namespace = (xml == "<entry/>").then(|| (String::new(), ATOM.to_owned()));
    Markup {
        format,
        xml: xml.to_owned(),
        context: Context { namespaces: namespace.into_iter().collect(), ..Context::default() },
        slots: Slots { attributes, ..Slots::default() },
        card: Card::default(),
    }
}

/// An entry that says an item's native id and when it was published, in Atom: no other text of it is left.
pub(super) fn named(known: &LedgerEntry) -> Markup {
    let mut xml = "<entry><id>".to_owned();
    push_text(&mut xml, &known.native_shown);
    xml.push_str("</id>");
    if let Some(date) = known.published {
        xml.push_str(&format!("<published>{date}</published>"));
    }
    xml.push_str("</entry>");
    let unread = Markup { xml, ..nothing(Format::Atom10) };
    // Reading it tells where its parts stand.
    parse::amended_markup(&unread, &Amendment::default()).unwrap_or(unread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::same_item;
    use tidegate_core::model::Time;

    /// Whoever reads what stands in again, as an aggregate does, finds the item that it stands in for.
    #[test]
    fn what_says_a_name_is_read_again() {
        let date = Some(Time::from_unix(1_767_225_600));
        for name in ["urn:a", "http://a.example/?a=1&b=<2>", "title:\"So\" it's", "ä \u{1}"] {
            for published in [date, None] {
                let markup = named(&LedgerEntry { published, ..LedgerEntry::left(name) });
                let entry = tidegate_format::parse::entry_again(&markup).unwrap();
                let plain = name.replace('\u{1}', "");
                assert_eq!(same_item::native(&entry), plain.trim(), "{}", markup.xml);
                assert_eq!((entry.published, markup.card.published), (published, published));
                assert!(!markup.xml.get(markup.slots.id.unwrap()).unwrap().is_empty());
            }
        }
    }
}
