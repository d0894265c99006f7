//! Entries that stand in for bytes that are gone: a tombstone has a version, and a version has bytes.

use tidegate_core::model::{Card, Context, Family, Format, LedgerEntry, Markup, Slots};
use tidegate_core::xml;
use tidegate_core::xml::ns::ATOM;
use tidegate_format::parse::{self, Limits};

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
    let mut text = format!("<feed xmlns=\"{ATOM}\"><entry><id>");
    xml::push_text(&mut text, &known.native_shown);
    text.push_str("</id>");
    text.extend(known.published.map(|date| format!("<published>{date}</published>")));
    text.push_str("</entry></feed>");
    let document = parse::document(&text, None, &Limits::default()).ok();
    let markup =
        document.and_then(|document| Some(parse::own(&document, document.entries.first()?)));
    // Only a fault of this program can bring about that it cannot be read.
    markup.unwrap_or_else(|| nothing(Format::Atom10))
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
                // The same elements lie at the slots; behind the attributes a declaration was added.
                let (made, read) = (&markup.slots, &entry.slots);
                let inner = |text: &str, slots: &Slots| text.get(slots.inner?..).map(str::to_owned);
                assert_eq!(inner(&entry.markup, read), inner(&markup.xml, made), "{}", markup.xml);
                for (made, read) in [(&made.id, &read.id), (&made.id_element, &read.id_element)] {
                    let made = markup.xml.get(made.clone().unwrap()).unwrap();
                    assert_eq!(entry.markup.get(read.clone().unwrap()), Some(made));
                }
            }
        }
    }
}
