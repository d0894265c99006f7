use super::*;
use crate::operator::import::plan::{ImportPlan, tests::plan_of};
use crate::tests::name;
use std::collections::BTreeMap;
use tidegate_config::Config;
use tidegate_core::model::FeedSource;

fn rules(list: &str, private: bool) -> ListRules {
    let (allow, lead_scope) = (AllowPrivate::No, LeadScope::default());
    ListRules { list: name(list), private, allow, lead_scope }
}

#[derive(Default)]
struct Feeds {
    stored: Vec<FeedRecord>,
    config: Config,
    private: bool,
    now: i64,
}

impl Feeds {
    fn following(outlines: &str) -> Self {
        let mut feeds = Self::default();
        feeds.follow("ours", outlines);
        feeds
    }

    fn of_gate() -> Self {
        let mut feeds = Self::default();
        feeds.config.server.public_url = Some("https://gate.example".to_owned());
        feeds
    }

    fn follow(&mut self, list: &str, outlines: &str) -> ImportPlan {
        self.now += 60;
        self.carry_out(outlines, false, Some(rules(list, self.private)))
    }

    #[track_caller]
    fn assert_idle(&mut self, list: &str, outlines: &str) -> ImportPlan {
        let done = self.follow(list, outlines);
        let is_idle = done.new.is_empty() && done.switched.is_empty() && done.placed.is_empty();
        assert!(is_idle, "{done:?}");
        done
    }

    fn carry_out(
        &mut self,
        outlines: &str,
        rearrange: bool,
        rules: Option<ListRules>,
    ) -> ImportPlan {
        let how = (self.now, rearrange, rules);
        let done = plan_of(outlines, &self.stored, &self.config, how);
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
    fn all(&self) -> BTreeMap<&str, String> {
        let said = |record: &FeedRecord| {
            let places = record.enrolment.places.iter().map(|place| {
                let folders = place.folders.iter().map(|folder| folder.label.name().unwrap());
                folders.chain(place.label.name()).collect::<Vec<_>>().join("/")
            });
            let places: Vec<String> = places.collect();
            let dropped = if record.is_dropped() { " dropped" } else { "" };
            format!("{} {}{dropped}", record.standing.name(), places.join(", "))
        };
        self.stored.iter().map(|record| (record.name.as_str(), said(record))).collect()
    }
}

const A: &str = "<outline text='A' xmlUrl='https://a.example/'/>";
const B: &str = "<outline text='B' xmlUrl='https://b.example/'/>";
const C: &str = "<outline text='C' xmlUrl='https://c.example/'/>";

fn folder(name: &str, inside: &str) -> String {
    format!("<outline text='{name}'>{inside}</outline>")
}

#[test]
fn what_was_done_by_hand_stays() {
    let mut feeds = Feeds::default();
    feeds.carry_out(A, false, None);
    let all = format!("{A}{B}{C}");
    feeds.follow("ours", &all);
    assert_eq!(feeds.feed("a-example").list, None, "it was here before");
    assert_eq!(feeds.follow("ours", &all).done.known, 1);
    // One that was removed is not added again, and one that was paused stays so.
    feeds.feed("b-example").standing = FeedStanding::Gone;
    feeds.feed("c-example").standing = FeedStanding::Paused;
    let done = feeds.assert_idle("ours", &all);
    assert!(done.refused[0].why.contains("removed from this gateway"), "{done:?}");
    // Nothing of it is polled but what is not the list's.
    feeds.assert_idle("ours", "");
    assert!(!feeds.feed("c-example").is_dropped());
    feeds.assert_idle("ours", &all);
    assert_eq!(feeds.feed("c-example").standing, FeedStanding::Paused);
    // One that was edited is the operator's.
    let own = feeds.feed("c-example");
    let before = own.clone();
    own.standing = FeedStanding::Active;
    own.options.complete = true;
    own.own_if_changed(&before);
    feeds.assert_idle("ours", "");
    feeds.assert_idle("ours", &folder("Elsewhere", &format!("{A}{C}")));
    assert_eq!(feeds.all()["c-example"], "active C");
    // What was arranged by hand stays where it is.
    let mut feeds = Feeds::following(&format!("{A}{B}"));
    // Another order changes nothing: folders and names are kept.
    feeds.assert_idle("ours", &format!("{B}{A}"));
    feeds.carry_out(&folder("Mine", A), true, None);
    assert_eq!(feeds.all()["a-example"], "active Mine/A");
    let renamed = format!("{A}{B}").replace("text='", "text='New ");
    let done = feeds.follow("ours", &renamed);
    assert_eq!((done.new.len(), done.switched.len()), (0, 0));
    let all = [("a-example", "active Mine/A"), ("b-example", "active New B")];
    assert_eq!(feeds.all(), BTreeMap::from(all.map(|(name, said)| (name, said.to_owned()))));
    feeds.assert_idle("ours", &renamed);
    // It is paused with the others all the same: it was only moved.
    assert_eq!(feeds.follow("ours", B).switched.len(), 1);
    assert!(feeds.feed("a-example").is_dropped());
    assert_eq!(feeds.follow("ours", "").switched.len(), 1, "an empty list drops all");
    // A feed follows one list at a time.
    let mut feeds = Feeds::default();
    let (one, other) = (folder("One", &format!("{A}{B}")), folder("Other", A));
    feeds.follow("one", &one);
    feeds.assert_idle("other", &other);
    assert_eq!(feeds.feed("a-example").list.as_ref().unwrap().list, name("one"));
    feeds.follow("one", &folder("One", B));
    // What one list dropped, the other takes over.
    assert_eq!(feeds.follow("other", &other).switched.len(), 1);
    assert_eq!(feeds.all()["a-example"], "active Other/A");
    feeds.assert_idle("one", &one);
    feeds.assert_idle("other", &other);
    assert_eq!(feeds.feed("a-example").list.as_ref().unwrap().list, name("other"));
}

#[test]
fn the_feeds_of_a_private_list_are_private() {
    let both = format!("{A}{B}");
    let mut feeds = Feeds::following(A);
    feeds.private = true;
    let done = feeds.follow("ours", &both);
    assert!(done.new[0].private && done.placed[0].private, "{done:?}");
    feeds.private = false;
    feeds.assert_idle("ours", &both);
    // So is what it dropped, and what was paused by hand, also where the list has it no more.
    let mut feeds = Feeds::following(&both);
    feeds.follow("ours", B);
    feeds.feed("b-example").standing = FeedStanding::Paused;
    feeds.private = true;
    feeds.follow("ours", B);
    assert!(feeds.feed("a-example").is_dropped() && feeds.feed("a-example").private);
    assert!(feeds.feed("b-example").private);
    feeds.assert_idle("ours", B);
    let mut feeds = Feeds::following(&both);
    feeds.feed("a-example").pause_by_hand();
    feeds.private = true;
    feeds.follow("ours", B);
    assert!(!feeds.feed("a-example").is_dropped() && feeds.feed("a-example").private);
    feeds.assert_idle("ours", B);
}

#[test]
fn what_cannot_be_added_is_named_with_the_reason() {
    let mut feeds = Feeds::of_gate();
    let outline = |address: &str| format!("<outline text='x' xmlUrl='{address}'/>\n");
    let token = "correct-horse-battery";
    let below = format!("https://gate.example/t/{token}/feeds");
    let refused = [
        ("http://127.0.0.1:8080/feed", "127.0.0.1 has a loopback address"),
        ("http://10.0.0.7/feed", "10.0.0.7 has a private address"),
        ("http://[::1]/feed", "::1 has a loopback address"),
        ("https://gate.example/feeds/nobody", "a feed of this gateway itself"),
        (&format!("{below}/nobody/sync"), "a feed of this gateway itself"),
    ];
    let list: String = refused.iter().map(|(address, _)| outline(address)).collect();
    let same = outline("https://me:secret@b.example/?key=0123456789abcdef0123");
    let done = feeds.follow("ours", &format!("{list}{same}{A}"));
    assert_eq!((done.new.len(), done.refused.len()), (2, refused.len()), "{done:?}");
    for (said, (_, part)) in done.refused.iter().zip(refused) {
        let said = format!("{} {}", said.address.as_deref().unwrap(), said.why);
        assert!(said.contains(part) && !said.contains(token), "{said}");
    }
    // A feed here by its address below a token is the feed that it is.
    let own = outline(&format!("{below}/a-example"));
    feeds.assert_idle("ours", &format!("{same}{}", own.replace("'x'", "'A'")));
    // Each of two feeds of one address is known by its own.
    let mut feeds = Feeds::of_gate();
    feeds.carry_out(A, false, None);
    let other = FeedRecord { name: name("other"), ..feeds.stored[0].clone() };
    feeds.stored.push(other);
    for own in ["a-example", "other"] {
        let list = A.replace("https://a.example/", &format!("https://gate.example/feeds/{own}"));
        let done = feeds.assert_idle("ours", &list);
        assert!(done.done.known == 1 && done.refused.is_empty(), "{own}: {done:?}");
    }
    // Nor does a second feed of its address pause a feed of the list.
    let mut feeds = Feeds::following(&format!("{A}{B}"));
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
fn a_list_adds_no_more_than_the_limit() {
    let rules = rules("ours", false);
    let url = Url::parse("https://a.example/").unwrap();
    assert_eq!(rules.capacity(&[]), LIST_FEEDS);
    let mut capacity = 1;
    rules.check_new(&url, &mut capacity).unwrap();
    let why = rules.check_new(&url, &mut capacity).unwrap_err();
    assert_eq!(why, "5000 feeds follow the list, which is the limit");
    let stored = Feeds::following(&format!("{A}{B}")).stored.into_iter().map(Arc::new);
    assert_eq!(rules.capacity(&stored.collect::<Vec<_>>()), LIST_FEEDS - 2);
    // One at a public address adds no feed of a host of the operator's own.
    let private = Url::parse("http://intranet.example/feed").unwrap();
    let public = Url::parse("https://a.example/").unwrap();
    for (at, adds) in [("https://b.example/", false), ("http://127.0.0.1:8000/list", true)] {
        let list = FeedRecord::new(name("ours"), at, FeedSource::Api);
        let allow = AllowPrivate::only(["intranet.example:80", "127.0.0.1:8000"]).unwrap();
        let rules = self::rules("ours", false);
        let rules = ListRules { allow, lead_scope: LeadScope::of_feed(&list), ..rules };
        assert_eq!(rules.check_new(&private, &mut 9).is_ok(), adds, "{at}");
        rules.check_new(&public, &mut 9).unwrap();
    }
}
