//! The life of a feed as a picture: a line for each item, from when it was first seen to when it left.
//!
//! Time runs to the right, and newer items are above. A line is dashed from when
//! its item was first missing, fades where it scrolled off, ends in a cross
//! where it was deleted, has a dot for each edit, which leads to what changed, and a diamond where its publisher
//! gave it another id. Bands show when a document was held, and when the publisher
//! failed.

mod bands;
mod lines;
mod picture;

pub(super) use self::lines::FeedLife;
pub(super) use self::picture::figure;
