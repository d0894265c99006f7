//! Machine-like spans of a text: numbers, dates, durations, tokens with digits in them, values of
//! parameters in addresses. What is left of a text without them is its shape.
//!
//! Words are no spans, whatever they stand next to, so that a text whose words change has another
//! shape. Only names of months, days and units belong to the number beside them. Numbers of
//! releases (`1.4.2`) are words: they change when somebody releases something.

mod scan;

use scan::Spans;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Where a text stands, which says what its spans are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanContext {
    /// Text to read; links stand in it as `→` and their address.
    Text,
    Address,
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

/// What every span of a text says; `None` if there are more than `limit`.
pub fn values(text: &str, kind: SpanContext, limit: usize) -> Option<Vec<&str>> {
    let spans = Spans::new(text, kind).take(limit + 1);
    let values: Vec<&str> = spans.filter_map(|span| text.get(span)).collect();
    (values.len() <= limit).then_some(values)
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

#[cfg(test)]
mod tests;
