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
    /// The pause before what an announcement lists.
    listed: Duration,
    /// Requests at the same time.
    parallel: usize,
}

/// The pause between two requests for what an announcement lists, where the operator says nothing of
/// the host: its publisher has told of a hundred changes so that they are read.
pub const LISTED_SPACING: Duration = Duration::from_millis(250);

/// How politely a host is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pace {
    /// The pause between two requests.
    pub spacing: Duration,
    /// Requests at the same time.
    pub parallel: usize,
}

impl Host {
    /// The host of a URL. The operator's own ones are told apart by port too, and owed no pause. A
    /// URL that cannot be read has a host of its own, since nobody will be asked.
    pub fn of(url: &str, allow: &AllowPrivate, spacing: Duration) -> Self {
        let of = |name: String, full: String, spacing: Duration| Self {
            name,
            full,
            spacing,
            listed: spacing.min(LISTED_SPACING),
            parallel: 1,
        };
        let Ok(read) = read_url(url) else {
            return of(url.to_owned(), url.to_owned(), Duration::ZERO);
        };
        let host = read.host_str().unwrap_or_default();
        if allow.is_own_host(&read) {
            let port = read.port_or_known_default().unwrap_or_default();
            let name = format!("{host}:{port}");
            of(name.clone(), name, Duration::ZERO)
        } else {
            let full = host.strip_suffix('.').unwrap_or(host);
            let is_name = matches!(read.host(), Some(url::Host::Domain(_)));
            let domain = psl::domain_str(full).filter(|_| is_name).unwrap_or(full);
            of(domain.to_owned(), full.to_owned(), spacing)
        }
    }

    /// The same at the pace that the operator says of it, or of the nearest name above it. A host
    /// below its domain that has a pace of its own has a line of its own.
    pub fn with(self, paces: &BTreeMap<String, Pace>) -> Self {
        if paces.is_empty() {
            return self;
        }
        // One of the operator's own is told apart by its port.
        let bare = self.full.rsplit_once(':').map(|(host, _)| host);
        let mut name = if self.name == self.full { bare.unwrap_or(&self.full) } else { &self.full };
        if paces.contains_key(self.full.as_str()) {
            name = &self.full;
        }
        loop {
            if let Some(pace) = paces.get(name) {
                let own = (name.len() > self.name.len()).then(|| name.to_owned());
                let pace = *pace;
                return self.at(&pace, own);
            }
            match name.split_once('.') {
                Some((_, above)) => name = above,
                None => return self,
            }
        }
    }

    fn at(mut self, pace: &Pace, line: Option<String>) -> Self {
        (self.spacing, self.listed, self.parallel) =
            (pace.spacing, pace.spacing, pace.parallel.max(1));
        if let Some(line) = line {
            self.name = line;
        }
        self
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
    /// Requests in flight.
    running: usize,
    waiting: VecDeque<Errand>,
    /// What an announcement lists, which goes first.
    listed: VecDeque<Errand>,
    /// When a request last began or ended.
    last: Option<Instant>,
    /// Its place in `Politeness::free`, while there is room.
    place: Option<(Instant, u64)>,
    /// How its host is asked, as it was last said.
    pace: Option<Host>,
}

impl Line {
    /// From when on the next request may begin; `None` while there is no room for one.
    fn free_from(&self, now: Instant) -> Option<Instant> {
        let pace = self.pace.as_ref()?;
        let pause = if self.listed.is_empty() { pace.spacing } else { pace.listed };
        let room = self.running < pace.parallel;
        room.then(|| self.last.map_or(now, |last| last + pause))
    }
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
        self.line(host).waiting.push_back(errand);
        self.settle(&host.name, now);
    }

    /// Puts a poll in its host's line that an announcement lists: these go first, and closer.
    pub fn enqueue_listed(&mut self, errand: Errand, host: &Host, now: Instant) {
        self.line(host).listed.push_back(errand);
        self.settle(&host.name, now);
    }

    /// Takes an errand out of its host's line again.
    pub fn forget(&mut self, errand: &Errand, host: &Host) {
        if let Some(line) = self.lines.get_mut(&host.name) {
            line.waiting.retain(|waiting| waiting != errand);
            line.listed.retain(|waiting| waiting != errand);
        }
    }

    /// The next errand that may be run now; it counts as running until [`Self::finish`].
    pub fn take(&mut self, now: Instant) -> Option<Errand> {
        while self.running < self.at_once {
            let (place, _) = self.free.first_key_value()?;
            if place.0 > now {
                return None;
            }
            let (_, name) = self.free.pop_first()?;
            let line = self.lines.get_mut(&name)?;
            line.place = None;
            match line.listed.pop_front().or_else(|| line.waiting.pop_front()) {
                Some(errand) => {
                    line.running += 1;
                    line.last = Some(now);
                    self.running += 1;
                    self.settle(&name, now);
                    return Some(errand);
                }
                // Nobody waits and its pause is over: it needs not be remembered.
                None if line.running == 0 => drop(self.lines.remove(&name)),
                None => {}
            }
        }
        None
    }

    /// An errand that was taken has ended.
    pub fn finish(&mut self, host: &Host, now: Instant) {
        self.running = self.running.saturating_sub(1);
        if let Some(line) = self.lines.get_mut(&host.name) {
            line.running = line.running.saturating_sub(1);
            line.last = Some(now);
        }
        self.settle(&host.name, now);
    }

    /// A request was made out of turn: the pause counts from here.
    pub fn asked(&mut self, host: &Host, now: Instant) {
        let line = self.line(host);
        if line.running == 0 {
            line.last = Some(now);
            self.settle(&host.name, now);
        }
    }

    /// When the next feed may be taken, if nothing else happens.
    pub fn wake_at(&self) -> Option<Instant> {
        let room = self.running < self.at_once;
        self.free.first_key_value().filter(|_| room).map(|((at, _), _)| *at)
    }

    fn line(&mut self, host: &Host) -> &mut Line {
        let line = self.lines.entry(host.name.clone()).or_default();
        if line.pace.as_ref() != Some(host) {
            line.pace = Some(host.clone());
        }
        line
    }

    /// Gives a line its place among those that may go on, from when on it may.
    fn settle(&mut self, name: &str, now: Instant) {
        let Some(line) = self.lines.get_mut(name) else { return };
        let old = line.place.take();
        if let Some(place) = old {
            self.free.remove(&place);
        }
        let Some(at) = line.free_from(now) else { return };
        // Who waits already keeps the turn.
        let turn = old.filter(|(before, _)| *before == at || line.last.is_none());
        let place = turn.unwrap_or_else(|| {
            self.placed += 1;
            (at, self.placed)
        });
        line.place = Some(place);
        self.free.insert(place, name.to_owned());
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
        let (name, full) = (text.to_owned(), text.to_owned());
        Host { name, full, spacing: SECOND, listed: LISTED_SPACING, parallel: 1 }
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
        let none = Duration::ZERO;
        assert_eq!(own, Host { spacing: none, listed: none, ..host("127.0.0.1:8081") });
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

    #[test]
    fn what_is_listed_goes_first_and_closer() {
        let mut polite = Politeness::new(9);
        let (a, start) = (host("a"), Instant::now());
        polite.asked(&a, start);
        polite.enqueue(poll("plain"), &a, start);
        polite.enqueue_listed(poll("one"), &a, start);
        polite.enqueue_listed(poll("two"), &a, start);
        assert_eq!(polite.take(start), None);
        assert_eq!(polite.wake_at(), Some(start + LISTED_SPACING));
        let first = start + LISTED_SPACING;
        assert_eq!(polite.take(first), Some(poll("one")));
        assert_eq!(polite.take(first + SECOND), None, "one at a time");
        polite.finish(&a, first);
        assert_eq!(polite.take(first + LISTED_SPACING), Some(poll("two")));
        polite.finish(&a, first + LISTED_SPACING);
        assert_eq!(polite.take(first + 2 * LISTED_SPACING), None, "the others keep the pause");
        assert_eq!(polite.take(first + LISTED_SPACING + SECOND), Some(poll("plain")));
    }

    #[test]
    fn an_operator_may_say_how_a_host_is_asked() {
        let pace = |seconds, parallel| Pace { spacing: seconds * SECOND, parallel };
        let paces = BTreeMap::from([
            ("feeds.news.co.uk".to_owned(), pace(0, 2)),
            ("news.co.uk".to_owned(), pace(5, 1)),
            ("github.io".to_owned(), pace(7, 1)),
            ("127.0.0.1".to_owned(), pace(9, 1)),
        ]);
        let of = |url: &str| Host::of(url, &AllowPrivate::No, SECOND).with(&paces);
        let own = of("https://feeds.news.co.uk/");
        assert_eq!(
            (own.name(), own.spacing(), own.parallel),
            ("feeds.news.co.uk", Duration::ZERO, 2)
        );
        assert_eq!(of("https://x.feeds.news.co.uk/").name(), "feeds.news.co.uk");
        let other = of("https://www.news.co.uk/");
        assert_eq!(
            (other.name(), other.spacing(), other.listed),
            ("news.co.uk", 5 * SECOND, 5 * SECOND)
        );
        let below = of("https://a.github.io/");
        assert_eq!((below.name(), below.spacing()), ("a.github.io", 7 * SECOND));
        assert_eq!(of("https://else.example/"), host("else.example"));
        let local = Host::of("http://127.0.0.1:81/", &AllowPrivate::All, SECOND).with(&paces);
        assert_eq!((local.name(), local.spacing()), ("127.0.0.1:81", 9 * SECOND));

        let (mut polite, now) = (Politeness::new(9), Instant::now());
        for feed in ["one", "two", "three"] {
            polite.enqueue(poll(feed), &own, now);
        }
        assert_eq!(polite.take(now), Some(poll("one")));
        assert_eq!(polite.take(now), Some(poll("two")));
        assert_eq!(polite.take(now + SECOND), None, "two at a time");
        polite.finish(&own, now + SECOND);
        assert_eq!(polite.take(now + SECOND), Some(poll("three")));
        polite.finish(&own, now + SECOND);
        polite.finish(&own, now + SECOND);
        assert_eq!(polite.take(now + SECOND), None);
        assert_eq!((polite.lines.len(), polite.free.len(), polite.running), (0, 0, 0));
    }
}
