//! How often a publisher had nothing new. Pure.

use tidegate_core::model::Revision;

/// How often a document was seen unchanged since the commit that led to a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnchangedCount {
    pub(super) since: Revision,
    pub(super) same: u32,
}

impl UnchangedCount {
    /// How often since this revision.
    pub fn at_revision(self, revision: Option<Revision>) -> u32 {
        if revision == Some(self.since) { self.same } else { 0 }
    }
}
