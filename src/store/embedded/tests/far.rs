//! What is read of a database that is far away: each of these reads is a round trip.

use super::*;
use crate::Epoch;
use crate::conformance::carry;
use crate::engine::{EngineCall, MemoryEngine, WatchedEngine};
use crate::portable::ImportMessage;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use tidegate_core::model::{ArchiveId, Change, ItemStatus, Revision, Seal};

/// What is done as an epoch is closed.
type Closing = Box<dyn Fn() -> Result<(), StoreError> + Send>;
/// What others do while all poll states are read: before their second portion is.
type Meanwhile = Box<dyn FnOnce() + Send>;

const NAMES: [&str; 8] =
    ["item-0", "item-1", "item-2", "item-3", "item-4", "item-5", "item-6", "item-7"];

/// A store far away, and what was read of it since that was asked last.
struct FarStore {
    store: EmbeddedStore,
    claim: crate::Claim,
    reads: Arc<Mutex<Vec<Vec<Class>>>>,
    closing: Arc<Mutex<Option<Closing>>>,
    meanwhile: Arc<Mutex<Option<Meanwhile>>>,
    most: Arc<AtomicUsize>,
}

impl FarStore {
    async fn new() -> Self {
        let reads: Arc<Mutex<Vec<Vec<Class>>>> = Arc::default();
        let closing: Arc<Mutex<Option<Closing>>> = Arc::default();
        let meanwhile: Arc<Mutex<Option<Meanwhile>>> = Arc::default();
        let most = Arc::new(AtomicUsize::default());
        let (noted, closed) = (Arc::clone(&reads), Arc::clone(&closing));
        let others = Arc::clone(&meanwhile);
        let watch = Box::new(move |call: EngineCall| match call {
            EngineCall::Read(classes) => {
                let mut noted = noted.lock().unwrap();
                noted.push(classes);
                let portions = noted.iter().filter(|read| read[..] == [Class::Polls]).count();
                drop(noted);
                let work = (portions == 2).then(|| others.lock().unwrap().take()).flatten();
                if let Some(work) = work {
                    work();
                }
                Ok(())
            }
            EngineCall::CloseEpochs(true) => {
                closed.lock().unwrap().as_ref().map_or(Ok(()), |closing| closing())
            }
            EngineCall::CloseEpochs(false) | EngineCall::Apply | EngineCall::Pass => Ok(()),
        });
        let engine = Arc::new(MemoryEngine::default());
        let engine = WatchedEngine { engine, watch, far: Some(Arc::clone(&most)) };
        let clock = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
        let store = EmbeddedStore::over_memory(
            Records::of(Arc::new(engine)),
            OpenRequest {
                endpoint: EndpointId::own("gate.example").ok(),
                ..OpenRequest::default()
            },
            clock,
        );
        let store = store.unwrap();
        let claim = store.claim().await.unwrap();
        Self { store, claim, reads, closing, meanwhile, most }
    }

    /// Takes in eight items, by changes that are written in one piece each.
    async fn with_items() -> Self {
        let far = Self::new().await;
        for (pair, at) in NAMES.chunks(2).zip(1..) {
            let draft = far.draft(at).await;
            let draft = pair.iter().fold(draft, |draft, name| draft.item(name, "one"));
            // Of new items nothing is there that could be read.
            assert_eq!(far.reads_of(draft.done()).await.len(), 1);
        }
        far
    }

    /// Exports everything, where an answer to a question for ranges has at most so many entries; what is handed over, and
    /// the classes of each read of content.
    async fn export(&self, most: usize) -> (Vec<ExportRecord>, Vec<Vec<Class>>) {
        self.most.store(most, Ordering::Relaxed);
        self.reads.lock().unwrap().clear();
        let pieces = carry::pieces(&self.store).await;
        let mut reads = std::mem::take(&mut *self.reads.lock().unwrap());
        reads.retain(|read| read.iter().any(|class| class.is_content()));
        (pieces, reads)
    }

    async fn draft(&self, at: i64) -> Draft {
        Draft::on(&self.store, "news", at).await
    }

    /// Commits a change; the classes of each read that planned it.
    async fn reads_of(&self, change: Change) -> Vec<Vec<Class>> {
        self.reads.lock().unwrap().clear();
        self.store.commit(&self.claim, change).await.unwrap();
        let mut reads = std::mem::take(&mut *self.reads.lock().unwrap());
        // Before it is planned: the feed's state, and whether a write was left unfinished.
        reads.retain(|read| !matches!(read[..], [Class::States | Class::Unfinished]));
        reads
    }
}

fn count(reads: &[Vec<Class>], class: Class) -> usize {
    reads.iter().flatten().filter(|read| **read == class).count()
}

/// Seals these items, of which the change says nothing new.
fn seal(mut change: Change, names: &[&str]) -> Change {
    let chain = &mut change.state.archives;
    let seal = Seal {
        number: chain.next,
        id: ArchiveId::new("sealed").unwrap(),
        previous: chain.newest.clone(),
        upstream: "https://example.org/feed".to_owned(),
        items: names.iter().map(|name| tidegate_core::model::SyncId::new(name).unwrap()).collect(),
    };
    chain.next += 1;
    chain.newest = Some(seal.id.clone());
    chain.sealed = change.state.tick;
    change.state.updated_at = change.at;
    change.seals.push(seal);
    change
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_planned_with_two_reads_and_reads_no_bytes_that_it_does_not_need() {
    let far = FarStore::with_items().await;
    let order = far.draft(5).await.order(&NAMES).done();
    assert_eq!(far.reads_of(order).await.len(), 1);

    // Of an edit what was there before, which becomes a difference.
    let edit = far.draft(6).await.item("item-1", "two").order(&NAMES).done();
    let reads = far.reads_of(edit).await;
    assert_eq!((reads.len(), count(&reads, Class::Bodies)), (2, 1), "{reads:?}");
    assert_eq!(reads[1], [Class::Versions, Class::Bodies]);

    // Of newest bytes, and of a changed ledger, nothing.
    let latest = far.draft(7).await.latest("item-2", "three").touch("item-3", ItemStatus::Current);
    let reads = far.reads_of(latest.done()).await;
    assert_eq!(reads.len(), 1, "{reads:?}");

    // They become those of a version.
    let reads = far.reads_of(far.draft(8).await.ripe("item-2").done()).await;
    assert_eq!((reads.len(), count(&reads, Class::Latest)), (2, 1), "{reads:?}");

    // Of archives what the items are by now.
    let draft = far.draft(9).await.item("item-4", "four").latest("item-5", "five");
    let sealed = seal(draft.done(), &["item-4", "item-5", "item-6", "item-7"]);
    let reads = far.reads_of(sealed).await;
    let notes = count(&reads, Class::Archives);
    assert_eq!((reads.len() - notes, count(&reads, Class::Bodies)), (2, 3), "{reads:?}");
    assert_eq!(count(&reads, Class::Ledger), 2, "{reads:?}");
    for class in [Class::Kept, Class::Unsettled, Class::Polls] {
        assert_eq!(count(&reads, class), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_reads_each_of_its_items_once() {
    let far = FarStore::with_items().await;
    far.reads.lock().unwrap().clear();
    let view = far.store.view(&make::feed("news"), Select::All).await.unwrap().unwrap();
    let reads = std::mem::take(&mut *far.reads.lock().unwrap());
    assert_eq!(view.items.len(), NAMES.len());
    for class in [Class::Ledger, Class::Heads, Class::Bodies] {
        assert_eq!(count(&reads, class), NAMES.len(), "{class:?} of {reads:?}");
    }
}

/// A round trip for each item, or for each of its versions, would be hours with a million feeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_is_exported_with_one_read_and_a_larger_one_with_a_few() {
    let far = FarStore::new().await;
    let names: Vec<String> = (0..20).map(|item| format!("item-{item:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (at, text) in [(1, "one"), (2, "two"), (3, "three")] {
        let draft = far.draft(at).await;
        let draft = names.iter().fold(draft, |draft, name| draft.item(name, text));
        far.store.commit(&far.claim, draft.order(&names).done()).await.unwrap();
    }
    let draft = far.draft(4).await.latest("item-03", "four").order(&["item-03"]);
    let change = seal(draft.done(), &["item-00", "item-01"]);
    far.store.commit(&far.claim, change).await.unwrap();

    let (pieces, reads) = far.export(usize::MAX).await;
    assert_eq!(reads.len(), 1, "{reads:?}");
    let count = |is_wanted: fn(&ExportRecord) -> bool| {
        pieces.iter().filter(|piece| is_wanted(piece)).count()
    };
    assert_eq!(count(|piece| matches!(piece, ExportRecord::Item(..))), names.len());
    assert_eq!(count(|piece| matches!(piece, ExportRecord::Version(..))), 3 * names.len());
    assert_eq!(count(|piece| matches!(piece, ExportRecord::Archive(..))), 1);
    assert_eq!(count(|piece| matches!(piece, ExportRecord::Block(..))), 1);

    // Where an answer has ten of the items, and where it has none.
    let (of_large, reads) = far.export(80).await;
    assert!(reads.len() < names.len(), "{reads:?}");
    assert_eq!(of_large, pieces);
    let (one_by_one, reads) = far.export(0).await;
    assert!(reads.len() > 6 * names.len(), "{}", reads.len());
    assert_eq!(one_by_one, pieces);
}

/// Of a million feeds that is thousands of round trips. Feeds come and go meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_write_while_an_export_reads_poll_states() {
    let far = Arc::new(FarStore::new().await);
    let names: Vec<String> = (0..10).map(|number| format!("feed-{number}")).collect();
    for name in &names {
        far.store.put_feed(&make::record(name)).await.unwrap();
    }
    let polls: Vec<_> = names.iter().map(|name| make::poll_state(name)).collect();
    far.store.checkpoint(&far.claim, &polls).await.unwrap();
    far.reads.lock().unwrap().clear();
    let others = Arc::clone(&far);
    *far.meanwhile.lock().unwrap() = Some(Box::new(move || {
        let store = &others.store;
        assert!(store.inner.shared.lists.try_write().is_ok(), "who writes waits");
        let work = async {
            for name in ["feed-1", "feed-2"] {
                store.purge_feed(&make::feed(name)).await.unwrap();
            }
            // Another feed has the name of one that was polled, and one comes that is polled at once.
            for name in ["feed-2", "late"] {
                store.put_feed(&make::record(name)).await.unwrap();
            }
            store.checkpoint(&others.claim, &[make::poll_state("late")]).await.unwrap();
        };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(work));
    }));
    let pieces = carry::pieces(&far.store).await;
    assert!(far.meanwhile.lock().unwrap().is_none(), "poll states are read at once");

    let copy = FarStore::new().await;
    let (to, from) = mpsc::channel(pieces.len() + 1);
    for message in pieces.into_iter().map(ImportMessage::Record).chain([ImportMessage::End]) {
        to.send(message).await.unwrap();
    }
    copy.store.import(&copy.claim, from).await.unwrap();
    assert_eq!(copy.store.feeds().await.unwrap(), far.store.feeds().await.unwrap());
    let polls = copy.store.poll_states().await.unwrap();
    assert_eq!(polls, far.store.poll_states().await.unwrap());
    assert_eq!(polls.len(), names.len() - 1);
}

/// Others may announce an epoch from the moment that it is closed: by then its changes are shown here. And here it is
/// told only once the others may, too.
#[tokio::test]
async fn an_epoch_is_closed_between_what_it_announces_and_its_announcement() {
    let far = FarStore::with_items().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let news = FeedName::new("news").unwrap();
    let (shared, noted) = (Arc::clone(&far.store.inner.shared), Arc::clone(&seen));
    *far.closing.lock().unwrap() = Some(Box::new(move || {
        let revision = shared.published(&news).unwrap().watch.revision();
        noted.lock().unwrap().push((revision, *shared.sealed.borrow()));
        Ok(())
    }));
    let change = far.draft(9).await.item("item-8", "one").done();
    far.store.commit(&far.claim, change).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [(Revision(5), Epoch(4))]);
    assert_eq!(*far.store.watch_epochs().borrow(), Epoch(5));
}

/// Whether the others may announce it is not known: it is shown, not told, and the store is opened again. It is
/// acknowledged where the database only fell silent, and not where that may lack it.
#[tokio::test]
async fn an_epoch_that_could_not_be_closed_is_not_told() {
    for is_silent in [true, false] {
        let far = FarStore::with_items().await;
        *far.closing.lock().unwrap() = Some(Box::new(move || {
            let (doing, source) = ("close an epoch", std::io::Error::other("it is gone"));
            Err(match is_silent {
                true => StoreError::Away { doing, why: "is gone", source },
                false => StoreError::Io { doing, source },
            })
        }));
        let change = far.draft(9).await.item("item-8", "one").done();
        match far.store.commit(&far.claim, change).await {
            Ok(done) => assert!(is_silent && done.revision == Revision(5), "{done:?}"),
            Err(error) => {
                assert!(!is_silent && matches!(error, CommitError::Ambiguous(_)), "{error:?}");
            }
        }
        let shown = far.store.state(&make::feed("news")).await.unwrap().unwrap();
        assert_eq!(shown.revision, Revision(5));
        assert_eq!(*far.store.watch_epochs().borrow(), Epoch(4));
        assert!(far.store.condition().stop.is_some());
    }
}

/// A database that cannot be opened again, and notes how often that is tried.
struct TestOpener {
    tries: std::sync::mpsc::Sender<()>,
    answers: Arc<AtomicBool>,
}

impl Reopen for TestOpener {
    fn reopen(&self, _known: &Acknowledged) -> Result<Reopened, ReopenError> {
        let _ = self.tries.send(());
        let source = std::io::Error::other("it is gone");
        Err(ReopenError::Failed(StoreError::Away {
            doing: "read",
            why: crate::error::AWAY,
            source,
        }))
    }

    fn pauses(&self) -> ReopenPauses {
        let long = Duration::from_secs(600);
        ReopenPauses { first: Duration::from_secs(2), longest: long, damaged: (long, long) }
    }

    fn has_answered(&self, _since: Duration) -> bool {
        self.answers.load(Ordering::Acquire)
    }
}

/// Once the last reader has let go of it, and once the database answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_opened_again_as_soon_as_that_may_succeed() {
    let far = FarStore::new().await;
    let (inner, reading) = (Arc::clone(&far.store.inner), far.store.inner.records().unwrap());
    inner.shared.fail(&StoreError::Closed);
    let known = Acknowledged::new(&inner.shared, far.store.endpoint.clone(), HashMap::new());
    let (tries, tried) = std::sync::mpsc::channel();
    let answers = Arc::new(AtomicBool::new(false));
    let opener = TestOpener { tries, answers: Arc::clone(&answers) };
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
    let opening = std::thread::spawn(move || {
        reopen::try_until_open(&inner, &opener, &known, &clock).is_none()
    });
    while far.store.condition().stop.is_none_or(|stop| stop.failed_tries == 0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(tried.try_recv().is_err(), "it is opened while somebody reads from it");
    drop(reading);
    // Sooner than after the next pause.
    let soon = || tokio::task::block_in_place(|| tried.recv_timeout(Duration::from_secs(3)));
    soon().expect("nobody reads from it any more");
    answers.store(true, Ordering::Release);
    soon().expect("it answers");
    drop(far.store.close().await);
    assert!(opening.join().unwrap());
}
