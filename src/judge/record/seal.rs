//! Sealing: no entry leaves the reader view but with the archive that it is in from then on.

use super::draft::ChangeDraft;
use crate::archive::{self, Unsealed};
use foldhash::HashSet;
use tidegate_core::model::{Chain, LedgerEntry, Seal, SyncId, Tick};

impl<'a> ChangeDraft<'a> {
    /// Seals what must be sealed with this commit, which makes `made` versions, and drops archives
    /// that need not be kept.
    pub(super) fn seal(&mut self, made: u32) -> Vec<Seal> {
        let mut chain = self.state.archives.clone();
        let first_new = chain.next;
        chain.unsealed = chain.unsealed.saturating_add(made);
        let policy = self.observation.archives;
        // While a document is held nothing outside changes, so nothing is sealed either.
        if !self.shown_changed {
            self.state.archives = chain;
            self.drop_archives(first_new);
            return Vec::new();
        }
        let mut seals = Vec::new();
        let left = self.left(&chain);
        // What lives is sealed anew by maintenance where only a part of it was read.
        let again = self.snapshot.settled.is_none() && self.is_over(&chain) && {
            let sealed = self.sealed(&chain, first_new);
            archive::is_worth_it(&chain, &sealed, &policy, self.observation.running_now)
        };
        let is_due = self.seals_now || again || archive::is_due(&chain, &policy, left);
        if let (Some(tick), true) = (self.state.tick, is_due) {
            let living = self.ledger().filter(|known| !known.is_deleted());
            let sealed = chain.clone();
            let unsealed = Unsealed {
                feed: self.observation.feed,
                endpoint: self.observation.endpoint,
                upstream: self.observation.url,
                items: self
                    .ledger()
                    .filter(|known| !known.is_hidden())
                    .filter(|known| !sealed.is_sealed(known.tick) || (again && !known.is_deleted()))
                    .collect(),
                borne: living.map(|known| known.published_id.as_str()).collect(),
                order: self.order.as_deref().unwrap_or(&self.snapshot.order),
                tick,
            };
            seals = archive::seal(&mut chain, &policy, unsealed);
            if again {
                chain.free = first_new;
            }
        }
        self.state.archives = chain;
        self.drop_archives(first_new);
        seals
    }

    /// Drops the archives that need not be kept; `end` is the number of the first one that this
    /// commit seals. Returns whether any is dropped.
    pub(super) fn drop_archives(&mut self, end: u64) -> bool {
        // Finding archives without living items takes the whole ledger. If only a part was read, maintenance drops
        // them.
        if self.snapshot.settled.is_some() || !self.is_over(&self.state.archives) {
            return false;
        }
        // What was sealed before this commit.
        let sealed = self.sealed(&self.snapshot.state.archives, end);
        let policy = &self.observation.archives;
        archive::retain(&mut self.state.archives, &sealed, policy, self.observation.running_now)
    }

    /// Whether the limits would drop any of `chain`.
    fn is_over(&self, chain: &Chain) -> bool {
        archive::is_over(
            chain,
            &self.snapshot.archives,
            &self.observation.archives,
            self.observation.running_now,
        )
    }

    /// What `chain` has of the items as they stand in this draft.
    fn sealed(&self, chain: &Chain, end: u64) -> archive::SealedArchives<'a> {
        let lives = |known: &&LedgerEntry| !known.is_deleted() && chain.is_sealed(known.tick);
        let (mut living, mut lowest) = (0_u64, None::<Tick>);
        for known in self.ledger().filter(lives) {
            living = living.saturating_add(1);
            lowest = Some(lowest.map_or(known.tick, |lowest| lowest.min(known.tick)));
        }
        archive::SealedArchives { oldest: &self.snapshot.archives, lowest, living, end }
    }

    /// The living items in no archive that the reader view does not show after this commit: those
    /// that leave it, and what came out of one that had left.
    fn left(&self, chain: &Chain) -> Vec<&LedgerEntry> {
        let is_open = |known: &&LedgerEntry| !known.is_deleted() && !chain.is_sealed(known.tick);
        let mut open: Vec<&LedgerEntry> = self.ledger().filter(is_open).collect();
        if !open.is_empty() {
            let order = self.order.as_deref().unwrap_or(&self.snapshot.order);
            let there: HashSet<&SyncId> = order.iter().collect();
            open.retain(|known| !there.contains(&known.id));
        }
        open
    }
}
