//! What a store has of the configuration that was applied to it last: of several gateways over a store, not each may
//! have read the newest file.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegate_core::model::{FeedName, Time};

/// The feeds of a configuration, and who may read them, as a gateway accepted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedFeeds {
    /// A hash of all that is said of them.
    pub digest: u64,
    /// When, by that gateway's wall clock.
    pub at: Time,
}

impl AcceptedFeeds {
    /// Whether these are older than others: they differ, and were not accepted later.
    pub fn are_older_than(&self, others: &Self) -> bool {
        self.digest != others.digest && self.at <= others.at
    }
}

/// The address of each site of a configuration (`[[origin]]`) by its name: where the feeds of it are that requests made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedOrigins(pub BTreeMap<FeedName, String>);

/// What of a configuration was applied last, as far as that was noted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppliedConfig {
    /// The feeds that the store was given.
    pub feeds: Option<AcceptedFeeds>,
    /// The sites as the feeds of them were brought in line with it.
    pub origins: AppliedOrigins,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_and_was_not_accepted_later_is_older() {
        let feeds = |digest, seconds| AcceptedFeeds { digest, at: Time::from_unix(seconds) };
        let applied = feeds(1, 1_795_191_605);
        assert!(feeds(2, 1_795_191_604).are_older_than(&applied));
        // Nobody knows.
        assert!(feeds(2, 1_795_191_605).are_older_than(&applied));
        assert!(!feeds(2, 1_795_191_606).are_older_than(&applied));
        assert!(!feeds(1, 1_795_191_604).are_older_than(&applied));
    }
}
