//! Ledger entries on disk.

use super::sharing::{Seconds, UpdateRecord, history, history_record};
use super::{Record, RecordError, fields, newest};
use crate::model::{Absence, Count, Evidence, Heard, Known, Probe, Standing, SyncId};
use serde::{Deserialize, Serialize};

/// A [`Known`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct KnownRecord {
    id: String,
    native: String,
    native_shown: String,
    published_id: String,
    aliases: Vec<String>,
    title: String,
    link: Option<String>,
    enclosure: Option<String>,
    published: Option<Seconds>,
    updated: Option<Seconds>,
    updates: u32,
    history: Vec<UpdateRecord>,
    tick: Seconds,
    first_seen: Seconds,
    standing: StandingRecord,
    absence: Option<AbsenceRecord>,
    prints: Vec<(u64, u64)>,
    bytes: u64,
    touched: u64,
}

/// The first layout: it says neither since when the item is shown as it is nor what its own
/// address said.
#[derive(Deserialize)]
struct First {
    id: String,
    native: String,
    native_shown: String,
    published_id: String,
    aliases: Vec<String>,
    title: String,
    link: Option<String>,
    enclosure: Option<String>,
    published: Option<Seconds>,
    updated: Option<Seconds>,
    updates: u32,
    history: Vec<UpdateRecord>,
    tick: Seconds,
    first_seen: Seconds,
    standing: StandingRecord,
    absence: Option<FirstAbsence>,
    prints: Vec<(u64, u64)>,
    bytes: u64,
}

#[derive(Deserialize)]
struct FirstAbsence {
    evidence: EvidenceRecord,
    since: Seconds,
    observations: u32,
    backfilled: bool,
}

/// The second layout: without what items' own addresses said.
#[derive(Deserialize)]
struct Second {
    first: First,
    touched: u64,
}

impl Record for KnownRecord {
    const VERSION: u8 = 3;

    fn read(version: u8, payload: &[u8]) -> Result<Self, RecordError> {
        let (first, touched): (First, u64) = match version {
            // Nobody was given a document of that time to come back with.
            1 => (fields(payload)?, 0),
            2 => {
                let second: Second = fields(payload)?;
                (second.first, second.touched)
            }
            _ => return newest(version, payload),
        };
        Ok(Self {
            id: first.id,
            native: first.native,
            native_shown: first.native_shown,
            published_id: first.published_id,
            aliases: first.aliases,
            title: first.title,
            link: first.link,
            enclosure: first.enclosure,
            published: first.published,
            updated: first.updated,
            updates: first.updates,
            history: first.history,
            tick: first.tick,
            first_seen: first.first_seen,
            standing: first.standing,
            absence: first.absence.map(|absence| AbsenceRecord {
                evidence: absence.evidence,
                since: absence.since,
                observations: absence.observations,
                backfilled: absence.backfilled,
                probe: None,
            }),
            prints: first.prints,
            bytes: first.bytes,
            touched,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StandingRecord {
    Current,
    Retired { since: Seconds },
    Deleted { since: Seconds },
}

impl From<&Standing> for StandingRecord {
    fn from(standing: &Standing) -> Self {
        match standing {
            Standing::Current => Self::Current,
            Standing::Retired { since } => Self::Retired { since: (*since).into() },
            Standing::Deleted { since } => Self::Deleted { since: (*since).into() },
        }
    }
}

impl From<StandingRecord> for Standing {
    fn from(record: StandingRecord) -> Self {
        match record {
            StandingRecord::Current => Self::Current,
            StandingRecord::Retired { since } => Self::Retired { since: since.into() },
            StandingRecord::Deleted { since } => Self::Deleted { since: since.into() },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct AbsenceRecord {
    evidence: EvidenceRecord,
    since: Seconds,
    observations: u32,
    backfilled: bool,
    probe: Option<ProbeRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ProbeRecord {
    asked: u32,
    last: Seconds,
    heard: Option<HeardRecord>,
    silence: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct HeardRecord {
    gone: bool,
    status: u16,
    first: Seconds,
    last: Seconds,
}

impl From<&Probe> for ProbeRecord {
    fn from(probe: &Probe) -> Self {
        Self {
            asked: probe.asked,
            last: probe.last.into(),
            heard: probe.heard.map(|heard| HeardRecord {
                gone: heard.gone,
                status: heard.status,
                first: heard.first.into(),
                last: heard.last.into(),
            }),
            silence: probe.silence.clone(),
        }
    }
}

impl From<ProbeRecord> for Probe {
    fn from(record: ProbeRecord) -> Self {
        Self {
            asked: record.asked,
            last: record.last.into(),
            heard: record.heard.map(|heard| Heard {
                gone: heard.gone,
                status: heard.status,
                first: heard.first.into(),
                last: heard.last.into(),
            }),
            silence: record.silence,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum EvidenceRecord {
    Aged,
    Hole,
    Complete,
    Said,
    Unplaced,
}

impl From<&Absence> for AbsenceRecord {
    fn from(absence: &Absence) -> Self {
        let evidence = match absence.evidence {
            Evidence::Aged => EvidenceRecord::Aged,
            Evidence::Hole => EvidenceRecord::Hole,
            Evidence::Complete => EvidenceRecord::Complete,
            Evidence::Said => EvidenceRecord::Said,
            Evidence::Unplaced => EvidenceRecord::Unplaced,
        };
        Self {
            evidence,
            since: absence.since.into(),
            observations: absence.observations,
            backfilled: absence.backfilled,
            probe: absence.probe.as_ref().map(ProbeRecord::from),
        }
    }
}

impl From<AbsenceRecord> for Absence {
    fn from(record: AbsenceRecord) -> Self {
        let evidence = match record.evidence {
            EvidenceRecord::Aged => Evidence::Aged,
            EvidenceRecord::Hole => Evidence::Hole,
            EvidenceRecord::Complete => Evidence::Complete,
            EvidenceRecord::Said => Evidence::Said,
            EvidenceRecord::Unplaced => Evidence::Unplaced,
        };
        Self {
            evidence,
            since: record.since.into(),
            observations: record.observations,
            backfilled: record.backfilled,
            probe: record.probe.map(Into::into),
        }
    }
}

impl From<&Known> for KnownRecord {
    fn from(known: &Known) -> Self {
        Self {
            id: known.id.as_str().to_owned(),
            native: known.native.clone(),
            native_shown: known.native_shown.clone(),
            published_id: known.published_id.clone(),
            aliases: known.aliases.clone(),
            title: known.title.clone(),
            link: known.link.clone(),
            enclosure: known.enclosure.clone(),
            published: known.published.map(Seconds::from),
            updated: known.updated.map(Seconds::from),
            updates: known.updates.value(),
            history: history_record(&known.history),
            tick: known.tick.into(),
            first_seen: known.first_seen.into(),
            standing: (&known.standing).into(),
            absence: known.absence.as_ref().map(AbsenceRecord::from),
            prints: known.prints.clone(),
            bytes: known.bytes,
            touched: known.touched,
        }
    }
}

impl TryFrom<KnownRecord> for Known {
    type Error = RecordError;

    fn try_from(record: KnownRecord) -> Result<Self, RecordError> {
        Ok(Self {
            id: SyncId::new(&record.id)?,
            native: record.native,
            native_shown: record.native_shown,
            published_id: record.published_id,
            aliases: record.aliases,
            title: record.title,
            link: record.link,
            enclosure: record.enclosure,
            published: record.published.map(Into::into),
            updated: record.updated.map(Into::into),
            updates: Count::new(record.updates)?,
            history: history(record.history)?,
            tick: record.tick.into(),
            first_seen: record.first_seen.into(),
            standing: record.standing.into(),
            absence: record.absence.map(Into::into),
            prints: record.prints,
            bytes: record.bytes,
            touched: record.touched,
        })
    }
}
