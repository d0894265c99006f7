//! Plain new posts of a held document: they come at once, and once.

use crate::judgement::days;
use crate::support::{Gate, Post, kinds, post};
use tidegate_core::model::EventKind::*;
use tidegate_store::Select;

/// The days of what a reader sees, in the reader's order.
async fn shown(gate: &Gate) -> Vec<u32> {
    let titles = gate.reader().await.into_iter().map(|(_, title)| title);
    titles.map(|title| title.rsplit(' ').next().unwrap().parse().unwrap()).collect()
}

async fn created(gate: &Gate) -> usize {
    gate.store_events().await.iter().filter(|kind| **kind == Created).count()
}

/// The same posts under ids and addresses of another site.
fn moved(posts: &mut [Post]) {
    for p in posts {
        p.id = p.id.replace("http://publisher.example/2026", "https://new.example/a");
        p.link.clone_from(&p.id);
    }
}

#[tokio::test]
async fn a_shrunken_document_shows_its_new_post_at_the_first_look() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=8)).await;
    gate.later(1);
    let shrunken = [post(9), post(8)];
    let verdict = gate.posts(&shrunken).await;
    assert!(verdict.held.unwrap().starts_with("shrunken"));
    assert_eq!(gate.reader().await.len(), 9);
    assert_eq!(shown(&gate).await, [9, 8, 7, 6, 5, 4, 3, 2, 1]);
    assert!(gate.kept().await.is_empty());
    // One more in the next, while the hold stands; then it is believed.
    gate.later(3);
    let next = [post(10), post(9), post(8)];
    let verdict = gate.posts(&next).await;
    assert_eq!((kinds(&verdict), verdict.held.is_some()), (vec![Created], true));
    assert_eq!(shown(&gate).await[..3], [10, 9, 8]);
    for _ in 0..3 {
        gate.later(3);
        gate.posts(&next).await;
    }
    assert_eq!(gate.store_state().await.hold, None);
    assert_eq!(shown(&gate).await, [10, 9, 8]);
    assert_eq!((created(&gate).await, gate.items(Select::All).await.len()), (10, 10));
    assert!(!gate.store_events().await.contains(&Deleted));
}

#[tokio::test]
async fn a_mass_change_shows_its_new_post_and_keeps_the_old_texts() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=8)).await;
    gate.later(1);
    let mut posts = days(1..=9);
    for p in posts.iter_mut().filter(|p| p.day <= 8) {
        p.text = format!("A new template. {}", p.text);
    }
    let verdict = gate.posts(&posts).await;
    assert!(verdict.held.as_ref().unwrap().starts_with("mass-changed"));
    assert_eq!(kinds(&verdict), [Created]);
    assert_eq!(shown(&gate).await, [9, 8, 7, 6, 5, 4, 3, 2, 1]);
    let items = gate.items(Select::Current).await;
    assert!(items.iter().all(|item| !item.shared.winner.data.xml.contains("A new template.")));
    gate.later(1);
    gate.posts(&posts).await;
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&posts).await), [Updated; 8]);
    assert_eq!(created(&gate).await, 9);
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
