//! What a publisher writes its posts in.

pub use crate::support::{Post, SITE};
use crate::support::{atom, rss};
use serde_json::{Value, json};
use std::ops::RangeInclusive;

/// The post of a day.
pub fn post(day: u32) -> Post {
    let address = format!("{SITE}2026/the-story-of-day-{day}");
    Post {
        id: address.clone(),
        title: format!("Post {day}"),
        link: address,
        text: format!("What came to pass on day {day}, told so that no other post says the same."),
        ..crate::support::post(day)
    }
}

/// The posts of some days, newest first.
pub fn posts(days: RangeInclusive<u32>) -> Vec<Post> {
    days.rev().map(post).collect()
}

/// What a publisher writes its posts in. Others are those of `views_corpus.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Rss20,
    Atom10,
    Json,
}

impl Format {
    /// The two that are published as they are.
    pub const BOTH: [Self; 2] = [Self::Rss20, Self::Atom10];

    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Rss20 => "application/rss+xml",
            Self::Atom10 => "application/atom+xml",
            Self::Json => "application/feed+json",
        }
    }

    /// A whole document.
    pub fn document(self, posts: &[Post]) -> String {
        match self {
            Self::Rss20 => rss(posts),
            Self::Atom10 => atom(SITE, posts),
            Self::Json => json_feed(posts),
        }
    }
}

fn json_feed(posts: &[Post]) -> String {
    let item = |p: &Post| {
        json!({
            "id": p.id, "title": p.title, "url": p.link, "date_published": p.date().to_string(),
            "content_html": format!("<p>{}</p>", p.text),
        })
    };
    let items: Vec<Value> = posts.iter().map(item).collect();
    json!({
        "version": "https://jsonfeed.org/version/1.1",
        "title": "News", "home_page_url": SITE, "items": items,
    })
    .to_string()
}
