//! One series through the core, and its views against the publisher's last good document.

use super::support;
use crate::support::prelude::*;
use tidegate_core::clock::ManualClock;
use tidegate_format::parse::{self, Limits};
use tidegate_format::render::{self, Addresses, Page, ViewKind};
use tidegate_replay::{self as replay, DocumentOutcome, DocumentReport, ReplayTarget, Series};

/// So long that nothing ever leaves the sync view: then every current item must be in it.
const WINDOW: Duration = Duration::from_secs(200 * 366 * 86_400);
/// How far polls are apart while a recorded document is in force.
const APART: Duration = Duration::from_secs(3600);
/// How many documents are looked back over, from the last, for one that was taken in whole.
const LOOK_BACK: usize = 60;

#[derive(Debug, Default)]
pub struct Compared {
    pub differences: Vec<String>,
    /// Whether feed-rs could read the publisher's document too; else our own reading stands in.
    pub by_feed_rs: bool,
    pub items: usize,
    /// Of those, items that bear an id that their publisher has changed since.
    pub renamed: usize,
    pub tombstones: usize,
}

impl Compared {
    fn note(&mut self, difference: String) {
        self.differences.push(difference);
    }
}

/// Takes a series in up to its last good document and compares the views. `None` where no document of the series can be
/// taken in whole.
pub fn series(series: &Series) -> Option<Compared> {
    for end in (1..=series.documents.len()).rev().take(LOOK_BACK) {
        let Some(wanted) = Wanted::read(&series.documents[end - 1].path) else { continue };
        let upto =
            Series { name: series.name.clone(), documents: series.documents[..end].to_vec() };
        let (store, feed, lines) = replayed(&upto);
        let last = lines.last().unwrap();
        // What is held is not published; what was published is an earlier document.
        if last.outcome == DocumentOutcome::Failed || last.held.is_some() {
            continue;
        }
        return Some(compare(&wanted, &store, &feed, &lines));
    }
    None
}

/// What a publisher's document says, as far as readers are concerned.
struct Wanted {
    format: Format,
    /// Of each entry its native id, where it has one, and its title.
    entries: Vec<(Option<String>, String)>,
    by_feed_rs: bool,
}

impl Wanted {
    /// Reads a document that is whole and has entries.
    fn read(path: &Path) -> Option<Self> {
        let bytes = std::fs::read(path).unwrap();
        let limits = Limits::default();
        let decoded = parse::decode(&bytes, None, &limits).ok()?;
        let document = parse::document(&decoded.text, None, &limits).ok()?;
        // What lists changes has tombstones, and the order of a log.
        if document.lists_changes() && document.entries.iter().all(|entry| entry.sync.is_some()) {
            return None;
        }
        if document.completeness != Completeness::Full || document.entries.is_empty() {
            return None;
        }
        let read = own(&document).into_iter().zip(&document.entries);
        let id = |entry: &Entry<'_>| entry.native_id.as_deref().map(str::to_owned);
        let mut entries: Vec<_> = read.map(|((_, title), entry)| (id(entry), title)).collect();
        // A foreign reading of the titles, and of the ids where the format has them as readers see
        // them: RSS 1.0 and 0.90 name their items by `rdf:about`, which feed-rs does not read.
        let foreign = foreign(&decoded.text).filter(|foreign| foreign.len() == entries.len());
        let by_feed_rs = foreign.is_some();
        let rdf = matches!(document.format, Format::Rss10 | Format::Rss090);
        for ((id, title), (foreign_id, foreign_title)) in
            entries.iter_mut().zip(foreign.unwrap_or_default())
        {
            *title = foreign_title;
            if let (Some(id), false) = (id, rdf) {
                *id = foreign_id;
            }
        }
        // What stands in a document twice, byte for byte, is one item.
        let mut seen = HashSet::new();
        let mut markups = document.entries.iter().map(|entry| &entry.markup);
        entries.retain(|_| markups.next().is_some_and(|markup| seen.insert(markup)));
        Some(Self { format: document.format, entries, by_feed_rs })
    }

    /// The entries of a view: (id, title), read as the publisher's document was. feed-rs cannot
    /// read all documents of publishers, nor then the same items in ours.
    fn view(&self, text: &str) -> Option<Vec<Read>> {
        if self.by_feed_rs {
            return foreign(text);
        }
        parse::document(text, None, &Limits::default()).ok().map(|document| own(&document))
    }
}

type Read = (String, String);

fn own(document: &FeedDocument<'_>) -> Vec<Read> {
    let entries = document.entries.iter().map(|entry| {
        let id = entry.native_id.as_deref().unwrap_or_default();
        (id.to_owned(), plain(entry.title.as_deref().unwrap_or_default()))
    });
    entries.collect()
}

/// Reads text with feed-rs; an encoding declaration would contradict what is already decoded.
fn foreign(text: &str) -> Option<Vec<Read>> {
    let text = text.trim_start_matches('\u{feff}');
    let text = match text.trim_start().strip_prefix("<?xml ").and_then(|rest| rest.split_once("?>"))
    {
        Some((_, rest)) => rest,
        None => text,
    };
    let feed = feed_rs::parser::parse(text.as_bytes()).ok()?;
    let entries = feed
        .entries
        .into_iter()
        .map(|entry| (entry.id, plain(entry.title.as_ref().map_or("", |title| &title.content))));
    Some(entries.collect())
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn replayed(series: &Series) -> (Store, FeedName, Vec<DocumentReport>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let clock = Arc::new(ManualClock::at(Time::from_unix(support::START)));
    let store = Store::in_memory(Some(EndpointId::own("gate.example").unwrap()), clock).unwrap();
    let feed = support::name("recorded");
    let mut lines = Vec::new();
    runtime.block_on(async {
        let print = |line| lines.push(line);
        let stage = ReplayTarget {
            store: &store,
            feed: feed.clone(),
            options: FeedOptions::default(),
            window: WINDOW,
            versions_per_day: VERSIONS_PER_DAY,
            interval: &|_, _, _| APART,
        };
        replay::series(stage, series, print).await.unwrap();
    });
    (store, feed, lines)
}

/// The native ids that items bore before, by sync id, as the events tell.
fn former_ids(lines: &[DocumentReport]) -> BTreeMap<String, BTreeSet<String>> {
    let mut former: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in lines {
        let line = serde_json::to_value(line).unwrap();
        let events = line["events"].as_array().unwrap().iter();
        for event in events.filter(|event| event["kind"] == "rekeyed") {
            if let Some(old) = event["old_native_id"].as_str() {
                let id = event["sync_id"].as_str().unwrap().to_owned();
                former.entry(id).or_default().insert(old.trim().to_owned());
            }
        }
    }
    former
}

fn page_addresses() -> Addresses {
    Addresses {
        upstream: "https://publisher.example/feed".into(),
        via: Some("https://publisher.example/feed".into()),
        ..support::addresses("https://gate.example/feeds/recorded")
    }
}

fn rendered(view: &View, kind: ViewKind, deleted: &[Deletion]) -> String {
    let addresses = page_addresses();
    let sync = kind == ViewKind::Sync;
    render::document(&Page {
        kind,
        deleted,
        since: view.state.window_start.filter(|_| sync),
        until: view.state.tick.filter(|_| sync),
        ..support::page(view, &addresses)
    })
}

fn compare(wanted: &Wanted, store: &Store, feed: &FeedName, lines: &[DocumentReport]) -> Compared {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let view =
        |select| runtime.block_on(store.view(feed, select)).unwrap().expect("the feed is there");
    let current = view(Select::Current);
    let start = current.state.window_start.expect("something was taken in");
    let window = view(Select::After(start));
    let gone = window.items.iter().filter(|item| item.shared.winner.deleted);
    let gone: Vec<Deletion> = gone.map(Deletion::from).collect();

    let reader = rendered(&current, ViewKind::Reader, &gone);
    let sync = rendered(&window, ViewKind::Sync, &[]);
    let mut all = Compared {
        by_feed_rs: wanted.by_feed_rs,
        items: current.items.len(),
        tombstones: gone.len(),
        ..Compared::default()
    };
    for (name, text) in [("reader", &reader), ("sync", &sync)] {
        // By XML 1.0 and Namespaces in XML.
        if let Err(flaw) = roxmltree::Document::parse(text) {
            all.note(format!("the {name} view is not well-formed: {flaw}"));
        }
    }
    let (Some(reader), Some(sync)) = (wanted.view(&reader), wanted.view(&sync)) else {
        all.note("a view cannot be read".to_owned());
        return all;
    };
    reader_view(wanted, &current, &reader, &former_ids(lines), &mut all);
    sync_view(&current, &window, &reader, &sync, &mut all);
    all
}

/// The current items with upstream's ids and titles, in upstream's order.
fn reader_view(
    wanted: &Wanted,
    current: &View,
    reader: &[Read],
    former: &BTreeMap<String, BTreeSet<String>>,
    all: &mut Compared,
) {
    let (shown, said) = (reader.len(), wanted.entries.len());
    let stored = current.items.len();
    if shown != said || stored != said {
        all.note(format!("{shown} items in the reader view, {stored} stored, upstream {said}"));
    }
    let places = reader.iter().zip(&wanted.entries).zip(&current.items);
    for (place, (((shown_id, shown_title), (id, title)), item)) in places.enumerate() {
        // JSON Feed and Atom 0.3 are converted, and feed-rs reads titles of the originals otherwise.
        let converted = matches!(wanted.format, Format::JsonFeed | Format::Atom03);
        if shown_title != title && !converted {
            all.note(format!("item {place} is titled {shown_title:?}, not {title:?}"));
        }
        match id {
            Some(id) if shown_id == id => {}
            Some(id) => {
                let before = former.get(&item.shared.winner.id.to_string());
                if before.is_some_and(|before| before.contains(shown_id.trim())) {
                    all.renamed += 1;
                } else {
                    all.note(format!("item {place} has the id {shown_id:?}, not {id:?}"));
                }
            }
            None if *shown_id == item.published_id && !shown_id.is_empty() => {}
            None => all.note(format!("item {place} has the id {shown_id:?}, not its own")),
        }
    }
}

/// The same items, further ones that no longer stand in the document, and tombstones.
fn sync_view(current: &View, window: &View, reader: &[Read], sync: &[Read], all: &mut Compared) {
    let (shown, stored) = (sync.len(), window.items.len());
    if shown != stored {
        return all.note(format!("{shown} items in the sync view, {stored} stored"));
    }
    let here: HashSet<_> = current.items.iter().map(|item| &item.shared.winner.id).collect();
    // The window begins behind the tombstones that were too old to be kept.
    let start = current.state.window_start;
    let changed = current.items.iter().filter(|item| Some(item.tick) > start);
    let changed: HashSet<_> = changed.map(|item| &item.published_id).collect();
    let mut left: Vec<_> = reader.iter().filter(|said| changed.contains(&said.0)).collect();
    for (said, item) in sync.iter().zip(&window.items) {
        if said.0 != item.published_id {
            all.note(format!("{:?} is {:?} in the sync view", item.published_id, said.0));
        }
        if here.contains(&item.shared.winner.id) {
            match left.iter().position(|one| *one == said) {
                Some(at) => drop(left.swap_remove(at)),
                None => all.note(format!("{said:?} in the sync view is not in the reader view")),
            }
        } else if item.shared.winner.deleted != matches!(item.standing, ItemStatus::Deleted { .. })
        {
            all.note(format!("{said:?} is deleted by half"));
        }
    }
    for missing in left {
        all.note(format!("{missing:?} is not in the sync view"));
    }
}
