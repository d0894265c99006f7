//! What an entry looks like: what a reader would see of it, and a trace of the rest.

use super::addresses::address;
use super::field::{FieldWeight, weight};
use super::field_hashes::hash_path;
use super::images::{is_of_picture, picture_address};
use super::mask::short;
use super::spans::{self, SpanContext};
use super::visible::{comparable, visible};
use regex::Regex;
use tidegate_core::model::{Entry, Field, Ignore, LedgerEntry, NoiseClass};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

/// The number of the scheme by which fingerprints are made. Whatever makes the same bytes look
/// different raises it: fingerprints of another scheme are never compared, but made anew from the
/// bytes (`refresh`), so that no upgrade of the program makes a version.
pub const SCHEME: u32 = 5;

/// The number of the scheme by which fingerprints are made without what an operator ignores. Another list is another
/// scheme.
pub fn scheme(ignore: &[Ignore]) -> u32 {
    if ignore.is_empty() {
        return SCHEME;
    }
    let mut hash = Xxh3::with_seed(SCHEME.into());
    for text in ignore.iter().flat_map(|ignore| [Some(ignore.field()), ignore.pattern()]) {
        hash.update(text.unwrap_or_default().as_bytes());
        hash.update(&[u8::from(text.is_some())]);
    }
    short(hash.digest())
}

/// A field as a reader would see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldView<'e> {
    pub path: &'e str,
    /// What its spans are.
    pub kind: SpanContext,
    /// What counts of it, but for what the operator ignores.
    pub text: String,
    /// The fingerprints of its path and of its text.
    pub print: (u64, u64),
    /// The fingerprint of its text without machine-like spans.
    shape: u64,
}

/// An entry, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint<'e> {
    /// The fields that count, in document order.
    pub seen: Vec<FieldView<'e>>,
    /// Their fingerprints, sorted and each once: an order of elements leaves no trace.
    pub prints: Vec<(u64, u64)>,
    /// The number of the scheme by which they were made.
    pub scheme: u32,
    /// Fingerprint of what is left of them without machine-like spans; never zero.
    pub shape: u64,
    /// A fingerprint of the fields of each class in [`NoiseClass::TRACED`], in any order.
    pub traces: [u32; NoiseClass::TRACED.len()],
}

/// Computes the fingerprint of an entry, without the fields that the operator ignores.
pub fn fingerprint<'e>(entry: &'e Entry<'_>, ignore: &[Ignore]) -> Fingerprint<'e> {
    let mut builder = FingerprintBuilder { ignore, traces: Default::default() };
    let fields = entry.fields();
    let mut seen = Vec::with_capacity(fields.len());
    for at in 0..fields.len() {
        seen.extend(builder.view_field(fields, at));
    }
    let shapes = seen.iter().map(|seen| (seen.print.0, seen.shape)).collect();
    let mut prints: Vec<(u64, u64)> = seen.iter().map(|seen| seen.print).collect();
    prints.sort_unstable();
    prints.dedup();
    let (scheme, shape) = (scheme(ignore), joined(shapes));
    Fingerprint { seen, prints, scheme, shape, traces: builder.traces }
}

impl Fingerprint<'_> {
    /// Stores the fingerprint in the ledger entry of its item.
    pub fn store_in(self, known: &mut LedgerEntry) {
        known.prints = self.prints;
        let noise = &mut known.noise;
        (noise.shape, noise.traces, noise.scheme) = (self.shape, self.traces, self.scheme);
    }
}

/// Computes the fingerprints of an entry's fields and collects the traces of noise.
struct FingerprintBuilder<'i> {
    ignore: &'i [Ignore],
    traces: [u32; NoiseClass::TRACED.len()],
}

impl FingerprintBuilder<'_> {
    /// What a field says to a reader; nothing where it is noise.
    fn view_field<'e>(&mut self, fields: &'e [Field<'_>], at: usize) -> Option<FieldView<'e>> {
        let field = fields.get(at)?;
        let (path, ignore) = (hash_path(&field.path), self.ignore);
        let covering = || ignore.iter().filter(|ignore| ignore.covers(&field.path));
        if covering().any(|ignore| ignore.regex().is_none()) {
            self.trace(NoiseClass::Ignored, path, &field.value);
            return None;
        }
        let (kind, class, text) = match weight(&field.path, &field.value) {
            FieldWeight::Text => (SpanContext::Text, NoiseClass::Markup, comparable(&field.value)),
            FieldWeight::Address if is_of_picture(fields, at) => {
                (SpanContext::Address, NoiseClass::Images, picture_address(&field.value))
            }
            FieldWeight::Address => {
                (SpanContext::Address, NoiseClass::Addresses, address(&field.value))
            }
            FieldWeight::Noise(class) => {
                self.trace(class, path, &field.value);
                return None;
            }
        };
        if text.is_empty() {
            // A picture alone counts nothing.
            let has_picture = match kind {
                SpanContext::Text => !visible(&field.value).is_empty(),
                SpanContext::Address => !address(&field.value).is_empty(),
            };
            if has_picture {
                self.trace(NoiseClass::Images, path, &field.value);
            }
            return None;
        }
        let (class, text) = match without(&text, covering().filter_map(Ignore::regex)) {
            None => (class, text),
            Some(rest) => (NoiseClass::Ignored, rest),
        };
        self.trace(class, path, &field.value);
        let (print, shape) = ((path, xxh3_64(text.as_bytes())), spans::shape(&text, kind));
        Some(FieldView { path: &field.path, kind, text, print, shape })
    }

    #[allow(clippy::cast_possible_truncation)]
    fn trace(&mut self, class: NoiseClass, path: u64, value: &str) {
        let at = NoiseClass::TRACED.iter().position(|traced| *traced == class);
        if let Some(trace) = at.and_then(|at| self.traces.get_mut(at)) {
            // The low half of the fingerprint is enough to see a difference.
            let print = xxh3_64_with_seed(value.as_bytes(), path) as u32;
            *trace = trace.wrapping_add(print | 1);
        }
    }
}

/// A text without what some patterns find, closed up; nothing where there is no pattern.
pub(super) fn without<'r>(text: &str, patterns: impl Iterator<Item = &'r Regex>) -> Option<String> {
    let mut rest: Option<String> = None;
    for regex in patterns {
        rest = Some(regex.replace_all(rest.as_deref().unwrap_or(text), "").into_owned());
    }
    Some(rest?.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// One fingerprint of many, whatever their order.
fn joined(mut prints: Vec<(u64, u64)>) -> u64 {
    prints.sort_unstable();
    prints.dedup();
    let mut hash = Xxh3::new();
    for (path, shape) in prints {
        hash.update(&path.to_le_bytes());
        hash.update(&shape.to_le_bytes());
    }
    hash.digest().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, rss};

    fn with<T>(fields: &str, look: impl FnOnce(&Entry<'_>) -> T) -> T {
        look(&read(&rss(&format!("<item>{fields}</item>"))).entries[0])
    }

    fn traced(old: &str, new: &str) -> Vec<NoiseClass> {
        let of = |fields: &str| with(fields, |entry| fingerprint(entry, &[]).traces);
        let (old, new) = (of(old), of(new));
        let pairs = NoiseClass::TRACED.into_iter().zip(old.iter().zip(&new));
        pairs.filter(|(_, (old, new))| old != new).map(|(class, _)| class).collect()
    }

    #[test]
    fn each_class_leaves_a_trace_of_its_own() {
        use NoiseClass::*;
        for (old, new, class) in [
            ("<pubDate>1 May</pubDate>", "<pubDate>2 May</pubDate>", Dates),
            ("<hits><views>1</views></hits>", "<hits><views>2</views></hits>", Counters),
            ("<guid>a</guid>", "<guid>b</guid>", Ids),
            ("<image>http://e.org/a.png</image>", "<image>http://e.org/b.png</image>", Images),
            ("<generator>a</generator>", "<generator>b</generator>", Machinery),
            ("<link>http://e.org/a</link>", "<link>https://e.org/a</link>", Addresses),
            ("<description>a</description>", "<description>&lt;b>a</description>", Markup),
        ] {
            assert_eq!(traced(old, new), [class], "{new}");
        }
        assert_eq!(traced("<a>1</a><b>2</b>", "<b>2</b><a>1</a>"), []);
    }

    #[test]
    fn a_picture_that_moved_is_the_same() {
        let of = |address: &str, kind: &str| {
            let file = format!("<enclosure url=\"{address}\" length=\"1\" type=\"{kind}\"/>");
            with(&file, |entry| (fingerprint(entry, &[]).prints, fingerprint(entry, &[]).shape))
        };
        let (old, new) = ("https://a.example/media/abc?w=1", "https://b.example/x/1/media/abc?w=1");
        assert_eq!(of(old, "image/webp"), of(new, "image/webp"));
        assert_ne!(of(old, "audio/mpeg"), of(new, "audio/mpeg"));
        assert_ne!(of(old, "image/webp"), of(&old.replace("abc", "abd"), "image/webp"));
    }

    #[test]
    fn what_the_operator_ignores_is_not_there() {
        let list = [("promotion", None), ("description", Some("[0-9]+ views"))]
            .map(|(field, pattern)| Ignore::new(field, pattern).unwrap());
        let of = |fields: &str| {
            with(fields, |entry| {
                let fingerprint = fingerprint(entry, &list);
                (fingerprint.prints, fingerprint.shape, fingerprint.traces)
            })
        };
        let text = |views: u32, word: &str| {
            format!(
                "<description>{word}, {views} views</description><promotion>{views}</promotion>"
            )
        };
        let (old, new, edited) = (of(&text(1, "a")), of(&text(2, "a")), of(&text(1, "b")));
        assert_eq!((&old.0, old.1), (&new.0, new.1));
        assert_ne!(old.2, new.2, "it leaves a trace");
        assert_ne!(old.0, edited.0);
        assert_eq!((scheme(&[]), scheme(&list) == scheme(&list[..1])), (SCHEME, false));
    }

    #[test]
    fn fields_that_say_nothing_are_not_there() {
        let count = |fields: &str| with(fields, |entry| fingerprint(entry, &[]).seen.len());
        assert_eq!(count("<title>a</title><description>&lt;p> &lt;/p></description>"), 1);
        assert_eq!(count("<pubDate>1 May</pubDate>"), 0);
    }
}
