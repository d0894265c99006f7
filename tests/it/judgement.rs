//! What the gateway makes of what publishers do, scenario by scenario.

mod deleted_by_operator;
mod heads;
mod held;
mod ill_formed;
mod probe;
mod signs;
mod stories;
use crate::support;
use crate::support::prelude::*;

use tidegate_core::model::EventKind::*;

/// Since when each item is shown as it is: (title, render revision), in the reader's order.
async fn touched(gate: &Gate) -> Vec<(u32, u64)> {
    let items = gate.items(Select::Current).await;
    let day = |title: &str| title.rsplit(' ').next().unwrap().parse().unwrap();
    items.iter().map(|i| (day(&i.shared.winner.data.card.title), i.touched)).collect()
}

/// What a reader who comes back with an earlier document must be given (RFC 3229).
#[tokio::test]
async fn every_item_says_since_when_it_is_shown_as_it_is() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=4)).await;
    assert_eq!(touched(&gate).await, [(4, 1), (3, 1), (2, 1), (1, 1)]);
    gate.posts(&days(2..=5)).await;
    assert_eq!(touched(&gate).await, [(5, 2), (4, 1), (3, 1), (2, 1)]);
    // Bytes without a version, a version, and one that comes back.
    let mut next = days(1..=5);
    next[1].extra = "<slash:comments xmlns:slash=\"urn:x\"/>".to_owned();
    next[2].text = "Told quite otherwise, so that everybody sees it.".to_owned();
    assert_eq!(kinds(&gate.posts(&next).await).len(), 2);
    assert_eq!(touched(&gate).await, [(5, 2), (4, 3), (3, 3), (2, 1), (1, 3)]);
    // Something else changes: nothing is touched.
    gate.take(&atom("http://publisher.example/new/", &next)).await;
    assert_eq!(gate.store_state().await.render_revision, 4);
    assert_eq!(touched(&gate).await, [(5, 2), (4, 3), (3, 3), (2, 1), (1, 3)]);
    // An item that changes may stand anywhere; what entries cannot tell is noted.
    next[3].text = "Told quite otherwise, so that everybody sees it.".to_owned();
    next[..4].rotate_right(1);
    gate.posts(&next).await;
    assert_eq!(gate.store_state().await.deltas_from, 0, "entries told it all");
    next.swap(2, 3);
    gate.posts(&next).await;
    assert_eq!(gate.store_state().await.deltas_from, 6);
    next.remove(2);
    gate.posts(&next).await;
    assert_eq!(gate.store_state().await.deltas_from, 6, "Atom has a word for what is gone");
}

/// What newer documents say is deleted, an older one does not bring.
#[tokio::test]
async fn deleted_entries_stay_away() {
    let mut gate = Gate::new().await;
    gate.posts(&days(5..=8)).await;
    let older = gate.backfill(&atom(SITE, &days(1..=4)), &[&post(2).id]).await;
    assert_eq!(older.taken, 3);
    let items = gate.items(Select::All).await;
    assert!(items.iter().all(|item| item.published_id != post(2).id));
    // What this publisher deleted is not brought back by an older document either.
    gate.options.deletions = Deletions::Eager;
    let without: Vec<_> = days(5..=8).into_iter().filter(|p| p.day != 7).collect();
    assert_eq!(kinds(&gate.later(1).posts(&without).await), [Deleted]);
    let older = gate.backfill(&atom(SITE, &days(1..=8)), &[&post(2).id]).await;
    assert_eq!((older.taken, older.known), (0, 7));
    assert!(gate.known(&post(7).id).await.is_tombstone());
}

fn json(posts: &[Post]) -> String {
    let items = posts.iter().map(|p| {
        let (text, date) = (format!("<p>{}</p>", p.text), p.date().to_string());
        serde_json::json!({ "id": p.id, "url": p.link, "title": p.title, "content_html": text, "date_published": date })
    });
    let (version, items) = ("https://jsonfeed.org/version/1.1", items.collect::<Vec<_>>());
    serde_json::json!({ "version": version, "title": "News", "home_page_url": SITE, "items": items })
        .to_string()
}

/// Formats call the same things by different names.
#[tokio::test]
async fn a_change_of_format_makes_nothing_new() {
    let mut gate = Gate::new().await;
    let posts = days(1..=8);
    gate.take(&rss(&posts)).await;
    let before = gate.reader().await;
    for text in [atom(SITE, &posts), rss(&posts), json(&posts), atom(SITE, &posts)] {
        let verdict = gate.later(1).take(&text).await;
        assert!(!kinds(&verdict).contains(&Created), "{text}");
        assert_eq!(gate.reader().await, before);
    }
}
