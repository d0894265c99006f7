//! `POST /rsscloud/pleaseNotify`: registrations by rssCloud, which lead to the hub as well.

use super::SharedState;
use super::client::Client;
use super::conditional::unkept;
use super::hub::is_form;
use super::problem::Problem;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use http::HeaderMap;
use tidegate_core::websub::{FORM_TYPE, Registration};
use tidegate_core::xml::push_attribute;

/// Answers as rssCloud does: 200, and in a document whether it was taken.
pub(super) async fn register(
    State(room): State<SharedState>,
    client: Client,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let said = match taken(&room, client, &headers, body).await {
        Ok(()) => {
            (true, "The callback will be asked; then it is told of changes for 25 hours.".into())
        }
        Err(said) => (false, said),
    };
    answer(said.0, &said.1)
}

async fn taken(
    room: &SharedState,
    client: Client,
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<(), String> {
    let hub = room.hub.as_ref().filter(|_| room.site.cloud).ok_or("there is no cloud here")?;
    if !is_form(headers) {
        return Err(format!("a registration has the content type {FORM_TYPE}"));
    }
    let body = body.map_err(|error| error.body_text())?;
    let Registration { topics, callback } =
        Registration::read(&body).map_err(|error| error.to_string())?;
    // All of them are known before any is taken.
    let mut feeds = Vec::new();
    for topic in topics {
        let found = room.topic(&topic, client).await;
        let (record, _) = found.map_err(|problem| problem.detail().to_owned())?;
        feeds.push((record, topic));
    }
    for (record, topic) in feeds {
        let client = client.address();
        let registered = hub.register(&record.name, topic, callback.clone(), client).await;
        // What failed here is for the operator's log.
        registered.map_err(|error| Problem::from(error).detail().to_owned())?;
    }
    Ok(())
}

fn answer(success: bool, said: &str) -> Response {
    let mut text = format!("<?xml version=\"1.0\"?>\n<notifyResult success=\"{success}\"");
    push_attribute(&mut text, "msg", said);
    text.push_str("/>\n");
    unkept("text/xml; charset=utf-8", text)
}
