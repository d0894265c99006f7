//! Ledger entries on disk.

use super::extras::ExtrasRecord;
use super::noise::NoiseRecord;
use super::sharing::{Seconds, UpdateRecord, history, history_record};
use super::{Record, RecordError, fields_and, newest};
use crate::model::{
    Absence, Count, Doubts, Evidence, FeedName, Heard, Known, Noise, Origin, Probe, Standing,
    SyncId,
};
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
    noise: NoiseRecord,
    /// What was seen of the absence, in words.
    seen: String,
    /// The doubts that are open of it.
    doubts: u8,
    touched: u64,
    /// What the address of a missing item said.
    probe: Option<ProbeRecord>,
    /// When it last came into the document; nothing where it never left it.
    came: Option<Seconds>,
    /// Who keeps it, and what is in conflict.
    shared: SharedRecord,
    /// How references were resolved in the texts of its fingerprints; since the seventh layout.
    references: ReferencesRecord,
}

/// Which references by name were resolved in the texts of fingerprints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum ReferencesRecord {
    /// Perhaps few, as in all earlier layouts.
    #[default]
    Few,
    All,
}

/// What is kept of an item that is shared; the default of one that is not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SharedRecord {
    origin: OriginRecord,
    noconflicts: Option<bool>,
    conflicts: u32,
    /// Since the sixth layout, as what follows.
    sse091: Option<bool>,
    extras: Option<Box<ExtrasRecord>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
enum OriginRecord {
    #[default]
    Observed,
    Upstream,
    Local,
    Feed(String),
}

impl From<&Origin> for OriginRecord {
    fn from(origin: &Origin) -> Self {
        match origin {
            Origin::Observed => Self::Observed,
            Origin::Upstream => Self::Upstream,
            Origin::Local => Self::Local,
            Origin::Feed(feed) => Self::Feed(feed.as_str().to_owned()),
        }
    }
}

impl TryFrom<OriginRecord> for Origin {
    type Error = RecordError;

    fn try_from(record: OriginRecord) -> Result<Self, RecordError> {
        Ok(match record {
            OriginRecord::Observed => Self::Observed,
            OriginRecord::Upstream => Self::Upstream,
            OriginRecord::Local => Self::Local,
            OriginRecord::Feed(feed) => Self::Feed(FeedName::new(&feed)?),
        })
    }
}

/// What the fifth layout lacks: which items are known by SSE 0.91 alone, and what is said beyond SSE.
type Beyond = (Option<bool>, Option<ExtrasRecord>, ReferencesRecord);
/// What the fourth lacks: nobody shared an item then.
type Sharing = (SharedRecord, ReferencesRecord);
/// What the third layout lacks.
type Came = (Option<Seconds>, Sharing);
/// What the second lacks.
type Probed = (Option<ProbeRecord>, Came);
/// What the first lacks.
type Since = (NoiseRecord, String, u8, u64, Probed);

impl Record for KnownRecord {
    const VERSION: u8 = 7;

    fn read(version: u8, payload: &[u8]) -> Result<Self, RecordError> {
        match version {
            1 => fields_and(payload, &Since::default()),
            2 => fields_and(payload, &Probed::default()),
            3 => fields_and(payload, &Came::default()),
            4 => fields_and(payload, &Sharing::default()),
            5 => fields_and(payload, &Beyond::default()),
            6 => fields_and(payload, &ReferencesRecord::default()),
            _ => newest(version, payload),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StandingRecord {
    Current,
    Retired {
        since: Seconds,
    },
    Deleted {
        since: Seconds,
    },
    Redacted {
        since: Seconds,
    },
    /// Since the sixth layout.
    Discarded {
        since: Seconds,
    },
}

impl From<&Standing> for StandingRecord {
    fn from(standing: &Standing) -> Self {
        match standing {
            Standing::Current => Self::Current,
            Standing::Retired { since } => Self::Retired { since: (*since).into() },
            Standing::Deleted { since } => Self::Deleted { since: (*since).into() },
            Standing::Redacted { since } => Self::Redacted { since: (*since).into() },
            Standing::Discarded { since } => Self::Discarded { since: (*since).into() },
        }
    }
}

impl From<StandingRecord> for Standing {
    fn from(record: StandingRecord) -> Self {
        match record {
            StandingRecord::Current => Self::Current,
            StandingRecord::Retired { since } => Self::Retired { since: since.into() },
            StandingRecord::Deleted { since } => Self::Deleted { since: since.into() },
            StandingRecord::Redacted { since } => Self::Redacted { since: since.into() },
            StandingRecord::Discarded { since } => Self::Discarded { since: since.into() },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct AbsenceRecord {
    evidence: EvidenceRecord,
    since: Seconds,
    observations: u32,
    backfilled: bool,
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
    Mass,
    Passed,
}

impl From<&Absence> for AbsenceRecord {
    fn from(absence: &Absence) -> Self {
        let evidence = match absence.evidence {
            Evidence::Aged => EvidenceRecord::Aged,
            Evidence::Hole => EvidenceRecord::Hole,
            Evidence::Complete => EvidenceRecord::Complete,
            Evidence::Said => EvidenceRecord::Said,
            Evidence::Unplaced => EvidenceRecord::Unplaced,
            Evidence::Mass => EvidenceRecord::Mass,
            Evidence::Passed => EvidenceRecord::Passed,
        };
        Self {
            evidence,
            since: absence.since.into(),
            observations: absence.observations,
            backfilled: absence.backfilled,
        }
    }
}

impl AbsenceRecord {
    fn with(self, seen: String, doubts: u8, probe: Option<ProbeRecord>) -> Absence {
        let evidence = match self.evidence {
            EvidenceRecord::Aged => Evidence::Aged,
            EvidenceRecord::Hole => Evidence::Hole,
            EvidenceRecord::Complete => Evidence::Complete,
            EvidenceRecord::Said => Evidence::Said,
            EvidenceRecord::Unplaced => Evidence::Unplaced,
            EvidenceRecord::Mass => Evidence::Mass,
            EvidenceRecord::Passed => Evidence::Passed,
        };
        Absence {
            evidence,
            since: self.since.into(),
            observations: self.observations,
            backfilled: self.backfilled,
            doubts: Doubts::from_bits(doubts),
            seen,
            probe: probe.map(Into::into),
        }
    }
}

impl KnownRecord {
    /// Whether the item was discarded, so that no view shows it.
    pub(in crate::store) const fn is_discarded(&self) -> bool {
        matches!(self.standing, StandingRecord::Discarded { .. })
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
            noise: (&known.noise).into(),
            seen: known.absence.as_ref().map(|a| a.seen.clone()).unwrap_or_default(),
            doubts: known.absence.as_ref().map_or(0, |a| a.doubts.bits()),
            touched: known.touched,
            probe: known.absence.as_ref().and_then(|a| a.probe.as_ref()).map(Into::into),
            came: (known.came != known.first_seen).then(|| known.came.into()),
            shared: SharedRecord {
                origin: (&known.origin).into(),
                noconflicts: known.noconflicts,
                conflicts: known.conflicts,
                sse091: known.sse091,
                extras: known.extras.as_deref().map(|extras| Box::new(extras.into())),
            },
            references: match known.noise.few_references {
                true => ReferencesRecord::Few,
                false => ReferencesRecord::All,
            },
        }
    }
}

impl TryFrom<KnownRecord> for Known {
    type Error = RecordError;

    fn try_from(record: KnownRecord) -> Result<Self, RecordError> {
        let extras = record.shared.extras.map(|extras| (*extras).try_into()).transpose()?;
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
            noconflicts: record.shared.noconflicts,
            conflicts: record.shared.conflicts,
            sse091: record.shared.sse091,
            extras: extras.map(Box::new),
            origin: record.shared.origin.try_into()?,
            tick: record.tick.into(),
            first_seen: record.first_seen.into(),
            came: record.came.unwrap_or(record.first_seen).into(),
            standing: record.standing.into(),
            absence: record.absence.map(|a| a.with(record.seen, record.doubts, record.probe)),
            prints: record.prints,
            bytes: record.bytes,
            noise: Noise {
                few_references: record.references == ReferencesRecord::Few,
                ..record.noise.into()
            },
            touched: record.touched,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Time;

    /// The number of each standing is part of the layout.
    #[test]
    fn standings_keep_their_numbers() {
        let since = Time::from_unix(1);
        for (number, standing) in [
            (0, Standing::Current),
            (1, Standing::Retired { since }),
            (2, Standing::Deleted { since }),
            (3, Standing::Redacted { since }),
            (4, Standing::Discarded { since }),
        ] {
            let bytes = postcard::to_stdvec(&StandingRecord::from(&standing)).unwrap();
            assert_eq!(bytes.first(), Some(&number));
        }
    }
}
