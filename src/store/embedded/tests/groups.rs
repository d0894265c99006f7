//! How many requests are carried out behind one barrier.

use super::*;

/// Has twelve requests served that wait together: how many writes there were before each barrier, the requests in the
/// order of their beginning, and their answers.
async fn serve_twelve(fails: bool) -> (Vec<usize>, Vec<usize>, Vec<Result<(), CommitError>>) {
    // The last number is that of the writes after the last barrier.
    let groups = Arc::new(Mutex::new(None::<Vec<usize>>));
    let log = Arc::clone(&groups);
    let store = watched(move |call| {
        let mut log = log.lock().unwrap();
        let Some(groups) = &mut *log else { return Ok(()) };
        match call {
            EngineCall::Apply(_) => *groups.last_mut().unwrap() += 1,
            EngineCall::Pass if fails => return Err(StoreError::failed("pass", "it is gone")),
            EngineCall::Pass => groups.push(0),
            EngineCall::Read(..) => {}
        }
        Ok(())
    });
    *groups.lock().unwrap() = Some(vec![0]);

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
    let groups = groups.lock().unwrap().take().unwrap();
    let begun = std::mem::take(&mut *begun.lock().unwrap());
    (groups, begun, answers)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_together_share_a_barrier() {
    let (groups, begun, answers) = serve_twelve(false).await;
    // The last barrier is that of the end.
    assert_eq!((groups, begun), (vec![12, 0, 0], (0..12).collect()));
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let (_, _, answers) = serve_twelve(true).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(CommitError::Ambiguous(_)))));
}
