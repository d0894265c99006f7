//! What a store says of itself.

use super::{Record, RecordError};
use crate::model::EndpointId;
use serde::{Deserialize, Serialize};

/// Whose store it is, and the fence of the last claim that was given out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct IdentityRecord {
    endpoint: String,
    /// The fence of the last claim.
    pub(in crate::store) fence: u64,
}

impl Record for IdentityRecord {}

impl IdentityRecord {
    /// The store of `endpoint`.
    pub(in crate::store) fn new(endpoint: &EndpointId, fence: u64) -> Self {
        Self { endpoint: endpoint.as_str().to_owned(), fence }
    }

    /// The endpoint.
    pub(in crate::store) fn endpoint(&self) -> Result<EndpointId, RecordError> {
        Ok(EndpointId::own(&self.endpoint)?)
    }
}
