//! What `?as-of=` answers is what was live then, over recorded feeds, where `TIDEGATE_CORPUS` names
//! them; of others it is `history.rs`.

use crate::history::site;
use crate::support;

use site::{READER, Site};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use support::Gate;
use tidegate_core::model::{FeedName, FeedOptions, Item, SyncId, Time};
use tidegate_replay::{self as replay, DocumentReport, ReplayTarget, Series};
use tidegate_store::{Past, PastSelect, Select, Store};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

/// The fewest recorded feeds that must be compared.
const FEEDS_WANTED: usize = 10;
/// So many times of a feed at most are asked for over HTTP.
const ASKED: usize = 6;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// An item as it can be told apart: which, in which version, whether it lives.
type Seen = (SyncId, u32, bool);

fn seen(items: &[Item]) -> Vec<Seen> {
    let one = |item: &Item| {
        let winner = &item.shared.winner;
        (winner.id.clone(), winner.updates.value(), winner.deleted)
    };
    items.iter().map(one).collect()
}

/// A feed while a document was in force: what the views showed at its end, and what the events said
/// so far.
struct Moment {
    at: Time,
    current: Vec<Seen>,
    all: Vec<Seen>,
    skeleton: String,
    living: BTreeSet<String>,
}

async fn run(store: &Store, feed: &FeedName, series: &Series, print: impl FnMut(DocumentReport)) {
    let stage = ReplayTarget {
        store,
        feed: feed.clone(),
        options: FeedOptions::default(),
        window: Duration::from_secs(30 * 86_400),
        versions_per_day: tidegate_core::model::VERSIONS_PER_DAY,
        interval: &|_, _, _| Duration::from_secs(3600),
    };
    replay::series(stage, series, print).await.unwrap();
}

/// Replays a series and notes what was shown at the end of each document.
async fn moments(gate: &Gate, series: &Series) -> Vec<Moment> {
    let mut moments = Vec::new();
    let mut living = BTreeSet::new();
    let mut place = 0;
    let store = &*gate.store;
    run(store, &gate.feed, series, |line| {
        let events = serde_json::to_value(&line).unwrap();
        for event in events["events"].as_array().unwrap() {
            let id = event["sync_id"].as_str().unwrap().to_owned();
            match event["kind"].as_str().unwrap() {
                "created" | "undeleted" => drop(living.insert(id)),
                "deleted" => drop(living.remove(&id)),
                _ => {}
            }
        }
        place += 1;
        let next = series.documents.get(place).map(|next| next.time);
        let last = series.documents[place - 1].time.plus(Duration::from_secs(86_400));
        let at = next.map_or(last, |next| next.minus(Duration::from_secs(1)));
        let view = |select| {
            let answer = store.view(&gate.feed, select);
            block_in_place(|| Handle::current().block_on(answer)).unwrap()
        };
        let (Some(current), Some(all)) = (view(Select::Current), view(Select::All)) else { return };
        // Two documents of one second: what the first of them showed was shown for no time.
        if all.state.updated_at <= at {
            moments.push(Moment {
                at,
                current: seen(&current.items),
                all: seen(&all.items),
                skeleton: current.skeleton.text,
                living: living.clone(),
            });
        }
    })
    .await;
    moments
}

/// What a view showed; `None` where something left the ledger since that may have been in it.
async fn then(gate: &Gate, select: PastSelect, at: Time) -> Option<(Vec<Seen>, String)> {
    let past = gate.store.past(&gate.feed, select, at).await.unwrap();
    let left = gate.store.state(&gate.feed).await.unwrap().unwrap().evictions.latest;
    let view = match past {
        Some(Past::Then(view)) => view,
        Some(Past::Unknown { back_to }) if left.is_some_and(|left| at < left) => {
            assert_eq!(back_to, left);
            return None;
        }
        other => panic!("{at}: {other:?}"),
    };
    for item in &view.items {
        let winner = &item.shared.winner;
        let version = gate.store.version(&gate.feed, &winner.id, winner.updates).await.unwrap();
        let bytes = version.unwrap().markup;
        assert!(bytes.is_none_or(|bytes| bytes == winner.data), "{at}: {}", winner.id);
    }
    Some((seen(&view.items), view.skeleton.text))
}

/// The sync ids of a document, in order.
fn listed(document: &str) -> Vec<String> {
    let syncs = document.split(":sync ").skip(1);
    let id = |sync: &str| Some(sync.split_once("id=\"")?.1.split_once('"')?.0.to_owned());
    syncs.filter_map(id).collect()
}

/// Compares every moment of a series; how many there were.
async fn compare(series: &Series) -> usize {
    let mut gate = Gate::new().await;
    let moments = moments(&gate, series).await;
    let mut compared = 0;
    for moment in &moments {
        if let Some((current, skeleton)) = then(&gate, PastSelect::Current, moment.at).await {
            assert_eq!(current, moment.current, "{} at {}", series.name, moment.at);
            assert_eq!(skeleton, moment.skeleton, "{} at {}", series.name, moment.at);
        }
        let Some((all, _)) = then(&gate, PastSelect::All, moment.at).await else { continue };
        compared += 1;
        assert_eq!(all, moment.all, "{} at {}", series.name, moment.at);
        let living: BTreeSet<String> =
            all.iter().filter(|(.., deleted)| !deleted).map(|(id, ..)| id.to_string()).collect();
        assert_eq!(living, moment.living, "{} at {}: what replay says", series.name, moment.at);
    }
    gate.now = moments.last().map_or(gate.now, |last| last.at.plus(Duration::from_secs(9)));
    let site = Site::new(gate).await;
    let left = site.gate.store.state(&site.gate.feed).await.unwrap().unwrap().evictions.latest;
    let known = moments.iter().filter(|moment| left.is_none_or(|left| moment.at >= left));
    for moment in known.step_by(moments.len().div_ceil(ASKED).max(1)) {
        let document = site.text(&format!("{READER}?as-of={}", moment.at)).await;
        let ids: Vec<String> = moment.current.iter().map(|(id, ..)| id.to_string()).collect();
        assert_eq!(listed(&document), ids, "{} at {}", series.name, moment.at);
        let document = site.text(&format!("{READER}/complete?as-of={}", moment.at)).await;
        let ids: Vec<String> = moment.all.iter().map(|(id, ..)| id.to_string()).collect();
        assert_eq!(listed(&document), ids, "{} at {}", series.name, moment.at);
    }
    compared
}

fn corpus() -> Option<Vec<Series>> {
    let Some(corpus) = std::env::var_os("TIDEGATE_CORPUS") else {
        println!("skipped: TIDEGATE_CORPUS is not set");
        return None;
    };
    let folder = PathBuf::from(corpus).join("replay");
    let mut sources: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("index.jsonl").is_file())
        .collect();
    sources.sort();
    Some(replay::read(&sources).unwrap())
}

#[test]
fn recorded_feeds_are_answered_as_they_were() {
    let Some(all) = corpus().map(|all| support::sample(all, 3)) else { return };
    let compared: usize = all.iter().map(|series| runtime().block_on(compare(series))).sum();
    println!("{compared} times of {} feeds compared", all.len());
    assert!(all.len() >= FEEDS_WANTED, "only {} feeds", all.len());
}
