//! The named limits of the room.

/// How much of a document is looked at. A limit that is met inside an entry costs that entry (and
/// the document is then salvaged); one that is met elsewhere refuses the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the body, and of the decoded text.
    pub decoded: usize,
    /// Elements open at the same time.
    pub depth: usize,
    /// Attributes of one element, namespace declarations among them.
    pub attributes: usize,
    /// Namespace declarations in scope at the same time.
    pub namespaces: usize,
    /// Bytes of the spelled name of an element or attribute.
    pub name: usize,
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
    /// Repairs made to the text of a document.
    pub repairs: usize,
    /// Times that reading is taken up again behind something that is no XML.
    pub restarts: usize,
    /// Warnings kept.
    pub warnings: usize,
    /// Links, tombstones and other values kept of the head, each.
    pub head_values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            decoded: 32 << 20,
            depth: 256,
            attributes: 256,
            namespaces: 256,
            name: 1024,
            entries: 50_000,
            entry: 8 << 20,
            fields: 10_000,
            path: 4096,
            projection: 256 << 20,
            repairs: 500_000,
            restarts: 128,
            warnings: 64,
            head_values: 10_000,
        }
    }
}
