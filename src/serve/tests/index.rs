//! What is known of all feeds is kept up by what changes.

use super::*;
use crate::{FeedIndex, IndexedFeed};
use futures_util::FutureExt as _;

fn feed(index: &FeedIndex, feed: &str) -> Arc<IndexedFeed> {
    Arc::clone(index.get(&name(feed)).unwrap())
}

/// What changes a feed, whether the list of subscriptions tells it, and whether a feed shows it.
type FeedChange<'a> = (&'a dyn Fn(), bool, fn(&IndexedFeed) -> bool);

#[tokio::test]
async fn a_feed_is_looked_at_again_once_it_has_changed() {
    let site = Site::new();
    let first = site.app.whole_index().await.unwrap();
    assert!(Arc::ptr_eq(&first, &site.app.whole_index().await.unwrap()), "nothing has changed");
    let changes: [FeedChange<'_>; 4] = [
        (&|| site.store.edit("news", |feed| feed.state.living = 99), false, |feed| {
            feed.figures.living == 99
        }),
        (&|| site.store.edit("news", |feed| feed.state.site = None), true, |feed| {
            feed.figures.living == 99
        }),
        (
            &|| {
                let status = PollStatus { failures: 17, ..polling() };
                site.polling.tell(&record("news", FeedStanding::Active), status);
            },
            false,
            |feed| feed.polling.failures == 17 && feed.is_failing(),
        ),
        (&|| site.store.edit_record("news", |record| record.private = true), true, |feed| {
            feed.is_private && feed.figures.living == 99 && feed.polling.failures == 17
        }),
    ];
    let mut last = first;
    for (change, is_in_list, is_shown) in changes {
        change();
        let index = site.app.whole_index().await.unwrap();
        assert!(is_shown(&feed(&index, "news")));
        assert!(Arc::ptr_eq(&feed(&last, "radio"), &feed(&index, "radio")));
        assert!(index.revision > last.revision);
        assert_eq!(index.list_revision > last.list_revision, is_in_list);
        last = index;
    }
    site.store.remove_record(&name("news"));
    assert!(site.app.whole_index().await.unwrap().get(&name("news")).is_none());
    // What was looked at is kept though who asked left.
    let site = Site::new();
    (0..1200).for_each(|n| site.store.set_record(&record(&format!("f{n}"), FeedStanding::Active)));
    // Each asks once and goes away where more has to be looked at than in one go.
    let found = (0..9).find_map(|turn| Some((turn, site.app.index().now_or_never()?.unwrap())));
    let (turn, index) = found.expect("somebody has the rest looked at");
    assert!(turn > 0 && index.get(&name("f1199")).is_some());
}

#[tokio::test]
async fn feeds_that_another_gateway_polls_stand_as_it_stored_them() {
    let site = Site::sharing();
    let other = KnownGateway { name: "there".to_owned(), polls: true, ..KnownGateway::default() };
    let this = KnownGateway { is_this: true, ..other.clone() };
    site.store.confirm(vec![other]);
    site.polling.forget(&name("radio"));
    let url = record("radio", FeedStanding::Active).url;
    let last_error = Some("it answered 503".to_owned());
    let stored = PollState { failures: 7, last_error, ..PollState::new(&name("radio"), &url) };
    site.store.set_poll(&stored);
    let asked = ["radio", "nothing", "news"].map(name);
    let told = site.app.operator.statuses(&asked).await.unwrap();
    let [radio, news] = &told[..] else { panic!("{told:?}") };
    assert_eq!((&radio.record.name, radio.polled_by.as_deref()), (&asked[0], Some("there")));
    assert_eq!((radio.polling.failures, radio.polling.error()), (7, Some("it answered 503")));
    assert_eq!(news.record.name, asked[2]);
    assert!(radio.polling.next.is_none() && news.polling.next.is_some());
    site.store.confirm(vec![this]);
    let told = site.app.operator.status(&asked[0]).await.unwrap();
    assert_eq!((told.polled_by, told.polling.failures), (None, 7));
}

#[tokio::test(start_paused = true)]
async fn what_another_gateway_stored_of_its_polls_is_believed_for_a_while() {
    let site = Site::sharing();
    let store = |feed: &str, failures| {
        let url = record(feed, FeedStanding::Active).url;
        site.store.set_poll(&PollState { failures, ..PollState::new(&name(feed), &url) });
    };
    let failures = async |of: &str| {
        let index = site.app.whole_index().await.unwrap();
        assert!(!feed(&index, of).is_polled_here);
        feed(&index, of).polling.failures
    };
    site.polling.forget(&name("radio"));
    store("radio", 7);
    assert_eq!(failures("radio").await, 7);
    store("radio", 8);
    assert_eq!(failures("radio").await, 7);
    // Who asks for one aggregate is told how its sources stand now.
    site.store.edit_record("news", |record| record.options.sharing.sources = vec![name("radio")]);
    let told = site.app.operator.status(&name("news")).await.unwrap().gathered.unwrap();
    assert!(told.troubles[0].why.starts_with("its polls fail, 8 in a row"), "{told:?}");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(failures("radio").await, 8);
    // Of one that it took over just now nothing was read.
    store("new", 9);
    site.polling.forget(&name("new"));
    assert_eq!(failures("new").await, 9);
}
