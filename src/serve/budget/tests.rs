use super::*;
use crate::connections::RequestInFlight;
use crate::tests::{client, network_of_site};
use std::sync::atomic::{AtomicU64, Ordering};

const PATIENCE: Duration = Duration::from_secs(3);

struct Stage {
    budget: Arc<Budget>,
    clock: Arc<AtomicU64>,
    connections: Vec<Arc<Connection>>,
}

impl Stage {
    fn new(all: u64, each: u64) -> Self {
        Self::with(BudgetShares { all, each, network: each })
    }

    fn with(shares: BudgetShares) -> Self {
        let clock = Arc::<AtomicU64>::default();
        let connection = |_| Arc::new(Connection::new(Arc::clone(&clock), false));
        let connections = (0..16).map(connection).collect();
        Self { budget: Budget::new(shares, PATIENCE), clock, connections }
    }

    fn take(&self, last: u8, at: usize, thing: (usize, u64)) -> Result<HeldBudget, BudgetEnd> {
        self.take_for(client(last), at, thing, false)
    }

    fn take_for(
        &self,
        client: Client,
        at: usize,
        (id, size): (usize, u64),
        is_action: bool,
    ) -> Result<HeldBudget, BudgetEnd> {
        let (client, connection) = (Some(client), self.connections.get(at).cloned());
        let thing = HeldThing { id, size };
        self.budget.take(BudgetHolder { client, connection, thing, is_action })
    }

    /// The gateway works for these.
    fn busy(&self, at: impl IntoIterator<Item = usize>) -> Vec<RequestInFlight> {
        at.into_iter().map(|at| self.connections[at].begin(false)).collect()
    }

    fn pass(&self, time: Duration) {
        self.clock.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }

    fn cut(&self) -> Vec<usize> {
        let all = self.connections.iter().enumerate();
        all.filter(|(_, connection)| connection.is_cut()).map(|(at, _)| at).collect()
    }
}

#[test]
fn what_several_hold_counts_once_for_each_and_in_all() {
    let stage = Stage::new(100, 50);
    let held = [stage.take(1, 0, (7, 40)), stage.take(1, 0, (7, 40)), stage.take(2, 1, (7, 40))];
    let mut held: std::collections::VecDeque<_> = held.map(Result::unwrap).into();
    assert_eq!(stage.budget.held(), (3, 40));
    held.pop_front();
    assert_eq!((stage.budget.of(client(1)), stage.budget.held()), (40, (2, 40)));
    held.clear();
    assert_eq!(stage.budget.held(), (0, 0));
    // A client has its share, and the greatest gives way.
    let _busy = stage.busy(0..3);
    let first = stage.take(1, 0, (1, 20)).unwrap();
    let second = stage.take(1, 1, (2, 20)).unwrap();
    let third = stage.take(1, 1, (3, 10)).unwrap();
    assert_eq!(stage.take(1, 0, (4, 1)).err(), Some(BudgetEnd::Share));
    let large = stage.take(2, 2, (5, 50)).unwrap();
    assert!(stage.cut().is_empty());
    // Room for a third is made by one of those that have more.
    let other = stage.take(3, 9, (6, 40)).unwrap();
    assert!((1..3).contains(&stage.cut().len()), "{:?}", stage.cut());
    assert!(stage.budget.held().1 <= 100);
    drop((first, second, third, large, other));
    assert_eq!(stage.budget.held(), (0, 0));
    // What is more than everything comes in alone.
    let huge = stage.take(1, 9, (7, 1000)).unwrap();
    assert_eq!(stage.take(1, 9, (8, 1)).err(), Some(BudgetEnd::Share));
    drop(huge);
    // A site has a share, however many networks it has.
    let stage = Stage::with(BudgetShares { all: 8, each: 2, network: 4 });
    let _busy = stage.busy(0..6);
    let take = |network: u16| {
        let (client, at) = (network_of_site(network), usize::from(network));
        stage.take_for(client, at, (at, 1), false)
    };
    let mut held: Vec<_> = (0..4).map(|network| take(network).unwrap()).collect();
    assert_eq!(take(4).err(), Some(BudgetEnd::Share), "the site has its share, all busy");
    let _other = stage.take(1, 5, (5, 1)).unwrap();
    held.pop();
    let _next = take(4).unwrap();
    assert!(stage.cut().is_empty());
    // Nobody gives way to one that has more.
    let stage = Stage::new(100, 50);
    let _busy = stage.busy(0..10);
    let held: Vec<_> =
        (0..10).map(|n| stage.take(n, usize::from(n), (n.into(), 10)).unwrap()).collect();
    assert_eq!(stage.take(11, 11, (11, 20)).err(), Some(BudgetEnd::All));
    assert_eq!((stage.budget.held(), stage.cut()), ((10, 100), vec![]));
    drop(held);
    // Who is waited for gives way before who is not.
    let stage = Stage::new(100, 100);
    let _moves = stage.busy([0]);
    let _most = stage.take(1, 0, (1, 60)).unwrap();
    let (_still, _also) = (stage.take(2, 1, (2, 30)).unwrap(), stage.take(3, 2, (2, 30)).unwrap());
    stage.pass(PATIENCE);
    let _new = stage.take(4, 3, (3, 20)).unwrap();
    assert_eq!(stage.cut(), [1, 2], "a thing goes with all its holders");
}

#[test]
fn what_frees_nothing_is_not_cut() {
    let stage = Stage::new(100, 100);
    let mut busy = stage.busy(0..3);
    let (_one, _other) = (stage.take(1, 0, (1, 70)).unwrap(), stage.take(2, 1, (1, 70)).unwrap());
    let _alone = stage.take(3, 2, (2, 30)).unwrap();
    let _new = stage.take(4, 3, (3, 10)).unwrap();
    assert_eq!(stage.cut(), [2], "it alone has what it holds");
    // Of the thing of two, one moves: neither goes, however long the other is waited for.
    busy.truncate(1);
    let _works = stage.busy([3]);
    stage.pass(PATIENCE);
    assert_eq!(stage.take(4, 4, (4, 25)).err(), Some(BudgetEnd::All));
    // Nor does a connection give way to what goes where it does.
    busy.clear();
    stage.pass(PATIENCE);
    assert_eq!(stage.take(1, 0, (5, 25)).err(), Some(BudgetEnd::All));
    assert_eq!(stage.cut(), [2]);
    let thing = HeldThing { id: 5, size: 25 };
    let holder = BudgetHolder { client: None, connection: None, thing, is_action: true };
    let last = stage.budget.take_anyway(holder);
    assert_eq!(stage.budget.held(), (4, 105), "how an action ended is said");
    drop(last);
    // An action that is carried out gives way to nobody.
    let stage = Stage::new(4, 4);
    let busy = stage.busy(0..4);
    let take = |at| stage.take_for(client(1), at, (at, 1), true).unwrap();
    let held: Vec<_> = (0..4).map(take).collect();
    assert_eq!(stage.take(2, 9, (9, 1)).err(), Some(BudgetEnd::All));
    drop(busy);
    stage.pass(PATIENCE - Duration::from_millis(1));
    assert_eq!(stage.take(2, 9, (9, 1)).err(), Some(BudgetEnd::All));
    stage.pass(Duration::from_millis(1));
    let _new = stage.take(2, 9, (9, 1)).unwrap();
    assert_eq!(stage.cut(), [0], "once its client is waited for it is like others");
    drop(held);
}
