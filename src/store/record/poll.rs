//! What polling remembers, on disk.

use super::sharing::Seconds;
use super::upstream_hub::SubscriptionRecord;
use super::{Record, RecordError, fields_and, newest};
use crate::model::{
    Backfill, FeedName, HostPause, PollSchedule, PollState, Trail, UpdateHints, WalkStanding,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A [`PollState`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct PollRecord {
    feed: String,
    etag: Option<String>,
    last_modified: Option<String>,
    answered_by: Option<String>,
    moved_to: Option<String>,
    failures: u32,
    last_error: Option<String>,
    refreshed: Option<Seconds>,
    not_before: Option<Seconds>,
    url: String,
    body: Option<u128>,
    backfill: Option<BackfillRecord>,
    taken_bytes: u64,
    subscription: Option<SubscriptionRecord>,
    schedule: Option<ScheduleRecord>,
    /// Until when the document of the schedule is to be read.
    expires: Option<Seconds>,
    /// How many of the failures say that the feed is gone.
    gone: u32,
    /// What a host asked for: who, and until when.
    pause: Option<(String, Seconds)>,
}

/// A [`PollSchedule`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ScheduleRecord {
    noted: Seconds,
    polled: Seconds,
    ttl: Option<Duration>,
    period: Option<Duration>,
    skip_hours: Vec<u8>,
    skip_days: Vec<u8>,
    freshness: Option<Duration>,
    last_change: Seconds,
    gap: Option<Duration>,
    retry: Option<(Seconds, String)>,
}

/// A [`Backfill`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BackfillRecord {
    standing: StandingRecord,
    trail: Option<TrailRecord>,
    next: Option<String>,
    documents: u32,
    items: u32,
    known: u32,
    bytes: u64,
    failures: u32,
    started: Seconds,
    ended: Option<Seconds>,
    note: Option<String>,
    marks: Vec<u64>,
    gone: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum StandingRecord {
    Walking,
    Done,
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum TrailRecord {
    Archives,
    Pages,
    Numbered,
}

/// What layouts after the seventh tell, and after the sixth.
type Pause = (u32, Option<(String, Seconds)>);
type End = (Option<Seconds>, Pause);

impl Record for PollRecord {
    const VERSION: u8 = 8;

    /// The first layout says neither which address it is about nor which document, and none before
    /// the third tells of a walk; before the fourth, none tells how much walks took in, and before
    /// the fifth, none of a hub, before the sixth, none of the schedule, before the seventh, none of
    /// `expires`, and before the eighth, none of what says that the feed is gone and of pauses of hosts.
    fn read(version: u8, payload: &[u8]) -> Result<Self, RecordError> {
        const NO_WALK: Option<BackfillRecord> = None;
        const NO_BYTES: u64 = 0;
        const NO_HUB: Option<SubscriptionRecord> = None;
        const NO_PLAN: (Option<ScheduleRecord>, End) = (None, NO_END);
        const NO_END: End = (None, NO_PAUSE);
        const NO_PAUSE: Pause = (0, None);
        match version {
            1 => {
                let rest = (String::new(), None::<u128>, NO_WALK, NO_BYTES, NO_HUB, NO_PLAN);
                fields_and(payload, &rest)
            }
            2 => fields_and(payload, &(NO_WALK, NO_BYTES, NO_HUB, NO_PLAN)),
            3 => fields_and(payload, &(NO_BYTES, NO_HUB, NO_PLAN)),
            4 => fields_and(payload, &(NO_HUB, NO_PLAN)),
            5 => fields_and(payload, &NO_PLAN),
            6 => fields_and(payload, &NO_END),
            7 => fields_and(payload, &NO_PAUSE),
            _ => newest(version, payload),
        }
    }
}

impl From<&PollSchedule> for ScheduleRecord {
    fn from(schedule: &PollSchedule) -> Self {
        let hints = &schedule.hints;
        Self {
            noted: schedule.noted.into(),
            polled: schedule.polled.into(),
            ttl: hints.ttl,
            period: hints.period,
            skip_hours: hints.skip_hours.clone(),
            skip_days: hints.skip_days.clone(),
            freshness: schedule.freshness,
            last_change: schedule.last_change.into(),
            gap: schedule.gap,
            retry: schedule.retry.as_ref().map(|(at, why)| ((*at).into(), why.clone())),
        }
    }
}

impl From<ScheduleRecord> for PollSchedule {
    fn from(record: ScheduleRecord) -> Self {
        Self {
            noted: record.noted.into(),
            polled: record.polled.into(),
            hints: UpdateHints {
                ttl: record.ttl,
                period: record.period,
                skip_hours: record.skip_hours,
                skip_days: record.skip_days,
                expires: None,
            },
            freshness: record.freshness,
            last_change: record.last_change.into(),
            gap: record.gap,
            retry: record.retry.map(|(at, why)| (at.into(), why)),
        }
    }
}

impl From<&Backfill> for BackfillRecord {
    fn from(walk: &Backfill) -> Self {
        Self {
            standing: match walk.standing {
                WalkStanding::Walking => StandingRecord::Walking,
                WalkStanding::Done => StandingRecord::Done,
                WalkStanding::Stopped => StandingRecord::Stopped,
            },
            trail: walk.trail.map(|trail| match trail {
                Trail::Archives => TrailRecord::Archives,
                Trail::Pages => TrailRecord::Pages,
                Trail::Numbered => TrailRecord::Numbered,
            }),
            next: walk.next.clone(),
            documents: walk.documents,
            items: walk.items,
            known: walk.known,
            bytes: walk.bytes,
            failures: walk.failures,
            started: walk.started.into(),
            ended: walk.ended.map(Seconds::from),
            note: walk.note.clone(),
            marks: walk.marks.clone(),
            gone: walk.gone.clone(),
        }
    }
}

impl BackfillRecord {
    /// The walk; `taken_bytes` stands beside it.
    fn read(self, taken_bytes: u64) -> Backfill {
        let record = self;
        Backfill {
            standing: match record.standing {
                StandingRecord::Walking => WalkStanding::Walking,
                StandingRecord::Done => WalkStanding::Done,
                StandingRecord::Stopped => WalkStanding::Stopped,
            },
            trail: record.trail.map(|trail| match trail {
                TrailRecord::Archives => Trail::Archives,
                TrailRecord::Pages => Trail::Pages,
                TrailRecord::Numbered => Trail::Numbered,
            }),
            next: record.next,
            documents: record.documents,
            items: record.items,
            known: record.known,
            bytes: record.bytes,
            taken_bytes,
            failures: record.failures,
            started: record.started.into(),
            ended: record.ended.map(Into::into),
            note: record.note,
            marks: record.marks,
            gone: record.gone,
        }
    }
}

impl From<&PollState> for PollRecord {
    fn from(state: &PollState) -> Self {
        let expires = state.schedule.as_ref().and_then(|schedule| schedule.hints.expires);
        Self {
            feed: state.feed.as_str().to_owned(),
            etag: state.etag.clone(),
            last_modified: state.last_modified.clone(),
            answered_by: state.answered_by.clone(),
            moved_to: state.moved_to.clone(),
            failures: state.failures,
            last_error: state.last_error.clone(),
            refreshed: state.refreshed.map(Seconds::from),
            not_before: state.not_before.map(Seconds::from),
            url: state.url.clone(),
            body: state.body,
            backfill: state.backfill.as_ref().map(BackfillRecord::from),
            taken_bytes: state.backfill.as_ref().map_or(0, |walk| walk.taken_bytes),
            subscription: state.subscription.as_ref().map(SubscriptionRecord::from),
            schedule: state.schedule.as_ref().map(ScheduleRecord::from),
            expires: expires.map(Seconds::from),
            gone: state.gone,
            pause: state.pause.as_ref().map(|it| (it.address.clone(), it.until.into())),
        }
    }
}

impl TryFrom<PollRecord> for PollState {
    type Error = RecordError;

    fn try_from(record: PollRecord) -> Result<Self, RecordError> {
        let mut schedule: Option<PollSchedule> = record.schedule.map(Into::into);
        if let Some(schedule) = &mut schedule {
            schedule.hints.expires = record.expires.map(Into::into);
        }
        Ok(Self {
            feed: FeedName::new(&record.feed)?,
            etag: record.etag,
            last_modified: record.last_modified,
            answered_by: record.answered_by,
            moved_to: record.moved_to,
            failures: record.failures,
            last_error: record.last_error,
            refreshed: record.refreshed.map(Into::into),
            not_before: record.not_before.map(Into::into),
            url: record.url,
            body: record.body,
            backfill: record.backfill.map(|walk| walk.read(record.taken_bytes)),
            subscription: record.subscription.map(Into::into),
            schedule,
            gone: record.gone,
            pause: record.pause.map(|(address, until)| HostPause { address, until: until.into() }),
        })
    }
}
