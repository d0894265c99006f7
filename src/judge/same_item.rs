//! Is it the same item? Which entry of a document is which known item: the ledger of identities.
//!
//! Matching goes in two rounds. The first pairs what bears the same native id (`same_id`). The second looks at
//! what stayed unmatched on both sides and pairs what has the most in common, if that is enough (`pairs`);
//! such a pair keeps its sync id and goes by the new native id from then on (`rekeyed`). Each rule of the second
//! round is a file of its own. Pure: no clock, no I/O.

mod address;
mod date;
mod features;
mod index;
mod longest_run;
mod native;
mod pairs;
mod place;
mod row;
mod same_id;
mod sides;
mod signs;
mod text;
mod title;
mod unlike;
mod wording;

pub(crate) use index::has_same_keys;
pub use index::{entry_keys, item_keys, name_key};
pub(crate) use longest_run::longest_run;
pub use native::{is_made_up, native, natives};
pub use signs::{AddressSign, Basis, Signs};
pub(crate) use unlike::unlike;
pub(crate) use wording::{continues, is_reworded, words};

use crate::rules::Rule;
use features::TellingText;
use foldhash::HashMap;
use tidegate_core::model::{FeedDocument, FeedOptions, Snapshot};

/// The kinds of sign by which an entry may be an item, in the order in which they are weighed.
pub(crate) const RULES: [Rule; 7] =
    [title::RULE, wording::RULE, text::RULE, address::RULE, date::RULE, row::RULE, place::RULE];

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
    /// The telling texts of the entries that no item's id names, where an item is left that they may be.
    pub(crate) texts: HashMap<usize, Vec<TellingText>>,
    /// Entries that are known items, in document order.
    pub pairs: Vec<MatchedEntry>,
    /// Entries that are none, in document order.
    pub fresh: Vec<usize>,
    /// Items of the last document that this one does not have, in the order of the last document;
    /// then items that were missing before already.
    pub missing: Vec<usize>,
}

/// Matches a document's entries with the ledger, but for the rules and the parts of entries that the operator
/// passes over.
pub fn matching(
    snapshot: &Snapshot,
    document: &FeedDocument<'_>,
    options: &FeedOptions,
) -> Matching {
    let names = natives(document);
    let mut sides = sides::Sides::new(snapshot, document, &names, &options.ignore);
    same_id::pair_same_ids(&mut sides);
    let texts = pairs::pair_by_signs(&mut sides, &options.without);
    let matching = sides.into_matching();
    Matching { names, texts, ..matching }
}
