//! What happened to items, and what is to come of those that are missing.

use serde::Serialize;
use tidegate_core::model::{Event, EventKind, Evidence, Probe, SyncId, Tick, Time};
use tidegate_judge::PendingAbsence;
use tidegate_status::describe;
use tidegate_status::schema::{self, words};
use utoipa::ToSchema;

describe! {
    /// What happened.
    EventWord: words(EventKind::ALL.into_iter().chain([EventKind::Backfilled, EventKind::Discarded]));
    /// Whether the item is there.
    Heard: words(["gone", "there"]);
}

/// Something that happened to an item, with its reason.
#[derive(Serialize, ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventAnswer {
    #[schema(value_type = EventWord)]
    pub(crate) kind: EventKind,
    pub(crate) sync_id: SyncId,
    pub(crate) native_id: String,
    /// Of an item that was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    old_native_id: Option<String>,
    pub(crate) title: String,
    /// The tick of the version that it made, where it made one.
    tick: Option<Tick>,
    pub(crate) reason: String,
    pub(crate) at: Time,
    /// When the item was first seen missing, where its deletion was confirmed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Time, required = false)]
    seen_gone: Option<Time>,
}

impl From<&Event> for EventAnswer {
    fn from(event: &Event) -> Self {
        let Event { kind, id, native_id, old_native_id, title, tick, reason, at, seen_gone } =
            event.clone();
        Self { kind, sync_id: id, native_id, old_native_id, title, tick, reason, at, seen_gone }
    }
}

/// An item that is missing with nothing concluded yet.
#[derive(Serialize, ToSchema)]
pub(crate) struct PendingItem {
    pub(crate) sync_id: SyncId,
    pub(crate) native_id: String,
    pub(crate) title: String,
    #[schema(value_type = String)]
    pub(crate) evidence: Evidence,
    pub(crate) reason: String,
    since: Time,
    observations: u32,
    needed: u32,
    decides_at: Time,
    would: &'static str,
    probe: Option<ProbeReport>,
    pub(crate) words: String,
}

impl From<&PendingAbsence> for PendingItem {
    fn from(pending: &PendingAbsence) -> Self {
        Self {
            sync_id: pending.id.clone(),
            native_id: pending.native_id.clone(),
            title: pending.title.clone(),
            evidence: pending.evidence,
            reason: pending.seen.clone(),
            since: pending.since,
            observations: pending.observations,
            needed: pending.needed,
            decides_at: pending.decides_at,
            would: pending.would.name(),
            probe: pending.probe.as_ref().map(ProbeReport::from),
            words: pending.describe(),
        }
    }
}

/// What a missing item's own address said.
#[derive(Serialize, ToSchema)]
#[schema(as = ProbeAnswer)]
struct ProbeReport {
    asked: u32,
    last: Time,
    #[schema(value_type = Option<Heard>)]
    answer: Option<&'static str>,
    status: Option<u16>,
    since: Option<Time>,
    silence: Option<String>,
}

impl From<&Probe> for ProbeReport {
    fn from(probe: &Probe) -> Self {
        Self {
            asked: probe.asked,
            last: probe.last,
            answer: probe.heard.map(|heard| if heard.gone { "gone" } else { "there" }),
            status: probe.heard.map(|heard| heard.status),
            since: probe.heard.map(|heard| heard.first),
            silence: probe.silence.clone(),
        }
    }
}
