use super::super::PassOutcome;
use super::*;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body::{Body as _, Frame};
use http_body_util::{Full, StreamBody};
use std::pin::pin;
use tidegate_net::origin::BodyError;

fn client(last: u8) -> Client {
    Client::at([192, 0, 2, last].into())
}

/// Slots of these clients.
async fn taken(slots: &Arc<SiteSlots>, clients: &[u8]) -> Vec<Slot> {
    let mut held = Vec::new();
    for last in clients {
        held.push(slots.acquire(client(*last)).await.unwrap());
    }
    held
}

fn is_lost(slot: &Slot) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    std::future::Future::poll(pin!(slot.lost()), &mut context).is_ready()
}

fn lost(held: &[Slot]) -> Vec<usize> {
    held.iter().enumerate().filter(|(_, slot)| is_lost(slot)).map(|(n, _)| n).collect()
}

fn full(bytes: impl Into<Bytes>) -> PassedBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body that comes so much at a time, so often.
fn dripping(bytes: usize, each: Duration) -> PassedBody {
    let frames = stream::repeat(()).then(move |()| async move {
        sleep(each).await;
        Ok::<_, BodyError>(Frame::data(Bytes::from(vec![b'x'; bytes])))
    });
    StreamBody::new(Box::pin(frames)).boxed_unsync()
}

/// Reads a body for so long, or until its end.
async fn read(body: PassedBody, time: Duration) {
    let mut body = pin!(body);
    let reading = async { while body.frame().await.is_some() {} };
    let _ = tokio::time::timeout(time, reading).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_has_a_share_and_a_site_a_limit() {
    assert_eq!([1, 8, 20, 256].map(|limit| SiteSlots::new(limit).share), [1, 8, 8, 64]);
    let slots = SiteSlots::new(10);
    let mut held = taken(&slots, &[1; 8]).await;
    let refused = async |last: u8| {
        let problem = slots.acquire(client(last)).await.err().unwrap();
        PassOutcome::of_error(&problem)
    };
    assert_eq!(refused(1).await, PassOutcome::Busy);
    let others = taken(&slots, &[2, 3]).await;
    // All are taken: who has most gives way, and nobody to who has as many.
    let more = taken(&slots, &[2, 3, 4, 4]).await;
    assert_eq!((lost(&held).len(), lost(&others), lost(&more)), (4, vec![], vec![]));
    assert_eq!(slots.taken(), 10);
    held.retain(|slot| !is_lost(slot));
    let one = taken(&slots, &[5]).await;
    assert_eq!(lost(&held).len(), 1);
    assert_eq!(refused(2).await, PassOutcome::Failed, "the site has as many as it may");
    // Who waits gets what is over soon.
    let begun = Instant::now();
    let soon = async {
        sleep(WAIT / 2).await;
        drop(one);
    };
    let (waited, ()) = tokio::join!(slots.acquire(client(2)), soon);
    assert!(waited.is_ok() && begun.elapsed() < WAIT);
    drop((waited, held, others, more));
    assert_eq!((slots.taken(), slots.clients.keys()), (0, 0));
}

/// Whoever takes no answers keeps neither the site nor others waiting.
#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_takes_gives_its_slot_back() {
    let slots = SiteSlots::new(4);
    let read_to = Arc::new(());
    let answers: Vec<_> = taken(&slots, &[1, 2, 3, 4])
        .await
        .into_iter()
        .map(|slot| {
            let read_to = Arc::clone(&read_to);
            let frames = stream::repeat(()).map(move |()| {
                let _read_to = &read_to;
                Ok::<_, BodyError>(Frame::data(Bytes::from_static(&[b'x'; 1000])))
            });
            slot.answer(StreamBody::new(frames).boxed_unsync())
        })
        .collect();
    // One more has to wait a little.
    let begun = Instant::now();
    let one = slots.acquire(client(5)).await.unwrap();
    assert!((GIVES_WAY..WAIT).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    assert_eq!(slots.taken(), 4, "and only one gave way to it");
    drop(one);
    sleep(GIVEN_BACK).await;
    assert_eq!(slots.taken(), 0);
    assert_eq!(Arc::strong_count(&read_to), 1, "the site is not read any more");
    for answer in answers {
        let mut answer = pin!(answer);
        assert!(answer.frame().await.is_some_and(|frame| frame.is_err()));
        assert!(answer.is_end_stream());
    }
}

/// Neither does who takes it, or sends it, a few bytes at a time.
#[tokio::test(start_paused = true)]
async fn what_drips_gives_its_slot_back_and_what_flows_does_not() {
    let (second, slots) = (Duration::from_secs(1), SiteSlots::new(8));
    let upload = async |bytes: usize, each: Duration| {
        let slot = slots.acquire(client(1)).await.unwrap();
        let sending = read(slot.upload(dripping(bytes, each)), 4 * GIVEN_BACK);
        tokio::select! { () = sending => false, _ = slot.lost() => true }
    };
    assert!(upload(1, second).await);
    assert!(upload(1000, GIVEN_BACK * 2).await);
    assert!(!upload(2000, second).await);
    let download = async |site: PassedBody, each: Duration| {
        let slot = slots.acquire(client(1)).await.unwrap();
        let begun = Instant::now();
        let mut answer = pin!(slot.answer(site));
        while let Some(Ok(_)) = answer.frame().await {
            sleep(each).await;
        }
        begun.elapsed()
    };
    // The site's pieces may be as large, or as small, as it likes.
    let large = || full(vec![b'x'; 100 * 16 * 1024]);
    assert!(download(large(), second).await >= 100 * second, "it was taken");
    assert!(download(large(), GIVEN_BACK + second).await < 3 * GIVEN_BACK);
    assert!(download(dripping(10, second / 100), second).await < 2 * GIVEN_BACK);
    // That the site takes its time is no fault of the client's.
    let slow_site = slots.acquire(client(1)).await.unwrap();
    let waited = read(slow_site.answer(dripping(1, 10 * second)), 10 * GIVEN_BACK);
    let begun = Instant::now();
    waited.await;
    assert_eq!(begun.elapsed(), 10 * GIVEN_BACK);
}

/// What the site carries out is done, whether its client learns of it or not.
#[tokio::test(start_paused = true)]
async fn an_action_that_a_site_carries_out_gives_way_to_nobody() {
    let slots = SiteSlots::new(8);
    let held = taken(&slots, &[1; 8]).await;
    // The newest of a client would go first.
    held[7].begin_action();
    // Its body came slowly, and is over.
    let body = stream::iter([&b"x"[..], b"y"]).then(|bytes| async {
        sleep(GIVES_WAY).await;
        Ok::<_, BodyError>(Frame::data(Bytes::from_static(bytes)))
    });
    read(held[6].upload(StreamBody::new(Box::pin(body)).boxed_unsync()), WAIT * 2).await;
    sleep(GIVEN_BACK * 2).await;
    let others = taken(&slots, &[2, 3, 4, 2, 3]).await;
    assert!(!is_lost(&held[7]) && !is_lost(&held[6]), "{:?}", lost(&held));
    assert_eq!((lost(&held).len(), lost(&others)), (5, vec![]));
    // Once it is answered it is like others.
    let mut held = held;
    let _answer = held.pop().unwrap().answer(dripping(1, PACE));
    let _more = taken(&slots, &[5]).await;
    assert_eq!((slots.taken(), is_lost(&held[0])), (8, false));
}

/// Whoever lost a slot may ask again, though nobody took what is left of the answer.
#[tokio::test(start_paused = true)]
async fn a_share_goes_with_its_slot_and_many_do_not_wait() {
    let slots = SiteSlots::new(8);
    let answers: Vec<_> = taken(&slots, &[1; 8]).await;
    let answers: Vec<_> = answers.into_iter().map(|slot| slot.answer(full("x"))).collect();
    sleep(GIVEN_BACK + 2 * PACE).await;
    assert_eq!((slots.taken(), slots.clients.keys()), (0, 0));
    let held = taken(&slots, &[1, 1, 2, 2, 3, 3, 4, 4]).await;
    let begun = Instant::now();
    let ask = |last: u8| {
        let slots = Arc::clone(&slots);
        tokio::spawn(async move { slots.acquire(client(last % 4 + 1)).await.is_ok() })
    };
    let waiting: Vec<_> = (0..8).map(ask).collect();
    tokio::task::yield_now().await;
    assert!(!ask(1).await.unwrap() && begun.elapsed().is_zero(), "as many wait as there are slots");
    drop((held, answers));
    for waits in waiting {
        assert!(waits.await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_has_its_slot_until_it_was_taken() {
    let slots = SiteSlots::new(4);
    let sent = Bytes::from(vec![b'x'; 100_000]);
    let answer = slots.acquire(client(1)).await.unwrap().answer(full(sent.clone()));
    assert_eq!((answer.size_hint().exact(), slots.taken()), (Some(100_000), 1));
    let mut answer = Box::pin(answer);
    let first = answer.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(answer.size_hint().exact(), Some(100_000 - first.len() as u64));
    assert!(!answer.is_end_stream() && slots.taken() == 1);
    let rest = answer.collect().await.unwrap().to_bytes();
    assert_eq!((first.len() + rest.len(), slots.taken()), (sent.len(), 0));
    // Who waits for more of what is lost learns of it.
    let slot = slots.acquire(client(1)).await.unwrap();
    let progress = Arc::clone(&slot.progress);
    let silent = StreamBody::new(stream::pending::<Result<Frame<Bytes>, BodyError>>());
    let reading = tokio::spawn(slot.answer(silent.boxed_unsync()).collect());
    tokio::task::yield_now().await;
    progress.lose();
    assert!(reading.await.unwrap().is_err());
    // What was lost before there was an answer has none.
    let slot = slots.acquire(client(1)).await.unwrap();
    slot.progress.lose();
    assert!(slot.answer(full("late")).collect().await.is_err());
    let none = slots.acquire(client(1)).await.unwrap().answer(full(""));
    assert!(none.is_end_stream());
    drop(none);
    assert_eq!(slots.taken(), 0);
}
