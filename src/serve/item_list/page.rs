//! The HTML of a list of items.

use super::{ItemList, ItemListQuery, ListedItem};
use crate::html::{self, ago, text};
use crate::paging::{self, PagePlace};
use maud::{Markup, html};
use tidegate_core::model::{FeedName, Time};

/// The page without its frame.
pub(super) fn content(
    (feed, query): (&FeedName, &ItemListQuery),
    list: &ItemList,
    place: PagePlace,
    now: Time,
) -> Markup {
    html! {
        (html::trail(feed, None, "Items"))
        form.search role="search" action={ "/feeds/" (feed) "/items" } method="get" {
            label { span { "Search" }
                input type="search" name="q" value=(query.search) placeholder="Title or id"; }
            (paging::select("show", "Show", query.filter, |_| String::new()))
            button type="submit" { "Show" }
        }
        @if list.items.is_empty() {
            p.empty { "No item matches. " a href={ "/feeds/" (feed) "/items" } { "Show all items" } }
        } @else {
            table.items {
                thead { tr {
                    th scope="col" { "Item" } th scope="col" { "State" } th scope="col" { "First seen" }
                    th scope="col" { "Last version" } th.number scope="col" { "Versions" }
                } }
                tbody { @for item in &list.items { (row(feed, item, now)) } }
            }
        }
        (place.links("items", |page| query.address(feed, page)))
        p.quiet { "The same as data: this address with " code { "Accept: application/json" } "." }
    }
}

fn row(feed: &FeedName, item: &ListedItem, now: Time) -> Markup {
    let (word, since) = item.shown_standing;
    html! { tr {
        td {
            (html::item(feed, &item.sync_id, item.title.as_deref().unwrap_or_default()))
            @if let Some(id) = &item.former_id { div.quiet { "once " (text(id)) } }
        }
        td data-label="State" {
            span {
                span class={ "badge " (word) } { (word) }
                @if let Some(since) = since { " " span.quiet { (ago(since, now)) } }
                @if item.conflicts > 0 { " " span.pill.bad { "in conflict" } }
            }
        }
        td data-label="First seen" { (ago(item.first_seen, now)) }
        td data-label="Last version" { (ago(item.tick.time(), now)) }
        td.number data-label="Versions" { (item.updates.value()) }
    } }
}
