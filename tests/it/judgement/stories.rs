//! Stories of plain posts: what a publisher lists hour by hour, and what the gateway says of it. `stories.txt`
//! and the files beside it have them, and the first says how they are written. Each comes out alike in Atom and in RSS,
//! where it does not name one of them, and whatever the wall clock does.

use super::probe::answer;
use crate::support::first_part;
use crate::support::prelude::*;
use regex::Regex;
use tidegate_judge::record::Verdict;
use tidegate_store::PastSelect;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/judgement/");
const STORIES: [&str; 5] = [
    "stories.txt",
    "held_stories.txt",
    "identity_stories.txt",
    "hole_stories.txt",
    "gone_stories.txt",
];
const YEAR: i64 = 365 * 86_400;
/// How far the wall clock is ahead at each poll; beyond the last one it stays.
const LEADS: [&[i64]; 3] =
    [&[0, 0, -YEAR], &[0, 0, 40 * YEAR, -40 * YEAR, 0], &[YEAR, 0, YEAR, -YEAR, 0, 7 * YEAR]];

fn without_dates(text: &str) -> String {
    let dates = "<(published|updated|pubDate)>[^<]*</(published|updated|pubDate)>";
    Regex::new(dates).unwrap().replace_all(text, "").into_owned()
}

/// What a publisher writes in the posts of some days, by a line `let DAYS FIELD VALUE`.
struct Wording {
    days: String,
    field: String,
    value: String,
}

impl Wording {
    fn read(line: &str) -> Self {
        let mut parts = line.splitn(3, ' ').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        Self { days: next(), field: next(), value: next() }
    }

    fn is_of(&self, number: u32) -> bool {
        let day = |text: &str| text.parse::<u32>().unwrap_or_else(|_| panic!("let {text}"));
        match (self.days.as_str(), self.days.split_once("..")) {
            ("odd", _) => number % 2 == 1,
            ("even", _) => number.is_multiple_of(2),
            (_, Some((from, to))) => (day(from)..=day(to)).contains(&number),
            (one, None) => day(one) == number,
        }
    }

    /// The value for a day: `{n}` is its number, `{n-9}` nine less.
    fn of(&self, number: u32) -> String {
        let mut value = self.value.clone();
        while let Some((before, rest)) = value.split_once("{n") {
            let (offset, behind) = rest.split_once('}').unwrap();
            let offset: i64 = if offset.is_empty() { 0 } else { offset.parse().unwrap() };
            value = format!("{before}{}{behind}", i64::from(number) + offset);
        }
        assert!(!value.contains('{'), "let {value}");
        value
    }
}

fn worded(number: u32, wordings: &[Wording]) -> Post {
    let mut new = post(number);
    for wording in wordings.iter().filter(|wording| wording.is_of(number)) {
        let value = wording.of(number);
        match wording.field.as_str() {
            "id" => new.id = value,
            "link" => new.link = value,
            "address" => (new.id, new.link) = (value.clone(), value),
            "title" => new.title = value,
            "text" => new.text = value,
            "extra" => new.extra = value,
            "" => new = post(number),
            other => panic!("let {other}"),
        }
    }
    new
}

fn posts(words: &[&str], wordings: &[Wording]) -> Vec<Post> {
    let mut posts: Vec<(u32, Post)> = Vec::new();
    for word in words.iter().filter(|word| **word != "empty") {
        let number = |text: &str| text.parse::<u32>().unwrap_or_else(|_| panic!("{word}"));
        if let Some(without) = word.strip_prefix('-') {
            posts.retain(|(day, _)| *day != number(without));
            continue;
        }
        let end = word.find(['\'', '~', '@', '=', '#']).unwrap_or(word.len());
        let (days, how) = word.split_at(end);
        let (from, to) = days.split_once("..").unwrap_or((days, days));
        let (from, to) = (number(from), number(to));
        let days: Vec<u32> =
            if from < to { (from..=to).collect() } else { (to..=from).rev().collect() };
        for day in days {
            let mut new = worded(day, wordings);
            match how.split_at(how.len().min(1)) {
                ("\'", _) => new.text = format!("A new template. {}", new.text),
                ("~", _) => new.link = post(1).link,
                ("@", day) => new.day = number(day),
                ("=", words) => new.text = format!("All is told anew: {words}."),
                ("#", views) => new.title = format!("{} ({views} views)", new.title),
                _ => {}
            }
            posts.push((day, new));
        }
    }
    posts.into_iter().map(|(_, post)| post).collect()
}

/// The text of a document's words: `gone DAYS` are said to be deleted, of what is `cut` there is the first half.
fn document(words: &[&str], wordings: &[Wording], write: fn(&[Post]) -> String) -> String {
    let (words, is_cut) = match words {
        [words @ .., "cut"] => (words, true),
        words => (words, false),
    };
    let (words, is_undated) = match words {
        ["undated", words @ ..] => (words, true),
        words => (words, false),
    };
    let mut parts = words.split(|word| *word == "gone");
    let mut text = write(&posts(parts.next().unwrap(), wordings));
    if is_undated {
        text = without_dates(&text);
    }
    let gone = parts.next().map(|gone| posts(gone, wordings)).unwrap_or_default();
    text = with_deletions(&text, gone.into_iter().map(|post| post.id));
    if is_cut {
        text = first_part(&text, 128).to_owned();
    }
    text
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

#[derive(Clone)]
enum Act {
    Document(String),
    Same,
    Older(String),
    Url(String),
    /// The program makes fingerprints by another scheme, or by its own.
    Scheme(bool),
    Decide(Decision),
    /// Missing items' own addresses answer so.
    Answer(u16),
    /// An operator takes the text of the post with this title away, or says that it was deleted.
    Redact(String),
    Delete(String),
    Age,
}

/// What a line of a story says: the hours before each act, and the acts.
fn acts(line: &str, wordings: &[Wording], write: fn(&[Post]) -> String) -> (i64, Vec<Act>) {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let hours = words[0].strip_prefix('+').map(|hours| hours.parse().unwrap());
    words.drain(..usize::from(hours.is_some()));
    let times = words.last().and_then(|word| word.strip_prefix('x')?.parse::<usize>().ok());
    words.truncate(words.len() - usize::from(times.is_some()));
    let title = |day: &str| worded(day.parse().unwrap(), wordings).title;
    let acts = match words.as_slice() {
        ["same"] => vec![Act::Same],
        ["older", words @ ..] => vec![Act::Older(document(words, wordings, write))],
        ["url", url] => vec![Act::Url((*url).to_owned())],
        ["scheme", which] => vec![Act::Scheme(*which == "other")],
        ["release"] => vec![Act::Decide(Decision::Release)],
        ["drop"] => vec![Act::Decide(Decision::Drop)],
        ["answer", code] => vec![Act::Answer(code.parse().unwrap())],
        ["redact", day] => vec![Act::Redact(title(day))],
        ["delete", day] => vec![Act::Delete(title(day))],
        ["age"] => vec![Act::Age],
        [window @ .., way @ ("slides" | "grows"), count] => {
            let step = |by| {
                let words = moved(window, by, *way == "grows");
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                Act::Document(document(&words, wordings, write))
            };
            (0..=count.parse().unwrap()).map(step).collect()
        }
        words => vec![Act::Document(document(words, wordings, write))],
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
        Act::Age => Some(gate.age().await),
        Act::Redact(title) => gate.redact(title).await.1,
        Act::Delete(title) => {
            let known = gate.snapshot().await.known;
            let id = known.into_iter().find(|known| known.title == *title).unwrap().id;
            gate.delete_missing(&id).await.unwrap()
        }
        Act::Url(url) => {
            gate.url.clone_from(url);
            None
        }
        Act::Scheme(is_other) => {
            gate.other_scheme = *is_other;
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
        ("items", number) => gate.items = number.parse().unwrap(),
        ("tombstones", days) => {
            gate.tombstones = Duration::from_secs(days.parse::<u64>().unwrap() * 86_400);
        }
        ("deletions", mode) => {
            gate.options.deletions = serde_json::from_value(json!(mode)).unwrap()
        }
        ("order", order) => {
            gate.options.order = Order::ALL.into_iter().find(|it| it.name() == order).unwrap();
        }
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
fn check_tick(gate: &Gate, verdict: &Verdict, act: &Act, what: &str) {
    let Some(change) = &verdict.change else { return };
    let is_document = matches!(act, Act::Document(text) if !text.contains("<at:deleted-entry"));
    let is_judged = is_document || matches!(act, Act::Same | Act::Answer(_));
    let deleted = verdict.events().iter().filter(|event| event.kind == EventKind::Deleted);
    for event in deleted.filter(|_| is_judged && gate.options.deletions == Deletions::Safe) {
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

/// What was said since the last line that was checked: events, their reasons, the titles of new posts, and of each act
/// whether the document is held or doubted.
#[derive(Default)]
struct Said {
    counts: BTreeMap<EventKind, usize>,
    new: BTreeSet<String>,
    reasons: Vec<String>,
    holds: Vec<Option<String>>,
    is_doubted: bool,
}

impl Said {
    fn note(&mut self, verdict: &Verdict) {
        for event in verdict.events() {
            *self.counts.entry(event.kind).or_insert(0) += 1;
            self.reasons.push(event.reason.clone());
            if event.kind == EventKind::Created {
                self.new.insert(event.title.clone());
            }
        }
        self.holds.push(verdict.held.clone());
        self.is_doubted = verdict.doubt.is_some();
    }
}

pub async fn everything(gate: &Gate) -> String {
    let (store, feed) = (&gate.store, &gate.feed);
    let snapshot = store.snapshot(feed).await.unwrap().unwrap();
    let mut all = format!("{snapshot:?} {:?}", store.events(feed, 500).await.unwrap());
    for select in [Select::Current, Select::All] {
        all.push_str(&format!("{:?}", store.view(feed, select).await.unwrap()));
    }
    for known in &snapshot.known {
        for note in store.versions(feed, &known.id, 500).await.unwrap() {
            let version = store.version(feed, &known.id, note.updates).await.unwrap();
            all.push_str(&format!("{note:?} {version:?}"));
        }
    }
    for hours in 0..60 {
        let at = Time::from_unix(gate.now.unix() - hours * 3600);
        for select in [PastSelect::Current, PastSelect::All] {
            all.push_str(&format!("{:?}", store.past(feed, select, at).await.unwrap()));
        }
    }
    all
}

async fn shown_ids(gate: &Gate) -> Vec<String> {
    gate.reader().await.into_iter().map(|(id, _)| id).collect()
}

/// Whether a line came out as it is written; `ids`: of the reader view when the last line was checked.
async fn check(
    gate: &Gate,
    expected: &str,
    (told, wordings): (&Said, &[Wording]),
    ids: &[String],
    what: &str,
) {
    let holds = &told.holds;
    let (last, earlier) =
        holds.split_last().map_or((None, holds.as_slice()), |(last, rest)| (last.as_deref(), rest));
    let (mut events, mut says_held, mut was_held) = (Vec::new(), false, false);
    for said in expected.split(',').map(str::trim).filter(|said| !said.is_empty()) {
        if let Some(reason) = said.strip_prefix("held") {
            says_held = true;
            assert!(last.is_some_and(|held| held.contains(reason.trim())), "{what}: {last:?}");
        } else if let Some(reason) = said.strip_prefix("was held") {
            was_held = true;
            let mut earlier = earlier.iter().flatten();
            assert!(earlier.any(|held| held.contains(reason.trim())), "{what}: {holds:?}");
        } else if let Some(words) = said.strip_prefix("said ") {
            let is_said = told.reasons.iter().any(|reason| reason.contains(words));
            assert!(is_said, "{what}: {:?}", told.reasons);
        } else if let Some(days) = said.strip_prefix("new ") {
            let title = |day: &str| worded(day.parse().unwrap(), wordings).title;
            let titles: BTreeSet<String> = days.split(' ').map(title).collect();
            assert_eq!(told.new, titles, "{what}");
        } else if let Some(left) = said.strip_suffix(" left") {
            let evictions = gate.store_state().await.evictions;
            assert_eq!(evictions.count, left.parse::<u64>().unwrap(), "{what}");
        } else if said == "no secret" {
            let all = everything(gate).await;
            assert!(!all.contains("secret"), "{what}: {all}");
        } else if said == "doubted" {
            assert!(told.is_doubted, "{what}");
        } else if said == "same ids" {
            assert_eq!(shown_ids(gate).await, ids, "{what}");
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
    check_events(&told.counts, &events, what);
}

/// What came of an act: events, whether the document is held, and in how many seconds another look can decide.
type Step = (Vec<EventKind>, bool, Option<i64>);

struct Story<'s> {
    title: &'s str,
    settings: Vec<(&'s str, &'s str)>,
    lines: &'s [&'s str],
}

/// Tells a story whose lines are to come out as they are written.
async fn tell(story: &Story<'_>, write: fn(&[Post]) -> String, leads: &[i64]) -> Vec<Step> {
    let Story { title, settings, lines } = story;
    let mut gate = Gate::new().await;
    for (key, value) in settings {
        set(&mut gate, key, value);
    }
    let (mut steps, mut told) = (Vec::new(), Said::default());
    let (mut wordings, mut ids) = (Vec::new(), Vec::new());
    for line in *lines {
        if let Some(wording) = line.strip_prefix("let ") {
            wordings.push(Wording::read(wording));
            continue;
        }
        let what = format!("{title}, with {settings:?}, by {leads:?}: {line}");
        let (said, expected) = match line.strip_prefix("url ") {
            Some(_) => (*line, None),
            None => line.split_once(':').map_or((*line, None), |(said, rest)| (said, Some(rest))),
        };
        let (hours, acts) = acts(said, &wordings, write);
        for act in &acts {
            gate.later(hours);
            gate.lead = leads.get(steps.len()).or(leads.last()).copied().unwrap_or_default();
            let Some(verdict) = perform(&mut gate, act).await else { continue };
            check_tick(&gate, &verdict, act, &what);
            let soon = verdict.decision_due.map(|at| at.unix() - gate.wall().unix());
            steps.push((kinds(&verdict), verdict.held.is_some(), soon));
            told.note(&verdict);
        }
        if let Some(expected) = expected {
            check(&gate, expected, (&told, &wordings), &ids, &what).await;
            (told, ids) = (Said::default(), shown_ids(&gate).await);
        }
    }
    steps
}

/// Tells a story as it is written, for each value of its settings.
async fn tell_all(title: &str, lines: &[&str]) {
    let head = lines.iter().take_while(|line| line.starts_with("with ") || line.starts_with("in "));
    let head: Vec<&str> = head.copied().collect();
    let lines = &lines[head.len()..];
    let set: Vec<(&str, Vec<&str>)> = head
        .iter()
        .filter_map(|line| line.strip_prefix("with "))
        .map(|said| said.split_once(' ').unwrap_or((said, "")))
        .map(|(key, values)| (key, values.split(' ').collect()))
        .collect();
    let in_atom = |posts: &[Post]| atom(SITE, posts);
    for turn in 0..set.iter().map(|(_, values)| values.len()).max().unwrap_or(1) {
        let value = |values: &[&'_ str]| -> usize { turn.min(values.len() - 1) };
        let settings = set.iter().map(|(key, values)| (*key, values[value(values)])).collect();
        let story = Story { title, settings, lines };
        if !head.contains(&"in rss") {
            let right = tell(&story, in_atom, &[]).await;
            for leads in LEADS {
                let steps = tell(&story, in_atom, leads).await;
                assert_eq!(steps, right, "{title}, with {:?}, by {leads:?}", story.settings);
            }
        }
        if !head.contains(&"in atom") {
            tell(&story, rss, &[]).await;
        }
    }
}

#[tokio::test]
async fn each_story_of_plain_posts_comes_out_as_it_is_written() {
    let stories = STORIES.map(|file| std::fs::read_to_string(format!("{FOLDER}{file}")).unwrap());
    let stories: Vec<&str> = stories.iter().flat_map(|file| file.split("\n== ").skip(1)).collect();
    assert!(stories.len() > 130, "{}", stories.len());
    let only = std::env::var("TIDEGATE_STORY").unwrap_or_default();
    for story in stories {
        let (title, lines) = story.split_once('\n').unwrap();
        let lines: Vec<&str> = lines.lines().filter(|line| !line.is_empty()).collect();
        if title.contains(&only) {
            tell_all(title, &lines).await;
        }
    }
}
