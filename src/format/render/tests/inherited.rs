//! Namespaces, bases and languages of entries that come from other documents.

use super::build::{Feed, cut, deleted, item_as, version};
use crate::golden;
use crate::render::ViewKind;
use crate::render::base::with_bases;
use tidegate_core::model::{Context, Format, Markup};
use tidegate_core::xml::ns::ATOM;

fn moved(skeleton: &str, document: &str) -> Feed {
    let (skeleton, _) = cut(skeleton);
    let (_, entries) = cut(document);
    Feed::of(skeleton, entries.into_iter().map(|entry| item_as(entry, "urn:1")).collect())
}

/// What the skeleton gives is not repeated; what it lacks or binds otherwise is declared; what was absent
/// is taken away; and an attribute that the entry has is never added twice. Our prefix is avoided where the
/// publisher uses it otherwise, or bound again where an entry alone does so; a binding of our namespace is used.
#[test]
fn an_entry_has_what_it_had_where_it_stood() {
    golden::each("moved", 8, |text| {
        let (skeleton, document) = golden::pair(text, "entries of");
        let [skeleton, document] =
            [skeleton, document].map(|part| std::str::from_utf8(part).unwrap());
        moved(skeleton, document).render(ViewKind::Complete)
    });
}

#[test]
fn a_base_cannot_end_the_quotes_that_it_is_spliced_between() {
    let skeleton =
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='p/&apos; q=&apos;r'></feed>";
    for base in ["x/&apos; y=&apos;z", "http://[&apos; onclick=&apos;alert(1)", "&quot; a=&quot;b"]
    {
        let document = format!(
            "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='https://new.example/'>\
             <entry xml:base='{base}'></entry></feed>"
        );
        let entries = moved(skeleton, &document).entries();
        let tag = &entries[..=entries.find('>').unwrap()];
        assert_eq!(tag.matches(['\'', '"']).count(), 2, "{tag}");
    }
    // `reader` checks that the text is well-formed; the skeleton's own base is spliced alike.
    let text = Feed::new(Format::Atom10, skeleton).reader();
    assert!(text.contains("/p/&apos;%20q=&apos;r'"), "{text}");
}

#[test]
fn bases_are_added_at_many_places_in_one_pass() {
    let (_, mut entries) =
        cut(&format!("<feed xmlns='{ATOM}'><entry><id>urn:1</id></entry></feed>"));
    let mut markup = entries.remove(0);
    markup.xml = "<e><t>\u{e9}</t><id>urn:1</id><t/></e>".to_owned();
    markup.slots.id = Some(16..21);
    let made = with_bases(&markup, &[5, 7, 28, 1_000], "b");
    let text = "<e><t xml:base=\"b\">\u{e9}</t><id>urn:1</id><t xml:base=\"b\"/></e>";
    assert_eq!(made.xml, text);
    assert_eq!(made.xml.get(made.slots.id.unwrap()), Some("urn:1"));
}

#[test]
fn conflicts_stand_inside_with_all_that_they_need() {
    let skeleton = "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:x='urn:x'></feed>";
    let document = "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:x='urn:x' xml:lang='en'>\
                    <entry xmlns:x='urn:y' xml:base='https://b.example/'><x:k/><id>urn:1</id>\
                    <title>winner</title></entry></feed>";
    let mut feed = moved(skeleton, document);
    let loser = "<entry x:l='1' sx:t=''><id>urn:other</id><title>loser</title></entry>";
    let (_, losers) =
        cut(&format!("<feed xmlns='{ATOM}' xmlns:x='urn:x' xmlns:sx='urn:taken'>{loser}</feed>"));
    let mut gone = version(3, losers[0].clone());
    gone.deleted = true;
    feed.items[0].shared.conflicts = vec![version(2, losers[0].clone()), gone];
    golden::same("moved", "conflicts", &feed.render(ViewKind::Sync));
}

#[test]
fn an_rss_document_in_a_namespace_keeps_it() {
    let root = "<rss version='0.92' xmlns='http://backend.userland.com/rss2'><channel>";
    let document = format!("{root}<title>T</title><item><title>a</title></item></channel></rss>");
    let (skeleton, mut entries) = cut(&document);
    let mut plain: Markup = entries[0].clone();
    plain.context = Context::default();
    let gone = deleted(item_as(entries[0].clone(), "urn:3"));
    let items = vec![item_as(entries.remove(0), "urn:1"), item_as(plain, "urn:2"), gone];
    let text = Feed::of(skeleton, items).render(ViewKind::Complete);
    assert_eq!(text.matches("<item>").count(), 2, "{text}");
    assert_eq!(text.matches("<item xmlns=\"\">").count(), 1);
    assert!(text.contains("version='2.0'"));
}
