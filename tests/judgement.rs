//! What the gateway makes of what publishers do, scenario by scenario.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::string_slice)]

#[path = "judgement/probe.rs"]
mod probe;
mod support;

use support::{Gate, Post, SITE, atom, kinds, post};
use tidegate::judge;
use tidegate::model::{Decision, Deletions, EventKind::*, Kept};
use tidegate::store::Select;

fn days(range: std::ops::RangeInclusive<u32>) -> Vec<Post> {
    range.rev().map(post).collect()
}

#[tokio::test]
async fn a_scroll_retires_and_never_deletes() {
    let mut gate = Gate::new().await;
    assert_eq!(kinds(&gate.posts(&days(1..=5)).await), [Created; 5]);
    gate.later(1);
    let verdict = gate.posts(&days(2..=6)).await;
    assert_eq!(kinds(&verdict), [Created, Retired]);
    assert_eq!(gate.items(Select::All).await.len(), 6);
    gate.later(24 * 9);
    assert_eq!(kinds(&gate.same().await), []);
}

#[tokio::test]
async fn a_returned_item_makes_no_version() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=5)).await;
    gate.posts(&days(2..=6)).await;
    let verdict = gate.posts(&days(1..=6)).await;
    assert_eq!(kinds(&verdict), [Returned]);
    assert_eq!(verdict.change.as_ref().and_then(|c| c.tick), None);
}

#[tokio::test]
async fn a_deletion_in_the_middle_waits_a_day_and_comes_out_on_a_quiet_feed() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=8)).await;
    gate.later(1);
    let mut without = days(1..=8);
    without.remove(3);
    assert_eq!(kinds(&gate.posts(&without).await), []);
    gate.later(12);
    assert_eq!(kinds(&gate.same().await), []);
    gate.later(12);
    let verdict = gate.same().await;
    assert_eq!(kinds(&verdict), [Deleted]);
    let event = &verdict.events()[0];
    assert!(event.seen_gone.is_some() && event.tick.is_some());
    let items = gate.items(Select::All).await;
    assert_eq!(items.iter().filter(|i| i.shared.winner.deleted).count(), 1);
    assert!(gate.reader().await.iter().all(|(id, _)| *id != post(5).id));
}

#[tokio::test]
async fn an_accident_that_is_mended_leaves_no_trace() {
    let mut gate = Gate::new().await;
    let all = days(1..=8);
    gate.posts(&all).await;
    let before = gate.store_state().await;
    let mut without = all.clone();
    without.remove(2);
    gate.later(1);
    gate.posts(&without).await;
    gate.later(2);
    assert_eq!(kinds(&gate.posts(&all).await), []);
    assert_eq!(gate.store_state().await.tick, before.tick);
}

#[tokio::test]
async fn a_deletion_with_backfill_in_a_full_window() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=8)).await;
    gate.later(1);
    gate.posts(&days(3..=10)).await;
    gate.later(1);
    let mut next = days(2..=10);
    next.retain(|p| p.day != 6);
    assert_eq!(kinds(&gate.posts(&next).await), [Returned]);
    gate.later(13);
    gate.same().await;
    gate.later(13);
    assert_eq!(kinds(&gate.same().await), [Deleted]);
}

#[tokio::test]
async fn an_eager_feed_deletes_at_once_and_undeletes() {
    let mut gate = Gate::new().await;
    gate.options.deletions = Deletions::Eager;
    let all = days(1..=8);
    gate.posts(&all).await;
    let mut without = all.clone();
    let gone = without.remove(3);
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&without).await), [Deleted]);
    gate.later(1);
    let verdict = gate.posts(&all).await;
    assert_eq!(kinds(&verdict), [Undeleted]);
    let item = gate.items(Select::All).await;
    let item = item.iter().find(|i| i.published_id == gone.id).unwrap();
    assert_eq!(item.shared.winner.updates.value(), 3);
    assert!(!item.shared.winner.deleted);
}

#[tokio::test]
async fn deletions_off_retires() {
    let mut gate = Gate::new().await;
    gate.options.deletions = Deletions::Off;
    gate.posts(&days(1..=8)).await;
    let mut without = days(1..=8);
    without.remove(3);
    assert_eq!(kinds(&gate.posts(&without).await), [Retired]);
}

#[tokio::test]
async fn a_merged_feed_with_a_window_per_source_deletes_nothing() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=10)).await;
    for day in 11..16 {
        gate.later(24);
        let mut next = days(1..=day);
        // The new item pushes out one of its own source from the middle.
        next.retain(|p| p.day > 10 || p.day + 10 > day + 5 || p.day < 3);
        let verdict = gate.posts(&next).await;
        assert!(!kinds(&verdict).contains(&Deleted), "{:?}", verdict.events());
    }
    gate.later(100);
    assert!(!kinds(&gate.same().await).contains(&Deleted));
}

#[tokio::test]
async fn http_to_https_is_no_news_to_readers() {
    let mut gate = Gate::new().await;
    let old = days(1..=8);
    gate.posts(&old).await;
    let before = gate.reader().await;
    let moved: Vec<Post> = old
        .iter()
        .map(|p| Post {
            id: p.id.replace("http://", "https://"),
            link: p.link.replace("http://", "https://"),
            ..p.clone()
        })
        .collect();
    gate.later(1);
    let held = gate.posts(&moved).await;
    assert!(held.held.is_some(), "a migration is held until it is confirmed");
    assert_eq!(kinds(&held), []);
    for _ in 0..4 {
        gate.later(1);
        gate.posts(&moved).await;
    }
    let events = gate.store_events().await;
    assert_eq!(events.iter().filter(|e| **e == Rekeyed).count(), 8);
    assert_eq!(events.iter().filter(|e| **e == Created).count(), 8);
    assert!(!events.contains(&Deleted) && !events.contains(&Updated));
    assert_eq!(gate.reader().await, before, "the published ids stay");
}

#[tokio::test]
async fn a_retitled_post_with_a_title_made_id_is_one_item() {
    let mut gate = Gate::new().await;
    let mut posts = days(1..=6);
    gate.posts(&posts).await;
    let id = posts[0].id.clone();
    posts[0].title = "The story of day 6, corrected".to_owned();
    posts[0].id = "http://publisher.example/2026/the-story-of-day-6-corrected".to_owned();
    gate.later(1);
    let verdict = gate.posts(&posts).await;
    assert_eq!(kinds(&verdict), [Rekeyed, Updated]);
    assert_eq!(gate.reader().await[0].0, id);
    assert_eq!(verdict.events()[0].old_native_id.as_deref(), Some(id.as_str()));
}

#[tokio::test]
async fn an_empty_document_that_heals_leaves_no_trace() {
    let mut gate = Gate::new().await;
    let all = days(1..=6);
    gate.posts(&all).await;
    let before = gate.reader().await;
    gate.later(1);
    assert!(gate.posts(&[]).await.held.is_some());
    assert_eq!(gate.reader().await, before);
    gate.later(5);
    let healed = gate.posts(&all).await;
    assert_eq!((kinds(&healed), healed.held), (vec![], None));
}

#[tokio::test]
async fn an_empty_document_that_stays_retires() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=6)).await;
    for _ in 0..30 {
        gate.later(1);
        gate.posts(&[]).await;
    }
    let events = gate.store_events().await;
    assert_eq!(events.iter().filter(|e| **e == Retired).count(), 6);
    assert!(!events.contains(&Deleted));
}

#[tokio::test]
async fn another_sites_feed_is_a_new_base_line() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=6)).await;
    let other: Vec<Post> = (20..26)
        .map(|day| Post {
            id: format!("tag:elsewhere.example,2026:{day}"),
            title: format!("Elsewhere {day}"),
            link: format!("http://elsewhere.example/{day}"),
            text: "Nothing of it was ever in the other feed, and it is long enough to be a text."
                .into(),
            ..post(day)
        })
        .collect();
    let document = atom("http://elsewhere.example/", &other);
    gate.later(1);
    assert!(gate.take(&document).await.held.is_some());
    for _ in 0..10 {
        gate.later(1);
        gate.take(&document).await;
    }
    let events = gate.store_events().await;
    assert_eq!(events.iter().filter(|e| **e == Retired).count(), 6);
    assert!(!events.contains(&Deleted));
    assert_eq!(gate.reader().await.len(), 6);
}

#[tokio::test]
async fn a_busy_feed_that_turns_over_its_window_is_never_held() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=10)).await;
    gate.later(1);
    let verdict = gate.posts(&days(21..=30)).await;
    assert_eq!(verdict.held, None);
    assert_eq!(kinds(&verdict).iter().filter(|k| **k == Created).count(), 10);
    assert_eq!(kinds(&verdict).iter().filter(|k| **k == Retired).count(), 10);
}

#[tokio::test]
async fn counters_and_stamps_make_no_version_but_are_served() {
    let mut gate = Gate::new().await;
    let mut posts = days(1..=4);
    let counted = |n: u32| {
        format!(
            "<slash:comments xmlns:slash=\"http://purl.org/rss/1.0/modules/slash/\">{n}</slash:comments>"
        )
    };
    posts[0].extra = counted(1);
    gate.posts(&posts).await;
    posts[0].extra = counted(2);
    gate.later(1);
    let verdict = gate.posts(&posts).await;
    assert_eq!(kinds(&verdict), []);
    let items = gate.items(Select::Current).await;
    assert!(items[0].shared.winner.data.xml.contains(">2</slash:comments>"));
    assert_eq!(items[0].shared.winner.updates.value(), 1);
}

#[tokio::test]
async fn a_mass_change_is_held_and_then_comes_out_as_one_batch() {
    let mut gate = Gate::new().await;
    let mut posts = days(1..=8);
    gate.posts(&posts).await;
    for p in &mut posts {
        p.text = format!("A new template. {}", p.text);
    }
    gate.later(1);
    assert!(gate.posts(&posts).await.held.is_some());
    gate.later(1);
    gate.posts(&posts).await;
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&posts).await), [Updated; 8]);
}

#[tokio::test]
async fn half_of_the_items_or_fewer_are_never_held() {
    let mut gate = Gate::new().await;
    let mut posts = days(1..=8);
    gate.posts(&posts).await;
    for p in posts.iter_mut().take(4) {
        p.text.push_str(" More.");
    }
    assert_eq!(kinds(&gate.posts(&posts).await), [Updated; 4]);
}

#[tokio::test]
async fn a_cut_document_adds_and_takes_nothing_away() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=6)).await;
    let whole = atom(SITE, &days(1..=7));
    let cut = &whole[..whole.len() * 2 / 5];
    gate.later(1);
    let verdict = gate.take(cut).await;
    assert_eq!(kinds(&verdict), [Created]);
    assert_eq!(gate.reader().await.len(), 7);
}

#[tokio::test]
async fn entries_that_share_an_id_are_told_apart_whichever_comes_first() {
    let mut gate = Gate::new().await;
    let twin = |day: u32| Post { id: "same".into(), ..post(day) };
    gate.posts(&[twin(2), twin(1)]).await;
    gate.later(1);
    let verdict = gate.posts(&[twin(3), twin(2), twin(1)]).await;
    assert_eq!(kinds(&verdict), [Created]);
    assert_eq!(verdict.events()[0].title, "The story of day 3");
}

/// A mass change, so that the document is held.
fn told_anew(range: std::ops::RangeInclusive<u32>) -> Vec<Post> {
    let mut posts = days(range);
    for p in posts.iter_mut().filter(|p| p.day <= 8) {
        p.text = format!("A new template. {}", p.text);
    }
    posts
}

#[tokio::test]
async fn posts_seen_only_while_held_come_out_with_the_release() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=8)).await;
    gate.later(1);
    assert!(gate.posts(&told_anew(2..=9)).await.held.is_some());
    assert_eq!(gate.kept().await, ["The story of day 9"]);
    let written = gate.store_state().await.tick;
    // 9 comes and goes while the feed is held; a day later 10 is all there is of it.
    let mut next = told_anew(2..=10);
    next.retain(|p| p.day != 9);
    gate.later(1);
    let verdict = gate.posts(&next).await;
    assert!(verdict.held.is_some() && verdict.events().is_empty());
    assert_eq!(gate.store_state().await.tick, written);
    assert_eq!(gate.kept().await, ["The story of day 9", "The story of day 10"]);
    gate.later(1);
    let verdict = gate.posts(&next).await;
    assert_eq!(verdict.held, None);
    let of = |kind| -> Vec<&str> {
        let events = verdict.events().iter().filter(|e| e.kind == kind);
        events.map(|e| e.title.as_str()).collect()
    };
    assert_eq!(of(Created), ["The story of day 10", "The story of day 9"]);
    assert_eq!(of(Retired), ["The story of day 9", "The story of day 1"]);
    assert_eq!(of(Updated).len(), 7);
    assert!(of(Deleted).is_empty());
    let nine = verdict.events().iter().find(|e| e.kind == Created && e.title.ends_with('9'));
    assert!(nine.unwrap().reason.contains("while the feed was held"), "{nine:?}");
    // Its bytes are there, it is no part of the reader view, and nothing is kept any more.
    let all = gate.items(Select::All).await;
    assert_eq!(all.len(), 10);
    let nine = all.iter().find(|i| i.published_id == post(9).id).unwrap();
    assert!(nine.shared.winner.data.xml.contains("What happened on day 9"));
    assert!(gate.reader().await.iter().all(|(id, _)| *id != post(9).id));
    assert!(gate.kept().await.is_empty());
    // It is no tombstone later either, and comes back as itself.
    gate.later(72);
    assert_eq!(kinds(&gate.same().await), []);
    assert_eq!(kinds(&gate.posts(&told_anew(2..=10)).await), [Returned]);
}

#[tokio::test]
async fn posts_seen_while_held_come_out_where_the_document_heals() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=8)).await;
    gate.later(1);
    // Shrunken, with two new ones; then whole again, without one of them.
    let shrunken = [post(10), post(9), post(8)];
    assert!(gate.posts(&shrunken).await.held.is_some());
    gate.later(1);
    let mut healed = days(2..=10);
    healed.retain(|p| p.day != 9);
    let verdict = gate.posts(&healed).await;
    assert_eq!(verdict.held, None);
    assert_eq!(kinds(&verdict), [Created, Created, Retired, Retired]);
    assert_eq!(gate.items(Select::All).await.len(), 10);
}

#[tokio::test]
async fn another_feeds_posts_do_not_come_out_where_the_document_heals() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=6)).await;
    let other = |days: std::ops::Range<u32>| -> String {
        let posts = days.map(|day| Post {
            id: format!("tag:elsewhere.example,2026:{day}"),
            title: format!("Elsewhere {day}"),
            link: format!("http://elsewhere.example/{day}"),
            text: "Nothing of it was ever in the other feed.".into(),
            ..post(day)
        });
        atom("http://elsewhere.example/", &posts.collect::<Vec<_>>())
    };
    gate.later(1);
    assert!(gate.take(&other(20..26)).await.held.is_some());
    assert_eq!(gate.kept().await.len(), 6);
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&days(1..=6)).await), []);
    // Where it stays and becomes the feed, what went meanwhile is its own.
    gate.later(1);
    assert!(gate.take(&other(20..26)).await.held.is_some());
    for _ in 0..3 {
        gate.later(3);
        gate.take(&other(22..28)).await;
    }
    let items = gate.items(Select::All).await;
    let titles: Vec<_> = items.iter().map(|i| i.shared.winner.data.card.title.as_str()).collect();
    assert_eq!(titles.iter().filter(|t| t.starts_with("Elsewhere")).count(), 8, "{titles:?}");
    assert_eq!(gate.reader().await.len(), 6);
}

#[tokio::test]
async fn a_dropped_document_takes_what_was_kept_along() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=8)).await;
    gate.later(1);
    let shrunken = [post(10), post(9), post(8)];
    gate.posts(&shrunken).await;
    assert_eq!(gate.kept().await.len(), 2);
    gate.decide(Decision::Drop).await;
    assert!(gate.kept().await.is_empty());
    // The same document is not looked at again.
    let again = gate.posts(&shrunken).await;
    assert!(again.held.unwrap().contains("dropped by the operator"));
    assert!(gate.kept().await.is_empty());
    assert_eq!(kinds(&gate.posts(&days(1..=8)).await), []);
    assert_eq!(gate.items(Select::All).await.len(), 8);
}

#[tokio::test]
async fn an_operators_release_brings_out_what_was_kept() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=8)).await;
    gate.later(1);
    gate.posts(&[post(10), post(9), post(8)]).await;
    gate.decide(Decision::Release).await;
    let verdict = gate.posts(&[post(10), post(8), post(7)]).await;
    assert_eq!(verdict.held, None);
    assert_eq!(kinds(&verdict).iter().filter(|k| **k == Created).count(), 2);
    assert_eq!(gate.items(Select::All).await.len(), 10);
}

#[tokio::test]
async fn a_held_re_keying_brings_out_no_duplicates() {
    let mut gate = Gate::new().await;
    let old = days(1..=8);
    gate.posts(&old).await;
    let moved = |posts: Vec<Post>| -> Vec<Post> {
        let to =
            |text: &str| text.replace("http://publisher.example/2026", "https://new.example/a");
        posts.into_iter().map(|p| Post { id: to(&p.id), link: to(&p.link), ..p }).collect()
    };
    // 9 is seen under its new name only, then under its old one, then the feed heals.
    gate.later(1);
    assert!(gate.posts(&moved(days(2..=9))).await.held.is_some());
    gate.later(1);
    let healed = days(2..=9);
    let verdict = gate.posts(&healed).await;
    assert_eq!(verdict.held, None);
    assert_eq!(kinds(&verdict), [Created, Retired]);
    assert_eq!(gate.items(Select::All).await.len(), 9);
    // And where the migration is meant, nothing comes out twice either.
    gate.later(1);
    assert!(gate.posts(&moved(days(3..=10))).await.held.is_some());
    for _ in 0..3 {
        gate.later(1);
        gate.posts(&moved(days(4..=11))).await;
    }
    assert_eq!(gate.items(Select::All).await.len(), 11);
    let events = gate.store_events().await;
    assert_eq!(events.iter().filter(|e| **e == Created).count(), 11);
    assert!(!events.contains(&Deleted), "{events:?}");
}

#[tokio::test]
async fn what_is_kept_is_bounded() {
    for (number, length) in [(Kept::ENTRIES_LIMIT + 50, 1), (100, 20_000)] {
        let mut gate = Gate::new().await;
        gate.posts(&days(1..=8)).await;
        gate.later(1);
        let mut posts = told_anew(1..=8);
        posts.extend((0..number).map(|n| Post {
            id: format!("urn:flood:{n}"),
            link: format!("http://publisher.example/flood/{n}"),
            title: format!("Flood {n}"),
            text: format!("Number {n}. ").repeat(length),
            ..post(9)
        }));
        assert!(gate.posts(&posts).await.held.is_some());
        let kept = gate.snapshot().await.kept;
        assert!(kept.len() <= Kept::ENTRIES_LIMIT && kept.len() < number, "{}", kept.len());
        assert!(kept.iter().map(Kept::size).sum::<usize>() <= Kept::BYTES_LIMIT);
        assert!(kept.len() > 1, "{}", kept.len());
    }
}

#[tokio::test]
async fn a_complete_feed_confirms_that_what_was_seen_while_held_is_gone() {
    let mut gate = Gate::new().await;
    gate.options.complete = true;
    gate.posts(&days(1..=8)).await;
    gate.later(1);
    gate.posts(&[post(10), post(9), post(8)]).await;
    gate.later(1);
    let mut healed = days(1..=10);
    healed.retain(|p| p.day != 9);
    assert_eq!(kinds(&gate.posts(&healed).await), [Created, Created]);
    gate.later(7);
    assert_eq!(kinds(&gate.same().await), []);
    gate.later(7);
    assert_eq!(kinds(&gate.same().await), [Deleted]);
}

#[tokio::test]
async fn a_new_address_of_another_feed_is_held() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=6)).await;
    gate.url = "http://publisher.example/comments".to_owned();
    gate.later(1);
    // Its items are newer, and of the same site: at the old address they would be a busy feed's.
    let comments = |range: std::ops::Range<u32>| -> Vec<Post> {
        let comment = |day| Post {
            id: format!("http://publisher.example/c/{day}"),
            title: format!("Re {day}"),
            link: format!("http://publisher.example/c/{day}"),
            text: format!("I do not agree with number {day}."),
            ..post(day)
        };
        range.rev().map(comment).collect()
    };
    let verdict = gate.posts(&comments(20..26)).await;
    assert!(verdict.held.as_deref().is_some_and(|h| h.starts_with("other-feed")), "{verdict:?}");
    // A part of it does not go around that, and the right address ends it without a trace.
    let whole = atom(SITE, &comments(20..26));
    assert!(gate.take(&whole[..whole.len() / 2]).await.held.is_some());
    gate.url = "http://publisher.example/feed".to_owned();
    assert_eq!(kinds(&gate.posts(&days(1..=6)).await), []);
    assert_eq!(gate.reader().await.len(), 6);
}

#[tokio::test]
async fn a_part_of_a_document_from_a_new_address_is_held_as_well() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=6)).await;
    gate.url = "http://publisher.example/elsewhere".to_owned();
    let other: Vec<Post> = (20..26)
        .map(|d| Post { id: format!("urn:{d}"), link: format!("urn:{d}"), ..post(d) })
        .collect();
    let whole = atom(SITE, &other);
    let verdict = gate.take(&whole[..whole.len() / 2]).await;
    assert!(verdict.held.is_some() && verdict.events().is_empty(), "{verdict:?}");
}

#[tokio::test]
async fn a_plain_move_of_the_address_waits_for_nothing() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=8)).await;
    gate.url = "https://www.publisher.example/feed".to_owned();
    let to = |text: &str| text.replace("http://", "https://www.");
    let moved: Vec<Post> =
        days(2..=9).into_iter().map(|p| Post { id: to(&p.id), link: to(&p.link), ..p }).collect();
    let verdict = gate.posts(&moved).await;
    assert_eq!(verdict.held, None);
    assert_eq!(kinds(&verdict).iter().filter(|k| **k == Rekeyed).count(), 7);
    assert_eq!(kinds(&verdict).iter().filter(|k| **k == Created).count(), 1);
    assert!(!kinds(&verdict).contains(&Deleted) && !kinds(&verdict).contains(&Updated));
}

#[tokio::test]
async fn what_a_new_address_does_not_list_is_not_deleted() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=12)).await;
    gate.later(1);
    gate.url = "http://publisher.example/other-list".to_owned();
    let mut fewer = days(1..=12);
    fewer.retain(|p| p.day != 5 && p.day != 7);
    gate.posts(&fewer).await;
    gate.later(30);
    let verdict = gate.same().await;
    assert_eq!(kinds(&verdict), [Retired, Retired]);
    assert!(verdict.events()[0].reason.contains("new address"), "{:?}", verdict.events());
    // Once it is the feed's address, a hole is a hole.
    let mut without = fewer.clone();
    without.retain(|p| p.day != 9);
    gate.posts(&without).await;
    gate.later(12);
    gate.same().await;
    gate.later(13);
    assert_eq!(kinds(&gate.same().await), [Deleted]);
}

#[tokio::test]
async fn a_hold_of_another_address_says_nothing_of_the_new_one() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=8)).await;
    gate.later(1);
    gate.posts(&[]).await;
    gate.later(23);
    assert!(gate.posts(&[]).await.held.is_some());
    gate.url = "http://publisher.example/feed-2".to_owned();
    for _ in 0..6 {
        gate.later(3);
        assert!(gate.posts(&[]).await.held.is_some(), "a day from the first look at it");
    }
    gate.later(9);
    assert_eq!(kinds(&gate.posts(&[]).await), [Retired; 8]);
}

#[tokio::test]
async fn a_retirement_says_what_objected_to_a_deletion() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=12)).await;
    gate.later(1);
    // Every other one went at once: a scraper that missed a page, not so many deletions.
    let mut without = days(1..=12);
    without.retain(|p| p.day % 3 != 1);
    assert_eq!(kinds(&gate.posts(&without).await), [Retired]);
    let snapshot = gate.snapshot().await;
    let (pending, all) = judge::pending(&snapshot, &gate.options, 0, 2);
    assert_eq!((pending.len(), all), (2, 3));
    let words = pending[0].words();
    assert!(words.contains("went from there at once") && words.contains("retired"), "{words}");
    gate.later(2);
    let verdict = gate.same().await;
    assert_eq!(kinds(&verdict), [Retired; 3]);
    assert!(verdict.events()[0].reason.contains("went from there at once"));
}
