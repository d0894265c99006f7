//! What notes of writes change in what a gateway has in memory.

use super::super::open::{self, Opening};
use super::super::shared::StoreShared;
use super::super::{Records, keys};
use super::RecentEntry;
use crate::engine::Class;
use crate::record::{IdentityRecord, StateRecord};
use crate::{Epoch, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegate_core::model::{FeedName, FeedRecord};

/// What entries of recent writes change in memory.
#[derive(Default)]
pub(super) struct MemoryChange {
    pub(super) states: HashMap<FeedName, Option<StateRecord>>,
    pub(super) feeds: BTreeMap<FeedName, Option<FeedRecord>>,
    pub(super) identity: Option<IdentityRecord>,
    pub(super) list_writes: Option<u64>,
    /// Epochs that writes of the change log are in, each with the write.
    pub(super) logged: Vec<(i64, Epoch)>,
}

impl MemoryChange {
    /// Takes over what entries say, later ones in the place of earlier ones.
    pub(super) fn apply_notes(
        &mut self,
        records: &Records,
        entries: Vec<(i64, RecentEntry)>,
    ) -> Result<(), StoreError> {
        for (write, ((class, key), value)) in entries {
            match class {
                Class::States => {
                    let head =
                        value.map(|value| records.decode(class, &key, &value)).transpose()?;
                    self.states.insert(open::name(records, class, &key)?, head);
                }
                Class::Feeds => {
                    let feed =
                        value.map(|value| records.decode(class, &key, &value)).transpose()?;
                    self.feeds.insert(open::name(records, class, &key)?, feed);
                }
                Class::Log => {
                    self.logged.extend(keys::log_epoch(&key).map(|epoch| (write, Epoch(epoch))));
                }
                Class::Gateway => {
                    let entry = open::gateway_entry(records, &key, value.as_deref())?;
                    self.identity = entry.identity.or(self.identity.take());
                    self.list_writes = entry.list_writes.or(self.list_writes);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Shows it. The epoch comes last: whoever hears of it finds the states that it announces. Epochs of writes behind
    /// `closed` are not closed yet: they are kept in `open`, and shown once they are.
    pub(super) fn show(self, shared: &StoreShared, open: &mut Vec<(i64, Epoch)>, closed: i64) {
        let feeds = self.feeds.into_iter();
        shared.change_list(feeds.map(|(feed, record)| (feed, record.map(Arc::new))).collect());
        for (feed, head) in self.states {
            shared.publish(&feed, head);
        }
        if let Some(identity) = self.identity {
            shared.open_as(opening(identity));
        }
        if let Some(list_writes) = self.list_writes {
            shared.list_writes.store(list_writes, Ordering::Release);
        }
        open.extend(self.logged);
        let sealed = open.iter().filter(|(write, _)| *write <= closed).map(|(_, epoch)| *epoch);
        let sealed = sealed.max();
        open.retain(|(write, _)| *write > closed);
        if let Some(epoch) = sealed {
            shared.sealed.send_if_modified(|sealed| {
                let is_new = epoch > *sealed;
                *sealed = epoch.max(*sealed);
                is_new
            });
        }
    }
}

/// The opening that an identity is of.
pub(super) fn opening(IdentityRecord { fence, lineage, .. }: IdentityRecord) -> Opening {
    Opening { fence, mark: lineage.mark().unwrap_or_default(), lineage }
}
