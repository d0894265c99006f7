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

/// A pull. [`Pull::step`] and [`Pull::answer`] take turns.
pub struct Pull {
    limits: PullLimits,
    state: State,
    /// The replica that is there.
    written: Option<WrittenReplica>,
    stage: Stage,
    requests: usize,
    bytes: usize,
    warnings: Vec<String>,
    was_out_of_sync: bool,
}

/// The replica of the last pull.
struct WrittenReplica {
    text: String,
    head: ReplicaHead,
    items: Vec<ReplicaItem>,
}

enum Stage {
    /// The document that is subscribed to is asked for; `given`: the one that led there by its
    /// `current` link, if one did.
    Subscription { url: Url, given: Option<Box<Given>> },
    /// The complete feed is asked for; what was read before it waits.
    Complete { url: Url, partial: Box<Document> },
    /// Archives are asked for.
    Walk(Box<HistoryWalk>),
    /// Nothing is asked for any more.
    End(Box<PullOutcome>),
    /// An answer is being taken in, or the pull has failed.
    Between,
}

/// A plain document that calls another one `current`: what counts where that one cannot be had.
struct Given {
    /// The address that was subscribed to.
    subscription: String,
    /// How it was answered; without the bytes.
    found: FetchedBody,
    document: Document,
}

impl Pull {
    /// A pull of the feed at `url`. `saved`: the state and the replica of the last one.
    pub fn new(
        url: Url,
        limits: PullLimits,
        saved: Option<(State, String)>,
    ) -> Result<Self, PullError> {
        let (state, text) = saved.map_or_else(
            || (State { subscription: url.to_string(), ..State::default() }, None),
            |(state, text)| (state, Some(text)),
        );
        let subscription = Url::parse(&state.subscription).unwrap_or(url);
        let read = |text: String| {
            let (head, items) = replica::read(&text, &subscription)?;
            Ok(WrittenReplica { text, head, items })
        };
        let written = text.map(read).transpose();
        let written = written
            .map_err(|source| PullError::Markup { url: "the replica".to_owned(), source })?;
        Ok(Self {
            limits,
            written,
            state,
            stage: Stage::Subscription { url: subscription, given: None },
            requests: 0,
            bytes: 0,
            warnings: Vec::new(),
            was_out_of_sync: false,
        })
    }

    /// What to do next.
    pub fn step(&mut self) -> Result<Next, PullError> {
        // Each turn ends the walk or returns.
        loop {
            let ask = match &mut self.stage {
                Stage::Subscription { url, given } => {
                    let knows = self.written.is_some() && given.is_none();
                    let asked = if knows { Asked::Changes } else { Asked::Unless(None) };
                    Ask { url: url.clone(), asked }
                }
                Stage::Complete { url, .. } => {
                    let known = match &self.state.kept {
                        ReplicaBasis::Sse { until: None, complete } if self.written.is_some() => {
                            complete.as_ref().filter(|complete| complete.url == url.as_str())
                        }
                        _ => None,
                    };
                    let tag = known.and_then(|complete| complete.etag.clone());
                    Ask { url: url.clone(), asked: Asked::Unless(tag) }
                }
                Stage::Walk(walk) => match walk.asks().cloned() {
                    Some(url) if self.requests < self.limits.requests => {
                        Ask { url, asked: Asked::Unless(None) }
                    }
                    Some(_) => {
                        let limit = self.limits.requests;
                        let why =
                            format!("this pull has made {limit} requests, which is the limit");
                        self.warnings.extend(walk.stops(&why));
                        continue;
                    }
                    None => {
                        self.ends_walk()?;
                        continue;
                    }
                },
                Stage::End(outcome) => return Ok(Next::Done(outcome.clone())),
                Stage::Between => return Err(failed_before()),
            };
            self.requests += 1;
            return Ok(Next::Ask(ask));
        }
    }

    /// Takes in what came of the last request.
    pub fn answer(&mut self, answer: Answer) -> Result<(), PullError> {
        if let Answer::Document(found) = &answer {
            self.bytes = self.bytes.saturating_add(found.bytes.len());
        }
        match std::mem::replace(&mut self.stage, Stage::Between) {
            Stage::Subscription { url, given: None } => self.subscription(url, answer),
            Stage::Subscription { url, given: Some(given) } => self.current(&url, *given, answer),
            Stage::Complete { url, partial } => self.complete(&url, *partial, answer),
            Stage::Walk(walk) => {
                self.archive(walk, answer);
                Ok(())
            }
            Stage::End(outcome) => {
                self.stage = Stage::End(outcome);
                Ok(())
            }
            Stage::Between => Err(failed_before()),
        }
    }

    fn subscription(&mut self, url: Url, answer: Answer) -> Result<(), PullError> {
        let mut found = match answer {
            Answer::Document(found) => *found,
            Answer::NotModified => return self.unchanged(),
            Answer::Failed(why) => return Err(PullError::Unread { url: url.into(), why }),
        };
        let mut document = Document::read(&found, None)?;
        self.warnings.append(&mut document.warnings);
        // Step 1: one hop only (READINGS 3, row 4).
        let history = &document.history;
        let current = history.current.clone().filter(|current| {
            let is_here = *current == url || *current == found.url;
            document.sharing.is_none() && !is_here && history.own.as_ref() != Some(current)
        });
        let Some(current) = current else { return self.takes(&found, document) };
        found.bytes = Vec::new();
        let subscription = std::mem::replace(&mut self.state.subscription, current.to_string());
        let given = Some(Box::new(Given { subscription, found, document }));
        self.stage = Stage::Subscription { url: current, given };
        Ok(())
    }

    /// The document that another one calls `current`; where it cannot be had, the other one counts
    /// (READINGS 3, row 4).
    fn current(&mut self, url: &Url, given: Given, answer: Answer) -> Result<(), PullError> {
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
    fn takes(&mut self, found: &FetchedBody, mut document: Document) -> Result<(), PullError> {
        self.warnings.append(&mut document.warnings);
        self.state.etag.clone_from(&found.etag);
        self.state.last_modified.clone_from(&found.last_modified);
        self.state.answered_by = Some(found.url.to_string());
        if document.sharing.is_some() { self.sse(document) } else { self.plain(document) }
    }

    /// The document that is subscribed to is the one of the last pull.
    fn unchanged(&mut self) -> Result<(), PullError> {
        let head = self.written.as_ref().map(|written| written.head.clone());
        let complete = match &self.state.kept {
            ReplicaBasis::Sse { until: None, complete } => complete.as_ref(),
            _ => None,
        };
        let complete = complete.and_then(|complete| Url::parse(&complete.url).ok());
        self.stage = match (&self.state.kept, head, complete) {
            (_, Some(head), Some(url)) => {
                Stage::Complete { url, partial: Box::new(Document::without_items(head)) }
            }
            (kept @ ReplicaBasis::History { gaps, .. }, Some(head), _) if !gaps.is_empty() => {
                Stage::Walk(Box::new(HistoryWalk::again(head, kept, self.before())))
            }
            _ => Stage::End(Box::new(self.outcome(None, Vec::new(), self.before()))),
        };
        Ok(())
    }

    /// A plain feed: steps 2 and 3 of Feed History draft-05 section 6.
    fn plain(&mut self, document: Document) -> Result<(), PullError> {
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
        self.stage = Stage::Walk(Box::new(walk));
        Ok(())
    }

    /// An SSE feed: sections 4.1.1 and 4.1.2 of SSE 1.0.
    fn sse(&mut self, partial: Document) -> Result<(), PullError> {
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
                self.begin(partial, complete)
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
            _ => self.begin(partial, complete),
        }
    }

    /// Section 4.1.1. What missed changes is not gone on with.
    fn begin(&mut self, partial: Document, complete: Option<Url>) -> Result<(), PullError> {
        if let Some(url) = complete {
            self.stage = Stage::Complete { url, partial: Box::new(partial) };
            return Ok(());
        }
        let until = partial.bounds().map(|(_, until)| until.clone());
        self.state.kept = ReplicaBasis::Sse { until, complete: None };
        self.merges(Vec::new(), partial)
    }

    fn complete(&mut self, url: &Url, partial: Document, answer: Answer) -> Result<(), PullError> {
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
    fn merges(&mut self, into: Vec<ReplicaItem>, partial: Document) -> Result<(), PullError> {
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

    fn archive(&mut self, mut walk: Box<HistoryWalk>, answer: Answer) {
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
        self.stage = Stage::Walk(walk);
    }

    fn ends_walk(&mut self) -> Result<(), PullError> {
        let Stage::Walk(walk) = std::mem::replace(&mut self.stage, Stage::Between) else {
            return Err(failed_before());
        };
        let Reconstructed { items, head, kept, deleted } = walk.ends(self.before().to_vec());
        self.state.kept = kept;
        self.ends(&items, &head, &deleted)
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
        &mut self,
        items: &[ReplicaItem],
        head: &ReplicaHead,
        deleted: &HashSet<String>,
    ) -> Result<(), PullError> {
        let text = replica::write(head, items)?;
        let changes = changes(self.before(), items, deleted);
        let is_same = self.written.as_ref().is_some_and(|written| written.text == text);
        let text = (!is_same).then_some(text);
        self.stage = Stage::End(Box::new(self.outcome(text, changes, items)));
        Ok(())
    }

    fn outcome(
        &self,
        replica: Option<String>,
        changes: Vec<ItemChange>,
        items: &[ReplicaItem],
    ) -> PullOutcome {
        let tombstones = items.iter().filter(|item| item.is_deleted()).count();
        PullOutcome {
            replica,
            state: self.state.clone(),
            changes,
            warnings: self.warnings.clone(),
            living: items.len() - tombstones,
            tombstones,
            was_out_of_sync: self.was_out_of_sync,
        }
    }
}

/// By which rules a feed is kept, in words.
const SHARED: &str = "sync markup";
const PLAIN: &str = "no sync markup";

fn failed_before() -> PullError {
    let why = "this pull has failed already".to_owned();
    PullError::Unread { url: "the feed".to_owned(), why }
}
