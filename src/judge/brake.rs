//! The brake: documents that say too much at once are held until they are confirmed or heal.

use super::JudgeInput;
use super::window::{WindowShift, date_of, dated};
use crate::identity::Basis;
use std::time::Duration;
use tidegate_core::model::{Completeness, Hold, Time};
use tidegate_core::xml::plain_address::plain_link;

/// Why a document is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Braked {
    /// The rule: `empty`, `other-feed`, `shrunken`, `re-keyed`, `mass-changed`.
    pub kind: &'static str,
    /// The evidence in words.
    pub reason: String,
}

/// A share of fewer items than this says nothing.
const LEAST_ITEMS: usize = 4;
/// Where a publisher comes with so many different documents in a row that say the same, it means
/// it.
const INSISTING_DOCUMENTS: u32 = 3;
/// How often a held document must be seen before it is believed.
const AGREEING_POLLS: u32 = 3;
/// How long at least.
const SHORT_HOLD: Duration = Duration::from_secs(30 * 60);
/// How long at least where believing it takes items away.
const LONG_HOLD: Duration = Duration::from_secs(6 * 3600);
/// How long at most; and how long an empty document is held.
const LONGEST_HOLD: Duration = Duration::from_secs(24 * 3600);
/// How soon a held feed is polled again.
const HOLD_POLL: Duration = Duration::from_secs(15 * 60);

/// The rule for documents of another feed.
pub const OTHER_FEED: &str = "other-feed";
/// The rule for documents of which most is gone.
pub(super) const SHRUNKEN: &str = "shrunken";
/// The rule for documents of which most has other ids.
pub(super) const RE_KEYED: &str = "re-keyed";
/// The rule for documents of which most changed.
pub(super) const MASS_CHANGED: &str = "mass-changed";

/// The names of the rules, in their order.
pub const BRAKES: [&str; 5] = ["empty", OTHER_FEED, SHRUNKEN, RE_KEYED, MASS_CHANGED];

/// Whether a document must be held, by the first rule that says so.
pub fn brake(scene: &JudgeInput<'_>, window: &WindowShift) -> Option<Braked> {
    let is_on = |kind: &str| !scene.options.without.has(kind);
    let shown = window.old.len();
    if shown == 0 {
        return None;
    }
    // What readers are not shown counts among what is known of the last document.
    let before = shown + window.below.len() + window.below_gone.len();
    let found = scene.document.entries.len();
    let strangers = window.outgoing == shown && window.below.is_empty();
    // What the gateway has seen of it before shows that a new address leads to the same feed.
    let new_strangers = strangers && scene.moved && scene.matching.pairs.len() * 2 < found;
    if scene.document.completeness != Completeness::Full {
        // A part is as good as its address.
        return (new_strangers && is_on(OTHER_FEED)).then(|| another_feed(scene, before));
    }
    if found == 0 && is_on("empty") {
        let reason = format!("the document is empty, the last one had {before} items");
        return Some(Braked { kind: "empty", reason });
    }
    let other =
        new_strangers || strangers && (is_another_site(scene) || has_other_past(scene, window));
    if other && is_on(OTHER_FEED) {
        return Some(another_feed(scene, before));
    }
    let incoming = window.incoming.len();
    let mostly = |share: usize| share * 2 > before && share >= LEAST_ITEMS;
    let gone = window.outgoing + window.below_gone.len();
    let is_most = window.outgoing * 2 > shown && gone * 2 > before;
    let shrank = is_most && incoming * 2 < gone && before >= 3;
    if shrank && is_on(SHRUNKEN) {
        let reason = format!(
            "{gone} of {before} items are gone at once and only {incoming} came in their place"
        );
        return Some(Braked { kind: SHRUNKEN, reason });
    }
    let renamed = renamed(scene);
    if mostly(renamed) && is_on(RE_KEYED) {
        let reason = format!("{renamed} of {before} items have other ids at once");
        return Some(Braked { kind: RE_KEYED, reason });
    }
    let changed = scene.changed();
    if mostly(changed) && is_on(MASS_CHANGED) {
        let reason = format!("{changed} of {before} items changed at once");
        return Some(Braked { kind: MASS_CHANGED, reason });
    }
    None
}

fn another_feed(scene: &JudgeInput<'_>, before: usize) -> Braked {
    let from = if is_another_site(scene) {
        let site = scene.document.head.link.as_deref();
        format!("those that are come from {}", site.unwrap_or("another feed"))
    } else if scene.moved {
        "the address is a new one".to_owned()
    } else {
        "those that are come from the same time or before".to_owned()
    };
    let reason = format!("none of the last {before} items is in it, and {from}");
    Braked { kind: OTHER_FEED, reason }
}

/// How many items go by other ids. Where the operator gave the feed another address, ids that
/// differ in scheme and host alone are no surprise; addresses with a parameter that changes at each
/// poll never are.
fn renamed(scene: &JudgeInput<'_>) -> usize {
    let rotates = |basis: Basis| basis.is_same_but_for_query() && basis.has_title();
    let expected = |basis: Basis| scene.moved && basis.is_same_but_for_host() || rotates(basis);
    let renames = scene.matching.pairs.iter().filter(|p| p.basis.is_rename() && !expected(p.basis));
    renames.count()
}

/// Whether the document's items are not newer than those of the last one, none of which it has: a
/// busy feed that turns over its whole window moves on, another feed has a past of its own.
fn has_other_past(scene: &JudgeInput<'_>, window: &WindowShift) -> bool {
    let known = |at: &usize| scene.snapshot.known.get(*at).and_then(date_of);
    let newest = window.old.iter().filter_map(known).max();
    let dates: Vec<Time> = scene.document.entries.iter().filter_map(dated).collect();
    let moved_on = |newest: Time| dates.iter().filter(|date| **date > newest).count();
    let enough = dates.len() >= LEAST_ITEMS;
    newest.is_some_and(|newest| enough && moved_on(newest) * 2 < dates.len())
}

/// Whether the document says that it belongs to another site than the last one.
fn is_another_site(scene: &JudgeInput<'_>) -> bool {
    let host = |address: &str| plain_link(address).split(['/', '?', '#']).next().map(str::to_owned);
    let head = &scene.document.head;
    let site = head.link.as_deref().or(head.id.as_deref()).and_then(host);
    let before = scene.snapshot.state.site.as_deref().and_then(host);
    matches!((site, before), (Some(now), Some(before)) if now != before)
}

/// What a held document waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldTerms {
    /// How long it must have stood, at least.
    pub least: Duration,
    /// How often it must have been seen in that time.
    pub looks: u32,
    /// After this time it is believed whatever it is; twice seen is enough then.
    pub most: Duration,
    /// So many different documents in a row that say the same are believed at once.
    pub documents: Option<u32>,
}

/// The terms of a rule.
pub fn hold_terms(kind: &str) -> HoldTerms {
    let insists = matches!(kind, MASS_CHANGED | RE_KEYED);
    let least = match kind {
        "empty" => LONGEST_HOLD,
        OTHER_FEED | SHRUNKEN => LONG_HOLD,
        _ => SHORT_HOLD,
    };
    let documents = insists.then_some(INSISTING_DOCUMENTS);
    HoldTerms { least, looks: AGREEING_POLLS, most: LONGEST_HOLD, documents }
}

/// Whether a hold has been confirmed: seen often enough for long enough.
pub fn hold_is_ripe(hold: &Hold, now: Time) -> bool {
    let terms = hold_terms(&hold.kind);
    let stood = now.since(hold.since);
    terms.documents.is_some_and(|enough| hold.documents >= enough)
        || (stood >= terms.most && hold.observations > 1)
        || (stood >= terms.least && hold.observations >= terms.looks)
}

/// When a held feed is polled again.
pub fn next_look(now: Time) -> Time {
    now.plus(HOLD_POLL)
}
