//! Who may be asked now: one request at a time to a registrable domain, with a pause between two, and
//! so many overall; a host that has asked to be left alone, not at all. Pure; the time is told.
//!
//! Every request of polling takes its turn here, so this is the one place that asks for pauses. What
//! stands in a line when a long pause of its host begins, or comes to it later, is handed back to be put off.
//! Only what an operator asks for goes past lines and pauses.

use super::domains::{host_name, host_with_port, whole_host};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tidegate_net::fetch::{AllowPrivate, read_url};
use tokio::time::Instant;

/// A host as politeness tells hosts apart, and the pause that it is owed.
///
/// Names below one registrable domain are one: they are one publisher's machines as a rule. Private
/// suffixes (`github.io`) count as those of a registry: below them each name is somebody else's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoliteHost {
    /// The name of its line.
    pub name: Arc<str>,
    /// The whole name: what asks for a pause asks for itself.
    pub full: Arc<str>,
    /// Its registrable domain, also where it has a line of its own.
    pub domain: Arc<str>,
    pub pace: Pace,
    /// The pause before what an announcement lists.
    listed: Duration,
}

/// The pause between two requests for what an announcement lists, where the operator says nothing of
/// the host: its publisher has told of a hundred changes so that they are read.
pub const LISTED_SPACING: Duration = Duration::from_millis(250);

/// How politely a host is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pace {
    /// The pause between two requests.
    pub spacing: Duration,
    /// Requests at the same time; none is as one.
    pub parallel: usize,
}

/// How hosts are asked.
#[derive(Debug, Clone, Default)]
pub struct HostRules {
    /// The pause between two requests to a host of which nothing else is said.
    pub spacing: Duration,
    /// The operator's own hosts, which are owed no pause.
    pub allow_private: AllowPrivate,
    /// Hosts with a pace of their own, by name.
    pub paces: Arc<BTreeMap<String, Pace>>,
}

impl HostRules {
    /// The host of an address. The operator's own ones are told apart by port too, and owed no pause. An address that
    /// cannot be read has a host of its own, since nobody will be asked. The operator's pace of a host is that of the
    /// nearest name above it; a host below its domain that has a pace of its own has a line of its own.
    pub fn host(&self, address: &str) -> PoliteHost {
        let of = |domain: &str, full: &str, spacing: Duration| {
            let domain: Arc<str> = domain.into();
            let full = if *full == *domain { Arc::clone(&domain) } else { full.into() };
            let (pace, listed) = (Pace { spacing, parallel: 1 }, spacing.min(LISTED_SPACING));
            PoliteHost { name: Arc::clone(&domain), full, domain, pace, listed }
        };
        let Ok(url) = read_url(address) else { return of(address, address, Duration::ZERO) };
        let bare = whole_host(&url);
        let mut host = if self.allow_private.is_own_host(&url) {
            let name = host_with_port(&url);
            of(&name, &name, Duration::ZERO)
        } else {
            of(&host_name(&url), bare, self.spacing)
        };
        if self.paces.is_empty() {
            return host;
        }
        let names = std::iter::successors(Some(bare), |name| Some(name.split_once('.')?.1));
        let mut names = std::iter::once(&*host.full).chain(names);
        if let Some((name, pace)) = names.find_map(|name| self.paces.get_key_value(name)) {
            if name.len() > host.name.len() {
                host.name = name.as_str().into();
            }
            (host.pace, host.listed) = (*pace, pace.spacing);
        }
        host
    }
}

/// Who goes before whom in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostRank {
    /// What tells of changes.
    Announcement,
    /// What announcements list.
    Listed,
    Usual,
}

/// Who waits in a line, which is of a whole domain, for a host of it.
#[derive(Debug)]
struct Waiting<T> {
    who: T,
    address: Box<str>,
    host: PoliteHost,
}

/// A place in a line: by rank, and who came first.
type PlaceInLine = (HostRank, u64);

#[derive(Debug)]
struct HostLine<T> {
    /// Requests in flight.
    running: usize,
    waiting: BTreeMap<PlaceInLine, Waiting<T>>,
    /// How many above the usual rank went in a row.
    in_a_row: u32,
    /// When a request last began or ended.
    last: Option<Instant>,
    /// Until when its host takes no requests.
    paused_until: Option<Instant>,
    /// Its place in `Politeness::free`, while there is room.
    place: Option<(Instant, u64)>,
    /// How its host is asked, as it was last said.
    host: PoliteHost,
}

/// A pause of at most so long is waited for in line, so that each has its turn however slow a host is. For a longer one
/// what waits is put off.
pub const MAX_WAIT_IN_LINE: Duration = Duration::from_secs(120);

/// How many of those that an announcement lists go before one that waits longer: a publisher who always
/// announces something must not keep all else from being asked.
const LISTED_IN_A_ROW: u32 = 16;

impl<T> HostLine<T> {
    /// Whose turn it is.
    fn first(&self) -> Option<PlaceInLine> {
        let (first, _) = self.waiting.first_key_value()?;
        let usual = self.waiting.range((HostRank::Usual, 0)..).next();
        let usual = usual.filter(|_| self.in_a_row >= LISTED_IN_A_ROW);
        Some(usual.map_or(*first, |(place, _)| *place))
    }

    /// Takes the next one that still waits out of the line.
    fn pop(&mut self, still_waits: impl Fn(&T) -> bool) -> Option<Waiting<T>> {
        loop {
            let place = self.first()?;
            let next = self.waiting.remove(&place)?;
            if still_waits(&next.who) {
                let is_usual = place.0 == HostRank::Usual;
                self.in_a_row = if is_usual { 0 } else { self.in_a_row.saturating_add(1) };
                return Some(next);
            }
        }
    }

    /// From when on the next request may begin; `None` while there is no room for one.
    fn free_from(&self, now: Instant) -> Option<Instant> {
        let pause = match self.first() {
            Some((HostRank::Announcement | HostRank::Listed, _)) => self.host.listed,
            Some((HostRank::Usual, _)) | None => self.host.pace.spacing,
        };
        let has_room = self.running < self.host.pace.parallel.max(1);
        let free = self.last.map_or(now, |last| last + pause);
        has_room.then(|| self.paused_until.map_or(free, |until| until.max(free)))
    }
}

/// The lines of all who are to ask hosts.
#[derive(Debug)]
pub struct Politeness<T> {
    pub rules: HostRules,
    at_once: usize,
    running: usize,
    lines: HashMap<Arc<str>, HostLine<T>>,
    /// Hosts that are not busy, by the time from which they may be asked.
    free: BTreeMap<(Instant, u64), Arc<str>>,
    placed: u64,
    pauses: Pauses,
    /// What is to be put off, for its host has asked for a pause.
    put_off: VecDeque<Waiting<T>>,
}

impl<T> Politeness<T> {
    /// No more than `at_once` requests at the same time, at least one.
    pub fn new(at_once: usize, rules: HostRules) -> Self {
        Self {
            rules,
            at_once: at_once.max(1),
            running: 0,
            lines: HashMap::new(),
            free: BTreeMap::new(),
            placed: 0,
            pauses: Pauses::default(),
            put_off: VecDeque::new(),
        }
    }

    /// Puts somebody in the line of an address's host, behind all of this rank.
    pub fn enqueue(&mut self, who: T, address: &str, rank: HostRank, now: Instant) {
        let (address, host) = (address.into(), self.rules.host(address));
        self.put_in_line(Waiting { who, address, host }, rank, now);
    }

    fn put_in_line(&mut self, waiting: Waiting<T>, rank: HostRank, now: Instant) {
        let left = self.pauses.left(&waiting.host, now);
        if left.is_some_and(|left| left > MAX_WAIT_IN_LINE) {
            return self.put_off.push_back(waiting);
        }
        self.placed += 1;
        let (place, name) = ((rank, self.placed), Arc::clone(&waiting.host.name));
        let line = self.line(&waiting.host);
        line.paused_until = line.paused_until.max(left.map(|left| now + left));
        line.waiting.insert(place, waiting);
        self.requeue(&name, now);
    }

    /// Takes in that the host of an address asks to be left alone for so long. What waits for it leaves its line.
    pub fn pause(&mut self, address: &str, wait: Duration, now: Instant) {
        let host = self.rules.host(address);
        self.pauses.ask(&host, wait, now);
        if wait <= MAX_WAIT_IN_LINE {
            let line = self.line(&host);
            line.paused_until = line.paused_until.max(Some(now + wait));
            return self.requeue(&host.name, now);
        }
        for line in self.lines.values_mut().filter(|line| line.host.domain == host.domain) {
            let is_paused = |it: &Waiting<T>| self.pauses.left(&it.host, now).is_some();
            let (leave, stay): (BTreeMap<_, _>, _) =
                std::mem::take(&mut line.waiting).into_iter().partition(|(_, it)| is_paused(it));
            line.waiting = stay;
            self.put_off.extend(leave.into_values());
        }
    }

    /// How long the host of an address is still to be left alone.
    pub fn paused(&self, address: &str, now: Instant) -> Option<Duration> {
        self.pauses.left(&self.rules.host(address), now)
    }

    /// Asks hosts in another way from now on: puts what waits into the lines of other hosts, or of the same ones at
    /// another pace.
    pub fn reconfigure(&mut self, at_once: usize, rules: HostRules, now: Instant) {
        (self.at_once, self.rules) = (at_once.max(1), rules);
        let mut all = Vec::new();
        for line in self.lines.values_mut() {
            let waiting = std::mem::take(&mut line.waiting).into_iter();
            all.extend(waiting.map(|((rank, _), waiting)| (waiting, rank, line.last)));
        }
        for (waiting, rank, last) in all {
            let host = self.rules.host(&waiting.address);
            // What was owed to the host in its old line still is.
            let line = self.line(&host);
            line.last = line.last.max(last);
            self.put_in_line(Waiting { host, ..waiting }, rank, now);
        }
    }

    /// The next one that may ask its host now, and counts as running until [`Politeness::finish`], or whose host has
    /// asked to be left alone, for so long still. One that waits no more goes.
    pub fn next(
        &mut self,
        now: Instant,
        still_waits: impl Fn(&T) -> bool,
    ) -> Option<(T, Result<PoliteHost, Duration>)> {
        while let Some(Waiting { who, host, .. }) = self.put_off.pop_front() {
            if still_waits(&who) {
                let left = self.pauses.left(&host, now).unwrap_or_default();
                return Some((who, Err(left)));
            }
        }
        while self.running < self.at_once {
            let (place, _) = self.free.first_key_value()?;
            if place.0 > now {
                return None;
            }
            let (_, name) = self.free.pop_first()?;
            let line = self.lines.get_mut(&name)?;
            line.place = None;
            // What waited when its place was given may have left since, and another pause may count.
            if line.free_from(now).is_some_and(|at| at > now) {
                self.requeue(&name, now);
                continue;
            }
            match line.pop(&still_waits) {
                Some(Waiting { who, host, .. }) => {
                    line.running += 1;
                    line.last = Some(now);
                    self.running += 1;
                    self.requeue(&name, now);
                    return Some((who, Ok(host)));
                }
                // Nobody waits and its pause is over: it needs not be remembered.
                None if line.running == 0 => drop(self.lines.remove(&name)),
                None => {}
            }
        }
        None
    }

    /// One that was let ask a host has ended.
    pub fn finish(&mut self, host: &PoliteHost, now: Instant) {
        self.running = self.running.saturating_sub(1);
        if let Some(line) = self.lines.get_mut(&host.name) {
            line.running = line.running.saturating_sub(1);
            line.last = Some(now);
        }
        self.requeue(&host.name, now);
    }

    /// A request was made that an operator asked for: the spacing counts from here.
    pub fn asked(&mut self, address: &str, now: Instant) {
        let host = self.rules.host(address);
        let line = self.line(&host);
        if line.running == 0 {
            line.last = Some(now);
            self.requeue(&host.name, now);
        }
    }

    /// When the next one may be let ask, if nothing else happens.
    pub fn wake_at(&self) -> Option<Instant> {
        let room = self.running < self.at_once;
        self.free.first_key_value().filter(|_| room).map(|((at, _), _)| *at)
    }

    fn line(&mut self, host: &PoliteHost) -> &mut HostLine<T> {
        let line = self.lines.entry(Arc::clone(&host.name)).or_insert_with(|| HostLine {
            running: 0,
            waiting: BTreeMap::new(),
            in_a_row: 0,
            last: None,
            paused_until: None,
            place: None,
            host: host.clone(),
        });
        if line.host != *host {
            line.host = host.clone();
        }
        line
    }

    /// Gives a line its place among those that may go on, from when on it may.
    fn requeue(&mut self, name: &Arc<str>, now: Instant) {
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
        self.free.insert(place, Arc::clone(name));
    }
}

/// The most hosts whose pauses are remembered.
pub const MAX_HOSTS: usize = 10_000;
/// Within what time two hosts of a domain must have asked for a pause for the domain to have one.
pub const DOMAIN_WITHIN: Duration = Duration::from_secs(3600);
/// The longest pause of a host, whatever it asks for.
pub const MAX_HOST_PAUSE: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug)]
struct DomainPause {
    domain: Arc<str>,
    at: Instant,
    until: Instant,
}

/// Which hosts have asked for a pause (429, 503 with `Retry-After`, or no requests left), by their whole names: one feed
/// that is told to wait speaks for all of its host, and two hosts of a domain speak for the domain.
#[derive(Debug, Default)]
pub struct Pauses {
    hosts: HashMap<Arc<str>, DomainPause>,
    domains: HashMap<Arc<str>, Instant>,
}

impl Pauses {
    /// Takes in that a host asks to be left alone for so long.
    pub fn ask(&mut self, host: &PoliteHost, wait: Duration, now: Instant) {
        self.hosts.retain(|_, asked| {
            asked.until > now || now.saturating_duration_since(asked.at) < DOMAIN_WITHIN
        });
        self.domains.retain(|_, until| *until > now);
        if self.hosts.len() >= MAX_HOSTS && !self.hosts.contains_key(&host.full) {
            return;
        }
        let until = now + wait.min(MAX_HOST_PAUSE);
        let other = self.hosts.iter().any(|(name, asked)| {
            let recent = now.saturating_duration_since(asked.at) < DOMAIN_WITHIN;
            recent && *name != host.full && asked.domain == host.domain
        });
        if other {
            let domain = self.domains.entry(Arc::clone(&host.domain)).or_insert(until);
            *domain = until.max(*domain);
        }
        let asked = DomainPause { domain: Arc::clone(&host.domain), at: now, until };
        self.hosts.insert(Arc::clone(&host.full), asked);
    }

    /// How long a host is still to be left alone.
    pub fn left(&self, host: &PoliteHost, now: Instant) -> Option<Duration> {
        let own = self.hosts.get(&host.full).map(|asked| asked.until);
        let until = own.max(self.domains.get(&host.domain).copied())?;
        until.checked_duration_since(now).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests;
