//! `serve` is killed at random moments under a publisher that changes all the time. After each
//! restart nothing that was published or acknowledged has gone back or is missing.
//!
//! `TIDEGATE_KILLS` sets how many times; a few where it is not set.

use crate::support::document::Document;
use crate::support::gateways::Paper;
use crate::support::prelude::*;
use crate::support::process::Process;

/// A feed that is different at every step: posts are added, edited and lost.
fn document(step: u64) -> String {
    let newest = 20 + step / 3;
    let item = |n: u64| {
        let edit = if n % 4 == step % 4 { step } else { 0 };
        let (day, hour) = (1 + n / 24 % 28, n % 24);
        format!(
            "<item><title>Post {n}</title><guid isPermaLink=\"false\">post-{n}</guid>\
             <pubDate>{day:02} Jan 2026 {hour:02}:00:00 GMT</pubDate>\
             <description>Text of {n}, edit {edit}</description></item>"
        )
    };
    let is_there = |n: &u64| n % 7 != 3 || step % 5 >= 2;
    channel("Churn", (newest.saturating_sub(19)..=newest).rev().filter(is_there).map(item))
}
/// What was shown or acknowledged so far; nothing of it may go back.
#[derive(Default)]
struct Shown {
    until: String,
    /// Of each item of the complete view.
    updates: BTreeMap<String, u32>,
}

impl Shown {
    fn comes_to(&mut self, until: &str) {
        assert!(until >= &*self.until, "it went from {} to {until}", self.until);
        until.clone_into(&mut self.until);
    }

    async fn look(&mut self, process: &Process) {
        let complete = Document::read(&process.text("/feeds/churn/complete").await);
        self.comes_to(&complete.until.unwrap());
        let items = complete.entries.into_iter();
        let now: BTreeMap<_, _> = items.map(|entry| (entry.sync_id, entry.updates)).collect();
        for (id, before) in &self.updates {
            let after = now.get(id);
            assert!(after >= Some(before), "{id} had {before} updates, has {after:?}");
        }
        self.updates = now;
    }
}

/// Goes on reading the changes behind a place: the change log loses nothing and says nothing twice. How many it
/// read; `None`: the gateway went away.
async fn follow(
    process: &Process,
    wait: u32,
    (after, read): &mut (String, Vec<String>),
) -> Option<usize> {
    let address = process.url(&format!("/changes?after={after}&wait={wait}"));
    let answer = process.client().get(address).send().await.ok()?;
    assert_eq!(answer.status(), 200, "after {after}");
    let next = answer.headers()["x-tidegate-after"].to_str().unwrap().to_owned();
    let text = answer.text().await.ok()?;
    let before = read.len();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let changes = line["changes"].as_array().unwrap().iter();
        read.extend(changes.map(|it| format!("{} {} {}", line["epoch"], it["feed"], it["tick"])));
    }
    *after = next;
    Some(read.len() - before)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_goes_back_when_it_is_killed() {
    let kills: u32 = std::env::var("TIDEGATE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let folder = tempfile::tempdir().unwrap();
    let paper = Paper::start("application/rss+xml", &document(0)).await;
    let feed = format!("[[feed]]\nname = \"churn\"\nurl = \"{}\"\n", paper.url);
    let config = format!("[store]\npath = \"data\"\n{feed}");
    let mut shown = Shown::default();
    let begin = || ("0".to_owned(), Vec::new());
    let (mut polled, mut acknowledged, mut step) = (begin(), 0, 0);
    let mut dice = Dice(u64::from(std::process::id()));
    for round in 0..kills {
        let mut process = Process::configured(folder.path(), &config).await;
        if round > 0 {
            shown.look(&process).await;
        }
        let pause = Duration::from_millis(150 + dice.roll(700));
        let churn = async {
            loop {
                step += 1;
                paper.print(&document(step));
                let report = process.poll("churn").await;
                shown.comes_to(report["until"].as_str().unwrap());
                acknowledged += 1;
                shown.look(&process).await;
            }
        };
        let killed = async {
            let _ = tokio::time::timeout(pause, churn).await;
            process.signal("KILL").await;
        };
        let polls = async { while follow(&process, 2, &mut polled).await.is_some() {} };
        tokio::join!(killed, polls);
        process.child.wait().await.unwrap();
    }
    assert!(acknowledged > u64::from(kills) / 2, "only {acknowledged} polls were acknowledged");
    let process = Process::configured(folder.path(), &config).await;
    let mut all = begin();
    // The gateway polls by itself meanwhile.
    while follow(&process, 0, &mut polled).await.unwrap()
        + follow(&process, 0, &mut all).await.unwrap()
        > 0
    {}
    let all = all.1;
    assert_eq!(polled.1, all, "by who came back after each kill, and by who reads all at the end");
    assert!(all.len() > kills as usize, "only {} changes", all.len());
    process.stop().await;
}
