//! A publisher that does what publishers do, in Atom or RSS.

use crate::support::{HOUR, Post, SITE, START, post, rss, with_deletions};
use tidegate_core::model::Time;

#[derive(Debug, Clone)]
pub enum Act {
    /// So many new posts.
    Publish(u8),
    Edit(u8),
    Rename(u8),
    /// One of them goes, and Atom says so.
    Delete(u8),
    /// One of them goes without a word.
    Drop(u8),
    /// What went last is there again.
    Restore,
    /// Bytes change that nobody sees.
    Noise(u8),
    /// The next document is empty, or cut in its middle.
    Glitch(bool),
}

pub struct Publisher {
    /// Newest first.
    posts: Vec<Post>,
    gone: Vec<Post>,
    said_gone: Vec<String>,
    window: usize,
    rss: bool,
    days: u32,
    turns: u32,
    older: u32,
    /// What is wrong with the next document: it is empty, or else cut.
    glitch: Option<bool>,
}

impl Publisher {
    pub fn new(window: usize, rss: bool) -> Self {
        let (posts, gone, said_gone) = (Vec::new(), Vec::new(), Vec::new());
        let (days, turns, older, glitch) = (0, 0, 0, None);
        let mut new = Self { posts, gone, said_gone, window, rss, days, turns, older, glitch };
        new.act(&Act::Publish(4));
        new
    }

    pub fn act(&mut self, act: &Act) {
        self.turns += 1;
        let shown = self.posts.len().min(self.window).max(1);
        let at = |n: &u8| usize::from(*n) % shown;
        match act {
            Act::Publish(count) => {
                for _ in 0..*count {
                    self.days += 1;
                    self.posts.insert(0, post(self.days));
                }
            }
            Act::Edit(n) => {
                let turn = self.turns;
                if let Some(post) = self.posts.get_mut(at(n)) {
                    post.text =
                        format!("Told anew after {} for the post of {}", words(turn), post.day);
                }
            }
            Act::Rename(n) => {
                let turn = self.turns;
                if let Some(post) = self.posts.get_mut(at(n)) {
                    post.id = format!("{SITE}moved-{turn}/{}", post.day);
                }
            }
            Act::Delete(n) | Act::Drop(n) if self.posts.len() > 2 => {
                let post = self.posts.remove(at(n));
                if matches!(act, Act::Delete(_)) {
                    self.said_gone.push(post.id.clone());
                }
                self.gone.push(post);
            }
            Act::Delete(_) | Act::Drop(_) => {}
            Act::Restore => {
                if let Some(post) = self.gone.pop() {
                    self.said_gone.retain(|id| *id != post.id);
                    let newer = self.posts.iter().filter(|other| other.day > post.day).count();
                    self.posts.insert(newer, post);
                }
            }
            Act::Noise(n) => {
                let turn = self.turns;
                if let Some(post) = self.posts.get_mut(at(n)) {
                    post.extra = format!("<!-- {turn} -->");
                }
            }
            Act::Glitch(is_empty) => self.glitch = Some(*is_empty),
        }
    }

    /// An older document: posts from before the first one that was ever shown.
    pub fn older(&mut self) -> String {
        const OLDER: u32 = 100_000;
        let posts = (self.older + 1..=self.older + 3).map(|n| post(OLDER + n));
        let posts: Vec<Post> = posts.collect();
        self.older += 3;
        let mut text = if self.rss { rss(&posts) } else { crate::support::atom(SITE, &posts) };
        for post in posts {
            let (date, day) = (i64::from(post.day) * 24 * HOUR, i64::from(post.day - OLDER));
            let (made, then) = (Time::from_unix(START + date), START - day * 24 * HOUR);
            let then = Time::from_unix(then);
            text = text.replace(&made.to_string(), &then.to_string());
            text = text.replace(&made.rfc822(), &then.rfc822());
        }
        text
    }

    pub fn document(&mut self) -> String {
        let shown: Vec<Post> = match self.glitch.take() {
            None => self.posts.iter().take(self.window).cloned().collect(),
            Some(true) => Vec::new(),
            Some(false) => {
                let whole = self.document();
                return whole[..whole.len() * 2 / 3].to_owned();
            }
        };
        self.write(&shown)
    }

    fn write(&self, shown: &[Post]) -> String {
        if self.rss {
            return rss(shown);
        }
        let text = crate::support::atom(SITE, shown);
        // Links of its own, which lead nowhere from here.
        let links = "<link rel=\"prev-archive\" href=\"http://publisher.example/old\"/>\
                     <link rel=\"next\" href=\"http://publisher.example/page2\"/><updated>";
        let text = text.replacen("<updated>", links, 1);
        with_deletions(&text, &self.said_gone)
    }
}

/// A number in words: one in digits that changes again and again is no news.
fn words(number: u32) -> String {
    const WORDS: [&str; 10] =
        ["storm", "calm", "fog", "rain", "snow", "sun", "frost", "thaw", "wind", "hail"];
    let digits = number.to_string();
    let words = digits.bytes().map(|digit| WORDS[usize::from(digit - b'0')]);
    words.collect::<Vec<_>>().join(" and ")
}
