//! The named limits of reading a document.

use tidegate_core::xml::doc::DocLimits;

/// How much of a document is looked at. A limit that is met inside an entry costs that entry (and
/// the document is then salvaged); one that is met elsewhere refuses the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the body, and of the decoded text.
    pub decoded: usize,
    /// What is read of its markup.
    pub markup: DocLimits,
    /// Entries of a document.
    pub entries: usize,
    /// Bytes of one entry.
    pub entry: usize,
    /// Fields of one entry.
    pub fields: usize,
    /// Bytes of one path in the projection.
    pub path: usize,
    /// Bytes that the projections of all entries may take beside the text itself.
    pub projection: usize,
    /// Bytes that conflicts and extras of all entries may take with what they inherit; what is more costs its
    /// entry the `sx:sync`.
    pub sync: usize,
    /// Links, tombstones and other values kept of the head, each.
    pub head_values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            decoded: 32 << 20,
            markup: DocLimits::default(),
            entries: 50_000,
            entry: 8 << 20,
            fields: 10_000,
            path: 4096,
            projection: 256 << 20,
            sync: 128 << 20,
            head_values: 10_000,
        }
    }
}
