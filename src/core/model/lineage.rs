//! Which stretches of a feed's render revisions, and of the change log, were made one after the other.

use serde::{Deserialize, Serialize};

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

    /// Notes that the opening `mark` goes on from `after`. One before it that made nothing is forgotten.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    /// The copy was made at revision 4; what the first store went on with is not known to it.
    #[test]
    fn what_came_after_the_copy_is_not_known_to_it() {
        let mut first = Lineage::default();
        first.go_on(1, 0);
        let mut copy = first.clone();
        first.go_on(2, 4);
        copy.go_on(3, 4);
        assert!(first.made(2, 7, 9) && !copy.made(2, 7, 9));
        assert!(!copy.made(1, 7, 9), "the same opening went on without the copy");
        assert!(copy.made(1, 4, 9) && copy.made(3, 7, 9));
    }

    /// A place in the log is named by who reached it first, and known to whoever shares that history.
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
