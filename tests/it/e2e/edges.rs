//! Where rules meet: ids that change hands, parts during a hold, new addresses of old feeds.

use crate::e2e::support::{Answer, Format, Post, Stage, post, posts};

#[tokio::test]
async fn an_id_that_a_new_post_takes_over_is_a_new_item_to_subscribers() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.compares_payloads = false;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    // Post 4 moves to another id; then a new post takes its old one.
    let mut moved = posts(1..=8);
    moved[4].id = Some("urn:moved:4".to_owned());
    assert_eq!(stage.posts(&moved).await.events, "rekeyed 1");
    stage.hours(1);
    let mut newcomer = post(9);
    newcomer.id = post(4).id;
    let mut next = moved.clone();
    next.insert(0, newcomer);
    stage.publishes(&next);
    let step = stage.poll_alone().await;
    assert_eq!(step.events, "created 1");
    let text = stage.net.text("http://gateway.example/feeds/news").await;
    let guid = format!(">{}</guid>", post(4).id.unwrap());
    assert_eq!(text.matches(&guid).count(), 1, "two entries of one published id");
    stage.end().await;
}

#[tokio::test]
async fn a_new_url_of_another_feed_passes_the_brake() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=6)).await;
    let mut config = stage.config().clone();
    config.feeds[0].url = Some(stage.publisher.address("/moved").parse().unwrap());
    let other: Vec<Post> = posts(1..=6)
        .into_iter()
        .map(|mut p| {
            p.title = format!("Unlike {}", p.day);
            p.id = Some(format!("urn:unlike:{}", p.day));
            p.link = format!("http://publisher.example/unlike/{}", p.day);
            p.text = format!("Nothing like it, {}.", p.day);
            p
        })
        .collect();
    let document = Format::Rss20.document(&other);
    stage.publisher.set("/moved", Answer::document("application/rss+xml", document));
    stage.hours(1);
    stage.gateway().reload(&config).await.unwrap();
    let step = stage.poll().await;
    assert!(step.held.is_some(), "{step:?}");
    assert_eq!(step.reader, "");
    stage.end().await;
}

#[tokio::test]
async fn a_cut_document_does_not_end_a_hold() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=10)).await;
    stage.hours(1);
    stage.posts(&[]).await;
    stage.hours(20);
    assert!(stage.poll().await.held.is_some());
    let since = stage.status().await["hold"]["since"].clone();
    let whole = Format::Rss20.document(&posts(1..=10));
    stage.publishes_text(&whole[..whole.len() / 2]);
    let step = stage.poll().await;
    assert_eq!(step.reader, "");
    assert!(step.held.is_some(), "{step:?}");
    stage.posts(&[]).await;
    assert_eq!(stage.status().await["hold"]["since"], since);
    stage.end().await;
}

#[tokio::test]
async fn entries_that_share_an_id_scroll() {
    let mut stage = Stage::new(Format::Rss20).await;
    let same = |days| -> Vec<Post> {
        let id = Some("http://publisher.example/?p=0".to_owned());
        posts(days).into_iter().map(|p| Post { id: id.clone(), ..p }).collect()
    };
    stage.publishes(&same(1..=4));
    assert_eq!(stage.poll_alone().await.events, "created 4");
    stage.hours(1);
    stage.publishes(&same(2..=5));
    assert_eq!(stage.poll_alone().await.events, "created 1, retired 1");
    stage.stop().await;
}
