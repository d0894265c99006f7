//! Stories of plain posts: what a publisher lists hour by hour, and what the gateway says of it. `stories.txt` has
//! them, and says how they are written.

use crate::support::{Gate, Post, SITE, atom, kinds, post};
use std::collections::BTreeMap;
use tidegate_core::model::{Deletions, EventKind, Order};
use tidegate_judge::record::Verdict;
use tidegate_store::Select;

const STORIES: &str = include_str!("stories.txt");

/// A document without the dates of its entries.
fn without_dates(mut text: String) -> String {
    for (begin, end) in [("<published>", "</published>"), ("<updated>", "</updated>")] {
        while let Some(from) = text.find(begin) {
            let to = text[from..].find(end).unwrap();
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
        let (days, is_told_anew) =
            word.strip_suffix('\'').map_or((*word, false), |days| (days, true));
        let (days, date) =
            days.split_once('@').map_or((days, None), |(day, date)| (day, Some(date)));
        let (from, to) = days.split_once("..").unwrap_or((days, days));
        let (from, to) = (number(from), number(to));
        let days: Vec<u32> =
            if from < to { (from..=to).collect() } else { (to..=from).rev().collect() };
        for mut post in days.into_iter().map(post) {
            if is_told_anew {
                post.text = format!("A new template. {}", post.text);
            }
            post.day = date.map_or(post.day, number);
            posts.push(post);
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

/// A poll of a story: the hours before it, its documents one after the other; `None`: nothing changed.
fn polls(line: &str) -> (i64, Vec<Option<String>>) {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let hours = words[0].strip_prefix('+').map(|hours| hours.parse().unwrap());
    if hours.is_some() {
        words.remove(0);
    }
    let times = words.last().and_then(|word| word.strip_prefix('x')?.parse::<usize>().ok());
    if times.is_some() {
        words.pop();
    }
    let is_undated = words[0] == "undated";
    if is_undated {
        words.remove(0);
    }
    let document = |words: &[&str]| {
        let text = atom(SITE, &posts(words));
        if is_undated { without_dates(text) } else { text }
    };
    let documents = match words.as_slice() {
        ["same"] => vec![None],
        [window @ .., way @ ("slides" | "grows"), count] => {
            let step = |by| {
                let words = moved(window, by, *way == "grows");
                Some(document(&words.iter().map(String::as_str).collect::<Vec<_>>()))
            };
            (0..=count.parse().unwrap()).map(step).collect()
        }
        words => vec![Some(document(words))],
    };
    (hours.unwrap_or(0), documents.repeat(times.unwrap_or(1)))
}

/// Whether the events are those that a line expects.
fn check_events(counts: &BTreeMap<EventKind, usize>, expected: &[&str], what: &str) {
    let mut wanted = BTreeMap::new();
    for said in expected.iter().filter(|said| **said != "*") {
        let (kind, count) = said.split_once(' ').unwrap_or((said, "1"));
        let (kind, count) = if kind == "no" { (count, "0") } else { (kind, count) };
        let mut all = EventKind::ALL.into_iter().chain([EventKind::Backfilled]);
        let kind = all.find(|known| known.name() == kind);
        let count = count.parse::<usize>().unwrap_or_else(|_| panic!("{what}: {said}"));
        wanted.insert(kind.unwrap_or_else(|| panic!("{what}: {said}")), count);
    }
    let is_open = expected.iter().any(|said| *said == "*" || said.starts_with("no "));
    let compared: BTreeMap<EventKind, usize> = match is_open {
        true => wanted.keys().map(|kind| (*kind, counts.get(kind).copied().unwrap_or(0))).collect(),
        false => counts.clone(),
    };
    assert_eq!(compared, wanted, "{what}");
}

/// A version has a tick, and nothing else has.
fn check_tick(verdict: &Verdict, what: &str) {
    let is_version = |kind: &EventKind| {
        !matches!(kind, EventKind::Retired | EventKind::Returned | EventKind::Rekeyed)
    };
    let tick = verdict.change.as_ref().and_then(|change| change.tick);
    assert_eq!(tick.is_some(), kinds(verdict).iter().any(is_version), "{what}: {verdict:?}");
}

async fn tell(title: &str, lines: &[&str], options: &str) {
    let mut gate = Gate::new().await;
    match options.split_once(' ').unwrap_or((options, "")) {
        ("", _) => {}
        ("complete", _) => gate.options.complete = true,
        ("deletions", "safe") => gate.options.deletions = Deletions::Safe,
        ("deletions", "eager") => gate.options.deletions = Deletions::Eager,
        ("deletions", "off") => gate.options.deletions = Deletions::Off,
        ("order", "newest-first") => gate.options.order = Order::NewestFirst,
        ("order", "oldest-first") => gate.options.order = Order::OldestFirst,
        ("order", "updated") => gate.options.order = Order::Updated,
        ("order", "none") => gate.options.order = Order::None,
        _ => panic!("{title}: with {options}"),
    }
    let mut counts = BTreeMap::new();
    for line in lines {
        let what = format!("{title}, with {options:?}: {line}");
        let (document, expected) = line.split_once(':').unzip();
        let (hours, documents) = polls(document.unwrap_or(line));
        let mut held = None;
        for document in &documents {
            gate.later(hours);
            let verdict = match document {
                Some(text) => gate.take(text).await,
                None => gate.same().await,
            };
            check_tick(&verdict, &what);
            for kind in kinds(&verdict) {
                *counts.entry(kind).or_insert(0) += 1;
            }
            held = verdict.held;
        }
        let Some(expected) = expected else { continue };
        let (mut events, mut is_held) = (Vec::new(), false);
        for said in expected.split(',').map(str::trim).filter(|said| !said.is_empty()) {
            if let Some(reason) = said.strip_prefix("held") {
                is_held = held.as_ref().is_some_and(|held| held.contains(reason.trim()));
                assert!(is_held, "{what}: {held:?}");
            } else if let Some((shown, all)) = said.split_once(" shown of ") {
                let found = (gate.reader().await.len(), gate.items(Select::All).await.len());
                assert_eq!(found, (shown.parse().unwrap(), all.parse().unwrap()), "{what}");
            } else {
                events.push(said);
            }
        }
        assert!(is_held || held.is_none(), "{what}: {held:?}");
        check_events(&std::mem::take(&mut counts), &events, &what);
    }
}

#[tokio::test]
async fn each_story_of_plain_posts_comes_out_as_it_is_written() {
    let stories: Vec<&str> = STORIES.split("\n== ").skip(1).collect();
    assert!(stories.len() > 50, "{}", stories.len());
    for story in stories {
        let (title, lines) = story.split_once('\n').unwrap();
        let lines: Vec<&str> = lines.lines().filter(|line| !line.is_empty()).collect();
        let (key, values) = match lines[0].strip_prefix("with ") {
            Some(said) => said.split_once(' ').unwrap_or((said, "")),
            None => ("", ""),
        };
        let told = &lines[usize::from(!key.is_empty())..];
        for value in values.split(' ') {
            tell(title, told, format!("{key} {value}").trim()).await;
        }
    }
}
