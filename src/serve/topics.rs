//! The documents that can be subscribed to, for who delivers them: the very bytes and headers that a
//! reader gets.

use super::audience::{Audience, Revoked, ServedFeed};
use super::client::Client;
use super::guesses::too_many_tokens;
use super::negotiate::Encoding;
use super::problem::Problem;
use super::query::{ViewQuery, is_plain};
use super::rendition::BodyContent;
use super::rendition_cache::ViewRequest;
use super::{AppState, SharedState, webhook};
use axum::body::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tidegate_core::model::{FeedName, Tick};
use tidegate_format::render::ViewKind;

/// The documents of a site, by their addresses.
#[derive(Clone)]
pub struct SiteTopics(SharedState);

/// A document as it is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicDocument {
    /// `Content-Type` and `Link`.
    pub headers: HeaderMap,
    /// The bytes, in no encoding.
    pub body: Bytes,
}

/// Why there is no document at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTopic {
    /// There is none, or none any more; says why.
    Gone(String),
    /// It is too large to be delivered, at so many bytes.
    TooLarge(u64),
    /// It cannot be had just now; says why.
    Later(String),
}

impl NoTopic {
    /// What the directory says of a feed: one that is unknown or was removed has gone.
    fn of_feed(problem: &Problem) -> Self {
        match problem.status() {
            StatusCode::NOT_FOUND | StatusCode::GONE => Self::Gone(problem.detail().to_owned()),
            _ => Self::later(problem),
        }
    }

    /// A token opens nothing by readers that are outdated, and may open it by newer ones.
    fn of_outdated_readers() -> Self {
        let said = "the token of its address may be in a newer configuration than this gateway's";
        Self::Later(said.to_owned())
    }

    /// Everything else may be mended: another public address, a view that is not available now.
    fn later(problem: &Problem) -> Self {
        Self::Later(problem.detail().to_owned())
    }
}

impl SiteTopics {
    pub(super) const fn new(room: SharedState) -> Self {
        Self(room)
    }

    /// Whether there is a document at this address.
    pub async fn stands(&self, topic: &str) -> Result<(), NoTopic> {
        self.found(topic).await?;
        Ok(())
    }

    /// The document at this address as it is now, never an earlier one.
    pub async fn document(&self, topic: &str) -> Result<TopicDocument, NoTopic> {
        let room = &self.0;
        let (record, wish) = self.found(topic).await?;
        let newest = room.shelf.newest(&record, wish).await;
        let rendition = newest.map_err(|problem| NoTopic::later(&problem))?;
        let mut headers = HeaderMap::new();
        for link in rendition.head.get_all(header::LINK) {
            headers.append(header::LINK, link.clone());
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(rendition.media_type));
        match &rendition.body(Encoding::Identity).content {
            BodyContent::Memory(bytes) => Ok(TopicDocument { headers, body: bytes.clone() }),
            BodyContent::File(file) => Err(NoTopic::TooLarge(file.len())),
        }
    }

    /// The oldest changes of a feed after a tick, as its webhook is told them, and the tick up to which they go.
    pub async fn changes(
        &self,
        feed: &FeedName,
        after: Option<Tick>,
    ) -> Result<(TopicDocument, Option<Tick>), NoTopic> {
        let room = &self.0;
        // The operator said where they go.
        let served = room.directory.served(feed.as_str(), &Audience::operator(room)).await;
        let record = served.map_err(|problem| NoTopic::of_feed(&problem))?;
        let message = webhook::message(room, &record, after).await;
        let (body, until) = message.map_err(|error| NoTopic::Later(error.to_string()))?;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok((TopicDocument { headers, body }, until))
    }

    async fn found(&self, topic: &str) -> Result<(ServedFeed, ViewRequest), NoTopic> {
        let room = &self.0;
        let later = |problem: Problem| NoTopic::later(&problem);
        let is_outdated = room.readers.are_outdated();
        let (audience, place) = match room.place(topic) {
            Ok(found) => found,
            Err(NoPlace::Revoked) if is_outdated => return Err(NoTopic::of_outdated_readers()),
            Err(NoPlace::Revoked) => {
                return Err(NoTopic::Gone("the token of its address is revoked".to_owned()));
            }
            Err(NoPlace::Foreign(problem)) => return Err(later(problem)),
        };
        let served = room.directory.served(&place.name, &audience).await;
        let may_open = is_outdated && audience.reader().is_some();
        let record = served.map_err(|problem| match may_open && problem.is_unknown_feed() {
            true => NoTopic::of_outdated_readers(),
            false => NoTopic::of_feed(&problem),
        })?;
        let wish = room.wish(&place).map_err(later)?;
        Ok((record, wish))
    }
}

/// What the address of a topic says.
#[derive(Clone)]
struct TopicAddress<'a> {
    name: String,
    kind: ViewKind,
    query: Option<&'a str>,
}

/// Why the address of a topic leads nowhere.
enum NoPlace {
    Foreign(Problem),
    /// It is below a token that opens nothing.
    Revoked,
}

fn foreign() -> Problem {
    Problem::not_found("the topic is no feed of this gateway")
}

impl AppState {
    /// The view that a topic is the address of: a reader, sync or complete view, in any container and
    /// dialect that it has. An answer to `?since=` or `?as-of=` is nothing to subscribe to.
    pub(super) async fn topic(
        &self,
        topic: &str,
        client: Client,
    ) -> Result<(ServedFeed, ViewRequest), Problem> {
        let (audience, place) = match self.place(topic) {
            Ok(found) => found,
            Err(NoPlace::Foreign(problem)) => return Err(problem),
            Err(NoPlace::Revoked) => {
                // Another way to guess at tokens.
                return Err(match self.readers.hold_back(client).await {
                    true => foreign(),
                    false => too_many_tokens(),
                });
            }
        };
        let record = self.directory.served(&place.name, &audience).await?;
        let wish = self.wish(&place)?;
        Ok((record, wish))
    }

    fn place<'a>(&self, topic: &'a str) -> Result<(Audience, TopicAddress<'a>), NoPlace> {
        let foreign = || NoPlace::Foreign(foreign());
        if let Some(name) = self.site.places.load().feed_at(topic) {
            let query = self.site.places.load().is_json(name).then_some("as=jsonfeed");
            let place = TopicAddress { name: name.to_string(), kind: ViewKind::Reader, query };
            return Ok((Audience::public(self), place));
        }
        let found = Audience::of_address(self, topic).ok_or_else(foreign)?;
        let (audience, path) = found.map_err(|Revoked| NoPlace::Revoked)?;
        let path = path.strip_prefix("/feeds/").ok_or_else(foreign)?;
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        let (name, kind) = match path.split_once('/') {
            None => (path, ViewKind::Reader),
            Some((name, "sync")) => (name, ViewKind::Sync),
            Some((name, "complete")) => (name, ViewKind::Complete),
            Some(_) => return Err(foreign()),
        };
        Ok((audience, TopicAddress { name: name.to_owned(), kind, query }))
    }

    fn wish(&self, place: &TopicAddress<'_>) -> Result<ViewRequest, Problem> {
        let kind = place.kind;
        let asked = ViewQuery::read(kind, place.query.unwrap_or_default())?;
        if asked.since.is_some() || asked.as_of.is_some() {
            let said = "a topic has neither since nor as-of: subscribe to the view itself";
            return Err(Problem::new(StatusCode::BAD_REQUEST, said));
        }
        if place.query.is_some_and(|query| !is_plain(query)) {
            let said =
                "a topic has no parameters but as and sx, unescaped: subscribe to the view itself";
            return Err(Problem::new(StatusCode::BAD_REQUEST, said));
        }
        let dialect = self.site.dialect(asked.dialect, asked.container);
        Ok(ViewRequest { kind, dialect, container: asked.container, seen: None })
    }
}
