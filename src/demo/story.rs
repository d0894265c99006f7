//! What is told of what the gateway did: from two looks at a feed to lines, each a plain sentence with the address that
//! shows it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use tidegate_core::model::{Count, Event, EventKind, FeedName, FeedState, SyncId, Tick, counted};
use tidegate_core::terminal::printable;
use tidegate_core::xml::shortened;
use tidegate_serve::item_page;
use tidegate_status::{FinishedPoll, PollStatus};

/// The width of the column of kinds.
const KIND_WIDTH: usize = 10;
/// How many events of a feed are asked for at a look.
pub const EVENTS_READ: usize = 100;
/// What happens all the time is told of a feed this often at most.
const OFTEN: Duration = Duration::from_secs(60);
/// The most bytes of what a publisher says that stand in a line.
const SAID_LIMIT: usize = 90;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoryKind {
    /// The word in front of the sentence.
    word: &'static str,
    /// Its colour on a terminal (ECMA-48, SGR).
    colour: &'static str,
    /// Whether every run shows it.
    is_promised: bool,
}

impl StoryKind {
    /// A feed was read for the first time.
    pub const READ: Self = Self::new("read", "2", false);
    pub const NEW: Self = Self::new("new", "32", true);
    pub const EDIT: Self = Self::new("edit", "36", true);
    /// A change that nobody sees.
    pub const NOISE: Self = Self::new("noise", "2", true);
    pub const RENAME: Self = Self::new("rename", "36", true);
    /// An item left at the end of its publisher's window.
    pub const SCROLL_OFF: Self = Self::new("scroll-off", "2", true);
    pub const DELETION: Self = Self::new("deletion", "31", true);
    /// An item is back, or came or went in another way.
    pub const OTHER: Self = Self::new("item", "36", false);
    /// A document of which only a part counts, or none at all.
    pub const BROKEN: Self = Self::new("broken", "31", true);
    /// The publisher is well again.
    pub const MENDED: Self = Self::new("mended", "32", false);
    pub const HELD: Self = Self::new("held", "33", true);
    pub const RELEASED: Self = Self::new("hold over", "32", true);
    pub const CONFLICT: Self = Self::new("conflict", "33", true);
    pub const RESOLVED: Self = Self::new("resolved", "32", false);
    /// The change stands in the stream of events.
    pub const EVENTS: Self = Self::new("events", "35", true);
    /// The change stands in the SUP document.
    pub const SUP: Self = Self::new("sup", "35", true);
    /// Everything was told once.
    pub const ALL: Self = Self::new("all seen", "32", false);
    /// How many kinds every run shows.
    pub const PROMISED: usize = 12;

    const fn new(word: &'static str, colour: &'static str, is_promised: bool) -> Self {
        Self { word, colour, is_promised }
    }
}

/// A line of the story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoryLine {
    /// How long after the start.
    pub at: Duration,
    pub kind: StoryKind,
    pub sentence: String,
    /// The address that shows it.
    pub address: String,
    /// What a visitor may type.
    pub command: Option<String>,
}

impl StoryLine {
    /// The line as it is printed, without its end; a command stands below it.
    pub fn print(&self, has_colour: bool) -> String {
        let Self { kind, sentence, address, .. } = self;
        let seconds = self.at.as_secs();
        let time = format!("{}:{:02}", seconds / 60, seconds % 60);
        let word = format!("{:KIND_WIDTH$}", kind.word);
        let word = if has_colour { format!("\x1b[{}m{word}\x1b[0m", kind.colour) } else { word };
        let command = self.command.as_ref();
        let below = command.map(|it| format!("\n       {:KIND_WIDTH$}  {it}", ""));
        format!("{time:>5}  {word}  {sentence}  {address}{}", below.unwrap_or_default())
    }
}

/// What the gateway says of a feed at one moment. Polling first: what it reports is in all that is read later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedFacts {
    /// How its polling stands.
    pub polling: PollStatus,
    /// Its state.
    pub state: FeedState,
    /// What happened to its items, newest first, as far as it was asked for.
    pub events: Vec<Event>,
    /// Of edits since the last look the numbers of the version before and of the one that they made, where both are
    /// kept.
    pub versions: HashMap<(SyncId, Option<Tick>), (Count, Count)>,
    /// The items in conflict.
    pub contested: Vec<SyncId>,
}

/// Something to tell: what it is about, the sentence, and the path from the root that shows it.
type StoryText = (StoryKind, String, String);

/// Says what is told, when and how; it knows what was told before.
#[derive(Debug, Clone)]
pub struct Storyteller {
    /// The gateway: `http://127.0.0.1:8080`.
    gateway: String,
    /// The administration token as a shell is to be given it.
    token: String,
    /// What was told of.
    seen: BTreeMap<FeedName, FeedFacts>,
    told: BTreeSet<StoryKind>,
    often: BTreeMap<(FeedName, StoryKind), Duration>,
}

impl Storyteller {
    /// Nothing was seen and told yet.
    pub const fn new(gateway: String, token: String) -> Self {
        let seen = BTreeMap::new();
        Self { gateway, token, seen, told: BTreeSet::new(), often: BTreeMap::new() }
    }

    /// Those of a feed's events that came since the last look, newest first; none at the first one.
    pub fn new_events<'e>(&self, feed: &FeedName, events: &'e [Event]) -> &'e [Event] {
        self.seen.get(feed).map_or(&[], |before| newer(before, events))
    }

    /// The lines for what happened to a feed since the last look.
    pub fn tell(&mut self, at: Duration, feed: &FeedName, facts: &FeedFacts) -> Vec<StoryLine> {
        if facts.polling.polls.is_empty() {
            return Vec::new();
        }
        let told = match self.seen.insert(feed.clone(), facts.clone()) {
            Some(before) => since(feed, &before, facts),
            None => {
                let posts = counted(facts.state.living, "post");
                let sentence = format!("The gateway read {feed}: it has {posts} for feed readers.");
                vec![(StoryKind::READ, sentence, format!("/feeds/{feed}"))]
            }
        };
        told.into_iter().flat_map(|told| self.lines(at, feed, told)).collect()
    }

    /// The lines for a change of a feed that stands in the change log. Who listens is told of changes: that is told once
    /// each, after something that people see.
    pub fn tell_of_log(&mut self, at: Duration, feed: &FeedName, epoch: u64) -> Vec<StoryLine> {
        let has = |kind| self.told.contains(&kind);
        if ![StoryKind::NEW, StoryKind::EDIT, StoryKind::DELETION].into_iter().any(has) {
            return Vec::new();
        }
        let told = match (has(StoryKind::EVENTS), has(StoryKind::SUP)) {
            (false, _) => (
                StoryKind::EVENTS,
                format!(
                    "All who listen were told at once that {feed} changed (change {epoch} of the log); listen \
                     with curl -N."
                ),
                "/events".to_owned(),
            ),
            (true, false) => (
                StoryKind::SUP,
                format!(
                    "A program that asks once a minute finds {feed} among the feeds that changed, in one small SUP \
                     document."
                ),
                "/sup.json".to_owned(),
            ),
            (true, true) => return Vec::new(),
        };
        self.lines(at, feed, told)
    }

    /// The line for something, where it is time for it; and the last one, once everything was told.
    fn lines(&mut self, at: Duration, feed: &FeedName, told: StoryText) -> Vec<StoryLine> {
        let mut lines = Vec::new();
        if self.is_time(at, feed, told.0) {
            lines.push(self.line(at, feed, told));
        }
        let promised = self.told.iter().filter(|kind| kind.is_promised).count();
        if promised == StoryKind::PROMISED && !self.told.contains(&StoryKind::ALL) {
            let sentence = "Now you have seen it all once; it goes on like this. Each feed's page has its \
                            life as a picture.";
            let path = "/feeds/lighthouse/about".to_owned();
            lines.push(self.line(at, feed, (StoryKind::ALL, sentence.to_owned(), path)));
        }
        lines
    }

    fn line(
        &mut self,
        at: Duration,
        feed: &FeedName,
        (kind, sentence, path): StoryText,
    ) -> StoryLine {
        self.told.insert(kind);
        let Self { gateway, token, .. } = self;
        let command = (kind == StoryKind::HELD).then(|| {
            format!(
                "to believe it all the same: curl -X POST -H \"Authorization: Bearer {token}\" -d \
                 '{{\"action\":\"release\"}}' {gateway}/api/v1/feeds/{feed}/hold"
            )
        });
        StoryLine { at, kind, sentence, address: format!("{gateway}{path}"), command }
    }

    /// Whether a line of this kind is to be told now: what happens all the time is told now and then.
    fn is_time(&mut self, at: Duration, feed: &FeedName, kind: StoryKind) -> bool {
        if ![StoryKind::NOISE, StoryKind::SCROLL_OFF].contains(&kind) {
            return true;
        }
        let key = (feed.clone(), kind);
        let is_due = self.often.get(&key).is_none_or(|last| at.saturating_sub(*last) >= OFTEN);
        if is_due {
            self.often.insert(key, at);
        }
        is_due
    }
}

/// What is to be told of a feed since a look at it, in its order.
fn since(feed: &FeedName, before: &FeedFacts, facts: &FeedFacts) -> Vec<StoryText> {
    let mut told = Vec::new();
    let about = || format!("/feeds/{feed}/about");
    let mut tell = |kind, sentence| told.push((kind, sentence, about()));
    match (&before.polling.failure, &facts.polling.failure) {
        (None, Some(failure)) => {
            let why = readable(&failure.error);
            let said =
                format!("{feed} could not be read ({why}): readers keep what was last good.");
            tell(StoryKind::BROKEN, said);
        }
        (Some(_), None) => {
            tell(StoryKind::MENDED, format!("The publisher answers for {feed} again."));
        }
        _ => {}
    }
    match (partial(before), partial(facts)) {
        (None, Some((why, entries))) => tell(
            StoryKind::BROKEN,
            format!(
                "The publisher broke {feed} ({}; {entries} posts are left): the others are not taken \
                 for deleted, readers keep what was last good.",
                readable(without_place(why))
            ),
        ),
        (Some(_), None) => {
            tell(StoryKind::MENDED, format!("The publisher mended {feed}: it is whole again."));
        }
        _ => {}
    }
    let events = newer(before, &facts.events);
    // The edits that come with the end of a hold are what was held where they are most of the document.
    let edits = events.iter().filter(|event| event.kind == EventKind::Updated).count();
    let listed = usize::try_from(facts.state.current).unwrap_or(usize::MAX);
    let is_over = before.state.hold.is_some() && facts.state.hold.is_none();
    let is_believed = is_over && edits.saturating_mul(2) > listed;
    match &facts.state.hold {
        Some(hold) if before.state.hold.is_none() => tell(
            StoryKind::HELD,
            format!(
                "The new {feed} is held ({}): readers keep what was last good until the publisher repairs it or \
                 you release it.",
                readable(&hold.reason)
            ),
        ),
        None if is_believed => {
            let said = format!("The held {feed} was believed: {edits} posts were edited.");
            tell(StoryKind::RELEASED, said);
        }
        None if is_over => tell(
            StoryKind::RELEASED,
            format!(
                "The publisher repaired {feed}: the hold is over, and no reader saw the broken posts."
            ),
        ),
        _ => {}
    }
    let came = facts.contested.iter().filter(|item| !before.contested.contains(item));
    let went = before.contested.iter().filter(|item| !facts.contested.contains(item));
    let (came, went): (Vec<&SyncId>, Vec<&SyncId>) = (came.collect(), went.collect());
    for event in events.iter().rev() {
        // What a hold or a conflict tells of at once is not told again an item each.
        let is_told = is_believed || came.contains(&&event.id) || went.contains(&&event.id);
        if !(event.kind == EventKind::Updated && is_told) {
            let key = (event.id.clone(), event.tick);
            told.push(describe_item(feed, event, facts.versions.get(&key).copied()));
        }
    }
    if let Some(items) = noise(before, facts) {
        let posts = counted(items, "post");
        let said = format!(
            "{posts} of {feed} changed in what no reader sees, such as build date and comment counts: no \
             new version, readers see nothing new."
        );
        told.push((StoryKind::NOISE, said, about()));
    }
    let title_of = |item: &SyncId| {
        let event = facts.events.iter().find(|event| event.id == *item);
        quoted(event.map_or("", |event| event.title.as_str()))
    };
    let conflicts = || format!("/feeds/{feed}/conflicts");
    told.extend(came.into_iter().map(|item| {
        let title = title_of(item);
        let said = format!(
            "{title} was changed here and by another endpoint, neither knowing of the other: both \
             versions are kept, and you can decide."
        );
        (StoryKind::CONFLICT, said, conflicts())
    }));
    told.extend(went.into_iter().map(|item| {
        (StoryKind::RESOLVED, format!("{} is in conflict no more.", title_of(item)), conflicts())
    }));
    told
}

/// Why a part of the last document is missing, and how many entries it has.
fn partial(facts: &FeedFacts) -> Option<(&str, usize)> {
    let document = facts.polling.document.as_ref()?;
    Some((document.partial.as_ref()?, document.entries))
}

/// The events since a look, newest first.
fn newer<'e>(before: &FeedFacts, events: &'e [Event]) -> &'e [Event] {
    let known = events.iter().position(|event| before.events.first() == Some(event));
    known.and_then(|known| events.get(..known)).unwrap_or(events)
}

/// How many items the polls since a look found changed in what nobody sees, at most, where they found nothing else.
fn noise(before: &FeedFacts, facts: &FeedFacts) -> Option<u32> {
    let last = before.polling.polls.front().map(|poll| poll.at);
    let new = facts.polling.polls.iter().take_while(|poll| Some(poll.at) > last);
    let is_noise = |poll: &&FinishedPoll| {
        poll.failure.is_none() && poll.counts.values().all(|count| *count == 0)
    };
    new.filter(is_noise).map(|poll| poll.rewritten).filter(|items| *items > 0).max()
}

fn describe_item(feed: &FeedName, event: &Event, versions: Option<(Count, Count)>) -> StoryText {
    let (title, reason) = (quoted(&event.title), readable(&event.reason));
    let mut path = item_page(feed, &event.id);
    let (kind, sentence) = match event.kind {
        EventKind::Created => (StoryKind::NEW, format!("New in {feed}: {title}.")),
        EventKind::Updated => {
            let mut see = "see its versions";
            if let Some((before, now)) = versions {
                path.push_str(&format!("?diff={}..{}", before.value(), now.value()));
                see = "see the difference";
            }
            (StoryKind::EDIT, format!("{title} in {feed} was edited ({reason}): {see}."))
        }
        EventKind::Deleted => (
            StoryKind::DELETION,
            format!(
                "{title} was withdrawn from {feed} ({reason}): readers lose it, subscribers get its \
                 tombstone."
            ),
        ),
        EventKind::Retired => (
            StoryKind::SCROLL_OFF,
            format!(
                "{title} left {feed} ({reason}): that is no deletion, archives and the complete view keep \
                 it."
            ),
        ),
        EventKind::Rekeyed => (
            StoryKind::RENAME,
            format!(
                "The publisher gave {title} another id ({reason}): it is one item with two names, and \
                 readers see nothing twice."
            ),
        ),
        EventKind::Undeleted | EventKind::Returned => {
            (StoryKind::OTHER, format!("Again in {feed}: {title}."))
        }
        EventKind::Backfilled | EventKind::Discarded => {
            (StoryKind::OTHER, format!("{title} in {feed} was {} ({reason}).", event.kind.name()))
        }
    };
    (kind, sentence, path)
}

/// What is wrong with a document, without the byte at which it is.
fn without_place(why: &str) -> &str {
    why.rsplit_once(" (byte ").map_or(why, |(what, _)| what)
}

/// A title in quotation marks.
fn quoted(title: &str) -> String {
    format!("“{}”", readable(title))
}

/// What a publisher says, cut to a readable length.
fn readable(text: &str) -> String {
    let line = printable(text);
    match shortened(&line, SAID_LIMIT) {
        whole if whole.len() == line.len() => line,
        part => format!("{part}…"),
    }
}

#[cfg(test)]
mod tests;
