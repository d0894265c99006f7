use super::publisher::respond;
use super::*;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use tidegate_config::{AdminTokenSetting, SecretToken};
use tidegate_net::fetch::AllowPrivate;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
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
    let [log, notices, board] = script().feeds(0);
    insta::assert_snapshot!("lighthouse", log.body);
    insta::assert_snapshot!("harbour", notices.body);
    insta::assert_snapshot!("pilots", board.body);
}

#[test]
fn a_document_breaks_off_within_an_item_and_is_whole_again() {
    let notices = |step| script().feeds(step)[1].body.clone();
    for step in [14, 15] {
        let body = notices(step);
        assert_eq!((body.matches("<item>").count(), body.matches("</item>").count()), (5, 4));
        assert!(!body.contains("</rss>"));
    }
    assert_eq!(ids(&notices(16)).len(), 10);
}

/// It lasts so long that a visitor can release what is held, and says the same all the time: so neither
/// the number of documents nor the time confirms it before the publisher repairs it.
#[test]
fn every_text_is_overwritten_for_a_while_by_the_same() {
    let notices = |step| script().feeds(step)[1].clone();
    let (before, broken) = (notices(18), notices(19));
    assert_eq!(broken.body.matches("Please enable JavaScript").count(), 10);
    assert_eq!(ids(&before.body), ids(&broken.body));
    assert!((19..28).all(|step| notices(step) == broken));
    let mended = notices(28);
    assert!(!mended.body.contains("JavaScript") && mended.changed > broken.changed);
}

/// A post of the light gets another id, and stays the same in all else.
#[test]
fn a_post_gets_another_id() {
    let log = |step| script().feeds(step)[0].body.clone();
    let (before, after) = (log(11), log(12));
    let old = "<id>tag:skerry-rock.example,2026:watch/12</id>";
    let new = "<id>tag:skerry-rock.example,2026:new-book/12</id>";
    assert!(before.contains(old) && !before.contains(new));
    assert_eq!(before.replace(old, new), after.replacen(&updated(&after), &updated(&before), 1));
}

/// When a feed says that it was updated.
fn updated(body: &str) -> String {
    body.lines().find(|line| line.starts_with("  <updated>")).unwrap().to_owned()
}

/// Both know the first version, and neither knows of what the other makes of it.
#[test]
fn the_mainland_changes_the_tides_without_knowing_of_the_gateway() {
    let board = |step| script().feeds(step)[2].clone();
    let (first, second) = (board(8), board(9));
    assert_eq!(board(0), first);
    assert_eq!(board(500), second);
    let sync = format!("<sx:sync id=\"{PILOTS_ITEM}\" updates=");
    assert!(first.body.contains(&format!("{sync}\"1\"")), "{}", first.body);
    assert!(second.body.contains(&format!("{sync}\"2\"")), "{}", second.body);
    assert_eq!(second.body.matches("by=\"mainland.example\"").count(), 2);
    let ours = own_version();
    assert!(!first.body.contains(&ours.title) && !second.body.contains(&ours.title));
}

/// Whether something goes wrong with the notices at a step.
fn has_accident(step: u32) -> bool {
    matches!(step % 75, 14..16 | 19..28)
}

/// The documents at a step, but for those with an accident.
fn whole(step: u32) -> impl Iterator<Item = ScriptedDocument> {
    script().feeds(step).into_iter().filter(move |d| d.path != HARBOUR || !has_accident(step))
}

#[test]
fn accidents_come_again() {
    let notices = |step| script().feeds(step)[1].body.clone();
    for step in [14, 15, 89, 90] {
        assert!(!notices(step).contains("</rss>"), "step {step}");
    }
    for step in [13, 16, 75, 88, 91] {
        assert!(notices(step).contains("</rss>"), "step {step}");
    }
    for (step, is_overwritten) in [(18, false), (19, true), (27, true), (28, false), (94, true)] {
        assert_eq!(notices(step).contains("enable JavaScript"), is_overwritten, "step {step}");
    }
    let last = notices(u32::MAX);
    assert!(last.starts_with("<?xml"), "no step is too late");
}

#[test]
fn every_document_is_well_formed_but_for_the_accidents() {
    for step in 0..200 {
        for document in whole(step) {
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
        let steps: Vec<u32> = (0..=30).filter(|step| which == 0 || !has_accident(*step)).collect();
        for pair in steps.windows(2) {
            let before = &script().feeds(pair[0])[which].body;
            let after = &script().feeds(pair[1])[which].body;
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
    for step in (0..30).filter(|step| !(19..27).contains(step)) {
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
    let token = AdminTokenSetting::Here(SecretToken::new("a-secret-of-a-demonstration").unwrap());
    let config = configuration(publisher, listen, None, token.clone());
    assert_eq!(config.server.admin_token, token);
    let urls: Vec<&str> =
        config.feeds.iter().map(|feed| feed.url.as_ref().unwrap().as_str()).collect();
    assert_eq!(
        urls,
        [
            "http://127.0.0.1:4711/lighthouse.atom",
            "http://127.0.0.1:4711/harbour.xml",
            "http://127.0.0.1:4711/pilots.atom"
        ]
    );
    let publisher = AllowPrivate::only(["127.0.0.1:4711"]).unwrap();
    assert_eq!(config.polling.allow_private, publisher, "more than the publisher is allowed");
    let local = |feed: &tidegate_config::FeedConfig| feed.options.sharing.local;
    assert_eq!(config.feeds.iter().map(local).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn the_start_says_where_to_look_in_a_few_lines() {
    let said = welcome(
        "127.0.0.1:4711".parse().unwrap(),
        "http://127.0.0.1:8080",
        Duration::from_secs(4),
        "0123456789abcdef0123456789abcdef",
    );
    assert!(said.lines().count() <= 6, "two lines stand before it");
    insta::assert_snapshot!(said);
}

#[tokio::test]
async fn the_server_serves_all_and_stops_when_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let (steps, step) = watch::channel(0);
    let server = tokio::spawn(publisher(listener, script(), step, shutdown.clone()));
    for (path, status, part) in [
        (LIGHTHOUSE, "200 OK", "Skerry Rock"),
        (HARBOUR, "200 OK", "harbour office"),
        (PILOTS, "200 OK", "tide board"),
        ("/else", "404 Not Found", "only three"),
    ] {
        let answer = ask(address, path).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.contains(part), "{answer}");
    }
    assert!(ask(address, HARBOUR).await.contains("</rss>"));
    steps.send_replace(14);
    assert!(!ask(address, HARBOUR).await.contains("</rss>"), "it goes on as it is told");
    shutdown.cancel();
    server.await.unwrap().unwrap();
}

/// What a server answers.
async fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
