//! Who may be asked now: one request at a time to a registrable domain, with a pause between two, and
//! so many overall; a host that has asked to be left alone, not at all. Pure; the time is told.
//!
//! Every request of polling takes its turn here, so this is the one place that asks for pauses. What
//! stands in a line when its host's pause begins, or comes to it later, is handed back to be put off.
//! Only what an operator asks for goes past lines and pauses.

use super::domains::{registrable_domain, whole_host};
use super::pauses::SharedPauses;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tidegate_core::model::FeedName;
use tidegate_net::fetch::{AllowPrivate, read_url};
use tokio::time::Instant;

/// A host as politeness tells hosts apart, and the pause that it is owed.
///
/// Names below one registrable domain are one: they are one publisher's machines as a rule. Private
/// suffixes (`github.io`) count as those of a registry: below them each name is somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoliteHost(Arc<PolitePace>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PolitePace {
    /// The name of its line.
    name: Arc<str>,
    /// The whole name: what asks for a pause asks for itself.
    full: Arc<str>,
    /// Where its registrable domain begins in the whole name, also where it has a line of its own.
    domain_at: u32,
    spacing: Duration,
    /// Whether the operator says how it is asked.
    is_said: bool,
    /// Requests at the same time.
    parallel: u32,
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

impl PoliteHost {
    /// The host of a URL. The operator's own ones are told apart by port too, and owed no pause. A
    /// URL that cannot be read has a host of its own, since nobody will be asked.
    pub fn from_url(url: &str, allow: &AllowPrivate, spacing: Duration) -> Self {
        let of = |name: &str, full: &str, spacing: Duration| {
            let name: Arc<str> = name.into();
            let full = if *full == *name { Arc::clone(&name) } else { full.into() };
            let domain_at = full.len().saturating_sub(name.len());
            let domain_at = u32::try_from(domain_at).unwrap_or_default();
            let (is_said, parallel) = (false, 1);
            Self(Arc::new(PolitePace { name, full, domain_at, spacing, is_said, parallel }))
        };
        let Ok(read) = read_url(url) else {
            return of(url, url, Duration::ZERO);
        };
        let host = read.host_str().unwrap_or_default();
        if allow.is_own_host(&read) {
            let port = read.port_or_known_default().unwrap_or_default();
            let name = format!("{host}:{port}");
            of(&name, &name, Duration::ZERO)
        } else {
            of(registrable_domain(&read), whole_host(&read), spacing)
        }
    }

    /// The same at the pace that the operator says of it, or of the nearest name above it. A host
    /// below its domain that has a pace of its own has a line of its own.
    pub fn with(self, paces: &BTreeMap<String, Pace>) -> Self {
        if paces.is_empty() {
            return self;
        }
        // One of the operator's own is told apart by its port.
        let PolitePace { name: line, full, .. } = self.0.as_ref();
        let bare = full.rsplit_once(':').map(|(host, _)| host);
        let mut name: &str = if line == full { bare.unwrap_or(full) } else { full };
        if paces.contains_key(&**full) {
            name = full;
        }
        loop {
            if let Some(pace) = paces.get(name) {
                let own = (name.len() > line.len()).then(|| name.into());
                return self.at(pace, own);
            }
            match name.split_once('.') {
                Some((_, above)) => name = above,
                None => return self,
            }
        }
    }

    fn at(&self, pace: &Pace, line: Option<Arc<str>>) -> Self {
        let before = self.0.as_ref();
        Self(Arc::new(PolitePace {
            name: line.unwrap_or_else(|| Arc::clone(&before.name)),
            full: Arc::clone(&before.full),
            domain_at: before.domain_at,
            spacing: pace.spacing,
            is_said: true,
            parallel: u32::try_from(pace.parallel.max(1)).unwrap_or(u32::MAX),
        }))
    }

    /// Its whole name, where `name` is that of its domain.
    pub fn full(&self) -> &str {
        &self.0.full
    }

    /// Its registrable domain.
    pub fn domain(&self) -> &str {
        usize::try_from(self.0.domain_at)
            .ok()
            .and_then(|at| self.0.full.get(at..))
            .unwrap_or_default()
    }

    /// The name of its line.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The pause between two requests.
    pub fn spacing(&self) -> Duration {
        self.0.spacing
    }

    /// The pause before what an announcement lists.
    fn listed(&self) -> Duration {
        let spacing = self.0.spacing;
        if self.0.is_said { spacing } else { spacing.min(LISTED_SPACING) }
    }
}

/// What a feed waits in a host's line for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

impl Errand {
    /// The feed that it is for.
    pub const fn feed(&self) -> &FeedName {
        match self {
            Self::Poll(feed) | Self::Probe(feed) | Self::Walk(feed) | Self::Hub(feed) => feed,
        }
    }
}

/// What becomes of an errand that has left its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dispatch {
    /// It is run now, and counts as running until [`Politeness::finish`].
    Begin(Errand),
    /// It is put off: its host has asked to be left alone, for so long still.
    PutOff(Errand, Duration),
}

/// An errand in a line, and the host that it goes to: a line is of a whole domain.
#[derive(Debug)]
struct QueuedErrand {
    errand: Errand,
    host: PoliteHost,
}

#[derive(Debug, Default)]
struct DomainQueue {
    /// Requests in flight.
    running: usize,
    waiting: VecDeque<QueuedErrand>,
    /// What an announcement lists, which goes first.
    listed: VecDeque<QueuedErrand>,
    /// How many of these went in a row while others waited.
    in_a_row: u32,
    /// When a request last began or ended.
    last: Option<Instant>,
    /// Its place in `Politeness::free`, while there is room.
    place: Option<(Instant, u64)>,
    /// How its host is asked, as it was last said.
    pace: Option<PoliteHost>,
}

/// How many errands that an announcement lists go before one that waits longer: a publisher who always
/// announces something must not keep all else from being asked.
const LISTED_IN_A_ROW: u32 = 16;

impl DomainQueue {
    /// Whether the next one is what an announcement lists.
    fn takes_listed(&self) -> bool {
        let is_turn = self.waiting.is_empty() || self.in_a_row < LISTED_IN_A_ROW;
        !self.listed.is_empty() && is_turn
    }

    /// Takes the next one out of the line.
    fn pop(&mut self) -> Option<QueuedErrand> {
        if self.takes_listed() {
            self.in_a_row = self.in_a_row.saturating_add(1);
            return self.listed.pop_front();
        }
        self.in_a_row = 0;
        self.waiting.pop_front()
    }

    /// From when on the next request may begin; `None` while there is no room for one.
    fn free_from(&self, now: Instant) -> Option<Instant> {
        let pace = self.pace.as_ref()?;
        let pause = if self.takes_listed() { pace.listed() } else { pace.0.spacing };
        let room = u32::try_from(self.running).is_ok_and(|running| running < pace.0.parallel);
        room.then(|| self.last.map_or(now, |last| last + pause))
    }
}

/// The queue of errands that are due, by host.
#[derive(Debug)]
pub struct Politeness {
    at_once: usize,
    running: usize,
    lines: HashMap<Arc<str>, DomainQueue>,
    /// Hosts that are not busy, by the time from which they may be asked.
    free: BTreeMap<(Instant, u64), Arc<str>>,
    placed: u64,
    pauses: SharedPauses,
    /// What is to be put off, for its host has asked for a pause.
    put_off: VecDeque<QueuedErrand>,
}

impl Politeness {
    /// No more than `at_once` requests at the same time, at least one.
    pub fn new(at_once: usize, pauses: SharedPauses) -> Self {
        let at_once = at_once.max(1);
        Self {
            at_once,
            running: 0,
            lines: HashMap::new(),
            free: BTreeMap::new(),
            placed: 0,
            pauses,
            put_off: VecDeque::new(),
        }
    }

    /// Changes the number of requests at the same time.
    pub fn set_at_once(&mut self, at_once: usize) {
        self.at_once = at_once.max(1);
    }

    /// Puts an errand that is due at the end of its host's line.
    pub fn enqueue(&mut self, errand: Errand, host: &PoliteHost, now: Instant) {
        self.stand(errand, host, false, now);
    }

    /// Puts a poll in its host's line that an announcement lists: these go first, and closer.
    pub fn enqueue_listed(&mut self, errand: Errand, host: &PoliteHost, now: Instant) {
        self.stand(errand, host, true, now);
    }

    fn stand(&mut self, errand: Errand, host: &PoliteHost, listed: bool, now: Instant) {
        let waiting = QueuedErrand { errand, host: host.clone() };
        if self.paused(host, now).is_some() {
            return self.put_off.push_back(waiting);
        }
        let line = self.line(host);
        let queue = if listed { &mut line.listed } else { &mut line.waiting };
        queue.push_back(waiting);
        self.requeue(&host.0.name, now);
    }

    /// Takes an errand out of its host's line again.
    pub fn forget(&mut self, errand: &Errand, host: &PoliteHost) {
        let is_other = |waiting: &QueuedErrand| waiting.errand != *errand;
        if let Some(line) = self.lines.get_mut(&host.0.name) {
            line.waiting.retain(is_other);
            line.listed.retain(is_other);
        }
        self.put_off.retain(is_other);
    }

    /// Takes in that a host asks to be left alone for so long. What waits for it leaves its line.
    pub fn pause(&mut self, host: &PoliteHost, wait: Duration, now: Instant) {
        let mut pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        pauses.ask(host, wait, now);
        let of_domain = |line: &&mut DomainQueue| {
            line.pace.as_ref().is_some_and(|pace| pace.domain() == host.domain())
        };
        for line in self.lines.values_mut().filter(of_domain) {
            for queue in [&mut line.listed, &mut line.waiting] {
                let is_paused = |waiting: &QueuedErrand| pauses.left(&waiting.host, now).is_some();
                let (leave, stay): (VecDeque<_>, _) =
                    std::mem::take(queue).into_iter().partition(is_paused);
                *queue = stay;
                self.put_off.extend(leave);
            }
        }
    }

    /// How long a host is still to be left alone.
    pub fn paused(&self, host: &PoliteHost, now: Instant) -> Option<Duration> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner).left(host, now)
    }

    /// Puts what waits into the lines of other hosts, or of the same ones at another pace: hosts are
    /// asked in another way from now on. An errand without a host goes.
    pub fn rearrange(
        &mut self,
        mut host_of: impl FnMut(&Errand) -> Option<PoliteHost>,
        now: Instant,
    ) {
        let mut all = Vec::new();
        for line in self.lines.values_mut() {
            let last = line.last;
            for (queue, listed) in [(&mut line.listed, true), (&mut line.waiting, false)] {
                all.extend(queue.drain(..).map(|waiting| (waiting.errand, listed, last)));
            }
        }
        for (errand, listed, last) in all {
            let Some(host) = host_of(&errand) else { continue };
            let line = self.line(&host);
            // What was owed to the host in its old line still is.
            line.last = line.last.max(last);
            self.stand(errand, &host, listed, now);
            self.requeue(&host.0.name, now);
        }
    }

    /// The next errand that may be run now, or that is put off.
    pub fn next(&mut self, now: Instant) -> Option<Dispatch> {
        if let Some(QueuedErrand { errand, host }) = self.put_off.pop_front() {
            let left = self.paused(&host, now).unwrap_or_default();
            return Some(Dispatch::PutOff(errand, left));
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
            match line.pop() {
                Some(QueuedErrand { errand, .. }) => {
                    line.running += 1;
                    line.last = Some(now);
                    self.running += 1;
                    self.requeue(&name, now);
                    return Some(Dispatch::Begin(errand));
                }
                // Nobody waits and its pause is over: it needs not be remembered.
                None if line.running == 0 => drop(self.lines.remove(&name)),
                None => {}
            }
        }
        None
    }

    /// An errand that was taken has ended.
    pub fn finish(&mut self, host: &PoliteHost, now: Instant) {
        self.running = self.running.saturating_sub(1);
        if let Some(line) = self.lines.get_mut(&host.0.name) {
            line.running = line.running.saturating_sub(1);
            line.last = Some(now);
        }
        self.requeue(&host.0.name, now);
    }

    /// A request is made out of turn, the spacing counts from here; where its host has asked for a pause
    /// it must not be made, and this says for how long.
    pub fn ask_out_of_turn(&mut self, host: &PoliteHost, now: Instant) -> Result<(), Duration> {
        self.paused(host, now).map_or(Ok(()), Err)?;
        self.asked(host, now);
        Ok(())
    }

    /// A request was made that an operator asked for: the spacing counts from here.
    pub fn asked(&mut self, host: &PoliteHost, now: Instant) {
        let line = self.line(host);
        if line.running == 0 {
            line.last = Some(now);
            self.requeue(&host.0.name, now);
        }
    }

    /// When the next feed may be taken, if nothing else happens.
    pub fn wake_at(&self) -> Option<Instant> {
        let room = self.running < self.at_once;
        self.free.first_key_value().filter(|_| room).map(|((at, _), _)| *at)
    }

    fn line(&mut self, host: &PoliteHost) -> &mut DomainQueue {
        let line = self.lines.entry(Arc::clone(&host.0.name)).or_default();
        if line.pace.as_ref() != Some(host) {
            line.pace = Some(host.clone());
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

#[cfg(test)]
mod tests;
