//! A plan from its first document to its last: what the publisher shows, what the gateway makes of
//! it, and what of that is wrong.

use crate::publishers::gate::{Gate, Seen};
use crate::publishers::plan::{Action, Glitch, PathStyle, Plan, Window};
use crate::publishers::publisher::Publisher;
use crate::publishers::truth::{Failure, InForce, Truth};
use crate::publishers::write;
use crate::support::HOUR;
use std::collections::BTreeMap;
use tidegate_core::model::{Completeness, Time};

/// How long the last document stands.
const LAST: i64 = 120 * HOUR;
/// A document with something missing by accident, or most of it, stands at most so long.
const ACCIDENT_HOURS: i64 = 5;

struct Story {
    publisher: Publisher,
    gate: Gate,
    truth: Truth,
    told: Vec<String>,
}

pub struct Told {
    /// What went wrong, in order; the story ends there.
    pub failures: Vec<Failure>,
    /// What happened, a line for each document and, indented, what the gateway made of it.
    pub lines: Vec<String>,
    pub checked: BTreeMap<&'static str, u64>,
}

pub fn tell(plan: &Plan) -> Told {
    let mut story = Story {
        publisher: Publisher::new(&plan.site, plan.posts),
        gate: Gate::new(),
        truth: Truth::default(),
        told: Vec::new(),
    };
    story.show("the first document", 6 * HOUR);
    let mut deleted: Option<u32> = None;
    for step in &plan.steps {
        story.step(&step.action, i64::from(step.hours) * HOUR, &mut deleted);
        if !story.truth.failures.is_empty() {
            return story.end();
        }
    }
    story.publisher.advance(1);
    let shown = story.publisher.shown();
    story.show("the last document", LAST);
    let force = InForce { publisher: &story.publisher, shown: &shown, glitch: false };
    if let Some(snapshot) = story.gate.snapshot() {
        story.truth.at_the_end(&force, &story.gate.reader(), &snapshot);
    }
    story.end()
}

impl Story {
    fn end(self) -> Told {
        let Truth { failures, checked, .. } = self.truth;
        Told { failures, lines: self.told, checked }
    }

    fn step(&mut self, action: &Action, stays: i64, deleted: &mut Option<u32>) {
        let words = format!("{action:?}");
        match action {
            Action::Quiet => {}
            Action::Post(count) => self.publisher.post(usize::from(*count)),
            Action::Burst => self.publisher.post(self.publisher.window_size()),
            Action::Edit(at) => {
                if let Some(number) = self.publisher.pick(*at) {
                    self.publisher.edit(number);
                }
            }
            Action::EditAll => {
                let all: Vec<u32> = self.publisher.posts.iter().map(|p| p.number).collect();
                all.into_iter().for_each(|number| self.publisher.edit(number));
            }
            Action::Delete(at) => *deleted = self.delete(*at, 0).or(*deleted),
            Action::DeleteAndPost(at, new) => {
                *deleted = self.delete(*at, usize::from(*new)).or(*deleted);
            }
            Action::Restore => {
                if let Some(number) = deleted.take() {
                    let post = self.publisher.get_mut(number);
                    (post.alive, post.restored) = (true, true);
                }
            }
            Action::Lose(at, twice) => return self.lose(*at, *twice, &words, stays),
            Action::Rename(rename) => self.publisher.rename(rename),
            Action::Glitch(glitch) => return self.glitch(glitch, &words, stays),
            Action::Reemit(at) => {
                let now = self.publisher.now;
                if let Some(number) = self.publisher.pick_old(*at) {
                    // Where the date is in its address, it is renamed as well.
                    let dated = self.publisher.site.path == PathStyle::Date;
                    let seen = dated && !self.publisher.site.unlinked;
                    let post = self.publisher.get_mut(number);
                    post.renamed |= dated;
                    post.revision += u32::from(seen);
                    post.when = now - 1;
                    post.updated = now - 1;
                }
            }
            Action::Swell(more) => {
                self.publisher.swollen = usize::from(*more);
                self.show(&words, stays);
                self.publisher.swollen = 0;
                return;
            }
            Action::Twice(at) => {
                if let Some(number) = self.publisher.pick(*at) {
                    let mut shown = self.publisher.shown();
                    shown.push(number);
                    self.truth.listed_twice(number);
                    let text = write::document(&self.publisher, &shown);
                    return self.stand(&words, &text, &shown, false, stays);
                }
            }
        }
        self.show(&words, stays);
    }

    fn delete(&mut self, at: u16, new: usize) -> Option<u32> {
        let number = self.publisher.pick(at)?;
        self.publisher.get_mut(number).alive = false;
        if new > 0 {
            self.publisher.post(new);
        }
        Some(number)
    }

    fn lose(&mut self, at: u16, twice: bool, words: &str, stays: i64) {
        let Some(number) = self.publisher.pick(at) else { return };
        self.publisher.get_mut(number).lost = true;
        self.show(words, stays.min(ACCIDENT_HOURS * HOUR));
        if twice {
            self.show("still lost", stays.min(ACCIDENT_HOURS * HOUR));
        }
        let post = self.publisher.get_mut(number);
        (post.lost, post.restored) = (false, true);
        self.show("found again", stays);
    }

    fn glitch(&mut self, glitch: &Glitch, words: &str, stays: i64) {
        let text = write::glitch(&self.publisher, glitch);
        // One that says that it lists everything, and is empty for days, means it.
        let complete = self.publisher.site.window == Window::Complete;
        let most = match glitch {
            Glitch::Shrunken(_) | Glitch::IllFormed(_) => stays.min(ACCIDENT_HOURS * HOUR),
            Glitch::Empty if complete => stays.min(ACCIDENT_HOURS * HOUR),
            _ => stays,
        };
        let shown = self.publisher.shown();
        self.stand(words, &text, &shown, true, most);
        self.show("healed", HOUR);
    }

    /// The document that the publisher means, for so long.
    fn show(&mut self, words: &str, stays: i64) {
        let shown = self.publisher.shown();
        let text = write::document(&self.publisher, &shown);
        self.stand(words, &text, &shown, false, stays);
    }

    fn stand(&mut self, words: &str, text: &str, shown: &[u32], glitch: bool, stays: i64) {
        if !self.truth.failures.is_empty() {
            return;
        }
        let begin = self.publisher.now;
        let apart = i64::from(self.publisher.site.poll_minutes) * 60;
        let size = if glitch { format!("{} bytes", text.len()) } else { format!("{shown:?}") };
        self.told.push(format!("{}: {words}: {size}", Time::from_unix(begin)));
        let mut now = begin;
        while now < begin + stays && self.truth.failures.is_empty() {
            if let Some(seen) = self.gate.poll(text.as_bytes(), Time::from_unix(now)) {
                self.tell(&seen, now);
                let force = InForce { publisher: &self.publisher, shown, glitch };
                self.truth.seen(&seen, &force, &self.gate.reader());
            }
            now += apart;
        }
        self.publisher.advance(stays);
    }

    fn tell(&mut self, seen: &Seen, now: i64) {
        let at = Time::from_unix(now);
        if let Some(Completeness::Salvaged(why)) = &seen.taken {
            self.told.push(format!("  {at}: salvaged, {why}"));
        }
        if let Some(held) = &seen.held {
            self.told.push(format!("  {at}: held, {held}"));
        }
        for event in seen.change.iter().flat_map(|c| &c.events) {
            if self.told.len() > 1 {
                let (kind, title) = (event.kind.name(), &event.title);
                let line =
                    format!("  {at}: {kind} {title} ({}): {}", event.native_id, event.reason);
                self.told.push(line);
            }
        }
    }
}
