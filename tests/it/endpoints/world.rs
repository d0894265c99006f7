//! Five endpoints that share one list, what they do to it, and how they exchange it.

use super::gate::{self, Gate};
use super::plain::{self, Endpoint, FORMS, Form, Item, Items, Update, Version, normal};
use crate::support::prelude::*;
use crate::support::{first_part, sharing};
use proptest::prelude::*;
use tidegate_judge::record::local::{Act, ItemAct, Resolution};

/// How many of them are Tidegate; the others come behind them.
const GATES: usize = 3;
pub const ENDPOINTS: usize = 5;
/// After how many rounds of all with all they must be at rest. What one of them has reaches the
/// others in the first; where all are right nothing is left for the second but what the first
/// brought to those that were asked early.
const ROUNDS: usize = 6;

/// What an endpoint does; items by the number of their creation.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// An item, with this flag `noconflicts`.
    Create(Option<bool>),
    Edit(usize),
    Delete(usize),
    /// With what it said last, or with a new text.
    Restore(usize, bool),
    /// Conflicts whose bit is set; the winner is kept, the n-th conflict, or something new.
    Resolve(usize, u8, usize),
    /// The endpoint reads what another one publishes, whole or what is new, in a form.
    Read(usize, bool, usize, Fate),
    /// It opens its store again, or moves it, where it has one.
    Restart(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Arrives,
    Lost,
    /// Ends early, at this part of 256.
    Cut(u8),
    Overtaken,
}

#[derive(Debug, Clone)]
pub struct Step {
    pub at: usize,
    pub what: What,
    /// 0: without `by`, 1: without `when`, else both. Tidegate writes both always.
    pub stamp: u8,
    /// What a skewed clock shows.
    pub skew: i64,
}

pub fn step() -> impl Strategy<Value = Step> {
    let flag = prop_oneof![4 => Just(None), 1 => Just(Some(false)), 1 => Just(Some(true))];
    let fate = prop_oneof![
        6 => Just(Fate::Arrives),
        1 => Just(Fate::Lost),
        1 => any::<u8>().prop_map(Fate::Cut),
        1 => Just(Fate::Overtaken),
    ];
    let item = || 0..5_usize;
    let what = prop_oneof![
        2 => flag.prop_map(What::Create),
        6 => item().prop_map(What::Edit),
        2 => item().prop_map(What::Delete),
        2 => (item(), any::<bool>()).prop_map(|(item, anew)| What::Restore(item, anew)),
        3 => (item(), any::<u8>(), item()).prop_map(|(it, bits, keep)| What::Resolve(it, bits, keep)),
        12 => (0..ENDPOINTS, any::<bool>(), 0..FORMS.len(), fate)
            .prop_map(|(from, whole, form, fate)| What::Read(from, whole, form, fate)),
        1 => any::<bool>().prop_map(What::Restart),
    ];
    let step = (0..ENDPOINTS, what, 0..6_u8, 0..4_i64);
    step.prop_map(|(at, what, stamp, skew)| Step { at, what, stamp, skew })
}

/// What a plain endpoint does to the winner, beside its conflicts.
type Changing<'a> = Box<dyn Fn(&mut Version, &[Version]) + 'a>;

#[derive(Default)]
pub struct World {
    gates: Vec<Gate>,
    plain: Vec<Endpoint>,
    /// Ids in the order in which they were created, with the flag that their creator set.
    created: Vec<(String, Option<bool>)>,
    made: Vec<(String, Update)>,
    /// `until` of the publisher as the subscriber knows it (section 4.1), by (subscriber, publisher).
    until: BTreeMap<(usize, usize), String>,
    /// The document that each subscriber took in last.
    last: BTreeMap<usize, String>,
    step: i64,
}

impl World {
    pub async fn new() -> Self {
        let mut gates = Vec::new();
        for (number, hours) in (0..GATES).zip([0, 5, -3]) {
            let now = Time::from_unix(START + hours * HOUR);
            gates.push(Gate::new(&format!("gate-{number}.example"), now).await);
        }
        let plain = (GATES..ENDPOINTS).map(|at| Endpoint::new(&format!("plain:{at}")));
        Self { gates, plain: plain.collect(), ..Self::default() }
    }

    fn stamp(&self, step: &Step) -> (Option<i64>, bool) {
        match step.stamp {
            // A second of its own, so that no two updates without `by` are taken for one.
            0 => (Some(START + 1_000_000 + self.step), false),
            1 => (None, true),
            _ => (Some(START + step.skew * 4000), true),
        }
    }

    async fn items(&self, at: usize, form: Form) -> Items {
        match self.gates.get(at) {
            Some(gate) => gate.says(form).await,
            None => self.plain[at - GATES].items.clone(),
        }
    }

    async fn item(&self, at: usize, number: usize) -> Option<(String, Item)> {
        let (id, _) = self.created.get(number)?;
        let item = self.items(at, FORMS[0]).await.remove(id)?;
        Some((id.clone(), item))
    }

    pub async fn go(&mut self, step: &Step) {
        self.step += 1;
        match step.what {
            What::Create(noconflicts) => self.create(step, noconflicts).await,
            What::Read(from, whole, form, fate) if from != step.at => {
                self.read(step.at, from, whole, FORMS[form], fate).await;
            }
            What::Read(..) => {}
            What::Restart(moves) => {
                if let Some(gate) = self.gates.get_mut(step.at) {
                    gate.restart(moves).await;
                }
            }
            What::Edit(at) | What::Delete(at) | What::Restore(at, _) | What::Resolve(at, ..) => {
                let Some((id, item)) = self.item(step.at, at).await else { return };
                self.change(step, &id, &item).await;
            }
        }
    }

    fn text(&self, step: &Step) -> String {
        format!("{} of {}", self.step, step.at)
    }

    async fn create(&mut self, step: &Step, noconflicts: Option<bool>) {
        let (text, stamp) = (self.text(step), self.stamp(step));
        let id = match self.gates.get_mut(step.at) {
            Some(gate) => {
                let entry = gate::written(&text);
                gate.act(Act::Create { entry, noconflicts }).await.id.to_string()
            }
            None => {
                let id = format!("plain:{}:{}", step.at, self.step);
                self.plain[step.at - GATES].create(&id, &text, stamp, noconflicts);
                id
            }
        };
        self.created.push((id.clone(), noconflicts));
        let made = self.item(step.at, self.created.len() - 1).await.unwrap().1;
        self.made.push((id, made.winner.history[0].clone()));
    }

    /// Updates, deletes, restores or resolves an item, as far as that can be done.
    async fn change(&mut self, step: &Step, id: &str, item: &Item) {
        let (text, stamp) = (self.text(step), self.stamp(step));
        let (is_deleted, have) = (item.winner.deleted, item.conflicts.len());
        let written = || gate::written(&text);
        let anew = |version: &mut Version, _: &[Version]| version.say(&text);
        let deleted =
            |deleted: bool| move |version: &mut Version, _: &[Version]| version.deleted = deleted;
        let item_act = |how| Act::Change { id: sharing::id(id), how, expected: None };
        let mut considered = Vec::new();
        let (act, how): (Act, Changing<'_>) = match step.what {
            What::Edit(_) if !is_deleted => (item_act(ItemAct::Update(written())), Box::new(anew)),
            What::Delete(_) if !is_deleted => (item_act(ItemAct::Delete), Box::new(deleted(true))),
            What::Edit(_) | What::Restore(_, true) if is_deleted => {
                (item_act(ItemAct::Restore(Some(written()))), Box::new(anew))
            }
            What::Restore(_, false) if is_deleted => {
                (item_act(ItemAct::Restore(None)), Box::new(deleted(false)))
            }
            What::Resolve(_, bits, keep) if have > 0 => {
                considered = (0..have.min(8)).filter(|n| bits & (1 << n) != 0).collect();
                let taken = keep.checked_sub(2).filter(|taken| *taken < have);
                // What is taken is resolved.
                considered.extend(taken.filter(|taken| !considered.contains(taken)));
                let (keep, how): (_, Changing<'_>) = match (keep, taken) {
                    (0, _) => (Resolution::Winner, Box::new(|_, _| {})),
                    (_, Some(n)) => (
                        Resolution::Conflict(n),
                        Box::new(move |version, conflicts| version.take(&conflicts[n])),
                    ),
                    _ => (Resolution::New(written()), Box::new(anew)),
                };
                let conflicts = Some(considered.clone());
                (Act::Resolve { id: sharing::id(id), keep, conflicts, expected: None }, how)
            }
            _ => return,
        };
        let update = match self.gates.get_mut(step.at) {
            Some(gate) => {
                gate.act(act).await;
                gate.says(FORMS[0]).await[id].winner.history[0].clone()
            }
            None => self.plain[step.at - GATES].change(id, stamp, &considered, how),
        };
        self.made.push((id.to_owned(), update));
    }

    /// Sections 4.1.1 and 4.1.2: `to` reads a feed of `from`. Whether that changed anything.
    async fn read(&mut self, to: usize, from: usize, whole: bool, form: Form, fate: Fate) -> bool {
        let since = self.until.get(&(to, from)).filter(|_| !whole).cloned();
        let text = match self.gates.get(from) {
            Some(gate) => match gate.render(form, since.as_deref()).await {
                Some(text) => text,
                None => return false,
            },
            None => self.plain[from - GATES].render(form.dialect, since.as_deref()),
        };
        match fate {
            Fate::Lost => false,
            Fate::Cut(part) => self.take(to, from, first_part(&text, part)).await,
            Fate::Arrives | Fate::Overtaken => {
                let older = self.last.insert(to, text.clone());
                let mut any = self.take(to, from, &text).await;
                if let Some(older) = older.filter(|_| fate == Fate::Overtaken) {
                    // It says nothing of how far its publisher is known now.
                    let known = self.until.clone();
                    any |= self.take(to, from, &older).await;
                    self.until = known;
                }
                any
            }
        }
    }

    async fn take(&mut self, to: usize, from: usize, text: &str) -> bool {
        let read = plain::read(text);
        let any = match self.gates.get_mut(to) {
            // Of a document that ends early the whole entries are taken in.
            Some(gate) => gate.take(text).await.unwrap_or(0) > 0,
            None => read.as_ref().is_some_and(|(_, items)| self.plain[to - GATES].take(items)),
        };
        if let Some((Some(until), _)) = read {
            self.until.insert((to, from), until);
        }
        any
    }

    /// Everybody reads everybody until nothing changes; says what is wrong then.
    pub async fn settle(&mut self) -> Result<(), String> {
        for round in 0..ROUNDS {
            let mut any = false;
            for to in 0..ENDPOINTS {
                for from in (0..ENDPOINTS).filter(|from| *from != to) {
                    let form = FORMS[(to + from + round) % FORMS.len()];
                    any |= self.read(to, from, true, form, Fate::Arrives).await;
                }
            }
            if !any {
                return self.compare().await;
            }
        }
        Err(format!("after {ROUNDS} rounds something still changes"))
    }

    async fn compare(&self) -> Result<(), String> {
        let mut all = Vec::new();
        for at in 0..ENDPOINTS {
            let items = self.items(at, FORMS[at % FORMS.len()]).await;
            all.push(items.iter().map(|(id, item)| (id.clone(), normal(item))).collect::<Items>());
        }
        let first = all.last().unwrap();
        let created: BTreeSet<&String> = self.created.iter().map(|(id, _)| id).collect();
        if !first.keys().eq(created.iter().copied()) {
            return Err(format!("{:?} are there, {created:?} were created", first.keys()));
        }
        for (at, items) in all.iter().enumerate() {
            if let Some((one, other)) = items.iter().zip(first).find(|(one, other)| one != other) {
                return Err(format!("{at} has {one:#?}, the last one {other:#?}"));
            }
            if items.len() != first.len() {
                return Err(format!("{at} has {:?}", items.keys()));
            }
        }
        for (id, update) in &self.made {
            let flag = self.created.iter().find(|(created, _)| created == id).unwrap().1;
            if flag != first[id].winner.noconflicts {
                return Err(format!("{id} was created with noconflicts {flag:?}: {:?}", first[id]));
            }
            // Who wants no conflicts loses what lost.
            if flag != Some(true) && !plain::knows(&first[id], update) {
                return Err(format!("{update:?} of {id} is lost: {:#?}", first[id]));
            }
        }
        Ok(())
    }
}

pub fn play(steps: &[Step]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut world = World::new().await;
        for step in steps {
            world.go(step).await;
        }
        world.settle().await
    })
}
