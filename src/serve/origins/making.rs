//! Looks at addresses of sites, and the feeds that are made of what is there, while whoever asked has an answer already:
//! how many the requests of one client make, and those whose polls fail while the site answers its readers.

use super::admitted::{AdmittedSite, FeedTraits, FoundAddress};
use super::looks::{Look, NOTHING_AGE, PAGE_AGE};
use super::pages::document_or_page;
use super::pass::send;
use super::{OriginRequest, pages};
use crate::{Client, Problem, Rate, RateLimiter, SharedState};
use axum::body::Body;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidegate_core::model::FeedName;
use tidegate_net::origin::{PassMode, WholeAnswer, is_by_program, may_be_feed, says_page};
use url::Url;

/// Begins to look at an address, where a feed may be there and nothing is known of it. `false`: its client has had its
/// share of new feeds.
pub(super) fn begin_look(
    app: &SharedState,
    origin_request: &OriginRequest,
    client: Client,
) -> bool {
    let origins = &app.origins;
    // One that is known and has no document yet is polled already.
    if app.site.places.load().feed_of(&origin_request.url).is_some()
        || !origins.makes_feed_at(&origin_request.url)
    {
        return true;
    }
    if !origins.feed_shares.has_share(client, origin_request.site.config().feeds) {
        return false;
    }
    let Some(look) = origins.looks.begin(&origin_request.url) else { return true };
    let (app, origin_request) = (Arc::clone(app), origin_request.clone());
    tokio::spawn(async move {
        let site = AdmittedSite::of_origin(&origin_request.site);
        // Others wait for a look. One that would have to wait for its turn is left to a later request.
        let permit = app.origins.looks.acquire_permit((&site.url, client), Duration::ZERO).await;
        if permit.is_ok() {
            make_of_look(&app, (&site, &origin_request), &look, client).await;
        }
        drop((look, permit));
    });
    true
}

/// Whether an answer may be a feed. Most JSON is none, so that it has to be announced as one.
pub(super) fn may_be(
    app: &SharedState,
    url: &Url,
    status: StatusCode,
    headers: &HeaderMap,
) -> bool {
    let is_json = || headers.get(header::CONTENT_TYPE).is_some_and(is_plain_json);
    may_be_feed(status, headers)
        && app.origins.is_for_all_requests(url, headers)
        && (!is_json() || app.origins.pages.is_announced(url))
}

/// Whether a media type is that of any JSON.
fn is_plain_json(value: &HeaderValue) -> bool {
    let kind: Option<&[u8]> = value.as_bytes().split(|byte| b"; ".contains(byte)).next();
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/json"))
}

/// Looks at an address as a poll would, with nothing of the client, and makes a feed of what is there.
async fn make_of_look(
    app: &SharedState,
    (site, origin_request): (&AdmittedSite, &OriginRequest),
    look: &Look,
    client: Client,
) {
    let (looks, url) = (&app.origins.looks, &origin_request.url);
    let of_feed = |headers: &HeaderMap| may_be(app, url, StatusCode::OK, headers);
    // That of a document is held as long as the document is.
    let permit = OnceLock::new();
    let is_read = |headers: &HeaderMap| match of_feed(headers) {
        true => looks.documents.try_acquire().is_ok_and(|held| permit.set(held).is_ok()),
        false => says_page(headers),
    };
    match app.operator.discover(site, url, &is_read).await {
        FoundAddress::Feed(there) if there.end != *url => {
            let is_permanent = there.permanent == there.end;
            let status =
                if is_permanent { StatusCode::MOVED_PERMANENTLY } else { StatusCode::FOUND };
            match origin_request.site.public_address(&there.end) {
                Some(here) => looks.note(url, Some((status, here)), PAGE_AGE),
                None => looks.note(url, None, NOTHING_AGE),
            }
        }
        FoundAddress::Feed(there) if of_feed(&there.answer.headers) => {
            // If another origin has the same address, a poll names that one to the site, so this answer is not a
            // poll's.
            let is_polled_so = app.directory.rules.is_polled_as(&origin_request.site, url);
            let answer = is_polled_so.then_some(there.answer);
            let found = (there.traits, answer);
            if make_feed(app, look, (site, url), found, client).await {
                looks.note_found(&site.url, client);
            }
        }
        FoundAddress::Page(links) => {
            // What is no page, or broken, names none either.
            looks.note(url, None, if links.is_empty() { NOTHING_AGE } else { PAGE_AGE });
            pages::announce(app, origin_request, links.into_iter().map(|(url, _)| url)).await;
        }
        FoundAddress::Feed(_) | FoundAddress::Closed(_) | FoundAddress::Nothing => {
            looks.note(url, None, NOTHING_AGE);
        }
    }
}

/// Makes a feed that was found. Its first document is asked for where it is not
/// given. Whether it has one now.
async fn make_feed(
    app: &SharedState,
    look: &Look,
    (site, url): (&AdmittedSite, &Url),
    (traits, document): (FeedTraits, Option<WholeAnswer>),
    client: Client,
) -> bool {
    // Another gateway may have made it.
    let is_new = app.site.places.load().feed_of(url).is_none();
    if is_new && app.origins.feed_shares.take_share(client, site.feeds).is_err() {
        return false;
    }
    if traits.keeps_ids {
        look.release_others();
    }
    let made = app.operator.make_feed(site, url, traits, document).await.is_ok();
    // Whoever waits for it finds its place then.
    let _ = app.directory.listing().await;
    if !made {
        app.origins.looks.note(url, None, NOTHING_AGE);
    }
    made
}

/// Has a feed whose polls fail read what the site answers to its reader: asked as by a poll, but in the name that the reader's
/// program gives itself. `None` where it does not: polls do not fail, another gateway polls the feed, or the site was
/// asked a moment ago.
pub(super) async fn read_again(
    app: &SharedState,
    origin_request: &OriginRequest,
    name: &FeedName,
    request: &Parts,
) -> Option<()> {
    let program = request.headers.get(header::USER_AGENT)?;
    let is_asked = origin_request.site.config().passes == PassMode::Through
        && request.method == Method::GET
        && app.directory.rules.is_polled_as(&origin_request.site, &origin_request.url)
        && app.origins.looks.take_poll_check(&origin_request.url);
    let polled = app.operator.poller.summary(name).filter(|_| is_asked)?;
    // Without a next poll it is being polled, or was stopped because the gateway crashed on its documents.
    if polled.failures == 0 || polled.next_poll.is_none() {
        return None;
    }
    let feeds = app.directory.listing().await.ok()?;
    let record = feeds.get(name)?;
    // Any other is polled as the operator says, and takes no answer of a reader's.
    if record.on_demand.is_none()
        || record.access.is_some()
        || record.url != origin_request.url.as_str()
    {
        return None;
    }
    let mut question = request.clone();
    question.headers = app.operator.poll_headers();
    question.headers.insert(header::USER_AGENT, program.clone());
    let answer = send(app, origin_request, &question, Body::empty()).await.ok()?;
    if !may_be(app, &origin_request.url, answer.status, &answer.headers)
        || is_by_program(&answer.headers)
    {
        return None;
    }
    let _permit = app.origins.looks.documents.try_acquire().ok()?;
    let whole = document_or_page(&origin_request.url, answer).await?;
    app.operator.read_again(name, &origin_request.url, whole).await;
    Some(())
}

/// New feeds an hour that the requests of one client may make: half of those that the site may have, within these
/// bounds.
const HOURLY_FEEDS_MAX: u32 = 500;
const HOURLY_FEEDS_MIN: u32 = 20;
/// The burst of that rate: one in this many of the hourly number, and at least [`HOURLY_FEEDS_MIN`].
const BURST_DIVISOR: u32 = 10;
const HOUR: Duration = Duration::from_secs(3600);
/// How often the log names one client.
const LOG_RATE: Rate = Rate { burst: 1, each: HOUR };

/// How fast clients make feeds, and what the log has told.
#[derive(Default)]
pub(crate) struct NewFeedShares {
    made: RateLimiter<Client>,
    log_limiter: RateLimiter<Client>,
}

impl NewFeedShares {
    /// Whether the requests of a client may make a feed now, at a site that may have so many `feeds`.
    pub(super) fn has_share(&self, client: Client, feeds: u32) -> bool {
        client == Client::Own || self.made.wait(&client.network(), share(feeds)).is_zero()
    }

    /// Takes one feed of a client's share.
    pub(crate) fn take_share(&self, client: Client, feeds: u32) -> Result<(), Problem> {
        let client = client.network();
        let Client::At(address) = client else { return Ok(()) };
        let taken = self.made.take(&client, share(feeds));
        if taken.is_ok()
            && !self.has_share(client, feeds)
            && self.log_limiter.take(&client, LOG_RATE).is_ok()
        {
            tracing::info!(
                client = %address,
                "the requests of a client made as many feeds as they may at once, and make more slowly"
            );
        }
        taken.map_err(|wait| {
            let detail = "requests of this client made as many feeds as they may for now";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).after(wait)
        })
    }
}

/// The rate of new feeds for one client at a site that may have `feeds`: others get some as well.
fn share(feeds: u32) -> Rate {
    let an_hour = (feeds / 2).clamp(HOURLY_FEEDS_MIN, HOURLY_FEEDS_MAX);
    Rate { burst: HOURLY_FEEDS_MIN.max(an_hour / BURST_DIVISOR), each: HOUR / an_hour }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::client;

    #[tokio::test(start_paused = true)]
    async fn a_client_makes_a_few_feeds_and_then_slowly_half_of_a_sites() {
        let shares = NewFeedShares::default();
        for (feeds, at_once, an_hour) in [(1, 20, 20), (1_000, 50, 500), (1_000_000, 50, 500)] {
            let shares = NewFeedShares::default();
            let make = || {
                let all = std::iter::from_fn(|| shares.take_share(client(1), feeds).ok());
                all.take(2 * 500).count()
            };
            assert_eq!(make(), at_once, "{feeds}");
            let mut later = 0;
            for _ in 0..60 {
                tokio::time::advance(HOUR / 60).await;
                later += make();
            }
            assert!(later.abs_diff(an_hour) <= 1, "{feeds}: {later}");
        }
        assert!((0..20).all(|_| shares.take_share(client(1), 100).is_ok()));
        assert!(!shares.has_share(client(1), 100) && shares.take_share(client(1), 100).is_err());
        assert!(shares.has_share(client(2), 100) && shares.take_share(client(2), 100).is_ok());
        // What the gateway does by itself is nobody's share.
        assert!((0..=HOURLY_FEEDS_MAX).all(|_| shares.take_share(Client::Own, 100).is_ok()));
        assert!(shares.has_share(Client::Own, 100));
    }
}
