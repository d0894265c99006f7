//! Several gateways on one store, each polling the feeds it owns.

use super::*;
use tidegate_core::model::{PollState, SubscriptionStanding};
use tidegate_core::websub::{Intent, Secret, Verification};
use tidegate_store::Gateways;

const FEEDS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn owned(by: &Gateways) -> Vec<String> {
    let is_owned = |feed: &&str| by.owns(&format!("{feed}.example"));
    FEEDS.into_iter().filter(is_owned).map(str::to_owned).collect()
}

fn known(gateway: &Gateway) -> Vec<String> {
    let is_known = |feed: &&str| gateway.poller.summary(&name(feed)).is_some();
    FEEDS.into_iter().filter(is_known).map(str::to_owned).collect()
}

/// Two live gateways on one store, each with its own feeds.
struct Pair {
    store: Arc<ScriptedStore>,
    owners: [Arc<Gateways>; 2],
    gateways: [Gateway; 2],
}

impl Pair {
    async fn start() -> Self {
        Self::of(&Publisher::new("one")).await
    }

    async fn of(publisher: &Arc<Publisher>) -> Self {
        let store = store_of(&FEEDS);
        let owners = [gateway(1), gateway(2)];
        live(&[&owners[0], &owners[1]]);
        assert!(owners.iter().all(|it| !owned(it).is_empty()));
        publisher.release(FEEDS.len());
        let gateways = [
            Gateway::start(&store.shared_by(&owners[0]), publisher).await,
            Gateway::start(&store.shared_by(&owners[1]), publisher).await,
        ];
        let pair = Self { store, owners, gateways };
        for (gateway, owner) in pair.gateways.iter().zip(&pair.owners) {
            for feed in owned(owner) {
                gateway.polls(&feed, 1).await;
            }
        }
        pair
    }

    fn of_second(&self) -> String {
        owned(&self.owners[1]).remove(0)
    }
}

#[tokio::test(start_paused = true)]
async fn each_feed_is_polled_by_its_owner_and_moves_with_who_joins_and_leaves() {
    let pair = Pair::start().await;
    let [first, second] = &pair.gateways;
    let of = [owned(&pair.owners[0]), owned(&pair.owners[1])];
    a_while().await;
    assert_eq!((known(first), known(second)), (of[0].clone(), of[1].clone()));
    assert_eq!(first.publisher.requests(), FEEDS.len(), "each once");
    live(&[&pair.owners[0]]);
    eventually(|| known(first).len() == FEEDS.len()).await;
    // What is remembered of feeds that are lost is written for their owner.
    pair.store.set_polls(&[]);
    live(&[&pair.owners[0], &pair.owners[1]]);
    eventually(|| known(first).len() == of[0].len()).await;
    eventually(|| pair.store.poll_state(&pair.of_second()).is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_asked_for_is_polled_by_whoever_is_asked() {
    let pair = Pair::start().await;
    let (feed, [first, second]) = (pair.of_second(), &pair.gateways);
    first.publisher.says("two", "2");
    let report = first.poller.poll_now(&name(&feed)).await.unwrap();
    assert_eq!(report.outcome, PollEnding::Changed);
    assert!(!known(first).contains(&feed), "it is not kept");
    // The owner finds the same document as already known.
    let report = second.poller.poll_now(&name(&feed)).await.unwrap();
    assert_eq!(report.outcome, PollEnding::Unchanged);
    let missing = first.poller.poll_now(&name("missing")).await;
    assert_eq!(missing, Err(PollError::Unknown));
}

/// Each caller is answered by a request that began after its call.
#[tokio::test(start_paused = true)]
async fn polls_of_a_foreign_feed_that_come_while_one_is_in_flight_share_the_next_one() {
    let publisher = Publisher::gated("one");
    let pair = Pair::of(&publisher).await;
    let (feed, poller) = (name(&pair.of_second()), pair.gateways[0].poller.clone());
    let poll = || {
        let (poller, feed) = (poller.clone(), feed.clone());
        tokio::spawn(async move { poller.poll_now(&feed).await.unwrap().outcome })
    };
    let (before, answer) = (publisher.requests(), || publisher.release(1));
    let first = poll();
    eventually(|| publisher.requests() == before + 1).await;
    let others = [poll(), poll(), poll()];
    a_while().await;
    assert_eq!(publisher.requests(), before + 1, "one at a time");
    answer();
    first.await.unwrap();
    eventually(|| publisher.requests() == before + 2).await;
    assert!(others.iter().all(|other| !other.is_finished()));
    answer();
    for other in others {
        other.await.unwrap();
    }
    let after = poll();
    answer();
    after.await.unwrap();
    assert_eq!(publisher.requests(), before + 3);
}

#[tokio::test(start_paused = true)]
async fn the_owner_finds_feeds_that_other_gateways_add_change_and_remove() {
    let pair = Pair::start().await;
    let (feed, [first, second]) = (pair.of_second(), &pair.gateways);
    pair.store.remove_record(&name(&feed));
    eventually(|| !known(second).contains(&feed)).await;
    pair.store.set_record(&record(&feed));
    eventually(|| known(second).contains(&feed)).await;
    pair.store.edit_record(&feed, |it| it.standing = FeedStanding::Paused);
    eventually(|| second.poller.status(&name(&feed)).is_none_or(|it| it.next.is_none())).await;
    assert!(!known(first).contains(&feed));
}

/// The older document must not be judged over the state that the newer one led to.
#[tokio::test(start_paused = true)]
async fn a_document_that_was_asked_for_earlier_does_not_replace_a_later_one() {
    let pair = Pair::start().await;
    let feed = pair.of_second();
    pair.store.set_state(&name(&feed), pair.store.state_of(&feed), Some(later(5)));
    let [first, _] = &pair.gateways;
    let (begun, polls) = (pair.store.writes().0, first.poller.totals().polls());
    first.publisher.says("two", "2");
    let report = first.poller.poll_now(&name(&feed)).await.unwrap();
    assert!(report.error.unwrap().contains("a newer document of the feed"));
    assert_eq!((pair.store.writes().0, first.poller.totals().polls()), (begun, polls));
    first.clock.set(later(6));
    let report = first.poller.poll_now(&name(&feed)).await.unwrap();
    assert_eq!(report.outcome, PollEnding::Changed);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_is_not_known_to_live_polls_nothing() {
    let store = store_of(&["a"]);
    let (this, publisher) = (gateway(1), Publisher::new("one"));
    let gateway = Gateway::start(&store.shared_by(&this), &publisher).await;
    a_while().await;
    assert_eq!(publisher.requests(), 0, "nobody has confirmed that it lives");
    live(&[&this]);
    gateway.polls("a", 1).await;
}

/// Creates the stored state of a feed with a hub subscription; also returns its token.
pub(super) fn subscribed(feed: &str) -> (PollState, String) {
    let keys = crate::subscribe::mint(&name(feed)).unwrap();
    let token = keys.token.clone();
    let mut subscription = hub_subscription(feed, keys);
    (subscription.standing, subscription.next) = (SubscriptionStanding::Asked, later(600));
    let state = PollState::new(&name(feed), &record(feed).url);
    (PollState { subscription: Some(Box::new(subscription)), ..state }, token)
}

/// The hub's question whether the feed's subscription was meant, or its end.
pub(super) fn verification(intent: Intent, feed: &str) -> Verification {
    let (topic, challenge) = (record(feed).url, "meant".to_owned());
    Verification::Intent { intent, topic, challenge, lease: Some(86_400) }
}

#[tokio::test(start_paused = true)]
async fn any_gateway_answers_a_hub_and_polls_for_its_pushes() {
    let pair = Pair::start().await;
    let (feed, [first, _]) = (pair.of_second(), &pair.gateways);
    let (state, token) = subscribed(&feed);
    let secret = state.subscription.as_ref().unwrap().keys.secret.clone();
    pair.store.set_poll(&state);
    assert!(first.poller.is_callback(&token).await && !first.poller.is_callback("x.a").await);
    let said = verification(Intent::Subscribe, &feed);
    assert_eq!(first.poller.called(&token, said).await.unwrap().as_deref(), Some("meant"));
    let stored = pair.store.poll_state(&feed).unwrap();
    assert!(stored.subscription.unwrap().is_held(NOW));
    let (asked, body) = (first.publisher.requests(), bytes::Bytes::from_static(b"news"));
    let signature = Secret::new(&secret).unwrap().sign(&body);
    let push = async |signature: &str| {
        first.poller.pushed(&token, Some(signature.to_owned()), body.clone()).await
    };
    assert_eq!(push("sha256=00").await, PushResult::Disbelieved);
    for _ in 0..3 {
        assert_eq!(push(&signature).await, PushResult::Taken);
    }
    a_while().await;
    assert_eq!(first.publisher.requests(), asked + 1, "once for a burst");
}
