//! Short ways to write updates and versions in the tests of this room.

use super::Canonical;
use crate::model::{Count, EndpointId, History, Stamp, SyncId, Time, Update, Version};

/// The id of the items in the specification's examples.
pub const ITEM: &str = "item_1_myapp_2005-05-21T11:43:33Z";

/// A checked number.
pub fn count(number: u32) -> Count {
    Count::new(number).unwrap()
}

/// An update with both `when` (seconds) and `by`.
pub fn both(sequence: u32, seconds: i64, by: &str) -> Update {
    let by = EndpointId::new(by).unwrap();
    Update { sequence: count(sequence), stamp: Stamp::Both { when: Time::from_unix(seconds), by } }
}

/// An update with `by` alone.
pub fn by(sequence: u32, by: &str) -> Update {
    Update { sequence: count(sequence), stamp: Stamp::By(EndpointId::new(by).unwrap()) }
}

/// An update with `when` alone.
pub fn when(sequence: u32, seconds: i64) -> Update {
    Update { sequence: count(sequence), stamp: Stamp::When(Time::from_unix(seconds)) }
}

/// A live version.
pub fn version(
    updates: u32,
    data: &str,
    history: impl IntoIterator<Item = Update>,
) -> Version<String> {
    Version {
        id: SyncId::new(ITEM).unwrap(),
        updates: count(updates),
        deleted: false,
        noconflicts: None,
        history: History::from_newest_first(history).unwrap(),
        data: data.to_owned(),
    }
}

impl Canonical for &str {
    fn canonical(&self) -> &[u8] {
        self.as_bytes()
    }
}
