//! What a push comes to where polling is behind.

use super::*;
use crate::clock::ManualClock;
use crate::model::{EndpointId, SubscriptionKeys, Time};
use crate::store::{Claim, EmbeddedStore};
use crate::websub::Secret;

/// The polling task takes nothing meanwhile: the queue has room for one command.
#[tokio::test]
async fn a_push_that_finds_no_room_is_to_be_sent_again() {
    let (commands, mut inbox) = mpsc::channel(1);
    let callbacks = Arc::new(Callbacks::default());
    for feed in ["ash", "birch"] {
        let keys = SubscriptionKeys { token: feed.to_owned(), secret: "secret".to_owned() };
        callbacks.open(&FeedName::new(feed).unwrap(), &keys);
    }
    let clock = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
    let own = EndpointId::own("gate").unwrap();
    let settings = PollSettings::default();
    let decisions = DecisionContext {
        store: Arc::new(EmbeddedStore::in_memory(Some(own), clock.clone()).unwrap()),
        node: 0,
        claim: Arc::new(RwLock::new(Claim { shard: 0, fence: 0 })),
        window: settings.window,
        tombstones: settings.tombstones,
        running: clock.clone(),
        limits: Arc::new(ArcSwap::from_pointee(DecisionLimits::from_settings(&settings))),
    };
    let poller = Poller {
        commands,
        board: Arc::default(),
        decisions,
        callbacks: Arc::clone(&callbacks),
        clock,
        shards: None,
    };
    let signature = Secret::new("secret").unwrap().sign(b"news");
    let push = async |token: &str| {
        poller.pushed(token, Some(signature.clone()), Bytes::from_static(b"news")).await
    };
    assert_eq!(push("ash").await, PushResult::Taken);
    assert_eq!(push("birch").await, PushResult::Busy, "nobody would hear of it");
    assert_eq!(push("ash").await, PushResult::Taken, "that one is heard of anyway");

    let mut heard = || match inbox.try_recv() {
        Ok(PollCommand::Pushed(token)) => {
            callbacks.by_token(&token).unwrap().mark_reported();
            Some(token)
        }
        _ => None,
    };
    assert_eq!((heard(), heard()), (Some("ash".to_owned()), None));
    assert_eq!(push("birch").await, PushResult::Taken, "sent again");
    assert_eq!((heard(), heard()), (Some("birch".to_owned()), None));
}
