//! The gateway's own WebSub hub (W3C Recommendation of 23 January 2018): accepts subscriptions, verifies callbacks, and
//! delivers each changed document.
//!
//! [`tidegate_core::websub`] decides what a subscription is and what is due. This module stores them (`subscriptions`),
//! follows the change log (`worker`), decides who is called now (`lanes`) and calls (`calls`). A request is answered
//! once it is durable. A subscription records the newest change delivered to it, and later changes of its feed are due.
//! So neither a restart nor a truncated log loses a change, and a subscriber who lags gets only the newest document.
//! The hub does not know how documents are rendered or who reads them.

mod calls;
mod lanes;
mod subscriptions;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod worker;

pub use subscriptions::{AskError, SubscriptionCount};

use crate::domains::ownership_key;
use crate::feeds::MAX_BATCH;
use crate::host_queue::HostQueue;
use bytes::Bytes;
use http::HeaderMap;
use parking_lot::{Mutex, RwLock};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use subscriptions::SubscriptionTable;
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, Tick, Time};
use tidegate_core::websub::{HubRequest, Intent, Leases, Manner, Secret, Subscription};
use tidegate_net::fetch::{AllowPrivate, Call};
use tidegate_store::{FeedList, Gateways, SHOWN_WITHIN, Store, StoreError};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use url::Url;

/// The operator's settings of the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubSettings {
    pub leases: Leases,
    pub subscriptions: usize,
    /// The most subscriptions with callbacks at one host (its registrable domain, or its address).
    pub per_host: usize,
    /// The private hosts that callbacks named by strangers may lead to (`websub.private_callbacks`).
    pub private_callbacks: AllowPrivate,
}

/// The parts that the hub is built from.
pub struct HubConfig {
    /// Stores subscriptions and provides changes.
    pub store: Arc<Store>,
    pub clock: Arc<dyn Clock>,
    /// The host queue shared with polling; the hub uses its call budgets.
    pub hosts: Arc<HostQueue>,
    pub settings: HubSettings,
    /// How callbacks are called.
    pub calling: Calling,
}

/// The HTTP services for calls; replaced when the configuration is reloaded.
#[derive(Clone)]
pub struct Calling {
    /// Calls callbacks named by strangers, at public hosts and [`HubSettings::private_callbacks`].
    pub callbacks: Call,
    /// Calls webhooks named by the operator, also at private hosts in `allow_private`.
    pub webhooks: Call,
    /// The private hosts that webhooks may lead to.
    pub allow_private: AllowPrivate,
}

/// A question of the hub to the serving side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicRequest {
    /// Asks whether there is a document at this address; the answer is an empty document.
    Exists(String),
    /// Asks for the document at this address, as a GET would return it.
    Document(String),
    /// Asks for the oldest changes of a feed after a tick, in the form that webhooks receive.
    Changes(FeedName, Option<Tick>),
}

/// Answers the hub's questions about the documents that can be subscribed to.
pub type Topics = Arc<dyn Fn(TopicRequest) -> TopicReply + Send + Sync>;

/// The future answer to a [`TopicRequest`].
pub type TopicReply = Pin<Box<dyn Future<Output = Result<HubDocument, NoHubDocument>> + Send>>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HubDocument {
    /// `Content-Type`, and the `Link`s to the hub and to the topic (section 7).
    pub headers: HeaderMap,
    /// The body without content encoding.
    pub body: Bytes,
    /// For changes: the tick of the newest one included.
    pub until: Option<Tick>,
}

/// Why there is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoHubDocument {
    /// There is no such topic, nor will there be; the reason.
    Gone(String),
    /// It is too large to deliver; its size in bytes.
    TooLarge(u64),
    /// It is temporarily unavailable; the reason.
    Later(String),
}

struct HubShared {
    store: Arc<Store>,
    /// The gateways that share the subscriptions; each calls the callbacks of the feeds it owns.
    gateways: Option<Arc<Gateways>>,
    clock: Arc<dyn Clock>,
    hosts: Arc<HostQueue>,
    subscriptions: Mutex<SubscriptionTable>,
    /// Allows one writer at a time, so that an older state never overwrites a newer one.
    writing: tokio::sync::Mutex<()>,
    calling: RwLock<Calling>,
    /// Wakes the worker.
    wake: Notify,
    /// Wakes the worker to check whether all topics still exist.
    check_topics: Notify,
}

/// A handle to the hub; cheap to clone.
#[derive(Clone)]
pub struct Hub(Arc<HubShared>);

impl Hub {
    /// Loads the subscriptions. Nothing is called before [`Hub::run`].
    pub async fn open(config: HubConfig) -> Result<Self, StoreError> {
        let HubConfig { store, clock, hosts, settings, calling } = config;
        let kept = store.subscriptions().await?;
        Ok(Self(Arc::new(HubShared {
            gateways: store.gateways(),
            subscriptions: Mutex::new(SubscriptionTable::new(settings, kept, clock.now())),
            store,
            clock,
            hosts,
            writing: tokio::sync::Mutex::default(),
            calling: RwLock::new(calling),
            wake: Notify::new(),
            check_topics: Notify::new(),
        })))
    }

    /// Accepts a client's request about a topic of `feed`: a WebSub request, or a registration with rssCloud. Durable
    /// on return (section 5.1: it is answered before the callback is verified).
    pub async fn ask(
        &self,
        feed: &FeedName,
        manner: Manner,
        request: HubRequest,
        client: Option<IpAddr>,
    ) -> Result<(), AskError> {
        // Ending a subscription needs no space in the store.
        let needs_space = request.intent == Intent::Subscribe;
        let ask = |table: &mut SubscriptionTable, tick, now| {
            table.ask(feed, manner, request, client, tick, now)
        };
        self.change_subscriptions(feed, needs_space, ask).await
    }

    /// Sets or removes a feed's webhook; an existing one keeps its position in the changes. Durable on return.
    pub async fn set_webhook(
        &self,
        feed: &FeedName,
        webhook: Option<(Url, Secret)>,
    ) -> Result<(), AskError> {
        let allow = self.0.calling.read().allow_private.clone();
        let needs_space = webhook.is_some();
        let ask = |table: &mut SubscriptionTable, tick, now| {
            table.set_webhook(feed, webhook, &allow, tick, now)
        };
        self.change_subscriptions(feed, needs_space, ask).await
    }

    /// Changes the subscriptions and writes the result. `needs_space`: the change needs space in the store.
    async fn change_subscriptions(
        &self,
        feed: &FeedName,
        needs_space: bool,
        ask: impl FnOnce(&mut SubscriptionTable, Option<Tick>, Time) -> Result<(), AskError>,
    ) -> Result<(), AskError> {
        let shared = &self.0;
        if needs_space {
            shared.store.condition().check_intake()?;
        }
        let tick = shared.tick(feed).await?;
        ask(&mut shared.subscriptions.lock(), tick, shared.clock.now())?;
        shared.flush().await?;
        // The feed may have changed since the first reading of its tick.
        let tick = shared.tick(feed).await?;
        shared.until_shown().await;
        shared.subscriptions.lock().note_tick(feed, tick, shared.clock.now());
        shared.wake.notify_one();
        Ok(())
    }

    /// Returns at most `limit` subscriptions of one feed or of all, sorted by topic and callback.
    pub fn subscriptions(&self, feed: Option<&FeedName>, limit: usize) -> Vec<Subscription> {
        self.0.subscriptions.lock().list(feed, limit)
    }

    /// Returns the numbers of subscriptions and deliveries.
    pub fn count(&self) -> SubscriptionCount {
        self.0.subscriptions.lock().count()
    }

    /// Has the worker check soon whether all topics still exist.
    pub fn check_topics(&self) {
        self.0.check_topics.notify_one();
    }

    /// Applies other HTTP services and settings. Existing subscriptions keep their leases.
    pub fn reconfigure(&self, calling: Calling, settings: HubSettings) {
        self.0.subscriptions.lock().settings = settings;
        *self.0.calling.write() = calling;
    }

    /// Verifies and delivers until cancelled.
    pub async fn run(self, topics: Topics, cancel: CancellationToken) {
        worker::run(self.0, topics, cancel).await;
    }
}

impl HubShared {
    /// Returns the newest tick of a feed.
    async fn tick(&self, feed: &FeedName) -> Result<Option<Tick>, StoreError> {
        Ok(self.store.state(feed).await?.and_then(|state| state.tick))
    }

    /// Waits until all gateways show what this one shows: subscribers must not be told of it before.
    async fn until_shown(&self) {
        if self.gateways.is_some() {
            sleep(SHOWN_WITHIN).await;
        }
    }

    /// Writes all changed subscriptions; completes even if the caller is cancelled.
    async fn flush(self: &Arc<Self>) -> Result<(), StoreError> {
        let shared = Arc::clone(self);
        let written = tokio::spawn(async move {
            let _writing = shared.writing.lock().await;
            loop {
                let batch = shared.subscriptions.lock().unwritten(MAX_BATCH);
                if batch.is_empty() {
                    return Ok(());
                }
                shared.store.put_subscriptions(&batch).await?;
                shared.subscriptions.lock().note_written(batch);
            }
        });
        written.await.unwrap_or_else(|error| {
            let source = std::io::Error::other(error);
            Err(StoreError::Io { doing: "write subscriptions", source })
        })
    }

    /// Whether callbacks may be called: only while this gateway is known to live. Otherwise another one may call them.
    fn can_call(&self) -> bool {
        self.gateways.as_ref().is_none_or(|gateways| gateways.may_poll())
    }

    /// Whether this gateway calls the callbacks of `feed`.
    fn owns(&self, feeds: Option<&FeedList>, feed: &FeedName) -> bool {
        let Some(gateways) = &self.gateways else { return true };
        match feeds.and_then(|feeds| feeds.get(feed)) {
            Some(record) => gateways.owns(&ownership_key(record)),
            None => gateways.owns(feed.as_str()),
        }
    }

    /// Returns the HTTP service for callbacks of this manner.
    fn call(&self, manner: Manner) -> Call {
        match manner {
            Manner::WebSub | Manner::RssCloud => self.calling.read().callbacks.clone(),
            Manner::Webhook => self.calling.read().webhooks.clone(),
        }
    }
}
