//! What stands in an item's `sx:sync` beyond SSE, on disk.

use super::RecordError;
use super::sharing::UpdateRecord;
use crate::model::{Extra, SyncExtras};
use serde::{Deserialize, Serialize};

type ExtraRecord = (Vec<(Option<String>, String, String)>, String);

/// [`SyncExtras`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExtrasRecord {
    sync: ExtraRecord,
    updates: Vec<(UpdateRecord, ExtraRecord)>,
}

fn record(extra: &Extra) -> ExtraRecord {
    (extra.attributes.clone(), extra.elements.clone())
}

fn extra((attributes, elements): ExtraRecord) -> Extra {
    Extra { attributes, elements }
}

impl From<&SyncExtras> for ExtrasRecord {
    fn from(extras: &SyncExtras) -> Self {
        let updates =
            extras.updates.iter().map(|(of, extra)| (UpdateRecord::from(of), record(extra)));
        Self { sync: record(&extras.sync), updates: updates.collect() }
    }
}

impl TryFrom<ExtrasRecord> for SyncExtras {
    type Error = RecordError;

    fn try_from(record: ExtrasRecord) -> Result<Self, RecordError> {
        let updates =
            record.updates.into_iter().map(|(of, said)| Ok((of.try_into()?, extra(said))));
        let updates = updates.collect::<Result<_, RecordError>>()?;
        Ok(Self { sync: extra(record.sync), updates })
    }
}
