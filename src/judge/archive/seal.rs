//! When a segment is sealed, and what it lists.

use super::{Policy, id};
use foldhash::{HashMap, HashSet};
use std::cmp::Reverse;
use tidegate_core::model::{Chain, EndpointId, FeedName, LedgerEntry, Seal, SyncId, Tick};

/// Everything that has changed since the last seal, as of the commit that is being made.
#[derive(Debug)]
pub struct Unsealed<'a> {
    pub feed: &'a FeedName,
    /// This gateway's endpoint id.
    pub endpoint: &'a EndpointId,
    pub upstream: &'a str,
    /// The items whose current version is in no archive, tombstones among them, in any order.
    pub items: Vec<&'a LedgerEntry>,
    /// The published ids of all items of the feed that live.
    pub borne: HashSet<&'a str>,
    /// The order of the reader view.
    pub order: &'a [SyncId],
    /// The feed's last tick, with this commit.
    pub tick: Tick,
}

/// Whether this commit must seal: as many versions are unsealed as may be, or one of the items that
/// leave the reader view lives and is in no archive. One that was deleted leaves an
/// `at:deleted-entry`, which stays in the reader view until it is sealed.
pub fn is_due<'a>(
    chain: &Chain,
    policy: &Policy,
    leaving: impl IntoIterator<Item = &'a LedgerEntry>,
) -> bool {
    let full = chain.unsealed >= policy.entries.max(1);
    full || leaving.into_iter().any(|item| !item.is_deleted() && !chain.is_sealed(item.tick))
}

/// Seals everything that is unsealed, in as few archives as [`Policy::entries`] allows, the oldest
/// versions in the first; moves the chain on.
pub fn seal(chain: &mut Chain, policy: &Policy, unsealed: Unsealed<'_>) -> Vec<Seal> {
    let Unsealed { feed, endpoint, upstream, mut items, borne, order, tick } = unsealed;
    // A reader drops every entry with the id of an `at:deleted-entry` (RFC 6721 section 3). So leave out a deletion
    // whose id a living item has as well.
    items.retain(|item| !item.is_deleted() || !borne.contains(item.published_id.as_str()));
    let places: HashMap<&SyncId, usize> = order.iter().zip(0..).collect();
    // An item further down in the reader view is older; one that is not in it is older still.
    let place = |item: &LedgerEntry| Reverse(places.get(&item.id).copied().unwrap_or(usize::MAX));
    items.sort_by(|a, b| (a.tick, place(a), &a.id).cmp(&(b.tick, place(b), &b.id)));
    let mut seals = Vec::new();
    for part in parts(&items, usize::try_from(policy.entries).unwrap_or(usize::MAX).max(1)) {
        let previous = chain.newest.take();
        let Some(id) = id::archive_id(endpoint, feed, previous.as_ref(), part) else {
            // Never: a hash is always long enough and of the right letters.
            chain.newest = previous;
            break;
        };
        chain.newest = Some(id.clone());
        seals.push(Seal {
            number: chain.next,
            id,
            previous,
            upstream: upstream.to_owned(),
            items: part.iter().rev().map(|item| item.id.clone()).collect(),
        });
        chain.next = chain.next.saturating_add(1);
    }
    chain.sealed = Some(tick);
    chain.unsealed = 0;
    seals
}

/// A list in as few parts of at most `most` as there can be, about equally long.
fn parts<T>(list: &[T], most: usize) -> impl Iterator<Item = &[T]> {
    let count = list.len().div_ceil(most);
    (0..count).filter_map(move |part| {
        let cut = |at: usize| at.saturating_mul(list.len()) / count;
        list.get(cut(part)..cut(part + 1))
    })
}

#[cfg(test)]
mod tests;
