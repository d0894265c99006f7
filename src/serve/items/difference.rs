//! What differs between two versions of an item, and what comparing them may take.

use super::compare::{self, Differences};
use super::query::VersionChoice;
use super::text_diff::CompareBudget;
use super::{COMPARISONS_KIB, Subject, bytes_of};
use crate::AppState;
use crate::problem::{Problem, RETRY_SOON};
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::Markup;
use tidegate_store::VersionNote;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// How long a comparison waits for memory.
const MEMORY_WAIT: Duration = Duration::from_secs(15);

/// Two versions and what differs between them.
pub(super) struct VersionDifference {
    /// The older; `None`: the newest bytes, which are no version's.
    pub(super) old: Option<VersionNote>,
    /// The newer, likewise.
    pub(super) new: Option<VersionNote>,
    /// What differs; `None` where one of the two cannot be read.
    pub(super) differences: Option<Differences>,
}

impl VersionDifference {
    /// The same as data: what differs, field by field; null where one of the two cannot be read.
    pub(super) fn as_data(&self, subject: &Subject) -> Value {
        let differences = self.differences.as_ref();
        json!({
            "feed": subject.feed,
            "sync_id": subject.known.id,
            "old": name(self.old.as_ref()),
            "new": name(self.new.as_ref()),
            "fields": differences.map(|it| &it.fields),
            "same_fields": differences.map(|it| it.same),
            "more_fields": differences.map(|it| it.more),
        })
    }
}

/// Compares two versions. Memory for it is taken before anything of them is read.
pub(super) async fn compare_versions(
    room: &AppState,
    subject: &Subject,
    old: VersionChoice,
    new: VersionChoice,
) -> Result<VersionDifference, Problem> {
    let permit = reserve(room, subject.size(old), subject.size(new)).await?;
    let (old_note, old) = bytes_of(room, subject, old).await?;
    let (new_note, new) = bytes_of(room, subject, new).await?;
    if let Some(tombstone) = [&old_note, &new_note].into_iter().flatten().find(|n| n.deleted) {
        let said = format!(
            "version {} is a tombstone: the item was deleted, and no text of it is left to compare",
            tombstone.updates.value()
        );
        return Err(Problem::not_found(said));
    }
    let (differences, _) = compare(permit, (old, new), CompareBudget::whole()).await?;
    Ok(VersionDifference { old: old_note, new: new_note, differences })
}

/// What differs between two versions, where both can be read, within what is left of a budget.
pub(crate) async fn compared(
    room: &AppState,
    versions: (Markup, Markup),
    budget: &mut CompareBudget,
) -> Result<Option<Differences>, Problem> {
    let bytes = |markup: &Markup| u64::try_from(markup.xml.len()).unwrap_or(u64::MAX);
    let permit = reserve(room, bytes(&versions.0), bytes(&versions.1)).await?;
    let (differences, left) = compare(permit, versions, *budget).await?;
    *budget = left;
    Ok(differences)
}

/// Waits for the memory that a comparison of two versions of these sizes takes, at most [`MEMORY_WAIT`]; all that there
/// is is enough for anything.
async fn reserve(room: &AppState, old: u64, new: u64) -> Result<OwnedSemaphorePermit, Problem> {
    let kib = usize::try_from(compare::cost(old, new) / 1024).unwrap_or(usize::MAX);
    let kib = u32::try_from(kib.clamp(1, COMPARISONS_KIB)).unwrap_or(u32::MAX);
    let permit = Arc::clone(&room.comparisons).acquire_many_owned(kib);
    let busy =
        |_| Problem::later("too many versions are compared just now; ask again soon", RETRY_SOON);
    timeout(MEMORY_WAIT, permit).await.map_err(busy)?.map_err(|_| broken_off())
}

fn broken_off() -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the comparison broke off")
}

/// Compares two versions where that may take its time; answers what is left of the budget as well.
async fn compare(
    permit: OwnedSemaphorePermit,
    (old, new): (Markup, Markup),
    mut budget: CompareBudget,
) -> Result<(Option<Differences>, CompareBudget), Problem> {
    let comparing = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        (compare::versions(&old, &new, &mut budget), budget)
    });
    comparing.await.map_err(|_| broken_off())
}

/// What one of the two is called.
pub(super) fn name(note: Option<&VersionNote>) -> String {
    note.map_or_else(|| "newest".to_owned(), |note| note.updates.value().to_string())
}
