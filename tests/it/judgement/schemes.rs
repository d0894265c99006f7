//! A store whose fingerprints were made by another scheme: nothing of it makes a version because the
//! program makes others now.

use super::support::{Gate, kinds};
use tidegate_core::model::EventKind::{self, *};
use tidegate_judge::news::SCHEME;

/// A feed of items with these descriptions, which are HTML.
fn feed(items: &[(&str, &str)], stamp: u32) -> String {
    let mut text =
        "<rss version=\"2.0\"><channel><title>F</title><link>https://example.org/</link>\
         <description>d</description>\n"
            .to_owned();
    for (id, html) in items {
        let html = html.replace('&', "&amp;").replace('<', "&lt;");
        text.push_str(&format!(
            "<item><title>{id}</title><link>https://example.org/{id}</link><guid>{id}</guid>\
             <generator>{stamp}</generator><description>{html}</description></item>\n"
        ));
    }
    text + "</channel></rss>\n"
}

async fn take(gate: &mut Gate, items: &[(&str, &str)], stamp: u32) -> Vec<EventKind> {
    gate.later(1);
    kinds(&gate.take(&feed(items, stamp)).await)
}

async fn other() -> Gate {
    let mut gate = Gate::new().await;
    gate.other_scheme = true;
    gate
}

#[tokio::test]
async fn what_nobody_changed_makes_no_version_and_an_edit_makes_one() {
    let items = [("a", "ma&iacute;z &middot; one"), ("b", "caf&eacute; &raquo; two")];
    let mut gate = other().await;
    assert_eq!(take(&mut gate, &items, 1).await, [Created; 2]);
    gate.other_scheme = false;
    let tick = gate.store_state().await.tick;
    // The same document, and the same but for what a reader does not see.
    assert_eq!(take(&mut gate, &items, 1).await, []);
    assert!(gate.snapshot().await.known.iter().all(|known| known.noise.scheme == 0));
    assert_eq!(take(&mut gate, &items, 2).await, []);
    assert!(gate.snapshot().await.known.iter().all(|known| known.noise.scheme == SCHEME));
    assert_eq!(gate.store_state().await.tick, tick, "nor is its head told");
    let edited = [("a", "ma&iacute;z &middot; one"), ("b", "caf&eacute; &raquo; three")];
    assert_eq!(take(&mut gate, &edited, 3).await, [Updated]);
    assert_eq!(take(&mut gate, &edited, 4).await, []);
}

#[tokio::test]
async fn what_is_no_part_of_the_text_any_more_makes_no_version() {
    let items = [
        ("a", "<img src=/lead>ma&iacute;z <a href=/b#part>there</a>"),
        ("b", "<p><img src=/alone></p>"),
        ("c", "one <img src=/among> two<img src=/last>"),
    ];
    let mut gate = other().await;
    assert_eq!(take(&mut gate, &items, 1).await, [Created; 3]);
    gate.other_scheme = false;
    for stamp in 1..4 {
        assert_eq!(take(&mut gate, &items, stamp).await, []);
    }
    let bare = [("a", "ma&iacute;z <a href=/b>there</a>"), ("b", ""), ("c", "one <img> two")];
    assert_eq!(take(&mut gate, &bare, 4).await, []);
}

#[tokio::test]
async fn what_comes_back_under_another_id_makes_no_version_either() {
    let items = [("one", "first"), ("two", "second"), ("another-three", "third")];
    let dated = |items: &[(&str, &str)], stamp| {
        let date = "<pubDate>Mon, 02 Nov 2026 10:00:00 GMT</pubDate>";
        feed(items, stamp).replace("<generator>", &format!("{date}<generator>"))
    };
    let mut gate = other().await;
    gate.take(&dated(&items, 1)).await;
    gate.other_scheme = false;
    gate.later(1);
    assert_eq!(kinds(&gate.take(&dated(&items[..2], 1)).await), [Retired]);
    gate.later(1);
    let renamed = dated(&items, 2).replace("<guid>another-three<", "<guid>3<");
    let found = kinds(&gate.take(&renamed).await);
    assert!(found.contains(&Returned) && !found.contains(&Updated), "{found:?}");
}

#[tokio::test]
async fn a_counter_that_never_rests_stays_so() {
    let text = |count: u32| format!("<b>ma&iacute;z</b> sold &middot; {count} views");
    let mut gate = other().await;
    // What is watched is noted by the present scheme while it is learned.
    gate.other_scheme = false;
    for count in 1..7 {
        take(&mut gate, &[("a", &text(count)), ("b", "other")], 1).await;
    }
    gate.other_scheme = true;
    take(&mut gate, &[("a", &text(7)), ("b", "other")], 1).await;
    gate.other_scheme = false;
    for count in 8..12 {
        let items = [("a", &*text(count)), ("b", "other")];
        assert_eq!(take(&mut gate, &items, 1).await, [], "{count}");
    }
    let words = [("a", "<b>ma&iacute;z</b> bought &middot; 12 views"), ("b", "other")];
    assert_eq!(take(&mut gate, &words, 1).await, [Updated]);
}

/// What was renamed is known by its link and its text all the same.
#[tokio::test]
async fn an_item_is_found_again_by_its_text() {
    let text =
        "a text that is long enough to say which post of all posts it is, and that no other has";
    let mut gate = other().await;
    take(&mut gate, &[("a", text), ("b", "other")], 1).await;
    gate.other_scheme = false;
    let renamed = feed(&[("a", text), ("b", "other")], 1).replace(">a<", ">A better title<");
    gate.later(1);
    let renamed =
        renamed.replace("<guid>A better title<", "<guid>https://example.org/a-better-title<");
    let found = kinds(&gate.take(&renamed).await);
    let mut same = Gate::new().await;
    take(&mut same, &[("a", text), ("b", "other")], 1).await;
    same.later(1);
    assert_eq!(found, kinds(&same.take(&renamed).await));
    assert!(found.contains(&Rekeyed), "{found:?}");
}
