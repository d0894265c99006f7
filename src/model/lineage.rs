//! Which stretches of a feed's render revisions were made one after the other.

use serde::{Deserialize, Serialize};

/// One opening of the store that changed the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stretch {
    /// A number that no other opening has, chosen at random.
    pub mark: u32,
    /// The render revision that it found: those that it made come after this one.
    pub after: u64,
}

/// The openings of the store under which a feed changed, oldest first.
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

    /// The opening that made the newest revision.
    pub fn mark(&self) -> Option<u32> {
        self.0.last().map(|stretch| stretch.mark)
    }

    /// Whether the opening `mark` made the revision `render`, where `newest` is the newest one.
    pub fn made(&self, mark: u32, render: u64, newest: u64) -> bool {
        let ends = self.0.iter().skip(1).map(|next| next.after).chain([newest]);
        let found = self.0.iter().zip(ends).find(|(stretch, _)| stretch.mark == mark);
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
