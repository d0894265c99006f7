//! How much is kept, and how much one value may take. Both stores obey the same limits.

/// The most versions kept of an item; the oldest go first, the newest bytes never.
pub const VERSIONS_KEPT: usize = 100;

/// The most events kept of a feed; the oldest go first.
pub const EVENTS_KEPT: usize = 500;

/// The most bytes of one value before compression; an item or skeleton beyond it is refused.
pub(super) const VALUE_LIMIT: usize = 32 * 1024 * 1024;

/// The most epochs that one call of `tail` answers, whatever it asks for.
pub(super) const TAIL_LIMIT: usize = 10_000;

/// About how many bytes of text one stored block of an archive holds; a larger entry has a block of
/// its own.
pub(super) const BLOCK: usize = 256 * 1024;

/// How many archives that were dropped are remembered, so that their addresses answer 410 and not
/// 404; the oldest are forgotten first.
pub const DROPPED_REMEMBERED: u64 = 10_000;
