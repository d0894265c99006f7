//! What a store says of itself.

use super::LogAges;
use serde::{Deserialize, Serialize};
use tidegate_core::model::{EndpointId, Lineage, SupIdBasis, Time};

/// Whose store it is, the number of its last opening, what its SUP ids are made of,
/// and its life so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IdentityRecord {
    pub(crate) endpoint: EndpointId,
    /// The number of its last opening.
    pub(crate) fence: u64,
    /// What SUP ids are made of.
    pub(crate) sup_ids: SupIdBasis,
    /// Which opening of it closed which epochs.
    pub(crate) lineage: Lineage,
    /// Where the running time stood when it was last noted.
    pub(crate) running: Option<Time>,
    /// How old the change log is.
    pub(crate) log_ages: LogAges,
}
