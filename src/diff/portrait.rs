//! What an entry looks like: what a reader would see of it, and a trace of the rest.

use super::noise::{Weight, address, weight};
use super::prints::path_print;
use super::spans::{self, Kind};
use super::visible::visible;
use crate::model::{Entry, Field, Ignore, NoiseClass};
use std::borrow::Cow;
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

/// A field as a reader would see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<'e> {
    /// Its path.
    pub path: &'e str,
    /// What its spans are.
    pub kind: Kind,
    /// What a reader would see of it; never empty.
    pub text: Cow<'e, str>,
    /// The fingerprints of its path and of that text.
    pub print: (u64, u64),
}

/// An entry, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Portrait<'e> {
    /// The fields that count, in document order.
    pub seen: Vec<Seen<'e>>,
    /// Their fingerprints, sorted and each once: an order of elements leaves no trace.
    pub prints: Vec<(u64, u64)>,
    /// Fingerprint of what is left of them without machine-like spans; never zero.
    pub shape: u64,
    /// A fingerprint of the fields of each class in [`NoiseClass::TRACED`], in any order.
    pub traces: [u32; NoiseClass::TRACED.len()],
}

/// Looks at an entry, but for what the operator ignores.
pub fn portrait<'e>(entry: &'e Entry<'_>, ignore: &[Ignore]) -> Portrait<'e> {
    let mut traces = Traces::default();
    let mut seen = Vec::with_capacity(entry.fields.len());
    let mut shapes = Vec::with_capacity(entry.fields.len());
    for field in &entry.fields {
        let path = path_print(&field.path);
        let Some((kind, text)) = said(field, path, ignore, &mut traces) else { continue };
        if text.is_empty() {
            continue;
        }
        shapes.push((path, spans::shape(&text, kind)));
        let print = (path, xxh3_64(text.as_bytes()));
        seen.push(Seen { path: &field.path, kind, text, print });
    }
    let mut prints: Vec<(u64, u64)> = seen.iter().map(|seen| seen.print).collect();
    prints.sort_unstable();
    prints.dedup();
    Portrait { seen, prints, shape: joined(shapes), traces: traces.0 }
}

/// What a field says to a reader; nothing where it is noise.
fn said<'e>(
    field: &'e Field<'_>,
    path: u64,
    ignore: &[Ignore],
    traces: &mut Traces,
) -> Option<(Kind, Cow<'e, str>)> {
    let covering = || ignore.iter().filter(|ignore| ignore.covers(&field.path));
    if covering().any(|ignore| ignore.regex().is_none()) {
        traces.add(NoiseClass::Ignored, path, &field.value);
        return None;
    }
    let (kind, class, text) = match weight(&field.path, &field.value) {
        Weight::Text => (Kind::Text, NoiseClass::Markup, Cow::Owned(visible(&field.value))),
        Weight::Address => (Kind::Address, NoiseClass::Addresses, address(&field.value)),
        Weight::Noise(class) => {
            traces.add(class, path, &field.value);
            return None;
        }
    };
    let mut left = text;
    let mut is_cut = false;
    for regex in covering().filter_map(Ignore::regex) {
        if let Cow::Owned(rest) = regex.replace_all(&left, "") {
            left = Cow::Owned(rest);
            is_cut = true;
        }
    }
    traces.add(if is_cut { NoiseClass::Ignored } else { class }, path, &field.value);
    Some((kind, left))
}

#[derive(Default)]
struct Traces([u32; NoiseClass::TRACED.len()]);

impl Traces {
    #[allow(clippy::cast_possible_truncation)]
    fn add(&mut self, class: NoiseClass, path: u64, value: &str) {
        let at = NoiseClass::TRACED.iter().position(|traced| *traced == class);
        if let Some(trace) = at.and_then(|at| self.0.get_mut(at)) {
            // The low half of the fingerprint is enough to see a difference.
            let print = xxh3_64_with_seed(value.as_bytes(), path) as u32;
            *trace = trace.wrapping_add(print | 1);
        }
    }
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
    use crate::model::FeedDocument;
    use crate::parse::{self, Limits};

    fn with<T>(fields: &str, look: impl FnOnce(&Entry<'_>) -> T) -> T {
        let text = format!("<rss version=\"2.0\"><channel><item>{fields}</item></channel></rss>");
        let document: FeedDocument<'_> = parse::document(&text, None, &Limits::default()).unwrap();
        look(&document.entries[0])
    }

    fn traced(old: &str, new: &str) -> Vec<NoiseClass> {
        let of = |fields: &str| with(fields, |entry| portrait(entry, &[]).traces);
        let (old, new) = (of(old), of(new));
        let pairs = NoiseClass::TRACED.into_iter().zip(old.iter().zip(&new));
        pairs.filter(|(_, (old, new))| old != new).map(|(class, _)| class).collect()
    }

    #[test]
    fn each_class_leaves_a_trace_of_its_own() {
        use NoiseClass::*;
        for (old, new, class) in [
            ("<pubDate>a</pubDate>", "<pubDate>b</pubDate>", Dates),
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
    fn what_the_operator_ignores_is_not_there() {
        let list = [
            Ignore::new("promotion", None).unwrap(),
            Ignore::new("description", Some("[0-9]+ views")).unwrap(),
        ];
        let of = |fields: &str| {
            with(fields, |entry| {
                let portrait = portrait(entry, &list);
                (portrait.prints, portrait.shape, portrait.traces)
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
    }

    #[test]
    fn fields_that_say_nothing_are_not_there() {
        let count = |fields: &str| with(fields, |entry| portrait(entry, &[]).seen.len());
        assert_eq!(count("<title>a</title><description>&lt;p> &lt;/p></description>"), 1);
        assert_eq!(count("<pubDate>x</pubDate>"), 0);
    }
}
