//! An item of one family written as one of the other: title, content, link, id, author and date.

use crate::model::{Family, Time};
use crate::parse::sse::{ATOM, Payload};
use crate::render::sx;

/// The namespace of `dc:creator`, for authors who are not addresses.
const DC: &str = "http://purl.org/dc/elements/1.1/";

/// What a payload says as an item of `family`. `id` identifies it and `made` the time of its last
/// known update; `rss` is the namespace of RSS's own elements.
pub(super) fn to(
    family: Family,
    rss: &str,
    payload: &Payload,
    id: &str,
    made: Option<Time>,
) -> Payload {
    match family {
        Family::Atom => atom(payload, id, payload.values.date.or(made)),
        Family::Rss => self::rss(rss, payload),
    }
}

fn atom(payload: &Payload, id_of_item: &str, date: Option<Time>) -> Payload {
    let values = &payload.values;
    let mut xml = String::from("<entry>");
    let sync = xml.len();
    element(&mut xml, "title", values.title.as_deref().unwrap_or_default());
    let id = match &values.id {
        // An Atom id is an IRI (RFC 4287 section 4.2.6); a guid may be any text.
        Some(id) if is_absolute(id) => id.clone(),
        _ => format!("x-sync-id:{}", percent_encoded(id_of_item)),
    };
    element(&mut xml, "id", &id);
    // Atom wants a date, but an invented one would be worse than none.
    if let Some(date) = date {
        element(&mut xml, "updated", &date.to_string());
    }
    if let Some(author) = &values.author {
        xml.push_str("<author>");
        element(&mut xml, "name", author);
        xml.push_str("</author>");
    }
    if let Some(link) = &values.link {
        xml.push_str("<link");
        sx::attribute(&mut xml, "href", link);
        xml.push_str("/>");
    }
    if let Some(text) = &values.text {
        xml.push_str(if values.html { "<content type=\"html\">" } else { "<content>" });
        sx::text(&mut xml, text);
        xml.push_str("</content>");
    }
    xml.push_str("</entry>");
    let needs = vec![(String::new(), ATOM.to_owned())];
    payload.rewritten(Family::Atom, xml, "<entry".len(), sync, needs)
}

fn rss(namespace: &str, payload: &Payload) -> Payload {
    let values = &payload.values;
    let mut xml = String::from("<item>");
    let sync = xml.len();
    let mut needs = vec![(String::new(), namespace.to_owned())];
    if let Some(title) = &values.title {
        element(&mut xml, "title", title);
    }
    if let Some(link) = &values.link {
        element(&mut xml, "link", link);
    }
    if let Some(text) = &values.text {
        xml.push_str("<description>");
        if values.html {
            sx::text(&mut xml, text);
        } else {
            // A description is HTML, so plain text is escaped for it and then for XML.
            let mut html = String::new();
            sx::text(&mut html, text);
            sx::text(&mut xml, &html);
        }
        xml.push_str("</description>");
    }
    if let Some(author) = &values.author {
        element(&mut xml, "dc:creator", author);
        needs.push(("dc".to_owned(), DC.to_owned()));
    }
    if let Some(id) = &values.id {
        xml.push_str("<guid isPermaLink=\"false\">");
        sx::text(&mut xml, id);
        xml.push_str("</guid>");
    }
    if let Some(date) = values.date {
        element(&mut xml, "pubDate", &date.rfc822());
    }
    xml.push_str("</item>");
    payload.rewritten(Family::Rss, xml, "<item".len(), sync, needs)
}

fn element(xml: &mut String, name: &str, text: &str) {
    xml.push('<');
    xml.push_str(name);
    xml.push('>');
    sx::text(xml, text);
    xml.push_str("</");
    xml.push_str(name);
    xml.push('>');
}

/// Whether a text has the form of an absolute IRI: a scheme, a colon, and no blanks.
fn is_absolute(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(fits)
        && !rest.is_empty()
        && !text.contains(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"'))
}

/// A text with everything but unreserved characters of RFC 3986 written as percent and hexadecimal.
fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
