//! Upstreams that share their items: merged by section 3.3 of SSE 1.0, never compared.

mod by_091;
mod discard;
use crate::support;
use crate::support::prelude::*;
use crate::support::sharing as publisher;

use publisher::*;

use tidegate_core::model::EventKind::*;
use tidegate_format::parse::{self, Limits};
use tidegate_judge::record::{self, Issued};

/// Section 3.3, step 1, and its further steps where nothing is in conflict: ids and histories stay
/// the publisher's.
#[tokio::test]
async fn ids_and_histories_stay_the_publishers() {
    let mut gate = Gate::new().await;
    let a = entry("a", "A", 3, &[(3, "JEO", 3), (2, "REO", 2), (1, "REO", 1)]);
    assert_eq!(gate.shares(&[a.clone(), first("b", "B")]).await, [Created, Created]);
    let known = item(&gate, "x.a").await;
    assert_eq!(known.shared.winner.updates.value(), 3);
    assert_eq!(sequences(&known), ["3 JEO", "2 REO", "1 REO"]);
    assert_eq!(known.published_id, "urn:a");
    assert_eq!(gate.titles().await, ["A", "B"]);
    // Several updates at once.
    let b = entry("b", "B6", 6, &[(6, "JEO", 9), (1, "REO", 1)]);
    let verdict = gate.later(1).take(&shared(&[b, a])).await;
    assert_eq!(kinds(&verdict), [Updated]);
    assert!(verdict.events()[0].reason.contains("version 6 by JEO"), "{:?}", verdict.events());
    assert_eq!(gate.titles().await, ["B6", "A"]);
    assert_eq!(sequences(&item(&gate, "x.b").await), ["6 JEO", "1 REO"]);
}

/// Other bytes of the version that is known are served, and are no version of their own.
#[tokio::test]
async fn newer_bytes_of_a_version_are_served_without_one() {
    let mut gate = Gate::new().await;
    gate.shares(&[first("a", "A")]).await;
    let verdict = gate.later(1).take(&shared(&[first("a", "A with a counter")])).await;
    assert_eq!(kinds(&verdict), []);
    let change = verdict.change.unwrap();
    assert!(change.versions.is_empty() && change.latest.len() == 1 && change.tick.is_none());
    assert_eq!(gate.titles().await, ["A with a counter"]);
}

/// Section 3.3, steps 7 to 11: two that changed one version are in conflict, and both are kept.
#[tokio::test]
async fn conflicts_are_kept_with_what_lost() {
    let mut gate = Gate::new().await;
    gate.shares(&[entry("a", "ours", 2, &[(2, "GPM", 40), (1, "REO", 1)])]).await;
    let resolving = [(3, "REO", 55), (2, "JEO", 50), (2, "GPM", 40), (2, "ABC", 10), (1, "REO", 1)];
    for (version, expected) in [
        (entry("a", "theirs", 2, &[(2, "JEO", 50), (1, "REO", 1)]), &["theirs", "ours"][..]),
        // The other way round it is the loser that comes in.
        (entry("a", "late", 2, &[(2, "ABC", 10), (1, "REO", 1)]), &["theirs", "ours", "late"][..]),
        // An update that knows of all of them ends the conflict.
        (entry("a", "resolved", 3, &resolving), &["resolved"][..]),
    ] {
        assert_eq!(gate.shares(&[version]).await, [Updated]);
        assert_eq!(sides(&gate, "x.a").await, expected);
    }
}

/// Section 2.4: `noconflicts` is the creator's, and nothing is kept that lost.
#[tokio::test]
async fn where_the_creator_wants_no_conflicts_none_are_kept() {
    let mut gate = Gate::new().await;
    for (text, by, minute) in [("ours", "GPM", 10), ("theirs", "JEO", 20)] {
        let a = entry("a", text, 2, &[(2, by, minute), (1, "REO", 1)]);
        gate.shares(&[a.saying("noconflicts=\"true\"")]).await;
    }
    assert_eq!(sides(&gate, "x.a").await, ["theirs"]);
    assert_eq!(item(&gate, "x.a").await.shared.winner.noconflicts, Some(true));
}

/// Items with and without `sx:sync` in one feed: each in its own way.
#[tokio::test]
async fn plain_entries_beside_shared_ones_are_compared() {
    let mut gate = Gate::new().await;
    let a = first("a", "A").markup();
    let both = |text: &str| document("", &[plain("p", text), a.clone(), plain("q", "Q")]);
    gate.take(&both("P")).await;
    assert_eq!(gate.titles().await, ["P", "A", "Q"]);
    let verdict = gate.later(1).take(&both("P, edited")).await;
    assert_eq!(kinds(&verdict), [Updated]);
    assert!(verdict.events()[0].reason.starts_with("changed: title"));
    let snapshot = gate.snapshot().await;
    let origins: HashMap<_, _> =
        snapshot.known.iter().map(|k| (k.published_id.as_str(), k.origin.clone())).collect();
    assert_eq!(origins["urn:a"], Origin::Upstream);
    assert_eq!(origins["urn:p"], Origin::Observed);
    // A shared item that is gone is no deletion, and no hole for the plain ones.
    let verdict =
        gate.later(1).take(&document("", &[plain("p", "P, edited"), plain("q", "Q")])).await;
    assert_eq!(kinds(&verdict), [Retired]);
    gate.rests(40).await;
    assert_eq!(kinds(&gate.later(1).take(&both("P, edited")).await), [Returned]);
    assert_eq!(gate.titles().await, ["P, edited", "A", "Q"]);
}

/// A publisher that begins to share: readers see the same items under the same ids.
#[tokio::test]
async fn a_publisher_that_begins_to_share_loses_no_reader() {
    let mut gate = Gate::new().await;
    gate.take(&document("", &[plain("a", "A"), plain("b", "B")])).await;
    let before = gate.reader().await;
    let verdict = gate.later(1).take(&shared(&[first("a", "A"), first("b", "B")])).await;
    assert_eq!(gate.reader().await, before);
    let mut found = kinds(&verdict);
    found.sort();
    assert_eq!(found, [Created, Created, Deleted, Deleted]);
    let deleted = verdict.events().iter().find(|e| e.kind == Deleted).unwrap();
    assert!(deleted.reason.starts_with("its publisher shares it as x."), "{}", deleted.reason);
    gate.rests(20).await;
}

/// A publisher that shares no more: the item goes on under its id, by this gateway's own updates.
#[tokio::test]
async fn a_publisher_that_shares_no_more_is_compared() {
    let mut gate = Gate::new().await;
    gate.shares(&[entry("a", "A", 4, &[(4, "REO", 1)])]).await;
    let verdict = gate.later(1).take(&document("", &[plain("a", "A, edited")])).await;
    assert_eq!(kinds(&verdict), [Updated]);
    assert_eq!(sequences(&item(&gate, "x.a").await), ["5 gate.example", "4 REO"]);
    assert_eq!(gate.titles().await, ["A, edited"]);
}

/// A document that is cut on its way: the entries that are whole keep their ids.
#[tokio::test]
async fn what_ends_early_keeps_the_sync_of_its_whole_entries() {
    let mut gate = Gate::new().await;
    let whole = shared(&["a", "b"].map(|id| first(id, id)));
    gate.take(whole.split_once("<id>urn:b").unwrap().0).await;
    let known = gate.snapshot().await.known;
    assert!(matches!(known.as_slice(), [a] if a.origin == Origin::Upstream), "{known:?}");
    assert_eq!(kinds(&gate.take(&whole).await), [Created]);
    assert_eq!(gate.titles().await, ["a", "b"]);
}

/// docs/sharing.md, Limits: a history in our own name that we never made is refused.
#[tokio::test]
async fn a_forged_history_in_our_own_name_is_refused() {
    let mut gate = Gate::new().await;
    gate.shares(&[first("a", "A")]).await;
    gate.later(1);
    let forged = shared(&[entry("a", "forged", 5, &[(5, "gate.example", 50), (1, "REO", 1)])]);
    let verdict = with(&mut gate, &forged, None, None).await;
    assert_eq!(verdict.asks, [id("x.a")]);
    assert_eq!(gate.titles().await, ["A"]);
    let nobody = Issued::from([(id("x.a"), None)]);
    let verdict = with(&mut gate, &forged, None, Some(&nobody)).await;
    assert_eq!(verdict.asks, []);
    assert!(verdict.notes[0].contains("in the name of this gateway"), "{:?}", verdict.notes);
    assert_eq!(gate.titles().await, ["A"]);
    // Another feed of this gateway did make it.
    let elsewhere = Issued::from([(id("x.a"), Some(Count::new(5).unwrap()))]);
    let verdict = with(&mut gate, &forged, None, Some(&elsewhere)).await;
    assert_eq!(kinds(&verdict), [Updated]);
    // From now on this feed knows it as well.
    let verdict = with(gate.later(1), &forged, None, None).await;
    assert_eq!((verdict.asks, verdict.notes), (Vec::new(), Vec::new()));
}

/// Section 2.4: `updates` may be anything up to 2³¹−1, and what is seen first is known by nothing else.
#[tokio::test]
async fn an_item_that_is_new_may_have_been_updated_any_number_of_times() {
    let mut gate = Gate::new().await;
    let (many, most) = (70_000, Count::MAX.value());
    let a = entry("a", "A", many, &[(many, "REO", 5)]);
    let b = entry("b", "B", most, &[(most, "REO", 5)]);
    assert_eq!(gate.take(&shared(&[a, b])).await.notes, Vec::<String>::new());
    assert_eq!(item(&gate, "x.a").await.shared.winner.updates.value(), many);
    assert_eq!(item(&gate, "x.b").await.shared.winner.updates, Count::MAX);
    // Not where it would use up the numbers of what this gateway made.
    let ours = Issued::from([(id("x.c"), Count::new(most).ok())]);
    let text = shared(&[entry("c", "C", most, &[(most, "EVIL", 5), (1, "gate.example", 1)])]);
    let verdict = with(gate.later(1), &text, None, Some(&ours)).await;
    assert!(verdict.notes[0].contains("is not believed"), "{:?}", verdict.notes);
}

#[tokio::test]
async fn a_leap_of_updates_is_not_taken_in() {
    let mut gate = Gate::new().await;
    gate.shares(&[first("a", "A")]).await;
    let most = Count::MAX.value();
    let leap = shared(&[entry("a", "leap", most, &[(most, "REO", 5)])]);
    let verdict = gate.later(1).take(&leap).await;
    assert_eq!(kinds(&verdict), []);
    assert!(verdict.notes[0].contains("2147483647 times"), "{:?}", verdict.notes);
    assert_eq!(gate.titles().await, ["A"]);
    // A leap within a conflict is one as well.
    let inner = format!(
        "<sx:conflicts><entry><sx:sync id=\"x.a\" updates=\"{most}\"><sx:history sequence=\"2\" \
         by=\"GPM\"/></sx:sync><id>urn:a</id><title>lost</title></entry></sx:conflicts>"
    );
    let said = shared(&[entry("a", "won", 2, &[(2, "JEO", 9)]).holding(&inner)]);
    // And a sequence that uses up the numbers of an endpoint would freeze all that it writes later.
    let forged = [(2, "EVIL", 3), (most, "REO", 2), (1, "REO", 1)];
    for said in [said, shared(&[entry("a", "forged", 2, &forged)])] {
        let verdict = gate.take(&said).await;
        assert_eq!((kinds(&verdict), verdict.notes.len()), (vec![], 1));
    }
    let says = entry("a", "REO says", 2, &[(2, "REO", 10), (1, "REO", 1)]);
    assert_eq!(gate.shares(&[says]).await, [Updated]);
    assert_eq!(gate.titles().await, ["REO says"]);
}

/// Sections 4.1.1 and 4.1.2: the complete feed first, `until` kept, and the complete feed again where
/// `since` is later.
#[tokio::test]
async fn the_complete_feed_is_read_when_it_must_be() {
    let mut gate = Gate::new().await;
    let a = first("a", "A").markup();
    let partial = document(&sharing("s1", "s5"), std::slice::from_ref(&a));
    assert!(gate.needs_complete(&partial).await);
    let all = document(&bounds("s0", "s4"), &[first("b", "B").markup(), a.clone()]);
    assert_eq!(gate.finds(&partial, Some(&all)).await, [Created, Created]);
    // The lesser of both (READINGS 1, row 28).
    assert_eq!(gate.until().await, "s4");
    // What changed of late is listed; beside it the reader view shows the last that changed before.
    assert_eq!(gate.titles().await, ["A", "B"]);

    let next = document(&sharing("s4", "s7"), &[entry("a", "A2", 2, &[(2, "REO", 2)]).markup()]);
    assert!(!gate.needs_complete(&next).await, "a subscriber with until == since is fine (row 27)");
    gate.finds(&next, None).await;
    assert_eq!(gate.until().await, "s7");

    let late = document(&sharing("s8", "s9"), std::slice::from_ref(&a));
    assert!(gate.needs_complete(&late).await);
    // Where it cannot be had it is asked for again.
    gate.finds(&late, None).await;
    assert_eq!(gate.until().await, "s7");
    assert!(gate.needs_complete(&late).await);
    let gone = entry("b", "B", 2, &[(2, "REO", 5), (1, "REO", 1)]).deleted().markup();
    let all = document(&sharing("s0", "s9"), &[gone, a]);
    assert_eq!(gate.finds(&late, Some(&all)).await, [Deleted]);
    assert_eq!(gate.until().await, "s9");
    assert!(!gate.needs_complete(&late).await);
}

/// A feed without `since` does not tell what it left out.
#[tokio::test]
async fn without_since_the_complete_feed_tells_what_is_missing() {
    let mut gate = Gate::new().await;
    let entries = [first("a", "A").markup(), first("b", "B").markup()];
    let (both, one) = (document(RELATED, &entries), document(RELATED, &entries[..1]));
    let complete = document("", &entries);
    gate.finds(&both, Some(&complete)).await;
    assert!(!gate.needs_complete(&both).await);
    assert!(gate.needs_complete(&one).await);
    assert_eq!(gate.finds(&one, Some(&complete)).await, [Retired]);
    assert!(!gate.needs_complete(&one).await);
}

/// Who shares both ways through the other's reader view learns what the other deleted of what was made
/// here: the view does not list it, and the complete feed has its tombstone.
#[tokio::test]
async fn a_reader_view_leads_to_what_the_other_deleted() {
    let mut gate = Gate::new().await;
    gate.options.sharing.local = true;
    let (a, b) = (first("a", "A").markup(), first("b", "B").markup());
    let both = document(RELATED, &[a.clone(), b]);
    gate.finds(&both, Some(&both)).await;
    let mut known = gate.snapshot().await;
    for item in &mut known.known {
        item.origin = Origin::Local;
    }
    let asks = |text: &str| {
        let document = parse::document(text, None, &Limits::default()).unwrap();
        record::needs_complete(Some(&known), &document)
    };
    assert!(!asks(&both));
    let one = document(RELATED, std::slice::from_ref(&a));
    assert!(asks(&one), "what was made here and is not listed");
    assert!(asks(&with_deletions(&both, ["urn:b"])), "what is said to be deleted");
    let gone = entry("b", "B", 2, &[(2, "JEO", 5), (1, "REO", 1)]).deleted().markup();
    assert_eq!(gate.finds(&one, Some(&document("", &[a, gone]))).await, [Deleted]);
    assert_eq!(gate.titles().await, ["A"]);
}

#[tokio::test]
async fn sharing_is_not_republished() {
    let mut gate = Gate::new().await;
    gate.finds(&document(&sharing("s1", "s5"), &[first("a", "A").markup()]), None).await;
    let view = gate.store.view(&gate.feed, Select::All).await.unwrap().unwrap();
    assert!(!view.skeleton.text.contains("sharing"), "{}", view.skeleton.text);
    assert!(!view.items[0].shared.winner.data.xml.contains("sync"));
}
