//! What `tidegate compact` prints.

use super::print_lines;
use crate::app::AppError;
use std::io::Write;
use tidegate_core::model::counted;
use tidegate_store::Compacted;

/// Prints what a compaction did.
pub(super) fn print(compacted: &Compacted, out: &mut dyn Write) -> Result<(), AppError> {
    let Compacted { items, before, after } = compacted;
    let words = format!(
        "the store was written anew with {}: {}, {before} before\n\
         what was redacted, pruned or purged before is in none of its files\n",
        counted(*items, "item"),
        counted(*after, "byte")
    );
    print_lines(&words, out)
}
