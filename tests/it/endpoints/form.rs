//! Documents of the independent endpoints, written as the examples of the specifications are.

use super::plain::{Item, Update, Version};
use serde_json::{Map, Value, json};
use tidegate_core::model::Time;
use tidegate_format::render::{Container, Dialect};

/// A container and a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    pub container: Container,
    pub dialect: Dialect,
}

/// Every form. JSON has but one dialect.
pub const FORMS: [Form; 7] = [
    Form { container: Container::Atom, dialect: Dialect::Sse },
    Form { container: Container::Rss, dialect: Dialect::FeedSync },
    Form { container: Container::Pox, dialect: Dialect::Sse },
    Form { container: Container::Json, dialect: Dialect::FeedSync },
    Form { container: Container::Atom, dialect: Dialect::FeedSync },
    Form { container: Container::Rss, dialect: Dialect::Sse },
    Form { container: Container::Pox, dialect: Dialect::FeedSync },
];

/// A document with these bounds and items.
pub fn write(form: Form, (since, until): &(String, String), items: &[(&String, &Item)]) -> String {
    if form.container == Container::Json {
        let items: Vec<Value> = items.iter().map(|(id, item)| object(id, item)).collect();
        return json!({"sharing": {"since": since, "until": until}, "items": items}).to_string();
    }
    let namespace = match form.dialect {
        Dialect::Sse => "http://www.microsoft.com/schemas/sse",
        _ => "http://feedsync.org/2007/feedsync",
    };
    let sharing = format!("<sx:sharing since=\"{since}\" until=\"{until}\"/>");
    let items: String =
        items.iter().map(|(id, item)| element(form, id, &item.winner, &item.conflicts)).collect();
    match form.container {
        Container::Atom => format!(
            "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:sx=\"{namespace}\"><title>T</title>\
             <id>urn:x:feed</id><updated>2026-01-01T00:00:00Z</updated>{sharing}{items}</feed>"
        ),
        Container::Rss => format!(
            "<rss version=\"2.0\" xmlns:sx=\"{namespace}\"><channel><title>T</title>\
             <link>http://x.example/</link><description>D</description>{sharing}{items}\
             </channel></rss>"
        ),
        _ => format!("<collection xmlns:sx=\"{namespace}\">{sharing}{items}</collection>"),
    }
}

fn element(form: Form, id: &str, version: &Version, conflicts: &[Version]) -> String {
    let inner: String = conflicts.iter().map(|version| element(form, id, version, &[])).collect();
    let inner = match inner.as_str() {
        // Section 2.6: an empty one is none, and may stand there.
        "" if version.updates.is_multiple_of(2) => "<sx:conflicts/>".to_owned(),
        "" => inner,
        _ => format!("<sx:conflicts>{inner}</sx:conflicts>"),
    };
    let mut flags = String::new();
    if version.deleted {
        flags += " deleted=\"true\"";
    }
    if let Some(flag) = version.noconflicts {
        flags += &format!(" noconflicts=\"{flag}\"");
    }
    let history: String = version.history.iter().map(history).collect();
    let (updates, title, text) = (version.updates, &version.title, &version.text);
    let sync =
        format!("<sx:sync id=\"{id}\" updates=\"{updates}\"{flags}>{history}{inner}</sx:sync>");
    match form.container {
        Container::Atom => format!(
            "<entry><title>{title}</title><content>{text}</content><id>urn:x:{id}</id>\
             <updated>2026-01-01T00:00:00Z</updated>{sync}</entry>"
        ),
        Container::Rss => format!(
            "<item>{sync}<guid isPermaLink=\"false\">urn:x:{id}</guid><title>{title}</title>\
             <description>{text}</description></item>"
        ),
        _ => format!("<item>{sync}<subject>{title}</subject><body>{text}</body></item>"),
    }
}

fn history(update: &Update) -> String {
    let mut text = format!("<sx:history sequence=\"{}\"", update.sequence);
    if let Some(when) = update.when {
        text += &format!(" when=\"{}\"", Time::from_unix(when));
    }
    if let Some(by) = &update.by {
        text += &format!(" by=\"{by}\"");
    }
    text + "/>"
}

fn object(id: &str, item: &Item) -> Value {
    let mut value = version(id, &item.winner);
    if !item.conflicts.is_empty() {
        let conflicts = item.conflicts.iter().map(|conflict| version(id, conflict)).collect();
        value["sync"]["conflicts"] = Value::Array(conflicts);
    }
    value
}

fn version(id: &str, version: &Version) -> Value {
    let history = version.history.iter().map(|update| {
        let mut said = Map::new();
        said.insert("sequence".into(), update.sequence.to_string().into());
        if let Some(when) = update.when {
            said.insert("when".into(), Time::from_unix(when).to_string().into());
        }
        if let Some(by) = &update.by {
            said.insert("by".into(), by.as_str().into());
        }
        Value::Object(said)
    });
    let history: Vec<Value> = history.collect();
    let mut sync = json!({"id": id, "updates": version.updates.to_string(), "history": history});
    if version.deleted {
        sync["deleted"] = "true".into();
    }
    if let Some(flag) = version.noconflicts {
        sync["noconflicts"] = flag.to_string().into();
    }
    json!({"title": version.title, "description": version.text, "sync": sync})
}
