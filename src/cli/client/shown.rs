//! What a gateway answers, for people. What is missing in an answer is shown as nothing.

use crate::cli::table::{facts, table};
use serde_json::Value;
use tidegate_core::clock::{Clock, SystemClock};
use tidegate_core::model::{FeedName, Time, counted};
use tidegate_core::terminal::printable;
use tidegate_judge as judge;
use tidegate_status::PollGaps;

use Cell::{Flag, Moment, Number, Said, Text};

/// What of an answer stands in a cell, by its place.
#[derive(Clone, Copy)]
enum Cell {
    Text(&'static str),
    Number(&'static str),
    /// A moment to the minute.
    Moment(&'static str),
    /// A word where something is true.
    Flag(&'static str, &'static str),
    Said(fn(&Value) -> String),
}

impl Cell {
    fn of(self, answer: &Value) -> String {
        match self {
            Text(at) => text(answer, at).to_owned(),
            Number(at) => number(answer, at).to_string(),
            Moment(at) => moment(answer, at),
            Flag(name, word) => if answer[name] == true { word } else { "" }.to_owned(),
            Said(said) => said(answer),
        }
    }
}

/// What a table has columns for.
type Columns<'a> = [(&'a str, Cell)];

/// A line for each of a list; `none` where it is empty.
fn lines(of: &[Value], columns: &Columns<'_>, none: &str) -> String {
    let headings: Vec<&str> = columns.iter().map(|(heading, _)| *heading).collect();
    let row = |one: &Value| columns.iter().map(|(_, cell)| cell.of(one)).collect();
    let rows: Vec<Vec<String>> = of.iter().map(row).collect();
    if rows.is_empty() { none.to_owned() } else { table(&headings, &rows) }
}

/// What there is to say of one thing, each in a line.
fn about(of: &Value, named: &Columns<'_>) -> String {
    facts(&named.iter().map(|(name, cell)| (*name, cell.of(of))).collect::<Vec<_>>())
}

/// The most items and versions that are named of what waits.
const WAITING: usize = 5;
/// The most events that are named.
const EVENTS: usize = 10;

/// The text at a place.
pub(super) fn text<'a>(of: &'a Value, at: &str) -> &'a str {
    of.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

/// The list of a name.
pub(super) fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The same, fit for a terminal.
fn shown(of: &Value, at: &str) -> String {
    printable(text(of, at))
}

fn number(of: &Value, at: &str) -> u64 {
    of.pointer(at).and_then(Value::as_u64).unwrap_or(0)
}

/// A moment to the minute.
fn moment(of: &Value, at: &str) -> String {
    let exact = text(of, at);
    exact.get(..16).map(|minute| minute.replace('T', " ")).unwrap_or_default()
}

/// What there is to say first of a feed, in a word or two: of an active one its first problem, as the overview has it.
fn state(feed: &Value) -> String {
    let (standing, failures) = (text(feed, "/standing"), number(feed, "/failures"));
    let conflicts = number(feed, "/conflicts");
    match standing {
        "active" if feed["held"].is_string() => "held".to_owned(),
        "active" if failures > 0 => format!("failing ({failures})"),
        "active" if conflicts > 0 => counted(conflicts, "conflict"),
        "active" if has_gap(feed) => "items missed".to_owned(),
        "active" if !text(feed, "/hub/distrusted_until").is_empty() => {
            "hub not believed".to_owned()
        }
        "active" if number(feed, "/gathered/troubled_sources") > 0 => "incomplete".to_owned(),
        other => other.to_owned(),
    }
}

/// Whether items of a feed may have been missed lately, which makes it one with problems.
fn has_gap(feed: &Value) -> bool {
    let last = Time::parse_rfc3339(text(feed, "/gaps/last"));
    last.is_ok_and(|last| SystemClock.now().since(last) < PollGaps::LATELY)
}

/// The list of feeds.
pub(super) fn feeds(feeds: &[Value]) -> String {
    let columns: [(&str, Cell); 6] = [
        ("NAME", Text("/name")),
        (
            "STATE",
            Said(|feed| {
                let private = if feed["private"] == true { ", private" } else { "" };
                format!("{}{private}", state(feed))
            }),
        ),
        (">CURRENT", Number("/state/counts/current")),
        ("CHANGED (UTC)", Moment("/state/until")),
        ("NEXT POLL", Moment("/next_poll/at")),
        ("TITLE", Said(|feed| first(feed, ["/listed/title", "/url"]))),
    ];
    lines(feeds, &columns, "no feeds\n")
}

/// The first of two places that has a text.
fn first(of: &Value, at: [&str; 2]) -> String {
    let said = at.into_iter().map(|at| text(of, at)).find(|said| !said.is_empty());
    said.unwrap_or_default().to_owned()
}

/// The list that added a feed, or how many feeds follow it where it is one.
fn list_of(feed: &Value) -> String {
    let of = text(feed, "/list/name");
    match (of, text(feed, "/list/standing")) {
        ("", _) if feed["feeds_of_list"].is_null() => String::new(),
        ("", _) => {
            let count = |name: &str| number(feed, &format!("/feeds_of_list/{name}"));
            let (following, dropped) = (counted(count("following"), "feed"), count("dropped"));
            let not_taken = count("not_taken");
            format!("{following} of it here, {dropped} paused, {not_taken} not added")
        }
        (of, "dropped") => format!("{of}, which no longer has it"),
        (of, "own") => format!("{of}, which it follows no more"),
        (of, _) => of.to_owned(),
    }
}

/// Where readers find a feed; of a private one, for whom it is.
fn for_readers(feed: &Value) -> String {
    first(feed, ["/readers/words", "/views/reader"])
}

/// How often a document had nothing of the last one.
fn gaps(feed: &Value) -> String {
    match number(feed, "/gaps/count") {
        0 => String::new(),
        gaps => format!(
            "{gaps}, the last {}: a document had nothing of the one before, and items may have been missed",
            moment(feed, "/gaps/last")
        ),
    }
}

/// How many items a feed has, by their standing.
fn counts(feed: &Value) -> String {
    let count = |name: &str| number(feed, &format!("/state/counts/{name}"));
    let missing = match count("missing") {
        0 => String::new(),
        missing => format!("{missing} missing, "),
    };
    let (current, retired, deleted) = (count("current"), count("retired"), count("tombstones"));
    format!("{current} current, {missing}{retired} retired, {deleted} deleted")
}

/// What is known of a feed.
pub(super) fn feed(feed: &Value) -> String {
    let mut said = about(
        feed,
        &[
            ("name", Text("/name")),
            ("title", Text("/listed/title")),
            ("address", Text("/url")),
            ("list", Said(list_of)),
            ("state", Said(|feed| format!("{}: {}", state(feed), text(feed, "/why")))),
            ("fails since", Moment("/failing_since")),
            ("last read", Moment("/last_read")),
            (
                "last poll",
                Said(|feed| {
                    let last = list(feed, "last_polls").first();
                    last.map(|poll| format!("{} {}", moment(poll, "/at"), happened(poll)))
                        .unwrap_or_default()
                }),
            ),
            (
                "next poll",
                Said(|feed| match moment(feed, "/next_poll/at") {
                    next if next.is_empty() => next,
                    next => format!("{next}, {}", text(feed, "/next_poll/why")),
                }),
            ),
            ("changed", Moment("/state/until")),
            ("items", Said(counts)),
            (
                "conflicts",
                Said(|feed| match number(feed, "/conflicts") {
                    0 => String::new(),
                    conflicts => counted(conflicts, "item"),
                }),
            ),
            ("held", Text("/hold/words")),
            ("gaps", Said(gaps)),
            ("for readers", Said(for_readers)),
        ],
    );
    let pending = list(feed, "pending");
    for item in pending.iter().take(WAITING) {
        said.push_str(&format!("missing: {}: {}\n", shown(item, "/title"), shown(item, "/words")));
    }
    if pending.len() > WAITING {
        said.push_str(&format!("missing: and {} more\n", pending.len() - WAITING));
    }
    said.push_str(&events(list(feed, "events")));
    said
}

/// The last events of a feed.
fn events(events: &[Value]) -> String {
    let columns = [
        ("WHEN (UTC)", Moment("/at")),
        ("WHAT", Text("/kind")),
        ("TITLE", Text("/title")),
        ("WHY", Text("/reason")),
    ];
    match events.get(..EVENTS).unwrap_or(events) {
        [] => String::new(),
        last => format!("what happened:\n{}", lines(last, &columns, "")),
    }
}

/// What came of a poll, in words.
fn happened(poll: &Value) -> String {
    let error = text(poll, "/error");
    if !error.is_empty() {
        return format!("failed: {error}");
    }
    let kinds = ["created", "updated", "deleted", "undeleted", "retired", "returned", "rekeyed"];
    let mut said = text(poll, "/outcome").replace('_', " ");
    for kind in kinds {
        match number(poll, &format!("/{kind}")) {
            0 => {}
            count => said.push_str(&format!(", {count} {kind}")),
        }
    }
    said
}

/// What came of a poll that was asked for.
pub(super) fn poll(name: &FeedName, came: &Value) -> String {
    let mut said = happened(came);
    let held = judge::hold_reason(text(came, "/held"));
    if !held.is_empty() {
        said.push_str(&format!("; a document is held: {held}"));
    }
    format!("{name}: {}\n", printable(&said))
}

/// A page of items.
pub(super) fn items(page: &Value) -> String {
    let standing = Said(|item| match item["missing"] == true {
        true => "missing".to_owned(),
        false => text(item, "/standing").to_owned(),
    });
    let columns = [
        ("FIRST SEEN (UTC)", Moment("/first_seen")),
        ("STATE", standing),
        (">VERSION", Number("/updates")),
        ("TITLE", Text("/title")),
        ("SYNC ID", Text("/sync_id")),
    ];
    let mut said = lines(list(page, "items"), &columns, "no items\n");
    let (at, pages) = (number(page, "/page"), number(page, "/pages"));
    if pages > 1 {
        let all = counted(number(page, "/matches"), "item");
        said.push_str(&format!("page {at} of {pages}, {all}\n"));
    }
    said
}

/// Items with unresolved conflicts.
pub(super) fn conflicts(found: &Value) -> String {
    let columns = [
        (">CONFLICTS", Number("/count")),
        ("WINNER BY", Text("/winner/by")),
        ("TITLE", Text("/winner/title")),
        ("SYNC ID", Text("/sync_id")),
    ];
    let items = list(found, "conflicts");
    let mut said = lines(items, &columns, "no conflicts\n");
    if !found["next"].is_null() {
        said.push_str(&format!("{} of {} items\n", items.len(), number(found, "/count")));
    }
    said
}

/// A page with the feeds that it has.
pub(super) fn page(seen: &Value) -> String {
    let found = list(seen, "feeds");
    let address = shown(seen, "/url");
    if found.is_empty() {
        return format!(
            "{address} is a page without a feed: its links, its Link headers and the addresses where sites \
             usually have a feed were looked at"
        );
    }
    let columns = [("TITLE", Text("/title")), ("ADDRESS", Text("/url"))];
    format!("{address} is a page with these feeds:\n{}", lines(found, &columns, ""))
}

/// What is at an address.
pub(super) fn preview(seen: &Value) -> String {
    if seen["kind"] == "page" {
        return format!("{}\n", page(seen).trim_end());
    }
    let mut said = about(
        seen,
        &[
            ("address", Text("/url")),
            ("name", Text("/name")),
            ("title", Text("/title")),
            ("format", Text("/format")),
            ("entries", Number("/entries")),
        ],
    );
    for entry in list(seen, "first_entries") {
        said.push_str(&format!("  {}\n", shown(entry, "/title")));
    }
    for remark in list(seen, "remarks") {
        said.push_str(&format!("{}\n", printable(remark.as_str().unwrap_or_default())));
    }
    said
}

/// A feed that was added.
pub(super) fn added(feed: &Value) -> String {
    let readers = printable(&for_readers(feed));
    format!("added {}; readers are pointed at {readers}\n", shown(feed, "/name"))
}

/// All that is known of an item.
pub(super) fn item(item: &Value) -> String {
    let standing = Said(|item| match item["pending"].is_object() {
        true => "missing".to_owned(),
        false => text(item, "/standing").to_owned(),
    });
    let mut said = about(
        item,
        &[
            ("title", Text("/title")),
            ("sync id", Text("/sync_id")),
            ("published id", Text("/published_id")),
            ("publisher's id", Text("/native_id")),
            ("link", Text("/link")),
            ("state", standing),
            ("first seen", Moment("/first_seen")),
            ("pending", Text("/pending/words")),
        ],
    );
    let columns = [
        (">VERSION", Number("/updates")),
        ("WHEN (UTC)", Moment("/when")),
        ("", Flag("deleted", "deleted")),
        ("TITLE", Text("/title")),
        ("WHY", Text("/reason")),
    ];
    said.push_str(&lines(list(item, "versions"), &columns, ""));
    said
}

/// What came of conflicts.
pub(super) fn resolved(done: &Value) -> String {
    let left = match number(done, "/conflicts") {
        0 => "no conflict is left".to_owned(),
        left => format!("{} left", counted(left, "conflict")),
    };
    format!("{}: version {}, {left}\n", shown(done, "/sync_id"), number(done, "/updates"))
}

/// What came of a redaction.
pub(super) fn redacted(done: &Value) -> String {
    format!("{}: its text is gone; {}\n", shown(done, "/sync_id"), shown(done, "/left"))
}

/// How the deliveries of a webhook go.
pub(super) fn webhook(answer: &Value) -> String {
    if answer["webhook"].is_null() {
        return "no webhook\n".to_owned();
    }
    let mut said = about(
        answer,
        &[
            ("host", Text("/webhook/callback_host")),
            ("state", Text("/webhook/state")),
            ("deliveries", Number("/webhook/deliveries")),
            ("last", Moment("/webhook/last_delivery")),
            ("failures", Number("/webhook/failures")),
            ("trouble", Text("/webhook/trouble")),
            ("next attempt", Moment("/webhook/next_attempt")),
        ],
    );
    let secret = text(answer, "/secret");
    if !secret.is_empty() {
        said.push_str(&format!("secret, which is not shown again: {}\n", printable(secret)));
    }
    said
}

/// Who subscribed to the hub.
pub(super) fn subscriptions(answer: &Value) -> String {
    let columns = [
        ("FEED", Text("/feed")),
        ("BY", Text("/manner")),
        ("HOST", Text("/callback_host")),
        ("STATE", Text("/state")),
        ("UNTIL (UTC)", Moment("/lease_ends")),
        (">DELIVERED", Number("/deliveries")),
        (">FAILED", Number("/failures")),
        ("TROUBLE", Text("/trouble")),
    ];
    lines(list(answer, "subscriptions"), &columns, "no subscriptions\n")
}

/// Who may read private feeds.
pub(super) fn readers(answer: &Value) -> String {
    fn names(reader: &Value, of: &str) -> String {
        list(reader, of).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
    }
    let columns = [
        ("NAME", Text("/name")),
        (">COUNT", Number("/count")),
        ("", Flag("all_private", "all private")),
        ("FEEDS", Said(|reader| names(reader, "feeds"))),
        (
            "",
            Said(|reader| match names(reader, "missing") {
                missing if missing.is_empty() => missing,
                missing => format!("not here: {missing}"),
            }),
        ),
    ];
    lines(list(answer, "readers"), &columns, "no readers\n")
}
