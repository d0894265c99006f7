//! What a document that shares its items says of them (SSE 1.0 section 2).

use super::{Markup, SyncExtras, SyncId, SyncMarkupError, Version};
use std::sync::Arc;

/// What an entry's `sx:sync` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntrySync {
    /// The item that the entry is a version of.
    Valid(Arc<Incoming>),
    /// Something that is no valid sync markup: the entry counts as a plain one (READINGS 1, row 18).
    Invalid(Box<SyncMarkupError>),
}

/// A version of a shared item as a document has it. What it says itself is the entry around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    pub version: Version<()>,
    /// The versions in conflict with it, as a flat list.
    pub conflicts: Vec<Version<Markup>>,
    /// Where it came by SSE 0.91: its `conflict` attribute.
    pub sse091: Option<bool>,
    /// What its `sx:sync` says beyond SSE.
    pub extras: SyncExtras,
}

impl Incoming {
    /// The item.
    pub const fn id(&self) -> &SyncId {
        &self.version.id
    }
}

/// What `sx:sharing` says (SSE 1.0 section 2.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sharing {
    /// `since` and `until`, which stand only together; opaque.
    pub bounds: Option<(String, String)>,
    /// The absolute address of the complete feed, where it names one.
    pub complete: Option<String>,
}
