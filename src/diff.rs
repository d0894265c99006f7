//! What differs between an entry and the item that it is: a fingerprint of what a reader would see.
//!
//! Every field of the entry's canonical projection is either noise, by the fixed list in `noise`,
//! or counts with the text that a reader would see of it (`visible`). Pure.

mod noise;
mod prints;
mod visible;

pub use noise::Weight;
pub use prints::{bytes_print, changes, changes_across_formats, path_print, prints, text_prints};
pub use visible::visible;
