//! Specimens of what stands beside ledger entries.

use super::files::{at, id, markup};
use super::*;

pub(super) fn conflicts() -> Vec<Version<Markup>> {
    let by = EndpointId::new("JEO2000").unwrap();
    let update = Update { sequence: Count::ONE, stamp: Stamp::Both { when: at(1), by } };
    vec![Version {
        id: id("gate.example.abc"),
        updates: Count::ONE,
        deleted: true,
        noconflicts: Some(false),
        history: History::new(update),
        data: markup("<entry/>"),
    }]
}
