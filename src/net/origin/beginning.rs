//! What the beginning of a document tells: whether it can be a feed at all.

use memchr::memmem;

/// The names of the first elements of feeds, without their prefixes.
const FEEDS: [&[u8]; 3] = [b"feed", b"rss", b"RDF"];
/// Elements of web pages. Programs that fail print them before the document.
const OF_PAGES: [&[u8]; 21] = [
    b"html", b"head", b"body", b"script", b"style", b"meta", b"link", b"title", b"div", b"span",
    b"p", b"br", b"b", b"center", b"pre", b"font", b"table", b"h1", b"h2", b"h3", b"strong",
];

/// Whether a document that begins so is no feed, whatever follows: its first element is that of another kind of
/// XML. As long as this is not known it may be one.
pub fn is_no_feed(beginning: &[u8]) -> bool {
    first_element(beginning).is_some_and(|name| {
        let local = name.rsplit(|c| *c == b':').next().unwrap_or(name);
        let is_of_page = OF_PAGES.iter().any(|known| local.eq_ignore_ascii_case(known));
        !FEEDS.contains(&local) && !is_of_page
    })
}

/// The name of the first element, where it is there in full.
fn first_element(beginning: &[u8]) -> Option<&[u8]> {
    let mut rest = beginning.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(beginning);
    loop {
        rest = rest.trim_ascii_start();
        rest = if let Some(comment) = rest.strip_prefix(b"<!--") {
            behind(comment, b"-->")?
        } else if let Some(instruction) = rest.strip_prefix(b"<?") {
            behind(instruction, b"?>")?
        } else if rest.starts_with(b"<!") {
            let end = rest.iter().position(|c| matches!(c, b'>' | b'['))?;
            // Declarations of its own may have anything in them.
            rest.get(end..)?.strip_prefix(b">")?
        } else {
            break;
        };
    }
    let named = rest.strip_prefix(b"<")?;
    let end = named.iter().position(|c| c.is_ascii_whitespace() || matches!(c, b'/' | b'>'))?;
    named.get(..end).filter(|name| name.first().is_some_and(u8::is_ascii_alphabetic))
}

/// What comes behind the first `end`.
fn behind<'t>(text: &'t [u8], end: &[u8]) -> Option<&'t [u8]> {
    let at = memmem::find(text, end)?;
    text.get(at..)?.get(end.len()..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kind_of_xml_is_told_by_its_first_element() {
        for other in [
            "<urlset xmlns='x'>",
            "\u{FEFF} <?xml version='1.0'?>\n<!-- a <rss> --><x:list>",
            "<!DOCTYPE note SYSTEM 'n.dtd'><note/>",
            "<opml version='2.0'>",
        ] {
            assert!(is_no_feed(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn what_may_be_a_feed_still_is_read_on() {
        for open in [
            "",
            " \n",
            "<",
            "<urlse",
            "<?xml version='1.0'",
            "<!-- <urlset> ",
            "<!DOCTYPE rss [<!ENTITY a '<urlset>'>]><rss>",
            "<rss version='2.0'>",
            "<?xml version='1.0'?><a:feed xmlns:a='x'>",
            "<rdf:RDF >",
            "{\"version\":",
            "[1]",
            "Warning: no such file <urlset>",
            "<br />\n<b>Warning</b>: x<?xml version='1.0'?><rss>",
            "<!doctype html><html>",
            "\0<\0u\0r\0l\0>",
        ] {
            assert!(!is_no_feed(open.as_bytes()), "{open}");
        }
    }
}
