//! What a store says of itself.

use super::{Record, RecordError, fields_and, newest};
use crate::model::{EndpointId, SupIdBasis};
use serde::{Deserialize, Serialize};

/// Whose store it is, the fence of the last claim that was given out, and what its SUP ids are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct IdentityRecord {
    endpoint: String,
    /// The fence of the last claim.
    pub(in crate::store) fence: u64,
    sup_ids: BasisRecord,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum BasisRecord {
    Endpoint,
    Name,
}

impl Record for IdentityRecord {
    const VERSION: u8 = 2;

    fn read(version: u8, payload: &[u8]) -> Result<Self, RecordError> {
        match version {
            // The first knew SUP ids by the endpoint alone.
            1 => fields_and(payload, &BasisRecord::Endpoint),
            _ => newest(version, payload),
        }
    }
}

impl IdentityRecord {
    /// The store of `endpoint`.
    pub(in crate::store) fn new(endpoint: &EndpointId, fence: u64, sup_ids: SupIdBasis) -> Self {
        let sup_ids = match sup_ids {
            SupIdBasis::Endpoint => BasisRecord::Endpoint,
            SupIdBasis::Name => BasisRecord::Name,
        };
        Self { endpoint: endpoint.as_str().to_owned(), fence, sup_ids }
    }

    /// The endpoint.
    pub(in crate::store) fn endpoint(&self) -> Result<EndpointId, RecordError> {
        Ok(EndpointId::own(&self.endpoint)?)
    }

    /// What SUP ids are made of.
    pub(in crate::store) const fn sup_ids(&self) -> SupIdBasis {
        match self.sup_ids {
            BasisRecord::Endpoint => SupIdBasis::Endpoint,
            BasisRecord::Name => SupIdBasis::Name,
        }
    }
}
