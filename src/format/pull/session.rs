//! What to ask for next, and what comes of the answers.

use super::document::{Document, ReplicaHead};
use super::error::PullError;
use super::exchange::{Answer, Ask, Asked, FetchedBody, Next, PullLimits, PullOutcome};
use super::history::{HistoryWalk, Reconstructed};
use super::item::{ItemChange, ReplicaItem, SharedItem, changes};
use super::replica;
use super::sharing::merge_sets;
use super::state::{Complete, ReplicaBasis, State};
use std::collections::HashSet;
use tidegate_core::model::Older;
use url::Url;

/// A pull that is under way.
struct Pull {
    limits: PullLimits,
    state: State,
    /// The replica that is there.
    written: Option<WrittenReplica>,
    requests: usize,
    bytes: usize,
    warnings: Vec<String>,
    was_out_of_sync: bool,
}

/// A pull that waits for an answer.
pub struct PendingPull {
    /// What is to be asked for.
    pub ask: Ask,
    pull: Pull,
    stage: Stage,
}

/// The replica of the last pull.
struct WrittenReplica {
    text: String,
    head: ReplicaHead,
    items: Vec<ReplicaItem>,
}

/// What is asked for.
enum Stage {
    /// The document that is subscribed to.
    Subscription,
    /// The one that it calls `current`.
    Current(Box<Given>),
    /// The complete feed; what was read before it waits.
    Complete(Box<Document>),
    /// An archive.
    Walk(Box<HistoryWalk>),
}

/// A plain document that calls another one `current`: what counts where that one cannot be had.
struct Given {
    /// The address that was subscribed to.
    subscription: String,
    /// How it was answered; without the bytes.
    found: FetchedBody,
    document: Document,
}

/// Begins a pull of the feed at `url`. `saved`: the state and the replica of the last one.
pub fn begin(
    url: Url,
    limits: PullLimits,
    saved: Option<(State, String)>,
) -> Result<Next, PullError> {
    let (state, text) = saved.map_or_else(
        || (State { subscription: url.to_string(), ..State::default() }, None),
        |(state, text)| (state, Some(text)),
    );
    let url = Url::parse(&state.subscription).unwrap_or(url);
    let read = |text: String| {
        let (head, items) = replica::read(&text, &url)?;
        Ok(WrittenReplica { text, head, items })
    };
    let written = text.map(read).transpose();
    let written =
        written.map_err(|source| PullError::Markup { url: "the replica".to_owned(), source })?;
    let asked = if written.is_some() { Asked::Changes } else { Asked::Unless(None) };
    let (warnings, was_out_of_sync) = (Vec::new(), false);
    let pull = Pull { limits, state, written, requests: 0, bytes: 0, warnings, was_out_of_sync };
    Ok(pull.asks(Stage::Subscription, Ask { url, asked }))
}

impl PendingPull {
    /// Takes in what came, and says what to do next.
    pub fn answer(self, answer: Answer) -> Result<Next, PullError> {
        let Self { ask: Ask { url, .. }, mut pull, stage } = self;
        if let Answer::Document(found) = &answer {
            pull.bytes = pull.bytes.saturating_add(found.bytes.len());
        }
        match stage {
            Stage::Subscription => pull.subscription(&url, answer),
            Stage::Current(given) => pull.current(&url, *given, answer),
            Stage::Complete(partial) => pull.complete(&url, *partial, answer),
            Stage::Walk(walk) => pull.archive(walk, answer),
        }
    }
}

impl Pull {
    fn asks(mut self, stage: Stage, ask: Ask) -> Next {
        self.requests += 1;
        Next::Ask(Box::new(PendingPull { ask, pull: self, stage }))
    }

    /// Asks for the complete feed, which replaces what is there.
    fn asks_for_complete(self, url: Url, partial: Document) -> Next {
        let known = match &self.state.kept {
            ReplicaBasis::Sse { until: None, complete } if self.written.is_some() => {
                complete.as_ref().filter(|complete| complete.url == url.as_str())
            }
            _ => None,
        };
        let tag = known.and_then(|complete| complete.etag.clone());
        self.asks(Stage::Complete(Box::new(partial)), Ask { url, asked: Asked::Unless(tag) })
    }

    /// Asks for the next archive, or puts together what the archives say.
    fn walks(mut self, mut walk: Box<HistoryWalk>) -> Result<Next, PullError> {
        if let Some(url) = walk.asks().cloned() {
            let limit = self.limits.requests;
            if self.requests < limit {
                return Ok(self.asks(Stage::Walk(walk), Ask { url, asked: Asked::Unless(None) }));
            }
            let why = format!("this pull has made {limit} requests, which is the limit");
            self.warnings.extend(walk.stops(&why));
        }
        let Reconstructed { items, head, kept, deleted } = walk.ends(self.before().to_vec());
        self.state.kept = kept;
        self.ends(&items, &head, &deleted)
    }

    fn subscription(mut self, url: &Url, answer: Answer) -> Result<Next, PullError> {
        let mut found = match answer {
            Answer::Document(found) => *found,
            Answer::NotModified => return self.unchanged(),
            Answer::Failed(why) => {
                return Err(PullError::Unread { url: url.to_string(), why });
            }
        };
        let mut document = Document::read(&found, None)?;
        self.warnings.append(&mut document.warnings);
        // Step 1: one hop only (READINGS 3, row 4).
        let history = &document.history;
        let current = history.current.clone().filter(|current| {
            let is_here = current == url || *current == found.url;
            document.sharing.is_none() && !is_here && history.own.as_ref() != Some(current)
        });
        let Some(current) = current else {
            return self.takes(&found, document);
        };
        found.bytes = Vec::new();
        let subscription = std::mem::replace(&mut self.state.subscription, current.to_string());
        let given = Box::new(Given { subscription, found, document });
        Ok(self.asks(Stage::Current(given), Ask { url: current, asked: Asked::Unless(None) }))
    }

    /// The document that another one calls `current`; where it cannot be had, the other one counts
    /// (READINGS 3, row 4).
    fn current(mut self, url: &Url, given: Given, answer: Answer) -> Result<Next, PullError> {
        let why = match answer {
            Answer::Document(found) => match Document::read(&found, None) {
                Ok(document) => return self.takes(&found, document),
                Err(error) => error.to_string(),
            },
            Answer::NotModified => "the answer was 304 to a request without validators".to_owned(),
            Answer::Failed(why) => why,
        };
        self.warnings.push(format!(
            "the document {url}, which the feed calls current, was not read: {why}; the one that \
             was given is gone on with"
        ));
        let Given { subscription, found, document } = given;
        self.state.subscription = subscription;
        self.takes(&found, document)
    }

    /// Takes in the document that is subscribed to.
    fn takes(mut self, found: &FetchedBody, mut document: Document) -> Result<Next, PullError> {
        self.warnings.append(&mut document.warnings);
        self.state.etag.clone_from(&found.etag);
        self.state.last_modified.clone_from(&found.last_modified);
        self.state.answered_by = Some(found.url.to_string());
        if document.sharing.is_some() { self.sse(document) } else { self.plain(document) }
    }

    /// The document that is subscribed to is the one of the last pull.
    fn unchanged(self) -> Result<Next, PullError> {
        let head = self.written.as_ref().map(|written| written.head.clone());
        let complete = match &self.state.kept {
            ReplicaBasis::Sse { until: None, complete } => complete.as_ref(),
            _ => None,
        };
        let complete = complete.and_then(|complete| Url::parse(&complete.url).ok());
        let has_gaps =
            matches!(&self.state.kept, ReplicaBasis::History { gaps, .. } if !gaps.is_empty());
        match (head, complete) {
            (Some(head), Some(url)) => {
                Ok(self.asks_for_complete(url, Document::without_items(head)))
            }
            (Some(head), None) if has_gaps => {
                let walk = HistoryWalk::again(head, &self.state.kept, self.before());
                self.walks(Box::new(walk))
            }
            _ => Ok(self.outcome(None, Vec::new(), self.before())),
        }
    }

    /// A plain feed: steps 2 and 3 of Feed History draft-05 section 6.
    fn plain(mut self, document: Document) -> Result<Next, PullError> {
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
        if is_whole {
            let Document { head, history, items, .. } = document;
            let mut seen = HashSet::new();
            let once = items.into_iter().filter(|item| seen.insert(item.key().to_owned()));
            let items: Vec<ReplicaItem> = once.collect();
            return self.ends(&items, &head, &history.deleted);
        }
        if document.history.has_pages {
            self.warnings.push(
                "the feed has pages (rel=\"next\"), which change while they are read: they are \
                 not followed"
                    .to_owned(),
            );
        }
        let walk = HistoryWalk::begin(document, &self.state.kept, self.before());
        self.walks(Box::new(walk))
    }

    /// An SSE feed: sections 4.1.1 and 4.1.2 of SSE 1.0.
    fn sse(mut self, partial: Document) -> Result<Next, PullError> {
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
            (Some(cached), Some((since, _))) if *since > cached => {
                self.was_out_of_sync = true;
                self.anew(partial, complete)
            }
            (Some(_), Some((_, until))) => {
                let until = Some(until.clone());
                self.state.kept = ReplicaBasis::Sse { until, complete: None };
                self.merges(self.before().to_vec(), partial)
            }
            // Without bounds nobody can tell whether something was missed: the complete feed is
            // read each time, or there is none and this is all.
            (_, None) if complete.is_none() => {
                self.state.kept = ReplicaBasis::default();
                self.merges(self.before().to_vec(), partial)
            }
            _ => self.anew(partial, complete),
        }
    }

    /// Section 4.1.1. What missed changes is not gone on with.
    fn anew(mut self, partial: Document, complete: Option<Url>) -> Result<Next, PullError> {
        if let Some(url) = complete {
            return Ok(self.asks_for_complete(url, partial));
        }
        let until = partial.bounds().map(|(_, until)| until.clone());
        self.state.kept = ReplicaBasis::Sse { until, complete: None };
        self.merges(Vec::new(), partial)
    }

    fn complete(mut self, url: &Url, partial: Document, answer: Answer) -> Result<Next, PullError> {
        let failed = |why: String| PullError::Unread { url: url.to_string(), why };
        let found = match answer {
            Answer::Document(found) => found,
            // Only asked for with a tag where there are no bounds.
            Answer::NotModified => return self.merges(self.before().to_vec(), partial),
            Answer::Failed(why) => return Err(failed(why)),
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
        let read = Complete { url: url.to_string(), etag: found.etag.clone() };
        let complete = Some(read).filter(|_| least.is_none());
        self.state.kept = ReplicaBasis::Sse { until: least, complete };
        // Section 4.1.2 step 2a: nothing here was created or last updated by a replica that only
        // reads, so nothing local is merged.
        self.merges(document.items, partial)
    }

    /// Section 4.1.2 step 3.
    fn merges(&self, into: Vec<ReplicaItem>, partial: Document) -> Result<Next, PullError> {
        let shared = |items: Vec<ReplicaItem>| -> Vec<SharedItem> {
            items.into_iter().filter_map(ReplicaItem::into_shared).collect()
        };
        let mut into = shared(into);
        merge_sets(&mut into, shared(partial.items));
        let items: Vec<ReplicaItem> = into.into_iter().map(ReplicaItem::Shared).collect();
        self.ends(&items, &partial.head, &HashSet::new())
    }

    /// The items of the replica that is there.
    fn before(&self) -> &[ReplicaItem] {
        self.written.as_ref().map_or(&[], |written| &written.items)
    }

    fn archive(mut self, mut walk: Box<HistoryWalk>, answer: Answer) -> Result<Next, PullError> {
        let warning = match answer {
            _ if self.bytes > self.limits.bytes => {
                let limit = self.limits.bytes;
                walk.stops(&format!("this pull has read {limit} bytes, which is the limit"))
            }
            Answer::Document(found) => match Document::read(&found, Some(Older::Archives)) {
                Ok(mut document) => match walk.refuses(&document, self.limits.items) {
                    Some(why) => walk.stops(&why),
                    None => {
                        self.warnings.append(&mut document.warnings);
                        walk.takes(document)
                    }
                },
                Err(error) => walk.lacks(&error.to_string()),
            },
            Answer::NotModified => walk.lacks("the answer was 304 to a request without validators"),
            Answer::Failed(why) => walk.lacks(&why),
        };
        self.warnings.extend(warning);
        self.walks(walk)
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
        Err(PullError::Changed { url: url.to_string(), before, now })
    }

    fn ends(
        &self,
        items: &[ReplicaItem],
        head: &ReplicaHead,
        deleted: &HashSet<String>,
    ) -> Result<Next, PullError> {
        let text = replica::write(head, items)?;
        let changes = changes(self.before(), items, deleted);
        let is_same = self.written.as_ref().is_some_and(|written| written.text == text);
        let text = (!is_same).then_some(text);
        Ok(self.outcome(text, changes, items))
    }

    fn outcome(
        &self,
        replica: Option<String>,
        changes: Vec<ItemChange>,
        items: &[ReplicaItem],
    ) -> Next {
        let tombstones = items.iter().filter(|item| item.is_deleted()).count();
        Next::Done(Box::new(PullOutcome {
            replica,
            state: self.state.clone(),
            changes,
            warnings: self.warnings.clone(),
            living: items.len() - tombstones,
            tombstones,
            was_out_of_sync: self.was_out_of_sync,
        }))
    }
}

/// By which rules a feed is kept, in words.
const SHARED: &str = "sync markup";
const PLAIN: &str = "no sync markup";
