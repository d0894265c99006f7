//! What the hub keeps of its subscribers.

use super::make::*;
use crate::record::specimen::specimen;
use tidegate_core::websub::{Active, CallbackPurpose, Manner, PendingRequest, Subscription};
use url::Url;

on_every_store! {
    subscriptions_are_kept_replaced_and_taken_out
}

pub(crate) fn subscription(callback: &str) -> Subscription {
    let callback = Url::parse(&format!("https://reader.example/{callback}")).unwrap();
    let topic = "https://g/feeds/news".to_owned();
    let mut made = Subscription::new(Manner::WebSub, feed("news"), topic, callback);
    made.active = Some(Active { until: time(900), ..specimen(1) });
    made
}

/// For a subscription of a minute.
pub(crate) fn request(seconds: i64) -> PendingRequest {
    let wanted = CallbackPurpose::Subscribe { lease: 60, secret: None, told: None };
    PendingRequest { wanted, asked: time(seconds), attempts: 0, not_before: None, trouble: None }
}

/// Stores them, whatever there was.
pub(super) async fn put(store: &Store, all: &[Subscription]) -> Result<(), StoreError> {
    let stored = store.subscriptions().await?;
    let change = |after: &Subscription| {
        let before = stored.iter().find(|before| before.id() == after.id()).cloned();
        SubscriptionChange { before, after: after.clone() }
    };
    store.put_subscriptions(&all.iter().map(change).collect::<Vec<_>>()).await
}

fn sorted(mut subscriptions: Vec<Subscription>) -> Vec<Subscription> {
    subscriptions.sort_by_key(Subscription::id);
    subscriptions
}

async fn subscriptions_are_kept_replaced_and_taken_out(store: StoreFixture) {
    assert!(store.subscriptions().await.unwrap().is_empty());
    let all = sorted(["a", "b?c=d&e", "b"].map(subscription).to_vec());
    put(&store, &all).await.unwrap();
    let mut ended = subscription("a");
    ended.active = None;
    let mut asked = subscription("b");
    asked.pending = Some(request(5));
    put(&store, &[ended.clone(), asked.clone()]).await.unwrap();
    // What another gateway has stored since is kept.
    let mut renewed = subscription("b");
    renewed.active.as_mut().unwrap().until = time(9_000);
    let over = SubscriptionChange { before: Some(subscription("b")), after: renewed.clone() };
    store.put_subscriptions(&[over]).await.unwrap();
    let asked = Subscription { pending: asked.pending, ..renewed };
    // What is not there can be taken out as well.
    put(&store, &[ended]).await.unwrap();
    store.put_subscriptions(&[]).await.unwrap();
    let expected = sorted(vec![asked, subscription("b?c=d&e")]);
    assert_eq!(store.subscriptions().await.unwrap(), expected, "in the order of their ids");
    // The hub has to say to the subscribers of a feed that was purged that it is gone.
    edit(&store, 50).await.item("a", "A").commit(&store).await;
    store.purge_feed(&feed("news")).await.unwrap();
    let store = store.reopen().await;
    assert_eq!(store.subscriptions().await.unwrap(), expected);
}
