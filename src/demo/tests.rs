use super::publisher::respond;
use super::*;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

fn script() -> Script {
    Script::new(Time::from_unix(1_795_191_605), Duration::from_secs(4))
}

/// The ids that a document lists, in order.
fn ids(body: &str) -> Vec<String> {
    let (open, close) = if body.contains("<rss") {
        ("isPermaLink=\"false\">", "</guid>")
    } else {
        ("<id>", "</id>")
    };
    let pieces = body.split(open).skip(1).filter_map(|rest| rest.split(close).next());
    pieces.filter(|id| !id.ends_with(":log")).map(str::to_owned).collect()
}

#[test]
fn the_first_documents() {
    let [log, notices] = script().feeds(0);
    insta::assert_snapshot!("lighthouse", log.body);
    insta::assert_snapshot!("harbour", notices.body);
}

#[test]
fn every_document_is_well_formed() {
    for step in 0..200 {
        for document in script().feeds(step) {
            let mut reader = Reader::from_str(&document.body);
            reader.config_mut().check_end_names = true;
            let mut depth = 0;
            loop {
                match reader.read_event().unwrap() {
                    Event::Start(_) => depth += 1,
                    Event::End(_) => depth -= 1,
                    Event::Eof => break,
                    _ => {}
                }
            }
            assert_eq!(depth, 0, "{} at step {step}", document.path);
        }
    }
}

/// The entry of an id, as the document has it.
fn entry_of(body: &str, id: &str) -> String {
    let end = if body.contains("<rss") { "</item>" } else { "</entry>" };
    let found = body.split(end).find(|piece| piece.contains(&format!(">{id}<")));
    let start = if body.contains("<rss") { "<item>" } else { "<entry>" };
    found.and_then(|piece| piece.split(start).nth(1)).unwrap_or_default().to_owned()
}

/// What the first minutes show, in each feed: posts come, change, vanish from the middle while an
/// older one fills the hole, and slide off the end.
#[test]
fn the_first_minutes_show_everything() {
    for which in 0..2 {
        let (mut gained, mut edited, mut withdrawn, mut backfilled, mut slid) = (0, 0, 0, 0, 0);
        for step in 0..30 {
            let before = &script().feeds(step)[which].body;
            let after = &script().feeds(step + 1)[which].body;
            let (old, new) = (ids(before), ids(after));
            let old_set: BTreeSet<&String> = old.iter().collect();
            let new_set: BTreeSet<&String> = new.iter().collect();
            let gone: Vec<&String> = old.iter().filter(|id| !new_set.contains(id)).collect();
            gained += usize::from(!old_set.contains(&new[0]));
            for id in gone {
                if old.last() == Some(id) { slid += 1 } else { withdrawn += 1 }
            }
            let came_at_end = !old_set.contains(new.last().unwrap());
            backfilled += usize::from(came_at_end);
            let noise = |entry: String| match entry.split_once("<slash:comments>") {
                Some((head, tail)) => {
                    format!("{head}{}", tail.split_once("</slash:comments>").unwrap().1)
                }
                None => entry,
            };
            edited += old_set
                .intersection(&new_set)
                .filter(|id| noise(entry_of(before, id)) != noise(entry_of(after, id)))
                .count();
        }
        let counts = [gained, edited, withdrawn, backfilled, slid];
        assert!(counts.iter().all(|count| *count > 0), "feed {which}: {counts:?}");
    }
}

/// The words of `places` promise it.
#[test]
fn the_first_post_is_withdrawn_at_the_fourth_step() {
    let (before, after) = (ids(&script().feeds(3)[0].body), ids(&script().feeds(4)[0].body));
    assert!(before[1..7].iter().any(|id| !after.contains(id)));
    for step in 0..3 {
        let (before, after) =
            (ids(&script().feeds(step)[0].body), ids(&script().feeds(step + 1)[0].body));
        assert!(before[..7].iter().all(|id| after.contains(id)), "step {step}");
    }
}

#[test]
fn the_log_is_quiet_between_changes_and_the_notices_never_are() {
    let quiet = (0..30).filter(|step| script().feeds(*step)[0] == script().feeds(step + 1)[0]);
    assert!(quiet.count() > 0);
    for step in 0..30 {
        assert_ne!(script().feeds(step)[1].body, script().feeds(step + 1)[1].body);
    }
}

#[test]
fn no_two_posts_of_a_window_have_the_same_text() {
    for step in [0, 17, 300] {
        for document in script().feeds(step) {
            let titles: Vec<&str> = document.body.split("<title>").skip(2).collect();
            let unique: BTreeSet<&&str> = titles.iter().collect();
            assert_eq!(unique.len(), titles.len(), "{}", document.path);
        }
    }
}

#[test]
fn conditional_requests_are_answered_304() {
    let document = script().feeds(0)[0].clone();
    let fresh = respond(document.clone(), &HeaderMap::new());
    assert_eq!(fresh.status(), StatusCode::OK);
    let etag = fresh.headers().get(header::ETAG).unwrap().clone();
    let modified = fresh.headers().get(header::LAST_MODIFIED).unwrap().clone();
    let other = HeaderValue::from_static("\"0\"");
    for (sent, status) in [
        (vec![(header::IF_NONE_MATCH, etag.clone())], StatusCode::NOT_MODIFIED),
        (vec![(header::IF_MODIFIED_SINCE, modified.clone())], StatusCode::NOT_MODIFIED),
        (vec![(header::IF_NONE_MATCH, other.clone())], StatusCode::OK),
        (
            vec![(header::IF_NONE_MATCH, other), (header::IF_MODIFIED_SINCE, modified)],
            StatusCode::OK,
        ),
    ] {
        let headers: HeaderMap = sent.into_iter().collect();
        let answer = respond(document.clone(), &headers);
        assert_eq!(answer.status(), status, "{headers:?}");
        assert_eq!(answer.headers().get(header::ETAG), Some(&etag));
    }
}

#[test]
fn the_configuration_polls_the_publisher_and_no_other_private_address() {
    let (publisher, listen): (SocketAddr, SocketAddr) =
        ("127.0.0.1:4711".parse().unwrap(), "127.0.0.1:0".parse().unwrap());
    let config = configuration(publisher, listen, None);
    let urls: Vec<&str> =
        config.feeds.iter().map(|feed| feed.url.as_ref().unwrap().as_str()).collect();
    assert_eq!(
        urls,
        ["http://127.0.0.1:4711/lighthouse.atom", "http://127.0.0.1:4711/harbour.xml"]
    );
    let crate::config::AllowPrivateSetting::Only(only) = &config.polling.allow_private else {
        panic!("more than the publisher is allowed");
    };
    assert_eq!(only.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1:4711"]);
    insta::assert_snapshot!(places(publisher, "http://127.0.0.1:8080", Duration::from_secs(4)));
}

#[tokio::test]
async fn the_server_serves_both_and_stops_when_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let server = tokio::spawn(publisher(listener, Duration::from_secs(3600), shutdown.clone()));
    for (path, status, part) in [
        (LIGHTHOUSE, "200 OK", "Skerry Rock"),
        (HARBOUR, "200 OK", "harbour office"),
        ("/else", "404 Not Found", "only two"),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.contains(part), "{answer}");
    }
    shutdown.cancel();
    server.await.unwrap().unwrap();
}
