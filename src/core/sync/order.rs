//! Which of two versions knows of the other, and which of two wins (SSE 1.0 section 3.3, notes 1
//! to 3).

use super::Canonical;
use crate::model::{EndpointId, Time, Update, Version};
use std::cmp::Ordering;

/// History Subsumption (section 3.3, note 2): whether `x` is known to a history that holds `y`.
///
/// Times are compared as instants, so that equal ones in different spelling match (READINGS 1,
/// row 6).
pub fn update_is_subsumed(x: &Update, y: &Update) -> bool {
    match (x.stamp.by(), y.stamp.by()) {
        (Some(by_x), Some(by_y)) => by_x == by_y && x.sequence <= y.sequence,
        (None, None) => x.stamp.when() == y.stamp.when() && x.sequence == y.sequence,
        _ => false,
    }
}

/// Item Subsumption (section 3.3, note 1): whether `y` was made by someone who knew `x`.
pub fn is_subsumed<D>(x: &Version<D>, y: &Version<D>) -> bool {
    y.history.iter().any(|update| update_is_subsumed(x.history.topmost(), update))
}

/// Winner Picking (section 3.3, note 3): [`Ordering::Greater`] where `x` wins over `y`.
///
/// More updates win; then a `when` over none, and the later one; then a `by` over none, and the
/// greater one in code-point order. Two absent values are the same (READINGS 1, row 5). What is
/// still equal then cannot have been made by conformant endpoints: the greater topmost sequence
/// wins, then the greater canonical bytes (row 4).
pub fn precedence<D: Canonical>(x: &Version<D>, y: &Version<D>) -> Ordering {
    rank(x).cmp(&rank(y))
}

/// The keys of winner picking, most significant first. `None` is less than every value.
type Rank<'a> = (u32, Option<Time>, Option<&'a EndpointId>, u32, &'a [u8]);

fn rank<D: Canonical>(version: &Version<D>) -> Rank<'_> {
    let topmost = version.history.topmost();
    (
        version.updates.value(),
        topmost.stamp.when(),
        topmost.stamp.by(),
        topmost.sequence.value(),
        version.data.canonical(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::samples::{both, by, version, when};
    use super::*;

    #[test]
    fn an_endpoint_knows_its_own_earlier_updates() {
        assert!(update_is_subsumed(&both(3, 9, "A"), &both(3, 9, "A")));
        assert!(update_is_subsumed(&both(3, 9, "A"), &by(4, "A")));
        assert!(!update_is_subsumed(&both(4, 9, "A"), &both(3, 9, "A")));
        assert!(!update_is_subsumed(&both(3, 9, "A"), &both(4, 9, "B")));
    }

    #[test]
    fn without_by_only_the_same_update_is_known() {
        assert!(update_is_subsumed(&when(3, 9), &when(3, 9)));
        assert!(!update_is_subsumed(&when(3, 9), &when(4, 9)));
        assert!(!update_is_subsumed(&when(3, 9), &when(3, 10)));
        assert!(!update_is_subsumed(&when(3, 9), &both(3, 9, "A")));
        assert!(!update_is_subsumed(&both(3, 9, "A"), &when(3, 9)));
    }

    #[test]
    fn an_item_is_subsumed_through_its_topmost_update_only() {
        let old = version(2, "old", [both(2, 2, "A"), both(1, 1, "B")]);
        let new = version(3, "new", [both(3, 3, "C"), both(2, 2, "A"), both(1, 1, "B")]);
        assert!(is_subsumed(&old, &new));
        assert!(!is_subsumed(&new, &old));
    }

    /// Each step of Winner Picking in its order, the greater version first.
    #[test]
    fn the_keys_decide_in_the_order_of_the_specification() {
        let pairs = [
            (version(3, "", [by(1, "A")]), version(2, "", [both(9, 9, "Z")])),
            (version(2, "", [when(2, 1)]), version(2, "", [by(2, "Z")])),
            (version(2, "", [when(2, 2)]), version(2, "", [both(2, 1, "Z")])),
            (version(2, "", [both(2, 2, "A")]), version(2, "", [when(2, 2)])),
            (version(2, "", [both(2, 2, "é")]), version(2, "", [both(2, 2, "z")])),
            (version(2, "", [both(2, 2, "\u{10000}")]), version(2, "", [both(2, 2, "\u{ff5e}")])),
            (version(2, "", [by(2, "B")]), version(2, "", [by(2, "A")])),
            (version(2, "", [when(3, 2)]), version(2, "", [when(2, 2)])),
            (version(2, "b", [when(2, 2)]), version(2, "a", [when(2, 2)])),
        ];
        for (greater, lesser) in pairs {
            assert_eq!(precedence(&greater, &lesser), Ordering::Greater, "{greater:?}");
            assert_eq!(precedence(&lesser, &greater), Ordering::Less, "{lesser:?}");
            assert_eq!(precedence(&lesser, &lesser), Ordering::Equal, "{lesser:?}");
        }
    }
}
