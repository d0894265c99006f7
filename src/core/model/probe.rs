//! What a missing item's own address said when it was asked.

use super::Time;
use serde::{Deserialize, Serialize};

/// What a missing item's own address said. It is evidence beside that of the documents, kept as
/// long as the item is missing, so that a restart does not ask again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Probe {
    /// How often it was asked, answered or not.
    pub asked: u32,
    /// When it was asked last.
    pub last: Time,
    /// What it said, where any answer said something.
    pub heard: Option<ProbeAnswer>,
    /// Why the last answer said nothing, where it did not; at most [`Probe::SILENCE_LIMIT`] bytes.
    pub silence: Option<String>,
}

/// An answer that says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProbeAnswer {
    /// That the item is gone; otherwise that it is there.
    pub gone: bool,
    /// The status of the newest such answer.
    pub status: u16,
    /// When it was said first; nothing to the contrary was said since.
    pub first: Time,
    /// When it was said last.
    pub last: Time,
}

impl Probe {
    /// The longest reason for an answer that says nothing, in bytes.
    pub const SILENCE_LIMIT: usize = 200;
}
