//! Feeds as operators configure them, and what polling remembers of them.

use super::{
    Backfill, Enrolment, FeedAccess, FeedName, HubSubscription, Ignore, Interruptions, ListMember,
    OnDemand, Overlap, SharingOptions, ShownAddress, Time, UpdateHints,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When absence becomes a deletion (CONTRACT, Configuration).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deletions {
    /// Confirmed in time and polls.
    #[default]
    Safe,
    /// The first full document with the evidence is enough.
    Eager,
    /// Never.
    Off,
}

/// Which missing items' own addresses are asked whether they are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Probing {
    /// None.
    Off,
    /// Those of all that are missing and not plainly gone by age, a few an hour.
    All,
    /// Those of which doubts have been open for long, two a day; never of a feed with a secret.
    #[default]
    Doubts,
}

/// How an operator says that a feed's document runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Order {
    /// As is learned from its documents.
    #[default]
    Auto,
    /// The newest item stands first, by when it was published.
    NewestFirst,
    /// The oldest item stands first, by when it was published.
    OldestFirst,
    /// The item that was changed last stands first, so that items jump when they are edited.
    Updated,
    /// By rank or by hand: the place of an item says nothing of its age, and there is no middle
    /// for it to be missing from.
    None,
}

impl Order {
    /// Every order.
    pub const ALL: [Self; 5] =
        [Self::Auto, Self::NewestFirst, Self::OldestFirst, Self::Updated, Self::None];

    /// Its word in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::NewestFirst => "newest-first",
            Self::OldestFirst => "oldest-first",
            Self::Updated => "updated",
            Self::None => "none",
        }
    }
}

/// What an operator says of one feed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct FeedOptions {
    /// The document lists every item.
    pub complete: bool,
    /// When absence becomes a deletion.
    pub deletions: Deletions,
    /// Polls are at least this far apart, where it differs from the gateway's setting.
    pub min_interval: Option<Duration>,
    /// Polls are at most this far apart, where it differs from the gateway's setting.
    pub max_interval: Option<Duration>,
    /// How the document runs.
    pub order: Order,
    /// Which missing items' own addresses are asked whether they are gone.
    pub probe: Probing,
    /// Whether the publisher's older documents are walked through once.
    pub backfill: bool,
    /// What is noise in this feed, at most [`IGNORE_LIMIT`](super::IGNORE_LIMIT) entries.
    pub ignore: Vec<Ignore>,
    /// How it takes part in sharing.
    pub sharing: SharingOptions,
    /// Whether the upstream's address is secret; where nothing is said, its query tells.
    pub secret: Option<bool>,
    /// The most items that its ledger keeps, where it differs from the gateway's setting.
    pub items: Option<u32>,
    /// Rules of judgement that are switched off, which only a replay does.
    #[serde(skip)]
    pub without: Without,
}

/// Rules of judgement that are switched off, by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Without(pub Vec<String>);

impl Without {
    /// Whether the rule is switched off.
    pub fn has(&self, rule: &str) -> bool {
        self.0.iter().any(|name| name == rule)
    }
}

/// Who added a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedSource {
    /// The configuration file, which wins over the others.
    File,
    CommandLine,
    /// The administration API.
    Api,
}

/// Whether a feed is polled and served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedStanding {
    /// Polled and served.
    Active,
    /// Served, no longer polled: it left the configuration file.
    Paused,
    /// Deleted by the operator: answers 410.
    Gone,
}

impl FeedStanding {
    /// Whether it is served.
    pub const fn is_served(self) -> bool {
        !matches!(self, Self::Gone)
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Gone => "gone",
        }
    }
}

/// A feed of this gateway.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FeedRecord {
    pub name: FeedName,
    /// The upstream's address, as configured; never rewritten. Empty where it has none: an
    /// aggregate, and a local feed that nobody else shares.
    pub url: String,
    /// Who added it.
    pub source: FeedSource,
    /// Whether it is polled and served.
    pub standing: FeedStanding,
    /// What the operator says of it.
    pub options: FeedOptions,
    /// What the list of subscriptions says of it.
    pub enrolment: Enrolment,
    /// What its publisher is asked with beside the address; `None` where that is as of every other.
    pub access: Option<Box<FeedAccess>>,
    /// Whether only readers with a token may read it.
    pub private: bool,
    /// Whether it is a subscription list whose feeds are feeds of this gateway.
    pub adds_feeds: bool,
    /// The list that added it; `None` where none did.
    pub list: Option<ListMember>,
    /// What is kept of it where a reader's request made it.
    pub on_demand: Option<OnDemand>,
}

impl FeedRecord {
    /// A feed that is polled and served, of which nothing else is said.
    pub fn new(name: FeedName, url: impl Into<String>, source: FeedSource) -> Self {
        Self {
            name,
            url: url.into(),
            source,
            standing: FeedStanding::Active,
            options: FeedOptions::default(),
            enrolment: Enrolment::default(),
            access: None,
            private: false,
            adds_feeds: false,
            list: None,
            on_demand: None,
        }
    }

    /// The upstream's address as it may be shown.
    pub fn shown(&self) -> ShownAddress {
        ShownAddress::new(&self.url, self.options.secret)
    }

    /// Whether there is an upstream to poll.
    pub const fn has_upstream(&self) -> bool {
        !self.url.is_empty()
    }
}

/// What polling remembers of a feed. It is written when it changes, and its times now and then.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PollState {
    pub feed: FeedName,
    /// The configured address that all of this is about; it means nothing for another one.
    pub url: String,
    /// Fingerprint of the decompressed document that the validators belong to. They are sent only
    /// while it is what the feed's state came from: this is written after the state, so that a
    /// crash in between leaves the validators of an earlier document.
    pub body: Option<u128>,
    /// `ETag` of the last document, verbatim.
    pub etag: Option<String>,
    /// `Last-Modified` of the last document, verbatim.
    pub last_modified: Option<String>,
    /// The address that validators belong to, where another one than `url` answered.
    pub answered_by: Option<String>,
    /// Where a permanent redirect leads; shown, and followed first.
    pub moved_to: Option<String>,
    /// Failures in a row.
    pub failures: u32,
    /// Of them, up to the last one, those in a row that say that the feed is gone for good (410). Polls
    /// that were asked for do not count: they may follow each other at once.
    pub gone: u32,
    /// The last failure, in words.
    pub last_error: Option<String>,
    /// When the validators were last dropped to read the whole document again.
    pub refreshed: Option<Time>,
    /// No poll before this time (`Retry-After`, backoff).
    pub not_before: Option<Time>,
    /// The walk through the publisher's older documents, where there was one.
    pub backfill: Option<Box<Backfill>>,
    /// The subscription to the hub that the feed names, where there is one.
    pub subscription: Option<Box<HubSubscription>>,
    /// What its next poll follows from; `None` before the first poll.
    pub schedule: Option<Box<PollSchedule>>,
    /// What a host asked for in answer to the last poll.
    pub pause: Option<HostPause>,
    /// How its documents overlap.
    pub overlap: Overlap,
    /// When it did not go on as usual.
    pub interruptions: Interruptions,
}

impl PollState {
    /// What is remembered of a feed with this address that was never polled.
    pub fn new(feed: &FeedName, url: &str) -> Self {
        Self {
            feed: feed.clone(),
            url: url.to_owned(),
            body: None,
            etag: None,
            last_modified: None,
            answered_by: None,
            moved_to: None,
            failures: 0,
            gone: 0,
            last_error: None,
            refreshed: None,
            not_before: None,
            backfill: None,
            subscription: None,
            schedule: None,
            pause: None,
            overlap: Overlap::default(),
            interruptions: Interruptions::default(),
        }
    }
}

/// A host asked to be left alone (429 or 503 with `Retry-After`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostPause {
    /// The address that answered so.
    pub address: String,
    /// Until when.
    pub until: Time,
}

/// What the next poll of a feed follows from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PollSchedule {
    /// When this was written down last. The newest of all feeds tells whether the clock was set back.
    pub noted: Time,
    /// When the publisher had answered the last poll, or when that failed.
    pub polled: Time,
    /// What the document asks for.
    pub hints: UpdateHints,
    /// How long the last answer stays fresh (`Cache-Control`, `Expires`).
    pub freshness: Option<Duration>,
    /// When the feed last changed.
    pub last_change: Time,
    /// The usual time between two changes.
    pub gap: Option<Duration>,
    /// While it fails: when it is tried again, and why then.
    pub retry: Option<(Time, String)>,
}
