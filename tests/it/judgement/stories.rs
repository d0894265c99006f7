//! Stories of plain posts: what a publisher lists hour by hour, and what the gateway says of it. `stories.txt`
//! and `held_stories.txt` have them, and the first says how they are written. Each comes out alike in Atom and in RSS,
//! and whatever the wall clock does.

use super::probe::answer;
use crate::history::publisher::rss;
use crate::support::{Gate, Post, SITE, atom, kinds, post};
use std::collections::BTreeMap;
use tidegate_core::model::{Decision, Deletions, EventKind, Order, Probing};
use tidegate_judge::record::Verdict;
use tidegate_store::Select;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/judgement/");
const STORIES: [&str; 2] = ["stories.txt", "held_stories.txt"];
const YEAR: i64 = 365 * 86_400;
/// How far the wall clock is ahead at each poll; beyond the last one it stays.
const LEADS: [&[i64]; 5] = [
    &[0, 0, YEAR],
    &[0, 0, -YEAR],
    &[0, 0, 0, 40 * YEAR, 0],
    &[0, 0, 0, -40 * YEAR, 0],
    &[YEAR, 0, YEAR, -YEAR, 0, 7 * YEAR],
];

/// A document without the dates of its entries.
fn without_dates(mut text: String) -> String {
    let dates =
        ["published", "updated", "pubDate"].map(|name| (format!("<{name}>"), format!("</{name}>")));
    for (begin, end) in dates {
        while let Some(from) = text.find(&begin) {
            let to = text[from..].find(&end).unwrap();
            text.replace_range(from..from + to + end.len(), "");
        }
    }
    text
}

/// The posts of a document's words.
fn posts(words: &[&str]) -> Vec<Post> {
    let mut posts: Vec<Post> = Vec::new();
    for word in words.iter().filter(|word| **word != "empty") {
        let number = |text: &str| text.parse::<u32>().unwrap_or_else(|_| panic!("{word}"));
        if let Some(without) = word.strip_prefix('-') {
            posts.retain(|post| post.day != number(without));
            continue;
        }
        let end = word.find(['\'', '~', '@', '=', '#']).unwrap_or(word.len());
        let (days, how) = word.split_at(end);
        let (from, to) = days.split_once("..").unwrap_or((days, days));
        let (from, to) = (number(from), number(to));
        let days: Vec<u32> =
            if from < to { (from..=to).collect() } else { (to..=from).rev().collect() };
        for mut new in days.into_iter().map(post) {
            match how.split_at(how.len().min(1)) {
                ("\'", _) => new.text = format!("A new template. {}", new.text),
                ("~", _) => new.link = post(1).link,
                ("@", day) => new.day = number(day),
                ("=", words) => new.text = format!("All is told anew: {words}."),
                ("#", views) => new.title = format!("{} ({views} views)", new.title),
                _ => {}
            }
            posts.push(new);
        }
    }
    posts
}

/// The words of the window that is `by` days further on.
fn moved(words: &[&str], by: u32, is_growing: bool) -> Vec<String> {
    let (window, rest) = words.split_first().unwrap();
    let (newest, oldest) = window.split_once("..").unwrap();
    let newest = newest.parse::<u32>().unwrap() + by;
    let oldest = oldest.parse::<u32>().unwrap() + if is_growing { 0 } else { by };
    let window = format!("{newest}..{oldest}");
    [window].into_iter().chain(rest.iter().map(|word| (*word).to_owned())).collect()
}

/// What happens to a feed.
#[derive(Clone)]
enum Act {
    /// Its publisher has this document.
    Document(String),
    /// It has the same as before.
    Same,
    /// The gateway comes to an older document.
    Older(String),
    Url(String),
    Decide(Decision),
    /// Missing items' own addresses answer so.
    Answer(u16),
}

/// What a line of a story says: the hours before each act, and the acts.
fn acts(line: &str, write: fn(&[Post]) -> String) -> (i64, Vec<Act>) {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let hours = words[0].strip_prefix('+').map(|hours| hours.parse().unwrap());
    words.drain(..usize::from(hours.is_some()));
    let times = words.last().and_then(|word| word.strip_prefix('x')?.parse::<usize>().ok());
    words.truncate(words.len() - usize::from(times.is_some()));
    let document = |words: &[&str]| match words {
        ["undated", words @ ..] => without_dates(write(&posts(words))),
        words => write(&posts(words)),
    };
    let acts = match words.as_slice() {
        ["same"] => vec![Act::Same],
        ["older", words @ ..] => vec![Act::Older(document(words))],
        ["url", url] => vec![Act::Url((*url).to_owned())],
        ["release"] => vec![Act::Decide(Decision::Release)],
        ["drop"] => vec![Act::Decide(Decision::Drop)],
        ["answer", code] => vec![Act::Answer(code.parse().unwrap())],
        [window @ .., way @ ("slides" | "grows"), count] => {
            let step = |by| {
                let words = moved(window, by, *way == "grows");
                Act::Document(document(&words.iter().map(String::as_str).collect::<Vec<_>>()))
            };
            (0..=count.parse().unwrap()).map(step).collect()
        }
        words => vec![Act::Document(document(words))],
    };
    let acts = std::iter::repeat_n(acts, times.unwrap_or(1)).flatten().collect();
    (hours.unwrap_or(0), acts)
}

/// Does it, and answers what was decided where something was.
async fn perform(gate: &mut Gate, act: &Act) -> Option<Verdict> {
    match act {
        Act::Document(text) => Some(gate.take(text).await),
        Act::Same => Some(gate.same().await),
        Act::Older(text) => Some(gate.backfill(text, &[]).await.verdict),
        Act::Answer(code) => Some(answer(gate, *code).await),
        Act::Url(url) => {
            gate.url.clone_from(url);
            None
        }
        Act::Decide(decision) => {
            gate.decide(*decision).await;
            None
        }
    }
}

fn set(gate: &mut Gate, key: &str, value: &str) {
    match (key, value) {
        ("complete", _) => gate.options.complete = true,
        ("probe", _) => gate.options.probe = Probing::All,
        ("versions", number) => gate.versions_per_day = number.parse().unwrap(),
        ("deletions", "safe") => gate.options.deletions = Deletions::Safe,
        ("deletions", "eager") => gate.options.deletions = Deletions::Eager,
        ("deletions", "off") => gate.options.deletions = Deletions::Off,
        ("order", "newest-first") => gate.options.order = Order::NewestFirst,
        ("order", "oldest-first") => gate.options.order = Order::OldestFirst,
        ("order", "updated") => gate.options.order = Order::Updated,
        ("order", "none") => gate.options.order = Order::None,
        _ => panic!("with {key} {value}"),
    }
}

/// Whether the events are those that a line expects.
fn check_events(counts: &BTreeMap<EventKind, usize>, expected: &[&str], what: &str) {
    let mut wanted = BTreeMap::new();
    for said in expected.iter().filter(|said| **said != "*") {
        let (kind, count) = said.split_once(' ').unwrap_or((said, "1"));
        let mut all = EventKind::ALL.into_iter().chain([EventKind::Backfilled]);
        let kind = all.find(|known| known.name() == kind);
        let count = count.parse::<usize>().unwrap_or_else(|_| panic!("{what}: {said}"));
        wanted.insert(kind.unwrap_or_else(|| panic!("{what}: {said}")), count);
    }
    let compared: BTreeMap<EventKind, usize> = match expected.contains(&"*") {
        true => wanted.keys().map(|kind| (*kind, counts.get(kind).copied().unwrap_or(0))).collect(),
        false => counts.clone(),
    };
    assert_eq!(compared, wanted, "{what}");
}

/// Versions have a tick, and nothing else has; a deletion in safe mode says since when the item was gone.
fn check_tick(gate: &Gate, verdict: &Verdict, what: &str) {
    let Some(change) = &verdict.change else { return };
    let deleted = verdict.events().iter().filter(|event| event.kind == EventKind::Deleted);
    for event in deleted.filter(|_| gate.options.deletions == Deletions::Safe) {
        // The answer of a page may come in the same moment.
        let is_before =
            |since| since < gate.now || since == gate.now && gate.options.probe == Probing::All;
        assert!(event.seen_gone.is_some_and(is_before), "{what}: {event:?}");
    }
    let is_quiet = |kind: &EventKind| {
        matches!(kind, EventKind::Retired | EventKind::Returned | EventKind::Rekeyed)
    };
    assert_eq!(change.tick.is_some(), !change.versions.is_empty(), "{what}: {change:?}");
    assert!(change.tick.is_none() || !kinds(verdict).iter().all(is_quiet), "{what}: {change:?}");
}

/// Whether a line came out as it is written; `holds`: what was said of each act since the last line that was checked.
async fn check(
    gate: &Gate,
    expected: &str,
    counts: &BTreeMap<EventKind, usize>,
    holds: &[Option<String>],
    what: &str,
) {
    let (last, earlier) =
        holds.split_last().map_or((None, holds), |(last, rest)| (last.as_deref(), rest));
    let (mut events, mut says_held, mut was_held) = (Vec::new(), false, false);
    for said in expected.split(',').map(str::trim).filter(|said| !said.is_empty()) {
        if let Some(reason) = said.strip_prefix("held") {
            says_held = true;
            assert!(last.is_some_and(|held| held.contains(reason.trim())), "{what}: {last:?}");
        } else if let Some(reason) = said.strip_prefix("was held") {
            was_held = true;
            let mut earlier = earlier.iter().flatten();
            assert!(earlier.any(|held| held.contains(reason.trim())), "{what}: {holds:?}");
        } else if let Some((shown, all)) = said.split_once(" shown of ") {
            let found = (gate.reader().await.len(), gate.items(Select::All).await.len());
            assert_eq!(found, (shown.parse().unwrap(), all.parse().unwrap()), "{what}");
        } else if let Some(kept) = said.strip_suffix(" kept") {
            assert_eq!(gate.kept().await.len(), kept.parse::<usize>().unwrap(), "{what}");
        } else {
            events.push(said);
        }
    }
    assert_eq!(last.is_some(), says_held, "{what}: {holds:?}");
    assert!(says_held || was_held || earlier.iter().all(Option::is_none), "{what}: {holds:?}");
    check_events(counts, &events, what);
}

/// What came of an act: events, whether the document is held, and in how many seconds another look can decide.
type Step = (Vec<EventKind>, bool, Option<i64>);

/// Tells a story whose lines are to come out as they are written.
async fn tell(
    (title, lines): (&str, &[&str]),
    (key, value): (&str, &str),
    write: fn(&[Post]) -> String,
    leads: &[i64],
) -> Vec<Step> {
    let mut gate = Gate::new().await;
    if !key.is_empty() {
        set(&mut gate, key, value);
    }
    let (mut steps, mut counts, mut holds) = (Vec::new(), BTreeMap::new(), Vec::new());
    for line in lines {
        let what = format!("{title}, with {key} {value}, by {leads:?}: {line}");
        let (told, expected) = match line.strip_prefix("url ") {
            Some(_) => (*line, None),
            None => line.split_once(':').map_or((*line, None), |(told, said)| (told, Some(said))),
        };
        let (hours, acts) = acts(told, write);
        for act in &acts {
            gate.later(hours);
            gate.lead = leads.get(steps.len()).or(leads.last()).copied().unwrap_or_default();
            let Some(verdict) = perform(&mut gate, act).await else { continue };
            check_tick(&gate, &verdict, &what);
            for kind in kinds(&verdict) {
                *counts.entry(kind).or_insert(0) += 1;
            }
            let soon = verdict.look_again.map(|at| at.unix() - gate.wall().unix());
            steps.push((kinds(&verdict), verdict.held.is_some(), soon));
            holds.push(verdict.held);
        }
        if let Some(expected) = expected {
            check(&gate, expected, &counts, &holds, &what).await;
            (counts, holds) = (BTreeMap::new(), Vec::new());
        }
    }
    steps
}

#[tokio::test]
async fn each_story_of_plain_posts_comes_out_as_it_is_written() {
    let stories = STORIES.map(|file| std::fs::read_to_string(format!("{FOLDER}{file}")).unwrap());
    let stories = stories.iter().flat_map(|file| file.split("\n== ").skip(1));
    let stories: Vec<&str> = stories.collect();
    assert!(stories.len() > 70, "{}", stories.len());
    let in_atom = |posts: &[Post]| atom(SITE, posts);
    for story in stories {
        let (title, lines) = story.split_once('\n').unwrap();
        let lines: Vec<&str> = lines.lines().filter(|line| !line.is_empty()).collect();
        let (key, values) = match lines[0].strip_prefix("with ") {
            Some(said) => said.split_once(' ').unwrap_or((said, "")),
            None => ("", ""),
        };
        let story = (title, &lines[usize::from(!key.is_empty())..]);
        for value in values.split(' ') {
            let right = tell(story, (key, value), in_atom, &[]).await;
            for leads in LEADS {
                let steps = tell(story, (key, value), in_atom, leads).await;
                assert_eq!(steps, right, "{title}, with {key} {value}, by {leads:?}");
            }
            tell(story, (key, value), rss, &[]).await;
        }
    }
}
