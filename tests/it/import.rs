//! `tidegate import` and `tidegate export` as they are typed.

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegate::app::{Gateway, Outside};
use tidegate_config as config;
use tidegate_core::clock::SystemClock;
use tidegate_core::model::{FeedRecord, FeedSource, FeedStanding};
use tidegate_format::parse::opml::read;
use tidegate_store::Store;

fn tidegate(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    let output = command.current_dir(folder).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const LIST: &str = "<opml version='1.0'><body>
<outline text='News & more'>
<outline title='One' xmlUrl='https://one.example/feed'/>
<outline title='Two' xmlUrl='https://one.example/feed?b'/>
<outline title='Again' xmlUrl='https://one.example/feed'/>
<outline title='Bad' xmlUrl='gopher://two.example/'/>
</outline></body></opml>";

/// The records of a store, read by the library.
fn records(folder: &Path) -> Vec<FeedRecord> {
    let store = Store::on_disk(folder, None, Arc::new(SystemClock)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let records = store.feeds().await.unwrap();
        store.close().await.unwrap();
        records
    })
}

#[test]
fn a_list_is_taken_in_and_what_is_not_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("l.opml"), LIST).unwrap();
    let (status, out, err) = tidegate(folder.path(), &["import", "l.opml", "-d", "data"]);
    assert_eq!(status, 0, "{err}");
    assert_eq!(
        err,
        "l.opml:2: a bare '&' is taken for itself\n\
         l.opml:5: not taken: https://one.example/feed: it stands in line 3 already\n\
         l.opml:6: not taken: gopher://two.example/: the address has the scheme \"gopher\"; write http or https\n"
    );
    assert!(
        out.contains("added     one-example-feed\nadded     one-example-feed-7kzhwyo5\n"),
        "{out}"
    );
    assert!(out.ends_with("2 feeds added, 0 known already, 2 not taken, 1 problems in the list\n"));
    let stored = records(&folder.path().join("data"));
    assert_eq!(stored.len(), 2);
    assert!(stored.iter().all(|record| record.source == FeedSource::Api));
    assert_eq!(stored[0].enrolment.title.as_deref(), Some("One"));
    let (status, out, _) = tidegate(folder.path(), &["import", "l.opml", "-d", "data"]);
    assert_eq!(status, 0);
    assert!(out.starts_with("0 feeds added, 2 known already, 2 not taken"), "{out}");
    assert_eq!(records(&folder.path().join("data")), stored, "nothing was written");
}

#[test]
fn wrong_input_is_status_2_and_a_store_in_use_is_1() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("feed.xml"), "<rss><channel/></rss>").unwrap();
    std::fs::write(at.join("l.opml"), LIST).unwrap();
    std::fs::write(at.join("memory.toml"), "[store]\nkind = \"memory\"\n").unwrap();
    for (args, said) in [
        (&["import", "nothing.opml"][..], "nothing.opml cannot be read"),
        (&["import", "feed.xml"], "feed.xml: it is a feed and no OPML list"),
        (&["import", "l.opml", "-c", "memory.toml"], "store.kind is \"memory\""),
        (&["export", "f", "-d", "nowhere"], "there is no data folder nowhere"),
        (&["import"], "Usage"),
    ] {
        let (status, out, err) = tidegate(at, args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(said), "{args:?}: {err}");
    }
    assert!(!at.join("tidegate-data").exists(), "nothing was made");
    let store = Store::on_disk(&at.join("data"), None, Arc::new(SystemClock)).unwrap();
    // The gateway that runs there is asked, or another one that is named; nothing listens at these ports.
    std::fs::write(at.join("t.toml"), "[server]\nlisten = \"127.0.0.1:1\"\n").unwrap();
    let nobody = ["export", "f", "-d", "data", "--gateway", "http://127.0.0.1:1"];
    for (args, said) in [
        (
            &["import", "l.opml", "-c", "t.toml", "-d", "data"][..],
            "the gateway that runs with this store was to take it: no gateway answers at http://127.0.0.1:1",
        ),
        (&nobody[..], "no gateway answers at http://127.0.0.1:1"),
    ] {
        let (status, _, err) = tidegate(at, args);
        assert_eq!(status, 1, "{err}");
        assert!(err.contains(said), "{err}");
    }
    drop(store);
}

#[test]
fn a_gateway_is_carried_in_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("l.opml"), LIST).unwrap();
    assert_eq!(tidegate(at, &["import", "l.opml", "-d", "data"]).0, 0);
    let (status, out, err) = tidegate(at, &["export", "state.tg", "-d", "data"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.starts_with("2 feeds with 0 items written to state.tg, "), "{out}");
    let (status, _, err) = tidegate(at, &["export", "state.tg", "-d", "data"]);
    assert!(status == 2 && err.contains("is there already"), "{err}");

    // A folder with a token alone is as good as none, and the token stays.
    std::fs::create_dir(at.join("other")).unwrap();
    std::fs::write(at.join("other/admin-token"), "token").unwrap();
    let (status, out, err) = tidegate(at, &["import", "state.tg", "-d", "other"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.starts_with("2 feeds with 0 items brought in, "), "{out}");
    assert_eq!(records(&at.join("other")), records(&at.join("data")));
    assert_eq!(std::fs::read_to_string(at.join("other/admin-token")).unwrap(), "token");

    for into in ["other", "data"] {
        let (status, _, err) = tidegate(at, &["import", "state.tg", "-d", into]);
        assert!(status == 2 && err.contains("has a store or something else in it"), "{err}");
    }
    std::fs::write(at.join("t.toml"), "[publish]\nendpoint = \"mine\"\n").unwrap();
    let (status, _, err) = tidegate(at, &["import", "state.tg", "-d", "third", "-c", "t.toml"]);
    assert!(status == 2 && err.contains("publish.endpoint says mine"), "{err}");

    // Cut anywhere, or with one byte that is another, it is refused and leaves nothing.
    let whole = std::fs::read(at.join("state.tg")).unwrap();
    let mut other = whole.clone();
    let middle = whole.len() / 2;
    other[middle] ^= 0x40;
    for broken in [&whole[..whole.len() - 1], &whole[..middle], &whole[..20], &other] {
        std::fs::write(at.join("broken.tg"), broken).unwrap();
        let (status, _, err) = tidegate(at, &["import", "broken.tg", "-d", "third"]);
        assert!(status == 2 && err.contains("damaged or cut off"), "{err}");
        let left: Vec<PathBuf> =
            std::fs::read_dir(at).unwrap().map(|e| e.unwrap().path()).collect();
        assert!(!left.iter().any(|path| path.to_string_lossy().contains("third")), "{left:?}");
    }
}

/// What a gateway over a store answers at `/subscriptions.opml`. Its feeds are paused first: nobody is
/// polled.
fn proxied(folder: &Path, query: &str) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::on_disk(folder, None, Arc::new(SystemClock)).unwrap();
        for mut record in store.feeds().await.unwrap() {
            record.standing = FeedStanding::Paused;
            store.put_feed(&record).await.unwrap();
        }
        store.close().await.unwrap();
        drop(store);
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n[store]\nkind = \"sled\"\npath = {folder:?}\n\
             [websub]\nhub = false\nsubscribe = false\n"
        );
        let config = config::check("t.toml", &text).unwrap_or_else(|faults| panic!("{faults}"));
        let gateway = Gateway::start(&config.config, Outside::default()).await.unwrap();
        let address = format!("http://{}/subscriptions.opml{query}", gateway.address());
        let list = reqwest::get(address).await.unwrap().text().await.unwrap();
        gateway.stop().await.unwrap();
        list
    })
}

#[test]
fn a_second_list_comes_behind_the_first_and_export_keeps_the_places() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let feed = |name: &str, host: &str| {
        format!("<outline text='{name}' xmlUrl='https://{host}.example/'/>")
    };
    let write = |file: &str, outlines: &str| {
        let text = format!("<opml version='2.0'><body>{outlines}</body></opml>");
        std::fs::write(at.join(file), text).unwrap();
    };
    let (a, b, c) = (feed("A", "a"), feed("B", "b"), feed("C", "c"));
    write("1.opml", &format!("<outline text='F'>{a}</outline>{b}"));
    write(
        "2.opml",
        &format!(
            "<outline text='G'>{}{c}</outline><outline text='F'>{}</outline>",
            feed("My A", "a"),
            feed("D", "d")
        ),
    );
    assert_eq!(tidegate(at, &["import", "1.opml", "-d", "data"]).0, 0);
    let (_, out, _) = tidegate(at, &["import", "2.opml", "-d", "data"]);
    assert!(out.ends_with("2 feeds added, 1 known already, 0 not taken\n"), "{out}");
    let texts = |data: &str| {
        let text = proxied(&at.join(data), "?upstream=1");
        let list = read(&text).unwrap();
        let line = |o: &tidegate_format::parse::opml::Outline| {
            format!("{}{}", " ".repeat(list.folder(o).len()), o.text().unwrap())
        };
        list.outlines.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(texts("data"), ["F", " A", " D", "B", "G", " C"]);
    assert_eq!(tidegate(at, &["export", "state.tg", "-d", "data"]).0, 0);
    assert_eq!(tidegate(at, &["import", "state.tg", "-d", "other"]).0, 0);
    assert_eq!(texts("other"), texts("data"));
    let (_, out, _) = tidegate(at, &["import", "2.opml", "--rearrange", "-d", "data"]);
    assert!(
        out.contains("0 feeds added, 3 known already") && out.contains("given another place"),
        "{out}"
    );
    assert_eq!(texts("data"), ["G", " My A", " C", "F", " D", "B"]);
}
