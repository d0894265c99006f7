//! What is shared out within a limit: nobody has more of it than is still free, so that others find room, however much
//! one asks for. Pure.

use std::collections::HashMap;
use std::sync::Arc;

/// How much each has.
#[derive(Debug, Clone, Default)]
pub(super) struct Shares {
    all: usize,
    owners: HashMap<Arc<str>, usize>,
}

impl Shares {
    /// What all have.
    pub(super) const fn all(&self) -> usize {
        self.all
    }

    /// Whether there is room for another one of an owner; `None`: it counts for nobody.
    pub(super) fn has_room(&self, owner: Option<&Arc<str>>, limit: usize) -> bool {
        let own = owner.and_then(|owner| self.owners.get(owner)).copied().unwrap_or_default();
        own < limit.saturating_sub(self.all)
    }

    /// Counts another one.
    pub(super) fn add(&mut self, owner: Option<&Arc<str>>) {
        self.all += 1;
        if let Some(owner) = owner {
            *self.owners.entry(Arc::clone(owner)).or_default() += 1;
        }
    }

    /// Counts one no more.
    pub(super) fn remove(&mut self, owner: Option<&Arc<str>>) {
        self.all = self.all.saturating_sub(1);
        let Some(owner) = owner else { return };
        if let Some(own) = self.owners.get_mut(owner) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                self.owners.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_who_has_less_than_is_free() {
        let (mut shares, greedy, other): (_, Arc<str>, Arc<str>) =
            (Shares::default(), "greedy".into(), "other".into());
        for (owner, share) in [(&greedy, 50), (&other, 25)] {
            let mut taken = 0;
            while shares.has_room(Some(owner), 100) {
                shares.add(Some(owner));
                taken += 1;
            }
            assert_eq!(taken, share);
        }
        // What counts for nobody may have all that is left.
        while shares.has_room(None, 100) {
            shares.add(None);
        }
        assert_eq!(shares.all(), 100);
        assert!(!shares.has_room(Some(&"new".into()), 100));
        (0..50).for_each(|_| shares.remove(Some(&greedy)));
        assert!(shares.has_room(Some(&other), 100) && shares.owners.len() == 1);
    }
}
