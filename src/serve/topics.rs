//! The documents that can be subscribed to, for the hub that delivers them: the very bytes and headers that a
//! reader gets.

use super::audience::{Audience, Revoked, ServedFeed};
use super::client::Client;
use super::guesses::too_many_tokens;
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
use tidegate_store::{KnownGateway, StoreCondition};

/// What the directory says of a feed: one that is unknown or was removed has gone.
fn gone_or_later(problem: &Problem) -> NoHubDocument {
    match problem.status() {
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            NoHubDocument::Gone(problem.detail().to_owned())
        }
        _ => later(problem),
    }
}

/// A token opens nothing by the readers of this gateway, and may open it by those of another one.
fn of_other_readers() -> NoHubDocument {
    let said = "the token of its address may be in the configuration of another gateway";
    NoHubDocument::Later(said.to_owned())
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
        let is_outdated = have_others_readers(&self.store.condition());
        let (audience, place) = match self.place(topic) {
            Ok(found) => found,
            Err(NoPlace::Revoked) if is_outdated => return Err(of_other_readers()),
            Err(NoPlace::Revoked) => {
                let said = "the token of its address is revoked";
                return Err(NoHubDocument::Gone(said.to_owned()));
            }
            Err(NoPlace::Foreign(problem)) => return Err(later(&problem)),
        };
        let served = self.directory.served(&place.name, &audience).await;
        let may_open = is_outdated && audience.reader().is_some();
        let record = served.map_err(|problem| match may_open && problem.is_unknown_feed() {
            true => of_other_readers(),
            false => gone_or_later(&problem),
        })?;
        let wish = self.wish(&place).map_err(|problem| later(&problem))?;
        Ok((record, wish))
    }
}

/// Whether another gateway over the same database has other readers: one of the two configurations is the newer one.
fn have_others_readers(condition: &StoreCondition) -> bool {
    let differ = |gateway: &KnownGateway| gateway.differing.iter().any(|key| key == "reader");
    condition.gateways.iter().any(differ)
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
