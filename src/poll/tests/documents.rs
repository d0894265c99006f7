//! How many SUP documents are read at the same time, and in which order.

use super::*;
use crate::politeness::HostRank;
use crate::polling::PollContext;
use crate::sup::{READS_AT_ONCE, SharedSource, SupReader, follow};
use std::sync::Mutex;
use tidegate_net::fetch::{Fetch, FetchRequest, Fetched, LeadScope, Services};
use tokio::sync::mpsc;
use tokio::time::sleep;

/// The requests in order, and the current and highest number at the same time.
#[derive(Default)]
struct Reads {
    asked: Mutex<Vec<String>>,
    now: Mutex<(usize, usize)>,
}

impl Reads {
    fn begin(&self, url: String) {
        self.asked.lock().unwrap().push(url);
        let mut now = self.now.lock().unwrap();
        *now = (now.0 + 1, now.1.max(now.0 + 1));
    }

    fn end(&self) {
        self.now.lock().unwrap().0 -= 1;
    }
}

/// Starts a gateway to which every document takes `time` and then answers 404.
async fn reading(time: Duration) -> (Gateway, Arc<Reads>) {
    let (publisher, reads) = (Publisher::new("one"), Arc::<Reads>::default());
    let seen = Arc::clone(&reads);
    let fetch = Fetch::new(tower::service_fn(move |request: FetchRequest| {
        let reads = Arc::clone(&seen);
        async move {
            reads.begin(request.url);
            sleep(time).await;
            reads.end();
            Err::<Fetched, _>(status_error(404, None))
        }
    }));
    let services = Services { fetch, ..publisher.services() };
    (Gateway::with_client(&store_of(&[]), &publisher, services).await, reads)
}

fn follows(context: &Arc<PollContext>, documents: &[String]) {
    for document in documents {
        let (context, told) = (Arc::clone(context), mpsc::channel(1).0);
        let reader = SupReader::new(document, LeadScope::default());
        tokio::spawn(follow(context, reader, SharedSource::default(), told));
    }
}

#[tokio::test(start_paused = true)]
async fn so_many_documents_are_read_at_once_and_the_others_after_them_in_order() {
    let (gateway, reads) = reading(Duration::from_secs(30)).await;
    let all: Vec<String> = (0..20).map(|n| format!("http://h{n}.example/sup.json")).collect();
    follows(&gateway.poller.context, &all);
    sleep(Duration::from_secs(85)).await;
    assert_eq!(*reads.asked.lock().unwrap(), all);
    assert_eq!(reads.now.lock().unwrap().1, READS_AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn documents_that_wait_for_their_host_keep_no_others_from_being_read() {
    let (gateway, reads) = reading(Duration::from_secs(1)).await;
    let context = &gateway.poller.context;
    let held = context.hosts.slot("http://busy.example/", HostRank::Usual).await.ok().unwrap();
    let busy: Vec<String> = (0..12).map(|n| format!("http://busy.example/{n}")).collect();
    follows(context, &busy);
    follows(context, &["http://free.example/".to_owned()]);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(reads.asked.lock().unwrap()[0], "http://free.example/");
    assert!(!reads.asked.lock().unwrap().iter().any(|url| url.contains("busy")));
    drop(held);
    let is_read = |url: &String| reads.asked.lock().unwrap().contains(url);
    sleep(Duration::from_secs(600)).await;
    assert!(busy.iter().all(is_read), "each has its turn");
}
