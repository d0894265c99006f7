//! What is chosen at random: the id of a gateway whose operator chose none, and the mark of an opening.

use super::StoreError;
use tidegate_core::model::EndpointId;

/// The random bytes of an endpoint id that nobody chose: 16 characters of base 32.
const ENDPOINT_BYTES: usize = 10;

/// An endpoint id by chance: no two gateways have the same.
pub fn random() -> Result<EndpointId, StoreError> {
    let mut bytes = [0; ENDPOINT_BYTES];
    let doing = "choose an endpoint id";
    getrandom::fill(&mut bytes).map_err(|error| StoreError::failed(doing, error))?;
    let text = data_encoding::BASE32_NOPAD.encode(&bytes).to_ascii_lowercase();
    EndpointId::own(&format!("tg-{text}")).map_err(|error| StoreError::failed(doing, error))
}

/// The mark of an opening, by which what it made is told from what others made ([`Lineage`](tidegate_core::model::Lineage)):
/// a number that no other opening has, as good as surely; `None` where the system gives out no chance.
pub(super) fn random_mark() -> Option<u32> {
    getrandom::u32().ok()
}
