//! What happened to a feed between two looks at it: facts to incidents.

use tidegate_core::model::{Count, Event, EventKind, FeedName, FeedState, Hold, SyncId};
use tidegate_status::{FinishedPoll, PollStatus};

/// What the gateway says of a feed at one moment. Polling first: what it reports is in all that is read later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedFacts {
    /// How its polling stands.
    pub polling: PollStatus,
    /// Its state.
    pub state: FeedState,
    /// What happened to its items, newest first, as far as it was asked for.
    pub events: Vec<Event>,
    /// The items in conflict.
    pub contested: Vec<SyncId>,
}

/// Something that the gateway did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incident {
    /// The feed was read for the first time; how many items of it live.
    FirstRead { items: u32 },
    /// Something happened to an item. `versions`: the numbers of what was there before and of what is there
    /// now, where both are kept.
    Item { event: Event, versions: Option<(Count, Count)> },
    /// A document changed in so many items, and in none that a reader would see.
    Noise { items: u32 },
    /// Only a part of a document counts.
    Broken { why: String, entries: usize },
    /// A document was not believed before, and the publisher sends whole ones again.
    Mended,
    /// There was no document.
    Failed { error: String },
    /// There is one again.
    Recovered,
    /// A document is held.
    Held { reason: String },
    /// A hold is over: the document was believed, with so many edits, or the publisher mended it.
    HoldOver { believed: Option<usize> },
    /// An item was changed at two endpoints that did not know of each other.
    Conflict { item: SyncId, title: String },
    /// It is in conflict no more.
    Resolved { title: String },
    /// A change of the feed stands in the change log.
    Logged { epoch: u64 },
}

/// Follows one feed.
#[derive(Debug, Clone)]
pub struct FeedFollower {
    feed: FeedName,
    seen: Option<SeenFeed>,
}

/// What of a feed was told.
#[derive(Debug, Clone)]
struct SeenFeed {
    newest: Option<Event>,
    polls: u64,
    is_broken: bool,
    is_failing: bool,
    hold: Option<Hold>,
    contested: Vec<SyncId>,
}

/// How many events of a feed are asked for at a look.
pub const EVENTS_READ: usize = 100;

impl FeedFollower {
    /// Nothing was seen of the feed yet.
    pub const fn new(feed: FeedName) -> Self {
        Self { feed, seen: None }
    }

    /// The feed.
    pub const fn feed(&self) -> &FeedName {
        &self.feed
    }

    /// What happened since the last look, in the order in which it is to be told.
    pub fn incidents(&mut self, facts: &FeedFacts) -> Vec<Incident> {
        let polls = facts.polling.totals.polls();
        if polls == 0 {
            return Vec::new();
        }
        let now = SeenFeed {
            newest: facts.events.first().cloned(),
            polls,
            is_broken: is_broken(facts),
            is_failing: facts.polling.failure.is_some(),
            hold: facts.state.hold.clone(),
            contested: facts.contested.clone(),
        };
        match self.seen.replace(now) {
            None => vec![Incident::FirstRead { items: facts.state.living }],
            Some(before) => since(&before, facts),
        }
    }
}

/// Whether the last document that was looked at is one of which only a part counts.
fn is_broken(facts: &FeedFacts) -> bool {
    facts.polling.document.as_ref().is_some_and(|document| document.partial.is_some())
}

fn since(before: &SeenFeed, facts: &FeedFacts) -> Vec<Incident> {
    let mut told = Vec::new();
    let events = new_events(before, facts);
    troubles(before, facts, &mut told);
    let hold_over = before.hold.is_some() && facts.state.hold.is_none();
    let believed = hold_over.then(|| believed(&events, facts)).flatten();
    if hold_over {
        told.push(Incident::HoldOver { believed });
    }
    let came: Vec<&SyncId> =
        facts.contested.iter().filter(|item| !before.contested.contains(item)).collect();
    let went: Vec<&SyncId> =
        before.contested.iter().filter(|item| !facts.contested.contains(item)).collect();
    let title_of = |item: &SyncId| {
        let event = facts.events.iter().find(|event| event.id == *item);
        event.map(|event| event.title.clone()).unwrap_or_default()
    };
    for event in events {
        let is_edit = event.kind == EventKind::Updated;
        // What a hold or a conflict tells of at once is not told again an item each.
        let is_told = believed.is_some() || came.contains(&&event.id) || went.contains(&&event.id);
        if !(is_edit && is_told) {
            told.push(Incident::Item { event: event.clone(), versions: None });
        }
    }
    let noise = new_polls(before, facts).filter(|poll| is_noise(poll)).map(|poll| poll.rewritten);
    told.extend(noise.max().map(|items| Incident::Noise { items }));
    told.extend(
        came.into_iter()
            .map(|item| Incident::Conflict { item: item.clone(), title: title_of(item) }),
    );
    told.extend(went.into_iter().map(|item| Incident::Resolved { title: title_of(item) }));
    told
}

/// The publisher's troubles that began or ended.
fn troubles(before: &SeenFeed, facts: &FeedFacts, told: &mut Vec<Incident>) {
    let failure = facts.polling.failure.as_ref();
    match (before.is_failing, failure) {
        (false, Some(failure)) => told.push(Incident::Failed { error: failure.error.clone() }),
        (true, None) => told.push(Incident::Recovered),
        _ => {}
    }
    let document = facts.polling.document.as_ref();
    let partial = document.and_then(|document| Some((document.partial.clone()?, document.entries)));
    match (before.is_broken, partial) {
        (false, Some((why, entries))) => told.push(Incident::Broken { why, entries }),
        (true, None) => told.push(Incident::Mended),
        _ => {}
    }
    if let (None, Some(hold)) = (&before.hold, &facts.state.hold) {
        told.push(Incident::Held { reason: hold.reason.clone() });
    }
}

/// The events since the last look, oldest first.
fn new_events<'a>(before: &SeenFeed, facts: &'a FeedFacts) -> Vec<&'a Event> {
    let is_new = |event: &&Event| before.newest.as_ref() != Some(*event);
    let mut events: Vec<&Event> = facts.events.iter().take_while(is_new).collect();
    events.reverse();
    events
}

/// The polls since the last look, as far as they are remembered.
fn new_polls<'a>(
    before: &SeenFeed,
    facts: &'a FeedFacts,
) -> impl Iterator<Item = &'a FinishedPoll> {
    let new = facts.polling.totals.polls().saturating_sub(before.polls);
    facts.polling.polls.iter().take(usize::try_from(new).unwrap_or(usize::MAX))
}

/// Whether a poll found changes that nobody sees, and nothing else.
fn is_noise(poll: &FinishedPoll) -> bool {
    poll.failure.is_none() && poll.rewritten > 0 && poll.counts.values().all(|count| *count == 0)
}

/// How many edits came with the end of a hold, where they are what was held: most of the document.
fn believed(events: &[&Event], facts: &FeedFacts) -> Option<usize> {
    let edits = events.iter().filter(|event| event.kind == EventKind::Updated).count();
    let listed = usize::try_from(facts.state.current).unwrap_or(usize::MAX);
    (edits.saturating_mul(2) > listed).then_some(edits)
}

#[cfg(test)]
mod tests;
