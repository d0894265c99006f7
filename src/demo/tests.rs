use super::*;
use axum::http::HeaderValue;

fn script() -> Script {
    Script::new(Time::from_unix(1_795_191_605), Duration::from_secs(4))
}

#[test]
fn the_first_documents() {
    let [log, notices, board] = script().feeds(0);
    insta::assert_snapshot!("lighthouse", log.body);
    insta::assert_snapshot!("harbour", notices.body);
    insta::assert_snapshot!("pilots", board.body);
}

#[test]
fn accidents_come_again_and_all_else_is_well_formed() {
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
    // But for these every document is well formed.
    for step in 0..200 {
        let has_accident = matches!(step % 75, 14..16 | 19..28);
        for document in script().feeds(step) {
            let is_whole = roxmltree::Document::parse(&document.body).is_ok();
            let goes_wrong = has_accident && document.path == HARBOUR;
            assert!(is_whole || goes_wrong, "{} at step {step}", document.path);
        }
    }
    // The log is quiet between changes, and the notices never are.
    let quiet = (0..30).filter(|step| script().feeds(*step)[0] == script().feeds(step + 1)[0]);
    assert!(quiet.count() > 0);
    for step in (0..30).filter(|step| !(19..27).contains(step)) {
        assert_ne!(script().feeds(step)[1].body, script().feeds(step + 1)[1].body);
    }
}

#[test]
fn conditional_requests_are_answered_304() {
    let document = script().feeds(0)[0].clone();
    let fresh = respond(document.clone(), &HeaderMap::new());
    assert_eq!(fresh.status(), StatusCode::OK);
    let etag = fresh.headers().get(header::ETAG).unwrap().clone();
    let modified = fresh.headers().get(header::LAST_MODIFIED).unwrap().clone();
    let since = (header::IF_MODIFIED_SINCE, modified);
    let other = HeaderValue::from_static("\"0\"");
    for (sent, status) in [
        (vec![(header::IF_NONE_MATCH, etag.clone())], StatusCode::NOT_MODIFIED),
        (vec![since.clone()], StatusCode::NOT_MODIFIED),
        (vec![(header::IF_NONE_MATCH, other.clone())], StatusCode::OK),
        (vec![(header::IF_NONE_MATCH, other), since], StatusCode::OK),
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
    let token = Some(SecretSource::Env("A_SECRET_OF_A_DEMONSTRATION".to_owned()));
    let config = configuration(publisher, listen, None, token.clone());
    assert_eq!(config.server.admin_token, token);
    let urls: Vec<&str> = config.feeds.iter().map(|feed| feed.url.as_str()).collect();
    let feeds = ["lighthouse.atom", "harbour.xml", "pilots.atom"];
    assert_eq!(urls, feeds.map(|path| format!("http://127.0.0.1:4711/{path}")));
    let publisher = AllowPrivate::only(["127.0.0.1:4711"]).unwrap();
    assert_eq!(config.polling.allow_private, publisher, "more than the publisher is allowed");
    let local = |feed: &tidegate_config::FeedConfig| feed.options.sharing.local;
    assert_eq!(config.feeds.iter().map(local).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn the_start_says_where_to_look_in_a_few_lines() {
    let (publisher, gateway) = ("127.0.0.1:4711".parse().unwrap(), "http://127.0.0.1:8080");
    let token = "0123456789abcdef0123456789abcdef";
    let said = welcome(publisher, gateway, Duration::from_secs(4), token);
    assert!(said.lines().count() <= 6, "two lines stand before it");
    insta::assert_snapshot!(said);
}
