//! What is not kept for ever, and what is kept in any case.

use super::*;
use tidegate_core::model::Chain;

/// What a newcomer must find, and what somebody who was there before.
async fn check_all(world: &World, before: &mut [Historian], visits: bool) {
    world.check_newcomers().await;
    let held = world.site.held().await;
    for historian in before.iter_mut().filter(|_| visits) {
        historian.consume(&world.site).await;
        // Who was away for longer than anything is kept may have missed a deletion, and is told.
        let mut told = historian.clone();
        told.honours &= told.missing.is_empty();
        check(&told, &held, world.rss);
    }
}

async fn chain(world: &World) -> Chain {
    world.site.gate.store_state().await.archives
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// However little is kept: whoever follows the archives back from the reader view finds all that
    /// lives in its last state, and there are not many more archives than the limit says and what
    /// lives needs.
    #[test]
    fn every_living_item_stays_within_reach(
        steps in proptest::collection::vec(step(), 5..70),
        entries in 1_u32..8,
        window in 3_usize..12,
        kept in 1_u64..8,
        age in proptest::option::of(1_u64..400),
        bytes in proptest::option::of(0_u64..20_000),
        rss in prop::bool::weighted(0.2),
        edits in prop::bool::weighted(0.6),
    ) {
        block_on(async {
            let mut world = World::new(entries, window, rss, Deletions::Eager).await;
            let age = age.map(|hours| Duration::from_secs(hours * 3600));
            world.site.gate.archives = Policy { entries, kept, age, bytes };
            let mut before = [Historian::rfc5005(true), Historian::rfc5005(false), Historian::draft05()];
            for (n, step) in steps.iter().enumerate() {
                let mut step = step.clone();
                if edits {
                    // Little is new and much is old, so that there is something to drop.
                    let is_kept = |act: &Act| !matches!(act, Act::Publish(_) | Act::Restore);
                    step.acts.retain(is_kept);
                    step.acts.extend([Act::Edit(1), Act::Edit(2), Act::Edit(3)]);
                }
                world.step(&step).await;
                if n % 4 == 0 || step.visitors[0] {
                    check_all(&world, &mut before, step.visitors[0]).await;
                }
                let (chain, state) = (chain(&world).await, world.site.gate.store_state().await);
                let needed = u64::from(state.living.div_ceil(entries));
                let burst = 40_u64.div_ceil(u64::from(entries));
                prop_assert!(
                    chain.kept() <= kept + 3 * needed + burst,
                    "{chain:?} keeps {} archives, the limit is {kept}, what lives needs {needed}",
                    chain.kept()
                );
            }
            check_all(&world, &mut before, true).await;
            Ok(())
        })?;
    }
}
