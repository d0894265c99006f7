//! Which posts a feed shows at a step, and in which state; without their words.

/// How a feed lives: all counts in steps or posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeline {
    /// A new post comes every so many steps.
    pub gain_every: u32,
    /// Posts that were there before step 0.
    pub before: u32,
    /// The newest posts that the document lists.
    pub window: usize,
    /// One post in so many is revised …
    pub revise_one_in: u32,
    /// … so many steps after it came.
    pub revise_after: u32,
    /// One post in so many is withdrawn for good …
    pub withdraw_one_in: u32,
    /// … so many steps after it came.
    pub withdraw_after: u32,
    /// One post in so many gets another id; 0: none does …
    pub rename_one_in: u32,
    /// … so many steps after it came.
    pub rename_after: u32,
}

/// A post as it stands at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Post {
    /// Its number, from 0; never used again.
    pub number: u32,
    /// The step at which it came; negative: before the start.
    pub published: i64,
    /// The step at which it was revised, if it was.
    pub revised: Option<i64>,
    /// Whether it goes by its other id by now.
    pub renamed: bool,
}

/// The most steps that are looked back over for the last change; every timeline here changes more
/// often.
const QUIET_LIMIT: u32 = 64;

impl Timeline {
    /// The posts that the document lists at a step, newest first.
    ///
    /// A withdrawn post leaves a hole that an older post fills at the end, as with any publisher
    /// that lists the newest so many.
    pub fn at(&self, step: u32) -> Vec<Post> {
        let newest = self.before.saturating_add(step / self.gain_every.max(1));
        (0..=newest)
            .rev()
            .filter(|number| !self.is_withdrawn(*number, step))
            .take(self.window)
            .map(|number| self.post(number, step))
            .collect()
    }

    /// The step of the last change that is not noise.
    pub fn changed(&self, step: u32) -> u32 {
        let now = self.at(step);
        let earlier = (0..step).rev().take(usize::try_from(QUIET_LIMIT).unwrap_or(0));
        earlier.take_while(|earlier| self.at(*earlier) == now).last().unwrap_or(step)
    }

    /// Whether a post is withdrawn at a step.
    pub fn is_withdrawn(&self, number: u32, step: u32) -> bool {
        let due = self.published(number) + i64::from(self.withdraw_after);
        chosen(number, self.withdraw_one_in) && i64::from(step) >= due
    }

    fn published(&self, number: u32) -> i64 {
        (i64::from(number) - i64::from(self.before)) * i64::from(self.gain_every)
    }

    fn post(&self, number: u32, step: u32) -> Post {
        let published = self.published(number);
        let due = published + i64::from(self.revise_after);
        let revised = chosen(number, self.revise_one_in) && i64::from(step) >= due;
        let renamed = chosen(number, self.rename_one_in)
            && i64::from(step) >= published + i64::from(self.rename_after);
        Post { number, published, revised: revised.then_some(due), renamed }
    }
}

/// One number in so many, never the first ones; none where it is one in 0.
fn chosen(number: u32, one_in: u32) -> bool {
    number.checked_rem(one_in) == Some(one_in / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const TIMELINE: Timeline = Timeline {
        gain_every: 3,
        before: 12,
        window: 8,
        revise_one_in: 3,
        revise_after: 2,
        withdraw_one_in: 4,
        withdraw_after: 10,
        rename_one_in: 5,
        rename_after: 7,
    };

    fn numbers(step: u32) -> Vec<u32> {
        TIMELINE.at(step).iter().map(|post| post.number).collect()
    }

    #[test]
    fn the_last_change_is_the_first_step_with_this_state() {
        for step in 0..60 {
            let changed = TIMELINE.changed(step);
            assert!(changed <= step);
            assert!((changed..=step).all(|s| TIMELINE.at(s) == TIMELINE.at(step)));
            assert!(changed == 0 || TIMELINE.at(changed - 1) != TIMELINE.at(step));
        }
        // A new post pushes the last one out, and a withdrawal leaves a hole that is filled from behind.
        assert_eq!(numbers(2), [12, 11, 10, 9, 8, 7, 5, 4]);
        assert_eq!(numbers(3), [13, 12, 11, 10, 9, 8, 7, 5]);
        assert_eq!(numbers(4), [13, 12, 11, 9, 8, 7, 5, 4]);
    }

    proptest! {
        #[test]
        fn windows_are_full_ordered_and_free_of_the_withdrawn(step in 0u32..100_000) {
            let posts = TIMELINE.at(step);
            prop_assert_eq!(posts.len(), TIMELINE.window);
            prop_assert!(posts.windows(2).all(|pair| pair[0].number > pair[1].number));
            prop_assert!(posts.iter().all(|post| !TIMELINE.is_withdrawn(post.number, step)));
        }

        #[test]
        fn what_was_withdrawn_never_comes_back(step in 0u32..10_000) {
            let gone: BTreeSet<u32> = numbers(step)
                .into_iter()
                .filter(|number| TIMELINE.is_withdrawn(*number, step + 1))
                .collect();
            for later in 1..40 {
                prop_assert!(numbers(step + later).iter().all(|number| !gone.contains(number)));
            }
        }
    }
}
