//! A store with hand-made feeds, and what polling says of them.

use super::{DAY, at};
mod content;
mod polling;
mod site;

pub(super) use self::content::{feed, item, known, version};
pub(super) use self::polling::*;
pub(super) use self::site::{ScriptedSite, SiteAnswer};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_core::clock::ManualClock;
pub(crate) use tidegate_core::model::testing::{id, name, tick};
use tidegate_core::model::*;
use tidegate_poll::testing::double;
use tidegate_status::*;
use tidegate_store::testing::{ScriptedFeed, ScriptedItem, ScriptedStore};
use tidegate_store::*;

#[derive(Clone)]
pub(super) struct Feed {
    pub(super) state: FeedState,
    pub(super) skeleton: Skeleton,
    pub(super) order: Vec<SyncId>,
    pub(super) items: Vec<Item>,
}

#[derive(Clone)]
pub(super) struct TestStore {
    scripted: Arc<ScriptedStore>,
    feeds: Arc<Mutex<BTreeMap<FeedName, Feed>>>,
}

impl Deref for TestStore {
    type Target = ScriptedStore;

    fn deref(&self) -> &ScriptedStore {
        &self.scripted
    }
}

pub(super) fn hold(reason: &str) -> Hold {
    let reason = reason.to_owned();
    Hold { reason, observations: 2, body: 1, kept: 4, ..double::hold(at(-60)) }
}

pub(crate) fn record(text: &str, standing: FeedStanding) -> FeedRecord {
    let url = format!("https://me:secret@upstream.example/{text}.xml");
    FeedRecord { standing, ..FeedRecord::new(name(text), url, FeedSource::Api) }
}

impl TestStore {
    fn over(scripted: ScriptedStore) -> Self {
        let store = Self { scripted: Arc::new(scripted), feeds: Arc::default() };
        for (text, standing, format) in [
            ("news", FeedStanding::Active, Some(Format::Atom10)),
            ("radio", FeedStanding::Active, Some(Format::Rss20)),
            ("new", FeedStanding::Active, None),
            ("dead", FeedStanding::Gone, Some(Format::Atom10)),
            ("still", FeedStanding::Paused, Some(Format::Atom10)),
        ] {
            store.set_record(&record(text, standing));
            format.into_iter().for_each(|format| store.put(text, feed(format)));
        }
        store
    }

    /// `news` (Atom), `radio` (RSS), `new` (no document yet), `dead` (deleted), `still` (paused).
    pub(super) fn with_news() -> Self {
        Self::over(ScriptedStore::followed("gate", Arc::new(ManualClock::at(at(0)))))
    }

    /// The same, reached by a network.
    pub(super) fn far() -> Self {
        Self::over(ScriptedStore::far("gate", Arc::new(ManualClock::at(at(0)))))
    }

    /// The same, as one of several gateways sees it.
    pub(super) fn shared(self) -> Self {
        let gateways = Arc::new(Gateways::new(GatewayId(1), Duration::from_secs(15)));
        Self { scripted: self.scripted.shared_by(&gateways), ..self }
    }

    pub(super) fn confirm(&self, live: impl Into<Arc<[KnownGateway]>>) {
        self.gateways().unwrap().confirm(since_boot(), live.into());
    }

    pub(super) fn put(&self, text: &str, feed: Feed) {
        let name = name(text);
        self.set_feed(&name, &stored(&feed));
        self.feeds.lock().unwrap().insert(name, feed);
    }

    /// Changes the state of a feed, as a commit does.
    pub(super) fn edit(&self, text: &str, edit: impl FnOnce(&mut Feed)) {
        let mut feed = self.feeds.lock().unwrap()[&name(text)].clone();
        edit(&mut feed);
        feed.state.revision.0 += 1;
        self.put(text, feed);
    }

    /// Puts a feed there as it was put last, in the place of what was committed since.
    pub(super) fn restore(&self, text: &str) {
        // No commit since has led to this revision.
        self.edit(text, |feed| feed.state.revision.0 += 100);
    }

    /// Closes an epoch `seconds` from the time at which tests begin; answers its number.
    pub(super) fn announce(&self, seconds: i64, feeds: &[&str]) -> u64 {
        let changed = |feed: &&str| {
            let (feed, tick) = (name(feed), tick(seconds));
            LoggedChange { feed, tick, revision: Revision(1), versions: 1 }
        };
        self.close_epoch(at(seconds), &feeds.iter().map(changed).collect::<Vec<_>>())
    }

    /// What the next look at what other gateways wrote finds.
    pub(super) fn finds(&self, write: impl FnOnce(&Self) + Send + 'static) {
        let this = self.clone();
        self.at_look(move |_| write(&this));
    }
}

/// A feed as it is stored: each item in one version, and of one it is told why it was deleted.
fn stored(feed: &Feed) -> ScriptedFeed {
    let item = |item: &Item| {
        let winner = &item.shared.winner;
        let note = VersionNote {
            updates: Count::ONE,
            update: winner.history.topmost().clone(),
            deleted: winner.deleted,
            tick: item.tick,
            shown: item.tick.time(),
            title: "<script>title</script>".to_owned(),
            reason: "<i>because</i>".to_owned(),
            size: 8,
        };
        ScriptedItem { known: known(item), item: item.clone(), note }
    };
    let gone = Event {
        id: id("gone"),
        native_id: "urn:gone".to_owned(),
        title: "Gone".to_owned(),
        reason: "a hole that stayed".to_owned(),
        at: at(-5 * DAY),
        seen_gone: Some(at(-6 * DAY)),
        ..double::event(EventKind::Deleted, Some(tick(-5 * DAY)))
    };
    ScriptedFeed {
        state: feed.state.clone(),
        skeleton: Some(feed.skeleton.clone()),
        order: feed.order.clone(),
        items: feed.items.iter().map(item).collect(),
        events: vec![gone],
    }
}
