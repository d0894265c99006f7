//! `/subscribe?url=…`: the gateway's address of a site's feed, for readers. Only for addresses that the
//! configuration admits (`[[origin]]`, `[[allow]]`): of every other nothing is asked.

use super::forms::{self, SentForm};
use super::negotiate::prefers_html;
use super::operator::AddressPreview;
use super::origins::{AdmittedSite, NotMade};
use super::problem::{Problem, RETRY_SOON};
use super::query::Query;
use super::{REQUEST_BODY_LIMIT, SharedState, html};
use crate::model::FeedName;
use crate::render::ViewKind;
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use maud::{Markup, html};
use serde::Serialize;
use url::Url;

/// The longest address, in bytes.
const ADDRESS_LIMIT: usize = 2_000;
/// The parameter that names it.
const PARAMETER: &str = "url";

/// A feed that a reader may subscribe to here.
#[derive(Debug, Serialize)]
struct OfferedFeed {
    /// Its publisher's address.
    url: String,
    title: String,
    /// Its address here; `None`: it has one once it is subscribed to (a POST with its `url`).
    address: Option<String>,
}

/// `GET /subscribe`.
pub(super) async fn show(
    State(room): State<SharedState>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !room.origins.admits_any() {
        return Err(Problem::not_found("this gateway has no sites to subscribe to by address"));
    }
    let query = Query::read(query.as_deref().unwrap_or_default())?;
    let typed = query.get(PARAMETER)?.unwrap_or_default().trim().to_owned();
    let is_page = prefers_html(&headers);
    if typed.is_empty() {
        return match is_page {
            true => Ok(forms::page("Subscribe", &form(""))),
            false => Err(Problem::parameter(PARAMETER, "name the address of a site or a feed")),
        };
    }
    match (offered(&room, &typed).await, is_page) {
        (Ok(found), true) => Ok(forms::page("Subscribe", &offers(&typed, &found))),
        (Ok(found), false) => Ok(listed(&found)),
        (Err(problem), true) => Ok(refusal(&typed, &problem)),
        (Err(problem), false) => Err(problem),
    }
}

/// `POST /subscribe`: makes a feed of the gateway of an address, where there is none yet.
pub(super) async fn send(
    State(room): State<SharedState>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let is_page = prefers_html(&headers);
    let form = SentForm::of_program(&room, &headers, body, REQUEST_BODY_LIMIT)?;
    let typed = form.get(PARAMETER).trim();
    match (made(&room, typed).await, is_page) {
        (Ok(feed), true) => Ok(forms::page("Subscribe", &offers(typed, &[feed]))),
        (Ok(feed), false) => Ok(listed(&[feed])),
        (Err(problem), true) => Ok(refusal(typed, &problem)),
        (Err(problem), false) => Err(problem),
    }
}

fn listed(found: &[OfferedFeed]) -> Response {
    let fresh = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (fresh, Json(serde_json::json!({ "feeds": found }))).into_response()
}

/// The site that admits an address, and its address there.
fn admitted(room: &SharedState, typed: &str) -> Result<(AdmittedSite, Url), Problem> {
    if typed.len() > ADDRESS_LIMIT {
        let said = format!("an address has at most {ADDRESS_LIMIT} bytes");
        return Err(Problem::parameter(PARAMETER, said));
    }
    let typed = super::add::completed(typed);
    let url = Url::parse(&typed)
        .map_err(|_| Problem::parameter(PARAMETER, "that is no address of the web"))?;
    room.origins.admitted(&url).ok_or_else(|| {
        let said = "this gateway takes no feeds of that address; ask who runs it";
        Problem::new(StatusCode::FORBIDDEN, said).about(PARAMETER)
    })
}

/// The feeds at an address.
async fn offered(room: &SharedState, typed: &str) -> Result<Vec<OfferedFeed>, Problem> {
    let (site, url) = admitted(room, typed)?;
    // Who is known needs no request.
    let listing = room.directory.listing().await?;
    let known = |url: &str| {
        let is_it = |name: &FeedName| {
            listing.get(name).is_some_and(|it| it.url == url && it.standing.is_served())
        };
        let open = |name: &&FeedName| !listing.private().contains(*name) && is_it(name);
        listing.keys().find(open).cloned()
    };
    let address = |url: &str| {
        let here =
            known(url).map(|name| room.site.view(&name, ViewKind::Reader, room.site.dialect));
        here.or_else(|| room.origins.place_of(&Url::parse(url).ok()?))
    };
    if let Some(name) = known(url.as_str()) {
        let title = listing.get(&name).and_then(|it| it.enrolment.title.clone());
        let title = title.unwrap_or_else(|| name.to_string());
        let address = address(url.as_str());
        return Ok(vec![OfferedFeed { url: url.into(), title, address }]);
    }
    let _turn = room.origins.turn(&site).await?;
    let found = match room.operator.preview(url.as_str()).await? {
        AddressPreview::Feed(feed) => vec![(feed.url, feed.title)],
        AddressPreview::Page(found) => found.into_iter().map(|it| (it.url, it.title)).collect(),
    };
    let is_admitted =
        |url: &str| Url::parse(url).is_ok_and(|url| room.origins.admitted(&url).is_some());
    let offers = found.into_iter().filter(|(url, _)| is_admitted(url));
    let offers: Vec<OfferedFeed> =
        offers.map(|(url, title)| OfferedFeed { address: address(&url), url, title }).collect();
    match offers.is_empty() {
        true => Err(Problem::not_found("there is no feed at that address that this gateway takes")),
        false => Ok(offers),
    }
}

/// The feed of the gateway for an address, made where there is none yet.
async fn made(room: &SharedState, typed: &str) -> Result<OfferedFeed, Problem> {
    let mut found = offered(room, typed).await?;
    let feed = if found.len() == 1 { found.pop() } else { None };
    let several = "that address leads to several feeds; send the url of one of them";
    let mut feed = feed.ok_or_else(|| Problem::new(StatusCode::CONFLICT, several))?;
    if feed.address.is_some() {
        return Ok(feed);
    }
    let (site, url) = admitted(room, &feed.url)?;
    let making = room.origins.service()?.make_feed(&site, &url, None).await;
    let name = making.map_err(|error| match error {
        NotMade::NoFeed => Problem::not_found(error.to_string()),
        NotMade::Full { .. } => Problem::new(StatusCode::CONFLICT, error.to_string()),
        NotMade::Later { why, .. } => Problem::later(why, RETRY_SOON),
    })?;
    room.directory.changed();
    room.directory.listing().await?;
    feed.address = Some(room.site.view(&name, ViewKind::Reader, room.site.dialect));
    Ok(feed)
}

fn refusal(typed: &str, problem: &Problem) -> Response {
    let content = html! {
        p.note role="alert" { (html::text(problem.detail())) "." }
        (form(typed))
    };
    forms::refusal("Subscribe", &content, problem.status())
}

fn form(typed: &str) -> Markup {
    html! {
        p { "Type the address of a site or of its feed. You get the address of the same feed here." }
        form method="get" action="/subscribe" {
            p { label for="url" { "Address" } " "
                input #url name="url" type="text" inputmode="url" required value=(typed); " "
                button { "Look" } }
        }
    }
}

fn offers(typed: &str, found: &[OfferedFeed]) -> Markup {
    html! {
        ul { @for feed in found { li {
            (html::text(if feed.title.is_empty() { &feed.url } else { &feed.title }))
            @match &feed.address {
                Some(address) => { ": point your feed reader at " a href=(address) { (html::text(address)) } }
                None => {
                    form method="post" action="/subscribe" {
                        input type="hidden" name="url" value=(feed.url);
                        button { "Subscribe" }
                    }
                }
            }
        } } }
        (form(typed))
    }
}
