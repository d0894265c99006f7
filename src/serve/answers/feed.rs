//! A feed, and how it stands: in a list of feeds without its ledger, and by itself with all that is known.

use super::{EventAnswer, PendingItem, ShownOptions};
use crate::holdings::{Discarded, KeptAnswer};
use crate::life::FeedLife;
use crate::readers::PrivateReaders;
use crate::shown;
use serde::Serialize;
use std::sync::Arc;
use tidegate_core::model::{
    ArchiveLayout, ArchiveNote, Backfill, Chain, Character, Decision, Evictions, FeedName,
    FeedRecord, FeedSource, FeedStanding, FeedState, Hold, ListFolder, ListPlace, OnDemand, SyncId,
    Tick, Time, WalkStanding, shown_text,
};
use tidegate_judge::{self as judge, Quiet};
use tidegate_status::schema::numbers;
use tidegate_status::{FeedStatus, ParsedNote, describe};
use utoipa::ToSchema;

describe! {
    /// What was counted of the feed's documents.
    CharacterNumbers: numbers(&Character::default());
}

/// A feed, and how it stands.
#[derive(Serialize, ToSchema)]
#[schema(as = Feed)]
pub(crate) struct FeedAnswer {
    name: FeedName,
    /// The address of the upstream; null where there is none.
    url: Option<String>,
    /// Who added it.
    source: FeedSource,
    /// Whether it is polled and served.
    standing: FeedStanding,
    #[serde(flatten)]
    pub(crate) status: FeedStatus,
    /// Whether only readers with a token may read it.
    private: bool,
    options: ShownOptions,
    pub(crate) backfill: Option<BackfillAnswer>,
    listed: Listed,
    on_demand: Option<MadeFeed>,
    state: Option<StateAnswer>,
    /// Items with unresolved conflicts.
    pub(crate) conflicts: u32,
    /// Since when its polls fail; null where the last one did not.
    failing_since: Option<Time>,
    /// When its publisher was last read without a failure.
    last_read: Option<Time>,
    /// Why the last poll failed; null where it did not.
    last_error: Option<String>,
    /// By how many seconds the feed's tick is ahead of the clock, where that is much.
    tick_lead: Option<u64>,
}

impl FeedAnswer {
    /// What is known of a feed without its ledger.
    pub(crate) fn new(
        status: FeedStatus,
        state: Option<&FeedState>,
        private: bool,
        now: Time,
    ) -> Self {
        let (record, walk) = (Arc::clone(&status.record), status.polling.backfill.as_ref());
        let lead = tidegate_status::tick_lead(state.and_then(|state| state.tick), now);
        Self {
            name: record.name.clone(),
            url: record.has_upstream().then(|| record.url.clone()),
            source: record.source,
            standing: record.standing,
            private,
            options: ShownOptions::new(&record),
            backfill: walk.map(|walk| BackfillAnswer::new(walk, record.options.secret)),
            listed: Listed::new(&record),
            on_demand: record.on_demand.as_ref().map(MadeFeed::from),
            state: state.map(|state| StateAnswer::new(state, status.pending_absences)),
            conflicts: state.map_or(0, |state| state.contested),
            failing_since: status.polling.failing_since(),
            last_read: status.polling.last_read,
            last_error: status.polling.error().map(str::to_owned),
            tick_lead: lead.map(|lead| lead.as_secs()),
            status,
        }
    }
}

/// Where a reader's request made the feed.
#[derive(Serialize, ToSchema)]
struct MadeFeed {
    /// The site of `[[origin]]` or `[[allow]]`.
    site: String,
    /// When it was last asked for, as far as that was written down: once a day.
    asked: Time,
    /// Whether it is paused until it is asked for again.
    let_go: bool,
}

impl From<&OnDemand> for MadeFeed {
    fn from(made: &OnDemand) -> Self {
        Self { site: made.site.clone(), asked: made.asked, let_go: made.is_let_go }
    }
}

/// Where the list of subscriptions has a feed, and what it is called there.
#[derive(Serialize, ToSchema)]
struct Listed {
    title: Option<String>,
    places: Vec<ListedPlace>,
}

#[derive(Serialize, ToSchema)]
struct ListedPlace {
    folder: Vec<String>,
    text: Option<String>,
    title: Option<String>,
}

impl Listed {
    fn new(record: &FeedRecord) -> Self {
        let shown = |text: &str| shown_text(text, record.options.secret);
        let place = |place: &ListPlace| {
            let name = |folder: &ListFolder| {
                folder.label.name().map(|name| shown_text(name, None)).unwrap_or_default()
            };
            let label = record.shown_label(Some(place));
            let folder = place.folders.iter().map(name).collect();
            ListedPlace { folder, text: label.text, title: label.title }
        };
        Self {
            title: record.enrolment.title.as_deref().map(shown),
            places: record.enrolment.places.iter().map(place).collect(),
        }
    }
}

/// The walk through older documents.
#[derive(Serialize, ToSchema)]
#[schema(as = Backfill)]
pub(crate) struct BackfillAnswer {
    pub(crate) state: WalkStanding,
    layout: Option<ArchiveLayout>,
    pub(crate) documents: u32,
    pub(crate) items: u32,
    pub(crate) known: u32,
    bytes: u64,
    pub(crate) next: Option<String>,
    failures: u32,
    pub(crate) started: Time,
    ended: Option<Time>,
    pub(crate) note: Option<String>,
}

impl BackfillAnswer {
    /// How far a walk has come; `secret` is what the operator says of the feed's address.
    fn new(walk: &Backfill, secret: Option<bool>) -> Self {
        let next = walk.next.as_deref().filter(|_| walk.is_walking());
        let (next, note) = (next.map(|next| shown(next, secret)), walk.note.clone());
        let &Backfill { standing: state, trail: layout, documents, items, known, bytes, .. } = walk;
        let &Backfill { failures, started, ended, .. } = walk;
        Self { state, layout, documents, items, known, bytes, next, failures, started, ended, note }
    }
}

/// What was learned of how the feed works.
#[derive(Serialize, ToSchema)]
#[schema(as = Character)]
pub(crate) struct CharacterAnswer {
    #[serde(flatten)]
    #[schema(value_type = CharacterNumbers)]
    numbers: Character,
    pub(crate) words: String,
}

impl From<&Character> for CharacterAnswer {
    fn from(character: &Character) -> Self {
        Self { numbers: character.clone(), words: judge::character_words(character) }
    }
}

/// A document that is held back.
#[derive(Serialize, ToSchema)]
#[schema(as = Hold)]
pub(crate) struct HoldAnswer {
    pub(crate) reason: String,
    kind: String,
    since: Time,
    observations: u32,
    needed: u32,
    believed_at: Time,
    documents: u32,
    kept: u32,
    decision: Option<Decision>,
    pub(crate) words: String,
}

impl From<&Hold> for HoldAnswer {
    fn from(hold: &Hold) -> Self {
        let terms = judge::hold_terms(&hold.kind);
        Self {
            reason: hold.reason.clone(),
            kind: hold.kind.clone(),
            since: hold.since,
            observations: hold.observations,
            needed: judge::HOLD_LOOKS,
            believed_at: hold.since.plus(terms.least),
            documents: hold.documents,
            kept: hold.kept,
            decision: hold.decision,
            words: judge::hold_words(hold),
        }
    }
}

/// How many items of a feed are retired where so many are missing: neither is in the reader view, and both live.
pub(crate) const fn retired(state: &FeedState, missing: u32) -> u32 {
    state.living.saturating_sub(state.current).saturating_sub(missing)
}

/// What the store knows of a feed.
#[derive(Serialize, ToSchema)]
#[schema(as = FeedState)]
struct StateAnswer {
    revision: u64,
    until: Option<Tick>,
    window: SyncWindow,
    complete_since: Option<Tick>,
    shown: Time,
    format: &'static str,
    says_complete: bool,
    counts: ItemCounts,
    evicted: Evictions,
    archives: ArchiveTotals,
    character: CharacterAnswer,
    hold: Option<HoldAnswer>,
    ripens: Option<Time>,
}

/// The window of the sync view.
#[derive(Serialize, ToSchema)]
struct SyncWindow {
    since: Option<Tick>,
    until: Option<Tick>,
}

#[derive(Serialize, ToSchema)]
struct ItemCounts {
    current: u32,
    living: u32,
    /// Not in the publisher's document any more, and not decided about yet.
    missing: u32,
    retired: u32,
    tombstones: u32,
}

#[derive(Serialize, ToSchema)]
struct ArchiveTotals {
    kept: u64,
    dropped: u64,
    bytes: u64,
    unsealed: u32,
    sealed_until: Option<Tick>,
}

impl StateAnswer {
    /// What is known of a feed of which so many items are missing.
    fn new(state: &FeedState, missing: u32) -> Self {
        let &FeedState { current, living, tombstones, .. } = state;
        let &Chain { first: dropped, bytes, unsealed, sealed: sealed_until, .. } = &state.archives;
        let (kept, retired) = (state.archives.kept(), retired(state, missing));
        Self {
            revision: state.revision.0,
            until: state.tick,
            window: SyncWindow { since: state.window_start, until: state.tick },
            complete_since: state.complete_start,
            shown: state.updated_at,
            format: state.format.name(),
            says_complete: state.says_complete,
            counts: ItemCounts { current, living, missing, retired, tombstones },
            evicted: state.evictions,
            archives: ArchiveTotals { kept, dropped, bytes, unsealed, sealed_until },
            character: (&state.character).into(),
            hold: state.hold.as_ref().map(HoldAnswer::from),
            ripens: state.next_decision_at,
        }
    }
}

/// All that is known of a feed.
#[derive(Serialize, ToSchema)]
pub(crate) struct FeedDetail {
    #[serde(flatten)]
    pub(crate) feed: FeedAnswer,
    /// Who may read it, where it is private.
    pub(crate) readers: Option<PrivateReaders>,
    pub(crate) events: Vec<EventAnswer>,
    /// Why the feed is as it is, in a sentence.
    pub(crate) why: String,
    pub(crate) pending: Vec<PendingItem>,
    pub(crate) hold: Option<HoldAnswer>,
    pub(crate) character: Option<CharacterAnswer>,
    /// What was learned of changes that are no news.
    pub(crate) noise: Option<Vec<String>>,
    pub(crate) no_news: Vec<UnseenChange>,
    pub(crate) discarded: Discarded,
    pub(crate) document: Option<ParsedNote>,
    pub(crate) views: FeedViews,
    pub(crate) kept: KeptAnswer,
    /// What the page is made of besides: the state, the oldest archive, the life as a picture shows it, and `why` without
    /// what is said of a held document.
    #[serde(skip)]
    pub(crate) state: Option<FeedState>,
    #[serde(skip)]
    pub(crate) oldest: Option<ArchiveNote>,
    #[serde(skip)]
    pub(crate) life: Option<FeedLife>,
    #[serde(skip)]
    pub(crate) why_beside_hold: String,
}

/// An item that changed without making a version, and why.
#[derive(Serialize, ToSchema)]
pub(crate) struct UnseenChange {
    pub(crate) sync_id: SyncId,
    native_id: String,
    pub(crate) title: String,
    pub(crate) words: Vec<String>,
}

impl From<Quiet> for UnseenChange {
    fn from(quiet: Quiet) -> Self {
        let Quiet { id, native_id, title, words } = quiet;
        Self { sync_id: id, native_id, title, words }
    }
}

/// The addresses of a feed's documents.
#[derive(Serialize, ToSchema)]
pub(crate) struct FeedViews {
    pub(crate) reader: String,
    pub(crate) sync: String,
    pub(crate) complete: String,
    pub(crate) conflicts: String,
    pub(crate) archive: Option<String>,
}

/// The feed after an action. If the store cannot be read right after it, the name alone: the action was carried out.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ActedFeed {
    Read(Box<FeedDetail>),
    Unread { name: FeedName },
}
