//! An engine of which a test sees the calls, and lets them fail.

use super::{Class, Engine, KeyOrder, KeyRange, Portion, RecordKey, Writes};
use crate::StoreError;
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;

#[derive(Clone, Copy)]
pub(crate) enum EngineCall<'a> {
    /// A read of a class, at this key or from there on.
    Read(Class, &'a [u8]),
    Apply(&'a Writes),
    Pass,
}

/// Sees calls before they are made; an error is the answer.
pub(crate) type WatchCalls = dyn Fn(EngineCall<'_>) -> Result<(), StoreError> + Send + Sync;

pub(crate) struct WatchedEngine {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) watch: Box<WatchCalls>,
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
        self.engine.is_compact()
    }

    fn get(&self, class: Class, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.read(class, key)?;
        self.engine.get(class, key)
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
        ranges: &[(Class, KeyRange)],
        limit: usize,
    ) -> Result<Vec<(RecordKey, u64)>, StoreError> {
        ranges.iter().try_for_each(|(class, range)| self.read_range(*class, range))?;
        self.engine.sizes(ranges, limit)
    }

    fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        (self.watch)(EngineCall::Apply(&writes))?;
        self.engine.apply(writes)
    }

    fn pass(&self) -> Result<(), StoreError> {
        (self.watch)(EngineCall::Pass)?;
        self.engine.pass()
    }

    fn wake(&self) {
        self.engine.wake();
    }
}
