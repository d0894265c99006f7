//! What foreign readers make of the published documents: the reader and the sync view of a feed,
//! after its recorded documents were taken in, read by feed-rs, checked by roxmltree
//! and compared with what the publisher's own document says.
//!
//! Runs over the fixtures always, and over the recorded feeds that `TIDEGATE_CORPUS` names (a folder
//! with `replay/` and `single/`) where it is set.

use crate::support::prelude::*;
use crate::support::{self, corpus};
use tidegate_format::parse::{self, Limits};
use tidegate_format::render::{self, Addresses, Page, ViewKind};
use tidegate_replay::{self as replay, DocumentOutcome, Recorded, ReplayTarget, Series};

/// The fewest recorded feeds and documents that must be compared by feed-rs on both sides.
const FEEDS_WANTED: usize = 30;
const DOCUMENTS_WANTED: usize = 150;
/// So long that nothing ever leaves the sync view: then every current item must be in it.
const WINDOW: Duration = Duration::from_secs(200 * 366 * 86_400);
/// How far polls are apart while a recorded document is in force.
const APART: Duration = Duration::from_secs(3600);
/// How many documents are looked back over, from the last, for one that was taken in whole.
const LOOK_BACK: usize = 60;

/// An entry of a document, as it was read: its id and its title.
type Read = (String, String);

/// What a publisher's document says, as far as readers are concerned.
struct Wanted {
    format: Format,
    /// Of each entry its native id, where it has one, and its title.
    entries: Vec<(Option<String>, String)>,
    /// Whether feed-rs could read it too; else our own reading stands in.
    by_feed_rs: bool,
}

/// What was compared in a series.
#[derive(Debug, Default, PartialEq)]
struct Compared {
    items: usize,
    by_feed_rs: bool,
    /// Of the items, those that bear an id that their publisher has changed since.
    renamed: usize,
    tombstones: usize,
}

impl Wanted {
    /// Reads a document that is whole and has entries.
    fn read(path: &Path) -> Option<Self> {
        let bytes = std::fs::read(path).unwrap();
        let limits = Limits::default();
        let decoded = parse::decode(&bytes, None, &limits).ok()?;
        let document = parse::document(&decoded.text, None, &limits).ok()?;
        // What lists changes has tombstones, and the order of a log.
        let is_log =
            document.lists_changes() && document.entries.iter().all(|entry| entry.sync.is_some());
        if is_log || document.completeness != Completeness::Full || document.entries.is_empty() {
            return None;
        }
        let foreign = foreign(&decoded.text);
        let foreign = foreign.filter(|foreign| foreign.len() == document.entries.len());
        let by_feed_rs = foreign.is_some();
        // RSS 1.0 and 0.90 name their items by `rdf:about`, which feed-rs does not read.
        let has_ids = !matches!(document.format, Format::Rss10 | Format::Rss090);
        let read = foreign.unwrap_or_else(|| own(&document)).into_iter().zip(&document.entries);
        // What stands in a document twice, byte for byte, is one item.
        let mut seen = HashSet::new();
        let read = read.filter(|(_, entry)| seen.insert(&entry.markup));
        let entries = read.map(|((id, title), entry)| {
            let native = entry.native_id.as_deref();
            (native.map(|native| if has_ids { id } else { native.to_owned() }), title)
        });
        Some(Self { format: document.format, entries: entries.collect(), by_feed_rs })
    }

    /// The entries of a view, read as the publisher's document was. feed-rs cannot read all documents of publishers, nor
    /// then the same items in ours.
    fn view(&self, text: &str) -> Option<Vec<Read>> {
        if self.by_feed_rs {
            return foreign(text);
        }
        parse::document(text, None, &Limits::default()).ok().map(|document| own(&document))
    }
}

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
    let declared = text.trim_start().strip_prefix("<?xml ").and_then(|rest| rest.split_once("?>"));
    let feed = feed_rs::parser::parse(declared.map_or(text, |(_, rest)| rest).as_bytes()).ok()?;
    let title = |entry: &feed_rs::model::Entry| {
        plain(entry.title.as_ref().map_or("", |title| &title.content))
    };
    let entries = feed.entries.into_iter().map(|entry| (entry.id.clone(), title(&entry)));
    Some(entries.collect())
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Takes a series in up to its last good document and compares the views. `None` where no document of the series can be
/// taken in whole; an error where a view differs from what the publisher says.
async fn compare(series: &Series) -> Option<Result<Compared, String>> {
    let feed = support::name("recorded");
    for end in (1..=series.documents.len()).rev().take(LOOK_BACK) {
        let Some(wanted) = Wanted::read(&series.documents[end - 1].path) else { continue };
        let upto =
            Series { name: series.name.clone(), documents: series.documents[..end].to_vec() };
        let store = Gate::new().await.store;
        let mut lines = Vec::new();
        let target = ReplayTarget {
            store: &store,
            feed: feed.clone(),
            options: FeedOptions::default(),
            window: WINDOW,
            versions_per_day: VERSIONS_PER_DAY,
            interval: &|_, _, _| APART,
        };
        replay::series(target, &upto, |line| lines.push(line)).await.unwrap();
        let last = lines.last().unwrap();
        // What is held is not published; what was published is an earlier document.
        if last.outcome == DocumentOutcome::Failed || last.held.is_some() {
            continue;
        }
        // The ids that items bore before, as the events tell.
        let events = lines.iter().flat_map(|line| &line.events);
        let events = events.map(|event| serde_json::to_value(event).unwrap());
        let former = events.filter(|event| event["kind"] == "rekeyed").filter_map(|event| {
            let old = event["old_native_id"].as_str()?.trim().to_owned();
            Some((event["sync_id"].as_str()?.to_owned(), old))
        });
        return Some(compare_views(&wanted, &store, &feed, &former.collect()).await);
    }
    None
}

async fn compare_views(
    wanted: &Wanted,
    store: &Store,
    feed: &FeedName,
    former: &HashSet<(String, String)>,
) -> Result<Compared, String> {
    let current = store.view(feed, Select::Current).await.unwrap().unwrap();
    let start = current.state.window_start.unwrap();
    let window = store.view(feed, Select::After(start)).await.unwrap().unwrap();
    let gone = window.items.iter().filter(|item| item.shared.winner.deleted);
    let gone: Vec<Deletion> = gone.map(Deletion::from).collect();
    let read = |view: &View, kind, deleted| {
        let text = rendered(view, kind, deleted);
        // By XML 1.0 and Namespaces in XML.
        let flaw = |flaw| format!("the {kind:?} view is not well-formed: {flaw}");
        roxmltree::Document::parse(&text).map_err(flaw)?;
        wanted.view(&text).ok_or_else(|| format!("the {kind:?} view cannot be read"))
    };
    let (reader, sync) =
        (read(&current, ViewKind::Reader, &gone)?, read(&window, ViewKind::Sync, &[])?);

    // The current items with upstream's ids and titles, in upstream's order.
    let counts = [reader.len(), current.items.len(), wanted.entries.len()];
    if counts != [reader.len(); 3] {
        return Err(format!("shown, stored and upstream are {counts:?} items"));
    }
    // JSON Feed and Atom 0.3 are converted, and feed-rs reads titles of the originals otherwise.
    let is_converted = matches!(wanted.format, Format::JsonFeed | Format::Atom03);
    let mut renamed = 0;
    for ((said, (id, title)), item) in reader.iter().zip(&wanted.entries).zip(&current.items) {
        let before = (item.shared.winner.id.to_string(), said.0.trim().to_owned());
        let is_renamed = id.as_ref().is_some_and(|id| *id != said.0) && former.contains(&before);
        renamed += usize::from(is_renamed);
        let own = id.as_ref().unwrap_or(&item.published_id);
        let has_id = is_renamed || (said.0 == *own && !own.is_empty());
        if !has_id || (said.1 != *title && !is_converted) {
            return Err(format!("{said:?} is shown, upstream has {id:?} {title:?}"));
        }
        // The window begins behind the tombstones that were too old to be kept.
        if item.tick > start && !sync.contains(said) {
            return Err(format!("{said:?} is not in the sync view"));
        }
    }
    // Further items no longer stand in the document, or are tombstones.
    let ids = window.items.iter().map(|item| &item.published_id);
    if !sync.iter().map(|(id, _)| id).eq(ids) {
        return Err(format!("the sync view has {sync:?}"));
    }
    let is_half = |item: &&Item| {
        item.shared.winner.deleted != matches!(item.standing, ItemStatus::Deleted { .. })
    };
    if let Some(item) = window.items.iter().find(is_half) {
        return Err(format!("{:?} is deleted by half", item.published_id));
    }
    let (items, by_feed_rs, tombstones) = (reader.len(), wanted.by_feed_rs, gone.len());
    Ok(Compared { items, by_feed_rs, renamed, tombstones })
}

fn rendered(view: &View, kind: ViewKind, deleted: &[Deletion]) -> String {
    let addresses = Addresses {
        upstream: "https://publisher.example/feed".into(),
        via: Some("https://publisher.example/feed".into()),
        ..support::addresses("https://gate.example/feeds/recorded")
    };
    let is_sync = kind == ViewKind::Sync;
    render::document(&Page {
        kind,
        deleted,
        since: view.state.window_start.filter(|_| is_sync),
        until: view.state.tick.filter(|_| is_sync),
        ..support::page(view, &addresses)
    })
}

/// Compares every series on all processors, and demands that the views are what the publishers say; what cannot be compared
/// at all is left out.
fn compare_all(all: &[Series]) -> Vec<Compared> {
    let compared = support::on_all_processors(all, |series| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let compared = runtime.block_on(compare(series))?;
        Some(compared.map_err(|why| format!("{}: {why}", series.name)))
    });
    let (right, wrong): (Vec<_>, Vec<_>) = compared.into_iter().flatten().partition(Result::is_ok);
    assert!(wrong.is_empty(), "the views differ from what the publishers say: {wrong:#?}");
    right.into_iter().map(Result::unwrap).collect()
}

/// A document as a series of its own.
fn alone(path: &Path) -> Series {
    let file = path.file_name().unwrap().to_string_lossy().into_owned();
    let time = Time::from_unix(support::START);
    let recorded = Recorded { n: 1, time, file: file.clone(), path: path.to_owned() };
    Series { name: file, documents: vec![recorded] }
}

fn count_foreign(compared: &[Compared]) -> usize {
    compared.iter().filter(|one| one.by_feed_rs && one.items > 0).count()
}

#[test]
fn recorded_feeds_come_through_as_their_publishers_have_them() {
    let Some(documents) = corpus("replay") else { return };
    let folders = documents.iter().map(|path| path.parent().unwrap().to_owned());
    let folders: BTreeSet<_> = folders.filter(|path| path.join("index.jsonl").is_file()).collect();
    let compared = compare_all(&replay::read(&Vec::from_iter(folders)).unwrap());
    assert!(count_foreign(&compared) >= FEEDS_WANTED, "too few were compared by feed-rs");
    assert!(compared.iter().any(|one| one.renamed > 0), "no re-keyed item was looked at");
}

#[test]
fn single_documents_come_through_as_their_publishers_have_them() {
    let Some(documents) = corpus("single") else { return };
    let compared = compare_all(&documents.iter().map(|path| alone(path)).collect::<Vec<_>>());
    assert!(count_foreign(&compared) >= DOCUMENTS_WANTED, "too few were compared by feed-rs");
}

/// The fixtures, of which one has no items to compare, and a series of our own with what recorded feeds seldom have: a
/// tombstone, and an item re-keyed.
#[test]
fn fixtures_a_tombstone_and_a_new_key_are_seen_by_a_foreign_reader() {
    let all: Vec<_> = files(&root("tests/fixtures/feeds")).iter().map(|path| alone(path)).collect();
    assert!(all.len() >= 8, "only {} fixtures", all.len());
    assert_eq!(compare_all(&all).len() + 1, all.len());

    let folder = tempfile::tempdir().unwrap();
    let mut posts = days(1..=12);
    let mut documents = Vec::new();
    let mut write = |n: u64, posts: &[Post]| {
        let file = format!("{n:04}.xml");
        let path = folder.path().join(&file);
        std::fs::write(&path, atom(SITE, posts)).unwrap();
        let days = 400 + i64::try_from(n).unwrap();
        let time = Time::from_unix(support::START + days * 24 * HOUR);
        documents.push(Recorded { n, time, file, path });
    };
    write(1, &posts);
    posts.remove(4);
    write(2, &posts);
    write(40, &posts);
    posts[0].id = posts[0].id.replace("http://", "https://");
    posts[1].title.push_str(" &amp; more");
    write(41, &posts);
    let compared = compare_all(&[Series { name: "own".to_owned(), documents }]);
    let wanted = Compared { items: 11, by_feed_rs: true, renamed: 1, tombstones: 1 };
    assert_eq!(compared, [wanted]);
}
