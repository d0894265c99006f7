//! Publishers that share and mean ill, or have bad luck: what readers have stays, and nobody speaks
//! in another's name.

use crate::support;
use crate::support::prelude::*;
use crate::support::sharing as publisher;

use publisher::{Shared, *};
use tidegate_core::model::EventKind::*;
use tidegate_judge::record::{self, AggregateSource, Credit, Issued, Verdict};

fn posts(numbers: std::ops::Range<u32>) -> Vec<String> {
    let post = |n: u32| {
        let sync = sync(&format!("x.{n}"), 1, &[(1, "REO", 1)], "");
        format!(
            "<entry>{sync}<id>urn:{n}</id><title>Story {n}</title>\
             <updated>2026-01-01T00:00:00Z</updated><content>Story number {n}</content></entry>"
        )
    };
    numbers.map(post).collect()
}

/// One version with other bytes in the complete feed than in the partial one: one version, and the
/// newest bytes; so too when both have newer ones.
#[tokio::test]
async fn a_partial_and_a_complete_feed_may_say_it_differently() {
    let mut gate = Gate::new().await;
    for (until, short, long) in [("s5", "A", "A in full"), ("s9", "A again", "A again in full")] {
        let since = format!("{until}-since");
        let partial = document(&sharing(&since, until), &[first("a", short).markup()]);
        let all = document(&bounds("s0", "s5"), &[first("a", long).markup()]);
        gate.finds(&partial, Some(&all)).await;
        assert_eq!(gate.titles().await, [short]);
    }
    assert_eq!(gate.snapshot().await.known.len(), 1);
}

/// Found by the fuzz target `document`: posts without an id are known by their title.
#[tokio::test]
async fn a_plain_post_by_the_name_of_a_shared_one_is_created_once() {
    let mut gate = Gate::new().await;
    let post = |sync: &str| format!("<entry>{sync}<title>Taxi</title><content>A</content></entry>");
    let posts = [post(&sync("x.1", 1, &[(1, "REO", 1)], "")), post("")];
    for (poll, expected) in [("1", vec![Created, Created]), ("2", vec![]), ("3", vec![])] {
        let verdict = gate.later(1).take(&document(&format!("<!--{poll}-->"), &posts)).await;
        assert_eq!(kinds(&verdict), expected, "{poll}");
    }
    // Where the shared one alone stays, it takes the place of the plain one.
    let verdict = gate.later(1).take(&document("", &posts[..1])).await;
    assert!(!kinds(&verdict).contains(&Created));
}

#[tokio::test]
async fn what_was_redacted_does_not_come_back_with_the_complete_feed() {
    let mut gate = Gate::new().await;
    gate.take(&document("", &[plain("a", "A secret"), plain("b", "B")])).await;
    gate.redact("A secret").await;
    let entries = [first("a", "A secret").markup(), first("b", "B").markup()];
    let partial = document(&sharing("s1", "s5"), &entries[1..]);
    gate.finds(&partial, Some(&document("", &entries))).await;
    let all = gate.items(Select::All).await;
    assert!(all.iter().all(|item| !item.shared.winner.data.xml.contains("secret")));
}

/// An entry of the item x.b, with a version of it in conflict whose entry is another item's.
fn in_conflict(updates: u32, id: &str, link: &str) -> String {
    let inner = format!(
        "<sx:conflicts><entry>{}<id>{id}</id><title>A secret</title><content>A secret</content>\
         {link}</entry><entry>{}<id>urn:b</id><title>Mere opinion</title></entry></sx:conflicts>",
        sync("x.b", updates, &[(updates, "GPM", 0)], ""),
        sync("x.b", updates, &[(updates, "JEO", 0)], "")
    );
    entry("b", "B", updates, &[(updates, "REO", updates)]).holding(&inner).markup()
}

#[tokio::test]
async fn what_was_redacted_does_not_come_back_in_a_conflict_of_another_item() {
    const PAGE: &str = "http://x.example/a";
    let secret = |link: &str| {
        let a = first("a", "A secret").markup();
        a.replace("</entry>", &format!("{link}</entry>"))
    };
    let link = format!("<link href=\"{PAGE}\"/>");
    let everywhere = async |gate: &Gate| format!("{:?}", gate.items(Select::All).await);
    for (other_id, link) in [("urn:a", ""), ("urn:another", link.as_str())] {
        // It stands there already.
        let mut gate = Gate::new().await;
        let b = in_conflict(2, other_id, link);
        gate.take(&document("", &[secret(link), b])).await;
        assert_eq!(sides(&gate, "x.b").await, ["B", "A secret", "Mere opinion"]);
        gate.redact_item(&id("x.a")).await;
        assert!(!everywhere(&gate).await.contains("secret"), "{other_id}");
        assert_eq!(sides(&gate, "x.b").await, ["B", "Mere opinion"]);
        // It is said again, by a new version and with a new item.
        gate.later(1);
        let c = first("c", "C").markup();
        gate.take(&document("", &[secret(link), in_conflict(3, other_id, link), c])).await;
        assert!(!everywhere(&gate).await.contains("secret"), "{other_id}");
        assert_eq!(sides(&gate, "x.b").await, ["B", "Mere opinion"]);
        assert_eq!(item(&gate, "x.b").await.shared.winner.updates.value(), 3);
    }
}

/// A parked address and an accident take no shared item away, as they take no plain one.
#[tokio::test]
async fn another_feed_and_an_empty_one_are_held() {
    for text in [
        document("", &[]),
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>Buy this domain</title>\
         <id>urn:parked</id><updated>2026-01-01T00:00:00Z</updated><entry><id>urn:ad</id>\
         <title>Cheap pills</title><updated>2026-01-01T00:00:00Z</updated></entry></feed>"
            .to_owned(),
    ] {
        let mut gate = Gate::new().await;
        gate.take(&document("", &posts(0..20))).await;
        let held = gate.later(1).take(&text).await.held;
        assert!(held.is_some());
        assert_eq!(gate.reader().await.len(), 20);
        // It is over with the first document that shares again.
        let verdict = gate.later(1).take(&document("", &posts(0..21))).await;
        assert!(verdict.held.is_none() && kinds(&verdict).len() == 1, "{verdict:?}");
        assert_eq!(gate.store_state().await.hold, None);
        assert_eq!(gate.reader().await.len(), 21);
    }
}

/// A document that lists changes says nothing by what it leaves out.
#[tokio::test]
async fn a_quiet_month_blanks_no_reader_view() {
    let mut gate = Gate::new().await;
    let all = document(&sharing("s1", "s9"), &posts(0..20));
    gate.finds(&all, Some(&all)).await;
    assert_eq!(gate.reader().await.len(), 20);
    let quiet = document(&sharing("s9", "s9"), &[]);
    assert_eq!(gate.later(24 * 31).finds(&quiet, None).await, []);
    assert_eq!(gate.reader().await.len(), 20);
    // With new ones the oldest leave, a hundred stay.
    let many = document(&sharing("s9", "t1"), &posts(20..115));
    let found = gate.finds(&many, None).await;
    assert_eq!(gate.reader().await.len(), 100);
    assert_eq!(found.iter().filter(|kind| **kind == Retired).count(), 15);
}

/// Nor does it say anything of the plain entries that it leaves out.
#[tokio::test]
async fn plain_entries_beside_changes_are_not_missing() {
    let mut gate = Gate::new().await;
    let a = first("a", "A").markup();
    let all = [plain("p", "P"), a.clone(), plain("q", "Q"), plain("r", "R")];
    gate.finds(&document(&sharing("s1", "s5"), &all), Some(&document("", &all))).await;
    let some = document(&sharing("s5", "s6"), &[plain("p", "P"), a, plain("r", "R")]);
    gate.finds(&some, None).await;
    gate.rests(20).await;
    let mut shown = gate.titles().await;
    shown.sort();
    assert_eq!(shown, ["A", "P", "Q", "R"]);
}

/// An id of ours that we never minted, and a name of ours that we never signed, cost the item its
/// sync: readers have it, as a plain one.
#[tokio::test]
async fn what_is_not_believed_is_plain() {
    let mut gate = Gate::new().await;
    let sync = sync("gate.example.abc", 1, &[(1, "EVIL", 1)], "");
    let minted = Shared { sync, ..first("a", "A") };
    let signed = entry("b", "B", 1, &[(1, "gate.example", 1)]);
    let text = shared(&[minted, signed]);
    let nobody = Issued::from([(id("x.b"), None)]);
    let verdict = with(&mut gate, &text, None, Some(&nobody)).await;
    assert_eq!(verdict.notes.len(), 2, "{:?}", verdict.notes);
    assert_eq!(gate.titles().await, ["A", "B"]);
    let known = gate.snapshot().await.known;
    assert!(known.iter().all(|known| known.origin == Origin::Observed));
    assert!(known.iter().all(|known| known.id.as_str() != "gate.example.abc"));
    assert_eq!(kinds(&with(gate.later(1), &text, None, Some(&nobody)).await), []);
}

/// An aggregate looks at all its sources; `sources`: each with the feeds that it shares with.
async fn gather(aggregate: &mut Gate, sources: &[(&str, &Gate, &[&str])]) -> Verdict {
    let all: Vec<FeedName> = sources.iter().map(|(feed, _, _)| name(feed)).collect();
    let mut offered = Vec::new();
    for (feed, (_, gate, shares)) in all.iter().zip(sources) {
        let current = gate.items(Select::Current).await;
        let current: Vec<SyncId> = current.into_iter().map(|i| i.shared.winner.id).collect();
        let [id, title, address] = [(); 3].map(|()| feed.to_string());
        let base = "http://x.example/".to_owned();
        let format = tidegate_core::model::Format::Atom10;
        let source = AggregateSource {
            credit: Credit { id, title, address, base, page: None, authors: Vec::new() },
            items: gate.items(Select::All).await,
            may_change: shares.iter().map(|feed| name(feed)).collect(),
            ..AggregateSource::unchanged(feed.clone(), current, format)
        };
        offered.push(source.with_ledger(&gate.snapshot().await.known));
    }
    let snapshot = aggregate.store.snapshot(&aggregate.feed).await.unwrap();
    let observation = aggregate.observation(snapshot.as_ref());
    let (verdict, _) = record::gather(&observation, &all, &offered);
    aggregate.commit(&verdict).await;
    verdict
}

async fn three() -> (Gate, Gate, Gate) {
    (Gate::new().await, Gate::new().await, Gate::new().await)
}

#[tokio::test]
async fn two_sources_that_share_an_item_are_one_item() {
    for other in ["A", "A, as the other writes it"] {
        let (mut a, mut b, mut both) = three().await;
        a.take(&shared(&[first("a", "A")])).await;
        b.take(&shared(&[first("a", other)])).await;
        gather(&mut both, &[("a", &a, &["b"]), ("b", &b, &["a"])]).await;
        assert_eq!(both.titles().await, ["A"]);
        let verdict = gather(&mut both, &[("a", &a, &["b"]), ("b", &b, &["a"])]).await;
        assert!(verdict.change.is_none(), "{:?}", verdict.change);
    }
}

/// A source that goes, or takes another name, leaves its items to those that have them.
#[tokio::test]
async fn an_item_belongs_to_a_source_that_is_left() {
    let (mut a, mut b, mut both) = three().await;
    a.take(&shared(&[first("a", "A")])).await;
    b.take(&shared(&[first("a", "A")])).await;
    gather(&mut both, &[("a", &a, &[]), ("b", &b, &[])]).await;
    both.later(1);
    gather(&mut both, &[("b", &b, &[])]).await;
    assert_eq!(both.titles().await, ["A"]);
    let verdict = gather(&mut both, &[("b", &b, &[])]).await;
    assert!(verdict.change.is_none(), "{:?}", verdict.change);
    both.later(2);
    b.later(1).shares(&[entry("a", "A2", 2, &[(2, "REO", 2), (1, "REO", 1)])]).await;
    gather(&mut both, &[("b", &b, &[])]).await;
    assert_eq!(both.titles().await, ["A2"]);
}

#[tokio::test]
async fn what_another_source_shows_stays_and_what_none_shows_is_retired_once() {
    let (mut a, mut b, mut both) = three().await;
    let posts = ["a", "b", "c"].map(|id| first(id, id));
    a.take(&shared(&posts)).await;
    b.take(&shared(&posts[..1])).await;
    gather(&mut both, &[("a", &a, &[]), ("b", &b, &[])]).await;
    both.later(1);
    a.shares(&posts[2..]).await;
    // What is shown by none is retired, once: every item is looked at again after a start.
    let verdict = gather(&mut both, &[("a", &a, &[]), ("b", &b, &[])]).await;
    assert_eq!(kinds(&verdict), [Retired]);
    let mut shown = both.titles().await;
    shown.sort();
    assert_eq!(shown, ["a", "c"]);
    both.later(1);
    let verdict = gather(&mut both, &[("a", &a, &[]), ("b", &b, &[])]).await;
    assert!(verdict.change.is_none(), "at rest it writes nothing: {:?}", verdict.change);
}

#[tokio::test]
async fn redaction_goes_before_what_another_source_says() {
    let (mut a, mut b, mut both) = three().await;
    let first = shared(&[first("a", "A secret")]);
    a.take(&first).await;
    b.take(&first).await;
    gather(&mut both, &[("a", &a, &["b"]), ("b", &b, &["a"])]).await;
    both.later(1);
    a.later(1).redact_item(&id("x.a")).await;
    b.shares(&[entry("a", "Another secret", 2, &[(2, "REO", 2), (1, "REO", 1)])]).await;
    for _ in 0..2 {
        gather(&mut both, &[("a", &a, &["b"]), ("b", &b, &["a"])]).await;
        assert_eq!(both.reader().await.len(), 0);
        let kept = format!("{:?}", both.store.view(&both.feed, Select::All).await.unwrap());
        assert!(!kept.contains("secret"), "{kept}");
    }
}

/// Who makes an item owns its id, though another claimed it before.
#[tokio::test]
async fn nobody_takes_the_ids_of_another_feed() {
    let (mut news, mut evil, mut both) = three().await;
    news.take(&document("", &[plain("a", "The truth")])).await;
    let true_id = news.snapshot().await.known[0].id.clone();
    let sync = sync(true_id.as_str(), 5, &[(5, "EVIL", 1)], "");
    evil.feed = name("evil");
    let lies = shared(&[Shared { sync, ..first("a", "Lies") }]);
    with(&mut evil, &lies, None, None).await;
    assert!(evil.snapshot().await.known.iter().all(|known| known.id != true_id));
    gather(&mut both, &[("evil", &evil, &[]), ("news", &news, &[])]).await;
    assert!(both.titles().await.contains(&"The truth".to_owned()));
}

/// A store that was brought back from a copy does not know what it made since. It comes back from those
/// who share it, as far as it can be its own.
#[tokio::test]
async fn our_own_updates_that_a_restore_lost_are_taken_back() {
    let mut gate = Gate::new().await;
    gate.take(&shared(&[first("a", "A")])).await;
    let copied = gate.now;
    gate.later(1);
    gate.restore().await;
    let ours = |updates: u32, when: tidegate_core::model::Time| {
        let mut a = entry("a", "ours", updates, &[(1, "REO", 1)]);
        let own =
            format!("<sx:history sequence=\"{updates}\" when=\"{when}\" by=\"gate.example\"/>");
        a.sync = a.sync.replacen("<sx:history", &format!("{own}<sx:history"), 1);
        shared(&[a])
    };
    let nobody = Issued::from([(id("x.a"), None)]);
    let seconds = |n| std::time::Duration::from_secs(n);
    for forged in [
        ours(2, copied.minus(seconds(1))),
        ours(2, gate.now.plus(seconds(1))),
        ours(3602, copied.plus(seconds(60))),
    ] {
        let verdict = with(&mut gate, &forged, None, Some(&nobody)).await;
        assert!(verdict.notes[0].contains("which never made it"), "{:?}", verdict.notes);
        assert_eq!(item(&gate, "x.a").await.shared.winner.updates.value(), 1);
        gate.later(0);
    }
    // Nothing is known of it elsewhere either; so it is asked first.
    let lost = ours(3, copied.plus(seconds(60)));
    assert_eq!(with(&mut gate, &lost, None, None).await.asks, [id("x.a")]);
    let verdict = with(&mut gate, &lost, None, Some(&nobody)).await;
    assert_eq!(verdict.notes, Vec::<String>::new());
    assert_eq!(sequences(&item(&gate, "x.a").await)[0], "3 gate.example");
}

/// What this gateway makes itself after a restore is taken in by those who know what was lost.
#[tokio::test]
async fn what_a_restore_lost_is_counted() {
    let mut gate = Gate::new().await;
    let mut posts = support::days(1..=5);
    gate.posts(&posts).await;
    gate.later(24);
    gate.restore().await;
    posts[0].text = "Another story altogether".to_owned();
    posts.insert(0, support::post(6));
    posts.insert(0, Post { day: 500, ..support::post(7) });
    gate.later(1).posts(&posts).await;
    let updates = |known: tidegate_core::model::LedgerEntry| {
        assert_eq!(known.history.topmost().sequence, known.updates);
        known.updates.value()
    };
    let lost = 3 * tidegate_core::model::VERSIONS_PER_DAY;
    assert_eq!(updates(gate.known(&posts[2].id).await), 1 + lost + 1);
    assert_eq!(updates(gate.known(&posts[1].id).await), lost + 1, "it may have been there");
    assert_eq!(updates(gate.known(&posts[0].id).await), 1, "it was published since");
    assert_eq!(updates(gate.known(&posts[3].id).await), 1, "nothing changed");
    posts[2].text = "A third story".to_owned();
    gate.later(1).posts(&posts).await;
    assert_eq!(updates(gate.known(&posts[2].id).await), 1 + lost + 2, "once is enough");
}
