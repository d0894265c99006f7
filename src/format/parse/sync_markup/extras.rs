//! Markup in `sx:sync` that SSE does not know (SSE 1.0 section 2.1.8).
//!
//! It is written anew from what was read, so that it can stand in any document: a reference that XML does
//! not know is the character that HTML means by it or its own text, and a processing instruction or a comment
//! does not come along.

use super::children;
use super::sse::update;
use std::borrow::Cow;
use tidegate_core::model::{Extra, SyncExtras};
use tidegate_core::xml;
use tidegate_core::xml::doc::{DocElement, WalkStep};
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::split_name;

/// What stands in an `sx:sync` beyond what SSE knows; `None` where that is more than
/// [`SyncExtras::LIMIT`].
pub(super) fn read(sync: DocElement<'_, '_>) -> Option<SyncExtras> {
    const SYNC: [&str; 4] = ["id", "updates", "deleted", "noconflicts"];
    let mut left = ExtrasBudget(SyncExtras::LIMIT);
    let mut extras = SyncExtras {
        sync: extra(sync, &SYNC, &["history", "conflicts"], &mut left)?,
        ..SyncExtras::default()
    };
    for element in children(sync, Ns::Sx, "history") {
        let extra = extra(element, &["sequence", "when", "by"], &[], &mut left)?;
        if let Some(update) = update(element).ok().filter(|_| !extra.is_empty()) {
            extras.updates.push((update, extra));
        }
    }
    Some(extras).filter(|extras| extras.size() <= SyncExtras::LIMIT)
}

/// How many bytes may still be kept.
struct ExtrasBudget(usize);

impl ExtrasBudget {
    /// Takes some; `None` where there are not that many left.
    fn take(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.checked_sub(bytes)?;
        Some(())
    }
}

/// `None` where there is too much of it.
fn extra(
    element: DocElement<'_, '_>,
    attributes: &[&str],
    known: &[&str],
    left: &mut ExtrasBudget,
) -> Option<Extra> {
    let mut extra = Extra::default();
    for attribute in element.attributes() {
        let (prefix, local) = split_name(attribute.name());
        if prefix.is_empty() && attributes.contains(&local) {
            continue;
        }
        let Some((_, namespace)) = attribute_binding(element, prefix) else { continue };
        let value = attribute.value();
        left.take(namespace.len() + local.len() + value.len())?;
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let namespace = namespace.map(Cow::into_owned);
        extra.attributes.push((namespace, local.to_owned(), value.into_owned()));
    }
    let is_known =
        |child: &DocElement<'_, '_>| child.ns() == Ns::Sx && known.contains(&child.local());
    for child in element.children().filter(|child| !is_known(child)) {
        // What it uses it declares itself.
        let (open, scope) = (Vec::new(), Vec::new());
        let out = &mut extra.elements;
        ForeignWriter { out, left, open, scope, is_in_tag: false }.write(child)?;
    }
    Some(extra)
}

/// A prefix and its namespace.
type PrefixBinding<'a> = (&'a str, Cow<'a, str>);

/// The binding of a prefix in an element; `None` where nothing declares it.
fn binding<'a>(element: DocElement<'_, 'a>, prefix: &'a str) -> Option<PrefixBinding<'a>> {
    Some((prefix, element.binding(prefix)?))
}

/// The same for an attribute of the element, which is in no namespace without prefix.
fn attribute_binding<'a>(
    element: DocElement<'_, 'a>,
    prefix: &'a str,
) -> Option<PrefixBinding<'a>> {
    if prefix.is_empty() { Some(("", Cow::Borrowed(""))) } else { binding(element, prefix) }
}

/// Elements on their way into text.
struct ForeignWriter<'w, 'a> {
    out: &'w mut String,
    left: &'w mut ExtrasBudget,
    /// How many bindings are in scope around each open element.
    open: Vec<usize>,
    /// What the open elements declare.
    scope: Vec<PrefixBinding<'a>>,
    /// Whether the start tag that was written last is still to be ended.
    is_in_tag: bool,
}

impl<'a> ForeignWriter<'_, 'a> {
    /// Adds an element with all within it; `None` where that is too much.
    fn write(&mut self, element: DocElement<'_, 'a>) -> Option<()> {
        let mut walk = element.walk();
        while let Some(step) = walk.next() {
            match step {
                WalkStep::Open(element) => match binding(element, split_name(element.name()).0) {
                    Some(name) => self.open(element, name)?,
                    None => walk.leave_out(),
                },
                WalkStep::Text(text) => {
                    self.end_start_tag()?;
                    self.within(text.len(), |out| xml::push_text(out, &text))?;
                }
                WalkStep::Close(element) => self.close(element)?,
            }
        }
        Some(())
    }

    /// Adds a start tag but for its end.
    fn open(&mut self, element: DocElement<'_, 'a>, name: PrefixBinding<'a>) -> Option<()> {
        self.end_start_tag()?;
        self.open.push(self.scope.len());
        self.is_in_tag = true;
        self.push("<")?;
        self.push(element.name())?;
        self.declare(name)?;
        for attribute in element.attributes() {
            let prefix = split_name(attribute.name()).0;
            let Some(name) = attribute_binding(element, prefix) else { continue };
            if !prefix.is_empty() {
                self.declare(name)?;
            }
            self.attribute(attribute.name(), &attribute.value())?;
        }
        Some(())
    }

    fn end_start_tag(&mut self) -> Option<()> {
        if std::mem::take(&mut self.is_in_tag) { self.push(">") } else { Some(()) }
    }

    fn close(&mut self, element: DocElement<'_, 'a>) -> Option<()> {
        self.scope.truncate(self.open.pop().unwrap_or_default());
        if std::mem::take(&mut self.is_in_tag) {
            return self.push("/>");
        }
        self.push("</")?;
        self.push(element.name())?;
        self.push(">")
    }

    /// Declares a prefix where it does not stand for that namespace.
    fn declare(&mut self, (prefix, namespace): PrefixBinding<'a>) -> Option<()> {
        let bound = self.scope.iter().rev().find(|(bound, _)| *bound == prefix);
        let is_bound = bound.is_some_and(|(_, bound)| *bound == namespace);
        if prefix == "xml" || is_bound {
            return Some(());
        }
        let least = prefix.len() + namespace.len();
        self.within(least, |out| xml::push_namespace(out, prefix, &namespace))?;
        self.scope.push((prefix, namespace));
        Some(())
    }

    fn attribute(&mut self, name: &str, value: &str) -> Option<()> {
        self.within(name.len() + value.len(), |out| xml::push_attribute(out, name, value))
    }

    fn push(&mut self, text: &str) -> Option<()> {
        self.within(text.len(), |out| out.push_str(text))
    }

    /// Adds what is of at least so many bytes, where there is room for them.
    fn within(&mut self, least: usize, add: impl FnOnce(&mut String)) -> Option<()> {
        if least > self.left.0 {
            return None;
        }
        let before = self.out.len();
        add(self.out);
        self.left.take(self.out.len().saturating_sub(before))
    }
}
