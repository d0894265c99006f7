//! The tide board of the pilots: an item that another endpoint shares, and that is changed here as well.
//!
//! The office on the mainland shares it by SSE. Both change it without knowing of each other: the document
//! has the mainland's side, and [`own_version`] is what is written at the gateway.

use super::{Script, ScriptedDocument};
use tidegate_core::model::Time;
use tidegate_judge::record::local::EntryFields;

/// Where the mainland has it.
pub const PATH: &str = "/pilots.atom";
/// The sync id of the one item.
pub const ITEM: &str = "mainland.example.tides";

/// The endpoint on the mainland.
const MAINLAND: &str = "mainland.example";
/// The step at which it made the item.
const BEFORE: i64 = -2;
/// The step at which it changes the item.
const CHANGED_AT: u32 = 9;

const FIRST: &str = "High water at the bar at noon. Pilots go out an hour before.";
const THEIRS: &str = "High water at the bar at half past noon. Pilots go out two hours before.";
const OURS: &str = "High water at the bar at noon. No pilots today: the boat is on the slip.";

/// What the pilots write at the gateway, before they know what the mainland wrote.
pub fn own_version() -> EntryFields {
    EntryFields {
        title: "Tides and pilots: the boat is on the slip".to_owned(),
        content: Some(OURS.to_owned()),
        link: Some(format!("https://{MAINLAND}/pilots/tides")),
        author: Some("The pilots".to_owned()),
        ..EntryFields::default()
    }
}

pub(super) fn document(script: &Script, step: u32) -> ScriptedDocument {
    let is_changed = step >= CHANGED_AT;
    let came = script.time(BEFORE);
    let changed = if is_changed { script.time(i64::from(CHANGED_AT)) } else { came };
    let (updates, title, text) = match is_changed {
        true => (2, "Tides and pilots, corrected", THEIRS),
        false => (1, "Tides and pilots", FIRST),
    };
    let update = |sequence: u32, when: Time| {
        format!(r#"<sx:history sequence="{sequence}" when="{when}" by="{MAINLAND}"/>"#)
    };
    let newest = if is_changed { update(2, changed) } else { String::new() };
    let first = update(1, came);
    let body = format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:sx="http://feedsync.org/2007/feedsync">
  <title>The tide board of the pilots</title>
  <id>tag:{MAINLAND},2026:pilots</id>
  <updated>{changed}</updated>
  <author><name>The pilots</name></author>
  <entry>
    <sx:sync id="{ITEM}" updates="{updates}">{newest}{first}</sx:sync>
    <title>{title}</title>
    <id>tag:{MAINLAND},2026:pilots/tides</id>
    <link href="https://{MAINLAND}/pilots/tides"/>
    <published>{came}</published>
    <updated>{changed}</updated>
    <content type="text">{text}</content>
  </entry>
</feed>
"#
    );
    ScriptedDocument { path: PATH, body, changed }
}
