//! Where an item's newest bytes stand.

use serde::{Deserialize, Serialize};
use tidegate_core::model::Tick;

/// Where the newest bytes of an item stand, and how many versions of it are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeadRecord {
    /// The tick of the current version.
    pub(crate) tick: Tick,
    /// The tick of the newest version that brought bytes.
    pub(crate) body: Tick,
    /// Newer bytes than those of any version stand beside them.
    pub(crate) latest: bool,
    /// Versions kept.
    pub(crate) kept: u32,
}

impl HeadRecord {
    /// The head of an item whose first version has the tick `tick`; none is kept yet.
    pub(crate) const fn new(tick: Tick) -> Self {
        Self { tick, body: tick, latest: false, kept: 0 }
    }
}
