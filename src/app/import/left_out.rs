//! Feeds whose credentials a file with the state of a gateway does not have.

use tidegate_core::model::{FeedName, FeedSource};
use tidegate_store::portable::ExportRecord;

/// Feeds that need their credentials again, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftOutCredentials {
    /// Those that the API made, at most [`LeftOutCredentials::NAMED`].
    pub named: Vec<FeedName>,
    /// How many the API made.
    pub count: usize,
    /// How many are of the configuration file, which has theirs.
    pub filed: usize,
}

impl LeftOutCredentials {
    /// The most that are named.
    pub const NAMED: usize = 50;

    /// Leaves the credentials out of a piece, and notes where there are any.
    pub(in crate::app) fn note(&mut self, piece: &mut ExportRecord) {
        let ExportRecord::Feed(record) = piece else { return };
        let Some(access) = &mut record.access else { return };
        access.leave_out_literals();
        if !access.lacks_secrets() {
            return;
        }
        if record.source == FeedSource::File {
            self.filed += 1;
            return;
        }
        self.count += 1;
        if self.named.len() < Self::NAMED {
            self.named.push(record.name.clone());
        }
    }
}
