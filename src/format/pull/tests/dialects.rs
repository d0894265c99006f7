//! Feeds in SSE 0.91, and collections of FeedSync as plain XML and JSON.

use super::*;

const OLD: &str = "http://www.microsoft.com/schemas/rss/sse";

/// An item of SSE 0.91; its version n was made on the n-th of January.
fn item(id: &str, version: u32, by: &str) -> String {
    let day = |n: u32| {
        let name = ["Thu", "Fri", "Sat", "Sun", "Mon"][usize::try_from(n).unwrap() - 1];
        format!("when=\"{name}, 0{n} Jan 2026 00:00:00 GMT\"")
    };
    let updates = (1..version).rev().map(|n| format!("<sx:update {} by=\"P\"/>", day(n)));
    format!(
        "<item><sx:sync id=\"{id}\" version=\"{version}\"><sx:history {} by=\"{by}\">{}\
         </sx:history></sx:sync><title>{id} {version} {by}</title></item>",
        day(version),
        updates.collect::<String>()
    )
}

fn rss(since: &str, until: &str, items: &[String]) -> String {
    format!(
        "<rss version=\"2.0\" xmlns:sx=\"{OLD}\"><sx:sharing since=\"{since}\" until=\"{until}\" \
         version=\"0.91\"><sx:related link=\"https://pub.example/all\" type=\"complete\"/>\
         </sx:sharing><channel><title>t</title>{}</channel></rss>",
        items.concat()
    )
}

const JAN_2: &str = "Fri, 02 Jan 2026 00:00:00 GMT";
/// The weekday is wrong, and nobody asks it.
const JAN_9: &str = "Mon, 9 Jan 2026 00:00:00 GMT";
const FEB_1: &str = "Sun, 01 Feb 2026 00:00:00 GMT";

#[test]
fn a_feed_of_sse_091_is_followed_by_its_dates() {
    let mut publisher = Publisher::of(rss(JAN_2, JAN_2, &[item("b", 2, "P")]));
    publisher.set(&at("all"), rss("", JAN_2, &[item("a", 1, "P"), item("b", 2, "P")]));
    let mut local = publisher.pulled();
    assert_eq!(local.asked, ["feed", "all"]);
    assert_eq!(local.titles(), ["a 1 P", "b 2 P"]);
    assert!(local.text().contains(OLD) && !local.text().contains("<sx:sharing"));
    // Later, and as text before: 9 January is after the 2nd.
    publisher.set(FEED, rss(JAN_2, JAN_9, &[item("a", 2, "P")]));
    local.pull(&publisher);
    assert_eq!(local.asked, ["feed"]);
    assert_eq!(local.titles(), ["a 2 P", "b 2 P"]);
    // Section 4.4: two who stepped on each other's changes.
    publisher.set(FEED, rss(JAN_2, JAN_9, &[item("a", 2, "Q")]));
    local.pull(&publisher);
    assert_eq!(local.titles(), ["a 2 Q", "b 2 P"]);
    assert!(local.text().contains("conflict=\"true\"") && local.text().contains("a 2 P"));
    // Away too long: everything anew.
    publisher.set(FEED, rss(FEB_1, FEB_1, &[item("c", 1, "P")]));
    publisher.set(&at("all"), rss("", FEB_1, &[item("c", 1, "P")]));
    let outcome = local.pull(&publisher);
    assert!(outcome.was_out_of_sync);
    assert_eq!(local.titles(), ["c 1 P"]);
}

#[test]
fn collections_are_followed_like_feeds() {
    let pox = "<collection xmlns:sx=\"http://feedsync.org/2007/feedsync\"><sx:sharing since=\"SINCE\" \
               until=\"UNTIL\"/><item><subject>TITLE</subject><sx:sync id=\"i\" updates=\"UPDATES\">\
               <sx:history sequence=\"UPDATES\" by=\"P\"/></sx:sync></item></collection>";
    let json = "{\"sharing\":{\"since\":\"SINCE\",\"until\":\"UNTIL\"},\"items\":[{\"title\":\"TITLE\",\
                \"sync\":{\"id\":\"i\",\"updates\":UPDATES,\"history\":[{\"sequence\":UPDATES,\
                \"by\":\"P\"}]}}]}";
    for form in [pox, json] {
        let form = |since: &str, until: &str, title: &str, updates: &str| {
            let values =
                [("SINCE", since), ("UNTIL", until), ("TITLE", title), ("UPDATES", updates)];
            values.iter().fold(form.to_owned(), |text, (name, value)| text.replace(name, value))
        };
        let mut publisher = Publisher::of(form("1", "2", "one", "1"));
        let mut local = publisher.pulled();
        assert_eq!(local.titles(), ["one"]);
        publisher.set(FEED, form("1", "3", "two", "2"));
        let outcome = local.pull(&publisher);
        assert_eq!(said(&outcome), ["changed two"]);
        assert_eq!(local.titles(), ["two"]);
        publisher.set(FEED, form("4", "5", "three", "3"));
        assert!(local.pull(&publisher).was_out_of_sync);
    }
}
