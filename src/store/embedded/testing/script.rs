//! What is seen of a store's database, and what goes wrong there.

use super::ScriptedStore;
use crate::StoreError;
use crate::engine::{Class, EngineCall};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFault {
    /// All reads of the database.
    Reads,
    /// The next read of entries of this class.
    ReadOf(&'static str),
    /// All writes of entries of this class; an empty name: of any.
    Writes(&'static str),
    /// The next write is lost, and nobody can tell.
    Lost,
    /// The next one is stored, and nobody can tell.
    Unknown,
}

pub(super) type WriteElsewhere = Box<dyn FnOnce(&ScriptedStore) + Send>;

type ReadHook = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
pub(super) struct StoreScript {
    pub(super) reads: Mutex<Vec<(Class, Vec<u8>)>>,
    pub(super) writes: Mutex<Vec<Class>>,
    /// Writes outside the content of feeds that were begun.
    pub(super) begun: AtomicUsize,
    pub(super) faults: Mutex<Vec<StoreFault>>,
    /// What writes of the content of feeds wait for, and others.
    pub(super) gates: [Mutex<Option<Arc<Semaphore>>>; 2],
    pub(super) free: AtomicU64,
    pub(super) looks: AtomicUsize,
    pub(super) is_unseen: AtomicBool,
    pub(super) at_read: Mutex<Option<(&'static str, ReadHook)>>,
    pub(super) at_look: Mutex<Option<WriteElsewhere>>,
}

fn failed(doing: &'static str) -> StoreError {
    StoreError::Io { doing, source: std::io::Error::other("no disk") }
}

impl StoreScript {
    fn takes(&self, fault: impl Fn(&StoreFault) -> bool) -> bool {
        let mut faults = self.faults.lock().unwrap();
        let place = faults.iter().position(fault);
        place.map(|place| faults.remove(place)).is_some()
    }

    pub(super) fn see(&self, call: EngineCall<'_>) -> Result<(), StoreError> {
        let has = |fault: StoreFault| self.faults.lock().unwrap().contains(&fault);
        match call {
            EngineCall::Read(class, key) => {
                let at_read = self.at_read.lock().unwrap().clone();
                if let Some((_, hook)) = at_read.filter(|(name, _)| *name == class.name()) {
                    hook();
                }
                let fails = self
                    .takes(|it| matches!(it, StoreFault::ReadOf(name) if *name == class.name()));
                if fails || has(StoreFault::Reads) {
                    return Err(failed("read"));
                }
                self.reads.lock().unwrap().push((class, key.to_vec()));
                Ok(())
            }
            EngineCall::Apply(writes) => {
                let mut classes: Vec<Class> = writes.keys().map(|(class, _)| *class).collect();
                classes.dedup();
                let fails = has(StoreFault::Writes(""))
                    || classes.iter().any(|class| has(StoreFault::Writes(class.name())));
                if fails || self.takes(|it| *it == StoreFault::Lost) {
                    return Err(failed("write"));
                }
                self.writes.lock().unwrap().extend(classes);
                Ok(())
            }
            EngineCall::Pass if self.takes(|it| *it == StoreFault::Unknown) => Err(failed("write")),
            EngineCall::Pass => Ok(()),
        }
    }
}
