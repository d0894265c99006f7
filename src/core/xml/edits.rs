//! Repairs to a text, kept apart from it until the end.

use crate::xml::cut;
use std::borrow::Cow;
use std::ops::Range;

/// A piece of the document's text that is replaced; a deletion where `with` is empty, an insertion
/// where the range is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Byte offsets into the document's text.
    pub range: Range<usize>,
    /// What stands there instead.
    pub with: Cow<'static, str>,
}

/// The edits of one span of the document, in order and without overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edits {
    span: Range<usize>,
    list: Vec<Edit>,
}

impl Edits {
    /// Puts edits of `span` in order. Of two that overlap the outer one counts, which is the one
    /// that takes a whole element out.
    pub fn new(span: Range<usize>, mut list: Vec<Edit>) -> Self {
        list.sort_by_key(|edit| (edit.range.start, std::cmp::Reverse(edit.range.end)));
        // An insertion at the start of a deletion sorts behind it; it must come before.
        let mut kept: Vec<Edit> = Vec::with_capacity(list.len());
        let mut reached = span.start;
        for edit in list {
            if edit.range.end > span.end {
                continue;
            }
            if edit.range.start >= reached {
                reached = edit.range.end;
                kept.push(edit);
            } else if edit.range.is_empty()
                && let Some(last) = kept.last()
                && last.range.start == edit.range.start
            {
                kept.insert(kept.len() - 1, edit);
            }
        }
        Self { span, list: kept }
    }

    /// The text of the span with the edits made; borrowed where there are none.
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.list.is_empty() {
            return Cow::Borrowed(cut(text, self.span.clone()));
        }
        let mut out = String::with_capacity(self.span.len());
        let mut at = self.span.start;
        for edit in &self.list {
            out.push_str(cut(text, at..edit.range.start));
            out.push_str(&edit.with);
            at = edit.range.end;
        }
        out.push_str(cut(text, at..self.span.end));
        Cow::Owned(out)
    }

    /// Where a place of the document stands in the edited span, before insertions made there.
    pub fn before(&self, at: usize) -> usize {
        self.place(at, |range| range.end <= at && range.start < at)
    }

    /// Where a place of the document stands in the edited span, behind insertions made there.
    pub fn behind(&self, at: usize) -> usize {
        self.place(at, |range| range.end <= at)
    }

    fn place(&self, at: usize, counts: impl Fn(&Range<usize>) -> bool) -> usize {
        let mut place = at.saturating_sub(self.span.start);
        for edit in self.list.iter().take_while(|edit| edit.range.start <= at) {
            if counts(&edit.range) {
                place = (place + edit.with.len()).saturating_sub(edit.range.len());
            }
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applies_in_order_and_the_outer_wins() {
        let list = [
            (7..7, "+"),
            (2..4, "x"),
            (2..5, ""),
            (3..4, "x"),
            (2..2, "<"),
            (0..3, "!"),
            (8..10, "!"),
        ];
        let list = list.map(|(range, with)| Edit { range, with: Cow::Borrowed(with) });
        let edits = Edits::new(1..9, list.into());
        assert_eq!(edits.apply("0123456789"), "1<56+78");
        assert_eq!(edits.before(2), 1);
        assert_eq!(edits.behind(2), 2);
        assert_eq!(edits.before(5), 2);
        assert_eq!(edits.before(8), 6);
    }

    #[test]
    fn borrows_where_nothing_changes() {
        assert!(matches!(Edits::new(2..4, vec![]).apply("abcdef"), Cow::Borrowed("cd")));
    }
}
