//! What is told of subscriptions to hubs: nothing that only the two know.

use crate::model::Time;
use crate::poll;
use crate::serve::HubNote;
use crate::websub::subscriber;

pub(super) fn note(note: &poll::HubReport, now: Time) -> HubNote {
    let it = &note.subscription;
    let others = it.hubs.iter().filter(|hub| *hub != it.address());
    let disbelieved = note.disbelieved.as_ref();
    HubNote {
        state: it.state(now),
        words: subscriber::describe(it, now),
        hub: it.address().to_owned(),
        others: others.cloned().collect(),
        topic: it.topic.clone(),
        until: it.lease.filter(|_| it.is_held(now)).map(|lease| lease.until),
        next: it.next,
        trust: it.trust,
        heard: it.heard,
        silent: it.silent,
        pushes: it.pushes,
        last_push: it.last_push,
        disbelieved: disbelieved.map_or(0, |push| push.count),
        last_disbelieved: disbelieved.map(|push| (push.last, push.why.clone())),
    }
}
