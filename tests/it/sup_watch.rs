//! `tidegate sup` in front of a scripted publisher of SUP documents.

use crate::support::gateways::until;
use crate::support::publisher::{Answer, Publisher};
use serde_json::Value;
use std::process::{Output, Stdio};
use tokio::process::Command;

/// Has these documents at every address of a publisher, without a list of its feeds.
async fn publisher(document: &str) -> Publisher {
    let publisher = Publisher::start().await;
    publisher.set("/subscriptions.opml", Answer::status(404));
    says(&publisher, document);
    publisher
}

fn says(publisher: &Publisher, document: &str) {
    let document = document.replace("BASE", &publisher.address(""));
    publisher.set_all(Answer::document("application/json", document));
}

fn document(period: u32, since: &str, updated: &str, updates: &str) -> String {
    format!(
        "{{\"period\":{period},\"since_time\":\"2026-11-20T{since}Z\",\
         \"updated_time\":\"2026-11-20T{updated}Z\",\"updates\":[{updates}],\
         \"available_periods\":{{\"60\":\"BASE/?seconds=60\",\"300\":\"BASE/?seconds=300\"}}}}"
    )
}

fn tidegate(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("sup").args(args).kill_on_drop(true);
    command
}

async fn told(args: &[&str]) -> (Option<i32>, String, String) {
    in_words(tidegate(args).output().await.unwrap())
}

fn in_words(Output { status, stdout, stderr }: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_document_is_read_once_or_refused() {
    let good = document(60, "10:00:00", "10:01:10", "[\"b\",\"2\"],[\"a\",\"1\"]");
    let publisher = publisher(&good).await;
    let address = publisher.address("");
    let (status, text, _) = told(&["--once", &address]).await;
    assert_eq!(text, "2026-11-20T10:01:10Z a 1\n2026-11-20T10:01:10Z b 2\n");
    assert_eq!(status, Some(0));
    let all = lines(&told(&["--once", "--json", &address]).await.1);
    assert_eq!((all.len(), &all[1]["sup_id"], &all[1]["update_id"]), (2, &"b".into(), &"2".into()));

    says(&publisher, &good.replace("\"period\":60", "\"period\":71"));
    let (status, text, said) = told(&[&address]).await;
    assert_eq!((status, text.as_str()), (Some(1), ""));
    assert!(said.contains("has period 71 but covers only 70 s"), "{said}");
}

/// The list beside the document says which feeds the ids of a gateway mean.
#[tokio::test]
async fn ids_are_named_where_a_list_says_what_they_mean() {
    const LIST: &str = "<opml version='2.0' xmlns:o='urn:tidegate:outline'><body><outline text='F'>\
        <outline text='My &lt;news&gt;&#27;[2J' xmlUrl='http://gate.example/feeds/news' o:sup='a'/>\
        <outline text='other' xmlUrl='http://gate.example/feeds/b' sup='b'/></outline></body></opml>";
    let says = document(60, "10:00:00", "10:01:10", "[\"b\",\"2\"],[\"a\",\"1\"]");
    let publisher = publisher(&says).await;
    publisher.set("/below/subscriptions.opml", Answer::document("text/x-opml", LIST));
    let address = publisher.address("/below/sup.json");
    let (_, text, _) = told(&["--once", &address]).await;
    assert_eq!(text, "2026-11-20T10:01:10Z a 1 My <news>[2J\n2026-11-20T10:01:10Z b 2\n");
    let all = lines(&told(&["--once", "--json", &address]).await.1);
    assert_eq!(all[0]["feed"], "http://gate.example/feeds/news");
    assert_eq!(publisher.asked("/below/subscriptions.opml"), 2, "once each time");
}

#[tokio::test]
async fn a_document_leads_to_no_private_address_but_its_own() {
    let away = publisher(&document(300, "10:00:00", "10:05:10", "[\"secret\",\"1\"]")).await;
    let publisher = publisher(&document(60, "10:00:00", "10:01:10", "[\"a\",\"1\"]")).await;
    let mut command = tidegate(&["--every", "1s", &publisher.address("")]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("it is read", async || publisher.seen().len() > 1).await;
    let gap = document(60, "10:04:00", "10:05:10", "[\"b\",\"1\"]");
    says(&publisher, &gap.replace("BASE/?seconds=300", &away.address("/?seconds=300")));
    // Two documents later it has said what it misses.
    let read = publisher.seen().len();
    until("it is read again", async || publisher.seen().len() > read + 2).await;
    let process = child.id().unwrap().to_string();
    assert!(Command::new("kill").arg(process).status().await.unwrap().success());
    let (_, told, said) = in_words(child.wait_with_output().await.unwrap());
    let missing = "the document of a longer period is missing";
    assert!(said.contains(missing) && said.contains("127.0.0.1"), "{said}");
    assert!(told.contains(" b 1") && !told.contains("secret"), "{told}");
    assert_eq!(away.seen().len(), 0);
}
