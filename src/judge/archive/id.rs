//! The ids of archives.

use sha2::{Digest, Sha256};
use tidegate_core::model::{ArchiveId, EndpointId, FeedName, LedgerEntry};
use tidegate_core::short_hash::base32;

/// How much of the SHA-256 goes into an id, in bytes: 24 characters.
const HASH_BYTES: usize = 15;

/// The id of a segment: a hash of whose it is, what it follows and which versions it lists. Two
/// segments of equal id list the same, so that a feed that was purged and added anew, or a gateway
/// that went back to an older copy of its store, never gives an address a second meaning.
pub(super) fn archive_id(
    endpoint: &EndpointId,
    feed: &FeedName,
    previous: Option<&ArchiveId>,
    items: &[&LedgerEntry],
) -> Option<ArchiveId> {
    let mut sha = Sha256::new();
    let mut add = |part: &[u8]| {
        sha.update((part.len() as u64).to_be_bytes());
        sha.update(part);
    };
    add(endpoint.as_str().as_bytes());
    add(feed.as_str().as_bytes());
    add(previous.map_or("", ArchiveId::as_str).as_bytes());
    for item in items {
        add(item.id.as_str().as_bytes());
        add(&item.tick.time().unix().to_be_bytes());
        add(&item.updates.value().to_be_bytes());
        add(&item.bytes.to_be_bytes());
    }
    ArchiveId::new(&base32(sha, HASH_BYTES)).ok()
}
