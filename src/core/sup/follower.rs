//! What a consumer knows by the documents that it has read, and which one it needs next.

use super::read::{SupDocument, UpdateMember};
use crate::model::{SupId, Time};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The most ids whose last update is remembered; beyond it, those that the last document does not
/// list are forgotten. A forgotten one may be told once more.
pub const SEEN_LIMIT: usize = 1_000_000;

/// What a document has told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Updates that were not told before, oldest first.
    pub updates: Vec<UpdateMember>,
    /// Whether that was all.
    pub standing: FollowerStatus,
}

/// How much the consumer knows now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowerStatus {
    /// Everything up to the document's `updated_time`.
    Complete,
    /// There may be more between the last document and this one: this document of a longer period
    /// is to be read now.
    Ask {
        /// Its period, in seconds.
        period: u32,
        /// Where it is.
        address: String,
    },
    /// There may be more, and no document goes back that far: every feed may have changed.
    Missed {
        /// Up to when everything was known.
        known: Time,
    },
}

/// Follows the documents of one publisher.
///
/// A document continues what is known where its `since_time` is not after the last `updated_time`
/// (sections 3.3 and 3.4). Otherwise one of a longer period is asked for; where none reaches back
/// far enough, everything is to be looked at anew.
#[derive(Debug, Clone, Default)]
pub struct Follower {
    known: Option<Time>,
    /// The interval of a document that did not continue what was known.
    apart: Option<(Time, Time)>,
    seen: HashMap<SupId, Box<str>>,
}

impl Follower {
    /// A consumer that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Up to when everything is known.
    pub const fn known(&self) -> Option<Time> {
        self.known
    }

    /// Forgets what was told of other ids than these.
    pub fn keep_only(&mut self, ids: &BTreeSet<SupId>) {
        self.seen.retain(|id, _| ids.contains(id));
    }

    /// Of how many ids the last update is remembered.
    pub fn remembered(&self) -> usize {
        self.seen.len()
    }

    /// Takes a document.
    pub fn apply_document(&mut self, document: &SupDocument) -> News {
        let mut updates = Vec::new();
        // Newest first in the document: the first one of an id is its newest (READINGS 4, row 8).
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

    /// Goes on from a document of this `updated_time`, although not all before it is known.
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
        // A publisher whose time went back says nothing of what lies between.
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
                // That of the first document: it is the newest.
                self.apart.get_or_insert((since, updated));
                FollowerStatus::Ask { period: *period, address: address.clone() }
            }
            None => {
                let apart = self.apart.take().map_or(updated, |(_, updated)| updated);
                self.known = Some(if went_back { updated } else { updated.max(apart) });
                FollowerStatus::Missed { known }
            }
        }
    }
}
