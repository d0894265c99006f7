//! Publishers that share, as text.

use crate::support::Gate;
use tidegate_core::model::{BodyPrints, Item, SyncId};
use tidegate_format::parse::{self, Limits};
use tidegate_judge::record::{self, Issued, Peers, Verdict};

/// An entry as a sharing publisher writes it.
#[derive(Clone)]
pub struct Shared {
    pub id: &'static str,
    pub text: String,
    pub sync: String,
}

pub fn sync(
    id: &str,
    updates: u32,
    more: &str,
    history: &[(u32, &str, u32)],
    inner: &str,
) -> String {
    let history: String = history
        .iter()
        .map(|(sequence, by, minute)| {
            format!("<sx:history sequence=\"{sequence}\" when=\"2026-01-01T00:{minute:02}:00Z\" by=\"{by}\"/>")
        })
        .collect();
    format!("<sx:sync id=\"{id}\" updates=\"{updates}\"{more}>{history}{inner}</sx:sync>")
}

pub fn entry(id: &'static str, text: &str, updates: u32, history: &[(u32, &str, u32)]) -> Shared {
    Shared { id, text: text.to_owned(), sync: sync(&format!("x.{id}"), updates, "", history, "") }
}

/// The first version of an entry, by its creator.
pub fn first(id: &'static str, text: &str) -> Shared {
    entry(id, text, 1, &[(1, "REO", 1)])
}

impl Shared {
    pub fn markup(&self) -> String {
        format!(
            "<entry>{}<id>urn:{}</id><title>{}</title><updated>2026-01-01T00:00:00Z</updated>\
             <content>{}</content></entry>",
            self.sync, self.id, self.text, self.text
        )
    }
}

pub fn plain(id: &str, text: &str) -> String {
    format!(
        "<entry><id>urn:{id}</id><title>{text}</title><updated>2026-01-01T00:00:00Z</updated></entry>"
    )
}

pub fn document(sharing: &str, entries: &[String]) -> String {
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:sx=\"http://www.microsoft.com/schemas/sse\">\
         <title>List</title><id>urn:list</id><updated>2026-01-01T00:00:00Z</updated>{sharing}{}</feed>",
        entries.concat()
    )
}

pub fn shared(entries: &[Shared]) -> String {
    document("", &entries.iter().map(Shared::markup).collect::<Vec<_>>())
}

pub fn id(text: &str) -> SyncId {
    SyncId::new(text).unwrap()
}

pub async fn item(gate: &Gate, name: &str) -> Item {
    gate.store.item(&gate.feed, &id(name)).await.unwrap().unwrap()
}

pub fn titles(reader: &[(String, String)]) -> Vec<&str> {
    reader.iter().map(|(_, title)| title.as_str()).collect()
}

pub fn sequences(item: &Item) -> Vec<(u32, String)> {
    let history = item.shared.winner.history.iter();
    history.map(|u| (u.sequence.value(), u.stamp.by().unwrap().to_string())).collect()
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
    let verdict = gate.with_round(snapshot.as_ref(), |round| {
        record::take_in_shared(round, &document, &peers, BodyPrints { wire: body, body }).unwrap()
    });
    gate.commit(&verdict).await;
    verdict
}

pub fn sharing(since: &str, until: &str) -> String {
    format!(
        "<sx:sharing since=\"{since}\" until=\"{until}\"><sx:related link=\"http://x.example/all\" \
         type=\"complete\"/></sx:sharing>"
    )
}
