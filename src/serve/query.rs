//! The query of an address, which all handlers read in one way. A key that an address knows and that is
//! malformed or stands twice is refused. Keys that it does not know are ignored, so that readers may add
//! what they like; administration refuses them, because what changes things must not guess.
//!
//! And what the view shows that is asked for, decided from the feed's state alone (SSE 1.0 section 4.2). Pure.

use super::put::unknown_key;
use super::{Problem, routes};
use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode};
use std::time::Duration;
use tidegate_core::model::{FeedState, Item, Tick, Time};
use tidegate_format::render::{Container, Dialect, ViewKind};
use tidegate_store::Select;

/// The longest query that is read, in bytes.
const QUERY_LIMIT: usize = 4 * 1024;

/// The keys of a query and their values.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query of the usual length.
    pub(super) fn read(query: &str) -> Result<Self, Problem> {
        Self::within(QUERY_LIMIT, query)
    }

    /// Reads a query of at most `limit` bytes.
    pub(super) fn within(limit: usize, query: &str) -> Result<Self, Problem> {
        if query.len() > limit {
            let detail = format!("the query is {} bytes long, the limit is {limit}", query.len());
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        }
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        Ok(Self(pairs.map(|(key, value)| (key.into_owned(), value.into_owned())).collect()))
    }

    /// The values of a key that may stand more than once.
    pub(super) fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Result<Option<&str>, Problem> {
        let mut values = self.all(key);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Problem::parameter(key, format!("{key} is given twice"))),
            (value, None) => Ok(value),
        }
    }

    /// The value of a key, read; `wanted` says what it has to be.
    pub(super) fn parse<T>(
        &self,
        key: &str,
        wanted: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.get(key)? else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| Problem::parameter(key, wanted))
    }

    /// Whether a key says `true` or `false`.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Problem> {
        self.parse(key, &format!("{key} is true or false"), |value| value.parse().ok())
    }
}

/// The methods that some address takes; a client may make up others.
static METHODS: [Method; 6] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// The name of a method, where it is a known one.
pub(super) fn known_method(method: &Method) -> Option<&'static str> {
    METHODS.iter().find(|known| *known == method).map(Method::as_str)
}

/// Around administration: refuses keys that an operation does not have. One may be a misspelt `purge`.
pub(super) async fn known_only(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    // Where there is no such operation, the router says so.
    let Some(known) = routes::query_keys(route, request.method()) else {
        return next.run(request).await;
    };
    match Query::read(request.uri().query().unwrap_or_default()) {
        Err(problem) => problem.into_response(),
        Ok(query) => match query.0.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            Some((key, _)) => unknown_key(key).into_response(),
            None => next.run(request).await,
        },
    }
}

/// What a client asks of a feed address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct ViewQuery {
    /// `?as=`: the container.
    pub(super) container: Option<Container>,
    /// `?sx=`: the dialect of the sync markup.
    pub(super) dialect: Option<Dialect>,
    /// `?since=`: an `until` seen before.
    pub(super) since: Option<Tick>,
    /// `?as-of=`: what the view said at that time.
    pub(super) as_of: Option<Time>,
}

impl ViewQuery {
    /// Reads the query of a view; a key that the view knows and that is malformed, unknown in value
    /// or given twice is the client's mistake. Only the sync view knows `since`.
    pub(super) fn read(kind: ViewKind, query: &str) -> Result<Self, Problem> {
        let query = Query::read(query)?;
        let wanted = "since is the until of an earlier answer: 2026-11-20T16:20:05Z";
        let since = match kind {
            ViewKind::Sync => query.parse("since", wanted, |value| value.parse().ok())?,
            ViewKind::Reader | ViewKind::Complete => None,
        };
        let wanted = "as is one of atom, rss, pox, json, jsonfeed and opml; of the reader view, html is one too";
        let container = query.parse("as", wanted, |word| named(&CONTAINERS, word))?;
        let wanted = "sx is one of sse, feedsync and sse-0.91";
        let dialect = query.parse("sx", wanted, |word| named(&DIALECTS, word))?;
        let wanted = "as-of is a time like 2026-11-20T16:20:05Z; the + of an offset is written %2B";
        let as_of = query.parse("as-of", wanted, |value| Time::parse_rfc3339(value).ok())?;
        Ok(Self { container, dialect, since, as_of })
    }
}

/// Whether the query of a topic, as it is written, has nothing but `as` and `sx`, unescaped: whatever else
/// an address may bear would make many topics of one view.
pub(super) fn is_plain(query: &str) -> bool {
    let plain = |pair: &str| pair.starts_with("as=") || pair.starts_with("sx=");
    !query.contains(['%', '+']) && query.split('&').all(plain)
}

/// The words for containers (`?as=`) and for dialects of the sync markup (`?sx=`).
pub(super) const CONTAINERS: [(&str, Container); 6] = [
    ("atom", Container::Atom),
    ("rss", Container::Rss),
    ("pox", Container::Pox),
    ("json", Container::Json),
    ("jsonfeed", Container::JsonFeed),
    ("opml", Container::Opml),
];
pub(super) const DIALECTS: [(&str, Dialect); 3] =
    [("sse", Dialect::Sse), ("feedsync", Dialect::FeedSync), ("sse-0.91", Dialect::Sse091)];

/// The word for one of them.
pub(super) fn word<T: PartialEq>(words: &[(&'static str, T)], of: &T) -> &'static str {
    words.iter().find(|(_, it)| it == of).map_or("", |(word, _)| word)
}

fn named<T: Copy>(words: &[(&str, T)], word: &str) -> Option<T> {
    words.iter().find(|(name, _)| *name == word).map(|(_, it)| *it)
}

/// What to read and what `sx:sharing` says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ReadPlan {
    /// The reader view: current items; `since` and `until` are not for it.
    Reader,
    /// The window, or the part of it after a tick.
    Window {
        /// The lower bound, exclusive (READINGS 1, row 26).
        since: Option<Tick>,
    },
    /// The subscriber knows a later tick than we do: we were restored from an older copy. It is
    /// told a `since` greater than the one it cached, so that by section 4.1.2 step 2 it finds
    /// itself out of sync and reads the complete feed.
    StartAgain {
        /// `since` and `until` of the answer.
        at: Tick,
    },
    /// Everything kept.
    Complete,
}

impl ReadPlan {
    /// The plan of a view for a subscriber who has seen `seen`.
    pub(super) fn new(
        kind: ViewKind,
        seen: Option<Tick>,
        state: &FeedState,
    ) -> Result<Self, Problem> {
        match (kind, seen) {
            (ViewKind::Reader, _) => Ok(Self::Reader),
            (ViewKind::Complete, _) => Ok(Self::Complete),
            (ViewKind::Sync, None) => Ok(Self::Window { since: state.window_start }),
            (ViewKind::Sync, Some(seen)) if Some(seen) > state.tick => {
                let at = Tick::at(seen.time().plus(Duration::from_secs(1)));
                if at > seen {
                    Ok(Self::StartAgain { at })
                } else {
                    Err(Problem::parameter("since", "no gateway ever gave the last tick there is"))
                }
            }
            // A value before the window is answered with the whole window, whose `since` shows
            // the subscriber that it was away too long.
            (ViewKind::Sync, seen) => Ok(Self::Window { since: seen.max(state.window_start) }),
        }
    }

    /// Which items to read. Nothing has a tick after that of a subscriber who starts again.
    pub(super) fn select(self) -> Select {
        match self {
            Self::Reader => Select::Current,
            Self::Window { since } => Select::After(since.unwrap_or(Tick::at(Time::MIN))),
            Self::StartAgain { at } => Select::After(at),
            Self::Complete => Select::All,
        }
    }

    /// `since` and `until`: both or neither (section 2.2).
    pub(super) fn bounds(self, state: &FeedState) -> (Option<Tick>, Option<Tick>) {
        let since = match self {
            Self::Reader => None,
            Self::Window { since } => since,
            Self::StartAgain { at } => return (Some(at), Some(at)),
            Self::Complete => state.complete_start,
        };
        match (since, state.tick) {
            (Some(since), Some(until)) => (Some(since), Some(until)),
            _ => (None, None),
        }
    }

    /// `expires`: when the oldest of these items leaves the window. A function of what is stored,
    /// never of the time of the request.
    pub(super) fn expires(self, items: &[Item], window: Duration) -> Option<Time> {
        match self {
            Self::Window { .. } => {
                items.iter().map(|item| item.tick).min().map(|oldest| oldest.time().plus(window))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidegate_core::model::{Format, Revision};

    /// What is refused, and what else is chosen, is in the golden answers.
    #[test]
    fn a_moment_of_the_past_is_read_for_each_view_and_a_query_has_a_limit() {
        for kind in [ViewKind::Reader, ViewKind::Sync, ViewKind::Complete] {
            let asked = ViewQuery::read(kind, "as-of=2026-11-20T17:20:05%2B01:00").unwrap();
            assert_eq!(asked.as_of, Some(Time::from_unix(1_795_191_605)));
            if kind != ViewKind::Sync {
                assert_eq!(ViewQuery::read(kind, "since=now").unwrap(), ViewQuery::default());
            }
        }
        // A query has a limit. Those of the change log are in the tests of its doors.
        assert!(Query::read(&"x".repeat(4096)).is_ok());
        let refused = Query::read(&"x".repeat(4097)).err().unwrap();
        let said = "the query is 4097 bytes long, the limit is 4096";
        assert_eq!((refused.status.as_u16(), &*refused.detail), (400, said));
        assert!(ViewQuery::read(ViewKind::Sync, &"x".repeat(4097)).is_err());
        // That of a topic has the keys of its view only.
        for plain in ["as=atom", "sx=sse", "as=rss&sx=feedsync", "sx=feedsync&as=rss"] {
            assert!(is_plain(plain), "{plain}");
        }
        for junk in ["", "&", "as=atom&", "as=atom&x=1", "utm_source=x", "%61s=atom", "as=ato%6d"] {
            assert!(!is_plain(junk), "{junk}");
        }
    }

    proptest! {
        /// SSE 1.0 section 4.1.2: a subscriber who merges what it is given and caches `until` has
        /// missed nothing, or is told by `since` that it has.
        #[test]
        fn a_subscriber_misses_nothing_or_is_told(
            window in 0_i64..50,
            length in 0_i64..50,
            seen in -60_i64..120,
        ) {
            let (since, until) = (window, window + length);
            let tick = |seconds| Tick::at(Time::from_unix(seconds));
            let state = FeedState {
                revision: Revision(1),
                tick: Some(tick(until)),
                window_start: Some(tick(since)),
                complete_start: Some(tick(since - 1000)),
                render_revision: 1,
                ..FeedState::untouched(Format::Atom10, Time::from_unix(0))
            };
            let seen = Tick::at(Time::from_unix(seen));
            let plan = ReadPlan::new(ViewKind::Sync, Some(seen), &state).unwrap();
            let (told_since, told_until) = plan.bounds(&state);
            let (told_since, told_until) = (told_since.unwrap(), told_until.unwrap());
            let told_out_of_sync = told_since > seen;
            let gap = seen < state.window_start.unwrap() || seen > state.tick.unwrap();
            prop_assert_eq!(told_out_of_sync, gap);
            let Select::After(shown) = plan.select() else { panic!("a window is read by ticks") };
            // What is shown is exactly what `since` promises.
            prop_assert_eq!(shown, told_since);
            prop_assert!(told_since <= told_until);
            if !told_out_of_sync {
                prop_assert_eq!(told_until, state.tick.unwrap());
                prop_assert_eq!(shown, seen);
            }
        }
    }
}
