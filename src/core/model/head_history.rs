//! What subscribers were told of a feed's head.

use super::{DayVersions, Time};
use serde::{Deserialize, Serialize};

/// How a feed's head changes: what it says to a reader is its title, subtitle, link, language, image
/// and author.
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
