//! Upstreams that speak SSE 0.91: merged by its section 4.4, as long as an item is known by it alone.

use super::publisher::*;
use super::support::{Gate, kinds};
use tidegate_core::model::EventKind::{self, *};
use tidegate_format::parse::{self, Limits};

/// An item of SSE 0.91: its version, and its updates from the topmost, each by whom and in which minute.
fn item_091(version: u32, text: &str, more: &str, updates: &[(&str, u32)]) -> String {
    let stamp = |(by, minute): &(&str, u32)| {
        format!("when=\"Thu, 01 Jan 2026 00:{minute:02}:00 GMT\" by=\"{by}\"")
    };
    let below: String = updates[1..].iter().map(|u| format!("<sx:update {}/>", stamp(u))).collect();
    format!(
        "<item><title>{text}</title><guid>urn:a</guid><sx:sync id=\"x.a\" version=\"{version}\"{more}>\
         <sx:history {}>{below}</sx:history></sx:sync></item>",
        stamp(&updates[0])
    )
}

fn feed_091(items: &str) -> String {
    format!(
        "<rss version=\"2.0\" xmlns:sx=\"http://www.microsoft.com/schemas/rss/sse\"><channel>\
         <title>List</title><link>http://x.example/</link><description/>{items}</channel></rss>"
    )
}

/// What its publisher writes an hour later, and what happened.
async fn reads(gate: &mut Gate, items: &str) -> Vec<EventKind> {
    kinds(&gate.later(1).take(&feed_091(items)).await)
}

async fn mark(gate: &Gate) -> Option<bool> {
    item(gate, "x.a").await.sse091
}

/// Section 2.4: a history may have no updates. What one endpoint after the other writes is no conflict.
#[tokio::test]
async fn a_publisher_that_keeps_no_updates_brings_no_conflicts() {
    let mut gate = Gate::new().await;
    for (version, by) in [(1, "A"), (2, "B"), (4, "A"), (5, "B")] {
        reads(&mut gate, &item_091(version, by, "", &[(by, version)])).await;
        assert_eq!(sides(&gate, "x.a").await, [by], "{version}");
        assert_eq!(item(&gate, "x.a").await.shared.winner.updates.value(), version);
    }
    // Two edits of one version are one (section 4.4.1, n = 0).
    let at_once = item_091(5, "at once", "", &[("A", 9)]);
    assert_eq!(reads(&mut gate, &at_once).await, [Updated]);
    assert_eq!(sides(&gate, "x.a").await, ["at once", "B"]);
    assert_eq!(mark(&gate).await, Some(true));
    assert_eq!(reads(&mut gate, &at_once).await, []);
    // An update that knows the winner ends it.
    reads(&mut gate, &item_091(6, "both", "", &[("B", 20), ("A", 9)])).await;
    assert_eq!((sides(&gate, "x.a").await.len(), mark(&gate).await), (1, Some(false)));
}

/// What was made here is known by nothing else: others may edit it by 0.91.
#[tokio::test]
async fn what_was_made_here_is_edited_by_0_91() {
    let mut gate = Gate::new().await;
    reads(&mut gate, "<item><title>ours</title><guid>urn:a</guid></item>").await;
    let id = gate.known("urn:a").await.id.to_string();
    let edited = item_091(2, "theirs", "", &[("JEO", 2)]).replace("x.a", &id);
    assert_eq!(reads(&mut gate, &edited).await, [Updated]);
    let a = item(&gate, &id).await;
    assert_eq!((a.shared.conflicts.len(), a.sse091), (0, Some(false)));
}

/// As soon as a history of 1.0 came, its rules count (READINGS 2).
#[tokio::test]
async fn an_item_that_came_by_1_0_is_merged_by_1_0() {
    let mut gate = Gate::new().await;
    reads(&mut gate, &item_091(1, "one", "", &[("A", 1)])).await;
    gate.shares(&[entry("a", "two", 2, &[(2, "B", 2), (1, "A", 1)])]).await;
    assert_eq!(mark(&gate).await, None);
    reads(&mut gate, &item_091(3, "three", "", &[("A", 3)])).await;
    assert_eq!(sides(&gate, "x.a").await, ["three", "two"]);
}

/// `conflict="true"` without details is known, and said again.
#[tokio::test]
async fn a_conflict_without_details_is_a_mark() {
    let mut gate = Gate::new().await;
    let marked = " conflict=\"true\"";
    reads(&mut gate, &item_091(2, "marked", marked, &[("A", 2)])).await;
    assert_eq!(mark(&gate).await, Some(true));
    let resolved = |more| item_091(3, "resolved", more, &[("A", 3), ("A", 2)]);
    reads(&mut gate, &resolved("")).await;
    assert_eq!(mark(&gate).await, Some(false));
    // A mark alone is news.
    assert_eq!(reads(&mut gate, &resolved(marked)).await, [Updated]);
    assert_eq!(mark(&gate).await, Some(true));
}

/// Lists (OPML) have the sync markup of 0.91.
#[tokio::test]
async fn outlines_are_merged_by_0_91() {
    let list = |version: u32, by: &str, text: &str| {
        format!(
            "<opml version=\"1.0\" xmlns:sx=\"http://www.microsoft.com/schemas/rss/sse\"><head>\
             <title>List</title></head><body><outline text=\"{text}\" \
             xmlUrl=\"http://x.example/a\"><sx:sync id=\"x.a\" version=\"{version}\"><sx:history \
             when=\"Thu, 01 Jan 2026 00:{version:02}:00 GMT\" by=\"{by}\"/></sx:sync></outline>\
             </body></opml>"
        )
    };
    let mut gate = Gate::new().await;
    for (version, by) in [(1, "A"), (2, "B"), (3, "A")] {
        gate.take(&list(version, by, &format!("of {by}, {version}"))).await;
        let a = item(&gate, "x.a").await;
        assert_eq!((a.shared.winner.updates.value(), a.shared.conflicts.len()), (version, 0));
        assert_eq!(a.sse091, Some(false));
        gate.later(1);
    }
}

/// Ids and endpoints that are no Namespace Specific Strings (SSE 1.0 sections 2.1.1 and 2.4) are named.
#[test]
fn names_that_the_specification_does_not_know_are_named() {
    let warnings = |text: &str| {
        let read = parse::document(text, None, &Limits::default()).unwrap();
        read.warnings.iter().map(|warning| warning.message.clone()).collect::<Vec<_>>()
    };
    let fine = entry("item_1_2005-05-21T11:43:33Z", "A", 1, &[(1, "REO1750%20(a)", 1)]);
    assert_eq!(warnings(&shared(std::slice::from_ref(&fine))), Vec::<String>::new());
    let other = entry("mit Abstand", "A", 2, &[(2, "Zoë", 2), (1, "50%", 1)]);
    let found = warnings(&shared(&[other, fine]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("RFC 2141") && found[0].contains("first of 3"), "{found:?}");
}

/// What an application says in `sx:sync` beyond SSE stays with the item (section 2.1.8).
#[tokio::test]
async fn extensions_of_sync_stay_with_the_item() {
    let mut gate = Gate::new().await;
    let with = |more: &str, text: &str, updates: u32| {
        let a = entry("a", text, updates, &[(updates, "REO", updates)]);
        [a.saying(more).holding("<ext xmlns=\"urn:e\"/>")]
    };
    gate.shares(&with("later=\"1\"", "A", 1)).await;
    let extras = item(&gate, "x.a").await.extras.unwrap();
    assert_eq!(extras.sync.attributes, [(None, "later".to_owned(), "1".to_owned())]);
    assert_eq!(extras.sync.elements, "<ext xmlns=\"urn:e\"/>");
    assert_eq!(gate.shares(&with("later=\"2\"", "A", 1)).await, [], "no version");
    assert_eq!(item(&gate, "x.a").await.extras.unwrap().sync.attributes[0].2, "2");
    gate.shares(&with("", "A2", 2)).await;
    assert!(item(&gate, "x.a").await.extras.unwrap().sync.attributes.is_empty());
}
