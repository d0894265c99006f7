//! A commit while it is being made.

mod verdict;

use super::updates::{count_on, updated};
use super::{Observation, rate_limited, stand_in};
use crate::news;
use std::collections::BTreeMap;
use tidegate_core::model::{
    Entry, Event, EventKind, FeedState, HeldEntry, ItemStatus, LedgerEntry, Markup, NewVersion,
    Shared, Skeleton, Snapshot, Stamp, SyncId, Tick, Time, Version,
};

/// Collects what changes; knows the tick that a version would get.
pub(super) struct ChangeDraft<'a> {
    pub(super) observation: &'a Observation<'a>,
    pub(super) snapshot: &'a Snapshot,
    pub(super) state: FeedState,
    tick: Tick,
    /// Changed ledger entries by their index; new ones follow behind the old.
    pub(super) known: BTreeMap<usize, LedgerEntry>,
    next_index: usize,
    versions: BTreeMap<SyncId, NewVersion>,
    latest: BTreeMap<SyncId, Markup>,
    pub(super) redacted: Vec<SyncId>,
    /// What is in conflict, where that changes.
    pub(super) conflicts: BTreeMap<SyncId, Vec<Version<Option<Markup>>>>,
    events: Vec<Event>,
    pub(super) order: Option<Vec<SyncId>>,
    pub(super) skeleton: Option<Skeleton>,
    /// What is kept of held documents, where it changes.
    pub(super) kept: Option<Vec<HeldEntry>>,
    /// Whether something that is shown changes.
    pub(super) shown_changed: bool,
    /// Whether its versions go into an archive at once: the reader view never shows them.
    pub(super) seals_now: bool,
    /// Whether the windows of sync and complete view begin with it, so that every subscriber reads the
    /// complete feed.
    pub(super) begins_window: bool,
    /// Whether a change of the feed's head is told: it takes a tick, with or without an item.
    pub(super) tells_head: bool,
}

/// The part of an event that its item does not contain.
pub(super) struct EventDetails {
    pub(super) kind: EventKind,
    pub(super) reason: String,
    pub(super) old_native_id: Option<String>,
    pub(super) seen_gone: Option<Time>,
}

impl EventDetails {
    pub(super) fn new(kind: EventKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), old_native_id: None, seen_gone: None }
    }
}

impl<'a> ChangeDraft<'a> {
    pub(super) fn new(observation: &'a Observation<'a>, snapshot: &'a Snapshot) -> Self {
        Self {
            observation,
            snapshot,
            state: snapshot.state.clone(),
            tick: Tick::next(observation.now, snapshot.state.tick),
            known: BTreeMap::new(),
            next_index: snapshot.known.len(),
            versions: BTreeMap::new(),
            latest: BTreeMap::new(),
            redacted: Vec::new(),
            conflicts: BTreeMap::new(),
            events: Vec::new(),
            order: None,
            skeleton: None,
            kept: None,
            shown_changed: false,
            seals_now: false,
            begins_window: false,
            tells_head: false,
        }
    }

    /// The item as it stands in this draft.
    pub(super) fn item(&self, index: usize) -> Option<&LedgerEntry> {
        self.known.get(&index).or_else(|| self.snapshot.known.get(index))
    }

    pub(super) fn change(&mut self, index: usize, how: impl FnOnce(&mut LedgerEntry)) {
        if let Some(mut known) = self.item(index).cloned() {
            how(&mut known);
            self.known.insert(index, known);
        }
    }

    /// Adds an item to the ledger, as created by this gateway now (SSE 1.0 section 3.1). Returns its
    /// index.
    pub(super) fn create(
        &mut self,
        known: LedgerEntry,
        markup: Markup,
        details: EventDetails,
    ) -> usize {
        self.put_version(None, known, Some(markup), details)
    }

    /// Puts a version of an item into this commit; a new item gets the next index. Returns the index.
    fn put_version(
        &mut self,
        index: Option<usize>,
        known: LedgerEntry,
        markup: Option<Markup>,
        details: EventDetails,
    ) -> usize {
        let index = index.unwrap_or(self.next_index);
        self.next_index = self.next_index.max(index + 1);
        self.version(known.id.clone(), markup, &details.reason);
        self.known.insert(index, LedgerEntry { tick: self.tick, ..known });
        self.note_event(index, details, Some(self.tick));
        index
    }

    /// Makes a new version of an item: an update, a deletion (without bytes) or an un-deletion
    /// (SSE 1.0 section 3.2). Returns false if the item can be updated no further; one that had left
    /// the ledger does not come back then.
    pub(super) fn update(
        &mut self,
        index: usize,
        standing: ItemStatus,
        markup: Option<Markup>,
        details: EventDetails,
    ) -> bool {
        self.next_version(index, markup, details, |known| {
            known.standing = standing;
            known.absence = None;
        })
    }

    /// Adopts a version that was made elsewhere (SSE 1.0 section 3.3), with the versions in conflict with it; `index`:
    /// the item of the ledger, if it is not new. `known` has the version already. Returns the item's index.
    pub(super) fn adopt_version(
        &mut self,
        index: Option<usize>,
        known: LedgerEntry,
        markup: Option<Markup>,
        conflicts: Vec<Version<Option<Markup>>>,
        details: EventDetails,
    ) -> usize {
        let known = self.with_conflicts(known, conflicts);
        // The reader view never shows it.
        self.seals_now |= matches!(known.standing, ItemStatus::Retired { .. });
        self.put_version(index, known, markup, details)
    }

    /// The item with other versions in conflict with it.
    fn with_conflicts(
        &mut self,
        mut known: LedgerEntry,
        conflicts: Vec<Version<Option<Markup>>>,
    ) -> LedgerEntry {
        if known.conflicts > 0 || !conflicts.is_empty() {
            known.conflicts = u32::try_from(conflicts.len()).unwrap_or(u32::MAX);
            self.conflicts.insert(known.id.clone(), conflicts);
        }
        known
    }

    /// Sets what is in conflict with an item of the ledger.
    pub(super) fn set_conflicts(&mut self, at: usize, conflicts: Vec<Version<Option<Markup>>>) {
        if let Some(known) = self.item(at).cloned() {
            let known = self.with_conflicts(known, conflicts);
            self.known.insert(at, known);
        }
    }

    /// Takes an item out of the reader view without a version: its publisher does not list it any more.
    pub(super) fn retire(&mut self, at: usize, reason: impl Into<String>) {
        let since = self.observation.now;
        self.change(at, |item| {
            item.standing = ItemStatus::Retired { since };
            item.absence = None;
        });
        self.event(at, EventDetails::new(EventKind::Retired, reason));
    }

    /// Makes a tombstone of an item; of one that had left the ledger it says only the native id and when
    /// it was published, for archives alone have more of it. Returns false if it can be updated no
    /// further.
    pub(super) fn delete(&mut self, at: usize, details: EventDetails) -> bool {
        let left = self.item(at).filter(|known| known.is_evicted()).map(stand_in::named);
        if let Some(markup) = &left {
            let bytes = news::hash_markup(markup);
            self.change(at, |item| (item.bytes, item.noise.scheme) = (bytes, news::SCHEME));
        }
        self.update(at, ItemStatus::Deleted { since: self.observation.now }, left, details)
    }

    /// What is in conflict with an item's current version in this draft.
    pub(super) fn conflicts_of(&self, id: &SyncId) -> Vec<Version<Option<Markup>>> {
        if let Some(conflicts) = self.conflicts.get(id) {
            return conflicts.clone();
        }
        let stored = self.snapshot.conflicts.get(id).map_or(&[][..], Vec::as_slice);
        stored.iter().map(|version| version.with(Some(version.data.clone()))).collect()
    }

    /// How many items the ledger has in this draft.
    pub(super) const fn size(&self) -> usize {
        self.next_index
    }

    /// Where the items stand for which `wanted` holds.
    pub(super) fn positions(&self, wanted: impl Fn(&LedgerEntry) -> bool) -> Vec<usize> {
        let all = 0..self.next_index;
        all.filter(|at| self.item(*at).is_some_and(&wanted)).collect()
    }

    /// Publishes a change that waited: makes a version of the item's newest bytes.
    pub(super) fn publish_waiting(&mut self, index: usize, details: EventDetails) -> bool {
        self.next_version(index, None, details, |_| {})
    }

    fn next_version(
        &mut self,
        index: usize,
        markup: Option<Markup>,
        details: EventDetails,
        how: impl FnOnce(&mut LedgerEntry),
    ) -> bool {
        let Some(mut known) = self.item(index).cloned() else { return false };
        let Some(next) = updated(&known, self.stamp(), self.max_lost_updates(&known)) else {
            if known.is_evicted() {
                self.known.remove(&index);
            }
            return false;
        };
        (known.updates, known.history) = next;
        self.count_version(&mut known);
        how(&mut known);
        self.put_version(Some(index), known, markup, details);
        true
    }

    /// Notes that an update is being made here.
    fn count_version(&self, known: &mut LedgerEntry) {
        // SSE 0.91 section 4.2 step 4.
        known.sse091 = known.sse091.map(|_| false);
        rate_limited::made(&mut known.noise, self.observation.running_now);
    }

    /// Makes a version of what the sharing algebra made of an item (SSE 1.0 sections 3.2 to 3.4). A
    /// winner without bytes keeps the newest that the item has.
    pub(super) fn put_shared_version(
        &mut self,
        index: usize,
        item: Shared<Option<Markup>>,
        standing: ItemStatus,
        details: EventDetails,
    ) {
        let Some(mut known) = self.item(index).cloned() else { return };
        let lost = self.max_lost_updates(&known);
        let Shared { winner, conflicts } = item;
        (known.updates, known.history) = (winner.updates, winner.history);
        if known.history.topmost().stamp.by() == Some(self.observation.endpoint) {
            count_on(&mut known, lost);
        }
        known.standing = standing;
        known.absence = None;
        self.count_version(&mut known);
        self.adopt_version(Some(index), known, winner.data, conflicts, details);
    }

    /// Notes a version. An item that changes twice in one commit has one, with the newest bytes.
    fn version(&mut self, id: SyncId, markup: Option<Markup>, reason: &str) {
        self.shown_changed = true;
        let markup = markup.or_else(|| self.latest.remove(&id));
        self.latest.remove(&id);
        let before = self.versions.get_mut(&id).and_then(|version| version.markup.take());
        let (markup, reason) = (markup.or(before), reason.to_owned());
        self.versions.insert(id.clone(), NewVersion { id, markup, reason });
    }

    /// The newest bytes that this draft brings of an item, where it brings any.
    pub(super) fn pending(&self, id: &SyncId) -> Option<&Markup> {
        let version = || self.versions.get(id).and_then(|version| version.markup.as_ref());
        self.latest.get(id).or_else(version)
    }

    /// Keeps newer bytes of an item without a version.
    pub(super) fn keep_latest(&mut self, id: SyncId, markup: Markup) {
        match self.versions.get_mut(&id) {
            Some(version) => version.markup = Some(markup),
            None => drop(self.latest.insert(id, markup)),
        }
        self.shown_changed = true;
    }

    /// Notes what happened to an item without a version.
    pub(super) fn event(&mut self, index: usize, details: EventDetails) {
        self.note_event(index, details, None);
    }

    fn note_event(&mut self, index: usize, details: EventDetails, tick: Option<Tick>) {
        let Some(known) = self.item(index) else { return };
        let event = Event {
            kind: details.kind,
            id: known.id.clone(),
            native_id: known.native_shown.clone(),
            old_native_id: details.old_native_id,
            title: known.title.clone(),
            tick,
            reason: details.reason,
            at: self.observation.now,
            seen_gone: details.seen_gone,
        };
        self.events.push(event);
    }

    /// Takes the events. One of an item without a title gets the beginning of the text that this draft has of the item.
    fn titled_events(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.events);
        for event in events.iter_mut().filter(|event| event.title.is_empty()) {
            event.title = self.pending(&event.id).map(news::stand_in_title).unwrap_or_default();
        }
        events
    }

    /// Returns how often the item of a new entry may have been updated at most: before the feed was purged, or after
    /// the backup was made from which the store was restored.
    pub(super) fn max_earlier_updates(&self, entry: &Entry<'_>) -> u32 {
        let gap = self.state.gap.filter(|gap| entry.published.is_none_or(|date| date <= gap.until));
        let lost = gap.map_or(0, |gap| gap.updates(self.observation.versions_per_day));
        lost.max(self.state.updates_before)
    }

    /// Returns how often an item may have been updated after the backup was made from which the store was restored.
    /// Subscribers that know these updates accept only higher numbers.
    fn max_lost_updates(&self, known: &LedgerEntry) -> u32 {
        let gap = self.state.gap.filter(|gap| known.tick.time() <= gap.until);
        gap.map_or(0, |gap| gap.updates(self.observation.versions_per_day))
    }

    pub(super) fn stamp(&self) -> Stamp {
        Stamp::Both { when: self.observation.now, by: self.observation.endpoint.clone() }
    }

    /// The order of the reader view before this commit.
    pub(super) fn old_order(&self) -> &'a [SyncId] {
        &self.snapshot.order
    }

    /// Sets the order of the reader view, where it is another than this draft has so far.
    pub(super) fn set_order(&mut self, order: Vec<SyncId>) {
        if order != self.order.as_deref().unwrap_or(self.old_order()) {
            self.order = Some(order);
            self.shown_changed = true;
        }
    }

    /// Takes an item out of the reader view, where it is in it.
    pub(super) fn take_out_of_view(&mut self, id: &SyncId) {
        let order = self.order.as_deref().unwrap_or(self.old_order());
        if order.contains(id) {
            self.set_order(order.iter().filter(|other| *other != id).cloned().collect());
        }
    }

    /// The items that this commit brings other bytes or a version of.
    pub(super) fn changed_ids(&self) -> impl Iterator<Item = &SyncId> {
        self.versions.keys().chain(self.latest.keys())
    }

    pub(super) fn deletes(&self) -> bool {
        self.events.iter().any(|event| event.kind == EventKind::Deleted)
    }

    /// Every item of the ledger as it stands in this draft.
    pub(super) fn ledger(&self) -> impl Iterator<Item = &LedgerEntry> {
        let old = self.snapshot.known.iter().enumerate();
        let new = self.known.range(self.snapshot.known.len()..).map(|(_, known)| known);
        old.map(|(at, known)| self.known.get(&at).unwrap_or(known)).chain(new)
    }

    /// Moves the start of the sync view's window to the greatest tick that has been in it long enough
    /// (SSE 1.0 section 4.2.4); returns whether it moved. The last tick never leaves, so that `since` never
    /// passes `until`.
    pub(super) fn advance_window(&mut self) -> bool {
        let cutoff = Tick::at(self.observation.running_now.minus(self.observation.window));
        let settled = self.snapshot.settled.and_then(|settled| settled.left_window);
        let ticks = self.ledger().map(|known| known.tick).chain(settled);
        let left = ticks.filter(|tick| *tick < cutoff).max();
        let moved = self.state.window_start.is_some_and(|start| left > Some(start));
        if moved {
            self.state.window_start = left;
            self.shown_changed = true;
        }
        moved
    }
}
