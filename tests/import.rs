//! `tidegate import` and `tidegate export` as they are typed.
//!
//! The real lists are those of the folder `opml/` of the corpus that `TIDEGATE_CORPUS` names, where
//! it is set.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use assert_cmd::Command;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegate::clock::SystemClock;
use tidegate::model::{FeedRecord, FeedSource};
use tidegate::parse::opml::{OpmlLimits, OutlineKind, read};
use tidegate::parse::{Limits, decode};
use tidegate::store::{SledStore, Store};

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
    let store = SledStore::open(folder, None, Arc::new(SystemClock)).unwrap();
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
        "l.opml:2: a '&' is not escaped\n\
         l.opml:5: not taken: https://one.example/feed: it stands in line 3 already\n\
         l.opml:6: not taken: gopher://two.example/: the address has the scheme \"gopher\"; only http and https are polled and served\n"
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
    let store = SledStore::open(&at.join("data"), None, Arc::new(SystemClock)).unwrap();
    for args in [["import", "l.opml", "-d", "data"], ["export", "f", "-d", "data"]] {
        let (status, _, err) = tidegate(at, &args);
        assert_eq!(status, 1, "{err}");
        assert!(err.contains("a gateway is running with this store; stop it first"), "{err}");
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

#[test]
fn two_lists_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let list = |outline: &str| {
        format!(
            "<opml version='2.0' xmlns:sx='http://www.microsoft.com/schemas/rss/sse'><body>{outline}</body></opml>"
        )
    };
    let shared = |id: &str| {
        format!(
            "<outline text='{id}' xmlUrl='http://{id}/'><sx:sync id='{id}' version='1'><sx:history by='A'/></sx:sync></outline>"
        )
    };
    std::fs::write(at.join("a.opml"), list(&shared("a"))).unwrap();
    std::fs::write(at.join("b.opml"), list(&shared("b"))).unwrap();
    std::fs::write(at.join("c.opml"), list("<outline><sx:sync id='x'/></outline>")).unwrap();
    let (status, out, err) = tidegate(at, &["merge", "a.opml", "b.opml"]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.contains("xmlUrl=\"http://a/\"") && out.contains("xmlUrl=\"http://b/\""), "{out}");
    let (status, out, err) = tidegate(at, &["merge", "a.opml", "c.opml"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(err.contains("c.opml: line 1: an sx:sync is not taken"), "{err}");
}

#[test]
fn every_address_of_real_lists_is_added_or_named() {
    let Some(corpus) = std::env::var_os("TIDEGATE_CORPUS") else {
        println!("skipped: TIDEGATE_CORPUS is not set");
        return;
    };
    let entries = std::fs::read_dir(PathBuf::from(corpus).join("opml")).unwrap();
    let lists = entries.map(|entry| entry.unwrap().path());
    let mut lists: Vec<_> = lists.filter(|p| p.extension().is_some_and(|e| e == "opml")).collect();
    lists.sort();
    assert!(lists.len() >= 48);
    let folder = tempfile::tempdir().unwrap();
    let (mut added, mut refused) = (0, 0);
    for (number, list) in lists.iter().enumerate() {
        let bytes = std::fs::read(list).unwrap();
        let text = decode(&bytes, None, &Limits::default()).unwrap().text.into_owned();
        let outlines = read(&text, &OpmlLimits::default()).unwrap().outlines;
        let addresses =
            outlines.iter().filter(|o| matches!(o.kind(), OutlineKind::Feed(_))).count();
        let data = format!("data{number}");
        let path = list.to_str().unwrap();
        let (status, out, err) = tidegate(folder.path(), &["import", path, "-d", &data]);
        assert_eq!(status, 0, "{path}: {err}");
        let said = out.lines().last().unwrap();
        let new: usize = said.split(' ').next().unwrap().parse().unwrap();
        // An address that was not taken stands before its reason.
        let with_address = |line: &&str| {
            let what = line.split_once("not taken: ").map(|(_, what)| what);
            what.is_some_and(|what| !what.starts_with("the outline "))
        };
        let links = |line: &&str| line.contains("another list") || line.contains("no feed");
        let not = err.lines().filter(with_address).filter(|line| !links(line)).count();
        assert_eq!(new + not, addresses, "{path}: {said}\n{err}");
        assert_eq!(records(&folder.path().join(&data)).len(), new);
        (added, refused) = (added + new, refused + not);
    }
    println!("{added} feeds added, {refused} addresses named that could not be");
}
