//! The seam to what polling does for administration: serving asks, somebody else acts.

use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use tidegate_core::model::{Decision, FeedAccess, FeedName, FeedOptions, SyncId, Tick, Time};
use tidegate_core::websub::Verification;
use tidegate_judge::record::local::{Act, ActError, Acted};
use tidegate_status::{FeedStatus, FeedSummary, PollResponse, PollTotals, PushResult, WalkOrder};
use tidegate_store::{CommitError, StoreError};
use tokio::sync::mpsc;
use utoipa::ToSchema;

/// What administration asks of the side that polls. A double stands in for it in tests.
#[async_trait]
pub trait Operator: Send + Sync + 'static {
    /// What was counted since the start, for `/metrics`.
    fn totals(&self) -> PollTotals;

    /// How the polling of each of them stands, in short.
    async fn summaries(&self) -> Result<BTreeMap<FeedName, FeedSummary>, OperatorError>;

    /// The same of a feed that this gateway polls, or would poll were it not paused; `None` of another. Nothing is
    /// read.
    fn own_summary(&self, feed: &FeedName) -> Option<FeedSummary>;

    /// One feed.
    async fn status(&self, feed: &FeedName) -> Result<FeedStatus, OperatorError> {
        let found = self.statuses(std::slice::from_ref(feed)).await?.pop();
        found.ok_or_else(|| OperatorError::UnknownFeed(feed.clone()))
    }

    /// Some feeds, in this order; names without a feed are passed over.
    async fn statuses(&self, feeds: &[FeedName]) -> Result<Vec<FeedStatus>, OperatorError>;

    /// Adds a feed or changes it. Durable on return.
    async fn put(&self, feed: &FeedName, put: PutFeed) -> Result<Put, OperatorError>;

    /// Stops a feed for good; with `purge` its data go too. Durable on return.
    async fn delete(&self, feed: &FeedName, purge: bool) -> Result<(), OperatorError>;

    /// Reads the document at an address and says what it is, without taking anything in: a feed, or a page
    /// with the feeds that it names.
    async fn preview(&self, url: &str) -> Result<AddressPreview, OperatorError>;

    /// The name that a feed at this address gets where nobody chooses one.
    async fn name_for(&self, url: &str) -> Result<FeedName, OperatorError>;

    /// Adds the feeds of a subscription list (OPML), with their folders and names; those that are there
    /// already get a place where they have none. `rearrange`: the list says where all of its feeds stand.
    /// Durable on return.
    async fn import_list(
        &self,
        list: Bytes,
        rearrange: bool,
    ) -> Result<ImportedList, OperatorError>;

    /// Polls a feed now, with a request of its own, and answers when the result is durable.
    async fn poll_now(&self, feed: &FeedName) -> Result<PollResponse, OperatorError>;

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

    /// Deletes an item of a publisher that is missing from its document. The tick of the tombstone that
    /// this made; `None` where it was deleted before. Durable on return.
    async fn delete_missing(
        &self,
        feed: &FeedName,
        item: &SyncId,
    ) -> Result<Option<Tick>, OperatorError>;

    /// Begins to walk through the publisher's older documents, goes on with a walk that stopped, or
    /// stops one. Answers when it is in its line.
    async fn backfill(&self, feed: &FeedName, order: WalkOrder) -> Result<(), OperatorError>;

    /// Stops polling a feed, which is served as it is, or goes on with it. Durable on return.
    async fn pause(&self, feed: &FeedName, paused: bool) -> Result<(), OperatorError>;

    /// Begins to hand over the whole state of the gateway, which goes on meanwhile; one at a time.
    async fn export(&self) -> Result<ExportStream, OperatorError>;

    /// Decides about a held document.
    async fn hold(&self, feed: &FeedName, decision: Decision) -> Result<(), OperatorError>;

    /// Whether a hub of an upstream was given this token with the address of its callback.
    async fn is_callback(&self, token: &str) -> bool;

    /// Takes in what a hub asks back, or its denial. Answers the challenge where it was asked for
    /// just that, nothing where a denial was noted, and `None` otherwise.
    async fn called(
        &self,
        token: &str,
        said: Verification,
    ) -> Result<Option<String>, OperatorError>;

    /// Takes in a push of a hub, with the value of `X-Hub-Signature`.
    async fn pushed(&self, token: &str, signature: Option<String>, body: Bytes) -> PushResult;
}

/// The bytes of a file with the state of the gateway, piece by piece. It is whole where it ends without an error.
pub type ExportStream = mpsc::Receiver<io::Result<Bytes>>;

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
    /// The file system has too little space for anything new.
    #[error("{0}")]
    NoSpace(String),
    /// It may be done soon: the store is opened again, or its database is away.
    #[error("{0}")]
    Stopped(String),
}

impl From<StoreError> for OperatorError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LowSpace { .. } => Self::NoSpace(error.to_string()),
            StoreError::Away { .. } => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "administration is to ask again once the database answers"
                );
                Self::Stopped(error.to_string())
            }
            error if error.is_passing() => Self::Stopped(error.to_string()),
            error => Self::Internal(error.to_string()),
        }
    }
}

impl From<CommitError> for OperatorError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict(_) => {
                Self::Stopped("others change this feed at the moment; try again".to_owned())
            }
            CommitError::Store(error) => error.into(),
            CommitError::Ambiguous(error) if error.is_passing() => Self::Stopped(format!(
                "it is unknown whether this was stored, look at the feed before you do it again: \
                 {error}"
            )),
            CommitError::Overtaken => Self::Stopped(error.to_string()),
            CommitError::Ambiguous(_) => Self::Internal(error.to_string()),
        }
    }
}

/// A feed as an operator wants it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PutFeed {
    /// The upstream's address: absolute, http or https; empty where a local feed has none.
    pub url: String,
    /// Everything else.
    pub options: FeedOptions,
    /// Whether it is refused where there is or was a feed of that name.
    pub must_be_new: bool,
    /// Whether one that is paused stays so; otherwise it is polled again.
    pub keeps_paused: bool,
    /// What its publisher is asked with; a secret that is left out is the one that is stored.
    pub access: FeedAccess,
    /// Whether only readers with a token may read it; `None`: as it was, and not where it is new.
    pub private: Option<bool>,
    /// Whether it is a list whose feeds are added.
    pub adds_feeds: bool,
}

/// What is at an address.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schema(as = Preview)]
pub enum AddressPreview {
    Feed(FeedPreview),
    /// A page, with the feeds that it names or that were found where sites usually have one.
    Page {
        url: String,
        feeds: Vec<FoundFeed>,
    },
}

/// A feed as it would begin.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, ToSchema)]
#[schema(as = PreviewedFeed)]
pub struct FeedPreview {
    /// Its address; where permanent redirects lead, if they do.
    pub url: String,
    /// The name that it gets where nobody chooses one.
    pub name: FeedName,
    /// The format in words.
    pub format: &'static str,
    /// Whether it is a subscription list.
    #[serde(skip)]
    pub is_list: bool,
    /// Its title; empty where it has none.
    pub title: String,
    /// How many entries it has.
    pub entries: usize,
    /// The first of them, at most [`FeedPreview::TITLES`].
    pub first_entries: Vec<PreviewedEntry>,
    /// How it would be judged.
    pub remarks: Vec<String>,
}

/// An entry of a feed as it would begin.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, ToSchema)]
pub struct PreviewedEntry {
    /// Empty where it has none.
    pub title: String,
    pub time: Option<Time>,
}

impl FeedPreview {
    /// The most titles of a preview.
    pub const TITLES: usize = 10;
    /// The most remarks of a preview.
    pub const REMARKS: usize = 10;
}

/// The longest subscription list that a running gateway takes, in bytes.
pub const LIST_LIMIT: usize = 8 * 1024 * 1024;

/// What became of a subscription list.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, ToSchema)]
pub struct ImportedList {
    /// The feeds that were added, in the order of the list.
    pub added: Vec<FeedName>,
    /// How many of its addresses were polled already.
    pub known: usize,
    /// How many feeds that were there have another place now.
    pub placed: usize,
    /// How many stand in a further folder, and how many deeper than folders are kept.
    pub again: usize,
    pub deeper: usize,
    /// How many were deleted in the list, by its sharing markup.
    pub deleted: usize,
    /// How many could not be taken, and why, at most [`ImportedList::NAMED`].
    pub not_taken: usize,
    pub refused: Vec<ListLine>,
    /// How many mistakes of the list were passed over, and which, as many.
    pub repaired: usize,
    pub problems: Vec<ListLine>,
}

/// A line of a list, and what there is to say of it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, ToSchema)]
pub struct ListLine {
    /// Counted from 1.
    pub line: usize,
    pub said: String,
}

impl ImportedList {
    /// The most lines of a kind that are named.
    pub const NAMED: usize = 200;
}

/// A feed that belongs to a page.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, ToSchema)]
pub struct FoundFeed {
    pub url: String,
    /// What the page calls it; empty where it does not say.
    pub title: String,
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, ToSchema)]
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
    #[serde(rename = "was_redacted")]
    pub before: bool,
}
