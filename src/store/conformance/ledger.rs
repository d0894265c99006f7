//! What the ledger has of items: their conflicts, the stubs of those that left, entries of held documents, and an index.

use super::make::*;
use crate::record::specimen::specimen;
use std::collections::BTreeSet;

on_every_store! {
    conflicts_are_answered_with_their_item_and_go_with_it
    a_stub_is_found_by_every_name
    what_is_kept_goes_with_the_hold
    a_ledger_without_an_index_is_read_whole
    what_is_settled_is_read_where_it_is_asked_for
}

async fn snapshot(store: &Store) -> Snapshot {
    store.snapshot(&feed("news")).await.unwrap().unwrap()
}

/// Text that is large enough to be cut into pieces.
fn long() -> String {
    (0..6000).map(|n| format!("{:x} ", n * 2_654_435_761_u64)).collect()
}

fn losing(data: Option<Markup>) -> Version<Option<Markup>> {
    known("a", 1, tick(1)).version(data)
}

/// Makes a new version of the item `a`, with these versions in conflict.
async fn contest(store: &Store, seconds: i64, versions: Vec<Version<Option<Markup>>>) {
    let mut change = edit(store, seconds).await.item("a", "B").done();
    change.known[0] = LedgerEntry {
        conflicts: u32::try_from(versions.len()).unwrap(),
        noconflicts: Some(false),
        origin: Origin::Upstream,
        ..change.known[0].clone()
    };
    change.conflicts = vec![Conflicting { id: id("a"), versions }];
    store.commit(change).await.unwrap();
}

/// Checks the conflicts of the item `a`, and what counts them.
async fn has_conflicts(store: &Store, expected: &[Version<Markup>]) {
    let (news, a) = (feed("news"), id("a"));
    let item = store.item(&news, &a).await.unwrap().unwrap();
    assert_eq!(item.shared.conflicts, expected);
    let view = store.view(&news, Select::All).await.unwrap().unwrap();
    assert_eq!(view.items, [item]);
    let is_contested = usize::from(!expected.is_empty());
    assert_eq!(view.state.contested as usize, is_contested);
    assert_eq!(store.contested(&news).await.unwrap(), vec![a.clone(); is_contested]);
    let snapshot = snapshot(store).await;
    assert_eq!(snapshot.conflicts.get(&a).map_or(&[][..], Vec::as_slice), expected);
}

async fn conflicts_are_answered_with_their_item_and_go_with_it(fixture: StoreFixture) {
    let store = fixture.store();
    edit(&store, 1).await.item("a", "A").order(&["a"]).commit(&store).await;
    // One of them has the bytes that the item had.
    let texts = [Some(markup(&long())), Some(markup("other")), None];
    contest(&store, 2, texts.clone().map(losing).to_vec()).await;
    let whole = texts.map(|text| losing(None).with(text.unwrap_or_else(|| markup("A"))));
    let (_fixture, store) = fixture.again(store).await;
    has_conflicts(&store, &whole).await;
    let known = snapshot(&store).await.known.remove(0);
    assert_eq!((known.noconflicts, known.origin), (Some(false), Origin::Upstream));
    contest(&store, 3, Vec::new()).await;
    has_conflicts(&store, &[]).await;
    contest(&store, 4, vec![losing(None)]).await;
    store.purge_feed(&feed("news")).await.unwrap();
    edit(&store, 1).await.item("a", "A").order(&["a"]).commit(&store).await;
    has_conflicts(&store, &[]).await;
}

async fn stubs(store: &Store, names: &[&str]) -> Vec<LedgerEntry> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    store.stubs(&feed("news"), &names).await.unwrap()
}

async fn a_stub_is_found_by_every_name(fixture: StoreFixture) {
    let store = fixture.store();
    edit(&store, 1).await.item("a", "A").item("b", "B").order(&["a"]).commit(&store).await;
    let mut change = edit(&store, 2).await.evict("b").done();
    change.evicted[0].aliases = vec!["urn:once".to_owned(), "urn:twice".to_owned()];
    change.evicted[0].published_id = "urn:twice".to_owned();
    let stub = change.evicted.clone();
    store.commit(change).await.unwrap();
    let (_fixture, store) = fixture.again(store).await;
    let names = ["b", "urn:b", "urn:once", "urn:twice"];
    for name in names {
        assert_eq!(stubs(&store, &[name]).await, stub, "{name}");
    }
    assert_eq!(stubs(&store, &["a", "urn:a", "urn:other"]).await, []);
    assert_eq!(stubs(&store, &["urn:once", "b"]).await, stub);
    assert_eq!(store.stubs(&feed("other"), &["b".to_owned()]).await.unwrap(), []);

    let mut change = edit(&store, 3).await.item("b", "again").done();
    change.reinstated.push(id("b"));
    store.commit(change).await.unwrap();
    assert_eq!(stubs(&store, &names).await, []);
    assert_eq!(store.versions(&feed("news"), &id("b"), 9).await.unwrap().len(), 1);
}

fn kept(text: &str) -> HeldEntry {
    let mut kept: HeldEntry = specimen(2);
    kept.entry.markup = text.to_owned().into();
    kept
}

/// Commits a change that holds a document and keeps these entries.
async fn keep(store: &Store, seconds: i64, entries: Option<Vec<HeldEntry>>) {
    let mut change = edit(store, seconds).await.done();
    change.state.hold = Some(specimen(1));
    change.kept = entries;
    store.commit(change).await.unwrap();
}

async fn what_is_kept_goes_with_the_hold(fixture: StoreFixture) {
    let store = fixture.store();
    let two = vec![kept("one"), kept(&long())];
    keep(&store, 2, Some(two.clone())).await;
    // A change that says nothing of them leaves them as they are.
    keep(&store, 3, None).await;
    let (_fixture, store) = fixture.again(store).await;
    let found = snapshot(&store).await;
    assert_eq!((found.kept, found.state.hold), (two, Some(specimen(1))));
    keep(&store, 4, Some(vec![kept("three")])).await;
    assert_eq!(snapshot(&store).await.kept, [kept("three")]);
    let mut change = edit(&store, 5).await.done();
    change.state.hold = None;
    store.commit(change).await.unwrap();
    assert_eq!(snapshot(&store).await.kept, []);
    // The next hold begins with nothing, and that of a successor.
    keep(&store, 6, None).await;
    assert_eq!(snapshot(&store).await.kept, []);
    keep(&store, 7, Some(vec![kept("one")])).await;
    store.purge_feed(&feed("news")).await.unwrap();
    keep(&store, 8, None).await;
    assert_eq!(snapshot(&store).await.kept, []);
}

fn names(items: &[LedgerEntry]) -> Vec<String> {
    items.iter().map(|known| known.id.to_string()).collect()
}

async fn find(store: &Store, query: LedgerQuery) -> Vec<String> {
    let reader = store.pin(&feed("news")).await.unwrap().unwrap();
    names(&reader.find_items(query).await.unwrap().items)
}

fn by_key(key: u64) -> LedgerQuery {
    LedgerQuery { keys: vec![IndexKey(key), IndexKey(7)], ..LedgerQuery::default() }
}

/// It has more items than a store reads together with the beginning of a snapshot.
async fn a_ledger_without_an_index_is_read_whole(fixture: StoreFixture) {
    let store = fixture.store();
    let ids: Vec<String> = (0..600).map(|number| format!("item-{number}")).collect();
    let mut change = edit(&store, 1).await.items(&ids, "text").done();
    change.state.living = 600;
    store.commit(change).await.unwrap();
    let whole = snapshot(&store).await;
    let all: BTreeSet<String> = ids.into_iter().collect();
    assert_eq!((whole.known.len(), names(&whole.known).into_iter().collect()), (600, all));
    let reader = store.pin(&feed("news")).await.unwrap().unwrap();
    assert!(!reader.has_index().await.unwrap() && whole.unsettled.is_none());
    assert_eq!(reader.unsettled(tick(9)).await.unwrap(), Some(whole));
}

async fn what_is_settled_is_read_where_it_is_asked_for(fixture: StoreFixture) {
    let store = fixture.store();
    // The items `b` and `c` have a key in common, and `d` is not settled.
    let mut change = edit(&store, 1).await.items(["a", "b", "c", "d"], "text").order(&["a"]).done();
    let keys = [("a", vec![1]), ("b", vec![2, 9]), ("c", vec![3, 9]), ("d", vec![4])];
    let items = keys.into_iter().map(|(name, keys)| ReindexedItem {
        id: id(name),
        added: keys.into_iter().map(IndexKey).collect(),
        removed: Vec::new(),
    });
    change.index = IndexUpdate { unsettled: Some(vec![id("d")]), items: items.collect() };
    change.state.living = 4;
    store.commit(change).await.unwrap();
    let (_fixture, store) = fixture.again(store).await;
    let reader = store.pin(&feed("news")).await.unwrap().unwrap();
    assert!(reader.has_index().await.unwrap());
    let part = reader.unsettled(tick(9)).await.unwrap().unwrap();
    assert_eq!((names(&part.known), part.size()), (vec!["a".to_owned(), "d".to_owned()], 4));
    let settled = part.settled.unwrap();
    assert_eq!((settled.living, settled.tombstones, settled.left_window), (2, 0, Some(tick(1))));

    assert_eq!(find(&store, by_key(2)).await, ["b"]);
    assert_eq!(find(&store, by_key(9)).await, ["b", "c"]);
    let ids = LedgerQuery { ids: vec![id("c"), id("z")], ..LedgerQuery::default() };
    assert_eq!(find(&store, ids).await, ["c"]);
    let oldest = LedgerQuery { oldest: 2, ..LedgerQuery::default() };
    assert_eq!(find(&store, oldest).await, ["a", "b"]);
    let items = snapshot(&store).await.known;
    let more = part.with_found(FoundItems { items, oldest_to: None }).unwrap();
    assert_eq!((more.known.len(), more.size()), (4, 4));

    // A key that an item loses leads to it no more, and a purge leaves none.
    let mut change = edit(&store, 3).await.touch("a", ItemStatus::Current).done();
    let lost = ReindexedItem { id: id("b"), added: vec![IndexKey(5)], removed: vec![IndexKey(9)] };
    change.index = IndexUpdate { unsettled: None, items: vec![lost] };
    store.commit(change).await.unwrap();
    assert_eq!(find(&store, by_key(9)).await, ["c"]);
    assert_eq!(find(&store, by_key(5)).await, ["b"]);
    store.purge_feed(&feed("news")).await.unwrap();
    assert!(store.pin(&feed("news")).await.unwrap().is_none());
}
