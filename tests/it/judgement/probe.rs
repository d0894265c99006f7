//! What items' own addresses answered, beside what the documents say.

use crate::support::{Gate, days, kinds};
use tidegate_core::model::{Deletions, EventKind, EventKind::*, Probing};
use tidegate_judge::probe::{self, ProbeEnd, ProbeReply, Replies};
use tidegate_judge::record::Verdict;
use url::Url;

const FEED: &str = "http://publisher.example/feed";

/// A feed whose missing items may be asked for, after a post went from its middle.
async fn with_a_hole() -> Gate {
    let mut gate = Gate::new().await;
    gate.options.probe = Probing::All;
    gate.posts(&days(1..=8)).await;
    let mut without = days(1..=8);
    without.remove(3);
    assert_eq!(kinds(&gate.later(1).posts(&without).await), []);
    gate
}

fn status(asked: &Url, code: u16) -> ProbeReply {
    ProbeReply { asked: asked.clone(), end: ProbeEnd::Status { code, at: asked.clone() } }
}

/// Asks for what is to be asked; every item answers `code`, on a site that works.
pub(super) async fn answer(gate: &mut Gate, code: u16) -> Verdict {
    let snapshot = gate.snapshot().await;
    let plan = probe::plan(&gate.feed, FEED, &gate.options, &snapshot, gate.now, 4).unwrap();
    let made_up = probe::made_up(&plan.items[0].1, 7);
    let items = plan.items.iter().map(|(id, page)| (id.clone(), Some(status(page, code))));
    let replies = Replies {
        listed: status(&plan.listed, 200),
        made_up: Some(status(&made_up, 404)),
        items: items.collect(),
    };
    gate.answered(&replies).await
}

#[tokio::test]
async fn answers_count_for_nothing_where_they_come_too_late_or_deletions_are_off() {
    let mut gate = with_a_hole().await;
    let snapshot = gate.snapshot().await;
    let plan = probe::plan(&gate.feed, FEED, &gate.options, &snapshot, gate.now, 4).unwrap();
    let items = plan.items.iter().map(|(id, page)| (id.clone(), Some(status(page, 404))));
    let listed = status(&plan.listed, 200);
    let replies = Replies { listed, made_up: None, items: items.collect() };
    // It came back while its address was asked.
    gate.posts(&days(1..=8)).await;
    let verdict = gate.answered(&replies).await;
    assert_eq!((kinds(&verdict), verdict.change), (vec![], None));

    let mut gate = with_a_hole().await;
    gate.options.deletions = Deletions::Off;
    let verdict = gate.answered(&replies).await;
    assert!(!kinds(&verdict).contains(&Deleted));
}

#[tokio::test]
async fn what_was_seen_before_the_answer_still_counts() {
    let mut gate = with_a_hole().await;
    gate.later(6).same().await;
    gate.later(6).same().await;
    answer(&mut gate, 503).await;
    let snapshot = gate.snapshot().await;
    let absence = snapshot.known.iter().find_map(|known| known.absence.clone()).unwrap();
    assert_eq!(absence.observations, 3);
    assert_eq!(absence.probe.unwrap().asked, 1);
}

/// A feed of which little is known, after a post came and one went from its middle.
async fn in_doubt() -> Gate {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=8)).await;
    let mut next = days(1..=9);
    next.remove(4);
    assert_eq!(kinds(&gate.later(1).posts(&next).await), [Created]);
    gate
}

async fn questions(gate: &Gate, feed: &str) -> usize {
    let snapshot = gate.snapshot().await;
    let plan = probe::plan(&gate.feed, feed, &gate.options, &snapshot, gate.now, 4);
    plan.map_or(0, |plan| plan.items.len())
}

/// What becomes within four days of a post that is in doubt, on a site that answers 404 for it.
async fn after_four_days(probing: Probing) -> (Vec<EventKind>, usize) {
    let mut gate = in_doubt().await;
    gate.options.probe = probing;
    let (mut said, mut asked) = (Vec::new(), 0);
    for _ in 0..4 * 24 {
        said.extend(kinds(&gate.later(1).same().await));
        if questions(&gate, FEED).await > 0 {
            asked += 1;
            said.extend(kinds(&answer(&mut gate, 404).await));
        }
    }
    (said, asked)
}

#[tokio::test]
async fn what_is_long_in_doubt_is_asked_about_twice_by_default() {
    assert_eq!(after_four_days(Probing::Off).await, (vec![], 0));
    assert_eq!(after_four_days(Probing::default()).await, (vec![Deleted], 2));
}

#[tokio::test]
async fn nothing_is_asked_by_default_that_is_not_long_in_doubt_or_is_private() {
    let mut gate = with_a_hole().await;
    gate.options.probe = Probing::default();
    assert_eq!(questions(&gate, FEED).await, 0, "the documents decide it within a day");
    let mut gate = in_doubt().await;
    gate.later(47);
    assert_eq!(questions(&gate, FEED).await, 0, "the feed may still settle it");
    gate.later(2);
    assert_eq!(questions(&gate, FEED).await, 1);
    assert_eq!(questions(&gate, &format!("{FEED}?token=0123456789abcdef0123")).await, 0);
    gate.options.secret = Some(true);
    assert_eq!(questions(&gate, FEED).await, 0);
}

#[tokio::test]
async fn two_questions_a_day_are_asked_by_default() {
    let mut gate = in_doubt().await;
    // A second one is in doubt a little later.
    let mut next = days(1..=10);
    next.drain(4..6);
    gate.later(1).posts(&next).await;
    gate.later(50);
    let mut asked = Vec::new();
    for hour in 0..30 {
        let now = questions(&gate, FEED).await;
        if now > 0 {
            asked.push((hour, now));
            // A site that says nothing plain.
            answer(&mut gate, 403).await;
        }
        gate.later(1).same().await;
    }
    assert_eq!(asked, [(0, 2), (24, 2)]);
}
