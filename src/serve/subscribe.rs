//! `/subscribe?url=…`: the gateway's address of a site's feed, for readers. Only for addresses that the
//! configuration admits (`[[origin]]`, `[[allow]]`): of every other nothing is asked.
//!
//! With a reader's token, the private feeds that the token opens are found as well. Without one a private feed does not
//! count: a public feed of the same upstream is made, as of any other address. An address that reaches the upstream of
//! an existing feed by redirects, or differs from it in the fragment alone, finds that feed.

use super::audience::challenged;
use super::forms::ProgramForm;
use super::operator::NOT_NOW;
use super::origins::{AdmittedSite, FeedTraits, FoundAddress};
use super::{
    Operator, Problem, Query, Reply, SharedState, Site, TypedQuery, Viewer, add, answers, html,
    prefers_html, shown,
};
use http::{HeaderMap, StatusCode};
use maud::{Markup, html};
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{Enrolment, FeedName, FeedRecord, Tick, Time};
use tidegate_format::render::{Container, ViewKind};
use tidegate_store::Select;
use url::Url;

/// Where it is.
pub(super) const PATH: &str = "/subscribe";
/// How long a look at an address waits for its turn.
const LOOK_WAIT: Duration = Duration::from_secs(5);
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
    /// What is known of it where it was looked at.
    #[serde(skip)]
    traits: Option<FeedTraits>,
}

/// `GET /subscribe`.
pub(super) async fn show(
    viewer: Viewer,
    TypedQuery(query): TypedQuery<Query>,
    headers: HeaderMap,
) -> Reply {
    if !viewer.app.origins.admits_any() {
        return Err(Problem::not_found("this gateway has no sites to subscribe to by address"));
    }
    let typed = query.get(PARAMETER)?.unwrap_or_default().trim();
    let is_page = prefers_html(&headers);
    match typed.is_empty() {
        true if is_page => Ok(viewer.form_page("Subscribe", &form(""))),
        true => Err(Problem::parameter(PARAMETER, "name the address of a site or a feed")),
        false => answer(&viewer, typed, is_page, find_offers(&viewer, typed).await),
    }
}

/// `POST /subscribe`: makes a feed of the gateway of an address, where there is none yet.
pub(super) async fn send(
    viewer: Viewer,
    headers: HeaderMap,
    ProgramForm(form): ProgramForm,
) -> Reply {
    if viewer.audience.is_guess {
        let detail = "the password opens nothing; send a reader's token, or none";
        // It may be that of a proxy: a browser is asked for another one only where readers are asked for theirs.
        return match viewer.app.config.server.challenge {
            true => Ok(challenged(detail)),
            false => Err(Problem::new(StatusCode::UNAUTHORIZED, detail)),
        };
    }
    let typed = form.get(PARAMETER).trim();
    let made = find_or_make_feed(&viewer, typed).await.map(|feed| vec![feed]);
    answer(&viewer, typed, prefers_html(&headers), made)
}

/// What was found, or why nothing was, as a page or as data.
fn answer(
    viewer: &Viewer,
    typed: &str,
    is_page: bool,
    found: Result<Vec<OfferedFeed>, Problem>,
) -> Reply {
    match found {
        Ok(found) if is_page => Ok(viewer.form_page("Subscribe", &offers(typed, &found))),
        Ok(found) => Ok(answers::answer(StatusCode::OK, &json!({ "feeds": found }))),
        Err(problem) if is_page => Ok(viewer.not_done("Subscribe", &problem, &form(typed))),
        Err(problem) => Err(problem),
    }
}

/// The site that admits an address, and its address there. Of one without a scheme the first that is admitted counts.
fn admitted(app: &SharedState, typed: &str) -> Result<(AdmittedSite, Url), Problem> {
    add::check_length(typed)?;
    let none = || Problem::parameter(PARAMETER, "that is no address of the web");
    let urls = add::candidates(typed).ok_or_else(none)?;
    urls.iter().find_map(|url| app.origins.admitted(url)).ok_or_else(|| {
        let detail = "this gateway takes no feeds of that address; ask who runs it";
        Problem::new(StatusCode::FORBIDDEN, detail).about(PARAMETER)
    })
}

/// The feeds at an address.
async fn find_offers(viewer: &Viewer, typed: &str) -> Result<Vec<OfferedFeed>, Problem> {
    let app = &viewer.app;
    let (site, url) = admitted(app, typed)?;
    if let Some(feed) = find_known(viewer, &site, &[&url]).await? {
        return Ok(vec![feed]);
    }
    let found = match discover_feed(viewer, &site, &url).await? {
        FoundAddress::Closed(why) => {
            return Err(Problem::new(StatusCode::FORBIDDEN, why.to_string()).about(PARAMETER));
        }
        FoundAddress::Feed(there) => {
            if let Some(feed) = find_known(viewer, &site, &[&there.end, &there.permanent]).await? {
                return Ok(vec![feed]);
            }
            if site.shows_key(&url) || site.shows_key(&there.permanent) {
                return Err(has_key());
            }
            if app.origins.place_of(&there.permanent).is_some()
                && !app.origins.is_for_all_requests(&there.permanent, &there.answer.headers)
            {
                let detail = "the site answers other requests there otherwise (Vary), and none of its pages names that \
                              address as a feed";
                return Err(Problem::new(StatusCode::FORBIDDEN, detail).about(PARAMETER));
            }
            vec![(there.permanent, there.title, Some(there.traits))]
        }
        FoundAddress::Page(links) => {
            links.into_iter().map(|(url, title)| (url, title, None)).collect()
        }
        FoundAddress::Nothing => Vec::new(),
    };
    let (is_front, mut offers) = (url == site.url, Vec::new());
    for (url, title, traits) in found {
        // What a page of the site names is announced, and what somebody typed is not.
        if traits.is_none() {
            app.origins.pages.announce(&url);
            if is_front {
                app.operator.demand.note_named(&url);
            }
        }
        let offer = match find_known(viewer, &site, &[&url]).await? {
            Some(feed) => feed,
            None => {
                let place = app.origins.place_of(&url);
                // Any other address becomes a feed only by a POST.
                let is_made =
                    traits.is_none_or(|it| !it.is_json) && app.origins.makes_feed_at(&url);
                let address = place.clone().filter(|_| is_made);
                OfferedFeed { url: place.unwrap_or_else(|| url.into()), title, address, traits }
            }
        };
        offers.push(offer);
    }
    match offers.is_empty() {
        true => Err(Problem::not_found("there is no feed at that address that this gateway takes")),
        false => Ok(offers),
    }
}

/// What a look at an address finds. Where it found nothing a moment ago, the site is not asked again.
async fn discover_feed(
    viewer: &Viewer,
    site: &AdmittedSite,
    url: &Url,
) -> Result<FoundAddress, Problem> {
    let app = &viewer.app;
    if app.origins.looks.is_missing(url) {
        return Ok(FoundAddress::Nothing);
    }
    let _permit = app.origins.looks.acquire_permit((&site.url, viewer.client), LOOK_WAIT).await?;
    let mut found = app.operator.discover(site, url, &|_| true).await;
    if found == FoundAddress::Page(Vec::new()) {
        let usual = app.operator.common_path_feed(site).await;
        found = usual.map_or(FoundAddress::Nothing, |feed| FoundAddress::Page(vec![feed]));
    }
    if found == FoundAddress::Nothing {
        app.origins.looks.note_missing(url);
    }
    Ok(found)
}

/// The feed of the gateway whose upstream is at one of these addresses, which needs no request. What a reader's token
/// opens goes before what is for everybody, and a private feed of those before others.
async fn find_known(
    Viewer { app, audience, .. }: &Viewer,
    site: &AdmittedSite,
    urls: &[&Url],
) -> Result<Option<OfferedFeed>, Problem> {
    let listing = app.directory.listing().await?;
    let is_private = |feed: &FeedName| listing.private.contains(feed);
    // A feed reader cannot sign in as the operator does.
    let is_own = |feed: &FeedName| !audience.is_operator() && listing.is_seen(feed, audience);
    let at = |record: &FeedRecord| urls.iter().find(|url| site.is_at(&record.url, url));
    let is_it = |record: &&Arc<FeedRecord>| {
        at(record).is_some()
            && record.standing.is_served()
            && (is_own(&record.name) || !is_private(&record.name))
    };
    let rank = |record: &&Arc<FeedRecord>| (!is_own(&record.name), !is_private(&record.name));
    let found = listing.values().filter(is_it).min_by_key(rank);
    let Some((record, url)) = found.and_then(|record| Some((record, at(record)?))) else {
        return Ok(None);
    };
    let site = if is_own(&record.name) { &audience.site } else { &app.site };
    let url = app.origins.place_of(url).unwrap_or_else(|| url.to_string());
    let address = Some(address(site, &record.name));
    let title = title(app, record).await?;
    let title = title.unwrap_or_else(|| shown(&url, record.options.secret));
    Ok(Some(OfferedFeed { url, title, address, traits: None }))
}

/// The title of a feed: the list of feeds learns of that of its last document a little later.
async fn title(app: &SharedState, record: &FeedRecord) -> Result<Option<String>, Problem> {
    if record.enrolment.title.is_some() {
        return Ok(record.enrolment.title.clone());
    }
    // No item has a later tick, so this reads the head of the feed without any item.
    let view = app.store.view(&record.name, Select::After(Tick::at(Time::MAX))).await?;
    Ok(view.and_then(|view| Enrolment::title(&view.skeleton.title)))
}

fn address(site: &Site, feed: &FeedName) -> String {
    let container = site.places.load().is_json(feed).then_some(Container::JsonFeed);
    site.view(feed, ViewKind::Reader, site.form(None, container))
}

/// The feed of the gateway for an address, made where there is none yet.
async fn find_or_make_feed(viewer: &Viewer, typed: &str) -> Result<OfferedFeed, Problem> {
    let app = &viewer.app;
    let (mut typed, mut title) = (typed.to_owned(), String::new());
    // Two looks at most: at a page, and at the feed that it names.
    for _ in 0..2 {
        let mut found = find_offers(viewer, &typed).await?;
        let feed = if found.len() == 1 { found.pop() } else { None };
        let several = "that address leads to several feeds; send the url of one of them";
        let mut feed = feed.ok_or_else(|| Problem::new(StatusCode::CONFLICT, several))?;
        if feed.address.is_some() {
            return Ok(feed);
        }
        let (site, url) = admitted(app, &feed.url)?;
        if site.shows_key(&url) {
            return Err(has_key());
        }
        // The page may call it otherwise.
        if feed.title.is_empty() {
            feed.title = title;
        }
        let Some(traits) = feed.traits else {
            (typed, title) = (feed.url, feed.title);
            continue;
        };
        let name = make(viewer, (site, url), traits).await?;
        feed.address = Some(address(&app.site, &name));
        if feed.title.is_empty() {
            feed.title = shown(&feed.url, None);
        }
        return Ok(feed);
    }
    Err(Problem::not_found("the address that the page names has no feed"))
}

/// Makes a feed of an address of a site.
async fn make(
    Viewer { app, audience, client, .. }: &Viewer,
    (site, url): (AdmittedSite, Url),
    traits: FeedTraits,
) -> Result<FeedName, Problem> {
    let client = *client;
    if !audience.is_operator() {
        app.origins.feed_shares.take_share(client, site.feeds)?;
    }
    app.operator.demand.note_client(url.as_str(), client, app.clock.now());
    let place = site.url.clone();
    let make = |operator: Arc<Operator>| async move {
        operator.make_feed(&site, &url, traits, None).await
    };
    let name = app.act(make).await.map_err(|problem| match problem.status {
        StatusCode::INTERNAL_SERVER_ERROR => Problem::later(NOT_NOW),
        _ => problem,
    })?;
    app.origins.looks.note_found(&place, client);
    Ok(name)
}

/// A feed that is made here is everybody's.
fn has_key() -> Problem {
    let detail = "the address has a key in it, so that a feed of it would not be for everybody; ask who runs this gateway \
                for a private feed of it";
    Problem::new(StatusCode::FORBIDDEN, detail).about(PARAMETER)
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
