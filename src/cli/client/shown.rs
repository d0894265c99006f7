//! What a gateway answers, for people. What is missing in an answer is shown as nothing.

use crate::cli::table::{facts, table};
use serde_json::Value;
use tidegate_core::model::{FeedName, counted};
use tidegate_core::terminal::printable;
use tidegate_judge as judge;

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

fn number(of: &Value, at: &str) -> u64 {
    of.pointer(at).and_then(Value::as_u64).unwrap_or(0)
}

/// A moment to the minute.
fn moment(of: &Value, at: &str) -> String {
    let exact = text(of, at);
    exact.get(..16).map(|minute| minute.replace('T', " ")).unwrap_or_default()
}

/// What there is to say first of a feed, in a word or two.
fn state(feed: &Value) -> String {
    let (standing, failures) = (text(feed, "/standing"), number(feed, "/failures"));
    let conflicts = number(feed, "/conflicts");
    match standing {
        "active" if feed["held"].is_string() => "held".to_owned(),
        "active" if failures > 0 => format!("failing ({failures})"),
        "active" if conflicts > 0 => counted(conflicts, "conflict"),
        other => other.to_owned(),
    }
}

/// A feed in the list of feeds.
pub(super) fn feed_row(feed: &Value) -> Vec<String> {
    let private = if feed["private"] == true { ", private" } else { "" };
    let title = [text(feed, "/listed/title"), text(feed, "/url")];
    vec![
        text(feed, "/name").to_owned(),
        format!("{}{private}", state(feed)),
        number(feed, "/state/counts/current").to_string(),
        moment(feed, "/state/until"),
        moment(feed, "/next_poll/at"),
        title.into_iter().find(|title| !title.is_empty()).unwrap_or_default().to_owned(),
    ]
}

/// The list of feeds.
pub(super) fn feeds(rows: &[Vec<String>]) -> String {
    match rows.is_empty() {
        true => "no feeds\n".to_owned(),
        false => table(&["NAME", "STATE", ">CURRENT", "CHANGED (UTC)", "NEXT POLL", "TITLE"], rows),
    }
}

/// The list that added a feed, or how many feeds follow it where it is one.
fn list_of(feed: &Value) -> String {
    let of = text(feed, "/list/name");
    match (of, text(feed, "/list/standing")) {
        ("", _) if feed["feeds_of_list"].is_null() => String::new(),
        ("", _) => {
            let count = |name: &str| number(feed, &format!("/feeds_of_list/{name}"));
            let following = counted(count("following"), "feed");
            format!(
                "{following} of it here, {} paused, {} not added",
                count("dropped"),
                count("not_taken")
            )
        }
        (of, "dropped") => format!("{of}, which no longer has it"),
        (of, "own") => format!("{of}, which it follows no more"),
        (of, _) => of.to_owned(),
    }
}

/// Where readers find a feed; of a private one, for whom it is.
fn for_readers(feed: &Value) -> String {
    let said = [text(feed, "/readers/words"), text(feed, "/views/reader")];
    said.into_iter().find(|said| !said.is_empty()).unwrap_or_default().to_owned()
}

/// What is known of a feed.
pub(super) fn feed(feed: &Value) -> String {
    let count = |name: &str| number(feed, &format!("/state/counts/{name}"));
    let missing = match count("missing") {
        0 => String::new(),
        missing => format!("{missing} missing, "),
    };
    let items = format!(
        "{} current, {missing}{} retired, {} deleted",
        count("current"),
        count("retired"),
        count("tombstones")
    );
    let last = list(feed, "last_polls").first();
    let last = last.map(|poll| format!("{} {}", moment(poll, "/at"), happened(poll)));
    let next = moment(feed, "/next_poll/at");
    let next =
        if next.is_empty() { next } else { format!("{next}, {}", text(feed, "/next_poll/why")) };
    let conflicts = number(feed, "/conflicts");
    let conflicts = if conflicts > 0 { counted(conflicts, "item") } else { String::new() };
    let mut said = facts(&[
        ("name", text(feed, "/name").to_owned()),
        ("title", text(feed, "/listed/title").to_owned()),
        ("address", text(feed, "/url").to_owned()),
        ("list", list_of(feed)),
        ("state", format!("{}: {}", state(feed), text(feed, "/why"))),
        ("fails since", moment(feed, "/failing_since")),
        ("last read", moment(feed, "/last_read")),
        ("last poll", last.unwrap_or_default()),
        ("next poll", next),
        ("changed", moment(feed, "/state/until")),
        ("items", items),
        ("conflicts", conflicts),
        ("held", text(feed, "/hold/words").to_owned()),
        ("for readers", for_readers(feed)),
    ]);
    let pending = list(feed, "pending");
    for item in pending.iter().take(WAITING) {
        said.push_str(&format!(
            "missing: {}: {}\n",
            printable(text(item, "/title")),
            printable(text(item, "/words"))
        ));
    }
    if pending.len() > WAITING {
        said.push_str(&format!("missing: and {} more\n", pending.len() - WAITING));
    }
    said.push_str(&events(list(feed, "events")));
    said
}

/// The last events of a feed.
fn events(events: &[Value]) -> String {
    let row = |event: &Value| {
        vec![
            moment(event, "/at"),
            text(event, "/kind").to_owned(),
            text(event, "/title").to_owned(),
            text(event, "/reason").to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = events.iter().take(EVENTS).map(row).collect();
    match rows.is_empty() {
        true => String::new(),
        false => {
            format!("what happened:\n{}", table(&["WHEN (UTC)", "WHAT", "TITLE", "WHY"], &rows))
        }
    }
}

/// What came of a poll, in words.
fn happened(poll: &Value) -> String {
    let error = text(poll, "/error");
    if !error.is_empty() {
        return format!("failed: {error}");
    }
    let kinds = ["created", "updated", "deleted", "undeleted", "retired", "returned", "rekeyed"];
    let happened = kinds.iter().filter_map(|kind| {
        let count = number(poll, &format!("/{kind}"));
        (count > 0).then(|| format!("{count} {kind}"))
    });
    let outcome = text(poll, "/outcome").replace('_', " ");
    let parts: Vec<String> = std::iter::once(outcome).chain(happened).collect();
    parts.join(", ")
}

/// What came of a poll that was asked for.
pub(super) fn poll(name: &FeedName, came: &Value) -> String {
    let held = judge::hold_reason(text(came, "/held"));
    let held =
        if held.is_empty() { String::new() } else { format!("; a document is held: {held}") };
    format!("{name}: {}\n", printable(&format!("{}{held}", happened(came))))
}

/// A page of items.
pub(super) fn items(page: &Value) -> String {
    let row = |item: &Value| {
        let is_missing = item["missing"] == true;
        let standing = if is_missing { "missing" } else { text(item, "/standing") };
        vec![
            moment(item, "/first_seen"),
            standing.to_owned(),
            number(item, "/updates").to_string(),
            text(item, "/title").to_owned(),
            text(item, "/sync_id").to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = list(page, "items").iter().map(row).collect();
    if rows.is_empty() {
        return "no items\n".to_owned();
    }
    let mut said = table(&["FIRST SEEN (UTC)", "STATE", ">VERSION", "TITLE", "SYNC ID"], &rows);
    let (at, pages) = (number(page, "/page"), number(page, "/pages"));
    if pages > 1 {
        let all = counted(number(page, "/matches"), "item");
        said.push_str(&format!("page {at} of {pages}, {all}\n"));
    }
    said
}

/// Items with unresolved conflicts.
pub(super) fn conflicts(found: &Value) -> String {
    let row = |item: &Value| {
        vec![
            number(item, "/count").to_string(),
            text(item, "/winner/by").to_owned(),
            text(item, "/winner/title").to_owned(),
            text(item, "/sync_id").to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = list(found, "conflicts").iter().map(row).collect();
    if rows.is_empty() {
        return "no conflicts\n".to_owned();
    }
    let mut said = table(&[">CONFLICTS", "WINNER BY", "TITLE", "SYNC ID"], &rows);
    let all = number(found, "/count");
    if !found["next"].is_null() {
        said.push_str(&format!("{} of {all} items\n", rows.len()));
    }
    said
}

/// A page with the feeds that it has.
pub(super) fn page(seen: &Value) -> String {
    let found = list(seen, "feeds");
    let address = printable(text(seen, "/url"));
    if found.is_empty() {
        return format!(
            "{address} is a page without a feed: its links, its Link headers and the addresses where sites \
             usually have a feed were looked at"
        );
    }
    let row = |feed: &Value| vec![text(feed, "/title").to_owned(), text(feed, "/url").to_owned()];
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    format!("{address} is a page with these feeds:\n{}", table(&["TITLE", "ADDRESS"], &rows))
}

/// What is at an address.
pub(super) fn preview(seen: &Value) -> String {
    if seen["kind"] == "page" {
        return format!("{}\n", page(seen).trim_end());
    }
    let mut said = facts(&[
        ("address", text(seen, "/url").to_owned()),
        ("name", text(seen, "/name").to_owned()),
        ("title", text(seen, "/title").to_owned()),
        ("format", text(seen, "/format").to_owned()),
        ("entries", number(seen, "/entries").to_string()),
    ]);
    for entry in list(seen, "first_entries") {
        said.push_str(&format!("  {}\n", printable(text(entry, "/title"))));
    }
    for remark in list(seen, "remarks") {
        said.push_str(&format!("{}\n", printable(remark.as_str().unwrap_or_default())));
    }
    said
}

/// A feed that was added.
pub(super) fn added(feed: &Value) -> String {
    format!(
        "added {}; readers are pointed at {}\n",
        printable(text(feed, "/name")),
        printable(&for_readers(feed))
    )
}

/// All that is known of an item.
pub(super) fn item(item: &Value) -> String {
    let published = [text(item, "/published_id"), text(item, "/native_id")];
    let standing = if item["pending"].is_object() { "missing" } else { text(item, "/standing") };
    let mut said = facts(&[
        ("title", text(item, "/title").to_owned()),
        ("sync id", text(item, "/sync_id").to_owned()),
        ("published id", published[0].to_owned()),
        ("publisher's id", published[1].to_owned()),
        ("link", text(item, "/link").to_owned()),
        ("state", standing.to_owned()),
        ("first seen", moment(item, "/first_seen")),
        ("pending", text(item, "/pending/words").to_owned()),
    ]);
    let row = |version: &Value| {
        let deleted = if version["deleted"] == true { "deleted" } else { "" };
        vec![
            number(version, "/updates").to_string(),
            moment(version, "/when"),
            deleted.to_owned(),
            text(version, "/title").to_owned(),
            text(version, "/reason").to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = list(item, "versions").iter().map(row).collect();
    if !rows.is_empty() {
        said.push_str(&table(&[">VERSION", "WHEN (UTC)", "", "TITLE", "WHY"], &rows));
    }
    said
}

/// What came of conflicts.
pub(super) fn resolved(done: &Value) -> String {
    let left = match number(done, "/conflicts") {
        0 => "no conflict is left".to_owned(),
        left => format!("{} left", counted(left, "conflict")),
    };
    format!("{}: version {}, {left}\n", printable(text(done, "/sync_id")), number(done, "/updates"))
}

/// What came of a redaction.
pub(super) fn redacted(done: &Value) -> String {
    format!(
        "{}: its text is gone; {}\n",
        printable(text(done, "/sync_id")),
        printable(text(done, "/left"))
    )
}

/// How the deliveries of a webhook go.
pub(super) fn webhook(answer: &Value) -> String {
    if answer["webhook"].is_null() {
        return "no webhook\n".to_owned();
    }
    let at = |name: &str| format!("/webhook/{name}");
    let mut said = facts(&[
        ("host", text(answer, &at("callback_host")).to_owned()),
        ("state", text(answer, &at("state")).to_owned()),
        ("deliveries", number(answer, &at("deliveries")).to_string()),
        ("last", moment(answer, &at("last_delivery"))),
        ("failures", number(answer, &at("failures")).to_string()),
        ("trouble", text(answer, &at("trouble")).to_owned()),
        ("next attempt", moment(answer, &at("next_attempt"))),
    ]);
    let secret = text(answer, "/secret");
    if !secret.is_empty() {
        said.push_str(&format!("secret, which is not shown again: {}\n", printable(secret)));
    }
    said
}

/// Who subscribed to the hub.
pub(super) fn subscriptions(answer: &Value) -> String {
    let row = |one: &Value| {
        vec![
            text(one, "/feed").to_owned(),
            text(one, "/manner").to_owned(),
            text(one, "/callback_host").to_owned(),
            text(one, "/state").to_owned(),
            moment(one, "/lease_ends"),
            number(one, "/deliveries").to_string(),
            number(one, "/failures").to_string(),
            text(one, "/trouble").to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = list(answer, "subscriptions").iter().map(row).collect();
    if rows.is_empty() {
        return "no subscriptions\n".to_owned();
    }
    let head = ["FEED", "BY", "HOST", "STATE", "UNTIL (UTC)", ">DELIVERED", ">FAILED", "TROUBLE"];
    table(&head, &rows)
}

/// Who may read private feeds.
pub(super) fn readers(answer: &Value) -> String {
    let names = |reader: &Value, of: &str| {
        let names = list(reader, of).iter().filter_map(Value::as_str);
        names.collect::<Vec<_>>().join(", ")
    };
    let row = |reader: &Value| {
        let missing = names(reader, "missing");
        let missing = if missing.is_empty() { missing } else { format!("not here: {missing}") };
        vec![
            text(reader, "/name").to_owned(),
            number(reader, "/count").to_string(),
            if reader["all_private"] == true { "all private" } else { "" }.to_owned(),
            names(reader, "feeds"),
            missing,
        ]
    };
    let rows: Vec<Vec<String>> = list(answer, "readers").iter().map(row).collect();
    match rows.is_empty() {
        true => "no readers\n".to_owned(),
        false => table(&["NAME", ">COUNT", "", "FEEDS", ""], &rows),
    }
}

/// What became of a list; and what was wrong with it, by line.
pub(super) fn added_list(file: &str, done: &Value) -> (String, String) {
    let mut wrong = String::new();
    for (name, what) in [("problems", ""), ("refused", "not taken: ")] {
        for line in list(done, name) {
            let said = format!("{file}:{}: {what}{}", number(line, "/line"), text(line, "/said"));
            wrong.push_str(&format!("{}\n", printable(&said)));
        }
    }
    let added = list(done, "added");
    let names = added.iter().filter_map(Value::as_str);
    let mut said: String = names.map(|name| format!("added     {}\n", printable(name))).collect();
    said.push_str(&format!(
        "{} added, {} known already, {} given another place, {} not taken\n",
        counted(added.len(), "feed"),
        number(done, "/known"),
        number(done, "/placed"),
        number(done, "/not_taken")
    ));
    (said, wrong)
}
