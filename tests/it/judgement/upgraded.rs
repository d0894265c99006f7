//! A store of before all references by name were resolved: nothing of it makes a version because they
//! are now.

use super::support::{Gate, kinds};
use tidegate::model::EventKind::*;
use tidegate::parse::{self, Limits};

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

/// A gateway as it was: it read `&middot;` as the words that are written there. What an item looks
/// like to it, another looks like now that has an `&amp;` in it.
struct Old(Gate);

impl Old {
    async fn new() -> Self {
        let mut gate = Gate::new().await;
        gate.few_references = true;
        Self(gate)
    }

    async fn take(
        &mut self,
        items: &[(&str, &str)],
        stamp: u32,
    ) -> Vec<tidegate::model::EventKind> {
        let items: Vec<(&str, String)> =
            items.iter().map(|(id, html)| (*id, as_words(html))).collect();
        let items: Vec<(&str, &str)> =
            items.iter().map(|(id, html)| (*id, html.as_str())).collect();
        self.0.later(1);
        kinds(&self.0.take(&feed(&items, stamp)).await)
    }

    /// The program is another from now on, and its store is the same.
    fn upgraded(mut self) -> Gate {
        self.0.few_references = false;
        self.0
    }
}

fn as_words(html: &str) -> String {
    ["middot", "iacute", "raquo"].iter().fold(html.to_owned(), |html, name| {
        html.replace(&format!("&{name};"), &format!("&amp;{name};"))
    })
}

async fn takes(
    gate: &mut Gate,
    items: &[(&str, &str)],
    stamp: u32,
) -> Vec<tidegate::model::EventKind> {
    gate.later(1);
    kinds(&gate.take(&feed(items, stamp)).await)
}

#[tokio::test]
async fn what_nobody_changed_makes_no_version() {
    let items = [("a", "ma&iacute;z &middot; one"), ("b", "caf&eacute; &raquo; two")];
    let mut old = Old::new().await;
    assert_eq!(old.take(&items, 1).await, [Created; 2]);
    let mut gate = old.upgraded();
    assert_eq!(takes(&mut gate, &items, 2).await, []);
    assert!(gate.snapshot().await.known.iter().all(|known| !known.noise.few_references));
    // From now on it is known for what it says.
    let said = [("a", "maíz · one"), ("b", "café » two")];
    assert_eq!(takes(&mut gate, &said, 3).await, []);
    let other = [("a", "ma&amp;iacute;z · one"), ("b", "café » three")];
    assert_eq!(takes(&mut gate, &other, 4).await, [Updated; 2]);
}

#[tokio::test]
async fn what_waits_long_for_its_look_makes_no_version_either() {
    let items = [("a", "ma&iacute;z &middot; one"), ("b", "two"), ("c", "three")];
    let mut old = Old::new().await;
    old.take(&items, 1).await;
    let mut gate = old.upgraded();
    // It leaves at the old end, and comes back.
    gate.later(24);
    takes(&mut gate, &items[..2], 1).await;
    assert_eq!(takes(&mut gate, &items[..2], 2).await, []);
    let mut edited = items;
    edited[0].1 = "ma&iacute;z &middot; one, edited";
    assert_eq!(takes(&mut gate, &edited[..2], 2).await, [Updated]);
}

#[tokio::test]
async fn a_counter_that_never_rests_stays_so() {
    let text = |count: u32| format!("<b>ma&iacute;z</b> sold &middot; {count} views");
    let mut old = Old::new().await;
    for count in 1..7 {
        old.take(&[("a", &text(count)), ("b", "other")], 1).await;
    }
    let mut gate = old.upgraded();
    for count in 7..12 {
        assert_eq!(
            takes(&mut gate, &[("a", &text(count)), ("b", "other")], 1).await,
            [],
            "{count}"
        );
    }
    let words = [("a", "<b>ma&iacute;z</b> bought &middot; 12 views"), ("b", "other")];
    assert_eq!(takes(&mut gate, &words, 1).await, [Updated]);
}

#[tokio::test]
async fn what_all_items_share_holds_for_new_ones() {
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let items = |from: usize, count: u32| -> Vec<(&str, String)> {
        let count = |at: usize| count * 7 + u32::try_from(at).unwrap();
        let text = |at| format!("Post {} &middot; {} points", ids[at], count(at));
        (from..ids.len()).map(|at| (ids[at], text(at))).collect()
    };
    let borrowed = |items: &[(&'static str, String)]| -> Vec<(&'static str, &'static str)> {
        items.iter().map(|(id, text)| (*id, &*text.clone().leak())).collect()
    };
    let mut old = Old::new().await;
    for count in 1..8 {
        old.take(&borrowed(&items(2, count)), 1).await;
    }
    assert!(old.0.store_state().await.noise.spans.iter().any(|span| span.in_force()));
    let mut gate = old.upgraded();
    assert_eq!(takes(&mut gate, &borrowed(&items(1, 8)), 1).await, [Created]);
    for count in 9..14 {
        assert_eq!(takes(&mut gate, &borrowed(&items(1, count)), 1).await, [], "{count}");
    }
    assert_eq!(takes(&mut gate, &borrowed(&items(0, 14)), 1).await, [Created]);
    assert_eq!(takes(&mut gate, &borrowed(&items(0, 15)), 1).await, []);
}

#[tokio::test]
async fn a_field_that_goes_back_and_forth_goes_on_so() {
    let both = ["ma&iacute;z is cheap", "ma&iacute;z is dear &middot; buy"];
    let mut old = Old::new().await;
    let mut told = Vec::new();
    for turn in 0..8 {
        told.push(old.take(&[("a", both[turn % 2]), ("b", "other")], 1).await.len());
    }
    assert_eq!(told[5..], [0, 0, 0], "{told:?}");
    let mut gate = old.upgraded();
    for turn in 8..12 {
        let items = [("a", both[turn % 2]), ("b", "other")];
        assert_eq!(takes(&mut gate, &items, 1).await, [], "{turn}");
    }
}

/// What was renamed is known by its text, in whichever way that was read.
#[test]
fn an_item_is_found_again_by_its_text() {
    let prints = |html: &str| {
        let text = feed(&[("a", html)], 1);
        let document = parse::document(&text, None, &Limits::default()).unwrap();
        tidegate::diff::text_prints(&document.entries[0])
    };
    let text = "ma&iacute;z &middot; a text that is long enough to say which post of all posts it is, \
                and that no other has";
    let all = text.replace("&iacute;", "í").replace("&middot;", "·");
    for known in [prints(&as_words(text)), prints(&all)] {
        assert!(!known.is_empty() && known.iter().all(|print| prints(text).contains(print)));
    }
}

/// Items of collections had no shape of their own before.
#[tokio::test]
async fn an_item_of_a_collection_makes_no_version_for_its_shape() {
    let json = |stamp: u32, rank: u32| {
        format!(
            "{{\"sharing\":{{\"since\":\"a\",\"until\":\"b\"}},\"items\":[{{\"title\":\"t\",\
             \"id\":\"urn:x:1\",\"colour\":\"{rank}\",\"published\":\"2026-01-01T00:00:{stamp:02}Z\"}}]}}"
        )
    };
    let pox = |stamp: u32, rank: u32| {
        format!(
            "<collection xmlns:sx=\"http://feedsync.org/2007/feedsync\"><sx:sharing since=\"a\" \
             until=\"b\"/><item><title>t</title><guid>urn:x:1</guid><colour>{rank}</colour>\
             <published>2026-01-01T00:00:{stamp:02}Z</published></item></collection>"
        )
    };
    let member =
        "<json:member xmlns:json=\"urn:tidegate:json\" name=\"colour\">\"7\"</json:member>";
    for (text, other, edited, instead) in
        [(json(1, 7), json(2, 7), json(3, 8), member), (pox(1, 7), pox(2, 7), pox(3, 8), "")]
    {
        let mut gate = Gate::new().await;
        gate.few_references = true;
        let atom = tidegate::parse::collection::transcoded(&text).unwrap().unwrap();
        let (before, rest) = atom.split_once("<shape:").unwrap();
        let (_, after) = rest.rsplit_once("</shape:").unwrap();
        let (_, after) = after.split_once('>').unwrap();
        assert_eq!(kinds(&gate.take(&format!("{before}{instead}{after}")).await), [Created]);
        gate.few_references = false;
        gate.later(1);
        assert_eq!(kinds(&gate.take(&other).await), [], "{text}");
        gate.later(1);
        assert_eq!(kinds(&gate.take(&edited).await), [Updated], "{text}");
    }
}
