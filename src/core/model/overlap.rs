//! How the documents of a feed overlap from poll to poll.

use super::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How the documents of a feed overlap: as long as two in a row have an item in common, nothing that
/// came between them was missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Overlap {
    /// The usual time in which half of the items of its document are replaced; `None` where that was not
    /// seen yet.
    pub half_life: Option<Duration>,
    /// How often two whole documents in a row had no item in common: items between them may have been
    /// missed.
    pub missed: u32,
    /// When that was found last.
    pub last_missed: Option<Time>,
}
