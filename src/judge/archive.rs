//! Which items belong to which archive document, and which archives are kept. Pure.
//!
//! A feed's change log is cut into segments. Each lists the items that changed since the one before
//! it, once and in their last state, and is sealed in the very commit that makes it necessary: the
//! one that takes an unsealed entry out of the reader view, or that makes so many versions that
//! they may not stay unsealed (Feed History draft-05 section 4; READINGS 3, row 10). What the
//! reader view does not show any more is so in an archive that can be reached.

mod id;
mod retain;
mod seal;

pub use retain::{SealedArchives, is_over, is_worth_it, retain};
pub use seal::{Unsealed, is_due, seal};

use std::time::Duration;

/// How archives are made and kept (`publish.archive_entries`, `archives`, `archive_age` and
/// `archive_bytes`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Policy {
    /// So many unsealed versions are sealed; also the most items that one archive lists.
    pub entries: u32,
    /// The most archives kept of a feed.
    pub kept: u64,
    /// How long an archive is kept; `None`: for ever.
    pub age: Option<Duration>,
    /// The most bytes that a feed's archives may take, as the store keeps them; `None`: no limit.
    pub bytes: Option<u64>,
}

impl Policy {
    /// The most archives kept of a feed where nobody says otherwise.
    pub const KEPT: u64 = 10_000;
}

impl Default for Policy {
    fn default() -> Self {
        Self { entries: 20, kept: Self::KEPT, age: None, bytes: None }
    }
}
