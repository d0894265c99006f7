//! Two texts word by word: what stayed, what went, what came. Pure but for the time it may take.

use serde::Serialize;
use similar::{Algorithm, ChangeTag, TextDiff};
use std::mem::take;
use std::time::Duration;
use tokio::time::Instant;
use utoipa::ToSchema;

/// The longest text that is compared word by word, in bytes.
pub(super) const TEXT_LIMIT: usize = 256 * 1024;
/// How long the comparison of two versions may take, all their fields together; what is left then is
/// only said to differ.
pub(super) const TIME_LIMIT: Duration = Duration::from_millis(500);
/// The most text that a comparison shows, in bytes; of what is longer it is only said that it differs.
pub(super) const SHOWN_LIMIT: usize = 1024 * 1024;
/// What each piece that is shown counts for more: it is an element of the page.
const PIECE: usize = 50;
/// The longest value that is read for what a reader sees of it, in bytes; text with its markup.
pub(super) const VALUE_LIMIT: usize = 4 * TEXT_LIMIT;
/// How long the comparisons of a document of many may take.
const ENTRIES_TIME_LIMIT: Duration = Duration::from_secs(3);
/// The most text that one of them shows.
const ENTRY_SHOWN_LIMIT: usize = 64 * 1024;
/// How many words that stayed are shown before and after a change.
const AROUND: usize = 16;

/// A piece of text, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DifferentPiece)]
pub(crate) enum TextPiece {
    /// It is in both.
    Same(String),
    /// It is in the older only.
    Deleted(String),
    /// It is in the newer only.
    Inserted(String),
    /// So many words are in both and not shown.
    SkippedWords(usize),
}

impl TextPiece {
    /// The words; empty where they are skipped.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Same(text) | Self::Deleted(text) | Self::Inserted(text) => text,
            Self::SkippedWords(_) => "",
        }
    }
}

/// What came of comparing two texts: the pieces in order, and, as a sentence, which limit was met.
pub(super) type TextComparison = (Vec<TextPiece>, Option<String>);

/// What is left for a comparison of two versions to take, or for all those of one answer. What is waited for does not
/// count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompareBudget {
    pub(super) time: Duration,
    bytes: usize,
}

impl CompareBudget {
    /// All that the comparison of two versions may take.
    pub(crate) const WHOLE: Self = Self { time: TIME_LIMIT, bytes: SHOWN_LIMIT };
    /// All that the comparisons of a document of many may take.
    pub(crate) const FOR_ENTRIES: Self =
        Self { time: ENTRIES_TIME_LIMIT, bytes: ENTRY_SHOWN_LIMIT };

    /// What the next of them may take: how much is shown of one does not depend on those before it.
    pub(crate) const fn next_entry(&mut self) {
        self.bytes = ENTRY_SHOWN_LIMIT;
    }

    /// Whether two values of at most `limit` bytes may be read; else what is said of them.
    pub(super) fn allows(&self, old: &str, new: &str, limit: usize) -> Result<(), String> {
        let longest = old.len().max(new.len());
        if longest > limit {
            return Err(format!(
                "The text is too long to be compared word by word: it has {longest} bytes, the limit is \
                 {limit}. The bytes of both versions can be had whole."
            ));
        }
        if self.time.is_zero() {
            return Err(format!(
                "It differs; what in it is not told, for the comparison took as long as it may, {} ms.",
                TIME_LIMIT.as_millis()
            ));
        }
        Ok(())
    }
}

/// Compares two texts.
pub(super) fn compare(old: &str, new: &str, budget: &mut CompareBudget) -> TextComparison {
    if let Err(limit) = budget.allows(old, new, TEXT_LIMIT) {
        return (Vec::new(), Some(limit));
    }
    let begun = Instant::now();
    let mut differ = TextDiff::configure();
    let diff = differ.algorithm(Algorithm::Myers).timeout(budget.time).diff_words(old, new);
    let mut runs: Vec<(ChangeTag, String)> = Vec::new();
    for change in diff.iter_all_changes() {
        match runs.last_mut() {
            Some((tag, text)) if *tag == change.tag() => text.push_str(change.value()),
            _ => runs.push((change.tag(), change.value().to_owned())),
        }
    }
    budget.time = budget.time.saturating_sub(begun.elapsed());
    let limit = budget.time.is_zero().then(|| {
        format!(
            "The comparison took as long as it may, {} ms: it shows more as changed than did.",
            TIME_LIMIT.as_millis()
        )
    });
    let pieces = skip_unchanged(merge_changes(runs));
    let shown = pieces.iter().map(|piece| piece.text().len() + PIECE).sum();
    let Some(rest) = budget.bytes.checked_sub(shown) else {
        let limit = format!(
            "It differs; what in it is not told, for that is {shown} bytes and {} are left of the \
             {SHOWN_LIMIT} that a comparison may show.",
            budget.bytes
        );
        return (Vec::new(), Some(limit));
    };
    budget.bytes = rest;
    (pieces, limit)
}

/// Changes that only white space parts are one change: what went, then what came.
fn merge_changes(runs: Vec<(ChangeTag, String)>) -> Vec<TextPiece> {
    let mut out: Vec<TextPiece> = Vec::with_capacity(runs.len());
    let (mut gone, mut new) = (String::new(), String::new());
    let mut runs = runs.into_iter().peekable();
    while let Some((tag, text)) = runs.next() {
        match tag {
            ChangeTag::Delete => gone.push_str(&text),
            ChangeTag::Insert => new.push_str(&text),
            ChangeTag::Equal => {
                let between = !(gone.is_empty() && new.is_empty()) && runs.peek().is_some();
                if between && text.trim().is_empty() {
                    gone.push_str(&text);
                    new.push_str(&text);
                    continue;
                }
                flush(&mut out, &mut gone, &mut new);
                out.push(TextPiece::Same(text));
            }
        }
    }
    flush(&mut out, &mut gone, &mut new);
    out
}

fn flush(out: &mut Vec<TextPiece>, gone: &mut String, new: &mut String) {
    out.extend(Some(take(gone)).filter(|text| !text.is_empty()).map(TextPiece::Deleted));
    out.extend(Some(take(new)).filter(|text| !text.is_empty()).map(TextPiece::Inserted));
}

/// The pieces without the words that stayed and stand far from any change.
fn skip_unchanged(pieces: Vec<TextPiece>) -> Vec<TextPiece> {
    let last = pieces.len().saturating_sub(1);
    let mut short = Vec::with_capacity(pieces.len());
    for (at, piece) in pieces.into_iter().enumerate() {
        let words: Vec<&str> = piece.text().split_inclusive(char::is_whitespace).collect();
        let (head, tail) = (if at == 0 { 0 } else { AROUND }, if at == last { 0 } else { AROUND });
        if !matches!(piece, TextPiece::Same(_)) || words.len() <= head + tail + AROUND {
            short.push(piece);
            continue;
        }
        let end = words.len() - tail;
        let same = |words: &[&str]| TextPiece::Same(words.concat());
        short.extend(words.get(..head).filter(|words| !words.is_empty()).map(same));
        short.push(TextPiece::SkippedWords(end - head));
        short.extend(words.get(end..).filter(|words| !words.is_empty()).map(same));
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compare(old: &str, new: &str) -> TextComparison {
        super::compare(old, new, &mut { CompareBudget::WHOLE })
    }

    /// The text of one side: all but what is in the other only.
    fn side(compared: &TextComparison, is_other: fn(&TextPiece) -> bool) -> String {
        compared.0.iter().filter(|piece| !is_other(piece)).map(TextPiece::text).collect()
    }

    #[test]
    fn what_is_too_long_or_late_is_not_compared() {
        let refused = |budget: CompareBudget, old: &str, new: &str| {
            let compared = super::compare(old, new, &mut { budget });
            assert!(compared.0.is_empty());
            compared.1.unwrap()
        };
        let spent = || CompareBudget { time: Duration::ZERO, ..CompareBudget::WHOLE };
        let long = "x".repeat(TEXT_LIMIT + 1);
        assert!(refused(CompareBudget::WHOLE, &long, "x").contains("the limit is 262144"));
        assert!(refused(spent(), "a", "b").starts_with("It differs"));
        let mut narrow = CompareBudget { bytes: 6 + 2 * PIECE, ..CompareBudget::WHOLE };
        let mut shown = |old: &str, new: &str| super::compare(old, new, &mut narrow).0.len();
        assert_eq!((shown("three", "four"), shown("one", "two"), shown("1", "2")), (0, 2, 0));
        let allows = |budget: CompareBudget, text: &str| budget.allows(text, "", VALUE_LIMIT);
        let long = "x".repeat(VALUE_LIMIT + 1);
        assert!(allows(CompareBudget::WHOLE, &long).unwrap_err().contains("too long"));
        assert!(allows(spent(), "x").unwrap_err().contains("took as long as it may"));
        assert_eq!(allows(CompareBudget::WHOLE, "x"), Ok(()));
        // Texts that have nothing in common are the worst case; they end in time all the same.
        let words = |seed: u64| {
            let words = (0..20_000_u64).map(|n| format!("{} ", n.wrapping_mul(seed) % 99_991));
            words.collect::<String>()
        };
        let (old, new) = (words(7_919), words(104_729));
        let compared = compare(&old, &new);
        assert!(!compared.0.is_empty());
        // A changed word is shown between its neighbours.
        let old = (0..200).map(|n| format!("word{n} ")).collect::<String>();
        let new = old.replace("word100 ", "changed ");
        let compared = compare(&old, &new);
        let [before, _, gone, new, _, after] = compared.0.as_slice() else { panic!() };
        assert_eq!([before, after], [&TextPiece::SkippedWords(84); 2]);
        assert_eq!(*gone, TextPiece::Deleted("word100".to_owned()));
        assert_eq!(*new, TextPiece::Inserted("changed".to_owned()));
        assert_eq!(compared.1, None);
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_the_pieces(
            old in "[ab <>&]{0,60}", new in "[ab <>&]{0,60}",
        ) {
            // So few words that none is skipped.
            let compared = compare(&old, &new);
            prop_assert_eq!(side(&compared, |it| matches!(it, TextPiece::Inserted(_))), old);
            prop_assert_eq!(side(&compared, |it| matches!(it, TextPiece::Deleted(_))), new);
        }
    }
}
