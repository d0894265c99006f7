//! `[store]`: where the gateway keeps what it knows.

use super::access::{note_sources, secret_value};
use super::declare::*;
use std::path::PathBuf;
use tidegate_core::model::SecretSource;
use tidegate_store::SpaceLimits;

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StoreKind {
    /// On disk, in sled.
    #[default]
    Sled,
    /// In a PostgreSQL database.
    Postgres,
    /// In memory: everything is forgotten at the end.
    Memory,
}

impl StoreKind {
    /// The kinds, by their names.
    const NAMES: &'static [(&'static str, Self)] =
        &[("sled", Self::Sled), ("postgres", Self::Postgres), ("memory", Self::Memory)];

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

section! {
    /// Where the gateway keeps what it knows.
    pub struct StoreSettings with KEYS {
        /// `"sled"`: on disk; `"postgres"`: in the PostgreSQL database at `url`; `"memory"`: everything is forgotten
        /// at the end.
        ///
        /// `tidegate export` and `tidegate import` carry a store over to another kind. Another one needs a restart.
        kind: StoreKind =
            one_of(StoreKind::NAMES), Preset("\"sled\"");
        /// The data folder.
        ///
        /// One process at a time uses it. Another one needs a restart. With PostgreSQL it has only what is this machine's: the
        /// administration token that was made at the first start, and large documents while they are sent.
        path: PathBuf = path("a folder"), Preset("\"tidegate-data\"");
        /// How much must stay free on the file system of the data folder; of a small one 2 %, where
        /// that is less. Below it nothing new is taken in, and reading goes on.
        ///
        /// Feeds are not polled then, and new items, feeds and subscriptions are refused. It goes on
        /// by itself once a quarter more than that is free. "0MiB": never.
        min_free => space.min_free = bytes(), Preset("\"256MiB\"");
        /// The most that the data folder may take on disk. From there on nothing new is taken in, and
        /// reading goes on.
        ///
        /// It is about that much: the files are counted every few seconds. At nine tenths of it the past is
        /// pruned at once, as far as publish.versions and its like let it. It goes on by itself below 95 % of
        /// the limit; files that have grown shrink by "tidegate compact".
        max_size => space.max_size = bytes().optional(), Words("none", "\"20GiB\"");
        /// The address of the PostgreSQL database, a secret: a text, `{ file = "…" }` or `{ env = "…" }`.
        ///
        /// postgresql://USER:PASSWORD@HOST/DATABASE, with ?sslmode=require for TLS, which is then verified.
        /// Of several hosts (HOST1,HOST2) the one that takes writes is used. Several gateways may use one database.
        /// Another one needs a restart.
        url: Option<SecretSource> = secret_value().optional(),
            Words("none", "{ file = \"/run/secrets/tidegate-database\" }");
        /// Whether commits must wait for a synchronous standby of the PostgreSQL database.
        ///
        /// Without one, a database that fails over may take back what readers and aggregators have seen. A gateway
        /// does not start without one: true: never; false: it does; no such key: where another gateway uses the
        /// database already. false is right for storage that has copies which PostgreSQL does not show. It is looked at
        /// at the start.
        require_standby: Option<bool> = flag().optional(), Words("true where another gateway uses the database", "false");
    }
    fields {
        /// How much space must stay free, and how much may be taken.
        space: SpaceLimits = SpaceLimits { min_free: 0, max_size: None };
    }
}

/// Checks what is written against each other.
pub(super) fn check(section: &mut Section<'_, '_, '_>, store: &mut StoreSettings) {
    match (&store.url, store.kind) {
        (None, StoreKind::Postgres) => {
            section.demand("url", "store.kind is \"postgres\": name the database");
        }
        (Some(_), StoreKind::Postgres) | (None, _) => {}
        (Some(_), kind) => section.warn("url", without_effect(kind)),
    }
    if store.require_standby.is_some() && store.kind != StoreKind::Postgres {
        section.warn("require_standby", without_effect(store.kind));
    }
    let is_used = store.kind == StoreKind::Postgres;
    let kind = if is_used { External::Database } else { External::Secret };
    let secrets = store.url.iter().map(|source| ("url".to_owned(), source)).collect();
    note_sources(section, secrets, kind);
    if let Some(url @ SecretSource::Literal(_)) = store.url.as_ref().filter(|_| is_used) {
        section.refer("url", External::Database(url.clone()));
    }
}

fn without_effect(kind: StoreKind) -> String {
    format!("has no effect: store.kind is {:?}", kind.name())
}
