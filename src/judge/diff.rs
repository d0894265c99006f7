//! What differs between an entry and the item that it is: a fingerprint of what a reader would see.
//!
//! Every field of the entry's canonical projection is either noise, by the fixed list in `noise` or
//! the operator's own, or counts with the text that a reader would see of it (`visible`). What of
//! that never rests is learned (`mask`). Pure.

mod field_hashes;
mod fingerprint;
mod mask;
mod noise;
mod spans;
mod text;
mod visible;

pub use field_hashes::{
    bytes_print, changed, changed_across_formats, markup_print, names, path_print, text_prints,
};
pub use fingerprint::{Fingerprint, SCHEME, fingerprint, settle_left};
pub use mask::{MaskInput, MaskUpdate, Varied, learn, refresh, sweep_spans, vote, watch};
pub use noise::{FieldWeight, address, is_a_text, is_image};
pub use spans::text_shape;
pub use text::{beginning, is_html, stand_in_title, text_field};
pub use visible::visible;
