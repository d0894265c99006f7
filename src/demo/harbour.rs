//! The notices of a harbour office: RSS 2.0, with a build date and counters that change all the
//! time and mean nothing, and with accidents.

use super::timeline::{Post, Timeline};
use super::{Script, ScriptedDocument};
use quick_xml::escape::escape;
use std::fmt::Write;
use std::ops::Range;

/// Where the publisher has it.
pub const PATH: &str = "/harbour.xml";

pub(super) const TIMELINE: Timeline = Timeline {
    gain_every: 6,
    before: 15,
    window: 10,
    revise_one_in: 3,
    revise_after: 6,
    withdraw_one_in: 5,
    withdraw_after: 28,
    rename_one_in: 0,
    rename_after: 0,
};

/// Accidents happen again after so many steps.
const REPEAT_EVERY: u32 = 75;
/// The steps of every repetition at which the document breaks off.
const BROKEN_OFF_AT: Range<u32> = 14..16;
/// The steps of every repetition at which the office's program has overwritten every text. It lasts, so that
/// a visitor has time to release what is held.
const OVERWRITTEN_AT: Range<u32> = 19..28;

/// What every text is while the office's program has overwritten them.
const OVERWRITTEN: &str = "<p>Please enable JavaScript to read this notice.</p>";

/// How many whole items are left of a document that breaks off.
const ITEMS_LEFT: usize = 4;

/// Titles and texts, with ` | ` between them, taken in turn.
const NOTICES: [&str; 12] = [
    "Berth 4 closed for dredging | Berth 4 is closed to all craft until the dredger has found what it hit on Monday.",
    "Ferry on the winter timetable | The ferry keeps the winter timetable: one sailing out, one back, and one if anybody asks.",
    "Ice at the fish hall | Ice is short. Boats that land before six are served first; boats that land herring are served kindly.",
    "Found: one anchor | Found off the mole: one anchor, thirty fathoms of chain and a boot. The owner may describe the boot.",
    "Crane inspected | The crane has passed its inspection. Please stop saying that it leans; it has always leaned.",
    "Regatta moved to Sunday | The regatta is moved to Sunday for want of wind, and to the outer basin for want of room.",
    "Leading light relamped | The lower leading light has a new lamp. Masters who steered by the bakery window may cease.",
    "Gulls | Do not feed the gulls. The one with the white ring is not to be fed under any circumstances.",
    "Diesel pump out of order | The diesel pump is out of order until a washer comes from the mainland. It is a small washer.",
    "Choir on the quay | The choir sings on the quay at eight. In rain it sings in the net loft, where there are chairs.",
    "Low water warning | Low water on Thursday will be lower than the tables say. Keep to the middle of the channel.",
    "Harbour dues | Dues are payable at the hatch between nine and noon. The hatch opens outward: knock and step back.",
];

pub(super) fn document(script: &Script, step: u32) -> ScriptedDocument {
    let place = step % REPEAT_EVERY;
    let is_overwritten = OVERWRITTEN_AT.contains(&place);
    // What was overwritten stays as it was then.
    let step = if is_overwritten { step - place + OVERWRITTEN_AT.start } else { step };
    let changed = script.time(i64::from(step));
    let mut body = String::from(
        r#"<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:slash="http://purl.org/rss/1.0/modules/slash/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel>
  <title>Notices of the harbour office</title>
  <link>https://harbour.example/notices</link>
  <description>What mariners and neighbours should know</description>
  <language>en</language>
"#,
    );
    // Writing to a string cannot fail.
    let _ = writeln!(body, "  <lastBuildDate>{}</lastBuildDate>", changed.rfc822());
    for post in TIMELINE.at(step) {
        item(&mut body, script, post, step, is_overwritten);
    }
    let _ = writeln!(body, "</channel>\n</rss>\n<!-- built in 0.{:03} s -->", 37 + step % 61);
    if BROKEN_OFF_AT.contains(&place) {
        break_off(&mut body);
    }
    ScriptedDocument { path: PATH, body, changed }
}

/// Cuts a document off in the middle of an item.
fn break_off(body: &mut String) {
    if let Some((at, start)) = body.match_indices("<item>").nth(ITEMS_LEFT) {
        body.truncate(at + start.len());
        body.push_str("\n    <title>The hatch is");
    }
}

fn item(body: &mut String, script: &Script, post: Post, step: u32, is_overwritten: bool) {
    let Post { number, published, revised, .. } = post;
    let turn = usize::try_from(number).unwrap_or(0);
    let line = NOTICES.get(turn % NOTICES.len()).copied().unwrap_or_default();
    let (title, text) = line.split_once(" | ").unwrap_or_default();
    let (amended, more) = match revised {
        Some(_) => (", amended", format!(" Amended: see also notice {}.", number / 2)),
        None => ("", String::new()),
    };
    let text = match is_overwritten {
        true => OVERWRITTEN.to_owned(),
        false => format!("<p>Notice {number}. {text}{more}</p>"),
    };
    let comments = step.wrapping_add(number.wrapping_mul(3)) / 5;
    let _ = write!(
        body,
        r#"  <item>
    <title>No. {number}{amended}: {}</title>
    <link>https://harbour.example/notices/{number}</link>
    <guid isPermaLink="false">notice-{number}@harbour.example</guid>
    <pubDate>{}</pubDate>
    <dc:creator>The harbour master</dc:creator>
    <slash:comments>{comments}</slash:comments>
    <description><![CDATA[{text}]]></description>
  </item>
"#,
        escape(title),
        script.time(published).rfc822()
    );
}
