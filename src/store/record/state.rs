//! Feed states on disk, and what is left of purged feeds.

use super::archive::archive_id;
use super::markup::FormatRecord;
use super::noise::FeedNoiseRecord;
use super::sharing::Seconds;
use super::{Record, RecordError, fields_and, newest};
use crate::model::{
    Chain, Character, Decision, FeedState, FlawHistory, Gap, HeadHistory, Hold, Lineage, Made,
    Revision, Stretch,
};
use crate::store::floor::Floor;
use serde::{Deserialize, Serialize};

/// A [`FeedState`], and which events are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct StateRecord {
    revision: u64,
    tick: Option<Seconds>,
    window_start: Option<Seconds>,
    complete_start: Option<Seconds>,
    render: u64,
    shown: Seconds,
    format: FormatRecord,
    says_complete: bool,
    wire: u128,
    body: u128,
    head: u64,
    site: Option<String>,
    character: CharacterRecord,
    hold: Option<HoldRecord>,
    ripens: Option<Seconds>,
    current: u32,
    living: u32,
    tombstones: u32,
    minted: u64,
    /// The number of the next event; those kept end before it.
    pub(in crate::store) next_event: u64,
    noise: FeedNoiseRecord,
    /// Where the last document came from, the one that is held, and what is kept of such.
    sources: SourcesRecord,
    /// How new items came and others left.
    came: [u32; 4],
    deltas_from: u64,
    /// Marks, and the render revisions that they found.
    lineage: Vec<(u32, u64)>,
    archives: ChainRecord,
    /// The first archive that has the last state of an item that lives, as far as is known.
    free: u64,
    /// Up to where the upstream's shared items are known.
    upstream_until: Option<String>,
    /// How often items of a purged feed of this name were updated at most.
    updates_before: u32,
    /// What is missing since the store was brought back from a copy: from when, until when.
    gap: Option<(Seconds, Seconds)>,
    /// Since when documents come from the address that they come from now.
    source_since: Option<Seconds>,
    /// How far the feed is known for ill-formed documents, and what was told of its head.
    formed: FormedRecord,
}

/// A [`FlawHistory`] and a [`HeadHistory`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct FormedRecord {
    rows: [u8; 6],
    doubted: Vec<u64>,
    body: u64,
    charset: Option<String>,
    told: u64,
    latest: u64,
    shape: u64,
    row: u8,
    last: Option<Seconds>,
    made: Option<(Seconds, u32)>,
}

impl FormedRecord {
    fn new(flaws: &FlawHistory, told: &HeadHistory) -> Self {
        Self {
            rows: flaws.rows,
            doubted: flaws.doubted.clone(),
            body: flaws.body,
            charset: flaws.charset.clone(),
            told: told.told,
            latest: told.latest,
            shape: told.shape,
            row: told.row,
            last: told.last.map(Seconds::from),
            made: told.made.map(|made| (made.since.into(), made.versions)),
        }
    }

    fn parts(self) -> (FlawHistory, HeadHistory) {
        let Self { rows, doubted, body, charset, .. } = self;
        let told = HeadHistory {
            told: self.told,
            latest: self.latest,
            shape: self.shape,
            row: self.row,
            last: self.last.map(Into::into),
            made: self.made.map(|(since, versions)| Made { since: since.into(), versions }),
        };
        (FlawHistory { rows, doubted, body, charset }, told)
    }
}

impl Record for StateRecord {
    const VERSION: u8 = 7;

    fn read(version: u8, payload: &[u8]) -> Result<Self, RecordError> {
        match version {
            1 => {}
            // The second lacks what is known of archives and items that live.
            2 => return fields_and(payload, &(0_u64, (None::<String>, no_past()))),
            // The third lacks how far a sharing upstream is known.
            3 => return fields_and(payload, &(None::<String>, no_past())),
            // The fourth lacks what a purge or a copy left.
            4 => return fields_and(payload, &no_past()),
            // The fifth lacks since when documents come from their address.
            5 => return fields_and(payload, &(NO_MOVE, FormedRecord::default())),
            // The sixth lacks how its documents are formed and what was told of its head.
            6 => return fields_and(payload, &FormedRecord::default()),
            _ => return newest(version, payload),
        }
        // The first layout ends with the number of the next event.
        let judged = (FeedNoiseRecord::default(), SourcesRecord::default(), [0_u32; 4]);
        let shown = (0_u64, Vec::<(u32, u64)>::new(), ChainRecord::default());
        let mut first: Self =
            fields_and(payload, &(judged, shown, (0_u64, None::<String>, no_past())))?;
        // Everything that is known is to be sealed.
        first.archives.unsealed = first.living.saturating_add(first.tombstones);
        Ok(first)
    }
}

/// What a purge and a copy left, since when documents come from their address, and how they are formed,
/// where nothing is known of that.
fn no_past() -> (u32, Option<(Seconds, Seconds)>, Option<Seconds>, FormedRecord) {
    (0, None, NO_MOVE, FormedRecord::default())
}

/// Since when documents come from their address, where no other was polled.
const NO_MOVE: Option<Seconds> = None;

/// A [`Chain`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct ChainRecord {
    sealed: Option<Seconds>,
    unsealed: u32,
    newest: Option<String>,
    first: u64,
    next: u64,
    bytes: u64,
}

impl From<&Chain> for ChainRecord {
    fn from(chain: &Chain) -> Self {
        Self {
            sealed: chain.sealed.map(Seconds::from),
            unsealed: chain.unsealed,
            newest: chain.newest.as_ref().map(|id| id.as_str().to_owned()),
            first: chain.first,
            next: chain.next,
            bytes: chain.bytes,
        }
    }
}

impl TryFrom<ChainRecord> for Chain {
    type Error = RecordError;

    fn try_from(record: ChainRecord) -> Result<Self, RecordError> {
        Ok(Self {
            sealed: record.sealed.map(Into::into),
            unsealed: record.unsealed,
            newest: record.newest.as_deref().map(archive_id).transpose()?,
            first: record.first,
            next: record.next,
            free: 0,
            bytes: record.bytes,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct CharacterRecord {
    documents: u32,
    largest: u32,
    kept_order: u32,
    reordered: u32,
    grew_above: u32,
    grew_below: u32,
    holes_returned: u32,
    left_middle: u32,
    left_end: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HoldRecord {
    reason: String,
    kind: String,
    since: Seconds,
    observations: u32,
    documents: u32,
    body: u64,
    decision: Option<bool>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SourcesRecord {
    last: u64,
    held: u64,
    kept: u32,
}

impl From<&Hold> for HoldRecord {
    fn from(hold: &Hold) -> Self {
        Self {
            reason: hold.reason.clone(),
            kind: hold.kind.clone(),
            since: hold.since.into(),
            observations: hold.observations,
            documents: hold.documents,
            body: hold.body,
            decision: hold.decision.map(|d| d == Decision::Release),
        }
    }
}

impl HoldRecord {
    fn with(self, sources: &SourcesRecord) -> Hold {
        Hold {
            reason: self.reason,
            kind: self.kind,
            since: self.since.into(),
            observations: self.observations,
            documents: self.documents,
            body: self.body,
            source: sources.held,
            kept: sources.kept,
            decision: self.decision.map(
                |release| {
                    if release { Decision::Release } else { Decision::Drop }
                },
            ),
        }
    }
}

impl From<&Character> for CharacterRecord {
    fn from(character: &Character) -> Self {
        Self {
            documents: character.documents,
            largest: character.largest,
            kept_order: character.kept_order,
            reordered: character.reordered,
            grew_above: character.grew_above,
            grew_below: character.grew_below,
            holes_returned: character.holes_returned,
            left_middle: character.left_middle,
            left_end: character.left_end,
        }
    }
}

/// How new items came and others left: the counts that the first layout does not have.
const fn came(character: &Character) -> [u32; 4] {
    [character.came_alone, character.came_sliding, character.came_swapping, character.went_alone]
}

impl CharacterRecord {
    const fn with(self, came: [u32; 4]) -> Character {
        let record = self;
        let [came_alone, came_sliding, came_swapping, went_alone] = came;
        Character {
            came_alone,
            came_sliding,
            came_swapping,
            went_alone,
            documents: record.documents,
            largest: record.largest,
            kept_order: record.kept_order,
            reordered: record.reordered,
            grew_above: record.grew_above,
            grew_below: record.grew_below,
            holes_returned: record.holes_returned,
            left_middle: record.left_middle,
            left_end: record.left_end,
        }
    }
}

impl StateRecord {
    /// A state, in a feed whose next event bears the number `next_event`.
    pub(in crate::store) fn new(state: &FeedState, next_event: u64) -> Self {
        Self {
            revision: state.revision.0,
            tick: state.tick.map(Seconds::from),
            window_start: state.window_start.map(Seconds::from),
            complete_start: state.complete_start.map(Seconds::from),
            render: state.render,
            shown: state.shown.into(),
            format: state.format.into(),
            says_complete: state.says_complete,
            wire: state.wire,
            body: state.body,
            head: state.head,
            site: state.site.clone(),
            character: (&state.character).into(),
            hold: state.hold.as_ref().map(HoldRecord::from),
            ripens: state.ripens.map(Seconds::from),
            current: state.current,
            living: state.living,
            tombstones: state.tombstones,
            minted: state.minted,
            next_event,
            noise: (&state.noise).into(),
            sources: SourcesRecord {
                last: state.source,
                held: state.hold.as_ref().map_or(0, |hold| hold.source),
                kept: state.hold.as_ref().map_or(0, |hold| hold.kept),
            },
            came: came(&state.character),
            archives: (&state.archives).into(),
            free: state.archives.free,
            upstream_until: state.upstream_until.clone(),
            updates_before: state.updates_before,
            gap: state.gap.map(|gap| (gap.since.into(), gap.until.into())),
            source_since: state.source_since.map(Seconds::from),
            formed: FormedRecord::new(&state.flaws, &state.told),
            deltas_from: state.deltas_from,
            lineage: state.lineage.stretches().iter().map(|s| (s.mark, s.after)).collect(),
        }
    }
}

impl TryFrom<StateRecord> for FeedState {
    type Error = RecordError;

    fn try_from(record: StateRecord) -> Result<Self, RecordError> {
        let (flaws, told) = record.formed.parts();
        Ok(Self {
            flaws,
            told,
            revision: Revision(record.revision),
            tick: record.tick.map(Into::into),
            window_start: record.window_start.map(Into::into),
            complete_start: record.complete_start.map(Into::into),
            render: record.render,
            shown: record.shown.into(),
            format: record.format.into(),
            says_complete: record.says_complete,
            wire: record.wire,
            body: record.body,
            head: record.head,
            site: record.site,
            character: record.character.with(record.came),
            source: record.sources.last,
            source_since: record.source_since.map(Into::into),
            noise: record.noise.into(),
            hold: record.hold.map(|hold| hold.with(&record.sources)),
            ripens: record.ripens.map(Into::into),
            current: record.current,
            living: record.living,
            tombstones: record.tombstones,
            minted: record.minted,
            deltas_from: record.deltas_from,
            upstream_until: record.upstream_until,
            updates_before: record.updates_before,
            gap: record.gap.map(|(since, until)| Gap { since: since.into(), until: until.into() }),
            lineage: Lineage::new(
                record.lineage.into_iter().map(|(mark, after)| Stretch { mark, after }),
            ),
            archives: Chain { free: record.free, ..record.archives.try_into()? },
        })
    }
}

/// A [`Floor`], and whether the purged feed's data is still being removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct FloorRecord {
    revision: u64,
    tick: Option<Seconds>,
    render: u64,
    shown: Seconds,
    /// Some of the purged feed's data may still be there.
    pub(in crate::store) sweeping: bool,
    /// How often an item of it was updated at most.
    updates: u32,
}

impl Record for FloorRecord {
    const VERSION: u8 = 2;

    fn read(version: u8, payload: &[u8]) -> Result<Self, RecordError> {
        match version {
            // The first lacks how often items were updated.
            1 => fields_and(payload, &0_u32),
            _ => newest(version, payload),
        }
    }
}

impl FloorRecord {
    /// The marks of a purged feed.
    pub(in crate::store) fn new(floor: &Floor, sweeping: bool) -> Self {
        Self {
            revision: floor.revision.0,
            tick: floor.tick.map(Seconds::from),
            render: floor.render,
            shown: floor.shown.into(),
            sweeping,
            updates: floor.updates,
        }
    }

    /// The marks.
    pub(in crate::store) fn floor(&self) -> Floor {
        Floor {
            revision: Revision(self.revision),
            tick: self.tick.map(Into::into),
            render: self.render,
            shown: self.shown.into(),
            updates: self.updates,
        }
    }
}
