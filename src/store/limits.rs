//! Limits of retention and of values, for all engines.

use std::time::Duration;

/// The most versions kept of an item, whatever the operator allows; the oldest go first, the newest
/// bytes never. This limit and some others are low in unit tests, which are to reach them soon.
pub const VERSIONS_LIMIT: usize = if cfg!(test) { 60 } else { 1000 };

/// The versions kept of an item where the operator says nothing else.
pub const VERSIONS_KEPT: usize = 100;

/// The most events kept of a feed; the oldest go first.
pub const EVENTS_KEPT: usize = 500;

/// How long the change log is kept at least: twice the longest period of a SUP document, a day.
pub const LOG_AGE: Duration = Duration::from_secs(2 * 86_400);

/// The newest epochs of the change log, which are kept whatever their age.
pub const LOG_EPOCHS: u64 = if cfg!(test) { 40 } else { 1000 };

/// The most bytes of one value before compression; an item or skeleton beyond it is refused.
pub(super) const VALUE_LIMIT: usize = if cfg!(test) { 8 << 20 } else { 32 << 20 };

/// The most epochs that one call of `epochs_after` answers, whatever it asks for.
pub(super) const TAIL_LIMIT: usize = 10_000;

/// The most changes that one call takes out of the log; the rest go with the next.
pub(super) const TRIM_LIMIT: usize = 10_000;

/// The most versions and documents that one call of `prune` takes out; the rest go with the next.
pub(super) const PRUNE_LIMIT: usize = if cfg!(test) { 200 } else { 1000 };

/// Every so many versions of an item, and orders of a feed, one is stored whole.
pub(super) const WHOLE_EVERY: u32 = 16;

/// The most steps from what is stored as a difference to what is stored whole.
pub(super) const CHAIN_LIMIT: usize = 64;
/// About how many bytes of text one stored block of an archive holds; a larger entry has a block of
/// its own.
pub(super) const BLOCK: usize = if cfg!(test) { 8 << 10 } else { 256 << 10 };

/// How many archives that were dropped are remembered, so that their addresses answer 410 and not
/// 404; the oldest are forgotten first.
pub const DROPPED_REMEMBERED: u64 = 10_000;
