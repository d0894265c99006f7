//! The log of the light at Skerry Rock: Atom 1.0, quiet between its changes.

use super::timeline::{Post, Timeline};
use super::{Script, ScriptedDocument};
use quick_xml::escape::escape;
use std::fmt::Write;

/// Where the publisher has it.
pub const PATH: &str = "/lighthouse.atom";

pub(super) const TIMELINE: Timeline = Timeline {
    gain_every: 5,
    before: 12,
    window: 8,
    revise_one_in: 3,
    revise_after: 3,
    withdraw_one_in: 4,
    withdraw_after: 14,
    rename_one_in: 5,
    rename_after: 12,
};

/// Titles and texts, with ` | ` between them, taken in turn.
const WATCHES: [&str; 16] = [
    "Lamp lit at dusk | Lit the lamp a quarter of an hour early, for the cloud stood low in the west. The new wick burns clean.",
    "A schooner inside the bank | A schooner under reefed topsails passed inside the bank, nearer than I like. Showed her the red sector; she bore away & dipped her flag.",
    "Fog from the north | Fog from the north after midnight. Sounded the horn every two minutes till the boilers complained, and every three after that.",
    "The hens object | The hens refuse to lay in anything above a fresh breeze. It has blown a gale since Tuesday.",
    "Relief boat sighted | Relief boat sighted off the point at noon, turned back by the swell at one. We have potatoes, and each other.",
    "Lenses cleaned | Took down the lower prisms and cleaned them with spirit. Found the thumbprint of my predecessor, dated by his own account 1911.",
    "A whale, or two | A whale to the east at first light; or two, if it was not the same one twice. It was in no hurry either way.",
    "Clockwork | The clockwork lost four seconds in the hour. Oiled the train, hung a bolt on the weight, and it loses none. I shall not touch the bolt.",
    "Birds at the glass | Redwings at the glass all night, by the hundred. Dimmed nothing: the ships need it more. In the morning all but three had gone on.",
    "The cable spoke | The telegraph woke at four and asked if we were there. Replied that we were. It thanked us and went back to sleep.",
    "Ice on the gallery | Ice on the gallery rail as thick as a wrist. Chipped the vents free by seven; the flame had begun to sulk.",
    "A letter in a bottle | A bottle on the landing with a letter in it, from a child in a town that I had to look up. Answered by the same post.",
    "Two lights seen | Two lights seen bearing south-west where the chart has one. The second was a planet, but it was right to write it down.",
    "Paint arrived | Paint arrived: forty tins of white, none of red. The tower has asked for stripes since spring. White it shall be.",
    "Swell over the landing | The swell went clean over the landing and took the bench. It was a good bench. It may yet be somebody else's.",
    "A quiet night | A quiet night. One steamer, two trawlers, stars. Wrote nothing for three hours and was content.",
];

const WINDS: [&str; 6] = ["NW 7", "W 5", "SW 4", "S 3", "calm", "NE 6"];

pub(super) fn document(script: &Script, step: u32) -> ScriptedDocument {
    let changed = script.time(i64::from(TIMELINE.changed(step)));
    let mut body = String::from(
        r#"<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:sky="https://skerry-rock.example/ns/sky" xml:lang="en" xml:base="https://skerry-rock.example/">
  <title>The log of the light at Skerry Rock</title>
  <subtitle>Kept by hand, in all weathers</subtitle>
  <id>tag:skerry-rock.example,2026:log</id>
  <link rel="alternate" href="log"/>
  <author><name>The keeper</name></author>
"#,
    );
    // Writing to a string cannot fail.
    let _ = writeln!(body, "  <updated>{changed}</updated>");
    for post in TIMELINE.at(step) {
        entry(&mut body, script, post);
    }
    body.push_str("</feed>\n");
    ScriptedDocument { path: PATH, body, changed }
}

fn entry(body: &mut String, script: &Script, post: Post) {
    let Post { number, published, revised, renamed } = post;
    let turn = usize::try_from(number).unwrap_or(0);
    let line = WATCHES.get(turn % WATCHES.len()).copied().unwrap_or_default();
    let (title, text) = line.split_once(" | ").unwrap_or_default();
    let wind = WINDS.get(turn % WINDS.len()).copied().unwrap_or_default();
    let glass = 968 + number.wrapping_mul(7) % 64;
    let (came, updated) = (script.time(published), script.time(revised.unwrap_or(published)));
    let correction = match revised {
        Some(_) => {
            format!("<p><em>Corrected the next morning:</em> the glass stood at {glass} hPa.</p>")
        }
        None => String::new(),
    };
    // The keeper begins a new book, and numbers anew what stands in it.
    let book = if renamed { "new-book" } else { "watch" };
    let html = format!("<p>Watch {number}. {}</p>{correction}", escape(text));
    let _ = write!(
        body,
        r#"  <entry>
    <title>Watch {number}: {title}</title>
    <id>tag:skerry-rock.example,2026:{book}/{number}</id>
    <link href="watch/{number}"/>
    <published>{came}</published>
    <updated>{updated}</updated>
    <sky:weather wind="{wind}" glass="{glass}"/>
    <content type="html">{}</content>
  </entry>
"#,
        escape(html)
    );
}
