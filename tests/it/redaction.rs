//! An item whose text was redacted leaves none behind, and stays out while its publisher lists it.

use crate::support;

use support::{Gate, Post, SITE, atom, kinds, post};
use tidegate_core::model::{EventKind, ItemStatus, Time};
use tidegate_judge::record::Redaction;
use tidegate_store::{Past, PastSelect, Select};

fn window() -> Vec<Post> {
    (1..=8).rev().map(post).collect()
}

/// Everything that the store answers of the feed, as text.
async fn everything(gate: &Gate) -> String {
    let (store, feed) = (&gate.store, &gate.feed);
    let snapshot = store.snapshot(feed).await.unwrap().unwrap();
    let mut all = format!("{snapshot:?} {:?}", store.events(feed, 500).await.unwrap());
    for select in [Select::Current, Select::All] {
        all.push_str(&format!("{:?}", store.view(feed, select).await.unwrap()));
    }
    for known in &snapshot.known {
        for note in store.versions(feed, &known.id, 500).await.unwrap() {
            let version = store.version(feed, &known.id, note.updates).await.unwrap();
            all.push_str(&format!("{note:?} {version:?}"));
        }
    }
    for hours in 0..60 {
        let at = Time::from_unix(gate.now.unix() - hours * 3600);
        for select in [PastSelect::Current, PastSelect::All] {
            all.push_str(&format!("{:?}", store.past(feed, select, at).await.unwrap()));
        }
    }
    all
}

#[tokio::test]
async fn what_lived_becomes_a_tombstone_and_does_not_come_back() {
    let mut gate = Gate::new().await;
    let mut posts = window();
    posts[3].title = "A secret".to_owned();
    posts[3].text = format!("{} with a secret in it", posts[3].text);
    gate.posts(&posts).await;
    gate.later(1);
    posts[3].title = "Another secret".to_owned();
    gate.posts(&posts).await;
    assert!(everything(&gate).await.contains("secret"));
    let (id, done) = gate.later(1).redact("Another secret").await;
    let Redaction::Commit(verdict) = done else { panic!("{done:?}") };
    assert_eq!(kinds(&verdict), [EventKind::Deleted]);
    assert_eq!(verdict.events()[0].reason, "by court order");
    let left = everything(&gate).await;
    assert!(!left.contains("secret"), "{left}");
    assert_eq!(gate.reader().await.len(), 7);
    let item = gate.store.item(&gate.feed, &id).await.unwrap().unwrap();
    assert_eq!(item.standing, ItemStatus::Redacted { since: gate.now });
    let winner = &item.shared.winner;
    assert!(winner.deleted && winner.updates.value() == 3 && winner.history.len() == 3);
    let state = gate.store_state().await;
    assert_eq!((state.current, state.living, state.tombstones), (7, 7, 1));

    // The publisher still lists it, unchanged, edited, under https, under another id.
    let listed = |post: Post| {
        let mut posts = posts.clone();
        posts[3] = post;
        posts
    };
    let secret = posts[3].clone();
    let https = secret.id.replace("http:", "https:");
    for (hours, again) in [
        (1, secret.clone()),
        (2, Post { title: "An edited secret".to_owned(), ..secret.clone() }),
        (3, Post { id: https.clone(), link: https.clone(), ..secret.clone() }),
        (4, Post { id: "urn:renamed".to_owned(), ..secret.clone() }),
        (5, secret.clone()),
    ] {
        gate.later(hours);
        let mut posts = listed(again);
        // Something else changes, so that the document is looked at.
        let what = ["nothing", "one", "two", "three", "four", "five"];
        let more = what.get(usize::try_from(hours).unwrap()).unwrap();
        posts[0].text = format!("{} Then {more} of them came home.", posts[0].text);
        let verdict = gate.posts(&posts).await;
        assert_eq!(kinds(&verdict), [EventKind::Updated], "{hours}: {:?}", verdict.events());
        assert_eq!(gate.reader().await.len(), 7);
        assert!(!everything(&gate).await.contains("secret"));
    }
    // It comes twice, and goes for good: nothing happens, and the others are judged as ever.
    gate.later(6);
    let mut twice = posts.clone();
    twice.push(secret);
    assert_eq!(kinds(&gate.posts(&twice).await), [EventKind::Updated]);
    gate.later(7);
    posts.remove(3);
    assert!(kinds(&gate.posts(&posts).await).is_empty());
    gate.later(8);
    posts.insert(0, post(9));
    assert_eq!(kinds(&gate.posts(&posts).await), [EventKind::Created]);
    assert!(matches!(gate.redact("").await.1, Redaction::Before));
}

#[tokio::test]
async fn a_tombstone_loses_its_text_and_stays() {
    let mut gate = Gate::new().await;
    let mut posts = window();
    posts[3].title = "A secret".to_owned();
    gate.options.deletions = tidegate_core::model::Deletions::Eager;
    gate.posts(&posts).await;
    gate.later(1);
    let secret = posts.remove(3);
    gate.posts(&posts).await;
    gate.later(1);
    let before = gate.store_state().await;
    let (id, done) = gate.redact("A secret").await;
    let Redaction::Commit(verdict) = done else { panic!("{done:?}") };
    assert!(verdict.events().is_empty(), "it was deleted before");
    let after = gate.store_state().await;
    assert_eq!((after.tick, after.tombstones), (before.tick, 1));
    assert!(after.render_revision > before.render_revision, "a rendered document would live on");
    assert!(!everything(&gate).await.contains("secret"));
    // A tombstone that its publisher lists again would be undeleted; this one is not.
    gate.later(1);
    posts.insert(3, secret);
    assert!(kinds(&gate.posts(&posts).await).is_empty());
    let item = gate.store.item(&gate.feed, &id).await.unwrap().unwrap();
    assert!(item.shared.winner.deleted);
}

#[tokio::test]
async fn an_item_without_an_id_is_kept_out_by_its_title_which_is_not_kept() {
    let mut gate = Gate::new().await;
    let rss = |titles: &[&str]| {
        let items: String =
            titles.iter().map(|t| format!("<item><title>{t}</title></item>")).collect();
        format!("<rss version='2.0'><channel><title>T</title>{items}</channel></rss>")
    };
    gate.take(&rss(&["One", "The secret title", "Three", "Four"])).await;
    gate.later(1).redact("The secret title").await;
    assert!(!everything(&gate).await.contains("secret"), "{}", everything(&gate).await);
    let verdict =
        gate.later(1).take(&rss(&["New", "One", "The secret title", "Three", "Four"])).await;
    assert_eq!(kinds(&verdict), [EventKind::Created]);
    let titles: Vec<_> = gate.reader().await.into_iter().map(|(_, title)| title).collect();
    assert_eq!(titles, ["New", "One", "Three", "Four"]);
}

/// A link that others bear as well says nothing: they are not kept out for it.
#[tokio::test]
async fn a_shared_link_keeps_nobody_out() {
    let mut gate = Gate::new().await;
    let mut posts = window();
    for post in &mut posts {
        post.link = SITE.to_owned();
    }
    gate.take(&atom(SITE, &posts)).await;
    gate.later(1).redact(&posts[2].title).await;
    gate.later(1);
    posts.insert(0, Post { link: SITE.to_owned(), ..post(9) });
    assert_eq!(kinds(&gate.posts(&posts).await), [EventKind::Created]);
    assert_eq!(gate.reader().await.len(), 8);
    let past = gate.store.past(&gate.feed, PastSelect::Current, gate.now).await.unwrap();
    assert!(matches!(past, Some(Past::Then(view)) if view.items.len() == 8));
}

/// Older documents of the publisher bring nothing back.
#[tokio::test]
async fn what_was_redacted_is_not_walked_into_again() {
    let nameless = |text: String, post: &Post| {
        let (id, link) = (&post.id, &post.link);
        let id = format!("<id>{id}</id>");
        text.replacen(&id, "", 1).replacen(&format!("<link href=\"{link}\"/>"), "", 1)
    };
    for is_nameless in [false, true] {
        let mut gate = Gate::new().await;
        let mut posts = window();
        posts[3].title = "A secret".to_owned();
        posts[3].text = format!("{} with a secret in it", posts[3].text);
        let secret = posts[3].clone();
        let text = |posts: &[Post]| {
            let text = atom(SITE, posts);
            if is_nameless { nameless(text, &secret) } else { text }
        };
        gate.take(&text(&posts)).await;
        gate.later(1).redact("A secret").await;
        assert!(!everything(&gate).await.contains("secret"));
        let mut older: Vec<Post> = (10..=12).rev().map(post).collect();
        let https = Post { id: secret.id.replace("http:", "https:"), ..secret.clone() };
        // Who never had an id has none under https either.
        let again = [(3, Some(secret.clone())), (0, Some(https).filter(|_| !is_nameless))];
        for (new, again) in again.into_iter().filter_map(|(new, again)| Some((new, again?))) {
            older.push(again);
            assert_eq!(gate.backfill(&text(&older), &[]).await.taken, new, "{is_nameless}");
            assert!(!everything(&gate).await.contains("secret"), "{is_nameless}");
            older.pop();
        }
        assert_eq!(gate.items(Select::All).await.len(), 11);
    }
}

/// Ids that are equal but for their hosts, or that are the end of another, are of other posts.
#[tokio::test]
async fn posts_of_other_sites_with_a_like_id_are_not_kept_out() {
    let named = |day: u32, id: &str| Post { id: id.to_owned(), link: id.to_owned(), ..post(day) };
    for (first, second, third) in [
        ("http://a.example/?p=123", "http://b.example/?p=123", "http://c.example/?p=123"),
        ("https://e.example/1234", "1234", "http://f.example/1234"),
    ] {
        for is_known_before in [false, true] {
            let what = format!("{second} beside {first}, {is_known_before}");
            let mut gate = Gate::new().await;
            let mut posts = window();
            posts[3] = named(5, first);
            let other = Post { link: post(20).link, ..named(20, second) };
            if is_known_before {
                posts.insert(0, other.clone());
            }
            gate.posts(&posts).await;
            gate.later(1).redact(&post(5).title).await;
            gate.later(1);
            if !is_known_before {
                posts.insert(0, other.clone());
                assert_eq!(kinds(&gate.posts(&posts).await), [EventKind::Created], "{what}");
                gate.later(1);
            }
            // It is edited like any, and one more comes.
            posts[0].text = "Told anew, and at as great a length as it was told before.".to_owned();
            posts.insert(0, named(21, third));
            let mut said = kinds(&gate.posts(&posts).await);
            said.sort();
            assert_eq!(said, [EventKind::Created, EventKind::Updated], "{what}");
            assert_eq!(gate.reader().await.len(), 9, "{what}");
        }
    }
}

/// What the matching alone knows again is kept out as well: the address with another query, and the same date.
#[tokio::test]
async fn a_redacted_post_does_not_come_back_under_another_query() {
    let mut gate = Gate::new().await;
    let mut posts = window();
    let address = |query: u32| format!("http://publisher.example/1041?s={query}");
    let secret = Post { title: "A secret".to_owned(), ..post(5) };
    let secret = |query| Post { id: address(query), link: address(query), ..secret.clone() };
    posts[3] = secret(1);
    gate.posts(&posts).await;
    gate.later(1).redact("A secret").await;
    assert!(!everything(&gate).await.contains("secret"));
    let older: Vec<Post> = (10..=12).rev().map(post).chain([secret(2)]).collect();
    let backfilled = gate.backfill(&atom(SITE, &older), &[]).await;
    assert_eq!((backfilled.taken, backfilled.known), (3, 0));
    assert!(!everything(&gate).await.contains("secret"));
    gate.later(1);
    posts[3] = secret(3);
    assert!(kinds(&gate.posts(&posts).await).is_empty());
    assert!(!everything(&gate).await.contains("secret"));
}
