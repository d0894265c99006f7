//! Upstreams that share their items: merged by section 3.3 of SSE 1.0, never compared.

mod by_091;
mod discard;
use crate::support;
use crate::support::sharing as publisher;

use publisher::*;

use std::collections::HashMap;
use support::{Gate, kinds, with_deletions};
use tidegate_core::model::EventKind::*;
use tidegate_core::model::{Count, Origin};
use tidegate_format::parse::{self, Limits};
use tidegate_judge::record::{self, Issued};
use tidegate_store::Select;

/// Section 3.3, step 1, and its further steps where nothing is in conflict: ids and histories stay
/// the publisher's.
#[tokio::test]
async fn ids_and_histories_stay_the_publishers() {
    let mut gate = Gate::new().await;
    let verdict = gate
        .take(&shared(&[
            entry("a", "A", 3, &[(3, "JEO", 3), (2, "REO", 2), (1, "REO", 1)]),
            first("b", "B"),
        ]))
        .await;
    assert_eq!(kinds(&verdict), [Created, Created]);
    let a = item(&gate, "x.a").await;
    assert_eq!(a.shared.winner.updates.value(), 3);
    let owned = |list: &[(u32, &str)]| {
        list.iter().map(|(n, by)| (*n, (*by).to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(sequences(&a), owned(&[(3, "JEO"), (2, "REO"), (1, "REO")]));
    assert_eq!(a.published_id, "urn:a");
    assert_eq!(titles(&gate.reader().await), ["A", "B"]);
    gate.later(1);
    // Several updates at once.
    let verdict = gate
        .take(&shared(&[
            entry("b", "B6", 6, &[(6, "JEO", 9), (1, "REO", 1)]),
            entry("a", "A", 3, &[(3, "JEO", 3), (2, "REO", 2), (1, "REO", 1)]),
        ]))
        .await;
    assert_eq!(kinds(&verdict), [Updated]);
    assert!(verdict.events()[0].reason.contains("version 6 by JEO"), "{:?}", verdict.events());
    assert_eq!(titles(&gate.reader().await), ["B6", "A"]);
    assert_eq!(sequences(&item(&gate, "x.b").await), owned(&[(6, "JEO"), (1, "REO")]));
}

/// Other bytes of the version that is known are served, and are no version of their own.
#[tokio::test]
async fn newer_bytes_of_a_version_are_served_without_one() {
    let mut gate = Gate::new().await;
    gate.take(&shared(&[first("a", "A")])).await;
    let verdict = gate.later(1).take(&shared(&[first("a", "A with a counter")])).await;
    assert_eq!(kinds(&verdict), []);
    let change = verdict.change.unwrap();
    assert!(change.versions.is_empty() && change.latest.len() == 1 && change.tick.is_none());
    assert_eq!(titles(&gate.reader().await), ["A with a counter"]);
}

#[tokio::test]
async fn tombstones_are_honoured_and_taken_back() {
    let mut gate = Gate::new().await;
    let a = first("a", "A");
    gate.take(&shared(&[a.clone(), first("b", "B")])).await;
    gate.later(1);
    let gone = sync("x.b", 2, " deleted=\"true\"", &[(2, "JEO", 5), (1, "REO", 1)], "");
    let b = Shared { sync: gone, ..entry("b", "B", 2, &[]) };
    assert_eq!(kinds(&gate.take(&shared(&[b, a.clone()])).await), [Deleted]);
    assert_eq!(titles(&gate.reader().await), ["A"]);
    let b = item(&gate, "x.b").await;
    assert!(b.shared.winner.deleted && b.shared.winner.history.len() == 2);
    gate.later(1);
    let back = entry("b", "B again", 3, &[(3, "JEO", 9), (2, "JEO", 5), (1, "REO", 1)]);
    assert_eq!(kinds(&gate.take(&shared(&[back, a])).await), [Undeleted]);
    assert_eq!(titles(&gate.reader().await), ["B again", "A"]);
}

/// Section 3.3, steps 7 to 11: two that changed one version are in conflict, and both are kept.
#[tokio::test]
async fn conflicts_are_kept_with_what_lost() {
    let mut gate = Gate::new().await;
    gate.take(&shared(&[entry("a", "ours", 2, &[(2, "GPM", 40), (1, "REO", 1)])])).await;
    gate.later(1);
    let verdict =
        gate.take(&shared(&[entry("a", "theirs", 2, &[(2, "JEO", 50), (1, "REO", 1)])])).await;
    assert_eq!(kinds(&verdict), [Updated]);
    let a = item(&gate, "x.a").await;
    assert_eq!(a.shared.winner.data.card.title, "theirs");
    assert_eq!(a.shared.conflicts.len(), 1);
    assert_eq!(a.shared.conflicts[0].data.card.title, "ours");
    // The other way round it is the loser that comes in.
    gate.later(1);
    let verdict =
        gate.take(&shared(&[entry("a", "late", 2, &[(2, "ABC", 10), (1, "REO", 1)])])).await;
    assert_eq!(kinds(&verdict), [Updated]);
    let a = item(&gate, "x.a").await;
    let losers: Vec<_> = a.shared.conflicts.iter().map(|c| c.data.card.title.as_str()).collect();
    assert_eq!(
        (a.shared.winner.data.card.title.as_str(), losers),
        ("theirs", vec!["ours", "late"])
    );
    // An update that knows of all of them ends the conflict.
    gate.later(1);
    let history = [(3, "REO", 55), (2, "JEO", 50), (2, "GPM", 40), (2, "ABC", 10), (1, "REO", 1)];
    let verdict = gate.take(&shared(&[entry("a", "resolved", 3, &history)])).await;
    assert_eq!(kinds(&verdict), [Updated]);
    let a = item(&gate, "x.a").await;
    assert_eq!(a.shared.conflicts, []);
    assert_eq!(a.shared.winner.data.card.title, "resolved");
}

#[tokio::test]
async fn conflicts_come_with_their_entry() {
    let mut gate = Gate::new().await;
    let inner = "<sx:conflicts><entry><sx:sync id=\"x.a\" updates=\"2\"><sx:history sequence=\"2\" \
                 when=\"2026-01-01T00:05:00Z\" by=\"GPM\"/></sx:sync><id>urn:a</id><title>lost</title>\
                 </entry></sx:conflicts>";
    let said = sync("x.a", 2, "", &[(2, "JEO", 9)], inner);
    let a = Shared { sync: said, ..entry("a", "won", 2, &[]) };
    gate.take(&shared(&[a])).await;
    let a = item(&gate, "x.a").await;
    assert_eq!(a.shared.conflicts.len(), 1);
    assert_eq!(a.shared.conflicts[0].data.card.title, "lost");
    assert_eq!(a.shared.conflicts[0].data.xml.matches("sx:").count(), 0);
    assert_eq!(titles(&gate.reader().await), ["won"]);
}

/// Section 2.4: `noconflicts` is the creator's, and nothing is kept that lost.
#[tokio::test]
async fn where_the_creator_wants_no_conflicts_none_are_kept() {
    let mut gate = Gate::new().await;
    let with = |text: &str, by: &str, minute| Shared {
        sync: sync("x.a", 2, " noconflicts=\"true\"", &[(2, by, minute), (1, "REO", 1)], ""),
        ..entry("a", text, 2, &[])
    };
    gate.take(&shared(&[with("ours", "GPM", 10)])).await;
    gate.later(1).take(&shared(&[with("theirs", "JEO", 20)])).await;
    let a = item(&gate, "x.a").await;
    assert_eq!((a.shared.winner.data.card.title.as_str(), a.shared.conflicts.len()), ("theirs", 0));
    assert_eq!(a.shared.winner.noconflicts, Some(true));
}

/// Items with and without `sx:sync` in one feed: each in its own way.
#[tokio::test]
async fn plain_entries_beside_shared_ones_are_compared() {
    let mut gate = Gate::new().await;
    let a = first("a", "A").markup();
    let both = |text: &str| document("", &[plain("p", text), a.clone(), plain("q", "Q")]);
    gate.take(&both("P")).await;
    assert_eq!(titles(&gate.reader().await), ["P", "A", "Q"]);
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
    for _ in 0..40 {
        gate.later(6);
        assert_eq!(kinds(&gate.same().await), []);
    }
    assert_eq!(kinds(&gate.later(1).take(&both("P, edited")).await), [Returned]);
    assert_eq!(titles(&gate.reader().await), ["P, edited", "A", "Q"]);
}

/// A publisher that begins to share: readers see the same items under the same ids.
#[tokio::test]
async fn a_publisher_that_begins_to_share_loses_no_reader() {
    let mut gate = Gate::new().await;
    gate.take(&document("", &[plain("a", "A"), plain("b", "B")])).await;
    let before = gate.reader().await;
    gate.later(1);
    let verdict = gate.take(&shared(&[first("a", "A"), first("b", "B")])).await;
    assert_eq!(gate.reader().await, before);
    let mut found = kinds(&verdict);
    found.sort();
    assert_eq!(found, [Created, Created, Deleted, Deleted]);
    let deleted = verdict.events().iter().find(|e| e.kind == Deleted).unwrap();
    assert!(deleted.reason.starts_with("its publisher shares it as x."), "{}", deleted.reason);
    for _ in 0..20 {
        gate.later(6);
        assert_eq!(kinds(&gate.same().await), []);
    }
}

/// A publisher that shares no more: the item goes on under its id, by this gateway's own updates.
#[tokio::test]
async fn a_publisher_that_shares_no_more_is_compared() {
    let mut gate = Gate::new().await;
    gate.take(&shared(&[entry("a", "A", 4, &[(4, "REO", 1)])])).await;
    let verdict = gate.later(1).take(&document("", &[plain("a", "A, edited")])).await;
    assert_eq!(kinds(&verdict), [Updated]);
    let a = item(&gate, "x.a").await;
    let expected = [(5, "gate.example".to_owned()), (4, "REO".to_owned())];
    assert_eq!(sequences(&a), expected);
    assert_eq!(titles(&gate.reader().await), ["A, edited"]);
}

/// A document that is cut on its way: the entries that are whole keep their ids.
#[tokio::test]
async fn what_ends_early_keeps_the_sync_of_its_whole_entries() {
    let mut gate = Gate::new().await;
    let [a, b] = ["a", "b"].map(|id| first(id, id));
    let whole = shared(&[a, b]);
    gate.take(whole.split_once("<id>urn:b").unwrap().0).await;
    let known = gate.snapshot().await.known;
    assert!(matches!(known.as_slice(), [a] if a.origin == Origin::Upstream), "{known:?}");
    assert_eq!(kinds(&gate.take(&whole).await), [Created]);
    assert_eq!(titles(&gate.reader().await), ["a", "b"]);
}

/// docs/sharing.md, Limits: a history in our own name that we never made is refused.
#[tokio::test]
async fn a_forged_history_in_our_own_name_is_refused() {
    let mut gate = Gate::new().await;
    gate.take(&shared(&[first("a", "A")])).await;
    gate.later(1);
    let forged = shared(&[entry("a", "forged", 5, &[(5, "gate.example", 50), (1, "REO", 1)])]);
    let verdict = with(&mut gate, &forged, None, None).await;
    assert_eq!(verdict.asks, [id("x.a")]);
    assert_eq!(titles(&gate.reader().await), ["A"]);
    let nobody = Issued::from([(id("x.a"), None)]);
    let verdict = with(&mut gate, &forged, None, Some(&nobody)).await;
    assert_eq!(verdict.asks, []);
    assert!(verdict.notes[0].contains("in the name of this gateway"), "{:?}", verdict.notes);
    assert_eq!(titles(&gate.reader().await), ["A"]);
    // Another feed of this gateway did make it.
    let elsewhere = Issued::from([(id("x.a"), Some(Count::new(5).unwrap()))]);
    let verdict = with(&mut gate, &forged, None, Some(&elsewhere)).await;
    assert_eq!(kinds(&verdict), [Updated]);
    // From now on this feed knows it as well.
    gate.later(1);
    let verdict = with(&mut gate, &forged, None, None).await;
    assert_eq!((verdict.asks, verdict.notes), (Vec::new(), Vec::new()));
}

/// Section 2.4: `updates` may be anything up to 2³¹−1, and what is seen first is known by nothing else.
#[tokio::test]
async fn an_item_that_is_new_may_have_been_updated_any_number_of_times() {
    let mut gate = Gate::new().await;
    let (many, most) = (70_000, Count::MAX.value());
    let verdict = gate
        .take(&shared(&[
            entry("a", "A", many, &[(many, "REO", 5)]),
            entry("b", "B", most, &[(most, "REO", 5)]),
        ]))
        .await;
    assert_eq!(verdict.notes, Vec::<String>::new());
    assert_eq!(item(&gate, "x.a").await.shared.winner.updates.value(), many);
    assert_eq!(item(&gate, "x.b").await.shared.winner.updates, Count::MAX);
    // Not where it would use up the numbers of what this gateway made.
    gate.later(1);
    let ours = Issued::from([(id("x.c"), Count::new(most).ok())]);
    let text = shared(&[entry("c", "C", most, &[(most, "EVIL", 5), (1, "gate.example", 1)])]);
    let verdict = with(&mut gate, &text, None, Some(&ours)).await;
    assert!(verdict.notes[0].contains("is not believed"), "{:?}", verdict.notes);
}

#[tokio::test]
async fn a_leap_of_updates_is_not_taken_in() {
    let mut gate = Gate::new().await;
    gate.take(&shared(&[first("a", "A")])).await;
    gate.later(1);
    let most = Count::MAX.value();
    let verdict = gate.take(&shared(&[entry("a", "leap", most, &[(most, "REO", 5)])])).await;
    assert_eq!(kinds(&verdict), []);
    assert!(verdict.notes[0].contains("2147483647 times"), "{:?}", verdict.notes);
    assert_eq!(titles(&gate.reader().await), ["A"]);
    // A leap within a conflict is one as well.
    let inner = format!(
        "<sx:conflicts><entry><sx:sync id=\"x.a\" updates=\"{most}\"><sx:history sequence=\"2\" \
         by=\"GPM\"/></sx:sync><id>urn:a</id><title>lost</title></entry></sx:conflicts>"
    );
    let said = sync("x.a", 2, "", &[(2, "JEO", 9)], &inner);
    let verdict = gate.take(&shared(&[Shared { sync: said, ..entry("a", "won", 2, &[]) }])).await;
    assert_eq!((kinds(&verdict), verdict.notes.len()), (vec![], 1));
}

/// Sections 4.1.1 and 4.1.2: the complete feed first, `until` kept, and the complete feed again where
/// `since` is later.
#[tokio::test]
async fn the_complete_feed_is_read_when_it_must_be() {
    let mut gate = Gate::new().await;
    let needs = async |gate: &Gate, text: &str| {
        let document = parse::document(text, None, &Limits::default()).unwrap();
        let snapshot = gate.store.snapshot(&gate.feed).await.unwrap();
        record::needs_complete(snapshot.as_ref(), &document)
    };
    let a = first("a", "A").markup();
    let b = first("b", "B").markup();
    let partial = document(&sharing("s1", "s5"), std::slice::from_ref(&a));
    assert!(needs(&gate, &partial).await);
    let all = document("<sx:sharing since=\"s0\" until=\"s4\"/>", &[b.clone(), a.clone()]);
    let verdict = with(&mut gate, &partial, Some(&all), None).await;
    assert_eq!(kinds(&verdict), [Created, Created]);
    // The lesser of both (READINGS 1, row 28).
    assert_eq!(gate.store_state().await.upstream_until.as_deref(), Some("s4"));
    // What changed of late is listed; beside it the reader view shows the last that changed before.
    assert_eq!(titles(&gate.reader().await), ["A", "B"]);

    gate.later(1);
    let next = document(&sharing("s4", "s7"), &[entry("a", "A2", 2, &[(2, "REO", 2)]).markup()]);
    assert!(!needs(&gate, &next).await, "a subscriber with until == since is fine (row 27)");
    with(&mut gate, &next, None, None).await;
    assert_eq!(gate.store_state().await.upstream_until.as_deref(), Some("s7"));

    gate.later(1);
    let late = document(&sharing("s8", "s9"), std::slice::from_ref(&a));
    assert!(needs(&gate, &late).await);
    // Where it cannot be had it is asked for again.
    with(&mut gate, &late, None, None).await;
    assert_eq!(gate.store_state().await.upstream_until.as_deref(), Some("s7"));
    assert!(needs(&gate, &late).await);
    let gone = sync("x.b", 2, " deleted=\"true\"", &[(2, "REO", 5), (1, "REO", 1)], "");
    let b = Shared { sync: gone, ..entry("b", "B", 2, &[]) }.markup();
    let verdict =
        with(&mut gate, &late, Some(&document(&sharing("s0", "s9"), &[b, a])), None).await;
    assert_eq!(kinds(&verdict), [Deleted]);
    assert_eq!(gate.store_state().await.upstream_until.as_deref(), Some("s9"));
    assert!(!needs(&gate, &late).await);
}

/// A feed without `since` does not tell what it left out.
#[tokio::test]
async fn without_since_the_complete_feed_tells_what_is_missing() {
    let mut gate = Gate::new().await;
    let related =
        "<sx:sharing><sx:related link=\"http://x.example/all\" type=\"complete\"/></sx:sharing>";
    let a = first("a", "A").markup();
    let b = first("b", "B").markup();
    let both = document(related, &[a.clone(), b.clone()]);
    with(&mut gate, &both, Some(&document("", &[a.clone(), b.clone()])), None).await;
    let asks = async |gate: &Gate, text: &str| {
        let document = parse::document(text, None, &Limits::default()).unwrap();
        let snapshot = gate.store.snapshot(&gate.feed).await.unwrap();
        record::needs_complete(snapshot.as_ref(), &document)
    };
    assert!(!asks(&gate, &both).await);
    let one = document(related, std::slice::from_ref(&a));
    assert!(asks(&gate, &one).await);
    gate.later(1);
    let verdict = with(&mut gate, &one, Some(&document("", &[a, b])), None).await;
    assert_eq!(kinds(&verdict), [Retired]);
    assert!(!asks(&gate, &one).await);
}

/// Who shares both ways through the other's reader view learns what the other deleted of what was made
/// here: the view does not list it, and the complete feed has its tombstone.
#[tokio::test]
async fn a_reader_view_leads_to_what_the_other_deleted() {
    let related =
        "<sx:sharing><sx:related link=\"http://x.example/all\" type=\"complete\"/></sx:sharing>";
    let mut gate = Gate::new().await;
    gate.options.sharing.local = true;
    let (a, b) = (first("a", "A"), first("b", "B"));
    let both = document(related, &[a.markup(), b.markup()]);
    with(&mut gate, &both, Some(&both), None).await;
    let mut known = gate.snapshot().await;
    for item in &mut known.known {
        item.origin = Origin::Local;
    }
    let asks = |text: &str| {
        let document = parse::document(text, None, &Limits::default()).unwrap();
        record::needs_complete(Some(&known), &document)
    };
    assert!(!asks(&both));
    let one = document(related, &[a.markup()]);
    assert!(asks(&one), "what was made here and is not listed");
    let said = with_deletions(&both, ["urn:b"]);
    assert!(asks(&said), "what is said to be deleted");
    gate.later(1);
    let gone = sync("x.b", 2, " deleted=\"true\"", &[(2, "JEO", 5), (1, "REO", 1)], "");
    let gone = Shared { sync: gone, ..b }.markup();
    let verdict = with(&mut gate, &one, Some(&document("", &[a.markup(), gone])), None).await;
    assert_eq!(kinds(&verdict), [Deleted]);
    assert_eq!(titles(&gate.reader().await), ["A"]);
}

#[tokio::test]
async fn sharing_is_not_republished() {
    let mut gate = Gate::new().await;
    let a = first("a", "A").markup();
    with(&mut gate, &document(&sharing("s1", "s5"), &[a]), None, None).await;
    let view = gate.store.view(&gate.feed, Select::All).await.unwrap().unwrap();
    assert!(!view.skeleton.text.contains("sharing"), "{}", view.skeleton.text);
    assert!(!view.items[0].shared.winner.data.xml.contains("sync"));
}
