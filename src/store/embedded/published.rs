//! A feed as it may be shown. Of each feed as little is kept in memory as may be, for there may be a million.

use crate::StoreError;
use crate::limits::VALUE_LIMIT;
use crate::record::{StateRecord, decode, encode_plain};
use std::sync::Arc;
use tidegate_core::model::{Revision, Time};

/// The gate of a feed's content.
pub(super) type FeedGate = Arc<tokio::sync::RwLock<()>>;

/// A feed as it may be shown.
#[derive(Clone)]
pub(super) struct Published {
    /// Its state as a record: the fields take 750 bytes, of which most are unused in most feeds, and this some 150.
    head: Arc<[u8]>,
    /// The number of the last write to its content.
    pub(super) write: u64,
    /// When something pending in it can be decided.
    pub(super) next_decision: Option<Time>,
    /// Held by whoever reads content, and shut while a change of it is applied. It is fair.
    pub(super) gate: FeedGate,
    pub(super) revision: Revision,
}

impl Published {
    /// A feed that nobody reads yet.
    pub(super) fn new(head: &StateRecord) -> Self {
        let (write, revision) = (head.write, head.state.revision);
        let next_decision = head.state.next_decision_at;
        // The store wrote it as a record, so that it can be.
        let head = encode_plain(head, VALUE_LIMIT).unwrap_or_default().into();
        Self { write, next_decision, head, gate: Arc::default(), revision }
    }

    /// Shows another state from now on, to the same readers.
    pub(super) fn show(&mut self, head: &StateRecord) {
        *self = Self { gate: Arc::clone(&self.gate), ..Self::new(head) };
    }

    /// The feed's state.
    pub(super) fn head(&self) -> Result<StateRecord, StoreError> {
        decode(&self.head).map_err(|error| {
            let source = std::io::Error::other(error);
            StoreError::Io { doing: "read the state of a feed in memory", source }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{FeedState, Format};

    fn head(revision: u64) -> StateRecord {
        let state = FeedState::untouched(Format::Atom10, Time::from_unix(7));
        let state = FeedState { revision: Revision(revision), ..state };
        StateRecord { state, next_event: 3, write: revision + 1, asked_at: None }
    }

    #[test]
    fn a_state_comes_back_as_it_was() {
        let published = Published::new(&head(4));
        assert_eq!(published.head().unwrap(), head(4));
        assert_eq!((published.write, published.revision), (5, Revision(4)));
    }

    #[test]
    fn a_state_takes_a_fraction_of_its_fields() {
        let bytes = Published::new(&head(4)).head.len();
        assert!(bytes * 4 < size_of::<StateRecord>(), "{bytes} bytes");
    }

    #[test]
    fn another_state_keeps_its_readers() {
        let mut published = Published::new(&head(4));
        let gate = Arc::clone(&published.gate);
        let mut next = head(5);
        next.state.next_decision_at = Some(Time::from_unix(9));
        published.show(&next);
        assert_eq!(published.next_decision, Some(Time::from_unix(9)));
        assert_eq!(published.revision, Revision(5));
        assert!(Arc::ptr_eq(&gate, &published.gate));
        assert_eq!(published.head().unwrap(), next);
    }
}
