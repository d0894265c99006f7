//! What is told: an incident to one plain sentence, with the address that shows it.

use super::{StoryKind, StoryLine};
use crate::demo::follow::Incident;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;
use tidegate_core::model::{Count, Event, EventKind, FeedName};
use tidegate_core::terminal::printable;
use tidegate_core::xml::shortened;
use tidegate_serve::item_page;

/// What happens all the time is told of a feed this often at most.
const OFTEN: Duration = Duration::from_secs(60);
/// The most bytes of what a publisher says that stand in a line.
const SAID_LIMIT: usize = 90;

/// Says what is told, when and how; it knows what was told before.
#[derive(Debug, Clone)]
pub struct Storyteller {
    /// The gateway: `http://127.0.0.1:8080`.
    gateway: String,
    /// The administration token as a shell is to be given it.
    token: String,
    told: BTreeSet<StoryKind>,
    often: BTreeMap<(FeedName, StoryKind), Duration>,
}

/// What is told of an incident.
struct StoryText {
    kind: StoryKind,
    sentence: String,
    /// From the root.
    path: String,
    command: Option<String>,
}

impl Storyteller {
    /// Nothing was told yet.
    pub const fn new(gateway: String, token: String) -> Self {
        Self { gateway, token, told: BTreeSet::new(), often: BTreeMap::new() }
    }

    /// The lines for something that happened to a feed; none where it is not worth one.
    pub fn tell(&mut self, at: Duration, feed: &FeedName, incident: &Incident) -> Vec<StoryLine> {
        let mut lines = Vec::new();
        if let Some(text) = self.describe(feed, incident)
            && self.is_time(at, feed, text.kind)
        {
            lines.push(self.line(at, text));
        }
        if !self.told.contains(&StoryKind::All)
            && StoryKind::PROMISED.iter().all(|kind| self.told.contains(kind))
        {
            let sentence = "Now you have seen it all once; it goes on like this. Each feed's page has its \
                            life as a picture.";
            let path = "/feeds/lighthouse/about".to_owned();
            lines.push(self.line(at, StoryText::new(StoryKind::All, sentence.to_owned(), path)));
        }
        lines
    }

    fn line(&mut self, at: Duration, text: StoryText) -> StoryLine {
        let StoryText { kind, sentence, path, command } = text;
        self.told.insert(kind);
        StoryLine { at, kind, sentence, address: format!("{}{path}", self.gateway), command }
    }

    /// Whether a line of this kind is to be told now: what happens all the time is told now and then.
    fn is_time(&mut self, at: Duration, feed: &FeedName, kind: StoryKind) -> bool {
        if !matches!(kind, StoryKind::Noise | StoryKind::ScrollOff) {
            return true;
        }
        let key = (feed.clone(), kind);
        let is_due = self.often.get(&key).is_none_or(|last| at.saturating_sub(*last) >= OFTEN);
        if is_due {
            self.often.insert(key, at);
        }
        is_due
    }

    fn describe(&self, feed: &FeedName, incident: &Incident) -> Option<StoryText> {
        let about = format!("/feeds/{feed}/about");
        let text = match incident {
            Incident::FirstRead { items } => StoryText::new(
                StoryKind::Read,
                format!(
                    "The gateway read {feed}: it has {} for feed readers.",
                    count(*items, "post")
                ),
                format!("/feeds/{feed}"),
            ),
            Incident::Item { event, versions } => describe_item(feed, event, *versions),
            Incident::Noise { items } => StoryText::new(
                StoryKind::Noise,
                format!(
                    "{} of {feed} changed in what no reader sees, such as build date and comment counts: no \
                     new version, readers see nothing new.",
                    count(*items, "post")
                ),
                about,
            ),
            Incident::Broken { why, entries } => StoryText::new(
                StoryKind::Broken,
                format!(
                    "The publisher broke {feed} ({}; {entries} posts are left): the others are not taken \
                     for deleted, readers keep what was last good.",
                    readable(without_place(why))
                ),
                about,
            ),
            Incident::Mended => StoryText::new(
                StoryKind::Mended,
                format!("The publisher mended {feed}: it is whole again."),
                about,
            ),
            Incident::Failed { error } => StoryText::new(
                StoryKind::Broken,
                format!(
                    "{feed} could not be read ({}): readers keep what was last good.",
                    readable(error)
                ),
                about,
            ),
            Incident::Recovered => StoryText::new(
                StoryKind::Mended,
                format!("The publisher answers for {feed} again."),
                about,
            ),
            Incident::Held { reason } => self.describe_hold(feed, reason, about),
            Incident::HoldOver { believed: None } => StoryText::new(
                StoryKind::Released,
                format!(
                    "The publisher repaired {feed}: the hold is over, and no reader saw the broken posts."
                ),
                about,
            ),
            Incident::HoldOver { believed: Some(edits) } => StoryText::new(
                StoryKind::Released,
                format!("The held {feed} was believed: {edits} posts were edited."),
                about,
            ),
            Incident::Conflict { title, .. } => StoryText::new(
                StoryKind::Conflict,
                format!(
                    "{} was changed here and by another endpoint, neither knowing of the other: both \
                     versions are kept, and you can decide.",
                    quoted(title)
                ),
                format!("/feeds/{feed}/conflicts"),
            ),
            Incident::Resolved { title } => StoryText::new(
                StoryKind::Resolved,
                format!("{} is in conflict no more.", quoted(title)),
                format!("/feeds/{feed}/conflicts"),
            ),
            Incident::Logged { epoch } => return self.describe_log(feed, *epoch),
        };
        Some(text)
    }

    fn describe_hold(&self, feed: &FeedName, reason: &str, about: String) -> StoryText {
        let Self { gateway, token, .. } = self;
        let command = format!(
            "to believe it all the same: curl -X POST -H \"Authorization: Bearer {token}\" -d \
             '{{\"action\":\"release\"}}' {gateway}/api/v1/feeds/{feed}/hold"
        );
        let sentence = format!(
            "The new {feed} is held ({}): readers keep what was last good until the publisher repairs it or \
             you release it.",
            readable(reason)
        );
        StoryText { command: Some(command), ..StoryText::new(StoryKind::Held, sentence, about) }
    }

    /// Who listens is told of changes: that is told once each, after something that people see.
    fn describe_log(&self, feed: &FeedName, epoch: u64) -> Option<StoryText> {
        let has = |kind| self.told.contains(&kind);
        if ![StoryKind::New, StoryKind::Edit, StoryKind::Deletion].into_iter().any(has) {
            return None;
        }
        if !has(StoryKind::Events) {
            let sentence = format!(
                "Whoever listens was told at once that {feed} changed (change {epoch} of the log); listen \
                 with curl -N."
            );
            return Some(StoryText::new(StoryKind::Events, sentence, "/events".to_owned()));
        }
        if !has(StoryKind::Sup) {
            let sentence = format!(
                "Whoever asks once a minute finds {feed} among the feeds that changed, in one small SUP \
                 document."
            );
            return Some(StoryText::new(StoryKind::Sup, sentence, "/sup.json".to_owned()));
        }
        None
    }
}

impl StoryText {
    const fn new(kind: StoryKind, sentence: String, path: String) -> Self {
        Self { kind, sentence, path, command: None }
    }
}

fn describe_item(feed: &FeedName, event: &Event, versions: Option<(Count, Count)>) -> StoryText {
    let (title, reason) = (quoted(&event.title), readable(&event.reason));
    let mut path = item_page(feed, &event.id);
    let (kind, sentence) = match event.kind {
        EventKind::Created => (StoryKind::New, format!("New in {feed}: {title}.")),
        EventKind::Updated => {
            if let Some((before, now)) = versions {
                let _ = write!(path, "?diff={}..{}", before.value(), now.value());
            }
            let see = if versions.is_some() { "see the difference" } else { "see its versions" };
            (StoryKind::Edit, format!("{title} in {feed} was edited ({reason}): {see}."))
        }
        EventKind::Deleted => (
            StoryKind::Deletion,
            format!(
                "{title} was withdrawn from {feed} ({reason}): readers lose it, subscribers get its \
                 tombstone."
            ),
        ),
        EventKind::Retired => (
            StoryKind::ScrollOff,
            format!(
                "{title} left {feed} ({reason}): that is no deletion, archives and the complete view keep \
                 it."
            ),
        ),
        EventKind::Rekeyed => (
            StoryKind::Rename,
            format!(
                "The publisher gave {title} another id ({reason}): it is one item with two names, and \
                 readers see nothing twice."
            ),
        ),
        EventKind::Undeleted | EventKind::Returned => {
            (StoryKind::Other, format!("Again in {feed}: {title}."))
        }
        EventKind::Backfilled | EventKind::Discarded => {
            (StoryKind::Other, format!("{title} in {feed} was {} ({reason}).", event.kind.name()))
        }
    };
    StoryText::new(kind, sentence, path)
}

/// A number of things.
fn count(number: u32, thing: &str) -> String {
    if number == 1 { format!("one {thing}") } else { format!("{number} {thing}s") }
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
