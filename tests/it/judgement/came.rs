//! What came and went, as windows breathe, slide and are made anew.

use crate::judgement::days;
use crate::support::{Gate, Post, SITE, atom, kinds, post};
use tidegate_core::model::EventKind::*;

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
    let mut gate = Gate::new().await;
    gate.posts(&days(4..=11)).await;
    gate.later(24);
    gate.posts(&days(5..=12)).await;
    gate.later(24);
    assert!(gate.posts(&[]).await.held.is_some());
    gate.later(1);
    // A new post, in a document in which the tags around its id are broken.
    let broken =
        atom(SITE, &days(5..=13)).replacen("<id>http://publisher.example/2026", "<i>http", 1);
    let verdict = gate.take(&broken).await;
    assert!(verdict.held.is_some(), "{verdict:?}");
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&days(5..=12)).await), []);
    assert_eq!(kinds(&gate.posts(&days(6..=13)).await), [Created, Retired]);
}
