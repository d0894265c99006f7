//! A large document while it is taken in.

use super::{FeedName, Time};
use serde::{Deserialize, Serialize};

/// That a large document of a feed is, or was, being taken in: what is noted before, so that a start
/// after the gateway was killed can tell what it was doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub feed: FeedName,
    /// About how many entries the document has.
    pub entries: u32,
    /// When it was begun.
    pub begun: Time,
    /// How often the gateway ended in it.
    pub kills: u32,
    /// Whether it is going on, as far as anybody wrote down.
    pub is_open: bool,
}

impl Attempt {
    /// Whether there is nothing to be noted of it any more.
    pub const fn is_over(&self) -> bool {
        !self.is_open && self.kills == 0
    }

    /// This one, over.
    pub fn over(self) -> Self {
        Self { kills: 0, is_open: false, ..self }
    }
}
