//! What a gateway changes of a subscription of the hub, which another one may have changed meanwhile.

use tidegate_core::websub::{Active, PendingRequest, Subscription};

/// A subscription as it was known where it was changed, and as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionChange {
    /// `None`: there was none.
    pub before: Option<Subscription>,
    pub after: Subscription,
}

impl From<Subscription> for SubscriptionChange {
    /// A new one.
    fn from(after: Subscription) -> Self {
        Self { before: None, after }
    }
}

impl SubscriptionChange {
    /// The change over what is stored: what it does not touch stays as it is there, what ended there stays ended unless
    /// it was renewed here, and a later request than it knew of is not lost.
    pub(super) fn over(&self, stored: Option<Subscription>) -> Subscription {
        let (mut merged, before) = (self.after.clone(), self.before.as_ref());
        let active = before.and_then(|before| before.active.as_ref());
        let pending = before.and_then(|before| before.pending.as_ref());
        let stored = stored.map_or((None, None), |stored| (stored.active, stored.pending));
        merged.active = match (active, merged.active.take(), stored.0) {
            (before, after, stored) if after.as_ref() == before => stored,
            (Some(before), Some(after), None) if after.until == before.until => None,
            (Some(before), Some(after), Some(stored)) => Some(merge(before, after, stored)),
            (_, after, _) => after,
        };
        let asked = |request: Option<&PendingRequest>| request.map(|request| request.asked);
        let is_later =
            asked(stored.1.as_ref()) > asked(pending).max(asked(merged.pending.as_ref()));
        if merged.pending.as_ref() == pending || is_later {
            merged.pending = stored.1;
        }
        merged
    }
}

/// Each part as it was changed here, and otherwise as it is stored.
fn merge(before: &Active, after: Active, stored: Active) -> Active {
    macro_rules! parts {
        ($($part:ident)+) => {
            Active {
                told: after.told.max(stored.told),
                $($part: if after.$part == before.$part { stored.$part } else { after.$part },)+
            }
        };
    }
    parts!(secret since until delivered deliveries failures not_before gone trouble)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::make::time;
    use crate::conformance::subscriptions::{request, subscription};

    fn change(before: &Subscription, after: &Subscription) -> SubscriptionChange {
        SubscriptionChange { before: Some(before.clone()), after: after.clone() }
    }

    /// What was delivered here and what was asked for elsewhere are both kept, in whichever order they are stored.
    #[test]
    fn neither_a_renewal_nor_a_delivery_is_lost() {
        let before = subscription("a");
        let (mut told, mut renewed) = (before.clone(), before.clone());
        told.active.as_mut().unwrap().deliveries += 1;
        renewed.pending = Some(request(5));
        let change = |after: &Subscription| change(&before, after);
        let both = Subscription { pending: renewed.pending.clone(), ..told.clone() };
        assert_eq!(change(&told).over(Some(renewed.clone())), both);
        assert_eq!(change(&renewed).over(Some(told)), both);
        // Its end does not take what was asked for since with it.
        let over = Subscription { active: None, ..before.clone() };
        let left = change(&over).over(Some(renewed.clone()));
        assert_eq!((left.active, left.pending), (None, renewed.pending.clone()));
        // Nothing is brought back that ended meanwhile.
        let left = change(&renewed).over(None);
        assert_eq!((left.active, left.pending), (None, renewed.pending));
    }

    #[test]
    fn what_ended_stays_ended_and_a_new_secret_stays_new() {
        let before = subscription("a");
        let (mut told, mut renewed, mut secret) = (before.clone(), before.clone(), before.clone());
        told.active.as_mut().unwrap().deliveries += 1;
        renewed.active.as_mut().unwrap().until = time(1_000_000);
        secret.active.as_mut().unwrap().secret = tidegate_core::websub::Secret::new("new").ok();
        let change = |after: &Subscription| change(&before, after);
        assert!(change(&told).over(None).is_over());
        let ended = Subscription { active: None, pending: Some(request(5)), ..before.clone() };
        assert_eq!(change(&told).over(Some(ended.clone())), ended);
        assert_eq!(change(&renewed).over(Some(ended)).active, renewed.active);
        for (one, other) in [(&told, &secret), (&secret, &told)] {
            let both = change(one).over(Some(other.clone())).active.unwrap();
            let (told, secret) = (told.active.as_ref().unwrap(), secret.active.as_ref().unwrap());
            assert_eq!((both.deliveries, &both.secret), (told.deliveries, &secret.secret));
        }
    }

    #[test]
    fn a_request_is_settled_and_a_later_one_is_not() {
        let before = Subscription { pending: Some(request(5)), ..subscription("a") };
        let settled = change(&before, &subscription("a"));
        assert_eq!(settled.over(Some(before.clone())), subscription("a"));
        let later = Subscription { pending: Some(request(6)), ..before };
        assert_eq!(settled.over(Some(later.clone())), later);
        let new = SubscriptionChange::from(later.clone());
        assert_eq!(new.over(None), later);
    }
}
