//! How an outline of a subscription list stands among the entries of feeds: an Atom entry with an
//! element that bears what Atom has no words for.

use crate::short_hash::{ID_BYTES, base32};
use sha2::{Digest, Sha256};

/// The attribute of an outline that says the SUP id of its feed, in the namespace
/// [`OUTLINE`](crate::xml::ns::OUTLINE).
pub const OUTLINE_SUP: &str = "sup";

/// What an outline is said to stand in that stands in no other. No outline bears it as its id.
pub const OUTLINE_ROOT: &str = "body";

/// How deep outlines stand in each other, in lists that are read and in those that are written.
pub const OUTLINE_DEPTH: usize = 256;

/// The way to an outline: the texts of those around it, outermost first, and its own. Each step costs
/// what its own text is long.
#[derive(Debug, Clone, Default)]
pub struct OutlinePath(Sha256);

impl OutlinePath {
    /// The way to one of these texts in this outline.
    #[must_use]
    pub fn with(&self, text: &str) -> Self {
        let mut hash = self.0.clone();
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
        Self(hash)
    }

    /// The id of the outline, where it has no address. It gives none of the texts away. `ordinal` tells
    /// apart those of the same texts.
    pub fn id(&self, ordinal: u64) -> String {
        let mut hash = self.0.clone();
        hash.update(ordinal.to_be_bytes());
        format!("x-outline:{}", base32(hash, ID_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_their_place() {
        let outline_id = |path: &[&str], ordinal| {
            path.iter().fold(OutlinePath::default(), |path, text| path.with(text)).id(ordinal)
        };
        let ids = [
            outline_id(&["News"], 0),
            outline_id(&["News"], 1),
            outline_id(&["", "News"], 0),
            outline_id(&["Ne", "ws"], 0),
            outline_id(&[], 0),
        ];
        for (at, id) in ids.iter().enumerate() {
            assert!(id.starts_with("x-outline:") && !id.contains("News"), "{id}");
            assert!(!ids.iter().skip(at + 1).any(|other| other == id), "{id}");
        }
        assert_eq!(outline_id(&["News"], 0), ids[0]);
    }
}
