//! Documents that are too large for memory, which are written to files: over a store in memory that reads
//! few items at a time, with the real renderer.

use super::archives::Gate;
use super::*;
use std::path::Path;

const VIEWS: &str = "/feeds/news /feeds/news/sync /feeds/news/complete /feeds/news/complete?as=rss \
                     /feeds/news/complete?as=json /feeds/news/complete?as=pox \
                     /feeds/news/complete?as=jsonfeed";

/// A feed of so many items, and some that were deleted.
async fn gate(folder: Option<&Path>, items: usize) -> Gate {
    let mut gate = Gate::within(false, folder).await;
    let names: Vec<String> = (0..items).map(|number| format!("item-{number:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    gate.commit(&names, &[], None).await;
    let (living, deleted) = names.split_at(items - 3);
    gate.commit(living, deleted, None).await;
    gate
}

fn used(gate: &Gate) -> u64 {
    gate.app.spool.used()
}

#[tokio::test]
async fn a_document_in_a_file_is_that_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (large, small) = (gate(Some(folder.path()), 40).await, gate(None, 40).await);
    for view in VIEWS.split(' ') {
        let (file, memory) = (large.get(view).await, small.get(view).await);
        for name in ["etag", "last-modified", "content-type", "content-length", "link", "vary"] {
            // What stands in a tag behind the hash of the bytes is the store's.
            let [file, memory] =
                [&file, &memory].map(|answer| header(answer, name).split('.').next());
            assert_eq!(file, memory, "{view}: {name}");
        }
        let etag = header(&file, "etag").to_owned();
        let memory = bytes(memory).await;
        assert!(memory.len() > 5 << 10, "{view}: {}", memory.len());
        assert!(bytes(file).await == memory, "{view} is the same");
        for asked in ["gzip", "zstd, gzip", "zstd, gzip;q=0.5", "zstd", "*"] {
            let is_packed = asked != "zstd";
            let packed = large.ask(view, &[("accept-encoding", asked)]).await;
            let coding = if is_packed { "gzip" } else { "" };
            assert_eq!(header(&packed, "content-encoding"), coding, "{view}: {asked}");
            assert_eq!(header(&packed, "etag") == etag, !is_packed);
            let length: usize = header(&packed, "content-length").parse().unwrap();
            let body = bytes(packed).await;
            assert_eq!(body.len(), length);
            let plain = if is_packed { unpacked(&body) } else { body };
            assert!(plain == memory, "{view}: {asked}");
        }
        let known = large.ask(view, &[("if-none-match", &etag)]).await;
        assert_eq!((known.status(), bytes(known).await.len()), (StatusCode::NOT_MODIFIED, 0));
        let head = request("HEAD", view, &[], "");
        let head = large.router.clone().oneshot(head).await.unwrap();
        assert_eq!(header(&head, "content-length"), memory.len().to_string());
        assert_eq!(bytes(head).await.len(), 0);
    }
    assert!(used(&large) > 0, "they are in files");
    assert_eq!(used(&small), 0);
    // The files have no names, so that nothing of them is left.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn what_is_being_sent_stays_and_then_goes() {
    let folder = tempfile::tempdir().unwrap();
    let mut gate = gate(Some(folder.path()), 300).await;
    let mut body = gate.get("/feeds/news/complete").await.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let sent = [&gate.app.file_bodies, &gate.app.bodies].map(|budget| budget.held().0);
    assert_eq!(sent, [1, 0], "a file takes nothing of the budget of memory");
    gate.commit(&["another"], &[], None).await;
    let after = bytes(gate.get("/feeds/news/complete").await).await;
    let both = used(&gate);
    let mut before = first.to_vec();
    while let Some(frame) = body.frame().await {
        before.extend(frame.unwrap().into_data().unwrap());
    }
    drop(body);
    let (before, after) = (String::from_utf8(before).unwrap(), String::from_utf8(after).unwrap());
    assert!(before.ends_with("</feed>") || before.ends_with("</feed>\n"), "it is whole");
    assert!(!before.contains("another of") && after.contains("another of"));
    // The cache lets go of it in a moment of its own.
    eventually(|| used(&gate) < both * 2 / 3).await;
    assert!(used(&gate) > 0, "the document that is published now stays");
    // Files have a limit together.
    let mut gate = self::gate(Some(folder.path()), 400).await;
    let mut held = Vec::new();
    let refused = loop {
        assert!(held.len() < 20, "there is a limit");
        let answer = gate.ask("/feeds/news/complete", &[]).await;
        if answer.status() != 200 {
            break answer;
        }
        held.push(answer.into_body());
        gate.commit(&["another"], &[], None).await;
    };
    assert!(!held.is_empty());
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    drop((held, refused));
    let answer = gate.get("/feeds/news/complete").await;
    assert!(bytes(answer).await.len() > 50_000, "there is room again");
}
