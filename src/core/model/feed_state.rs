//! What a feed is in all: where it stands, and what was learned of it.

use super::{Chain, DayVersions, Evictions, FlawHistory, Format, Hold, Revision, Tick, Time};
use serde::{Deserialize, Serialize};

/// What has been learned of how a feed behaves.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Character {
    /// Full documents that were compared.
    pub documents: u32,
    /// The most entries that one had.
    pub largest: u32,
    /// Transitions whose common items kept their relative order.
    pub kept_order: u32,
    /// Transitions whose common items changed it.
    pub reordered: u32,
    /// Transitions in which a new item came above the last of the old ones.
    pub grew_above: u32,
    /// Transitions in which new items came below old ones.
    pub grew_below: u32,
    /// Items that were missing with something below them and came back.
    pub holes_returned: u32,
    /// Transitions in which items left from the middle, while others below them stayed.
    pub left_middle: u32,
    /// Transitions in which items left at the end.
    pub left_end: u32,
    /// Transitions in which new items came at the head and nothing left.
    pub came_alone: u32,
    /// Transitions in which new items came at the head and items left at the end alone.
    pub came_sliding: u32,
    /// Transitions in which new items came and others left from the middle.
    pub came_swapping: u32,
}

/// The state of a feed; small.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct FeedState {
    /// How many commits it has seen. Set by the store on commit.
    pub revision: Revision,
    /// The last tick, `until`.
    pub tick: Option<Tick>,
    /// The start of the sync view's window: all changes with a greater tick are in it (`since`;
    /// READINGS 1, row 26).
    pub window_start: Option<Tick>,
    /// The greatest tick of an item that left the ledger, or the first window start: the complete
    /// view's lower bound.
    pub complete_start: Option<Tick>,
    /// Raised by every stored change to what is shown.
    pub render_revision: u64,
    /// When what is shown last changed; strictly increasing with `render_revision`. The feed-level
    /// `updated` and `Last-Modified`.
    pub updated_at: Time,
    /// The format of the last document taken in.
    pub format: Format,
    /// Whether the last document said that it lists every entry (`fh:complete`).
    pub says_complete: bool,
    /// Fingerprint of the body as it came over the wire, still compressed.
    pub wire: u128,
    /// Fingerprint of the decompressed body.
    pub body: u128,
    /// Fingerprint of the skeleton.
    pub head: u64,
    /// The site that the feed belongs to: its `Head::link`, else its id.
    pub site: Option<String>,
    /// Fingerprint of the address that the last whole document came from, as configured; 0 where
    /// it is unknown.
    pub source: u64,
    /// When the first whole document came from that address, where another one was polled before:
    /// what was first seen earlier came from elsewhere.
    pub source_since: Option<Time>,
    /// What has been learned of it.
    pub character: Character,
    /// The document that is held back, if one is.
    pub hold: Option<Hold>,
    /// The earliest time at which evidence that is pending can ripen or a change that waits comes
    /// out, so that a poll that finds the document unchanged needs the ledger only then. By running
    /// time, as all that it follows from.
    pub next_decision_at: Option<Time>,
    /// Items in the last document, in its order.
    pub current: u32,
    /// Items that live, retired ones included.
    pub living: u32,
    /// Tombstones kept.
    pub tombstones: u32,
    /// Items in conflict. Set by the store on commit.
    pub contested: u32,
    /// How many items left the ledger.
    pub evictions: Evictions,
    /// The archives of its change log.
    pub archives: Chain,
    /// The earliest render revision from which a delta of the reader view tells all that changed
    /// since: before it something changed that no list of entries can say, such as the order of
    /// entries that stayed as they were.
    pub deltas_from: u64,
    /// Up to where the upstream's shared items are known: its `sx:sharing/@until` as it stood when
    /// its items were last merged (SSE 1.0 section 4.1). Never parsed.
    pub upstream_until: Option<String>,
    /// How often an item of a purged feed of this name was updated at most: what is made here
    /// begins above that, for its ids were published before. 0 where nothing was purged.
    pub updates_before: u32,
    /// What is missing of its past, where its store was brought back from a copy.
    pub gap: Option<Gap>,
    /// How far it is known for ill-formed documents.
    pub flaws: FlawHistory,
    /// What was told of its head.
    pub told: HeadHistory,
    /// Under which openings of the store it changed. Set by the store on commit.
    pub lineage: Lineage,
}

impl FeedState {
    /// The state of a feed before its first commit.
    pub fn untouched(format: Format, now: Time) -> Self {
        Self { updated_at: now, format, ..Self::default() }
    }
}

// What subscribers were told of a feed's head.

/// How a feed's head changes: what it says to a reader is its title, subtitle, link, language,
/// image and author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct HeadHistory {
    /// The number of the scheme by which the fingerprints were made; 0: by none.
    pub scheme: u32,
    /// Fingerprint of what it said when subscribers were last told; 0 before the first document.
    pub told: u64,
    /// Fingerprint of what it says now.
    pub latest: u64,
    /// Fingerprint of what it says now, but for numbers, dates and tokens.
    pub shape: u64,
    /// How often in a row it changed in these alone.
    pub row: u8,
    /// When it last did.
    pub last: Option<Time>,
    /// The changes of the present day that were told.
    pub made: Option<DayVersions>,
}

// What is missing of a feed's past after its store was brought back from a copy.

/// A stretch of time of which a feed knows nothing: what it made then is known to others at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gap {
    /// The last moment that the copy knows.
    pub since: Time,
    /// When the store was brought back.
    pub until: Time,
}

/// The most updates of an item that are thought to be lost: more would be a leap to others.
const LOST_LIMIT: u32 = 16_384;
const DAY: u64 = 24 * 3600;

impl Gap {
    /// This one, and what was missing before the copy was made.
    #[must_use]
    pub fn after(self, earlier: Option<Self>) -> Self {
        let since = earlier.map_or(self.since, |earlier| earlier.since.min(self.since));
        Self { since, ..self }
    }

    /// Whether a moment lies in it.
    pub fn has(&self, when: Time) -> bool {
        self.since <= when && when <= self.until
    }

    /// Its whole seconds. An item was updated here no more often than that: each update has a tick
    /// of its own, and each tick a second.
    pub fn seconds(&self) -> u64 {
        u64::try_from(self.until.unix().saturating_sub(self.since.unix())).unwrap_or_default()
    }

    /// How often an item can have been updated in it, however many updates a day are allowed.
    pub fn most_updates(&self) -> u32 {
        u32::try_from(self.seconds()).unwrap_or(u32::MAX).min(LOST_LIMIT)
    }

    /// How often an item may have been updated in it, where `per_day` are made in a day.
    pub fn updates(&self, per_day: u32) -> u32 {
        let days = self.seconds() / DAY + 2;
        let lost = days.saturating_mul(u64::from(per_day));
        u32::try_from(lost).unwrap_or(u32::MAX).min(LOST_LIMIT)
    }
}

// Which stretches of a feed's render revisions, and of the change log, were made one after the
// other.

/// One opening of the store that changed the feed, or the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stretch {
    /// A number that no other opening has, chosen at random.
    pub mark: u32,
    /// The revision (or epoch) that it found: those that it made come after this one.
    pub after: u64,
}

/// The openings of the store under which a feed changed, oldest first.
///
/// The revisions are a feed's render revisions, or the epochs of the change log.
///
/// A store that is brought back from an older copy goes on from there, and gives render revisions
/// out that were given out before, for something else. Whoever names one names the opening that
/// made it as well, so that the two are told apart. At most [`Lineage::LIMIT`] openings are kept:
/// what was made under an earlier one is as good as never made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Stretch>")]
pub struct Lineage(Vec<Stretch>);

impl Lineage {
    /// The most openings that are kept of a feed.
    pub const LIMIT: usize = 32;

    /// A lineage of these stretches, oldest first; the oldest go where there are too many.
    pub fn new(stretches: impl IntoIterator<Item = Stretch>) -> Self {
        let mut lineage = Self(stretches.into_iter().collect());
        lineage.trim();
        lineage
    }

    /// Its stretches, oldest first.
    pub fn stretches(&self) -> &[Stretch] {
        &self.0
    }

    /// Notes that the opening `mark` makes revisions after `after`, unless it did so before.
    pub fn go_on(&mut self, mark: u32, after: u64) {
        if self.mark() != Some(mark) {
            self.0.push(Stretch { mark, after });
            self.trim();
        }
    }

    /// Notes that the opening `mark` goes on from `after`. One before it that made nothing is
    /// forgotten.
    pub fn open(&mut self, mark: u32, after: u64) {
        while self.0.last().is_some_and(|last| last.after >= after) {
            self.0.pop();
        }
        self.go_on(mark, after);
    }

    /// The opening to name a place by that everything up to `place` was made under: the first that
    /// reached it, so that one place has one name.
    pub fn mark_at(&self, place: u64, newest: u64) -> Option<u32> {
        self.spans(newest).find(|(_, end)| place <= *end).map(|(stretch, _)| stretch.mark)
    }

    /// Whether the opening `mark` and those before it made everything up to `place`, where `newest`
    /// is the newest. Whoever names this place has seen nothing else.
    pub fn reaches(&self, mark: u32, place: u64, newest: u64) -> bool {
        self.spans(newest).any(|(stretch, end)| stretch.mark == mark && place <= end)
    }

    /// Each stretch and its end.
    fn spans(&self, newest: u64) -> impl Iterator<Item = (&Stretch, u64)> {
        let ends = self.0.iter().skip(1).map(|next| next.after).chain([newest]);
        self.0.iter().zip(ends)
    }

    /// The opening that made the newest revision.
    pub fn mark(&self) -> Option<u32> {
        self.0.last().map(|stretch| stretch.mark)
    }

    /// Whether the opening `mark` made the revision `render`, where `newest` is the newest one.
    pub fn made(&self, mark: u32, render: u64, newest: u64) -> bool {
        let found = self.spans(newest).find(|(stretch, _)| stretch.mark == mark);
        found.is_some_and(|(stretch, end)| stretch.after < render && render <= end)
    }

    fn trim(&mut self) {
        let extra = self.0.len().saturating_sub(Self::LIMIT);
        self.0.drain(..extra);
    }
}

impl From<Vec<Stretch>> for Lineage {
    fn from(stretches: Vec<Stretch>) -> Self {
        Self::new(stretches)
    }
}

// By what an unchanged document is known.

/// Fingerprints of a body, for the unchanged gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BodyPrints {
    /// Of the body as it came over the wire, still compressed (XXH3, 128 bits).
    pub wire: u128,
    /// Of the decompressed body (XXH3, 128 bits).
    pub body: u128,
}

impl BodyPrints {
    /// The part of the body's fingerprint that is enough to tell two documents of a feed apart;
    /// never 0.
    #[allow(clippy::cast_possible_truncation)]
    pub fn short(self) -> u64 {
        (self.body as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_lost_is_bounded_by_time() {
        let gap =
            |since, until| Gap { since: Time::from_unix(since), until: Time::from_unix(until) };
        let day = gap(1000, 1000 + 86_400);
        assert_eq!((day.seconds(), day.updates(24)), (86_400, 72));
        assert_eq!(gap(0, 86_400 * 36_500).updates(24), LOST_LIMIT);
        let back = gap(500, 100);
        assert_eq!((back.seconds(), back.updates(1)), (0, 2));
        assert!(day.has(Time::from_unix(1000)) && !day.has(Time::from_unix(999)));
        assert_eq!(day.after(Some(gap(10, 20))), gap(10, 1000 + 86_400));
        assert_eq!(day.after(None), day);
    }

    #[test]
    fn a_revision_belongs_to_the_opening_that_made_it() {
        let mut lineage = Lineage::default();
        assert!(!lineage.made(1, 0, 0) && lineage.mark().is_none());
        lineage.go_on(1, 0);
        lineage.go_on(1, 5);
        assert!(lineage.made(1, 1, 9) && lineage.made(1, 9, 9));
        assert!(!lineage.made(1, 0, 9) && !lineage.made(1, 10, 9) && !lineage.made(2, 5, 9));
        lineage.go_on(2, 9);
        assert!(lineage.made(1, 9, 12) && lineage.made(2, 10, 12));
        assert!(!lineage.made(1, 10, 12) && !lineage.made(2, 9, 12));
        assert_eq!(lineage.mark(), Some(2));
        // The copy was made at revision 4; what the first store went on with is not known to it.
        let mut first = Lineage::default();
        first.go_on(1, 0);
        let mut copy = first.clone();
        first.go_on(2, 4);
        copy.go_on(3, 4);
        assert!(first.made(2, 7, 9) && !copy.made(2, 7, 9));
        assert!(!copy.made(1, 7, 9), "the same opening went on without the copy");
        assert!(copy.made(1, 4, 9) && copy.made(3, 7, 9));
    }

    /// A place in the log is named by who reached it first, and known to whoever shares that
    /// history.
    #[test]
    fn a_place_is_known_to_those_who_share_its_history() {
        let mut first = Lineage::default();
        first.open(1, 0);
        first.open(2, 0);
        assert_eq!(first.stretches().len(), 1, "an opening that made nothing is forgotten");
        first.open(3, 4);
        assert_eq!((first.mark_at(4, 6), first.mark_at(5, 6)), (Some(2), Some(3)));
        assert_eq!(first.mark_at(7, 6), None);
        let mut copy = first.clone();
        copy.open(4, 6);
        first.open(5, 9);
        assert!(copy.reaches(3, 6, 12) && copy.reaches(2, 4, 12) && copy.reaches(4, 12, 12));
        assert!(!copy.reaches(3, 7, 12), "the first one went on without the copy");
        assert!(!copy.reaches(5, 10, 12) && !copy.reaches(4, 13, 12) && !copy.reaches(2, 5, 12));
        assert!(first.reaches(3, 9, 12) && !first.reaches(4, 7, 12));
    }

    #[test]
    fn the_oldest_openings_are_forgotten() {
        let mut lineage = Lineage::default();
        for mark in 0..100 {
            lineage.go_on(mark, u64::from(mark));
        }
        assert_eq!(lineage.stretches().len(), Lineage::LIMIT);
        assert!(!lineage.made(5, 6, 100) && lineage.made(99, 100, 100));
    }
}
