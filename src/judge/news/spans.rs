//! Machine-like spans of a text: numbers, dates, durations, tokens with digits in them, values of
//! parameters in addresses. What is left of a text without them is its shape.
//!
//! Words are no spans, whatever they stand next to, so that a text whose words change has another
//! shape. Only names of months, days and units belong to the number beside them. Numbers of
//! releases (`1.4.2`) are words: they change when somebody releases something.

mod scan;

use scan::Spans;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The most bytes of context on either side of a span.
const CONTEXT_LIMIT: usize = 40;

/// Where a text stands, which says what its spans are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanContext {
    /// Text to read; links stand in it as `→` and their address.
    Text,
    Address,
}

/// A span with what stands around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedSpan<'a> {
    /// The word before it and what parts them; digits stand as `#`. Empty at the start.
    pub before: String,
    /// What parts it from the word behind it, and that word. Empty at the end.
    pub after: String,
    /// What it says.
    pub value: &'a str,
}

/// The fingerprint of a text to read without its machine-like spans.
pub fn text_shape(text: &str) -> u64 {
    shape(text, SpanContext::Text)
}

/// The fingerprint of a text without its machine-like spans.
pub fn shape(text: &str, kind: SpanContext) -> u64 {
    if !may_have_spans(text) {
        return xxh3_64(text.as_bytes());
    }
    let mut hash = Xxh3::new();
    let mut from = 0;
    for span in Spans::new(text, kind) {
        hash.update(text.get(from..span.start).unwrap_or_default().as_bytes());
        hash.update(&[0]);
        from = span.end;
        if let Some(end) = plural(text, from) {
            hash.update(text.get(from..end - 1).unwrap_or_default().as_bytes());
            from = end;
        }
    }
    hash.update(text.get(from..).unwrap_or_default().as_bytes());
    hash.digest()
}

/// Every span of a text with its context; `None` where there are more than `limit`.
pub fn placed(text: &str, kind: SpanContext, limit: usize) -> Option<Vec<PlacedSpan<'_>>> {
    let mut placed = Vec::new();
    for span in Spans::new(text, kind) {
        if placed.len() == limit {
            return None;
        }
        placed.push(PlacedSpan {
            before: before(text.get(..span.start).unwrap_or_default()),
            after: after(text.get(span.end..).unwrap_or_default()),
            value: text.get(span).unwrap_or_default(),
        });
    }
    Some(placed)
}

/// A quick look: only texts with a digit, a parameter or an `ago` have spans.
fn may_have_spans(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit() || b == b'=' || b >= 0xc2) || text.contains(" ago")
}

/// Where the word behind a number ends, if it is a plural by its looks: `1 comment` and
/// `2 comments` have one shape.
fn plural(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?.strip_prefix(' ')?;
    let length = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    let ends = !rest.get(length..)?.starts_with(char::is_alphanumeric);
    (ends && length > 3 && rest.get(..length)?.ends_with('s')).then_some(at + 1 + length)
}

/// The last word of a text and what follows it.
fn before(text: &str) -> String {
    let words = text.trim_end_matches(|c: char| !c.is_alphanumeric());
    let start = words.rfind(|c: char| !c.is_alphanumeric());
    let start = start.map_or(0, |at| at + words.get(at..).map_or(0, first_length));
    let mut context = text.get(start..).unwrap_or_default();
    while context.len() > CONTEXT_LIMIT {
        context = context.get(first_length(context)..).unwrap_or_default();
    }
    masked(context)
}

/// What stands before the first word of a text, and that word, as a singular.
fn after(text: &str) -> String {
    let start = text.find(char::is_alphanumeric).unwrap_or(text.len());
    let word = text.get(start..).unwrap_or_default();
    let length = word.find(|c: char| !c.is_alphanumeric()).unwrap_or(word.len());
    let end = start + length;
    let end = plural(text, 0).filter(|plural| *plural == end).map_or(end, |end| end - 1);
    let mut context = text.get(..end).unwrap_or_default();
    while context.len() > CONTEXT_LIMIT {
        let last = context.chars().next_back().map_or(1, char::len_utf8);
        context = context.get(..context.len() - last).unwrap_or_default();
    }
    masked(context)
}

fn first_length(text: &str) -> usize {
    text.chars().next().map_or(1, char::len_utf8)
}

/// A context in which other numbers leave no trace.
fn masked(context: &str) -> String {
    let mut out = String::with_capacity(context.len());
    for c in context.chars() {
        match (c.is_numeric(), out.ends_with('#')) {
            (true, true) => {}
            (true, false) => out.push('#'),
            (false, _) => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
