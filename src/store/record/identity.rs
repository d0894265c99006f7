//! What a store says of itself.

use super::Record;
use crate::model::{EndpointId, SupIdBasis};
use serde::{Deserialize, Serialize};

/// Whose store it is, the fence of the last claim that was given out, and what its SUP ids are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct IdentityRecord {
    pub(in crate::store) endpoint: EndpointId,
    /// The fence of the last claim.
    pub(in crate::store) fence: u64,
    /// What SUP ids are made of.
    pub(in crate::store) sup_ids: SupIdBasis,
}

impl Record for IdentityRecord {}
