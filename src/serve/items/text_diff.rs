//! Two texts word by word: what stayed, what went, what came. Pure but for the time it may take.

use similar::{Algorithm, ChangeTag, TextDiff};
use std::time::Duration;
use tokio::time::Instant;

/// The longest text that is compared word by word, in bytes.
pub(super) const TEXT_LIMIT: usize = 256 * 1024;
/// How long the comparison of two versions may take, all their fields together; what is left then is
/// only said to differ.
pub(super) const TIME_LIMIT: Duration = Duration::from_millis(500);
/// The most text that a comparison shows, in bytes, likewise.
pub(super) const SHOWN_LIMIT: usize = 1024 * 1024;
/// The most pieces that a comparison shows, likewise: each is an element of the page.
pub(super) const PIECES_LIMIT: usize = 20_000;
/// The longest value that is read for what a reader sees of it, in bytes; text with its markup.
pub(super) const VALUE_LIMIT: usize = 4 * TEXT_LIMIT;
/// The most bytes of values that a comparison reads, all fields of both sides together.
pub(super) const READ_LIMIT: usize = 8 * 1024 * 1024;
/// How long the comparisons of a document of many may take.
const ENTRIES_TIME_LIMIT: Duration = Duration::from_secs(3);
/// The most text and pieces that one of them shows.
const ENTRY_SHOWN_LIMIT: usize = 64 * 1024;
const ENTRY_PIECES_LIMIT: usize = 2_000;
/// How many words that stayed are shown before and after a change.
const AROUND: usize = 16;

/// What became of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is in both.
    Same,
    /// It is in the older only.
    Gone,
    /// It is in the newer only.
    New,
    /// So many words are in both and not shown.
    Skipped(usize),
}

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPiece {
    /// What became of it.
    pub(super) fate: Fate,
    /// The words; empty where they are skipped.
    pub(super) text: String,
}

/// What came of comparing two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextComparison {
    /// The pieces, in order.
    pub(super) pieces: Vec<TextPiece>,
    /// Which limit was met, as a sentence.
    pub(super) limit: Option<String>,
}

/// What is left for a comparison of two versions to take, or for all those of one answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompareBudget {
    until: Instant,
    /// How much time was left when the comparison before was over.
    left: Duration,
    bytes: usize,
    pieces: usize,
    read: usize,
}

impl CompareBudget {
    /// All of it, from now on.
    pub(crate) fn whole() -> Self {
        Self {
            until: Instant::now() + TIME_LIMIT,
            left: TIME_LIMIT,
            bytes: SHOWN_LIMIT,
            pieces: PIECES_LIMIT,
            read: READ_LIMIT,
        }
    }

    /// All that the comparisons of a document of many may take.
    pub(crate) fn for_entries() -> Self {
        Self { left: ENTRIES_TIME_LIMIT, ..Self::whole() }
    }

    /// What the next of them may take: how much is shown of one does not depend on those before it.
    pub(crate) const fn next_entry(&mut self) {
        self.bytes = ENTRY_SHOWN_LIMIT;
        self.pieces = ENTRY_PIECES_LIMIT;
        self.read = READ_LIMIT;
    }

    /// Whether two values may be read; else what is said of them.
    pub(super) fn read(&mut self, old: &str, new: &str) -> Result<(), TextComparison> {
        let longest = old.len().max(new.len());
        if longest > VALUE_LIMIT {
            return Err(TextComparison::too_long(longest, VALUE_LIMIT));
        }
        if self.time().is_none() {
            return Err(TextComparison::out_of_time());
        }
        let Some(rest) = self.read.checked_sub(old.len() + new.len()) else {
            return Err(TextComparison::only(format!(
                "It differs; what in it is not told, for a comparison reads {READ_LIMIT} bytes at \
                 most, which the fields before it took."
            )));
        };
        self.read = rest;
        Ok(())
    }

    /// Goes on with the next comparison: what was waited for does not count.
    pub(super) fn resume(&mut self) {
        self.until = Instant::now() + self.left;
    }

    /// Notes what a comparison has left to the next one.
    pub(super) fn pause(&mut self) {
        self.left = self.time().unwrap_or_default();
    }

    /// How much time is left; `None`: none.
    fn time(&self) -> Option<Duration> {
        self.until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }
}

impl TextComparison {
    /// Two texts of which nothing but this is said.
    const fn only(limit: String) -> Self {
        Self { pieces: Vec::new(), limit: Some(limit) }
    }

    fn too_long(longest: usize, limit: usize) -> Self {
        Self::only(format!(
            "The text is too long to be compared word by word: it has {longest} bytes, the limit is \
             {limit}. The bytes of both versions can be had whole."
        ))
    }

    fn out_of_time() -> Self {
        Self::only(format!(
            "It differs; what in it is not told, for the comparison took as long as it may, {} ms.",
            TIME_LIMIT.as_millis()
        ))
    }
}

/// Compares two texts.
pub(super) fn compare(old: &str, new: &str, budget: &mut CompareBudget) -> TextComparison {
    let longest = old.len().max(new.len());
    if longest > TEXT_LIMIT {
        return TextComparison::too_long(longest, TEXT_LIMIT);
    }
    let Some(left) = budget.time() else { return TextComparison::out_of_time() };
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(left).diff_words(old, new);
    let mut pieces: Vec<TextPiece> = Vec::new();
    for change in diff.iter_all_changes() {
        let fate = match change.tag() {
            ChangeTag::Equal => Fate::Same,
            ChangeTag::Delete => Fate::Gone,
            ChangeTag::Insert => Fate::New,
        };
        match pieces.last_mut() {
            Some(last) if last.fate == fate => last.text.push_str(change.value()),
            _ => pieces.push(TextPiece { fate, text: change.value().to_owned() }),
        }
    }
    let limit = budget.time().is_none().then(|| {
        format!(
            "The comparison took as long as it may, {} ms: it shows more as changed than did.",
            TIME_LIMIT.as_millis()
        )
    });
    let pieces = shortened(gathered(pieces));
    let shown = pieces.iter().map(|piece| piece.text.len()).sum();
    let Some(rest) = budget.bytes.checked_sub(shown) else {
        return TextComparison::only(format!(
            "It differs; what in it is not told, for that is {shown} bytes and {} are left of the \
             {SHOWN_LIMIT} that a comparison may show.",
            budget.bytes
        ));
    };
    let Some(more) = budget.pieces.checked_sub(pieces.len()) else {
        return TextComparison::only(format!(
            "It differs; what in it is not told, for that is in {} pieces and {} are left of the \
             {PIECES_LIMIT} that a comparison may show.",
            pieces.len(),
            budget.pieces
        ));
    };
    (budget.bytes, budget.pieces) = (rest, more);
    TextComparison { pieces, limit }
}

/// Changes that only white space parts are one change: what went, then what came.
fn gathered(pieces: Vec<TextPiece>) -> Vec<TextPiece> {
    let mut out: Vec<TextPiece> = Vec::with_capacity(pieces.len());
    let (mut gone, mut new) = (String::new(), String::new());
    let mut pieces = pieces.into_iter().peekable();
    while let Some(piece) = pieces.next() {
        match piece.fate {
            Fate::Gone => gone.push_str(&piece.text),
            Fate::New => new.push_str(&piece.text),
            _ => {
                let between = !(gone.is_empty() && new.is_empty()) && pieces.peek().is_some();
                if between && piece.text.trim().is_empty() {
                    gone.push_str(&piece.text);
                    new.push_str(&piece.text);
                    continue;
                }
                flush(&mut out, &mut gone, &mut new);
                out.push(piece);
            }
        }
    }
    flush(&mut out, &mut gone, &mut new);
    out
}

fn flush(out: &mut Vec<TextPiece>, gone: &mut String, new: &mut String) {
    for (fate, text) in [(Fate::Gone, gone), (Fate::New, new)] {
        if !text.is_empty() {
            out.push(TextPiece { fate, text: std::mem::take(text) });
        }
    }
}

/// The pieces without the words that stayed and stand far from any change.
fn shortened(pieces: Vec<TextPiece>) -> Vec<TextPiece> {
    let last = pieces.len().saturating_sub(1);
    let mut short = Vec::with_capacity(pieces.len());
    for (at, piece) in pieces.into_iter().enumerate() {
        let words: Vec<&str> = piece.text.split_inclusive(char::is_whitespace).collect();
        let (head, tail) = (if at == 0 { 0 } else { AROUND }, if at == last { 0 } else { AROUND });
        if piece.fate != Fate::Same || words.len() <= head + tail + AROUND {
            short.push(piece);
            continue;
        }
        let end = words.len() - tail;
        let same = |words: &[&str]| TextPiece { fate: Fate::Same, text: words.concat() };
        short.extend(words.get(..head).filter(|words| !words.is_empty()).map(same));
        short.push(TextPiece { fate: Fate::Skipped(end - head), text: String::new() });
        short.extend(words.get(end..).filter(|words| !words.is_empty()).map(same));
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compare(old: &str, new: &str) -> TextComparison {
        super::compare(old, new, &mut CompareBudget::whole())
    }

    fn side(compared: &TextComparison, other: Fate) -> String {
        let pieces = compared.pieces.iter().filter(|piece| piece.fate != other);
        pieces.map(|piece| piece.text.as_str()).collect()
    }

    #[test]
    fn a_changed_word_is_shown_between_its_neighbours() {
        let old = (0..200).map(|n| format!("word{n} ")).collect::<String>();
        let new = old.replace("word100 ", "changed ");
        let compared = compare(&old, &new);
        let fates: Vec<Fate> = compared.pieces.iter().map(|piece| piece.fate).collect();
        assert_eq!(
            fates,
            [Fate::Skipped(84), Fate::Same, Fate::Gone, Fate::New, Fate::Same, Fate::Skipped(84)]
        );
        assert_eq!(compared.pieces[2].text, "word100");
        assert_eq!(compared.pieces[3].text, "changed");
        assert_eq!(compared.limit, None);
    }

    #[test]
    fn what_is_too_long_is_not_compared() {
        let compared = compare(&"x".repeat(TEXT_LIMIT + 1), "x");
        assert!(compared.pieces.is_empty());
        assert!(compared.limit.unwrap().contains("the limit is 262144"));
    }

    #[test]
    fn what_nothing_is_left_for_is_only_said_to_differ() {
        let mut spent = CompareBudget { until: Instant::now(), ..CompareBudget::whole() };
        let compared = super::compare("a", "b", &mut spent);
        assert!(compared.pieces.is_empty() && compared.limit.unwrap().starts_with("It differs"));
        let mut narrow = CompareBudget { bytes: 10, ..CompareBudget::whole() };
        let mut shown = |old: &str, new: &str| super::compare(old, new, &mut narrow).pieces.len();
        assert_eq!((shown("one", "two"), shown("three", "four"), shown("12", "34")), (2, 0, 2));
        let mut few = CompareBudget { pieces: 5, ..CompareBudget::whole() };
        let mut shown = |old: &str, new: &str| super::compare(old, new, &mut few).pieces.len();
        assert_eq!((shown("a b c", "a x c"), shown("a b", "x b"), shown("a", "a")), (4, 0, 1));
    }

    #[test]
    fn what_is_read_has_a_bound_over_all_fields() {
        let mut budget = CompareBudget::whole();
        let long = "x".repeat(VALUE_LIMIT);
        let refused = |said: Result<(), TextComparison>| said.unwrap_err().limit.unwrap();
        assert!(refused(budget.read(&format!("{long}x"), "")).contains("too long"));
        let both = 2 * VALUE_LIMIT;
        for _ in 0..READ_LIMIT / both {
            assert_eq!(budget.read(&long, &long), Ok(()));
        }
        assert!(refused(budget.read("x", "")).contains("reads 8388608 bytes at most"));
        let mut spent = CompareBudget { until: Instant::now(), ..CompareBudget::whole() };
        assert!(refused(spent.read("x", "")).contains("took as long as it may"));
        spent.pause();
        spent.resume();
        assert!(refused(spent.read("x", "")).contains("took as long as it may"));
        let mut later = CompareBudget { until: Instant::now(), ..CompareBudget::whole() };
        later.resume();
        assert_eq!(later.read("x", ""), Ok(()));
    }

    /// Texts that have nothing in common are the worst case; they end in time all the same.
    #[test]
    fn the_worst_case_ends() {
        let words = |seed: u64| {
            let words = (0..20_000_u64).map(|n| format!("{} ", n.wrapping_mul(seed) % 99_991));
            words.collect::<String>()
        };
        let (old, new) = (words(7_919), words(104_729));
        let compared = compare(&old, &new);
        assert!(!compared.pieces.is_empty());
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_the_pieces(
            old in "[ab <>&]{0,60}", new in "[ab <>&]{0,60}",
        ) {
            // So few words that none is skipped.
            let compared = compare(&old, &new);
            prop_assert_eq!(side(&compared, Fate::New), old);
            prop_assert_eq!(side(&compared, Fate::Gone), new);
        }
    }
}
