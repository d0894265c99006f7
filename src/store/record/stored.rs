//! What of the model is a record as it is.

use super::Record;
use crate::{AcceptedFeeds, AppliedOrigins, LoggedChange, VersionNote};
use tidegate_core::model::{
    Attempt, Event, FeedRecord, HeldEntry, LedgerEntry, Markup, PollState, Skeleton, Stub, SyncId,
    Time, Version,
};
use tidegate_core::websub::Subscription;

/// Of the feeds of a configuration that were applied last.
impl Record for AcceptedFeeds {}
/// Where its sites are.
impl Record for AppliedOrigins {}
impl Record for Attempt {}
impl Record for Event {}
/// Version 2 says how the publisher is asked, of which nothing was said before; version 3 whether the feed
/// is private, which none was; version 4 whether it is a list that adds feeds, and which list added it;
/// version 5 whether a reader's request made it.
impl Record for FeedRecord {
    const VERSION: u8 = 5;
    const ADDED: &[&[u8]] = &[&[0], &[0], &[0, 0], &[0]];
}
/// Version 2 lacks what no program reads.
impl Record for LedgerEntry {
    const VERSION: u8 = 2;
}
impl Record for Markup {}
/// Version 2 says how documents overlap, of which nothing was known before; version 3 when the feed did
/// not go on as usual, likewise.
impl Record for PollState {
    const VERSION: u8 = 3;
    const ADDED: &[&[u8]] = &[&[0, 0, 0], &[0]];
}
impl Record for Skeleton {}
impl Record for Stub {}
/// Of an item in the index of a ledger.
impl Record for SyncId {}
impl Record for Subscription {}
impl Record for VersionNote {}
/// What is kept of a feed's held documents.
impl Record for Vec<HeldEntry> {}
/// The order of the reader view.
impl Record for Vec<SyncId> {}
/// The versions that are in conflict with one item.
impl Record for Vec<Version<Markup>> {}
/// One change of the change log, and when its epoch was closed.
impl Record for (Time, LoggedChange) {}
