//! The HTML of a list of items.

use super::{ItemFilter, ItemList};
use crate::html::{self, ago, text};
use crate::items;
use maud::{Markup, html};
use tidegate_core::model::{LedgerEntry, Time};

/// The page without its frame.
pub(super) fn content(list: &ItemList<'_>, now: Time) -> Markup {
    let feed = &list.feed;
    html! {
        (html::trail(feed, None, "Items"))
        (search(list))
        @if list.items.is_empty() {
            p.empty { "No item matches. " a href={ "/feeds/" (feed) "/items" } { "Show all items" } }
        } @else {
            table.items {
                thead { tr {
                    th scope="col" { "Item" } th scope="col" { "State" } th scope="col" { "First seen" }
                    th scope="col" { "Last version" } th.number scope="col" { "Versions" }
                } }
                tbody { @for known in &list.items { (row(list, known, now)) } }
            }
        }
        (list.place.links("items", |page| list.query.address(feed, page)))
        p.quiet { "The same as data: this address with " code { "Accept: application/json" } "." }
    }
}

fn search(list: &ItemList<'_>) -> Markup {
    let (feed, query) = (&list.feed, &list.query);
    let label = |filter: ItemFilter| match filter {
        ItemFilter::All => "All items",
        ItemFilter::Current => "Current",
        ItemFilter::Missing => "Missing, to be confirmed",
        ItemFilter::Retired => "Scrolled off",
        ItemFilter::Deleted => "Deleted",
        ItemFilter::Edited => "Edited",
        ItemFilter::Renamed => "With a former id",
        ItemFilter::Conflicts => "In conflict",
    };
    html! {
        form.search role="search" action={ "/feeds/" (feed) "/items" } method="get" {
            label { span { "Search" }
                input type="search" name="q" value=(query.search) placeholder="Title or id"; }
            label { span { "Show" }
                select name="show" { @for filter in ItemFilter::ALL {
                    option value=(filter.name()) selected[filter == query.filter] { (label(filter)) }
                } } }
            button type="submit" { "Show" }
        }
    }
}

fn row(list: &ItemList<'_>, known: &LedgerEntry, now: Time) -> Markup {
    let (word, since) = items::shown_standing(known);
    let title = if known.is_redacted() { "" } else { &known.title };
    html! { tr {
        td {
            (html::item(list.feed, &known.id, title))
            @if !known.aliases.is_empty() && !known.is_redacted() {
                div.quiet { "once " (text(known.aliases.first().map_or("", String::as_str))) }
            }
        }
        td data-label="State" {
            span {
                span class={ "badge " (word) } { (word) }
                @if let Some(since) = since { " " span.quiet { (ago(since, now)) } }
                @if known.conflicts > 0 { " " span.pill.bad { "in conflict" } }
            }
        }
        td data-label="First seen" { (ago(known.first_seen, now)) }
        td data-label="Last version" { (ago(known.tick.time(), now)) }
        td.number data-label="Versions" { (known.updates.value()) }
    } }
}
