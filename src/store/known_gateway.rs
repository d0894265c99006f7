//! The gateways over one store, as one of them sees them.

use std::time::Duration;

/// A gateway over a store that several have, as it was seen last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownGateway {
    /// As it calls itself.
    pub name: String,
    /// Whether it is the one that looks.
    pub is_this: bool,
    /// Whether it writes.
    pub writes: bool,
    /// Whether it takes part in polling.
    pub polls: bool,
    /// Whether it reaches publishers.
    pub reaches: bool,
    /// The shards of feeds that it has.
    pub shards: usize,
    /// How long ago it said last that it lives, by the database's clock.
    pub beat_age: Duration,
    /// The keys and tables of its configuration that are others than here.
    pub differing: Vec<String>,
}

impl KnownGateway {
    /// What differs from the settings of the one that looks; `None`: nothing.
    pub fn difference(&self) -> Option<String> {
        let keys = self.differing.join(", ");
        (!keys.is_empty()).then(|| format!("the gateway {} has another {keys}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_said() {
        let differing = vec!["server.public_url".to_owned(), "feed".to_owned()];
        let other = KnownGateway { name: "process 7".to_owned(), differing, ..Default::default() };
        let said = "the gateway process 7 has another server.public_url, feed";
        assert_eq!(other.difference().as_deref(), Some(said));
        assert_eq!(KnownGateway::default().difference(), None);
    }
}
