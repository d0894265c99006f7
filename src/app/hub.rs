//! The webhooks that the configuration says.

use std::collections::BTreeMap;
use tidegate_config::{Config, WebhookConfig};
use tidegate_core::model::{FeedName, FeedSource};
use tidegate_core::websub::{Manner, Secret};
use tidegate_net::fetch;
use tidegate_poll::hub::Hub;
use tidegate_store::{Store, in_words};
use url::Url;

/// The most webhooks that the hub is asked for: as many as it has subscriptions.
const WEBHOOKS: usize = 1_000_000;

/// Has the webhooks of the configuration's feeds be those that it says; those of other feeds stay. What one
/// cannot be is logged, and keeps nothing else from starting.
pub(super) async fn keep_webhooks(hub: &Hub, config: &Config, store: &dyn Store) {
    let feeds = config.feeds.iter().map(|feed| (&feed.name, feed.webhook.as_ref()));
    let aggregates = config.aggregates.iter().map(|all| (&all.name, all.webhook.as_ref()));
    let wanted = feeds.chain(aggregates).filter_map(|(name, webhook)| Some((name, webhook?)));
    let wanted: BTreeMap<&FeedName, &WebhookConfig> = wanted.collect();
    let feeds = match store.feed_list().await {
        Ok(feeds) => feeds,
        Err(error) => {
            return tracing::warn!(error = in_words(&error), "the webhooks could not be looked at");
        }
    };
    let is_ours = |feed: &FeedName| {
        let source = feeds.get(feed).map(|record| record.source);
        source.is_none_or(|source| source != FeedSource::Api)
    };
    for of in hub.subscriptions(None, WEBHOOKS) {
        if of.manner == Manner::Webhook && is_ours(&of.feed) && !wanted.contains_key(&of.feed) {
            set(hub, &of.feed, None).await;
        }
    }
    for (feed, webhook) in wanted {
        let source = webhook.secret.clone();
        let read = tokio::task::spawn_blocking(move || fetch::find_secret(&source)).await;
        let secret = read.unwrap_or_else(|error| Err(error.to_string()));
        match secret.and_then(|text| Secret::new(&text).map_err(|error| error.to_string())) {
            Ok(secret) => set(hub, feed, Some((webhook.url.clone(), secret))).await,
            Err(why) => tracing::warn!(
                %feed,
                "the secret of its webhook cannot be had, so that it stays as it was: {why}"
            ),
        }
    }
}

async fn set(hub: &Hub, feed: &FeedName, webhook: Option<(Url, Secret)>) {
    if let Err(error) = hub.set_webhook(feed, webhook).await {
        tracing::warn!(%feed, "its webhook could not be set: {error}");
    }
}
