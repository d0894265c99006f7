//! `tidegate sup` in front of a scripted publisher of SUP documents.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// What the publisher says, and the address that it says it at.
async fn publisher(documents: Arc<Mutex<Vec<String>>>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = format!("http://{}", listener.local_addr().unwrap());
    let base = own.clone();
    let none = || async { axum::http::StatusCode::NOT_FOUND };
    let app = axum::Router::new().route("/subscriptions.opml", axum::routing::get(none));
    let app = app.fallback(move |uri: axum::http::Uri| {
        let mut documents = documents.lock().unwrap();
        let long = uri.query() == Some("seconds=300");
        let of = |period: u32| format!("\"period\":{period},");
        let is_wanted = |text: &String| text.contains(&of(if long { 300 } else { 60 }));
        let at = documents.iter().position(is_wanted).unwrap_or(0);
        // The last one stays.
        let last = documents.iter().filter(|text| is_wanted(text)).count() <= 1;
        let next = if last { documents[at].clone() } else { documents.remove(at) };
        let body = next.replace("BASE", &base);
        async move { ([("content-type", "application/json")], body) }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    own
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

#[tokio::test]
async fn a_document_is_read_once_or_refused() {
    let good = document(60, "10:00:00", "10:01:10", "[\"b\",\"2\"],[\"a\",\"1\"]");
    let says = Arc::new(Mutex::new(vec![good.clone()]));
    let address = publisher(Arc::clone(&says)).await;
    let out = tidegate(&["--once", &address]).output().await.unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(text, "2026-11-20T10:01:10Z a 1\n2026-11-20T10:01:10Z b 2\n");
    assert_eq!(out.status.code(), Some(0));
    let out = tidegate(&["--once", "--json", &address]).output().await.unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[1]["sup_id"], "b");
    assert_eq!((lines.len(), lines[1]["update_id"].as_str()), (2, Some("2")));

    says.lock().unwrap()[0] = good.replace("\"period\":60", "\"period\":71");
    let out = tidegate(&[&address]).output().await.unwrap();
    assert_eq!((out.status.code(), out.stdout.len()), (Some(1), 0));
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("has period 71 but covers only 70 s"), "{said}");
}

/// The list beside the document says which feeds the ids of a gateway mean.
#[tokio::test]
async fn ids_are_named_where_a_list_says_what_they_mean() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/below/sup.json", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let list = move || {
        *count.lock().unwrap() += 1;
        async {
            "<opml version='2.0' xmlns:o='urn:tidegate:outline'><body><outline text='F'>\
             <outline text='My &lt;news&gt;&#27;[2J' xmlUrl='http://gate.example/feeds/news' o:sup='a'/>\
             <outline text='other' xmlUrl='http://gate.example/feeds/b' sup='b'/></outline></body></opml>"
        }
    };
    let says = document(60, "10:00:00", "10:01:10", "[\"b\",\"2\"],[\"a\",\"1\"]");
    let says = says.replace("BASE", "http://127.0.0.1:1");
    let sup = move || async move { ([("content-type", "application/json")], says.clone()) };
    let app = axum::Router::new()
        .route("/below/subscriptions.opml", axum::routing::get(list))
        .route("/below/sup.json", axum::routing::get(sup));
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let out = tidegate(&["--once", &address]).output().await.unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(text, "2026-11-20T10:01:10Z a 1 My <news>[2J\n2026-11-20T10:01:10Z b 2\n");
    let out = tidegate(&["--once", "--json", &address]).output().await.unwrap();
    let first = String::from_utf8(out.stdout).unwrap().lines().next().unwrap().to_owned();
    let first: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_eq!(first["feed"], "http://gate.example/feeds/news");
    assert_eq!(*asked.lock().unwrap(), 2, "once each time");
}

#[tokio::test]
async fn a_document_leads_to_no_private_address_but_its_own() {
    let says = |text: String| Arc::new(Mutex::new(vec![text]));
    let away = publisher(says(document(300, "10:00:00", "10:05:10", "[\"secret\",\"1\"]"))).await;
    let gap = document(60, "10:04:00", "10:05:10", "[\"b\",\"1\"]");
    let documents = vec![
        document(60, "10:00:00", "10:01:10", "[\"a\",\"1\"]"),
        gap.replace("BASE/?seconds=300", &format!("{away}/?seconds=300")),
    ];
    let address = publisher(Arc::new(Mutex::new(documents))).await;
    let mut child = tidegate(&["--every", "1s", &address])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = tokio::time::timeout(Duration::from_secs(60), said.next_line()).await;
    let line = line.expect("it complains").unwrap().unwrap();
    assert!(line.contains("the document of a longer period is missing"), "{line}");
    assert!(line.contains("127.0.0.1"), "{line}");
    child.start_kill().unwrap();
    let out = child.wait_with_output().await.unwrap();
    let told = String::from_utf8(out.stdout).unwrap();
    assert!(told.contains(" b 1") && !told.contains("secret"), "{told}");
}
