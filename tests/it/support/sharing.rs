use crate::support::prelude::*;
pub use tidegate_core::model::testing::id;
use tidegate_format::parse::{self, Limits};
use tidegate_judge::record::{self, Issued, Peers, Verdict};

/// An entry as a sharing publisher writes it.
#[derive(Clone)]
pub struct Shared {
    pub id: &'static str,
    pub text: String,
    pub sync: String,
}

pub const RELATED: &str =
    "<sx:sharing><sx:related link=\"http://x.example/all\" type=\"complete\"/></sx:sharing>";

pub fn sync(id: &str, updates: u32, history: &[(u32, &str, u32)], inner: &str) -> String {
    let update = |(sequence, by, minute): &(u32, &str, u32)| {
        let when = format!("2026-01-01T00:{minute:02}:00Z");
        format!("<sx:history sequence=\"{sequence}\" when=\"{when}\" by=\"{by}\"/>")
    };
    let history: String = history.iter().map(update).collect();
    format!("<sx:sync id=\"{id}\" updates=\"{updates}\">{history}{inner}</sx:sync>")
}

pub fn entry(id: &'static str, text: &str, updates: u32, history: &[(u32, &str, u32)]) -> Shared {
    Shared { id, text: text.to_owned(), sync: sync(&format!("x.{id}"), updates, history, "") }
}

/// The first version of an entry, by its creator.
pub fn first(id: &'static str, text: &str) -> Shared {
    entry(id, text, 1, &[(1, "REO", 1)])
}

impl Shared {
    /// With these attributes in its `sx:sync`.
    pub fn saying(mut self, attributes: &str) -> Self {
        self.sync = self.sync.replacen("<sx:sync", &format!("<sx:sync {attributes}"), 1);
        self
    }

    pub fn deleted(self) -> Self {
        self.saying("deleted=\"true\"")
    }

    /// With these elements in its `sx:sync`.
    pub fn holding(mut self, elements: &str) -> Self {
        self.sync = self.sync.replace("</sx:sync>", &format!("{elements}</sx:sync>"));
        self
    }

    pub fn markup(&self) -> String {
        let Self { id, text, sync } = self;
        let entry = plain(id, text).replacen("<entry>", &format!("<entry>{sync}"), 1);
        entry.replace("</entry>", &format!("<content>{text}</content></entry>"))
    }
}

pub fn plain(id: &str, text: &str) -> String {
    format!(
        "<entry><id>urn:{id}</id><title>{text}</title><updated>2026-01-01T00:00:00Z</updated></entry>"
    )
}

/// A feed in Atom with these entries, and with something in its head.
pub fn document(head: &str, entries: &[String]) -> String {
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:sx=\"http://www.microsoft.com/schemas/sse\">\
         <title>List</title><id>urn:list</id><updated>2026-01-01T00:00:00Z</updated>{head}{}</feed>",
        entries.concat()
    )
}

pub fn shared(entries: &[Shared]) -> String {
    document("", &entries.iter().map(Shared::markup).collect::<Vec<_>>())
}

pub async fn item(gate: &Gate, name: &str) -> Item {
    gate.store.item(&gate.feed, &id(name)).await.unwrap().unwrap()
}

/// The titles of what won and of what lost.
pub async fn sides(gate: &Gate, name: &str) -> Vec<String> {
    let shared = item(gate, name).await.shared;
    let sides = std::iter::once(&shared.winner).chain(&shared.conflicts);
    sides.map(|version| version.data.card.title.clone()).collect()
}

pub fn sequences(item: &Item) -> Vec<String> {
    let history = item.shared.winner.history.iter();
    history.map(|u| format!("{} {}", u.sequence.value(), u.stamp.by().unwrap())).collect()
}

impl Gate {
    /// The titles of what a reader would see.
    pub async fn titles(&self) -> Vec<String> {
        self.reader().await.into_iter().map(|(_, title)| title).collect()
    }

    /// Its publisher shares these an hour later; what happened.
    pub async fn shares(&mut self, entries: &[Shared]) -> Vec<EventKind> {
        kinds(&self.later(1).take(&shared(entries)).await)
    }

    /// An hour later there is this document, beside what its complete feed lists; what happened.
    pub async fn finds(&mut self, text: &str, complete: Option<&str>) -> Vec<EventKind> {
        kinds(&with(self.later(1), text, complete, None).await)
    }

    /// Nothing happens for so many looks at the same document.
    pub async fn rests(&mut self, looks: u32) {
        for _ in 0..looks {
            assert_eq!(kinds(&self.later(6).same().await), []);
        }
    }

    /// Whether the complete feed is to be read beside this document.
    pub async fn needs_complete(&self, text: &str) -> bool {
        let document = parse::document(text, None, &Limits::default()).unwrap();
        let snapshot = self.store.snapshot(&self.feed).await.unwrap();
        record::needs_complete(snapshot.as_ref(), &document)
    }

    /// How far its publisher is known.
    pub async fn until(&self) -> String {
        self.store_state().await.upstream_until.unwrap_or_default()
    }
}

pub async fn with(
    gate: &mut Gate,
    text: &str,
    complete: Option<&str>,
    issued: Option<&Issued>,
) -> Verdict {
    let limits = Limits::default();
    let document = parse::document(text, None, &limits).unwrap();
    let complete = complete.map(|text| parse::document(text, None, &limits).unwrap());
    let snapshot = gate.store.snapshot(&gate.feed).await.unwrap();
    let peers = Peers { complete: complete.as_ref(), issued };
    let body = xxhash_rust::xxh3::xxh3_128(text.as_bytes());
    let prints = BodyPrints { wire: body, body };
    let observation = gate.observation(snapshot.as_ref());
    let verdict = record::take_in_shared(&observation, &document, &peers, prints).unwrap();
    gate.commit(&verdict).await;
    verdict
}

pub fn bounds(since: &str, until: &str) -> String {
    format!("<sx:sharing since=\"{since}\" until=\"{until}\"/>")
}

pub fn sharing(since: &str, until: &str) -> String {
    RELATED.replace("<sx:sharing", &format!("<sx:sharing since=\"{since}\" until=\"{until}\""))
}
