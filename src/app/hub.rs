//! The hub between the module that takes requests and the module that keeps and delivers.

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::net::IpAddr;
use tidegate_config::{Config, WebhookConfig};
use tidegate_core::model::{FeedName, FeedSource, Tick};
use tidegate_core::websub::{HubRequest, Manner, Secret, Subscription};
use tidegate_net::fetch;
use tidegate_poll::hub::{AskError, Hub, HubChanges, HubDocument, NoHubDocument, Topics};
use tidegate_serve::{self as serve, HubError, HubTotals, NoTopic};
use tidegate_store::{Store, StoreError, in_words};
use url::Url;

/// The hub as the side that serves sees it.
pub(super) struct HubAccess(pub(super) Hub);

#[async_trait]
impl serve::HubService for HubAccess {
    async fn ask(
        &self,
        feed: &FeedName,
        request: HubRequest,
        client: Option<IpAddr>,
    ) -> Result<(), HubError> {
        self.0.ask(feed, request, client).await.map_err(|error| refused(&error))
    }

    async fn register(
        &self,
        feed: &FeedName,
        topic: String,
        callback: Url,
        client: Option<IpAddr>,
    ) -> Result<(), HubError> {
        self.0.register(feed, topic, callback, client).await.map_err(|error| refused(&error))
    }

    async fn set_webhook(
        &self,
        feed: &FeedName,
        webhook: Option<(Url, Secret)>,
    ) -> Result<(), HubError> {
        self.0.set_webhook(feed, webhook).await.map_err(|error| refused(&error))
    }

    fn subscriptions(&self, feed: Option<&FeedName>, limit: usize) -> Vec<Subscription> {
        self.0.subscriptions(feed, limit)
    }

    fn check_topics(&self) {
        self.0.check_topics();
    }

    fn totals(&self) -> HubTotals {
        let count = self.0.count();
        HubTotals {
            active: count.active,
            pending: count.pending,
            delivered: count.delivered,
            failed: count.failed,
        }
    }
}

fn refused(error: &AskError) -> HubError {
    match error {
        AskError::Callback(_) | AskError::Mode(_) => HubError::BadRequest(error.to_string()),
        AskError::Unknown => HubError::Unknown(error.to_string()),
        AskError::Pending | AskError::Full { .. } => HubError::Full(error.to_string()),
        AskError::Store(StoreError::LowSpace { .. }) => HubError::Later(error.to_string()),
        AskError::Store(of_store) if of_store.is_passing() => HubError::Later(error.to_string()),
        AskError::Store(_) => HubError::Internal(error.to_string()),
    }
}

/// The documents of the side that serves, as the hub sees them.
pub(super) struct Served(pub(super) serve::SiteTopics);

fn absent(missing: NoTopic) -> NoHubDocument {
    match missing {
        NoTopic::Gone(why) => NoHubDocument::Gone(why),
        NoTopic::TooLarge(bytes) => NoHubDocument::TooLarge(bytes),
        NoTopic::Later(why) => NoHubDocument::Later(why),
    }
}

#[async_trait]
impl Topics for Served {
    async fn stands(&self, topic: &str) -> Result<(), NoHubDocument> {
        self.0.stands(topic).await.map_err(absent)
    }

    async fn document(&self, topic: &str) -> Result<HubDocument, NoHubDocument> {
        let pushed = self.0.document(topic).await.map_err(absent)?;
        Ok(HubDocument { headers: pushed.headers, body: pushed.body })
    }

    async fn changes(
        &self,
        feed: &FeedName,
        after: Option<Tick>,
    ) -> Result<HubChanges, NoHubDocument> {
        let (told, until) = self.0.changes(feed, after).await.map_err(absent)?;
        Ok((HubDocument { headers: told.headers, body: told.body }, until))
    }
}

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
