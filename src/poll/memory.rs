//! What polling remembers of one feed, and which of it must outlive a restart. Pure.

mod kept;
mod written;

use self::kept::AnsweredBy;
pub use self::kept::KeptState;
use self::written::Written;
use super::overlap::{Turnover, turned_over};
use super::reason::PlannedPoll;
use super::resume::{PolledUntil, Saved};
use super::schedule::{Bounds, FeedSchedule, UpdateRate, phase};
use std::time::Duration;
use tidegate_core::model::{
    BodyPrints, FeedName, FeedRecord, FeedState, Interruptions, Overlap, PollSchedule, PollState,
    Revision, Time, UpdateHints,
};
use tidegate_judge::record::has_moved;
use tidegate_net::fetch::{FetchAnswer, FetchRequest, Fetched, KEPT_IDLE, Validators};

/// How often validators are dropped to read the whole document again: there are servers that
/// answer 304 for ever.
pub const REFRESH_EVERY: Duration = Duration::from_secs(24 * 3600);

/// Stands in a feed's state for the fingerprint of a document that did not show the whole feed: no
/// document equals it, so that after a restart the next one is judged, whatever it is, and seeing
/// the part again never counts as having seen the whole.
pub const NO_PRINTS: BodyPrints = BodyPrints { wire: 0, body: 0 };

/// The last document that was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Last {
    prints: BodyPrints,
    /// Whether it showed the whole feed.
    full: bool,
    /// The feed's revision after it was judged. At any other one, the state's own fingerprints
    /// count: somebody else has decided something.
    revision: Revision,
}

/// How often a document was seen unchanged since the commit that led to a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnchangedCount {
    since: Revision,
    same: u32,
}

impl UnchangedCount {
    /// How often since this revision.
    pub fn at_revision(self, revision: Option<Revision>) -> u32 {
        if revision == Some(self.since) { self.same } else { 0 }
    }
}

/// What polling remembers of one feed.
#[derive(Debug, Clone)]
pub struct Memory {
    /// What may be written down, but for the schedule.
    pub poll: KeptState,
    written: Written,
    /// When the publisher had answered the last poll, or when that failed.
    polled: Option<Time>,
    /// How often it changes; `None` before the first poll.
    rhythm: Option<UpdateRate>,
    /// What its document asks for; `None`: nothing.
    hints: Option<Box<UpdateHints>>,
    /// How long the last answer stays fresh.
    freshness: Option<Duration>,
    last: Option<Last>,
    /// Full observations of the same document since the commit that made `same_since`.
    same: u32,
    same_since: Revision,
    /// Whether the last request of this process found where the feed is now, so that the next one
    /// may begin there.
    settled: bool,
}

impl Memory {
    /// The memory of a feed that is new here.
    pub fn new(feed: &FeedRecord, now: Time) -> Self {
        let poll = PollState {
            feed: feed.name.clone(),
            url: feed.url.clone(),
            body: None,
            etag: None,
            last_modified: None,
            answered_by: None,
            moved_to: None,
            failures: 0,
            last_error: None,
            refreshed: Some(now),
            not_before: None,
            backfill: None,
            subscription: None,
            schedule: None,
            gone: 0,
            pause: None,
            overlap: Overlap::default(),
            interruptions: Interruptions::default(),
        };
        Self::from_saved(poll, now)
    }

    /// The memory of a feed after a restart.
    pub fn from_saved(poll: PollState, now: Time) -> Self {
        // The time of the last refresh is not written down by itself. So that not all feeds are
        // read anew after a restart, each goes on at a place of its own within the interval.
        let known = poll.refreshed.filter(|at| *at <= now && now.since(*at) < REFRESH_EVERY);
        let place = Duration::from_secs(phase(&poll.feed) % REFRESH_EVERY.as_secs());
        let refreshed = known.unwrap_or_else(|| now.minus(place));
        let (poll, schedule) = KeptState::unpack(poll, refreshed);
        let written = Written::new(&poll, schedule.as_ref().map(|kept| kept.polled));
        let mut memory = Self {
            poll,
            written,
            polled: None,
            rhythm: None,
            hints: None,
            freshness: None,
            last: None,
            same: 0,
            same_since: Revision::default(),
            settled: false,
        };
        if let Some(kept) = schedule {
            // A change that has still to come is taken for one of now; the rest is followed as it is.
            if kept.last_change > now {
                memory.written.part(kept.as_ref().clone());
            }
            let PollSchedule { polled, last_change, gap, hints, freshness, retry, .. } = *kept;
            memory.polled = Some(polled);
            memory.rhythm = Some(UpdateRate::from_last_change(last_change, gap, now));
            memory.hints = boxed(hints);
            memory.freshness = freshness;
            memory.poll.rare.change(|rare| rare.retry = retry);
        }
        memory
    }

    /// Whether there was a poll, before the restart at least.
    pub const fn was_polled(&self) -> bool {
        self.polled.is_some()
    }

    /// What the next poll follows from; `None` before the first one.
    pub fn schedule(&self) -> Option<PollSchedule> {
        let polled = self.polled?;
        let (last_change, gap) = self.rhythm.unwrap_or(UpdateRate::since(polled)).parts();
        Some(PollSchedule {
            noted: polled,
            polled,
            hints: self.hints.as_deref().cloned().unwrap_or_default(),
            freshness: self.freshness,
            last_change,
            gap,
            retry: self.poll.rare.retry.clone(),
        })
    }

    /// What is written down will be told from what changes now.
    fn part_from_written(&mut self) {
        if let Some(schedule) = self.written.is_followed().then(|| self.schedule()).flatten() {
            self.written.part(schedule);
        }
    }

    /// Takes in what the document asks for.
    pub fn asked_by_document(&mut self, hints: UpdateHints) {
        if self.hints() != &hints {
            self.part_from_written();
            self.hints = boxed(hints);
        }
    }

    /// What the document asks for.
    pub fn hints(&self) -> &UpdateHints {
        /// What most documents ask for.
        static NOTHING: UpdateHints = UpdateHints {
            ttl: None,
            period: None,
            expires: None,
            skip_hours: Vec::new(),
            skip_days: Vec::new(),
        };
        self.hints.as_deref().unwrap_or(&NOTHING)
    }

    /// The request of the next poll. `asked_for`: the operator wants to know, so that the
    /// configured address is asked.
    pub fn request(
        &mut self,
        feed: &FeedRecord,
        state: Option<&FeedState>,
        asked_for: bool,
        now: Time,
    ) -> FetchRequest {
        let refreshed = self.poll.refreshed;
        let due = refreshed > now || now.since(refreshed) >= REFRESH_EVERY;
        self.poll.rare.change(|rare| rare.refreshing = due.then_some(now));
        let validators = Validators {
            etag: self.poll.etag.as_deref().map(str::to_owned),
            last_modified: self.poll.last_modified.as_deref().map(str::to_owned),
            answered_by: self.poll.answered_by.address(&feed.url).map(str::to_owned),
            given_to: self.poll.rare.given_to,
        };
        let begin_there = self.settled && !due && !asked_for;
        // A held document is judged again at each poll, or its hold could never be confirmed.
        let held = state.is_some_and(|state| state.hold.is_some());
        let known = self.prints(&feed.url, state).filter(|_| !held);
        // A 304 means nothing where it is not about what is known.
        let they_hold = known.is_some_and(|known| self.poll.body == Some(known.body));
        FetchRequest {
            start: self.poll.rare.moved_to.clone().filter(|_| begin_there),
            validators: if they_hold && !due { validators } else { Validators::default() },
            known_wire: known.map(|prints| prints.wire),
            soon: self.is_polled_often(now),
            ..FetchRequest::whole(feed.url.clone(), now)
        }
        .for_feed(feed)
    }

    /// Whether its next poll comes before an idle connection is closed, if that is as soon after this
    /// one as this one is after the last.
    fn is_polled_often(&self, now: Time) -> bool {
        self.polled.is_some_and(|polled| polled <= now && now.since(polled) < KEPT_IDLE)
    }

    /// The fingerprints that an unchanged document has, of the feed with this address; `None` where every
    /// document is judged.
    pub fn prints(&self, url: &str, state: Option<&FeedState>) -> Option<BodyPrints> {
        // What another address sent last is no reason not to judge what this one sends.
        let state = state.filter(|state| !has_moved(state, url))?;
        match self.last {
            Some(last) if last.revision == state.revision => Some(last.prints),
            _ => Some(stored(state)).filter(|prints| *prints != NO_PRINTS),
        }
    }

    /// Takes in that the document is the same as before, and counts the observations of it since
    /// the last commit; `None` where it never showed the whole feed.
    pub fn seen_again(&mut self, state: &FeedState, wire: Option<u128>) -> Option<u32> {
        if self.same_since != state.revision {
            self.same = 0;
            self.same_since = state.revision;
        }
        let last = self.last.filter(|last| last.revision == state.revision);
        let mut last = last.unwrap_or(Last {
            prints: stored(state),
            full: stored(state) != NO_PRINTS,
            revision: state.revision,
        });
        last.prints.wire = wire.unwrap_or(last.prints.wire);
        self.last = Some(last);
        if !last.full {
            return None;
        }
        self.same = self.same.saturating_add(1);
        Some(self.same)
    }

    /// Takes in that a document was judged; `revision` is the feed's afterwards.
    pub fn judged(&mut self, prints: BodyPrints, full: bool, delta: bool, revision: Revision) {
        // A part says nothing of what the whole looks like.
        self.last = (!delta).then_some(Last { prints, full, revision });
        if self.same_since != revision {
            self.same = 0;
            self.same_since = revision;
        } else if full {
            // It led to no commit, so that it agrees with what is known.
            self.same = self.same.saturating_add(1);
        }
    }

    /// Takes in a commit that left the document as it was.
    pub fn committed(&mut self, revision: Revision) {
        if let Some(last) = &mut self.last {
            last.revision = revision;
        }
        self.same = 0;
        self.same_since = revision;
    }

    /// How often the document was seen unchanged since the last commit.
    pub const fn sightings(&self) -> UnchangedCount {
        UnchangedCount { since: self.same_since, same: self.same }
    }

    /// Takes in that answers of missing items' own addresses were committed, which leaves the
    /// document as it was; nothing where others committed something before.
    pub fn answers_committed(&mut self, revision: Revision) {
        let follows = |last: &Last| last.revision.0.checked_add(1) == Some(revision.0);
        if self.last.as_ref().is_some_and(follows) {
            self.committed(revision);
        }
    }

    /// Takes in a commit that neither looked at the document nor counted its observations, which go
    /// on; nothing where others committed something before.
    pub fn moved_on(&mut self, revision: Revision) {
        let follows = |at: Revision| at.0.checked_add(1) == Some(revision.0);
        if let Some(last) = self.last.as_mut().filter(|last| follows(last.revision)) {
            last.revision = revision;
        }
        if follows(self.same_since) {
            self.same_since = revision;
        }
    }

    /// Takes in what stood around an answer. Validators of a document that did not show the whole
    /// feed are not kept: a 304 to them would count as having seen it.
    pub fn answered(&mut self, url: &str, fetched: &Fetched, keep_validators: bool) {
        let kept = &mut self.poll;
        kept.body = self.last.filter(|_| keep_validators).map(|last| last.prints.body);
        let Validators { etag, last_modified, given_to, .. } = &fetched.validators;
        replace(&mut kept.etag, etag.as_deref().filter(|_| keep_validators));
        // Where none was kept of this document, there was a reason for it.
        let is_new = matches!(fetched.answer, FetchAnswer::Document(_));
        let may_be_kept = keep_validators && (is_new || kept.last_modified.is_some());
        let last_modified = last_modified
            .as_deref()
            .filter(|text| may_be_kept && kept.rare.disproved.as_deref() != Some(*text));
        replace(&mut kept.last_modified, last_modified);
        if kept.answered_by.address(url) != Some(fetched.final_url.as_str()) {
            kept.answered_by = AnsweredBy::new(Some(&fetched.final_url), url);
        }
        let refreshed = kept.rare.change(|rare| {
            rare.given_to = *given_to;
            if rare.moved_to != fetched.moved_to {
                rare.moved_to.clone_from(&fetched.moved_to);
            }
            rare.refreshing.take()
        });
        kept.refreshed = refreshed.unwrap_or(kept.refreshed);
        if self.freshness != fetched.freshness {
            self.part_from_written();
            self.freshness = fetched.freshness;
        }
        self.settled = true;
    }

    /// Full observations of the same document since the last commit.
    pub const fn agreed(&self) -> u32 {
        self.same
    }

    /// Whether the last document showed the whole feed, as far as is known.
    pub fn last_was_full(&self) -> bool {
        self.last.is_none_or(|last| last.full)
    }

    /// Takes in a success.
    pub fn succeeded(&mut self) {
        self.poll.failures = 0;
        self.poll.rare.change(|rare| {
            (rare.last_error, rare.not_before, rare.gone) = (None, None, 0);
        });
    }

    /// Takes in a failure. Next time the configured address is asked again.
    pub fn failed(&mut self, error: &str) {
        self.poll.rare.change(|rare| rare.gone = 0);
        self.failed_again(error);
    }

    /// Takes in that the feed is gone for good. It is counted how many polls in a row have said so;
    /// those that were asked for are not, for they may follow each other at once.
    pub fn gone(&mut self, error: &str, asked_for: bool) {
        self.poll.rare.change(|rare| {
            let counts = !asked_for || rare.gone == 0;
            rare.gone = rare.gone.saturating_add(u32::from(counts));
        });
        self.failed_again(error);
    }

    fn failed_again(&mut self, error: &str) {
        self.poll.failures = self.poll.failures.saturating_add(1);
        self.poll.rare.change(|rare| rare.last_error = Some(error.to_owned()));
        self.settled = false;
    }

    /// Takes in whether the feed changed, for the rhythm. The first time, what the store knows of
    /// its last change counts.
    pub fn observed(&mut self, changed: bool, state: Option<&FeedState>, now: Time) {
        let rhythm = match self.rhythm {
            Some(rhythm) if changed => rhythm.after_change(now),
            Some(_) => return,
            None => {
                let last = state.map_or(now, |state| state.updated_at.min(now));
                UpdateRate::since(if changed { now } else { last })
            }
        };
        self.part_from_written();
        self.rhythm = Some(rhythm);
    }

    /// Takes in how much of a document was new.
    pub fn turned_over(&mut self, turnover: Turnover, now: Time) {
        if let Some(polled) = self.polled {
            let since = now.since(polled);
            self.poll.overlap = turned_over(self.poll.overlap, turnover, since, now);
        }
    }

    /// Moves what is known of the rhythm along with a clock that was set back.
    pub fn set_back(&mut self, by: Duration) {
        self.part_from_written();
        if let Some(rhythm) = &mut self.rhythm {
            rhythm.set_back(by);
        }
    }

    /// What the schedule is made of.
    pub fn plan<'a>(&'a self, feed: &'a FeedName, bounds: Bounds, now: Time) -> FeedSchedule<'a> {
        let rhythm = self.rhythm.unwrap_or(UpdateRate::since(now));
        let (hints, freshness) = (self.hints(), self.freshness);
        let half_life = self.poll.overlap.half_life;
        FeedSchedule { feed, bounds, rhythm, half_life, hints, freshness }
    }

    /// Takes in how the last poll went for the schedule. `retry`: when it is tried again, and why
    /// then, where it failed. `polled`: when it was answered, or failed.
    pub fn planned(&mut self, retry: Option<(Time, String)>, polled: Time) {
        if self.poll.rare.retry != retry {
            self.part_from_written();
            self.poll.rare.change(|rare| rare.retry = retry);
        }
        self.polled = Some(polled);
    }

    /// The next poll after a restart, as it follows from what was written down; `None` where nothing
    /// was. `pending`: when something can be decided.
    pub fn resume(
        &self,
        feed: &FeedName,
        bounds: Bounds,
        pending: Option<Time>,
        (polled, now): (PolledUntil, Time),
    ) -> Option<PlannedPoll> {
        let schedule = &self.schedule()?;
        let half_life = self.poll.overlap.half_life;
        Some(Saved { feed, bounds, schedule, pending, half_life }.next(polled, now))
    }

    /// Whether a restart at `now` would poll the feed at quite another time than `due`.
    pub fn strays(
        &self,
        feed: &FeedName,
        bounds: Bounds,
        pending: Option<Time>,
        (due, now): (Time, Time),
    ) -> bool {
        let Some(current) = &self.schedule() else { return false };
        let Some(schedule) = &self.written.schedule(current) else { return true };
        let half_life = self.poll.overlap.half_life;
        Saved { feed, bounds, schedule, pending, half_life }.strays(current, due, now)
    }

    /// Whether something changed that a restart should know. An unchanged poll changes nothing of that
    /// kind, even if its validators or its age did.
    pub fn must_be_written(&self, committed: bool) -> bool {
        self.written.is_outdated(&self.poll, committed, || self.schedule())
    }

    /// What to write down; from now on it is taken for written. Validators that were given to who has
    /// credentials are not: nobody knows after a restart whether those are still the same.
    pub fn write(&mut self, feed: &FeedRecord) -> PollState {
        self.written = Written::new(&self.poll, self.polled);
        let mut poll = self.poll.pack(feed, self.schedule().map(Box::new));
        if self.poll.rare.given_to != 0 {
            (poll.body, poll.etag, poll.last_modified) = (None, None, None);
        }
        poll
    }
}

fn boxed(hints: UpdateHints) -> Option<Box<UpdateHints>> {
    (hints != UpdateHints::default()).then(|| Box::new(hints))
}

/// Takes over a text, without a trace where it is the same.
fn replace(text: &mut Option<Box<str>>, new: Option<&str>) {
    if text.as_deref() != new {
        *text = new.map(Box::from);
    }
}

/// The fingerprints of the last whole document that led to a commit.
const fn stored(state: &FeedState) -> BodyPrints {
    BodyPrints { wire: state.wire, body: state.body }
}

#[cfg(test)]
mod tests;
