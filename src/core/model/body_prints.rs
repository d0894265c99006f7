//! By what an unchanged document is known.

/// Fingerprints of a body, for the unchanged gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BodyPrints {
    /// Of the body as it came over the wire, still compressed (XXH3, 128 bits).
    pub wire: u128,
    /// Of the decompressed body (XXH3, 128 bits).
    pub body: u128,
}

impl BodyPrints {
    /// The part of the body's fingerprint that is enough to tell two documents of a feed apart; never 0.
    #[allow(clippy::cast_possible_truncation)]
    pub fn short(self) -> u64 {
        (self.body as u64).max(1)
    }
}
