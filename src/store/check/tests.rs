//! Every rule with a change that breaks it alone.

use super::*;
use crate::conformance::archives::{archive_id, sealing};
use crate::conformance::make::*;
use crate::record::specimen::specimen;
use tidegate_core::model::{ItemStatus, Tick, Version};

/// The state of a feed that has the items `a`, which it shows, and `b`; and a good change: a version of `a`, with the
/// version before in conflict and both in an archive, and the new item `c`.
fn state_and_change() -> (FeedState, Change) {
    let ledger = ["a", "b"].map(|name| (id(name), known(name, 1, tick(5))));
    let (revision, last) = (Revision(1), Some(tick(5)));
    let before = FeedState { revision, tick: last, render_revision: 2, ..state() };
    let draft = Draft::over("news", Some(before.clone()), ledger.into(), 6);
    let draft = draft.item("a", "A").contest("a", vec![lost("a")]).item("c", "C");
    (before, sealing(draft.done(), "one", &["a"]))
}

/// A version that has lost, of bytes that are stored.
fn lost(name: &str) -> Version<Option<tidegate_core::model::Markup>> {
    known(name, 1, tick(5)).version(None)
}

fn stub(name: &str) -> LedgerEntry {
    known(name, 1, tick(5))
}

fn check_spoiled(spoil: impl FnOnce(&mut Change)) -> Result<(), CommitError> {
    let (before, mut change) = state_and_change();
    spoil(&mut change);
    let is_stored = |id: &SyncId| Ok(["a", "b"].contains(&id.as_str()));
    check(&change, Some(&before), &[id("a")], is_stored)
}

#[test]
fn a_change_that_contradicts_itself_or_what_is_stored_is_refused() {
    check_spoiled(|_| ()).unwrap();
    let lists_nothing = "the archive one lists nothing, or something twice";
    let strange_chain = "its chain of archives does not end with its seals";
    let sealed_elsewhere = "it seals up to a tick that its feed has not reached or had left";
    let leaves = "b leaves the ledger and changes, or leaves twice";
    type Spoil = fn(&mut Change);
    let rules: [(&str, Spoil); 43] = [
        ("it has versions and no tick", |c| c.tick = None),
        ("it has the tick 2026-11-20T16:20:11Z and no versions", |c| c.versions.clear()),
        ("its tick 2026-11-20T16:20:10Z is not after the last one", |c| c.tick = Some(tick(5))),
        ("its state does not bear its tick 2026-11-20T16:20:11Z", |c| c.state.tick = None),
        ("its state moves the tick without one", |c| {
            c.versions.clear();
            c.tick = None;
        }),
        ("it keeps entries though nothing is held", |c| c.kept = Some(vec![specimen(1)])),
        ("it has two ledger entries for a", |c| c.known.push(c.known[0].clone())),
        ("it has two versions of a", |c| c.versions.push(c.versions[0].clone())),
        ("it has a version of a and no ledger entry for it", |c| drop(c.known.remove(0))),
        ("the version of a bears another tick than the change", |c| c.known[0].tick = tick(5)),
        ("the version of c has no bytes to keep", |c| c.versions[1].markup = None),
        ("the item c is new without a version", |c| drop(c.versions.pop())),
        ("a is shown anew since 4 and says since 3", |c| c.known[0].touched -= 1),
        ("it has a version of a and newest bytes beside it", |c| {
            c.latest = vec![(id("a"), markup("A"))];
        }),
        ("it has newest bytes of x and no ledger entry for it", |c| {
            c.latest = vec![(id("x"), markup("X"))];
        }),
        ("it has two newest bytes of y", |c| c.latest = vec![(id("y"), markup("Y")); 2]),
        ("the order names x, which is not known", |c| c.order = Some(vec![id("b"), id("x")])),
        ("it redacts x and does not say so in the ledger", |c| c.redacted.push(id("x"))),
        ("it redacts a and does not say so in the ledger", |c| c.redacted.push(id("a"))),
        ("it redacts a and has no bytes to stand in", |c| {
            c.redacted.push(id("a"));
            c.known[0].standing = ItemStatus::Redacted { since: time(6) };
            c.versions[0].markup = None;
        }),
        ("the archive one does not follow the last one", |c| c.seals[0].number = 5),
        ("the archive one does not follow the last one", |c| {
            c.seals[0].previous = Some(archive_id("zero"));
        }),
        (lists_nothing, |c| c.seals[0].items.clear()),
        (lists_nothing, |c| c.seals[0].items.push(id("a"))),
        ("it seals z, which is not known", |c| c.seals[0].items.push(id("z"))),
        (strange_chain, |c| c.state.archives.newest = None),
        (strange_chain, |c| c.state.archives.next = 9),
        (strange_chain, |c| c.seals.clear()),
        ("it drops archives that are not there", |c| c.state.archives.first = 2),
        (sealed_elsewhere, |c| c.state.archives.sealed = Some(tick(99))),
        ("the ledger does not bear the conflicts of a", |c| c.known[0].conflicts = 2),
        ("another item's version is in conflict with a", |c| {
            c.conflicts[0].versions = vec![lost("b")];
        }),
        ("it has two lists of conflicts of a", |c| c.conflicts.push(c.conflicts[0].clone())),
        ("a has more than 100 conflicts", |c| {
            c.conflicts[0].versions = vec![lost("a"); Conflicting::LIMIT + 1];
            c.known[0].conflicts = 101;
        }),
        ("a conflict of c has no bytes to keep", |c| {
            c.conflicts = vec![Conflicting { id: id("c"), versions: vec![lost("c")] }];
            c.known[1].conflicts = 1;
        }),
        (leaves, |c| c.evicted = vec![stub("b"); 2]),
        (leaves, |c| {
            c.evicted.push(stub("b"));
            c.order = Some(vec![id("b")]);
        }),
        (leaves, |c| {
            c.evicted.push(stub("b"));
            c.seals[0].items.push(id("b"));
        }),
        ("a leaves the ledger and changes, or leaves twice", |c| c.evicted.push(stub("a"))),
        ("x leaves, which is not known", |c| c.evicted.push(stub("x"))),
        ("b comes back to the ledger without a version and its bytes", |c| {
            c.reinstated.push(id("b"));
        }),
        ("c comes back to the ledger without a version and its bytes", |c| {
            c.reinstated.push(id("c"));
            c.versions[1].markup = None;
        }),
        ("the ledger says of a that it left", |c| {
            c.known[0].standing = ItemStatus::Evicted { since: time(6), deleted: false };
        }),
    ];
    for (wanted, spoil) in rules {
        let said = check_spoiled(spoil).unwrap_err().to_string();
        let begin = "a change to the feed news cannot be stored";
        assert_eq!(said, format!("{begin}: {wanted}; this is a fault of the program"));
    }
    // A seal behind those of earlier archives, and a change over another state.
    let (mut before, change) = state_and_change();
    before.archives.sealed = change.tick.map(|it| Tick::next(it.time(), Some(it)));
    let said = check(&change, Some(&before), &[], |_| Ok(true)).unwrap_err();
    assert!(said.to_string().contains(sealed_elsewhere), "{said}");
    let said = check(&change, None, &[], |_| Ok(true));
    assert!(matches!(said, Err(CommitError::Conflict(Revision(0)))), "{said:?}");
}
