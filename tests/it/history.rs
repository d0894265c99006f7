//! A feed can be read back to its beginning, by whoever follows Feed History or SSE, whatever its
//! publisher does and whenever they come; and what was sealed once never changes.

mod consumers;
mod past;
mod publisher;
mod site;
use crate::support;
use crate::support::prelude::*;

use crate::support::document::Document;
use consumers::{Historian, Readers, Subscriber, Way};
use proptest::option;
use proptest::prelude::*;
use publisher::{Act, Publisher};
use regex::Regex;
use site::{Held, READER, SYNC, Site};
use std::sync::LazyLock;
use tidegate_core::model::EventKind::{self, Deleted, Undeleted};
use tidegate_judge::archive::Policy;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// What happens between two polls, and who comes after the second.
#[derive(Debug, Clone)]
struct Step {
    acts: Vec<Act>,
    hours: i64,
    visitors: [bool; 5],
    newcomer: bool,
    older: bool,
    redacted: Option<u8>,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (1_u8..4).prop_map(Act::Publish),
        1 => (8_u8..20).prop_map(Act::Publish),
        3 => any::<u8>().prop_map(Act::Edit),
        1 => any::<u8>().prop_map(Act::Rename),
        2 => any::<u8>().prop_map(Act::Delete),
        2 => any::<u8>().prop_map(Act::Drop),
        1 => Just(Act::Restore),
        1 => any::<u8>().prop_map(Act::Noise),
        1 => any::<bool>().prop_map(Act::Glitch),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let hours = prop_oneof![8 => 1_i64..40, 1 => 100_i64..1500];
    let acts = proptest::collection::vec(act(), 0..3);
    let comes = prop::bool::weighted(0.15);
    let visitors = [comes; 5];
    let seldom = || prop::bool::weighted(0.05);
    let redacted = option::weighted(0.08, any::<u8>());
    let step = |(acts, hours, visitors, newcomer, older, redacted)| Step {
        acts,
        hours,
        visitors,
        newcomer,
        older,
        redacted,
    };
    (acts, hours, visitors, seldom(), seldom(), redacted).prop_map(step)
}

fn keeping_all() -> impl Strategy<Value = Policy> {
    let entries = prop_oneof![1 => Just(1_u32), 2 => 2_u32..8, 2 => Just(20_u32)];
    entries.prop_map(|entries| Policy { entries, ..Policy::default() })
}

/// However little is kept: whoever follows the archives back finds all that lives in its last state.
fn keeping_little() -> impl Strategy<Value = Policy> {
    let (age, bytes) = (option::of(1_u64..400), option::of(0_u64..20_000));
    let policy = (1_u32..8, 1_u64..8, age, bytes);
    policy.prop_map(|(entries, kept, age, bytes)| {
        let age = age.map(|hours| Duration::from_secs(hours * 3600));
        Policy { entries, kept, age, bytes }
    })
}

/// Whether a copy is what the specification promises: exactly the living items where deletions are
/// honoured, every living item in its last version where not.
fn check(historian: &Historian, held: &BTreeMap<String, Held>, rss: bool) {
    let living: Vec<&Held> = held.values().filter(|item| !item.deleted).collect();
    for item in &living {
        let copy = historian.entries.get(&item.published_id);
        let copy = copy.unwrap_or_else(|| panic!("{item:?} is missing in {historian:?}"));
        assert_eq!(
            (&copy.title, &copy.text, copy.updates),
            (&item.title, &item.text, item.updates),
            "{historian:?}"
        );
    }
    if historian.honours && !rss {
        // A tombstone that left says nothing to who was away for as long as they are kept.
        let deleted = held.values().filter(|item| item.deleted);
        let mut kept = deleted.filter(|item| historian.entries.contains_key(&item.published_id));
        assert_eq!(kept.next().map(|item| &item.title), None, "{historian:?} of {living:?}");
    }
}

fn check_subscriber(subscriber: &Subscriber, held: &BTreeMap<String, Held>) {
    // A tombstone that is too old for the gateway says nothing else to who has it.
    let more = subscriber.entries.iter().filter(|(id, _)| !held.contains_key(*id));
    assert!(more.into_iter().all(|(_, copy)| copy.deleted), "what is gone lives on");
    for (id, item) in held {
        let copy = &subscriber.entries[id];
        assert_eq!((copy.updates, copy.deleted), (item.updates, item.deleted));
        assert_eq!(copy.id, item.published_id);
        // Nothing is left of what was redacted.
        assert!(copy.title == item.title || (item.deleted && item.title.is_empty()), "{copy:?}");
        // What a tombstone shows is a notice.
        assert!(item.deleted || copy.text == item.text, "{copy:?} is not {item:?}");
    }
}

/// Readers know the same, with deltas and without. What merely left the document stays with who merges; what was taken
/// away does not.
fn check_readers(readers: &Readers, held: &BTreeMap<String, Held>) {
    for (id, entry) in &readers.whole {
        assert_eq!(readers.by_deltas.get(id), Some(entry), "{id} by deltas");
    }
    for item in held.values().filter(|item| item.deleted) {
        let is_there = readers.by_deltas.contains_key(&item.published_id);
        let lives = held.values().any(|it| !it.deleted && it.published_id == item.published_id);
        assert!(!is_there || lives, "{item:?} was taken away and stands there by deltas");
    }
}

struct World {
    publisher: Publisher,
    site: Site,
    last: Option<String>,
    rss: bool,
    /// The sync id and the published id of what was redacted.
    redacted: BTreeMap<String, String>,
    /// By its id the text of each archive, its link to the next one, and its tag.
    archives: BTreeMap<String, (String, Option<String>, String)>,
}

impl World {
    async fn new(policy: Policy, window: usize, rss: bool, deletions: Deletions) -> Self {
        let mut gate = Gate::new().await;
        gate.archives = policy;
        gate.options.deletions = deletions;
        // Whole hours pass in a story, so that nothing leaves the window within a second of a poll.
        gate.window += Duration::from_secs(1800);
        let site = Site::new(gate).await;
        let publisher = Publisher::new(window, rss);
        let (redacted, archives) = (BTreeMap::new(), BTreeMap::new());
        let mut world = Self { publisher, site, last: None, rss, redacted, archives };
        world.poll().await;
        world
    }

    async fn poll(&mut self) {
        let text = self.publisher.document();
        let gate = &mut self.site.gate;
        gate.age().await;
        // The gateway polls again and again; what must be confirmed is.
        if self.last.as_ref() == Some(&text) {
            gate.same().await;
        } else {
            gate.take(&text).await;
            self.last = Some(text);
        }
    }

    async fn step(&mut self, step: &Step) {
        for act in &step.acts {
            self.publisher.act(act);
        }
        self.site.gate.later(step.hours);
        self.poll().await;
        if step.older {
            self.walk().await;
        }
        if let Some(n) = step.redacted {
            self.redact(n).await;
        }
    }

    async fn redact(&mut self, n: u8) {
        let known = self.site.gate.snapshot().await.known;
        let known: Vec<_> = known.into_iter().filter(|known| !known.is_redacted()).collect();
        if let Some(item) = known.get(usize::from(n) % known.len().max(1)) {
            self.site.gate.redact_item(&item.id).await;
            self.redacted.insert(item.id.to_string(), item.published_id.clone());
        }
    }

    /// Comes to an older document, which changes nothing that readers see.
    async fn walk(&mut self) {
        let titles = |text: &str| -> Vec<String> {
            let entries = Document::read(text).entries.into_iter();
            entries.map(|entry| entry.title).collect()
        };
        let before = titles(&self.site.text(READER).await);
        let older = self.publisher.older();
        assert_eq!(self.site.gate.backfill(&older, &[]).await.taken, 3);
        assert_eq!(titles(&self.site.text(READER).await), before);
    }

    /// Nothing of an archive changes but that the newest comes to lead to the next one, once, and that what is redacted
    /// goes: under the same address, with another tag. How many were sealed again.
    async fn check_archives(&mut self) -> u32 {
        let gate = &self.site.gate;
        let notes = gate.store.archives(&gate.feed, usize::MAX).await.unwrap();
        let newest = gate.store_state().await.updated_at;
        let sealed = std::iter::once(newest).chain(notes.iter().map(|note| note.sealed));
        assert!(sealed.is_sorted_by(|newer, older| newer > older), "{notes:?}");
        let first = gate.store_state().await.archives.first;
        assert!(notes.len() as u64 + first >= self.archives.len() as u64, "an archive is gone");
        let mut resealed = 0;
        for (n, note) in notes.iter().enumerate() {
            let (status, headers, text) =
                self.site.ask(&format!("{READER}/archive/{}", note.id)).await;
            assert_eq!(status, 200, "{text}");
            let (text, next) = without_next(&text);
            assert_eq!(next.is_some(), n > 0, "the newest has none after it, the others have");
            let is_in = |id: &String| text.contains(&format!("sx:sync id=\"{id}\""));
            assert!(!self.redacted.keys().any(is_in), "{text}");
            let tag = headers["etag"].to_str().unwrap().to_owned();
            let now = (text.clone(), next.clone(), tag.clone());
            let Some((old, old_next, old_tag)) = self.archives.insert(note.id.to_string(), now)
            else {
                continue;
            };
            assert!(old_next.is_none() || old_next == next, "{text}");
            if old == text {
                continue;
            }
            let (mut then, mut now) = (Document::read(&old), Document::read(&text));
            let before = then.entries.len();
            then.entries.retain(|entry| !self.redacted.contains_key(&entry.sync_id));
            assert!(then.entries.len() < before && tag != old_tag, "{old}\n{text}");
            assert_eq!(then.entries, now.entries);
            // A deletion of it stands there, unless one that lives bears its id.
            now.deletions.retain(|id| !then.deletions.contains(id));
            assert!(now.deletions.iter().all(|id| self.redacted.values().any(|gone| gone == id)));
            resealed += 1;
        }
        resealed
    }

    async fn check_newcomers(&self) {
        let held = self.site.held().await;
        for mut historian in Historian::all() {
            historian.consume(&self.site).await;
            check(&historian, &held, self.rss);
        }
        let mut subscriber = Subscriber::new(Way::Window);
        subscriber.consume(&self.site).await;
        check_subscriber(&subscriber, &held);
    }
}

/// What a view shows, as `?as-of=` must answer it later.
type Seen = (Vec<(String, u32, bool)>, Vec<String>, Option<String>);

fn seen(text: &str) -> Seen {
    let document = Document::read(text);
    let entries = document.entries.into_iter().map(|e| (e.sync_id, e.updates, e.deleted));
    (entries.collect(), document.deletions, document.until)
}

/// Every view that was seen is answered again as of its time.
async fn check_past(world: &World, moments: &[(Time, &str, Seen)]) {
    let gate = &world.site.gate;
    let left = gate.store.state(&gate.feed).await.unwrap().and_then(|it| it.evictions.latest);
    for (at, view, (entries, deletions, last)) in moments {
        let (status, _, text) = world.site.ask(&format!("{view}?as-of={at}")).await;
        // Something that was in it then is not kept any more, or came back without its older versions.
        if status == 404 && left.is_some() {
            continue;
        }
        assert_eq!(status, 200, "as of {at}: {text}");
        let (found, gone, until) = seen(&text);
        // What was redacted is in no past.
        let kept = entries.iter().filter(|(id, ..)| !world.redacted.contains_key(id));
        assert!(found.iter().eq(kept), "{view} as of {at}: {text}");
        // Which deletions are in no archive yet is said of the present alone.
        if world.redacted.is_empty() && *view == SYNC {
            assert_eq!((&gone, &until), (deletions, last), "as of {at}: {text}");
        }
    }
}

/// What came of all stories, so that they are known to have told something.
#[derive(Debug, Default)]
struct Told {
    /// Deltas, whole documents instead of one, subscribers that began anew, and archives that were sealed again.
    counts: [u32; 4],
    events: BTreeSet<EventKind>,
}

async fn story(mut world: World, steps: &[Step]) -> Told {
    let mut moments = Vec::new();
    let mut historians = Historian::all();
    let mut subscribers = [Way::Window, Way::Since, Way::Delta].map(Subscriber::new);
    let (mut readers, mut resealed) = (Readers::default(), 0);
    let keeps_all = world.site.gate.archives.kept == Policy::KEPT;
    for (n, step) in steps.iter().enumerate() {
        world.step(step).await;
        let last = n + 1 == steps.len();
        // Two commits of one poll take two seconds.
        let at = world.site.gate.store_state().await.updated_at.max(world.site.gate.now);
        let view = [SYNC, READER][n % 2];
        moments.push((at, view, seen(&world.site.text(view).await)));
        let held = world.site.held().await;
        for (historian, comes) in historians.iter_mut().zip(step.visitors) {
            if comes || last {
                historian.consume(&world.site).await;
                // Who was away for longer than anything is kept may have missed a deletion, and is told.
                let mut told = historian.clone();
                told.honours &= told.missing.is_empty();
                check(&told, &held, world.rss);
            }
        }
        for subscriber in subscribers.iter_mut().filter(|_| step.visitors[3] || last) {
            subscriber.consume(&world.site).await;
            check_subscriber(subscriber, &held);
        }
        if step.visitors[4] || last {
            readers.visit(&world.site).await;
            check_readers(&readers, &held);
        }
        if step.newcomer || last || !keeps_all && n % 8 == 0 {
            world.check_newcomers().await;
            // What was rendered is forgotten, so that all of it is rendered anew.
            world.site.forget();
        }
        // What changed meanwhile is seen later as well.
        if n % 4 == 0 || last {
            resealed += world.check_archives().await;
        }
        // There are not many more archives than the limit says and what lives needs.
        let (state, policy) = (world.site.gate.store_state().await, world.site.gate.archives);
        let entries = u64::from(policy.entries);
        let needed = 3 * u64::from(state.living).div_ceil(entries) + 40_u64.div_ceil(entries);
        let kept = state.archives.kept();
        assert!(kept <= policy.kept.saturating_add(needed), "{:?} of {policy:?}", state.archives);
    }
    assert!(historians.iter().all(|historian| !keeps_all || historian.missing.is_empty()));
    let deltas = readers.deltas + subscribers.iter().map(|it| it.deltas).sum::<u32>();
    let resets = subscribers.iter().map(|it| it.resets).sum();
    let events = world.site.gate.store_events().await.into_iter().collect();
    world.site.gate.later(1);
    check_past(&world, &moments).await;
    Told { counts: [deltas, readers.wholes, resets, resealed], events }
}

static TOLD: LazyLock<Mutex<Told>> = LazyLock::new(Mutex::default);

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    fn follow(
        steps in proptest::collection::vec(step(), 5..70),
        policy in prop_oneof![2 => keeping_all().boxed(), 1 => keeping_little().boxed()],
        window in 3_usize..12,
        rss in prop::bool::weighted(0.3),
        eager in any::<bool>(),
        edits in prop::bool::weighted(0.6),
    ) {
        let deletions = if eager { Deletions::Eager } else { Deletions::Safe };
        let mut steps = steps;
        // Little is new and much is old, so that there is something to drop.
        for step in steps.iter_mut().filter(|_| edits && policy.kept < Policy::KEPT) {
            step.acts.retain(|act| !matches!(act, Act::Publish(_) | Act::Restore));
            step.acts.extend([Act::Edit(1), Act::Edit(2), Act::Edit(3)]);
        }
        let told = block_on(async {
            let world = World::new(policy, window, rss, deletions).await;
            story(world, &steps).await
        });
        let mut all = TOLD.lock().unwrap();
        all.counts.iter_mut().zip(told.counts).for_each(|(all, count)| *all += count);
        all.events.extend(told.events);
    }
}

/// Those who start, stop and come back at any time end right, and archives stay what they are.
#[test]
fn whoever_follows_ends_with_what_the_gateway_holds() {
    follow();
    let told = TOLD.lock().unwrap();
    assert!(told.counts.iter().all(|count| *count > 0), "{told:?}");
    assert!([Deleted, Undeleted].iter().all(|kind| told.events.contains(kind)), "{told:?}");
}

/// An archive without its link to the next one, and that link.
fn without_next(text: &str) -> (String, Option<String>) {
    let link = Regex::new("<[^<]*link rel=\"next-archive\"[^>]*/>").unwrap();
    let next = link.find(text).map(|next| next.as_str().to_owned());
    (link.replace(text, "").into_owned(), next)
}
