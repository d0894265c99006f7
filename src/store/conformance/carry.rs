//! What one store hands over, another answers alike, whatever kind they are and on whatever way.

use super::make::*;
use super::{EngineKind, StoreFixture, on_every_store};
use crate::portable::tests::{read, written};
use crate::portable::{ExportRecord, ImportMessage};
use crate::record::ItemRecord;
use tokio::sync::mpsc;

on_every_store! {
    everything_is_handed_over
    a_used_store_takes_nothing
    what_breaks_off_between_two_feeds_is_not_opened
    nobody_need_take_it_all
    what_is_committed_meanwhile_leaves_every_feed_whole
    a_feed_that_is_purged_meanwhile_ends_it
}

/// What a store hands over; `at` is done when each piece comes.
async fn export_while(
    store: &Store,
    mut at: impl AsyncFnMut(&ExportRecord),
) -> Result<Vec<ExportRecord>, StoreError> {
    let (sender, mut receiver) = mpsc::channel(1);
    let taking = async {
        let mut pieces = Vec::new();
        while let Some(piece) = receiver.recv().await {
            at(&piece).await;
            pieces.push(piece);
        }
        pieces
    };
    let (exported, pieces) = tokio::join!(store.export(sender), taking);
    exported.map(|()| pieces)
}

pub(crate) async fn export(store: &Store) -> Result<Vec<ExportRecord>, StoreError> {
    export_while(store, async |_| ()).await
}

pub(crate) async fn pieces(store: &Store) -> Vec<ExportRecord> {
    export(store).await.unwrap()
}

pub(crate) async fn import(store: &Store, pieces: Vec<ExportRecord>) -> Result<(), CommitError> {
    let pieces = pieces.into_iter().map(ImportMessage::Record);
    send_messages(store, pieces.chain([ImportMessage::End]), false).await
}

pub(super) async fn send_messages(
    store: &Store,
    messages: impl IntoIterator<Item = ImportMessage>,
    is_copy: bool,
) -> Result<(), CommitError> {
    let (sender, receiver) = mpsc::channel(4);
    let sending = async move {
        for message in messages {
            if sender.send(message).await.is_err() {
                break;
            }
        }
    };
    tokio::join!(store.import(receiver, is_copy), sending).0
}

/// A copy of a store, by way of a file.
async fn copy(store: &Store, kind: EngineKind) -> StoreFixture {
    let fixture = StoreFixture::new(kind);
    let pieces = pieces(store).await;
    assert_eq!(read(&written(&pieces)).unwrap(), pieces);
    import(&fixture.store, pieces).await.unwrap();
    fixture
}

/// What a store hands over but for its identity, which each has of its own.
async fn content(store: &Store) -> Vec<ExportRecord> {
    let pieces = pieces(store).await.into_iter();
    pieces.filter(|piece| !matches!(piece, ExportRecord::Origin(_))).collect()
}

/// Whether two stores have the same, and answer alike what no model of histories has. Of stores of different kinds the
/// past is not compared: only some keep documents as differences.
async fn assert_alike(one: &Store, other: &Store, is_same: bool) {
    macro_rules! same {
        ($($call:tt)+) => {
            assert_eq!(one.$($call)+.await.unwrap(), other.$($call)+.await.unwrap())
        };
    }
    assert_eq!(one.endpoint(), other.endpoint());
    let pieces = content(one).await;
    assert_eq!(pieces, content(other).await);
    assert_eq!(*one.watch_epochs().borrow(), *other.watch_epochs().borrow());
    same!(applied());
    same!(feeds());
    same!(subscriptions());
    same!(epochs_after(Epoch(0), usize::MAX));
    // Also those of which there is no record.
    let names = pieces.iter().filter_map(ExportRecord::feed);
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        same!(snapshot(name));
        same!(view(name, Select::All));
        let snapshot = one.snapshot(name).await.unwrap();
        for id in snapshot.iter().flat_map(|snapshot| &snapshot.known).map(|known| &known.id) {
            for note in one.versions(name, id, usize::MAX).await.unwrap() {
                same!(version(name, id, note.updates));
            }
        }
        for seconds in (-1..60).filter(|_| is_same) {
            for select in [PastSelect::Current, PastSelect::All] {
                same!(past(name, select, time(seconds)));
            }
        }
    }
}

pub(super) async fn fill(store: &StoreFixture) {
    let feeds = store.feed_list().await.unwrap();
    store.apply_feeds(&[], &feeds, Some(applied("http://a/"))).await.unwrap();
    for name in ["news", "empty"] {
        store.put_feed(&record(name)).await.unwrap();
    }
    store.checkpoint(&[poll_state("news")]).await.unwrap();
    store.put_subscriptions(&[super::subscriptions::subscription("a").into()]).await.unwrap();
    // A feed that was purged leaves its marks.
    Draft::on(store, "old", 1).await.item("a", "A").order(&["a"]).commit(store).await;
    store.purge_feed(&feed("old")).await.unwrap();
    let long = |text: &str| format!("{text} {}", "and so on ".repeat(900));
    for seconds in 2..39 {
        let draft = edit(store, seconds).await;
        let draft = match seconds % 6 {
            0 => draft.tombstone("b").order(&["a"]),
            1 => draft.item("b", "B").order(&["b", "a"]).around(&format!("around {seconds}")),
            2 if seconds == 2 => draft.item("a", "A").item("b", "B").order(&["a", "b"]),
            2 => draft.latest("a", &long("latest")),
            3 => draft.item("a", &long(&seconds.to_string())),
            4 => draft.item("c", "C").around("the same"),
            _ => draft.touch("a", ItemStatus::Retired { since: time(seconds) }),
        };
        draft.commit(store).await;
    }
    let lost = known("c", 1, tick(4)).version(Some(markup("lost")));
    let draft = edit(store, 39).await.item("c", "contested").contest("c", vec![lost]);
    draft.commit(store).await;
}

async fn everything_is_handed_over(fixture: StoreFixture) {
    fill(&fixture).await;
    there_and_back(&fixture, EngineKind::Disk).await;
    there_and_back(&fixture, EngineKind::Memory).await;
}

/// A copy of another kind answers alike, and a copy of that one, of the first kind, in everything. The first copy.
pub(super) async fn there_and_back(store: &StoreFixture, other: EngineKind) -> StoreFixture {
    let there = copy(store, other).await;
    assert_alike(store, &there, false).await;
    let there = there.reopen().await;
    let back = copy(&there, store.kind).await;
    assert_alike(store, &back, true).await;
    there
}

async fn a_used_store_takes_nothing(fixture: StoreFixture) {
    let other = StoreFixture::new(EngineKind::Memory);
    fill(&other).await;
    let taken = pieces(&other).await;
    fixture.put_feed(&record("mine")).await.unwrap();
    let refused = import(&fixture.store, taken).await;
    assert!(matches!(refused, Err(CommitError::Store(StoreError::Occupied { .. }))), "{refused:?}");
    assert_eq!(fixture.feeds().await.unwrap(), [record("mine")]);
}

/// An import that breaks off between two feeds: nothing of it contradicts itself, and it is not all.
async fn what_breaks_off_between_two_feeds_is_not_opened(fixture: StoreFixture) {
    let is_refused = |error: StoreError| matches!(error, StoreError::PartlyImported { .. });
    let other = StoreFixture::new(EngineKind::Memory);
    for name in ["a", "b"] {
        Draft::on(&other.store, name, 1).await.item("i", "I").commit(&other.store).await;
    }
    let all = pieces(&other.store).await;
    let first = all.iter().position(|piece| matches!(piece, ExportRecord::State(..))).unwrap();
    let first = all.into_iter().take(first + 1).map(ImportMessage::Record);
    let refused = send_messages(&fixture.store, first, false).await;
    assert!(is_refused(refused.unwrap_err().into()));
    assert!(fixture.try_reopen().await.is_err_and(is_refused));
}

#[tokio::test]
async fn what_contradicts_itself_is_refused() {
    let fixture = StoreFixture::new(EngineKind::Memory);
    fill(&fixture).await;
    let whole = pieces(&fixture).await;
    let times = |is_kind: fn(&ExportRecord) -> bool, times: usize| -> Vec<ExportRecord> {
        let count = |piece: &ExportRecord| if is_kind(piece) { times } else { 1 };
        whole.iter().flat_map(|piece| vec![piece.clone(); count(piece)]).collect()
    };
    let edited = |edit: fn(&mut ItemRecord)| {
        let mut pieces = whole.clone();
        for piece in &mut pieces {
            if let ExportRecord::Item(_, item) = piece {
                edit(item);
            }
        }
        pieces
    };
    fn evict(item: &mut ItemRecord, deleted: bool) {
        item.known.standing = ItemStatus::Evicted { since: time(2), deleted };
    }
    let left = "stands in the ledger and says that it left it";
    for (broken, fault) in [
        (times(|piece| matches!(piece, ExportRecord::State(..)), 0), "ends without a state"),
        (times(|piece| matches!(piece, ExportRecord::Item(..)), 0), "has no item"),
        (times(|piece| matches!(piece, ExportRecord::Item(..)), 2), ""),
        (times(|piece| matches!(piece, ExportRecord::Text(..)), 2), "that are not in order"),
        (times(|piece| matches!(piece, ExportRecord::State(..)), 2), "is in it twice"),
        (times(|piece| matches!(piece, ExportRecord::Log(_)), 2), "is not in order"),
        (times(|piece| matches!(piece, ExportRecord::Past(..)), 2), "are not in order"),
        (whole.iter().rev().cloned().collect(), ""),
        (edited(|item| evict(item, false)), left),
        (edited(|item| evict(item, true)), left),
        (edited(|item| item.conflicts.clear()), "lacks conflicts"),
        (
            edited(|item| item.conflicts.iter_mut().for_each(|lost| lost.id = id("another"))),
            "is in conflict with another item",
        ),
    ] {
        let refused = import(&StoreFixture::new(EngineKind::Memory).store, broken).await;
        let Err(CommitError::Store(StoreError::Unfit { what })) = refused else {
            panic!("{fault}: {refused:?}")
        };
        assert!(what.contains(fault), "{fault}: {what}");
    }
}

async fn nobody_need_take_it_all(store: StoreFixture) {
    fill(&store).await;
    let (sender, mut receiver) = mpsc::channel(1);
    let leaving = async move {
        assert!(matches!(receiver.recv().await, Some(ExportRecord::Origin(_))));
    };
    tokio::join!(store.export(sender), leaving).0.unwrap();
}

/// Writers go on while a store is handed over. Each feed comes at one of its revisions, and the log is never
/// ahead of it.
async fn what_is_committed_meanwhile_leaves_every_feed_whole(store: StoreFixture) {
    const FEEDS: [&str; 3] = ["a", "b", "c"];
    for (name, seconds) in FEEDS.iter().cycle().zip(1..=12) {
        let change = Draft::on(&store, name, seconds).await.item("i", "I").item("j", "J");
        change.order(&["i", "j"]).commit(&store).await;
    }
    let mut count = 0;
    let pieces = export_while(&store, async |_| {
        count += 1;
        let name = FEEDS[count % FEEDS.len()];
        let seconds = 12 + i64::try_from(count).unwrap();
        Draft::on(&store, name, seconds).await.item("i", "again").commit(&store).await;
        // A feed that comes meanwhile is for the next export.
        if count == 2 {
            Draft::on(&store, "late", 1).await.item("i", "I").commit(&store).await;
        }
    });
    let pieces = pieces.await.unwrap();
    let (mut logged, mut newest) = (std::collections::BTreeMap::new(), None);
    for piece in &pieces {
        match piece {
            ExportRecord::Log(closed) => {
                let changes = closed.changes.iter();
                logged.extend(changes.map(|it| (it.feed.clone(), (it.tick, it.revision))));
            }
            ExportRecord::State(name, head) => {
                let (state, (tick, revision)) = (&head.state, logged[name]);
                assert!(Some(tick) <= state.tick && revision <= state.revision, "{name}");
            }
            ExportRecord::Item(_, item) => newest = Some(item.known.tick),
            ExportRecord::Text(name, tick, _) => {
                assert!(*tick <= newest, "the versions of {name} are of one moment");
            }
            _ => {}
        }
    }
    let copied = StoreFixture::new(EngineKind::Memory);
    import(&copied, pieces).await.unwrap();
    for name in FEEDS {
        let view = copied.view(&feed(name), Select::All).await.unwrap().unwrap();
        let ticks = view.items.iter().map(|item| item.tick).max();
        assert_eq!((view.items.len(), ticks), (2, view.state.tick), "{name}");
    }
    assert!(copied.state(&feed("late")).await.unwrap().is_none());
}

async fn a_feed_that_is_purged_meanwhile_ends_it(store: StoreFixture) {
    for name in ["a", "z"] {
        store.put_feed(&record(name)).await.unwrap();
        Draft::on(&store, name, 1).await.item("i", "I").order(&["i"]).commit(&store).await;
    }
    let exporting = export_while(&store, async |piece| {
        if matches!(piece, ExportRecord::Item(name, _) if name.as_str() == "a") {
            store.purge_feed(&feed("z")).await.unwrap();
        }
    });
    let said = exporting.await.unwrap_err();
    let said = format!("{said}: {}", std::error::Error::source(&said).unwrap());
    assert!(said.contains("the feed z was purged meanwhile"), "{said}");
    // What is there now can be handed over.
    let left = pieces(&store).await;
    assert!(left.iter().all(|piece| piece.feed().is_none_or(|feed| feed.as_str() == "a")));
}
