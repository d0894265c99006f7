//! Who may be asked now: one request at a time to a registrable domain, with a pause between two, and
//! so many overall. Pure; the time is told.

use crate::fetch::{AllowPrivate, read_url};
use crate::model::FeedName;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// A host as politeness tells hosts apart, and the pause that it is owed.
///
/// Names below one registrable domain are one: they are one publisher's machines as a rule. Private
/// suffixes (`github.io`) count as those of a registry: below them each name is somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host {
    name: String,
    /// The whole name: what asks for a pause asks for itself.
    full: String,
    spacing: Duration,
}

impl Host {
    /// The host of a URL. The operator's own ones are told apart by port too, and owed no pause. A
    /// URL that cannot be read has a host of its own, since nobody will be asked.
    pub fn of(url: &str, allow: &AllowPrivate, spacing: Duration) -> Self {
        let Ok(read) = read_url(url) else {
            return Self { name: url.to_owned(), full: url.to_owned(), spacing: Duration::ZERO };
        };
        let host = read.host_str().unwrap_or_default();
        if allow.is_own_host(&read) {
            let port = read.port_or_known_default().unwrap_or_default();
            let name = format!("{host}:{port}");
            Self { full: name.clone(), name, spacing: Duration::ZERO }
        } else {
            let full = host.strip_suffix('.').unwrap_or(host);
            let is_name = matches!(read.host(), Some(url::Host::Domain(_)));
            let domain = psl::domain_str(full).filter(|_| is_name).unwrap_or(full);
            Self { name: domain.to_owned(), full: full.to_owned(), spacing }
        }
    }

    /// Its whole name, where `name` is that of its domain.
    pub fn full(&self) -> &str {
        &self.full
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pause between two requests.
    pub const fn spacing(&self) -> Duration {
        self.spacing
    }
}

/// What a feed waits in a host's line for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Errand {
    /// To be polled.
    Poll(FeedName),
    /// To ask for its missing items.
    Probe(FeedName),
    /// To go a step on through its publisher's older documents.
    Walk(FeedName),
    /// To ask its hub.
    Hub(FeedName),
}

#[derive(Debug, Default)]
struct Line {
    busy: bool,
    waiting: VecDeque<Errand>,
    /// Its place in `Politeness::free`, while it is not busy.
    place: Option<(Instant, u64)>,
}

/// The queue of errands that are due, by host.
#[derive(Debug)]
pub struct Politeness {
    at_once: usize,
    running: usize,
    lines: HashMap<String, Line>,
    /// Hosts that are not busy, by the time from which they may be asked.
    free: BTreeMap<(Instant, u64), String>,
    placed: u64,
}

impl Politeness {
    /// No more than `at_once` requests at the same time, at least one.
    pub fn new(at_once: usize) -> Self {
        let at_once = at_once.max(1);
        Self { at_once, running: 0, lines: HashMap::new(), free: BTreeMap::new(), placed: 0 }
    }

    /// Changes the number of requests at the same time.
    pub fn set_at_once(&mut self, at_once: usize) {
        self.at_once = at_once.max(1);
    }

    /// Puts an errand that is due at the end of its host's line.
    pub fn enqueue(&mut self, errand: Errand, host: &Host, now: Instant) {
        self.line(host, now).waiting.push_back(errand);
    }

    /// Takes an errand out of its host's line again.
    pub fn forget(&mut self, errand: &Errand, host: &Host) {
        if let Some(line) = self.lines.get_mut(&host.name) {
            line.waiting.retain(|waiting| waiting != errand);
        }
    }

    /// The next errand that may be run now; its host is busy from then on until [`Self::finish`].
    pub fn take(&mut self, now: Instant) -> Option<Errand> {
        while self.running < self.at_once {
            let (place, _) = self.free.first_key_value()?;
            if place.0 > now {
                return None;
            }
            let (_, name) = self.free.pop_first()?;
            let line = self.lines.get_mut(&name)?;
            line.place = None;
            match line.waiting.pop_front() {
                Some(errand) => {
                    line.busy = true;
                    self.running += 1;
                    return Some(errand);
                }
                // Nobody waits and its pause is over: it needs not be remembered.
                None => drop(self.lines.remove(&name)),
            }
        }
        None
    }

    /// An errand that was taken has ended.
    pub fn finish(&mut self, host: &Host, now: Instant) {
        self.running = self.running.saturating_sub(1);
        if let Some(line) = self.lines.get_mut(&host.name) {
            line.busy = false;
        }
        self.place(host, now + host.spacing);
    }

    /// A request was made out of turn: the pause counts from here.
    pub fn asked(&mut self, host: &Host, now: Instant) {
        if !self.line(host, now).busy {
            self.place(host, now + host.spacing);
        }
    }

    /// When the next feed may be taken, if nothing else happens.
    pub fn wake_at(&self) -> Option<Instant> {
        let room = self.running < self.at_once;
        self.free.first_key_value().filter(|_| room).map(|((at, _), _)| *at)
    }

    fn line(&mut self, host: &Host, now: Instant) -> &mut Line {
        if !self.lines.contains_key(&host.name) {
            self.lines.insert(host.name.clone(), Line::default());
            self.place(host, now);
        }
        self.lines.entry(host.name.clone()).or_default()
    }

    /// Makes a host free from `at` on.
    fn place(&mut self, host: &Host, at: Instant) {
        let Some(line) = self.lines.get_mut(&host.name) else { return };
        if let Some(place) = line.place.take() {
            self.free.remove(&place);
        }
        self.placed += 1;
        line.place = Some((at, self.placed));
        self.free.insert((at, self.placed), host.name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn poll(text: &str) -> Errand {
        Errand::Poll(FeedName::new(text).unwrap())
    }

    fn host(text: &str) -> Host {
        Host { name: text.to_owned(), full: text.to_owned(), spacing: SECOND }
    }

    #[test]
    fn one_at_a_time_and_a_pause_between() {
        let mut polite = Politeness::new(10);
        let (a, start) = (host("a"), Instant::now());
        polite.enqueue(poll("one"), &a, start);
        polite.enqueue(poll("two"), &a, start);
        assert_eq!(polite.take(start), Some(poll("one")));
        assert_eq!(polite.take(start + 9 * SECOND), None);
        assert_eq!(polite.wake_at(), None);
        polite.finish(&a, start + 9 * SECOND);
        assert_eq!(polite.take(start + 9 * SECOND), None);
        assert_eq!(polite.wake_at(), Some(start + 10 * SECOND));
        assert_eq!(polite.take(start + 10 * SECOND), Some(poll("two")));
    }

    #[test]
    fn hosts_do_not_wait_for_each_other_but_for_room() {
        let mut polite = Politeness::new(2);
        let now = Instant::now();
        for feed in ["a", "b", "c"] {
            polite.enqueue(poll(feed), &host(feed), now);
        }
        assert_eq!(polite.take(now), Some(poll("a")));
        assert_eq!(polite.take(now), Some(poll("b")));
        assert_eq!(polite.take(now), None);
        polite.finish(&host("a"), now);
        assert_eq!(polite.take(now), Some(poll("c")));
    }

    #[test]
    fn a_request_out_of_turn_counts_for_the_pause() {
        let mut polite = Politeness::new(2);
        let (a, now) = (host("a"), Instant::now());
        polite.asked(&a, now);
        polite.enqueue(poll("one"), &a, now);
        assert_eq!(polite.take(now), None);
        assert_eq!(polite.take(now + SECOND), Some(poll("one")));
    }

    #[test]
    fn a_feed_can_be_taken_out_of_the_line() {
        let mut polite = Politeness::new(2);
        let (a, now) = (host("a"), Instant::now());
        polite.enqueue(poll("one"), &a, now);
        polite.forget(&poll("one"), &a);
        assert_eq!(polite.take(now), None);
    }

    #[test]
    fn what_a_feed_waits_for_is_told_apart() {
        let mut polite = Politeness::new(2);
        let (a, now) = (host("a"), Instant::now());
        let probe = Errand::Probe(FeedName::new("one").unwrap());
        polite.enqueue(poll("one"), &a, now);
        polite.enqueue(probe.clone(), &a, now);
        polite.forget(&poll("one"), &a);
        assert_eq!(polite.take(now), Some(probe));
        polite.finish(&a, now);
        assert_eq!(polite.take(now + SECOND), None);
    }

    #[test]
    fn hosts_that_nobody_waits_for_are_forgotten() {
        let mut polite = Politeness::new(1);
        let now = Instant::now();
        for n in 0..1000 {
            let each = host(&format!("host{n}"));
            polite.enqueue(poll("x"), &each, now);
            assert_eq!(polite.take(now), Some(poll("x")));
            polite.finish(&each, now);
        }
        assert_eq!(polite.take(now + SECOND), None);
        assert_eq!((polite.lines.len(), polite.free.len()), (0, 0));
    }

    #[test]
    fn own_hosts_are_owed_no_pause_and_differ_by_port() {
        let of = |url: &str, allow: &AllowPrivate| Host::of(url, allow, SECOND);
        let own = of("http://127.0.0.1:8081/x", &AllowPrivate::All);
        assert_eq!(own, Host { spacing: Duration::ZERO, ..host("127.0.0.1:8081") });
        let stranger = of("https://u:p@Example.org.:8443/x", &AllowPrivate::All);
        assert_eq!(stranger, host("example.org"));
        assert_eq!(of("http://127.0.0.1/", &AllowPrivate::No), host("127.0.0.1"));
    }

    #[test]
    fn names_of_one_registrable_domain_are_one_host() {
        let of = |url: &str| Host::of(url, &AllowPrivate::No, SECOND);
        for url in ["https://a.news.co.uk/", "https://b.news.co.uk:81/x", "https://news.co.uk./"] {
            assert_eq!(of(url).name(), "news.co.uk", "{url}");
        }
        assert_eq!(of("https://a.news.co.uk/").full(), "a.news.co.uk");
        // Below a private suffix each name is somebody else's.
        assert_eq!(of("https://a.github.io/").name(), "a.github.io");
        assert_eq!(of("https://x.b.github.io/").name(), "b.github.io");
        // An address is no name.
        assert_eq!(of("http://93.184.216.34/").name(), "93.184.216.34");
        // What waits for one of them waits for all.
        let (mut polite, now) = (Politeness::new(9), Instant::now());
        polite.enqueue(poll("one"), &of("https://a.news.co.uk/"), now);
        polite.enqueue(poll("two"), &of("https://b.news.co.uk/"), now);
        assert_eq!(polite.take(now), Some(poll("one")));
        polite.finish(&of("https://a.news.co.uk/"), now);
        assert_eq!(polite.take(now), None);
        assert_eq!(polite.take(now + SECOND), Some(poll("two")));
    }
}
