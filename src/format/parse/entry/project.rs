//! The fields of an entry that was skimmed, read from its markup alone.

use super::EntryBuilder;
use crate::parse::Limits;
use crate::parse::dialect::FeedDialect;
use std::borrow::Cow;
use tidegate_core::model::{Context, Field, Format};
use tidegate_core::xml::walker::{WalkLimits, WalkStep, Walker};

/// The skim has measured the entry: no limit is met in it again.
const MEASURED: Limits = Limits {
    decoded: usize::MAX,
    walk: WalkLimits {
        depth: usize::MAX,
        attributes: usize::MAX,
        namespaces: usize::MAX,
        name: usize::MAX - 1,
        base: usize::MAX,
        repairs: usize::MAX,
        restarts: usize::MAX,
        warnings: 0,
    },
    entries: usize::MAX,
    entry: usize::MAX,
    fields: usize::MAX,
    path: usize::MAX,
    projection: usize::MAX,
    head_values: usize::MAX,
};

/// The canonical projection of an entry that stands in a document of the usual form
/// ([`FeedDialect::is_usual`]) and inherits `context`.
pub(in crate::parse) fn project(
    markup: &str,
    context: &Context,
    format: Format,
) -> Vec<Field<'static>> {
    let dialect = FeedDialect::usual(format);
    let mut walker = Walker::new(markup, 0, None, &MEASURED.walk);
    for (prefix, uri) in &context.namespaces {
        walker.scope.declare(prefix.clone(), Cow::Owned(uri.clone()));
    }
    let mut builder: Option<EntryBuilder<'_, '_>> = None;
    loop {
        walker.joins_text = builder.as_ref().is_none_or(EntryBuilder::joins_text);
        let Ok(step) = walker.step() else { break };
        let done = match (step, &mut builder) {
            (WalkStep::Open, None) => {
                builder = EntryBuilder::new(&walker, dialect, &MEASURED, 0);
                Ok(())
            }
            (WalkStep::Open, Some(builder)) => builder.open(&walker),
            (WalkStep::Text(text), Some(builder)) => {
                builder.text(text);
                Ok(())
            }
            (WalkStep::Close { frame, content_end, end }, Some(builder)) => {
                builder.close(&mut walker, &frame, content_end, end)
            }
            (WalkStep::Text(_), None) => Ok(()),
            (WalkStep::Close { .. } | WalkStep::Torn { .. } | WalkStep::End, _) => break,
        };
        if done.is_err() {
            break;
        }
    }
    builder.into_iter().flat_map(|builder| builder.fields).map(Field::detached).collect()
}
