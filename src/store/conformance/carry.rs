//! What one store hands over, another answers alike, whatever kind they are and on whatever way.

use super::make::*;
use super::model::{Step, follow, step};
use super::{Bench, Kind, on_every_store};
use crate::portable::{
    ExportHead, ExportReader, ExportRecord, ExportTotals, ExportWriter, ImportMessage,
};
use crate::record::ItemRecord;
use crate::*;
use proptest::collection::vec;
use proptest::prelude::*;
use tidegate_core::model::*;
use tokio::sync::mpsc;

on_every_store! {
    everything_is_handed_over
    conflicts_that_are_not_those_of_the_ledger_are_refused
    a_copy_goes_on
    a_used_store_takes_nothing
    what_contradicts_itself_is_refused
    no_item_of_a_ledger_has_left_it
    nobody_need_take_it_all
    what_is_committed_meanwhile_leaves_every_feed_whole
    a_feed_that_is_purged_meanwhile_ends_it
}

pub(crate) async fn pieces(store: &Store) -> Vec<ExportRecord> {
    let (sender, mut receiver) = mpsc::channel(4);
    let taking = async {
        let mut pieces = Vec::new();
        while let Some(piece) = receiver.recv().await {
            pieces.push(piece);
        }
        pieces
    };
    let (carried, pieces) = tokio::join!(store.export(sender), taking);
    carried.unwrap();
    pieces
}

fn head(endpoint: &EndpointId) -> ExportHead {
    ExportHead { endpoint: endpoint.clone(), sup_ids: SupIdBasis::Name }
}

/// The pieces as they come out of a file again.
fn filed(pieces: &[ExportRecord], endpoint: &EndpointId) -> Vec<ExportRecord> {
    let mut writer = ExportWriter::new(Vec::new(), head(endpoint)).unwrap();
    let mut totals = ExportTotals::default();
    for piece in pieces {
        writer.put(piece.clone()).unwrap();
        totals.feeds += u64::from(matches!(piece, ExportRecord::Feed(_)));
        totals.items += u64::from(matches!(piece, ExportRecord::Item(..)));
    }
    let (written, bytes) = writer.finish().unwrap();
    assert_eq!(written, totals);
    let mut reader = ExportReader::open(bytes.as_slice()).unwrap();
    assert_eq!(reader.head(), &head(endpoint));
    let mut read = Vec::new();
    while let Some(piece) = reader.next_piece().unwrap() {
        read.push(piece);
    }
    assert_eq!(reader.totals(), totals);
    read
}

pub(super) async fn bring(bench: &Bench, pieces: Vec<ExportRecord>) -> Result<(), CommitError> {
    let pieces = pieces.into_iter().map(ImportMessage::Record);
    hand(bench, pieces.chain([ImportMessage::End])).await
}

/// Hands messages to an import, and closes the channel.
pub(super) async fn hand(
    bench: &Bench,
    messages: impl IntoIterator<Item = ImportMessage>,
) -> Result<(), CommitError> {
    let store = bench.store();
    let (sender, receiver) = mpsc::channel(4);
    let sending = async {
        for message in messages {
            if sender.send(message).await.is_err() {
                break;
            }
        }
        drop(sender);
    };
    tokio::join!(store.import(receiver), sending).0
}

/// A copy of a store, by way of a file.
async fn copy(store: &Store, kind: Kind) -> Bench {
    let bench = Bench::new(kind);
    let pieces = pieces(store).await;
    let filed = filed(&pieces, store.endpoint());
    assert_eq!(filed, pieces);
    bring(&bench, pieces).await.unwrap();
    bench
}

/// Whether two stores answer alike. Stores of different kinds differ in what they say of bytes on disk, and of a past of
/// which no order is known: these are compared where the kind `is_same`.
async fn alike(one: &Store, other: &Store, is_same: bool) {
    macro_rules! same {
        ($($call:tt)+) => {
            assert_eq!(one.$($call)+.await.unwrap(), other.$($call)+.await.unwrap())
        };
    }
    assert_eq!(one.endpoint(), other.endpoint());
    same!(applied());
    same!(feeds());
    same!(poll_states());
    same!(subscriptions());
    same!(epochs_after(Epoch(0), usize::MAX));
    assert_eq!(*one.watch_epochs().borrow(), *other.watch_epochs().borrow());
    let names = pieces(one).await.into_iter().filter_map(|piece| piece.feed().cloned());
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        same!(state(&name));
        same!(snapshot(&name));
        for select in [Select::Current, Select::All, Select::After(tick(3))] {
            same!(view(&name, select));
        }
        for known in one.snapshot(&name).await.unwrap().unwrap().known {
            same!(item(&name, &known.id));
            same!(known(&name, &known.id));
            same!(versions(&name, &known.id, usize::MAX));
            for note in one.versions(&name, &known.id, usize::MAX).await.unwrap() {
                same!(version(&name, &known.id, note.updates));
            }
        }
        for seconds in (-1..60).filter(|_| is_same) {
            for select in [PastSelect::Current, PastSelect::All] {
                same!(past(&name, select, time(seconds)));
            }
        }
        let names = ["i", "i.1", "j", "ä"].map(|name| format!("urn:{name}"));
        same!(stubs(&name, &names));
        same!(events(&name, usize::MAX));
        same!(archives(&name, usize::MAX));
        for note in one.archives(&name, usize::MAX).await.unwrap() {
            same!(archive(&name, &note.id));
            same!(archive_place(&name, &note.id));
        }
        let kept = one.holdings(&name).await.unwrap();
        let too = other.holdings(&name).await.unwrap();
        assert_eq!(kept.versions, too.versions);
        if is_same {
            assert_eq!((kept.documents, kept.back_to), (too.documents, too.back_to));
        }
    }
}

pub(super) async fn full(bench: &Bench) {
    let store = bench.store();
    let feeds = store.feed_list().await.unwrap();
    store.apply_feeds(&[], &feeds, Some(applied("http://a/"))).await.unwrap();
    for name in ["news", "empty"] {
        store.put_feed(&record(name)).await.unwrap();
    }
    store.checkpoint(&[poll_state("news")]).await.unwrap();
    store.put_subscriptions(&[super::subscriptions::subscription("a").into()]).await.unwrap();
    // A feed that was purged leaves its marks.
    Draft::on(&store, "old", 1).await.item("a", "A").order(&["a"]).commit(&store).await;
    store.purge_feed(&feed("old")).await.unwrap();
    let long = |text: &str| format!("{text} {}", "and so on ".repeat(900));
    for seconds in 2..39 {
        let draft = edit(&store, seconds).await;
        let draft = match seconds % 6 {
            0 => draft.tombstone("b").order(&["a"]),
            1 => draft.item("b", "B").order(&["b", "a"]).around(&format!("around {seconds}")),
            2 if seconds == 2 => draft.item("a", "A").item("b", "B").order(&["a", "b"]),
            2 => draft.latest("a", &long("latest")),
            3 => draft.item("a", &long(&seconds.to_string())),
            4 => draft.item("c", "C").around("the same"),
            _ => draft.touch("a", ItemStatus::Retired { since: time(seconds) }),
        };
        draft.commit(&store).await;
    }
    let mut change = edit(&store, 39).await.item("c", "contested").done();
    change.known[0].conflicts = 1;
    let lost = known("c", 1, tick(4)).version(Some(markup("lost")));
    change.conflicts = vec![Conflicting { id: id("c"), versions: vec![lost] }];
    store.commit(change).await.unwrap();
}

async fn everything_is_handed_over(bench: Bench) {
    full(&bench).await;
    there_and_back(&bench, Kind::Disk).await;
    there_and_back(&bench, Kind::Memory).await;
}

/// A copy of another kind answers alike, and a copy of that one, of the first kind, in everything.
pub(super) async fn there_and_back(bench: &Bench, other: Kind) {
    let store = bench.store();
    let there = copy(&store, other).await;
    alike(&store, &there.store(), false).await;
    let there = there.reopen().await;
    let back = copy(&there.store(), bench.kind()).await;
    alike(&store, &back.store(), true).await;
    assert_eq!(pieces(&store).await.len(), pieces(&back.store()).await.len());
}

async fn a_copy_goes_on(bench: Bench) {
    full(&bench).await;
    let in_memory = copy(&bench.store(), Kind::Memory).await;
    let on_disk = copy(&bench.store(), Kind::Disk).await;
    let one = check_not_closing(&in_memory).await;
    assert_eq!(one, check_not_closing(&on_disk).await);
    assert_eq!(one, check_not_closing(&bench).await);
}

/// What the past is after more has happened; the purged name is used again.
async fn check_not_closing(bench: &Bench) -> (Vec<Past>, Vec<String>, Tick) {
    let store = bench.store();
    for seconds in 40..80 {
        let draft = edit(&store, seconds).await;
        let draft = draft.item("a", &format!("a{seconds}")).order(&["a"]);
        draft.commit(&store).await;
    }
    let mut pasts = Vec::new();
    for seconds in [5, 17, 39, 41, 79] {
        let past = store.past(&feed("news"), PastSelect::All, time(seconds)).await.unwrap();
        let mut past = past.unwrap();
        // The marks of openings are chance.
        if let Past::Then(view) = &mut past {
            view.state.lineage = Lineage::default();
        }
        pasts.push(past);
    }
    let events = store.events(&feed("news"), usize::MAX).await.unwrap();
    let said = events.into_iter().map(|event| format!("{event:?}")).collect();
    Draft::on(&store, "old", 1).await.item("a", "A").order(&["a"]).commit(&store).await;
    let again = store.state(&feed("old")).await.unwrap().unwrap();
    (pasts, said, again.tick.unwrap())
}

async fn a_used_store_takes_nothing(bench: Bench) {
    let other = Bench::new(Kind::Memory);
    full(&other).await;
    let taken = pieces(&other.store()).await;
    bench.store().put_feed(&record("mine")).await.unwrap();
    let refused = bring(&bench, taken).await;
    assert!(matches!(refused, Err(CommitError::Store(StoreError::Occupied { .. }))), "{refused:?}");
    assert_eq!(bench.store().feeds().await.unwrap(), [record("mine")]);
}

async fn what_contradicts_itself_is_refused(bench: Bench) {
    full(&bench).await;
    let whole = pieces(&bench.store()).await;
    type Kind = fn(&ExportRecord) -> bool;
    let [state, item, text, log, order]: [Kind; 5] = [
        |piece| matches!(piece, ExportRecord::State(..)),
        |piece| matches!(piece, ExportRecord::Item(..)),
        |piece| matches!(piece, ExportRecord::Text(..)),
        |piece| matches!(piece, ExportRecord::Log(_)),
        |piece| matches!(piece, ExportRecord::Past(..)),
    ];
    let times = |kind: Kind, times: usize| -> Vec<ExportRecord> {
        let copies = |piece| vec![ExportRecord::clone(piece); if kind(piece) { times } else { 1 }];
        whole.iter().flat_map(copies).collect()
    };
    for broken in [
        times(state, 0),
        times(item, 0),
        times(item, 2),
        times(text, 2),
        times(state, 2),
        times(log, 2),
        times(order, 2),
        whole.iter().rev().cloned().collect(),
    ] {
        assert_unfit(&bring(&Bench::new(Kind::Memory), broken.clone()).await);
        assert_unfit(&bring(&Bench::new(Kind::Disk), broken).await);
    }
}

fn assert_unfit(imported: &Result<(), CommitError>) {
    let is_unfit = matches!(imported, Err(CommitError::Store(StoreError::Unfit { .. })));
    assert!(is_unfit, "{imported:?}");
}

async fn no_item_of_a_ledger_has_left_it(bench: Bench) {
    full(&bench).await;
    for deleted in [false, true] {
        let mut wrong = pieces(&bench.store()).await;
        for piece in &mut wrong {
            if let ExportRecord::Item(_, item) = piece {
                item.known.standing = ItemStatus::Evicted { since: time(2), deleted };
            }
        }
        let refused = bring(&Bench::new(Kind::Memory), wrong).await;
        let Err(CommitError::Store(StoreError::Unfit { what })) = refused else {
            panic!("{refused:?}")
        };
        assert!(what.ends_with("stands in the ledger and says that it left it"), "{what}");
    }
}

async fn nobody_need_take_it_all(bench: Bench) {
    full(&bench).await;
    let (sender, mut receiver) = mpsc::channel(1);
    let leaving = async {
        let first = receiver.recv().await;
        receiver.close();
        first
    };
    let store = bench.store();
    let (carried, first) = tokio::join!(store.export(sender), leaving);
    carried.unwrap();
    assert!(matches!(first, Some(ExportRecord::Origin(_))));
}

pub(super) fn run(from: Kind, to: Kind, steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let (bench, model) = follow(from, steps).await;
        there_and_back(&bench, to).await;
        let copied = copy(&bench.store(), to).await;
        model.agrees_with(&copied.store()).await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn copies_in_memory_answer_alike(steps in vec(step(), 1..30)) {
        run(Kind::Disk, Kind::Memory, steps);
    }

    #[test]
    fn copies_on_disk_answer_alike(steps in vec(step(), 1..30)) {
        run(Kind::Memory, Kind::Disk, steps);
    }
}

async fn conflicts_that_are_not_those_of_the_ledger_are_refused(bench: Bench) {
    full(&bench).await;
    let edits: [fn(&mut ItemRecord); 2] =
        [|item| item.conflicts.clear(), |item| item.conflicts[0].id = id("another")];
    for edit in edits {
        let mut wrong = pieces(&bench.store()).await;
        let items = wrong.iter_mut().filter_map(|piece| match piece {
            ExportRecord::Item(_, item) if !item.conflicts.is_empty() => Some(item),
            _ => None,
        });
        items.for_each(|item| edit(item));
        assert_unfit(&bring(&Bench::new(Kind::Memory), wrong).await);
    }
}

/// Writers go on while a store is handed over. Each feed comes at one of its revisions, and the log is never
/// ahead of it.
async fn what_is_committed_meanwhile_leaves_every_feed_whole(bench: Bench) {
    const FEEDS: [&str; 3] = ["a", "b", "c"];
    let store = bench.store();
    let mut seconds = 0;
    for name in FEEDS {
        store.put_feed(&record(name)).await.unwrap();
        for _ in 0..4 {
            seconds += 1;
            let change = Draft::on(&store, name, seconds).await.item("i", "I").item("j", "J");
            change.order(&["i", "j"]).commit(&store).await;
        }
    }
    let (sender, mut receiver) = mpsc::channel(1);
    let taking = async {
        let mut pieces = Vec::new();
        while let Some(piece) = receiver.recv().await {
            pieces.push(piece);
            let name = FEEDS[pieces.len() % FEEDS.len()];
            seconds += 1;
            Draft::on(&store, name, seconds).await.item("i", "again").commit(&store).await;
            // A feed that comes meanwhile is for the next export.
            if pieces.len() == 2 {
                store.put_feed(&record("late")).await.unwrap();
                Draft::on(&store, "late", 1).await.item("i", "I").commit(&store).await;
            }
        }
        pieces
    };
    let (carried, pieces) = tokio::join!(store.export(sender), taking);
    carried.unwrap();
    let (mut logged, mut newest) = (std::collections::BTreeMap::new(), None);
    for piece in &pieces {
        match piece {
            ExportRecord::Log(closed) => {
                logged
                    .extend(closed.changes.iter().map(|c| (c.feed.clone(), (c.tick, c.revision))));
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
    let copied = Bench::new(Kind::Memory);
    bring(&copied, pieces).await.unwrap();
    for name in FEEDS {
        let view = copied.store().view(&feed(name), Select::All).await.unwrap().unwrap();
        assert_eq!(view.items.len(), 2, "{name}");
        let ticks = view.items.iter().map(|item| item.tick).max();
        assert_eq!(ticks, view.state.tick, "{name} has what its state says");
    }
    assert!(copied.store().state(&feed("late")).await.unwrap().is_none());
    let other = copy(&store, Kind::Disk).await;
    assert!(other.store().state(&feed("late")).await.unwrap().is_some());
}

async fn a_feed_that_is_purged_meanwhile_ends_it(bench: Bench) {
    let store = bench.store();
    for name in ["a", "z"] {
        store.put_feed(&record(name)).await.unwrap();
        Draft::on(&store, name, 1).await.item("i", "I").order(&["i"]).commit(&store).await;
    }
    let (sender, mut receiver) = mpsc::channel(1);
    let taking = async {
        while let Some(piece) = receiver.recv().await {
            if matches!(&piece, ExportRecord::Item(name, _) if name.as_str() == "a") {
                store.purge_feed(&feed("z")).await.unwrap();
            }
        }
    };
    let (carried, ()) = tokio::join!(store.export(sender), taking);
    let said = carried.unwrap_err();
    let said = format!("{said}: {}", std::error::Error::source(&said).unwrap());
    assert!(said.contains("the feed z was purged meanwhile"), "{said}");
    // What is there now can be handed over.
    assert!(
        pieces(&store).await.iter().all(|piece| piece.feed().is_none_or(|f| f.as_str() == "a"))
    );
}
