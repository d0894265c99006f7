//! Deltas (RFC 3229 with `A-IM: feed`): who gets one, what stands in it, and who gets the whole
//! document.

use super::*;

const READER: &str = "/feeds/news";
const SYNC: &str = "/feeds/news/sync";

/// A site that gives deltas of the reader view too.
fn giving_all() -> Site {
    let settings = with(settings(), |it| it.publish.deltas = tidegate_config::DeltaViews::All);
    Site::with(TestStore::with_news(), settings)
}

async fn tag(site: &Site, path: &str, encoding: &str) -> String {
    let answer = site.get_with(path, &[("accept-encoding", encoding)]).await;
    assert_eq!(answer.status(), 200);
    header(&answer, "etag").to_owned()
}

async fn ask(site: &Site, path: &str, base: &str) -> Response<Body> {
    site.get_with(path, &[("if-none-match", base), ("a-im", "feed")]).await
}

/// A commit that changes these items in the way of `change`, and is the feed's last tick.
fn commit(site: &Site, changed: &[&str], change: impl Fn(&mut Item)) {
    site.store.edit("news", |feed| {
        feed.state.render_revision += 1;
        feed.state.updated_at = at(-4);
        feed.state.tick = Some(tick(-4));
        let changed: Vec<_> = changed.iter().map(|name| id(name)).collect();
        for item in feed.items.iter_mut().filter(|i| changed.contains(&i.shared.winner.id)) {
            item.touched = feed.state.render_revision;
            change(item);
        }
    });
}

fn version(item: &mut Item) {
    item.tick = tick(-4);
}

fn line<'t>(text: &'t str, word: &str) -> &'t str {
    let found = text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no line {word:?} in\n{text}"))
}

/// rss2email's library asks for deltas; the program takes 226 for an error and loses the posts.
#[tokio::test]
async fn a_reader_that_asks_gets_the_whole_unless_the_operator_says_otherwise() {
    let site = Site::new();
    let (reader, sync) = (tag(&site, READER, "").await, tag(&site, SYNC, "").await);
    commit(&site, &["a"], version);
    let answer = ask(&site, READER, &reader).await;
    assert_eq!((answer.status().as_u16(), header(&answer, "im")), (200, ""));
    assert_eq!(header(&answer, "vary"), "Accept, Accept-Encoding, Sec-Fetch-Dest");
    assert_eq!(header(&answer, "cache-control"), "public, no-cache");
    assert_eq!(text(answer).await, site.text(READER).await);
    assert_eq!(ask(&site, SYNC, &sync).await.status(), 226);
}

#[tokio::test]
async fn a_delta_has_what_is_new_and_the_tag_of_the_whole() {
    let site = giving_all();
    for path in [SYNC, READER] {
        let base = tag(&site, path, "").await;
        commit(&site, &["a"], version);
        let whole = site.get(path).await;
        let answer = ask(&site, path, &base).await;
        assert_eq!(answer.status(), 226, "{path}");
        assert_eq!(header(&answer, "im"), "feed");
        assert_eq!(header(&answer, "delta-base"), base);
        for name in ["etag", "last-modified", "vary", "content-type", "link", "x-sup-id"] {
            assert_eq!(header(&answer, name), header(&whole, name), "{name}");
        }
        let vary = header(&answer, "vary");
        assert_eq!(vary.contains("Sec-Fetch-Dest"), path == READER);
        assert!(vary.starts_with("A-IM, Accept, Accept-Encoding"), "{vary}");
        assert_eq!(header(&answer, "cache-control"), "no-store, im, no-cache");
        let length: usize = header(&answer, "content-length").parse().unwrap();
        let said = text(answer).await;
        assert_eq!((said.len(), line(&said, "items")), (length, "a"));
        assert!(!said.contains("deleted gone"), "it was deleted before");
        // SSE 1.0 section 4.1.2: as a feed of its own the sync view says what it begins with.
        let bounds = [tick(-10), tick(-4)].map(|tick| format!("Some({tick:?})"));
        let shown = ["since", "until"].map(|word| line(&said, word).to_owned());
        assert!(path == READER || shown == bounds, "{said}");
    }
    // Every encoding carries it, with its own tag.
    let base = tag(&site, READER, "zstd").await;
    let known = async |base: &str, encoding: &str| {
        let asked = [("if-none-match", base), ("a-im", "feed"), ("accept-encoding", encoding)];
        site.get_with(READER, &asked).await
    };
    for encoding in ["zstd", ""] {
        let answer = known(&base, encoding).await;
        assert_eq!((answer.status().as_u16(), header(&answer, "etag")), (304, &*base));
    }
    commit(&site, &["b"], |_| {});
    for encoding in ["", "gzip", "zstd"] {
        let answer = known(&base, encoding).await;
        assert_eq!(answer.status(), 226);
        assert_eq!(header(&answer, "content-encoding"), encoding);
        assert_eq!(header(&answer, "etag"), tag(&site, READER, encoding).await);
        let packed = bytes(answer).await;
        let said = match encoding {
            "gzip" => unpacked(&packed),
            "zstd" => zstd::decode_all(&packed[..]).unwrap(),
            _ => packed,
        };
        assert_eq!(line(&String::from_utf8(said).unwrap(), "items"), "b");
    }
    // A deletion is told, and what went otherwise is not.
    let (base, sync) = (tag(&site, READER, "").await, tag(&site, SYNC, "").await);
    commit(&site, &["b"], |item| {
        item.standing = ItemStatus::Deleted { since: at(-4) };
        item.shared.winner.deleted = true;
        item.tick = tick(-4);
    });
    site.store.edit("news", |feed| feed.order.clear());
    // In the sync view its tombstone stands beside that; what was deleted before is not said again.
    for (path, base, items, deleted) in [
        (READER, base.as_str(), "", "b"),
        (SYNC, &sync, "b", "b"),
        (SYNC, "", "gone a b", "gone b"),
    ] {
        let said = text(ask(&site, path, base).await).await;
        assert_eq!((line(&said, "items"), line(&said, "deleted")), (items, deleted), "{path}");
    }
}

/// Which tags name a state is shown where they are read.
#[tokio::test]
async fn whoever_does_not_ask_or_names_no_state_gets_the_whole() {
    let site = giving_all();
    let (reader, sync) = (tag(&site, READER, "").await, tag(&site, SYNC, "").await);
    let since = format!("{SYNC}?since={}", tick(-5 * DAY));
    let (complete, of_since) = ("/feeds/news/complete", tag(&site, &since, "").await);
    let whole = tag(&site, complete, "").await;
    commit(&site, &["a"], version);
    for (method, path, base, wanted) in [
        ("GET", READER, &reader, "feed;q=0"),
        ("HEAD", READER, &reader, "feed"),
        ("GET", READER, &sync, "feed"),
        ("GET", &since, &of_since, "feed"),
        ("GET", &since, &sync, "feed"),
        ("GET", complete, &whole, "feed"),
    ] {
        let asked = [("if-none-match", base.as_str()), ("a-im", wanted)];
        let answer = site.ask(request(method, path, &asked, "")).await;
        let said = (answer.status().as_u16(), header(&answer, "im"));
        assert_eq!(said, (200, ""), "{method} {path} {base} {wanted}");
    }
    assert_eq!(ask(&site, READER, "*").await.status(), 304);
    let dated = [("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT"), ("a-im", "feed")];
    assert_eq!(site.get_with(READER, &dated).await.status(), 200, "a date names no state");
    // What entries cannot say is said by the whole.
    type Edit = fn(&mut doubles::Feed);
    let nothing: Edit = |_| {};
    let cases: [(&str, Edit, u16, u16); 5] = [
        ("nothing else", nothing, 226, 226),
        ("a rearrangement", |feed| feed.state.deltas_from = 6, 200, 226),
        ("a feed that lists everything", |feed| feed.state.says_complete = true, 200, 226),
        ("it left the window", |feed| feed.state.window_start = Some(tick(-9)), 200, 200),
        ("another opening of the store", |feed| feed.state.lineage.go_on(1, 4), 200, 200),
    ];
    for (what, edit, reader, sync) in cases {
        let site = giving_all();
        let tags = [tag(&site, READER, "").await, tag(&site, SYNC, "").await];
        commit(&site, &["a"], version);
        site.store.edit("news", edit);
        assert_eq!(ask(&site, READER, &tags[0]).await.status(), reader, "{what}");
        assert_eq!(ask(&site, SYNC, &tags[1]).await.status(), sync, "{what}");
    }
    let site = giving_all();
    let base = tag(&site, READER, "").await;
    commit(&site, &["a"], version);
    site.store.edit_record("news", |it| it.options.complete = true);
    assert_eq!(ask(&site, READER, &base).await.status(), 200, "as the operator says");
}

#[tokio::test]
async fn a_delta_is_rendered_once_and_the_whole_is_served_where_it_cannot_be_had() {
    let site = giving_all();
    let base = tag(&site, READER, "").await;
    commit(&site, &["a"], version);
    let first = bytes(ask(&site, READER, &base).await).await;
    let reads = site.store.reads_of("frames");
    for _ in 0..5 {
        assert_eq!(bytes(ask(&site, READER, &base).await).await, first);
    }
    assert_eq!(site.store.reads_of("frames"), reads, "a hit reads nothing");
    commit(&site, &["a", "b", "gone"], |_| {});
    for _ in 0..2 {
        assert_eq!(ask(&site, READER, &base).await.status(), 200);
    }
    // A feed that cannot be read, or changes meanwhile.
    let base = tag(&site, READER, "").await;
    for id in ["a", "b"] {
        commit(&site, &[id], version);
        let whole = tag(&site, READER, "").await;
        if id == "a" {
            site.store.fault(StoreFault::Reads);
        } else {
            let (store, done) = ((*site.store).clone(), std::sync::Once::new());
            let change = move || done.call_once(|| store.edit("news", |_| {}));
            site.store.at_read("frames", change);
        }
        let answer = ask(&site, READER, &base).await;
        assert_eq!((answer.status().as_u16(), header(&answer, "etag")), (200, &*whole));
        site.store.mend();
        if id == "a" {
            assert_eq!(ask(&site, READER, &base).await.status(), 226, "a failure is not kept");
        }
    }
}
