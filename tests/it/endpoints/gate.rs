//! An endpoint that is Tidegate: a store in memory, local edits by `record::local`, documents in by
//! `record` and out by `render`.

use super::plain::{self, Form};
use crate::support::prelude::*;
use crate::support::{self, addresses, page};
use tidegate_format::parse::{self, Limits};
use tidegate_format::render::{self, Page, ViewKind};
use tidegate_judge::record::local::{self, Act, Acted, CheckedEntry, EntryFields};
use tidegate_judge::record::{self, Issued, Peers, Verdict};

pub struct Gate {
    inner: support::Gate,
    name: String,
}

impl Gate {
    pub async fn new(name: &str, now: Time) -> Self {
        let mut inner = support::Gate::named(name).await;
        inner.options.sharing.local = true;
        inner.url.clear();
        inner.window = Duration::from_secs(400 * 86_400);
        inner.now = now;
        Self { inner, name: name.to_owned() }
    }

    async fn commit(&mut self, verdict: Verdict) -> usize {
        assert_eq!(verdict.held, None, "nothing that is shared is judged");
        self.inner.commit(&verdict).await;
        verdict.change.map_or(0, |change| change.versions.len())
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
        let snapshot = self.inner.store.snapshot(&self.inner.feed).await.unwrap();
        let take_in = |issued: Option<&Issued>| {
            let peers = Peers { complete: None, issued };
            let observation = self.inner.observation(snapshot.as_ref());
            record::take_in_shared(&observation, &document, &peers, prints).unwrap()
        };
        let mut verdict = take_in(None);
        if !verdict.asks.is_empty() {
            let mut issued = Issued::new();
            for id in &verdict.asks {
                issued.insert(id.clone(), self.issued(id).await);
            }
            verdict = take_in(Some(&issued));
            assert_eq!(verdict.asks, [], "asked once");
        }
        let whole = document.completeness == Completeness::Full;
        if whole {
            assert_eq!(verdict.notes, [] as [String; 0], "everything is taken in");
        }
        let versions = self.commit(verdict).await;
        whole.then_some(versions)
    }

    /// What a poll finds out of this gateway's own updates: no other feed knows the item, but there
    /// are its kept versions.
    async fn issued(&self, id: &SyncId) -> Option<Count> {
        let store = &self.inner.store;
        let kept = store.versions(&self.inner.feed, id, 1000).await.unwrap();
        Update::greatest_by(store.endpoint(), kept.iter().map(|note| &note.update))
    }

    fn tick(&mut self) {
        self.inner.now = self.inner.now.plus(Duration::from_secs(1));
    }

    pub async fn act(&mut self, act: Act) -> Acted {
        self.tick();
        let snapshot = self.inner.store.snapshot(&self.inner.feed).await.unwrap();
        let (verdict, acted) =
            local::act(&self.inner.observation(snapshot.as_ref()), &act).unwrap();
        self.commit(verdict).await;
        acted
    }

    /// A document with the changes after `since`, or with everything; empty before the first item.
    pub async fn render(&self, form: Form, since: Option<&str>) -> Option<String> {
        let since = since.map(|since| Tick::at(Time::parse_rfc3339(since).unwrap()));
        let select = since.map_or(Select::All, Select::After);
        let view = self.inner.store.view(&self.inner.feed, select).await.unwrap()?;
        let addresses = addresses(&format!("https://{}/feeds/list", self.name));
        Some(render::document(&Page {
            kind: if since.is_some() { ViewKind::Sync } else { ViewKind::Complete },
            container: form.container,
            dialect: form.dialect,
            since: since.or(view.state.window_start),
            until: view.state.tick,
            ..page(&view, &addresses)
        }))
    }

    pub async fn says(&self, form: Form) -> plain::Items {
        let Some(text) = self.render(form, None).await else { return plain::Items::new() };
        plain::read(&text).unwrap_or_else(|| panic!("it cannot be read: {text}")).1
    }

    /// Opens the store anew; `moves`: it is a new one that was given all that the old one had.
    pub async fn restart(&mut self, moves: bool) {
        match moves {
            true => self.inner.carry(false).await,
            false => self.inner.store = Arc::new(self.inner.store.reopen().unwrap()),
        }
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
