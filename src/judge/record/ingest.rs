//! A round of a feed: what it has and what the document says, to one commit.

use super::compare::{self, ChangedEntry, Comparison};
use super::confirm_absence::{conclude, seen_while_held};
use super::doubt::{self, DoubtfulChanges, SharedDoubt};
use super::draft::{ChangeDraft, EventDetails};
use super::held::HoldDecision;
use super::held_entries::{self, ReleasedEntry, released};
use super::newcomer::{describe, newcomer};
use super::outline_moves::is_list;
use super::shared::{self, Discard, DocumentOrder, Peers, SharedSplit};
use super::{
    ITEMS_LIMIT, Observation, ObservationError, Verdict, character, evict, head, held, mint,
    rate_limited, redacted_filter,
};
use crate::identity::{self, MatchedEntry, Matching, Native};
use crate::{Direction, JudgeInput, WindowShift};
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{
    BodyPrints, Completeness, Entry, EventKind, FeedDocument, ItemStatus, LedgerEntry, Markup,
    Snapshot, SyncId,
};

/// Takes in a document that differs from the last one.
pub fn take_in(
    round: &Observation<'_>,
    document: &FeedDocument<'_>,
    prints: BodyPrints,
) -> Result<Verdict, ObservationError> {
    take_in_shared(round, document, &Peers::default(), prints)
}

/// The same with what the round has beside a document whose publisher shares its items.
pub fn take_in_shared(
    round: &Observation<'_>,
    document: &FeedDocument<'_>,
    peers: &Peers<'_>,
    prints: BodyPrints,
) -> Result<Verdict, ObservationError> {
    let first = Snapshot::untouched(document.format, round.now);
    let snapshot = round.snapshot.unwrap_or(&first);
    let rest = redacted_filter::without(snapshot, document);
    let document = rest.as_ref().unwrap_or(document);
    let rest = peers.complete.and_then(|complete| redacted_filter::without(snapshot, complete));
    let peers = &Peers { complete: rest.as_ref().or(peers.complete), ..*peers };
    if let Some(verdict) = held::hold_whole(round, snapshot, document, prints) {
        return Ok(verdict);
    }
    let parts = shared::parts(snapshot, document, peers.complete);
    let Some(parts) = &parts else {
        return judge_plain(round, (snapshot, snapshot), document, prints, None);
    };
    let mut draft = ChangeDraft::new(round, &parts.whole);
    let doubt = SharedDoubt::new(round, parts, document, peers, prints);
    let mut merged = shared::merge(&mut draft, parts, document, peers, &doubt);
    if !merged.refused.is_empty() {
        // What its sync says is not believed: the entries count as plain ones.
        let document = shared::without(document, &merged.refused);
        let complete = peers.complete.map(|complete| shared::without(complete, &merged.refused));
        let peers = Peers { complete: complete.as_ref(), ..*peers };
        let mut verdict = take_in_shared(round, &document, &peers, prints)?;
        merged.notes.append(&mut verdict.notes);
        merged.notes.dedup();
        return Ok(Verdict { notes: merged.notes, ..verdict });
    }
    // What was not taken because it is not known yet whose it is must come again, and so must what
    // may be broken.
    let is_whole = merged.asks.is_empty() && !doubt.is_doubted;
    if is_whole && shared::caught_up(&mut draft.state, round.snapshot, document, peers) {
        draft.state_changed = true;
    }
    let discard =
        if is_whole { shared::discarded(&draft, document, peers) } else { Discard::default() };
    let shared =
        Some(MergedDocument { parts, draft, document, discard, waits: doubt.into_prints() });
    let verdict =
        judge_plain(round, (&parts.whole, &parts.plain), &parts.document, prints, shared)?;
    Ok(Verdict { notes: merged.notes, asks: merged.asks, ..verdict })
}

/// A document that shares items, taken apart.
struct MergedDocument<'a> {
    parts: &'a SharedSplit<'a>,
    draft: ChangeDraft<'a>,
    document: &'a FeedDocument<'a>,
    discard: Discard,
    /// The fingerprints of what waits to be seen again.
    waits: Vec<u64>,
}

/// Judges a document that says nothing of sharing, or the part of one that does not. The snapshots
/// are that of everything, which `merged` is a change of, and that of what is judged.
fn judge_plain<'a>(
    round: &'a Observation<'a>,
    (whole, snapshot): (&'a Snapshot, &'a Snapshot),
    document: &FeedDocument<'_>,
    prints: BodyPrints,
    mut merged: Option<MergedDocument<'a>>,
) -> Result<Verdict, ObservationError> {
    let names = identity::natives(document);
    let matching = identity::matching(snapshot, document, &names, &round.options.without);
    let found = whole.size() + matching.fresh.len();
    if found > ITEMS_LIMIT {
        return Err(ObservationError::TooManyItems { found, limit: ITEMS_LIMIT });
    }
    let Comparison { pairs: compared, noise } =
        compare::compare(round, snapshot, document, &matching.pairs);
    let waits = merged.as_mut().map(|merged| std::mem::take(&mut merged.waits)).unwrap_or_default();
    let doubt =
        DoubtfulChanges::new(round, document, prints, &names, (&matching, &compared), waits);
    let believed = doubt.as_ref().map(|doubt| doubt.believed(document));
    let document = believed.as_ref().unwrap_or(document);
    let is_changed: Vec<bool> =
        compared.iter().map(|c| c.as_ref().is_some_and(ChangedEntry::is_edit)).collect();
    let scene = JudgeInput {
        snapshot,
        document,
        names: &names,
        matching: &matching,
        options: round.options,
        is_changed: &is_changed,
        moved: super::has_moved(&snapshot.state, round.url),
        now: round.aged,
    };
    let window = WindowShift::new(&scene);
    let (shared, mut draft, mut discard) = match merged {
        Some(MergedDocument { parts, draft, document, discard, .. }) => {
            (Some((parts, document)), draft, discard)
        }
        None => (None, ChangeDraft::new(round, whole), Discard::default()),
    };
    if doubt.as_ref().is_none_or(|doubt| !doubt.is_of_document) {
        draft.state.noise = noise;
    }
    doubt::note(&mut draft, document, prints, doubt.as_ref());
    let beside = discard.braked.take();
    let left = match held::hold(&scene, &window, prints, &mut draft, beside) {
        HoldDecision::Held { reason, keep } => {
            held::learn(&mut draft, &matching.pairs, &compared);
            let mut news = Vec::new();
            if let Some(keep) = keep {
                if doubt::is_believed(round, document, prints) {
                    news = held::news(&scene, &window, &draft);
                }
                held_entries::keep(&scene, &mut draft, keep, &news);
            }
            if !discard.is_nothing() {
                // The next look reads the complete feed again.
                draft.state.upstream_until.clone_from(&whole.state.upstream_until);
            }
            let mut taken = DocumentIntake::new(draft, scene, &names, shared);
            taken.fresh(&Matching { fresh: news, ..Matching::default() }, Vec::new());
            taken.order_while_held(&window);
            return Ok(taken.draft.into_verdict(Some(reason)));
        }
        HoldDecision::Ends { theirs } => released(snapshot, document, &names, &draft, theirs),
        HoldDecision::Free | HoldDecision::Healed => Vec::new(),
    };
    discard.apply(&mut draft);
    let (rest, compared) = match &doubt {
        Some(doubt) => doubt.rest(&matching, compared),
        None => (matching.clone(), compared),
    };
    let found = found + left.len();
    if found > ITEMS_LIMIT {
        return Err(ObservationError::TooManyItems { found, limit: ITEMS_LIMIT });
    }
    let mut taken = DocumentIntake::new(draft, scene, &names, shared);
    taken.moved = super::outline_moves::moved(snapshot, document, &rest.pairs, &compared);
    taken.pairs(&rest.pairs, compared);
    taken.fresh(&rest, left);
    if document.completeness == Completeness::Full && !document.lists_changes() {
        taken.missing(&window);
    }
    rate_limited::come_out(&mut taken.draft, snapshot);
    taken.document(&window, prints);
    let mut verdict = taken.draft.into_verdict(None);
    if let Some(doubt) = doubt {
        let soon = crate::next_look(round.now);
        verdict.look_again = Some(verdict.look_again.map_or(soon, |at| at.min(soon)));
        verdict.doubt = Some(doubt.describe());
    }
    Ok(verdict)
}

/// Looks again at what is pending when a poll found the document unchanged: `same` such full
/// observations were made since the last commit, this one included.
pub fn look_again(round: &Observation<'_>, same: u32) -> Result<Verdict, ObservationError> {
    let Some(snapshot) = round.snapshot else { return Ok(Verdict::default()) };
    let mut draft = ChangeDraft::new(round, snapshot);
    for (at, known) in snapshot.known.iter().enumerate() {
        if let (ItemStatus::Current, Some(absence)) = (&known.standing, &known.absence) {
            let observations = absence.observations.saturating_add(same);
            conclude(&mut draft, at, absence, observations);
        }
    }
    rate_limited::come_out(&mut draft, snapshot);
    head::tell(&mut draft);
    if draft.advance_window() {
        draft.shown_changed = true;
    }
    Ok(draft.into_verdict(None))
}

/// A document that is being taken in.
struct DocumentIntake<'a> {
    draft: ChangeDraft<'a>,
    scene: JudgeInput<'a>,
    names: &'a [Native],
    ids: HashMap<usize, SyncId>,
    /// The ledger keys in use; gathered when the first new one is needed.
    keys: Option<identity::Keys>,
    /// Ids that an item was first published with and does not go by any more.
    left_ids: HashSet<String>,
    /// The entries that were moved within a list.
    moved: HashSet<usize>,
    /// The whole document, taken apart, where it shares items.
    shared: Option<(&'a SharedSplit<'a>, &'a FeedDocument<'a>)>,
}

impl<'a> DocumentIntake<'a> {
    fn new(
        draft: ChangeDraft<'a>,
        scene: JudgeInput<'a>,
        names: &'a [Native],
        shared: Option<(&'a SharedSplit<'a>, &'a FeedDocument<'a>)>,
    ) -> Self {
        let (ids, left_ids, moved) = (HashMap::new(), HashSet::new(), HashSet::new());
        Self { draft, scene, names, ids, keys: None, left_ids, moved, shared }
    }

    fn pairs(&mut self, pairs: &[MatchedEntry], compared: Vec<Option<ChangedEntry>>) {
        for (pair, compared) in pairs.iter().zip(compared) {
            self.pair(*pair, compared);
        }
    }

    fn pair(&mut self, pair: MatchedEntry, compared: Option<ChangedEntry>) {
        let (document, round) = (self.scene.document, self.draft.round);
        let (Some(entry), Some(known)) =
            (document.entries.get(pair.entry), self.scene.snapshot.known.get(pair.known))
        else {
            return;
        };
        // Whatever is taken for it, a redacted item does not come back.
        if known.is_redacted() {
            return;
        }
        self.ids.insert(pair.entry, known.id.clone());
        if pair.basis.is_rename() {
            self.rename(pair, entry, known);
        }
        if known.is_evicted() {
            self.reinstate(pair, entry);
            return;
        }
        let has_new_bytes = compared.as_ref().is_some_and(|compared| !compared.same_bytes);
        let mut changes = compared.as_ref().map(ChangedEntry::describe).unwrap_or_default();
        if self.moved.contains(&pair.entry) {
            changes.push_str(if changes.is_empty() { "its position" } else { ", its position" });
        }
        if let Some(compared) = compared {
            self.draft.change(pair.known, |item| {
                describe(item, entry);
                compared.apply_to(item, round.aged);
            });
        } else if known.noise.held {
            self.draft.change(pair.known, |item| item.noise.held = false);
        }
        // What is missing and slides off before it is there again has gone as well.
        if known.absence.is_some() || known.standing != ItemStatus::Current {
            self.draft.change(pair.known, |item| item.came = round.aged);
        }
        let said = match (&known.standing, changes.is_empty()) {
            (ItemStatus::Deleted { .. }, _) => Some(EventDetails::new(
                EventKind::Undeleted,
                "it is in the document again after it was deleted",
            )),
            (ItemStatus::Discarded { .. }, _) => Some(EventDetails::new(
                EventKind::Undeleted,
                "it is in the document again after it was discarded",
            )),
            (_, false) => rate_limited::admit(&mut self.draft, pair.known, changes),
            (_, true) => rate_limited::due(&self.draft, pair.known),
        };
        if let Some(said) = said {
            let markup = tidegate_format::parse::own(document, entry);
            if self.draft.update(pair.known, ItemStatus::Current, Some(markup), said) {
                return;
            }
        }
        if known.absence.is_some() || known.standing != ItemStatus::Current {
            self.draft.change(pair.known, |item| {
                item.absence = None;
                item.standing = ItemStatus::Current;
            });
        }
        if matches!(known.standing, ItemStatus::Retired { .. }) {
            let said =
                EventDetails::new(EventKind::Returned, "it is in the document again, unchanged");
            self.draft.event(pair.known, said);
        }
        if has_new_bytes {
            let markup = tidegate_format::parse::own(document, entry);
            self.draft.keep_latest(known.id.clone(), markup);
        }
    }

    /// An item that had left the ledger comes back as itself: under its ids, with the next update.
    fn reinstate(&mut self, pair: MatchedEntry, entry: &Entry<'_>) {
        let Some(known) = self.draft.item(pair.known).cloned() else { return };
        let Some(native) = self.names.get(pair.entry) else { return };
        let like_new = newcomer(entry, native, &known.native, known.id, |_| false, &self.draft);
        let markup = tidegate_format::parse::own(self.scene.document, entry);
        let said = evict::comes_back(&known.standing);
        if !self.draft.reinstate(pair.known, like_new, markup, said) {
            self.ids.remove(&pair.entry);
        }
    }

    fn rename(&mut self, pair: MatchedEntry, entry: &Entry<'_>, known: &LedgerEntry) {
        let Some(native) = self.names.get(pair.entry) else { return };
        let key = self.new_key(entry, native);
        let old = known.native_shown.clone();
        // A parameter that changes at each poll would push out the ids that it had before.
        let keeps = !pair.basis.is_same_but_for_query();
        self.draft.change(pair.known, |item| item.rename(key, &native.shown, keeps));
        let reason = format!("known by {}", pair.basis.describe());
        let said = EventDetails {
            old_native_id: Some(old),
            ..EventDetails::new(EventKind::Rekeyed, reason)
        };
        self.draft.event(pair.known, said);
    }

    fn new_key(&mut self, entry: &Entry<'_>, native: &Native) -> String {
        let known = &self.scene.snapshot.known;
        let used = || identity::Keys::new(known.iter().map(|k| k.native.clone()));
        self.keys.get_or_insert_with(used).assign_native_id(entry, native)
    }

    /// Makes items of what is new, and of what was seen only while the feed was held.
    fn fresh(&mut self, matching: &Matching, left: Vec<ReleasedEntry>) {
        if matching.fresh.is_empty() && left.is_empty() {
            return;
        }
        let others = self.draft.ledger().filter(|k| k.published_id != k.native_shown);
        self.left_ids = others.map(|k| k.published_id.clone()).collect();
        let mut used: HashSet<SyncId> = self.draft.ledger().map(|k| k.id.clone()).collect();
        let (document, names) = (self.scene.document, self.names);
        let reason = match self.draft.round.snapshot {
            None => "in the first document",
            Some(_) => "not seen before",
        };
        // From the last to the first, so that what stands above, the newer, is made later.
        for at in matching.fresh.iter().rev() {
            let (Some(entry), Some(native)) = (document.entries.get(*at), names.get(*at)) else {
                continue;
            };
            let Some(known) = self.new_item(entry, native, &mut used) else { continue };
            let markup = tidegate_format::parse::own(document, entry);
            self.ids.insert(*at, known.id.clone());
            self.draft.create(known, markup, EventDetails::new(EventKind::Created, reason));
        }
        for ReleasedEntry { kept, native } in left {
            let Some(known) = self.new_item(&kept.entry, &native, &mut used) else { continue };
            let markup = tidegate_format::parse::own(document, &kept.entry);
            let markup = Markup { format: kept.format, ..markup };
            seen_while_held(&mut self.draft, &self.scene, known, markup, kept.since);
        }
    }

    fn new_item(
        &mut self,
        entry: &Entry<'_>,
        native: &Native,
        used: &mut HashSet<SyncId>,
    ) -> Option<LedgerEntry> {
        let key = self.new_key(entry, native);
        let round = self.draft.round;
        let id = mint::sync_id(round.endpoint, round.feed, &key, used).ok()?;
        used.insert(id.clone());
        let taken = |id: &str| self.left_ids.contains(id);
        Some(newcomer(entry, native, &key, id, taken, &self.draft))
    }

    fn missing(&mut self, window: &WindowShift) {
        for missing in crate::missing(&self.scene, window) {
            let observations = missing.absence.observations;
            let absence = &missing.absence;
            let waits = !conclude(&mut self.draft, missing.known, absence, observations);
            if waits {
                self.draft.change(missing.known, |item| item.absence = Some(missing.absence));
            }
        }
    }

    /// The order while a document is held: what was let in stands at the new end.
    fn order_while_held(&mut self, window: &WindowShift) {
        let old = self.draft.old_order().iter().cloned();
        let listed = (0..self.scene.document.entries.len()).filter_map(|at| self.ids.get(&at));
        let listed = listed.cloned();
        let order: Vec<SyncId> = if let Some((parts, _)) = self.shared {
            let listed = DocumentOrder::new(parts, &self.ids);
            shared::order(&mut self.draft, &listed, false, false)
        } else if window.direction == Direction::Up {
            old.chain(listed).collect()
        } else {
            listed.chain(old).collect()
        };
        self.draft.set_order(order);
    }

    /// The order, the skeleton and the feed's state.
    fn document(&mut self, window: &WindowShift, prints: BodyPrints) {
        let document = self.scene.document;
        // That of everything, whatever part of it is judged.
        let old = self.draft.old_order();
        let full = document.completeness == Completeness::Full;
        let listed = (0..document.entries.len()).filter_map(|at| self.ids.get(&at).cloned());
        let order: Vec<SyncId> = if let Some((parts, _)) = self.shared {
            let listed = DocumentOrder::new(parts, &self.ids);
            if document.lists_changes() && full && !self.draft.round.options.sharing.local {
                shared::by_changes(&mut self.draft, &listed, is_list(document))
            } else {
                shared::order(&mut self.draft, &listed, full, true)
            }
        } else if full {
            listed.collect()
        } else {
            // A partial document adds and updates; it takes nothing out.
            let there: HashSet<&SyncId> = old.iter().collect();
            let added: Vec<SyncId> = listed.filter(|id| !there.contains(id)).collect();
            added.into_iter().chain(old.iter().cloned()).collect()
        };
        let first = self.draft.round.snapshot.is_none();
        let skeleton = head::skeleton_print(document);
        let draft = &mut self.draft;
        if draft.round.options.sharing.local {
            // A feed of our own is called what its operator says, whoever shares it.
            super::local::begin(draft);
        } else if first || (full && skeleton != self.scene.snapshot.state.head) {
            draft.skeleton = Some(document.skeleton.clone());
            draft.state.head = skeleton;
            draft.shown_changed = true;
        }
        draft.state.current = u32::try_from(order.len()).unwrap_or(u32::MAX);
        if first || order != old {
            draft.order = Some(order);
            draft.shown_changed = true;
        }
        if draft.advance_window() {
            draft.shown_changed = true;
        }
        draft.state.wire = prints.wire;
        draft.state.body = prints.body;
        if full {
            if !draft.round.options.sharing.local {
                draft.state.format = document.format;
                head::take_in(draft, &document.head);
            }
            draft.state.says_complete = document.head.complete;
            draft.state.site = document.head.link.clone().or_else(|| document.head.id.clone());
            let source = draft.round.source();
            if source != 0 && source != draft.state.source {
                if draft.state.source != 0 {
                    draft.state.source_since = Some(draft.round.aged);
                }
                draft.state.source = source;
                draft.state_changed = true;
            }
            if self.shared.is_none_or(|(parts, _)| !parts.is_all_shared()) {
                character::learn(&mut draft.state.character, &self.scene, window);
            }
        }
    }
}
