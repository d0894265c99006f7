//! `PATCH /api/v1/feeds/NAME`: changes some of what the operator says of a feed, and leaves the rest, credentials
//! and a pause among it (RFC 7396).

use super::answers::{self, ActedFeed, FeedPatch, ShownOptions};
use super::extract::{FeedInPath, JsonObject};
use super::openapi::{BadRequest, Conflict, NotFound};
use super::operator::PutFeed;
use super::problem::Problem;
use super::{SharedState, admin, put};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::{Map, Value};
use tidegate_status::FeedStatus;

/// What is said of a feed now, as `PUT` takes it back.
pub(super) fn written(status: &FeedStatus) -> Map<String, Value> {
    let mut settings = match answers::value(&ShownOptions::new(status)) {
        Value::Object(settings) => settings,
        _ => Map::new(),
    };
    // Only an aggregate has sources, and no aggregate is changed here.
    settings.remove("sources");
    settings.retain(|_, value| !value.is_null());
    if !status.url.is_empty() {
        settings.insert("url".to_owned(), status.url.as_str().into());
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

/// Changes some of what is said of a feed.
///
/// The keys that it has replace those of the feed, null takes one back, and the rest stays, a pause among it.
#[utoipa::path(patch, path = "/api/v1/feeds/{name}", operation_id = "patchFeed", request_body = FeedPatch, responses(
    (status = 200, description = "It was changed.", body = ActedFeed),
    BadRequest,
    NotFound,
    Conflict,
))]
pub(super) async fn change(
    State(room): State<SharedState>,
    FeedInPath(name): FeedInPath,
    JsonObject(wanted): JsonObject,
) -> Result<Response, Problem> {
    // What another gateway has answered is not taken back.
    room.store.catch_up().await?;
    let mut settings = written(&room.operator.status(&name).await?);
    merge(&mut settings, wanted.0);
    let wanted = PutFeed { keeps_paused: true, ..put::settings(&settings)? };
    admin::put_feed(&room, &name, wanted).await?;
    Ok(answers::answer(StatusCode::OK, &admin::acted_feed(&room, &name).await?))
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
