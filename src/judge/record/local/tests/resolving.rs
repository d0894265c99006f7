//! Resolving conflicts (SSE 1.0 section 3.4).

use super::*;

fn resolve(id: &SyncId, keep: Resolution) -> Act {
    Act::Resolve { id: id.clone(), keep, conflicts: None, expected: None }
}

/// Whoever has a version that was resolved is not asked again.
async fn is_settled(bench: &Bench, id: &SyncId, before: &Shared<Markup>) {
    let now = bench.shared(id).await;
    for version in std::iter::once(&before.winner).chain(&before.conflicts) {
        let merged = sync::merge(now.clone(), Shared::new(version.clone())).unwrap();
        assert_eq!(merged, now, "{:?}", version.history);
        let there = sync::merge(Shared::new(version.clone()), now.clone()).unwrap();
        assert_eq!(there, now);
    }
}

/// Also of an item of another publisher.
#[tokio::test]
async fn what_is_kept_is_the_item_and_nobody_is_asked_twice() {
    for (keep, said) in [
        (Resolution::Winner, "the winner was kept"),
        (Resolution::Conflict(0), "that had lost was taken"),
        (Resolution::Conflict(1), "that had lost was taken"),
        (Resolution::New(written("agreed")), "a new text was written"),
    ] {
        let mut bench = Bench::new().await;
        let id = bench.contested().await;
        let before = bench.shared(&id).await;
        assert_eq!((before.conflicts.len(), bench.known(&id).await.conflicts), (2, 2));
        bench.options.sharing.local = false;
        let mut snapshot = bench.snapshot().await.unwrap();
        snapshot.known[0].origin = Origin::Upstream;
        pass(&bench.clock);
        let act = resolve(&id, keep.clone());
        let (verdict, done) = super::act(&bench.observation(Some(&snapshot)), &act).unwrap();
        bench.store.commit(verdict.change.unwrap()).await.unwrap();
        assert_eq!((done.conflicts, done.updates), (0, before.winner.updates.next().unwrap()));
        let (after, known) = (bench.shared(&id).await, bench.known(&id).await);
        match keep {
            Resolution::Winner => assert_eq!(after.winner.data, before.winner.data),
            // It says when it came to say so, and else what it said.
            Resolution::Conflict(number) => {
                let lost = &before.conflicts[number].data;
                assert!(known.updated > lost.card.updated, "{:?}", known.updated);
                let dated = Amendment { updated: known.updated, ..Amendment::default() };
                let wanted = tidegate_format::parse::amended_markup(lost, &dated);
                assert_eq!(Some(&after.winner.data), wanted.as_ref());
            }
            Resolution::New(_) => assert_eq!(bench.titles().await, ["agreed"]),
        }
        assert_eq!((known.conflicts, known.title), (0, after.winner.data.card.title.clone()));
        assert!(bench.snapshot().await.unwrap().conflicts.is_empty());
        is_settled(&bench, &id, &before).await;
        assert_eq!(bench.act(act).await, Err(ActError::NoConflict));
        let events = bench.store.events(&bench.feed, 1).await.unwrap();
        assert!(events[0].reason.starts_with("a conflict with 2 versions was resolved: "));
        assert!(events[0].reason.ends_with(said), "{}", events[0].reason);
    }
}

#[tokio::test]
async fn a_part_is_resolved_and_the_others_stay() {
    let bench = Bench::new().await;
    let id = bench.contested().await;
    let before = bench.shared(&id).await;
    let (keep, conflicts) = (Resolution::Winner, Some(vec![0]));
    let part = Act::Resolve { id: id.clone(), keep, conflicts, expected: None };
    let done = bench.act(part).await.unwrap();
    assert_eq!(done.conflicts, 1);
    let after = bench.shared(&id).await;
    assert_eq!(after.conflicts, before.conflicts[1..]);
    assert_eq!(bench.known(&id).await.conflicts, 1);
    let events = bench.store.events(&bench.feed, 1).await.unwrap();
    assert!(events[0].reason.ends_with("; 1 more stay in conflict"), "{}", events[0].reason);
}

#[tokio::test]
async fn a_page_that_is_old_resolves_nothing() {
    let bench = Bench::new().await;
    let id = bench.contested().await;
    let seen = tag(&bench.shared(&id).await);
    let act = |tag: &str| {
        let (keep, expected) = (Resolution::Winner, Some(tag.to_owned()));
        Act::Resolve { id: id.clone(), keep, conflicts: None, expected }
    };
    // Somebody else's loser comes in, and the winner stays as it was.
    let start = bench.shared(&id).await;
    let mut fork = Shared::new(start.conflicts[1].clone());
    sync::update(&mut fork, text("of four"), Stamp::By(EndpointId::new("a").unwrap())).unwrap();
    bench.merge(fork).await;
    let refused = bench.act(act(&seen)).await;
    assert!(matches!(refused, Err(ActError::Stale { .. })), "{refused:?}");
    let seen = tag(&bench.shared(&id).await);
    bench.act(act(&seen)).await.unwrap();
    let wrong = bench.act(resolve(&bench.contested().await, Resolution::Conflict(9))).await;
    assert!(matches!(wrong, Err(ActError::Sync(SyncError::NoSuchConflict { .. }))));
}

#[tokio::test]
async fn a_deletion_in_conflict_can_be_taken_and_a_winner_that_is_one_undone() {
    for wins in [false, true] {
        let bench = Bench::new().await;
        let id = bench.create("first").await;
        let mut fork = bench.shared(&id).await;
        let theirs = stamp(&bench.clock, "one");
        let ours = if wins {
            sync::update(&mut fork, text("of one"), theirs).unwrap();
            ItemAct::Delete
        } else {
            sync::delete(&mut fork, theirs).unwrap();
            ItemAct::Update(written("ours"))
        };
        bench.act(change(&id, ours)).await.unwrap();
        bench.merge(fork).await;
        let before = bench.shared(&id).await;
        assert_eq!((before.winner.deleted, before.conflicts[0].deleted), (wins, !wins));
        let done = bench.act(resolve(&id, Resolution::Conflict(0))).await.unwrap();
        assert_eq!(done.deleted, !wins);
        is_settled(&bench, &id, &before).await;
        // The last bytes of what is deleted stay.
        let title = if wins { "of one" } else { "ours" };
        assert_eq!(bench.item(&id).await.shared.winner.data.card.title, title);
        assert_eq!(bench.titles().await.len(), usize::from(wins));
        let events = bench.store.events(&bench.feed, 1).await.unwrap();
        let kind = if wins { EventKind::Undeleted } else { EventKind::Deleted };
        assert_eq!(events[0].kind, kind);
    }
}
