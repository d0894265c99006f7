//! Two gateways over one store, between which shards wander at random.

use super::shards::LoggedRequests;
use super::*;
use crate::testing::shards::{give, shard};
use std::collections::BTreeMap;
use tidegate_core::model::FeedRecord;
use tidegate_store::{PollShards, Shard};

/// How far apart the feeds are polled.
const INTERVAL: u64 = 300;
/// How long a round takes, at most, that begins when its turn comes: longer than a step.
const REQUEST_TIME: Duration = Duration::from_millis(1300);
/// How much later than its interval a feed may be polled: the spread of what is due, and a hand-over that waits
/// for a request.
const HANDOVER: u64 = 60;

/// Numbers that look random, and are the same each time.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Which gateway has which shard, as the store would know.
struct ShardMover {
    gateways: [Arc<PollShards>; 2],
    /// The gateway of each shard, its fence, and whether it is being given back.
    places: BTreeMap<Shard, (usize, i64, bool)>,
    moved: u32,
}

impl ShardMover {
    fn confirm(&self) {
        for (at, shards) in self.gateways.iter().enumerate() {
            let held = self.places.iter().filter(|(_, (place, ..))| *place == at);
            give(shards, held.map(|(shard, (_, fence, _))| (*shard, *fence)).collect());
        }
    }

    /// Gives what has ended to the other gateway, and has another shard be given back.
    fn step(&mut self, dice: &mut Dice) {
        for at in 0..self.gateways.len() {
            for shard in self.gateways[at].take_requests().ended {
                let place = self.places.get_mut(&shard).unwrap();
                if place.0 == at && place.2 {
                    *place = (1 - at, place.1 + 1, false);
                    self.moved += 1;
                }
            }
        }
        self.confirm();
        let which = dice.throw(self.places.len() as u64 * 4) as usize;
        if let Some((shard, place)) = self.places.iter_mut().nth(which) {
            place.2 = true;
            self.gateways[place.0].give_back([*shard]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_feed_is_polled_twice_at_a_time_or_forgotten_while_shards_wander() {
    let names: Vec<String> = (0..24).map(|n| format!("feed{n}")).collect();
    let store = StoreDouble::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let every = Some(Duration::from_secs(INTERVAL));
    for FeedRecord { options, .. } in &mut store.shelf.lock().unwrap().feeds {
        (options.min_interval, options.max_interval) = (every, every);
    }
    let gateways = [true, false]
        .map(|is_writer| Arc::new(PollShards::new(Duration::from_secs(3600), is_writer)));
    let places = names.iter().map(|feed| (shard(feed), (0, 1, false))).collect();
    let mut mover = ShardMover { gateways: gateways.clone(), places, moved: 0 };
    mover.confirm();
    let (log, publisher) = (Arc::new(LoggedRequests::default()), Publisher::new("one"));
    let mut started = Vec::new();
    for shards in &gateways {
        let services = log.services(&publisher, REQUEST_TIME);
        let gateway = Gateway::with_client(&store.shared_by(shards), &publisher, services).await;
        started.push(gateway);
    }
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut polled: BTreeMap<String, (u32, u64)> = BTreeMap::new();
    let (mut longest, mut shortest) = (0, u64::MAX);
    for second in 1..=7200 {
        for gateway in &started {
            gateway.clock.set(later(second));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        mover.step(&mut dice);
        for feed in &names {
            let begun = log.begun(feed);
            let (before, at) = polled.entry(feed.clone()).or_insert((0, 0));
            if begun > *before {
                if *before > 0 {
                    (longest, shortest) = (longest.max(second - *at), shortest.min(second - *at));
                }
                (*before, *at) = (begun, second);
            }
            let late = second - *at;
            assert!(late <= INTERVAL + HANDOVER, "{feed} was not polled for {late} seconds");
        }
    }
    assert_eq!(*log.overlaps.lock().unwrap(), [""; 0]);
    assert!(mover.moved > 500, "{} shards moved", mover.moved);
    let polls: u32 = polled.values().map(|(polls, _)| polls).sum();
    let most = 24 * (7200 / INTERVAL as u32 + 1);
    assert!(polls <= most + most / 10, "{polls} polls, {shortest} to {longest} seconds apart");
}
