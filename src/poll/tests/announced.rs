//! Feeds that rely on their publisher's SUP document, and how such documents are read.

use super::*;
use crate::politeness::HostRank;
use crate::sup::{READS_AT_ONCE, SharedSource, SupReader, follow};
use std::sync::Mutex;
use tidegate_core::sup::in_header;
use tidegate_net::fetch::{Fetched, LeadScope};
use tokio::time::sleep;

const SUP: &str = "http://sup.example/sup.json";
const LEFT: &str = "its SUP document tells of changes; ";
const NOT_FOUND: &str = "a change that was told of was not found";

/// The next update that the document lists, and the number of requests for it.
#[derive(Default)]
struct Script {
    update: Mutex<Option<&'static str>>,
    asked: Mutex<u32>,
}

impl Script {
    fn lists(&self, update: &'static str) {
        *self.update.lock().unwrap() = Some(update);
    }

    /// Returns a document with a period of one minute; each continues the one before.
    fn reply(&self) -> Fetched {
        let mut asked = self.asked.lock().unwrap();
        *asked += 1;
        let updated = later(60 * u64::from(*asked));
        let since = updated.minus(Duration::from_secs(90));
        let listed = self.update.lock().unwrap().take();
        let listed = listed.map(|update| format!("[\"news\",\"{update}\"]")).unwrap_or_default();
        fetched(
            SUP,
            whole_document(format!(
                "{{\"period\":60,\"since_time\":\"{since}\",\"updated_time\":\"{updated}\",\
             \"updates\":[{listed}]}}"
            )),
        )
    }
}

/// Waits for several periods of the document until `holds` is true.
async fn soon(mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        sleep(Duration::from_secs(1)).await;
    }
    panic!("it never came about");
}

fn why(gateway: &Gateway) -> String {
    gateway.status().next.map(|next| next.reason).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn it_is_polled_when_it_is_listed_and_once_more_where_nothing_was_new() {
    let (publisher, script) = (Publisher::new("one"), Arc::new(Script::default()));
    let documents = Arc::clone(&script);
    let services = publisher.services_by(move |publisher, request| {
        if request.url == SUP {
            return Ok(documents.reply());
        }
        let fetched = publisher.note_and_reply(request)?;
        Ok(Fetched { announced: in_header(&format!("{SUP}#news")), ..fetched })
    });
    let gateway = Gateway::with_client(&store_of(&["news"]), &publisher, services).await;
    // A poll that began after the document was read covers the feed.
    soon(async || {
        gateway.poll().await;
        why(&gateway).starts_with(LEFT)
    })
    .await;
    let mut polls = gateway.publisher.requests();
    let has_polls = |polls| gateway.publisher.requests() == polls;
    let a_while = || sleep(Duration::from_secs(600));
    a_while().await;
    assert!(has_polls(polls) && *script.asked.lock().unwrap() >= 10);
    // The poll comes at once, except for a few seconds' distance from the last one.
    gateway.publisher.says("two", "2");
    script.lists("u-1");
    soon(async || why(&gateway) == "its SUP document lists a change").await;
    assert_eq!(gateway.status().next.unwrap().at, later(5));
    gateway.clock.set(later(5));
    soon(async || has_polls(polls + 1)).await;
    soon(async || why(&gateway).starts_with(LEFT)).await;
    assert_eq!(gateway.status().polls[0].outcome, PollEnding::Changed);
    // A cache may still return the old document.
    gateway.clock.set(later(1000));
    script.lists("u-2");
    soon(async || why(&gateway) == NOT_FOUND).await;
    assert!(has_polls(polls + 2));
    assert_eq!(gateway.status().next.unwrap().at, later(1300));
    gateway.publisher.says("three", "3");
    gateway.clock.set(later(1300));
    soon(async || has_polls(polls + 3)).await;
    soon(async || why(&gateway).starts_with(LEFT)).await;
    // The change that the second poll found had been listed, so trust is not reduced.
    a_while().await;
    assert!(why(&gateway).starts_with(LEFT), "{}", why(&gateway));
    // A poll on demand, which stands for a push, finds a change before it is listed. The feed may have changed again,
    // so it is polled; but no change counts as missing.
    gateway.publisher.says("four", "4");
    gateway.poll().await;
    polls = gateway.publisher.requests();
    gateway.clock.set(later(1800));
    script.lists("u-3");
    soon(async || has_polls(polls + 1)).await;
    soon(async || why(&gateway).starts_with(LEFT)).await;
    gateway.clock.set(later(3300));
    a_while().await;
    assert!(why(&gateway).starts_with(LEFT) && has_polls(polls + 1), "{}", why(&gateway));
    // The next listed change is not the one found before.
    script.lists("u-4");
    soon(async || why(&gateway) == NOT_FOUND).await;
    // A publisher that fails keeps its pause.
    gateway.publisher.fails(status_error(503, Some(Duration::from_secs(5000))));
    gateway.poll().await;
    polls = gateway.publisher.requests();
    gateway.clock.set(later(4300));
    let asked = *script.asked.lock().unwrap();
    script.lists("u-5");
    a_while().await;
    assert!(*script.asked.lock().unwrap() > asked && has_polls(polls));
    assert!(gateway.status().next.unwrap().at >= later(3300 + 5000));
    gateway.stop().await;
}

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
