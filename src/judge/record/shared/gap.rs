//! Updates of this gateway's own that its store does not know any more.

use tidegate_core::model::{Count, EndpointId, Gap, SyncId, Update};

/// Whether updates in this gateway's name that it does not know can be its own all the same: its store was
/// brought back from a copy, they were made after that, and there are no more of them than can have been.
/// `issued`: the greatest sequence that it knows of its own.
pub(super) fn can_be_ours<'a>(
    gap: Option<Gap>,
    own: &EndpointId,
    issued: Option<Count>,
    updates: impl Iterator<Item = &'a Update>,
) -> bool {
    let Some(gap) = gap else { return false };
    let issued = issued.map_or(0, Count::value);
    let lost = u32::try_from(gap.seconds()).unwrap_or(u32::MAX);
    let most = issued.saturating_add(lost);
    let mut unknown =
        updates.filter(|update| update.stamp.by() == Some(own) && update.sequence.value() > issued);
    unknown.all(|update| {
        update.sequence.value() <= most && update.stamp.when().is_some_and(|when| gap.has(when))
    })
}

/// Whether an endpoint of this kind minted an id: those of a gateway begin with its name.
pub(super) fn is_id_of(id: &SyncId, own: &EndpointId) -> bool {
    id.as_str().strip_prefix(own.as_str()).is_some_and(|rest| rest.starts_with('.'))
}
