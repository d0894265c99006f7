use super::*;
use tidegate_core::websub::Manner;
use url::Url;

fn id(number: usize) -> SubscriptionId {
    SubscriptionId::new(Manner::WebSub, "t", &Url::parse(&format!("http://a/{number}")).unwrap())
}

/// One of a subscriber of this host.
fn turn(host: &str, number: usize, standing: Standing) -> LaneTurn {
    let (host, in_doubt): (Arc<str>, _) = (host.into(), standing == Standing::Troubled);
    LaneTurn { owner: Arc::clone(&host), host, id: id(number), standing, in_doubt }
}

/// A request of a client with a callback at this host.
fn asked(client: &str, host: &str, number: usize) -> LaneTurn {
    let (owner, in_doubt) = (client.into(), true);
    LaneTurn { owner, in_doubt, ..turn(host, number, Standing::New) }
}

fn drain(lanes: &mut Lanes) -> Vec<LaneTurn> {
    let now = Instant::now();
    std::iter::from_fn(|| lanes.next(now)).collect()
}

/// How many of a thousand calls of a host there is room for, one after the other.
fn taken(lanes: &mut Lanes, turn: &LaneTurn, purpose: Purpose, now: Instant) -> usize {
    (0..1000).for_each(|_| lanes.push(turn.clone()));
    let mut taken = 0;
    while let Some(turn) = lanes.next(now) {
        taken += usize::from(lanes.try_send(&turn, purpose, now));
        lanes.done(&turn, 0);
    }
    taken
}

#[test]
fn a_host_is_sent_so_much_within_a_minute() {
    let (mut lanes, start) = (Lanes::default(), Instant::now());
    let (one, other) = (turn("one", 1, Standing::Proven), turn("other", 2, Standing::Proven));
    let mut take = |turn: &LaneTurn, at| taken(&mut lanes, turn, Purpose::Delivery, at);
    assert_eq!(take(&one, start), 90);
    assert_eq!(take(&other, start), 90, "others have their own");
    lanes.done(&other, BYTES);
    let mut take = |turn: &LaneTurn, at| taken(&mut lanes, turn, Purpose::Delivery, at);
    assert_eq!(take(&other, start + WITHIN / 2), 0);
    assert_eq!((take(&one, start + WITHIN), take(&other, start + WITHIN)), (90, 90));
    // Hosts are forgotten.
    for n in 0..=HOSTS {
        take(&turn(&format!("host {n}"), n, Standing::New), start + WITHIN);
    }
    assert_eq!(take(&one, start + 3 * WITHIN), 90);
    assert_eq!(lanes.hosts.len(), 1);
}

#[test]
fn strangers_take_nothing_from_those_who_have_agreed_nor_from_each_other() {
    let (mut lanes, now) = (Lanes::default(), Instant::now());
    let mut take = |host, owner, purpose| {
        let (owner, of_host) = (Arc::from(owner), turn(host, 1, Standing::New));
        taken(&mut lanes, &LaneTurn { owner, ..of_host }, purpose, now)
    };
    assert_eq!(take("one", "stranger", Purpose::FirstVerification), 30);
    assert_eq!(take("one", "another", Purpose::FirstVerification), 15);
    // Whoever knows a callback may have it asked about its renewal again and again.
    assert_eq!(take("one", "one", Purpose::OtherVerification), 30);
    assert_eq!(take("one", "one", Purpose::Delivery), 60);
    // Nor does one who is sent much keep others from subscribing.
    assert_eq!(take("other", "other", Purpose::Delivery), 90);
    assert_eq!(take("other", "other", Purpose::OtherVerification), 0);
    assert_eq!(take("other", "stranger", Purpose::FirstVerification), 30);
}

#[test]
fn a_host_has_a_few_calls_and_the_others_go_past_it() {
    let mut lanes = Lanes::default();
    for number in 0..100 {
        let troubled = number % 3 == 0;
        let standing = if troubled { Standing::Troubled } else { Standing::Proven };
        lanes.push(turn("slow", number, standing));
    }
    let of_quick = turn("quick", 100, Standing::Proven);
    lanes.push(of_quick.clone());
    let begun = drain(&mut lanes);
    assert_eq!(begun.iter().filter(|turn| &*turn.host == "slow").count(), AT_ONCE_PER_HOST);
    assert!(begun.contains(&of_quick));
    lanes.done(&of_quick, 0);
    assert!(drain(&mut lanes).is_empty());
    lanes.done(begun.iter().find(|turn| &*turn.host == "slow").unwrap(), 0);
    assert_eq!(drain(&mut lanes).len(), 1);
}

#[test]
fn all_hosts_together_have_a_limit_and_everybody_has_a_turn() {
    let mut lanes = Lanes::default();
    let standings = [Standing::Proven, Standing::New, Standing::Troubled];
    for number in 0..600 {
        lanes.push(turn(&format!("host {number}"), number, standings[number % 3]));
    }
    let mut running = drain(&mut lanes);
    assert_eq!(running.len(), AT_ONCE + AT_ONCE_NEW + AT_ONCE_IN_TROUBLE);
    let mut turns = running.len();
    while let Some(ended) = running.pop() {
        lanes.done(&ended, 0);
        let begun = drain(&mut lanes);
        turns += begun.len();
        running.extend(begun);
    }
    assert_eq!(turns, 600);
    let is_idle =
        |lane: &Lane| lane.behind.is_empty() && lane.turns.is_empty() && lane.running.all == 0;
    assert!(lanes.hosts.values().all(|host| (host.running, host.in_doubt) == (0, 0)));
    assert!([&lanes.proven, &lanes.new, &lanes.troubled].into_iter().all(is_idle));
}

#[test]
fn callbacks_in_trouble_share_a_part_of_the_calls() {
    let mut lanes = Lanes::default();
    for number in 0..100 {
        lanes.push(turn(&format!("slow {number}"), number, Standing::Troubled));
    }
    let begun = drain(&mut lanes);
    assert_eq!(begun.len(), AT_ONCE_IN_TROUBLE, "none of these ends");
    for well in [turn("quick", 100, Standing::Proven), asked("client", "new", 101)] {
        lanes.push(well.clone());
        assert_eq!(lanes.next(Instant::now()), Some(well));
    }
    assert_eq!(lanes.next(Instant::now()), None);
    lanes.done(&begun[0], 0);
    assert!(lanes.next(Instant::now()).is_some_and(|turn| turn.standing == Standing::Troubled));
}

#[test]
fn what_strangers_ask_for_leaves_calls_to_those_who_have_agreed() {
    let mut lanes = Lanes::default();
    for number in 0..200 {
        lanes.push(asked("stranger", "reader", number));
    }
    assert_eq!(drain(&mut lanes).len(), AT_ONCE_IN_DOUBT_PER_HOST, "none of these ends");
    // Also where nothing was delivered to them yet.
    for standing in [Standing::Proven, Standing::New] {
        let delivery = turn("reader", 200, standing);
        lanes.push(delivery.clone());
        assert_eq!(drain(&mut lanes), std::slice::from_ref(&delivery));
        lanes.done(&delivery, 0);
    }
    assert!(drain(&mut lanes).is_empty());
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
        let begun = drain(&mut lanes);
        let share = AT_ONCE_NEW / (clients + 1);
        assert!(begun.len() >= clients * share && begun.len() < AT_ONCE_NEW, "{clients}");
        let honest = asked("honest", "reader", 5000);
        lanes.push(honest.clone());
        assert_eq!(drain(&mut lanes), [honest], "{clients}");
    }
}

/// Where a proxy hides who asks, all are one client.
#[test]
fn a_host_that_is_asked_for_often_keeps_no_other_from_its_turn() {
    let mut lanes = Lanes::default();
    for number in 0..200 {
        lanes.push(asked("proxy", "silent", number));
    }
    let honest = asked("proxy", "reader", 200);
    lanes.push(honest.clone());
    assert!(drain(&mut lanes).contains(&honest));
}

#[test]
fn callbacks_are_told_apart_by_registrable_domain_or_address() {
    let host = |text: &str| host_of(&Url::parse(text).unwrap()).to_string();
    assert_eq!(host("https://a.b.reader.co.uk/"), "reader.co.uk");
    assert_eq!(host("https://reader.co.uk./"), "reader.co.uk");
    assert_eq!(host("http://localhost:8000/"), "localhost");
    assert_eq!(host("http://93.184.216.34:81/"), "93.184.216.34");
    assert_eq!(host("http://93.184.216.34:82/"), "93.184.216.34");
    let network = host("http://[2606:4700:4700::1111]/");
    assert_eq!(network, "[2606:4700:4700::]/64");
    assert_eq!(host("http://[2606:4700:4700:0:ffff:1:2:3]:8080/"), network);
    // Whom the operator allows may be many on one machine.
    assert_eq!(host("http://10.1.2.3:81/"), "10.1.2.3:81");
    assert_eq!(host("http://[::1]/"), "[::1]:80");
}
