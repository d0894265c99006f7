//! Making, changing, deleting and restoring (SSE 1.0 sections 3.1 and 3.2).

use super::*;

#[tokio::test]
async fn a_feed_is_open_before_its_first_item() {
    let mut bench = Bench::new().await;
    bench.options.sharing.title = Some("Notes & \"queries\" <b>".to_owned());
    bench.commit(open).await;
    let view = bench.view(Select::All).await;
    assert_eq!((view.items.len(), view.skeleton.format), (0, Format::Atom10));
    assert_eq!(view.skeleton.title, "Notes & \"queries\" <b>");
    assert!(view.skeleton.text.contains("<id>urn:x-tidegate:gate:notes</id>"));
    assert_eq!(view.state.tick, None);
    // What is open is not opened again.
    let snapshot = bench.snapshot().await;
    assert_eq!(open(&bench.observation(snapshot.as_ref())), Verdict::default());
    bench.options.sharing.title = None;
    bench.commit(open).await;
    let renamed = bench.view(Select::All).await;
    assert_eq!(renamed.skeleton.title, "notes");
    assert!(renamed.state.render_revision > view.state.render_revision);
    assert!(renamed.state.updated_at > view.state.updated_at);
    // A publisher's document had stood around its items.
    let mut snapshot = bench.snapshot().await.unwrap();
    (snapshot.state.source, snapshot.state.head) = (7, 8);
    let change = open(&bench.observation(Some(&snapshot))).change.unwrap();
    assert_eq!(change.skeleton.unwrap().title, "notes");
    assert!(change.versions.is_empty() && change.order.is_none());
}

/// Section 3.1.
#[tokio::test]
async fn a_new_item_stands_on_top_and_begins_at_one() {
    let bench = Bench::new().await;
    let first = bench.create("first").await;
    let entry = CheckedEntry::atom(
        "<entry xmlns='http://www.w3.org/2005/Atom'><id>urn:uuid:7</id><title>second</title>\
         <updated>2026-01-01T00:00:00Z</updated></entry>",
    );
    let act = Act::Create { entry: entry.unwrap(), noconflicts: Some(true) };
    let made = bench.act(act).await.unwrap();
    assert_eq!((made.updates, made.deleted, made.conflicts), (Count::ONE, false, 0));
    assert_eq!(bench.titles().await, ["second", "first"]);
    let item = bench.item(&made.id).await;
    assert_eq!(item.published_id, "urn:uuid:7");
    assert_eq!(item.shared.winner.noconflicts, Some(true));
    assert_eq!(item.shared.winner.history.len(), 1);
    assert_eq!(item.by().unwrap().as_str(), "gate");
    assert_eq!(item.tick, made.tick);
    assert!(made.id.as_str().starts_with("gate."));
    let known = bench.known(&made.id).await;
    assert_eq!((known.origin, known.title.as_str()), (Origin::Local, "second"));
    let first = bench.item(&first).await;
    assert_eq!(first.published_id, format!("urn:x-tidegate:{}", first.shared.winner.id));
    assert_eq!(first.shared.winner.noconflicts, None);
    assert!(first.shared.winner.data.card.updated.is_some(), "it is dated when it is made");
    let state = bench.view(Select::All).await.state;
    assert_eq!((state.current, state.living, state.tombstones), (2, 2, 0));
}

#[tokio::test]
async fn two_items_of_one_title_are_two_and_of_one_id_are_not() {
    let bench = Bench::new().await;
    let (one, other) = (bench.create("same").await, bench.create("same").await);
    assert_ne!(one, other);
    let taken = bench.item(&one).await.published_id;
    let fields = EntryFields { title: "x".to_owned(), id: Some(taken), ..EntryFields::default() };
    let entry = CheckedEntry::fields(&fields).unwrap();
    let refused = bench.act(Act::Create { entry, noconflicts: None }).await;
    assert!(matches!(refused, Err(ActError::Taken { item, .. }) if item == one));
}

/// Whoever knows an id takes only what was updated more often than what they have.
#[tokio::test]
async fn after_a_purge_and_a_restore_updates_are_counted_on() {
    let bench = Bench::new().await;
    let id = bench.create("first").await;
    for title in ["second", "third"] {
        let update = change(&id, ItemAct::Update(written(title)));
        bench.act(update).await.unwrap();
    }
    bench.store.purge_feed(&bench.feed).await.unwrap();
    bench.commit(open).await;
    let made = Act::Create { entry: written("first"), noconflicts: None };
    let made = bench.act(made).await.unwrap();
    assert_eq!((&made.id, made.updates.value()), (&id, 4), "the same id");
    assert_eq!(bench.known(&id).await.history.topmost().sequence.value(), 4);

    let mut snapshot = bench.snapshot().await.unwrap();
    let until = made.tick.time();
    snapshot.state.gap = Some(Gap { since: until.minus(Duration::from_secs(60)), until });
    let lost = 2 * VERSIONS_PER_DAY;
    let observation = bench.observation(Some(&snapshot));
    let (how, expected) = (ItemAct::Update(written("second")), Some(made.updates));
    for act in [Act::Change { id: id.clone(), how, expected }, change(&id, ItemAct::Delete)] {
        let (verdict, acted) = super::act(&observation, &act).unwrap();
        assert_eq!(acted.updates.value(), 4 + lost + 1);
        let known = &verdict.change.unwrap().known[0];
        let sequences: Vec<u32> = known.history.iter().map(|u| u.sequence.value()).collect();
        assert_eq!((known.updates, sequences), (acted.updates, vec![4 + lost + 1, 4]));
    }
}

/// Section 3.2.
#[tokio::test]
async fn each_change_is_one_update_with_its_reason() {
    let bench = Bench::new().await;
    let id = bench.create("first").await;
    bench.create("other").await;
    let published = bench.item(&id).await.published_id;
    let how = || ItemAct::Update(written("changed"));
    let update = |expected| Act::Change { id: id.clone(), how: how(), expected };
    let done = bench.act(update(Some(Count::ONE))).await.unwrap();
    assert_eq!(done.updates.value(), 2);
    assert_eq!(bench.titles().await, ["other", "changed"]);
    assert_eq!(bench.item(&id).await.published_id, published);
    assert_eq!(bench.known(&id).await.title, "changed");
    let stale = bench.act(update(Some(Count::ONE))).await;
    assert!(matches!(stale, Err(ActError::Stale { .. })), "{stale:?}");

    let gone = bench.act(change(&id, ItemAct::Delete)).await.unwrap();
    assert_eq!((gone.updates.value(), gone.deleted), (3, true));
    assert_eq!(bench.titles().await, ["other"]);
    assert!(bench.known(&id).await.is_deleted());
    let again = bench.act(change(&id, ItemAct::Delete)).await;
    assert_eq!(again, Err(ActError::Deleted));
    assert_eq!(bench.act(update(None)).await, Err(ActError::Deleted));

    let restore = |entry| change(&id, ItemAct::Restore(entry));
    let back = bench.act(restore(None)).await.unwrap();
    assert_eq!((back.updates.value(), back.deleted), (4, false));
    assert_eq!(bench.titles().await, ["changed", "other"], "it comes back on top, as it was");
    assert_eq!(bench.act(restore(None)).await, Err(ActError::Lives));
    bench.act(change(&id, ItemAct::Delete)).await.unwrap();
    bench.act(restore(Some(written("anew")))).await.unwrap();
    assert_eq!(bench.titles().await, ["anew", "other"]);

    let events = bench.store.events(&bench.feed, 20).await.unwrap();
    let told: Vec<_> = events.iter().map(|e| (e.kind.name(), e.reason.as_str())).collect();
    let anew = ("undeleted", "restored here with a new text");
    let (gone, back) = (("deleted", "deleted here"), ("undeleted", "restored here"));
    assert_eq!(told[..5], [anew, gone, back, gone, ("updated", "changed here")]);
    let ticks: Vec<_> = events[..6].iter().map(|event| event.tick.unwrap()).collect();
    assert!(ticks.is_sorted_by(|later, earlier| later > earlier));
    // The algebra's own history: each act by this endpoint, newest first.
    let history = bench.known(&id).await.history;
    let sequences: Vec<u32> = history.iter().map(|update| update.sequence.value()).collect();
    assert_eq!(sequences, [6, 5, 4, 3, 2, 1]);
    let by = EndpointId::new("gate").unwrap();
    let at = |after| Stamp::Both { when: Time::from_unix(NOW + after), by: by.clone() };
    let stamps: Vec<_> = history.iter().map(|update| update.stamp.clone()).collect();
    assert_eq!(stamps, [660, 600, 480, 300, 180, 60].map(at));
}

#[tokio::test]
async fn what_others_write_cannot_be_changed_here() {
    let mut bench = Bench::new().await;
    let id = bench.create("first").await;
    // The feed is somebody else's from now on, and the item of it was made here.
    bench.options.sharing.local = false;
    let entry = written("x");
    let refused = bench.act(Act::Create { entry, noconflicts: None }).await;
    assert!(matches!(refused, Err(ActError::NotLocal(_))));
    bench.act(change(&id, ItemAct::Delete)).await.unwrap();
    let mut snapshot = bench.snapshot().await.unwrap();
    snapshot.known[0].origin = Origin::Observed;
    for how in [ItemAct::Delete, ItemAct::Restore(None), ItemAct::Update(written("x"))] {
        let act = change(&id, how);
        let refused = super::super::act(&bench.observation(Some(&snapshot)), &act);
        assert!(matches!(refused, Err(ActError::NotLocal(_))), "{act:?}");
    }
    snapshot.known[0].standing = ItemStatus::Redacted { since: Time::from_unix(NOW) };
    let act = change(&id, ItemAct::Restore(None));
    let refused = super::super::act(&bench.observation(Some(&snapshot)), &act).map(|_| ());
    assert_eq!(refused, Err(ActError::Redacted));
    let nobody = change(&SyncId::new("x").unwrap(), ItemAct::Delete);
    assert!(matches!(bench.act(nobody).await, Err(ActError::Unknown(_))));
}
