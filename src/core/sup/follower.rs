//! What a consumer knows from the documents it has read, and which one it needs next.

use super::read::{SupDocument, UpdateMember};
use crate::model::{SupId, Time};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The most ids whose last update is remembered. Beyond it, ids that the last document does not list are forgotten;
/// their updates may be reported twice.
pub const SEEN_LIMIT: usize = 1_000_000;

/// The news in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Updates not reported before, oldest first.
    pub updates: Vec<UpdateMember>,
    /// Whether they are complete.
    pub standing: FollowerStatus,
}

/// How complete the consumer's knowledge is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowerStatus {
    /// Complete up to the document's `updated_time`.
    Complete,
    /// There may be a gap before this document: read this document of a longer period now.
    Ask {
        /// The period in seconds.
        period: u32,
        /// The address of the document.
        address: String,
    },
    /// There is a gap that no document covers: every feed may have changed.
    Missed,
}

/// Follows the documents of one publisher.
///
/// A document continues what is known if its `since_time` is not after the last `updated_time` (sections 3.3 and 3.4).
/// Otherwise one of a longer period is needed. If none reaches back far enough, every feed must be checked.
#[derive(Debug, Clone, Default)]
pub struct Follower {
    known: Option<Time>,
    /// The interval of a document that did not continue what was known.
    apart: Option<(Time, Time)>,
    seen: HashMap<SupId, Box<str>>,
}

impl Follower {
    /// Returns the time up to which everything is known; `None` before the first document.
    pub const fn known(&self) -> Option<Time> {
        self.known
    }

    /// Forgets the updates of all other ids.
    pub fn keep_only(&mut self, ids: &BTreeSet<SupId>) {
        self.seen.retain(|id, _| ids.contains(id));
    }

    /// Returns the number of ids whose last update is remembered.
    pub fn remembered(&self) -> usize {
        self.seen.len()
    }

    /// Applies a document.
    pub fn apply_document(&mut self, document: &SupDocument) -> News {
        let mut updates = Vec::new();
        // Documents list the newest first, so the first entry of an id is its newest update (READINGS 4, row 8).
        let mut newest: HashMap<&SupId, &UpdateMember> = HashMap::new();
        for update in &document.updates {
            if newest.contains_key(&update.id) {
                continue;
            }
            newest.insert(&update.id, update);
            if self.seen.get(&update.id) != Some(&update.update) {
                updates.push(update.clone());
            }
        }
        if self.seen.len().saturating_add(updates.len()) > SEEN_LIMIT {
            self.seen.retain(|id, _| newest.contains_key(id));
        }
        for update in &updates {
            self.seen.insert(update.id.clone(), update.update.clone());
        }
        updates.reverse();
        News { updates, standing: self.stand(document) }
    }

    /// Continues after a document with this `updated_time`, despite a gap before it.
    pub fn go_on_from(&mut self, updated: Time) {
        let apart = self.apart.take().map(|(_, updated)| updated);
        self.known = self.known.max(Some(updated)).max(apart);
    }

    fn stand(&mut self, document: &SupDocument) -> FollowerStatus {
        let (since, updated) = (document.since, document.updated);
        let Some(known) = self.known else {
            self.known = Some(updated);
            return FollowerStatus::Complete;
        };
        let period = Duration::from_secs(u64::from(document.period));
        // If a publisher's time went back, its documents say nothing about the time in between.
        let went_back = updated.plus(period) < known;
        if since <= known && !went_back {
            let mut known = known.max(updated);
            if let Some((since, updated)) = self.apart.take()
                && since <= known
            {
                known = known.max(updated);
            }
            self.known = Some(known);
            return FollowerStatus::Complete;
        }
        let wanted = updated.since(known).as_secs();
        let mut longer = document.available.range(document.period.saturating_add(1)..);
        let reaches = longer.clone().find(|(period, _)| u64::from(**period) >= wanted);
        match reaches.or_else(|| longer.next_back()).filter(|_| !went_back) {
            Some((period, address)) => {
                // Keep the interval of the first document, which is the newest.
                self.apart.get_or_insert((since, updated));
                FollowerStatus::Ask { period: *period, address: address.clone() }
            }
            None => {
                let apart = self.apart.take().map_or(updated, |(_, updated)| updated);
                self.known = Some(if went_back { updated } else { updated.max(apart) });
                FollowerStatus::Missed
            }
        }
    }
}
