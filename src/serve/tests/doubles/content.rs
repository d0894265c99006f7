use super::*;

/// A version of an item by an endpoint, with so many updates.
pub(in crate::tests) fn version(
    of: &str,
    by: &str,
    (updates, seconds): (u32, i64),
    data: Markup,
) -> Version<Markup> {
    let sequence = Count::new(updates).unwrap();
    let stamp = Stamp::Both { when: at(seconds), by: EndpointId::new(by).unwrap() };
    Version {
        id: id(of),
        updates: sequence,
        deleted: false,
        noconflicts: None,
        history: History::new(Update { sequence, stamp }),
        data,
    }
}

pub(in crate::tests) fn item(text: &str, seconds: i64, standing: ItemStatus) -> Item {
    let markup = Markup {
        format: Format::Atom10,
        xml: "<entry/>".to_owned(),
        context: Context::default(),
        slots: Slots::default(),
        card: Card {
            title: format!("<b>{text}</b> & \"co\""),
            link: Some("javascript:alert(1)".to_owned()),
            ..Card::default()
        },
    };
    let mut version = version(text, "gate", (1, seconds), markup);
    version.deleted = matches!(standing, ItemStatus::Deleted { .. });
    Item {
        shared: Shared::new(version),
        published_id: format!("urn:{text}"),
        tick: tick(seconds),
        standing,
        sse091: None,
        extras: None,
        touched: 5,
    }
}

pub(in crate::tests) fn state(format: Format) -> FeedState {
    FeedState {
        revision: Revision(7),
        tick: Some(tick(-10)),
        window_start: Some(tick(-20 * DAY)),
        complete_start: Some(tick(-90 * DAY)),
        render_revision: 5,
        site: Some("https://upstream.example/?a=1&b=2".to_owned()),
        current: 2,
        living: 3,
        tombstones: 1,
        next_decision_at: Some(at(23 * 3600)),
        lineage: Lineage::new([Stretch { mark: 0xcafe, after: 0 }]),
        ..FeedState::untouched(format, at(-5))
    }
}

pub(in crate::tests) fn feed(format: Format) -> Feed {
    let skeleton = tidegate_core::model::testing::skeleton(format, "News");
    // Ticks: `old` is before the window, the others are in it.
    let items = vec![
        item("old", -60 * DAY, ItemStatus::Retired { since: at(-50 * DAY) }),
        item("b", -10 * DAY, ItemStatus::Current),
        item("gone", -5 * DAY, ItemStatus::Deleted { since: at(-5 * DAY) }),
        item("a", -10, ItemStatus::Current),
    ];
    let state = state(format);
    Feed { state, skeleton, order: vec![id("a"), id("b")], items }
}

/// The ledger's entry of an item; `a` is missing from the document.
pub(in crate::tests) fn known(item: &Item) -> LedgerEntry {
    let winner = &item.shared.winner;
    let seen = "gone while older items stay".to_owned();
    let absence = Absence { seen, ..Absence::seen_once(Evidence::Hole, at(-3600)) };
    LedgerEntry {
        id: winner.id.clone(),
        published_id: item.published_id.clone(),
        aliases: vec!["urn:<i>older</i>".to_owned()],
        title: winner.data.card.title.clone(),
        link: winner.data.card.link.clone(),
        published: None,
        updates: winner.updates,
        history: winner.history.clone(),
        tick: item.tick,
        conflicts: u32::try_from(item.shared.conflicts.len()).unwrap(),
        first_seen: item.tick.time(),
        came: item.tick.time(),
        standing: item.standing.clone(),
        absence: (winner.id == id("a")).then_some(absence),
        bytes: 0,
        noise: Noise {
            unseen: (winner.id == id("b")).then_some(Unseen {
                // Bit 1 is that of counters.
                classes: NoiseClasses::from_bits(1 << 1),
                count: 1,
                since: at(-60),
                last: at(-60),
            }),
            ..Noise::default()
        },
        touched: item.touched,
        ..LedgerEntry::left(&format!("urn:{}", winner.id))
    }
}
