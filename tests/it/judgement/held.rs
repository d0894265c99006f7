//! What is seen only while a document is held, and what of it comes at once.

use crate::support::{Gate, Post, SITE, atom, days, kinds, post};
use tidegate_core::model::{EventKind::*, HeldEntry};

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
    assert!(gate.later(1).take(&other(20..26)).await.held.is_some());
    assert_eq!(gate.kept().await.len(), 6);
    assert_eq!(kinds(&gate.later(1).posts(&days(1..=6)).await), []);
    // Where it stays and becomes the feed, what went meanwhile is its own.
    assert!(gate.later(1).take(&other(20..26)).await.held.is_some());
    for _ in 0..3 {
        gate.later(3).take(&other(22..28)).await;
    }
    let known = gate.snapshot().await.known;
    assert_eq!(known.iter().filter(|k| k.title.starts_with("Elsewhere")).count(), 8, "{known:?}");
    assert_eq!(gate.reader().await.len(), 6);
}

#[tokio::test]
async fn what_is_kept_is_bounded() {
    for (number, length) in [(HeldEntry::ENTRIES_LIMIT + 50, 1), (100, 20_000)] {
        let mut gate = Gate::new().await;
        gate.posts(&days(1..=8)).await;
        // A mass change, so that the document is held, with new posts that wait for the end of the hold.
        let told_anew = |p: Post| Post { text: format!("A new template. {}", p.text), ..p };
        let mut posts: Vec<Post> = days(1..=8).into_iter().map(told_anew).collect();
        posts.extend((0..number).map(|n| Post {
            id: format!("urn:flood:{n}"),
            link: format!("http://publisher.example/flood/{n}"),
            title: post(1).title,
            text: format!("Number {n}. ").repeat(length),
            ..post(9)
        }));
        assert!(gate.later(1).posts(&posts).await.held.is_some());
        let kept = gate.snapshot().await.kept;
        assert!(kept.len() <= HeldEntry::ENTRIES_LIMIT && kept.len() < number, "{}", kept.len());
        assert!(kept.iter().map(HeldEntry::size).sum::<usize>() <= HeldEntry::BYTES_LIMIT);
        assert!(kept.len() > 1, "{}", kept.len());
    }
}

#[tokio::test]
async fn what_is_wrong_in_one_way_after_the_other_is_held_for_a_day_at_most() {
    let mut gate = Gate::new().await;
    let all = days(1..=12);
    gate.posts(&all).await;
    let (shrunken, empty) = (all[..2].to_vec(), Vec::new());
    let mut held = 0;
    for hour in 0..48 {
        let wrong = if hour % 2 == 0 { &shrunken } else { &empty };
        if gate.later(1).posts(wrong).await.held.is_none() {
            break;
        }
        held += 1;
    }
    assert!((23..=26).contains(&held), "{held}");
}

#[tokio::test]
async fn a_mangled_entry_of_a_document_that_was_held_is_not_made_an_item() {
    let mut gate = Gate::new().await;
    gate.posts(&days(4..=11)).await;
    gate.later(24).posts(&days(5..=12)).await;
    assert!(gate.later(24).posts(&[]).await.held.is_some());
    // A new post, in a document in which the tags around its id are broken.
    let broken =
        atom(SITE, &days(5..=13)).replacen("<id>http://publisher.example/2026", "<i>http", 1);
    let verdict = gate.later(1).take(&broken).await;
    assert!(verdict.held.is_some(), "{verdict:?}");
    assert_eq!(kinds(&gate.later(1).posts(&days(5..=12)).await), []);
    assert_eq!(kinds(&gate.posts(&days(6..=13)).await), [Created, Retired]);
}
