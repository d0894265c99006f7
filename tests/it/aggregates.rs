//! One feed out of several: a plain one, one of the gateway's own, and an aggregate of aggregates.

use crate::support::gateways::{Running, START, until};
use crate::support::prelude::*;
use crate::support::publisher::{Answer, Publisher};
use crate::support::sharing::document;
use tidegate_judge::record::local::{Act, CheckedEntry, EntryFields};
use tidegate_serve::PutMode;

/// A publisher of two plain feeds, one in Atom and one in RSS, with these posts in the first.
async fn publisher() -> (Publisher, Vec<(u32, String)>) {
    let publisher = Publisher::start().await;
    let posts: Vec<_> = (1..=4).rev().map(|n| (n, format!("Text {n}"))).collect();
    publishes(&publisher, &posts);
    let casts = [1, 2].map(|n| {
        let date = format!("<pubDate>0{n} Jan 2026 06:00:00 GMT</pubDate>");
        (format!("cast-{n}"), format!("Cast {n}"), date)
    });
    publisher.set("/rss", rss("Casts &amp; more", &casts));
    (publisher, posts)
}

fn publishes(publisher: &Publisher, posts: &[(u32, String)]) {
    let entry = |(n, text): &(u32, String)| {
        format!(
            "<entry><id>urn:post:{n}</id><title>Post {n}</title><content>{text}</content>\
             <updated>2026-01-0{n}T00:00:00Z</updated></entry>"
        )
    };
    let entries: Vec<_> = posts.iter().map(entry).collect();
    let xml = document("<author><name>Ned</name></author>", &entries);
    publisher.set("/atom", Answer::document("application/atom+xml", xml));
}

fn rss(title: &str, items: &[(String, String, String)]) -> Answer {
    let item = |(guid, title, more): &(String, String, String)| {
        let id = format!("<guid isPermaLink=\"false\">{guid}</guid>");
        format!("<item><title>{title}</title>{id}{more}</item>")
    };
    Answer::document("application/rss+xml", channel(title, items.iter().map(item)))
}
async fn start(feeds: &str) -> Running {
    Running::start(&format!("[publish]\nendpoint = \"gate.example\"\n{feeds}")).await
}

/// Two plain feeds, one of our own, and two aggregates.
async fn start_all(publisher: &Publisher) -> Running {
    start(&format!(
        "[[feed]]\nname = \"news\"\nurl = \"{}\"\ncomplete = true\ndeletions = \"eager\"\n\
         [[feed]]\nname = \"casts\"\nurl = \"{}\"\n\
         [[feed]]\nname = \"own\"\nlocal = true\ntitle = \"Our own\"\n\
         [[aggregate]]\nname = \"both\"\ntitle = \"Both of them\"\nsources = [\"news\", \"own\"]\n\
         [[aggregate]]\nname = \"all\"\nsources = [\"both\", \"casts\"]\n",
        publisher.address("/atom"),
        publisher.address("/rss")
    ))
    .await
}

async fn items(gateway: &Running, feed: &str, select: Select) -> Vec<Item> {
    let view = gateway.store().view(&name(feed), select).await.unwrap();
    view.map(|view| view.items).unwrap_or_default()
}

fn title(item: &Item) -> &str {
    &item.shared.winner.data.card.title
}

async fn titles(gateway: &Running, feed: &str) -> Vec<String> {
    let items = items(gateway, feed, Select::Current).await;
    items.iter().map(|item| title(item).to_owned()).collect()
}

/// Ids of one feed need not be ids in another. A post that two feeds of one site have is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn posts_of_one_id_are_told_apart() {
    let publisher = Publisher::start().await;
    let mut text = String::new();
    for own in ["cat", "tiger"] {
        publisher.set(&format!("/{own}"), Answer::status(503));
        let url = publisher.address(&format!("/{own}"));
        text.push_str(&format!(
            "[[feed]]\nname = \"{own}\"\nurl = \"{url}\"\ndeletions = \"eager\"\n"
        ));
    }
    text.push_str("[[aggregate]]\nname = \"all\"\nsources = [\"cat\", \"tiger\"]\n");
    let gateway = start(&text).await;
    let publish = async |feed: &str, posts: &[(&str, &str, &str)]| {
        let items = posts.iter().map(|(guid, place, more)| {
            let link = format!("<link>http://site.example/{place}/{guid}</link>");
            ((*guid).to_owned(), format!("{place} {guid}{more}"), link)
        });
        publisher.set(&format!("/{feed}"), rss(feed, &items.collect::<Vec<_>>()));
        gateway.poll(feed).await;
    };
    for feed in ["cat", "tiger"] {
        publish(feed, &[("1", feed, ""), ("2", "shared", ""), ("3", feed, "")]).await;
        until(feed, async || titles(&gateway, "all").await.contains(&format!("{feed} 3"))).await;
    }
    let mut all = titles(&gateway, "all").await;
    all.sort();
    assert_eq!(all, ["cat 1", "cat 3", "shared 2", "tiger 1", "tiger 3"]);
    for feed in ["all", "cat"] {
        let items = items(&gateway, feed, Select::Current).await;
        let own = |item: &&Item| !title(item).starts_with("tiger");
        for item in items.iter().filter(own) {
            assert!(title(item).ends_with(&item.published_id), "{feed}: {item:?}");
        }
        let ids: BTreeSet<&str> = items.iter().map(|item| &*item.published_id).collect();
        assert_eq!(ids.len(), items.len(), "{ids:?}");
    }
    // A source that leaves and comes back brings no new post, nor one twice.
    let shows = async |title: &str| titles(&gateway, "all").await.contains(&title.to_owned());
    let ids = async || {
        let items = items(&gateway, "all", Select::Current).await;
        items.into_iter().map(|item| item.published_id).collect::<BTreeSet<_>>()
    };
    let before = ids().await;
    for sources in [&["tiger"][..], &["cat", "tiger"]] {
        let feeds = gateway.store().feed_list().await.unwrap();
        let mut record = FeedRecord::clone(&feeds[&name("all")]);
        record.options.sharing.sources = sources.iter().map(|source| name(source)).collect();
        gateway.store().put_feed(&record).await.unwrap();
        until("the sources", async || shows("cat 1").await == (sources.len() == 2)).await;
        assert!(ids().await.is_subset(&before) && shows("shared 2").await, "{sources:?}");
    }
    assert_eq!((ids().await, titles(&gateway, "all").await.len()), (before, 5));
    // One that its source deleted is no new post where the other changes it.
    publish("tiger", &[("1", "tiger", ""), ("3", "tiger", "")]).await;
    until("the deletion", async || !shows("shared 2").await).await;
    publish("cat", &[("1", "cat", ""), ("2", "shared", ", mended"), ("3", "cat", "!")]).await;
    until("the change", async || shows("cat 3!").await).await;
    assert!(!shows("shared 2, mended").await);
}

/// Nobody knows when they are from. What comes later is news.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undated_posts_of_a_first_document_come_last() {
    let (publisher, _) = publisher().await;
    let bare = |numbers: &[u32]| {
        let item = |n: &u32| (format!("bare-{n}"), format!("Bare {n}"), String::new());
        rss("Bare", &numbers.iter().map(item).collect::<Vec<_>>())
    };
    publisher.set("/bare", bare(&[2, 1]));
    let text = format!(
        "[[feed]]\nname = \"bare\"\nurl = \"{}\"\n[[feed]]\nname = \"casts\"\nurl = \"{}\"\n\
         [[aggregate]]\nname = \"all\"\nsources = [\"bare\", \"casts\"]\n",
        publisher.address("/bare"),
        publisher.address("/rss")
    );
    let mut gateway = Running::start_at(START, &text).await;
    until("both", async || titles(&gateway, "all").await.len() == 4).await;
    assert_eq!(titles(&gateway, "all").await, ["Cast 2", "Cast 1", "Bare 2", "Bare 1"]);
    publisher.set("/bare", bare(&[3, 2, 1]));
    // A first document is told from the next one by the second.
    gateway.pass(2);
    gateway.poll("bare").await;
    until("the new one", async || titles(&gateway, "all").await.len() == 5).await;
    assert_eq!(titles(&gateway, "all").await, ["Bare 3", "Cast 2", "Cast 1", "Bare 2", "Bare 1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aggregate_is_what_its_sources_are() {
    let (publisher, mut posts) = publisher().await;
    let gateway = start_all(&publisher).await;
    for feed in ["news", "casts"] {
        gateway.poll(feed).await;
    }
    let fields = EntryFields { title: "Something of our own".to_owned(), ..Default::default() };
    let act = Act::Create { entry: CheckedEntry::fields(&fields).unwrap(), noconflicts: None };
    let own = gateway.operator().item(&name("own"), act).await.unwrap().id;
    until("all items", async || titles(&gateway, "all").await.len() == 7).await;
    // By update, the newest first.
    assert_eq!(
        titles(&gateway, "all").await,
        ["Something of our own", "Post 4", "Post 3", "Cast 2", "Post 2", "Cast 1", "Post 1"]
    );

    // Ids and histories are those of the sources.
    for (aggregate, source) in
        [("both", "news"), ("both", "own"), ("all", "both"), ("all", "casts")]
    {
        let there = items(&gateway, aggregate, Select::All).await;
        for item in items(&gateway, source, Select::All).await {
            let winner = &item.shared.winner;
            let same = there.iter().find(|i| i.shared.winner.id == winner.id).unwrap();
            assert_eq!(same.shared.winner.history, winner.history);
            assert_eq!(same.published_id, item.published_id);
        }
    }
    let snapshot = gateway.store().snapshot(&name("all")).await.unwrap().unwrap();
    let origin = |id: &SyncId| snapshot.known.iter().find(|k| k.id == *id).unwrap().origin.clone();
    assert_eq!(origin(&own), Origin::Feed(name("both")));

    // The document says where it comes from.
    let text = gateway.text("/feeds/both").await;
    assert!(text.contains("<title>Both of them</title>"), "{text}");
    let at = gateway.address();
    let json: Value =
        serde_json::from_str(&gateway.text("/feeds/both/sync?as=json").await).unwrap();
    for source in ["news", "own"] {
        let link = format!("http://{at}/feeds/{source}/sync");
        let related = format!("link=\"{link}\" type=\"aggregated\"");
        assert!(text.contains(&related), "{text}");
        let listed = json["sharing"]["related"].as_array().unwrap();
        let link = format!("{link}?as=json");
        let is_it = |one: &Value| one["link"] == link && one["type"] == "aggregated";
        assert!(listed.iter().any(is_it), "{json}");
    }
    assert_eq!(text.matches("</source>").count(), 5, "{text}");
    assert!(text.contains("<title>Our own</title>"), "{text}");
    // The author of a whole feed is that of each entry wherever it goes.
    assert_eq!(text.matches("<author><name>Ned</name></author></source>").count(), 4, "{text}");
    let text = gateway.text("/feeds/both?as=rss").await;
    assert_eq!(text.matches(">Ned</dc:creator>").count(), 4, "{text}");
    let all = gateway.text("/feeds/all").await;
    assert_eq!(all.matches("</source>").count(), 7, "{all}");

    // An edit, and a deletion.
    posts[0].1 = "Another text".to_owned();
    posts.remove(2);
    publishes(&publisher, &posts);
    gateway.poll("news").await;
    until("the deletion", async || !titles(&gateway, "all").await.contains(&"Post 2".to_owned()))
        .await;
    let every = items(&gateway, "all", Select::All).await;
    let gone: Vec<&Item> = every.iter().filter(|item| item.shared.winner.deleted).collect();
    assert_eq!((gone.len(), gone[0].published_id.as_str()), (1, "urn:post:2"));
    assert!(gateway.text("/feeds/all").await.contains("Another text"));

    // A source that fails leaves the others, and its own items.
    publisher.set("/rss", Answer::status(500));
    gateway.operator().poll_now(&name("casts")).await.unwrap();
    posts.insert(0, (5, "Text 5".to_owned()));
    publishes(&publisher, &posts);
    gateway.poll("news").await;
    until("the new post", async || titles(&gateway, "all").await.contains(&"Post 5".to_owned()))
        .await;
    assert!(titles(&gateway, "all").await.contains(&"Cast 2".to_owned()));
    // The operator is told.
    let (_, told) = gateway.admin("GET", "/feeds/all", Value::Null).await;
    let trouble = &told["gathered"]["troubles"][0];
    assert_eq!(trouble["source"], "casts", "{told}");
    assert!(trouble["why"].as_str().unwrap().starts_with("its polls fail, 1 in a row: "), "{told}");
    gateway.stop().await;
}

/// Ids are for ever, so those of a feed that was purged are minted again; who knows them takes the new
/// texts all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aggregate_goes_on_after_a_source_was_purged() {
    let (publisher, mut posts) = publisher().await;
    let gateway = start_all(&publisher).await;
    let operator = gateway.operator();
    let url = publisher.address("/atom");
    let put = async || {
        let settings = [("url".to_owned(), url.as_str().into())].into_iter().collect();
        let settings = tidegate_config::feed_settings(&settings).unwrap();
        operator.put(&name("daily"), settings, PutMode::Replace).await.unwrap()
    };
    put().await;
    // As a file has it that was read before and is read again.
    let sharing = SharingOptions { sources: vec![name("daily")], ..SharingOptions::default() };
    let digest = FeedRecord {
        options: FeedOptions { sharing, ..FeedOptions::default() },
        ..FeedRecord::new(name("digest"), "", FeedSource::File)
    };
    gateway.store().put_feed(&digest).await.unwrap();
    for text in ["One", "Two words", "Three words now"] {
        posts[0].1 = text.to_owned();
        publishes(&publisher, &posts);
        gateway.poll("daily").await;
    }
    let newest = async || {
        let items = items(&gateway, "digest", Select::Current).await;
        items.into_iter().find(|item| item.published_id == "urn:post:4")
    };
    let says =
        async |text: &str| newest().await.is_some_and(|i| i.shared.winner.data.xml.contains(text));
    until("the third text", async || says("Three words now").await).await;
    let before = items(&gateway, "digest", Select::All).await;

    operator.delete(&name("daily"), true).await.unwrap();
    posts[0].1 = "After the purge".to_owned();
    // What the first document does not have comes later, with an id that was published as well.
    let oldest = posts.pop().unwrap();
    publishes(&publisher, &posts);
    put().await;
    gateway.poll("daily").await;
    until("the text after the purge", async || says("After the purge").await).await;
    posts.push((oldest.0, "The oldest, mended".to_owned()));
    publishes(&publisher, &posts);
    gateway.poll("daily").await;
    until("the oldest post", async || {
        gateway.text("/feeds/digest/complete").await.contains("The oldest, mended")
    })
    .await;

    let after = items(&gateway, "digest", Select::All).await;
    let ids = |items: &[Item]| {
        let ids = items.iter().map(|i| (i.shared.winner.id.clone(), i.published_id.clone()));
        ids.collect::<BTreeSet<_>>()
    };
    assert_eq!(ids(&after), ids(&before), "nothing is there twice, or new to a reader");
    // The feed's own poll may have come between two texts.
    let updates = |item: &Item| item.shared.winner.updates.value();
    let most = before.iter().map(updates).max().unwrap();
    assert!(most >= 3 && after.iter().all(|item| updates(item) == most + 1), "{after:?}");
    assert!(after.iter().all(|item| item.shared.conflicts.is_empty()));
    gateway.stop().await;
}
