use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use tidegate_config as config;
use tidegate_core::model::FeedStanding;
use tidegate_core::model::testing::at;
use tidegate_format::parse::opml::read;

fn planned(outlines: &str, stored: &[FeedRecord], config: &Config) -> ImportPlan {
    plan_of(outlines, stored, config, (0, false, None))
}

fn rearranged(outlines: &str, stored: &[FeedRecord], config: &Config) -> ImportPlan {
    plan_of(outlines, stored, config, (0, true, None))
}

/// What becomes of a list with these outlines, so many seconds from the beginning.
pub(super) fn plan_of(
    outlines: &str,
    stored: &[FeedRecord],
    config: &Config,
    (seconds, rearrange, rules): (i64, bool, Option<ListRules>),
) -> ImportPlan {
    let list = read(&format!("<opml><body>\n{outlines}</body></opml>")).unwrap();
    let (endpoint, now) = (EndpointId::own("here").unwrap(), at(seconds));
    let stored = &stored.iter().cloned().map(Arc::new).collect::<Vec<_>>();
    plan(&list, &ExistingFeeds { stored, config, endpoint: &endpoint, now, rearrange, rules })
}

fn refused(plan: &ImportPlan) -> Vec<String> {
    let said = |r: &RefusedOutline| format!("{} {:?} {}", r.line, r.address.as_deref(), r.why);
    plan.refused.iter().map(said).collect()
}

#[test]
fn feeds_are_named_and_everything_else_is_said() {
    let plan = planned(
        "<outline text='F'><outline title=' The A ' xmlUrl='https://a.example/feed#x'/>\n\
         <outline xmlUrl='https://a.example/feed?b'/>\n<outline xmlUrl='https://a.example/feed'/>\n\
         <outline xmlUrl='feed://b.example/'/><outline xmlUrl='FEED:https://me:secret@c.example/'/>\n\
         <outline isComment='TRUE' text='C'><outline xmlUrl='https://off.example/'/></outline>\
         <outline xmlUrl='ftp://d.example/'/><outline xmlUrl='d.example/feed'/>\n\
         <outline xmlUrl='https://me:secret@'/><outline xmlUrl='http://a b/'/></outline>\n\
         <outline text='alone'/><outline type='include' url='http://l/'/>\n\
         <outline type='link' url='http://p/'/><outline type='vfolder' text='new'/>\n\
         <outline xmlUrl='https://gone.example/'><sx:sync id='x' version='2' deleted='true'>\
         <sx:history by='A'/></sx:sync></outline>",
        &[],
        &Config::default(),
    );
    let new: Vec<_> = plan.new.iter().map(|r| (r.name.as_str(), r.url.as_str())).collect();
    let expected = [
        ("a-example-feed", "https://a.example/feed"),
        ("a-example-feed-d532orrb", "https://a.example/feed?b"),
        ("b-example", "http://b.example/"),
        ("c-example", "https://c.example/"),
        ("d-example-feed", "http://d.example/feed"),
    ];
    assert_eq!(new, expected);
    assert_eq!(plan.new[3].access.as_ref().unwrap().describe(), "a user and a password");
    assert_eq!(plan.new[0].enrolment.title.as_deref(), Some("The A"));
    assert_eq!(plan.new[0].enrolment.history.len(), 1);
    assert_eq!(plan.done.deleted, 1);
    let said = refused(&plan);
    for (line, part) in [
        (4, "it stands in line 2 already"),
        (6, "the scheme \"ftp\""),
        (6, "it is commented out"),
        (7, "is not a web address"),
        (7, "white space"),
        (8, "\"alone\" has neither an address nor feeds in it"),
        (8, "another list"),
        (9, "no feed"),
        (9, "\"new\" is a search"),
    ] {
        let found = said.iter().any(|s| s.starts_with(&format!("{line} ")) && s.contains(part));
        assert!(found, "{line} {part}: {said:#?}");
    }
    assert_eq!(said.len(), 9, "{said:#?}");
    assert!(!said.concat().contains("secret"), "{said:#?}");
    // An address that is cut is none.
    let cut = "<outline xmlUrl='https://a.example/'/>\n<outline text='B' xmlUrl='https://b.exa";
    let list = read(&format!("<opml><body>{cut}")).unwrap();
    let (endpoint, now) = (EndpointId::own("here").unwrap(), at(0));
    let (stored, config, endpoint) = (&[][..], &Config::default(), &endpoint);
    let existing = ExistingFeeds { stored, config, endpoint, now, rearrange: false, rules: None };
    let plan = super::plan(&list, &existing);
    assert_eq!(plan.new.len(), 1, "{plan:?}");
    assert!(refused(&plan).iter().any(|said| said.contains("ends within it")), "{plan:?}");
}

/// The list of this gateway, arranged by a reader who knows its addresses alone.
#[test]
fn what_this_gateway_publishes_stands_for_its_upstream() {
    for server in ["public_url=\"https://gate.example\"", "listen=\"127.0.0.1:7070\""] {
        let config = config::check("f", &format!("[server]\n{server}\n")).unwrap().config;
        let base =
            if server.starts_with('p') { "https://gate.example" } else { "http://127.0.0.1:7070" };
        let stored = planned("<outline text='A' xmlUrl='https://a.example/'/>", &[], &config).new;
        let name = stored[0].name.as_str();
        let list = format!(
            "<outline text='F'><outline text='Mine' xmlUrl='{base}/feeds/{name}'/></outline>\
             <outline xmlUrl='{base}/feeds/all'/>"
        );
        let plan = rearranged(&list, &stored, &config);
        assert_eq!((plan.done.known, plan.new.len()), (1, 0), "{server}");
        let place = &plan.placed[0].enrolment.places[0];
        assert_eq!(place.folders.len(), 1);
        assert_eq!(place.label.text.as_deref(), Some("Mine"));
        assert!(refused(&plan)[0].contains("no upstream of that name"));
    }
    // What the gateway has is left.
    let config = "[server]\npublic_url=\"https://gate.example\"\n[[feed]]\nname=\"b-example\"\n\
        url=\"https://other.example/\"\n";
    let config = config::check("f", config).unwrap().config;
    let mut stored = planned("<outline xmlUrl='https://a.example/'/>", &[], &config).new;
    let again = "<outline xmlUrl='https://a.example/'/><outline xmlUrl='https://other.example/'/>\
        <outline xmlUrl='https://b.example/'/><outline xmlUrl='https://gate.example/feeds/x'/>";
    let plan = planned(again, &stored, &config);
    assert_eq!(plan.done.known, 2);
    assert_eq!(plan.new.len(), 1);
    assert_eq!(plan.new[0].name.as_str(), "b-example-luo5tbey", "the configuration has that name");
    assert!(refused(&plan)[0].contains("this gateway itself"));
    assert!(plan.new[0].enrolment.changed() > stored[0].enrolment.changed());
    stored[0].standing = FeedStanding::Gone;
    assert!(refused(&planned(again, &stored, &config))[0].contains("was removed"));
}

/// An outline of a list: a feed by its number, or a folder by its name.
#[derive(Debug, Clone)]
enum Node {
    Feed(u8, u8),
    Folder(u8, Vec<Node>),
}

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    let feed = (0..12_u8, 0..3_u8).prop_map(|(feed, called)| Node::Feed(feed, called));
    let node = feed.prop_recursive(4, 40, 6, |inner| {
        (0..3_u8, vec(inner, 0..6)).prop_map(|(name, inside)| Node::Folder(name, inside))
    });
    vec(node, 0..6)
}

fn written(nodes: &[Node]) -> String {
    let one = |node: &Node| match node {
        Node::Feed(feed, called) => {
            format!("<outline text='n{called}' category='/c' xmlUrl='https://h.example/{feed}'/>")
        }
        Node::Folder(name, inside) => {
            format!("<outline text='f{name}'>{}</outline>", written(inside))
        }
    };
    nodes.iter().map(one).collect()
}

/// The lines of a list as it is to be: a feed once in each folder, and no folder without a feed.
fn lines(nodes: &[Node], depth: usize) -> Vec<String> {
    let (mut lines, mut here) = (Vec::new(), Vec::new());
    for node in nodes {
        match node {
            Node::Feed(feed, _) if here.contains(feed) => {}
            Node::Feed(feed, called) => {
                here.push(*feed);
                lines.push(format!("{}n{called} h-example-{feed}", " ".repeat(depth)));
            }
            Node::Folder(name, inside) => {
                let inside = self::lines(inside, depth + 1);
                if !inside.is_empty() {
                    lines.push(format!("{}f{name}", " ".repeat(depth)));
                    lines.extend(inside);
                }
            }
        }
    }
    lines
}

/// The lines of the list that feeds make.
fn listing(records: &[FeedRecord]) -> Vec<String> {
    let (mut lines, mut open) = (Vec::new(), Vec::new());
    for (record, place) in tidegate_core::model::listed(records) {
        let place = place.unwrap();
        let way: Vec<u32> = place.folders.iter().map(|folder| folder.position).collect();
        let same = way.iter().zip(&open).take_while(|(one, other)| one == other).count();
        for (depth, folder) in place.folders.iter().enumerate().skip(same) {
            lines.push(format!("{}{}", " ".repeat(depth), folder.label.name().unwrap()));
        }
        assert_eq!(place.label.category.as_deref(), Some("/c"));
        let name = place.label.name().unwrap();
        lines.push(format!("{}{name} {}", " ".repeat(way.len()), record.name));
        open = way;
    }
    lines
}

fn after(stored: Vec<FeedRecord>, plan: ImportPlan) -> Vec<FeedRecord> {
    let all = stored.into_iter().chain(plan.placed).chain(plan.new);
    let by_name: BTreeMap<_, _> = all.map(|record| (record.name.clone(), record)).collect();
    by_name.into_values().collect()
}

fn numbers_are_their_own(stored: &[FeedRecord]) {
    for Enrolment { places, next_place, .. } in stored.iter().map(|record| &record.enrolment) {
        let numbers: HashSet<u32> = places.iter().map(|place| place.number).collect();
        assert!(numbers.len() == places.len() && numbers.iter().all(|number| number < next_place));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_list_keeps_its_shape(nodes in nodes(), other in nodes()) {
        let config = Config::default();
        let (first, second) = (written(&nodes), written(&other));
        let stored = after(Vec::new(), planned(&first, &[], &config));
        prop_assert_eq!(listing(&stored), lines(&nodes, 0));
        let again = planned(&first, &stored, &config);
        prop_assert!(again.new.is_empty() && again.placed.is_empty(), "{:?}", again);
        // What is there stays where it is, in its order.
        let both = after(stored.clone(), planned(&second, &stored, &config));
        numbers_are_their_own(&both);
        for record in &stored {
            prop_assert!(both.contains(record));
        }
        let again = planned(&second, &both, &config);
        prop_assert!(again.new.is_empty() && again.placed.is_empty(), "{:?}", again);
        // Where the list is to say it, its feeds stand in its shape, and the others behind them.
        let sorted = after(both.clone(), rearranged(&second, &both, &config));
        numbers_are_their_own(&sorted);
        prop_assert_eq!(sorted.len(), both.len());
        let of_second: HashSet<u8> = feeds(&other);
        let is_of_second =
            |r: &FeedRecord| of_second.iter().any(|f| r.name.as_str() == format!("h-example-{f}"));
        let those: Vec<_> = sorted.iter().filter(|r| is_of_second(r)).cloned().collect();
        prop_assert_eq!(listing(&those), lines(&other, 0));
        let again = rearranged(&second, &sorted, &config);
        prop_assert!(again.new.is_empty() && again.placed.is_empty(), "{:?}", again);
    }
}

fn feeds(nodes: &[Node]) -> HashSet<u8> {
    let of = |node: &Node| match node {
        Node::Feed(feed, _) => HashSet::from([*feed]),
        Node::Folder(_, inside) => feeds(inside),
    };
    nodes.iter().flat_map(of).collect()
}

#[test]
fn feeds_that_are_there_take_a_place_if_they_have_none() {
    let config = "[[feed]]\nname=\"mine\"\nurl=\"https://mine.example/\"\n";
    let config = config::check("f", config).unwrap().config;
    let mut stored = planned("<outline xmlUrl='https://a.example/'/>", &[], &config).new;
    stored[0].enrolment.set_places(Vec::new());
    let list = "<outline text='F'><outline text='A' xmlUrl='https://a.example/'/>\
        <outline text='M' xmlUrl='https://mine.example/'/></outline>";
    let plan = planned(list, &stored, &config);
    assert_eq!((plan.done.known, plan.new.len()), (2, 0));
    let listed: Vec<_> = plan.placed.iter().map(|r| (r.name.as_str(), r.source)).collect();
    assert_eq!(listed, [("a-example", FeedSource::Api), ("mine", FeedSource::File)]);
    assert_eq!(plan.placed[0].enrolment.version.value(), 2, "the list says something else of it");
    // One that has a place stays there, whatever another list says.
    let stored = after(stored, plan);
    let other = "<outline text='G'><outline text='B' xmlUrl='https://a.example/'/></outline>";
    assert!(planned(other, &stored, &config).placed.is_empty());
    let moved = rearranged(other, &stored, &config).placed;
    let place = &moved[0].enrolment.places[0];
    assert_eq!((place.label.name(), place.folders[0].label.name()), (Some("B"), Some("G")));
    assert_eq!(place.number, 0, "it is the outline that it was");
    // The folder that it left comes behind the new one.
    assert_eq!(moved[1].enrolment.places[0].folders[0].position, 1);
    // What is too deep, or too often there, is said.
    let depth = ListPlace::DEPTH + 2;
    let list = format!(
        "{}<outline text='A' xmlUrl='https://a.example/'/>{}",
        "<outline text='F'>".repeat(depth),
        "</outline>".repeat(depth)
    );
    let plan = planned(&list, &[], &Config::default());
    let folders = plan.new[0].enrolment.places[0].folders.len();
    assert_eq!((folders, plan.done.deeper), (ListPlace::DEPTH, 1));
    let folder = "<outline text='F'><outline text='A' xmlUrl='https://a.example/'/></outline>";
    let plan = planned(&folder.repeat(ListPlace::MOST + 1), &[], &Config::default());
    assert_eq!(plan.new[0].enrolment.places.len(), ListPlace::MOST);
    assert_eq!(plan.done.again, ListPlace::MOST - 1);
    assert!(refused(&plan)[0].contains("which is the limit"), "{plan:?}");
    // A feed may have feeds in it.
    let list = "<outline text='A' xmlUrl='https://a.example/'>\
        <outline text='B' xmlUrl='https://b.example/'/></outline>";
    let plan = planned(list, &[], &Config::default());
    let places: Vec<_> = plan.new.iter().map(|record| &record.enrolment.places[0]).collect();
    assert!(places[1].is_within(places[0]));
}
