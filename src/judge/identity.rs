//! Which entry of a document is which known item: the ledger of identities.
//!
//! Matching goes in two rounds. The first pairs what bears the same native id. The second looks at
//! what stayed unmatched on both sides and pairs what has the most in common, if that is enough;
//! such a pair keeps its sync id and goes by the new native id from then on (`rekeyed`). Pure: no
//! clock, no I/O.

mod evidence;
mod features;
mod group;
mod index;
mod native;
mod pairs;
mod run;
mod signs;
mod unlike;
mod wording;

pub use features::telling_texts;
pub use index::{entry_keys, item_keys, name_key};
pub use native::{Keys, is_made_up, native, natives};
pub use pairs::rule_names;
pub(crate) use run::longest_run;
pub use signs::{AddressSign, Basis, Signs};
pub use unlike::unlike;
pub use wording::{continues, is_reworded, wording};

use tidegate_core::model::{FeedDocument, Snapshot, Without};

/// An entry of the document and the known item that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchedEntry {
    /// Index into the document's entries.
    pub entry: usize,
    /// Index into the snapshot's ledger.
    pub known: usize,
    /// Why they are the same.
    pub basis: Basis,
}

/// What a document and the ledger have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matching {
    /// The [`natives`] of the entries.
    pub names: Vec<String>,
    /// Entries that are known items, in document order.
    pub pairs: Vec<MatchedEntry>,
    /// Entries that are none, in document order.
    pub fresh: Vec<usize>,
    /// Items of the last document that this one does not have, in the order of the last document;
    /// then items that were missing before already.
    pub missing: Vec<usize>,
}

/// Matches a document's entries with the ledger. The rules in `without` are passed over.
pub fn matching(snapshot: &Snapshot, document: &FeedDocument<'_>, without: &Without) -> Matching {
    let names = natives(document);
    let mut sides = evidence::Sides::new(snapshot, document, &names);
    group::same_id(&mut sides);
    pairs::second_round(&mut sides, without);
    let matching = sides.into_matching();
    Matching { names, ..matching }
}
