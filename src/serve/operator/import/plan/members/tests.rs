//! What becomes of the feeds that follow a list.

use super::*;
use crate::operator::import::plan::{ExistingFeeds, ImportPlan, plan};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_config::Config;
use tidegate_core::model::{EndpointId, FeedSource, Time};
use tidegate_format::parse::opml::read;

fn name(text: &str) -> FeedName {
    FeedName::new(text).unwrap()
}

/// A gateway's feeds.
#[derive(Default)]
struct Feeds {
    stored: Vec<FeedRecord>,
    config: Config,
    private: bool,
    now: i64,
}

impl Feeds {
    /// Takes over what a list says; answers what was done.
    fn follow(&mut self, list: &str, outlines: &str) -> ImportPlan {
        self.now += 60;
        let (list, private) = (name(list), self.private);
        let (allow, leads) = (AllowPrivate::No, LeadScope::default());
        let rules = ListRules { list, private, allow, leads };
        self.carry_out(outlines, false, Some(rules))
    }

    fn carry_out(
        &mut self,
        outlines: &str,
        rearrange: bool,
        rules: Option<ListRules>,
    ) -> ImportPlan {
        let text = format!("<opml><body>\n{outlines}</body></opml>");
        let list = read(&text).unwrap();
        let endpoint = EndpointId::own("here").unwrap();
        let now = Time::from_unix(1_795_191_605 + self.now);
        let stored: Vec<_> = self.stored.iter().cloned().map(Arc::new).collect();
        let (stored, config, endpoint) = (&stored, &self.config, &endpoint);
        let done = plan(&list, &ExistingFeeds { stored, config, endpoint, now, rearrange, rules });
        for record in done.new.iter().chain(&done.switched).chain(&done.placed) {
            self.stored.retain(|known| known.name != record.name);
            self.stored.push(record.clone());
        }
        done
    }

    fn feed(&mut self, text: &str) -> &mut FeedRecord {
        self.stored.iter_mut().find(|record| record.name.as_str() == text).unwrap()
    }

    /// Each feed's folders and its name there, and whether it is polled.
    fn all(&self) -> BTreeMap<String, String> {
        let said = |record: &FeedRecord| {
            let places = record.enrolment.places.iter().map(|place| {
                let folders = place.folders.iter().map(|folder| folder.label.name().unwrap());
                folders.chain(place.label.name()).collect::<Vec<_>>().join("/")
            });
            let places: Vec<String> = places.collect();
            let dropped = if record.is_dropped() { " dropped" } else { "" };
            format!("{} {}{dropped}", record.standing.name(), places.join(", "))
        };
        self.stored.iter().map(|record| (record.name.to_string(), said(record))).collect()
    }
}

fn of(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, said)| ((*name).to_owned(), (*said).to_owned())).collect()
}

/// Whether a plan changes nothing.
fn is_idle(plan: &ImportPlan) -> bool {
    plan.new.is_empty() && plan.switched.is_empty() && plan.placed.is_empty()
}

const A: &str = "<outline text='A' xmlUrl='https://a.example/'/>";
const B: &str = "<outline text='B' xmlUrl='https://b.example/'/>";
const C: &str = "<outline text='C' xmlUrl='https://c.example/'/>";

fn folder(name: &str, inside: &str) -> String {
    format!("<outline text='{name}'>{inside}</outline>")
}

#[test]
fn feeds_follow_what_the_list_says() {
    let mut feeds = Feeds::default();
    let list = folder("News", &format!("{A}{B}"));
    assert_eq!(feeds.follow("ours", &list).new.len(), 2);
    let both = of(&[("a-example", "active News/A"), ("b-example", "active News/B")]);
    assert_eq!(feeds.all(), both);
    assert!(is_idle(&feeds.follow("ours", &list)), "the same list changes nothing");
    // Another order changes nothing either: folders and names are kept.
    assert!(is_idle(&feeds.follow("ours", &folder("News", &format!("{B}{A}")))));

    let renamed = A.replace("'A'", "'Alpha'");
    let done = feeds.follow("ours", &format!("{renamed}{}", folder("News", &format!("{B}{C}"))));
    assert_eq!((done.new.len(), done.placed.len(), done.switched.len()), (1, 1, 0));
    let moved = [
        ("a-example", "active Alpha"),
        ("b-example", "active News/B"),
        ("c-example", "active News/C"),
    ];
    assert_eq!(feeds.all(), of(&moved));

    let fewer = folder("News", &format!("{B}{C}"));
    let done = feeds.follow("ours", &fewer);
    assert_eq!((done.new.len(), done.placed.len(), done.switched.len()), (0, 0, 1));
    assert_eq!(feeds.all()["a-example"], "paused Alpha dropped");
    assert!(is_idle(&feeds.follow("ours", &fewer)));

    // One that comes back is polled again, where the list has it now.
    let done = feeds.follow("ours", &folder("News", &format!("{A}{B}{C}")));
    assert_eq!((done.new.len(), done.placed.len(), done.switched.len()), (0, 0, 1));
    assert_eq!(feeds.all()["a-example"], "active News/A");
    assert!(is_idle(&feeds.follow("ours", &folder("News", &format!("{A}{B}{C}")))));
    assert_eq!(feeds.follow("ours", "").switched.len(), 3, "an empty list drops all");
}

#[test]
fn what_was_done_by_hand_stays() {
    let mut feeds = Feeds::default();
    feeds.carry_out(A, false, None);
    feeds.follow("ours", &format!("{A}{B}{C}"));
    assert_eq!(feeds.feed("a-example").list, None, "it was here before");
    assert_eq!(feeds.follow("ours", &format!("{A}{B}{C}")).done.known, 1);

    // One that was removed is not added again, and one that was paused stays so.
    feeds.feed("b-example").standing = FeedStanding::Gone;
    feeds.feed("c-example").standing = FeedStanding::Paused;
    let done = feeds.follow("ours", &format!("{A}{B}{C}"));
    assert!(is_idle(&done), "{done:?}");
    assert!(done.refused[0].why.contains("removed from this gateway"), "{done:?}");
    assert!(
        is_idle(&feeds.follow("ours", "")),
        "nothing of it is polled but what is not the list's"
    );
    assert!(!feeds.feed("c-example").is_dropped());
    assert!(is_idle(&feeds.follow("ours", &format!("{A}{B}{C}"))));
    assert_eq!(feeds.feed("c-example").standing, FeedStanding::Paused);

    // One that was edited is the operator's.
    let own = feeds.feed("c-example");
    let before = own.clone();
    own.standing = FeedStanding::Active;
    own.options.complete = true;
    own.own_if_changed(&before);
    assert!(is_idle(&feeds.follow("ours", "")));
    let moved = folder("Elsewhere", &format!("{A}{C}"));
    assert!(is_idle(&feeds.follow("ours", &moved)));
    assert_eq!(feeds.all()["c-example"], "active C");
}

#[test]
fn what_was_arranged_by_hand_stays_where_it_is() {
    let mut feeds = Feeds::default();
    feeds.follow("ours", &format!("{A}{B}"));
    feeds.carry_out(&folder("Mine", A), true, None);
    assert_eq!(feeds.all()["a-example"], "active Mine/A");
    let renamed = format!("{A}{B}").replace("text='", "text='New ");
    let done = feeds.follow("ours", &renamed);
    assert_eq!(done.new.len() + done.switched.len(), 0);
    let all = of(&[("a-example", "active Mine/A"), ("b-example", "active New B")]);
    assert_eq!(feeds.all(), all);
    assert!(is_idle(&feeds.follow("ours", &renamed)));
    // It is paused with the others all the same: it was only moved.
    assert_eq!(feeds.follow("ours", B).switched.len(), 1);
    assert!(feeds.feed("a-example").is_dropped());
}

#[test]
fn a_feed_follows_one_list_at_a_time() {
    let mut feeds = Feeds::default();
    let (one, other) = (folder("One", &format!("{A}{B}")), folder("Other", A));
    feeds.follow("one", &one);
    assert!(is_idle(&feeds.follow("other", &other)), "it follows the first");
    assert_eq!(feeds.feed("a-example").list.as_ref().unwrap().list, name("one"));
    feeds.follow("one", &folder("One", B));
    // What one list dropped, the other takes over.
    assert_eq!(feeds.follow("other", &other).switched.len(), 1);
    assert_eq!(feeds.all()["a-example"], "active Other/A");
    assert!(is_idle(&feeds.follow("one", &one)) && is_idle(&feeds.follow("other", &other)));
    assert_eq!(feeds.feed("a-example").list.as_ref().unwrap().list, name("other"));
}

#[test]
fn the_feeds_of_a_private_list_are_private() {
    let mut feeds = Feeds::default();
    feeds.follow("ours", A);
    feeds.private = true;
    let done = feeds.follow("ours", &format!("{A}{B}"));
    assert!(done.new[0].private && done.placed[0].private, "{done:?}");
    feeds.private = false;
    assert!(is_idle(&feeds.follow("ours", &format!("{A}{B}"))), "nobody shows them to everybody");
}

#[test]
fn what_cannot_be_added_is_named_with_the_reason() {
    let mut feeds = Feeds::default();
    feeds.config.server.public_url = Some("https://gate.example".to_owned());
    let outline = |address: &str| format!("<outline text='x' xmlUrl='{address}'/>\n");
    let token = "correct-horse-battery";
    let list: String = [
        "http://127.0.0.1:8080/feed",
        "http://10.0.0.7/feed",
        "http://[::1]/feed",
        "https://gate.example/feeds/nobody",
        &format!("https://gate.example/t/{token}/feeds/nobody/sync"),
        "https://me:secret@b.example/?key=0123456789abcdef0123",
    ]
    .into_iter()
    .map(outline)
    .collect();
    let done = feeds.follow("ours", &format!("{list}{A}"));
    let new: Vec<&str> = done.new.iter().map(|record| record.url.as_str()).collect();
    assert_eq!(new.len(), 2, "{new:?}");
    let said: Vec<String> = done
        .refused
        .iter()
        .map(|refused| format!("{} {}", refused.address.as_deref().unwrap(), refused.why))
        .collect();
    for (said, part) in said.iter().zip([
        "127.0.0.1 has a loopback address",
        "10.0.0.7 has a private address",
        "::1 has a loopback address",
        "a feed of this gateway itself",
        "a feed of this gateway itself",
    ]) {
        assert!(said.contains(part) && !said.contains(token), "{said}");
    }
    assert_eq!(said.len(), 5, "{said:?}");

    // A feed here by its address below a token is the feed that it is.
    let own = outline(&format!("https://gate.example/t/{token}/feeds/a-example"));
    let same = outline("https://me:secret@b.example/?key=0123456789abcdef0123");
    let done = feeds.follow("ours", &format!("{same}{}", own.replace("'x'", "'A'")));
    assert!(is_idle(&done), "{done:?}");
}

#[test]
fn each_of_two_feeds_of_one_address_is_known_by_its_own() {
    let mut feeds = Feeds::default();
    feeds.config.server.public_url = Some("https://gate.example".to_owned());
    feeds.carry_out(A, false, None);
    let other = FeedRecord { name: name("other"), ..feeds.stored[0].clone() };
    feeds.stored.push(other);
    for own in ["a-example", "other"] {
        let list = A.replace("https://a.example/", &format!("https://gate.example/feeds/{own}"));
        let done = feeds.follow("ours", &list);
        assert!(
            is_idle(&done) && done.done.known == 1 && done.refused.is_empty(),
            "{own}: {done:?}"
        );
    }
}

#[test]
fn a_list_adds_no_more_than_the_limit() {
    let (allow, leads) = (AllowPrivate::No, LeadScope::default());
    let rules = ListRules { list: name("ours"), private: false, allow, leads };
    let url = Url::parse("https://a.example/").unwrap();
    let mut room = rules.room(&[]);
    assert_eq!(room, LIST_FEEDS);
    room = 1;
    rules.check_new(&url, &mut room).unwrap();
    let why = rules.check_new(&url, &mut room).unwrap_err();
    assert_eq!(why, "5000 feeds follow the list, which is the limit");
    let mut feeds = Feeds::default();
    feeds.follow("ours", &format!("{A}{B}"));
    assert_eq!(
        rules.room(&feeds.stored.iter().cloned().map(Arc::new).collect::<Vec<_>>()),
        LIST_FEEDS - 2
    );
}

#[test]
fn a_list_at_a_public_address_adds_no_feed_of_a_host_of_the_operators_own() {
    let private = Url::parse("http://intranet.example/feed").unwrap();
    let public = Url::parse("https://a.example/").unwrap();
    for (at, adds) in [("https://b.example/", false), ("http://127.0.0.1:8000/list", true)] {
        let list = FeedRecord::new(name("ours"), at, FeedSource::Api);
        let rules = ListRules {
            list: name("ours"),
            private: false,
            allow: AllowPrivate::only(["intranet.example:80", "127.0.0.1:8000"]).unwrap(),
            leads: LeadScope::of_feed(&list),
        };
        assert_eq!(rules.check_new(&private, &mut 9).is_ok(), adds, "{at}");
        rules.check_new(&public, &mut 9).unwrap();
    }
}

#[test]
fn a_second_feed_of_its_address_pauses_no_feed_of_the_list() {
    let mut feeds = Feeds::default();
    feeds.follow("ours", &format!("{A}{B}"));
    // Of feeds of one address the first one is known.
    let own = FeedRecord { name: name("000"), list: None, ..feeds.feed("a-example").clone() };
    feeds.stored.insert(0, own);
    feeds.follow("ours", &format!("{A}{B}"));
    assert_eq!(feeds.feed("a-example").standing, FeedStanding::Active);
    feeds.follow("ours", B);
    assert!(feeds.feed("a-example").is_dropped());
    assert_eq!(feeds.feed("000").standing, FeedStanding::Active);
}

#[test]
fn what_a_private_list_dropped_is_private_too() {
    let mut feeds = Feeds::default();
    feeds.follow("ours", &format!("{A}{B}"));
    feeds.follow("ours", B);
    feeds.feed("b-example").standing = FeedStanding::Paused;
    feeds.private = true;
    feeds.follow("ours", B);
    assert!(feeds.feed("a-example").is_dropped() && feeds.feed("a-example").private);
    assert!(feeds.feed("b-example").private);
    assert!(is_idle(&feeds.follow("ours", B)));

    // One that was paused by hand, and is in the list no more.
    let mut feeds = Feeds::default();
    feeds.follow("ours", &format!("{A}{B}"));
    feeds.feed("a-example").pause_by_hand();
    feeds.private = true;
    feeds.follow("ours", B);
    assert!(!feeds.feed("a-example").is_dropped() && feeds.feed("a-example").private);
    assert!(is_idle(&feeds.follow("ours", B)));
}
