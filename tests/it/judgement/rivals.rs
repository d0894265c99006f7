//! Which of all that is unmatched is which: each pair against its rivals.

use super::signs::{LONG, Listed, count, rss, undated};
use crate::support::{Gate, kinds};
use tidegate_core::model::EventKind::*;

/// A notice without a page of its own, in a feed whose ids are made of their words.
fn notice(title: &str, text: &str) -> Listed {
    Listed {
        id: format!("{:08x}", title.len() * 31 + text.len() * 7 + usize::from(text.as_bytes()[0])),
        link: "https://notes.example/board".to_owned(),
        title: title.to_owned(),
        more: format!("<description>{text}</description>"),
    }
}

#[tokio::test]
async fn a_notice_whose_words_are_edited_is_the_same_between_its_neighbours() {
    let text = |what: &str| {
        format!(
            "{what} and all that there is to say of it is said here, at some length, once more."
        )
    };
    let others = ["Ferries", "Lamps", "Nets", "Ropes", "Boats"];
    let board = |title: &str, said: &str| -> Vec<Listed> {
        let mut items: Vec<Listed> = others
            .iter()
            .map(|what| notice(&format!("{what} of the harbour"), &text(what)))
            .collect();
        items.insert(2, notice(title, said));
        items
    };
    let first = "Call for the exam of 22 February";
    for (title, said) in [
        ("Call for the exam of 22 February - sold out", text("The call")),
        (first, text("The call, which is sold out")),
    ] {
        let mut gate = Gate::new().await;
        gate.take(&rss(&board(first, &text("The call")))).await;
        gate.later(1);
        let verdict = gate.take(&rss(&board(title, &said))).await;
        assert_eq!(kinds(&verdict), [Rekeyed, Updated], "{title}: {:?}", verdict.events());
    }
}

#[tokio::test]
async fn a_post_that_returns_under_another_id_is_the_same_each_time() {
    let posts = |first: Option<u32>| -> Vec<Listed> {
        let mut items = undated(&LONG[1..], |n| format!("https://notes.example/{n}"));
        items.extend(first.map(|id| Listed {
            id: format!("urn:again:{id}"),
            ..undated(&LONG[..1], |n| format!("https://notes.example/{n}")).remove(0)
        }));
        items
    };
    let mut gate = Gate::new().await;
    for first in [Some(1), Some(2), None, None, None, Some(3), Some(4)] {
        gate.take(&rss(&posts(first))).await;
        gate.later(30);
    }
    assert_eq!(count(&gate).await, 7);
}

#[tokio::test]
async fn a_long_number_in_the_address_stays_when_its_words_are_edited() {
    let asked = |slug: &str, title: &str| -> Vec<Listed> {
        let mut items =
            undated(&LONG, |n| format!("https://notes.example/questions/{n}/words-of-{n}"));
        let link = format!("https://notes.example/questions/40208/{slug}");
        let text =
            "Some may not be able to do this, and so we want to put it elsewhere for a while.";
        let more = format!("<description>{text}</description>");
        items.insert(3, Listed { id: link.clone(), link, title: title.to_owned(), more });
        items
    };
    let mut gate = Gate::new().await;
    gate.take(&rss(&asked("how-to-put-it", "How to put it into another one?"))).await;
    gate.later(1);
    let verdict = gate.take(&rss(&asked("moving", "Moving things elsewhere"))).await;
    assert_eq!(kinds(&verdict), [Rekeyed, Updated]);
}

#[tokio::test]
async fn a_date_says_nothing_where_the_words_stand_elsewhere() {
    let episodes = |week: &str, titles: [&str; 5]| -> Vec<Listed> {
        let listed = |(title, hour): (&&str, usize)| Listed {
            id: format!("{week}{hour}"),
            link: "https://notes.example/".to_owned(),
            title: format!("{week} {title}"),
            more: format!("<pubDate>05 Mar 2026 {:02}:00:00 +0000</pubDate>", 20 - 2 * hour),
        };
        titles.iter().zip(0..).map(listed).collect()
    };
    let mut gate = Gate::new().await;
    let old = [
        "All the sources",
        "Of group behaviour",
        "Reading what was found",
        "The one who sees",
        "At last",
    ];
    gate.take(&rss(&episodes("Week 5", old))).await;
    let new = [old[1], old[0], old[3], old[2], old[4]];
    let mut events = Vec::new();
    for _ in 0..4 {
        gate.later(4);
        events.extend(kinds(&gate.take(&rss(&episodes("W05", new))).await));
    }
    assert!(!events.contains(&Rekeyed), "{events:?}");
}

#[tokio::test]
async fn posts_that_share_a_link_and_have_no_id_are_posts_each() {
    let strip = |n: usize| {
        let names = ["Ann", "Ben", "Cas", "Dot", "Eve", "Fay", "Gus", "Hal"];
        format!(
            "<item><link>https://notes.example/</link><title>{} at sea</title>\
             <description>What {} saw there.</description></item>",
            names[n], names[n]
        )
    };
    let document = |from: usize| {
        let strips: String = (from..from + 4).rev().map(strip).collect();
        format!("<rss version='2.0'><channel><title>Strips</title>{strips}</channel></rss>")
    };
    let mut gate = Gate::new().await;
    gate.take(&document(0)).await;
    for from in 1..5 {
        gate.later(24);
        let events = kinds(&gate.take(&document(from)).await);
        assert_eq!(events.iter().filter(|kind| **kind == Created).count(), 1, "{events:?}");
        assert!(!events.contains(&Rekeyed) && !events.contains(&Updated), "{events:?}");
    }
}
