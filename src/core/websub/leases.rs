//! How long subscriptions of the hub last (WebSub section 5.1).

use std::time::Duration;

/// How long subscriptions last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leases {
    /// Where the subscriber does not say.
    pub usual: Duration,
    /// At least.
    pub least: Duration,
    /// At most.
    pub most: Duration,
}

impl Leases {
    /// The seconds that a subscriber gets who asks for `asked`.
    pub fn grant(&self, asked: Option<u64>) -> u64 {
        let asked = asked.unwrap_or(self.usual.as_secs());
        asked.min(self.most.as_secs()).max(self.least.as_secs())
    }
}
