//! Merging two SSE feed documents (SSE 1.0 section 3.3; SSE 0.91 section 4.4): the result is the
//! first one with what changed, everything in it that is well-formed and not concerned kept byte for byte.

use super::FeedFault;
use super::document::{limits, shares};
use super::item::{ItemData, ReplicaItem, SharedItem, merge_sets};
use crate::parse::{self, FeedFrame, ParseError, collection};
use crate::render::{KeptItems, members, sync_object};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use tidegate_core::model::{FeedDocument, Shared, Skeleton, Version, Warning};
use tidegate_core::sync_markup::Dialect;
use tidegate_core::xml::doc::DECLARATION;
use tidegate_core::xml::edits::{Edit, Edits};
use tidegate_core::xml::is_char;

/// Which of the two feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The feed that is kept.
    Local,
    /// The feed that is merged into it.
    Incoming,
}

/// What comes of merging two feed documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedFeed {
    /// The document.
    pub text: String,
    /// What was wrong with the two, and did not keep them from being read.
    pub warnings: Vec<(Side, FeedFault)>,
}

/// Merges the feed document `incoming` into `local`; an error says in which of them it is.
///
/// Each may be Atom, RSS, or a collection of FeedSync as plain XML or JSON, in any dialect: two
/// feeds of SSE 0.91 are merged by its section 4.4, all others in SSE 1.0. The result is in the
/// container and dialect of `local`.
pub fn merged(local: &[u8], incoming: &[u8]) -> Result<MergedFeed, (Side, FeedFault)> {
    let here = |fault| (Side::Local, fault);
    let there = |fault| (Side::Incoming, fault);
    let (ours, theirs) =
        (Source::read(local).map_err(here)?, Source::read(incoming).map_err(there)?);
    let (local, form) = ours.document().map_err(here)?;
    let (incoming, other_form) = theirs.document().map_err(there)?;
    if !incoming.entries.is_empty() && !shares(&incoming) {
        let what = "nothing in it is shared: no item has sx:sync, and there is no sx:sharing";
        return Err(there(FeedFault::new("", 0, what)));
    }
    let warnings = ours.warnings(&local).into_iter().map(here);
    let warnings = warnings.chain(theirs.warnings(&incoming).into_iter().map(there)).collect();
    let dialect = form.dialect().or(other_form.dialect()).unwrap_or_default();
    let (places, mut items) = shared_items(&local).map_err(here)?;
    let (_, incoming) = shared_items(&incoming).map_err(there)?;
    let before = items.clone();
    let changed = merge_sets(&mut items, incoming);
    let new = items.split_off(places.len());
    // One document never mixes dialects (READINGS 1, row 1).
    let is_in_another = |number: usize| match &form {
        SourceForm::Xml(frame) => {
            frame.items.get(number).is_some_and(|item| item.1 != Some(dialect))
        }
        SourceForm::Json(_) => false,
    };
    let known = places.into_iter().zip(changed).zip(before.into_iter().zip(items));
    let changed = known
        .filter(|((number, is_changed), _)| *is_changed || is_in_another(*number))
        .map(|((number, _), items)| (number, items));
    let outcome = MergeOutcome { changed: changed.collect(), new };
    let text = match form {
        SourceForm::Json(object) => outcome.json(object, &local.skeleton),
        SourceForm::Xml(frame) => outcome.xml(&ours.text, &frame, dialect, &local),
    };
    Ok(MergedFeed { text, warnings })
}

/// A feed document as text.
struct Source {
    text: String,
    /// What a collection as JSON says in plain XML.
    plain: Option<String>,
    /// What was wrong with its bytes.
    warnings: Vec<Warning>,
}

/// What items are written into.
enum SourceForm {
    /// A feed, or a collection as plain XML.
    Xml(FeedFrame),
    /// The object of a collection as JSON.
    Json(Value),
}

impl SourceForm {
    const fn dialect(&self) -> Option<Dialect> {
        match self {
            Self::Xml(frame) => frame.dialect,
            Self::Json(_) => Some(Dialect::FeedSync),
        }
    }
}

impl Source {
    fn read(bytes: &[u8]) -> Result<Self, FeedFault> {
        let decoded = parse::characters(bytes, None, &limits());
        let decoded = decoded.map_err(|error| FeedFault::of("", &error))?;
        let (text, warnings) = (decoded.text.into_owned(), decoded.warnings);
        let plain = collection::transcoded(&text).map_err(|error| FeedFault::of(&text, &error))?;
        Ok(Self { text, plain, warnings })
    }

    /// Its items and all that they say, and what they stand in.
    fn document(&self) -> Result<(FeedDocument<'_>, SourceForm), FeedFault> {
        let text = self.plain.as_deref().unwrap_or(&self.text);
        let fault = |error: ParseError| FeedFault::of(text, &error);
        let is_json = self.text.trim_start().starts_with(['{', '[']);
        let object = is_json.then(|| object(&self.text, self.plain.is_some())).transpose()?;
        let document = parse::document(text, None, &limits()).map_err(fault)?;
        if let Some(fault) = FeedFault::of_broken(&document) {
            return Err(fault);
        }
        let form = match object {
            Some(object) => SourceForm::Json(object),
            None => SourceForm::Xml(FeedFrame::read(&self.text).map_err(fault)?),
        };
        Ok((document, form))
    }

    /// What was wrong with it.
    fn warnings(&self, document: &FeedDocument<'_>) -> Vec<FeedFault> {
        let lost = self.text.find(char::REPLACEMENT_CHARACTER).unwrap_or(0);
        let of_bytes = self.warnings.iter().map(|w| FeedFault::new(&self.text, lost, &*w.message));
        let of_text = document.warnings.iter();
        let of_text = of_text.map(|w| FeedFault::new(document.text, w.offset, &*w.message));
        of_bytes.chain(of_text).collect()
    }
}

/// The object of a collection as JSON. A feed is read as far as it goes; what is merged must be
/// whole.
fn object(text: &str, is_collection: bool) -> Result<Value, FeedFault> {
    let object = serde_json::from_str(text).map_err(|error| {
        let (said, line) = (error.to_string(), error.line().max(1));
        let said = said.split(" at line ").next().unwrap_or_default();
        let what = format!("the document is not well-formed: it is broken JSON: {said}");
        FeedFault { line, what }
    })?;
    if is_collection {
        return Ok(object);
    }
    let what = "JSON without items that have \"sync\"".to_owned();
    Err(FeedFault::of(text, &ParseError::NotAFeed { what, at: 0 }))
}

/// The shared items of a document, and the number of the entry that each is.
fn shared_items(document: &FeedDocument<'_>) -> Result<(Vec<usize>, Vec<SharedItem>), FeedFault> {
    let items: Vec<ReplicaItem> = ReplicaItem::all(document, None).collect::<Result<_, _>>()?;
    let shared = items.into_iter().enumerate();
    Ok(shared.filter_map(|(number, item)| Some((number, item.into_shared()?))).unzip())
}

/// What a merge comes to.
struct MergeOutcome {
    /// Items of LOCAL to be written anew, by the number of the entry: each as it was, and as it is
    /// now.
    changed: HashMap<usize, (SharedItem, SharedItem)>,
    /// Items that LOCAL does not have, in INCOMING's order.
    new: Vec<SharedItem>,
}

impl MergeOutcome {
    /// LOCAL with what the merge changed.
    fn xml(
        &self,
        text: &str,
        frame: &FeedFrame,
        dialect: Dialect,
        local: &FeedDocument<'_>,
    ) -> String {
        let target = (local.format.family(), frame.namespace.as_str());
        let kept = KeptItems::new(target, &frame.context, dialect);
        let write = |out: &mut String, item: &SharedItem| {
            if frame.is_collection {
                kept.push_collected(out, &local.skeleton, &item.kept());
            } else {
                kept.push(out, &item.kept());
            }
        };
        // One declaration is as good as another.
        let repairs = frame.repairs.iter().filter(|repair| repair.with != DECLARATION);
        let edits = declaration(text).into_iter().chain(repairs.cloned());
        let mut edits: Vec<Edit> = edits.collect();
        for ((span, _), number) in frame.items.iter().zip(0..) {
            if let Some((_, item)) = self.changed.get(&number) {
                let mut with = String::new();
                write(&mut with, item);
                edits.push(Edit { range: span.clone(), with: with.into() });
            }
        }
        let last = frame.items.last().map(|(span, _)| span);
        let before = last.and_then(|last| text.get(..last.start)).unwrap_or_default();
        // The white space in front of the last item is repeated in front of new ones.
        let indent = before.get(before.trim_end().len()..).unwrap_or_default();
        let mut new = String::new();
        for item in &self.new {
            new.push_str(indent);
            write(&mut new, item);
        }
        let end = last.map_or(frame.content.end, |last| last.end);
        edits.push(match &frame.empty_tag {
            Some(name) if !new.is_empty() => {
                Edit { range: end.saturating_sub(2)..end, with: format!(">{new}</{name}>").into() }
            }
            _ => Edit { range: end..end, with: new.into() },
        });
        let mut merged = Edits::new(0..text.len(), edits).apply(text).into_owned();
        // A character that XML forbids was warned of, and nobody could read the item again.
        merged.retain(is_char);
        merged
    }

    /// The same of a collection as JSON: what is not concerned keeps its members.
    fn json(&self, mut collection: Value, skeleton: &Skeleton) -> String {
        let mut items = collection.get_mut("items").map(Value::take).unwrap_or_default();
        let old = items.as_array_mut().map(std::mem::take).unwrap_or_default();
        // What is no object was no item.
        let (mut objects, rest): (Vec<_>, Vec<_>) = old.into_iter().partition(Value::is_object);
        for (object, number) in objects.iter_mut().zip(0..) {
            if let Some((was, item)) = self.changed.get(&number) {
                *object = json_item(skeleton, &item.item, Some((object, &was.item)));
            }
        }
        objects.extend(self.new.iter().map(|item| json_item(skeleton, &item.item, None)));
        objects.extend(rest);
        if let Some(collection) = collection.as_object_mut() {
            collection.insert("items".to_owned(), Value::Array(objects));
        }
        let mut out = collection.to_string();
        out.push('\n');
        out
    }
}

/// A shared item. `before`: the one that it takes the place of, and what that shared. A version
/// that was there keeps its members.
fn json_item(
    skeleton: &Skeleton,
    shared: &Shared<ItemData>,
    before: Option<(&Value, &Shared<ItemData>)>,
) -> Value {
    let known = |version: &Version<ItemData>| -> Option<Value> {
        let (object, shared) = before?;
        if shared.winner.data == version.data {
            return Some(object.clone());
        }
        let place = shared.conflicts.iter().position(|lost| lost.data == version.data)?;
        object.get("sync")?.get("conflicts")?.get(place).cloned()
    };
    let one = |version: &Version<ItemData>, conflicts: Vec<Value>| {
        let written = || members(skeleton, &version.with(version.data.markup.clone()));
        let mut item = known(version).unwrap_or_else(written);
        if let Some(object) = item.as_object_mut() {
            object.insert("sync".to_owned(), sync_object(version, conflicts));
        }
        item
    };
    let conflicts = shared.conflicts.iter().map(|lost| one(lost, Vec::new())).collect();
    one(&shared.winner, conflicts)
}

/// Makes an XML declaration that names another charset name UTF-8, which the result is in.
fn declaration(text: &str) -> Option<Edit> {
    let end = text.strip_prefix("<?xml")?.find("?>")? + "<?xml?>".len();
    let said = text.get(..end)?.to_ascii_lowercase();
    let with = Cow::Borrowed(DECLARATION);
    (said.contains("encoding") && !said.contains("utf-8")).then_some(Edit { range: 0..end, with })
}
