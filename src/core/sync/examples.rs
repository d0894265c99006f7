//! The worked examples of SSE 1.0 section 3, which FeedSync repeats, from creation to resolution.

use super::samples::{ITEM, both, version};
use super::{Choice, create, merge, resolve_all, update};
use crate::model::{EndpointId, Shared, Stamp, SyncId, Time, Update};

fn at(text: &str, by: &str) -> Stamp {
    let when = Time::parse_rfc3339(&format!("2005-05-21T{text}Z")).unwrap();
    Stamp::Both { when, by: EndpointId::new(by).unwrap() }
}

fn entry(sequence: u32, text: &str, by: &str) -> Update {
    Update { stamp: at(text, by), ..both(sequence, 0, by) }
}

fn created() -> Shared<String> {
    let id = SyncId::new(ITEM).unwrap();
    create(id, "milk and eggs".to_owned(), at("09:43:33", "REO1750"), None)
}

fn updated_by_two() -> Shared<String> {
    let mut item = created();
    update(&mut item, "and butter".to_owned(), at("10:43:33", "REO1750")).unwrap();
    update(&mut item, "and bread".to_owned(), at("11:43:33", "JEO2000")).unwrap();
    item
}

/// The two independent updates of section 3.3, with the times of its RSS example: those of the Atom
/// example contradict its own outcome (READINGS 1, row 8).
fn updated_apart() -> (Shared<String>, Shared<String>) {
    let (mut here, mut there) = (updated_by_two(), updated_by_two());
    update(&mut here, "DONE".to_owned(), at("12:43:33", "GPM7383")).unwrap();
    update(&mut there, "and rolls".to_owned(), at("12:03:33", "JEO2000")).unwrap();
    (here, there)
}

/// The histories of the three updates before, with these on top.
fn with_before(mut history: Vec<Update>) -> Vec<Update> {
    history.extend([
        entry(3, "11:43:33", "JEO2000"),
        entry(2, "10:43:33", "REO1750"),
        entry(1, "09:43:33", "REO1750"),
    ]);
    history
}

#[test]
fn sections_3_1_to_3_3_creation_updates_and_independent_updates() {
    let expected = version(1, "milk and eggs", [entry(1, "09:43:33", "REO1750")]);
    assert_eq!(created(), Shared::new(expected));
    assert_eq!(updated_by_two(), Shared::new(version(3, "and bread", with_before(vec![]))));
    let (here, there) = updated_apart();
    let winner = version(4, "DONE", with_before(vec![entry(4, "12:43:33", "GPM7383")]));
    let loser = version(4, "and rolls", with_before(vec![entry(4, "12:03:33", "JEO2000")]));
    let expected = Shared { winner, conflicts: vec![loser] };
    assert_eq!(merge(here.clone(), there.clone()), Ok(expected.clone()));
    assert_eq!(merge(there, here), Ok(expected));
}

/// Once resolved, with six updates, the user is not asked again (step 3).
#[test]
fn section_3_4_a_resolved_conflict_does_not_come_back() {
    let (here, there) = updated_apart();
    let contested = merge(here.clone(), there.clone()).unwrap();
    let mut item = contested.clone();
    resolve_all(&mut item, Choice::Winner, at("12:53:33", "GPM7383")).unwrap();
    let history = with_before(vec![
        entry(5, "12:53:33", "GPM7383"),
        entry(4, "12:03:33", "JEO2000"),
        entry(4, "12:43:33", "GPM7383"),
    ]);
    assert_eq!(item, Shared::new(version(5, "DONE", history)));
    let mut resolved = contested.clone();
    resolve_all(&mut resolved, Choice::Conflict(0), at("12:53:33", "GPM7383")).unwrap();
    assert_eq!(resolved.winner.data, "and rolls");
    for stale in [here, there, contested] {
        assert_eq!(merge(resolved.clone(), stale.clone()), Ok(resolved.clone()));
        assert_eq!(merge(stale, resolved.clone()), Ok(resolved.clone()));
    }
}
