//! The parameters of feed addresses: `as`, `sx`, `since`, `as-of`. Other keys are ignored, so that readers
//! may add what they like.

use super::problem::Problem;
use crate::model::{Tick, Time};
use crate::render::{Container, Dialect, ViewKind};

/// The longest query that is read, in bytes.
const QUERY_LIMIT: usize = 4 * 1024;

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
        if query.len() > QUERY_LIMIT {
            let said =
                format!("the query is {} bytes long, the limit is {QUERY_LIMIT}", query.len());
            return Err(Problem::new(http::StatusCode::BAD_REQUEST, said));
        }
        let mut asked = Self::default();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let twice = match &*key {
                "as" => asked.container.replace(container(&value)?).is_some(),
                "sx" => asked.dialect.replace(dialect(&value)?).is_some(),
                "since" if kind == ViewKind::Sync => asked.since.replace(since(&value)?).is_some(),
                "as-of" => asked.as_of.replace(as_of(&value)?).is_some(),
                _ => false,
            };
            if twice {
                return Err(Problem::parameter(&key, format!("{key} is given twice")));
            }
        }
        Ok(asked)
    }
}

/// Whether the query of a topic, as it is written, has nothing but `as` and `sx`, unescaped: whatever else
/// an address may bear would make many topics of one view.
pub(super) fn is_plain(query: &str) -> bool {
    let plain = |pair: &str| pair.starts_with("as=") || pair.starts_with("sx=");
    !query.contains(['%', '+']) && query.split('&').all(plain)
}

fn container(value: &str) -> Result<Container, Problem> {
    match value {
        "atom" => Ok(Container::Atom),
        "rss" => Ok(Container::Rss),
        "pox" => Ok(Container::Pox),
        "json" => Ok(Container::Json),
        "jsonfeed" => Ok(Container::JsonFeed),
        "opml" => Ok(Container::Opml),
        _ => Err(Problem::parameter("as", "as is one of atom, rss, pox, json, jsonfeed and opml")),
    }
}

fn dialect(value: &str) -> Result<Dialect, Problem> {
    match value {
        "sse" => Ok(Dialect::Sse),
        "feedsync" => Ok(Dialect::FeedSync),
        "sse-0.91" => Ok(Dialect::Sse091),
        _ => Err(Problem::parameter("sx", "sx is one of sse, feedsync and sse-0.91")),
    }
}

fn since(value: &str) -> Result<Tick, Problem> {
    let tick = value.parse::<Tick>();
    tick.map_err(|_| {
        Problem::parameter("since", "since is the until of an earlier answer: 2026-11-20T16:20:05Z")
    })
}

fn as_of(value: &str) -> Result<Time, Problem> {
    Time::parse_rfc3339(value).map_err(|_| {
        let said = "as-of is a time like 2026-11-20T16:20:05Z; the + of an offset is written %2B";
        Problem::parameter("as-of", said)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_read_and_the_rest_ignored() {
        assert_eq!(ViewQuery::read(ViewKind::Sync, "").unwrap(), ViewQuery::default());
        assert_eq!(
            ViewQuery::read(ViewKind::Sync, "utm_source=x&&=&as").map(|_| ()).unwrap_err().status(),
            400
        );
        let asked = ViewQuery::read(
            ViewKind::Sync,
            "x=1&as=rss&sx=feedsync&since=2026-11-20T16%3A20%3A05Z",
        )
        .unwrap();
        assert_eq!(asked.container, Some(Container::Rss));
        assert_eq!(asked.dialect, Some(Dialect::FeedSync));
        assert_eq!(asked.since, Some(Tick::at(Time::from_unix(1_795_191_605))));
    }

    #[test]
    fn the_query_of_a_topic_has_the_keys_of_its_view_only() {
        for plain in ["as=atom", "sx=sse", "as=rss&sx=feedsync", "sx=feedsync&as=rss"] {
            assert!(is_plain(plain), "{plain}");
        }
        for junk in ["", "&", "as=atom&", "as=atom&x=1", "utm_source=x", "%61s=atom", "as=ato%6d"] {
            assert!(!is_plain(junk), "{junk}");
        }
    }

    #[test]
    fn mistakes_name_their_parameter() {
        for (query, parameter) in [
            ("as=ATOM", "as"),
            ("as=atom&as=atom", "as"),
            ("sx=0.91", "sx"),
            ("sx=", "sx"),
            ("since=", "since"),
            ("since=now", "since"),
            ("since=2026-11-20T16:20:05.5Z", "since"),
            ("since=2026-11-20T16:20:05%2B00:00", "since"),
            ("since=2026-13-20T16:20:05Z", "since"),
            ("as-of=", "as-of"),
            ("as-of=now&since=2026-11-20T16:20:05Z", "as-of"),
            ("as-of=2026-11-20T16:20:05Z&as-of=2026-11-20T16:20:05Z", "as-of"),
        ] {
            let problem = ViewQuery::read(ViewKind::Sync, query).unwrap_err();
            let shown = serde_json::to_value(&problem).unwrap();
            assert_eq!(shown["parameter"], parameter, "{query}");
            assert_eq!(shown["status"], 400);
        }
        assert!(ViewQuery::read(ViewKind::Sync, &"x".repeat(5000)).is_err());
        for kind in [ViewKind::Reader, ViewKind::Sync, ViewKind::Complete] {
            let asked = ViewQuery::read(kind, "as-of=2026-11-20T17:20:05%2B01:00").unwrap();
            assert_eq!(asked.as_of, Some(Time::from_unix(1_795_191_605)));
            for bad in
                ["", "now", "2026-11-20", "2026-11-20T17:20:05+01:00", "2026-13-01T00:00:00Z"]
            {
                let problem = ViewQuery::read(kind, &format!("as-of={bad}")).unwrap_err();
                assert_eq!(serde_json::to_value(&problem).unwrap()["parameter"], "as-of", "{bad}");
            }
            if kind != ViewKind::Sync {
                assert_eq!(ViewQuery::read(kind, "since=now").unwrap(), ViewQuery::default());
            }
        }
    }
}
