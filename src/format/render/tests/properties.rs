use super::build::{Feed, cut, item};
use crate::render::ViewKind;
use proptest::prelude::*;
use tidegate_core::model::Format;
use tidegate_core::xml::tree::{self, Node};

/// Pieces of markup that an item may contain.
fn piece() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-z ]{0,8}".prop_map(|text| text),
        Just("&amp;&lt;&#233;".to_owned()),
        Just("<![CDATA[<b>&]]>".to_owned()),
        Just("<!-- sx:sync -->".to_owned()),
        Just("<?pi data?>".to_owned()),
        Just("é\u{1F30A}".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let name = prop_oneof![Just("title"), Just("x:a"), Just("y:b"), Just("sx:sync")];
        let attributes =
            prop_oneof![Just(""), Just(" k='a&amp;\"b'"), Just(" xmlns:x='urn:other' x:k=\"1\"")];
        (name, attributes, proptest::collection::vec(inner, 0..3)).prop_map(|(name, own, inner)| {
            if inner.is_empty() {
                format!("<{name}{own}/>")
            } else {
                format!("<{name}{own}>{}</{name}>", inner.concat())
            }
        })
    })
}

/// What stands in the items of a document, with the namespaces of all names; sync markup is taken out.
fn seen(text: &str) -> Vec<Vec<Node>> {
    let (_, entries) = cut(text);
    let trees = entries.iter().map(|entry| tree::read(&entry.xml, &entry.context).unwrap());
    trees.map(|tree| tree.children).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_item_reads_as_it_did(
        pieces in proptest::collection::vec(piece(), 1..6),
        other_root in any::<bool>(),
        channel in prop_oneof![Just(""), Just(" xmlns:x='urn:channel'"), Just(" xml:lang='de'")],
    ) {
        let root = "<rss version='2.0' xmlns:x='urn:x' xmlns:y='urn:y' xmlns:sx='urn:taken'>";
        let item_text = format!("<item>{}<guid>g</guid></item>", pieces.concat());
        let document = format!("{root}<channel{channel}>{item_text}</channel></rss>");
        let (mut skeleton, entries) = cut(&document);
        // The publisher's bytes are all there.
        let text = Feed::read(&document).render(ViewKind::Sync);
        let behind = format!("</sx1:sync>{}<guid>g</guid></item>", pieces.concat());
        prop_assert!(text.contains(&behind), "{}", text);
        if other_root {
            let bare = "<rss version='2.0' xmlns='urn:d' xmlns:y='urn:z'><channel></channel></rss>";
            skeleton = cut(bare).0;
        }
        let feed = Feed::of(skeleton, entries.into_iter().map(item).collect());
        let text = feed.render(ViewKind::Complete);
        prop_assert_eq!(seen(&text), seen(&document));
    }

    #[test]
    fn offsets_that_lie_do_not_stop_a_document(
        xml in "[<>a/ ='\"é:]{0,24}",
        offsets in proptest::collection::vec(0_usize..30, 6),
        skeleton in "[<>a/ ='\"é:?]{0,24}",
        root in proptest::collection::vec(0_usize..30, 6),
    ) {
        let document = "<rss version='2.0'><channel><item><guid>g</guid></item></channel></rss>";
        let mut feed = Feed::new(Format::Rss20, document);
        let data = &mut feed.items[0].shared.winner.data;
        data.xml = xml;
        data.slots.attributes = offsets[0];
        data.slots.inner = Some(offsets[1]);
        data.slots.id = Some(offsets[2]..offsets[3]);
        data.slots.id_element = Some(offsets[4]..offsets[5]);
        feed.skeleton.text = skeleton;
        feed.skeleton.slots.root_attributes = root[0];
        feed.skeleton.slots.entries = root[1];
        feed.skeleton.slots.updated = Some(root[2]..root[3]);
        feed.skeleton.slots.version = Some(root[4]..root[5]);
        prop_assert!(feed.render_unchecked(ViewKind::Sync).contains("<sx:sync "));
    }
}
