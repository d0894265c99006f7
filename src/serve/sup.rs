//! `GET /sup.json?seconds=N`: the SUP updates documents (SUP section 3; CONTRACT, Addresses).
//!
//! A document is made anew when the log has gone on, at most once a second (less often where making
//! it is slow work), and otherwise only when its `updated_time` has become old.

use super::answers::optional;
use super::log::LogAfter;
use super::ready::IsCurrent;
use super::{
    AppState, Audience, BadRequest, Client, Listing, NotFound, Problem, Query, Rendition,
    SharedState, Site, Unchanged, Work, WorkKind, locked, make_on_thread,
};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Uri, header};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_core::model::{FeedName, SupId};
use tidegate_core::sup::{Closed, Windows, step};
use tidegate_status::{describe, schema};
use tidegate_store::{ClosedEpoch, Epoch, StoreCondition, StoreError, in_words};
use tokio::time::Instant;
use utoipa::PartialSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};

/// The media type of updates documents (SUP section 3).
const MEDIA_TYPE: &str = "application/json";
/// An epoch may be closed every second.
const FRESH: HeaderValue = HeaderValue::from_static("public, max-age=1");
/// Two builds of one document are at least this far apart; with [`FRESH`], a change is listed within
/// two seconds wherever a build takes less than a fifth of a second.
const MIN_PAUSE: Duration = Duration::from_millis(900);
/// The pause after a build, as a multiple of its duration: so builds take at most a fifth of the time.
const PAUSE_FACTOR: u32 = 4;
/// The longest pause after a build, however long it took.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// How often the log is followed while nobody asks and nothing is new.
const FOLLOW: Duration = Duration::from_secs(30);
/// How many epochs are taken at once.
const EPOCHS: usize = 256;
/// What the document of one reader takes, in bytes.
const OWN_COST: u64 = 1024 * 1024;
/// The period of a request that names none, in seconds, if it is configured.
const DEFAULT_PERIOD: u32 = 60;

/// A document as it was last made.
struct Built {
    rendition: Arc<Rendition>,
    epoch: Epoch,
    /// The feeds that it may not tell of.
    private: Arc<BTreeSet<FeedName>>,
    at: Instant,
    took: Duration,
}

/// The last document of one period. The lock lets one task at a time build it, which goes on if its client leaves;
/// others wait.
type LastUpdates = Arc<tokio::sync::Mutex<Option<Built>>>;

pub(super) struct SupDocuments {
    /// By the period, in seconds.
    last: BTreeMap<u32, LastUpdates>,
    windows: Mutex<Windows>,
    /// One reader of the log at a time.
    reading: tokio::sync::Mutex<()>,
    /// Whether the log was read to its end once.
    followed: AtomicBool,
}

impl SupDocuments {
    /// The documents of these periods; nothing of the log is read yet.
    pub(super) fn new(periods: &[u32]) -> Self {
        Self {
            windows: Mutex::new(Windows::new(
                periods.iter().copied().max().unwrap_or(DEFAULT_PERIOD),
            )),
            last: periods.iter().map(|period| (*period, Arc::default())).collect(),
            reading: tokio::sync::Mutex::default(),
            followed: AtomicBool::new(false),
        }
    }

    fn periods(&self) -> Vec<u32> {
        self.last.keys().copied().collect()
    }

    /// The period that a query asks for, and its document.
    fn find_period(&self, query: &str) -> Result<(u32, &LastUpdates), Problem> {
        let written: Vec<String> = self.last.keys().map(u32::to_string).collect();
        let wrong = |detail: &str| {
            let detail = format!("{detail}; there are documents of {} seconds", written.join(", "));
            Problem::parameter("seconds", detail).with("periods", self.periods())
        };
        let query = Query::read(query)?;
        let seconds = query.get("seconds").map_err(|_| wrong("seconds is given twice"))?;
        let found = match seconds {
            Some(seconds) => self.last.iter().find(|(period, _)| period.to_string() == seconds),
            None => {
                self.last.get_key_value(&DEFAULT_PERIOD).or_else(|| self.last.first_key_value())
            }
        };
        let found = found.map(|(period, last)| (*period, last));
        found.ok_or_else(|| match seconds {
            Some(_) => wrong("seconds names no period that is offered here"),
            None => Problem::not_found("no SUP document is published here"),
        })
    }
}

impl AppState {
    /// The document of a period, as new as it has to be.
    async fn sup_document(
        self: &Arc<Self>,
        (period, last): (u32, &LastUpdates),
    ) -> Result<Arc<Rendition>, Problem> {
        let mut last = Arc::clone(last).lock_owned().await;
        let listing = self.directory.listing().await?;
        if let Some(built) = last.as_ref().filter(|it| self.is_fresh(it, period, &listing)) {
            return Ok(Arc::clone(&built.rendition));
        }
        self.read_log_to_end().await?;
        // Not before the log was read: of what is in it, it is known whether it is private.
        let private = Arc::clone(&self.directory.listing().await?.private);
        let (app, begun) = (Arc::clone(self), Instant::now());
        make_on_thread("the SUP document", move || {
            let site = &app.site;
            let hidden: HashSet<SupId> = private.iter().filter_map(|f| site.sup_id(f)).collect();
            let is_listed = |id: &SupId| !hidden.contains(id);
            let (rendition, epoch) = make(&app.sup, site, (period, &is_listed))?;
            let (rendition, at, took) = (Arc::new(rendition), Instant::now(), begun.elapsed());
            let built = Built { rendition: Arc::clone(&rendition), epoch, private, at, took };
            *last = Some(built);
            Ok(rendition)
        })
        .await
    }

    /// Reads the log to its end.
    async fn read_log_to_end(&self) -> Result<(), StoreError> {
        match self.follow_log().await {
            // Until the store is open again, a document says what was known last, and until when.
            Err(error @ StoreError::Stopped(_))
                if error.is_passing() && self.sup.followed.load(Ordering::Acquire) =>
            {
                Ok(())
            }
            followed => followed,
        }
    }

    /// The document of a period about the feeds of one audience, which nobody else asks for.
    async fn own_sup_document(
        self: &Arc<Self>,
        period: u32,
        audience: &Audience,
    ) -> Result<Rendition, Problem> {
        self.read_log_to_end().await?;
        let listing = self.directory.listing().await?;
        let (app, site) = (Arc::clone(self), Arc::clone(&audience.site));
        let seen = listing.seen_by(audience).filter_map(|record| site.sup_id(&record.name));
        let seen: HashSet<SupId> = seen.collect();
        make_on_thread("the SUP document", move || {
            make(&app.sup, &site, (period, &|id| seen.contains(id))).map(|(made, _)| made)
        })
        .await
    }

    /// Whether a document is new enough.
    fn is_fresh(&self, built: &Built, period: u32, listing: &Listing) -> bool {
        let pause = built.took.saturating_mul(PAUSE_FACTOR).clamp(MIN_PAUSE, MAX_PAUSE);
        let age = self.clock.now().since(built.rendition.shown);
        let is_unchanged = built.epoch >= self.log.newest() && age <= step(period);
        // It tells of no feed that became private.
        Arc::ptr_eq(&built.private, &listing.private)
            && (is_unchanged || built.at.elapsed() < pause)
    }

    /// Takes what is new in the log.
    async fn follow_log(&self) -> Result<(), StoreError> {
        // Taken before the log is read and before other gateways' commits are fetched: an epoch that this reading
        // misses becomes readable after `now`. While the database does not answer, the time of its last answer counts:
        // another gateway may have started and committed since.
        let StoreCondition { unanswered, gateways, stop, .. } = self.store.condition();
        let now = self.clock.now().minus(unanswered.unwrap_or_default());
        self.store.catch_up().await?;
        let _turn = self.sup.reading.lock().await;
        let mut after = Epoch(locked(&self.sup.windows).epoch());
        loop {
            let epochs = match self.log.after(after, EPOCHS).await? {
                LogAfter::Epochs(epochs) => epochs,
                LogAfter::Gone { oldest } => {
                    after = Epoch(oldest.0.saturating_sub(1));
                    continue;
                }
                // The log of a store never gets shorter at its new end while it is open.
                LogAfter::Ahead => Vec::new(),
            };
            let mut windows = locked(&self.sup.windows);
            if epochs.is_empty() {
                // The epoch that was being closed when the store stopped may be durable, and other gateways show it.
                if let Some(stop) = stop {
                    return Err(StoreError::Stopped(Box::new(stop)));
                }
                if !gateways.is_empty() {
                    windows.allow_other_gateways();
                }
                windows.finish(now, self.clock.now());
                self.sup.followed.store(true, Ordering::Release);
                return Ok(());
            }
            for sealed in epochs {
                windows.add_epoch(self.to_sup_epoch(&sealed));
                after = sealed.epoch;
            }
        }
    }

    fn to_sup_epoch(&self, sealed: &ClosedEpoch) -> Closed {
        let changes = sealed.changes.iter();
        let changes = changes.filter_map(|c| Some((self.site.sup_id(&c.feed)?, c.tick)));
        Closed { epoch: sealed.epoch.0, at: sealed.at, changes: changes.collect() }
    }

    /// Follows the log, so that little of it is left to be read for who asks, until `closing`.
    pub(super) async fn keep_following(&self) {
        let closing = &self.closing;
        let mut sealed = self.log.watch();
        loop {
            // The store itself has logged why, once.
            if let Err(error) = self.follow_log().await
                && !matches!(error, StoreError::Stopped(_))
            {
                tracing::warn!(error = in_words(&error), "the change log could not be followed");
            }
            tokio::select! {
                () = closing.cancelled() => return,
                _ = tokio::time::timeout(FOLLOW, sealed.changed()) => {}
            }
            tokio::select! {
                () = closing.cancelled() => return,
                () = tokio::time::sleep(MIN_PAUSE) => {}
            }
        }
    }
}

/// Writes and compresses a document, with the last epoch that it knows.
fn make(
    documents: &SupDocuments,
    site: &Site,
    (period, is_listed): (u32, &dyn Fn(&SupId) -> bool),
) -> Result<(Rendition, Epoch), Problem> {
    let (text, shown, epoch) = {
        let windows = locked(&documents.windows);
        let window = windows.window(period);
        let address = |period| site.at(&format!("/sup.json?seconds={period}"));
        let text = window.write(&documents.periods(), address, is_listed);
        (text, window.updated, Epoch(window.epoch))
    };
    let rendition = Rendition::build_quickly(text, MEDIA_TYPE, shown)?.with([
        (header::CACHE_CONTROL, FRESH),
        (header::VARY, HeaderValue::from_static("Accept-Encoding")),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    ]);
    Ok((rendition, epoch))
}

describe! {
    /// SUP updates document.
    SupDocument: ["updated_time", "since_time", "period", "available_periods", "updates"].into_iter().fold(
        optional("updated_time", schema::Time::schema())
            .property("since_time", schema::Time::schema())
            .property("period", ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)))
            .property("available_periods", BTreeMap::<String, String>::schema())
            .property("updates", ArrayBuilder::new().items(pair())),
        ObjectBuilder::required,
    );
}

fn pair() -> ArrayBuilder {
    ArrayBuilder::new().items(String::schema()).min_items(Some(2)).max_items(Some(2))
}

/// What changed lately (Simple Update Protocol).
#[utoipa::path(get, path = "/sup.json", operation_id = "supDocument",
    params(("seconds" = Option<u32>, Query, minimum = 1, description = "The period; 60 where it is absent.")),
    responses(
        (status = 200, description = "The document.", body = SupDocument, headers(("ETag"))),
        Unchanged,
        BadRequest,
        NotFound,
    ))]
pub(super) async fn document(
    State(app): State<SharedState>,
    (audience, client): (Audience, Client),
    uri: Uri,
    request_headers: HeaderMap,
) -> Result<Response, Problem> {
    let (period, last) = app.sup.find_period(uri.query().unwrap_or_default())?;
    if audience.reader().is_some() {
        let work = Work::of_all(WorkKind::Standing);
        let making = Arc::clone(&app);
        let made = async move { making.own_sup_document(period, &audience).await };
        let rendition = app.admission.run(client, &work, OWN_COST, made).await?;
        return Ok(rendition.answer(&request_headers, None, None));
    }
    let rendition = app.sup_document((period, last)).await?;
    let (last, it) = (Arc::clone(last), Arc::downgrade(&rendition));
    let is_current: IsCurrent = Arc::new(move |app, listing, _| {
        let is_it = |built: &Built| Arc::as_ptr(&built.rendition) == it.as_ptr();
        let is_newest = |built: &Built| is_it(built) && app.is_fresh(built, period, listing);
        last.try_lock().is_ok_and(|last| last.as_ref().is_some_and(is_newest))
    });
    let again = (Arc::downgrade(&rendition), None, is_current);
    Ok(rendition.answer(&request_headers, None, Some(again)))
}
