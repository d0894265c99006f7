//! What an item of an aggregate says of the feed that it comes from: `atom:source` (RFC 4287 section
//! 4.2.11) and RSS's `source`.

use tidegate_core::model::{Format, Markup, Slots};
use tidegate_core::xml;
use tidegate_core::xml::ns::{ATOM, DC};
use tidegate_format::render::Bases;

/// What is said of a feed.
#[derive(Debug, Clone, Default)]
pub struct Credit {
    pub id: String,
    /// What it is called.
    pub title: String,
    /// Whom it names as its authors, who are those of an item that names none itself.
    pub authors: Vec<String>,
    pub address: String,
    /// What references in its items are relative to, where they say nothing else.
    pub base: String,
    /// Of the page of the whole feed.
    pub page: Option<String>,
}

/// The entry with its source. One that names a source already keeps it, as does one in a format that
/// has no such element.
pub(super) fn credited(markup: &Markup, credit: &Credit) -> Markup {
    // Around it is another document now.
    let bases = Bases { document: &credit.base, channel: credit.page.as_deref() };
    let mut markup = bases.stand_alone(markup.clone());
    if markup.xml.contains("<source") || markup.xml.contains(":source") {
        return markup;
    }
    let is_anonymous = markup.card.author.is_none();
    if is_anonymous {
        markup.card.author = credit.authors.first().cloned();
    }
    let Some(inner) = markup.slots.inner else { return markup };
    let Some((before, after)) = markup.xml.split_at_checked(inner) else { return markup };
    let Credit { id, title, authors, address, .. } = credit;
    let mut people = String::new();
    for author in authors.iter() {
        let author = escaped(author);
        people.push_str(&match markup.format {
            Format::Rss20 if is_anonymous => {
                format!("<dc:creator xmlns:dc=\"{DC}\">{author}</dc:creator>")
            }
            Format::Rss20 => String::new(),
            _ => format!("<author><name>{author}</name></author>"),
        });
    }
    let element = match markup.format {
        Format::Atom10 | Format::Opml | Format::Collection => format!(
            "<source xmlns=\"{ATOM}\"><id>{}</id><title>{}</title>\
             <link rel=\"self\" href=\"{}\"/>{people}</source>",
            escaped(id),
            escaped(title),
            escaped(address)
        ),
        Format::Rss20 => {
            let (address, title) = (escaped(address), escaped(title));
            format!("<source url=\"{address}\">{title}</source>{people}")
        }
        _ => return markup,
    };
    // What the title says may need a base.
    let mut slots = Slots { is_absolute: false, ..markup.slots.clone() };
    for range in [&mut slots.id, &mut slots.id_element].into_iter().flatten() {
        *range = range.start + element.len()..range.end + element.len();
    }
    Markup { xml: format!("{before}{element}{after}"), slots, ..markup }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    xml::push_value(&mut out, text);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{Card, Context, Slots};

    fn shown(format: Format, xml: &str, author: Option<&str>, authors: &[String]) -> Markup {
        let markup = Markup {
            format,
            xml: xml.to_owned(),
            context: Context::default(),
            slots: Slots { inner: xml.find('>').map(|at| at + 1), ..Slots::default() },
            card: Card { author: author.map(ToOwned::to_owned), ..Card::default() },
        };
        let [id, title, address, base] =
            ["urn:s", "A & B", "http://s/", "http://b/"].map(str::to_owned);
        let authors = authors.to_vec();
        credited(&markup, &Credit { id, title, authors, address, base, page: None })
    }

    #[test]
    fn an_item_without_an_author_has_that_of_its_source() {
        let authors = ["Ann <a>".to_owned(), "Bob".to_owned()];
        let atom = shown(Format::Atom10, "<entry><id>x</id></entry>", None, &authors);
        let people = "<author><name>Ann &lt;a&gt;</name></author><author><name>Bob</name></author>";
        let source = "<source xmlns=\"http://www.w3.org/2005/Atom\"><id>urn:s</id>\
                      <title>A &amp; B</title><link rel=\"self\" href=\"http://s/\"/>";
        assert_eq!(atom.xml, format!("<entry>{source}{people}</source><id>x</id></entry>"));
        assert_eq!(atom.card.author.as_deref(), Some("Ann <a>"));
        let rss = shown(Format::Rss20, "<item><title/></item>", None, &authors[1..]);
        let creator = "<dc:creator xmlns:dc=\"http://purl.org/dc/elements/1.1/\">Bob</dc:creator>";
        let source = "<source url=\"http://s/\">A &amp; B</source>";
        assert_eq!(rss.xml, format!("<item>{source}{creator}<title/></item>"));
        // What is written in neither can still say it when it is converted.
        let json = shown(Format::JsonFeed, "{}", None, &authors);
        assert_eq!((json.xml.as_str(), json.card.author.as_deref()), ("{}", Some("Ann <a>")));
    }

    #[test]
    fn an_author_of_its_own_stays() {
        let authors = ["Ann".to_owned()];
        let rss = shown(Format::Rss20, "<item><title/></item>", Some("Cy"), &authors);
        assert!(!rss.xml.contains("creator"), "{}", rss.xml);
        assert_eq!(rss.card.author.as_deref(), Some("Cy"));
        let other = "<entry><source><id>o</id></source></entry>";
        let kept = shown(Format::Atom10, other, None, &authors);
        assert_eq!((kept.xml.as_str(), kept.card.author), (other, None));
    }
}
