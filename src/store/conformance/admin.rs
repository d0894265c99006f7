//! Feeds that go, and the end.

use super::archives::sealing;
use super::make::*;

on_every_store! {
    a_purged_feed_is_gone_and_its_successor_goes_on_above
    a_successor_without_a_tick_keeps_the_floor
    a_closed_store_says_so
}

async fn a_purged_feed_is_gone_and_its_successor_goes_on_above(store: StoreFixture) {
    let news = feed("news");
    for name in ["news", "news-2"] {
        let large = "y".repeat(100_000);
        let draft = Draft::on(&store, name, 50).await.item("a", &large).order(&["a"]);
        store.commit(sealing(draft.done(), "one", &["a"])).await.unwrap();
        Draft::on(&store, name, 60).await.latest("a", "newer").commit(&store).await;
    }
    store.purge_feed(&news).await.unwrap();
    let store = store.reopen().await;
    assert_eq!(store.purged_updates(&news).await.unwrap(), 1);
    assert_eq!(store.purged_updates(&feed("news-2")).await.unwrap(), 0);
    // The clock went back meanwhile: the successor's first tick would lie below the old one.
    let change = edit(&store, 7).await.item("a", "A").item("b", "B").done();
    let mut change = sealing(change, "one", &["a"]);
    change.state.window_start = Some(tick(6));
    let committed = store.commit(change).await.unwrap();
    assert_eq!(committed.revision, Revision(3));
    let view = store.view(&news, Select::After(tick(50))).await.unwrap().unwrap();
    let state = &view.state;
    assert!(state.window_start > Some(tick(50)), "{:?}", state.window_start);
    assert!(state.tick > state.window_start, "{:?}", state.tick);
    let is_above = state.render_revision > 2 && state.updated_at > time(0);
    assert!(is_above, "a cached document would match");
    assert_eq!(ids(&view), ["a", "b"]);
    assert!(view.items.iter().all(|item| Some(item.tick) == state.tick));
    let snapshot = store.snapshot(&news).await.unwrap().unwrap();
    assert!(snapshot.known.iter().all(|known| Some(known.tick) == state.tick));
    let events = store.events(&news, 9).await.unwrap();
    assert!(events.len() == 2 && events.iter().all(|event| event.tick == state.tick));
    // The item a was at its first version; whoever knows that takes the next one.
    let counts: Vec<_> = snapshot.known.iter().map(|known| known.updates.value()).collect();
    assert_eq!((counts, state.updates_before), (vec![2, 2], 1));
    assert!(snapshot.known.iter().all(|known| known.history.topmost().sequence == known.updates));
    let tail = store.epochs_after(Epoch(2), 9).await.unwrap();
    assert_eq!(Some(tail[0].changes[0].tick), state.tick);
    let newest = store.versions(&news, &id("a"), 9).await.unwrap();
    assert_eq!((newest.len(), Some(newest[0].tick)), (1, state.tick));
    let note = store.archives(&news, 9).await.unwrap().remove(0);
    assert_eq!((note.number, Some(note.until), state.archives.sealed), (0, state.tick, state.tick));
    // From here on nothing is lifted.
    edit(&store, 70).await.item("a", "AA").commit(&store).await;
    assert_eq!(store.state(&news).await.unwrap().unwrap().tick, Some(tick(70)));
}

async fn a_successor_without_a_tick_keeps_the_floor(store: StoreFixture) {
    edit(&store, 50).await.item("a", "A").commit(&store).await;
    store.purge_feed(&feed("news")).await.unwrap();
    let change = edit(&store, 1).await.done();
    assert_eq!(store.commit(change).await.unwrap().revision, Revision(2));
    let store = store.reopen().await;
    store.purge_feed(&feed("news")).await.unwrap();
    let change = edit(&store, 2).await.done();
    assert_eq!(store.commit(change).await.unwrap().revision, Revision(3));
    let change = edit(&store, 3).await.item("a", "A").done();
    assert_eq!(store.commit(change).await.unwrap().revision, Revision(4));
    let state = store.state(&feed("news")).await.unwrap().unwrap();
    assert!(state.tick > Some(tick(50)), "{:?}", state.tick);
    assert_eq!(state.updates_before, 1, "what is made later begins above it as well");
}

async fn a_closed_store_says_so(store: StoreFixture) {
    let news = feed("news");
    let change = edit(&store, 1).await.item("a", "A").done();
    let subscription = super::subscriptions::subscription("a").into();
    store.close().await.unwrap();
    for (call, refused) in (1..).zip([
        store.close().await.err(),
        store.feeds().await.err(),
        store.put_feed(&record("a")).await.err(),
        store.purge_feed(&news).await.err(),
        store.commit(change).await.err().map(StoreError::from),
        store.checkpoint(&[poll_state("a")]).await.err().map(StoreError::from),
        store.put_subscriptions(&[subscription]).await.err(),
        store.state(&news).await.err(),
        store.view(&news, Select::All).await.err(),
        store.item(&news, &id("a")).await.err(),
        store.poll_states().await.err(),
        store.epochs_after(Epoch(0), 1).await.err(),
    ]) {
        assert!(matches!(refused, Some(StoreError::Closed)), "{call}: {refused:?}");
    }
}
