//! What is no news, in every shape.

use super::{text, time};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::model::*;

fn restless() -> impl Strategy<Value = Restless> {
    let span = any::<(u32, u8)>().prop_map(|(value, changes)| Span { value, changes });
    let field = (text(), any::<u32>(), any::<u8>(), vec(span, 0..3));
    (field, time(), of(time())).prop_map(|((path, value, changes, spans), last, masked)| Restless {
        path,
        value,
        changes,
        spans,
        last,
        masked,
    })
}

pub(super) fn any_noise() -> impl Strategy<Value = Noise> {
    let classes = any::<u16>().prop_map(NoiseClasses::from_bits);
    let unseen = (classes, any::<u32>(), time(), time())
        .prop_map(|(classes, count, since, last)| Unseen { classes, count, since, last });
    let cause = select(vec![WaitCause::Cap, WaitCause::Mask]);
    let waiting = (cause, time(), time(), text())
        .prop_map(|(cause, since, due, fields)| WaitingChange { cause, since, due, fields });
    let made = (time(), any::<u32>()).prop_map(|(since, versions)| DayVersions { since, versions });
    let looks = (any::<[u32; NoiseClass::TRACED.len()]>(), any::<u64>(), any::<(bool, u32)>());
    (of(unseen), looks, vec(restless(), 0..3), of(made), of(waiting)).prop_map(
        |(unseen, (traces, shape, (held, scheme)), restless, made, waiting)| Noise {
            unseen,
            traces,
            shape,
            restless,
            held,
            made,
            waiting,
            scheme,
        },
    )
}
