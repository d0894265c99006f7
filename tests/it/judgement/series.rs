//! Posts that are like each other are posts of their own.

use super::support::{Gate, Post, kinds, post};
use tidegate_core::model::{EventKind, EventKind::*};

/// Ten of these at first, then five documents, each with one more at the top and one less below.
async fn slides(of: fn(u32) -> Post) -> Vec<EventKind> {
    let mut gate = Gate::new().await;
    let window = |last: u32| (last - 9..=last).rev().map(of).collect::<Vec<_>>();
    gate.posts(&window(20)).await;
    let mut events = Vec::new();
    for last in 21..26 {
        gate.later(24);
        events.extend(kinds(&gate.posts(&window(last)).await));
    }
    events
}

#[tokio::test]
async fn the_next_of_a_series_is_a_new_post() {
    let series: [fn(u32) -> Post; 4] = [
        |day| Post { title: "Daily open thread".to_owned(), ..post(day) },
        |day| Post {
            title: "Weekly reader roundup".to_owned(),
            text: "Tell us what you read this week, and why others should, in the comments. "
                .repeat(3),
            ..post(day)
        },
        |day| Post {
            extra: "<link rel=\"enclosure\" href=\"http://publisher.example/logo.jpg\"/>"
                .to_owned(),
            ..post(day)
        },
        |day| Post {
            id: format!("https://blog.publisher.example/?p={day}"),
            title: "Today".to_owned(),
            ..post(day)
        },
    ];
    for of in series {
        assert_eq!(slides(of).await, [Created, Retired].repeat(5));
    }
}

#[tokio::test]
async fn a_feed_of_one_entry_turns_over() {
    let mut gate = Gate::new().await;
    let today = |day| Post { link: "http://publisher.example/today".to_owned(), ..post(day) };
    gate.posts(&[today(1)]).await;
    for day in 2..5 {
        gate.later(24);
        assert_eq!(kinds(&gate.posts(&[today(day)]).await), [Created, Retired]);
    }
}

#[tokio::test]
async fn numbers_of_posts_at_two_sites_are_not_one() {
    let of = |site: &str, day: u32, number: u32| {
        let id = format!("https://{site}.example/?p={number}");
        let title = format!("{site} writes on day {day}");
        Post { link: id.clone(), id, title, ..post(day) }
    };
    let mut gate = Gate::new().await;
    let posts = |last: u32| {
        let window = (last - 7..=last).rev();
        window.map(|day| match day % 2 {
            0 => of("alice", day, 100 + day),
            _ => of("bob", day, 91 + day),
        })
    };
    gate.posts(&posts(20).collect::<Vec<_>>()).await;
    for last in 21..40 {
        gate.later(24);
        let events = kinds(&gate.posts(&posts(last).collect::<Vec<_>>()).await);
        assert_eq!(events, [Created, Retired], "day {last}");
    }
}
