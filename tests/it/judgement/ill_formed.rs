//! Documents with garbage in them, of a feed that is well-formed else: what was last good is shown
//! until they are seen again.

use super::support::sharing::bounds;
use crate::support::prelude::*;
use tidegate_core::model::EventKind::{self, *};
use tidegate_format::parse::{self, Limits};
use tidegate_judge::record::{self, Peers};

/// Bytes that a broken upload left in the field.
const GARBAGE: &[u8] = b"\xFF\xFE<<&";
/// Bytes that are none of the charset: sync markup can be read, unlike that of a document whose tags are hit.
const BYTES: &[u8] = b"\xFF\xFE";

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
fn hit(text: &str, mark: &str, garbage: &[u8]) -> Vec<u8> {
    let at = text.find(mark).unwrap() + mark.len();
    [&text.as_bytes()[..at], garbage, &text.as_bytes()[at..]].concat()
}

/// What happens by a document an hour later.
async fn reads(gate: &mut Gate, document: impl AsRef<[u8]>) -> Vec<EventKind> {
    kinds(&gate.later(1).take_bytes(document.as_ref()).await)
}

async fn shown(gate: &Gate) -> Vec<String> {
    let items = gate.items(Select::Current).await;
    items.into_iter().map(|item| item.shared.winner.data.xml.to_string()).collect()
}

/// Damage behind any of the marks of a good document costs nothing that is shown.
async fn waits(good: &str, garbage: &[u8], marks: [&str; 4]) {
    let mut gate = Gate::new().await;
    assert_eq!(reads(&mut gate, good).await, [Created; 3]);
    let before = shown(&gate).await;
    for mark in marks {
        let verdict = gate.later(1).take_bytes(&hit(good, mark, garbage)).await;
        assert_eq!(kinds(&verdict), [], "{mark}");
        assert!(verdict.doubt.is_some() && verdict.decision_due.is_some(), "{mark}");
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
    let marks = ["<content:enc", "<description>Short 1", "<guid>https://exam", "Größe: th"];
    waits(&good, GARBAGE, marks).await;
    let good = sharing(&[("one", 1), ("two", 1), ("three", 1)], 1);
    let marks = ["<description>Short 1", "<guid>https://exam", "Größe: th", "sync id=\"x"];
    waits(&good, BYTES, marks).await;
}

#[tokio::test]
async fn a_second_look_believes_what_is_still_there() {
    let mut gate = Gate::new().await;
    let good = feed(&["one", "two", "three"]);
    gate.take(&good).await;
    let bad = hit(&good, "Größe: th", GARBAGE);
    let verdict = gate.take_bytes(&bad).await;
    assert_eq!(kinds(&verdict), []);
    assert!(verdict.decision_due.is_some());
    let verdict = gate.later(1).take_bytes(&bad).await;
    assert_eq!((kinds(&verdict), verdict.doubt), (vec![Updated], None));
    // It stays UTF-8: no other item became another.
    assert!(shown(&gate).await.iter().all(|xml| xml.contains("Größe")));
}

/// Reads documents an hour apart; what is to happen by each.
async fn reads_all<const N: usize>(good: &str, next: [(Vec<u8>, &[EventKind]); N]) -> Gate {
    let mut gate = Gate::new().await;
    gate.take(good).await;
    for (n, (document, events)) in next.into_iter().enumerate() {
        assert_eq!(reads(&mut gate, document).await, events, "document {n}");
    }
    gate
}

#[tokio::test]
async fn an_edit_beside_the_garbage_waits_for_the_second_document() {
    let edited = feed(&["one", "two, edited"]);
    // Another garbage: what was seen twice is believed, what was not is not.
    let next = [
        (hit(&edited, "<title>Post 0", GARBAGE), &[][..]),
        (hit(&edited, "Short 0", GARBAGE), &[Updated]),
        (edited.into(), &[]),
    ];
    reads_all(&feed(&["one", "two"]), next).await;
}
#[tokio::test]
async fn what_is_new_in_an_ill_formed_document_comes_at_once() {
    let mut gate = Gate::new().await;
    gate.take(&feed(&["one", "two"])).await;
    let verdict = gate.later(1).take(&feed(&["one", "two", "fish & chips"])).await;
    assert_eq!((kinds(&verdict), verdict.doubt), (vec![Created], None));
    // An entry whose bytes are lost is no news before it is seen again.
    let bytes = hit(&feed(&["one", "two", "fish & chips", "caf"]), "caf", b"\xE9");
    assert_eq!(reads(&mut gate, &bytes).await, []);
    assert_eq!(reads(&mut gate, &bytes).await, [Created]);
}

#[tokio::test]
async fn a_feed_that_is_always_ill_formed_is_believed_at_once() {
    let edited = feed(&["one, edited", "fish & chips"]);
    // Not so where it is ill-formed in another way than always.
    let other = hit(&edited, "<content:enc", GARBAGE);
    reads_all(&feed(&["one", "fish & chips"]), [(edited.into(), &[Updated][..]), (other, &[])])
        .await;
    // The same of one that shares.
    let edited = sharing(&[("one, edited", 2), ("fish & chips", 1)], 2);
    let good = sharing(&[("one", 1), ("fish & chips", 1)], 1);
    reads_all(&good, [(edited.into(), &[Updated][..])]).await;
}

#[tokio::test]
async fn garbage_takes_nothing_away_even_where_deletions_are_eager() {
    let mut gate = Gate::new().await;
    gate.options.deletions = Deletions::Eager;
    gate.take(&feed(&["one", "two", "three", "four"])).await;
    // Bytes alone: the document is whole, and strict readers refuse it.
    let less = hit(&feed(&["one", "three", "four"]), "Short", b"\xFF");
    assert_eq!(reads(&mut gate, less).await, []);
    assert_eq!(shown(&gate).await.len(), 4);
}
#[tokio::test]
async fn a_hold_of_an_ill_formed_document_ends_as_any_other() {
    let mut gate = Gate::new().await;
    gate.take(&feed(&["one", "two", "three", "four", "five"])).await;
    let other = feed(&["fish & chips", "two!", "three!", "four!", "five!"]);
    let mut updated = 0;
    for _ in 0..6 {
        updated += reads(&mut gate, &other).await.len();
    }
    assert_eq!(updated, 5);
    assert_eq!(gate.store_state().await.hold, None);
}

/// The same feed of a publisher who shares: each item with its number of updates.
fn sharing(items: &[(&str, u32)], until: u32) -> String {
    let words: Vec<&str> = items.iter().map(|(words, _)| *words).collect();
    let root = "<rss xmlns:sx=\"http://www.microsoft.com/schemas/sse\" ";
    let mut text = feed(&words).replacen("<rss ", root, 1);
    for (number, (_, updates)) in items.iter().enumerate() {
        let history = format!(
            "<sx:sync id=\"x.{number}\" updates=\"{updates}\"><sx:history sequence=\"{updates}\" \
             when=\"2026-01-01T00:00:{updates:02}Z\" by=\"x\"/></sx:sync>"
        );
        let title = format!("<title>Post {number}<");
        text = text.replacen(&title, &format!("{history}{title}"), 1);
    }
    text.replacen("<item>", &format!("{}<item>", bounds("000", &format!("{until:03}"))), 1)
}

#[tokio::test]
async fn an_edit_that_is_shared_comes_at_the_second_look() {
    let mut gate = Gate::new().await;
    gate.take(&sharing(&[("one", 1), ("two", 1)], 1)).await;
    assert_eq!(gate.until().await, "001");
    let edited = sharing(&[("one", 1), ("two, edited", 2), ("new", 1)], 2);
    let bad = hit(&edited, "<title>Post 0", BYTES);
    // What is new is taken at once, and its publisher is not known up to here yet.
    assert_eq!(reads(&mut gate, &bad).await, [Created]);
    assert_eq!(gate.until().await, "001");
    // The same document once more: what was seen twice is believed.
    assert_eq!(reads(&mut gate, &bad).await, [Updated]);
    assert_eq!(gate.until().await, "002");
    let again = |until| sharing(&[("one", 1), ("two, again", 3), ("new", 1)], until);
    assert_eq!(reads(&mut gate, hit(&again(3), "<title>Post 0", BYTES)).await, []);
    // Another garbage: by what it says.
    assert_eq!(reads(&mut gate, hit(&again(4), "Short 0", BYTES)).await, [Updated]);
}

#[tokio::test]
async fn a_deletion_that_is_shared_in_an_ill_formed_document_waits() {
    let deleted = sharing(&[("one", 1), ("two", 2)], 2)
        .replace("id=\"x.1\" updates=\"2\"", "id=\"x.1\" updates=\"2\" deleted=\"true\"");
    let bad = hit(&deleted, "<title>Post 0", BYTES);
    reads_all(&sharing(&[("one", 1), ("two", 1)], 1), [(bad.clone(), &[][..]), (bad, &[Deleted])])
        .await;
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
        let peers = Peers { complete: Some(&complete), issued: None };
        let prints = BodyPrints { wire: body, body };
        let observation = gate.observation(Some(&snapshot));
        let verdict = record::take_in_shared(&observation, &document, &peers, prints).unwrap();
        gate.commit(&verdict).await;
        assert_eq!(kinds(&verdict), expected);
        assert_eq!(verdict.doubt.is_some(), expected.is_empty());
        // It must be read again, for its publisher is not known up to here.
        assert_eq!(gate.until().await, "001");
    }
}
