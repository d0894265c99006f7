//! What the trait promises, one promise a case.

use super::make::*;
use super::{StoreFixture, on_every_store};
use crate::*;
use tidegate_core::model::*;

on_every_store! {
    an_empty_store_answers_nothing
    a_commit_is_there_whole_and_after_a_restart
    the_base_must_be_the_feeds_revision
    a_document_that_was_asked_for_earlier_is_refused
    a_change_that_contradicts_itself_is_refused
    epochs_are_numbered_and_closed
    the_time_of_an_epoch_never_goes_back
}

async fn an_empty_store_answers_nothing(fixture: StoreFixture) {
    let store = fixture.store();
    let news = feed("news");
    assert_eq!(store.endpoint().as_str(), "gate.example");
    assert!(store.feeds().await.unwrap().is_empty());
    assert!(store.state(&news).await.unwrap().is_none());
    assert!(store.snapshot(&news).await.unwrap().is_none());
    assert!(store.view(&news, Select::All).await.unwrap().is_none());
    assert!(store.item(&news, &id("a")).await.unwrap().is_none());
    assert!(store.versions(&news, &id("a"), 9).await.unwrap().is_empty());
    assert!(store.known(&news, &id("a")).await.unwrap().is_none());
    assert!(store.version(&news, &id("a"), Count::ONE).await.unwrap().is_none());
    assert!(store.past(&news, PastSelect::All, time(9)).await.unwrap().is_none());
    assert_eq!(store.holdings(&news).await.unwrap(), Holdings::default());
    assert!(store.events(&news, 9).await.unwrap().is_empty());
    assert!(store.poll_states().await.unwrap().is_empty());
    assert!(store.epochs_after(Epoch(0), 9).await.unwrap().is_empty());
    assert_eq!(*store.watch_epochs().borrow(), Epoch(0));
    store.purge_feed(&news).await.unwrap();
}

async fn a_commit_is_there_whole_and_after_a_restart(mut fixture: StoreFixture) {
    let store = fixture.store();
    let change = edit(&store, 1).await.item("b", "B").item("a", "A").order(&["a", "b"]).done();
    let committed = store.commit(change.clone()).await.unwrap();
    assert_eq!(committed, Committed { revision: Revision(1) });
    drop(store);
    for _ in 0..2 {
        let store = fixture.store();
        let news = feed("news");
        let view = store.view(&news, Select::Current).await.unwrap().unwrap();
        assert_eq!(view.state.lineage.stretches().len(), 1);
        let lineage = view.state.lineage.clone();
        let state = FeedState { revision: Revision(1), lineage, ..change.state.clone() };
        assert_eq!((&view.state, &view.skeleton), (&state, &skeleton("<feed/>")));
        assert_eq!(texts(&view), ["<entry>A</entry>", "<entry>B</entry>"]);
        let item = &view.items[0];
        assert_eq!(item.shared.winner.history, change.known[1].history);
        assert_eq!((item.tick, item.published_id.as_str()), (tick(1), "urn:a"));
        let note = VersionNote {
            updates: Count::ONE,
            update: change.known[1].history.topmost().clone(),
            deleted: false,
            tick: tick(1),
            shown: time(1),
            title: "a 1".to_owned(),
            reason: "a test".to_owned(),
            size: 16,
        };
        assert_eq!(store.versions(&news, &id("a"), 9).await.unwrap(), [note]);
        let announced =
            LoggedChange { feed: news, tick: tick(1), revision: Revision(1), versions: 2 };
        let closed = ClosedEpoch { epoch: Epoch(1), at: time(0), changes: vec![announced] };
        assert_eq!(store.epochs_after(Epoch(0), 9).await.unwrap(), [closed]);
        assert_eq!(*store.watch_epochs().borrow(), Epoch(1));
        drop(store);
        fixture = fixture.reopen().await;
    }
}

async fn the_base_must_be_the_feeds_revision(fixture: StoreFixture) {
    let store = fixture.store();
    let first = edit(&store, 1).await.item("a", "A").done();
    store.commit(first.clone()).await.unwrap();
    let again = store.commit(first).await;
    assert!(matches!(again, Err(CommitError::Conflict(Revision(1)))), "{again:?}");
    let mut ahead = edit(&store, 2).await.item("a", "later").done();
    ahead.base = Revision(2);
    let ahead = store.commit(ahead).await;
    assert!(matches!(ahead, Err(CommitError::Conflict(Revision(1)))), "{ahead:?}");
    let mut strange = Draft::on(&store, "other", 1).await.item("a", "A").done();
    strange.base = Revision(1);
    let strange = store.commit(strange).await;
    assert!(matches!(strange, Err(CommitError::Conflict(Revision(0)))), "{strange:?}");
    let view = store.view(&feed("news"), Select::All).await.unwrap().unwrap();
    assert_eq!(texts(&view), ["<entry>A</entry>"]);
    assert_eq!(store.epochs_after(Epoch(0), 9).await.unwrap().len(), 1);
}

/// Of two polls of one feed the one that asked later is in force, whoever commits first.
async fn a_document_that_was_asked_for_earlier_is_refused(fixture: StoreFixture) {
    let draft = async |store: &Store, seconds: i64, asked: Option<i64>| {
        let change = edit(store, seconds).await.item("a", "A").done();
        Change { asked_at: asked.map(time), ..change }
    };
    let store = fixture.store();
    for (seconds, asked) in (1..).zip([Some(5), Some(5), None, Some(6)]) {
        let change = draft(&*store, seconds, asked).await;
        store.commit(change).await.unwrap();
    }
    let (_fixture, store) = fixture.again(store).await;
    let change = draft(&*store, 5, Some(5)).await;
    assert!(matches!(store.commit(change).await, Err(CommitError::Overtaken)));
    // One whose clock is a day ahead keeps nobody from the feed.
    for (seconds, asked) in (5..).zip([7, 86_400, 8]) {
        let change = draft(&*store, seconds, Some(asked)).await;
        store.commit(change).await.unwrap();
    }
    let change = draft(&*store, 8, Some(7)).await;
    assert!(matches!(store.commit(change).await, Err(CommitError::Overtaken)));
}

async fn a_change_that_contradicts_itself_is_refused(fixture: StoreFixture) {
    let store = fixture.store();
    edit(&store, 5).await.item("a", "A").order(&["a"]).commit(&store).await;
    let before = store.view(&feed("news"), Select::All).await.unwrap();
    let good = || async { edit(&store, 6).await.item("a", "new").item("b", "B") };
    type Spoil = fn(&mut Change);
    let breaks: [(&str, Spoil); 15] = [
        ("it has versions and no tick", |c| c.tick = None),
        ("it has the tick 2026-11-20T16:20:11Z and no versions", |c| c.versions.clear()),
        ("its tick 2026-11-20T16:20:10Z is not after the last one", |c| c.tick = Some(tick(5))),
        ("its state does not bear its tick 2026-11-20T16:20:11Z", |c| c.state.tick = None),
        ("it has two ledger entries for a", |c| c.known.push(c.known[0].clone())),
        ("it has two versions of a", |c| c.versions.push(c.versions[0].clone())),
        ("it has a version of a and no ledger entry for it", |c| drop(c.known.remove(0))),
        ("the version of a bears another tick than the change", |c| c.known[0].tick = tick(5)),
        ("the version of b has no bytes to keep", |c| c.versions[1].markup = None),
        ("it has newest bytes of x and no ledger entry for it", |c| {
            c.latest = vec![(id("x"), markup("X"))];
        }),
        ("a is shown anew since 3 and says since 2", |c| c.known[0].touched -= 1),
        ("it has a version of a and newest bytes beside it", |c| {
            c.latest = vec![(id("a"), markup("A"))]
        }),
        ("it has two newest bytes of y", |c| {
            c.latest = vec![(id("y"), markup("X")), (id("y"), markup("Y"))];
        }),
        ("the order names x, which is not known", |c| c.order = Some(vec![id("b"), id("x")])),
        ("the item b is new without a version", |c| drop(c.versions.pop())),
    ];
    for (what, spoil) in breaks {
        let mut change = good().await.done();
        spoil(&mut change);
        let said = store.commit(change).await.unwrap_err().to_string();
        let sentence = format!(
            "a change to the feed news cannot be stored: {what}; this is a fault of the program"
        );
        assert_eq!(said, sentence);
        assert_eq!(store.view(&feed("news"), Select::All).await.unwrap(), before);
    }
    let strange = edit(&store, 6).await.tombstone("x").done();
    let said = store.commit(strange).await.unwrap_err().to_string();
    assert!(said.contains("the version of x has no bytes to keep"), "{said}");
    assert_eq!(*store.watch_epochs().borrow(), Epoch(1));
    good().await.commit(&store).await;
}

async fn epochs_are_numbered_and_closed(fixture: StoreFixture) {
    let store = fixture.store();
    let mut sealed = store.watch_epochs();
    for seconds in 1..=4 {
        edit(&store, seconds).await.item("a", "A").commit(&store).await;
        assert!(sealed.has_changed().unwrap(), "acknowledged before it could be seen");
        assert_eq!(*sealed.borrow_and_update(), Epoch(u64::try_from(seconds).unwrap()));
        edit(&store, seconds).await.latest("a", "no tick").commit(&store).await;
        assert!(!sealed.has_changed().unwrap());
    }
    let all = store.epochs_after(Epoch(0), 99).await.unwrap();
    let numbers: Vec<u64> = all.iter().map(|sealed| sealed.epoch.0).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!(store.epochs_after(Epoch(1), 2).await.unwrap(), all[1..3]);
    assert!(store.epochs_after(Epoch(4), 9).await.unwrap().is_empty());
    assert!(store.epochs_after(Epoch(u64::MAX), 9).await.unwrap().is_empty());
    assert!(store.epochs_after(Epoch(0), 0).await.unwrap().is_empty());
    let (_fixture, store) = fixture.again(store).await;
    assert_eq!(*store.watch_epochs().borrow(), Epoch(4));
    edit(&store, 5).await.item("a", "A").commit(&store).await;
    assert_eq!(*store.watch_epochs().borrow(), Epoch(5));
    assert_eq!(store.epochs_after(Epoch(0), 4).await.unwrap(), all);
}

async fn the_time_of_an_epoch_never_goes_back(mut fixture: StoreFixture) {
    for (clock, seconds) in [(50, 1), (20, 2), (60, 3)] {
        fixture = fixture.reopen().await;
        let store = fixture.store();
        fixture.clock.set(time(clock));
        edit(&store, seconds).await.item("a", "A").commit(&store).await;
    }
    let tail = fixture.store().epochs_after(Epoch(0), 9).await.unwrap();
    let at: Vec<Time> = tail.iter().map(|sealed| sealed.at).collect();
    assert_eq!(at, [time(50), time(50), time(60)]);
}
