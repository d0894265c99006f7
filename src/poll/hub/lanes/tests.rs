use super::*;
use tidegate_core::websub::Manner;
use url::Url;

/// Creates a turn at this host; its owner is the client, or the host if there is none.
fn queued(client: Option<&str>, host: &str, number: usize, standing: Standing) -> QueuedCall {
    let url = Url::parse(&format!("http://a/{number}")).unwrap();
    let host: Arc<str> = host.into();
    let owner = client.map_or_else(|| Arc::clone(&host), Arc::from);
    let key = LaneKey { owner, host, standing, is_delivery: standing == Standing::Proven };
    QueuedCall { key, id: SubscriptionId::new(Manner::WebSub, "t", &url) }
}

fn asked(client: &str, host: &str, number: usize) -> QueuedCall {
    queued(Some(client), host, number, Standing::Unverified)
}

fn drain(lanes: &mut Lanes) -> Vec<QueuedCall> {
    std::iter::from_fn(|| lanes.next()).collect()
}

#[test]
fn a_host_has_a_few_calls_all_together_have_a_limit_and_everybody_has_a_turn() {
    let mut lanes = Lanes::default();
    for number in 0..100 {
        let standing = [Standing::Troubled, Standing::Proven, Standing::Proven][number % 3];
        lanes.push(queued(None, "slow", number, standing));
    }
    let of_quick = queued(None, "quick", 100, Standing::Proven);
    lanes.push(of_quick.clone());
    let begun = drain(&mut lanes);
    let of_slow: Vec<_> = begun.iter().filter(|queued| &*queued.key.host == "slow").collect();
    assert_eq!(of_slow.len(), AT_ONCE_PER_HOST);
    assert!(begun.contains(&of_quick));
    lanes.done(&of_quick.key);
    assert!(drain(&mut lanes).is_empty());
    lanes.done(&of_slow[0].key);
    assert_eq!(drain(&mut lanes).len(), 1);
    // Everybody has a turn, and all hosts together have a limit.
    let mut lanes = Lanes::default();
    let standings = [Standing::Proven, Standing::Agreed, Standing::Troubled];
    for number in 0..600 {
        lanes.push(queued(None, &format!("host {number}"), number, standings[number % 3]));
    }
    let mut running = drain(&mut lanes);
    assert_eq!(running.len(), 2 * AT_ONCE + AT_ONCE_IN_TROUBLE);
    let mut turns = running.len();
    while let Some(ended) = running.pop() {
        lanes.done(&ended.key);
        let begun = drain(&mut lanes);
        turns += begun.len();
        running.extend(begun);
    }
    assert_eq!(turns, 600);
    let lane_counts = lanes.lanes.iter().map(|lane| &lane.running);
    for counts in lane_counts.chain([&lanes.hosts]).chain(&lanes.in_doubt) {
        assert!(counts.all == 0 && counts.by_name.is_empty(), "{counts:?}");
    }
    let is_idle = |lane: &Lane| lane.waiting.is_empty() && lane.queues.is_empty();
    assert!(lanes.lanes.iter().all(is_idle));
}

#[test]
fn callbacks_in_trouble_share_a_part_of_the_calls() {
    let mut lanes = Lanes::default();
    for number in 0..100 {
        lanes.push(queued(None, &format!("slow {number}"), number, Standing::Troubled));
    }
    let begun = drain(&mut lanes);
    assert_eq!(begun.len(), AT_ONCE_IN_TROUBLE, "none of these ends");
    for well in [queued(None, "quick", 100, Standing::Proven), asked("client", "new", 101)] {
        lanes.push(well.clone());
        assert_eq!(drain(&mut lanes), [well]);
    }
    lanes.done(&begun[0].key);
    let [next] = drain(&mut lanes).try_into().unwrap();
    assert_eq!(next.key.standing, Standing::Troubled);
    // What strangers ask leaves calls to those who have agreed, and turns to what is new.
    let mut lanes = Lanes::default();
    for number in 0..200 {
        lanes.push(asked("stranger", "reader", number));
    }
    assert_eq!(drain(&mut lanes).len(), AT_ONCE_IN_DOUBT_PER_HOST, "none of these ends");
    // Even if nothing has been delivered to them yet, or the last call failed.
    for standing in [Standing::Proven, Standing::Agreed, Standing::Troubled] {
        let delivery = queued(None, "reader", 200, standing);
        lanes.push(delivery.clone());
        assert_eq!(drain(&mut lanes), std::slice::from_ref(&delivery));
        lanes.done(&delivery.key);
    }
    assert!(drain(&mut lanes).is_empty());
    // A delivery does not wait behind verifications of renewals.
    for number in 300..400 {
        let mut renewal = queued(None, "reader", number, Standing::Proven);
        renewal.key.is_delivery = false;
        lanes.push(renewal);
    }
    let delivery = queued(None, "reader", 400, Standing::Proven);
    lanes.push(delivery.clone());
    assert!(drain(&mut lanes).contains(&delivery));
}

/// Callbacks that never answer, each at another host.
#[test]
fn who_asks_for_many_leaves_room_for_the_requests_of_others() {
    for clients in [1, 3, 60] {
        let mut lanes = Lanes::default();
        for number in 0..5000 {
            let client = format!("client {}", number % clients);
            lanes.push(asked(&client, &format!("silent {number}"), number));
        }
        let (begun, share) = (drain(&mut lanes), AT_ONCE / (clients + 1));
        assert!(begun.len() >= clients * share && begun.len() < AT_ONCE, "{clients}");
        let honest = asked("honest", "reader", 5000);
        lanes.push(honest.clone());
        assert_eq!(drain(&mut lanes), [honest], "{clients}");
    }
    // Behind a proxy all clients look like one.
    let mut lanes = Lanes::default();
    (0..200).for_each(|number| lanes.push(asked("proxy", "silent", number)));
    let honest = asked("proxy", "reader", 200);
    lanes.push(honest.clone());
    assert!(drain(&mut lanes).contains(&honest));
}

#[test]
fn a_host_that_rests_holds_no_call_and_goes_on_where_it_was() {
    let (mut lanes, now) = (Lanes::default(), Instant::now());
    let later = now + std::time::Duration::from_secs(1);
    for number in 0..3 {
        lanes.push(queued(None, "paced", number, Standing::Proven));
    }
    let first = lanes.next().unwrap();
    lanes.put_back(first.clone(), later);
    assert_eq!((lanes.next(), lanes.rests_until()), (None, Some(later)));
    assert_eq!((lanes.hosts.all, lanes.lanes[0].running.all), (0, 0));
    let idle = queued(None, "idle", 3, Standing::Proven);
    lanes.push(idle.clone());
    assert_eq!(drain(&mut lanes), [idle]);
    lanes.wake(now);
    assert_eq!(lanes.next(), None);
    lanes.wake(later);
    assert_eq!(lanes.next(), Some(first));
    assert_eq!((drain(&mut lanes).len(), lanes.rests_until()), (2, None));
}
