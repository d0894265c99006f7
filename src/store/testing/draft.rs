//! Changes for tests, plausible and short to write.

use crate::{Committed, Store};
use std::collections::HashMap;
use tidegate_core::model::testing::{self, at as time, id, name as feed, tick};
use tidegate_core::model::*;

pub fn markup(text: &str) -> Markup {
    Markup {
        format: Format::Atom10,
        xml: format!("<entry>{text}</entry>"),
        context: Context::default(),
        slots: Slots { attributes: 6, inner: Some(7), ..Slots::default() },
        card: Card { title: format!("title of {text}"), ..Card::default() },
    }
}

pub fn skeleton(text: &str) -> Skeleton {
    Skeleton { text: text.to_owned(), ..testing::skeleton(Format::Atom10, "feed") }
}

pub fn state() -> FeedState {
    FeedState::untouched(Format::Atom10, time(0))
}

pub fn known(name: &str, updates: u32, tick: Tick) -> LedgerEntry {
    let by = EndpointId::own("gate.example").unwrap();
    let updates = Count::new(updates).unwrap();
    let stamp = Stamp::Both { when: tick.time(), by };
    LedgerEntry {
        id: id(name),
        title: format!("{name} {}", updates.value()),
        published: None,
        updates,
        history: History::new(Update { sequence: updates, stamp }),
        tick,
        first_seen: time(0),
        came: time(0),
        standing: ItemStatus::Current,
        prints: vec![(1, 2), (3, 4)],
        ..LedgerEntry::left(&format!("urn:{name}"))
    }
}

pub fn event(name: &str, tick: Option<Tick>) -> Event {
    Event {
        id: id(name),
        native_id: format!("urn:{name}"),
        title: name.to_owned(),
        reason: "a test".to_owned(),
        ..testing::event(EventKind::Updated, tick)
    }
}

/// Adds a seal of these items to a change.
pub fn add_seal(change: &mut Change, id: &str, items: Vec<SyncId>) {
    let chain = &mut change.state.archives;
    let (id, upstream) = (ArchiveId::new(id).unwrap(), "https://example.org/feed".to_owned());
    let previous = chain.newest.replace(id.clone());
    change.seals.push(Seal { number: chain.next, id, previous, upstream, items });
    chain.next += 1;
    chain.sealed = change.state.tick;
}

/// A change on top of what a store has of a feed.
pub struct Draft {
    pub change: Change,
    tick: Tick,
    before: HashMap<SyncId, LedgerEntry>,
}

impl Draft {
    pub async fn on(store: &Store, name: &str, seconds: i64) -> Self {
        let snapshot = store.snapshot(&feed(name)).await.unwrap();
        let known = snapshot.iter().flat_map(|snapshot| snapshot.known.clone());
        let before = known.map(|known| (known.id.clone(), known)).collect();
        Self::over(name, snapshot.map(|snapshot| snapshot.state), before, seconds)
    }

    pub fn over(
        name: &str,
        before: Option<FeedState>,
        ledger: HashMap<SyncId, LedgerEntry>,
        seconds: i64,
    ) -> Self {
        let first = before.is_none();
        let state = before.unwrap_or_else(state);
        let skeleton = first.then(|| skeleton("<feed/>"));
        let change = Change::of_state(feed(name), state.revision, time(seconds), state);
        let change = Change { skeleton, ..change };
        Self { change, tick: tick(seconds), before: ledger }
    }

    fn entry(&mut self, name: &str) -> LedgerEntry {
        let updates = self.before.get(&id(name)).map_or(1, |known| known.updates.value() + 1);
        known(name, updates, self.tick)
    }

    fn version(mut self, known: LedgerEntry, markup: Option<Markup>) -> Self {
        let id = known.id.clone();
        self.change.tick = Some(self.tick);
        self.change.state.tick = Some(self.tick);
        self.shown();
        self.change.events.push(event(id.as_str(), Some(self.tick)));
        self.change.versions.push(NewVersion { id, markup, reason: "a test".to_owned() });
        self.change.known.push(known);
        self
    }

    pub fn item(self, name: &str, text: &str) -> Self {
        self.item_of(name, markup(text))
    }

    pub fn item_of(mut self, name: &str, markup: Markup) -> Self {
        let known = self.entry(name);
        self.version(known, Some(markup))
    }

    pub fn around(mut self, text: &str) -> Self {
        self.change.skeleton = Some(skeleton(text));
        self.change.state.updated_at = self.tick.time();
        self
    }

    pub fn items(self, names: impl IntoIterator<Item = impl AsRef<str>>, text: &str) -> Self {
        names.into_iter().fold(self, |draft, name| draft.item(name.as_ref(), text))
    }

    pub fn tombstone(mut self, name: &str) -> Self {
        let mut known = self.entry(name);
        known.standing = ItemStatus::Deleted { since: self.tick.time() };
        self.version(known, None)
    }

    /// A version of the newest bytes.
    pub fn ripe(mut self, name: &str) -> Self {
        let known = self.entry(name);
        self.version(known, None)
    }

    pub fn latest(mut self, name: &str, text: &str) -> Self {
        self.change.latest.push((id(name), markup(text)));
        self.change.known.extend(self.before.get(&id(name)).cloned());
        self.shown();
        self
    }

    /// What is shown changes at the draft's second.
    fn shown(&mut self) {
        self.change.state.render_revision += 1;
        self.change.state.updated_at = self.tick.time();
    }

    /// A redaction: of what lives, with a tombstone; `text` stands in for what goes.
    pub fn redact(mut self, name: &str, text: &str) -> Self {
        let old = self.before.get(&id(name)).unwrap().clone();
        self.change.redacted.push(id(name));
        let standing = ItemStatus::Redacted { since: self.tick.time() };
        let known =
            LedgerEntry { title: String::new(), native_shown: "gone".to_owned(), standing, ..old };
        if self.before.get(&id(name)).is_some_and(LedgerEntry::is_deleted) {
            self.change.known.push(known);
            self.change.latest.push((id(name), markup(text)));
            self.shown();
            return self;
        }
        let newer = self.entry(name);
        let known = LedgerEntry {
            updates: newer.updates,
            history: newer.history,
            tick: self.tick,
            ..known
        };
        self.version(known, Some(markup(text)))
    }

    pub fn touch(mut self, name: &str, standing: ItemStatus) -> Self {
        let mut known = self.before.get(&id(name)).unwrap().clone();
        known.standing = standing;
        known.bytes += 1;
        self.change.known.push(known);
        self
    }

    /// The version of an item in this change is in conflict with these.
    pub fn contest(mut self, name: &str, versions: Vec<Version<Option<Markup>>>) -> Self {
        let known = self.change.known.iter_mut().find(|known| known.id == id(name)).unwrap();
        known.conflicts = u32::try_from(versions.len()).unwrap();
        (known.noconflicts, known.origin) = (Some(false), Origin::Upstream);
        self.change.conflicts.push(Conflicting { id: id(name), versions });
        self
    }

    /// An item leaves the ledger; its stub has other names.
    pub fn evict(mut self, name: &str) -> Self {
        let known = self.before.get(&id(name)).unwrap();
        let stub = known.stub(known.history.clone(), self.tick.time());
        let [once, twice] = ["once", "twice"].map(|when| format!("urn:{name}-{when}"));
        let (aliases, published_id) = (vec![once, twice.clone()], twice);
        self.change.evicted.push(LedgerEntry { aliases, published_id, ..stub });
        self.shown();
        self
    }

    pub fn order(mut self, names: &[&str]) -> Self {
        self.change.order = Some(names.iter().map(|name| id(name)).collect());
        self.change.state.updated_at = self.tick.time();
        self
    }

    pub async fn commit(self, store: &Store) -> Committed {
        store.commit(self.done()).await.unwrap()
    }

    pub fn done(mut self) -> Change {
        let change = &mut self.change;
        let versions = change.versions.iter().map(|version| &version.id);
        let anew: Vec<_> = versions.chain(change.latest.iter().map(|(id, _)| id)).collect();
        for known in change.known.iter_mut().filter(|known| anew.contains(&&known.id)) {
            known.touched = change.state.render_revision;
        }
        self.change
    }
}
