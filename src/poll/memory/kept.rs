//! What may be written down of a feed, as it is kept in memory of every feed: in few bytes, without what its
//! record says, and in a place of its own what is seldom there. Pure.

use crate::seldom::{Nothing, Seldom};
use tidegate_core::model::{
    Backfill, FeedRecord, HostPause, HubSubscription, Interruptions, Overlap, PollSchedule,
    PollState, Time,
};
use tidegate_net::fetch::Validators;

/// What may be written down of a feed, but for the schedule.
#[derive(Debug, Clone)]
pub struct KeptState {
    /// Fingerprint of the decompressed document that the validators belong to.
    pub body: Option<u128>,
    /// `ETag` of the last document, verbatim.
    pub etag: Option<Box<str>>,
    /// `Last-Modified` of the last document, verbatim.
    pub last_modified: Option<Box<str>>,
    pub answered_by: AnsweredBy,
    /// Failures in a row.
    pub failures: u32,
    /// When the validators were last dropped to read the whole document again.
    pub refreshed: Time,
    /// How its documents overlap.
    pub overlap: Overlap,
    /// When it did not go on as usual.
    pub interruptions: Interruptions,
    pub rare: Seldom<RareState>,
}

/// What most feeds have nothing of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RareState {
    /// Where a permanent redirect leads.
    pub moved_to: Option<String>,
    /// Of the failures in a row, up to the last one, those that say that the feed is gone for good.
    pub gone: u32,
    /// The last failure, in words.
    pub last_error: Option<String>,
    /// No poll before this time.
    pub not_before: Option<Time>,
    /// What a host asked for in answer to the last poll.
    pub pause: Option<HostPause>,
    /// When it is tried again, and why then, where the last poll failed.
    pub retry: Option<(Time, String)>,
    /// When a refresh was begun that has not succeeded yet.
    pub refreshing: Option<Time>,
    /// A `Last-Modified` that is older than the document it came with, or stood still while that changed: its server
    /// would answer 304 to it for ever.
    pub disproved: Option<String>,
    /// Whom the validators were given to; 0: who has no credentials.
    pub given_to: u64,
    /// The walk and the subscription, until polling takes them over.
    pub backfill: Option<Box<Backfill>>,
    pub subscription: Option<Box<HubSubscription>>,
}

/// The address that validators belong to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AnsweredBy {
    /// None has answered yet.
    Nobody,
    /// The configured one.
    Configured,
    Other(Box<str>),
}

impl AnsweredBy {
    /// The address that answered, of a feed with this configured address.
    pub fn new(address: Option<&str>, configured: &str) -> Self {
        match address {
            None => Self::Nobody,
            Some(address) if address == configured => Self::Configured,
            Some(address) => Self::Other(address.into()),
        }
    }

    /// The address, of a feed with this configured address.
    pub fn address<'a>(&'a self, configured: &'a str) -> Option<&'a str> {
        match self {
            Self::Nobody => None,
            Self::Configured => Some(configured),
            Self::Other(address) => Some(address),
        }
    }
}

impl Nothing for RareState {
    const NOTHING: Self = Self {
        moved_to: None,
        gone: 0,
        last_error: None,
        not_before: None,
        pause: None,
        retry: None,
        refreshing: None,
        disproved: None,
        given_to: 0,
        backfill: None,
        subscription: None,
    };
    const SHARED: &'static Self = &Self::NOTHING;
}

impl KeptState {
    /// Takes what was written down, and the schedule out of it. `refreshed`: when the validators are taken
    /// to have been dropped last.
    pub fn unpack(poll: PollState, refreshed: Time) -> (Self, Option<Box<PollSchedule>>) {
        let PollState { feed: _, url, body, etag, last_modified, answered_by, .. } = poll;
        let mut kept = Self {
            body,
            etag: etag.map(String::into_boxed_str),
            last_modified: last_modified.map(String::into_boxed_str),
            answered_by: AnsweredBy::new(answered_by.as_deref(), &url),
            failures: poll.failures,
            refreshed,
            overlap: poll.overlap,
            interruptions: poll.interruptions,
            rare: Seldom::default(),
        };
        kept.rare.change(|rare| {
            *rare = RareState {
                moved_to: poll.moved_to,
                gone: poll.gone,
                last_error: poll.last_error,
                not_before: poll.not_before,
                pause: poll.pause,
                retry: None,
                refreshing: None,
                disproved: None,
                given_to: 0,
                backfill: poll.backfill,
                subscription: poll.subscription,
            };
        });
        (kept, poll.schedule)
    }

    /// Takes in the latest date in a document that was judged: a `Last-Modified` before it, or one that did not move
    /// when the document changed, is no validator.
    pub fn compare_dates(&mut self, validators: &Validators, newest: Option<Time>) {
        let Some(text) = validators.last_modified.as_deref() else { return };
        let is_older = validators.modified_at().is_some_and(|at| newest > Some(at));
        if is_older || self.last_modified.as_deref() == Some(text) {
            self.rare.change(|rare| rare.disproved = Some(text.to_owned()));
        }
    }

    /// What is written down of the feed with this record.
    pub fn pack(&self, feed: &FeedRecord, schedule: Option<Box<PollSchedule>>) -> PollState {
        let rare = RareState::clone(&self.rare);
        PollState {
            feed: feed.name.clone(),
            url: feed.url.clone(),
            body: self.body,
            etag: self.etag.as_deref().map(str::to_owned),
            last_modified: self.last_modified.as_deref().map(str::to_owned),
            answered_by: self.answered_by.address(&feed.url).map(str::to_owned),
            moved_to: rare.moved_to,
            failures: self.failures,
            gone: rare.gone,
            last_error: rare.last_error,
            refreshed: Some(self.refreshed),
            not_before: rare.not_before,
            backfill: rare.backfill,
            subscription: rare.subscription,
            schedule,
            pause: rare.pause,
            overlap: self.overlap,
            interruptions: self.interruptions.clone(),
        }
    }
}
