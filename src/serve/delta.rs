//! Deltas (RFC 3229) with the instance manipulation `feed`: of a feed that a client has in an
//! earlier state, only the entries that are new or changed since.
//!
//! Which state that was stands in the entity tag, beside the hash of the bytes, so that nothing is
//! kept of any client. Whoever makes a tag up gets the whole document: a tag must fit its document,
//! and the render revision in it must be one that this very store has made ([`Lineage`]), not one
//! that it made before it was brought back from an older copy. A delta is rendered like its view and kept like it.
//!
//! [`Lineage`]: tidegate_core::model::Lineage

use super::negotiate::members;
use super::views::ReadView;
use super::{
    AppState, DocumentForm, Problem, ReadPlan, Rendition, RequestedView, ServedDocument,
    ServedFeed, UnwrittenDocument, ViewRequest, WorkRequest, shown,
};
use http::{HeaderMap, HeaderName};
use std::fmt;
use std::sync::Arc;
use tidegate_config::DeltaViews;
use tidegate_core::model::{FeedRecord, FeedState, Format, Item, Revision, Tick, Time};
use tidegate_format::render::{Container, ViewKind};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Which instance manipulations a client accepts (section 10.5.3).
pub(super) const A_IM: HeaderName = HeaderName::from_static("a-im");
/// Which ones an answer was made with (section 10.5.2).
pub(super) const IM: HeaderName = HeaderName::from_static("im");
/// The entity tag of what they were applied to (section 10.5.1).
pub(super) const DELTA_BASE: HeaderName = HeaderName::from_static("delta-base");
/// The manipulation.
pub(super) const FEED: &str = "feed";
/// Separates the parts of a tag.
const DOT: char = '.';

/// Whether the client merges deltas of feeds.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    members(headers, &A_IM).any(|(token, weight)| token.eq_ignore_ascii_case(FEED) && weight > 0)
}

/// What a tag belongs to: a hash of everything that a document is made of beside the feed's state,
/// this program included, which may write entries otherwise tomorrow. Tags are public and short, so
/// that anybody can try out what was hashed: nothing secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TagScope(u64);

impl TagScope {
    /// The scope of a view that has deltas. `None` for containers that are not the feed's own: what the state says of deltas is said of that one.
    pub(super) fn new(
        record: &FeedRecord,
        reader: &str,
        kind: ViewKind,
        form: DocumentForm,
        format: Format,
    ) -> Option<Self> {
        // Outlines of a list nest, so a list is always sent whole.
        let is_list = form.container(format) == Container::Opml;
        if form.within(format).container.is_some() || is_list {
            return None;
        }
        let dialect = form.dialect;
        let mut hash = Xxh3::new();
        let form = format!("{kind:?} {dialect:?} {:?}", format.family());
        let upstream = shown(&record.url, record.options.secret);
        for part in [env!("CARGO_PKG_VERSION"), &form, reader, &upstream] {
            hash.update(&part.len().to_le_bytes());
            hash.update(part.as_bytes());
        }
        Some(Self(hash.digest()))
    }
}

/// A state that a feed was or is in, as its tags name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Point {
    /// The render revision.
    pub(super) render: u64,
    /// `until` at that time.
    pub(super) tick: Tick,
    /// The random mark of the opening of the store under which the state was made (see `Lineage`).
    mark: u32,
}

impl Point {
    /// The state that a feed is in; `None` where no delta can begin.
    pub(super) fn of(state: &FeedState) -> Option<Self> {
        Some(Self { render: state.render_revision, tick: state.tick?, mark: state.lineage.mark()? })
    }

    /// Whether this feed was ever in this state.
    fn was(self, state: &FeedState) -> bool {
        state.lineage.made(self.mark, self.render, state.render_revision)
            && Some(self.tick) <= state.tick
    }

    /// The part of a tag that names this state of a document.
    pub(super) fn token(self, scope: TagScope) -> DeltaToken {
        DeltaToken { point: self, check: check(self, scope) }
    }
}

fn check(point: Point, scope: TagScope) -> u32 {
    let tick = point.tick.time().unix();
    let text = format!("{:x} {:x} {tick:x} {:x}", scope.0, point.render, point.mark);
    // Half of the hash is enough to tell a tag of another document.
    u32::try_from(xxh3_64(text.as_bytes()) >> u32::BITS).unwrap_or(0)
}

/// A state as it stands in a tag, behind the hash of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct DeltaToken {
    point: Point,
    check: u32,
}

impl fmt::Display for DeltaToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Point { render, tick, mark } = self.point;
        let tick = tick.time().unix();
        write!(f, "{DOT}{render:x}{DOT}{tick:x}{DOT}{mark:x}{DOT}{:08x}", self.check)
    }
}

impl DeltaToken {
    /// Reads the token of a tag, its quotes included.
    fn read(tag: &str) -> Option<Self> {
        let inside = tag.strip_prefix('"')?.strip_suffix('"')?;
        let mut parts = inside.split(DOT).skip(1);
        let mut next = || parts.next().and_then(|part| u64::from_str_radix(part, 16).ok());
        let (render, tick, mark, check) = (next()?, next()?, next()?, next()?);
        if parts.next().is_some() {
            return None;
        }
        let tick = Tick::at(Time::from_unix(tick.cast_signed()));
        let point = Point { render, tick, mark: u32::try_from(mark).ok()? };
        Some(Self { point, check: u32::try_from(check).ok()? })
    }
}

/// The latest state of this document that the client has, with its tag. `tags`: those that it
/// names, without `W/`, which makes no difference here.
pub(super) fn base<'t>(
    tags: impl Iterator<Item = &'t str>,
    scope: TagScope,
    state: &FeedState,
) -> Option<(Point, &'t str)> {
    let known = tags.filter_map(|tag| Some((DeltaToken::read(tag)?, tag)));
    let ours = known.filter(|(token, _)| token.check == check(token.point, scope));
    let ours = ours.filter(|(token, _)| token.point.was(state));
    ours.map(|(token, tag)| (token.point, tag)).max_by_key(|(point, _)| point.render)
}

/// A delta and the tag of what it begins with.
pub(crate) struct Delta {
    /// The delta; its tags are its own, not those of the whole document.
    pub(crate) rendition: Arc<Rendition>,
    /// The tag that the client named.
    pub(crate) base: String,
}

impl AppState {
    /// Whether a view is answered with deltas where a client asks for them (`publish.deltas`). The complete view never is.
    ///
    /// That a client asks does not say that it understands: a library asks for all programs that use it, and
    /// those that take 226 for an error lose what came with it.
    pub(crate) fn has_deltas(&self, kind: ViewKind) -> bool {
        match kind {
            ViewKind::Sync => true,
            ViewKind::Reader => self.config.publish.deltas == DeltaViews::All,
            ViewKind::Complete => false,
        }
    }

    /// What the tags of a view belong to; `None` where it has no deltas.
    pub(super) fn tag_scope(
        &self,
        record: &ServedFeed,
        request: ViewRequest,
        state: &FeedState,
    ) -> Option<TagScope> {
        if !self.has_deltas(request.kind) {
            return None;
        }
        let form = request.form.within(state.format);
        let reader = record.site.view(&record.name, ViewKind::Reader, form);
        TagScope::new(record, &reader, request.kind, form, state.format)
    }

    /// What changed between the latest state that one of `tags` names and the document `whole` of a view.
    /// `None` where the whole document is the answer: to tags that were never given out here, where
    /// a delta cannot tell of all that changed, and where anything fails.
    pub(crate) async fn delta(
        self: &Arc<Self>,
        requested: &RequestedView<'_>,
        whole: &Rendition,
        tags: impl Iterator<Item = &str>,
    ) -> Option<Delta> {
        let RequestedView { record, request, state, .. } = *requested;
        // The answer bears the tag of the whole document, so the delta must lead to that very one.
        if request.seen.is_some() || state.revision != whole.revision {
            return None;
        }
        let scope = self.tag_scope(record, request, state)?;
        let (base, tag) = base(tags, scope, state)?;
        if !tells_all(record, request.kind, base, state) {
            return None;
        }
        let (key, revision) = requested.key(Some(base));
        let work = WorkRequest { records_cost: false, ..requested.work(&self.admission) };
        let make = || {
            let (app, record, revision) = (Arc::clone(self), record.clone(), state.revision);
            async move { app.build_delta(&record, request, base, revision).await }
        };
        let kept = self.documents.get(key, revision, work, make).await.inspect_err(|problem| {
            let why = &problem.detail;
            tracing::warn!(feed = %record.name, why, "a delta could not be made; the whole document is served");
        });
        Some(Delta { rendition: Arc::clone(kept.ok()?.encoded()?), base: tag.to_owned() })
    }

    async fn build_delta(
        &self,
        record: &ServedFeed,
        request: ViewRequest,
        base: Point,
        revision: Revision,
    ) -> Result<ServedDocument, Problem> {
        let ReadView { plan: whole, mut view, mut rest, mut deleted } =
            self.read_view(record, request).await?;
        if view.state.revision != revision {
            let why = "the feed changed since the document that the delta leads to";
            return Err(Problem::later(why));
        }
        // A delta of the sync view says of itself what an answer to `?since=` does, so that who
        // reads it as a feed is told the truth (SSE 1.0 section 4.1.2).
        let plan = match whole {
            ReadPlan::Window { .. } => ReadPlan::Window { since: Some(base.tick) },
            other => other,
        };
        let expires = whole.expires(&view.items, self.config.publish.window);
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
            ..self.unwritten(record, request, view, &deleted)
        };
        Ok(self.write_document(document).await?.into())
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidegate_core::model::{FeedName, FeedSource, Format, Stretch};
    use tidegate_format::render::{Container, Dialect};

    const FORM: DocumentForm = DocumentForm { dialect: Dialect::Sse, container: None };

    fn record(url: &str) -> FeedRecord {
        FeedRecord::new(FeedName::new("news").unwrap(), url, FeedSource::Api)
    }

    fn scope(url: &str, kind: ViewKind) -> TagScope {
        TagScope::new(&record(url), "https://here/feeds/news", kind, FORM, Format::Atom10).unwrap()
    }

    fn state(render: u64) -> FeedState {
        let mut state = FeedState::untouched(Format::Atom10, Time::from_unix(0));
        state.render_revision = render;
        state.tick = Some(Tick::at(Time::from_unix(1_795_191_605)));
        for stretch in [Stretch { mark: 7, after: 0 }, Stretch { mark: 9, after: 5 }] {
            state.lineage.go_on(stretch.mark, stretch.after);
        }
        state
    }

    fn tag(point: Point, scope: TagScope) -> String {
        format!("\"0123{}\"", point.token(scope))
    }

    #[test]
    fn of_several_states_the_latest_counts() {
        let (state, scope) = (state(8), scope("https://pub/", ViewKind::Reader));
        let at = |render, mark| tag(Point { render, tick: state.tick.unwrap(), mark }, scope);
        let tags = [at(2, 7), "\"x\"".to_owned(), at(6, 9), at(4, 7), at(99, 9)];
        let found = base(tags.iter().map(String::as_str), scope, &state);
        assert_eq!(found.map(|(point, tag)| (point.render, tag)), Some((6, tags[2].as_str())));
    }

    #[test]
    fn what_was_never_given_out_here_is_no_base() {
        let (state, here) = (state(8), scope("https://pub/", ViewKind::Reader));
        let point = Point::of(&state).unwrap();
        let after = Tick::at(Time::MAX);
        for strange in [
            // Of another document.
            tag(point, scope("https://pub/", ViewKind::Sync)),
            tag(point, scope("https://moved/", ViewKind::Reader)),
            // Not made yet, made under another opening, or under one that nobody knows.
            tag(Point { render: 9, ..point }, here),
            tag(Point { mark: 7, ..point }, here),
            tag(Point { render: 3, ..point }, here),
            tag(Point { mark: 1, ..point }, here),
            tag(Point { tick: after, ..point }, here),
            // Of an earlier program, made up, or damaged.
            "\"0123\"".to_owned(),
            "\"0123.8.1.9.1\"".to_owned(),
            tag(point, here).replace("\"0123.", "\"0123.0.0."),
            tag(point, here).trim_end_matches('"').to_owned(),
            "*".to_owned(),
        ] {
            assert_eq!(base([strange.as_str()].into_iter(), here, &state), None, "{strange}");
        }
    }

    /// Whoever has a tag could try passwords until one gives the same tag.
    #[test]
    fn a_tag_says_nothing_of_the_credentials() {
        let of = |url: &str| scope(url, ViewKind::Reader);
        assert_eq!(of("https://me:secret@pub/"), of("https://pub/"));
        assert_eq!(of("https://me:secret@pub/"), of("https://me:other@pub/"));
        assert_ne!(of("https://me:secret@pub/"), of("https://moved/"));
        // There are deltas in the feed's own container only.
        for (container, own) in [(Container::Atom, true), (Container::Rss, false)] {
            let form = DocumentForm { container: Some(container), ..FORM };
            let scope = TagScope::new(&record("u"), "r", ViewKind::Sync, form, Format::Atom10);
            assert_eq!(scope.is_some(), own);
        }
        let list = TagScope::new(&record("u"), "r", ViewKind::Reader, FORM, Format::Opml);
        assert_eq!(list, None);
    }

    #[test]
    fn feed_is_asked_for_by_name_and_weight() {
        for (asked, wanted) in [
            ("feed", true),
            ("FEED", true),
            ("vcdiff, feed;q=0.5, gzip", true),
            ("feed;q=0", false),
            ("feed;q=0.000", false),
            ("gzip", false),
            ("*", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(A_IM, asked.parse().unwrap())]);
            assert_eq!(is_wanted(&headers), wanted, "{asked:?}");
        }
        assert!(!is_wanted(&HeaderMap::new()));
    }

    proptest! {
        #[test]
        fn tokens_read_back(render: u64, mark: u32, seconds: i64) {
            let tick = Tick::at(Time::from_unix(seconds));
            let token = Point { render, tick, mark }.token(scope("u", ViewKind::Sync));
            prop_assert_eq!(DeltaToken::read(&format!("\"a{token}\"")), Some(token));
        }
    }
}
