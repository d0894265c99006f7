//! The change log for programs: `/changes` as NDJSON with long poll, `/events` as server-sent events
//! (HTML Living Standard, section 9.2). Both follow epochs in one way, so nothing can be seen in one and missed
//! in the other, nor in the SUP documents.

pub(super) mod events;

pub(super) use events::{ended, is_event_source};

use super::audience::MASKED_PATH;
use super::log::{LogAfter, Position};
use super::{
    Audience, BadRequest, Budget, BudgetEnd, BudgetShares, ChangeLog, Client, Connection, Gone,
    HeldBudget, Listing, Problem, Query, SharedState, Site, router, unkept,
};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, Tick, Time};
use tidegate_format::render::ViewKind;
use tidegate_status::describe;
use tidegate_status::schema::{self, words};
use tidegate_store::{ClosedEpoch, Epoch, LoggedChange};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use utoipa::{IntoParams, ToSchema};

/// Limit of open event streams, and of waiting long polls: a quarter of the connections each, and at most this many.
pub(super) const STREAMS_AT_ONCE: usize = 256;
const CONNECTIONS_DIVISOR: usize = 4;
/// Of each, those of one client.
const EACH: u64 = 32;
/// The most feeds that one request names.
const FEEDS_LIMIT: usize = 100;
/// The longest query that is read, in bytes.
const QUERY_LIMIT: usize = 8 * 1024;
/// How many epochs are read at once.
const EPOCHS: usize = 64;

/// How many event streams there may be, and how many requests that wait.
pub(super) struct EventStreams {
    streams: Arc<Budget>,
    waiting: Arc<Budget>,
}

impl EventStreams {
    /// Those of a gateway with so many connections; of `before`, those that are open.
    pub(super) fn new(connections: usize, before: Option<&Self>) -> Self {
        let limit = connections.div_ceil(CONNECTIONS_DIVISOR).min(STREAMS_AT_ONCE);
        let all = u64::try_from(limit).unwrap_or(u64::MAX);
        let shares = BudgetShares { all, each: EACH, network: all };
        // What is waited for is a change: no connection is ended for another.
        let budget = |before| Budget::after(before, shares, Duration::MAX);
        Self {
            streams: budget(before.map(|before| &before.streams)),
            waiting: budget(before.map(|before| &before.waiting)),
        }
    }

    /// How many streams are open.
    #[cfg(test)]
    pub(super) fn open_streams(&self) -> usize {
        self.streams.held().0
    }
}

/// A permit for one more; where there is none, why.
fn enter(budget: &Arc<Budget>, client: Client, what: &str) -> Result<HeldBudget, String> {
    let shares = budget.shares();
    budget.take_one(client, None, false).map_err(|end| match end {
        BudgetEnd::Share => {
            format!("{} {what} of your address are open, which is the limit", shares.each)
        }
        BudgetEnd::All => format!("{} {what} are open, which is the limit", shares.all),
    })
}

/// The log as one client follows it: the changes of the feeds that it names and may see.
#[derive(Clone)]
struct LogFollower {
    /// The state that it asks: after a reload that of the next configuration, so that none is kept longer than a client
    /// takes to take a piece.
    app: SharedState,
    audience: Audience,
    /// What it is told on, where that is known.
    connection: Option<Arc<Connection>>,
    /// `feed`, as often as it is given; none: every feed.
    feeds: BTreeSet<FeedName>,
    /// Up to where all was given out.
    at: Position,
    newest: watch::Receiver<Epoch>,
}

/// Which changes are asked for.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "see LogFollower::new, which reads it")]
struct LogParams {
    /// Only changes of these feeds.
    #[param(explode, max_items = 100)]
    feed: Option<Vec<schema::FeedName>>,
    /// What came behind this place: the `id` of a line or an event.
    after: Option<String>,
}

impl LogFollower {
    /// Of a client that asks with this query; with `after`, where that is given. Each feed must be one that is published;
    /// one that was deleted answers 410.
    async fn new(
        app: &SharedState,
        (audience, connection): (Audience, Option<Arc<Connection>>),
        query: &Query,
    ) -> Result<(Self, Option<Position>), Problem> {
        let mut feeds = BTreeSet::new();
        for name in query.all("feed") {
            feeds.insert(app.served_feed(name, &audience).await?.name.clone());
            if feeds.len() > FEEDS_LIMIT {
                let detail = format!("more than {FEEDS_LIMIT} feeds are named");
                return Err(Problem::parameter("feed", detail));
            }
        }
        let after = query.get("after")?.map(Position::read).transpose()?;
        let at = after.unwrap_or_else(|| Position::newest(&app.log));
        let (app, newest) = (Arc::clone(app), app.log.watch());
        Ok((Self { app, audience, connection, feeds, at, newest }, after))
    }

    /// Completes when this state closes or the connection ends: then call [`Self::follow_reload`] again.
    fn interrupted(&self) -> impl Future<Output = ()> + use<> {
        let (closing, connection) = (self.app.closing.clone(), self.connection.clone());
        let connection_ends = async move {
            match connection {
                Some(connection) => connection.ended().await,
                None => pending().await,
            }
        };
        async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = connection_ends => {}
            }
        }
    }

    /// Completes when the client may be sent nothing more.
    async fn until_over(mut self) {
        while matches!(self.follow_reload().await, Ok(true)) {
            self.interrupted().await;
        }
    }

    /// Moves to the next state if a reload replaced this one. False if there is none, or if the connection ends (its
    /// listener may have gone). An error (404) if the client may not read on: its token is revoked, or no longer opens
    /// a feed that it named.
    async fn follow_reload(&mut self) -> Result<bool, Problem> {
        if self.connection.as_ref().is_some_and(|connection| connection.is_ending()) {
            return Ok(false);
        }
        if !self.app.closing.is_cancelled() {
            return Ok(true);
        }
        let Some(next) = self.app.successor() else { return Ok(false) };
        // As if it had never been a token.
        let nothing = |_| router::nothing_at(MASKED_PATH);
        let audience = self.audience.after_reload(&self.app, &next).map_err(nothing)?;
        if !self.feeds.is_empty() {
            let listing = next.directory.listing().await?;
            if self.feeds.iter().any(|it| !listing.is_seen(it, &audience)) {
                return Err(router::nothing_at(MASKED_PATH));
            }
        }
        (self.app, self.audience) = (next, audience);
        Ok(true)
    }

    fn log(&self) -> &ChangeLog {
        &self.app.log
    }

    /// An error (410) where this log never gave out its place: another one did, or this one before it went back to a copy.
    async fn check(&self) -> Result<(), Problem> {
        self.log().wait_for_epoch(self.at.epoch).await?;
        if self.at.is_of(self.log()) { Ok(()) } else { Err(self.never_had()) }
    }

    /// The epochs that follow; none where there is nothing newer, and 410 where this log never gave out the place, or what
    /// follows is not there any more. Whatever comes after this was called wakes up who waits for `newest`.
    async fn next(&mut self) -> Result<Vec<Arc<ClosedEpoch>>, Problem> {
        self.check().await?;
        self.newest.mark_unchanged();
        match self.log().after(self.at.whole(), EPOCHS).await? {
            LogAfter::Epochs(epochs) => Ok(epochs),
            LogAfter::Gone { oldest } => {
                let detail = format!(
                    "what followed epoch {} is not kept any more, the oldest epoch kept is {}: read the feeds anew and \
                     go on from the newest",
                    self.at.whole().0,
                    oldest.0
                );
                Err(self.lost(detail).with("oldest", oldest.0))
            }
            LogAfter::Ahead => Err(self.never_had()),
        }
    }

    /// The changes of an epoch that the client is told of and was not given yet, each with its place there.
    fn wanted<'e>(
        &'e self,
        sealed: &'e ClosedEpoch,
        listing: &'e Listing,
    ) -> impl Iterator<Item = (usize, &'e LoggedChange)> {
        let changes = sealed.changes.iter().enumerate().skip(self.at.given(sealed.epoch));
        let is_named = |feed: &FeedName| self.feeds.is_empty() || self.feeds.contains(feed);
        changes.filter(move |(_, change)| {
            is_named(&change.feed) && listing.is_seen(&change.feed, &self.audience)
        })
    }

    fn never_had(&self) -> Problem {
        self.lost(format!(
            "this log has never had {}, the newest is {}: read the feeds anew and go on from the newest",
            self.at,
            Position::newest(self.log())
        ))
    }

    fn lost(&self, detail: String) -> Problem {
        let newest = Position::newest(self.log()).to_string();
        Problem::new(StatusCode::GONE, detail).with("newest", newest)
    }
}

describe! {
    /// What changed: `items`, or the `feed` as a whole and no version of an item (its title, say).
    ChangeKind: words(["items", "feed"]);
}

/// A change of a feed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Change)]
struct ChangeLine {
    feed: FeedName,
    #[schema(value_type = ChangeKind)]
    kind: &'static str,
    /// The feed's document.
    url: String,
    /// `until` of the feed.
    tick: Tick,
    sup_id: Option<String>,
    update_id: String,
    revision: u64,
    /// How many versions of items the change made.
    versions: u32,
}

impl ChangeLine {
    /// A change of the log.
    fn new(site: &Site, announced: &LoggedChange) -> Self {
        let feed = &announced.feed;
        Self {
            feed: feed.clone(),
            kind: if announced.versions == 0 { "feed" } else { "items" },
            url: site.view(feed, ViewKind::Reader, site.form(None, None)),
            tick: announced.tick,
            sup_id: site.sup_id(feed).map(|id| id.to_string()),
            update_id: announced.tick.update_id(),
            revision: announced.revision.0,
            versions: announced.versions,
        }
    }
}

/// A line of `/changes`: an epoch, or where the log stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChangeLine)]
pub(super) struct EpochLine {
    epoch: u64,
    /// Where the next request goes on.
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Time, required = false)]
    at: Option<Time>,
    changes: Vec<ChangeLine>,
}

impl EpochLine {
    /// A place in the log, and no change.
    fn place(id: Position) -> Self {
        Self { epoch: id.whole().0, id: id.to_string(), at: None, changes: Vec::new() }
    }

    fn text(&self) -> String {
        // Texts, numbers and lists of them always serialise.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// How long a request waits where it does not say.
const WAIT: Duration = Duration::from_secs(20);
/// The longest wait: within the time that an answer may take.
const WAIT_LIMIT: Duration = Duration::from_secs(25);
/// The deadline of a long poll while the store does not answer: this long after its wait, and at least `MIN_DEADLINE`
/// after it came.
const DEADLINE_GRACE: Duration = Duration::from_secs(5);
const MIN_DEADLINE: Duration = Duration::from_secs(18);
/// The most changes of one answer; the epoch that passes it is still whole.
const CHANGES_LIMIT: usize = 4096;
/// Where the next request goes on.
const X_AFTER: HeaderName = HeaderName::from_static("x-tidegate-after");

/// Changes as lines of JSON, with long poll.
///
/// Each line is a whole epoch; the next request asks `after` the id of the last line, or where
/// there was none after the same as before. Without `after` the answer is the place where the log
/// stands now. What is too old, or was never there, is 410: everything is to be read anew. Where that is not known now,
/// since the store does not answer, it is 503.
#[utoipa::path(get, path = "/changes", operation_id = "changes",
    params(
        LogParams,
        ("wait" = Option<u64>, Query, maximum = 25,
            description = "How many seconds to wait for a change; 20 where it is absent."),
    ),
    responses(
        (status = 200, description = "A line for each epoch, a ChangeLine; none where nothing changed in time.",
            body = String, content_type = "application/x-ndjson",
            headers(("X-Tidegate-After", description = "Where the next request goes on."))),
        BadRequest,
        Gone,
    ))]
pub(crate) async fn changes(
    State(app): State<SharedState>,
    (audience, client): (Audience, Client),
    connection: Option<Extension<Arc<Connection>>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let (begun, connection) = (Instant::now(), connection.map(|Extension(it)| it));
    let query = Query::within(QUERY_LIMIT, query.as_deref().unwrap_or_default())?;
    let (follower, after) = LogFollower::new(&app, (audience, connection), &query).await?;
    let wait = wait(&query)?.map_or(WAIT, Duration::from_secs).min(WAIT_LIMIT);
    if after.is_none() {
        return Ok(answer(follower.at, EpochLine::place(follower.at).text()));
    }
    let latest = begun + wait.saturating_add(DEADLINE_GRACE).max(MIN_DEADLINE);
    let answered = timeout_at(latest, follower.wait_for_changes(client, wait)).await;
    let late = |_| Err(Problem::later("the changes could not be read in time"));
    answered.unwrap_or_else(late)
}

/// `wait`, in seconds.
fn wait(query: &Query) -> Result<Option<u64>, Problem> {
    query.parse("wait", "wait is a whole number of seconds", |value| {
        value.parse().ok().filter(|_| !value.starts_with('+'))
    })
}

impl LogFollower {
    async fn wait_for_changes(
        mut self,
        client: Client,
        wait: Duration,
    ) -> Result<Response, Problem> {
        self.check().await?;
        let (begin, until) = (self.at, Instant::now() + wait);
        // A line has a whole epoch.
        self.at = Position::behind(self.log(), begin.whole());
        let mut waiting = None;
        loop {
            let is_closing = !self.follow_reload().await?;
            let before = self.at;
            let body = self.next_lines().await?;
            // An epoch of other feeds only moves the place; it is no reason to answer.
            if !body.is_empty() {
                return Ok(answer(self.at, body));
            } else if self.at != before {
                continue;
            }
            if Instant::now() >= until || is_closing {
                // Before it says that nothing changed, the gateway catches up with what other gateways committed.
                if waiting.is_some() && !is_closing {
                    self.app.store.catch_up().await?;
                }
                return Ok(match begin.whole() == self.at.whole() {
                    true => answer(begin, String::new()),
                    false => answer(self.at, EpochLine::place(self.at).text()),
                });
            }
            if waiting.is_none() {
                let place = enter(&self.app.event_streams.waiting, client, "waiting requests");
                waiting = Some(place.map_err(Problem::later)?);
            }
            tokio::select! {
                () = self.interrupted() => {}
                changed = timeout_at(until, self.newest.changed()) => {
                    // A store that is closed wakes nobody up again.
                    if let Ok(Err(_)) = changed {
                        sleep_until(until).await;
                    }
                }
            }
        }
    }

    /// The lines of what follows, whose place is the next one.
    async fn next_lines(&mut self) -> Result<String, Problem> {
        let (mut lines, mut count) = (String::new(), 0);
        for sealed in self.next().await? {
            if count >= CHANGES_LIMIT {
                break;
            }
            let listing = self.app.directory.listing().await?;
            let wanted = self.wanted(&sealed, &listing);
            let line = |(_, change)| ChangeLine::new(&self.audience.site, change);
            let changes: Vec<ChangeLine> = wanted.map(line).collect();
            self.at = Position::behind(self.log(), sealed.epoch);
            count += changes.len();
            if !changes.is_empty() {
                let (id, at) = (self.at.to_string(), Some(sealed.at));
                lines += &EpochLine { epoch: sealed.epoch.0, id, at, changes }.text();
            }
        }
        Ok(lines)
    }
}

fn answer(next: Position, body: String) -> Response {
    let mut response = unkept("application/x-ndjson", body);
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("X-Tidegate-After"),
    );
    if let Ok(next) = HeaderValue::try_from(next.to_string()) {
        headers.insert(X_AFTER, next);
    }
    response
}
