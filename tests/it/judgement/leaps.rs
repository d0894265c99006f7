//! A wall clock that leaps, by years: what waits goes on waiting for as long as it would have, and no
//! longer. Each story is told once with a clock that is right, and comes out alike whatever that does.

use crate::judgement::days;
use crate::support::{Gate, Post, post};
use tidegate_core::model::{Deletions, EventKind, EventKind::*};
use tidegate_judge::record::Verdict;

const YEAR: i64 = 365 * 86_400;

/// How far the wall clock is ahead at each step; beyond the last one it stays.
const LEADS: [&[i64]; 5] = [
    &[0, 0, YEAR],
    &[0, 0, -YEAR],
    &[0, 0, 0, 40 * YEAR, 0],
    &[0, 0, 0, -40 * YEAR, 0],
    &[YEAR, 0, YEAR, -YEAR, 0, 7 * YEAR],
];

/// What came of a step: events, whether the document is held, and in how many seconds another look can
/// decide.
type Step = (Vec<EventKind>, bool, Option<i64>);

struct Story {
    gate: Gate,
    leads: &'static [i64],
    steps: Vec<Step>,
}

impl Story {
    async fn new(leads: &'static [i64]) -> Self {
        Self { gate: Gate::new().await, leads, steps: Vec::new() }
    }

    fn leap(&mut self) {
        let lead = self.leads.get(self.steps.len()).or(self.leads.last());
        self.gate.lead = lead.copied().unwrap_or_default();
    }

    fn note(&mut self, verdict: &Verdict) {
        let kinds = verdict.events().iter().map(|event| event.kind).collect();
        let soon = verdict.look_again.map(|at| at.unix() - self.gate.wall().unix());
        self.steps.push((kinds, verdict.held.is_some(), soon));
    }

    /// So many hours later the publisher has these posts.
    async fn posts(&mut self, hours: i64, posts: &[Post]) {
        self.gate.later(hours);
        self.leap();
        let verdict = self.gate.posts(posts).await;
        self.note(&verdict);
    }

    /// So many hours later it has the same as before.
    async fn same(&mut self, hours: i64) {
        self.gate.later(hours);
        self.leap();
        let verdict = self.gate.same().await;
        self.note(&verdict);
    }

    fn has(&self, kind: EventKind) -> bool {
        self.steps.iter().any(|(kinds, ..)| kinds.contains(&kind))
    }
}

/// Tells a story by each clock; the steps by the right one.
async fn alike(tell: impl AsyncFn(&mut Story)) -> Vec<Step> {
    let mut right = Story::new(&[]).await;
    tell(&mut right).await;
    for leads in LEADS {
        let mut story = Story::new(leads).await;
        tell(&mut story).await;
        assert_eq!(story.steps, right.steps, "{leads:?}");
    }
    right.steps
}

#[tokio::test]
async fn a_missing_item_is_deleted_when_it_was_missing_for_a_day() {
    let steps = alike(async |story: &mut Story| {
        story.posts(0, &days(1..=8)).await;
        let mut without = days(1..=8);
        without.remove(3);
        story.posts(1, &without).await;
        for hours in [1, 1, 1, 8, 12] {
            assert!(!story.has(Deleted));
            story.same(hours).await;
        }
        story.same(2).await;
        assert!(story.has(Deleted));
    })
    .await;
    assert!(steps[1..6].iter().all(|(_, _, soon)| soon.is_some()), "{steps:?}");
}

#[tokio::test]
async fn a_held_document_is_believed_when_it_stood_long_enough() {
    alike(async |story: &mut Story| {
        story.posts(0, &days(1..=8)).await;
        for hours in [1, 1, 1, 1, 24, 24, 24, 24, 24, 24, 24] {
            story.posts(hours, &days(8..=8)).await;
        }
        let held: Vec<bool> = story.steps.iter().map(|(_, held, _)| *held).collect();
        assert!(held[1..5].iter().all(|held| *held), "{held:?}");
        assert_eq!(held.last(), Some(&false), "{held:?}");
    })
    .await;
}

#[tokio::test]
async fn a_day_admits_so_many_versions_and_the_next_one_more() {
    alike(async |story: &mut Story| {
        story.gate.versions_per_day = 3;
        let mut posts = days(1..=8);
        story.posts(0, &posts).await;
        for (hours, word) in [1, 1, 1, 1, 5, 10].into_iter().zip(["a", "b", "c", "d", "e", "f"]) {
            posts[2].text = format!("All is told anew: {word}.");
            story.posts(hours, &posts).await;
        }
        story.same(2).await;
        story.same(5).await;
        let updated = |steps: &[Step]| steps.iter().filter(|step| step.0 == [Updated]).count();
        assert_eq!(story.steps.last().unwrap().0, [Updated], "what waited comes out");
        assert!(updated(&story.steps) < 7, "{:?}", story.steps);
    })
    .await;
}

#[tokio::test]
async fn what_was_learned_of_noise_is_not_forgotten_at_once() {
    alike(async |story: &mut Story| {
        let mut posts = days(1..=8);
        story.posts(0, &posts).await;
        for views in 1..=8 {
            posts[3].title = format!("The story of day 5 ({views} views)");
            story.posts(2, &posts).await;
        }
        assert!(story.steps[5..].iter().all(|(kinds, ..)| kinds.is_empty()), "{:?}", story.steps);
        // When it rests, its last state comes out.
        for _ in 0..12 {
            story.same(24).await;
        }
        assert!(
            story.steps[9..].iter().any(|(kinds, ..)| *kinds == [Updated]),
            "{:?}",
            story.steps
        );
    })
    .await;
}

#[tokio::test]
async fn who_is_in_a_hurry_is_told_at_once() {
    alike(async |story: &mut Story| {
        story.gate.options.deletions = Deletions::Eager;
        story.posts(0, &days(1..=8)).await;
        let mut without = days(1..=8);
        without.remove(3);
        story.posts(1, &without).await;
        story.posts(1, &days(1..=8)).await;
        without = days(2..=9);
        without.push(post(1));
        story.posts(1, &without).await;
        assert!(story.has(Deleted) && story.has(Undeleted));
    })
    .await;
}
