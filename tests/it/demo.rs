//! The demonstration: within its first steps it tells each thing that the product is for, and each line is
//! true of the address that it names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate::app::{Demo, DemoOptions, Outside};
use tidegate::demo::{ALL_SHOWN_AT, StoryKind, StoryLine};
use tidegate_core::clock::{Clock as _, ManualClock};
use tidegate_core::model::{Decision, FeedName, Time};

const START: Time = Time::from_unix(1_795_191_605);
const EVERY: Duration = Duration::from_secs(4);
const FEEDS: [&str; 3] = ["lighthouse", "harbour", "pilots"];

/// A demonstration whose publisher goes on as soon as the gateway has read it.
struct Stage {
    demo: Demo,
    clock: ManualClock,
    step: u32,
}

impl Stage {
    async fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let clock = ManualClock::at(START);
        let outside = Outside { clock: Arc::new(clock.clone()), ..Outside::default() };
        let listen = "127.0.0.1:0".parse().unwrap();
        let options = DemoOptions { listen, data: None, every: EVERY, has_colour: false };
        Self { demo: Demo::start(&options, outside).await.unwrap(), clock, step: 0 }
    }

    /// Everything is read at this step, and the next one comes; what was told of it.
    async fn step(&mut self) -> Vec<StoryLine> {
        for feed in FEEDS {
            let polled = self.demo.gateway().operator().poll_now(&name(feed)).await.unwrap();
            assert_eq!(polled.error, None, "{feed} at step {}", self.step);
        }
        let told = self.demo.look().await;
        self.step += 1;
        self.clock.set(self.clock.now().plus(EVERY));
        self.demo.publish(self.step);
        told
    }

    async fn get(&self, address: &str) -> String {
        let answer = reqwest::get(address).await.unwrap();
        assert!(answer.status().is_success(), "{address}: {}", answer.status());
        answer.text().await.unwrap()
    }

    async fn reader(&self, feed: &str) -> String {
        self.get(&format!("{}/feeds/{feed}", self.demo.address())).await
    }
}

fn name(feed: &str) -> FeedName {
    FeedName::new(feed).unwrap()
}

/// Asks the address of a line, when it was just told, for what the line says.
async fn check(stage: &Stage, line: &StoryLine) {
    let said = line.print(false);
    assert!(line.sentence.ends_with('.') && line.sentence.len() < 300, "{said}");
    if line.kind == StoryKind::EVENTS {
        let mut answer = reqwest::get(&line.address).await.unwrap();
        let first = answer.chunk().await.unwrap().unwrap();
        assert!(first.starts_with(b"retry:"), "{first:?}");
        return;
    }
    let page = stage.get(&line.address).await;
    let has = |part: &str| assert!(page.contains(part), "{said}: no {part:?} in {page}");
    match line.kind {
        StoryKind::NEW => has("Versions"),
        StoryKind::EDIT if line.address.contains("diff=") => has("<ins>"),
        StoryKind::EDIT => has("boat is on the slip"),
        StoryKind::NOISE => has("which is no news"),
        StoryKind::RENAME => {
            has("watch/12</");
            has("new-book/12</");
            // One item, under the name that readers know.
            let reader = stage.reader("lighthouse").await;
            assert_eq!(reader.matches("<id>tag:skerry-rock.example,2026:watch/12</id>").count(), 1);
            assert!(!reader.contains("new-book/12</id>"), "{reader}");
        }
        StoryKind::SCROLL_OFF => has("retired"),
        StoryKind::DELETION => has("tombstone"),
        StoryKind::BROKEN => {
            has("the document is cut");
            assert_eq!(stage.reader("harbour").await.matches("<item>").count(), 10);
        }
        StoryKind::HELD => {
            has("10 of 10 items changed at once");
            assert!(!stage.reader("harbour").await.contains("enable JavaScript"));
            let command = line.command.as_deref().unwrap();
            assert!(command.contains("/api/v1/feeds/harbour/hold"), "{command}");
        }
        StoryKind::CONFLICT => {
            has("Keep the winner");
            has("boat is on the slip");
            has("half past noon");
        }
        StoryKind::SUP => assert!(!page.contains("\"updates\":[]"), "{page}"),
        StoryKind::ALL => has("<svg"),
        _ => {}
    }
}

#[tokio::test]
async fn each_thing_that_the_product_is_for_is_told_in_time_and_true() {
    let mut stage = Stage::new().await;
    let mut kinds: BTreeMap<StoryKind, usize> = BTreeMap::new();
    while stage.step <= ALL_SHOWN_AT {
        let told = stage.step().await;
        for line in &told {
            *kinds.entry(line.kind).or_default() += 1;
            check(&stage, line).await;
        }
    }
    let promised = kinds.keys().filter(|kind| kind.is_promised()).count();
    assert_eq!(promised, StoryKind::PROMISED, "{kinds:?}");
    for (kind, times) in [
        (StoryKind::READ, 3),
        (StoryKind::RENAME, 1),
        (StoryKind::BROKEN, 1),
        (StoryKind::MENDED, 1),
        (StoryKind::HELD, 1),
        (StoryKind::RELEASED, 1),
        (StoryKind::CONFLICT, 1),
        (StoryKind::ALL, 1),
    ] {
        assert_eq!(kinds.get(&kind), Some(&times), "{kind:?} in {kinds:?}");
    }
    stage.demo.stop().await.unwrap();
}

/// The visitor may believe what is held; then it is the repair that says too much at once.
#[tokio::test]
async fn a_visitor_releases_what_is_held() {
    let mut stage = Stage::new().await;
    let mut told = Vec::new();
    while !told.iter().any(|line: &StoryLine| line.kind == StoryKind::HELD) {
        assert!(stage.step <= ALL_SHOWN_AT, "nothing was held");
        told.extend(stage.step().await);
    }
    stage.demo.gateway().operator().hold(&name("harbour"), Decision::Release).await.unwrap();
    let told = stage.step().await;
    let over = told.iter().find(|line| line.kind == StoryKind::RELEASED);
    assert!(over.is_some_and(|line| line.sentence.contains("10 posts were edited")), "{told:?}");
    let is_edit = |line: &&StoryLine| line.kind == StoryKind::EDIT;
    assert!(!told.iter().filter(is_edit).any(|line| line.address.contains("harbour")), "{told:?}");
    assert!(stage.reader("harbour").await.contains("enable JavaScript"));
    stage.demo.stop().await.unwrap();
}
