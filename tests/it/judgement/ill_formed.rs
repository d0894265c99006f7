//! Documents with garbage in them, of a feed that is well-formed else: what was last good is shown
//! until they are seen again.

use super::support::{Gate, kinds};
use tidegate_core::model::EventKind::*;
use tidegate_core::model::{BodyPrints, Flaw};
use tidegate_format::parse::{self, Limits};
use tidegate_judge::record::{self, Peers};
use tidegate_store::Select;

/// Bytes that a broken upload left in the field.
const GARBAGE: &[u8] = b"\xFF\xFE<<&";

fn feed(items: &[&str]) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss version=\"2.0\" \
         xmlns:content=\"http://purl.org/rss/1.0/modules/content/\"><channel><title>Müller</title>\
         <link>https://example.org/</link><description>d</description>\n"
        .to_owned();
    for (number, words) in items.iter().enumerate().rev() {
        text.push_str(&format!(
            "<item><title>Post {number}</title><link>https://example.org/{number}</link>\
             <guid>https://example.org/{number}</guid><description>Short {number}</description>\
             <content:encoded>Größe: {words}</content:encoded></item>\n"
        ));
    }
    text + "</channel></rss>\n"
}

/// The document with garbage behind the first `mark`.
fn hit(text: &str, mark: &str) -> Vec<u8> {
    let at = text.find(mark).unwrap() + mark.len();
    [&text.as_bytes()[..at], GARBAGE, &text.as_bytes()[at..]].concat()
}

async fn shown(gate: &Gate) -> Vec<String> {
    let items = gate.items(Select::Current).await;
    items.into_iter().map(|item| item.shared.winner.data.xml.to_string()).collect()
}

/// Damage behind any of the marks of a good document costs nothing that is shown.
async fn waits(good: &str, damage: fn(&str, &str) -> Vec<u8>, marks: [&str; 4]) {
    let mut gate = Gate::new().await;
    assert_eq!(kinds(&gate.take(good).await), [Created; 3]);
    let before = shown(&gate).await;
    for mark in marks {
        let verdict = gate.later(1).take_bytes(&damage(good, mark)).await;
        assert_eq!(kinds(&verdict), [], "{mark}");
        assert!(verdict.doubt.is_some() && verdict.look_again.is_some(), "{mark}");
        assert_eq!(verdict.change.and_then(|change| change.tick), None, "{mark}");
        assert_eq!(shown(&gate).await, before, "{mark}");
    }
    let verdict = gate.later(1).take(good).await;
    assert_eq!((kinds(&verdict), verdict.doubt), (vec![], None));
    assert_eq!(shown(&gate).await, before);
}

#[tokio::test]
async fn a_tag_or_a_character_that_is_hit_costs_no_item_its_text() {
    let good = feed(&["one", "two", "three"]);
    waits(&good, hit, ["<content:enc", "<description>Short 1", "<guid>https://exam", "Größe: th"])
        .await;
    let good = sharing(&[("one", 1), ("two", 1), ("three", 1)], 1);
    waits(&good, hurt, ["<description>Short 1", "<guid>https://exam", "Größe: th", "sync id=\"x"])
        .await;
}

#[tokio::test]
async fn a_second_look_believes_what_is_still_there() {
    let mut gate = Gate::new().await;
    let good = feed(&["one", "two", "three"]);
    gate.take(&good).await;
    let bad = hit(&good, "Größe: th");
    let verdict = gate.take_bytes(&bad).await;
    assert_eq!(kinds(&verdict), []);
    assert!(verdict.look_again.is_some());
    let verdict = gate.later(1).take_bytes(&bad).await;
    assert_eq!((kinds(&verdict), verdict.doubt), (vec![Updated], None));
    // It stays UTF-8: no other item became another.
    assert!(shown(&gate).await.iter().all(|xml| xml.contains("Größe")));
}

#[tokio::test]
async fn an_edit_beside_the_garbage_waits_for_the_second_document() {
    let mut gate = Gate::new().await;
    gate.take(&feed(&["one", "two"])).await;
    let edited = feed(&["one", "two, edited"]);
    gate.later(1);
    assert_eq!(kinds(&gate.take_bytes(&hit(&edited, "<title>Post 0")).await), []);
    gate.later(1);
    // Another garbage: what was seen twice is believed, what was not is not.
    assert_eq!(kinds(&gate.take_bytes(&hit(&edited, "Short 0")).await), [Updated]);
    gate.later(1);
    assert_eq!(kinds(&gate.take(&edited).await), []);
}

#[tokio::test]
async fn what_is_new_in_an_ill_formed_document_comes_at_once() {
    let mut gate = Gate::new().await;
    gate.take(&feed(&["one", "two"])).await;
    gate.later(1);
    let new = feed(&["one", "two", "fish & chips"]);
    let verdict = gate.take(&new).await;
    assert_eq!((kinds(&verdict), verdict.doubt), (vec![Created], None));
    // An entry whose bytes are lost is no news before it is seen again.
    gate.later(1);
    let newer = feed(&["one", "two", "fish & chips", "caf"]);
    let mut bytes = newer.into_bytes();
    let at = bytes.windows(3).position(|window| window == b"caf").unwrap() + 3;
    bytes.insert(at, 0xE9);
    assert_eq!(kinds(&gate.take_bytes(&bytes).await), []);
    gate.later(1);
    assert_eq!(kinds(&gate.take_bytes(&bytes).await), [Created]);
}

#[tokio::test]
async fn a_feed_that_is_always_ill_formed_is_believed_at_once() {
    let mut gate = Gate::new().await;
    gate.take(&feed(&["one", "fish & chips"])).await;
    gate.later(1);
    assert_eq!(kinds(&gate.take(&feed(&["one, edited", "fish & chips"])).await), [Updated]);
    // Not so where it is ill-formed in another way than always.
    gate.later(1);
    let bad = hit(&feed(&["one, edited", "fish & chips"]), "<content:enc");
    assert_eq!(kinds(&gate.take_bytes(&bad).await), []);
    // The same of one that shares.
    let mut gate = Gate::new().await;
    gate.take(&sharing(&[("one", 1), ("fish & chips", 1)], 1)).await;
    gate.later(1);
    let edited = sharing(&[("one, edited", 2), ("fish & chips", 1)], 2);
    assert_eq!(kinds(&gate.take(&edited).await), [Updated]);
}

#[tokio::test]
async fn garbage_takes_nothing_away_even_where_deletions_are_eager() {
    let mut gate = Gate::new().await;
    gate.options.deletions = tidegate_core::model::Deletions::Eager;
    let good = feed(&["one", "two", "three", "four"]);
    gate.take(&good).await;
    // Bytes alone: the document is whole, and strict readers refuse it.
    let mut less = feed(&["one", "three", "four"]).into_bytes();
    let at = less.windows(5).position(|window| window == b"Short").unwrap();
    less[at] = 0xFF;
    gate.later(1);
    assert_eq!(kinds(&gate.take_bytes(&less).await), []);
    assert_eq!(shown(&gate).await.len(), 4);
}

#[tokio::test]
async fn a_hold_of_an_ill_formed_document_ends_as_any_other() {
    let mut gate = Gate::new().await;
    gate.take(&feed(&["one", "two", "three", "four", "five"])).await;
    let other = feed(&["fish & chips", "two!", "three!", "four!", "five!"]);
    let mut updated = 0;
    for _ in 0..6 {
        gate.later(1);
        updated += kinds(&gate.take(&other).await).len();
    }
    assert_eq!(updated, 5);
    assert_eq!(gate.store_state().await.hold, None);
}

/// The same feed of a publisher who shares: each item with its number of updates.
fn sharing(items: &[(&str, u32)], until: u32) -> String {
    let words: Vec<&str> = items.iter().map(|(words, _)| *words).collect();
    let mut text = feed(&words).replacen(
        "<rss ",
        "<rss xmlns:sx=\"http://www.microsoft.com/schemas/sse\" ",
        1,
    );
    for (number, (_, updates)) in items.iter().enumerate() {
        let history = format!(
            "<sx:sync id=\"x.{number}\" updates=\"{updates}\"><sx:history sequence=\"{updates}\" \
             when=\"2026-01-01T00:00:{updates:02}Z\" by=\"x\"/></sx:sync>"
        );
        let title = format!("<title>Post {number}<");
        text = text.replacen(&title, &format!("{history}{title}"), 1);
    }
    let sharing = format!("<sx:sharing since=\"000\" until=\"{until:03}\"/><item>");
    text.replacen("<item>", &sharing, 1)
}

/// The document with bytes that are none of its charset behind the first `mark`: its sync markup can be
/// read, unlike that of a document whose tags are hit.
fn hurt(text: &str, mark: &str) -> Vec<u8> {
    let at = text.find(mark).unwrap() + mark.len();
    [&text.as_bytes()[..at], b"\xFF\xFE", &text.as_bytes()[at..]].concat()
}

#[tokio::test]
async fn an_edit_that_is_shared_comes_at_the_second_look() {
    let mut gate = Gate::new().await;
    gate.take(&sharing(&[("one", 1), ("two", 1)], 1)).await;
    let until = |state: tidegate_core::model::FeedState| state.upstream_until;
    assert_eq!(until(gate.store_state().await).as_deref(), Some("001"));
    let edited = sharing(&[("one", 1), ("two, edited", 2), ("new", 1)], 2);
    gate.later(1);
    let bad = hurt(&edited, "<title>Post 0");
    // What is new is taken at once, and its publisher is not known up to here yet.
    assert_eq!(kinds(&gate.take_bytes(&bad).await), [Created]);
    assert_eq!(until(gate.store_state().await).as_deref(), Some("001"));
    gate.later(1);
    // The same document once more: what was seen twice is believed.
    assert_eq!(kinds(&gate.take_bytes(&bad).await), [Updated]);
    assert_eq!(until(gate.store_state().await).as_deref(), Some("002"));
    gate.later(1);
    let other = hurt(&sharing(&[("one", 1), ("two, again", 3), ("new", 1)], 3), "<title>Post 0");
    assert_eq!(kinds(&gate.take_bytes(&other).await), []);
    gate.later(1);
    // Another garbage: by what it says.
    let other = hurt(&sharing(&[("one", 1), ("two, again", 3), ("new", 1)], 4), "Short 0");
    assert_eq!(kinds(&gate.take_bytes(&other).await), [Updated]);
}

#[tokio::test]
async fn a_deletion_that_is_shared_in_an_ill_formed_document_waits() {
    let mut gate = Gate::new().await;
    gate.take(&sharing(&[("one", 1), ("two", 1)], 1)).await;
    let deleted = sharing(&[("one", 1), ("two", 2)], 2)
        .replace("id=\"x.1\" updates=\"2\"", "id=\"x.1\" updates=\"2\" deleted=\"true\"");
    let bad = hurt(&deleted, "<title>Post 0");
    gate.later(1);
    assert_eq!(kinds(&gate.take_bytes(&bad).await), []);
    gate.later(1);
    assert_eq!(kinds(&gate.take_bytes(&bad).await), [Deleted]);
}

#[tokio::test]
async fn what_an_ill_formed_complete_feed_says_waits() {
    let mut gate = Gate::new().await;
    gate.take(&sharing(&[("one", 1), ("two", 1)], 1)).await;
    let edited = sharing(&[("one", 1), ("two, edited", 2)], 2);
    for (until, expected) in [(2, vec![]), (3, vec![Updated])] {
        gate.later(1);
        let limits = Limits::default();
        let text = sharing(&[("one", 1), ("two", 1)], until);
        let mut document = parse::document(&text, None, &limits).unwrap();
        document.charset = Some("UTF-8");
        let mut complete = parse::document(&edited, None, &limits).unwrap();
        complete.flaws.insert(Flaw::Bytes);
        let snapshot = gate.snapshot().await;
        let body = u128::from(until);
        let verdict = gate.with_round(Some(&snapshot), |round| {
            let peers = Peers { complete: Some(&complete), issued: None };
            let prints = BodyPrints { wire: body, body };
            record::take_in_shared(round, &document, &peers, prints).unwrap()
        });
        gate.commit(&verdict).await;
        assert_eq!(kinds(&verdict), expected);
        assert_eq!(verdict.doubt.is_some(), expected.is_empty());
        // It must be read again, for its publisher is not known up to here.
        assert_eq!(gate.store_state().await.upstream_until.as_deref(), Some("001"));
    }
}
