//! What is seen only while a document is held, what of it comes at once, and the words for what is missing.

use crate::judgement::days;
use crate::support::{Gate, Post, atom, kinds, post};
use tidegate_core::model::{EventKind::*, HeldEntry};
use tidegate_judge as judge;
use tidegate_store::Select;

/// A post that waits for the end of a hold: its address is that of the first, which is missing.
fn doubtful(day: u32) -> Post {
    Post { link: post(1).link, ..post(day) }
}

/// A mass change, so that the document is held, with new posts that wait for the end of the hold.
fn told_anew(range: std::ops::RangeInclusive<u32>) -> Vec<Post> {
    let mut posts = days(range);
    for p in &mut posts {
        match p.day {
            ..=8 => p.text = format!("A new template. {}", p.text),
            day => *p = doubtful(day),
        }
    }
    posts
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
    for (number, length) in [(HeldEntry::ENTRIES_LIMIT + 50, 1), (100, 20_000)] {
        let mut gate = Gate::new().await;
        gate.posts(&days(1..=8)).await;
        gate.later(1);
        let mut posts = told_anew(1..=8);
        posts.extend((0..number).map(|n| Post {
            id: format!("urn:flood:{n}"),
            link: format!("http://publisher.example/flood/{n}"),
            title: post(1).title,
            text: format!("Number {n}. ").repeat(length),
            ..post(9)
        }));
        assert!(gate.posts(&posts).await.held.is_some());
        let kept = gate.snapshot().await.kept;
        assert!(kept.len() <= HeldEntry::ENTRIES_LIMIT && kept.len() < number, "{}", kept.len());
        assert!(kept.iter().map(HeldEntry::size).sum::<usize>() <= HeldEntry::BYTES_LIMIT);
        assert!(kept.len() > 1, "{}", kept.len());
    }
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
    let words = pending[0].describe();
    let said = "it went with 2 others at once";
    assert!(words.contains(said) && words.contains("retired"), "{words}");
    // What was seen and what objected is told in the end as well.
    gate.later(2);
    let verdict = gate.same().await;
    assert_eq!(kinds(&verdict), [Retired; 3]);
    assert!(verdict.events().iter().all(|e| e.reason.contains(said)), "{:?}", verdict.events());
}

#[tokio::test]
async fn what_is_wrong_in_one_way_after_the_other_is_held_for_a_day_at_most() {
    let mut gate = Gate::new().await;
    let all: Vec<Post> = (1..=12).rev().map(post).collect();
    gate.posts(&all).await;
    let (shrunken, empty) = (all[..2].to_vec(), Vec::new());
    let mut held = 0;
    for hour in 0..48 {
        gate.later(1);
        let wrong = if hour % 2 == 0 { &shrunken } else { &empty };
        if gate.posts(wrong).await.held.is_none() {
            break;
        }
        held += 1;
    }
    assert!((23..=26).contains(&held), "{held}");
}

/// The same posts under ids and addresses of another site.
fn moved(posts: &mut [Post]) {
    for p in posts {
        p.id = p.id.replace("http://publisher.example/2026", "https://new.example/a");
        p.link.clone_from(&p.id);
    }
}

#[tokio::test]
async fn the_unrecognised_rest_of_a_re_keying_is_no_news() {
    // Six of eight have other ids; one of them is told anew, so that nothing shows which it was.
    for told in [5, 8] {
        let mut gate = Gate::new().await;
        gate.posts(&days(1..=8)).await;
        gate.later(1);
        let mut posts = days(1..=9);
        moved(&mut posts[1..7]);
        let rest = posts.iter_mut().find(|p| p.day == told).unwrap();
        *rest = Post {
            title: "Quite another headline".to_owned(),
            text: "Nothing in this text was ever seen before, and it is as long as others.".into(),
            id: "https://new.example/b".to_owned(),
            link: "https://new.example/b".to_owned(),
            day: 40,
            ..rest.clone()
        };
        let verdict = gate.posts(&posts).await;
        assert!(verdict.held.as_ref().unwrap().starts_with("re-keyed"), "{:?}", verdict.held);
        let new: Vec<&str> = verdict.events().iter().map(|e| e.title.as_str()).collect();
        assert_eq!(new, ["The story of day 9"]);
    }
}

#[tokio::test]
async fn a_foreign_page_that_lists_one_old_item_adds_nothing() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=20)).await;
    gate.later(1);
    let foreign = |day: u32| Post {
        id: format!("tag:elsewhere.example,2026:{day}"),
        title: format!("Elsewhere {day}"),
        link: format!("http://elsewhere.example/{day}"),
        text: format!("Nothing of it was ever in the other feed, not even number {day} of them."),
        ..post(day)
    };
    let mut page: Vec<Post> = (30..36).rev().map(foreign).collect();
    page.push(post(20));
    let verdict = gate.posts(&page).await;
    assert!(verdict.held.as_ref().unwrap().starts_with("shrunken"));
    assert_eq!(kinds(&verdict), []);
    assert_eq!((gate.reader().await.len(), gate.kept().await.len()), (20, 6));
}
