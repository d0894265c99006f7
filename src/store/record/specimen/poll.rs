//! Random states of what polling remembers.

use super::*;

pub(crate) fn any_poll() -> impl Strategy<Value = PollState> {
    let validators = (of(text()), of(text()), of(text()), of(text()));
    let about = (feed(), text(), of(any::<u128>()));
    let times = (of(time()), of(time()), of(any_backfill()), of(upstream_hub::any_subscription()));
    let rows = (any::<u32>(), any::<u32>(), of((text(), time())));
    let overlap = (of(any::<Duration>()), any::<u32>(), of(time()));
    let rest = (of(subscription::any_schedule()), overlap, vec(any_interruption(), 0..4));
    (about, validators, rows, of(text()), times, rest).prop_map(
        |((feed, url, body), validators, (failures, gone, pause), last_error, times, rest)| {
            let (schedule, (half_life, missed, last_missed), interruptions) = rest;
            let (etag, last_modified, answered_by, moved_to) = validators;
            let (refreshed, not_before, backfill, subscription) = times;
            PollState {
                feed,
                url,
                body,
                etag,
                last_modified,
                answered_by,
                moved_to,
                failures,
                last_error,
                refreshed,
                not_before,
                backfill: backfill.map(Box::new),
                subscription: subscription.map(Box::new),
                schedule: schedule.map(Box::new),
                gone,
                pause: pause.map(|(address, until)| HostPause { address, until }),
                overlap: Overlap { half_life, missed, last_missed },
                interruptions: interruptions.into_iter().collect(),
            }
        },
    )
}

fn any_interruption() -> impl Strategy<Value = Interruption> {
    let kind = select(vec![InterruptionKind::Failed, InterruptionKind::Held]);
    (kind, time(), of(time()), text()).prop_map(|(kind, since, until, reason)| Interruption {
        kind,
        since,
        until,
        reason,
    })
}

fn any_backfill() -> impl Strategy<Value = Backfill> {
    use WalkStanding::*;
    let standing = select(vec![Walking, Done, Stopped]);
    let trail =
        of(select(vec![ArchiveLayout::Archives, ArchiveLayout::Pages, ArchiveLayout::Numbered]));
    let counts =
        (any::<[u32; 4]>(), any::<[u64; 2]>(), vec(any::<u64>(), 0..9), vec(any::<u64>(), 0..9));
    (standing, trail, of(text()), counts, time(), of(time()), of(text())).prop_map(
        |(standing, trail, next, counts, started, ended, note)| {
            let ([documents, items, known, failures], bytes, marks, gone) = counts;
            let [bytes, taken_bytes] = bytes;
            Backfill {
                standing,
                trail,
                next,
                documents,
                items,
                known,
                bytes,
                taken_bytes,
                failures,
                started,
                ended,
                note,
                marks,
                gone,
            }
        },
    )
}
