//! Archive documents as they are answered: over a store in memory, with the real renderer.

use super::headers::links;
use super::*;
use std::path::Path;
use tidegate_store::testing::draft::{Draft, add_seal};

const FEED: &str = "https://feeds.example.org/feeds/news";

/// A gateway whose feed is committed to by hand.
pub(super) struct Gate {
    store: Arc<Store>,
    pub(super) app: SharedState,
    pub(super) router: Router,
    seconds: i64,
    format: Format,
    complete: bool,
}

impl Gate {
    /// `folder`: where documents go that are too large for memory.
    pub(super) async fn within(complete: bool, folder: Option<&Path>) -> Self {
        let clock = Arc::new(ManualClock::at(at(0)));
        let store = Arc::new(Store::in_memory(Some(endpoint()), clock.clone()).unwrap());
        let mut record = super::doubles::record("news", FeedStanding::Active);
        record.options.complete = complete;
        store.put_feed(&record).await.unwrap();
        let operator = operator_over(store.clone(), clock, super::doubles::services()).0;
        let folder = folder.map(Path::to_path_buf);
        let parts = ServerConfig { folder, ..parts(operator, settings()) };
        let app = AppState::new(parts, tidegate_format::render::write, CancellationToken::new());
        let router = site_router(Arc::clone(&app), Listener::Everybody);
        Self { store, app, router, seconds: -1000, format: Format::Atom10, complete }
    }

    /// Another version of each of these items; `seal`: an archive of that id takes them.
    pub(super) async fn commit(&mut self, names: &[&str], deleted: &[&str], seal: Option<&str>) {
        self.seconds += 10;
        let mut draft = Draft::on(&self.store, "news", self.seconds).await;
        for name in names {
            let title = format!("{name} of {}", self.seconds);
            let document = document(self.format, &format!("urn:{name}"), &title);
            draft = draft.item_of(name, first_entry(&document));
        }
        draft = deleted.iter().fold(draft, |draft, name| draft.tombstone(name)).order(names);
        let document = document(self.format, "urn:x", "x");
        let document = parse::document(&document, None, &Default::default()).unwrap();
        let mut change = draft.done();
        (change.skeleton, change.state.format) = (Some(document.skeleton), self.format);
        change.state.tombstones += u32::try_from(deleted.len()).unwrap();
        change.state.window_start.get_or_insert(Tick::at(at(-2000)));
        change.state.says_complete = self.complete;
        if let Some(seal) = seal {
            let all = names.iter().chain(deleted).map(|name| id(name));
            add_seal(&mut change, seal, all.collect());
            change.seals[0].upstream = format!("https://upstream.example/{}", self.seconds);
        }
        self.store.commit(change).await.unwrap();
    }

    async fn edit(&self, edit: impl FnOnce(&mut FeedState)) {
        let mut state = self.store.state(&name("news")).await.unwrap().unwrap();
        edit(&mut state);
        let change = Change::of_state(name("news"), state.revision, at(self.seconds), state);
        self.store.commit(change).await.unwrap();
    }

    pub(super) async fn ask(&self, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
        self.router.clone().oneshot(request("GET", path, headers, "")).await.unwrap()
    }

    pub(super) async fn get(&self, path: &str) -> Response<Body> {
        let answer = self.ask(path, &[]).await;
        assert_eq!(answer.status(), 200, "{path}");
        answer
    }
}

fn document(format: Format, id: &str, title: &str) -> String {
    match format.family() {
        Family::Atom => format!(
            "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>News</title><id>urn:feed</id>\
             <entry><id>{id}</id><title>{title}</title></entry></feed>"
        ),
        Family::Rss => format!(
            "<rss version=\"2.0\"><channel><title>News</title>\
             <item><guid>{id}</guid><title>{title}</title></item></channel></rss>"
        ),
    }
}

/// Three archives, `one`, `two` and `three`, and something unsealed.
async fn three() -> Gate {
    let mut gate = Gate::within(false, None).await;
    gate.commit(&["a", "b"], &[], Some("one")).await;
    gate.commit(&["c"], &["b"], Some("two")).await;
    gate.commit(&["a"], &[], Some("three")).await;
    gate.commit(&["d"], &["c"], None).await;
    gate
}

#[tokio::test]
async fn an_archive_is_answered_with_everything_that_a_feed_answer_has() {
    let gate = three().await;
    let answer = gate.get("/feeds/news/archive/two").await;
    assert_eq!(header(&answer, "content-type"), "application/atom+xml; charset=utf-8");
    assert_eq!(header(&answer, "cache-control"), "public, max-age=86400");
    // It last changed when the next archive came to be linked, whose second is the one before
    // that of the feed.
    assert_eq!(header(&answer, "last-modified"), at(-971).rfc822());
    assert_eq!(header(&answer, "vary"), "Accept-Encoding");
    assert!(header(&answer, "x-sup-id").starts_with("https://feeds.example.org/sup.json#"));
    assert_eq!(header(&answer, "access-control-allow-origin"), "*");
    for (relation, path) in [
        ("self", "/archive/two"),
        ("current", ""),
        ("prev-archive", "/archive/one"),
        ("previous", "/archive/one"),
        ("next-archive", "/archive/three"),
        ("complete", "/complete"),
    ] {
        let link = format!("<{FEED}{path}>; rel=\"{relation}\"; type=\"application/atom+xml\"");
        links(&answer).assert_shows(&[&link]);
    }
    // The newest one is led to by the reader view alone.
    for (view, is_led) in [("", true), ("/sync", false), ("/complete", false)] {
        let links = links(&gate.get(&format!("/feeds/news{view}")).await);
        for relation in ["prev-archive", "previous"] {
            let link = format!("<{FEED}/archive/three>; rel=\"{relation}\";");
            assert_eq!(links.contains(&link), is_led, "{view}: {links}");
        }
        assert!(is_led || !links.contains("archive"), "{view}: {links}");
    }
    let etag = header(&answer, "etag").to_owned();
    let body = text(answer).await;
    // The upstream stands there as it was.
    body.assert_shows(&[
        "c of -980",
        "https://upstream.example/-980",
        "deleted-entry ref=\"urn:b\"",
    ]);
    body.assert_lacks(&["d of"]);

    let same = gate.ask("/feeds/news/archive/two", &[("if-none-match", &etag)]).await;
    assert_eq!(same.status(), 304);
    assert_eq!(header(&same, "cache-control"), "public, max-age=86400");
    let dated = [("if-modified-since", &*at(-970).rfc822())];
    assert_eq!(gate.ask("/feeds/news/archive/two", &dated).await.status(), 304);
    let packed = gate.ask("/feeds/news/archive/two", &[("accept-encoding", "gzip")]).await;
    assert_eq!(header(&packed, "content-encoding"), "gzip");
    assert_ne!(header(&packed, "etag"), etag);
    // That of a feed in RSS is in RSS, which has no word for a deletion.
    let mut gate = Gate { format: Format::Rss20, ..Gate::within(false, None).await };
    gate.commit(&["a", "b"], &[], None).await;
    gate.commit(&["a"], &["b"], Some("one")).await;
    let answer = gate.get("/feeds/news/archive/one").await;
    assert_eq!(header(&answer, "content-type"), "application/rss+xml; charset=utf-8");
    let body = text(answer).await;
    body.assert_shows(&["a of -980"]);
    body.assert_lacks(&["deleted-entry"]);
}

/// Though it left the window.
#[tokio::test]
async fn a_deletion_stays_in_the_reader_view_until_it_is_sealed() {
    let mut gate = Gate::within(false, None).await;
    gate.commit(&["a", "b"], &[], Some("one")).await;
    gate.commit(&["a"], &["b"], None).await;
    gate.commit(&["a"], &[], None).await;
    gate.edit(|state| {
        state.window_start = Some(Tick::at(at(-970)));
        state.render_revision += 1;
    })
    .await;
    text(gate.get("/feeds/news").await).await.assert_shows(&["deleted-entry ref=\"urn:b\""]);
    gate.commit(&["a"], &[], Some("two")).await;
    text(gate.get("/feeds/news").await).await.assert_lacks(&["deleted-entry ref=\"urn:b\""]);
    // An item that left says where it is.
    let mut gate = Gate::within(false, None).await;
    gate.commit(&["a"], &[], Some("first")).await;
    gate.commit(&["b"], &[], None).await;
    gate.get("/feeds/news/items/a").await;
    // It leaves the ledger.
    let snapshot = gate.store.snapshot(&name("news")).await.unwrap().unwrap();
    let (mut state, now) = (snapshot.state, at(gate.seconds));
    let known = snapshot.known.iter().find(|known| known.id.as_str() == "a").unwrap();
    let stub = known.stub(known.history.clone(), now);
    state.evictions.note(1, 0, now);
    state.render_revision += 1;
    let change = Change::of_state(name("news"), state.revision, now, state);
    let change = Change { order: Some(Vec::new()), evicted: vec![stub], ..change };
    gate.store.commit(change).await.unwrap();
    for (path, headers) in [
        ("/feeds/news/items/a", vec![]),
        ("/feeds/news/items/a?version=1", vec![]),
        ("/feeds/news/items/a", vec![("accept", "application/json")]),
    ] {
        let answer = gate.ask(path, &headers).await;
        assert_eq!(answer.status(), 410, "{path}");
        let problem: serde_json::Value = serde_json::from_str(&text(answer).await).unwrap();
        assert_eq!(problem["archives"], format!("{FEED}/archive/first"));
        assert_eq!(problem["published_id"], "urn:a");
        let said = problem["detail"].as_str().unwrap();
        said.assert_shows(&["left the complete view of the feed news at"]);
    }
    assert_eq!(gate.ask("/feeds/news/items/c", &[]).await.status(), 404);
    let about = text(gate.get("/feeds/news/about").await).await;
    about.assert_shows(&["1 of the oldest left the complete view"]);
}

#[tokio::test]
async fn dialects_and_containers_are_as_on_the_other_views() {
    let gate = three().await;
    let previous = |query: &str| format!("href=\"{FEED}/archive/one{query}\"");
    let current =
        format!("rel=\"current\" type=\"application/atom+xml\" href=\"{FEED}?sx=feedsync\"");
    for (query, shown) in [
        ("?sx=feedsync", ["http://feedsync.org/2007/feedsync", &previous("?sx=feedsync")]),
        ("?sx=feedsync", [&current, ""]),
        ("?as=rss", ["<fh:archive/>", &previous("?as=rss")]),
        ("?as=jsonfeed", ["\"next_url\":", &format!("\"{FEED}/archive/one?as=jsonfeed\"")]),
        ("?as=opml", ["<opml version=\"2.0\"", ""]),
    ] {
        let path = format!("/feeds/news/archive/two{query}");
        text(gate.get(&path).await).await.assert_shows(&shown);
    }
    for (query, parameter) in [("as=exe", "as"), ("sx=none", "sx")] {
        let refused = gate.ask(&format!("/feeds/news/archive/two?{query}"), &[]).await;
        assert_eq!(problem(refused, 400).await["parameter"], parameter);
    }
}

#[tokio::test]
async fn what_was_dropped_is_gone_and_the_newest_archive_changes_once_more() {
    let mut gate = three().await;
    gate.get("/feeds/news/archive/one").await;
    gate.edit(|state| state.archives.first = 1).await;
    problem(gate.ask("/feeds/news/archive/one", &[]).await, 410).await;
    // It may lead to a 410.
    let body = text(gate.get("/feeds/news/archive/two").await).await;
    body.assert_shows(&[&format!("href=\"{FEED}/archive/one\"")]);
    for path in ["news/archive/four", "news/archive/TWO", "news/archive/%00", "other/archive/two"] {
        problem(gate.ask(&format!("/feeds/{path}"), &[]).await, 404).await;
    }
    let shown = json(gate.ask("/api/v1/feeds/news", &[BEARER]).await).await;
    let archives = &shown["state"]["archives"];
    assert_eq!((&archives["kept"], &archives["dropped"]), (&2.into(), &1.into()), "{shown}");
    assert_eq!(archives["sealed_until"], at(-970).to_string());
    assert_eq!(shown["views"]["archive"], format!("{FEED}/archive/three"));
    // That nothing else of the newest one changes then, and how the reader view leads to it, is shown of many publishers
    // (`tests/it/history.rs`).
    let cases = [("public, no-cache", -971, Some("four")), ("public, max-age=86400", -951, None)];
    for (fresh, shown, seal) in cases {
        let answer = gate.get("/feeds/news/archive/three").await;
        assert_eq!(header(&answer, "cache-control"), fresh);
        assert_eq!(header(&answer, "last-modified"), at(shown).rfc822());
        gate.commit(&["e"], &[], seal).await;
    }
}

#[tokio::test]
async fn only_a_complete_feed_without_tombstones_is_marked_complete() {
    let cases = [(true, vec![], true), (false, vec![], false), (true, vec!["b"], false)];
    for (complete, gone, marked) in cases {
        let mut gate = Gate::within(complete, None).await;
        gate.commit(&["a", "b"], &[], Some("one")).await;
        gate.commit(&["a"], &gone, None).await;
        let body = text(gate.get("/feeds/news/complete").await).await;
        assert_eq!(body.contains("<fh:complete/>"), marked, "{complete} {gone:?}");
        body.assert_lacks(&["-archive"]);
        text(gate.get("/feeds/news").await).await.assert_lacks(&["fh:complete"]);
    }
}
