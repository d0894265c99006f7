//! How the gateway asks others: what all requests go by, and what polling and the hub go by.

use super::{AppError, origins, reach};
use std::sync::Arc;
use tidegate_config::{Config, HostPace};
use tidegate_net::fetch::{self, FetchSettings, Services};
use tidegate_poll::hub::{Calling, HubSettings};
use tidegate_poll::{Pace, PollSettings};

/// What the client is told that every outgoing request goes through.
pub(super) fn fetch_settings(config: &Config, public_url: &str) -> FetchSettings {
    FetchSettings {
        user_agent: Some(config.polling.user_agent.clone()),
        about_url: config.server.public_url.is_some().then(|| public_url.to_owned()),
        allow_private: config.polling.allow_private.clone(),
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

/// What the operator says of the hub.
pub(super) fn hub(config: &Config) -> HubSettings {
    let websub = &config.websub;
    HubSettings {
        leases: websub.leases,
        subscriptions: websub.subscriptions,
        per_host: websub.subscriptions_per_host,
        private_callbacks: websub.private_callbacks.clone(),
    }
}

/// How the hub calls. `fetch`: the settings of the services. What strangers name has a client of its own, unless the same
/// is allowed to them.
pub(super) fn calling(
    config: &Config,
    fetch: FetchSettings,
    all: &Services,
) -> Result<Calling, AppError> {
    let (webhooks, allow_private) = (all.call.clone(), config.polling.allow_private.clone());
    let private_callbacks = config.websub.private_callbacks.clone();
    let callbacks = match private_callbacks == allow_private {
        true => webhooks.clone(),
        false => services(FetchSettings { allow_private: private_callbacks, ..fetch })?.call,
    };
    Ok(Calling { callbacks, webhooks, allow_private })
}

/// How feeds are polled.
pub(super) fn polling(config: &Config, public_url: &str) -> PollSettings {
    let (polling, publish) = (&config.polling, &config.publish);
    let pace = |host: &HostPace| Pace {
        spacing: host.spacing.unwrap_or(polling.host_spacing),
        parallel: host.parallel,
    };
    let paces = config.hosts.iter().map(|(name, host)| (name.clone(), pace(host))).collect();
    PollSettings {
        min_interval: polling.min_interval,
        max_interval: polling.max_interval,
        spacing: polling.host_spacing,
        paces: Arc::new(paces),
        walk_pause: polling.walk_pause,
        allow_private: polling.allow_private.clone(),
        window: publish.window,
        tombstones: publish.tombstones,
        versions_per_day: publish.versions_per_day,
        items: publish.items,
        archives: publish.archives,
        reach: reach::reach(config, public_url),
        ..PollSettings::default()
    }
}
