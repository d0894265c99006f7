//! Incorporating what a document shares (SSE 1.0 section 3.3).

use super::super::draft::{ChangeDraft, EventDetails};
use super::super::newcomer::{newcomer, quote, resemble};
use super::datum::{DataOwner, Datum, bare, bear, extras_of, history_words, merged, reason};
use super::gap::{can_be_ours, is_id_of};
use super::offer::{Offer, OfferedBody};
use super::order::{is_first_of_changes, newest};
use super::{Issued, LEAP_LIMIT, Peers, SharedSplit};
use crate::record::ITEMS_LIMIT;
use crate::record::doubt::DocumentDoubt;
use crate::record::local;
use crate::record::redacted_filter::KeptOut;
use crate::same_item;
use foldhash::{HashMap, HashMapExt as _, HashSet};
use tidegate_core::model::{
    ConflictPolicy, Conflicting, Count, EndpointId, Entry, EventKind, FeedDocument, Incoming,
    ItemStatus, LedgerEntry, Markup, Origin, Shared, SyncId, Update, Version,
};
use tidegate_core::sync;

/// What was noted of entries that were not taken, at most this many.
const NOTES_LIMIT: usize = 20;

/// A version that lost, with its bytes where they are not those that the item had.
type Losing = Version<Option<Markup>>;

/// The most bytes of what is in conflict with one item …
const CONFLICTS_IN_ITEM: usize = 1 << 20;
/// … and with all items of a feed.
const CONFLICTS_IN_FEED: usize = 16 << 20;

/// What a merge says beside its changes.
#[derive(Debug, Default)]
pub(in crate::record) struct MergeReport {
    pub(in crate::record) notes: Vec<String>,
    /// Items whose sync is not believed: their entries count as plain ones (docs/sharing.md, Limits).
    pub(in crate::record) refused: HashSet<SyncId>,
    /// Items that bear this gateway's name and that this feed does not know: whether another feed
    /// does is to be asked.
    pub(in crate::record) asks: Vec<SyncId>,
}

impl MergeReport {
    pub(in crate::record) fn note(&mut self, what: String) {
        if self.notes.len() < NOTES_LIMIT {
            self.notes.push(what);
        }
    }
}

/// Merges what the document and the complete feed share. `document` is the whole document.
pub(in crate::record) fn merge(
    draft: &mut ChangeDraft<'_>,
    split: &SharedSplit<'_>,
    document: &FeedDocument<'_>,
    peers: &Peers<'_>,
    doubt: &DocumentDoubt<'_>,
) -> MergeReport {
    let mut listed: HashSet<&SyncId> =
        document.entries.iter().filter_map(Entry::shared).map(|incoming| incoming.id()).collect();
    if let Some(complete) = peers.complete.filter(|_| is_first_of_changes(split, document)) {
        listed.extend(newest(complete, &listed));
    }
    let mut merging = Merging::new(draft, &split.shared);
    merging.issued = peers.issued;
    merging.replaced = Some(&split.replaced);
    // The complete feed first (section 4.1), each from its last entry to its first, so that what
    // stands above, the newer, is made later.
    for source in peers.complete.into_iter().chain([document]) {
        for entry in source.entries.iter().rev() {
            let Some(incoming) = entry.shared().filter(|_| !doubt.waits(entry)) else { continue };
            let is_listed = listed.contains(incoming.id());
            let (body, origin) = (OfferedBody::Entry(source, entry), Origin::Upstream);
            let takes_over = false;
            let published_id = None;
            merging.merge_offer(&Offer {
                incoming,
                body,
                published_id,
                origin,
                is_listed,
                takes_over,
            });
        }
    }
    merging.merged
}

/// A merge that is being made.
pub(in crate::record) struct Merging<'m, 'd> {
    draft: &'m mut ChangeDraft<'d>,
    /// Where the items of the snapshot stand that can be merged.
    places: &'m HashMap<SyncId, usize>,
    /// What other feeds know of items that bear this gateway's name.
    issued: Option<&'m Issued>,
    /// What was redacted, which must not come back in a conflict of another item.
    kept_out: KeptOut,
    /// Items that were compared until now and are shared from now on, by native id.
    replaced: Option<&'m HashMap<String, usize>>,
    /// Whether the offers come from another feed of this gateway, so that updates in its name are believed.
    pub(in crate::record) is_internal: bool,
    conflict_bytes: usize,
    /// Where the items stand that were taken in just now.
    fresh: HashMap<SyncId, usize>,
    pub(in crate::record) merged: MergeReport,
}

impl<'m, 'd> Merging<'m, 'd> {
    /// A merge into a draft over a ledger in which the items stand at `places`.
    pub(in crate::record) fn new(
        draft: &'m mut ChangeDraft<'d>,
        places: &'m HashMap<SyncId, usize>,
    ) -> Self {
        let whole = draft.snapshot;
        Self {
            draft,
            places,
            issued: None,
            kept_out: KeptOut::new(whole.known.iter(), LedgerEntry::is_redacted),
            replaced: None,
            is_internal: false,
            conflict_bytes: whole.conflicts.values().flatten().map(|c| c.data.xml.len()).sum(),
            fresh: HashMap::new(),
            merged: MergeReport::default(),
        }
    }

    /// Whether items are made here as well: then all that live are shown.
    const fn is_local(&self) -> bool {
        self.draft.observation.options.sharing.local
    }

    /// The item as it stands in the draft.
    pub(in crate::record) fn known(&self, id: &SyncId) -> Option<(usize, &LedgerEntry)> {
        let index = self.fresh.get(id).or_else(|| self.places.get(id)).copied()?;
        Some((index, self.draft.item(index)?))
    }

    /// Merges what is offered into the item of its id (section 3.3).
    pub(in crate::record) fn merge_offer(&mut self, offer: &Offer<'_>) {
        if let Some(incoming) = self.kept_out.out_of(offer.incoming) {
            return self.merge_offer(&Offer { incoming: &incoming, ..offer.clone() });
        }
        let found = self.known(offer.incoming.id()).map(|(index, known)| (index, known.clone()));
        let known = found.as_ref().map(|(_, known)| known);
        if known.is_some_and(LedgerEntry::is_redacted) {
            return;
        }
        let asked = self.merged.asks.len();
        if !self.is_believed(known, offer.incoming) {
            if self.merged.asks.len() == asked {
                self.merged.refused.insert(offer.incoming.id().clone());
            }
            return;
        }
        if known.is_some_and(|known| known.is_evicted() && offer.is_known_to(known)) {
            return;
        }
        match found {
            // What was discarded is as good as unknown, but for its place and its ids.
            Some(back) if back.1.is_hidden() => self.add(offer, Some(back)),
            Some((index, known)) => self.update(index, &known, offer),
            None => self.add(offer, None),
        }
    }

    /// Whether what an entry says of its item can be believed.
    fn is_believed(&mut self, known: Option<&LedgerEntry>, incoming: &Incoming) -> bool {
        let id = incoming.id();
        let before = known.map_or(0, |known| known.updates.value());
        let versions = || incoming.conflicts.iter().map(|c| (c.updates, &c.history));
        let versions = || versions().chain([(incoming.version.updates, &incoming.version.history)]);
        let own = self.draft.observation.endpoint;
        let updates = || versions().flat_map(|(_, history)| history.iter());
        let is_ours = is_id_of(id, own) || Update::greatest_by(own, updates()).is_some();
        let is_bound = known.is_some_and(|known| !known.is_discarded()) || is_ours;
        let most = versions().map(|(updates, _)| updates.value()).filter(|_| is_bound).max();
        if let Some(updates) = most.filter(|most| *most > before.saturating_add(LEAP_LIMIT)) {
            self.merged.note(format!(
                "the item {id} says that it was updated {updates} times, where {before} are known: a \
                 leap of more than {LEAP_LIMIT} is not believed"
            ));
            return false;
        }
        if self.is_internal {
            return true;
        }
        let most = incoming.version.updates.value().max(before).saturating_add(LEAP_LIMIT);
        if let Some(update) = updates().find(|update| update.sequence.value() > most) {
            self.merged.note(format!(
                "the item {id} bears the sequence {}, far beyond its {} updates: its sync is not \
                 believed, or no later update of that endpoint would count",
                update.sequence.value(),
                incoming.version.updates.value()
            ));
            return false;
        }
        let Some(claimed) = Update::greatest_by(own, updates()) else {
            // An id of ours that nobody ever updated in our name was not minted here.
            let is_minted = known.is_some() || !is_id_of(id, own);
            if !is_minted {
                self.merged.note(format!(
                    "the item {id} bears an id of this gateway, {own}, which never made it: its \
                     sync is not believed"
                ));
            }
            return is_minted;
        };
        let here = known.and_then(|known| self.issued_here(known, own));
        if here.is_some_and(|issued| claimed <= issued) {
            return true;
        }
        let Some(elsewhere) = self.issued.and_then(|issued| issued.get(id)) else {
            self.merged.asks.push(id.clone());
            return false;
        };
        if elsewhere.is_some_and(|issued| claimed <= issued) {
            return true;
        }
        let gap = self.draft.state.gap;
        if can_be_ours(gap, own, here.max(*elsewhere), updates()) {
            return true;
        }
        // A list of our own comes back from those who share it.
        if self.is_local() && known.is_none() {
            return true;
        }
        self.merged.note(format!(
            "the item {id} bears an update {} in the name of this gateway, {own}, which never made \
             it: its sync is not believed; where the store of this gateway was lost, choose another \
             publish.endpoint or import an export of it",
            claimed.value()
        ));
        false
    }

    /// The greatest sequence of this gateway's own updates of an item.
    fn issued_here(&self, known: &LedgerEntry, own: &EndpointId) -> Option<Count> {
        let conflicts = self.draft.snapshot.conflicts.get(&known.id).map_or(&[][..], Vec::as_slice);
        let histories = conflicts.iter().map(|c| &c.history).chain([&known.history]);
        Update::greatest_by(own, histories.flat_map(|history| history.iter()))
    }

    /// Step 1 of section 3.3: nothing local has this id. `back`: what was discarded under it.
    fn add(&mut self, offer: &Offer<'_>, back: Option<(usize, LedgerEntry)>) {
        if back.is_none() && self.draft.size() >= ITEMS_LIMIT {
            self.merged.note(format!(
                "the feed has {ITEMS_LIMIT} items, which is the limit; no more are taken in"
            ));
            return;
        }
        let (incoming, id) = (offer.incoming, offer.incoming.id());
        let Some(entry) = offer.body.entry() else {
            self.merged.note(format!("the item {id} cannot be read again; it is not taken in"));
            return;
        };
        let native = same_item::native(&entry);
        let replaced = self.replaced.and_then(|replaced| replaced.get(&native)).copied();
        let replaced = replaced.filter(|at| self.draft.item(*at).is_some_and(|k| !k.is_deleted()));
        let now = self.draft.observation.now;
        let mut known = newcomer(&entry, &native, id.clone(), |_| false, self.draft);
        let old = replaced.and_then(|at| self.draft.item(at));
        if let Some(published) = old.map(|old| old.published_id.as_str()).or(offer.published_id) {
            published.clone_into(&mut known.published_id);
        }
        if let Some((_, old)) = &back {
            known.published_id.clone_from(&old.published_id);
            known.first_seen = old.first_seen;
        }
        known.origin = offer.origin.clone();
        known.sse091 = incoming.sse091;
        known.extras = extras_of(incoming);
        bear(&mut known, &incoming.version);
        known.bytes = offer.body.print();
        known.standing = self.choose_status(incoming.version.deleted, offer.is_listed);
        let left = ", after it had left the complete view";
        let (kind, after) = match &back {
            Some((_, old)) if old.standing.left_alive() => (EventKind::Returned, left),
            Some((_, old)) if old.is_evicted() => (EventKind::Undeleted, left),
            Some(_) => (EventKind::Created, ", after it was discarded"),
            None => (EventKind::Created, ""),
        };
        let (words, origin) = (history_words(&incoming.version), offer.describe_origin());
        let (kind, reason) = match incoming.version.deleted {
            true => (EventKind::Deleted, format!("{origin} that it is deleted, {words}{after}")),
            false => (kind, format!("{origin} it, {words}{after}")),
        };
        let conflicts = incoming.conflicts.iter().map(|c| c.with(Some(c.data.clone()))).collect();
        let conflicts = self.limit_conflicts(id, conflicts);
        let markup = offer.body.markup();
        let (at, details) = (back.map(|(at, _)| at), EventDetails::new(kind, reason));
        let index = self.draft.adopt_version(at, known, Some(markup), conflicts, details);
        self.fresh.insert(id.clone(), index);
        if self.draft.observation.options.sharing.conflicts != ConflictPolicy::Keep
            && !incoming.conflicts.is_empty()
            && let Some(known) = self.draft.item(index).cloned()
        {
            self.update(index, &known, offer);
        }
        if let Some(at) = replaced {
            let reason = format!("its publisher shares it as {id} now");
            let standing = ItemStatus::Deleted { since: now };
            self.draft.update(at, standing, None, EventDetails::new(EventKind::Deleted, reason));
        }
    }

    /// As much of what is in conflict as is kept. The strongest stand first.
    fn limit_conflicts(&mut self, id: &SyncId, conflicts: Vec<Losing>) -> Vec<Losing> {
        let all = conflicts.len();
        let mut room = CONFLICTS_IN_ITEM.min(CONFLICTS_IN_FEED.saturating_sub(self.conflict_bytes));
        let mut kept = Vec::new();
        for version in conflicts.into_iter().take(Conflicting::LIMIT) {
            let size = version.data.as_ref().map_or(0, |markup| markup.xml.len());
            let Some(rest) = room.checked_sub(size) else { continue };
            room = rest;
            self.conflict_bytes = self.conflict_bytes.saturating_add(size);
            kept.push(version);
        }
        if kept.len() < all {
            self.merged.note(format!(
                "{} of {all} versions that are in conflict with the item {id} are not kept: an item \
                 may have {} of them and {CONFLICTS_IN_ITEM} bytes, a feed {CONFLICTS_IN_FEED}",
                all - kept.len(),
                Conflicting::LIMIT
            ));
        }
        kept
    }

    fn choose_status(&self, deleted: bool, is_listed: bool) -> ItemStatus {
        let since = self.draft.observation.now;
        match (deleted, is_listed || self.is_local()) {
            (true, _) => ItemStatus::Deleted { since },
            (false, true) => ItemStatus::Current,
            (false, false) => ItemStatus::Retired { since },
        }
    }

    /// What an item that was known is after a merge.
    fn standing_after(&self, known: &LedgerEntry, deleted: bool, is_listed: bool) -> ItemStatus {
        match (&known.standing, deleted) {
            (standing, true) if known.is_deleted() => standing.clone(),
            // What had left the reader view comes back only with an entry in the document.
            (ItemStatus::Retired { since }, false) if !is_listed => {
                ItemStatus::Retired { since: *since }
            }
            (standing, _) => {
                self.choose_status(deleted, is_listed || *standing == ItemStatus::Current)
            }
        }
    }

    fn update(&mut self, index: usize, known: &LedgerEntry, offer: &Offer<'_>) {
        let (incoming, is_listed) = (offer.incoming, offer.is_listed);
        let print = offer.body.print();
        let kept = self.draft.conflicts_of(&known.id);
        let local = Shared {
            winner: known.version(Datum::new(DataOwner::Ours, known.bytes)),
            conflicts: kept.iter().map(|c| c.with(Datum::in_conflict(c.data.as_ref()))).collect(),
        };
        let theirs = incoming.conflicts.iter();
        let remote = Shared {
            winner: incoming.version.with(Datum::new(DataOwner::Entry, print)),
            conflicts: theirs.map(|c| c.with(Datum::in_conflict(Some(&c.data)))).collect(),
        };
        let (before, own) = (bare(&local), self.draft.observation.endpoint);
        let found = merged(own, known, local, incoming, remote);
        let Ok((mut merged, sse091)) = found else { return };
        let policy = &self.draft.observation.options.sharing.conflicts;
        let settled = local::settle_by_policy(&mut merged, policy, self.draft.stamp());
        let settled = settled.ok().flatten();
        let sse091 = sse091.map(|mark| mark && settled.is_none());
        let has_mark = |sse091: Option<bool>| sse091 == Some(true);
        let is_same = sse091.is_none() || has_mark(sse091) == has_mark(known.sse091);
        if is_same && sync::same_item(&bare(&merged), &before) {
            self.confirm_version(index, known, offer, &merged.winner);
            return;
        }
        // The bytes of a version that stays are newer only where its publisher has them.
        let stays = merged.winner.with(()) == before.winner && known.origin != offer.origin;
        if stays {
            merged.winner.data.owner = DataOwner::Ours;
        }
        let ours = self.draft.pending(&known.id).cloned();
        let data = |datum: Datum<'_>| match datum.owner {
            // What this very draft brings stands in no store yet.
            DataOwner::Ours => ours.clone(),
            DataOwner::Entry => Some(offer.body.markup()),
            DataOwner::Conflict(markup) => markup.cloned(),
        };
        let winner = &merged.winner;
        let markup = data(winner.data);
        let mut next = known.clone();
        if next.origin == Origin::Observed || offer.takes_over {
            next.origin = offer.origin.clone();
        }
        let entry = if winner.data.is_of_entry() { offer.body.entry() } else { None };
        if let Some(entry) = &entry {
            resemble(&mut next, entry, self.draft.observation);
            next.bytes = print;
        } else if let Some(markup) = &markup {
            quote(&mut next, markup);
        }
        bear(&mut next, winner);
        next.sse091 = sse091;
        next.extras = match winner.data.owner {
            DataOwner::Entry => extras_of(incoming),
            DataOwner::Ours => next.extras,
            DataOwner::Conflict(_) => None,
        };
        next.absence = None;
        next.standing = self.standing_after(known, winner.deleted, is_listed);
        let kind = match (known.is_deleted(), winner.deleted) {
            (false, true) => EventKind::Deleted,
            (true, false) => EventKind::Undeleted,
            _ => EventKind::Updated,
        };
        let reasons = [Some(&*reason(known, &before, &merged)), settled];
        let reason = reasons.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let conflicts = merged.conflicts.iter().map(|c| c.with(data(c.data))).collect();
        let conflicts = self.limit_conflicts(&known.id, conflicts);
        let details = EventDetails::new(kind, reason);
        self.draft.adopt_version(Some(index), next, markup, conflicts, details);
    }

    /// Takes in an offered version that is known. Newer bytes of it are served if the item comes from this publisher.
    fn confirm_version(
        &mut self,
        index: usize,
        known: &LedgerEntry,
        offer: &Offer<'_>,
        winner: &Version<Datum<'_>>,
    ) {
        if offer.takes_over {
            self.draft.change(index, |item| item.origin = offer.origin.clone());
        }
        let is_back = offer.is_listed && matches!(known.standing, ItemStatus::Retired { .. });
        if is_back {
            let running_now = self.draft.observation.running_now;
            self.draft.change(index, |item| {
                item.standing = ItemStatus::Current;
                item.came = running_now;
            });
            let reason = "its publisher, who shares it, lists it again, unchanged";
            self.draft.event(index, EventDetails::new(EventKind::Returned, reason));
        }
        let is_its = known.origin == offer.origin || offer.takes_over;
        if winner.data.is_of_entry() && is_its && known.extras != extras_of(offer.incoming) {
            self.draft.change(index, |item| item.extras = extras_of(offer.incoming));
            self.draft.shown_changed = true;
        }
        let is_newest = winner.data.is_of_entry()
            && winner.data.print != known.bytes.to_be_bytes()
            && is_its
            && !known.is_deleted()
            && offer.is_listed;
        let Some(entry) = offer.body.entry().filter(|_| is_newest) else { return };
        let (print, observation) = (offer.body.print(), self.draft.observation);
        self.draft.change(index, |item| {
            resemble(item, &entry, observation);
            item.bytes = print;
        });
        let has_other = |item: &LedgerEntry| item.prints != known.prints && print != known.bytes;
        if self.draft.item(index).is_some_and(has_other) {
            self.draft.keep_latest(known.id.clone(), offer.body.markup());
        }
    }
}
