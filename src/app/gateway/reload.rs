//! Goes on with a configuration that was read again.

use super::settings;
use crate::app::tls::CertificateFiles;
use crate::app::{AppError, ErrorContext, feeds, outgoing, token};
use std::sync::Arc;
use tidegate_config::Config;
use tidegate_core::clock::Clock;
use tidegate_poll::PollError;
use tidegate_serve::{Keeping, Operator, ReloadableSettings, SiteControl};
use tidegate_store::{FreeSpace, Store};

/// What a reload reaches beside polling and the hub.
pub(super) struct Reloaded {
    pub(super) site: SiteControl,
    pub(super) space: Option<Arc<FreeSpace>>,
    pub(super) tls: Option<Arc<CertificateFiles>>,
    pub(super) store: Arc<Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) public_url: String,
}

impl Reloaded {
    /// Takes a new configuration; names the keys that differ and need a restart, which stay as they are.
    pub(super) async fn take(
        &self,
        operator: &Operator,
        mut config: Config,
    ) -> Result<Vec<String>, AppError> {
        let Self { site, space, tls, store, clock, public_url } = self;
        let turn = operator.turn().await;
        let (_one, _) = turn.context("the feeds cannot be read")?;
        let before = operator.config();
        let kept = config.keep(&before);
        let now = clock.now();
        // What can fail comes first, and last of that what is stored: then all of it is taken.
        let admin_token = token::changed(&before, &config)?;
        let readers = token::readers(&config)?;
        let fetch = outgoing::fetch_settings(&config, public_url);
        let services = outgoing::services(fetch.clone())?;
        let calling = outgoing::calling(&config, fetch, &services)?;
        let certificate = tls.as_ref().map(|tls| tls.read()).transpose()?;
        let publish = settings::publisher(store, &config, public_url)?;
        let changed = feeds::reconcile(store, &config, now).await?;
        // Polling has ended only where the gateway ends.
        let stopped = |error: PollError| AppError::run("polling cannot go on", error);
        let (poller, hub) = (operator.poller(), operator.hub());
        let polling = outgoing::polling(&config, public_url);
        poller.reconfigure(polling, services.clone()).await.map_err(stopped)?;
        for record in changed {
            poller.put(record).await.map_err(stopped)?;
        }
        if let Some(hub) = hub {
            hub.reconfigure(calling, outgoing::hub(&config));
        }
        let trusted_proxies = config.server.trusted_proxies.clone();
        let keeping = Keeping { archives: config.publish.archives, past: config.publish.past };
        site.reconfigure(ReloadableSettings { trusted_proxies, admin_token, keeping, readers });
        if let Some(space) = space {
            space.set_limits(config.store.space);
        }
        if let (Some(tls), Some(certificate)) = (tls, certificate) {
            tls.show(certificate, now);
        }
        publish();
        operator.open_all().await;
        if let Some(hub) = hub {
            outgoing::keep_webhooks(hub, &config, store).await;
        }
        operator.reconfigure(without_feeds(config), services);
        Ok(kept)
    }
}

/// A configuration but for its feeds, of which there may be many, and which the store has. Those with a path are
/// left, since the store does not have it. The tokens that stand in the file are kept nowhere.
pub(super) fn without_feeds(mut config: Config) -> Config {
    config.feeds.retain(|feed| feed.path.is_some());
    config.feeds.shrink_to_fit();
    Config { readers: Vec::new(), ..config }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::{self as config, Checked};

    /// Another value for each key of the tables that stand once, with the keys that it needs beside it.
    const CHANGES: &[(&str, &str, &str)] = &[
        ("server", "listen", "\"127.0.0.1:1\""),
        ("server", "public_url", "\"https://other.example\""),
        ("server", "admin_listen", "\"127.0.0.1:2\""),
        ("server", "pages", "\"operators\""),
        ("server", "challenge", "true"),
        ("server", "indexed", "true"),
        ("server", "connections", "7000"),
        ("server", "memory", "\"1GiB\""),
        ("server", "trusted_proxies", "[\"10.0.0.0/8\"]"),
        ("server", "admin_token", "\"another-token-of-this-test\""),
        ("server", "admin_token_file", "\"TOKEN\""),
        ("server", "tls_cert_file", "\"CERTIFICATES\""),
        ("server", "tls_key_file", "\"TOKEN\""),
        ("store", "kind", "\"memory\""),
        ("store", "path", "\"elsewhere\""),
        ("store", "min_free", "\"1MiB\""),
        ("store", "max_size", "\"1GiB\""),
        ("store", "url", "\"postgresql://elsewhere/feeds\""),
        ("store", "require_standby", "true"),
        ("polling", "min_interval", "\"7m\""),
        ("polling", "max_interval", "\"25h\""),
        ("polling", "allow_private", "true"),
        ("polling", "user_agent", "\"another\""),
        ("polling", "host_spacing", "\"7s\""),
        ("polling", "proxy", "\"http://proxy.example:3128\""),
        ("polling", "proxy_resolves", "true"),
        ("polling", "ca_file", "\"CERTIFICATES\""),
        ("polling", "api_secrets", "true"),
        ("publish", "endpoint", "\"other.example\""),
        ("publish", "dialect", "\"feedsync\""),
        ("publish", "history_links", "[\"rfc5005\"]"),
        ("publish", "absolute_urls", "true"),
        ("publish", "keep_new_feed_url", "true"),
        ("publish", "archive_entries", "7"),
        ("publish", "versions_per_day", "7"),
        ("publish", "archives", "7"),
        ("publish", "archive_age", "\"7d\""),
        ("publish", "archive_bytes", "\"7MiB\""),
        ("publish", "versions", "7"),
        ("publish", "versions_age", "\"7d\""),
        ("publish", "versions_bytes", "\"7MiB\""),
        ("publish", "window", "\"7d\""),
        ("publish", "tombstones", "\"77d\""),
        ("publish", "items", "7000"),
        ("publish", "deltas", "\"all\""),
        ("sup", "periods", "[\"1m\", \"7m\"]"),
        ("websub", "hub", "false"),
        ("websub", "rsscloud", "false"),
        ("websub", "lease", "\"7d\""),
        ("websub", "lease_min", "\"7m\""),
        ("websub", "lease_max", "\"77d\""),
        ("websub", "subscriptions", "7"),
        ("websub", "subscriptions_per_host", "7"),
        ("websub", "subscribe", "false"),
        ("websub", "private_callbacks", "true"),
        ("websub", "http_secrets", "true"),
    ];

    const URL: &str = "https://feeds.example.org";

    fn checked(text: &str) -> Checked {
        config::check("t.toml", text).unwrap_or_else(|faults| panic!("{text}: {faults}"))
    }

    /// A change as the file has it; files that are named lie in `folder`.
    fn changed(folder: &std::path::Path, (table, key, value): (&str, &str, &str)) -> String {
        let path = |name: &str| folder.join(name).display().to_string();
        let value = value.replace("TOKEN", &path("token"));
        let value = value.replace("CERTIFICATES", &path("certificates"));
        format!("[{table}]\n{key} = {value}\n")
    }

    /// All that a running gateway takes over from a configuration, but for its feeds.
    fn live(config: &Config) -> impl PartialEq + std::fmt::Debug + use<> {
        let publish = &config.publish;
        (
            outgoing::polling(config, URL),
            outgoing::fetch_settings(config, URL),
            outgoing::hub(config),
            (config.store.space, config.server.trusted_proxies.clone()),
            (config.server.admin_token.clone(), config.polling.api_secrets),
            (publish.archives, publish.past),
        )
    }

    #[test]
    fn every_key_reloads_or_says_that_it_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let plain = checked("");
        let tls = checked("[server]\ntls_cert_file = \"a\"\ntls_key_file = \"b\"");
        let mut missing = config::single_keys();
        for change in CHANGES {
            let (table, key, _) = *change;
            let name = format!("{table}.{key}");
            missing.retain(|(known, _)| *known != name);
            // One of these needs the other.
            let (started, other) = match key {
                "tls_cert_file" => (&tls, "tls_key_file = \"b\""),
                "tls_key_file" => (&tls, "tls_cert_file = \"a\""),
                _ => (&plain, ""),
            };
            let again = checked(&(changed(folder.path(), *change) + other));
            let mut config = again.config.clone();
            assert_ne!(config, started.config, "{name} is not changed");
            let kept = config.keep(&started.config);
            let warnings = again.restart_warnings(&kept);
            if kept.is_empty() {
                assert_ne!(live(&config), live(&started.config), "{name} has no effect");
                assert_eq!(warnings, []);
            } else {
                assert_eq!(kept, std::slice::from_ref(&name));
                assert_eq!(config, started.config, "{name} needs a restart and changed something");
                let said = warnings[0].to_string();
                let place =
                    format!("t.toml:2: {name}: was changed and needs a restart; until then ");
                assert!(said.starts_with(&place), "{said}");
            }
            let restarts = config::single_keys().into_iter().find(|(known, _)| *known == name);
            assert_eq!(restarts, Some((name, !kept.is_empty())));
        }
        assert!(missing.is_empty(), "no change is tried for {missing:?}");
    }

    #[test]
    fn origins_and_the_paths_of_feeds_need_a_restart() {
        let origin =
            "[[origin]]\nname = \"blog\"\nurl = \"https://blog.example/\"\nat = \"/blog/\"\n";
        let allow = "[[allow]]\nurl = \"https://example.org/\"\n";
        let feed =
            |name: &str| format!("[[feed]]\nname = {name:?}\nurl = \"https://{name}.example/\"\n");
        let path = "path = \"/atom.xml\"\n";
        let started = format!("{origin}{allow}{}{path}{}", feed("a"), feed("b"));
        let tried = [
            (started.clone(), None),
            (started.replace("/blog/", "/docs/"), Some("t.toml:1: origin")),
            (started.replace(origin, ""), Some("t.toml:1: origin")),
            (
                started.clone()
                    + "[[origin]]\nname = \"two\"\nurl = \"https://two.example/\"\nhost = \"two\"\n",
                Some("t.toml:1: origin"),
            ),
            (
                started.replace(allow, "[[allow]]\nurl = \"https://example.org/blog\"\n"),
                Some("t.toml:5: allow"),
            ),
            (started.replace(allow, ""), Some("t.toml:1: allow")),
            (started.replace("atom", "rss"), Some("t.toml:10: feed.path")),
            (started.replace(path, ""), Some("t.toml:7: feed.path")),
            (started.clone() + "path = \"/b.xml\"\n", Some("t.toml:10: feed.path")),
            (started.clone() + &feed("c") + "path = \"/c.xml\"\n", Some("t.toml:10: feed.path")),
            // It has gone with its feed.
            (started.replace(&(feed("a") + path), ""), None),
        ];
        let started = checked(&started);
        let in_force = without_feeds(started.config.clone());
        for (text, place) in tried {
            let again = checked(&text);
            let mut config = again.config.clone();
            let kept = config.keep(&in_force);
            let warnings = again.restart_warnings(&kept);
            let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
            let expected = place.map(|place| {
                format!("{place}: was changed and needs a restart; until then what it was stays in force")
            });
            assert_eq!(said, expected.into_iter().collect::<Vec<_>>(), "{text}");
            assert_eq!(
                kept.first().map(String::as_str),
                place.map(|place| place.split(' ').nth(1).unwrap())
            );
            assert_eq!(
                (&config.origins, &config.allow),
                (&started.config.origins, &started.config.allow)
            );
            for feed in &config.feeds {
                let before = started.config.feeds.iter().find(|one| one.name == feed.name);
                assert_eq!(
                    feed.path.as_ref(),
                    before.and_then(|before| before.path.as_ref()),
                    "{text}"
                );
            }
        }
        let again = checked("[[allow]]\nurl = \"https://example.org/\"\n");
        let kept = again.config.clone().keep(&Config::default());
        let said = again.restart_warnings(&kept)[0].to_string();
        assert!(
            said.ends_with(
                "allow: was changed and needs a restart; until then what it was stays in force"
            ),
            "{said}"
        );
    }

    #[test]
    fn what_stays_in_force_is_said_where_a_key_is_taken_out() {
        let started = checked("[publish]\nwindow = \"7d\"\n[websub]\nhub = false\n");
        let again = checked("# nothing\n\n[publish]\n");
        let kept = again.config.clone().keep(&started.config);
        let said: Vec<String> =
            again.restart_warnings(&kept).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "t.toml:3: publish.window: was changed and needs a restart; until then what it was stays in force",
                "t.toml:1: websub.hub: was changed and needs a restart; until then what it was stays in force",
            ]
        );
    }
}
