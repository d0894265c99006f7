//! Replicas in folders. That they are right whatever happens is checked in `pull` itself; here are the network, the disk
//! and the command.

use crate::support::gateways::{Running, START};
use crate::support::prelude::*;
use crate::support::process::run;
use crate::support::publisher::{Answer, Publisher};
use tidegate::app::{self, PullOptions, Pulled};
use tidegate_format::pull::PullLimits;

/// A pull with the limits that hold where none are given.
fn options(url: &str, into: &Path) -> PullOptions {
    let PullLimits { requests, bytes, .. } = PullLimits::STANDARD;
    let (url, into) = (url.parse().unwrap(), into.to_owned());
    PullOptions { url, into, max_requests: requests, max_bytes: bytes }
}

async fn pull(url: &str, into: &Path) -> Pulled {
    app::pull(options(url, into)).await.unwrap()
}

fn with_older(posts: &[Post], older: &str) -> Answer {
    let title = "<title>News</title>";
    let link = format!("{title}<link rel=\"prev-archive\" href=\"{older}\"/>");
    let text = atom(SITE, posts).replacen(title, &link, 1);
    Answer::document("application/atom+xml", text)
}

#[tokio::test]
async fn links_to_private_addresses_are_followed_at_the_given_origin_only() {
    let (publisher, other) = (Publisher::start().await, Publisher::start().await);
    let folder = tempfile::tempdir().unwrap();
    publisher.set("/feed", with_older(&days(7..=9), "/older"));
    publisher.set("/older", with_older(&days(4..=6), &other.address("/older")));
    other.set("/older", with_older(&days(1..=3), "/oldest"));
    let pulled = pull(&publisher.address("/feed"), folder.path()).await;
    assert_eq!((pulled.outcome.changes.len(), other.seen().len()), (6, 0));
    let warnings = &pulled.outcome.warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains(&other.address("/older")), "{warnings:?}");
    assert!(warnings[0].contains("private"), "{warnings:?}");
    // It is asked for again the next time, where it can be had.
    publisher.set("/feed", with_older(&days(8..=10), "/older"));
    let pulled = pull(&publisher.address("/feed"), folder.path()).await;
    assert_eq!((pulled.outcome.changes.len(), pulled.outcome.warnings.len()), (1, 1));
    // Redirects are links as well.
    publisher.set("/oldest", Answer::redirect(302, &other.address("/feed")));
    let oldest = options(&publisher.address("/oldest"), &folder.path().join("x"));
    let refused = app::pull(oldest).await;
    assert!(refused.unwrap_err().report().contains("private"));
    assert_eq!(other.seen().len(), 0);
}

#[tokio::test]
async fn credentials_are_for_their_origin_and_are_not_written_down() {
    let publisher = Publisher::start().await;
    let folder = tempfile::tempdir().unwrap();
    let older = publisher.address("/older").replace("http://", "http://eve:guess@");
    publisher.set("/feed", with_older(&days(4..=6), &older));
    publisher.set("/older", with_older(&days(1..=3), "/feed"));
    let given = publisher.address("/feed").replace("http://", "http://ann:secret@");
    let pulled = pull(&given, folder.path()).await;
    assert_eq!(pulled.outcome.changes.len(), 6);
    let last = publisher.seen().pop().unwrap();
    // `ann:secret`.
    assert_eq!((&*last.path, &*last.header("authorization")), ("/older", "Basic YW5uOnNlY3JldA=="));
    let text = std::fs::read_to_string(folder.path().join("replica.xml")).unwrap();
    assert!(!text.contains("secret") && !text.contains("guess"), "{text}");
}

/// The command itself, of the sync view of a gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_says_what_changed() {
    let publisher = Publisher::start().await;
    let text = format!(
        "[[feed]]\nname = \"news\"\nurl = \"{}\"\ndeletions = \"eager\"\n",
        publisher.address("/feed")
    );
    let mut gateway = Running::start_at(START, &text).await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let publish = |posts: &[Post]| {
        publisher.set("/feed", Answer::document("application/rss+xml", rss(posts)));
    };
    let sync = gateway.url("/feeds/news/sync");
    let pulls = async |news: usize, words: &str| {
        let (status, said) = run(folder, &["pull", &sync, "--into", "copy"]).await;
        let new = said.matches("new       The story of day ").count();
        assert_eq!((status, new), (0, news), "{said}");
        assert!(said.contains(words), "{words}: {said}");
    };
    publish(&days(1..=6));
    gateway.poll("news").await;
    pulls(6, "\n6 new; 6 items in copy/replica.xml; 2 requests, ").await;
    pulls(0, "no change; 6 items in copy/replica.xml; 1 request, 0 bytes\n").await;
    let mut next = days(2..=7);
    next[3] = next[3].clone().edited("It was otherwise.");
    next.remove(2);
    publish(&next);
    gateway.later(Duration::from_secs(60));
    gateway.poll("news").await;
    let changes = "new       The story of day 7\nchanged   The story of day 4\ndeleted   The story of day 5\n1 new, 1 changed, 1 deleted; ";
    pulls(1, changes).await;
    gateway.stop().await;
}
