//! The file as written → the checked configuration, with every fault at once.
//!
//! Each fault names the file, the line and the key, and says what is allowed. Nothing is looked up
//! here: the token file, the environment and the network are for the wiring to ask. The tables of keys
//! stand in the modules of their sections; `config/tidegate.toml` and the tables of
//! `docs/operators/configuration.md` are written from them.

mod access;
mod fault;
mod feed_tables;
mod feeds;
mod keys;
mod kinds;
mod naming;
mod nearest;
mod origins;
mod overrides;
mod polling;
mod publish;
mod readers;
mod section;
mod server;
mod sheet;
mod store;
mod units;
mod value;
mod variables;
mod web;
mod websub;

/// What the modules of the tables declare and check their keys with.
mod declare {
    pub(super) use super::External;
    pub(super) use super::keys::Preset::{Shown, Value as Preset, Words};
    pub(super) use super::keys::{KeyTable, keys, section};
    pub(super) use super::kinds::*;
    pub(super) use super::section::Section;
    pub(super) use super::units::{duration, written};
}

pub use access::without_login;
pub use fault::{ConfigError, External, FAULTS_SHOWN, Fault, Faults, look_up};
pub use feeds::{
    AGGREGATE_LIMIT, FEED_LIMIT, FeedConfig, FeedSettings, SOURCE_LIMIT, WebhookConfig,
    feed_settings,
};
pub use naming::{feed_name, is_named_after};
pub use origins::{ALLOW_LIMIT, AllowConfig, ORIGIN_LIMIT, OWN_STEPS};
pub use overrides::Overrides;
pub use polling::{HOST_LIMIT, HostPace, Polling};
pub use publish::{DeltaViews, Publish};
pub use readers::{READER_FEEDS_LIMIT, READER_LIMIT, ReaderConfig, ReaderToken};
pub use server::{PageAudience, ServerSection, check_admin_token, listen_address};
pub use store::{StoreKind, StoreSettings};
pub use units::{duration, written};
pub use variables::Variables;
pub use web::{feed_address, public_address};
pub use websub::{SupConfig, Websub};

use keys::KeyRow;
use section::Section;
use sheet::Sheet;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use tidegate_net::origin::OriginConfig;
use value::{TableEntry, entries};

/// The largest configuration file that is read, in bytes.
pub const FILE_LIMIT: u64 = 16 * 1024 * 1024;

/// A checked configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// Where the gateway listens and how it is administered.
    pub server: ServerSection,
    /// Where it keeps what it knows.
    pub store: StoreSettings,
    /// How it polls.
    pub polling: Polling,
    /// How it publishes.
    pub publish: Publish,
    /// How it tells which feeds have changed.
    pub sup: SupConfig,
    /// Its hub, and hubs of upstreams.
    pub websub: Websub,
    /// Hosts that are asked at a pace of their own, by name.
    pub hosts: BTreeMap<String, HostPace>,
    /// The feeds, in the order of the file, and behind them the aggregates.
    pub feeds: Vec<FeedConfig>,
    /// Who may read private feeds.
    pub readers: Vec<ReaderConfig>,
    /// The sites that it stands in front of, in the order of the file.
    pub origins: Vec<OriginConfig>,
    /// The sites whose feeds readers may subscribe to, in the order of the file.
    pub allow: Vec<AllowConfig>,
}

/// A configuration, and what its author should know about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checked {
    /// The configuration.
    pub config: Config,
    /// What was taken but may not do what the author expects.
    pub warnings: Vec<Fault>,
    /// What it names and does not contain, each with its place and without a message.
    pub externals: Vec<(Fault, External)>,
    /// Where the keys are of the tables that stand once, by table and key, and the heads of the tables.
    pub places: BTreeMap<String, Fault>,
}

impl Config {
    /// Keeps the store that is open, and its endpoint; names the keys that say another one, which needs a restart.
    pub fn keep_store(&mut self, in_force: &Self) -> Vec<&'static str> {
        let (own, open) = (&self.store, &in_force.store);
        let keys = [
            ("store.kind", own.kind != open.kind),
            ("store.path", own.path != open.path),
            ("store.url", own.url != open.url),
            ("store.require_standby", own.require_standby != open.require_standby),
            ("publish.endpoint", self.publish.endpoint != in_force.publish.endpoint),
        ];
        self.store = StoreSettings { space: self.store.space, ..in_force.store.clone() };
        self.publish.endpoint.clone_from(&in_force.publish.endpoint);
        keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
    }
}

impl Checked {
    /// Says of each of these keys, which differ from what is in force, that it needs a restart. No value is repeated: it
    /// may be a secret.
    pub fn restart_warnings(&self, kept: &[&str]) -> Vec<Fault> {
        let message = "was changed and needs a restart; until then what it was stays in force";
        let warning = |key: &&str| Fault { message: message.to_owned(), ..self.place(key) };
        kept.iter().map(warning).collect()
    }

    /// Where a key of a table is that stands once; of an absent one the head of its table, or the beginning of the file.
    pub fn place(&self, key: &str) -> Fault {
        let table = key.split('.').next().unwrap_or_default();
        let place = [key, table, ""].into_iter().find_map(|known| self.places.get(known));
        Fault { key: key.to_owned(), ..place.cloned().unwrap_or_default() }
    }
}

/// Reads and checks a configuration file, with what the environment says over it, and over that the command line.
/// Without a file every key has its default.
pub fn load(
    path: Option<&Path>,
    variables: Variables,
    overrides: &Overrides,
) -> Result<Checked, ConfigError> {
    let (file, text) = match path {
        Some(path) => (path.display().to_string(), read_file(path)?),
        None => Default::default(),
    };
    let mut checked = check_with(&file, &text, &variables.below(overrides))?;
    overrides.complete(&mut checked.config);
    Ok(checked)
}

fn read_file(path: &Path) -> Result<String, ConfigError> {
    let file = path.display().to_string();
    let read = |source| ConfigError::Read { file: file.clone(), source };
    let mut bytes = Vec::new();
    // One byte more than the limit tells a file at the limit from one above it.
    let opened = std::fs::File::open(path).map_err(read)?;
    opened.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(read)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_LIMIT {
        let said =
            format!("the configuration file {file} is larger than {FILE_LIMIT} bytes, the limit");
        return Err(ConfigError::Unusable(said));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = good.iter().filter(|b| **b == b'\n').count() + 1;
        ConfigError::Unusable(format!(
            "{file}:{line}: the configuration is not UTF-8; save it as UTF-8"
        ))
    })
}

/// Checks the text of a configuration; `file` is its name for messages.
pub fn check(file: &str, text: &str) -> Result<Checked, Faults> {
    check_with(file, text, &Variables::default())
}

/// The same with what the environment says over it.
pub fn check_with(file: &str, text: &str, variables: &Variables) -> Result<Checked, Faults> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (root, errors) = toml::de::DeTable::parse_recoverable(text);
    let mut sheet = Sheet::new(file, text, variables);
    for error in errors {
        sheet.syntax(&error);
    }
    // What could be read is checked even where the syntax is broken elsewhere, so that one run
    // names every mistake.
    let config = read_config(&mut sheet, &entries(root.get_ref()));
    sheet.finish(config)
}

fn read_config(sheet: &mut Sheet<'_>, root: &[TableEntry<'_>]) -> Config {
    let mut top = Section::root(sheet, root);
    let server = top.table("server", &server::KEYS, server::check);
    let store = top.table("store", &store::KEYS, store::check);
    let polling = top.table("polling", &polling::KEYS, polling::check);
    let publish = top.table("publish", &publish::KEYS, publish::check);
    let sup = top.table("sup", &websub::SUP_KEYS, websub::check_sup);
    let websub = top.table("websub", &websub::KEYS, websub::check);
    let hosts = polling::read_hosts(&mut top);
    let origins = origins::read(&mut top, &server);
    let allow = origins::read_allowed(&mut top);
    let feeds = feed_tables::read(&mut top, &polling, &websub, &origins.checked);
    origins::check_readers(&mut top, &origins, !feeds.private_names().is_empty());
    let feed_tables::Feeds { checked: feeds, names, .. } = feeds;
    let readers = readers::read(&mut top, &names);
    Config {
        server,
        store,
        polling,
        publish,
        sup,
        websub,
        hosts,
        feeds,
        readers,
        origins: origins.checked,
        allow,
    }
}

/// The tables of the file, with their keys; those that stand once first.
const TABLES: [(&str, &[KeyRow]); 12] = [
    ("server", server::KEYS.rows),
    ("store", store::KEYS.rows),
    ("polling", polling::KEYS.rows),
    ("publish", publish::KEYS.rows),
    ("sup", websub::SUP_KEYS.rows),
    ("websub", websub::KEYS.rows),
    ("host", polling::HOST_KEYS.rows),
    ("feed", feeds::FEED_KEYS.rows),
    ("aggregate", feeds::AGGREGATE_KEYS.rows),
    ("reader", readers::KEYS.rows),
    ("origin", origins::ORIGIN_KEYS.rows),
    ("allow", origins::ALLOW_KEYS.rows),
];

/// The tables that stand once, with their keys.
fn single_tables() -> impl Iterator<Item = (&'static str, &'static [KeyRow])> {
    TABLES.into_iter().take(6)
}

#[cfg(test)]
mod tests;
