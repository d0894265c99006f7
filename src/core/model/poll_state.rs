//! What polling remembers of a feed.

use super::{FeedName, HubSubscription, Time, UpdateHints};
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

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
    /// Of them, up to the last one, those in a row that say that the feed is gone for good (410).
    /// Polls that were asked for do not count: they may follow each other at once.
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
    /// When this was written down last. The newest of all feeds tells whether the clock was set
    /// back.
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

// A large document while it is taken in.

/// That a large document of a feed is, or was, being taken in: what is noted before, so that a
/// start after the gateway was killed can tell what it was doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub feed: FeedName,
    /// About how many entries the document has.
    pub entries: u32,
    /// When it was begun.
    pub begun: Time,
    /// How often the gateway ended in it.
    pub kills: u32,
    /// Whether it is going on, as far as anybody wrote down.
    pub is_open: bool,
}

impl Attempt {
    /// Whether there is nothing to be noted of it any more.
    pub const fn is_over(&self) -> bool {
        !self.is_open && self.kills == 0
    }

    /// This one, over.
    pub fn over(self) -> Self {
        Self { kills: 0, is_open: false, ..self }
    }
}

// How far the walk through a publisher's older documents has come.

/// How a publisher's older documents follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ArchiveLayout {
    /// Archive documents, linked (Feed History draft-05 section 4, RFC 5005 section 4).
    Archives,
    /// Pages, linked (RFC 5005 section 3).
    Pages,
    /// Pages that are numbered in the address and not linked (WordPress, `?paged=2`).
    Numbered,
}

impl ArchiveLayout {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Archives => "archives",
            Self::Pages => "pages",
            Self::Numbered => "numbered",
        }
    }
}

/// Whether a walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum WalkStanding {
    /// It goes on.
    #[default]
    Walking,
    /// It came to its end.
    Done,
    /// It stopped before its end, and goes on from there when it is asked to.
    Stopped,
}

impl WalkStanding {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Walking => "walking",
            Self::Done => "done",
            Self::Stopped => "stopped",
        }
    }
}

/// A walk through a publisher's older documents, which takes in what its feed did not show any more
/// when it was polled first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Backfill {
    /// Whether it goes on.
    pub standing: WalkStanding,
    /// How the documents follow each other, once that is known.
    pub trail: Option<ArchiveLayout>,
    /// The address of the next document; `None`: it begins with the feed itself.
    pub next: Option<String>,
    /// Older documents that were read.
    pub documents: u32,
    /// Items that were taken in.
    pub items: u32,
    /// Entries that were known already.
    pub known: u32,
    /// Bytes of documents, decompressed.
    pub bytes: u64,
    /// Bytes of the items that were taken in.
    pub taken_bytes: u64,
    /// Failures in a row at the next document.
    pub failures: u32,
    /// When it began.
    pub started: Time,
    /// When it came to its end or stopped.
    pub ended: Option<Time>,
    /// Why it ended or stopped, or what went wrong last.
    pub note: Option<String>,
    /// Fingerprints of the documents that were read last, newest first, at most
    /// [`Backfill::MARKS_KEPT`]: their addresses and what they listed.
    pub marks: Vec<u64>,
    /// Fingerprints of ids that newer documents say are deleted, at most [`Backfill::GONE_KEPT`].
    pub gone: Vec<u64>,
}

impl Backfill {
    /// The most fingerprints of documents that are kept.
    pub const MARKS_KEPT: usize = 128;
    /// The most fingerprints of deleted ids that are kept.
    pub const GONE_KEPT: usize = 512;

    /// A walk that begins now.
    pub fn begin(now: Time) -> Self {
        Self { started: now, ..Self::default() }
    }

    /// Whether it goes on.
    pub fn is_walking(&self) -> bool {
        self.standing == WalkStanding::Walking
    }
}

// How the documents of a feed overlap from poll to poll.

/// How the documents of a feed overlap: as long as two in a row have an item in common, nothing
/// that came between them was missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Overlap {
    /// The usual time in which half of the items of its document are replaced; `None` where that
    /// was not seen yet.
    pub half_life: Option<Duration>,
    /// How often two whole documents in a row had no item in common: items between them may have
    /// been missed.
    pub missed: u32,
    /// When that was found last.
    pub last_missed: Option<Time>,
}

// Times in which a feed did not go on as usual.

/// Why a feed did not go on as usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum InterruptionKind {
    /// Its publisher could not be read.
    Failed,
    /// A document of it was held.
    Held,
}

impl InterruptionKind {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failing",
            Self::Held => "held",
        }
    }
}

/// A time in which a feed did not go on as usual.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    pub kind: InterruptionKind,
    /// When it was first seen.
    pub since: Time,
    /// When it was seen to be over; `None` while it lasts.
    pub until: Option<Time>,
    /// Why it began, in words.
    pub reason: String,
}

impl Hash for Interruption {
    /// Its reason never changes, and is by far the longest of it.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind, self.since, self.until).hash(state);
    }
}

/// The last interruptions of a feed, at most one of each kind at a time. Shared by all who have
/// them as they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Interruptions(
    /// In the order in which they began.
    pub(super) Arc<[Interruption]>,
);

impl Interruptions {
    /// The most that are kept; the oldest are forgotten.
    pub const LIMIT: usize = 32;
    /// The most characters of a reason that are kept.
    pub const REASON_LIMIT: usize = 160;

    /// Those that are kept, in the order in which they began.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Interruption> {
        self.0.iter()
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in whether the feed is interrupted at `now`, and why: with a reason an interruption of
    /// this kind begins or lasts, without one it ends.
    pub fn note(&mut self, kind: InterruptionKind, reason: Option<&str>, now: Time) {
        let lasts = |known: &Interruption| known.kind == kind && known.until.is_none();
        match (self.0.iter().any(lasts), reason) {
            (true, None) => {
                let all = Arc::make_mut(&mut self.0).iter_mut();
                all.filter(|it| lasts(it)).for_each(|it| it.until = Some(now.max(it.since)));
            }
            (false, Some(reason)) => {
                let reason = reason.chars().take(Self::REASON_LIMIT).collect();
                let new = Interruption { kind, since: now, until: None, reason };
                let surplus = (self.0.len() + 1).saturating_sub(Self::LIMIT);
                self.0 = self.0.iter().skip(surplus).cloned().chain([new]).collect();
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{NOW, at};
    use InterruptionKind::{Failed, Held};

    fn told(all: &Interruptions) -> Vec<(InterruptionKind, i64, Option<i64>, &str)> {
        let seconds = |time: Time| time.unix() - NOW.unix();
        all.iter()
            .map(|it| (it.kind, seconds(it.since), it.until.map(seconds), it.reason.as_str()))
            .collect()
    }

    #[test]
    fn an_interruption_lasts_from_its_first_sign_to_the_first_without() {
        let mut all = Interruptions::default();
        all.note(Failed, None, at(0));
        assert!(all.is_empty());
        all.note(Failed, Some("503"), at(1));
        all.note(Held, Some("empty"), at(2));
        all.note(Failed, Some("timeout"), at(3));
        assert_eq!(told(&all), [(Failed, 1, None, "503"), (Held, 2, None, "empty")]);
        all.note(Failed, None, at(4));
        all.note(Failed, None, at(5));
        all.note(Failed, Some("timeout"), at(6));
        let first = [(Failed, 1, Some(4), "503"), (Held, 2, None, "empty")];
        assert_eq!(told(&all), [&first[..], &[(Failed, 6, None, "timeout")]].concat());
        // A clock that is set back ends nothing before it began.
        all.note(Held, None, at(0));
        assert_eq!(told(&all)[1], (Held, 2, Some(2), "empty"));
    }

    #[test]
    fn as_many_are_kept_as_the_limit_allows_and_those_are_the_newest() {
        let mut all = Interruptions::default();
        for n in 0..100 {
            all.note(Failed, Some(&"ä".repeat(1_000)), at(2 * n));
            all.note(Failed, None, at(2 * n + 1));
        }
        assert_eq!(all.iter().count(), Interruptions::LIMIT);
        let newest = all.iter().next_back().unwrap();
        assert_eq!((newest.since, newest.until), (at(198), Some(at(199))));
        assert_eq!(newest.reason.chars().count(), Interruptions::REASON_LIMIT);
    }
}
