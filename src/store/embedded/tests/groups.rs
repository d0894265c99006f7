//! How many requests are carried out behind one barrier.

use super::*;
use crate::engine::{EngineCall, WatchedEngine};
use std::sync::atomic::AtomicUsize;

/// What a slow database did.
#[derive(Default)]
struct SlowLog {
    /// How long a write takes.
    delay: Duration,
    /// The writes behind the last barrier, and those before each.
    waiting: usize,
    groups: Vec<usize>,
    /// The next barrier fails.
    fails: bool,
}

impl SlowLog {
    /// An engine that is noted here, over one in memory; `is_far`: it says that it is reached by the network.
    fn engine(log: &Arc<Mutex<Self>>, is_far: bool) -> WatchedEngine {
        let log = Arc::clone(log);
        let watch = Box::new(move |call: EngineCall| match call {
            EngineCall::Apply => {
                let delay = log.lock().unwrap().delay;
                std::thread::sleep(delay);
                log.lock().unwrap().waiting += 1;
                Ok(())
            }
            EngineCall::Pass => log.lock().unwrap().pass(),
            EngineCall::Read(_) | EngineCall::CloseEpochs(_) => Ok(()),
        });
        let far = is_far.then(|| Arc::new(AtomicUsize::new(usize::MAX)));
        WatchedEngine { engine: Arc::new(MemoryEngine::default()), watch, far }
    }

    fn pass(&mut self) -> Result<(), StoreError> {
        let written = std::mem::take(&mut self.waiting);
        if written > 0 {
            self.groups.push(written);
        }
        let source = || std::io::Error::other("it is gone");
        let failed = || StoreError::Io { doing: "pass the barrier", source: source() };
        if self.fails { Err(failed()) } else { Ok(()) }
    }
}

/// Has twelve requests served that wait together, each of which writes for 40 ms: how many were written before each
/// barrier, which were begun, in their order, and what each was answered.
async fn twelve(
    is_far: bool,
    fails: bool,
) -> (Vec<usize>, Vec<usize>, Vec<Result<(), CommitError>>) {
    let log = Arc::new(Mutex::new(SlowLog::default()));
    let engine = SlowLog::engine(&log, is_far);
    let clock = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
    let endpoint = EndpointId::own("gate.example").ok();
    let request = OpenRequest { endpoint, ..OpenRequest::default() };
    let records = Records::of(Arc::new(engine));
    let store = EmbeddedStore::over_memory(records, request, clock).unwrap();
    *log.lock().unwrap() =
        SlowLog { delay: Duration::from_millis(40), fails, ..SlowLog::default() };

    let begun = Arc::new(Mutex::new(Vec::new()));
    let (sender, mut requests) = mpsc::channel(REQUESTS);
    let mut waiting = Vec::new();
    for number in 0..12 {
        let (record, begun) = (make::record(&format!("feed-{number}")), Arc::clone(&begun));
        let work = move |committer: &mut Committer, group: &mut CommitGroup| {
            begun.lock().unwrap().push(number);
            committer.put_feeds(&[record], None, group).map_err(CommitError::Store)
        };
        let (reply, answer) = oneshot::channel();
        assert!(sender.try_send(CommitRequest::new(Touches::Lists, work, reply)).is_ok());
        waiting.push(answer);
    }
    drop(sender);
    let Writer::Here(committer) = store.inner.opened().unwrap().writer else {
        panic!("it has a thread of its own");
    };
    let run = move || committer.lock().unwrap().run(&mut requests);
    tokio::task::spawn_blocking(run).await.unwrap();
    let mut answers = Vec::new();
    for answer in waiting {
        answers.push(answer.await.unwrap());
    }
    let groups = std::mem::take(&mut log.lock().unwrap().groups);
    let begun = std::mem::take(&mut *begun.lock().unwrap());
    (groups, begun, answers)
}

/// Each write to a database far away takes round trips: the others that follow it wait for the barrier.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_far_away_ends_by_time_and_the_next_one_goes_on() {
    for (is_far, groups) in [(true, vec![4, 4, 4]), (false, vec![12])] {
        let (written, begun, answers) = twelve(is_far, false).await;
        assert_eq!(written, groups);
        assert_eq!(begun, (0..12).collect::<Vec<_>>());
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }
}

/// What a group had no time for is refused where that group fails: nobody needs to look what became of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_behind_a_group_that_failed_are_not_begun() {
    let (written, begun, answers) = twelve(true, true).await;
    assert_eq!((written, begun), (vec![4], vec![0, 1, 2, 3]));
    for (number, answer) in answers.into_iter().enumerate() {
        match answer.unwrap_err() {
            CommitError::Ambiguous(_) => assert!(number < 4, "{number}"),
            CommitError::Store(StoreError::Stopped(_)) => assert!(number >= 4, "{number}"),
            error => panic!("{number}: {error:?}"),
        }
    }
}
