//! Random identifiers: the id of a gateway that was configured without one, and the mark of an opening.

use super::StoreError;
use tidegate_core::model::EndpointId;

/// The random bytes of an endpoint id: 16 characters of base 32.
const ENDPOINT_BYTES: usize = 10;

/// A random endpoint id.
pub fn random() -> Result<EndpointId, StoreError> {
    let mut bytes = [0; ENDPOINT_BYTES];
    let doing = "choose an endpoint id";
    getrandom::fill(&mut bytes).map_err(|error| StoreError::failed(doing, error))?;
    let text = data_encoding::BASE32_NOPAD.encode(&bytes).to_ascii_lowercase();
    EndpointId::own(&format!("tg-{text}")).map_err(|error| StoreError::failed(doing, error))
}

/// A random mark of an opening, which identifies its changes ([`Lineage`](tidegate_core::model::Lineage)); `None`
/// where the system has no random numbers.
pub(super) fn random_mark() -> Option<u32> {
    getrandom::u32().ok()
}
