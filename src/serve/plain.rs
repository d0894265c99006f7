//! What kind of text a version has, and how it was written. Pure.

use quick_xml::events::Event;
use quick_xml::reader::Reader;
use serde_json::Value;
use tidegate_core::model::{Field, Format, Item, Markup, Version};
use tidegate_core::xml::reference;

/// The version whose text a new one begins with: the winner, or, where that is a deletion, the first
/// of the others that is none.
pub(super) fn begins(item: &Item) -> Option<&Version<Markup>> {
    let shared = &item.shared;
    std::iter::once(&shared.winner).chain(&shared.conflicts).find(|version| !version.deleted)
}

/// Whether an item is an outline of a list: its address and its place are none of what a form asks for.
pub(super) fn is_outline(item: &Item) -> bool {
    begins(item).is_some_and(|version| version.data.format == Format::Opml)
}

/// The text at a path as its author wrote it, with its lines: a field has the white space of its value
/// collapsed. `None` where that cannot be told.
pub(super) fn written(markup: &Markup, field: &Field<'_>) -> Option<String> {
    let text = match markup.format {
        Format::JsonFeed => json(&markup.xml, &field.path)?,
        _ => element(&markup.xml, &field.path)?,
    };
    // Whatever was not read as the field was is not what it says.
    let is_same = text.split_whitespace().eq(field.value.split_whitespace());
    is_same.then(|| text.trim().to_owned())
}

fn json(text: &str, path: &str) -> Option<String> {
    let item: Value = serde_json::from_str(text).ok()?;
    item.get(path)?.as_str().map(str::to_owned)
}

/// The text of the first child of the entry that is called so.
fn element(xml: &str, path: &str) -> Option<String> {
    let local = path.rsplit(':').next()?;
    let mut reader = Reader::from_str(xml);
    let (mut depth, mut text) = (0_usize, None::<String>);
    loop {
        let event = reader.read_event().ok()?;
        match &event {
            Event::Start(tag) => {
                if depth == 1 && tag.local_name().as_ref() == local {
                    text = Some(String::new());
                }
                depth += 1;
            }
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                if depth == 1 && text.is_some() {
                    return text;
                }
            }
            Event::Text(piece) => push(&mut text, piece),
            Event::CData(piece) => push(&mut text, piece),
            Event::GeneralRef(name) => {
                if let Some(text) = &mut text {
                    reference::push(text, name);
                }
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

fn push(text: &mut Option<String>, piece: &str) {
    if let Some(text) = text {
        text.push_str(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_format::parse::{self, Limits};

    fn lines(document: &str, path: &str) -> Option<String> {
        let document = parse::document(document, None, &Limits::default()).unwrap();
        let markup = parse::own(&document, &document.entries[0]);
        let fields = parse::again(&markup).unwrap();
        let field = fields.iter().find(|field| field.path == path).unwrap();
        assert!(!field.value.contains('\n'), "{field:?}");
        written(&markup, field)
    }

    #[test]
    fn a_text_keeps_its_lines() {
        let atom = |content: &str| {
            format!(
                "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>urn:1</id>{content}</entry>\
                 </feed>"
            )
        };
        let plain =
            atom("<content>\n One &amp; two\n\n  three &#x2014; <![CDATA[<four>]]>\n</content>");
        assert_eq!(lines(&plain, "content").as_deref(), Some("One & two\n\n  three — <four>"));
        let html = atom("<content type='html'>&lt;pre&gt;a\nb&lt;/pre&gt;</content>");
        assert_eq!(lines(&html, "content").as_deref(), Some("<pre>a\nb</pre>"));
        // Markup is not written as its text.
        let xhtml = "<div xmlns='http://www.w3.org/1999/xhtml'><p>a\nb</p></div>";
        assert_eq!(
            lines(&atom(&format!("<content type='xhtml'>{xhtml}</content>")), "content"),
            None
        );
        let rss = "<rss version='2.0' xmlns:m='http://search.yahoo.com/mrss/'><channel><item>\
                   <m:description>no</m:description><description>a\nb</description></item></channel></rss>";
        assert_eq!(lines(rss, "description"), None, "another element stands before it");
        let rss = rss.replace("<m:description>no</m:description>", "");
        assert_eq!(lines(&rss, "description").as_deref(), Some("a\nb"));
        let json = "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":\
                    [{\"id\":\"1\",\"content_text\":\"a\\n b\"}]}";
        assert_eq!(lines(json, "content_text").as_deref(), Some("a\n b"));
    }
}
