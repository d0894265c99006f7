//! An ordered map in memory. Nothing outlives the process, so "durable" means "applied".

use super::{Class, Engine, KeyOrder, KeyRange, Portion, RecordKey, Writes};
use crate::StoreError;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

type Content = BTreeMap<Class, BTreeMap<Vec<u8>, Bytes>>;

/// A database in memory.
#[derive(Default)]
pub(crate) struct MemoryEngine(RwLock<Content>);

impl MemoryEngine {
    fn read(&self) -> RwLockReadGuard<'_, Content> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Content> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for MemoryEngine {
    fn path(&self) -> &'static str {
        "in memory"
    }

    fn is_compact(&self) -> bool {
        false
    }

    fn get(&self, class: Class, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.read().get(&class).and_then(|entries| entries.get(key).cloned()))
    }

    fn portion(
        &self,
        class: Class,
        range: &KeyRange,
        order: KeyOrder,
        limit: usize,
    ) -> Result<Portion, StoreError> {
        let content = self.read();
        let nothing = BTreeMap::new();
        let entries = content.get(&class).unwrap_or(&nothing);
        let found = entries.range::<Vec<u8>, _>((range.0.as_ref(), range.1.as_ref()));
        let entry = |(key, value): (&Vec<u8>, &Bytes)| (key.clone(), value.clone());
        let entries: Vec<_> = match order {
            KeyOrder::Ascending => found.take(limit).map(entry).collect(),
            KeyOrder::Descending => found.rev().take(limit).map(entry).collect(),
        };
        let has_more = entries.len() == limit;
        Ok(Portion { entries, has_more })
    }

    fn sizes(
        &self,
        ranges: &[(Class, KeyRange)],
        limit: usize,
    ) -> Result<Vec<(RecordKey, u64)>, StoreError> {
        let mut sizes = Vec::new();
        for (class, range) in ranges {
            let portion = self.portion(*class, range, KeyOrder::Ascending, limit)?;
            let size = |(key, value): (Vec<u8>, Bytes)| ((*class, key), value.len() as u64);
            sizes.extend(portion.entries.into_iter().map(size));
        }
        Ok(sizes)
    }

    fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        let mut content = self.write();
        for ((class, key), value) in writes {
            let entries = content.entry(class).or_default();
            match value {
                // Without the room that it was written into.
                Some(value) => drop(entries.insert(key, value.into_boxed_slice().into())),
                None => drop(entries.remove(&key)),
            }
        }
        Ok(())
    }

    fn pass(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
