//! The SUP documents.

use super::*;
use tidegate_core::sup::{SupDocument, read};
use tidegate_store::KnownGateway;

async fn document(site: &Site, path: &str) -> SupDocument {
    let answer = site.get(path).await;
    assert_eq!(answer.status(), 200);
    read(&bytes(answer).await).unwrap()
}

fn ids(site: &Site, document: &SupDocument) -> Vec<String> {
    let names = ["news", "other", "third"].map(doubles::name);
    let of = |id: &str| {
        let found = names.iter().find(|feed| site.room.site.sup_id(feed).unwrap().as_str() == id);
        found.unwrap().to_string()
    };
    document.updates.iter().map(|update| of(update.id.as_str())).collect()
}

#[tokio::test]
async fn a_document_says_what_changed_and_where_the_others_are() {
    let site = Site::announcing();
    site.store.announce(-3000, &["third"]);
    site.store.announce(-5, &["news", "other"]);
    site.store.announce(-2, &["news"]);
    let answer = site.get("/sup.json").await;
    assert_eq!(header(&answer, "content-type"), "application/json");
    assert_eq!(header(&answer, "cache-control"), "public, max-age=1");
    let usual = read(&bytes(answer).await).unwrap();
    assert_eq!((usual.period, usual.updated), (60, at(-1)));
    // `third` changed long ago, but may not have been readable before the next epoch was closed.
    assert_eq!(ids(&site, &usual), ["news", "other", "third"]);
    assert_eq!(&*usual.updates[0].update, "2026-11-20T16-20-03Z");
    let longer = usual.available[&3600].strip_prefix("https://feeds.example.org").unwrap();
    let other = document(&site, longer).await;
    assert_eq!((other.period, other.available), (3600, usual.available));
    assert_eq!(document(&site, "/sup.json?x=1&seconds=300").await.period, 300);
}

#[tokio::test]
async fn a_feed_leads_to_the_document_that_lists_it_with_304_as_well() {
    let site = Site::announcing();
    site.store.announce(-2, &["news"]);
    let first = site.get("/feeds/news").await;
    let tag = header(&first, "etag").to_owned();
    let again = site.get_with("/feeds/news", &[("if-none-match", &tag)]).await;
    assert_eq!(again.status(), 304);
    let listed = document(&site, "/sup.json").await;
    for answer in [first, again] {
        let place = tidegate_core::sup::in_header(header(&answer, "x-sup-id")).unwrap();
        assert_eq!(place.document, "https://feeds.example.org/sup.json");
        assert_eq!(place.id, listed.updates[0].id);
        let link = header(&answer, "link").split(", ").find(|link| link.contains("#sup")).unwrap();
        assert_eq!(tidegate_core::sup::in_links(link, "http://x/"), Some(place));
        assert!(link.ends_with("; type=\"application/json\"; title=\"Updates Feed\""));
    }
}

#[tokio::test]
async fn a_bad_period_is_told_which_there_are() {
    let site = Site::announcing();
    for bad in ["61", "", "060", "+60", "60s", "-1", "60&seconds=60"] {
        let problem = problem(site.get(&format!("/sup.json?seconds={bad}")).await, 400).await;
        assert_eq!(problem["periods"], serde_json::json!([60, 300, 3600]), "{bad}");
        assert_eq!(problem["parameter"], "seconds");
        let said = problem["detail"].as_str().unwrap();
        assert!(said.ends_with("there are documents of 60, 300, 3600 seconds"), "{said}");
    }
    problem(Site::new().get("/sup.json").await, 404).await;
}

#[tokio::test]
async fn documents_have_strong_tags_and_are_compressed() {
    let site = Site::announcing();
    site.store.announce(-2, &["news"]);
    let plain = site.get("/sup.json").await;
    let tag = header(&plain, "etag").to_owned();
    assert!(tag.starts_with('"'));
    let plain = bytes(plain).await;
    for (coding, unpack) in [
        (
            "gzip",
            (|b| {
                let mut out = Vec::new();
                std::io::copy(&mut flate2::read::GzDecoder::new(b), &mut out).unwrap();
                out
            }) as fn(&[u8]) -> Vec<u8>,
        ),
        ("zstd", |b| {
            let mut out = Vec::new();
            std::io::copy(&mut zstd::Decoder::new(b).unwrap(), &mut out).unwrap();
            out
        }),
    ] {
        let packed = site.get_with("/sup.json", &[("accept-encoding", coding)]).await;
        assert_eq!(header(&packed, "content-encoding"), coding);
        assert_ne!(header(&packed, "etag"), tag);
        assert_eq!(unpack(&bytes(packed).await), plain);
    }
    let same = site.get_with("/sup.json", &[("if-none-match", &tag)]).await;
    assert_eq!(same.status(), 304);
    assert_eq!(header(&same, "etag"), tag);
    assert!(bytes(same).await.is_empty());
    let head = site.ask(request("HEAD", "/sup.json", &[], "")).await;
    assert_eq!(header(&head, "content-length"), plain.len().to_string());
}

#[tokio::test(start_paused = true)]
async fn a_change_is_listed_within_a_second_and_one_build_serves_all() {
    let site = Site::announcing();
    site.store.announce(-2, &["news"]);
    assert_eq!(ids(&site, &document(&site, "/sup.json").await), ["news"]);
    let reads = site.store.reads_of("log");
    site.store.announce(0, &["other"]);
    // Within a second of the last build its document is good enough.
    assert_eq!(ids(&site, &document(&site, "/sup.json").await), ["news"]);
    tokio::time::advance(Duration::from_secs(1)).await;
    let all = futures_util::future::join_all((0..20).map(|_| site.get("/sup.json"))).await;
    for answer in all {
        assert_eq!(ids(&site, &read(&bytes(answer).await).unwrap()), ["other", "news"]);
    }
    assert_eq!(site.store.reads_of("log"), reads + 1);
}

#[tokio::test(start_paused = true)]
async fn while_nothing_changes_a_document_stands_until_its_time_is_old() {
    let site = Site::announcing();
    site.store.announce(-2, &["news"]);
    let tag = |answer: &Response<Body>| header(answer, "etag").to_owned();
    let first = tag(&site.get("/sup.json").await);
    for (seconds, same) in [(2, true), (3, false)] {
        tokio::time::advance(Duration::from_secs(5)).await;
        site.clock.set(at(seconds));
        assert_eq!(tag(&site.get("/sup.json").await) == first, same, "after {seconds} s");
    }
    site.clock.set(at(200));
    tokio::time::advance(Duration::from_secs(5)).await;
    let later = document(&site, "/sup.json").await;
    assert_eq!((later.updated, later.updates.len()), (at(199), 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_is_made_before_the_next_request() {
    let site = Site::announcing();
    site.store.announce(-2, &["news"]);
    document(&site, "/sup.json").await;
    let (room, closing) = (site.room.clone(), site.closing.clone());
    let keeping = tokio::spawn(async move { room.sup.keep(&closing).await });
    tokio::time::sleep(Duration::from_secs(2)).await;
    site.store.announce(0, &["other"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let reads = site.store.reads_of("log");
    assert_eq!(ids(&site, &document(&site, "/sup.json").await), ["other", "news"]);
    assert_eq!(site.store.reads_of("log"), reads, "it was there already");
    site.closing.cancel();
    keeping.await.unwrap();
}

/// Where another gateway writes, a document goes as far as was looked there.
#[tokio::test(start_paused = true)]
async fn a_document_claims_no_time_up_to_which_nobody_looked() {
    let site = Site::announcing();
    site.store.announce(-2, &["news"]);
    let elsewhere = |store: &TestStore| {
        store.announce(-1, &["other"]);
    };
    site.store.finds(elsewhere);
    assert_eq!(ids(&site, &document(&site, "/sup.json").await), ["other", "news"]);
    let (room, closing) = (site.room.clone(), site.closing.clone());
    let keeping = tokio::spawn(async move { room.sup.keep(&closing).await });
    // What changes meanwhile cannot be seen.
    site.store.set_unseen(true);
    site.clock.set(at(200));
    tokio::time::sleep(Duration::from_secs(100)).await;
    problem(site.get("/sup.json").await, 503).await;
    assert!(site.room.sup.newest(60).is_none());
    site.store.announce(100, &["news"]);
    site.store.set_unseen(false);
    let seen = document(&site, "/sup.json").await;
    assert_eq!((seen.updated, ids(&site, &seen)), (at(199), vec!["news".to_owned()]));
    site.closing.cancel();
    keeping.await.unwrap();
}

/// Who asks may have asked another gateway before, whose clock is not the one of this gateway.
#[tokio::test]
async fn of_several_gateways_a_document_lists_what_changed_shortly_before_it_begins() {
    for (gateways, listed) in [(0, vec!["news", "other"]), (1, vec!["news", "other", "third"])] {
        let site = Site::sharing();
        site.store.confirm(vec![KnownGateway::default(); gateways]);
        site.store.announce(-80, &["third"]);
        site.store.announce(-79, &["other"]);
        site.store.announce(-1, &["news"]);
        let found = document(&site, "/sup.json").await;
        assert_eq!(found.since, at(-77));
        assert_eq!(ids(&site, &found), listed);
    }
}

#[tokio::test]
async fn a_log_whose_old_end_is_gone_and_one_that_is_long_are_read_whole() {
    let site = Site::announcing();
    for _ in 0..700 {
        site.store.announce(-100, &["third"]);
    }
    site.store.announce(-90, &["other"]);
    site.store.announce(-1, &["news"]);
    site.store.trim(30);
    // Of `third` and `other` the time is known, since epochs followed.
    assert_eq!(ids(&site, &document(&site, "/sup.json").await), ["news", "other"]);
    let all = document(&site, "/sup.json?seconds=300").await;
    assert_eq!(ids(&site, &all), ["news", "other", "third"]);
}

fn written(windows: &tidegate_core::sup::Windows, period: u32) -> String {
    let address = |period| format!("https://feeds.example.org/sup.json?seconds={period}");
    windows.window(period).write(&tidegate_core::sup::PERIODS, address, |_| true)
}

fn packed(text: String) -> crate::rendition::Rendition {
    let about = crate::rendition::About {
        media_type: "application/json",
        shown: at(0),
        revision: tidegate_core::model::Revision(0),
        token: None,
    };
    crate::rendition::Rendition::build_quickly(text, about).unwrap()
}

/// What a document of a very large gateway costs: `cargo test --release -- --ignored --nocapture
/// what_a_million_feeds_cost`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn what_a_million_feeds_cost() {
    use tidegate_core::model::{SupId, Tick};
    use tidegate_core::sup::{Closed, Windows};
    use tokio::time::Instant;
    let mut windows = Windows::new(86_400);
    let begun = Instant::now();
    let feed =
        |n: u64| SupId::new(&format!("{:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15))).unwrap();
    // A million feeds over twelve hours, and 30,000 in the last minute; with them the epoch before,
    // which may not have been readable earlier.
    for epoch in 1..=9_700_u64 {
        let seconds = if epoch <= 9_400 { i64::try_from(epoch).unwrap() * 4 - 43_000 } else { -5 };
        let changes = (0..100).map(|n| (feed(epoch * 100 + n), Tick::at(at(seconds)))).collect();
        windows.add_epoch(Closed { epoch, at: at(seconds), changes });
    }
    windows.finish(at(0), at(0));
    println!("read: {} updates in {:?}", windows.len(), begun.elapsed());
    for (period, updates) in [(60, 30_100), (86_400, 970_000)] {
        let begun = Instant::now();
        let text = written(&windows, period);
        let wrote = begun.elapsed();
        let bytes = text.len();
        let built = packed(text);
        let took = begun.elapsed();
        let size = |encoding| built.body(encoding).content.len();
        use crate::negotiate::Encoding::Gzip;
        println!(
            "{period} s: {updates} updates, {bytes} bytes, gzip {}; written in {wrote:?}, with \
             compression {took:?}",
            size(Gzip)
        );
        let read =
            tidegate_core::sup::read(built.body(crate::negotiate::Encoding::Identity).bytes());
        assert_eq!(read.unwrap().updates.len(), updates);
    }
    let site = Site::announcing();
    for _ in 0..300 {
        site.store.announce(-5, &["news"]);
    }
    site.get("/sup.json").await;
    let begun = Instant::now();
    for _ in 0..20_000 {
        assert_eq!(site.get("/sup.json").await.status(), 200);
    }
    println!("from memory, one task: {:.0} requests/s", 20_000.0 / begun.elapsed().as_secs_f64());
    // In turn with nothing beside it, and while one document after the other is made as it is made for
    // an answer: off the threads that serve.
    let windows = std::sync::Arc::new(windows);
    for building in [false, true, false, true] {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(!building));
        let (held, ends) = (std::sync::Arc::clone(&windows), std::sync::Arc::clone(&stop));
        let builder = tokio::task::spawn_blocking(move || {
            let mut built = 0;
            while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                packed(written(&held, 60));
                built += 1;
            }
            built
        });
        let mut took = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < std::time::Duration::from_secs(3) {
            let asked = Instant::now();
            assert_eq!(site.get("/sup.json").await.status(), 200);
            took.push(asked.elapsed());
            // As many as can be would leave nothing for anybody beside them on a small machine.
            tokio::time::sleep(std::time::Duration::from_micros(200)).await;
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let built = builder.await.unwrap();
        took.sort_unstable();
        let share = |part: usize| took[(took.len() * part / 1000).min(took.len() - 1)];
        println!(
            "{built} documents made beside it: {} answers, half within {:?}, 99 % within {:?}, \
             99.9 % within {:?}",
            took.len(),
            share(500),
            share(990),
            share(999)
        );
    }
}
