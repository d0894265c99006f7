//! What the step from one document to the next shows: which end is the old one, and whether what came
//! could have pushed out what went.

use super::support::{Gate, Post, kinds, post};
use tidegate_core::model::{EventKind, EventKind::*};

fn posts(days: impl IntoIterator<Item = u32>) -> Vec<Post> {
    days.into_iter().map(post).collect()
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
    for _ in 0..4 {
        gate.later(12);
        events.extend(kinds(&gate.same().await));
    }
    events.retain(|kind| *kind != Created);
    events
}

/// Windows of so many days, newest first, that slide by one a document until they end at `last`.
fn slides(len: u32, last: std::ops::RangeInclusive<u32>) -> Vec<Vec<Post>> {
    last.map(|last| posts((last + 1 - len..=last).rev())).collect()
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
