//! Replicas in folders: of what a whole gateway publishes, and of publishers with archives. That
//! they are right whatever happens is checked in `pull` itself; here are the network and the disk.

mod bench;
use crate::e2e::support::post::{Format, Post, posts};
use crate::support::publisher::{Answer, Publisher};
use bench::{Bench, pull, said, shared, titles};
use std::path::Path;

const SYNC: &str = "/feeds/news/sync";
const READER: &str = "/feeds/news";

async fn compare(bench: &Bench, into: &str) {
    let mut held = shared(&bench.copy(into));
    let wanted = bench.known().await;
    // A tombstone that is too old for the gateway says nothing else to who has it.
    held.retain(|id, held| !held.1 || wanted.contains_key(id));
    let known: std::collections::BTreeMap<_, _> =
        held.iter().map(|(id, held)| (id.clone(), (held.0, held.1))).collect();
    assert_eq!(known, wanted, "what the replica holds and the gateway knows");
    let fresh = tempfile::tempdir().unwrap();
    pull(&bench.address(SYNC), fresh.path()).await;
    assert_eq!(held, shared(fresh.path()), "the replica and one that begins now");
}

#[tokio::test]
async fn a_replica_of_the_sync_view_is_brought_up_to_date() {
    for format in Format::BOTH {
        let mut bench = Bench::new(format, "deletions = \"eager\"").await;
        bench.posts(&posts(1..=12)).await;
        let first = bench.pull(SYNC, "a").await;
        assert_eq!((said(&first).as_str(), first.requests), ("new 12", 2));
        compare(&bench, "a").await;
        let replica = bench.copy("a").join("replica.xml");
        let written = std::fs::metadata(&replica).unwrap().modified().unwrap();
        let same = bench.pull(SYNC, "a").await;
        assert_eq!((said(&same).as_str(), same.requests, same.bytes), ("", 1, 0), "304");
        assert_eq!(std::fs::metadata(&replica).unwrap().modified().unwrap(), written);
        let mut next = posts(2..=13);
        next[3] = next[3].clone().edited("It was otherwise.");
        next.remove(6);
        bench.posts(&next).await;
        let second = bench.pull(SYNC, "a").await;
        assert_eq!((said(&second).as_str(), second.requests), ("new 1, changed 1, deleted 1", 1));
        assert!(second.bytes * 2 < first.bytes, "{} of {}", second.bytes, first.bytes);
        assert_eq!((second.outcome.living, second.outcome.tombstones), (12, 1));
        compare(&bench, "a").await;
        bench.posts(&posts(2..=13)).await;
        let third = bench.pull(SYNC, "a").await;
        assert_eq!(said(&third), "changed 1, restored 1");
        compare(&bench, "a").await;
    }
}

#[tokio::test]
async fn whoever_missed_the_window_reads_everything_anew() {
    let mut bench = Bench::new(Format::Rss20, "").await;
    bench.posts(&posts(1..=8)).await;
    bench.pull(SYNC, "a").await;
    for day in 9..=30 {
        bench.hours(48);
        bench.posts(&posts(day - 7..=day)).await;
    }
    let pulled = bench.pull(SYNC, "a").await;
    assert!(pulled.outcome.was_out_of_sync);
    assert_eq!((said(&pulled).as_str(), pulled.outcome.living), ("new 22", 30));
    compare(&bench, "a").await;
    bench.posts(&posts(24..=31)).await;
    let pulled = bench.pull(SYNC, "a").await;
    assert_eq!((said(&pulled).as_str(), pulled.requests), ("new 1", 1));
    compare(&bench, "a").await;
}

/// The reader view leads to the complete feed, which has what the view has no room for.
#[tokio::test]
async fn a_replica_of_the_reader_view_goes_back_to_its_beginning() {
    let mut bench = Bench::new(Format::Atom10, "deletions = \"eager\"").await;
    bench.posts(&posts(1..=6)).await;
    for day in 7..=20 {
        bench.posts(&posts(day - 5..=day)).await;
    }
    let first = bench.pull(READER, "a").await;
    let (all, current) = bench.titles().await;
    assert_eq!((titles(&bench.copy("a")), all.len(), current.len()), (all, 20, 6));
    assert_eq!(first.requests, 2);
    let same = bench.pull(READER, "a").await;
    assert_eq!((said(&same).as_str(), same.bytes), ("", 0));
    bench.posts(&posts(15..=21)).await;
    let second = bench.pull(READER, "a").await;
    assert_eq!((said(&second).as_str(), second.requests), ("new 1", 2));
    // Deleted, edited, and gone from the window at once.
    let mut next = posts(16..=22);
    next[4] = next[4].clone().edited("It was otherwise.");
    next.remove(2);
    bench.posts(&next).await;
    let third = bench.pull(READER, "a").await;
    assert_eq!(said(&third), "new 1, changed 1, deleted 1");
    assert_eq!(titles(&bench.copy("a")), bench.titles().await.0);
    // A newcomer reads the same.
    bench.pull(READER, "b").await;
    assert_eq!(titles(&bench.copy("b")), bench.titles().await.0);
}

/// A publisher's document with a link to an older one.
fn with_older(posts: &[Post], older: &str) -> Answer {
    let title = "<title>News</title>";
    let link = format!("{title}<link rel=\"prev-archive\" href=\"{older}\"/>");
    let text = Format::Atom10.document(posts).replacen(title, &link, 1);
    Answer::document("application/atom+xml", text)
}

#[tokio::test]
async fn links_to_private_addresses_are_followed_at_the_given_origin_only() {
    let (publisher, other) = (Publisher::start().await, Publisher::start().await);
    let folder = tempfile::tempdir().unwrap();
    publisher.set("/feed", with_older(&posts(7..=9), "/older"));
    publisher.set("/older", with_older(&posts(4..=6), &other.address("/older")));
    other.set("/older", with_older(&posts(1..=3), "/oldest"));
    let pulled = pull(&publisher.address("/feed"), folder.path()).await;
    assert_eq!((said(&pulled).as_str(), other.requests()), ("new 6", 0));
    let warnings = &pulled.outcome.warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains(&other.address("/older")), "{warnings:?}");
    assert!(warnings[0].contains("private"), "{warnings:?}");
    // It is asked for again the next time, where it can be had.
    publisher.set("/feed", with_older(&posts(8..=10), "/older"));
    let pulled = pull(&publisher.address("/feed"), folder.path()).await;
    assert_eq!((said(&pulled).as_str(), pulled.outcome.warnings.len()), ("new 1", 1));
    // Redirects are links as well.
    publisher.set("/oldest", Answer::redirect(302, &other.address("/feed")));
    let pulled = pulled_or_not(&publisher.address("/oldest"), &folder.path().join("x")).await;
    assert!(pulled.unwrap_err().contains("private"));
    assert_eq!(other.requests(), 0);
}

async fn pulled_or_not(url: &str, into: &Path) -> Result<(), String> {
    let options = tidegate::app::PullOptions::new(url.parse().unwrap(), into.to_owned());
    let mut error: &dyn std::error::Error = &match tidegate::app::pull(options).await {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    let mut words = error.to_string();
    while let Some(source) = error.source() {
        words = format!("{words}: {source}");
        error = source;
    }
    Err(words)
}

#[tokio::test]
async fn credentials_are_for_their_origin_and_are_not_written_down() {
    let publisher = Publisher::start().await;
    let folder = tempfile::tempdir().unwrap();
    let older = publisher.address("/older").replace("http://", "http://eve:guess@");
    publisher.set("/feed", with_older(&posts(4..=6), &older));
    publisher.set("/older", with_older(&posts(1..=3), "/feed"));
    let given = publisher.address("/feed").replace("http://", "http://ann:secret@");
    let pulled = pull(&given, folder.path()).await;
    assert_eq!(said(&pulled), "new 6");
    let (path, headers) = publisher.last();
    // `ann:secret`.
    assert_eq!(
        (path.as_str(), headers["authorization"].to_str().unwrap()),
        ("/older", "Basic YW5uOnNlY3JldA==")
    );
    let text = std::fs::read_to_string(folder.path().join("replica.xml")).unwrap();
    assert!(!text.contains("secret") && !text.contains("guess"), "{text}");
}

/// The command itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_says_what_changed() {
    let mut bench = Bench::new(Format::Rss20, "").await;
    bench.posts(&posts(1..=3)).await;
    let folder = bench.folder.path().to_owned();
    let run = |args: &[&str]| {
        let output = assert_cmd::Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .current_dir(&folder)
            .args(args)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let sync = bench.address(SYNC);
    let (status, out, err) = run(&["pull", &sync, "--into", "copy"]);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("new       Post 3\nnew       Post 2\nnew       Post 1\n3 new; 3 items in copy/replica.xml; 2 requests, "), "{out}");
    let (status, out, _) = run(&["pull", &sync, "--into", "copy"]);
    let nothing = "no change; 3 items in copy/replica.xml; 1 request, 0 bytes\n";
    assert_eq!((status, out.as_str()), (0, nothing));
    // Another feed has no place there, and what is there stays.
    let before = std::fs::read(folder.join("copy/replica.xml")).unwrap();
    let (status, _, err) = run(&["pull", &bench.address(READER), "--into", "copy"]);
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("use another --into"), "{err}");
    let (status, _, err) = run(&["pull", &bench.address("/nothing"), "--into", "nothing"]);
    assert_eq!(status, 1);
    assert!(err.contains("404"), "{err}");
    assert_eq!(std::fs::read(folder.join("copy/replica.xml")).unwrap(), before);
    // The replica is a feed that `merge` takes.
    let (status, out, err) = run(&["merge", "copy/replica.xml", "copy/replica.xml"]);
    assert_eq!(status, 0, "{err}");
    assert_eq!(out.matches("<item>").count(), 3);
}
