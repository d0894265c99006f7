//! The headline: whatever happens in between, subscribers end with what the gateway knows, and
//! readers see nothing twice, nothing falsely new and nothing vanish that is there.

use crate::e2e::support::{Answer, FEED, Followers, Format, Post, Stage, Subscriber, post};
use crate::support::{Dice, sample};
use std::collections::BTreeSet;

/// What the publisher has in its window, newest first, and what it took out of it.
struct Blog {
    window: Vec<Post>,
    newest: u32,
    taken: Vec<Post>,
    edits: u32,
}

const WINDOW: usize = 12;

impl Blog {
    fn add(&mut self) {
        self.newest += 1;
        self.window.insert(0, post(self.newest));
        self.window.truncate(WINDOW);
    }

    /// One thing that publishers do.
    fn live(&mut self, dice: &mut Dice) {
        let at = usize::try_from(dice.roll(self.window.len() as u64)).unwrap();
        match dice.roll(10) {
            0..=3 => self.add(),
            4..=6 => {
                self.edits += 1;
                self.window[at].text = format!("Edit {} is unlike all others.", self.edits);
            }
            7 if self.window.len() > 6 => {
                let taken = self.window.remove(at);
                self.taken.push(taken);
            }
            8 => {
                if let Some(back) = self.taken.pop() {
                    self.window.push(back);
                    self.window.sort_by_key(|p| std::cmp::Reverse(p.day));
                    self.window.truncate(WINDOW);
                }
            }
            _ => {}
        }
    }
}

/// What is served: the blog, or what goes wrong on the way.
fn answer(format: Format, blog: &Blog, dice: &mut Dice) -> (Answer, bool) {
    let whole = format.document(&blog.window);
    let document = |text: &str| Answer::document(format.media_type(), text);
    match dice.roll(12) {
        0 => (Answer::status(503), false),
        1 => (document(&format.document(&[])), false),
        2 => (document(&whole[..whole.len() * 2 / 3]), false),
        3 => (Answer::document("text/html", "<html><body>Maintenance</body></html>"), false),
        4 => (document(&whole).breaking_after(whole.len() / 2), false),
        _ => (document(&whole), true),
    }
}

/// What came of a story, so that it is known to have told something.
#[derive(Debug, Default)]
struct Told {
    resets: u32,
    deleted: usize,
    undeleted: usize,
    held: usize,
    /// Deltas that were read, and whole documents that were the answer to who asked for one.
    deltas: u32,
    wholes: u32,
}

async fn story(seed: u64, format: Format, feed: &str, told_of: &mut Told) {
    let mut dice = Dice(seed);
    let window = "[publish]\nwindow = \"4d\"\ntombstones = \"4d\"\n";
    let mut stage = Stage::with(format, feed, window).await;
    let mut blog = Blog { window: Vec::new(), newest: 0, taken: Vec::new(), edits: 0 };
    (0..8).for_each(|_| blog.add());
    stage.posts(&blog.window).await;
    let mut wanderers = [
        Subscriber::new(&stage.net, FEED, false),
        Subscriber::new(&stage.net, FEED, true),
        Subscriber::with_deltas(&stage.net, FEED),
    ];
    let mut strollers = [Followers::new(&stage.net, FEED), Followers::new(&stage.net, FEED)];
    let mut shown: BTreeSet<String> =
        stage.reader.titles().into_iter().map(str::to_owned).collect();
    for step in 0..40 {
        for _ in 0..dice.roll(4) {
            blog.live(&mut dice);
        }
        let (answer, is_whole) = answer(format, &blog, &mut dice);
        stage.answers(answer);
        stage.hours(dice.roll(30));
        let told = stage.poll().await;
        told_of.deleted +=
            usize::from(told.events.contains(", deleted") || told.events.starts_with("deleted"));
        told_of.undeleted += usize::from(told.events.contains("undeleted"));
        told_of.held += usize::from(told.held.is_some());
        let words = format!("seed {seed}, step {step}: {told:?}");
        // Each title is of one post, so a title that is new to the reader twice is falsely new.
        for title in told.reader.strip_prefix("new: ").map(|t| t.split(';').next().unwrap()).iter()
        {
            for title in title.split(", ") {
                assert!(shown.insert(title.to_owned()), "{title} is not new; {words}");
            }
        }
        if is_whole && told.held.is_none() {
            let there: Vec<_> = blog.window.iter().map(|p| p.title.as_str()).collect();
            assert_eq!(stage.reader.titles(), there, "{words}");
        }
        for wanderer in &mut wanderers {
            if dice.roll(9) == 0 {
                wanderer.consume().await;
                assert_eq!(stage.known_to(wanderer).await.0, stage.state().await, "{words}");
            }
        }
        let deleted = stage.deleted_titles().await;
        for (pace, strollers) in [4, 15].into_iter().zip(&mut strollers) {
            if dice.roll(pace) == 0 {
                strollers.visit(|title| deleted.contains(title)).await;
            }
        }
    }
    let deleted = stage.deleted_titles().await;
    for strollers in &mut strollers {
        strollers.visit(|title| deleted.contains(title)).await;
        told_of.deltas += strollers.answers().0;
        told_of.wholes += strollers.answers().1;
    }
    told_of.deltas += wanderers.iter().map(|wanderer| wanderer.saved).sum::<u32>();
    // Who was away for whatever time is in step again.
    for wanderer in &mut wanderers {
        wanderer.consume().await;
        assert_eq!(stage.known_to(wanderer).await.0, stage.state().await, "seed {seed}");
        told_of.resets += wanderer.resets;
    }
    assert_eq!((stage.subscriber.resets, stage.precise.resets), (0, 0), "seed {seed}");
    stage.stop().await;
}

async fn stories(seeds: impl IntoIterator<Item = u64>, format: Format, feed: &str) {
    let mut told = Told::default();
    for seed in sample(seeds, 2) {
        story(seed, format, feed, &mut told).await;
    }
    let Told { resets, deleted, undeleted, held, deltas, wholes } = told;
    assert!(resets > 0 && deleted > 0 && undeleted > 0 && held > 0, "{told:?}");
    assert!(deltas > 0 && wholes > 0, "{told:?}");
}

#[tokio::test]
async fn whatever_happens_in_an_rss_feed() {
    stories(0..6, Format::Rss20, "").await;
}

#[tokio::test]
async fn whatever_happens_in_an_atom_feed() {
    stories(100..110, Format::Atom10, "").await;
}

#[tokio::test]
async fn whatever_happens_in_an_eager_feed() {
    stories(200..206, Format::Atom10, "deletions = \"eager\"").await;
}
