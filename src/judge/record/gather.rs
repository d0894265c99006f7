//! One feed out of several: an aggregate takes over the items of its sources, merged by sync id
//! (SSE 1.0 sections 2.2.1 and 3.3). Ids and histories stay what they are.

use super::draft::ChangeDraft;
use super::mint;
use super::operator::forget_in;
use super::shared::{self, Merging, Offer, OfferedBody, by_update};
use super::{Observation, Verdict, local};
use credit::credited;
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use tidegate_core::model::{
    FeedName, Format, History, Incoming, Item, ItemStatus, LedgerEntry, Origin, Snapshot, SyncId,
    Time,
};
use tidegate_core::xml::plain_address::plain_link;

mod credit;

pub use credit::Credit;

/// A feed that an aggregate is made of, as it stands.
#[derive(Debug)]
pub struct AggregateSource {
    pub name: FeedName,
    /// What it is called, and its address: what `atom:source` says of it.
    pub credit: Credit,
    /// Its items that may be news, oldest first.
    pub items: Vec<Item>,
    /// What its reader view shows.
    pub current: Vec<SyncId>,
    /// Those of its items that this gateway makes itself, in it.
    pub minted: HashSet<SyncId>,
    /// Items whose text was taken out of it.
    pub redacted: Vec<SyncId>,
    /// Items that it discarded.
    pub discarded: Vec<SyncId>,
    /// The feeds whose items it may change.
    pub may_change: Vec<FeedName>,
    pub format: Format,
}

impl AggregateSource {
    /// One of which nothing is news.
    pub fn unchanged(name: FeedName, current: Vec<SyncId>, format: Format) -> Self {
        Self {
            name,
            credit: Credit::default(),
            items: Vec::new(),
            current,
            minted: HashSet::new(),
            redacted: Vec::new(),
            discarded: Vec::new(),
            may_change: Vec::new(),
            format,
        }
    }

    /// Adds the ids of minted, redacted and discarded items, so that the ledger itself need not be kept.
    pub fn with_ledger(mut self, known: &[LedgerEntry]) -> Self {
        let ids = |wanted: fn(&LedgerEntry) -> bool| {
            known.iter().filter(move |known| wanted(known)).map(|known| known.id.clone())
        };
        let is_minted = |it: &LedgerEntry| matches!(it.origin, Origin::Observed | Origin::Local);
        self.minted = ids(is_minted).collect();
        self.redacted = ids(LedgerEntry::is_redacted).collect();
        self.discarded = ids(LedgerEntry::is_discarded).collect();
        self
    }

    /// Whether an item was made there by this gateway itself: who makes an item owns its id, whoever
    /// claimed it before.
    fn mints(&self, item: &Item) -> bool {
        self.minted.contains(&item.shared.winner.id)
    }
}

/// An item that an aggregate did not take over as its source has it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    pub source: FeedName,
    #[serde(rename = "sync_id")]
    pub id: SyncId,
    /// Why not, or what of it, as a sentence.
    pub why: String,
}

/// Takes over what the sources have. `all`: the names of all sources, those among them that have
/// nothing yet included; what came from another one leaves the reader view. Says what was not taken, at
/// most as much as a merge notes.
pub fn gather(
    observation: &Observation<'_>,
    all: &[FeedName],
    sources: &[AggregateSource],
) -> (Verdict, Vec<LeftOut>) {
    let first = Snapshot::untouched(Format::Atom10, observation.now);
    let snapshot = observation.snapshot.unwrap_or(&first);
    let places: HashMap<SyncId, usize> =
        snapshot.known.iter().enumerate().map(|(at, known)| (known.id.clone(), at)).collect();
    let mut draft = ChangeDraft::new(observation, snapshot);
    let replaced = find_replaced(snapshot, all, sources);
    let is_replaced = |known: &LedgerEntry| replaced.contains(&known.id) && !known.is_discarded();
    let left = draft.positions(is_replaced);
    shared::discard(&mut draft, &left, "its source left, and another one has the same post");
    let mut merging = Merging::new(&mut draft, &places);
    merging.is_internal = true;
    let mut left_out = Vec::new();
    let holders = IdHolders::new(snapshot, all, sources, &replaced);
    let shown: HashSet<&SyncId> = sources.iter().flat_map(|source| &source.current).collect();
    for source in sources {
        for item in &source.items {
            let before = merging.merged.notes.len();
            let is_listed = shown.contains(&item.shared.winner.id);
            offer(&mut merging, all, source, item, is_listed, &holders);
            for why in merging.merged.notes.iter().skip(before) {
                let (source, id) = (source.name.clone(), item.shared.winner.id.clone());
                left_out.push(LeftOut { source, id, why: why.clone() });
            }
        }
    }
    for source in sources {
        for id in &source.redacted {
            if let Some(at) = places.get(id) {
                redact(&mut draft, source, *at);
            }
        }
    }
    discard(&mut draft, sources, &shown);
    retire(&mut draft, all, &shown);
    // Of lists alone comes a list. What has nothing yet may become anything.
    let was_list = draft.state.format == Format::Opml;
    let is_list = (sources.len() == all.len() || was_list)
        && sources.iter().all(|source| source.format == Format::Opml);
    if is_list {
        draft.state.format = Format::Opml;
        arrange_lists(&mut draft, sources);
    } else {
        draft.state.format = Format::Atom10;
        arrange(&mut draft, sources);
    }
    local::begin(&mut draft);
    draft.advance_window();
    (draft.into_verdict(None), left_out)
}

/// Items of the aggregate that no source has any more, where a source has the same post: that takes over the id that
/// the item was published with, so that it is no new post to readers.
fn find_replaced<'s>(
    snapshot: &'s Snapshot,
    all: &[FeedName],
    sources: &[AggregateSource],
) -> HashSet<&'s SyncId> {
    let posts = sources.iter().filter(|source| source.format != Format::Opml);
    let posts = posts.flat_map(|source| &source.items).filter_map(|item| {
        let winner = &item.shared.winner;
        let is_there = !winner.deleted && !is_redacted(item);
        let link = winner.data.card.link.as_deref().filter(|_| is_there)?;
        Some(((item.published_id.as_str(), plain_link(link)), &winner.id))
    });
    let posts: HashMap<(&str, String), &SyncId> = posts.collect();
    let is_left = |known: &&LedgerEntry| {
        known.is_discarded() || known.standing.lives() && !is_of_source(known, all)
    };
    let is_replaced = |known: &&LedgerEntry| {
        let link = known.link.as_deref().map(plain_link);
        let post = link.and_then(|link| posts.get(&(known.published_id.as_str(), link)));
        post.is_some_and(|id| **id != known.id)
    };
    let known = snapshot.known.iter().filter(is_left).filter(is_replaced);
    known.map(|known| &known.id).collect()
}

fn is_of_source(known: &LedgerEntry, all: &[FeedName]) -> bool {
    matches!(&known.origin, Origin::Feed(feed) if all.contains(feed))
}

/// The items of an aggregate by the ids that they are published with, which ids of one source need not be
/// in another: each with its link, where its source is one of the aggregate's and has it or deleted it. Of several
/// items the one that was there first keeps the id.
struct IdHolders<'a>(HashMap<&'a str, (&'a SyncId, Option<&'a str>)>);

impl<'a> IdHolders<'a> {
    fn new(
        snapshot: &'a Snapshot,
        all: &[FeedName],
        sources: &'a [AggregateSource],
        replaced: &HashSet<&SyncId>,
    ) -> Self {
        let mut holders = HashMap::new();
        let known = snapshot.known.iter().filter(|known| !replaced.contains(&known.id));
        let mut known: Vec<&LedgerEntry> = known.collect();
        // What took the id of one that was discarded is before it.
        known.sort_by_key(|known| known.is_discarded());
        for known in known {
            let is_there = is_of_source(known, all) && !known.is_discarded();
            let link = known.link.as_deref().filter(|_| is_there);
            holders.entry(known.published_id.as_str()).or_insert((&known.id, link));
        }
        let items = sources.iter().flat_map(|source| &source.items);
        let mut items: Vec<&Item> = items.filter(|item| !is_redacted(item)).collect();
        // What was deleted before anybody saw it here keeps no id from the same post of another source.
        items
            .sort_by_key(|item| (item.shared.winner.deleted, made_at(&item.shared.winner.history)));
        for item in items {
            let winner = &item.shared.winner;
            let link = winner.data.card.link.as_deref();
            holders.entry(item.published_id.as_str()).or_insert((&winner.id, link));
        }
        Self(holders)
    }

    /// Whether another item has the id which an item is published with; and whether that is the same post, as
    /// another feed of its site has it.
    fn find_other(&self, item: &Item) -> Option<bool> {
        let winner = &item.shared.winner;
        let (id, link) = self.0.get(item.published_id.as_str())?;
        let links = link.zip(winner.data.card.link.as_deref());
        let is_same_post = links.is_some_and(|(a, b)| plain_link(a) == plain_link(b));
        (**id != winner.id).then_some(is_same_post)
    }
}

const fn is_redacted(item: &Item) -> bool {
    matches!(item.standing, ItemStatus::Redacted { .. })
}

/// Offers an item to the merge, if its source may change it: an item's first source owns its id. `is_listed`: the
/// reader view of some source shows the item.
fn offer(
    merging: &mut Merging<'_, '_>,
    all: &[FeedName],
    source: &AggregateSource,
    item: &Item,
    is_listed: bool,
    holders: &IdHolders<'_>,
) {
    if is_redacted(item) {
        return;
    }
    let id = &item.shared.winner.id;
    let is_new = merging.known(id).is_none_or(|(_, known)| known.is_discarded());
    let other = holders.find_other(item).filter(|_| is_new);
    // An outline is in each folder that lists name it in.
    if source.format != Format::Opml && other == Some(true) {
        return;
    }
    let own = other.map(|_| mint::made_id(id));
    let origin = Origin::Feed(source.name.clone());
    let owner = match merging.known(id).map(|(_, known)| &known.origin) {
        Some(Origin::Feed(owner)) if *owner != source.name => Some(owner.clone()),
        _ => None,
    };
    let takes_over = owner.as_ref().is_some_and(|owner| !all.contains(owner) || source.mints(item));
    if let Some(owner) = owner.filter(|owner| !takes_over && !source.may_change.contains(owner)) {
        let name = &source.name;
        merging.merged.note(format!(
            "the item {id} of the feed {owner} stands in {name} as well; it changes only where one \
             of the two shares with the other"
        ));
        return;
    }
    let winner = &item.shared.winner;
    let incoming = Incoming {
        version: winner.with(()),
        conflicts: item.shared.conflicts.clone(),
        sse091: item.sse091,
        extras: item.extras.as_deref().cloned().unwrap_or_default(),
    };
    let markup = credited(&winner.data, &source.credit);
    merging.merge_offer(&Offer {
        incoming: &incoming,
        body: OfferedBody::Item(&markup),
        published_id: Some(own.as_ref().unwrap_or(&item.published_id)),
        origin,
        is_listed,
        takes_over,
    });
}

/// What was redacted at its source leaves no text here either.
fn redact(draft: &mut ChangeDraft<'_>, source: &AggregateSource, at: usize) {
    if draft.item(at).is_some_and(|known| !known.is_redacted()) {
        forget_in(draft, at, &format!("its text was removed in the feed {}", source.name));
    }
}

/// What the first source of an item discarded goes here too, unless another one shows it.
fn discard(draft: &mut ChangeDraft<'_>, sources: &[AggregateSource], shown: &HashSet<&SyncId>) {
    for source in sources {
        let discarded: HashSet<&SyncId> = source.discarded.iter().collect();
        let origin = Origin::Feed(source.name.clone());
        let gone = draft.positions(|known| {
            let is_its = discarded.contains(&known.id) && known.origin == origin;
            is_its && !known.is_deleted() && !shown.contains(&known.id)
        });
        shared::discard(draft, &gone, &format!("it was discarded in the feed {}", source.name));
    }
}

/// What no source shows any more leaves the reader view.
fn retire(draft: &mut ChangeDraft<'_>, all: &[FeedName], shown: &HashSet<&SyncId>) {
    let left = |known: &LedgerEntry| match &known.origin {
        Origin::Feed(owner) => {
            known.standing == ItemStatus::Current
                && (!all.contains(owner) || !shown.contains(&known.id))
        }
        _ => false,
    };
    for at in draft.positions(left) {
        draft.retire(at, "its source does not show it any more");
    }
}

/// When an item was made: the oldest update that is known.
fn made_at(history: &History) -> Option<Time> {
    history.iter().last()?.stamp.when()
}

/// The feed that an item is taken from, and when it was made there.
fn source_and_time(known: &LedgerEntry) -> Option<(&FeedName, Time)> {
    match &known.origin {
        Origin::Feed(feed) => Some((feed, made_at(&known.history)?)),
        _ => None,
    }
}

/// The order of the reader view: by update, the newest first. Undated posts of a source's first document say
/// nothing of when they are from: they stand below all others, in their source's order.
fn arrange(draft: &mut ChangeDraft<'_>, sources: &[AggregateSource]) {
    let mut first_looks: HashMap<&FeedName, Time> = HashMap::new();
    for (feed, made) in draft.ledger().filter_map(source_and_time) {
        first_looks.entry(feed).and_modify(|first| *first = made.min(*first)).or_insert(made);
    }
    let is_undated = |known: &LedgerEntry| {
        let is_bare = known.published.is_none() && known.updated.is_none();
        let is_of_first_look = |(feed, made)| first_looks.get(feed) == Some(&made);
        is_bare
            && known.updates.value() == 1
            && source_and_time(known).is_some_and(is_of_first_look)
    };
    let (undated, dated): (Vec<_>, Vec<_>) =
        by_update(draft).into_iter().partition(|known| is_undated(known));
    let mut undated: HashSet<&SyncId> = undated.into_iter().map(|known| &known.id).collect();
    let shown = sources.iter().flat_map(|source| &source.current);
    let below: Vec<&SyncId> = shown.filter(|id| undated.remove(*id)).collect();
    let order = dated.into_iter().map(|known| &known.id).chain(below).cloned().collect();
    draft.set_order(order);
}

/// That of a list made of lists: one behind the other, each in its own order, so that everything
/// stands where it stood.
fn arrange_lists(draft: &mut ChangeDraft<'_>, sources: &[AggregateSource]) {
    let newest = by_update(draft).into_iter().map(|known| known.id.clone());
    let newest: Vec<SyncId> = newest.collect();
    let mut left: HashSet<&SyncId> = newest.iter().collect();
    let listed = sources.iter().flat_map(|source| &source.current);
    let order = listed.chain(&newest).filter(|id| left.remove(*id)).cloned().collect();
    draft.set_order(order);
}
