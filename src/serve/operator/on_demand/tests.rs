use super::*;
use bytes::Bytes;

fn rss(items: &str) -> String {
    let head = "<title>t</title><link>http://x.example/</link><description/>";
    format!("<rss version=\"2.0\"><channel>{head}{items}</channel></rss>")
}

fn traits(coding: &'static str, body: impl Into<Bytes>) -> Option<FeedTraits> {
    let coding = (!coding.is_empty()).then(|| HeaderValue::from_static(coding));
    let headers =
        coding.map(|coding| (http::header::CONTENT_ENCODING, coding)).into_iter().collect();
    let text = text_of(WholeAnswer { headers, body: body.into() })?;
    Some(feed_in(&text, &Url::parse("http://x.example/feed").unwrap())?.0)
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
        let expected = FeedTraits { keeps_ids, is_json: false };
        assert_eq!(traits("", rss(&items)), Some(expected), "{items}");
    }
    let json = "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":[]}";
    assert_eq!(traits("", json), Some(FeedTraits { keeps_ids: false, is_json: true }));
    // What is something else, or broken, is no feed.
    let whole = rss("<item><guid>a</guid><title>T</title></item>");
    let (cut, _) = whole.split_at(whole.len() - 20);
    for other in [
        "<urlset/>",
        "{\"a\":1}",
        "<opml version=\"2.0\"><head><title>t</title></head><body>\
         <outline type=\"rss\" text=\"A\" xmlUrl=\"http://a.example/\"/></body></opml>",
        "",
        "<html><title>502</title></html>",
        cut,
    ] {
        assert_eq!(traits("", other.to_owned()), None, "{other}");
    }
    for coding in ["dcb", "gzip"] {
        assert!(traits(coding, whole.clone()).is_some(), "{coding}: it is plain all the same");
        assert_eq!(traits(coding, "no feed in any coding".to_owned()), None, "{coding}");
    }
}
