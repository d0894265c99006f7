//! The WebSub hub (W3C Recommendation of 23 January 2018): takes subscriptions, asks callbacks
//! whether they mean it, and delivers each changed document.
//!
//! What a subscription is and what is due are decided by [`tidegate_core::websub`]; this room keeps them
//! (`ledger`), follows the change log (`worker`), says who is called now (`lanes`) and calls (`calls`). A request is answered
//! once it is durable. A subscription knows the newest change that it was told of; what a feed has
//! beyond it is due, so that neither a restart nor a log that is cut loses a change, and one who is
//! behind gets the newest document only. What is absent: who reads, how documents are made.

mod calls;
mod lanes;
mod ledger;
mod worker;

pub use ledger::{AskError, SubscriptionCount};

use crate::domains::ownership_key;
use crate::feeds::MAX_BATCH;
use crate::host_queue::HostQueue;
use bytes::Bytes;
use http::HeaderMap;
use ledger::Ledger;
use parking_lot::{Mutex, RwLock};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, Tick, Time};
use tidegate_core::websub::{HubRequest, Intent, Leases, Manner, Secret, Subscription};
use tidegate_net::fetch::{AllowPrivate, Call};
use tidegate_store::{FeedList, Gateways, SHOWN_WITHIN, Store, StoreError};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use url::Url;

/// What operators say of the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubSettings {
    /// How long subscriptions last.
    pub leases: Leases,
    /// The most subscriptions.
    pub subscriptions: usize,
    /// The most subscriptions whose callbacks are of one host (its registrable domain, or its address).
    pub per_host: usize,
    /// Which callbacks may be private that strangers name (`websub.private_callbacks`).
    pub private_callbacks: AllowPrivate,
}

impl Default for HubSettings {
    fn default() -> Self {
        let leases = Leases {
            usual: Duration::from_secs(10 * 86_400),
            least: Duration::from_secs(300),
            most: Duration::from_secs(30 * 86_400),
        };
        let private_callbacks = AllowPrivate::No;
        Self { leases, subscriptions: 100_000, per_host: 10_000, private_callbacks }
    }
}

/// What the hub needs.
pub struct HubConfig {
    /// Where subscriptions are kept, and where changes are read.
    pub store: Arc<Store>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// The lines of hosts, which polling shares.
    pub hosts: Arc<HostQueue>,
    /// What operators say of it.
    pub settings: HubSettings,
    /// How callbacks are called.
    pub calling: Calling,
}

/// How callbacks are called; changes when the configuration is read again.
#[derive(Clone)]
pub struct Calling {
    /// Calls those that strangers name, through a guard that admits [`HubSettings::private_callbacks`].
    pub callbacks: Call,
    /// Calls webhooks, which the operator names, through a guard that admits `allow_private`.
    pub webhooks: Call,
    /// Which webhooks may be private.
    pub allow_private: AllowPrivate,
}

/// What the hub asks of the side that serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicRequest {
    /// Whether there is a document at this address; the one that is answered is empty.
    Exists(String),
    /// The document at this address as it is now, as a GET would answer it.
    Document(String),
    /// The oldest changes of a feed after a tick, as a webhook is told them.
    Changes(FeedName, Option<Tick>),
}

/// Answers the hub's requests: the documents that can be subscribed to, as they are served.
pub type Topics = Arc<dyn Fn(TopicRequest) -> TopicReply + Send + Sync>;

/// What comes of a request for a document.
pub type TopicReply = Pin<Box<dyn Future<Output = Result<HubDocument, NoHubDocument>> + Send>>;

/// A document to deliver.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HubDocument {
    /// `Content-Type`, and the `Link`s to the hub and to the topic (section 7).
    pub headers: HeaderMap,
    /// Its bytes, in no encoding.
    pub body: Bytes,
    /// Of changes, the tick up to which they go.
    pub until: Option<Tick>,
}

/// Why there is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoHubDocument {
    /// There is, or will be, no such topic; says why.
    Gone(String),
    /// It is too large to be delivered, at so many bytes.
    TooLarge(u64),
    /// It cannot be had just now; says why.
    Later(String),
}

struct HubShared {
    store: Arc<Store>,
    /// Who has the same subscriptions; each calls the callbacks of the feeds that it owns.
    gateways: Option<Arc<Gateways>>,
    clock: Arc<dyn Clock>,
    hosts: Arc<HostQueue>,
    ledger: Mutex<Ledger>,
    /// One writer at a time, so that a later state is never overtaken by an earlier one.
    writing: tokio::sync::Mutex<()>,
    calling: RwLock<Calling>,
    /// Wakes the worker.
    wake: Notify,
    /// Wakes it to look whether all topics are still there.
    look: Notify,
}

/// The hub; clones are handles on the same one.
#[derive(Clone)]
pub struct Hub(Arc<HubShared>);

impl Hub {
    /// Reads the subscriptions that there are. Nobody is called before [`Hub::run`].
    pub async fn open(parts: HubConfig) -> Result<Self, StoreError> {
        let HubConfig { store, clock, hosts, settings, calling } = parts;
        let kept = store.subscriptions().await?;
        Ok(Self(Arc::new(HubShared {
            gateways: store.gateways(),
            ledger: Mutex::new(Ledger::new(settings, kept, clock.now())),
            store,
            clock,
            hosts,
            writing: tokio::sync::Mutex::default(),
            calling: RwLock::new(calling),
            wake: Notify::new(),
            look: Notify::new(),
        })))
    }

    /// Takes a request of a client about a topic that is a document of `feed`; one by rssCloud is to register a callback
    /// with the cloud. Durable on return (section 5.1: it is answered before the callback is asked).
    pub async fn ask(
        &self,
        feed: &FeedName,
        manner: Manner,
        request: HubRequest,
        client: Option<IpAddr>,
    ) -> Result<(), AskError> {
        // An end takes nothing in.
        let takes_in = request.intent == Intent::Subscribe;
        let ask =
            |ledger: &mut Ledger, tick, now| ledger.ask(feed, manner, request, client, tick, now);
        self.change_ledger(feed, takes_in, ask).await
    }

    /// Has a feed's webhook be this one, or none; one that there is goes on where it was. Durable on return.
    pub async fn set_webhook(
        &self,
        feed: &FeedName,
        webhook: Option<(Url, Secret)>,
    ) -> Result<(), AskError> {
        let allow = self.0.calling.read().allow_private.clone();
        let takes_in = webhook.is_some();
        let ask =
            |ledger: &mut Ledger, tick, now| ledger.set_webhook(feed, webhook, &allow, tick, now);
        self.change_ledger(feed, takes_in, ask).await
    }

    /// `takes_in`: what is asked for takes room in the store.
    async fn change_ledger(
        &self,
        feed: &FeedName,
        takes_in: bool,
        ask: impl FnOnce(&mut Ledger, Option<Tick>, Time) -> Result<(), AskError>,
    ) -> Result<(), AskError> {
        let shared = &self.0;
        if takes_in {
            shared.store.condition().check_intake()?;
        }
        let tick = shared.tick(feed).await?;
        ask(&mut shared.ledger.lock(), tick, shared.clock.now())?;
        shared.flush().await?;
        // A change that came between the two looks is not missed.
        let tick = shared.tick(feed).await?;
        shared.until_shown().await;
        shared.ledger.lock().saw(feed, tick, shared.clock.now());
        shared.wake.notify_one();
        Ok(())
    }

    /// The subscriptions, of one feed or of all, by topic and callback; at most `limit`.
    pub fn subscriptions(&self, feed: Option<&FeedName>, limit: usize) -> Vec<Subscription> {
        self.0.ledger.lock().list(feed, limit)
    }

    /// How many there are.
    pub fn count(&self) -> SubscriptionCount {
        self.0.ledger.lock().count()
    }

    /// Looks whether all topics are still there, soon.
    pub fn check_topics(&self) {
        self.0.look.notify_one();
    }

    /// Goes on with another way of calling and other limits. Subscriptions that there are keep their leases.
    pub fn reconfigure(&self, calling: Calling, settings: HubSettings) {
        self.0.ledger.lock().settings = settings;
        *self.0.calling.write() = calling;
    }

    /// Verifies and delivers until it is cancelled.
    pub async fn run(self, topics: Topics, cancel: CancellationToken) {
        worker::run(self.0, topics, cancel).await;
    }
}

impl HubShared {
    /// The newest tick of a feed.
    async fn tick(&self, feed: &FeedName) -> Result<Option<Tick>, StoreError> {
        Ok(self.store.state(feed).await?.and_then(|state| state.tick))
    }

    /// Waits until what this gateway shows is shown by all: nobody is told of it before.
    async fn until_shown(&self) {
        if self.gateways.is_some() {
            sleep(SHOWN_WITHIN).await;
        }
    }

    /// Writes everything that has changed. Whoever calls this may go away; the write goes on.
    async fn flush(self: &Arc<Self>) -> Result<(), StoreError> {
        let shared = Arc::clone(self);
        let written = tokio::spawn(async move {
            let _turn = shared.writing.lock().await;
            loop {
                let batch = shared.ledger.lock().unwritten(MAX_BATCH);
                if batch.is_empty() {
                    return Ok(());
                }
                shared.store.put_subscriptions(&batch).await?;
                shared.ledger.lock().note_written(batch);
            }
        });
        written.await.unwrap_or_else(|error| {
            let source = std::io::Error::other(error);
            Err(StoreError::Io { doing: "write subscriptions", source })
        })
    }

    /// Whether callbacks may be called: this gateway is known to live. Otherwise another one may call them by now.
    fn can_call(&self) -> bool {
        self.gateways.as_ref().is_none_or(|gateways| gateways.may_poll())
    }

    /// Whether this gateway calls the callbacks of a feed.
    fn owns(&self, feeds: Option<&FeedList>, feed: &FeedName) -> bool {
        let Some(gateways) = &self.gateways else { return true };
        match feeds.and_then(|feeds| feeds.get(feed)) {
            Some(record) => gateways.owns(&ownership_key(record)),
            None => gateways.owns(feed.as_str()),
        }
    }

    /// Calls what is named in this manner.
    fn call(&self, manner: Manner) -> Call {
        match manner {
            Manner::WebSub | Manner::RssCloud => self.calling.read().callbacks.clone(),
            Manner::Webhook => self.calling.read().webhooks.clone(),
        }
    }
}
