//! What is remembered of a feed between two rounds: its stored poll state, and what this process knows of its last
//! document. Pure.

use super::schedule::{
    Bounds, FeedSchedule, PlannedPoll, SELDOM_EVERY, UpdateRate, allowed_from, phase,
};
use std::time::Duration;
use tidegate_core::model::{
    BodyPrints, EventKind, FeedRecord, FeedState, InterruptionKind, Overlap, PollSchedule,
    PollState, Revision, Time, UpdateHints,
};
use tidegate_judge::record::has_moved;
use tidegate_net::fetch::{FetchAnswer, FetchRequest, Fetched, KEPT_IDLE, Validators};
use tidegate_status::EventCounts;

/// How often a feed is fetched without validators: some servers answer 304 for ever.
pub const REFRESH_EVERY: Duration = Duration::from_secs(24 * 3600);
/// How long poll times may stay unwritten, or a quarter of the feed's interval if that is longer.
pub const WRITE_EVERY: Duration = Duration::from_secs(3600);

/// Stored as the fingerprint of a document that did not show the whole feed. It equals no document, so that after a
/// restart any document is judged, and a partial one seen again does not count as the whole.
pub const NO_PRINTS: BodyPrints = BodyPrints { wire: 0, body: 0 };

/// The hints of most documents: none.
static NO_HINTS: UpdateHints = UpdateHints {
    ttl: None,
    period: None,
    expires: None,
    skip_hours: Vec::new(),
    skip_days: Vec::new(),
};

/// The state of a feed between two rounds.
#[derive(Debug, Clone)]
pub struct FeedMemory {
    /// The part that is stored.
    pub state: PollState,
    /// The feed's revision after the last document was judged. If the feed has another revision now, somebody else
    /// committed, and the fingerprints in its state count.
    revision: Revision,
    /// The fingerprints of the last document, and whether it showed the whole feed; `None` before the first document or
    /// after a delta.
    document: Option<(BodyPrints, bool)>,
    /// Observations of the whole, unchanged document since the last commit.
    pub unchanged_observations: u32,
    /// Whether the next request may start at the address where the feed permanently moved to. While it is in flight:
    /// whether it does.
    begins_there: bool,
    /// When an unfinished refresh (a request without validators, to the configured address) began.
    refreshing: Option<Time>,
    /// A `Last-Modified` that is wrong: older than the document, or unchanged although the document changed. Its server
    /// would answer 304 to it for ever.
    wrong_last_modified: Option<Box<str>>,
    /// An `ETag` that stayed although the document's items changed.
    wrong_etag: Option<Box<str>>,
    /// Identifies the credentials for which the validators were received; 0: none.
    credentials_id: u64,
}

impl FeedMemory {
    /// Creates the memory of a feed that was never polled.
    pub fn new(feed: &FeedRecord, now: Time) -> Self {
        let state = PollState::new(&feed.name, &feed.url);
        Self::from_stored(PollState { refreshed: Some(now), ..state }, now)
    }

    /// Creates the memory from a stored state, or a new one if there is none.
    pub fn of(feed: &FeedRecord, kept: Option<PollState>, now: Time) -> Self {
        kept.map_or_else(|| Self::new(feed, now), |kept| Self::from_stored(kept, now))
    }

    /// Restores the memory after a restart.
    pub fn from_stored(mut state: PollState, now: Time) -> Self {
        // Spread the refreshes: a feed without a recent one gets its own phase within the interval.
        let known = state.refreshed.filter(|at| *at <= now && now.since(*at) < REFRESH_EVERY);
        let place = Duration::from_secs(phase(&state.feed) % REFRESH_EVERY.as_secs());
        state.refreshed = Some(known.unwrap_or_else(|| now.minus(place)));
        if let Some(schedule) = &mut state.schedule {
            // Times in the future count as now.
            schedule.last_change = schedule.last_change.min(now);
            schedule.polled = schedule.polled.min(now);
        }
        Self {
            state,
            revision: Revision::default(),
            document: None,
            unchanged_observations: 0,
            begins_there: false,
            refreshing: None,
            wrong_last_modified: None,
            wrong_etag: None,
            credentials_id: 0,
        }
    }

    /// Returns how often the last document was observed unchanged; 0 if the feed has another revision.
    pub fn unchanged_since(&self, revision: Option<Revision>) -> u32 {
        if revision == Some(self.revision) { self.unchanged_observations } else { 0 }
    }

    /// Moves to `revision`; if it differs, the document is unknown.
    fn follow(&mut self, revision: Revision) {
        if self.revision != revision {
            (self.revision, self.document, self.unchanged_observations) = (revision, None, 0);
        }
    }

    /// Whether `revision` is the next one after its own.
    fn precedes(&self, revision: Revision) -> bool {
        self.revision.0.checked_add(1) == Some(revision.0)
    }

    /// Returns the stored basis of the schedule, created at the first poll.
    pub fn schedule(&mut self, now: Time) -> &mut PollSchedule {
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

    /// Builds the request of the next poll, without credentials, headers and lead scope ([`FetchRequest::for_feed`]
    /// adds them). `asked_for`: a poll on demand, which requests the configured address unless the last poll failed.
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
        let PollState { etag, last_modified, answered_by, moved_to, failures, .. } = &self.state;
        let has_failed = *failures > 0;
        self.begins_there &= has_failed || !due && !asked_for;
        // A held document is judged again at each poll; otherwise the hold could never be confirmed.
        let held = state.is_some_and(|state| state.hold.is_some());
        let known = self.prints(&feed.url, state).filter(|_| !held);
        // Send validators only if they belong to the known document; else a 304 would mean nothing.
        let they_hold = known.is_some_and(|known| self.state.body == Some(known.body));
        // After a failure send none: some servers refuse conditional requests.
        let validators = (they_hold && !due && !has_failed).then(|| Validators {
            etag: etag.clone(),
            last_modified: last_modified.clone(),
            answered_by: answered_by.clone().or_else(|| Some(self.state.url.clone())),
            credentials_id: self.credentials_id,
        });
        FetchRequest {
            start: moved_to.clone().filter(|_| self.begins_there),
            validators: validators.unwrap_or_default(),
            known_wire: known.map(|prints| prints.wire),
            soon: self.is_polled_often(now),
            ..FetchRequest::whole(feed.url.clone(), now)
        }
    }

    /// Whether the next poll is likely to reuse the connection: the last interval was shorter than connections are kept
    /// idle.
    fn is_polled_often(&self, now: Time) -> bool {
        let polled = self.state.schedule.as_ref().map(|schedule| schedule.polled);
        polled.is_some_and(|polled| polled <= now && now.since(polled) < KEPT_IDLE)
    }

    /// Returns the fingerprints that mark a document as unchanged; `None` if any document must be judged.
    pub fn prints(&self, url: &str, state: Option<&FeedState>) -> Option<BodyPrints> {
        // After a change of address, the other address's document does not matter.
        let state = state.filter(|state| !has_moved(state, url))?;
        let last = self.document.filter(|_| self.revision == state.revision);
        let prints = last.map_or(stored_prints(state), |(prints, _)| prints);
        (last.is_some() || prints != NO_PRINTS).then_some(prints)
    }

    /// Records an unchanged document. Returns its observations since the last commit; `None` if it never showed the
    /// whole feed.
    pub fn note_unchanged(&mut self, state: &FeedState, wire: Option<u128>) -> Option<u32> {
        self.follow(state.revision);
        let of_state = (stored_prints(state), stored_prints(state) != NO_PRINTS);
        let (prints, full) = self.document.get_or_insert(of_state);
        prints.wire = wire.unwrap_or(prints.wire);
        let is_full = *full;
        self.unchanged_observations =
            self.unchanged_observations.saturating_add(u32::from(is_full));
        is_full.then_some(self.unchanged_observations)
    }

    /// Records a judged document; `revision` is the feed's afterwards. `full`: it showed the whole feed; `delta`: it
    /// holds changes only.
    pub fn note_document(
        &mut self,
        prints: BodyPrints,
        full: bool,
        delta: bool,
        revision: Revision,
    ) {
        let led_to_commit = self.revision != revision;
        self.follow(revision);
        // A delta does not tell what the whole document looks like.
        self.document = (!delta).then_some((prints, full));
        if !led_to_commit && full {
            // An unchanged judgement is one more observation.
            self.unchanged_observations = self.unchanged_observations.saturating_add(1);
        }
    }

    /// Records a commit that did not change the document: its observations are counted from 0 again.
    pub fn restart_observations(&mut self, revision: Revision) {
        (self.revision, self.unchanged_observations) = (revision, 0);
    }

    /// Records a commit of probe results, which did not change the document; no effect if others committed in between.
    pub fn note_probe_commit(&mut self, revision: Revision) {
        if self.precedes(revision) {
            self.restart_observations(revision);
        }
    }

    /// Records a commit that did not consider the document, so that its observations go on; no effect if others
    /// committed in between.
    pub fn note_foreign_commit(&mut self, revision: Revision) {
        if self.precedes(revision) {
            self.revision = revision;
        }
    }

    /// Compares the validators of a judged document with it. `Last-Modified` is none if it is older than `newest`, the
    /// latest date in the document, or did not change with the document; an `ETag`, if it did not change with its items.
    pub fn compare_validators(
        &mut self,
        validators: &Validators,
        newest: Option<Time>,
        items_changed: bool,
    ) {
        let Self { state, document, .. } = self;
        let is_other = document.map(|(prints, _)| prints.body) != state.body;
        let etag = validators.etag.as_deref().filter(|_| items_changed && is_other);
        if let Some(text) = etag.filter(|text| state.etag.as_deref() == Some(text)) {
            self.wrong_etag = Some(text.into());
        }
        let Some(text) = validators.last_modified.as_deref() else { return };
        let is_older = validators.modified_at().is_some_and(|at| newest > Some(at));
        if is_older || state.last_modified.as_deref() == Some(text) {
            self.wrong_last_modified = Some(text.into());
        }
    }

    /// Records the metadata of an answer. Validators of a document that did not show the whole feed are dropped: a 304
    /// would count as having seen it whole.
    pub fn note_answer(&mut self, fetched: &Fetched, keep_validators: bool, now: Time) {
        let state = &mut self.state;
        let last = self.document.filter(|_| keep_validators);
        state.body = last.map(|(prints, _)| prints.body);
        let Validators { etag, last_modified, credentials_id, .. } = fetched.validators.clone();
        let is_wrong = |text: &String| self.wrong_etag.as_deref() == Some(text);
        state.etag = etag.filter(|text| keep_validators && !is_wrong(text));
        // A 304 brings no new `Last-Modified` if that was rejected for this document.
        let is_new = matches!(fetched.answer, FetchAnswer::Document(_));
        let may_be_kept = keep_validators && (is_new || state.last_modified.is_some());
        let is_valid =
            |text: &String| may_be_kept && self.wrong_last_modified.as_deref() != Some(text);
        state.last_modified = last_modified.filter(is_valid);
        // Saves memory: most feeds answer at their own address.
        state.answered_by = Some(&fetched.final_url).filter(|there| **there != state.url).cloned();
        state.moved_to.clone_from(&fetched.moved_to);
        state.refreshed = self.refreshing.take().or(state.refreshed);
        (self.credentials_id, self.begins_there) = (credentials_id, true);
        // A 304 leaves as it is what it does not name (RFC 9111 section 4.3.4).
        let is_update = matches!(fetched.answer, FetchAnswer::NotModified);
        let schedule = self.schedule(now);
        schedule.freshness = fetched.freshness.or(schedule.freshness.filter(|_| is_update));
    }

    /// Returns the address whose host the next poll waits for: feeds that redirect to one host share its line.
    pub fn address(&self) -> &str {
        let PollState { answered_by, moved_to, failures, url, .. } = &self.state;
        let moved_to = moved_to.as_ref().filter(|_| self.begins_there);
        let there = if *failures == 0 { answered_by.as_ref() } else { moved_to };
        there.unwrap_or(url)
    }

    /// Whether the last document showed the whole feed; `true` if none is known.
    pub fn last_was_full(&self) -> bool {
        self.document.is_none_or(|(_, full)| full)
    }

    /// Records a success: resets all failures.
    pub fn note_success(&mut self, now: Time) {
        let state = &mut self.state;
        (state.failures, state.gone, state.last_error, state.not_before) = (0, 0, None, None);
        state.interruptions.note(InterruptionKind::Failed, None, now);
    }

    /// Records a failure. The next poll begins at the other address, the configured one or where the feed permanently
    /// moved to: either may be out of service or wrong.
    pub fn note_failure(&mut self, error: &str) {
        self.state.failures = self.state.failures.saturating_add(1);
        self.state.last_error = Some(error.to_owned());
        (self.state.gone, self.begins_there) = (0, !self.begins_there);
    }

    /// Records that the feed is gone (410). Polls on demand do not add to the row, because they may follow each other
    /// at once.
    pub fn note_gone(&mut self, error: &str, asked_for: bool) {
        let before = self.state.gone;
        self.note_failure(error);
        self.state.gone = before.saturating_add(u32::from(!asked_for || before == 0));
    }

    /// Updates the change rate. `state`: the feed before the poll; at the first poll, its last change counts.
    pub fn update_rate(&mut self, changed: bool, state: Option<&FeedState>, now: Time) {
        let is_first = self.state.schedule.is_none();
        let known = state.map_or(now, |state| state.updated_at.min(now));
        let schedule = self.schedule(now);
        let rate = stored_rate(schedule, now);
        let rate = match changed {
            // The feed was never read before, even if polls failed.
            _ if state.is_none() => UpdateRate::since(now),
            true if is_first => UpdateRate::since(now),
            false if is_first => UpdateRate::since(known),
            true => rate.after_change(now),
            false => rate,
        };
        (schedule.last_change, schedule.gap) = (rate.last_change, rate.gap);
    }

    /// Records how much of a document was new.
    pub fn note_turnover(&mut self, turnover: Turnover, now: Time) {
        if let Some(schedule) = &self.state.schedule {
            let since = now.since(schedule.polled);
            self.state.overlap = update_overlap(self.state.overlap, turnover, since, now);
        }
    }

    /// Moves the last change back with a clock that was set back.
    pub fn set_back(&mut self, by: Duration) {
        if let Some(schedule) = &mut self.state.schedule {
            schedule.last_change = schedule.last_change.minus(by);
        }
    }

    /// Returns the basis for computing the next poll.
    pub fn plan(&self, bounds: Bounds, now: Time) -> FeedSchedule<'_> {
        let schedule = self.state.schedule.as_deref();
        FeedSchedule {
            feed: &self.state.feed,
            bounds,
            rate: schedule.map_or(UpdateRate::since(now), |schedule| stored_rate(schedule, now)),
            overlap: self.state.overlap,
            hints: schedule.map_or(&NO_HINTS, |schedule| &schedule.hints),
            freshness: schedule.and_then(|schedule| schedule.freshness),
        }
    }

    /// Records the end of a poll. `retry`: after a failure, the time of the next try and its reason. `polled`: when the
    /// publisher answered or the poll failed.
    pub fn note_poll_end(&mut self, retry: Option<(Time, String)>, polled: Time) {
        let schedule = self.schedule(polled);
        (schedule.retry, schedule.polled) = (retry, polled);
    }

    /// Whether the feed's hub told of a change after the last poll.
    pub fn is_told(&self) -> bool {
        let polled = self.state.schedule.as_ref().map(|schedule| schedule.polled);
        polled < self.state.subscription.as_ref().and_then(|it| it.last_push)
    }

    /// Computes the next poll after a restart; `None` if the feed was never polled. `pending`: when a pending decision
    /// is due.
    pub fn resume(&self, bounds: Bounds, pending: Option<Time>, now: Time) -> Option<PlannedPoll> {
        let schedule = self.state.schedule.as_deref()?;
        let most = bounds.max();
        let (mut next, most) = match &schedule.retry {
            Some((at, why)) => (PlannedPoll::new(*at, why.clone()), most.max(SELDOM_EVERY)),
            None if self.is_told() => (PlannedPoll::new(now, "its hub told of a change"), most),
            None => (self.plan(bounds, now).after_reading(pending, None, schedule.polled), most),
        };
        // A time written with a wrong clock must not stop the feed.
        let latest = now.plus(most);
        if next.at > latest {
            next.at = allowed_from(latest, &schedule.hints).min(next.at);
        }
        Some(next)
    }

    /// Whether a poll changed something that must survive a restart. Poll times and counts need not; validators only if
    /// the document led to a commit. `before`: the state before the poll.
    pub fn differs_from(&self, before: &PollState, committed: bool) -> bool {
        restart_relevant(&self.state) != restart_relevant(before)
            || committed && document_validators(&self.state) != document_validators(before)
    }

    /// Whether the poll times of a feed that is polled again at `next` are due to be written.
    pub fn is_unwritten(&self, next: Time, now: Time) -> bool {
        self.state.schedule.as_ref().is_some_and(|schedule| {
            let most = WRITE_EVERY.max(next.since(schedule.polled) / 4);
            schedule.noted > now || now.since(schedule.noted) > most
        })
    }

    /// Whether the feed was polled after its state was last written.
    pub fn is_behind(&self) -> bool {
        self.state.schedule.as_ref().is_some_and(|schedule| schedule.polled > schedule.noted)
    }

    /// Returns the state to write now. Validators received with credentials are left out: after a restart, the
    /// credentials may have changed.
    pub fn write(&mut self, now: Time) -> PollState {
        if let Some(schedule) = &mut self.state.schedule {
            schedule.noted = now;
        }
        let mut state = self.state.clone();
        if self.credentials_id != 0 {
            (state.body, state.etag, state.last_modified) = (None, None, None);
        }
        state
    }
}

/// A future change counts as one of now: the clock may have been set back while a poll ran.
fn stored_rate(schedule: &PollSchedule, now: Time) -> UpdateRate {
    UpdateRate { last_change: schedule.last_change.min(now), gap: schedule.gap }
}

/// The state without poll times, counts and validators. Freshness counts by its magnitude, since it varies slightly
/// with each answer.
fn restart_relevant(state: &PollState) -> impl PartialEq {
    let size = |number: u32| number.checked_ilog2();
    let schedule = state.schedule.as_deref().map(|it| {
        let freshness = it.freshness.and_then(|time| time.as_secs().checked_ilog2());
        (&it.hints, freshness, it.last_change, it.gap)
    });
    let errors = (&state.last_error, size(state.failures), size(state.gone));
    let pauses = (state.not_before, &state.pause);
    (errors, pauses, &state.moved_to, state.overlap, &state.interruptions, schedule)
}

/// The validators and the document they belong to.
fn document_validators(state: &PollState) -> impl PartialEq {
    (&state.body, &state.etag, &state.last_modified, &state.answered_by)
}

/// The stored fingerprints of the last whole document that led to a commit.
const fn stored_prints(state: &FeedState) -> BodyPrints {
    BodyPrints { wire: state.wire, body: state.body }
}

/// How much of a whole document is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turnover {
    /// Items that are new.
    pub came: u32,
    pub items: u32,
}

impl Turnover {
    /// Compares the states before and after a document with these events. `None` if it tells nothing about missed
    /// items: for a first document or another address; if the document lists every item, or changes only; and around a
    /// held document.
    pub fn between(before: &FeedState, after: &FeedState, counts: &EventCounts) -> Option<Self> {
        let lists_items = !after.says_complete && after.upstream_until.is_none();
        let is_held = before.hold.is_some() || after.hold.is_some();
        let came = counts.get(&EventKind::Created).copied().unwrap_or_default();
        let says = lists_items && !is_held && before.current > 0 && before.source == after.source;
        (says && came > 0).then_some(Self { came, items: after.current.max(1) })
    }

    /// Whether every item is new.
    pub const fn is_whole(self) -> bool {
        self.came >= self.items
    }
}

/// Updates the overlap by a document that arrived `since` after the last poll.
pub fn update_overlap(known: Overlap, turnover: Turnover, since: Duration, now: Time) -> Overlap {
    let came = turnover.came.min(turnover.items).max(1);
    let half = since.saturating_mul(turnover.items) / 2 / came;
    // A feed that speeds up is followed at once, one that slows down gradually.
    let half_life = known.half_life.map_or(half, |before| half.min((before + half) / 2));
    let is_whole = turnover.is_whole();
    Overlap {
        half_life: Some(half_life),
        missed: known.missed.saturating_add(u32::from(is_whole)),
        last_missed: if is_whole { Some(now) } else { known.last_missed },
    }
}

#[cfg(test)]
mod tests;
