//! `PUT` and `PATCH /api/v1/feeds/NAME`: what the operator says of a feed, read and checked; all of it, or some of it
//! (RFC 7396), which leaves the rest, credentials and a pause among it.

use super::admin::{acted_feed, created};
use super::answers::{self, ActedFeed, FeedPatch, ShownOptions, TakenSettings, answer};
use super::extract::NewFeedInPath;
use super::{
    BadRequest, Conflict, FeedCall, JsonFields, JsonObject, NotFound, Problem, PutMode, Reply,
    SharedState,
};
use axum::extract::State;
use http::StatusCode;
use serde_json::{Map, Value};
use tidegate_config::{self as config, FeedSettings};
use tidegate_core::model::{FeedName, FeedRecord};

/// Adds a feed or changes it.
///
/// Replaces the options of the feed. A new address keeps the history.
#[utoipa::path(put, path = "/api/v1/feeds/{name}", operation_id = "putFeed", request_body = TakenSettings, responses(
    (status = 200, description = "It was changed.", body = ActedFeed),
    (status = 201, description = "It was added.", body = ActedFeed, headers(("Location"))),
    BadRequest, Conflict,
))]
pub(super) async fn put(
    State(app): State<SharedState>,
    NewFeedInPath(name): NewFeedInPath,
    JsonObject(body): JsonObject,
) -> Reply {
    match put_feed(&app, &name, parse_settings(&body.0)?, PutMode::Replace).await? {
        true => created(&app, &name).await,
        false => Ok(answer(StatusCode::OK, &acted_feed(&app, &name).await?)),
    }
}

/// Changes some of what is said of a feed.
///
/// The keys that it has replace those of the feed, null takes one back, and the rest stays, a pause among it.
#[utoipa::path(patch, path = "/api/v1/feeds/{name}", operation_id = "patchFeed", request_body = FeedPatch, responses(
    (status = 200, description = "It was changed.", body = ActedFeed),
    BadRequest, NotFound, Conflict,
))]
pub(super) async fn patch(
    FeedCall { app, name, .. }: FeedCall,
    JsonObject(wanted): JsonObject,
) -> Reply {
    // What another gateway has answered is not taken back.
    app.store.catch_up().await?;
    let mut settings = settings_from_record(&app.operator.record(&name).await?);
    merge(&mut settings, wanted.0);
    change(&app, &name, &settings).await?;
    Ok(answer(StatusCode::OK, &acted_feed(&app, &name).await?))
}

/// Changes a feed that is there; one that is paused stays so.
pub(super) async fn change(
    app: &SharedState,
    feed: &FeedName,
    settings: &Map<String, Value>,
) -> Result<(), Problem> {
    put_feed(app, feed, parse_settings(settings)?, PutMode::Change).await.map(drop)
}

/// Adds or changes a feed in a task of its own, so that it completes even if the client leaves. Returns whether it is
/// new.
pub(super) async fn put_feed(
    app: &SharedState,
    feed: &FeedName,
    settings: FeedSettings,
    mode: PutMode,
) -> Result<bool, Problem> {
    let feed = feed.clone();
    app.act(|operator| async move { operator.put(&feed, settings, mode).await }).await
}

/// Reads the settings of a feed; a mistake names its key.
pub(super) fn parse_settings(settings: &Map<String, Value>) -> Result<FeedSettings, Problem> {
    let settings = config::feed_settings(settings);
    let settings = settings.map_err(|(key, detail)| Problem::parameter(&key, detail))?;
    if settings.url.is_none() && !settings.options.sharing.local {
        let detail = "url, the feed to poll, is missing; only a feed with local = true needs none";
        return Err(Problem::parameter("url", detail));
    }
    Ok(settings)
}

/// The object that a body must be.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    let bad = |detail: String| Problem::new(http::StatusCode::BAD_REQUEST, detail);
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(bad("the body is JSON, but not an object".to_owned())),
        Err(error) => Err(bad(format!("the body is not JSON: {error}"))),
    }
}

/// The word that `action` says, of two; `usual` where it is absent.
pub(super) fn action<T: Copy>(
    mut fields: JsonFields,
    usual: Option<T>,
    words: [(&str, T); 2],
) -> Result<T, Problem> {
    let wanted = words.map(|(word, _)| word).join(" or ");
    let read =
        |value: Value| words.iter().find(|(word, _)| value == *word).map(|(_, action)| *action);
    let action = fields.take("action", &wanted, read)?;
    fields.finish()?;
    let missing = || Problem::parameter("action", format!("action is {wanted}"));
    action.or(usual).ok_or_else(missing)
}

/// A key that means nothing here is a mistake that must not pass in silence.
pub(super) fn unknown_key(key: &str) -> Problem {
    let key: String = key.chars().take(64).collect();
    Problem::parameter(&key, format!("the key {key:?} is unknown"))
}

/// What is said of a feed now, as `PUT` takes it back.
pub(super) fn settings_from_record(record: &FeedRecord) -> Map<String, Value> {
    let mut settings = match answers::value(&ShownOptions::new(record)) {
        Value::Object(settings) => settings,
        _ => Map::new(),
    };
    // Only an aggregate has sources, and no aggregate is changed here.
    settings.remove("sources");
    settings.retain(|_, value| !value.is_null());
    if record.has_upstream() {
        settings.insert("url".to_owned(), record.url.as_str().into());
    }
    settings
}

/// Changes what `patch` names: null takes a key back, and what is an object on both sides is changed likewise. (As
/// deep as the reader of JSON lets it be.)
fn merge(settings: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (key, value) in patch {
        match (value, settings.get_mut(&key)) {
            (Value::Null, Some(_)) => drop(settings.remove(&key)),
            (Value::Object(inner), Some(Value::Object(there))) => merge(there, inner),
            // A key that means nothing is named when all are read.
            (value, _) => drop(settings.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_named_stays() {
        let there = json!({ "title": "t", "headers": { "X-A": "stored", "X-B": "stored" }, "secret": true });
        for (patch, after) in [
            (json!({}), there.clone()),
            (
                json!({ "title": "u", "secret": null }),
                json!({ "title": "u", "headers": there["headers"] }),
            ),
            (
                json!({ "headers": { "X-B": null, "X-C": "c" } }),
                json!({ "title": "t", "headers": { "X-A": "stored", "X-C": "c" }, "secret": true }),
            ),
            (json!({ "headers": null }), json!({ "title": "t", "secret": true })),
            // Refused when all are read, by its name.
            (json!({ "headers": "no", "what": null }), {
                json!({ "title": "t", "headers": "no", "secret": true, "what": null })
            }),
        ] {
            let (Value::Object(mut settings), Value::Object(patch)) = (there.clone(), patch) else {
                panic!()
            };
            merge(&mut settings, patch);
            assert_eq!(Value::Object(settings), after);
        }
    }
}
