//! A subscriber that is out of sync discards what its publisher's complete feed does not list any
//! more (SSE 1.0 section 4.1.2, step 2.a.ii; READINGS 1, row 28).

use super::publisher::*;
use super::support::{Gate, kinds};
use tidegate_core::model::EventKind::*;
use tidegate_core::model::{ItemStatus, Origin, Tick};
use tidegate_format::parse::{self, Limits};
use tidegate_judge::record::{self, Verdict};
use tidegate_store::{Past, PastSelect, Select};

const ALL: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn of(id: &'static str) -> String {
    first(id, id).markup()
}

fn complete(until: &str, ids: &[&'static str]) -> String {
    let entries: Vec<String> = ids.iter().map(|id| of(id)).collect();
    document(&format!("<sx:sharing since=\"s0\" until=\"{until}\"/>"), &entries)
}

/// A gateway that knows all six up to `s5`.
async fn following() -> Gate {
    let mut gate = Gate::new().await;
    let partial = document(&sharing("s1", "s5"), &ALL.map(of));
    with(&mut gate, &partial, Some(&complete("s5", &ALL)), None).await;
    assert_eq!(gate.store_state().await.upstream_until.as_deref(), Some("s5"));
    gate.later(1);
    gate
}

/// The publisher's window begins after what the gateway knows; its complete feed lists these.
async fn missed(gate: &mut Gate, until: &str, ids: &[&'static str]) -> Verdict {
    let partial = document(&sharing("s7", "s9"), &[]);
    let verdict = with(gate, &partial, Some(&complete(until, ids)), None).await;
    gate.later(1);
    verdict
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
    let then = gate.now;
    let verdict = missed(&mut gate, "s9", &["a", "b", "c", "d", "e"]).await;
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
    assert_eq!(after.upstream_until.as_deref(), Some("s9"));
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
    assert_eq!(kinds(&missed(&mut gate, "s9", &["a", "b", "c", "d", "e"]).await), []);
    assert_eq!(gate.store_state().await.window_start, after.window_start);
}

/// A gateway that reads this one's sync view and complete feed discards it as well.
#[tokio::test]
async fn a_subscriber_of_ours_discards_it_too() {
    let mut gate = following().await;
    let until = gate.store_state().await.tick.unwrap().to_string();
    missed(&mut gate, "s9", &["a", "b", "c", "d", "e"]).await;
    let since = gate.store_state().await.window_start.unwrap().to_string();
    assert!(since > until, "{since} {until}");
    let mut next = Gate::new().await;
    let first = document(&sharing("0", &until), &ALL.map(of));
    with(&mut next, &first, Some(&complete(&until, &ALL)), None).await;
    next.later(1);
    let ours = document(&sharing(&since, &since), &[]);
    let document = parse::document(&ours, None, &Limits::default()).unwrap();
    let snapshot = next.snapshot().await;
    assert!(record::needs_complete(Some(&snapshot), &document));
    let listed = ["a", "b", "c", "d", "e"];
    let verdict = with(&mut next, &ours, Some(&complete(&since, &listed)), None).await;
    assert_eq!(kinds(&verdict), [Discarded]);
}

/// A complete feed that is a part, or older than what is known, or says nothing of how far it goes.
#[tokio::test]
async fn a_complete_feed_that_was_not_read_whole_costs_nothing() {
    let few = ["a", "b", "c", "d", "e"];
    let whole = complete("s9", &few);
    let cut = format!("{}<entry><title>A ", whole.rsplit_once("<entry>").unwrap().0);
    let bare = whole.replace("<sx:sharing since=\"s0\" until=\"s9\"/>", "");
    for complete in [complete("s4", &few), cut, bare] {
        let mut gate = following().await;
        let partial = document(&sharing("s7", "s9"), &[]);
        let verdict = with(&mut gate, &partial, Some(&complete), None).await;
        assert_eq!(kinds(&verdict), [], "{complete}");
        assert!(!is_discarded(&gate, "x.f").await);
    }
    // Nor does one that is in sync, or at its first look.
    let mut gate = following().await;
    let partial = document(&sharing("s5", "s9"), &[]);
    with(&mut gate, &partial, Some(&whole), None).await;
    assert!(!is_discarded(&gate, "x.f").await);
}

/// What the document itself lists, and what is there with sync markup that is broken, is not gone.
#[tokio::test]
async fn what_is_listed_anywhere_stays() {
    let mut gate = following().await;
    let broken = of("e").replace("updates=\"1\"", "updates=\"0\"");
    let mut listed: Vec<String> = ["a", "b", "c", "d"].into_iter().map(of).collect();
    listed.push(broken);
    let all = document("<sx:sharing since=\"s0\" until=\"s9\"/>", &listed);
    let partial = document(&sharing("s7", "s9"), &[of("f")]);
    with(&mut gate, &partial, Some(&all), None).await;
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
    let rest = ["c", "d", "e", "f"].map(of);
    let all = [vec![first, last], rest.to_vec()].concat();
    let issued = ["x.a", "x.b"].map(|name| (id(name), tidegate_core::model::Count::new(2).ok()));
    let issued = issued.into_iter().collect();
    let whole = document("<sx:sharing since=\"s0\" until=\"s5\"/>", &all);
    with(&mut gate, &document(&sharing("s1", "s5"), &[]), Some(&whole), Some(&issued)).await;
    assert_eq!(ids(&gate, Select::All).await.len(), 6);
    // Of another first source, and made in this gateway.
    let mut change = empty(&gate).await;
    for (name, origin) in [("x.c", Origin::Local), ("x.d", Origin::Feed(gate.feed.clone()))] {
        let snapshot = gate.snapshot().await;
        let mut known = snapshot.known.into_iter().find(|k| k.id.as_str() == name).unwrap();
        known.origin = origin;
        change.known.push(known);
    }
    gate.store.commit(change).await.unwrap();
    gate.later(1);
    let verdict = missed(&mut gate, "s9", &["e", "f"]).await;
    assert!(!kinds(&verdict).contains(&Discarded), "{:?}", verdict.events());
    assert_eq!(verdict.held, None);
}

async fn empty(gate: &Gate) -> tidegate_core::model::Change {
    let state = gate.store_state().await;
    tidegate_core::model::Change::of_state(gate.feed.clone(), state.revision, gate.now, state)
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
        assert_eq!(gate.store_state().await.upstream_until.as_deref(), Some("s5"));
        let mut looks = 1;
        loop {
            let verdict = missed(&mut gate, "s9", listed).await;
            looks += 1;
            assert!(looks < 40);
            if verdict.held.is_none() {
                break;
            }
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
    assert_eq!(gate.store_state().await.upstream_until.as_deref(), Some("s9"));
    // The operator decides.
    let mut gate = following().await;
    missed(&mut gate, "s9", &["a"]).await;
    gate.decide(tidegate_core::model::Decision::Release).await;
    assert_eq!(kinds(&missed(&mut gate, "s9", &["a"]).await), [Discarded; 5]);
}

/// What comes back is what its publisher says of it then, under the ids that it had.
#[tokio::test]
async fn what_was_discarded_comes_back_under_its_ids() {
    let mut gate = following().await;
    missed(&mut gate, "s9", &["a", "b", "c", "d", "e"]).await;
    let partial = document(&sharing("s8", "t1"), &[of("f")]);
    let verdict = with(&mut gate, &partial, None, None).await;
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
    for until in ["s9", "t9"] {
        let partial = document(&sharing(if until == "s9" { "s7" } else { "t7" }, until), &[]);
        let new = first("g", "g").markup();
        let listed = ["a", "b", "c", "d", "e"].map(of);
        let all = [listed.to_vec(), vec![new]].concat();
        let all = document(&format!("<sx:sharing since=\"s0\" until=\"{until}\"/>"), &all);
        with(&mut gate, &partial, Some(&all), None).await;
        gate.later(1);
        assert!(!is_discarded(&gate, "x.f").await, "{until}");
    }
    // What came from there is.
    let partial = document(&sharing("u7", "u9"), &[]);
    with(&mut gate, &partial, Some(&complete("u9", &["a", "b", "c", "d", "e"])), None).await;
    assert!(is_discarded(&gate, "x.g").await && !is_discarded(&gate, "x.f").await);
}
