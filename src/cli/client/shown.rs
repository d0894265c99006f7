//! What a gateway answers, for people. What is missing in an answer is shown as nothing.

use crate::cli::table::{facts, plain, table};
use crate::model::{FeedName, counted};
use serde_json::Value;

/// The most items and versions that are named of what waits.
const WAITING: usize = 5;

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
        "active" => "good".to_owned(),
        other => other.to_owned(),
    }
}

/// A feed in the list of feeds.
pub(super) fn feed_row(feed: &Value) -> Vec<String> {
    let title = [text(feed, "/listed/title"), text(feed, "/url")];
    vec![
        text(feed, "/name").to_owned(),
        state(feed),
        number(feed, "/state/counts/living").to_string(),
        moment(feed, "/state/until"),
        moment(feed, "/next_poll/at"),
        title.into_iter().find(|title| !title.is_empty()).unwrap_or_default().to_owned(),
    ]
}

/// The list of feeds.
pub(super) fn feeds(rows: &[Vec<String>]) -> String {
    match rows.is_empty() {
        true => "no feeds\n".to_owned(),
        false => table(&["NAME", "STATE", ">ITEMS", "CHANGED (UTC)", "NEXT POLL", "TITLE"], rows),
    }
}

/// What is known of a feed.
pub(super) fn feed(feed: &Value) -> String {
    let count = |name: &str| number(feed, &format!("/state/counts/{name}"));
    let items = format!(
        "{} current, {} retired, {} deleted",
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
        ("state", format!("{}: {}", state(feed), text(feed, "/why"))),
        ("last poll", last.unwrap_or_default()),
        ("next poll", next),
        ("changed", moment(feed, "/state/until")),
        ("items", items),
        ("conflicts", conflicts),
        ("held", text(feed, "/hold/words").to_owned()),
        ("for readers", text(feed, "/views/reader").to_owned()),
    ]);
    let pending = list(feed, "pending");
    for item in pending.iter().take(WAITING) {
        said.push_str(&format!(
            "missing: {}: {}\n",
            plain(text(item, "/title")),
            plain(text(item, "/words"))
        ));
    }
    if pending.len() > WAITING {
        said.push_str(&format!("missing: and {} more\n", pending.len() - WAITING));
    }
    said
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
    let held = text(came, "/held");
    let held =
        if held.is_empty() { String::new() } else { format!("; a document is held: {held}") };
    format!("{name}: {}\n", plain(&format!("{}{held}", happened(came))))
}

/// A page of items.
pub(super) fn items(page: &Value) -> String {
    let row = |item: &Value| {
        let is_missing = item["missing"] == true && text(item, "/standing") != "deleted";
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
    let address = plain(text(seen, "/url"));
    if found.is_empty() {
        return format!(
            "{address} is a page that names no feed, and none is where sites usually have one"
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
        said.push_str(&format!("  {}\n", plain(text(entry, "/title"))));
    }
    for remark in list(seen, "remarks") {
        said.push_str(&format!("{}\n", plain(remark.as_str().unwrap_or_default())));
    }
    said
}

/// A feed that was added.
pub(super) fn added(feed: &Value) -> String {
    format!(
        "added {}; readers are pointed at {}\n",
        plain(text(feed, "/name")),
        plain(text(feed, "/views/reader"))
    )
}
