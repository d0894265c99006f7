//! `/subscriptions.opml`: every feed that is served, as OPML 2.0 with SSE 0.91 and a history of
//! subscriptions.
//!
//! A feed that was removed stays in the list as a tombstone (SSE 0.91 section 2.3), at its end: an
//! outline with its name and nothing else. It has no address, no type and no outline in it, so that
//! a program that knows no sharing finds nothing to subscribe to and no folder to make.
//!
//! Feeds of a list that was imported stand where they stood in it, under its names (`model::listed`).
//! Folders share nothing: they are there because of the feeds in them.
//!
//! The list with the upstreams' own addresses (`?upstream=1`) is another list: the same feed is
//! another subscription there, and its outline has another id.

mod write;

use super::conditional::http_date;
use super::{
    AppState, Audience, Client, DocumentKey, DocumentKind, LastModified, Listing, Problem, Query,
    ReadQuery, Rendition, SharedState, TypedQuery, Unchanged, Work, WorkKind, WorkRequest,
    make_on_thread,
};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use std::sync::Arc;
use tidegate_core::model::{Format, Revision, Time};
use tidegate_format::render::{Container, ViewKind};
use tidegate_store::StoreError;
use tokio::runtime::Handle;
use write::{ListedFeed, until, write};

const MEDIA_TYPE: &str = Container::Opml.media_type();

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct OpmlQuery {
    /// Whether it is the list with the upstreams' own addresses.
    upstream: bool,
    /// Only what changed at this time or later (section 2.1: `since` is inclusive).
    since: Option<Time>,
}

impl OpmlQuery {
    /// The list that has every feed, which no other is longer than.
    const ALL: Self = Self { upstream: false, since: None };

    /// Whether nothing is left out that did not change lately.
    pub(super) const fn is_whole(self) -> bool {
        self.since.is_none()
    }
}

impl ReadQuery for OpmlQuery {
    fn read(query: &str) -> Result<Self, Problem> {
        let query = Query::read(query)?;
        let upstream = query.parse("upstream", "upstream is 1 or 0", |value| match value {
            "1" | "true" => Some(true),
            "0" | "false" => Some(false),
            _ => None,
        })?;
        let wanted = "since is a date as in Fri, 06 Jan 2006 19:24:09 GMT or 2006-01-06T19:24:09Z";
        let since = query.parse("since", wanted, moment)?;
        Ok(Self { upstream: upstream.unwrap_or_default(), since })
    }
}

fn moment(text: &str) -> Option<Time> {
    let text = text.trim();
    Time::parse_rfc3339(text).ok().or_else(|| http_date(text))
}

/// All feeds as a list of subscriptions (OPML).
#[utoipa::path(get, path = "/subscriptions.opml", operation_id = "subscriptionList", responses(
    (status = 200, description = "The list.", body = String, content_type = "text/x-opml", headers(("ETag"))),
    Unchanged,
))]
pub(super) async fn document(
    State(app): State<SharedState>,
    (audience, client): (Audience, Client),
    TypedQuery(opml_query): TypedQuery<OpmlQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // Before the list is read: what changes meanwhile makes another one.
    let revision = Revision(app.index().await?.list_revision);
    let listing = app.directory.listing().await?;
    let feeds = u64::try_from(listing.len()).unwrap_or(u64::MAX);
    let work = Work::of_all(WorkKind::Subscriptions);
    let records_cost = opml_query == OpmlQuery::ALL && audience.is_public();
    let work_request = WorkRequest { records_cost, ..app.admission.request(client, work, feeds) };
    let kind = DocumentKind::Subscriptions(opml_query);
    let key = DocumentKey { audience: audience.key(), feed: None, kind };
    let make = || make(Arc::clone(&app), listing, audience, opml_query);
    let list = app.documents.get(key, Some(revision), work_request, make).await?;
    let list = list.encoded().ok_or(StoreError::Closed)?;
    // Several changes of one second have one date.
    Ok(list.answer(&headers, Some(LastModified::vague(list.shown)), None))
}

/// Makes a list on a blocking thread, since it goes through all feeds.
async fn make(
    app: SharedState,
    listing: Arc<Listing>,
    audience: Audience,
    opml_query: OpmlQuery,
) -> Result<Rendition, Problem> {
    let runtime = Handle::current();
    make_on_thread("the list of subscriptions", move || {
        // States are in memory, so that nothing is waited for.
        let entries =
            runtime.block_on(collect(&app, (&listing, &audience), opml_query.upstream))?;
        let query = if opml_query.upstream { "?upstream=1" } else { "" };
        let whole = audience.site.at(&format!("/subscriptions.opml{query}"));
        let text = write(&entries, opml_query, app.store.endpoint(), &whole);
        let shown = until(&entries).unwrap_or(Time::MIN).min(app.clock.now());
        Ok(Rendition::build_quickly(text, MEDIA_TYPE, shown)?.with([
            (header::CACHE_CONTROL, HeaderValue::from_static("public, no-cache")),
            (header::VARY, HeaderValue::from_static("Accept-Encoding")),
        ]))
    })
    .await
}

/// The feeds that a list has.
async fn collect(
    app: &AppState,
    (listing, audience): (&Listing, &Audience),
    upstream: bool,
) -> Result<Vec<ListedFeed>, StoreError> {
    let mut entries = Vec::with_capacity(listing.len());
    let site = &audience.site;
    for record in listing.seen_by(audience) {
        // A tombstone is one by its sharing markup only.
        if record.is_unlisted() && record.enrolment.history.is_empty() {
            continue;
        }
        // What has no upstream is in no list of them, and a masked address is of no use in one.
        if upstream && (!record.has_upstream() || record.shown().is_masked()) {
            continue;
        }
        let state = match record.is_unlisted() {
            true => None,
            false => app.store.state(&record.name).await?,
        };
        // Who subscribes to a feed wants one, whatever it is made of.
        let is_list = state.as_ref().is_some_and(|state| state.format == Format::Opml);
        let page = state.and_then(|state| state.site);
        let container = is_list.then_some(Container::Atom);
        let form = site.form(None, container);
        let (address, sup) = match upstream {
            true => (record.shown().text().to_owned(), None),
            false => {
                let address = site.view(&record.name, ViewKind::Reader, form);
                (address, site.announced_id(&record.name))
            }
        };
        entries.push(ListedFeed { record: Arc::clone(record), address, site: page, sup });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{at, endpoint, record};
    use tidegate_core::model::{EndpointId, FeedStanding, ListFolder, ListPlace, OutlineLabel};
    use tidegate_format::parse::opml::{OutlineKind, read};

    fn entry(name: &str, standing: FeedStanding, seconds: i64) -> ListedFeed {
        let mut record = record(name, standing);
        record.follow(None, at(seconds), &endpoint());
        record.enrolment.title = Some(format!("<{name}> & \"co\"\u{0}"));
        let (address, site) = (record.shown().text().to_owned(), "javascript:alert(1)".to_owned());
        ListedFeed { record: Arc::new(record), address, site: Some(site), sup: None }
    }

    fn asked(query: &str) -> OpmlQuery {
        OpmlQuery::read(query).ok().unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let entries = [
            entry("news", FeedStanding::Active, -50),
            entry("dead", FeedStanding::Gone, -40),
            entry("old", FeedStanding::Paused, -30),
        ];
        let text = write(&entries, asked(""), &endpoint(), "http://x/");
        assert!(!text.contains("secret") && !text.contains("javascript"));
        let list = read(&text).unwrap();
        assert!(list.problems.is_empty(), "{:?}", list.problems);
        let sharing = list.sharing.clone().unwrap();
        assert_eq!((sharing.version.as_str(), sharing.since), ("0.91", None));
        assert_eq!(sharing.until, Some(at(-30).rfc822()));
        assert_eq!(shape(&text), ["<news> & \"co\"", "<old> & \"co\"", "deadx"]);
        assert_eq!(list.outlines[0].kind(), OutlineKind::Feed("https://upstream.example/news.xml"));
        assert_eq!(list.outlines[2].kind(), OutlineKind::Text, "nothing to subscribe to");
        assert!(list.outlines[2].type_name().is_none());
        let sync = list.outlines[0].sync.clone().unwrap();
        let stamp = &sync.item.winner.history.topmost().stamp;
        assert_eq!(*stamp, entries[0].record.enrolment.history[0]);
        // With the upstreams' addresses, and at another gateway, it is another subscription.
        let other = EndpointId::own("there").unwrap();
        for (query, endpoint) in [("upstream=1", endpoint()), ("", other)] {
            let list = read(&write(&entries, asked(query), &endpoint, "http://x/")).unwrap();
            let id = &list.outlines[0].sync.as_ref().unwrap().item.winner.id;
            assert_ne!(*id, sync.item.winner.id, "{query}");
        }
        // Since is inclusive, and leads to the whole.
        let entries = [entry("a", FeedStanding::Active, -50), entry("b", FeedStanding::Gone, -40)];
        let query = format!("since={}", at(-40));
        let text = write(&entries, asked(&query), &endpoint(), "http://x/?a&b");
        let list = read(&text).unwrap();
        assert_eq!(list.outlines.len(), 1);
        assert!(list.outlines[0].is_deleted());
        assert!(text.contains("link=\"http://x/?a&amp;b\" type=\"complete\""));
        let rfc822 = asked("since=Fri%2C+06+Jan+2006+19%3A24%3A09+GMT");
        assert_eq!(rfc822.since, moment("2006-01-06T19:24:09Z"));
        // Feeds stand where the imported list has them.
        let mut twice = placed("c", &[(&[1], 0, "C"), (&[1, 1], 0, "C too"), (&[], 3, "C3")]);
        Arc::make_mut(&mut twice.record).enrolment.places.pop();
        let entries = [
            placed("a", &[(&[1, 1], 1, "<A>")]),
            placed("b", &[(&[], 0, "https://b.example/?key=0123456789abcdef0123456789abcdef")]),
            twice,
            placed("d", &[(&[1, 1, 1], 0, "in A")]),
            entry("e", FeedStanding::Active, -50),
        ];
        let text = write(&entries, asked(""), &endpoint(), "http://x/");
        let expected = "https://b.example/?***\n<F1>\n C\n <F1>\n  C too\n  <A>\n   in A\n\
                        <e> & \"co\"\ncx";
        assert_eq!(shape(&text).join("\n"), expected, "{text}");
        let list = read(&text).unwrap();
        assert_eq!(list.outlines[2].attribute("category"), Some("/x,y"));
        assert_eq!(list.outlines[2].site(), Some("https://page.example/"));
        let syncs = list.outlines.iter().filter_map(|outline| outline.sync.as_ref());
        let ids = syncs.map(|sync| sync.item.winner.id.as_str());
        let ids: std::collections::HashSet<_> = ids.collect();
        assert_eq!(ids.len(), 7, "each outline of a feed has an id of its own");
        // A part of the list has the folders around what changed.
        let since = asked(&format!("since={}", at(-90)));
        let since = write(&entries[..1], since, &endpoint(), "http://x/");
        assert_eq!(shape(&since), ["<F1>", " <F1>", "  <A>"]);
    }

    /// A feed in these places: the positions of its folders, its own, and what it is called there.
    fn placed(name: &str, places: &[(&[u32], u32, &str)]) -> ListedFeed {
        let mut entry = entry(name, FeedStanding::Active, -50);
        let label = |text: &str| {
            OutlineLabel::new(|name| match name {
                "text" => Some(text),
                "category" => Some("/x,y"),
                _ => None,
            })
        };
        let places = places.iter().map(|(folders, position, called)| ListPlace {
            number: 0,
            folders: folders
                .iter()
                .map(|at| ListFolder { position: *at, label: label(&format!("<F{at}>")) })
                .collect(),
            position: *position,
            label: label(called),
            site: Some("https://page.example/".to_owned()),
        });
        Arc::make_mut(&mut entry.record).enrolment.set_places(places.collect());
        entry
    }

    fn shape(text: &str) -> Vec<String> {
        let list = read(text).unwrap();
        assert!(list.problems.is_empty(), "{:?}", list.problems);
        let line = |outline: &tidegate_format::parse::opml::Outline| {
            let depth = list.folder(outline).len();
            let gone = if outline.is_deleted() { "x" } else { "" };
            format!("{}{}{gone}", " ".repeat(depth), outline.text().unwrap())
        };
        list.outlines.iter().map(line).collect()
    }
}
