//! A local replica of a feed: what to ask for, and what comes of the answers. Pure.
//!
//! An SSE feed is followed by section 4.1 of SSE 1.0: the complete feed first, then partial ones,
//! and the complete one again where `since` shows that something was missed. A plain feed is
//! reconstructed from its archives as Feed History draft-05 section 6 has it (READINGS 3, row 3).
//! A [`pull`](pull()) asks by what it is given; its caller fetches and writes files. Merging two feed files
//! ([`merged`]) is here as well.

mod document;
mod error;
mod exchange;
mod history;
mod item;
mod merge;
mod replica;
mod session;
mod sharing;
mod state;
#[cfg(test)]
mod tests;

/// The most bytes of a feed file that is merged, and of a replica.
pub const BYTES_LIMIT: usize = 32 << 20;

pub use error::{FeedFault, PullError};
pub use exchange::{Answer, Ask, Asked, FetchedBody, PullLimits, PullOutcome};
pub use item::{ChangeKind, ItemChange};
pub use merge::{MergedFeed, Side, merged};
pub use session::pull;
pub use state::{ArchiveGap, Complete, ReplicaBasis, State};
