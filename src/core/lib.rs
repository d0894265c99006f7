//! What everything else is made of: what a feed, an item and its history are, the tolerant reader of
//! XML, the sharing algebra with its markup, SUP and WebSub as values, hashes as text, and text for a terminal. Pure, but for the
//! clock.

pub mod clock;
pub mod model;
pub mod pause;
pub mod short_hash;
pub mod sup;
pub mod sync;
pub mod sync_markup;
pub mod terminal;
pub mod trust;
pub mod websub;
pub mod xml;
