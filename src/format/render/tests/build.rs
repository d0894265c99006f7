//! Skeletons and markup for tests, as the parser cuts them out of whole documents.

use crate::parse;
use crate::render::{Addresses, Container, Dialect, HistoryPlace, Page, ViewKind, document};
use tidegate_core::model::{
    Count, Deletion, EndpointId, FeedState, Format, History, Item, ItemStatus, Markup, Revision,
    Shared, Skeleton, Stamp, SyncId, Tick, Time, Update, Version,
};
use tidegate_core::xml::doc::{self, Doc};
use tidegate_core::xml::{self, tag};

pub const NOW: i64 = 1_795_191_605;

#[derive(Debug)]
pub struct Feed {
    pub skeleton: Skeleton,
    pub items: Vec<Item>,
    pub deleted: Vec<Item>,
    pub addresses: Addresses,
    pub state: FeedState,
    pub dialect: Dialect,
    /// Where it is not the feed's own.
    pub container: Option<Container>,
    pub history: HistoryPlace,
}

impl Feed {
    pub fn new(format: Format, document: &str) -> Self {
        let feed = Self::read(document);
        assert_eq!(feed.skeleton.format, format, "{document}");
        feed
    }

    pub fn read(document: &str) -> Self {
        let (skeleton, entries) = cut(document);
        Self::of(skeleton, entries.into_iter().map(item).collect())
    }

    pub fn of(skeleton: Skeleton, items: Vec<Item>) -> Self {
        let state = FeedState {
            revision: Revision(7),
            tick: Some(Tick::at(Time::from_unix(NOW))),
            render_revision: 3,
            ..FeedState::untouched(skeleton.format, Time::from_unix(NOW))
        };
        let (addresses, history) = (addresses(), HistoryPlace::default());
        let dialect = Dialect::Sse;
        let (deleted, container) = (Vec::new(), None);
        Self { skeleton, items, deleted, addresses, state, dialect, container, history }
    }

    /// Renders a view and checks what holds of every document: a strict processor takes it, and reads in it what
    /// quick-xml does.
    pub fn render(&self, kind: ViewKind) -> String {
        let text = self.render_unchecked(kind);
        assert!(Doc::read_flawless(&text).is_some(), "{text}");
        doc::testing::check(&text);
        assert_eq!(self.render_unchecked(kind), text);
        text
    }

    pub fn render_unchecked(&self, kind: ViewKind) -> String {
        let tick = |seconds| Some(Tick::at(Time::from_unix(NOW + seconds)));
        let page = Page {
            container: self.container.unwrap_or(Container::of(self.skeleton.format)),
            window: Some(std::time::Duration::from_secs(30 * 86_400)),
            kind,
            dialect: self.dialect,
            addresses: &self.addresses,
            state: &self.state,
            skeleton: &self.skeleton,
            items: &self.items,
            deleted: &self.deleted.iter().map(Deletion::from).collect::<Vec<_>>(),
            history: &self.history,
            since: tick(-3600),
            until: tick(0),
            expires: Some(Time::from_unix(NOW + 86_400)),
        };
        document(&page)
    }

    pub fn reader(&self) -> String {
        self.render(ViewKind::Reader)
    }

    /// Renders the reader view and gives only what stands from the first entry to the last.
    pub fn entries(&self) -> String {
        let text = self.reader();
        let start = text.find("</sx:sharing>").unwrap() + "</sx:sharing>".len();
        let end = ["</channel>", "</feed>", "</a:feed>"].iter().find_map(|end| text.rfind(end));
        text[start..end.unwrap()].trim().to_owned()
    }
}

fn addresses() -> Addresses {
    Addresses {
        reader: "https://gate.example/feeds/news".to_owned(),
        sync: "https://gate.example/feeds/news/sync".to_owned(),
        complete: "https://gate.example/feeds/news/complete".to_owned(),
        upstream: "https://pub.example/blog/feed?a=1&b=2".to_owned(),
        via: Some("https://pub.example/blog/feed?a=1&b=2".to_owned()),
        sup: Some("https://gate.example/sup.json#abc".to_owned()),
        hub: None,
        absolute: false,
        keeps_new_feed_url: false,
        aggregated: Vec::new(),
        cloud: None,
    }
}

/// A live item that is published with its native id, or with an urn where it has none.
pub fn item(markup: Markup) -> Item {
    let id = markup.slots.id.clone().map(|id| xml::plain(&markup.xml[id]).trim().to_owned());
    let about = tag::find(&markup.xml[markup.slots.attributes..], "rdf:about")
        .map(|about| about.value.to_owned());
    let json = serde_json::from_str::<serde_json::Value>(&markup.xml).ok();
    let json = json.and_then(|json| json.get("id")?.as_str().map(ToOwned::to_owned));
    let published = id.or(about).or(json).unwrap_or_else(|| "urn:sync:gate.example.x1".to_owned());
    item_as(markup, &published)
}

pub fn item_as(markup: Markup, published_id: &str) -> Item {
    let winner = version(1, markup);
    Item {
        shared: Shared::new(winner),
        published_id: published_id.to_owned(),
        tick: Tick::at(Time::from_unix(NOW)),
        standing: ItemStatus::Current,
        sse091: None,
        extras: None,
        touched: 3,
    }
}

pub fn version(updates: u32, markup: Markup) -> Version<Markup> {
    let update = |n: u32| Update {
        sequence: Count::new(n).unwrap(),
        stamp: Stamp::Both {
            when: Time::from_unix(NOW + 60 * i64::from(n)),
            by: EndpointId::new("gate.example").unwrap(),
        },
    };
    Version {
        id: SyncId::new("gate.example.x1").unwrap(),
        updates: Count::new(updates).unwrap(),
        deleted: false,
        noconflicts: None,
        history: History::from_newest_first((1..=updates).rev().map(update)).unwrap(),
        data: markup,
    }
}

pub fn deleted(mut item: Item) -> Item {
    item.shared.winner = version(2, item.shared.winner.data);
    item.shared.winner.deleted = true;
    item.standing = ItemStatus::Deleted { since: Time::from_unix(NOW) };
    item
}

pub fn cut(document: &str) -> (Skeleton, Vec<Markup>) {
    let limits = parse::Limits::default();
    let decoded = parse::decode(document.as_bytes(), None, &limits).unwrap();
    let document = parse::document(&decoded.text, None, &limits).unwrap();
    let entries = document.entries.iter().map(|entry| {
        let markup = parse::own(&document, entry);
        // What an entry says on its own is what it said in its document.
        assert_eq!(parse::again(&markup).as_deref(), Some(entry.fields()), "{}", markup.xml);
        markup
    });
    (document.skeleton.clone(), entries.collect())
}

/// The ids and titles that a foreign reader finds.
pub fn read_back(text: &str) -> Vec<(String, String)> {
    let feed = feed_rs::parser::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e} in\n{text}"));
    let title = |title: Option<feed_rs::model::Text>| title.map(|t| t.content).unwrap_or_default();
    feed.entries.into_iter().map(|entry| (entry.id, title(entry.title))).collect()
}
