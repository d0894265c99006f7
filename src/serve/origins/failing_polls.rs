//! Feeds whose polls fail while the site answers its readers: they would have the same document for ever.

use super::super::SharedState;
use super::making::may_be;
use super::{OriginRequest, document_or_page, send};
use axum::body::Body;
use axum::extract::Request;
use http::request::Parts;
use http::{Method, header};
use tidegate_core::model::FeedName;
use tidegate_net::origin::{PassMode, is_neutral};

/// What the site is to be asked for a feed that has a document: as by a poll, but in the name that the reader's program
/// gives itself. `None` where polls do not fail, where another gateway polls the feed, and where the site was asked a
/// moment ago.
pub(super) fn question(
    room: &SharedState,
    asked: &OriginRequest,
    name: &FeedName,
    request: &Request,
) -> Option<Parts> {
    let program = request.headers().get(header::USER_AGENT)?;
    let is_asked = asked.site.config().passes == PassMode::Through
        && request.method() == Method::GET
        && room.origins.is_polled_as(&asked.site, &asked.url)
        && room.origins.looks.sees_polls(&asked.url);
    let polled = room.operator.own_summary(name).filter(|_| is_asked)?;
    // One that waits for no poll is being polled, or is stopped: the gateway ended in documents of it.
    if polled.failures == 0 || polled.next_poll.is_none() {
        return None;
    }
    let mut question = http::Request::new(());
    *question.extensions_mut() = request.extensions().clone();
    *question.headers_mut() = room.origins.service().ok()?.polled_with();
    question.headers_mut().insert(header::USER_AGENT, program.clone());
    Some(question.into_parts().0)
}

/// Has the feed read what the site answers to that; `None` where it does not.
pub(super) async fn read_again(
    room: &SharedState,
    asked: &OriginRequest,
    name: &FeedName,
    question: &Parts,
) -> Option<()> {
    let feeds = room.directory.listing().await.ok()?;
    let record = feeds.get(name)?;
    // Any other is polled as the operator says, and takes no answer of a reader's.
    if record.on_demand.is_none() || record.access.is_some() || record.url != asked.url.as_str() {
        return None;
    }
    let answer = send::send(room, asked, question, Body::empty()).await.ok()?;
    if !may_be(room, &asked.url, answer.status, &answer.headers) || !is_neutral(&answer.headers) {
        return None;
    }
    let _permit = room.origins.looks.documents.try_acquire().ok()?;
    let whole = document_or_page(&asked.url, answer).await?;
    room.origins.service().ok()?.read_again(name, &asked.url, whole).await;
    Some(())
}
