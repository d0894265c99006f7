//! Items that go by other names than before are the items that they were.

use crate::e2e::support::{Format, Post, Stage, post, posts};

fn renamed(posts: Vec<Post>, from: &str, to: &str) -> Vec<Post> {
    let rename = |mut p: Post| {
        p.id = p.id.map(|id| id.replace(from, to));
        p.link = p.link.replace(from, to);
        p
    };
    posts.into_iter().map(rename).collect()
}

fn https(posts: Vec<Post>) -> Vec<Post> {
    renamed(posts, "http://", "https://")
}

#[tokio::test]
async fn a_move_to_https_makes_nothing_new() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        stage.compares_payloads = false;
        stage.posts(&posts(1..=8)).await;
        let ids = stage.reader.current.clone();
        stage.hours(1);
        let site = "https://publisher.example/";
        stage.publishes_text(&format.of_site(site, &https(posts(1..=8))));
        let mut steps = vec![stage.poll().await];
        steps.extend(stage.polls(8, 4).await);
        assert!(steps.iter().all(|s| s.reader.is_empty()), "{steps:?}");
        assert!(steps.iter().all(|s| !s.events.contains("created")), "{steps:?}");
        assert_eq!(stage.reader.current, ids);
        // Whatever comes then is published under its own id.
        stage.publishes_text(&format.of_site(site, &https(posts(2..=9))));
        let step = stage.poll().await;
        assert_eq!(step.events, "created 1, retired 1");
        assert_eq!(step.reader, "new: Post 9; gone: Post 1");
        assert_eq!(stage.reader.current[0], "https://publisher.example/2026/the-story-of-day-9");
        stage.end().await;
    }
}

#[tokio::test]
async fn one_post_that_gets_another_address_is_the_same_post() {
    let mut stage = Stage::new(Format::Atom10).await;
    stage.compares_payloads = false;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    let mut all = posts(1..=8);
    all[2].id = Some("http://publisher.example/archive/2026/the-story-of-day-6".to_owned());
    all[2].link = all[2].id.clone().unwrap();
    let step = stage.posts(&all).await;
    // Where its link leads is something that a reader sees.
    assert_eq!(step.events, "updated 1, rekeyed 1");
    assert_eq!(step.reader, "");
    // And back again.
    let step = stage.posts(&posts(1..=8)).await;
    assert_eq!(step.reader, "");
    assert_eq!(stage.subscriber.living().len(), 8);
    stage.end().await;
}

#[tokio::test]
async fn a_post_with_an_id_made_of_its_title_is_retitled() {
    let mut stage = Stage::new(Format::Rss20).await;
    let titled = |day: u32, title: &str| {
        let slug = title.to_lowercase().replace(' ', "-");
        let mut p = post(day);
        p.title = title.to_owned();
        p.link = format!("http://publisher.example/posts/{slug}");
        p.id = Some(p.link.clone());
        p.text.push_str(" It is known by this, and by its date.");
        p
    };
    let all = |title: &str| {
        let mut all = posts(1..=7);
        all.insert(3, titled(4, title));
        all.remove(4);
        all
    };
    stage.posts(&all("A frist look at the harbour")).await;
    let ids = stage.reader.current.clone();
    stage.hours(1);
    let step = stage.posts(&all("A first look at the harbour")).await;
    assert_eq!(step.events, "updated 1, rekeyed 1");
    assert_eq!(step.reader, "changed: A first look at the harbour");
    assert_eq!(stage.reader.current, ids);
    assert_eq!(stage.subscriber.item("A first look at the harbour").0, 2);
    stage.polls(4, 8).await;
    assert_eq!(stage.subscriber.living().len(), 7);
    stage.end().await;
}

#[tokio::test]
async fn entries_without_ids_keep_the_one_that_is_made_for_them() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        let bare = |days| -> Vec<Post> {
            posts(days).into_iter().map(|p| Post { id: None, ..p }).collect()
        };
        stage.posts(&bare(1..=5)).await;
        let ids = stage.reader.current.clone();
        assert!(ids.iter().all(|id| id.starts_with("urn:")), "{ids:?}");
        stage.hours(1);
        let mut next = bare(2..=6);
        next[1].text = "Another text.".to_owned();
        let step = stage.posts(&next).await;
        assert_eq!(step.events, "created 1, updated 1, retired 1");
        assert_eq!(step.reader, "new: Post 6; changed: Post 5; gone: Post 1");
        assert_eq!(stage.reader.current[1..], ids[..4]);
        stage.end().await;
    }
}

#[tokio::test]
async fn entries_that_share_an_id_are_told_apart() {
    let mut stage = Stage::new(Format::Rss20).await;
    let same = |days| -> Vec<Post> {
        let id = Some("http://publisher.example/?p=0".to_owned());
        posts(days).into_iter().map(|p| Post { id: id.clone(), ..p }).collect()
    };
    // A reader cannot tell such entries apart, so only subscribers witness this.
    stage.publishes(&same(1..=4));
    assert_eq!(stage.poll_alone().await.events, "created 4");
    stage.subscriber.consume().await;
    assert_eq!(stage.subscriber.living(), ["Post 1", "Post 2", "Post 3", "Post 4"]);
    stage.hours(1);
    let mut edited = same(1..=4);
    edited[1].text = "Only this one is told anew.".to_owned();
    stage.publishes(&edited);
    assert_eq!(stage.poll_alone().await.events, "updated 1");
    stage.subscriber.consume().await;
    let updates = |day| stage.subscriber.item(&format!("Post {day}")).0;
    assert_eq!([updates(1), updates(2), updates(3), updates(4)], [1, 1, 2, 1]);
    stage.end().await;
}
