//! What kind of text a version has, and plain text made ready to be compared as HTML. Pure.

use crate::model::{Field, Format, Item, Markup, Version};
use quick_xml::XmlVersion;
use quick_xml::escape::escape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use serde_json::Value;

/// The version whose text a new one begins with: the winner, or, where that is a deletion, the first
/// of the others that is none.
pub(super) fn begins(item: &Item) -> Option<&Version<Markup>> {
    let shared = &item.shared;
    std::iter::once(&shared.winner).chain(&shared.conflicts).find(|version| !version.deleted)
}

/// Whether the text at a path is HTML, as its format or its `type` says.
pub(super) fn is_html(path: &str, fields: &[Field<'_>]) -> bool {
    match path {
        "content_text" => false,
        "content" | "summary" => {
            let named = |field: &&Field<'_>| field.path.strip_suffix("@type") == Some(path);
            fields.iter().find(named).is_some_and(|field| is_html_type(&field.value))
        }
        _ => true,
    }
}

fn is_html_type(said: &str) -> bool {
    let essence = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(essence.as_str(), "html" | "xhtml" | "text/html" | "application/xhtml+xml")
}

/// The same entry, its plain texts escaped once more: read as HTML, they say what they say. `None`
/// where it cannot be read.
pub(super) fn escaped(markup: &Markup) -> Option<Markup> {
    let xml = match markup.format {
        Format::JsonFeed => json(&markup.xml)?,
        Format::Atom10 | Format::Opml => atom(&markup.xml)?,
        _ => return Some(markup.clone()),
    };
    Some(Markup { xml, ..markup.clone() })
}

fn json(text: &str) -> Option<String> {
    let mut item: Value = serde_json::from_str(text).ok()?;
    for key in ["content_text", "summary"] {
        if let Some(Value::String(text)) = item.get_mut(key) {
            *text = escape(text.as_str()).into_owned();
        }
    }
    Some(item.to_string())
}

/// Only what stands in the texts is written anew, so that places before them stay.
fn atom(xml: &str) -> Option<String> {
    let mut reader = Reader::from_str(xml);
    let mut out = String::with_capacity(xml.len() + 64);
    let (mut depth, mut is_plain) = (0_usize, false);
    loop {
        let start = usize::try_from(reader.buffer_position()).ok()?;
        let event = reader.read_event().ok()?;
        let end = usize::try_from(reader.buffer_position()).ok()?;
        let piece = xml.get(start..end)?;
        match &event {
            Event::Start(tag) => {
                if depth == 1 {
                    is_plain = is_plain_text(tag);
                }
                depth += 1;
            }
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                is_plain &= depth > 1;
            }
            Event::GeneralRef(_) if is_plain => {
                out.push_str(&piece.replace('&', "&amp;"));
                continue;
            }
            Event::CData(text) if is_plain => {
                out.push_str(&escape(escape(&**text).as_ref()));
                continue;
            }
            Event::Eof => return Some(out),
            _ => {}
        }
        out.push_str(piece);
    }
}

fn is_plain_text(tag: &BytesStart<'_>) -> bool {
    if !matches!(tag.local_name().as_ref(), "content" | "summary") {
        return false;
    }
    let mut attributes = tag.attributes().flatten();
    let said = attributes.find(|attribute| attribute.key.as_ref() == "type");
    let said = said.and_then(|a| a.normalized_value(XmlVersion::Implicit1_0).ok());
    said.is_none_or(|said| !is_html_type(&said))
}
