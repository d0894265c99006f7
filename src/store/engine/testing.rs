//! An engine of which a test sees the calls, and lets them fail.

use super::{Class, Engine, KeyOrder, KeyRange, Portion, RecordKey, Writes};
use crate::StoreError;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

/// A call that is seen.
#[derive(Clone, Copy)]
pub(crate) enum EngineCall<'a> {
    /// A read of a class, at this key or from there on.
    Read(Class, &'a [u8]),
    /// A write.
    Apply(&'a Writes),
    /// The durability barrier.
    Pass,
}

/// Sees calls before they are made; an error is the answer.
pub(crate) type WatchCalls = dyn Fn(EngineCall<'_>) -> Result<(), StoreError> + Send + Sync;

pub(crate) struct WatchedEngine {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) watch: Box<WatchCalls>,
    /// Whether it says that it is reached by the network.
    pub(crate) is_far: bool,
}

impl WatchedEngine {
    fn read(&self, class: Class, key: &[u8]) -> Result<(), StoreError> {
        (self.watch)(EngineCall::Read(class, key))
    }

    fn read_range(&self, class: Class, range: &KeyRange) -> Result<(), StoreError> {
        let (Bound::Included(begin) | Bound::Excluded(begin)) = &range.0 else {
            return self.read(class, &[]);
        };
        self.read(class, begin)
    }
}

impl Engine for WatchedEngine {
    fn path(&self) -> &str {
        self.engine.path()
    }

    fn is_compact(&self) -> bool {
        self.is_far() || self.engine.is_compact()
    }

    fn is_far(&self) -> bool {
        self.is_far
    }

    fn get(&self, class: Class, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.read(class, key)?;
        self.engine.get(class, key)
    }

    fn get_many(
        &self,
        wanted: BTreeSet<RecordKey>,
    ) -> Result<Vec<(RecordKey, Option<Bytes>)>, StoreError> {
        if !self.is_far() {
            return Ok(Vec::new());
        }
        wanted.iter().try_for_each(|(class, key)| self.read(*class, key))?;
        let found = |key: RecordKey| Ok((key.clone(), self.engine.get(key.0, &key.1)?));
        wanted.into_iter().map(found).collect()
    }

    fn portion(
        &self,
        class: Class,
        range: &KeyRange,
        order: KeyOrder,
        limit: usize,
    ) -> Result<Portion, StoreError> {
        self.read_range(class, range)?;
        self.engine.portion(class, range, order, limit)
    }

    fn sizes(
        &self,
        class: Class,
        range: &KeyRange,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, u64)>, StoreError> {
        self.read_range(class, range)?;
        self.engine.sizes(class, range, limit)
    }

    fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        (self.watch)(EngineCall::Apply(&writes))?;
        self.engine.apply(writes)
    }

    fn clear(&self, class: Class, prefix: &[u8], limit: usize) -> Result<bool, StoreError> {
        self.engine.clear(class, prefix, limit)
    }

    fn pass(&self) -> Result<(), StoreError> {
        (self.watch)(EngineCall::Pass)?;
        self.engine.pass()
    }

    fn wake(&self) {
        self.engine.wake();
    }
}
