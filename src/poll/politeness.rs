//! Decides which host may be asked now. Each registrable domain gets one request at a time, with a pause between two;
//! there is a limit overall, and hosts may ask for longer pauses. Pure; the time is passed in.
//!
//! All requests of polling pass here. If a host asks for a long pause, those that wait in its line, or join it later,
//! are handed back to be put off. Only polls on demand skip lines and pauses.

use super::domains::{full_host_name, host_group, host_with_port};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tidegate_net::fetch::{AllowPrivate, read_url};
use tokio::time::Instant;

/// A host as politeness distinguishes hosts, with its pace.
///
/// All names below a registrable domain are one host, usually one publisher's machines. Private suffixes (`github.io`)
/// count as public ones: each name below them belongs to somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoliteHost {
    /// The key of its line.
    pub name: Arc<str>,
    /// The full host name: it alone is paused when it asks for a pause.
    pub full: Arc<str>,
    /// Its registrable domain, even if the host has its own line.
    pub domain: Arc<str>,
    pub pace: Pace,
    /// The pause between requests for feeds that an announcement lists.
    listed_spacing: Duration,
}

/// The pause between two requests for announced feeds, unless the operator configured the host: its publisher wants
/// them read soon.
pub const LISTED_SPACING: Duration = Duration::from_millis(250);

/// How many requests a host receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pace {
    /// The pause between two requests.
    pub spacing: Duration,
    /// The most requests at the same time; 0 counts as 1.
    pub parallel: usize,
}

/// The operator's rules for asking hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostRules {
    /// The default pause between two requests to a host.
    pub spacing: Duration,
    /// The operator's own hosts, which need no pause.
    pub allow_private: AllowPrivate,
    /// Hosts with their own pace, by name.
    pub paces: Arc<BTreeMap<String, Pace>>,
}

impl HostRules {
    /// Returns the host of `address`. The operator's own hosts are distinguished by port and need no pause. An
    /// unreadable address is its own host: it is never asked. A host's pace is that of the nearest configured name
    /// above it; a configured host below its domain has its own line.
    pub fn host(&self, address: &str) -> PoliteHost {
        let of = |domain: &str, full: &str, spacing: Duration| {
            let domain: Arc<str> = domain.into();
            let full = if *full == *domain { Arc::clone(&domain) } else { full.into() };
            let (pace, listed_spacing) =
                (Pace { spacing, parallel: 1 }, spacing.min(LISTED_SPACING));
            PoliteHost { name: Arc::clone(&domain), full, domain, pace, listed_spacing }
        };
        let Ok(url) = read_url(address) else { return of(address, address, Duration::ZERO) };
        let bare = full_host_name(&url);
        let mut host = if self.allow_private.is_own_host(&url) {
            let name = host_with_port(&url);
            of(&name, &name, Duration::ZERO)
        } else {
            of(&host_group(&url), bare, self.spacing)
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
            (host.pace, host.listed_spacing) = (*pace, pace.spacing);
        }
        host
    }
}

/// The rank of a request in its host's line; lower ones go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostRank {
    /// A request for a document that announces changes.
    Announcement,
    /// A poll of a feed that an announcement lists.
    Listed,
    Usual,
}

/// A request in the line of `host.name`; `T` identifies the requester.
#[derive(Debug)]
struct Waiting<T> {
    requester: T,
    address: Box<str>,
    host: PoliteHost,
}

/// A place in a line: the rank, then the order of arrival.
type PlaceInLine = (HostRank, u64);

#[derive(Debug)]
struct HostLine<T> {
    running: usize,
    waiting: BTreeMap<PlaceInLine, Waiting<T>>,
    /// Consecutive requests above the usual rank.
    in_a_row: u32,
    /// When a request last began or ended.
    last: Option<Instant>,
    /// The end of the pause that its host asked for.
    paused_until: Option<Instant>,
    /// Its key in `Politeness::free`, unless its host is busy.
    place: Option<(Instant, u64)>,
    /// The host with its current pace.
    host: PoliteHost,
}

/// The longest pause that requests wait for in line, so that each gets its turn however slow a host is. For a longer
/// pause they are put off.
pub const MAX_WAIT_IN_LINE: Duration = Duration::from_secs(120);

/// How many announced feeds may precede one that waits longer: a publisher that always announces something must not
/// starve the others.
const LISTED_IN_A_ROW: u32 = 16;

impl<T> HostLine<T> {
    /// Returns the place of the next request.
    fn first(&self) -> Option<PlaceInLine> {
        let (first, _) = self.waiting.first_key_value()?;
        let usual = self.waiting.range((HostRank::Usual, 0)..).next();
        let usual = usual.filter(|_| self.in_a_row >= LISTED_IN_A_ROW);
        Some(usual.map_or(*first, |(place, _)| *place))
    }

    /// Removes and returns the next request that still waits.
    fn pop(&mut self, still_waits: impl Fn(&T) -> bool) -> Option<Waiting<T>> {
        loop {
            let place = self.first()?;
            let next = self.waiting.remove(&place)?;
            if still_waits(&next.requester) {
                let is_usual = place.0 == HostRank::Usual;
                self.in_a_row = if is_usual { 0 } else { self.in_a_row.saturating_add(1) };
                return Some(next);
            }
        }
    }

    /// Returns when the next request may begin; `None` while the host is busy.
    fn free_from(&self, now: Instant) -> Option<Instant> {
        let pause = match self.first() {
            Some((HostRank::Announcement | HostRank::Listed, _)) => self.host.listed_spacing,
            Some((HostRank::Usual, _)) | None => self.host.pace.spacing,
        };
        let has_room = self.running < self.host.pace.parallel.max(1);
        let free = self.last.map_or(now, |last| last + pause);
        has_room.then(|| self.paused_until.map_or(free, |until| until.max(free)))
    }
}

/// The lines of all hosts.
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
    /// Requests to hand back, because their host asked for a long pause.
    put_off: VecDeque<Waiting<T>>,
}

impl<T> Politeness<T> {
    /// Creates empty lines. `at_once`: the most requests at the same time.
    pub fn new(at_once: usize, rules: HostRules) -> Self {
        Self {
            rules,
            at_once,
            running: 0,
            lines: HashMap::new(),
            free: BTreeMap::new(),
            placed: 0,
            pauses: Pauses::default(),
            put_off: VecDeque::new(),
        }
    }

    /// Adds `requester` to the line of the address's host, at the end of its rank.
    pub fn enqueue(&mut self, requester: T, address: &str, rank: HostRank, now: Instant) {
        let (address, host) = (address.into(), self.rules.host(address));
        self.put_in_line(Waiting { requester, address, host }, rank, now);
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

    /// Records that the host of `address` asked for a pause of `wait`. If that is long, the requests that wait for it
    /// are put off.
    pub fn pause(&mut self, address: &str, wait: Duration, now: Instant) {
        let host = self.rules.host(address);
        self.pauses.note_pause(&host, wait, now);
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

    /// Returns the rest of the pause of the address's host; `None` if it has none.
    pub fn paused(&self, address: &str, now: Instant) -> Option<Duration> {
        self.pauses.left(&self.rules.host(address), now)
    }

    /// Applies other rules: moves each waiting request to the line that they give its host.
    pub fn reconfigure(&mut self, rules: HostRules, now: Instant) {
        self.rules = rules;
        let mut all = Vec::new();
        for line in self.lines.values_mut() {
            let waiting = std::mem::take(&mut line.waiting).into_iter();
            all.extend(waiting.map(|((rank, _), waiting)| (waiting, rank, line.last)));
        }
        for (waiting, rank, last) in all {
            let host = self.rules.host(&waiting.address);
            // The new line inherits the spacing since the host's last request.
            let line = self.line(&host);
            line.last = line.last.max(last);
            self.put_in_line(Waiting { host, ..waiting }, rank, now);
        }
    }

    /// Returns the next requester: either its host, which counts as busy until [`Politeness::finish`], or the rest of
    /// its host's pause. Requesters that no longer wait are dropped.
    pub fn next(
        &mut self,
        now: Instant,
        still_waits: impl Fn(&T) -> bool,
    ) -> Option<(T, Result<PoliteHost, Duration>)> {
        while let Some(Waiting { requester, host, .. }) = self.put_off.pop_front() {
            if still_waits(&requester) {
                let left = self.pauses.left(&host, now).unwrap_or_default();
                return Some((requester, Err(left)));
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
            // The line may have changed since its place was computed: requesters left, or another spacing applies.
            if line.free_from(now).is_some_and(|at| at > now) {
                self.requeue(&name, now);
                continue;
            }
            match line.pop(&still_waits) {
                Some(Waiting { requester, host, .. }) => {
                    line.running += 1;
                    line.last = Some(now);
                    self.running += 1;
                    self.requeue(&name, now);
                    return Some((requester, Ok(host)));
                }
                // The line is empty and its pauses are over: forget it.
                None if line.running == 0 => drop(self.lines.remove(&name)),
                None => {}
            }
        }
        None
    }

    /// Ends a request that [`Politeness::next`] allowed.
    pub fn finish(&mut self, host: &PoliteHost, now: Instant) {
        self.running = self.running.saturating_sub(1);
        if let Some(line) = self.lines.get_mut(&host.name) {
            line.running = line.running.saturating_sub(1);
            line.last = Some(now);
        }
        self.requeue(&host.name, now);
    }

    /// Records a request on demand: the host's spacing counts from now.
    pub fn note_request(&mut self, address: &str, now: Instant) {
        let host = self.rules.host(address);
        let line = self.line(&host);
        if line.running == 0 {
            line.last = Some(now);
            self.requeue(&host.name, now);
        }
    }

    /// Returns when the next request may begin if nothing changes before.
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

    /// Recomputes the place of a line in `free`.
    fn requeue(&mut self, name: &Arc<str>, now: Instant) {
        let Some(line) = self.lines.get_mut(name) else { return };
        let old = line.place.take();
        if let Some(place) = old {
            self.free.remove(&place);
        }
        let Some(at) = line.free_from(now) else { return };
        // A line whose time is unchanged keeps its place.
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
/// If two hosts of a domain ask for a pause within this time, the whole domain is paused.
pub const DOMAIN_WITHIN: Duration = Duration::from_secs(3600);
/// The longest pause granted to a host.
pub const MAX_HOST_PAUSE: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug)]
struct GrantedPause {
    domain: Arc<str>,
    at: Instant,
    until: Instant,
}

/// The hosts that asked for a pause (429, 503 with `Retry-After`, or an exhausted rate limit), by full name. An answer
/// to one feed counts for its whole host; two hosts count for their domain.
#[derive(Debug, Default)]
pub struct Pauses {
    hosts: HashMap<Arc<str>, GrantedPause>,
    domains: HashMap<Arc<str>, Instant>,
}

impl Pauses {
    /// Records that `host` asked for a pause of `wait`.
    pub fn note_pause(&mut self, host: &PoliteHost, wait: Duration, now: Instant) {
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
        let asked = GrantedPause { domain: Arc::clone(&host.domain), at: now, until };
        self.hosts.insert(Arc::clone(&host.full), asked);
    }

    /// Returns the rest of the pause of `host`; `None` if it has none.
    pub fn left(&self, host: &PoliteHost, now: Instant) -> Option<Duration> {
        let own = self.hosts.get(&host.full).map(|asked| asked.until);
        let until = own.max(self.domains.get(&host.domain).copied())?;
        until.checked_duration_since(now).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests;
