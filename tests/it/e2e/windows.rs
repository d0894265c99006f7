//! The sync view's window, and subscribers that stay away.

use crate::e2e::support::{Format, Stage, posts};

const WINDOW: &str = "[publish]\nwindow = \"10d\"\ntombstones = \"20d\"\n";

fn bounds(text: &str) -> (String, String) {
    let sharing = text.split_once("<sx:sharing").unwrap().1;
    let value = |name: &str| {
        let rest = sharing.split_once(&format!(" {name}=\"")).unwrap().1;
        rest.split_once('"').unwrap().0.to_owned()
    };
    (value("since"), value("until"))
}

async fn sync_view(stage: &Stage, query: &str) -> String {
    stage.net.text(&format!("http://gateway.example/feeds/news/sync{query}")).await
}

#[tokio::test]
async fn changes_leave_the_window_and_since_rises() {
    let mut stage = Stage::with(Format::Rss20, "", WINDOW).await;
    stage.posts(&posts(1..=5)).await;
    let (first_since, until) = bounds(&sync_view(&stage, "").await);
    assert!(first_since < until);
    stage.hours(24 * 6);
    stage.posts(&posts(2..=6)).await;
    let (since, _) = bounds(&sync_view(&stage, "").await);
    assert_eq!(since, first_since, "all is within the window");
    stage.hours(24 * 6);
    let last = stage.posts(&posts(3..=7)).await;
    let text = sync_view(&stage, "").await;
    let (since, now) = bounds(&text);
    assert_eq!((since, now), (until.clone(), last.until), "the first batch has left");
    assert_eq!(text.matches("<item").count(), 2, "{text}");
    // Who has seen the last of what left is not out of sync; who has seen less is.
    assert_eq!(bounds(&sync_view(&stage, &format!("?since={until}")).await).0, until);
    let told = bounds(&sync_view(&stage, &format!("?since={first_since}")).await).0;
    assert!(told > first_since, "{told}");
    // The complete feed has everything all the same.
    assert_eq!(stage.subscriber.living().len(), 7);
    let complete = stage.net.text("http://gateway.example/feeds/news/complete").await;
    assert_eq!(complete.matches("<item").count(), 7);
    stage.end_with_sleeper(0).await;
}
