//! Consumers that alternate between gateways on the same log.

use super::super::*;
use super::model::{Consumer, Writing, run, time};
use crate::model::{SupId, Tick};

fn feed(epoch: u64) -> SupId {
    SupId::new(&format!("feed-{epoch}")).unwrap()
}

/// Creates an epoch in which one feed changed, closed at `seconds`.
fn closed(epoch: u64, seconds: i64) -> Closed {
    let changes = vec![(feed(epoch), Tick::at(time(seconds)))];
    Closed { epoch, at: time(seconds), changes }
}

fn windows(others: bool) -> Windows {
    let mut windows = Windows::new(3600);
    if others {
        windows.allow_other_gateways();
    }
    windows
}

fn document(windows: &Windows) -> SupDocument {
    let text = windows.window(60).write(&[60, 3600], |p| format!("http://g.example/{p}"), |_| true);
    read(text.as_bytes()).unwrap()
}

fn told(follower: &mut Follower, windows: &Windows) -> (Vec<SupId>, FollowerStatus) {
    let News { updates, standing } = follower.apply_document(&document(windows));
    (updates.into_iter().map(|update| update.id).collect(), standing)
}

/// A consumer asks a gateway whose clock is right. Then a clock that is two seconds behind closes two epochs. Another
/// gateway finds them when the consumer asks it.
#[test]
fn an_update_is_listed_for_who_asked_another_gateway_before_it() {
    for (others, news) in [(true, vec![feed(1), feed(2)]), (false, vec![feed(2)])] {
        let (mut first, mut second) = (windows(others), windows(others));
        let mut follower = Follower::new();
        second.finish(time(75), time(75));
        first.finish(time(100), time(100));
        assert_eq!(told(&mut follower, &first), (vec![], FollowerStatus::Complete));
        second.add_epoch(closed(1, 98));
        second.add_epoch(closed(2, 98));
        second.finish(time(176), time(176));
        assert_eq!(document(&second).since, time(99));
        assert_eq!(told(&mut follower, &second), (news, FollowerStatus::Complete));
    }
}

/// An epoch found by a slow reading may have become readable only after its beginning; so may a later one closed by a
/// slow clock.
#[test]
fn an_update_bears_the_time_by_which_it_was_found() {
    let mut windows = windows(false);
    windows.add_epoch(closed(1, 99));
    windows.finish(time(100), time(103));
    assert_eq!(document(&windows).updated, time(99));
    windows.add_epoch(closed(2, 101));
    windows.add_epoch(closed(3, 101));
    windows.finish(time(178), time(178));
    let found = document(&windows);
    assert_eq!((found.since, found.updated), (time(101), time(177)));
    let ids: Vec<SupId> = found.updates.into_iter().map(|update| update.id).collect();
    assert_eq!(ids, [feed(3), feed(2), feed(1)]);
    windows.finish(time(180), time(180));
    assert_eq!(document(&windows).updates.len(), 1);
}

#[test]
fn what_is_listed_for_other_gateways_is_kept_as_much_longer() {
    for (others, until) in [(true, 20), (false, 0)] {
        let mut windows = windows(others);
        windows.add_epoch(closed(1, 0));
        windows.finish(time(0), time(0));
        let last = 3600 + 370 + until;
        windows.finish(time(last), time(last));
        assert_eq!(windows.window(3600).updates().count(), 1, "{others}");
        windows.finish(time(last + 1), time(last + 1));
        assert_eq!((windows.window(3600).updates().count(), windows.len()), (0, 0), "{others}");
    }
}

/// Twenty consumers ask three gateways at random. The clock of the writing one is two seconds behind; the others' are
/// two ahead and right. The writer sometimes learns late that an epoch is closed.
#[test]
fn who_asks_gateways_whose_clocks_differ_misses_nothing() {
    let missed = |has_others| {
        let (begins, late, feeds) = ((1, 100), (3, 14), 1 << 31);
        let (epochs, changes, updates, is_killed) = (3, 1, 900, false);
        let writing = Writing { begins, epochs, late, feeds, changes, updates, is_killed };
        let consumer = |number| Consumer { next: 3 * number, ..Consumer::new(60, 70, 9) };
        let mut consumers: Vec<_> = (0..20).map(consumer).collect();
        run(&writing, &[-2, 2, 0], has_others, &mut consumers);
        consumers.iter().map(|consumer| consumer.missed).sum::<usize>()
    };
    assert_eq!(missed(true), 0);
    assert!(missed(false) > 0, "clocks that differ made no difference");
}
