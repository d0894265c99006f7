//! Nothing that an entry says is lost from one family to the other, and nothing leads elsewhere.

use super::build::{Feed, cut, item_as};
use crate::render::{Container, ViewKind};
use serde_json::Value;
use tidegate_core::model::Format;

const ATOM: &str = r##"<feed xmlns="http://www.w3.org/2005/Atom" xmlns:thr="http://purl.org/syndication/thread/1.0" xmlns:x="urn:x" xml:lang="de">
  <title>T</title><id>urn:feed</id><updated>2026-11-01T00:00:00Z</updated>
  <subtitle type="html">All &lt;b&gt;about&lt;/b&gt; it</subtitle>
  <author><name>Fa</name><email>fa@pub.example</email></author><author><name>Fb</name></author>
  <logo>/logo.png</logo><icon>icon.png</icon>
  <entry xml:lang="fr" xml:base="https://pub.example/posts/" x:mark="m">
    <title>Un</title><id>tag:pub.example,2026:1</id><link href="1.html"/>
    <link rel="replies" type="text/html" href="1.html#c" thr:count="7"/>
    <link rel="license" href="/cc"/><link rel="enclosure" href="1.mp3"/>
    <published>2026-10-30T08:00:00Z</published><updated>2026-10-31T08:00:00Z</updated>
    <author><name>A</name><uri>/a</uri></author><author><name>B</name></author>
    <contributor><name>C</name></contributor><rights>R</rights>
    <category term="t1" scheme="urn:s" label="Term one"/><category term="t2"/>
    <summary>Short &lt;</summary>
    <content type="html">&lt;img src="i.png"&gt;&lt;a href="#n"&gt;long&lt;/a&gt;</content>
    <x:own x:a="1">kept</x:own>
  </entry>
</feed>"##;

const RSS: &str = r##"<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:slash="http://purl.org/rss/1.0/modules/slash/" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">
<channel><title>T</title><link>https://pub.example/</link><description>D</description><language>de</language>
  <managingEditor>ed@pub.example (Ed)</managingEditor><itunes:image href="cover.png"/>
  <item><title>One</title><guid isPermaLink="true">p/1</guid>
    <description>Short</description><content:encoded>&lt;img src="i.png"&gt; long</content:encoded>
    <dc:creator>A</dc:creator><dc:creator>B</dc:creator><author>c@pub.example (C)</author>
    <dc:contributor>D</dc:contributor><dc:rights>R</dc:rights><dc:language>fr</dc:language>
    <category domain="urn:s">t1</category><category> </category><category>t2</category><category>t2</category>
    <comments>/1#c</comments><slash:comments>7</slash:comments>
    <enclosure url="1.mp3"/><itunes:duration>1:02:03</itunes:duration></item>
  <item><title>Two</title><link>https://pub.example/2</link><guid>https://pub.example/2</guid>
    <description>&lt;p&gt;The text&lt;/p&gt;</description><content:encoded> </content:encoded></item>
</channel></rss>"##;

/// A document in another container, as the reader view has it.
fn shown(format: Format, document: &str, container: Container) -> String {
    let mut feed = Feed::new(format, document);
    feed.container = Some(container);
    match container {
        Container::JsonFeed => feed.render_unchecked(ViewKind::Reader),
        _ => feed.reader(),
    }
}

fn has(text: &str, wanted: &[&str]) {
    for wanted in wanted {
        assert!(text.contains(wanted), "no {wanted} in\n{text}");
    }
}

#[test]
fn an_atom_entry_says_all_in_rss() {
    let text = shown(Format::Atom10, ATOM, Container::Rss);
    has(
        &text,
        &[
            "<description>Short &amp;lt;</description>",
            "<content:encoded>&lt;img src=\"https://pub.example/posts/i.png\"&gt;\
             &lt;a href=\"#n\"&gt;long&lt;/a&gt;</content:encoded>",
            "<dc:creator>A</dc:creator><dc:creator>B</dc:creator>",
            "<dc:contributor>C</dc:contributor><dc:rights>R</dc:rights><dc:language>fr</dc:language>",
            "<category domain=\"urn:s\">Term one</category>",
            "<atom:category term=\"t1\" scheme=\"urn:s\" label=\"Term one\"/><category>t2</category>",
            "<comments>https://pub.example/posts/1.html#c</comments>",
            "<slash:comments>7</slash:comments>",
            "<enclosure url=\"https://pub.example/posts/1.mp3\" type=\"audio/mpeg\" length=\"0\"/>",
            "<atom:link rel=\"license\" href=\"https://pub.example/cc\"/>",
            "<atom:updated>2026-10-31T08:00:00Z</atom:updated>",
            "<x:own x:a=\"1\">kept</x:own>",
            "xml:lang=\"fr\"",
            "x:mark=\"m\"",
            "<language>de</language>",
            "<managingEditor>fa@pub.example (Fa)</managingEditor>",
            "<dc:creator>Fb</dc:creator>",
            "<url>https://pub.example/logo.png</url>",
        ],
    );
}

#[test]
fn an_rss_item_says_all_in_atom() {
    let text = shown(Format::Rss20, RSS, Container::Atom);
    has(
        &text,
        &[
            "<summary type=\"html\">Short</summary><content type=\"html\">\
             &lt;img src=\"https://pub.example/blog/i.png\"&gt; long</content>",
            "<author><name>A</name></author><author><name>B</name></author>\
             <author><name>C</name><email>c@pub.example</email></author>\
             <contributor><name>D</name></contributor>",
            "<rights>R</rights>",
            " xml:lang=\"fr\"><sx:sync ",
            "<category term=\"t1\" scheme=\"urn:s\"/><category term=\"t2\"/><link",
            "<link rel=\"replies\" href=\"https://pub.example/1#c\" type=\"text/html\" ",
            "thr:count=\"7\"",
            "<link rel=\"enclosure\" href=\"https://pub.example/blog/1.mp3\"/>",
            "<link rel=\"alternate\" href=\"https://pub.example/blog/p/1\"/>",
            "<content type=\"html\">&lt;p&gt;The text&lt;/p&gt;</content>",
            "<author><name>Ed</name><email>ed@pub.example</email></author>",
            "<logo>https://pub.example/blog/cover.png</logo>",
            " xml:lang=\"de\"",
        ],
    );
    // What says nothing of its language has that of the feed.
    assert!(!text.contains("xml:lang=\"\""), "{text}");
}

#[test]
fn addresses_that_browsers_mend_are_not_lost() {
    let rss = RSS.replace("<rss ", "<rss xmlns:atom=\"http://www.w3.org/2005/Atom\" ").replace(
        "<comments>/1#c</comments>",
        "<comments> https://pub.example/a b#c </comments><atom:link rel=\"related\" \
         href=\"https://pub.example/x y\"/><atom:link rel=\"via\" href=\" z/1 2 \"/>",
    );
    let text = shown(Format::Rss20, &rss, Container::Atom);
    has(
        &text,
        &[
            "href=\"https://pub.example/a%20b#c\"",
            "href=\"https://pub.example/x%20y\"",
            "/z/1%202\"",
        ],
    );
    let atom = ATOM.replace(
        "<summary>",
        "<link rel=\"replies\" href=\"https://pub.example/a b#c\"/><link rel=\"related\" \
         href=\"https://pub.example/x y\"/><summary>",
    );
    let text = shown(Format::Atom10, &atom, Container::Rss);
    has(&text, &["href=\"https://pub.example/x%20y\""]);
}

#[test]
fn a_json_feed_says_all_of_both() {
    let text = shown(Format::Rss20, RSS, Container::JsonFeed);
    let feed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&feed["description"], &feed["language"]), (&"D".into(), &"de".into()));
    assert_eq!(feed["icon"], "https://pub.example/blog/cover.png");
    assert_eq!(feed["authors"][0]["name"], "Ed");
    let item = &feed["items"][0];
    assert_eq!(item["content_html"], "<img src=\"https://pub.example/blog/i.png\"> long");
    assert_eq!((&item["summary"], &item["language"]), (&"Short".into(), &"fr".into()));
    assert_eq!(item["url"], "https://pub.example/blog/p/1");
    assert_eq!(item["tags"], serde_json::json!(["t1", "t2"]));
    let names: Vec<_> = item["authors"].as_array().unwrap().iter().map(|a| &a["name"]).collect();
    assert_eq!(names, ["A", "B", "C"]);
    assert_eq!(
        item["attachments"],
        serde_json::json!([{ "url": "https://pub.example/blog/1.mp3", "mime_type": "audio/mpeg",
            "duration_in_seconds": 3723 }])
    );
    assert_eq!(feed["items"][1]["content_html"], "<p>The text</p>");
    let text = shown(Format::Atom10, ATOM, Container::JsonFeed);
    let feed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(feed["description"], "All about it");
    assert_eq!(feed["favicon"], "https://pub.example/blog/icon.png");
    let item = &feed["items"][0];
    assert_eq!((&item["summary"], &item["language"]), (&"Short <".into(), &"fr".into()));
    assert_eq!(item["authors"][0]["url"], "https://pub.example/a");
}

#[test]
fn a_video_says_its_description_and_shows_its_picture() {
    let atom = r#"<feed xmlns="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/"><title>T</title><id>urn:f</id><updated>2026-11-01T00:00:00Z</updated><entry><id>yt:video:1</id><title>V</title><link rel="alternate" href="https://v.example/1"/><updated>2026-11-01T00:00:00Z</updated><media:group><media:title>V</media:title><media:content url="https://v.example/1.mp4" type="video/mp4" duration="61" fileSize="9"/><media:thumbnail url="https://v.example/1.jpg"/><media:description>Line
two &lt; three</media:description></media:group></entry></feed>"#;
    let feed: Value =
        serde_json::from_str(&shown(Format::Atom10, atom, Container::JsonFeed)).unwrap();
    let item = &feed["items"][0];
    assert_eq!(item["content_text"], "Line\ntwo < three");
    assert_eq!(item["image"], "https://v.example/1.jpg");
    assert_eq!(
        item["attachments"],
        serde_json::json!([{ "url": "https://v.example/1.mp4", "mime_type": "video/mp4",
            "size_in_bytes": 9, "duration_in_seconds": 61 }])
    );
}

/// A JSON Feed that has only these items.
fn json_feed(items: &Value) -> Feed {
    let mut feed = super::golden::json_feed();
    let old = feed.items[0].shared.winner.data.clone();
    let items = items.as_array().unwrap().iter().map(|item| {
        let mut data = old.clone();
        data.xml = item.to_string();
        data.card = tidegate_core::model::Card {
            title: item["title"].as_str().unwrap_or_default().to_owned(),
            ..tidegate_core::model::Card::default()
        };
        item_as(data, item["id"].as_str().unwrap())
    });
    feed.items = items.collect();
    feed
}

#[test]
fn a_publisher_s_own_json_feed_keeps_its_members() {
    let mut feed = json_feed(&serde_json::json!([{
        "id": "1", "url": "/1", "content_html": "<a href='2'>x</a>", "content_text": "x",
        "external_url": "https://e.example/", "banner_image": "b.png", "image": "i.png",
        "summary": "S", "language": "fr", "tags": ["a", "", "a", "b"], "_own": {"k": [1]},
        "author": {"name": "Flo", "avatar": "f.png"}, "_sharing": {"id": "theirs"},
        "attachments": [{"url": "a.mp3", "duration_in_seconds": 2.5}, {"mime_type": "x/y"}],
    }]));
    feed.container = Some(Container::JsonFeed);
    let text = feed.render_unchecked(ViewKind::Reader);
    let made: Value = serde_json::from_str(&text).unwrap();
    let item = &made["items"][0];
    let base = "https://pub.example/blog/";
    for (name, wanted) in [
        ("url", "https://pub.example/1".to_owned()),
        ("content_html", format!("<a href='{base}2'>x</a>")),
        ("content_text", "x".to_owned()),
        ("external_url", "https://e.example/".to_owned()),
        ("banner_image", format!("{base}b.png")),
        ("image", format!("{base}i.png")),
        ("summary", "S".to_owned()),
        ("language", "fr".to_owned()),
        ("id", "1".to_owned()),
    ] {
        assert_eq!(item[name], wanted, "{name}");
    }
    assert_eq!(item["tags"], serde_json::json!(["a", "b"]));
    assert_eq!(item["_own"], serde_json::json!({"k": [1]}));
    assert_eq!(item["authors"][0]["avatar"], format!("{base}f.png"));
    assert_eq!(item["_sharing"]["id"], "gate.example.x1");
    assert_eq!(
        item["attachments"],
        serde_json::json!([{ "url": format!("{base}a.mp3"), "mime_type": "audio/mpeg",
            "duration_in_seconds": 2.5 }])
    );
    assert_eq!((&made["description"], &made["language"]), (&"Birds".into(), &"en".into()));
    assert_eq!(made["authors"][0]["url"], "https://pub.example/ed");
}

/// The switch to the gateway must not make an item new to a reader, whatever it knows items by.
#[test]
fn an_rdf_item_keeps_what_readers_know_it_by() {
    let rdf = r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="c"><title>T</title><link>https://pub.example/</link><description>D</description></channel>
<item rdf:about="https://pub.example/a"><title>A</title><link>https://pub.example/a</link><dc:identifier>45:2026</dc:identifier></item>
<item rdf:about="https://pub.example/b"><title>B</title><link>https://pub.example/b</link><dc:identifier>https://pub.example/b</dc:identifier></item>
<item rdf:about="https://pub.example/c"><title>C</title><link>https://pub.example/c</link></item></rdf:RDF>"#;
    let text = Feed::new(Format::Rss10, rdf).reader();
    has(
        &text,
        &["<atom:id>45:2026</atom:id><guid isPermaLink=\"false\">https://pub.example/a</guid>"],
    );
    assert_eq!(text.matches("<atom:id>").count(), 1, "{text}");
    assert_eq!(text.matches("<dc:identifier>").count(), 2, "{text}");
    // The same of an item of RSS 2.0 that has no guid.
    let rss = "<rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/'><channel><title>T</title>\
               <item><title>x</title><dc:identifier>i1</dc:identifier></item></channel></rss>";
    has(&Feed::new(Format::Rss20, rss).reader(), &["<atom:id>i1</atom:id><guid "]);
}

#[test]
fn what_has_no_title_gets_none_and_an_image_stays() {
    let mut feed = json_feed(&serde_json::json!([
        { "id": "https://pub.example/1", "content_html": "<p>x</p>", "image": "/i.png" },
        { "id": "2", "content_text": "y", "banner_image": "b.png" },
    ]));
    let atom = feed.reader();
    has(
        &atom,
        &[
            "<id>https://pub.example/1</id><title></title>",
            "<media:thumbnail url=\"https://pub.example/i.png\"/>",
            "<media:content url=\"https://pub.example/blog/b.png\" medium=\"image\"/>",
        ],
    );
    feed.container = Some(Container::JsonFeed);
    let made: Value = serde_json::from_str(&feed.render_unchecked(ViewKind::Reader)).unwrap();
    assert_eq!(made["items"][0].get("title"), None);
    assert_eq!(made["items"][0]["image"], "https://pub.example/i.png");
    feed.container = Some(Container::Rss);
    let rss = feed.reader();
    assert!(!rss.contains("<title></title>") && !rss.contains("<title/>"), "{rss}");
}

#[test]
fn only_addresses_stand_where_addresses_are_wanted() {
    let rss = "<rss version='2.0'><channel><title>T</title><item><title>x</title><guid>7</guid>\
               <link>not an address</link><category domain='no iri'>c</category></item></channel></rss>";
    let (skeleton, mut entries) = cut(rss);
    entries[0].card.link = None;
    let mut feed = Feed::of(skeleton, vec![item_as(entries.remove(0), "7")]);
    feed.container = Some(Container::Atom);
    let text = feed.entries();
    has(&text, &["<category term=\"c\"/>", "<id>7</id>"]);
    assert!(!text.contains("not an address") && !text.contains("no iri"), "{text}");
}

#[test]
fn absolute_urls_reach_the_reader_view_and_nothing_else() {
    let mut atom = Feed::new(Format::Atom10, ATOM);
    let before = atom.reader();
    atom.addresses.absolute = true;
    let sync = atom.render(ViewKind::Sync);
    has(&sync, &["src=\"i.png\"", "href=\"1.mp3\""]);
    let text = atom.reader();
    has(
        &text,
        &[
            "&lt;img src=\"https://pub.example/posts/i.png\"&gt;&lt;a href=\"#n\"&gt;",
            "<link rel=\"enclosure\" href=\"https://pub.example/posts/1.mp3\"/>",
            "<logo>https://pub.example/logo.png</logo>",
            "<id>tag:pub.example,2026:1</id>",
        ],
    );
    assert_eq!(super::build::read_back(&text), super::build::read_back(&before));
    let mut rss = Feed::new(Format::Rss20, RSS);
    let before = rss.reader();
    rss.addresses.absolute = true;
    let text = rss.reader();
    has(
        &text,
        &[
            "<guid isPermaLink=\"false\">p/1</guid>",
            "<link>https://pub.example/blog/p/1</link>",
            "<enclosure url=\"https://pub.example/blog/1.mp3\"/>",
            "<itunes:image href=\"https://pub.example/blog/cover.png\"/>",
            // What has no relative reference keeps its bytes.
            "<content:encoded> </content:encoded></item>",
        ],
    );
    assert_eq!(super::build::read_back(&text), super::build::read_back(&before));
}

#[test]
fn the_publishers_word_that_its_feed_moved_leads_here() {
    let rss = "<rss version='2.0' xmlns:p='http://www.itunes.com/dtds/podcast-1.0.dtd'><channel>\
               <title>T</title><p:new-feed-url>https://new.example/</p:new-feed-url></channel></rss>";
    for container in [Container::Rss, Container::Atom] {
        let mut feed = Feed::read(rss);
        feed.container = Some(container);
        has(&feed.reader(), &[">https://gate.example/feeds/news</p:new-feed-url>"]);
        feed.addresses.keeps_new_feed_url = true;
        has(&feed.reader(), &[">https://new.example/</p:new-feed-url>"]);
    }
}

/// A feed as the parser reads it, in JSON Feed.
fn in_json(document: &str) -> Value {
    let mut feed = Feed::read(document);
    feed.container = Some(Container::JsonFeed);
    serde_json::from_str(&feed.render_unchecked(ViewKind::Reader)).unwrap()
}

#[test]
fn every_picture_is_an_attachment() {
    let json = in_json(
        "<rss version='2.0' xmlns:m='http://search.yahoo.com/mrss/'><channel><title>T</title>\
         <item><title>Cats</title><guid>1</guid><m:content url='https://cdn.example/1' \
         type='image/jpeg' fileSize='5'/><m:content url='https://cdn.example/2.png' \
         medium='image'/><m:thumbnail url='https://cdn.example/t.png'/></item></channel></rss>",
    );
    let item = &json["items"][0];
    assert_eq!(item["image"], "https://cdn.example/t.png");
    let attachments = item["attachments"].as_array().unwrap();
    let said = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
    let seen = attachments.iter().map(|one| said(one, "url") + " " + &said(one, "mime_type"));
    let wanted = ["https://cdn.example/1 image/jpeg", "https://cdn.example/2.png image/png"];
    assert_eq!(seen.collect::<Vec<_>>(), wanted);
    assert_eq!(attachments[0]["size_in_bytes"], 5);
}

#[test]
fn a_home_page_is_a_page_in_the_feeds_language() {
    let links = |place: &str| {
        format!(
            "<link rel='alternate' type='application/json' href='https://m.example/{place}.json'/>\
             <link rel='alternate' type='text/html' hreflang='de' href='https://m.example/de/{place}'/>\
             <link rel='alternate' type='text/html' hreflang='en-GB' href='https://m.example/{place}'/>\
             <link rel='alternate' href='https://m.example/again/{place}'/>"
        )
    };
    let document = |lang: &str| {
        format!(
            "<feed xmlns='http://www.w3.org/2005/Atom'{lang}><title>T</title><id>urn:f</id>{}\
             <entry><title>One</title><id>urn:1</id>{}</entry></feed>",
            links("home"),
            links("1")
        )
    };
    for (lang, home) in [(" xml:lang='en'", ""), (" xml:lang='de-AT'", "de/"), ("", "de/")] {
        let json = in_json(&document(lang));
        assert_eq!(json["home_page_url"], format!("https://m.example/{home}home"), "{lang}");
        assert_eq!(json["items"][0]["url"], format!("https://m.example/{home}1"), "{lang}");
    }
}

#[test]
fn elements_and_escaped_markup_are_both_markup() {
    let document = "<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title><id>urn:f</id><entry>\
         <title type='text'>&lt;![CDATA[5 &lt; 6]]&gt;</title><id>urn:1</id><content type='html'>\
         <p>In &lt;a href='https://a.example/'&gt;development&lt;/a&gt;</p>&lt;br&gt;</content>\
         </entry></feed>";
    let html = "<p>In <a href='https://a.example/'>development</a></p><br>";
    let json = in_json(document);
    assert_eq!(json["items"][0]["content_html"], html);
    assert_eq!(json["items"][0]["title"], "5 < 6");
    let mut feed = Feed::read(document);
    feed.container = Some(Container::Rss);
    let mut escaped = String::new();
    tidegate_core::xml::push_text(&mut escaped, html);
    has(&feed.reader(), &[&format!("<description>{escaped}</description>"), "5 &lt; 6"]);
}

#[test]
fn an_item_without_a_date_has_one_everywhere() {
    let document = "<rss version='2.0'><channel><title>T</title><item><title>One</title>\
                    <guid>1</guid></item></channel></rss>";
    let json = in_json(document);
    let date = json["items"][0]["date_modified"].as_str().unwrap();
    let mut feed = Feed::read(document);
    feed.container = Some(Container::Atom);
    has(&feed.reader(), &[&format!("<updated>{date}</updated>")]);
}

/// Text that was cut out of a page has that page's references, and the format has the feed's.
#[test]
fn references_lead_where_the_reader_view_leads_them() {
    let document = "<rss version='2.0'><channel><title>T</title><link>https://pub.example/</link>\
         <description>D</description><item><title>One</title><guid>1</guid>\
         <link>https://pub.example/blog/one/</link><enclosure url='/a.mp3'/>\
         <description>&lt;img src='wheels.png'&gt; &lt;a href='#n'&gt;</description></item>\
         </channel></rss>";
    let wanted = ["https://pub.example/blog/one/wheels.png", "https://pub.example/a.mp3"];
    for container in [Container::Atom, Container::JsonFeed, Container::Pox] {
        let mut feed = Feed::read(document);
        feed.container = Some(container);
        has(&feed.render_unchecked(ViewKind::Reader), &wanted);
    }
    let mut feed = Feed::read(document);
    feed.addresses.absolute = true;
    let text = feed.reader();
    has(&text, &wanted);
    has(&text, &["href='#n'"]);
}
