//! How many SUP documents are read at the same time, and in which order.

use super::*;
use crate::politeness::HostRank;
use crate::sup::{READS_AT_ONCE, SharedSource, SupReader, follow};
use std::sync::Mutex;
use tidegate_net::fetch::{Fetch, FetchRequest, Fetched, LeadScope, Services};
use tokio::time::sleep;

/// Each document takes 30 seconds, and then there is none. Twelve wait for a host that is busy.
#[tokio::test(start_paused = true)]
async fn so_many_documents_are_read_at_once_and_none_waits_for_those_of_a_busy_host() {
    let (publisher, asked) = (Publisher::new("one"), Arc::new(Mutex::new(Vec::new())));
    // The current and the highest number at the same time.
    let reads = Arc::new(Mutex::new((0, 0)));
    let (seen, counted) = (Arc::clone(&asked), Arc::clone(&reads));
    let fetch = Fetch::new(tower::service_fn(move |request: FetchRequest| {
        seen.lock().unwrap().push(request.url);
        let counted = Arc::clone(&counted);
        async move {
            {
                let mut reads = counted.lock().unwrap();
                *reads = (reads.0 + 1, reads.1.max(reads.0 + 1));
            }
            sleep(Duration::from_secs(30)).await;
            counted.lock().unwrap().0 -= 1;
            Err::<Fetched, _>(status_error(404, None))
        }
    }));
    let services = Services { fetch, ..publisher.services() };
    let gateway = Gateway::with_client(&store_of(&[]), &publisher, services).await;
    let context = &gateway.poller.context;
    let held = context.hosts.slot("http://busy.example/", HostRank::Usual).await.ok().unwrap();
    let busy: Vec<String> = (0..12).map(|n| format!("http://busy.example/{n}")).collect();
    let free: Vec<String> = (0..20).map(|n| format!("http://h{n}.example/sup.json")).collect();
    for document in busy.iter().chain(&free) {
        let reader = SupReader::new(document, LeadScope::default());
        tokio::spawn(follow(Arc::clone(context), reader, SharedSource::default()));
    }
    // The first twelve give way after ten seconds.
    sleep(Duration::from_secs(20 + 85)).await;
    assert_eq!(*asked.lock().unwrap(), free, "in their order");
    assert_eq!(reads.lock().unwrap().1, READS_AT_ONCE);
    drop(held);
    sleep(Duration::from_secs(1200)).await;
    assert!(busy.iter().all(|url| asked.lock().unwrap().contains(url)), "each has its turn");
}
