//! What changed since an earlier state of a view, rendered like the view and kept like it.

use super::{ReadView, RenditionCache, ViewRequest, plan, view_key};
use crate::audience::ServedFeed;
use crate::client::Client;
use crate::delta::{self, Point, TagScope};
use crate::documents::{NoDocument, ServedDocument};
use crate::plan::ReadPlan;
use crate::rendition::{Rendition, UnwrittenDocument};
use std::sync::Arc;
use tidegate_core::model::{FeedState, Item, Revision};
use tidegate_format::render::ViewKind;

/// A delta and the tag of what it begins with.
pub(crate) struct Delta {
    /// The delta; its tags are its own, not those of the whole document.
    pub(crate) rendition: Arc<Rendition>,
    /// The tag that the client named.
    pub(crate) base: String,
}

impl RenditionCache {
    /// Whether a view is answered with deltas.
    pub(crate) const fn has_deltas(&self, kind: ViewKind) -> bool {
        delta::has_deltas(self.views_with_deltas, kind)
    }

    /// What the tags of a view belong to; `None` where it has no deltas.
    pub(super) fn scope(
        &self,
        record: &ServedFeed,
        wish: ViewRequest,
        state: &FeedState,
    ) -> Option<TagScope> {
        if !self.has_deltas(wish.kind) {
            return None;
        }
        let form = wish.form(state);
        let reader = record.site.view(&record.name, ViewKind::Reader, form);
        TagScope::new(record, &reader, wish.kind, form, state.format)
    }

    /// What changed between the latest state that one of `tags` names and the document `whole`.
    /// `None` where the whole document is the answer: to tags that were never given out here, where
    /// a delta cannot tell of all that changed, and where anything fails.
    pub(crate) async fn delta(
        self: &Arc<Self>,
        record: &ServedFeed,
        wish: ViewRequest,
        whole: &Rendition,
        tags: impl Iterator<Item = &str>,
        client: Client,
    ) -> Option<Delta> {
        let state = self.store.state(&record.name).await.ok()??;
        // The answer bears the tag of the whole document, so the delta must lead to that very one.
        if wish.seen.is_some() || state.revision != whole.revision {
            return None;
        }
        let scope = self.scope(record, wish, &state)?;
        let (base, tag) = delta::base(tags, scope, &state)?;
        if !tells_all(record, wish.kind, base, &state) {
            return None;
        }
        let plan = plan(wish, &state).ok()?;
        let key = view_key(record, wish, plan, &state, Some(base));
        let ask = self.ask(record, wish, &state, client, false);
        let make = || {
            let (shelf, record) = (Arc::clone(self), record.clone());
            async move { shelf.build_delta(&record, wish, base, state.revision).await }
        };
        let kept = self.documents.get(key, ask, make).await;
        let kept = kept.inspect_err(|missing| tell(record, missing)).ok()?;
        Some(Delta { rendition: Arc::clone(kept.encoded()?), base: tag.to_owned() })
    }

    async fn build_delta(
        &self,
        record: &ServedFeed,
        wish: ViewRequest,
        base: Point,
        revision: Revision,
    ) -> Result<ServedDocument, NoDocument> {
        let ReadView { plan: whole, mut view, mut rest, mut deleted } =
            self.read(record, wish).await?;
        if view.state.revision != revision {
            let why = "the feed changed since the document that the delta leads to";
            return Err(NoDocument::failed(why));
        }
        // A delta of the sync view says of itself what an answer to `?since=` does, so that who
        // reads it as a feed is told the truth (SSE 1.0 section 4.1.2).
        let plan = match whole {
            ReadPlan::Window { .. } => ReadPlan::Window { since: Some(base.tick) },
            other => other,
        };
        let expires = whole.expires(&view.items, self.window);
        let is_new = |item: &Item| item.touched > base.render;
        let mut all = view.items.len() + deleted.len();
        view.items.retain(is_new);
        deleted.retain(is_new);
        while let Some(items) = rest.next().await? {
            all += items.len();
            view.items.extend(items.into_iter().filter(is_new));
        }
        if view.items.len() + deleted.len() == all && all > 0 {
            return Ok(ServedDocument::WholeView);
        }
        let document = UnwrittenDocument {
            bounds: plan.bounds(&view.state),
            expires,
            ..self.document(record, wish, view, &deleted)
        };
        Ok(self.write(document).await?.into())
    }
}

/// Whether entries that are new or changed, and deletions, are all that a client needs that has
/// the state `base`.
fn tells_all(record: &ServedFeed, kind: ViewKind, base: Point, state: &FeedState) -> bool {
    // What left the window may have been a deletion.
    let in_window = state.window_start.is_none_or(|start| base.tick >= start);
    let by_entries = match kind {
        // A feed that lists everything is replaced as a whole by its readers (Feed History draft-05
        // section 5), so that what is not there any more says something.
        ViewKind::Reader => {
            let replaced = record.options.complete || state.says_complete;
            !replaced && base.render >= state.deltas_from
        }
        ViewKind::Sync => true,
        ViewKind::Complete => false,
    };
    in_window && by_entries
}

fn tell(record: &ServedFeed, missing: &Arc<NoDocument>) {
    tracing::warn!(
        feed = %record.name,
        error = missing as &dyn std::error::Error,
        "a delta could not be rendered; the whole document is served"
    );
}
