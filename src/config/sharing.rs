//! The feeds that others share with and that aggregates gather.

use super::feeds::Feeds;
use super::nearest::nearest;
use super::sheet::Sheet;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::model::FeedName;

/// The names among `named` that feeds or aggregates bear; a fault for each other, which names the
/// nearest that there is, and for `never`, which may not stand there.
pub(super) fn known(
    sheet: &mut Sheet<'_>,
    key: &str,
    named: Vec<(usize, FeedName)>,
    feeds: &Feeds,
    never: Option<&FeedName>,
) -> Vec<FeedName> {
    let mut found = Vec::with_capacity(named.len());
    for (at, name) in named {
        if never == Some(&name) {
            let message = format!("{:?} is this table itself; name others", name.as_str());
            sheet.fault(at, key, message);
            continue;
        }
        if feeds.names.contains_key(&name) {
            found.push(name);
            continue;
        }
        let text = name.as_str();
        let near = nearest(text, feeds.names.keys().map(FeedName::as_str));
        let meant = near.map_or_else(
            || "name feeds or aggregates of this file".to_owned(),
            |near| format!("did you mean {near:?}?"),
        );
        sheet.fault(at, key, format!("there is no feed {text:?}; {meant}"));
    }
    found
}

/// The most circles among aggregates that are named.
const CIRCLE_LIMIT: usize = 100;

/// The circles among aggregates, each as a path that ends where it begins; `sources` are those of
/// each. Where the last step of each is taken away, none is left. Who looks in the order of names
/// finds the same ones every time.
pub(super) fn circles(sources: &BTreeMap<&FeedName, &[FeedName]>) -> Vec<Vec<FeedName>> {
    let mut circles = Vec::new();
    let mut done: BTreeSet<&FeedName> = BTreeSet::new();
    for start in sources.keys() {
        if done.contains(start) {
            continue;
        }
        // A walk into the depth: where each aggregate on the way stands in its list.
        let mut way: Vec<(&FeedName, usize)> = vec![(start, 0)];
        while let Some((name, next)) = way.last_mut() {
            let source = sources.get(*name).and_then(|list| list.get(*next));
            *next += 1;
            let Some(source) = source else {
                done.insert(*name);
                way.pop();
                continue;
            };
            if let Some(first) = way.iter().position(|(name, _)| *name == source) {
                let names = way.iter().skip(first).map(|(name, _)| (*name).clone());
                circles.push(names.chain([source.clone()]).collect());
                if circles.len() >= CIRCLE_LIMIT {
                    return circles;
                }
            } else if sources.contains_key(source) && !done.contains(source) {
                way.push((source, 0));
            }
        }
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lists: &[(&str, &[&str])]) -> Vec<String> {
        let name = |text: &str| FeedName::new(text).unwrap();
        let lists: Vec<(FeedName, Vec<FeedName>)> = lists
            .iter()
            .map(|(of, sources)| (name(of), sources.iter().map(|s| name(s)).collect()))
            .collect();
        let lists = lists.iter().map(|(of, sources)| (of, sources.as_slice())).collect();
        let path = |circle: &Vec<FeedName>| {
            circle.iter().map(FeedName::as_str).collect::<Vec<_>>().join(" > ")
        };
        circles(&lists).iter().map(path).collect()
    }

    #[test]
    fn circles_are_found_with_their_path() {
        let none: [&str; 0] = [];
        assert_eq!(found(&[("a", &["x", "b"]), ("b", &["y", "c"]), ("c", &["z"])]), none);
        // Two ways to one source are no circle.
        assert_eq!(found(&[("a", &["b", "c"]), ("b", &["d"]), ("c", &["d"]), ("d", &["x"])]), none);
        assert_eq!(found(&[("a", &["a"])]), ["a > a"]);
        let ring = [("a", &["x", "b"][..]), ("b", &["c"]), ("c", &["d"]), ("d", &["y", "b"])];
        assert_eq!(found(&ring), ["b > c > d > b"]);
        // One does not hide another, beside it or behind it.
        let many = [("a", &["b"][..]), ("b", &["a", "c"]), ("c", &["c"]), ("d", &["a", "d"])];
        assert_eq!(found(&many), ["a > b > a", "c > c", "d > d"]);
    }

    #[test]
    fn there_are_no_more_circles_than_are_named() {
        let names: Vec<String> = (0..CIRCLE_LIMIT + 5).map(|n| format!("n{n}")).collect();
        let own: Vec<[&str; 1]> = names.iter().map(|name| [name.as_str()]).collect();
        let lists: Vec<(&str, &[&str])> = own.iter().map(|list| (list[0], &list[..])).collect();
        assert_eq!(found(&lists).len(), CIRCLE_LIMIT);
    }
}
