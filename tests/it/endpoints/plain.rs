//! An endpoint written from the text of the specification alone: SSE 1.0 section 3, FeedSync
//! section 3.2 and what READINGS 1 says of both. Documents are read with the program's reader of
//! feed files; what becomes of the items shares nothing with `tidegate_core::sync`. It writes Atom, whatever container it is
//! asked for.

use crate::support::shared_items;
use std::collections::BTreeMap;
use tidegate_core::model::{self, Markup, Shared, Time};
use tidegate_format::render::{Container, Dialect};

#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub container: Container,
    pub dialect: Dialect,
}

pub const FORMS: [Form; 7] = [
    Form { container: Container::Atom, dialect: Dialect::Sse },
    Form { container: Container::Rss, dialect: Dialect::FeedSync },
    Form { container: Container::Pox, dialect: Dialect::Sse },
    Form { container: Container::Json, dialect: Dialect::FeedSync },
    Form { container: Container::Atom, dialect: Dialect::FeedSync },
    Form { container: Container::Rss, dialect: Dialect::Sse },
    Form { container: Container::Pox, dialect: Dialect::FeedSync },
];

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Update {
    pub sequence: u32,
    pub when: Option<i64>,
    pub by: Option<String>,
}

/// An item without its conflicts.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub updates: u32,
    pub deleted: bool,
    pub noconflicts: Option<bool>,
    /// Topmost first.
    pub history: Vec<Update>,
    pub title: String,
    pub text: String,
}

impl Version {
    /// It lives and says something new.
    pub fn say(&mut self, text: &str) {
        self.deleted = false;
        (self.title, self.text) = (format!("Title {text}"), format!("Text {text}"));
    }

    pub fn take(&mut self, other: &Self) {
        self.deleted = other.deleted;
        (self.title, self.text) = (other.title.clone(), other.text.clone());
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub winner: Version,
    pub conflicts: Vec<Version>,
}

pub type Items = BTreeMap<String, Item>;

/// What a document says: the end of its bounds and its items.
pub fn read(text: &str) -> Option<(Option<String>, Items)> {
    let atom = tidegate_format::parse::collection::transcoded(text).ok()?;
    let text = atom.as_deref().unwrap_or(text);
    let read = shared_items::read(text).ok()?;
    let item = |said: &Shared<Markup>| Item {
        winner: version(&said.winner),
        conflicts: said.conflicts.iter().map(version).collect(),
    };
    let items = read.iter().map(|said| (said.winner.id.to_string(), item(said))).collect();
    // The value of an attribute without entities, which is all that both kinds of endpoints write.
    let until = text.split_once(":sharing ").and_then(|(_, rest)| {
        let tag = rest.split_once('>')?.0;
        Some(tag.split_once("until=\"")?.1.split_once('"')?.0.to_owned())
    });
    Some((until, items))
}

fn version(said: &model::Version<Markup>) -> Version {
    let update = |update: &model::Update| Update {
        sequence: update.sequence.value(),
        when: update.stamp.when().map(Time::unix),
        by: update.stamp.by().map(ToString::to_string),
    };
    Version {
        updates: said.updates.value(),
        deleted: said.deleted,
        noconflicts: said.noconflicts,
        history: said.history.iter().map(update).collect(),
        title: said.data.card.title.clone(),
        text: shared_items::text(&said.data).unwrap_or_default(),
    }
}

/// History Subsumption (section 3.3, note 2).
fn update_subsumed(hx: &Update, hy: &Update) -> bool {
    match &hx.by {
        Some(by) => hy.by.as_ref() == Some(by) && hy.sequence >= hx.sequence,
        None => hy.by.is_none() && hx.when == hy.when && hx.sequence == hy.sequence,
    }
}

/// Item Subsumption (section 3.3, note 1).
fn subsumed(x: &Version, y: &Version) -> bool {
    y.history.iter().any(|hy| update_subsumed(&x.history[0], hy))
}

/// Whether somebody who has the item knows of an update.
pub fn knows(item: &Item, update: &Update) -> bool {
    let versions = item.conflicts.iter().chain([&item.winner]);
    versions.flat_map(|version| &version.history).any(|hy| update_subsumed(update, hy))
}

/// Winner Picking (section 3.3, note 3): whether X wins over Y.
fn wins(x: &Version, y: &Version) -> bool {
    let (hx, hy) = (&x.history[0], &y.history[0]);
    if x.updates != y.updates {
        return x.updates > y.updates;
    }
    match (hx.when, hy.when) {
        (Some(_), None) => return true,
        (None, Some(_)) => return false,
        (Some(x), Some(y)) if x != y => return x > y,
        _ => {}
    }
    match (&hx.by, &hy.by) {
        (Some(_), None) => true,
        // Strings of Rust are compared by their bytes, which is the order of their characters.
        (Some(x), Some(y)) => x > y,
        _ => false,
    }
}

/// Merge Behavior (section 3.3, steps 2 to 11).
fn merge(local: Item, incoming: Item) -> Item {
    let list = |Item { winner, conflicts }: Item| [conflicts, vec![winner]].concat();
    let (mut l, mut i) = (list(local), list(incoming));
    let (mut m, mut w) = (Vec::new(), None);
    pass(&mut l, &i, &mut m, &mut w);
    pass(&mut i, &l, &mut m, &mut w);
    let w = w.expect("READINGS 1, row 3");
    let winner: Version = m.remove(w);
    if winner.noconflicts == Some(true) {
        m.clear();
    }
    Item { winner, conflicts: m }
}

/// Step 7. `w` is the place of the winner in `m`.
fn pass(outer: &mut Vec<Version>, inner: &[Version], m: &mut Vec<Version>, w: &mut Option<usize>) {
    let mut left = Vec::new();
    for x in outer.drain(..) {
        if inner.iter().any(|y| subsumed(&x, y)) {
            continue;
        }
        if w.is_none_or(|best| wins(&x, &m[best])) {
            *w = Some(m.len());
        }
        m.push(x.clone());
        left.push(x);
    }
    *outer = left;
}

/// A document in Atom with these bounds and items.
fn write(dialect: Dialect, (since, until): (String, String), items: &[(&String, &Item)]) -> String {
    let namespace = match dialect {
        Dialect::Sse => "http://www.microsoft.com/schemas/sse",
        _ => "http://feedsync.org/2007/feedsync",
    };
    let items = items.iter().map(|(id, item)| element(id, &item.winner, &item.conflicts));
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:sx=\"{namespace}\"><title>T</title>\
         <id>urn:x:feed</id><updated>2026-01-01T00:00:00Z</updated>\
         <sx:sharing since=\"{since}\" until=\"{until}\"/>{}</feed>",
        items.collect::<String>()
    )
}

fn element(id: &str, version: &Version, conflicts: &[Version]) -> String {
    let mut inner: String = conflicts.iter().map(|one| element(id, one, &[])).collect();
    // Section 2.6: an empty one is none, and may stand there.
    if !inner.is_empty() || version.updates.is_multiple_of(2) {
        inner = format!("<sx:conflicts>{inner}</sx:conflicts>");
    }
    let flag = version.noconflicts.map(|flag| format!(" noconflicts=\"{flag}\""));
    let flags = flag.unwrap_or_default() + if version.deleted { " deleted=\"true\"" } else { "" };
    let history: String = version.history.iter().map(history).collect();
    let Version { updates, title, text, .. } = version;
    format!(
        "<entry><title>{title}</title><content>{text}</content><id>urn:x:{id}</id>\
         <updated>2026-01-01T00:00:00Z</updated>\
         <sx:sync id=\"{id}\" updates=\"{updates}\"{flags}>{history}{inner}</sx:sync></entry>"
    )
}

fn history(Update { sequence, when, by }: &Update) -> String {
    let when = when.map(|when| format!(" when=\"{}\"", Time::from_unix(when)));
    let by = by.as_ref().map(|by| format!(" by=\"{by}\""));
    let (when, by) = (when.unwrap_or_default(), by.unwrap_or_default());
    format!("<sx:history sequence=\"{sequence}\"{when}{by}/>")
}

/// An item as it is compared: the list of conflicts has no order, and a tombstone may drop its data
/// (section 3.2).
pub fn normal(item: &Item) -> Item {
    let mut item = item.clone();
    for version in item.conflicts.iter_mut().chain([&mut item.winner]) {
        if version.deleted {
            version.title.clear();
            version.text.clear();
        }
    }
    item.conflicts.sort();
    item
}

/// When an update is made, and whether it says by whom.
pub type Stamp = (Option<i64>, bool);

pub struct Endpoint {
    pub name: String,
    pub items: Items,
    /// Of each item the value of `until` when it was incorporated (section 4.2.3).
    stored: BTreeMap<String, u64>,
    until: u64,
}

impl Endpoint {
    pub fn new(name: &str) -> Self {
        let (items, stored) = (Items::new(), BTreeMap::new());
        Self { name: name.to_owned(), items, stored, until: 0 }
    }

    fn incorporated(&mut self, id: &str) {
        self.until += 1;
        self.stored.insert(id.to_owned(), self.until);
    }

    /// Merges what a document says (section 3.3); whether anything changed.
    pub fn take(&mut self, items: &Items) -> bool {
        let mut any = false;
        for (id, incoming) in items {
            let merged = match self.items.get(id) {
                Some(local) => merge(local.clone(), incoming.clone()),
                None => incoming.clone(),
            };
            let is_news = self.items.get(id).map(normal) != Some(normal(&merged));
            self.items.insert(id.clone(), merged);
            if is_news {
                self.incorporated(id);
                any = true;
            }
        }
        any
    }

    /// Creation Behavior (section 3.1).
    pub fn create(&mut self, id: &str, text: &str, stamp: Stamp, noconflicts: Option<bool>) {
        let history = vec![self.update(1, stamp)];
        let mut winner = Version { updates: 1, noconflicts, history, ..Version::default() };
        winner.say(text);
        self.items.insert(id.to_owned(), Item { winner, conflicts: Vec::new() });
        self.incorporated(id);
    }

    fn update(&self, sequence: u32, (when, by): Stamp) -> Update {
        Update { sequence, when, by: by.then(|| self.name.clone()) }
    }

    /// Update/Deletion Behavior (section 3.2), with FeedSync's step 4; then the conflicts of these
    /// numbers are merged into the history (section 3.4). Answers the update that was made.
    pub fn change(
        &mut self,
        id: &str,
        stamp: Stamp,
        considered: &[usize],
        change: impl FnOnce(&mut Version, &[Version]),
    ) -> Update {
        let mut update = self.update(0, stamp);
        let Item { winner, conflicts } = self.items.get_mut(id).unwrap();
        winner.updates += 1;
        let mut s1 = winner.updates;
        if update.by.is_some() {
            let own = winner.history.iter().filter(|history| history.by == update.by);
            let s2 = own.map(|history| history.sequence).max();
            s1 = s2.filter(|s2| s1 <= *s2).map_or(s1, |s2| s2 + 1);
        }
        update.sequence = s1;
        winner.history.insert(0, update.clone());
        change(winner, conflicts);
        let mut left = Vec::new();
        for (number, x) in std::mem::take(conflicts).into_iter().enumerate() {
            let is_own = update.by.is_some() && x.history[0].by == update.by;
            if is_own || considered.contains(&number) {
                // Merging Conflict Items (READINGS 1, rows 10 and 11).
                let is_known =
                    |hx: &Update| winner.history.iter().any(|hy| update_subsumed(hx, hy));
                let news: Vec<_> = x.history.into_iter().filter(|hx| !is_known(hx)).collect();
                winner.history.splice(1..1, news);
            } else {
                left.push(x);
            }
        }
        *conflicts = left;
        self.incorporated(id);
        update
    }

    pub fn render(&self, dialect: Dialect, since: Option<&str>) -> String {
        let after: u64 = since.map_or(0, |since| since.parse().unwrap());
        let stored = |id: &str| self.stored.get(id).copied().unwrap_or(0);
        let shown: Vec<_> = self.items.iter().filter(|(id, _)| stored(id) > after).collect();
        // Values that collate (section 4, note 1).
        write(dialect, (format!("{after:09}"), format!("{:09}", self.until)), &shown)
    }
}
