//! Which feeds SUP ids mean, as the gateway's list of subscriptions says.

use std::collections::HashMap;
use std::time::Duration;
use tidegate_core::clock::{Clock, SystemClock};
use tidegate_core::model::{OUTLINE_SUP, SupId};
use tidegate_core::terminal::printable;
use tidegate_format::parse::opml::{OpmlLimits, OutlineKind, read};
use tidegate_format::parse::{self, Limits};
use tidegate_net::fetch::{Fetch, FetchAnswer, FetchRequest};
use tokio::time::Instant;
use tower::ServiceExt as _;
use url::Url;

/// Where the list stands, beside the SUP document.
const LIST: &str = "subscriptions.opml";
/// How long after it was read it is read again for an id that it did not have.
const AGAIN: Duration = Duration::from_secs(300);
/// The most characters of a title.
const TITLE: usize = 100;

/// A feed of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedFeed {
    /// What it is called: one line without control characters.
    pub(super) title: String,
    /// Where it is.
    pub(super) address: String,
}

/// What is known of ids.
#[derive(Debug, Default)]
pub(super) struct FeedNames {
    /// Where the list stands; `None` where there is none.
    list: Option<Url>,
    known: HashMap<SupId, NamedFeed>,
    read: Option<Instant>,
}

impl FeedNames {
    /// Nothing yet, of the publisher of this SUP document.
    pub(super) fn beside(document: &Url) -> Self {
        Self { list: document.join(LIST).ok(), ..Self::default() }
    }

    /// What is known of an id.
    pub(super) fn by_id(&self, id: &SupId) -> Option<&NamedFeed> {
        self.known.get(id)
    }

    /// Reads the list where one of these ids is unknown: at first, and not often again. That it cannot be
    /// had is no error, for most publishers have none.
    pub(super) async fn learn(&mut self, ids: impl Iterator<Item = &SupId>, fetch: &Fetch) {
        let mut ids = ids;
        let is_due = self.read.is_none_or(|read| read.elapsed() >= AGAIN);
        if !is_due || ids.all(|id| self.known.contains_key(id)) {
            return;
        }
        let Some(list) = self.list.clone() else { return };
        self.read = Some(Instant::now());
        let request = FetchRequest::whole(list.into(), SystemClock.now());
        let fetched = fetch.clone().oneshot(request).await;
        let bytes = match fetched.map(|fetched| fetched.answer) {
            Ok(FetchAnswer::Document(document)) => document.bytes,
            // Who has no list at first has none.
            _ if self.known.is_empty() => {
                self.list = None;
                return;
            }
            _ => return,
        };
        // One of many feeds takes a while.
        let named = tokio::task::spawn_blocking(move || named(&bytes)).await;
        self.known = named.unwrap_or_default();
    }
}

/// The feeds of a list by their SUP ids.
fn named(bytes: &[u8]) -> HashMap<SupId, NamedFeed> {
    let Ok(text) = parse::characters(bytes, None, &Limits::default()) else {
        return HashMap::new();
    };
    let Ok(list) = read(&text.text, &OpmlLimits::default()) else { return HashMap::new() };
    let mut known = HashMap::new();
    for outline in &list.outlines {
        let OutlineKind::Feed(address) = outline.kind() else { continue };
        let Some(id) = list.ours(outline, OUTLINE_SUP) else { continue };
        let Ok(id) = SupId::new(id) else { continue };
        let title = outline.text().or_else(|| outline.title()).unwrap_or_default();
        let title = printable(title).chars().take(TITLE).collect();
        // One that stands in several folders is called as in the first.
        known.entry(id).or_insert(NamedFeed { title, address: address.to_owned() });
    }
    known
}
