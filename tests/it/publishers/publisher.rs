//! The publisher: its posts, and which of them a document shows.

use crate::publishers::plan::{Dates, Ids, Order, PathStyle, Pinned, Rename, Site, Window};
use crate::support::{HOUR, START};
use std::cmp::Reverse;
use tidegate_core::model::Time;

pub const DAY: i64 = 24 * HOUR;
const FIRST_APART: i64 = 17 * HOUR;

#[derive(Clone, Debug, Default)]
pub struct Post {
    /// Its number, by which the test knows it whatever it is called.
    pub number: u32,
    pub source: u32,
    pub issue: u32,
    pub when: i64,
    pub updated: i64,
    pub retitled: u32,
    /// How often a reader could see it change.
    pub revision: u32,
    pub text: u32,
    pub alive: bool,
    pub lost: bool,
    pub score: u64,
    /// Whether it was renamed other than by scheme and host.
    pub renamed: bool,
    /// Whether its date was put back, which may take it out of the window.
    pub redated: bool,
    /// Whether it was deleted, or lost by accident, and is back.
    pub restored: bool,
}

pub struct Publisher {
    pub site: Site,
    pub posts: Vec<Post>,
    pub now: i64,
    pub issue: u32,
    pub https: bool,
    pub moved: u32,
    pub session: bool,
    pub generator: u32,
    pub swollen: usize,
    pub build: u64,
}

pub fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b.wrapping_add(0xD1B5_4A32_D192_ED03);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Publisher {
    pub fn new(site: &Site, posts: u8) -> Self {
        let now = START + 400 * DAY;
        let mut publisher = Self {
            site: site.clone(),
            posts: Vec::new(),
            now,
            issue: 0,
            https: false,
            moved: 0,
            session: false,
            generator: 0,
            swollen: 0,
            build: 0,
        };
        let count = match site.window {
            Window::Issue(size) => usize::from(size),
            _ => usize::from(posts),
        };
        for at in 0..count {
            let ago = i64::try_from(count - at).unwrap_or(0);
            publisher.add(now - ago * FIRST_APART);
        }
        // A front page and a source of a merged feed are full from the start.
        if let (Window::Count(size), Order::Ranked | Order::Merged(_) | Order::Blocks(_)) =
            (site.window, site.order)
        {
            while publisher.posts.len() < usize::from(size) * 2 {
                let first = publisher.posts.first().map_or(now, |p| p.when);
                publisher.add(first - FIRST_APART);
                publisher.posts.sort_by_key(|p| p.when);
            }
        }
        publisher
    }

    fn add(&mut self, when: i64) {
        let number = u32::try_from(self.posts.len()).unwrap_or(0) + 1;
        let sources = match self.site.order {
            Order::Merged(sources) | Order::Blocks(sources) => u64::from(sources),
            _ => 1,
        };
        // The first source publishes more than the others.
        let source = mix(u64::from(number), 1) % (sources * 2);
        self.posts.push(Post {
            number,
            source: u32::try_from(if source >= sources { 0 } else { source }).unwrap_or(0),
            issue: self.issue,
            when,
            updated: when,
            alive: true,
            score: mix(u64::from(number), 2) % 1000,
            renamed: self.session,
            ..Post::default()
        });
    }

    /// New posts, the last of them just now.
    pub fn post(&mut self, count: usize) {
        let count = match self.site.window {
            Window::Issue(size) => {
                self.issue += 1;
                usize::from(size)
            }
            _ => count,
        };
        for at in 0..count {
            let before = i64::try_from(count - at).unwrap_or(0);
            self.add(self.now - before * 60);
        }
    }

    pub fn window_size(&self) -> usize {
        match self.site.window {
            Window::Count(size) | Window::Issue(size) => usize::from(size) + 2,
            _ => 20,
        }
    }

    /// Time goes by; ranks go up and down.
    pub fn advance(&mut self, seconds: i64) {
        self.now += seconds;
        self.build += 1;
        for post in &mut self.posts {
            let luck = mix(u64::from(post.number), self.build);
            if luck.is_multiple_of(5) {
                post.score = luck / 5 % 1000;
            }
        }
    }

    fn is_pinned(&self, post: &Post) -> bool {
        post.number == 1 && self.site.pinned != Pinned::No
    }

    /// The numbers of the posts that a document shows now, in its order.
    pub fn shown(&self) -> Vec<u32> {
        let there = |post: &&Post| post.alive && !post.lost;
        let loose = self.posts.iter().filter(|p| !self.is_pinned(p));
        let mut list: Vec<&Post> = if self.site.backfills {
            self.windowed(loose.filter(there).collect())
        } else {
            self.windowed(loose.collect()).into_iter().filter(there).collect()
        };
        let key = |post: &Post| (self.time_of(post), post.number);
        match self.site.order {
            Order::NewestFirst | Order::Merged(_) | Order::ByUpdate => {
                list.sort_by_key(|p| Reverse(key(p)));
            }
            Order::OldestFirst => list.sort_by_key(|p| key(p)),
            Order::Ranked => list.sort_by_key(|p| (Reverse(p.score), p.number)),
            Order::Unsorted => list.sort_by_key(|p| mix(u64::from(p.number), 3)),
            Order::Blocks(_) => list.sort_by_key(|p| (p.source, Reverse(key(p)))),
        }
        let pinned = self.posts.iter().find(|p| self.is_pinned(p) && there(p)).map(|p| p.number);
        let list = list.into_iter().map(|p| p.number);
        match self.site.pinned {
            Pinned::Top => pinned.into_iter().chain(list).collect(),
            _ => list.chain(pinned).collect(),
        }
    }

    fn time_of(&self, post: &Post) -> i64 {
        if self.site.order == Order::ByUpdate { post.updated } else { post.when }
    }

    fn windowed<'a>(&self, mut list: Vec<&'a Post>) -> Vec<&'a Post> {
        match self.site.order {
            Order::Ranked => list.sort_by_key(|p| (Reverse(p.score), p.number)),
            _ => list.sort_by_key(|p| Reverse((self.time_of(p), p.number))),
        }
        let since = |days: usize| self.now - i64::try_from(days).unwrap_or(0) * DAY;
        let more = self.swollen;
        match self.site.window {
            Window::Count(size) => {
                let size = usize::from(size) + more;
                match self.site.order {
                    Order::Merged(sources) | Order::Blocks(sources) => {
                        let each = (size / usize::from(sources)).max(1);
                        let mut counts = vec![0; usize::from(sources)];
                        list.retain(|p| {
                            let count = &mut counts[p.source as usize];
                            *count += 1;
                            *count <= each
                        });
                    }
                    _ => list.truncate(size),
                }
            }
            Window::Span(days) => {
                list.retain(|p| self.time_of(p) > since(usize::from(days) + more));
            }
            Window::SpanAtLeast(days, least) => {
                let recent = since(usize::from(days) + more);
                let count = list.iter().filter(|p| self.time_of(p) > recent).count();
                list.truncate(count.max(usize::from(least)));
            }
            Window::Monthly => {
                let month = |time: i64| (time - START) / (30 * DAY);
                list.retain(|p| month(self.time_of(p)) == month(self.now));
            }
            Window::Issue(_) => list.retain(|p| p.issue == self.issue),
            Window::Complete | Window::Growing => {}
        }
        list
    }

    pub fn get(&self, number: u32) -> &Post {
        self.posts.iter().find(|p| p.number == number).unwrap()
    }

    pub fn get_mut(&mut self, number: u32) -> &mut Post {
        self.posts.iter_mut().find(|p| p.number == number).unwrap()
    }

    pub fn pick(&self, at: u16) -> Option<u32> {
        let shown = self.shown();
        shown.get(usize::from(at) % shown.len().max(1)).copied()
    }

    pub fn pick_old(&self, at: u16) -> Option<u32> {
        let shown = self.shown();
        let there = |p: &&Post| p.alive && !p.lost && !shown.contains(&p.number);
        let old: Vec<u32> = self.posts.iter().filter(there).map(|p| p.number).collect();
        old.get(usize::from(at) % old.len().max(1)).copied()
    }

    pub fn edit(&mut self, number: u32) {
        let now = self.now;
        let post = self.get_mut(number);
        post.text += 1;
        post.revision += 1;
        post.updated = now;
    }

    pub fn rename(&mut self, rename: &Rename) {
        match rename {
            Rename::Https => self.https = true,
            Rename::Host => self.moved += 1,
            Rename::Session => {
                self.session = true;
                self.posts.iter_mut().for_each(|p| p.renamed = true);
            }
            Rename::Generator => {
                self.generator += 1;
                self.posts.iter_mut().for_each(|p| p.renamed = true);
            }
            Rename::Retitle(at) => {
                let now = self.now;
                if let Some(number) = self.pick(*at) {
                    let post = self.get_mut(number);
                    post.retitled += 1;
                    post.revision += 1;
                    post.renamed = true;
                    post.updated = now;
                }
            }
            Rename::Redate(at) => {
                // The address is a thing to see where the date is in it.
                let seen = self.site.path == PathStyle::Date && !self.site.unlinked;
                if let Some(number) = self.pick(*at) {
                    let post = self.get_mut(number);
                    post.when -= 9 * HOUR + 60;
                    post.updated = post.updated.max(post.when);
                    post.renamed = true;
                    post.redated = true;
                    post.revision += u32::from(seen);
                }
            }
        }
    }

    pub fn base(&self) -> String {
        let scheme = if self.https { "https" } else { "http" };
        match self.moved {
            0 => format!("{scheme}://publisher.example"),
            moved => format!("{scheme}://host{moved}.example"),
        }
    }

    pub fn title(&self, post: &Post) -> String {
        const WORDS: [&str; 8] =
            ["harbour", "winter", "council", "bridge", "orchard", "library", "railway", "market"];
        let word = |salt: u64| WORDS[(mix(u64::from(post.number), salt) % 8) as usize];
        let title = match self.site.untitled {
            false => format!("The {} and the {} no {}", word(10), word(11), post.number),
            true => "Update".to_owned(),
        };
        match post.retitled {
            0 => title,
            times => format!("{title}, {} the {} times {times}", word(12), word(13)),
        }
    }

    fn path(&self, post: &Post) -> String {
        match self.site.path {
            PathStyle::Number => format!("/posts/{}", post.number),
            PathStyle::Title => {
                let slug = self.title(post).to_lowercase().replace([' ', ','], "-");
                // Titles that do not tell posts apart get a number.
                match self.site.untitled {
                    true => format!("/posts/{slug}-{}", post.number),
                    false => format!("/posts/{slug}"),
                }
            }
            PathStyle::Date => {
                let date = Time::from_unix(post.when).to_string().replace([':', 'T'], "-");
                format!("/{}/{}", &date[..10], &date[11..19])
            }
        }
    }

    pub fn link(&self, post: &Post) -> String {
        format!("{}{}", self.base(), self.path(post))
    }

    pub fn id(&self, post: &Post) -> Option<String> {
        let id = match (self.site.ids, self.generator) {
            (Ids::None, _) => return None,
            (Ids::Address, 0) => self.link(post),
            (_, generator) => {
                format!("urn:x-post:{:016x}", mix(u64::from(post.number), u64::from(generator)))
            }
        };
        match self.session {
            true => Some(format!("{id}?session={:x}", mix(self.build, 9))),
            false => Some(id),
        }
    }

    pub fn date(&self, post: &Post) -> Option<i64> {
        match self.site.dates {
            Dates::True => Some(post.when),
            Dates::Day => Some(post.when.div_euclid(DAY) * DAY),
            Dates::Build => Some(self.now),
            Dates::Ancient => Some(Time::parse_rfc3339("0001-01-01T00:00:00Z").unwrap().unix()),
            Dates::None => None,
        }
    }
}
