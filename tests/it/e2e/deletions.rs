//! What publishers take away, and what only looks so.

use crate::e2e::support::{Format, Post, Stage, post, posts};

fn without(mut posts: Vec<Post>, day: u32) -> Vec<Post> {
    posts.retain(|p| p.day != day);
    posts
}

#[tokio::test]
async fn what_the_operator_says_was_deleted() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        let but = |days: &[u32]| days.iter().fold(posts(1..=12), |all, day| without(all, *day));
        stage.posts(&posts(1..=12)).await;
        stage.hours(1);
        stage.posts(&but(&[4, 7, 10])).await;
        let steps = stage.polls(2, 2).await;
        assert!(steps.iter().any(|step| step.events == "retired 3"), "{steps:?}");
        let known = stage.state().await.unwrap();
        assert!(known.values().all(|(_, deleted, _)| !deleted), "{known:?}");

        let name = tidegate_core::model::FeedName::new("news").unwrap();
        let snapshot = stage.gateway().store().snapshot(&name).await.unwrap().unwrap();
        let path = |day: u32| {
            let native = post(day).id.unwrap();
            let known = snapshot.known.iter().find(|known| known.native_shown == native).unwrap();
            format!("/feeds/news/items/{}/delete", known.id)
        };
        let (status, said) = stage.admin("POST", &path(5), None).await;
        assert_eq!(status, 409, "{said}");
        assert!(said["detail"].as_str().unwrap().contains("lists the item"), "{said}");
        assert_eq!(stage.admin("POST", "/feeds/news/items/nothing/delete", None).await.0, 404);
        let (status, said) = stage.admin("POST", &path(7), None).await;
        assert_eq!((status, &said["was_deleted"]), (200, &false.into()), "{said}");
        let until = said["tick"].clone();
        let (status, again) = stage.admin("POST", &path(7), None).await;
        assert_eq!((status, &again["was_deleted"]), (200, &true.into()), "{again}");

        // Subscribers and readers learn it with the next look at the gateway; nothing else went.
        let step = stage.poll().await;
        assert_eq!((step.events.as_str(), step.until.as_str()), ("", until.as_str().unwrap()));
        assert!(stage.subscriber.item("Post 7").1);
        assert!(!stage.subscriber.item("Post 4").1 && !stage.subscriber.item("Post 10").1);
        for view in ["/sync", "/complete"] {
            let text = stage.net.text(&format!("http://gateway.example/feeds/news{view}")).await;
            assert_eq!(text.matches("deleted=\"true\"").count(), 1, "{view}: {text}");
        }
        let status = stage.status().await;
        let event = &status["events"][0];
        let why = event["reason"].as_str().unwrap();
        assert!(
            event["kind"] == "deleted" && why.starts_with("deleted by the operator: "),
            "{why}"
        );

        stage.hours(1);
        let step = stage.posts(&but(&[4, 10])).await;
        assert_eq!(step.events, "undeleted 1");
        let (updates, deleted, _) = stage.subscriber.item("Post 7");
        assert_eq!((updates, deleted), (3, false));
        stage.end().await;
    }
}
