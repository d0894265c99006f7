//! What goes with time, in a running gateway: by time that has run, whatever the wall clock is set to.

use crate::e2e::support::{FEED, Format, Stage, TOKEN, on_disk, post, posts};
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedState};

const DAY: Duration = Duration::from_secs(86_400);

async fn state(stage: &Stage) -> FeedState {
    stage.gateway().store().state(&FeedName::new(FEED).unwrap()).await.unwrap().unwrap()
}

/// What would have gone, had the time passed.
fn kept(state: &FeedState) -> (u32, u64, bool) {
    (state.tombstones, state.archives.first, state.window_start < state.tick)
}

/// A feed with a tombstone and archives.
async fn aged(folder: &std::path::Path) -> Stage {
    let tables = format!(
        "{}[publish]\nwindow = \"10d\"\ntombstones = \"20d\"\narchive_age = \"15d\"\n\
         archive_entries = 2\n",
        on_disk(folder)
    );
    let mut stage = Stage::with(Format::Atom10, "deletions = \"eager\"", &tables).await;
    stage.posts(&posts(1..=6)).await;
    for newest in 7..=12 {
        stage.hours(1);
        stage.posts(&posts(newest - 5..=newest)).await;
    }
    stage.hours(1);
    let mut next = posts(7..=12);
    next.retain(|one| one.title != post(10).title);
    stage.posts(&next).await;
    stage
}

/// By how many seconds a feed is said to be ahead, and whether the overview says so.
async fn told_ahead(stage: &Stage) -> (i64, bool) {
    let metrics = stage.net.text("http://gateway.example/metrics").await;
    let line = metrics.lines().find_map(|line| line.strip_prefix("tidegate_tick_lead_seconds "));
    let ahead: i64 = line.unwrap().parse().unwrap();
    assert_eq!(stage.status().await["tick_lead"].as_i64().unwrap_or(0), ahead);
    // What everybody sees is kept for some seconds.
    let overview = stage.net.get("http://gateway.example/").bearer_auth(TOKEN).send().await;
    let overview = overview.unwrap().text().await.unwrap();
    (ahead, overview.contains(" days ahead: the clock was ahead then"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wall_clock_that_leaps_ages_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = aged(folder.path()).await;
    let before = kept(&state(&stage).await);
    assert!(before.0 == 1 && before.2, "{before:?}");
    stage.leap(DAY * 365);
    let mut list = posts(8..=13);
    list.retain(|one| one.title != post(10).title);
    stage.publishes(&list);
    stage.poll_alone().await;
    assert_eq!(kept(&state(&stage).await), before);
    // A gateway that is started then ages nothing either.
    stage.restart().await;
    list.extend(posts(14..=14));
    stage.publishes(&list);
    stage.poll_alone().await;
    assert_eq!(kept(&state(&stage).await), before);
    // Nothing tells while it is ahead; once it is right again, how far ahead the feed is.
    assert_eq!(told_ahead(&stage).await, (0, false));
    let (tick, shown) = (state(&stage).await.tick, state(&stage).await.updated_at);
    // And back: nothing moves backwards, and what is old goes when its time has passed.
    stage.turn_back(DAY.as_secs() * 365);
    list.extend(posts(15..=15));
    stage.publishes(&list);
    stage.poll_alone().await;
    let (ahead, is_shown) = told_ahead(&stage).await;
    assert!(ahead > 364 * 86_400 && is_shown, "{ahead}");
    let after = state(&stage).await;
    assert!(after.tick > tick && after.updated_at > shown);
    assert_eq!(kept(&after), before);
    stage.later(DAY * 30);
    list.extend(posts(16..=16));
    stage.publishes(&list);
    stage.poll_alone().await;
    let after = state(&stage).await;
    assert_eq!(after.tombstones, 0, "a leap makes nothing stay for ever");
    assert!(after.tick > tick);
    stage.stop().await;
}
