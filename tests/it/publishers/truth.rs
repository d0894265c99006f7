//! What must hold of a gateway in front of a publisher whose truth is known.

use crate::publishers::gate::Seen;
use crate::publishers::publisher::Publisher;
use crate::publishers::write::number_of;
use std::collections::{BTreeMap, HashMap, HashSet};
use tidegate_core::model::{
    Change, Completeness, EventKind, Item, ItemStatus, Snapshot, SyncId, Tick,
};

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
    deleted: HashSet<SyncId>,
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

impl Truth {
    pub fn fail(&mut self, kind: &'static str, words: impl Into<String>) {
        // What becomes of the item that it was before is looked at on.
        if kind == "a renamed post is another item" {
            return self.check("a renamed post became another item");
        }
        self.failures.push(Failure { kind, words: words.into() });
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
        let Some(change) = &seen.change else {
            self.view(seen, force, reader);
            return;
        };
        self.ticks(change);
        self.identities(change, force);
        self.histories(change);
        self.events(seen, change, force);
        if seen.held.is_some() {
            // New posts come out of it; nothing that was there changes.
            let made =
                change.events.iter().filter(|event| event.kind == EventKind::Created).count();
            let only_news = change.events.len() == made
                && change.versions.len() == made
                && change.latest.is_empty()
                && change.skeleton.is_none()
                && (made > 0 || change.tick.is_none() && change.order.is_none());
            if !only_news {
                self.fail(
                    "a held document changed more than it may",
                    format!("{:?}", change.events),
                );
            }
        }
        self.view(seen, force, reader);
    }

    fn ticks(&mut self, change: &Change) {
        let told = std::mem::replace(&mut self.told, change.state.told.told);
        let is_news = !change.versions.is_empty() || (told != 0 && told != self.told);
        if change.tick.is_some() != is_news {
            self.fail(
                "a tick is not greater than the one before",
                "a tick without news, or news without a tick",
            );
        }
        if let Some(tick) = change.tick {
            if self.tick.is_some_and(|before| before >= tick) {
                self.fail(
                    "a tick is not greater than the one before",
                    format!("{:?} and then {tick}", self.tick),
                );
            }
            self.tick = Some(tick);
        }
    }

    /// Which item is which post, as far as their bytes say.
    fn identities(&mut self, change: &Change, force: &InForce<'_>) {
        let with_bytes = change.versions.iter().filter_map(|v| Some((&v.id, v.markup.as_ref()?)));
        let latest = change.latest.iter().map(|(id, markup)| (id, markup));
        let all: Vec<_> = with_bytes.chain(latest).collect();
        for (id, markup) in all {
            let Some(number) = number_of(&markup.xml) else { continue };
            match self.post_of.get(id) {
                Some(before) if *before != number => {
                    self.fail(
                        "two posts are one item",
                        format!("{id} was post {before} and is post {number} now"),
                    );
                }
                Some(_) => continue,
                None => {}
            }
            self.post_of.insert(id.clone(), number);
            let items = self.items_of.entry(number).or_default();
            items.push(id.clone());
            let publisher = force.publisher;
            let twice = self.twice.contains(&number) && !publisher.get(number).renamed;
            if items.len() > 1 && !twice {
                let moved = publisher.https || publisher.moved > 0;
                let kind = match (publisher.get(number).renamed, moved) {
                    _ if force.glitch || self.broken.contains(&number) => {
                        "an entry of a broken document was believed"
                    }
                    (true, _) => "a renamed post is another item",
                    (false, true) => "a moved post is another item",
                    (false, false) => "a post that nobody renamed is another item",
                };
                self.fail(
                    kind,
                    format!("post {number} has the items {:?}", self.items_of[&number]),
                );
            }
        }
        for known in &change.known {
            let number = self.post_of.get(&known.id).copied();
            let before = self.published.insert(known.id.clone(), known.published_id.clone());
            if let Some(before) = before.filter(|before| *before != known.published_id) {
                self.fail(
                    "a published id changed",
                    format!("{before} and then {}", known.published_id),
                );
            }
            let Some(number) = number else { continue };
            let first = *self.post_of_published.entry(known.published_id.clone()).or_insert(number);
            if first != number {
                self.fail(
                    "a published id stands for another post",
                    format!("{} is post {first} and post {number}", known.published_id),
                );
            }
        }
    }

    fn histories(&mut self, change: &Change) {
        for known in &change.known {
            let updates = known.updates.value();
            let before = self.updates.insert(known.id.clone(), updates).unwrap_or(0);
            let versions = change.versions.iter().filter(|v| v.id == known.id).count();
            if updates < before || (updates - before) as usize != versions {
                self.fail(
                    "`updates` or the history went back",
                    format!("{} updates after {before} and {versions} versions", updates),
                );
            }
            let sequences: Vec<u32> = known.history.iter().map(|u| u.sequence.value()).collect();
            let whens: Vec<_> = known.history.iter().map(|u| u.stamp.when()).collect();
            let newest_first = sequences.windows(2).all(|w| w[0] > w[1])
                && whens.windows(2).all(|w| w[0] >= w[1])
                && sequences.first() == Some(&updates);
            if !newest_first || known.tick > change.tick.unwrap_or(known.tick) {
                self.fail("`updates` or the history went back", format!("{:?}", known.history));
            }
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
            let words = format!("{came:?} came in below {oldest:?}");
            self.fail(
                "the reader view has not what the document shows, or not in its order",
                words,
            );
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
                EventKind::Deleted => {
                    self.deleted.insert(event.id.clone());
                    if !post.alive {
                        self.check("a deletion was found");
                    } else {
                        let cause = self.cause(number, force);
                        self.fail(
                            cause,
                            format!("post {number} ({}): {}", event.native_id, event.reason),
                        );
                    }
                }
                EventKind::Undeleted => {
                    self.deleted.remove(&event.id);
                }
                EventKind::Retired if post.alive => self.check("a living item was retired"),
                EventKind::Rekeyed if !post.renamed => self.check("a moved post stayed an item"),
                // Two items of one post are not both as new as the post.
                EventKind::Updated if !self.twice.contains(&number) => {
                    if self.taken.get(&number).is_some_and(|taken| *taken == post.revision) {
                        let words = format!("post {number}: {}", event.reason);
                        let broken = matches!(seen.taken, Some(Completeness::Salvaged(_)));
                        let kind = match broken || self.broken.contains(&number) {
                            true => "an entry of a broken document was believed",
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
        let numbers: Vec<u32> =
            reader.iter().filter_map(|i| number_of(&i.shared.winner.data.xml)).collect();
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
                let mut once = std::collections::HashSet::new();
                let listed = force.shown.iter().copied().filter(|n| !self.older.contains(n));
                let listed: Vec<u32> = listed.collect();
                let shown: Vec<u32> = listed.iter().copied().filter(|n| once.insert(*n)).collect();
                if numbers != shown && numbers != listed {
                    let words =
                        format!("the document has {:?}, a reader sees {numbers:?}", force.shown);
                    self.fail(
                        "the reader view has not what the document shows, or not in its order",
                        words,
                    );
                }
                self.last_shown = numbers;
            }
            (Some(Completeness::Salvaged(_)), None) => {
                if !gone.is_empty() {
                    self.fail("a part of a document took something away", format!("{gone:?}"));
                }
                self.last_shown = numbers;
            }
            (Some(_), Some(_)) if !force.glitch => {
                let was = |n: &u32| self.last_shown.contains(n);
                let (before, new): (Vec<u32>, Vec<u32>) = numbers.iter().partition(|n| was(n));
                let lists_them = new.iter().all(|n| force.shown.contains(n));
                if before != self.last_shown || !lists_them {
                    self.fail(
                        "a held document changed more than it may",
                        format!("a reader sees {numbers:?}, before it was {:?}", self.last_shown),
                    );
                }
                self.last_shown = numbers;
            }
            (Some(Completeness::Full), None) => self.last_shown = numbers,
            _ => {}
        }
    }

    /// When all is done: the last document has stood for days.
    pub fn at_the_end(&mut self, force: &InForce<'_>, reader: &[Item], snapshot: &Snapshot) {
        let numbers: Vec<u32> =
            reader.iter().filter_map(|i| number_of(&i.shared.winner.data.xml)).collect();
        let shown = force.shown.iter().filter(|number| !self.older.contains(number));
        if !numbers.iter().eq(shown) {
            self.fail(
                "a document that stays is not taken in",
                format!("it shows {:?}, a reader sees {numbers:?}", force.shown),
            );
        }
        let tombstones = snapshot
            .known
            .iter()
            .filter(|k| matches!(k.standing, ItemStatus::Deleted { .. }))
            .count();
        let counted = (snapshot.state.living as usize, snapshot.state.tombstones as usize);
        if counted != (snapshot.known.len() - tombstones, tombstones)
            || snapshot.state.current as usize != reader.len()
        {
            self.fail(
                "the state counts other items than there are",
                format!("{:?}", snapshot.state),
            );
        }
    }
}
