//! What a store says of itself.

use super::Record;
use crate::model::{EndpointId, Lineage, SupIdBasis, Time};
use crate::store::MovedAway;
use serde::{Deserialize, Serialize};

/// Whose store it is, the fence of the last claim that was given out, what its SUP ids are made of,
/// and its life so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct IdentityRecord {
    pub(in crate::store) endpoint: EndpointId,
    /// The fence of the last claim.
    pub(in crate::store) fence: u64,
    /// What SUP ids are made of.
    pub(in crate::store) sup_ids: SupIdBasis,
    /// Which opening of it closed which epochs.
    pub(in crate::store) lineage: Lineage,
    /// Where the running time stood when it was last noted.
    pub(in crate::store) running: Option<Time>,
    /// Where its state went; it is not opened for use any more.
    pub(in crate::store) moved: Option<MovedAway>,
}

impl Record for IdentityRecord {}
