//! What keeps documents from being well-formed, how far a feed is known for it, and what must be
//! learned of a feed before a hole in its document means anything.

use serde::{Deserialize, Serialize};

/// Defines an enumeration without fields and the set of its variants, which is stored as a number
/// with one bit for each.
macro_rules! set_of {
    (
        $(#[$doc:meta])* $set:ident($bits:ty) of
        $(#[$of:meta])* $kind:ident { $($(#[$each:meta])* $variant:ident,)* }
    ) => {
        $(#[$of])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $kind {
            $($(#[$each])* $variant,)*
        }

        impl $kind {
            /// All of them, in their order.
            pub const ALL: [Self; [$(stringify!($variant)),*].len()] = [$(Self::$variant),*];
        }

        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize)]
        #[serde(transparent)]
        pub struct $set($bits);

        impl $set {
            /// The empty set.
            pub const NONE: Self = Self(0);

            const fn bit(kind: $kind) -> $bits {
                1 << kind as $bits
            }

            /// The set as a number.
            pub const fn bits(self) -> $bits {
                self.0
            }

            /// The set of a number; bits of no kind are left out.
            pub const fn from_bits(bits: $bits) -> Self {
                Self(bits & ((1 << $kind::ALL.len()) - 1))
            }

            /// Adds a kind.
            pub const fn insert(&mut self, kind: $kind) {
                self.0 |= Self::bit(kind);
            }

            /// Takes a kind out.
            pub const fn remove(&mut self, kind: $kind) {
                self.0 &= !Self::bit(kind);
            }

            /// Adds every kind of another set.
            pub const fn join(&mut self, other: Self) {
                self.0 |= other.0;
            }

            /// Whether a kind is in it.
            pub const fn contains(self, kind: $kind) -> bool {
                self.0 & Self::bit(kind) != 0
            }

            /// Whether it is empty.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// The kinds in it, in their order.
            pub fn iter(self) -> impl Iterator<Item = $kind> {
                $kind::ALL.into_iter().filter(move |kind| self.contains(*kind))
            }
        }

        impl FromIterator<$kind> for $set {
            fn from_iter<I: IntoIterator<Item = $kind>>(kinds: I) -> Self {
                Self(kinds.into_iter().fold(0, |bits, kind| bits | Self::bit(kind)))
            }
        }

        impl<'de> serde::Deserialize<'de> for $set {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                <$bits as serde::Deserialize>::deserialize(from).map(Self::from_bits)
            }
        }
    };
}

pub(super) use set_of;

set_of! {
    /// The kinds of flaws that a document has.
    Flaws(u8) of
    /// A kind of flaw: each is one for which a strict XML processor refuses the document.
    Flaw {
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

set_of! {
    /// The doubts that are open of one missing item.
    Doubts(u8) of
    /// Something that may explain a hole, and that later documents can settle.
    Doubt {
        /// A new item came that may have pushed it out: does this feed push items out of its middle?
        PushedOut,
        /// The items that stayed were in no clear order: is that how the feed is?
        Unsteady,
        /// It stood at the top: is that the new end or the old one?
        Top,
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
