//! What goes by another id is the same item where enough of it says so, and more than of any other.

use crate::support::prelude::*;
use std::ops::Range;
use tidegate_core::model::EventKind::*;

#[derive(Clone)]
struct Listed {
    id: String,
    link: String,
    title: String,
    more: String,
}

fn rss(items: &[Listed]) -> String {
    let item = |Listed { id, link, title, more }: &Listed| {
        let id = format!("<guid isPermaLink=\"false\">{id}</guid>");
        format!("<item>{id}<link>{link}</link><title>{title}</title>{more}</item>")
    };
    channel("Notes", items.iter().map(item))
}

/// Posts whose id and link are made by `address` of their number, without dates, newest first.
fn undated(titles: &[(u32, &str)], address: impl Fn(u32) -> String) -> Vec<Listed> {
    let listed = |(number, title): &(u32, &str)| Listed {
        id: address(*number).replace('&', "&amp;"),
        link: address(*number).replace('&', "&amp;"),
        title: (*title).to_owned(),
        more: String::new(),
    };
    titles.iter().map(listed).collect()
}

/// Takes in a document until it is held no more, and tells what came of it.
async fn settled(gate: &mut Gate, items: &[Listed]) -> Vec<EventKind> {
    for _ in 0..8 {
        let verdict = gate.later(1).take(&rss(items)).await;
        if verdict.held.is_none() {
            return kinds(&verdict);
        }
    }
    panic!("it is held for ever");
}

async fn count(gate: &Gate) -> usize {
    gate.items(Select::All).await.len()
}

fn created(events: &[EventKind]) -> usize {
    events.iter().filter(|kind| **kind == Created).count()
}

const SHORT: [&str; 7] =
    ["朝の海", "雨のち晴れ", "本棚", "おみやげです", "ねむい", "駅前で", "手紙"];
const LONG: [&str; 7] = [
    "The ferry is late once more",
    "On the painting of small boats",
    "What the lighthouse keeper reads",
    "An evening in the old harbour",
    "Nets and how they are mended",
    "The market opens on Saturday",
    "Fog, and what to do about it",
];

/// Posts with these titles, newest first.
fn numbered(titles: [&'static str; 7]) -> Vec<(u32, &'static str)> {
    (40_201..=40_207).rev().zip(titles).collect()
}

#[tokio::test]
async fn a_parameter_that_changes_at_each_poll_makes_nothing_new() {
    for titles in [SHORT, LONG].map(numbered) {
        let at = |titles: &[(u32, &str)], token: u32| {
            undated(titles, |n| format!("https://notes.example/diary/{n}?s=00{token}&m=1"))
        };
        let mut gate = Gate::new().await;
        gate.take(&rss(&at(&titles[2..], 10))).await;
        assert_eq!(count(&gate).await, 5);
        let verdict = gate.later(1).take(&rss(&at(&titles[2..], 11))).await;
        assert_eq!((kinds(&verdict), verdict.held.as_deref()), (vec![Rekeyed; 5], None));
        // The new post is not kept back by what goes by another parameter, and slides.
        let verdict = gate.later(1).take(&rss(&at(&titles[1..6], 12))).await;
        assert_eq!(created(&kinds(&verdict)), 1);
        assert_eq!(count(&gate).await, 6);
        // What had slid off comes back under another parameter.
        let verdict = gate.later(1).take(&rss(&at(&titles[2..], 13))).await;
        assert!(!kinds(&verdict).contains(&Created), "{:?}", verdict.events());
        let events = gate.store_events().await;
        assert!(!events.contains(&Updated) && !events.contains(&Deleted), "{events:?}");
        let aliases = gate.snapshot().await.known.iter().map(|known| known.aliases.len()).max();
        assert_eq!(aliases, Some(0), "they would push out the ids that an item had before");
    }
}

/// What an entry has beside its title: nothing, a date, a short text, a long one.
const MORE: [fn(u32) -> String; 4] = [
    |_| String::new(),
    |n| format!("<pubDate>{} Mar 2026 06:00:00 +0000</pubDate>", n - 40_190),
    |n| format!("<description>The text of post {n}, with some words.</description>"),
    |n| {
        let text = format!("What happened on day {n}, told at length so that nobody doubts it. ");
        format!("<description>{}</description>", text.repeat(4))
    },
];

#[tokio::test]
async fn another_session_in_every_address_makes_nothing_new_whatever_entries_have() {
    for more in MORE {
        for (titles, is_longer) in [(SHORT, false), (LONG, false), (SHORT, true), (LONG, true)] {
            let titles = numbered(titles);
            let at = |titles: &[(u32, &str)], session: &str| -> Vec<Listed> {
                let address = |n| format!("https://notes.example/diary/detail/{n}?sid={session}");
                let mut items = undated(titles, address);
                for (item, (number, _)) in items.iter_mut().zip(titles) {
                    item.more = more(*number);
                }
                items
            };
            let mut gate = Gate::new().await;
            gate.take(&rss(&at(&titles[1..6], "a1"))).await;
            let begins = usize::from(!is_longer);
            for session in ["b2", "c3"] {
                let items = at(&titles[begins..begins + 5], session);
                let events = settled(&mut gate, &items).await;
                let new = usize::from(is_longer && session == "b2");
                assert_eq!(created(&events), new, "{events:?}");
            }
            assert_eq!(count(&gate).await, 5 + usize::from(is_longer));
            let events = gate.store_events().await;
            assert!(!events.contains(&Updated) && !events.contains(&Deleted), "{events:?}");
        }
    }
}

#[tokio::test]
async fn titles_in_their_order_are_the_same_posts_whatever_their_addresses() {
    for titles in [SHORT, LONG].map(numbered) {
        let mut gate = Gate::new().await;
        gate.take(&rss(&undated(&titles[1..], |n| format!("https://notes.example/?p={n}")))).await;
        // The site moves to other addresses, and a new post comes as it does.
        let moved =
            undated(&titles[..6], |n| format!("https://new.example/archives/{}", n - 39_999));
        assert_eq!(created(&settled(&mut gate, &moved).await), 1);
        assert_eq!(count(&gate).await, 7);
    }
}

/// Notes without titles, newest first, of a session; `more` is what one has beside its text.
fn notes(numbers: Range<u32>, session: &str, more: fn(u32) -> String) -> Vec<Listed> {
    let note = |n: u32| Listed {
        more: format!("{}<description>{} boats came in.</description>", more(n), n * 7),
        ..undated(&[(n, "")], |n| format!("https://notes.example/{n}{session}")).remove(0)
    };
    numbers.rev().map(note).collect()
}

#[tokio::test]
async fn short_notes_without_titles_are_known_by_their_row() {
    let same = |_| "<author>harbour@notes.example</author><category>boats</category>".to_owned();
    let notes = |numbers, session: &str| notes(numbers, &format!("?sid={session}"), same);
    let mut gate = Gate::new().await;
    gate.take(&rss(&notes(1..6, "a"))).await;
    for (numbers, session, new) in [(1..6, "b", 0), (2..7, "c", 1), (2..7, "d", 0)] {
        let events = settled(&mut gate, &notes(numbers, session)).await;
        assert_eq!(created(&events), new, "{session}: {events:?}");
    }
    assert_eq!(count(&gate).await, 6);
}

#[tokio::test]
async fn who_wrote_notes_without_titles_or_what_they_are_about_is_no_row() {
    let town = |n| {
        let name = ["Aarau", "Basel", "Chur"][(n % 3) as usize];
        format!("<category>A town by the name of {name}</category>")
    };
    let mut gate = Gate::new().await;
    gate.take(&rss(&notes(1..4, "", town))).await;
    let events = settled(&mut gate, &notes(4..7, "", town)).await;
    assert!(!events.contains(&Rekeyed), "{events:?}");
    assert_eq!(count(&gate).await, 6);
}

#[tokio::test]
async fn two_equal_titles_or_few_of_many_are_no_row() {
    // Three columns that stand in every issue, among more that is new.
    let issue = |week: u32, columns: usize| -> Vec<Listed> {
        let titles = ["Letters to the editor", "The crossword", "Next week"];
        let columns = titles.iter().take(columns).map(|title| (*title).to_owned());
        let news = (1..=7).map(|at| format!("Report {week} of {at} things that happened"));
        let titles: Vec<String> = news.chain(columns).collect();
        let listed = titles.iter().zip(0u32..).map(|(title, at)| Listed {
            id: format!("urn:issue:{week}:{at}"),
            link: format!("https://notes.example/{week}/{at}"),
            title: title.clone(),
            more: String::new(),
        });
        listed.collect()
    };
    for columns in [2, 3] {
        let mut gate = Gate::new().await;
        for week in 1..4 {
            gate.later(24 * 7).take(&rss(&issue(week, columns))).await;
        }
        let events = gate.store_events().await;
        assert!(!events.contains(&Rekeyed), "{events:?}");
        assert_eq!(count(&gate).await, 3 * (7 + columns));
    }
}

/// Dates tell of an order only where there are several.
#[tokio::test]
async fn one_date_for_all_is_no_row() {
    for (dates, rekeyed) in [(1, 0), (2, 0), (5, 5)] {
        let issue = |week: u32, titles: &[&str]| -> Vec<Listed> {
            let mut items = undated(&numbered(LONG)[..5], |n| format!("urn:issue:{week}:{n}"));
            for ((item, title), at) in items.iter_mut().zip(titles).zip(0..) {
                item.title = (*title).to_owned();
                item.more = format!("<pubDate>{} Mar 2026 10:00:00 GMT</pubDate>", 10 - at % dates);
            }
            items
        };
        let mut gate = Gate::new().await;
        gate.take(&rss(&issue(1, &LONG))).await;
        let events = settled(&mut gate, &issue(2, &SHORT)).await;
        let count = events.iter().filter(|kind| **kind == Rekeyed).count();
        assert_eq!(count, rekeyed, "{dates} dates: {events:?}");
    }
}

#[tokio::test]
async fn short_titles_and_days_are_two_signs_though_the_text_is_another() {
    let dated = |address: fn(u32) -> String, time: &str, text: &str| -> Vec<Listed> {
        let mut items = undated(&numbered(SHORT)[..5], address);
        for (item, day) in items.iter_mut().zip((10..20).rev()) {
            let date = format!("{day} Mar 2026 {}", time.replace("DD", &day.to_string()));
            let text = format!("{text} {day} {}", "of what is told here at some length ".repeat(3));
            item.more = format!("<pubDate>{date}</pubDate><description>{text}</description>");
        }
        items
    };
    let evening = "22:DD:00 GMT";
    for (before, after) in [
        // Midnight in Tokyo.
        ("00:00:00 +0900", "00:00:00 +0900"),
        (evening, "00:00:00 GMT"),
        ("00:00:00 GMT", evening),
    ] {
        let mut gate = Gate::new().await;
        let old = dated(|n| format!("https://notes.example/?p={n}"), before, "Much");
        gate.take(&rss(&old)).await;
        let moved = dated(|n| format!("https://notes.example/archives/{n}"), after, "A part");
        let events = settled(&mut gate, &moved).await;
        let rekeyed = events.iter().filter(|kind| **kind == Rekeyed).count();
        assert_eq!((rekeyed, count(&gate).await), (5, 5), "{after}: {events:?}");
    }
}

#[tokio::test]
async fn what_is_listed_twice_goes_by_another_id_twice() {
    let paper = |number: u32, version: u32, section: &str| Listed {
        id: format!("oai:papers:{number}v{version}"),
        link: format!("https://notes.example/abs/{number}"),
        title: format!("Tides and what they carry, part {number}"),
        more: format!(
            "<description>In this paper, which is number {number}, we show how much of what the \
             water takes away is there again in the evening.</description>\
             <category>{section}</category>"
        ),
    };
    let document = |version: u32| -> Vec<Listed> {
        let of = |section: &'static str| {
            let papers = [250, 251, 252, 253].into_iter();
            papers.map(move |n| paper(n, if n == 251 { version } else { 1 }, section))
        };
        of("physics").chain(of("biology")).collect()
    };
    let mut gate = Gate::new().await;
    gate.take(&rss(&document(1))).await;
    assert_eq!(kinds(&gate.later(1).take(&rss(&document(2))).await), [Rekeyed, Rekeyed]);
    assert_eq!(count(&gate).await, 8);
}
