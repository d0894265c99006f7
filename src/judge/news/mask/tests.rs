use super::*;
use crate::news::{changed, fingerprint};
use proptest::prelude::*;
use std::collections::BTreeSet;
use tidegate_core::model::*;
use tidegate_format::parse::{self, Limits};

const HOUR: u64 = 3600;

/// One item of a feed, as it is seen again and again.
struct Watch {
    known: LedgerEntry,
    feed: FeedNoise,
    now: Time,
    in_hold: bool,
}

fn blank(name: &str) -> LedgerEntry {
    let standing = ItemStatus::Current;
    LedgerEntry { standing, published: None, bytes: 0, ..LedgerEntry::left(name) }
}

impl Watch {
    fn new(fields: &str) -> Self {
        let now = Time::from_unix(1_800_000_000);
        let feed = FeedNoise::default();
        let mut watch = Self { known: blank("a"), feed, now, in_hold: false };
        watch.sees(fields);
        watch
    }

    /// Sees the item, after some hours.
    fn after(&mut self, hours: u64, fields: &str) -> MaskUpdate {
        self.now = self.now.plus(Duration::from_secs(hours * HOUR));
        self.sees(fields)
    }

    /// The same with a title alone: whether it counts.
    fn title(&mut self, title: &str) -> bool {
        !self.after(1, &format!("<title>{title}</title>")).loud.is_empty()
    }

    fn sees(&mut self, fields: &str) -> MaskUpdate {
        let text = format!("<rss version=\"2.0\"><channel><item>{fields}</item></channel></rss>");
        let document = parse::document(&text, None, &Limits::default()).unwrap();
        let fingerprint = fingerprint(&document.entries[0], &[]);
        let changed = changed(&self.known.prints, &fingerprint.prints);
        let lesson = learn(&MaskInput {
            fingerprint: &fingerprint,
            known: &self.known,
            feed: &self.feed,
            changed: &changed,
            is_comparable: true,
            in_hold: self.in_hold,
            now: self.now,
        });
        for varied in &lesson.varied {
            vote(&mut self.feed, varied, self.now);
        }
        self.known.noise.restless.clone_from(&lesson.restless);
        if self.in_hold {
            self.known.noise.held = lesson.is_sure;
        } else {
            self.known.noise.held = false;
            self.known.prints = fingerprint.prints;
            self.known.noise.shape = fingerprint.shape;
        }
        lesson
    }

    /// Another item of the same feed.
    fn other(self, fields: &str) -> Self {
        let mut other = Self { known: blank("b"), ..self };
        other.sees(fields);
        other
    }
}

#[test]
fn a_counter_goes_out_twice_and_then_never_rests() {
    let mut watch = Watch::new("<title>Great (1 view)</title>");
    let told: Vec<bool> = (2..20).map(|n| watch.title(&format!("Great ({n} views)"))).collect();
    assert_eq!(told[..2], [true, true]);
    assert!(told[2..].iter().all(|told| !told), "{told:?}");
    assert!(watch.known.noise.restless[0].masked.is_some());
}

#[test]
fn a_change_of_words_always_goes_out() {
    let mut watch = Watch::new("<title>Two dead</title>");
    for title in ["Three dead", "Three dead, city closed", "Four dead", "City opens", "Five dead"] {
        assert!(watch.title(title), "{title}");
    }
    let mut watch = Watch::new("<title>Storm (1 views)</title>");
    let told: Vec<bool> = (2..6).map(|n| watch.title(&format!("Storm ({n} views)"))).collect();
    assert_eq!(told, [true, true, false, false]);
    assert!(watch.title("Storm is over (6 views)"), "with a change of the counter");
    assert!(!watch.title("Storm is over (7 views)"), "the counter is found again");
    assert!(watch.title("Storm is back (7 views)"), "without one");
}

#[test]
fn only_the_span_that_varies_is_masked() {
    let mut watch = Watch::new("<title>12 dead, says the mayor (1 views)</title>");
    for n in 2..8 {
        watch.title(&format!("12 dead, says the mayor ({n} views)"));
    }
    assert!(!watch.title("12 dead, says the mayor (9 views)"));
    assert!(watch.title("13 dead, says the mayor (9 views)"), "another number is news");
    assert!(watch.title("14 dead, says the mayor (10 views)"), "also beside the counter");
    assert!(!watch.title("14 dead, says the mayor (11 views)"));
}

#[test]
fn two_counters_in_one_text() {
    let mut watch = Watch::new("<title>Rated 4.5 by 12 people</title>");
    let rated = |n: u32| format!("Rated 4.{} by {} people", n % 7, n * 3);
    let told: Vec<bool> = (1..9).map(|n| watch.title(&rated(n))).collect();
    assert_eq!(told[..3], [true, true, false], "{told:?}");
    assert!(told[2..].iter().all(|told| !told), "{told:?}");
}

#[test]
fn spans_of_all_kinds() {
    for texts in [
        [
            "updated 1 minute ago",
            "updated 5 minutes ago",
            "updated an hour ago",
            "updated 2 hours ago",
        ],
        ["by Monday, 1 June", "by Tuesday, 2 June", "by Friday, 5 June", "by Sunday, 7 June"],
        ["image a9f1", "image 77c0", "image 0b1d", "image 5e5e"],
        ["已有1人阅读", "已有20人阅读", "已有300人阅读", "已有4000人阅读"],
    ] {
        let mut watch = Watch::new(&format!("<title>{}</title>", texts[0]));
        let told: Vec<bool> = texts[1..].iter().map(|text| watch.title(text)).collect();
        assert_eq!(told, [true, true, false], "{texts:?}");
    }
    let link = |id: &str| format!("<link>http://e.org/read?session={id}&amp;n=1</link>");
    let mut watch = Watch::new(&link("abcdef"));
    let ids = ["bcdefa", "cdefab", "defabc", "efabcd"];
    let told = ids.map(|id| !watch.after(1, &link(id)).loud.is_empty());
    assert_eq!(told, [true, true, false, false], "a parameter of a link");
}

#[test]
fn releases_are_no_counters() {
    let mut watch = Watch::new("<title>Download Tidegate 1.4.0</title>");
    assert!((1..9).all(|n| watch.title(&format!("Download Tidegate 1.4.{n}"))));
}

#[test]
fn changes_that_are_far_apart_are_no_row() {
    let mut watch = Watch::new("<title>Download version 1</title>");
    for n in 2..9 {
        let lesson = watch.after(72, &format!("<title>Download version {n}</title>"));
        assert!(!lesson.loud.is_empty(), "{n}");
    }
}

#[test]
fn an_edit_between_them_ends_the_row() {
    let mut watch = Watch::new("<title>Part 1</title><description>a</description>");
    let mut loud = |title: u32, text: &str| {
        let fields = format!("<title>Part {title}</title><description>{text}</description>");
        !watch.after(1, &fields).loud.is_empty()
    };
    assert!(loud(2, "a") && loud(3, "a"));
    assert!(loud(3, "b"));
    assert!(loud(4, "b") && loud(5, "b"), "counted anew");
    assert!(!loud(6, "b"));
    assert!(loud(7, "c"), "what changes with an edit goes out with it");
}

#[test]
fn a_mask_is_lifted_when_the_field_has_rested() {
    let title = |n: u32| format!("<title>{n} views</title>");
    let mut watch = Watch::new(&title(1));
    let mut due = None;
    for n in 2..6 {
        due = watch.after(6, &title(n)).due;
    }
    assert_eq!(due, Some(watch.now.plus(LEAST_REST)), "when it comes out");
    assert!(!watch.after(71, &title(6)).loud.is_empty() || watch.known.noise.restless[0].pace > 0);
    // The longest rest was 71 hours, so that four times as long is patience enough.
    assert!(watch.after(4 * 71, &title(7)).loud.is_empty());
    assert!(!watch.after(31 * 24, &title(8)).loud.is_empty(), "after a month it is news");
    assert!(!watch.after(1, &title(9)).loud.is_empty(), "and counted anew");
}

#[test]
fn a_reverted_edit_is_an_edit() {
    let mut watch = Watch::new("<title>Kim reportedly well</title>");
    assert!(watch.title("Kim well after surgery"));
    assert!(watch.title("Kim reportedly well"));
    assert!(watch.title("Kim well after surgery"));
}

#[test]
fn what_three_items_have_shown_holds_for_all() {
    let title = |name: &str, n: u32| format!("<title>{name} ({n} views)</title>");
    let mut watch = Watch::new(&title("One", 1));
    for name in ["One", "Two", "Three"] {
        for n in 2..6 {
            watch.sees(&title(name, n));
        }
        watch = watch.other("<title>x</title>");
    }
    let span = &watch.feed.spans[0];
    assert_eq!((span.items, span.before.as_deref()), (3, None));
    assert_eq!(span.after.as_deref(), Some(" view"));
    let said = watch.feed.describe();
    assert!(said[0].contains("before \" view\" in title never rests"), "{said:?}");
    let mut fresh = watch.other(&title("Four", 1));
    let lesson = fresh.after(1, &title("Four", 2));
    assert!(lesson.loud.is_empty(), "from the first change on");
    assert_eq!(lesson.due, None, "it is noise, so that it need not come out");
    assert!(fresh.title("Four and more (2 views)"));
    assert!(fresh.title("Four and more (2 injured)"));
    assert!(fresh.title("Four and more (3 injured)"));
}

#[test]
fn a_held_document_is_counted_once() {
    let title = |n: u32| format!("<title>{n} views</title>");
    let mut watch = Watch::new(&title(1));
    watch.in_hold = true;
    for _ in 0..9 {
        assert!(!watch.after(1, &title(2)).loud.is_empty());
    }
    assert_eq!(watch.known.noise.restless[0].changes, 1);
    assert!(!watch.after(1, &title(3)).loud.is_empty());
    assert!(watch.after(1, &title(4)).loud.is_empty(), "different documents are the proof");
}

#[test]
fn what_was_held_back_with_noise_is_not_lost() {
    let title =
        |words: &str, n: u32, views: u32| format!("<title>{n} {words}, {views} views</title>");
    // Words, which changed in one of the held documents, and a number that did in another.
    for (words, injured) in [("hurt", 5), ("injured", 6)] {
        let mut watch = Watch::new(&title("injured", 5, 1));
        // Its numbers were told apart before.
        watch.after(1, &title("injured", 5, 2));
        watch.in_hold = true;
        watch.after(1, &title(words, injured, 3));
        for views in 4..12 {
            let lesson = watch.after(1, &title(words, injured, views));
            assert!(!lesson.loud.is_empty(), "{words} {injured} {views}");
        }
    }
}

#[test]
fn what_is_watched_is_bounded() {
    let fields = |changed: usize| {
        let field = |n: usize| format!("<f{n}>word {}</f{n}>", usize::from(n == changed));
        (0..20).map(field).collect::<String>()
    };
    let mut watch = Watch::new(&fields(0));
    for n in 1..20 {
        watch.after(1, &fields(n));
    }
    assert_eq!(watch.known.noise.restless.len(), Noise::RESTLESS_LIMIT);
    let numbers = |n: u32| (0..100).map(|at| format!("{} and ", at * n)).collect::<String>();
    let mut watch = Watch::new(&format!("<title>{}</title>", numbers(1)));
    assert!((2..9).all(|n| watch.title(&numbers(n))), "too many numbers to tell apart");
    assert!(watch.known.noise.restless[0].spans.is_empty());
    for n in 0..200_u32 {
        let place =
            crate::news::spans::placed("1 x", crate::news::spans::SpanContext::Text, 9).unwrap();
        let varied = Varied::new(&format!("f{n}"), &place[0], true);
        vote(&mut watch.feed, &varied, watch.now);
    }
    assert_eq!(watch.feed.spans.len(), FeedNoise::SPAN_LIMIT);
}

#[test]
fn what_varies_on_most_items_in_three_documents_holds_for_all_however_far_apart() {
    use crate::news::spans::{SpanContext, placed};
    let seen = |names: &[&str]| -> Vec<Vec<Varied>> {
        let one = |name: &&str| {
            let text = format!("{name} (7 views)");
            let places = placed(&text, SpanContext::Text, 9).unwrap();
            places.iter().map(|place| Varied::new("title", place, false)).collect()
        };
        names.iter().map(one).collect()
    };
    let sweep = |feed: &mut FeedNoise, names: &[&str], items: usize, days: u64| {
        let varied = seen(names);
        let varied: Vec<&[Varied]> = varied.iter().map(Vec::as_slice).collect();
        let now = Time::from_unix(0).plus(Duration::from_secs(days * DAY));
        sweep_spans(feed, &varied, items, now)
    };
    let names = ["One", "Two", "Six", "Ten"];
    let mut feed = FeedNoise::default();
    assert!(!sweep(&mut feed, &names, 7, 0) && !sweep(&mut feed, &names, 7, 9));
    assert!(!sweep(&mut feed, &names[..3], 7, 12), "too few of them");
    assert!(sweep(&mut feed, &names, 7, 20));
    assert!(!sweep(&mut feed, &names, 7, 21), "it holds already");
    let [span] = feed.spans.as_slice() else { panic!("{:?}", feed.spans) };
    assert_eq!((span.before.as_deref(), span.after.as_deref()), (None, Some(" view")));
    assert!(feed.describe()[0].contains("as 4 items or whole documents have shown since "));
    // Where both sides are the same, both are wanted.
    let mut feed = FeedNoise::default();
    for day in 0..3 {
        sweep(&mut feed, &["One"; 4], 4, day);
    }
    let [span] = feed.spans.as_slice() else { panic!("{:?}", feed.spans) };
    assert_eq!((span.before.as_deref(), span.after.as_deref()), (Some("One ("), Some(" view")));
}

proptest! {
    /// Whatever happened before, a change of words is told.
    #[test]
    fn a_mask_never_hides_a_change_of_words(
        steps in proptest::collection::vec((0_u32..4, 0_u32..50, 0_u64..80), 1..30),
        word in "[b-df-hj-np-rtv-xz]{7,9}",
    ) {
        let title = |word: u32, n: u32| {
            let word = ["rain", "snow", "hail", "fog"][word as usize];
            format!("<title>{word} over {n} towns</title>")
        };
        let mut watch = Watch::new(&title(0, 1));
        let mut told = BTreeSet::from([0]);
        for (word, n, hours) in steps {
            let lesson = watch.after(hours, &title(word, n));
            // Words that were there before may go back and forth; new ones are told.
            prop_assert!(!told.insert(word) || !lesson.loud.is_empty());
        }
        let loud = watch.after(1, &format!("<title>{word} over 5 towns</title>")).loud;
        prop_assert!(!loud.is_empty());
    }

    /// What is learned of an item depends on nothing but its own changes.
    #[test]
    fn the_first_two_changes_of_an_item_go_out(first in 0_u32..99, second in 0_u32..99) {
        prop_assume!(first != 100 && second != first);
        let mut watch = Watch::new("<title>Rated 100 by 7</title>");
        for n in [first, second] {
            let is_told = watch.title(&format!("Rated {n} by 7"));
            prop_assert!(is_told);
        }
    }
}
