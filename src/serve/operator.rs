//! The seam to what polling does for administration: serving asks, somebody else acts.

use crate::judge::PendingAbsence;
use crate::model::{
    Backfill, FeedName, FeedOptions, FeedSource, FeedStanding, HubTrust, SyncId, Tick, Time,
};
use crate::record::local::{Act, ActError, Acted};
use crate::websub::Verification;
use async_trait::async_trait;
use bytes::Bytes;
use std::time::Duration;

/// What administration asks of the side that polls. A double stands in for it in tests.
#[async_trait]
pub trait Operator: Send + Sync + 'static {
    /// Whether feeds are being polled; otherwise the reason why not, for `/readyz`.
    fn ready(&self) -> Result<(), String>;

    /// What was counted since the start, for `/metrics`.
    fn totals(&self) -> OperatorTotals;

    /// Every feed that was ever added and not purged, by name.
    async fn list(&self) -> Result<Vec<FeedStatus>, OperatorError>;

    /// One feed.
    async fn status(&self, feed: &FeedName) -> Result<FeedStatus, OperatorError>;

    /// Adds a feed or changes it. Durable on return.
    async fn put(&self, feed: &FeedName, put: PutFeed) -> Result<Put, OperatorError>;

    /// Stops a feed for good; with `purge` its data go too. Durable on return.
    async fn delete(&self, feed: &FeedName, purge: bool) -> Result<(), OperatorError>;

    /// Polls a feed now, with a request of its own, and answers when the result is durable.
    async fn poll_now(&self, feed: &FeedName) -> Result<PollReport, OperatorError>;

    /// Makes, changes or deletes an item, or resolves what is in conflict with it. Durable on return.
    async fn item(&self, feed: &FeedName, act: Act) -> Result<Acted, OperatorError>;

    /// Takes the text of an item out of everything that is kept, and keeps it out. `reason`: what is
    /// shown as the reason. Durable on return.
    async fn redact(
        &self,
        feed: &FeedName,
        item: &SyncId,
        reason: Option<String>,
    ) -> Result<Redacted, OperatorError>;
    /// Begins to walk through the publisher's older documents, goes on with a walk that stopped, or
    /// stops one. Answers when it is in its line.
    async fn backfill(&self, feed: &FeedName, action: BackfillAction) -> Result<(), OperatorError>;

    /// Decides about a held document.
    async fn hold(&self, feed: &FeedName, action: HoldAction) -> Result<(), OperatorError>;

    /// Whether a hub of an upstream was given this token with the address of its callback.
    fn is_callback(&self, token: &str) -> bool;

    /// Takes in what a hub asks back, or its denial. Answers the challenge where it was asked for
    /// just that, nothing where a denial was noted, and `None` otherwise.
    async fn called(
        &self,
        token: &str,
        said: Verification,
    ) -> Result<Option<String>, OperatorError>;

    /// Takes in a push of a hub, with the value of `X-Hub-Signature`.
    async fn pushed(&self, token: &str, signature: Option<String>, body: Bytes) -> PushOutcome;
}

/// What became of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PushOutcome {
    /// There is no such callback.
    Unknown,
    /// It was not signed as agreed: it is counted, and nothing else.
    Disbelieved,
    /// The feed is polled as soon as may be.
    Taken,
    /// It cannot be taken now: the hub is to send it again.
    Busy,
}

/// Why an administration action was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// There is no such feed.
    #[error("there is no feed {0}")]
    UnknownFeed(FeedName),
    /// The feed has no such item.
    #[error("the feed {0} has no item of that sync id")]
    UnknownItem(FeedName),
    /// The feed stands in the configuration file, which wins.
    #[error("the feed {0} stands in the configuration file, which wins over this; change it there")]
    ConfiguredByFile(FeedName),
    /// The request makes no sense as it stands; says why.
    #[error("{0}")]
    BadRequest(String),
    /// The feed's state does not allow it (nothing is held, the feed is deleted); says why.
    #[error("{0}")]
    Conflict(String),
    /// What was asked of an item was not done; says why.
    #[error(transparent)]
    Item(ActError),
    /// It failed here; says why.
    #[error("{0}")]
    Internal(String),
}

/// A feed as an operator wants it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PutFeed {
    /// The upstream's address: absolute, http or https; empty where a local feed has none.
    pub url: String,
    /// Everything else.
    pub options: FeedOptions,
}

/// What became of a [`PutFeed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Put {
    /// The feed is new.
    Created,
    /// It was there and is as asked now.
    Changed,
}

/// An item whose text was taken out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Redacted {
    /// The id it is published with.
    pub published_id: String,
    /// The native id by which it is kept out.
    pub native_id: String,
    /// The tick of the tombstone that this made; `None` where it was deleted before.
    pub tick: Option<Tick>,
    /// How many kept versions lost their text.
    pub versions: usize,
    /// Whether it had been redacted before, so that nothing was done.
    pub before: bool,
}

/// What to do with a held document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoldAction {
    /// Let it out.
    Release,
    /// Forget it.
    Drop,
}

/// What to do about a walk through older documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BackfillAction {
    /// Begin, or go on.
    #[default]
    Start,
    Stop,
}

/// How a poll ended (CONTRACT, Administration API).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PollOutcome {
    /// Something was stored.
    Changed,
    /// A document came, and nothing in it was new.
    Unchanged,
    /// The upstream said that nothing changed (304).
    NotModified,
    /// No document was had, or none that can be used.
    Failed,
}

impl PollOutcome {
    /// The contract's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::NotModified => "not_modified",
            Self::Failed => "failed",
        }
    }
}

/// Who must act on a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The network between here and the upstream.
    Network,
    Upstream,
    /// Whoever configured this gateway.
    Operator,
    /// This gateway itself.
    Gateway,
}

impl Blame {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Upstream => "upstream",
            Self::Operator => "operator",
            Self::Gateway => "gateway",
        }
    }
}

/// How many items something happened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Counts {
    /// Seen for the first time.
    pub created: u32,
    /// Changed.
    pub updated: u32,
    /// Taken away.
    pub deleted: u32,
    /// There again after a deletion.
    pub undeleted: u32,
    /// Slid off the end.
    pub retired: u32,
    /// There again, unchanged, after sliding off.
    pub returned: u32,
    /// Under another native id now.
    pub rekeyed: u32,
}

/// What a poll on request answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PollReport {
    /// How it ended.
    pub outcome: PollOutcome,
    /// What happened to items.
    pub counts: Counts,
    /// Why the document is held back, if it is.
    pub held: Option<String>,
    /// The feed's last tick now.
    pub until: Option<Tick>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// A poll that was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PollNote {
    /// When it began.
    pub at: Time,
    /// How it ended.
    pub outcome: PollOutcome,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// Who must act on that.
    pub blame: Option<Blame>,
    /// The status that the upstream answered with, where it answered.
    pub status: Option<u16>,
    /// How long it took.
    pub duration: Duration,
    /// Bytes of the body as it came over the wire.
    pub bytes: u64,
    /// What happened to items.
    pub counts: Counts,
    /// Items whose bytes changed in nothing that a reader would see: shown, but no version.
    pub rewritten: u32,
    /// Entries in the document, where one was looked at.
    pub entries: Option<usize>,
    /// What else is worth knowing, such as odd redirects.
    pub notes: Vec<String>,
}

/// A document that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocumentNote {
    /// When the poll that brought it began.
    pub at: Time,
    /// How many entries it has.
    pub entries: usize,
    /// Why only a part of it counts, where that is so.
    pub partial: Option<String>,
    /// What was wrong with it, with the place; not all where there is much.
    pub warnings: Vec<String>,
}

/// A round that asked missing items' own addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProbeNote {
    /// When it was over.
    pub at: Time,
    /// Requests that were made.
    pub requests: u32,
    /// What was heard, in words, an item each.
    pub said: Vec<String>,
    /// What happened to items.
    pub counts: Counts,
}

/// When a feed is polled next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NextPoll {
    /// When.
    pub at: Time,
    /// Why then, in words.
    pub why: String,
}

/// What polling knows of a feed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FeedStatus {
    pub name: FeedName,
    /// The upstream's address, as configured.
    pub url: String,
    /// Who added it.
    pub source: FeedSource,
    /// Whether it is polled and served.
    pub standing: FeedStanding,
    /// What the operator says of it.
    pub options: FeedOptions,
    /// The last polls, newest first; how many is up to the operator's side.
    pub last_polls: Vec<PollNote>,
    /// Whether missing items' own addresses are asked now, or wait to be.
    pub probing: bool,
    /// The last rounds that asked them, newest first.
    pub last_probes: Vec<ProbeNote>,
    /// The next poll; `None` where none is planned.
    pub next_poll: Option<NextPoll>,
    /// Failures in a row.
    pub failures: u32,
    /// Where a permanent redirect leads.
    pub moved_to: Option<String>,
    /// Why a document is held back, if one is.
    pub held: Option<String>,
    /// The last document that was looked at since the start.
    pub document: Option<DocumentNote>,
    /// Full observations since the last commit that found the document unchanged.
    pub same: u32,
    /// Items that are missing upstream with nothing concluded yet, at most
    /// [`crate::judge::PENDING_SHOWN`], what is decided first first.
    pub pending: Vec<PendingAbsence>,
    /// How many there are in all.
    pub pending_absences: u32,
    /// How far the walk through the publisher's older documents has come, where there was one.
    pub backfill: Option<Backfill>,
    /// The subscription to the hub that the upstream names, where there is one.
    pub hub: Option<HubNote>,
    /// What an aggregate could not gather; `None` for other feeds.
    pub gathered: Option<GatherNote>,
}

/// What of its sources an aggregate does not have, and why. What it has of them stays.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct GatherNote {
    /// Sources from which nothing new comes, in the operator's order, each with the reason; at most
    /// [`GatherNote::LIMIT`].
    pub troubles: Vec<(FeedName, String)>,
    /// How many there are in all.
    pub troubled: usize,
    /// Items that were not taken over since the start, or not whole, the newest last: the source, the
    /// item, and why; at most [`GatherNote::LIMIT`].
    pub left_out: Vec<(FeedName, SyncId, String)>,
    /// Why it could not be brought up to date when that was tried last.
    pub error: Option<String>,
}

impl GatherNote {
    /// The most of each that is shown.
    pub const LIMIT: usize = 20;
}

/// A subscription to the hub of an upstream, without what only the two know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HubNote {
    /// The word for how it stands.
    pub state: &'static str,
    /// How it stands and why, in words.
    pub words: String,
    /// The address of the hub.
    pub hub: String,
    /// Further hubs that the feed names.
    pub others: Vec<String>,
    /// The address under which the hub knows the feed.
    pub topic: String,
    /// Until when it delivers, where it does.
    pub until: Option<Time>,
    /// When the next request to it is due.
    pub next: Time,
    /// Whether it is believed to tell of every change.
    pub trust: HubTrust,
    /// Changes in a row that it told of.
    pub heard: u32,
    /// Changes in a row that were found without it.
    pub silent: u32,
    /// How often it pushed something.
    pub pushes: u64,
    /// When it last did.
    pub last_push: Option<Time>,
    /// Pushes since the start that were not believed.
    pub disbelieved: u64,
    /// When the last of these came, and why it was not.
    pub last_disbelieved: Option<(Time, String)>,
}

/// Counters since the start; each only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct OperatorTotals {
    /// Polls that ended as [`PollOutcome::Changed`].
    pub changed: u64,
    /// Polls that ended as [`PollOutcome::Unchanged`].
    pub unchanged: u64,
    /// Polls that ended as [`PollOutcome::NotModified`].
    pub not_modified: u64,
    /// Polls that ended as [`PollOutcome::Failed`].
    pub failed: u64,
    /// Commits to the store.
    pub commits: u64,
    /// Bytes read from upstreams, as they came over the wire.
    pub fetched_bytes: u64,
}
