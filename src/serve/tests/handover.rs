//! What a site hands on to the one that takes its place, and what was open goes on there.

use super::private::{ANN, BOB, SECRET, announcing, readers, site};
use super::*;

/// A site that takes the place of another has its documents where it would write them alike, and its counts.
#[tokio::test]
async fn a_site_hands_on_what_the_next_one_would_make_alike() {
    let before = site();
    assert_eq!(before.get("/feeds/news").await.status(), 200);
    let misses = |site: &Site| site.room.metrics.misses.get();
    let next = before.followed_by(ServeSettings { readers: Vec::new(), ..announcing() });
    assert_eq!(next.get("/feeds/news").await.status(), 200);
    assert_eq!((misses(&next), misses(&before)), (1, 1));
    problem(next.get(&format!("/t/{ANN}/feeds/{SECRET}")).await, 404).await;
    let other = next.followed_by(ServeSettings { absolute_urls: true, ..announcing() });
    assert_eq!(other.get("/feeds/news").await.status(), 200);
    assert_eq!(misses(&next), 2, "it is written anew");
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_ends_what_is_open_and_all_else_goes_on_over_a_reload() {
    let site = site();
    let stream = site.get(&format!("/t/{ANN}/events")).await;
    assert_eq!(stream.status(), 200);
    let bobs = site.get(&format!("/t/{BOB}/events")).await;
    let everybodys = site.get("/events?feed=news").await;
    let waits = format!("/t/{ANN}/changes?after=3&wait=20");
    let bob_waits = format!("/t/{BOB}/changes?after=3&wait=20");
    let begun = tokio::time::Instant::now();
    let public_url = "https://other.example".to_owned();
    let reload = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let readers = vec![readers().remove(1)];
        let next = site.followed_by(ServeSettings { readers, public_url, ..announcing() });
        tokio::time::sleep(Duration::from_secs(1)).await;
        next
    };
    let poll = async |path: &str| {
        let answer = site.get(path).await;
        (answer, begun.elapsed())
    };
    let polls = async { tokio::join!(poll(&waits), poll(&bob_waits)) };
    let end_of_stream = async {
        let said = text(stream).await;
        (said, begun.elapsed())
    };
    let announced = async {
        let next = reload.await;
        // Who keeps the token keeps what is open, at the site in force.
        next.store.announce(0, &["other-secret", SECRET, "news"]);
        next
    };
    let ((ann, bob), (said, ended), next) = tokio::join!(polls, end_of_stream, announced);
    assert_eq!((ann.1, ended), (Duration::from_secs(3), Duration::from_secs(3)));
    problem(ann.0, 404).await;
    assert!(said.starts_with("retry:"), "{said}");
    assert_eq!((bob.0.status(), bob.1), (StatusCode::OK, Duration::from_secs(4)));
    let own = format!("https://other.example/t/{BOB}/feeds/other-secret");
    let line = text(bob.0).await;
    assert!(line.contains(&own) && !line.contains(SECRET), "{line}");
    for (stream, shown) in [(bobs, &*own), (everybodys, "https://other.example/feeds/news")] {
        let (mut body, mut said) = (stream.into_body(), String::new());
        while !said.contains("event: change") {
            let frame = body.frame().await.unwrap().unwrap();
            said.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
        }
        assert!(said.contains(shown) && !said.contains(SECRET), "{said}");
    }
    assert_eq!(begun.elapsed(), Duration::from_secs(4));
    problem(next.get(&format!("/t/{ANN}/feeds/{SECRET}")).await, 404).await;
}
