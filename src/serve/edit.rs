//! `/api/v1/feeds/NAME/items`: items that are made here, and conflicts that are resolved (SSE 1.0
//! sections 3.1, 3.2 and 3.4). The token was checked before.

use super::answers::{object, optional};
use super::conditional::add;
use super::{
    API, BadRequest, Conflict, FeedCall, ItemCall, JsonFields, JsonObject, NotFound, Problem,
    Query, Reply, SharedState, Stale, TypedQuery, Unprocessable, WholeBody, answers, conflicts,
    item_page, put,
};
use axum::response::Response;
use http::{HeaderMap, StatusCode, header};
use serde::Serialize;
use serde_json::Value;
use tidegate_core::model::{Count, FeedName, Markup, SyncId, Tick};
use tidegate_format::parse::{self, Amendment, Limits};
use tidegate_judge::record::local::{
    Act, Acted, CheckedEntry, EntryError, EntryFields, ItemAct, Resolution,
};
use tidegate_status::describe;
use tidegate_status::schema::{self, text, words};
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder};
use utoipa::{IntoParams, PartialSchema, ToSchema};

/// The longest entry that is taken, in bytes, as it is sent.
pub(super) const ENTRY_LIMIT: usize = 1024 * 1024;

/// Makes an item of a local feed.
#[utoipa::path(post, path = "/api/v1/feeds/{name}/items", operation_id = "createItem",
    params(("noconflicts" = Option<bool>, Query, description = "Whether the item never has conflicts.")),
    request_body(content((ItemEntry = "application/json"), (AtomEntry = "application/atom+xml"))),
    responses(
        (status = 201, description = "It was made.", body = ItemChanged, headers(("Location"), ("ETag"))),
        BadRequest, NotFound, Conflict, Unprocessable,
    ))]
pub(super) async fn create(
    FeedCall { app, name: feed, .. }: FeedCall,
    TypedQuery(query): TypedQuery<Query>,
    headers: HeaderMap,
    WholeBody(body): WholeBody,
) -> Reply {
    let flag = query.flag("noconflicts")?;
    let (entry, noconflicts) = parse_entry(&headers, &body, None)?;
    let noconflicts = noconflicts.or(flag);
    let acted = apply_act(&app, &feed, Act::Create { entry, noconflicts }).await?;
    let at = app.site.at(&format!("{API}{}", item_page(&feed, &acted.id)));
    let mut response = answer(StatusCode::CREATED, feed, acted);
    add(response.headers_mut(), header::LOCATION, &at);
    Ok(response)
}

/// Changes an item of a local feed.
#[utoipa::path(put, path = "/api/v1/feeds/{name}/items/{id}", operation_id = "updateItem", params(IfMatch),
    request_body(content((ItemEntry = "application/json"), (AtomEntry = "application/atom+xml"))),
    responses(
        (status = 200, description = "It was changed.", body = ItemChanged, headers(("ETag"))),
        BadRequest, NotFound, Conflict, Stale, Unprocessable,
    ))]
pub(super) async fn update(
    ItemCall { app, feed, id }: ItemCall,
    headers: HeaderMap,
    WholeBody(body): WholeBody,
) -> Reply {
    let expected = parse_if_match(&headers)?;
    let outline = outline(&app, &feed, &id).await?;
    let entry = rewritten(parse_entry(&headers, &body, outline.as_ref())?)?;
    let acted =
        apply_act(&app, &feed, Act::Change { id, how: ItemAct::Update(entry), expected }).await?;
    Ok(answer(StatusCode::OK, feed, acted))
}

/// Deletes an item of a local feed.
#[utoipa::path(delete, path = "/api/v1/feeds/{name}/items/{id}", operation_id = "deleteItem", params(IfMatch),
    responses((status = 200, description = "It was deleted.", body = ItemChanged, headers(("ETag"))), NotFound, Conflict, Stale))]
pub(super) async fn delete(ItemCall { app, feed, id }: ItemCall, headers: HeaderMap) -> Reply {
    let expected = parse_if_match(&headers)?;
    let acted = apply_act(&app, &feed, Act::Change { id, how: ItemAct::Delete, expected }).await?;
    Ok(answer(StatusCode::OK, feed, acted))
}

/// Restores a deleted item of a local feed, with a new entry or as it was.
#[utoipa::path(post, path = "/api/v1/feeds/{name}/items/{id}/restore", operation_id = "restoreItem", params(IfMatch),
    request_body(content((Option<ItemEntry> = "application/json"), (Option<AtomEntry> = "application/atom+xml"))),
    responses(
        (status = 200, description = "It was restored.", body = ItemChanged, headers(("ETag"))),
        NotFound, Conflict, Stale, Unprocessable,
    ))]
pub(super) async fn restore(
    ItemCall { app, feed, id }: ItemCall,
    headers: HeaderMap,
    WholeBody(body): WholeBody,
) -> Reply {
    let expected = parse_if_match(&headers)?;
    let outline = outline(&app, &feed, &id).await?;
    let entry = match body.is_empty() {
        true => None,
        false => Some(rewritten(parse_entry(&headers, &body, outline.as_ref())?)?),
    };
    let acted =
        apply_act(&app, &feed, Act::Change { id, how: ItemAct::Restore(entry), expected }).await?;
    Ok(answer(StatusCode::OK, feed, acted))
}

/// Resolves conflicts of an item.
#[utoipa::path(post, path = "/api/v1/feeds/{name}/items/{id}/resolve", operation_id = "resolveConflicts",
    params(("If-Match" = Option<String>, Header, description = "The `etag` of the list of conflicts.",
        pattern = r#"^"[A-Za-z0-9_-]+"$"#)),
    request_body = ConflictResolution,
    responses(
        (status = 200, description = "They were resolved.", body = ItemChanged, headers(("ETag"))),
        BadRequest, NotFound, Conflict, Stale, Unprocessable,
    ))]
pub(super) async fn resolve(
    ItemCall { app, feed, id }: ItemCall,
    headers: HeaderMap,
    JsonObject(mut body): JsonObject,
) -> Reply {
    let conflicts =
        body.0.remove("conflicts").map(|value| parse_conflict_numbers(&value)).transpose()?;
    let expected = body.text("etag")?.map_or_else(|| match_tag(&headers), |tag| Ok(Some(tag)))?;
    let wanted = "\"winner\" or the number of a conflict, counted from 0";
    let keep = body.take("keep", wanted, |value| parse_keep(&value))?;
    let outline = outline(&app, &feed, &id).await?;
    let item = body.0.remove("item").map(|value| in_json(value, outline.as_ref()));
    body.finish()?;
    if keep.is_some() && item.is_some() {
        return Err(Problem::parameter("keep", "say keep or item, and not both"));
    }
    let keep = keep.or(item.transpose()?.map(Resolution::New));
    let missing = || {
        let detail = "say what to keep: \"winner\", the number of a conflict (counted from 0), or a new \
                    item";
        Problem::parameter("keep", detail)
    };
    let keep = keep.ok_or_else(missing)?;
    let acted = apply_act(&app, &feed, Act::Resolve { id, keep, conflicts, expected }).await?;
    Ok(answer(StatusCode::OK, feed, acted))
}

/// Applies an act in a task of its own, so that it completes even if the client leaves.
pub(super) async fn apply_act(
    app: &SharedState,
    feed: &FeedName,
    act: Act,
) -> Result<Acted, Problem> {
    let feed = feed.clone();
    app.act(|operator| async move { operator.item(&feed, act).await }).await
}

impl From<EntryError> for Problem {
    /// An entry that cannot be taken, with its place.
    fn from(error: EntryError) -> Self {
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string());
        match error.line {
            Some(line) => problem.with("line", line),
            None => problem,
        }
    }
}

/// What an item says that is an outline of a list: fields are laid over it, for Atom has no words for
/// the rest.
async fn outline(
    app: &SharedState,
    feed: &FeedName,
    id: &SyncId,
) -> Result<Option<Markup>, Problem> {
    let item = app.store.item(feed, id).await?.filter(conflicts::is_outline);
    let version = item.as_ref().and_then(conflicts::first_living_version);
    Ok(version.map(|version| version.data.clone()))
}

/// An entry for an item that is there: `noconflicts` was said when it was made.
fn rewritten((entry, noconflicts): PostedEntry) -> Result<CheckedEntry, Problem> {
    match noconflicts {
        None => Ok(entry),
        Some(_) => {
            let detail = "noconflicts is said when an item is made, and never again";
            Err(Problem::parameter("noconflicts", detail))
        }
    }
}

/// The one strong tag of `If-Match`; nothing where none is said, or `*` (RFC 9110 section 13.1.1).
fn match_tag(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(header::IF_MATCH).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::parameter("If-Match", "If-Match has one ETag here"));
    }
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let tag = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let detail = || Problem::parameter("If-Match", "If-Match has one strong ETag, in quotes, or *");
    Ok(Some(tag.filter(|tag| !tag.contains('"')).ok_or_else(detail)?.to_owned()))
}

/// How often the item was updated, as far as its author knows.
fn parse_if_match(headers: &HeaderMap) -> Result<Option<Count>, Problem> {
    if headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == "*") {
        let detail =
            "If-None-Match: * is for an item that is not there yet, which only a POST makes";
        return Err(Problem::new(StatusCode::PRECONDITION_FAILED, detail).about("If-None-Match"));
    }
    let Some(tag) = match_tag(headers)? else { return Ok(None) };
    let count = tag.parse().ok().and_then(|number| Count::new(number).ok());
    let detail = "no version of an item has that ETag: it is the number of its updates";
    let problem = || Problem::new(StatusCode::PRECONDITION_FAILED, detail).about("If-Match");
    count.map(Some).ok_or_else(problem)
}

fn parse_keep(value: &Value) -> Option<Resolution> {
    match value.as_str() {
        Some(word) => (word == "winner").then_some(Resolution::Winner),
        None => usize::try_from(value.as_u64()?).ok().map(Resolution::Conflict),
    }
}

fn parse_conflict_numbers(value: &Value) -> Result<Vec<usize>, Problem> {
    let detail =
        || Problem::parameter("conflicts", "conflicts is a list of numbers, counted from 0");
    let list = value.as_array().filter(|list| !list.is_empty()).ok_or_else(detail)?;
    let limit = tidegate_core::model::Conflicting::LIMIT;
    if list.len() > limit {
        return Err(Problem::parameter("conflicts", format!("conflicts has more than {limit}")));
    }
    let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
    list.iter().map(number).collect::<Option<Vec<_>>>().ok_or_else(detail)
}

describe! {
    /// An item of a local feed.
    ItemEntry: ["title", "content", "content_html", "summary", "link", "author", "id"].into_iter()
        .fold(optional("noconflicts", bool::schema()), |entry, key| entry.property(key, text()))
        .property("published", schema::Time::schema())
        .property("updated", schema::Time::schema())
        .property("categories", Vec::<String>::schema());
    /// An Atom entry.
    AtomEntry: text();
    /// The winner, or the number of a conflict, counted from 0.
    KeptVersion: OneOfBuilder::new().item(words(["winner"])).item(u32::schema());
    /// A new item.
    NewVersion: OneOfBuilder::new().item(AtomEntry::schema()).item(Ref::from_schema_name("ItemEntry"));
    /// Which versions are kept: `keep` or `item`, not both. With `conflicts`, only these are resolved; with `etag`,
    /// nothing is decided but what was seen in the list.
    ConflictResolution: OneOfBuilder::new()
        .item(resolution(object("keep", KeptVersion::schema())))
        .item(resolution(object("item", NewVersion::schema())));
}

fn resolution(choice: ObjectBuilder) -> ObjectBuilder {
    let numbers = ArrayBuilder::new().items(u32::schema()).min_items(Some(1));
    choice.property("conflicts", numbers).property("etag", text())
}

/// The condition of a change.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it is read of the headers")]
struct IfMatch {
    /// The `ETag` of the item: the change is made only while it has that.
    #[param(rename = "If-Match", pattern = r#"^("[0-9]{1,9}"|\*)$"#, example = "\"3\"")]
    tag: Option<String>,
}

/// What was done with an item; durable.
#[derive(Serialize, ToSchema)]
struct ItemChanged {
    feed: FeedName,
    sync_id: SyncId,
    #[schema(value_type = u32)]
    updates: Count,
    tick: Tick,
    deleted: bool,
    conflicts: u32,
}

fn answer(status: StatusCode, feed: FeedName, acted: Acted) -> Response {
    let Acted { id: sync_id, updates, tick, deleted, conflicts } = acted;
    let changed = ItemChanged { feed, sync_id, updates, tick, deleted, conflicts };
    let mut response = answers::answer(status, &changed);
    let tag = format!("\"{}\"", updates.value());
    add(response.headers_mut(), header::ETAG, &tag);
    response
}

// The entry in a body: Atom, or a few fields as JSON.

/// The most categories of an entry.
const CATEGORIES_LIMIT: usize = 100;

/// An entry that was sent, and what is said of conflicts, which only JSON can.
type PostedEntry = (CheckedEntry, Option<bool>);

/// The entry in a body, by its media type: an Atom entry document (RFC 4287 section 2), or an object with a few fields.
/// `outline`: what the item says where it is an outline of a list.
fn parse_entry(
    headers: &HeaderMap,
    body: &[u8],
    outline: Option<&Markup>,
) -> Result<PostedEntry, Problem> {
    let declared = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = declared.and_then(|value| value.split(';').next()).unwrap_or_default();
    match &*essence.trim().to_ascii_lowercase() {
        "application/atom+xml" | "application/xml" | "text/xml" => {
            let unread = |error| Problem::new(StatusCode::BAD_REQUEST, format!("{error}"));
            let decoded = parse::decode(body, declared, &Limits::default()).map_err(unread)?;
            Ok((CheckedEntry::atom(&decoded.text)?, None))
        }
        "application/json" => of_fields(JsonFields(put::object(body)?), outline),
        _ => {
            let detail = "an item is sent as application/atom+xml, one Atom entry, or as \
                        application/json";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
        }
    }
}

/// An entry within JSON: Atom as a text, or an object with its fields.
fn in_json(value: Value, outline: Option<&Markup>) -> Result<CheckedEntry, Problem> {
    match value {
        Value::String(text) => Ok(CheckedEntry::atom(&text)?),
        Value::Object(object) => rewritten(of_fields(JsonFields(object), outline)?),
        _ => {
            let detail = "item is an Atom entry as a text, or an object with its fields";
            Err(Problem::parameter("item", detail))
        }
    }
}

/// An entry of fields; an outline stays one, with what the fields say.
fn of_fields(mut object: JsonFields, outline: Option<&Markup>) -> Result<PostedEntry, Problem> {
    let missing = || Problem::parameter("title", "title, what the item is called, is missing");
    let wanted = format!("a list of at most {CATEGORIES_LIMIT} texts");
    let categories = object.take("categories", &wanted, |value| {
        let list: Vec<String> = serde_json::from_value(value).ok()?;
        Some(list).filter(|list| list.len() <= CATEGORIES_LIMIT)
    })?;
    let noconflicts = object.flag("noconflicts")?;
    let fields = EntryFields {
        title: object.text("title")?.ok_or_else(missing)?,
        content: object.text("content")?,
        content_html: object.text("content_html")?,
        summary: object.text("summary")?,
        link: object.text("link")?,
        author: object.text("author")?,
        id: object.text("id")?,
        published: object.time("published")?,
        updated: object.time("updated")?,
        categories: categories.unwrap_or_default(),
    };
    object.finish()?;
    let Some(before) = outline else { return Ok((CheckedEntry::fields(&fields)?, noconflicts)) };
    let EntryFields { title, link, summary, .. } = fields.clone();
    if fields != (EntryFields { title, link, summary, ..EntryFields::default() }) {
        let detail = "the item is an outline of a list, which says a title, a link and a summary and \
                    nothing else that JSON has words for; send a whole Atom entry to make it one";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    }
    let EntryFields { title, link, summary, .. } = fields;
    let amendment = Amendment { title: Some(title), link, summary, ..Amendment::default() };
    Ok((CheckedEntry::amended(before, amendment)?, noconflicts))
}
