//! `tidegate replay`: recorded documents through the core, printed line by line.

use super::{AppError, ErrorContext, ReplayOptions, progress};
use std::io::Write;
use std::sync::Arc;
use tidegate_config::{Polling, Publish};
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{EndpointId, FeedName, FeedOptions, Time, UpdateHints, Without};
use tidegate_core::terminal::{printable, printable_json};
use tidegate_poll::{Bounds, UpdateRate, replay_interval};
use tidegate_replay::{
    self as replay, DocumentReport, PrintedEvent, PrintedPending, ReplayTarget, Series, Summary,
};
use tidegate_store::{Store, in_words};

/// The endpoint id of replayed histories: the same in every run, so that runs can be compared.
const ENDPOINT: &str = "replay";

/// The rules of judgement that a replay can do without, in the order in which they are asked.
pub fn rule_names() -> impl Iterator<Item = &'static str> {
    tidegate_judge::switchable_rules().map(|rule| rule.name)
}

/// Replays the sources and prints what came of each document.
pub fn replay(options: &ReplayOptions) -> Result<(), AppError> {
    let all = replay::read(&options.sources).map_err(|error| AppError::Input(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime could be started")?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut summary = Summary::default();
    let without = Without(options.without.clone());
    let documents = all.iter().map(|series| series.documents.len()).sum();
    let progress = progress::bar("{bar:40} {pos}/{len} documents, {eta} left", documents);
    for (number, series) in all.iter().enumerate() {
        let mut unwritten = None;
        let print = |line: DocumentReport| {
            progress.inc(1);
            summary.add(&line);
            if let Err(error) = print(&mut out, &line, options.json) {
                unwritten.get_or_insert(error);
            }
        };
        runtime.block_on(one(series, number, &without, print))?;
        if let Some(error) = unwritten {
            return Err(AppError::output(error));
        }
    }
    progress.finish_and_clear();
    let last = if options.json {
        serde_json::to_string(&serde_json::json!({ "summary": summary })).unwrap_or_default()
    } else {
        summary.describe()
    };
    writeln!(out, "{last}").and_then(|()| out.flush()).map_err(AppError::output)
}

/// Replays one series with a store, a clock and a feed of its own.
async fn one(
    series: &Series,
    number: usize,
    without: &Without,
    print: impl FnMut(DocumentReport),
) -> Result<(), AppError> {
    let failed =
        |error: &dyn std::error::Error| AppError::run("the replay failed", in_words(error));
    let first = series.documents.first().map_or(Time::MIN, |d| d.time);
    let endpoint = EndpointId::own(ENDPOINT).map_err(|e| failed(&e))?;
    let store = Store::in_memory(Some(endpoint), Arc::new(ManualClock::at(first)));
    let store = store.map_err(|e| failed(&e))?;
    let feed = FeedName::new(&format!("replay-{}", number + 1)).map_err(|e| failed(&e))?;
    let polling = Polling::default();
    let bounds = Bounds::new(polling.min_interval, polling.max_interval);
    let hints = UpdateHints::default();
    let interval = |changes: &[Time], decision_due: Option<Time>, now: Time| {
        let mut oldest_first = changes.iter().rev();
        let mut rate = UpdateRate::since(oldest_first.next().copied().unwrap_or(now));
        oldest_first.for_each(|change| rate = rate.after_change(*change));
        replay_interval(&feed, bounds, rate, &hints, decision_due, now)
    };
    let publish = Publish::default();
    let stage = ReplayTarget {
        store: &store,
        feed: feed.clone(),
        options: FeedOptions { without: without.clone(), ..FeedOptions::default() },
        window: publish.window,
        versions_per_day: publish.versions_per_day,
        interval: &interval,
    };
    replay::series(stage, series, print).await.map_err(|error| match error {
        replay::ReplayError::Read { .. } => AppError::Input(in_words(&error)),
        _ => AppError::run("the replay failed", in_words(&error)),
    })
}

fn print(out: &mut impl Write, line: &DocumentReport, json: bool) -> std::io::Result<()> {
    if json {
        return writeln!(out, "{}", printable_json(&serde_json::to_string(line)?));
    }
    let mut lines = vec![format!("{} {}: {}", line.n, line.file, line.outcome.name())];
    lines.extend(line.events.iter().map(PrintedEvent::describe));
    lines.extend(line.pending.iter().map(PrintedPending::describe));
    lines.extend(line.notes.iter().map(|note| format!("  note: {note}")));
    for (what, words) in [("held", &line.held), ("error", &line.error)] {
        lines.extend(words.iter().map(|words| format!("  {what}: {words}")));
    }
    lines.iter().try_for_each(|line| writeln!(out, "{}", printable(line)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_replay::DocumentOutcome;

    #[test]
    fn what_documents_say_does_nothing_on_a_terminal() {
        let hostile = "a\u{1b}[2J\u{0}\u{7}\u{9b}31m\u{202e}\nb";
        let report = DocumentReport {
            n: 1,
            file: hostile.to_owned(),
            outcome: DocumentOutcome::Failed,
            events: Vec::new(),
            held: Some(hostile.to_owned()),
            error: Some(hostile.to_owned()),
            pending: Vec::new(),
            notes: vec![hostile.to_owned()],
        };
        for json in [false, true] {
            let mut out = Vec::new();
            print(&mut out, &report, json).unwrap();
            let said = String::from_utf8(out).unwrap();
            let acts = |c: char| c != '\n' && c.is_control() || c == '\u{202e}';
            assert!(!said.contains(acts), "{said:?}");
            assert_eq!(said.lines().count(), if json { 1 } else { 4 }, "{said:?}");
        }
    }
}
