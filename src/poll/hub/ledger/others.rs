//! What other gateways over the same store change of subscriptions, and own.

use super::Ledger;
use std::collections::HashSet;
use tidegate_core::model::Time;
use tidegate_core::websub::{Subscription, SubscriptionId};

impl Ledger {
    /// How many changes were written: told before the store is read.
    pub(in super::super) fn writes(&self) -> u64 {
        self.inner().writes
    }

    /// Takes in the subscriptions as the store has them: those that other gateways took or called. What is to be
    /// written here, was since `writes`, or is being called, stays as it is, but for a later request. Answers whether any
    /// is new here.
    pub(in super::super) fn take_in(
        &self,
        stored: Vec<Subscription>,
        writes: u64,
        now: Time,
    ) -> bool {
        let mut inner = self.inner();
        inner.forget_written(writes);
        let before = inner.entries.len();
        let mut gone: HashSet<SubscriptionId> = inner.entries.keys().copied().collect();
        for subscription in stored {
            let id = subscription.id();
            gone.remove(&id);
            inner.take_in(id, subscription, now);
        }
        let is_any_new = inner.entries.len() > before;
        gone.retain(|id| !inner.is_own(*id));
        gone.into_iter().for_each(|id| inner.drop_entry(id));
        is_any_new
    }

    /// Reckons anew what is due: other gateways own feeds since.
    pub(in super::super) fn schedule_all(&self, now: Time) {
        let mut inner = self.inner();
        let ids: Vec<SubscriptionId> = inner.entries.keys().copied().collect();
        ids.into_iter().for_each(|id| inner.schedule(id, now));
    }

    /// Has those wait no more that waited for their turn: whose they are is another's to say.
    pub(in super::super) fn put_back(
        &self,
        ids: impl IntoIterator<Item = SubscriptionId>,
        now: Time,
    ) {
        let mut inner = self.inner();
        for id in ids {
            if let Some(entry) = inner.entries.get_mut(&id) {
                entry.busy = false;
            }
            inner.schedule(id, now);
        }
    }
}
