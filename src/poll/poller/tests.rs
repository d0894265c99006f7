use super::*;
use crate::memory::FeedMemory;
use crate::permits::LARGE_ENTRIES;
use crate::testing::double::{NOW, hub_subscription, name, poller_config, record, store_of};
use crate::testing::gateway::{Gateway, Publisher};
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{Format, Snapshot, SubscriptionKeys};
use tidegate_core::websub::Secret;
use tokio::time::timeout;

/// The polling task is busy, and the queue holds one command.
#[tokio::test]
async fn a_push_that_finds_no_room_is_to_be_sent_again() {
    let (commands, mut inbox) = mpsc::channel(1);
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(NOW));
    let services = Publisher::new("one").services();
    let config = poller_config(store_of(&[]).real(), &clock, services);
    let context = Arc::new(Poller::context(config, commands.downgrade()));
    let mut scheduler = PollScheduler::new(Arc::clone(&context));
    let poller = Poller { commands, context: Arc::clone(&context) };
    for (feed, secret) in [("ash", "secret"), ("birch", "secret"), ("unsigned", "")] {
        let keys = SubscriptionKeys { token: format!("token.{feed}"), secret: secret.to_owned() };
        let mut memory = FeedMemory::new(&record(feed), NOW);
        memory.state.subscription = Some(Box::new(hub_subscription(feed, keys)));
        context.table.insert(Arc::new(record(feed)), memory).lock().live.since = Some(NOW);
    }
    let signature = Secret::new("secret").unwrap().sign(b"news");
    let push = async |feed: &str| {
        let (token, body) = (format!("token.{feed}"), Bytes::from_static(b"news"));
        poller.pushed(&token, Some(signature.clone()), body).await
    };
    for (feed, expected) in [("ash", PushResult::Disbelieved), ("unsigned", PushResult::Taken)] {
        assert_eq!(poller.pushed(&format!("token.{feed}"), None, Bytes::new()).await, expected);
    }
    assert!(!poller.is_callback("another.ash").await);
    inbox.try_recv().unwrap()(&mut scheduler);
    assert_eq!(push("ash").await, PushResult::Taken);
    assert_eq!(push("birch").await, PushResult::Busy, "nobody would hear of it");
    assert_eq!(push("ash").await, PushResult::Taken, "that one is heard of anyway");

    let mut heard = |feed: &str| {
        let command = inbox.try_recv();
        command.map(|command| command(&mut scheduler)).is_ok()
            && !context.table.get(&name(feed)).unwrap().lock().live.waits_for_push
    };
    assert_eq!((heard("ash"), heard("birch")), (true, false));
    assert_eq!(push("birch").await, PushResult::Taken, "sent again");
    assert_eq!((heard("birch"), heard("ash")), (true, false));
    context.table.get(&name("ash")).unwrap().lock().end_live();
    assert_eq!(push("ash").await, PushResult::Unknown, "it is not polled for the time being");
    assert!(!poller.is_callback("token.ash").await);
    // If the feed is paused between a push and its handling, no mark remains that later pushes would rely on.
    assert_eq!(push("birch").await, PushResult::Taken);
    let cell = context.table.get(&name("birch")).unwrap();
    cell.lock().end_live();
    inbox.try_recv().unwrap()(&mut scheduler);
    cell.lock().live.since = Some(NOW);
    assert_eq!(push("birch").await, PushResult::Taken);
    assert!(cell.lock().live.waits_for_push && inbox.try_recv().is_ok(), "it is heard of");
}

/// However many large feeds are aged, they use the memory of one; other feeds do not wait for them.
#[tokio::test(start_paused = true)]
async fn a_large_ledger_is_aged_in_the_turn_of_large_documents() {
    let store = store_of(&[]);
    for (feed, living) in [("large", LARGE_ENTRIES + 1), ("usual", 1)] {
        let mut snapshot = Snapshot::untouched(Format::Atom10, NOW);
        snapshot.state.living = u32::try_from(living).unwrap();
        store.set_state(&name(feed), snapshot.state, None);
    }
    let gateway = Gateway::start(&store, &Publisher::new("one")).await;
    let poller = &gateway.poller;
    let is_aged = async |feed: &str| {
        let aged = timeout(Duration::from_secs(3600), poller.age(&Arc::new(record(feed)))).await;
        aged.map(Result::unwrap).is_ok()
    };
    let permit = poller.context.judge_permits.large.acquire().await.unwrap();
    assert!(!is_aged("large").await);
    assert!(is_aged("usual").await);
    drop(permit);
    assert!(is_aged("large").await);
}
