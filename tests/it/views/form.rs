//! Well-formedness (XML 1.0 and Namespaces in XML), by quick-xml and what it leaves to its callers.

use quick_xml::NsReader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;

/// What is wrong with a document; `None` where it is well-formed.
pub fn flaw(text: &str) -> Option<String> {
    if let Some(odd) = text.chars().find(|c| !is_char(*c)) {
        return Some(format!("{odd:?} is no character of XML"));
    }
    let mut reader = NsReader::from_str(text);
    let config = reader.config_mut();
    config.check_comments = true;
    config.check_end_names = true;
    let (mut depth, mut roots) = (0_usize, 0_usize);
    loop {
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => return Some(format!("{error} at {}", reader.error_position())),
        };
        let wrong = match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                roots += usize::from(depth == 0);
                depth += usize::from(matches!(event, Event::Start(_)));
                element(&reader, tag)
            }
            Event::End(_) => {
                depth -= 1;
                None
            }
            Event::Text(text) => {
                let text: &str = text;
                (depth == 0 && !text.trim().is_empty())
                    .then(|| format!("{text:?} outside the root"))
            }
            Event::GeneralRef(name) => reference(name),
            Event::Eof if depth > 0 => Some(format!("{depth} elements are open at the end")),
            Event::Eof if roots != 1 => Some(format!("{roots} root elements")),
            Event::Eof => return None,
            _ => None,
        };
        if wrong.is_some() {
            return wrong.map(|wrong| format!("{wrong} before {}", reader.buffer_position()));
        }
    }
}

const fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// The five references that need no declaration, and those to characters.
fn reference(name: &str) -> Option<String> {
    let number = name.strip_prefix('#').map(|number| {
        let hexadecimal = number.strip_prefix('x').map(|digits| u32::from_str_radix(digits, 16));
        hexadecimal.unwrap_or_else(|| number.parse())
    });
    let good = match number {
        Some(number) => number.ok().and_then(char::from_u32).is_some_and(is_char),
        None => matches!(name, "amp" | "lt" | "gt" | "quot" | "apos"),
    };
    (!good).then(|| format!("&{name}; is not defined"))
}

fn element(reader: &NsReader<&[u8]>, tag: &BytesStart<'_>) -> Option<String> {
    let shown = tag.to_string();
    let unbound = |resolved: &ResolveResult<'_>| matches!(resolved, ResolveResult::Unknown(_));
    if unbound(&reader.resolver().resolve_element(tag.name()).0) {
        return Some(format!("<{shown}> has a prefix that is not bound"));
    }
    for attribute in tag.attributes() {
        let attribute = match attribute {
            Ok(attribute) => attribute,
            Err(error) => return Some(format!("<{shown}>: {error}")),
        };
        if unbound(&reader.resolver().resolve_attribute(attribute.key).0) {
            return Some(format!("<{shown}> has an attribute whose prefix is not bound"));
        }
        let value = attribute.value.into_owned();
        if value.contains('<') {
            return Some(format!("<{shown}> has < in an attribute"));
        }
        for piece in value.split('&').skip(1) {
            let wrong = match piece.split_once(';') {
                Some((name, _)) => reference(name),
                None => Some("& without a name".to_owned()),
            };
            if wrong.is_some() {
                return wrong;
            }
        }
    }
    None
}
