//! An endpoint that is Tidegate: a store in memory, local edits by `record::local`, documents in by
//! `record` and out by `render`.

use super::form::Form;
use super::plain;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{
    BodyPrints, Count, EndpointId, FeedName, FeedOptions, SharingOptions, Snapshot, SyncId, Tick,
    Time, Update, VERSIONS_PER_DAY,
};
use tidegate_format::parse::{self, Limits};
use tidegate_format::render::{self, Addresses, HistoryPlace, Page, ViewKind};
use tidegate_judge::archive;
use tidegate_judge::record::local::{self, Act, Acted, CheckedEntry, EntryFields};
use tidegate_judge::record::{self, Issued, Observation, Peers, Verdict};
use tidegate_store::portable::ImportMessage;
use tidegate_store::{Select, Store};

const PIECES: usize = 100_000;

pub struct Gate {
    store: Store,
    clock: ManualClock,
    feed: FeedName,
    options: FeedOptions,
    addresses: Addresses,
    pub now: Time,
}

impl Gate {
    pub async fn new(name: &str, now: Time) -> Self {
        let clock = ManualClock::at(now);
        let endpoint = EndpointId::own(name).unwrap();
        let store = Store::in_memory(Some(endpoint), Arc::new(clock.clone())).unwrap();
        let sharing = SharingOptions { local: true, ..SharingOptions::default() };
        let addresses = Addresses {
            keeps_new_feed_url: false,
            reader: format!("https://{name}/feeds/list"),
            sync: format!("https://{name}/feeds/list/sync"),
            complete: format!("https://{name}/feeds/list/complete"),
            upstream: String::new(),
            via: None,
            sup: None,
            hub: None,
            absolute: false,
            aggregated: Vec::new(),
            cloud: None,
        };
        Self {
            store,
            clock,
            feed: FeedName::new("list").unwrap(),
            options: FeedOptions { sharing, ..FeedOptions::default() },
            addresses,
            now,
        }
    }

    fn round<'a>(&'a self, snapshot: Option<&'a Snapshot>) -> Observation<'a> {
        Observation {
            feed: &self.feed,
            url: "",
            endpoint: self.store.endpoint(),
            options: &self.options,
            snapshot,
            now: self.now,
            aged: self.now,
            tombstones: tidegate_judge::record::TOMBSTONES_KEPT,
            window: Duration::from_secs(400 * 86_400),
            versions_per_day: VERSIONS_PER_DAY,
            items: tidegate_judge::record::ITEMS_KEPT,
            archives: archive::Policy::default(),
        }
    }

    async fn snapshot(&self) -> Option<Snapshot> {
        self.store.snapshot(&self.feed).await.unwrap()
    }

    async fn commit(&self, verdict: Verdict) -> usize {
        assert_eq!(verdict.held, None, "nothing that is shared is judged");
        let Some(change) = verdict.change else { return 0 };
        let versions = change.versions.len();
        self.store.commit(change).await.unwrap();
        versions
    }

    /// Takes a document in as a poll does; how many versions that made, or `None` where it cannot be
    /// read or is not whole.
    pub async fn take(&mut self, text: &str) -> Option<usize> {
        self.tick();
        let limits = Limits::default();
        let decoded = parse::decode(text.as_bytes(), None, &limits).ok()?;
        let document = parse::document(&decoded.text, None, &limits).ok()?;
        let body = xxhash_rust::xxh3::xxh3_128(text.as_bytes());
        let prints = BodyPrints { wire: body, body };
        let snapshot = self.snapshot().await;
        let round = self.round(snapshot.as_ref());
        let mut issued: Option<Issued> = None;
        let verdict = loop {
            let peers = Peers { complete: None, issued: issued.as_ref() };
            let verdict = record::take_in_shared(&round, &document, &peers, prints).unwrap();
            if verdict.asks.is_empty() {
                break verdict;
            }
            assert!(issued.is_none(), "asked once");
            let mut answer = Issued::new();
            for id in &verdict.asks {
                answer.insert(id.clone(), self.issued(id).await);
            }
            issued = Some(answer);
        };
        let whole = document.completeness == tidegate_core::model::Completeness::Full;
        if whole {
            assert_eq!(verdict.notes, [] as [String; 0], "everything is taken in");
        }
        let versions = self.commit(verdict).await;
        whole.then_some(versions)
    }

    /// What a poll finds out of this gateway's own updates: no other feed knows the item, but there
    /// are its kept versions.
    async fn issued(&self, id: &SyncId) -> Option<Count> {
        let kept = self.store.versions(&self.feed, id, 1000).await.unwrap();
        Update::greatest_by(self.store.endpoint(), kept.iter().map(|note| &note.update))
    }

    fn tick(&mut self) {
        self.now = self.now.plus(Duration::from_secs(1));
        self.clock.set(self.now);
    }

    pub async fn act(&mut self, act: Act) -> Acted {
        self.tick();
        let snapshot = self.snapshot().await;
        let (verdict, acted) = local::act(&self.round(snapshot.as_ref()), &act).unwrap();
        self.commit(verdict).await;
        acted
    }

    /// A document with the changes after `since`, or with everything; empty before the first item.
    pub async fn render(&self, form: Form, since: Option<&str>) -> Option<String> {
        let since = since.map(|since| Tick::at(Time::parse_rfc3339(since).unwrap()));
        let select = since.map_or(Select::All, Select::After);
        let view = self.store.view(&self.feed, select).await.unwrap()?;
        Some(render::document(&Page {
            kind: if since.is_some() { ViewKind::Sync } else { ViewKind::Complete },
            container: form.container,
            dialect: form.dialect,
            addresses: &self.addresses,
            state: &view.state,
            skeleton: &view.skeleton,
            items: &view.items,
            deleted: &[],
            history: &HistoryPlace::default(),
            since: since.or(view.state.window_start),
            until: view.state.tick,
            expires: None,
            window: None,
        }))
    }

    /// What it says in a form, as the independent endpoints read it.
    pub async fn says(&self, form: Form) -> plain::Items {
        let Some(text) = self.render(form, None).await else { return plain::Items::new() };
        plain::read(&text).unwrap_or_else(|| panic!("it cannot be read: {text}")).items
    }

    /// Opens the store anew; `moves`: it is a new one that was given all that the old one had.
    pub async fn restart(&mut self, moves: bool) {
        self.store = if moves {
            let (to, mut carried) = tokio::sync::mpsc::channel(PIECES);
            self.store.export(to).await.unwrap();
            let (sender, from) = tokio::sync::mpsc::channel(PIECES);
            while let Some(piece) = carried.recv().await {
                sender.send(ImportMessage::Record(piece)).await.unwrap();
            }
            sender.send(ImportMessage::End).await.unwrap();
            let endpoint = self.store.endpoint().clone();
            let store = Store::in_memory(Some(endpoint), Arc::new(self.clock.clone())).unwrap();
            store.import(from).await.unwrap();
            store
        } else {
            self.store.reopen().unwrap()
        };
    }
}

pub fn written(said: &str) -> CheckedEntry {
    let fields = EntryFields {
        title: format!("Title {said}"),
        content: Some(format!("Text {said}")),
        ..EntryFields::default()
    };
    CheckedEntry::fields(&fields).unwrap()
}

pub fn id(text: &str) -> SyncId {
    SyncId::new(text).unwrap()
}
