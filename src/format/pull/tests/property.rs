//! Whatever a publisher does, and however seldom and with whatever luck somebody pulls: in the end
//! the replica is what the publisher has.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashSet;

/// A publisher of a plain feed with archives, by RFC 5005 and RFC 6721: every change is sealed in
/// an archive before it leaves the document that is subscribed to.
#[derive(Default)]
struct Blog {
    living: BTreeMap<usize, u32>,
    /// What changed and is not sealed: the text, or nothing where it is deleted.
    recent: Vec<(usize, Option<u32>)>,
    archives: Vec<String>,
    edits: u32,
}

const SEALED_AT: usize = 4;

impl Blog {
    fn change(&mut self, id: usize, deletes: bool) {
        if deletes && !self.living.contains_key(&id) {
            return;
        }
        self.edits += 1;
        let said = (!deletes).then_some(self.edits);
        match said {
            Some(text) => drop(self.living.insert(id, text)),
            None => drop(self.living.remove(&id)),
        }
        // A document says a thing once, as it is now.
        self.recent.retain(|(other, _)| *other != id);
        self.recent.insert(0, (id, said));
        if self.recent.len() >= SEALED_AT {
            let sealed = self.document(&self.recent, true);
            self.archives.push(sealed);
            // The newest one stays, so that archive and document overlap.
            self.recent.truncate(1);
        }
    }

    fn document(&self, said: &[(usize, Option<u32>)], is_archive: bool) -> String {
        let older = self.archives.len();
        let mut text = "<feed xmlns=\"http://www.w3.org/2005/Atom\" \
                        xmlns:at=\"http://purl.org/atompub/tombstones/1.0\"><title>t</title>"
            .to_owned();
        if older > 0 {
            text += &format!("<link rel=\"prev-archive\" href=\"/archive/{older}\"/>");
        }
        if is_archive {
            text += "<link rel=\"current\" href=\"/feed\"/>";
        }
        for (id, said) in said {
            text += &match said {
                Some(edit) => format!(
                    "<entry><id>urn:{id}</id><title>{id}</title><content>{edit}</content></entry>"
                ),
                None => {
                    format!("<at:deleted-entry ref=\"urn:{id}\" when=\"2026-01-01T00:00:00Z\"/>")
                }
            };
        }
        text + "</feed>"
    }

    /// What is published; of the archives those of `lost` cannot be had.
    fn publisher(&self, lost: &HashSet<usize>) -> Publisher {
        let mut publisher = Publisher { conditional: true, ..Publisher::default() };
        publisher.set(FEED, self.document(&self.recent, false));
        for (n, archive) in self.archives.iter().enumerate() {
            if !lost.contains(&n) {
                publisher.set(&at(&format!("archive/{}", n + 1)), archive.clone());
            }
        }
        publisher
    }
}

fn says(local: &Local) -> BTreeMap<usize, u32> {
    let (_, items) = read(local.text());
    let number = |text: &str| -> u32 { text.parse().unwrap() };
    let of = |item: &item::ReplicaItem| {
        let (_, text) = item.data().markup.xml.split_once("<content>").unwrap();
        let (text, _) = text.split_once("</content>").unwrap();
        (number(&item.title().unwrap()) as usize, number(text))
    };
    items.iter().map(of).collect()
}

#[derive(Debug, Clone)]
enum Step {
    /// Changes the entry of that id, or deletes it.
    Change(usize, bool),
    /// A pull with so many requests while those archives are lost.
    Pull(Vec<usize>, usize),
    Outage,
}

fn step() -> impl Strategy<Value = Step> {
    let change = (0..9usize, prop::bool::weighted(0.25));
    let pull = (vec(0..8usize, 0..4), 2..8usize);
    prop_oneof![
        8 => change.prop_map(|(id, deletes)| Step::Change(id, deletes)),
        3 => pull.prop_map(|(lost, requests)| Step::Pull(lost, requests)),
        1 => Just(Step::Outage),
    ]
}

fn ends_as_the_feed_is(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (mut blog, mut local) = (Blog::default(), Local::default());
    blog.change(0, false);
    for step in steps {
        match step {
            Step::Change(id, deletes) => blog.change(id, deletes),
            Step::Pull(lost, requests) => {
                let publisher = blog.publisher(&lost.into_iter().collect());
                let limits = PullLimits { requests, ..PullLimits::STANDARD };
                let outcome = local.try_pull(&publisher, limits).unwrap();
                if outcome.warnings.is_empty() {
                    prop_assert_eq!(says(&local), blog.living.clone());
                }
            }
            Step::Outage => {
                local.refused(&Publisher::default());
            }
        }
    }
    let publisher = blog.publisher(&HashSet::new());
    let outcome = local.pull(&publisher);
    prop_assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    prop_assert_eq!(says(&local), blog.living);
    Ok(())
}

#[test]
fn what_comes_out_of_an_old_gap_stays_below_a_newer_one() {
    let mut steps: Vec<Step> = [1, 2, 3, 0, 1, 6, 4, 2].map(|id| Step::Change(id, false)).into();
    steps.extend([Step::Change(0, true), Step::Pull(vec![2], 2)]);
    steps.extend([1, 2, 3].map(|id| Step::Change(id, false)));
    steps.extend([Step::Pull(vec![3], 3), Step::Change(3, false)]);
    ends_as_the_feed_is(steps).unwrap();
}

proptest! {
    /// Feed History draft-05 section 6, honouring RFC 6721.
    #[test]
    fn a_plain_replica_ends_as_the_feed_is(steps in vec(step(), 1..60)) {
        ends_as_the_feed_is(steps)?;
    }

    /// Whatever a publisher sends, a pull ends: with a replica or an error.
    #[test]
    fn anything_is_answered(
        documents in vec("(<feed|<entry|<link rel=.previous. href=.[0-3].|/>|>|<rss|<item>|sx:|[a-z&;])*", 4),
    ) {
        let mut publisher = Publisher::of(format!("<feed xmlns=\"http://www.w3.org/2005/Atom\"><title/>\
            <link rel=\"previous\" href=\"0\"/>{}</feed>", documents[0]));
        for (n, text) in documents.into_iter().enumerate() {
            publisher.set(&at(&n.to_string()), text);
        }
        let mut local = Local::default();
        let _ = local.try_pull(&publisher, PullLimits::STANDARD);
        prop_assert!(local.asked.len() < 7);
    }
}
