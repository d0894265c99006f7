use super::*;
use bytes::Bytes;

fn answer(coding: &'static str, body: impl Into<Bytes>) -> WholeAnswer {
    let mut headers = HeaderMap::new();
    if !coding.is_empty() {
        headers.insert(http::header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    WholeAnswer { headers, body: body.into() }
}

fn rss(items: &str) -> String {
    let head = "<title>t</title><link>http://x.example/</link><description/>";
    format!("<rss version=\"2.0\"><channel>{head}{items}</channel></rss>")
}

fn look(coding: &'static str, body: impl Into<Bytes>) -> Inspected {
    inspected(answer(coding, body), &Url::parse("http://x.example/feed").unwrap())
}

#[test]
fn a_document_keeps_its_ids_where_each_entry_has_one_of_its_own() {
    let item = |id: &str| format!("<item><title>T</title>{id}</item>");
    let guid = |id: &str| item(&format!("<guid>{id}</guid>"));
    for (items, keeps_ids) in [
        (guid("a") + &guid("b"), true),
        (guid("a") + &guid("a"), false),
        (guid("a") + &item(""), false),
        (item(""), false),
    ] {
        let traits = FeedTraits { keeps_ids, is_json: false };
        assert_eq!(look("", rss(&items)), Inspected::Feed(traits), "{items}");
    }
    let json = "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":[]}";
    let traits = FeedTraits { keeps_ids: false, is_json: true };
    assert_eq!(look("", json), Inspected::Feed(traits));
}

#[test]
fn only_what_shows_that_it_is_something_else_is_no_feed() {
    for other in [
        "<urlset/>",
        "<?xml version=\"1.0\"?><note>x</note>",
        "{\"a\":1}",
        "[1, 2]",
        "<opml version=\"2.0\"><head><title>t</title></head><body>\
         <outline type=\"rss\" text=\"A\" xmlUrl=\"http://a.example/\"/></body></opml>",
    ] {
        assert_eq!(look("", other), Inspected::NoFeed, "{other}");
    }
    let whole = rss("<item><guid>a</guid><title>T</title></item>");
    let (cut, _) = whole.split_at(whole.len() - 20);
    for broken in [
        "",
        "Fatal error: out of memory",
        "<html><title>502</title></html>",
        "<rss version=\"2.0\"></rss>",
        cut,
    ] {
        assert_eq!(look("", broken.to_owned()), Inspected::Unreadable, "{broken}");
    }
    for coding in ["dcb", "gzip"] {
        assert_eq!(look(coding, whole.clone()), Inspected::Unreadable, "{coding}");
    }
}
