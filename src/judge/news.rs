//! Is the change news? What differs between an entry and the item that it is: a fingerprint of what a reader would see.
//!
//! Every field of the entry's canonical projection is either noise, by the fixed list (`RULES`) or the operator's
//! own, or counts with the text that a reader would see of it (`visible`). What of that never rests is learned
//! (`mask`). Pure.

mod addresses;
mod counters;
mod dates;
mod field;
mod field_hashes;
mod fingerprint;
mod ids;
mod images;
mod machinery;
mod markup;
mod mask;
mod spans;
mod text;
mod visible;

pub(crate) use addresses::address;
pub(crate) use field::is_a_text;
pub(crate) use field_hashes::{
    changed, changed_across_formats, hash_entry, hash_markup, hash_path, hash_text, names, texts,
};
pub use fingerprint::{Fingerprint, SCHEME};
pub(crate) use fingerprint::{fingerprint, scheme};
pub(crate) use mask::{MaskInput, MaskUpdate, PROOF, ROW_GAP, RULE as MASK, learn, refresh};
pub(crate) use spans::text_shape;
pub use text::{beginning, is_html, stand_in_title, text_field};
pub use visible::visible;

use crate::rules::Rule;
use field::FieldPath;
use tidegate_core::model::NoiseClass;

/// A kind of field that no reader sees as news.
pub(crate) struct NewsRule {
    pub(crate) rule: Rule,
    class: NoiseClass,
    is_noise: fn(&FieldPath<'_>, &str) -> bool,
}

/// What is noise in every feed, in the order in which it is asked.
pub(crate) const RULES: [NewsRule; 6] =
    [ids::RULE, machinery::RULE, dates::RULE, counters::RULE, images::RULE, markup::RULE];
