//! How the gateway asks others and they it: what all requests go by, and what polling, the hub and its webhooks go by.

use super::{AppError, ErrorContext, origins};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_config::{Config, HostPace, WebhookConfig};
use tidegate_core::model::{FeedName, FeedSource};
use tidegate_core::websub::{Manner, Secret};
use tidegate_net::fetch::{self, AllowPrivate, Fetch, FetchSettings, Services, read_url};
use tidegate_poll::hub::{Calling, Hub, HubSettings};
use tidegate_poll::{Bounds, HostRules, Pace, PollSettings, Reach};
use tidegate_store::{Store, in_words};
use url::{Host, Url};

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
    fetch::services(settings).context("the HTTP client could not be made")
}

/// The client of a command: any address that it is given, and elsewhere public ones only (CONTRACT, Command line).
pub(super) fn client_of(given: &Url) -> Result<Fetch, AppError> {
    let allow_private = AllowPrivate::host_of(given);
    Ok(services(FetchSettings { allow_private, ..FetchSettings::default() })?.fetch)
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
    let (spacing, allow_private) = (polling.host_spacing, polling.allow_private.clone());
    PollSettings {
        bounds: Bounds::new(polling.min_interval, polling.max_interval),
        hosts: HostRules { spacing, allow_private, paces: Arc::new(paces) },
        walk_pause: polling.walk_pause,
        window: publish.window,
        tombstones: publish.tombstones,
        versions_per_day: publish.versions_per_day,
        items: publish.items,
        archives: publish.archives,
        reach: reach(config, public_url),
        sites: origins::sites(config, public_url),
    }
}

/// Where hubs of upstreams call, without the token.
const CALLBACKS: &str = "/websub/callback";

/// Last labels of names that mean something only within a network.
const INNER: &[&str] =
    &["localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "onion"];

/// Where hubs reach this gateway: anywhere from outside where its address is public or the operator
/// says so. A gateway with a private address is reached by hubs at the operator's own hosts alone,
/// those that polling may ask though they are private: to ask others would be in vain.
pub(super) fn reach(config: &Config, public_url: &str) -> Option<Reach> {
    let base = read_url(public_url).ok()?;
    let own_hosts = match config.websub.subscribe {
        Some(false) => return None,
        Some(true) => false,
        None => !is_public(&base),
    };
    let callbacks = format!("{}{CALLBACKS}", public_url.trim_end_matches('/'));
    Some(Reach { callbacks, own_hosts, http_secrets: config.websub.http_secrets })
}

/// Whether an address looks as if it could be reached from anywhere.
fn is_public(url: &Url) -> bool {
    let Some(Host::Domain(name)) = url.host() else {
        return fetch::check(url, &AllowPrivate::No).is_ok();
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit_once('.').map(|(_, last)| last);
    last.is_some_and(|last| !INNER.contains(&last)) && !name.ends_with(".home.arpa")
}

/// The most webhooks that the hub is asked for: as many as it has subscriptions.
const WEBHOOKS: usize = 1_000_000;

/// Has the webhooks of the configuration's feeds be those that it says; those of other feeds stay. What one
/// cannot be is logged, and keeps nothing else from starting.
pub(super) async fn keep_webhooks(hub: &Hub, config: &Config, store: &Store) {
    let wanted = config.feeds.iter().filter_map(|feed| Some((&feed.name, feed.webhook.as_ref()?)));
    let wanted: BTreeMap<&FeedName, &WebhookConfig> = wanted.collect();
    let feeds = match store.feed_list().await {
        Ok(feeds) => feeds,
        Err(error) => {
            return tracing::warn!(error = in_words(&error), "the webhooks could not be looked at");
        }
    };
    let is_ours = |feed: &FeedName| {
        let source = feeds.get(feed).map(|record| record.source);
        source.is_none_or(|source| source != FeedSource::Api)
    };
    for of in hub.subscriptions(None, WEBHOOKS) {
        if of.manner == Manner::Webhook && is_ours(&of.feed) && !wanted.contains_key(&of.feed) {
            set(hub, &of.feed, None).await;
        }
    }
    for (feed, webhook) in wanted {
        let source = webhook.secret.clone();
        let read = tokio::task::spawn_blocking(move || fetch::find_secret(&source)).await;
        let secret = read.unwrap_or_else(|error| Err(error.to_string()));
        match secret.and_then(|text| Secret::new(&text).map_err(|error| error.to_string())) {
            Ok(secret) => set(hub, feed, Some((webhook.url.clone(), secret))).await,
            Err(why) => tracing::warn!(
                %feed,
                "the secret of its webhook cannot be had, so that it stays as it was: {why}"
            ),
        }
    }
}

async fn set(hub: &Hub, feed: &FeedName, webhook: Option<(Url, Secret)>) {
    if let Err(error) = hub.set_webhook(feed, webhook).await {
        tracing::warn!(%feed, "its webhook could not be set: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::Time;
    use tidegate_net::fetch::{CallRequest, FetchError, LeadScope};
    use tidegate_net::testing::{Publisher, response};
    use tower::ServiceExt as _;

    fn of(public_url: &str, subscribe: Option<bool>) -> Option<bool> {
        let mut config = Config::default();
        config.websub.subscribe = subscribe;
        reach(&config, public_url).map(|reach| reach.own_hosts)
    }

    #[test]
    fn who_reaches_the_gateway_and_what_its_hub_may_call_is_found_out() {
        for public in ["https://feeds.example.org", "http://1.1.1.1:8080", "https://[2a00::1]/x"] {
            assert_eq!(of(public, None), Some(false), "{public}");
        }
        let private = "http://127.0.0.1:8080 http://0.0.0.0:8080 http://[::1]:8080 http://10.1.2.3 \
                       http://localhost:8080 http://gateway http://gateway.local. http://feeds.corp \
                       http://nas.home.arpa";
        for private in private.split(' ') {
            assert_eq!(of(private, None), Some(true), "{private}");
            assert_eq!(of(private, Some(true)), Some(false), "{private}: the operator knows");
        }
        assert_eq!(of("https://feeds.example.org", Some(false)), None);
        // Callbacks stand below the public address.
        let reached = reach(&Config::default(), "https://example.org/feeds/").unwrap();
        assert_eq!(reached.callbacks, "https://example.org/feeds/websub/callback");
        // The hub has its own limits, and its own leave to call private addresses.
        let mut config = Config::default();
        (config.websub.subscriptions, config.websub.subscriptions_per_host) = (7, 3);
        config.polling.allow_private = AllowPrivate::All;
        config.websub.private_callbacks = AllowPrivate::only(["hook.example:81"]).unwrap();
        let settings = hub(&config);
        assert_eq!((settings.subscriptions, settings.per_host), (7, 3));
        assert_eq!(settings.private_callbacks, config.websub.private_callbacks);
        assert_eq!(settings.leases, config.websub.leases);
    }

    /// Polling may ask private addresses, so that the operator's webhook is one; a stranger's callback is none.
    #[tokio::test]
    async fn strangers_callbacks_are_called_by_another_client_than_webhooks() {
        let publisher = Publisher::start(|_| response("204 No Content", "", b"")).await;
        let url = Url::parse(&publisher.url("/").replace("127.0.0.1", "localhost")).unwrap();
        assert_eq!(url.host_str(), Some("localhost"));
        let mut config = Config::default();
        config.polling.allow_private = AllowPrivate::All;
        let settings = fetch_settings(&config, "https://feeds.example.org");
        let all = services(settings.clone()).unwrap();
        let ask = || CallRequest::get(url.clone(), LeadScope::default(), Time::from_unix(0));

        let own = calling(&config, settings.clone(), &all).unwrap();
        assert_eq!(own.webhooks.oneshot(ask()).await.unwrap().status, 204);
        assert_eq!(own.allow_private, AllowPrivate::All);
        let refused = own.callbacks.oneshot(ask()).await.unwrap_err();
        assert!(matches!(refused, FetchError::Refused { hop: 0, .. }), "{refused}");
        assert_eq!(publisher.heads().len(), 1);

        config.websub.private_callbacks = AllowPrivate::All;
        let own = calling(&config, settings, &all).unwrap();
        assert_eq!(own.callbacks.oneshot(ask()).await.unwrap().status, 204);
    }
}
