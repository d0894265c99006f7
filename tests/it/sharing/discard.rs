//! A subscriber that is out of sync discards what its publisher's complete feed does not list any
//! more (SSE 1.0 section 4.1.2, step 2.a.ii; READINGS 1, row 28).

use super::publisher::*;
use crate::support::prelude::*;
use tidegate_core::model::EventKind::*;
use tidegate_judge::record::Verdict;
use tidegate_store::{Past, PastSelect};

const ALL: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const BUT_F: &[&str] = &["a", "b", "c", "d", "e"];

fn of(id: &'static str) -> String {
    first(id, id).markup()
}

fn complete(until: &str, ids: &[&'static str]) -> String {
    document(&bounds("s0", until), &ids.iter().map(|id| of(id)).collect::<Vec<_>>())
}

/// A gateway that knows all six up to `s5`.
async fn following() -> Gate {
    let mut gate = Gate::new().await;
    let partial = document(&sharing("s1", "s5"), &ALL.map(of));
    gate.finds(&partial, Some(&complete("s5", &ALL))).await;
    assert_eq!(gate.until().await, "s5");
    gate
}

/// The publisher's window begins after what the gateway knows; its complete feed lists these.
async fn missed(gate: &mut Gate, until: &str, ids: &[&'static str]) -> Verdict {
    let partial = document(&sharing("s7", "s9"), &[]);
    with(gate.later(1), &partial, Some(&complete(until, ids)), None).await
}

async fn ids(gate: &Gate, select: Select) -> Vec<String> {
    let items = gate.items(select).await;
    items.iter().map(|item| item.shared.winner.id.to_string()).collect()
}

async fn standing(gate: &Gate, id: &str) -> ItemStatus {
    gate.snapshot().await.known.iter().find(|k| k.id.as_str() == id).unwrap().standing.clone()
}

async fn is_discarded(gate: &Gate, id: &str) -> bool {
    matches!(standing(gate, id).await, ItemStatus::Discarded { .. })
}

#[tokio::test]
async fn what_the_complete_feed_does_not_list_leaves_all_views() {
    let mut gate = following().await;
    let before = gate.store_state().await;
    let verdict = missed(&mut gate, "s9", BUT_F).await;
    let then = gate.now;
    assert_eq!(kinds(&verdict), [Discarded]);
    assert_eq!(verdict.events()[0].id.as_str(), "x.f");
    assert!(verdict.events()[0].reason.contains("does not list it"));
    for select in [Select::Current, Select::All, Select::After(Tick::at(gate.now))] {
        assert!(!ids(&gate, select).await.contains(&"x.f".to_owned()), "{select:?}");
    }
    // A stub stays, and no tombstone is made.
    assert!(is_discarded(&gate, "x.f").await);
    let after = gate.store_state().await;
    assert_eq!((after.living, after.tombstones), (5, 0));
    assert_eq!(gate.until().await, "s9");
    // Every subscriber of ours is out of sync now, and learns that something changed.
    assert!(after.tick > before.tick);
    assert_eq!((after.window_start, after.complete_start), (after.tick, after.tick));
    let change = verdict.change.unwrap();
    assert!(change.tick.is_some() && change.versions.is_empty());
    // What was shown before was shown, and is not shown since.
    for (at, is_there) in [(before.updated_at, true), (then, false)] {
        let past = gate.store.past(&gate.feed, PastSelect::All, at).await.unwrap().unwrap();
        let Past::Then(view) = past else { panic!("{past:?}") };
        let has = view.items.iter().any(|item| item.shared.winner.id.as_str() == "x.f");
        assert_eq!(has, is_there, "{at}");
    }
    // Nothing more comes of it.
    assert_eq!(kinds(&missed(&mut gate, "s9", BUT_F).await), []);
    assert_eq!(gate.store_state().await.window_start, after.window_start);
}

/// A complete feed that is a part, or older than what is known, or says nothing of how far it goes.
#[tokio::test]
async fn a_complete_feed_that_was_not_read_whole_costs_nothing() {
    let whole = complete("s9", BUT_F);
    let cut = format!("{}<entry><title>A ", whole.rsplit_once("<entry>").unwrap().0);
    let bare = whole.replace(&bounds("s0", "s9"), "");
    let partial = document(&sharing("s7", "s9"), &[]);
    for complete in [complete("s4", BUT_F), cut, bare] {
        let mut gate = following().await;
        assert_eq!(gate.finds(&partial, Some(&complete)).await, [], "{complete}");
        assert!(!is_discarded(&gate, "x.f").await);
    }
    // Nor does one that is in sync, or at its first look.
    let mut gate = following().await;
    gate.finds(&document(&sharing("s5", "s9"), &[]), Some(&whole)).await;
    assert!(!is_discarded(&gate, "x.f").await);
}

/// What the document itself lists, and what is there with sync markup that is broken, is not gone.
#[tokio::test]
async fn what_is_listed_anywhere_stays() {
    let mut gate = following().await;
    let mut listed = ["a", "b", "c", "d", "e"].map(of);
    listed[4] = listed[4].replace("updates=\"1\"", "updates=\"0\"");
    let partial = document(&sharing("s7", "s9"), &[of("f")]);
    gate.finds(&partial, Some(&document(&bounds("s0", "s9"), &listed))).await;
    for id in ["x.e", "x.f"] {
        assert!(!is_discarded(&gate, id).await, "{id}");
    }
}

/// "Not created, or most recently updated, by the subscribing endpoint" (section 4.1.2).
#[tokio::test]
async fn what_was_made_here_stays() {
    let mut gate = Gate::new().await;
    let own = gate.store.endpoint().to_string();
    let first = entry("a", "a", 2, &[(2, "REO", 2), (1, &own, 1)]).markup();
    let last = entry("b", "b", 2, &[(2, &own, 2), (1, "REO", 1)]).markup();
    let all = [first, last, of("c"), of("d"), of("e"), of("f")];
    let issued = ["x.a", "x.b"].map(|name| (id(name), tidegate_core::model::Count::new(2).ok()));
    let issued = issued.into_iter().collect();
    let whole = document(&bounds("s0", "s5"), &all);
    with(&mut gate, &document(&sharing("s1", "s5"), &[]), Some(&whole), Some(&issued)).await;
    assert_eq!(ids(&gate, Select::All).await.len(), 6);
    // Of another first source, and made in this gateway.
    let state = gate.store_state().await;
    let mut change = Change::of_state(gate.feed.clone(), state.revision, gate.now, state);
    for (name, origin) in [("x.c", Origin::Local), ("x.d", Origin::Feed(gate.feed.clone()))] {
        let snapshot = gate.snapshot().await;
        let mut known = snapshot.known.into_iter().find(|k| k.id.as_str() == name).unwrap();
        known.origin = origin;
        change.known.push(known);
    }
    gate.store.commit(change).await.unwrap();
    let verdict = missed(&mut gate, "s9", &["e", "f"]).await;
    assert!(!kinds(&verdict).contains(&Discarded), "{:?}", verdict.events());
    assert_eq!(verdict.held, None);
}

/// A complete feed that comes empty, or mostly so, is held first.
#[tokio::test]
async fn one_that_lists_little_is_held_first() {
    for (listed, kind, hours) in [(&["a"][..], "shrunken", 6), (&[][..], "empty", 24)] {
        let mut gate = following().await;
        let verdict = missed(&mut gate, "s9", listed).await;
        let held = verdict.held.unwrap();
        assert!(held.starts_with(kind) && held.contains("the complete feed"), "{held}");
        assert_eq!(ids(&gate, Select::All).await.len(), 6);
        // It is read again at the next look, for the feed is known no further than before.
        assert_eq!(gate.until().await, "s5");
        let mut looks = 2;
        while missed(&mut gate, "s9", listed).await.held.is_some() {
            looks += 1;
            assert!(looks < 40);
        }
        assert!(looks > hours, "{looks}");
        assert_eq!(ids(&gate, Select::All).await.len(), listed.len());
        assert!(is_discarded(&gate, "x.f").await);
        assert!(gate.store_state().await.hold.is_none());
    }
    // One that lists everything again ends the hold, and nothing was lost.
    let mut gate = following().await;
    assert!(missed(&mut gate, "s9", &[]).await.held.is_some());
    assert!(missed(&mut gate, "s9", &ALL).await.held.is_none());
    assert_eq!(ids(&gate, Select::All).await.len(), 6);
    assert_eq!(gate.until().await, "s9");
    // The operator decides.
    let mut gate = following().await;
    missed(&mut gate, "s9", &["a"]).await;
    gate.decide(Decision::Release).await;
    assert_eq!(kinds(&missed(&mut gate, "s9", &["a"]).await), [Discarded; 5]);
}

/// What comes back is what its publisher says of it then, under the ids that it had.
#[tokio::test]
async fn what_was_discarded_comes_back_under_its_ids() {
    let mut gate = following().await;
    missed(&mut gate, "s9", BUT_F).await;
    let partial = document(&sharing("s8", "t1"), &[of("f")]);
    let verdict = with(gate.later(1), &partial, None, None).await;
    assert_eq!(kinds(&verdict), [Created]);
    assert!(verdict.events()[0].reason.contains("after it was discarded"));
    let f = item(&gate, "x.f").await;
    assert_eq!((f.published_id.as_str(), f.standing), ("urn:f", ItemStatus::Current));
    assert!(ids(&gate, Select::Current).await.contains(&"x.f".to_owned()));
    assert_eq!(gate.store_state().await.living, 6);
}

/// What another publisher said before is not this one's to take away.
#[tokio::test]
async fn another_address_discards_nothing_of_the_first_one() {
    let mut gate = following().await;
    gate.url = "http://other.example/".to_owned();
    for (since, until) in [("s7", "s9"), ("t7", "t9")] {
        let partial = document(&sharing(since, until), &[]);
        let all = complete(until, &["a", "b", "c", "d", "e", "g"]);
        gate.finds(&partial, Some(&all)).await;
        assert!(!is_discarded(&gate, "x.f").await, "{until}");
    }
    // What came from there is.
    let partial = document(&sharing("u7", "u9"), &[]);
    gate.finds(&partial, Some(&complete("u9", BUT_F))).await;
    assert!(is_discarded(&gate, "x.g").await && !is_discarded(&gate, "x.f").await);
}
