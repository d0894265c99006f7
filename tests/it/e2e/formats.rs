//! Whatever publishers write comes out as RSS 2.0 or Atom 1.0.

use crate::e2e::support::{Format, Post, Stage, post, posts};

#[tokio::test]
async fn every_format_comes_out_in_its_family() {
    use Format::{Atom03, Atom10, Json, Rss10, Rss20, Rss091};
    for (format, family) in [
        (Rss20, "rss"),
        (Rss091, "rss"),
        (Rss10, "rss"),
        (Atom10, "atom"),
        (Atom03, "atom"),
        (Json, "atom"),
    ] {
        let mut stage = Stage::new(format).await;
        let step = stage.posts(&posts(1..=4)).await;
        assert_eq!(step.events, "created 4", "{format:?}");
        assert_eq!(step.reader, "new: Post 4, Post 3, Post 2, Post 1", "{format:?}");
        let answer = stage.net.get("http://gateway.example/feeds/news").send().await.unwrap();
        let media_type = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(media_type.starts_with(&format!("application/{family}+xml")), "{media_type}");
        let text = answer.text().await.unwrap();
        let read = feed_rs::parser::parse(text.as_bytes());
        let read = read.unwrap_or_else(|error| panic!("{format:?}: {error}\n{text}"));
        let titles = read.entries.iter().map(|e| e.title.as_ref().unwrap().content.as_str());
        assert_eq!(titles.collect::<Vec<_>>(), ["Post 4", "Post 3", "Post 2", "Post 1"]);
        // And so it goes on.
        stage.hours(1);
        let mut next = posts(2..=5);
        next[1] = post(4).edited("Told anew.");
        let step = stage.posts(&next).await;
        assert_eq!(step.reader, "new: Post 5; changed: Post 4; gone: Post 1", "{format:?}");
        stage.end().await;
    }
}

#[tokio::test]
async fn a_change_of_format_makes_nothing_new() {
    for (before, after) in [
        (Format::Rss20, Format::Atom10),
        (Format::Atom10, Format::Rss20),
        (Format::Rss10, Format::Rss20),
        (Format::Atom03, Format::Atom10),
        (Format::Rss20, Format::Json),
    ] {
        let mut stage = Stage::new(before).await;
        stage.compares_payloads = false;
        stage.posts(&posts(1..=8)).await;
        let ids = stage.reader.current.clone();
        stage.hours(1);
        stage.writes(after);
        let mut steps = vec![stage.posts(&posts(1..=8)).await];
        steps.extend(stage.polls(4, 2).await);
        let words = format!("{before:?} to {after:?}: {steps:?}");
        assert!(steps.iter().all(|s| !s.events.contains("created")), "{words}");
        assert!(steps.iter().all(|s| s.reader.is_empty()), "{words}");
        assert_eq!(stage.reader.current, ids);
        stage.hours(1);
        let step = stage.posts(&posts(2..=9)).await;
        assert_eq!(step.reader, "new: Post 9; gone: Post 1", "{words}");
        stage.end().await;
    }
}

#[tokio::test]
async fn foreign_markup_and_cdata_come_through() {
    let mut stage = Stage::new(Format::Rss20).await;
    let all: Vec<Post> = posts(1..=3)
        .into_iter()
        .map(|p| Post {
            text: "<![CDATA[<p>Bold & <b>raw</b></p>]]>".to_owned(),
            extra: "<geo:point xmlns:geo=\"http://www.w3.org/2003/01/geo/wgs84_pos#\"><geo:lat>\
                    26.58</geo:lat></geo:point>"
                .to_owned(),
            ..p
        })
        .collect();
    stage.posts(&all).await;
    for view in ["", "/sync", "/complete"] {
        let text = stage.net.text(&format!("http://gateway.example/feeds/news{view}")).await;
        assert_eq!(text.matches("<![CDATA[<p>Bold & <b>raw</b></p>]]>").count(), 3, "{text}");
        assert_eq!(text.matches("<geo:lat>26.58</geo:lat>").count(), 3, "{text}");
    }
    stage.end().await;
}
