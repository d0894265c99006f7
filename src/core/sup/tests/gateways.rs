//! Consumers that alternate between gateways on the same log.

use super::super::*;
use super::documents::{at, id};
use crate::model::{SupId, Tick};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::HashMap;

fn feed(epoch: u64) -> SupId {
    id(&format!("feed-{epoch}"))
}

fn windows(others: bool) -> Windows {
    let mut windows = Windows::new(3600);
    if others {
        windows.allow_other_gateways();
    }
    windows
}

fn document(windows: &Windows, period: u32) -> SupDocument {
    let window = windows.window(period);
    let text = window.write(&[60, 300, 3600], |p| format!("http://g.example/{p}"), |_| true);
    read(text.as_bytes()).unwrap()
}

#[test]
fn what_is_listed_for_other_gateways_is_kept_as_much_longer() {
    for (others, until) in [(true, 20), (false, 0)] {
        let mut windows = windows(others);
        windows.add_epoch(super::documents::closed(1, 0, &["a"]));
        windows.finish(at(0), at(0));
        let last = 3600 + 370 + until;
        windows.finish(at(last), at(last));
        assert_eq!(windows.window(3600).updates().count(), 1, "{others}");
        windows.finish(at(last + 1), at(last + 1));
        assert_eq!((windows.window(3600).updates().count(), windows.len()), (0, 0), "{others}");
        assert!(windows.is_empty());
    }
}

/// A gateway: the lead of its clock, and what it has read of the log.
struct GatewayClock {
    ahead: i64,
    windows: Windows,
    read: usize,
}

/// How much later a gateway can read an epoch, in seconds.
fn delay() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), 0..15_i64]
}

proptest! {
    /// The first gateway writes; each epoch is readable at each gateway a little later, and gateways are killed. What
    /// the one that is asked can read, the consumer has been told then.
    #[test]
    fn who_follows_the_draft_misses_nothing_whichever_gateway_is_asked(
        leads in proptest::collection::vec(-2..=2_i64, 1..4),
        events in proptest::collection::vec((
            (0..10_u8, 0..6_usize, 0..8_u64),
            (delay(), delay(), delay()),
            (prop_oneof![Just(0), 0..3_i64], select(vec![200_i64, 400, 3000, 4500]), -2..=2_i64),
        ), 1..150),
    ) {
        let start = |ahead| GatewayClock { ahead, windows: windows(leads.len() > 1), read: 0 };
        let mut gateways: Vec<_> = leads.iter().copied().map(start).collect();
        // The epochs, each with the feed's update and the time from which each gateway can read it.
        let mut log: Vec<(Closed, [i64; 3])> = Vec::new();
        let mut ticks: HashMap<SupId, Tick> = HashMap::new();
        let (mut follower, mut told) = (Follower::default(), HashMap::<SupId, String>::new());
        let mut now = 0;
        for ((event, number, changed), late, (soon, far, edge)) in events {
            let number = number % leads.len();
            let gateway = &mut gateways[number];
            match event {
                // An epoch is not closed before the last one can be read here.
                0..=4 => {
                    now = log.last().map_or(now, |(_, readable)| readable[0]).max(now + soon);
                    let (closed_at, id) = (at(now + leads[0]), feed(changed));
                    let tick = Tick::next(closed_at, ticks.get(&id).copied());
                    ticks.insert(id.clone(), tick);
                    let epoch = u64::try_from(log.len()).unwrap() + 1;
                    let closed = Closed { epoch, at: closed_at, changes: vec![(id, tick)] };
                    log.push((closed, [now + late.0, now + late.1, now + late.2]));
                    continue;
                }
                5 => {
                    *gateway = start(leads[number]);
                    continue;
                }
                6 => now += soon,
                7 => now += far + edge,
                // The document just reaches back to what is known, or just not.
                _ => {
                    let known = follower.known().map_or(0, |known| known.unix() - at(0).unix());
                    now = now.max(known + 77 - gateway.ahead + edge);
                }
            }
            while let Some((closed, readable)) = log.get(gateway.read)
                && readable[number] <= now
            {
                gateway.windows.add_epoch(closed.clone());
                gateway.read += 1;
            }
            gateway.windows.finish(at(now + gateway.ahead), at(now + gateway.ahead));
            let known = &log[..gateway.read];
            let (is_first, mut period) = (follower.known().is_none(), 60);
            loop {
                let document = document(&gateway.windows, period);
                let News { updates, standing } = follower.apply_document(&document);
                let updates = updates.into_iter().map(|it| (it.id, it.update.into()));
                let mut news: Vec<(SupId, String)> = updates.collect();
                let is_behind = is_first || matches!(standing, FollowerStatus::Missed);
                if is_behind {
                    // It reads every feed.
                    let changes = known.iter().flat_map(|(closed, _)| &closed.changes);
                    news.extend(changes.map(|(id, tick)| (id.clone(), tick.update_id())));
                }
                for (id, update) in news {
                    let last = told.entry(id).or_default();
                    *last = std::mem::take(last).max(update);
                }
                match standing {
                    FollowerStatus::Ask { period: longer, .. } => period = longer,
                    _ => break,
                }
            }
            for (id, tick) in known.iter().flat_map(|(closed, _)| &closed.changes) {
                let last = told.get(id);
                let is_told = last.is_some_and(|last| *last >= tick.update_id());
                prop_assert!(is_told, "{id} at {now}: {last:?}");
            }
        }
    }
}
