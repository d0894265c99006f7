//! Feeds with sync markup (SSE 1.0 section 4.1).

use super::*;

/// An item with a version number, made by `by`.
fn item(id: &str, updates: u32, by: &str) -> String {
    version(id, updates, by, "")
}

fn gone(id: &str, updates: u32) -> String {
    version(id, updates, "P", " deleted=\"true\"")
}

fn version(id: &str, updates: u32, by: &str, more: &str) -> String {
    let history = (1..=updates).rev().map(|n| {
        format!("<sx:history sequence=\"{n}\" when=\"2026-01-0{n}T00:00:00Z\" by=\"{by}\"/>")
    });
    format!(
        "<item><sx:sync id=\"{id}\" updates=\"{updates}\"{more}>{}</sx:sync>\
         <title>{id} {updates}</title></item>",
        history.collect::<String>()
    )
}

fn rss(sharing: &str, items: &[String]) -> String {
    format!(
        "<rss version=\"2.0\" xmlns:sx=\"http://www.microsoft.com/schemas/sse\" \
         xmlns:atom=\"http://www.w3.org/2005/Atom\"><channel><title>t</title>\
         <atom:link rel=\"self\" href=\"https://pub.example/feed\"/>{sharing}{}</channel></rss>",
        items.concat()
    )
}

const COMPLETE: &str = "<sx:related link=\"https://pub.example/all\" type=\"complete\"/>";

fn bounds(since: &str, until: &str) -> String {
    format!("<sx:sharing since=\"{since}\" until=\"{until}\">{COMPLETE}</sx:sharing>")
}

fn until(local: &Local) -> Option<String> {
    match &local.saved.as_ref().unwrap().0.kept {
        ReplicaBasis::Sse { until, .. } => until.clone(),
        other => panic!("{other:?}"),
    }
}

/// What the replica has: each id with its updates, and `x` where it is deleted.
fn has(local: &Local) -> String {
    let (_, items) = read(local.text());
    let of = |item: &item::ReplicaItem| {
        let item::ReplicaItem::Shared(shared) = item else { panic!("{item:?}") };
        let winner = &shared.item.winner;
        let mark = if winner.deleted { "x" } else { "" };
        format!("{}{}{mark}", winner.id, winner.updates.value())
    };
    let mut has: Vec<String> = items.iter().map(of).collect();
    has.sort();
    has.join(" ")
}

fn publisher() -> Publisher {
    let mut publisher = Publisher { conditional: true, ..Publisher::default() };
    publisher.set(FEED, rss(&bounds("2", "5"), &[item("b", 2, "P"), item("c", 1, "P")]));
    let all = [item("a", 1, "P"), item("b", 2, "P"), item("c", 1, "P")];
    publisher.set(&at("all"), rss("<sx:sharing since=\"0\" until=\"5\"/>", &all));
    publisher
}

#[test]
fn the_complete_feed_is_read_first() {
    let sse = "http://www.microsoft.com/schemas/sse";
    for namespace in [sse, "http://feedsync.org/2007/feedsync"] {
        let mut publisher = publisher();
        for text in publisher.documents.values_mut() {
            *text = text.replace(sse, namespace);
        }
        let mut local = Local::default();
        let outcome = local.pull(&publisher);
        assert_eq!(local.asked, ["feed", "all"]);
        assert_eq!((has(&local).as_str(), until(&local).as_deref()), ("a1 b2 c1", Some("5")));
        let changes = outcome.changes.len();
        assert_eq!((outcome.living, changes, outcome.was_out_of_sync), (3, 3, false));
        // What the publisher told this subscriber is not for others (section 2.2).
        assert!(!local.text().contains("sharing") && !local.text().contains("rel=\"self\""));
        assert!(local.text().contains(namespace));
        assert_eq!(local.text().contains(sse), namespace == sse);
        let outcome = local.pull(&publisher);
        assert_eq!((local.asked.len(), outcome.replica), (1, None));
        // What is broken is refused.
        let cut = rss(&bounds("5", "9"), &[item("b", 3, "P")]).replace("</channel></rss>", "</cha");
        publisher.set(FEED, cut);
        let error = local.refused(&publisher);
        assert!(error.contains("not well-formed"), "{error}");
    }
}

#[test]
fn the_earlier_until_counts() {
    for (partial, whole) in [("5", "7"), ("7", "5")] {
        let mut publisher = publisher();
        publisher.set(FEED, rss(&bounds("2", partial), &[item("b", 2, "P")]));
        let sharing = format!("<sx:sharing since=\"0\" until=\"{whole}\"/>");
        publisher.set(&at("all"), rss(&sharing, &[item("b", 2, "P")]));
        assert_eq!(until(&publisher.pulled()).as_deref(), Some("5"));
    }
}

#[test]
fn partial_feeds_are_merged() {
    let mut publisher = publisher();
    let mut local = publisher.pulled();
    let changes = [gone("a", 2), item("c", 2, "P"), item("d", 1, "P")];
    publisher.set(FEED, rss(&bounds("5", "9"), &changes));
    let outcome = local.pull(&publisher);
    assert_eq!(local.asked, ["feed"]);
    assert_eq!(said(&outcome), ["deleted a 2", "changed c 2", "new d 1"]);
    assert_eq!(has(&local), "a2x b2 c2 d1");
    assert_eq!((until(&local).as_deref(), outcome.living, outcome.tombstones), (Some("9"), 3, 1));
    // An older partial feed, from a cache, say, undoes nothing.
    publisher.set(FEED, rss(&bounds("2", "9"), &[item("a", 1, "P")]));
    assert!(local.pull(&publisher).changes.is_empty());
    publisher.set(FEED, rss(&bounds("5", "11"), &[item("a", 3, "P")]));
    assert_eq!(said(&local.pull(&publisher)), ["restored a 3"]);
}

#[test]
fn who_was_away_too_long_starts_again() {
    let mut publisher = publisher();
    let mut local = publisher.pulled();
    // Greater by code points, as section 4.1.2 compares.
    publisher.set(FEED, rss(&bounds("6", "9"), &[item("d", 1, "P")]));
    publisher.set(
        &at("all"),
        rss("<sx:sharing since=\"6\" until=\"9\"/>", &[item("c", 1, "P"), item("d", 1, "P")]),
    );
    let outcome = local.pull(&publisher);
    assert!(outcome.was_out_of_sync);
    assert_eq!(local.asked, ["feed", "all"]);
    assert_eq!(has(&local), "c1 d1");
    assert_eq!(said(&outcome), ["new d 1", "forgotten a 1", "forgotten b 2"]);
    // The cached until is the feed's again.
    local.pull(&publisher);
    assert!(!local.pull(&publisher).was_out_of_sync);
}

#[test]
fn without_a_complete_feed_the_partial_one_is_all() {
    let mut publisher = publisher();
    let sharing = |since: &str| format!("<sx:sharing since=\"{since}\" until=\"9\"/>");
    publisher.set(FEED, rss(&sharing("1"), &[item("a", 1, "P")]));
    let mut local = publisher.pulled();
    publisher.set(FEED, rss(&sharing("99"), &[item("b", 1, "P")]));
    assert!(local.pull(&publisher).was_out_of_sync);
    assert_eq!(has(&local), "b1");
    publisher.set(FEED, rss("", &[item("c", 1, "P")]));
    local.pull(&publisher);
    assert_eq!(has(&local), "b1 c1", "nothing tells a gap");
}

/// Without bounds nobody can tell what was missed, so the complete feed is read each time.
#[test]
fn a_feed_without_bounds_is_read_whole_each_time() {
    let mut publisher = publisher();
    let sharing = format!("<sx:sharing>{COMPLETE}</sx:sharing>");
    publisher.set(FEED, rss(&sharing, &[item("b", 2, "P")]));
    let mut local = publisher.pulled();
    assert_eq!(local.asked, ["feed", "all"]);
    let outcome = local.pull(&publisher);
    assert_eq!(local.asked, ["feed", "all"], "both answer 304");
    assert_eq!(outcome.replica, None);
    publisher.set(&at("all"), rss("<sx:sharing/>", &[item("b", 2, "P"), gone("c", 2)]));
    let outcome = local.pull(&publisher);
    assert_eq!(said(&outcome), ["deleted c 2", "forgotten a 1"]);
}

#[test]
fn where_the_complete_feed_cannot_be_had_nothing_changes() {
    let mut publisher = publisher();
    let all = publisher.documents.remove(&at("all")).unwrap();
    let mut local = Local::default();
    let wanted = "https://pub.example/all could not be read: the publisher answered 404";
    assert_eq!(local.refused(&publisher), wanted);
    publisher.set(&at("all"), all);
    local.pull(&publisher);
    publisher.documents.remove(&at("all"));
    publisher.set(FEED, rss(&bounds("8", "9"), &[]));
    // An old replica is better than none.
    assert_eq!(local.refused(&publisher), wanted);
}

#[test]
fn conflicts_are_kept_and_broken_items_left_out() {
    let mut publisher = publisher();
    let mut local = publisher.pulled();
    let broken = item("z", 1, "P").replace("updates=\"1\"", "updates=\"0\"");
    publisher.set(FEED, rss(&bounds("5", "9"), &[item("b", 2, "Q"), broken]));
    let outcome = local.pull(&publisher);
    assert!(local.text().contains("<sx:conflicts>"), "{}", local.text());
    assert!(outcome.warnings[0].ends_with("the item is left out"), "{:?}", outcome.warnings);
    assert_eq!(has(&local).split(' ').count(), 3);
    local.pull(&publisher);
    // One that is not well-formed costs no other one, and what only the gateway can read is no fault.
    let broken = item("y", 1, "P").replace("<title", "<title a=1");
    let odd = item("x", 1, "P").replace("</title>", " &foo; & more</title>");
    publisher.set(FEED, rss(&bounds("5", "10"), &[broken, odd]));
    let outcome = local.pull(&publisher);
    assert!(outcome.warnings[0].ends_with("the item is left out"), "{:?}", outcome.warnings);
    assert_eq!((outcome.warnings.len(), has(&local).split(' ').count()), (1, 4));
}

#[test]
fn a_feed_that_loses_its_markup_leaves_the_replica_as_it_was() {
    let mut publisher = publisher();
    let mut local = publisher.pulled();
    let plain = "<rss version=\"2.0\"><channel><title>t</title><item><guid>1</guid>\
                 <title>plain</title></item></channel></rss>";
    publisher.set(FEED, plain);
    let error = local.refused(&publisher);
    assert!(error.contains("has no sync markup and had sync markup"), "{error}");
    // Whoever begins with it keeps it as a plain one, and that does not change either.
    let mut other = Local::default();
    other.pull(&publisher);
    assert_eq!(other.titles(), ["plain"]);
    publisher.set(FEED, rss(&bounds("2", "5"), &[item("b", 2, "P")]));
    local.pull(&publisher);
    assert_eq!(has(&local).split(' ').count(), 3, "it goes on when the markup is there again");
    let error = other.refused(&publisher);
    assert!(error.contains("has sync markup and had no sync markup"), "{error}");
}
