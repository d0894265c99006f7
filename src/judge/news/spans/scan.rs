//! Finds the machine-like spans of a text, from left to right, in one pass.

use super::SpanContext;
use std::ops::Range;

/// Names that belong to the number beside them: of months, days, units, halves of the day and zones.
const TIME_WORDS: [&[&str]; 7] = [
    &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"],
    &["january", "february", "march", "april", "june", "july", "august", "september"],
    &["october", "november", "december", "am", "pm", "gmt", "utc"],
    &["mon", "monday", "tue", "tuesday", "wed", "wednesday", "thu", "thursday"],
    &["fri", "friday", "sat", "saturday", "sun", "sunday"],
    &["sec", "seconds", "min", "minutes", "hr", "hours", "days", "weeks", "months"],
    UNITS,
];

/// Names of units of which there may be `an` one ago.
const UNITS: &[&str] = &["second", "minute", "hour", "day", "week", "month", "year"];

/// The longest of those names.
const NAME_LIMIT: usize = 9;

/// What parts the digits of one number, date or time.
const JOINTS: &str = ".,:/-'+";

pub(super) struct Spans<'a> {
    text: &'a str,
    kind: SpanContext,
    /// Where the search goes on.
    at: usize,
    /// Where the last span ended.
    from: usize,
    /// Where the present word, up to white space, began.
    word: usize,
}

impl<'a> Spans<'a> {
    pub(super) const fn new(text: &'a str, kind: SpanContext) -> Self {
        Self { text, kind, at: 0, from: 0, word: 0 }
    }

    fn rest(&self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or_default()
    }

    fn in_address(&self) -> bool {
        self.kind == SpanContext::Address || self.rest(self.word).starts_with('→')
    }

    fn found(&mut self, span: Range<usize>) -> Range<usize> {
        self.at = span.end;
        self.from = span.end;
        span
    }

    /// Returns the number, date or token around a digit. The number of a release is no span; the error is its end.
    fn token(&self, digit: usize) -> Result<Range<usize>, usize> {
        let mut start = digit;
        let before = self.text.get(self.from..digit).unwrap_or_default();
        for c in before.chars().rev().take_while(|c| is_run(*c)) {
            start -= c.len_utf8();
        }
        let mut end = start + run(self.rest(start));
        loop {
            let rest = self.rest(end);
            let Some(joint) = rest.chars().next().filter(|c| JOINTS.contains(*c)) else { break };
            let next = rest.get(joint.len_utf8()..).unwrap_or_default();
            let length = run(next);
            let piece = next.get(..length).unwrap_or_default();
            let is_hex = length > 2 && piece.bytes().all(|b| b.is_ascii_hexdigit());
            if !(has_digit(piece) || (joint == '-' && is_hex)) {
                break;
            }
            end += joint.len_utf8() + length;
        }
        if is_release(self.text.get(start..end).unwrap_or_default()) {
            return Err(end);
        }
        Ok(start..end)
    }

    /// A token with the names of months, days and units on both sides of it.
    fn dated(&self, token: Range<usize>) -> Range<usize> {
        let Range { mut start, mut end } = token;
        while let Some(name) = name_before(self.text.get(self.from..start).unwrap_or_default()) {
            start -= name;
        }
        loop {
            let rest = self.rest(end);
            let gap = rest.len() - rest.trim_start_matches([' ', ',', '.']).len();
            if gap == 0 || gap > 2 {
                break;
            }
            let next = end + gap;
            let length = run(self.rest(next));
            let piece = self.rest(next).get(..length).unwrap_or_default();
            if is_time_word(piece) {
                end = next + length;
            } else if let (true, Ok(token)) = (has_digit(piece), self.token(next)) {
                end = token.end;
            } else {
                break;
            }
        }
        start..end
    }

    /// `an hour` before ` ago`, which begins at `ago`.
    fn one_ago(&self, ago: usize) -> Option<Range<usize>> {
        let text = self.text.get(self.from..ago)?;
        let mut words = text.rsplitn(3, ' ');
        let (unit, one) = (words.next()?, words.next()?);
        let is_one = is_name(unit, UNITS) && is_name(one, &["a", "an", "one"]);
        let ends = !self.rest(ago + 4).starts_with(char::is_alphanumeric);
        (is_one && ends).then(|| ago - unit.len() - 1 - one.len()..ago)
    }
}

impl Iterator for Spans<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            let at = self.at;
            self.at += 1;
            let is_digit = match byte {
                b'0'..=b'9' => true,
                b' ' => {
                    self.word = at + 1;
                    if self.rest(at).starts_with(" ago")
                        && let Some(span) = self.one_ago(at)
                    {
                        return Some(self.found(span));
                    }
                    false
                }
                b'=' if self.in_address() => {
                    let value = self.rest(at + 1);
                    let end = value.find(['&', '#', ';', ' ']).unwrap_or(value.len());
                    if end > 0 {
                        return Some(self.found(at + 1..at + 1 + end));
                    }
                    false
                }
                // Digits of other scripts; a text that is not ASCII has them nowhere else.
                0xc2.. => self.rest(at).chars().next().is_some_and(is_foreign_digit),
                _ => false,
            };
            if is_digit {
                match self.token(at) {
                    Ok(token) => {
                        let span = self.dated(token);
                        return Some(self.found(span));
                    }
                    Err(end) => self.at = end,
                }
            }
        }
        None
    }
}

/// What a token is made of.
fn is_run(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || is_foreign_digit(c)
}

/// Whether a character is a digit of another script than ASCII. The many ideographs and syllables of CJK and Hangul are
/// none, and are not looked up.
fn is_foreign_digit(c: char) -> bool {
    !c.is_ascii()
        && !matches!(c, '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
        && c.is_numeric()
}

/// How long the run at the start of a text is.
fn run(text: &str) -> usize {
    text.find(|c| !is_run(c)).unwrap_or(text.len())
}

fn has_digit(piece: &str) -> bool {
    piece.chars().any(char::is_numeric)
}

/// Whether a token has the number of a release in it: three numbers or more with dots between them
/// that are neither a date nor one large number.
fn is_release(token: &str) -> bool {
    token.split(|c: char| !(c.is_ascii_digit() || c == '.')).any(|digits| {
        let mut parts = digits.split('.');
        let first = parts.next().map_or(0, str::len);
        let lengths: Vec<usize> = parts.map(str::len).take(5).collect();
        let is_date = lengths.len() == 2 && (first == 4 || lengths.last() == Some(&4));
        let is_large = first <= 3 && lengths.iter().all(|length| *length == 3);
        lengths.len() > 1 && first > 0 && !lengths.contains(&0) && !is_date && !is_large
    })
}

/// The length of a name at the end of a text with what parts it from a number behind it.
fn name_before(text: &str) -> Option<usize> {
    let words = text.trim_end_matches([' ', ',', '.']);
    let gap = text.len() - words.len();
    if gap == 0 || gap > 2 {
        return None;
    }
    let length = words.bytes().rev().take_while(u8::is_ascii_alphanumeric).count();
    let name = words.get(words.len() - length..)?;
    is_time_word(name).then_some(gap + length)
}

pub(super) fn is_time_word(word: &str) -> bool {
    TIME_WORDS.iter().any(|names| is_name(word, names))
}

fn is_name(word: &str, names: &[&str]) -> bool {
    (1..=NAME_LIMIT).contains(&word.len())
        && word.is_ascii()
        && names.iter().any(|name| name.eq_ignore_ascii_case(word))
}
