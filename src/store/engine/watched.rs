//! An engine of which a test sees the calls, and lets them fail.

use super::{
    Class, Engine, KeyOrder, KeyRange, Portion, RangeEntries, RecordKey, ValueSize, Writes,
    beginning_with,
};
use crate::StoreError;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A call that is seen.
pub(crate) enum EngineCall {
    /// A read, of these classes.
    Read(Vec<Class>),
    /// A write.
    Apply,
    /// The durability barrier.
    Pass,
    /// An epoch is closed, if there is one.
    CloseEpochs(bool),
}

/// Sees calls before they are made; an error is the answer.
pub(crate) type WatchCalls = dyn Fn(EngineCall) -> Result<(), StoreError> + Send + Sync;

pub(crate) struct WatchedEngine {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) watch: Box<WatchCalls>,
    /// Of one that says that it is reached by the network: the most entries that one answer to a question for ranges has.
    pub(crate) far: Option<Arc<AtomicUsize>>,
}

impl WatchedEngine {
    fn read(&self, classes: Vec<Class>) -> Result<(), StoreError> {
        (self.watch)(EngineCall::Read(classes))
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
        self.far.is_some()
    }

    fn get(&self, class: Class, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.read(vec![class])?;
        self.engine.get(class, key)
    }

    fn get_many(
        &self,
        wanted: BTreeSet<RecordKey>,
    ) -> Result<Vec<(RecordKey, Option<Bytes>)>, StoreError> {
        if !self.is_far() {
            return Ok(Vec::new());
        }
        self.read(wanted.iter().map(|(class, _)| *class).collect())?;
        let found = |key: RecordKey| Ok((key.clone(), self.engine.get(key.0, &key.1)?));
        wanted.into_iter().map(found).collect()
    }

    fn get_ranges(
        &self,
        wanted: &[RecordKey],
    ) -> Result<Vec<(RecordKey, RangeEntries)>, StoreError> {
        let Some(most) = &self.far else { return Ok(Vec::new()) };
        self.read(wanted.iter().map(|(class, _)| *class).collect())?;
        let (mut left, mut whole) = (most.load(Ordering::Relaxed), Vec::new());
        for (class, prefix) in wanted {
            let range = beginning_with(prefix);
            let found = self.engine.portion(*class, &range, KeyOrder::Ascending, usize::MAX)?;
            if found.entries.len() <= left {
                left -= found.entries.len();
                whole.push(((*class, prefix.clone()), found.entries));
            } else {
                left = 0;
            }
        }
        Ok(whole)
    }

    fn contains(&self, class: Class, key: &[u8]) -> Result<bool, StoreError> {
        self.read(vec![class])?;
        self.engine.contains(class, key)
    }

    fn portion(
        &self,
        class: Class,
        range: &KeyRange,
        order: KeyOrder,
        limit: usize,
    ) -> Result<Portion, StoreError> {
        self.read(vec![class])?;
        self.engine.portion(class, range, order, limit)
    }

    fn sizes(
        &self,
        class: Class,
        range: &KeyRange,
        limit: usize,
    ) -> Result<Vec<ValueSize>, StoreError> {
        self.read(vec![class])?;
        self.engine.sizes(class, range, limit)
    }

    fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        (self.watch)(EngineCall::Apply)?;
        self.engine.apply(writes)
    }

    fn clear(&self, class: Class, prefix: &[u8], limit: usize) -> Result<bool, StoreError> {
        self.engine.clear(class, prefix, limit)
    }

    fn pass(&self) -> Result<(), StoreError> {
        (self.watch)(EngineCall::Pass)?;
        self.engine.pass()
    }

    fn close_epochs(&self, has_epoch: bool) -> Result<(), StoreError> {
        (self.watch)(EngineCall::CloseEpochs(has_epoch))?;
        self.engine.close_epochs(has_epoch)
    }

    fn wake(&self) {
        self.engine.wake();
    }
}
