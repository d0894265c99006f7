//! What is asked for, and what comes of the answers.

use super::document::{Document, ReplicaHead, read_replica, write_replica};
use super::history::{HistoryWalk, Reconstructed};
use super::item::{ReplicaItem, SharedItem, changes, merge_sets};
use super::{
    Answer, Ask, Asked, Complete, FetchedBody, PullError, PullLimits, PullOutcome, PulledChange,
    ReplicaBasis, State,
};
use std::collections::HashSet;
use std::fmt::Display;
use tidegate_core::model::Older;
use url::Url;

/// A pull that is under way.
struct Pull<F> {
    limits: PullLimits,
    state: State,
    /// The replica that is there.
    written: Option<WrittenReplica>,
    requests: usize,
    bytes: usize,
    warnings: Vec<String>,
    was_out_of_sync: bool,
    fetch: F,
}

/// The replica of the last pull.
struct WrittenReplica {
    text: String,
    head: ReplicaHead,
    items: Vec<ReplicaItem>,
}

/// Pulls the feed at `url`. `saved`: the state and the replica of the last pull; `fetch` asks a
/// publisher.
pub async fn pull(
    url: Url,
    limits: PullLimits,
    saved: Option<(State, String)>,
    fetch: impl AsyncFnMut(&Ask) -> Answer,
) -> Result<PullOutcome, PullError> {
    let (state, text) = saved.map_or_else(
        || (State { subscription: url.to_string(), ..State::default() }, None),
        |(state, text)| (state, Some(text)),
    );
    let url = Url::parse(&state.subscription).unwrap_or(url);
    let read = |text: String| match read_replica(&text, &url) {
        Ok((head, items)) => Ok(WrittenReplica { text, head, items }),
        Err(fault) => Err(PullError(format!("the replica: {fault}"))),
    };
    let written = text.map(read).transpose()?;
    let (warnings, was_out_of_sync) = (Vec::new(), false);
    let (requests, bytes) = (0, 0);
    let pull = Pull { limits, state, written, requests, bytes, warnings, was_out_of_sync, fetch };
    pull.subscription(&url).await
}

impl<F: AsyncFnMut(&Ask) -> Answer> Pull<F> {
    async fn ask(&mut self, url: &Url, asked: Asked) -> Answer {
        self.requests += 1;
        let answer = (self.fetch)(&Ask { url: url.clone(), asked }).await;
        if let Ok(Some(found)) = &answer {
            self.bytes = self.bytes.saturating_add(found.bytes.len());
        }
        answer
    }

    /// Asks for a document, whatever of it is known.
    async fn whole(&mut self, url: &Url) -> Result<FetchedBody, String> {
        self.ask(url, Asked::Unless(None)).await?.ok_or_else(|| UNASKED.to_owned())
    }

    /// The document that is subscribed to.
    async fn subscription(mut self, url: &Url) -> Result<PullOutcome, PullError> {
        let asked = if self.written.is_some() { Asked::Changes } else { Asked::Unless(None) };
        let unread = |why| unread(url, why);
        let Some(mut found) = self.ask(url, asked).await.map_err(unread)? else {
            return self.unchanged().await;
        };
        let mut document = Document::read(&found, None)?;
        self.warnings.append(&mut document.warnings);
        // Step 1: one hop only (READINGS 3, row 4).
        let history = &document.history;
        let current = history.current.clone().filter(|current| {
            let is_here = current == url || *current == found.url;
            document.sharing.is_none() && !is_here && history.own.as_ref() != Some(current)
        });
        if let Some(current) = current {
            found.bytes = Vec::new();
            let newer = self.whole(&current).await.and_then(|found| {
                let document = Document::read(&found, None).map_err(|error| error.to_string())?;
                Ok((found, document))
            });
            match newer {
                Ok(newer) => {
                    (found, document) = newer;
                    self.warnings.append(&mut document.warnings);
                    self.state.subscription = current.to_string();
                }
                Err(why) => self.warnings.push(format!(
                    "the document {current}, which the feed calls current, was not read: {why}; \
                     the one that was given is gone on with"
                )),
            }
        }
        self.state.etag = found.etag;
        self.state.last_modified = found.last_modified;
        self.state.answered_by = Some(found.url.into());
        match document.sharing {
            Some(_) => self.sse(document).await,
            None => self.plain(document).await,
        }
    }

    /// The document that is subscribed to is the one of the last pull.
    async fn unchanged(self) -> Result<PullOutcome, PullError> {
        let Some(WrittenReplica { head, items, .. }) = &self.written else {
            // There is nothing to go on with, and nothing is lost.
            return Ok(self.outcome(None, Vec::new(), &[]));
        };
        let (head, items) = (head.clone(), items.clone());
        match &self.state.kept {
            ReplicaBasis::Sse { until: None, complete: Some(known) } => {
                match Url::parse(&known.url) {
                    Ok(url) => self.complete(&url, Document::without_items(head)).await,
                    Err(_) => self.finish(&items, &head, &HashSet::new()),
                }
            }
            ReplicaBasis::History { gaps, .. } if !gaps.is_empty() => {
                let walk = HistoryWalk::new(head, &self.state.kept, &[], &items);
                self.walk(walk, None).await
            }
            _ => self.finish(&items, &head, &HashSet::new()),
        }
    }

    /// A plain feed: steps 2 and 3 of Feed History draft-05 section 6.
    async fn plain(mut self, document: Document) -> Result<PullOutcome, PullError> {
        let is_whole = document.history.is_complete && !document.is_delta;
        let is_plain = matches!(self.state.kept, ReplicaBasis::History { .. });
        if !is_plain {
            // One plain answer, of a page in its place, say, is no reason to lose all items.
            self.begins_only(&document.head.url, (SHARED, PLAIN))?;
        }
        if is_whole || !is_plain {
            self.state.kept =
                ReplicaBasis::History { archive: None, gaps: Vec::new(), deleted: Vec::new() };
        }
        let Document { head, history, items, .. } = document;
        if is_whole {
            let mut seen = HashSet::new();
            let once = items.into_iter().filter(|item| seen.insert(item.key().to_owned()));
            let items: Vec<ReplicaItem> = once.collect();
            return self.finish(&items, &head, &history.deleted);
        }
        if history.has_pages {
            self.warnings.push(
                "the feed has pages (rel=\"next\"), which change while they are read: they are \
                 not followed"
                    .to_owned(),
            );
        }
        let mut walk = HistoryWalk::new(head, &self.state.kept, &items, self.before());
        let older = walk.begin(items, history);
        self.walk(walk, older).await
    }

    /// Asks for archives, the one at `next` first, and puts together what they say.
    async fn walk(
        mut self,
        mut walk: HistoryWalk,
        mut next: Option<Url>,
    ) -> Result<PullOutcome, PullError> {
        'walk: for part in 0..walk.parts() {
            next = next.or_else(|| walk.gap(part));
            // Each turn asks for one more address, of which there is a limited number.
            while let Some(url) = next.take() {
                match self.archive(&url, &walk).await {
                    Ok(mut document) => {
                        self.warnings.append(&mut document.warnings);
                        match walk.take(&url, document, part) {
                            Ok(older) => next = older,
                            Err(warning) => self.warnings.push(warning),
                        }
                    }
                    Err((why, is_over)) => {
                        self.warnings.push(walk.miss(&url, &why, part));
                        if is_over {
                            break 'walk;
                        }
                    }
                }
            }
        }
        let Reconstructed { items, head, kept, deleted } = walk.ends(self.before().to_vec());
        self.state.kept = kept;
        self.finish(&items, &head, &deleted)
    }

    /// Asks for an archive. Where it cannot be taken: why, and whether no other one is asked for.
    async fn archive(&mut self, url: &Url, walk: &HistoryWalk) -> Result<Document, (String, bool)> {
        let PullLimits { requests, bytes, items } = self.limits;
        if self.requests >= requests {
            let why = format!("this pull has made {requests} requests, which is the limit");
            return Err((why, true));
        }
        let found = self.whole(url).await;
        if self.bytes > bytes {
            return Err((format!("this pull has read {bytes} bytes, which is the limit"), true));
        }
        let read = Document::read(&found.map_err(|why| (why, false))?, Some(Older::Archives));
        let document = read.map_err(|error| (error.to_string(), false))?;
        walk.refuses(&document, items).map_or(Ok(document), |why| Err((why, true)))
    }

    /// An SSE feed: sections 4.1.1 and 4.1.2 of SSE 1.0.
    async fn sse(mut self, partial: Document) -> Result<PullOutcome, PullError> {
        let cached = match &self.state.kept {
            ReplicaBasis::Sse { until, .. } if self.written.is_some() => until.clone(),
            _ => None,
        };
        if !matches!(self.state.kept, ReplicaBasis::Sse { .. }) {
            self.begins_only(&partial.head.url, (PLAIN, SHARED))?;
            self.state.kept = ReplicaBasis::default();
        }
        let complete = partial.complete();
        match (cached, partial.bounds()) {
            // Section 4.1.2 step 2a: compared by code points.
            (Some(cached), Some((since, _))) if *since > cached => self.was_out_of_sync = true,
            (Some(_), Some((_, until))) => {
                let until = Some(until.clone());
                self.state.kept = ReplicaBasis::Sse { until, complete: None };
                return self.merge(None, partial);
            }
            // Without bounds nobody can tell whether something was missed: the complete feed is
            // read each time, or there is none and this is all.
            (_, None) if complete.is_none() => {
                self.state.kept = ReplicaBasis::default();
                return self.merge(None, partial);
            }
            _ => {}
        }
        // Section 4.1.1. What missed changes is not gone on with.
        if let Some(url) = complete {
            return self.complete(&url, partial).await;
        }
        let until = partial.bounds().map(|(_, until)| until.clone());
        self.state.kept = ReplicaBasis::Sse { until, complete: None };
        self.merge(Some(Vec::new()), partial)
    }

    /// Puts the complete feed in the place of what is there.
    async fn complete(mut self, url: &Url, partial: Document) -> Result<PullOutcome, PullError> {
        let tag = match &self.state.kept {
            ReplicaBasis::Sse { until: None, complete: Some(known) }
                if self.written.is_some() && known.url == url.as_str() =>
            {
                known.etag.clone()
            }
            _ => None,
        };
        let failed = |why: String| unread(url, why);
        let Some(found) = self.ask(url, Asked::Unless(tag)).await.map_err(failed)? else {
            // Only asked for with a tag where there are no bounds.
            return self.merge(None, partial);
        };
        let mut document = Document::read(&found, None)?;
        self.warnings.append(&mut document.warnings);
        if document.sharing.is_none() {
            return Err(failed("the complete feed has no sync markup".to_owned()));
        }
        // The earlier of the two, so that nothing between them is missed (READINGS 1, row 28).
        let until = partial.bounds().map(|(_, until)| until);
        let whole = document.bounds().map(|(_, until)| until);
        let least = until.map(|until| until.min(whole.unwrap_or(until)).clone());
        let read = Complete { url: url.to_string(), etag: found.etag };
        let complete = Some(read).filter(|_| least.is_none());
        self.state.kept = ReplicaBasis::Sse { until: least, complete };
        // Section 4.1.2 step 2a: nothing here was created or last updated by a replica that only
        // reads, so nothing local is merged.
        self.merge(Some(document.items), partial)
    }

    /// Section 4.1.2 step 3. Where nothing is said, the items of the replica that is there are
    /// merged into.
    fn merge(
        self,
        into: Option<Vec<ReplicaItem>>,
        partial: Document,
    ) -> Result<PullOutcome, PullError> {
        let into = into.unwrap_or_else(|| self.before().to_vec());
        let shared = |items: Vec<ReplicaItem>| -> Vec<SharedItem> {
            items.into_iter().filter_map(ReplicaItem::into_shared).collect()
        };
        let mut into = shared(into);
        merge_sets(&mut into, shared(partial.items));
        let items: Vec<ReplicaItem> = into.into_iter().map(ReplicaItem::Shared).collect();
        self.finish(&items, &partial.head, &HashSet::new())
    }

    /// The items of the replica that is there.
    fn before(&self) -> &[ReplicaItem] {
        self.written.as_ref().map_or(&[], |written| &written.items)
    }

    /// Refuses to go on with a replica that was kept by other rules.
    fn begins_only(
        &self,
        url: &Url,
        (before, now): (&'static str, &'static str),
    ) -> Result<(), PullError> {
        if self.written.is_none() {
            return Ok(());
        }
        let advice = "the replica is left as it was; use another --into to begin a new one";
        Err(PullError(format!("{url} has {now} and had {before}; {advice}")))
    }

    fn finish(
        self,
        items: &[ReplicaItem],
        head: &ReplicaHead,
        deleted: &HashSet<String>,
    ) -> Result<PullOutcome, PullError> {
        let text = write_replica(head, items)?;
        let changes = changes(self.before(), items, deleted);
        let is_same = self.written.as_ref().is_some_and(|written| written.text == text);
        Ok(self.outcome((!is_same).then_some(text), changes, items))
    }

    fn outcome(
        self,
        replica: Option<String>,
        changes: Vec<PulledChange>,
        items: &[ReplicaItem],
    ) -> PullOutcome {
        let tombstones = items.iter().filter(|item| item.is_deleted()).count();
        PullOutcome {
            replica,
            state: self.state,
            changes,
            warnings: self.warnings,
            living: items.len() - tombstones,
            tombstones,
            was_out_of_sync: self.was_out_of_sync,
        }
    }
}

/// Why nothing is gone on with where a request without validators is answered as if it had some.
const UNASKED: &str = "the answer was 304 to a request without validators";

fn unread(url: &Url, why: impl Display) -> PullError {
    PullError(format!("{url} could not be read: {why}"))
}

/// By which rules a feed is kept, in words.
const SHARED: &str = "sync markup";
const PLAIN: &str = "no sync markup";
