//! The smallest document around an entry that stands alone, so that it can be read once more.

use tidegate_core::model::{Format, Markup};
use tidegate_core::xml::push_namespace;

/// Such a document; `None` where the entry's slots do not fit its text.
pub(super) fn document(markup: &Markup) -> Option<String> {
    let xml = markup.xml.as_str();
    if markup.format == Format::JsonFeed {
        return Some(format!(
            "{{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"\",\"items\":[{xml}]}}"
        ));
    }
    let attributes = markup.slots.attributes;
    let (start, rest) = (xml.get(..attributes)?, xml.get(attributes..)?);
    let is_bare = markup.namespace().is_empty();
    // The root bears a prefix of its own where its format has a namespace, so that it binds nothing
    // that the entry might use. An entry of Atom in no namespace is one in a feed of none alone.
    let (before, after) = match markup.format {
        Format::Atom03 if is_bare => ("<feed version=\"0.3\">", "</feed>"),
        Format::Atom10 if is_bare => ("<feed>", "</feed>"),
        Format::Atom03 => (
            "<around:feed version=\"0.3\" xmlns:around=\"http://purl.org/atom/ns#\">",
            "</around:feed>",
        ),
        Format::Atom10 | Format::JsonFeed | Format::Opml => {
            ("<around:feed xmlns:around=\"http://www.w3.org/2005/Atom\">", "</around:feed>")
        }
        Format::Rss20 => ("<rss version=\"2.0\"><channel>", "</channel></rss>"),
        Format::Rss09x => ("<rss version=\"0.92\"><channel>", "</channel></rss>"),
        Format::Rss10 | Format::Rss090 => (
            "<around:RDF xmlns:around=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">",
            "</around:RDF>",
        ),
    };
    let mut text = String::with_capacity(xml.len() + before.len() + after.len() + 256);
    text.push_str(before);
    text.push_str(start);
    for (prefix, namespace) in &markup.context.namespaces {
        push_namespace(&mut text, prefix, namespace);
    }
    text.push_str(rest);
    text.push_str(after);
    Some(text)
}

#[cfg(test)]
mod tests {
    use crate::parse::{self, Limits};
    use tidegate_core::model::{FeedDocument, Field};

    fn said(fields: &[Field<'_>]) -> Vec<(String, String)> {
        let pairs =
            fields.iter().map(|f| (f.path.clone().into_owned(), f.value.clone().into_owned()));
        pairs.collect()
    }

    fn read(text: &str) -> FeedDocument<'_> {
        parse::document(text, None, &Limits::default()).unwrap()
    }

    #[test]
    fn an_entry_of_no_namespace_says_the_same_again() {
        for root in ["<feed>", "<feed version=\"0.3\">", "<feed xmlns:a=\"urn:a\">"] {
            let text = format!("{root}<entry><id>i</id><title>t</title></entry></feed>");
            let document = read(&text);
            let entry = &document.entries[0];
            let again = parse::again(&parse::own(&document, entry)).unwrap();
            assert_eq!(said(&again), said(entry.fields()), "{root}");
        }
    }

    /// What an entry says on its own is what it said in its document, in every format.
    #[test]
    fn the_fixtures_say_the_same_again() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/feeds");
        let mut entries = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let decoded = parse::decode(&bytes, None, &Limits::default()).unwrap();
            let document = read(&decoded.text);
            for entry in &document.entries {
                let markup = parse::own(&document, entry);
                let again = parse::again(&markup).unwrap();
                assert_eq!(
                    said(&again),
                    said(entry.fields()),
                    "{}: {}",
                    path.display(),
                    markup.xml
                );
                entries += 1;
            }
        }
        assert!(entries > 10, "{entries}");
    }

    #[test]
    fn what_does_not_fit_is_no_entry() {
        let document =
            read("<rss version='2.0'><channel><item><title>A</title></item></channel></rss>");
        let mut markup = parse::own(&document, &document.entries[0]);
        assert!(parse::again(&markup).is_some());
        markup.slots.attributes = 9_999;
        assert!(parse::again(&markup).is_none());
        (markup.slots.attributes, markup.xml) = (0, String::new());
        assert!(parse::again(&markup).is_none());
    }
}
