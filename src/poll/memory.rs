//! What rounds go on from: what polling remembers of a feed, and what this process knows of its last document. Pure.

use super::overlap::{Turnover, turned_over};
use super::reason::PlannedPoll;
use super::schedule::{Bounds, FeedSchedule, LastResult, SELDOM_EVERY, UpdateRate, phase};
use super::skip::allowed_from;
use std::time::Duration;
use tidegate_core::model::{
    BodyPrints, FeedRecord, FeedState, InterruptionKind, PollSchedule, PollState, Revision, Time,
    UpdateHints,
};
use tidegate_judge::record::has_moved;
use tidegate_net::fetch::{FetchAnswer, FetchRequest, Fetched, KEPT_IDLE, Validators};

/// How often validators are dropped to read the whole document again: there are servers that
/// answer 304 for ever.
pub const REFRESH_EVERY: Duration = Duration::from_secs(24 * 3600);
/// The times of polls are written down when they were not for this long, or for a quarter of the feed's interval, where
/// that is longer.
pub const WRITE_EVERY: Duration = Duration::from_secs(3600);

/// Stands in a feed's state for the fingerprint of a document that did not show the whole feed: no
/// document equals it, so that after a restart the next one is judged, whatever it is, and seeing
/// the part again never counts as having seen the whole.
pub const NO_PRINTS: BodyPrints = BodyPrints { wire: 0, body: 0 };

/// What most documents ask for.
static NO_HINTS: UpdateHints = UpdateHints {
    ttl: None,
    period: None,
    expires: None,
    skip_hours: Vec::new(),
    skip_days: Vec::new(),
};

/// The last document, and how often it was seen since the commit that led to a revision.
#[derive(Debug, Clone, Copy, Default)]
pub struct LastDocument {
    /// The feed's revision after it was judged. At any other one, the state's own fingerprints
    /// count: somebody else has decided something.
    revision: Revision,
    /// Its fingerprints, and whether it showed the whole feed; `None` where it was a part on purpose, or before the first.
    document: Option<(BodyPrints, bool)>,
    /// Full observations of it since the last commit.
    pub same: u32,
}

impl LastDocument {
    /// How often it was seen unchanged since this revision.
    pub fn same_since(self, revision: Option<Revision>) -> u32 {
        if revision == Some(self.revision) { self.same } else { 0 }
    }

    /// Goes to a revision; at another one than before nothing is known of the document.
    fn follow(&mut self, revision: Revision) {
        if self.revision != revision {
            *self = Self { revision, ..Self::default() };
        }
    }

    /// Whether a commit led from its revision to this one.
    fn precedes(self, revision: Revision) -> bool {
        self.revision.0.checked_add(1) == Some(revision.0)
    }
}

/// What rounds of a feed go on from.
#[derive(Debug, Clone)]
pub struct Memory {
    /// What is stored of it.
    pub state: PollState,
    last: LastDocument,
    /// Whether the last request of this process found where the feed is now, so that the next one
    /// may begin there.
    settled: bool,
    /// When a refresh was begun that has not succeeded yet.
    refreshing: Option<Time>,
    /// A `Last-Modified` that is older than the document it came with, or stood still while that changed: its server
    /// would answer 304 to it for ever.
    disproved: Option<Box<str>>,
    /// Whom the validators were given to; 0: who has no credentials.
    given_to: u64,
}

impl Memory {
    /// The memory of a feed that is new here.
    pub fn new(feed: &FeedRecord, now: Time) -> Self {
        let state = PollState::new(&feed.name, &feed.url);
        Self::from_stored(PollState { refreshed: Some(now), ..state }, now)
    }

    /// The memory of a feed as it was kept, or of one that is new.
    pub fn of(feed: &FeedRecord, kept: Option<PollState>, now: Time) -> Self {
        kept.map_or_else(|| Self::new(feed, now), |kept| Self::from_stored(kept, now))
    }

    /// The memory of a feed after a restart.
    pub fn from_stored(mut state: PollState, now: Time) -> Self {
        // So that not all feeds are read anew at the same time, each that was not refreshed for long goes on at a place
        // of its own within the interval.
        let known = state.refreshed.filter(|at| *at <= now && now.since(*at) < REFRESH_EVERY);
        let place = Duration::from_secs(phase(&state.feed) % REFRESH_EVERY.as_secs());
        state.refreshed = Some(known.unwrap_or_else(|| now.minus(place)));
        if let Some(schedule) = &mut state.schedule {
            // What has still to come is taken for now.
            schedule.last_change = schedule.last_change.min(now);
            schedule.polled = schedule.polled.min(now);
        }
        Self {
            state,
            last: LastDocument::default(),
            settled: false,
            refreshing: None,
            disproved: None,
            given_to: 0,
        }
    }

    /// Whether there was a poll, before the restart at least.
    pub const fn was_polled(&self) -> bool {
        self.state.schedule.is_some()
    }

    /// What the next poll follows from, which begins with the first poll.
    fn schedule(&mut self, now: Time) -> &mut PollSchedule {
        self.state.schedule.get_or_insert_with(|| {
            Box::new(PollSchedule {
                noted: Time::MIN,
                polled: now,
                hints: UpdateHints::default(),
                freshness: None,
                last_change: now,
                gap: None,
                retry: None,
            })
        })
    }

    /// Takes in what the document asks for.
    pub fn asked_by_document(&mut self, hints: UpdateHints, now: Time) {
        self.schedule(now).hints = hints;
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
        let is_fresh = |at: Time| at <= now && now.since(at) < REFRESH_EVERY;
        let due = !self.state.refreshed.is_some_and(is_fresh);
        self.refreshing = due.then_some(now);
        let PollState { etag, last_modified, answered_by, moved_to, .. } = &self.state;
        let begin_there = self.settled && !due && !asked_for;
        // A held document is judged again at each poll, or its hold could never be confirmed.
        let held = state.is_some_and(|state| state.hold.is_some());
        let known = self.prints(&feed.url, state).filter(|_| !held);
        // A 304 means nothing where it is not about what is known.
        let they_hold = known.is_some_and(|known| self.state.body == Some(known.body));
        let validators = (they_hold && !due).then(|| Validators {
            etag: etag.clone(),
            last_modified: last_modified.clone(),
            answered_by: answered_by.clone().or_else(|| Some(self.state.url.clone())),
            given_to: self.given_to,
        });
        FetchRequest {
            start: moved_to.clone().filter(|_| begin_there),
            validators: validators.unwrap_or_default(),
            known_wire: known.map(|prints| prints.wire),
            soon: self.is_polled_often(now),
            ..FetchRequest::whole(feed.url.clone(), now)
        }
        .for_feed(feed)
    }

    /// Whether its next poll comes before an idle connection is closed, if that is as soon after this
    /// one as this one is after the last.
    fn is_polled_often(&self, now: Time) -> bool {
        let polled = self.state.schedule.as_ref().map(|schedule| schedule.polled);
        polled.is_some_and(|polled| polled <= now && now.since(polled) < KEPT_IDLE)
    }

    /// The fingerprints that an unchanged document has, of the feed with this address; `None` where every
    /// document is judged.
    pub fn prints(&self, url: &str, state: Option<&FeedState>) -> Option<BodyPrints> {
        // What another address sent last is no reason not to judge what this one sends.
        let state = state.filter(|state| !has_moved(state, url))?;
        let last = self.last.document.filter(|_| self.last.revision == state.revision);
        let prints = last.map_or(stored(state), |(prints, _)| prints);
        (last.is_some() || prints != NO_PRINTS).then_some(prints)
    }

    /// Takes in that the document is the same as before, and counts the observations of it since
    /// the last commit; `None` where it never showed the whole feed.
    pub fn seen_again(&mut self, state: &FeedState, wire: Option<u128>) -> Option<u32> {
        self.last.follow(state.revision);
        let of_state = (stored(state), stored(state) != NO_PRINTS);
        let (prints, full) = self.last.document.get_or_insert(of_state);
        prints.wire = wire.unwrap_or(prints.wire);
        let is_full = *full;
        self.last.same = self.last.same.saturating_add(u32::from(is_full));
        is_full.then_some(self.last.same)
    }

    /// Takes in that a document was judged; `revision` is the feed's afterwards.
    pub fn judged(&mut self, prints: BodyPrints, full: bool, delta: bool, revision: Revision) {
        let led_to_commit = self.last.revision != revision;
        self.last.follow(revision);
        // A part says nothing of what the whole looks like.
        self.last.document = (!delta).then_some((prints, full));
        if !led_to_commit && full {
            // It agrees with what is known.
            self.last.same = self.last.same.saturating_add(1);
        }
    }

    /// Takes in a commit that left the document as it was.
    pub fn committed(&mut self, revision: Revision) {
        self.last = LastDocument { revision, same: 0, ..self.last };
    }

    /// The last document.
    pub const fn last(&self) -> LastDocument {
        self.last
    }

    /// Takes in that answers of missing items' own addresses were committed, which leaves the
    /// document as it was; nothing where others committed something before.
    pub fn answers_committed(&mut self, revision: Revision) {
        if self.last.precedes(revision) {
            self.committed(revision);
        }
    }

    /// Takes in a commit that neither looked at the document nor counted its observations, which go
    /// on; nothing where others committed something before.
    pub fn moved_on(&mut self, revision: Revision) {
        if self.last.precedes(revision) {
            self.last.revision = revision;
        }
    }

    /// Takes in the latest date in a document that was judged: a `Last-Modified` before it, or one that did not move
    /// when the document changed, is no validator.
    pub fn compare_dates(&mut self, validators: &Validators, newest: Option<Time>) {
        let Some(text) = validators.last_modified.as_deref() else { return };
        let is_older = validators.modified_at().is_some_and(|at| newest > Some(at));
        if is_older || self.state.last_modified.as_deref() == Some(text) {
            self.disproved = Some(text.into());
        }
    }

    /// Takes in what stood around an answer. Validators of a document that did not show the whole
    /// feed are not kept: a 304 to them would count as having seen it.
    pub fn answered(&mut self, fetched: &Fetched, keep_validators: bool, now: Time) {
        let state = &mut self.state;
        let last = self.last.document.filter(|_| keep_validators);
        state.body = last.map(|(prints, _)| prints.body);
        let Validators { etag, last_modified, given_to, .. } = fetched.validators.clone();
        state.etag = etag.filter(|_| keep_validators);
        // Where none was kept of this document, there was a reason for it.
        let is_new = matches!(fetched.answer, FetchAnswer::Document(_));
        let may_be_kept = keep_validators && (is_new || state.last_modified.is_some());
        let is_valid = |text: &String| may_be_kept && self.disproved.as_deref() != Some(text);
        state.last_modified = last_modified.filter(is_valid);
        // Of a million feeds, most answer at their own address.
        state.answered_by = Some(&fetched.final_url).filter(|there| **there != state.url).cloned();
        state.moved_to.clone_from(&fetched.moved_to);
        state.refreshed = self.refreshing.take().or(state.refreshed);
        (self.given_to, self.settled) = (given_to, true);
        self.schedule(now).freshness = fetched.freshness;
    }

    /// The address that is read: feeds whose addresses all redirect to one host wait in that host's line. Once reading
    /// it fails, the configured address is asked again.
    pub fn address(&self) -> &str {
        let answered = self.state.answered_by.as_deref().filter(|_| self.state.failures == 0);
        answered.unwrap_or(&self.state.url)
    }

    /// Whether the last document showed the whole feed, as far as is known.
    pub fn last_was_full(&self) -> bool {
        self.last.document.is_none_or(|(_, full)| full)
    }

    /// Takes in a success.
    pub fn succeeded(&mut self, now: Time) {
        let state = &mut self.state;
        (state.failures, state.gone, state.last_error, state.not_before) = (0, 0, None, None);
        state.interruptions.note(InterruptionKind::Failed, None, now);
    }

    /// Takes in a failure. Next time the configured address is asked again.
    pub fn failed(&mut self, error: &str) {
        self.state.failures = self.state.failures.saturating_add(1);
        self.state.last_error = Some(error.to_owned());
        (self.state.gone, self.settled) = (0, false);
    }

    /// Takes in that the feed is gone for good. It is counted how many polls in a row have said so;
    /// those that were asked for are not, for they may follow each other at once.
    pub fn gone(&mut self, error: &str, asked_for: bool) {
        let before = self.state.gone;
        self.failed(error);
        self.state.gone = before.saturating_add(u32::from(!asked_for || before == 0));
    }

    /// Takes in whether the feed changed, for its rate. The first time, what the store knows of its last change
    /// counts; `state`: before the poll.
    pub fn observed(&mut self, changed: bool, state: Option<&FeedState>, now: Time) {
        let is_first = self.state.schedule.is_none();
        let known = state.map_or(now, |state| state.updated_at.min(now));
        let schedule = self.schedule(now);
        let rate = UpdateRate::from_last_change(schedule.last_change, schedule.gap, now);
        let rate = match changed {
            // Nothing was read before, whatever failed.
            _ if state.is_none() => UpdateRate::since(now),
            true if is_first => UpdateRate::since(now),
            false if is_first => UpdateRate::since(known),
            true => rate.after_change(now),
            false => rate,
        };
        (schedule.last_change, schedule.gap) = rate.parts();
    }

    /// Takes in how much of a document was new.
    pub fn turned_over(&mut self, turnover: Turnover, now: Time) {
        if let Some(schedule) = &self.state.schedule {
            let since = now.since(schedule.polled);
            self.state.overlap = turned_over(self.state.overlap, turnover, since, now);
        }
    }

    /// Moves what is known of its changes along with a clock that was set back.
    pub fn set_back(&mut self, by: Duration) {
        if let Some(schedule) = &mut self.state.schedule {
            schedule.last_change = schedule.last_change.minus(by);
        }
    }

    /// What the schedule is made of.
    pub fn plan(&self, bounds: Bounds, now: Time) -> FeedSchedule<'_> {
        let schedule = self.state.schedule.as_deref();
        let rate = |it: &PollSchedule| UpdateRate::from_last_change(it.last_change, it.gap, now);
        FeedSchedule {
            feed: &self.state.feed,
            bounds,
            rhythm: schedule.map_or(UpdateRate::since(now), rate),
            half_life: self.state.overlap.half_life,
            hints: schedule.map_or(&NO_HINTS, |schedule| &schedule.hints),
            freshness: schedule.and_then(|schedule| schedule.freshness),
        }
    }

    /// Takes in how the last poll went for the schedule. `retry`: when it is tried again, and why
    /// then, where it failed. `polled`: when it was answered, or failed.
    pub fn planned(&mut self, retry: Option<(Time, String)>, polled: Time) {
        let schedule = self.schedule(polled);
        (schedule.retry, schedule.polled) = (retry, polled);
    }

    /// The next poll after a restart, as it follows from the last one that was written down; `None` where none was.
    /// `pending`: when something can be decided.
    pub fn resume(&self, bounds: Bounds, pending: Option<Time>, now: Time) -> Option<PlannedPoll> {
        let schedule = self.state.schedule.as_deref()?;
        let (mut next, most) = match &schedule.retry {
            Some((at, why)) => (PlannedPoll::new(*at, why.clone()), bounds.max().max(SELDOM_EVERY)),
            None => {
                let plan = self.plan(bounds, now);
                (plan.next(LastResult::Read(pending, None), schedule.polled), bounds.max())
            }
        };
        // A clock that was wrong when this was written must not stop the feed.
        let latest = now.plus(most);
        if next.at > latest {
            next.at = allowed_from(latest, &schedule.hints).min(next.at);
        }
        Some(next)
    }

    /// Whether a poll changed something that a restart should know: anything but the times and counts of polls, and the
    /// validators of a document that led to no commit. `before`: as it was before the poll.
    pub fn differs_from(&self, before: &PollState, committed: bool) -> bool {
        substance(&self.state) != substance(before)
            || committed && document(&self.state) != document(before)
    }

    /// Whether its times are to be written down, of a feed with this interval.
    pub fn is_unwritten(&self, interval: Duration, now: Time) -> bool {
        let most = WRITE_EVERY.max(interval / 4);
        let noted = self.state.schedule.as_ref().map(|schedule| schedule.noted);
        noted.is_some_and(|noted| noted > now || now.since(noted) > most)
    }

    /// Whether it was polled since it was written down.
    pub fn is_behind(&self) -> bool {
        self.state.schedule.as_ref().is_some_and(|schedule| schedule.polled > schedule.noted)
    }

    /// What to write down now. Validators that were given to who has credentials are not: nobody knows after a restart
    /// whether those are still the same.
    pub fn write(&mut self, now: Time) -> PollState {
        if let Some(schedule) = &mut self.state.schedule {
            schedule.noted = now;
        }
        let mut state = self.state.clone();
        if self.given_to != 0 {
            (state.body, state.etag, state.last_modified) = (None, None, None);
        }
        state
    }
}

/// What of a state is more than the times and counts of polls. How long an answer stays fresh often differs a little
/// with each one.
fn substance(state: &PollState) -> impl PartialEq {
    let size = |number: u32| number.checked_ilog2();
    let schedule = state.schedule.as_deref().map(|it| {
        let freshness = it.freshness.and_then(|time| time.as_secs().checked_ilog2());
        (&it.hints, freshness, it.last_change, it.gap)
    });
    let errors = (&state.last_error, size(state.failures), size(state.gone));
    let pauses = (state.not_before, &state.pause);
    (errors, pauses, &state.moved_to, state.overlap, &state.interruptions, schedule)
}

/// The validators of its document, and what they belong to.
fn document(state: &PollState) -> impl PartialEq {
    (&state.body, &state.etag, &state.last_modified, &state.answered_by)
}

/// The fingerprints of the last whole document that led to a commit.
const fn stored(state: &FeedState) -> BodyPrints {
    BodyPrints { wire: state.wire, body: state.body }
}

#[cfg(test)]
mod tests;
