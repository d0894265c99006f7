use tidegate_core::model::Time;

/// 2026-01-01T00:00:00Z.
pub const START: i64 = 1_767_225_600;
pub const HOUR: i64 = 3600;

pub const SITE: &str = "http://publisher.example/";

#[derive(Clone, Debug, PartialEq)]
pub struct Post {
    pub id: String,
    pub title: String,
    pub link: String,
    pub day: u32,
    pub text: String,
    pub extra: String,
}

impl Post {
    pub fn edited(mut self, text: &str) -> Self {
        text.clone_into(&mut self.text);
        self
    }

    pub fn date(&self) -> Time {
        Time::from_unix(START + i64::from(self.day) * 24 * HOUR)
    }
}

/// A post of the given day; days run on from the start of 2026.
pub fn post(day: u32) -> Post {
    Post {
        id: format!("http://publisher.example/2026/entry-of-day-{day}"),
        title: format!("The story of day {day}"),
        link: format!("http://publisher.example/2026/entry-of-day-{day}"),
        day,
        text: format!(
            "What happened on day {day}, told at such length that it is a text of its own."
        ),
        extra: String::new(),
    }
}

/// The posts of these days, the newest first.
pub fn days(range: std::ops::RangeInclusive<u32>) -> Vec<Post> {
    range.rev().map(post).collect()
}

pub fn atom(site: &str, posts: &[Post]) -> String {
    let entry = |Post { id, title, link, text, extra, .. }: &Post, date: Time| {
        format!(
            "<entry><id>{id}</id><title>{title}</title><link href=\"{link}\"/><published>{date}</published>\
             <updated>{date}</updated><content type=\"html\">&lt;p&gt;{text}&lt;/p&gt;</content>{extra}</entry>"
        )
    };
    let entries: String = posts.iter().map(|post| entry(post, post.date())).collect();
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>News</title><id>{site}</id>\
         <link href=\"{site}\"/><updated>2026-01-01T00:00:00Z</updated>{entries}</feed>"
    )
}

/// A document of Atom that says of these ids that they were deleted.
pub fn with_deletions(text: &str, ids: impl IntoIterator<Item: std::fmt::Display>) -> String {
    let tag = "at:deleted-entry xmlns:at=\"http://purl.org/atompub/tombstones/1.0\"";
    let said =
        ids.into_iter().map(|id| format!("<{tag} ref=\"{id}\" when=\"2027-01-01T00:00:00Z\"/>"));
    text.replace("</feed>", &format!("{}</feed>", said.collect::<String>()))
}

pub fn rss(posts: &[Post]) -> String {
    let item = |Post { id, title, link, text, extra, .. }: &Post, date: Time| {
        format!(
            "<item><guid isPermaLink=\"false\">{id}</guid><title>{title}</title><link>{link}</link>\
             <pubDate>{}</pubDate><description>&lt;p&gt;{text}&lt;/p&gt;</description>{extra}</item>",
            date.rfc822()
        )
    };
    channel("News", posts.iter().map(|post| item(post, post.date())))
}

/// A feed in RSS with these items.
pub fn channel(title: &str, items: impl IntoIterator<Item = String>) -> String {
    let items: String = items.into_iter().collect();
    format!(
        "<rss version=\"2.0\"><channel><title>{title}</title><link>{SITE}</link>\
         <description>All of it</description>{items}</channel></rss>"
    )
}
