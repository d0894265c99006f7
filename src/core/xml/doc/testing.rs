//! Of a document without flaws the tree is what quick-xml's events say; any other one is repaired
//! to such a document. For tests and the fuzz target `tree`.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;
use crate::xml::edits::{Edit, Edits};
use crate::xml::ns::NamespaceScope;
use quick_xml::events::Event;
use quick_xml::name::ResolveResult;
use quick_xml::reader::NsReader;

pub(super) const UNITS: Units<LimitReached> = Units {
    name: |root| Ok(if root.local() == "feed" { "entry" } else { "item" }),
    is_one: |element| {
        let depth = element.ancestors().count();
        matches!(element.local(), "item" | "entry") && matches!(depth, 2 | 3)
    },
};

pub(super) fn read(text: &str) -> BuiltDoc<'_> {
    read_limited(text).unwrap()
}

fn read_limited(text: &str) -> Result<BuiltDoc<'_>, LimitReached> {
    let limits = DocLimits { depth: 40, restarts: 9, ..DocLimits::default() };
    let start = text.find('<').unwrap_or_default();
    Doc::read(text, start, None, &limits, &UNITS)
}

/// A namespace as it is told apart: one that is not known by its URI.
fn shown(ns: Ns, uri: &str) -> String {
    if let Ns::Other(_) = ns { uri.to_owned() } else { format!("{ns:?}") }
}

/// The steps of a walk, pieces of text joined.
fn steps(doc: &Doc<'_>) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    let mut text = String::new();
    let named = |ns| shown(ns, if let Ns::Other(number) = ns { doc.uri(number) } else { "" });
    for step in doc.root().into_iter().flat_map(DocElement::walk) {
        let piece = match step {
            WalkStep::Text(piece) => {
                text.push_str(&piece);
                continue;
            }
            WalkStep::Open(element) => {
                let attributes = element.attributes();
                let attributes =
                    attributes.map(|a| (named(a.ns()), a.local(), a.value().into_owned()));
                let attributes: Vec<_> = attributes.collect();
                format!("{} {} {attributes:?}", named(element.ns()), element.local())
            }
            WalkStep::Close(element) => format!("/{} {:?}", element.name(), element.span()),
        };
        steps.extend((!text.is_empty()).then(|| std::mem::take(&mut text)));
        steps.push(piece);
    }
    steps
}

/// The same of quick-xml's events.
fn events(text: &str) -> Vec<String> {
    let mut reader = NsReader::from_str(text);
    reader.config_mut().enable_all_checks(true);
    let mut scope = NamespaceScope::default();
    let (mut steps, mut piece, mut open) = (Vec::new(), String::new(), Vec::new());
    let mut classify = |resolved: ResolveResult<'_>| match resolved {
        ResolveResult::Bound(namespace) => {
            let spaced = namespace.into_inner().replace(['\t', '\n', '\r'], " ");
            let uri = crate::xml::plain_value(&spaced);
            // The tree knows a namespace without the blanks around its URI.
            let uri = crate::xml::trim(&uri);
            shown(scope.classify(uri), uri)
        }
        ResolveResult::Unbound => shown(Ns::None, ""),
        ResolveResult::Unknown(prefix) => panic!("{prefix:?} is not bound in {text}"),
    };
    loop {
        let start = usize::try_from(reader.buffer_position()).unwrap();
        let event = reader.read_event().unwrap_or_else(|error| panic!("{error} in {text}"));
        let end = usize::try_from(reader.buffer_position()).unwrap();
        let is_empty = matches!(event, Event::Empty(_));
        match &event {
            Event::Text(text) if !open.is_empty() => piece.push_str(text),
            Event::CData(text) => piece.push_str(text),
            Event::GeneralRef(name) => crate::xml::reference::reference(name).push(&mut piece),
            Event::Start(_) | Event::Empty(_) | Event::End(_) => {
                steps.extend((!piece.is_empty()).then(|| std::mem::take(&mut piece)));
            }
            Event::Eof => return steps,
            _ => {}
        }
        if let Event::Start(tag) | Event::Empty(tag) = &event {
            let (resolved, local) = reader.resolver().resolve_element(tag.name());
            let ns = classify(resolved);
            let mut attributes = Vec::new();
            for attribute in tag.attributes().map(Result::unwrap) {
                if crate::xml::declared_prefix(attribute.key.0).is_none() {
                    let (resolved, local) = reader.resolver().resolve_attribute(attribute.key);
                    let spaced = attribute.value.replace(['\t', '\n', '\r'], " ");
                    let value = crate::xml::plain_value(&spaced).into_owned();
                    attributes.push((classify(resolved), local.into_inner().to_owned(), value));
                }
            }
            steps.push(format!("{ns} {} {attributes:?}", local.into_inner()));
            open.push(start);
        }
        if is_empty || matches!(event, Event::End(_)) {
            let start = open.pop().unwrap();
            let tag = text.get(start + 1..).unwrap();
            let name = tag.split([' ', '\t', '\n', '\r', '/', '>']).next().unwrap();
            steps.push(format!("/{name} {:?}", start..end));
        }
    }
}

/// A document with its repairs made, and without its entries that could not be read.
pub(super) fn repaired(built: &BuiltDoc<'_>) -> String {
    let (doc, text) = (&built.doc, built.doc.text());
    let mut edits = doc.edits(&built.repairs, &[]);
    edits.extend(doc.drop_forbidden(&(0..text.len())));
    let root = doc.root().unwrap().span();
    let nothing = |range: Range<usize>| Edit { range, with: "".into() };
    let around = [0..text.find('<').unwrap_or_default(), root.end..text.len()];
    edits.extend(around.into_iter().filter(|range| !range.is_empty()).map(nothing));
    edits.extend(built.dropped.iter().map(|(range, _)| nothing(range.clone())));
    let name_end = root.start + 1 + doc.root().unwrap().name().len();
    let mut with = String::new();
    for (prefix, uri) in &built.invented {
        crate::xml::push_namespace(&mut with, prefix, uri);
    }
    let with = with.into();
    edits.push(Edit { range: name_end..name_end, with });
    Edits::new(0..text.len(), edits).apply(text).into_owned()
}

/// Panics where a text is read otherwise.
pub fn check(text: &str) {
    let Ok(built) = read_limited(text) else { return };
    let Some(root) = built.doc.root() else { return };
    if built.findings.flaws.is_empty() && built.doc.given.is_none() {
        // Text before the first tag and behind the root is not read.
        let start = text.find('<').unwrap();
        let alone = " ".repeat(start) + cut(text, start..root.span().end);
        assert_eq!(steps(&built.doc), events(&alone), "{text}");
        return;
    }
    let whole = repaired(&built);
    let again = read(&whole);
    assert!(again.findings.flaws.is_empty(), "{:?} in {whole} of {text}", again.findings);
    assert_eq!(steps(&again.doc), events(&whole), "{whole} of {text}");
    let names = |doc: &Doc<'_>| -> Vec<String> {
        doc.root().into_iter().flat_map(DocElement::descendants).map(|e| e.text().into()).collect()
    };
    // Characters are dropped and entries taken out where blanks stood.
    let squeezed = |texts: Vec<String>| texts.join("|").replace(char::is_whitespace, "");
    assert_eq!(squeezed(names(&built.doc)), squeezed(names(&again.doc)), "{whole} of {text}");
}
