//! Where an item's newest bytes stand.

use super::Record;
use crate::model::Tick;
use serde::{Deserialize, Serialize};

/// Where the newest bytes of an item stand, and how many versions of it are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct HeadRecord {
    /// The tick of the current version.
    pub(in crate::store) tick: Tick,
    /// The tick of the newest version that brought bytes.
    pub(in crate::store) body: Tick,
    /// Newer bytes than those of any version stand beside them.
    pub(in crate::store) latest: bool,
    /// Versions kept.
    pub(in crate::store) kept: u32,
}

impl Record for HeadRecord {}

impl HeadRecord {
    /// The head of an item whose first version has the tick `tick`; none is kept yet.
    pub(in crate::store) const fn new(tick: Tick) -> Self {
        Self { tick, body: tick, latest: false, kept: 0 }
    }
}
