//! A publisher, a gateway in front of it, and replicas of what the gateway publishes.

use crate::e2e::support::post::{Format, Post};
use crate::support::gateways::Running;
use crate::support::publisher::{Answer, Publisher};
use crate::support::shared_items;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate::app::{self, PullOptions, Pulled};
use tidegate_core::model::{Entry, FeedName, Time};
use tidegate_format::parse::{self, Limits};
use tidegate_format::pull::ChangeKind;
use tidegate_store::Select;

/// 2026-06-01T00:00:00Z: when the gateway starts.
const START: i64 = 1_780_272_000;

/// A gateway in front of a scripted publisher; its links lead to where it listens.
pub struct Bench {
    pub publisher: Publisher,
    pub format: Format,
    pub folder: tempfile::TempDir,
    gateway: Running,
    news: FeedName,
}

impl Bench {
    pub async fn new(format: Format, feed: &str) -> Self {
        let publisher = Publisher::start().await;
        let url = publisher.address("/feed");
        let text = format!(
            "[publish]\narchive_entries = 3\n[[feed]]\nname = \"news\"\nurl = \"{url}\"\n{feed}\n"
        );
        let gateway = Running::start_at(Time::from_unix(START), &text).await;
        let (news, folder) = (FeedName::new("news").unwrap(), tempfile::tempdir().unwrap());
        Self { publisher, format, folder, gateway, news }
    }

    /// Lets time pass.
    pub fn hours(&mut self, hours: u64) {
        self.gateway.later(Duration::from_secs(hours * 3600));
    }

    /// Publishes posts and has them polled, a minute later.
    pub async fn posts(&mut self, posts: &[Post]) {
        self.gateway.later(Duration::from_secs(60));
        let answer = Answer::document(self.format.media_type(), self.format.document(posts));
        self.publisher.set("/feed", answer);
        self.gateway.poll("news").await;
    }

    /// The address of a path at the gateway.
    pub fn address(&self, path: &str) -> String {
        self.gateway.url(path)
    }

    /// Where a replica is kept.
    pub fn copy(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Pulls a path of the gateway.
    pub async fn pull(&self, path: &str, into: &str) -> Pulled {
        let pulled = pull(&self.address(path), &self.copy(into)).await;
        assert_eq!(pulled.outcome.warnings, Vec::<String>::new());
        pulled
    }

    /// What the gateway knows of each item.
    pub async fn known(&self) -> BTreeMap<String, (u32, bool)> {
        let view = self.gateway.store().view(&self.news, Select::All).await.unwrap().unwrap();
        let winners = view.items.iter().map(|item| &item.shared.winner);
        winners.map(|w| (w.id.to_string(), (w.updates.value(), w.deleted))).collect()
    }

    /// The titles of all items that live, and of those that the reader view shows.
    pub async fn titles(&self) -> (Vec<String>, Vec<String>) {
        let mut both = Vec::new();
        for select in [Select::All, Select::Current] {
            let view = self.gateway.store().view(&self.news, select).await.unwrap().unwrap();
            let living = view.items.into_iter().map(|item| item.shared.winner);
            let living = living.filter(|winner| !winner.deleted);
            let mut titles: Vec<_> = living.map(|winner| winner.data.card.title).collect();
            titles.sort();
            both.push(titles);
        }
        let current = both.pop().unwrap();
        (both.pop().unwrap(), current)
    }
}

/// Pulls from an address.
pub async fn pull(url: &str, into: &Path) -> Pulled {
    let options = PullOptions::new(url.parse().unwrap(), into.to_owned());
    app::pull(options).await.unwrap()
}

/// What a pull changed, like `new 3, deleted 1`.
pub fn said(pulled: &Pulled) -> String {
    let mut words = Vec::new();
    for kind in ChangeKind::ALL {
        let count = pulled.outcome.changes.iter().filter(|change| change.kind == kind).count();
        if count > 0 {
            words.push(format!("{} {count}", kind.name()));
        }
    }
    words.join(", ")
}

/// An item of a replica: its updates, whether it is a tombstone, its history and what it says.
pub type Held = (u32, bool, usize, String);

/// The items of a replica that shares.
pub fn shared(into: &Path) -> BTreeMap<String, Held> {
    let text = std::fs::read_to_string(into.join("replica.xml")).unwrap();
    let items = shared_items::items(&text).into_iter().map(|item| {
        let winner = item.winner;
        let (history, says) = (winner.history.len(), shared_items::said(&winner.data));
        (winner.id.to_string(), (winner.updates.value(), winner.deleted, history, says))
    });
    items.collect()
}

/// The titles of a replica's items that live.
pub fn titles(into: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(into.join("replica.xml")).unwrap();
    let document = parse::document(&text, None, &Limits::default()).unwrap();
    let is_deleted = |entry: &Entry<'_>| entry.shared().is_some_and(|said| said.version.deleted);
    let living = document.entries.iter().filter(|entry| !is_deleted(entry));
    let mut titles: Vec<String> =
        living.map(|entry| entry.title.as_deref().unwrap().to_owned()).collect();
    titles.sort();
    titles
}
