//! What else than a deletion makes a hole, and what does not: by the steps from one document to the next, too.

use super::support::{Gate, Post, SITE, atom, kinds, post};
use tidegate_core::model::{EventKind, EventKind::*};

fn posts(days: impl IntoIterator<Item = u32>) -> Vec<Post> {
    days.into_iter().map(post).collect()
}

/// Releases of a program by day, newest first.
fn releases(of: &[(u32, &str)]) -> Vec<Post> {
    let release = |(day, title): &(u32, &str)| Post { title: (*title).to_owned(), ..post(*day) };
    of.iter().map(release).collect()
}

/// What comes of these documents, a day apart, when the last has stood for two days more.
async fn told(documents: &[Vec<Post>]) -> Vec<EventKind> {
    let mut gate = Gate::new().await;
    let mut events = Vec::new();
    for posts in documents {
        events.extend(kinds(&gate.posts(posts).await));
        gate.later(24);
    }
    for _ in 0..4 {
        events.extend(kinds(&gate.same().await));
        gate.later(12);
    }
    events.retain(|kind| *kind != Created);
    events
}

#[tokio::test]
async fn many_are_deleted_by_the_publishers_own_word() {
    let mut gate = Gate::new().await;
    gate.posts(&posts([6, 5, 4, 3, 2, 1])).await;
    gate.later(1);
    let gone = |day: u32| {
        format!(
            "<at:deleted-entry xmlns:at=\"http://purl.org/atompub/tombstones/1.0\" ref=\"{}\" \
             when=\"2026-02-01T00:00:00Z\"/>",
            post(day).id
        )
    };
    let said: String = [5, 4, 3].into_iter().map(gone).collect();
    let document = atom(SITE, &posts([6, 2, 1])).replace("</feed>", &format!("{said}</feed>"));
    assert_eq!(kinds(&gate.take(&document).await), [Deleted; 3]);
}

#[tokio::test]
async fn a_release_is_not_replaced_by_the_next_where_several_stand_side_by_side() {
    let all = [
        (150, "Widget 1.5 released"),
        (120, "Widget 1.4 released"),
        (90, "Widget 1.3 released"),
        (60, "Widget 1.2 released"),
        (30, "Widget 1.1 released"),
        (1, "Widget 1.0 released"),
    ];
    let mut documents: Vec<Vec<Post>> = (1..5).map(|from| releases(&all[from..])).rev().collect();
    // The next one comes as 1.4 goes.
    let mut last = releases(&all);
    last.remove(1);
    documents.push(last);
    assert_eq!(told(&documents).await, [Deleted]);
}

#[tokio::test]
async fn a_release_is_replaced_by_the_next_where_the_feed_shows_the_newest_of_a_line() {
    let old = (1, "Widget 0.9 released");
    let lines: Vec<Vec<Post>> =
        [30, 60, 90, 120].iter().map(|day| releases(&[(*day, "Widget 1 released"), old])).collect();
    let events = told(&lines).await;
    assert!(!events.contains(&Deleted), "{events:?}");
}

#[tokio::test]
async fn a_draft_goes_after_its_final_version_came() {
    let (old, draft, last) =
        ((1, "Widget 6.2 released"), (20, "Widget 7.0b5 released"), (25, "Widget 7.0 released"));
    let earlier = [(10, "Gadget 2 released"), (5, "Gadget 1 released"), old];
    let with = |new: &[(u32, &'static str)]| releases(&[new, &earlier].concat());
    let documents = [with(&[]), with(&[draft]), with(&[last, draft]), with(&[last])];
    assert_eq!(told(&documents).await, [Retired]);
}

#[tokio::test]
async fn an_entry_that_lost_its_id_for_a_while_is_known_by_the_rest() {
    let whole = posts([6, 5, 4, 3, 2, 1]);
    let mut broken = whole.clone();
    broken[2].id.clear();
    broken[2].link.clear();
    let events = told(&[broken, whole]).await;
    assert!(events.contains(&Rekeyed) && !events.contains(&Deleted), "{events:?}");
}

/// An item of a merged feed.
fn of(site: &str, day: u32) -> Post {
    let link = format!("http://{site}.example/{day}");
    Post { id: link.clone(), link, title: format!("What {site} says on day {day}"), ..post(day) }
}

#[tokio::test]
async fn a_source_with_a_window_of_its_own_deletes_nothing_however_the_others_slide() {
    let mut gate = Gate::new().await;
    for today in 40..61_u32 {
        let weekly: Vec<u32> = (0..=today).rev().filter(|day| day % 7 == 0).take(2).collect();
        let mut posts: Vec<Post> = (today - 9..=today).map(|day| of("blog", day)).collect();
        posts.extend(weekly.iter().map(|day| of("podcast", *day)));
        posts.sort_by_key(|p| std::cmp::Reverse((p.day, p.link.clone())));
        let events = kinds(&gate.posts(&posts).await);
        assert!(!events.contains(&Deleted), "day {today}: {events:?}");
        gate.later(24);
    }
    // A source that is dropped was not deleted.
    let blog: Vec<Post> = (51..=60).rev().map(|day| of("blog", day)).collect();
    let mut both: Vec<Post> =
        [59, 57, 55].map(|day| of("wiki", day)).into_iter().chain(blog.clone()).collect();
    both.sort_by_key(|p| std::cmp::Reverse((p.day, p.link.clone())));
    let events = told(&[both.clone(), both, blog]).await;
    assert!(!events.contains(&Deleted), "{events:?}");
}

#[tokio::test]
async fn what_the_document_says_of_a_retired_item_counts() {
    let mut gate = Gate::new().await;
    gate.posts(&posts([5, 4, 3, 2, 1])).await;
    gate.posts(&posts([6, 5, 4, 3, 2])).await;
    let said = format!(
        "<at:deleted-entry xmlns:at=\"http://purl.org/atompub/tombstones/1.0\" ref=\"{}\" \
         when=\"2026-02-01T00:00:00Z\"/></feed>",
        post(1).id
    );
    let document = atom(SITE, &posts([6, 5, 4, 3, 2])).replace("</feed>", &said);
    gate.later(1);
    assert_eq!(kinds(&gate.take(&document).await), [Deleted]);
    gate.later(1);
    assert_eq!(kinds(&gate.take(&document.replace("News", "The news")).await), [], "once");
}

#[tokio::test]
async fn what_another_entry_stands_in_the_place_of_is_not_deleted() {
    let other = Post {
        id: "urn:other".to_owned(),
        title: "Quite other words".to_owned(),
        link: "http://publisher.example/other".to_owned(),
        text: "Nobody said this before.".to_owned(),
        ..post(4)
    };
    let mut after = posts([8, 7, 6, 5, 4, 3, 2, 1]);
    after[4] = other.clone();
    let before = [posts([7, 6, 5, 4, 3, 2, 1]), posts([8, 7, 6, 5, 4, 3, 2, 1])];
    let [first, second] = before.clone();
    assert_eq!(told(&[first, second, after.clone()]).await, [Retired]);
    // One with a date of its own stands where that puts it.
    after[4] = Post { day: 5, ..other };
    let [first, second] = before;
    assert_eq!(told(&[first, second, after]).await, [], "the hole is looked at again");
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
