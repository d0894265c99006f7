//! `/t/TOKEN/`: the feeds of one reader, with the addresses to give to a feed reader.

use crate::AppState;
use crate::audience::Audience;
use crate::extract::Viewer;
use crate::html::{ago, text};
use crate::problem::Problem;
use crate::readers::KnownReader;
use crate::subscribe;
use axum::response::Response;
use maud::{Markup, html};
use std::sync::Arc;
use tidegate_core::model::{FeedRecord, FeedStanding, FeedState};

/// How many feeds are listed; the list of subscriptions has all.
const SHOWN: usize = 1_000;

/// The page of a reader.
pub(super) async fn page(viewer: &Viewer, reader: &KnownReader) -> Result<Response, Problem> {
    let (room, audience) = (&*viewer.room, &viewer.audience);
    let listing = room.directory.listing().await?;
    let served = |record: &&Arc<FeedRecord>| record.standing != FeedStanding::Gone;
    let (mut rows, mut more) = (Vec::new(), 0_usize);
    for record in listing.seen_by(audience).filter(served) {
        if rows.len() >= SHOWN {
            more += 1;
            continue;
        }
        rows.push(row(room, audience, record, room.store.state(&record.name).await?.as_ref()));
    }
    let content = html! {
        p { "What " (reader.name()) " may read here. The addresses are a key to these feeds: whoever has one \
             can read the feed. Give each to your feed reader, or all of them as "
            a href="/subscriptions.opml" { "a list of subscriptions (OPML)" } "." }
        @if rows.is_empty() { p.empty { "There is no feed for this token yet." } }
        @else { div.wide { table {
            thead { tr { th { "Feed" } th { "Last change" } th { "Address" } } }
            tbody { @for row in &rows { (row) } }
        } } }
        @if more > 0 { p.quiet { (more) " more are in the list of subscriptions." } }
        @if room.origins.admits_any() { (super::bookmarklet(&audience.site().at(subscribe::PATH))) }
    };
    Ok(viewer.page("Your feeds", &content))
}

fn row(
    room: &AppState,
    audience: &Audience,
    record: &FeedRecord,
    state: Option<&FeedState>,
) -> Markup {
    let address = audience.site().at(&format!("/feeds/{}", record.name));
    html! { tr {
        td { a href={ "/feeds/" (record.name) "/about" } { (text(&record.shown_title())) } }
        td { @match state {
            Some(state) => (ago(state.updated_at, room.clock.now())),
            None => "not read yet",
        } }
        td { a href={ "/feeds/" (record.name) } { code { (address) } } }
    } }
}
