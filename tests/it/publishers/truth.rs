//! What must hold of a gateway in front of a publisher whose truth is known.

use crate::publishers::gate::Seen;
use crate::publishers::publisher::Publisher;
use crate::publishers::write::number_of;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Arguments;
use tidegate_core::model::{
    Change, Completeness, EventKind, Item, ItemStatus, LedgerEntry, Snapshot, SyncId, Tick,
};

const TICK: &str = "a tick is not greater than the one before";
const HISTORY: &str = "`updates` or the history went back";
const HELD: &str = "a held document changed more than it may";
const BROKEN: &str = "an entry of a broken document was believed";
const SHOWN: &str = "the reader view has not what the document shows, or not in its order";

#[derive(Clone, Debug)]
pub struct Failure {
    pub kind: &'static str,
    pub words: String,
}

/// What the test knows of the gateway's items.
#[derive(Default)]
pub struct Truth {
    pub failures: Vec<Failure>,
    /// How often something was looked at that could have failed.
    pub checked: BTreeMap<&'static str, u64>,
    post_of: HashMap<SyncId, u32>,
    items_of: BTreeMap<u32, Vec<SyncId>>,
    published: HashMap<SyncId, String>,
    post_of_published: HashMap<String, u32>,
    updates: HashMap<SyncId, u32>,
    tick: Option<Tick>,
    /// What subscribers were told of the feed's head; 0 before the first document.
    told: u64,
    /// The newest revision of each post that the gateway has taken in.
    taken: HashMap<u32, u32>,
    twice: HashSet<u32>,
    /// Posts that got a version from a document that was broken.
    broken: HashSet<u32>,
    /// What the last document showed that was taken in whole.
    pub last_shown: Vec<u32>,
    /// Posts that readers are not shown: they were older than all that was known when they came in.
    older: HashSet<u32>,
}

pub struct InForce<'a> {
    pub publisher: &'a Publisher,
    /// The posts in it, where it is what the publisher means.
    pub shown: &'a [u32],
    pub glitch: bool,
}

fn numbers(reader: &[Item]) -> Vec<u32> {
    reader.iter().filter_map(|item| number_of(&item.shared.winner.data.xml)).collect()
}

impl Truth {
    pub fn fail(&mut self, kind: &'static str, words: impl Into<String>) {
        // What becomes of the item that it was before is looked at on.
        if kind == "a renamed post is another item" {
            return self.check("a renamed post became another item");
        }
        self.failures.push(Failure { kind, words: words.into() });
    }

    fn expect(&mut self, holds: bool, kind: &'static str, words: Arguments<'_>) {
        if !holds {
            self.fail(kind, words.to_string());
        }
    }

    fn check(&mut self, check: &'static str) {
        *self.checked.entry(check).or_insert(0) += 1;
    }

    pub fn listed_twice(&mut self, number: u32) {
        self.twice.insert(number);
    }

    /// Takes in what came of a poll.
    pub fn seen(&mut self, seen: &Seen, force: &InForce<'_>, reader: &[Item]) {
        if seen.held.is_some() {
            self.check("a document was held");
        } else if seen.taken.is_some() && seen.change.as_ref().is_some_and(|c| c.tick.is_none()) {
            self.check("other bytes changed nothing");
        }
        if let Some(change) = &seen.change {
            self.ticks(change);
            self.identities(change, force);
            self.histories(change);
            self.events(seen, change, force);
            // New posts come out of a document that is held; nothing that was there changes.
            let made = change.events.iter().filter(|e| e.kind == EventKind::Created).count();
            let only_news = change.events.len() == made
                && change.versions.len() == made
                && change.latest.is_empty()
                && change.skeleton.is_none()
                && (made > 0 || change.tick.is_none() && change.order.is_none());
            let holds = seen.held.is_none() || only_news;
            self.expect(holds, HELD, format_args!("{:?}", change.events));
        }
        self.view(seen, force, reader);
    }

    fn ticks(&mut self, change: &Change) {
        let told = std::mem::replace(&mut self.told, change.state.told.told);
        let is_news = !change.versions.is_empty() || (told != 0 && told != self.told);
        let words = format_args!("a tick without news, or news without a tick");
        self.expect(change.tick.is_some() == is_news, TICK, words);
        if let Some(tick) = change.tick {
            let before = self.tick.replace(tick);
            let rises = before.is_none_or(|before| before < tick);
            self.expect(rises, TICK, format_args!("{before:?} and then {tick}"));
        }
    }

    /// Which item is which post, as far as their bytes say.
    fn identities(&mut self, change: &Change, force: &InForce<'_>) {
        let with_bytes = change.versions.iter().filter_map(|v| Some((&v.id, v.markup.as_ref()?)));
        for (id, markup) in with_bytes.chain(change.latest.iter().map(|(id, it)| (id, it))) {
            let Some(number) = number_of(&markup.xml) else { continue };
            match self.post_of.get(id) {
                Some(before) if *before != number => {
                    let words = format!("{id} was post {before} and is post {number} now");
                    self.fail("two posts are one item", words);
                }
                Some(_) => continue,
                None => {}
            }
            self.post_of.insert(id.clone(), number);
            let items = self.items_of.entry(number).or_default();
            items.push(id.clone());
            let publisher = force.publisher;
            // What a broken document makes of a post is no copy that its publisher listed.
            let twice =
                self.twice.contains(&number) && !publisher.get(number).renamed && !force.glitch;
            if items.len() > 1 && !twice {
                let moved = publisher.https || publisher.moved > 0;
                let kind = match (publisher.get(number).renamed, moved) {
                    _ if force.glitch || self.broken.contains(&number) => BROKEN,
                    (true, _) => "a renamed post is another item",
                    (false, true) => "a moved post is another item",
                    (false, false) => "a post that nobody renamed is another item",
                };
                let words = format!("post {number} has the items {:?}", self.items_of[&number]);
                self.fail(kind, words);
            }
        }
        for known in &change.known {
            let number = self.post_of.get(&known.id).copied();
            let before = self.published.insert(known.id.clone(), known.published_id.clone());
            let now = &known.published_id;
            if let Some(before) = before.filter(|before| before != now) {
                self.fail("a published id changed", format!("{before} and then {now}"));
            }
            let Some(number) = number else { continue };
            let first = *self.post_of_published.entry(now.clone()).or_insert(number);
            let words = format_args!("{now} is post {first} and post {number}");
            self.expect(first == number, "a published id stands for another post", words);
        }
    }

    fn histories(&mut self, change: &Change) {
        for known in &change.known {
            let updates = known.updates.value();
            let before = self.updates.insert(known.id.clone(), updates).unwrap_or(0);
            let versions = change.versions.iter().filter(|v| v.id == known.id).count();
            let counted = updates >= before && (updates - before) as usize == versions;
            let words = format_args!("{updates} updates after {before} and {versions} versions");
            self.expect(counted, HISTORY, words);
            let sequences: Vec<u32> = known.history.iter().map(|u| u.sequence.value()).collect();
            let whens: Vec<_> = known.history.iter().map(|u| u.stamp.when()).collect();
            let newest_first = sequences.is_sorted_by(|newer, older| newer > older)
                && whens.is_sorted_by(|newer, older| newer >= older)
                && sequences.first() == Some(&updates)
                && known.tick <= change.tick.unwrap_or(known.tick);
            self.expect(newest_first, HISTORY, format_args!("{:?}", known.history));
        }
    }

    /// What is taken for older than all that was known must be so, and nothing that a reader was shown.
    fn older(&mut self, change: &Change) {
        let of = |kind: EventKind| {
            let events = change.events.iter().filter(move |event| event.kind == kind);
            events.filter_map(|event| self.post_of.get(&event.id).copied())
        };
        let (came, back): (HashSet<u32>, Vec<u32>) =
            (of(EventKind::Backfilled).collect(), of(EventKind::Returned).collect());
        let oldest = self.taken.keys().filter(|number| !self.older.contains(number)).min();
        if !came.is_empty() && (came.len() < 5 || came.iter().max() >= oldest) {
            self.fail(SHOWN, format!("{came:?} came in below {oldest:?}"));
        }
        self.older.extend(came);
        self.older.retain(|number| !back.contains(number));
    }

    fn events(&mut self, seen: &Seen, change: &Change, force: &InForce<'_>) {
        self.older(change);
        for event in &change.events {
            let Some(number) = self.post_of.get(&event.id).copied() else { continue };
            let post = force.publisher.get(number);
            match event.kind {
                EventKind::Deleted if !post.alive => self.check("a deletion was found"),
                EventKind::Deleted => {
                    let words = format!("post {number} ({}): {}", event.native_id, event.reason);
                    self.fail(self.cause(number, force), words);
                }
                EventKind::Retired if post.alive => self.check("a living item was retired"),
                EventKind::Rekeyed if !post.renamed => self.check("a moved post stayed an item"),
                // Two items of one post are not both as new as the post.
                EventKind::Updated if !self.twice.contains(&number) => {
                    if self.taken.get(&number).is_some_and(|taken| *taken == post.revision) {
                        let words = format!("post {number}: {}", event.reason);
                        let broken = matches!(seen.taken, Some(Completeness::Salvaged(_)));
                        let kind = match broken || self.broken.contains(&number) {
                            true => BROKEN,
                            false => "what no reader sees made a version",
                        };
                        self.fail(kind, words);
                    }
                    self.check("an edit made a version");
                }
                _ => {}
            }
        }
        if seen.taken.is_none() || seen.held.is_some() {
            return;
        }
        let versions: HashSet<u32> =
            change.versions.iter().filter_map(|v| self.post_of.get(&v.id).copied()).collect();
        let numbers: Vec<u32> = if force.glitch {
            self.broken.extend(&versions);
            versions.into_iter().collect()
        } else {
            for number in force.shown {
                let revision = force.publisher.get(*number).revision;
                let behind = self.taken.get(number).is_some_and(|taken| *taken < revision);
                if behind && !versions.contains(number) {
                    self.fail("what a reader sees made no version", format!("post {number}"));
                }
            }
            force.shown.to_vec()
        };
        for number in numbers {
            self.taken.insert(number, force.publisher.get(number).revision);
        }
    }

    fn cause(&self, number: u32, force: &InForce<'_>) -> &'static str {
        let post = force.publisher.get(number);
        if self.twice.contains(&number) {
            "a false tombstone: it was listed twice"
        } else if post.lost {
            "a false tombstone: it was lost by accident"
        } else if !force.publisher.shown().contains(&number) {
            match (post.redated, post.restored) {
                (true, _) => "a false tombstone: it left the window by an earlier date",
                (_, true) => "a false tombstone: it is back where the window does not show it",
                _ => "a false tombstone: it left the window",
            }
        } else if force.glitch {
            "a false tombstone: the document is not what the publisher means"
        } else if post.renamed || force.publisher.https || force.publisher.moved > 0 {
            "a false tombstone: it is listed under another id"
        } else {
            "a false tombstone: it is listed"
        }
    }

    fn view(&mut self, seen: &Seen, force: &InForce<'_>, reader: &[Item]) {
        let numbers = numbers(reader);
        let unique: HashSet<&str> = reader.iter().map(|i| i.published_id.as_str()).collect();
        let repeated = |shown: &[u32]| shown.len() - shown.iter().collect::<HashSet<_>>().len();
        let repeats = repeated(force.shown).max(repeated(&self.last_shown));
        if unique.len() + repeats < reader.len() {
            let ids: Vec<&str> = reader.iter().map(|i| i.published_id.as_str()).collect();
            self.fail("two items of the reader view have one published id", format!("{ids:?}"));
        }
        let gone: Vec<u32> =
            self.last_shown.iter().copied().filter(|n| !numbers.contains(n)).collect();
        match (&seen.taken, &seen.held) {
            (Some(Completeness::Full), None) if !force.glitch => {
                // A copy, byte for byte, of what stands above is shown once.
                let mut once = HashSet::new();
                let listed = self.without_older(force.shown);
                let shown: Vec<u32> = listed.iter().copied().filter(|n| once.insert(*n)).collect();
                if numbers != shown && numbers != listed {
                    let document = force.shown;
                    let words = format!("the document has {document:?}, a reader sees {numbers:?}");
                    self.fail(SHOWN, words);
                }
                self.last_shown = numbers;
            }
            (Some(Completeness::Salvaged(_)), None) => {
                let kind = "a part of a document took something away";
                self.expect(gone.is_empty(), kind, format_args!("{gone:?}"));
                self.last_shown = numbers;
            }
            (Some(_), Some(_)) if !force.glitch => {
                let was = |n: &u32| self.last_shown.contains(n);
                let (before, new): (Vec<u32>, Vec<u32>) = numbers.iter().partition(|n| was(n));
                let lists_them = new.iter().all(|n| force.shown.contains(n));
                if before != self.last_shown || !lists_them {
                    let before = &self.last_shown;
                    let words = format!("a reader sees {numbers:?}, before it was {before:?}");
                    self.fail(HELD, words);
                }
                self.last_shown = numbers;
            }
            (Some(Completeness::Full), None) => self.last_shown = numbers,
            _ => {}
        }
    }

    fn without_older(&self, shown: &[u32]) -> Vec<u32> {
        shown.iter().copied().filter(|number| !self.older.contains(number)).collect()
    }

    /// When all is done: the last document has stood for days.
    pub fn at_the_end(&mut self, force: &InForce<'_>, reader: &[Item], snapshot: &Snapshot) {
        let numbers = numbers(reader);
        let words = format_args!("it shows {:?}, a reader sees {numbers:?}", force.shown);
        let same = numbers == self.without_older(force.shown);
        self.expect(same, "a document that stays is not taken in", words);
        let (state, known) = (&snapshot.state, &snapshot.known);
        let is_deleted = |k: &&LedgerEntry| matches!(k.standing, ItemStatus::Deleted { .. });
        let tombstones = known.iter().filter(is_deleted).count();
        let counted = (state.living as usize, state.tombstones as usize, state.current as usize);
        let right = counted == (known.len() - tombstones, tombstones, reader.len());
        let kind = "the state counts other items than there are";
        self.expect(right, kind, format_args!("{state:?}"));
    }
}
