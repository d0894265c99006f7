//! A model of a publisher with 2,000 feeds, with its log, crashes and slow disk, and of various consumers, in
//! compressed time: a consumer that follows the draft misses nothing.

use super::super::*;
use crate::model::{SupId, Tick, Time};
use std::collections::HashMap;

const FEEDS: u64 = 2_000;
const UPDATES: usize = 100_000;
const BEGIN: i64 = 1_800_000_000;

/// A deterministic random source (xorshift64*).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }
}

pub(super) fn time(seconds: i64) -> Time {
    Time::from_unix(BEGIN + seconds)
}

/// The gateway: its log and its answers.
struct Gateway {
    log: Vec<Closed>,
    /// When each epoch became readable.
    readable: Vec<i64>,
    /// An epoch on its way through the barrier, and when it will have passed.
    passing: Option<(Closed, i64)>,
    windows: Windows,
    read: usize,
    built: HashMap<u32, (String, usize, i64)>,
    down_until: i64,
    ticks: HashMap<SupId, Tick>,
    made: usize,
}

const LONGEST: u32 = 3600;
const OFFERED: [u32; 4] = [60, 300, 600, LONGEST];

impl Gateway {
    fn new() -> Self {
        Self {
            log: Vec::new(),
            readable: Vec::new(),
            passing: None,
            windows: Windows::new(LONGEST),
            read: 0,
            built: HashMap::new(),
            down_until: 0,
            ticks: HashMap::new(),
            made: 0,
        }
    }

    fn second(&mut self, now: i64, dice: &mut Dice) {
        if self.passing.as_ref().is_some_and(|(_, until)| *until <= now) {
            let (closed, _) = self.passing.take().unwrap();
            self.log.push(closed);
            self.readable.push(now);
        }
        if now < self.down_until {
            return;
        }
        if dice.below(500) == 0 {
            // The process is killed: the epoch in the barrier has passed, or is lost.
            let down = i64::try_from(dice.below(90)).unwrap();
            self.down_until = now + 1 + down;
            if let Some((closed, _)) = self.passing.take() {
                if dice.below(2) == 0 {
                    self.log.push(closed);
                    self.readable.push(self.down_until);
                } else {
                    self.made -= closed.changes.len();
                }
            }
            self.windows = Windows::new(LONGEST);
            (self.read, self.built) = (0, HashMap::new());
            return;
        }
        if self.passing.is_none() && self.made < UPDATES && dice.below(3) > 0 {
            let mut changes = Vec::new();
            for _ in 0..=dice.below(40) {
                let feed = SupId::new(&format!("{:016x}", dice.below(FEEDS))).unwrap();
                // Some changes get their tick seconds before their epoch is closed.
                let taken = time(now - i64::try_from(dice.below(4)).unwrap());
                let tick = Tick::next(taken, self.ticks.get(&feed).copied());
                self.ticks.insert(feed.clone(), tick);
                changes.push((feed, tick));
            }
            self.made += changes.len();
            let at = self.log.last().map_or(time(now), |last| last.at.max(time(now)));
            let epoch = u64::try_from(self.log.len()).unwrap() + 1;
            let slow = if dice.below(50) == 0 { i64::try_from(dice.below(9)).unwrap() } else { 0 };
            let closed = Closed { epoch, at, changes };
            if slow == 0 {
                self.log.push(closed);
                self.readable.push(now);
            } else {
                self.passing = Some((closed, now + slow));
            }
        }
    }

    /// Answers a request; `None` while the gateway is down.
    fn answer(&mut self, period: u32, now: i64) -> Option<SupDocument> {
        if now < self.down_until {
            return None;
        }
        if let Some((text, epochs, at)) = self.built.get(&period) {
            let age = u64::try_from(now - at).unwrap();
            let unchanged = *epochs == self.log.len() && age <= step(period).as_secs();
            if unchanged || age == 0 {
                return Some(read(text.as_bytes()).unwrap());
            }
        }
        for closed in &self.log[self.read..] {
            self.windows.add_epoch(closed.clone());
        }
        self.read = self.log.len();
        self.windows.finish(time(now), time(now));
        let text = self.windows.window(period).write(
            &OFFERED,
            |p| format!("http://g.example/{p}"),
            |_| true,
        );
        let document = read(text.as_bytes()).unwrap();
        self.built.insert(period, (text, self.log.len(), now));
        Some(document)
    }
}

/// A consumer, and the updates it was told per feed.
struct Consumer {
    period: u32,
    /// Its polling interval in tenths of its period.
    tenths: i64,
    pauses: bool,
    next: i64,
    follower: Follower,
    told: HashMap<SupId, String>,
    /// The number of epochs whose updates it must have been told.
    checked: usize,
    missed: usize,
    seen: usize,
    fell_back: usize,
    anew: usize,
}

impl Consumer {
    fn new(period: u32, tenths: i64, pauses: bool) -> Self {
        Self {
            period,
            tenths,
            pauses,
            next: 0,
            follower: Follower::new(),
            told: HashMap::new(),
            checked: 0,
            missed: 0,
            seen: 0,
            fell_back: 0,
            anew: 0,
        }
    }

    fn second(&mut self, now: i64, gateway: &mut Gateway, dice: &mut Dice) {
        if now < self.next {
            return;
        }
        let Some(mut document) = gateway.answer(self.period, now) else {
            self.next = now + 5;
            return;
        };
        loop {
            let news = self.follower.apply_document(&document);
            for update in news.updates {
                self.told.insert(update.id, update.update.into());
            }
            match news.standing {
                FollowerStatus::Complete => break,
                FollowerStatus::Ask { period, .. } => {
                    self.fell_back += 1;
                    document = gateway.answer(period, now).unwrap();
                }
                FollowerStatus::Missed { .. } => {
                    // It reads every feed, and so learns everything readable by now.
                    self.anew += 1;
                    for closed in &gateway.log {
                        for (feed, tick) in &closed.changes {
                            self.told.insert(feed.clone(), tick.update_id());
                        }
                    }
                    break;
                }
            }
        }
        self.check(gateway);
        self.next = now + i64::from(self.period) * self.tenths / 10;
        if self.pauses && dice.below(6) == 0 {
            self.next += i64::try_from(dice.below(5_000)).unwrap();
        }
    }

    /// Checks that it was told everything readable up to its `known` time.
    fn check(&mut self, gateway: &Gateway) {
        let known = self.follower.known().unwrap();
        while let Some(closed) = gateway.log.get(self.checked) {
            if time(gateway.readable[self.checked]) > known {
                break;
            }
            for (feed, tick) in &closed.changes {
                match self.told.get(feed) {
                    Some(told) if *told >= tick.update_id() => self.seen += 1,
                    _ => self.missed += 1,
                }
            }
            self.checked += 1;
        }
    }
}

#[test]
fn of_a_hundred_thousand_updates_who_follows_the_draft_misses_none() {
    let mut dice = Dice(0x5_EED0_F5A7);
    let mut gateway = Gateway::new();
    let mut consumers = vec![
        Consumer::new(60, 10, false),
        Consumer::new(60, 9, false),
        Consumer::new(60, 20, false),
        Consumer::new(60, 10, true),
        Consumer::new(300, 10, false),
        Consumer::new(600, 9, true),
        Consumer::new(300, 20, true),
    ];
    let mut now = 0;
    let mut end = None;
    while end.is_none_or(|end| now < end) {
        gateway.second(now, &mut dice);
        for consumer in &mut consumers {
            consumer.second(now, &mut gateway, &mut dice);
        }
        now += 1;
        if gateway.made >= UPDATES && gateway.passing.is_none() && end.is_none() {
            // Long enough for each consumer to poll once more.
            end = Some(now + 6_500);
        }
    }
    let updates: usize = gateway.log.iter().map(|closed| closed.changes.len()).sum();
    assert!(updates >= UPDATES, "{updates}");
    for consumer in &consumers {
        let Consumer { period, tenths, pauses, missed, seen, .. } = consumer;
        assert_eq!(
            (*missed, *seen),
            (0, updates),
            "the consumer of {period} s at {tenths} tenths, pausing: {pauses}"
        );
    }
    let [on_time, early, late, pausing, ..] = &consumers[..] else { panic!() };
    // A consumer that polls in time only falls back after the gateway was down.
    assert!(on_time.fell_back <= 20 && early.fell_back <= 20, "{}", on_time.fell_back);
    assert!(late.fell_back > 50 && pausing.fell_back > 2);
    assert!(pausing.anew > 0, "nobody was away for longer than the longest period");
}
