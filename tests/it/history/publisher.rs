//! A publisher that does what publishers do, in Atom or RSS.

use crate::support::{Post, SITE, atom, post, rss, with_deletions};

/// The day of the first post that is shown; older documents have posts from before.
const FIRST: u32 = 300;

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
    oldest: u32,
    /// What is wrong with the next document: it is empty, or else cut.
    glitch: Option<bool>,
}

impl Publisher {
    pub fn new(window: usize, rss: bool) -> Self {
        let (posts, gone, said_gone) = (Vec::new(), Vec::new(), Vec::new());
        let (days, turns, oldest, glitch) = (FIRST - 1, 0, FIRST, None);
        let mut new = Self { posts, gone, said_gone, window, rss, days, turns, oldest, glitch };
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
            Act::Edit(n) | Act::Rename(n) | Act::Noise(n) => {
                let turn = self.turns;
                let Some(post) = self.posts.get_mut(at(n)) else { return };
                let day = post.day;
                match act {
                    Act::Edit(_) => {
                        post.text =
                            format!("Told anew after {} for the post of {day}", words(turn));
                    }
                    Act::Rename(_) => post.id = format!("{SITE}moved-{turn}/{day}"),
                    _ => post.extra = format!("<!-- {turn} -->"),
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
            Act::Glitch(is_empty) => self.glitch = Some(*is_empty),
        }
    }

    /// An older document: posts from before the first one that was ever shown.
    pub fn older(&mut self) -> String {
        self.oldest -= 3;
        let posts: Vec<Post> = (self.oldest..self.oldest + 3).rev().map(post).collect();
        if self.rss { rss(&posts) } else { atom(SITE, &posts) }
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
        let text = atom(SITE, shown);
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
