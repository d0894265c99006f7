//! Whatever is written reads back as it was (SSE 1.0 sections 2.4 and 2.5).

use super::*;
use proptest::prelude::*;
use tidegate_core::model::{Count, EndpointId, History, Stamp, Time, Update, Version};
use tidegate_core::sync_markup::{Dialect, sx};

fn update() -> impl Strategy<Value = Update> {
    let by = "[^\\p{C}\\s]{1,8}".prop_map(|text| EndpointId::new(&text).unwrap());
    let when = (0..4_000_000_000_i64).prop_map(Time::from_unix);
    let stamp = prop_oneof![
        (when.clone(), by.clone()).prop_map(|(when, by)| Stamp::Both { when, by }),
        when.prop_map(Stamp::When),
        by.prop_map(Stamp::By),
    ];
    (1..=Count::MAX.value(), stamp)
        .prop_map(|(n, stamp)| Update { sequence: Count::new(n).unwrap(), stamp })
}

fn version() -> impl Strategy<Value = Version<()>> {
    let history = proptest::collection::vec(update(), 1..9);
    let rest = (1..=Count::MAX.value(), any::<bool>(), any::<Option<bool>>());
    ("[^\\p{C}\\s]{1,20}", rest, history).prop_map(|(id, rest, history)| Version {
        id: SyncId::new(&id).unwrap(),
        updates: Count::new(rest.0).unwrap(),
        deleted: rest.1,
        noconflicts: rest.2,
        history: History::from_newest_first(history).unwrap(),
        data: (),
    })
}

proptest! {
    #[test]
    fn sync_markup_reads_back(
        winner in version(),
        mut conflicts in proptest::collection::vec(version(), 0..4),
    ) {
        for dialect in [Dialect::Sse, Dialect::FeedSync] {
            let mut out = String::from("<rss><channel><item>");
            let namespace = Some(sx::namespace(dialect));
            for conflict in &mut conflicts {
                conflict.id = winner.id.clone();
            }
            let mut nested = |out: &mut String| {
                for conflict in &conflicts {
                    out.push_str("<item>");
                    sx::sync_element(out, "x", None, conflict, None, None);
                    out.push_str("</item>");
                }
            };
            let nested: Option<&mut dyn FnMut(&mut String)> =
                if conflicts.is_empty() { None } else { Some(&mut nested) };
            sx::sync_element(&mut out, "x", namespace, &winner, None, nested);
            out.push_str("</item></channel></rss>");
            let incoming = shared(&out);
            prop_assert_eq!(&incoming.version, &winner);
            let read = incoming.conflicts.iter().map(|version| version.with(()));
            prop_assert_eq!(read.collect::<Vec<_>>(), conflicts.clone());
        }
    }
}
