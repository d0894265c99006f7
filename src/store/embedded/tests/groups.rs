//! How many requests are carried out behind one barrier.

use super::*;

/// What a slow database did.
#[derive(Default)]
struct SlowLog {
    delay: Duration,
    /// The writes behind the last barrier, and those before each.
    waiting: usize,
    groups: Vec<usize>,
    fails: bool,
}

impl SlowLog {
    fn store(log: &Arc<Mutex<Self>>) -> Store {
        let log = Arc::clone(log);
        watched(move |call| match call {
            EngineCall::Apply(_) => {
                let delay = log.lock().unwrap().delay;
                std::thread::sleep(delay);
                log.lock().unwrap().waiting += 1;
                Ok(())
            }
            EngineCall::Pass => log.lock().unwrap().pass(),
            EngineCall::Read(..) => Ok(()),
        })
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
async fn twelve(fails: bool) -> (Vec<usize>, Vec<usize>, Vec<Result<(), CommitError>>) {
    let log = Arc::new(Mutex::new(SlowLog::default()));
    let store = SlowLog::store(&log);
    *log.lock().unwrap() =
        SlowLog { delay: Duration::from_millis(40), fails, ..SlowLog::default() };

    let begun = Arc::new(Mutex::new(Vec::new()));
    let (sender, mut requests) = mpsc::channel(REQUESTS);
    let mut waiting = Vec::new();
    for number in 0..12 {
        let (record, begun) = (make::record(&format!("feed-{number}")), Arc::clone(&begun));
        let work = move |committer: &mut Committer| {
            begun.lock().unwrap().push(number);
            committer.put_feeds(&[record], None, None)
        };
        let (reply, answer) = oneshot::channel();
        assert!(sender.try_send(CommitRequest::new(&WriteScope::Notes, work, reply)).is_ok());
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_together_share_a_barrier() {
    let (written, begun, answers) = twelve(false).await;
    assert_eq!((written, begun), (vec![12], (0..12).collect()));
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let (_, _, answers) = twelve(true).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(CommitError::Ambiguous(_)))));
}
