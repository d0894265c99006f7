//! What the step from one document to the next shows: which end is the old one, and whether what came
//! could have pushed out what went.

use super::support::{Gate, Post, SITE, atom, kinds, post};
use tidegate_core::model::{Deletions, EventKind, EventKind::*};

fn posts(days: impl IntoIterator<Item = u32>) -> Vec<Post> {
    days.into_iter().map(post).collect()
}

/// A document of these days, newest first, whose entries have no dates.
fn undated(days: impl IntoIterator<Item = u32>) -> String {
    let document = atom(SITE, &posts(days));
    let mut entries = document.split("<published>");
    let mut text = entries.next().unwrap_or_default().to_owned();
    for entry in entries {
        text.push_str(entry.split_once("</updated>").unwrap().1);
    }
    text
}

/// What comes of it when the last document stays for so many days.
async fn stays(gate: &mut Gate, days: u32) -> Vec<EventKind> {
    let mut events = Vec::new();
    for _ in 0..days * 2 {
        gate.later(12);
        events.extend(kinds(&gate.same().await));
    }
    events
}

/// Takes documents a day apart, the last of which stays for two days; what comes of it but for new
/// items.
async fn told(documents: &[Vec<Post>]) -> Vec<EventKind> {
    let mut gate = Gate::new().await;
    let mut events = Vec::new();
    for posts in documents {
        events.extend(kinds(&gate.posts(posts).await));
        gate.later(24);
    }
    events.extend(stays(&mut gate, 2).await);
    events.retain(|kind| *kind != Created);
    events
}

/// Windows of so many days, newest first, that slide by one a document until they end at `last`.
fn slides(len: u32, last: std::ops::RangeInclusive<u32>) -> Vec<Vec<Post>> {
    last.map(|last| posts((last + 1 - len..=last).rev())).collect()
}

#[tokio::test]
async fn a_front_page_that_changes_three_of_six_deletes_none() {
    let mut documents = slides(6, 6..=12);
    for _ in 0..2 {
        documents.push(posts([15, 14, 13, 11, 10, 7]));
    }
    let events = told(&documents).await;
    assert!(!events.contains(&Deleted), "{events:?}");
}

#[tokio::test]
async fn a_front_page_that_changes_two_of_six_deletes_none_while_it_goes_on_so() {
    let mut documents = slides(6, 6..=8);
    documents.extend([
        posts([10, 9, 8, 6, 5, 3]),
        posts([12, 11, 9, 8, 6, 3]),
        posts([14, 13, 12, 9, 8, 3]),
        posts([16, 15, 14, 12, 8, 3]),
    ]);
    let events = told(&documents).await;
    assert!(!events.contains(&Deleted), "{events:?}");
}

#[tokio::test]
async fn what_a_new_one_may_have_pushed_out_is_deleted_where_that_turns_out_to_be_rare() {
    let mut gate = Gate::new().await;
    for document in slides(8, 8..=9) {
        gate.posts(&document).await;
        gate.later(24);
    }
    // One comes, one goes from the middle, and none leaves at the end.
    gate.posts(&posts([10, 9, 7, 6, 5, 4, 3, 2])).await;
    assert_eq!(stays(&mut gate, 3).await, []);
    // The next ones make the oldest go.
    for last in 11..=12 {
        let window = (last - 8..=last).rev().filter(|day| *day != 8);
        assert_eq!(kinds(&gate.posts(&posts(window)).await), [Created, Retired]);
        assert_eq!(stays(&mut gate, 1).await, []);
    }
    let mut events = kinds(&gate.posts(&posts([13, 12, 11, 10, 9, 7, 6, 5])).await);
    events.extend(stays(&mut gate, 1).await);
    assert_eq!(events, [Created, Retired, Deleted]);
}

#[tokio::test]
async fn what_goes_near_the_old_end_as_a_new_one_comes_is_no_deletion_yet() {
    // A feed known to slide: the last document loses one that has so many older ones below it.
    for (gone, expected) in [(8, vec![Deleted]), (7, vec![]), (6, vec![])] {
        let mut gate = Gate::new().await;
        for document in slides(8, 8..=12) {
            gate.posts(&document).await;
            gate.later(24);
        }
        gate.posts(&posts((5..=13).rev().filter(|day| *day != gone))).await;
        assert_eq!(stays(&mut gate, 3).await, expected, "{gone}");
    }
}

#[tokio::test]
async fn one_that_goes_as_another_slides_off_for_the_new_one_is_deleted() {
    let mut documents = slides(8, 8..=10);
    documents.push(posts([11, 10, 9, 8, 6, 5, 4]));
    assert_eq!(told(&documents).await[2..], [Retired, Deleted]);
}

#[tokio::test]
async fn one_of_its_host_alone_is_deleted_like_any() {
    let mut documents = slides(10, 10..=14);
    for document in &mut documents {
        for post in document.iter_mut().filter(|post| post.day == 9) {
            post.link = "http://elsewhere.example/page".to_owned();
        }
    }
    let mut last = documents.last().unwrap().clone();
    last.retain(|post| post.day != 9);
    documents.push(last);
    assert_eq!(told(&documents).await[4..], [Deleted]);
}

#[tokio::test]
async fn one_of_a_series_of_drafts_is_deleted_like_any() {
    for series in ["testing a pre-release", "testing"] {
        let titled = |mut document: Vec<Post>| {
            for post in document.iter_mut().filter(|post| post.day % 2 == 1) {
                post.title = format!("1.{}.0 {series}", post.day);
            }
            document
        };
        let mut documents: Vec<Vec<Post>> = slides(10, 10..=15).into_iter().map(titled).collect();
        // The next draft comes as the last one goes, and one slides off.
        let last = (7..=17).rev().filter(|day| ![13, 16].contains(day));
        documents.push(titled(posts(last)));
        assert_eq!(told(&documents).await[5..], [Retired, Deleted], "{series}");
    }
}

#[tokio::test]
async fn a_post_written_anew_under_the_same_day_was_not_deleted() {
    let dated = |mut document: Vec<Post>| {
        for post in &mut document {
            post.id = format!("http://publisher.example/2026-01-{:02}-{}", post.day, post.title);
            post.id = post.id.replace(' ', "-");
            post.link.clone_from(&post.id);
        }
        document
    };
    let mut documents: Vec<Vec<Post>> = slides(8, 8..=10).into_iter().map(dated).collect();
    let mut last = posts((2..=9).rev());
    let anew = Post {
        title: "Quite another headline".to_owned(),
        text: "And other words, so that nothing else tells that the two are one post.".to_owned(),
        ..post(10)
    };
    last.insert(0, anew);
    documents.push(dated(last));
    let events = told(&documents).await;
    assert!(!events.contains(&Deleted), "{events:?}");
}

#[tokio::test]
async fn a_post_under_the_same_words_was_written_anew_but_in_a_series() {
    for (others, then) in [("The story of day", Deleted), ("A report of week", Retired)] {
        let titled = |day: u32| {
            let words = if day < 10 { others } else { "The story of day" };
            Post { title: format!("{words} {day}"), ..post(day) }
        };
        let mut documents: Vec<Vec<Post>> =
            (8..=10).map(|last: u32| (last - 7..=last).rev().map(titled).collect()).collect();
        // The next one comes as the last one goes, and one slides off.
        documents.push([11, 9, 8, 7, 6, 5, 4].map(titled).to_vec());
        assert_eq!(told(&documents).await[2..], [Retired, then], "{others}");
    }
}

#[tokio::test]
async fn the_newest_of_an_undated_feed_is_deleted_where_new_ones_come_at_that_end() {
    let mut gate = Gate::new().await;
    gate.take(&undated((1..=10).rev())).await;
    gate.later(24);
    gate.take(&undated((2..=11).rev())).await;
    gate.later(24);
    // The newest is taken away as the next one comes.
    let mut events = Vec::new();
    for last in 12..=15 {
        let first = if last == 12 { 2 } else { last - 10 };
        let days = (first..=last).rev().filter(|day| *day != 11);
        events.extend(kinds(&gate.take(&undated(days)).await));
        gate.later(24);
    }
    events.extend(stays(&mut gate, 2).await);
    assert_eq!(events.iter().filter(|kind| **kind == Deleted).count(), 1, "{events:?}");
}

#[tokio::test]
async fn what_stood_at_the_top_of_an_undated_feed_waits_until_its_new_end_is_known() {
    for (above, then) in [(true, Deleted), (false, Retired)] {
        let mut gate = Gate::new().await;
        gate.take(&undated((1..=10).rev())).await;
        gate.later(24);
        let mut days: Vec<u32> = (1..=9).rev().collect();
        assert_eq!(kinds(&gate.take(&undated(days.clone())).await), []);
        assert_eq!(stays(&mut gate, 9).await, [], "either end may be the old one");
        let mut events = Vec::new();
        for day in 11..=13 {
            days.insert(if above { 0 } else { days.len() }, day);
            events.extend(kinds(&gate.take(&undated(days.clone())).await));
            gate.later(24);
        }
        events.retain(|kind| *kind != Created);
        assert_eq!(events, [then]);
    }
}

#[tokio::test]
async fn who_is_in_a_hurry_is_told_although_a_new_one_comes() {
    for (new, gone, then) in [(1, vec![6], vec![Deleted]), (2, vec![6, 5], vec![])] {
        let mut gate = Gate::new().await;
        gate.options.deletions = Deletions::Eager;
        gate.posts(&posts((1..=10).rev())).await;
        gate.later(1);
        let days = (1..=10 + new).rev().filter(|day| !gone.contains(day));
        let mut events = kinds(&gate.posts(&posts(days)).await);
        events.retain(|kind| *kind != Created);
        assert_eq!(events, then, "{new} came");
    }
}
