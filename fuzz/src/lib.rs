//! What is fuzzed: everything that reads bytes from outside, and what must hold of it.
//!
//! `fuzz_targets` gives these functions to libFuzzer; `tests/it/fuzz_smoke.rs` runs them on fixtures
//! and on mutations of them with a stable compiler.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use futures_util::FutureExt;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate::cli::merge::merged;
use tidegate_config as config;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{
    BodyPrints, Completeness, EndpointId, FeedDocument, FeedName, FeedOptions, Format, Tick, Time,
};
use tidegate_core::xml::doc;
use tidegate_core::xml::plain_address;
use tidegate_core::{sup, websub};
use tidegate_format::parse::discover::{FEEDS_FOUND, FeedLink, page_feeds};
use tidegate_format::parse::{self, Limits};
use tidegate_format::render::{self, Addresses, Container, Dialect, HistoryPlace, Page, ViewKind};
use tidegate_judge::{news, record, same_item, testing};
use tidegate_store::{Select, Store};
use url::Url;

/// What stands between the two feeds of [`merge`]: a byte that no UTF-8 text has.
pub const BETWEEN: u8 = 0xFF;
/// The entries of documents that are taken in and rendered; more take too long.
const ENTRIES_TAKEN: usize = 200;
/// 2026-01-01T00:00:00Z.
const NOW: Time = Time::from_unix(1_767_225_600);

/// A SUP document and what is made of it, and what leads to one.
pub fn sup(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let base = "http://a.example/feed";
    let places = [sup::in_header(&text), sup::in_link(&text, base), sup::in_links(&text, base)];
    for place in places.into_iter().flatten() {
        assert!(place.document.starts_with("http") && !place.document.contains('#'));
    }
    let Ok(document) = sup::read(data) else { return };
    assert!(document.updated.since(document.since).as_secs() >= u64::from(document.period));
    let mut follower = sup::Follower::default();
    follower.apply_document(&document);
    let again = follower.apply_document(&document);
    assert_eq!((again.updates.len(), again.standing), (0, sup::FollowerStatus::Complete));
}

/// What a hub is asked, and what it asks a callback.
pub fn websub(data: &[u8]) {
    if let Ok(request) = websub::HubRequest::read(data) {
        let written = request.write();
        assert_eq!(websub::HubRequest::read(written.as_bytes()), Ok(request));
    }
    let text = String::from_utf8_lossy(data);
    if let Ok(asked) = websub::Verification::read(&text) {
        let address = asked.address(&"http://a.example/?own=1".parse().unwrap());
        let query = address.query().unwrap();
        assert!(query.starts_with("own=1&hub.mode="));
        assert_eq!(websub::Verification::read(query), Ok(asked));
    }
    let secret = websub::Secret::new("hush").unwrap();
    if secret.verify(&text, data).is_ok() {
        panic!("nobody guesses a signature of a text that bears it");
    }
    secret.verify(&secret.sign(data), data).unwrap();
}

/// The tree of a document, as quick-xml reads it too.
pub fn tree(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if text.contains('<') {
        doc::testing::check(&text);
    }
}

/// A feed document from bytes to bytes.
pub fn document(data: &[u8]) {
    let limits = Limits::default();
    let Ok(decoded) = parse::decode(data, None, &limits) else { return };
    let Ok(feed) = parse::document(&decoded.text, None, &limits) else { return };
    assert!(parse::collection::transcoded(&decoded.text).unwrap_or(None).is_none(), "it is once");
    has_its_places(&feed);
    if feed.format != Format::JsonFeed {
        comes_back_whole(&feed);
    }
    if feed.entries.len() <= ENTRIES_TAKEN {
        taken(&feed);
    }
}

/// Its entries stand one behind the other, and whatever is spliced has a place in the text.
pub fn has_its_places(feed: &FeedDocument<'_>) {
    let mut reached = 0;
    for entry in &feed.entries {
        assert!(reached <= entry.span.start && entry.span.start < entry.span.end);
        reached = entry.span.end;
        let markup = parse::own(feed, entry);
        assert!(markup.xml.is_char_boundary(markup.slots.attributes));
        for range in [&markup.slots.id, &markup.slots.id_element].into_iter().flatten() {
            assert!(markup.xml.get(range.clone()).is_some());
        }
        assert!(entry.native_id.as_ref().is_none_or(|id| !id.trim().is_empty()));
    }
    let slots = &feed.skeleton.slots;
    for range in [&slots.id, &slots.updated, &slots.version].into_iter().flatten() {
        assert!(feed.skeleton.text.get(range.clone()).is_some());
    }
}

/// Repaired entries in the repaired skeleton are a document that is whole; its text.
pub fn comes_back_whole(feed: &FeedDocument<'_>) -> String {
    let (before, behind) = feed.skeleton.text.split_at(feed.skeleton.slots.entries);
    let entries: String = feed.entries.iter().map(|entry| entry.markup.as_ref()).collect();
    let text = format!("{before}{entries}{behind}");
    let again = parse::document(&text, None, &Limits::default()).unwrap();
    assert_eq!(again.completeness, Completeness::Full);
    assert_eq!(again.entries.len(), feed.entries.len());
    text
}

/// Nothing in memory has to be waited for.
fn ready<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("a store in memory answers at once")
}

/// The document through the core: taken in, rendered, read again, taken in again.
fn taken(feed: &FeedDocument<'_>) {
    let clock = Arc::new(ManualClock::at(NOW));
    let store = Store::in_memory(Some(EndpointId::own("gate.example").unwrap()), clock).unwrap();
    let name = FeedName::new("news").unwrap();
    let options = FeedOptions::default();
    // What repeats an entry byte for byte is shown once.
    let names = same_item::natives(feed);
    let entries = feed.entries.iter().zip(&names);
    let once: HashSet<_> = entries.map(|(entry, name)| (name, &*entry.markup)).collect();
    let shares = feed.entries.iter().any(|entry| entry.sync.is_some());
    // A shared item that is new is taken as it is (SSE 1.0 section 3.3 step 1), even where one of its
    // own conflicts would win; the next merge lets it.
    let settles = if shares { 2 } else { 1 };
    for hour in 0..=settles {
        let snapshot = ready(store.snapshot(&name)).unwrap();
        let now = NOW.plus(Duration::from_secs(hour * 3600));
        let observation =
            testing::observation(&name, store.endpoint(), &options, snapshot.as_ref(), now);
        let verdict = record::take_in(&observation, feed, BodyPrints::default()).unwrap();
        if hour == settles {
            assert_eq!(verdict.events(), [], "the same document again is no news");
        }
        if let Some(change) = verdict.change {
            ready(store.commit(change)).unwrap();
        }
    }
    let Some(view) = ready(store.view(&name, Select::Current)).unwrap() else { return };
    // What is shared may be a tombstone, and may leap.
    let shown = view.items.len();
    assert!(shown == once.len() || shares && shown <= feed.entries.len());
    let at = |view: &str| format!("https://gate.example/feeds/news{view}");
    let addresses = Addresses {
        reader: at(""),
        sync: at("/sync"),
        complete: at("/complete"),
        upstream: "https://publisher.example/feed?a=1&b=2".to_owned(),
        via: Some("https://publisher.example/feed?a=1&b=2".to_owned()),
        ..Addresses::default()
    };
    let own = Container::of(view.state.format);
    for (kind, container, dialect) in [
        (ViewKind::Reader, own, Dialect::Sse),
        (ViewKind::Complete, own, Dialect::FeedSync),
        (ViewKind::Complete, Container::Atom, Dialect::Sse091),
        (ViewKind::Reader, Container::Rss, Dialect::Sse),
        (ViewKind::Sync, Container::Pox, Dialect::Sse),
        (ViewKind::Complete, Container::Json, Dialect::FeedSync),
        (ViewKind::Reader, Container::JsonFeed, Dialect::Sse),
        (ViewKind::Complete, Container::Opml, Dialect::Sse),
    ] {
        let page = Page {
            kind,
            container,
            dialect,
            addresses: &addresses,
            state: &view.state,
            skeleton: &view.skeleton,
            items: &view.items,
            deleted: &[],
            history: &HistoryPlace::default(),
            since: view.state.window_start,
            until: view.state.tick,
            expires: None,
            window: None,
        };
        let rendered = render::document(&page);
        let decoded = parse::decode(rendered.as_bytes(), None, &Limits::default())
            .unwrap_or_else(|error| panic!("{error} in {rendered:?}"));
        let again = parse::document(&decoded.text, None, &Limits::default())
            .unwrap_or_else(|error| panic!("{error} in {rendered:?}"));
        assert_eq!(again.completeness, Completeness::Full, "in {rendered:?}");
        assert_eq!(again.entries.len(), shown, "in {rendered:?}");
        let format = match container {
            Container::Atom => Format::Atom10,
            Container::Pox | Container::Json => Format::Collection,
            Container::Rss => Format::Rss20,
            Container::JsonFeed => Format::JsonFeed,
            Container::Opml => Format::Opml,
        };
        assert_eq!(again.format, format, "in {rendered:?}");
    }
}

/// Two SSE feeds, with [`BETWEEN`] them.
pub fn merge(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == BETWEEN);
    let (local, incoming) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Ok(once) = merged(local, incoming) else { return };
    // An item that is new is taken as it is, even where one of its own conflicts would win; the
    // next merge lets it.
    let again = |before: &str| {
        merged(before.as_bytes(), incoming)
            .unwrap_or_else(|(side, error)| panic!("{side:?}: {error} in {before:?}"))
            .text
    };
    let twice = again(&once.text);
    assert_eq!(again(&twice), twice, "merging the same again changes nothing");
}

/// A subscription list.
pub fn opml(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(list) = parse::opml::read(&text) else { return };
    for (at, outline) in list.outlines.iter().enumerate() {
        assert!(
            outline.parent.is_none_or(|parent| parent < at),
            "whatever stands above comes first"
        );
        let _ = (outline.kind(), list.folder(outline));
    }
    let Ok(once) = merged(data, data) else { return };
    let once = once.text;
    assert_eq!(merged(once.as_bytes(), once.as_bytes()).unwrap().text, once, "it knows itself");
}

/// A configuration file.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match config::check("fuzz.toml", &text) {
        Ok(checked) => assert!(checked.config.feeds.len() <= config::FEED_LIMIT),
        Err(faults) => {
            let lines = text.matches('\n').count() + 1;
            assert!(faults.iter().all(|fault| (1..=lines).contains(&fault.line)));
            assert!(faults.to_string().contains("fuzz.toml"));
        }
    }
}

/// What an entry says, a page, a charset, an address, a date.
pub fn text(data: &[u8]) {
    /// A mark stands for a tag and is longer than none of them.
    const LONGEST: usize = 3;
    let text = String::from_utf8_lossy(data);
    let seen = news::visible(&text);
    assert!(seen.len() <= text.len() * LONGEST, "{} of {}", seen.len(), text.len());
    assert!(!seen.contains("  ") && seen.trim() == seen, "{seen:?}");
    let feeds = page_feeds(&text, &Url::parse("https://example.org/blog/").unwrap());
    for links in [feeds.named, feeds.likely] {
        assert!(links.len() <= FEEDS_FOUND);
        for FeedLink { url, .. } in links {
            assert!(matches!(url.scheme(), "http" | "https") && url.fragment().is_none(), "{url}");
        }
    }
    let first: String = text.chars().take(30).collect();
    for charset in ["utf-16", "iso-2022-jp", &first] {
        let content_type = format!("text/xml; charset={charset}");
        if let Ok(decoded) = parse::decode(data, Some(&content_type), &Limits::default()) {
            assert!(!decoded.encoding.is_empty());
        }
    }
    let plain = plain_address::plain_link(&text);
    assert!(plain.len() <= text.len());
    let _ = (plain_address::hostless(&text), plain_address::slug(&text));
    if let Ok(time) = Time::parse_rfc3339(&text) {
        assert_eq!(Time::parse_rfc3339(&time.to_string()), Ok(time));
    }
    if let Ok(tick) = text.parse::<Tick>() {
        assert_eq!(tick.to_string(), text);
    }
}
