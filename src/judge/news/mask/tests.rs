use super::*;
use crate::news::{changed, fingerprint};
use crate::testing::{read, rss};
use proptest::prelude::*;
use std::collections::BTreeSet;
use tidegate_core::model::*;

const HOUR: u64 = 3600;

/// One item of a feed, as it is seen again and again.
struct Watch {
    known: LedgerEntry,
    now: Time,
    in_hold: bool,
}

impl Watch {
    fn new(fields: &str) -> Self {
        let now = Time::from_unix(1_800_000_000);
        let standing = ItemStatus::Current;
        let left = LedgerEntry::left("a");
        let known = LedgerEntry { standing, published: None, bytes: 0, ..left };
        let mut watch = Self { known, now, in_hold: false };
        watch.sees(fields);
        watch
    }

    fn after(&mut self, hours: u64, fields: &str) -> MaskUpdate {
        self.now = self.now.plus(Duration::from_secs(hours * HOUR));
        self.sees(fields)
    }

    /// The same with a title alone: whether it counts.
    fn title(&mut self, title: &str) -> bool {
        !self.after(1, &format!("<title>{title}</title>")).counted.is_empty()
    }

    fn sees(&mut self, fields: &str) -> MaskUpdate {
        let text = rss(&format!("<item>{fields}</item>"));
        let document = read(&text);
        let fingerprint = fingerprint(&document.entries[0], &[]);
        let changed = changed(&self.known.prints, &fingerprint.prints);
        let lesson = learn(&MaskInput {
            fingerprint: &fingerprint,
            known: &self.known,
            changed: &changed,
            learns: true,
            in_hold: self.in_hold,
            now: self.now,
        });
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
}

/// Titles that follow each other within two days, and which of them count: `x` does.
#[test]
fn words_always_go_out_and_what_never_rests_twice() {
    for (titles, expected) in [
        ("Great (1 view)|Great (2 views)|Great (3 views)|Great (4 views)", "xx."),
        ("Two dead|Three dead|Three dead, city closed|Four dead|City opens", "xxxx"),
        ("Kim reportedly well|Kim well|Kim reportedly well|Kim well", "xxx"),
        // The counter is found again beside other words.
        ("A (1 view)|A (2 views)|A (3 views)|A (4 views)|A is over (5 views)", "xx.x"),
        ("A 1|A 2|A 3|A 4|A and more 5|A and more 6|A and less 6", "xx.x.x"),
        // Only the span that varies is masked: another number is news, also beside the counter.
        ("9 dead (1)|9 dead (2)|9 dead (3)|9 dead (4)|8 dead (4)|7 dead (5)|7 dead (6)", "xx.xx."),
        // Two counters in one text.
        ("4.5 by 12|4.1 by 3|4.2 by 6|4.3 by 9|4.4 by 10", "xx.."),
        ("1 minute ago|5 minutes ago|an hour ago|2 hours ago", "xx."),
        ("by Monday, 1 June|by Tuesday, 2 June|by Friday, 5 June|by Sunday, 7 June", "xx."),
        ("image a9f1|image 77c0|image 0b1d|image 5e5e", "xx."),
        ("已有1人阅读|已有20人阅读|已有300人阅读|已有4000人阅读", "xx."),
        // Releases are no counters.
        ("Tidegate 1.4.0|Tidegate 1.4.1|Tidegate 1.4.2|Tidegate 1.4.3", "xxx"),
    ] {
        let titles: Vec<&str> = titles.split('|').collect();
        let mut watch = Watch::new(&format!("<title>{}</title>", titles[0]));
        let told = titles[1..].iter().map(|title| if watch.title(title) { 'x' } else { '.' });
        assert_eq!(told.collect::<String>(), expected, "{titles:?}");
        let masked = watch.known.noise.restless.iter().any(|field| field.masked.is_some());
        assert_eq!(masked, expected.contains('.'), "{titles:?}");
    }
    let link = |id: &str| format!("<link>http://e.org/read?session={id}&amp;n=1</link>");
    let mut watch = Watch::new(&link("abcdef"));
    let ids = ["bcdefa", "cdefab", "defabc", "efabcd"];
    let told = ids.map(|id| !watch.after(1, &link(id)).counted.is_empty());
    assert_eq!(told, [true, true, false, false], "a parameter of a link");
}

#[test]
fn an_edit_between_them_ends_the_row() {
    let mut watch = Watch::new("<title>Part 1</title><description>a</description>");
    let mut counted = |title: u32, text: &str| {
        let fields = format!("<title>Part {title}</title><description>{text}</description>");
        !watch.after(1, &fields).counted.is_empty()
    };
    assert!(counted(2, "a") && counted(3, "a"));
    assert!(counted(3, "b"));
    assert!(counted(4, "b") && counted(5, "b"), "counted anew");
    assert!(!counted(6, "b"));
    assert!(counted(7, "c"), "what changes with an edit goes out with it");
}

#[test]
fn a_mask_is_lifted_when_the_field_has_rested_and_what_is_far_apart_is_no_row() {
    let mut watch = Watch::new("<title>Download version 1</title>");
    for n in 2..9 {
        let lesson = watch.after(72, &format!("<title>Download version {n}</title>"));
        assert!(!lesson.counted.is_empty(), "{n}");
    }
    let title = |n: u32| format!("<title>{n} views</title>");
    let mut watch = Watch::new(&title(1));
    let mut due = None;
    for n in 2..6 {
        due = watch.after(6, &title(n)).due;
    }
    assert_eq!(due, Some(watch.now.plus(REST)), "when it comes out");
    assert!(watch.after(4 * 24, &title(6)).counted.is_empty());
    assert!(!watch.after(4 * 24 + 1, &title(8)).counted.is_empty(), "news after a longer rest");
    assert!(!watch.after(1, &title(9)).counted.is_empty(), "and counted anew");
}

#[test]
fn what_is_held_is_counted_once_and_not_lost_with_noise() {
    let views = |n: u32| format!("<title>{n} views</title>");
    let mut watch = Watch::new(&views(1));
    watch.in_hold = true;
    for _ in 0..9 {
        assert!(!watch.after(1, &views(2)).counted.is_empty());
    }
    assert_eq!(watch.known.noise.restless[0].changes, 1);
    assert!(!watch.after(1, &views(3)).counted.is_empty());
    assert!(watch.after(1, &views(4)).counted.is_empty(), "different documents are the proof");
    let title =
        |words: &str, n: u32, views: u32| format!("<title>{n} {words}, {views} views</title>");
    // Words, which changed in one of the held documents, and a number that did in another.
    for (words, injured) in [("hurt", 5), ("injured", 6)] {
        let mut watch = Watch::new(&title("injured", 5, 1));
        // Its numbers were told apart before.
        watch.after(1, &title("injured", 5, 2));
        watch.in_hold = true;
        for views in 3..12 {
            let lesson = watch.after(1, &title(words, injured, views));
            assert!(views == 3 || !lesson.counted.is_empty(), "{words} {injured} {views}");
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
            prop_assert!(!told.insert(word) || !lesson.counted.is_empty());
        }
        let counted = watch.after(1, &format!("<title>{word} over 5 towns</title>")).counted;
        prop_assert!(!counted.is_empty());
    }
}
