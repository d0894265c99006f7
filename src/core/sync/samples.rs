//! Short ways to write updates and versions in the tests of this room.

use super::Canonical;
use crate::model::{Count, EndpointId, History, Stamp, SyncId, Time, Update, Version};
use proptest::prelude::*;

/// The id of the items in the specification's examples.
pub const ITEM: &str = "item_1_myapp_2005-05-21T11:43:33Z";

pub fn count(number: u32) -> Count {
    Count::new(number).unwrap()
}

pub fn both(sequence: u32, seconds: i64, by: &str) -> Update {
    let by = EndpointId::new(by).unwrap();
    Update { sequence: count(sequence), stamp: Stamp::Both { when: Time::from_unix(seconds), by } }
}

pub fn by(sequence: u32, by: &str) -> Update {
    Update { sequence: count(sequence), stamp: Stamp::By(EndpointId::new(by).unwrap()) }
}

pub fn when(sequence: u32, seconds: i64) -> Update {
    Update { sequence: count(sequence), stamp: Stamp::When(Time::from_unix(seconds)) }
}

/// Any update of these numbers, by one of three endpoints or none, at one of a few times or none.
pub fn any_update(sequences: impl Strategy<Value = u32>) -> impl Strategy<Value = Update> {
    (sequences, 0..3_usize, 0..3_usize, 0..9_i64).prop_map(|(sequence, kind, name, seconds)| {
        let name = ["A", "B", "C"][name];
        match kind {
            0 => both(sequence, seconds, name),
            1 => by(sequence, name),
            _ => when(sequence, seconds),
        }
    })
}

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
