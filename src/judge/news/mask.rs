//! The learned mask: what never rests makes no version.
//!
//! What is learned is what only machines do: a **span** (a number, a date, a token) of one field
//! that changes for the third time in a row while no word of the entry does. The first two changes
//! always go out, and so does a change of words.
//!
//! What three items have shown of a place between words holds for all items of the feed. What one
//! item alone has shown is not lost: when it rests, its last state comes out as a version.

mod item;
mod shared;

pub use item::{MaskInput, MaskUpdate, learn, refresh, watch};
pub use shared::{Varied, sweep_spans, vote};

use std::time::Duration;

const DAY: u64 = 86_400;

/// Changes in a row that show that a span never rests; the last of them makes no version.
const PROOF: u8 = 3;
/// Changes that are further apart are no row.
const ROW_GAP: Duration = Duration::from_secs(2 * DAY);
/// They may still show what the items of a feed share, where they are no further apart than this.
const LONG_GAP: Duration = Duration::from_secs(8 * DAY);
/// A mask is lifted, and what it hid comes out, when the field has rested for so many times the
/// longest rest that it had before …
const RESTS: u32 = 4;
/// … for at least this long …
const LEAST_REST: Duration = Duration::from_secs(3 * DAY);
/// … and at most this long.
const MOST_REST: Duration = Duration::from_secs(30 * DAY);

/// The part of a fingerprint that is enough to tell two values of a field apart.
#[allow(clippy::cast_possible_truncation)]
pub(super) const fn short(print: u64) -> u32 {
    print as u32
}

#[cfg(test)]
mod tests;
