mod dialects;
mod history;
mod merge;
mod property;
mod sharing;

use super::*;
use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};
use url::Url;

const FEED: &str = "https://pub.example/feed";

fn at(path: &str) -> String {
    format!("https://pub.example/{path}")
}

/// What a publisher answers to whom.
#[derive(Default)]
struct Publisher {
    documents: BTreeMap<String, String>,
    /// Answers 304 to who has this very document, by address.
    conditional: bool,
    /// Answers 304 whatever is asked.
    unmodified: bool,
    /// Deltas, by address: what is answered to who asks for changes.
    deltas: BTreeMap<String, String>,
}

impl Publisher {
    fn of(feed: impl Into<String>) -> Self {
        let mut publisher = Self::default();
        publisher.set(FEED, feed);
        publisher
    }

    /// Who has pulled once.
    fn pulled(&self) -> Local {
        let mut local = Local::default();
        local.pull(self);
        local
    }

    fn set(&mut self, url: &str, text: impl Into<String>) {
        self.documents.insert(url.to_owned(), text.into());
    }

    fn answer(&self, ask: &Ask, state: Option<&State>) -> Answer {
        let url = ask.url.to_string();
        let Some(text) = self.documents.get(&url) else {
            return Err("the publisher answered 404".to_owned());
        };
        let etag = format!("\"{:x}\"", xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
        let named = match &ask.asked {
            Asked::Changes => state.and_then(|state| state.etag.clone()),
            Asked::Unless(tag) => tag.clone(),
        };
        if self.unmodified || self.conditional && named.as_ref() == Some(&etag) {
            return Ok(None);
        }
        let delta = self.deltas.get(&url).filter(|_| ask.asked == Asked::Changes);
        Ok(Some(FetchedBody {
            url: ask.url.clone(),
            bytes: delta.unwrap_or(text).clone().into_bytes(),
            content_type: None,
            etag: Some(etag),
            last_modified: None,
            is_delta: delta.is_some(),
        }))
    }
}

#[derive(Default)]
struct Local {
    saved: Option<(State, String)>,
    /// What was asked for in the last pull.
    asked: Vec<String>,
}

impl Local {
    fn try_pull(
        &mut self,
        publisher: &Publisher,
        limits: PullLimits,
    ) -> Result<PullOutcome, PullError> {
        self.asked.clear();
        let (saved, asked) = (self.saved.clone(), &mut self.asked);
        let state = saved.as_ref().map(|(state, _)| state.clone());
        let fetch = async |ask: &Ask| {
            asked.push(ask.url.path().trim_start_matches('/').to_owned());
            publisher.answer(ask, state.as_ref())
        };
        let pulling = std::pin::pin!(super::pull(Url::parse(FEED).unwrap(), limits, saved, fetch));
        // Nothing is waited for: publishers here answer at once.
        let Poll::Ready(outcome) = pulling.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("a pull waits");
        };
        let outcome = outcome?;
        let before = self.saved.take().map(|(_, replica)| replica);
        let replica = outcome.replica.clone().or(before);
        self.saved = replica.map(|replica| (outcome.state.clone(), replica));
        Ok(outcome)
    }

    /// Why a pull fails, which leaves the replica as it was.
    fn refused(&mut self, publisher: &Publisher) -> String {
        let before = self.saved.clone();
        let error = self.try_pull(publisher, PullLimits::STANDARD).unwrap_err();
        assert_eq!(self.saved, before);
        error.to_string()
    }

    fn pull(&mut self, publisher: &Publisher) -> PullOutcome {
        let outcome = self.try_pull(publisher, PullLimits::STANDARD).unwrap();
        // What was written reads back, and is written the same.
        let (_, text) = self.saved.as_ref().unwrap();
        let (head, items) = read(text);
        assert_eq!(&document::write_replica(&head, &items).unwrap(), text);
        outcome
    }

    fn text(&self) -> &str {
        &self.saved.as_ref().unwrap().1
    }

    /// The titles of what lives, in the order of the replica.
    fn titles(&self) -> Vec<String> {
        let (_, items) = read(self.text());
        let living = items.iter().filter(|item| !item.is_deleted());
        living.map(|item| item.title().unwrap_or_default()).collect()
    }
}

fn read(replica: &str) -> (document::ReplicaHead, Vec<item::ReplicaItem>) {
    document::read_replica(replica, &Url::parse(FEED).unwrap()).unwrap()
}

fn said(outcome: &PullOutcome) -> Vec<String> {
    let title = |change: &PulledChange| change.title.clone().unwrap_or_else(|| change.id.clone());
    outcome.changes.iter().map(|c| format!("{} {}", c.kind.name(), title(c))).collect()
}

#[test]
fn a_first_pull_that_is_answered_as_if_nothing_had_changed_brings_nothing() {
    let publisher = Publisher { unmodified: true, ..Publisher::of("") };
    let outcome = Local::default().try_pull(&publisher, PullLimits::STANDARD).unwrap();
    assert_eq!((outcome.replica, outcome.living, outcome.changes.len()), (None, 0, 0));
    assert_eq!(outcome.state.subscription, FEED);
}
