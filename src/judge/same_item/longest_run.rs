//! The longest row of what kept its order.

/// The longest row of indices whose values rise; of several the one that ends lowest.
pub(crate) fn longest_run<T: PartialOrd>(places: &[T]) -> Vec<usize> {
    // `ends[n]` is where a run of n + 1 ends that ends lowest.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(places.len());
    for (at, place) in places.iter().enumerate() {
        let length = ends.partition_point(|end| places.get(*end) < Some(place));
        before.push(length.checked_sub(1).and_then(|last| ends.get(last).copied()));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    // Each step leads to an earlier index.
    while let Some(at) = next {
        run.push(at);
        next = before.get(at).copied().flatten();
    }
    run.reverse();
    run
}
