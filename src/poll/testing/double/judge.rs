use super::{event, hold, state};
use crate::{DocumentJudge, JudgeError, Judged, LedgerReader, SharingContext};
use std::sync::Mutex;
use std::time::Duration;
use tidegate_core::model::{Backfill, BodyPrints, Change, EventKind, Hold, Revision, UpdateHints};
use tidegate_judge::record::{Observation, Verdict};
use tidegate_net::fetch::FetchedDocument;

/// Judges every document as a change with one new item, except for keywords.
#[derive(Default)]
pub struct JudgeDouble {
    /// The counts of unchanged observations passed to `decide_pending`.
    pub looked: Mutex<Vec<u32>>,
    /// Actions to run while each of the next documents is judged.
    pub meanwhile: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl DocumentJudge for JudgeDouble {
    fn take_in(
        &self,
        observation: &Observation<'_>,
        fetched: &FetchedDocument,
        _: &SharingContext,
        _: &LedgerReader,
    ) -> Result<Judged, JudgeError> {
        let meanwhile = self.meanwhile.lock().unwrap().pop();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        let text = String::from_utf8_lossy(&fetched.bytes).into_owned();
        assert!(!text.contains("panic"), "as the document says");
        if text.contains("login") {
            return Err(JudgeError::Unreadable("the publisher sent a web page".into()));
        }
        let mut change = change(observation, fetched.prints, EventKind::Created);
        let is_empty = text.contains("empty");
        if is_empty || text.contains("missing") {
            change.state.next_decision_at = Some(observation.now.plus(Duration::from_secs(600)));
            change.events.clear();
            change.state.render_revision -= 1;
            change.state.hold = is_empty.then(|| hold(observation.now));
        }
        let decision_due = change.state.next_decision_at;
        let held = change.state.hold.as_ref().map(Hold::describe);
        let change = (!text.contains("trivial")).then_some(change);
        Ok(Judged {
            verdict: Verdict { change, held, decision_due, ..Verdict::default() },
            hints: UpdateHints { ttl: Some(Duration::from_secs(1200)), ..UpdateHints::default() },
            full: !text.contains("salvaged"),
            entries: 1,
            ..Judged::default()
        })
    }

    fn decide_pending(
        &self,
        observation: &Observation<'_>,
        same: u32,
    ) -> Result<Verdict, JudgeError> {
        self.looked.lock().unwrap().push(same);
        let known = &observation.snapshot.unwrap().state;
        let prints = BodyPrints { wire: known.wire, body: known.body };
        let change = change(observation, prints, EventKind::Deleted);
        Ok(Verdict { change: Some(change), ..Verdict::default() })
    }

    fn backfill(
        &self,
        observation: &Observation<'_>,
        fetched: &FetchedDocument,
        _: &Backfill,
        _: &LedgerReader,
    ) -> Result<Judged, JudgeError> {
        if !fetched.bytes.starts_with(b"older") {
            return Err(JudgeError::Unreadable("nobody walks here".to_owned()));
        }
        let change = Some(change(observation, fetched.prints, EventKind::Created));
        Ok(Judged { verdict: Verdict { change, ..Verdict::default() }, ..Judged::default() })
    }

    fn judge_replies(
        &self,
        _: &Observation<'_>,
        replies: &tidegate_judge::probe::Replies,
        _: u32,
    ) -> Result<Judged, JudgeError> {
        panic!("nobody was to be asked: {replies:?}")
    }
}

fn change(observation: &Observation<'_>, prints: BodyPrints, kind: EventKind) -> Change {
    let state = state(observation.snapshot, prints, observation.now);
    let base = observation.snapshot.map_or(Revision(0), |snapshot| snapshot.state.revision);
    let (tick, events) = (state.tick, vec![event(kind, state.tick)]);
    let change = Change::of_state(observation.feed.clone(), base, observation.now, state);
    Change { tick, events, ..change }
}
