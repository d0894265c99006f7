//! A model of a publisher's gateways, with their log, crashes, slow disk and clocks, and of various consumers, in
//! compressed time: a consumer that follows the draft misses nothing.

use super::super::*;
use crate::model::{SupId, Tick, Time};
use std::collections::HashMap;

const BEGIN: i64 = 1_800_000_000;
const LONGEST: u32 = 3600;
const OFFERED: [u32; 4] = [60, 300, 600, LONGEST];

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }

    fn seconds(&mut self, limit: u64) -> i64 {
        i64::try_from(self.below(limit)).unwrap()
    }
}

pub(super) fn time(seconds: i64) -> Time {
    Time::from_unix(BEGIN + seconds)
}

/// How the first gateway writes its log.
pub(super) struct Writing {
    /// In which part of all seconds it begins to write, and how many epochs it writes then.
    pub(super) begins: (u64, u64),
    pub(super) epochs: u64,
    /// One in how many epochs this gateway itself can read late only, and by less than how many seconds.
    pub(super) late: (u64, u64),
    /// How many feeds there are, how many of them change in an epoch at most, and how many updates it writes in all.
    pub(super) feeds: u64,
    pub(super) changes: u64,
    pub(super) updates: usize,
    pub(super) is_killed: bool,
}

/// An epoch, and when it becomes readable at other gateways and at the one that wrote it.
struct WrittenEpoch {
    closed: Closed,
    elsewhere: i64,
    here: i64,
}

/// A gateway: the lead of its clock, what it has read, and its answers.
struct GatewayClock {
    ahead: i64,
    writes: bool,
    windows: Windows,
    read: usize,
    built: HashMap<u32, (SupDocument, usize, i64)>,
    down_until: i64,
}

impl GatewayClock {
    fn new(ahead: i64, writes: bool, has_others: bool) -> Self {
        let mut windows = Windows::new(LONGEST);
        if has_others {
            windows.allow_other_gateways();
        }
        Self { ahead, writes, windows, read: 0, built: HashMap::new(), down_until: 0 }
    }

    /// Answers a request, with the time when the document was made; `None` while the gateway is down.
    fn answer(
        &mut self,
        log: &[WrittenEpoch],
        period: u32,
        now: i64,
    ) -> Option<(SupDocument, i64)> {
        if now < self.down_until {
            return None;
        }
        while let Some(epoch) = log.get(self.read)
            && (if self.writes { epoch.here } else { epoch.elsewhere }) <= now
        {
            self.windows.add_epoch(epoch.closed.clone());
            self.read += 1;
        }
        if let Some((document, read, made)) = self.built.get(&period) {
            let age = u64::try_from(now - made).unwrap();
            if *read == self.read && age <= step(period).as_secs() {
                return Some((document.clone(), *made));
            }
        }
        self.windows.finish(time(now + self.ahead), time(now + self.ahead));
        let window = self.windows.window(period);
        let text = window.write(&OFFERED, |p| format!("http://g.example/{p}"), |_| true);
        let document = read(text.as_bytes()).unwrap();
        self.built.insert(period, (document.clone(), self.read, now));
        Some((document, now))
    }
}

/// A consumer, and the last update of each feed that it was told.
#[derive(Default)]
pub(super) struct Consumer {
    period: u32,
    /// How long it waits between polls, by less than how much longer, and whether it is away at times.
    wait: i64,
    more: u64,
    pub(super) pauses: bool,
    pub(super) next: i64,
    follower: Follower,
    told: HashMap<SupId, String>,
    /// The number of epochs whose updates it must have been told.
    checked: usize,
    pub(super) missed: usize,
    seen: usize,
    fell_back: usize,
    anew: usize,
}

impl Consumer {
    pub(super) fn new(period: u32, wait: i64, more: u64) -> Self {
        Self { period, wait, more, ..Self::default() }
    }

    fn second(
        &mut self,
        now: i64,
        log: &[WrittenEpoch],
        gateway: &mut GatewayClock,
        dice: &mut Dice,
    ) {
        let Some((mut document, made)) = gateway.answer(log, self.period, now) else {
            self.next = now + 5;
            return;
        };
        loop {
            let News { updates, standing } = self.follower.apply_document(&document);
            self.told.extend(updates.into_iter().map(|it| (it.id, it.update.into())));
            match standing {
                FollowerStatus::Complete => break,
                FollowerStatus::Ask { period, .. } => {
                    self.fell_back += 1;
                    document = gateway.answer(log, period, now).unwrap().0;
                }
                FollowerStatus::Missed { .. } => {
                    // It reads every feed, and so learns what is readable there.
                    self.anew += 1;
                    let changes = log[..gateway.read].iter().flat_map(|it| &it.closed.changes);
                    self.told.extend(changes.map(|(feed, tick)| (feed.clone(), tick.update_id())));
                    break;
                }
            }
        }
        self.check(log, self.follower.known().unwrap().min(time(made)));
        self.next = now + self.wait + dice.seconds(self.more);
        if self.pauses && dice.below(6) == 0 {
            self.next += dice.seconds(5_000);
        }
    }

    /// Checks that it was told everything readable up to its `known` time.
    fn check(&mut self, log: &[WrittenEpoch], known: Time) {
        while let Some(epoch) = log.get(self.checked)
            && time(epoch.here) <= known
        {
            for (feed, tick) in &epoch.closed.changes {
                match self.told.get(feed) {
                    Some(told) if *told >= tick.update_id() => self.seen += 1,
                    _ => self.missed += 1,
                }
            }
            self.checked += 1;
        }
    }
}

/// Lets consumers ask gateways at random, whose clocks have these leads; the first one writes. Returns the number of
/// updates.
pub(super) fn run(
    writing: &Writing,
    leads: &[i64],
    has_others: bool,
    consumers: &mut [Consumer],
) -> usize {
    let mut dice = Dice(0x5_EED0_F5A7);
    let mut gateways: Vec<_> = leads
        .iter()
        .enumerate()
        .map(|(number, ahead)| GatewayClock::new(*ahead, number == 0, has_others))
        .collect();
    let (mut log, mut ticks) = (Vec::<WrittenEpoch>::new(), HashMap::<SupId, Tick>::new());
    let (mut now, mut end, mut made, mut epochs) = (0, i64::MAX, 0, 0);
    while now < end {
        let writer = &mut gateways[0];
        if writing.is_killed && now >= writer.down_until && dice.below(500) == 0 {
            // What waits at the disk is readable after the restart.
            *writer = GatewayClock::new(writer.ahead, true, has_others);
            writer.down_until = now + 1 + dice.seconds(90);
            let waiting = log.last_mut().filter(|last| last.here > now);
            waiting.into_iter().for_each(|last| last.here = writer.down_until);
        }
        let has_written = log.last().is_none_or(|last| last.here <= now);
        if epochs == 0 && made < writing.updates && dice.below(writing.begins.1) < writing.begins.0
        {
            epochs = writing.epochs;
        }
        if epochs > 0 && has_written && now >= writer.down_until {
            epochs -= 1;
            let mut changes = Vec::new();
            for _ in 0..=dice.below(writing.changes) {
                let feed = SupId::new(&format!("{:016x}", dice.below(writing.feeds))).unwrap();
                // Some changes get their tick seconds before their epoch is closed.
                let taken = time(now + writer.ahead - dice.seconds(4));
                let tick = Tick::next(taken, ticks.get(&feed).copied());
                ticks.insert(feed.clone(), tick);
                changes.push((feed, tick));
            }
            made += changes.len();
            let at = time(now + writer.ahead);
            let at = log.last().map_or(at, |last| last.closed.at.max(at));
            let (one_in, most) = writing.late;
            let late = if dice.below(one_in) == 0 { dice.seconds(most) } else { 0 };
            let closed = Closed { epoch: u64::try_from(log.len()).unwrap() + 1, at, changes };
            log.push(WrittenEpoch { closed, elsewhere: now, here: now + late });
        }
        for consumer in consumers.iter_mut().filter(|consumer| consumer.next <= now) {
            let number = usize::try_from(dice.below(u64::try_from(leads.len()).unwrap())).unwrap();
            consumer.second(now, &log, &mut gateways[number], &mut dice);
        }
        now += 1;
        if made >= writing.updates && end == i64::MAX {
            // Long enough for each consumer to poll once more.
            end = now + 6_500;
        }
    }
    made
}

#[test]
fn of_a_hundred_thousand_updates_who_follows_the_draft_misses_none() {
    let writing = Writing {
        begins: (2, 3),
        epochs: 1,
        late: (50, 9),
        feeds: 2_000,
        changes: 41,
        updates: 100_000,
        is_killed: true,
    };
    let on_time = |period| Consumer::new(period, i64::from(period), 1);
    let early = |period| Consumer::new(period, i64::from(period) * 9 / 10, 1);
    let late = |period| Consumer::new(period, i64::from(period) * 2, 1);
    let pausing = |consumer| Consumer { pauses: true, ..consumer };
    let mut consumers = [
        on_time(60),
        early(60),
        late(60),
        pausing(on_time(60)),
        on_time(300),
        pausing(early(600)),
        pausing(late(300)),
    ];
    let updates = run(&writing, &[0], false, &mut consumers);
    for (number, consumer) in consumers.iter().enumerate() {
        assert_eq!((consumer.missed, consumer.seen), (0, updates), "consumer {number}");
    }
    let [on_time, early, late, pausing, ..] = &consumers;
    // A consumer that polls in time only falls back after the gateway was down.
    assert!(on_time.fell_back <= 20 && early.fell_back <= 20, "{}", on_time.fell_back);
    assert!(late.fell_back > 50 && pausing.fell_back > 2);
    assert!(pausing.anew > 0, "nobody was away for longer than the longest period");
}
