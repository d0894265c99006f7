//! What keeps documents from being well-formed, and how far a feed is known for it.

use super::kinds::set_of;
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
}

set_of! {
    /// The kinds of flaws that a document has.
    Flaws(u8) of Flaw
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
        Flaw::ALL.iter().all(|flaw| !flaws.contains(*flaw) || self.is_usual(*flaw))
    }

    /// Takes in the flaws of a document. Those of a feed's first document are its own way, for
    /// nothing else is known of it.
    pub fn note(&mut self, flaws: Flaws, is_first: bool) {
        for (row, flaw) in self.rows.iter_mut().zip(Flaw::ALL) {
            *row = match (flaws.contains(flaw), is_first) {
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
        of.iter().copied().collect()
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
