//! Entries that were seen only in documents that are held back.

use super::{Entry, Format, Time};
use serde::{Deserialize, Serialize};

/// An entry of a held document that is no known item. It is no item yet: it becomes one when the
/// hold ends, if the document that ends it does not have it (JUDGEMENT, Brakes).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldEntry {
    /// The entry, as it was last seen.
    pub entry: Entry<'static>,
    /// The format of the document that it stood in.
    pub format: Format,
    /// When it was first seen.
    pub since: Time,
    /// Whether it was seen only in documents that are held for being another feed's.
    pub foreign: bool,
}

impl HeldEntry {
    /// The most entries kept of one feed.
    pub const ENTRIES_LIMIT: usize = 200;
    /// The most bytes of markup and values kept of one feed.
    pub const BYTES_LIMIT: usize = 1 << 20;

    /// How many bytes of markup and values it takes.
    pub fn size(&self) -> usize {
        let entry = &self.entry;
        let texts = [&entry.native_id, &entry.link, &entry.title, &entry.author];
        let texts = texts.into_iter().flatten().chain(&entry.enclosures).map(|text| text.len());
        let fields = entry.fields().iter().map(|f| f.path.len() + f.value.len());
        entry.markup.len() + texts.chain(fields).sum::<usize>()
    }
}
