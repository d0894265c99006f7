//! How many SUP documents are read at the same time, and in which order.

use super::*;
use crate::politeness::HostRank;
use crate::sup::{READS_AT_ONCE, SharedSource, SupReader, follow};
use tidegate_net::fetch::LeadScope;
use tokio::time::sleep;

/// None of the documents is there. Twelve wait for a host that is busy.
#[tokio::test(start_paused = true)]
async fn so_many_documents_are_read_at_once_and_none_waits_for_those_of_a_busy_host() {
    let publisher = Publisher::gated("");
    publisher.fails(status_error(404, None));
    let gateway = Gateway::start(&store_of(&[]), &publisher).await;
    let context = &gateway.poller.context;
    let held = context.hosts.slot("http://busy.example/", HostRank::Usual).await.ok().unwrap();
    let busy: Vec<String> = (0..12).map(|n| format!("http://busy.example/{n}")).collect();
    let free: Vec<String> = (0..20).map(|n| format!("http://h{n}.example/sup.json")).collect();
    for document in busy.iter().chain(&free) {
        let reader = SupReader::new(document, LeadScope::default());
        tokio::spawn(follow(Arc::clone(context), reader, SharedSource::default()));
    }
    let asked = || -> Vec<String> {
        publisher.asked.lock().unwrap().iter().map(|request| request.url.clone()).collect()
    };
    // Each of the first twelve gives way after ten seconds.
    sleep(Duration::from_secs(25)).await;
    assert_eq!(asked(), free[..READS_AT_ONCE]);
    publisher.release(1000);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(asked(), free, "in their order");
    drop(held);
    sleep(Duration::from_secs(1200)).await;
    assert!(busy.iter().all(|url| asked().contains(url)), "each has its turn");
}
