//! Invented documents, one of each format.

/// Atom 1.0 with foreign markup, CDATA, bases and languages.
pub const ATOM10: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<?xml-stylesheet href="/style.xsl" type="text/xsl"?><!-- made by hand -->
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:thr="http://purl.org/syndication/thread/1.0" xml:lang="de" xml:base="https://pub.example/blog/">
  <title>Tide &amp; Time</title>
  <id>urn:uuid:feed</id>
  <updated>2026-11-01T00:00:00Z</updated>
  <author><name>Ada</name></author>
  <entry xml:base="posts/">
    <title type="html">One &lt;b&gt;bold&lt;/b&gt;</title>
    <link href="1.html"/>
    <id>tag:pub.example,2026:1</id>
    <updated>2026-11-01T00:00:00Z</updated>
    <thr:total>3</thr:total>
    <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Hello<br/></p></div></content>
  </entry>
  <entry xml:lang="en">
    <title>Two</title>
    <link rel="alternate" href="/2.html"/>
    <id>tag:pub.example,2026:2</id>
    <published>2026-10-30T08:00:00Z</published>
    <updated>2026-10-31T00:00:00+01:00</updated>
    <content type="html"><![CDATA[<p>a < b & c</p>]]></content>
  </entry>
</feed>
"#;

/// RSS 2.0 with modules.
pub const RSS20: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:atom="http://www.w3.org/2005/Atom">
<channel>
  <title>Harbour news</title>
  <link>https://pub.example/</link>
  <description>Ships &amp; tides</description>
  <lastBuildDate>Sun, 01 Nov 2026 00:00:00 GMT</lastBuildDate>
  <item>
    <title>First ship</title>
    <link>https://pub.example/1</link>
    <guid>https://pub.example/1</guid>
    <pubDate>Sun, 01 Nov 2026 00:00:00 GMT</pubDate>
    <dc:creator>Bo</dc:creator>
    <content:encoded><![CDATA[<p>It came & went</p>]]></content:encoded>
  </item>
  <item>
    <title><![CDATA[Second <ship>]]></title>
    <guid isPermaLink="false">ship-2</guid>
    <description>&lt;p&gt;Late&lt;/p&gt;</description>
    <category>boats</category>
    <enclosure url="https://pub.example/2.mp3?a&amp;b" type="audio/mpeg" length="77"/>
  </item>
  <item><title>No id</title></item>
</channel>
</rss>
"#;

/// RSS 0.91.
pub const RSS091: &str = r#"<?xml version="1.0"?>
<rss version="0.91">
  <channel>
    <title>Old harbour</title>
    <link>https://pub.example/</link>
    <description>Since 1999</description>
    <language>en</language>
    <item>
      <title>Anchor</title>
      <link>https://pub.example/anchor</link>
      <description>Heavy.</description>
    </item>
  </channel>
</rss>
"#;

/// RSS 1.0 with modules.
pub const RSS10: &str = r##"<?xml version="1.0" encoding="utf-8"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/" xml:lang="ja">
  <channel rdf:about="https://pub.example/rdf">
    <title>Lighthouses</title>
    <link>
      https://pub.example/
    </link>
    <description>Lamps &amp; lenses</description>
    <dc:language>ja</dc:language>
    <image rdf:resource="https://pub.example/i.png"/>
    <items><rdf:Seq><rdf:li rdf:resource="https://pub.example/a"/></rdf:Seq></items>
  </channel>
  <image rdf:about="https://pub.example/i.png">
    <title>Lamp</title><link>https://pub.example/</link><url>https://pub.example/i.png</url>
  </image>
  <item rdf:about="https://pub.example/a">
    <title>Fresnel &lt;1&gt;</title>
    <link>https://pub.example/a</link>
    <description>A lens</description>
    <dc:date>2026-11-01T09:00:00+09:00</dc:date>
    <dc:creator>Cy</dc:creator>
    <content:encoded><![CDATA[<p>A <em>lens</em></p>]]></content:encoded>
  </item>
</rdf:RDF>
"##;

/// RSS 0.90.
pub const RSS090: &str = r##"<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://my.netscape.com/rdf/simple/0.9/">
  <channel><title>Buoys</title><link>https://pub.example/</link><description>All buoys</description></channel>
  <image><title>B</title><url>https://pub.example/b.gif</url><link>https://pub.example/</link></image>
  <item><title>Red buoy</title><link>https://pub.example/red</link></item>
  <textinput><title>Find</title><description>Find a buoy</description><name>q</name><link>https://pub.example/q</link></textinput>
</rdf:RDF>
"##;

/// Atom 0.3 with every kind of content.
pub const ATOM03: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<feed version="0.3" xmlns="http://purl.org/atom/ns#" xmlns:dc="http://purl.org/dc/elements/1.1/" xml:lang="en">
  <title mode="escaped" type="text/html">Currents &amp;amp; eddies</title>
  <tagline>Where water goes</tagline>
  <link rel="alternate" type="text/html" href="https://pub.example/"/>
  <id>tag:pub.example,2004:feed</id>
  <generator url="https://tool.example/" version="2.6">Tool</generator>
  <copyright>Nobody</copyright>
  <modified>2004-05-01T00:00:00Z</modified>
  <author><name>Di</name><url>https://pub.example/di</url><email>di@pub.example</email></author>
  <entry>
    <title>Escaped</title>
    <link rel="alternate" type="text/html" href="https://pub.example/e"/>
    <id>tag:pub.example,2004:e</id>
    <issued>2004-05-01T10:00:00+02:00</issued>
    <modified>2004-05-01T08:30:00Z</modified>
    <dc:subject>water</dc:subject>
    <content type="text/html" mode="escaped">&lt;p&gt;a &amp;amp; b&lt;/p&gt;</content>
  </entry>
  <entry>
    <title>Inline</title>
    <id>tag:pub.example,2004:i</id>
    <created>2004-05-02T10:00:00Z</created>
    <modified>2004-05-02T10:00:00Z</modified>
    <summary type="text/plain">short</summary>
    <content type="application/xhtml+xml" mode="xml"><p xmlns="http://www.w3.org/1999/xhtml">Hi<br/></p> there</content>
  </entry>
  <entry>
    <title>Encoded</title>
    <id>tag:pub.example,2004:b</id>
    <issued>2004-05</issued>
    <modified>2004-05-03T10:00:00Z</modified>
    <content type="text/html" mode="base64">PGI+Ym9s
ZDwvYj4=</content>
  </entry>
</feed>
"#;

/// A JSON Feed: an item with everything, and one with little.
pub const JSON: &str = r#"{"version": "https://jsonfeed.org/version/1.1", "title": "Gulls & <terns>", "home_page_url": "https://pub.example/", "feed_url": "https://pub.example/feed.json", "description": "Birds", "next_url": "https://pub.example/feed-2.json", "hubs": [{"type": "WebSub", "url": "https://hub.example/"}], "language": "en", "authors": [{"name": "Ed", "url": "https://pub.example/ed"}], "items": [
{"id": "https://pub.example/g1", "url": "https://pub.example/g1", "external_url": "https://else.example/?a=1&b=2", "title": "A gull", "content_html": "<p>Loud & <b>white</b></p>", "content_text": "Loud", "summary": "Short", "image": "https://pub.example/g.jpg", "date_published": "2026-11-01T10:00:00+01:00", "date_modified": "2026-11-02T10:00:00Z", "tags": ["bird", "sea"], "attachments": [{"url": "https://pub.example/g.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 1234, "title": "Cry"}, {"nothing": 1}], "author": {"name": "Flo"}, "language": "fr"},
{"id": "g2", "content_text": "No <title> & no date"}]}"#;
