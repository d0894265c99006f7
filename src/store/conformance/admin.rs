//! Feeds that come and go, poll states, and the end.

use super::make::*;
use super::{StoreFixture, on_every_store};
use crate::*;
use tidegate_core::model::*;

on_every_store! {
    poll_states_are_found_by_their_feeds
    a_purged_feed_is_gone_and_its_successor_goes_on_above
    a_successor_without_a_tick_keeps_the_floor
    a_closed_store_says_so
    what_was_applied_of_a_configuration_is_kept
}

async fn poll_states_are_found_by_their_feeds(fixture: StoreFixture) {
    let store = fixture.store();
    let failed = PollState { failures: 3, etag: None, ..poll_state("a") };
    store.checkpoint(&[poll_state("b"), poll_state("a")]).await.unwrap();
    store.checkpoint(std::slice::from_ref(&failed)).await.unwrap();
    store.checkpoint(&[]).await.unwrap();
    let (_fixture, store) = fixture.again(store).await;
    let of_some = store.poll_states_of(&[feed("c"), feed("a")]).await.unwrap();
    assert_eq!(of_some, *std::slice::from_ref(&failed));
    let of_all = [feed("a"), feed("b"), feed("c"), feed("a-1")];
    assert_eq!(store.poll_states_of(&of_all).await.unwrap(), [failed, poll_state("b")]);
}

async fn a_purged_feed_is_gone_and_its_successor_goes_on_above(mut fixture: StoreFixture) {
    let store = fixture.store();
    let news = feed("news");
    for name in ["news", "news-2"] {
        store.put_feed(&record(name)).await.unwrap();
        store.checkpoint(&[poll_state(name)]).await.unwrap();
        let large = "y".repeat(100_000);
        Draft::on(&store, name, 50).await.item("a", &large).order(&["a"]).commit(&store).await;
        Draft::on(&store, name, 60).await.latest("a", "newer").commit(&store).await;
    }
    let other = store.view(&feed("news-2"), Select::All).await.unwrap();
    store.purge_feed(&news).await.unwrap();
    drop(store);

    for _ in 0..2 {
        let store = fixture.store();
        assert_eq!(store.feeds().await.unwrap(), [record("news-2")]);
        assert_eq!(store.poll_states().await.unwrap(), [poll_state("news-2")]);
        assert!(store.state(&news).await.unwrap().is_none());
        assert!(store.snapshot(&news).await.unwrap().is_none());
        assert_eq!(store.purged_updates(&news).await.unwrap(), 1);
        assert_eq!(store.purged_updates(&feed("news-2")).await.unwrap(), 0);
        assert!(store.view(&news, Select::All).await.unwrap().is_none());
        assert!(store.item(&news, &id("a")).await.unwrap().is_none());
        assert!(store.versions(&news, &id("a"), 9).await.unwrap().is_empty());
        assert!(store.events(&news, 9).await.unwrap().is_empty());
        assert_eq!(store.epochs_after(Epoch(0), 9).await.unwrap().len(), 2);
        assert_eq!(store.view(&feed("news-2"), Select::All).await.unwrap(), other);
        drop(store);
        fixture = fixture.reopen().await;
    }

    // The clock went back meanwhile: the successor's first tick would lie below the old one.
    let store = fixture.store();
    let mut change = edit(&store, 7).await.item("a", "A").item("b", "B").done();
    change.state.window_start = Some(tick(6));
    let committed = store.commit(change).await.unwrap();
    assert_eq!(committed.revision, Revision(3));
    let view = store.view(&news, Select::After(tick(50))).await.unwrap().unwrap();
    let state = &view.state;
    assert!(state.window_start > Some(tick(50)), "{:?}", state.window_start);
    assert!(state.tick > state.window_start, "{:?}", state.tick);
    assert!(
        state.render_revision > 2 && state.updated_at > time(0),
        "a cached document would match"
    );
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

    // From here on nothing is lifted.
    edit(&store, 70).await.item("a", "AA").commit(&store).await;
    assert_eq!(store.state(&news).await.unwrap().unwrap().tick, Some(tick(70)));
}

async fn a_successor_without_a_tick_keeps_the_floor(fixture: StoreFixture) {
    let store = fixture.store();
    edit(&store, 50).await.item("a", "A").commit(&store).await;
    store.purge_feed(&feed("news")).await.unwrap();
    let change = edit(&store, 1).await.done();
    assert_eq!(store.commit(change).await.unwrap().revision, Revision(2));
    let (_fixture, store) = fixture.again(store).await;
    store.purge_feed(&feed("news")).await.unwrap();
    let change = edit(&store, 2).await.done();
    assert_eq!(store.commit(change).await.unwrap().revision, Revision(3));
    let change = edit(&store, 3).await.item("a", "A").done();
    assert_eq!(store.commit(change).await.unwrap().revision, Revision(4));
    let state = store.state(&feed("news")).await.unwrap().unwrap();
    assert!(state.tick > Some(tick(50)), "{:?}", state.tick);
    assert_eq!(state.updates_before, 1, "what is made later begins above it as well");
}

async fn what_was_applied_of_a_configuration_is_kept(fixture: StoreFixture) {
    let store = fixture.store();
    assert_eq!(store.applied().await.unwrap(), AppliedOrigins::default());
    let records = [record("a"), record("b")];
    for (url, records) in [("http://a/", &records[..]), ("http://b/", &[])] {
        let feeds = store.feed_list().await.unwrap();
        store.apply_feeds(records, &feeds, Some(applied(url))).await.unwrap();
        assert_eq!(store.applied().await.unwrap(), applied(url));
    }
    drop(store);
    let store = fixture.reopen().await.store();
    assert_eq!(store.applied().await.unwrap(), applied("http://b/"));
    assert_eq!(store.feeds().await.unwrap(), records);
}

async fn a_closed_store_says_so(fixture: StoreFixture) {
    let store = fixture.store();
    let news = feed("news");
    let change = edit(&store, 1).await.item("a", "A").done();
    store.close().await.unwrap();
    let closed = |error: &StoreError| matches!(error, StoreError::Closed);
    assert!(closed(&store.close().await.unwrap_err()));
    assert!(closed(&store.feeds().await.unwrap_err()));
    assert!(closed(&store.put_feed(&record("a")).await.unwrap_err()));
    assert!(closed(&store.purge_feed(&news).await.unwrap_err()));
    assert!(closed(&store.state(&news).await.unwrap_err()));
    assert!(closed(&store.snapshot(&news).await.unwrap_err()));
    assert!(closed(&store.view(&news, Select::All).await.unwrap_err()));
    assert!(closed(&store.item(&news, &id("a")).await.unwrap_err()));
    assert!(closed(&store.versions(&news, &id("a"), 1).await.unwrap_err()));
    assert!(closed(&store.events(&news, 1).await.unwrap_err()));
    assert!(closed(&store.poll_states().await.unwrap_err()));
    assert!(closed(&store.epochs_after(Epoch(0), 1).await.unwrap_err()));
    assert!(closed(&store.subscriptions().await.unwrap_err()));
    let subscription = super::subscriptions::subscription("a").into();
    assert!(closed(&store.put_subscriptions(&[subscription]).await.unwrap_err()));
    let commit = store.commit(change).await.unwrap_err();
    assert!(matches!(commit, CommitError::Store(StoreError::Closed)), "{commit:?}");
    let checkpoint = store.checkpoint(&[poll_state("a")]).await.unwrap_err();
    assert!(matches!(checkpoint, CommitError::Store(StoreError::Closed)), "{checkpoint:?}");
}
