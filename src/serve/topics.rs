//! The documents that can be subscribed to, for the hub that delivers them: the very bytes and headers that a
//! reader gets.

use super::audience::{Audience, Revoked, ServedFeed};
use super::auth::too_many_tokens;
use super::client::Client;
use super::negotiate::Encoding;
use super::problem::Problem;
use super::query::{ViewQuery, is_plain};
use super::rendition::BodyContent;
use super::rendition_cache::ViewRequest;
use super::{AppState, webhook};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tidegate_core::model::{FeedName, Tick};
use tidegate_format::render::ViewKind;
use tidegate_poll::hub::{HubDocument, NoHubDocument, TopicRequest};
use tidegate_store::KnownGateway;

/// What the directory says of a feed: one that is unknown or was removed has gone.
fn gone_or_later(problem: &Problem) -> NoHubDocument {
    match problem.status() {
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            NoHubDocument::Gone(problem.detail().to_owned())
        }
        _ => later(problem),
    }
}

/// Everything else may be mended: another public address, a view that is not available now.
fn later(problem: &Problem) -> NoHubDocument {
    NoHubDocument::Later(problem.detail().to_owned())
}

impl AppState {
    /// Answers the hub.
    pub(super) async fn hub_document(
        &self,
        request: TopicRequest,
    ) -> Result<HubDocument, NoHubDocument> {
        match request {
            TopicRequest::Exists(topic) => {
                self.hub_topic(&topic).await.map(|_| HubDocument::default())
            }
            TopicRequest::Document(topic) => self.document_of(&topic).await,
            TopicRequest::Changes(feed, after) => self.changes_of(&feed, after).await,
        }
    }

    /// The document at this address as it is now, never an earlier one.
    async fn document_of(&self, topic: &str) -> Result<HubDocument, NoHubDocument> {
        let (record, wish) = self.hub_topic(topic).await?;
        let newest = self.shelf.rendition(&record, wish, Client::Own).await;
        let rendition = newest.map_err(|missing| later(&missing.into()))?;
        let mut headers = HeaderMap::new();
        for link in rendition.head.get_all(header::LINK) {
            headers.append(header::LINK, link.clone());
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(rendition.media_type));
        match &rendition.body(Encoding::Identity).content {
            BodyContent::Memory(body) => {
                Ok(HubDocument { headers, body: body.clone(), until: None })
            }
            BodyContent::File(file) => Err(NoHubDocument::TooLarge(file.len())),
        }
    }

    /// The oldest changes of a feed after a tick, as its webhook is told them.
    async fn changes_of(
        &self,
        feed: &FeedName,
        after: Option<Tick>,
    ) -> Result<HubDocument, NoHubDocument> {
        // The operator said where they go.
        let served = self.directory.served(feed.as_str(), &Audience::operator(self)).await;
        let record = served.map_err(|problem| gone_or_later(&problem))?;
        let message = webhook::message(self, &record, after).await;
        let (body, until) = message.map_err(|error| NoHubDocument::Later(error.to_string()))?;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(HubDocument { headers, body, until })
    }

    async fn hub_topic(&self, topic: &str) -> Result<(ServedFeed, ViewRequest), NoHubDocument> {
        // One of two configurations with other readers is the newer one.
        let differ = |gateway: &KnownGateway| gateway.differing.iter().any(|key| key == "reader");
        self.find_topic(topic).await.map_err(|missing| match missing {
            NoTopic::Revoked | NoTopic::Unopened(_)
                if self.store.condition().gateways.iter().any(differ) =>
            {
                let said =
                    "the token of its address may be in the configuration of another gateway";
                NoHubDocument::Later(said.to_owned())
            }
            NoTopic::Revoked => {
                NoHubDocument::Gone("the token of its address is revoked".to_owned())
            }
            NoTopic::Unopened(problem) | NoTopic::Unserved(problem) => gone_or_later(&problem),
            NoTopic::Foreign(problem) => later(&problem),
        })
    }
}

/// Why the address of a topic leads to no document.
enum NoTopic {
    /// It is none of a view here.
    Foreign(Problem),
    /// It is below a token that opens nothing.
    Revoked,
    /// The reader whose token it is below sees no such feed.
    Unopened(Problem),
    /// There is no such feed any more, or it cannot be told.
    Unserved(Problem),
}

impl AppState {
    /// The view that a topic is the address of: a reader, sync or complete view, in any container and
    /// dialect that it has. An answer to `?since=` or `?as-of=` is nothing to subscribe to.
    pub(super) async fn topic(
        &self,
        topic: &str,
        client: Client,
    ) -> Result<(ServedFeed, ViewRequest), Problem> {
        match self.find_topic(topic).await {
            Ok(found) => Ok(found),
            // Another way to guess at tokens.
            Err(NoTopic::Revoked) if self.readers.hold_back(client).await => Err(foreign()),
            Err(NoTopic::Revoked) => Err(too_many_tokens()),
            Err(
                NoTopic::Foreign(problem) | NoTopic::Unopened(problem) | NoTopic::Unserved(problem),
            ) => Err(problem),
        }
    }

    async fn find_topic(&self, topic: &str) -> Result<(ServedFeed, ViewRequest), NoTopic> {
        let (audience, name, kind, query) = self.place(topic)?;
        let served = self.directory.served(&name, &audience).await;
        let record = served.map_err(|problem| {
            let is_unopened = problem.is_unknown_feed && audience.reader().is_some();
            if is_unopened { NoTopic::Unopened(problem) } else { NoTopic::Unserved(problem) }
        })?;
        let asked = ViewQuery::read(kind, query.unwrap_or_default()).map_err(NoTopic::Foreign)?;
        let said = if asked.since.is_some() || asked.as_of.is_some() {
            "a topic has neither since nor as-of: subscribe to the view itself"
        } else if query.is_some_and(|query| !is_plain(query)) {
            "a topic has no parameters but as and sx, unescaped: subscribe to the view itself"
        } else {
            let dialect = self.site.dialect(asked.dialect, asked.container);
            return Ok((
                record,
                ViewRequest { kind, dialect, container: asked.container, seen: None },
            ));
        };
        Err(NoTopic::Foreign(Problem::new(StatusCode::BAD_REQUEST, said)))
    }

    /// What the address of a topic says: for whom, the feed's name, the view, and the query.
    fn place<'a>(
        &self,
        topic: &'a str,
    ) -> Result<(Audience, String, ViewKind, Option<&'a str>), NoTopic> {
        let places = self.site.places.load();
        if let Some(name) = places.feed_at(topic) {
            let query = places.is_json(name).then_some("as=jsonfeed");
            return Ok((Audience::public(self), name.to_string(), ViewKind::Reader, query));
        }
        let foreign = || NoTopic::Foreign(foreign());
        let found = Audience::of_address(self, topic).ok_or_else(foreign)?;
        let (audience, path) = found.map_err(|Revoked| NoTopic::Revoked)?;
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
        Ok((audience, name.to_owned(), kind, query))
    }
}

fn foreign() -> Problem {
    Problem::not_found("the topic is no feed of this gateway")
}
