//! What a publisher writes.

use std::fmt::Write;
use std::ops::RangeInclusive;
use tidegate_core::model::Time;

/// The publisher's site.
pub const SITE: &str = "http://publisher.example/";
/// 2026-01-01T00:00:00Z: day 0 of the posts.
const DAY_ZERO: i64 = 1_767_225_600;

/// A post.
#[derive(Debug, Clone, PartialEq)]
pub struct Post {
    pub id: Option<String>,
    pub title: String,
    pub link: String,
    /// Days since the start of 2026.
    pub day: u32,
    pub text: String,
    /// Markup of its own behind the rest.
    pub extra: String,
}

impl Post {
    fn date(&self) -> Time {
        Time::from_unix(DAY_ZERO + i64::from(self.day) * 86_400)
    }

    /// The same post with another text.
    pub fn edited(mut self, text: &str) -> Self {
        self.text = text.to_owned();
        self
    }
}

/// The post of a day.
pub fn post(day: u32) -> Post {
    Post {
        id: Some(format!("{SITE}2026/the-story-of-day-{day}")),
        title: format!("Post {day}"),
        link: format!("{SITE}2026/the-story-of-day-{day}"),
        day,
        text: format!("What came to pass on day {day}, told so that no other post says the same."),
        extra: String::new(),
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
            Self::Atom10 => atom(posts),
            Self::Json => json(posts),
        }
    }
}

fn rss(posts: &[Post]) -> String {
    let mut xml = format!(
        "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>News</title>\
         <link>{SITE}</link><description>What is new</description>\n"
    );
    for p in posts {
        let guid = p.id.iter().map(|id| format!("<guid isPermaLink=\"false\">{id}</guid>"));
        let _ = writeln!(
            xml,
            "<item><title>{}</title><link>{}</link>{}<pubDate>{}</pubDate>\
             <description>{}</description>{}</item>",
            p.title,
            p.link,
            guid.collect::<String>(),
            p.date().rfc822(),
            p.text,
            p.extra
        );
    }
    xml + "</channel></rss>\n"
}

fn atom(posts: &[Post]) -> String {
    let mut xml = format!(
        "<?xml version=\"1.0\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>News</title>\
         <id>{SITE}</id><link href=\"{SITE}\"/><updated>2026-01-01T00:00:00Z</updated>\
         <author><name>The publisher</name></author>\n"
    );
    for p in posts {
        let id = p.id.iter().map(|id| format!("<id>{id}</id>")).collect::<String>();
        let date = p.date();
        let _ = writeln!(
            xml,
            "<entry>{id}<title>{}</title><link href=\"{}\"/><published>{date}</published>\
             <updated>{date}</updated><content type=\"html\">{}</content>{}</entry>",
            p.title, p.link, p.text, p.extra
        );
    }
    xml + "</feed>\n"
}

fn json(posts: &[Post]) -> String {
    let items: Vec<_> = posts
        .iter()
        .map(|p| {
            serde_json::json!({
                "id": p.id, "title": p.title, "url": p.link, "content_html": p.text,
                "date_published": p.date().to_string(),
            })
        })
        .collect();
    serde_json::json!({
        "version": "https://jsonfeed.org/version/1.1",
        "title": "News", "home_page_url": SITE, "items": items,
    })
    .to_string()
}
