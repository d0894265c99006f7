//! What a store says of itself.

use serde::{Deserialize, Serialize};
use tidegate_core::model::{EndpointId, Lineage, SupIdBasis, Time};

/// Whose store it is, the fence of the last claim that was given out, what its SUP ids are made of,
/// and its life so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IdentityRecord {
    pub(crate) endpoint: EndpointId,
    /// The fence of the last claim.
    pub(crate) fence: u64,
    /// What SUP ids are made of.
    pub(crate) sup_ids: SupIdBasis,
    /// Which opening of it closed which epochs.
    pub(crate) lineage: Lineage,
    /// Where the running time stood when it was last noted.
    pub(crate) running: Option<Time>,
}
