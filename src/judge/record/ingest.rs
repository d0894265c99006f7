//! A round of a feed: what it has and what the document says, to one commit.

use super::absence::{conclude, seen_while_held};
use super::compare::{ChangedEntry, compare};
use super::doubt::DocumentDoubt;
use super::draft::{ChangeDraft, EventDetails};
use super::held::HoldDecision;
use super::held_entries::{self, ReleasedEntry, released};
use super::mint::NewIds;
use super::newcomer::{describe, resemble};
use super::outline_moves::is_list;
use super::shared::{self, Peers, SharedSplit};
use super::{
    Observation, ObservationError, Verdict, character, check_size, head, held, rate_limited,
    redacted_filter,
};
use crate::document::{Braked, entries_to_let_in};
use crate::news;
use crate::same_item::{self, MatchedEntry};
use crate::window::{Direction, WindowShift};
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use tidegate_core::model::{
    BodyPrints, Completeness, EventKind, FeedDocument, ItemStatus, LedgerEntry, Markup, Origin,
    Snapshot, SyncId,
};

/// Takes in a document that differs from the last one.
pub fn take_in(
    observation: &Observation<'_>,
    document: &FeedDocument<'_>,
    prints: BodyPrints,
) -> Result<Verdict, ObservationError> {
    take_in_shared(observation, document, &Peers::default(), prints)
}

/// The same with what the round has beside a document whose publisher shares its items.
pub fn take_in_shared<'a>(
    observation: &Observation<'_>,
    document: &FeedDocument<'a>,
    peers: &Peers<'a>,
    prints: BodyPrints,
) -> Result<Verdict, ObservationError> {
    let first = Snapshot::untouched(document.format, observation.now);
    let snapshot = observation.snapshot.unwrap_or(&first);
    let rest = redacted_filter::without(observation, snapshot, document);
    let document = rest.as_ref().unwrap_or(document);
    if let Some(verdict) = held::hold_whole(observation, snapshot, document, prints) {
        return Ok(verdict);
    }
    let rest = peers
        .complete
        .and_then(|complete| redacted_filter::without(observation, snapshot, complete));
    let peers = Peers { complete: rest.as_ref().or(peers.complete), ..*peers };
    let doubt = DocumentDoubt::new(observation, document, peers.complete, prints);
    judge_shared(observation, snapshot, document, &peers, doubt)
}

/// Merges what a document shares, and judges the rest.
fn judge_shared(
    observation: &Observation<'_>,
    snapshot: &Snapshot,
    document: &FeedDocument<'_>,
    peers: &Peers<'_>,
    doubt: DocumentDoubt<'_>,
) -> Result<Verdict, ObservationError> {
    let split = shared::split_document(snapshot, document, peers.complete);
    let Some(split) = &split else {
        let draft = ChangeDraft::new(observation, snapshot);
        return judge_plain(document, doubt, snapshot, draft, None, &[], None);
    };
    let mut draft = ChangeDraft::new(observation, &split.whole);
    let mut report = shared::merge(&mut draft, split, document, peers, &doubt);
    if !report.refused.is_empty() {
        // What its sync says is not believed: the entries count as plain ones.
        let document = shared::without(document, &report.refused);
        let complete = peers.complete.map(|complete| shared::without(complete, &report.refused));
        let peers = Peers { complete: complete.as_ref(), ..*peers };
        let mut verdict = match held::hold_whole(observation, snapshot, &document, doubt.body) {
            Some(held) => held,
            None => judge_shared(observation, snapshot, &document, &peers, doubt)?,
        };
        report.notes.append(&mut verdict.notes);
        report.notes.dedup();
        return Ok(Verdict { notes: report.notes, ..verdict });
    }
    // Entries whose owner is not known yet, or that may be broken, must be offered again.
    let is_whole = report.asks.is_empty() && !doubt.is_doubted;
    let (mut gone, mut braked) = (Vec::new(), None);
    if is_whole {
        shared::catch_up(&mut draft.state, observation.snapshot, document, peers);
        (gone, braked) = shared::discarded(&draft, document, peers);
    }
    let plain = &split.plain;
    let verdict = judge_plain(&split.document, doubt, plain, draft, Some(split), &gone, braked)?;
    Ok(Verdict { notes: report.notes, asks: report.asks, ..verdict })
}

/// Judges the plain entries of a document. `snapshot`: the items that are not shared; `draft`: a draft over the whole
/// ledger, which already contains the merged items; `split`: the split document, if it or the ledger has shared items;
/// `gone`: the items to discard; `braked`: why the document is held before they are discarded.
fn judge_plain<'a>(
    document: &FeedDocument<'_>,
    mut doubt: DocumentDoubt<'_>,
    snapshot: &'a Snapshot,
    mut draft: ChangeDraft<'a>,
    split: Option<&'a SharedSplit<'a>>,
    gone: &[usize],
    braked: Option<Braked>,
) -> Result<Verdict, ObservationError> {
    let observation = draft.observation;
    let matching = same_item::matching(snapshot, document, observation.options);
    let found = draft.snapshot.size() + matching.fresh.len();
    check_size(found)?;
    let believed = doubt.doubt_plain(snapshot, document, &matching);
    let document = believed.as_ref().unwrap_or(document);
    let compared = compare(observation, snapshot, document, &matching.pairs);
    let is_changed: Vec<bool> =
        compared.iter().map(|c| c.as_ref().is_some_and(ChangedEntry::is_edit)).collect();
    let input = observation.judge_input(snapshot, document, &matching, &is_changed);
    let window = WindowShift::new(input);
    let waits = |at: usize| document.entries.get(at).is_some_and(|entry| doubt.waits(entry));
    let pairs = matching.pairs.iter().copied().zip(compared);
    let pairs: Vec<(MatchedEntry, Option<ChangedEntry<'_>>)> =
        pairs.filter(|(pair, _)| !waits(pair.entry)).collect();
    let fresh = matching.fresh.iter().copied().filter(|at| !waits(*at));
    let fresh: Vec<usize> = fresh.collect();
    doubt.note(&mut draft, document);
    let released = match held::hold(&window, doubt.body, &mut draft, braked) {
        HoldDecision::Held { reason, keeps } => {
            held::learn(&mut draft, &pairs);
            let mut news = Vec::new();
            if keeps {
                if let Some(hold) = draft.state.hold.as_ref().filter(|_| !doubt.is_doubted) {
                    news = entries_to_let_in(&window, &hold.kind);
                }
                held_entries::keep(&input, &mut draft, &news);
            }
            if !gone.is_empty() {
                // The next look reads the complete feed again.
                let until = &draft.snapshot.state.upstream_until;
                draft.state.upstream_until.clone_from(until);
            }
            let mut intake = DocumentIntake::new(draft, window, split);
            intake.create_items(&news, Vec::new());
            intake.order_while_held();
            return Ok(intake.draft.into_verdict(Some(reason)));
        }
        HoldDecision::Ends { theirs } => released(snapshot, document, &draft, theirs),
        HoldDecision::Free => Vec::new(),
    };
    shared::discard(&mut draft, gone, shared::UNLISTED);
    check_size(found + released.len())?;
    let mut intake = DocumentIntake::new(draft, window, split);
    intake.moved = super::outline_moves::moved(snapshot, document, &pairs);
    for (pair, compared) in pairs {
        intake.update_item(pair, compared);
    }
    intake.create_items(&fresh, released);
    if document.completeness == Completeness::Full && !document.lists_changes() {
        intake.judge_missing();
    }
    rate_limited::publish_waiting(&mut intake.draft, snapshot);
    intake.update_feed(doubt.body);
    let mut verdict = intake.draft.into_verdict(None);
    verdict.doubt = doubt.describe();
    if verdict.doubt.is_some() {
        let soon = crate::document::next_poll_of_held(observation.now);
        verdict.decision_due = Some(verdict.decision_due.map_or(soon, |at| at.min(soon)));
    }
    Ok(verdict)
}

/// The items and the draft while a document is taken in.
struct DocumentIntake<'a> {
    draft: ChangeDraft<'a>,
    window: WindowShift<'a>,
    /// The items that readers are shown, by their entries.
    ids: HashMap<usize, SyncId>,
    /// The entries that were moved within a list.
    moved: HashSet<usize>,
    /// The split document, if it or the ledger has shared items.
    shared: Option<&'a SharedSplit<'a>>,
}

impl<'a> DocumentIntake<'a> {
    fn new(
        draft: ChangeDraft<'a>,
        window: WindowShift<'a>,
        shared: Option<&'a SharedSplit<'a>>,
    ) -> Self {
        let (ids, moved) = (HashMap::new(), HashSet::new());
        Self { draft, window, ids, moved, shared }
    }

    fn update_item(&mut self, pair: MatchedEntry, compared: Option<ChangedEntry<'_>>) {
        let (document, observation) = (self.window.input.document, self.draft.observation);
        let (Some(entry), Some(known)) =
            (document.entries.get(pair.entry), self.window.input.snapshot.known.get(pair.known))
        else {
            return;
        };
        // Whatever is taken for it, a redacted item does not come back.
        if known.is_redacted() {
            return;
        }
        let standing = match known.standing {
            ItemStatus::Older { since } | ItemStatus::Retired { since }
                if self.window.is_older(pair.entry) =>
            {
                ItemStatus::Older { since }
            }
            _ => ItemStatus::Current,
        };
        if standing == ItemStatus::Current {
            self.ids.insert(pair.entry, known.id.clone());
        }
        if pair.basis.is_rename() {
            self.rename(pair, known);
        }
        let has_new_bytes = compared.is_some();
        let mut changes = compared.as_ref().map(ChangedEntry::describe).unwrap_or_default();
        if self.moved.contains(&pair.entry) {
            changes.push_str(if changes.is_empty() { "its position" } else { ", its position" });
        }
        if known.is_evicted() {
            // Of what left the ledger nothing was there to compare with. It comes back as itself, under its ids.
            self.draft.change(pair.known, |item| {
                resemble(item, entry, observation);
                (item.bytes, item.origin) = (news::hash_entry(entry), Origin::default());
            });
        } else if let Some(compared) = compared {
            self.draft.change(pair.known, |item| {
                describe(item, entry);
                compared.apply_to(item, observation.running_now);
            });
        } else if known.noise.held {
            self.draft.change(pair.known, |item| item.noise.held = false);
        }
        // What is missing and slides off before it is there again has gone as well.
        if known.absence.is_some() || known.standing != standing {
            self.draft.change(pair.known, |item| item.came = observation.running_now);
        }
        let details = match reappearance(&known.standing) {
            Some((kind, when)) => {
                Some(EventDetails::new(kind, format!("it is in the document again{when}")))
            }
            None if changes.is_empty() => rate_limited::due(&self.draft, pair.known, false),
            None => rate_limited::admit(&mut self.draft, pair.known, changes),
        };
        if let Some(details) = details {
            let markup = tidegate_format::parse::own(document, entry);
            if self.draft.update(pair.known, standing.clone(), Some(markup), details) {
                return;
            }
            if known.is_evicted() {
                self.ids.remove(&pair.entry);
                return;
            }
        }
        let is_back = standing == ItemStatus::Current && known.standing != standing;
        if known.absence.is_some() || known.standing != standing {
            self.draft.change(pair.known, |item| {
                item.absence = None;
                item.standing = standing;
            });
        }
        if is_back && matches!(known.standing, ItemStatus::Retired { .. }) {
            let details =
                EventDetails::new(EventKind::Returned, "it is in the document again, unchanged");
            self.draft.event(pair.known, details);
        }
        if has_new_bytes {
            let markup = tidegate_format::parse::own(document, entry);
            self.draft.keep_latest(known.id.clone(), markup);
        }
    }

    fn rename(&mut self, pair: MatchedEntry, known: &LedgerEntry) {
        let Some(native) = self.window.input.matching.names.get(pair.entry) else { return };
        let old = known.native_shown.clone();
        // A parameter that changes at each poll would push out the ids that it had before.
        let keeps = !pair.basis.is_same_but_for_query();
        self.draft.change(pair.known, |item| item.rename(native, keeps));
        let reason = format!("known by {}", pair.basis.describe());
        let details = EventDetails {
            old_native_id: Some(old),
            ..EventDetails::new(EventKind::Rekeyed, reason)
        };
        self.draft.event(pair.known, details);
    }

    /// Creates items of the new entries, and of those that were seen only while the feed was held.
    fn create_items(&mut self, fresh: &[usize], released: Vec<ReleasedEntry>) {
        if fresh.is_empty() && released.is_empty() {
            return;
        }
        let mut ids = NewIds::new(&self.draft);
        let (document, names) = (self.window.input.document, &self.window.input.matching.names);
        let reason = match self.draft.observation.snapshot {
            None => "in the first document",
            Some(_) => "not seen before",
        };
        // From the last to the first, so that what stands above, the newer, is made later.
        for at in fresh.iter().rev() {
            let (Some(entry), Some(native)) = (document.entries.get(*at), names.get(*at)) else {
                continue;
            };
            let Ok(known) = ids.newcomer(&self.draft, entry, native) else { continue };
            let markup = tidegate_format::parse::own(document, entry);
            if self.window.is_older(*at) {
                let standing = ItemStatus::Older { since: known.first_seen };
                let reason = "it came in below the old end, and is older than all that was known";
                let details = EventDetails::new(EventKind::Backfilled, reason);
                self.draft.create(LedgerEntry { standing, ..known }, markup, details);
                continue;
            }
            self.ids.insert(*at, known.id.clone());
            self.draft.create(known, markup, EventDetails::new(EventKind::Created, reason));
        }
        for ReleasedEntry { kept, native } in released {
            let Ok(known) = ids.newcomer(&self.draft, &kept.entry, &native) else { continue };
            let markup = tidegate_format::parse::own(document, &kept.entry);
            let markup = Markup { format: kept.format, ..markup };
            seen_while_held(&mut self.draft, &self.window.input, known, markup, kept.since);
        }
    }

    fn judge_missing(&mut self) {
        // They were listed below what readers are shown: nobody is told that they went.
        for at in &self.window.below_gone {
            self.draft.change(*at, |item| {
                if let ItemStatus::Older { since } = item.standing {
                    item.standing = ItemStatus::Retired { since };
                }
            });
        }
        for (at, absence) in crate::hole::find_missing(&self.window) {
            if !conclude(&mut self.draft, at, &absence, absence.observations) {
                self.draft.change(at, |item| item.absence = Some(absence));
            }
        }
    }

    /// The items that readers are shown, in the order of the whole document.
    fn listed(&self) -> Vec<SyncId> {
        let entries = 0..self.window.input.document.entries.len();
        match self.shared {
            Some(split) => shared::listed(split, &self.ids),
            None => entries.filter_map(|at| self.ids.get(&at).cloned()).collect(),
        }
    }

    /// The order while a document is held: what was let in stands at the new end.
    fn order_while_held(&mut self) {
        let listed = self.listed();
        let order = match self.shared {
            None if self.window.direction == Direction::Up => {
                self.draft.old_order().iter().cloned().chain(listed).collect()
            }
            _ => shared::order(&mut self.draft, &listed, false, false),
        };
        self.draft.set_order(order);
    }

    /// Updates the order, the skeleton and the feed's state.
    fn update_feed(&mut self, prints: BodyPrints) {
        let document = self.window.input.document;
        let full = document.completeness == Completeness::Full;
        let listed = self.listed();
        let has_own = self.draft.observation.options.sharing.local;
        let order = if self.shared.is_some() && document.lists_changes() && full && !has_own {
            shared::by_changes(&mut self.draft, &listed, is_list(document))
        } else {
            shared::order(&mut self.draft, &listed, full, true)
        };
        let first = self.draft.observation.snapshot.is_none();
        let skeleton = head::skeleton_print(document);
        let draft = &mut self.draft;
        if draft.observation.options.sharing.local {
            // A feed of our own is called what its operator says, whoever shares it.
            super::local::begin(draft);
        } else if first || (full && skeleton != self.window.input.snapshot.state.head) {
            draft.skeleton = Some(document.skeleton.clone());
            draft.state.head = skeleton;
            draft.shown_changed = true;
        }
        draft.set_order(order);
        draft.advance_window();
        draft.state.wire = prints.wire;
        draft.state.body = prints.body;
        if full {
            if !draft.observation.options.sharing.local {
                draft.state.format = document.format;
                head::take_in(draft, &document.head);
            }
            draft.state.says_complete = document.head.complete;
            draft.state.site = document.head.link.clone().or_else(|| document.head.id.clone());
            let source = draft.observation.source();
            if source != 0 && source != draft.state.source {
                if draft.state.source != 0 {
                    draft.state.source_since = Some(draft.observation.running_now);
                }
                draft.state.source = source;
            }
            if self.shared.is_none_or(|split| !split.is_all_shared()) {
                character::learn(&mut draft.state.character, &self.window);
            }
        }
    }
}

/// How an item comes back that was deleted or had left the ledger: with a new version, even if its bytes are the same.
const fn reappearance(standing: &ItemStatus) -> Option<(EventKind, &'static str)> {
    match standing {
        ItemStatus::Evicted { deleted: false, .. } => {
            Some((EventKind::Returned, " after it had left the complete view"))
        }
        ItemStatus::Evicted { deleted: true, .. } => {
            Some((EventKind::Undeleted, ", long after it was deleted"))
        }
        ItemStatus::Deleted { .. } => Some((EventKind::Undeleted, " after it was deleted")),
        ItemStatus::Discarded { .. } => Some((EventKind::Undeleted, " after it was discarded")),
        _ => None,
    }
}
