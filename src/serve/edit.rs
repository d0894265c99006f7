//! `/api/v1/feeds/NAME/items`: items that are made here, and conflicts that are resolved (SSE 1.0
//! sections 3.1, 3.2 and 3.4). The token was checked before.

mod entry;

use self::entry::{EntryFormat, Posted};
use super::address::item_page;
use super::client::Client;
use super::conditional::{add, unkept};
use super::feeds::{NameInPath, unreadable};
use super::problem::Problem;
use super::query::Query;
use super::{API, SharedState, admin, conflicts, plain, put};
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_core::model::{Count, FeedName, Markup, SyncId};
use tidegate_judge::record::local::{Act, Acted, CheckedEntry, EntryError, Resolution};

/// The longest entry that is taken, in bytes, as it is sent.
pub(super) const ENTRY_LIMIT: usize = 1024 * 1024;

type ItemInPath = Result<Path<(String, String)>, PathRejection>;
type EditResult = Result<Bytes, BytesRejection>;

/// `POST /api/v1/feeds/NAME/items`.
pub(super) async fn create(
    State(room): State<SharedState>,
    name: NameInPath,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: EditResult,
) -> Result<Response, Problem> {
    let feed = admin::feed(name)?;
    let asked = Query::read(query.as_deref().unwrap_or_default())?.flag("noconflicts")?;
    let posted = Posted::read(&headers, &whole(body, ENTRY_LIMIT)?, None)?;
    let noconflicts = posted.noconflicts.or(asked);
    let acted = done(&room, &feed, Act::Create { entry: posted.entry, noconflicts }).await?;
    let mut response = answer(StatusCode::CREATED, &feed, &acted);
    let at = room.site.at(&format!("{API}{}", item_page(&feed, &acted.id)));
    add(response.headers_mut(), header::LOCATION, &at);
    Ok(response)
}

/// `PUT /api/v1/feeds/NAME/items/SYNC_ID`.
pub(super) async fn update(
    State(room): State<SharedState>,
    path: ItemInPath,
    headers: HeaderMap,
    body: EditResult,
) -> Result<Response, Problem> {
    let (feed, id) = item(path)?;
    let expected = expected(&headers)?;
    let outline = outline(&room, &feed, &id).await?;
    let entry = rewritten(&headers, &whole(body, ENTRY_LIMIT)?, outline.as_ref())?;
    let acted = done(&room, &feed, Act::Update { id, entry, expected }).await?;
    Ok(answer(StatusCode::OK, &feed, &acted))
}

/// `DELETE /api/v1/feeds/NAME/items/SYNC_ID`.
pub(super) async fn delete(
    State(room): State<SharedState>,
    path: ItemInPath,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (feed, id) = item(path)?;
    let expected = expected(&headers)?;
    let acted = done(&room, &feed, Act::Delete { id, expected }).await?;
    Ok(answer(StatusCode::OK, &feed, &acted))
}

/// `POST /api/v1/feeds/NAME/items/SYNC_ID/restore`, with an entry or an empty body.
pub(super) async fn restore(
    State(room): State<SharedState>,
    path: ItemInPath,
    headers: HeaderMap,
    body: EditResult,
) -> Result<Response, Problem> {
    let (feed, id) = item(path)?;
    let expected = expected(&headers)?;
    let body = whole(body, ENTRY_LIMIT)?;
    let outline = outline(&room, &feed, &id).await?;
    let entry = match body.is_empty() {
        true => None,
        false => Some(rewritten(&headers, &body, outline.as_ref())?),
    };
    let acted = done(&room, &feed, Act::Restore { id, entry, expected }).await?;
    Ok(answer(StatusCode::OK, &feed, &acted))
}

/// `POST /api/v1/feeds/NAME/items/SYNC_ID/resolve`: `{"keep":"winner"}`, `{"keep":n}` or
/// `{"item":"<entry…>"}`; with `"conflicts":[…]` only those, and with `"etag"` or `If-Match` only
/// while they are as they were seen.
pub(super) async fn resolve(
    State(room): State<SharedState>,
    path: ItemInPath,
    headers: HeaderMap,
    body: EditResult,
) -> Result<Response, Problem> {
    let (feed, id) = item(path)?;
    let (mut keep, mut conflicts) = (None, None);
    let mut expected = match_tag(&headers)?;
    let outline = outline(&room, &feed, &id).await?;
    for (key, value) in put::object(&whole(body, ENTRY_LIMIT)?)? {
        let choice = match key.as_str() {
            "keep" => kept(&value)?,
            "item" => Resolution::New(entry::in_json(&value, outline.as_ref())?),
            "conflicts" => {
                conflicts = Some(numbers(&value)?);
                continue;
            }
            "etag" => {
                let said = || Problem::parameter("etag", "etag is a text");
                expected = Some(value.as_str().ok_or_else(said)?.to_owned());
                continue;
            }
            _ => return Err(put::unknown_key(&key)),
        };
        if keep.replace(choice).is_some() {
            let said = "say keep or item, and not both";
            return Err(Problem::parameter(&key, said));
        }
    }
    let missing = || {
        let said = "say what to keep: \"winner\", the number of a conflict (counted from 0), or a new \
                    item";
        Problem::parameter("keep", said)
    };
    let keep = keep.ok_or_else(missing)?;
    let acted = done(&room, &feed, Act::Resolve { id, keep, conflicts, expected }).await?;
    Ok(answer(StatusCode::OK, &feed, &acted))
}

/// `GET /api/v1/feeds/NAME/conflicts`.
pub(super) async fn conflicts(
    State(room): State<SharedState>,
    client: Client,
    name: NameInPath,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let feed = admin::feed(name)?;
    room.operator.status(&feed).await?;
    let listed = conflicts::listed(&room, client, &feed, query.as_deref()).await?;
    Ok(unkept("application/json", listed))
}

/// Has it done to its end, whoever waits for it.
pub(super) async fn done(room: &SharedState, feed: &FeedName, act: Act) -> Result<Acted, Problem> {
    let (acting, of) = (Arc::clone(room), feed.clone());
    admin::to_the_end(async move { acting.operator.item(&of, act).await }).await
}

/// An entry that cannot be taken, with its place.
pub(super) fn unwritten(error: &EntryError) -> Problem {
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string());
    match error.line {
        Some(line) => problem.with("line", line),
        None => problem,
    }
}

/// A body as a whole.
pub(super) fn whole(body: EditResult, limit: usize) -> Result<Bytes, Problem> {
    body.map_err(|rejection| {
        let status = rejection.status();
        let said = match status {
            StatusCode::PAYLOAD_TOO_LARGE => format!("the body is larger than {limit} bytes"),
            _ => "the body did not come whole".to_owned(),
        };
        Problem::new(status, said)
    })
}

/// The item of a feed that an address names.
pub(super) fn item(path: ItemInPath) -> Result<(FeedName, SyncId), Problem> {
    let (name, id) = path.map_err(unreadable)?.0;
    let feed = admin::feed(Ok(Path(name)))?;
    let unknown = |_| Problem::not_found("there is no item of that sync id");
    Ok((feed, SyncId::new(&id).map_err(unknown)?))
}

/// What an item says that is an outline of a list: fields are laid over it, for Atom has no words for
/// the rest.
async fn outline(
    room: &SharedState,
    feed: &FeedName,
    id: &SyncId,
) -> Result<Option<Markup>, Problem> {
    let item = room.store.item(feed, id).await?.filter(plain::is_outline);
    let version = item.as_ref().and_then(plain::begins);
    Ok(version.map(|version| version.data.clone()))
}

/// An entry for an item that is there: `noconflicts` was said when it was made.
fn rewritten(
    headers: &HeaderMap,
    body: &[u8],
    outline: Option<&Markup>,
) -> Result<CheckedEntry, Problem> {
    let posted = Posted::read(headers, body, outline)?;
    if posted.noconflicts.is_some() {
        let said = "noconflicts is said when an item is made, and never again";
        return Err(Problem::parameter("noconflicts", said));
    }
    Ok(posted.entry)
}

/// The one strong tag of `If-Match`; nothing where none is said, or `*` (RFC 9110 section 13.1.1).
fn match_tag(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(header::IF_MATCH).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return match headers.contains_key(header::IF_MATCH) {
            true => Err(Problem::parameter("If-Match", "If-Match has one ETag here")),
            false => Ok(None),
        };
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let tag = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let said = || Problem::parameter("If-Match", "If-Match has one strong ETag, in quotes, or *");
    Ok(Some(tag.filter(|tag| !tag.contains('"')).ok_or_else(said)?.to_owned()))
}

/// How often the item was updated, as far as its author knows.
fn expected(headers: &HeaderMap) -> Result<Option<Count>, Problem> {
    let Some(tag) = match_tag(headers)? else { return Ok(None) };
    let count = tag.parse().ok().and_then(|number| Count::new(number).ok());
    let said = "no version of an item has that ETag: it is the number of its updates";
    let problem = || Problem::new(StatusCode::PRECONDITION_FAILED, said).about("If-Match");
    count.map(Some).ok_or_else(problem)
}

fn kept(value: &Value) -> Result<Resolution, Problem> {
    match (value.as_str(), value.as_u64().and_then(|number| usize::try_from(number).ok())) {
        (Some("winner"), _) => Ok(Resolution::Winner),
        (None, Some(number)) => Ok(Resolution::Conflict(number)),
        _ => {
            let said = "keep is \"winner\" or the number of a conflict, counted from 0";
            Err(Problem::parameter("keep", said))
        }
    }
}

fn numbers(value: &Value) -> Result<Vec<usize>, Problem> {
    let said = || Problem::parameter("conflicts", "conflicts is a list of numbers, counted from 0");
    let list = value.as_array().filter(|list| !list.is_empty()).ok_or_else(said)?;
    let limit = tidegate_core::model::Conflicting::LIMIT;
    if list.len() > limit {
        return Err(Problem::parameter("conflicts", format!("conflicts has more than {limit}")));
    }
    let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
    list.iter().map(number).collect::<Option<Vec<_>>>().ok_or_else(said)
}

fn answer(status: StatusCode, feed: &FeedName, acted: &Acted) -> Response {
    let value = json!({
        "feed": feed,
        "sync_id": acted.id,
        "updates": acted.updates,
        "tick": acted.tick,
        "deleted": acted.deleted,
        "conflicts": acted.conflicts,
    });
    let mut response = admin::answer(status, value);
    let tag = format!("\"{}\"", acted.updates.value());
    add(response.headers_mut(), header::ETAG, &tag);
    response
}

/// What an entry in a body is, for [`Posted`].
const fn kinds() -> &'static [(&'static str, EntryFormat)] {
    &[
        ("application/atom+xml", EntryFormat::Atom),
        ("application/xml", EntryFormat::Atom),
        ("text/xml", EntryFormat::Atom),
        ("application/json", EntryFormat::Json),
    ]
}
