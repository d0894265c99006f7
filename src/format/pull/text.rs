//! From a file's bytes to text.

use crate::parse::sse::{SseError, SseFault, Tree};
use encoding_rs::{Encoding, UTF_8};
use tidegate_core::xml::strict::TreeError;

/// Where the XML declaration must end, in bytes; it is far shorter.
const DECLARATION_LIMIT: usize = 1024;

/// Decodes a document: by its byte order mark, else by its XML declaration, else as UTF-8. What is
/// printed later is UTF-8, so a declaration that says otherwise is made to say so.
pub(super) fn decode(bytes: &[u8]) -> Result<String, SseError> {
    let declared = declaration(bytes).and_then(|text| encoding_name(&text));
    let encoding = match Encoding::for_bom(bytes) {
        Some((encoding, _)) => encoding,
        None => declared
            .as_ref()
            .and_then(|(_, label)| Encoding::for_label(label.as_bytes()))
            // A declaration that can be read as ASCII is not in UTF-16, whatever it says.
            .filter(|encoding| encoding.is_ascii_compatible())
            .unwrap_or(UTF_8),
    };
    let (text, malformed) = encoding.decode_with_bom_removal(bytes);
    if malformed {
        let good = text.split('\u{fffd}').next().unwrap_or_default();
        let line = good.matches('\n').count() + 1;
        return Err(SseError { line, fault: SseFault::Charset(encoding.name().to_owned()) });
    }
    let mut text = text.into_owned();
    labelled_utf8(&mut text);
    Ok(text)
}

/// Makes an XML declaration that names another charset name UTF-8.
pub(super) fn labelled_utf8(text: &mut String) {
    let label = text.get(..text.find("?>").unwrap_or(0)).and_then(encoding_name);
    if let Some((at, label)) = label.filter(|(_, label)| !label.eq_ignore_ascii_case("utf-8")) {
        text.replace_range(at..at + label.len(), "utf-8");
    }
}

/// Whether a text is JSON, or meant to be.
pub(super) fn is_json(text: &str) -> bool {
    let ignored = |c: char| c.is_whitespace() || c == '\u{feff}' || c.is_control();
    text.trim_start_matches(ignored).starts_with(['{', '['])
}

/// The XML declaration, where the document begins with one that is ASCII.
fn declaration(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..bytes.len().min(DECLARATION_LIMIT))?;
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let end = memchr::memmem::find(head, b"?>")?;
    let text = std::str::from_utf8(head.get(..end)?).ok()?;
    text.starts_with("<?xml").then(|| text.to_owned())
}

/// The text with a start tag and an end tag where its root is an empty-element tag, so that items can
/// be put into it: a collection that has none yet is one (FeedSync for Collections section 2.2).
pub(super) fn opened(text: String) -> Result<String, SseError> {
    let Some((before, after)) = text.trim_end().rsplit_once("/>") else { return Ok(text) };
    if !after.is_empty() || before.contains("</") {
        return Ok(text);
    }
    let tree = Tree::read(&text).map_err(TreeError::map)?;
    match tree.root() {
        Some(root) if root.inner.is_none() => Ok(format!("{before}></{}>\n", root.name)),
        _ => Ok(text),
    }
}

/// The value of `encoding` in an XML declaration, and its place.
fn encoding_name(declaration: &str) -> Option<(usize, String)> {
    if !declaration.starts_with("<?xml") {
        return None;
    }
    let name = declaration.find("encoding")?;
    let open = name + declaration.get(name..)?.find(['"', '\''])?;
    let quote = declaration.get(open..)?.chars().next()?;
    let value = declaration.get(open + 1..)?.split(quote).next()?;
    Some((open + 1, value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charsets_are_decoded_and_the_declaration_follows() {
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?>\n<a>\xe9</a>";
        assert_eq!(
            decode(latin).as_deref(),
            Ok("<?xml version='1.0' encoding='utf-8'?>\n<a>é</a>")
        );
        let mut wide = vec![0xff, 0xfe];
        wide.extend(
            "<?xml version=\"1.0\" encoding=\"UTF-16\"?><a/>"
                .encode_utf16()
                .flat_map(u16::to_le_bytes),
        );
        assert_eq!(decode(&wide).as_deref(), Ok("<?xml version=\"1.0\" encoding=\"utf-8\"?><a/>"));
        assert_eq!(decode(b"\xef\xbb\xbf<a>\xc3\xa9</a>").as_deref(), Ok("<a>é</a>"));
    }

    #[test]
    fn bytes_that_are_not_of_the_charset_are_named_with_their_line() {
        let said = decode(b"<a>\n\n\xff</a>").map_err(|error| error.to_string());
        let wanted = "line 3: the document is not in the charset UTF-8 that it is said to be in";
        assert_eq!(said, Err(wanted.to_owned()));
    }
}
