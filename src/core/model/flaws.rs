//! What keeps documents from being well-formed, and how far a feed is known for it.

use serde::{Deserialize, Serialize};

/// A kind of flaw: each is one for which a strict XML processor refuses the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// Bytes that are malformed in the document's charset.
    Bytes,
    /// Characters that XML forbids.
    Characters,
    /// References that XML does not know, and bare `&`.
    References,
    /// Tags, comments and attributes that cannot be told apart, and a document that is cut.
    Tags,
    /// Namespace prefixes that are not declared.
    Prefixes,
    /// Something before the document's declaration or behind its end.
    Around,
}

impl Flaw {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Bytes, Self::Characters, Self::References, Self::Tags, Self::Prefixes, Self::Around];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The kinds of flaws that a document has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flaws(u8);

impl Flaws {
    /// Adds a kind.
    pub const fn insert(&mut self, flaw: Flaw) {
        self.0 |= flaw.bit();
    }

    /// Adds the kinds of another set.
    pub const fn join(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether a kind is among them.
    pub const fn has(self, flaw: Flaw) -> bool {
        self.0 & flaw.bit() != 0
    }

    /// Whether there are none: the document is well-formed.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// How far a feed is known for flaws, and what of its last document is still doubted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct FlawHistory {
    /// How many documents in a row had each kind of [`Flaw::ALL`], at most [`FlawHistory::USUAL`].
    pub rows: [u8; Flaw::ALL.len()],
    /// Fingerprints of the changes in an ill-formed document that wait to be seen again, sorted.
    pub doubted: Vec<u64>,
    /// A fingerprint of the last document, where it was ill-formed as the feed is not else; else 0.
    pub body: u64,
    /// The charset that the last document was read as which was not doubted (the name that the
    /// WHATWG Encoding Standard has for it).
    pub charset: Option<String>,
}

impl FlawHistory {
    /// So many documents in a row make a kind of flaw the feed's own way. Until then an edit is a
    /// look later, which is little beside garbage that is published.
    pub const USUAL: u8 = 24;
    /// The most changes that wait to be seen again; those beyond wait until the document does.
    pub const DOUBTED_LIMIT: usize = 10_000;

    /// Whether the feed always has this kind of flaw, as far as is known.
    pub fn is_usual(&self, flaw: Flaw) -> bool {
        self.rows.get(flaw as usize).is_some_and(|row| *row >= Self::USUAL)
    }

    /// Whether the feed always has flaws of all these kinds.
    pub fn are_usual(&self, flaws: Flaws) -> bool {
        Flaw::ALL.iter().all(|flaw| !flaws.has(*flaw) || self.is_usual(*flaw))
    }

    /// Takes in the flaws of a document. Those of a feed's first document are its own way, for
    /// nothing else is known of it.
    pub fn note(&mut self, flaws: Flaws, is_first: bool) {
        for (row, flaw) in self.rows.iter_mut().zip(Flaw::ALL) {
            *row = match (flaws.has(flaw), is_first) {
                (false, _) => 0,
                (true, true) => Self::USUAL,
                (true, false) => row.saturating_add(1).min(Self::USUAL),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flaws(of: &[Flaw]) -> Flaws {
        let mut flaws = Flaws::default();
        of.iter().for_each(|flaw| flaws.insert(*flaw));
        flaws
    }

    #[test]
    fn a_flaw_is_usual_from_the_beginning_or_after_many_documents_in_a_row() {
        let (tags, bytes) = (flaws(&[Flaw::Tags]), flaws(&[Flaw::Bytes]));
        let mut history = FlawHistory::default();
        history.note(tags, true);
        assert!(history.are_usual(tags) && history.are_usual(Flaws::default()));
        let both = flaws(&[Flaw::Tags, Flaw::Bytes]);
        assert!(!history.are_usual(both));
        for seen in 1..=FlawHistory::USUAL {
            history.note(both, false);
            assert_eq!(history.are_usual(both), seen == FlawHistory::USUAL);
        }
        history.note(bytes, false);
        assert!(history.are_usual(bytes) && !history.are_usual(tags));
        history.note(Flaws::default(), false);
        assert_eq!(history, FlawHistory::default());
    }
}
