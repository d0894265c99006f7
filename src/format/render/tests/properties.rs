//! Random entries come back as they went in.

use super::build::{Feed, cut, item};
use crate::render::ViewKind;
use proptest::prelude::*;
use quick_xml::events::Event;
use quick_xml::name::ResolveResult;
use quick_xml::reader::NsReader;
use tidegate_core::model::Format;

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

/// What a namespace-aware reader sees between the items' tags, our own elements left out.
fn seen(text: &str, entry: &str) -> Vec<Vec<String>> {
    let mut reader = NsReader::from_str(text);
    let mut items = Vec::new();
    let mut depth = None;
    let mut skip = 0;
    loop {
        let (space, event) = reader.read_resolved_event().unwrap();
        let space = match space {
            ResolveResult::Bound(name) => name.0.to_owned(),
            other => format!("{other:?}"),
        };
        let ours = space == "http://www.microsoft.com/schemas/sse";
        let line = match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                let attributes = tag.attributes().map(Result::unwrap);
                let attributes: Vec<_> = attributes
                    .filter(|a| a.key.as_namespace_binding().is_none())
                    .map(|a| {
                        format!("{:?}={}", reader.resolver().resolve_attribute(a.key), a.value)
                    })
                    .collect();
                format!("<{space} {:?} {attributes:?}", tag.local_name())
            }
            Event::End(tag) => format!(">{space} {:?}", tag.local_name()),
            Event::Eof => return items,
            other => format!("{other:?}"),
        };
        match (&event, depth) {
            (Event::Start(tag), None) if tag.local_name().into_inner() == entry => {
                depth = Some(0);
                items.push(Vec::new());
                continue;
            }
            (_, None) => continue,
            (Event::Start(_), Some(level)) => depth = Some(level + 1),
            (Event::End(_), Some(0)) => {
                depth = None;
                continue;
            }
            (Event::End(_), Some(level)) => depth = Some(level - 1),
            _ => {}
        }
        match &event {
            Event::Start(_) if ours || skip > 0 => skip += 1,
            Event::End(_) if skip > 0 => skip -= 1,
            _ if skip > 0 || (ours && matches!(event, Event::Empty(_))) => {}
            _ => items.last_mut().unwrap().push(line),
        }
    }
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
        if other_root {
            let bare = "<rss version='2.0' xmlns='urn:d' xmlns:y='urn:z'><channel></channel></rss>";
            skeleton = cut(bare).0;
        }
        let feed = Feed::of(skeleton, entries.into_iter().map(item).collect());
        let text = feed.render(ViewKind::Complete);
        prop_assert_eq!(seen(&text, "item"), seen(&document, "item"));
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

    #[test]
    fn the_publishers_bytes_are_all_there(pieces in proptest::collection::vec(piece(), 1..6)) {
        let root = "<rss version='2.0' xmlns:x='urn:x' xmlns:y='urn:y' xmlns:sx='urn:taken'>";
        let inner = format!("{}<guid>g</guid>", pieces.concat());
        let document = format!("{root}<channel><item>{inner}</item></channel></rss>");
        let text = Feed::new(Format::Rss20, &document).render(ViewKind::Sync);
        let behind = format!("</sx1:sync>{inner}</item>");
        prop_assert!(text.contains(&behind), "{}", text);
    }
}
