//! What came and went, as windows breathe, slide and are made anew.

use crate::support::{Gate, Post, SITE, atom, kinds, post};
use tidegate_core::model::{EventKind, EventKind::*};

/// The posts of these days, newest first, without some.
fn posts(days: std::ops::RangeInclusive<u32>, without: &[u32]) -> Vec<Post> {
    days.rev().filter(|day| !without.contains(day)).map(post).collect()
}

/// A gateway that knows a feed of eight posts, of which the oldest goes when a new one comes.
async fn in_front_of_a_full_window() -> Gate {
    let mut gate = Gate::new().await;
    for first in 1..=5 {
        gate.posts(&posts(first..=first + 7, &[])).await;
        gate.later(24);
    }
    gate
}

/// What comes of it when the last document stays for days.
async fn in_the_end(gate: &mut Gate) -> Vec<EventKind> {
    let mut events = Vec::new();
    for _ in 0..5 {
        gate.later(12);
        events.extend(kinds(&gate.same().await));
    }
    events
}

#[tokio::test]
async fn what_came_back_among_older_items_is_deleted_when_it_goes_again() {
    for hours in [12, 24 * 8] {
        let mut gate = in_front_of_a_full_window().await;
        gate.posts(&posts(5..=12, &[8])).await;
        gate.later(12);
        assert_eq!(kinds(&gate.posts(&posts(5..=12, &[])).await), []);
        gate.later(hours);
        assert_eq!(kinds(&gate.posts(&posts(5..=12, &[8])).await), []);
        assert_eq!(in_the_end(&mut gate).await, [Deleted], "after {hours} hours");
    }
}

#[tokio::test]
async fn what_came_back_with_all_others_is_deleted_like_any() {
    let mut gate = in_front_of_a_full_window().await;
    assert!(gate.posts(&[]).await.held.is_some());
    gate.later(25);
    assert_eq!(kinds(&gate.posts(&[]).await), [Retired; 8]);
    assert_eq!(kinds(&gate.posts(&posts(5..=12, &[])).await), [Returned; 8]);
    gate.later(2);
    gate.posts(&posts(5..=12, &[9])).await;
    assert_eq!(in_the_end(&mut gate).await, [Deleted]);
}

#[tokio::test]
async fn as_many_new_ones_as_went_from_the_middle_may_have_taken_their_places() {
    let mut gate = in_front_of_a_full_window().await;
    // Two sources with a window each look like this.
    assert_eq!(kinds(&gate.posts(&posts(5..=14, &[8, 10])).await), [Created, Created]);
    assert_eq!(in_the_end(&mut gate).await, [], "the feed has to show it");
}

#[tokio::test]
async fn a_document_made_anew_says_what_a_hold_has_confirmed() {
    let mut gate = in_front_of_a_full_window().await;
    let anew = |without: &[u32]| -> Vec<Post> {
        let written = |p: Post| Post { text: format!("{} And that was it.", p.text), ..p };
        posts(5..=12, without).into_iter().map(written).collect()
    };
    assert!(gate.posts(&anew(&[9])).await.held.is_some());
    let mut events = Vec::new();
    for _ in 0..4 {
        gate.later(1);
        events.extend(kinds(&gate.posts(&anew(&[9])).await));
    }
    events.extend(in_the_end(&mut gate).await);
    events.retain(|kind| *kind != Updated);
    assert_eq!(events, [Deleted]);
}

#[tokio::test]
async fn an_older_item_that_comes_in_makes_no_room_in_the_middle() {
    let mut gate = in_front_of_a_full_window().await;
    // The oldest goes, an older one is there, and one from the middle is gone.
    let mut document = posts(6..=12, &[9]);
    document.push(post(2));
    assert_eq!(kinds(&gate.posts(&document).await), [Returned, Retired]);
    assert_eq!(in_the_end(&mut gate).await, [Deleted]);
}

/// A post whose address and id are made of its title.
fn titled(day: u32, title: &str) -> Post {
    let address = format!("http://publisher.example/{}", title.to_lowercase().replace(' ', "-"));
    let text = format!("{} Whoever has read it knows which story of all it is.", post(day).text);
    Post { id: address.clone(), link: address, title: title.to_owned(), text, ..post(day) }
}

#[tokio::test]
async fn a_post_under_another_title_is_known_by_its_date_and_text_wherever_it_stands() {
    let mut gate = Gate::new().await;
    let (a, b, c) = (titled(3, "Ferry"), titled(2, "Harbour"), titled(1, "Lighthouse"));
    gate.posts(&[a.clone(), b.clone(), c.clone()]).await;
    gate.later(1);
    let retitled = titled(1, "Beacon");
    let verdict = gate.posts(&[retitled, a, b]).await;
    assert_eq!(kinds(&verdict), [Rekeyed, Updated]);
    assert!(verdict.events()[0].reason.contains("text"), "{:?}", verdict.events());
}

#[tokio::test]
async fn another_post_of_the_same_text_is_another_post() {
    let mut gate = Gate::new().await;
    let film = |day: u32, id: &str, about: u32| Post {
        id: format!("yt:video:{id}"),
        link: format!("http://publisher.example/watch/{id}"),
        title: format!("Film {id} on the {day}"),
        text: post(about).text,
        ..post(day)
    };
    let older: Vec<Post> = (1..=6).rev().map(|d| film(d, &format!("old{d}"), d)).collect();
    gate.posts(&older).await;
    gate.later(1);
    // The publisher makes the film again under another name: its viewers are to see it.
    let mut again = older.clone();
    let place = again.iter().position(|p| p.day == 4).unwrap();
    again.remove(place);
    again.insert(0, film(7, "new", 4));
    assert_eq!(kinds(&gate.posts(&again).await), [Created]);
}

#[tokio::test]
async fn a_copy_of_an_entry_takes_no_name_away() {
    let mut gate = Gate::new().await;
    let session = |day: u32, key: &str| Post { id: format!("urn:{day}?s={key}"), ..post(day) };
    gate.posts(&[session(2, "a"), session(1, "a")]).await;
    gate.later(1);
    let twice = [session(2, "b"), session(1, "b"), session(2, "b")];
    assert_eq!(kinds(&gate.posts(&twice).await), [Rekeyed, Rekeyed]);
}

#[tokio::test]
async fn a_mangled_entry_of_a_document_that_was_held_is_not_made_an_item() {
    let mut gate = in_front_of_a_full_window().await;
    assert!(gate.posts(&[]).await.held.is_some());
    gate.later(1);
    // A new post, in a document in which the tags around its id are broken.
    let broken =
        atom(SITE, &posts(5..=13, &[])).replacen("<id>http://publisher.example/2026", "<i>http", 1);
    let verdict = gate.take(&broken).await;
    assert!(verdict.held.is_some(), "{verdict:?}");
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&posts(5..=12, &[])).await), []);
    assert_eq!(kinds(&gate.posts(&posts(6..=13, &[])).await), [Created, Retired]);
}
