//! From the words of the configuration to those of the modules.

use super::{AppError, origins, reach, readers, token};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tidegate_config::{
    self as config, AllowPrivateSetting, Checked, Config, ConfigError, Deltas, External,
    HistoryLinks, HostPace, SyncDialect,
};
use tidegate_core::trust::check_certificates;
use tidegate_core::websub::Leases;
use tidegate_format::render;
use tidegate_judge::archive;
use tidegate_net::fetch::{self, FetchSettings, Services};
use tidegate_poll::hub;
use tidegate_poll::{Pace, PollSettings};
use tidegate_serve as serve;
use tidegate_store::{PostgresRequest, Retention, SpaceLimits, in_words};

/// What the client is told that every outgoing request goes through.
pub(super) fn fetch_settings(config: &Config, public_url: &str) -> FetchSettings {
    FetchSettings {
        user_agent: Some(config.polling.user_agent.clone()),
        about_url: config.server.public_url.is_some().then(|| public_url.to_owned()),
        allow_private: allow_private(config),
        proxy: config.polling.proxy.clone(),
        proxy_resolves: config.polling.proxy_resolves,
        ca_file: config.polling.ca_file.clone(),
        sites: origins::sites(config, public_url),
        ..FetchSettings::default()
    }
}

/// The client that every outgoing request goes through.
pub(super) fn services(settings: FetchSettings) -> Result<Services, AppError> {
    fetch::services(settings)
        .map_err(|error| AppError::run("the HTTP client could not be made", error))
}

/// Looks up what the configuration names and does not contain, as a start does: secrets, tokens, certificates.
pub fn find_externals(checked: &Checked) -> Result<(), AppError> {
    let mut tokens = HashMap::new();
    let found = config::look_up(checked, |place, external| match external {
        External::Secret(source) => fetch::find_secret(source).map(|_| ()),
        External::Database(source) => {
            let checked = PostgresRequest::check_address(&fetch::find_secret(source)?);
            checked.map_err(|error| in_words(&error).to_string())
        }
        External::AdminToken(path) => token::in_file(path).map(|_| ()),
        External::ReaderToken(source) => {
            let token = readers::find(source)?.reveal().to_owned();
            match tokens.insert(token, place.line) {
                Some(line) => Err(format!("is the token of line {line}; each reader has its own")),
                None => Ok(()),
            }
        }
        External::Certificates(path) => check_certificates(path),
        External::KeyPair { certificate, key } => {
            let loaded = serve::TlsIdentity::load(certificate, key);
            loaded.map(|_| ()).map_err(|error| error.to_string())
        }
    });
    found.map_err(|faults| ConfigError::Faults(faults).into())
}

/// What the operator says of the hub.
pub(super) fn hub(config: &Config) -> hub::HubSettings {
    let websub = &config.websub;
    let leases = Leases { usual: websub.lease, least: websub.lease_min, most: websub.lease_max };
    let limit = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    hub::HubSettings {
        leases,
        subscriptions: limit(websub.subscriptions),
        per_host: limit(websub.subscriptions_per_host),
        private_callbacks: private(&websub.private_callbacks),
    }
}

/// How the hub calls. `fetch`: the settings of the services. What strangers name has a client of its own, unless the same
/// is allowed to them.
pub(super) fn calling(
    config: &Config,
    fetch: FetchSettings,
    all: &Services,
) -> Result<hub::Calling, AppError> {
    let (webhooks, allow_private) = (all.call.clone(), allow_private(config));
    let private_callbacks = private(&config.websub.private_callbacks);
    let callbacks = match private_callbacks == allow_private {
        true => webhooks.clone(),
        false => services(FetchSettings { allow_private: private_callbacks, ..fetch })?.call,
    };
    Ok(hub::Calling { callbacks, webhooks, allow_private })
}

/// How feeds are polled.
pub(super) fn polling(config: &Config, public_url: &str) -> PollSettings {
    PollSettings {
        min_interval: config.polling.min_interval,
        max_interval: config.polling.max_interval,
        spacing: config.polling.host_spacing,
        paces: paces(config),
        walk_pause: config.polling.walk_pause,
        allow_private: allow_private(config),
        window: config.publish.window,
        tombstones: config.publish.tombstones,
        versions_per_day: config.publish.versions_per_day,
        items: usize::try_from(config.publish.items).unwrap_or(usize::MAX),
        archives: archives(config),
        reach: reach::reach(config, public_url),
        ..PollSettings::default()
    }
}

/// The hosts that have a pace of their own.
fn paces(config: &Config) -> Arc<BTreeMap<String, Pace>> {
    let usual = config.polling.host_spacing;
    let pace = |host: &HostPace| Pace {
        spacing: host.spacing.unwrap_or(usual),
        parallel: usize::try_from(host.parallel).unwrap_or(1),
    };
    Arc::new(config.hosts.iter().map(|(name, host)| (name.clone(), pace(host))).collect())
}

/// How much is kept of the past of a feed.
pub(super) fn retention(config: &Config) -> Retention {
    let publish = &config.publish;
    Retention {
        versions: usize::try_from(publish.versions).unwrap_or(usize::MAX),
        age: publish.versions_age.unwrap_or(Retention::default().age),
        bytes: publish.versions_bytes,
    }
}

/// How much is kept of every feed.
pub(super) fn keeping(config: &Config) -> serve::Keeping {
    serve::Keeping { archives: archives(config), past: retention(config) }
}

/// How much space must stay free, and how much may be taken.
pub(super) fn space(config: &Config) -> SpaceLimits {
    SpaceLimits { min_free: config.store.min_free, max_size: config.store.max_size }
}

/// How archives are made and kept.
pub(super) fn archives(config: &Config) -> archive::Policy {
    archive::Policy {
        entries: config.publish.archive_entries,
        kept: u64::from(config.publish.archives),
        age: config.publish.archive_age,
        bytes: config.publish.archive_bytes,
    }
}

pub(super) fn allow_private(config: &Config) -> fetch::AllowPrivate {
    private(&config.polling.allow_private)
}

fn private(setting: &AllowPrivateSetting) -> fetch::AllowPrivate {
    match setting {
        AllowPrivateSetting::No => fetch::AllowPrivate::No,
        AllowPrivateSetting::Yes => fetch::AllowPrivate::All,
        AllowPrivateSetting::Only(hosts) => {
            let hosts = hosts.iter().map(|h| (h.host.clone(), h.port));
            fetch::AllowPrivate::Only(hosts.collect())
        }
    }
}

/// The dialect of sync markup when nobody asks for another.
pub(super) fn dialect(config: &Config) -> render::Dialect {
    match config.publish.dialect {
        SyncDialect::Sse => render::Dialect::Sse,
        SyncDialect::Sse091 => render::Dialect::Sse091,
        SyncDialect::FeedSync => render::Dialect::FeedSync,
    }
}

/// Which forms of links lead to archives.
pub(super) fn history_links(config: &Config) -> render::LinkForms {
    let written = |form| config.publish.history_links.contains(&form);
    render::LinkForms {
        draft05: written(HistoryLinks::Draft05),
        rfc5005: written(HistoryLinks::Rfc5005),
    }
}

/// Which views are answered with deltas.
pub(super) const fn deltas(config: &Config) -> serve::DeltaViews {
    match config.publish.deltas {
        Deltas::Sync => serve::DeltaViews::Sync,
        Deltas::All => serve::DeltaViews::All,
    }
}

/// The periods of the SUP documents, in seconds.
pub(super) fn periods(config: &Config) -> Vec<u32> {
    config.sup.periods.clone()
}
